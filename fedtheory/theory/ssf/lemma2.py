"""SSF (arXiv:2604.25467v1), Section 4.4: Lemma 2, the drift of the local steps, (8) to (20)."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.search import implies, reals, same, worst
from fedtheory.theory.ssf.algorithm import lines
from fedtheory.theory.ssf.attack import (
    GIVEN_P,
    NOISY,
    Edge,
    Terms,
    found_gap,
    identical,
    on,
    refuted_each,
    sharpened,
    survives,
    times,
    with_units,
)
from fedtheory.theory.ssf.hypotheses import A1, A12, STEPS2, claim
from fedtheory.theory.ssf.round import (
    NOISE_ALONE,
    Round,
    admissible,
    dump,
    kept,
    moments,
    partial,
    play,
    projected_directions,
    steep,
    steps,
    tiny,
)
from fedtheory.theory.worst_case.program import settles, ssf_drift

# The statements: (left, right) of one round


def eq8(lr: Any, K: Any, sigma2: Any, G: Any, noise: float = 6, drift: float = 12) -> Any:
    """Of (8); G is G_{i,t}."""
    return noise * K**2 * lr**2 * sigma2 + drift * K**3 * lr**2 * G


def lemma2(noise: float = 6.0, drift: float = 12.0) -> Terms:
    """Return both sides of (8) for every client, with these constants."""
    return lambda q: worst((q.drifts, eq8(q.at.lr, q.at.K, q.at.sigma2, q.corrected, noise, drift)))


def eq109(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """(8) for the mean of all clients: E_drift and the mean of the right-hand sides over K."""
    return q.drift, eq8(q.at.lr, q.at.K, q.at.sigma2, q.corrected.mean()) / q.at.K


def eq10(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    parts = partial(q, projected_directions(q)) + partial(q, q.down(q.xi))
    return worst((moments(q)[:, 1:], 2 * q.at.lr**2 * parts))


def eq11_12(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    m, L2 = steps(q), q.at.L**2
    full = q.each(((q.grad + (q.at.c - q.at.ci)[:, None, None]) ** 2).sum(-1))  # E ||d_i^{t,j}||^2, (N, K)
    e, G = moments(q)[:, :-1], q.corrected[:, None]
    left = partial(q, projected_directions(q))
    lines = [
        (left, m * full.cumsum(-1)),
        (full, 2 * L2 * e + 2 * G),
        (left, 2 * L2 * m * e.cumsum(-1) + 2 * m**2 * G),
    ]
    return worst(*lines)


def eq16(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    return worst((partial(q, q.down(q.xi)), (steps(q) * q.at.sigma2).expand(q.at.N, -1)))


def eq14_15(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Cross terms vanish: the square of the sum is the sum of the squares."""
    noise = q.down(q.xi)
    return [(partial(q, noise), q.each((noise**2).sum(-1)).cumsum(-1))]


def eq20(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    lr, K, m, e = q.at.lr, q.at.K, steps(q), moments(q)
    G, L2 = q.corrected[:, None], q.at.L**2
    C = 4 * lr**2 * K**2 * G + 2 * lr**2 * K * q.at.sigma2
    alpha = 4 * lr**2 * L2 * K
    S = e.cumsum(-1)[:, :-1]
    tight = 4 * lr**2 * L2 * m * S + 4 * lr**2 * m**2 * G + 2 * lr**2 * m * q.at.sigma2
    lines = [tight, alpha * S + C, C * (1 + alpha) ** (m - 1), (3 * C).expand(-1, K)]
    return worst(*((e[:, 1:], line) for line in lines))


def step6_sum(share: float = 1.0) -> Callable[[Round], list[tuple[torch.Tensor, torch.Tensor]]]:
    """sum_{k=0}^{K-1} e_k = sum_{k=1}^{K-1} e_k + share e_K: as printed with share 1, and as e_0 = 0 with share 0."""

    def pairs(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
        e = moments(q)
        return [(e[:, :-1].sum(-1), e[:, 1:-1].sum(-1) + share * e[:, -1])]

    return pairs


def step6_repaired(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """sum_{k=1}^{K-1} e_k <= (K-1) max e_k, tight at K = 2, and each e_k against its bound."""
    lr, K, e = q.at.lr, q.at.K, moments(q)[:, 1:-1]
    bound = 12 * lr**2 * K**2 * q.corrected + 6 * lr**2 * K * q.at.sigma2
    top = e.amax(-1)
    return worst((q.drifts, (K - 1) * top), (top, bound))


# Symbols, recursions and families


def symbolic_recursion(effort: str) -> Outcome:
    """(19)-(20): the induction, alpha <= 1/K on the whole admissible set, (1 + 1/K)^K < 3."""
    import sympy

    alpha, C = sympy.symbols("alpha C", positive=True)
    k = sympy.symbols("k", integer=True, nonnegative=True)
    S = C / alpha * ((1 + alpha) ** k - 1)
    steps_agree = same((1 + alpha) * S + C, (S.subs(k, k + 1))) and same(alpha * S + C, C * (1 + alpha) ** k)
    eta, L, K = reals("eta L K")
    small = implies([eta > 0, L > 0, K >= 1, 2 * K * L * eta <= 1], 4 * eta * eta * L * L * K * K <= 1)
    grows = all((1 + 1 / n) ** n < math.e for n in range(1, 1000))  # and ln(1 + x) <= x for every K
    holds = steps_agree and small.holds and grows
    return Outcome(
        holds, "smt", None,
        f"induction {'agrees' if steps_agree else 'differs'} (sympy); alpha <= 1/K: {small.detail}; (1 + 1/K)^K < e",
    )  # fmt: skip


def check_gronwall(effort: str) -> Outcome:
    """Lemma 2 with constants 2 and 1, for every K, by norms in L2 and a = eta_l L <= 1/(2K).

    |Delta_k| <= eta_l (k |G| + L sum_{j<k} |Delta_j| + sigma sqrt k): the recursion is linear, so its noise part
    n_k = sqrt k + a sum_{j<k} n_j and its drift part d_k = k + a sum_{j<k} d_j add up, and (u + v)^2 <= 2 u^2 + 2
    v^2. It is to show that 2 sum n_k^2 <= 2 K^2 and 2 sum d_k^2 <= K^3. Both parts rise with k, so that a sum over
    k < K is at most the integral over (0, K), and by induction they are at most K^{1/2} n(k/K) and K d(k/K), where
    n(u) = sqrt u + (1/2) int_0^u n and d(u) = u + (1/2) int_0^u d. Then d(u) = 2 (e^{u/2} - 1), whose square has
    the integral 4 (e - 4 sqrt e + 4) < 1/2, and n(u) <= sqrt u (1 + c u), c = sqrt e/3 (Gronwall), whose square has
    the integral 1/2 + 2 c/3 + c^2/4 < 1. The recursions themselves are played for K up to 3,000 beside these two
    limits.
    """
    noise = drift = 0.0
    for K in range(1, 200 if effort == "quick" else 3000):
        a, n_sum, d_sum, n2, d2 = 1 / (2 * K), 0.0, 0.0, 0.0, 0.0
        for k in range(K):
            n, d = math.sqrt(k) + a * n_sum, k + a * d_sum
            n_sum, d_sum, n2, d2 = n_sum + n, d_sum + d, n2 + n * n, d2 + d * d
        noise, drift = max(noise, n2 / K**2), max(drift, d2 / K**3)
    c = math.sqrt(math.e) / 3
    limits = 1 / 2 + 2 * c / 3 + c * c / 4, 4 * (math.e - 4 * math.sqrt(math.e) + 4)
    holds = noise <= limits[0] <= 1 and drift <= limits[1] <= 0.5
    said = (
        f"recursion of norms: at most 2 x {limits[0]:.3f} <= 2 and 2 x {limits[1]:.3f} <= 1 for every K, played: "
        f"2 x {noise:.3f} and 2 x {drift:.3f}"
    )
    return Outcome(holds, "exact", max(noise, 2 * drift), said)


def check_concave(noise: float = 6.0, drift: float = 12.0) -> Check:
    """Lemma 2 with these constants on the search's worst family for every K: F = -L x^2/2, eta_l = 1/(2KL).

    Noise alone: Delta^k is eta_l times a sum of independent terms p^j xi with p = 1 + 1/(2K), so that e_k = eta_l^2
    sigma^2 (q^k - 1)/(q - 1) with q = p^2. Drift alone: Delta^k = eta_l (p^k - 1) 2K G. Both sums are geometric. For K
    -> infinity p^k tends to e^(k/(2K)) and E_{i,t} over K^2 eta_l^2 sigma^2 and K^3 eta_l^2 G to integrals over (0, 1),
    of e^s - 1 and of 4 (e^(s/2) - 1)^2.
    """

    def closed(K: int) -> tuple[float, float]:
        p, a = 1 + 1 / (2 * K), 1 / (2 * K)
        one, two = (p**K - 1) / (p - 1), (p ** (2 * K) - 1) / (p * p - 1)
        return (two - K) / (K**2 * (p * p - 1)), (two - 2 * one + K) / (K**3 * a * a)

    def check(effort: str) -> Outcome:
        gap, terms = 0.0, lemma2(noise, drift)
        for K in (2, 4, 8):
            alone = (tiny(-1.0, K=K, lr=1 / (2 * K), u=1.0), tiny(-1.0, K=K, lr=1 / (2 * K), a=1.0))
            for constant, value, at in zip((noise, drift), closed(K), alone):
                left, right = terms(play(at))
                gap = max(gap, abs(float(left / right) * constant - value))
        limits = math.e - 2, 4 * math.e - 16 * math.sqrt(math.e) + 16
        values = [closed(K) for K in range(1, 300 if effort == "quick" else 3000)]
        rising = all(a[i] <= b[i] for a, b in itertools.pairwise([*values, limits]) for i in (0, 1))
        worst = max(limits[0] / noise, limits[1] / drift)
        said = (
            f"closed forms on F = -L x^2/2 (gap {gap:.1e} to played rounds), rising with K to e - 2 = "
            f"{limits[0]:.4f} of the noise and 4 (sqrt e - 2)^2 = {limits[1]:.4f} of the drift: no "
            "smaller constants hold for every K"
        )
        return Outcome(gap < 1e-12 and rising and worst <= 1, "exact", worst, said)

    return check


def check_exponent(reuse: bool, limit: float) -> Check:
    """The exponent of the noise part of the drift in K at fixed eta_l, F = 0 and F = -x^2/2, from K = 5 to K = 10.

    For F = 0 it is eta_l^2 sigma^2 K (K - 1)/2: the exponent is that of sqrt(K (K - 1)), in which it is 2 at every K.
    """

    def check(effort: str) -> Outcome:
        sizes, lr, exponents = (5, 10), 2.0**-14, []
        scale = math.log(math.prod((sizes[1], sizes[1] - 1)) / math.prod((sizes[0], sizes[0] - 1))) / 2
        for h in (0.0, -1.0):
            small, large = (float(play(replace(kept(K, h, lr=lr), reuse=reuse)).drift) * K for K in sizes)
            exponents.append(math.log(large / small) / scale)
        worst = max(exponents)
        at = kept(sizes[1], lr=lr)
        data = {"instance": dump(at), "exponent": worst, "slacks": admissible(at)}
        said = f"from K = {sizes[0]} to {sizes[1]} the noise part of the drift grows like sqrt(K (K - 1))^{worst:.4f}"
        return Outcome(worst <= limit, "exact", worst, said, None if worst <= limit else data)

    return check


DRIFT = [*GIVEN_P[:7], Edge(K=8, one_frame=True), Edge(K=6, noisy=False, one_frame=True)]


CLAIMS: list[Claim] = [
    claim(
        "lemma2", "expectation", assumes=(*A12, STEPS2),
        check=with_units(
            worst_of(
                survives(lemma2(), "lemma2", "any P, any controls", DRIFT),
                check_concave(),
                settles(
                    {f"K = {K}": functools.partial(ssf_drift, K, 1 / (2 * K), parts=2, N=2) for K in (2, 3)},
                    12.0,
                    "without noise, any smooth loss",
                ),
            ),
            lemma2(),
        ),
        control=refuted_each(check_concave(0.71), check_concave(6, 0.49)),
        broken="6 lowered to 71/100, 12 to 49/100, each just below what F = -L x^2/2 reaches",
        implies="With a kept minibatch, which Assumption 2 itself allows, the drift grows like K^3 eta_l^2 sigma^2: it "
        "is above the bound from K = 15 on.",
        repair="The same with constants 2 and 1 in place of 6 and 12",
        repaired=worst_of(check_gronwall, survives(lemma2(2.0, 1.0), "lemma2", "constants 2 and 1", DRIFT)),
    ),
    claim(
        "lemma2.noise", "rate", assumes=(*A12, STEPS2),
        check=worst_of(check_gronwall, check_exponent(False, 2.001)),
        control=check_exponent(False, 1.99),
        broken="growth like K^1.99",
    ),
    claim(
        "lemma2.eq9-10", "inequality", check=with_units(
            worst_of(
                survives(eq10, "eq10", "(10)", GIVEN_P), on(steep, eq10, NOISE_ALONE),
                identical(lambda q: lines()(q)[:1], "eq9", "(9)", free_c=True)
            ),
            eq10,
        ),
        control=on(steep, times(0.72, eq10), ""),
        broken="the factor 2 lowered to 1.44",
    ),
    claim(
        "lemma2.eq11-12", "inequality", assumes=(A1,),
        check=with_units(survives(eq11_12, "eq11", "(11)-(12)", GIVEN_P), eq11_12),
        control=sharpened(0.99, eq11_12, "eq11", *GIVEN_P),
        broken="right-hand sides times 99/100",
    ),
    claim(
        "lemma2.eq13-16", "expectation", assumes=(*A12, STEPS2),
        check=with_units(
            worst_of(survives(eq16, "eq16", "(16)", NOISY), identical(eq14_15, "eq14", "(14)-(15)", gated=True)), eq16
        ),
        control=sharpened(0.99, eq16, "eq16", *NOISY),
        broken="sigma^2 times 99/100",
    ),
    claim(
        "lemma2.eq17-20", "inequality", assumes=(*A12, STEPS2),
        check=with_units(
            worst_of(symbolic_recursion, survives(eq20, "eq20", "(17)-(20)", GIVEN_P), on(steep, eq20, NOISE_ALONE)),
            eq20,
        ),
        control=on(steep, times(0.61, eq20), ""),
        broken="right-hand sides times 61/100",
    ),
    claim(
        "lemma2.step6", "inequality", assumes=A12,
        check=found_gap(lambda: tiny(0.0, a=1.0, lr=0.5), step6_sum(), "K = 1, F = x: e_0 = 0, e_1 = eta_l^2"),
        control=refuted_each(
            found_gap(lambda: tiny(0.0, a=1.0, lr=0.5), step6_sum(0.01), "K = 1, F = x"),
            on(lambda: tiny(0.0, a=1.0, K=2), times(0.99, step6_repaired), "K = 2, F = x"),
        ),
        broken="a hundredth of the surplus term e_K; the repaired (K-1) max e_k times 99/100",
        error="index",
        implies="Nothing downstream: the bound follows from the corrected line, with K - 1 in place of K, and says "
        "that the drift vanishes for K = 1, which (8) does not show.",
        repair="E_{i,t} = sum_{k=1}^{K-1} e_k <= (K-1) max_{1<=k<=K-1} e_k <= (K-1)(12 eta_l^2 K^2 G + 6 eta_l^2 K "
        "sigma^2), with fresh samples",
        repaired=with_units(
            survives(step6_repaired, "step6", "", [e for e in GIVEN_P if e.K > 1]), step6_repaired
        ),
    ),
]  # fmt: skip
