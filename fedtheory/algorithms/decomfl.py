"""DeComFL: Achieving Dimension-Free Communication in Federated Learning via Zeroth-Order Optimization.

arXiv:2405.15861v4, Algorithms 1-2 (P = 1), 3-4 (P > 1) and 5 (gradient projection).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import SEED_BYTES, Cost, Known, Replay, Seed, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.directions import Direction, slopes, walk


@dataclass(frozen=True)
class Model:
    """What `rebuild` moves, in place: leading axes are free."""

    x: torch.Tensor  # (..., d)
    m: torch.Tensor | None  # momentum, (..., d); None where there is none

    def map(self, apply: Callable[[torch.Tensor], torch.Tensor]) -> "Model":
        return Model(apply(self.x), None if self.m is None else apply(self.m))


@dataclass(frozen=True)
class Step:
    """A round in scalars: what turns x_r into x_{r+1}, at the server and at any client that holds x_r."""

    seeds: torch.Tensor | Seed[torch.Tensor]  # s_{r,p}^k, int64, (K, P)
    g: torch.Tensor  # g_{r,p}^k, (K, P)
    lr: float | None  # sent only where the rate is not constant


@dataclass(frozen=True)
class Rebuild(Replay[Model]):
    """x_r for a client that holds x_{t_i}: the steps of rounds t_i, ..., r-1, or the model where that is smaller.

    Fields:
        prices: of the steps of rounds 0, ..., r-1, by (first round, price) where it changes.
        round: r.
        known_start: clients hold x_0.
        pull: the server holds a model that it could send.
    """

    prices: tuple[tuple[int, Cost], ...] = field(kw_only=True)
    round: int = field(kw_only=True)
    known_start: bool = field(kw_only=True)
    pull: bool = field(kw_only=True)

    def cost(self, lags: Sequence[int | None]) -> Cost:
        dense, total = cost(self.value), Cost()
        for lag in lags:
            if lag is None and not self.known_start:
                total += dense
            else:
                steps = self.steps(self.round if lag is None else lag)
                total += dense if self.pull and dense.bytes < steps.bytes else steps
        return total

    def steps(self, lag: int) -> Cost:
        """Price of the last `lag` rounds' steps."""
        total, stop = Cost(), self.round
        for start, price in reversed(self.prices):
            start = max(start, self.round - lag)
            if start < stop:
                total, stop = total + price * (stop - start), start
        return total


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # x_r, (d,)
    m: torch.Tensor | None  # (d,)
    layout: Known[Layout]
    r: int


@dataclass(frozen=True)
class Down:
    model: Rebuild  # x_r and its momentum
    seeds: torch.Tensor | Seed[torch.Tensor]  # s_{r,p}^k, int64, (K, P)
    lr: float | None


@dataclass(frozen=True)
class Up:
    g: torch.Tensor  # g_{i,r,p}^k, (S, K, P)


@dataclass(frozen=True)
class DeComFL(Algorithm):
    """Zeroth-order steps along directions that are regenerated from shared seeds: only seeds and scalars cross.

    Line 12 of Algorithms 1 and 3 is optional: the server needs no model, only the history of seeds and scalars, and no
    server line but the model pull reads x. `State.server.x` is the model that every client rebuilds; it is kept once,
    for the metrics and so that a simulation need not hold N equal models.

    `client` yields x^1, ..., x^K, the points where scalars are measured. It makes no x^{K+1}: line 17 reverts it.
    With K = 1 all clients stand at the same point, and one perturbed model serves all of them.

    In floating point a run that diverges does not overflow: at ||x|| of about mu / eps, x + mu z rounds to x, all
    differences vanish, and the run comes to rest there, finite. Judge it by its loss.

    Fields:
        lr: eta.
        local_steps: K.
        perturbations: P.
        smoothing: mu.
        scalar: how g is measured. "forward": (3), as in the algorithms and the theory. "central": the symmetric
            difference over 2 mu, the public code's default. "projection": Algorithm 5, <grad f_i(x^k), z> (its x^K is
            read as x^k).
        direction: "gaussian": N(0, I_d). "sphere": uniform with radius sqrt(d) (before Theorem 2).
        average: True divides the step by P (Algorithms 3-4); False sums over p, as (7) prints.
        momentum: beta of (8)-(9), 0 for none. It starts a round where the server's is, and is reverted with the model.
        dampened: the factor 1 - beta of (8); False leaves it out, as the public code's optimizer does.
        schedule: changes of the step size and of P: (round, lr, P), from that round on. The rate then crosses.
        seeds: "each" sends K P integers a round, as printed; "derived" sends one, from which both sides draw them.
        known_start: clients hold x_0, as Algorithms 2 and 4 begin. False: a client's first model is sent to it.
        secret: of the clients alone, mixed into every seed (A.3, "private seed shifting"): with it the server cannot
            make z, hence neither model nor model pull.

    All participants weigh the same, 1/S.
    """

    lr: float
    local_steps: int = 1
    perturbations: int = 10
    smoothing: float = 1e-3
    scalar: str = "forward"
    direction: str = "gaussian"
    average: bool = True
    momentum: float = 0.0
    dampened: bool = True
    schedule: tuple[tuple[int, float, int], ...] = ()
    seeds: str = "each"
    known_start: bool = True
    secret: int | None = None
    name = "DeComFL"

    def __post_init__(self) -> None:
        checks.rate("lr", self.lr)
        checks.count("local_steps", self.local_steps)
        checks.count("perturbations", self.perturbations)
        checks.number("smoothing", self.smoothing, 0.0, open_low=True)
        checks.choice("scalar", self.scalar, ("forward", "central", "projection"))
        checks.choice("direction", self.direction, ("gaussian", "sphere"))
        checks.number("momentum", self.momentum, 0.0, 1.0)
        if self.momentum == 1:
            checks.reject("momentum", self.momentum, "a number from 0 to below 1", "choose for example 0.9")
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

    def phases(self) -> list[tuple[int, float, int]]:
        """(first round, eta, P) of every phase."""
        return [(0, self.lr, self.perturbations), *self.schedule]

    def at(self, r: int) -> tuple[float, int]:
        """eta and P of round r."""
        return next((lr, P) for start, lr, P in reversed(self.phases()) if start <= r)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, torch.zeros_like(x) if self.momentum else None, Known(problem.layout), 0), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        lr, P = self.at(server.r)
        prices = tuple((start, self._price(P, server.x.dtype)) for start, _, P in self.phases())
        model = Rebuild(
            Model(server.x, server.m),
            None,
            prices=prices,
            round=server.r,
            known_start=self.known_start,
            pull=self.secret is None,
        )
        return Down(model, self._seeds(P, key), lr if self.schedule else None)  # 5

    def _seeds(self, P: int, key: Key) -> torch.Tensor | Seed[torch.Tensor]:
        count = self.local_steps * P
        draw = lambda key: torch.randint(2**63 - 1, (self.local_steps, P), generator=key.generator())
        one = Seed(key.fold("z"), draw, Cost(count, SEED_BYTES * count))
        return one if self.seeds == "derived" else one.value

    def _price(self, P: int, dtype: torch.dtype) -> Cost:
        precision = torch.promote_types(dtype, torch.float32)  # scalars are losses over mu, whatever holds the weights
        g = torch.empty(self.local_steps, P, dtype=precision, device="meta")
        return cost(Step(self._seeds(P, Key(0)), g, self.lr if self.schedule else None))

    def directions(self, layout: Layout, seeds: torch.Tensor, like: torch.Tensor) -> list[Direction]:
        """z_1, ..., z_P of one local step from its seeds (P,), which only clients can read where there is a secret."""
        mixed = () if self.secret is None else ("secret", self.secret)
        keys = [Key(seed).fold(*mixed) for seed in seeds.tolist()]
        return [Direction(key, layout, self.direction, like.dtype, like.device) for key in keys]

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        start, seeds, lr = down.model.value, _value(down.seeds), self.lr if down.lr is None else down.lr
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        model = start.map(lambda part: part.expand(len(clients), -1))
        scalars = []
        for k in range(self.local_steps):  # 12 (Algorithm 4: 14)
            yield model.x
            z = self.directions(problem.layout, seeds[k], start.x)  # 13 (17)
            scalars.append(self.measure(problem, model.x, z, xi[k]))  # 14 (18)
            if k + 1 < self.local_steps:
                model = model.map(torch.clone)
                self._move(model, z, scalars[-1], lr)  # 15 (21)
        return Up(torch.stack(scalars, 1)), None  # 17-18

    def chunk(self, problem: Problem) -> int | None:
        """All clients at once where they share the perturbed models."""
        return None if self.local_steps == 1 and self.scalar != "projection" else problem.chunk

    @torch.no_grad()
    def measure(self, problem: Problem, y: torch.Tensor, z: list[Direction], xi) -> torch.Tensor:
        """g_{i,r,p}^k for all p: y (S, d) -> (S, P)."""
        if self.scalar == "projection":  # Algorithm 5
            grads = problem.grads(y, xi)
            return torch.stack([sum((grads[:, where] @ part for where, part in one), y.new_zeros(())) for one in z], 1)
        return slopes(problem, y, z, self.smoothing, xi, central=self.scalar == "central")  # (3)

    def _move(self, model: Model, z: list[Direction], g: torch.Tensor, lr: float) -> None:
        """x <- x - (eta/P) sum_p g_p z_p, in place: x (S, d), g (S, P); with momentum (8)-(9)."""
        share = 1 / len(z) if self.average else 1.0
        target, factor = model.x, -lr * share
        if model.m is not None:
            target, factor = model.m.mul_(self.momentum), share * (1 - self.momentum if self.dampened else 1.0)  # (8)
        walk(target, z, factor * g)
        if model.m is not None:
            model.x.sub_(model.m, alpha=lr)  # (9)

    def rebuild(self, layout: Layout, model: Model, step: Step) -> None:
        """x_r becomes x_{r+1}, in place (Algorithm 1: 12; Algorithm 2: 4-7): the server's line and every client's."""
        model = model.map(lambda part: part[None])
        for seeds, g in zip(_value(step.seeds), step.g):
            self._move(model, self.directions(layout, seeds, model.x), g[None], self.lr if step.lr is None else step.lr)

    def synchronise(self, layout: Layout, y: torch.Tensor, g: torch.Tensor, step: Step) -> None:
        """(10): x_{i,r}^{K+1}, where the client's own scalars g (K, P) led, becomes x_{r+1}, in place, no snapshot.

        A step whose g is zero leads back to x_r. Each use leaves a rounding error behind, which a snapshot does not.

        Raises ValueError where there is momentum: (10) is "specific to SGD" (A.2).
        """
        if self.momentum:
            checks.reject("momentum", self.momentum, "0, as (10) is specific to SGD", "revert from a snapshot instead")
        self.rebuild(layout, Model(y, None), replace(step, g=step.g - g))

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        step = Step(down.seeds, up.g.mean(0), down.lr)  # 10-11
        model = Model(server.x, server.m).map(torch.clone)
        self.rebuild(server.layout.value, model, step)  # 12
        return Server(model.x, model.m, server.layout, server.r + 1), None


def _value(seeds: torch.Tensor | Seed[torch.Tensor]) -> torch.Tensor:
    return seeds.value if isinstance(seeds, Seed) else seeds


METHODS = [
    Method(
        "DeComFL",
        "zeroth order",
        lambda o: DeComFL(o.lr, o.local_steps, o.perturbations),
        Card(
            "Slopes along directions that both sides make from seeds: only seeds and scalars cross.",
            "x -= eta / P sum_p mean_i(g_ip) z_p, g_ip = (f_i(x + mu z_p) - f_i(x)) / mu",
            "Its Theorem 1, and Theorem 2 for a low effective rank with K = 1:",
            "d enters the number of rounds where the effective rank is not low; a diverging run comes to rest, finite.",
            ("decomfl.theorem1 / theorem3", "decomfl.theorem2 / theorem4"),
        ),
        rate=0.1,
    ),
]
