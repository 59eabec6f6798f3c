"""Exercises of notebook 14, an experiment of one's own."""

from typing import Any

import torch

from fedtheory.core.key import Key
from fedtheory.course import reveals
from fedtheory.course.exercises import Exercise, plain
from fedtheory.problems.quadratic import Quadratic

SIZES, BATCH, EPOCHS = (40, 96, 10), 16, 2
STEPS = ((1, 1), (1, 3), (5, 2), (7, 1))


def local_steps(answer: Any) -> str:
    """Three numbers."""
    if not isinstance(answer, tuple) or len(answer) != 3:
        return "Three numbers are asked for, such as (1, 2, 3)."
    right = [EPOCHS * -(-size // BATCH) for size in SIZES]
    if list(answer) == right:
        return ""
    for word, slip in {
        "That is one pass; there are two.": [-(-size // BATCH) for size in SIZES],
        "The last batch of a pass counts, however small it is.": [EPOCHS * (size // BATCH) for size in SIZES],
        "Each pass is cut by itself: its last batch is not filled from the next one.": [
            -(-EPOCHS * size // BATCH) for size in SIZES
        ],
    }.items():
        if list(answer) == slip:
            return word
    at = next(i for i, (given, wanted) in enumerate(zip(answer, right)) if given != wanted)
    return f"Look at the client with {SIZES[at]} samples."


def rest(answer: Any) -> str:
    """A function of K1 and K2."""
    if not callable(answer):
        return "A function is asked for, such as lambda K1, K2: ..."
    for K1, K2 in STEPS:
        right = K2 / (K1 + K2)
        slips = {
            "That is where the mean loss is least; FedAvg rests elsewhere.": 0.5,
            "That client is at 0: the other one has its minimum at 1.": K1 / (K1 + K2),
            "Only the ratio of the steps to their sum counts.": K2 / K1,
        }
        found: Any = answer(K1, K2)
        if word := reveals(plain(found), right, slips if K1 != K2 else None):
            return f"At K1 = {K1}, K2 = {K2}: {word}"
    return ""


def worst(answer: Any) -> str:
    """A metric, tried on quadratics."""
    if not callable(answer):
        return "A function of (problem, x) is asked for."
    problem = Quadratic.random(n=5, d=3, key=Key(1))
    x = torch.ones(3, dtype=torch.float64)
    losses = problem.losses(x.expand(5, -1), problem.full(problem.clients))
    found: Any = answer(problem, x)
    if isinstance(found, torch.Tensor) and found.dim():
        return "One number is asked for: the largest of them."
    slips = {
        "That is F, the mean over the clients.": problem.loss(x),
        "That is the best client's.": float(losses.min()),
        "That is the norm of the gradient; losses are asked for.": float(problem.grad(x).norm()),
    }
    return reveals(float(found), float(losses.max()), slips)


EXERCISES = {
    1: Exercise(
        "compute",
        2,
        "a pass over the data is cut into batches of 16, and the last one may be smaller",
        local_steps,
        right=("[6, 12, 2]", "(6.0, 12.0, 2.0)"),
        wrong={
            "(3, 6, 1)": "one pass",
            "(4, 12, 0)": "however small",
            "(5, 12, 2)": "cut by itself",
            "(6, 12, 1)": "10 samples",
            "6": "Three numbers",
        },
        open=True,
    ),
    2: Exercise(
        "derive",
        3,
        "with a small step a client moves by its number of steps times its gradient at x",
        rest,
        right=("lambda K1, K2: 1 - K1 / (K1 + K2)", "lambda a, b: b / (a + b)"),
        wrong={
            "lambda K1, K2: 0.5": "mean loss is least",
            "lambda K1, K2: K1 / (K1 + K2)": "minimum at 1",
            "lambda K1, K2: K2 / K1": "At K1 = 1, K2 = 1",
            "0.75": "A function",
        },
    ),
    3: Exercise(
        "implement",
        3,
        "problem.full(problem.clients) is the sample of all data, and losses takes one model a client",
        worst,
        right=("lambda p, x: max(p.losses(x.expand(p.n, -1), p.full(p.clients)).tolist())",),
        wrong={
            "lambda problem, x: problem.loss(x)": "the mean over the clients",
            "lambda p, x: p.losses(x.expand(p.n, -1), p.full(p.clients))": "One number",
            "lambda p, x: p.losses(x.expand(p.n, -1), p.full(p.clients)).min()": "best client's",
            "3.0": "A function",
        },
        open=True,
    ),
    4: Exercise(
        "explain",
        3,
        rubric={
            "The methods had unequal tuning budgets, so part of the gap is tuning.": 1,
            "The best of five seeds is biased upwards; the mean with an interval, or all five values, are not.": 1,
            "Ask for one grid and one budget for all methods, a tuning seed of its own, and paired differences over "
            "the same seeds.": 1,
        },
        weak={
            "Five seeds are too few.": "Five can decide much, if all five are shown and the methods share them.",
            "The baselines' papers know their methods best.": "They chose these rates for other problems.",
            "The best seed shows what the method can do.": "It shows the luck of five draws.",
        },
    ),
}
