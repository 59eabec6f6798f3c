"""Ferret: Shu et al. 2024, "Ferret: Federated Full-Parameter Tuning at Scale for Large Language Models",
arXiv:2409.06277v3. Its steps are read from a summary of the text, and from the authors' code.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, shares
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Down, Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import count_kept, groups
from fedtheory.maps.directions import BLOCK, bearable


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # w, (d,)
    layout: Known[Layout]
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Up:
    gamma: torch.Tensor  # coordinates of each block's change, (S, K_1 + ... + K_L)
    seed: torch.Tensor  # s^(i), int64, (S, 1)


@dataclass(frozen=True)
class Ferret(Algorithm):
    """Local SGD; of a client's change its coordinates on seeded random directions cross, block by block.

    A block is a layer; the authors' code joins neighbouring layers up to 0.9 times the median size. In the paper every
    client is sent the seeds and coordinates of all participants and rebuilds the model; here the server does, and sends
    it. The authors' code draws one pool of directions for all rounds and clients, and a block uses a part of it, in
    proportion to the norm of its change. It clips each direction's step.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`, less by the directions' variance.
        local_steps: T.
        ratio: K_l/d_l, directions per entry of a block; it may exceed 1.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    weighted: bool = False
    name = "Ferret"
    pace = 0.3

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, open_low=True)

    def suited(self, problem: Problem) -> dict[str, Any]:
        least = min(bearable(count_kept(self.ratio, d), d) for d in groups(problem.layout, "layer"))
        return {"lr": self.pace * problem.rate * least}

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, Known(problem.layout), shares(problem, self.weighted, x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)  # w <- w - eta grad l(w; x)
            yield y
        seeds = [key.fold("V", int(i)).hash() for i in clients]
        gamma = torch.stack([self._project(problem.layout, s, delta) for s, delta in zip(seeds, down.x - y)])
        return Up(gamma, torch.tensor(seeds, device=y.device)[:, None]), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        layout, seeds = server.layout.value, up.seed[:, 0].tolist()
        changes = torch.stack([self._rebuild(layout, s, gamma) for s, gamma in zip(seeds, up.gamma)])
        x = server.x - average(changes, server.p, clients)  # w <- w - mean of the rebuilt changes
        return Server(x, server.layout, server.p), None

    def _project(self, layout: Layout, seed: int, delta: torch.Tensor) -> torch.Tensor:
        """gamma = (rho K)^-1 V^T Delta of each block, (d,) -> (K_1 + ... + K_L,)."""
        pieces = self._directions(layout, seed, delta)
        return torch.cat([V @ delta[at, None] / (rho(V.shape[1]) * K) for at, K, V in pieces])[:, 0]

    def _rebuild(self, layout: Layout, seed: int, gamma: torch.Tensor) -> torch.Tensor:
        """V gamma of each block, (K_1 + ... + K_L,) -> (d,)."""
        delta, start = gamma.new_zeros(layout.size), 0
        for at, _, V in self._directions(layout, seed, gamma):
            delta[at] += gamma[start : start + len(V)] @ V
            start += len(V)
        return delta

    def _directions(self, layout: Layout, seed: int, like: torch.Tensor) -> Iterator[tuple[slice, int, torch.Tensor]]:
        """Where a block lies, K_l, and some of its v_k, (., d_l): normal entries within +-1/sqrt(d_l)."""
        g = torch.Generator().manual_seed(seed)
        for at, d in zip(layout.slices, groups(layout, "layer")):
            K, rows, most = count_kept(self.ratio, d), max(1, BLOCK // d), math.erf(1 / math.sqrt(2 * d))
            for k in range(0, K, rows):
                V = torch.empty(min(rows, K - k), d, dtype=like.dtype).uniform_(-most, most, generator=g)
                yield at, K, V.erfinv_().mul_(math.sqrt(2)).to(like.device)


def rho(d: int) -> float:
    """Return the variance of an entry of a direction: of N(0, 1) on [-1/sqrt(d), 1/sqrt(d)], about 1/(3d).

    >>> round(3 * 1000 * rho(1000), 4)
    0.9999
    """
    b = 1 / math.sqrt(d)
    return 1 - 2 * b * math.exp(-b * b / 2) / math.sqrt(2 * math.pi) / math.erf(b / math.sqrt(2))


METHODS = [
    Method(
        "Ferret",
        "subspace",
        lambda o: Ferret(o.lr, o.local_steps, o.ratio),
        Card(
            "A change crosses as its coordinates on random directions, which both sides make from a seed.",
            "y -= eta g_i(y); gamma_i = V_i^T (x - y) / (rho K), V_i truncated normal of variance rho; "
            "x -= mean(V_i gamma_i)",
            "A rebuilt change is unbiased, with d/K times its square as error; K -> infinity is FedAvg (laws).",
            "K < d: more noise than change. The authors' code has d for 1/rho: a third of a change comes back, before "
            "the server's rate (10 in its script).",
        ),
        rate=0.1,
    ),
]
