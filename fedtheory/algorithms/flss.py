"""FLSS: Federated Learning in Streaming Subspace. Only its appendix is known, which prints no algorithm box.

Printed are C.1 (updates), C.5 with (7) (subspace) and Table 1 (what is projected, `sr`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, Known, Replay, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.signs import Signs
from fedtheory.maps.subspace import Trajectory


@dataclass(frozen=True)
class Streamed(Replay[tuple[torch.Tensor, Trajectory]]):
    """w_t and the SVD of G, for a client that holds those of an earlier round t' >= T0: the steps of t', ..., t-1.

    A projected round's step is (1/M) sum_k P^T g_t^k, R numbers; an unprojected one's is w_{t+1}, d numbers. Where the
    change is a column, the client adds it to its G as the server does. Who holds nothing is sent w_t and the SVD; so is
    everyone for whom that is smaller. Where all clients took part in every round, all have seen every global update,
    and each makes P itself.

    Fields:
        low: a projected round's step.
        since: t - T0.
        full: rounds between two unprojected ones since T0; 0: there is none.
        complete: whether all clients took part in every round.
    """

    low: Cost = field(kw_only=True)
    since: int = field(kw_only=True)
    full: int = field(kw_only=True)
    complete: bool = field(kw_only=True)

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        wide, dense = cost(self.value[0]), cost(self.value)
        return sum((self._steps(lag, wide, dense) or dense for lag in lags), Cost())

    def _steps(self, lag: int | None, wide: Cost, dense: Cost) -> Cost | None:
        """Price of the steps that a client lacks; None where it is sent the value."""
        if lag is None or (lag > self.since and not self.complete):
            return None
        wides = max(lag - self.since, 0)
        if self.full:
            wides += self.since // self.full - max(self.since - lag, 0) // self.full
        steps = wide * wides + self.low * (lag - wides)
        return steps if steps.bytes <= dense.bytes else None

    def missed(self, lag: int | None) -> int | None:
        return lag if self._steps(lag, cost(self.value[0]), cost(self.value)) else None

    @classmethod
    def received(cls, copy: Any) -> "Streamed":
        return cls(copy, None, low=Cost(), since=0, full=0, complete=False)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # w_t, (d,)
    G: Trajectory  # the SVD of the sampled global updates
    t: int
    complete: bool  # all clients took part in every round
    n: int  # N
    layout: Known[Layout]


@dataclass(frozen=True)
class Own:
    e: torch.Tensor  # what was not sent yet (SignSGD), (N, d)


@dataclass(frozen=True)
class Down:
    model: torch.Tensor | Streamed
    P: Known[Basis] | None  # made of the SVD that `model` brings; None in a round without projection

    @property
    def x(self) -> torch.Tensor:
        """w_t, (d,)."""
        return self.model.value[0] if isinstance(self.model, Streamed) else self.model


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # g_t^k, (S, d), or its coordinates P^T g_t^k, (S, r)


@dataclass(frozen=True)
class FLSS(Algorithm):
    """FedAvg or SignSGD for T0 rounds; then clients' updates are projected on the main directions of the global ones.

    The inner projection that C.1 prints (P^perp, or P^T: the extraction is unclear) cannot be the one on the
    complement. For Proj_P(Proj_{P^perp}(g)) = 0 and nothing would move; C.8 has Proj_P(Proj_P(g)) = Proj_P(g). What
    else the appendix leaves open is in `readings.flss`.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: tau.
        rank: R, of the whole model. While G grows only R of its singular vectors are kept: no more memory than P takes.
            The P that C.5 prints is the SVD of all of G (`readings.flss`, kept=J).
        warm_up: T0, rounds of the base method. B.3 and Table 4 point to 200 of 400. There 400 rounds of FLSS cost 0.21
            G = (200 + 40) * 878,538 on CIFAR-10 and 0.22 G = 240 * 924,708 on CIFAR-100.
        refresh: after the warm-up, every so many rounds one runs without projection, its global update becomes a column
            of G, and P is made anew; 0: P stays as it was at T0. A.2 has the subspace "continuously" updated. 5 costs
            the 40 * d of the last 200 rounds in Tables 3 and 4 (so would sending P once, R = 40).
            At 1 no round is projected: that is the base method, at the price of FLSS.
        base: "fedavg" or "signsgd" (with error feedback: Karimireddy et al. 2019; in projected rounds only of what the
            sign loses inside the span of P, all of it with `readings.flss`, residual="all").
        project: "update" sends P^T g_t^k. "gradient" makes local steps along P P^T grad F_k and sends g_t^k (d
            numbers); "both" sends its coordinates (Table 1). Without momentum g_t^k is then in the span of P already,
            so "both" and "gradient" train the same model.
        sr: factor of the local step size in projected rounds (Table 1's "scaled learning rates").

    Raises ValueError where the warm-up samples fewer than R global updates.
    """

    lr: float = by_problem()
    local_steps: int = 5
    rank: int = 5
    warm_up: int = 25
    refresh: int = 5
    base: str = "fedavg"
    project: str = "update"
    sr: float = 1.0
    name = "FLSS"
    averaged = True
    _more = "make warm_up longer"

    def __post_init__(self) -> None:
        checks.whole("warm_up", self.warm_up, 1)
        checks.whole("rank", self.rank, 1)
        if self.rank > self.columns:
            checks.reject("rank", self.rank, f"at most the {self.columns} updates sampled", self._more)
        checks.whole("refresh", self.refresh, 0)
        checks.choice("base", self.base, ("fedavg", "signsgd"))
        checks.choice("project", self.project, ("update", "gradient", "both"))
        if self.base == "signsgd" and self.project == "gradient":
            checks.reject("project", self.project, "'update' or 'both' with base='signsgd'", "project the update")
        checks.rate("sr", self.sr)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        checks.whole("rank", self.rank, 1, problem.d)
        own = Own(x.new_zeros(problem.kept, problem.d)) if self.base == "signsgd" else None
        return State(Server(x, self.empty(problem, x), 0, True, problem.n, Known(problem.layout)), own)

    def broadcast(self, server: Server, key: Key) -> Down:
        since = server.t - self.warm_up
        if since < 0:
            return Down(server.x, None)
        P = server.G.basis(self.rank)
        G = server.G if self.refresh else Trajectory(P.frames, ())  # P is all that is needed where G stays
        low, full = cost(server.x.new_empty(P.low.size)), self.full
        model = Streamed((server.x, G), None, low=low, since=since, full=full, complete=server.complete)
        return Down(model, Known(P) if self.projects(server.t) else None)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own | None, down: Down, key: Key):
        P = None if down.P is None else down.P.value
        lr = self.lr if P is None else self.local_lr
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            grad = problem.grads(y, xi[k])
            if P is not None and self.project != "update":
                grad = P.lift(P.project(grad))  # Table 1: Proj(grad F_k(w_{t,i}^k))
            y = y.sub(grad, alpha=lr)
            yield y
        g = y - down.x  # C.1: g_t^k = w_{t+1}^k - w_t
        if own is not None:
            return self.signed(g + own.e, P, problem.layout)
        return Up(g if P is None or self.project == "gradient" else P.project(g)), None  # (7): P^T g

    def server(
        self, server: Server, down: Down, up: Up | Signs, clients: torch.Tensor, key: Key
    ) -> tuple[Server, None]:
        P = None if down.P is None else down.P.value
        layout = server.layout.value if P is None else P.low
        sent = up.expand(self.groups(layout)) if isinstance(up, Signs) else up.dy
        change = self.mean(server, sent, clients)  # C.1: (1/M) sum_k ghat_t^k
        if P is not None:
            change = P.lift(self.scaled_up(P.project(change) if self.project == "gradient" else change))  # (7): P P^T g
        x, t, G = server.x + change, server.t, server.G
        if self.samples(t):  # C.5; the update as a client sees it that has both models
            G = self.grown(G, x - server.x if P is None else change)
        return replace(server, x=x, G=G, t=t + 1, complete=server.complete and len(clients) == server.n), None

    def signed(self, p: torch.Tensor, P: Basis | None, layout: Layout) -> tuple[Any, Own]:
        """SignSGD with error feedback: what is sent of p, and what is left for the next round."""
        if P is None:
            signs, sent = self.sign(p, layout)
            return signs, Own(p - sent)
        b = P.project(p)
        signs, sent = self.sign(b, P.low)
        return signs, Own(self.left(p, b, sent, P))

    # Which round does what

    def streams(self, t: int) -> bool:
        """Whether round t is one of those after the warm-up whose global update becomes a column of G."""
        return t >= self.warm_up and self.refresh > 0 and (t - self.warm_up + 1) % self.refresh == 0

    def samples(self, t: int) -> bool:
        """Whether round t's global update becomes a column of G."""
        return t < self.warm_up or self.streams(t)

    def projects(self, t: int) -> bool:
        """Whether round t is projected."""
        return t >= self.warm_up and not self.streams(t)

    @property
    def columns(self) -> int:
        """Global updates that the warm-up samples."""
        return self.warm_up

    @property
    def full(self) -> int:
        """Rounds between two without projection, after the warm-up; 0: there is none."""
        return self.refresh

    # The named steps: `readings.flss` puts another in the place of each.

    @property
    def local_lr(self) -> float:
        """The local step size of a projected round."""
        return self.sr * self.lr

    def mean(self, server: Server, sent: torch.Tensor, clients: torch.Tensor) -> torch.Tensor:
        """C.1's average over the participants, (M, ...)."""
        return sent.mean(0)

    def scaled_up(self, b: torch.Tensor) -> torch.Tensor:
        """The server's step in a projected round, (..., r)."""
        return b

    def empty(self, problem: Problem, x: torch.Tensor) -> Trajectory:
        """G before the first round."""
        return Trajectory.empty([problem.d], self.rank, x)

    def grown(self, G: Trajectory, change: torch.Tensor) -> Trajectory:
        """G with one more column."""
        return G.add(change)

    def left(self, p: torch.Tensor, b: torch.Tensor, sent: torch.Tensor, P: Basis) -> torch.Tensor:
        """What the signs `sent` of b = P^T p leave for the next round: what the sign lost."""
        return P.lift(b - sent)

    def sign(self, p: torch.Tensor, layout: Layout) -> tuple[Signs, torch.Tensor]:
        """The message, and what the server makes of it."""
        sizes = self.groups(layout)
        signs = Signs.of(p, sizes)
        return signs, signs.expand(sizes)

    def groups(self, layout: Layout) -> list[int]:
        """Entries that share a scale: all."""
        return [layout.size]


METHODS = [
    Method(
        "FLSS",
        "subspace",
        lambda o: FLSS(o.lr, o.local_steps, rank=max(1, o.rounds // 10), warm_up=max(1, o.rounds // 2)),
        Card(
            "Changes are projected on the main directions of the global updates so far.",
            "warm-up: FedAvg; then x += P P^T mean(y_i - x), P the SVD of past updates",
            "Its convex case, and the rate of C.4:",
            "Cheap only after the warm-up. Then the model moves outside P in full rounds only.",
            ("flss.thm-c31", "flss.cor-c41"),
        ),
        command=lambda o: FLSS(o.lr, o.local_steps, o.rank, warm_up=max(o.rank, o.rounds // 2)),
    ),
]
