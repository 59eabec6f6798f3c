"""FedMUD on images (paper Sec. 5 and App. A): Tables 1-5, Figures 2-7."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any, cast

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.maps.decomposition import Decomposition
from fedtheory.papers import judge, style
from fedtheory.papers.accuracy import last
from fedtheory.papers.budget import Budget
from fedtheory.papers.mud.settings import (
    EIGHT,
    EXTENT,
    FULL,
    HERE,
    LARGE,
    NAN,
    RATIO,
    READING,
    SCALES,
    SETTINGS,
    TENSOR,
    algorithm,
    model,
    notes,
    on,
    seeded,
    setting_of,
    shown,
    spec,
    tuned,
    tuning,
    words,
)
from fedtheory.papers.store import Item, Result, Spec, Wants, interval, side_by_side
from fedtheory.running import verdicts
from fedtheory.running.records import Cell, Table, behind
from fedtheory.theory.mud.printed import TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, named

# Tables.


def accuracies(
    scale: str, seeds: int, names: Sequence[str], columns: Sequence[str]
) -> Wants[dict[tuple[str, str], list[float]]]:
    """Final accuracies of the methods that run at this scale, per seed: all methods of a seed before the next."""
    wanted = {
        (name, column, seed): spec(algorithm(name, column, scale), column, scale, seed)
        for seed in range(seeds)
        for column in columns
        for name in names
        if seed < seeded(column, scale, seeds, name)
    }
    results = yield wanted.values()
    found: dict[tuple[str, str], list[float]] = {}
    for (name, column, _), one in wanted.items():
        found.setdefault((name, column), []).append(last(results[one], 2))
    return found


def shared_seeds(
    found: dict[tuple[str, str], list[float]], column: str, names: Sequence[str]
) -> dict[str, list[float]]:
    """Accuracies of these methods on the seeds that all of them ran."""
    many = min(len(found[name, column]) for name in names)
    return {name: found[name, column][:many] for name in names}


def absent(item: str, name: str, column: str, paper: float) -> Cell:
    """A printed number without ours, and what is missing."""
    command = f"python -m fedtheory reproduce {item} --scale paper --data FOLDER --device cuda"
    reason = f"needs hours of computing on {column.split()[0]}, from a folder with its files: {command}"
    if item == "mud/table5":
        reason += f"; {deep_run(column)}"
    return judge.absent(f"{column} {name}", paper, reason)


def measure_table(
    scale: str,
    seeds: int,
    item: str,
    printed: dict[str, tuple[float, ...]],
    printed_columns: tuple[str, ...],
    orders: Sequence[tuple[str, str]],
) -> Wants[Result]:
    """Every printed number beside ours where it is run, then the printed orders of methods that are run.

    Beside each stands its difference to the first method's, ours paired by seed.
    """
    run = [column for column in printed_columns if column in SETTINGS[scale].columns]
    columns = run if scale == "quick" else printed_columns
    label = {column: shown(column, scale) if column in run else column for column in columns}
    found = yield from accuracies(scale, seeds, list(printed), run)
    table: Table = []
    cells: list[Cell] = []
    places = {column: at for at, column in enumerate(printed_columns)}
    for column in columns:
        paper = {name: values[places[column]] for name, values in printed.items()}
        first, at_scale = next(iter(paper)), setting_of(column, scale)
        ran = SETTINGS[at_scale].ran
        for name, value in paper.items():
            own, where = column in run, label[column]
            if own:
                both = shared_seeds(found, column, (name, first))
                rival = judge.Rival(first, paper[first], both[first])
                region, how = verdicts.points(value), tuning((name, first), at_scale, column)
                cells.append(judge.level(f"{where} {name}", value, both[name], region, ran, how, rival))
                gap = interval(minus(both[name], both[first]))
            else:
                cells.append(absent(item, name, column, value))
                gap = (NAN,) * 3
            last = cells[-1]
            numbers = {"paper": value, "ours": last.ours, "low": last.low, "high": last.high, "seeds": last.seeds}
            numbers |= {"printed gap": value - paper[first], **dict(zip(("gap", "gap low", "gap high"), gap))}
            of = spec(algorithm(name, column, scale), column, scale, 0).ran() if own else behind()
            bare = {"paper": NAN, "printed gap": NAN} if scale == "quick" else {}
            table.append({"column": where, "method": name, **numbers, **bare, **of})
        if column in run:
            for pair in orders:
                ours, how = shared_seeds(found, column, pair), tuning(pair, at_scale, column)
                cells.append(judge.order(label[column], *pair, paper, ours, ran, how))
    return Result(table, cells, words(scale, seeds, list(printed)), notes(scale, run) if run else list(READING))


BEST = "FedMUD+BKD+AAD"
ORDERS1 = (
    ("FedHM", "FedMUD"),
    ("FedLMT", "FedMUD"),
    ("FedPara", "FedMUD"),
    ("FedMUD", "FedMUD+BKD"),
    ("FedMUD", "FedMUD+AAD"),
    ("FedMUD+BKD", "FedMUD+AAD"),
    *((name, BEST) for name in TABLE1 if name not in ("FedAvg", "FedMUD", BEST)),
    (BEST, "FedAvg"),
)
ORDERS2 = (("FedMUD+F", "FedMUD+AAD"), ("FedMUD+BKD+F", "FedMUD+BKD+AAD"))


SENDERS = ("FedMUD", "FedMUD+BKD+AAD", "FedHM", "EF21-P", "FedBAT")


def measure_1(scale: str, seeds: int) -> Wants[Result]:
    """Accuracies under label skew, and what is sent: upload relative to FedAvg's, from the bytes of one round."""
    result = yield from measure_table(scale, seeds, "mud/table1", TABLE1, named("N1", "N2"), ORDERS1)
    if scale == "quick":  # what the perceptron sends is no number of the paper's
        return result
    specs = {name: spec(algorithm(name, HERE, scale), HERE, scale, 0, rounds=1) for name in ("FedAvg", *SENDERS)}
    found = yield specs.values()
    sent = {name: found[one]["columns"]["up_bytes"][-1] for name, one in specs.items()}
    for name in SENDERS:
        share = sent[name] / sent["FedAvg"]
        cell, said = f"{shown(HERE, scale)} upload of {name} / FedAvg's", f"ours/paper = {share / RATIO:.2f}"
        result.cells.append(judge.counted(cell, RATIO, share, verdicts.times(RATIO), said))
    return result


def measure_2(scale: str, seeds: int) -> Wants[Result]:
    """Decoupling against freezing under label skew."""
    return measure_table(scale, seeds, "mud/table2", TABLE2, named("N1"), ORDERS2)


def measure_3(scale: str, seeds: int) -> Wants[Result]:
    """Accuracies without label skew."""
    return measure_table(scale, seeds, "mud/table3", TABLE3, named("IID"), ORDERS1)


def measure_4(scale: str, seeds: int) -> Wants[Result]:
    """Decoupling against freezing under the other two partitions."""
    return measure_table(scale, seeds, "mud/table4", TABLE4, named("N2", "IID"), ORDERS2)


def measure_eight(scale: str, seeds: int) -> Wants[Result]:
    """Table 1's CIFAR-10 columns with the paper's network and length: 20,000 images, at the paper's scale 49,923."""
    part = FULL if scale == "paper" else EIGHT
    at = [place for place, column in enumerate(named("N1", "N2")) if column in SETTINGS[part].columns]
    printed = {name: tuple(values[place] for place in at) for name, values in TABLE1.items()}
    return measure_table(part, seeds, "mud/table1", printed, SETTINGS[part].columns, ORDERS1)


def measure_each(scale: str, seeds: int) -> Wants[Result]:
    """FedPara with the ratio of the whole network, as in the tables, with that of each layer, and as a tensor.

    Sec. 3.2 gives the ratio for a matrix, and Sec. 5.2 explains FedPara by its higher rank; the whole network's ratio
    is the public code's, which has no FedPara. By it FedPara's ranks are below those of a plain product. FedPara's
    authors decompose kernels by Proposition 3. That form and the eight layers, half an hour and an hour a seed, have
    one.
    """
    at = {"FMNIST N1": scale, "FMNIST IID": scale, "CIFAR-10 N1": EIGHT}
    count = {column: 1 if part == EIGHT else seeded(column, part, seeds) for column, part in at.items()}
    whole = {column: cast(FedMUD, algorithm("FedPara", column, part)) for column, part in at.items()}
    each = {c: replace(how, decomposition=replace(how.decomposition, ratio=RATIO)) for c, how in whole.items()}
    tensor = {"FMNIST N1": cast(FedMUD, algorithm(TENSOR, "FMNIST N1", scale))}
    readings = {"of the whole network": whole, "of each layer": each, "of the whole network, tensor form": tensor}
    wanted = {
        (label, column, seed): spec(how, column, at[column], seed)
        for label, hows in readings.items()
        for column, how in hows.items()
        for seed in range(1 if hows is tensor else count[column])
    }
    many = Counter((label, column) for label, column, _ in wanted)
    results = yield wanted.values()
    printed = dict(
        zip(at, (TABLE1["FedPara"][0], TABLE3["FedPara"][0], TABLE1["FedPara"][named("N1", "N2").index(HERE)]))
    )
    table: Table = []
    for column in at:
        base = [last(results[wanted["of the whole network", column, seed]], 2) for seed in range(count[column])]
        for label in (label for label, hows in readings.items() if column in hows):
            seen = range(many[label, column])
            ours = [last(results[wanted[label, column, seed]], 2) for seed in seen]
            row = {"column": column, "ratio": label, "paper": printed[column], "seeds": len(seen)}
            row |= dict(zip(("ours", "low", "high"), interval(ours)))
            row |= dict(zip(("gap", "gap low", "gap high"), interval(minus(ours, base[: len(ours)]))))
            one = wanted[label, column, 0]
            sent = [results[wanted[label, column, seed]]["columns"]["up_bytes"][-1] for seed in seen]
            table.append(row | {"up_bytes": max(sent)} | one.ran())
    said = []
    for column in ("FMNIST N1", "CIFAR-10 N1"):
        for label, changed in (("of the whole network", {}), ("of each layer", {"ratio": RATIO})):
            of = {
                name: cast(FedMUD, algorithm(name, column, at[column])).decomposition for name in ("FedPara", "FedLMT")
            }
            reached = {name: ranks(replace(how, **changed), model(column, at[column])) for name, how in of.items()}
            each_of = "; ".join(f"{name}'s {', '.join(map(str, found))}" for name, found in reached.items())
            said.append(f"{column}: highest ranks of the decomposed layers with the ratio {label}: {each_of}.")
    sliced = ", ".join(map(str, ranks(tensor["FMNIST N1"].decomposition, model("FMNIST N1", scale), sliced=True)))
    said.append(f"FMNIST N1: highest ranks of a kernel's slices in the tensor form: {sliced}.")
    shared = notes(scale, list(at)[:2])
    return Result(
        table,
        [],
        words(scale, count["FMNIST N1"], ["FedPara"], "FMNIST N1") | {EIGHT: words(EIGHT, 1, ["FedPara"])},
        [*said, *shared, *(note for note in notes(EIGHT) if note not in shared)],
    )


def ranks(how: Decomposition, of: Layout, sliced: bool = False) -> list[int]:
    """Of a random update of each layer of a network that is decomposed, or of a slice: the highest that it can have."""
    g, found = Key(0).generator(), []
    for at in how.compressed(of):
        layer, part = of.layers[at], how.parts(of)[at]
        u = torch.rand(1, part.size, generator=g, dtype=torch.float64) - 0.5
        whole = part.update(u, torch.empty(0)).view(layer.cols, layer.rows)
        if sliced:
            k = cast(int, how.kernel)
            whole = whole.view(layer.cols // k, layer.rows // k, k, k)[:, :, 0, 0]
        found.append(int(torch.linalg.matrix_rank(whole)))
    return found


@style.styled
def draw_each(table: Table) -> Figure:
    """Accuracy of FedPara under the readings, and the printed one."""
    columns, readings = (list(dict.fromkeys(row[name] for row in table)) for name in ("column", "ratio"))
    figure, panels = style.new_figure(len(columns), height=1.7, columns=2.2)
    for axes, column in zip(panels, columns):
        rows = [row for row in table if row["column"] == column]
        spots = [-readings.index(row["ratio"]) for row in rows]
        error = [[row["ours"] - row["low"] for row in rows], [row["high"] - row["ours"] for row in rows]]
        look = {"color": style.look("FedPara").color, "markersize": 3.5, "capsize": 2}
        axes.errorbar([row["ours"] for row in rows], spots, xerr=error, fmt="o", **look)
        axes.axvline(rows[0]["paper"], color="black", linewidth=0.8, linestyle="--")
        labels = [f"1/{1 / RATIO:g} {reading}" for reading in readings]
        axes.set_yticks(range(0, -len(readings), -1), labels if axes is panels[0] else [""] * len(readings))
        axes.set(title=f"{column} (n={rows[0]['seeds']})", xlabel="accuracy in %", ylim=(0.5 - len(readings), 0.5))
    style.caption(figure, table, "dashed: printed; bars: 95% intervals over seeds", "tensor form: one seed, N1 alone")
    return figure


def measure_5(scale: str, seeds: int) -> Wants[Result]:
    """ResNet18 at 16- and 32-fold compression."""
    columns, ran = ("CIFAR-10 N1", "TinyImageNet N1"), {}
    if scale != "paper":
        cells = [
            absent("mud/table5", name, column, values[at])
            for at, column in enumerate(columns)
            for name, values in TABLE5.items()
        ]
        labels = [behind()] * len(cells)
    else:
        wanted = {
            (name, column, seed): spec(resnet(name, column, scale), column, scale, seed, network="resnet18")
            for name in TABLE5
            for column in columns
            for seed in range(seeds)
        }
        results = yield wanted.values()
        ran = {f"{name}, {column}": repr(one.algorithm) for (name, column, _), one in wanted.items()}
        cells = []
        for at, column in enumerate(columns):
            ours = {n: [last(results[wanted[n, column, seed]], 2) for seed in range(seeds)] for n in TABLE5}
            cells += [
                judge.level(
                    f"{column} {name}", values[at], ours[name], verdicts.points(values[at]), "paper's",
                    tuning((name.split()[0], "FedAvg"), scale),
                )
                for name, values in TABLE5.items()
            ]  # fmt: skip
        labels = [wanted[name, column, 0].ran() for column in columns for name in TABLE5]
    table = [
        {"column": column, "method": name, "paper": one.paper, "ours": one.ours, "low": one.low, "high": one.high,
         "seeds": one.seeds, **of}
        for one, (column, name), of in zip(cells, ((c, n) for c in columns for n in TABLE5), labels)
    ]  # fmt: skip
    return Result(table, cells, words(scale, seeds) | {"methods": ran}, notes(scale))


def deep_run(column: str) -> Budget:
    """What a run of Table 5 needs."""
    at, tiny = SETTINGS["paper"], column.startswith("Tiny")
    shape = (3, 64, 64) if tiny else (3, 32, 32)
    return Budget("resnet18", 200 if tiny else 10, 64, at.sampled, at.steps * at.rounds, shape)


def resnet(name: str, column: str, scale: str) -> Algorithm:
    """A method of Table 5, with its compression behind its name."""
    if name == "FedAvg":
        return algorithm(name, column, scale)
    method, times = name.split()
    return algorithm(method, column, scale, "resnet18", ratio=1 / int(times[:-1]))


@style.styled
def draw_table(table: Table) -> Figure:
    """Methods from top to bottom, the paper's numbers hollow, ours with intervals: a panel per data set.

    Beside a data set that is run stand the differences to the first method, paired by seed: intervals of accuracies
    overlap, since seeds differ alike.
    """
    sets = list(dict.fromkeys(row["column"].split()[0] for row in table))
    drawn = [(name, LEVELS) for name in sets]
    for name in sets:
        if any(row["seeds"] and "gap" in row for row in table if row["column"].split()[0] == name):
            drawn.insert(drawn.index((name, LEVELS)) + 1, (name, GAPS))
    rows = 1 + (len(drawn) > 5)
    across = -(-len(drawn) // rows)
    methods = list(dict.fromkeys(row["method"] for row in table))
    height, columns = rows * (1.2 + 0.19 * len(methods)), max(2, across / 2)
    figure, panels = style.new_figure(rows * across, height, columns, rows)
    for place, (axes, (name, parts)) in enumerate(zip(panels, drawn)):
        draw_column(axes, [row for row in table if row["column"].split()[0] == name], methods, parts)
        axes.set_yticklabels([""] * len(methods) if place % across else methods)
    for axes in panels[len(drawn) :]:
        axes.remove()
    if any(row["seeds"] for row in table):
        style.caption(figure, table)
    style.legend_above(figure, 4)
    return figure


LEVELS, GAPS = ("paper", "ours", "low", "high"), ("printed gap", "gap", "gap low", "gap high")


def draw_column(axes: Axes, table: Table, methods: Sequence[str], parts: tuple[str, str, str, str]) -> None:
    """A data set's accuracies, or their differences to the first method's."""
    name, gaps = table[0]["column"].split()[0], parts == GAPS
    ran_of = {row["column"].split()[1]: row["seeds"] for row in table}
    for place, partition in enumerate(ran_of):
        rows = [row for row in table if row["column"].split()[1] == partition]
        if gaps:
            rows = [row for row in rows[1:] if row["seeds"]]
        aside = 0.3 * ((len(ran_of) - 1) / 2 - place)  # the first partition lies above
        color, spots = style.SEQUENCE[place], [len(methods) - methods.index(row["method"]) + aside for row in rows]
        mark = {"color": color, "markersize": 4.5, "markerfacecolor": "none", "linestyle": "none"}
        if not rows or any(row[parts[0]] == row[parts[0]] for row in rows):
            axes.plot([row[parts[0]] for row in rows], spots, "D", label=f"paper, {partition}", **mark)
        run = [(spot, *(row[part] for part in parts[1:])) for spot, row in zip(spots, rows) if row["seeds"]]
        if run:
            ran, means, low, high = zip(*run)
            error = [[b - a for a, b in zip(low, means)], [b - a for a, b in zip(means, high)]]
            label = f"ours, {partition}"
            axes.errorbar(means, ran, xerr=error, fmt="o", color=color, markersize=3.5, capsize=2, label=label)
    axes.set_yticks(range(len(methods), 0, -1))
    axes.set_ylim(0.3, len(methods) + 0.7)
    axes.margins(x=0.12)
    if gaps:
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(title=f"{name}, paired by seed", xlabel=f"points, minus {methods[0]}'s")
        return
    n = " or ".join(map(str, sorted({row["seeds"] for row in table} - {0})))
    without = ", ".join(part for part, seeds in ran_of.items() if not seeds)
    title = f"{name} (n={n}{f'; {without} not run' if without else ''})" if n else f"{name} (not run)"
    axes.set(title=title, xlabel="accuracy in %")


# Figures: curves and sweeps. The paper draws them on four data sets; we run CIFAR-10 (quick: the digits), N1.

ELSEWHERE = ("CIFAR-10 N2", "CIFAR-10 IID")
PAPERS_SCALE = ("FMNIST N1", "FMNIST N2", "FMNIST IID")  # what the large scale runs as the paper does
CURVES = ("FedAvg", "FedHM", "FedLMT", "FedPara", "FedMUD", "FedMUD+BKD", "FedMUD+AAD", "FedMUD+BKD+AAD")


def curves(scale: str, seeds: int, column: str) -> Wants[dict[str, list[dict[str, Any]]]]:
    """The runs behind a table's column, per method and seed."""
    wanted = {(n, s): spec(algorithm(n, column, scale), column, scale, s) for s in range(seeds) for n in CURVES}
    results = yield wanted.values()
    return {name: [results[wanted[name, seed]] for seed in range(seeds)] for name in CURVES}


def measure_curves(scale: str, seeds: int, column: str = HERE) -> Wants[Result]:
    """FedMUD and its variants converge faster than FedHM, FedLMT and FedPara."""
    seeds, at_scale = seeded(column, scale, seeds), setting_of(column, scale)
    found = yield from curves(scale, seeds, column)
    table: Table = []
    rounds = max((one["columns"]["round"] for runs in found.values() for one in runs), key=len)
    for name, runs in found.items():
        for at, round_ in enumerate(rounds):
            ours, base = ([reached(one, at) for one in of] for of in (runs, found["FedAvg"]))
            gaps, sent = minus(ours, base), max(one["columns"]["up_bytes"][: at + 1][-1] for one in runs)
            numbers = dict(zip(("mean", "low", "high"), interval(ours)))
            numbers |= dict(zip(("gap", "gap low", "gap high"), interval(gaps)), seeds=seeds)
            here = {"method": name, "round": round_, "up_bytes": sent}
            of = spec(algorithm(name, column, scale), column, scale, 0).ran()
            table.append(here | numbers | of)
    area = {name: [height(one) for one in found[name]] for name in CURVES}
    said = "points between the mean accuracies over all records after the start: which curve lies higher"
    cells = []
    for name in CURVES[4:]:
        for base in CURVES[1:4]:
            gaps, how = minus(area[name], area[base]), tuning((name, base), at_scale, column)
            what = f"{name} converges faster than {base}"
            cells.append(judge.side(what, NAN, gaps, verdicts.above(), SETTINGS[at_scale].ran, how, said))
    return Result(table, cells, words(scale, seeds, CURVES, column), notes(scale, [column]))


def reached(result: dict[str, Any], at: int) -> float:
    """Accuracy in percent in a record; NaN where the run had diverged."""
    found = result["columns"]["accuracy"]
    return 100 * found[at] if at < len(found) else NAN


def height(result: dict[str, Any]) -> float:
    """Mean accuracy over all records but the first, the untrained model's, in percent; NaN for a run that diverged.

    FedLMT and FedPara start from models of their own, whose accuracies say nothing of how a run converges.
    """
    return NAN if result["diverged"] else 100 * fmean(result["columns"]["accuracy"][1:])


def together(parts: dict[str, Result]) -> Result:
    """Results side by side: their rows and cells say which part they are of."""
    table = [{"panel": name, **row} for name, result in parts.items() for row in result.table]
    cells = [replace(cell, cell=f"{name}: {cell.cell}") for name, result in parts.items() for cell in result.cells]
    settings = {name: value for result in parts.values() for name, value in result.settings.items()}
    ran = {f"{name}: {n}": a for name, result in parts.items() for n, a in result.settings.get("methods", {}).items()}
    settings |= {"methods": ran} if ran else {}
    said = dict.fromkeys(note for result in parts.values() for note in result.notes)
    return Result(table, cells, settings, sorted(said, key=lambda note: not note.startswith("Runs")))


def beside(scale: str, seeds: int, columns: Sequence[str]) -> Wants[Result]:
    """`measure_curves` of every column."""
    parts = yield from side_by_side({on(column, scale): measure_curves(scale, seeds, column) for column in columns})
    return together(parts)


def measure_convergence(scale: str, seeds: int) -> Wants[Result]:
    """Figure 2; at the large scale Fashion-MNIST beside CIFAR-10."""
    return beside(scale, seeds, (PAPERS_SCALE[0], HERE) if scale == "large" else (HERE,))


def measure_partitions(scale: str, seeds: int) -> Wants[Result]:
    """Figure 6: Figure 2 for all three partitions; at the large scale of Fashion-MNIST."""
    return beside(scale, seeds, PAPERS_SCALE if scale == "large" else (HERE, *ELSEWHERE))


def draw_gaps(axes: Axes, table: Table) -> None:
    """Differences to FedAvg over rounds, with intervals: those of accuracies overlap, since seeds differ alike.

    Untrained models, round 0, are left out. Methods stand side by side at a round.
    """
    rounds = sorted({row["round"] for row in table if row["round"]})
    apart = 0.6 * min((b - a for a, b in pairwise(rounds)), default=1) / len(CURVES)
    for place, name in enumerate(CURVES):
        rows, how = [row for row in table if row["method"] == name and row["round"]], style.look(name)
        if not rows:
            continue
        mean, low, high = ([row[part] for row in rows] for part in ("gap", "gap low", "gap high"))
        beside = [row["round"] + apart * (place - (len(CURVES) - 1) / 2) for row in rows]
        look: dict[str, Any] = {"linewidth": 0.9, "marker": how.marker, "markersize": 2.5, "label": name}
        style.bars(axes, beside, mean, low, high, name, rows[0]["seeds"], **look)
    axes.set_xticks(rounds)
    axes.set(xlabel="communication rounds", ylabel="points, minus FedAvg's")


BESIDE = "bars: 95% intervals of differences paired by seed; those of a round stand side by side"


@style.styled
def draw_partitions(table: Table) -> Figure:
    """Difference to FedAvg over rounds, a panel per partition."""
    names = list(dict.fromkeys(row["panel"] for row in table))
    figure, panels = style.new_figure(len(names), columns=2)
    for axes, panel in zip(panels, names):
        rows = [row for row in table if row["panel"] == panel]
        draw_gaps(axes, rows)
        axes.set_title(f"{panel}, n={rows[0]['seeds']}\nFedAvg's last record: {fedavg(rows):.1f}%")
    style.caption(figure, table, BESIDE)
    style.legend_above(figure, 4)
    return figure


@style.styled
def draw_curves(table: Table) -> Figure:
    """Accuracy over rounds and over bytes sent up, means; the difference to FedAvg with intervals. A panel a column."""
    if table[0]["panel"] != table[-1]["panel"]:
        return draw_partitions(table)
    figure, (left, middle, right) = style.new_figure(3, columns=3)
    for name in CURVES:
        rows, how = [row for row in table if row["method"] == name], style.look(name)
        means = [row["mean"] for row in rows]
        left.plot([row["round"] for row in rows], means, **how.line)
        right.plot([row["up_bytes"] / 1e6 for row in rows][1:], means[1:], **how.line)  # nothing is sent at first
    draw_gaps(middle, table)
    middle.set_title(f"n={table[0]['seeds']}")
    left.set(xlabel="communication rounds", ylabel="accuracy in %")
    right.set(xlabel="megabytes sent up by all clients", ylabel="accuracy in %", xscale="log")
    style.caption(figure, table, BESIDE)
    style.legend_above(figure, 4)
    return figure


def sweep(
    scale: str,
    seeds: int,
    settings: dict[Any, dict[str, dict[str, Any]]],
    fixed: Sequence[str] = (),
    column: str = HERE,
) -> Wants[tuple[Table, dict[tuple[str, Any], list[float]], dict[str, str]]]:
    """Accuracies over a parameter: value -> method -> changes; those of FedAvg and other methods that do not have it;
    what each row ran.

    Beside each stands the difference to FedAvg, paired by seed.
    """
    wanted: dict[tuple[str, Any, int], Spec] = {}
    for seed in range(seeds):
        for value, changes in settings.items():
            for name, change in changes.items():
                wanted[name, value, seed] = spec(algorithm(name, column, scale, **change), column, scale, seed)
        for name in (*fixed, "FedAvg"):
            wanted[name, "", seed] = spec(algorithm(name, column, scale), column, scale, seed)
    results = yield wanted.values()
    found: dict[tuple[str, Any], list[float]] = {}
    for (name, value, _), one in wanted.items():
        found.setdefault((name, value), []).append(last(results[one], 2))
    table: Table = []
    for (name, value), runs in found.items():
        numbers = dict(zip(("mean", "low", "high"), interval(runs)))
        numbers |= dict(zip(("gap", "gap low", "gap high"), interval(minus(runs, found["FedAvg", ""]))), seeds=seeds)
        here = {"method": name, "value": "R" if value is None else value, **numbers}
        table.append(here | wanted[name, value, 0].ran())
    shown = lambda name, value: f"{name}, {'R' if value is None else value}" if value != "" else name
    return table, found, {shown(name, value): repr(one.algorithm) for (name, value, _), one in wanted.items()}


VARIANTS = ("FedMUD", "FedMUD+BKD", "FedMUD+AAD", "FedMUD+BKD+AAD")


def counts(what: str, gaps: dict[str, list[float]], scale: str, said: str) -> list[Cell]:
    """A statement on several methods: one cell each, above 0 where it holds."""
    ran = SETTINGS[scale].ran
    return [
        judge.side(f"{what}: {name}", NAN, values, verdicts.above(), ran, tuning((name,), scale), said)
        for name, values in gaps.items()
    ]


def comparable(what: str, ours: list[float], other: list[float], scale: str) -> Cell:
    """Methods that the paper calls comparable: the difference, paired by seed."""
    gaps, said = [a - b for a, b in zip(ours, other)], "points; 'comparable' read as within two"
    return judge.side(what, 0.0, gaps, verdicts.COMPARABLE, SETTINGS[scale].ran, "ours", said)


def minus(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Seed by seed."""
    return [x - y for x, y in zip(a, b, strict=True)]


def measure_resets(scale: str, seeds: int, column: str = HERE) -> Wants[Result]:
    """Accuracy falls with the reset interval s; without resets it is that of FedLMT."""
    values = EXTENT[scale]["s"]
    changes = {s: {name: {"s": s} for name in VARIANTS} for s in values}
    table, found, ran = yield from sweep(scale, seeds, changes, ("FedLMT",), column)
    falls = {name: minus(found[name, 1], found[name, None]) for name in VARIANTS}
    cells = counts("worse at s = R than at s = 1", falls, scale, "points lost")
    cells.append(comparable("FedMUD at s = R minus FedLMT", found["FedMUD", None], found["FedLMT", ""], scale))
    return Result(table, cells, words(scale, seeds) | {"methods": ran, "s": str(values)}, notes(scale))


def measure_start(scale: str, seeds: int, column: str = HERE) -> Wants[Result]:
    """Accuracy over a: BKD is less sensitive, and its best a is larger."""
    values = EXTENT[scale]["a"]
    changes = {a: {name: {"a": a} for name in VARIANTS} for a in values}
    table, found, ran = yield from sweep(scale, seeds, changes, column=column)
    cells = []
    for one, two in (("FedMUD", "FedMUD+BKD"), ("FedMUD+AAD", "FedMUD+BKD+AAD")):
        best, good = ({name: read(found, name, values, seeds) for name in (one, two)} for read in (best_start, usable))
        larger = {two: [math.log(b / a) for a, b in zip(best[one], best[two])]}
        each = ", ".join(f"{name} {interval(best[name])[0]:.3g}" for name in (one, two))
        said = f"logarithm of the ratio; best a {each}"
        cells += counts("its best a is larger than without BKD", larger, scale, said)
        each = ", ".join(f"{name} {interval(good[name])[0]:.3g}" for name in (one, two))
        said = f"values of a, of {len(values)}, within ten points of the best: {each}"
        cells += counts("it is less sensitive to a than without BKD", {two: minus(good[two], good[one])}, scale, said)
    return Result(table, cells, words(scale, seeds) | {"methods": ran, "values of a": str(values)}, notes(scale))


Found = dict[tuple[str, Any], list[float]]  # (method, value) -> accuracy of each seed


def best_start(found: Found, name: str, values: Sequence[float], seeds: int) -> list[float]:
    """The best a of each seed."""
    lost = -math.inf
    return [
        max(values, key=lambda a: lost if math.isnan(found[name, a][seed]) else found[name, a][seed])
        for seed in range(seeds)
    ]


def usable(found: Found, name: str, values: Sequence[float], seeds: int) -> list[float]:
    """How many values of a lie within ten points of the best, for each seed."""
    reached = [[found[name, a][seed] for a in values] for seed in range(seeds)]
    tops = [max(value for value in row if value == value) for row in reached]
    return [float(sum(value > top - 10 for value in row)) for row, top in zip(reached, tops)]


def measure_ratio(scale: str, seeds: int, column: str = HERE) -> Wants[Result]:
    """Accuracy grows with the compression ratio; at 1/8 FedMUD+BKD+AAD is comparable to FedAvg."""
    values = EXTENT[scale]["ratio"]
    changes: dict[Any, dict[str, dict[str, Any]]] = {ratio: {} for ratio in values}
    for ratio, of in changes.items():
        for name in VARIANTS:
            longer = 1.0 if "BKD" in name else math.sqrt(RATIO / ratio)
            of[name] = {"ratio": ratio, "a": tuned(name, column, scale)[1] * longer}
    table, found, ran = yield from sweep(scale, seeds, changes, column=column)
    gained = {name: minus(found[name, values[-1]], found[name, values[0]]) for name in VARIANTS}
    said = "points gained from the strongest to the weakest compression"
    cells = counts("gains from weaker compression", gained, scale, said)
    name = "FedMUD+BKD+AAD"
    cells.append(comparable(f"{name} at 1/8 minus FedAvg", found[name, 1 / 8], found["FedAvg", ""], scale))
    scaled = (
        "a of low rank is divided by the root of the ratio's growth, so that A A^T keeps its trace; BKD's does anyway."
    )
    return Result(table, cells, words(scale, seeds) | {"methods": ran, "ratios": str(values)}, [*notes(scale), scaled])


SWEEPS = {  # what is varied: (measure, whether its axis is logarithmic)
    "reset interval s": (measure_resets, False),
    "a of U(-a, a)": (measure_start, True),
    "compression ratio": (measure_ratio, True),
}


def measure_elsewhere(scale: str, seeds: int) -> Wants[Result]:
    """Figure 7: Figures 3-5 under the two other partitions."""
    parts = yield from side_by_side(
        {
            f"{on(column, scale)}, {label}": measure(scale, seeds, column)
            for column in ELSEWHERE
            for label, (measure, _) in SWEEPS.items()
        }
    )
    return together(parts)


PAIRED = "bars: 95% intervals of differences paired by seed; those at one value stand side by side"


def draw_sweep(axes: Axes, table: Table, label: str) -> None:
    """Differences to FedAvg over a parameter, side by side at each value; methods without it are horizontal lines."""
    most = 100 - fedavg(table)  # above FedAvg
    log, names = SWEEPS[label][1], list(dict.fromkeys(row["method"] for row in table))
    values = list(dict.fromkeys(row["value"] for row in table if row["value"] != ""))
    spots = {value: math.log2(value) if log else at for at, value in enumerate(values)}
    wide = 0.07 * (max(spots.values()) - min(spots.values()))
    moving = list(dict.fromkeys(row["method"] for row in table if row["value"] != ""))
    for name in names:
        rows, how = [row for row in table if row["method"] == name], style.look(name)
        gaps, low, high = ([row[part] for row in rows] for part in ("gap", "gap low", "gap high"))
        look: dict[str, Any] = {"n": rows[0]["seeds"], "how": how, "linewidth": 0.9, "within": (-math.inf, most)}
        if name == "FedAvg":
            axes.axhline(0, **how.line, linewidth=0.9, label=f"{name} (n={rows[0]['seeds']})")
            continue
        if rows[0]["value"] == "":
            last = max(spots.values()) + 2.5 * wide
            axes.axhline(gaps[0], **how.line, linewidth=0.9)
            style.bars(axes, [last], gaps, low, high, name, **look)
            continue
        aside = 0.3 * wide * (moving.index(name) - (len(moving) - 1) / 2)
        at = [spots[row["value"]] + aside for row in rows]
        style.bars(axes, at, gaps, low, high, name, **look, marker=how.marker, markersize=3)
    shown = (
        [f"1/{1 / value:g}" if label == "compression ratio" else f"{value:g}" for value in values]
        if log
        else map(str, values)
    )
    axes.set_xticks(list(spots.values()), list(shown))
    axes.set(xlabel=label, ylabel=f"points above FedAvg ({fedavg(table):.1f}%)")


def fedavg(table: Table) -> float:
    """Its mean accuracy at the end, in percent."""
    return [row["mean"] for row in table if row["method"] == "FedAvg"][-1]


def drawer(label: str) -> Any:
    """A figure of one sweep."""

    @style.styled
    def draw(table: Table) -> Figure:
        figure, (axes,) = style.new_figure(height=3.2)
        draw_sweep(axes, table, label)
        style.caption(figure, table, PAIRED)
        style.legend_above(figure, 2)
        return figure

    return draw


@style.styled
def draw_elsewhere(table: Table) -> Figure:
    """A panel per partition and sweep."""
    names = list(dict.fromkeys(row["panel"] for row in table))
    figure, panels = style.new_figure(len(names), height=4.8, columns=2.2, rows=len(names) // len(SWEEPS))
    for axes, panel in zip(panels, names):
        draw_sweep(axes, [row for row in table if row["panel"] == panel], panel.split(", ", 1)[1])
        axes.set_title(panel.split(", ")[0])
    style.caption(figure, table, PAIRED)
    style.legend_above(figure, 3)
    return figure


ITEMS = [
    Item("mud/table1", "Accuracy under label skew", measure_1, draw_table, LARGE),
    Item("mud/table2", "Decoupling against freezing", measure_2, draw_table, LARGE),
    Item("mud/table3", "Accuracy without label skew", measure_3, draw_table, LARGE),
    Item("mud/table4", "Decoupling against freezing, other partitions", measure_4, draw_table, LARGE),
    Item("mud/table5", "ResNet18", measure_5, draw_table, SCALES[1:]),
    Item("mud/fig2", "Convergence", measure_convergence, draw_curves, LARGE),
    Item("mud/fig3", "Reset interval", measure_resets, drawer("reset interval s"), SCALES),
    Item("mud/fig4", "Initialisation", measure_start, drawer("a of U(-a, a)"), SCALES),
    Item("mud/fig5", "Compression", measure_ratio, drawer("compression ratio"), SCALES[1:]),
    Item(
        "mud/fig6", "Convergence under all partitions", measure_partitions, draw_partitions, ("quick", "large", "paper")
    ),
    Item("mud/fig7", "The sweeps under the other partitions", measure_elsewhere, draw_elsewhere, ("paper",)),
]
EXTRAS = [
    Item(
        "mud/cifar10", "Table 1's CIFAR-10 with the paper's network and length", measure_eight, draw_table, ("large",)
    ),
    Item(
        "mud/cifar10_full",
        "Table 1's CIFAR-10 with the paper's network, length and images",
        measure_eight,
        draw_table,
        ("paper",),
    ),
    Item("mud/ratio", "FedPara under three readings", measure_each, draw_each, ("large",)),
]
