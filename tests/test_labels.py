"""Every row of every table names the data, the network and the rounds that were run, and nothing else does so falsely.

The numbers of a made-up runner tell which run they come from: a row with another label than theirs is found.
"""

import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from each import each

from fedtheory.papers import EXTRAS, ITEMS, load, store
from fedtheory.papers.budget import Budget
from fedtheory.papers.store import Result, Spec
from fedtheory.running.records import RAN, Row, Table

FIGURES = Path(__file__).resolve().parent.parent / "figures"
ALL = {**ITEMS, **EXTRAS}
ITSELF = {  # measured without a runner, or beside it
    "decomfl/fig5a", "decomfl/fig5b", "decomfl/speedup", "decomfl/table1", "decomfl/table2", "decomfl/table4",
    "decomfl/table5", "decomfl/table6", "decomfl/tight", "deep/budget", "family/tight", "fedsub/table1", "fedsub/tight",
    "fedsub/why_nan", "fedsub/worst_case", "flss/fig1bcd", "flss/fig2", "flss/rank_bound", "flss/tight",
    "mud/repaired_rate", "mud/tight", "ssf/tight", "ssf/why_nan", "ssf/worst_case",
    "frontier/advice",
    "frontier/wire", "use/controls", "use/directions", "use/network", "use/rank", "use/reset", "use/step",
    "use/targets",
}  # fmt: skip
NUMBERS = ("mean", "ours", "quality", "accuracy", "error", "full")
NAMES = {  # in print -> as the code calls it
    "FMNIST": "fashion_mnist", "Fashion-MNIST": "fashion_mnist", "CIFAR-10": "cifar10", "CIFAR-100": "cifar100",
    "SVHN": "svhn", "TinyImageNet": "tiny_imagenet", "Tiny-ImageNet": "tiny_imagenet", "MNIST": "mnist",
    "digits": "digits", "ResNet-18": "resnet18", "ResNet-50": "resnet50", "ResNet-110": "resnet110-7",
}  # fmt: skip


class Coded:
    """Runs whose accuracy, loss and error are one number, that of their data, network and rounds."""

    device = "cpu"

    def __init__(self) -> None:
        self.codes: dict[tuple, float] = {}

    def code(self, one: Spec) -> float:
        label = tuple(one.ran()[name] for name in RAN)
        return self.codes.setdefault(label, 0.2 + 0.7 * math.modf(0.618034 * len(self.codes))[0])

    def __call__(self, specs: Iterable[Spec]) -> dict[Spec, dict]:
        return {one: self.result(one) for one in specs}

    def result(self, one: Spec) -> dict:
        rounds = [*range(0, one.rounds, one.every), one.rounds]
        columns = {name: [self.code(one)] * len(rounds) for name in ("accuracy", "loss", "error")}
        for way in ("up", "down"):
            columns |= {f"{way}_{unit}": [100.0 * t for t in rounds] for unit in ("bytes", "scalars")}
        return {"diverged": None, "columns": {"round": rounds} | columns, "memory": 1000, "products": 1000}


@pytest.fixture(autouse=True)
def no_budgets(monkeypatch):
    """What a run that is not made would need takes seconds to count, and is in no label."""
    monkeypatch.setattr(Budget, "__str__", lambda self: "budget")


@cache
def measured(name: str, scale: str, seeds: int = 2) -> tuple[Result, Coded]:
    runner = Coded()
    return store.measured(runner, ALL[name].measure(scale, seeds)), runner


def untrue(table: Table, codes: dict[tuple, float]) -> list[str]:
    """Rows whose numbers are of another run than their labels say."""
    faults = []
    for row in table:
        label = tuple(row[name] for name in RAN)
        if not row["ran rounds"]:
            continue
        found = next(float(row[name]) for name in (*NUMBERS, "value") if name in row)
        of = [one for one, code in codes.items() if min(abs(found - code), abs(found / 100 - code)) < 1e-9]
        if label not in of:
            faults.append(f"{label} is {of}")
    return faults


def misnamed(texts: Iterable[str], ran: Iterable[Row]) -> list[str]:
    """Texts that name data or a network, and neither is among what was run nor say what was run in its place."""
    words = {str(row["ran data"]).split(",")[0].split()[0] for row in ran if row["ran rounds"]}
    words |= {row["ran network"] for row in ran if row["ran rounds"]}
    faults = []
    for text in texts:
        rest = text
        for name in sorted(NAMES, key=len, reverse=True):
            if name in rest and NAMES[name] not in words and "(run: " not in text:
                faults.append(text)
            rest = rest.replace(name, "")
    return faults


RUN = [(name, item.scales[-1]) for name, item in ALL.items() if name not in ITSELF]


@pytest.mark.parametrize(("name", "scale"), RUN)
def test_the_label_of_a_row_is_that_of_its_runs(name, scale):
    """At the highest scale, from the specs that were asked for; the next test does it at the committed one."""
    result, runner = measured(name, scale)
    assert all(set(RAN) <= set(row) for row in result.table)
    assert untrue(result.table, runner.codes) == []
    assert [text for row in result.table if row["ran rounds"] for text in misnamed(texts_of(row), [row])] == []
    assert misnamed([cell.cell for cell in result.cells if cell.seeds and cell.kind == "run"], result.table) == []


def texts_of(row: Row) -> list[str]:
    return [value for name, value in row.items() if isinstance(value, str) and name not in RAN]


@each(name=[name for name in ALL if (FIGURES / f"{name}.json").exists()])
def test_every_committed_row_says_what_was_run(name):
    """And says what the code says today; no name of a column, cell or title is of what was not run."""
    record = load(FIGURES, name)
    table = record["table"]
    assert all(set(RAN) <= set(row) for row in table)
    older = [cell["reason"].endswith("to be made again") for cell in record["cells"]]
    if any(older):  # made at another setting than today's: shown, and not judged
        assert all(older)
        assert {cell["verdict"] for cell in record["cells"]} == {"not tested"}
    elif name not in ITSELF:
        fresh = measured(name, record["scale"])[0].table
        if name.startswith("frontier/"):  # methods were added since, and ranks and rates hang on the numbers
            which = lambda row: (row["task"], "" if name.endswith("tuning") else str(row.get("value", "")))
            of = {which(row): row for row in fresh}
            fresh = [row | {part: of[which(row)][part] for part in RAN} for row in table]
        now, then = ({(*texts_of(row), *(row[part] for part in RAN)) for row in rows} for rows in (table, fresh))
        assert now == then
    assert [text for row in table if row["ran rounds"] for text in misnamed(texts_of(row), [row])] == []
    cells = [cell["cell"] for cell in record["cells"] if cell["seeds"] and cell["kind"] == "run"]
    assert misnamed([*cells, ALL[name].title], table) == []
    assert record["title"] == ALL[name].title


def test_a_wrong_label_is_found():
    """A row of one run that names another's data, and a panel that names what was not run."""
    result, runner = measured("flss/table2", "medium")
    one, *_ = result.table
    codes = runner.codes | {("cifar10", one["ran network"], one["ran rounds"]): 0.111}
    assert untrue([one], codes) == []
    assert untrue([one | {"ran data": "cifar10"}], codes) != []
    assert misnamed(["CIFAR-10"], [one]) == ["CIFAR-10"]
    assert misnamed(["CIFAR-10 (run: fashion_mnist)", "FMNIST"], [one]) == []
