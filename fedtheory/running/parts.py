"""Parts that any method takes: a server optimizer, client momentum, layers that clients keep. No box knows of them.

A part is an `Algorithm` around another one, so parts nest and run as methods do. Parts that change what clients send
stand in `running.uploads`, those that change gradients in `problems.parts`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, Self

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.message import Replay, field_names
from fedtheory.core.problem import Problem
from fedtheory.problems.parts import LocalMomentum


@dataclass(frozen=True)
class Around(Algorithm):
    """A method that is another one, but for what a subclass changes."""

    method: Algorithm
    name = "part"
    lr = math.nan
    weighted = None

    def __post_init__(self) -> None:
        checks.instance("method", self.method, Algorithm, "pass for example FedAvg(0.1, 5)")
        for name in ("name", "lr", "averaged", "everyone", "own_steps"):
            object.__setattr__(self, name, getattr(self.method, name))
        object.__setattr__(self, "revision", type(self).revision + self.method.revision - 1)
        object.__setattr__(self, "weighted", getattr(self.method, "weighted", False))

    @property
    def local_steps(self) -> int:
        return self.method.local_steps  # type: ignore[attr-defined]

    def epsilon(self, rounds: int, delta: float, n: int, sampled: int | None = None, *, local: bool = False) -> float:
        """The method's, of `PrivateUploads`."""
        return self.method.epsilon(rounds, delta, n, sampled, local=local)  # type: ignore[attr-defined]

    def on(self, problem: Problem) -> Self:
        return replace(self, method=self.method.on(problem))

    def rate(self, k: int) -> float:
        return self.method.rate(k)

    def at_rate(self, lr: float, own: Any) -> tuple[Algorithm, Any]:
        method, own = self.method.at_rate(lr, own)
        return replace(self, method=method), own

    def at_steps(self, steps: int) -> Algorithm:
        return replace(self, method=self.method.at_steps(steps))

    @property
    def gradient_only(self) -> bool:
        return self.method.gradient_only

    def reach(self, gradients: Sequence[float]) -> float:
        return self.method.reach(gradients)

    def chunk(self, problem: Problem) -> int | None:
        return self.method.chunk(problem)

    def evaluated(self, problem: Problem, own: Any) -> Problem:
        return self.method.evaluated(problem, own)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return self.method.init(problem, x, key)

    def broadcast(self, server: Any, key: Key) -> Any:
        return self.method.broadcast(server, key)

    def address(self, down: Any, clients: torch.Tensor) -> Any:
        return self.method.address(down, clients)

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        return self.method.client(problem, clients, own, down, key)

    def as_sent(self, own: Any, down: Any, up: Any, sent: Any) -> Any:
        return self.method.as_sent(own, down, up, sent)

    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Any, Any]:
        return self.method.server(server, down, up, clients, key)

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        return self.method.close(own, clients, down, reply)


def _below_one(name: str, value: float) -> None:
    if not 0 <= checks.number(name, value) < 1:
        checks.reject(name, value, "a decay, from 0 to below 1", f"pass {name}=0.9")


# The server's step


class Optimizer(ABC):
    """What a server makes of its method's change Delta_t of the model."""

    @abstractmethod
    def init(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What it keeps, before round 0."""

    @abstractmethod
    def step(self, change: torch.Tensor, kept: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Delta_t (d,) -> the step to take in its place, and after it what is kept."""


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Heavy ball: m = beta m + Delta, x += lr m (FedAvgM, Hsu et al. 2019, arXiv:1909.06335). Neutral: lr 1, beta 0."""

    lr: float = 1.0
    beta: float = 0.9

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.rate("lr", self.lr)
        _below_one("beta", self.beta)

    def init(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (torch.zeros_like(x),)

    def step(self, change: torch.Tensor, kept: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        m = self.beta * kept[0] + change
        return self.lr * m, m


@dataclass(frozen=True)
class _Adaptive(Optimizer):
    """Reddi et al. 2020, arXiv:2003.00295, Algorithm 2: x += lr m / (sqrt(v) + tau), v_{-1} = tau^2, no correction.

    Fields:
        lr: eta.
        beta1, beta2: decay of the mean m and of the squares v.
        tau: adaptivity; with lr = 2 tau (FedAdam: tau, and beta2 = 0) and tau to infinity, at beta1 = 0, the method is
            unchanged.
    """

    lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.rate("lr", self.lr)
        _below_one("beta1", self.beta1)
        _below_one("beta2", self.beta2)
        checks.number("tau", self.tau, 0.0, open_low=True)

    def init(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.zeros_like(x), torch.full_like(x, self.tau**2)

    def step(self, change: torch.Tensor, kept: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        m = self.beta1 * kept[0] + (1 - self.beta1) * change  # 10
        v = self.squares(kept[1], change**2)  # 11-13
        return self.lr * m / (v.sqrt() + self.tau), m, v  # 14

    @abstractmethod
    def squares(self, v: torch.Tensor, square: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True)
class Adagrad(_Adaptive):
    __doc__ = f"FedAdagrad: v += Delta^2, so beta2 is not used. {_Adaptive.__doc__}"

    def squares(self, v: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        return v + square


@dataclass(frozen=True)
class Yogi(_Adaptive):
    __doc__ = f"FedYogi: v -= (1 - beta2) Delta^2 sign(v - Delta^2). {_Adaptive.__doc__}"

    def squares(self, v: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        return v - (1 - self.beta2) * square * (v - square).sign()


@dataclass(frozen=True)
class Adam(_Adaptive):
    __doc__ = f"FedAdam: v = beta2 v + (1 - beta2) Delta^2. {_Adaptive.__doc__}"

    def squares(self, v: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        return self.beta2 * v + (1 - self.beta2) * square


@dataclass(frozen=True)
class Optimized:
    """The server's part: that of the method, and what the optimizer keeps."""

    method: Any
    kept: tuple[torch.Tensor, ...]

    @property
    def x(self) -> torch.Tensor:
        return self.method.x


@dataclass(frozen=True)
class ServerOptimizer(Around):
    """A method whose server gives its change of the model, Delta_t = x^{t+1} - x^t, to an optimizer.

    Nothing else crosses. A method that has clients rebuild the model from small steps (SSF) sends it whole instead: an
    optimizer's step lies in no subspace. A method whose clients start from something else than the server's model is
    refused in its first round, and FLSS in the first of its subspace.

    Fields:
        method: any.
        optimizer: `Momentum`, `Adam`, `Yogi` or `Adagrad`.

    >>> from fedtheory import FedAvg, Quadratic, run
    >>> problem = Quadratic.random(n=10, d=5, key=Key(0))
    >>> history = run(ServerOptimizer(FedAvg(0.1, 5), Momentum(beta=0.5)), problem, rounds=20, every=10)
    >>> [round(error, 3) for error in history["error"]]
    [1.0, 0.036, 0.043]
    """

    optimizer: Optimizer

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", f"{self.method.name} + {type(self.optimizer).__name__}")

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        server, own = self.method.init(problem, x, key)
        server = _at(server, server.x.clone())  # so that a copy of x which the method keeps is not taken for it
        return State(Optimized(server, self.optimizer.init(x)), own)

    def broadcast(self, server: Optimized, key: Key) -> Any:
        down: Any = self.method.broadcast(server.method, key)
        whole, found = {}, False
        for name in [f.name for f in fields(type(down))] if is_dataclass(type(down)) else ():
            part = getattr(down, name)
            if isinstance(part, Replay) and part.value is server.x:
                whole[name] = Replay(part.value, None)
            found = found or part is server.x or name in whole
        if not found:
            expected = "a method that sends the server's model x itself: here clients make it of other parts"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or SSF")
        return replace(down, **whole)

    def server(self, server: Optimized, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Optimized, Any]:
        new, reply = self.method.server(server.method, down, up, clients, key)
        change = new.x - server.x
        step, *kept = self.optimizer.step(change, server.kept)
        return Optimized(_at(new, new.x + (step - change)), tuple(kept)), reply  # x + step; exact where neutral


def _at(server: Any, x: torch.Tensor) -> Any:
    """The server's part with another model, also where it is a part around a method's."""
    if "x" in field_names(type(server)):
        return replace(server, x=x)
    return replace(server, method=_at(server.method, x))


# A client's steps


@dataclass(frozen=True)
class ClientMomentum(Around):
    """A method whose clients step by m = beta m + g instead of the gradient g; m = 0 at the start of a round.

    SGD with momentum as in PyTorch. The method sees m as its gradient, in control variates as well. Neutral: beta 0.

    Fields:
        method: one that steps by gradients; others are refused in their first round.
        beta: decay of m.
    """

    beta: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        _below_one("beta", self.beta)
        object.__setattr__(self, "name", f"{self.method.name} + momentum")

    def reach(self, gradients: Sequence[float]) -> float:
        return self.method.reach(list(accumulate(gradients, lambda m, g: self.beta * m + g)))

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        if not self.beta:
            return (yield from self.method.client(problem, clients, own, down, key))
        moving = LocalMomentum(problem, self.beta, problem.steps_of(clients) if problem.uneven else ())
        steps = self.method.client(moving, clients, own, down, key)
        while True:
            try:
                y = next(steps)
            except StopIteration as stop:
                return stop.value
            _require_gradients(self.method, moving.settle())
            yield y


@dataclass(frozen=True)
class LocalLayers(Around):
    """A method on a problem whose clients keep a part of the model, such as `Supervised(norm="local")` (FedBN).

    A client's part never crosses. Behind each local step it makes a step of size lr by its own gradient, at the same
    samples. The metrics are of the clients' own models; `History.state.own.local` holds the parts, (N, their size).
    Neutral on a problem without such a part.

    Fields:
        method: one that steps by gradients; others are refused in their first round.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", f"{self.method.name} + local layers")

    def evaluated(self, problem: Any, own: Any) -> Problem:
        if _keeps_nothing(problem):
            return super().evaluated(problem, own)
        if len(own.local) < problem.n:
            expected = "() in a group, each of whose processes keeps some clients' layers"
            checks.reject("metrics", problem.metrics, expected, "pass metrics=()")
        return self.method.evaluated(problem, _without(own)).with_local(own.local)  # type: ignore[attr-defined]

    def at_rate(self, lr: float, own: Any) -> tuple[Algorithm, Any]:
        if not hasattr(type(own), "around"):
            return super().at_rate(lr, own)
        method, inner = self.method.at_rate(lr, _without(own))
        return replace(self, method=method), _with(inner, own.local)

    def init(self, problem: Any, x: torch.Tensor, key: Key) -> State:
        server, own = self.method.init(problem, x, key)
        if _keeps_nothing(problem):
            return State(server, own)
        return State(server, _with(own, problem.local_start().expand(problem.kept, -1).clone()))

    def client(
        self, problem: Any, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        if _keeps_nothing(problem):
            return (yield from self.method.client(problem, clients, own, down, key))
        kept, view = own.local, problem.with_local(own.local)
        steps = self.method.client(view, clients, _without(own), down, key)
        while True:
            try:
                y = next(steps)
            except StopIteration as stop:
                up, inner = stop.value
                return up, _with(inner, kept)
            _require_gradients(self.method, view.slope)
            kept = view.keep(kept - self.lr * view.slope)
            yield y

    def as_sent(self, own: Any, down: Any, up: Any, sent: Any) -> Any:
        if not hasattr(type(own), "around"):
            return super().as_sent(own, down, up, sent)
        return _with(self.method.as_sent(_without(own), down, up, sent), own.local)

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        if not hasattr(type(own), "around"):
            return super().close(own, clients, down, reply)
        return _with(self.method.close(_without(own), clients, down, reply), own.local)


def _require_gradients(method: Algorithm, found: torch.Tensor | None) -> None:
    if found is None:
        fix = "choose for example FedAvg, SCAFFOLD or SSF"
        checks.reject("method", method.name, "a method that steps by gradients", fix)


def _keeps_nothing(problem: Problem) -> bool:
    return not getattr(problem, "local", ())


@cache
def _kind(around: type | None) -> type:
    """What a client keeps, where a method's is of the type `around`."""
    names = () if around is None else field_names(around)
    columns = [(name, torch.Tensor) for name in (*names, "local")]
    namespace = {"around": around, "__reduce__": lambda self: (_with, (_without(self), self.local))}
    return make_dataclass("Own", columns, frozen=True, namespace=namespace)


def _with(own: Any, local: torch.Tensor) -> Any:
    names = () if own is None else field_names(type(own))
    return _kind(None if own is None else type(own))(*(getattr(own, name) for name in names), local)


def _without(own: Any) -> Any:
    around = type(own).around
    return around and around(*(getattr(own, name) for name in field_names(around)))
