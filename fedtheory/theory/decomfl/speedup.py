"""DeComFL, Sec. 4.1: Corollary 1 and Remarks 1 to 3, the rate and its linear speedups."""

import math
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, Printed, each_needed, worst_of
from fedtheory.theory.decomfl.descent import per_round
from fedtheory.theory.decomfl.round import DOUBLE, Round, decomfl, tiny, trajectory
from fedtheory.theory.rounding import digits

REMARK3 = (
    "about equation (16) of another paper (FedMeZO), whose text is not among the papers checked here; the step in "
    "question, "
    "the sign of an inner product before an inequality, cannot be judged from this paper"
)


def over_rate(K: int, P: int, d: int, m: int, repaired: bool) -> float:
    """Noise terms of a bound over sqrt(d)/sqrt(mPKR), step of Corollary 1, L = sigma = sigma_G = 1, R -> inf."""
    scale = 1e-12  # eta^2 against eta
    at = tiny(d=d, K=K, P=P, m=m, lr=scale)
    of_G, of_noise, _ = per_round(at, not repaired)
    return (of_G + of_noise) / scale * m * P / d


def check_corollary(limit: float) -> Check:
    """The bounds of Theorem 1, printed and repaired, over the rate: bounded where K P <= d."""

    def check(effort: str) -> Outcome:
        cases = [
            (K, P, d, m) for K in (1, 2, 5, 20) for P in (1, 4, 50) for d in (1, 10, 1000) for m in (1, 7) if d >= K * P
        ]
        worst = max(over_rate(*case, repaired) for case in cases for repaired in (True, False))
        said = (
            f"{len(cases)} sizes with K P <= d: noise of both bounds over the rate at most {worst:.4g}; 4D and mu "
            f"follow suit"
        )
        holds = worst <= limit * (1 + 1e-9)
        return Outcome(holds, "exact", worst / limit, said, None if holds else {"ratio": digits(worst), "limit": limit})

    return check


def line_average(P: int, R: int, eta: float) -> float:
    """Average of E||grad f||^2, f = x^2/2, xi = +-1, K = 1, from x*: E x^2 <- a E x^2 + b, a and b from one round."""
    a, b = (float(Round(tiny(x=x, noise=1 - x, P=P, lr=eta)).next[1]) for x in (1.0, 0.0))
    level = b / (1 - a)
    return level * (1 - (1 - a**R) / (R * (1 - a)))


def check_growth(effort: str) -> Outcome:
    """Corollary 1 with P far above d = 1: eta = sqrt(P/R), rate 1/sqrt(P R)."""
    ratios = {}
    for P in (1, 100, 10_000):
        R = 10_000 * P
        ratios[P] = line_average(P, R, math.sqrt(P / R)) * math.sqrt(P * R)
    said = "f = x^2/2, xi = +-1, d = m = K = 1, R = 10^4 P: average over the rate " + ", ".join(
        f"{v:.3g} (P = {P})" for P, v in ratios.items()
    )
    holds = ratios[10_000] < 10 * ratios[1]
    data = {"f": "x^2/2", "sigma": 1, "eta": "sqrt(P/R)", "ratios": {str(P): digits(v) for P, v in ratios.items()}}
    return Outcome(holds, "exact", ratios[10_000] / ratios[1], said, None if holds else data)


def check_speedup(K: int, heterogeneity: float, slack: float = 1.1) -> Check:
    """The level after many rounds at K against K = 1, eta ~ 1/sqrt(K): linear speedup is sqrt(K) times less."""

    def check(effort: str) -> Outcome:
        level = {}
        for steps in (1, K):
            at = tiny(
                a=[[heterogeneity], [-heterogeneity]], noise=0.0 if heterogeneity else 1.0, M=2, m=1, d=1,
                K=steps, lr=0.02 / math.sqrt(steps),
            )  # fmt: skip
            level[steps] = trajectory(at, 250)[-1]
        ratio = level[K] / level[1]
        holds = ratio <= slack / math.sqrt(K)
        kind = "heterogeneity" if heterogeneity else "minibatch noise"
        said = (
            f"{kind} alone, m = 1 of 2, eta = 0.02/sqrt(K): E||grad f||^2 at K = {K} over K = 1: {ratio:.3g} "
            f"(linear speedup {1 / math.sqrt(K):.3g})"
        )
        data = {"K": K, "sigma_G": heterogeneity, "ratio": digits(ratio)}
        return Outcome(holds, "exact", ratio * math.sqrt(K), said, None if holds else data)

    return check


def check_more(name: str, n: int, d: int, slack: float = 1.1) -> Check:
    """The same for n clients (m = M = n) or n perturbations, eta ~ sqrt(n): f = ||x||^2/2, minibatch noise, at rest."""

    def check(effort: str) -> Outcome:
        level = {}
        for count in (1, n):
            sizes: dict[str, Any] = {"M": count, "m": count} if name == "m" else {"P": count}
            first = torch.eye(d, dtype=DOUBLE)[0]
            start, rest = (
                Round(
                    tiny(x=(x * first).tolist(), noise=[((1 - x) * first).tolist()], d=d, lr=1e-4 * count**0.5, **sizes)
                )
                for x in (1.0, 0.0)
            )
            level[count] = float(rest.next[1].trace() / (1 - start.next[1].trace()))  # E||x||^2 <- a E||x||^2 + b
        ratio = level[n] / level[1]
        holds = ratio <= slack / math.sqrt(n)
        said = (
            f"f = ||x||^2/2, d = {d}, minibatch noise, eta ~ sqrt({name}): E||grad f||^2 at {name} = {n} over 1: "
            f"{ratio:.3g} (linear speedup {1 / math.sqrt(n):.3g})"
        )
        data = {"d": d, name: n, "ratio": digits(ratio)}
        return Outcome(holds, "exact", ratio * math.sqrt(n), said, None if holds else data)

    return check


CLAIMS: list[Claim] = [
    decomfl(
        "remark1-2",
        "rate",
        check=worst_of(check_speedup(16, 0.0), check_more("m", 4, 1), check_more("P", 4, 60)),
        as_printed=each_needed(without={"K P < d": check_speedup(16, 1.0), "P < d": check_more("P", 64, 1)}),
        met="Sec. 5 has K P below d = 28,938",
        caveat="more clients help against minibatch noise and heterogeneity, not against the directions, which they "
        "share; more local steps against minibatch noise, and against heterogeneity (72 K L eta sigma_G^2/m) only "
        "while K P < d; more perturbations while P < d",
        control=check_speedup(16, 0.0, 0.97),
        broken="0.97 of the linear speedup's level",
        implies="16 local steps at the corollary's step size leave 1.5 times the error of one, not a quarter, "
        "where clients differ (d = P = 1; four times where P is far above d)",
    ),
    decomfl(
        "corollary1",
        "rate",
        assumes=(Printed("the bound of Theorem 1", "Theorem 1"),),
        check=check_corollary(72.0 + 24 * 5 + 16 * 5),
        as_printed=check_growth,
        met="Sec. 5 has K P below d = 28,938",
        caveat="K P = O(d): the bound's own term 72 K L eta sigma_G^2/m needs it, and the minibatch noise needs P = "
        "O(d)",
        control=check_corollary(271.0),
        broken="a constant of 271 in place of 272, which is reached",
        implies="P above d does not pay: the rate stays at sqrt(P)/sqrt(mdKR)",
    ),
    decomfl(
        "remark3",
        "inequality",
        unchecked=REMARK3,
    ),
]
