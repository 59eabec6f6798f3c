"""FedKRSO: Yang, Wu, Guo, Sun, Gong 2026, "Communication and Memory Efficient Federated Fine-Tuning of Large Language
Models", arXiv:2602.03019. Read from the paper's prose and another group's code; here with plain SGD, on any model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, shares
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, Known, Seed, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.subspace import Gaussian, Projection, fifth


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W, (d,)
    layout: Known[Layout]
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    pool: Seed[tuple[Basis, ...]]  # P_1, ..., P_K


@dataclass(frozen=True)
class Up:
    """Row j is B_k where interval j is the first to pick k; the other rows are zero, and do not cross."""

    b: torch.Tensor  # B_k, the sum over its intervals, (S, J, r)
    picked: torch.Tensor  # k of each interval, int32, (S, J)

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        return cost(self.crosses(), lags)

    def crosses(self, whole: Any = None, client: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """What is sent of it: the picks, and B_k of those that are new."""
        return self.picked, self.b[torch.arange(self.picked.shape[1]) == _first(self.picked)]

    def arrived(self, crossed: Any, whole: Any = None, client: int = 0) -> "Up":
        """The upload of what was sent; `self` is one of the same shapes."""
        if not isinstance(crossed, tuple) or len(crossed) != 2:
            checks.reject("upload", crossed, "picks and rows", "send what `crosses` gives")
        picked, rows = crossed
        checks.tensor("picked", picked, tuple(self.picked.shape), torch.int32, finite=False, kinds=None)
        new = torch.arange(picked.shape[1]) == _first(picked)
        checks.tensor("b", rows, (int(new.sum()), self.b.shape[2]), self.b.dtype)
        b = torch.zeros_like(self.b)
        b[new] = rows
        return Up(b, picked)


def _first(picked: torch.Tensor) -> torch.Tensor:
    """For each interval the first one with the same pick, (S, J)."""
    return torch.tensor([[row.index(k) for k in row] for row in picked.tolist()])


@dataclass(frozen=True)
class FedKRSO(Algorithm):
    """Local steps in random subspaces of a pool of K: a client picks one anew for every `interval` steps.

    The model goes down whole. The public code has Adam, which starts anew in each interval.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: local steps of a round.
        projection: distribution of each P_k, E[P P^T] = I; None: `Gaussian` with a fifth of each layer's rows.
        pool: K, subspaces that a round draws.
        interval: local steps in one subspace.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    projection: Projection = by_problem()
    pool: int = 4
    interval: int = 5
    weighted: bool = False
    name = "FedKRSO"
    pace = 0.1

    def __post_init__(self) -> None:
        if self.projection is not None and self.projection.scale != "isotropic":
            checks.reject("projection.scale", self.projection.scale, "'isotropic' (E[P P^T] = I)", "pass Gaussian(r)")
        checks.count("pool", self.pool)
        checks.count("interval", self.interval)

    def suited(self, problem: Problem) -> dict[str, Any]:
        return super().suited(problem) | {"projection": Gaussian(fifth(problem.layout))}

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, Known(problem.layout), shares(problem, self.weighted, x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        layout, x = server.layout.value, server.x
        make = partial(_bases, self.projection, self.pool, layout, x.dtype, x.device)
        dense: Cost = self.projection.dense(layout, x.dtype) * self.pool
        return Down(x, Seed(key.fold("P"), make, dense))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        pool, xi = down.pool.value, problem.draw(clients, self.local_steps, key.fold("xi"))
        draws = [key.fold("picks", int(i)).generator() for i in clients]
        intervals = -(-self.local_steps // self.interval)
        picked = torch.stack([torch.randint(self.pool, (intervals,), generator=g) for g in draws])
        y = down.x.expand(len(clients), -1)
        rows, first = torch.arange(len(clients)), _first(picked)
        b = y.new_zeros(len(clients), intervals, pool[0].low.size)
        for k in range(self.local_steps):
            j = k // self.interval
            g = problem.grads(y, xi[k])
            step = -self.lr * torch.stack([pool[p].project(row) for p, row in zip(picked[:, j].tolist(), g)])
            b[rows, first[:, j]] += step  # B_k <- B_k - eta G P_k
            y = y + torch.stack([pool[p].lift(row) for p, row in zip(picked[:, j].tolist(), step)])
            yield y
        return Up(b, picked.int().to(y.device)), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        x = server.x
        for k, P in enumerate(down.pool.value):
            mine = (up.b * (up.picked == k)[..., None]).sum(1)  # B_k of each client
            x = x + P.lift(average(mine, server.p, clients))  # W <- W + sum_k mean(B_k) P_k^T
        return Server(x, server.layout, server.p), None


def _bases(
    projection: Projection, count: int, layout: Layout, dtype: torch.dtype, device: torch.device, key: Key
) -> tuple[Basis, ...]:
    return tuple(projection.draw(layout, key.fold(k), dtype, device) for k in range(count))


METHODS = [
    Method(
        "FedKRSO",
        "subspace",
        lambda o: FedKRSO(o.lr, o.local_steps, Gaussian(o.ranks)),
        Card(
            "Clients train in random subspaces that they pick from a pool of the round.",
            "B_k -= eta P_k^T g_i(y), y = x + sum_k P_k B_k, k picked anew in each interval; x += sum_k P_k mean(B_k)",
            "The rebuilt model is the mean of the clients'; E[P P^T] = I; P = I is FedAvg (laws).",
            "With Gaussian P a step has 1 + (m + 1)/r times the gradient's second moment (law): lr must be smaller.",
        ),
        command=lambda o: FedKRSO(o.lr, o.local_steps, Gaussian(o.rank)),
        rate=0.3,
    ),
]
