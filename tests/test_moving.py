"""Pictures that move: names, frames that differ on axes that stay, the first frame, errors, live sliders."""

import contextlib
import io
import json
import re
import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
import torch
from matplotlib.figure import Figure

from fedtheory.course import describe, moving
from fedtheory.course.moving import PICTURES, frame, local, subspaces
from fedtheory.problems.quadratic import Quadratic
from fedtheory.theory.letters import letters


@cache
def remembered(name: str) -> frame.Moving:
    """A picture that computes the numbers of a setting once; each frame gets rows of its own."""
    picture = PICTURES[name]
    compute = cache(picture.compute)
    return replace(picture, compute=lambda **setting: [dict(row) for row in compute(**setting)])


def along(picture: frame.Moving):
    """Each slider at its start, its first value and its last; `make book-check` looks at all."""
    for name, values in picture.sliders.items():
        chosen = dict.fromkeys([picture.first[name], values[0], values[-1]])
        yield name, [picture.first | {name: value} for value in chosen]


def axes_of(figure: Figure) -> list[tuple]:
    """What must not move: places in the figure, limits, scales, ticks, names of the axes."""
    return [
        (axes.get_xlim(), axes.get_ylim(), axes.get_xscale(), axes.get_yscale(), axes.get_xlabel(), axes.get_ylabel())
        for axes in figure.axes
    ]


def drawn(figure: Figure) -> str:
    """All that a figure shows as numbers: lines, pictures, titles."""
    parts = [[line.get_xydata().tolist() for line in axes.get_lines()] for axes in figure.axes]
    maps = [[image.get_array().tolist() for image in axes.get_images()] for axes in figure.axes]
    return json.dumps([parts, maps, [axes.get_title() for axes in figure.axes]])


def test_there_are_at_least_eight_and_each_says_what_it_is():
    assert len(PICTURES) >= 8
    for name, picture in PICTURES.items():
        assert name == picture.name
        assert re.fullmatch("[a-z]+", name)
        assert 1 <= picture.look.count(". ") + 1 <= 3
        assert set(picture.start) | set(picture.says) <= set(picture.sliders)
        assert all(len(set(values)) == len(values) > 1 for values in picture.sliders.values())
        assert len({frame.word(value) for values in picture.sliders.values() for value in values}) > 1
        assert 12 <= sum(1 for _ in picture.settings()) <= 80


@pytest.mark.parametrize("name", PICTURES)
def test_frames_differ_and_their_axes_stay(name):
    picture = remembered(name)
    first = picture.frame()
    for parameter, (_, *others) in along(picture):
        figures = [first, *(picture.frame(**setting) for setting in others)]
        for figure in figures:
            assert axes_of(figure) == axes_of(first), parameter
            assert figure.get_size_inches().tolist() == first.get_size_inches().tolist()
        assert len({drawn(figure) for figure in figures}) == len(figures), f"{parameter}: frames are alike"


def test_axes_that_move_are_seen():
    small, large = Figure(), Figure()
    small.subplots().plot([0, 1])
    large.subplots().plot([0, 2])
    assert axes_of(small) != axes_of(large)
    assert drawn(small) != drawn(large)


@pytest.mark.parametrize("name", PICTURES)
def test_panels_stay_where_they_are(name):
    """Also once the figure is laid out: legends and titles take the same room in the outermost frames."""
    picture = remembered(name)
    places = []
    for end in (0, -1):
        figure = picture.frame(**{parameter: values[end] for parameter, values in picture.sliders.items()})
        figure.draw_without_rendering()
        places.append([axes.get_position().bounds for axes in figure.axes])
    for one, other in zip(*places):
        assert one == pytest.approx(other, abs=0.004)


@pytest.mark.parametrize("name", PICTURES)
def test_a_notebook_shows_the_first_frame_in_words(name, monkeypatch):
    """Of where the sliders start, with what to look for."""
    picture, shown = PICTURES[name], []
    monkeypatch.setattr(moving, "show", lambda figure, values: shown.append((figure, values)))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        moving.moving(name)
    ((figure, values),) = shown
    assert drawn(figure) == drawn(remembered(name).frame(**picture.first))
    assert describe(figure, values=values).startswith("Panel 1: ")
    words = " ".join(said.getvalue().split())
    assert letters(picture.look) in words
    assert letters(picture.words(picture.first)) in words
    assert max(map(len, said.getvalue().splitlines())) <= 100


def test_an_unknown_name_or_value_is_one_line_with_a_fix():
    with pytest.raises(ValueError, match=r"name='drfit': expected one of 'drift', .*\. Fix: "):
        moving.moving("drfit")
    with pytest.raises(ValueError, match=r"parameter='steps': expected one of 'K', 'lr'\. Fix: "):
        PICTURES["drift"].frame(steps=3)
    with pytest.raises(ValueError, match=r"K=4: expected one of 1, 2, 3, .*\. Fix: "):
        PICTURES["drift"].frame(K=4)


def test_sliders_need_ipywidgets(monkeypatch):
    """Which is imported for them alone, and named where it is missing."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"live=True: expected the package ipywidgets, .*\. Fix: pip install"):
        moving.moving("drift", live=True)
    monkeypatch.setattr(moving, "show", lambda figure, values: None)
    moving.moving("drift")


def test_live_sliders_show_what_the_frames_show(monkeypatch, capsys):
    """A slider is moved, and the frame below it is the one of its value."""
    widgets = pytest.importorskip("ipywidgets", reason="pip install -c constraints.txt -e '.[notebooks]'")
    boxes, keep = [], widgets.VBox
    monkeypatch.setattr(widgets, "VBox", lambda parts: boxes.append(parts) or keep(parts))
    moving.moving("drift", live=True)
    ((_, slider, *_, frame),) = boxes
    assert isinstance(frame, widgets.Output)
    assert "distance of their mean from x*: 21 points" in capsys.readouterr().out
    slider.value = 50
    assert "distance of their mean from x*: 51 points" in capsys.readouterr().out


# What the pictures say, on their numbers


def test_the_resting_point_is_where_a_run_ends_and_equal_curvatures_have_none():
    table = local.compute_rest(5, 0.8, 0.1)
    (here,) = (row for row in table if row.get("here"))
    server = [row for row in table if row["what"] == "server"]
    assert (server[-1]["x"], server[-1]["y"]) == pytest.approx((here["x"], here["y"]), abs=1e-3)
    errors = [row["error"] for row in table if row["what"] == "rest"]
    assert errors[0] < 1e-12
    assert all(before < after for before, after in pairwise(errors))
    assert max(row["error"] for row in local.compute_rest(50, 0.8, 1.0) if row["what"] == "rest") < 1e-12


def test_one_step_from_the_solution_moves_nothing():
    moved = lambda K: [row["moved"] for row in local.compute_drift(K, 0.5) if row["what"] == "mean"]
    assert max(moved(1)) < 1e-15
    assert moved(20)[-1] > 0.5


def test_unseen_shares_follow_the_formula():
    for row in subspaces.compute_coverage(8, 20):
        if row["what"] == "share":
            assert row["left"] == pytest.approx(row["formula"], abs=0.08)
            assert row["unvisited"] == pytest.approx(row["formula"], abs=0.08)
            assert row["outside"] == max(40 - 8 * row["round"], 0) / 40


def test_a_subspace_allows_a_longer_step_where_few_curvatures_are_large():
    longer = lambda spectrum: {
        row["ratio"]: row["longer"] for row in subspaces.compute_curvature(20, spectrum) if row["what"] == "step"
    }
    assert all(step == pytest.approx(1) for step in longer("all alike").values())
    assert longer("1/i")[1.0] == pytest.approx(1)
    assert 2 < longer("1/i")[5.0] < 5


def test_what_lies_outside_the_subspace_stays_and_noise_grows_with_its_rank():
    errors = {R: [row for row in PICTURES["trajectory"].compute(R, 0.2) if row["what"] == "error"] for R in (1, 4, 8)}
    for rows in errors.values():
        assert rows[0]["outside"] == pytest.approx(rows[-1]["outside"], abs=1e-12)
    assert errors[1][-1]["outside"] > 100 * errors[8][-1]["outside"]
    assert errors[1][-1]["inside"] < errors[4][-1]["inside"] < errors[8][-1]["inside"]


def test_rounding_errors_grow_as_printed_and_not_with_sums():
    own = {}
    for row in subspaces.compute_rounding(5, "spherical"):
        if row["what"] == "run":
            own.setdefault(row["name"], []).append(row["mean dual"])
    assert own["printed, float64"][-1] > 1e8
    assert own["printed, float32"][-1] > 1e6 * own["printed, float64"][-1]
    assert max(own["form sums, float64"]) < 1e-13
    assert (
        max(
            row["mean dual"]
            for row in subspaces.compute_rounding(5, "coordinate")
            if row.get("name", "").endswith("64")
        )
        < 1e-13
    )


def test_averages_miss_nothing_where_the_update_is_linear():
    last = lambda form: [
        row["gap"] for row in PICTURES["averages"].compute(32, form, "low rank") if row["what"] == "gap"
    ][-1]
    assert last("U V") > 0.2
    assert max(last("AAD"), last("U V, U frozen")) < 1e-12


def test_ranks_and_their_two_exceptions():
    ranks = lambda ratio, shape: {
        row["name"]: row["said"] for row in PICTURES["kronecker"].compute(ratio, shape) if row.get("here")
    }
    assert ranks(1 / 4, "36 x 36") == {"low rank": "rank 5 of 36", "Kronecker blocks": "rank 36 of 36"}
    assert ranks(1 / 4, "2 x 2")["Kronecker blocks"] == "rank 1 of 2"
    assert ranks(1 / 4, "6 x 3")["Kronecker blocks"] == "rank 2 of 3"


def test_the_share_along_the_gradient_follows_the_formula_and_rounds_follow_the_trace():
    def tenth(d: int, spectrum: str) -> float:
        table = PICTURES["directions"].compute(5, d, spectrum)
        for row in table:
            if row["what"] == "share":
                assert row["measured"] == pytest.approx(row["formula"], rel=0.2)
        return next((row["sent"] for row in table if row["what"] == "loss" and row["loss"] <= 0.1), float("inf"))

    ones, five = ({d: tenth(d, spectrum) for d in (10, 100)} for spectrum in PICTURES["directions"].sliders["spectrum"])
    assert ones[100] > 4 * ones[10]
    assert five[100] < 2 * five[10]


def test_the_best_within_the_budget_is_within_the_budget():
    for budget in (0.04, 1.1):
        table = PICTURES["bytes"].compute(budget, "up", "digits")
        front = [row for row in table if row["front"] >= 0]
        within = [row for row in table if row["cost"] <= budget]
        assert max(front, key=lambda row: row["front"])["quality"] == max(row["quality"] for row in within)
        assert len(within) < len(table)


def test_frames_do_not_hang_on_the_default_precision():
    """A notebook sets float64, the book's build does not."""
    before = torch.get_default_dtype()
    tables = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        for cached in (subspaces.covered, PICTURES["averages"].compute.__globals__["averaged"]):
            cached.cache_clear()
        tables.append([str(picture.compute(**picture.first)) for picture in PICTURES.values()])
    torch.set_default_dtype(before)
    assert tables[0] == tables[1]
    assert isinstance(local.two_clients(0.1), Quadratic)
