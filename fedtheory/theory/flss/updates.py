"""FLSS, App. C.5 to C.7: what is projected, the singular values of G, sums over the sets M_t."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms.flss import FLSS
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.core.loop import play_round
from fedtheory.problems.quadratic import Quadratic
from fedtheory.theory.claim import Check, Claim, Outcome, each_needed
from fedtheory.theory.flss.proof import BEYOND, PURE, TILTED, S, eq14_e, row, torn
from fedtheory.theory.flss.round import (
    ANY_STEP,
    BENCH,
    BOUNDED,
    ORTHONORMAL,
    ROOT,
    SPAN,
    STEP,
    UNIFORM,
    Edge,
    Instance,
    Round,
    broken,
    details,
    dump,
    edges,
    flss,
    play,
    square,
)
from fedtheory.theory.instances import Smooth, exact, fixed, subsets
from fedtheory.theory.rounding import digits, level, listed
from fedtheory.theory.search import ROUNDING, ratio

# Sums over the sets M_t, on FLSS's own uploads


def uploads(N: int, M: int) -> Round:
    """A round of N clients with F_k = ||w||^2/2 + <a_k, w>, a_k whole numbers, D = 3, P two columns of I, eta = 1/2."""
    values = [[float((7 * k * k + 3 * i) % 11) for i in range(3)] for k in range(N)]
    problem = Smooth(torch.ones(N, 3).double(), torch.zeros(N, 3).double(), a=torch.tensor(values).double())
    frame = torch.eye(3, dtype=torch.float64)[:, :2]
    return play(Instance(problem, torch.zeros(3).double(), frame, 0.5, 1, M, L=1.0, mu=1.0))


def comb(n: int, k: int) -> int:
    return math.comb(n, k) if 0 <= k <= n else 0


@dataclass(frozen=True)
class Sets:
    """A round without noise and the sets M_t over which E_{M_t} is taken.

    Fields:
        q: the round; its server has played every set of M clients.
        draws: the sets, or ordered draws with replacement.
        ghat: (N, d); c: ghat_t^k - ghat_t.
    """

    q: Round
    draws: list[torch.Tensor]

    @property
    def ghat(self) -> torch.Tensor:
        return self.q.ghat[:, 0]

    @property
    def c(self) -> torch.Tensor:
        return self.ghat - self.ghat.mean(0)

    def mean(self, of: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """E_{M_t} of a function of the vectors c_k, k in M_t."""
        return torch.stack([of(self.c[draw]) for draw in self.draws]).mean(0)

    @property
    def size(self) -> tuple[int, int]:
        return self.q.at.N, self.q.at.M


Sides = Callable[[Sets], Sequence[torch.Tensor]]


def crossed(c: torch.Tensor) -> torch.Tensor:
    """Sum of <c_m, c_m'> over m != m'."""
    return square(c.sum(0)) - square(c).sum()


def over_sets(sides: Sides, what: str, replacement: bool = False) -> Check:
    """All sides equal for every M <= N <= 6, on the uploads and the server's models of a round of FLSS.

    replacement: ordered draws with replacement in place of sets.
    """

    def check(effort: str) -> Outcome:
        count, gap, most = 0, 0.0, 6
        for N in range(1, most + 1):
            for M in range(1, N + 1):
                if replacement and N**M > 4000:
                    continue
                draws = [torch.tensor(draw) for draw in itertools.product(range(N), repeat=M)] if replacement else None
                at = Sets(uploads(N, M), draws or subsets(N, M))
                first, *rest = sides(at)
                value = max(float((first - other).abs().max()) for other in rest)
                value /= float(square(at.ghat).sum()) ** 0.5 + float(square(at.ghat).sum())
                count += 1
                if value > 1e-12:
                    told = [[digits(v + 0.0) for v in side.flatten().tolist()] for side in (first, *rest)]
                    data = {"N": N, "M": M, "ghat_k": exact(at.ghat), "sides": told}
                    return Outcome(False, "exact", digits(value), f"{what}: N = {N}, M = {M}: sides {told}", data)
                gap = max(gap, value)
        margin, small = level(gap, 1e-12)
        said = f"{what}: {count} rounds of FLSS, one for each M <= N <= {most}, all M_t: largest relative gap {small}"
        return Outcome(True, "exact", margin, said)

    return check


def eq11_sides(cross: int = 1) -> Sides:
    def sides(at: Sets) -> Sequence[torch.Tensor]:
        M = at.size[1]
        whole = at.mean(lambda c: square(c.sum(0) / M))
        return at.q.spread, whole, at.mean(lambda c: square(c).sum() + cross * crossed(c)) / M**2

    return sides


def eq12_sides(wrong: int = 0) -> Sides:
    def sides(at: Sets) -> Sequence[torch.Tensor]:
        N, M = at.size
        total = square(at.c).sum()
        return at.mean(lambda c: square(c).sum()), comb(N - 1, M - 1 + wrong) / comb(N, M) * total, M / N * total

    return sides


def eq13_sides(K: str = "N") -> Sides:
    """K: what the first sum on the right runs to."""

    def sides(at: Sets) -> Sequence[torch.Tensor]:
        N, M = at.size
        weight = comb(N - 2, M - 2) / comb(N, M)
        last = at.c[: N if K == "N" else M]
        double = (last @ at.c.T).sum() - square(last).sum()
        return at.mean(crossed), weight * double, -weight * square(at.c).sum()

    return sides


def eq14_sides(times: str) -> Sides:
    """Its two equalities, the second times NM; times: how often ||ghat||^2 is subtracted, "1" (printed), "M" or "N"."""

    def sides(at: Sets) -> Sequence[torch.Tensor]:
        N, M = at.size
        own, mean = square(at.ghat).sum(), square(at.ghat.mean(0))
        first = square(at.c).sum() / (N * M)
        second = comb(N - 2, M - 2) / (M**2 * comb(N, M)) * crossed(at.c)
        if float(second) > 1e-12 * float(own) or float(first) > float(own) / (N * M) * (1 + 1e-12):
            raise AssertionError("an inequality of (14) is broken")
        often = {"1": 1, "M": M, "N": N}[times]
        return torch.stack([at.q.spread, first]), torch.stack([first + second, (own - often * mean) / (N * M)])

    return sides


def sampled_run(kept: int, J: int = 5, more: int = 0) -> tuple[torch.Tensor, Any]:
    """G (D, J) with the next `more` global updates, and the trajectory FLSS made of G; M = 1."""
    problem = Quadratic.random(3, 6, ROOT.fold("trajectory"))
    algorithm = FLSSReading(0.1, 2, 2, warm_up=J + more, refresh=0, kept=kept)
    state = algorithm.init(problem, problem.start() + 1, ROOT)
    columns, trajectory = [], None
    for t in range(J + more):
        x = state.server.x
        state, _, _ = play_round(algorithm, problem, state, problem.clients[t % 3, None], ROOT.fold("round", t))
        columns.append(state.server.x - x)
        if t == J - 1:
            trajectory = state.server.G
    return torch.stack(columns, 1), trajectory


def check_8_to_10(part: str, *, kept: int = 5, later: bool = False, stretch: float = 1.0) -> Check:
    """(8), (9), (10): what FLSS's own P makes of its own updates against the printed sums.

    later: the five updates after those in G; stretch: of P. (9) holds for any P with P^T P = I, (8) and (10) for the
    one that a singular value decomposition of G gives.
    """

    def check(effort: str) -> Outcome:
        columns, trajectory = sampled_run(kept, more=5)
        G, J, R = columns[:, :5], 5, 2
        basis = trajectory.basis(R)
        U, sigma, _ = torch.linalg.svd(G)
        (own,) = basis.matrices()
        P = {"(8)": U[:, :R], "(9)": stretch * own, "(10)": own}[part]
        rest = torch.eye(len(G), dtype=G.dtype) - P @ P.T
        updates = (columns[:, 5:] if later else G).T  # g_t, one a row
        error = square(updates - basis.lift(basis.project(updates))).mean()
        printed = square((G - P @ P.T @ G).T).sum() / J
        pairs = {
            "(8)": [(error, printed)],
            "(9)": [(printed, (G.T @ rest @ G).trace() / J), (printed, (rest @ G @ G.T).trace() / J)],
            "(10)": [(error, sigma[R:].square().sum() / J)],
        }[part]
        gap = max(float((left - right).abs() / right.abs()) for left, right in pairs)
        margin, small = level(gap, 1e-9)
        said = f"{part}, G of J = 5 global updates of FLSS's warm-up, D = 6, R = 2: relative gap {small}"
        return Outcome(gap < 1e-9, "exact", margin, said, None if gap < 1e-9 else {"gap": digits(gap), "kept": kept})

    return check


@dataclass(frozen=True)
class Sampled:
    """G as FLSS's warm-up samples it, and what (10) says of it.

    Fields:
        sigma2: the squared singular values, largest first; R.
        lrs: eta_j of the sampled rounds; tau; G2: G^2 over all that they visit.
    """

    sigma2: torch.Tensor
    R: int
    lrs: list[float]
    tau: int
    G2: float

    @property
    def tail(self) -> float:
        return float(self.sigma2[self.R :].sum())

    @property
    def rho(self) -> float:
        return self.tail / float(self.sigma2.sum())

    def sides(self, lr2: float) -> tuple[float, float]:
        """(1/J) sum_{r>R} sigma_r^2 and rho_R eta_t^2 tau^2 G^2 with eta_t^2 = lr2."""
        return self.tail / len(self.lrs), self.rho * lr2 * self.tau**2 * self.G2


def warmed(problem: Any, start: torch.Tensor, lrs: Sequence[float], tau: int, R: int, rounds: Any, G2: float | None):
    """A warm-up of FLSS with one client a round; rounds: (problem, client) of each. G2: None for what is visited."""
    algorithm = FLSSReading(lrs[0], tau, R, warm_up=len(lrs), refresh=0, kept=len(lrs))
    state, most = algorithm.init(problem, start, ROOT), 0.0
    for t, (lr, (drawn, client)) in enumerate(zip(lrs, rounds)):
        stepped = replace(algorithm, lr=lr)
        local = stepped.client(drawn, client, None, stepped.broadcast(state.server, ROOT), ROOT.fold("round", t))
        points = [state.server.x[None], *list(local)[:-1]]
        most = max(most, *(float(square(drawn.grads(y, drawn.full(client))).max()) for y in points))
        state, _, _ = play_round(stepped, drawn, state, client, ROOT.fold("round", t))
    (values,) = state.server.G.values
    return Sampled(values.square(), R, list(lrs), tau, most if G2 is None else G2)


def pulling(lrs: Sequence[float], tau: int = 2) -> Sampled:
    """Four clients with constant gradients of one length, the corners of a tetrahedron; one of them a round, R = 2."""
    corners = torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=torch.float64)
    problem = Smooth(torch.zeros_like(corners), torch.zeros_like(corners), a=corners)
    rounds = [(problem, problem.clients[t % 4, None]) for t in range(len(lrs))]
    return warmed(problem, torch.zeros(3, dtype=torch.float64), lrs, tau, 2, rounds, None)


def curved(run: int, lrs: Sequence[float], tau: int = 2) -> Sampled:
    """Three clients with random quadratics in six dimensions; one of them a round, R = 2."""
    problem = Quadratic.random(3, 6, ROOT.fold("curved", run))
    rounds = [(problem, problem.clients[t % 3, None]) for t in range(len(lrs))]
    return warmed(problem, problem.start() + 1, lrs, tau, 2, rounds, None)


def check_prop341(factor: float = 1.0) -> Check:
    """(10) where the steps are constant and 3.4.3 holds for every draw; random steps with the mean of eta_j^2.

    factor: of the right side.
    """

    def check(effort: str) -> Outcome:
        most, runs, instance = 0.0, 3 if effort == "quick" else 40, ""
        for run in range(runs):
            lrs = (0.01 + 0.19 * torch.rand(5, generator=ROOT.fold("steps", run).generator())).tolist()
            for name, made in (("four clients that pull apart", pulling), ("quadratics", partial(curved, run))):
                for steps in ([lrs[0]] * 5, lrs):
                    left, right = made(steps).sides(sum(lr**2 for lr in steps) / 5)
                    if ratio(left, factor * right) > most:
                        most, instance = ratio(left, factor * right), f"{name}, steps {[digits(lr) for lr in steps]}"
        holds = most <= 1 + ROUNDING
        said = (
            f"{4 * runs} warm-ups of FLSS without noise, half of them with one step size, half with random ones and "
            f"the mean of their squares: largest ratio {most:.4g} ({instance})"
        )
        return Outcome(holds, "run", most, said, None if holds else {"instance": instance, "ratio": digits(most)})

    return check


def check_prop341_falling(effort: str) -> Outcome:
    """Decreasing steps: one client, F = w_1^2/2 + w_2^2/4, w_0 = (1, 1), steps 1/2 and 1/8, R = 1."""
    problem, lrs = Smooth(row(1.0, 0.5), row(0.0, 0.0)), [0.5, 0.125]
    found = warmed(problem, torch.ones(2).double(), lrs, 1, 1, [(problem, problem.clients)] * 2, None)
    left, right = found.sides(lrs[-1] ** 2)
    data = {
        "F": "w_1^2/2 + w_2^2/4", "w_0": "(1, 1)", "steps": "1/2, 1/8", "tau, R, J": "1, 1, 2",
        "G^2": digits(found.G2), "sigma^2": [digits(v) for v in found.sigma2.tolist()], "left": digits(left),
        "right": digits(right), "||G||_F^2": digits(float(found.sigma2.sum())),
        "J eta_t^2 tau^2 G^2": exact(2 * lrs[-1] ** 2 * found.G2), "slacks": {STEP.text: 1 - lrs[0] * 2},
    }  # fmt: skip
    said = f"steps 1/2, then eta_t = 1/8: (1/J) sum_(r>R) sigma_r^2 = {left:.4g} against {right:.4g}"
    return Outcome(left <= right, "exact", left / right, said, data if left > right else None)


def check_prop341_noisy(effort: str) -> Outcome:
    """Constant steps, rare noise: one client, F = w_1^2/2, w_0 = (1, 0), noise along e_2: 3 at odds 1/10, else -1/3.

    Every outcome of the two draws is played. G^2 is the bound on the mean square of 3.4.3; a draw may be above it.
    """
    problem, lrs = Smooth(row(1.0, 0.0), row(0.0, 0.0)), [0.5, 0.5]
    atoms, start = ((3.0, 0.1), (-1 / 3, 0.9)), torch.tensor([1.0, 0.0], dtype=torch.float64)
    G2 = sum(p * float(square(problem.gradients(start)[0] + row(0.0, value)[0])) for value, p in atoms)
    left = right = 0.0
    above = 0.0
    for draws in itertools.product(atoms, repeat=2):
        rounds = [(problem.replace(a=row(0.0, value)), problem.clients) for value, _ in draws]
        found, odds = warmed(problem, start, lrs, 1, 1, rounds, G2), math.prod(p for _, p in draws)
        one, other = found.sides(lrs[0] ** 2)
        left, right = left + odds * one, right + odds * other
        above += odds * float(one > other)
    data = {
        "F": "w_1^2/2", "w_0": "(1, 0)", "noise": "(0, 3) at odds 1/10, (0, -1/3) at odds 9/10", "tau, R, J": "1, 1, 2",
        "eta": "1/2", "G^2": digits(G2), "mean of the left": digits(left), "mean of the right": digits(right),
        "odds of left > right": digits(above), "slacks": {STEP.text: 1 - lrs[0] * 2},
    }  # fmt: skip
    said = (
        f"eta = 1/2 in both rounds: left > right at odds {above:.3g}, and on average over the draws {left:.4g} against "
        f"{right:.4g}"
    )
    holds = above == 0 or left <= right
    return Outcome(holds, "exact", left / right, said, None if holds else data)


def check_rank(effort: str) -> Outcome:
    """Only R varies, P nested: E||w_{t+1} - v_{t+1}||^2 grows with R, where the bound falls through rho_R."""
    edge = Edge(N=3, M=1, d=3, R=3)
    at = BENCH.drawn(edge, "rank")
    found = {R: float(play(replace(at, frame=fixed(torch.eye(3).double()[:, :R]).frames[0])).spread) for R in (1, 2, 3)}
    holds = found[1] <= found[2] <= found[3]
    said = "only R varied: E||w_{t+1} - v_{t+1}||^2 rises, " + listed({f"R = {R}": v for R, v in found.items()})
    return Outcome(holds, "exact", None, said)


def check_7(case: str) -> Check:
    """E[Proj g_t] against Proj E[g_t] and E[g_t] over noise and M_t. case: "given", "tilted" or "random" P."""

    def check(effort: str) -> Outcome:
        if case == "random":
            return two_updates()
        gap, data = 0.0, None
        corners = edges(R=1) if case == "given" else TILTED
        for number, edge in enumerate(corners):
            if edge.shape != "quadratic":
                continue
            q = play(BENCH.drawn(edge, "eq7", number))
            mean = q.E(q.g).mean(0)
            low = torch.stack([q.w.mean(0) - q.at.x]).squeeze(0).T @ q.all_odds  # the projected global update
            for value in (q.at.frame @ (q.at.frame.T @ mean), mean):
                step = float((low - value).abs().max() / mean.abs().max().clamp(min=1e-3))
                if step > gap:
                    gap, data = step, dump(q.at)
        margin, small = level(gap, 1e-10)
        said = f"P fixed before the draws, E over noise and M_t by enumeration: largest relative gap {small}"
        return Outcome(gap < 1e-10, "exact", margin, said, data if gap >= 1e-10 else None)

    return check


def two_updates() -> Outcome:
    """F_k = ||w - e_k||^2/2, k = 1, 2, M = 1, eta = 1/4: P is made of the first update, E over both rounds' clients."""
    problem = Smooth(torch.ones(2, 2).double(), torch.eye(2).double())
    algorithm = FLSS(0.25, 1, 1, warm_up=1, refresh=0)
    projected, plain, projectors = [], [], []
    for k in (0, 1):
        state = algorithm.init(problem, torch.zeros(2, dtype=torch.float64), ROOT)
        first, _, _ = play_round(algorithm, problem, state, torch.tensor([k]), ROOT)
        (P,) = first.server.G.basis(1).matrices()
        projectors.append(P @ P.T)
        for j in (0, 1):
            second, _, _ = play_round(algorithm, problem, first, torch.tensor([j]), ROOT)
            projected.append(second.server.x - first.server.x)
            plain.append(-0.25 * problem.gradients(first.server.x)[j])
    left = torch.stack(projected).mean(0)
    right = torch.stack(projectors).mean(0) @ torch.stack(plain).mean(0)
    gap = float((left - right).abs().max() / right.abs().max())
    data = {"F_k": "||w - e_k||^2/2", "eta": "1/4", "E[P P^T g]": left.tolist(), "E[P P^T] E[g]": right.tolist()}
    said = f"P made of the first round's update: E[P P^T g] = {left.tolist()}, E[P P^T] E[g] = {right.tolist()}"
    return Outcome(gap < 1e-12, "exact", gap, said, data if gap >= 1e-12 else None)


CLAIMS: list[Claim] = [
    flss(
        "eq7",
        "expectation",
        assumes=(SPAN, UNIFORM),
        met="FLSS makes P from past updates",
        caveat="P is fixed before g_t is drawn: E is given the past. P is made of past updates, on which g_t depends",
        check=check_7("given"),
        as_printed=check_7("random"),
        control=check_7("tilted"),
        broken="E[g_t] not in span P",
    ),
    flss(
        "eq8",
        "identity",
        assumes=(ORTHONORMAL,),
        reading="E over g_t in G gives every sampled update the same weight",
        check=check_8_to_10("(8)"),
        control=check_8_to_10("(8)", later=True),
        broken="the five updates after those in G",
        implies="an error in the sample: Prop. 3.4.1 says nothing about the updates of the projected rounds",
    ),
    flss(
        "eq9",
        "identity",
        assumes=(ORTHONORMAL,),
        check=check_8_to_10("(9)"),
        control=check_8_to_10("(9)", stretch=1.01),
        broken="1.01 P",
    ),
    flss(
        "eq10-equality",
        "identity",
        assumes=(ORTHONORMAL,),
        check=check_8_to_10("(10)"),
        control=check_8_to_10("(10)", kept=2),
        broken="a trajectory that keeps R vectors as the columns come (0.7% more)",
    ),
    flss(
        "eq10-ineq / prop341",
        "inequality",
        assumes=(BOUNDED, ORTHONORMAL),
        error="missing assumption",
        caveat="eta_t is the step size of all sampled rounds (or eta_t^2 the mean of their squares); 3.4.3 holds for "
        "every draw, not only on average",
        reading="||G||_2 is the Frobenius norm: with the spectral norm the last clause is true as well, but (10) does "
        "not follow from it",
        check=check_prop341(),
        as_printed=each_needed(
            data=details, without={"constant steps": check_prop341_falling, "3.4.3 for every draw": check_prop341_noisy}
        ),
        control=check_prop341(0.99),
        broken="0.99 of the right side",
        implies="under the decreasing steps of Corollary C.4.2 the columns of G come from rounds with longer steps "
        "than eta_t; Lemma C.2.1 does not need the proposition",
    ),
    flss(
        "eq11",
        "identity",
        assumes=(UNIFORM,),
        check=over_sets(eq11_sides(), "(11)"),
        control=over_sets(eq11_sides(0), "without the cross terms"),
        broken="the cross terms left out",
    ),
    flss(
        "eq12",
        "identity",
        assumes=(UNIFORM,),
        check=over_sets(eq12_sides(), "(12)"),
        control=over_sets(eq12_sides(1), "C(N-1, M)"),
        broken="C(N-1, M) in place of C(N-1, M-1)",
    ),
    flss(
        "eq13",
        "identity",
        error="misprint",
        implies="None: the next lines have N",
        caveat="K, which is nowhere defined, is N",
        assumes=(UNIFORM,),
        check=over_sets(eq13_sides(), "(13)"),
        as_printed=over_sets(eq13_sides("M"), "K = M"),
        control=over_sets(eq13_sides(), "with replacement", replacement=True),
        broken="clients drawn with replacement",
    ),
    flss(
        "eq14-centering",
        "identity",
        assumes=(UNIFORM,),
        check=over_sets(eq14_sides("1"), "with E||ghat||^2"),
        control=over_sets(eq14_sides("M"), "with M E||ghat||^2"),
        broken="M E||ghat||^2",
        error="wrong constant",
        repair="N E||ghat||^2 in place of E||ghat||^2",
        repaired=over_sets(eq14_sides("N"), "with N E||ghat||^2"),
        implies="nothing: the term is dropped in the next step, and as an inequality the line is true. (If the sum is "
        "read to cover both terms, against the way it is printed, the equality is true too.)",
    ),
    flss(
        "eq14-e-term",
        "inequality",
        assumes=(BOUNDED,),
        met="a reading of e_t^k",
        caveat="e_t^k, which the appendix does not define, is ghat_t^k - g_t^k",
        check=S(eq14_e(1.0), "eq14", "rho_R = 0, the first step is an equality", BEYOND, ANY_STEP),
        as_printed=broken(torn, eq14_e(-1.0), "e = g - ghat, as (10) writes the error, rho_R = 0"),
        control=S(eq14_e(1.0, 0.99), "eq14.control", corners=[PURE]),
        broken="0.99 eta^2 tau^2 G^2/M in place of 2 eta^2 tau^2 G^2/M, rho_R = 0",
        implies="the second step does not follow from E||e_t^k||^2 <= rho_R eta^2 tau^2 G^2, which is false for local "
        "updates, but from ||ghat|| <= ||g||",
    ),
]
