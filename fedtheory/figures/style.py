"""One look for every figure: print width, colour-blind safe, confidence bands with n in the legend."""

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.core.records import ran_words

WIDTH = 3.5  # inches: one column of a two-column paper

# Okabe-Ito: told apart with any common colour blindness. Markers and dashes tell methods of one colour apart, and all
# of them in grey. The hollow diamond is no method's marker: it is the paper's value.
SEQUENCE = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"]
MARKERS = "os^vPX*h"
DASHES: list[Any] = [
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (8, 2.5)),
    (0, (3, 1, 3, 1, 1, 1)),
    (0, (1, 3)),
]
STYLES = ["-", "--", "-.", ":"]


class Look(NamedTuple):
    """How one curve is drawn. Two methods that share a colour share neither dash nor marker."""

    color: str
    dash: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """For `plot`: colour and dash."""
        return {"color": self.color, "linestyle": self.dash}


# A look is a property of the method, in every figure: one row per colour, in the order of MARKERS and DASHES.
METHODS: dict[str, Look] = {
    name: Look(color, dash, marker)
    for color, names in zip(
        SEQUENCE,
        (
            ("SCAFFOLD", "our-P=I", "FedLMT", "FetchSGD", "DeComFL", "FedLoRU", "FLSS"),
            ("FedHM", "FedAvg", "DGC", "FedMUD+F", "FedMUD+BKD+F", "our-RD, printed"),
            ("SSF", "our-SS", "FedPara", "FedProx", "STC", "FlexLoRA", "FedCom"),
            ("FedMUD", "FedBAT", "FedSub", "our-CD", "FedDyn", "TopK, 5%", "Proj gradient"),
            ("FedDC", "EF21-P", "FedMUD+BKD", "LBGM", "ProjectedFedAvg", "FedGen", "our-RD", "FedFTG"),
            ("Top-k", "FedMUD+AAD", "MOON", "FedAvg-CD", "Sign+EF+FLSS", "our-SS, not rotated", "Proj both", "FedZO"),
            ("SignSGD", "FedNTD", "FedMUD+BKD+AAD", "Proj update", "BAFFLE", "TopK, 1%", "our-SS, printed"),
        ),
    )
    for name, dash, marker in zip(names, DASHES, MARKERS)
}
ALIASES = {  # what a paper calls a method, or one setting of it that stands for the method
    "Full-SCAFFOLD": "SCAFFOLD",
    "Full-FedAvg": "FedAvg",
    "Moon": "MOON",
    "Fetchsgd": "FetchSGD",
    "Signsgd+EF": "SignSGD",
    "FedAvg+FLSS": "FLSS",
    "FedCom, 8 bits": "FedCom",
    "TopK, 10%": "Top-k",
    "P=I": "our-P=I",
    "our-CD, printed": "our-CD",
    "our-SS, form sums": "our-SS",
}

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


def new_figure(
    panels: int = 1, height: float = 2.6, columns: float | None = None, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Panels in one row or several, in the package's style, made without pyplot's global state.

    Args:
        panels: how many.
        height: inches, of all rows together.
        columns: width in print columns; default one per panel.
        rows: into which the panels are divided, as many in each.
    """
    figure = Figure(figsize=(WIDTH * (columns or panels), height), layout="constrained")
    axes = figure.subplots(rows, panels // rows, squeeze=False)
    return figure, list(axes.flat)


def look(name: str) -> Look:
    """How a method is drawn, in every figure.

    Raises KeyError for a name that is neither in METHODS nor in ALIASES: settings and networks get theirs by `looks`.
    """
    return METHODS[ALIASES.get(name, name)]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Looks for everything in one figure: a method's own, and for what is no method the first ones that are free.

    No two are alike in colour and dash, or in colour and marker. Colours of the methods in the figure are taken last.
    """
    names = list(dict.fromkeys(names))
    own = {name: look(name) for name in names if ALIASES.get(name, name) in METHODS}
    taken = set(own.values())
    free = [color for color in SEQUENCE if color not in {one.color for one in taken}]
    rest = [color for color in SEQUENCE if color not in free]
    every = (
        Look(color, DASHES[level], MARKERS[level])
        for colors in (free, rest)
        for turn in range(len(DASHES))
        for place, color in enumerate(colors)
        for level in [(place + turn) % len(DASHES)]
    )
    others = (one for one in every if one not in taken)
    return {name: own[name] if name in own else next(others) for name in names}


def band(
    axes: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    name: str,
    n: int,
    how: Look | None = None,
) -> None:
    """A curve with its confidence band and n in the legend; of a method, unless `how` says how it is drawn."""
    how = how or look(name)
    axes.plot(x, mean, **how.line, label=f"{name} (n={n})")
    if n > 1:
        axes.fill_between(x, low, high, color=how.color, alpha=0.18, linewidth=0)


def paper_mark(axes: Axes, x: float, value: float, name: str) -> None:
    """The value that the paper prints: a hollow diamond in the method's colour at the right edge."""
    axes.plot([x], [value], marker="D", markersize=4.5, markerfacecolor="none", color=look(name).color, clip_on=False)


def legend_above(figure: Figure, columns: int) -> None:
    """One legend for all panels, above them, out of the data's way."""
    seen: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    figure.legend(list(seen.values()), list(seen), loc="outside upper center", ncols=columns)


def caption(figure: Figure, table: Sequence[dict[str, Any]]) -> None:
    """What our runs are, below the panels, from the rows of the table."""
    lost = "\nmissing points: a run diverged" if any(math.isnan(row.get("mean", 0.0)) for row in table) else ""
    words = textwrap.fill(f"ours: {ran_words(table)}", int(20 * figure.get_figwidth()))
    figure.supxlabel(f"{words}{lost}", fontsize=6)


def save_bytes(figure: Figure) -> bytes:
    """The figure as PNG bytes, without a date, so that the same figure is the same file."""
    stream = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def name_points(axes: Axes, points: Sequence[tuple[str, float, float]], looks: Mapping[str, Look]) -> None:
    """Names beside points, to the right and apart from each other, with a thin line where one had to move.

    Args:
        axes: of a figure that has been laid out.
        points: name, x, y.
        looks: of the names.
    """
    scale = 72 / axes.figure.dpi  # points of print in a pixel
    spots = [(name, x, y, *(axes.transData.transform((x, y)) * scale)) for name, x, y in points]
    bottom, top = (edge * scale for edge in (axes.bbox.y0, axes.bbox.y1))
    taken: list[tuple[float, float, float]] = []  # left, right, height of names that are placed
    for name, x, y, left, height in sorted(spots, key=lambda spot: (spot[4], spot[3])):
        left, right, at = left + 5, left + 5 + 3.1 * len(name), max(height, bottom + 4)
        dots = [(px - 3, px + 3, py) for *_, px, py in spots if (px, py) != (left - 5, height)]
        while any(abs(at - other) < 5.8 and left < end and start < right for start, end, other in [*taken, *dots]):
            at += 0.5
        at = at if at < top - 3 else height
        taken.append((left, right, at))
        moved = {"arrowstyle": "-", "linewidth": 0.3, "color": looks[name].color} if abs(at - height) > 3 else None
        offset = (5, at - height)
        axes.annotate(
            name, (x, y), offset, textcoords="offset points", fontsize=5.4, va="center", color=looks[name].color,
            arrowprops=moved, zorder=4,
        )  # fmt: skip
