"""DeComFL with any number of local steps: what docs/theory/decomfl.md proves, on what the training code yields.

Not in the paper, but for the left side of its Theorem 1. H is the least diagonal matrix that lies above |h_i| of every
client, kappa its trace over L.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.decomfl.formulas import FORMULAS
from fedtheory.theory.decomfl.low_rank import above
from fedtheory.theory.decomfl.round import (
    A1,
    A2,
    A3,
    DOUBLE,
    SMALL_MU,
    UNIFORM,
    Edge,
    Enumerated,
    Instance,
    Round,
    Run,
    Terms,
    admissible,
    averages,
    beyond,
    decomfl,
    start_gap,
    survives,
    tiny,
    whole_runs,
)
from fedtheory.theory.decomfl.theorem1 import C14
from fedtheory.theory.formula import Root
from fedtheory.theory.instances import Smooth, plain
from fedtheory.theory.proof import by_steps
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import worst


def matrix(at: Instance) -> torch.Tensor:
    """The diagonal of H, above the curvature of every client."""
    return at.h.abs().max(0).values


def rank(at: Instance) -> float:
    """kappa = tr H/L, at least 1."""
    return max(1.0, float(matrix(at).sum()) / at.L)


def prices(at: Instance) -> tuple[float, float]:
    """theta = 1 + (kappa + 1)/(P K) and c = 1 + (kappa + 1)/P."""
    a = FORMULAS["a"].right({"kappa": rank(at), "P": at.P}, float)
    return FORMULAS["theta"].side(1).right({"a": a, "K": at.K}, float), FORMULAS["c_a"].right({"a": a}, float)


def smoothed(at: Instance) -> tuple[float, float]:
    """b^2 = (mu L)^2 kappa of the bias, and (a/K) (mu L)^2 kappa (kappa + 7)/4, a = (kappa + 1)/P, of what varies."""
    kappa, unit = rank(at), (at.mu * at.L) ** 2
    return unit * kappa, (kappa + 1) / (at.P * at.K) * unit * kappa * (kappa + 7) / 4


def smoothing(at: Instance) -> float:
    """What the differences add to a round, over eta': 3 b^2 + (11/2) L eta' times the other."""
    steady, varying = smoothed(at)
    return 3 * steady + 11 / 2 * at.L * at.K * at.lr * varying


def spread(at: Instance) -> tuple[float, float]:
    """sigma_G^2 at x_r, the mean over the clients, and gamma = (M - m)/(M - 1)."""
    own = at.h * at.x + at.a
    return float(((own - own.mean(0)) ** 2).sum(1).mean()), (at.M - at.m) / max(at.M - 1, 1)


def floors(at: Instance, differ: Any = None) -> tuple[Any, Any]:
    """N^2 and V: what is left of noise and heterogeneity to first and to second order in the step.

    differ: in the place of sigma_G^2 at x_r, one number or many.
    """
    (theta, c), (here, gamma) = prices(at), spread(at)
    names = {"theta": theta, "c": c, "gamma": gamma, "m": at.m, "K": at.K, "sigma": Root(at.sigma2)}
    names["sigma_G"] = Root(here if differ is None else differ)
    return FORMULAS["N2"].right(names, float), FORMULAS["V"].right(names, float)


def long(e: Edge) -> float:
    """The longest step at kappa = d, L = 1: K eta theta = 1/8."""
    return 1 / (8 * (e.K + (e.d + 1) / e.P))


def longest(terms: Terms) -> Terms:
    """The same with a step that is longer by as much as kappa is smaller than d."""
    more = lambda at: (at.K + (at.d + 1) / at.P) / (at.K + (rank(at) + 1) / at.P)
    return lambda q: terms(Round(replace(q.at, lr=q.at.lr * more(q.at))))


# The displays: (left, right) of one round


def drift(scale: float = 1.0) -> Terms:
    """The drift in H of every client."""

    def terms(q: Round) -> tuple[float, float]:
        at, (theta, c) = q.at, prices(q.at)
        left = (torch.stack(q.apart) * matrix(at)).sum(-1).mean(0)
        own = ((at.h * at.x + at.a) ** 2).sum(1)
        rest = c * at.sigma2 / at.K + 4 * sum(smoothed(at))
        right = scale * 8 / 7 * (1 - 1 / at.K) * at.L * (at.K * at.lr) ** 2 * (theta * own + rest)
        found = worst((left, right))
        return float(found[0]), float(found[1])

    return terms


def one_round(scale: float = 1.0) -> Terms:
    """The round inequality of K steps."""

    def terms(q: Round) -> tuple[float, float]:
        at, (once, twice), step = q.at, floors(q.at), q.at.K * q.at.lr
        right = at.L * step**2 * once + 3 * at.L**2 * step**3 * twice + step * smoothing(at)
        return q.gain + step / 2 * q.gradient2, scale * right

    return terms


def one_step(scale: float = 1.0) -> Terms:
    """Step 3.4 of the page: K = 1, H above the Hessian of f alone."""

    def terms(q: Round) -> tuple[float, float]:
        at, d, (differ, gamma) = q.at, q.at.d, spread(q.at)
        kappa = max(1.0, float(above(at).sum()) / at.L)
        noise = at.lr**2 * at.L * (1 + (kappa + 1) / at.P) * (gamma * differ + at.sigma2) / at.m
        missed, long = at.lr * (at.mu * at.L) ** 2, kappa / (4 * at.P) * (d + 2) * (d + 4)
        right = noise + missed * (d + at.lr * at.L * (d + long))
        return q.gain + at.lr / 2 * q.gradient2, scale * right

    return terms


EDGES = [
    Edge(rule=long), Edge(K=2, P=1000, rule=long), Edge(d=3, K=3, rule=long), Edge(M=2, m=2, d=2, K=4, rule=long),
    Edge(M=3, m=2, d=2, K=2, P=4, rule=long), Edge(M=2, m=1, K=8, P=50, rule=long),
    Edge(M=2, m=1, d=4, K=1, P=2, rule=long), Edge(M=2, m=2, d=4, K=2, rule=long, sphere=True),
    Edge(M=3, m=1, K=5, noisy=False, rule=long, share=0.1), Edge(M=2, m=2, K=4, P=1000, noisy=False, rule=long),
]  # fmt: skip
# clients +-(x^2/2 + x) + g x, both in every round: only the drift is left, and grad f = g is as large as it, against it
APART = torch.tensor([1.0, -1.0, 1.047, -0.953, 0.0, 0.0, 0.0, -12.0], dtype=DOUBLE)
DRIFTING = [edge for edge in EDGES if edge.K > 1]
SINGLE = [
    Edge(rule=lambda e: 1 / (4 * (1 + (e.d + 1) / e.P)), M=M, m=m, d=d, P=P, noisy=noisy)
    for M, m, d, P, noisy in ((1, 1, 1, 1, True), (1, 1, 1, 1000, True), (3, 2, 3, 2, True), (2, 2, 6, 1, False),
                              (4, 1, 2, 50, False), (1, 1, 4, 100, True))
]  # fmt: skip


# Curved losses, by enumeration of directions and samples


def check_curved(effort: str) -> Outcome:
    """The round inequality where grad f = 0, for cosines and Huber's losses: K = 2, one dimension, kappa = L = 1."""
    worst_ratio, tried = 0.0, 0
    for shape in ("cosine", "huber"):
        for x in (-2.0, 0.3, 1.2):
            for m, noise in ((2, 0.0), (1, 0.0), (2, 1.0)):
                at = tiny(h=[[1.0], [-0.5]], a=[[1.0], [-0.7]], noise=noise, x=x, M=2, m=m, K=2, mu=0.1, lr=1 / 32)
                centres = torch.tensor([[0.0], [0.5]], dtype=DOUBLE)  # K eta theta = 2 eta (1 + 2/2) = 1/8
                tilt = Smooth(at.h, centres, shape=shape, a=at.a).gradients(at.x).mean(0)
                losses = Smooth(at.h, centres, shape=shape, a=at.a - tilt, noise=at.noise)
                q = Enumerated(at, losses=losses, nodes=8 if effort == "quick" else 12)
                own, step, gamma = losses.gradients(at.x), at.K * at.lr, 2.0 - m
                differ = float((own**2).mean())
                gain = sum(float(q.mean(losses.values(end).mean(0))) for end in q.ends) / len(q.ends)
                gain -= float(losses.values(at.x).mean(0))
                once = 2 * gamma * differ / m + 3 * at.sigma2 / (m * 2)
                twice = (2 * differ + 3 * at.sigma2 / 2) / 2
                right = step**2 * once + 3 * step**3 * twice + step * smoothing(at)
                worst_ratio, tried = max(worst_ratio, gain / right), tried + 1
    said = (
        f"{tried} rounds of clients with cosines and Huber's losses, K = 2, by enumeration: at most {worst_ratio:.3g}"
    )
    data = None if worst_ratio <= 1 else {"ratio": digits(worst_ratio)}
    return Outcome(worst_ratio <= 1, "search", worst_ratio, said, data)


# Whole runs


def check_runs(name: str, scale: float = 1.0) -> Check:
    """The largest average of E||grad f||^2 over the theorem's bound, R up to 40 rounds (120 at full effort).

    sigma_G^2 is the average over clients and rounds.
    """

    def sides(at: Instance, R: int) -> tuple[torch.Tensor, torch.Tensor]:
        counts = torch.arange(1, R + 1, dtype=DOUBLE)
        run, step = Run(at, R), at.K * at.lr
        once, twice = floors(at, averages(run.dissimilar.mean(1)))
        rest = 2 * at.L * step * once + 6 * (at.L * step) ** 2 * twice + 2 * smoothing(at)
        return averages(run.gradient2), scale * (2 * start_gap(at) / (step * counts) + rest)

    held = "exact moments of {n} whole runs, K eta theta L up to 1/8, worst at {edge}"
    return whole_runs(sides, name, EDGES[:6], held, (40, 120), {"quick": (2, 4), "full": (3, 15)})


def check_numbers(plus: int) -> Check:
    """f = ||x||^2/2 without noise: the least E||x_R||^2 over steps against exp(-P K R/(d + plus)) ||x_0||^2."""

    def check(effort: str) -> Outcome:
        tightest, where = 0.0, {}
        for d in (1, 3, 20):
            for K, P, M in ((1, 1, 1), (1, 1, 4), (3, 1, 1), (2, 8, 2), (1, 100, 3)):
                first = torch.eye(d, dtype=DOUBLE)[0].tolist()
                best = 1 / (1 + (d + 1) / P)
                least = min(
                    float(Round(tiny(x=first, d=d, M=M, m=M, K=K, P=P, lr=share * best)).next[1].trace())
                    for share in (0.5, 0.9, 1.0, 1.1, 1.5)
                )
                if math.exp(-K * P / (d + plus)) / least > tightest:
                    tightest, where = math.exp(-K * P / (d + plus)) / least, {"d": d, "K": K, "P": P, "m": M}
        code = Enumerated(tiny(x=1.0, K=2, P=1, lr=1 / 3))  # the same by the client and the server
        same = abs(float(code.mean(code.ends[0, :, 0] ** 2)) - (2 / 3) ** 2) < 1e-9
        said = f"15 sizes, five steps each: exp(-P K/(d + {plus})) is at most {tightest:.4g} of the best round, {where}"
        holds = same and tightest <= 1
        return Outcome(holds, "exact", tightest, said, None if holds else where | {"ratio": digits(tightest)})

    return check


# The left side of Theorem 1

RARE = tiny(h=1.0, noise=1000.0, lr=1 / 128, mu=SMALL_MU)  # xi = +-1 with probability 5e-7 each, else 0: sigma = 1


def check_left(average: Callable[[Enumerated, torch.Tensor], float], name: str) -> Check:
    """(1/2) sum of the first two ||grad f(x_r)||^2 against the bound of Theorem 1, where the rare sample is drawn.

    average: how the second one is meant: (round, its values) -> number, given that sample.
    """

    def check(effort: str) -> Outcome:
        at, sigma2 = RARE, 1.0
        admissible(at, ("theorem1",))
        q = Enumerated(at)
        left = average(q, q.ends[0, :, 0] ** 2) / 2
        right = 16 * 5 * at.lr * sigma2 + 2 * at.mu**2 * 64
        said = (
            f"f = x^2/2, P[xi = +-1000] = 10^-6, else 0, d = P = K = m = 1, eta = 1/128, x_0 = x*, R = 2, {name}: "
            f"left {left:.4g}, right {right:.4g}"
        )
        data = {"instance": plain(at), "R": 2, "sigma": 1, "left": digits(left), "right": digits(right)}
        return Outcome(left <= right, "exact", left / right, said, None if left <= right else data)

    return check


PROBABILITY = 1e-6
SEEN = check_left(lambda q, values: float(values.min()), "that sample drawn, the shortest of the directions")
MEANT = check_left(lambda q, values: PROBABILITY * float(q.mean(values)), "mean over samples and directions")
HALF = check_left(lambda q, values: float(q.mean(values)), "mean over the directions, that sample drawn")

PROOF = [
    f"decomfl.{section}.{step}"
    for section, steps in ((5, 2), (6, 5), (7, 3), (8, 3), (9, 5))
    for step in range(1, steps + 1)
]

CLAIMS: list[Claim] = [
    decomfl(
        "theorem1.left",
        "definition",
        assumes=(A1, A2, A3, C14),
        reading="E_r as the paper's notation has it; then E_r||grad f(x_r)||^2 is ||grad f(x_r)||^2, which is random",
        check=SEEN,
        control=HALF,
        broken="the mean over the directions alone",
        error="misprint",
        repair="E for E_r, over directions, samples and clients of all rounds before, as in Theorem 2",
        repaired=MEANT,
        implies="as printed it would bound every single run. With Gaussian directions no finite number does: x_1 = "
        "(1 - eta z^2) x_0 for x^2/2",
    ),
    decomfl(
        "sharper.one",
        "inequality",
        assumes=(A1, A2, A3, UNIFORM),
        check=survives(one_step(), "one", "", SINGLE),
        **beyond(one_step, 0.49, "one", edges=SINGLE),
        implies="H may belong to f alone: with one local step no client's own curvature is felt",
    ),
    decomfl(
        "sharper.drift",
        "inequality",
        assumes=(A1, A2, A3),
        check=survives(longest(drift()), "drift", "", DRIFTING),
        **beyond(lambda share: longest(drift(share)), 0.43, "drift", edges=DRIFTING),
        implies="K steps along P directions drift as K P directions would, not K^2 times as one step does: what "
        "directions add is a martingale",
    ),
    decomfl(
        "sharper.round",
        "inequality",
        assumes=(A1, A2, A3, UNIFORM),
        check=worst_of(survives(longest(one_round()), "local", "", EDGES, starts=[APART]), check_curved),
        **beyond(lambda share: longest(one_round(share)), 0.49, "local", edges=EDGES),
        implies="K local steps count as K times the directions; heterogeneity is divided by m alone and is gone with "
        "full participation, to first order",
    ),
    decomfl(
        "sharper.theorem",
        "rate",
        assumes=(A1, A2, A3, UNIFORM),
        check=worst_of(check_runs("local.theorem"), by_steps("decomfl", *PROOF)),
        control=check_runs("local.theorem.control", 0.55),
        broken="0.55 of the bound",
        implies="one bound for Theorems 1, 2, 3 and 5: a low effective rank serves K local steps as well, and mu need "
        "not fall with d",
    ),
    decomfl(
        "sharper.numbers",
        "inequality",
        check=check_numbers(1),
        control=check_numbers(2),
        broken="d + 2 in place of d + 1",
        implies="a client sends at least (d + 1) log(1/eps) numbers, however they are cut into rounds, local steps and "
        "directions: K and P save rounds and no numbers, m nothing",
    ),
]
