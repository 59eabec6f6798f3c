"""Items that are made together: the tables of items made one by one, each run once, no error lost."""

from dataclasses import replace

import flips
import pytest
from conftest import Inline

from fedtheory.papers import store
from fedtheory.papers.store import Item, Result, Runner
from fedtheory.papers.together import together

ONE, TWO, THREE = (replace(flips.SPEC, seed=seed, rounds=10 * (seed + 1)) for seed in range(3))


def of(*batches, name="ssf/made", **more):
    """An item that asks for runs, batch after batch, and has a row for each."""

    def measure(scale, seeds, *kept):
        table = [row for rows in kept for row in rows]
        for batch in batches:
            found = yield batch
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
        table = runner.measure(item, "quick", 1).table
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
    def broken(scale, seeds):
        yield []
        raise OSError("no such data")

    found = []
    items = [of([ONE], name="a"), Item("b", "broken", broken, lambda table: None), of([TWO], name="c")]
    with pytest.raises(OSError, match="no such data"):
        together(Runner(tmp_path, workers=1), items, "quick", 1, lambda item, *_: found.append(item.name))
    assert found == ["a"]
    assert inline == [ONE]


def squared(x):
    return x * x


def on(scale, seeds, device):
    return Result([{"scale": scale, "device": device}])


def test_workers_share_what_is_no_run(tmp_path, inline):
    """Points in their order, one that two items want once; an item that wants nothing else names its device."""

    def measure(scale, seeds):
        found = yield from store.each(squared, [(3,), (1,), (2,)])
        return Result([{"square": value} for value in found])

    items = [Item(name, "points", measure, print) for name in ("a", "b")]
    items.append(Item("c", "itself", store.itself(on, on_device=True), print))
    found = {name: result for name, result, _ in made(tmp_path, items)}
    assert found["a"].table == found["b"].table == [{"square": 9}, {"square": 1}, {"square": 4}]
    assert found["c"].table == [{"scale": "quick", "device": "cpu"}]
    assert found["c"].runs == {"count": 0, "made with": {}, "data": {}, "kept": {}}
    done = []
    runner = Runner(tmp_path, workers=1, tick=lambda *count: done.append(count))
    assert runner.measure(items[0], "quick", 1).table == found["a"].table
    assert done == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_parts_ask_side_by_side(tmp_path, inline):
    """Parts of unlike length: all ask before any is waited for, and each receives what it asked for."""

    def part(*batches):
        said = []
        for batch in batches:
            found = yield batch
            said.append([one.seed for one in found])
        return said

    steps = store.side_by_side({"long": part([ONE], [TWO]), "short": part([TWO, THREE]), "none": part()})
    assert next(steps) == [ONE, TWO, THREE]
    assert steps.send(dict.fromkeys((ONE, TWO, THREE))) == [TWO]
    with pytest.raises(StopIteration) as end:
        steps.send({TWO: None})
    assert end.value.value == {"long": [[0], [1]], "short": [[1, 2]], "none": []}


def test_finished_rows_are_given_to_their_item(tmp_path, inline):
    ((_, result, _),) = made(tmp_path, [of([ONE], name="a", grows=True)], rows={"a": [{"seed": 9}], "b": [{}]})
    assert [row["seed"] for row in result.table] == [9, 0]
