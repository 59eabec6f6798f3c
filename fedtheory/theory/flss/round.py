"""FLSS: one round on extreme instances with exact expectations, and how a display of App. C is attacked on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch

from fedtheory.algorithms.flss import FLSS, Down, Server, Up
from fedtheory.core.key import Key
from fedtheory.core.message import Known
from fedtheory.maps.subspace import Trajectory
from fedtheory.theory import bench
from fedtheory.theory.bench import Bench, about, largest_gap, require, spline
from fedtheory.theory.claim import Check, Outcome, Parts, Printed, entries
from fedtheory.theory.instances import Sample, Smooth, drain, exact, fixed, joint, orthogonal, subsets
from fedtheory.theory.rounding import digits

ROOT = Key(341)
SMOOTH = Printed("F_k is L-smooth", "App. C.8 (16)")
CONVEX = Printed("F_k is mu-strongly convex, mu >= 0", "App. C.8 (19); Corollary C.4.1")
UNBIASED = Printed("E_xi[grad F_k(w_t, xi)] = grad F_k(w_t)", "App. C.8 (19)")
BOUNDED = Printed("E||grad F_k(w_{t,i}^k, xi)||^2 <= G^2", "Assumption 3.4.3, as App. C.6 (10) and C.8 (28) use it")
SPAN = Printed("E[g_t] lies in span P", "Assumption 3.4.4, as App. C.5 (7) has it")
ORTHONORMAL = Printed("P holds the R leading left singular vectors of G, so that P^T P = I", "App. C.5")
STEP = Printed("0 < eta_t <= 1/(L (tau + 1))", "Theorem C.3.1; App. C.8 (23)")
UNIFORM = Printed("M_t is any of the C(N, M) sets of M clients, each as likely", "App. C.7 (12)")
ALL = (SMOOTH, CONVEX, UNBIASED, BOUNDED, SPAN)
GIVEN = "3.4.4 is read given w_t: E[g_t | w_t] lies in span P, and P is fixed before the round's draws"
GIVEN_TAKEN = "FLSS makes P from past updates and draws a batch in every step; a reading of E in 3.4.4"
FRESH = "every local step draws a fresh sample"


# An instance and one round on it


class Paths(Smooth):
    """A problem whose rows are a client's noise scenarios one after the other, for R rows of each client.

    FLSS's clients keep nothing between rounds that could bring the scenarios as an axis of its own.
    """

    def __init__(self, of: Smooth, steps: int, reuse: bool) -> None:
        vars(self).update(vars(of if of.noise is None else of.enumerated(steps, reuse=reuse)))
        self.rows = 1 if self.scenarios is None else len(self.scenarios)

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Sample]:
        if self.scenarios is None:
            return [self.full(clients)] * steps
        scenario = torch.arange(len(clients)) % self.rows
        return [Sample(clients, self.scenarios[scenario, k, None]) for k in range(steps)]


@dataclass(frozen=True)
class Instance:
    """A state of FLSS in its projected phase, and what its next round is drawn from. The minimiser w^* of F is 0.

    Fields:
        problem: the clients' losses, L-smooth and mu-strongly convex, with two-point noise.
        x: w_t, (d,).
        frame: P, (d, R).
        lr, tau, M: eta_t, tau, M.
        L, mu: the constants the statement is checked with.
        reuse: a client keeps one sample for all its local steps.
    """

    problem: Smooth
    x: torch.Tensor
    frame: torch.Tensor
    lr: float
    tau: int
    M: int
    L: float
    mu: float
    reuse: bool = False

    @property
    def N(self) -> int:
        return self.problem.n

    @property
    def sigma2(self) -> torch.Tensor:
        """A bound on the variance of the stochastic gradients."""
        noise = self.problem.noise
        return torch.zeros((), dtype=torch.float64) if noise is None else (noise**2).sum(-1).max()

    @property
    def q(self) -> float:
        """L (tau + 1)."""
        return self.L * (self.tau + 1)

    @property
    def B(self) -> float:
        """(4)."""
        return self.tau - self.tau / self.q

    @property
    def gamma(self) -> float:
        """gamma_t of C.8."""
        return 2 * self.lr * (1 - self.lr * self.q)

    def algorithm(self) -> FLSS:
        rank = self.frame.shape[1]
        return FLSS(self.lr, self.tau, rank, warm_up=rank, refresh=0)


@dataclass(frozen=True)
class Round:
    """All that the displays speak of: S noise scenarios per client, C of all clients together, B sets M_t.

    Fields:
        odds: of a client's scenarios, (S,); all_odds: of all clients' together, (C,).
        y: w_{t,i}^k, i = 1, ..., tau, (N, S, tau, d), with w_{t,1}^k = w_t.
        noisy: grad F_k(w_{t,i}^k, xi_{t,i}^k), the same shape.
        g: g_t^k, (N, S, d); ghat: what the server makes of its upload.
        served: what the server makes of the uploads of these clients, (C, d).
    """

    at: Instance
    odds: torch.Tensor
    all_odds: torch.Tensor
    y: torch.Tensor
    noisy: torch.Tensor
    g: torch.Tensor
    ghat: torch.Tensor
    served: Callable[[torch.Tensor], torch.Tensor]

    @cached_property
    def w(self) -> torch.Tensor:
        """w_{t+1}, (B, C, d)."""
        return torch.stack([self.served(chosen) for chosen in subsets(self.at.N, self.at.M)])

    @cached_property
    def v(self) -> torch.Tensor:
        """v_{t+1}, (C, d)."""
        return self.served(self.at.problem.clients)

    def E(self, values: torch.Tensor) -> torch.Tensor:
        """Over a client's scenarios: (N, S, ...) -> (N, ...)."""
        return torch.tensordot(self.odds, values.movedim(1, 0), dims=1)

    def over(self, values: torch.Tensor) -> torch.Tensor:
        """(1/N) sum_k sum_i E of values (N, S, tau)."""
        return self.E(values).sum(-1).mean(0)

    @cached_property
    def full(self) -> Sample:
        return self.at.problem.full(self.at.problem.clients)

    @cached_property
    def grad(self) -> torch.Tensor:
        """grad F_k(w_{t,i}^k), (N, S, tau, d)."""
        return self.at.problem.grads(self.y, self.full)

    @cached_property
    def G2(self) -> torch.Tensor:
        """The smallest G^2 of Assumption 3.4.3."""
        return self.E(square(self.noisy)).max()

    @cached_property
    def loss(self) -> torch.Tensor:
        """F_k(w_{t,i}^k), (N, S, tau)."""
        return self.at.problem.losses(self.y, self.full)

    @cached_property
    def start(self) -> torch.Tensor:
        """F_k(w_t), (N, 1, 1)."""
        return self.at.problem.values(self.at.x)[:, None, None]

    @cached_property
    def best(self) -> torch.Tensor:
        """F_k(w^*), (N, 1, 1)."""
        return self.at.problem.values(torch.zeros_like(self.at.x))[:, None, None]

    @cached_property
    def low(self) -> torch.Tensor:
        """F_k^*, (N, 1, 1)."""
        return lowest(self.at.problem)[:, None, None]

    @property
    def Gamma(self) -> torch.Tensor:
        return (self.best - self.low).mean()

    @property
    def gap(self) -> torch.Tensor:
        """F(w_t) - F^*."""
        return (self.start - self.best).mean()

    @property
    def D(self) -> torch.Tensor:
        """||w_t - w^*||^2."""
        return square(self.at.x)

    @property
    def moved(self) -> torch.Tensor:
        """w_{t,i}^k - w_t."""
        return self.y - self.at.x

    @cached_property
    def drift(self) -> torch.Tensor:
        """(1/N) sum_k sum_i E||w_{t,i}^k - w_t||^2."""
        return self.over(square(self.moved))

    @property
    def spread(self) -> torch.Tensor:
        """E||w_{t+1} - v_{t+1}||^2 over M_t and noise."""
        return (square(self.w - self.v) @ self.all_odds).mean()

    @property
    def after(self) -> torch.Tensor:
        """E||v_{t+1} - w^*||^2."""
        return square(self.v) @ self.all_odds

    @property
    def next(self) -> torch.Tensor:
        """E||w_{t+1} - w^*||^2."""
        return (square(self.w) @ self.all_odds).mean()

    @property
    def A3(self) -> torch.Tensor:
        return (self.E(self.ghat).mean(0) * self.at.x).sum()

    @property
    def B1(self) -> torch.Tensor:
        """The right side of (17)."""
        return -2 * self.at.lr * self.over((self.noisy * self.at.x).sum(-1))

    @property
    def C1(self) -> torch.Tensor:
        return 2 * self.at.lr * self.over((self.moved * self.noisy).sum(-1))

    @property
    def C2(self) -> torch.Tensor:
        return -2 * self.at.lr * self.over((self.y * self.noisy).sum(-1))

    @property
    def scale(self) -> torch.Tensor:
        """Something positive of the size of the terms (for the ascent's logarithms)."""
        return (self.D + self.at.lr**2 * self.at.tau**2 * self.G2).detach()


def square(v: torch.Tensor) -> torch.Tensor:
    """Return ||v||^2 over the last axis."""
    return (v**2).sum(-1)


def lowest(problem: Smooth) -> torch.Tensor:
    """F_k^*, (N,), of losses with positive curvature: coordinate by coordinate, bisection where phi' is no line."""
    h, b = problem.h, problem.b
    q = torch.eye(h.shape[1], dtype=h.dtype).expand(len(h), -1, -1) if problem.q is None else problem.q
    a = torch.zeros_like(h) if problem.a is None else problem.a
    pull = torch.einsum("njk,nk->nj", q, a) / h
    u = -pull
    if problem.shape != "quadratic":
        with torch.no_grad():  # the minimum's derivative is that of the loss at the minimiser
            assert problem.slopes is not None
            far = (pull.abs() + problem.slope(torch.zeros_like(u)).abs()) / problem.slopes.min() + 1
            left, right = -far, far
            for _ in range(60):
                u = (left + right) / 2
                up = problem.slope(u) + pull > 0
                left, right = torch.where(up, left, u), torch.where(up, u, right)
    return problem.losses(b + torch.einsum("njk,nj->nk", q, u), problem.full(problem.clients))


def play(at: Instance) -> Round:
    """One round through FLSS's own lines, in every noise scenario and for every M_t."""
    problem = Paths(at.problem, at.tau, at.reuse)
    algorithm, S, d = at.algorithm(), problem.rows, len(at.x)
    P = fixed(at.frame).draw(problem.layout, ROOT, torch.float64)
    clients = torch.arange(at.N).repeat_interleave(S)
    down = Down(at.x, Known(P))
    iterates, (up, _) = drain(algorithm.client(problem, clients, None, down, ROOT))
    points = torch.stack([at.x.expand(len(clients), -1), *iterates], 1)
    xi = problem.draw(clients, at.tau, ROOT)
    noisy = torch.stack([problem.grads(points[:, i], xi[i]) for i in range(at.tau)], 1).view(at.N, S, at.tau, d)
    assert isinstance(up, Up)
    y, b = points.view(at.N, S, at.tau + 1, d), up.dy.view(at.N, S, -1)
    odds = torch.ones(1, dtype=torch.float64) if problem.probability is None else problem.probability
    together = joint(odds, at.N)
    sent = together.pick(b)

    def served(chosen: torch.Tensor) -> torch.Tensor:
        empty = Trajectory.empty([d], at.frame.shape[1], at.x)
        server = Server(at.x, empty, algorithm.warm_up, True, at.N, Known(problem.layout))
        return algorithm.server(server, down, Up(sent[chosen]), chosen, ROOT)[0].x

    return Round(at, odds, together.probability, y[:, :, :-1], noisy, y[:, :, -1] - at.x, P.lift(b), served)


def outside(q: Round) -> torch.Tensor:
    """||(I - P P^T) E[g_t | w_t]||."""
    mean = q.E(q.g).mean(0)
    return torch.linalg.vector_norm(mean - q.at.frame @ (q.at.frame.T @ mean))


def slacks(at: Instance) -> dict[str, float]:
    """Every assumption with its slack; negative (beyond rounding) means broken."""
    problem, zero = at.problem, torch.zeros_like(at.x)
    steep = torch.ones(2, dtype=torch.float64) if problem.slopes is None else problem.slopes
    gram = at.frame.T @ at.frame - torch.eye(at.frame.shape[1], dtype=torch.float64)
    return {
        SMOOTH.text: at.L - float(problem.h.max() * steep.max()),
        CONVEX.text: float(problem.h.min() * steep.min()) - at.mu,
        "w^* = 0 minimises F": -float(problem.gradients(zero).mean(0).abs().max()),
        "P^T P = I": -float(gram.abs().max()),
        SPANNED: -float(outside(play(at))),
        STEP.text: 1 - at.lr * at.q,
        "eta_t <= 1/(mu B)": 1 - at.lr * at.mu * at.B,
    }


SPANNED = f"{SPAN.text}, given w_t"
ANY_STEP = (SMOOTH.text, CONVEX.text, "w^* = 0 minimises F", "P^T P = I", SPANNED)
ROUND = (*ANY_STEP, STEP.text)


def admissible(at: Instance, needs: Sequence[str] = ROUND) -> dict[str, float]:
    """The slacks; raises AssertionError where an assumption that is named is broken."""
    found = slacks(at)
    require(found, needs)
    return {name: round(value, 12) for name, value in found.items()}


ARRAYS = ("h", "b", "a", "q", "knots", "slopes", "noise", "gate")


def dump(at: Instance) -> dict[str, Any]:
    """An instance as data: exact rationals."""
    arrays = {name: exact(v) for name in ARRAYS if (v := getattr(at.problem, name)) is not None}
    numbers = {name: exact(getattr(at, name)) for name in ("x", "frame", "lr", "L", "mu")}
    return {"shape": at.problem.shape, **arrays, **numbers, "tau": at.tau, "M": at.M, "reuse": at.reuse}


# Search


@dataclass(frozen=True)
class Edge(bench.Edge):
    """The discrete side of an instance.

    Fields:
        N, M, tau, d, R: sizes; R = d is P = I. Where R < d, clients pull across P and cancel on average.
        shape: "quadratic" or "spline".
        L: smoothness; kappa: mu/L; share: eta_t L (tau + 1).
        noise: two-point noise; reuse: one sample for all local steps.
        still: w_t = w^*.
        tilted: w_t - w^* need not lie in span P, so that E[g_t | w_t] does not either.
    """

    N: int = 2
    M: int = 1
    tau: int = 2
    d: int = 2
    R: int = 2
    shape: str = "quadratic"
    L: float = 1.0
    kappa: float = 0.1
    share: float = 1.0
    noise: bool = True
    reuse: bool = False
    still: bool = False
    tilted: bool = False

    def __str__(self) -> str:
        told = [f"N = {self.N}, M = {self.M}, tau = {self.tau}, D = {self.d}, R = {self.R}"]
        for f in fields(self)[5:]:
            value = getattr(self, f.name)
            if value != f.default:
                names = {"noise": "no noise", "reuse": "one sample kept", "still": "w_t = w^*"}
                told.append(names.get(f.name, f"{f.name} {value}") if f.name != "shape" else value)
        return ", ".join(told)

    def parts(self) -> dict[str, int]:
        every = self.N * self.d
        spline = self.shape == "spline"
        return {
            "h": every,
            "a": every,
            "q": self.N * self.R * (self.R - 1) // 2,
            "x": self.d,
            "b": every if spline else 0,
            "spline": 7 if spline else 0,
            "noise": every if self.noise else 0,
        }


def build(z: torch.Tensor, edge: Edge) -> Instance:
    """The instance that the free numbers z describe; admissible unless the edge breaks something."""
    parts = edge.split(z)
    N, d, R, L = edge.N, edge.d, edge.R, edge.L
    mu, least = edge.kappa * L, max(edge.kappa, 0.05)
    h = L * (least + (1 - least) * torch.sin(parts["h"].view(N, d)) ** 2)
    h = torch.cat([h[:, :R], h[:1, R:].expand(N, -1)], 1)  # across P all clients have one curvature
    a = parts["a"].view(N, d)
    q = torch.eye(d, dtype=torch.float64).expand(N, -1, -1)
    if R > 1:
        turns = torch.stack([orthogonal(turn, R) for turn in parts["q"].view(N, -1)])
        q = torch.cat([torch.cat([turns, q[:, :R, R:]], 2), q[:, R:]], 1)
    noise = parts["noise"].view(N, d) if edge.noise else None
    if edge.shape == "spline":
        knots, bends = spline(parts["spline"])
        slopes = least + (1 - least) * torch.sin(bends) ** 2
        options = {"shape": "spline", "knots": knots, "slopes": slopes}
        problem = Smooth(torch.full_like(h, L), parts["b"].view(N, d), a=a, q=q, noise=noise, **options)
    else:
        problem = Smooth(h, torch.zeros_like(h), a=a, q=q, noise=noise)
    x = torch.zeros(d, dtype=torch.float64)
    problem = problem.replace(a=a - problem.gradients(x).mean(0))
    if not edge.still:
        within = torch.ones(d, dtype=torch.float64)
        within[R:] = float(edge.tilted)
        x = parts["x"] * within
    lr = edge.share / (L * (edge.tau + 1))
    frame = torch.eye(d, dtype=torch.float64)[:, :R]
    return Instance(problem, x, frame, lr, edge.tau, edge.M, L, mu, edge.reuse)


Terms = bench.Terms[Round]
Pairs = bench.Pairs[Round]


def edges(**changes: Any) -> list[Edge]:
    """The standard corners: tau = 1, N = 1, M = N, R < D, no noise, mu = 0 and mu = L, small and large L, w_t = w^*."""
    base = [
        Edge(tau=1),
        Edge(d=1, R=1),
        Edge(tau=3, M=2, R=1),
        Edge(N=3, M=2, shape="spline"),
        Edge(N=1, d=1, R=1, kappa=1.0),
        Edge(R=1, noise=False, kappa=0.0),
        Edge(N=1, tau=4, d=1, R=1, kappa=0.01, share=0.3),
        Edge(L=20.0),
        Edge(L=0.5, kappa=0.5, share=0.1),
        Edge(still=True),
        Edge(N=1, tau=1, d=1, R=1, kappa=0.01, still=True),
    ]
    return [replace(edge, **changes) for edge in base]


def rescaled(at: Instance, loss: float, variable: float) -> Instance:
    """Losses times a, variables times b."""
    slope = loss / variable**2
    return replace(
        at, problem=at.problem.rescaled(loss, variable), x=at.x * variable, lr=at.lr / slope, L=at.L * slope,
        mu=at.mu * slope,
    )  # fmt: skip


HELD = "{n} instances by ascent through FLSS.client and FLSS.server, worst at {edge}"
BENCH: Bench[Edge, Instance, Round] = Bench(
    ROOT, edges, build, play, dump,
    slacks=lambda at, needs: slacks(at), admissible=admissible, rescaled=rescaled, needs=ROUND,
    holds_text=HELD, breaks_text=f"broken after {HELD}", effort={"quick": (2, 6), "full": (8, 30)}, unit_edges=[Edge()],
    units_text=("its terms do not scale alike with the units", "all terms scale alike with the units"),
)  # fmt: skip
UNLIKE = "its terms do not scale alike (a step size stands where a pure number must), yet it is true in any unit"
attack, survives, broken, with_units = BENCH.attack, BENCH.survives, BENCH.stored, BENCH.with_units


def details(found: Parts) -> dict[str, Any]:
    """Each part's counterexample, with what was found."""
    return {name: {"found": part.detail, **(part.counterexample or {})} for name, part in found.items()}


def equal(pairs: Pairs, name: str, what: str = "", corners: Sequence[Edge] | None = None) -> Check:
    """The check of an identity: the largest gap, relative to the terms' size, at random instances of every corner."""

    def check(effort: str) -> Outcome:
        rounds = BENCH.rounds(name, corners, 2 if effort == "quick" else 20)
        found = largest_gap(rounds, pairs, lambda q, left, right: q.scale + right.abs().max())
        holds = found.size < 1e-11
        small = "below 1e-11" if holds else f"{found.size:.3g}"
        said = about(what, f"largest relative gap {small} over {found.rounds} rounds of FLSS")
        data = None if holds else {"gap": digits(found.size), "instance": dump(found.at)}
        return Outcome(holds, "exact", 0.0 if holds else digits(found.size), said, data)

    return check


flss = entries("flss")
