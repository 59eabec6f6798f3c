"""Deep networks (FedSub's Figure 2; SSF's Figure 4 and Table 5): ResNet-110 on CIFAR-100 with equal local compute.

What the percentage of parameters that train is of, and what runs at the papers' scales need, is counted, too.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.layout import Layout
from fedtheory.maps.subspace import Coordinate, Identity, Projection, Spherical
from fedtheory.papers import judge, style
from fedtheory.papers.accuracy import OPTIMISTIC, best, best_at, last
from fedtheory.papers.budget import LAUNCH, SUSTAINED, VECTORS, Budget, command, gradient
from fedtheory.papers.flss import items as flss
from fedtheory.papers.mud import items as mud
from fedtheory.papers.store import Item, Result, Spec, Wants, interval, itself
from fedtheory.problems.models.networks import network
from fedtheory.running import verdicts
from fedtheory.running.records import Cell, Row, Table, behind

NAN = math.nan
SCALES = ("quick", "medium", "paper")
RANK, LR, TAU, BATCH = 3, 0.1, 10, 32  # FedSub, Sec. 5.2; SSF prints none of them
EPOCHS = {"fedsub": 40, "ssf": 100}
CODE = "our-CD, public code"  # P^T P = I, r/m times the gradient on convolutions, new every 50 steps
SHARE = 0.43  # "reducing trainable parameters to 43% of the original"

# Printed: test accuracies in percent.
FIG2 = {"our-CD": 58.0, "our-P=I": 58.0, "FedAvg": NAN}  # "nearly 58%", FedAvg below both
TABLE5 = {  # final, best, its epoch
    "Full-SCAFFOLD": (52.92, 53.11, 53),
    "SSF": (45.43, 45.43, 99),
    "FedAvg": (34.35, 38.51, 46),
    "FedSub": (23.17, 30.20, 41),
}

# Which layers are projected, along what: the reading that gives the printed share and the counts in the public logs.
WHOLE = ("linear", "bias", "scale", "shift")  # P_l = 1 on all but the convolutions
VIEW = "width"  # a kernel (c_out, c_in, 7, 7) is a matrix of 7 rows, its width; r = 3 of them train


@dataclass(frozen=True)
class Setting:
    """What a scale runs.

    Fields:
        what: in words.
        ran: of `verdicts.RUNS`.
        network: of `models.NETWORKS`.
        options: of the problem.
        images: training images, all clients together.
        lr: of all methods.
        rounds: of every run; None: of the papers' epochs.
        records: how many.
    """

    what: str
    ran: str
    network: str
    options: dict[str, Any]
    images: int
    lr: float
    rounds: int | None
    records: int

    @property
    def clients(self) -> int:
        return self.options["clients"]

    def length(self, paper: str) -> int:
        """Rounds: each makes clients * TAU * BATCH gradients of one image."""
        return self.rounds or math.ceil(EPOCHS[paper] * self.images / (self.clients * TAU * BATCH))

    def epochs(self, t: int) -> float:
        """Passes over the data in t rounds."""
        return t * self.clients * TAU * BATCH / self.images


SPLIT = {"partition": "labels", "batch": BATCH, "view": VIEW, "whole": WHOLE}
SETTINGS = {
    "quick": Setting(
        "scikit-learn's digits (8 x 8) instead of CIFAR-100, ResNet-8 with 7 x 7 kernels, 5 clients with 2 of the "
        "10 labels each",
        "smoke",
        "resnet8-7",
        SPLIT | {"data": "digits", "clients": 5, "labels": 2},
        1437,
        LR,
        4,
        4,
    ),
    "medium": Setting(
        "CIFAR-10 instead of CIFAR-100: 4,000 of the 20,000 training images at hand and 2,000 test images, "
        "resized to 12 x 12 pixels; ResNet-8 with 7 x 7 kernels instead of ResNet-110; 5 clients with 2 of the "
        "10 labels each",
        "stand-in",
        "resnet8-7",
        SPLIT
        | {"data": "cifar10", "partial": True, "subset": 4000, "tested": 2000, "side": 12, "clients": 5, "labels": 2},
        4000,
        LR,
        28,
        7,
    ),
    "paper": Setting(
        "CIFAR-100, ResNet-110 with 7 x 7 kernels, 4 clients with 25 of the 100 labels each, bfloat16 products",
        "paper's",
        "resnet110-7",
        SPLIT | {"data": "cifar100", "clients": 4, "labels": 25, "precision": "bf16"},
        50_000,
        LR,
        None,
        100,
    ),
}
READING = [
    "Equal local compute: in every round every method makes 10 steps on 32 images on every client, with the same "
    "batches; Full-SCAFFOLD, too, which the paper ran on another schedule (SSF, Sec. 5.3).",
    "eta = 0.1, constant, and tau = 10, batch 32, r = 3 for all methods: FedSub's, since SSF prints none (open point "
    "23). No momentum, decay or augmentation. All clients take part.",
    "Projected: convolutions only, along the kernel's width, r = 3 of 7; linear layer, biases and normalisation whole.",
    "FedSub in SSF's figure and table is SSF's reading of it as in ssf/table3: P P^T = I, Haar, new every 5 rounds.",
    "Normalisation: each batch by its own moments, no running averages; for evaluation, those of one batch per client "
    "at the final model, mixed. With labels divided among clients the mixture is none of the moments trained with.",
]


def method(name: str, lr: float) -> Algorithm:
    """The papers' methods as this package reads them."""
    haar = Spherical(RANK, "orthonormal")
    return {
        "Full-SCAFFOLD": Scaffold(lr, TAU),
        "SSF": SSF(lr, TAU, haar),
        "FedAvg": FedAvg(lr, TAU),
        "FedSub": FedSubReading(lr, TAU, haar, refresh=5),
        "our-CD": FedSub(lr, TAU, Coordinate(RANK)),
        CODE: FedSubReading(lr, TAU, Coordinate(RANK, "orthonormal", signs=True), refresh=5, gradient_factor="r/m"),
        "our-P=I": FedSub(lr, TAU, Identity()),
    }[name]


def spec(name: str, paper: str, scale: str, seed: int) -> Spec:
    """One run."""
    at = SETTINGS[scale]
    rounds = at.length(paper)
    options = tuple(sorted({**at.options, "network": at.network, "moments": "first"}.items()))
    every = max(1, rounds // at.records)
    return Spec(
        method(name, at.lr), "images", options, rounds, seed, every=every, dtype="float32", metrics=("accuracy",)
    )


# What is counted.


def trained(projection: Projection, layout: Layout) -> int:
    """Parameters that a local step trains."""
    return projection.low(layout).size


def readings() -> Table:
    """Trainable parameters of ResNet-110 for 100 classes with r = 3, by kernel size and by what r counts."""
    table: Table = []
    for name in ("resnet110", "resnet110-7"):
        for view, what in (("width", "k"), ("rows", "c_in k"), ("filter", "c_in k k")):
            layout = network(name, (3, 32, 32), 100, view, WHOLE).layout
            least = min(layer.rows for layer in layout.layers if layer.kind == "conv")
            count = trained(Coordinate(RANK), layout)
            row = {"network": name, "kernel": name.partition("-")[2] or "3", "m": what, "smallest m": least}
            table.append({**row, "parameters": layout.size, "trained": count, "share": count / layout.size})
    return table


# Measured.


def budget(paper: str) -> Budget:
    """Of one run at the paper's scale."""
    at = SETTINGS["paper"]
    return Budget(at.network, 100, BATCH, at.clients, TAU * at.length(paper))


def needs(item: str) -> str:
    """What is missing here for an item at the paper's scale."""
    return f"needs the files of cifar100 and a GPU: {command(item)}; {budget(item.split('/')[0])}"


def runs(names: Sequence[str], paper: str, scale: str, seeds: int) -> Wants[dict[str, list[dict[str, Any]]]]:
    """Results per method and seed: all methods of a seed before the next."""
    wanted = {(name, seed): spec(name, paper, scale, seed) for seed in range(seeds) for name in names}
    results = yield wanted.values()
    return {name: [results[wanted[name, seed]] for seed in range(seeds)] for name in names}


def curve_rows(
    found: dict[str, list[dict[str, Any]]], paper: str, scale: str, printed: dict[str, tuple[float, float]]
) -> Table:
    """Accuracy over epochs; the printed final accuracy and its epoch stand in every row of a method."""
    table: Table = []
    for name, several in found.items():
        for place in range(min(len(one["columns"]["round"]) for one in several)):
            columns = several[0]["columns"]
            mean, low, high = interval([100 * one["columns"]["accuracy"][place] for one in several])
            here = {"method": name, "epoch": SETTINGS[scale].epochs(columns["round"][place])}
            numbers = {"mean": mean, "low": low, "high": high, "seeds": len(several)}
            sent = {"up_mb": columns["up_bytes"][place] / 1e6, "down_mb": columns["down_bytes"][place] / 1e6}
            table.append({**here, **numbers, **sent, "paper": printed[name][0], **spec(name, paper, scale, 0).ran()})
    return table


def level(what: str, name: str, printed: dict[str, float], ours: dict[str, list[float]], scale: str) -> Cell:
    """A printed accuracy; below the paper's scale its difference to the first method's."""
    first, at = next(iter(printed)), SETTINGS[scale]
    rival = judge.Rival(first, printed[first], ours[first])
    region = verdicts.points(printed[name])
    return judge.level(f"{name} {what}", printed[name], ours[name], region, at.ran, "ours", rival)


RATES = (0.01, 0.03, 0.1)
RATED = (*TABLE5, "our-CD", "our-P=I")  # both papers' methods, in SSF's number of rounds


def measure_rates(scale: str, seeds: int) -> Wants[Result]:
    """Both papers' methods at lower rates: does the order hang on the rate? Best record and last one.

    Beside each stand, paired by seed, its difference to FedAvg at the same rate and to itself at the printed one.
    """
    wanted = {
        (name, lr, seed): replace(one, algorithm=method(name, lr))
        for seed in range(seeds)
        for name in RATED
        for lr in RATES
        for one in [spec(name, "ssf", scale, seed)]
    }
    results = yield wanted.values()
    readings: dict[str, Callable[[dict[str, Any]], float]] = {"final": lambda one: last(one, 1), "best": best}
    reached = {
        (name, lr, what): [read(results[wanted[name, lr, seed]]) for seed in range(seeds)]
        for name in RATED
        for lr in RATES
        for what, read in readings.items()
    }
    table: Table = []
    for (name, lr, what), values in reached.items():
        row: Row = {"method": name, "lr": lr, "what": what, "seeds": seeds}
        beside = {"gap": reached["FedAvg", lr, what], "gain": reached[name, max(RATES), what]}
        row |= zip(("mean", "low", "high"), interval(values))
        for part, others in beside.items():
            found = interval([a - b for a, b in zip(values, others, strict=True)])
            row |= zip((part, f"{part} low", f"{part} high"), found)
        table.append({**row, **wanted[name, lr, 0].ran()})
    varied = f"In this picture eta is varied: {', '.join(map(str, RATES))}; all else stays."
    said = words(scale, "ssf", list(RATED), seeds) | {"lr": str(RATES)}
    return Result(table, [], said, [*notes(scale), varied, OPTIMISTIC])


def words(scale: str, paper: str, names: Sequence[str], seeds: int) -> dict[str, Any]:
    """Provenance."""
    at = SETTINGS[scale]
    said = {"scale in words": at.what, "network": at.network, "rounds": at.length(paper), "clients": at.clients}
    said |= {
        "epochs": round(at.epochs(at.length(paper)), 2),
        "local steps": TAU,
        "batch": BATCH,
        "lr": at.lr,
        "r": RANK,
    }
    return {
        **said,
        "methods": {name: repr(method(name, at.lr)) for name in names},
        "options": at.options,
        "seeds": seeds,
    }


def notes(scale: str) -> list[str]:
    return [f"Runs: {SETTINGS[scale].what}.", *READING]


def measure_2(scale: str, seeds: int) -> Wants[Result]:
    """FedSub's Figure 2: both variants outperform FedAvg, with 43% of the parameters in one of them."""
    found = yield from runs([*FIG2, CODE], "fedsub", scale, seeds)
    ours = {name: [last(one, 1) for one in several] for name, several in found.items()}
    at, lacks = SETTINGS[scale], "" if scale == "paper" else needs("fedsub/fig2")
    cells = [
        judge.level(f"{name} (nearly)", paper, ours[name], verdicts.points(paper), at.ran, "printed", None, lacks)
        for name, paper in FIG2.items()
        if not math.isnan(paper)
    ]
    for name in ("our-CD", "our-P=I"):
        cells.append(judge.order("final:", "FedAvg", name, {"FedAvg": NAN, name: NAN}, ours, at.ran, "printed"))
    layout = network("resnet110-7", (3, 32, 32), 100, VIEW, WHOLE).layout
    share = trained(Coordinate(RANK), layout) / layout.size
    reason = (
        f"counted: {trained(Coordinate(RANK), layout):,} of {layout.size:,} parameters, with 7 x 7 kernels and r = 3 "
        "of their width; the public logs print 4.03M of 9.37M. With 3 x 3 kernels r = 3 gives 100%, 2.9% or 1.5%, by "
        "what m is"
    )
    cells.append(judge.counted("trainable parameters of our-CD", SHARE, share, verdicts.rounded(SHARE, 2), reason))
    table = curve_rows(found, "fedsub", scale, {name: (FIG2.get(name, NAN), NAN) for name in found})
    mean, low, high = interval([one - other for one, other in zip(ours[CODE], ours["FedAvg"])])
    said = (
        f"{CODE}: P^T P = I and r/m times the gradient on the convolutions, so that their step is 3/7 of our-CD's; a "
        f"new P every 50 local steps. Its final accuracy minus FedAvg's: {mean:.1f} points [{low:.1f}, {high:.1f}]."
    )
    return Result(table, cells, words(scale, "fedsub", list(found), seeds), [*notes(scale), said])


def measure_4(scale: str, seeds: int) -> Wants[Result]:
    """SSF's Figure 4, (137): Full-SCAFFOLD > SSF > FedAvg > FedSub, at the final epoch."""
    found = yield from runs(list(TABLE5), "ssf", scale, seeds)
    ours = {name: [last(one, 1) for one in several] for name, several in found.items()}
    printed = {name: row[0] for name, row in TABLE5.items()}
    names = list(TABLE5)
    ran = SETTINGS[scale].ran
    cells = [judge.order("final:", low, high, printed, ours, ran, "ours") for high, low in pairwise(names)]
    table = curve_rows(found, "ssf", scale, {name: (row[0], row[2]) for name, row in TABLE5.items()})
    return Result(table, cells, words(scale, "ssf", names, seeds), notes(scale))


def measure_5(scale: str, seeds: int) -> Wants[Result]:
    """SSF's Table 5: final and best accuracy, and the epoch of the best record."""
    found = yield from runs(list(TABLE5), "ssf", scale, seeds)
    at = SETTINGS[scale]
    step = at.epochs(max(1, at.length("ssf") // at.records))
    final = {name: [last(one, 1) for one in several] for name, several in found.items()}
    highest = {name: [best(one) for one in several] for name, several in found.items()}
    table: Table = []
    cells = []
    for name, row in TABLE5.items():
        cells.append(level("final", name, {n: r[0] for n, r in TABLE5.items()}, final, scale))
        cells.append(level("best", name, {n: r[1] for n, r in TABLE5.items()}, highest, scale))
        epochs = [step * best_at(one) for one in found[name]]
        cell, near = f"{name} best epoch", verdicts.points(row[2], 5)
        said = "of the best record" if scale == "paper" else needs("ssf/table5")
        cells.append(judge.level(cell, row[2], epochs, near, at.ran, "ours", None, said))
        for what, values, paper in (("final", final, row[0]), ("best", highest, row[1])):
            mean, low, high = interval(values[name])
            here = {"method": name, "what": what, "paper": paper, "mean": mean, "low": low, "high": high}
            table.append({**here, "seeds": seeds, **spec(name, "ssf", scale, 0).ran()})
    margin = [a - b for a, b in zip(final["Full-SCAFFOLD"], final["SSF"])]
    region = verdicts.points(7.5) if at.ran == "paper's" else verdicts.above()
    said = "points; the printed 52.92 and 45.43 give 7.49"
    cells.append(judge.side("text: Full-SCAFFOLD minus SSF", 7.5, margin, region, at.ran, "ours", said))
    return Result(table, cells, words(scale, "ssf", list(TABLE5), seeds), [*notes(scale), OPTIMISTIC])


# What runs at the papers' scales need: counted, one local step measured here, the rest estimated.


def budgets() -> dict[str, Budget]:
    """One run of each item on a deep network."""
    at = flss.SETTINGS["paper"]
    batch = dict(at.options)["batch"]
    return {
        "ssf/fig4, table5": budget("ssf"),
        "the same, 3 x 3 kernels": replace(budget("ssf"), name="resnet110"),
        "fedsub/fig2": budget("fedsub"),
        "mud/table5, CIFAR-10": mud.deep_run("CIFAR-10 N1"),
        "mud/table5, TinyImageNet": mud.deep_run("TinyImageNet N1"),
        "flss/table3, 5 epochs": Budget("resnet18", 10, batch, at.sampled, 5 * at.epoch * at.rounds),
        "flss/fig1bcd, ResNet-50": Budget("resnet50", 10, batch, at.sampled, 2 * at.epoch * at.warm_up),
    }


def measure_budgets(scale: str, seeds: int) -> Result:
    """One gradient of one client per network and batch is computed on the CPU, in one thread, and its time taken."""
    table: Table = []
    seconds: dict[tuple[Any, ...], float] = {}
    for name, run in budgets().items():
        one = (run.name, run.shape, run.batch)
        if one not in seconds:
            work, started = gradient(run.network, run.batch, "cpu"), time.process_time()
            work()
            seconds[one] = time.process_time() - started
        table.append(
            {
                "run": name,
                "network": run.name,
                "parameters": run.network.layout.size,
                "clients": run.clients,
                "batch": run.batch,
                "steps": run.steps,
                "products": run.step.products,
                "memory": run.memory,
                "operations": run.step.operations,
                "gpu_hours": run.hours,
                "cpu_seconds": seconds[one],
                "cpu_hours": seconds[one] * run.clients * run.steps / 3600,
                **behind("random images, one step", run.name),
            }
        )
    notes = [
        "Counted on shapes: parameters; products and tensor operations of one local step of all clients of a round, "
        f"stacked; memory in bytes of that step plus {VECTORS} vectors per client, float32.",
        "Measured: cpu_seconds, processor time of one gradient of one client, the first in its process, one thread. "
        "That times clients and steps is cpu_hours: evaluation and the method's own products are left out.",
        f"Estimated, not measured on a card: gpu_hours, the larger of {SUSTAINED:.0e} FLOP a second and {LAUNCH:g} s "
        "an operation.",
    ]
    return Result(table, [], {"sustained": SUSTAINED, "launch": LAUNCH}, notes)


# Pictures.


@style.styled
def draw_curves(table: Table) -> Figure:
    """Test accuracy over passes and over megabytes; what the paper prints, of another network, data and length, below.

    Curves that cross have bars in turn.
    """
    figure, (left, right) = style.new_figure(2)
    names = list(dict.fromkeys(row["method"] for row in table))
    for place, name in enumerate(names):
        rows = [row for row in table if row["method"] == name]
        t, mean, low, high = ([row[part] for row in rows] for part in ("epoch", "mean", "low", "high"))
        sent = [row["up_mb"] + row["down_mb"] for row in rows]
        look: dict[str, Any] = {"turn": ((place + place // 2) % 2, 2), "within": (0.0, 100.0), "linewidth": 1.1}
        style.bars(left, t, mean, low, high, name, rows[0]["seeds"], **look)
        style.bars(right, sent[1:], mean[1:], low[1:], high[1:], name, rows[0]["seeds"], **look)
    left.set(xlabel="epochs (passes over all images)", ylabel="test accuracy in %")
    right.set(xlabel="megabytes up and down, all clients", ylabel="test accuracy in %")
    ends = {row["method"]: row["paper"] for row in table if not math.isnan(row["paper"])}
    printed = ", ".join(f"{name} {value:g}" for name, value in ends.items())
    epochs = EPOCHS["ssf" if "SSF" in names else "fedsub"]
    said = f"printed for epoch {epochs} of ResNet-110 on CIFAR-100, not drawn: {printed}"
    style.caption(figure, table, "bars: 95% intervals, at every second point", said)
    style.legend_above(figure, 4)
    return figure


@style.styled
def draw_table(table: Table) -> Figure:
    """Final and best accuracies: ours with intervals, the paper's as diamonds."""
    figure, (axes,) = style.new_figure()
    names = list(dict.fromkeys(row["method"] for row in table))
    for row in table:
        x = names.index(row["method"]) + (0.15 if row["what"] == "best" else -0.15)
        color, mark = style.look(row["method"]).color, "s" if row["what"] == "best" else "o"
        error = [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
        axes.errorbar([x], [row["mean"]], error, fmt=mark, markersize=3.5, color=color, capsize=2)
        style.paper_mark(axes, x, row["paper"], row["method"])
    axes.plot([], [], "ko", markersize=3.5, label=f"ours, final (n={table[0]['seeds']})")
    axes.plot([], [], "ks", markersize=3.5, label=f"ours, best (n={table[0]['seeds']})")
    axes.plot([], [], "kD", markersize=4.5, markerfacecolor="none", label="paper, ResNet-110, CIFAR-100")
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="test accuracy in %")
    style.caption(figure, table)
    style.legend_above(figure, 2)
    return figure


@style.styled
def draw_rates(table: Table) -> Figure:
    """Last and best accuracies over the rate, as differences to FedAvg: bands of accuracies overlap."""
    figure, panels = style.new_figure(2)
    names = [name for name in dict.fromkeys(row["method"] for row in table) if name != "FedAvg"]
    for axes, what in zip(panels, ("final", "best")):
        own = [row for row in table if row["what"] == what]
        levels = {row["lr"]: row["mean"] for row in own if row["method"] == "FedAvg"}
        for place, name in enumerate(names):
            rows = [row for row in own if row["method"] == name]
            gap, low, high = ([row[part] for row in rows] for part in ("gap", "gap low", "gap high"))
            lr = [row["lr"] * 1.06 ** (place - (len(names) - 1) / 2) for row in rows]
            style.bars(axes, lr, gap, low, high, name, rows[0]["seeds"], marker=style.look(name).marker, markersize=3)
        axes.axhline(0, **style.look("FedAvg").line, label=f"FedAvg (n={own[0]['seeds']})")
        axes.set(title=what, xscale="log", xlabel=r"learning rate $\eta$")
        axes.set_xticks(list(levels), [f"{lr:g}\n(FedAvg {level:.1f}%)" for lr, level in levels.items()])
        axes.set_xticks([], minor=True)
    panels[0].set_ylabel("points above FedAvg")
    style.caption(
        figure, table, "bars: 95% intervals of differences paired by seed; those at one rate stand side by side"
    )
    style.legend_above(figure, 4)
    return figure


@style.styled
def draw_budgets(table: Table) -> Figure:
    """Hours of a run: on this processor, extrapolated, and on a GPU, estimated."""
    figure, (axes,) = style.new_figure(columns=2)
    spots = list(range(len(table), 0, -1))
    axes.plot(
        [row["cpu_hours"] for row in table],
        spots,
        "o",
        color=style.SEQUENCE[0],
        label="one CPU core, one step measured",
    )
    axes.plot([row["gpu_hours"] for row in table], spots, "D", color=style.SEQUENCE[1], label="GPU, estimated")
    axes.set_yticks(spots, [f"{row['run']} ({row['memory'] / 1e9:.2g} GB)" for row in table])
    axes.set(xscale="log", xlabel="hours of one run")
    style.legend_above(figure, 2)
    return figure


ITEMS = [
    Item("fedsub/fig2", "Deep networks: accuracy over epochs and bytes", measure_2, draw_curves, SCALES[1:]),
    Item("ssf/fig4", "Deep networks: test accuracy over epochs", measure_4, draw_curves, SCALES[1:]),
    Item("ssf/table5", "Deep networks: final and best accuracy", measure_5, draw_table, SCALES[1:]),
]
EXTRAS = [
    Item("deep/rates", "Deep networks at other learning rates", measure_rates, draw_rates, SCALES),
    Item("deep/budget", "What runs at the papers' scales need", itself(measure_budgets), draw_budgets, SCALES),
]
