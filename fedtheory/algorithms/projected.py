"""FedAvg whose local steps follow the gradient's projection on a subspace of recent updates.

The projection is GaLore's: Zhao et al. 2024, arXiv:2403.03507v2, W <- W - eta P P^T G, with P the top singular vectors
of a recent gradient, renewed every T steps. In FedAvg it is what FedSub (its Sec. 1) describes as FedFTG.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.message import Cost, Known, Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.subspace import DenseBasis

_Frames = tuple[torch.Tensor | None, ...]  # P_l of each layer, (m_l, r_l); None: I, of a vector


@dataclass(frozen=True)
class Model(Replay[tuple[torch.Tensor, _Frames | None]]):
    """x_t and, in a projected round, P. Who took part in a projected round of this period has both of that round.

    It is sent the steps since, r numbers each; another client all of it, as is one for whom that is less.

    Fields:
        since: projected rounds since the last full one.
    """

    since: int = field(kw_only=True)

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        return super().cost([None if lag is None or lag > self.since else lag for lag in lags], clients)

    def missed(self, lag: int | None) -> int | None:
        return None if lag is None or lag > self.since else super().missed(lag)

    @classmethod
    def received(cls, copy: Any) -> "Model":
        return cls(copy, None, since=0)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    frames: _Frames
    b: torch.Tensor  # coordinates of the last step, (r,)
    t: int
    layout: Known[Layout]
    weights: torch.Tensor  # (N,)


@dataclass(frozen=True)
class Down:
    model: Model
    P: Known[Basis] | None  # made of the frames that `model` brings; None in a full round


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d), or its coordinates P^T (y_i - x), (S, r)


@dataclass(frozen=True)
class ProjectedFedAvg(Algorithm):
    """A full round of FedAvg gives P, the top left singular vectors of its update; the next rounds move along P only.

    A projected update has no part outside P, so only a full round can turn P: every T-th is one. FedSub writes that
    FedFTG's clients send whole models; here an update in the span of P crosses as its coordinates, which are all of it.
    Every matrix is compressed from the left, as in FedSub and SSF here (GaLore: its shorter side); vectors stay
    whole. With plain SGD, GaLore's scale alpha is in the learning rate.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: K.
        rank: r, of every matrix (at most its rows).
        period: T, rounds between two full ones; 1 is FedAvg.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    rank: int = 5
    period: int = 10
    weighted: bool = False
    name = "ProjectedFedAvg"
    averaged = True
    revision = 2  # 1 also sent the identities that are P_l of vectors

    def __post_init__(self) -> None:
        checks.whole("rank", self.rank, 1)
        checks.whole("period", self.period, 1)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        checks.dtype("dtype", problem.dtype)  # of the SVD
        low = self._low(problem.layout)
        frames = tuple(
            None if full.cols == 1 else x.new_zeros(full.rows, own.rows)
            for full, own in zip(problem.layout.layers, low.layers)
        )
        return State(Server(x, frames, x.new_zeros(low.size), 0, Known(problem.layout), problem.weights.to(x)), None)

    def _low(self, layout: Layout) -> Layout:
        """The subspace: r_l rows of every matrix, all rows of a vector."""
        rank = lambda layer: layer.rows if layer.cols == 1 else min(self.rank, layer.rows)
        return Layout(tuple(Layer(layer.name, rank(layer), layer.cols) for layer in layout.layers))

    def _frames(self, layout: Layout, change: torch.Tensor) -> _Frames:
        """P_l: the first r left singular vectors of the change of a matrix; None for a vector, whose P_l is I."""
        frames = []
        for W, low in zip(layout.matrices(change), self._low(layout).layers):
            if low.cols == 1:
                frames.append(None)
                continue
            eye = not bool(torch.isfinite(W).all())  # a diverging run is stopped at its model
            wide = low.rows > low.cols  # more vectors than the change has: any that complete them
            U = torch.eye(len(W)).to(W) if eye else torch.linalg.svd(W, full_matrices=wide)[0]
            frames.append(U[:, : low.rows].contiguous())
        return tuple(frames)

    def basis(self, layout: Layout, frames: _Frames, like: torch.Tensor) -> DenseBasis:
        """P, of the frames that cross; of a vector's both sides know it."""
        full = [torch.eye(layer.rows).to(like) if U is None else U for layer, U in zip(layout.layers, frames)]
        return DenseBasis(layout, self._low(layout), tuple(full))

    def broadcast(self, server: Server, key: Key) -> Down:
        t, layout = server.t, server.layout.value
        full = t % self.period == 0
        step, since = (server.b, (t - 1) % self.period) if t > 0 else (None, 0)
        model = Model((server.x, None if full else server.frames), step, round=t, since=since)
        return Down(model, None if full else Known(self.basis(layout, server.frames, server.x)))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        (x, _), P = down.model.value, None if down.P is None else down.P.value
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = x.expand(len(clients), -1)
        for k in range(self.local_steps):
            g = problem.grads(y, xi[k])
            y = y.sub(g if P is None else P.lift(P.project(g)), alpha=self.lr)  # W <- W - eta P P^T G
            yield y
        return Up(y - x if P is None else P.project(y - x)), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        change, frames, b, layout = p @ up.dy, server.frames, server.b, server.layout.value
        if down.P is None:
            frames = self._frames(layout, change)  # every T rounds
        else:
            b, change = change, down.P.value.lift(change)
        return Server(server.x + change, frames, b, server.t + 1, server.layout, server.weights), None


METHODS = [
    Method(
        "ProjectedFedAvg",
        "subspace",
        lambda o: ProjectedFedAvg(o.lr, o.local_steps, max(o.ranks)),
        Card(
            "Gradients are projected on the singular vectors of the last full round's update.",
            "y -= eta P P^T g_i(y); x += mean(y_i - x); every T-th round is full and makes P",
            "r = all rows or T = 1 is FedAvg (laws). No federated rate here; FedSub says of FedFTG: convex only.",
            "FedAvg's drift; between full rounds nothing happens outside P.",
        ),
        command=lambda o: ProjectedFedAvg(o.lr, o.local_steps, o.rank),
        needs="matrices",
    ),
]
