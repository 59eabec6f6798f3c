"""DGC: Lin et al. 2018, "Deep Gradient Compression", arXiv:1712.01887, its algorithm for vanilla momentum SGD."""

from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import Sparse, groups, largest


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Own:
    U: torch.Tensor  # U_i: momentum, (N, d)
    V: torch.Tensor  # V_i: momentum that was not sent yet, (N, d)


@dataclass(frozen=True)
class DGC(Algorithm):
    """Momentum is added up before it is thinned out, and stops where it was sent.

    The paper's gradient G becomes a client's change over K local steps (K = 1: -lr times the gradient). Its sum over N
    nodes of gradients divided by N becomes the mean over the participants. Who is absent keeps U and V as they were.
    Left out: warm-up training, the paper's rising sparsity in the first epochs. The public code sends biases and
    normalisation dense and clips each tensor; here all layers are thinned, and `clip` bounds the whole change.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: K.
        ratio: share of the entries of each layer that cross; the paper's sparsity of 99.9% is 0.001.
        momentum: m.
        masking: momentum factor masking: U is cleared where V was sent. At ratio=1 that is everywhere, and DGC is
            FedAvg; without masking it is FedAvg with momentum at every client.
        clip: largest norm of a change before it enters U ("local gradient clipping"); None: no limit. It is the local
            threshold itself: the paper makes it of the global one, divided by sqrt(N) for gradients divided by N.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    momentum: float = 0.9
    masking: bool = True
    clip: float | None = None
    name = "DGC"
    pace = 0.03

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        checks.number("momentum", self.momentum, 0.0, 1.0)
        if self.clip is not None:
            checks.number("clip", self.clip, 0.0, open_low=True)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x), Own(x.new_zeros(problem.kept, problem.d), x.new_zeros(problem.kept, problem.d)))

    def at_rate(self, lr: float, own: Own) -> tuple["DGC", Own]:
        """The paper's U and V hold gradients, these hold lr times as much."""
        return replace(self, lr=lr), own if lr == self.lr else Own(lr / self.lr * own.U, lr / self.lr * own.V)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand_as(own.U)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        G = y - down.x
        if self.clip is not None:
            norm = torch.linalg.vector_norm(G, dim=-1, keepdim=True)
            G = G * (self.clip / norm.clamp(min=self.clip))  # Local_Gradient_Clipping(G)
        U = self.momentum * own.U + G  # U <- m U + G
        V = own.V + U  # V <- V + U
        index = largest(V.abs(), self.ratio, groups(problem.layout, "layer"))  # Mask <- |V[j]| > thr, layer by layer
        up = Sparse.of(V, index)
        return up, Own(U.scatter(-1, index, 0.0) if self.masking else U, V.scatter(-1, index, 0.0))  # (.) * not Mask

    def server(self, server: Server, down: Down, up: Sparse, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        return Server(server.x + up.expand(len(server.x)).mean(0)), None  # theta <- SGD(theta, sum_k encode(G_k))


METHODS = [
    Method(
        "DGC",
        "compressed",
        lambda o: DGC(o.lr, o.local_steps, o.ratio),
        Card(
            "Momentum is added up before it is thinned out, and stops where it was sent.",
            "U = m U + y_i - x; V += U; x += mean(Top-k(V)); U, V = 0 where sent",
            "k = d is FedAvg (law). No rate.",
            "Two vectors of state per client; stale momentum without masking.",
        ),
        rate=0.1,
    ),
]
