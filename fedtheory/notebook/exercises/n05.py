"""Exercises of notebook 05, FedMUD."""

import torch

from fedtheory.core.key import Key
from fedtheory.maps.decomposition import LowRank
from fedtheory.notebook import first_of, reveals
from fedtheory.notebook.exercises import Exercise

LAYER = (256 * 3, 128 * 3)  # rows and columns of the convolution of exercises 1 and 2


def sent(answer: float) -> str:
    """How many numbers plain FedMUD sends for the layer."""
    m, n = LAYER
    slips = {
        "A rank is a whole number, rounded up.": m * n / 40,
        "Rounded down: the ratio would be smaller than asked for.": (m + n) * int(m * n / 40 / (m + n)),
        "That is the matrix of 256 rows and 128 * 9 columns; the package takes 256 * 3 by 128 * 3.": (
            LowRank(1 / 40).part(256, 128 * 9).size
        ),
        "That is the whole layer.": m * n,
    }
    return reveals(answer, LowRank(1 / 40).part(m, n).size, slips)


def rounds_to_full_rank(answer: float) -> str:
    """Rounds until the sum of updates can have full rank."""
    least = -(-min(LAYER) // 7)
    slips = {
        "A matrix of 768 rows and 384 columns has no rank of 768.": -(-LAYER[0] // 7),
        "A round less: the rank is not full yet.": least - 1,
        "A number of rounds is whole.": min(LAYER) / 7,
        "So it would be with messages of rank 1.": min(LAYER),
        "U and V have rank r each, but their product has rank r, not 2 r.": -(-min(LAYER) // 14),
    }
    return reveals(answer, least, slips)


def aad(answer) -> str:
    """A function of U, V and their fixed partners."""
    g = Key(0).fold("exercise").generator()
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)
    U, V, U_, V_ = draw(5, 6, 2), draw(5, 4, 2), draw(6, 2), draw(4, 2)
    mean = lambda: torch.allclose(answer(U, V, U_, V_).mean(0), answer(U.mean(0), V.mean(0), U_, V_))
    left = lambda: torch.allclose(answer(U, 0 * V, U_, V_), torch.einsum("imr,nr->imn", U, V_))
    right = lambda: torch.allclose(answer(0 * U, V, U_, V_), torch.einsum("mr,inr->imn", U_, V))
    return first_of(
        [
            (mean, "The mean of the updates is not the update of the means."),
            (left, "Without V, it is not U times its fixed partner."),
            (right, "Without U, it is not V times its fixed partner."),
        ]
    )


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "which m, n and r does the package take? Section 1.",
        sent,
        right=("(768 + 384) * 7",),
        wrong={"768 * 384 / 40": "rounded up", "(768 + 384) * 6": "Rounded down", "768 * 384": "whole layer"},
    ),
    2: Exercise(
        "compute",
        1,
        "how much rank does a round add at most, and what is the full rank of a matrix of 768 x 384?",
        rounds_to_full_rank,
        right=("-(-384 // 7)", "55.0"),
        wrong={"110": "no rank of 768", "54": "not full yet", "384 / 7": "is whole", "28": "not 2 r"},
    ),
    3: Exercise(
        "implement",
        2,
        "each trained factor meets the other's fixed one",
        aad,
        right=("lambda U, V, U_, V_: torch.einsum('...mr,nr->...mn', U, V_) + (V @ U_.T).mT",),
        wrong={
            "lambda U, V, U_, V_: U @ V_.T + 2 * U_ @ V.mT": "fixed partner",
            "lambda U, V, U_, V_: U @ V.mT": "mean of the updates",
            "lambda U, V, U_, V_: U @ V_.T": "Without U",
            "lambda U, V, U_, V_: U_ @ V.mT": "Without V",
        },
        tells=(r"U @ V_",),
    ),
}
