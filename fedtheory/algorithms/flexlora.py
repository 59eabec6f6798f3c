"""FlexLoRA: Federated Fine-tuning of Large Language Models under Heterogeneous Tasks and Client Resources.

Bai et al. 2024, arXiv:2402.11505; the authors' code is alibaba/FederatedScope, branch FlexLoRA (1cb1ab7). Here for any
model, trained from its start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, Known, Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.decomposition import Factors, LowRank, Whole


@dataclass(frozen=True)
class Adapters:
    """The factors of the largest rank, and what each kind of client has of them."""

    D: Factors
    kept: torch.Tensor  # (kinds, q) bool


@dataclass(frozen=True)
class Tailored:
    """A vector of which every client is sent a part of its own; a test makes the part of what was charged.

    Fields:
        value: what the parts are parts of.
        prices: of client i's part, (N,).
    """

    value: torch.Tensor
    prices: tuple[Cost, ...]

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge for these clients, summed over them."""
        if len(clients) != len(lags):
            checks.reject("clients", list(clients), f"the ids of {len(lags)} receivers", "pass their ids")
        return sum((self.prices[i] for i in clients), Cost())

    def crosses(self, whole: "Down", client: int) -> torch.Tensor:
        """What client i is sent of it."""
        return self.value[whole.kept(client)]

    def arrived(self, crossed: Any, whole: "Down", client: int) -> "Tailored":
        """The vector at client i: what it was not sent is zero."""
        kept = whole.kept(client)
        part = checks.tensor("part", crossed, (int(kept.sum()),), self.value.dtype)
        return Tailored(torch.zeros_like(self.value).masked_scatter(kept, part), self.prices)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W + delta, (d,)
    base: torch.Tensor  # W, frozen, (d,)
    delta: torch.Tensor  # the mean of B_i A_i, (d,)
    adapters: Known[Adapters]
    weights: torch.Tensor  # (N,)
    t: int


@dataclass(frozen=True)
class Down:
    base: Replay[torch.Tensor]  # (d,), sent once
    adapters: Known[Adapters]
    u: Tailored  # A, B of the largest rank, (q,): client i is sent its first r_i columns

    def kept(self, client: int) -> torch.Tensor:
        """What client i has of u, (q,) bool."""
        kinds = self.adapters.value.kept
        return kinds[client % len(kinds)]


@dataclass(frozen=True)
class Up:
    """B_i, A_i of rank r_i, in the shape of the largest rank: entries cross where they are marked, the others are zero.

    Both sides know the marks.
    """

    rows: torch.Tensor  # (S, q)
    kept: torch.Tensor  # the marks, (S, q) bool

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        count = int(self.kept.sum())
        return Cost(count, count * self.rows.element_size())

    def crosses(self, whole: Any, client: int) -> torch.Tensor:
        """What is sent of it: the marked entries."""
        return self.rows[self.kept]

    def arrived(self, crossed: Any, whole: Any, client: int) -> "Up":
        """The upload of what was sent; `self` has its marks."""
        part = checks.tensor("upload", crossed, (int(self.kept.sum()),), self.rows.dtype)
        return Up(torch.zeros_like(self.rows).masked_scatter(self.kept, part), self.kept)


@dataclass(frozen=True)
class FlexLoRA(Algorithm):
    """Clients train adapters B_i A_i of their own rank; the server averages the products and cuts its SVD for each.

    A client of a small rank is padded with zero columns, on which both gradients vanish: they stay zero, and none
    crosses. The frozen W goes to a client once. Adapters whose product is zero, as all are in round 0, have A drawn and
    B = 0. The authors' code has LoRA's scale alpha / r in front of B A, by which B's rate is (alpha / r)^2 times A's;
    here there is none. Layers that stay whole are trained whole, in every client.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: local steps of a round.
        decompositions: one for each kind of client, from which its ranks follow; client i is of kind i modulo their
            number. They differ in `ratio` alone.
        share: the power of the singular values in B = U S^share; A = S^(1 - share) V^T has the rest. 1 is the
            authors': B = U S, A = V^T.
        weighted: False averages the participants alike; True by the problem's client weights p_i (the paper's n_i).
    """

    lr: float = by_problem()
    local_steps: int = 5
    decompositions: tuple[LowRank, ...] = (LowRank(1 / 8, 1.0, "lora", layers="matrices"),)
    share: float = 1.0
    weighted: bool = False
    name = "FlexLoRA"
    pace = 0.03

    def __post_init__(self) -> None:
        fix = "pass (LowRank(1/8, form='lora'), LowRank(1/32, form='lora'))"
        if not self.decompositions:
            checks.reject("decompositions", self.decompositions, "at least one LowRank", fix, TypeError)
        same = replace(self.decompositions[0], ratio=1.0, form="lora", random=False)
        if {replace(one, ratio=1.0) for one in self.decompositions} != {same}:
            checks.reject("decompositions", self.decompositions, "adapters that differ in their ratio alone", fix)
        checks.number("share", self.share, 0.0, 1.0)

    @cached_property
    def _largest(self) -> LowRank:
        return max(self.decompositions, key=lambda one: one.ratio)

    def kept(self, layout: Layout) -> torch.Tensor:
        """Which of the largest factors a client of each kind has, (kinds, q) bool: of A^T and B the first r columns."""
        kinds = []
        for decomposition in self.decompositions:
            marks = []
            for layer, large, own in zip(layout.layers, self._largest.parts(layout), decomposition.parts(layout)):
                sides = large.size if isinstance(large, Whole) else layer.rows + layer.cols
                marks.append((torch.arange(large.size // sides) < own.size // sides).repeat(sides))
            kinds.append(torch.cat(marks))
        return torch.stack(kinds)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self._largest.draw(problem.layout, key.fold("D"), problem.dtype, problem.device)
        adapters = Known(Adapters(D, self.kept(problem.layout).to(x.device)))
        return State(Server(x, x, torch.zeros_like(x), adapters, problem.weights.to(x), 0), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        D, kept = server.adapters.value.D, server.adapters.value.kept
        u = D.nearest(server.delta, self.share)
        counts = kept.sum(1).tolist()
        prices = tuple(Cost(c, c * u.element_size()) for c in counts)
        each = tuple(prices[i % len(prices)] for i in range(len(server.weights)))
        base = Replay(server.base, server.base, round=server.t, period=server.t + 1)  # it never changes
        return Down(base, server.adapters, Tailored(u, each))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        D, base = down.adapters.value.D, down.base.value
        kept = down.adapters.value.kept[clients % len(self.decompositions)]
        u = down.u.value * kept  # the first r_i columns of B and A
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            u = u.sub(D.pullback(u, problem.grads(base + D.update(u), xi[k])), alpha=self.lr)
            yield u
        return Up(u, kept), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        delta = p @ server.adapters.value.D.update(up.rows)
        return replace(server, x=server.base + delta, delta=delta, t=server.t + 1), None


METHODS = [
    Method(
        "FlexLoRA",
        "low rank",
        lambda o: FlexLoRA(o.lr, o.local_steps, (LowRank(o.ratio, 1.0, "lora", layers="matrices"),)),
        Card(
            "Adapters of each client's own rank; the server averages products and cuts their SVD for each.",
            "delta = mean(B_i A_i); (B_i, A_i) = SVD of delta, cut at r_i; x = W + delta",
            "Equal full ranks lose nothing (law). No rate here.",
            "delta has rank up to S r_i, of which a client gets r_i; B = U S, A = V^T has unequal scales, which large "
            "rates do not stand.",
        ),
        needs="matrices",
    ),
]
