"""FLSS: the corollaries of C.4 and the proofs of C.9 and C.10."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.flss.proof import (
    FAR,
    KEPT,
    POINT,
    PURE,
    THIN,
    S,
    blind,
    check_C,
    eq30_chain,
    eq30_sum,
    needs_chain,
    ranges,
    ratchet,
    sharp,
    sharp_chain,
    sharp_pieces,
    squares,
)
from fedtheory.theory.flss.round import (
    ANY_STEP,
    BENCH,
    BOUNDED,
    CONVEX,
    SMOOTH,
    STEP,
    UNBIASED,
    UNIFORM,
    Edge,
    Instance,
    admissible,
    build,
    dump,
    equal,
    flss,
    play,
    square,
    with_units,
)
from fedtheory.theory.forms import chain
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import ROUNDING, implies, number, ratio, reals

# Runs over several rounds, every path of noise and client sets


@dataclass(frozen=True)
class Path:
    """A run of FLSS.

    Fields:
        at: problem and constants; x is where it starts.
        deltas: E||w_t - w^*||^2 after 0, 1, ... rounds; gaps: E F(w_t) - F^*.
        G2: the least G^2 of the run: the largest E||grad F_k(w_{t,i}^k, xi)||^2, over noise and all that came before.
        Gamma: of (4).
    """

    at: Instance
    deltas: list[float]
    gaps: list[float]
    G2: float
    Gamma: float

    @property
    def C(self) -> float:
        """(4) with rho_R = 0, the smallest right side there is."""
        at = self.at
        noise = (2 + at.mu) * self.G2 * squares(at.tau) + 2 * at.tau**2 * self.G2 / at.M
        return noise + (2 * at.L * at.tau**2 + 4 * at.L * at.tau) * self.Gamma


def path(at: Instance, lrs: Sequence[float]) -> Path:
    """One round per step size, all paths enumerated."""
    problem, states, odds = at.problem, at.x[None], torch.ones(1, dtype=torch.float64)
    best = float(problem.values(torch.zeros_like(at.x)).mean())
    G2 = 0.0
    deltas, gaps = [float(square(at.x))], [float(problem.values(at.x).mean()) - best]

    def played(x: torch.Tensor, lr: float) -> tuple[torch.Tensor, ...]:
        q = play(replace(at, x=x, lr=lr))
        return q.E(square(q.noisy)), q.w.flatten(0, 1), q.all_odds.repeat(len(q.w)) / len(q.w)

    for lr in lrs:
        one = functools.partial(played, lr=lr)
        if len(states) == 1:
            squared, after, weights = (part[None] for part in one(states[0]))
        else:  # of a few numbers nearly all the time is overhead, which a batch pays once
            squared, after, weights = torch.func.vmap(one)(states)
        G2 = max(G2, float(torch.tensordot(odds, squared, dims=1).max()))
        states, odds = after.flatten(0, 1), (odds[:, None] * weights).flatten()
        deltas.append(float(square(states) @ odds))
        gaps.append(float(problem.values(states).mean(0) @ odds) - best)
    return Path(at, deltas, gaps, G2, float(play(at).Gamma))


# tau = 1 with noise and sampled clients over three rounds; long runs without either
RUNS = [
    (Edge(tau=1, d=1, R=1), 3),
    (Edge(tau=1, R=1, kappa=0.5), 3),
    (Edge(d=1, R=1), 2),
    (Edge(tau=1, N=1, d=1, R=1, still=True, kappa=1.0), 5),
    (PURE, 5),
    (replace(POINT, L=2.0), 5),
    (Edge(M=2, noise=False), 40),
    (Edge(M=2, noise=False, L=20.0, kappa=0.5), 40),
    (replace(THIN, M=2, noise=False), 40),
    (Edge(tau=3, N=1, M=1, noise=False, shape="spline"), 40),
]
SLOW = [  # L (tau + 1) < 1, where B < 0: C.4.1 asks for no eta <= 1/(mu B), and the bound grows with T
    (replace(POINT, L=0.25), 5),
    (Edge(tau=1, d=1, R=1, L=0.2, kappa=0.5), 3),
    (Edge(d=1, R=1, L=0.3), 2),
    (Edge(M=2, noise=False, L=0.1, kappa=0.5), 40),
]
NOISY = [(PURE, 1)]  # where (32) is tight
QUIET = [(replace(POINT, L=2.0), 1)]  # where (6) is tightest
FEW = [*RUNS[:2], (replace(POINT, L=2.0), 5)]
Bounds = Callable[[Path, int], tuple[float, float]]  # a run and T -> (left, right)


def schedule(at: Instance, rounds: int) -> list[float]:
    """eta_1, eta_2, ... of Corollary C.4.2."""
    first = schedule_start(at)
    return [2 / (at.mu * at.B * (first + t)) for t in range(1, rounds + 1)]


def schedule_start(at: Instance) -> float:
    """gamma of Corollary C.4.2."""
    return 2 * at.q**2 / (at.mu * at.tau * (at.q - 1)) - 1


def eq32(noise: float = 1.0) -> Bounds:
    def bounds(run: Path, T: int) -> tuple[float, float]:
        at = run.at
        keep = 1 - at.mu * at.lr * at.B
        total = sum(at.lr**2 * keep ** (T - t) * run.C for t in range(1, T + 1))
        return run.deltas[T], keep**T * run.deltas[0] + noise * total

    return bounds


def eq33(noise: float = 1.0) -> Bounds:
    """(5), (33): also the step from ||.||^2 to F."""

    def bounds(run: Path, T: int) -> tuple[float, float]:
        return run.gaps[T], run.at.L / 2 * eq32(noise)(run, T)[1]

    return bounds


def right_of_6(run: Path, T: int, less: int = 1) -> float:
    """kappa/(gamma + T - less) (...): less = 1 is (6), less = 0 is (36)."""
    at, first = run.at, schedule_start(run.at)
    bracket = 2 * run.C / (at.mu * at.B**2) + at.mu * (first + 1) / 2 * run.deltas[0]
    return at.L / at.mu / (first + T - less) * bracket


def eq6(share: float = 1.0, less: int = 1) -> Bounds:
    """T - 1 rounds lead from w_1 to w_T."""
    return lambda run, T: (run.gaps[T - 1], share * right_of_6(run, T, less))


@cache
def drawn_run(corner: Edge, rounds: int, falling: bool, place: int, trial: int) -> Path:
    """The run from a random instance of a corner; with the step sizes of C.4.2, or a constant one."""
    at = BENCH.drawn(corner, "run", place, trial)
    return path(at, schedule(at, rounds) if falling else [at.lr] * rounds)


def corollary(
    bounds: Sequence[Bounds],
    falling: bool,
    mu_zero: bool = False,
    runs: Sequence[tuple[Edge, int]] = RUNS,
) -> Check:
    """The bounds along runs of FLSS; falling: with the step sizes of C.4.2, else with two constant ones."""

    def check(effort: str) -> Outcome:
        worst, where, count = 0.0, None, 0
        for number_, (edge, rounds) in enumerate(runs):
            for share in (1.0,) if falling else (1.0, 0.2):
                for i in range(2 if effort == "quick" else 12):
                    corner = replace(edge, share=share, kappa=0.0 if mu_zero else edge.kappa)
                    run = drawn_run(corner, rounds, falling, number_, i)
                    for T in range(1, rounds + 1):
                        count += 1
                        for pair in bounds:
                            value = ratio(*pair(run, T))
                            if value > worst:
                                worst, where = value, (run, T, pair)
        holds = worst <= 1 + ROUNDING
        said = f"{count} points of runs of FLSS, all paths of noise and client sets enumerated, rho_R = 0"
        return outcome(holds, worst, said, where)

    return check


def outcome(holds: bool, margin: float, said: str, where: tuple[Path, int, Bounds] | None) -> Outcome:
    """What a bound along runs came to; where: the worst run, T and bound."""
    if holds or where is None:
        return Outcome(holds, "run", margin, said)
    run, T, pair = where
    left, right = pair(run, T)
    data = {"T": T, "instance": dump(run.at), "left": digits(left), "right": digits(right)}
    margin_ = margin if math.isfinite(margin) else None
    return Outcome(False, "run", margin_, f"{said}: broken at T = {T}: left {left:.4g}, right {right:.4g}", data)


def corollary_thin(bounds: Bounds) -> Check:
    """L (tau + 1) < 1: L = mu = 1/4, tau = 1, one client, no noise; gamma = -5."""

    def check(effort: str) -> Outcome:
        at = build(torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64), replace(POINT, L=0.25))
        run = path(at, schedule(at, 1))
        left, right = bounds(run, 1)
        said = f"F = w^2/8, tau = 1, gamma = {schedule_start(at):g}"
        return outcome(left <= right, ratio(left, right), said, (run, 1, bounds))

    return check


def corollary_kept(bounds: Bounds, rounds: int = 0) -> Check:
    """One sample kept for all steps of a round (`ratchet`), T - 1 = `rounds` of the falling steps; 0: one constant one.

    In every scenario w_{t+1} is affine in w_t, so that two rounds of FLSS, from 0 and from 1, give the exact mean and
    mean square of w_T.
    """

    def check(effort: str) -> Outcome:
        at = ratchet()
        admissible(at)
        if not rounds:
            run = path(at, [at.lr])
            left, right = bounds(run, 1)
            return outcome(left <= right, ratio(left, right), KEPT, (run, 1, bounds))
        at = replace(at, x=2 * at.x)
        mean, square_ = float(at.x[0]), float(square(at.x))
        deltas, G2 = [square_], 0.0
        for lr in schedule(at, rounds):
            zero, one, two = (play(replace(at, x=x * at.x, lr=lr)) for x in (0.0, 0.5, 1.0))
            start, slope = zero.w[0, :, 0], (one.w - zero.w)[0, :, 0]
            if float((two.w[0, :, 0] - start - 2 * slope).abs().max()) > 1e-9:
                raise AssertionError("w_{t+1} is not affine in w_t")
            rise = one.noisy - zero.noisy
            steep, mixed, flat = (zero.E(v) for v in (square(rise), (rise * zero.noisy).sum(-1), square(zero.noisy)))
            G2 = max(G2, float((steep * square_ + 2 * mixed * mean + flat).max()))
            p = zero.all_odds
            moments = float(slope @ p), float(start @ p), float(slope**2 @ p), float(slope * start @ p)
            square_ = moments[2] * square_ + 2 * moments[3] * mean + float(start**2 @ p)
            mean = moments[0] * mean + moments[1]
            deltas.append(square_)
        run = Path(at, deltas, [delta / 2 for delta in deltas], G2, 0.0)
        left, right = bounds(run, rounds + 1)
        said = f"{KEPT}, w_1 = (2, 0), {rounds} rounds"
        return outcome(left <= right, ratio(left, right), said, (run, rounds + 1, bounds))

    return check


def corollary_blind(bounds: Bounds, T: int) -> Check:
    """3.4.4 for the unconditional mean only: w_t = +-(1, 0), P = (0, 1)^T; no round moves the model."""

    def check(effort: str) -> Outcome:
        at = blind()
        for one in (at, replace(at, x=-at.x)):
            if float((play(one).w - one.x).abs().max()) > 0:
                raise AssertionError("the model moved")
        q = play(at)
        run = Path(at, [1.0] * (T + 1), [0.5] * (T + 1), 2 * float(q.G2), 0.0)  # 2 G^2: rho_R = 1 and more
        left, right = bounds(run, T)
        data = {"w_t": "+-(1, 0), each half the time", **dump(at), "T": T, "left": digits(left), "right": digits(right)}
        said = f"E[g_t] = 0 lies in span P, E[g_t | w_t] does not; T = {T}: left {left:.4g}, right {right:.4g}"
        return Outcome(left <= right, "exact", ratio(left, right), said, data if left > right else None)

    return check


# C.10: algebra


def recursion_chain(rest: int = 1) -> Callable[[], tuple[list[Any], Any]]:
    """(3) carries (32) from T to T + 1: S_{T+1} = (1 - p) S_T + 1 with p = mu eta B, c = eta^2 C. rest: the + 1.

    p < 0 where L (tau + 1) < 1.
    """

    def make() -> tuple[list[Any], Any]:
        p, c, first, now, after, kept, total = reals("p c first now after kept total")
        premises = [p <= 1, c >= 0, first >= 0, kept >= 0, total >= 0]
        premises += [now <= kept * first + total * c, after <= (1 - p) * now + c]
        return premises, after <= (1 - p) * kept * first + ((1 - p) * total + rest) * c

    return make


def eq34_chain(share: str = "1") -> Callable[[], tuple[list[Any], Any]]:
    """Delta_t <= v/s gives Delta_{t+1} <= v/(s + 1), s = t + gamma, b = beta mu B > 1, c = beta^2 C.

    share: v (b - 1) >= share c, the first part of the maximum.
    """

    def make() -> tuple[list[Any], Any]:
        s, b, c, v, now, after = reals("s b c v now after")
        premises = [s > 0, b > 1, b <= s, c >= 0, v >= 0, now >= 0, now * s <= v]
        premises += [after * s * s <= (s - b) * s * now + c]
        return [*premises, v * (b - 1) >= number(share) * c], after * (s + 1) <= v

    return make


def check_eta1(thin: bool, two: str = "2") -> Check:
    """The choice of C.10.2: gamma > 0, beta > 1/(mu B), eta_1 <= min{1/(mu B), 1/q} = 1/q; q = L (tau + 1).

    thin: for every q > 0 instead of q > 1; two: the factor in gamma + 1.
    """

    def check(effort: str) -> Outcome:
        import z3

        mu, tau, q, gamma, B, eta = reals("mu tau q gamma B eta")
        premises = [mu > 0, tau >= 1, q > 0, mu * (tau + 1) <= q, B * q == tau * (q - 1)]
        premises += [(gamma + 1) * mu * tau * (q - 1) == number(two) * q * q, eta * mu * B * (gamma + 1) == 2]
        premises.append(q != 1 if thin else q > 1)
        wanted = z3.And(gamma > 0, B > 0, eta * q <= 1, eta * mu * B <= 1, mu * B <= q)
        found = implies(premises, wanted, timeout_ms=20000)
        if found.holds:
            said = "gamma > 0, B > 0 and eta_1 <= 1/(L (tau + 1)) <= 1/(mu B), which never binds (z3), mu <= L"
            return Outcome(True, "smt", None, said)
        if not thin:
            return Outcome(False, "smt", None, found.detail, found.model)
        L, tau_ = Fraction(1, 4), 1
        q_ = L * (tau_ + 1)
        gamma_ = 2 * q_**2 / (L * tau_ * (q_ - 1)) - 1
        steps = [str(2 / (L * (tau_ - tau_ / q_) * (gamma_ + t))) for t in (1, 2, 3, 6)]
        data = {"L = mu": str(L), "tau": "1", "B": str(tau_ - tau_ / q_), "gamma": str(gamma_), "eta_1, 2, 3, 6": steps}
        said = f"L = mu = 1/4, tau = 1: gamma = {gamma_}, steps {', '.join(steps)} in rounds 1, 2, 3, 6"
        return Outcome(False, "smt", None, said, data)

    return check


def check_35(wrong: int = 0) -> Check:
    """max <= sum, and beta^2 C/(beta mu B - 1) = 4 C/(mu^2 B^2) at beta = 2/(mu B)."""

    def check(effort: str) -> Outcome:
        import sympy

        mu, B, C = sympy.symbols("mu B C", positive=True)
        beta = 2 / (mu * B)
        gap = sympy.simplify(beta**2 * C / (beta * mu * B - 1) - (4 - wrong) * C / (mu**2 * B**2))
        u, w = reals("u w")
        import z3

        most = implies([u >= 0, w >= 0], z3.If(u > w, u, w) <= u + w)
        said = f"max <= sum (z3); beta^2 C/(beta mu B - 1) - {4 - wrong} C/(mu B)^2 = {gap}"
        return Outcome(gap == 0 and most.holds, "symbolic", None, said, {"gap": str(gap)} if gap != 0 else None)

    return check


def check_36(index: str, front: str = "1/2") -> Check:
    """(L/2) v/(gamma + T) <= (kappa/(gamma + T)) (2 C/(mu B^2) + mu (gamma + 1) Delta_1/2); index "t": any t for T."""

    def check(effort: str) -> Outcome:
        import sympy

        if index == "t":
            at = build(torch.tensor([0.3, 0.0, 1.0, 0.5], dtype=torch.float64), Edge(N=1, tau=1, d=1, R=1, kappa=1.0))
            run = path(at, schedule(at, 2))
            left, right = run.gaps[2], right_of_6(run, 10**6, 0)
            said = f"T = 3 on the left, t = 10^6 on the right: {left:.3g} against {right:.3g}"
            return Outcome(left <= right, "run", left / right, said, {"T": 3, "t": 10**6, "left": left, "right": right})
        L, mu, B, C, gamma, T, first = sympy.symbols("L mu B C gamma T Delta_1", positive=True)
        v = 4 * C / (mu**2 * B**2) + (gamma + 1) * first
        right = L / mu / (gamma + T) * (2 * C / (mu * B**2) + mu * (gamma + 1) / 2 * first)
        gap = sympy.simplify(L * sympy.Rational(front) * v / (gamma + T) - right)
        said = f"{front} L v/(gamma + T) with v of (35), minus the right side: {gap}"
        return Outcome(gap == 0, "symbolic", None, said, None if gap == 0 else {"gap": str(gap)})

    return check


POSITIVE = Printed("mu > 0, for kappa = L/mu", "Corollary C.4.2")
CLAIMS: list[Claim] = [
    flss(
        "thm-c31-stepsizes",
        "inequality",
        assumes=(SMOOTH, CONVEX),
        reading="of both ranges; that they are one is not printed",
        check=worst_of(
            chain(needs_chain(), "all that C.8 and C.9 need, for the range of C.3.1"),
            chain(needs_chain(2), "for the range of C.9"),
            ranges,
        ),
        control=chain(needs_chain(1, "99/100"), "eta <= 1/(L (tau + 0.99))"),
        broken="1/(L (tau + 0.99))",
        implies="C.9 proves the theorem for fewer steps than it states, although its argument covers them all; "
        "1/(mu B) is never the smaller of the two where B > 0",
    ),
    flss(
        "thm-c31-B",
        "inequality",
        assumes=(STEP,),
        check=worst_of(
            equal(eq30_sum, "eq30", "E||w_{t+1} - w^*||^2 is the sum of what the lemmas bound"),
            chain(eq30_chain(), "the last step of (30)"),
            check_C(),
        ),
        control=chain(eq30_chain("99/100"), "B = tau - 0.99 tau/(L (tau + 1))"),
        broken="B = tau - 0.99 tau/(L (tau + 1))",
    ),
    flss(
        "cor-c42-eta1",
        "identity",
        assumes=(SMOOTH, CONVEX, POSITIVE),
        met="0 < eta <= 1/(mu B) in Theorem C.3.1 has B > 0",
        caveat="L (tau + 1) > 1",
        check=check_eta1(False),
        as_printed=check_eta1(True),
        control=check_eta1(False, "199/100"),
        broken="1.99 L^2 (tau + 1)^2 in gamma",
    ),
    flss(
        "eq34",
        "inequality",
        assumes=(
            Printed("eta_t = beta/(t + gamma) <= 1/(mu B), beta > 1/(mu B), gamma > 0", "App. C.10.2"),
            Printed("Delta_{t+1} <= (1 - mu eta_t B) Delta_t + eta_t^2 C", "Theorem C.3.1 (3)"),
        ),
        check=chain(eq34_chain(), "Delta_t <= v/s gives Delta_{t+1} <= v/(s + 1)"),
        control=chain(eq34_chain("99/100"), "0.99 of the first part of v"),
        broken="0.99 of the first part of v",
    ),
    flss(
        "eq35",
        "inequality",
        assumes=(Printed("beta = 2/(mu B)", "App. C.10.2"),),
        check=check_35(),
        control=check_35(1),
        broken="3 in place of 4",
    ),
    flss(
        "eq36",
        "rate",
        assumes=(SMOOTH, POSITIVE, Printed("Delta_t <= v/(gamma + t)", "App. C.10.2 (34)")),
        error="index",
        implies="None: Corollary C.4.2 has T",
        caveat="t on the right is T",
        check=worst_of(check_36("T"), corollary([eq6(less=0)], True, runs=FEW)),
        as_printed=check_36("t"),
        control=check_36("T", "101/200"),
        broken="1.01 L/2",
    ),
    flss(
        "sharper.round",
        "inequality",
        assumes=(CONVEX, UNBIASED, BOUNDED, UNIFORM),
        check=with_units(
            worst_of(
                S(sharp(True), "sharp", "steps up to 30/(L (tau + 1))", FAR, ANY_STEP),
                chain(sharp_chain, "with eta for 1/2 its noise term is below that of Lemma C.2.2"),
            ),
            sharp_pieces,
        ),
        control=S(sharp(True, 0.99), "sharp.control", corners=[replace(PURE, share=3.0)]),
        broken="the noise term times 0.99",
        implies="no Gamma, no rho_R, no L, no bound on eta, tau^2 in place of tau^3, and units that agree",
    ),
]
