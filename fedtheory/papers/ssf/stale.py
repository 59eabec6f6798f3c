"""SSF's Tables 2 to 4 with FedSub as it may have been run: absent clients step on, and every round has a new basis."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.core.algorithm import Algorithm
from fedtheory.maps.subspace import Spherical
from fedtheory.papers import style
from fedtheory.papers.ssf.items import READING, ROUNDS, final, method, spec
from fedtheory.papers.store import Item, Result, Wants, interval
from fedtheory.running.records import Row, Table
from fedtheory.theory.ssf.printed import METHODS, RATE, STEPS, TABLE2, TABLE3, TABLE4

PRINTED = {**TABLE3, **TABLE4, **TABLE2}
TABLES, STALE = "as in the tables", "absent clients step, new basis every round"
RIVALS = ("SSF", "Full-FedAvg")


def fedsub(reading: str, lr: float, r: int) -> Algorithm:
    """FedSub under one of the two readings."""
    if reading == TABLES:
        return method("FedSub", lr, r)
    return FedSubReading(lr, STEPS, Spherical(r, "orthonormal"), absent="step")


def measure(scale: str, seeds: int) -> Wants[Result]:
    """FedSub's final error in every printed setting, and over SSF's and FedAvg's with the same seeds."""
    methods = {name: lambda lr, r, name=name: fedsub(name, lr, r) for name in (TABLES, STALE)}
    methods |= {name: lambda lr, r, name=name: method(name, lr, r) for name in RIVALS}
    wanted = {
        (name, het, r, seed): spec(make(RATE[het], r), het, seed, ROUNDS[scale])
        for seed in range(seeds)
        for het, r in PRINTED
        for name, make in methods.items()
    }
    results = yield wanted.values()
    table: Table = []
    for reading in (TABLES, STALE):
        for (het, r), values in PRINTED.items():
            printed = dict(zip(METHODS, values))
            found = {name: [final(results[wanted[name, het, r, seed]]) for seed in range(seeds)] for name in methods}
            ours = found[reading]
            lost = [results[wanted[reading, het, r, seed]]["diverged"] for seed in range(seeds)]
            at = [one[0] for one in lost if one]
            mean, low, high = interval(ours)
            row: Row = {"reading": reading, "het": het, "r": r, "paper": printed["FedSub"]}
            row |= {"mean": mean, "low": low, "high": high, "seeds": seeds, "diverged": len(at)}
            row |= {"first": min(at, default=-1), "last": max(at, default=-1)}
            for rival in RIVALS:
                over = interval([math.log(a / b) for a, b in zip(ours, found[rival])])
                row |= dict(zip((f"/{rival}", f"/{rival} low", f"/{rival} high"), map(math.exp, over)))
                row[f"/{rival} paper"] = printed["FedSub"] / printed[rival]
            table.append(row | wanted[reading, het, r, 0].ran())
    about = {
        f"{name}, het={het}, r={r}": repr(make(RATE[het], r)) for het, r in PRINTED for name, make in methods.items()
    }
    settings: dict[str, Any] = {"rounds": ROUNDS[scale], "methods": about}
    return Result(table, [], settings, [*READING, NOT_PRINTED])


NOT_PRINTED = (
    "Two things are not printed. Absent clients step their duals with the endpoint that they sent last, in the "
    "coordinates of its own round. And every round has a new basis. SSF's Table 1 says every five rounds; with "
    "five, and stale endpoints as they are or turned along, the levels are not the printed ones (ssf/readings). A "
    "search over readings of the dual found this one: that it fits is no proof that it was run."
)


@style.styled
def draw(table: Sequence[Row]) -> Figure:
    """Left, FedSub's error over the printed one; right, over SSF's, beside the printed ratios."""
    figure, panels = style.new_figure(2, height=2.6, columns=2)
    places = sorted({(row["het"], row["r"]) for row in table})
    what = [("", "FedSub / printed"), ("/SSF", "FedSub / SSF")]
    ticks = ((0.7, 0.8, 0.9, 1, 1.2, 1.4), (0.9, 1, 1.2, 1.5, 2, 2.5))
    for axes, (column, title), marked in zip(panels, what, ticks):
        for at, reading in enumerate((TABLES, STALE)):
            label = f"{reading} (n={table[0]['seeds']})"
            for row in (row for row in table if row["reading"] == reading):
                x = places.index((row["het"], row["r"])) + 0.24 * (at - 0.5)
                over = 1.0 if column else row["paper"]
                names = (column, f"{column} low", f"{column} high") if column else ("mean", "low", "high")
                mean, low, high = (row[name] / over for name in names)
                color = style.SEQUENCE[at]
                if row["diverged"]:
                    text = f"NaN in {row['diverged']} of {row['seeds']}"
                    where = axes.get_xaxis_transform()
                    axes.text(x, 0.97, text, transform=where, color=color, **SMALL, va="top")
                elif mean == mean:
                    error = [[mean - low], [high - mean]]
                    axes.errorbar([x], [mean], error, fmt="o", markersize=3.5, capsize=2, color=color, label=label)
                elif not column:
                    where = axes.get_xaxis_transform()
                    axes.text(x, 0.97, "finite here", transform=where, color=color, **SMALL, va="top")
                if column and not at and row[f"{column} paper"] == row[f"{column} paper"]:
                    axes.plot([x + 0.12], [row[f"{column} paper"]], "kD", markersize=4.5, markerfacecolor="none")
        axes.axhline(1, color="k", linestyle=":", linewidth=1)
        axes.set_xticks(range(len(places)), [f"{het:g}\n{r}" for het, r in places])
        axes.set(yscale="log", title=title, xlabel="het (above) and r (below)")
        axes.set_yticks(marked, [f"{tick:g}" for tick in marked])
        axes.set_yticks([], minor=True)
        axes.set_xlim(-0.5, len(places) - 0.5)
    panels[1].plot([], [], "kD", markersize=4.5, markerfacecolor="none", label="printed")
    style.caption(figure, list(table), "left without a point: the paper prints no value, or a run diverged")
    style.legend_above(figure, 2)
    return figure


SMALL: dict[str, Any] = {"rotation": 90, "fontsize": 5.5, "ha": "center"}
EXTRAS = [Item("ssf/stale", "FedSub with stale endpoints and a new basis every round", measure, draw)]
