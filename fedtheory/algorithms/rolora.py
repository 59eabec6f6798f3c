"""RoLoRA: Chen et al. 2025, "Robust Federated Finetuning of LLMs via Alternating Optimization of LoRA",
arXiv:2502.01755 (another paper of this name: arXiv:2409.02346); FFA-LoRA: Sun et al. 2024, "Improving LoRA in
Privacy-preserving Federated Learning", arXiv:2403.12313. Read from a third party's code, minhdn2k2/FL_LoRA at a0a0b68;
here for any model, trained from its start, without LoRA's scale alpha / r.
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
    whole: torch.Tensor  # the layers that stay whole, (.)
    B: Replay[torch.Tensor] | None  # to whoever has an older one; None: as it was at the start
    A: Replay[torch.Tensor] | None
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
    revision = 2  # 1 sent both factors to all
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
        owner, turn = _owners(D), None if self.switch_every is None else t // self.switch_every % 2
        B, A = (self._factor(server.u[owner == factor], t, factor) for factor in (0, 1))
        return Down(frozen, server.u[owner == _WHOLE], B, A, turn)

    def _factor(self, part: torch.Tensor, t: int, factor: int) -> Replay[torch.Tensor] | None:
        """B (0) or A (1) in round t, for those who took part before it moved last; None if it never did."""
        s = self.switch_every or t + 1
        stood = t % s if t // s % 2 != factor else 0 if t % s else min(t, s)  # for so many rounds
        return Replay(part, part, round=stood, period=t + 1) if stood < t else None

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        base, D = down.frozen.value.base, down.frozen.value.D.value
        owner, trained = _owners(D), _trained(D, down.turn or 0)
        u = D.start.masked_scatter(owner == _WHOLE, down.whole)
        for factor, part in enumerate((down.B, down.A)):
            u = u if part is None else u.masked_scatter(owner == factor, part.value)
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


_WHOLE = 2


def _owners(D: Factors) -> torch.Tensor:
    """Of each entry of u: 0 in B, 1 in A, 2 in a layer that is not decomposed."""
    owners = []
    for part in D.parts:
        part = part.part if isinstance(part, Permuted) else part
        left = part.of.sizes[0] if isinstance(part, Product) else 0
        owners.append(torch.full((part.size,), 0 if left else _WHOLE).index_fill(0, torch.arange(left), 1))
    return torch.cat(owners).to(D.start.device)


def _trained(D: Factors, turn: int) -> torch.Tensor:
    """The entries of u that a round trains."""
    owner = _owners(D)
    return (owner == turn) | (owner == _WHOLE)


METHODS = [
    Method(
        "RoLoRA",
        "low rank",
        lambda o: RoLoRA(o.lr, o.local_steps, LowRank(o.ratio, 1.0, "lora", layers="matrices")),
        Card(
            "Rounds that train B and rounds that train A in turn: averaging is exact.",
            "B -= eta grad in B of f_i(W + B A), B = mean(B_i); in the next round A",
            "The model is the mean of the clients' (law). It fits a matrix of rank 1 where FFA-LoRA cannot (law).",
            "The rank of the change is bounded for good. Who missed a round is sent both factors.",
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
