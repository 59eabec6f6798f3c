"""FedSub, App. 7.4, (34) to (36): Lemma 2, the variance of the next Y, on one round from any admissible state."""

import torch

from fedtheory.theory.claim import Claim
from fedtheory.theory.fedsub.round import (
    A1,
    A2,
    A3,
    EVERY_T,
    HARD,
    S31,
    Edge,
    Round,
    Terms,
    edges,
    fedsub,
    right_lemma2,
    sharpened,
    square,
    survives,
)
from fedtheory.theory.search import worst


def lemma2(variance: float = 1.0) -> Terms:
    """`variance` multiplies B_g^2, which is taken at x^k, where it is smallest."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        right = right_lemma2(q.at.sizes, q.moved.mean(), variance * q.Bg2, q.spread_Y.mean(), q.a2.mean())
        return q.next_spread.mean() / q.at.n, right

    return terms


def inside(q: Round) -> torch.Tensor:
    """(r/m) grad f_i(x^{k+1}) - P^k (1/tau) sum_t g_i, (M, n, d)."""
    ahead_ = q.full_ratio * q.at.problem.gradients(q.x).movedim(0, 1)
    return ahead_ - q.lift(q.g.mean(2))


def III(q: Round) -> torch.Tensor:
    """(III), (n,)."""
    return square(q.start - q.lift(q.project(q.grad.mean(2)))).mean(0)


def eq34(scale: float = 1.0) -> Terms:
    """Below 1 `scale` sharpens the last step, looked at alone: the first is an equality."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        t2 = (at.lr * at.tau) ** 2
        whole = t2 * square(inside(q)).mean((0, 1))
        last = 2 * t2 * at.theta_r**2 * (at.L**2 * q.moved.mean() + III(q).mean())
        first = [] if scale < 1 else [(q.next_spread.mean() / at.n, whole)]
        return worst(*first, (whole, scale * last))

    return terms


def eq35(scale: float = 1.0) -> Terms:
    """Below 1 `scale` sharpens the first step, looked at alone: the second is an equality for one layer."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        bias = square(q.start - q.lift(q.low)).mean(0)
        drift = 2 * at.theta_m**2 * at.L**2 * q.lifted.mean((0, 2))
        first, last = 2 * bias + drift, 2 * (at.theta_m - 1) * square(q.start) + drift
        second = [] if scale < 1 else [(first, last + 1e-14)]
        return worst((III(q), scale * first), *second)

    return terms


def eq35_variance(scale: float = 1.0) -> Terms:
    """Per client, the mean over all P^k."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        return worst((square(q.start - q.lift(q.low)).mean(0), scale * (q.at.theta_m - 1) * square(q.start) + 1e-14))

    return terms


LARGE = Edge(tau=1, n=1, share=8.0)  # steps beyond (31), for what does not assume it


CLAIMS: list[Claim] = [
    fedsub(
        "lemma2",
        "inequality",
        assumes=(A1, A2, A3, S31),
        reading=EVERY_T,
        check=survives(lemma2(), "lemma2", "B_g^2 as small as it can be, all P^k enumerated, P^{k+1} by E[P P^T] = I"),
        control=sharpened(lemma2(variance=0.245), "lemma2"),
        broken="0.98 instead of 4 in front of (theta_m - 1) B_g^2 (1 is needed)",
    ),
    fedsub(
        "eq34",
        "inequality",
        assumes=(A1, A2),
        check=survives(eq34(), "eq34", "both steps, any step size; P^{k+1} by E[P P^T] = I", [*edges(), LARGE]),
        control=sharpened(eq34(0.83), "eq34", [LARGE], **HARD),
        broken="1.66 instead of the last factor 2 (5/3 is needed)",
    ),
    fedsub(
        "eq35",
        "inequality",
        assumes=(A1, A2),
        check=survives(eq35(), "eq35", "both steps, any step size, all P^k enumerated", [*edges(), LARGE]),
        control=sharpened(eq35(0.68), "eq35", [Edge(tau=3, settled=True, share=0.5)], **HARD),
        broken="1.36 instead of 2 in the middle",
    ),
    fedsub(
        "eq35-variance",
        "expectation",
        assumes=(A1,),
        check=survives(eq35_variance(), "variance", "every client, all P^k enumerated"),
        control=sharpened(eq35_variance(0.99), "variance"),
        broken="0.99 (theta_m - 1)",
    ),
    fedsub(
        "eq36",
        "inequality",
        assumes=(A1, A2, S31),
        reading=EVERY_T,
        check=survives(lemma2(), "eq36", "all P^k enumerated", edges(share=0.7)),
        control=sharpened(lemma2(variance=0.245), "eq36", edges(share=0.7)),
        broken="0.98 instead of 4 in front of (theta_m - 1)",
    ),
]
