"""Exercises of notebook 05, FedMUD."""

import torch

from fedtheory.core.key import Key
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise
from fedtheory.course.exercises.symbolic import formula
from fedtheory.maps.decomposition import KroneckerBlocks, LowRank

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


def gap(answer) -> str:
    """A function of p, u1, u2, v1, v2: mean of products minus product of means, as one product."""
    import sympy

    p, u1, u2, v1, v2 = names = sympy.symbols("p u1 u2 v1 v2")
    found = sympy.sympify(answer(*names))
    wanted = p * u1 * v1 + (1 - p) * u2 * v2 - (p * u1 + (1 - p) * u2) * (p * v1 + (1 - p) * v2)
    same = lambda other: sympy.expand(found - other) == 0
    if same(wanted):
        mixed = lambda part: part.free_symbols & {u1, u2} and part.free_symbols & {v1, v2}
        return "True, but as a sum: write it as one product." if any(map(mixed, sympy.Mul.make_args(found))) else ""
    slips = {
        "The other way round: the mean of the products comes first.": -wanted,
        "For p = 1/2 only.": (u1 - u2) * (v1 - v2) / 4,
        "The weights are squared in some terms: collect both clients' shares.": p
        * (1 - p) ** 2
        * (u1 - u2)
        * (v1 - v2),
        "That is the covariance of equally weighted clients, times two.": (u1 - u2) * (v1 - v2) / 2,
        "That is the mean of the products.": p * u1 * v1 + (1 - p) * u2 * v2,
        "The weights are missing.": (u1 - u2) * (v1 - v2),
    }
    at_ends = [found.subs({p: end}) for end in (0, 1)]
    rest = (
        "With p = 0 or p = 1 one client is alone: there can be no gap." if any(at_ends) else "Not the same expression."
    )
    return next((word for word, other in slips.items() if same(other)), rest)


def lost_rank(answer) -> str:
    """(m, n, z, rank): one Kronecker block that is cut so that at most half of the full rank is left."""
    if not isinstance(answer, tuple) or len(answer) != 4 or not all(isinstance(one, int) and one > 0 for one in answer):
        return "Four whole numbers: m, n, z, and the rank."
    m, n, z, rank = answer
    if min(m, n) < 5 or m * n > 2500:
        return "Both sides are at least 5 (and the matrix no larger than 50 x 50)."
    if z**4 < m * n:
        return "The block does not cover the matrix."
    of = KroneckerBlocks(m * n, 1, 1, z)
    g = Key(0).fold("lost").generator()
    ranks = []
    for _ in range(5):
        factors = (torch.randn(size, generator=g, dtype=torch.float64) for size in of.sizes)
        ranks.append(int(torch.linalg.matrix_rank(of.product(*factors).view(m, n), rtol=1e-9)))
    if 2 * max(ranks) > min(m, n):
        return f"Random factors give rank {max(ranks)} of {min(m, n)}: more than half."
    return "" if rank == max(ranks) else f"Broken, yes, but the largest rank is not {rank}."


def blind(answer) -> str:
    """(U, V, g): factors without a zero that do not see the gradient g, Assumption 4 with psi^2 >= 1."""
    U, V, g = (torch.as_tensor(one, dtype=torch.float64) for one in answer)
    least = lambda A: float(torch.linalg.svdvals(A)[-1])
    sees = lambda A: float(torch.linalg.vector_norm(A)) > 1e-6
    return first_of(
        [
            (U.shape == V.shape == (3, 1) and g.shape == (3, 3), "U and V are 3 x 1, the gradient is 3 x 3."),
            (lambda: float(torch.cat([U, V]).abs().min()) > 1e-6, "An entry of U or V is zero."),
            (lambda: least(U) ** 2 + least(V) ** 2 >= 1 - 1e-6, "Assumption 4 with psi^2 = 1 is broken."),
            (lambda: abs(float(torch.linalg.vector_norm(g)) - 1) < 1e-6, "The gradient does not have norm 1."),
            (lambda: not (sees(g @ V) and sees(g.T @ U)), "Both factors see it: g V and g^T U are not 0."),
            (lambda: not sees(g @ V), "U moves, since g V is not 0."),
            (lambda: not sees(g.T @ U), "V moves, since g^T U is not 0."),
        ]
    )


def share_of_a_step(answer) -> str:
    """A function of m, n, r: multiply-adds with frozen weights and a product beside them, over ordinary training's."""
    right = lambda m, n, r: (2 * m * n + 3 * r * (m + n)) / (3 * m * n)
    slips = {
        "That is the share of the numbers: the frozen matrix is still passed forward and backward.": (
            lambda m, n, r: r * (m + n) / (m * n)
        ),
        "Only the frozen matrix: the two factors are passed, too.": lambda m, n, r: 2 * m / (3 * m),
        "The factors take part in the forward pass and in both backward ones.": (
            lambda m, n, r: (2 * m * n + r * (m + n)) / (3 * m * n)
        ),
        "One pass of the factors is missing: forward, to the input, to the factors.": (
            lambda m, n, r: (2 * m * n + 2 * r * (m + n)) / (3 * m * n)
        ),
        "The frozen matrix needs no gradient of its own.": lambda m, n, r: 1 + r * (m + n) / (m * n),
        "Divide by ordinary training's three products.": lambda m, n, r: 2 * m * n + 3 * r * (m + n),
    }
    return formula(answer, right, [(768, 384, 8), (10, 30, 2), (5, 5, 5)], slips)


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "which m, n and r does the package take? Section 6.",
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
    4: Exercise(
        "derive",
        3,
        "write each factor as its mean plus a deviation; the deviations of two clients have opposite signs",
        gap,
        right=(
            "lambda p, u1, u2, v1, v2: (p - p**2) * (u2 - u1) * (v2 - v1)",
            "lambda p, u1, u2, v1, v2: -p * (p - 1) * (u1 - u2) * (v1 - v2)",
        ),
        wrong={
            "lambda p, u1, u2, v1, v2: (u1 - u2) * (v1 - v2) / 4": "p = 1/2 only",
            "lambda p, u1, u2, v1, v2: p * u1 * v1 + (1 - p) * u2 * v2 - (p * u1 + (1 - p) * u2) * "
            "(p * v1 + (1 - p) * v2)": "as a sum",
            "lambda p, u1, u2, v1, v2: p * (p - 1) * (u1 - u2) * (v1 - v2)": "other way round",
            "lambda p, u1, u2, v1, v2: p * (1 - p) * (u1 * v1 - u1 * v2 - u2 * v1 + u2 * v2)": "as a sum",
            "lambda p, u1, u2, v1, v2: p * (1 - p)**2 * (u1 - u2) * (v1 - v2)": "squared",
            "lambda p, u1, u2, v1, v2: p * (u1 - u2) * (v1 - v2)": "no gap",
        },
        tells=(r"p ?\* ?\(1 ?- ?p\)", r"p ?\(1 ?- ?p\)"),
    ),
    5: Exercise(
        "break",
        2,
        "how many rows of U (x) V do the first m n of its entries fill, if z is larger than it need be?",
        lost_rank,
        right=("(5, 5, 5, 1)", "(7, 8, 8, 1)"),
        wrong={
            "(5, 5, 3, 5)": "more than half",
            "(6, 6, 6, 6)": "not 6",
            "(2, 2, 2, 1)": "at least 5",
            "(9, 9, 2, 4)": "does not cover",
        },
        open=True,
    ),
    6: Exercise(
        "break",
        2,
        "the columns of g must miss U, its rows V",
        blind,
        right=(
            "([[1], [1], [1]], [[2], [1], [1]], torch.outer(torch.tensor([1.0, -1, 0]), torch.tensor([1.0, -1, -1])) "
            "/ 6**0.5)",
        ),
        wrong={
            "([[1], [0], [0]], [[0], [0], [1]], [[0, 0, 0], [0, 1, 0], [0, 0, 0]])": "is zero",
            "([[1], [1], [1]], [[1], [1], [1]], [[0, 0, 0], [0, 1, 0], [0, 0, 0]])": "Both factors see it",
            "([[1], [1], [1]], [[1], [1], [1]], [[0.5**0.5, 0, 0], [-(0.5**0.5), 0, 0], [0, 0, 0]])": "U moves",
            "([[1], [1], [1]], [[1], [1], [1]], [[0.5**0.5, -(0.5**0.5), 0], [0, 0, 0], [0, 0, 0]])": "V moves",
            "([[0.1], [0.1], [0.1]], [[0.1], [0.1], [0.1]], [[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])": (
                "Assumption 4"
            ),
            "([[1], [1], [1]], [[1], [1], [1]], [[1, -1, 0], [-1, 1, 0], [0, 0, 0]])": "norm 1",
        },
        open=True,
    ),
    7: Exercise(
        "explain",
        3,
        rubric={
            "It buys exact averaging: the update is linear in what is trained, so that the mean of the clients' "
            "updates is the update of the mean factors.": 1,
            "It does not buy reach. Between resets the update stays in the range of a fixed random map of few "
            "dimensions. A gradient outside is not seen until the factors are drawn anew.": 1,
            "It is not FedAvg even inside that range. A random matrix preconditions the step, so $\\eta$ and $a$ "
            "together are the learning rate, and directions move at different speeds.": 1,
        },
        weak={
            "It removes the error.": "Of which averaging, and why: linearity is the reason.",
            "It is FedAvg with fewer bytes.": "The claim itself: fewer numbers cannot say what many do.",
            "It has a higher rank.": "Its rank is at most 2 r, at the same number of trained numbers.",
        },
    ),
    8: Exercise(
        "derive",
        2,
        "count for W, U and V apart: forward, back to the input, back to what is trained; what does W not need?",
        share_of_a_step,
        right=("lambda m, n, r: 2 / 3 + r / m + r / n",),
        wrong={
            "lambda m, n, r: r * (m + n) / (m * n)": "share of the numbers",
            "lambda m, n, r: 2 * m / (3 * m)": "Only the frozen matrix",
            "lambda m, n, r: 2 / 3 + r * (m + n) / (3 * m * n)": "both backward",
            "lambda m, n, r: 2 / 3 + 2 * r * (m + n) / (3 * m * n)": "One pass of the factors",
            "lambda m, n, r: 1 + r * (m + n) / (m * n)": "no gradient of its own",
            "lambda m, n, r: 2 * m * n + 3 * r * (m + n)": "three products",
        },
        tells=(r"2 ?/ ?3 ?\+", r"frac23 ?\+"),
    ),
}
