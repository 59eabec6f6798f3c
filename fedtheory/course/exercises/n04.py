"""Exercises of notebook 04, the theory ledger."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from fedtheory.course import first_of
from fedtheory.course.exercises import Exercise, plain
from fedtheory.course.exercises.symbolic import same
from fedtheory.theory.search import ROUNDING
from fedtheory.theory.ssf.attack import attack
from fedtheory.theory.ssf.lemma2 import DRIFT, eq10, eq11_12, eq14_15, eq16, lemma2
from fedtheory.theory.ssf.round import Round, kept, moments, play, steps
from fedtheory.theory.ssf.theorem1 import phi0


@functools.cache
def _kept_ratio(K: int) -> float:
    left, right = lemma2(24, 48)(play(kept(K, -1.0, lr=1 / (4 * K))))
    return float(left / right)


def kept_from(answer: Any) -> str:
    """The least K at which Lemma 2 with four times its constants fails where a sample is kept."""
    return first_of(
        [
            (isinstance(answer, int), "A number of local steps is whole."),
            (lambda: _kept_ratio(answer) > 1, "With so few local steps the lemma still holds here."),
            (lambda: _kept_ratio(answer - 1) <= 1, "One local step less breaks the lemma, too."),
        ]
    )


def _largest_mass(L: float, rho: float) -> float:
    """The largest M over admissible steps: s = K^3 L^2 eta_l^2 on a grid, L eta~ as large as it may be."""
    largest = 0.0
    for part in range(1, 401):
        s = part / 400 * rho / 576
        largest = max(largest, 72 * min(1 / 4, (rho**3 / (3456 * s)) ** 0.5, rho / 2) * s / (rho * L))
    return largest


def mass(factor: Callable[..., Any]) -> str:
    """The factor in front of C_0: units, the largest M of admissible steps, and the counterexample in rationals."""
    for rho in (0.01, 0.1, 0.5, 1.0):
        if abs(factor(10.0, rho) * 10 / factor(1.0, rho) - 1) > 1e-6:
            return "Units: with L ten times as large M is a tenth, and this factor is not."
        needed, given = _largest_mass(1.0, rho), factor(1.0, rho)
        if given < needed * (1 - 1e-6):
            return f"Too small: at rho = {rho} there are admissible steps whose M is {needed / given:.3g} times that."
        if rho <= 0.5 and given > 2 * needed:
            return f"True, but at rho = {rho} it is {given / needed:.3g} times as large as needed."
    return "" if phi0(1, lambda M, L, rho: factor(L, rho))("quick").holds else "The counterexample breaks it."


@functools.cache
def _worst_ratio() -> float:
    """The largest left/right of Lemma 2 that the search finds. With f times the constants each ratio is 1/f of it."""
    return attack(lemma2(), "quick", "lemma2", DRIFT).ratio


def control(f: float) -> str:
    """A factor whose constants the search leaves standing, and 9/10 of which it breaks."""
    stands = lambda factor: _worst_ratio() <= factor * (1 + ROUNDING)
    return first_of(
        [
            (lambda: stands(f), "Too small: with these constants the search breaks the lemma."),
            (lambda: not stands(0.9 * f), "With 9/10 of them the lemma still stands: not yet."),
        ]
    )


def _eq18(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """(18) alone, before m <= K is used."""
    lr, m, e = q.at.lr, steps(q), moments(q)
    S, G = e.cumsum(-1)[:, :-1], q.corrected[:, None]
    right = 4 * lr**2 * q.at.L**2 * m * S + 4 * lr**2 * m**2 * G + 2 * lr**2 * m * q.at.sigma2
    at = int((e[:, 1:] / right).argmax())
    return e[:, 1:].flatten()[at], right.flatten()[at]


def _eq20(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """The last inequality of (20) alone: e_{k+1} <= 3 C."""
    lr, K = q.at.lr, q.at.K
    return moments(q)[:, 1:].amax(), 12 * lr**2 * K**2 * q.corrected.max() + 6 * lr**2 * K * q.at.sigma2


LINES: dict[str, tuple[Callable[[Round], Any], str]] = {
    "10": (eq10, "(10) is (a + b)^2 <= 2 a^2 + 2 b^2: it asks nothing of the noise"),
    "12": (eq11_12, "(11) and (12) are Cauchy-Schwarz and smoothness: they ask nothing of the noise"),
    "15": (lambda q: eq14_15(q)[0], "the products of a noise with itself do not vanish"),
    "16": (eq16, "m equal noises have m^2 times the square of one"),
    "18": (_eq18, "the recursion has m sigma^2 where m^2 sigma^2 is due"),
    "20": (_eq20, "its factor of 3 is room enough for few steps, for many it is not"),
    "8": (lemma2(), "the slack of section 6 is room enough for few steps, for many it is not"),
}


@functools.cache
def _red(K: int) -> frozenset[str]:
    """The lines of Lemma 2's proof that fail on one round with a kept sample."""
    q = play(kept(K, -1.0, lr=1 / (2 * K)))
    ratio = lambda line: max(float(a / b) for a, b in zip(*(part.flatten() for part in line(q))))
    return frozenset(name for name, (line, _) in LINES.items() if ratio(line) > 1 + 1e-9)


def broken(answer: Any) -> str:
    """The red lines at K = 2 and at K = 40."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return "Two sets are asked for: at K = 2 and at K = 40."
    for K, named in zip((2, 40), answer):
        said = set(map(str, named))
        if not said <= set(LINES):
            return f"Names of lines are asked for, of {', '.join(LINES)}."
        for name, (_, why) in LINES.items():
            if (name in said) != (name in _red(K)):
                return f"K = {K}: ({name}) {'goes red' if name in _red(K) else 'stays green'}: {why}."
    return ""


def constants(answer: Callable[..., Any]) -> str:
    """The constants A, B of Lemma 2's proof with weights a, b in the two splits."""
    import sympy

    a, b = sympy.symbols("a b", positive=True)
    found = plain(answer(a, b))
    if not isinstance(found, tuple) or len(found) != 2:
        return "Two expressions are asked for: A, and B."
    A, B = (sympy.sympify(one) for one in found)
    grown = sympy.exp((1 + a) * (1 + b) / 4)
    drift, noise = (1 + a) * (1 + 1 / b), 1 + 1 / a
    return first_of(
        [
            (bool(A.free_symbols and B.free_symbols), "Functions of a and b are asked for, not the printed numbers."),
            (
                lambda: not same(A, drift),
                "Nothing of e_k has come back: where is the growth (1 + alpha)^K?",
            ),
            (
                lambda: not same(A, drift * sympy.E),
                "alpha depends on a and b, so that the growth is e at a = b = 1 only.",
            ),
            (
                lambda: not same(A, (1 + a) * (1 + b) * grown),
                "b and 1/b are swapped: G is the second part of the split.",
            ),
            (
                lambda: not same(A, (1 + 1 / b) * grown),
                "The first split multiplies the drift part, and so G, by 1 + a.",
            ),
            (lambda: same(A, drift * grown), "A is wrong: at a = b = 1 it must be 4 e."),
            (lambda: same(B, noise * grown), "A is right, B is not: which factor did the first split give the noise?"),
        ]
    )


EXERCISES = {
    1: Exercise(
        "break",
        1,
        "try kept_ratio for a few values of K.",
        kept_from,
        right=("min(K for K in range(2, 90) if kept_ratio(K) > 1)",),
        wrong={"15": "still holds", "80": "One local step less", "61.5": "is whole", "2": "still holds"},
    ),
    2: Exercise(
        "derive",
        3,
        "condition (2) bounds K^3 eta_l^2, and condition (4) bounds eta~.",
        mass,
        right=(
            "lambda L, rho: 0.0625 * rho / L",
            "lambda L, rho: rho / (19 * L)",
            "lambda L, rho: rho / (8 * 6**0.5 * L)",
        ),
        tells=(r"rho\s*/\s*\(?\s*16", r"1\s*/\s*16\b"),
        wrong={
            "lambda L, rho: rho / (20 * L)": "Too small",
            "lambda L, rho: rho / 16": "Units",
            "lambda L, rho: 1 / (32 * L)": "as large as needed",
            "lambda L, rho: 1": "Units",
            "lambda L, rho: 1 / L": "as large as needed",
        },
    ),
    3: Exercise(
        "design",
        2,
        "start from the worst ratio at K = 8, which is not the printed 0.120.",
        control,
        right=("0.102",),
        open=True,
        wrong={"0.2": "still stands", "0.05": "breaks the lemma", "1.0": "still stands"},
    ),
    4: Exercise(
        "break",
        3,
        "which lines take the expectation of a product of two noises, and how much room does each later line have?",
        broken,
        right=(
            "[['15', '16', '18'], ['8', '15', '16', '18', '20']]",
            "({15, 16, 18}, {'15', '16', '18', '20', '8'})",
        ),
        wrong={
            "({'15'}, {'15'})": "m^2 times the square",
            "({'15', '16'}, {'15', '16', '18', '20', '8'})": "where m^2 sigma^2 is due",
            "({'15', '16', '18', '20', '8'}, {'15', '16', '18', '20', '8'})": "room enough for few steps",
            "({'10', '15', '16', '18'}, {'15', '16', '18', '20', '8'})": "asks nothing of the noise",
            "({'15', '16', '18'}, {'15', '16', '18'})": "K = 40: (20) goes red",
            "{'15', '16', '18'}": "Two sets",
        },
        open=True,
    ),
    5: Exercise(
        "derive",
        3,
        "write alpha and C again with 1 + a, 1 + 1/a, 1 + b, 1 + 1/b in the places of the four 2s",
        constants,
        right=(
            "lambda a, b: [f * sympy.exp(sympy.Rational(1, 4) * (1 + a + b + a * b)) for f in "
            "((1 + a) * (b + 1) / b, (a + 1) / a)]",
        ),
        wrong={
            "lambda a, b: (12, 6)": "not the printed numbers",
            "lambda a, b: ((1 + a) * (1 + 1 / b), 1 + 1 / a)": "where is the growth",
            "lambda a, b: ((1 + a) * (1 + 1 / b) * sympy.E, (1 + 1 / a) * sympy.E)": "e at a = b = 1 only",
            "lambda a, b: ((1 + a) * (1 + b) * sympy.exp((1 + a) * (1 + b) / 4), 1 + 1 / a)": "swapped",
            "lambda a, b: ((1 + 1 / b) * sympy.exp((1 + a) * (1 + b) / 4), 1 + a)": "multiplies the drift part",
            "lambda a, b: ((1 + a) * (1 + 1 / b) * sympy.exp((1 + a) * (1 + b) / 4), a)": "B is not",
        },
    ),
    6: Exercise(
        "explain",
        4,
        rubric={
            "A failed search speaks of the instances that it tried: sizes, families, steps; a proof speaks of all that "
            "the assumptions admit.": 1,
            "So its worst ratio bounds the true one from below only. In section 6 it is 0.095 at K = 8, and larger K "
            "reach 0.12.": 1,
            "A control measures how much the search can see: one that cannot break the nearest false statement says "
            "nothing by failing on the true one.": 1,
            "It is not symmetric: one instance, evaluated exactly, refutes for ever; no number of failures proves.": 1,
        },
        weak={
            "A proof is certain, a search is probable.": (
                "No probability is in it: nobody drew the instances from a distribution of theorems."
            ),
            "With enough random starts the search is as good as a proof.": (
                "More starts do not widen the family: K stays at 8, the dimension stays small."
            ),
            "The control proves that the check is right.": "It shows that the check can find one error, of one kind.",
            "The papers' proofs are proofs, so the search is not needed.": (
                "Section 9 counts 90 false claims in papers that print their proofs."
            ),
        },
    ),
}
