"""FedProx: Li et al. 2020, "Federated Optimization in Heterogeneous Networks", arXiv:1812.06127v5, Algorithm 2."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedtheory.algorithms.fedavg import Server, Up
from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


def pulled(gradients: Sequence[float], share: float) -> float:
    """How far gradients move a client, in units of lr, if each step also goes back by this share of its way."""
    way = 0.0
    for g in gradients:
        way += g - share * way
    return way


@dataclass(frozen=True)
class FedProx(Algorithm):
    """FedAvg whose clients minimise h_k(w; w^t) = F_k(w) + (mu/2) ||w - w^t||^2.

    Algorithm 2 leaves the local solver open (any gamma-inexact minimiser): here K gradient steps on h_k, the update of
    the authors' code. It samples clients with probability p_k and averages them alike; here, as in that code, they are
    sampled uniformly, and `weighted` puts p_k into the average. All clients make the same number of steps.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: K.
        mu: weight of the proximal term; 0 is FedAvg.
        weighted: the average is weighted by the problem's p_k, renormalised over the participants.
    """

    lr: float = by_problem()
    local_steps: int = 5
    mu: float = 0.01
    weighted: bool = False
    name = "FedProx"
    averaged = True
    own_steps = True

    def __post_init__(self) -> None:
        checks.number("mu", self.mu, 0.0)

    @property
    def gradient_only(self) -> bool:
        return not self.mu

    def reach(self, gradients: Sequence[float]) -> float:
        return pulled(gradients, self.lr * self.mu)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, problem.weights.to(x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            g = problem.grads(y, xi[k]) + self.mu * (y - down.x)  # grad h_k(w; w^t)
            y = y.sub(g, alpha=self.lr)
            yield y
        return Up(y - down.x), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        return Server(server.x + p @ up.dy, server.weights), None  # w^{t+1} = (1/K) sum_k w_k^{t+1}


METHODS = [
    Method(
        "FedProx",
        "full",
        lambda o: FedProx(o.lr, o.local_steps, mu=0.01),
        Card(
            "A proximal term keeps local models near the global one.",
            "y -= eta (g_i(y) + mu (y - x)); x += mean(y_i - x)",
            "mu = 0 is FedAvg (law). Original: convergence under bounded dissimilarity, for mu large enough.",
            "It slows the drift and does not remove it: in general the fixed point is not x*.",
        ),
    ),
]
