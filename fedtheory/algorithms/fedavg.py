"""FedAvg: McMahan et al. 2017, arXiv:1602.05629v4, Algorithm 1; with a server step size as in arXiv:1910.06378."""

from dataclasses import dataclass

import torch

from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    weights: torch.Tensor  # (N,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Local SGD steps, then the average of the clients' changes.

    Fields:
        lr: local step size eta_l; None: `pace` times the problem's `rate`.
        local_steps: K.
        server_lr: eta_g; 1 is McMahan's average.
        weighted: False averages the participants alike; True by the problem's client weights p_i (McMahan's n_k/n),
            renormalised over the participants.
    """

    lr: float = by_problem()
    local_steps: int = 5
    server_lr: float = 1.0
    weighted: bool = False
    name = "FedAvg"
    averaged = True

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, problem.weights.to(x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)  # w <- w - eta grad l(w; b)
            yield y
        return Up(y - down.x), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        change = average_weights(server.weights, clients) @ up.dy if self.weighted else up.dy.mean(0)
        return Server(server.x + self.server_lr * change, server.weights), None  # w_{t+1} <- sum_k (n_k/m) w_{t+1}^k


METHODS = [
    Method(
        "FedAvg",
        "full",
        lambda o: FedAvg(o.lr, o.local_steps),
        Card(
            "Local SGD steps, then the average of the models.",
            "y -= eta g_i(y), K times; x += mean(y_i - x)",
            "K = 1 is SGD on F. Equal clients: it reaches x* (law).",
            "K > 1 and unlike Hessians: in general it rests away from x* (law).",
        ),
    ),
]
