"""How rates and initialisations of FedMUD's runs were chosen: as many settings for every method, a short run each."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

from matplotlib.figure import Figure

from fedtheory.papers import style
from fedtheory.papers.accuracy import last
from fedtheory.papers.mud.settings import (
    BEYOND,
    HERE,
    NEAR,
    OTHERS,
    SCALES,
    TRIED,
    TUNING,
    TUNING_SEED,
    algorithm,
    notes,
    setting_of,
    spec,
    words,
)
from fedtheory.papers.store import Item, Result, Wants
from fedtheory.running.records import Row, Table

Tried = Mapping[str, Sequence[tuple[float, float]]]  # settings (rate, a) of every method
FMNIST = "FMNIST N1"
BF16 = "Products and convolutions in bfloat16, as in the runs that it is for."


def measure_tuning(
    column: str, tried: Tried, beyond: Tried, scale: str, seeds: int, finished: Sequence[Row] = ()
) -> Wants[Result]:
    """Every method at its settings for a few rounds, on a seed that is not used again: mean of two records.

    `beyond`: further settings of single methods, which say whether the budget was too small for them.
    """
    done = {repr((row["method"], row["rate"], row["a"])) for row in finished}
    wanted = {}
    for name in tried:
        for rate, a in (*tried[name], *beyond.get(name, ())):
            if repr((name, rate, a)) in done:
                continue
            start = {} if name in OTHERS else {"a": a}
            how = algorithm(name, column, scale, None, lr=rate, **start)
            wanted[name, rate, a] = spec(how, column, scale, TUNING_SEED, TUNING[scale], TUNING[scale] // 5)
    results = yield wanted.values()
    table: Table = []
    for (name, rate, a), one in wanted.items():
        table.append({"method": name, "rate": rate, "a": a, "accuracy": last(results[one], 2), **one.ran()})
    table = [*finished, *table]
    part, said = setting_of(column, scale), {"seed": TUNING_SEED, "rounds": TUNING[scale]}
    settings = words(part, 1, list(dict.fromkeys(name for name, *_ in wanted)) or list(tried), column) | said
    precise = [BF16] if part != scale else []
    said_of = [at_ends(table, tried), *(further(table, tried, name, len(beyond[name])) for name in beyond)]
    return Result(table, [], settings, [*notes(part), *precise, *said_of], seeds=[TUNING_SEED])


def further(table: Sequence[Row], of: Tried, name: str, more: int) -> str:
    """What a method's settings beyond its budget, `more` of them, reach."""
    rows = [row for row in table if row["method"] == name]
    chosen, most = (best(some)[name] for some in (within(rows, of), rows))
    reached = {(row["rate"], row["a"]): row["accuracy"] for row in rows}
    return (
        f"{name}, settings beyond its budget, chosen by hand after its runs: {more}. Of all {len(rows)} the best, rate "
        f"{most[0]:g} and a = {most[1]:g}, has {reached[most]:.1f}%, the one that runs, rate {chosen[0]:g} and a = "
        f"{chosen[1]:g}, {reached[chosen]:.1f}%."
    )


def within(table: Sequence[Row], of: Tried) -> list[Row]:
    """Without the settings beyond a budget."""
    inside = {repr((name, *pair)) for name, pairs in of.items() for pair in pairs}
    return [row for row in table if repr((row["method"], row["rate"], row["a"])) in inside]


def at_ends(table: Sequence[Row], of: Tried) -> str:
    """Which best settings lie at an end of what was tried."""
    found = best(within(table, of))
    tried = {name: list(zip(*of[name])) for name in found}
    edge = lambda name, at: found[name][at] in (min(tried[name][at]), max(tried[name][at]))
    rates, starts = (
        [name for name in found if edge(name, 0)],
        [name for name in found if name not in OTHERS and edge(name, 1)],
    )
    return (
        f"Best rate at an end of the budget's: {', '.join(rates) or 'none'}. Best a at an end: "
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
def draw_tuning(tried: Tried, table: Table) -> Figure:
    """Accuracy over the rates, a panel per method, a curve per a; the setting that runs, and those beyond `tried`."""
    inside = within(table, tried)
    taken = best(inside)
    names = list(dict.fromkeys(row["method"] for row in table))
    lines = math.ceil(len(names) / 4)
    figure, panels = style.new_figure(4 * lines, 1.8 * lines, columns=3, rows=lines)
    for axes in panels[len(names) :]:
        axes.remove()
    reached = [row["accuracy"] for row in table if row["accuracy"] == row["accuracy"]]
    for axes, name in zip(panels, names):
        rows = [row for row in table if row["method"] == name]
        values = sorted({str(row["a"]) for row in rows}, key=float)
        for place, a in enumerate(values):
            own = sorted((row for row in rows if str(row["a"]) == a), key=lambda row: row["rate"])
            label = f"a = {own[0]['a']:g}" if len(values) > 1 else None
            spots, heights = [row["rate"] for row in own], [row["accuracy"] for row in own]
            axes.plot(spots, heights, "o-", color=style.SEQUENCE[place], markersize=3, label=label)
            more = [row for row in own if row not in inside]
            hollow = {"color": style.SEQUENCE[place], "markerfacecolor": "white", "markersize": 3}
            axes.plot([row["rate"] for row in more], [row["accuracy"] for row in more], "o", **hollow)
        chosen = next(row for row in rows if repr((row["rate"], row["a"])) == repr(taken[name]))
        axes.plot([chosen["rate"]], [chosen["accuracy"]], "o", markersize=7, markerfacecolor="none", color="k")
        axes.set(xscale="log", title=name, xlabel="learning rate", ylim=(min(reached) - 2, max(reached) + 2))
        rates = sorted({row["rate"] for row in rows})
        axes.set_xlim(rates[0] / 1.2, rates[-1] * 1.2)  # also where the runs diverged
        marked = rates[:: math.ceil(len(rates) / 4)]
        axes.set_xticks(marked, [f"{rate:.2g}" for rate in marked])
        axes.set_xticks([], minor=True)
        if len(values) > 1:
            axes.legend(fontsize=5.5, handlelength=1.2, loc="best", ncols=1 + len(values) // 5)
    for axes in panels[::4]:
        axes.set_ylabel("accuracy in % (n=1)")
    beyond = "; hollow points: beyond the budget" if len(inside) < len(table) else ""
    style.caption(figure, table, f"ring: the setting that is taken{beyond}", "no point: not tried, or the run diverged")
    return figure


def item(name: str, title: str, column: str, tried: Tried, beyond: Tried, scales: tuple[str, ...]) -> Item:
    return Item(
        name, title, partial(measure_tuning, column, tried, beyond), partial(draw_tuning, tried), scales, grows=True
    )


EXTRAS = [
    item("mud/tuning", "How rates and initialisation were chosen", HERE, TRIED, {}, SCALES[:2]),
    item("mud/tuning_fmnist", "The same on Fashion-MNIST, at the paper's scale", FMNIST, NEAR, BEYOND, ("large",)),
]
