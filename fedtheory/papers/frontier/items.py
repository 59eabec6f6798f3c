"""All methods on the same problems: quality against what it costs, ranks, and where each method breaks."""

import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from fedtheory.compare import ABSENT, FAMILIES, FURTHER, METHODS, RATIO, SEEDS, TASKS, TUNING_SEED, Method, Task
from fedtheory.core import registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Spec, Wants, interval, side_by_side
from fedtheory.running.records import RAN, Row, Table

COSTS = {  # columns of a task's table -> axis
    "up": "MB sent up by all clients",
    "down": "MB sent down to all clients",
    "memory": "client's memory, kB",
    "flops": "client's MFLOP per round",
    "rounds": "rounds to",
}
Tuned = dict[str, tuple[float, bool]]  # method -> its learning rate, and whether it is the lowest or highest tried
Runs = Mapping[str, Sequence[dict[str, Any]]]  # method -> one result per seed


# Runs


def spec(task: Task, algorithm: Algorithm, seed: int, tuning: bool = False) -> Spec:
    """One run; with `tuning` it records what the learning rate is chosen by."""
    images = task.problem == "images"
    if tuning:
        problem, metrics = ("validation", ("accuracy",)) if images else (task.problem, ("loss",))
    else:
        problem, metrics = task.problem, (task.metric,)
    return Spec(
        algorithm,
        problem,
        tuple(sorted(task.options.items())),
        task.rounds,
        seed,
        task.sampled,
        task.rounds // 20,
        task.dtype,
        metrics,
        task.dropout,
        metered=not tuning,
    )


def last(result: dict[str, Any], metric: str) -> float:
    """Mean of the last three records, of an error the geometric one; NaN for a run that diverged."""
    values = result["columns"][metric][-3:]
    if result["diverged"] or not all(map(math.isfinite, values)):
        return math.nan
    return float(np.exp(np.mean(np.log(np.maximum(values, _LEAST))))) if metric == "error" else float(np.mean(values))


BEYOND = 3  # learning rates that may be added to a grid


def tune(task: Task, methods: Sequence[Method]) -> Wants[tuple[Tuned, Table]]:
    """The best learning rate of each method, and all that was tried.

    The grid first; where the best of a method is at an end of what it tried, the next value beyond, `BEYOND` times.
    """
    metric, sign = ("accuracy", 1) if task.problem == "images" else ("loss", -1)
    tried: dict[str, dict[float, float]] = {method.name: {} for method in methods}
    asked = {method.name: method.rates(task) for method in methods}
    tuned: Tuned = {}
    for _ in range(1 + BEYOND):
        wanted = {
            (method.name, rate): spec(task, method.make(task, rate, RATIO), TUNING_SEED, tuning=True)
            for method in methods
            for rate in asked[method.name]
        }
        results = yield wanted.values()
        for (name, rate), run in wanted.items():
            tried[name][rate] = last(results[run], metric)
        for name, values in tried.items():
            finite = [rate for rate in values if math.isfinite(values[rate])] or [min(values)]
            best = max(finite, key=lambda rate: sign * values[rate])
            rates = sorted(values)
            tuned[name] = best, best in (rates[0], rates[-1])
            asked[name] = [beyond(rates, best)] if tuned[name][1] and len(rates) > 1 else []
        if not any(asked.values()):
            break
    table = [
        {"task": task.name, "method": method.name, "rate": rate, "metric": metric, "value": value}
        | {"best": int(rate == tuned[method.name][0])}
        | spec(task, method.make(task, rate, RATIO), TUNING_SEED, tuning=True).ran()
        for method in methods
        for rate, value in sorted(tried[method.name].items(), reverse=True)
    ]
    return tuned, table


def beyond(rates: Sequence[float], end: float) -> float:
    """The next value of a grid, rising, beyond one of its ends: 0.1, 0.3, 1 goes on with 3, and before it is 0.03."""
    near = list(rates[:3] if end == rates[0] else rates[:-4:-1])  # from the end inwards
    last, before, third = near if len(near) == 3 else (near[0], *near)
    return float(f"{last * before / third:.2g}")


def play(task: Task, methods: Sequence[Method], tuned: Tuned, seeds: int, ratio: float = RATIO) -> Wants[Runs]:
    """Runs of the methods at their learning rates, all methods of a seed before the next."""
    wanted = {
        (method.name, seed): spec(task, method.make(task, tuned[method.name][0], ratio), seed)
        for seed in range(seeds)
        for method in methods
    }
    results = yield wanted.values()
    return {method.name: [results[wanted[method.name, seed]] for seed in range(seeds)] for method in methods}


def quality(task: Task, results: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Mean and 95% interval over seeds: accuracy in percent, or error (interval of its logarithm)."""
    values = [last(result, task.metric) for result in results]
    if task.metric == "accuracy":
        return interval([100 * value for value in values])
    ends = interval([math.log(max(value, _LEAST)) for value in values])
    mean, low, high = (math.exp(min(end, 700.0)) for end in ends)  # beyond it there is no number
    return mean, low, high


def reached(task: Task, result: dict[str, Any]) -> float:
    """The first recorded round at the task's level or better; infinity where there is none."""
    sign = 1 if task.metric == "accuracy" else -1
    columns = result["columns"]
    good = (at for at, value in zip(columns["round"], columns[task.metric]) if sign * value >= sign * task.level)
    return next(map(float, good), math.inf)


ROUNDING = 1e-13  # relative errors below it are rounding, and alike
_LEAST = 1e-300  # an error of 0 has no logarithm


def span(row: Row) -> tuple[float, float]:
    """The worse and the better end of a method's interval, larger is better; a method that diverged is behind all.

    One seed has no interval: it is level with all others.
    """
    if math.isnan(row["quality"]):
        return -math.inf, -math.inf
    if row["seeds"] < 2:
        return math.nextafter(-math.inf, 0), math.inf
    errors = -max(row["high"], ROUNDING), -max(row["low"], ROUNDING)
    return (row["low"], row["high"]) if row["metric"] == "accuracy" else errors


def ranks(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """First and last place that each method may have: one is before another only where their intervals are apart."""
    spans = [span(row) for row in rows]
    return [
        (1 + sum(worst > mine for worst, _ in spans), len(rows) - sum(best < least for _, best in spans))
        for least, mine in spans
    ]


def undominated(rows: Sequence[Row], axis: str) -> list[bool]:
    """Whether no method that costs at most as much on this axis is better, intervals apart."""
    return [
        math.isfinite(row[axis])
        and span(row)[1] > -math.inf
        and not any(other[axis] <= row[axis] and span(other)[0] > span(row)[1] for other in rows)
        for row in rows
    ]


def task_rows(task: Task, methods: Sequence[Method], tuned: Tuned, runs: Runs) -> Table:
    """One line per method."""
    rows: Table = []
    for method in methods:
        results = runs[method.name]
        mean, low, high = quality(task, results)
        row: Row = {"task": task.name, "method": method.name, "family": method.family}
        row |= {"metric": task.metric, "quality": mean, "low": low, "high": high, "seeds": len(results)}
        row |= {"diverged": sum(math.isnan(last(result, task.metric)) for result in results)}
        row |= {"rate": tuned[method.name][0], "edge": int(tuned[method.name][1])}
        ways = {way: [result["columns"][f"{way}_bytes"][-1] / 1e6 for result in results] for way in ("up", "down")}
        ways["memory"] = [result["memory"] / 1e3 for result in results]
        ways["flops"] = [2 * result["products"] / 1e6 for result in results]
        ways["rounds"] = [reached(task, result) for result in results]
        for axis, values in ways.items():
            row |= dict(zip((axis, f"{axis}_low", f"{axis}_high"), interval(values)))
        row |= {"reached": sum(map(math.isfinite, ways["rounds"])), "first": 0, "final": 0}
        row |= {f"front {axis}": 0 for axis in COSTS}
        rows.append(row | spec(task, method.make(task, tuned[method.name][0], RATIO), 0).ran())
    return placed(rows)


def placed(rows: Table) -> Table:
    """The lines with each method's place among them, and whether it is on each axis's front."""
    rows = [dict(row) for row in rows]
    for row, (first, final) in zip(rows, ranks(rows)):
        row |= {"first": first, "final": final}
    for axis in COSTS:
        for row, free in zip(rows, undominated(rows, axis)):
            row[f"front {axis}"] = int(free)
    return rows


# Tables


def divided(task: Task, methods: Sequence[Method], ratio: bool = False) -> tuple[list[Method], list[str]]:
    """The methods that are defined on a task (with `ratio`: and compress there), and a sentence about the others."""
    lacking = {method: f"need {method.needs}" for method in methods if not task.offers(method.needs)}
    if ratio:
        lacking |= {m: "compress nothing" for m in methods if m not in lacking and not m.compresses(task)}
    here = [method for method in methods if method not in lacking]
    reasons = {method.name: why for method, why in lacking.items()} | ABSENT
    groups = {why: listed([name for name, reason in reasons.items() if reason == why]) for why in reasons.values()}
    return here, [f"Not on {task.name}: {'; '.join(f'{why}: {group}' for why, group in groups.items())}."]


def listed(names: Collection[str]) -> str:
    """Up to 20 methods by name, more by their number: the table has the names."""
    return ", ".join(names) if len(names) <= 20 else f"{len(names)} methods"


def words(scale: str, seeds: int, methods: Sequence[Method], tasks: Sequence[Task]) -> dict[str, Any]:
    """Provenance of a result."""
    said: dict[str, Any] = {"methods": ", ".join(method.name for method in methods), "compression": f"1/{1 / RATIO:g}"}
    said["budget"] = (
        f"{len(tasks[0].rates)} learning rates per method and task and, while the best is at an end of what was tried, "
        f"the next one beyond, up to {BEYOND}; one full run each on seed {TUNING_SEED}, chosen by held-out training "
        "images or, without images, by the training objective; everything else as in the papers"
    )
    for task in tasks:
        numbers = {
            name: getattr(task, name) for name in ("rounds", "sampled", "local_steps", "dtype", "rates", "level")
        }
        said[task.name] = {**numbers, **task.options}
    return said


READING = [
    "Final quality: mean of the last three of 21 records; intervals: 95% Student over seeds, each with its own "
    "problem, start and sampling, the same for all methods; of errors, the interval of the logarithm.",
    "Places: a method is before another only where their intervals do not overlap; between overlapping intervals no "
    "order is claimed. Errors below 1e-13 are rounding, and alike.",
    "Bytes are summed over clients and rounds as they crossed. Memory and FLOP are one client's in the round after the "
    "last: peak of its tensors, received ones and private state among them, data not; matrix products only.",
]


def measure_task(
    name: str, methods: Sequence[Method], scale: str, seeds: int, kept: Table | None = None
) -> Wants[Result]:
    """Final quality of every method on a task, and what it cost; lines that are `kept` are not run again."""
    task = TASKS[scale][name]
    here, lacking = divided(task, methods)
    there = {row["method"]: row for row in kept or []}
    new = [method for method in here if method.name not in there]
    tuned, _ = yield from tune(task, new)
    runs = yield from play(task, new, tuned, seeds)
    there |= {row["method"]: row for row in task_rows(task, new, tuned, runs)}
    table = placed([there[method.name] for method in here])
    edges = [row["method"] for row in table if row["edge"]]
    notes = [*READING, *lacking]
    if edges:
        notes.append(f"Best learning rate at an end of those tried: {', '.join(edges)}.")
    return Result(table, [], words(scale, seeds, here, [task]), notes)


def measure_tuning(methods: Sequence[Method], scale: str, seeds: int) -> Wants[Result]:
    """All learning rates that were tried on the tasks without files."""
    tasks = plain_tasks(scale)
    tuned = yield from side_by_side({task.name: tune(task, divided(task, methods)[0]) for task in tasks})
    table = [row for _, rows in tuned.values() for row in rows]
    return Result(table, [], words(scale, 1, methods, tasks), [], seeds=[TUNING_SEED])


def plain_tasks(scale: str) -> list[Task]:
    """Those that need no files."""
    return [task for task in TASKS[scale].values() if not task.files]


def measure_ranks(methods: Sequence[Method], scale: str, seeds: int) -> Wants[Result]:
    """Places of every method on every task without files."""
    table: Table = []
    lacking: list[str] = []
    for task in plain_tasks(scale):
        here, missing = divided(task, methods)
        tuned, _ = yield from tune(task, here)
        runs = yield from play(task, here, tuned, seeds)
        rows = task_rows(task, here, tuned, runs)
        order = sorted(rows, key=span, reverse=True)
        kept = ("task", "method", "family", "metric", "quality", "low", "high", "first", "final", "seeds", *RAN)
        table += [{name: row[name] for name in kept} | {"of": len(rows)} for row in order]
        lacking += missing
    return Result(table, [], words(scale, seeds, methods, plain_tasks(scale)), [*READING[:2], *lacking])


@dataclass(frozen=True)
class Sweep:
    """One condition made harder, at the learning rates of the task itself.

    Fields:
        task, label: which task, the axis.
        values: easy to hard.
        change: (task, value) -> the task under this condition.
        ratio: whether the value is the compression ratio.
    """

    task: str
    label: str
    values: tuple[Any, ...]
    change: Callable[[Task, Any], Task] = lambda task, value: task
    ratio: bool = False


SWEEPS = {
    "heterogeneity": Sweep(
        "digits",
        "Dirichlet parameter",
        (10.0, 0.3, 0.05),
        lambda task, value: replace(task, options={**task.options, "alpha": value}),
    ),
    "compression": Sweep("digits", "compression ratio", (1 / 8, 1 / 32, 1 / 128), ratio=True),
    "participants": Sweep(
        "digits",
        "participants of 20",
        (20, 5, 1),
        lambda task, value: replace(task, sampled=value),
    ),
    "lag": Sweep(
        "digits",
        "probability of silence",
        (0.0, 0.5, 0.9),
        lambda task, value: replace(task, dropout=value),
    ),
    "precision": Sweep(
        "digits",
        "arithmetic",
        ("float64", "float32", "bfloat16"),
        lambda task, value: (
            replace(task, options={**task.options, "precision": "bf16"})  # parameters and sums stay in float32
            if value == "bfloat16"
            else replace(task, dtype=value)
        ),
    ),
}


def measure_sweep(name: str, methods: Sequence[Method], scale: str, seeds: int) -> Wants[Result]:
    """Quality of every method under a condition, and what it lost against the easiest, paired by seed."""
    sweep = SWEEPS[name]
    base = TASKS[scale][sweep.task]
    here, lacking = divided(base, methods, sweep.ratio)
    tuned, _ = yield from tune(base, here)
    table: Table = []
    found: dict[Any, Runs] = {}
    for value in sweep.values:
        task = sweep.change(base, value)
        found[value] = yield from play(task, here, tuned, seeds, value if sweep.ratio else RATIO)
        for method in here:
            results, easy = found[value][method.name], found[sweep.values[0]][method.name]
            mean, low, high = quality(task, results)
            row: Row = {"task": task.name, "method": method.name, "family": method.family, "value": value}
            row |= {"metric": task.metric, "quality": mean, "low": low, "high": high, "seeds": seeds}
            row["diverged"] = sum(math.isnan(last(result, task.metric)) for result in results)
            lost = [loss(task, one, other) for one, other in zip(easy, results)]
            row |= dict(zip(("lost", "lost_low", "lost_high"), interval(lost)))
            how = method.make(task, tuned[method.name][0], value if sweep.ratio else RATIO)
            table.append(row | spec(task, how, 0).ran())
    notes = [*READING[:1], "Learning rates are those tuned on the task itself, not tuned again.", LOSS, *lacking]
    if same := alike(table):
        notes.append(f"{ALIKE}: {listed(dict.fromkeys(name for name, _ in same))}.")
    return Result(table, [], words(scale, seeds, here, [base]) | {"values": str(sweep.values)}, notes)


LOSS = "Lost: accuracy in points, or the factor by which the error grew as its logarithm to base 10."


ALIKE = "The same run, and no point, where a condition changes nothing, as with a rank that is 1 already"


def alike(table: Table) -> list[tuple[str, Any]]:
    """(method, value) whose runs are, bit for bit, those of an easier value."""
    rows = {(row["method"], row["value"]): tuple(row[name] for name in ("quality", "low", "high")) for row in table}
    values = list(dict.fromkeys(row["value"] for row in table))
    return [
        (name, value)
        for (name, value), found in rows.items()
        if any(rows[name, easier] == found for easier in values[: values.index(value)])
    ]


def loss(task: Task, easy: dict[str, Any], hard: dict[str, Any]) -> float:
    """What a run is worse by, of the same seed."""
    before, after = last(easy, task.metric), last(hard, task.metric)
    return 100 * (before - after) if task.metric == "accuracy" else math.log10(max(after, _LEAST) / max(before, _LEAST))


def lines(table: Table) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of a table for a reader, best first."""
    if "lost" in table[0]:
        header = ["method", *(str(value) for value in dict.fromkeys(row["value"] for row in table)), "lost", "interval"]
        of = {row["method"]: [other for other in table if other["method"] == row["method"]] for row in table}
        order = sorted(of, key=lambda name: (math.isnan(of[name][-1]["lost"]), of[name][-1]["lost"]))
        rows = [[name, *(row["quality"] for row in of[name]), of[name][-1]["lost"]] for name in order]
        return header, [[*row, between(of[row[0]][-1], "lost_low", "lost_high")] for row in rows]
    if "best" in table[0]:
        chosen = [row for row in table if row["best"]]
        return ["task", "method", "rate", "value"], [
            [row[n] for n in ("task", "method", "rate", "value")] for row in chosen
        ]
    header = ["task", "place", "method", "quality", "interval"]
    rows = [
        [row["task"], f"{row['first']}-{row['final']}", row["method"], row["quality"], between(row, "low", "high")]
        for row in sorted(table, key=lambda row: (row["task"], [-end for end in span(row)]))
    ]
    if "up" not in table[0]:
        return header, rows
    ordered = sorted(table, key=lambda row: [-end for end in span(row)])
    header += ["up MB", "down MB", "memory kB", "MFLOP", "rounds"]
    return header, [[*row, *(one[axis] for axis in COSTS)] for row, one in zip(rows, ordered)]


def between(row: Row, low: str, high: str) -> str:
    return f"[{row[low]:.3g}, {row[high]:.3g}]"


# Pictures


WORST = 100.0  # percent that are wrong; of errors, a hundred times the start's: a run that diverged without overflow


OURS = ("FedAvg", "FedSub", "SSF", "FedMUD+BKD+AAD", "FLSS", "DeComFL")  # named in every picture, with the front


def front(rows: Sequence[Row], axis: str) -> Table:
    """From cheap to dear, what is better, on average, than all that is cheaper."""
    best: Table = []
    for row in sorted(rows, key=lambda row: (row[axis], tuple(-end for end in span(row)))):
        if not best or score(row) > score(best[-1]):
            best.append(row)
    return best


@style.styled
def draw_task(table: Table) -> Figure:
    """Quality, better is higher, against each cost.

    The line joins what is better, on average, than all that is cheaper; it, OURS and methods of other distributions
    are named, the rest is grey. Beside it: the named ones, and what they cost.
    """
    always = {*OURS, *registry.others_methods()}
    figure = Figure(figsize=(2.4 * style.WIDTH, 5.4), layout="constrained")
    *panels, beside = figure.subplots(2, 3).flat
    looks = style.looks(row["method"] for row in table)
    arrived = [row for row in table if fault(row)[0] <= WORST]
    named: dict[Any, Table] = {}
    for axes, (axis, label) in zip(panels, COSTS.items()):
        shown = [row for row in arrived if math.isfinite(row[axis])]
        best = front(shown, axis)
        named[axes] = [row for row in shown if row in best or row["method"] in always]
        for row in shown:
            color = looks[row["method"]].color if row in named[axes] else "0.75"
            middle, low, high = fault(row)
            order = 3 if row in named[axes] else 1
            cheap, dear = row[f"{axis}_low"], row[f"{axis}_high"]
            # as `vlines` and `hlines` draw them, but faster
            for ends in ([(row[axis], low), (row[axis], high)], [(cheap, middle), (dear, middle)]):
                axes.add_collection(LineCollection([ends], linewidths=0.7, colors=color, zorder=order), autolim=False)
                axes.update_datalim(ends)
            axes.plot(row[axis], middle, "o", markersize=3, color=color, zorder=order)
        axes.plot([row[axis] for row in best], [fault(row)[0] for row in best], "-k", linewidth=0.5, zorder=0)
        level = TASKS["medium"][table[0]["task"]].level  # the same at each scale
        label += f" {table[0]['metric']} {level:g}" if axis == "rounds" else ""
        axes.set(xlabel=label, ylabel=fault_name(table), yscale="log" if shown else "linear")
        axes.invert_yaxis()
        if shown:
            axes.set_xscale("log")
            low, high = axes.get_xlim()
            axes.set_xlim(low * (low / high) ** 0.12, high * (high / low) ** 0.22)  # room for names
            low, high = axes.get_ylim()
            axes.set_ylim(low * (low / high) ** 0.06, high * (high / low) ** 0.06)
            for side in (axes.xaxis, axes.yaxis) if table[0]["metric"] == "accuracy" else (axes.xaxis,):
                low, high = sorted(side.get_view_interval())
                side.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
                side.set(major_formatter="{x:g}", minor_formatter="")
        if len(shown) < len(arrived):
            axes.set_title(f"{len(arrived) - len(shown)} more do not reach it in every seed", fontsize=6)
    told = {row["method"] for rows in named.values() for row in rows}
    lost = [row["method"] for row in table if row not in arrived]
    theirs = any(row["method"] in always.difference(OURS) for row in table)
    list_named(beside, [row for row in table if row["method"] in told], fault_name(table), len(table), lost, theirs)
    style.caption(
        figure,
        table,
        "up: better; left: cheaper; a line joins what is better, on average, than all cheaper",
        apart="task",
    )
    style.lay_out(figure)
    for axes, axis in zip(panels, COSTS):
        if named[axes]:
            style.name_points(axes, [(row["method"], row[axis], fault(row)[0]) for row in named[axes]], looks)
    return figure


def fault_name(table: Table) -> str:
    return {"accuracy": "wrong in %", "error": "||x - x*|| / ||x*||", "loss": "training loss"}[table[0]["metric"]]


def list_named(axes: Axes, rows: Table, what: str, many: int, lost: Sequence[str], theirs: bool) -> None:
    """A table in the place of a panel: quality with its interval and bytes up, the best first; who is not shown."""
    axes.axis("off")
    cells = [["method", "error" if "x*" in what else what, "95% interval", "MB up"]]
    for row in sorted(rows, key=score, reverse=True):
        middle, low, high = fault(row)
        ends = f"[{min(low, high):.3g}, {max(low, high):.3g}]"
        found = [f"{middle:.3g}", ends] if middle > ROUNDING else [f"< {ROUNDING:g}", ""]
        cells.append([row["method"], *found, f"{row['up']:.3g}"])
    method, error, ends, up = (max(map(len, column)) for column in zip(*cells))
    lines = [f"{a:<{method}} {b:>{error}} {c:<{ends}} {d:>{up}}" for a, b, c, d in cells]
    seeds = f"n={rows[0]['seeds']}, " if rows else ""
    lines += [
        "",
        f"{seeds}{many} methods; named: those on a line,",
        "FedAvg and the five papers' own" + theirs * ", and others'",
    ]
    why = "diverged" if "%" in what else f"diverged or above {WORST:g}"
    lines += textwrap.wrap(f"not shown, {why}: {', '.join(lost)}", 50) if lost else []
    axes.text(0, 1, "\n".join(lines), family="monospace", fontsize=5.6, va="top", linespacing=1.4)


def fault(row: Row) -> tuple[float, float, float]:
    """Mean and interval as smaller is better: percent that are wrong, or the error, from where it is rounding."""
    values = (row["quality"], row["low"], row["high"])
    if row["metric"] == "accuracy":
        return tuple(max(100 - value, 0.1) for value in values)  # type: ignore
    return tuple(max(value, ROUNDING) if value == value else value for value in values)  # type: ignore


def score(row: Row) -> float:
    """Larger is better."""
    return row["quality"] if row["metric"] == "accuracy" else -fault(row)[0]


SCREEN = 20  # methods that a panel can name and a class can read


def draw_places(axes: Axes, table: Table, order: Sequence[str]) -> None:
    """A line per method, and on it a bar and a point per task."""
    for place, task in enumerate(dict.fromkeys(row["task"] for row in table)):
        rows = [row for row in table if row["task"] == task]
        spots = [order.index(row["method"]) + 0.22 * (place - 1) for row in rows]
        tint = style.SEQUENCE[place]
        ahead = lambda place: 100 * (place - 1) / max(len(rows) - 1, 1)  # noqa: B023
        first, final = ([ahead(row[end]) for row in rows] for end in ("first", "final"))
        axes.hlines(spots, first, final, color=tint, linewidth=2)
        points = sorted(range(len(rows)), key=lambda at: (math.isnan(rows[at]["quality"]), -score(rows[at])))
        axes.plot(
            [ahead(1 + points.index(at)) for at in range(len(rows))],
            spots,
            "osD^v"[place],
            color=tint,
            markersize=3,
            label=f"{task} (n={rows[0]['seeds']}, {len(rows)} methods)",
        )
        gone = [at for at, row in enumerate(rows) if math.isnan(row["quality"])]
        axes.plot(
            [ahead(1 + points.index(at)) for at in gone], [spots[at] for at in gone], "kx", markersize=5, zorder=3
        )
    axes.set_yticks(range(len(order)), order, fontsize=6)


@style.styled
def draw_ranks(table: Table) -> Figure:
    """From the first to the last place that each method may have, task by task, in shares: tasks have unlike many."""
    middle = lambda rows: float(np.mean([(row["first"] + row["final"]) / 2 / row["of"] for row in rows]))
    of = {row["method"]: [other for other in table if other["method"] == row["method"]] for row in table}
    order = sorted(of, key=lambda name: middle(of[name]))
    many = 1 + (len(order) > SCREEN)
    each = -(-len(order) // many)
    figure, panels = style.new_figure(many, height=1.2 + 0.17 * each, columns=1 + many)
    for part, axes in enumerate(panels):
        draw_places(axes, table, order)
        axes.set_ylim(min((part + 1) * each, len(order)) - 0.45, part * each - 0.55)
        axes.set(xlabel="% of the other methods that are ahead (0: the best); cross: a run diverged")
    style.caption(figure, table, f"bars: places that 95% intervals over {table[0]['seeds']} seeds allow", apart="task")
    style.legend_above(figure, 3)
    return figure


@style.styled
def draw_sweep(sweep: Sweep, table: Table) -> Figure:
    """A line per method, family by family: accuracy under each condition, and what was lost, paired by seed."""
    families = [family for family in FAMILIES if any(row["family"] == family for row in table)]
    spots: dict[str, float] = {}
    for place, family in enumerate(families):
        for row in table:
            if row["family"] == family:
                spots.setdefault(row["method"], len(spots) + place)
    figure, panels = style.new_figure(2, height=1.2 + 0.14 * (len(spots) + len(families)), columns=2)
    values = list(dict.fromkeys(row["value"] for row in table))
    shown = [f"1/{1 / value:g}" if sweep.ratio else f"{value}" for value in values]
    same = alike(table)
    for place, (value, how) in enumerate(zip(values, style.looks(shown).values())):
        rows = [row for row in table if row["value"] == value and (row["method"], value) not in same]
        at = [spots[row["method"]] + 0.28 * (place - (len(values) - 1) / 2) for row in rows]
        mark: dict[str, Any] = {"color": how.color, "marker": how.marker, "linestyle": "", "markersize": 2.5}
        text = f"{sweep.label}: {shown[place]} (n={table[0]['seeds']})"
        for axes, name, low, high in zip(panels, ("quality", "lost"), ("low", "lost_low"), ("high", "lost_high")):
            if name == "quality" or place:
                axes.hlines(at, [row[low] for row in rows], [row[high] for row in rows], color=how.color, linewidth=0.8)
                axes.plot([row[name] for row in rows], at, **mark, label=text)
        gone = [spot for spot, row in zip(at, rows) if math.isnan(row["quality"])]
        panels[0].plot([1] * len(gone), gone, "x", color=how.color, markersize=3.5)
    for axes, names in zip(panels, (list(spots), [])):
        axes.set_yticks(list(spots.values()), names or [""] * len(spots), fontsize=6)
        axes.set_ylim(max(spots.values()) + 0.7, -1.2)
    for family in families:
        top = min(spots[row["method"]] for row in table if row["family"] == family)
        panels[0].text(1, top - 0.5, family, fontsize=6, style="italic", va="bottom")
    panels[0].set(xlabel="accuracy in %; cross: a run diverged", xlim=(0, 101))
    panels[1].set(xlabel=f"points lost against {shown[0]}, paired by seed")
    panels[1].axvline(0, color="0.4", linewidth=0.6)
    style.caption(figure, table, *["no point: the same run as at an easier value"] * bool(same), apart="task")
    style.legend_above(figure, len(values))
    return figure


TOLD = (*OURS, "FedDyn", "FedAvg-CD")  # named in the picture of rates: the last two needed more than the grid
FEW = 8  # methods that can all be named there


@style.styled
def draw_tuning(table: Table) -> Figure:
    """What was tried: one panel per task, one curve per method; TOLD, or a few, are named, the rest is grey."""
    tasks = list(dict.fromkeys(row["task"] for row in table))
    figure, panels = style.new_figure(len(tasks), height=3.4, columns=0.8 * len(tasks))
    for axes, task in zip(panels, tasks):
        rows = [row for row in table if row["task"] == task]
        names = list(dict.fromkeys(row["method"] for row in rows))
        told = style.looks(name for name in names if name in TOLD or len(names) <= FEW)
        for name in names:
            own = [row for row in rows if row["method"] == name]
            look: dict[str, Any] = {"color": "0.8", "linewidth": 0.6}
            mark: dict[str, Any] = {"marker": "o", "markersize": 3}
            if name in told:
                look, mark = {**told[name].line, "label": name}, {"marker": told[name].marker, "markersize": 5}
            best = [at for at, row in enumerate(own) if row["best"]]
            rates, found = ([row[part] for row in own] for part in ("rate", "value"))
            axes.plot(rates, found, **look, **mark, markevery=best, zorder=3 if name in told else 1)
        axes.set(xlabel="learning rate (n=1)", ylabel=f"{task}: {rows[0]['metric']}", xscale="log")
        axes.set_title(f"{len(names)} methods")
        values = sorted(row["value"] for row in rows if math.isfinite(row["value"]))
        if rows[0]["metric"] == "loss" and values and values[0] > 0:  # what diverged is out of the picture
            low, best = values[0], [r["value"] for r in rows if r["best"] and r["method"] in told]
            high = max(v for v in (values[3 * len(values) // 4], *best) if math.isfinite(v))
            near = high < 2 * low
            rim = max(0.04 * (high - low) / low if near else 0.04 * math.log(high / low), 1e-3)
            axes.set(yscale="linear" if near else "log", ylim=(low * (1 - rim), high * (1 + rim)))
            if not near:
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set(major_formatter="{x:g}", minor_formatter="")
    style.caption(figure, table, "grey: the other methods; a marker: the rate that was chosen", apart="task")
    style.legend_above(figure, 4)
    return figure


def item(full: str, title: str, methods: Sequence[Method] = tuple(METHODS.values())) -> Item:
    """A comparison of these methods: of a task, a sweep, "ranks" or "tuning", after "frontier/"."""
    name = full.removeprefix("frontier/")
    if name in SWEEPS:
        return Item(full, title, partial(measure_sweep, name, methods), partial(draw_sweep, SWEEPS[name]), SCALES)
    if name == "ranks":
        return Item(full, title, partial(measure_ranks, methods), draw_ranks, SCALES)
    if name == "tuning":
        return Item(full, title, partial(measure_tuning, methods), draw_tuning, SCALES)
    scales = SCALES[name not in TASKS["quick"] :]
    return Item(full, title, partial(measure_task, name, methods), draw_task, scales, grows=True)


def some(name: str, methods: Sequence[Method]) -> Item:
    """The comparison of this name, of these methods."""
    if name in FURTHER:
        return item(f"frontier/{name}", f"{name}, a problem of another distribution", methods)
    listed = registry.items()[f"frontier/{name}"]
    return item(listed.name, listed.title, methods)


def names(scale: str, methods: Sequence[Method]) -> list[str]:
    """What can be compared at a scale: items of which at least one method is defined."""
    wanted = {**{name: (task, False) for name, task in TASKS[scale].items()}, "ranks": None, "tuning": None}
    wanted |= {name: (TASKS[scale][sweep.task], sweep.ratio) for name, sweep in SWEEPS.items()}
    return [name for name, where in wanted.items() if where is None or divided(where[0], methods, where[1])[0]]


SCALES = tuple(SEEDS)
EXTRAS = [
    item("frontier/quadratics", "Heterogeneous quadratics, d = 50"),
    item("frontier/regression", "Matrix regression, 100 x 10"),
    item("frontier/digits", "Digits, a perceptron 64-64-10"),
    item("frontier/mnist", "MNIST, a perceptron"),
    item("frontier/fashion_mnist", "Fashion-MNIST, a perceptron"),
    item("frontier/cifar10", "CIFAR-10, two convolutions, 16 x 16 pixels"),
    item("frontier/ranks", "Places on the three tasks without files"),
    item("frontier/tuning", "Learning rates tried"),
    item("frontier/heterogeneity", "Where methods break: heterogeneity"),
    item("frontier/compression", "Where methods break: compression"),
    item("frontier/participants", "Where methods break: few participants"),
    item("frontier/lag", "Where methods break: clients that fall silent"),
    item("frontier/precision", "Where methods break: precision"),
]
