"""Tight constants of one round, by semidefinite programming (PEPit, solver CLARABEL).

The algorithms are linear in gradients. So one round of their own `broadcast`, `client` and `server` runs on *symbols*:
the gradients that it evaluates are rows of coefficients of free vectors, and so are the local points and the new model
that come out. A semidefinite program then asks which Gram matrix of the symbols is worst among all those that L-smooth
losses (convex or not) allow. The conditions that PEPit writes for this are necessary and sufficient, so the optimum is
the worst case over all losses in all dimensions. Reported is its *dual* value (weights with which the conditions add up
to the bound: a proof, to the solver's tolerance), and the primal one (losses that attain it) beside it.

Units: L = 1 (`lr` is eta L) and x = 0. Gradients are exact: sigma = 0.
Projectors: the symbols have `parts` orthogonal components and P_b keeps the b-th, b = 0, ..., parts - 1, each with the
same probability. One branch: any fixed projector. Both of two: complementary projectors with E[P^T P] = I/2, one of the
laws that the papers' assumptions admit: what is tight for it bounds, on one side, what is tight for all of them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms import fedsub
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.ssf import SSF, Own
from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Constants, Problem
from fedtheory.problems.quadratic import client_weights
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedsub import round as fedsub_round
from fedtheory.theory.instances import drain, fixed

TOLERANCES = 1e-7, 1e-6  # of the solver, on gap and feasibility: below the first CLARABEL stalls on some step sizes,
# and on some processors, which round otherwise, above it: then the second is asked for
ROOT = Key(1606)  # of the searches; nothing else is drawn


# One round in symbols


class Formal(Problem):
    """N clients whose k-th gradients are given, wherever they are evaluated: rows (K, N, d)."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows, self.n = rows, rows.shape[1]
        self.layout = Layout.single(rows.shape[2])
        self.dtype, self.device = rows.dtype, rows.device
        self.weights, self.constants = client_weights(None, self.n), Constants(L=1.0)

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[int]:
        return range(steps)

    def full(self, clients: torch.Tensor) -> int:
        return 0

    def grads(self, y: torch.Tensor, xi: int) -> torch.Tensor:
        return self.rows[xi]

    def losses(self, y: torch.Tensor, xi: int) -> torch.Tensor:
        raise NotImplementedError("symbols have no values: the program introduces them")


@dataclass(frozen=True)
class Symbols:
    """What a round's coefficients refer to, over B branches. All tensors end with d = parts * (number of symbols).

    Fields:
        G: grad F(x), (d,); e: free vectors of sum zero, (N, d).
        local: grad F_i at the local points, (B, K, N, d). At k = 0, grad F_i(x) is G + e_i, or G where `tilted`.
        after: grad F_i(x^+), (B, N, d).
        frames: P_b^T with orthonormal columns, (B, d, r).
        spare: more free vectors, for what a state keeps besides, (., d).
        unit: what a change of a gradient is measured in, eta L K: without it small steps are ill-conditioned.
    """

    G: torch.Tensor
    e: torch.Tensor
    local: torch.Tensor
    after: torch.Tensor
    frames: torch.Tensor
    spare: torch.Tensor
    unit: float

    @staticmethod
    def make(
        N: int, K: int, unit: float, parts: int = 1, branches: int | None = None, *, tilted: bool = True, spare: int = 0
    ) -> "Symbols":
        """`tilted`: for algorithms with controls. They see grad F_i - c_i + c only, so that a linear function added to
        F_i, and to c_i its gradient, changes nothing: all grad F_i(x) = G and c = 0 lose no generality, c_i = -e_i.
        """
        branches = parts if branches is None else branches
        count = 1 + N * branches * K + N - 1 + spare
        eye = torch.eye(parts * count, dtype=torch.float64)
        frames = eye.view(parts, count, -1)  # block b of the coordinates is component b of every symbol
        G, rest, free, more = frames.sum(0).split([1, N * branches * K, N - 1, spare])
        e = torch.cat([free, -free.sum(0, keepdim=True)])
        start = (G if tilted else G + e).expand(N, -1)
        later = start + unit * rest.view(branches, K, N, -1)
        local = torch.cat([start.expand(branches, 1, -1, -1), later[:, 1:]], 1)
        return Symbols(G[0], e, local, later[:, 0], frames[:branches].mT, more, unit)

    @property
    def start(self) -> torch.Tensor:
        """grad F_i(x), (N, d)."""
        return self.local[0, 0]


@dataclass(frozen=True)
class Traced:
    """Coefficients of a round: local points y_i^k, k < K, (B, K, N, d); x^+, (B, d); what clients keep, (B, N, d).

    Fields:
        kept: SSF's new controls; FedSub's new duals, lifted.
    """

    y: torch.Tensor
    x: torch.Tensor
    kept: torch.Tensor | None = None


def trace_ssf(at: Symbols, lr: float, control: torch.Tensor, server_lr: float = 1.0) -> Traced:
    """SSF with c_i = `control` and c their mean."""
    ys, xs, kept = [], [], []
    for frame, rows in zip(at.frames, at.local):
        problem, algorithm = Formal(rows), SSF(lr, len(rows), fixed(frame), server_lr=server_lr)
        server = replace(algorithm.init(problem, problem.start(), ROOT).server, c=control.mean(0))
        down = algorithm.broadcast(server, ROOT)
        path, (up, own) = drain(algorithm.client(problem, problem.clients, Own(control), down, ROOT))
        ys.append(down.P.value.lift(torch.stack([torch.zeros_like(path[0]), *path[:-1]])))
        xs.append(algorithm.server(server, down, up, problem.clients, ROOT)[0].x)
        kept.append(own.c)
    return Traced(torch.stack(ys), torch.stack(xs), torch.stack(kept))


def trace_fedavg(at: Symbols, lr: float) -> Traced:
    """FedAvg: P = I."""
    problem, algorithm = Formal(at.local[0]), FedAvg(lr, len(at.local[0]))
    path, x = play_fedavg(algorithm, problem, problem.start())
    return Traced(path[None], x[None])


def play_fedavg(algorithm: FedAvg, problem: Problem, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The local points, (K, N, d), and the new model of one round."""
    server = algorithm.init(problem, x, ROOT).server
    down = algorithm.broadcast(server, ROOT)
    path, (up, _) = drain(algorithm.client(problem, problem.clients, None, down, ROOT))
    new, _ = algorithm.server(server, down, up, problem.clients, ROOT)
    return torch.stack([x.expand_as(path[0]), *path[:-1]]), new.x


def trace_fedsub(at: Symbols, lr: float, control: torch.Tensor) -> Traced:
    """FedSub with c_i = P^T `control` and P^T P = (m/r) I."""
    ys, xs, duals = [], [], []
    m_r = at.frames.shape[1] / at.frames.shape[2]
    for frame, rows in zip(at.frames, at.local):
        problem, tau = Formal(rows), len(rows)
        algorithm = fedsub.FedSub(lr, tau, fixed(m_r**0.5 * frame, "isotropic"))
        P = algorithm.projection.draw(problem.layout, ROOT, torch.float64)
        dual = lr * tau * P.project(control)
        path, _, x, dual = fedsub_round.step(algorithm, problem, problem.start(), dual, P)
        ys.append(P.lift(torch.stack([torch.zeros_like(path[0]), *path[:-1]])))
        xs.append(x)
        duals.append(P.lift(dual))
    return Traced(torch.stack(ys), torch.stack(xs), torch.stack(duals))


# The semidefinite program


@dataclass(frozen=True)
class Tight:
    """The optimum of a program: its dual value (a bound) and its primal one (a worst case that exists).

    inf: unbounded, no constant does.
    """

    dual: float
    primal: float

    @property
    def gap(self) -> float:
        """|dual - primal|."""
        return abs(self.dual - self.primal)

    def guaranteed(self) -> "Tight":
        """Of a change to be at most `dual`: the decrease that is guaranteed."""
        return Tight(-self.dual, -self.primal)


class Program:
    """Losses F_1, ..., F_N of a class at x (where they are 0) and at the local points of a round.

    The class: L-smooth; convex as well; `strong` > 0: strongly convex with that mu besides.
    """

    def __init__(self, at: Symbols, traced: Traced, convex: bool, strong: float = 0.0) -> None:
        try:
            from PEPit import PEP, Point
        except ModuleNotFoundError:
            checks.reject("PEPit", None, "PEPit and clarabel", "pip install 'fedtheory[theory]'", ModuleNotFoundError)
        from PEPit.expression import null_expression
        from PEPit.functions import SmoothConvexFunction, SmoothFunction, SmoothStronglyConvexFunction

        self.at, self.pep = at, PEP()
        kind = SmoothStronglyConvexFunction if strong else SmoothConvexFunction if convex else SmoothFunction
        options = {"mu": strong} if strong else {}
        self.losses = [self.pep.declare_function(kind, L=1.0, **options) for _ in at.e]
        d, r = at.frames.shape[1:]
        self.leaves = [Point() for _ in range(d)]
        for j in range(d):
            for k in range(j):
                if j // r != k // r:  # different components of the symbols are orthogonal
                    self.pep.add_constraint(self.leaves[j] * self.leaves[k] == 0)
        for loss, gradient in zip(self.losses, at.start):
            loss.add_point((self.point(torch.zeros(d)), self.point(gradient), null_expression))
        for rows, y in zip(at.local, traced.y):
            for k in range(1, len(rows)):
                self.value(y[k], rows[k])

    def point(self, row: torch.Tensor) -> Any:
        from PEPit.point import null_point

        return sum((float(a) * leaf for a, leaf in zip(row, self.leaves) if a), null_point)

    def square(self, rows: torch.Tensor) -> Any:
        """The sum of ||row||^2."""
        return sum(self.point(row) ** 2 for row in rows.reshape(-1, rows.shape[-1]))

    def value(self, points: torch.Tensor, gradients: torch.Tensor) -> Any:
        """(1/N) sum_i (F_i(points_i) - F_i(x)), with grad F_i there; both (N, d)."""
        from PEPit import Expression

        values = []
        for loss, start, y, gradient in zip(self.losses, self.at.start, points, gradients):
            values.append(self.point(start) * self.point(y) + self.at.unit**2 * Expression())
            loss.add_point((self.point(y), self.point(gradient), values[-1]))
        return sum(values) / len(values)

    def maximise(self, metric: Any, *constraints: Any) -> Tight:
        import cvxpy

        for constraint in constraints:
            self.pep.add_constraint(constraint)
        self.pep.set_performance_metric(metric)
        dual, status = None, ""
        for tolerance in TOLERANCES:
            accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Solution may be inaccurate")  # the status says so
                dual = self.pep.solve(
                    wrapper="cvxpy", solver=cvxpy.CLARABEL, return_primal_or_dual="dual", verbose=0, **accuracy
                )
            assert self.pep.wrapper is not None  # set by solve
            status = self.pep.wrapper.prob.status
            if status != "optimal_inaccurate":
                break
        if status in ("unbounded", "unbounded_inaccurate"):
            return Tight(float("inf"), float("inf"))
        if status != "optimal":
            checks.reject("status", status, "'optimal' or 'unbounded'", "other step sizes", ArithmeticError)
        assert dual is not None
        assert self.pep.objective is not None
        return Tight(float(dual), float(self.pep.objective.eval()))


# The statements


def ssf_drift(K: int, lr: float, *, convex: bool = False, parts: int = 1, N: int = 1) -> Tight:
    """Lemma 2, sigma = 0: the smallest C with E_{i,t} <= C K^3 eta_l^2 G_{i,t}, i = 1, for every P.

    Printed: 12, for eta_l <= 1/(2KL).
    """
    at = Symbols.make(N, K, K * lr, parts, branches=1)
    traced = trace_ssf(at, lr, -at.e)
    program = Program(at, traced, convex)
    return program.maximise(program.square(traced.y[:, :, 0] / lr) / K**3, program.square(at.start[0] + at.e[0]) <= 1)


def fedavg_drift(K: int, lr: float, zeta2: float, *, convex: bool = False, N: int = 2) -> Tight:
    """The smallest C with E_drift <= C K^2 eta_l^2 ||grad F(x)||^2 where nothing corrects the clients' gradients, which
    differ: (1/N) sum_i ||grad F_i(x) - grad F(x)||^2 <= zeta2 ||grad F(x)||^2. SSF with exact controls has zeta2 = 0.
    """
    at = Symbols.make(N, K, K * lr, tilted=False)
    traced = trace_fedavg(at, lr)
    program = Program(at, traced, convex)
    limits = program.square(at.G) <= 1, program.square(at.e) / N <= zeta2
    return program.maximise(program.square(traced.y / lr) / (N * K**3), *limits)


def ssf_descent(K: int, eta: float, lr: float, *, convex: bool = False, parts: int = 1, N: int = 1) -> Tight:
    """Lemma 3, sigma = 0: the largest c with E F(x^+) <= F(x) - c rho eta ||grad F(x)||^2 + (3/2) L^2 eta E_drift.

    eta = eta_g eta_l K, any controls with mean c, rho = 1/parts. Printed: 1/4, for eta <= 1/(4L).
    """
    at = Symbols.make(N, K, K * lr, parts)
    traced = trace_ssf(at, lr, -at.e, eta / (lr * K))
    program = Program(at, traced, convex)
    gain = sum(program.value(x.expand_as(g), g) for x, g in zip(traced.x, at.after)) / parts
    drift = program.square(traced.y) / (parts * N * K)
    return program.maximise((parts / eta) * gain - 1.5 * parts * drift, program.square(at.G) == 1).guaranteed()


def one_round(K: int, eta: float, zeta2: float | None, *, convex: bool = False, N: int = 2) -> Tight:
    """The largest c with F(x^+) <= F(x) - c eta ||grad F(x)||^2, P = I, eta_g = 1, eta = eta_l K.

    zeta2 None: SSF with exact controls c_i = grad F_i(x). A number: FedAvg, heterogeneity as in `fedavg_drift`.
    Lemmas 2 and 3 together give SSF 1/4 - 18 (eta L)^2, for eta <= 1/(4L).
    """
    at = Symbols.make(N, K, eta, tilted=zeta2 is None)
    traced = trace_ssf(at, eta / K, at.start) if zeta2 is None else trace_fedavg(at, eta / K)
    program = Program(at, traced, convex)
    gain = program.value(traced.x.expand_as(at.e), at.after[0])
    limits = [] if zeta2 is None else [program.square(at.e) / N <= zeta2]
    return program.maximise(gain / eta, program.square(at.G) == 1, *limits).guaranteed()


def fedsub_drift(tau: int, lr: float, *, convex: bool = False, parts: int = 1, n: int = 1) -> Tight:
    """Lemma 1: the smallest C in place of its two 5, for every P of one layer with r = m/parts.

    Printed: 5, for (31), which is eta tau L_f <= 1/sqrt(32 m/r) with t + 1 = tau.
    """
    at = Symbols.make(n, tau, tau * lr, parts, branches=1)
    traced = trace_fedsub(at, lr, at.e)
    program = Program(at, traced, convex)
    low = lambda rows: rows @ at.frames[0] @ at.frames[0].mT  # P P^T is m/r times this projector
    Y = low(at.start) / parts + low(at.e)  # P Y_i/(eta tau): its square is m/r times that of Y_i/(eta tau)
    right = parts * program.square(Y - Y.mean(0)) + n / parts * program.square(low(at.G))
    return program.maximise(program.square(traced.y / lr) / (parts * tau**3), right <= 1)


def lyapunov_weight(tau: int, lr: float, n: int, repaired: bool) -> float:
    """What multiplies sum_i ||Y_i - Ybar||^2 in Omega of (40), or in Omega' of the repair, at P = I and L_f = 1."""
    return 20 / 3 * lr * (tau - 1) / n if repaired else 1 / n**2


def fedsub_descent(tau: int, lr: float, *, repaired: bool = False, convex: bool = False, n: int = 1) -> Tight:
    """Lemma 3 at P = I and L_f = 1: the largest c with Omega^{k+1} <= Omega^k - c eta tau ||grad f(x^k)||^2.

    Printed: 1/8, under (31), (39) and (44). `repaired`: with Omega' of the ledger's repair, for eta <= 1/(6 L_f tau).
    """
    t = lr * tau
    at = Symbols.make(n, tau, t)
    traced = trace_fedsub(at, lr, at.e)
    assert traced.kept is not None
    program = Program(at, traced, convex)
    gain = program.value(traced.x.expand_as(at.e), at.after[0])
    Y = t * at.after[0] + traced.kept[0]
    change = program.square(Y - Y.mean(0)) - program.square(t * at.e)
    metric = gain / t + lyapunov_weight(tau, lr, n, repaired) / t * change
    return program.maximise(metric, program.square(at.G) == 1).guaranteed()


# Evidence for the ledger


def settles(cases: Mapping[str, Callable[[], Tight]], printed: float, what: str, *, guaranteed: bool = False) -> Check:
    """The check of a printed constant against the tight ones, which must be at most it.

    Args:
        cases: name -> program, of constants that bound from above.
        guaranteed: the programs give guaranteed descents instead, which must be at least `printed`.
    """

    def check(effort: str) -> Outcome:
        found = {name: solve() for name, solve in cases.items()}
        margins = {name: printed / t.dual if guaranteed else t.dual / printed for name, t in found.items()}
        worst = max(margins.values())
        tight = ", ".join(f"{t.dual:.6g} at {name}" for name, t in found.items())
        gap = max(t.gap for t in found.values())
        said = f"{what}: printed {printed:g}, tight {tight} (dual values, CLARABEL, largest gap {gap:.1e})"
        holds = worst <= 1 and min(margins.values()) >= 0  # a descent that is not guaranteed has a negative margin
        return Outcome(holds, "sdp", worst, said, None if holds else {name: repr(t) for name, t in found.items()})

    return check
