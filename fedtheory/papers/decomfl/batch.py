"""What the batch size decides with momentum 0.9: DeComFL's Figure 2 left, with the authors' batches and smaller."""

import math

from matplotlib.figure import Figure

from fedtheory.core.algorithm import Algorithm
from fedtheory.papers import style
from fedtheory.papers.decomfl.curves import SCALES, play, published, readings
from fedtheory.papers.store import Item, Result, Wants
from fedtheory.running.records import Table

SMALL = {"quick": (8, 20), "medium": (64, 480), "paper": (64, 2000)}  # batch, and rounds of a run with K = 1
STEPS = (1, 4)  # K; a run with K > 1 makes so many times fewer rounds


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Fig. 2 left under the reading "authors' files", and with a smaller batch: one row per record of a run."""
    of, (_, authors) = SCALES[scale], readings(scale)
    (batch, rounds), large = SMALL[scale], authors.options["batch"]
    methods: dict[str, Algorithm] = {f"K = {K}": authors.method(authors.width, K) for K in STEPS}
    table: Table = []
    notes = []
    for size, length in ((batch, rounds), (large, authors.rounds[0])):
        found = yield from play(of, of.mnist, methods, seeds, length, problem={**authors.options, "batch": size})
        for name, runs in found.columns.items():
            for seed, one in enumerate(runs):
                for t, accuracy in zip(one["round"], one["accuracy"]):
                    row = {"panel": name, "method": f"batch {size}", "seed": seed, "round": t, "accuracy": accuracy}
                    files = published(name, int(t)) if size == 256 else math.nan
                    table.append({**row, "files": files, **found.ran[name]})
            ends = ", ".join(f"{max(one['accuracy']):.3f} and {one['accuracy'][-1]:.3f}" for one in runs)
            notes.append(f"{name}, batches of {size}: highest and last accuracy of each seed's run: {ends}.")
    settings = {"scale": repr(of), "reading": repr(authors), "batches": [batch, large], "methods": repr(methods)}
    return Result(table, [], settings, [*notes, WHY])


WHY = (
    "P, the rate and momentum 0.9 without the factor 1 - beta are those of the authors' files, whose batches are of "
    "256 (open points 9, 15). A likely reason: an estimated gradient is about sqrt(d/P) times as long as the "
    "minibatches' gradient. Its noise does not fall with the loss, and momentum adds up ten of them."
)


@style.styled
def draw(table: Table) -> Figure:
    """Test accuracy over rounds: a panel per K, a line per run."""
    panels = list(dict.fromkeys(row["panel"] for row in table))
    figure, axes = style.new_figure(len(panels), height=2.0, columns=1.45)
    names = style.looks(row["method"] for row in table)
    for axis, panel in zip(axes, panels):
        for name, how in names.items():
            rows = [row for row in table if (row["panel"], row["method"]) == (panel, name)]
            n = len({row["seed"] for row in rows})
            for seed in range(n):
                own = [row for row in rows if row["seed"] == seed]
                label = f"{name} (n={n})" if seed == 0 else None
                axis.plot([row["round"] for row in own], [row["accuracy"] for row in own], **how.line, label=label)
            files = {row["round"]: row["files"] for row in rows if not math.isnan(row["files"])}
            axis.plot(list(files), list(files.values()), "D", markersize=4.5, markerfacecolor="none", color=how.color)
        axis.set(title=panel, xlabel="communication rounds", ylim=(0, 1))
    axes[-1].plot([], [], "kD", markersize=4.5, markerfacecolor="none", label="published files, batch 256")
    axes[0].set_ylabel("test accuracy")
    style.caption(figure, table)
    style.legend_above(figure, 3)
    return figure


EXTRAS = [
    Item("decomfl/batch", "Batch size, with momentum 0.9", measure, draw, ("quick", "medium", "paper")),
]
