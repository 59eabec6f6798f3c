"""MOON: Li, He and Song 2021, "Model-Contrastive Federated Learning", arXiv:2103.16257v1, Algorithm 1."""

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
class Own:
    y: torch.Tensor  # w_i of the client's last round, (N, d)
    trained: torch.Tensor  # whether it had one, (N,)


@dataclass(frozen=True)
class MOON(Algorithm):
    """FedAvg whose clients pull their features to the global model's and push them from their own previous model's.

    The features R_w are what the network's last linear map is given. The paper puts a projection head of two layers
    below it, in all methods that it compares. Here the network is the problem's, with or without a projection head. A
    client that has no previous model takes the global one for it, whose contrastive loss is constant: the authors' code
    drops the term in the first round, and later newcomers have a random network for it. Their code
    evaluates the other two networks with running moments of batch normalisation, here there are none: the moments are
    the batch's.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: minibatch steps.
        mu: weight of the contrastive loss; 0 is FedAvg.
        temperature: tau.
        weighted: the average is weighted by the problem's |D^i| / |D|, as printed, over the participants; False: alike.
    """

    lr: float = by_problem()
    local_steps: int = 5
    mu: float = 0.01
    temperature: float = 0.5
    weighted: bool = False
    name = "MOON"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("mu", self.mu, 0.0)
        checks.number("temperature", self.temperature, 0.0, open_low=True)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        _ = problem.classifier  # refuses a problem that has none
        trained = torch.zeros(problem.kept, dtype=torch.bool, device=x.device)
        return State(Server(x, problem.weights.to(x)), Own(x.new_zeros(problem.kept, problem.d), trained))

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = x = down.x.expand(len(clients), -1)
        previous = torch.where(own.trained[:, None], own.y, x)
        for k in range(self.local_steps):
            y = y.sub(
                problem.penalised(y, xi[k], self._contrast, x, previous), alpha=self.lr
            )  # grad of l_sup + mu l_con
            yield y
        return Up(y - down.x), Own(y, torch.ones_like(own.trained))

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        return Server(server.x + p @ up.dy, server.weights), None  # w^{t+1} = sum_k |D^k|/|D| w_k^t

    def _contrast(self, out: Outputs, x: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
        """mu l_con, l_con = -log(exp(sim(z, z_glob)/tau) / (exp(sim(z, z_glob)/tau) + exp(sim(z, z_prev)/tau)))."""
        z, z_glob, z_prev = out.features, out.at(x).features, out.at(previous).features  # 14-16
        near, far = (functional.cosine_similarity(z, other, dim=-1) / self.temperature for other in (z_glob, z_prev))
        return self.mu * out.mean(functional.softplus(far - near))  # 17


METHODS = [
    Method(
        "MOON",
        "full",
        lambda o: MOON(o.lr, o.local_steps, mu=0.01, temperature=1.0),
        Card(
            "Features are pulled to the global model's and pushed from the client's last one's.",
            "y -= eta grad(f_i + mu contrast(features of y, x, y_i of last time)); x += mean(y_i - x)",
            "mu = 0 is FedAvg (law). No rate.",
            "Needs a network, three forward passes per step, and a whole model at every client.",
        ),
        needs="networks",
    ),
]
