"""Lemmas 2 and 3 of SSF in sharper forms, which the repaired rate uses. Not in the paper."""

import functools
import math
from dataclasses import replace

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.search import implies, number, reals, same
from fedtheory.theory.ssf.attack import FAR, Edge, Terms, edges, on, survives, times, with_units
from fedtheory.theory.ssf.hypotheses import A123, GIVEN, claim
from fedtheory.theory.ssf.lemma3 import STILL, wide_steps
from fedtheory.theory.ssf.round import NOISE_ALONE, Round, steep


def sharper_lemma2(noise: float = 1.041, drift: float = 1.388) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        lr2, K = q.at.lr**2, q.at.K
        return q.drift, noise * K * lr2 * q.at.sigma2 + drift * q.at.rho * K**2 * lr2 * (q.C0 + q.G2)

    return terms


def sharper_lemma3(noise: float = 1.0, drift: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        eta, L = q.at.eta, q.at.L
        left = q.gain + q.at.rho * eta / 2 * q.G2
        right = noise * L * eta**2 * q.at.sigma2 / (q.at.N * q.at.K) + drift * (1 + L * eta) / 2 * L**2 * eta * q.drift
        return left, right, (eta * q.G2 + L * q.moved).detach()

    return terms


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
SHARPER2 = (
    f"{GIVEN}, with c^0 = (1/N) sum_i c_i^0 and all clients in every round, and for K L eta_l <= 1/10: E_drift <= "
    "1.041 K eta_l^2 sigma^2 + 1.388 rho K^2 eta_l^2 (C_t + |grad F(x^t)|^2), P_t averaged."
)
SHARPER3 = (
    f"{GIVEN}, with c^0 = (1/N) sum_i c_i^0 and all clients in every round, and for eta <= 1/L: E F(x^{{t+1}}) <= "
    "F(x^t) - (rho eta/2)|grad F|^2 + (L eta^2/(NK)) sigma^2 + ((1 + L eta)/2) L^2 eta E_drift."
)


CLAIMS: list[Claim] = [
    claim(
        "sharper.lemma2", "not in the paper; Lemma 2 and (109)-(111)", "expectation",
        SHARPER2,
        assumes=A123,
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
        "sharper.lemma3", "not in the paper; Lemma 3 (21)", "expectation",
        SHARPER3,
        assumes=A123,
        check=with_units(
            worst_of(
                survives(sharper_lemma3(), "sharper3", "", [*wide_steps(), *edges(), *FAR]), symbolic_sharper3("1")
            ),
            sharper_lemma3(),
        ),
        control=survives(sharper_lemma3(noise=0.49), "sharper3", "", [STILL_FAR], enough=1 + 1e-3),
        broken="the noise term times 49/100",
        implies="Four times the step and twice the descent of (21), with 5/8 in place of 3/2 before the drift where "
        "eta <= 1/(4L), at the price of twice its noise term. No step needs (42): E <P G, P xi_bar> = 0 is enough.",
    ),
]  # fmt: skip
