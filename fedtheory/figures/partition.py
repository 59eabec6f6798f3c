"""Who holds what: the samples of every label that each client has."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedtheory.figures import style
from fedtheory.figures.store import Table


def holdings(partitions: Mapping[str, Sequence[torch.Tensor]], y: torch.Tensor) -> Table:
    """One row per partition, client and label that the client has samples of."""
    return [
        {"partition": name, "client": client, "label": label, "samples": samples}
        for name, parts in partitions.items()
        for client, part in enumerate(parts)
        for label, samples in enumerate(torch.bincount(y[part]).tolist())
        if samples
    ]


@style.styled
def draw_partition(table: Table) -> Figure:
    """One panel per partition; the area of a bubble is the number of samples, on one scale for all panels."""
    names = list(dict.fromkeys(row["partition"] for row in table))
    figure, panels = style.new_figure(len(names))
    largest = max(row["samples"] for row in table)
    clients = 1 + max(row["client"] for row in table)
    area = (style.WIDTH * 72 / max(clients, 12)) ** 2  # points: bubbles of neighbours touch at the largest number
    for place, (axes, name) in enumerate(zip(panels, names)):
        rows = [row for row in table if row["partition"] == name]
        axes.scatter(
            [row["client"] for row in rows],
            [row["label"] for row in rows],
            [area * row["samples"] / largest for row in rows],
            color=style.SEQUENCE[place % len(style.SEQUENCE)],
            alpha=0.7,
            linewidths=0,
        )
        axes.set(title=name, xlabel="client", xlim=(-1, clients))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].set_ylabel("label")
    figure.supxlabel(f"area: number of samples, at most {largest}", fontsize=6.5)
    return figure
