"""FedMUD's tables and figures: the printed numbers agree with each other, and the verdicts say what the runs say."""

import math
from dataclasses import replace

import pytest

from fedtheory import FedAvg, FedMUD
from fedtheory.core import records
from fedtheory.figures import ITEMS, store
from fedtheory.figures.fedmud import items as mud
from fedtheory.figures.fedmud.items import (
    SETTINGS,
    algorithm,
    level,
    measure_table,
    order,
    spec,
)
from fedtheory.theory.fedmud.printed import TABLE1, TABLE2, TABLE3, TABLE4, named


def test_numbers_printed_twice_are_the_same():
    """AAD and BKD+AAD stand in Tables 1 and 2 (N1), 1 and 4 (N2), 3 and 4 (IID)."""
    for name in ("FedMUD+AAD", "FedMUD+BKD+AAD"):
        assert TABLE2[name] == TABLE1[name][0::2]
        assert TABLE4[name] == tuple(x for pair in zip(TABLE1[name][1::2], TABLE3[name]) for x in pair)
    assert named("N2", "IID")[:3] == ("FMNIST N2", "FMNIST IID", "SVHN N2")


class Fake:
    """Runs that have the accuracy of their method, by name."""

    def __init__(self, values):
        self.values, self.specs = values, []

    def __call__(self, specs):
        self.specs += specs
        return {one: self.result(one) for one in specs}

    def result(self, one):
        names = [name for name in self.values if algorithm(name, SETTINGS["medium"]) == one.algorithm]
        last = self.values[names[0]] + 0.001 * one.seed
        return {"diverged": None, "columns": {"accuracy": [0.1, last - 0.01, last + 0.01], "up_bytes": [0, 1, 2]}}


def test_every_printed_number_has_a_cell_a_verdict_and_a_reason():
    """All methods as far apart as in the paper: every order is confirmed, no level is called reproduced."""
    runner = Fake({name: values[4] / 100 - 0.3 for name, values in TABLE1.items()})
    result = measure_table(runner, "medium", 3, "mud/table1", TABLE1, named("N1", "N2"), mud.ORDERS1)
    ran = [cell for cell in result.cells if cell.verdict != "not run here"]
    assert len(result.cells) == 80 + 5
    assert len(ran) == 10 + 5
    assert all(cell.reason for cell in result.cells)
    assert {cell.verdict for cell in ran} == {"trend only"}
    assert all(math.isnan(cell.ours) and cell.seeds == 0 for cell in result.cells if cell not in ran)
    differences = [cell for cell in ran if " < " in cell.cell]
    assert [cell.ours for cell in differences] == pytest.approx([cell.paper for cell in differences])
    assert [row["ours"] for row in result.table if row["seeds"]] == pytest.approx([c.ours for c in ran if c.paper > 30])


def test_runs_go_seed_by_seed():
    """So that an interrupted run leaves whole seeds behind."""
    runner = Fake(dict.fromkeys(TABLE2, 0.5))
    measure_table(runner, "medium", 3, "mud/table2", TABLE2, named("N1"), mud.ORDERS2)
    assert [one.seed for one in runner.specs] == [seed for seed in range(3) for _ in TABLE2]


@pytest.mark.parametrize(
    ("high", "verdict", "said"),
    [
        ([3.0, 4.0, 5.0], "trend only", "is above 0"),
        ([0.0, 4.0, 8.0], "differs", "contains 0"),
        ([-5.0, -4.0, -3.0], "differs", "is below 0"),
        ([4.0], "differs", "not confirmed"),
    ],
)
def test_an_order_is_confirmed_by_its_interval_only(high, verdict, said):
    ours = {"a": [0.0] * len(high), "b": high}
    cell = order("a", "b", "CIFAR-10 N1", {"a": 1.0, "b": 2.0}, ours, "medium")
    assert (cell.verdict, cell.paper) == (verdict, 1.0)
    assert said in cell.reason
    confirmed = order("a", "b", "CIFAR-10 N1", {"a": 1.0, "b": 2.0}, ours, "paper").verdict == "reproduced"
    assert confirmed == (verdict == "trend only")


def test_a_level_is_reproduced_at_the_papers_scale_only():
    printed, ours = {"a": 50.0, "b": 60.0}, {"a": (50.6, 50.0, 51.2), "b": (40.5, 40.0, 41.0)}
    verdicts = {scale: [level(n, "c", printed, ours, scale, 2).verdict for n in ours] for scale in ("medium", "paper")}
    assert verdicts == {"medium": ["differs", "differs"], "paper": ["reproduced", "differs"]}


def test_algorithms_and_specs_are_those_of_the_setting():
    medium, paper = SETTINGS["medium"], SETTINGS["paper"]
    assert algorithm("FedAvg", medium) == FedAvg(medium.rates["FedAvg"], medium.steps)
    aad = algorithm("FedMUD+BKD+AAD", paper, s=4, ratio=1 / 8)
    assert isinstance(aad, FedMUD)
    assert (aad.lr, aad.reset_every, aad.decomposition.a, aad.decomposition.ratio) == (0.01, 4, 5.0, 1 / 8)
    lmt = algorithm("FedLMT", medium)
    assert isinstance(lmt, FedMUD)
    assert (lmt.base, lmt.reset_every, lmt.decomposition.random) == ("zero", None, True)
    rounds = {column: spec(lmt, column, "paper", 0).rounds for column in ("SVHN N2", "CIFAR-100 N1")}
    assert rounds == {"SVHN N2": 100, "CIFAR-100 N1": 200}
    assert dict(spec(lmt, "CIFAR-100 N2", "paper", 0).options)["labels"] == 10
    assert mud.resnet("FedLMT 16x", paper) == replace(
        algorithm("FedLMT", paper), decomposition=replace(algorithm("FedLMT", paper).decomposition, ratio=1 / 16)
    )


def test_methods_that_a_finished_table_lacks_are_run_and_added(tmp_path):
    """Only they run; rows, orders and provenance of the others stand, bit for bit; the result is as if run at once."""
    item, late = ITEMS["mud/table1"], ("FedHM", "EF21-P", "FedBAT")
    values = {name: row[4] / 100 - 0.3 for name, row in TABLE1.items()}
    whole = item.measure(Fake(values), "medium", 3)
    without = [dict(row) for row in whole.table]
    for row in without:
        if row["method"] in late:
            row |= {"ours": math.nan, "low": math.nan, "high": math.nan, "seeds": 0}
    blank = {"ours": math.nan, "verdict": "not run here", "reason": "missing"}
    cells = [replace(cell, **blank) if any(name in cell.cell for name in late) else cell for cell in whole.cells]
    store.save(tmp_path, item, store.Result(without, cells, {"made": "before"}, ["note"]), "medium", 3, 0.0, "cpu")
    before = records.load(tmp_path, item.name)
    runner = Fake(values)
    result = item.measure(runner, "medium", 3, before["table"])
    assert {one.algorithm.name for one in runner.specs if one.rounds > 1} == set(late)
    store.save(tmp_path, item, result, "medium", 3, 0.0, "cpu", before)
    after = records.load(tmp_path, item.name)
    assert records.to_csv(after["table"]) == records.to_csv(whole.table)
    cells = {cell["cell"]: cell for cell in after["cells"]}
    assert cells == {cell.cell: records.plain(vars(cell)) for cell in whole.cells}
    assert (after["settings"], after["versions"]) == ({"made": "before"}, before["versions"])
    (added,) = after["added"]
    assert set(added["settings"]["methods"]) == set(late)
    assert set(added) == {"settings", "versions", "device", "seconds"}
