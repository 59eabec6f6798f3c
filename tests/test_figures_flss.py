"""FLSS's tables: what their cells say, and that costs are those of messages that were sent."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cases import K, quadratic

from fedtheory import FLSS, STC, FedAvg, FetchSGD, SignSGD, run
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.papers import ITEMS
from fedtheory.papers.flss import precision
from fedtheory.papers.flss.items import (
    AGAINST,
    AT_LENGTH,
    BETAS,
    COMPARED,
    SETTINGS,
    cost_cell,
    level,
    measure_epochs,
    measure_heterogeneity,
    measure_lbgm,
    notes_of,
    on_fashion,
)
from fedtheory.papers.store import measured
from fedtheory.running import records
from fedtheory.theory.flss.printed import (
    COSTS3,
    PARAMETERS,
    TABLE1,
    TABLE2,
    TABLE3,
    TABLE4,
    fits,
    method,
    printed_cost,
    sent,
)

SMALL = FLSSReading(0.05, K, 3, 4)  # three words are not three signs and their scale
SENDERS = (
    FedAvg(0.05, K),
    SignSGD(0.05, K),
    FetchSGD(0.05, K, 1 / 4, size=3 / 4),
    STC(0.05, K, 1 / 4),
    SMALL,
    replace(SMALL, refresh=0),
    replace(SMALL, base="signsgd"),
    replace(SMALL, base="signsgd", order="sign"),
)


@pytest.mark.parametrize("algorithm", SENDERS, ids=repr)
def test_costs_are_those_of_the_messages_of_a_run(algorithm):
    """Round by round, the words that `sent` says are the bytes that `run` counts."""
    problem = quadratic(dtype=torch.float32)
    up = run(algorithm, problem, 15, metrics=())["up_bytes"]
    for t in range(15):
        assert (up[t + 1] - up[t]) / problem.n / 4 == sent(algorithm, problem.d, range(t, t + 1))


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ("quick", ": digits for CIFAR-10, digits for Fashion-MNIST, mlp for the CNN, mlp for ResNet-18;"),
        ("medium", ": flss-cnn for ResNet-18;"),
    ],
)
def test_no_data_set_stands_in_for_itself(scale, said):
    """Nor one for a set that the item does not run on: Figure 1a is on Fashion-MNIST alone."""
    at = SETTINGS[scale]
    for own in (at, replace(at, data=at.fashion)):
        (note,) = (note for note in notes_of(own, scale) if note.startswith("Stand-ins"))
        assert said in note
    assert not any(note.startswith("Stand-ins") for note in notes_of(SETTINGS["paper"], "paper"))


def test_table_3_counts_the_second_half_and_table_4_all():
    """R = 40 and 40 unprojected rounds of 200: 35.14 M and 0.21 G; one printed number is not explained."""
    flss, signed = (method(name, SETTINGS["paper"]) for name in ("FedAvg+FLSS", "Sign+EF+FLSS"))
    assert sent(flss, PARAMETERS["CNN"], range(200, 400)) == 40 * 878_538 + 160 * 40
    assert sent(flss, PARAMETERS["CNN"], range(400)) == 240 * 878_538 + 160 * 40
    assert fits("1.11 M", sent(signed, PARAMETERS["CNN"], range(200, 400))) == "neither rounded nor cut off"
    for name, texts in COSTS3.items():
        for network, text in zip(("CNN", "ResNet-18"), texts):
            cell = cost_cell("", name, text, network, range(200, 400))
            unexplained = (name, network) == ("Sign+EF+FLSS", "CNN")
            assert cell.verdict == ("contradicted" if unexplained else "matches")


@pytest.mark.parametrize(
    ("text", "words", "how"),
    [
        ("0.17 G", 175.7e6, "cut"),
        ("0.18 G", 175.7e6, "rounded"),
        ("0.16 G", 175.7e6, "neither"),
        ("0.20 G", 195.1e6, "rounded"),
        ("14.0 M", 13.94e6, "neither"),
        ("35.14 M", 35.1479e6, "cut"),
        ("35.14 M", 35.151e6, "neither"),
    ],
)
def test_a_cost_is_rounded_or_cut_off(text, words, how):
    assert printed_cost("35.14 M") == 35.14e6
    assert fits(text, words).startswith(how)


@pytest.mark.parametrize(
    ("ours", "rival", "ran", "verdict", "said"),
    [
        ([50.0, 50.4, 50.8], [48.0, 48.5, 48.7], "reduced", "direction holds", ": as printed"),
        ([50.0, 50.4, 50.8], [50.0, 50.5, 50.7], "reduced", "inconclusive", "not decide"),
        ([48.0, 48.5, 48.7], [50.0, 50.4, 50.8], "reduced", "direction reversed", "only the paper's can decide"),
        ([86.0, 86.2, 86.4], [86.0, 86.3, 86.3], "paper's", "matches", "where it is printed"),
        ([50.0, 50.2, 50.4], [40.0, 40.1, 40.2], "paper's", "contradicted", "lies elsewhere"),
        ([50.0], [40.0], "reduced", "inconclusive", "two at least decide"),
        ([50.0, 50.4, math.nan], [48.0, 48.5, 48.7], "reduced", "inconclusive", "diverges in 1 of 3 seeds"),
    ],
)
def test_an_ordering_is_confirmed_by_its_whole_interval(ours, rival, ran, verdict, said):
    """Levels count at the paper's scale only; one seed, or a run that diverged, confirms nothing."""
    paper = {"FedAvg+FLSS": 86.25, "FedAvg": 85.06}
    cell = level(paper, {"FedAvg+FLSS": ours, "FedAvg": rival}, "FedAvg+FLSS", "FedAvg", ran)
    assert cell.verdict == verdict
    assert cell.reason.endswith(said)


def test_what_the_appendix_prints_twice_is_equal():
    """Table 1's first number is Table 3's for ResNet-18 and 5 epochs; Table 4's second is Table 3's for the CNN."""
    assert TABLE1["update", 1] == TABLE3["FedAvg+FLSS"][4]
    assert TABLE4["FedAvg+FLSS"][1] == TABLE3["FedAvg+FLSS"][1]
    assert all(len(row) == 9 for row in TABLE2.values())
    assert all(len(row) == 6 for row in (*TABLE3.values(), *TABLE4.values()))


def test_every_method_has_a_rival():
    assert set(AGAINST) >= {*TABLE2, *TABLE3, *TABLE4}


class Fake:
    """Runs that end at an accuracy, and send half a model each time, or as many percent as asked for."""

    def __init__(self, sent=50):
        self.specs, self.sent = [], sent

    def __call__(self, specs):
        self.specs += specs
        columns = {"up_bytes": [0, self.sent], "down_bytes": [0, 100]}
        return {one: {"diverged": None, "columns": columns | {"accuracy": 2 * [0.5 + one.seed / 100]}} for one in specs}


def test_methods_are_compared_on_the_same_seeds_and_costs_follow_what_was_sent():
    whole = measured(Fake(), measure_lbgm("medium", 3))
    (level,) = (cell for cell in whole.cells if cell.cell == "CIFAR-10 beta=1 LBGM")
    assert "minus CIFAR-10 beta=1 FedAvg+FLSS +0 [+0, +0]" in level.reason
    assert level.verdict == "inconclusive"
    (cost,) = (cell for cell in whole.cells if cell.cell == "CIFAR-10 beta=0.5 cost LBGM")
    assert cost.ours == 0.5 * 400 * PARAMETERS["CNN"]


@pytest.mark.parametrize(("sent", "verdict"), [(98, "inconclusive"), (100, "not tested")])
def test_at_the_same_cost_is_a_condition(sent, verdict):
    """Where LBGM sends every model nothing is said of it; of the others all is as it was."""
    cells = {cell.cell: cell for cell in measured(Fake(sent), measure_lbgm("medium", 3)).cells}
    ran = [cells[f"CIFAR-10 beta={beta} LBGM"] for beta in ("0.1", "0.5", "1")]
    assert [cell.verdict for cell in ran] == 3 * [verdict]
    assert all(("it is FedAvg" in cell.reason) == (sent == 100) for cell in ran)
    assert cells["CIFAR-10 beta=0.1 FedAvg+FLSS"].verdict == "inconclusive"


class Same:
    """Runs that all reach the same accuracy."""

    def __init__(self):
        self.specs = []

    def __call__(self, specs):
        self.specs += specs
        one = {"diverged": None, "columns": {"accuracy": [0.5] * 11, "up_bytes": [1.0] * 11, "down_bytes": [1.0] * 11}}
        return dict.fromkeys(self.specs, one)


def test_the_large_scale_has_one_column_at_the_printed_length():
    """Five methods with three seeds; the same column's other methods are not run, and no other column changes."""
    found = {scale: (runner := Same(), measured(runner, measure_epochs(scale, 3))) for scale in ("medium", "large")}
    long = [one for one in found["large"][0].specs if one.rounds == 400]
    assert len(long) == 3 * len(COMPARED)
    assert {(dict(one.options)["clients"], one.sampled, "side" in dict(one.options)) for one in long} == {
        (100, 10, False)
    }
    ran = {scale: {cell.cell for cell in result.cells if cell.seeds == 3} for scale, (_, result) in found.items()}
    first = {label for label in ran["medium"] if "epochs=1 " in label}
    assert ran["medium"] - ran["large"] == {label for label in first if label.split("epochs=1 ")[1] not in COMPARED}
    assert ran["large"] < ran["medium"]
    others = {scale: [one for one in of[0].specs if one.rounds != 400] for scale, of in found.items()}
    assert set(others["large"]) < set(others["medium"])
    assert "CNN, epochs=1" in found["large"][1].settings


class Ahead(Same):
    """Runs of FLSS that lie a point below FedAvg's, in every seed."""

    def __call__(self, specs):
        found = super().__call__(specs)
        behind = {"accuracy": [0.5 - 0.01] * 11}
        return {
            one: {**run, "columns": run["columns"] | (behind if isinstance(one.algorithm, FLSS) else {})}
            for one, run in found.items()
        }


class AheadBySeed(Ahead):
    """The same, and every seed a point above the one before."""

    def __call__(self, specs):
        found = super().__call__(specs)
        up = lambda one: [a + 0.01 * one.seed for a in found[one]["columns"]["accuracy"]]
        return {one: {**run, "columns": run["columns"] | {"accuracy": up(one)}} for one, run in found.items()}


def test_table_2_at_the_large_scale_judges_levels_and_orders_in_full():
    """All images, in bfloat16; what is judged so is not judged at the medium scale, and nothing else changes."""
    runner = Ahead()
    result = measured(runner, measure_heterogeneity("large", 5))
    long = [one for one in runner.specs if one.rounds == 400]
    assert {one.seed for one in long} == {0, 1, 2}
    assert {one.seed for one in runner.specs} == set(range(5))
    assert {(one.algorithm.local_steps, one.sampled, one.words()["options"]["mixed"]) for one in long} == {
        (60, 10, True)
    }
    assert not any("subset" in dict(one.options) or "side" in dict(one.options) for one in long)
    assert (
        {dict(one.options)["data"] for one in long} == {"fashion_mnist"} == {result.settings["FMNIST in full"]["data"]}
    )
    cells = {cell.cell: cell for cell in result.cells}
    assert len(cells) == len(result.cells)
    order = cells["FMNIST in full, beta=0.1 FedAvg < FedAvg+FLSS"]
    assert (order.ours, order.paper) == pytest.approx((-1, 86.25 - 85.06))
    assert (order.verdict, order.ran) == ("inconclusive", "inferred")  # these three runs are alike
    level = cells["FMNIST in full, beta=0.1 FedAvg, level"]
    assert (level.verdict, level.paper, level.ours) == ("not tested", 85.06, 50)
    before = {cell.cell: cell for cell in measured(Ahead(), measure_heterogeneity("medium", 5)).cells}
    assert set(AT_LENGTH) <= set(BETAS)
    assert all(AGAINST[name] in names for names in AT_LENGTH.values() for name in names)
    settled = {f"FMNIST beta={beta:g} {name}" for beta, names in AT_LENGTH.items() for name in names}
    assert settled == set(before) - set(cells)
    assert {name: cell for name, cell in cells.items() if "in full" not in name} == {
        name: cell for name, cell in before.items() if name not in settled
    }


def test_an_epoch_of_table_2_is_one_of_its_data_set():
    """A mean client of 100 has 600, 500 and 1,000 images; batches have 50."""
    runner = Same()
    measured(runner, measure_heterogeneity("paper", 1))
    steps = {dict(one.options)["data"]: one.algorithm.local_steps for one in runner.specs}
    assert steps == {"fashion_mnist": 60, "cifar100": 50, "tiny_imagenet": 100}
    assert on_fashion(SETTINGS["paper"]).epoch == 12
    assert on_fashion(SETTINGS["medium"]).epoch == SETTINGS["medium"].epoch


class Rounded(Same):
    """FLSS a point below its base in float32, and two points below in bfloat16."""

    def __call__(self, specs):
        found = super().__call__(specs)
        lost = lambda one: 0.01 * isinstance(one.algorithm, FLSS) * (1 + (dict(one.options)["precision"] == "bf16"))
        return {
            one: {**run, "columns": run["columns"] | {"accuracy": [0.5 - lost(one)] * 11}} for one, run in found.items()
        }


def test_flss_is_compared_in_both_precisions():
    """The runs in float32 are Table 2's own; the gain of each base is looked at, too."""
    runner = Rounded()
    result = measured(runner, precision.measure("medium", 2))
    table2 = Same()
    measured(table2, measure_heterogeneity("medium", 2))
    kinds = [one.words()["options"].get("mixed", False) for one in runner.specs]
    assert kinds.count(True) == kinds.count(False) == 2 * len(precision.NAMES)
    assert sum(str(one.words()) in {str(of.words()) for of in table2.specs} for one in runner.specs) == kinds.count(
        False
    )
    assert [row["method"] for row in result.table] == [*precision.NAMES, "mean of all"]
    said = "-1.00 points in float32, -2.00 in bfloat16; the change is -1.00 [-1.00, -1.00]"
    assert result.notes[1:3] == [f"FedAvg+FLSS less FedAvg: {said}", f"Sign+EF+FLSS less Signsgd+EF: {said}"]


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        ("flss/table1", [("ResNet-18 (run: flss-cnn), 50 rounds", 3)]),
        ("flss/table2", [("FMNIST, 50 rounds", 3), ("FMNIST, 400 rounds as printed", 3)]),
        ("flss/table3", [("CNN, 50 rounds", 2), ("CNN, 400 rounds as printed", 1)]),
        ("flss/table4", [("CIFAR-10, 50 rounds", 3)]),
    ],
)
def test_a_row_of_panels_per_length_and_the_differences_beside(name, panels):
    """What is printed stands beside ours at the printed length alone, and beside all differences."""
    record = records.load(Path(__file__).parent.parent / "figures", name)
    axes = ITEMS[name].draw(record["table"]).axes
    assert len(axes) == 2 * len(panels)
    for levels, gaps, (title, settings) in zip(axes[::2], axes[1::2], panels, strict=True):
        rounds = int(title.split(" rounds")[0].split()[-1])
        rows = [row for row in record["table"] if row["ran rounds"] == rounds]
        apart = [row for row in rows if row["method"] != row["against"]]
        assert levels.get_title() == title
        assert len(levels.get_xticklabels()) == len(gaps.get_xticklabels()) == settings
        assert gaps.get_ylabel() == f"points, minus {rows[0]['against']}'s"
        drawn = {"mean": levels.containers, "gap": gaps.containers}
        for part, of in (("mean", rows), ("gap", apart)):
            assert sorted(one.lines[0].get_ydata()[0] for one in drawn[part]) == sorted(row[part] for row in of)
        hollow = [
            sorted(y for line in at.get_lines() if line.get_markerfacecolor() == "none" for y in line.get_ydata())
            for at in (levels, gaps)
        ]
        assert hollow == [
            sorted(row["paper"] for row in rows) if "as printed" in title else [],
            sorted(row["printed gap"] for row in apart),
        ]


def test_differences_are_paired_by_seed_and_to_the_columns_first_method():
    """Seeds differ by a point here and methods by a point, so that intervals overlap and differences are sure."""
    table = [
        row for row in measured(AheadBySeed(), measure_heterogeneity("large", 5)).table if row["panel"] == "FMNIST"
    ]
    assert {row["against"] for row in table} == {"FedAvg"}
    for row in table:
        behind = -1 if "FLSS" in row["method"] else 0
        assert (row["gap"], row["gap low"], row["gap high"]) == pytest.approx(3 * (behind,))
        assert row["high"] - row["low"] > 2
    of = {(row["setting"], row["method"]): row["printed gap"] for row in table}
    assert of["in full, beta=0.1", "FedAvg+FLSS"] == pytest.approx(86.25 - 85.06)
    assert of["in full, beta=0.1", "FedAvg"] == 0


def test_what_is_said_of_our_setting_beside_the_papers():
    """Conclusions and results: SignSGD alone, LBGM's bytes, and ten times the rate, here and in print."""
    cells = {
        (item, cell["cell"]): cell
        for item in ("flss/table1", "flss/table2", "flss/table4")
        for cell in records.load(Path(__file__).parent.parent / "figures", item)["cells"]
    }
    alone = cells["flss/table2", "FMNIST in full, beta=0.1 Signsgd+EF, level"]
    assert alone["ours"] - alone["paper"] == pytest.approx(5.4, abs=0.05)
    for beta in ("0.1", "0.5", "1"):
        sent = cells["flss/table4", f"CIFAR-10 beta={beta} cost LBGM"]
        whole = cells["flss/table4", "CIFAR-10 beta=1 cost LBGM"]["ours"]
        assert sent["ours"] > 0.99 * whole
        assert 0.55 < sent["paper"] / whole < 0.61
    once, tenfold = (cells["flss/table1", f"gradient, sr={sr}"] for sr in (1, 10))
    assert once["ours"] - tenfold["ours"] == pytest.approx(11, abs=0.3)
    assert tenfold["paper"] > once["paper"]
