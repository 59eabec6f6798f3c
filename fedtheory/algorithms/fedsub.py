"""FedSub: An Efficient Subspace Algorithm for Federated Learning on Heterogeneous Data, Algorithm 1."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Known, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.subspace import PROJECTIONS, Coordinate, Identity, Projection, fifth

Projector = Seed[Basis] | Known[Basis]


@dataclass(frozen=True)
class Renewed:
    """A seeded basis that is drawn anew every so many rounds: a receiver is sent the seeds that it lacks.

    Fields:
        latest: the seed of this round's basis.
        round: this round.
        period: rounds between two draws.
        ahead: 1 if the participants of a round leave it with the next round's basis, else 0.
        every: True for a receiver that needs each basis it missed (not one that holds no copy: it starts here).
    """

    latest: Seed[Basis]
    round: int
    period: int = 1
    ahead: int = 0
    every: bool = False

    @property
    def value(self) -> Basis:
        return self.latest.value

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge for clients that took part so many rounds ago (None: never), summed over them."""
        seeds = 0
        for lag in lags:
            lacked = 1 if lag is None else self.round // self.period - (self.round - lag + self.ahead) // self.period
            seeds += lacked if self.every else min(lacked, 1)
        return self.latest.cost([None] * seeds, ())

    def missed(self, lag: int | None) -> int:
        """How many of the last seeds a client is sent."""
        return self.cost([lag], ()).scalars

    @property
    def change(self) -> Seed[Basis] | None:
        """The seed that was drawn for this round, if one was."""
        return self.latest if self.round % self.period == 0 else None

    @property
    def copy(self) -> Seed[Basis]:
        """What a client holds afterwards."""
        return self.latest

    @classmethod
    def received(cls, copy: Seed[Basis]) -> "Renewed":
        """The part at a client that has the latest seed."""
        return cls(copy, 0)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # x^k, (d,)
    P: Projector  # P^k
    k: int


@dataclass(frozen=True)
class Own:
    dual: torch.Tensor  # Lambda_i, (N, r)
    sent: torch.Tensor  # B_i^{k,tau} (form "sums": U_i) of the last round a client took part in, (N, r)


@dataclass(frozen=True)
class Down:
    P: Renewed | Known[Basis]
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    B: torch.Tensor  # B_i^{k,tau} (form "sums": U_i), (S, r)


@dataclass(frozen=True)
class Reply:
    mean: torch.Tensor  # (1/n) sum_i B_i^{k,tau}, (r,)
    P_next: Projector | None  # P^{k+1}, None where the dual's coordinates stay


@dataclass(frozen=True)
class FedSub(Algorithm):
    """Local gradient steps in a random subspace per round, corrected by dual variables that live in it.

    What the paper leaves open, and what else could be meant, is in `readings.fedsub`.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: tau.
        projection: distribution of P^k. Assumption 1 is `scale="isotropic"`. `Identity()` is "our-P^k=I". None:
            `Coordinate`, of a fifth of each layer's rows.
        form: "printed" sends B_i and adds it to Lambda_i (lines 6-14). "sums" is the paper's own rewriting (13)-(19):
            the client sends U_i = -eta sum_t g_i, of the same size, and Lambda_i^{k+1} = (P^{k+1})^T P^k (U_i - mean
            U). Equal in exact arithmetic with S = n, where Lambda_i + B_i = U_i and sum_i Lambda_i = 0 (15). In
            floating point "printed" carries the rounding error of (15) from round to round. (P^{k+1})^T P^k multiplies
            it, by about sqrt(m/r) for `Spherical` and more for `Gaussian`; "sums" makes it anew.
        dual: False keeps Lambda_i = 0, and no reply crosses: with `Coordinate`, the paper's FedAvg-CD.

    All participants weigh the same, 1/S; the paper has S = n. Who is away keeps its dual and, when it is back, turns it
    through every P that it missed, whose seeds it is sent.
    """

    lr: float = by_problem()
    local_steps: int = 5
    projection: Projection = by_problem()
    form: str = "printed"
    dual: bool = True
    name = "FedSub"
    pace = 0.3
    averaged = True

    def __post_init__(self) -> None:
        checks.choice("form", self.form, ("printed", "sums"))

    def suited(self, problem: Problem) -> dict[str, Any]:
        return super().suited(problem) | {"projection": Coordinate(fifth(problem.layout))}

    @property
    def gradient_only(self) -> bool:
        return not self.dual

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        P = self.projection.seed(problem.layout, key.fold("P"), problem.dtype, problem.device)
        zeros = x.new_zeros(problem.kept, self.projection.low(problem.layout).size)
        return State(Server(x, P, 0), Own(zeros, zeros.clone()))  # 1

    def at_rate(self, lr: float, own: Own) -> tuple["FedSub", Own]:
        """Lambda is eta tau times a mean of gradients (16)."""
        return replace(self, lr=lr), own if lr == self.lr else Own(lr / self.lr * own.dual, own.sent)

    def broadcast(self, server: Server, key: Key) -> Down:
        P = server.P  # participants of the last round have it from the reply, where there is a dual
        if isinstance(P, Seed):
            P = Renewed(P, server.k, 1, ahead=int(self.dual), every=self.dual)
        return Down(P, server.x)  # 15

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        P, tau, lr, r_m = down.P.value, self.local_steps, self.eta(down), self.factor(problem)
        gradient = self.gradient(problem, P, down.x, problem.draw(clients, tau, key.fold("xi")))
        B = U = torch.zeros_like(own.dual)  # 4
        correction = own.dual / (lr * tau)
        for t in range(tau):  # 5
            g = r_m * gradient(B, t)
            B = B - lr * (g + correction)  # 6
            if self.form == "sums":
                U = U - lr * g
            yield B
        sent = B if self.form == "printed" else U
        return Up(sent), Own(own.dual, sent)  # 8

    def server(
        self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key
    ) -> tuple[Server, Reply | None]:
        P, P_next, mean = down.P.value, None, up.B.mean(0)  # 10
        x = server.x + P.lift(mean)  # 14
        if isinstance(server.P, Seed):  # a P that is known, as I, stays
            P_next = self.projection.seed(P.layout, key.fold("P"), x.dtype, x.device)
        return Server(x, P_next or server.P, server.k + 1), Reply(mean, P_next) if self.dual else None

    def close(self, own: Own, clients: torch.Tensor, down: Down, reply: Reply | None) -> Own:
        if reply is None:
            return own
        dual = self.moved(own, clients, reply)
        return Own(self.turn(dual, down.P.value, reply.P_next.value) if reply.P_next else dual, own.sent)  # 12

    def as_sent(self, own: Own, down: Down, up: Up, sent: Up) -> Own:
        return Own(own.dual, own.sent + (sent.B - up.B))

    # The named steps: `readings.fedsub` puts another in the place of each.

    def eta(self, down: Down) -> float:
        """6: the step size."""
        return self.lr

    def factor(self, problem: Problem) -> Any:
        """6: r/m, that is (P^T P)^{-1}; 1 for an orthonormal scale."""
        return 1 / self.projection.norm2(problem.layout, problem.dtype, problem.device)

    def gradient(self, problem: Problem, P: Basis, x: torch.Tensor, xi: Any) -> Callable[..., torch.Tensor]:
        """6: (B, t) -> P^T grad f_i(x + P B; xi_i^t)."""
        return lambda B, t: P.project(problem.grads(x + P.lift(B), xi[t]))

    def moved(self, own: Own, clients: torch.Tensor, reply: Reply) -> torch.Tensor:
        """12, in brackets: Lambda_i + B_i - mean B; form "sums" (16): eta sum_t (g_bar - g_i)."""
        change = own.sent[clients] - reply.mean
        if self.form == "printed":
            return own.dual.index_add(0, clients, change)
        return own.dual.index_copy(0, clients, change)

    def turn(self, dual: torch.Tensor, P: Basis, P_next: Basis) -> torch.Tensor:
        """12: (P^{k+1})^T (P^k (...))."""
        return P_next.project(P.lift(dual))


METHODS = [
    Method(
        "FedSub",
        "subspace",
        lambda o: FedSub(o.lr, o.local_steps, Coordinate(o.ranks)),
        Card(
            "Steps in a random subspace per round, with a dual variable against drift.",
            "B -= eta ((r/m) P^T g_i + Lambda_i / (eta tau)); x += P mean(B_i); Lambda_i turns into the next P",
            "P = I is SCAFFOLD (law). Its Theorem 1, its case P = I, and its dual in floating point:",
            "With SS the dual's rounding error grows by about sqrt(m/r) a round (law); with CD it dies out.",
            ("fedsub.thm1", "fedsub.thm1-obs-ii", "fedsub.float.mean-dual"),
        ),
        command=lambda o: FedSub(
            o.lr,
            o.local_steps,
            Identity() if o.projection == "identity" else PROJECTIONS[o.projection](o.rank),
            form=o.form,
        ),
    ),
    Method(
        "FedAvg-CD",
        "subspace",
        lambda o: FedSub(o.lr, o.local_steps, Coordinate(o.ranks), dual=False),
        Card(
            "FedSub without its dual: FedAvg along random coordinates. It needs none of its state.",
            "B -= eta (r/m) P^T g_i; x += P mean(B_i)",
            "P = I is FedAvg (law). What the paper says of it:",
            "FedAvg's drift.",
            ("fedsub.fedavgcd-better", "fedsub.dual-helps"),
        ),
        command=lambda o: FedSub(o.lr, o.local_steps, Coordinate(o.rank), dual=False),
    ),
]
