"""Comparing methods in one call: the rule of tuning, what is compared, and the pages that show it."""

import functools
import math
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fedtheory import (
    SSF,
    Budget,
    Comparison,
    EarlyStopping,
    FedAvg,
    FedProx,
    Key,
    Quadratic,
    Scaffold,
    compare_methods,
    run,
    run_seeds,
)
from fedtheory.running import comparison
from fedtheory.running import seeds as seeds_of
from fedtheory.running.comparison import _tune
from tests.cases import problem as network
from tests.test_rounds import refused

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("your-data.md", "your-network.md", "your-method.md", "your-experiment.md", "which-method.md", "coming-from.md")
PROBLEM = Quadratic.random(n=8, d=6, key=Key(0))


def test_the_rate_is_the_best_of_the_tuning_runs_and_the_seeds_are_others():
    found = compare_methods(["FedAvg", Scaffold(0.1, 5)], PROBLEM, 15, rates=(0.03, 0.3, 0.1), seeds=[3, 5], sampled=4)
    ends = {lr: run(FedAvg(lr, 5), PROBLEM, 15, sampled=4, seed=100)["error"][-1] for lr in (0.3, 0.1, 0.03)}
    assert {lr: found.tried["FedAvg"][lr] for lr in ends} == ends
    assert found.tried["SCAFFOLD"] == {}
    assert found.rates["SCAFFOLD"] is None
    best = min(found.tried["FedAvg"], key=found.tried["FedAvg"].get)
    assert found.rates["FedAvg"] == best
    for method in (FedAvg(best, 5), Scaffold(0.1, 5)):
        runs = found.runs[method.name]
        assert runs.seeds == (3, 5)
        again = [run(method, PROBLEM, 15, sampled=4, seed=seed)["error"] for seed in (3, 5)]
        assert [history["error"] for history in runs.histories] == again
    rows = found.rows()
    assert [row["error"] for row in rows] == sorted(row["error"] for row in rows)
    assert rows[0]["up_bytes"] == found.runs[rows[0]["method"]].histories[0]["up_bytes"][-1]
    assert all(row["method"] in repr(found) for row in rows)


def test_tuning_ends_where_the_runs_do():
    """A budget is spent in the first rounds, where a larger step pays; a rule's metric is measured in tuning, too."""
    stop = Budget(bytes=8 * 8 * 6 * 3)
    found = compare_methods(["FedAvg"], PROBLEM, 100, rates=(0.3, 0.01), seeds=1, stop=stop)
    alone = {lr: run(FedAvg(lr, 5), PROBLEM, 100, seed=100, stop=stop)["error"][-1] for lr in (0.3, 0.01)}
    assert {lr: found.tried["FedAvg"][lr] for lr in alone} == alone
    by_loss = compare_methods(["FedAvg"], PROBLEM, 9, rates=(0.1,), seeds=1, stop=EarlyStopping("loss"), metric="loss")
    assert by_loss.metric == "loss"
    assert "error" in repr(compare_methods([FedAvg(0.1, 5)], PROBLEM, 3, seeds=1, metrics=("loss",)))
    refused(lambda: compare_methods(["FedAvg"], PROBLEM, 3, checkpoint="kept"), "checkpoint=", "run_seeds")


@pytest.mark.parametrize(
    ("best", "tried"),
    [(0.1, {1, 0.3, 0.1, 0.03}), (10.0, {1, 0.3, 0.1, 0.03, 3, 9, 30}), (0.02, {1, 0.3, 0.1, 0.03, 0.01})],
)
def test_rates_go_on_beyond_an_end_where_the_best_one_lies(best, tried):
    assert set(_tune(lambda lr: abs(math.log(lr / best)), [1, 0.3, 0.1, 0.03])) == tried


def test_a_rate_that_diverges_is_never_chosen_and_accuracy_ranks_from_above():
    found = compare_methods(["FedAvg"], PROBLEM, 30, rates=(300.0, 0.1), seeds=1)
    assert found.tried["FedAvg"][300.0] == math.inf
    assert found.rates["FedAvg"] < 1
    images = network("mlp")
    found = compare_methods([FedAvg(0.3, 5), lambda lr: FedProx(lr, 5, 0.1)], images, 4, rates=(1e-5,), seeds=2)
    assert found.metric == "accuracy"
    accuracies = [row["accuracy"] for row in found.rows()]
    assert accuracies == sorted(accuracies, reverse=True)
    assert {"loss", "accuracy"} <= found.runs["FedAvg"].histories[0].columns.keys()


class Lost(FedAvg):
    """A server that ends in NaN."""

    name = "Lost"

    def server(self, server, down, up, clients, key):
        return replace(server, x=server.x * math.nan), None


def test_a_method_that_diverges_is_last_and_one_seed_has_no_interval():
    found = compare_methods([Lost(0.1, 5), FedAvg(1e-6, 5), lambda lr: FedProx(1e30, 5, 0.1)], PROBLEM, 5, seeds=1)
    assert [row["method"] for row in found.rows()] == ["FedAvg", "Lost", "FedProx"]
    assert [math.isnan(row["error"]) for row in found.rows()] == [False, True, True]
    assert repr(found).count("diverged") == 2
    assert "[" not in repr(found)
    runs = found.runs["FedAvg"]
    assert all(map(math.isnan, (*runs.interval()[1:], *runs.difference(runs)[1:])))
    assert runs.difference(runs)[0] == 0
    assert math.isnan(runs.difference(found.runs["Lost"])[0])


def test_a_comparison_comes_back_from_its_file(tmp_path):
    path = tmp_path / "found.json"
    found = compare_methods([lambda lr: FedProx(lr, 5, 0.1), Lost(0.1, 5)], PROBLEM, 8, rates=(1e4, 0.1), seeds=2)
    found.save(path)
    again = Comparison.load(path)
    assert repr(again) == repr(found)
    assert (again.metric, again.tried, again.rates) == (found.metric, found.tried, found.rates)
    assert again.tried["FedProx"][1e4] == math.inf
    for name, runs in found.runs.items():
        assert again.runs[name].seeds == runs.seeds
        for one, other in zip(again.runs[name].histories, runs.histories):
            assert str(one.columns) == str(other.columns)
            assert torch.equal(one.x, other.x)
            assert one.diverged == other.diverged
    path.write_text(path.read_text().replace('"metric": "error"', '"metric": "loss"'))
    refused(lambda: Comparison.load(path), "path=", "Comparison.save", "SHA-256")
    run(FedAvg(0.1, 5), PROBLEM, 2).save(path)
    refused(lambda: Comparison.load(path), "path=", "something else")


def test_each_record_is_logged_once_and_in_order(tmp_path):
    rows = []
    history = run(FedAvg(0.1, 5), PROBLEM, 6, every=2, log=rows.append, checkpoint=tmp_path)
    assert rows == list(history)
    run(FedAvg(0.1, 5), PROBLEM, 8, every=2, log=rows.append, checkpoint=tmp_path)
    assert [row["round"] for row in rows] == [0, 2, 4, 6, 8]
    rows.clear()
    run_seeds(FedAvg(0.1, 5), PROBLEM, 2, seeds=(4, 7), log=rows.append)
    assert [(row["seed"], row["round"]) for row in rows] == [(4, 0), (4, 1), (4, 2), (7, 0), (7, 1), (7, 2)]


def logger_blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "loggers.md").read_text(), re.DOTALL)


def test_tensorboard_holds_what_was_logged(tmp_path, monkeypatch):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    exec(logger_blocks()[0], space)
    found = events.EventAccumulator("runs/fedavg").Reload()
    history = space["history"]
    for name in history.columns:
        kept = found.Scalars(name)
        assert [one.step for one in kept] == history["round"]
        assert [one.value for one in kept] == pytest.approx(history[name], rel=1e-6)


def test_other_loggers_are_called_with_each_record(monkeypatch):
    """Stand-ins that note what they are given."""
    rows: dict[str, list] = {"wandb": [], "mlflow": []}
    wandb = SimpleNamespace(init=lambda project: None, log=rows["wandb"].append, finish=lambda: None)
    log = lambda row, step: rows["mlflow"].append((row, step))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(start_run=nullcontext, log_metrics=log))
    for block in logger_blocks()[1:]:
        space = {"run": run, "FedAvg": FedAvg, "Quadratic": Quadratic, "Key": Key}
        exec(block, space)
    wanted = list(space["history"])
    assert rows == {"wandb": wanted, "mlflow": [(row, row["round"]) for row in wanted]}


def test_what_cannot_be_compared_has_a_line():
    refused(lambda: compare_methods([], PROBLEM, 5), "methods=", "['FedAvg', 'SSF']")
    refused(lambda: compare_methods(["SSV"], PROBLEM, 5), "methods='SSV'")
    refused(lambda: compare_methods([SSF(0.1), "ssf"], PROBLEM, 5), "methods='SSF'", "once")
    refused(lambda: compare_methods([lambda lr: lr], PROBLEM, 5), "methods=", "lambda lr: FedAvg(lr, 5)")
    refused(lambda: compare_methods(["FedAvg"], PROBLEM, 5, rates=()), "rates=")
    refused(lambda: compare_methods(["FedAvg"], PROBLEM, 5, sample=3), "sample", "sampled")
    refused(lambda: compare_methods(["FedAvg"], PROBLEM, 0), "rounds=0")
    refused(lambda: compare_methods(["FedAvg"], PROBLEM, 5, metric="own"), "metric='own'", "error, loss")
    refused(lambda: compare_methods(["FedAvg"], PROBLEM, 5, seeds=[1, 100]), "seeds=", "100")


def test_what_does_not_suit_the_problem_is_refused_before_any_training(monkeypatch):
    played = []
    monkeypatch.setattr(comparison, "run_seeds", lambda *args, **options: played.append(args))
    monkeypatch.setattr(comparison, "_tune", lambda *args: played.append(args))
    several = lambda problem, x: x[:2]
    several.__name__ = "several"
    for methods, options, words in (
        (["SCAFFOLD", "SSF", "FedGen"], {}, "a problem with a network"),
        (["SCAFFOLD"], {"seeds": 0}, "seeds=0"),
        (["SCAFFOLD"], {"metric": "accuracy"}, "accuracy"),
        (["SCAFFOLD"], {"metric": "several", "metrics": [several]}, "several[0], several[1]"),
    ):
        refused(functools.partial(compare_methods, methods, PROBLEM, 5, **options), words)
    assert not played


def test_an_own_metric_ranks_from_below():
    def size(problem, x):
        return float(x.norm())

    found = compare_methods(
        [FedAvg(0.1, 5), Scaffold(0.05, 5)], PROBLEM, 5, seeds=2, metric="size", metrics=("error", size)
    )
    assert list(found.runs["FedAvg"].histories[0].columns)[:3] == ["round", "size", "error"]
    assert [row["size"] for row in found.rows()] == sorted(row["size"] for row in found.rows())


@pytest.mark.parametrize(("method", "seed"), [("FedAvg", 100), ("FedAvg", 1), ("SSF", 100), ("SSF", 1)])
def test_ctrl_c_at_a_prompt_leaves_the_finished_methods(method, seed, monkeypatch):
    """In tuning (seed 100) or in the second seed: a method that lacks a seed is left out."""

    @functools.wraps(run)
    def interrupted(algorithm, problem, rounds, **options):
        history = run(algorithm, problem, rounds, **options)
        history.interrupted = 2 if rounds and (algorithm.name, options["seed"]) == (method, seed) else None
        return history

    monkeypatch.setattr(comparison, "run", interrupted)
    monkeypatch.setattr(seeds_of, "run", interrupted)
    monkeypatch.setattr(sys, "ps1", "> ", raising=False)
    compared = lambda: compare_methods(["FedAvg", "SSF"], PROBLEM, 5, rates=(0.3, 0.1, 0.03), seeds=2)
    if method == "FedAvg":
        with pytest.raises(KeyboardInterrupt):
            compared()
        return
    with pytest.warns(UserWarning, match="the comparison was interrupted: it lacks SSF"):
        found = compared()
    assert list(found.runs) == list(found.tried) == list(found.rates) == ["FedAvg"]
    assert len(found.rows()) == 1
    monkeypatch.delattr(sys, "ps1")
    with pytest.raises(KeyboardInterrupt):
        compared()


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    text = (ROOT / "docs" / page).read_text()
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page, "exec"), space)
    printed = capsys.readouterr().out
    shown = re.findall(r"```\n(method .*?)```", text, re.DOTALL)
    assert len(shown) == bool(printed)
    for below in shown:  # the last digits may differ from machine to machine
        number = r"\d\.\d+"
        assert re.sub(number, "", printed).split() == re.sub(number, "", below).split()
        found = [list(map(float, re.findall(number, one))) for one in (printed, below)]
        assert found[0] == pytest.approx(found[1], rel=0.05)


def test_rates_are_tried_as_they_are_given():
    found = compare_methods(["FedAvg"], PROBLEM, 3, rates=(0.125, 0.1251), seeds=1)
    assert {0.125, 0.1251} <= found.tried["FedAvg"].keys()


def test_a_single_seed_is_refused_before_any_training():
    seen = []
    with pytest.raises(ValueError, match="seed=3"):
        compare_methods([lambda lr: FedAvg(lr, 5)], PROBLEM, 3, seeds=2, seed=3, log=seen.append)
    assert seen == []


def test_bytes_are_means_over_the_seeds():
    found = compare_methods([FedAvg(0.1, 5)], PROBLEM, 9, seeds=4, dropout=0.5)
    sent = [history["up_bytes"][-1] for history in found.runs["FedAvg"].histories]
    assert found.rows()[0]["up_bytes"] == round(sum(sent) / 4) != sent[0]
