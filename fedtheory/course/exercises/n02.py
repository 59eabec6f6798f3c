"""Exercises of notebook 02, FedSub."""

import functools
import math
from typing import Any

import torch

from fedtheory.algorithms.fedsub import FedSub
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise
from fedtheory.course.exercises.symbolic import formula
from fedtheory.maps.subspace import Spherical
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run

N, M, R, LR, TAU = 6, 20, 5, 0.2, 5  # the notebook's clients, entries, dimension, step size, local steps


def _bases() -> tuple[Basis, Basis]:
    """Of two rounds that follow each other."""
    draw = lambda name: Spherical(R).draw(Layout.single(M), Key(0).fold("exercise", name), torch.float64)
    return draw("P"), draw("next P")


def _duals() -> torch.Tensor:
    """Of all clients, (N, R), their average not zero."""
    return torch.randn(N, R, generator=Key(0).fold("exercise", "duals").generator(), dtype=torch.float64)


def rounds_to_one(answer: float) -> str:
    """Changes of basis until the average dual's root mean square has grown from 1e-17 to 1."""

    def after(ratio: float, start: float = 1e-17) -> int:
        return math.ceil(math.log(1 / start) / (0.5 * math.log(ratio)))

    slips = {
        "That is when the mean square, started at 1e-17, reaches 1.": after(9, 1e-17**0.5),
        "One round earlier than that it has not reached 1.": after(9) - 1,
        "So it would be with m/r = 10.": after(10),
        "You took ln 10 = 1: these are powers of ten.": math.ceil(17 / math.log(3)),
    }
    return reveals(answer, after(9), slips)


def new_line_12(answer: Any) -> str:
    """A function of the duals, B, and two bases, in the place of line 12."""
    P, P_next = _bases()
    dual, B = _duals(), _duals().flip(0) ** 2
    centred = dual - dual.mean(0)
    printed = lambda dual: P_next.project(P.lift(dual + B - B.mean(0)))
    given = lambda dual: answer(dual, B, P, P_next)
    same = lambda one, other: torch.allclose(one, other, atol=1e-12)
    return first_of(
        [
            (lambda: given(dual).shape == dual.shape, "The next duals have another shape."),
            (lambda: not same(given(dual), printed(dual)), "That is line 12 as printed, which carries the average on."),
            (
                lambda: not same(P_next.project(P.lift(given(centred))), printed(centred)),
                "The result still stands in the coordinates of the old basis.",
            ),
            (
                lambda: not same(given(centred), P_next.project(P.lift(B - B.mean(0)))),
                "The old dual is forgotten: line 12 keeps it where the duals average to zero.",
            ),
            (
                lambda: same(given(centred), printed(centred)),
                "Where the duals average to zero it is not line 12.",
            ),
            (lambda: float(given(dual).mean(0).norm()) < 1e-12, "The next duals do not average to zero."),
            (
                lambda: same(given(dual) - given(dual)[0], printed(dual) - printed(dual)[0]),
                "The average is gone, but the differences between clients have changed, too.",
            ),
        ]
    )


@functools.cache
def _plateau(lr: float, dual: bool) -> float:
    """The summed error of FedSub's last 300 rounds at a rate, with its dual or without."""
    problem = Quadratic.random(N, M, Key(0).fold("problem"))
    return sum(run(FedSub(lr, TAU, Spherical(R), dual=dual, form="sums"), problem, 1500)["error"][-300:])


def better_with_dual(answer: float) -> str:
    """A step size at which the plateau with the dual lies below that without."""
    if not 0.02 <= answer <= 0.2:
        return "Outside of 0.02 to 0.2: 1,500 rounds are too few for it, or the step is too long."
    with_dual, without = (_plateau(round(answer, 6), dual) for dual in (True, False))
    return "" if with_dual < without else f"The plateau with the dual is {with_dual / without:.3g} times that without."


def mean_square(answer: Any) -> str:
    """E |average dual|^2 after k changes of basis, each of which adds an error of its own."""

    def added(q: Any, eps: Any, k: Any) -> Any:
        return eps**2 * (q**k - 1) / (q - 1)

    slips = {
        "Two bases take part in a change, each of length s.": lambda m, r, s, eps, k: added(s**2 * r / m, eps, k),
        "A vector loses length when it is projected: which share of its square is kept?": (
            lambda m, r, s, eps, k: added(s**4, eps, k)
        ),
        "That is the share of the first error alone; every round adds one.": (
            lambda m, r, s, eps, k: eps**2 * (s**4 * r / m) ** (k - 1)
        ),
        "Before the first change the average is zero: you have one error too many.": (
            lambda m, r, s, eps, k: added(s**4 * r / m, eps, k + 1)
        ),
        "That is the root of the mean square.": lambda m, r, s, eps, k: added(s**4 * r / m, eps, k) ** 0.5,
        "Errors of different rounds are independent: their squares add up, not their lengths.": (
            lambda m, r, s, eps, k: added((s**4 * r / m) ** 0.5, eps**0.5, k) ** 2
        ),
        "With s^2 = m/r only: keep s.": lambda m, r, s, eps, k: added(m / r, eps, k),
    }
    points = [(20, 10, 1, 2, 1), (20, 5, 1.5, 1, 3), (12, 4, 0.5, 3, 2), (9, 1, 2, 0.5, 5), (7, 6, 3, 1, 4)]
    return formula(answer, lambda m, r, s, eps, k: added(s**4 * r / m, eps, k), points, slips)


def failing(dual: torch.Tensor, form: str, weight: float) -> set[int]:
    """Which of (13), (15), (16), (18) fail in a round of Algorithm 1, with weight times Lambda_i in line 6."""
    problem = Quadratic.random(N, M, Key(0).fold("problem"))
    everything, x, (P, P_next) = problem.full(problem.clients), problem.start(), _bases()
    B = U = torch.zeros(N, R, dtype=torch.float64)
    for _ in range(TAU):
        g = R / M * P.project(problem.grads(x + P.lift(B), everything))
        B, U = B - LR * (g + weight * dual / (LR * TAU)), U - LR * g
    sent, carried = (B, dual + B) if form == "printed" else (U, U)
    following = P_next.project(P.lift(carried - sent.mean(0)))
    gaps = {
        13: dual + B - U,
        15: following.mean(0),
        16: following - P_next.project(P.lift(U - U.mean(0))),
        18: P.lift(sent.mean(0) - U.mean(0)),
    }
    return {number for number, gap in gaps.items() if float(gap.abs().max()) > 1e-9}


def predictions(answer: Any) -> str:
    """For each of four broken rounds the facts that fail."""
    if not isinstance(answer, dict) or set(answer) != set("ABCD"):
        return 'A dictionary is asked for, with a set for each of "A", "B", "C", "D".'
    centred = _duals() - _duals().mean(0)
    shifted = centred + 1.0
    cases = {"A": (shifted, "printed", 1), "B": (shifted, "sums", 1), "C": (centred, "printed", 1)}
    cases["D"] = (centred, "printed", 2)
    why = {
        "A": "Start from (13), which needs no property of the duals, and average it over the clients.",
        "B": "What is sent is U_i, and the next dual is made of it alone.",
        "C": "Which property of the duals did the derivation of (16) and (18) use? Not that they are zero.",
        "D": "Sum line 6 again, with the 2, then average over the clients.",
    }
    for case, how in cases.items():
        truth, said = failing(*how), {int(number) for number in answer[case]}
        names = lambda numbers: ", ".join(f"({number})" for number in sorted(numbers))
        if said - truth:
            return f"In {case} {names(said - truth)} does not fail. {why[case]}"
        if truth - said:
            return f"In {case} {names(truth - said)} fails, too. {why[case]}"
    return ""


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "by which factor does the mean square grow per round?",
        rounds_to_one,
        right=("math.ceil(17 / math.log10(3))", "36.0"),
        wrong={"18": "mean square", "35": "One round earlier", "34": "m/r = 10", "16": "powers of ten"},
    ),
    2: Exercise(
        "implement",
        2,
        "what must be subtracted from the rows of dual + B so that they average to zero, and where does it happen?",
        new_line_12,
        right=("lambda dual, B, P, P_next: (lambda new: new - new.mean(0))(P_next.project(P.lift(dual + B)))",),
        wrong={
            "lambda dual, B, P, P_next: P_next.project(P.lift(dual + B - B.mean(0)))": "carries the average on",
            "lambda dual, B, P, P_next: dual + B - (dual + B).mean(0)": "coordinates of the old basis",
            "lambda dual, B, P, P_next: P_next.project(P.lift(B - B.mean(0)))": "forgotten",
            "lambda dual, B, P, P_next: P_next.project(P.lift(dual + B))": "not line 12",
            "lambda dual, B, P, P_next: P_next.project(P.lift(dual + B - B.mean(0) - dual[0]))": "not line 12",
            "lambda dual, B, P, P_next: 0 * dual": "not line 12",
        },
        tells=(r"dual \+ B\)\.mean", r"dual\.mean\(0\)\)\)"),
    ),
    3: Exercise(
        "design",
        2,
        "the model has to average over more rounds: which way must the step go?",
        better_with_dual,
        right=("0.06",),
        wrong={"0.2": "times that without", "0.5": "Outside", "0.001": "Outside"},
        open=True,
    ),
    4: Exercise(
        "derive",
        3,
        "a mean square is a factor times the one before it, plus eps^2: sum the geometric series.",
        mean_square,
        right=(
            "lambda m, r, s, eps, k: eps**2 * m * (1 - (r * s**4 / m) ** k) / (m - r * s**4)",
            "lambda m, r, s, eps, k: eps**2 * ((s**2 * (r / m) ** 0.5) ** (2 * k) - 1) / (s**4 * r / m - 1)",
        ),
        wrong={
            "lambda m, r, s, eps, k: eps**2 * ((s**2 * r / m) ** k - 1) / (s**2 * r / m - 1)": "Two bases",
            "lambda m, r, s, eps, k: eps**2 * (s ** (4 * k) - 1) / (s**4 - 1)": "loses length",
            "lambda m, r, s, eps, k: eps**2 * (s**4 * r / m) ** (k - 1)": "every round adds one",
            "lambda m, r, s, eps, k: eps**2 * ((s**4 * r / m) ** (k + 1) - 1) / (s**4 * r / m - 1)": "too many",
            "lambda m, r, s, eps, k: eps**2 * ((m / r) ** k - 1) / (m / r - 1)": "keep s",
            "lambda m, r, s, eps, k: k * eps**2": "too",
            "7": "A function is asked for",
        },
        tells=(r"s\*\*4", r"s\^4"),
    ),
    5: Exercise(
        "break",
        2,
        "each case is two lines of algebra: sum line 6 over the steps, then average over the clients.",
        predictions,
        right=(
            '{"D": (16, 13), "C": [], "B": [], "A": [18, 16, 15]}',
            '{"A": {"15", "16", "18"}, "B": {}, "C": {}, "D": {"13", "16"}}',
        ),
        wrong={
            '{"A": {15}, "B": set(), "C": set(), "D": {13, 16}}': "In A (16), (18) fails, too",
            '{"A": {13, 15, 16, 18}, "B": set(), "C": set(), "D": {13, 16}}': "In A (13) does not fail",
            '{"A": {15, 16, 18}, "B": {15}, "C": set(), "D": {13, 16}}': "In B (15) does not fail",
            '{"A": {15, 16, 18}, "B": set(), "C": {16, 18}, "D": {13, 16}}': "In C (16), (18) does not fail",
            '{"A": {15, 16, 18}, "B": set(), "C": set(), "D": {13, 15, 16, 18}}': "In D (15), (18) does not fail",
            "{15, 16, 18}": "A dictionary is asked for",
        },
    ),
    6: Exercise(
        "explain",
        3,
        rubric={
            "The average of the duals follows a recursion of its own, in which no gradient stands: nothing pulls it "
            "back to zero.": 1,
            "(a) and (b) change where the growth starts, not its factor per round, which the two bases decide: they "
            "buy a fixed number of rounds.": 1,
            "Proposal (c) bounds the numbers, but clipping leaves mostly the average, which the clients share. "
            "Proposal (d) makes the dual anew in each round, for the same bytes.": 1,
        },
        weak={
            "The step size is too large, so the gradients explode.": "Takes it for ordinary divergence: the recursion "
            "of the average has neither step size nor gradient.",
            "float64 has enough digits.": "Confuses where the growth starts with its slope.",
            "The bases are not orthogonal.": "Spherical bases are; it is their length, and that it is applied in every "
            "round, which stretches.",
        },
    ),
}
