"""DeComFL, C.3, (30) to (42): how far one round descends, on exact moments.

What is wrong with it, in short:
    - One z serves all clients, so the terms of (34) are not independent: only sigma^2 and sigma_G^2 are divided by m.
    - Lemma 5's term in ||grad f||^2 is lost on the way to (42).
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.lemmas import ONE_OF_TWO, SMALL, bias
from fedtheory.theory.decomfl.rough import check_bias, check_rough, check_shared_bias, rough_moments, rough_sampled
from fedtheory.theory.decomfl.round import (
    A1,
    A2,
    A3,
    DOUBLE,
    EACH,
    LOCAL,
    MEAN,
    SMALL_MU,
    UNIFORM,
    Edge,
    Enumerated,
    Instance,
    Round,
    Terms,
    beyond,
    broken,
    corners,
    decomfl,
    equal,
    mended,
    over_sets,
    survives,
    tiny,
)
from fedtheory.theory.forms import chain
from fedtheory.theory.search import reals


def repaired_step(e: Edge) -> float:
    """Return the largest local step, in units of 1/L, that the repaired descent lemma admits."""
    return min(e.P / (24 * (e.d + 4)), math.sqrt(e.P / (e.d + e.P + 4)) / (8 * e.K))


# The displays: (left, right) of one round


def along(q: Round) -> float:
    """A_1 = <grad f(x_r), E x_{r+1} - x_r>."""
    at = q.at
    return float((at.h.mean(0) * at.x + at.a.mean(0)) @ (q.next[0] - at.x))


def eq31(scale: float = 1.0) -> Terms:
    """f(x_{r+1}) - f(x_r) - A_1 <= A_2."""
    return lambda q: (q.gain - along(q), scale * q.at.L / 2 * q.at.lr**2 * q.moved)


def eq33(drift: float = 1.0) -> Terms:
    """A_1 + (K eta/2)(||grad f||^2 + ||Gbar||^2) <= ..."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        left = along(q) + at.K * at.lr / 2 * (q.gradient2 + q.of_all / at.K**2)
        return left, bias(at, three=0.25) * at.K * at.lr * drift + drift * at.L**2 * at.lr * q.chi

    return terms


def eq34(q: Round) -> tuple[float, float]:
    """The equality: together against one by one."""
    at = q.at
    return q.together, float((q.size2 - q.exact2).sum()) / (at.m * at.M)


def together_right(q: Round) -> float:
    at, w = q.at, (q.at.d + 4) / q.at.P
    own = (1 + 2 * w) * at.sigma2 / at.m + 3 * w * (q.gradient2 + at.dissimilarity2 / at.m)
    return at.K * (own + bias(at, 0.5 / at.P)) + 6 * w * at.L**2 * q.chi


def eq34_repaired(scale: float = 1.0) -> Terms:
    return lambda q: (q.together, scale * together_right(q))


def of_subset(q: Round) -> float:
    """E||(1/m) sum_{i in C} [grad f_i(x_r) - grad f(x_r)]||^2."""
    at = q.at
    own = at.h * at.x + at.a
    gap = ((own - own.mean(0)) ** 2).sum(1).mean()
    return float(gap) * (at.M - at.m) / (at.m * max(at.M - 1, 1))


def eq37(scale: float = 1.0) -> Terms:
    """A_5, which is 3 A_4 for quadratics, against (b)."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        return 3 * (q.of_sample - q.of_all), scale * (18 * at.K * at.L**2 * q.chi + 9 * at.K**2 * of_subset(q))

    return terms


def sampled_right(q: Round) -> float:
    at = q.at
    return bias(at, three=1.5) * at.K**2 + 18 * at.K * at.L**2 * q.chi + 9 * at.K**2 / at.m * at.dissimilarity2


def eq38(scale: float = 1.0) -> Terms:
    """A_3/(L eta^2) - E||(1/M) sum sum grad f_i^mu||^2."""
    return lambda q: (q.of_sample - q.of_all, scale * sampled_right(q))


def printed_A2(q: Round) -> float:
    """The right side of (39) over L eta^2, without its last term."""
    at, w = q.at, (q.at.d + 4) / q.at.P
    own = 6 * w * (at.K * q.gradient2 + at.L**2 * q.chi + at.K * at.dissimilarity2) + 2 * w * at.K * at.sigma2
    return (own + at.K * bias(at, 0.5 / at.P)) / at.m + sampled_right(q)


def sampled_sharp(q: Round) -> float:
    """A_4 as the variance of a mean of m: at most 1/m of the clients' spread, (a+b)^2 <= 2a^2 + 2b^2."""
    at = q.at
    return (2 * at.K**2 * at.dissimilarity2 + 4 * at.K * at.L**2 * q.chi + at.K**2 * bias(at, three=1.0)) / at.m


def repaired_A2(q: Round) -> float:
    return together_right(q) + sampled_sharp(q)


def eq39(right: Callable[[Round], float], scale: float = 1.0) -> Terms:
    return lambda q: (q.moved / 2, scale * (right(q) + q.of_all))


def eq40(right: Callable[[Round], float], scale: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        left = q.gain + at.K * at.lr / 2 * (q.gradient2 + q.of_all / at.K**2)
        room = bias(at, three=0.25) * at.K * at.lr + at.L**2 * at.lr * q.chi
        return left, scale * (room + at.L * at.lr**2 * (right(q) + q.of_all))

    return terms


def eq41(right: Callable[[Round], float], scale: float = 1.0) -> Terms:
    """(40) without ||Gbar||^2."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        room = bias(at, three=0.25) * at.K * at.lr + at.L**2 * at.lr * q.chi
        return q.gain + at.K * at.lr / 2 * q.gradient2, scale * (room + at.L * at.lr**2 * right(q))

    return terms


def per_round(at: Instance, printed: bool) -> tuple[float, float, float]:
    """What multiplies sigma_G^2, sigma^2, and the bias, in the bound on ||grad f||^2: (44), printed or repaired."""
    w, v, y = (at.d + 4) / at.P, (at.d + at.P + 4) / at.P, at.L * at.lr
    if printed:
        return (72 * at.K + 24 * w) * y / at.m, 16 * w * y / at.m, bias(at, three=2)
    drift = (at.K * y) ** 2 * v
    return (8 * at.K + 12 * w) * y / at.m + 21 * drift, 4 * y * (1 + 2 * w) / at.m + 14 * drift, bias(at, three=2)


def eq42(printed: bool, scale: float = 1.0) -> Terms:
    """One round: f(x_{r+1}) - f(x_r) + (K eta/4)||grad f||^2 <= ..."""

    def terms(q: Round) -> tuple[float, float]:
        at = q.at
        of_G, of_noise, rest = per_round(at, printed)
        front = at.K * at.lr / 4
        right = front * (of_G * at.dissimilarity2 + of_noise * at.sigma2 + rest)
        return q.gain + front * q.gradient2, scale * right

    return terms


def symbolic_repair(effort: str) -> Outcome:
    """The coefficients of REPAIR, from the repaired (34), (39) and Lemma 5: each at the largest admissible step."""
    y, small = Fraction(1, 8), Fraction(1, 24)  # K L eta <= y/sqrt(v), v = (d+P+4)/P >= 1, and w L eta <= small
    chi = 1 + 6 * small + 4 * y  # coefficient of chi over L^2 eta
    descent = -Fraction(1, 2) + 3 * small + 3 * chi * y**2
    facts = {
        "K L eta <= 1/2": y <= Fraction(1, 2),
        "Lemma 5": 3 * y**2 <= Fraction(1, 2),
        "-1/4": descent <= -Fraction(1, 4),
        "sigma_G^2": 4 * 3 * chi <= 21,
        "sigma^2": 4 * 2 * chi <= 14,
        "mu^2": 4 * (Fraction(1, 4) + y)  # over (d+3)^3, at d = 1, where (d+6)^3/(d+3)^3 is largest
        + 2 * small * Fraction(7**3, 5 * 4**3)
        + 4 * chi * y**2 * (Fraction(7**3, 2 * 6 * 4**3) + Fraction(1, 2))
        <= 2,
    }
    wrong = [name for name, fine in facts.items() if not fine]
    said = f"coefficient of chi <= {float(chi):.4g} L^2 eta, of K eta ||grad f||^2 <= {float(descent):.4g}"
    said += f"; not: {', '.join(wrong)}" if wrong else "; all coefficients follow"
    return Outcome(not wrong, "symbolic", None, said, {"fails": wrong} if wrong else None)


# Identities and chains


def check_33(effort: str) -> Outcome:
    at = tiny(h=[[1.0], [-0.4]], a=[[0.5], [-1.0]], x=0.8, M=2, K=2, lr=0.2, m=1, mu=0.3, noise=0.0)
    r = Enumerated(at)
    own = at.h[:, None] * r.points + at.a[:, None]  # (K, M, C, 1): grad f_i^mu = grad f_i
    left = torch.stack([r.mean(end) for end in r.ends]).mean(0) - at.x
    right = -at.lr * torch.einsum("c,kmcd->d", r.p, own) / at.M
    return equal(
        left, right, "two clients, m = 1, K = 2: E x_{r+1} - x_r = -eta E (1/M) sum sum grad f_i^mu by the client"
    )


def check_35(chances: Sequence[float]) -> Check:
    """Bias and variance over the sampled set."""

    def check(effort: str) -> Outcome:
        at = tiny(h=[[1.0], [-0.4], [0.2]], a=[[0.5], [-1.0], [2.0]], x=0.8, M=3, K=2, lr=0.2, m=2, noise=0.0)
        r = Enumerated(at)
        own = (at.h[:, None] * r.points + at.a[:, None]).sum(0)  # (M, C, 1)
        mean = own.mean(0)
        square = lambda v: float(r.mean((v**2).sum(-1)))
        left = sum(p * square(own[rows].mean(0)) for p, rows in zip(chances, r.sets, strict=True))
        right = square(mean) + sum(
            p * square(own[rows].mean(0) - mean) for p, rows in zip(chances, r.sets, strict=True)
        )
        return equal(left, right, "three clients, m = 2, K = 2, all sets, iterates of the client")

    return check


def check_37c(factor: Callable[[int, int], Fraction]) -> Check:
    """m^2/(9 K^2) times (c), for numbers of mean zero."""
    return over_sets(factor, lambda M: [Fraction(2 * i - M + 1, 2) for i in range(M)], "grad f_i - grad f")


def short_by_c4() -> tuple[list[Any], Any]:
    """c4 is 6 y t + 2 u <= t with y = K L eta, t = m P (d+3)^3, u = L eta (d+6)^3: then y <= 1/6."""
    y, t, u = reals("y t u")
    return [y >= 0, t > 0, u >= 0, 6 * y * t + 2 * u <= t], 6 * y <= 1


CROWD = tiny(h=1.0, x=1.0, M=61, m=61, lr=1 / 256, mu=SMALL_MU)
C14 = Printed("eta <= min{c1, .., c4}", "Theorem 1")


# Where (37) and (38) are tightest: two clients of opposite curvature, numbers for `build`
TIGHT37 = torch.tensor([-0.98, 0.98, 1.06, 1.35, -0.24, 0.54, -0.39, -0.17], dtype=DOUBLE)
TIGHT38 = torch.tensor([-1.12, 1.12, -1.37, -2.03, 0.2, -0.2, 0.68, -2.24], dtype=DOUBLE)
SAMPLED = [*(e for e in SMALL if e.m < e.M), ONE_OF_TWO]

CLAIMS: list[Claim] = [
    decomfl(
        "eq30-33",
        "inequality",
        assumes=(MEAN, A3, UNIFORM),
        check=worst_of(
            check_33,
            survives(eq31(), "eq31", "(30)-(32)", SMALL),
            survives(eq33(), "eq33", "A_1", SMALL),
            check_bias("(33)"),
        ),
        as_printed=check_rough,
        error="missing assumption",
        implies="as decomfl.assump1-3",
        caveat=EACH,
        **beyond(eq31, 0.99, "eq31", "A_2", SMALL),
    ),
    decomfl(
        "eq34",
        "identity",
        assumes=(A1, A2, A3),
        check=broken(
            tiny(h=0.0, a=1.0, M=2, m=2, mu=SMALL_MU), eq34, "two equal clients f = x, K = P = 1: both see the same z"
        ),
        **beyond(eq34_repaired, 0.99, "eq34", "the repaired right side", SMALL),
        repaired=worst_of(survives(eq34_repaired(), "eq34", "", SMALL), check_shared_bias(True)),
        error="wrong independence",
        repair="E||.||^2 <= K(1 + 2w) sigma^2/m + 3wK(||grad f||^2 + sigma_G^2/m) + 6wL^2 chi_r + K mu^2 L^2 "
        "(d+6)^3/(2P), w "
        "= (d+4)/P: directions are common to all clients, so only what differs between clients is divided by m" + LOCAL,
        implies="more clients do not average the directions' variance: c1 allows steps that grow with m for no reason "
        "(c2 and c3 save it)",
    ),
    decomfl(
        "eq35",
        "identity",
        assumes=(UNIFORM,),
        check=check_35([1 / 3] * 3),
        control=check_35([0.34, 0.33, 0.33]),
        broken="client sets that are not equally likely",
    ),
    decomfl(
        "eq36-37ab",
        "inequality",
        assumes=(UNIFORM,),
        check=worst_of(survives(eq37(), "eq37", "(37)", SAMPLED, starts=[TIGHT37]), check_bias("(36)")),
        as_printed=rough_sampled,
        error="missing assumption",
        implies="as decomfl.assump1-3",
        caveat=EACH,
        **beyond(eq37, 0.422, "eq37", "(b)", SAMPLED, starts=[TIGHT37]),
    ),
    decomfl(
        "eq37c",
        "identity",
        assumes=(UNIFORM,),
        check=check_37c(lambda M, m: Fraction(1)),
        control=check_37c(lambda M, m: Fraction(M - m, M)),
        broken="the factor (M-m)/M",
        error="wrong independence",
        repair="the factor is (M-m)/(M-1), so (c) is <=, with equality for m = 1; (d) stands, and m = M has no such "
        "term. As printed for clients drawn with replacement, of which m are no set of cardinality m",
        repaired=check_37c(lambda M, m: Fraction(M - m, M - 1)),
        implies="the bound does not see that heterogeneity costs nothing in the first step when all clients take part",
    ),
    decomfl(
        "eq38",
        "inequality",
        assumes=(A2, A3, UNIFORM),
        check=worst_of(
            survives(eq38(), "eq38", "", [*SMALL, ONE_OF_TWO], starts=[TIGHT38]),
            rough_moments("(38)"),
            check_bias("(38)"),
        ),
        **beyond(eq38, 0.141, "eq38", "the last three terms", [*SMALL, ONE_OF_TWO], starts=[TIGHT38]),
    ),
    decomfl(
        "eq39",
        "inequality",
        assumes=(A1, A2, A3),
        check=broken(CROWD, eq39(printed_A2), "61 equal clients f = x^2/2, K = P = 1, x = 1: 3/2 against 1 + 30/61"),
        **mended(lambda share: eq39(repaired_A2, share), 0.49, "eq39", SMALL),
        error="wrong independence",
        repair="with the repaired (34), and with (2K^2 sigma_G^2 + 4KL^2 chi_r + K^2 mu^2 L^2 (d+3)^3)/m from (38): "
        "the variance of a mean of m clients falls with m as a whole" + LOCAL,
        implies="for many clients the printed second moment is below that of a single direction",
    ),
    decomfl(
        "eq40",
        "inequality",
        assumes=(A1, A2, A3),
        check=broken(CROWD, eq40(printed_A2), "61 equal clients f = x^2/2, K = P = 1, x = 1", ("theorem1",)),
        **mended(lambda share: eq40(repaired_A2, share), 0.49, "eq40", SMALL),
        error="wrong independence",
        repair="with the repaired (39)" + LOCAL,
        implies="as (39)",
    ),
    decomfl(
        "eq41",
        "inequality",
        assumes=(A1, A2, A3, C14),
        check=broken(
            tiny(h=1.0, noise=1.0, P=19, mu=SMALL_MU),
            eq41(printed_A2),
            "f = x^2/2, xi = +-1, P = 19, x = x*: (1 + 2/P)/2 against 10/P",
            ("theorem1",),
        ),
        **beyond(lambda share: eq41(repaired_A2, share), 0.49, "eq41", "the repaired right side", SMALL),
        error="wrong independence",
        repair="with the repaired (39); the step from (40) stands, since c4 gives K L eta <= 1/6" + LOCAL,
        repaired=worst_of(
            survives(eq41(repaired_A2), "eq41", "", SMALL),
            chain(short_by_c4, "L eta^2 K^2 ||Gbar||^2 <= (K eta/2)||Gbar||^2 by c4"),
        ),
        implies="as Lemma 3: with one client, it fails from P = 3d + 16 directions on",
    ),
    decomfl(
        "eq42",
        "inequality",
        assumes=(A1, A2, A3, C14),
        check=broken(
            tiny(h=1.0, noise=1.0, P=39, mu=SMALL_MU),
            eq42(True),
            "f = x^2/2, xi = +-1, P = 39, x = x*: (1 + 2/P)/2 against 20/P",
            ("theorem1",),
        ),
        **beyond(
            lambda share: eq42(False, share), 0.34, "eq42", "the repaired right side", corners(rule=repaired_step)
        ),
        error="wrong step",
        repair="one round of the repaired theorem. (Apart from the noise: at c1 = eta the first bracket of (41) is "
        "already "
        "K eta/4, and Lemma 5's ||grad f||^2 comes on top)",
        repaired=worst_of(survives(eq42(False), "eq42", "", corners(rule=repaired_step)), symbolic_repair),
        implies="the step from (41) to (42) needs steps shorter than c1 by a constant factor",
    ),
]
