"""FedEx-LoRA: Singhal et al. 2024, "Exact Aggregation for Federated and Efficient Fine-Tuning of Foundation Models",
arXiv:2410.09432; FLoRA: Wang et al. 2024, "Federated Fine-Tuning Large Language Models with Heterogeneous Low-Rank
Adaptations", arXiv:2409.05976. Read from the authors' code; here from the first step, on any model.
"""

from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, shares
from fedtheory.core.key import Key
from fedtheory.core.message import Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.decomposition import Factors, LowRank


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W + B A, (d,)
    base: torch.Tensor  # W, (d,)
    u: torch.Tensor  # A and B of all layers, (q,)
    D: Seed[Factors]
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Down:
    base: torch.Tensor  # (d,)
    u: torch.Tensor | None  # (q,); None: as D draws it
    D: Seed[Factors]


@dataclass(frozen=True)
class Up:
    u: torch.Tensor  # A_i and B_i, (S, q)


@dataclass(frozen=True)
class FedExLoRA(Algorithm):
    """Adapters B_i A_i whose products are averaged; what the mean factors miss of that goes into the frozen weights.

    W changes in every round and goes down whole. The papers send its change as factors of rank S r, which is less for
    few clients and small ranks. A is drawn, in the papers on the side of a layer's inputs, here on that of the outputs.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: local steps of a round.
        decomposition: of the update; its left factor is A, its right one B.
        fresh: False goes on from the mean factors (FedEx-LoRA). True merges all of the products and draws adapters
            anew in every round, the same for all clients (FLoRA, whose code draws them for each client).
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    decomposition: LowRank = LowRank(1 / 8, 1.0, layers="matrices")
    fresh: bool = False
    weighted: bool = False
    name = "FedEx-LoRA"
    pace = 0.1

    def __post_init__(self) -> None:
        if self.decomposition != replace(self.decomposition, form="product", random=False):
            checks.reject("decomposition", self.decomposition, "a product that starts at zero", "pass LowRank(1/8)")

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self.decomposition.seed(problem.layout, key.fold("D"), problem.dtype, problem.device)
        return State(Server(x, x, D.value.start, D, shares(problem, self.weighted, x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.base, None if self.fresh else server.u, server.D)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        D = down.D.value
        u = (D.start if down.u is None else down.u).expand(len(clients), -1)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            u = u.sub(D.pullback(u, problem.grads(down.base + D.update(u), xi[k])), alpha=self.lr)
            yield u
        return Up(u), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        D = server.D.value
        x = server.base + average(D.update(up.u), server.p, clients)  # W + mean(B_i A_i)
        if self.fresh:
            fresh = replace(server.D, key=key.fold("D"))
            return Server(x, x, fresh.value.start, fresh, server.p), None
        u = average(up.u, server.p, clients)  # mean(B_i), mean(A_i)
        return replace(server, x=x, base=x - D.update(u), u=u), None  # W += mean(B_i A_i) - mean(B_i) mean(A_i)


METHODS = [
    Method(
        "FedEx-LoRA",
        "low rank",
        lambda o: FedExLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, layers="matrices")),
        Card(
            "What the mean factors miss of the mean product goes into the frozen weights.",
            "W += mean(B_i A_i) - mean(B_i) mean(A_i); B, A = means",
            "The model is the mean of the clients' (law). One client: FedMUD without a reset (law). No rate here.",
            "W changes in every round and goes down whole.",
        ),
        needs="matrices",
    ),
    Method(
        "FLoRA",
        "low rank",
        lambda o: FedExLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, layers="matrices"), fresh=True),
        Card(
            "Clients' adapters are stacked and merged, and drawn anew.",
            "W += mean(B_i A_i); B = 0, A drawn anew",
            "The model is the mean of the clients'; a round of K > 1 adds rank S r (laws). No rate here.",
            "W changes in every round and goes down whole; B begins at 0 in every round.",
        ),
        needs="matrices",
    ),
]
