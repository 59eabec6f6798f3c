"""FedBuff: Nguyen et al. 2022, "Federated Learning with Buffered Asynchronous Aggregation", arXiv:2106.06639.

Read from the authors' code, facebookresearch/FLSim at 7311f2d: flsim/optimizers/async_aggregators.py:336,
flsim/utils/async_trainer/async_staleness_weights.py:85.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Held:
    """The server's last models, of which each client began with one.

    Fields:
        rows: the models, newest first, (delay + 1, d).
        age: how many rounds ago each client began, (N,).
    """

    rows: torch.Tensor
    age: torch.Tensor

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge a model for each receiver."""
        d = self.rows.shape[-1]
        return Cost(d, d * self.rows.element_size()) * len(lags)

    def of(self, clients: torch.Tensor) -> torch.Tensor:
        """The models of these clients, (S, d)."""
        return self.rows[self.age[clients.to(self.age.device)]]

    def crosses(self, whole: Any, client: int) -> torch.Tensor:
        """What client i is sent."""
        return self.rows[self.age[client]]

    def arrived(self, crossed: Any, whole: Any, client: int) -> "Held":
        """The message at client i, which has no other model."""
        x = checks.tensor("model", crossed, self.rows.shape[1:], self.rows.dtype)
        return Held(x[None], torch.zeros_like(self.age))


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    old: torch.Tensor  # the models of the last rounds, newest first, (delay, d)
    steps: torch.Tensor  # server steps before each of x and `old`, (delay + 1,)
    buffer: torch.Tensor  # sum of the changes that wait for a step, (d,)
    count: int  # how many they are
    n: int  # N


@dataclass(frozen=True)
class Down:
    x: Held


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x of when client i began, (S, d)


@dataclass(frozen=True)
class FedBuff(Algorithm):
    """The server buffers clients' changes and steps for every K of them. A change may be of an old model.

    Time is counted in rounds. A round's participants are the clients that finish in it, in random order. Each began
    with the model of 0 to `delay` rounds ago, drawn uniformly for every client and round. The model is charged when the
    client finishes. So a client may overlap with itself, as in FLSim. Seconds are not modelled, nor that slow clients
    finish less often. FLSim also steps for fewer changes at the end of an epoch, and divides `(1 + tau)^-power` by its
    value at a mean tau.

    Fields:
        lr: eta_l; None: `pace` times the problem's `rate`.
        local_steps: Q.
        buffer: K, changes in a server step; None: as many as finish in the round.
        delay: the most rounds between a client's begin and end.
        power: a change that is tau server steps old counts `(1 + tau)^-power`; 0: all count alike.
        server_lr: eta_g; K times FLSim's lr, which multiplies a sum.
    """

    lr: float = by_problem()
    local_steps: int = 5
    buffer: int | None = None
    delay: int = 4
    power: float = 0.5
    server_lr: float = 1.0
    name = "FedBuff"

    def __post_init__(self) -> None:
        if self.buffer is not None:
            checks.whole("buffer", self.buffer, 1)
        checks.whole("delay", self.delay, 0)
        checks.number("power", self.power, 0.0, 1.0)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        steps = torch.zeros(self.delay + 1, dtype=torch.int64, device=x.device)
        return State(Server(x, x.repeat(self.delay, 1), steps, torch.zeros_like(x), 0, problem.n), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        age = torch.randint(self.delay + 1, (server.n,), generator=key.fold("age").generator())
        return Down(Held(torch.cat([server.x[None], server.old]), age.to(server.x.device)))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        x = y = down.x.of(clients)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        return Up(y - x), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        S = len(clients)
        K, order = self.buffer or S, torch.randperm(S, generator=key.fold("order").generator())
        place = server.count + order.to(up.dy.device)  # of each change in the buffers from now on
        began = server.steps[down.x.age[clients.to(place.device)]]
        tau = server.steps[0] + place // K - began  # server steps since it began
        changes = up.dy * (1 + tau).to(up.dy)[:, None] ** -self.power
        full, count = divmod(server.count + S, K)
        waits = place >= full * K
        x, buffer = server.x, server.buffer
        if full:
            x = x + self.server_lr / K * (buffer + changes[~waits].sum(0))  # x += eta_g / K times the sum of K changes
            buffer = torch.zeros_like(x)
        buffer = buffer + changes[waits].sum(0)
        steps = torch.cat([server.steps[:1] + full, server.steps[:-1]])
        old = torch.cat([server.x[None], server.old])[: self.delay]
        return Server(x, old, steps, buffer, count, server.n), None


METHODS = [
    Method(
        "FedBuff",
        "full",
        lambda o: FedBuff(o.lr, o.local_steps),
        Card(
            "The server steps for every K changes that arrive, which may be of old models.",
            "z = x of 0 to 4 rounds ago; y = z; y -= eta g_i(y), Q times; x += mean of s (y_i - z) over K, s = 1 / "
            "sqrt(1 + tau), tau server steps after z",
            "If K is the cohort, it is FedAvg without delays; with them and s = 1 it rests where FedAvg does (laws). "
            "Original: a nonconvex rate.",
            "The largest stable step falls with the delay (law). Delays are drawn in rounds: no seconds are modelled.",
        ),
    ),
]
