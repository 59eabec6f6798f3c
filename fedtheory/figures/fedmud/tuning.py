"""How rates and initialisations of FedMUD's runs were chosen: sixteen settings for every method, one short run each."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from fedtheory.core.records import Row, Table
from fedtheory.figures import style
from fedtheory.figures.fedmud.settings import (
    HERE,
    METHODS,
    OTHERS,
    SCALES,
    TRIED,
    TUNING,
    TUNING_SEED,
    algorithm,
    notes,
    spec,
    words,
)
from fedtheory.figures.readings import last
from fedtheory.figures.store import Item, Result, Runner


def measure_tuning(runner: Runner, scale: str, seeds: int, finished: Sequence[Row] = ()) -> Result:
    """Every method at sixteen settings for a few rounds, on a seed that is not used again: mean of two records."""
    names = [name for name in TRIED if name not in {row["method"] for row in finished}]
    wanted = {}
    for name in names:
        for rate, a in TRIED[name]:
            start = {} if name in OTHERS else {"a": a}
            how = algorithm(name, HERE, scale, None, lr=rate, **start)
            wanted[name, rate, a] = spec(how, HERE, scale, TUNING_SEED, TUNING[scale], TUNING[scale] // 5)
    results = runner(wanted.values())
    table: Table = []
    for (name, rate, a), one in wanted.items():
        table.append({"method": name, "rate": rate, "a": a, "accuracy": last(results[one], 2), **one.ran()})
    table = [*finished, *table]
    said = {"seed": TUNING_SEED, "rounds": TUNING[scale]}
    return Result(table, [], words(scale, 1, names) | said, [*notes(scale), at_ends(table)], seeds=[TUNING_SEED])


def at_ends(table: Sequence[Row]) -> str:
    """Which best settings lie at an end of what was tried."""
    found = best(table)
    tried = {name: list(zip(*TRIED[name])) for name in found}
    edge = lambda name, at: found[name][at] in (min(tried[name][at]), max(tried[name][at]))
    rates, starts = (
        [name for name in found if edge(name, 0)],
        [name for name in METHODS if name in found and edge(name, 1)],
    )
    return (
        f"Best rate at an end of those tried: {', '.join(rates) or 'none'}. Best a at an end: "
        f"{', '.join(starts) or 'none'}."
    )


def best(table: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """(rate, a) of the highest accuracy of every method; the first of equal ones."""
    found: dict[str, Row] = {}
    for row in table:
        there = found.get(row["method"])
        if row["accuracy"] == row["accuracy"] and (there is None or row["accuracy"] > there["accuracy"]):
            found[row["method"]] = row
    return {name: (row["rate"], row["a"]) for name, row in found.items()}


@style.styled
def draw_tuning(table: Table) -> Figure:
    """Accuracy over the rates tried, a panel per method, a curve per a."""
    names = list(dict.fromkeys(row["method"] for row in table))
    figure, panels = style.new_figure(len(names), 5.4, columns=3, rows=3)
    reached = [row["accuracy"] for row in table if row["accuracy"] == row["accuracy"]]
    for axes, name in zip(panels, names):
        rows = [row for row in table if row["method"] == name]
        values = list(dict.fromkeys(str(row["a"]) for row in rows))
        for place, a in enumerate(values):
            own = [row for row in rows if str(row["a"]) == a]
            label = f"a = {own[0]['a']:g}" if len(values) > 1 else None
            spots, heights = [row["rate"] for row in own], [row["accuracy"] for row in own]
            axes.plot(spots, heights, "o-", color=style.SEQUENCE[place], markersize=3, label=label)
        axes.set(xscale="log", title=name, xlabel="learning rate", ylim=(min(reached) - 2, max(reached) + 2))
        if len(values) > 1:
            rates = sorted({row["rate"] for row in rows})
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.set_xticks([], minor=True)
            axes.legend(fontsize=5.5, handlelength=1.2, loc="best")
    for axes in panels[:: len(names) // 3]:
        axes.set_ylabel("accuracy in % (n=1)")
    style.caption(figure, table)
    return figure


EXTRAS = [Item("mud/tuning", "How rates and initialisation were chosen", measure_tuning, draw_tuning, SCALES[:2], True)]
