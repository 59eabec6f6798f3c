"""DeComFL's speed-ups: the exact averages against whole trajectories, the bounds above them, the picture."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fedtheory.papers.decomfl import speedup
from fedtheory.papers.store import measured
from fedtheory.running import records
from fedtheory.theory.decomfl.round import tiny, trajectory


@pytest.mark.parametrize(("d", "K", "P", "m"), [(1, 1, 1, 1), (3, 2, 2, 2), (4, 3, 9, 3)])
def test_the_average_is_that_of_the_trajectory_in_all_dimensions(d, K, P, m):
    first = [1.0] + [0.0] * (d - 1)
    turns = [[1.0], [-0.5], [-0.5]]
    at = tiny(a=[[t[0] * v for v in first] for t in turns], noise=[first], x=first, M=3, m=m, d=d, K=K, P=P, lr=0.05)
    assert speedup.average(at, 25) == pytest.approx(sum(trajectory(at, 25)) / 25, rel=1e-12)


def test_bounds_and_averages_where_the_picture_says_so():
    """One minibatch for all P: the printed bound ends below what happens, the repaired one does not."""
    few, many = (speedup.exact_row("minibatch noise", "P", P) for P in (1, 10_000))
    assert few["at_printed_step"] < few["printed"]
    assert many["at_printed_step"] > 4 * many["printed"]
    for row in (few, many):
        assert row["best"] <= row["at_repaired_step"] <= row["repaired"]
        assert row["repaired_step"] <= speedup.longest(1, 1, row["P"], False)
    alone, all_of_them = (speedup.exact_row("neither", "m", m) for m in (1, speedup.CLIENTS))
    assert alone["best"] == pytest.approx(all_of_them["best"], rel=1e-6)


def test_the_best_step_is_one():
    value, step = speedup.best("heterogeneity", (4, 2, 10), 1000)
    for factor in (0.9, 1.1):
        at = speedup.instance("heterogeneity", 4, 2, 10, factor * step)
        assert speedup.average(at, 1000) > value


def test_sums_of_a_run_agree_with_the_exact_average():
    row = speedup.played_row("minibatch noise", (16, 2, 5), 30, 6)
    assert row["low"] < 1 < row["high"]


def test_draws_from_what_is_written(monkeypatch):
    monkeypatch.setattr(speedup, "PLAYED", ((1, 1, 1),))
    monkeypatch.setattr(speedup, "RUNS", {"quick": 5})
    grids = {axis: (base, {"quick": grid["quick"][:2]}) for axis, (base, grid) in speedup.AXES.items()}
    monkeypatch.setattr(speedup, "AXES", grids)
    result = measured(lambda runs: pytest.fail("it asks for no runs"), speedup.measure("quick", 2))
    assert [row["kind"] for row in result.table].count("run") == len(speedup.CAUSES)
    figure = speedup.draw(records.read_csv(records.to_csv(result.table)))
    assert len(figure.axes) == 10
    assert any("the best average falls" in note for note in result.notes)


def test_on_a_line_needs_its_factor():
    at = tiny(x=[1.0, 0.0, 0.0], d=3, P=2, lr=0.1)
    wrong = replace(speedup.on_a_line(at), P=2)
    assert speedup.average(at, 10) != pytest.approx(sum(trajectory(wrong, 10)) / 10, rel=1e-3)
    assert torch.equal(speedup.on_a_line(at).x, torch.ones(1, dtype=torch.float64))


def test_committed_numbers_come_back_and_runs_agree():
    record = records.load(Path(__file__).resolve().parents[1] / "figures", "decomfl/speedup")
    rows = {(row["cause"], row["axis"], row["P"]): row for row in record["table"] if row["kind"] == "exact"}
    for P in (30, 10_000):
        again, kept = speedup.exact_row("minibatch noise", "P", P), rows["minibatch noise", "P", P]
        assert {name: again[name] for name in ("best", "printed", "repaired", "at_printed_step")} == pytest.approx(
            {name: kept[name] for name in ("best", "printed", "repaired", "at_printed_step")}, rel=1e-3
        )
    runs = [row for row in record["table"] if row["kind"] == "run"]
    assert sum(row["low"] <= 1 <= row["high"] for row in runs) >= len(runs) - 2
    assert speedup.EXTRAS[0].draw(record["table"]).axes
