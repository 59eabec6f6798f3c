"""MimeLite: Karimireddy et al. 2020, "Mime: Mimicking Centralized Stochastic Algorithms in Federated Learning",
arXiv:2008.03606v2, Algorithm 1.
"""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    m: torch.Tensor  # s: the mean of past gradients, (d,)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    m: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)
    g: torch.Tensor  # grad F_i(x), (S, d)


@dataclass(frozen=True)
class MimeLite(Algorithm):
    """Local steps of momentum SGD whose state comes from the server and stays fixed within the round.

    Mime itself sends the mean gradient c at x down before the local steps: a second exchange in each round.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: K.
        momentum: beta of the base method; 0 is FedAvg.
    """

    lr: float = by_problem()
    local_steps: int = 5
    momentum: float = 0.9
    name = "MimeLite"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("momentum", self.momentum, 0.0, 1.0)
        if self.momentum == 1:
            checks.reject("momentum", self.momentum, "a number from 0 to below 1", "choose for example 0.9")

    @property
    def gradient_only(self) -> bool:
        return not self.momentum

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, torch.zeros_like(x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x, server.m)  # (x, s)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        x = y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(self._mix(problem.grads(y, xi[k]), down.m), alpha=self.lr)  # y_i <- y_i - eta U(g_i, s)
            yield y
        return Up(y - down.x, problem.grads(x, problem.full(clients))), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        m = self._mix(up.g.mean(0), server.m)  # s <- V(mean grad F_i(x), s)
        return Server(server.x + up.dy.mean(0), m), None  # x <- mean y_i

    def _mix(self, g: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        """U and V of momentum SGD."""
        return (1 - self.momentum) * g + self.momentum * m


METHODS = [
    Method(
        "MimeLite",
        "full",
        lambda o: MimeLite(o.lr, o.local_steps),
        Card(
            "Clients step by momentum whose state is the server's and fixed within the round.",
            "y -= eta ((1 - beta) g_i(y) + beta m); m = (1 - beta) mean(grad F_i(x)) + beta m; x += mean(y_i - x)",
            "beta = 0 is FedAvg; K = 1 is momentum SGD on F; small steps drift by (1 - beta)^2 of FedAvg's (laws).",
            "Twice the traffic, and a full gradient per round.",
        ),
    ),
]
