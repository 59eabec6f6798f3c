"""The fix that an error line names works: it is read out of the line, followed as a user would, and the call passes."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from each import each
from torch import nn

import fedtheory
from fedtheory import (
    BAFFLE,
    DGC,
    SSF,
    STC,
    Coordinate,
    DeComFL,
    FedAvg,
    FedMUD,
    FedProx,
    FedSub,
    FedZO,
    FetchSGD,
    Gaussian,
    History,
    ImageClassification,
    Key,
    Kronecker,
    Layout,
    LogisticRegression,
    LowRank,
    MatrixRegression,
    Quadratic,
    Scaffold,
    Spherical,
    TopK,
    run,
)
from fedtheory.core.registry import Card, Method, Offer
from fedtheory.core.schedule import Steps
from fedtheory.problems import partitions
from fedtheory.problems.models.networks import network

DOUBLE = torch.float64
QUADRATIC = Quadratic.random(4, 6, Key(0))
IMAGES, LABELS = torch.randn(40, 1, 8, 8, generator=Key(0).generator()), torch.arange(40) % 10
PARTS = list(torch.arange(40).chunk(4))
MLP = network("mlp", (1, 8, 8), 10)
EYE, ONES = torch.eye(3, dtype=DOUBLE).repeat(2, 1, 1), torch.ones(2, 3, dtype=DOUBLE)
A, B = torch.ones(2, 4, 3, dtype=DOUBLE), torch.ones(2, 4, 2, dtype=DOUBLE)


class Net(nn.Sequential):
    """For these images."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 10))


def of_images(**given: Any) -> object:
    return ImageClassification(
        **{"images": IMAGES, "labels": LABELS, "parts": PARTS, "network": MLP, "key": Key(0)} | given
    )


def play(**given: Any) -> History:
    return run(**{"algorithm": FedAvg(0.1, 2), "problem": QUADRATIC, "rounds": 2} | given)


def load(**given: Any) -> object:
    return ImageClassification.load(**{"data": "digits", "network": "mlp", "key": Key(0), "subset": 60} | given)


def factors(decomposition: Any) -> object:
    return run(FedMUD(0.01, 1, decomposition), QUADRATIC, 1)


def method(**given: Any) -> object:
    return Method(**{"name": "Mine", "family": "full", "make": lambda o: FedAvg(o.lr, 1), "card": CARD} | given)


def offer(**given: Any) -> object:
    return Offer(**{"name": "mine", "kind": Quadratic, "make": lambda key, device, options: QUADRATIC} | given)


def card(**given: Any) -> object:
    return Card(**{"idea": "a", "update": "b", "proved": "c", "fails": "d"} | given)


def divide(**given: Any) -> object:
    return partitions.dirichlet(**{"y": LABELS, "clients": 2, "alpha": 1.0, "key": Key(0)} | given)


NAMES = vars(fedtheory) | {"torch": torch, "network": network, "Steps": Steps, "Card": Card, "labels": LABELS, "d": 3}
NAMES |= {"problems": SimpleNamespace(partitions=partitions), "Net": Net, "Mine": FedAvg, "rounds": 2}
NAMES |= {"images": IMAGES, "r": 2}
WHOLE = {"lr", "local_steps"}  # arguments that a case may have beside the one that is named otherwise
CARD = Card("its idea", "its update", "what is proved", "where it fails")
CASES: list[tuple[Callable[..., object], dict[str, Any]]] = [
    # methods
    (FedAvg, {"lr": 0.0, "local_steps": 2}),
    (FedAvg, {"lr": float("nan"), "local_steps": 2}),
    (FedAvg, {"lr": "0.1", "local_steps": 2}),
    (FedAvg, {"lr": 0.1, "local_steps": 0}),
    (FedAvg, {"lr": 0.1, "local_steps": 2.0}),
    (FedAvg, {"lr": 0.1, "local_steps": 10**12}),
    (FedAvg, {"lr": 0.1, "local_steps": 2, "weighted": 1}),
    (FedAvg, {"lr": 0.1, "local_steps": 2, "server_lr": -1.0}),
    (FedProx, {"lr": 0.1, "local_steps": 2, "mu": -1.0}),
    (Scaffold, {"lr": 0.1, "local_steps": 2, "option": "III"}),
    (SSF, {"lr": 0.1, "local_steps": 2, "projection": Coordinate(2)}),
    (FedSub, {"lr": 0.1, "local_steps": 2, "projection": 3}),
    (TopK, {"lr": 0.1, "local_steps": 2, "ratio": 0.0}),
    (TopK, {"lr": 0.1, "local_steps": 2, "ratio": 0.5, "by": "size"}),
    (STC, {"lr": 0.1, "local_steps": 2, "ratio": 1.5}),
    (STC, {"lr": 0.1, "local_steps": 2, "ratio": 0.5, "values": "both"}),
    (DGC, {"lr": 0.1, "local_steps": 2, "ratio": 0.5, "clip": 0.0}),
    (FetchSGD, {"lr": 0.1, "local_steps": 2, "ratio": 0.5, "rows": 4}),
    (FetchSGD, {"lr": 0.1, "local_steps": 2, "ratio": 0.5, "clear": ""}),
    (BAFFLE, {"lr": 0.1, "perturbations": 0}),
    (BAFFLE, {"lr": 0.1, "smoothing": 0.0}),
    (DeComFL, {"lr": 0.1, "local_steps": 1, "perturbations": True}),
    (FedZO, {"lr": 0.1, "local_steps": 1, "perturbations": -3}),
    (FedMUD, {"lr": 0.1, "local_steps": 2, "decomposition": 0.5}),
    (factors, {"decomposition": LowRank(0.5)}),
    (LowRank, {"ratio": 0.0}),
    (Kronecker, {"ratio": 0.5, "layers": "some"}),
    (Coordinate, {"rank": 0}),
    (Coordinate, {"rank": 2, "signs": 1}),
    (Gaussian, {"rank": 2.5}),
    (Spherical, {"rank": 2, "scale": "no"}),
    # problems
    (Quadratic.random, {"n": 0, "d": 3, "key": Key(0)}),
    (Quadratic.random, {"n": 2, "d": 3, "key": "0"}),
    (Quadratic.random, {"n": 2, "d": 3, "key": Key(0), "spread": -1.0}),
    (Quadratic.random, {"n": 2, "d": 3, "key": Key(0), "dtype": torch.int32}),
    (Quadratic, {"H": EYE.long(), "b": ONES}),
    (Quadratic, {"H": EYE.half(), "b": ONES}),
    (Quadratic, {"H": EYE, "b": ONES.float()}),
    (Quadratic, {"H": EYE, "b": ONES.numpy()}),
    (Quadratic, {"H": EYE, "b": ONES.flatten()}),
    (Quadratic, {"H": EYE[0], "b": ONES[:1]}),
    (Quadratic, {"H": EYE, "b": ONES, "device": "tpu"}),
    (Quadratic, {"H": EYE, "b": ONES, "layout": 3}),
    (MatrixRegression, {"A": A, "B": B, "lam": "0.1"}),
    (MatrixRegression, {"A": A, "B": B, "batch": 0}),
    (MatrixRegression, {"A": A, "B": B.float()}),
    (LogisticRegression, {"A": A, "b": ONES.new_ones(2, 4).float(), "lam": 0.1}),
    (Layout.single, {"rows": 0}),
    (Key, {"seed": -1}),
    (Key, {"seed": "0"}),
    # images
    (of_images, {"images": (255 * IMAGES.abs()).byte()}),
    (of_images, {"images": IMAGES.half()}),
    (of_images, {"images": IMAGES[:, 0]}),
    (of_images, {"images": IMAGES.permute(0, 2, 3, 1)}),
    (of_images, {"labels": LABELS.float()}),
    (of_images, {"labels": nn.functional.one_hot(LABELS)}),
    (of_images, {"parts": 10}),
    (of_images, {"parts": []}),
    (of_images, {"parts": torch.arange(40)}),
    (of_images, {"parts": [part.int() for part in PARTS[:1]]}),
    (of_images, {"parts": [part.float() for part in PARTS]}),
    (of_images, {"network": "mlp"}),
    (of_images, {"network": nn.Linear}),
    (of_images, {"batch": 0}),
    (of_images, {"augment": "mixup"}),
    (of_images, {"moments": "last"}),
    (of_images, {"precision": "half"}),
    (of_images, {"device": "tpu"}),
    (load, {"data": "emnist"}),
    (load, {"partition": "shards"}),
    (load, {"subset": 10**6}),
    (load, {"network": "mpl"}),
    (divide, {"alpha": 0.0}),
    (divide, {"clients": 30}),
    (divide, {"y": LABELS.float()}),
    # runs
    (play, {"rounds": -1}),
    (play, {"rounds": 1.0}),
    (play, {"sampled": 9}),
    (play, {"dropout": 2.0}),
    (play, {"every": 0}),
    (play, {"seed": None}),
    (play, {"x0": torch.zeros(6)}),
    (play, {"x0": torch.zeros(6, dtype=torch.int64)}),
    (play, {"metrics": "loss"}),
    (play, {"metrics": ("errors",)}),
    (play, {"algorithm": "FedAvg"}),
    (play, {"problem": Quadratic}),
    (play, {"schedule": 3}),
    (play, {"threads": 0}),
    (play, {"chunk": 0}),
    (Steps, {"every": 0}),
    # what is listed
    (method, {"name": 3}),
    (method, {"family": "half"}),
    (method, {"make": lambda: 1}),
    (method, {"card": "a card"}),
    (method, {"rate": "x"}),
    (offer, {"name": ""}),
    (offer, {"metrics": "loss"}),
    (offer, {"rates": 0.1}),
    (offer, {"make": 3}),
    (card, {"idea": 3}),
    (card, {"claims": "lemma1"}),
]


def bounded(expected: str) -> float:
    """A number within the bounds that a line names."""
    found = re.search(r"an integer from (\d+) to (\d+)", expected) or re.search(r"at (most) (\d+)", expected)
    if found:
        return min(int(found[2]), 100)
    found = re.search(r"(an integer|a finite number)(?: (>=?) (\S+))?(?: and)?(?: <= (\S+))?", expected)
    assert found, expected
    low, high = float(found[3] or 0), float(found[4] or "inf")
    return int(low) if found[1] == "an integer" else min(low + 0.1, high)


def codes(fix: str) -> Iterator[str]:
    """What may be code in it: from behind a verb, or a word that announces an example, to where one ends."""
    for start in re.finditer(r"\b(?:pass|use|call|write|such as|as|or|example) |: |^", fix):
        piece = fix[start.end() :]
        for end in [*(found.start() for found in re.finditer(r", | or | and |; ", piece)), len(piece)]:
            yield piece[:end].rstrip(".")


def followed(said: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the line's fix has them."""
    argument, _, rest = said.partition("=")
    expected, _, fix = rest.partition(": expected ")[2].partition(". Fix: ")
    (at,) = [part for part in re.findall(r"[A-Za-z]\w*", argument) if part in given] or given.keys() - WHOLE
    if expected.startswith("one of "):
        one = re.findall(r"'([^']*)'", expected)[0]
        return given | {at: (one,) if isinstance(given[at], tuple) else one}
    if re.search(r"within these bounds|take fewer|from 1 to the", fix):
        return given | {at: bounded(expected)}
    for words, value in (("a plain float", 0.5), ("a plain integer", 1), ("pass an integer", 1), ("in quotes", "text")):
        if fix.endswith((words, f"{words} for {at}")):
            return given | {at: value}
    for code in codes(fix):
        keyword = re.fullmatch(r"(\w+)=([^=].*)", code)
        with suppress(Exception):  # most of a line is words
            value = eval(keyword[2] if keyword else code, NAMES | given)
            if (place := re.match(rf"{at}\[(\d+)\]", code)) is not None:
                value = [*given[at][: int(place[1])], value, *given[at][int(place[1]) + 1 :]]
            return given | {at: value}
    raise AssertionError(f"no code and no bounds in {fix!r}")


@each("call, given", CASES)
def test_a_fix_works_when_it_is_followed(call, given):
    with pytest.raises((ValueError, TypeError)) as caught:
        call(**given)
    call(**followed(str(caught.value), given))


def test_a_metric_is_written_as_the_line_says():
    def distance(x: torch.Tensor) -> float:
        return float(x.norm())

    with pytest.raises(TypeError) as caught:
        play(metrics=(distance,))
    written: dict[str, Any] = {}
    exec(str(caught.value).partition("Fix: write ")[2] + ": return float(x.norm())", written)
    play(metrics=(written["distance"],))


def test_a_module_ends_as_the_line_says():
    class Made(Net):
        end = ".to_sparse()"

        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return eval(f"y{self.end}", {"y": super().forward(input)})

    with pytest.raises(ValueError, match=r"Made=torch\.sparse_coo: expected logits that are a dense tensor") as caught:
        of_images(network=Made())
    Made.end += str(caught.value).partition("Fix: end its forward with ")[2]
    of_images(network=Made())


def test_what_is_no_metric_is_refused_in_a_line():
    """A class is none, and a tensor without entries is no number."""

    class Norm:
        pass

    with pytest.raises(TypeError, match=r"metrics=.*expected a function of \(problem, x\)"):
        play(metrics=(Norm,))

    def lost(problem: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.ones(1, device="meta")

    with pytest.raises(TypeError, match=r"lost=.*expected a number"):
        play(metrics=(lost,))


@pytest.mark.parametrize("given", [{"columns": 3}, {"state": None}, {"diverged": True}])
def test_a_history_holds_what_it_says(given):
    state = play().state
    with pytest.raises(TypeError, match=f"{next(iter(given))}=.*expected .*Fix: "):
        History(**{"columns": {"round": [0]}, "state": state} | given)


def test_so_many_lines_are_followed():
    assert len(CASES) >= 60
