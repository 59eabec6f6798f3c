"""FedFTG: Mahla, Jadhav and Ramakrishnan 2024, "Exploring Gradient Subspaces", arXiv:2410.23111: GaLore within FedAvg.

GaLore is Zhao et al. 2024, arXiv:2403.03507v2, Algorithm 2. FedSub (Sec. 1) names FedFTG: "extends GaLore to FL by
integrating it into the FedAvg"; "each client still transmits the full-space models".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedtheory.algorithms.fedavg import Server, Up
from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.message import Down
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Own:
    P: torch.Tensor  # each client's own projectors, one after the other, (N, p)
    M: torch.Tensor  # first moments, (N, r)
    V: torch.Tensor  # second moments, (N, r)
    t: torch.Tensor  # local steps so far, (N,), int64


class Piece(NamedTuple):
    """Where the projector of one layer and what it leaves lie in `Own`. `wide`: W has fewer rows than columns."""

    layer: Layer
    wide: bool
    rank: int
    P: slice
    low: slice


@dataclass(frozen=True)
class FedFTG(Algorithm):
    """FedAvg whose clients step as GaLore does: each in a subspace of its own, that of one of its recent gradients.

    Whole models cross, so the mean is exact, but nothing is saved on the wire; what GaLore saves is the optimizer's
    memory. P_i and the moments stay with their client from round to round, as in the public code. (That code gives
    GaLore's optimizer no rank, with which it is plain AdamW; this is what its text says.) Vectors are not projected;
    the paper trains no vectors. Moments outlive the P whose coordinates they have, as in GaLore's code. So the signs of
    the new singular vectors matter; the text leaves them open, and libraries choose them at will. Here they are fixed.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: K.
        rank: r, of every matrix (at most its shorter side, which is what is projected).
        period: T, a client's local steps between two projectors (GaLore's default: 200).
        alpha: GaLore's scale (its default: 0.25).
        optimizer: "adam", as GaLore's Algorithm 2, or "sgd", whose step is the projected gradient.
        beta1, beta2, eps: of Adam.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    rank: int = 5
    period: int = 200
    alpha: float = 0.25
    optimizer: str = "adam"
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weighted: bool = False
    name = "FedFTG"
    pace = 0.1
    averaged = True
    own_steps = True

    def __post_init__(self) -> None:
        checks.whole("rank", self.rank, 1)
        checks.whole("period", self.period, 1)
        checks.rate("alpha", self.alpha)
        checks.choice("optimizer", self.optimizer, ("adam", "sgd"))
        for field in ("beta1", "beta2"):
            if checks.number(field, getattr(self, field), 0.0, 1.0) == 1.0:
                checks.reject(field, 1.0, "a number from 0 to below 1", "choose for example 0.9")
        checks.number("eps", self.eps, 0.0, open_low=True)

    @property
    def gradient_only(self) -> bool:
        return False

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        checks.dtype("dtype", problem.dtype)  # of the SVD
        *_, last = self._pieces(problem.layout)
        zeros = lambda size: x.new_zeros(problem.kept, size)
        steps = torch.zeros(problem.kept, dtype=torch.int64, device=x.device)
        own = Own(zeros(last.P.stop), zeros(last.low.stop), zeros(last.low.stop), steps)
        return State(Server(x, problem.weights.to(x)), own)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y, layout = down.x.expand(len(clients), -1), problem.layout
        P, M, V, t = own.P, own.M, own.V, own.t
        for k in range(self.local_steps):
            g = problem.grads(y, xi[k])  # G_t
            due = t % self.period == 0
            if bool(due.any()):  # t mod T = 0: P_t from the SVD of G_t
                P = torch.where(due[:, None], self._projectors(layout, g), P)
            R = self._project(layout, P, g)  # R_t = P_t^T G_t
            t = t + 1
            if self.optimizer == "adam":
                M = self.beta1 * M + (1 - self.beta1) * R
                V = self.beta2 * V + (1 - self.beta2) * R**2
                M_hat, V_hat = (m / (1 - beta ** t.to(m))[:, None] for m, beta in ((M, self.beta1), (V, self.beta2)))
                R = M_hat / (V_hat.sqrt() + self.eps)  # N_t
            y = y - self.lr * self._lift(layout, P, R)  # W_t = W_{t-1} - eta alpha P N_t
            yield y
        return Up(y - down.x), Own(P, M, V, t)

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        return Server(server.x + p @ up.dy, server.weights), None

    def _pieces(self, layout: Layout) -> Iterator[Piece]:
        """A vector has no projector: all of it is left."""
        p = low = 0
        for layer in layout.layers:
            short, long = sorted((layer.rows, layer.cols))
            rank = 0 if short == 1 else min(self.rank, short)
            sizes = (short * rank, rank * long) if rank else (0, long)
            yield Piece(layer, layer.rows < layer.cols, rank, slice(p, p + sizes[0]), slice(low, low + sizes[1]))
            p, low = p + sizes[0], low + sizes[1]

    def _projectors(self, layout: Layout, g: torch.Tensor) -> torch.Tensor:
        """The first r singular vectors of each gradient's shorter side, largest entry positive, (S, p)."""
        parts = []
        for piece, G in zip(self._pieces(layout), layout.matrices(g)):
            if piece.rank:
                G = G if piece.wide else G.mT  # its rows are the shorter side
                finite = torch.isfinite(G).all((-2, -1), keepdim=True)  # a diverging client is stopped at its model
                U = torch.linalg.svd(torch.where(finite, G, 0.0), full_matrices=False)[0]
                U = U[..., : piece.rank]
                top = U.gather(-2, U.abs().argmax(-2, keepdim=True))
                parts.append((U * top.sign()).flatten(1))
        return torch.cat(parts, dim=1) if parts else g[:, :0]

    def _project(self, layout: Layout, P: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """P^T G, or G P where the columns are the shorter side; (S, d) -> (S, r)."""
        parts = []
        for piece, G in zip(self._pieces(layout), layout.matrices(g)):
            U = P[:, piece.P].unflatten(1, (-1, piece.rank)) if piece.rank else None
            parts.append((G if U is None else U.mT @ G if piece.wide else G @ U).flatten(1))
        return torch.cat(parts, dim=1)

    def _lift(self, layout: Layout, P: torch.Tensor, R: torch.Tensor) -> torch.Tensor:
        """alpha P R on each matrix (alpha R P^T), R itself on a vector; (S, r) -> (S, d)."""
        parts = []
        for piece in self._pieces(layout):
            low, (_, m, n) = R[:, piece.low], piece.layer
            if not piece.rank:
                parts.append(low.view(-1, m, n))
                continue
            U = P[:, piece.P].unflatten(1, (-1, piece.rank))
            N = low.unflatten(1, (piece.rank, n) if piece.wide else (m, piece.rank))
            parts.append(self.alpha * (U @ N if piece.wide else N @ U.mT))
        return layout.flatten(parts)


METHODS = [
    Method(
        "FedFTG",
        "low rank",
        lambda o: FedFTG(o.lr, o.local_steps, max(o.ranks)),
        Card(
            "FedAvg whose clients run GaLore: Adam on the gradient's projection on its own recent singular vectors.",
            "P_i = SVD_r(g_i) every T steps; y -= eta alpha P_i Adam(P_i^T g_i(y)); x += mean(y_i - x)",
            "With SGD at full rank and alpha = 1 it is FedAvg (law). Original: convex objectives only (so FedSub).",
            "Whole models cross. FedAvg's drift; clients move in different subspaces.",
        ),
        command=lambda o: FedFTG(o.lr, o.local_steps, o.rank),
        needs="matrices",
        rate=0.1,
    )
]
