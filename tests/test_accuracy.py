"""Which accuracy of a run is shown: its last records, or its best one."""

import math

import pytest

from fedtheory.papers import EXTRAS, ITEMS
from fedtheory.papers.accuracy import OPTIMISTIC, best, best_at, last
from fedtheory.papers.budget import Budget
from fedtheory.papers.store import measured


@pytest.fixture(autouse=True)
def no_budgets(monkeypatch):
    """What a run that is not made would need takes seconds to count."""
    monkeypatch.setattr(Budget, "__str__", lambda self: "budget")


def result(*accuracies, diverged=None):
    return {"diverged": diverged, "columns": {"accuracy": list(accuracies)}}


def test_the_last_and_the_best_by_hand():
    run = result(0.9, 0.2, 0.5, 0.4, 0.5, 0.3)
    assert last(run) == pytest.approx(40)
    assert last(run, 1) == pytest.approx(30)
    assert best(run) == 50, "the start is no record of training"
    assert best_at(run) == 2, "the first of two equal ones"
    lost = result(0.9, 0.2, diverged=[1, 0, "Up.dy"])
    assert all(math.isnan(read(lost)) for read in (last, best, best_at))
    assert math.isnan(best(result(0.9)))


class Swinging:
    """Runs that end ten points below their best record."""

    def __call__(self, specs):
        columns = {f"{way}_bytes": [0, 1, 1, 1, 1] for way in ("up", "down")}
        end = lambda one: 0.5 + one.seed / 100
        records = lambda one: [0.1, end(one) + 0.1, end(one), end(one), end(one)]
        return {one: {"diverged": None, "columns": columns | {"accuracy": records(one)}} for one in specs}


@pytest.mark.parametrize("name", ["flss/table1", "flss/table2", "flss/table3", "flss/table4"])
def test_tables_show_the_best_round_beside_what_is_judged(name):
    found = measured(Swinging(), ITEMS[name].measure("medium", 3))
    for row in found.table:
        assert row["mean"] == pytest.approx(51)
        assert row["best"] == pytest.approx(61)
        assert row["best"] - row["best_low"] == pytest.approx(row["mean"] - row["low"])
        assert row["best_high"] - row["best"] == pytest.approx(row["high"] - row["mean"])
    judged = [cell.ours for cell in found.cells if cell.seeds == 3 and cell.kind == "run"]
    assert judged == pytest.approx([51] * len(judged))
    assert any(OPTIMISTIC in note for note in found.notes)


@pytest.mark.parametrize("name", ["ssf/table5", "deep/rates"])
def test_deep_tables_name_the_selection(name):
    found = measured(Swinging(), {**ITEMS, **EXTRAS}[name].measure("medium", 2))
    for row in found.table:
        assert row["mean"] == pytest.approx({"best": 60.5, "final": 50.5}[row["what"]])
    assert any(OPTIMISTIC in note for note in found.notes)
