"""DeComFL: rounds of the algorithm with every value at hand, for checks of its boxes line by line."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms.decomfl import DeComFL, Model, Step
from fedtheory.core.loop import play_round
from fedtheory.theory.decomfl.round import DOUBLE, ROOT
from fedtheory.theory.instances import Smooth, drain

N, DIM = 4, 3


def problem() -> Smooth:
    """Draw the session's problem: N curvatures above 0.3, centres and noise, (N, DIM) each."""
    g = ROOT.fold("problem").generator()
    draw = lambda: torch.randn(N, DIM, generator=g, dtype=DOUBLE)
    return Smooth(0.3 + draw().abs(), draw(), noise=0.2 * draw())


@dataclass(frozen=True)
class Record:
    """A round: x_r, who took part, z (K, P, d), all clients' scalars (N, K, P), their points, x_{r+1}."""

    x: torch.Tensor
    clients: list[int]
    step: Step
    z: torch.Tensor
    g: torch.Tensor
    points: torch.Tensor  # (K, N, d)
    after: torch.Tensor

    @property
    def mean(self) -> torch.Tensor:
        """g_r, (K, P)."""
        return self.g[self.clients].mean(0)


def session(algorithm: DeComFL, rounds: int, sampled: int = N) -> list[Record]:
    """A run on `problem` in which the clients that are not sampled measure as well, for comparison."""
    of, records = problem(), []
    state = algorithm.init(of, torch.ones(DIM, dtype=DOUBLE), ROOT)
    for r in range(rounds):
        key = ROOT.fold("session", r)
        clients = sorted(torch.randperm(N, generator=key.fold("C").generator())[:sampled].tolist())
        down = algorithm.broadcast(state.server, key)
        points, (up, _) = drain_all(algorithm.client(of, of.clients, None, down, key))
        seeds: Any = down.seeds
        rows = [algorithm.directions(of.layout, s, state.server.x) for s in seeds]
        z = torch.stack([torch.stack([torch.cat([part for _, part in one]) for one in row]) for row in rows])
        before = state.server.x.clone()
        state = play_round(algorithm, of, state, torch.tensor(clients), key)[0]
        step = algorithm.step(down, up.g[clients].mean(0))
        records.append(Record(before, clients, step, z, up.g, points, state.server.x.clone()))
    return records


def drain_all(local: Iterator[torch.Tensor]) -> tuple[torch.Tensor, Any]:
    """Run a `client` generator to its end. Return its iterates, (K, S, d), and what it returns."""
    iterates, out = drain(local)  # type: ignore[arg-type]
    return torch.stack([y.clone() for y in iterates]), out


def along(g: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """sum_k (1/P) sum_p g_p^k z_p^k: g (..., K, P), z (K, P, d)."""
    return torch.einsum("...kp,kpd->...d", g, z) / z.shape[1]


def end(algorithm: DeComFL, q: Record, i: int) -> torch.Tensor:
    """x_i^{K+1}, which the algorithm does not make, by its own line for K steps."""
    model = Model(q.x.clone(), None)
    algorithm.rebuild(problem().layout, model, replace(q.step, g=q.g[i]))
    return model.x


PLAIN = DeComFL(0.05, 3, 1, 0.1)
MANY = DeComFL(0.05, 2, 3, 0.1)
HEAVY = DeComFL(0.05, 3, 2, 0.1, momentum=0.5)
