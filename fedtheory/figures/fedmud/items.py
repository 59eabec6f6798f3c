"""FedMUD on images (paper Sec. 5 and App. A): Tables 1-5, Figures 2-7, and how the initialisation was chosen."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.algorithms.ef21p import EF21P
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedbat import FedBAT
from fedtheory.algorithms.fedhm import FedHM
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.records import Cell, Row, Table, behind
from fedtheory.figures import style
from fedtheory.figures.budget import Budget
from fedtheory.figures.store import Item, Result, Runner, Spec, interval
from fedtheory.maps.decomposition import Decomposition, Hadamard, Kronecker, LowRank
from fedtheory.theory.fedmud.printed import TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, named

NAN = math.nan
RATIO = 1 / 32
SCALES = ("quick", "medium", "paper")

# Our runs.


@dataclass(frozen=True)
class Setting:
    """What a scale runs.

    Fields:
        label: in reasons.
        what: in words.
        columns: of the tables that are run.
        rounds, sampled, steps, every: of a run.
        layers: which the decompositions decompose.
        rates: learning rate of each method.
        a: initialisation U(-a, a) of each method.
    """

    label: str
    what: str
    columns: tuple[str, ...]
    rounds: int
    sampled: int
    steps: int
    every: int
    layers: str
    rates: dict[str, float]
    a: dict[str, float]


OTHERS: dict[str, Callable[[float, int, str], Algorithm]] = {  # without a: (learning rate, local steps, layers)
    "FedAvg": lambda lr, steps, layers: FedAvg(lr, steps),
    "FedHM": lambda lr, steps, layers: FedHM(lr, steps, LowRank(RATIO, layers=layers)),
    "EF21-P": lambda lr, steps, layers: EF21P(lr, steps, RATIO),
    "FedBAT": lambda lr, steps, layers: FedBAT(lr, steps),
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
TRIED = {  # on seed 7: learning rate of methods without a, for the others a at learning rate 0.1; lowest value first
    "FedAvg": (0.01, 0.03, 0.1, 0.3),
    "FedHM": (0.01, 0.03, 0.1, 0.3),
    "EF21-P": (0.003, 0.01, 0.03, 0.1, 0.3),
    "FedBAT": (0.01, 0.03, 0.1, 0.3),
    "FedLMT": (0.1, 0.2, 0.4, 0.8),
    "FedPara": (0.225, 0.45, 0.9, 1.8),
    "FedMUD": (0.25, 0.5, 1.0, 2.0),
    "FedMUD+BKD": (0.5, 1.0, 2.0),
    "FedMUD+AAD": (0.25, 0.5, 1.0, 2.0),
    "FedMUD+BKD+AAD": (0.5, 1.0, 2.0, 4.0),
    "FedMUD+F": (0.5, 1.0, 2.0),
    "FedMUD+BKD+F": (0.5, 1.0, 2.0, 4.0),
}
TUNING = {"seed": 7, "rounds": 10}
RATES = dict.fromkeys(METHODS, 0.1)
SMOKE = {  # the best of them: mud/tuning, at the quick scale on the digits
    "FedLMT": 0.8,
    "FedPara": 0.9,
    "FedMUD": 1.0,
    "FedMUD+BKD": 2.0,
    "FedMUD+AAD": 1.0,
    "FedMUD+BKD+AAD": 1.0,
    "FedMUD+F": 0.5,
    "FedMUD+BKD+F": 2.0,
}
TUNED = {  # and at the medium scale
    "FedLMT": 0.1,
    "FedPara": 0.45,
    "FedMUD": 0.25,
    "FedMUD+BKD": 1.0,
    "FedMUD+AAD": 0.5,
    "FedMUD+BKD+AAD": 1.0,
    "FedMUD+F": 1.0,
    "FedMUD+BKD+F": 0.5,
}
SETTINGS = {
    "quick": Setting(
        "smoke: scikit-learn's digits in the place of CIFAR-10, a perceptron",
        "scikit-learn's digits in the place of CIFAR-10, a perceptron 64-64-10 with both matrices decomposed, "
        "10 clients (Dirichlet 0.3), 5 sampled, 10 local steps of 32 images, 40 rounds; rates, a: best of mud/tuning",
        ("CIFAR-10 N1",),
        rounds=40,
        sampled=5,
        steps=10,
        every=4,
        layers="matrices",
        rates=RATES | {"FedAvg": 0.3, "FedHM": 0.3, "EF21-P": 0.3, "FedBAT": 0.1},
        a=SMOKE,
    ),
    "medium": Setting(
        "20,000 of 50,000 training images, 16 x 16 pixels, 4 of 8 convolutions, rates and a barely tuned",
        "20,000 of the 50,000 training images, resized to 16 x 16 pixels, and 2,000 test images; four convolutions "
        "where the paper has eight; 20 clients, 4 sampled, 16 local steps of 64 images, 30 rounds; learning rate (of "
        "FedAvg, FedHM, EF21-P, FedBAT) or a (of the others, at learning rate 0.1): the best of the values in "
        "mud/tuning, after 10 rounds on another seed",
        ("CIFAR-10 N1",),
        rounds=30,
        sampled=4,
        steps=16,
        every=10,
        layers="inner",
        rates=RATES | {"FedAvg": 0.03, "FedHM": 0.03, "EF21-P": 0.01, "FedBAT": 0.03},
        a=TUNED,
    ),
    "paper": Setting(
        "the paper's settings, a and rates not printed",
        "the paper's; 24 local steps, three epochs of the average client; rates and a as the public code has them for "
        "FedAvg and FedMUD+BKD+AAD, else as at the medium scale, since they are not printed",
        named("N1", "N2"),
        rounds=200,
        sampled=10,
        steps=24,
        every=20,
        layers="inner",
        rates=RATES | {"FedAvg": 0.03, "FedHM": 0.03, "EF21-P": 0.01, "FedBAT": 0.03, "FedMUD+BKD+AAD": 0.01},
        a=TUNED | {"FedMUD+BKD+AAD": 5.0},
    ),
}
EXTENT = {  # of the sweeps: values of s (None: never), factors on a, compression ratios
    "quick": {"s": (1, 4, None), "a": (0.1, 0.5, 1.0, 2.0, 4.0), "ratio": (1 / 32, 1 / 8)},
    "medium": {"s": (1, None), "a": (0.25, 1.0, 4.0), "ratio": (1 / 32, 1 / 8)},
    "paper": {
        "s": (1, 2, 4, 8, 16, None),
        "a": (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0),
        "ratio": (1 / 64, 1 / 32, 1 / 16, 1 / 8),
    },
}
READING = [
    "The ratio 1/32 holds for each decomposed layer; first and last layer stay whole; convolutions are read row by row "
    "as (c_out k) x (c_in k) matrices, Kronecker blocks are stacked, as in the public code. EF21-P and FedBAT compress "
    "all layers, in both directions.",
    "s = 1; averages over the participants, not weighted; batch normalisation by the batch's own moments, gathered "
    "once from the clients for evaluation. Accuracy: mean of the last two records, since few clients with skewed "
    "labels per round let it jump; not the best round.",
    "Intervals: mean and 95% Student interval over seeds, each with its own partition, start and sampling; methods "
    "are compared on the same ones.",
]


def algorithm(name: str, setting: Setting, **changes: Any) -> Algorithm:
    """A method as this scale runs it; `s` and fields of its decomposition can be changed."""
    rate, steps = setting.rates[name], setting.steps
    if name in OTHERS:
        return OTHERS[name](rate, steps, setting.layers)
    s = changes.pop("s", 1)
    how: Decomposition = replace(METHODS[name], **{"a": setting.a[name], "layers": setting.layers} | changes)
    return FedMUD.of_model(rate, steps, how) if name in ("FedLMT", "FedPara") else FedMUD(rate, steps, how, s)


DATA = {
    "FMNIST": "fashion_mnist",
    "SVHN": "svhn",
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
    "TinyImageNet": "tiny_imagenet",
}


def problem(column: str, scale: str) -> dict[str, Any]:
    """Options of `ImageClassification.load` for a column of the tables."""
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
    return {"data": DATA[name], "network": network, "clients": 100, "batch": 64, "std": 0.01, **split}


def shown(column: str, scale: str) -> str:
    """A printed column, and the data that this scale runs in its place."""
    data = problem(column, scale)["data"]
    return column if DATA[column.split()[0]] == data else f"{column} (run: {data})"


def on(column: str, scale: str) -> str:
    """The data that this scale runs for a column of a figure, and the partition."""
    return f"{problem(column, scale)['data']} {column.split()[1]}"


def spec(how: Algorithm, column: str, scale: str, seed: int, rounds: int | None = None, **options: Any) -> Spec:
    """One run."""
    setting = SETTINGS[scale]
    if rounds is None:
        halved = scale == "paper" and column.split()[0] in ("FMNIST", "SVHN")
        rounds = setting.rounds // 2 if halved else setting.rounds
    chosen = tuple(sorted((problem(column, scale) | options).items()))
    every, dtype = min(setting.every, rounds), "float32"
    return Spec(how, "images", chosen, rounds, seed, setting.sampled, every, dtype, ("accuracy",))


def percent(result: dict[str, Any]) -> float:
    """Mean accuracy of the last two records; NaN for a run that diverged."""
    return NAN if result["diverged"] else 100 * sum(result["columns"]["accuracy"][-2:]) / 2


def words(scale: str, seeds: int, names: Sequence[str] = (*OTHERS, *METHODS)) -> dict[str, Any]:
    """Provenance of a result."""
    setting = SETTINGS[scale]
    numbers = {name: getattr(setting, name) for name in ("rounds", "sampled", "steps", "layers")}
    methods = {name: repr(algorithm(name, setting)) for name in names}
    return {"scale in words": setting.what, **numbers, "methods": methods, "seeds": seeds}


CUT = (
    "60 rounds and the last record were planned. For want of processor time runs were cut to 30 rounds, and the mean "
    "of the last two records was chosen as they jump, when the runs of seed 0 had been seen; runs that had gone "
    "further are their own first 30 rounds."
)


def notes(scale: str) -> list[str]:
    return [f"Runs: {SETTINGS[scale].what}.", *READING, *[CUT] * (scale == "medium")]


# Tables.


def accuracies(
    runner: Runner, scale: str, seeds: int, names: Sequence[str], columns: Sequence[str]
) -> dict[tuple[str, str], list[float]]:
    """Final accuracies of the methods that run at this scale, per seed: all methods of a seed before the next."""
    setting = SETTINGS[scale]
    wanted = {
        (name, column, seed): spec(algorithm(name, setting), column, scale, seed)
        for seed in range(seeds)
        for column in columns
        for name in names
    }
    results = runner(wanted.values())
    return {(n, c): [percent(results[wanted[n, c, s]]) for s in range(seeds)] for n in names for c in columns}


def absent(item: str, name: str, column: str, paper: float) -> Cell:
    """A printed number without ours, and what is missing."""
    command = f"python -m fedtheory reproduce {item} --scale paper --data FOLDER --device cuda"
    reason = f"needs the files of {column.split()[0]} and a GPU: {command}"
    if item == "mud/table5":
        reason += f"; {deep_run(column)}"
    return Cell(f"{column} {name}", paper, NAN, NAN, NAN, 0, "not run here", reason)


Interval = tuple[float, float, float]  # mean, low, high


def level(name: str, column: str, printed: dict[str, float], ours: dict[str, Interval], scale: str, seeds: int) -> Cell:
    """A printed accuracy beside ours: equal within two points at the paper's scale, else only ranks are comparable."""
    mean, low, high = ours[name]
    rank, wanted = (
        1 + sorted(ours, key=lambda n: math.inf if math.isnan(values[n]) else -values[n]).index(name)
        for values in ({n: v[0] for n, v in ours.items()}, printed)
    )
    reason = f"rank {rank} of the {len(ours)} methods run, {wanted} in the paper"
    if scale == "paper" and abs(mean - printed[name]) <= 2:
        return Cell(f"{column} {name}", printed[name], mean, low, high, seeds, "reproduced", reason)
    verdict = "trend only" if rank == wanted else "differs"
    if scale != "paper":
        reason += f"; levels are not comparable: {SETTINGS[scale].label}"
    return Cell(f"{column} {name}", printed[name], mean, low, high, seeds, verdict, reason)


def order(
    low: str, high: str, column: str, printed: dict[str, float], ours: dict[str, list[float]], scale: str
) -> Cell:
    """A printed order of two methods: the difference in points, paired by seed, and whether its interval excludes 0."""
    paper = printed[high] - printed[low]
    mean, least, most = interval([b - a for a, b in zip(ours[low], ours[high])])
    confirmed = least > 0 and len(ours[low]) > 1
    where = "is above 0" if least > 0 else "is below 0" if most < 0 else "contains 0"
    reason = f"order {'confirmed' if confirmed else 'not confirmed'}: the interval of the difference in points {where}"
    if math.isnan(mean) or len(ours[low]) < 2:
        reason = f"order not confirmed: {'a run diverged' if math.isnan(mean) else 'one seed'}"
    verdict = "differs" if not confirmed else "reproduced" if scale == "paper" else "trend only"
    return Cell(f"{column} {low} < {high}", paper, mean, least, most, len(ours[low]), verdict, reason)


def measure_table(
    runner: Runner,
    scale: str,
    seeds: int,
    item: str,
    printed: dict[str, tuple[float, ...]],
    columns: tuple[str, ...],
    orders: Sequence[tuple[str, str]],
    finished: Sequence[Row] = (),
) -> Result:
    """Every printed number beside ours where it is run, then the printed orders of methods that are run.

    Methods with numbers in all these columns of `finished` are not run; their numbers stand.
    """
    run = [column for column in columns if column in SETTINGS[scale].columns]
    label = {column: shown(column, scale) if column in run else column for column in columns}
    stand = {(row["method"], row["column"]): (row["ours"], row["low"], row["high"]) for row in finished if row["seeds"]}
    names = [name for name in printed if any((name, label[column]) not in stand for column in run)]
    found = accuracies(runner, scale, seeds, names, run)
    known = stand | {(name, label[column]): interval(values) for (name, column), values in found.items()}
    table: Table = []
    cells: list[Cell] = []
    for at, column in enumerate(columns):
        paper = {name: values[at] for name, values in printed.items()}
        ours = {name: known[name, label[column]] for name in paper if column in run}
        for name, value in paper.items():
            own = name in ours
            where = label[column]
            cells.append(level(name, where, paper, ours, scale, seeds) if own else absent(item, name, column, value))
            last = cells[-1]
            numbers = {"paper": value, "ours": last.ours, "low": last.low, "high": last.high, "seeds": last.seeds}
            of = spec(algorithm(name, SETTINGS[scale]), column, scale, 0).ran() if own else behind()
            table.append({"column": where, "method": name, **numbers, **of})
        pairs = [pair for pair in orders if all((name, column) in found for name in pair)]
        cells += [order(*pair, label[column], paper, {n: found[n, column] for n in pair}, scale) for pair in pairs]
    return Result(table, cells, words(scale, seeds, names), notes(scale))


ORDERS1 = (
    ("FedLMT", "FedMUD"),
    ("FedMUD", "FedMUD+BKD"),
    ("FedMUD", "FedMUD+AAD"),
    ("FedMUD+BKD", "FedMUD+BKD+AAD"),
    ("FedMUD+AAD", "FedMUD+BKD+AAD"),
)
ORDERS2 = (("FedMUD+F", "FedMUD+AAD"), ("FedMUD+BKD+F", "FedMUD+BKD+AAD"))


SENDERS = ("FedMUD", "FedMUD+BKD+AAD", "FedHM", "EF21-P", "FedBAT")


def measure_1(runner: Runner, scale: str, seeds: int, finished: Sequence[Row] = ()) -> Result:
    """Accuracies under label skew, and what is sent: upload relative to FedAvg's, from the bytes of one round."""
    result = measure_table(runner, scale, seeds, "mud/table1", TABLE1, named("N1", "N2"), ORDERS1, finished)
    setting = SETTINGS[scale]
    column = setting.columns[0] if scale != "paper" else "CIFAR-10 N1"
    specs = {name: spec(algorithm(name, setting), column, scale, 0, rounds=1) for name in ("FedAvg", *SENDERS)}
    found = runner(specs.values())
    sent = {name: found[one]["columns"]["up_bytes"][-1] for name, one in specs.items()}
    for name in SENDERS:
        share = sent[name] / sent["FedAvg"]
        verdict = "reproduced" if 1 / 1.5 <= share / RATIO <= 1.5 else "differs"
        reason = f"counted bytes; ours/paper = {share / RATIO:.2f}"
        if verdict == "differs":
            reason += ": layers that stay whole are sent, too"
        cell = f"{shown(column, scale)} upload of {name} / FedAvg's"
        result.cells.append(Cell(cell, RATIO, share, share, share, 1, verdict, reason, "count"))
    return result


def measure_2(runner: Runner, scale: str, seeds: int, finished: Sequence[Row] = ()) -> Result:
    """Decoupling against freezing under label skew."""
    return measure_table(runner, scale, seeds, "mud/table2", TABLE2, named("N1"), ORDERS2, finished)


def measure_3(runner: Runner, scale: str, seeds: int, finished: Sequence[Row] = ()) -> Result:
    """Accuracies without label skew."""
    return measure_table(runner, scale, seeds, "mud/table3", TABLE3, named("IID"), ORDERS1, finished)


def measure_4(runner: Runner, scale: str, seeds: int, finished: Sequence[Row] = ()) -> Result:
    """Decoupling against freezing under the other two partitions."""
    return measure_table(runner, scale, seeds, "mud/table4", TABLE4, named("N2", "IID"), ORDERS2, finished)


def measure_5(runner: Runner, scale: str, seeds: int) -> Result:
    """ResNet18 at 16- and 32-fold compression."""
    columns = ("CIFAR-10 N1", "TinyImageNet N1")
    if scale != "paper":
        cells = [
            absent("mud/table5", name, column, values[at])
            for at, column in enumerate(columns)
            for name, values in TABLE5.items()
        ]
        labels = [behind()] * len(cells)
    else:
        setting = SETTINGS[scale]
        wanted = {
            (name, column, seed): spec(resnet(name, setting), column, scale, seed, network="resnet18")
            for name in TABLE5
            for column in columns
            for seed in range(seeds)
        }
        results = runner(wanted.values())
        cells = []
        for at, column in enumerate(columns):
            paper = {name: values[at] for name, values in TABLE5.items()}
            ours = {
                name: interval([percent(results[wanted[name, column, s]]) for s in range(seeds)]) for name in TABLE5
            }
            cells += [level(name, column, paper, ours, scale, seeds) for name in TABLE5]
        labels = [wanted[name, column, 0].ran() for column in columns for name in TABLE5]
    table = [
        {"column": column, "method": name, "paper": one.paper, "ours": one.ours, "low": one.low, "high": one.high,
         "seeds": one.seeds, **of}
        for one, (column, name), of in zip(cells, ((c, n) for c in columns for n in TABLE5), labels)
    ]  # fmt: skip
    return Result(table, cells, words(scale, seeds), notes(scale))


def deep_run(column: str) -> Budget:
    """What a run of Table 5 needs."""
    at, tiny = SETTINGS["paper"], column.startswith("Tiny")
    shape = (3, 64, 64) if tiny else (3, 32, 32)
    return Budget("resnet18", 200 if tiny else 10, 64, at.sampled, at.steps * at.rounds, shape)


def resnet(name: str, setting: Setting) -> Algorithm:
    """A method of Table 5, with its compression behind its name."""
    if name == "FedAvg":
        return algorithm(name, setting)
    method, times = name.split()
    return algorithm(method, setting, ratio=1 / int(times[:-1]))


@style.styled
def draw_table(table: Table) -> Figure:
    """One panel per data set: methods from top to bottom, the paper's numbers hollow, ours with intervals."""
    methods = list(dict.fromkeys(row["method"] for row in table))
    sets = list(dict.fromkeys(row["column"].split()[0] for row in table))
    partitions = list(dict.fromkeys(row["column"].split()[1] for row in table))
    figure, panels = style.new_figure(len(sets), 0.8 + 0.19 * len(methods), columns=2)
    for axes, name in zip(panels, sets):
        for place, partition in enumerate(partitions):
            rows = [row for row in table if row["column"].split()[:2] == [name, partition]]
            color, spots = style.SEQUENCE[place], [len(methods) - methods.index(row["method"]) for row in rows]
            mark = {"color": color, "markersize": 4.5, "markerfacecolor": "none", "linestyle": "none"}
            axes.plot([row["paper"] for row in rows], spots, "D", label=f"paper, {partition}", **mark)
            run = [(spot, row) for spot, row in zip(spots, rows) if row["seeds"]]
            if run:
                spots, ran = zip(*run)
                means = [row["ours"] for row in ran]
                error = [[row["ours"] - row["low"] for row in ran], [row["high"] - row["ours"] for row in ran]]
                label = f"ours, {partition} (n={ran[0]['seeds']})"
                axes.errorbar(means, spots, xerr=error, fmt="o", color=color, markersize=3.5, capsize=2, label=label)
        axes.set_yticks(range(len(methods), 0, -1), methods if axes is panels[0] else [""] * len(methods))
        axes.set(title=name, xlabel="accuracy in %")
        axes.margins(0.12, 0.08)
    if any(row["seeds"] for row in table):
        style.caption(figure, table)
    style.legend_above(figure, 4)
    return figure


# Figures: curves and sweeps. The paper draws them on four data sets; we run CIFAR-10 (quick: the digits), N1.

HERE = "CIFAR-10 N1"
ELSEWHERE = ("CIFAR-10 N2", "CIFAR-10 IID")
CURVES = ("FedAvg", "FedLMT", "FedPara", "FedMUD", "FedMUD+BKD", "FedMUD+AAD", "FedMUD+BKD+AAD")


def curves(runner: Runner, scale: str, seeds: int, column: str) -> dict[str, list[dict[str, Any]]]:
    """The runs behind a table's column, per method and seed."""
    setting = SETTINGS[scale]
    wanted = {(n, s): spec(algorithm(n, setting), column, scale, s) for s in range(seeds) for n in CURVES}
    results = runner(wanted.values())
    return {name: [results[wanted[name, seed]] for seed in range(seeds)] for name in CURVES}


def measure_curves(runner: Runner, scale: str, seeds: int, column: str = HERE) -> Result:
    """FedMUD and its variants converge faster than FedLMT and FedPara."""
    found = curves(runner, scale, seeds, column)
    table: Table = []
    for name, runs in found.items():
        for at in range(min(len(one["columns"]["round"]) for one in runs)):
            mean, low, high = interval([100 * one["columns"]["accuracy"][at] for one in runs])
            round_, sent = (runs[0]["columns"][c][at] for c in ("round", "up_bytes"))
            numbers = {"mean": mean, "low": low, "high": high, "seeds": seeds}
            here = {"method": name, "round": round_, "up_bytes": sent}
            of = spec(algorithm(name, SETTINGS[scale]), column, scale, 0).ran()
            table.append(here | numbers | of)
    means = {name: [row["mean"] for row in table if row["method"] == name] for name in CURVES}
    rounds = sorted({row["round"] for row in table})
    cells = []
    for name in CURVES[3:]:
        others = {base: reach(rounds, means[name], means[base][-1]) for base in ("FedLMT", "FedPara")}
        faster = sum(needed < rounds[-1] for needed in others.values())
        reason = ", ".join(f"{base}'s final mean accuracy after {needed:.3g}" for base, needed in others.items())
        verdict = "differs" if faster < 2 else "reproduced" if scale == "paper" else "trend only"
        what = f"{name}: baselines (FedLMT, FedPara) that it overtakes"
        reason = f"{reason} of {rounds[-1]} rounds, read off the means (records every {rounds[1]})"
        cells.append(Cell(what, 2, faster, faster, faster, seeds, verdict, reason))
    return Result(table, cells, words(scale, seeds), notes(scale))


def reach(rounds: Sequence[int], values: Sequence[float], target: float) -> float:
    """The first recorded round with at least this value; infinity where there is none."""
    return next((float(at) for at, value in zip(rounds, values) if value >= target), math.inf)


PARTITIONS = "N1: Dirichlet; N2: three labels per client; IID: at random."


def together(parts: dict[str, Result]) -> Result:
    """Results side by side: their rows and cells say which part they are of."""
    first = next(iter(parts.values()))
    table = [{"panel": name, **row} for name, result in parts.items() for row in result.table]
    cells = [replace(cell, cell=f"{name}: {cell.cell}") for name, result in parts.items() for cell in result.cells]
    settings = {name: value for result in parts.values() for name, value in result.settings.items()}
    return Result(table, cells, settings, [*first.notes, PARTITIONS])


def measure_partitions(runner: Runner, scale: str, seeds: int) -> Result:
    """Figure 6: Figure 2 for all three partitions."""
    columns = (HERE, *ELSEWHERE)
    return together({on(column, scale): measure_curves(runner, scale, seeds, column) for column in columns})


@style.styled
def draw_partitions(table: Table) -> Figure:
    """Accuracy over rounds, a panel per partition."""
    names = list(dict.fromkeys(row["panel"] for row in table))
    figure, panels = style.new_figure(len(names), columns=2)
    for axes, panel in zip(panels, names):
        for name in CURVES:
            rows = [row for row in table if row["panel"] == panel and row["method"] == name]
            t, mean, low, high = ([row[part] for row in rows] for part in ("round", "mean", "low", "high"))
            how = style.look(name)
            axes.plot(t, mean, **how.line, label=f"{name} (n={rows[0]['seeds']})")
            axes.fill_between(t, low, high, color=how.color, alpha=0.12, linewidth=0)
        axes.set(title=panel, xlabel="communication rounds", ylabel="accuracy in %")
    style.caption(figure, table)
    style.legend_above(figure, 4)
    return figure


@style.styled
def draw_curves(table: Table) -> Figure:
    """Accuracy over rounds and over bytes sent up."""
    figure, (left, right) = style.new_figure(2)
    for name in CURVES:
        rows, how = [row for row in table if row["method"] == name], style.look(name)
        sent = [row["up_bytes"] / 1e6 for row in rows]
        for axes, x, first in ((left, [row["round"] for row in rows], 0), (right, sent, 1)):  # nothing is sent at first
            mean, low, high = ([row[part] for row in rows][first:] for part in ("mean", "low", "high"))
            axes.plot(x[first:], mean, **how.line, label=f"{name} (n={rows[0]['seeds']})")
            axes.fill_between(x[first:], low, high, color=how.color, alpha=0.12, linewidth=0)
    left.set(xlabel="communication rounds", ylabel="accuracy in %")
    right.set(xlabel="megabytes sent up by all clients", ylabel="accuracy in %", xscale="log")
    style.caption(figure, table)
    style.legend_above(figure, 4)
    return figure


def sweep(
    runner: Runner,
    scale: str,
    seeds: int,
    settings: dict[Any, dict[str, dict[str, Any]]],
    fixed: str | None = None,
    column: str = HERE,
) -> tuple[Table, dict[tuple[str, Any], list[float]]]:
    """Accuracies over a parameter: value -> method -> changes; and those of a method that does not have it."""
    setting = SETTINGS[scale]
    wanted: dict[tuple[str, Any, int], Spec] = {}
    for seed in range(seeds):
        for value, changes in settings.items():
            for name, change in changes.items():
                wanted[name, value, seed] = spec(algorithm(name, setting, **change), column, scale, seed)
        if fixed is not None:
            wanted[fixed, "", seed] = spec(algorithm(fixed, setting), column, scale, seed)
    results = runner(wanted.values())
    found: dict[tuple[str, Any], list[float]] = {}
    for (name, value, _), one in wanted.items():
        found.setdefault((name, value), []).append(percent(results[one]))
    table: Table = []
    for (name, value), runs in found.items():
        mean, low, high = interval(runs)
        shown = "R" if value is None else value
        here = {"method": name, "value": shown, "mean": mean, "low": low, "high": high, "seeds": seeds}
        table.append(here | wanted[name, value, 0].ran())
    return table, found


VARIANTS = ("FedMUD", "FedMUD+BKD", "FedMUD+AAD", "FedMUD+BKD+AAD")


def statement(what: str, paper: float, ours: float, seeds: int, scale: str, reason: str) -> Cell:
    """A statement without a printed number, as a count of the cases in which it holds on average."""
    verdict = "differs" if ours < paper else "reproduced" if scale == "paper" else "trend only"
    return Cell(what, paper, ours, ours, ours, seeds, verdict, reason)


def difference(what: str, ours: list[float], other: list[float], scale: str) -> Cell:
    """Methods that the paper calls comparable: our difference, paired by seed, is within two points or not."""
    mean, low, high = interval([a - b for a, b in zip(ours, other)])
    verdict = "differs" if not abs(mean) <= 2 else "reproduced" if scale == "paper" else "trend only"
    return Cell(what, 0.0, mean, low, high, len(ours), verdict, "difference in points; 'comparable' read as within two")


def measure_resets(runner: Runner, scale: str, seeds: int, column: str = HERE) -> Result:
    """Accuracy falls with the reset interval s; without resets it is that of FedLMT."""
    values = EXTENT[scale]["s"]
    changes = {s: {name: {"s": s} for name in VARIANTS} for s in values}
    table, found = sweep(runner, scale, seeds, changes, "FedLMT", column)
    means = {key: interval(runs)[0] for key, runs in found.items()}
    falls = {name: means[name, 1] - means[name, None] for name in VARIANTS}
    reason = "points lost from s = 1 to s = R: " + ", ".join(f"{name} {lost:.1f}" for name, lost in falls.items())
    lost = sum(points > 0 for points in falls.values())
    cells = [statement("variants that are worse at s = R than at s = 1", len(VARIANTS), lost, seeds, scale, reason)]
    cells.append(difference("FedMUD at s = R minus FedLMT", found["FedMUD", None], found["FedLMT", ""], scale))
    return Result(table, cells, words(scale, seeds) | {"s": str(values)}, notes(scale))


def measure_start(runner: Runner, scale: str, seeds: int, column: str = HERE) -> Result:
    """Accuracy over a: BKD is less sensitive, and its best a is larger."""
    values = EXTENT[scale]["a"]
    table, found = sweep(runner, scale, seeds, {a: {name: {"a": a} for name in VARIANTS} for a in values}, None, column)
    means = {name: {a: interval(found[name, a])[0] for a in values} for name in VARIANTS}
    finite = {name: {a: mean for a, mean in row.items() if not math.isnan(mean)} for name, row in means.items()}
    best = {name: max(row, key=lambda a: row[a]) for name, row in finite.items()}
    good = {name: sum(mean > row[best[name]] - 10 for mean in row.values()) for name, row in finite.items()}
    pairs = (("FedMUD", "FedMUD+BKD"), ("FedMUD+AAD", "FedMUD+BKD+AAD"))
    cells = []
    for text, what, numbers in (
        ("best a is larger with BKD", "best a", best),
        ("less sensitive with BKD", f"values of a, of {len(values)}, within ten points of the best", good),
    ):
        reason = f"{what}: " + ", ".join(f"{name} {number:.3g}" for name, number in numbers.items())
        if numbers is good and set(good.values()) == {len(values)}:
            reason += "; no value lies lower, so these tell the variants nothing apart"
        holds = sum(numbers[two] > numbers[one] for one, two in pairs)
        cells.append(statement(f"{text}: of two pairs", 2, holds, seeds, scale, reason))
    return Result(table, cells, words(scale, seeds) | {"values of a": str(values)}, notes(scale))


def measure_ratio(runner: Runner, scale: str, seeds: int, column: str = HERE) -> Result:
    """Accuracy grows with the compression ratio; at 1/8 FedMUD+BKD+AAD is comparable to FedAvg."""
    values, setting = EXTENT[scale]["ratio"], SETTINGS[scale]
    changes: dict[Any, dict[str, dict[str, Any]]] = {ratio: {} for ratio in values}
    for ratio, of in changes.items():
        for name in VARIANTS:
            longer = 1.0 if "BKD" in name else math.sqrt(RATIO / ratio)
            of[name] = {"ratio": ratio, "a": setting.a[name] * longer}
    table, found = sweep(runner, scale, seeds, changes, "FedAvg", column)
    gained = {name: interval(found[name, values[-1]])[0] - interval(found[name, values[0]])[0] for name in VARIANTS}
    points = ", ".join(f"{name} {more:.1f}" for name, more in gained.items())
    reason = f"points gained from the strongest to the weakest compression: {points}"
    count = sum(more > 0 for more in gained.values())
    cells = [statement("variants that gain from weaker compression", len(VARIANTS), count, seeds, scale, reason)]
    name = "FedMUD+BKD+AAD"
    cells.append(difference(f"{name} at 1/8 minus FedAvg", found[name, 1 / 8], found["FedAvg", ""], scale))
    scaled = (
        "a of low rank is divided by the root of the ratio's growth, so that A A^T keeps its trace; BKD's does anyway."
    )
    return Result(table, cells, words(scale, seeds) | {"ratios": str(values)}, [*notes(scale), scaled])


SWEEPS = {  # what is varied: (measure, whether its axis is logarithmic)
    "reset interval s": (measure_resets, False),
    "a of U(-a, a)": (measure_start, True),
    "compression ratio": (measure_ratio, True),
}


def measure_elsewhere(runner: Runner, scale: str, seeds: int) -> Result:
    """Figure 7: Figures 3-5 under the two other partitions."""
    parts = {
        f"{on(column, scale)}, {label}": measure(runner, scale, seeds, column)
        for column in ELSEWHERE
        for label, (measure, _) in SWEEPS.items()
    }
    return together(parts)


def draw_sweep(axes: Axes, table: Table, label: str) -> None:
    """Accuracies over a parameter; methods without it are horizontal lines."""
    log = SWEEPS[label][1]
    for name in dict.fromkeys(row["method"] for row in table):
        rows = [row for row in table if row["method"] == name]
        how, text = style.look(name), f"{name} (n={rows[0]['seeds']})"
        if rows[0]["value"] == "":
            axes.axhline(rows[0]["mean"], **how.line, label=text)
            continue
        spots = [row["value"] for row in rows] if log else list(range(len(rows)))
        means, low, high = ([row[part] for row in rows] for part in ("mean", "low", "high"))
        axes.plot(spots, means, marker=how.marker, **how.line, markersize=3, label=text)
        axes.fill_between(spots, low, high, color=how.color, alpha=0.12, linewidth=0)
        if not log:
            axes.set_xticks(spots, [str(row["value"]) for row in rows])
    if log:
        values = sorted({row["value"] for row in table if row["value"] != ""})
        axes.set_xscale("log")
        axes.set_xticks(values, [f"1/{1 / value:g}" if "ratio" in label else f"{value:g}" for value in values])
        axes.set_xticks([], minor=True)
    axes.set(xlabel=label, ylabel="accuracy in %")


def drawer(label: str) -> Any:
    """A figure of one sweep."""

    @style.styled
    def draw(table: Table) -> Figure:
        figure, (axes,) = style.new_figure()
        draw_sweep(axes, table, label)
        style.caption(figure, table)
        style.legend_above(figure, 2)
        return figure

    return draw


@style.styled
def draw_elsewhere(table: Table) -> Figure:
    """A panel per partition and sweep."""
    names = list(dict.fromkeys(row["panel"] for row in table))
    figure, panels = style.new_figure(len(names), columns=4)
    for axes, panel in zip(panels, names):
        draw_sweep(axes, [row for row in table if row["panel"] == panel], panel.split(", ", 1)[1])
        axes.set_title(panel.split(", ")[0])
    style.caption(figure, table)
    style.legend_above(figure, 6)
    return figure


def measure_tuning(runner: Runner, scale: str, seeds: int, finished: Sequence[Row] = ()) -> Result:
    """How a (of methods without it: the learning rate) was chosen: a few rounds on a seed that is not used again."""
    setting = SETTINGS[scale]
    names = [name for name in TRIED if name not in {row["method"] for row in finished}]
    wanted = {}
    for name in names:
        for value in TRIED[name]:
            field = "rates" if name in OTHERS else "a"
            how = algorithm(name, replace(setting, **{field: getattr(setting, field) | {name: value}}))
            wanted[name, value] = spec(how, HERE, scale, TUNING["seed"], TUNING["rounds"])
    results = runner(wanted.values())
    table: Table = []
    for (name, value), one in wanted.items():
        reached = NAN if results[one]["diverged"] else 100 * results[one]["columns"]["accuracy"][-1]
        table.append({"method": name, "value": value, "accuracy": reached, **one.ran()})
    return Result([*finished, *table], [], words(scale, 1, names) | TUNING, notes(scale))


@style.styled
def draw_tuning(table: Table) -> Figure:
    """Accuracy over the values tried, one curve per method."""
    figure, panels = style.new_figure(2)
    for name in dict.fromkeys(row["method"] for row in table):
        rows, how = [row for row in table if row["method"] == name], style.look(name)
        axes = panels[name not in OTHERS]
        spots, reached = [row["value"] for row in rows], [row["accuracy"] for row in rows]
        axes.plot(spots, reached, marker=how.marker, **how.line, markersize=3, label=name)
    for axes, label in zip(panels, ("learning rate", "a")):
        axes.set(xscale="log", xlabel=label, ylabel="accuracy in % (n=1)")
    style.caption(figure, table)
    style.legend_above(figure, 5)
    return figure


ITEMS = [
    Item("mud/table1", "Accuracy under label skew", measure_1, draw_table, SCALES, True),
    Item("mud/table2", "Decoupling against freezing", measure_2, draw_table, SCALES, True),
    Item("mud/table3", "Accuracy without label skew", measure_3, draw_table, SCALES, True),
    Item("mud/table4", "Decoupling against freezing, other partitions", measure_4, draw_table, SCALES, True),
    Item("mud/table5", "ResNet18", measure_5, draw_table, SCALES),
    Item("mud/fig2", "Convergence", measure_curves, draw_curves, SCALES),
    Item("mud/fig3", "Reset interval", measure_resets, drawer("reset interval s"), SCALES),
    Item("mud/fig4", "Initialisation", measure_start, drawer("a of U(-a, a)"), SCALES),
    Item("mud/fig5", "Compression", measure_ratio, drawer("compression ratio"), SCALES),
    Item("mud/fig6", "Convergence under all partitions", measure_partitions, draw_partitions),
    Item("mud/fig7", "The sweeps under the other partitions", measure_elsewhere, draw_elsewhere),
]
EXTRAS = [Item("mud/tuning", "How the initialisation was chosen", measure_tuning, draw_tuning, SCALES[:2], True)]
