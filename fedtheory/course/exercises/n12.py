"""Exercises of notebook 12, one proof."""

from collections.abc import Callable
from typing import Any

from fedtheory.course import first_of
from fedtheory.course.exercises import Exercise, plain
from fedtheory.course.exercises.symbolic import formula, same
from fedtheory.theory.ssf.round import Instance, Round, play
from fedtheory.theory.ssf.sharper import sharper_lemma2


def pull_alone(answer: Callable[..., Any]) -> str:
    """D where gradients are constant and exact, in sympy's symbols."""
    mean = lambda K: (K - 1) * (2 * K - 1) / 6
    slips = {
        "D is the mean over the K steps: that is the sum.": lambda K, eta, rho, g: rho * eta**2 * g * K * mean(K),
        "The points are y^0 to y^{K-1}: the last gradient is taken before the last step.": (
            lambda K, eta, rho, g: rho * eta**2 * g * mean(K + 1)
        ),
        "That is its size for many steps; asked is the exact mean.": lambda K, eta, rho, g: rho * eta**2 * g * K**2 / 3,
        "A client feels a share of its pull only: where is line 2.5?": lambda K, eta, rho, g: eta**2 * g * mean(K),
        "P P = P: the share enters once.": lambda K, eta, rho, g: rho**2 * eta**2 * g * mean(K),
        "That is the claim, which has room.": lambda K, eta, rho, g: 1.388 * rho * eta**2 * g * K**2,
    }
    points = [(4, 0.1, 0.25, 2.0), (7, 0.3, 1.0, 1.0), (20, 0.01, 0.5, 3.0)]
    return formula(answer, lambda K, eta, rho, g: rho * eta**2 * g * mean(K), points, slips)


def weighted(answer: Callable[..., Any]) -> str:
    """A and B of line 3.3 with a weight, in sympy's symbols."""
    import sympy

    eps, h = sympy.symbols("eps h", positive=True)
    found = plain(answer(eps, h))
    if not isinstance(found, tuple) or len(found) != 2:
        return "Two expressions are asked for: A, and B."
    A, B = found
    tail = (1 - h) / (2 * eps)
    return first_of(
        [
            (lambda: not same(A, sympy.Rational(1, 2)), "A is that of equal weights: epsilon does not stand in it."),
            (lambda: not same(A, 1 - eps / 2), "The second sum has a square of a as well, with h/2."),
            (
                lambda: not same(A, 1 - h / 2 - eps / 2),
                "The product stands in both sums: collect them, and it comes with 1 - h.",
            ),
            (lambda: not same(A, 1 - h / 2 - tail), "The weight is at the wrong square: epsilon belongs to a."),
            (lambda: not same(A, 1 - h / 2 - (1 - h) * eps), "-2 <a, b> was bounded, and -<a, b> stands there."),
            (
                lambda: same(A, 1 - h / 2 - (1 - h) * eps / 2),
                "A is wrong: at epsilon = 1 it must be one half.",
            ),
            (lambda: not same(B, tail), "A is right. In B the second sum is missing: a square of b, and <b, n>."),
            (lambda: not same(B, tail + h / 2), "A is right. In B the product of b and n is missing."),
            (lambda: same(B, tail + h), "A is right, B is not: at epsilon = 1 it must be (1 + h)/2."),
        ]
    )


WORLDS: dict[str, tuple[int, dict[str, Any]]] = {  # dimension of the subspace, and what is changed
    "kept": (20, {"reuse": True}),
    "off": (20, {}),  # c below
    "half": (5, {"L": 0.5}),
}
WHY = {
    ("kept", "2.4"): "one sample k times has k squared times the square",
    ("kept", "3.4"): "averaging over steps does not help against one sample",
    ("kept", "3.2"): "its mean is still zero",
    ("kept", "drift"): "the claim has a factor of two to spare, enough for four steps",
    ("kept", "descent"): "the claim has room",
    ("off", "1.1"): "at r = d all of every memory is refreshed, and c is the mean again after one round",
    ("off", "1.2"): "the corrections do not cancel",
    ("off", "2.9"): "the mean of the pulls is not G",
    ("off", "drift"): "it rests on 2.9, and c is far off",
    ("off", "descent"): "it rests on 1.2",
    ("half", "3.1"): "along one of the steps the curvature is above half of L",
    ("half", "2.2"): "no L stands there",
    ("half", "drift"): "bends are a small part of the drift",
}


def turned_red(answer: Any, opening: Callable[..., Instance], red: Callable[[Round], set[str]]) -> str:
    """The red lines of three rounds, played by the notebook's own functions."""
    if not isinstance(answer, dict) or set(answer) != set(WORLDS):
        return f"A dictionary is asked for, with the keys {', '.join(WORLDS)} and sets of lines."
    for name, (r, changes) in WORLDS.items():
        at = opening(r, **changes)
        found = red(play(opening(r, c=at.c + 2) if name == "off" else at))
        said = set(map(str, answer[name]))
        for number in sorted(found ^ said):
            why = WHY.get((name, number), "look at what it asks for")
            return f'"{name}": {number} {"goes red" if number in found else "stays green"}: {why}.'
    return ""


def worst_drift(answer: Any) -> str:
    """An admissible round whose drift is at least 0.46 of the claim."""
    if not isinstance(answer, Instance) or answer.x.shape != (1,) or answer.problem.shape != "quadratic":
        return "An instance is asked for, one client in one dimension, as tiny(...) makes it."
    if answer.K > 12:
        return "At most 12 local steps: all signs are enumerated."
    if answer.K * answer.L * answer.lr > 0.1 + 1e-12:
        return "The local steps are too long: K L eta_l is above 1/10."
    if answer.reuse:
        return "A sample that is kept is no fresh noise: the assumption is broken."
    if float(answer.problem.h.abs().max()) > answer.L:
        return "The curvature is above L: the assumption is broken."
    if float((answer.c - answer.ci.mean(0)).abs().max()) > 0:
        return "c is not the mean of the c_i: the assumption is broken."
    left, right = sharper_lemma2()(play(answer))
    if not float(right):
        return "Nothing drifts: there is neither a pull nor a noise. Let one of them act."
    ratio, quiet = float(left / right), answer.problem.noise is None
    if ratio >= 0.46:
        return ""
    return first_of(
        [
            (not quiet, f"{ratio:.3f}. The pull alone: its part of the claim has been split twice."),
            (
                float(answer.problem.h.max()) < 0,
                f"{ratio:.3f}. The curvature calls the client back, or lets it go: let it be driven on.",
            ),
            (answer.K > 10, f"{ratio:.3f}. With more local steps there is less between K - 1 and K."),
            (False, f"{ratio:.3f}. Is the step as long as it may be, and does anything but the noise act?"),
        ]
    )


def numbers_sent(answer: Callable[[float], Any]) -> str:
    """Numbers sent up, in parts of SCAFFOLD's, with two choices of steps."""
    if not callable(answer):
        return "A function is asked for, such as lambda rho: (..., ...)."
    at = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
    found = [plain(answer(rho)) for rho in at]
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in found):
        return "Two numbers are asked for: (i), and (ii)."
    same = lambda part, right: all(abs(pair[part] - right(rho)) <= 1e-6 * right(rho) for pair, rho in zip(found, at))
    large = lambda rho: max(1.0, 1 / (2 * rho))
    return first_of(
        [
            (lambda: not same(0, lambda rho: rho), "(i) That is a round's saving: how many rounds does it take?"),
            (lambda: not same(0, lambda rho: large(rho) / rho), "(i) Those are rounds; each sends a share of numbers."),
            (lambda: not same(0, lambda rho: 1 / (2 * rho)), "(i) Above one half the step is bounded by 1/4."),
            (lambda: not same(0, lambda rho: 1 / rho), "(i) At rho = 1/2 the step is still 1/4, as for SCAFFOLD."),
            (lambda: abs(found[-1][0] - 1) <= 1e-6, "(i) is not right: at rho = 1 it must be 1."),
            (lambda: same(0, large), "(i) is right at rho = 1. For small rho the step shrinks, and rounds are added."),
            (lambda: not same(1, large), "(ii) The step is another: 1/4 for every rho."),
            (lambda: not same(1, lambda rho: 1 / rho), "(ii) Those are rounds; each sends a share of numbers."),
            (lambda: not same(1, lambda rho: rho), "(ii) That is a round's saving: how many rounds does it take?"),
            (lambda: same(1, lambda rho: 1.0), "(i) is right, (ii) is not."),
        ]
    )


EXERCISES = {
    1: Exercise(
        "derive",
        2,
        "unroll the path with 2.1, square it with 2.5, and take the mean of k squared over k = 0, ..., K - 1",
        pull_alone,
        right=(
            "lambda K, eta, rho, g: eta**2 * rho * g * (2 * K**2 - 3 * K + 1) / 6",
            "lambda K, eta, rho, g: g * rho * (eta * K) ** 2 / 3 * (1 - 1 / K) * (1 - 1 / (2 * K))",
        ),
        wrong={
            "lambda K, eta, rho, g: rho * eta**2 * g * K * (K - 1) * (2 * K - 1) / 6": "that is the sum",
            "lambda K, eta, rho, g: rho * eta**2 * g * K * (2 * K + 1) / 6": "before the last step",
            "lambda K, eta, rho, g: rho * eta**2 * g * K**2 / 3": "for many steps",
            "lambda K, eta, rho, g: rho * eta**2 * g * sum(k**2 for k in range(K)) / K": "no loop, range",
            "lambda K, eta, rho, g: eta**2 * g * (K - 1) * (2 * K - 1) / 6": "where is line 2.5",
            "lambda K, eta, rho, g: rho**2 * eta**2 * g * (K - 1) * (2 * K - 1) / 6": "enters once",
            "lambda K, eta, rho, g: 1.388 * rho * eta**2 * g * K**2": "has room",
        },
        tells=(r"\(2 ?\*? ?K ?- ?1\) ?/ ?6",),
    ),
    2: Exercise(
        "derive",
        3,
        "collect the coefficient of each square and of each product over both sums before you bound anything",
        weighted,
        right=(
            "lambda eps, h: ((2 - h - eps + h * eps) / 2, (1 - h + 2 * h * eps) / (2 * eps))",
            "lambda e, h: [(1 - h / 2) - e * (1 - h) / 2, h / 2 + h / 2 + (1 - h) / e / 2]",
        ),
        wrong={
            "lambda eps, h: (0.5, (1 + h) / 2)": "equal weights",
            "lambda eps, h: (1 - eps / 2, 1 / (2 * eps))": "as well, with h/2",
            "lambda eps, h: (1 - h / 2 - eps / 2, 1 / (2 * eps) + h)": "comes with 1 - h",
            "lambda eps, h: (1 - h / 2 - (1 - h) / (2 * eps), (1 - h) * eps / 2 + h)": "wrong square",
            "lambda eps, h: (1 - h / 2 - (1 - h) * eps, (1 - h) / eps + h)": "-<a, b> stands there",
            "lambda eps, h: (1 - h / 2 - (1 - h) * eps / 2, (1 - h) / (2 * eps))": "second sum is missing",
            "lambda eps, h: (1 - h / 2 - (1 - h) * eps / 2, (1 - h) / (2 * eps) + h / 2)": "b and n is missing",
            "lambda eps, h: 1 - h / 2": "Two expressions",
        },
        tells=(r"\(1 ?- ?h\) ?\* ?eps",),
    ),
    3: Exercise(
        "break",
        3,
        "which lines add up noises, which use that the corrections cancel, and which has no factor to spare?",
        turned_red,
        right=(
            "{'half': ['3.1'], 'kept': ['3.4', '2.4'], 'off': ['descent', 'drift', '2.9', '1.2']}",
            "dict(kept=('2.4', '3.4'), off=('1.2', '2.9', 'drift', 'descent'), half=('3.1',))",
        ),
        wrong={
            "{'kept': {'2.4'}, 'off': {'1.2'}, 'half': {'3.1'}}": "does not help against one sample",
            "{'kept': {'2.4', '3.2', '3.4'}, 'off': {'1.2'}, 'half': {'3.1'}}": "still zero",
            "{'kept': {'2.4', '3.4', 'drift'}, 'off': {'1.2'}, 'half': {'3.1'}}": "to spare",
            "{'kept': {'2.4', '3.4'}, 'off': {'1.1', '1.2', '2.9', 'drift', 'descent'}, 'half': {'3.1'}}": (
                "the mean again after one round"
            ),
            "{'kept': {'2.4', '3.4'}, 'off': {'1.2'}, 'half': {'3.1'}}": "the mean of the pulls is not G",
            "{'kept': {'2.4', '3.4'}, 'off': {'1.2', '2.9', 'drift', 'descent'}, 'half': {'3.1', 'drift'}}": (
                "bends are a small part"
            ),
            "{'2.4', '3.4'}": "A dictionary",
        },
        open=True,
    ),
    4: Exercise(
        "design",
        3,
        "which part of the claim lost one splitting only? Let it act alone, and as long as it may",
        worst_drift,
        right=("tiny(-1.0, K=11, lr=1 / 110, u=3.0)", "tiny(-1.0, K=12, lr=1 / 120, u=0.1)"),
        wrong={
            "tiny(-1.0, K=12, lr=1 / 120, x=1.0)": "The pull alone",
            "tiny(-1.0, K=12, lr=1 / 120)": "Nothing drifts",
            "tiny(1.0, K=12, lr=1 / 120, u=1.0)": "driven on",
            "tiny(0.0, K=12, lr=1 / 120, u=1.0)": "driven on",
            "tiny(-1.0, K=8, lr=1 / 80, u=1.0)": "more local steps",
            "tiny(-1.0, K=12, lr=1 / 240, u=1.0)": "as long as it may be",
            "tiny(-1.0, K=12, lr=1 / 12, u=1.0)": "above 1/10",
            "tiny(-1.0, K=12, lr=1 / 120, u=1.0, reuse=True)": "no fresh noise",
            "tiny(-2.0, K=12, lr=1 / 120, u=1.0)": "above L",
            "tiny(-1.0, K=12, lr=1 / 120, u=1.0, c=1.0)": "not the mean",
            "12": "An instance",
        },
        tells=(r"tiny\(-",),
    ),
    5: Exercise(
        "derive",
        2,
        "rounds times numbers of a round, with the largest step put in; for (ii) bound q u by h squared over 100",
        numbers_sent,
        right=(
            "lambda rho: (0.25 / min(0.25, rho / 2), 1.0)",
            "lambda rho: [1 if rho >= 0.5 else 0.5 / rho, rho / rho]",
        ),
        wrong={
            "lambda rho: (rho, rho)": "a round's saving",
            "lambda rho: (max(1 / rho, 1 / (2 * rho**2)), 1 / rho)": "Those are rounds",
            "lambda rho: (1 / (2 * rho), 1)": "Above one half",
            "lambda rho: (1 / rho, 1)": "as for SCAFFOLD",
            "lambda rho: (max(1, 1 / (2 * rho)), max(1, 1 / (2 * rho)))": "The step is another",
            "lambda rho: (max(1, 1 / (2 * rho)), 1 / rho)": "(ii) Those are rounds",
            "lambda rho: (2.0, 1)": "at rho = 1 it must be 1",
            "lambda rho: (1, 1)": "is right at rho = 1",
            "lambda rho: 1": "Two numbers",
        },
        tells=(r"max\(1, 1 ?/",),
    ),
    6: Exercise(
        "explain",
        3,
        rubric={
            "The drift enters the rate with q in front, at most a hundredth by the choice of the local steps: its "
            "slack is a few hundredths of the theorem's.": 1,
            "Line 3.3 loses most: equal weights give half of the descent away for a product with b, which is small.": 1,
            "The factor d/r of a round is no slack: a random subspace sees a share r/d of the gradient, and 2.5 is "
            "an equality.": 1,
        },
        weak={
            "The rate gets four times better.": "A factor in a lemma is one in the rate where the lemma stands alone.",
            "The drift lemma is of no use.": "It decides how long the local steps may be.",
            "The proof loses a factor of three, so the method is three times better than the theorem.": (
                "Slack on one run is no slack in the worst case: exercise 4 comes within about two of the claim."
            ),
            "A better proof would remove 1/rho.": "Which line would lose it? 2.5 is an equality.",
        },
    ),
}
