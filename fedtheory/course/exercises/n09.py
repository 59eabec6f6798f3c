"""Exercises of notebook 09, language models."""

from typing import Any

import torch

from fedtheory.core.key import Key
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise


def sees(answer: Any) -> str:
    """Of packed rows: which token may see which."""
    owner = torch.tensor([[1, 1, 0, 0, 0], [2, 2, 2, 3, 3]])
    found = answer(owner)
    pairs = lambda wanted: all(bool(found[at]) == is_seen for at, is_seen in wanted.items())
    return first_of(
        [
            (lambda: found.shape == (2, 5, 5), "A Boolean for each row and pair of its tokens is asked for."),
            (lambda: pairs({(r, i, i): True for r in (0, 1) for i in range(5)}), "A token should see itself."),
            (lambda: pairs({(0, 0, 1): False, (1, 1, 2): False}), "A token sees one that comes after it."),
            (lambda: pairs({(0, 2, 1): False, (1, 4, 0): False}), "A token sees one of another prompt."),
            (
                lambda: pairs({(0, 1, 0): True, (0, 4, 2): True, (1, 2, 0): True}),
                "Its own earlier tokens are hidden.",
            ),
        ]
    )


def scores(answer: Any) -> str:
    """Log probabilities of the words among all tokens, from logits and the words' tokens."""
    v, w = torch.randn(4, 30, generator=Key(0).fold("exercise").generator(), dtype=torch.float64), [3, 17]
    found = answer(v, w)
    return first_of(
        [
            (lambda: found.shape == (4, 2), "One number per text and word is asked for."),
            (lambda: float(found.max()) <= 0, "A log probability is never positive."),
            (
                lambda: torch.allclose(found.log_softmax(1), v[:, w].log_softmax(1)),
                "The words' odds are not those of their logits: is the logarithm missing?",
            ),
            (
                lambda: torch.allclose(found.exp().sum(1), v.softmax(1)[:, w].sum(1)),
                "They sum to one over the words alone: the other tokens were left out.",
            ),
        ]
    )


def rounds(answer: float) -> str:
    """Of FedAvg on OPT-125M with SST-2, from its printed bytes; a client takes part in a quarter of the rounds."""
    printed, numbers = 0.24e12, 125.2e6
    of_a_model = printed / (4 * numbers)
    tens = lambda value: 10 * round(value / 10)
    slips = {
        "A client takes part in a quarter of the rounds only.": tens(of_a_model / 2),
        "The model goes up and down.": tens(4 * of_a_model),
        "The model goes up and down, once each.": tens(of_a_model),
        "Round to whole tens.": round(2 * of_a_model),
        "Rounds, not thousands of rounds.": 1,
        "Four bytes per number.": tens(8 * of_a_model),
    }
    return reveals(answer, tens(2 * of_a_model), slips)


def lost_from(answer: float) -> str:
    """The least power of two at which a weight in bfloat16 does not notice a change of 0.001, played."""
    moves = lambda w: float(torch.tensor(w, dtype=torch.bfloat16) + 1e-3) != w
    right = next(2.0**e for e in range(-12, 4) if not moves(2.0**e))
    slips = {
        "There the spacing is above 0.001, but a sum goes to the nearer neighbour: half of it is below 0.001.": right
        / 2,
        "Lost there, too, but already at a smaller power of two.": 2 * right,
        "Spacings change at powers of two only.": 1e-3 * 2**8,
        "That is float16, with three bits more.": 8 * right,
    }
    return reveals(answer, right, slips)


EXERCISES = {
    1: Exercise(
        "implement",
        2,
        "two axes of their own make a comparison of all pairs, and tril leaves the earlier ones",
        sees,
        right=("lambda o: (o[..., None] == o[:, None]) & torch.ones(o.shape[1], o.shape[1]).tril().bool()",),
        wrong={
            "lambda o: o == o": "each row and pair",
            "lambda o: o[:, :, None] == o[:, None, :]": "comes after it",
            "lambda o: torch.ones(*o.shape, o.shape[1]).tril().bool()": "another prompt",
            "lambda o: torch.eye(o.shape[1]).bool().expand(*o.shape, -1)": "are hidden",
            "lambda o: (o[:, :, None] == o[:, None, :]).tril(-1)": "see itself",
        },
    ),
    2: Exercise(
        "implement",
        1,
        "normalise over the whole vocabulary",
        scores,
        right=("lambda v, w: v.softmax(1)[:, w].log()",),
        wrong={
            "lambda v, w: v[:, w].log_softmax(1)": "left out",
            "lambda v, w: v.softmax(1)[:, w]": "never positive",
            "lambda v, w: v[:, w] - v.max()": "left out",
            "lambda v, w: v.log_softmax(1)": "per text and word",
        },
    ),
    3: Exercise(
        "compute",
        1,
        "what does a client send and receive in a round in which it takes part, and in how many does it? "
        "d = 125.2 million",
        rounds,
        right=("10 * round(0.24e12 / (0.25 * 8 * 125.2e6) / 10)", "960.0"),
        wrong={"240": "quarter", "1920": "up and down", "958": "whole tens", "1": "thousands"},
    ),
    4: Exercise(
        "break",
        2,
        "bfloat16 keeps 8 bits of a number, the first of them unsaid: neighbours in [1, 2) are 2^-7 apart",
        lost_from,
        right=("1 / 2", "2**-1"),
        wrong={"0.25": "nearer neighbour", "1.0": "smaller power", "4.0": "float16", "0.256": "powers of two only"},
        open=True,
    ),
    5: Exercise(
        "explain",
        3,
        rubric={
            "Theorem 2 says so where the effective rank of the Hessian is low, whatever d is": 1,
            "Here few directions suffice: pretrained models, an easy task, answers that only lean to one side": 1,
            "Three sizes of one toy cannot show it for large models; larger d, other tasks, the spectrum would": 1,
        },
        weak={
            "DeComFL is dimension-free, so d cannot matter.": (
                "Its messages are free of d. Its rounds are so only where the effective rank is low."
            ),
            "It shows that zeroth-order methods do not suffer from dimension.": (
                "In notebook 07 they do, with the identity as Hessian: rounds grow about as fast as d."
            ),
        },
    ),
}
