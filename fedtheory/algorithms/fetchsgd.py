"""FetchSGD: Rothchild et al. 2020, arXiv:2007.07682, Algorithm 1, on clients' changes."""

import math
from dataclasses import dataclass
from functools import partial

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Replay, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import Hashes, Sketch, Sparse, largest


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # w, (d,)
    S_u: torch.Tensor  # momentum, (1, rows, cols)
    S_e: torch.Tensor  # error, (1, rows, cols)
    hashes: Seed[Hashes]
    last: Sparse  # the update that made x; 0 before the first round


@dataclass(frozen=True)
class Down:
    x: Replay[torch.Tensor]  # (d,)
    hashes: Seed[Hashes]


@dataclass(frozen=True)
class FetchSGD(Algorithm):
    """Clients upload count sketches; momentum and error live in sketches at the server, which sends k entries down.

    The paper's gradient becomes the change over K local steps, which has lr in it: K = 1 and server_lr=1 are its eta.
    So the momentum, too, has the lr of its rounds in it; under a schedule the paper's, of gradients, is another one. A
    client keeps nothing. One that was away is sent the sparse updates that it missed, or the model where that is
    smaller. The hash functions are drawn once, and their seed is sent every time.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: K.
        ratio: k/d, of Top-k at the server: exactly k estimates, as in the public code; of equal ones, on which the
            paper is silent, the first.
        size: cells of the sketch, rows times columns, per entry of the model. FLSS's cost for it is 1/4 of FedAvg's.
        rows: of the table; odd, so that the median is one of them. With cols >= d (size >= rows) no two entries meet,
            and with ratio=1 and momentum=0 this is FedAvg.
        momentum: rho.
        server_lr: eta.
        clear: "subtract": the upload is subtracted from S_e, as printed. "zero": the cells that it touches are set to
            zero in S_e and in S_u (momentum factor masking), as in the public code. Where k is not small against the
            columns, the printed line takes the estimate's noise away as if it were signal. Then S_e grows ("this should
            work but doesn't (model diverges)", that code says of it). There eta stands before what is sent, not before
            S_u.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    size: float = 0.25
    rows: int = 5
    momentum: float = 0.9
    server_lr: float = 1.0
    clear: str = "subtract"
    name = "FetchSGD"
    pace = 0.01
    averaged = True

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        checks.number("size", self.size, 0.0, checks.MOST_PER_ROUND, open_low=True)
        checks.count("rows", self.rows)
        if self.rows % 2 == 0:
            checks.reject("rows", self.rows, "an odd number", f"use rows={self.rows + 1}")
        checks.number("momentum", self.momentum, 0.0, 1.0)
        checks.choice("clear", self.clear, ("subtract", "zero"))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        cols = math.ceil(self.size * problem.d / self.rows)
        cells = self.rows * problem.d
        checks.room("rows", self.rows, 24 * cells)
        checks.room("size", self.size, 4 * self.rows * cols * x.element_size())
        like = torch.empty_like(x)
        dense = Cost(2 * cells, cells * (8 + x.element_size()))
        hashes = Seed(key.fold("hashes"), partial(Hashes.draw, self.rows, cols, like=like), dense)
        zero = x.new_zeros(1, self.rows, cols)  # S_u, S_e <- 0
        return State(Server(x, zero, zero, hashes, self._top(torch.zeros_like(x)[None])), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(Replay(server.x, server.last), server.hashes)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        x = down.x.value
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        return Sketch.of(y - x, down.hashes.value), None  # S_i = S(g_i)

    def server(self, server: Server, down: Down, up: Sketch, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        hashes = server.hashes.value
        S_u = self.momentum * server.S_u + up.table.mean(0, keepdim=True)  # S_u <- rho S_u + (1/W) sum_i S_i
        S_e = self.server_lr * S_u + server.S_e  # S_e <- eta S_u + S_e
        last = self._top(Sketch(S_e).expand(hashes))  # Delta = Top-k(U(S_e))
        change = last.expand(len(server.x))
        sent = Sketch.of(change, hashes).table
        if self.clear == "subtract":
            S_e = S_e - sent  # S_e <- S_e - S(Delta)
        else:
            S_u, S_e = (S.where(sent == 0, 0.0) for S in (S_u, S_e))
        return Server(server.x + change[0], S_u, S_e, server.hashes, last), None  # w <- w - Delta

    def _top(self, p: torch.Tensor) -> Sparse:
        return Sparse.of(p, largest(p.abs(), self.ratio, [p.shape[-1]]))


METHODS = [
    Method(
        "FetchSGD",
        "compressed",
        lambda o: FetchSGD(o.lr, o.local_steps, o.ratio, momentum=0.0, clear="zero"),
        Card(
            "Count sketches add up; momentum and error live in the server's sketch.",
            "S_u = rho S_u + mean(sketch(y_i - x)); S_e += S_u; x += Top-k(S_e), whose cells are set to 0; rho = 0",
            "A sketch wide enough with k = d is FedAvg (law). Clients keep nothing.",
            "Unless few entries are large, noise of the estimates comes back as signal.",
        ),
    ),
]
