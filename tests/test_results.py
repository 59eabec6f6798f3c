"""What a run leaves in a user's hands: tables, files, pictures, several seeds, a bar, and what Ctrl-C leaves."""

import math
import os
import sys
import threading

import numpy as np
import pandas
import pytest
import torch
from matplotlib import pyplot

from fedtheory import FedAvg, History, Key, Quadratic, Scaffold, run, run_seeds
from fedtheory.core.history import interval
from fedtheory.running import simulate

PROBLEM = Quadratic.random(6, 4, Key(0), sigma=0.5)
METHOD = FedAvg(0.2, 3)
MADE = lambda key: Quadratic.random(6, 4, key)


def history(**options):
    return run(METHOD, PROBLEM, 12, every=3, **options)


# Tables and files


def test_a_history_is_a_frame():
    one = history()
    frame = one.frame()
    assert list(frame.columns) == list(one.columns)
    assert frame["error"].tolist() == one["error"]
    assert pandas.DataFrame(one).equals(frame)
    assert next(iter(one))["round"] == 0


def test_without_pandas_the_error_says_what_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"Fix: pip install 'fedtheory\[frame\]', or use history\.columns"):
        history().frame()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_saved_history_comes_back_bit_for_bit(dtype, tmp_path):
    one = run(METHOD, Quadratic.random(6, 4, Key(0), dtype=dtype), 12)
    one.save(tmp_path / "one.json")
    back = History.load(tmp_path / "one.json")
    assert (back.columns, back.seconds, back.diverged) == (one.columns, one.seconds, None)
    assert back.x.dtype == dtype
    assert torch.equal(back.x, one.x)
    assert repr(back) == repr(one)
    with pytest.raises(OSError, match=r"a folder that is there\. Fix: make it"):
        one.save(tmp_path / "missing" / "one.json")


def test_a_history_is_saved_through_a_link_and_into_a_device(tmp_path):
    one = run(METHOD, PROBLEM, 2)
    (tmp_path / "link.json").symlink_to("one.json")
    one.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert torch.equal(History.load(tmp_path / "one.json").x, one.x)
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=(tmp_path / "pipe").read_bytes, daemon=True)
    reader.start()
    one.save(tmp_path / "pipe")  # a file in its place would be, for root, one in the place of /dev/null
    assert (tmp_path / "pipe").is_fifo()
    reader.join()


def test_a_diverged_history_is_saved_with_its_numbers_that_are_not_finite(tmp_path):
    not_finite = lambda problem, x: float("nan")
    not_finite.__name__ = "odd"
    with pytest.warns(UserWarning, match=r"the run diverged in round \d+: .*\. Fix: a smaller lr than 1e\+30"):
        one = run(FedAvg(1e30, 3), PROBLEM, 40, metrics=["error", not_finite])
    one.save(tmp_path / "one.json")
    back = History.load(tmp_path / "one.json")
    assert back.diverged == one.diverged is not None
    assert math.isnan(back["odd"][0])


@pytest.mark.parametrize(
    "change", [lambda raw: raw[:-9], lambda raw: raw.replace(b'"round"', b'"rouns"'), lambda raw: b""]
)
def test_a_damaged_file_is_refused(change, tmp_path):
    history().save(tmp_path / "one.json")
    (tmp_path / "one.json").write_bytes(change((tmp_path / "one.json").read_bytes()))
    with pytest.raises(ValueError, match=r"expected a file that History\.save wrote .*Fix: "):
        History.load(tmp_path / "one.json")


def test_a_history_is_shown_as_a_table_of_few_lines():
    lines = repr(run(METHOD, PROBLEM, 40, metrics=("error", "loss"))).splitlines()
    assert lines[0] == "History of rounds 0 to 40, 41 records"
    assert lines[1].split() == ["round", "error", "loss", "up_bytes", "down_bytes"]
    assert [line.split()[0] for line in lines[2:]] == ["0", "1", "2", "...", "38", "39", "40"]


# Metrics, lists, pictures


def test_lists_are_taken_as_tuples_are():
    assert history(metrics=["error", "loss"]).columns == history(metrics=("error", "loss")).columns


def each(problem, x):
    return (x - problem.b).norm(dim=1)


def worst(problem, x):
    return {"worst": float(each(problem, x).max()), "median": each(problem, x).median()}


def test_a_metric_may_return_a_vector_or_a_dict(tmp_path):
    one = history(metrics=["error", each, worst], checkpoint=tmp_path)
    assert list(one.columns)[:10] == [
        "round",
        "error",
        *(f"each[{i}]" for i in range(6)),
        "worst.worst",
        "worst.median",
    ]
    assert one["worst.worst"][-1] == max(one[f"each[{i}]"][-1] for i in range(6))
    assert one["error"] == history()["error"]
    as_numpy = lambda problem, x: np.asarray(each(problem, x))
    as_numpy.__name__ = "each"
    assert history(metrics=[as_numpy])["each[2]"] == one["each[2]"]
    more = run(METHOD, PROBLEM, 18, every=3, metrics=["error", each, worst], checkpoint=tmp_path)
    assert more.columns == run(METHOD, PROBLEM, 18, every=3, metrics=["error", each, worst]).columns


def test_a_metric_that_changes_its_entries_is_refused():
    sizes = iter(range(1, 9))
    with pytest.raises(ValueError, match="return the same entries each time"):
        history(
            metrics=[type("grows", (), {"__call__": lambda self, *given: {str(next(sizes)): 1.0}, "__name__": "g"})()]
        )


@pytest.mark.parametrize("against", ["round", "bytes", "seconds"])
def test_a_history_is_drawn_in_one_call(against):
    one = history()
    ax = one.plot(against=against, label="FedAvg")
    one.plot("error", against, ax, label="again")
    first, second = ax.get_lines()
    assert list(first.get_ydata()) == list(second.get_ydata()) == one["error"]
    places = {"round": one["round"], "bytes": [2 * up / 1e6 for up in one["up_bytes"]], "seconds": one.seconds}
    assert list(first.get_xdata()) == places[against]
    assert ax.get_yscale() == "log"
    pyplot.close(ax.figure)


def test_seconds_rise_and_those_of_an_earlier_call_are_unknown(tmp_path):
    history(checkpoint=tmp_path)
    more = run(METHOD, PROBLEM, 18, every=3, checkpoint=tmp_path)
    assert [math.isnan(second) for second in more.seconds] == [True] * 5 + [False] * 2
    assert more.seconds[5] <= more.seconds[6]


# Several seeds


def test_several_seeds_are_the_runs_one_by_one():
    runs = run_seeds(METHOD, MADE, 12, seeds=3, every=3)
    for seed, one in zip(runs.seeds, runs.histories, strict=True):
        alone = run(METHOD, MADE(Key(seed).fold("data")), 12, every=3, seed=seed)
        assert alone.columns == one.columns
        assert torch.equal(alone.x, one.x)
    assert run_seeds(METHOD, MADE, 12, seeds=[0, 1, 2], every=3).last() == runs.last()
    assert runs.interval() == interval(runs.last("error"))
    assert repr(runs).startswith("3 runs, seeds 0, 1, 2: error ")
    frame = runs.frame()
    assert frame.groupby("seed")["error"].last().tolist() == runs.last()
    ax = runs.plot(label="FedAvg")
    assert list(ax.get_lines()[0].get_xdata()) == [0, 3, 6, 9, 12]
    pyplot.close(ax.figure)


def test_each_seed_has_checkpoints_of_its_own(tmp_path):
    once, again = (run_seeds(METHOD, MADE, 4, seeds=2, checkpoint=tmp_path) for _ in range(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-0", "seed-1"]
    assert once.last() == again.last() == run_seeds(METHOD, MADE, 4, seeds=2).last()


def test_differences_are_paired():
    """The mean is the difference of means, and the interval narrower than that of seeds that vary alike."""
    one, other = (run_seeds(method, MADE, 12, seeds=4) for method in (METHOD, Scaffold(0.2, 3)))
    mean, low, high = one.difference(other)
    assert mean == pytest.approx(one.interval()[0] - other.interval()[0])
    assert low < mean < high
    assert interval([a - b for a, b in zip(one.last(), other.last())]) == (mean, low, high)
    swapped = run_seeds(METHOD, MADE, 12, seeds=4, metrics=("loss", "error"))
    assert one.difference(swapped) == (0, 0, 0)  # of the errors, which `swapped` has second
    with pytest.raises(ValueError, match=r"other\.seeds=\(0,\): expected the same seeds"):
        one.difference(run_seeds(METHOD, MADE, 2, seeds=1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": []}, "seeds, each once"),
        ({"seeds": [1, 1]}, "seeds, each once"),
        ({"seed": 3}, r"Fix: pass seeds=\[3\]"),
        ({"evry": 3}, "Fix: spell it every"),
    ],
)
def test_what_does_not_fit_is_said(options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        run_seeds(METHOD, PROBLEM, 3, **options)


# A bar, and Ctrl-C


def test_a_bar_changes_no_bit(capsys):
    assert history(progress=True).columns == history().columns
    assert "12/12" in capsys.readouterr().err


def stop(done):
    if done == 6:
        raise KeyboardInterrupt


def test_ctrl_c_returns_what_is_there_where_somebody_watches(monkeypatch, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        history(progress=stop)
    monkeypatch.setattr(sys, "ps1", "> ", raising=False)
    with pytest.warns(UserWarning, match="the run was interrupted: its history holds 6 of 12 rounds"):
        cut = history(progress=stop, checkpoint=tmp_path)
    whole = history()
    assert (cut.interrupted, cut["round"], whole.interrupted) == (6, [0, 3, 6], None)
    assert cut["error"] == whole["error"][:3]
    assert torch.equal(cut.x, run(METHOD, PROBLEM, 6).x)
    assert history(checkpoint=tmp_path).columns == whole.columns
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        run_seeds(METHOD, PROBLEM, 12, seeds=2, progress=stop)


def test_private_state_is_handed_out_and_not_held_twice(monkeypatch):
    copied: list[object] = []
    whole = simulate.copy_tree
    monkeypatch.setattr(simulate, "copy_tree", lambda tree: copied.append(tree) or whole(tree))
    history = run(Scaffold(0.1, 2), Quadratic.random(n=5, d=3, key=Key(0)), 2)
    assert history.state.own.c.shape == (5, 3)
    assert all(type(tree) is type(history.state.server) for tree in copied)
