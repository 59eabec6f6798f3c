"""DeComFL: Achieving Dimension-Free Communication in Federated Learning via Zeroth-Order Optimization.

arXiv:2405.15861v4, Algorithms 1-2 (P = 1) and 3-4 (P > 1), with the momentum of (8)-(9).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, Known, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.directions import Direction, bearable, slopes, walk


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

    seeds: torch.Tensor  # s_{r,p}^k, int64, (K, P)
    g: torch.Tensor  # g_{r,p}^k, (K, P)


@dataclass(frozen=True)
class Rebuild:
    """x_r for a client that holds x_{t_i}: the steps of rounds t_i, ..., r-1, or the model where that is smaller.

    Who was never there holds x_0 (Algorithms 2 and 4: 1).

    Fields:
        value: x_r and its momentum.
        price: of a round's step.
        round: r.
    """

    value: Model
    price: Cost
    round: int

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        dense, total = cost(self.value), Cost()
        for lag in lags:
            steps = self.steps(self.round if lag is None else lag)
            total += dense if dense.bytes < steps.bytes else steps
        return total

    def steps(self, lag: int) -> Cost:
        """Price of the last `lag` rounds' steps."""
        return self.price * lag

    def missed(self, lag: int | None) -> int | None:
        """How many of the last steps a client is sent; None: the model."""
        lag = self.round if lag is None else lag
        return None if cost(self.value).bytes < self.steps(lag).bytes else lag

    @property
    def change(self) -> None:
        """A step is made at the end of its round: `DeComFL.recap`."""

    @property
    def copy(self) -> Model:
        """What a client holds afterwards."""
        return self.value

    @classmethod
    def received(cls, copy: Model) -> "Rebuild":
        """The part at a client that holds the model."""
        return cls(copy, Cost(), 0)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # x_r, (d,)
    m: torch.Tensor | None  # (d,)
    layout: Known[Layout]
    r: int


@dataclass(frozen=True)
class Down:
    model: Rebuild  # x_r and its momentum
    seeds: torch.Tensor  # s_{r,p}^k, int64, (K, P)


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

    What the paper leaves open, and what else could be meant, is in `readings.decomfl`.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`, less by the directions' variance.
        local_steps: K.
        perturbations: P.
        smoothing: mu of (3).
        momentum: beta of (8)-(9), 0 for none. It starts a round where the server's is, and is reverted with the model.

    All participants weigh the same, 1/S.
    """

    lr: float = by_problem()
    local_steps: int = 1
    perturbations: int = 10
    smoothing: float = 1e-3
    momentum: float = 0.0
    name = "DeComFL"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("smoothing", self.smoothing, 0.0, open_low=True)
        checks.number("momentum", self.momentum, 0.0, 1.0)
        if self.momentum == 1:
            checks.reject("momentum", self.momentum, "a number from 0 to below 1", "choose for example 0.9")

    def suited(self, problem: Problem) -> dict[str, Any]:
        return {"lr": self.pace * problem.rate * bearable(self.perturbations, problem.d)}

    def chunk(self, problem: Problem) -> int | None:
        """All clients at once where they share the perturbed models."""
        return None if self.local_steps == 1 else problem.chunk

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, torch.zeros_like(x) if self.momentum else None, Known(problem.layout), 0), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        seeds = self.draw(self.perturbations, key.fold("z"))  # 5
        price = cost(Step(seeds, unsent(self.local_steps, self.perturbations, server.x.dtype)))
        return Down(Rebuild(Model(server.x, server.m), price, server.r), seeds)  # 7

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        model = down.model.value.map(lambda part: part.expand(len(clients), -1))
        xi, lr, scalars = problem.draw(clients, self.local_steps, key.fold("xi")), self.eta(down), []
        for k in range(self.local_steps):  # 12 (Algorithm 4: 14)
            yield model.x
            z = self.directions(problem.layout, down.seeds[k], model.x)  # 13 (17)
            scalars.append(self.measure(problem, model.x, z, xi[k]))  # 14 (18)
            if k + 1 < self.local_steps:
                model = model.map(torch.clone)
                self.move(model, z, scalars[-1], lr)  # 15 (21)
        return Up(torch.stack(scalars, 1)), None  # 17-18

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        step = self.step(down, up.g.mean(0))  # 10-11
        model = Model(server.x, server.m).map(torch.clone)
        self.rebuild(server.layout.value, model, step)  # 12
        return replace(server, x=model.x, m=model.m, r=server.r + 1), None

    def rebuild(self, layout: Layout, model: Model, step: Step) -> None:
        """x_r becomes x_{r+1}, in place (Algorithm 1: 12; Algorithm 2: 4-7): the server's line and every client's."""
        model = model.map(lambda part: part[None])
        for seeds, g in zip(step.seeds, step.g):
            self.move(model, self.directions(layout, seeds, model.x), g[None], self.eta(step))

    def move(self, model: Model, z: list[Direction], g: torch.Tensor, lr: float) -> None:
        """15 (21): x <- x - (eta/P) sum_p g_p z_p, in place: x (S, d), g (S, P); with momentum (8)-(9)."""
        if model.m is None:
            walk(model.x, z, -lr * self.share(len(z)) * g)
        else:
            walk(model.m.mul_(self.momentum), z, self.share(len(z)) * self.damping * g)  # (8)
            model.x.sub_(model.m, alpha=lr)  # (9)

    # The named steps: `readings.decomfl` puts another in the place of each.

    def draw(self, P: int, key: Key) -> torch.Tensor:
        """5: the round's seeds, K P integers."""
        return torch.randint(2**63 - 1, (self.local_steps, P), generator=key.generator())

    def directions(self, layout: Layout, seeds: torch.Tensor, like: torch.Tensor) -> list[Direction]:
        """13 (17): z_1, ..., z_P of one local step, N(0, I_d), from its seeds (P,)."""
        return [Direction(Key(seed), layout, "gaussian", like.dtype, like.device) for seed in seeds.tolist()]

    def measure(self, problem: Problem, y: torch.Tensor, z: list[Direction], xi: Any) -> torch.Tensor:
        """14 (18): g_{i,r,p}^k for all p, the forward differences (3): y (S, d) -> (S, P)."""
        return slopes(problem, y, z, self.smoothing, xi, central=False)

    def step(self, down: Down, g: torch.Tensor) -> Step:
        """11: what is stored of a round, and sent to who missed it; g (K, P)."""
        return Step(down.seeds, g)

    def eta(self, message: Down | Step) -> float:
        """The step size of the round of a message."""
        return self.lr

    def share(self, P: int) -> float:
        """21: 1/P."""
        return 1 / P

    @property
    def damping(self) -> float:
        """1 - beta of (8)."""
        return 1 - self.momentum


def unsent(K: int, P: int, dtype: torch.dtype) -> torch.Tensor:
    """The size of a round's scalars, without their values: losses over mu, whatever precision holds the weights."""
    return torch.empty(K, P, dtype=torch.promote_types(dtype, torch.float32), device="meta")


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
