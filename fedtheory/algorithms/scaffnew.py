"""Scaffnew: Mishchenko et al. 2022, "ProxSkip", arXiv:2202.09357 (ICML version), Algorithm 2."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Own:
    h: torch.Tensor  # h_i, (N, d)


@dataclass(frozen=True)
class Latest:
    """The model. A client of the last round has it from the reply, and is sent nothing."""

    value: torch.Tensor  # (d,)

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge the model to each other client."""
        return cost(self.value) * sum(lag != 1 for lag in lags)

    def missed(self, lag: int | None) -> int | None:
        """Return 0 for a client that has the model, None for one that is sent it."""
        return 0 if lag == 1 else None

    @property
    def change(self) -> None:
        """Nothing: there are no steps."""

    @property
    def copy(self) -> torch.Tensor:
        """What a client holds afterwards."""
        return self.value

    @classmethod
    def received(cls, copy: torch.Tensor) -> "Latest":
        """The part at a client that has the model."""
        return cls(copy)


@dataclass(frozen=True)
class Down:
    x: Latest
    steps: int | None  # up to the coin's first 1; None: `local_steps`


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


@dataclass(frozen=True)
class Reply:
    x: torch.Tensor  # the mean of the y_i, (d,)


@dataclass(frozen=True)
class Scaffnew(Algorithm):
    """Local steps with a control variate, and an average at each 1 of a coin that all clients share.

    A round lasts from one average to the next. The box has all clients take part; where some are away, the average is
    of the others, and those away keep their h_i.

    Fields:
        lr: gamma; None: `pace` times the problem's `rate`.
        local_steps: 1/p, the mean number of local steps of a round.
        coin: True tosses the coin of lines 2-3; False makes exactly `local_steps` steps in every round.
    """

    lr: float = by_problem()
    local_steps: int = 5
    coin: bool = True
    name = "Scaffnew"
    averaged = True

    @property
    def gradient_only(self) -> bool:
        return False

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        self._require_steps(problem)
        return State(Server(x), Own(x.new_zeros(problem.kept, problem.d)))  # 1: sum_i h_i = 0

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(Latest(server.x), self._first_one(key.fold("coin")) if self.coin else None)  # 2-3

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        steps = self.local_steps if down.steps is None else down.steps
        xi, x = problem.draw(clients, steps, key.fold("xi")), down.x.value
        y = x.expand_as(own.h)
        for k in range(steps):
            y = y.sub(problem.grads(y, xi[k]) - own.h, alpha=self.lr)  # 6
            yield y
        return Up(y - x), Own(own.h - self._pull * (y - x))  # 12, all but the average

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, Reply]:
        x = server.x + up.dy.mean(0)  # 8
        return Server(x), Reply(x)

    def close(self, own: Own, clients: torch.Tensor, down: Down, reply: Reply) -> Own:
        pulled = (self._pull * (reply.x - down.x.value)).expand(len(clients), -1)
        return Own(own.h.index_add(0, clients, pulled))  # 12: h_i <- h_i + (p / gamma) (x_i - y_i)

    def as_sent(self, own: Own, down: Down, up: Up, sent: Up) -> Own:
        return Own(own.h - self._pull * (sent.dy - up.dy))

    def _require_steps(self, problem: Problem) -> None:
        if self.coin and self.local_steps > 1 and getattr(problem, "epochs", None) is not None:
            expected = "False where a round is a number of epochs, which have as many steps each time"
            checks.reject("coin", True, expected, "pass coin=False, or construct the problem with epochs=None")

    @property
    def _pull(self) -> float:
        """p / gamma."""
        return 1 / (self.local_steps * self.lr)

    def _first_one(self, key: Key) -> int:
        """The number of tosses up to the first 1: geometric, of mean `local_steps`."""
        u = float(torch.rand((), generator=key.generator(), dtype=torch.float64))
        return 1 if self.local_steps == 1 else 1 + int(math.log1p(-u) / math.log1p(-1 / self.local_steps))


METHODS = [
    Method(
        "Scaffnew",
        "full",
        lambda o: Scaffnew(o.lr, o.local_steps),
        Card(
            "A control variate in each client, and an average at the toss of a coin.",
            "y -= eta (g_i(y) - h_i), until a coin of probability 1/K says stop; x = mean(y_i); "
            "h_i += (x - y_i) / (K eta)",
            "h_i sum to 0 and reach grad F_i(x*) if two or more take part; at K = sqrt(kappa) rounds grow as K (laws).",
            "Beyond K = sqrt(kappa) more local steps slow it down, for h_i moves by 1/K of what it lacks (law).",
        ),
    ),
]
