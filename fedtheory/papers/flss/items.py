"""FLSS: Tables 1-4, Figures 1 and 2 of its appendix. Which number it prints for what, and what is run here."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.algorithms.flss import FLSS
from fedtheory.core import loop
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.papers import judge, style
from fedtheory.papers.accuracy import OPTIMISTIC, best, last
from fedtheory.papers.budget import Budget, command
from fedtheory.papers.store import Item, Result, Spec, Wants, interval, itself
from fedtheory.problems.images import ImageClassification
from fedtheory.running import simulate, verdicts
from fedtheory.running.records import Cell, Row, Table
from fedtheory.theory.flss.printed import (
    COSTS3,
    COSTS4,
    PAPER,
    PARAMETERS,
    TABLE1,
    TABLE2,
    TABLE3,
    TABLE4,
    Setting,
    fits,
    method,
    printed_cost,
    sent,
)

NAN = math.nan
BETAS = (0.1, 0.5, 1.0)
EPOCHS = (1, 5, 10)
SCALES = ("quick", "medium", "paper")
LARGE = ("quick", "medium", "large", "paper")  # of Tables 2 and 3, which have columns at the printed length

SETS2 = (("FMNIST", "fashion_mnist"), ("CIFAR-100", "cifar100"), ("Tiny-ImageNet", "tiny_imagenet"))
AGAINST = {  # whose difference to a method is tested; FedAvg is what the others are compared with
    "FedAvg": "FedAvg",
    "FedAvg+FLSS": "FedAvg",
    "Signsgd+EF": "FedAvg",
    "Sign+EF+FLSS": "Signsgd+EF",
    **dict.fromkeys(("FedProx", "Moon", "FedDyn", "FedGen", "FedNTD", "LBGM"), "FedAvg+FLSS"),
    **dict.fromkeys(("Fetchsgd", "STC"), "Sign+EF+FLSS"),
}
PAIR = ("FedAvg", "FedAvg+FLSS")


SETTINGS = {
    "quick": Setting(
        "digits",
        "digits",
        "mlp",
        "mlp",
        ("mlp", "resnet8"),
        (("batch", 72), ("clients", 20)),
        0.3,
        1,
        4,
        30,
        15,
        3,
        300,
    ),
    "medium": Setting(
        "cifar10",
        "fashion_mnist",
        "flss-cnn",
        "flss-cnn",
        ("flss-cnn", "resnet8", "resnet20"),
        (("batch", 50), ("clients", 20), ("partial", True), ("side", 16), ("subset", 2000), ("tested", 2000)),
        0.05,
        2,
        4,
        50,
        25,
        5,
        600,
    ),
    "paper": PAPER,
}
SETTINGS["large"] = SETTINGS["medium"]


def spec(
    at: Setting,
    algorithm: Algorithm,
    beta: float,
    seed: int,
    data: str | None = None,
    network: str | None = None,
    **run: Any,
) -> Spec:
    """One run with labels divided by Dirichlet(beta)."""
    options = {
        **dict(at.options),
        "alpha": beta,
        "data": data or at.data,
        "network": network or at.network,
        "partition": "dirichlet",
    }
    run = {"every": at.every, "metrics": ("accuracy",), **run}
    return Spec(
        algorithm, "images", tuple(sorted(options.items())), at.rounds, seed, at.sampled, dtype="float32", **run
    )


EPOCH = {"fashion_mnist": 12, "cifar100": 10, "tiny_imagenet": 20}  # steps of 50: 60,000 images, 50,000, 100,000


def on_fashion(at: Setting) -> Setting:
    """The same on Fashion-MNIST; an epoch of the paper's scale is one of 60,000 images."""
    return replace(at, data=at.fashion, epoch=EPOCH[at.fashion] if at is PAPER else at.epoch)


LENGTH = replace(PAPER, epoch=4, options=(*PAPER.options, ("partial", True)))  # an epoch of 20,000 / 100 images
COMPARED = ("FedAvg", "FedAvg+FLSS", "Signsgd+EF", "STC", "Sign+EF+FLSS")
FASHION = replace(on_fashion(PAPER), options=(*PAPER.options, ("precision", "bf16")))
BASES = (*PAIR, "Signsgd+EF", "Sign+EF+FLSS")
AT_LENGTH = dict.fromkeys(BETAS, BASES)  # beta of Table 2 -> what is run so
IN_FULL = "in full,"
_MOST_SEEDS = 3  # of what is run so
FASHION_LENGTH = (
    f'"{IN_FULL.strip(",")}": all images of Fashion-MNIST and the CNN, as printed; T0 = 200 as App. B.3 has it. 400 '
    "rounds of 5 epochs, as printed for CIFAR-10 alone; these are 60 steps of 50 for every client, five epochs of "
    "the mean one. R = 40, 10 of 100 clients and the rate 0.05, which are not printed. Products and convolutions "
    "run in bfloat16. At the medium scale it moves the mean of five seeds by less than a tenth of a point, also for "
    "FLSS less its base (flss/precision). All else as at the medium scale; what is judged in full is "
    "not judged there:"
)
PRINTED_LENGTH = (
    "CNN, epochs=1: 32 x 32 pixels, 400 rounds, T0 = 200 as printed; R = 40 and 10 of 100 clients, which are not. "
    "Training has 20,000 of the 50,000 images, so an epoch has 4 steps of 50 and not 10; all 10,000 images are tested. "
    "All else as at the medium scale:"
)

RAN = {"quick": "smoke", "medium": "reduced", "large": "reduced", "paper": "paper's"}


def level(
    paper: Mapping[str, float], ours: Mapping[str, list[float]], name: str, rival: str, ran: str, said: str = ""
) -> Cell:
    """An accuracy: within two points, at the paper's scale; else by its difference to a rival's with the same seeds."""
    beside = judge.Rival(rival, paper[rival], ours[rival])
    return judge.level(name, paper[name], ours[name], verdicts.points(paper[name]), ran, "ours", beside, said)


NAMED_DATA = {"CIFAR-10": PAPER.data, **dict(SETS2)}
NAMED = {"CNN": PAPER.network, "ResNet-18": PAPER.deep, **NAMED_DATA}  # what a printed header names


class Column(NamedTuple):
    """What is run for one column of a table; no data: nothing, at this scale.

    `at`: a setting of its own, in the place of the scale's; `names`: the methods that are run; None: all. `whole`: the
    place of the printed column that is run with the paper's data and network in full, whatever the scale; `settled`:
    methods that such a column judges; `printed`: whether the paper prints rounds and epochs of the column.
    """

    panel: str
    setting: str
    data: str | None
    network: str
    beta: float
    epochs: int
    at: Setting | None = None
    names: tuple[str, ...] | None = None
    whole: int | None = None
    settled: tuple[str, ...] = ()
    printed: bool = True

    @property
    def place(self) -> str:
        """The printed header, and what is run in the place of the data or network that it names."""
        named = NAMED[self.panel]
        if self.data is None or named in (self.data, self.network):
            return self.panel
        return f"{self.panel} (run: {self.data if self.panel in NAMED_DATA else self.network})"

    def ran(self, scale: str) -> str:
        """What runs, as `verdicts.RUNS` says it."""
        if self.whole is not None or scale == "paper":
            return "paper's" if self.printed else "inferred"
        return "stand-in" if scale in ("medium", "large") and self.place != self.panel else RAN[scale]

    @property
    def header(self) -> str:
        return f"{self.place} {self.setting}"

    def label(self, name: str) -> str:
        return f"{self.header} {name}"

    def row(self, name: str, paper: float, of: Row, results: Sequence[dict[str, Any]], base: "Base") -> Row:
        """One line of a table of accuracies, with its differences to a method of the same column, paired by seed."""
        ours = [last(one) for one in results]
        mean, low, high = interval(ours)
        row = {"panel": self.place, "setting": self.setting, "method": name}
        row |= {"paper": paper, "mean": mean, "low": low, "high": high, "seeds": len(results)}
        row |= dict(zip(("best", "best_low", "best_high"), interval([best(one) for one in results])))
        for way in ("up", "down"):
            row[f"{way}_mb"] = float(np.mean([one["columns"][f"{way}_bytes"][-1] for one in results])) / 1e6
        gap = interval([a - last(b) for a, b in zip(ours, base.results, strict=True)])
        row |= {"against": base.name, "printed gap": paper - base.paper, **dict(zip(GAP, gap))}
        return row | of


GAP = ("gap", "gap low", "gap high")


class Base(NamedTuple):
    """The method whose differences are drawn."""

    name: str
    paper: float
    results: Sequence[dict[str, Any]]


def settings_of(at: Setting, algorithms: Mapping[str, Algorithm]) -> dict[str, Any]:
    """What a record says of a scale."""
    said = {"data": at.data, "network": at.network, "rounds": at.rounds, "warm_up": at.warm_up, "rank": at.rank}
    said |= {"sampled": at.sampled, "lr": at.lr, "steps of one epoch": at.epoch, **dict(at.options)}
    return {**said, "methods": {name: repr(algorithm) for name, algorithm in algorithms.items()}}


PLACES = ("CIFAR-10", "Fashion-MNIST", "the CNN", "ResNet-18")


ACCURACY = "Accuracy: mean of the last three of ten records (open point 12). "
ACCURACY += "No augmentation; means over clients are not weighted."


def notes_of(at: Setting, scale: str, accuracy: bool = True) -> list[str]:
    """What a reader of a record must know; `accuracy`: of accuracies, too."""
    notes = [
        "Clients, rate, batch, R and the sampling of G are in the main body, which is not available (open points 2-4).",
        *[ACCURACY] * accuracy,
        "All methods at one learning rate, not tuned; the other hyperparameters as in App. D, but for FedGen's server "
        f"steps, {at.generator} a round (App. D: 1000). Fetchsgd: a table of 1/4 of the entries (its printed cost), "
        "k = 1/32 (not printed), cells cleared as in its public code, no momentum (App. D).",
    ]
    if scale != "paper":
        there = (SETTINGS[scale].data, at.fashion)  # an item on Fashion-MNIST alone has `at.data` replaced
        run = zip((*there, at.network, at.deep), (PAPER.data, PAPER.fashion, PAPER.network, PAPER.deep), PLACES)
        named = ", ".join(f"{ours} for {name}" for ours, printed, name in run if ours != printed)
        notes.append(
            f"Stand-ins at this scale: {named}; levels are not comparable with the printed ones, orderings are what is "
            "tested."
        )
    if scale in ("medium", "large"):
        notes.append("2,000 training and 2,000 test images, 16 x 16.")
        notes += [
            f"A reduced setting: 2,000 images, {at.rounds} rounds, R = {at.rank} directions; the paper has 400 rounds, "
            "and prints no R (its costs fit 40, if P is sent once, or some 50). It says nothing of FLSS at the printed "
            "length."
        ] * accuracy
    return notes


# Tables 1 and 2: what is projected; heterogeneity


def measure_objects(scale: str, seeds: int) -> Wants[Result]:
    """Table 1, beta = 0.5, 5 local epochs."""
    at = SETTINGS[scale]
    algorithms = {f"{what}, sr={sr}": method("FedAvg+FLSS", at, project=what, sr=float(sr)) for what, sr in TABLE1}
    paper = dict(zip(algorithms, TABLE1.values()))
    wanted = {
        (name, seed): spec(at, algorithm, 0.5, seed, network=at.deep)
        for name, algorithm in algorithms.items()
        for seed in range(seeds)
    }
    results = yield wanted.values()
    runs = {name: [results[wanted[name, seed]] for seed in range(seeds)] for name in algorithms}
    ours = {name: [last(one) for one in found] for name, found in runs.items()}
    table: Table = []
    cells = []
    for name, (what, sr) in zip(algorithms, TABLE1):
        column = Column("ResNet-18", f"sr = {sr}", at.data, at.deep, 0.5, 5)
        beside = f"gradient, sr={sr}"  # the update's projection is not printed at sr = 10
        base = Base("Proj gradient", paper[beside], runs[beside])
        table.append(column.row(f"Proj {what}", paper[name], wanted[name, 0].ran(), runs[name], base))
        rival = {"update, sr=3": "update, sr=1"}.get(name, f"update, sr={min(sr, 3)}")
        cells.append(level(paper, ours, name, rival, column.ran(scale)))
    table = unprinted(table, at) if scale == "quick" else table
    return Result(table, cells, settings_of(at, algorithms), [*notes_of(at, scale), BEST])


def _stand_in(at: Setting) -> str:
    """What a scale runs, where it is nothing that the paper names."""
    return f"{at.data}, {at.network}"


def unprinted(table: Table, at: Setting) -> Table:
    """Rows of stand-ins: under their own name, beside nothing that is printed."""
    bare = {"panel": _stand_in(at), "paper": NAN, "printed gap": NAN}
    return [row | bare for row in table]


BEST = f"Best round: in the columns best, best_low and best_high, beside the mean that is judged. {OPTIMISTIC}"

DEEP = (("flss/table2", "CIFAR-100"), ("flss/table3", "ResNet-18"))  # on ResNet-18


def deep_run(column: Column) -> Budget:
    """What a run on ResNet-18 needs."""
    at = PAPER
    many = 100 if column.panel == "CIFAR-100" else 10
    return Budget(at.deep, many, dict(at.options)["batch"], at.sampled, column.epochs * at.epoch * at.rounds)


def measure_levels(
    scale: str,
    seeds: int,
    columns: Sequence[Column],
    printed: Mapping[str, Sequence[float]],
    item: str,
) -> Wants[Result]:
    """Accuracies in these columns. A method is judged by AGAINST; without it, by the next column.

    In a column that is run in full its level is judged, and the difference beside it.
    """
    at = SETTINGS[scale]
    index = [i if column.whole is None else column.whole for i, column in enumerate(columns)]
    paper = {column.label(name): values[i] for name, values in printed.items() for i, column in zip(index, columns)}
    run = [(c, name) for c in columns for name in printed if c.data and name in (c.names or printed)]

    def one(column: Column, name: str, seed: int) -> Spec:
        here = column.at or at
        return spec(here, method(name, here, column.epochs), column.beta, seed, column.data, column.network)

    of = {column: seeds if column.whole is None else min(seeds, _MOST_SEEDS) for column in columns}
    wanted = {
        (column, name, seed): one(column, name, seed)
        for seed in range(seeds)
        for column, name in run
        if seed < of[column]
    }
    results = yield wanted.values()
    runs = {
        column.label(name): [results[wanted[column, name, seed]] for seed in range(of[column])] for column, name in run
    }
    ours = {label: [last(one) for one in found] for label, found in runs.items()}
    table: Table = []
    cells = []
    for column in columns:
        beside = [other for other in columns if other.panel == column.panel]
        following = (beside[beside.index(column) + 1 :] or [column])[0]
        first = next((name for name in printed if column.label(name) in runs), "")
        for name in printed:
            label = column.label(name)
            if label in runs:
                base = Base(first, paper[column.label(first)], runs[column.label(first)])
                table.append(column.row(name, paper[label], wanted[column, name, 0].ran(), runs[label], base))
                if name in column.settled:
                    continue
                against = column.label(AGAINST[name]) if AGAINST[name] in printed else following.label(name)
                ran = column.ran(scale)
                if column.whole is None:
                    cells.append(level(paper, ours, label, against, ran))
                    continue
                region = verdicts.points(paper[label])
                cells.append(judge.level(f"{label}, level", paper[label], ours[label], region, ran, "ours"))
                if against != label:
                    theirs = {AGAINST[name]: paper[against], name: paper[label]}
                    found = {AGAINST[name]: ours[against], name: ours[label]}
                    cells.append(judge.order(column.header, AGAINST[name], name, theirs, found, ran, "ours"))
            elif column.whole is None:
                lacks = "hours of computing at the printed length" if column.names else "data or a GPU"
                reason = f"needs {lacks} that were not at hand: {command(item)}"
                if (item, column.panel) in DEEP:
                    reason += f"; {deep_run(column)}"
                cells.append(judge.absent(label, paper[label], reason))
    shown = {(name, c.epochs): wanted[c, name, 0].algorithm for c, name in run if c.names is None and c.whole is None}
    several = len({epochs for _, epochs in shown}) > 1
    algorithms = {f"{name}, epochs={epochs}" if several else name: one for (name, epochs), one in shown.items()}
    table = unprinted(table, at) if scale == "quick" else table
    return Result(table, cells, settings_of(at, algorithms), [*notes_of(at, scale), BEST])


def measure_heterogeneity(scale: str, seeds: int) -> Wants[Result]:
    """Table 2, 5 local epochs. Below the paper's scale only the columns of Fashion-MNIST are run."""
    at = SETTINGS[scale]
    columns = []
    for panel, data in SETS2:
        there = data if scale == "paper" else at.fashion if panel == "FMNIST" else None
        network = at.deep if panel == "CIFAR-100" else at.network
        own = replace(at, epoch=EPOCH[data]) if scale == "paper" else None
        columns += [Column(panel, f"beta={beta:g}", there, network, beta, 5, own, printed=False) for beta in BETAS]
    if scale == "large":
        for i, beta in enumerate(BETAS):
            if names := AT_LENGTH.get(beta, ()):
                columns[i] = columns[i]._replace(settled=names)
                columns.append(
                    Column(
                        "FMNIST", f"{IN_FULL} beta={beta:g}", FASHION.fashion, FASHION.network, beta, 5, FASHION
                    )._replace(names=names, whole=i, printed=False)
                )
    result = yield from measure_levels(scale, seeds, columns, TABLE2, "flss/table2")
    if scale == "paper":
        result.settings["steps of one epoch"] = ", ".join(f"{steps} on {data}" for data, steps in EPOCH.items())
    if scale == "large":
        names = dict.fromkeys(name for names in AT_LENGTH.values() for name in names)
        result.settings[f"FMNIST {IN_FULL.strip(',')}"] = settings_of(
            FASHION, {name: method(name, FASHION) for name in names}
        )
        result.notes.insert(0, FASHION_LENGTH)
    return result


# Tables 3 and 4: local epochs, and what is communicated


def cost_cell(cell: str, name: str, text: str, network: str, rounds: range) -> Cell:
    """It matches where the counted number, rounded or cut off to the printed digits, is the printed one."""
    words = sent(method(name, PAPER), PARAMETERS[network], rounds)
    how = fits(text, words)
    reading = f"{words:,.0f} words of 32 bits up per client in rounds {rounds.start} to {rounds.stop - 1}: {how}"
    verdict = verdicts.AGAINST if how == "neither rounded nor cut off" else verdicts.MATCHES
    return Cell(cell, printed_cost(text), words, words, words, 1, verdict, reading, "count")


def measure_epochs(scale: str, seeds: int) -> Wants[Result]:
    """Table 3, beta = 0.5; the costs by count, for the paper's networks and 400 rounds, at every scale."""
    at, printed = SETTINGS[scale], scale == "large"
    columns = [Column("CNN", f"epochs={epochs}", at.data, at.network, 0.5, epochs) for epochs in EPOCHS]
    if printed:
        columns[0] = Column("CNN", "epochs=1", LENGTH.data, LENGTH.network, 0.5, 1, LENGTH, COMPARED)
    deep = at.data if scale == "paper" else None
    columns += [Column("ResNet-18", f"epochs={epochs}", deep, at.deep, 0.5, epochs) for epochs in EPOCHS]
    result = yield from measure_levels(scale, seeds, columns, TABLE3, "flss/table3")
    if printed:
        result.settings["CNN, epochs=1"] = settings_of(LENGTH, {name: method(name, LENGTH, 1) for name in COMPARED})
        result.notes.insert(0, PRINTED_LENGTH)
    for network, texts in zip(("CNN", "ResNet-18"), zip(*COSTS3.values())):
        for name, text in zip(COSTS3, texts):
            result.cells.append(cost_cell(f"{network} cost {name}", name, text, network, range(200, 400)))
    return result


WHOLE = 0.99  # of the models sent: from here on LBGM saves nothing


def measure_lbgm(scale: str, seeds: int) -> Wants[Result]:
    """Table 4, 5 local epochs; FLSS's cost by count, LBGM's by the share of a model that it sent in our runs."""
    at = SETTINGS[scale]
    columns = [Column("CIFAR-10", f"beta={beta:g}", at.data, at.network, beta, 5) for beta in BETAS]
    there = "cifar100" if scale == "paper" else None
    columns += [Column("CIFAR-100", f"beta={beta:g}", there, at.network, beta, 5) for beta in BETAS]
    result = yield from measure_levels(scale, seeds, columns, TABLE4, "flss/table4")
    rows = [row for row in result.table if row["method"] == "LBGM"]
    shares = {(row["panel"], row["setting"]): row["up_mb"] / row["down_mb"] for row in rows}
    idle = {}  # "at about the same cost" is the condition of the statement
    for column, lbgm, flss in zip(columns, *COSTS4.values()):
        network = "CNN" if column.panel == "CIFAR-10" else "CNN, 100 classes"
        label = column.label("cost LBGM")
        if column.data:
            place = _stand_in(at) if scale == "quick" else column.place
            share = shares[place, column.setting]
            if share > WHOLE:
                idle[column.label("LBGM")] = (
                    f"LBGM sent {share:.1%} of the models here: it is FedAvg, and costs as much"
                )
            result.cells.append(share_cell(label, lbgm, network, share, scale))
        else:
            result.cells.append(judge.absent(label, printed_cost(lbgm), command("flss/table4"), "count"))
        cell = cost_cell(column.label("cost FedAvg+FLSS"), "FedAvg+FLSS", flss, network, range(400))
        result.cells.append(cell)
    for at_place, cell in enumerate(result.cells):
        if cell.cell in idle:
            result.cells[at_place] = judge.unmet(cell, idle[cell.cell])
    if (least := min(shares.values(), default=0.0)) > WHOLE:
        result.notes.append(
            f"LBGM sent {least:.1%} of the models or more in our runs, and a few bytes with each message. So it is "
            "FedAvg here but for single messages, and the table compares two methods, not three."
        )
    return result


def share_cell(cell: str, text: str, network: str, share: float, scale: str) -> Cell:
    """A cost that hangs on the data: the share of 400 models that was sent up in our runs."""
    words = share * 400 * PARAMETERS[network]
    reason = f"{share:.1%} of the model a round, as in our runs, for 400 rounds of the paper's network"
    paper = printed_cost(text)
    return judge.level(cell, paper, [words], verdicts.times(paper), RAN[scale], "ours", None, reason)


def bands(
    at: Setting,
    wanted: Mapping[tuple[str, int], Spec],
    results: Mapping[Spec, dict[str, Any]],
    column: str,
    unit: float = 1,
) -> Table:
    """Mean and interval over seeds of a column of runs, and of its gap to FedAvg's: a row per method and round."""
    curves = {name: [results[one]["columns"] for (n, _), one in wanted.items() if n == name] for name, _ in wanted}
    table: Table = []
    for name, found in curves.items():
        for place, t in enumerate(found[0]["round"]):
            values, base = ([unit * one[column][place] for one in runs] for runs in (found, curves["FedAvg"]))
            row = {"method": name, "round": t, **dict(zip(("mean", "low", "high"), interval(values)))}
            row |= dict(zip(("gap", "gap low", "gap high"), interval([a - b for a, b in zip(values, base)])))
            table.append({**row, "seeds": len(found), "warm_up": at.warm_up, **wanted[name, 0].ran()})
    return table


def measure_longer(scale: str, seeds: int) -> Wants[Result]:
    """FedAvg with and without FLSS, beta = 0.5, with T, T0 and R four times as large: FedAvg levels off before T0."""
    at = SETTINGS[scale]
    at = replace(at, rounds=4 * at.rounds, warm_up=4 * at.warm_up, rank=4 * at.rank)
    wanted = {(name, seed): spec(at, method(name, at), 0.5, seed) for name in PAIR for seed in range(seeds)}
    results = yield wanted.values()
    curves = {name: [results[wanted[name, seed]] for seed in range(seeds)] for name in PAIR}
    ours = {name: [last(one) for one in found] for name, found in curves.items()}
    paper = {name: TABLE3[name][1] for name in curves}
    cells = [level(paper, ours, "FedAvg+FLSS", "FedAvg", RAN[scale])]
    algorithms = {name: method(name, at) for name in PAIR}
    return Result(bands(at, wanted, results, "accuracy", 100), cells, settings_of(at, algorithms), notes_of(at, scale))


# Figure 1: loss, and the singular values of the trajectory


def measure_loss(scale: str, seeds: int) -> Wants[Result]:
    """Figure 1a: training loss, with FedAvg from the same seeds, which is the same run up to round T0."""
    at = SETTINGS[scale]
    at = on_fashion(at)
    step = at.rounds // 50 or 1
    wanted = {
        (name, seed): spec(at, method(name, at), 0.5, seed, every=step, metrics=("loss",))
        for name in PAIR
        for seed in range(seeds)
    }
    results = yield wanted.values()
    curves = {name: [results[wanted[name, seed]]["columns"] for seed in range(seeds)] for name in PAIR}
    rounds = curves["FedAvg"][0]["round"]
    start, later = rounds.index(at.warm_up), rounds.index(at.warm_up + at.rounds // 10)
    rises = {
        name: [max(one["loss"][start + 1 : later + 1]) - one["loss"][start] for one in found]
        for name, found in curves.items()
    }
    falls = [one["loss"][-1] - one["loss"][start] for one in curves["FedAvg+FLSS"]]
    gaps = [a - b for a, b in zip(rises["FedAvg+FLSS"], rises["FedAvg"])]
    said = f"FedAvg's, which just goes on: {np.mean(rises['FedAvg']):+.3f}"
    cells = [
        change(
            "loss: highest of the T/10 rounds after T0, minus that at T0", rises["FedAvg+FLSS"], +1, said, RAN[scale]
        ),
        change("the same, minus FedAvg's", gaps, +1, "is it the subspace that makes it rise?", RAN[scale]),
        change("loss: last minus that at T0", falls, -1, "training goes on in the subspace", RAN[scale]),
    ]
    algorithms = {name: method(name, at) for name in PAIR}
    return Result(bands(at, wanted, results, "loss"), cells, settings_of(at, algorithms), notes_of(at, scale))


def change(cell: str, values: Sequence[float], sign: int, said: str, ran: str) -> Cell:
    """A sign that a text or figure states without a number."""
    return judge.side(cell, NAN, values, verdicts.like(sign), ran, "ours", f"{said}; no number printed")


def measure_spectra(scale: str, seeds: int, device: str) -> Result:
    """Figures 1b-1d: singular values of the global updates of T0 rounds, kept whole by FLSS's own G."""
    at = SETTINGS[scale]
    J = at.warm_up
    algorithm = FLSS(at.lr, 2 * at.epoch, J, J)
    table: Table = []
    shares: dict[str, list[float]] = {}
    read: dict[str, Any] = {}
    for network in at.spectra:
        for seed in range(seeds):
            data = "cifar100" if network == "resnet50" else None  # Figure 1d
            one = replace(spec(at, algorithm, 0.5, seed, data, network), rounds=J)
            problem = one.build(device)
            read |= problem.origin
            G = simulate.run(algorithm, problem, J, sampled=at.sampled, seed=seed, every=J, metrics=()).state.server.G
            values = G.values[0].double()
            for place, value in enumerate((values / values[0]).tolist(), 1):
                row = {"network": network, "d": problem.d, "seed": seed, "index": place, "ratio": value}
                table.append({**row, **one.ran()})
            energy = (values**2).cumsum(0) / (values**2).sum()
            shares.setdefault(network, []).append(float(energy[2]))
    cells = []
    for small, large in pairwise(at.spectra):
        gaps = [a - b for a, b in zip(shares[small], shares[large])]
        said = f"{np.mean(shares[small]):.3f} and {np.mean(shares[large]):.3f}"
        ran = "stand-in" if scale == "medium" and large == at.spectra[-1] else RAN[scale]  # Figure 1d has CIFAR-100
        cells.append(change(f"energy in the first three: {small} minus {large}", gaps, +1, said, ran))
    said = (
        f"The updates of the first {J} rounds, in which no direction is dropped. What is judged: that a deeper network "
        f"needs more directions, in the order {', '.join(at.spectra)}, by the energy in the first three."
    )
    notes = [*notes_of(at, scale, accuracy=False), said]
    return Result(table, cells, settings_of(at, {"FLSS": algorithm}), notes, data=read)


# Figure 2: features


def states(algorithm: Algorithm, problem: Problem, at: Setting, seed: int) -> Iterator[tuple[int, State]]:
    """The states that `run` passes through: (rounds done, state)."""
    root = Key(seed)
    state = algorithm.init(problem, problem.start(), root)
    for t in range(at.rounds):
        yield t, state
        key = root.fold("round", t)
        clients = loop.sample_clients(problem.n, at.sampled, key.fold("clients"))
        state, _, _ = loop.play_round(algorithm, problem, state, clients, key)
    yield at.rounds, state


@torch.no_grad()
def features(problem: ImageClassification, x: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """What the last layer sees."""
    body = replace(problem.network, ops=problem.network.ops[:-1])
    params = iter(x[None].split(problem.network.sizes, dim=-1))
    return body.forward(params, images[None], iter(problem.moments(x)))[0]


def measure_features(scale: str, seeds: int, device: str) -> Result:
    """Figure 2: t-SNE (scikit-learn) for seed 0; silhouettes of the features themselves for all seeds."""
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score

    at = on_fashion(SETTINGS[scale])
    table: Table = []
    scores: dict[str, list[float]] = {}
    read: dict[str, Any] = {}
    times = (at.warm_up // 5, at.warm_up, at.rounds)
    for name in ("FedAvg+FLSS", "FedAvg"):
        for seed in range(seeds):
            one = spec(at, method(name, at), 0.5, seed)
            problem = one.build(device)
            assert isinstance(problem, ImageClassification)
            read |= problem.origin
            images, labels = (part[: at.embedded] for part in problem.test)
            for t, state in states(one.algorithm, problem, at, seed):
                if t not in times[0 if name == "FedAvg+FLSS" else 2 :]:
                    continue
                seen = features(problem, state.server.x, images).double().cpu().numpy()
                panel = f"{name}, T = {t}"
                scores.setdefault(panel, []).append(float(silhouette_score(seen, labels.cpu().numpy())))
                if seed == 0:
                    points = TSNE(random_state=0, init="pca").fit_transform(seen)
                    for (x, y), label in zip(points.tolist(), labels.tolist()):
                        row = {"panel": panel, "x": x, "y": y, "label": label, "silhouette": scores[panel][0]}
                        table.append({**row, **replace(one, rounds=t).ran()})
    final = scores[f"FedAvg+FLSS, T = {at.rounds}"]
    plain = scores[f"FedAvg, T = {at.rounds}"]
    early = scores[f"FedAvg+FLSS, T = {times[0]}"]
    cells = [
        change(
            "silhouette: FLSS minus FedAvg, last round",
            [a - b for a, b in zip(final, plain)],
            +1,
            f"{np.mean(final):.3f} and {np.mean(plain):.3f}",
            RAN[scale],
        ),
        change(
            "silhouette of FLSS: last round minus T0/5",
            [a - b for a, b in zip(final, early)],
            +1,
            f"{np.mean(final):.3f} and {np.mean(early):.3f}",
            RAN[scale],
        ),
    ]
    algorithms = {name: method(name, at) for name in PAIR}
    return Result(table, cells, settings_of(at, algorithms), notes_of(at, scale), data=read)


# Pictures


def _points(
    axes: Axes, rows: Table, names: Mapping[str, style.Look], ours: Sequence[str], paper: str | None = None
) -> None:
    """Methods side by side at each setting: ours with intervals, what is printed hollow."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    names = {name: how for name, how in names.items() if any(row["method"] == name for row in rows)}
    for place, (name, how) in enumerate(names.items(), 1):
        for found in (row for row in rows if row["method"] == name):
            x = settings.index(found["setting"]) + min(0.16, 0.8 / len(names)) * (place - (len(names) + 1) / 2)
            mean, low, high = (found[part] for part in ours)
            error = [[mean - low], [high - mean]]
            axes.errorbar([x], [mean], error, fmt=how.marker, markersize=3.5, color=how.color, capsize=2)
            if paper and not math.isnan(found[paper]):
                axes.plot([x], [found[paper]], how.marker, markersize=4.5, mfc="none", color=how.color, zorder=3)
    axes.set_xticks(range(len(settings)), [name.removeprefix(f"{IN_FULL} ") for name in settings])
    axes.set_xlim(-0.5, len(settings) - 0.5)


@style.styled
def draw_levels(table: Table) -> Figure:
    """Ours with intervals, and the differences to one method, beside what is printed (hollow). A row a length.

    Printed accuracies stand beside ours at the printed length alone.
    """
    most = max(row["ran rounds"] for row in table)
    parts = sorted({(row["panel"], row["ran rounds"]) for row in table}, key=lambda part: part[1])
    lengths = len({rounds for _, rounds in parts})
    printed = any(not math.isnan(row["paper"]) for row in table)
    names = style.looks(row["method"] for row in table)
    figure, axes = style.new_figure(2 * len(parts), 2.6 * len(parts), 2, len(parts))
    for (panel, rounds), levels, gaps in zip(parts, axes[::2], axes[1::2]):
        rows = [row for row in table if (row["panel"], row["ran rounds"]) == (panel, rounds)]
        whole, against = lengths > 1 and rounds == most, rows[0]["against"]
        _points(levels, rows, names, ("mean", "low", "high"), "paper" if whole else None)
        levels.set(ylabel="test accuracy, %", title=f"{panel}, {rounds} rounds{' as printed' if whole else ''}")
        _points(gaps, [row for row in rows if row["method"] != against], names, GAP, "printed gap")
        gaps.axhline(0, color="black", linewidth=0.8)
        gaps.set(
            ylabel=f"points, minus {against}'s",
            title="paired by seed" + (f"; hollow: printed for {panel.split(' (')[0]}" if printed else ""),
        )
    for name, how in names.items():
        n = " or ".join(map(str, sorted({row["seeds"] for row in table if row["method"] == name})))
        axes[0].plot([], [], how.marker, markersize=3.5, color=how.color, label=f"{name} (n={n})")
    if printed:
        axes[1].plot([], [], "ko", markersize=4.5, markerfacecolor="none", label="hollow: printed, 400 rounds")
    style.caption(figure, table)
    style.legend_above(figure, 5)
    return figure


def curves_of(table: Table, ylabel: str, scale: str, apart: str) -> Figure:
    """A curve with its band per method, and beside it the gap to FedAvg; T0 is marked."""
    figure, (axes, beside) = style.new_figure(2)
    for name, how in style.looks(row["method"] for row in table).items():
        rows = [row for row in table if row["method"] == name]
        t, mean, low, high = ([row[key] for row in rows] for key in ("round", "mean", "low", "high"))
        low = [max(a, b / 10) for a, b in zip(low, mean)]  # stays above zero on a log axis
        style.band(axes, t, mean, low, high, name, rows[0]["seeds"], how)
        gap, low, high = ([row[key] for row in rows] for key in ("gap", "gap low", "gap high"))
        style.band(beside, t, gap, low, high, name, rows[0]["seeds"], how)
    for panel in (axes, beside):
        panel.axvline(table[0]["warm_up"], color="k", linestyle=":", linewidth=1, label="T0: the subspace starts")
        panel.set(xlabel="communication rounds")
    axes.set(ylabel=ylabel, yscale=scale)
    beside.set(ylabel=apart)
    style.caption(figure, table, "right: differences paired by seed")
    style.legend_above(figure, 3)
    return figure


@style.styled
def draw_loss(table: Table) -> Figure:
    """Training loss over rounds."""
    return curves_of(table, "training loss", "log", "loss minus FedAvg's")


@style.styled
def draw_longer(table: Table) -> Figure:
    """Test accuracy over rounds."""
    return curves_of(table, "test accuracy, %", "linear", "points above FedAvg")


@style.styled
def draw_spectra(table: Table) -> Figure:
    """Singular values over their index, one line per seed."""
    figure, (axes,) = style.new_figure()
    for network, how in style.looks(row["network"] for row in table).items():
        rows = [row for row in table if row["network"] == network]
        n = len({row["seed"] for row in rows})
        for seed in range(n):
            chosen = [row for row in rows if row["seed"] == seed]
            label = f"{network}, d = {rows[0]['d']:,} (n={n})" if seed == 0 else None
            axes.plot([row["index"] for row in chosen], [row["ratio"] for row in chosen], **how.line, label=label)
    axes.set(xlabel="index i", ylabel=r"singular value $\sigma_i/\sigma_1$", ylim=(0, 1.02))
    style.caption(figure, table)
    style.legend_above(figure, 1)
    return figure


@style.styled
def draw_features(table: Table) -> Figure:
    """t-SNE of the features, a colour per class."""
    panels = list(dict.fromkeys(row["panel"] for row in table))
    figure, axes = style.new_figure(len(panels), height=2.1, columns=2)
    for axis, panel in zip(axes, panels):
        rows = [row for row in table if row["panel"] == panel]
        for label in sorted({row["label"] for row in rows}):
            chosen = [row for row in rows if row["label"] == label]
            color = f"C{label}"
            axis.plot([row["x"] for row in chosen], [row["y"] for row in chosen], ".", markersize=2, color=color)
        axis.set(
            title=f"{panel}\nsilhouette {rows[0]['silhouette']:.2f}", xlabel="t-SNE, no scale", xticks=[], yticks=[]
        )
    style.caption(
        figure, table, "seed 0; a colour per class; silhouette: of the features themselves, not of their picture"
    )
    return figure


ITEMS = [
    Item("flss/table1", "What is projected: updates, gradients, both", measure_objects, draw_levels, SCALES),
    Item("flss/table2", "Heterogeneity, with and without FLSS", measure_heterogeneity, draw_levels, LARGE),
    Item("flss/table3", "Local epochs, and communication cost", measure_epochs, draw_levels, LARGE),
    Item("flss/table4", "Accuracy and cost beside LBGM", measure_lbgm, draw_levels, SCALES),
    Item("flss/fig1a", "Training loss when the subspace starts", measure_loss, draw_loss, SCALES),
    Item(
        "flss/fig1bcd",
        "Singular values of the global updates",
        itself(measure_spectra, on_device=True),
        draw_spectra,
        SCALES,
        early=True,
    ),
    Item(
        "flss/fig2",
        "t-SNE of features",
        itself(measure_features, on_device=True),
        draw_features,
        SCALES,
        early=True,
    ),
]
EXTRAS = [
    Item("flss/longer", "FLSS and FedAvg over four times as many rounds", measure_longer, draw_longer, SCALES),
]
