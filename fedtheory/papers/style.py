"""One look for every figure: print width, colour-blind safe, confidence bands with n in the legend."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.style import context
from matplotlib.text import Text
from PIL import Image

from fedtheory.running.records import ran_words

WIDTH = 3.5  # inches: one column of a two-column paper

# Okabe-Ito: told apart with any common colour blindness. Markers and dashes tell methods of one colour apart, and all
# of them in grey. The hollow diamond is no method's marker: it is the paper's value.
SEQUENCE = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"]
MARKERS = "os^vPX*h<>p8"
DASHES: list[Any] = [
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (8, 2.5)),
    (0, (3, 1, 3, 1, 1, 1)),
    (0, (1, 3)),
    (0, (12, 2)),
    (0, (6, 1, 1, 1)),
    (0, (2, 1)),
    (0, (4, 2, 4, 2, 1, 2)),
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
OLDER = (
    ("SCAFFOLD", "our-P=I", "FedLMT", "FetchSGD", "DeComFL", "FedLoRU", "FLSS"),
    ("FedHM", "FedAvg", "DGC", "FedMUD+F", "FedMUD+BKD+F", "our-RD, printed"),
    ("SSF", "our-SS", "FedPara", "FedProx", "STC", "FlexLoRA", "FedCom"),
    ("FedMUD", "FedBAT", "FedSub", "our-CD", "FedDyn", "TopK, 5%", "Proj gradient"),
    ("FedDC", "EF21-P", "FedMUD+BKD", "LBGM", "ProjectedFedAvg", "FedGen", "our-RD", "FedFTG"),
    ("Top-k", "FedMUD+AAD", "MOON", "FedAvg-CD", "Sign+EF+FLSS", "our-SS, not rotated", "Proj both", "FedZO"),
    ("SignSGD", "FedNTD", "FedMUD+BKD+AAD", "Proj update", "BAFFLE", "TopK, 1%", "our-SS, printed"),
)
NEWER = (
    ("Scaffnew", "RoLoRA", "TAMUNA"),
    ("SCALLION", "SCAFCOM", "FedKRSO"),
    ("FedCM", "FedEx-LoRA"),
    ("MimeLite", "FLoRA", "FSLoRA"),
    ("FFA-LoRA", "HiSo", "Fed-SB"),
    ("CompressedScaffnew", "Ferret"),
    ("FedKSeed", "FedSLoP", "FedBuff"),
)
METHODS: dict[str, Look] = {
    name: Look(color, dash, marker)
    for color, older, newer in zip(SEQUENCE, OLDER, NEWER)
    for name, dash, marker in zip(older + newer, DASHES, MARKERS)
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
    "our-CD, public code": "our-SS",
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


OURS: Any = ["default", SETTINGS]  # matplotlib's own settings and ours: nothing of a user's matplotlibrc


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A drawing function in the package's style, whatever the caller's settings are."""

    @wraps(draw)
    def wrapped(*args: Any, **kwargs: Any) -> Figure:
        with context(OURS):
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


def bars(
    axes: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    name: str,
    n: int,
    how: Look | None = None,
    turn: tuple[int, int] = (0, 1),
    within: tuple[float, float] = (-math.inf, math.inf),
    label: str | None = None,
    **line: Any,
) -> None:
    """A curve with its intervals as bars, where bands would hide each other.

    Args:
        axes, x, mean, low, high, name, n, how: as of `band`.
        turn: (first, step) of the points that have a bar: curves take turns.
        within: what values there can be; a bar ends there.
        label: in the legend, in the place of name and n.
        line: further keywords of the line.
    """
    how, (least, most) = how or look(name), within
    reach = [
        [max(middle - max(end, least), 0) for middle, end in zip(mean, low)],
        [max(min(end, most) - middle, 0) for middle, end in zip(mean, high)],
    ]
    small: dict[str, Any] = {"elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7, "errorevery": turn}
    axes.errorbar(x, mean, reach if n > 1 else None, **how.line, **small, **line, label=label or f"{name} (n={n})")


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


def caption(figure: Figure, table: Sequence[dict[str, Any]], *more: str, apart: str = "") -> None:
    """What our runs are, below the panels, from the rows of the table.

    Args:
        figure: of the panels.
        table: its rows.
        more: lines below.
        apart: a column; what was run is said for each of its values.
    """
    parts = [[row for row in table if row[apart] == value] for value in _column(table, apart)] if apart else [table]
    said = "; ".join(ran_words(rows).replace("none on ", "") for rows in parts)
    for old, new in RAN:
        said = re.sub(old, new, said)
    value = lambda row: row.get("mean", row.get("accuracy", 0.0))
    gone = any(math.isnan(value(row)) for row in table) and not any("point" in line for line in more)
    lost = ["missing points: a run diverged"] * gone
    spread = [] if any("bars" in line for line in more) else spread_words(table)
    lines = (f"ours: {said}", *lost, *spread, *more, *explained(figure))
    lines = [textwrap.fill(line, int(20 * figure.get_figwidth())) for line in lines]
    figure.supxlabel("\n".join(lines), fontsize=6)


RAN = ((r"\blinear on ", "linear model on "), (r"\blabels (\d+)", r"\1 labels a client"), ("dirichlet", "Dirichlet"))
NAMES = {  # what only a paper's reader knows, and its words
    r"our-CD\b": "our-CD: FedSub along random coordinates",
    r"our-SS\b": "our-SS: FedSub along uniform directions",
    r"our-RD\b": "our-RD: FedSub along Gaussian directions",
    "our-P=I": "our-P=I: FedSub in the full space",
    r"FedAvg-CD\b": "FedAvg-CD: FedSub without dual variables",
    "Full-": "Full-: in the full space",
    r"\bN1\b": "N1: labels by a Dirichlet distribution",
    r"\bN2\b": "N2: three labels a client",
    r"\bIID\b": "IID: images at random",
    r"\+AAD\b": "AAD: factors that average exactly",
    r"\+BKD\b": "BKD: Kronecker blocks",
    r"\+F\b": "F: one factor frozen",
}


def explained(figure: Figure) -> list[str]:
    """The words of the names in a figure's titles, labels and ticks that only a paper's reader knows."""
    said = [text.get_text() for text in _texts(figure)]
    said += [label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]]
    found = [words for name, words in NAMES.items() if any(re.search(name, one) for one in said)]
    return ["; ".join(found)] if found else []


def _texts(artist: Artist) -> Iterator[Text]:
    """Every text of an artist, as `findobj` lists them, without making the ticks that have none yet."""
    if isinstance(artist, Text):
        yield artist
    if isinstance(artist, Axis):
        parts = [artist.label, artist.offsetText, *artist.majorTicks, *artist.minorTicks]
    else:
        parts = artist.get_children()
    for part in parts:
        yield from _texts(part)


def spread_words(table: Sequence[dict[str, Any]]) -> list[str]:
    """What bands and bars are, where rows have intervals over more than one seed."""
    counts = sorted({row["seeds"] for row in table if row.get("seeds", 0) > 1})
    if not counts or not any(name.endswith("low") for name in table[0]):
        return []
    return [f"bands and bars: 95% intervals over {' or '.join(map(str, counts))} seeds"]


CUT = "lower edges of bands: not below a tenth of the mean"


def _column(table: Sequence[dict[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in table))


def with_caption(figure: Figure, table: Sequence[dict[str, Any]]) -> Figure:
    """The figure, with what was run below it unless it says so itself."""
    if not figure.get_supxlabel() and ran_words(table):
        with context(OURS):
            caption(figure, table)
    return figure


def below(figure: Figure, said: str) -> Figure:
    """The figure, with one more sentence under what was run."""
    text = textwrap.fill(said, int(20 * figure.get_figwidth()))
    with context(OURS):
        figure.supxlabel("\n".join(filter(None, [figure.get_supxlabel(), text])), fontsize=6)
    return figure


def save_bytes(figure: Figure) -> bytes:
    """The figure as PNG bytes, without a date, so that the same figure is the same file."""
    stream, dpi = io.BytesIO(), SETTINGS["savefig.dpi"]
    Image.fromarray(_pixels(figure, dpi)).save(stream, "PNG", dpi=(dpi, dpi))
    return stream.getvalue()


def _pixels(figure: Figure, dpi: float) -> np.ndarray:
    """The figure in red, green, blue and alpha, drawn once, where `savefig` draws it twice."""
    canvas, before = FigureCanvasAgg(figure), figure.dpi
    figure.dpi = dpi
    with context(OURS):
        canvas.draw()
    found, figure.dpi = np.asarray(canvas.buffer_rgba()), before
    return found


def few_colours(figure: Figure, dpi: int, colours: int = 256) -> bytes:
    """The figure as PNG with a palette: a third of the bytes, and the eye sees no difference.

    The most frequent colours stay as they are: a pale band keeps its hue, which tells whose band it is. The others
    share what is left of the palette.
    """
    stream, picture = io.BytesIO(), _pixels(figure, dpi)[..., :3]
    packed = picture.astype(np.int64) @ (1 << 16, 1 << 8, 1)
    found, where, counts = np.unique(packed, return_inverse=True, return_counts=True)
    exact = np.stack([found >> 16, found >> 8 & 255, found & 255], -1).astype(np.float64)
    often = np.argsort(-counts, kind="stable")
    palette = exact[often[:colours]]
    if len(found) > colours:
        others = np.repeat(exact[often[colours // 8 :]], counts[often[colours // 8 :]], axis=0).astype(np.uint8)[None]
        few = Image.fromarray(others).quantize(
            colours - colours // 8, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
        shared = np.array(few.getpalette()).reshape(-1, 3)[np.unique(np.asarray(few))]
        palette = np.concatenate([exact[often[: colours // 8]], shared])
    nearest = (np.square(palette).sum(-1) - 2 * exact @ palette.T).argmin(1).astype(np.uint8)
    few = Image.fromarray(nearest[where].reshape(packed.shape), "P")
    few.putpalette(palette.astype(np.uint8).tobytes())
    few.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def lay_out(figure: Figure) -> None:
    """Settle where the panels stand and where their points lie, as drawing would."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def name_points(axes: Axes, points: Sequence[tuple[str, float, float]], looks: Mapping[str, Look]) -> None:
    """Names near points where there is room, and a thin line from each that had to go further.

    Room is where the axes have nothing else: no other name, point, line or bar. A name that stands badly moves until
    all stand, each as well as the others let it.

    Args:
        axes: of a figure that has been laid out.
        points: name, x, y.
        looks: of the names.
    """
    scale = axes.figure.dpi / 72  # pixels in a point of print
    there, inks = axes.transData.transform([(x, y) for _, x, y in points]), _inked(axes)
    texts = [
        axes.annotate(
            name, (x, y), (0, 0), textcoords="offset points", fontsize=5.4, ha="center", va="center", zorder=5,
            color=looks[name].color, path_effects=[withStroke(linewidth=1.2, foreground="white")], in_layout=False,
        )
        for name, x, y in points
    ]  # fmt: skip
    boxes = [text.get_window_extent() for text in texts]
    sizes = [np.array([box.width, 0.8 * box.height]) for box in boxes]
    places = [there[at] + _around(size, scale) for at, size in enumerate(sizes)]
    chosen: list[int] = [0] * len(points)
    own = [_price(place, size, spot, inks, axes, scale) for place, size, spot in zip(places, sizes, there)]

    @cache
    def beside(at: int, other: int, chosen: int) -> tuple[np.ndarray, ...]:
        """What each place of a name costs beside another name: by their overlap, and by the lines to both."""
        place, wide = places[other][chosen], sizes[other]
        gap = np.abs(places[at] - place) - (sizes[at] + wide) / 2 < scale
        inside = _inside(places[at], sizes[at], np.linspace(there[other], place, 20))
        return 400 * (gap[:, 0] & gap[:, 1]), 20 * inside, 20 * _crossed(there[at], places[at], place, wide)

    for _ in range(4):
        before = list(chosen)
        for at in range(len(sizes)):
            price = own[at].copy()
            for other in range(len(sizes)):
                for part in beside(at, other, chosen[other]) if other != at else ():
                    price += part
            chosen[at] = int(np.argmin(price))
        if chosen == before:
            break
    for text, at in zip(texts, range(len(points))):
        offset = (places[at][chosen[at]] - there[at]) / scale
        text.set_position(tuple(offset))
        reach = np.maximum(np.abs(offset) - sizes[at] / scale / 2, 0)  # from the point to the name's edge
        if np.hypot(*reach) > 5:
            near = np.clip(0, offset - sizes[at] / scale / 2, offset + sizes[at] / scale / 2)
            axes.annotate(
                "", points[at][1:], tuple(near), textcoords="offset points", zorder=4, in_layout=False,
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": text.get_color(), "shrinkA": 0, "shrinkB": 1},
            )  # fmt: skip


def _inked(axes: Axes) -> np.ndarray:
    """Where points, lines and bars are, in pixels: lines as dots two pixels apart."""
    bars = [part for one in axes.collections if isinstance(one, LineCollection) for part in one.get_segments()]
    curves = [np.asarray(line.get_xydata(), float) for line in axes.get_lines()]
    dots: list[np.ndarray] = []
    for curve in (*curves, *bars):
        ends = axes.transData.transform(curve)
        for start, end in pairwise(ends):
            dots.append(np.linspace(start, end, 2 + int(np.hypot(*(end - start)) / 2)))
        dots += [ends] * 8 if len(ends) == 1 else []  # a point counts as much as a line through a name
    return np.concatenate(dots)


def _around(size: np.ndarray, scale: float) -> np.ndarray:
    """Centres of a name around its point, the best first: right, left, above, below, and further out."""
    angles = np.arange(24) * math.pi / 12
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    near = [np.clip(turns * 3, -1, 1) * (size / 2 + 4 * scale)]
    far = [turns * away * scale + np.sign(np.round(turns, 6)) * size / 2 for away in (10, 16, 24, 34, 46, 60)]
    return np.concatenate([*near, *far])


def _price(
    places: np.ndarray, size: np.ndarray, spot: np.ndarray, inks: np.ndarray, axes: Axes, scale: float
) -> np.ndarray:
    """How bad each place is for a name: what lies under it, how far it is, and whether it leaves the panel."""
    half = size / (2, 1.6)  # of its whole height
    out = (places - half < axes.bbox.min).any(axis=1) | (places + half > axes.bbox.max).any(axis=1)
    far = np.hypot(*(np.maximum(np.abs(places - spot) - size / 2, 0) / scale).T)
    left = 1.5 * (places[:, 0] < spot[0] - 1)
    return _inside(places, size + 2 * scale, inks) + 0.35 * far + left + 1000 * out


def _inside(places: np.ndarray, size: np.ndarray, dots: np.ndarray) -> np.ndarray:
    """How many dots lie under a name of this size at each place."""
    beside, above = (np.abs(places[:, at, None] - dots[:, at]) < size[at] / 2 for at in (0, 1))
    return np.count_nonzero(beside & above, axis=1)


def _crossed(spot: np.ndarray, places: np.ndarray, centre: np.ndarray, size: np.ndarray) -> np.ndarray:
    """How much of the line from a point to each place lies under another name."""
    lines = spot + np.linspace(0, 1, 20)[:, None, None] * (places - spot)
    under = np.abs(lines - centre) < size / 2
    return np.count_nonzero(under[..., 0] & under[..., 1], axis=0)
