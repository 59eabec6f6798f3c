"""FedEx-LoRA: Singhal et al. 2024, "Exact Aggregation for Federated and Efficient Fine-Tuning of Foundation Models",
arXiv:2410.09432; FLoRA: Wang et al. 2024, "Federated Fine-Tuning Large Language Models with Heterogeneous Low-Rank
Adaptations", arXiv:2409.05976. Read from the authors' code; here with plain steps and without LoRA's scale
alpha / r, for any model, trained from its start.
"""

from dataclasses import dataclass, replace

import torch

from fedtheory.core.algorithm import Algorithm, State, average, by_problem, shares
from fedtheory.core.key import Key
from fedtheory.core.message import Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.decomposition import Factors, LowRank


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W + B A, (d,)
    base: torch.Tensor  # W, (d,)
    u: torch.Tensor  # A and B of all layers, (q,)
    D: Known[Factors]
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Down:
    base: torch.Tensor  # (d,)
    u: torch.Tensor | None  # (q,); None: each client draws its own A
    D: Known[Factors]


@dataclass(frozen=True)
class Up:
    u: torch.Tensor  # A_i and B_i, (S, q)


@dataclass(frozen=True)
class FedExLoRA(Algorithm):
    """Adapters B_i A_i whose products are averaged; what the mean factors miss of that goes into the frozen weights.

    W changes in every round and goes down whole. The papers send its change as factors of rank S r, which is less for
    few clients and small ranks.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: local steps of a round.
        decomposition: of the update, in its form "lora".
        fresh: False goes on from the mean factors (FedEx-LoRA). True merges all of the products, and in every round
            each client draws its own A (FLoRA).
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    decomposition: LowRank = LowRank(1 / 8, 1.0, "lora", layers="matrices")
    fresh: bool = False
    weighted: bool = False
    name = "FedEx-LoRA"
    pace = 0.1

    def __post_init__(self) -> None:
        self.decomposition.adapters()

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self.decomposition.draw(problem.layout, key.fold("D"), problem.dtype, problem.device)
        return State(Server(x, x, D.start, Known(D), shares(problem, self.weighted, x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.base, None if self.fresh else server.u, server.D)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        D, u = down.D.value, down.u
        if u is None:
            draw = lambda i: self.decomposition.draw(problem.layout, key.fold("D", i), problem.dtype, problem.device)
            u = torch.stack([draw(i).start for i in clients.tolist()])
        u = u.expand(len(clients), -1)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            u = u.sub(D.pullback(u, problem.grads(down.base + D.update(u), xi[k])), alpha=self.lr)
            yield u
        return Up(u), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        D = server.D.value
        x = server.base + average(D.update(up.u), server.p, clients)  # W + mean(B_i A_i)
        if self.fresh:
            return replace(server, x=x, base=x), None
        u = average(up.u, server.p, clients)  # mean(B_i), mean(A_i)
        return replace(server, x=x, base=x - D.update(u), u=u), None  # W += mean(B_i A_i) - mean(B_i) mean(A_i)


METHODS = [
    Method(
        "FedEx-LoRA",
        "low rank",
        lambda o: FedExLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, "lora", layers="matrices")),
        Card(
            "What the mean factors miss of the mean product goes into the frozen weights.",
            "W += mean(B_i A_i) - mean(B_i) mean(A_i); B, A = means",
            "The model is the mean of the clients'. One client: FedMUD without a reset (laws). No rate here.",
            "W changes in every round and goes down whole.",
        ),
        needs="matrices",
    ),
    Method(
        "FLoRA",
        "low rank",
        lambda o: FedExLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, "lora", layers="matrices"), fresh=True),
        Card(
            "Clients' adapters are stacked and merged, and each client draws its next A.",
            "W += mean(B_i A_i); B = 0, A drawn anew",
            "The model is the mean of the clients'; a round adds rank up to S r (laws). No rate here.",
            "W changes in every round and goes down whole; B begins at 0 in every round.",
        ),
        needs="matrices",
    ),
]
