"""DeComFL, C.4, (46) to (61) and (72): the estimator's mean and second moment, directions on the sphere.

What is wrong with them, in short: (52) names another smoothing, (57) and Lemma 6 count clients as if drawn with
replacement, (59) needs a symmetric matrix.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.rough import rough_51
from fedtheory.theory.decomfl.round import (
    A1,
    A2,
    DOUBLE,
    EACH,
    UNIFORM,
    Enumerated,
    Instance,
    decomfl,
    directions,
    equal,
    over_sets,
    tiny,
)
from fedtheory.theory.instances import Smooth, plain
from fedtheory.theory.rounding import digits

SPHERE = Printed("z uniform on the sphere of radius sqrt(d)", "Sec. 4.1")


def check_50(common: bool, middle: bool = False) -> Check:
    """Does one theta in [0, 1] give (47), for each client, or for both at once? f_1 = x_+^2/2, f_2 = x_-^2/2."""

    def check(effort: str) -> Outcome:
        theta = torch.linspace(0, 1, 10001, dtype=DOUBLE)
        gaps = []
        for sign in (1.0, -1.0):
            f, slope = lambda x, s=sign: (s * x).clamp(min=0) ** 2 / 2, lambda x, s=sign: s * (s * x).clamp(min=0)
            x, step = torch.tensor(-1.0, dtype=DOUBLE), 2.0
            gaps.append((f(x + step) - f(x) - step * slope(x + step * theta)).abs() / step)
        both = torch.stack(gaps)
        if middle:
            both = both[:, 5000:5001]
        best = float(both.max(0).values.min() if common else both.min(1).values.max())
        said = (
            f"f_1 = x_+^2/2, f_2 = x_-^2/2, x = -1, mu z = 2: theta = 5/8 and 3/8; best "
            f"{'common ' if common else ''}theta misses by {best:.2g}"
        )
        data = {"x": -1, "mu z": 2, "theta_1": "5/8", "theta_2": "3/8"}
        return Outcome(best < 1e-3, "exact", None, said, None if best < 1e-3 else data)

    return check


def check_51(scale: float) -> Check:
    """Every draw of d = 1, 2, from the client's own scalars at mu and at mu -> 0."""

    def check(effort: str) -> Outcome:
        worst = 0.0
        for h in ([[1.0]], [[1.0, 1.0]], [[1.0, -1.0], [0.5, 1.0]]):
            at = tiny(h=h, a=0.3, x=0.4, M=len(h), d=len(h[0]), m=len(h), P=2, noise=0.0, mu=0.7, sphere=True)
            steps = [Enumerated(replace(at, mu=mu), nodes=6).ends[0] for mu in (0.7, 0.0)]
            size = ((steps[0] - steps[1]) ** 2).sum(1).max() / at.lr**2
            worst = max(worst, float(size) / (scale * at.mu**2 * at.d**3))
        said = (
            "||eps_r||^2 over the last bound, every draw of three quadratics, steps of the client (the other "
            "steps are Jensen)"
        )
        data = None if worst <= 1 + 1e-9 else {"ratio": digits(worst)}
        return Outcome(worst <= 1 + 1e-9, "exact", worst, said, data)

    return check


def check_52(ball: bool, scale: float = 1.0) -> Check:
    """phi' = |x|, a kink of curvature at 0, z = +-1: the client's mean step against two smoothings."""

    def check(effort: str) -> Outcome:
        at = tiny(x=0.0, mu=1.0, sphere=True)
        knot, slopes = torch.zeros(1, dtype=DOUBLE), torch.tensor([-1.0, 1.0], dtype=DOUBLE)
        zero = torch.zeros(1, 1, dtype=DOUBLE)
        r = Enumerated(at, losses=Smooth(zero + 1, zero, shape="spline", knots=knot, slopes=slopes))
        left = float(r.mean(r.G[0, :, 0, 0]))
        right = scale * (0.5 if ball else math.sqrt(2 / math.pi))  # E|u|, u uniform in [-1, 1] or Gaussian
        data = {"f": "x|x|/2", "x_r": 0, "mu": 1, "z": "+-1", "E step": left, "grad of the smoothing": digits(right)}
        kind = "the ball's" if ball else "the Gaussian"
        return equal(
            left, right, f"f = x|x|/2, x = 0, mu = 1, client code, {kind} smoothing: {left:.4g} and {right:.4g}", data
        )

    return check


def second_moments(at: Instance, factor: Fraction) -> Check:
    """Lemma 6 with `factor` at Delta: from the client's own steps (mu -> 0), all sets."""

    def check(effort: str) -> Outcome:
        r = Enumerated(at)
        steps = [(end - at.x) / at.lr for end in r.ends]
        left = torch.stack([torch.einsum("c,ca,cb->ab", r.p, s, s) for s in steps]).mean(0)
        own = at.h * at.x + at.a
        g = own.mean(0)
        delta = torch.einsum("ia,ib->ab", own, own) / at.M - torch.outer(g, g)
        sigma = torch.einsum("ia,ib->ab", at.noise, at.noise) / at.M
        W = torch.outer(g, g) + sigma / at.m + float(factor) * delta / at.m
        d, P = at.d, at.P
        right = d / (P * (d + 2)) * W.trace() * torch.eye(d, dtype=DOUBLE) + (1 + (d - 2) / (P * (d + 2))) * W
        data = {"instance": plain(at), "left": left.tolist(), "right": right.tolist()}
        return equal(left, right, f"M = {at.M}, m = {at.m}, d = {d}, P = {P}, all sets, steps of the client", data)

    return check


PAIR = tiny(a=[[1.0], [-1.0]], M=2, m=2, noise=0.0, sphere=True)
TRIPLE = tiny(
    a=[[1.0, 0.5], [-1.0, 2.0], [0.3, -0.7]], noise=[[0.5, 1.0], [0.0, -1.0], [1.0, 1.0]], M=3, m=2, d=2, P=2,
    sphere=True,
)  # fmt: skip


def check_60(printed: bool, scale: Fraction = Fraction(1)) -> Check:
    """E sum_{i,i' in C} s_i s_i (printed) or s_i s_i' with independent signs, against m Sigma."""

    def check(effort: str) -> Outcome:
        s, m = [Fraction(1), Fraction(2), Fraction(3)], 2
        sets = list(itertools.combinations(range(3), m))
        if printed:
            left = Fraction(sum(sum(s[i] ** 2 for i in C) * m for C in sets), len(sets))
        else:
            signs = list(itertools.product((1, -1), repeat=3))
            left = Fraction(sum(sum(e[i] * s[i] for i in C) ** 2 for C in sets for e in signs), len(sets) * len(signs))
        right = scale * Fraction(m, 3) * sum(v * v for v in s)
        said = f"M = 3, m = 2, |s_i| = 1, 2, 3: {left} against {right}"
        data = {"s": ["1", "2", "3"], "M": 3, "m": 2, "left": str(left), "right": str(right)}
        return Outcome(left == right, "exact", None, said, None if left == right else data)

    return check


def check_57(factor: Callable[[int, int], Fraction]) -> Check:
    return over_sets(factor, lambda M: [Fraction(i * i + 1) for i in range(M)], "grad f_i")


def check_58(scale: Fraction) -> Check:
    def check(effort: str) -> Outcome:
        v = [(Fraction(1), Fraction(2)), (Fraction(-1), Fraction(0)), (Fraction(3), Fraction(1))]
        mean = [sum(u[j] for u in v) / 3 for j in range(2)]
        trace = sum(u[j] ** 2 for u in v for j in range(2)) / 3 - sum(c * c for c in mean)
        gaps = [sum((u[j] - mean[j]) ** 2 for j in range(2)) for u in v]
        holds = trace == sum(gaps) / 3 * scale and trace <= max(gaps)
        said = f"three clients in rationals: Tr Delta = {trace}, mean gap {sum(gaps) / 3}, largest {max(gaps)}"
        return Outcome(holds, "exact", float(trace / max(gaps)), said, None if holds else {"Tr": str(trace)})

    return check


def check_59(
    right: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], sphere: bool = True, same: bool = False
) -> Check:
    """E[z z^T u v^T z z^T] on the circle (polynomials of degree 4, exact): u = e_1 and v = e_2, or both (1, 1/2)."""

    def check(effort: str) -> Outcome:
        z, p = directions(2, sphere, 4)
        u, v = torch.tensor([[1.0, 0.5]] * 2 if same else [[1.0, 0.0], [0.0, 1.0]], dtype=DOUBLE)
        left = torch.einsum("c,ca,cb->ab", p * (z @ u) * (z @ v), z, z)
        other = right(u, v)
        data = {"d": 2, "u": u.tolist(), "v": v.tolist(), "left": left.tolist(), "right": other.tolist()}
        return equal(left, other, f"d = 2, {'u = v = (1, 1/2)' if same else 'u = e_1, v = e_2'}", data)

    return check


def one_way(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return 0.5 * (u @ v * torch.eye(2, dtype=DOUBLE) + 2 * torch.outer(u, v))


def both_ways(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return 0.5 * (u @ v * torch.eye(2, dtype=DOUBLE) + torch.outer(u, v) + torch.outer(v, u))


def check_61(sphere: bool) -> Check:
    def check(effort: str) -> Outcome:
        z, p = directions(2, sphere, 4)
        sigma = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=DOUBLE)
        once = torch.einsum("c,ca,cb->ab", p, z, z)
        twice = torch.einsum("c,ca,cb,c->ab", p, z, z, torch.einsum("ca,ab,cb->c", z, sigma, z))
        P, m, d = 3, 2, 2
        left = (P * (P - 1) * once @ sigma @ once + P * twice) / (m * P * P)
        right = (P - 1) / (m * P) * sigma + d / (m * P * (d + 2)) * (
            sigma.trace() * torch.eye(2, dtype=DOUBLE) + 2 * sigma
        )
        return equal(left, right, "d = 2, P = 3, m = 2, Sigma symmetric")

    return check


def check_72(between: bool) -> Check:
    def check(effort: str) -> Outcome:
        means, spreads = [Fraction(1), Fraction(-2), Fraction(4)], [Fraction(1), Fraction(3), Fraction(0)]
        outcomes = [mean + sign * spread for mean, spread in zip(means, spreads, strict=True) for sign in (1, -1)]
        mean = sum(outcomes) / 6
        left = sum((v - mean) ** 2 for v in outcomes) / 6
        right = (sum((v - mean) ** 2 for v in means) / 3 if between else 0) + sum(s * s for s in spreads) / 3
        bound = max((v - mean) ** 2 for v in means) + max(s * s for s in spreads)
        said = f"three clients, two samples each: {left} against {right}, bound {bound}"
        holds = left == right and left <= bound
        return Outcome(
            holds, "exact", float(left / bound), said, None if holds else {"left": str(left), "right": str(right)}
        )

    return check


CLAIMS: list[Claim] = [
    decomfl(
        "eq46-50",
        "identity",
        check=check_50(False),
        as_printed=check_50(True),
        error="index",
        implies="None: the bound (51) holds for every client",
        caveat="theta and x' depend on the client (and its sample): x'_{i,r,p}; the notation has one point for all",
        control=check_50(False, middle=True),
        broken="theta = 1/2",
    ),
    decomfl(
        "eq51",
        "inequality",
        assumes=(SPHERE,),
        check=check_51(1.0),
        as_printed=rough_51,
        error="missing assumption",
        implies="as decomfl.assump1-3",
        caveat=EACH,
        control=check_51(0.249),
        broken="0.249 (a quarter is enough, and attained)",
    ),
    decomfl(
        "eq52",
        "expectation",
        assumes=(SPHERE,),
        check=check_52(False),
        control=check_52(True, 0.99),
        broken="0.99 of the right value",
        error="wrong statement",
        repair="for z on the sphere it is the gradient of the average of f over the ball, E f(x + mu u), ||u|| <= "
        "sqrt(d), "
        "which also is within (1/2) mu L (d+3)^{3/2} of grad f",
        repaired=check_52(True),
        implies="Theorem 2 mixes two distributions; (17) has room for both, so nothing else changes",
    ),
    decomfl(
        "lemma6",
        "identity",
        assumes=(SPHERE, UNIFORM, Printed("stochastic gradient noise of mean zero, independent", "eq. (56)")),
        check=second_moments(PAIR, Fraction(1)),
        control=second_moments(TRIPLE, Fraction(1, 3)),
        broken="the factor (M-m)/M, for m = 2 of M = 3",
        error="wrong independence",
        repair="with Delta (M-m)/(M-1) in place of Delta, and E Sigma for Sigma; with replacement the printed form",
        repaired=worst_of(second_moments(PAIR, Fraction(0)), second_moments(TRIPLE, Fraction(1, 2))),
        implies="Theorem 2 charges heterogeneity even when all clients take part; for m = M there is none at K = 1",
    ),
    decomfl(
        "eq54,60",
        "expectation",
        check=check_60(True),
        control=check_60(False, Fraction(101, 100)),
        broken="1.01 times the right side",
        error="misprint",
        repair="s_i s_{i'}^T, and Tr E Sigma <= sigma^2: Sigma as defined is random",
        repaired=check_60(False),
        implies="read literally T_2 is m times larger",
    ),
    decomfl(
        "eq57",
        "identity",
        assumes=(UNIFORM,),
        check=check_57(lambda M, m: Fraction(1)),
        control=check_57(lambda M, m: Fraction(M - m, M)),
        broken="the factor (M-m)/M",
        error="wrong independence",
        repair="m^2 grad f grad f^T + m (M-m)/(M-1) Delta; as printed only for sampling with replacement",
        repaired=check_57(lambda M, m: Fraction(M - m, M - 1)),
        implies="as Lemma 6",
    ),
    decomfl(
        "eq58",
        "inequality",
        assumes=(A2,),
        check=check_58(Fraction(1)),
        control=check_58(Fraction(99, 100)),
        broken="0.99 of the middle",
    ),
    decomfl(
        "eq59",
        "identity",
        assumes=(SPHERE,),
        met="T_1 and T_2, which are symmetric",
        caveat="a symmetric matrix in place of u v^T; else (d/(d+2)) (Tr(u v^T) I + u v^T + v u^T)",
        check=worst_of(check_59(one_way, same=True), check_59(both_ways)),
        as_printed=check_59(one_way),
        control=check_59(one_way, sphere=False, same=True),
        broken="Gaussian z",
    ),
    decomfl(
        "eq61",
        "identity",
        assumes=(SPHERE,),
        check=check_61(True),
        control=check_61(False),
        broken="Gaussian z",
    ),
    decomfl(
        "eq72",
        "identity",
        assumes=(A1, A2),
        check=check_72(True),
        control=check_72(False),
        broken="without the variance between clients",
    ),
]
