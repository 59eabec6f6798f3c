"""What FedMUD's runs are: settings of the scales, methods, problems, and what the paper leaves open."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fedtheory.algorithms.ef21p import EF21P
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedbat import FedBAT
from fedtheory.algorithms.fedhm import FedHM
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.layout import Layout
from fedtheory.maps.decomposition import Decomposition, Hadamard, Kronecker, LowRank
from fedtheory.papers.store import Spec
from fedtheory.problems.models.networks import network
from fedtheory.theory.mud.printed import named

NAN = math.nan
RATIO = 1 / 32
SCALES = ("quick", "medium", "paper")
LARGE = ("quick", "medium", "large", "paper")  # of the tables with Fashion-MNIST's columns
_MOST_SEEDS = 3  # of those columns at the large scale: a run takes a quarter of an hour

# Our runs.


@dataclass(frozen=True)
class Setting:
    """What a scale runs.

    Fields:
        what: in words.
        ran: of `verdicts.RUNS`.
        columns: of the tables that are run.
        rounds, sampled, steps, every: of a run.
        layers: which the decompositions decompose.
        whole: whether the ratio holds for all parameters, as in the public code, or for each decomposed layer.
        best: learning rate of each method, and a of its initialisation U(-a, a); NaN: it has none.
    """

    what: str
    ran: str
    columns: tuple[str, ...]
    rounds: int
    sampled: int
    steps: int
    every: int
    layers: str
    whole: bool
    best: dict[str, tuple[float, float]]


OTHERS: dict[str, Callable[[float, int], Algorithm]] = {  # without a: (learning rate, local steps)
    "FedAvg": FedAvg,
    "FedHM": lambda lr, steps: FedHM(lr, steps, LowRank(RATIO)),
    "EF21-P": lambda lr, steps: EF21P(lr, steps, RATIO),
    "FedBAT": FedBAT,
}
METHODS = {
    "FedLMT": LowRank(RATIO),
    "FedPara": Hadamard(RATIO),
    "FedMUD": LowRank(RATIO),
    "FedMUD+BKD": Kronecker(RATIO),
    "FedMUD+AAD": LowRank(RATIO, form="aad"),
    "FedMUD+BKD+AAD": Kronecker(RATIO, form="aad"),
    "FedMUD+F": LowRank(RATIO, form="freeze"),
    "FedMUD+BKD+F": Kronecker(RATIO, form="freeze"),
}
TENSOR = "FedPara, tensor form"  # Proposition 3 of its paper, for convolutions: mud/ratio alone runs it
DECOMPOSED = METHODS | {TENSOR: Hadamard(RATIO, kernel=3, tensor=True)}
ALONE = (0.003, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # without a
RATES = (0.01, 0.03, 0.1, 0.3)
TRIED: dict[str, list[tuple[float, float]]] = {  # (rate, a): sixteen for every method
    **{name: [(lr, NAN) for lr in ALONE] for name in OTHERS},
    **{
        name: [(lr, least * times) for lr in RATES for times in (1.0, 2.0, 4.0, 8.0)]
        for name, least in {
            "FedLMT": 0.025,
            "FedPara": 0.1,
            "FedMUD": 0.25,
            "FedMUD+BKD": 0.5,
            "FedMUD+AAD": 0.25,
            "FedMUD+BKD+AAD": 0.5,
            "FedMUD+F": 0.25,
            "FedMUD+BKD+F": 0.5,
        }.items()
    },
}
TUNING = {"quick": 10, "medium": 20, "large": 15}  # rounds on seed 7, which is not used again
TUNING_SEED = 7
SMOKE = {  # mud/tuning at the quick scale
    "FedAvg": (0.5, NAN),
    "FedHM": (0.2, NAN),
    "EF21-P": (0.1, NAN),
    "FedBAT": (0.1, NAN),
    "FedLMT": (0.3, 0.2),
    "FedPara": (0.3, 0.8),
    "FedMUD": (0.3, 0.5),
    "FedMUD+BKD": (0.3, 1.0),
    "FedMUD+AAD": (0.3, 0.5),
    "FedMUD+BKD+AAD": (0.01, 4.0),
    "FedMUD+F": (0.3, 0.5),
    "FedMUD+BKD+F": (0.1, 2.0),
}
TUNED = {  # and at the medium scale
    "FedAvg": (0.03, NAN),
    "FedHM": (0.025, NAN),
    "EF21-P": (0.025, NAN),
    "FedBAT": (0.04, NAN),
    "FedLMT": (0.01, 0.025),
    "FedPara": (0.1, 0.2),
    "FedMUD": (0.03, 0.5),
    "FedMUD+BKD": (0.03, 2.0),
    "FedMUD+AAD": (0.01, 2.0),
    "FedMUD+BKD+AAD": (0.01, 4.0),
    "FedMUD+F": (0.01, 2.0),
    "FedMUD+BKD+F": (0.01, 4.0),
}
AUTHORS = {"FedAvg": (0.03, NAN), "FedMUD+BKD+AAD": (0.01, 5.0)}  # in the public code, for every data set
START = TUNED | AUTHORS | {TENSOR: (0.1, 0.4)}  # the tensor form runs on Fashion-MNIST alone
NEAR: dict[str, list[tuple[float, float]]] = {  # (rate, a) on Fashion-MNIST: eight for every method, around START
    name: [(round(lr * times, 5), NAN) for times in (1 / 3, 2 / 3, 1, 1.5, 2, 3, 5, 10)]
    if name in OTHERS
    else [(round(lr * x, 5), a * y) for x in (1 / 3, 1, 3) for y in (0.5, 1, 2) if x > 0.5 or y > 0.5]
    for name, (lr, a) in START.items()
}
BEYOND = {  # tried afterwards: FedPara's best of NEAR lay at an end, and its level in Table 1 is contradicted
    "FedPara": [(0.01, 0.2), (0.05, 0.3), (0.1, 0.8), (0.3, 0.8), (0.3, 1.6), (1.0, 0.8), (1.0, 1.6)],
}
ON_FMNIST = {  # the best of them, in mud/tuning_fmnist
    "FedAvg": (0.03, NAN),
    "FedHM": (0.0375, NAN),
    "EF21-P": (0.025, NAN),
    "FedBAT": (0.02667, NAN),
    "FedLMT": (0.01, 0.025),
    "FedPara": (0.03333, 0.2),
    TENSOR: (0.3, 0.8),
    "FedMUD": (0.03, 0.5),
    "FedMUD+BKD": (0.09, 1.0),
    "FedMUD+AAD": (0.01, 1.0),
    "FedMUD+BKD+AAD": (0.01, 10.0),
    "FedMUD+F": (0.01, 1.0),
    "FedMUD+BKD+F": (0.03, 2.0),
}
SETTINGS = {
    "quick": Setting(
        "scikit-learn's digits instead of CIFAR-10, a perceptron 64-64-10 with both matrices decomposed, "
        "10 clients (Dirichlet 0.3), 5 sampled, 10 local steps of 32 images, 40 rounds; rates, a: best of mud/tuning",
        "smoke",
        ("CIFAR-10 N1", "CIFAR-10 N2", "CIFAR-10 IID"),
        rounds=40,
        sampled=5,
        steps=10,
        every=4,
        layers="matrices",
        whole=False,
        best=SMOKE,
    ),
    "medium": Setting(
        "20,000 of the 50,000 training images, resized to 16 x 16 pixels, and 2,000 test images; four convolutions "
        "where the paper has eight; 20 clients, 4 sampled, 16 local steps of 64 images, 60 rounds; learning rate and a "
        "(or learning rate alone): the best of sixteen settings for every method in mud/tuning, after 20 rounds on "
        "another seed",
        "reduced",
        ("CIFAR-10 N1",),
        rounds=60,
        sampled=4,
        steps=16,
        every=10,
        layers="inner",
        whole=True,
        best=TUNED,
    ),
    "paper": Setting(
        "the paper's; 24 local steps, three epochs of the average client. The paper prints the grids of rates and a, "
        "and not the choice; on Fashion-MNIST it is the best of eight settings for every method in "
        "mud/tuning_fmnist, after 15 rounds of N1 on another seed; elsewhere as the public code has them for FedAvg "
        "and FedMUD+BKD+AAD, the others' as at the medium scale",
        "paper's",
        named("N1", "N2"),
        rounds=200,
        sampled=10,
        steps=24,
        every=20,
        layers="inner",
        whole=True,
        best=START,
    ),
}
SETTINGS["large"] = replace(
    SETTINGS["medium"],
    what="Fashion-MNIST at the paper's scale, products and convolutions in bfloat16, which five seeds of the medium "
    "scale do not tell from float32 (mud/precision), with three seeds at most; CIFAR-10, where it is run, as at the "
    "medium scale",
    columns=("FMNIST N1", "FMNIST N2", "FMNIST IID", "CIFAR-10 N1"),
)
EIGHT = "eight layers"
SETTINGS[EIGHT] = replace(
    SETTINGS["paper"],
    what="the paper's eight-layer network, 100 clients of whom 10 are sampled, and 200 rounds on 20,000 of the 50,000 "
    "training images and all test images; nine local steps, three epochs of the average client; products and "
    "convolutions in bfloat16; rates and a as the public code has them for FedAvg and FedMUD+BKD+AAD, the others' as "
    "at the medium scale",
    ran="reduced",
    columns=("CIFAR-10 N1", "CIFAR-10 N2"),
    steps=9,
)
FULL = "eight layers, 49,923 images"
SETTINGS[FULL] = replace(
    SETTINGS[EIGHT],
    what="the paper's eight-layer network, clients, 200 rounds and 24 local steps. Of the 50,000 training images 77 "
    "are missing: 73 ships and 4 horses. Products and convolutions are in bfloat16; rates and a are those on 20,000 "
    "images",
    ran="paper's",
    steps=24,
)
DECIDING = ("FedAvg", "EF21-P", "FedBAT", "FedMUD+AAD", "FedMUD+BKD+AAD")  # within five points of FedAvg
EXTENT = {  # of the sweeps: values of s (None: never), factors on a, compression ratios
    "quick": {"s": (1, 4, None), "a": (0.1, 0.5, 1.0, 2.0, 4.0), "ratio": (1 / 32, 1 / 8)},
    "medium": {"s": (1, None), "a": (0.25, 1.0, 4.0, 16.0, 64.0), "ratio": (1 / 32, 1 / 8)},
    "paper": {
        "s": (1, 2, 4, 8, 16, None),
        "a": (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0),
        "ratio": (1 / 64, 1 / 32, 1 / 16, 1 / 8),
    },
}
READING = [
    "The ratio 1/32 holds for the whole network, as in the public code: the decomposed layers have a lower one. "
    "At the quick scale, with SVHN and CIFAR-100, it holds for each decomposed layer, since the layers that stay whole "
    "are more than a 32nd. First and last layer stay whole. As in the public code, convolutions are read row by row as "
    "(c_out k) x (c_in k) matrices, and Kronecker blocks are stacked. EF21-P and FedBAT compress all layers, in both "
    "directions.",
    "Where they do not vary, s = 1 and the ratio is 1/32. Images are not augmented, and averages over the participants "
    "are not weighted. A batch is normalised by its own moments; for evaluation they are gathered once from the "
    "clients. Accuracy is the mean of the last two records, since few clients with skewed labels per round let it "
    "jump. The public code takes the best round, which lies higher. The paper's numbers are means of five runs, by the "
    "public code on one partition, with standard deviations of 0.1 to 1.0 points.",
    "Intervals: mean and 95% Student interval over seeds, each with its own partition, start and sampling; methods "
    "are compared on the same ones.",
    "N1: Dirichlet labels; N2: three labels per client; IID: at random.",
]


def on_fmnist(column: str) -> bool:
    return column.split()[0] == "FMNIST"


def setting_of(column: str, scale: str) -> str:
    """The scale whose setting a column has: at the large one Fashion-MNIST has the paper's, the others the medium."""
    if scale != "large":
        return scale
    return "paper" if on_fmnist(column) else "medium"


def seeded(column: str, scale: str, seeds: int, name: str = "") -> int:
    """How many of the seeds a method is run with on a column: on 49,923 images one, of `DECIDING` in N1 all."""
    if scale == FULL and not (column == HERE and name in DECIDING):
        return min(seeds, 1)
    return min(seeds, _MOST_SEEDS) if scale == "large" and on_fmnist(column) else seeds


def tuned(name: str, column: str, scale: str) -> tuple[float, float]:
    """(rate, a) of a method on a column."""
    scale = setting_of(column, scale)
    return ON_FMNIST[name] if scale == "paper" and on_fmnist(column) else SETTINGS[scale].best[name]


def algorithm(name: str, column: str, scale: str, network: str | None = None, **changes: Any) -> Algorithm:
    """A method as this scale runs it on a column's network, or another one; `lr`, `s` and its decomposition's fields
    can be changed."""
    scale = setting_of(column, scale)
    setting, layers = SETTINGS[scale], SETTINGS[scale].layers
    rate, a = tuned(name, column, scale)
    rate, s = changes.pop("lr", rate), changes.pop("s", 1)
    if name in OTHERS:
        plain = OTHERS[name](rate, setting.steps)
        if isinstance(plain, FedHM):
            plain = replace(
                plain, decomposition=fitted(replace(plain.decomposition, layers=layers), column, scale, network)
            )
        return plain
    how = fitted(replace(DECOMPOSED[name], **{"a": a, "layers": layers} | changes), column, scale, network)
    if name in ("FedLMT", "FedPara", TENSOR):
        return FedMUD.of_model(rate, setting.steps, how)
    return FedMUD(rate, setting.steps, how, s)


def fitted(how: Decomposition, column: str, scale: str, network: str | None = None) -> Decomposition:
    """With the ratio that makes its own hold for the whole network, where the scale demands it.

    Where the layers that stay whole are more than that already (SVHN, CIFAR-100), it holds for each decomposed layer.
    """
    if not SETTINGS[setting_of(column, scale)].whole:
        return how
    try:
        return how.for_network(model(column, scale, network))
    except ValueError:
        return how


def model(column: str, scale: str, network: str | None = None) -> Layout:
    """Of a column's network, or another one, on its images."""
    of = problem(column, scale)
    side = of.get("side") or {"tiny_imagenet": 64, "fashion_mnist": 28}.get(of["data"], 32)
    channels = 1 if of["data"] == "fashion_mnist" else 3
    classes = {"cifar100": 100, "tiny_imagenet": 200}.get(of["data"], 10)
    return _layout(network or of["network"], (channels, side, side), classes)


@cache
def _layout(name: str, shape: tuple[int, int, int], classes: int) -> Layout:
    """Of a network."""
    return network(name, shape, classes).layout


HELD = {"CIFAR-10 N1": "medium", "FMNIST N1": "paper"}  # what `held` says at the large scale
HERE = "CIFAR-10 N1"  # of figures and tuning: the paper draws them on four data sets
DATA = {
    "FMNIST": "fashion_mnist",
    "SVHN": "svhn",
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
    "TinyImageNet": "tiny_imagenet",
}


def problem(column: str, scale: str) -> dict[str, Any]:
    """Options of `ImageClassification.load` for a column of the tables."""
    scale = setting_of(column, scale)
    name, partition = column.split()
    many = name == "CIFAR-100"
    split = {
        "N1": {"partition": "dirichlet", "alpha": 0.1 if many else 0.3},
        "N2": {"partition": "labels", "labels": 10 if many else 3},
        "IID": {"partition": "iid"},
    }[partition]
    if scale == "quick":
        return {"data": "digits", "network": "mlp", "batch": 32, **split}
    if scale == "medium":
        small = {"clients": 20, "partial": True, "side": 16, "tested": 2000}
        return {"data": "cifar10", "network": "fedmud-cnn4", "batch": 64, **small, **split}
    network = "fedmud-cnn8" if name.startswith("CIFAR") else "fedmud-cnn4"
    part = {"partial": 49_923 if scale == FULL else True, "precision": "bf16"} if scale in (EIGHT, FULL) else {}
    return {"data": DATA[name], "network": network, "clients": 100, "batch": 64, "std": 0.01, **part, **split}


def shown(column: str, scale: str) -> str:
    """A printed column, and the data that this scale runs in its place; at the quick scale these data alone."""
    data = problem(column, scale)["data"]
    if scale == "quick":
        return on(column, scale)
    return column if DATA[column.split()[0]] == data else f"{column} (run: {data})"


def on(column: str, scale: str) -> str:
    """The data that this scale runs for a column of a figure, and the partition."""
    return f"{problem(column, scale)['data']} {column.split()[1]}"


def spec(
    how: Algorithm,
    column: str,
    scale: str,
    seed: int,
    rounds: int | None = None,
    every: int | None = None,
    **options: Any,
) -> Spec:
    """One run; at the large scale a run of the paper's scale is in bfloat16."""
    if scale == "large" and setting_of(column, scale) == "paper":
        options = {"precision": "bf16", **options}
    scale = setting_of(column, scale)
    setting = SETTINGS[scale]
    if rounds is None:
        halved = scale == "paper" and column.split()[0] in ("FMNIST", "SVHN")
        rounds = setting.rounds // 2 if halved else setting.rounds
    chosen = tuple(sorted((problem(column, scale) | {"moments": "first"} | options).items()))
    every, dtype = min(every or setting.every, rounds), "float32"
    return Spec(how, "images", chosen, rounds, seed, setting.sampled, every, dtype, ("accuracy",))


def tuning(names: Sequence[str], scale: str, column: str = HERE) -> str:
    """Where rates and a of these methods are from, as `verdicts.TUNINGS` says it."""
    theirs = scale in ("paper", EIGHT, FULL) and not on_fmnist(column) and AUTHORS.keys() >= set(names)
    return "authors' files" if theirs else "ours"


def words(scale: str, seeds: int, names: Sequence[str] = (*OTHERS, *METHODS), column: str = HERE) -> dict[str, Any]:
    """Provenance of a result, with the methods as they run on a column."""
    if scale == "large":
        parts = {part: words(part, seeds, names, column) for column, part in HELD.items()}
        parts["paper"]["seeds"] = seeded("FMNIST N1", scale, seeds)
        return {"scale in words": SETTINGS[scale].what, **parts}
    setting, one = SETTINGS[scale], spec(algorithm(names[0], column, scale), column, scale, 0)
    numbers = {"rounds": one.rounds} | {name: getattr(setting, name) for name in ("sampled", "steps", "layers")}
    methods = {name: repr(algorithm(name, column, scale)) for name in names}
    return {"scale in words": setting.what, **numbers, "methods": methods, "seeds": seeds}


def notes(scale: str, columns: Sequence[str] = (HERE,)) -> list[str]:
    """What is said of an item with these columns."""
    within = {setting_of(column, scale) for column in columns}
    parts = [part for part in SETTINGS if part == scale or part in within]
    return [*(f"Runs{'' if part == scale else f', {part}'}: {SETTINGS[part].what}." for part in parts), *READING]
