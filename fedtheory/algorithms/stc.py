"""STC: Sattler et al. 2019, "Robust and Communication-Efficient Federated Learning from Non-IID Data".

arXiv:1903.02891. Algorithm 1 is the compressor, Algorithm 2 the training with a parameter server.
"""

from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem, later
from fedtheory.core.key import Key
from fedtheory.core.message import Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import Sparse, Ternary, largest


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # W, (d,)
    R: torch.Tensor  # what was not sent down yet, (d,)
    last: Ternary | Sparse  # the update that made x; 0 before the first round


@dataclass(frozen=True)
class Own:
    R: torch.Tensor  # R_i: what was not sent up yet, (N, d)


@dataclass(frozen=True)
class Down:
    x: Replay[torch.Tensor]  # (d,)


@dataclass(frozen=True)
class STC(Algorithm):
    """Sparse ternary updates in both directions, with an error accumulated at each end.

    A client that was away is sent the updates that it missed, one by one, or the model where that is smaller. (The
    paper has the server cache their partial sums.) The entries are chosen from the whole model, with one mu, as the
    boxes read; the authors' code does so tensor by tensor. A position and its sign cross as one 32-bit integer, in
    place of the paper's Golomb code, whose length depends on the data.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: b, local steps of a round.
        ratio: p_up, share of the entries that cross. The paper: 1/400. FLSS: a "compression ratio" of 1/32, read as
            one entry of 32, which here takes 1/32 of the bytes in float32, too.
        down_ratio: p_down; None: p_up.
        values: "ternary", mu times the sign; "own", each entry its own value, the sparsification that the paper starts
            from. With ratio=1 and "own" this is FedAvg; "ternary" then is scaled signs in both directions.
        ties: which entries as large as the k-th largest cross. "first": the first ones, so that k cross, as the paper
            prices a message. "printed": all of them, by Algorithm 1's mask |T| >= v, with mu = (1/k) sum |T masked|.
            With m of them at k = 1, mu is m times each entry, and what is left grows. "all": all of them, and mu the
            mean of the k largest, as in the authors' code. How many cross then depends on the data, and a message has
            room, and the price, of all d entries: both are for trajectories. Weights whose inputs are equal tie. On
            digits (20 clients, 60 rounds, 5 seeds) 8% of the messages have ties. Against "first", the accuracy is 0.1
            points (+-0.6) higher with "all" and 0.2 (+-1.0) lower with "printed".
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    down_ratio: float | None = None
    values: str = "ternary"
    ties: str = later("first")
    name = "STC"
    pace = 0.1

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        if self.down_ratio is not None:
            checks.number("down_ratio", self.down_ratio, 0.0, 1.0, open_low=True)
        checks.choice("values", self.values, ("ternary", "own"))
        checks.choice("ties", self.ties, ("first", "printed", "all"))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        zero = torch.zeros_like(x)
        server = Server(x, zero, self._compress(zero[None], self._down_ratio))  # Delta W, R <- 0
        return State(server, Own(x.new_zeros(problem.kept, problem.d)))  # R_i <- 0

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(Replay(server.x, server.last))

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        x = down.x.value  # W_i <- W_i + Delta W
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = x.expand_as(own.R)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        dW = own.R + y - x  # Delta W_i <- R_i + SGD(W_i, D_i, b) - W_i
        up = self._compress(dW, self.ratio)
        return up, Own(dW - up.expand(problem.d))  # R_i <- Delta W_i - STC(Delta W_i)

    def server(
        self, server: Server, down: Down, up: Ternary | Sparse, clients: torch.Tensor, key: Key
    ) -> tuple[Server, None]:
        d = len(server.x)
        dW = server.R + up.expand(d).mean(0)  # Delta W <- R + 1/|I_t| sum_i STC(Delta W_i)
        last = self._compress(dW[None], self._down_ratio)
        sent = last.expand(d)[0]
        return Server(server.x + sent, dW - sent, last), None  # W <- W + STC(Delta W), R <- Delta W - STC(Delta W)

    @property
    def _down_ratio(self) -> float:
        return self.ratio if self.down_ratio is None else self.down_ratio

    def _compress(self, dW: torch.Tensor, ratio: float) -> Ternary | Sparse:
        """Algorithm 1."""
        index = largest(dW.abs(), ratio, [dW.shape[-1]])
        if self.ties != "first":
            top = dW.abs().gather(-1, index)
            dW = dW.where(dW.abs() >= top.amin(-1, keepdim=True), 0.0)  # mask <- (|T| >= v)
            index = torch.arange(dW.shape[-1], device=dW.device).expand_as(dW)
            if self.values == "ternary":
                kept = dW.abs() if self.ties == "printed" else top
                mu = kept.sum(-1, keepdim=True) / top.shape[-1]  # mu <- 1/k sum_i |T_i^masked|
                return replace(Ternary.of(dW, index), scale=mu)
        return Ternary.of(dW, index) if self.values == "ternary" else Sparse.of(dW, index)


METHODS = [
    Method(
        "STC",
        "compressed",
        lambda o: STC(o.lr, o.local_steps, o.ratio),
        Card(
            "Top-k and ternary values in both directions, with an error at each end.",
            "sent_i = T(y_i - x + e_i); x += T(mean(sent_i) + e)",
            "k = d with own values is FedAvg; sent and kept sum up (laws). No rate.",
            "Errors grow old at clients that are seldom sampled.",
        ),
    ),
]
