"""One look per method: in every panel of every figure, drawn from the committed tables; and pictures drawn again."""

import io
import math
from functools import cache
from pathlib import Path

import matplotlib as mpl
import matplotlib.lines
import matplotlib.text
import numpy as np
import pytest
from each import each
from matplotlib import colors
from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import imread

from fedtheory import compare
from fedtheory.compare import TASKS
from fedtheory.core import registry
from fedtheory.papers import EXTRAS, ITEMS, load, redraw, style
from fedtheory.papers.frontier import items as frontier
from fedtheory.papers.mud import items as mud
from fedtheory.papers.mud import tuning
from fedtheory.papers.mud.settings import NEAR, TRIED

FIGURES = Path(__file__).resolve().parent.parent / "figures"
DRAWN = {name: item for name, item in {**ITEMS, **EXTRAS}.items() if (FIGURES / f"{name}.json").exists()}
NONE = ("None", "none", "", " ")


@cache
def drawn(name: str) -> Figure:
    return DRAWN[name].draw(load(FIGURES, name)["table"])


def of_handle(handle) -> tuple[str, object, object]:
    """Colour, dash and marker of what stands in a legend; None where it has none."""
    if isinstance(handle, BarContainer):
        return colors.to_hex(handle.patches[0].get_facecolor()), None, None
    line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
    assert isinstance(line, matplotlib.lines.Line2D)
    dash = None if line.get_linestyle() in NONE else (line.get_linestyle(), str(line._unscaled_dash_pattern))
    marker = None if str(line.get_marker()) in NONE else line.get_marker()
    return colors.to_hex(line.get_color()), dash, marker


def labelled(figure: Figure) -> list[tuple[int, str, tuple]]:
    """(panel, label without n, look) of everything that a legend can name."""
    found = []
    for panel, axes in enumerate(figure.axes):
        for handle, label in zip(*axes.get_legend_handles_labels()):
            found.append((panel, label.split(" (n=")[0], of_handle(handle)))
    return found


def method(label: str) -> str | None:
    """The method that a label names."""
    name = style.ALIASES.get(label, label)
    return name if name in style.METHODS else None


def clashes(named: dict[str, set[tuple]]) -> list[str]:
    """Names with two colours, two dashes or two markers (a number in a picture is not a marker)."""
    faults = []
    for name, seen in named.items():
        for part, kind in enumerate(("colours", "dashes", "markers")):
            values = {look[part] for look in seen} - {None}
            values = {v for v in values if not (kind == "markers" and str(v).startswith("$"))}
            if len(values) > 1:
                faults.append(f"{name}: {len(values)} {kind} {sorted(map(str, values))}")
    return faults


def test_every_figure_has_a_committed_table():
    assert len(DRAWN) > 60
    assert set(ITEMS) <= set(DRAWN)


def test_every_item_has_a_title():
    assert [name for name, item in {**ITEMS, **EXTRAS}.items() if not item.title] == []


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_drawn_from_its_committed_table(name):
    """From a saved table, without training: it touches no runner. Each panel says what it shows, and shows it."""
    for axes in drawn(name).axes:
        assert axes.get_xlabel() or axes.get_xticklabels() or axes.texts
        assert axes.get_lines() or axes.patches or axes.texts


@each(name=DRAWN)
def test_a_label_has_one_look_in_all_panels(name):
    own_legends = any(axes.get_legend() for axes in drawn(name).axes)
    named: dict[str, set[tuple]] = {}
    for panel, label, look in labelled(drawn(name)):
        named.setdefault(f"{label} in panel {panel}" if own_legends else label, set()).add(look)
    assert clashes(named) == []


def test_a_method_has_one_look_in_all_figures():
    named: dict[str, set[tuple]] = {}
    for name in DRAWN:
        for _, label, look in labelled(drawn(name)):
            if method(label):
                named.setdefault(str(method(label)), set()).add(look)
    assert len(named) >= 34
    assert clashes(named) == []


@pytest.mark.parametrize("name", [name for name in DRAWN if name.removeprefix("frontier/") in TASKS["medium"]])
def test_a_frontier_names_its_front_and_the_papers_methods(name):
    """Names stand apart, and in the colour of their point."""
    figure = drawn(name)
    rows = {row["method"]: row for row in load(FIGURES, name)["table"]}
    for axes, axis in zip(figure.axes, frontier.COSTS):
        texts = [text for text in axes.texts if text.get_text() in rows]
        shown = [row for row in rows.values() if math.isfinite(row[axis]) and frontier.fault(row)[0] <= frontier.WORST]
        wanted = {row["method"] for row in frontier.front(shown, axis)}
        wanted |= {row["method"] for row in shown if row["method"] in frontier.OURS}
        assert {text.get_text() for text in texts} == wanted


@pytest.mark.parametrize("name", [name for name in DRAWN if name.removeprefix("frontier/") in TASKS["medium"]])
def test_names_in_a_frontier_stand_apart(name):
    """No name lies on another one or on a named point, and none leaves its panel."""
    figure = drawn(name)
    rows = {row["method"]: row for row in load(FIGURES, name)["table"]}
    for axes, axis in zip(figure.axes, frontier.COSTS):
        boxes = {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_text() in rows}
        dots = {name: axes.transData.transform((rows[name][axis], frontier.fault(rows[name])[0])) for name in boxes}
        for one, box in boxes.items():
            assert all(axes.bbox.contains(*corner) for corner in box.corners()), one
            small = box.padded(-0.15 * box.height)
            assert not [other for other, dot in dots.items() if small.contains(*dot)], one
            assert not [other for other, there in boxes.items() if other != one and small.overlaps(there)], one


@pytest.mark.parametrize("name", [name for name in DRAWN if name.startswith("frontier/")])
def test_a_frontier_says_what_was_run(name):
    """Data and rounds of each task stand below the panels, and no network where there is none."""
    said = " ".join(drawn(name).get_supxlabel().split())  # a line may end anywhere
    for row in load(FIGURES, name)["table"]:
        assert row["ran data"].split(", ")[0] in said
        assert str(row["ran rounds"]) in said
    assert "none" not in said


def test_the_picture_of_rates_names_few():
    figure = drawn("frontier/tuning")
    assert {label for _, label, _ in labelled(figure)} == set(frontier.TOLD)
    for axes in figure.axes:  # and the rate that each was given is in sight
        for line in axes.get_lines():
            if line.get_label() in frontier.TOLD:
                (best,) = line.get_markevery()
                assert axes.get_ylim()[0] < line.get_ydata()[best] < axes.get_ylim()[1]


@pytest.mark.parametrize("name", [f"frontier/{name}" for name in frontier.SWEEPS])
def test_a_sweep_has_a_line_for_each_method(name):
    levels, lost = drawn(name).axes
    methods = {row["method"] for row in load(FIGURES, name)["table"]}
    assert {label.get_text() for label in levels.get_yticklabels()} == methods
    marks = [mark for line in levels.get_lines() for mark in line.get_xydata()]
    heights = [height for x, height in marks if math.isfinite(x)]
    assert len(set(np.round(heights, 6))) == len(heights), "no two marks at one height"
    assert "paired by seed" in lost.get_xlabel()


def bars(axes) -> list[np.ndarray]:
    """The ends of what stands for intervals in a panel."""
    found = (bar for one in axes.collections if isinstance(one, LineCollection) for bar in one.get_segments())
    return [bar for bar in found if np.isfinite(bar).all() and len(bar)]


@pytest.mark.parametrize("name", ["mud/fig3", "mud/fig4", "mud/fig5", "mud/fig7"])
def test_a_sweep_of_fedmud_shows_paired_differences(name):
    """Bars are the intervals of differences to FedAvg, up to 100%, and no two stand at one place."""
    table = load(FIGURES, name)["table"]
    rows = [row for row in table if math.isfinite(row["gap"]) and row["method"] != "FedAvg"]
    most = {row.get("panel"): 100 - row["mean"] for row in table if row["method"] == "FedAvg"}
    ends = {(round(row["gap low"], 9), round(min(row["gap high"], most[row.get("panel")]), 9)) for row in rows}
    drawn_ends = set()
    for axes in drawn(name).axes:
        assert axes.get_ylabel().startswith("points above FedAvg (")
        spots = [round(bar[0, 0], 6) for bar in bars(axes)]
        assert len(set(spots)) == len(spots) > 0
        drawn_ends |= {(round(bar[0, 1], 9), round(bar[-1, 1], 9)) for bar in bars(axes)}
    assert drawn_ends == ends


@pytest.mark.parametrize("name", ["decomfl/fig3b", "decomfl/fig6"])
def test_curves_over_communication_leave_no_decades_empty(name):
    assert len(drawn(name).axes) == 2
    for axes in drawn(name).axes:
        low, high = axes.get_xlim()
        assert high / low < 300
        assert axes.get_ylim() == (0, 1)


@pytest.mark.parametrize(("name", "printed"), [("ssf/fig4", "52.92"), ("fedsub/fig2", "58")])
def test_what_is_printed_for_another_epoch_is_not_drawn(name, printed):
    figure = drawn(name)
    table = load(FIGURES, name)["table"]
    assert printed in figure.get_supxlabel()
    assert not any(line.get_marker() == "D" for axes in figure.axes for line in axes.get_lines())
    assert figure.axes[0].get_ylim()[1] < 1.05 * max(row["high"] for row in table)


@each(name=DRAWN)
def test_curves_of_one_panel_can_be_told_apart(name):
    """No two named curves share colour and dash, or colour and marker."""
    for panel in range(len(drawn(name).axes)):
        looks = {label: look for at, label, look in labelled(drawn(name)) if at == panel}
        for part in (1, 2):
            pairs = [(look[0], look[part]) for look in looks.values() if look[part] is not None]
            assert len(set(pairs)) == len(pairs), (panel, looks)


def test_every_method_has_a_look():
    names = {*compare.METHODS, *TRIED, *mud.CURVES}
    assert {name for name in names if style.ALIASES.get(name, name) not in style.METHODS} == set()
    assert set(style.ALIASES.values()) <= set(style.METHODS)


def test_no_two_methods_share_a_pair():
    looks = list(style.METHODS.values())
    assert len({(look.color, look.marker) for look in looks}) == len(looks) == 69
    assert len({(look.color, look.dash) for look in looks}) == len(looks)
    assert "D" not in style.MARKERS  # the paper's values


def test_looks_for_what_is_no_method():
    found = style.looks(["FedAvg", *(f"K = {k}" for k in range(40))])
    assert found["FedAvg"] == style.look("FedAvg")
    assert len({(one.color, one.dash) for one in found.values()}) == len({(o.color, o.marker) for o in found.values()})
    assert len(set(found.values())) == 41
    assert style.look("FedAvg").color not in {found[f"K = {k}"].color for k in range(6)}


def seen(rgb: np.ndarray, blind: str) -> np.ndarray:
    """CIELAB of a colour as a dichromat sees it (Machado, Oliveira, Fernandes 2009, severity 1)."""
    kinds = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(kinds[blind]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(np.maximum(xyz / np.array([0.9505, 1.0, 1.089]), 0.008856))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("blind", ["protan", "deutan", "tritan"])
def test_colours_stay_apart_for_the_colour_blind(blind):
    lab = [seen(np.array(colors.to_rgb(color)), blind) for color in style.SEQUENCE]
    apart = [float(np.linalg.norm(a - b)) for i, a in enumerate(lab) for b in lab[:i]]
    assert min(apart) > 10  # 2.3 is a just noticeable difference


class TestRedraw:
    """Pictures follow their tables."""

    @pytest.fixture
    def out(self, tmp_path) -> Path:
        for suffix in (".csv", ".json", ".png"):
            path = (tmp_path / "fedsub" / "fig1b").with_suffix(suffix)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes((FIGURES / f"fedsub/fig1b{suffix}").read_bytes())
        return tmp_path

    def test_a_picture_that_is_old_is_drawn_again(self, out, capsys):
        path = out / "fedsub" / "fig1b.png"
        before = load(out, "fedsub/fig1b", pictured=False)
        path.write_bytes(b"old")
        with pytest.raises(ValueError, match="not the picture"):
            load(out, "fedsub/fig1b")
        redraw.main(["--out", str(out)])
        assert capsys.readouterr().out == "fedsub/fig1b: drawn again\n"
        assert path.read_bytes().startswith(b"\x89PNG")
        after = load(out, "fedsub/fig1b")
        assert after.pop("files")["csv"] == before.pop("files")["csv"]
        assert repr(after) == repr(before), "the record is as it was, but for the picture's digest"

    def test_drawn_twice_is_the_same_file(self, out, capsys):
        redraw.redraw(out, "fedsub/fig1b")
        redraw.main(["--out", str(out), "fedsub/fig1b"])
        assert capsys.readouterr().out == ""

    def test_an_item_that_is_not_finished(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="reproduce mud/tuning"):
            redraw.redraw(tmp_path, "mud/tuning")

    def test_an_item_that_is_none(self, tmp_path, capsys):
        with pytest.raises(SystemExit):
            redraw.main(["--out", str(tmp_path), "mud/tunnig"])
        assert "no item is called 'mud/tunnig'" in capsys.readouterr().err

    def test_committed_pictures_show_their_tables_in_this_look(self):
        """Decoded, without matplotlib's version in the way: the size and the share of pixels that differ."""
        for name in ("mud/tuning", "fedsub/fig1b"):
            fresh = imread(io.BytesIO(style.save_bytes(drawn(name))), format="png")
            there = imread(FIGURES / f"{name}.png")
            assert fresh.shape == there.shape, name
            assert float(np.mean(np.abs(fresh - there) > 0.1)) < 0.002, name


@pytest.mark.parametrize(("name", "tried", "beyond"), [("mud/tuning", TRIED, 0), ("mud/tuning_fmnist", NEAR, 7)])
def test_a_tuning_shows_what_runs_and_what_is_beyond_the_budget(name, tried, beyond):
    """A ring around the best of the budget in every panel; hollow points are beyond it."""
    table = load(FIGURES, name)["table"]
    taken, hollow = tuning.best(tuning.within(table, tried)), 0
    for axes in drawn(name).axes:
        (ring,) = (line for line in axes.get_lines() if line.get_markersize() == 7)
        assert ring.get_xdata()[0] == taken[axes.get_title()][0]
        hollow += sum(len(line.get_xdata()) for line in axes.get_lines() if line.get_markerfacecolor() == "white")
    assert hollow == beyond


def test_rates_at_which_a_run_diverged_have_a_cross():
    table = load(FIGURES, "ssf/table1")["table"]
    (axes,) = drawn("ssf/table1").axes
    crosses = sorted(x for line in axes.get_lines() if line.get_marker() == "x" for x in line.get_xdata())
    assert crosses == sorted(row["lr"] for row in table if math.isnan(row["mean"]))
    assert len(crosses) == 3


def test_a_best_step_at_the_end_of_its_grid_is_hollow():
    table = load(FIGURES, "use/rank")["table"]
    points = [line for axes in drawn("use/rank").axes for line in axes.get_lines()]
    hollow = [x for line in points if line.get_markerfacecolor() == "white" for x in line.get_xdata()]
    assert len(hollow) == sum(row["edge"] for row in table) > 0


def test_places_of_tasks_with_unlike_many_methods_are_shares():
    """The best of a task stands at 0 and the last at 100, however many run on it; bars reach no further."""
    table = load(FIGURES, "frontier/ranks")["table"]
    axes, rest = frontier.draw_ranks(table).axes  # which show halves of the methods
    assert len(axes.get_lines()) == len(rest.get_lines())
    assert max(axes.get_ylim()) - min(rest.get_ylim()) == pytest.approx(0.1)
    tasks = list(dict.fromkeys(row["task"] for row in table))
    points = [line for line in axes.get_lines() if " methods)" in str(line.get_label())]
    assert len(points) == len(axes.collections) == len(tasks)
    for line, bars, task in zip(points, axes.collections, tasks):
        rows = [row for row in table if row["task"] == task]
        assert sorted(line.get_xdata()) == pytest.approx([100 * k / (len(rows) - 1) for k in range(len(rows))])
        ends = [(segment[0][0], segment[-1][0]) for segment in bars.get_segments()]
        assert ends == [
            pytest.approx([100 * (row[end] - 1) / (len(rows) - 1) for end in ("first", "final")]) for row in rows
        ]


@pytest.mark.parametrize("names", [("FedAvg",), ("FedProx",), ("FedAvg", "mine"), ("mine",)])
@pytest.mark.parametrize("item", ["tuning", "ranks", "precision", "quadratics"])
def test_a_comparison_of_few_methods_is_drawn(item, names):
    """Of one, of one of another distribution, of none that is named among all; every one has its name."""
    rows = [row for row in load(FIGURES, f"frontier/{item}")["table"] if row["method"] in (names[0], "SCAFFOLD")]
    table = [row | {"method": "mine" if row["method"] == "SCAFFOLD" else row["method"]} for row in rows]
    table = [row for row in table if row["method"] in names]
    draw = frontier.item(f"frontier/{item}", "").draw
    figure = draw(table)
    words = {text.get_text() for text in figure.findobj(matplotlib.text.Text)}
    assert item == "precision" or all(any(name in word for word in words) for name in names)


def test_a_method_of_another_distribution_is_named_in_a_comparison(monkeypatch):
    """Wherever it lies; without one nothing is said of others."""
    table = load(FIGURES, "frontier/quadratics")["table"]
    words = lambda figure: [text.get_text() for text in figure.findobj(matplotlib.text.Text)]
    before = words(drawn("frontier/quadratics"))
    grey = next(row["method"] for row in table if not any(row["method"] in word for word in before))
    assert not any("own, and others'" in word for word in before)
    monkeypatch.setattr(registry, "others_methods", lambda: [grey])
    found = words(frontier.draw_task(table))
    assert grey in found
    assert any("own, and others'" in word for word in found)


def test_a_comparison_in_which_all_diverged_is_drawn():
    """Nothing is finite, or an error is 0 exactly, which has no logarithm."""
    tuning = [row for row in load(FIGURES, "frontier/tuning")["table"] if row["task"] == "quadratics"]
    frontier.draw_tuning([row | {"value": math.inf} for row in tuning])
    frontier.draw_tuning([row | {"value": 0.0} for row in tuning])
    task = load(FIGURES, "frontier/quadratics")["table"]
    lost = {"quality": math.nan, "low": math.nan, "high": math.nan, "rounds": math.inf}
    words = [text.get_text() for text in frontier.draw_task([row | lost for row in task]).findobj(matplotlib.text.Text)]
    assert any("not shown, diverged" in word for word in words)
    runs = [{"columns": {"error": [value] * 3}, "diverged": None} for value in (0.0, 1e-20)]
    assert frontier.quality(TASKS["quick"]["quadratics"], runs)[0] == pytest.approx(1e-160)
    assert math.isfinite(frontier.loss(TASKS["quick"]["quadratics"], *runs))


def test_a_curve_of_many_records_has_few_bars():
    """Figure 4 of DeComFL has a hundred records of four curves, each of them with ten bars at most."""
    table = load(FIGURES, "decomfl/fig4")["table"]
    for axes in ITEMS["decomfl/fig4"].draw(table).axes[:3]:
        counts = [len(one[2][0].get_segments()) for one in axes.containers if isinstance(one, ErrorbarContainer)]
        assert len(counts) == 4
        assert all(4 < count <= 10 for count in counts)


HOSTILE = """\
text.usetex: True
font.family: serif
font.size: 20
axes.facecolor: black
axes.prop_cycle: cycler("color", ["r"])
axes.xmargin: 0.4
axes.formatter.use_locale: True
axes.unicode_minus: False
figure.facecolor: gray
figure.constrained_layout.w_pad: 1.0
grid.linestyle: :
image.cmap: gray
legend.loc: lower left
lines.linewidth: 9
lines.markersize: 20
mathtext.fontset: stix
path.simplify: False
savefig.bbox: tight
savefig.transparent: True
xtick.direction: in
xtick.minor.visible: True
"""


def test_a_users_settings_stay_out_of_the_pictures(tmp_path):
    """What a matplotlibrc says changes no byte of a picture: of an item, and of what a notebook shows."""
    name = "decomfl/fig2b"
    item, table = DRAWN[name], load(FIGURES, name)["table"]

    def pictures() -> tuple[bytes, bytes]:
        figure = style.with_caption(item.draw(table), table)
        return style.save_bytes(figure), style.few_colours(figure, 60)

    wanted = pictures()
    (tmp_path / "matplotlibrc").write_text(HOSTILE)
    with mpl.rc_context(fname=tmp_path / "matplotlibrc"):
        assert mpl.rcParams["text.usetex"]
        assert pictures() == wanted
