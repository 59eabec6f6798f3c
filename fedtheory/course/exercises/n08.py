"""Exercises of notebook 08, the comparison of all methods."""

import math
from typing import Any

from scipy import stats

from fedtheory.course import committed, reveals
from fedtheory.course.exercises import Exercise


def places(answer: Any) -> str:
    """First and last place of the second of four intervals."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return "A pair is asked for, (first, last)."
    spans = [(88, 91), (90, 94), (93, 96), (95, 97)]
    low, high = spans[1]
    first = 1 + sum(other[0] > high for other in spans)
    last = len(spans) - sum(other[1] < low for other in spans)
    words = {
        (first, last): "",
        (first - 1, last): "One method is surely better.",
        (first, last - 1): "Another may be behind, or before: its interval overlaps.",
        (3, 3): "That is the place of the means, without intervals.",
        (last, first): "First the best place, then the last one.",
        (1, 3): "Counted from the wrong end.",
    }
    return words.get(tuple(answer), "Count who is surely better, and who is surely worse.")


def sent(answer: float) -> str:
    """Bytes that SignSGD sends for the digits' perceptron."""
    d = 4810
    slips = {
        "You forgot the scale.": 4 * math.ceil(d / 32),
        "Words are whole: 32 bits each, the last one in part.": d / 8 + 4,
        "You counted bits.": d + 32,
        "That is what FedAvg sends in float32.": 4 * d,
    }
    return reveals(answer, 4 * math.ceil(d / 32) + 4, slips)


def compared(rule: Any) -> str:
    """What a rule for domination reveals, on four rows and on the committed runs on the digits."""
    row = lambda name, low, high, up: {"method": name, "quality": (low + high) / 2, "low": low, "high": high, "up": up}
    few = [row("cheap", 80, 82, 1), row("overlaps", 79, 81, 2), row("tie", 70, 75, 1), row("dear", 90, 95, 9)]
    found = set(rule(few, "up"))
    if "dear" in found:
        return "A row that is surely the best was thrown out, for its cost."
    if "overlaps" in found:
        return "Rows whose intervals overlap are in no order: means alone do not decide."
    if "tie" not in found:
        return "A row that costs as much as a surely better one is beaten, too: at *no more* cost."
    fine = {one["method"]: one for one in committed("frontier/digits")["table"] if not one["diverged"]}
    for axis in ("up", "down"):
        wrong = set(rule(list(fine.values()), axis)) ^ {name for name, one in fine.items() if not one[f"front {axis}"]}
        if wrong:
            return f"On the digits ({axis}) it differs from the package for {len(wrong)} methods."
    return ""


def seeds_needed(answer: float) -> str:
    """Least number of seeds for a 95% interval of half a point to either side, at a spread of one."""
    half = lambda n: float(stats.t.ppf(0.975, n - 1)) / math.sqrt(n)
    if not isinstance(answer, int) or answer < 2:
        return "A whole number of seeds, two at least, is asked for."
    n = int(answer)
    right = next(n for n in range(2, 100) if half(n) <= 0.5)
    if n == 16:
        return f"That is 1.96 instead of Student's factor: with 16 seeds it is {half(n):.3g} to either side."
    if n < right:
        return f"Too few: with {n} the interval is {half(n):.3g} to either side."
    return "" if n == right else f"Enough, but {n - 1} are enough, too: {half(n - 1):.3g} to either side."


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "which intervals are apart from [90, 94], and on which side?",
        places,
        right=("[2, 4]", "(2.0, 4.0)"),
        wrong={
            "(1, 4)": "surely better",
            "(2, 3)": "overlaps",
            "(3, 3)": "means",
            "(4, 2)": "First the best",
            "(1, 3)": "wrong end",
        },
    ),
    2: Exercise(
        "compute",
        1,
        "how many words of 4 bytes hold 4,810 bits?",
        sent,
        right=("4 * (4810 // 32 + 1) + 4", "608.0"),
        wrong={"604": "the scale", "4810 / 8 + 4": "Words are whole", "4842": "bits", "19240": "FedAvg"},
    ),
    3: Exercise(
        "implement",
        2,
        "b beats a where b costs at most as much and the low end of b is above the high end of a",
        compared,
        right=(
            "lambda rows, axis: [a['method'] for a in rows for b in rows "
            "if b[axis] <= a[axis] and a['high'] < b['low']]",
        ),
        tells=(r"b\[axis\] <= a\[axis\]",),
        wrong={
            "lambda rows, axis: {a['method'] for a in rows} - {'SCAFFOLD'}": "surely the best",
            "lambda rows, axis: {a['method'] for a in rows if any(b[axis] <= a[axis] and "
            "b['quality'] > a['quality'] for b in rows)}": "means alone",
            "lambda rows, axis: {a['method'] for a in rows if any(b['low'] > a['high'] for b in rows)}": (
                "means alone"
            ),
            "lambda rows, axis: {a['method'] for a in rows if any(b[axis] < a[axis] and "
            "b['low'] > a['high'] for b in rows)}": "no more",
            "lambda rows, axis: {'tie'} & {a['method'] for a in rows}": "On the digits",
        },
    ),
    4: Exercise(
        "design",
        2,
        "t s / sqrt(n), where t is the 97.5% point of Student's distribution with n - 1 degrees of freedom",
        seeds_needed,
        right=("2 * 9", "18.0"),
        wrong={"16": "Student's factor", "5": "Too few", "100": "Enough, but", "17.5": "whole number"},
        open=True,
    ),
    5: Exercise(
        "explain",
        3,
        rubric={
            "Each learning rate is judged by one run on one seed, and other hyperparameters are not tuned at all": 1,
            "Many intervals overlap, and hundreds of pairs are compared without a correction for their number": 1,
            "Equal rounds and steps are not equal bytes or arithmetic, and other tasks may order methods otherwise": 1,
        },
        weak={
            "Five seeds are too few.": "More seeds shrink intervals. They do not tune what was not tuned.",
            "FedDyn is first on all six tasks, so it is the best method.": (
                "By the means it is first on Fashion-MNIST only; on the regression three methods are surely ahead."
            ),
        },
    ),
}
