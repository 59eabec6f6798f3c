"""What bfloat16 does to accuracies: methods in both precisions, paired by seed."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from fedtheory.papers import style
from fedtheory.papers.accuracy import last
from fedtheory.papers.store import Spec, Wants, interval
from fedtheory.running.records import Table

PRECISIONS = ("full", "bf16")
ALL = "mean of all"


def measured(
    names: Sequence[str],
    seeds: int,
    spec: Callable[[str, int, str], Spec],
    records: int,
    pairs: Iterable[tuple[str, str]] = (),
) -> Wants[tuple[Table, list[str]]]:
    """A row per method and one for their mean, and what is seen in them.

    Args:
        spec: the run of (method, seed, precision); the precisions share start, clients and batches.
        records: the last ones, whose mean is the accuracy.
        pairs: of methods whose difference is looked at, too.
    """
    wanted = {
        (name, precision, seed): spec(name, seed, precision)
        for seed in range(seeds)
        for name in names
        for precision in PRECISIONS
    }
    results = yield wanted.values()
    reached = {at: last(results[one], records) for at, one in wanted.items()}
    of = lambda name, precision: [reached[name, precision, seed] for seed in range(seeds)]
    found = {name: (of(name, "full"), of(name, "bf16")) for name in names}
    full, bf16 = ([fmean(values) for values in zip(*those)] for those in zip(*found.values()))
    table: Table = []
    for name, (before, after) in (found | {ALL: (full, bf16)}).items():
        gaps = [b - a for a, b in zip(before, after, strict=True)]
        numbers = dict(zip(("gap", "gap low", "gap high"), interval(gaps)), seeds=seeds)
        levels = {"full": fmean(before), "bf16": fmean(after)}
        table.append({"method": name, **levels, **numbers, **wanted[names[0], "bf16", 0].ran()})
    said = []
    for one, other in pairs:
        leads = [[a - b for a, b in zip(*both)] for both in zip(found[one], found[other])]
        mean, low, high = interval([b - a for a, b in zip(*leads)])
        said.append(
            f"{one} less {other}: {fmean(leads[0]):+.2f} points in float32, {fmean(leads[1]):+.2f} in bfloat16; the "
            f"change is {mean:+.2f} [{low:+.2f}, {high:+.2f}]"
        )
    return table, [_moved(table), *said]


def _moved(table: Table) -> str:
    """Whose interval leaves zero out."""
    off: Sequence[str] = [row["method"] for row in table if row["gap low"] > 0 or row["gap high"] < 0]
    few = "of one seed there is none" if table[0]["seeds"] == 1 else ", ".join(off) or "none"
    full, bf16 = (sorted(table[:-1], key=lambda row: row[name]) for name in PRECISIONS)
    return (
        "Precision bf16: products and convolutions in bfloat16; weights, sums and updates in float32. Intervals of "
        f"the difference that leave zero out: {few}. Without any effect one method in twenty has such an interval by "
        f"chance. The order of the means is {'the same' if full == bf16 else 'another'} in both."
    )


@style.styled
def draw(table: Table) -> Figure:
    """Methods from top to bottom: what bfloat16 adds to the accuracy, with intervals; where float32 leaves it."""
    figure, (left, right) = style.new_figure(2, 0.9 + 0.2 * len(table), columns=2)
    spots = range(len(table), 0, -1)
    for name, look, marker in (("full", "float32", "D"), ("bf16", "bfloat16", "o")):
        color = style.SEQUENCE[name == "bf16"]
        mark = {"color": color, "markersize": 4.5, "markerfacecolor": "none", "linestyle": "none"}
        left.plot([row[name] for row in table], spots, marker, label=f"{look} (n={table[0]['seeds']})", **mark)
    gaps = [row["gap"] for row in table]
    reach = [[row["gap"] - row["gap low"] for row in table], [row["gap high"] - row["gap"] for row in table]]
    error = reach if table[0]["seeds"] > 1 else None
    right.axvline(0, color="0.6", linewidth=0.8)
    right.errorbar(gaps, spots, xerr=error, fmt="o", color=style.SEQUENCE[1], markersize=3.5, capsize=2)
    for axes, label in ((left, "accuracy in %"), (right, "bfloat16's less float32's, in points")):
        axes.set_yticks(spots, [row["method"] for row in table] if axes is left else [""] * len(table))
        axes.set(xlabel=label)
        axes.margins(0.12, 0.08)
    style.caption(figure, table)
    style.legend_above(figure, 2)
    return figure
