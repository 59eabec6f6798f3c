"""RoLoRA: Chen et al. 2025, "Robust Federated Finetuning of LLMs via Alternating Optimization of LoRA",
arXiv:2502.01755; FFA-LoRA: Sun et al. 2024, "Improving LoRA in Privacy-preserving Federated Learning",
arXiv:2403.12313. Aggregation as in CERT-Lab/fedex-lora; here for any model, trained from its start.
"""

from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Replay, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.decomposition import Factors, LowRank, Permuted, Product


@dataclass(frozen=True)
class Frozen:
    base: torch.Tensor  # W, (d,)
    D: Seed[Factors]  # A as drawn, and B = 0


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W + B A, (d,)
    frozen: Frozen
    u: torch.Tensor  # A and B of all layers, (q,)
    t: int


@dataclass(frozen=True)
class Down:
    frozen: Replay[Frozen]  # sent once
    u: torch.Tensor  # A and B, (q,); B alone where A is never trained
    turn: int | None  # 0: B is trained, 1: A; None: always B


@dataclass(frozen=True)
class Up:
    u: torch.Tensor  # the factor whose turn it is, and the layers that stay whole, (S, .)


@dataclass(frozen=True)
class RoLoRA(Algorithm):
    """Adapters B A of which each round trains one factor, so that the mean of the products is the product of the means.

    A is drawn and B = 0, and B begins. Layers that are not decomposed are trained in every round.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: local steps of a round.
        decomposition: of the update, in its form "lora".
        switch_every: rounds of one factor before the other's turn. None: never, which is FFA-LoRA.
    """

    lr: float = by_problem()
    local_steps: int = 5
    decomposition: LowRank = LowRank(1 / 8, 1.0, "lora", layers="matrices")
    switch_every: int | None = 1
    name = "RoLoRA"
    pace = 0.1
    averaged = True

    def __post_init__(self) -> None:
        self.decomposition.adapters()
        if self.switch_every is not None:
            checks.whole("switch_every", self.switch_every, 1)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self.decomposition.seed(problem.layout, key.fold("D"), problem.dtype, problem.device)
        return State(Server(x, Frozen(x, D), D.value.start, 0), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        t, D = server.t, server.frozen.D.value
        frozen = Replay(server.frozen, server.frozen, round=t, period=t + 1)  # it never changes
        if self.switch_every is None:
            return Down(frozen, server.u[_trained(D, 0)], None)
        return Down(frozen, server.u, t // self.switch_every % 2)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        base, D = down.frozen.value.base, down.frozen.value.D.value
        trained = _trained(D, down.turn or 0)
        u = down.u if down.turn is not None else D.start.masked_scatter(trained, down.u)
        u = u.expand(len(clients), -1)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            g = D.pullback(u, problem.grads(base + D.update(u), xi[k]))
            u = u.sub(g * trained, alpha=self.lr)  # the other factor stands still
            yield u[:, trained]
        return Up(u[:, trained]), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        base, D = server.frozen.base, server.frozen.D.value
        u = server.u.masked_scatter(_trained(D, down.turn or 0), up.u.mean(0))
        return replace(server, x=base + D.update(u), u=u, t=server.t + 1), None


def _trained(D: Factors, turn: int) -> torch.Tensor:
    """The entries of u that a round trains: of a decomposed layer B (turn 0) or A (turn 1), of another one all."""
    marks = []
    for part in D.parts:
        part = part.part if isinstance(part, Permuted) else part
        left = torch.arange(part.size) < (part.of.sizes[0] if isinstance(part, Product) else 0)
        marks.append((left == bool(turn)) | (not isinstance(part, Product)))
    return torch.cat(marks).to(D.start.device)


METHODS = [
    Method(
        "RoLoRA",
        "low rank",
        lambda o: RoLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, "lora", layers="matrices")),
        Card(
            "Rounds that train B and rounds that train A in turn: averaging is exact.",
            "B -= eta grad in B of f_i(W + B A), B = mean(B_i); in the next round A",
            "The model is the mean of the clients' (law). It fits a matrix of rank 1 where FFA-LoRA cannot (law).",
            "The rank of the change is bounded for good. Both factors go down, of which one is trained.",
        ),
        needs="matrices",
    ),
    Method(
        "FFA-LoRA",
        "low rank",
        lambda o: RoLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, "lora", layers="matrices"), None),
        Card(
            "A is drawn and frozen, B is trained: averaging is exact.",
            "B -= eta grad in B of f_i(W + B A); B = mean(B_i)",
            "With layers transposed: FedMUD+F without a reset (law).",
            "A layer's change sees only the projection of its inputs that was drawn.",
        ),
        needs="matrices",
    ),
]
