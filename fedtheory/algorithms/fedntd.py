"""FedNTD: Lee et al. 2022, "Preservation of the Global Knowledge by Not-True Distillation in Federated Learning",
arXiv:2106.03097v5.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from fedtheory.algorithms.fedavg import Server, Up
from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down
from fedtheory.core.problem import Outputs, Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class FedNTD(Algorithm):
    """FedAvg with the loss L_CE + beta L_NTD: a client keeps the global model's opinion on the classes that are wrong.

    L_NTD = KL(q_g || q_l), averaged over the batch. Here q is the softmax of logits / tau over the classes but the true
    one. The global model (the round's start) is g, the local one l. No factor tau^2: the authors' code has had both;
    for theirs with it pass beta tau^2. With two classes
    one class is wrong and q is 1: that is FedAvg.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: minibatch steps.
        beta: weight of the distillation; 0 is FedAvg.
        temperature: tau.
        weighted: the average is weighted by the problem's client weights, as in the authors' code; False averages the
            participants alike.
    """

    lr: float = by_problem()
    local_steps: int = 5
    beta: float = 1.0
    temperature: float = 1.0
    weighted: bool = False
    name = "FedNTD"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("beta", self.beta, 0.0)
        checks.number("temperature", self.temperature, 0.0, open_low=True)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        _ = problem.classifier  # refuses a problem that has none
        return State(Server(x, problem.weights.to(x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = x = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.penalised(y, xi[k], self._distil, x), alpha=self.lr)
            yield y
        return Up(y - down.x), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        return Server(server.x + p @ up.dy, server.weights), None

    def _distil(self, out: Outputs, x: torch.Tensor) -> torch.Tensor:
        """beta L_NTD."""
        local, world = (
            functional.log_softmax(not_true(logits, out.labels) / self.temperature, dim=-1)
            for logits in (out.logits, out.at(x).logits)
        )
        return self.beta * out.mean((world.exp() * (world - local)).sum(-1))


def not_true(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The logits of all classes but the true one: (..., classes), (...) -> (..., classes - 1)."""
    c = torch.arange(logits.shape[-1] - 1, device=logits.device)
    return logits.gather(-1, c + (c >= labels[..., None]))


METHODS = [
    Method(
        "FedNTD",
        "full",
        lambda o: FedNTD(o.lr, o.local_steps, beta=0.001, temperature=1.0),
        Card(
            "A client keeps the global model's opinion on the classes that are not true.",
            "y -= eta grad(f_i + beta KL(x's, y's logits without the true class)); x += mean(y_i - x)",
            "beta = 0 is FedAvg (law). No rate.",
            "Needs classes, and a second forward pass per step.",
        ),
        needs="networks",
    ),
]
