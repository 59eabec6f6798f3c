"""EF21-P with compressed uploads: Gruntkowska, Tyurin, Richtarik 2023, "EF21-P and Friends", arXiv:2209.15218."""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import Sampled, Sparse, count_kept, largest


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # x^t, (d,)
    w: torch.Tensor  # w^t: what the clients hold, (d,)
    h: torch.Tensor  # the mean of the h_i, (d,)
    last: Sparse  # the update that made w; 0 before the first round
    n: int  # N


@dataclass(frozen=True)
class Own:
    h: torch.Tensor  # h_i: shift of what is compressed (DIANA), (N, d)


@dataclass(frozen=True)
class Down:
    w: Replay[torch.Tensor]  # (d,)


@dataclass(frozen=True)
class EF21P(Algorithm):
    """Top-K of what the clients' model lacks goes down, Rand-K of their changes goes up.

    FedMUD: "the Rand-K and Top-K compressors are used to compress the local and global model updates". The paper's
    gradient at w^t becomes the change over K local steps from w^t, -gamma times it for one step. A client that was away
    is sent the sparse updates that it missed, or w where that is smaller. The positions of Rand-K cross as a seed,
    those of Top-K one by one: "compression ratio 1/32" (FedMUD) is 1/32 of the bytes up, 1/16 down in float32.

    Fields:
        lr: gamma, local step size; None: `pace` times the problem's `rate`.
        local_steps: K.
        ratio: of Rand-K, up.
        down_ratio: of Top-K, down; None: the same. Both at 1: FedAvg.
        unbiased: Rand-K times d/k, as the paper needs it; False sends the entries as they are, which adds no variance.
        beta: 0 is EF21-P + DCGD. Above 0 it is EF21-P + DIANA: a client compresses its change minus gamma h_i, and h_i
            follows by beta / gamma times the upload, so that gamma may fall. The paper's choice of beta is 1/(omega +
            1), which is `ratio`. Absent clients keep h_i, and the server adds the mean of all h_i (the paper has
            everyone take part).
        server_lr: step of x along the mean; 1: all of it.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    down_ratio: float | None = None
    unbiased: bool = True
    beta: float = 0.0
    server_lr: float = 1.0
    name = "EF21-P"
    pace = 0.03

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        if self.down_ratio is not None:
            checks.number("down_ratio", self.down_ratio, 0.0, 1.0, open_low=True)
        checks.number("beta", self.beta, 0.0, 1.0)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        zero = torch.zeros_like(x)
        server = Server(x, x, zero, self._top(zero), problem.n)  # w^0 = x^0
        return State(server, Own(x.new_zeros(problem.kept, problem.d)) if self.beta else None)  # h_i^0 = 0

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(Replay(server.w, server.last))

    def client(self, problem: Problem, clients: torch.Tensor, own: Own | None, down: Down, key: Key):
        w, d = down.w.value, problem.d
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = w.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        p, k = y - w if own is None else y - w - self.lr * own.h, count_kept(self.ratio, d)
        keys = [key.fold("positions", int(i)) for i in clients]
        up = Sampled.of(d / k * p if self.unbiased else p, k, keys)  # m_i = C_i(grad f_i(w^t) - h_i)
        return up, None if own is None else Own(own.h + self.beta / self.lr * up.expand(d))  # h_i <- h_i + beta m_i

    def server(self, server: Server, down: Down, up: Sampled, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        d = len(server.x)
        m = up.expand(d).mean(0)
        x = server.x + self.server_lr * (self.lr * server.h + m)  # x^{t+1} = x^t - gamma (h^t + m^t)
        h = server.h + self.beta / self.lr * len(clients) / server.n * m
        last = self._top(x - server.w)
        return Server(x, server.w + last.expand(d)[0], h, last, server.n), None  # w^{t+1} = w^t + C(x^{t+1} - w^t)

    def _top(self, p: torch.Tensor) -> Sparse:
        ratio = self.ratio if self.down_ratio is None else self.down_ratio
        return Sparse.of(p[None], largest(p.abs()[None], ratio, [len(p)]))


METHODS = [
    Method(
        "EF21-P",
        "compressed",
        lambda o: EF21P(o.lr, o.local_steps, o.ratio),
        Card(
            "Rand-k up, Top-k of what the clients lack down.",
            "x += mean(Rand-k(y_i - w)); w += Top-k(x - w)",
            "Rand-k is unbiased; both at full k are FedAvg (laws). Original: rates for both directions together.",
            "Rand-k has variance d/k - 1: at 1/32 the rate must fall with it.",
        ),
        rate=0.1,
    ),
]
