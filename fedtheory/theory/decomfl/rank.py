"""DeComFL, C.4 and C.5: Theorems 2 and 5, one local step, low effective rank.

Theorem 2 holds with z on the sphere, also without its last term, whose units are wrong. Its proof is broken in
(52) (another smoothing), (57) (sampling with replacement), (63) (units, and curvature below zero) and short of a
factor 2 in (70). Theorem 5 takes the sphere's moments for Gaussian z, and its tail counts one z for each client.

Assumption 4 does not ask for H(x_r) >= 0, and most steps do without it: where a step size is allowed at all, 1 +
(kappa d + d - 2)/(P(d+2)) =: C > 0, tr H <= kappa ||H|| and H <= ||H|| I give T_3 <= ||H|| C (...), which is (68), and
for mu -> 0 the descent of (69) and Theorem 2. (66) and the sum (70) need it. They also need more than Assumption 3,
which is about f alone: the step uses f_i(.; xi) at two points, and their gradients must not part between them.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.layout import Layout
from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.proof import ROUGH, same_hessian
from fedtheory.theory.decomfl.round import (
    A1,
    A2,
    A3,
    A4,
    DOUBLE,
    EACH,
    ROOT,
    SMALL_MU,
    UNIFORM,
    Edge,
    Enumerated,
    Instance,
    Played,
    Round,
    Terms,
    admissible,
    alone,
    broken,
    build,
    decomfl,
    directions,
    each_fails,
    equal,
    kappa_of,
    rank_factor,
    rank_of,
    start_gap,
    survives,
    tiny,
)
from fedtheory.theory.fedsub.round import chain, digits
from fedtheory.theory.instances import Sample, Smooth, drain, plain
from fedtheory.theory.search import maximise, ratio, reals

STEP = "eta <= (1/(4L))(1 + (kappa d + d - 2)/(P(d+2)))^{-1}"
STEP2 = Printed(STEP, "Theorem 2")
SPHERE = Printed("z uniform on the sphere of radius sqrt(d)", "Sec. 4.1")
ONE = Printed("K = 1", "Sec. 4.1")
BALLS = (
    "z on the sphere of radius sqrt(d), as the sentence before Theorem 2 has it, not in the ball that the theorem names"
)
ABOVE = "H(x_r) >= 0"
SMOOTH_EACH = ". With every f_i(.; xi) L-smooth"
EDGES = [
    Edge(sphere=True), Edge(d=2, P=1, sphere=True), Edge(M=2, m=1, d=3, P=2, sphere=True),
    Edge(M=3, m=2, d=6, P=1, sphere=True, noisy=False), Edge(M=2, m=2, d=4, P=50, sphere=True),
]  # fmt: skip
REPAIR2 = (
    "(1/R) sum_r E||grad f(x_r)||^2 <= 2D/(R eta) + (2L eta/m)(1 + (kappa d + d - 2)/(P(d+2)))(sigma_G^2 + sigma^2) + "
    "2 mu^2 L^2 d + mu^2 L^3 d^3 eta, which is below the printed bound in all units and needs no last term; half of "
    "mu^2 L^3 d^3 eta is enough where Assumption 4's ball holds the step, G(x_r) >= mu L sqrt(d)/2; with H(x_r) >= 0 "
    "and every f_i(.; xi) L-smooth"
)
REPAIR5 = (
    "with 1 + (kappa + 1)/P, which is Gaussian, in step size and bound, and H(x_r) above the Hessian everywhere: "
    "(1/R) sum_r "
    "E||grad f||^2 <= 2D/(R eta) + (2L eta/m)(1 + (kappa + 1)/P)(sigma_G^2 + sigma^2) + (1/2) mu^2 L^2 (d+3)^3 + "
    "(1/2) mu^2 "
    "L^3 d(d+2)(d+4) eta" + SMOOTH_EACH
)


def ranked(at: Instance) -> Instance:
    """The instance at the largest step that Theorem 2 (sphere) or its Gaussian repair allows, mu moderate."""
    return replace(at, lr=1 / (4 * at.L * rank_factor(at.d, at.P, kappa_of(at), at.sphere)))


def short(e: Edge) -> float:
    """The smallest of these steps, kappa = d."""
    return 1 / (4 * rank_factor(e.d, e.P, e.d, e.sphere))


STEPPED = [replace(e, rule=short) for e in EDGES]

# One round


def above(at: Instance) -> torch.Tensor:
    """H(x_r): the smallest one that is not negative, diagonal."""
    return at.h.mean(0).clamp(min=0)


def form(at: Instance, H: torch.Tensor) -> float:
    """E[gbar^T H gbar], gbar the step at mu = 0 without eta."""
    q = Round(replace(at, mu=0.0))
    mean, second = q.next
    moved = second.diagonal() - 2 * at.x * mean + at.x**2
    return float((H * moved).sum()) / at.lr**2


def epsilon(q: Round) -> float:
    """E||eps_r||^2."""
    return q.moved - Round(replace(q.at, mu=0.0)).moved


def eq63(power: int, H: Callable[[Instance], torch.Tensor], scale: float = 1.0) -> Terms:
    """E f(x_{r+1}) - f(x_r) + eta <grad f, grad f^mu>; the last term with L^power."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        right = at.lr**2 * (form(at, H(at)) + at.L**power * epsilon(q))
        return q.gain + at.lr * q.gradient2, scale * right

    return terms


def eq65(H: Callable[[Instance], torch.Tensor], scale: float = 1.0, last: bool = False) -> Terms:
    """(65) and (66), with or without their last term; where the curvature is negative it stands on the left."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        curved = at.lr**2 * form(at, H(at))
        right = at.lr * (at.mu * at.L) ** 2 / 8 * (at.d + 3) ** 3 + max(curved, 0.0)
        right += last * at.lr**2 * at.L**4 * at.mu**2 * at.d**3
        return q.gain + at.lr / 2 * q.gradient2 - min(curved, 0.0), scale * right

    return terms


def noise_term(at: Instance, gradient2: float) -> float:
    return gradient2 + (at.dissimilarity2 + at.sigma2) / at.m


def low_rank(at: Instance) -> float:
    """kappa = tr H/||H|| of H = Hess f, of any sign, but large enough for a step size: C >= 1/20."""
    least = (-0.95 * at.P * (at.d + 2) - at.d + 2) / at.d
    return max(rank_of(at.h.mean(0)), least)


def at_bound(terms: Terms) -> Terms:
    """The same at the largest step that Theorem 2 allows with that kappa, up to 5/L."""
    step = lambda at: 1 / (4 * at.L * rank_factor(at.d, at.P, low_rank(at)))
    return lambda q: terms(Round(replace(q.at, lr=step(q.at))))


def eq67(scale: float = 1.0) -> Terms:
    """H = Hess f, of any sign, as Assumption 4 allows."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        right = at.L * rank_factor(at.d, at.P, low_rank(at)) * noise_term(at, q.gradient2)
        return form(at, at.h.mean(0)), scale * right

    return terms


def eq69(scale: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        rest = at.lr * (at.mu * at.L) ** 2 / 8 * (at.d + 3) ** 3
        curved = at.lr**2 * at.L * rank_factor(at.d, at.P, low_rank(at)) * noise_term(at, q.gradient2)
        return q.gain + at.lr / 2 * q.gradient2, scale * (rest + curved)

    return terms


# Whole runs


def runs(at: Instance, R: int) -> tuple[torch.Tensor, torch.Tensor]:
    """E||grad f(x_r)||^2 for r = 0..R, and E f(x_r) - f(x_0)."""
    squares, values, mean, second = [], [0.0], at.x, torch.outer(at.x, at.x)
    for _ in range(R + 1):
        q = Round(at, mean, second)
        squares.append(q.gradient2)
        values.append(values[-1] + q.gain)
        mean, second = q.next
    return torch.tensor(squares, dtype=DOUBLE), torch.tensor(values[:-1], dtype=DOUBLE)


def floor(at: Instance, which: str) -> float:
    """The terms of a bound on the average that do not fall with R."""
    C = rank_factor(at.d, at.P, kappa_of(at), at.sphere)
    noise = at.L * at.lr / at.m * C * (at.dissimilarity2 + at.sigma2)
    bias, eps = (at.mu * at.L) ** 2, at.mu**2 * at.L**3 * at.lr
    d = at.d
    return {
        "printed": 2 * noise + bias / 2 * (d + 3) ** 3,
        "sharp": 2 * noise + 2 * bias * d + eps * d**3,
        "(70)": 4 * noise + bias / 2 * (d + 3) ** 3,
        "Gaussian": 2 * noise + bias / 2 * (d + 3) ** 3 + eps / 2 * d * (d + 2) * (d + 4),
    }[which]


def check_runs(which: str, name: str, scale: float = 1.0, sphere: bool = True) -> Check:
    """The largest average over the bound, R up to 40; "(70)": sum over r = 1..R against f(x_0) - f(x_R)."""
    front = {"printed": 4, "sharp": 2, "(70)": 4, "Gaussian": 2}[which]

    def check(effort: str) -> Outcome:
        R = 40 if effort == "quick" else 300
        amount: dict[str, Any] = {"restarts": 2, "steps": 6} if effort == "quick" else {"restarts": 4, "steps": 30}
        counts = torch.arange(1, R + 1, dtype=DOUBLE)

        def sides(v: torch.Tensor, edge: Edge) -> tuple[torch.Tensor, torch.Tensor]:
            at = ranked(same_hessian(build(v.detach(), edge)))
            squares, values = runs(at, R)
            late = which == "(70)"
            left = squares[late : R + late].cumsum(0) / counts
            drop = -values[1:] if late else start_gap(at)
            right = scale * (front * drop / (counts * at.lr) + floor(at, which))
            worst = int((left / right).argmax())
            return left[worst], right[worst]

        edges = [replace(e, sphere=sphere, rule=short) for e in EDGES]
        found = maximise(sides, lambda e: e.size, ROOT.fold(name), edges=edges, starts=alone(edges), **amount)
        said = f"{which}: exact moments of {found.tried} whole runs, eta at its bound, worst at {found.edge}"
        data = None if found.holds else {"edge": str(found.edge), "ratio": digits(found.ratio)}
        return Outcome(found.holds, "search", found.ratio, said, data)

    return check


def check_any_sign(name: str, scale: float = 1.0) -> Check:
    """Theorem 2 on quadratics of any sign, with f(x_R) for f*, which is more: H = Hess f, kappa its effective rank."""

    def check(effort: str) -> Outcome:
        R = 5
        amount: dict[str, Any] = {"restarts": 1, "steps": 6} if effort == "quick" else {"restarts": 8, "steps": 60}
        counts = torch.arange(1, R + 1, dtype=DOUBLE)

        def sides(v: torch.Tensor, edge: Edge) -> tuple[torch.Tensor, torch.Tensor]:
            at = build(v.detach(), edge)
            at = replace(at, h=at.h.mean(0).expand_as(at.h).clone())
            C = rank_factor(at.d, at.P, low_rank(at))
            at = replace(at, lr=1 / (4 * at.L * C))
            squares, values = runs(at, R)
            left = squares[:R].cumsum(0) / counts
            noise = 2 * at.L * at.lr / at.m * C * (at.dissimilarity2 + at.sigma2)
            rest = noise + (at.mu * at.L) ** 2 / 2 * (at.d + 3) ** 3
            right = scale * (4 * -values[1:] / (counts * at.lr) + rest)
            worst = max(range(R), key=lambda r: ratio(left[r], right[r]))
            return left[worst], right[worst]

        found = maximise(sides, lambda e: e.size, ROOT.fold(name), edges=STEPPED, starts=alone(STEPPED), **amount)
        said = f"curvature of any sign, f(x_R) for f*: {found.tried} runs of up to {R} rounds, worst at {found.edge}"
        data = None if found.holds else {"edge": str(found.edge), "ratio": digits(found.ratio)}
        return Outcome(found.holds, "search", found.ratio, said, data)

    return check


class Cones(Smooth):
    """Two clients f +- (sqrt(||x||^2 + delta^2) - delta), f = sum_j h_j x_j^2/2: sigma_G = 1, gradients 0 at x = 0."""

    delta = 2.0**-40

    def losses(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        cone = ((y**2).sum(-1) + self.delta**2).sqrt() - self.delta
        return super().losses(y, xi) + (1 - 2 * xi.clients).view(-1, *[1] * (y.dim() - 2)) * cone


def check_cones(which: str, d: int = 160) -> Check:
    """Clients that are not L-smooth, f = x_1^2/2 that is; m = 1 of 2, P = 1, x_0 = 0 = x*, kappa = 1.

    Their scalars are +-||z||, whatever z is, where smooth clients with that sigma_G would send <z, g>: d times larger
    in E||G||^2. Directions +-sqrt(d) e_j have the sphere's E z z^T, and x_1 depends on no more but for mu^2.
    """

    def check(effort: str) -> Outcome:
        C, mu = rank_factor(d, 1, 1.0), SMALL_MU
        z = math.sqrt(d) * torch.cat([torch.eye(d, dtype=DOUBLE), -torch.eye(d, dtype=DOUBLE)]).repeat(2, 1)
        h = torch.zeros(2, d, dtype=DOUBLE)
        h[:, 0] = 1
        problem = Cones(h, torch.zeros_like(h))
        algorithm = Played(1 / (4 * C), 1, 1, mu, rows=z[:, None])
        down = algorithm.broadcast(algorithm.init(problem, torch.zeros(d, dtype=DOUBLE), ROOT).server, ROOT)
        down = replace(down, seeds=torch.zeros(1, 1, dtype=torch.int64))
        up, _ = drain(algorithm.client(problem, torch.arange(2).repeat_interleave(2 * d), None, down, ROOT))[1]
        x1 = -algorithm.lr * up.g[:, 0] * z
        square, eta = float((x1[:, 0] ** 2).mean()), algorithm.lr
        smoothing = eta * mu**2 / 8 * (d + 3) ** 3 + eta**2 * mu**2 * d**3
        left, right = {  # R = 2 for the theorem; T_3 = 0 in (66), as all gradients vanish at x_0
            "theorem": (square / 2, 2 * eta * C + mu**2 / 2 * (d + 3) ** 3 + 4 * mu**2 * d**3 * eta),
            "(66)": (square / 2, smoothing),
            "(69)": (square / 2, smoothing + eta**2 * C),
        }[which]
        said = f"f = x_1^2/2, f_i = f +- ||x|| with a round tip, d = {d}, {which}: {left:.4g} against {right:.4g}"
        data = {
            "f": "x_1^2/2", "f_i - f": "+-(sqrt(||x||^2 + 2^-80) - 2^-40)", "sigma_G": 1, "d": d, "P": 1,
            "m": 1, "M": 2, "x_0": 0, "kappa": 1, "mu": mu, "eta": eta, "left": digits(left), "right": digits(right),
        }  # fmt: skip
        return Outcome(left <= right, "exact", left / right, said, None if left <= right else data)

    return check


def check_concave(effort: str) -> Outcome:
    """(70) with R = 1: E||grad f(x_1)||^2 against 4(f(x_0) - f(x_1))/eta, a sum that starts one round late."""
    at = tiny(h=-1.0, x=1.0, d=2, lr=2.5, mu=SMALL_MU, sphere=True)
    kappa = -1.8  # at least tr H/||H|| = -2
    squares, values = runs(at, 1)
    C = rank_factor(at.d, at.P, kappa)
    assert at.lr <= 1 / (4 * at.L * C) * (1 + 1e-12)
    assert kappa >= rank_of(at.h.mean(0))
    left, right = float(squares[1]), float(4 * -values[1] / at.lr) + at.mu**2 / 2 * 125 + 4 * at.lr * at.mu**2 * 8
    said = f"(70), f = -||x||^2/2, d = 2, H = -I, kappa = -1.8, eta = 5/2, R = 1: {left:.4g} against {right:.4g}"
    data = {"instance": plain(at), "kappa": kappa, "R": 1, "left": digits(left), "right": digits(right)}
    return Outcome(left <= right, "exact", left / right, said, None if left <= right else data)


def coefficients(t: Fraction) -> Check:
    """The proof of REPAIR2: (a+b)^2 <= (1+t)a^2 + (1+1/t)b^2 on the quadratic term, <a,b> split with s = 1/2.

    Where G < mu L sqrt(d)/2 the step may leave Assumption 4's ball; there L I is above the Hessian, and the step is at
    most eta d (G + mu L sqrt(d)/2) <= eta mu L d^{3/2}: (L/2) eta^2 mu^2 L^2 d^3 on top of the descent.
    """

    def check(effort: str) -> Outcome:
        s, small = Fraction(1, 2), Fraction(1, 4)  # eta L C <= 1/4
        left = 1 - s / 2 - (1 + t) / 2 * small
        front, noise = 1 / left, (1 + t) / 2 / left
        bias, eps = 1 / (2 * s) / left, (1 + 1 / t) / 2 / 4 / left
        outside = Fraction(1, 2) / left
        wrong = [
            name
            for name, value, bound in (
                ("D", front, 2),
                ("noise", noise, 2),
                ("bias", bias, 2),
                ("eps", eps, Fraction(1, 2)),
                ("eps outside the ball", outside, 1),
            )
            if left <= 0 or value > bound
        ]
        covered = all(2 * d + Fraction(d**3, 4) <= Fraction((d + 3) ** 3, 2) for d in range(1, 500))
        said = f"descent {left}, D {front}, noise {noise}, bias {bias} L^2 mu^2 d, eps {eps} eta L^3 mu^2 d^3"
        said += f", {outside} of it outside the ball"
        holds = not wrong and covered
        return Outcome(holds, "exact", None, said, None if holds else {"too large": wrong})

    return check


GAUSSIAN = tiny(h=2.0**20, noise=1.0, lr=2.0**-22, L=2.0**20)


def check_theorem5(effort: str) -> Outcome:
    at, R = GAUSSIAN, 100
    slack = admissible(at, ("theorem2",))
    squares, _ = runs(at, R)
    left = float(squares[1:].mean())
    largest = 2 * float((squares[1:] + at.sigma2).sum())  # E max_r G(x_r)^2 <= sum_r 2 (E||grad f||^2 + sigma^2)
    tail = at.lr**2 * at.L * largest * math.exp(-1)
    right = 2 * at.lr * at.L * rank_factor(1, 1, 1) * at.sigma2 + tail
    said = (
        f"f = L x^2/2, xi = +-1, d = P = m = 1, eta = 1/(4L), L = 2^20, x_0 = x*, mu -> 0: {left:.4g} against "
        f"{right:.4g}"
    )
    data = {
        "instance": plain(at),
        "R": R,
        "left": digits(left),
        "right": digits(right),
        "tail": digits(tail),
        "slacks": slack,
    }
    return Outcome(left <= right, "exact", left / right, said, data)


def check_rates(below: bool) -> Check:
    """(P/kappa)(1 + (kappa d + d - 2)/(P(d+2))) <= 3 for kappa >= P: half Theorem 2's noise over sqrt(kappa/(mRP))."""

    def premises() -> tuple[list[Any], Any]:
        k, P, d = reals("kappa P d")
        room = [P >= 1, d >= 1, k >= 1, k >= P] if below else [P >= 1, d >= 1, k >= 1]
        return room, P * (d + 2) + k * d + d - 2 <= 3 * k * (d + 2)

    said = (
        "with eta and mu as chosen: 4D + 2L(P/kappa)(1 + ...)(sigma_G^2 + sigma^2) + L^2/2 + 4 L^4 eta over "
        "the rate, <= 3"
    )
    return chain(premises, said)


# Identities


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


def check_57(factor: Callable[[int, int], Fraction]) -> Check:
    """E sum_{i,i' in C} v_i v_i' = m^2 vbar^2 + m factor Delta, numbers, all sets."""

    def check(effort: str) -> Outcome:
        for M, m in ((2, 2), (3, 2), (4, 1), (5, 3)):
            v = [Fraction(i * i + 1) for i in range(M)]
            sets = list(itertools.combinations(v, m))
            left = sum(sum(rows) ** 2 for rows in sets) / len(sets)
            mean = sum(v) / M
            right = m * m * mean**2 + m * factor(M, m) * (sum(u * u for u in v) / M - mean**2)
            if left != right:
                data = {"M": M, "m": m, "grad f_i": [str(u) for u in v], "left": str(left), "right": str(right)}
                return Outcome(False, "exact", None, f"M = {M}, m = {m}: {left} against {right}", data)
        return Outcome(True, "exact", 0.0, "all sets of four (M, m), in rationals: equal")

    return check


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


def check_59(right: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], sphere: bool = True) -> Check:
    """E[z z^T u v^T z z^T] on the circle (polynomials of degree 4, exact)."""

    def check(effort: str) -> Outcome:
        z, p = directions(2, sphere, 4)
        u, v = torch.tensor([1.0, 0.0], dtype=DOUBLE), torch.tensor([0.0, 1.0], dtype=DOUBLE)
        left = torch.einsum("c,ca,cb->ab", p * (z @ u) * (z @ v), z, z)
        other = right(u, v)
        data = {"d": 2, "u": [1, 0], "v": [0, 1], "left": left.tolist(), "right": other.tolist()}
        return equal(left, other, "d = 2, u = e_1, v = e_2", data)

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


def rough_51(effort: str) -> Outcome:
    """eps_r of clients that are not smooth, f = x being 0-smooth, m = 1: the client's step less z z^T grad f_i(x_r)."""
    r = Enumerated(tiny(a=1.0, x=1.0, M=2, mu=0.7, L=0.0, sphere=True), losses=ROUGH)
    exact = r.z[:, 0, 0] * (r.z[:, 0, 0] * ROUGH.gradients(r.at.x)[:, None]).sum(-1, keepdim=True)
    left = float(((r.G[:, :, 0] - exact) ** 2).sum(-1).max())
    said = f"f = x, f_i = x +- 2 (1 - cos x), x_r = 1, mu = 0.7: ||eps_r||^2 = {left:.3g} against 0"
    data = {"f": "x (L = 0)", "f_i": "x +- 2 (1 - cos x)", "x_r": 1, "mu": 0.7, "left": digits(left), "right": 0}
    return Outcome(left <= 0, "exact", None, said, data)


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


def check_perturbation(law: str) -> Check:
    """E[z z^T] = I, as (46)-(61) use it: ||z||^2/d of the algorithm's draws; in the ball E u^2, density d u^(d-1)."""

    def check(effort: str) -> Outcome:
        found = {}
        for d in (1, 2, 3, 10):
            if law == "ball":
                found[d] = [d / (d + 2)]
                continue
            one, like = DeComFLReading(1.0, direction=law), torch.zeros(d, dtype=DOUBLE)
            z = one.directions(Layout.single(d), torch.arange(20), like)
            found[d] = [sum(float((part**2).sum()) for _, part in draw) / d for draw in z]
        gap = max(abs(value - 1) for values in found.values() for value in values)
        shown = ", ".join(f"{sum(values) / len(values):.3g} (d={d})" for d, values in found.items())
        said = f"{law}: ||z||^2/d, d = 1, 2, 3, 10, on average {shown}; largest distance from 1 {gap:.2g}"
        data = {"d": 1, "E z^2": digits(sum(found[1]) / len(found[1]))}
        return Outcome(gap < 1e-9, "exact", None, said, None if gap < 1e-9 else data)

    return check


def check_assump4(sign: int, share: float = 1.0) -> Check:
    """H = sign L I: is it above the Hessian of -sign... f, with a factor of Theorem 2 that allows a step?"""

    def check(effort: str) -> Outcome:
        d, P, L = 3, 1, 1.0
        H = sign * L * torch.ones(d, dtype=DOUBLE)
        hessians = [
            torch.tensor(h, dtype=DOUBLE) * share for h in ([-1.0, -1.0, -1.0], [1.0, 0.0, -1.0], [1.0, 1.0, 1.0])
        ]
        over = [h for h in hessians if bool((h <= H).all())]
        kappa = float(H.sum() / H.abs().max())
        factor = rank_factor(d, P, kappa)
        holds = factor > 0 and len(over) == (3 if sign > 0 else 1)
        said = (
            f"d = 3, H = {'' if sign > 0 else '-'}L I lies above {len(over)} of 3 Hessians, kappa = {kappa:g}, 1 "
            f"+ ... = {factor:.3g}"
        )
        data = {
            "f": "-||x||^2/2",
            "H": "-I",
            "kappa": kappa,
            "d": d,
            "P": P,
            "1 + (kappa d + d - 2)/(P(d+2))": digits(factor),
        }
        return Outcome(holds, "exact", None, said, None if holds else data)

    return check


# C.5: tails


def chi2_above(n: int, x: float) -> float:
    """P[chi^2_n > x]."""
    return float(torch.special.gammaincc(torch.tensor(n / 2, dtype=DOUBLE), torch.tensor(x / 2, dtype=DOUBLE)))


def check_73(outside: bool, descent: float = 0.5) -> Check:
    """Curvature that changes from h to L at ||x - x_r|| = 2 eta G, d = P = m = 1, mu -> 0, by quadrature in z."""

    def check(effort: str) -> Outcome:
        z, worst = torch.linspace(-12, 12, 48001, dtype=DOUBLE), (-math.inf, 0.0, 0.0)
        p = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        for h in (-1.0, -0.3, 0.0, 0.2, 1.0):
            for eta in (0.05, 0.25, 1.0):
                far = (eta * z**2 - 2 * eta).clamp(min=0)
                step = -eta * z**2
                f = step + h / 2 * step**2 + (1 - h) / 2 * far**2  # G = f'(x_r) = 1, L = 1
                inside = (z**2 <= 2).double()
                right = (
                    -descent * eta + eta**2 / 2 * (p * z**4 * (h * inside + (1 if outside else h) * (1 - inside))).sum()
                )
                worst = max(worst, (float((p * f).sum() - right) / eta**2, h, eta))
        gap, h, eta = worst
        said = f"15 losses, curvature h >= -L in the region and L outside: left less right at most {gap:.3g} eta^2"
        holds = gap <= 1e-6
        data = None if holds else {"h": h, "eta": eta, "left - right over eta^2": digits(gap)}
        return Outcome(holds, "exact", None, said, data)

    return check


def check_74(extra: float) -> Check:
    """f = x^2/2 at its minimum, G = 0, z = mu = 1: the step eta/2 against eta ||z||^2 (G + extra mu L ||z||)."""

    def check(effort: str) -> Outcome:
        at = tiny(mu=1.0, sphere=True)  # z = +-1
        left = float((Enumerated(at).ends[0] - at.x).abs().max())
        right = at.lr * extra * at.mu
        said = f"f = x^2/2, x_r = 0, G(x_r) = 0, mu = 1, |z| = 1, step of the client {left:.3g} against {right:.3g}"
        data = {"f": "x^2/2", "x_r": 0, "mu": 1, "|z|": 1, "eta": at.lr, "left": left, "right": right}
        return Outcome(left <= right + 1e-12, "exact", None, said, None if left <= right + 1e-12 else data)

    return check


def check_75(mu: float, level: float = 2.0) -> Check:
    """d = P = m = 1, f = x^2/2: A^c is eta z^2 |x + mu z/2| > 2 eta |x|."""

    def check(effort: str) -> Outcome:
        z = torch.linspace(-10, 10, 200001, dtype=DOUBLE)
        p = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        x = 0.0 if mu else 1.0
        left = float((p * (z**2 * (x + mu * z / 2).abs() > 2 * abs(x))).sum())
        right = chi2_above(1, level)
        said = f"f = x^2/2, x_r = {x:g}, mu = {mu:g}: P[A^c] = {left:.4f} against P[||z||^2 >= {level:g}] = {right:.4f}"
        holds = left <= right + 1e-4
        data = {"f": "x^2/2", "x_r": x, "mu": mu, "G(x_r)": x, "left": digits(left), "right": digits(right)}
        return Outcome(holds, "exact", left / right, said, None if holds else data)

    return check


def check_76(m: int, P: int, n: int) -> Check:
    """P[(1/(mP)) sum_i sum_p ||z_p||^2 >= 2d], one z_p for all clients, d = 1, against P[chi_n > 2n]."""

    def check(effort: str) -> Outcome:
        d = 1
        left, right = chi2_above(d * P, 2 * d * P), chi2_above(n, 2 * n)
        said = f"m = {m}, d = 1, P = {P}: {left:.4f} against P[chi_{n} > {2 * n}] = {right:.4f}"
        holds = abs(left - right) < 1e-12
        data = {"m": m, "d": d, "P": P, "P[mean >= 2d]": digits(left), "P[chi_mdP > 2mdP]": digits(right)}
        return Outcome(holds, "exact", left / right, said, None if holds else data)

    return check


def check_tail(rate: float) -> Check:
    def check(effort: str) -> Outcome:
        ratios = {n: chi2_above(n, 2 * n) / math.exp(-rate * n) for n in (*range(1, 60), 100, 300, 1000)}
        n, worst = max(ratios.items(), key=lambda item: item[1])
        exponent = (1 - math.log(2)) / 2
        said = (
            f"62 values of n up to 1,000, worst n = {n}; Chernoff's exponent is (1 - log 2)/2 = {exponent:.4f} "
            f"for every n"
        )
        return Outcome(worst <= 1, "exact", worst, said, None if worst <= 1 else {"n": n, "ratio": digits(worst)})

    return check


def check_77(m: int, repaired: bool, scale: float = 1.0) -> Check:
    """f_i = a x, H = L/2, d = P = 1: (1/4) E[||z||^4; ||z||^2 > 2d] against exp(-m d P), both over eta^2 L G^2."""

    def check(effort: str) -> Outcome:
        d, P, H = 1, 1, 0.5
        z = torch.linspace(-12, 12, 240001, dtype=DOUBLE)
        p = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        left = (1 - H) / 2 * float((p * z**4 * (z**2 > 2)).sum())
        bound = (1 - H) / 2 * d * (d + 2 / P) * chi2_above(d * P + 4, 2 * d * P)
        right = scale * bound if repaired else math.exp(-m * d * P)
        said = f"m = {m} equal clients f_i = a x, H = L/2, d = P = 1: {left:.4f} against {right:.4g} eta^2 L G^2"
        holds = left <= right * (1 + 1e-3)
        data = {
            "f_i": "a x",
            "m": m,
            "d": d,
            "P": P,
            "H": "L/2",
            "kappa": 1,
            "left": digits(left),
            "right": digits(right),
        }
        return Outcome(holds, "exact", left / right, said, None if holds else data)

    return check


MINUS = broken(
    tiny(h=-1.0, noise=1.0, lr=0.25, mu=1 / 64, sphere=True),
    eq65(lambda at: at.h.mean(0), last=True),
    "f = -x^2/2, xi = +-1, x = 0, H = -1 (the curvature's term on the left)",
    ("theorem2",),
)

CLAIMS: list[Claim] = [
    decomfl(
        "assump4",
        "Sec. 4.1",
        "Assumption 4: there is H(x_r) <= L I with Hess f(x) <= H(x_r) for ||x - x_r|| <= 2 eta d G(x_r), and tr "
        "H/||H||_2 <= "
        "kappa.",
        "definition",
        check=check_assump4(1),
        as_printed=check_assump4(-1),
        caveat="H(x_r) >= 0 (then 1 <= kappa, and H = L I with kappa = d always qualifies) and f twice differentiable; "
        "||H|| <= L follows from Assumption 3",
        control=check_assump4(1, 1.01),
        broken="Hessians 1.01 times as large",
        implies="without H >= 0 the assumption allows kappa < 0 and a step-size condition that no step meets",
    ),
    decomfl(
        "thm2.perturbation",
        "Sec. 4.1; Theorems 2, 4",
        "z is sampled from a sphere of radius sqrt(d) (text), from the unit ball with radius sqrt(d) (Theorems 2, 4).",
        "definition",
        check=check_perturbation("sphere"),
        as_printed=check_perturbation("ball"),
        caveat="the sphere: in the ball E z z^T = d/(d+2) I, and (52), (59), (61) are wrong by that factor and its kin",
        control=check_perturbation("gaussian"),
        broken="Gaussian z, whose length varies",
    ),
    decomfl(
        "theorem2 / theorem4",
        "Sec. 4.1, Theorem 2; C.4, Theorem 4",
        "Under A1-A4, K = 1, "
        + STEP
        + ", z on the sphere: (1/R) sum_r E||grad f(x_r)||^2 <= 4D/(R eta) + (2L eta/m)(1 + "
        "(kappa d + d - 2)/(P(d+2)))(sigma_G^2 + sigma^2) + mu^2 L^2 (d+3)^3/2 + 4 mu^2 L^4 d^3 eta.",
        "inequality",
        assumes=(A1, A2, A3, A4, ONE, SPHERE, STEP2),
        reading=BALLS,
        check=worst_of(check_runs("printed", "theorem2"), check_any_sign("theorem2.sign")),
        as_printed=check_cones("theorem"),
        caveat=EACH,
        control=check_runs("printed", "theorem2.control", 0.28),
        broken="0.28 of the bound",
        repair=REPAIR2,
        repaired=worst_of(check_runs("sharp", "theorem2.sharp"), coefficients(Fraction(1))),
        implies="with smooth clients the statement survives every attack although its proof does not: (63) is wrong "
        "for negative curvature and in units, (70) has twice its noise term. The last printed term has wrong units "
        "(L^4 for L^3) and is not needed. With clients that are rough below the scale of mu the noise of the scalars "
        "grows with d, and no effective rank of f's Hessian helps",
    ),
    decomfl(
        "eq6,62,71",
        "Sec. 4.1 (6); C.4 (62), (71)",
        "With eta = O(sqrt(mP)/sqrt(kappa R)) and mu <= kappa^{1/4}/((mRP)^{1/4} (d+3)^{3/2}): O(sqrt "
        "kappa/sqrt(mRP)) + "
        "O((sqrt P/sqrt(m kappa R) + sqrt kappa/sqrt(mRP))(sigma_G^2 + sigma^2)); for kappa > P and large R O(sqrt "
        "kappa/sqrt(mRP)).",
        "rate",
        assumes=(Printed("the bound of Theorem 2", "Theorem 2"), Printed("kappa > P", "Theorem 2")),
        check=check_rates(True),
        control=check_rates(False),
        broken="kappa below P",
    ),
    decomfl(
        "eq46-50",
        "C.4 (46)-(50)",
        "(1/mu)(f_i(x_r + mu z_p; xi) - f_i(x_r; xi)) = z_p^T grad f_i(x'_{r,p}; xi), x'_{r,p} = x_r + mu theta "
        "z_p; so the "
        "estimate is nablabar f + eps_r.",
        "identity",
        check=check_50(False),
        as_printed=check_50(True),
        caveat="theta and x' depend on the client (and its sample): x'_{i,r,p}; the notation has one point for all",
        control=check_50(False, middle=True),
        broken="theta = 1/2",
    ),
    decomfl(
        "eq51",
        "C.4 (51)",
        "||eps_r||^2 <= ... <= (L^2 mu^2/(mP)) sum_i sum_p ||z_p||^6 = L^2 mu^2 d^3.",
        "inequality",
        assumes=(SPHERE,),
        check=check_51(1.0),
        as_printed=rough_51,
        caveat=EACH,
        control=check_51(0.249),
        broken="0.249 (a quarter is enough, and attained)",
    ),
    decomfl(
        "eq52",
        "C.4 (52)",
        "E_r of the zeroth-order gradient is grad f^mu(x_r), f^mu the Gaussian smooth function.",
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
        "C.4, Lemma 6 (53) with (56)",
        "E[nablabar nablabar^T] = (d/(P(d+2)))(||grad f||^2 + Tr Sigma/m + Tr Delta/m) I + (1 + "
        "(d-2)/(P(d+2)))(grad f grad f^T "
        "+ Sigma/m + Delta/m).",
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
        "C.4 (54), (55), (60)",
        "E[sum_{i,i' in C} s_i s_i^T] = (m/M) sum_i s_i s_i^T = m Sigma, Tr Sigma <= sigma^2.",
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
        "C.4 (57)",
        "E[sum_{i,i' in C} grad f_i grad f_{i'}^T] = (m^2 - m) grad f grad f^T + (m/M) sum_i grad f_i grad f_i^T = "
        "m^2 grad f "
        "grad f^T + m Delta.",
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
        "C.4 (58)",
        "Tr Delta = (1/M) sum ||grad f_i||^2 - ||grad f||^2 = (1/M) sum ||grad f - grad f_i||^2 <= sigma_G^2.",
        "inequality",
        assumes=(A2,),
        check=check_58(Fraction(1)),
        control=check_58(Fraction(99, 100)),
        broken="0.99 of the middle",
    ),
    decomfl(
        "eq59",
        "C.4 (59)",
        "E[z z^T u v^T z z^T] = (d/(d+2)) Tr(u v^T) I + (2d/(d+2)) u v^T.",
        "identity",
        assumes=(SPHERE,),
        check=check_59(one_way),
        control=check_59(both_ways, sphere=False),
        broken="Gaussian z",
        error="missing assumption",
        repair="(d/(d+2)) (Tr(u v^T) I + u v^T + v u^T), the printed form where the matrix is symmetric, as it is "
        "in T_1, T_2",
        repaired=check_59(both_ways),
        implies="nothing: it is used on symmetric sums only",
    ),
    decomfl(
        "eq61",
        "C.4 (61)",
        "T_2 = (1/(mP^2)) E[sum_{p,p'} z_p z_p^T Sigma z_p' z_p'^T] = ((P-1)/(mP)) Sigma + (d/(mP(d+2)))(Tr(Sigma) "
        "I + 2 Sigma).",
        "identity",
        assumes=(SPHERE,),
        check=check_61(True),
        control=check_61(False),
        broken="Gaussian z",
    ),
    decomfl(
        "eq63-64",
        "C.4 (63)-(64)",
        "E f(x_{r+1}) <= f(x_r) - eta <grad f, grad f^mu> + eta^2 E[nablabar^T Hess f(x') nablabar] + eta^2 L^2 "
        "||eps_r||^2.",
        "inequality",
        assumes=(A3, SPHERE),
        check=broken(
            tiny(h=0.25, mu=1.0, lr=1.0, L=0.25, sphere=True),
            eq63(2, lambda at: at.h.mean(0)),
            "f = x^2/8, x = 0, mu = eta = 1",
            ("theorem2",),
        ),
        control=broken(
            tiny(h=-1.0, x=1.0, lr=0.25, sphere=True),
            eq63(1, lambda at: at.h.mean(0)),
            "f = -x^2/2, mu -> 0, L for L^2",
            ("theorem2",),
        ),
        broken="L in place of L^2, but negative curvature: half of it is counted twice",
        error="unit",
        repair="with L ||eps||^2, and a matrix H(x_r) >= 0 above the Hessian in place of Hess f(x')" + SMOOTH_EACH,
        repaired=survives(eq63(1, above), "eq63", "", STEPPED),
        implies="for L < 1/2 the smoothing error is undercounted; nonconvex losses, for which the theorem is meant, "
        "break the "
        "step already with mu -> 0",
    ),
    decomfl(
        "eq65",
        "C.4 (65)",
        "E f(x_{r+1}) <= f(x_r) - (eta/2)||grad f||^2 + eta mu^2 L^2 (d+3)^3/8 + eta^2 E[nablabar^T Hess f(x') "
        "nablabar] + eta^2 "
        "L^4 mu^2 d^3.",
        "inequality",
        assumes=(A3, SPHERE, STEP2),
        check=MINUS,
        control=survives(eq65(above, 0.49), "eq65.control", "0.49 of the repaired right side", STEPPED),
        broken="0.49 of the repaired right side",
        error="wrong step",
        repair="with H(x_r) >= 0 above the Hessian in place of Hess f(x'), which is (66)" + SMOOTH_EACH,
        repaired=survives(eq65(above), "eq65", "", STEPPED),
        implies="for nonconvex losses the step from (63) on promises twice the descent that negative curvature "
        "gives to noise",
    ),
    decomfl(
        "eq66",
        "C.4 (66)",
        "By Assumption 4: E f(x_{r+1}) <= f(x_r) - (eta/2)||grad f^mu||^2 + eta mu^2 L^2 (d+3)^3/8 + eta^2 L^4 mu^2 "
        "d^3 + eta^2 "
        "T_3, T_3 = <H, E[nablabar nablabar^T]>.",
        "inequality",
        assumes=(A3, A4, SPHERE, STEP2),
        check=survives(eq65(above), "eq66", "without the last term; grad f^mu = grad f on quadratics", STEPPED),
        as_printed=each_fails(**{ABOVE: MINUS, "smooth f_i": check_cones("(66)")}),
        caveat=f"{ABOVE}, and {EACH}",
        control=survives(eq65(above, 0.49), "eq66.control", "0.49 of the right side", STEPPED),
        broken="0.49 of the right side",
        implies="where H(x_r) is negative the step counts twice the descent that curvature gives",
    ),
    decomfl(
        "eq67-68",
        "C.4 (67)-(68)",
        "T_3 <= L(1 + (d kappa + d - 2)/(P(d+2)))(||grad f||^2 + (sigma_G^2 + sigma^2)/m).",
        "inequality",
        assumes=(A1, A2, A3, A4, SPHERE, STEP2),
        check=survives(eq67(), "eq67", "H of any sign, a kappa that allows a step", STEPPED),
        control=survives(eq67(0.99), "eq67.control", "0.99 of the right side", STEPPED),
        broken="0.99 of the right side",
    ),
    decomfl(
        "eq69-70",
        "C.4 (69)-(70)",
        "One round with the bound on T_3 (69), and its telescoped sum r = 1..R <= 4(f(x_0) - f(x_R))/(R eta) + (4 "
        "eta L/m)(1 + "
        "...)(sigma_G^2 + sigma^2) + mu^2 L^2 (d+3)^3/2 + 4 eta mu^2 L^4 d^3 (70).",
        "inequality",
        assumes=(A1, A2, A3, A4, SPHERE, STEP2),
        check=worst_of(
            survives(at_bound(eq69()), "eq69", "(69) without its last term, H of any sign", STEPPED),
            check_runs("(70)", "eq70"),
        ),
        as_printed=each_fails(**{ABOVE: check_concave, "smooth f_i": check_cones("(69)")}),
        caveat=f"{ABOVE} in (70), and {EACH}",
        control=survives(eq69(0.49), "eq69.control", "0.49 of the right side of (69)", STEPPED),
        broken="0.49 of the right side of (69)",
        implies="the noise term is twice that of the theorem it is to prove, and the sum r = 1..R telescopes to "
        "f(x_1) - "
        "f(x_{R+1}); the printed ends hold all the same on every run tried",
    ),
    decomfl(
        "eq72",
        "C.4, Remark 4 (72)",
        "Var(grad f_i(x, xi_i)) = Var(grad f_i(x)) + E_i[Var(grad f_i(x, xi_i) | i)] <= sigma_G^2 + sigma^2.",
        "identity",
        assumes=(A1, A2),
        check=check_72(True),
        control=check_72(False),
        broken="without the variance between clients",
    ),
    decomfl(
        "theorem5",
        "C.5, Theorem 5",
        "Under A1-A4, "
        + STEP
        + ", Gaussian z: (1/R) sum_{r=1}^R E||grad f||^2 <= 4(f(x_0) - f*)/(R eta) + (2 eta L/m)(1 + "
        "(d kappa + d - 2)/(P(d+2)))(sigma_G^2 + sigma^2) + eta^2 L G^2 exp(-Omega(mdP)) + O(mu^2).",
        "inequality",
        assumes=(A1, A2, A3, A4, Printed(STEP, "Theorem 5")),
        check=check_theorem5,
        control=check_runs("Gaussian", "theorem5.control", 0.57, sphere=False),
        broken="0.57 of the repaired bound",
        error="wrong constant",
        repair=REPAIR5,
        repaired=worst_of(check_runs("Gaussian", "theorem5", sphere=False), coefficients(Fraction(1))),
        implies="the sphere's fourth moment is used for Gaussian z, up to three times larger (d = 1); the term in G "
        "has the "
        "unit of a loss and not of a squared gradient, so in suitable units it cannot help",
    ),
    decomfl(
        "eq73",
        "C.5 (73)",
        "With A = {||x_{r+1} - x_r|| <= 2 eta d G}: E f(x_{r+1}) <= f - (eta/2)||grad f||^2 + (eta^2/2)<H, E[. "
        "1(A)]> + (eta^2 "
        "L/2) E||. 1(A^c)||^2 + ... = the same with <H, E[.]> + (1/2) eta^2 <LI - H, E[. 1(A^c)]> + O(mu^2).",
        "inequality",
        assumes=(A3, A4),
        reading="the indicator of A inside the expectation, as in the second line; the first line has it outside",
        check=worst_of(check_73(True), check_73(True, 1.0)),
        control=check_73(False, 1.0),
        broken="the sharper form, with eta ||grad f||^2, and H in place of L outside the region",
    ),
    decomfl(
        "eq74",
        "C.5 (74)",
        "On A^c: 2 eta d G(x_r) <= ||x_{r+1} - x_r|| <= (eta/(mP)) sum_i sum_p ||z_p||^2 G(x_r).",
        "inequality",
        assumes=(A3,),
        check=check_74(0.0),
        control=check_74(0.49),
        broken="0.49 mu L ||z|| beside G",
        error="missing assumption",
        repair="(eta/(mP)) sum ||z_p||^2 (G(x_r) + mu L ||z_p||/2): the gradient is taken at x', not at x_r; as "
        "printed for mu -> 0",
        repaired=check_74(0.5),
        implies="near a point without gradient the step is the smoothing's, and Assumption 4's region shrinks to "
        "that point",
    ),
    decomfl(
        "eq75",
        "C.5 (75)",
        "P[A^c] <= P[(1/(mP)) sum_i sum_p ||z_p||^2 >= 2d].",
        "inequality",
        assumes=(A3,),
        check=check_75(1.0),
        control=check_75(0.0, 2.1),
        broken="2.1 d in place of 2d",
        error="missing assumption",
        repair="for mu -> 0 (or with G(x_r) + mu L ||z||/2 in the definition of A)",
        repaired=check_75(0.0),
        implies="for fixed mu the event A^c does not become rare near a solution: there it has probability 1",
    ),
    decomfl(
        "eq76",
        "C.5 (76), first step",
        "P[(1/(mP)) sum_i sum_p ||z_p||^2 <= 2d] = P[chi_{mdP} > 2mdP] (>= must be meant).",
        "identity",
        check=check_76(2, 1, 2),
        control=check_76(2, 2, 1),
        broken="directions that count once, as clients do: d degrees of freedom for P = 2",
        error="wrong independence",
        repair="P[chi_{dP} > 2dP]: all clients use the same z_p",
        repaired=worst_of(check_76(2, 1, 1), check_76(50, 3, 3)),
        implies="the tail does not shrink with the number of clients",
    ),
    decomfl(
        "chi2tail",
        "C.5 (76), second step",
        "P[chi_n > 2n] <= exp(-n/16), n = mdP.",
        "inequality",
        check=check_tail(1 / 16),
        control=check_tail(0.16),
        broken="exp(-0.16 n), just beyond Chernoff's exponent",
    ),
    decomfl(
        "eq77",
        "C.5 (77)",
        "(eta^2/2) <LI - H, E[. 1(A^c)]> <= eta^2 L G(x_r)^2 exp(-Omega(mdP)).",
        "inequality",
        assumes=(A3, A4),
        check=check_77(8, False),
        control=check_77(8, True, 0.99),
        broken="0.99 of the repaired right side",
        error="wrong independence",
        repair="<= (eta^2/2) ||LI - H|| G^2 d(d + 2/P) P[chi_{dP+4} > 2dP] for mu -> 0: it falls with dP, not with m",
        repaired=check_77(8, True),
        implies="no constant in Omega helps: with equal clients the left side does not depend on m",
    ),
]
