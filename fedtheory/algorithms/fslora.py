"""FSLoRA: Fang et al. 2025, "Federated Sketching LoRA", arXiv:2501.19389.

Read from the authors' code, wenzhifang/Federated-Sketching-LoRA-Implementation at ac24177, src/LoRA_Sketching.py:85. It
is no oracle: lines 90, 96, 115 and 122 ask whether a parameter is called 'lora_B' or 'lora_A', where all names are
longer. So its sketch stays I. Line 89 draws ranks of A apart from those of B. Here for any model, trained from its
start.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms.flexlora import Tailored, Up
from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import ONE, Cost, Known, Replay, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import count_kept
from fedtheory.maps.decomposition import Factors, LowRank, Outer, Permuted, Product


@dataclass(frozen=True)
class Sketch:
    """S_i of each client and layer: r/k_i on the diagonal at k_i random ranks of r, and 0 at the others.

    Fields:
        sizes: of each layer the entries of its factors, and r; 0 where it stays whole.
        shares: k_i / r for each kind of client.
        key: of the draws.
    """

    sizes: tuple[tuple[int, int], ...]
    shares: tuple[float, ...]
    key: Key

    def root(self, clients: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """What multiplies both factors of these clients to make B S_i A of B A: the roots of S_i's entries, (S, q)."""
        rows = []
        for i in clients.tolist():
            share, g, row = self.shares[i % len(self.shares)], self.key.fold(i).generator(), []
            for size, r in self.sizes:
                k, s = count_kept(share, r), torch.zeros(r, dtype=torch.float64)
                s[torch.randperm(r, generator=g)[:k]] = (r / k) ** 0.5
                row.append(s.repeat(size // r) if r else torch.ones(size, dtype=torch.float64))
            rows.append(torch.cat(row))
        return torch.stack(rows).to(like)


@dataclass(frozen=True)
class Sketched(Tailored):
    """B and A, of which a client is sent the ranks that its S_i keeps, and the seed of S_i."""

    sketch: Seed[Sketch]

    def crosses(self, whole: Any, client: int) -> Any:
        return self.sketch, self.value[self._kept(client)]

    def arrived(self, crossed: Any, whole: Any, client: int) -> "Sketched":
        there = replace(self, sketch=crossed[0])
        kept = there._kept(client)
        part = checks.tensor("part", crossed[1], (int(kept.sum()),), self.value.dtype)
        return replace(there, value=torch.zeros_like(self.value).masked_scatter(kept, part))

    def _kept(self, client: int) -> torch.Tensor:
        return self.sketch.value.root(torch.tensor([client]), self.value)[0] > 0


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W + B A, (d,)
    base: torch.Tensor  # W, frozen, (d,)
    u: torch.Tensor  # A and B of all layers, (q,)
    D: Known[Factors]
    n: int  # N
    t: int


@dataclass(frozen=True)
class Down:
    base: Replay[torch.Tensor]  # (d,), sent once
    D: Known[Factors]
    u: Sketched  # A and B, (q,)


@dataclass(frozen=True)
class FSLoRA(Algorithm):
    """Adapters of one large rank r: in each round a client trains and sends k_i random ranks of them.

    A is drawn and B = 0. Layers that are not decomposed are trained and sent whole. Client and server take plain steps,
    where the authors' code has AdamW.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: local steps of a round.
        decomposition: of the update, in its form "lora". Its ratio makes r.
        shares: k_i / r, one for each kind of client; client i is of kind i modulo their number. k_i is at least 1.
    """

    lr: float = by_problem()
    local_steps: int = 5
    decomposition: LowRank = LowRank(1 / 4, 1.0, "lora", layers="matrices")
    shares: tuple[float, ...] = (0.5,)
    name = "FSLoRA"
    pace = 0.1

    def __post_init__(self) -> None:
        self.decomposition.adapters()
        if not self.shares:
            checks.reject("shares", self.shares, "at least one share", "pass shares=(0.5,)")
        for i, share in enumerate(self.shares):
            checks.number(f"shares[{i}]", share, 0.0, 1.0, open_low=True)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self.decomposition.draw(problem.layout, key.fold("D"), problem.dtype, problem.device)
        return State(Server(x, x, D.start, Known(D), problem.n, 0), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        D, sizes = server.D.value, []
        for part in D.parts:
            part = part.part if isinstance(part, Permuted) else part
            r = part.of.r if isinstance(part, Product) and isinstance(part.of, Outer) else 0
            sizes.append((part.size, r))
        ranks = sum(r for _, r in sizes)
        sketch = Seed(key.fold("sketch"), partial(Sketch, tuple(sizes), self.shares), Cost(ranks, 8 * ranks))
        counts = [sum(size // r * count_kept(s, r) if r else size for size, r in sizes) for s in self.shares]
        prices = [Cost(c, c * server.u.element_size()) + sketch.cost(ONE, ()) for c in counts]
        each = tuple(prices[i % len(prices)] for i in range(server.n))
        base = Replay(server.base, server.base, round=server.t, period=server.t + 1)  # it never changes
        return Down(base, server.D, Sketched(server.u, each, sketch))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        base, D = down.base.value, down.D.value
        root = down.u.sketch.value.root(clients, base)  # both factors times it are B S_i A
        u = start = down.u.value * (root > 0)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            g = problem.grads(base + D.update(root * u), xi[k])  # of f_i at W + B S_i A
            u = u.sub(root * D.pullback(root * u, g), alpha=self.lr)
            yield u
        return Up(u - start, root > 0), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        u = server.u + up.rows.mean(0)  # a rank that a client did not train adds 0
        return replace(server, x=server.base + server.D.value.update(u), u=u, t=server.t + 1), None


METHODS = [
    Method(
        "FSLoRA",
        "low rank",
        lambda o: FSLoRA(o.lr, o.local_steps, LowRank(min(1.0, 2 * o.ratio), 1.0, "lora", layers="matrices")),
        Card(
            "Adapters of rank r, of which each client trains k random ranks in a round.",
            "S_i = (r/k) diag(k of r random ones); (B, A) -= eta grad of f_i(W + B S_i A); B, A += mean of the changes",
            "E[S_i] = I; k = r is FedMUD without a reset, layers transposed (laws). Original: k/r bounds the rate.",
            "k = 1: all ranks learn one matrix, and the model ends at rank 1 (law).",
        ),
        needs="matrices",
    ),
]
