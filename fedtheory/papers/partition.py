"""Who holds what: the samples of every label that each client has."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedtheory.papers import style
from fedtheory.running.records import Table


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
    """One panel per partition: clients to the right, labels up, samples as colour on one scale for all panels."""
    names = list(dict.fromkeys(row["partition"] for row in table))
    clients, labels = (1 + max(row[name] for row in table) for name in ("client", "label"))
    figure, panels = style.new_figure(len(names))
    scale = PowerNorm(0.5, 0, max(row["samples"] for row in table))  # by the root: small holdings are seen
    for axes, name in zip(panels, names):
        held = np.zeros((labels, clients), np.int64)
        for row in table:
            if row["partition"] == name:
                held[row["label"], row["client"]] = row["samples"]
        axes.imshow(held, cmap="Blues", norm=scale, origin="lower", aspect="auto", interpolation="nearest")
        axes.set(title=name, xlabel="client")
        axes.grid(False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].set_ylabel("label")
    figure.colorbar(ScalarMappable(scale, "Blues"), ax=panels, label="samples")
    return figure
