"""Parts that any method takes: a server optimizer, and uploads that are clipped and noisy. No box knows of them.

A part is an `Algorithm` around another one, so parts nest and run as methods do. Parts that change gradients stand in
`problems.parts`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Self

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.message import Replay
from fedtheory.core.problem import Problem


@dataclass(frozen=True)
class _Around(Algorithm):
    """A method that is another one, but for what a subclass changes."""

    method: Algorithm
    name = "part"
    lr = math.nan
    weighted = None

    def __post_init__(self) -> None:
        checks.instance("method", self.method, Algorithm, "pass for example FedAvg(0.1, 5)")
        for name in ("name", "lr", "revision", "averaged", "own_steps"):
            object.__setattr__(self, name, getattr(self.method, name))
        object.__setattr__(self, "weighted", getattr(self.method, "weighted", False))

    @property
    def local_steps(self) -> int:
        return self.method.local_steps  # type: ignore[attr-defined]

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

    def chunk(self, problem: Problem) -> int | None:
        return self.method.chunk(problem)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return self.method.init(problem, x, key)

    def broadcast(self, server: Any, key: Key) -> Any:
        return self.method.broadcast(server, key)

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        return self.method.client(problem, clients, own, down, key)

    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Any, Any]:
        return self.method.server(server, down, up, clients, key)

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        return self.method.close(own, clients, down, reply)


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
        tau: adaptivity; with lr = 2 tau (FedAdam: tau) and tau to infinity, at beta1 = 0, the method is itself.
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


def _below_one(name: str, value: float) -> None:
    if not 0 <= checks.number(name, value) < 1:
        checks.reject(name, value, "a decay, from 0 to below 1", f"pass {name}=0.9")


@dataclass(frozen=True)
class Optimized:
    """The server's part: that of the method, and what the optimizer keeps."""

    method: Any
    kept: tuple[torch.Tensor, ...]

    @property
    def x(self) -> torch.Tensor:
        return self.method.x


@dataclass(frozen=True)
class ServerOptimizer(_Around):
    """A method whose server gives its change of the model, Delta_t = x^{t+1} - x^t, to an optimizer.

    Nothing else crosses. A method that has clients rebuild the model from small steps (SSF) sends it whole instead: an
    optimizer's step lies in no subspace. A method whose clients start from something else than the server's model is
    refused in its first round.

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
        return Optimized(replace(new, x=new.x + (step - change)), tuple(kept)), reply  # x + step; exact where neutral


# What a client sends


@dataclass(frozen=True)
class PrivateUploads(_Around):
    """A method whose clients clip what they send, and add Gaussian noise to it.

    All tensors of an upload are clipped together, to the norm `norm`; each entry then gets noise of deviation
    `noise * norm`. Over S participants a plain average has noise of `noise * norm / sqrt(S)`: a central Gaussian
    mechanism of multiplier z has `noise = z / sqrt(S)`. Neutral: norm None, noise 0. No privacy is accounted for.

    Fields:
        method: one that uploads a change `dy` of the model in plain floating-point tensors; others are refused.
        norm: of an upload, at most; None: any.
        noise: deviation of each entry, in units of `norm`.
    """

    norm: float | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("noise", self.noise, 0.0)
        if self.norm is not None:
            checks.number("norm", self.norm, 0.0, open_low=True)
        elif self.noise:
            checks.reject("norm", None, "a number: noise is in units of it", "pass norm=1.0, or noise=0")
        object.__setattr__(self, "name", f"{self.method.name} + noise")

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        up, own = yield from self.method.client(problem, clients, own, down, key)
        parts = {f.name: getattr(up, f.name) for f in fields(up)}
        plain = all(isinstance(part, torch.Tensor) and part.is_floating_point() for part in parts.values())
        if "dy" not in parts or not plain or hasattr(type(up), "cost"):
            expected = "a method that uploads a change dy, in floating-point tensors that are sent as they are"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or FedProx")
        if self.norm is None:
            return up, own
        norms = torch.cat([part.flatten(1) for part in parts.values()], dim=1).norm(dim=1)
        factor = (self.norm / norms).clamp(max=1)
        for name, part in parts.items():
            parts[name] = part * factor.view(-1, *[1] * (part.dim() - 1))
            if self.noise:
                parts[name] = parts[name] + self.noise * self.norm * _normal(part, clients, key.fold("noise", name))
        return replace(up, **parts), own


@dataclass(frozen=True)
class NormalizedUploads(_Around):
    """A method whose clients scale their change of the model by tau / tau_i: tau_i is how many local steps they made.

    This is FedNova's weighting (Wang et al. 2020, arXiv:2007.07481). Without it tau_i counts as a weight beside the
    method's, which are p_i with `weighted=True`, else 1/N. The mean tau = sum_i p_i tau_i is a constant of the data,
    which clients know. Neutral where all make equally many.

    Fields:
        method: one that uploads `dy`; others are refused.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", f"{self.method.name} + normalized")

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        up, own = yield from self.method.client(problem, clients, own, down, key)
        if "dy" not in [f.name for f in fields(up)] or hasattr(type(up), "cost"):
            expected = "a method that uploads a change dy of the model as it is"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or FedProx")
        if not problem.uneven:
            return up, own
        mean = float(torch.tensor(problem.steps_of(problem.clients)).double() @ problem.weights)
        factor = mean / torch.tensor(problem.steps_of(clients)).to(up.dy)
        return replace(up, dy=up.dy * factor.view(-1, *[1] * (up.dy.dim() - 1))), own


def _normal(like: torch.Tensor, clients: torch.Tensor, key: Key) -> torch.Tensor:
    """Standard normal numbers; a client's depend on the key and its id alone."""
    rows = [torch.randn(like.shape[1:], generator=key.fold(int(i)).generator(), dtype=like.dtype) for i in clients]
    return torch.stack(rows).to(like.device)
