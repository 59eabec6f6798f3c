"""DeComFL's open points: every field puts another step instead of a named one of the box."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms import decomfl
from fedtheory.algorithms.decomfl import DeComFL, Model, Server, unsent
from fedtheory.algorithms.readings import OpenPoint
from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import SEED_BYTES, Cost, Seed, cost
from fedtheory.core.problem import Problem
from fedtheory.maps.directions import Direction, slopes


@dataclass(frozen=True)
class Step(decomfl.Step):
    seeds: Any  # s_{r,p}^k, int64, (K, P), or the seed of which both sides make them
    lr: float | None  # sent only where the rate is not constant


@dataclass(frozen=True)
class Rebuild(decomfl.Rebuild):
    """`decomfl.Rebuild` where steps may change in size, and where clients or the server may hold no model.

    Fields:
        prices: of the steps of rounds 0, ..., r-1, by (first round, price) where it changes.
        known_start: clients hold x_0.
        pull: the server holds a model that it could send.
    """

    prices: tuple[tuple[int, Cost], ...]
    known_start: bool
    pull: bool

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        if not self.pull:
            return sum((self.steps(self.round if lag is None else lag) for lag in lags), Cost())
        there = [lag for lag in lags if lag is not None or self.known_start]
        return super().cost(there, clients) + cost(self.value) * (len(lags) - len(there))

    def missed(self, lag: int | None) -> int | None:
        if not self.pull:
            return self.round if lag is None else lag
        return super().missed(lag) if lag is not None or self.known_start else None

    @classmethod
    def received(cls, copy: Model) -> "Rebuild":
        return cls(copy, Cost(), 0, (), True, True)

    def steps(self, lag: int) -> Cost:
        total, stop = Cost(), self.round
        for start, price in reversed(self.prices):
            start = max(start, self.round - lag)
            if start < stop:
                total, stop = total + price * (stop - start), start
        return total


@dataclass(frozen=True)
class Down(decomfl.Down):
    seeds: Any  # s_{r,p}^k, int64, (K, P), or the seed of which both sides make them
    lr: float | None


@dataclass(frozen=True)
class DeComFLReading(DeComFL):
    """DeComFL as it could also be meant. With all defaults it is DeComFL, bit for bit.

    Fields, with the numbers of the paper's open points:
        scalar: how g is measured (6). "forward": (3), as in the algorithms and the theory. "central": the symmetric
            difference over 2 mu, the public code's default. "projection": Algorithm 5, <grad f_i(x^k), z> (its x^K is
            read as x^k; 2).
        direction: "gaussian": N(0, I_d). "sphere": uniform with radius sqrt(d) (before Theorem 2; 30).
        average: True divides the step by P (Algorithms 3-4); False sums over p, as (7) prints (1).
        dampened: the factor 1 - beta of (8); False leaves it out, as the public code's optimizer does (9).
        schedule: changes of the step size and of P: (round, lr, P), from that round on (12, 13). The rate then crosses.
        seeds: "each" sends K P integers a round, as printed; "derived" sends one, from which both sides draw them (4).
        known_start: clients hold x_0, as Algorithms 2 and 4 begin. False: a client's first model is sent to it (28).
        secret: of the clients alone, mixed into every seed (A.3, "private seed shifting"): with it the server cannot
            make z, hence neither model nor model pull (28).

    `synchronise` is the other way back to x_r, (10), in place of line 17 (11).
    """

    scalar: str = "forward"
    direction: str = "gaussian"
    average: bool = True
    dampened: bool = True
    schedule: tuple[tuple[int, float, int], ...] = ()
    seeds: str = "each"
    known_start: bool = True
    secret: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("scalar", self.scalar, ("forward", "central", "projection"))
        checks.choice("direction", self.direction, ("gaussian", "sphere"))
        checks.choice("seeds", self.seeds, ("each", "derived"))
        last = 0
        for i, (start, lr, P) in enumerate(self.schedule):
            last = checks.whole(f"schedule[{i}] round", start, last + 1, fix="name later rounds later, from 1 on")
            checks.rate(f"schedule[{i}] lr", lr)
            checks.count(f"schedule[{i}] P", P)
        if self.secret is not None:
            checks.whole("secret", self.secret, 0)
            if not self.known_start:
                checks.reject("known_start", False, "True where `secret` hides the model", "set known_start=True")

    def chunk(self, problem: Problem) -> int | None:
        return problem.chunk if self.scalar == "projection" else super().chunk(problem)

    def at_rate(self, lr: float, own: None) -> tuple["DeComFLReading", None]:
        """The rates of all phases by the same factor."""
        later = tuple((start, rate * (lr / self.lr), P) for start, rate, P in self.schedule)
        return replace(self, lr=lr, schedule=later), own

    def phases(self) -> list[tuple[int, float, int]]:
        """(first round, eta, P) of every phase."""
        return [(0, self.lr, self.perturbations), *self.schedule]

    def at(self, r: int) -> tuple[float, int]:
        """eta and P of round r."""
        return next((lr, P) for start, lr, P in reversed(self.phases()) if start <= r)

    def broadcast(self, server: Server, key: Key) -> Down:
        lr, P = self.at(server.r)
        prices = tuple((start, self._price(P, server.x.dtype)) for start, _, P in self.phases())
        value, pull = Model(server.x, server.m), self.secret is None
        model = Rebuild(value, prices[0][1], server.r, prices, self.known_start, pull)
        return Down(model, self.sent(P, key.fold("z")), lr if self.schedule else None)

    def sent(self, P: int, key: Key) -> torch.Tensor | Seed[torch.Tensor]:
        """5: the round's seeds, as they cross."""
        count = self.local_steps * P
        one = Seed(key, lambda key: self.draw(P, key), Cost(count, SEED_BYTES * count))
        return one if self.seeds == "derived" else one.value

    def _price(self, P: int, dtype: torch.dtype) -> Cost:
        rate = self.lr if self.schedule else None
        g = unsent(self.local_steps, P, dtype)
        if self.scalar == "projection":  # a product of weights, in their precision
            g = g.to(dtype)
        return cost(Step(self.sent(P, Key(0)), g, rate))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Any, key: Key):
        return (yield from super().client(problem, clients, own, replace(down, seeds=value(down.seeds)), key))

    def rebuild(self, layout: Layout, model: Model, step: Any) -> None:
        super().rebuild(layout, model, replace(step, seeds=value(step.seeds)))

    def directions(self, layout: Layout, seeds: torch.Tensor, like: torch.Tensor) -> list[Direction]:
        mixed = () if self.secret is None else ("secret", self.secret)
        keys = [Key(seed).fold(*mixed) for seed in seeds.tolist()]
        return [Direction(key, layout, self.direction, like.dtype, like.device) for key in keys]

    @torch.no_grad()
    def measure(self, problem: Problem, y: torch.Tensor, z: list[Direction], xi: Any) -> torch.Tensor:
        if self.scalar == "forward":
            return super().measure(problem, y, z, xi)
        if self.scalar == "central":
            return slopes(problem, y, z, self.smoothing, xi, central=True)
        grads = problem.grads(y, xi)
        return torch.stack([sum((grads[:, where] @ part for where, part in one), y.new_zeros(())) for one in z], 1)

    def step(self, down: Any, g: torch.Tensor) -> Step:
        return Step(down.seeds, g, down.lr)

    def eta(self, message: Any) -> float:
        return self.lr if message.lr is None else message.lr

    def share(self, P: int) -> float:
        return super().share(P) if self.average else 1.0

    @property
    def damping(self) -> float:
        return super().damping if self.dampened else 1.0

    def synchronise(self, layout: Layout, y: torch.Tensor, g: torch.Tensor, step: decomfl.Step) -> None:
        """(10): x_{i,r}^{K+1}, where the client's own scalars g (K, P) led, becomes x_{r+1}, in place, no snapshot.

        A step whose g is zero leads back to x_r. Each use leaves a rounding error behind, which a snapshot does not.

        Raises ValueError where there is momentum: (10) is "specific to SGD" (A.2).
        """
        if self.momentum:
            checks.reject("momentum", self.momentum, "0, as (10) is specific to SGD", "revert from a snapshot instead")
        self.rebuild(layout, Model(y, None), replace(step, g=step.g - g))


def value(seeds: torch.Tensor | Seed[torch.Tensor]) -> torch.Tensor:
    """The seeds, (K, P), of what crossed."""
    return seeds.value if isinstance(seeds, Seed) else seeds


OPEN = (
    OpenPoint(
        "1",
        "Is the step divided by P (Algorithms 3 and 4), or not (7)?",
        ("average",),
        ("decomfl.eq7", "test_decomfl.py::test_algorithms_3_and_4"),
    ),
    OpenPoint(
        "2, 6",
        "How is the scalar measured: forward or central differences, or Algorithm 5's projection?",
        ("scalar",),
        ("decomfl/fig4", "decomfl.eq3", "decomfl.alg5", "notebook 07"),
    ),
    OpenPoint(
        "4",
        "Does a round send K P seeds, or one from which they are derived?",
        ("seeds",),
        ("decomfl.iid_z", "test_decomfl.py::test_each_and_derived_seeds_are_the_same_run"),
    ),
    OpenPoint(
        "9",
        "Which momentum, and with the factor 1 - beta?",
        ("momentum", "dampened"),
        ("decomfl.eq8", "decomfl.eq9", "decomfl/batch", "test_decomfl.py::test_algorithms_3_and_4"),
    ),
    OpenPoint(
        "11",
        "How is the model reverted: from a snapshot (default), or by (10), as this method does?",
        ("synchronise",),
        (
            "decomfl.eq10",
            "decomfl.eq10.use",
            "test_decomfl.py::test_without_a_snapshot_rounding_errors_pile_up",
        ),
    ),
    OpenPoint(
        "12, 13",
        "Does the history hold the step size and P where they change, and when do they?",
        ("schedule",),
        ("decomfl/fig3a", "test_decomfl.py::test_a_rebuild_with_another_rate_or_average_is_seen"),
    ),
    OpenPoint(
        "15",
        "Which mu, and which batches?",
        ("smoothing",),
        ("decomfl.A5.smoothing", "decomfl.A5.taylor", "decomfl/batch"),
    ),
    OpenPoint(
        "28",
        "Does the server hold a model, and do clients start with it?",
        ("known_start", "secret"),
        ("decomfl.A3.pull", "decomfl.A3.seedshift", "test_decomfl.py::test_model_pull"),
    ),
    OpenPoint(
        "30",
        "Are directions Gaussian, or uniform on a sphere?",
        ("direction",),
        ("decomfl.thm2.perturbation", "test_decomfl.py::test_the_mean_of_g_z_is_the_gradient"),
    ),
)
