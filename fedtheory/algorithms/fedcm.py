"""FedCM: Xu et al. 2021, "FedCM: Federated Learning with Client-level Momentum", arXiv:2106.10874v1, Algorithm 2."""

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
    delta: torch.Tensor  # Delta: the last round's mean step, as a gradient, (d,)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    delta: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


@dataclass(frozen=True)
class FedCM(Algorithm):
    """Local steps along a mean of the client's gradient and the last round's mean step. Clients keep nothing.

    Fields:
        lr: eta_l; None: `pace` times the problem's `rate`.
        local_steps: K.
        alpha: the gradient's weight; 1 is FedAvg.
        server_lr: of the mean change of the clients, as in public code; the paper's eta_g is K eta_l times it.
    """

    lr: float = by_problem()
    local_steps: int = 5
    alpha: float = 0.1
    server_lr: float = 1.0
    name = "FedCM"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("alpha", self.alpha, 0.0, 1.0, open_low=True)

    @property
    def gradient_only(self) -> bool:
        return self.alpha == 1

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, torch.zeros_like(x)), None)  # Delta_0 = 0

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x, server.delta)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            v = self.alpha * problem.grads(y, xi[k]) + (1 - self.alpha) * down.delta  # alpha g_i + (1 - alpha) Delta
            y = y.sub(v, alpha=self.lr)
            yield y
        return Up(y - down.x), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        change = up.dy.mean(0)
        delta = -change / (self.lr * self.local_steps)  # Delta <- -(1 / (eta_l K S)) sum_i (y_i - x)
        return Server(server.x + self.server_lr * change, delta), None  # x <- x - eta_g Delta


METHODS = [
    Method(
        "FedCM",
        "full",
        lambda o: FedCM(o.lr, o.local_steps),
        Card(
            "Local steps are mixed with the last round's mean step.",
            "v = -mean(y_i - x) / (K eta) of the last round; y -= eta (alpha g_i(y) + (1 - alpha) v); "
            "x += mean(y_i - x)",
            "alpha = 1 is FedAvg, K = 1 is momentum SGD on F; it rests where FedAvg with steps alpha eta does (laws).",
            "For small steps its drift is alpha times FedAvg's, and not zero; v goes down beside x.",
        ),
    ),
]
