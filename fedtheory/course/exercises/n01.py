"""Exercises of notebook 01, random subspaces."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise, plain
from fedtheory.course.exercises.symbolic import formula
from fedtheory.maps.subspace import Coordinate, CoordinateBasis, Gaussian, Projection, Spherical

M, R, DRAWS = 6, 2, 3000  # of exercise 5


def least_rank(answer: Any) -> str:
    """The smallest rank at which an isotropic spherical shadow in 46 dimensions beats zero."""
    price = lambda r: 46 / r - 1
    return first_of(
        [
            (isinstance(answer, int), "A rank is a whole number."),
            (lambda: 0 < answer <= 46, "A rank lies between 1 and m."),
            (lambda: price(answer) != 1, "At this rank the two guesses are equally bad."),
            (lambda: price(answer) < 1, "Too small: here the shadow is worse than no guess."),
            (lambda: price(answer - 1) >= 1, "Too large: one rank less is still better than 0."),
        ]
    )


def best_shrinking(answer: Any) -> str:
    """The factor a, a function of m and r, at which E|v - a W v|^2 is smallest for isotropic Gaussian bases."""
    error = lambda a, m, r: 1 - 2 * a + a**2 * (m + r + 1) / r
    for m, r in ((20, 5), (8, 6), (3, 1)):
        here = plain(answer(m, r))
        if not 0 < here < math.inf:
            return f"At m = {m}, r = {r} it is {here}: a shorter vector along W v has a positive factor."
        if error(0.999 * here, m, r) < error(here, m, r):
            return f"At m = {m}, r = {r} a little less is better."
        if error(1.001 * here, m, r) < error(here, m, r):
            return f"At m = {m}, r = {r} a little more is better."
    return ""


@functools.cache
def _visits() -> float:
    """Mean rounds, over 20 repeats, until coordinate bases, 5 of 100, have visited 99 of the coordinates."""
    layout, total = Layout.single(100), 0
    for repeat in range(20):
        visited, t = torch.zeros(100, dtype=torch.bool), 0
        while int(visited.sum()) < 99:
            P = Coordinate(5).draw(layout, Key(0).fold("until", repeat, t), torch.float64)
            assert isinstance(P, CoordinateBasis)
            visited[P.index] = True
            t += 1
        total += t
    return total / 20


def rounds_until(answer: float) -> str:
    """Rounds until coordinate bases, 5 of 100, have visited 99% of the coordinates; measured in 20 repeats."""
    slips = {
        "That would do if no coordinate were visited twice.": 100 / 5,
        "That is 99% of the rounds that would do if no coordinate were visited twice.": 0.99 * 100 / 5,
        "In so many rounds 99.99% have been visited, not 99%.": math.log(1e-4) / math.log(0.95),
        "In so many rounds 90% have been visited, not 99%.": math.log(0.1) / math.log(0.95),
    }
    return reveals(answer, _visits(), slips, within=0.15)


def crosstalk(answer: Any) -> str:
    """E (u^T W v)^2 for perpendicular unit vectors and isotropic spherical bases, a function of m and r."""
    kept = lambda m, r: m * (r + 2) / (r * (m + 2))  # E (v^T W v)^2
    slips = {
        "That is for orthonormal bases: W is quadratic in the length of the columns, and it is squared.": (
            lambda m, r: (r / m - r * (r + 2) / (m * (m + 2))) / (m - 1)
        ),
        "That is the square of all that leaks. Over how many perpendicular directions is it spread?": (
            lambda m, r: m / r - kept(m, r)
        ),
        "There are m - 1 directions perpendicular to v.": lambda m, r: (m / r - kept(m, r)) / m,
        "You took v^T W v for its mean: it has a spread, which the Beta law gives.": (
            lambda m, r: (m / r - 1) / (m - 1)
        ),
        "That is the mean of u^T W v. Its square is asked for.": lambda m, r: 0 * m,
        "That is the mean square along v.": kept,
    }
    points = [(20, 5), (8, 3), (5, 4), (30, 1), (6, 6), (3, 2)]
    return formula(answer, lambda m, r: (m / r - kept(m, r)) / (m - 1), points, slips)


def _frames(projection: Projection, name: str) -> torch.Tensor:
    """Draws of a basis as matrices, (DRAWS, M, r)."""
    key, layout = Key(0).fold("laws", name), Layout.single(M)
    return torch.stack([projection.draw(layout, key.fold(t), torch.float64).matrices()[0] for t in range(DRAWS)])


@functools.cache
def _laws() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Of the bases of two rounds that follow each other, for each law."""
    fixed = (math.sqrt(M / R) * torch.eye(M, R, dtype=torch.float64)).expand(DRAWS, M, R)
    once = _frames(Spherical(R), "once")
    gaussian = _frames(Gaussian(R), "P"), _frames(Gaussian(R), "P'")
    return {"fixed": (fixed, fixed), "Gaussian": gaussian, "once": (once, once)}


def holding(P: torch.Tensor, after: torch.Tensor) -> str:
    """The letters of the statements that hold for a law, from its draws: means within five standard errors."""
    W = P @ P.mT
    tests = torch.eye(M, dtype=torch.float64)[[0, -1]]
    close = lambda values, mean: bool(
        ((values.mean(0) - mean).abs() <= 5 * values.std(0) / math.sqrt(DRAWS) + 1e-9).all()
    )
    eye = torch.eye(M, dtype=torch.float64)
    every: dict[str, Callable[[], bool]] = {
        "a": lambda: torch.allclose(W @ W, M / R * W),
        "b": lambda: close(W, eye),
        "c": lambda: close(((eye - W) @ tests.T).square().sum(1), M / R - 1),
        "d": lambda: close((after.mT @ P)[..., 0].square().sum(1, keepdim=True), M / R),
        "e": lambda: torch.allclose(torch.einsum("bii->b", W), torch.full((DRAWS,), float(M), dtype=torch.float64)),
    }
    return "".join(letter for letter, holds in every.items() if holds())


def predictions(answer: Any) -> str:
    """For each of three laws the letters of the statements that hold."""
    laws = _laws()
    if not isinstance(answer, dict) or set(answer) != set(laws):
        return 'A dictionary is asked for, with letters for each of "fixed", "Gaussian" and "once".'
    why = {
        "fixed": "P^T P is right for every draw, and there is only one draw: what does W do to the last coordinate?",
        "Gaussian": "P^T P is right on average only, and P, P' and u are independent: which statements need every "
        "draw, which only means?",
        "once": "In a single round nothing is wrong with this law; compare P' with P.",
    }
    for law, bases in laws.items():
        truth, said = set(holding(*bases)), {one for one in "".join(answer[law]).lower() if one.isalpha()}
        listed = lambda letters: ", ".join(f"({letter})" for letter in sorted(letters))
        if said - truth:
            return f"For {law!r} {listed(said - truth)} does not hold. {why[law]}"
        if truth - said:
            return f"For {law!r} {listed(truth - said)} holds, too. {why[law]}"
    return ""


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "the price m/r - 1 must fall below 1.",
        least_rank,
        right=("int(46 / 2 + 1)",),
        wrong={"23.5": "whole number", "23": "equally bad", "12": "Too small", "40": "Too large"},
    ),
    2: Exercise(
        "derive",
        2,
        "expand the square; E W = I, and E W^2 stands in section 2.",
        best_shrinking,
        right=("lambda m, r: 1 / ((m + r + 1) / r)",),
        wrong={
            "lambda m, r: r / (m + r)": "a little less is better",
            "lambda m, r: r / m": "a little less is better",
            "lambda m, r: 1.0": "a little less is better",
            "lambda m, r: r / (m + 2 * r + 1)": "a little more is better",
            "lambda m, r: 0": "positive factor",
            "lambda m, r: math.nan": "positive factor",
        },
    ),
    3: Exercise(
        "compute",
        1,
        "which share is left after t rounds? Section 4.",
        rounds_until,
        right=("math.log(0.01, 0.95)", "90"),
        wrong={"20": "visited twice", "19.8": "visited twice", "45": "90%", "math.inf": "One finite number"},
    ),
    4: Exercise(
        "derive",
        3,
        "|W v|^2 is known from Fact 1. It has a part along v, whose law stands in section 6, and m - 1 other parts.",
        crosstalk,
        right=(
            "lambda m, r: (m / r) * (1 - (r + 2) / (m + 2)) / (m - 1)",
            "lambda m, r: (m - r) / (m - 1) * (m / r) / (m + 2)",
            "lambda m, r: (m / r - 1.0 * m * (r + 2) / (r * (m + 2))) / (m - 1)",
        ),
        wrong={
            "lambda m, r: r * (m - r) / (m * (m - 1) * (m + 2))": "for orthonormal bases",
            "lambda m, r: (m / r) * (m - r) / (m + 2)": "how many perpendicular directions",
            "lambda m, r: (m - r) / (r * (m + 2))": "m - 1 directions",
            "lambda m, r: (m / r - 1) / (m - 1)": "for its mean",
            "lambda m, r: 0": "Its square is asked for",
            "lambda m, r: m / r - 1": "too large",
            "lambda m, r: 1 / m": "too",
        },
        tells=(r"\(m - 1\) \* \(m \+ 2\)",),
    ),
    5: Exercise(
        "break",
        2,
        "go through the proofs of Facts 1 and 2 and of section 6, and mark what each line uses.",
        predictions,
        right=(
            '{"once": "ecba", "Gaussian": ["d", "b"], "fixed": ("a", "e")}',
            '{"once": "a, b, c, e", "Gaussian": "BD", "fixed": "a,e"}',
        ),
        wrong={
            '{"fixed": "ace", "Gaussian": "bd", "once": "abce"}': "For 'fixed' (c) does not hold",
            '{"fixed": "a", "Gaussian": "bd", "once": "abce"}': "For 'fixed' (e) holds",
            '{"fixed": "ae", "Gaussian": "b", "once": "abce"}': "For 'Gaussian' (d) holds",
            '{"fixed": "ae", "Gaussian": "bde", "once": "abce"}': "For 'Gaussian' (e) does not hold",
            '{"fixed": "ae", "Gaussian": "bd", "once": "abcde"}': "For 'once' (d) does not hold",
            '"ae"': "A dictionary is asked for",
        },
    ),
    6: Exercise(
        "explain",
        3,
        rubric={
            r"The first half of Assumption 1 holds, the second does not: $\mathbb{E} W$ is $\frac mr$ along the "
            r"chosen direction and $\frac mr \cdot \frac{r-1}{m-1} < 1$ perpendicular to it.": 1,
            r"The trace of $W$ is $m$ whatever the law: what one direction gains the others lose. That loss is a "
            "bias, which no number of rounds averages out.": 1,
            "A seed makes the same basis at all clients only if all know the direction. It must come from what all "
            "have seen before the round, such as the last step of the model. Or it must be sent: "
            "as many numbers as the model.": 1,
        },
        weak={
            "It is better, since it sees the gradient.": "Counts the gain along one direction and forgets that the "
            "trace is fixed; and the clients' gradients are not the average one.",
            "The columns are not orthogonal any more.": "They are: the others are drawn in the complement.",
            "Over many rounds it averages out.": "That is true of an error with mean zero; this one has a mean.",
        },
    ),
}
