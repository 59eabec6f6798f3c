"""FedSub: a round's inequality of the theorem of docs/theory/fedsub.md, and what its form that drops nothing is."""

import math
from dataclasses import replace
from typing import Any

import torch

from fedtheory.algorithms.ssf import SSF
from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.fedsub.formulas import FORMULAS
from fedtheory.theory.fedsub.round import (
    A1,
    A2,
    ALL,
    BASIC,
    HARD,
    ROOT,
    START,
    Edge,
    Round,
    Terms,
    fedsub,
    sharpened,
    survives,
)
from fedtheory.theory.formula import Formula, Root
from fedtheory.theory.instances import Smooth, fixed, orthogonal
from fedtheory.theory.proof import by_steps
from fedtheory.theory.ssf import moments as ssf


def largest(**other: Any) -> Edge:
    """An edge at the theorem's largest step, L eta tau = 1/(3 sqrt(theta_m))."""
    edge = Edge(**other)
    a, b = edge.theta
    return replace(edge, share=math.sqrt(32) * a * b / 3)


CORNERS = [
    largest(tau=2),
    largest(tau=3, n=1),
    largest(tau=2, layers=((2, 1, 1), (1, 1, 1))),
    largest(tau=2, layers=((3, 1, 1),), still=True),
    largest(tau=3, shape="huber"),
    largest(tau=1, n=1, layers=((1, 1, 1),)),
]


def potential(bound: Formula = FORMULAS["round"]) -> Terms:
    """A round of the potential, as the page's 5.1 to 5.3 have it."""

    def terms(q: Round) -> tuple[Any, ...]:
        at, ratio = q.at, q.full_ratio
        names = {"L": at.L, "eta": at.lr, "tau": at.tau, "t": at.lr * at.tau, "theta_m": at.theta_m}
        names["p"] = FORMULAS["p"].side(1).right(names, float)
        names["w"] = w = FORMULAS["weight"].right(names, float)
        slope = (ratio * q.start.mean(0) ** 2).sum()
        size = lambda v: (v**2 / ratio).sum(-1).mean()  # of R h, so that |h|_R^2 is its square over R
        now = ratio * (q.start - q.start.mean(0)) + at.u
        later = size(q.v - q.v.mean(1, keepdim=True))
        means = {"E": lambda v: v, "sqR": lambda v: v, "G": slope, "EPhi": 0, "zeta": Root(q.zeta2)}
        down, lost = bound.terms(names | means)
        return q.gain.mean() - down + w * later, w * size(now) + lost + 1e-13 * q.scale, q.scale

    return terms


# The form that drops nothing


def undropped(
    problem: Smooth, x: torch.Tensor, y: torch.Tensor, P: torch.Tensor, lr: float, tau: int, kept: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """A round of (10), P of (9) multiplied by its transpose: x (d,), y (n, d) -> the same. P: (m, r), P^T P = m/r.

    `kept`: y_i stays as it is out of the span of P; else only its projection is kept.
    """
    q = P.shape[1] / P.shape[0]
    B = torch.zeros(problem.n, P.shape[1], dtype=x.dtype)
    for _ in range(tau):
        gradient = problem.grads(x + B @ P.T, problem.full(problem.clients))
        B = B - lr * q * (gradient + y / (lr * tau)) @ P
    y = y if kept else q * y @ P @ P.T
    return x + B.mean(0) @ P.T, y + (B - B.mean(0)) @ P.T


def is_ssf(kept: bool = True) -> Check:
    """Three rounds of both from y_i = 0 and c_i = c, whatever bases and losses; e_i = -y_i/(eta tau) is c_i - c."""

    def check(effort: str) -> Outcome:
        gap, count = 0.0, 0
        for number, (n, m, r, tau) in enumerate([(1, 1, 1, 1), (2, 2, 1, 2), (3, 3, 2, 3), (2, 4, 1, 5), (2, 2, 2, 2)]):
            g = ROOT.fold("undropped", number).generator()
            h, a, x = (torch.randn(*size, generator=g, dtype=torch.float64) for size in ((n, m), (n, m), (m,)))
            problem = Smooth(h.sin(), torch.zeros_like(h), a=a)
            given, lr = ssf.Given(problem, torch.zeros(tau, n, 1, 1, dtype=torch.float64)), 0.3 / tau
            y, c = torch.zeros_like(h), torch.zeros(1, m, dtype=torch.float64)
            model, ci = x[None], c.expand(n, 1, m)
            for _ in range(3):
                turn = torch.randn(m * (m - 1) // 2, generator=g, dtype=torch.float64)
                frame = (orthogonal(turn, m) if m > 1 else torch.ones(1, 1, dtype=torch.float64))[:, :r]
                x, y = undropped(problem, x, y, math.sqrt(m / r) * frame, lr, tau, kept)
                model, c, ci, _ = ssf.play(SSF(lr, tau, fixed(frame)), given, model, c, ci)
                gaps = (x - model[0], -y / (lr * tau) - (ci - c)[:, 0])
                gap, count = max(gap, *(float(one.abs().max()) for one in gaps)), count + 1
        said = f"{count} rounds of (9) and (10) beside SSF.client and SSF.server: largest gap {gap:.1e}"
        return Outcome(gap < 1e-12, "exact", gap, said, None if gap < 1e-12 else {"gap": gap})

    return check


PROOF = ("1.3", "2.6", "3.3", "4.1", "4.2", "5.1", "5.2", "5.3")  # the steps that put the inequality together
CLAIMS: list[Claim] = [
    fedsub(
        "sharper.round",
        "inequality",
        assumes=(A1, A2, ALL, START),
        check=worst_of(
            survives(potential(), "sharper.round", "", CORNERS, BASIC),
            by_steps("fedsub", *(f"fedsub.{step}" for step in PROOF)),
        ),
        control=sharpened(potential(FORMULAS["round"].changed("2/5", "21/25")), "sharper.round", CORNERS[-1:], **HARD),
        broken="21/25 in the place of 2/5",
        implies="Summed over k it is the theorem of the page: steps that may be 2 sqrt(m/r) times longer than those of "
        "the repaired Theorem 1, and a bound on the error that stays that is 51 times smaller.",
    ),
    fedsub(
        "sharper.whole",
        "identity",
        assumes=(A1, ALL, START),
        check=is_ssf(),
        control=is_ssf(kept=False),
        broken="of y_i only its projection is kept",
        implies="What drops nothing is SSF and inherits its theorem (ssf.sharper.theorem): no error stays.",
    ),
]
