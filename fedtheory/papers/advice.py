"""Which method to take under limits: read off the committed comparisons, and not derived from a formula."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedtheory.compare import METHODS
from fedtheory.core import checks
from fedtheory.running import records
from fedtheory.running.records import Row, Table

TASKS = ("digits", "mnist", "fashion_mnist", "cifar10")
BYTES = ("up", "down")
AXES = (*BYTES, "memory", "flops")  # of a comparison's costs
CONDITIONS = {  # record, unit of its values, value in all other records
    "participation": ("participants", 1 / 20, 1 / 4),
    "heterogeneity": ("heterogeneity", 1.0, 0.3),
}
SLACK = 1.005  # a limit of 1/32 holds for a method that sends 1/32 of the numbers and a header


@dataclass(frozen=True)
class Advice:
    """The methods that no other method surely beats within the limits, and what the advice rests on.

    Fields:
        rows: one per method, best first. "behind" is the mean distance to the best within the limits, in points. A
            source's name has the accuracy in percent, "<name> low" and "<name> high" its 95% interval. "up" and "down"
            are shares of FedAvg's on the largest model, "memory" and "flops" the largest shares on any task.
        sources: what was compared, and with how many seeds.
        beaten: (method, a source where another one within the limits is surely better), of those left out for that.
        dear: methods beyond a limit.
        untried: methods that a source lacks.
    """

    rows: Table
    sources: tuple[str, ...]
    beaten: tuple[tuple[str, str], ...]
    dear: tuple[str, ...]
    untried: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods' names, best first."""
        return tuple(row["method"] for row in self.rows)

    def __repr__(self) -> str:
        names = [name.partition(",")[0] for name in self.sources]
        lines = [["method", "behind", *names, *(f"{axis}/FedAvg" for axis in AXES)]]
        for row in self.rows:
            found = [f"{row[name]:.1f} [{row[f'{name} low']:.1f}, {row[f'{name} high']:.1f}]" for name in names]
            lines.append([row["method"], f"{row['behind']:.1f}", *found, *(f"{row[axis]:.2g}" for axis in AXES)])
        widths = [max(map(len, column)) for column in zip(*lines)]
        shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        lists = {"Surely beaten": [name for name, _ in self.beaten], "Beyond a limit": self.dear}
        lists["Not in every comparison"] = self.untried
        said = [f"Accuracy in %, 95% intervals. Compared on {'; '.join(self.sources)}."]
        said += [f"{words}: {', '.join(names) or 'none'}." for words, names in lists.items()]
        return "\n".join(
            [*shown, *(line for text in said for line in textwrap.wrap(text, 110, break_on_hyphens=False))]
        )


@checks.arguments
def advise(
    *,
    up: float | None = None,
    down: float | None = None,
    memory: float | None = None,
    flops: float | None = None,
    participation: float | None = None,
    heterogeneity: float | None = None,
    tasks: Sequence[str] = TASKS,
) -> Advice:
    """Return the methods to take within limits, by the comparisons in `figures/frontier`.

    Each method ran there with its own tuned learning rate for the same rounds, on small image tasks with 20 clients, 5
    a round, and Dirichlet(0.3) labels. A method stays unless another one within the limits is surely better (95%
    intervals apart) on some task; where that holds of all, all stay. A method that diverged counts as 0%.

    Args:
        up, down: most bytes sent to and from the server, as a share of FedAvg's in as many rounds, on the largest of
            the models. None: no limit. Every limit has 0.5% of slack.
        memory, flops: a client's most memory, and FLOP a round, as a share of FedAvg's, on every task.
        participation: share of clients a round, in (0, 1]. The nearest (as a ratio) of 1/20, 1/4 and 1 is used; 1/20
            and 1 add a comparison on the digits.
        heterogeneity: Dirichlet parameter of the labels. The nearest (as a ratio) of 0.05, 0.3 and 10 is used; 0.05 and
            10 add a comparison on the digits.
        tasks: comparisons to use, of "digits", "mnist", "fashion_mnist", "cifar10".

    Raises ValueError where an argument is out of range or no method keeps the limits, FileNotFoundError where the
    comparisons are absent.

    >>> advice = advise(up=1 / 16, participation=0.1)
    >>> "FedAvg" in advice.methods
    False
    """
    limits = {"up": up, "down": down, "memory": memory, "flops": flops}
    limits = {
        axis: checks.number(axis, share, 0.0, open_low=True) for axis, share in limits.items() if share is not None
    }
    if not tasks:
        checks.reject("tasks", tasks, "at least one comparison", f"name one of {', '.join(TASKS)}")
    whole = {name: compared(checks.choice("tasks", name, TASKS)) for name in tasks}
    given = {"participation": participation, "heterogeneity": heterogeneity}
    if participation is not None:
        checks.number("participation", participation, 0.0, 1.0, open_low=True)
    if heterogeneity is not None:
        checks.number("heterogeneity", heterogeneity, 0.0, open_low=True)
    found = dict(whole)
    for name, value in given.items():
        if value is not None:
            found |= _under(name, value, "digits" in whole)
    return _weighed(whole, found, limits)


def compared(task: str) -> dict[str, Row]:
    """The lines of a task's committed comparison, by method."""
    return {row["method"]: row for row in records.load(records.results(), f"frontier/{task}")["table"]}


def _under(condition: str, value: float, there: bool) -> dict[str, dict[str, Row]]:
    """The digits at the nearest value of a condition; nothing where that is what is `there`."""
    item, unit, usual = CONDITIONS[condition]
    table = records.load(records.results(), f"frontier/{item}")["table"]
    near = min((row["value"] for row in table), key=lambda tried: abs(math.log(tried * unit / value)))
    if there and near * unit == usual:
        return {}
    here = {row["method"]: row for row in table if row["value"] == near}
    return {f"digits at {condition} {near * unit:g}": here}


def _weighed(
    whole: Mapping[str, Mapping[str, Row]], found: Mapping[str, Mapping[str, Row]], limits: Mapping[str, float]
) -> Advice:
    """Costs are those of `whole`, accuracies those of `found`.

    Bytes are compared on the largest model: zeroth-order methods' do not grow with it, so their share falls.
    """
    tried = [name for name in METHODS if all(name in rows for rows in (*whole.values(), *found.values()))]
    largest = max(whole.values(), key=lambda rows: rows["FedAvg"]["up"] / rows["FedAvg"]["ran rounds"])
    tables = {axis: [largest] if axis in BYTES else list(whole.values()) for axis in AXES}
    shares = {
        name: {axis: max(rows[name][axis] / rows["FedAvg"][axis] for rows in tables[axis]) for axis in AXES}
        for name in tried
    }
    dear = [name for name in tried if any(shares[name][axis] > limit * SLACK for axis, limit in limits.items())]
    within = [name for name in tried if name not in dear]
    if not within:
        least = {axis: min(one[axis] for one in shares.values()) for axis in limits}
        lacking = [axis for axis, limit in limits.items() if least[axis] > limit * SLACK]
        axis = next(iter(lacking or limits))
        fix = f"raise it: the least is {_up(least[axis]):g}" if lacking else "raise one: no method keeps all of them"
        checks.reject(axis, limits[axis], "limits that some method keeps", fix)
    best = {source: max(_or_least(rows[name]["quality"]) for name in within) for source, rows in found.items()}
    floor = {source: max(_or_least(rows[name]["low"]) for name in within) for source, rows in found.items()}
    beaten = [
        (name, source)
        for name in within
        for source in [next((s for s, rows in found.items() if _or_least(rows[name]["high"]) < floor[s]), "")]
        if source
    ]
    beaten = beaten if len(beaten) < len(within) else []  # where each is beaten somewhere, all stay
    out = {name for name, _ in beaten}
    table: Table = []
    for name in within:
        if name in out:
            continue
        behind = [best[source] - _or_least(rows[name]["quality"]) for source, rows in found.items()]
        row: Row = {"method": name, "behind": sum(behind) / len(behind)}
        for source, rows in found.items():
            one = rows[name]
            row |= {source: one["quality"], f"{source} low": one["low"], f"{source} high": one["high"]}
        table.append(row | shares[name])
    table.sort(key=lambda row: row["behind"])
    sources = tuple(f"{source}, n={next(iter(rows.values()))['seeds']}" for source, rows in found.items())
    return Advice(table, sources, tuple(beaten), tuple(dear), tuple(n for n in METHODS if n not in tried))


def _or_least(value: Any) -> float:
    """An accuracy; 0 for a method that diverged in a run."""
    return value if math.isfinite(value) else 0.0


def _up(value: float) -> float:
    """The least number of two digits that is no smaller."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit * (1 - 1e-9)) * unit:.2g}")
