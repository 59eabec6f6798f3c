"""`advise` against tables made by hand, and against the committed comparisons."""

import math
from pathlib import Path

import pytest

from fedtheory import advise
from fedtheory.compare import METHODS
from fedtheory.papers import EXTRAS, advice
from fedtheory.papers.frontier import advised
from fedtheory.running import records


def line(method, quality, half=1.0, **costs):
    row = {"method": method, "quality": quality, "low": quality - half, "high": quality + half, "seeds": 5}
    return row | dict.fromkeys(advice.AXES, 1.0) | {"ran rounds": 60} | costs


@pytest.fixture
def tables(monkeypatch):
    """Four methods on two tasks, and under two conditions."""
    found = {
        "digits": [line("FedAvg", 90), line("SSF", 91, up=0.6), line("STC", 80, up=0.4), line("SCAFFOLD", 95)],
        "mnist": [line("FedAvg", 70, up=3), line("SSF", 69, up=0.9), line("STC", math.nan, up=0.3)],
    }
    found["mnist"].append(line("SCAFFOLD", 75, up=6.0))  # MNIST's model is the larger one
    found["participants"] = [line(n, 60 + a, value=v) for v in (20, 5, 1) for n, a in (("FedAvg", v), ("SSF", -v))]
    found["heterogeneity"] = [line("FedAvg", 50, value=0.05), line("FedAvg", 40, value=10.0)]
    monkeypatch.setattr(advice.records, "load", lambda out, item: {"table": found[item.removeprefix("frontier/")]})
    return ["digits", "mnist"]


def test_the_surely_best_stays_alone_without_limits(tables):
    found = advise(tasks=tables)
    assert found.methods == ("SCAFFOLD",)
    assert set(found.beaten) == {("FedAvg", "digits"), ("SSF", "digits"), ("STC", "digits")}
    assert set(found.untried) == set(METHODS) - {"FedAvg", "SSF", "STC", "SCAFFOLD"}


def test_bytes_are_limited_on_the_largest_model_and_overlapping_intervals_decide_nothing(tables):
    found = advise(up=1.0, tasks=tables)
    assert found.dear == ("SCAFFOLD",)
    assert found.methods == ("FedAvg", "SSF")
    assert [row["behind"] for row in found.rows] == [0.5, 0.5]
    assert found.rows[1]["up"] == 0.3
    (left,) = advise(up=0.25, tasks=tables).rows
    assert (left["method"], left["behind"]) == ("STC", 0.0)  # all that is left, although it diverged
    assert advise(up=0.25, tasks=tables).beaten == ()


def test_a_limit_holds_for_the_ratio_and_its_header_and_where_each_is_beaten_somewhere_all_stay(tables, monkeypatch):
    assert advise(up=0.3 / 1.004, tasks=tables).methods == ("SSF",)
    assert advise(up=0.3 / 1.006, tasks=tables).methods == ("STC",)
    found = {"digits": [line("FedAvg", 50), line("SSF", 90)], "mnist": [line("FedAvg", 90), line("SSF", 50)]}
    monkeypatch.setattr(advice, "compared", lambda task: {row["method"]: row for row in found[task]})
    both = advise(tasks=tables)
    assert {*both.methods} == {"FedAvg", "SSF"}
    assert not both.beaten


def test_a_condition_adds_the_digits_at_the_nearest_value(tables):
    found = advise(participation=0.04, up=1.0, tasks=tables)
    assert found.sources[-1] == "digits at participation 0.05, n=5"
    assert found.rows[0]["digits at participation 0.05"] == 61
    assert advise(participation=0.4, up=1.0, tasks=tables).sources == ("digits, n=5", "mnist, n=5")  # 1/4 is theirs
    assert advise(participation=0.4, up=1.0, tasks=["mnist"]).sources[-1] == "digits at participation 0.25, n=5"
    assert advise(heterogeneity=3, tasks=tables).sources[-1] == "digits at heterogeneity 10, n=5"


def test_what_is_refused(tables):
    with pytest.raises(ValueError, match=r"^up=0.01: .*the least is 0.1$"):
        advise(up=0.01, tasks=tables)
    with pytest.raises(ValueError, match=r"^memory=0.01: .*raise it"):
        advise(up=1.0, memory=0.01, tasks=tables)
    with pytest.raises(ValueError, match=r"participation=1\.5"):
        advise(participation=1.5, tasks=tables)
    with pytest.raises(ValueError, match="memory=0"):
        advise(memory=0, tasks=tables)
    with pytest.raises(ValueError, match="tasks"):
        advise(tasks=[])


def test_the_committed_comparisons_answer_the_pages_question():
    """Within limits, every method that stays keeps them on all tasks, and none that goes is missing from the list."""
    found = advise(up=1 / 16, participation=0.1)
    assert all(row["up"] <= 1 / 16 * advice.SLACK for row in found.rows)
    gone = {name for name, _ in found.beaten}
    assert {*found.methods, *gone, *found.dear, *found.untried} == set(METHODS)
    assert not gone & {*found.methods}
    assert str(found).splitlines()[1].startswith(found.methods[0])
    for axis in advice.AXES:  # what the message names is enough
        with pytest.raises(ValueError, match="the least is") as raised:
            advise(**{axis: 1e-6})
        assert advise(**{axis: float(str(raised.value).split()[-1])}).methods


def test_the_committed_judgement_is_todays():
    """The advice from three tasks on the fourth, made again from the committed comparisons."""
    again = advised.measure("medium", 1)
    kept = records.load(records.results(), "frontier/advice")
    assert kept["table"] == again.table
    assert kept["notes"] == again.notes
    page = (Path(__file__).parent.parent / "docs/which-method.md").read_text()
    most = max(row["behind"] for row in again.table)
    assert f"{again.notes[0]} The largest gap is {most:.1f} points." in " ".join(page.split())
    assert f"Without limits `advise()` names {' and '.join(advise().methods)}." in page
    first = advise(up=1 / 4, participation=0.1).methods[0]
    assert f"`advise(up=1 / 4, participation=0.1)` names {first} first." in " ".join(page.split())
    few = " and ".join(advise(up=1 / 160, participation=0.1).methods)
    assert f"`advise(up=1 / 160, participation=0.1)` names {few}." in " ".join(page.split())
    assert EXTRAS["frontier/advice"].draw(again.table).axes


def test_what_the_page_says_of_memory_and_of_hiso():
    page = " ".join((Path(__file__).parent.parent / "docs/which-method.md").read_text().split())
    tasks = [advice.compared(task) for task in advice.TASKS]
    share = lambda name: [rows[name]["memory"] / rows["FedAvg"]["memory"] for rows in tasks]
    low, high = zip(*((f"{min(of):.2f}", f"{max(of):.2f}") for of in map(share, ("BAFFLE", "DeComFL"))))
    assert f"BAFFLE needs {low[0]} to {high[0]} of FedAvg's memory, DeComFL {low[1]} to {high[1]}." in page
    (few,) = advice._under("participation", 0.05, True).values()
    low = next(
        row
        for row in records.load(records.results(), "frontier/compression")["table"]
        if (row["task"], row["method"], row["value"]) == ("digits", "STC", 1 / 128)
    )
    assert f"STC reaches {low['quality']:.1f}% on the digits" in page
    assert f"HiSo {tasks[0]['HiSo']['quality']:.1f}%." in page
    assert f"STC has {few['STC']['quality']:.1f}% at 1/32, HiSo {few['HiSo']['quality']:.1f}%." in page
    hard = tasks[-1]
    assert f"{hard['HiSo']['quality']:.1f}% on CIFAR-10, where FedAvg reaches {hard['FedAvg']['quality']:.1f}%" in page
