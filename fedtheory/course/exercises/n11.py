"""Exercises of notebook 11, do it yourself."""

import functools
import math

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.course import first_of
from fedtheory.course.exercises import Exercise
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run

SHARES = (0.01, 0.053, 0.2, 0.5, 0.9)


def radius(beta: float, s: float) -> float:
    """The larger root of z^2 - (1 + beta - s) z + beta, in absolute value."""
    half, product = (1 + beta - s) / 2, beta
    inside = half * half - product
    return math.sqrt(product) if inside < 0 else abs(half) + math.sqrt(inside)


@functools.cache
def _least_radius(s: float) -> float:
    return min(radius(step / 2000, s) for step in range(2000))


def best_momentum(answer) -> str:
    """A function of s."""
    for s in SHARES:
        given = float(answer(s))
        if not 0 <= given < 1:
            return f"A momentum from 0 to 1 is asked for; at s = {s} it is {given:.3g}."
        if abs(given - ((1 - s**0.5) / (1 + s**0.5)) ** 2) < 1e-9:
            return (
                "That is the textbook's, for the best rate and momentum together; here the rate is given, and so is s."
            )
        best = _least_radius(s)
        if radius(given, s) > best + 2e-3:
            inside = (1 + given - s) ** 2 - 4 * given
            kind = "complex: too much momentum" if inside < 0 else "real: too little momentum"
            return f"At s = {s} the root is {radius(given, s):.3f}, {best:.3f} is possible; the two are {kind}."
    return ""


def nesterov(answer) -> str:
    """A server's line."""
    g = Key(0).fold("exercise 11.2").generator()
    x, v, dy = (torch.randn(*shape, generator=g, dtype=torch.float64) for shape in ((3,), (3,), (4, 3)))
    beta, mean = 0.7, dy.mean(0)
    new_x, new_v = answer(x, v, dy, beta)
    if tuple(new_x.shape) != (3,) or tuple(new_v.shape) != (3,):
        return f"The new model has shape {tuple(new_x.shape)}: average over the clients first."
    same = torch.allclose
    plain_x, _ = answer(x, v, dy, 0.0)
    return first_of(
        [
            (not same(plain_x, x + dy.sum(0)), "At momentum 0 FedAvg takes the mean of the changes, not their sum."),
            (same(plain_x, x + mean), "At momentum 0 it is not FedAvg."),
            (same(new_v, beta * v + mean), "The velocity is not beta v plus the mean change."),
            (not same(new_x, x + new_v), "That is the heavy ball: it moves by v and does not look ahead."),
            (same(new_x, x + beta * new_v + mean), "The model does not move by beta times the new v plus the change."),
        ]
    )


RED = {"A": "resumes", "B": "counts", "C": "none"}
BECAUSE = {
    ("A", "degenerates"): "A: at momentum 0 the velocity is multiplied by 0, wherever it is kept.",
    ("A", "counts"): "A: what the method object keeps does not cross.",
    ("A", "none"): "A: a velocity that no checkpoint holds is that of another round after it.",
    ("B", "degenerates"): "B: what crosses and is not read changes no bit of the model.",
    ("B", "resumes"): "B: the state is whole; what is sent does not change it.",
    ("B", "none"): "B: the whole server has two vectors.",
    ("C", "degenerates"): "C: put beta = 0 into beta v + (1 - beta) Delta.",
    ("C", "resumes"): "C: its velocity is in the state.",
    ("C", "counts"): "C: nothing more crosses.",
}


def goes_red(answer) -> str:
    """Which test notices which change."""
    if (
        not isinstance(answer, dict)
        or set(answer) != set(RED)
        or not set(answer.values()) <= {*RED.values(), "degenerates"}
    ):
        return 'A dict is asked for: "A", "B", "C", each with "degenerates", "resumes", "counts" or "none".'
    return next((BECAUSE[name, answer[name]] for name, right in RED.items() if answer[name] != right), "")


@functools.cache
def _fedavg_at_rest() -> tuple[Quadratic, torch.Tensor]:
    """Two clients, and where FedAvg rests on them."""
    H = torch.tensor([[[1.0, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    two = Quadratic(H, torch.tensor([[-1.0, -1.0], [1.0, 2.0]], dtype=torch.float64))
    return two, run(FedAvg(0.02, 5), two, 600, every=600).x


def control(answer) -> str:
    """An algorithm that comes to rest near FedAvg's point, and not at it."""
    if not isinstance(answer, Algorithm):
        return f"An algorithm is asked for, not {checks.show(answer)}."
    two, fedavg = _fedavg_at_rest()
    history = run(answer, two, 600, every=600)
    if history.diverged is not None:
        return "It diverges: any check refutes that, so it shows nothing of this one."
    later = run(answer, two, 700, every=700).x
    solution = two.constants.x_star
    assert solution is not None
    off, whole = float((history.x - fedavg).norm()), float((solution - fedavg).norm())
    return first_of(
        [
            (float((later - history.x).norm()) < 1e-9, "It does not rest: 100 rounds later it is elsewhere."),
            (off > 1e-6, "The check holds for it: it rests where FedAvg rests. A control must be refuted."),
            (
                off <= whole / 10,
                f"It is refuted, but far away: {off / whole:.2g} of the distance to x*; a weak check sees that.",
            ),
        ]
    )


EXERCISES = {
    1: Exercise(
        "derive",
        3,
        "where do the two roots meet?",
        best_momentum,
        right=("lambda s: 1 + s - 2 * s**0.5", "lambda s: (1 - __import__('math').sqrt(s)) ** 2"),
        wrong={
            "lambda s: 1 - s": "too much momentum",
            "lambda s: (1 - s) ** 2": "too much momentum",
            "lambda s: 0.0": "too little momentum",
            "lambda s: ((1 - s**0.5) / (1 + s**0.5)) ** 2": "textbook",
            "lambda s: 1 / s": "from 0 to 1",
        },
        tells=(r"1 - \\sqrt s", r"s\*\*0\.5"),
    ),
    2: Exercise(
        "implement",
        3,
        "the velocity first, then the model with the new one.",
        nesterov,
        right=("lambda x, v, dy, b: (x + b * (b * v + dy.mean(0)) + dy.mean(0), b * v + dy.mean(0))",),
        wrong={
            "lambda x, v, dy, b: (x + b * v + dy.mean(0), b * v + dy.mean(0))": "heavy ball",
            "lambda x, v, dy, b: (x + b * (b * v + dy.sum(0)) + dy.sum(0), b * v + dy.sum(0))": "not their sum",
            "lambda x, v, dy, b: (x + b * v + dy, b * v + dy)": "average over the clients",
            "lambda x, v, dy, b: (x + b * (b * v + dy.mean(0)), b * v + dy.mean(0))": "not FedAvg",
            "lambda x, v, dy, b: (x + b * v + dy.mean(0), v)": "The velocity is not",
        },
    ),
    3: Exercise(
        "break",
        3,
        "for each change: what of it is left at momentum 0, what of it is in the state, what of it crosses?",
        goes_red,
        right=("dict(C='none', B='counts', A='resumes')",),
        wrong={
            "{'A': 'degenerates', 'B': 'counts', 'C': 'none'}": "multiplied by 0",
            "{'A': 'resumes', 'B': 'none', 'C': 'none'}": "two vectors",
            "{'A': 'resumes', 'B': 'counts', 'C': 'degenerates'}": "put beta = 0",
            "('resumes', 'counts', 'none')": "A dict is asked for",
        },
        tells=("running mean[^.]*none",),
    ),
    4: Exercise(
        "design",
        4,
        "what does the resting point of FedAvg depend on, beside the momentum that it has not?",
        control,
        right=("FedAvg(0.0205, 5)", "FedAvg(lr=0.0199, local_steps=5)"),
        wrong={
            "FedAvg(0.02, 5)": "rests where FedAvg rests",
            "replace(heavy, momentum=0.3)": "rests where FedAvg rests",
            "FedAvg(0.02, 10)": "far away",
            "FedAvg(3.0, 5)": "diverges",
            "0.0195": "An algorithm is asked for",
        },
        open=True,
    ),
    5: Exercise(
        "explain",
        3,
        rubric={
            "The resting point moves: the condition there is again a mean change of zero, but it is another change.": 1,
            "The drift within the round is looked at, from what the client yields, on clients that differ.": 1,
            "A law with both ends: local momentum 0 is FedAvg, bit for bit, and so is one local step.": 1,
        },
        weak={
            "It stays, since momentum vanishes at rest.": "The server rests; the clients step in every round.",
            "It is faster, so it is better.": "Speed and resting point are taken for one thing.",
            "I would compare the final accuracy.": "One number of a whole run does not tell drift from speed.",
        },
    ),
}
