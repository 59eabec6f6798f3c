"""What an algorithm is: a frozen dataclass of hyperparameters and the lines of its paper's box."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, NamedTuple

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem


class State(NamedTuple):
    """Everything that outlives a round.

    Fields:
        server: a dataclass with at least `x`, the global model (d,).
        own: a dataclass of the clients' private tensors, each leading with N; None where clients keep nothing.
    """

    server: Any
    own: Any


class Algorithm(ABC):
    """One method. A round is: broadcast, client, server, close.

    Rules that make the cost honest: a client line reads only `down`, its row of `own` and its data; a server line only
    `server`, `down`, `up`. Whatever else crosses would be a message, and messages are counted.
    """

    name: ClassVar[str]
    revision: ClassVar[int] = (
        1  # raised by hand when the method's results change beyond rounding: stored runs are stale
    )
    lr: float

    def __init_subclass__(cls) -> None:
        """Before a method's own `__post_init__` looks at ranges, its fields have the types of their annotations."""
        if "__post_init__" in cls.__dict__ or not hasattr(cls, "__post_init__"):
            check = cls.__dict__.get("__post_init__", lambda self: None)

            @wraps(check)
            def checked(self: Any) -> None:
                checks.tidy(self)
                check(self)

            cls.__post_init__ = checked  # type: ignore[attr-defined]  # called by the dataclass that the class becomes

    def rate(self, k: int) -> float:
        """The step size of round k; where it changes by itself, it falls."""
        return self.lr

    @abstractmethod
    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        """State before round 0, at the model x (d,)."""

    @abstractmethod
    def broadcast(self, server: Any, key: Key) -> Any:
        """Down: all that each sampled client receives at the start of a round."""

    def at_rate(self, lr: float, own: Any) -> tuple["Algorithm", Any]:
        """The method with another step size, and what its clients keep, carried over to it.

        Here nothing changes: control variates and error feedback are gradients and updates, whatever made them.
        """
        return replace(self, lr=lr), own  # type: ignore[type-var]  # every algorithm is a dataclass

    def chunk(self, problem: Problem) -> int | None:
        """How many clients are best stacked at a time; None: all. `run` may override it."""
        return problem.chunk

    @abstractmethod
    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        """The local steps of the given clients (S,), stacked. Yields each local iterate, (S, .); returns (Up, Own).

        Every leaf of Up and Own leads with S. The key is the round's, the same for all clients.
        """

    @abstractmethod
    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Any, Any]:
        """Aggregate `up` (leading with S, in the order of `clients`). Returns the new Server and a reply, or None.

        The reply goes to every client of the round.
        """

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        """What clients do with the server's reply. `own` leads with N; row i reads only row i and the reply."""
        return own
