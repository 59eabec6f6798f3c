"""Who takes part: samplers that `run` takes in the place of uniform draws."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem


class Sampler(ABC):
    """The participants of each round t = 0, 1, ...: a function of the round and its key alone."""

    @abstractmethod
    def pick(self, problem: Problem, t: int, key: Key) -> torch.Tensor:
        """Return ids of round t's clients, (S,) int64, each once."""

    def require(self, problem: Problem) -> None:  # noqa: B027
        """Raise ValueError, before a run, if it cannot pick from the problem's clients."""


@dataclass(frozen=True)
class Weighted(Sampler):
    """Draw clients without replacement, one after the other, with probabilities in proportion to their weights.

    A plain average over them gives large clients less than their p_i and more than 1/N.

    Fields:
        sampled: S, clients per round.
        weights: one per client, not negative; None: the problem's client weights p_i.
    """

    sampled: int
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.whole("sampled", self.sampled, 1)
        for i, weight in enumerate(self.weights or ()):
            checks.number(f"weights[{i}]", weight, 0.0)

    def require(self, problem: Problem) -> None:
        p = self._weights(problem)
        if len(p) != problem.n:
            checks.reject("len(sampler.weights)", len(p), f"one for each of {problem.n} clients", "pass one a client")
        some = int((p > 0).sum())
        if some == 0:
            checks.reject("sampler.weights", self.weights, "a positive weight", "give a client one")
        checks.whole("sampler.sampled", self.sampled, 1, some, f"sample at most the {some} clients of positive weight")

    def _weights(self, problem: Problem) -> torch.Tensor:
        return problem.weights if self.weights is None else torch.tensor(self.weights, dtype=torch.float64)

    def pick(self, problem: Problem, t: int, key: Key) -> torch.Tensor:
        return torch.multinomial(self._weights(problem).cpu(), self.sampled, generator=key.generator())


@dataclass(frozen=True)
class Cyclic(Sampler):
    """Take the next `sampled` clients by id, and go on with client 0 behind the last."""

    sampled: int

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.whole("sampled", self.sampled, 1)

    def require(self, problem: Problem) -> None:
        checks.whole("sampler.sampled", self.sampled, 1, problem.n, f"take at most the {problem.n} clients there are")

    def pick(self, problem: Problem, t: int, key: Key) -> torch.Tensor:
        return torch.arange(t * self.sampled, (t + 1) * self.sampled) % problem.n


@dataclass(frozen=True)
class Available(Sampler):
    """Draw uniformly among the clients that a trace has online; behind its last round the trace begins again.

    Fields:
        trace: for each round the ids of the clients that are there, at least one.
        sampled: draw so many of them, or all where they are fewer; None: all take part.

    >>> from fedtheory import FedAvg, Quadratic, run
    >>> days, nights = (0, 1, 2), (3, 4)
    >>> problem = Quadratic.random(n=5, d=5, key=Key(0))
    >>> history = run(FedAvg(0.5, 5), problem, rounds=4, sampler=Available((days, nights), sampled=2))
    >>> history["up_bytes"]
    [0, 80, 160, 240, 320]
    """

    trace: tuple[tuple[int, ...], ...]
    sampled: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.trace, Sequence):
            object.__setattr__(
                self, "trace", tuple(tuple(some) if isinstance(some, list) else some for some in self.trace)
            )
        checks.tidy(self)
        if self.sampled is not None:
            checks.whole("sampled", self.sampled, 1)
        if not self.trace or not all(self.trace):
            at = f"trace[{self.trace.index(())}]" if self.trace else "trace"
            checks.reject(at, (), "at least one client", "leave out rounds in which nobody is there")

    def require(self, problem: Problem) -> None:
        for t, some in enumerate(self.trace):
            checks.clients(f"sampler.trace[{t}]", torch.tensor(some), problem.n)

    def pick(self, problem: Problem, t: int, key: Key) -> torch.Tensor:
        there = torch.tensor(self.trace[t % len(self.trace)])
        if self.sampled is None or self.sampled >= len(there):
            return there
        return there[torch.randperm(len(there), generator=key.generator())[: self.sampled]]
