"""Exercises of notebook 10, deep networks."""

from typing import Any

from fedtheory.core.layout import Layer, Layout
from fedtheory.course import reveals
from fedtheory.course.exercises import Exercise
from fedtheory.maps.subspace import Coordinate

INPUTS, OUTPUTS, KERNEL, RANK = 64, 128, 5, 2  # the convolution of exercises 1 and 2


def trained(answer: float) -> str:
    """Numbers that train in the convolution, its width compressed."""
    kernels = INPUTS * OUTPUTS
    layout = Layout((Layer("conv", KERNEL, KERNEL * kernels),))
    slips = {
        "Only the width is compressed, not the height.": RANK**2 * kernels,
        "That is the whole layer.": KERNEL**2 * kernels,
        "That is what does not train.": (KERNEL - RANK) * KERNEL * kernels,
        "A column of a kernel has 5 numbers.": RANK * kernels,
        "That is one kernel: how many are there?": RANK * KERNEL,
    }
    return reveals(answer, Coordinate(RANK).low(layout).size, slips)


def same_rank(answer: float) -> str:
    """The rank that trains as many numbers where a filter is a column."""
    rows = INPUTS * KERNEL**2
    slips = {
        "That would be 2 of 1,600 rows: far fewer numbers.": RANK,
        "Half: see how many columns there are.": rows * RANK / KERNEL / 2,
        "That is the number of trained numbers; r counts rows of the low matrix.": RANK * KERNEL * INPUTS * OUTPUTS,
        "That is the whole layer.": rows,
        "That is one kernel's share: a filter has 64 of them.": RANK * KERNEL,
    }
    return reveals(answer, rows * RANK / KERNEL, slips)


def carried_over(factor: Any) -> str:
    """By what a dual is multiplied so that line 6, which divides it by eta tau, makes the same correction."""
    for lr0, tau0, lr, tau in ((0.1, 5, 0.02, 10), (0.1, 5, 0.1, 5), (0.3, 4, 0.2, 4), (0.3, 4, 0.3, 7)):
        kept = factor(lr0, tau0, lr, tau) / (lr * tau) * (lr0 * tau0)
        if abs(kept - 1) > 1e-6:
            return f"From ({lr0}, {tau0}) to ({lr}, {tau}) the correction becomes {kept:.3g} times what it was."
    return ""


def what_fails(answer: Any) -> str:
    """Which methods leave the solution when the rate changes: by a factor below one, above one, and with K = 1."""
    if not isinstance(answer, (set, tuple)):
        return "A set of names is asked for."
    found, names = set(answer), {"SCAFFOLD", "duals carried over", "duals left", "FedAvg"}
    if unknown := found - names:
        return f"Take the names that the exercise lists: {', '.join(sorted(map(str, unknown)))} is none of them."
    if "FedAvg" in found:
        return "FedAvg never was at the solution; with a larger rate it rests farther away, which is no leaving."
    if "SCAFFOLD" in found:
        return "SCAFFOLD keeps gradients, which know no rate."
    if "duals carried over" in found:
        return "A dual that is multiplied by the ratio of the rates is divided by it again in line 6."
    if not found:
        return "One of them divides what it keeps by this round's rate: too little is wrong, too."
    return ""


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "which numbers of a kernel train, and how many kernels are there?",
        trained,
        right=("64 * 128 * 10", "81920.0"),
        wrong={"2 * 2 * 64 * 128": "not the height", "25 * 64 * 128": "whole layer", "3 * 5 * 64 * 128": "not train"},
    ),
    2: Exercise(
        "compute",
        1,
        "r times how many columns?",
        same_rank,
        right=("1600 * 2 // 5", "640.0"),
        wrong={"2": "2 of 1,600", "10": "one kernel", "81920": "number of trained", "1600": "whole layer"},
    ),
    3: Exercise(
        "derive",
        2,
        "line 6 divides by eta tau",
        carried_over,
        right=("lambda lr0, tau0, lr, tau: (lr / lr0) * (tau / tau0)",),
        wrong={
            "lambda lr0, tau0, lr, tau: 0.4": "times what it was",
            "lambda lr0, tau0, lr, tau: lr / lr0": "times what it was",
            "lambda lr0, tau0, lr, tau: lr0 * tau0 / (lr * tau)": "times what it was",
            "lambda lr0, tau0, lr, tau: 1": "times what it was",
        },
    ),
    4: Exercise(
        "break",
        2,
        "what does each keep between rounds, in which unit, and who divides by the rate?",
        what_fails,
        right=("['duals left']", "('duals left',)"),
        wrong={
            "{'SCAFFOLD', 'duals left'}": "keeps gradients",
            "{'duals carried over', 'duals left'}": "divided by it again",
            "{'FedAvg', 'duals left'}": "never was at the solution",
            "set()": "too little is wrong",
            "'duals left'": "A set",
        },
    ),
    5: Exercise(
        "explain",
        3,
        rubric={
            "It is another network, other data and far fewer rounds, so levels and orders need not carry over": 1,
            "Distances depend on the learning rate, which the paper does not print; the order came with equal "
            "compute": 1,
            "One of the three differences is open: an interval on both sides of zero says neither": 1,
        },
        weak={
            "SSF's Table 5 is wrong, since FedAvg wins here.": (
                "A smaller run contradicts nothing: only the paper's data, network and length could."
            ),
            "Our runs are too small to say anything.": (
                "One of the three orders is confirmed, and that the rate decides the order is a finding, too."
            ),
        },
    ),
}
