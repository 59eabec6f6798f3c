"""One look for every figure: print width, colour-blind safe, confidence bands with n in the legend."""

import io
import math
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 3.5  # inches: one column of a two-column paper

# Okabe-Ito: told apart with any common colour blindness; line styles tell them apart in grey.
LOOK: dict[str, tuple[str, str]] = {
    "SCAFFOLD": ("#0072B2", "-"),
    "Full-SCAFFOLD": ("#0072B2", "-"),
    "Full-FedAvg": ("#E69F00", "--"),
    "SSF": ("#009E73", "-"),
    "FedSub": ("#D55E00", "-."),
    "our-CD": ("#D55E00", "-"),
    "our-SS": ("#009E73", "--"),
    "our-RD": ("#CC79A7", "-."),
    "our-P=I": ("#0072B2", "-"),
    "FedAvg": ("#E69F00", "--"),
    "FedAvg-CD": ("#56B4E9", "-."),
}
SEQUENCE = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"]
STYLES = ["-", "--", "-.", ":"]

SETTINGS: dict[Any, Any] = {
    "figure.figsize": (WIDTH, 2.6),
    "figure.dpi": 120,
    "savefig.dpi": 220,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "figure.constrained_layout.use": True,
}


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A drawing function in the package's style, whatever the caller's settings are."""

    @wraps(draw)
    def wrapped(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(panels: int = 1, height: float = 2.6, columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """Panels in one row, in the package's style, made without pyplot's global state.

    Args:
        panels: how many.
        height: inches.
        columns: width in print columns; default one per panel.
    """
    figure = Figure(figsize=(WIDTH * (columns or panels), height), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)
    return figure, list(axes.flat)


def look(name: str, place: int = 0) -> tuple[str, str]:
    """Colour and line style of a method; of the place in the sequence for other names."""
    return LOOK.get(name, (SEQUENCE[place % len(SEQUENCE)], STYLES[place % len(STYLES)]))


def band(
    axes: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    name: str,
    n: int,
    place: int = 0,
) -> None:
    """A curve with its confidence band and n in the legend."""
    color, style = look(name, place)
    axes.plot(x, mean, style, color=color, label=f"{name} (n={n})")
    if n > 1:
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def paper_mark(axes: Axes, x: float, value: float, name: str) -> None:
    """The value that the paper prints: a hollow diamond in the method's colour at the right edge."""
    axes.plot([x], [value], marker="D", markersize=4.5, markerfacecolor="none", color=look(name)[0], clip_on=False)


def legend_above(figure: Figure, columns: int) -> None:
    """One legend for all panels, above them, out of the data's way."""
    seen: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    figure.legend(list(seen.values()), list(seen), loc="outside upper center", ncols=columns)


def caption(figure: Figure, table: Sequence[dict[str, Any]]) -> None:
    """What our runs are, below the panels: the table's column "runs"."""
    lost = "\nmissing points: a run diverged" if any(math.isnan(row.get("mean", 0.0)) for row in table) else ""
    words = textwrap.fill(f"ours: {table[0]['runs']}", int(20 * figure.get_figwidth()))
    figure.supxlabel(f"{words}{lost}", fontsize=6)


def save_bytes(figure: Figure) -> bytes:
    """The figure as PNG bytes, without a date, so that the same figure is the same file."""
    stream = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
