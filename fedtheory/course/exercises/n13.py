"""Exercises of notebook 13, a federation."""

from typing import Any

import torch

from fedtheory.algorithms.ssf import Down, Step
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Replay, Seed, cost
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise, plain

SIZES = ((1000, 100), (90, 7), (64, 64))  # numbers of a model and of a projected vector
LAGS = (1, 2, 5, 9, 10, 11, 40)


def sent(d: int, r: int, lag: int) -> int:
    """Bytes of SSF's message to a client that took part so many rounds ago, as the package counts them."""
    seed: Seed[Any] = Seed(Key(0).fold("P"), lambda key: None, Cost())
    x = Replay(torch.zeros(d, dtype=torch.float64), Step(seed, torch.zeros(r, dtype=torch.float64)), held=seed)
    return cost(Down(seed, x, torch.zeros(r, dtype=torch.float64)), [lag]).bytes


def down_after(answer) -> str:
    """A function of d, r and the lag."""
    if not callable(answer):
        return "A function is asked for, such as lambda d, r, lag: ..."
    step = lambda r: 8 + 8 * r
    slips = {
        "The client that was there when its first missed step began has that seed: 8 bytes less.": (
            lambda d, r, lag: step(r) + min(8 * d, lag * step(r))
        ),
        "Nobody is sent more than the model: where the steps are longer, it goes instead.": (
            lambda d, r, lag: step(r) + lag * step(r) - 8
        ),
        "Only the model is part of it: the seed of this round and the projected control come down, too.": (
            lambda d, r, lag: min(8 * d, lag * step(r) - 8)
        ),
        "Those are numbers; a number of float64 has 8 bytes, as a seed has.": (
            lambda d, r, lag: 1 + r + min(d, lag * (1 + r) - 1)
        ),
        "That is what a client gets that has no model.": lambda d, r, lag: step(r) + 8 * d,
        "That is the first step only: there is one for each round since.": (
            lambda d, r, lag: step(r) + min(8 * d, step(r) - 8)
        ),
        "A step is a seed and its coordinates: each missed basis but the first is named by its seed.": (
            lambda d, r, lag: step(r) + min(8 * d, lag * 8 * r)
        ),
    }
    places = [(d, r, lag) for d, r in SIZES for lag in LAGS]
    given = [plain(answer(*at)) for at in places]
    if given == [sent(*at) for at in places]:
        return ""
    for word, slip in slips.items():
        if given == [slip(*at) for at in places]:
            return word
    at, got = next((at, got) for at, got in zip(places, given) if got != sent(*at))
    return f"At d = {at[0]}, r = {at[1]}, lag = {at[2]}: {reveals(got, sent(*at))}"


HELD = {  # what cannot have other bits, and why
    "A": "A: who takes part is drawn from the round's key, and nobody's blocks are asked.",
    "C": "C: a basis is made of its seed, which the server draws; no client is computed for it.",
    "E": "E: SSF's sizes do not know what values they hold.",
    "F": "F: processes take whole blocks, and gathered uploads lie in the order of ids.",
    "H": "H: clients are stacked only within a block, and here a block is one client.",
    "I": "I: uploads are sorted by id before anything is added.",
}
MOVED = {  # what may, and why
    "B": "B is missing: a local step is a product of what is stacked.",
    "D": "D is missing: the server adds uploads that may have other bits.",
    "G": "G is missing: sums of sums are rounded in other places.",
}


def other_bits(answer) -> str:
    """A set of letters."""
    known = HELD | MOVED
    if not isinstance(answer, (set, tuple)) or not set(answer) <= set(known):
        return 'A set of letters from "A" to "I" is asked for.'
    wrong = [word for letter, word in HELD.items() if letter in answer]
    lacking = [word for letter, word in MOVED.items() if letter not in answer]
    return " ".join((wrong + lacking)[:1])


H, D, DIRECTIONS = 10_000, 100_000, 1000
ROUNDS = {"FedAvg": 200.0, "SSF": 400.0}
PAYLOAD = {"FedAvg": 8 * D, "SSF": 8 + 4 * (4 * D // 32)}  # of a round, both ways, in bytes


def bill(name: str, p: int, h: int = H) -> float:
    """Bytes of a client's messages until the target, with h more for each of two messages a round."""
    if name == "DeComFL":
        return 40_000 / p * (24 * p + 2 * h)
    return ROUNDS[name] * (PAYLOAD[name] + 2 * h)


def cheapest(p: int, h: int = H) -> str:
    """The method with the smallest bill."""
    return min((*ROUNDS, "DeComFL"), key=lambda name: bill(name, p, h))


def first(holds) -> int:
    """The smallest number of directions."""
    return next(p for p in range(1, DIRECTIONS + 1) if holds(p))


def designed(answer) -> str:
    """Two names and two numbers of directions."""
    if not isinstance(answer, tuple) or len(answer) != 4:
        return "Four parts are asked for: a name, a name, a number, a number."
    counted, wired, third, fourth = answer
    beats = first(lambda p: cheapest(p) == "DeComFL")
    half = first(lambda p: 24 * p >= 2 * H)
    over_fedavg = first(lambda p: bill("DeComFL", p) < bill("FedAvg", p))
    slips = {"There it beats FedAvg, but not yet SSF.": over_fedavg, "One less: not yet.": beats - 1}
    slips_of_half = {
        "Per direction three seeds or scalars go down and one goes up: count both ways.": first(
            lambda p: 20 * p >= 2 * H
        ),
        "A round has two messages, down and up, each with its h.": first(lambda p: 24 * p >= H),
    }
    return first_of(
        [
            (counted == cheapest(1, 0), "(i) Counted alone: rounds times payload, in bytes, for each of the three."),
            (wired == cheapest(1), "(ii) Each round costs 2 h more, and rounds differ by a factor of 200."),
            (lambda: reveals(third, beats, slips) == "", f"(iii) {reveals(third, beats, slips)}"),
            (lambda: reveals(fourth, half, slips_of_half) == "", f"(iv) {reveals(fourth, half, slips_of_half)}"),
        ]
    )


EXERCISES = {
    1: Exercise(
        "derive",
        3,
        "three parts come down; the model's is as many steps as were missed, unless the model is not larger",
        down_after,
        right=(
            "lambda d, r, lag: (1 + r) * 8 + 8 * min(d, lag * (1 + r) - 1)",
            "lambda d, r, lag: 8 * (1 + r + (d if lag * (1 + r) - 1 >= d else lag * (1 + r) - 1))",
        ),
        wrong={
            "lambda d, r, lag: 8 + 8 * r + min(8 * d, lag * (8 + 8 * r))": "8 bytes less",
            "lambda d, r, lag: 8 + 8 * r + lag * (8 + 8 * r) - 8": "Nobody is sent more than the model",
            "lambda d, r, lag: min(8 * d, lag * (8 + 8 * r) - 8)": "the projected control come down",
            "lambda d, r, lag: 1 + r + min(d, lag * (1 + r) - 1)": "Those are numbers",
            "lambda d, r, lag: 8 + 8 * r + 8 * d": "has no model",
            "lambda d, r, lag: 16 * r + 8": "first step only",
            "lambda d, r, lag: 8 + 8 * r + min(8 * d, lag * 8 * r)": "named by its seed",
            "lambda d, r, lag: 16 + 8 * r + min(8 * d, lag * (8 + 8 * r) - 8)": "Too large",
            "8808": "A function",
        },
        tells=(r"min\(8",),
    ),
    2: Exercise(
        "break",
        3,
        "what depends on a key, what on a size, and what on which numbers are stacked or added first?",
        other_bits,
        right=("['B', 'D', 'G']", "('G', 'D', 'B')"),
        wrong={
            "{'A', 'B', 'D', 'G'}": "drawn from the round's key",
            "{'B', 'C', 'D', 'G'}": "made of its seed",
            "{'B', 'D', 'E', 'G'}": "do not know what values",
            "{'B', 'D', 'F', 'G'}": "in the order of ids",
            "{'B', 'D', 'G', 'H'}": "a block is one client",
            "{'B', 'D', 'G', 'I'}": "sorted by id",
            "{'D', 'G'}": "B is missing",
            "{'B', 'G'}": "D is missing",
            "{'B', 'D'}": "G is missing",
            "'BDG'": "A set of letters",
        },
        open=True,
    ),
    3: Exercise(
        "design",
        3,
        "a bill is rounds times payload and 2 h; only DeComFL can trade rounds for longer messages",
        designed,
        right=("['DeComFL', 'SSF', 30, 834]", "('DeComFL', 'SSF', 30.0, 834.0)"),
        wrong={
            "('SSF', 'SSF', 30, 834)": "(i) Counted alone",
            "('DeComFL', 'DeComFL', 30, 834)": "(ii) Each round costs",
            "('DeComFL', 'FedAvg', 30, 834)": "(ii) Each round costs",
            "('DeComFL', 'SSF', 5, 834)": "beats FedAvg",
            "('DeComFL', 'SSF', 29, 834)": "One less",
            "('DeComFL', 'SSF', 30, 1000)": "count both ways",
            "('DeComFL', 'SSF', 30, 417)": "two messages, down and up",
            "30": "Four parts",
        },
        tells=(r"\b834\b",),
    ),
    4: Exercise(
        "explain",
        3,
        rubric={
            "The count is a statement on the method, and it was tested: the payload in the messages equals it byte for "
            "byte, for every method.": 1,
            "The rest belongs to the transport: a constant a message that hardly depends on the method, so it is added "
            "and not multiplied.": 1,
            "It decides where messages are short. There one counts messages, and sends fewer and longer ones or shares "
            "them on a node. For models of millions of numbers it vanishes.": 1,
        },
        weak={
            "You are right, from now on we count on the socket.": (
                "Then DeComFL and FedAvg would be compared by Flower's headers."
            ),
            "Headers do not matter.": "Where a message has 400 bytes they are 96 percent of the bill.",
            "The socket carries 25 times the count.": "A constant a message is no factor: for FedAvg it is 2.2 times.",
            "The rest is metadata of our own.": "Look at section 3: that has some hundred bytes.",
        },
    ),
}
