"""FLSS: Federated Learning in Streaming Subspace. Only its appendix is known, which prints no algorithm box.

Printed are C.1 (updates), C.5 with (7) (subspace) and Table 1 (what is projected, `sr`); a field decides the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from fedtheory import checks
from fedtheory.algorithm import Algorithm, State
from fedtheory.key import Key
from fedtheory.layout import Layout
from fedtheory.message import Cost, Known, Replay, cost
from fedtheory.problem import Problem
from fedtheory.signs import Signs
from fedtheory.subspace import Basis, Trajectory


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

    def cost(self, lags: Sequence[int | None]) -> Cost:
        wide, total = cost(self.value[0]), Cost()
        dense = cost(self.value)
        for lag in lags:
            if lag is None or (lag > self.since and not self.complete):
                total += dense
                continue
            wides = max(lag - self.since, 0)
            if self.full:
                wides += self.since // self.full - max(self.since - lag, 0) // self.full
            steps = wide * wides + self.low * (lag - wides)
            total += min(steps, dense, key=lambda price: price.bytes)
        return total


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
    complement, for Proj_P(Proj_{P^perp}(g)) = 0 and nothing would move; C.8 has Proj_P(Proj_P(g)) = Proj_P(g).
    Where the appendix leaves a point open, a field decides it.

    Fields:
        lr: eta.
        local_steps: tau.
        rank: R, of the whole model or (`layerwise`) of each layer, there capped by the layer's size.
        warm_up: T0, rounds of the base method. B.3 and Table 4 point to 200 of 400: there 400 rounds of FLSS cost
            0.21 G = (200 + 40) * 878,538 on CIFAR-10 and 0.22 G = 240 * 924,708 on CIFAR-100.
        interval: every so many rounds of the warm-up, w_{t+1} - w_t becomes a column of G.
        refresh: after the warm-up, every so many rounds, the global update of a round becomes a column of G, and P is
            made anew; 0: P stays as it was at T0. A.2 has the subspace "continuously" updated. 5 with
            stream="full" costs the 40 * d of the last 200 rounds in Tables 3 and 4 (so would sending P once, R = 40).
        stream: that round runs "full", without projection, or "projected" like the others. The projected global
            update lies in the span of P, so with "projected" P turns within its span and nothing else happens, unless
            `kept` > `rank` or `forget` < 1 changes the order of the directions kept.
        base: "fedavg" or "signsgd" (with error feedback: Karimireddy et al. 2019).
        project: "update" sends P^T g_t^k. "gradient" makes local steps along P P^T grad F_k and sends g_t^k (d
            numbers); "both" sends its coordinates (Table 1). Without momentum g_t^k is then in the span of P already,
            so "both" and "gradient" train the same model.
        sr: factor of a step size in projected rounds: the "local" one (Table 1's "scaled learning rates") or the
            "server"'s, by `scaled`. With "update" and one local step the two agree.
        layerwise: one SVD per layer in place of one for the whole vector.
        normalise, centre: columns of G have norm 1; their mean is subtracted. With `centre` the mean update, along
            which the model moves most, need not be in the span of P.
        forget: the singular values so far are multiplied by it whenever a column comes; 1: G keeps all it has seen.
        kept: singular vectors kept while G grows, at least R (the default). kept = J is the SVD of the whole G, d x J.
        order: "project" sends the signs of the projected update, R bits; "sign" projects the signs and sends R numbers.
            Table 3's costs, 1.11 M against 35.14 M, are 1 : 32.
        residual: with SignSGD, what is left for the next round: what the "sign" lost (with order="project" R
            dimensions of it are not 0), or "all" that was not sent, also what the projection left out.
        scale: of the signs, over the whole vector that is signed ("model") or "layer" by layer.

    Raises ValueError where the warm-up samples fewer than R global updates.
    """

    lr: float
    local_steps: int
    rank: int
    warm_up: int
    interval: int = 1
    refresh: int = 5
    stream: str = "full"
    base: str = "fedavg"
    project: str = "update"
    sr: float = 1.0
    scaled: str = "local"
    layerwise: bool = False
    normalise: bool = False
    centre: bool = False
    forget: float = 1.0
    kept: int | None = None
    order: str = "project"
    residual: str = "sign"
    scale: str = "model"
    name = "FLSS"

    def __post_init__(self) -> None:
        checks.rate("lr", self.lr)
        checks.whole("local_steps", self.local_steps, 1)
        checks.whole("warm_up", self.warm_up, 1)
        checks.whole("interval", self.interval, 1)
        columns = self.warm_up // self.interval
        checks.whole("rank", self.rank, 1)
        if self.rank > columns:
            checks.reject("rank", self.rank, f"at most the {columns} updates sampled", "make warm_up longer")
        checks.whole("refresh", self.refresh, 0)
        checks.choice("stream", self.stream, ("full", "projected"))
        checks.choice("base", self.base, ("fedavg", "signsgd"))
        checks.choice("project", self.project, ("update", "gradient", "both"))
        if self.base == "signsgd" and self.project == "gradient":
            checks.reject("project", self.project, "'update' or 'both' with base='signsgd'", "project the update")
        checks.rate("sr", self.sr)
        checks.choice("scaled", self.scaled, ("local", "server"))
        for flag in ("layerwise", "normalise", "centre"):
            checks.instance(flag, getattr(self, flag), bool, "pass True or False")
        checks.number("forget", self.forget, 0.0, 1.0, open_low=True)
        if self.centre and self.forget < 1:
            checks.reject("forget", self.forget, "1 with centre=True", "choose one of the two")
        if self.kept is not None:
            checks.whole("kept", self.kept, self.rank)
        checks.choice("order", self.order, ("project", "sign"))
        checks.choice("residual", self.residual, ("sign", "all"))
        checks.choice("scale", self.scale, ("model", "layer"))

    def streams(self, t: int) -> bool:
        """Whether round t is one of those after the warm-up whose global update becomes a column of G."""
        return t >= self.warm_up and self.refresh > 0 and (t - self.warm_up + 1) % self.refresh == 0

    def projects(self, t: int) -> bool:
        """Whether round t is projected."""
        return t >= self.warm_up and not (self.stream == "full" and self.streams(t))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        checks.whole("rank", self.rank, 1, problem.d)
        slices = problem.layout.slices if self.layerwise else [slice(0, problem.d)]
        G = Trajectory.empty([where.stop - where.start for where in slices], self.kept or self.rank, x, self.centre)
        own = Own(x.new_zeros(problem.n, problem.d)) if self.base == "signsgd" else None
        return State(Server(x, G, 0, True, problem.n, Known(problem.layout)), own)

    def broadcast(self, server: Server, key: Key) -> Down:
        since = server.t - self.warm_up
        if since < 0:
            return Down(server.x, None)
        P = server.G.basis(self.rank)
        G = server.G if self.refresh else Trajectory(P.frames, ())  # P is all that is needed where G stays
        low = cost(server.x.new_empty(P.low.size))
        full = self.refresh if self.stream == "full" else 0
        value = (server.x, G)
        model = Streamed(value, None, low=low, since=since, full=full, complete=server.complete)
        return Down(model, Known(P) if self.projects(server.t) else None)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own | None, down: Down, key: Key):
        P = None if down.P is None else down.P.value
        lr = self.lr if P is None or self.scaled == "server" else self.sr * self.lr
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            grad = problem.grads(y, xi[k])
            if P is not None and self.project != "update":
                grad = P.lift(P.project(grad))  # Table 1: Proj(grad F_k(w_{t,i}^k))
            y = y.sub(grad, alpha=lr)
            yield y
        g = y - down.x  # C.1: g_t^k = w_{t+1}^k - w_t
        if own is None:
            return Up(g if P is None or self.project == "gradient" else P.project(g)), None  # (7): P^T g
        p = g + own.e
        if P is None or self.order == "sign":
            signs, sent = self._sign(p, problem.layout)
            if P is None:
                return signs, Own(p - sent)
            b = P.project(sent)
            return Up(b), Own(p - (sent if self.residual == "sign" else P.lift(b)))
        b = P.project(p)
        signs, sent = self._sign(b, P.low)
        return signs, Own(P.lift(b - sent) if self.residual == "sign" else p - P.lift(sent))

    def server(
        self, server: Server, down: Down, up: Up | Signs, clients: torch.Tensor, key: Key
    ) -> tuple[Server, None]:
        P = None if down.P is None else down.P.value
        layout = server.layout.value if P is None else P.low
        sent = up.expand(self._groups(layout)) if isinstance(up, Signs) else up.dy
        change = sent.mean(0)  # C.1: (1/M) sum_k ghat_t^k
        if P is not None:
            b = P.project(change) if self.project == "gradient" else change
            change = P.lift(self.sr * b if self.scaled == "server" else b)  # (7): P P^T g
        x = server.x + change
        G = self._grown(server, x - server.x if P is None else change)  # as a client sees it that has both models
        complete = server.complete and len(clients) == server.n
        return Server(x, G, server.t + 1, complete, server.n, server.layout), None

    def _grown(self, server: Server, change: torch.Tensor) -> Trajectory:
        """G with the round's global update, where it is sampled."""
        if self.streams(server.t) or (server.t < self.warm_up and (server.t + 1) % self.interval == 0):
            if self.normalise:
                change = change / torch.linalg.vector_norm(change).clamp(min=torch.finfo(change.dtype).tiny)
            return server.G.add(change, self.forget)  # C.5
        return server.G

    def _sign(self, p: torch.Tensor, layout: Layout) -> tuple[Signs, torch.Tensor]:
        """The message, and what the server makes of it."""
        sizes = self._groups(layout)
        signs = Signs.of(p, sizes)
        return signs, signs.expand(sizes)

    def _groups(self, layout: Layout) -> list[int]:
        """Entries that share a scale."""
        return [layer.rows * layer.cols for layer in layout.layers] if self.scale == "layer" else [layout.size]
