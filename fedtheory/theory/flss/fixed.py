"""FLSS in a fixed subspace without a bound on gradients: where it leads, and two assumptions that say too much.

The theorem of docs/theory/flss.md, attacked through the code that trains; w^* = 0, as in `round`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.theory import bench, search
from fedtheory.theory.bench import Bench
from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.flss.formulas import FORMULAS as F
from fedtheory.theory.flss.round import (
    BENCH,
    BOUNDED,
    CONVEX,
    HELD,
    ORTHONORMAL,
    ROOT,
    SMOOTH,
    SPAN,
    UNBIASED,
    UNIFORM,
    Edge,
    Instance,
    Round,
    Terms,
    build,
    dump,
    flss,
    play,
    square,
    with_units,
)
from fedtheory.theory.formula import Root
from fedtheory.theory.proof import by_steps

# Instances: clients that pull anywhere, P the first R coordinates, steps at the theorem's bound


@dataclass(frozen=True)
class Fixed(bench.Edge):
    """An edge whose clients turn in all d dimensions, and a rank; eta tau L = q."""

    edge: Edge
    R: int
    q: float = 1 / 20

    def __str__(self) -> str:
        return f"{replace(self.edge, R=self.R)}, eta tau L = {self.q:g}"

    def parts(self) -> dict[str, int]:
        return self.edge.parts()


def posed(z: torch.Tensor, at: Fixed) -> Instance:
    full = build(z, at.edge)
    return replace(full, frame=full.frame[:, : at.R], lr=at.q / (full.L * full.tau))


def optimum(at: Instance) -> torch.Tensor:
    """w_P, where P grad F = 0 on w_t + span P; F is quadratic."""
    d, P = len(at.x), at.frame
    slope = lambda w: at.problem.gradients(w).mean(0)
    H = slope(torch.eye(d, dtype=at.x.dtype)) - slope(torch.zeros_like(at.x))
    return at.x - P @ torch.linalg.solve(P.T @ H @ P, P.T @ slope(at.x))


def named(at: Instance, w: torch.Tensor) -> dict[str, Any]:
    """What an instance has for the page's names; `w`: its w_P."""
    zeta2 = square(at.problem.gradients(w)).mean()
    numbers = {"eta": at.lr, "tau": at.tau, "L": at.L, "mu": at.mu, "M": at.M, "near": square(at.x - w)}
    return numbers | {"s": (at.N - at.M) / (at.M * max(at.N - 1, 1)), "sigma": Root(at.sigma2), "zeta": Root(zeta2)}


def contraction(noise: float = 1.0) -> Terms:
    """E|w_{t+1} - w_P|^2 <= (1 - mu eta tau)|w_t - w_P|^2 + `noise` c."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at, w = q.at, optimum(q.at)
        names = named(at, w)
        kept, _ = F["round"].terms(names | {"c": 0})
        c = F["left"].right(names, float) + F["left_drift"].right(names, float)
        after = (square(q.w - w) @ q.all_odds).mean()
        scale = (square(at.x - w) + at.lr**2 * at.tau**2 * (q.G2 + at.sigma2)).detach()
        return after - kept, noise * c + 1e-13 * scale, scale

    return terms


def gap(upper: float = 1.0) -> Terms:
    """mu/2 dist^2 <= F(w_P) - F(w^*) <= `upper` L/2 dist^2."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at, P = q.at, q.at.frame
        loss = lambda w: at.problem.values(w).mean()
        lost = loss(optimum(at)) - loss(torch.zeros_like(at.x))
        distance = square(at.x - P @ (P.T @ at.x))  # to w^* = 0
        names = {"mu": at.mu, "L": at.L, "dist": Root(distance), "F_P": lost, "F_star": 0}
        (below, _, between), (_, _, above) = F["gap"].links(names, float)
        return search.worst((between, upper * above), (below, between))

    return terms


def stays(share: float = 1.0) -> Terms:
    """`share` dist^2 <= E|w_{t+1} - w^*|^2, with dist the distance of w^* from w_t + span P."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        P, x = q.at.frame, q.at.x
        return share * square(x - P @ (P.T @ x)), q.next

    return terms


def steep(share: float = 1.0) -> Terms:
    """`share` mu^2 |w_t - w^*|^2 <= G^2, what Assumption 3.4.3 needs in this round."""
    return lambda q: (share * q.at.mu**2 * q.D, q.G2)


def pieces(q: Round) -> Sequence[torch.Tensor]:
    """All terms of the contraction, for their units."""
    at, w = q.at, q.at.x
    zeta2, third = square(at.problem.gradients(w)).mean(), at.L * at.lr**3
    two = (at.lr**2 * zeta2, at.lr**2 * at.sigma2, third * zeta2, third * at.sigma2)
    return [q.next, q.D, at.mu * at.lr * q.D, *two]


EDGES = [
    Fixed(Edge(N=1, tau=1, d=1, R=1, kappa=0.01, still=True), 1),
    Fixed(Edge(tau=1), 1),
    Fixed(Edge(tau=3, M=2), 1),
    Fixed(Edge(N=3, M=2, tau=2), 2),
    Fixed(Edge(N=3, M=1, tau=2, d=3, R=3, noise=False), 2),
    Fixed(Edge(N=1, tau=4, d=3, R=3, kappa=0.01), 1, 1 / 80),
    Fixed(Edge(M=2, noise=False, kappa=1.0), 1),
    Fixed(Edge(L=20.0, kappa=0.5), 1),
]
NOISE_ALONE = EDGES[:1]
FAR = [replace(at, q=3.0) for at in EDGES]  # steps of any length
ROUND_BOWL = Fixed(Edge(N=1, tau=1, noise=False, kappa=1.0), 1)


FIXED: Bench[Fixed, Instance, Round] = Bench(
    ROOT.fold("fixed"), lambda: EDGES, posed, play, dump, HELD, f"{HELD}: broken", BENCH.effort
)  # fmt: skip
survives = FIXED.survives


def inside(tilt: float = 0.0) -> Check:
    """A round never leaves w_t + span P; at w_P and with one local step E[g_t] is across P, -eta grad F(w_P).

    `tilt`: how far the second statement's point is from w_P.
    """

    def check(effort: str) -> Outcome:
        worst, count = 0.0, 0
        for number, corner in enumerate([*EDGES, *FAR] * (1 if effort == "quick" else 10)):
            at = replace(BENCH, build=posed).drawn(corner, "inside", number)
            P, q = at.frame, play(at)
            out = q.w - at.x - (q.w - at.x) @ P @ P.T
            one = replace(at, x=optimum(at) + tilt * P.sum(-1), tau=1)
            mean = (first := play(one)).E(first.g).mean(0)
            parts = (out, mean @ P, mean + at.lr * at.problem.gradients(one.x).mean(0))
            size = float(q.scale.sqrt() + mean.norm())
            worst, count = max(worst, *(float(part.abs().max()) / size for part in parts)), count + 1
        said = f"{count} rounds of FLSS, largest relative gap {worst:.1e}"
        return Outcome(worst < 1e-10, "exact", worst, said, None if worst < 1e-10 else {"gap": worst})

    return check


CLAIMS: list[Claim] = [
    flss(
        "sharper.fixed",
        "rate",
        assumes=(SMOOTH, CONVEX, UNBIASED, UNIFORM, ORTHONORMAL),
        check=with_units(
            worst_of(
                survives(contraction(), "contraction", "the recursion of one round", EDGES),
                by_steps("flss", *(f"flss.3.{step}" for step in range(1, 12))),
            ),
            pieces,
        ),
        control=survives(contraction(0.65), "contraction", "", NOISE_ALONE),
        broken="65/100 of what a round adds",
        implies="FLSS in a fixed subspace goes, up to a neighbourhood that shrinks with eta, to the best point of that "
        "subspace, whatever the clients' gradients do; how far that is from w^* no bound of the rate sees.",
    ),
    flss(
        "sharper.gap",
        "inequality",
        assumes=(SMOOTH, CONVEX, ORTHONORMAL),
        check=worst_of(survives(gap(), "gap", "both sides", [*EDGES, ROUND_BOWL]), by_steps("flss", "flss.2.1")),
        control=survives(gap(0.99), "gap", "", [ROUND_BOWL]),
        broken="99/100 of the upper side",
        implies="what a fixed subspace costs is decided when it is fixed",
    ),
    flss(
        "a343-convex",
        "inequality",
        assumes=(CONVEX, BOUNDED),
        reading="for all w; the appendix uses it at the iterates, where it is a bound on the run",
        check=worst_of(
            survives(steep(), "steep", "G^2 of one round", [*EDGES, ROUND_BOWL]), by_steps("flss", "flss.1.1")
        ),
        control=survives(steep(1.01), "steep", "", [ROUND_BOWL]),
        broken="101/100 mu^2",
        implies="No strongly convex problem on the whole space meets all the assumptions of Theorem C.3.1; G must be "
        "read along the run, and then it grows with the distance from which FLSS starts.",
    ),
    flss(
        "a344-span",
        "inequality",
        assumes=(SPAN, ORTHONORMAL),
        check=worst_of(
            survives(stays(), "stays", "dist^2 against E|w_{t+1} - w^*|^2", [*EDGES, *FAR, ROUND_BOWL]), inside()
        ),
        control=inside(0.01),
        broken="a point of w_0 + span P beside w_P",
        implies="3.4.4 assumes that the subspace already points to the solution: what a choice of P should be shown to "
        "do.",
    ),
]
