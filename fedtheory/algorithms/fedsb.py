"""Fed-SB: Singhal et al. 2025, "A Silver Bullet for Extreme Communication Efficiency and Performance in (Private)
Federated LoRA Fine-Tuning", arXiv:2502.15436. Read from the authors' code; here with plain SGD, on any model.
"""

import math
from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.message import Known, Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method

_Frames = tuple[tuple[torch.Tensor, torch.Tensor] | None, ...]  # B (m, r) and A (r, n) of each matrix; None: a vector


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W + B R A, (d,)
    base: torch.Tensor  # W, (d,)
    frames: _Frames
    u: torch.Tensor  # R of all matrices, and the vectors' change, (q,)
    t: int
    layout: Known[Layout]


@dataclass(frozen=True)
class Down:
    base: Replay[torch.Tensor]  # sent once
    frames: Replay[_Frames] | None  # sent once, from the second round on
    u: torch.Tensor | None  # (q,); None in the first round


@dataclass(frozen=True)
class Up:
    u: torch.Tensor  # R_i and the vectors' change, (S, q); in the first round the model after one step, (S, d)


@dataclass(frozen=True)
class FedSB(Algorithm):
    """Adapters B R A of which clients train R alone, so that the mean of the models is B mean(R_i) A.

    In the first round each client sends one full step from W. The mean step's truncated SVD gives B, R and A; B and A
    are then frozen. Vectors are trained whole. The authors' code makes the first step from pooled data, with the rate
    over its warm-up steps. Its script for many rounds averages the uploads of all rounds, as it never empties their
    list.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: K local steps of a round; the first round steps by the mean of K gradients at W.
        ratio: entries of R per entry of a matrix (m x n): r = ceil(sqrt(ratio m n)), at most the shorter side.
        sign: True makes the first step eta sign(g), as the authors' code does by Adam; False eta g.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    sign: bool = False
    name = "Fed-SB"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        checks.dtype("dtype", problem.dtype)  # of the SVD
        new, frames, q = x.new_zeros, [], 0
        for layer in problem.layout.layers:
            (_, m, n), r = layer, self._rank(layer)
            frames.append((new(m, r), new(r, n)) if r else None)
            q += r * r if r else m * n
        return State(Server(x, x.clone(), tuple(frames), new(q), 0, Known(problem.layout)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        t = server.t
        base = Replay(server.base, server.base, round=t, period=t + 1)  # it never changes
        if t == 0:
            return Down(base, None, None)
        frames = Replay(server.frames, server.frames, round=2 * t - 1, period=t)  # changed once, before round 1
        return Down(base, frames, server.u)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        W, layout = down.base.value, problem.layout
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        if down.frames is None or down.u is None:
            y = x = W.expand(len(clients), -1)
            g = torch.zeros_like(x)
            for k in range(self.local_steps):
                g = g + problem.grads(x, xi[k])
                y = x.sub(g, alpha=self.lr / (k + 1))
                yield y
            return Up(y), None
        frames, u = down.frames.value, down.u.expand(len(clients), -1)
        for k in range(self.local_steps):
            g = problem.grads(W + _lift(layout, frames, u), xi[k])
            u = u.sub(_project(layout, frames, g), alpha=self.lr)  # R <- R - eta B^T G A^T
            yield u
        return Up(u), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        layout, mean = server.layout.value, up.u.mean(0)  # R = mean(R_i)
        frames, u = self._first(layout, mean - server.base) if down.frames is None else (server.frames, mean)
        x = server.base + _lift(layout, frames, u)
        return replace(server, x=x, frames=frames, u=u, t=server.t + 1), None

    def _rank(self, layer: Layer) -> int:
        m, n = layer.rows, layer.cols
        return min(m, n, math.ceil(math.sqrt(self.ratio * m * n))) if min(m, n) > 1 else 0

    def _first(self, layout: Layout, step: torch.Tensor) -> tuple[_Frames, torch.Tensor]:
        """B, A = U_r, V_r^T and R = S_r of the first step of each matrix."""
        frames, u = [], []
        for layer, W in zip(layout.layers, layout.matrices(self.lr * step.sign() if self.sign else step)):
            r = self._rank(layer)
            if not r:
                frames.append(None)
                u.append(W.flatten())
                continue
            finite = bool(torch.isfinite(W).all())  # a diverging run is stopped at its model
            U, S, Vh = torch.linalg.svd(W if finite else torch.zeros_like(W), full_matrices=False)
            frames.append((U[:, :r].contiguous(), Vh[:r].contiguous()))
            u.append((S[:r].diag() if finite else W.new_full((r, r), torch.nan)).flatten())
        return tuple(frames), torch.cat(u)


def _lift(layout: Layout, frames: _Frames, u: torch.Tensor) -> torch.Tensor:
    """B R A; a vector as it is: (..., q) -> (..., d)."""
    parts, at = [], 0
    for layer, frame in zip(layout.layers, frames):
        shape = (layer.rows, layer.cols) if frame is None else (len(frame[1]),) * 2
        R, at = u[..., at : at + math.prod(shape)].unflatten(-1, shape), at + math.prod(shape)
        parts.append(R if frame is None else frame[0] @ R @ frame[1])
    return layout.flatten(parts)


def _project(layout: Layout, frames: _Frames, g: torch.Tensor) -> torch.Tensor:
    """B^T G A^T, the gradient in R; of a vector G: (..., d) -> (..., q)."""
    pairs = zip(layout.matrices(g), frames)
    return torch.cat([(G if frame is None else frame[0].mT @ G @ frame[1].mT).flatten(-2) for G, frame in pairs], -1)


METHODS = [
    Method(
        "Fed-SB",
        "low rank",
        lambda o: FedSB(o.lr, o.local_steps, o.ratio),
        Card(
            "The first full step fixes B and A; clients train the small R between them.",
            "B, R, A = SVD_r(-eta mean(g_i(W))); then R_i -= eta B^T g_i(W + B R_i A) A^T; R = mean(R_i)",
            "The model is the mean of the clients'; square B and A of full rank: FedAvg (laws). No rate here.",
            "Unless the Hessian is a multiple of I, B can miss even a solution of rank 1 (law).",
        ),
        needs="matrices",
    ),
]
