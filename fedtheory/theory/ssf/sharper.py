"""Lemmas 2 to 4 of SSF in sharper forms, and the theorem of docs/theory/ssf.md. Not in the paper."""

import functools
import math
from dataclasses import replace
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.formula import Formula, Root
from fedtheory.theory.proof import by_steps
from fedtheory.theory.search import ROUNDING, implies, number, reals, same, units
from fedtheory.theory.ssf.attack import (
    FAR,
    Edge,
    Terms,
    edges,
    on,
    refuted_each,
    survives,
    times,
    units_said,
    with_units,
)
from fedtheory.theory.ssf.bounds import attack_rate, run_exactly, scaled
from fedtheory.theory.ssf.formulas import FORMULAS
from fedtheory.theory.ssf.hypotheses import A123, claim
from fedtheory.theory.ssf.lemma3 import STILL, wide_steps
from fedtheory.theory.ssf.lemma4 import LEMMA4
from fedtheory.theory.ssf.moments import SAMPLE, Rate, rescaled
from fedtheory.theory.ssf.moments import Terms as Numbers
from fedtheory.theory.ssf.round import NOISE_ALONE, Round, carried, quiet, steep


def _named(q: Round) -> dict[str, Any]:
    """What a round has for the page's names; the loss counts from where the round starts."""
    at = q.at
    numbers = {"K": at.K, "N": at.N, "L": at.L, "lr": at.lr, "eta": at.eta, "rho": at.rho, "sigma": Root(at.sigma2)}
    return numbers | {"D": q.drift, "C": q.C0, "G2": q.G2, "F0": 0}


def sharper_lemma2(bound: Formula = FORMULAS["drift"]) -> Terms:
    return lambda q: (q.drift, bound.right(_named(q), float))


def sharper_lemma3(bound: Formula = FORMULAS["descent"]) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        down, drift, noise = bound.terms(_named(q))
        return q.gain - down, noise + drift, (q.at.eta * q.G2 + q.at.L * q.moved).detach()

    return terms


def sharper_lemma4(bound: Formula = FORMULAS["memories"]) -> Terms:
    """Of the terms with 1/rho in the printed one, that with the gradient has none."""
    return lambda q: (q.C1, bound.right(_named(q), float))


# One client, F = x^2/2, exact memory, ten local steps: nearly as far from the solution as the theorem allows
STEADY: dict[str, Any] = {
    "curvature": ["1"], "slope": ["0"], "x0": ["1"], "c_i": ["1"], "L": "1", "eta_l": "1/100", "eta": "1/4", "K": 10,
    "T": 60, "note": "N = 1, d = r = 1, F = x^2/2, sigma = 0, c_1 = grad F(x^0), K L eta_l = 1/10, L eta~ = 1/4",
}  # fmt: skip


def steady(rate: Rate) -> Check:
    """The average of ||grad F||^2 on the stored instance against a bound, for every T up to its own."""

    def check(effort: str) -> Outcome:
        squares, terms, _ = run_exactly(STEADY)
        sums = [sum(squares[:T]) / T / sum(rate(terms, T)) for T in range(1, len(squares) + 1)]
        worst, T = max(zip(sums, range(1, len(sums) + 1)))
        data = STEADY | {"T": T, "left/right": worst}
        return Outcome(worst <= 1, "exact", worst, f"{STEADY['note']}: left/right {worst:.4g} at T = {T}", data)

    return check


def run_of(rate: Rate, *settings: str) -> Check:
    """A bound on a run: units, the stored instance, and the search on exact runs with steps at their edges."""

    def check(effort: str) -> Outcome:
        alike, _ = units(lambda a, b: ((a / b) ** 2, *rate(rescaled(SAMPLE, a, b), 50)))
        stored, first = steady(rate)(effort), settings[: 1 if effort == "quick" else None]
        found = attack_rate(rate, True, effort, first)
        said = f"{stored.detail}; {found.tried} exact runs of SSF, worst {found.ratio:.4g} at {found.edge}"
        holds = alike and stored.holds and found.ratio <= 1 + ROUNDING
        return Outcome(holds, "search", max(found.ratio, stored.margin or 0.0), f"{said}; {units_said(alike)}")

    return check


def symbolic_sharper2(effort: str) -> Outcome:
    """The steps of the sharper Lemma 2; see its entry.

    S_{k+1} <= (1 + alpha) S_k + b_k with S_0 = 0 gives S_K <= (1 + alpha)^K sum b_k, (1 + alpha)^K <= e^(alpha K), and
    alpha K = 4 (K L eta_l)^2 <= 1/25.
    """
    import sympy

    K, k = sympy.symbols("K k", positive=True)
    sums = [sympy.expand(sympy.summation(term, (k, 0, K - 1))) for term in (2 * k, 4 * k**2)]
    counted = same(sums[0], K * (K - 1)) and same(sums[1], 2 * K * (K - 1) * (2 * K - 1) / 3)
    x, alpha, power, S, b = reals("K alpha power S b")
    parts = [
        implies([x >= 1], x * (x - 1) <= x * x),
        implies([x >= 1], 2 * x * (x - 1) * (2 * x - 1) <= 4 * x * x * x),
        implies([alpha >= 0, power >= 1, b >= 0], (1 + alpha) * power * S + b <= (1 + alpha) * power * (S + b)),
    ]
    u = sympy.symbols("u1:4")
    mean = sum(u) / 3
    spread = same(sum((v - mean + k) ** 2 for v in u) / 3, sum(v**2 for v in u) / 3 - mean**2 + k**2)
    growth = math.exp(0.04) <= 1.041 and 4 / 3 * math.exp(0.04) <= 1.388
    holds = counted and spread and growth and all(part.holds for part in parts)
    said = (
        "sums of k and k^2, mean |grad F_i - c_i + c|^2 <= C_t + |grad F|^2 (sympy), Gronwall (z3), e^(1/25) <= 1.041"
    )
    return Outcome(holds, "symbolic", None, said if holds else f"a step fails: {said}")


def symbolic_sharper3(noise: str) -> Check:
    """The steps of the sharper Lemma 3, L = 1: a = P G, b = P(g_bar - G), c = P xi_bar, E <a, c> = 0; a2 = E|a|^2, ...

    T1 = -eta (a2 + ab), T2 = (eta^2/2)(a2 + b2 + c2 + 2 ab + 2 bc); |2 ab| <= a2 + b2, 2 bc <= b2 + c2, b2 <= D.
    """

    def check(effort: str) -> Outcome:
        eta, a2, b2, c2, ab, bc, D, s = reals("eta a2 b2 c2 ab bc D s")
        given = [eta > 0, eta <= 1, a2 >= 0, b2 >= 0, c2 >= 0, b2 <= D, c2 <= s, -2 * ab <= a2 + b2, 2 * bc <= b2 + c2]
        total = -eta * (a2 + ab) + eta * eta / 2 * (a2 + b2 + c2 + 2 * ab + 2 * bc)
        found = implies(given, total <= -eta / 2 * a2 + eta * (1 + eta) / 2 * D + number(noise) * eta * eta * s)
        return Outcome(found.holds, "smt", None, f"T1 + T2: {found.detail}", found.model)

    return check


SHORT = [
    replace(edge, share=0.2) for edge in (*edges(), Edge(K=6, N=1, d=2), Edge(K=6, noisy=False))
]  # K L eta_l <= 1/10
STILL_FAR = replace(STILL, global_share=4.0)  # eta = 1/L


WIDE4 = [replace(edge, share=4.0) for edge in edges()[:3]]  # local steps beyond 1/(2KL)


CLAIMS: list[Claim] = [
    claim(
        "sharper.lemma2", "expectation", assumes=A123,
        check=with_units(
            worst_of(survives(sharper_lemma2(), "sharper2", "", SHORT),
                on(functools.partial(steep, 0.2), sharper_lemma2(), NOISE_ALONE), symbolic_sharper2), sharper_lemma2()
        ),
        control=on(functools.partial(steep, 0.2), times(0.44, sharper_lemma2()), ""),
        broken="right-hand side times 44/100",
        implies="(111) has 6, 24 and no rho. Only P_t (grad F_i - c_i + c) drives the drift, a share rho of it: "
        "Lemma 2 loses the factor at |P d| <= |d|.",
    ),
    claim(
        "sharper.lemma3", "expectation", assumes=A123,
        check=with_units(
            worst_of(
                survives(sharper_lemma3(), "sharper3", "", [*wide_steps(), *edges(), *FAR]), symbolic_sharper3("1")
            ),
            sharper_lemma3(),
        ),
        control=survives(sharper_lemma3(FORMULAS["descent"].changed("L*eta**2*sigma**2", "49/100*L*eta**2*sigma**2")),
            "sharper3", "", [STILL_FAR], enough=1 + 1e-3),
        broken="the noise term times 49/100",
        implies="Four times the step and twice the descent of (21), with 5/8 in place of 3/2 before the drift where "
        "eta <= 1/(4L), at the price of twice its noise term. No step needs (42): E <P G, P xi_bar> = 0 is enough.",
    ),
    claim(
        "sharper.lemma4", "expectation", assumes=A123,
        check=with_units(
            worst_of(
                survives(sharper_lemma4(), "sharper4", "", [*LEMMA4, *WIDE4]),
                by_steps("ssf", *(f"ssf.4.{step}" for step in range(1, 6))),
            ),
            sharper_lemma4(),
        ),
        control=refuted_each(
            on(carried, sharper_lemma4(FORMULAS["memories"].changed("rho/2", "1.01*rho")), ""),
            on(quiet, sharper_lemma4(FORMULAS["memories"].changed("3*sigma**2", "99/100*sigma**2")), ""),
        ),
        broken="1 - rho/2 lowered to 1 - 1.01 rho; 3 sigma^2/K to 99/100 sigma^2/K",
        implies="(60) has 1/rho before |grad F|^2: it bounds |P grad F| by |grad F|. Without it a memory in a small "
        "subspace allows steps of order sqrt(rho)/L, not rho/L.",
    ),
    claim(
        "sharper.theorem", "rate", assumes=A123,
        check=worst_of(
            run_of(Numbers.sharper, "longer", "repaired", "large eta_g", "repaired, slow"),
            by_steps("ssf", *(f"ssf.5.{step}" for step in range(1, 7)), "ssf.6.4"),
        ),
        control=steady(scaled(Numbers.sharper, (0.53,) * 4)), broken="53/100 of the right side",
        implies="C_0 is multiplied by a squared step, and min(1/4, rho/2) of (1) and (4) is not needed: without noise "
        "rho^(-3/2) in place of rho^(-2).",
    ),
    claim(
        "sharper.short", "rate", assumes=A123,
        check=worst_of(
            run_of(Numbers.shorter, "short local", "large eta_g"),
            by_steps("ssf", *(f"ssf.5.{step}" for step in range(1, 7)), "ssf.6.5"),
        ),
        control=steady(scaled(Numbers.shorter, (0.53,) * 4)), broken="53/100 of the right side",
        implies="With local steps that shrink with sqrt(rho) the subspace costs 1/rho and no more, with or without "
        "noise: the server's step need not shrink.",
    ),
]  # fmt: skip
