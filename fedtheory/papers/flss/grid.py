"""Where FLSS could win: Table 3's CNN at the printed length, one change at a time, beside FedAvg at its rate."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.flss import FLSS
from fedtheory.core.algorithm import Algorithm
from fedtheory.papers import style
from fedtheory.papers.accuracy import last
from fedtheory.papers.flss.items import LENGTH, SETTINGS, notes_of, settings_of, spec
from fedtheory.papers.store import Item, Result, Wants, interval
from fedtheory.running.records import Row, Table
from fedtheory.theory.flss.printed import Setting

CHANGES = {  # multiples of rate, R and T0; rounds from one whole update to the next (0: none); sr
    "as in Table 3": {},
    "rate x 0.4": {"lr": 0.4},
    "rate x 2": {"lr": 2.0},
    "R / 4": {"rank": 0.25},
    "R x 2": {"rank": 2.0},
    "R x 4": {"rank": 4.0},
    "T0 / 2": {"warm_up": 0.5},
    "T0 x 1.5": {"warm_up": 1.5},
    "whole every 2 rounds": {"refresh": 2},
    "whole every 20 rounds": {"refresh": 20},
    "never whole": {"refresh": 0},
    "sr = 3": {"sr": 3.0},
}


def methods(at: Setting, change: dict[str, float]) -> dict[str, Algorithm]:
    """FLSS with a change, and FedAvg at the same rate."""
    lr = at.lr * change.get("lr", 1.0)
    rank, warm_up = (round(getattr(at, name) * change.get(name, 1.0)) for name in ("rank", "warm_up"))
    refresh = int(change.get("refresh", 5))
    flss = FLSS(lr, at.epoch, min(rank, warm_up), warm_up, refresh, sr=change.get("sr", 1.0))
    return {"FLSS": flss, "FedAvg": FedAvg(lr, at.epoch)}


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Accuracy of FLSS minus FedAvg's for every change, paired by seed; all changes of a seed before the next."""
    at = SETTINGS[scale] if scale != "medium" else LENGTH
    wanted = {
        (change, name, seed): spec(at, algorithm, 0.5, seed)
        for seed in range(seeds)
        for change, of in CHANGES.items()
        for name, algorithm in methods(at, of).items()
    }
    results = yield wanted.values()
    table: Table = []
    for change in CHANGES:
        ours, base = (
            [last(results[wanted[change, name, seed]]) for seed in range(seeds)] for name in ("FLSS", "FedAvg")
        )
        mean, low, high = interval([a - b for a, b in zip(ours, base)])
        sent = [results[wanted[change, name, 0]]["columns"]["up_bytes"][-1] / 1e6 for name in ("FLSS", "FedAvg")]
        row: Row = {"change": change, "mean": interval(ours)[0], "FedAvg": interval(base)[0]}
        row |= {"gap": mean, "low": low, "high": high, "seeds": seeds, "up_mb": sent[0], "up_mb FedAvg": sent[1]}
        table.append(row | wanted[change, "FLSS", 0].ran())
    said = settings_of(at, {f"{change}: {n}": a for change, of in CHANGES.items() for n, a in methods(at, of).items()})
    return Result(table, [], said, [*(notes_of(at, scale)[:2]), ONE_BY_ONE])


ONE_BY_ONE = (
    "One hyperparameter is changed at a time. FedAvg has the same rate, seed, partition and sampling; it sends every "
    "update whole. A grid is a search: that one change of eleven has an interval above 0 would be no surprise."
)


NAMES = (
    "R: rank of the subspace; T0: rounds before it starts; sr: factor of the step in it",
    "whole: a round in which clients send the whole update",
)


@style.styled
def draw(table: Sequence[Row]) -> Figure:
    """FLSS minus FedAvg in points, a line per change."""
    figure, (axes,) = style.new_figure(height=0.9 + 0.2 * len(table))
    spots = range(len(table), 0, -1)
    gaps = [row["gap"] for row in table]
    error = [[row["gap"] - row["low"] for row in table], [row["high"] - row["gap"] for row in table]]
    label = f"FLSS minus FedAvg (n={table[0]['seeds']})"
    axes.errorbar(gaps, list(spots), xerr=error, fmt="o", markersize=3.5, capsize=2, label=label)
    axes.axvline(0, color="k", linestyle=":", linewidth=1)
    most = 1.15 * sorted(max(-row["low"], row["high"]) for row in table)[-2]  # the widest may leave the panel
    for spot, row in zip(spots, table):
        if max(-row["low"], row["high"]) > most:
            text = f"{row['low']:.0f} to {row['high']:.0f} "
            axes.text(most, spot + 0.15, text, ha="right", va="bottom", fontsize=6)
    axes.set_xlim(-most, most)
    axes.set_yticks(list(spots), [row["change"] for row in table])
    axes.set(xlabel="difference in points of test accuracy")
    style.caption(figure, list(table), *NAMES)
    style.legend_above(figure, 1)
    return figure


EXTRAS = [Item("flss/grid", "Where FLSS could win", measure, draw, ("quick", "medium", "paper"))]
