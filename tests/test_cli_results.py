"""The command line's further words: scales of a report, items that are missing, options of long runs."""

import pytest

from fedtheory import Key, Quadratic, cli, compare_methods
from fedtheory.cli import report as cli_report
from fedtheory.cli.figures import chosen_items
from fedtheory.core.files import seal, sha256
from fedtheory.papers import redraw
from fedtheory.running import records


def _record(out, scale, rounds):
    cell = records.Cell("c", 1.0, 1.0, 1.0, 1.0, 1, "matches", "as printed", "count").written()
    table = records.to_csv([{"a": 1, **records.behind("data", f"net at {scale}", rounds)}]).encode()
    of = {"item": "ssf/table1", "title": "t", "scale": scale, "seeds": [0], "cells": [cell], "notes": [f"of {scale}"]}
    of |= {"settings": {}, "versions": {}, "device": "cpu", "seconds": 1.0}
    of |= {"files": {"csv": sha256(table), "png": sha256(b"p")}}
    stem = records.place(out, "ssf/table1", scale)
    stem.parent.mkdir(parents=True)
    records.commit(stem, {"csv": table, "png": b"p", "json": seal(records.plain(of))})


def test_a_report_of_one_scale_shows_that_scales_runs(tmp_path, capsys):
    _record(tmp_path, "paper", 100)
    _record(tmp_path, "medium", 7)
    page = tmp_path / "page.md"
    assert cli.main(["report", "--out", str(tmp_path), "--scale", "medium", "--page", str(page)]) == 0
    assert "Scale: medium. Run: net at medium on data, 7 rounds." in page.read_text()
    assert "of medium" in page.read_text()
    assert "of paper" not in page.read_text()
    capsys.readouterr()
    assert cli.main(["report", "--out", str(tmp_path), "--scale", "large"]) == 2
    assert "scale='large'" in capsys.readouterr().err


def test_an_item_of_another_scale_is_not_said_to_be_missing(tmp_path):
    (listed,) = (one for one in cli_report.list_items([], ["ssf/table1"]) if one["item"] == "ssf/table1")
    assert "not made" not in listed["reason"]


def test_the_command_line_can_do_what_a_refused_checkpoint_asks_for(tmp_path, capsys):
    given = ["run", "FedAvg", "quadratic", "--checkpoint", str(tmp_path)]
    assert cli.main([*given, "--rounds", "3", "--every", "4"]) == 0
    assert cli.main([*given, "--rounds", "5"]) == 2  # as a long run that was interrupted and is now to be shorter
    assert "Fix: pass every=4" in capsys.readouterr().err
    assert cli.main([*given, "--rounds", "5", "--every", "4"]) == 0


def test_a_seed_may_be_as_large_as_the_options_say():
    assert cli.main(["run", "FedAvg", "quadratic", "--rounds", "1", "--seed", str(2**63 - 1)]) == 0


@pytest.mark.parametrize("item", ["frontier/mnist", "fedsub/fig2", "frontier/advice", "ssf/table3"])
def test_the_command_that_makes_a_missing_item_offers_it(item, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        records.load(tmp_path, item)
    words = str(error.value).partition("Fix: python -m fedtheory ")[2].split()
    options = cli.parser().parse_args(words)
    (found,) = chosen_items(options.items, options.scale or "quick")
    assert (options.scale or "quick") in found.scales


def test_a_missing_item_that_does_not_exist_is_spelled(tmp_path):
    with pytest.raises(FileNotFoundError, match="spell it ssf/table3"):
        records.load(tmp_path, "ssf/tabel3")


def test_a_committed_run_that_is_not_there_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDTHEORY_ROOT", str(tmp_path))
    assert cli.main(["reproduce", "mud/fig5", "--out", str(tmp_path / "out"), "--json"]) == 0
    assert "mud/fig5: left out" in capsys.readouterr().err


def test_a_task_of_a_larger_scale_names_that_scale(capsys):
    assert cli.main(["compare", "--tasks", "mnist"]) == 2
    said = capsys.readouterr().err
    assert "--scale medium" in said
    assert "MeZO" not in said


def test_no_projection_has_no_rank(capsys):
    asked = ["run", "FedSub", "quadratic", "--rounds", "1", "--projection", "identity"]
    assert cli.main([*asked, "--rank", "3"]) == 2
    assert "leave out --rank" in capsys.readouterr().err
    assert cli.main(asked) == 0


def test_a_logger_of_run_seeds_serves_a_comparison():
    problem, seen = Quadratic.random(n=4, d=3, key=Key(0)), []
    compare_methods(["FedAvg"], problem, 2, seeds=[3], log=lambda row: seen.append(row["seed"]))
    assert seen == [3, 3, 3]


def test_a_quick_picture_drawn_again_is_the_same(tmp_path):
    assert cli.main(["reproduce", "fedsub/table1", "--out", str(tmp_path), "--workers", "1"]) == 0
    assert not redraw.redraw(tmp_path, "fedsub/table1")


def test_what_cannot_be_drawn_again_is_said_in_a_line(tmp_path):
    with pytest.raises(SystemExit, match="redraw: item='ssf/table3'"):
        redraw.main(["--out", str(tmp_path / "none"), "ssf/table3"])
    assert not (tmp_path / "none").exists()
