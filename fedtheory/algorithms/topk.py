"""FedAvg with sparse uploads: the largest entries of each client's change, the rest kept for later or forgotten.

Shi et al. 2019, arXiv:1911.08772 (which DeComFL cites for it); with error feedback Stich et al. 2018, arXiv:1809.07599,
Algorithm 1 ("Mem-SGD"), where the paper's step eta_t grad f becomes a client's change over K local steps. Its Top-k
keeps exactly k entries, in an order of falling magnitude that is free among equal ones: here the first come first.
"""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import Sparse, largest


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Own:
    e: torch.Tensor  # e_i: what was not sent yet, (N, d)


@dataclass(frozen=True)
class TopK(Algorithm):
    """Local SGD steps; of their change the k largest entries cross, each with its position.

    DeComFL's baseline "FedAvg+Top-k" uploads "the largest k elements of the local update difference", k = 10%.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: K.
        ratio: k/d.
        error_feedback: True keeps what is not sent and adds it to the next change (Mem-SGD); False, FedAvg+Top-k as
            DeComFL states it, forgets it.
        by: "magnitude", or the signed "value", as a helper in DeComFL's public code takes the largest.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    error_feedback: bool = False
    by: str = "magnitude"
    name = "Top-k"
    pace = 0.3

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        checks.choice("by", self.by, ("magnitude", "value"))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x), Own(x.new_zeros(problem.kept, problem.d)) if self.error_feedback else None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own | None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        p = y - down.x if own is None else y - down.x + own.e  # m_t + eta_t grad f
        up = Sparse.of(p, largest(p.abs() if self.by == "magnitude" else p, self.ratio, [problem.d]))
        return up, None if own is None else Own(p - up.expand(problem.d))  # m_{t+1} = m_t + eta_t grad f - g_t

    def server(self, server: Server, down: Down, up: Sparse, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        return Server(server.x + up.expand(len(server.x)).mean(0)), None  # x_{t+1} = x_t - g_t


METHODS = [
    Method(
        "Top-k",
        "compressed",
        lambda o: TopK(o.lr, o.local_steps, o.ratio),
        Card(
            "The k largest entries of a change cross.",
            "y -= eta g_i(y); x += mean(Top-k(y_i - x))",
            "k = d is FedAvg (law). Original, with error feedback: SGD's rate.",
            "Without error feedback small entries never arrive; the model goes down whole.",
        ),
    ),
]
