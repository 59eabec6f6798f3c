"""Which methods are compared on what: how each is built for a problem, and how its learning rate is chosen.

One rule for all. A method that compresses is asked to keep the same share of the numbers, `RATIO`; what crosses is
counted whatever it asked for. The learning rate is tuned: equally many values for each method, a factor of about three
apart, and further ones, by the same rule for all, where the best lies at an end; a full run each on a seed that is not
used again, judged by images that no client trains on or, where there are none, by the training objective. Every other
hyperparameter stands as in the papers that compare with the method.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fedtheory import checks
from fedtheory.algorithm import Algorithm
from fedtheory.algorithms import (
    BAFFLE,
    DGC,
    EF21P,
    FLSS,
    LBGM,
    MOON,
    SSF,
    STC,
    DeComFL,
    FedAvg,
    FedBAT,
    FedCom,
    FedDC,
    FedDyn,
    FedGen,
    FedHM,
    FedMUD,
    FedNTD,
    FedProx,
    FedSub,
    FedZO,
    FetchSGD,
    FlexLoRA,
    ProjectedFedAvg,
    Scaffold,
    SignSGD,
    TopK,
)
from fedtheory.decomposition import Decomposition, Hadamard, Kronecker, LowRank
from fedtheory.layout import Layout
from fedtheory.models import network
from fedtheory.subspace import Coordinate, Projection, Spherical

RATIO = 1 / 32  # FedMUD's, and FLSS's for its rivals
TUNING_SEED = 100
SEEDS = {"quick": 3, "medium": 5}


@dataclass(frozen=True)
class Task:
    """A problem, and how long every method runs on it.

    Fields:
        name, title: of the task.
        problem, options, dtype: as `figures.store.Spec` has them.
        layout: of the model.
        rounds, sampled, local_steps: of every run; `dropout`: as in `fedtheory.run`.
        rates: learning rates that are tried, falling; a method may scale them all by its `Method.rate`.
        level: the accuracy or error by which methods' rounds are compared.
        files: whether it reads files that the package does not bring.
    """

    name: str
    title: str
    problem: str
    options: Mapping[str, Any]
    layout: Layout
    rounds: int
    sampled: int
    rates: tuple[float, ...]
    level: float
    local_steps: int = 5
    dtype: str = "float32"
    dropout: float = 0.0
    files: bool = False

    @property
    def metric(self) -> str:
        """What is compared: accuracy on the test images, or ||x - x*|| / ||x*||."""
        return "accuracy" if self.problem == "images" else "error"

    def offers(self, need: str) -> bool:
        """Whether a method that needs "matrices" or "networks" (or nothing, "") runs here."""
        if need == "matrices":
            return any(layer.rows > 1 and layer.cols > 1 for layer in self.layout.layers)
        return need == "" or self.problem == "images"

    def ranks(self, ratio: float) -> tuple[int, ...]:
        """Rows of a basis for each layer."""
        return tuple(math.ceil(ratio * layer.rows) for layer in self.layout.layers)


def _images(name: str, net: str, shape: tuple[int, int, int], title: str, rounds: int, **options: Any) -> Task:
    """Twenty clients with unequal label shares, a quarter of them in each round."""
    wanted = {"data": name, "network": net, "clients": 20, "partition": "dirichlet", "alpha": 0.3, "batch": 32}
    layout, rates = network(net, shape, 10).layout, (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
    level = {"digits": 0.8, "mnist": 0.8, "cifar10": 0.3}[name]
    return Task(name, title, "images", wanted | options, layout, rounds, 5, rates, level, files=name != "digits")


MEDIUM = {
    task.name: task
    for task in (
        Task(
            "quadratics",
            "Heterogeneous quadratics, d = 50",
            "quadratic",
            {"n": 20, "d": 50},
            Layout.single(50),
            rounds=200,
            sampled=10,
            rates=(0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
            level=0.1,
            dtype="float64",
        ),
        Task(
            "regression",
            "Matrix regression, 100 x 10",
            "ssf",
            {"het": 0.5},
            Layout.single(100, 10),
            rounds=100,
            sampled=10,
            rates=(0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
            level=0.1,
            dtype="float64",
        ),
        _images("digits", "mlp", (1, 8, 8), "Digits, a perceptron 64-64-10", 60),
        _images("mnist", "mlp", (1, 28, 28), "MNIST, a perceptron", 60, subset=6000, tested=2000),
        _images(
            "cifar10",
            "flss-cnn",
            (3, 16, 16),
            "CIFAR-10, two convolutions, 16 x 16 pixels",
            40,
            subset=4000,
            tested=2000,
            partial=True,
            side=16,
        ),
    )
}
QUICK = {
    name: replace(task, rounds=max(20, task.rounds // 5), rates=task.rates[::2])
    for name, task in MEDIUM.items()
    if not task.files
}
TASKS = {"quick": QUICK, "medium": MEDIUM}

Make = Callable[[Task, float, float], Algorithm]


@dataclass(frozen=True)
class Method:
    """How a method is built.

    Fields:
        name, family: of the method.
        make: (task, learning rate, compression ratio) -> algorithm.
        needs: "matrices" in the model, "networks" on images, or "" for any problem.
        rate: factor on all learning rates that are tried.
    """

    name: str
    family: str
    make: Make = field(repr=False)
    needs: str = ""
    rate: float = 1.0

    def rates(self, task: Task) -> list[float]:
        """Learning rates that are tried."""
        return [float(f"{self.rate * rate:.2g}") for rate in task.rates]

    def compresses(self, task: Task) -> bool:
        """Whether the ratio changes anything."""
        return self.make(task, 0.1, 1 / 2) != self.make(task, 0.1, 1 / 32)


FAMILIES = ("full", "compressed", "low rank", "subspace", "zeroth order")
P = 10  # perturbations of zeroth-order methods (DeComFL, Table 2)


def _plain(kind: Callable[..., Algorithm], *options: Any, **named: Any) -> Make:
    """A method without compression ratio: options behind learning rate and local steps."""
    return lambda task, lr, ratio: kind(lr, task.local_steps, *options, **named)


def _sparse(kind: Callable[..., Algorithm], **named: Any) -> Make:
    """A method that takes the ratio itself."""
    return lambda task, lr, ratio: kind(lr, task.local_steps, ratio, **named)


def _factors(make: Callable[..., Algorithm], how: Callable[..., Decomposition], a: float, *form: str) -> Make:
    """A method that decomposes every matrix, factors drawn from U(-a, a)."""
    return lambda task, lr, ratio: make(lr, task.local_steps, how(ratio, a, *form, layers="matrices"))


def _rows(make: Callable[..., Algorithm], basis: Callable[..., Projection], *scale: str, **named: Any) -> Make:
    """A method in a random subspace, of the same share of every layer's rows."""
    return lambda task, lr, ratio: make(lr, task.local_steps, basis(task.ranks(ratio), *scale), **named)


def _flss(task: Task, lr: float, ratio: float) -> Algorithm:
    return FLSS(lr, task.local_steps, rank=max(1, task.rounds // 10), warm_up=task.rounds // 2)


# Values with a source: FLSS, App. D (FedProx to STC), FLSS, Table 3 (FetchSGD's size), DeComFL (FedCom's 8 bits).
FULL = {
    "FedAvg": _plain(FedAvg),
    "SCAFFOLD": _plain(Scaffold),
    "FedProx": _plain(FedProx, mu=0.01),
    "FedDyn": _plain(FedDyn, alpha=0.5),
    "FedDC": _plain(FedDC, alpha=0.5),
    "MOON": _plain(MOON, mu=0.01, temperature=1.0),
    "FedNTD": _plain(FedNTD, beta=0.001, temperature=1.0),
    "FedGen": _plain(FedGen, generator_lr=0.005, server_steps=50),  # 1000 there, for which time was lacking
}
COMPRESSED = {
    "SignSGD": _plain(SignSGD),
    "LBGM": _plain(LBGM, delta=0.05),
    "FedCom": _plain(FedCom, bits=8),
    "FedBAT": _plain(FedBAT),
    "Top-k": _sparse(TopK),
    "STC": _sparse(STC),
    "DGC": _sparse(DGC),
    "FetchSGD": _sparse(FetchSGD, size=0.25),
    "EF21-P": _sparse(EF21P),
}
LOW_RANK = {
    "FedMUD": _factors(FedMUD, LowRank, 1.0),
    "FedMUD+BKD": _factors(FedMUD, Kronecker, 1.0),
    "FedMUD+AAD": _factors(FedMUD, LowRank, 1.0, "aad"),
    "FedMUD+BKD+AAD": _factors(FedMUD, Kronecker, 1.0, "aad"),
    "FedLMT": _factors(FedMUD.of_model, LowRank, 0.8),
    "FedPara": _factors(FedMUD.of_model, Hadamard, 0.9),
    "FedHM": _factors(FedHM, LowRank, 1.0),
    "FedLoRU": _factors(partial(FedMUD, reset_every=10), LowRank, 1.0),
    "FlexLoRA": _factors(lambda lr, steps, how: FlexLoRA(lr, steps, (how,)), LowRank, 1.0),
}
SUBSPACE = {
    "FedSub": _rows(FedSub, Coordinate),
    "FedAvg-CD": _rows(FedSub, Coordinate, dual=False),
    "SSF": _rows(SSF, Spherical, "orthonormal"),
    "FLSS": _flss,
    "ProjectedFedAvg": lambda task, lr, ratio: ProjectedFedAvg(lr, task.local_steps, max(task.ranks(ratio))),
}
ZEROTH = {
    "DeComFL": _plain(DeComFL, P),
    "FedZO": _plain(FedZO, P),
    "BAFFLE": lambda task, lr, ratio: BAFFLE(lr, P),
}
NETWORK, MATRICES = ("MOON", "FedNTD", "FedGen"), (*LOW_RANK, "ProjectedFedAvg")
NEEDS = dict.fromkeys(NETWORK, "networks") | dict.fromkeys(MATRICES, "matrices")
SLOW = (*ZEROTH, "DGC", "FetchSGD", "EF21-P")  # momentum 0.9, entries times 1/ratio: their steps are longer
MAKERS = dict(zip(FAMILIES, (FULL, COMPRESSED, LOW_RANK, SUBSPACE, ZEROTH)))
METHODS = {
    name: Method(name, family, make, NEEDS.get(name, ""), 0.1 if name in SLOW else 1.0)
    for family, makers in MAKERS.items()
    for name, make in makers.items()
}

ABSENT = {"MeZO": "one trainer, so nothing crosses"}


def methods(names: list[str] | None = None) -> list[Method]:
    """Methods by name; all where none is named.

    Raises ValueError for an unknown name.
    """
    for name in names or ():
        if name in ABSENT:
            checks.reject("methods", name, f"a method that is compared ({ABSENT[name]})", "leave it out")
    return [METHODS[checks.choice("methods", name, METHODS)] for name in names or METHODS]
