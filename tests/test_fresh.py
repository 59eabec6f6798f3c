"""A committed record is what today's code makes of the committed runs: no number, verdict or note is an older code's.

Runs are found as `reproduce` finds them, by the digests of the data that the record names, so that no data is needed.
"""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from fedtheory.compare import METHODS, methods
from fedtheory.core.registry import PAPERS
from fedtheory.papers import EXTRAS, ITEMS, load, store
from fedtheory.papers.frontier import items as frontier
from fedtheory.papers.store import measured
from fedtheory.running.records import plain, read_csv, to_csv

FIGURES = Path(__file__).resolve().parent.parent / "figures"
ALL = {**ITEMS, **EXTRAS}
MEASURED = (  # without runs, or beside them: bytes and seconds of a machine, worst cases that are searched for
    "decomfl/speedup", "decomfl/table4", "deep/budget", "fedsub/why_nan", "fedsub/worst_case", "flss/rank_bound",
    "frontier/wire", "mud/repaired_rate", "ssf/why_nan", "ssf/worst_case", "use/controls", "use/directions",
    "use/network", "use/rank", "use/reset", "use/step", "use/targets",
    *(f"{of}/tight" for of in (*PAPERS, "family")),
)  # fmt: skip
WITHOUT_FERRET = ("frontier/mnist", "frontier/fashion_mnist", "frontier/cifar10")  # an hour and a half each
MADE = [name for name, item in ALL.items() if (FIGURES / f"{name}.json").exists() and not item.early]


@pytest.mark.parametrize("name", [name for name, item in ALL.items() if item.early])
def test_what_a_worker_measures_names_the_data_that_it_read(name):
    """There are no runs to name them."""
    record = load(FIGURES, name)
    sets = {row["ran data"].replace(",", " ").split()[0] for row in record["table"]}
    found = record["runs"]["data"]
    assert sorted(found) == sorted(f"{data} {split}" for data in sets for split in ("train", "test"))
    assert all(len(part["sha256"]) == 64 for part in found.values())


class Kept(store.Runner):
    """Finds runs and makes none."""

    def __call__(self, specs):
        found, missing = self.begin(specs)
        assert not missing, f"{len(missing)} runs are not there"
        return found


def fresh(name, monkeypatch):
    """The committed record of an item, and what its kept runs say today."""
    record = load(FIGURES, name)
    digests = record.get("runs", {}).get("data", {})
    origin = store.readers.origin

    def recorded(data, folder, split, **options):
        if data == "digits":
            return origin(data, folder, split, **options)
        return digests.get(f"{data} {split}", {"sha256": "not in the record"})

    monkeypatch.delenv("FEDTHEORY_DATA", raising=False)
    monkeypatch.setattr(store.readers, "origin", recorded)
    text = replace(store.BUILDERS["text"], reads=lambda options: digests)
    monkeypatch.setitem(store.BUILDERS, "text", text)
    item = ALL[name]
    if name in WITHOUT_FERRET:
        item = frontier.some(name.removeprefix("frontier/"), methods([one for one in METHODS if one != "Ferret"]))
    return record, measured(Kept(FIGURES), item.measure(record["scale"], len(record["seeds"])))


def same(found, committed):
    """Equal, numbers up to rounding, which may be another on another processor."""
    if isinstance(found, float) and isinstance(committed, float):
        return math.isclose(found, committed, rel_tol=1e-9) or (math.isnan(found) and math.isnan(committed))
    if isinstance(found, dict) and isinstance(committed, dict):
        return found.keys() == committed.keys() and all(same(found[key], committed[key]) for key in found)
    if isinstance(found, list) and isinstance(committed, list):
        return len(found) == len(committed) and all(map(same, found, committed))
    return found == committed


@pytest.mark.parametrize("name", [name for name in MADE if name not in MEASURED])
def test_a_record_is_what_todays_code_makes_of_its_runs(name, monkeypatch):
    record, result = fresh(name, monkeypatch)
    for found, committed in zip(plain([cell.written() for cell in result.cells]), record["cells"], strict=True):
        assert same(found, committed), f"{found}, committed as {committed}"
    own = len(result.notes)
    assert plain(result.notes) == record["notes"][:own]
    assert all(" runs were made with " in note for note in record["notes"][own:])  # `Runner.said`
    assert same(plain(result.settings), record.get("added", [record])[-1]["settings"])
    assert same(read_csv(to_csv(result.table)), record["table"])


@pytest.mark.parametrize("name", ["decomfl/table4"])
def test_what_is_counted_is_judged_as_today(name, monkeypatch):
    """Its bytes move in the sixth digit from build to build, its verdicts and reasons do not."""
    record, result = fresh(name, monkeypatch)
    judged = [(cell.cell, cell.verdict, cell.reason) for cell in result.cells]
    assert judged == [(cell["cell"], cell["verdict"], cell["reason"]) for cell in record["cells"]]
