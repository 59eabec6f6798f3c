"""Items that are made together: the tables of items made one by one, each run once, no error lost."""

from dataclasses import replace

import flips
import pytest
from conftest import Inline

from fedtheory.core import registry
from fedtheory.papers import EXTRAS, ITEMS, store
from fedtheory.papers.store import Item, Result, Runner
from fedtheory.papers.together import together

ONE, TWO, THREE = (replace(flips.SPEC, seed=seed, rounds=10 * (seed + 1)) for seed in range(3))


def of(*batches, name="ssf/made", **more):
    """An item that asks for runs, batch after batch, and has a row for each."""

    def measure(runner, scale, seeds, *kept):
        table = [row for rows in kept for row in rows]
        for batch in batches:
            found = runner(batch)
            table += [{"seed": one.seed, "error": found[one]["columns"]["error"][-1]} for one in batch]
        return Result(table)

    return Item(name, "made", measure, lambda table: None, **more)


def made(folder, items, **more):
    """What `finish` is called with, in its order."""
    found = []
    finish = lambda item, result, seconds: found.append((item.name, result, seconds))
    together(Runner(folder, workers=1), items, "quick", 1, finish, **more)
    return found


def test_the_tables_are_those_of_items_made_one_by_one(tmp_path, inline):
    """An item that asks again when it has seen its first runs, one that shares a run with it, one that asks nothing."""
    items = [of([ONE], [TWO], name="a"), of([TWO, THREE], name="b"), of(name="c")]
    found = made(tmp_path / "together", items)
    assert sorted(inline, key=repr) == sorted([ONE, TWO, THREE], key=repr)
    assert sorted(name for name, _, _ in found) == ["a", "b", "c"]
    runner = Runner(tmp_path / "alone", workers=1)
    for item in items:
        table = item.measure(runner, "quick", 1).table
        assert [result.table for name, result, _ in found if name == item.name] == [table]
    counts = {name: result.runs["count"] for name, result, _ in found}
    assert counts == {"a": 2, "b": 2, "c": 0}
    assert made(tmp_path / "together", items)[0][0] == "a"  # all is on disk
    assert len(inline) == 6


def test_longest_first_and_items_in_their_order(tmp_path, inline):
    made(tmp_path, [of([ONE, THREE], name="a"), of([TWO], name="b")])
    assert inline == [THREE, ONE, TWO]


def test_the_next_item_is_asked_while_workers_have_something_to_do(tmp_path, monkeypatch):
    """Nothing is finished before all runs that one worker may hold have been handed out, the next item's among them."""
    handed = []

    class Slow(Inline):
        def submit(self, fn, /, *args, **kwargs):
            handed.append(args[0][0].seed)
            return super().submit(fn, *args, **kwargs)

    seen = []
    monkeypatch.setattr(store, "ProcessPoolExecutor", Slow)
    together(
        Runner(tmp_path, workers=1), [of([ONE], name="a"), of([TWO], name="b")], "quick", 1,
        lambda item, *_: seen.append((item.name, len(handed))),
    )  # fmt: skip
    assert seen == [("a", 2), ("b", 2)]


def test_an_error_is_raised_when_the_items_before_it_are_done(tmp_path, inline):
    def broken(runner, scale, seeds):
        raise OSError("no such data")

    found = []
    items = [of([ONE], name="a"), Item("b", "broken", broken, lambda table: None), of([TWO], name="c")]
    with pytest.raises(OSError, match="no such data"):
        together(Runner(tmp_path, workers=1), items, "quick", 1, lambda item, *_: found.append(item.name))
    assert found == ["a"]
    assert inline == [ONE]


def test_a_worker_measures_what_computes_by_itself(tmp_path, monkeypatch):
    """By its name, with a runner that has a device and makes no runs; the record says so."""
    monkeypatch.setattr(store, "ProcessPoolExecutor", Inline)
    item = Item("ssf/alone", "alone", lambda runner, *_: Result([{"device": runner.device}]), print, alone=True)
    monkeypatch.setattr(registry, "item", {"ssf/alone": item, "ssf/asks": of([ONE], name="ssf/asks", alone=True)}.get)
    ((_, result, _),) = made(tmp_path, [item])
    assert result.table == [{"device": "cpu"}]
    assert result.runs == {"count": 0, "made with": {}, "data": {}}
    with pytest.raises(TypeError, match="not callable"):
        made(tmp_path, [registry.item("ssf/asks")])


def test_what_computes_by_itself_can_be_made_by_its_name():
    """A worker knows the item by its name alone."""
    every = {**ITEMS, **EXTRAS}
    alone = [name for name, item in every.items() if item.alone]
    assert alone
    assert [name for name in alone if registry.item(name) is not every[name] or every[name].grows] == []


def test_finished_rows_are_given_to_their_item(tmp_path, inline):
    ((_, result, _),) = made(tmp_path, [of([ONE], name="a", grows=True)], kept={"a": [{"seed": 9}], "b": [{}]})
    assert [row["seed"] for row in result.table] == [9, 0]


def test_a_run_that_cannot_be_read_again_is_made_again(tmp_path, inline):
    """As if another process had removed or damaged it between being kept and being read."""
    runner, kept = Runner(tmp_path, workers=1), []

    def keep(head, result, *more, once=runner.keep):
        found = once(head, result, *more)
        if not kept:
            kept.append(runner._named(head).unlink())
        return found

    runner.keep = keep
    found = []
    together(runner, [of([ONE])], "quick", 1, lambda item, *_: found.append(item.name))
    assert found == ["ssf/made"]
    assert inline == [ONE, ONE]
