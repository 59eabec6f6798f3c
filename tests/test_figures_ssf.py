"""SSF's figures and tables: which runs an item asks for, and what it makes of them."""

import math

import pytest

from fedtheory.papers import EXTRAS
from fedtheory.papers.ssf import stale
from fedtheory.papers.ssf.items import method
from fedtheory.papers.store import measured
from fedtheory.theory.ssf.printed import RATE, TABLE2, TABLE3, TABLE4


class Made:
    """Errors by method and seed; the stale reading is lost at r = 50 in all seeds but the first."""

    def __init__(self):
        self.specs = []

    def __call__(self, specs):
        found = {}
        for one in specs:
            self.specs.append(one)
            stepped = getattr(one.algorithm, "absent", "") == "step"
            lost = stepped and one.algorithm.projection.rank == 50 and one.seed > 0
            error = {"SSF": 0.01, "FedAvg": 0.02}.get(one.algorithm.name, 0.03 if stepped else 0.04)
            columns = {"round": [0, one.rounds], "error": [1.0, error * (1 + one.seed / 10)]}
            found[one] = {"diverged": (700 + one.seed, 1, "Up.B") if lost else None, "columns": columns}
        return found


def test_fedsub_under_two_readings_beside_the_same_rivals():
    runner = Made()
    result = measured(runner, EXTRAS["ssf/stale"].measure("paper", 3))
    assert {(row["het"], row["r"]) for row in result.table} == {*TABLE2, *TABLE3, *TABLE4}
    assert {one.algorithm for one in runner.specs} >= {method("FedSub", RATE[0.5], 20), method("SSF", RATE[0.5], 20)}
    (at,) = {one.algorithm for one in runner.specs if getattr(one.algorithm, "absent", "") == "step"} & {
        stale.fedsub(stale.STALE, RATE[2.0], 5)
    }
    assert (at.refresh, at.rotate, at.dual_mean) == (1, True, "participants")
    rows = {(row["reading"], row["het"], row["r"]): row for row in result.table}
    one = rows[stale.STALE, 0.5, 20]
    assert (one["diverged"], one["first"], one["/SSF"]) == (0, -1, pytest.approx(3.0))
    assert one["/SSF paper"] == pytest.approx(TABLE2[0.5, 20][3] / TABLE2[0.5, 20][2])
    lost = rows[stale.STALE, 0.5, 50]
    assert (lost["diverged"], lost["first"], lost["last"]) == (2, 701, 702)
    assert math.isnan(lost["mean"])
    assert rows[stale.TABLES, 0.5, 50]["diverged"] == 0
    texts = [text.get_text() for text in EXTRAS["ssf/stale"].draw(result.table).axes[0].texts]
    assert texts.count("NaN in 2 of 3") == 3
    assert texts.count("finite here") == 3
