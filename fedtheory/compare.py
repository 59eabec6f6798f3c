"""Which methods are compared on what: how each is built for a problem, and how its learning rate is chosen.

One rule for all. A method that compresses is asked to keep the same share of the numbers, `RATIO`; what crosses is
counted whatever it asked for. The learning rate is tuned: equally many values for each method, a factor of about three
apart, and further ones, by the same rule for all, where the best lies at an end; a full run each on a seed that is not
used again, judged by images that no client trains on or, where there are none, by the training objective. Every other
hyperparameter stands as in the papers that compare with the method.
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedtheory.core import checks, registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.models.networks import network

RATIO = 1 / 32  # FedMUD's, and FLSS's for its rivals
TUNING_SEED = 100
SEEDS = {"quick": 3, "medium": 5}
P = 10  # perturbations of zeroth-order methods (DeComFL, Table 2)


@dataclass(frozen=True)
class Task:
    """A problem, and how long every method runs on it.

    Fields:
        name: of the task.
        problem, options, dtype: as `papers.store.Spec` has them.
        layout: of the model.
        rounds, sampled, local_steps: of every run; `dropout`: as in `fedtheory.run`.
        rates: learning rates that are tried, falling; a method may scale them all by its `Method.rate`.
        level: the accuracy or error by which methods' rounds are compared.
        files: whether it reads files that the package does not bring.
        perturbations: of zeroth-order methods.
        judged: what is compared on a problem of another distribution: "error", "accuracy" or "loss".
        networks: whether a network stands behind such a problem's losses.
    """

    name: str
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
    perturbations: int = P
    judged: str = ""
    networks: bool = False

    @property
    def metric(self) -> str:
        """What is compared: accuracy on the test images, ||x - x*|| / ||x*||, or the training loss."""
        return self.judged or ("accuracy" if self.problem == "images" else "error")

    def offers(self, need: str) -> bool:
        """Whether a method that needs "matrices" or "networks" (or nothing, "") runs here."""
        if need == "matrices":
            return any(layer.rows > 1 and layer.cols > 1 for layer in self.layout.layers)
        return need == "" or self.problem == "images" or self.networks

    def ranks(self, ratio: float) -> tuple[int, ...]:
        """Rows of a basis for each layer."""
        return tuple(math.ceil(ratio * layer.rows) for layer in self.layout.layers)


def _images(name: str, net: str, shape: tuple[int, int, int], rounds: int, **options: Any) -> Task:
    """Twenty clients with unequal label shares, a quarter of them in each round."""
    wanted = {"data": name, "network": net, "clients": 20, "partition": "dirichlet", "alpha": 0.3, "batch": 32}
    layout, rates = network(net, shape, 10).layout, (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
    level = {"digits": 0.8, "mnist": 0.8, "fashion_mnist": 0.7, "cifar10": 0.3}[name]
    return Task(name, "images", wanted | options, layout, rounds, 5, rates, level, files=name != "digits")


MEDIUM = {
    task.name: task
    for task in (
        Task(
            "quadratics",
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
            "ssf",
            {"het": 0.5},
            Layout.single(100, 10),
            rounds=100,
            sampled=10,
            rates=(0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
            level=0.1,
            dtype="float64",
        ),
        _images("digits", "mlp", (1, 8, 8), 60),
        _images("mnist", "mlp", (1, 28, 28), 60, subset=6000, tested=2000),
        _images("fashion_mnist", "mlp", (1, 28, 28), 60, subset=6000, tested=2000),
        _images(
            "cifar10",
            "flss-cnn",
            (3, 16, 16),
            40,
            subset=4000,
            tested=2000,
            partial=True,
            side=16,
        ),
    )
}


def _further(offer: registry.Offer) -> Task:
    """The task on a problem of another distribution: all clients take part."""
    problem = offer.make(Key(0), "cpu", None)
    known = problem.constants.x_star is not None
    return Task(
        offer.name,
        offer.name,
        {},
        problem.layout,
        offer.rounds,
        problem.n,
        offer.rates,
        offer.level,
        dtype=str(problem.dtype).removeprefix("torch."),
        judged="error" if known else "accuracy" if "accuracy" in problem.metrics else "loss",
        networks=isinstance(problem, ImageClassification),
    )


FURTHER: dict[str, registry.Offer] = {}  # name -> of another distribution, as far as its problem can be made
for _name, _offer in registry.further_problems().items():
    if _offer.rates:
        try:
            if _name in MEDIUM:
                raise ValueError("a task has its name")
            MEDIUM[_name] = _further(_offer)
        except Exception as error:
            warnings.warn(
                f"left out: the problem {_name} cannot be made ({type(error).__name__}: {error})", stacklevel=1
            )
        else:
            FURTHER[_name] = _offer
QUICK = {
    name: replace(task, rounds=max(20, task.rounds // 5), rates=task.rates[::2], perturbations=P // 2)
    for name, task in MEDIUM.items()
    if not task.files
}
QUICK["regression"] = replace(  # so small that 40 rounds tell the methods apart
    QUICK["regression"],
    options={"het": 0.5, "n": 10, "d": 32, "m": 4},
    layout=Layout.single(32, 4),
    rounds=40,
    sampled=5,
)
QUICK_TITLES = {"frontier/regression": "Matrix regression, 32 x 4"}  # of items that are smaller at the quick scale
TASKS = {"quick": QUICK, "medium": MEDIUM}

FAMILIES = registry.FAMILIES


@dataclass(frozen=True)
class Asked:
    """What a method is built from for a task (see `registry.Asked`)."""

    task: Task
    lr: float
    ratio: float
    perturbations: int = P

    @property
    def local_steps(self) -> int:
        return self.task.local_steps

    @property
    def rounds(self) -> int:
        return self.task.rounds

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.task.ranks(self.ratio)

    def __getattr__(self, name: str) -> Any:
        registry.no_option(name, ("lr", "local_steps", "ratio", "rounds", "perturbations", "ranks"))


@dataclass(frozen=True)
class Method:
    """A method as it is compared: its entry in the registry, built for a task."""

    entry: registry.Method

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def family(self) -> str:
        return self.entry.family

    @property
    def needs(self) -> str:
        return self.entry.needs

    @property
    def rate(self) -> float:
        return self.entry.rate

    def make(self, task: Task, lr: float, ratio: float) -> Algorithm:
        """The algorithm with this learning rate and compression ratio."""
        return self.entry.make(Asked(task, lr, ratio, task.perturbations))

    def rates(self, task: Task) -> list[float]:
        """Learning rates that are tried."""
        return [float(f"{self.rate * rate:.2g}") for rate in task.rates]

    def compresses(self, task: Task) -> bool:
        """Whether the ratio changes anything."""
        return self.make(task, 0.1, 1 / 2) != self.make(task, 0.1, 1 / 32)


def _methods() -> Iterator[Method]:
    """The federated methods. One of another distribution that makes no algorithm is left out, with a warning."""
    others, tasks = registry.others_methods(), {"": "quadratics", "matrices": "regression", "networks": "digits"}
    for entry in registry.methods().values():
        try:
            if entry.name in others:
                Method(entry).make(QUICK[tasks[entry.needs]], 0.1, 1 / 8)
        except Exception as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
            continue
        if not entry.pooled:
            yield Method(entry)


METHODS = {method.name: method for method in _methods()}
ABSENT = {name: "one trainer, so nothing crosses" for name, entry in registry.methods().items() if entry.pooled}


def methods(names: list[str] | None = None) -> list[Method]:
    """Methods by name; all where none is named.

    Raises ValueError for an unknown name, or one that stands twice.
    """
    names = [checks.alike(name, (*METHODS, *ABSENT)) for name in names or ()]
    for name in names:
        if names.count(name) > 1:
            checks.reject("methods", name, "each method once", "name it once")
        if name in ABSENT:
            checks.reject("methods", name, f"a method that is compared ({ABSENT[name]})", "leave it out")
    return [METHODS[checks.choice("methods", name, METHODS)] for name in names or METHODS]
