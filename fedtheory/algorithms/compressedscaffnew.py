"""CompressedScaffnew: Condat, Agarsky, Richtarik 2022, "Provably Doubly Accelerated Federated Learning",
arXiv:2210.13277. Read from an author's code for its successor TAMUNA, which is this method where all clients take part.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms import scaffnew
from fedtheory.algorithms.flexlora import Up
from fedtheory.algorithms.scaffnew import Reply, Scaffnew
from fedtheory.core import checks
from fedtheory.core.algorithm import State
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Holders:
    """Which entries each client sends: entry j comes from s of n clients, at the places j s, ..., j s + s - 1."""

    place: torch.Tensor  # of each client in a random order of the n, (N,)
    n: int
    s: int

    @staticmethod
    def draw(key: Key, n: int, s: int) -> "Holders":
        return Holders(torch.randperm(n, generator=key.generator()), n, s)

    def at(self, place: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """q_i of the clients at these places: (S, d) bool, for vectors like `like`."""
        first = self.s * torch.arange(like.shape[-1], device=like.device)
        return (place[:, None] - first) % self.n < self.s

    @property
    def control(self) -> float:
        """chi, the largest of the theory where all clients take part: n (s - 1) / (s (n - 1))."""
        n, s = self.n, self.s
        return 1.0 if s == n else n * (s - 1) / (s * (n - 1))


@dataclass(frozen=True)
class Own(scaffnew.Own):
    place: torch.Tensor  # of each client in its last round's order, (N,) int64


@dataclass(frozen=True)
class Server(scaffnew.Server):
    n: int  # N
    s: int


@dataclass(frozen=True)
class Down(scaffnew.Down):
    holders: Seed[Holders]


@dataclass(frozen=True)
class CompressedScaffnew(Scaffnew):
    """Scaffnew whose clients send some of the entries, each entry from equally many clients.

    The box has all clients take part. Where some are away, an entry is averaged over those of its senders that are
    there, and stays where there is none.

    Fields:
        ratio: an entry comes from s = max(2, round(ratio N)) clients, and a client sends s/N of the entries.

    Others: as `Scaffnew`.
    """

    ratio: float = 1 / 8
    name = "CompressedScaffnew"
    averaged = False

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        self._require_steps(problem)
        h = x.new_zeros(problem.kept, problem.d)  # sum_i h_i = 0
        place = torch.zeros(problem.kept, dtype=torch.int64, device=x.device)
        return State(Server(x, problem.n, self._senders(problem.n)), Own(h, place))

    def broadcast(self, server: Any, key: Key) -> Down:
        make, dense = partial(Holders.draw, n=server.n, s=server.s), Cost(server.n, 8 * server.n)
        down = super().broadcast(server, key)
        return Down(down.x, down.steps, Seed(key.fold("holders"), make, dense))

    def client(self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key) -> Any:
        up, _ = yield from super().client(problem, clients, own, down, key)
        holders = self._holders(down)
        place = holders.place[clients.cpu()].to(own.place)
        kept = holders.at(place, up.dy)
        sent = up.dy * kept  # q_i o x_i
        return Up(sent, kept), Own(own.h - self._pull * holders.control * sent, place)

    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Server, Reply]:
        x = server.x + up.rows.sum(0) / up.kept.sum(0).clamp(min=1)  # x = (1/s) sum_i q_i o x_i
        return Server(x, server.n, server.s), Reply(x)

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Reply) -> Own:
        holders = self._holders(down)
        kept = holders.at(own.place[clients], own.h)
        pulled = self._pull * holders.control * (reply.x - down.x.value) * kept
        return Own(own.h.index_add(0, clients, pulled), own.place)  # h_i <- h_i + (p eta / gamma) q_i o (x - x_i)

    def as_sent(self, own: Any, down: Any, up: Any, sent: Any) -> Own:
        return Own(own.h - self._pull * self._holders(down).control * (sent.rows - up.rows), own.place)

    def _holders(self, down: Any) -> Holders:
        return down.holders.value

    def _senders(self, n: int) -> int:
        """s of n clients."""
        return min(n, max(2, round(self.ratio * n)))


METHODS = [
    Method(
        "CompressedScaffnew",
        "compressed",
        lambda o: CompressedScaffnew(o.lr, o.local_steps, ratio=o.ratio),
        Card(
            "Scaffnew in which each entry of the model comes from s of the N clients.",
            "y -= eta (g_i(y) - h_i), until a coin of probability 1/K says stop; x = sum(q_i o y_i) / s; "
            "h_i += chi q_i o (x - y_i) / (K eta), chi = N (s - 1) / (s (N - 1))",
            "s = N is Scaffnew; h_i sum to 0 and reach grad F_i(x*) if two or more take part (laws).",
            "x comes down whole. Few senders per entry take more rounds, and if clients are away, there may be none.",
        ),
    ),
]
