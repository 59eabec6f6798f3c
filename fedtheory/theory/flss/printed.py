"""FLSS: what its appendix prints (Tables 1 to 4, the settings of App. D), and what its methods send."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.feddyn import FedDyn
from fedtheory.algorithms.fedgen import FedGen
from fedtheory.algorithms.fedntd import FedNTD
from fedtheory.algorithms.fedprox import FedProx
from fedtheory.algorithms.fetchsgd import FetchSGD
from fedtheory.algorithms.flss import FLSS, Up
from fedtheory.algorithms.lbgm import LBGM
from fedtheory.algorithms.moon import MOON
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.algorithms.signsgd import SignSGD
from fedtheory.algorithms.stc import STC
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.message import cost
from fedtheory.maps.compress import Sketch, Ternary, count_kept
from fedtheory.maps.signs import Signs

NAN = math.nan
UNITS = {"M": 1e6, "G": 1e9}
# Test accuracies in percent. Table 1: (what is projected, sr); CIFAR-10, ResNet-18.
TABLE1 = {
    ("update", 1): 57.34,
    ("update", 3): 60.02,
    ("gradient", 1): 55.98,
    ("gradient", 3): 57.58,
    ("gradient", 10): 56.58,
    ("both", 1): 56.10,
    ("both", 3): 57.01,
    ("both", 10): 56.28,
}
# Table 2: beta = 0.1, 0.5, 1 on Fashion-MNIST, CIFAR-100 (ResNet-18), Tiny-ImageNet. NaN: a dash.
TABLE2 = {
    "FedAvg": (85.06, 91.02, 91.18, 23.04, 26.42, 27.43, 14.26, 15.61, 18.47),
    "FedProx": (84.06, 91.03, 91.14, 23.00, 26.25, 27.02, 14.12, 15.63, 18.35),
    "Moon": (85.03, 91.18, 91.29, 23.08, 26.54, 27.10, 15.21, 15.72, 18.51),
    "FedDyn": (83.11, 90.68, 90.92, 24.41, 28.65, 29.09, 15.63, NAN, 19.07),
    "FedGen": (84.27, 91.17, 91.25, 23.42, 26.24, 27.85, 15.44, 15.80, 18.72),
    "FedNTD": (84.96, 91.15, 91.36, 22.84, 26.51, 27.15, 15.43, 15.77, 18.39),
    "FedAvg+FLSS": (86.25, 91.64, 91.29, 24.31, 29.32, 30.68, 17.01, 17.84, 19.00),
    "Fetchsgd": (79.79, 90.67, 90.56, 21.99, 24.43, 25.35, 14.12, 14.46, 16.16),
    "Signsgd+EF": (80.79, 90.76, 90.37, 22.57, 25.99, 26.01, 14.02, 14.20, 16.86),
    "STC": (80.40, 85.33, 85.78, 22.38, 25.92, 26.42, 13.86, 14.59, 15.93),
    "Sign+EF+FLSS": (81.32, 91.05, 91.02, 23.01, 27.59, 26.17, 13.20, 15.04, 17.32),
}
# Table 3: 1, 5, 10 local epochs on CIFAR-10, beta = 0.5: with the CNN, with ResNet-18.
TABLE3 = {
    "FedAvg": (59.88, 65.29, 65.31, 48.51, 56.17, 58.88),
    "FedProx": (59.77, 65.38, 65.11, 48.44, 56.03, 58.27),
    "Moon": (59.93, 65.33, 65.26, 48.74, 56.28, 59.24),
    "FedGen": (60.03, 65.61, 65.12, 49.23, 56.24, 59.04),
    "FedNTD": (60.42, 65.52, 65.15, 49.64, 56.42, 59.06),
    "FedAvg+FLSS": (62.31, 67.19, 65.53, 51.92, 57.34, 58.93),
    "Fetchsgd": (52.20, 59.83, 58.57, NAN, 54.18, 56.04),
    "Signsgd+EF": (59.21, 64.27, 63.95, 47.22, 54.23, 55.68),
    "STC": (59.55, 59.02, 62.38, 47.91, 55.03, 55.35),
    "Sign+EF+FLSS": (59.01, 64.69, 64.06, 49.02, 54.77, 56.81),
}
# Table 3's column Com.cost: (CNN, ResNet-18).
COSTS3 = {
    "FedAvg": ("0.17 G", "2.23 G"),
    "FedProx": ("0.17 G", "2.23 G"),
    "Moon": ("0.17 G", "2.23 G"),
    "FedNTD": ("0.17 G", "2.23 G"),
    "FedAvg+FLSS": ("35.14 M", "0.45 G"),
    "Fetchsgd": ("43.92 M", "0.56 G"),
    "Signsgd+EF": ("5.49 M", "69.88 M"),
    "STC": ("5.49 M", "69.88 M"),
    "Sign+EF+FLSS": ("1.11 M", "14.0 M"),
}
PARAMETERS = {"CNN": 878_538, "ResNet-18": 11_181_642, "CNN, 100 classes": 924_708}
# Table 4: beta = 0.1, 0.5, 1 on CIFAR-10 and on CIFAR-100, with the cost.
TABLE4 = {
    "LBGM": (56.37, 64.42, 65.15, 27.70, 28.81, 30.01),
    "FedAvg+FLSS": (59.44, 67.19, 69.82, 28.41, 31.47, 31.61),
}
COSTS4 = {
    "LBGM": ("0.21 G", "0.20 G", "0.20 G", "0.27 G", "0.27 G", "0.26 G"),
    "FedAvg+FLSS": ("0.21 G", "0.21 G", "0.21 G", "0.22 G", "0.22 G", "0.22 G"),
}
FLSS_BASES = {"FedAvg+FLSS": "fedavg", "Sign+EF+FLSS": "signsgd"}
BASELINES: dict[str, Callable[..., Algorithm]] = {  # App. D; momentum 0
    "FedAvg": FedAvg,
    "FedProx": partial(FedProx, mu=0.01),
    "Moon": partial(MOON, mu=0.01, temperature=1.0),
    "FedDyn": partial(FedDyn, alpha=0.5),
    "FedGen": partial(FedGen, generator_lr=0.005),
    "FedNTD": partial(FedNTD, beta=0.001, temperature=1.0),
    "Fetchsgd": partial(FetchSGD, ratio=1 / 32, size=1 / 4, momentum=0.0, clear="zero"),
    "Signsgd+EF": SignSGD,
    "STC": partial(STC, ratio=1 / 32),
    "LBGM": partial(LBGM, delta=0.05),
}


@dataclass(frozen=True)
class Setting:
    """What a scale runs. The appendix names no clients, rates or batches (open points 2-4): these are ours.

    Fields:
        data, fashion: data sets in the places of CIFAR-10 and of Fashion-MNIST.
        network, deep: networks in the places of the CNN and of Table 1's ResNet-18.
        spectra: in the places of Figures 1b-1d: a network without shortcuts, a ResNet, a deeper one.
        options: of the problem, besides.
        lr, epoch: rate, and local steps that make one epoch of a mean client.
        sampled, rounds, warm_up, rank: M, T, T0, R. In each, R = T0 / 5 and T0 = T / 2, as 40, 200, 400.
        embedded: test images of Figure 2.
        generator: server steps of FedGen in a round; App. D: 1000.
    """

    data: str
    fashion: str
    network: str
    deep: str
    spectra: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    lr: float
    epoch: int
    sampled: int
    rounds: int
    warm_up: int
    rank: int
    embedded: int
    generator: int = 50

    @property
    def every(self) -> int:
        """Rounds between records."""
        return self.rounds // 10


PAPER = Setting(
    "cifar10",
    "fashion_mnist",
    "flss-cnn",
    "resnet18",
    ("flss-cnn", "resnet18", "resnet50"),
    (("batch", 50), ("clients", 100)),
    0.05,
    10,
    10,
    400,
    200,
    40,
    2000,
    1000,
)


def method(name: str, at: Setting, epochs: int = 5, **options: Any) -> Algorithm:
    """A method of the tables with so many local epochs."""
    steps = epochs * at.epoch
    if name in FLSS_BASES:
        return FLSS(at.lr, steps, at.rank, at.warm_up, refresh=5, base=FLSS_BASES[name], **options)
    if name == "FedGen":
        options["server_steps"] = at.generator
    return BASELINES[name](at.lr, steps, **options)


def sent(algorithm: Algorithm, d: int, rounds: range) -> float:
    """32-bit words that a client uploads in these rounds, on the messages it sends (one scale for all signs)."""

    def message(projected: bool) -> Up | Signs | Sketch | Ternary:
        blank = partial(torch.empty, dtype=torch.float32, device="meta")
        if isinstance(algorithm, FetchSGD):
            return Sketch(blank(1, algorithm.rows, math.ceil(algorithm.size * d / algorithm.rows)))
        if isinstance(algorithm, STC):
            return Ternary(blank(1, 1), blank(1, count_kept(algorithm.ratio, d)))
        if not isinstance(algorithm, FLSS):
            p, signs = blank(1, d), isinstance(algorithm, SignSGD)
        else:
            p = blank(1, algorithm.rank if projected else d)
            first = isinstance(algorithm, FLSSReading) and algorithm.order == "sign"
            signs = algorithm.base == "signsgd" and not (projected and first)
        return Signs.of(p, [p.shape[1]]) if signs else Up(p)

    kinds = Counter(isinstance(algorithm, FLSS) and algorithm.projects(t) for t in rounds)
    return sum(count * cost(message(projected)).bytes for projected, count in kinds.items()) / 4


def printed_cost(text: str) -> float:
    """ "35.14 M" -> 35.14e6"""
    value, unit = text.split()
    return float(value) * UNITS[unit]


def fits(text: str, words: float) -> str:
    """How a count becomes the printed text."""
    value, unit = text.split()
    step = 10.0 ** -len(value.partition(".")[2])
    excess = words / UNITS[unit] - float(value)
    if abs(excess) <= step / 2:
        return "rounded"
    return "cut off, not rounded" if 0 <= excess < step else "neither rounded nor cut off"
