"""Exercises of notebook 06, FLSS."""

import math
import random

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.flss import FLSS
from fedtheory.core.key import Key
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise
from fedtheory.maps.subspace import Trajectory
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run
from fedtheory.theory.flss.printed import PARAMETERS, sent

DOUBLE = torch.float64


def projection(answer) -> str:
    """A function of a basis and vectors: P P^T g."""
    g = Key(0).fold("exercise").generator()
    vectors = torch.randn(2, 3, 12, generator=g, dtype=DOUBLE)
    trajectory = Trajectory.empty([12], 4, vectors)
    for column in torch.randn(5, 12, generator=g, dtype=DOUBLE):
        trajectory = trajectory.add(column)
    basis = trajectory.basis(4)
    (P,) = basis.matrices()
    wanted = vectors @ P @ P.T
    found = answer(basis, vectors)
    return first_of(
        [
            (found.shape == vectors.shape, "These are coordinates: they are not in the full space."),
            (lambda: not torch.allclose(found, vectors), "Nothing was projected."),
            (lambda: not torch.allclose(found, vectors - wanted), "That is what is lost."),
            (lambda: torch.allclose(found, wanted), "That is not the projection."),
        ]
    )


def directions(answer: float) -> str:
    """The smallest R with rho_R <= 0.2 where sigma_i = i^(-1/2), i = 1, ..., 200."""
    slow = torch.arange(1.0, 201.0, dtype=DOUBLE) ** -0.5
    held_by = lambda values: int((values.cumsum(0) / values.sum() < 0.8).sum()) + 1
    slips = {
        "You took the sum of the values, not of their squares.": held_by(slow),
        "That is a share of their number.": 160,
    }
    return reveals(answer, held_by(slow**2), slips)


def longest_warm_up(answer: int) -> str:
    """The largest T0 with an upload of at most a third of FedAvg's."""
    upload = lambda T0: sent(FLSS(0.01, 1, 40, T0), PARAMETERS["CNN"], range(400)) / (400 * PARAMETERS["CNN"])
    return first_of(
        [
            (isinstance(answer, int), "A number of rounds is whole."),
            (lambda: upload(answer) <= 1 / 3, "With this warm-up it sends more than a third."),
            (lambda: upload(answer + 1) > 1 / 3, "One more whole round would still be within a third."),
        ]
    )


def falling_steps(answer) -> str:
    """A bound on the projection error as a function of rho, tau, G and the steps."""
    draw = random.Random(0)
    cases = [(draw.random(), draw.randint(1, 9), 3 * draw.random(), [draw.random() for _ in range(J)]) for J in (3, 5)]
    cases.append((0.5, 2, 1.0, [0.5, 0.125]))
    unit = lambda rho, tau, bound: rho * (tau * bound) ** 2
    others = {
        "That is (10) as printed, with the last step: columns of earlier rounds are longer.": lambda e: e[-1] ** 2,
        "True, but larger than need be: only the round with the longest step reaches it.": lambda e: max(e) ** 2,
        "The square of the mean step is less than the mean of the squares: it can be broken.": lambda e: (
            (sum(e) / len(e)) ** 2
        ),
        "Left of it stands a mean over the columns.": lambda e: sum(s**2 for s in e),
        "The shortest step bounds its own column only.": lambda e: min(e) ** 2,
    }
    fits = lambda of: all(
        math.isclose(float(answer(*case)), unit(*case[:3]) * of(case[3]), rel_tol=1e-6) for case in cases
    )
    if fits(lambda e: sum(s**2 for s in e) / len(e)):
        return ""
    named = next((word for word, of in others.items() if fits(of)), "")
    mean = lambda e: sum(s**2 for s in e) / len(e)
    above = all(float(answer(*case)) >= unit(*case[:3]) * mean(case[3]) * (1 - 1e-9) for case in cases)
    return named or ("It holds, but a smaller bound does, too." if above else "There are updates that break it.")


DIMENSIONS, CLIENTS, BUDGET, MOST = 20, 8, 60, 1000


def wins(answer) -> str:
    """A problem on which FLSS ends a third as far from w^* as FedAvg for the same words."""
    curvatures, solution, R, T0 = answer
    lists = (curvatures, solution)
    if any(len(one) != DIMENSIONS for one in lists):
        return f"Two lists of {DIMENSIONS} numbers, then R and T0."
    if min(curvatures) < 1e-3 or max(curvatures) > 1 or max(map(abs, solution)) > 1:
        return "Curvatures lie between 0.001 and 1, entries of w* between -1 and 1."
    if not (isinstance(R, int) and isinstance(T0, int) and 1 <= R <= T0 <= BUDGET):
        return f"R and T0 are whole, with 1 <= R <= T0 <= {BUDGET}."
    h = torch.tensor(curvatures, dtype=DOUBLE)
    scatter = torch.randn(CLIENTS, DIMENSIONS, generator=Key(0).fold("clients").generator(), dtype=DOUBLE)
    centres = torch.tensor(solution, dtype=DOUBLE) + 0.1 * (scatter - scatter.mean(0))
    problem = Quadratic(h.diag().expand(CLIENTS, -1, -1).clone(), centres)
    lr, star = 0.5 / max(curvatures), torch.tensor(solution, dtype=DOUBLE)
    plain = run(FedAvg(lr, 2), problem, BUDGET, every=BUDGET, metrics=()).x
    rounds = min(MOST, T0 + (BUDGET - T0) * DIMENSIONS // R)
    algorithm = FLSS(lr, 2, R, T0, refresh=0)
    middle = run(algorithm, problem, T0, every=T0, metrics=()).x
    ours = run(algorithm, problem, rounds, every=rounds, metrics=()).x
    far = lambda x: float(torch.linalg.vector_norm(x - star))
    if far(ours) <= far(plain) / 3:
        return ""
    if far(plain) < 1e-3 * max(far(torch.zeros_like(star)), 1e-9):
        return "FedAvg is there already after its 60 rounds: nothing is left to win."
    if R > DIMENSIONS // 2 or rounds < 2 * BUDGET:
        return "A projected round costs nearly as much as a whole one, or hardly any words are left for them."
    return (
        f"FedAvg ends {far(plain):.2g} from w*. FLSS is {far(middle):.2g} away when the projection starts and ends at "
        f"{far(ours):.2g}: what is left lies outside its span, or shrinks too slowly within it."
    )


EXERCISES = {
    1: Exercise(
        "implement",
        1,
        "coordinates first, then back into the full space",
        projection,
        right=("lambda P, g: P.lift(P.project(2 * g)) / 2", "lambda P, g: g @ P.matrices()[0] @ P.matrices()[0].T"),
        wrong={
            "lambda P, g: P.project(g)": "coordinates",
            "lambda P, g: g": "Nothing was projected",
            "lambda P, g: g - P.lift(P.project(g))": "what is lost",
            "lambda P, g: 2 * P.lift(P.project(g))": "not the projection",
        },
    ),
    2: Exercise(
        "compute",
        1,
        "rho_R is one minus the share of the squares held",
        directions,
        right=(
            "min(R for R in range(1, 201) if sum(1 / i for i in range(1, R + 1)) >= "
            "0.8 * sum(1 / i for i in range(1, 201)))",
        ),
        wrong={
            "next(R for R in range(1, 201) if sum(1 / i for i in range(R, 201)) <= "
            "0.2 * sum(1 / i for i in range(1, 201)))": "Too large",
            "next(R for R in range(1, 201) if sum(i**-0.5 for i in range(1, R + 1)) >= "
            "0.8 * sum(i**-0.5 for i in range(1, 201)))": "not of their squares",
            "160": "share of their number",
            "4": "Too small",
        },
    ),
    3: Exercise(
        "compute",
        1,
        "try sent(FLSS(0.01, 1, 40, T0), d, range(400)) with several T0; every fifth later round is whole, too",
        longest_warm_up,
        right=("67",),
        wrong={"66": "One more", "133": "more than a third", "68": "more than a third", "66.7": "is whole"},
    ),
    4: Exercise(
        "derive",
        3,
        "write the left side with rho_R and the Frobenius norm of G, then bound that norm column by column",
        falling_steps,
        right=("lambda rho, tau, bound, etas: rho * tau**2 * bound**2 * torch.tensor(etas).square().mean()",),
        wrong={
            "lambda rho, tau, bound, etas: rho * etas[-1]**2 * tau**2 * bound**2": "as printed",
            "lambda rho, tau, bound, etas: rho * max(etas)**2 * tau**2 * bound**2": "larger than need be",
            "lambda rho, tau, bound, etas: rho * (sum(etas) / len(etas))**2 * tau**2 * bound**2": "can be broken",
            "lambda rho, tau, bound, etas: rho * sum(e**2 for e in etas) * tau**2 * bound**2": "mean over the columns",
            "lambda rho, tau, bound, etas: sum(e**2 for e in etas) / len(etas) * tau**2 * bound**2": "a smaller bound",
            "lambda rho, tau, bound, etas: rho * sum(e**2 for e in etas) / len(etas) * tau": "break it",
        },
        tells=(r"[Mm]ean of their squares", r"mean of the squared"),
    ),
    5: Exercise(
        "design",
        3,
        "what must FedAvg find hard, so that more rounds would help it, and what must the first updates show?",
        wins,
        right=("([0.01] + 19 * [1.0], [1.0] + 19 * [0.0], 4, 20)", "(2 * [0.01] + 18 * [1.0], 20 * [0.5], 3, 20)"),
        wrong={
            "(20 * [1.0], 20 * [1.0], 4, 20)": "there already",
            "([0.002 * 1.3**k for k in range(19)] + [1.0], 20 * [1.0], 2, 20)": "outside its span",
            "([0.01] + 19 * [1.0], 20 * [1.0], 20, 20)": "as much as a whole one",
            "([0.01] + 19 * [1.0], 20 * [1.0], 2, 58)": "hardly any words",
            "([1.0], [1.0], 1, 20)": "Two lists",
            "([0.01] + 19 * [1.0], 20 * [1.0], 21, 20)": "R <= T0",
        },
        open=True,
    ),
    6: Exercise(
        "explain",
        3,
        rubric={
            "It is the only source of directions outside span P: a projected global update lies in the span already, "
            "so that P could only turn within it.": 1,
            "The part of the error outside span P stands still in projected rounds; it shrinks in the unprojected "
            "round itself, and afterwards because P has turned towards it.": 1,
            "It is sent whole, d numbers: whatever R is, at least a fifth of FedAvg's upload after T0 remains.": 1,
        },
        weak={
            "It refreshes the subspace.": "Says that, not why: a projected update could be added as well, and would "
            "bring nothing.",
            "It makes training more stable.": "Nothing here was unstable; the frozen part of the error is the point.",
            "It costs a little, and a larger R would make it cheaper.": "The cost is d numbers in one round of five, "
            "at every R.",
        },
    ),
}
