"""What an algorithm is: a frozen dataclass of hyperparameters and the lines of its paper's box."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import Field, field, fields, is_dataclass, make_dataclass, replace
from functools import cache, wraps
from typing import Any, ClassVar, NamedTuple, Self

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem


def later(neutral: Any, shown: bool = True) -> Any:
    """Declare a field that was added after runs had been stored; its default means what they did without it.

    `shown=False` leaves it out of the repr, which records of those runs hold.
    """
    return field(default=neutral, repr=shown, metadata={"neutral": neutral})


def by_problem() -> Any:
    """Declare a hyperparameter that may be left out: None, until `Algorithm.on` chooses it for a problem."""
    return field(default=None)


_RANGES = {  # of fields that mean the same in every method
    "lr": checks.step_size,
    "local_steps": checks.count,
    "perturbations": checks.count,
    "server_lr": checks.rate,
}


class _Pair(NamedTuple):
    server: Any
    own: Any


class State(_Pair):
    """Everything that outlives a round: a pair, and `dataclasses.replace` changes its fields, too.

    Fields:
        server: a dataclass with at least `x`, the global model (d,). Its fields keep the form that init gives them: a
            tensor its shape and type, a tuple its length, None is None.
        own: a dataclass of the clients' private tensors, each leading with N; None where clients keep nothing.

    Raises TypeError for a field that it does not have, or that holds something else.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = {
        f.name: f for f in fields(make_dataclass("State", _Pair._fields))
    }

    def __new__(cls, server: Any, own: Any, **other: Any) -> Self:
        if other or not hasattr(server, "x") or not (own is None or is_dataclass(own)):
            _refuse_state(server, own, other)
        return super().__new__(cls, server, own)


def _refuse_state(server: Any, own: Any, other: dict[str, Any]) -> None:
    for name, value in other.items():
        fix = f"write server=... or own=...; fields of the server's part: replace(state.server, {name}=...)"
        checks.reject(f"State.{name}", value, "a field of State: server or own", fix, TypeError)
    if not hasattr(server, "x"):
        expected = "a dataclass with a field x, the global model (d,)"
        checks.reject("State.server", server, expected, "pass Server(x), a dataclass of yours", TypeError)
    expected = "a dataclass of tensors that lead with N, or None"
    checks.reject("State.own", own, expected, "pass Own(...), a dataclass of yours, or None", TypeError)


_STEPS = {
    "init": ("problem", "x", "key"),
    "broadcast": ("server", "key"),
    "address": ("down", "clients"),
    "client": ("problem", "clients", "own", "down", "key"),
    "as_sent": ("own", "down", "up", "sent"),
    "server": ("server", "down", "up", "clients", "key"),
    "close": ("own", "clients", "down", "reply"),
}


@cache
def _complete(kind: type) -> frozenset[str]:
    """The fields of a method's class that has all it needs. Raises TypeError with the first that it lacks."""
    checks.steps(kind, _STEPS)
    known = getattr(kind, "__dataclass_fields__", {})
    above = kind.__mro__[: kind.__mro__.index(Algorithm)]
    written = [name for base in above for name in inspect.get_annotations(base)]
    missed = [name for name in written if name not in known]
    if missed or not known:
        what = f"a dataclass with the fields {', '.join(missed)}" if missed else "a dataclass"
        checks.reject(kind.__name__, kind, what, "write @dataclass(frozen=True) above the class", TypeError)
    if not isinstance(getattr(kind, "name", None), str) and "name" not in known:
        expected = "a text, by which tables and the command line call the method"
        fix = f'write name = "{kind.__name__}" in the class'
        checks.reject(f"{kind.__name__}.name", getattr(kind, "name", None), expected, fix, TypeError)
    if "lr" not in known and not hasattr(kind, "lr"):
        checks.reject(f"{kind.__name__}.lr", None, "a field: the step size", "write lr: float in the class", TypeError)
    return frozenset(known)


@cache
def _arguments(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a method's class takes, in order, and what of it must be given."""
    every = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return tuple(one.name for one in every), tuple(one.name for one in every if one.default is one.empty)


class Algorithm(ABC):
    """One method. A round is: broadcast (and address), client, server, close.

    Rules that make the cost honest: a client line reads only `down`, its row of `own` and its data; a server line only
    `server`, `down`, `up`. Whatever else crosses would be a message, and messages are counted.
    """

    name: ClassVar[str]
    revision: ClassVar[int] = (
        1  # raised by hand when the method's results change beyond rounding: stored runs are stale
    )
    averaged: ClassVar[bool] = False  # whether the server line reads nothing of `up` but the participants' average
    everyone: ClassVar[bool] = False  # whether all clients must take part in every round
    own_steps: ClassVar[bool] = False  # whether K may differ between clients: then the client's line has its own K
    pace: ClassVar[float] = 1.0  # of the default step size, as a multiple of the problem's `rate`
    lr: float

    def __new__(cls, *given: Any, **named: Any) -> Self:
        known = _complete(cls)
        for name in named.keys() - known:
            fields = ", ".join(one for one in cls.__dataclass_fields__ if one not in ("name", "revision"))  # type: ignore[attr-defined]
            near = checks.nearest(name, known)
            fix = f"spell it {near}" if near else "spell it as one of these"
            if name in ("epochs", "local_epochs"):
                fix = "write epochs in the problem, and pass local_steps=problem.steps here"
            checks.reject(name, named[name], f"a field of {cls.__name__}: {fields}", fix, TypeError)
        order, needed = _arguments(cls)
        late = not named.keys().isdisjoint(order[: len(given)])
        if late or len(given) > len(order) or ((given or named) and not named.keys() >= {*needed[len(given) :]}):
            checks.fitting(cls.__init__, cls.__name__, None)(*given, **named)
        return super().__new__(cls)

    def __init_subclass__(cls) -> None:
        """Check types of fields, and ranges of those in `_RANGES`, before a method's own `__post_init__`."""
        if "__post_init__" in cls.__dict__ or not hasattr(cls, "__post_init__"):
            check = cls.__dict__.get("__post_init__", lambda self: None)

            @wraps(check)
            def checked(self: Any) -> None:
                checks.tidy(self)
                for name in filter(self.__dataclass_fields__.get, _RANGES):
                    _RANGES[name](name, getattr(self, name))
                check(self)

            cls.__post_init__ = checked  # type: ignore[attr-defined]  # called by the dataclass that the class becomes

    def suited(self, problem: Problem) -> dict[str, Any]:
        """What the fields become on this problem that were left out, and are None."""
        return {"lr": self.pace * problem.rate}

    def on(self, problem: Problem) -> Self:
        """The method with every field that was left out filled in for this problem, as `run` plays it."""
        chosen = {name: value for name, value in self.suited(problem).items() if getattr(self, name) is None}
        return replace(self, **chosen) if chosen else self  # type: ignore[type-var]

    def rate(self, k: int) -> float:
        """The step size of round k; where it changes by itself, it falls."""
        return self.lr

    @abstractmethod
    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        """State before round 0, at the model x (d,)."""

    @abstractmethod
    def broadcast(self, server: Any, key: Key) -> Any:
        """Down: all that each sampled client receives at the start of a round."""

    def address(self, down: Any, clients: torch.Tensor) -> Any:
        """Down, once the round's clients (S,) are drawn: for methods whose clients must know who takes part."""
        return down

    def at_rate(self, lr: float, own: Any) -> tuple["Algorithm", Any]:
        """The method with another step size, and what its clients keep, carried over to it.

        Here nothing changes: control variates and error feedback are gradients and updates, whatever made them. What a
        server keeps is left alone.
        """
        return replace(self, lr=lr), own  # type: ignore[type-var]  # every algorithm is a dataclass

    def at_steps(self, steps: int) -> "Algorithm":
        """The method with another number K of local steps."""
        return replace(self, local_steps=steps)  # type: ignore[type-var]

    @property
    def gradient_only(self) -> bool:
        """Whether a local step without samples leaves a client where it is: the method adds nothing to the gradient.

        Where it does, on a problem some of whose clients are done before the others (`Problem.uneven`), each client
        makes its own K steps if the method has `own_steps`, and `run` refuses it if not.
        """
        return True

    def reach(self, gradients: Sequence[float]) -> float:
        """How far gradients of these sizes, one a step, move a client, in units of lr."""
        return sum(gradients)

    def evaluated(self, problem: Problem, own: Any) -> Problem:
        """The problem as metrics see it, where clients keep a part of the model in `own`."""
        return problem

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

    def as_sent(self, own: Any, down: Any, up: Any, sent: Any) -> Any:
        """What the clients (S,) keep where a part of the run sends another upload than `up`: `sent`, of its form.

        Here nothing changes. A method whose server and clients add up the same uploads writes it.
        """
        return own

    @abstractmethod
    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Any, Any]:
        """Aggregate `up` (leading with S, in the order of `clients`). Returns the new Server and a reply, or None.

        The reply goes to every client of the round.
        """

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        """What clients do with the server's reply. `own` leads with N; row i reads only row i and the reply."""
        return own


# The server's average over the participants, by the clients' share of the data where it is asked for.


def shares(problem: Problem, weighted: bool, like: torch.Tensor) -> torch.Tensor | None:
    """Return the problem's client weights p_i, (N,), in the type of `like`; None where all count alike.

    Where all weights are equal it is None, too: clients of one size give the same bits, weighted or not.
    """
    p = problem.weights
    return p.to(like) if weighted and not bool((p == p[0]).all()) else None


def average_weights(weights: torch.Tensor, clients: torch.Tensor, weighted: bool = True) -> torch.Tensor:
    """Return the participants' weights in an average, (S,), whose sum is 1: by `weights` (N,), or all alike."""
    p = weights[clients] if weighted else torch.ones_like(weights[clients])
    return p / p.sum()


def average(rows: torch.Tensor, p: torch.Tensor | None, clients: torch.Tensor) -> torch.Tensor:
    """Average the participants' rows (S, ...), by p (N,) renormalised over them; plainly where p is None."""
    if p is None:
        return rows.mean(0)
    return torch.tensordot(average_weights(p, clients), rows, 1)
