"""DeComFL's Figure 2 under two readings: what each runs, that rows and cells name theirs, and the authors' files."""

import math
from dataclasses import replace
from typing import ClassVar

import pytest

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.key import Key
from fedtheory.core.loop import sample_clients
from fedtheory.papers import EXTRAS, ITEMS, store
from fedtheory.papers.decomfl import curves
from fedtheory.papers.decomfl.costs import longest_queue
from fedtheory.papers.decomfl.curves import AUTHORS, FILES, PRINTED, decomfl, draw_2, less_than_k, readings

FIGURES = ("decomfl/fig2a", "decomfl/fig2b")


class Made:
    """Runs whose accuracy tells momentum and split: 0.5 + momentum / 4, and 0.1 more where the split is IID."""

    def __init__(self):
        self.specs = []

    def __call__(self, specs):
        self.specs += (specs := list(specs))
        return {one: self.result(one) for one in specs}

    def result(self, one):
        rounds = [*range(0, one.rounds, one.every), one.rounds]
        value = 0.5 + getattr(one.algorithm, "momentum", 0) / 4 + 0.1 * (dict(one.options)["partition"] == "iid")
        sent = {f"{way}_{unit}": [100.0 * t for t in rounds] for way in ("up", "down") for unit in ("scalars", "bytes")}
        return {"diverged": None, "columns": {"round": rounds, "accuracy": [value] * len(rounds), **sent}}


def measured(name, scale="medium"):
    runner = Made()
    return store.measured(runner, {**ITEMS, **EXTRAS}[name].measure(scale, 2)), runner.specs


def test_as_printed_is_what_was_run_before():
    """The words of the stored runs: method, problem, rounds."""
    for name, scale in ((name, scale) for name in FIGURES for scale in curves.ALL):
        of = curves.SCALES[scale]
        _, specs = measured(name, scale)
        own = [one for one in specs if dict(one.options)["partition"] == "dirichlet"]
        options = tuple(sorted({"data": of.mnist[0], "network": of.mnist[1], **of.options}.items()))
        if name.endswith("a"):
            wanted = {(decomfl(of.P[0], K, of.lr), of.rounds // K, of.every) for K in of.K}
            wanted |= {(decomfl(4 * of.P[0], lr=of.lr), of.rounds, of.every)}
        else:
            wanted = {(decomfl(P, lr=of.lr), of.rounds, of.every) for P in of.P}
        wanted |= {(curves.FEDAVG, of.rounds, of.every // 2), (curves.FEDAVG, min(curves.EARLY, of.rounds), 1)}
        assert {(one.algorithm, one.rounds, one.every) for one in own} == wanted
        assert {(one.options, one.sampled) for one in own} == {(options, of.sampled)}


def test_the_authors_files_are_their_settings():
    """Momentum 0.9 without its factor, IID, central differences at mu = 1e-4; left 1e-3, right K = 4 at 5e-4."""
    for scale in ("medium", "paper"):
        for name, rate, steps in (
            ("decomfl/fig2a", 1e-3, {1, 4, *curves.SCALES[scale].K}),
            ("decomfl/fig2b", 5e-4, {4}),
        ):
            own = [one for one in measured(name, scale)[1] if dict(one.options)["partition"] == "iid"]
            assert all(dict(one.options)["batch"] == 256 and "subset" not in dict(one.options) for one in own)
            ours = [one.algorithm for one in own if isinstance(one.algorithm, DeComFL)]
            assert {a.local_steps for a in ours} == steps
            assert {a.perturbations for a in ours} == ({20, 80} if name.endswith("a") else {10, 20, 40})
            plain = DeComFLReading(rate, momentum=0.9, smoothing=1e-4, scalar="central", dampened=False)
            assert {replace(a, local_steps=1, perturbations=10) for a in ours} == {plain}
            lengths = {(one.rounds, one.algorithm.local_steps) for one in own if isinstance(one.algorithm, DeComFL)}
            left = readings(scale)[1].rounds[0]
            shared = {(left // K, K) for K in curves.SCALES[scale].K} | {(left // 4, 1)}
            assert lengths == (shared if name.endswith("a") else {(readings(scale)[1].rounds[1], 4)})
            assert any(one.rounds >= 100 for one in own), "there is a published accuracy to compare with"


@pytest.mark.parametrize("scale", ["quick", "medium"])
@pytest.mark.parametrize("name", FIGURES)
def test_rows_and_cells_name_their_reading(name, scale):
    result, specs = measured(name, scale)
    assert list(dict.fromkeys(row["reading"] for row in result.table)) == [PRINTED, AUTHORS]
    for row in result.table:
        iid = row["reading"] == AUTHORS
        momentum = 0 if row["method"] == "FedAvg" else 0.9 if iid else 0.5
        assert row["mean"] == pytest.approx(0.5 + momentum / 4 + 0.1 * iid)
        assert ("iid" in row["ran data"]) == iid
    own = [cell.cell for cell in result.cells if not cell.cell.endswith(AUTHORS)]
    assert len(own) == len(result.cells) // 2 == (3 if name.endswith("a") else 5)
    stem = lambda cell: cell.split(" in round ")[0].removesuffix(f", {AUTHORS}").split(" (above)")[0]
    assert [stem(cell.cell) for cell in result.cells[len(own) :]] == [stem(cell) for cell in own]
    assert len({cell.cell for cell in result.cells}) == len(result.cells)
    assert {one.seed for one in specs} == {0, 1}
    assert less_than_k() in result.notes
    titles, by = {
        "quick": (["dirichlet 1", "iid"], "communication rounds"),
        "medium": (["settings as printed", "settings of the authors' files"], "scalars per client, counted"),
    }[scale]
    drawn = draw_2(result.table).axes
    assert ([axes.get_title() for axes in drawn], {axes.get_xlabel() for axes in drawn}) == (titles, {by})


def test_published_accuracies_stand_beside_ours_in_their_reading_alone():
    for name in FIGURES:
        table = measured(name)[0].table
        found = {(row["method"], row["round"]): row["files"] for row in table if not math.isnan(row["files"])}
        rows = {(row["method"], row["round"]) for row in table if row["reading"] == AUTHORS}
        assert found == {
            (method, t): pytest.approx(sum(values) / len(values))
            for method, of in FILES.items()
            for t, values in of.items()
            if (method, t) in rows
        }
        assert (("K = 4" if name.endswith("a") else "P = 20"), 100) in found
        assert all(row["reading"] == AUTHORS for row in table if not math.isnan(row["files"]))


def test_only_the_batch_is_another_in_the_picture_of_it():
    """The larger one is Figure 2's; published accuracies stand beside it alone."""
    of_figure = {one for one in measured("decomfl/fig2a")[1] if isinstance(one.algorithm, DeComFL)}
    result, specs = measured("decomfl/batch")
    small = [one for one in specs if dict(one.options)["batch"] == 64]
    assert set(specs) - set(small) < of_figure
    assert {one.algorithm for one in small} == {one.algorithm for one in specs} - {readings("medium")[1].method(80)}
    assert {(one.algorithm.local_steps, one.rounds) for one in small} == {(1, 480), (4, 120)}
    for row in result.table:
        printed = curves.published(row["panel"], row["round"]) if row["method"] == "batch 256" else math.nan
        assert row["files"] == pytest.approx(printed, nan_ok=True)
    assert {row["round"] for row in result.table if not math.isnan(row["files"])} == {100}
    assert len(EXTRAS["decomfl/batch"].draw(result.table).axes) == 2


def test_what_the_note_says_of_p_and_k_is_in_the_files():
    """Four times K gains more than four times P, at every round that both have."""
    gain = lambda low, high, t: curves.published(high, t) - curves.published(low, t)
    assert all(gain("K = 1", "K = 4", t) > gain("P = 10", "P = 40", t) for t in (100, 500, 1000))
    assert curves.published("K = 1", 100) == pytest.approx((0.8458 + 0.8234 + 0.8113) / 3)
    for method in ("K = 1", "K = 4", "P = 10", "P = 40"):
        assert f"{curves.published(method, 100):.3f}" in less_than_k()
    assert math.isnan(curves.published("K = 1", 99))


class Apart(Made):
    """Levels are the seed's; projected gradients and forward differences lie behind central ones as the round says."""

    BEHIND: ClassVar = {"central": 0.0, "projection": 0.001, "forward": 0.0004}

    def result(self, one):
        found = super().result(one)
        behind = self.BEHIND[one.algorithm.scalar]
        rounds = [*range(0, one.rounds, one.every), one.rounds]
        found["columns"]["accuracy"] = [0.3 + 0.1 * one.seed - behind * t for t in rounds]
        return found


def test_figure_4_has_differences_seed_by_seed():
    result = store.measured(Apart(), curves.measure_4("quick", 3))
    ahead = {"differences": 0.1, "projection": 0.0, "forward differences": 0.06}  # points a round
    assert {row["round"] for row in result.table} > {0, 20}
    for row in result.table:
        expected = row["round"] * ahead[row["method"].split(", ")[0]]
        assert [row[part] for part in ("gap", "gap low", "gap high")] == pytest.approx([expected] * 3)
        assert row["high"] - row["low"] > 0.1
    (note,) = (note for note in result.notes if note.startswith("Forward differences"))
    assert "at rate 0.005 +4.3 points [4.3, 4.3], at rate 0.01 +4.3" in note  # 0.06 a round, rounds 64 to 80
    below = curves.draw_4(result.table).axes[3:]
    assert [axes.get_ylabel() for axes in below] == ["points above projection", "", ""]
    assert [len(axes.get_lines()) for axes in below] == [3, 3, 3]  # the third is projection's own, at zero


def test_figure_4_has_projection_on_larger_batches_where_the_scale_has_them(monkeypatch):
    """With their own runs; no number is judged by them."""
    without = store.measured(Apart(), curves.measure_4("quick", 3))
    monkeypatch.setitem(curves.LARGER, "quick", 16)
    runner = Apart()
    result = store.measured(runner, curves.measure_4("quick", 3))
    added = [one for one in runner.specs if dict(one.options)["batch"] == 16]
    assert len(added) == 3 * 3
    assert {one.algorithm.scalar for one in added} == {"projection"}
    assert result.cells == without.cells
    assert [row for row in result.table if "batches" not in row["method"]] == without.table
    assert result.notes[-1].startswith("Projection with batches of 16, end: at rate 0.005 32.8% [8.0, 57.6], at rate")
    assert len(curves.draw_4(result.table).axes) == 6


def test_what_a_rival_needs_is_counted_from_below():
    """A level is reached somewhere between two records: DeComFL's is the later, a rival's the round after the first."""
    one = {"round": [0, 10, 30], "accuracy": [0.1, 0.5, 0.9], "vector": [0.0, 100.0, 300.0]}
    found = curves.Curves({"FedAvg": [one]}, [], {}, {})
    for level, last, least in ((0.5, 100, 10), (0.6, 300, 110), (0.05, 100, 10)):
        assert found.needed("FedAvg", [level], "vector") == [last]
        assert found.needed("FedAvg", [level], "vector", least=True) == [least]
    assert math.isnan(found.needed("FedAvg", [0.95], "vector", least=True)[0])
    fine = {name: [float(t * {"round": 1, "accuracy": 0.09, "vector": 10}[name]) for t in range(11)] for name in one}
    found.fine["FedAvg"] = [fine]
    assert found.needed("FedAvg", [0.3], "vector", least=True) == [40]


@pytest.mark.parametrize("rounds", [40, 100])
def test_the_first_rounds_of_fedavg_are_all_recorded(rounds):
    """The records of a second run, which is the beginning of the first, and then the first's."""
    runner, scale = Made(), curves.SCALES["quick"]
    found = store.measured(
        runner, curves.play(scale, scale.mnist, {"FedAvg": curves.FEDAVG, "K = 1": decomfl(5)}, 2, rounds)
    )
    assert list(found.fine) == ["FedAvg"]
    step, early = scale.every // 2, min(curves.EARLY, rounds)
    for one in found.fine["FedAvg"]:
        assert one["round"] == [*range(early), early, *range(early + step, rounds + 1, step)]
        assert len(one["accuracy"]) == len(one["vector"]) == len(one["round"])
    assert sorted(one.every for one in runner.specs if isinstance(one.algorithm, FedAvg)) == [1, 1, step, step]
    assert found.columns["FedAvg"][0]["round"] == list(range(0, rounds + 1, step))


def test_the_end_is_the_last_quarter_of_the_rounds():
    one = {"round": [0, 20, 40, 60, 80, 100], "accuracy": [0.0, 0.2, 0.4, 0.5, 0.6, 0.8]}
    found = curves.Curves({"K = 4": [one]}, [], {}, {})
    assert found.at("K = 4") == pytest.approx([0.7])
    assert found.at("K = 4", 70) == [0.5]


def test_a_server_keeps_the_rounds_that_some_client_lacks():
    """All take part: the last one. One of one: the same. Few of many: no more than there were, and more than the gap
    at which a client's turn comes round on average."""
    assert longest_queue(5, 5, 40) == longest_queue(1, 1, 40) == 1
    assert longest_queue(7, 2, 1) == 0
    assert longest_queue(100, 10, 5) == 4
    assert 100 / 10 < longest_queue(100, 10, 400) < 400
    gaps, last = [], [0] * 6
    for t in range(50):
        gaps.append(max(t - one for one in last))
        for i in sample_clients(6, 2, Key(0).fold("round", t, "clients")).tolist():
            last[i] = t
    assert longest_queue(6, 2, 50) == max(gaps)


@pytest.mark.parametrize(
    ("length", "verdict"), [(50, "direction holds"), (5, "direction reversed"), (210, "not tested")]
)
def test_savings_that_could_not_have_come_out_otherwise_test_nothing(length, verdict):
    """DeComFL gets to 0.6 for 200 scalars; FedAvg in its eighth round at least, or in fact in any."""
    accuracy = [0.1, *[0.5] * 7, 0.7]
    rival = {"round": [*range(9)], "vector": [length * t for t in range(9)], "accuracy": accuracy}
    own = {"round": [0, 10, 20], "vector": [0, 100, 200], "accuracy": [0.1, 0.5, 0.6]}
    seeds = [0.99, 1.0, 1.01]
    runs = {
        "FedAvg": [rival | {"vector": [v * noise for v in rival["vector"]]} for noise in seeds],
        "DeComFL": [own] * 3,
    }
    cell = curves.savings(curves.Curves(runs, [], {}, {}), "reduced", "DeComFL")
    assert cell.verdict == verdict
    assert ("it could not fail: one round of FedAvg sends" in cell.reason) == (verdict == "not tested")
