"""FedKSeed: Qin et al. 2023, "Federated Full-Parameter Tuning of Billion-Sized Language Models with Communication Cost
under 18 Kilobytes", arXiv:2312.06353. Read from the authors' code.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, shares
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Known, Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.directions import Direction, Each, bearable, slopes, walk


@dataclass(frozen=True)
class Pool:
    """What the model is made of, beside one number for each seed."""

    base: torch.Tensor  # w_0, (d,)
    seeds: torch.Tensor  # the candidates, int64, (K,)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # w, (d,)
    pool: Pool
    moved: torch.Tensor  # how far w went from w_0 along each seed's direction, (K,)
    layout: Known[Layout]
    t: int
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Down:
    pool: Replay[Pool]  # sent once
    moved: torch.Tensor  # (K,)


@dataclass(frozen=True)
class Up:
    moved: torch.Tensor  # how far the client went along each direction, (S, K), or along those of `picks`, (S, steps)
    picks: torch.Tensor  # which of the pool's seeds it drew, int64, (S, steps) where that is smaller, else (S, 0)


@dataclass(frozen=True)
class FedKSeed(Algorithm):
    """Zeroth-order steps along directions of a fixed pool of seeds: a model is one number for each seed.

    A client draws a seed of the pool for each step. It sends K numbers or, if that is less, a seed's index and a number
    for each step. The authors' code adds up slopes and multiplies by the rate afterwards; here steps are added up, so
    that the rate may change.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`, less by the directions' variance.
        local_steps: local steps of a round.
        pool: K.
        smoothing: epsilon.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    pool: int = 1024
    smoothing: float = 1e-3
    weighted: bool = False
    name = "FedKSeed"
    revision = 2  # 1 sent K numbers whatever the number of steps

    def __post_init__(self) -> None:
        checks.count("pool", self.pool)
        checks.number("smoothing", self.smoothing, 0.0, open_low=True)

    def suited(self, problem: Problem) -> dict[str, Any]:
        return {"lr": self.pace * problem.rate * bearable(1, problem.d)}

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        seeds = torch.randint(2**63 - 1, (self.pool,), generator=key.fold("pool").generator())
        moved = x.new_zeros(self.pool, dtype=torch.promote_types(x.dtype, torch.float32))  # as slopes are
        p = shares(problem, self.weighted, moved)
        return State(Server(x, Pool(x, seeds), moved, Known(problem.layout), 0, p), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        pool = Replay(server.pool, server.pool, round=server.t, period=server.t + 1)  # it never changes
        return Down(pool, server.moved)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        pool, xi = down.pool.value, problem.draw(clients, self.local_steps, key.fold("xi"))
        draws = [key.fold("seeds", int(i)).generator() for i in clients]
        picks = torch.stack([torch.randint(self.pool, (self.local_steps,), generator=g) for g in draws])
        y = _model(problem.layout, pool, down.moved).repeat(len(clients), 1)
        steps = []
        for k in range(self.local_steps):
            z = [Each(tuple(_direction(problem.layout, seed, y) for seed in pool.seeds[picks[:, k]].tolist()))]
            g = slopes(problem, y, z, self.smoothing, xi[k], central=True)  # (l_+ - l_-) / (2 epsilon)
            y = y.clone()
            walk(y, z, -self.lr * g)  # w <- w - eta g z
            steps.append(-self.lr * g)
            yield y
        moved, picks = torch.cat(steps, 1), picks.to(y.device)
        if self.local_steps * (picks.itemsize + moved.itemsize) < self.pool * moved.itemsize:
            return Up(moved, picks), None
        return Up(self._entered(moved, picks), picks[:, :0]), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        moved = self._entered(up.moved, up.picks) if up.picks.shape[1] else up.moved
        moved = server.moved + average(moved, server.p, clients)
        x = _model(server.layout.value, server.pool, moved)
        return replace(server, x=x, moved=moved, t=server.t + 1), None

    def _entered(self, steps: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
        """Each step in the entry of its seed, (S, steps) -> (S, K); a stranger's pick may be any number."""
        return steps.new_zeros(len(steps), self.pool).scatter_add(1, picks % self.pool, steps)


def _direction(layout: Layout, seed: int, like: torch.Tensor) -> Direction:
    return Direction(Key(seed), layout, "gaussian", like.dtype, like.device)


def _model(layout: Layout, pool: Pool, moved: torch.Tensor) -> torch.Tensor:
    """w_0 + sum_s moved_s z_s, over the seeds that were drawn yet: the server's line and every client's."""
    some = moved.nonzero()[:, 0]
    y = pool.base[None].clone()
    walk(y, [_direction(layout, seed, y) for seed in pool.seeds[some.cpu()].tolist()], moved[None, some])
    return y[0]


METHODS = [
    Method(
        "FedKSeed",
        "zeroth order",
        lambda o: FedKSeed(o.lr, o.local_steps, 256),
        Card(
            "Slopes along a fixed pool of seeded directions: a model is one number for each seed.",
            "y -= eta g z_s, g = (f_i(y + eps z_s) - f_i(y - eps z_s)) / (2 eps), s drawn from the pool; "
            "a_s += mean of -eta g; x = x_0 + sum_s a_s z_s",
            "The rebuilt model is the clients' mean. Alike clients: it finds the best in x_0 + span(z_s) (laws).",
            "A pool smaller than d does not reach x*; each client rebuilds the model from all seeds drawn so far.",
        ),
        rate=0.1,
    ),
]
