"""Parts of the local step that any method takes: weight decay and clipped gradients, as problems around a problem."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.problem import Classifier, Constants, Penalty, Problem, Shift


def _of(name: str) -> Any:
    return property(attrgetter(f"problem.{name}"))


@dataclass(frozen=True, eq=False)
class _Around(Problem):
    """A problem that is another one, but for its local gradients."""

    problem: Problem
    n, layout, dtype, device, weights = map(_of, ("n", "layout", "dtype", "device", "weights"))
    constants, closed_form, chunk, origin = map(_of, ("constants", "closed_form", "chunk", "origin"))

    def __post_init__(self) -> None:
        checks.tidy(self)

    @property
    def uneven(self) -> bool:
        return self.problem.uneven

    @property
    def steps(self) -> int:
        return self.problem.steps

    def steps_of(self, clients: torch.Tensor) -> list[int]:
        return self.problem.steps_of(clients)

    @property
    def rate(self) -> float:
        return self.problem.rate

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.problem.metrics

    @property
    def classifier(self) -> Classifier:
        return self.problem.classifier

    @property
    @abstractmethod
    def neutral(self) -> bool:
        """Whether nothing changes."""

    @abstractmethod
    def changed(self, y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """The local step's gradient at y (S, d), where the problem's is g."""

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Any]:
        return self.problem.draw(clients, steps, key)

    def full(self, clients: torch.Tensor) -> Any:
        return self.problem.full(clients)

    def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        g = self.problem.grads(y, xi)
        return g if self.neutral else self.changed(y, g)

    def losses(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        return self.problem.losses(y, xi)

    def losses_at(self, y: torch.Tensor, shift: Shift, xi: Any) -> torch.Tensor:
        return self.problem.losses_at(y, shift, xi)

    def restrict(self, P: Basis, x: torch.Tensor, xi: Any) -> Callable[[torch.Tensor, int], torch.Tensor]:
        return self.problem.restrict(P, x, xi) if self.neutral else super().restrict(P, x, xi)

    def penalised(self, y: torch.Tensor, xi: Any, penalty: Penalty, *extras: torch.Tensor) -> torch.Tensor:
        g = self.problem.penalised(y, xi, penalty, *extras)
        return g if self.neutral else self.changed(y, g)

    def count_labels(self, xi: Any) -> torch.Tensor:
        return self.problem.count_labels(xi)

    def start(self) -> torch.Tensor:
        return self.problem.start()

    def loss(self, x: torch.Tensor) -> float:
        return self.problem.loss(x)

    def grad(self, x: torch.Tensor) -> torch.Tensor:
        return self.problem.grad(x)

    def accuracy(self, x: torch.Tensor) -> float:
        return self.problem.accuracy(x)

    def fingerprint(self) -> str:
        own = {name: value for name, value in vars(self).items() if name not in ("problem", "_kept")}
        return f"{type(self).__name__}{own} {self.problem.fingerprint()}"


@dataclass(frozen=True, eq=False)
class ClippedGradients(_Around):
    """A problem whose local gradients are clipped, each client's to the norm `norm`. The loss stays; None: no clipping.

    Methods that take differences of losses (zeroth order) are not changed.

    >>> from fedtheory import FedAvg, Quadratic, run
    >>> problem = Quadratic.random(n=10, d=5, key=Key(0))
    >>> run(FedAvg(0.5, 5), ClippedGradients(problem, norm=0.1), rounds=20)["error"][-1] > 0.2
    True
    """

    norm: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm is not None:
            checks.number("norm", self.norm, 0.0, open_low=True)

    @property
    def neutral(self) -> bool:
        return self.norm is None

    def changed(self, y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return g if self.norm is None else g * (self.norm / g.norm(dim=1, keepdim=True)).clamp(max=1)


@dataclass(frozen=True, eq=False)
class WeightDecay(_Around):
    """A problem whose clients have the loss F_i(x) + (decay / 2) ||x||^2; its loss counts the new term.

    Raises ValueError where clients make unequal numbers of local steps: decay would move those that are done.
    """

    decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("decay", self.decay, 0.0)
        if self.decay and self.problem.uneven:
            fix = "construct the problem with epochs=None"
            checks.reject("decay", self.decay, "0 where some clients are done before the others", fix)

    @property
    def neutral(self) -> bool:
        return self.decay == 0

    @property
    def constants(self) -> Constants:  # type: ignore[override]
        known = self.problem.constants
        if self.neutral:
            return known
        L, mu = (None if value is None else value + self.decay for value in (known.L, known.mu))
        return Constants(L=L, mu=mu, sigma2=known.sigma2)

    @property
    def rate(self) -> float:  # type: ignore[override]
        return self.problem.rate if self.neutral or not self.constants.L else 1 / self.constants.L

    @property
    def metrics(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys("loss" if m == "error" and not self.neutral else m for m in self.problem.metrics))

    def changed(self, y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return g + self.decay * y

    def losses(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        losses = self.problem.losses(y, xi)
        return losses if self.neutral else losses + self.decay / 2 * (y * y).sum(1)

    def losses_at(self, y: torch.Tensor, shift: Shift, xi: Any) -> torch.Tensor:
        return self.problem.losses_at(y, shift, xi) if self.neutral else Problem.losses_at(self, y, shift, xi)

    def loss(self, x: torch.Tensor) -> float:
        return self.problem.loss(x) + self.decay / 2 * float((x * x).sum())

    def grad(self, x: torch.Tensor) -> torch.Tensor:
        return self.problem.grad(x) + self.decay * x


@dataclass(frozen=True, eq=False)
class LocalMomentum(_Around):
    """A problem for some clients' steps of one round: a gradient g is beta m + g, where m is the last step's.

    Fields:
        beta: decay of m.
        counts: steps of each client (S,), where they are unequal: one that is done stays.
    """

    beta: float = 0.0
    counts: Sequence[int] = ()

    @property
    def neutral(self) -> bool:
        return False

    def full(self, clients: torch.Tensor) -> Any:
        """All data: their gradient has no momentum."""
        vars(self)["_whole"] = whole = self.problem.full(clients)
        return whole

    def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        g = self.problem.grads(y, xi)
        return g if xi is vars(self).get("_whole") else self.changed(y, g)

    def changed(self, y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        done, m = vars(self).get("_done", 0), vars(self).get("_m")
        m = g if m is None else self.beta * m + g
        if self.counts:
            m = m * torch.tensor([[float(done < count)] for count in self.counts]).to(m)
        vars(self)["_new"] = m
        return m

    def settle(self) -> torch.Tensor | None:
        """End a local step: m is what the step's last gradient made of it; None where there was none."""
        vars(self)["_m"], vars(self)["_done"] = vars(self).get("_new"), vars(self).get("_done", 0) + 1
        return vars(self)["_m"]
