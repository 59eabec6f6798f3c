"""FedSub, App. 7.4, (47): the step size of Theorem 1, and the repaired theorem.

Omega of (40) adds a loss and a squared length. The conditions (44) and (47) inherit it: L_f^2 where only L_f can
stand. With Omega weighted by L_f the n disappears from the step size and the 1/n from the bound, see `REPAIR`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.fedsub.formulas import FORMULAS
from fedtheory.theory.fedsub.round import Edge, Round, Sizes, Terms, edges, fedsub, rule47, step_sizes
from fedtheory.theory.forms import chain
from fedtheory.theory.search import implies, z3_module


def repaired(descent: float = 1.0) -> Terms:
    """One round of the repaired theorem (REPAIR), units consistent and without n."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at, t = q.at, q.at.lr * q.at.tau
        names = {"eta": at.lr, "tau": at.tau, "L": at.L, "theta_r": at.theta_r, "theta_m": at.theta_m}
        w = FORMULAS["Omega"].right(names | {"Delta": 0, "dual_0": 1, "mean_i": lambda v: v}, float)
        left = q.gain.mean() + w * q.next_spread.mean() / at.n + descent * t / (8 * at.theta_m) * q.a2.mean()
        floor = 4 * t**2 * at.theta_r**2 * (at.theta_m - 1) * q.zeta2
        return left, w * (q.spread_Y.mean() / at.n + floor) + 1e-13 * q.scale, q.scale

    return terms


def wide(effort: str = "quick") -> list[Edge]:
    """Corners of the repaired theorem: eta = 1/(6 theta_r theta_m^2 L tau) and a tenth of it."""
    out = []
    for share in (1.0, 0.1):
        for edge in edges(share=1.0):
            a, b = edge.theta
            s = share / (6 * a * b**2)
            out.append(replace(edge, share=s * math.sqrt(32) * a * b**1.5))
    return out


def repaired_chain(scale: int = 6) -> Callable[[], tuple[list[Any], Any]]:
    """REPAIR's conditions: with u = s a b^2 <= 1/6 and beta = 1/b, all that the proof needs."""

    def make() -> tuple[list[Any], Any]:
        z3 = z3_module()

        u, a, beta, g = z3.Reals("u a beta g")  # g = (tau - 1)/tau
        premises = [u > 0, scale * u <= 1, a > 0, a <= 1, beta > 0, beta <= 1, a >= beta, g >= 0, g <= 1]
        alpha = z3.RealVal("20/3")
        needed = z3.And(
            32 * u * u * beta <= 1,  # (31)
            10 * u * u * a * beta <= 1,  # (39)
            z3.RealVal("5/2") + 20 * alpha * g * u * u * beta <= alpha,  # the weight of Y
            u * a + 4 * alpha * g * u * u * u * u * a * beta * beta * beta * beta <= 1,  # of ||P^T G||^2
            160 * alpha * g * u * u * u * u * a * beta * beta <= 1,  # of ||P^T grad f||^2
        )
        return premises, needed

    return make


def empty_bound(left: str, least: str = "6/5") -> Callable[[], tuple[list[Any], Any]]:
    """Theorem 1 with theta_m >= `least`, c = 1/5, 32 before its second term: where a step that (47) admits breaks the
    condition `left`, that term is at least B_g^2 (over B_g^2: T >= 1), which ||grad f||^2 never exceeds.

    T = 32 (s/(n L_f)) a^2 b^2 (b - 1), and (47) says 1/(n L_f) >= 5 s a b^2. e = s^2 a^2 b^3 is (31) times 1/32, w is
    line 2 of (44) times 1/160, g = s a^2 b^2 and `last` make line 1.
    """

    def make() -> tuple[list[Any], Any]:
        z3 = z3_module()

        T, a, b, e, w, g, last, pi = z3.Reals("T a b e w g last pi")
        size = [a > 0, a <= 1, b >= z3.RealVal(least), pi == a * b, pi >= 1, e > 0, w > 0, g > 0, last > 0]
        case = {
            "(31)": [32 * e > 1, 160 * e * pi * (b - 1) <= T],
            "line 2": [32 * e <= 1, 160 * w > 1, T * e == 32 * w * b * (b - 1)],
            "line 1": [160 * w <= 1, last * b * b <= 4 * w, g + last > 1, T * a >= 160 * g * g * (b - 1)],
        }
        return [*size, *case[left]], T >= 1

    return make


def check_empty_bound(effort: str) -> Outcome:
    """All conditions of Lemma 3 that (47) does not bring along: (39) follows from (31), line 3 of (44) from c = 1/5."""
    found = [implies(*empty_bound(left)(), timeout_ms=20000) for left in ("(31)", "line 1", "line 2")]
    said = (
        "theta_m >= 6/5, c = 1/5: a step that breaks (31) or (44) makes 32 times the second term at least B_g^2, so "
        "that the bound holds and says nothing (z3)"
    )
    return Outcome(all(f.holds for f in found), "smt", None, said)


def check_every_c(effort: str) -> Outcome:
    """For every c > 0 there is an L_f at which (47) admits what (31) forbids: L_f = c, eta = c times (47)'s rule."""
    z3 = z3_module()

    c = z3.Real("c")
    make = lambda c, one: Sizes(c * rule47(Sizes(None, one, one, one, c, one)), one, one, one, c, one)
    left, right = step_sizes(make(c, z3.RealVal(1)))["(31)"]
    found = implies([c > 0], left > right)
    low, high = step_sizes(make(Fraction(1), Fraction(1)))["(31)"]
    said = (
        f"for every constant c that does not depend on L_f: theta = n = tau = 1, L_f = c and eta = c/L_f^2 = 1/c meet "
        f"(47), but (31) is {low} <= {high}"
    )
    data = {
        "c": "any",
        "theta_r, theta_m, n, tau": "1",
        "L_f": "c",
        "eta": "1/c",
        "(31) left": str(low),
        "(31) right": str(high),
    }
    return Outcome(not found.holds, "smt", float(low / high), said, data if found.holds else None)


def check_47_repaired(c: str = "1/6") -> Check:
    """With L_f >= 1 (units chosen so), (47) with the constant c implies (31), (39) and what (43) needs."""
    return partial(_check_47_repaired, Fraction(c))


def _check_47_repaired(c: Fraction, effort: str) -> Outcome:
    z3 = z3_module()
    most = z3.RealVal(str(c))

    s, a, b, n, L, u, v = z3.Reals("s a b n L u v")
    # u = s a b^2 <= c/(L n); v = s^3/(n L) <= (c/(L n))^3/(a^3 b^6)
    premises = [a > 0, a <= 1, b >= 1, a * b >= 1, n >= 1, L >= 1, s > 0, u == s * a * b * b, u * L * n <= most]
    first = implies(
        [*premises, v * a * a * a * b * b * b * b * b * b <= u * u * u],
        z3.And(u * a <= most, u * u <= most * most, 5 * u * L * n <= 1),
    )
    w = z3.Reals("uu beta")
    second = implies(  # everything else as functions of u <= 1/6 and beta = 1/b
        [w[0] > 0, w[0] <= most, w[1] > 0, w[1] <= 1, a > 0, a <= 1],
        z3.And(
            32 * w[0] * w[0] * w[1] <= 1,
            10 * w[0] * w[0] * a * w[1] <= 1,
            160 * a * w[0] * w[0] * w[0] * w[1] * w[1] <= 1,
            z3.RealVal("5/2") * w[0] + 20 * w[0] * w[0] * w[1] <= 1,
            w[0] * a + 4 * a * w[0] * w[0] * w[0] * w[1] * w[1] * w[1] * w[1] <= 1,
        ),
    )
    holds = first.holds and second.holds
    said = f"L_f >= 1 and c = {c}: whether all conditions, (43)'s corrected ones too, follow (z3)"
    model = first.model or second.model
    return Outcome(holds, "smt", None, said + ("" if holds else f"; {second.detail}"), model)


UNIVERSAL = (
    "O(.) hides a constant that does not depend on the problem: with one that depends on L_f, or with L_f >= 1, there "
    "is no objection"
)


CLAIMS: list[Claim] = [
    fedsub(
        "eq47",
        "inequality",
        check=check_every_c,
        control=check_47_repaired("17/100"),
        broken="the repair, L_f >= 1, with the constant 0.17 in place of 1/6",
        error="unit",
        reading=UNIVERSAL,
        repair="with L_f >= 1 and the constant 1/6 it does; in any units eta <= 1/(6 theta_r theta_m^2 L_f tau), "
        "without n, is enough for the repaired theorem",
        repaired=worst_of(check_47_repaired(), chain(repaired_chain(), "eta <= 1/(6 theta_r theta_m^2 L_f tau)")),
        implies="for a loss with L_f = 0.01 the rule admits eta L_f = 100 c: gradient descent with such steps does not "
        "converge",
    ),
]
