"""FedMUD's tables and figures: the printed numbers agree with each other, and the verdicts say what the runs say."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fedtheory import FedAvg, FedMUD
from fedtheory.papers import EXTRAS, archive, store
from fedtheory.papers.accuracy import last
from fedtheory.papers.mud import items as mud
from fedtheory.papers.mud import precision, settings, tuning
from fedtheory.papers.mud.items import measure_table
from fedtheory.papers.mud.settings import SETTINGS, algorithm, spec
from fedtheory.papers.precision import ALL
from fedtheory.papers.store import measured
from fedtheory.running import records, verdicts
from fedtheory.theory.mud.printed import TABLE1, TABLE2, TABLE3, TABLE4, named


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
        names = [name for name in self.values if algorithm(name, "CIFAR-10 N1", "medium") == one.algorithm]
        last = self.values[names[0]] + 0.001 * one.seed
        return {"diverged": None, "columns": {"accuracy": [0.1, last - 0.01, last + 0.01], "up_bytes": [0, 1, 2]}}


def test_every_printed_number_has_a_cell_a_verdict_and_a_reason():
    """All methods as far apart as in the paper: every order holds; levels are compared with FedAvg's."""
    runner = Fake({name: values[4] / 100 - 0.3 for name, values in TABLE1.items()})
    result = measured(runner, measure_table("medium", 6, "mud/table1", TABLE1, named("N1", "N2"), mud.ORDERS1))
    ran = [cell for cell in result.cells if cell.seeds]
    assert len(result.cells) == 80 + len(mud.ORDERS1)
    assert len(ran) == 10 + len(mud.ORDERS1)
    assert all(cell.reason for cell in result.cells)
    assert ran[0].verdict == "not tested"
    assert {cell.verdict for cell in ran[1:]} == {"direction holds"}
    assert {(cell.ran, cell.tuning) for cell in ran} == {("reduced", "ours")}
    assert all(math.isnan(cell.ours) and cell.verdict == "not tested" for cell in result.cells if cell not in ran)
    differences = [cell for cell in ran if " < " in cell.cell]
    assert [cell.ours for cell in differences] == pytest.approx([cell.paper for cell in differences])
    assert [row["ours"] for row in result.table if row["seeds"]] == pytest.approx([c.ours for c in ran if c.paper > 30])
    gaps = [(row["gap"], row["gap low"], row["gap high"]) for row in result.table if row["seeds"]]
    assert gaps == [pytest.approx([row["printed gap"]] * 3) for row in result.table if row["seeds"]]
    assert [row["printed gap"] for row in result.table[:2]] == pytest.approx([0.0, -3.1])
    assert all(math.isnan(row["gap"]) for row in result.table if not row["seeds"])


def test_every_compression_method_is_set_against_the_best_variant():
    """At bytes that are equal to a sixth: the ratio holds for the whole network."""
    best = "FedMUD+BKD+AAD"
    assert {low for low, high in mud.ORDERS1 if high == best} == set(TABLE1) - {"FedAvg", best, "FedMUD"}
    of = settings.model("CIFAR-10 N1", "medium")
    for name in settings.METHODS:
        how = algorithm(name, "CIFAR-10 N1", "medium").decomposition
        assert 27 / 1000 < sum(part.size for part in how.parts(of)) / of.size <= 1 / 32 + 0.001, name


@pytest.mark.parametrize(
    ("item", "tried", "chosen", "each", "beyond"),
    [
        ("mud/tuning", settings.TRIED, settings.TUNED, 16, {}),
        ("mud/tuning_fmnist", settings.NEAR, settings.ON_FMNIST, 8, settings.BEYOND),
    ],
)
def test_rates_and_starts_are_the_best_that_were_tried(item, tried, chosen, each, beyond):
    """As committed: as many settings for every method; those beyond choose nothing, and gain next to nothing."""
    whole = records.load(Path(__file__).parent.parent / "figures", item)["table"]
    assert len(whole) == each * len(tried) + sum(map(len, beyond.values()))
    table = tuning.within(whole, tried)
    for name in beyond:
        reached = lambda rows: max(row["accuracy"] for row in rows if row["method"] == name)  # noqa: B023
        assert reached(whole) < reached(table) + 0.5
    assert {name: sum(row["method"] == name for row in table) for name in tried} == dict.fromkeys(tried, each)
    found = tuning.best(table)
    assert {name: repr(pair) for name, pair in found.items()} == {name: repr(pair) for name, pair in chosen.items()}


def test_fashion_mnist_is_tuned_around_what_the_papers_scale_would_have_and_runs_with_the_best():
    """In bfloat16, with the paper's steps and clients; the public code's own values are among those tried."""
    runner = Tried()
    result = measured(runner, EXTRAS["mud/tuning_fmnist"].measure("large", 1))
    assert all({settings.START[name]} <= {*settings.NEAR[name]} for name in settings.METHODS)
    assert len(set(runner.specs)) == 8 * len(settings.START) + len(settings.BEYOND["FedPara"])
    assert {(one.rounds, one.sampled, one.algorithm.local_steps, one.seed) for one in runner.specs} == {(15, 10, 24, 7)}
    assert {dict(one.options)["precision"] for one in runner.specs} == {"bf16"}
    assert (result.settings["rounds"], result.settings["seed"]) == (15, 7)
    for scale in ("large", "paper"):
        how = algorithm("FedMUD+BKD+AAD", "FMNIST N2", scale)
        assert isinstance(how, FedMUD)
        assert (how.lr, how.decomposition.a) == settings.ON_FMNIST["FedMUD+BKD+AAD"]
    assert settings.tuning(("FedAvg",), "paper", "FMNIST N1") == "ours"
    assert settings.tuning(("FedAvg",), "paper", "SVHN N1") == "authors' files"


class Tried:
    """Runs whose accuracy is their learning rate's."""

    def __init__(self):
        self.specs = []

    def __call__(self, specs):
        self.specs += specs
        return {one: {"diverged": None, "columns": {"accuracy": [0.1, one.algorithm.lr, 0.3]}} for one in specs}


def test_runs_go_seed_by_seed():
    """So that an interrupted run leaves whole seeds behind."""
    runner = Fake(dict.fromkeys(TABLE2, 0.5))
    measured(runner, measure_table("medium", 3, "mud/table2", TABLE2, named("N1"), mud.ORDERS2))
    assert [one.seed for one in runner.specs] == [seed for seed in range(3) for _ in TABLE2]


def test_algorithms_and_specs_are_those_of_the_setting():
    medium, column = SETTINGS["medium"], "CIFAR-10 N1"
    assert algorithm("FedAvg", column, "medium") == FedAvg(medium.best["FedAvg"][0], medium.steps)
    aad = algorithm("FedMUD+BKD+AAD", column, "paper", s=4, ratio=1 / 8)
    assert isinstance(aad, FedMUD)
    assert (aad.lr, aad.reset_every, aad.decomposition.a) == (0.01, 4, 5.0)
    of = settings.model("CIFAR-10 N1", "paper")
    assert sum(part.size for part in aad.decomposition.parts(of)) / of.size == pytest.approx(1 / 8, abs=0.001)
    lmt = algorithm("FedLMT", column, "medium")
    assert isinstance(lmt, FedMUD)
    assert (lmt.base, lmt.reset_every, lmt.decomposition.random) == ("zero", None, True)
    rounds = {column: spec(lmt, column, "paper", 0).rounds for column in ("SVHN N2", "CIFAR-100 N1")}
    assert rounds == {"SVHN N2": 100, "CIFAR-100 N1": 200}
    assert dict(spec(lmt, "CIFAR-100 N2", "paper", 0).options)["labels"] == 10
    deep = mud.resnet("FedLMT 16x", column, "paper")
    assert isinstance(deep, FedMUD)
    of = settings.model("CIFAR-10 N1", "paper", "resnet18")
    assert sum(part.size for part in deep.decomposition.parts(of)) / of.size == pytest.approx(1 / 16, abs=0.001)


def test_the_large_scale_has_the_papers_runs_of_fashion_mnist_and_the_medium_ones_of_cifar10():
    """CIFAR-10's are the same, so that the stored ones are found; Fashion-MNIST's are in bfloat16, have three seeds,
    and are judged as the paper's."""
    runner = Tried()
    result = measured(runner, measure_table("large", 5, "mud/table1", TABLE1, named("N1", "N2"), mud.ORDERS1))
    for column, part, seeds in (("FMNIST N1", "paper", 3), ("FMNIST N2", "paper", 3), ("CIFAR-10 N1", "medium", 5)):
        how = {"precision": "bf16"} if part == "paper" else {}
        own = [
            spec(algorithm(name, column, part), column, part, seed, **how) for seed in range(seeds) for name in TABLE1
        ]
        assert sum(one in own for one in runner.specs) == len(own) == seeds * len(TABLE1)
        rows = [row for row in result.table if row["column"] == column]
        assert {row["seeds"] for row in rows} == {seeds}
        levels = [cell for cell in result.cells if cell.cell.startswith(f"{column} ") and cell.seeds]
        assert {cell.ran for cell in levels} == {SETTINGS[part].ran}
    assert len(runner.specs) == (3 + 3 + 5) * len(TABLE1)
    assert {part: result.settings[part]["rounds"] for part in ("medium", "paper")} == {"medium": 60, "paper": 100}


def test_settings_that_a_finished_table_lacks_are_run_too(tmp_path):
    """Of a method with a budget and settings beyond it: what the table has not, whichever method's it is."""
    item, runner = EXTRAS["mud/tuning_fmnist"], Tried()
    whole = measured(runner, item.measure("large", 1))
    without = tuning.within(whole.table, settings.NEAR)
    assert len(whole.table) - len(without) == len(settings.BEYOND["FedPara"])
    runner = Tried()
    again = measured(runner, item.measure("large", 1, without))
    assert {(one.algorithm.lr, one.algorithm.decomposition.a) for one in runner.specs} == set(
        settings.BEYOND["FedPara"]
    )
    assert sorted(map(str, again.table)) == sorted(map(str, whole.table))
    runner = Tried()
    assert measured(runner, item.measure("large", 1, whole.table)).table == whole.table
    assert not runner.specs


def test_what_settings_beyond_a_budget_reach():
    row = lambda rate, accuracy: {"method": "A", "rate": rate, "a": 0.5, "accuracy": accuracy}
    said = tuning.further([row(0.1, 70.0), row(0.2, 71.0), row(0.3, 72.0)], {"A": [(0.1, 0.5), (0.2, 0.5)]}, "A", 1)
    assert "Of all 3 the best, rate 0.3 and a = 0.5, has 72.0%" in said
    assert "the one that runs, rate 0.2 and a = 0.5, 71.0%" in said


def test_seeds_of_fashion_mnists_columns():
    """Three at most at the large scale, whatever is asked for; the table's titles say how many."""
    columns = ("FMNIST N1", "FMNIST N2", "FMNIST IID", "CIFAR-10 N1")
    assert [settings.seeded(column, "large", 5) for column in columns] == [3, 3, 3, 5]
    assert [settings.seeded(column, "large", 2) for column in columns] == [2, 2, 2, 2]
    assert settings.seeded("FMNIST IID", "paper", 5) == 5
    assert settings.words("large", 5)["paper"]["seeds"] == 3
    numbers = {"method": "A", "paper": 88.0, "ours": 88.0, "low": 87.0, "high": 89.0, "ran data": "x"}
    numbers |= {"ran network": "y", "ran rounds": 1}
    row = lambda column, n: {"column": column, "seeds": n, **numbers}
    table = [row("FMNIST N2", 3), row("SVHN N2", 0), row("CIFAR-10 N1", 5), row("CIFAR-10 N2", 0)]
    titles = ["FMNIST (n=3)", "SVHN (not run)", "CIFAR-10 (n=5; N2 not run)"]
    assert [axes.get_title() for axes in mud.draw_table(table).axes if axes.get_title()] == titles


def test_differences_stand_beside_the_accuracies_of_what_was_run():
    """The first method's, which is 0, is not drawn; nothing is where nothing was run."""
    of = lambda column, method, gap, n: {
        "column": column, "method": method, "seeds": n, "paper": 88.0, "ours": 87.0, "low": 80.0, "high": 94.0,
        "printed gap": gap - 1, "gap": gap, "gap low": gap - 0.5, "gap high": gap + 0.25,
        "ran data": "x", "ran network": "y", "ran rounds": 1,
    }  # fmt: skip
    table = [of(where, name, gap, n) for where, n in (("A N1", 3), ("A N2", 0), ("B N1", 0))
             for name, gap in (("FedAvg", 0.0), ("FedMUD", -3.0))]  # fmt: skip
    panels = [axes for axes in mud.draw_table(table).axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["A (n=3; N2 not run)", "A, paired by seed", "B (not run)"]
    beside = panels[1]
    assert beside.get_xlabel() == "points, minus FedAvg's"
    printed, nothing, ours = beside.lines[0], beside.lines[-2], beside.containers[0]
    assert (list(printed.get_xdata()), list(ours.lines[0].get_xdata())) == ([-4.0], [-3.0])
    assert [list(end.get_xdata()) for end in ours.lines[1]] == [[-3.5], [-2.75]]
    assert list(nothing.get_xdata()) == []


def test_the_height_of_a_curve_leaves_the_untrained_model_out():
    """Methods that train a model of their own start elsewhere."""
    run = lambda *accuracies: {"diverged": None, "columns": {"accuracy": accuracies}}
    assert mud.height(run(0.1, 0.5, 0.7)) == mud.height(run(0.3, 0.5, 0.7)) == pytest.approx(60.0)
    assert math.isnan(mud.height({"diverged": [1, None, "x"], "columns": {"accuracy": [0.1, 0.5]}}))


def test_notes_say_what_ran_and_no_more():
    """At the large scale Fashion-MNIST runs as at the paper's, and CIFAR-10 as at the medium one."""
    runs = lambda *columns: [note.split(":")[0] for note in settings.notes("large", columns) if note.startswith("Runs")]
    assert runs("FMNIST N1", "FMNIST IID") == ["Runs, paper", "Runs"]
    assert sorted(runs("FMNIST N1", "CIFAR-10 N1")) == ["Runs", "Runs, medium", "Runs, paper"]
    both = mud.together(
        {name: store.Result([], [], {}, settings.notes("large", [f"{name} N1"])) for name in ("FMNIST", "CIFAR-10")}
    )
    assert len(both.notes) == 3 + len(settings.READING)


def test_methods_that_a_finished_table_lacks_are_run_and_added(tmp_path):
    """Only they run; rows and provenance of the others stand, bit for bit; the result is as if run at once."""
    item, late = EXTRAS["mud/tuning"], ("FedHM", "FedBAT")
    runner = Tried()
    whole = measured(runner, item.measure("medium", 1))
    assert len(runner.specs) == 16 * len(settings.TRIED)
    without = [row for row in whole.table if row["method"] not in late]
    shown = replace(item, draw=lambda table: Figure((1, 1)))  # nobody looks at this picture
    store.save(tmp_path, shown, store.Result(without, [], {"made": "before"}, ["note"]), "medium", 1, 0.0, "cpu")
    before = records.load(tmp_path, item.name)
    runner = Tried()
    result = measured(runner, item.measure("medium", 1, before["table"]))
    assert {one.algorithm.name for one in runner.specs} == set(late)
    store.save(tmp_path, item, result, "medium", 1, 0.0, "cpu", before)
    after = records.load(tmp_path, item.name)
    key = lambda row: (row["method"], row["rate"], str(row["a"]))
    assert sorted(map(str, after["table"])) == sorted(map(str, records.read_csv(records.to_csv(whole.table))))
    assert {key(row) for row in after["table"]} == {key(row) for row in whole.table}
    assert (after["settings"], after["versions"]) == ({"made": "before"}, before["versions"])
    (added,) = after["added"]
    assert set(added["settings"]["methods"]) == set(late)
    assert set(added) == {"settings", "versions", "device", "seconds"}


class Drifting:
    """Runs whose level is the seed's, and whose distance to FedAvg is that of their interval of resets."""

    def __call__(self, specs):
        return {one: self.result(one) for one in specs}

    def result(self, one):
        behind = (
            0.0 if isinstance(one.algorithm, FedAvg) else {1: 0.02, None: 0.07}.get(one.algorithm.reset_every, 0.04)
        )
        last = 0.5 + 0.1 * one.seed - behind
        return {"diverged": None, "columns": {"accuracy": [last, last], "up_bytes": [0, 1]}}


def test_a_sweep_has_differences_to_fedavg_seed_by_seed():
    """Levels of the seeds lie 20 points apart; the differences do not move at all."""
    table = measured(Drifting(), mud.measure_resets("quick", 3)).table
    named = {(row["method"], row["value"]): row for row in table}
    assert named["FedAvg", ""]["gap"] == named["FedAvg", ""]["gap high"] == 0.0
    for value, behind in ((1, 2.0), ("R", 7.0)):
        row = named["FedMUD+AAD", value]
        assert row["high"] - row["low"] > 20
        assert [row[part] for part in ("gap", "gap low", "gap high")] == pytest.approx([-behind] * 3)
    (axes,) = mud.drawer("reset interval s")(table).axes
    assert axes.get_ylabel() == "points above FedAvg (60.0%)"


class Rounded(Fake):
    """Runs that are a point lower in bfloat16, FedPara's ten points higher or lower by turns."""

    def result(self, one):
        result = super().result(one)
        (name,) = (name for name in self.values if algorithm(name, "CIFAR-10 N1", "medium") == one.algorithm)
        moved = dict(one.options)["precision"] == "bf16"
        gain = 0.1 * (-1) ** one.seed if name == "FedPara" else -0.01
        result["columns"]["accuracy"] = [value + gain * moved for value in result["columns"]["accuracy"]]
        return result


def test_precisions_are_compared_seed_by_seed():
    """What moves is named; the runs in float32 are Table 1's own."""
    runner = Rounded(dict.fromkeys(TABLE1, 0.5))
    result = measured(runner, precision.measure("medium", 4))
    table1 = [spec(algorithm(name, "CIFAR-10 N1", "medium"), "CIFAR-10 N1", "medium", 3) for name in TABLE1]
    mixed = sum(one.words()["options"].get("mixed", False) for one in runner.specs)
    assert mixed == len(runner.specs) // 2 == 4 * len(TABLE1)
    assert {str(one.words()) for one in table1} < {str(one.words()) for one in runner.specs}
    rows = {row["method"]: row for row in result.table}
    assert list(rows) == [*TABLE1, ALL]
    for name in set(TABLE1) - {"FedPara"}:
        assert [rows[name][part] for part in ("gap", "gap low", "gap high")] == pytest.approx([-1.0] * 3)
    assert rows["FedPara"]["gap low"] < -10 < 10 < rows["FedPara"]["gap high"]
    assert rows[ALL]["gap"] == pytest.approx(-0.9)
    assert rows[ALL]["full"] == pytest.approx(50.15)
    assert "FedBAT" in result.notes[0]
    assert "FedPara" not in result.notes[0]
    assert "order of the means is another" in result.notes[0]  # FedPara is no longer level with the others
    left, right = precision.EXTRAS[0].draw(result.table).axes
    assert [label.get_text() for label in left.get_yticklabels()] == [*TABLE1, ALL]
    assert right.get_xlabel() == "bfloat16's less float32's, in points"


def test_differences_are_drawn_of_what_the_table_has():
    """A method less, and one record alone: the others stand side by side."""
    whole = records.load(Path(__file__).parent.parent / "figures", "mud/fig6")["table"]
    some = [row for row in whole if row["method"] != "FedHM" and row["round"] in (0, 20)]
    for axes in mud.draw_partitions(some).axes:
        places = [line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 1]
        assert len(set(places)) == len(mud.CURVES) - 1
        assert all(abs(place - 20) < 0.5 for place in places)


class Flat:
    """Every run ends at 60%, FedPara with the ratio of each layer a point higher, a tenth of a point apart by seed."""

    def __init__(self):
        self.specs = []

    def __call__(self, specs):
        self.specs += specs
        return {one: self.result(one) for one in specs}

    def result(self, one):
        more = getattr(getattr(one.algorithm, "decomposition", None), "ratio", 0) == mud.RATIO
        end = 0.6 + 0.001 * one.seed + 0.01 * more * (1 + 0.1 * one.seed)
        return {"diverged": None, "columns": {"accuracy": [0.1, end, end], "up_bytes": [0, 1, 2]}}


@pytest.mark.parametrize(
    ("item", "partial", "steps", "ran", "runs"),
    [("mud/cifar10", True, 9, "reduced", [20, 20, 20]), ("mud/cifar10_full", 49_923, 24, "paper's", [20, 5, 5])],
)
def test_the_eight_layers_run_the_papers_network_and_rounds_on_the_images_at_hand(item, partial, steps, ran, runs):
    """100 clients, ten of whom play three epochs of their images; on 20,000 what is judged are directions."""
    runner, (scale,) = Flat(), EXTRAS[item].scales
    result = measured(runner, EXTRAS[item].measure(scale, 3))
    options = [dict(one.options) for one in runner.specs]
    assert [sum(one.seed == seed for one in set(runner.specs)) for seed in range(3)] == runs
    assert {(one.rounds, one.sampled, one.algorithm.local_steps) for one in runner.specs} == {(200, 10, steps)}
    assert {(o["network"], o["clients"], o["batch"], o["precision"], o["partial"]) for o in options} == {
        ("fedmud-cnn8", 100, 64, "bf16", partial)
    }
    assert steps == (3 * 200 // 64 if partial is True else 3 * math.ceil(499 / 64))  # full batches; the paper's epochs
    label = "cifar10 (partial)" if partial is True else "cifar10 (49,923 images)"
    assert {row["ran data"].split(", 100 clients")[0] for row in result.table} == {label}
    assert len(result.cells) == 2 * (10 + len(mud.ORDERS1))
    assert {cell.ran for cell in result.cells} == {ran}
    assert {cell.tuning for cell in result.cells} == {"ours", "authors' files"}
    assert EXTRAS[item].draw(result.table).axes


def test_with_more_images_the_five_methods_that_lie_close_have_more_seeds():
    """Differences are of the seeds that both methods ran; each row and cell says how many."""
    result = measured(Flat(), EXTRAS["mud/cifar10_full"].measure("paper", 3))
    assert {row["gap"] for row in result.table} == {0.0}
    more = {row["method"] for row in result.table if row["seeds"] == 3 and row["column"] == "CIFAR-10 N1"}
    assert more == {"FedAvg", "EF21-P", "FedBAT", "FedMUD+AAD", mud.BEST}
    assert {row["seeds"] for row in result.table if row["column"] == "CIFAR-10 N2" or row["method"] not in more} == {1}
    many = {cell.cell: cell.seeds for cell in result.cells}
    assert many[f"CIFAR-10 N1 FedBAT < {mud.BEST}"] == many[f"CIFAR-10 N1 {mud.BEST} < FedAvg"] == 3
    assert many[f"CIFAR-10 N1 FedHM < {mud.BEST}"] == many[f"CIFAR-10 N2 FedBAT < {mud.BEST}"] == 1
    figure = EXTRAS["mud/cifar10_full"].draw(result.table)
    assert figure.axes[0].get_title() == "CIFAR-10 (n=1 or 3)"


def test_fedpara_under_three_readings():
    """The same seeds and, by both ratios, rates and starts; the ranks that each reading allows are counted."""
    runner = Flat()
    result = measured(runner, EXTRAS["mud/ratio"].measure("large", 5))
    runs = {(one.rounds, dict(one.options)["data"], one.seed) for one in runner.specs}
    assert runs == {*((100, "fashion_mnist", seed) for seed in range(3)), (200, "cifar10", 0)}
    both, tensor = ["of the whole network", "of each layer"], "of the whole network, tensor form"
    assert [row["ratio"] for row in result.table] == [*both, tensor, *both, *both]
    assert [round(row["gap"], 6) for row in result.table] == [0.0, 1.1, 0.0, 0.0, 1.1, 0.0, 1.0]
    assert result.notes[4] == "FMNIST N1: highest ranks of a kernel's slices in the tensor form: 4, 16, 49."
    reached = [note.partition("with the ratio ")[2] for note in result.notes[:4]]
    assert reached == [
        "of the whole network: FedPara's 1, 1, 4; FedLMT's 2, 3, 5.",
        "of each layer: FedPara's 1, 4, 16; FedLMT's 2, 4, 8.",
        "of the whole network: FedPara's 1, 1, 1, 1, 4, 4, 9; FedLMT's 1, 2, 2, 3, 4, 5, 8.",
        "of each layer: FedPara's 1, 1, 4, 4, 9, 16, 36; FedLMT's 2, 2, 3, 4, 6, 8, 12.",
    ]
    assert EXTRAS["mud/ratio"].draw(result.table).axes


FIGURES = Path(__file__).resolve().parent.parent / "figures"


def kept_run(name, column, scale, seed=0):
    """The result of a table's run, from the archives; None where it has not run."""
    words = spec(algorithm(name, column, scale), column, scale, seed).words()
    kept = [one for one in archive.names(FIGURES) if one.startswith(store._first(words))]
    return json.loads(archive.read(FIGURES, *kept))["result"] if kept else None


def test_what_is_said_of_fedparas_levels_and_of_ef21ps_bytes():
    """Conclusions and results: one reading contradicts both levels, the other leaves both open; bytes of kept runs."""
    verdict = {}
    for row in records.load(FIGURES, "mud/ratio")["table"]:
        if row["column"].startswith("CIFAR"):
            continue
        found = (row["ours"], row["low"], row["high"])
        verdict[row["ratio"], row["column"]] = verdicts.judge(
            verdicts.points(row["paper"]), found, row["seeds"], "paper's"
        )[0]
    assert {one for (ratio, _), one in verdict.items() if ratio == "of the whole network"} == {verdicts.AGAINST}
    assert {one for (ratio, _), one in verdict.items() if ratio == "of each layer"} == {verdicts.OPEN}
    tensor = next(row for row in records.load(FIGURES, "mud/ratio")["table"] if "tensor" in row["ratio"])
    assert (round(tensor["ours"], 1), round(tensor["gap"], 1), tensor["seeds"]) == (85.1, 2.8, 1)
    both = {}
    for name in ("EF21-P", "FedMUD+BKD+AAD"):
        columns = kept_run(name, "FMNIST IID", "large")["columns"]
        both[name] = columns["up_bytes"][-1] + columns["down_bytes"][-1]
    assert 1.45 < both["EF21-P"] / both["FedMUD+BKD+AAD"] < 1.55


def test_what_is_said_of_freezing_and_speed():
    """Results: Tables 2 and 4, Figures 2 and 6."""
    found = {
        cell["cell"]: cell["verdict"]
        for item in ("mud/table2", "mud/table4", "mud/fig2", "mud/fig6")
        for cell in records.load(FIGURES, item)["cells"]
    }
    of = lambda text: [verdict for cell, verdict in found.items() if re.fullmatch(text, cell)]
    agrees = {"matches", "direction holds"}
    assert of(r"FMNIST \w+ FedMUD\+F < FedMUD\+AAD") == ["matches"] * 3
    assert of(r"FMNIST N\d FedMUD\+BKD\+F < .*") == ["inconclusive"] * 2
    assert of(r"FMNIST IID FedMUD\+BKD\+F < .*") == ["matches"]
    assert of(r"CIFAR-10 N1 .*\+F < .*\+AAD") == ["direction holds"] * 2
    faster = of(r".*AAD converges faster than .*")
    assert len(faster) == 2 * 3 * 4
    assert set(faster) == agrees
    assert set(of(r".*: FedMUD converges faster than FedPara")) == agrees
    assert set(of(r".*: FedMUD converges faster than FedLMT")) == {"inconclusive"}


def test_what_is_said_of_the_eight_layers():
    """Results, hours and conclusions: the order of distances to FedAvg, and who stands elsewhere."""
    both, more = (
        [
            {row["method"]: row for row in records.load(FIGURES, item)["table"] if row["column"].endswith(partition)}
            for partition in ("N1", "N2")
        ]
        for item in ("mud/cifar10", "mud/cifar10_full")
    )
    table = both[0]
    distances = lambda of: {name: (round(-row["gap"], 1), round(-row["printed gap"], 1)) for name, row in of.items()}
    behind, labels = map(distances, both)
    whole, skewed = ({name: row["ours"] for name, row in of.items()} for of in more)
    said = (FIGURES.parent / "docs" / "results.md").read_text()
    for name in behind.keys() - {"FedAvg"}:
        cells: list[object] = []
        for (ours, printed), of in ((behind[name], more[0][name]), (labels[name], more[1][name])):
            here = f"{-of['gap']:.1f}" if of["seeds"] == 1 else f"**{-of['gap']:.1f}**"
            cells += [ours, f"{here} ({printed})"]
        assert f"| {name} | {' | '.join(map(str, cells))} |" in said
    levels = [f"{column['FedAvg']['ours']:.1f}%" for column in both]
    printed = [f"printed {column['FedAvg']['paper']:.1f}" for column in both]
    said = " ".join(said.split())
    assert f"ends at {levels[0]} under Dirichlet labels ({printed[0]})" in said
    assert f"at {levels[1]} with three labels a client ({printed[1]})" in said
    assert f"it ends at {whole['FedAvg']:.1f}% and {skewed['FedAvg']:.1f}%" in said
    second = {name: row["ours"] for name, row in both[1].items()}
    assert sorted(second, key=second.get)[-3:] == ["FedMUD+BKD+AAD", "EF21-P", "FedAvg"]
    assert [round(second["FedMUD+BKD+AAD"] - second[name], 1) for name in ("EF21-P", "FedBAT")] == [-1.6, 5.4]
    ours = {name: row["ours"] for name, row in table.items()}
    cells = {cell["cell"]: cell for cell in records.load(FIGURES, "mud/cifar10_full")["cells"]}
    judged = [("EF21-P", mud.BEST, 2), ("FedMUD+AAD", mud.BEST, 2), ("FedBAT", mud.BEST, 1), (mud.BEST, "FedAvg", 1)]
    for low, high, digits in judged:
        cell = cells[f"CIFAR-10 N1 {low} < {high}"]
        mean, least, most = (f"{cell[name]:.{digits}f}" for name in ("ours", "low", "high"))
        found = f"{mean} [{least}, {most}] | {cell['paper']:.1f} | {cell['verdict']}"
        assert f"| {high} minus {low} | {found} |".replace("FedMUD+", "") in said
        assert cell["seeds"] == 3
    for name in ("EF21-P", "FedBAT"):
        cell = cells[f"CIFAR-10 N1 {name}"]
        assert cell["verdict"] == "contradicted"
        assert f"{cell['ours']:.1f}% [{cell['low']:.1f}, {cell['high']:.1f}] where" in said
    runs = {
        name: [last(kept_run(name, "CIFAR-10 N1", mud.FULL, seed), 2) for seed in range(3)]
        for name in ("FedAvg", "FedBAT", mud.BEST)
    }
    ends = {name: f"{min(of):.1f}% to {max(of):.1f}%" for name, of in runs.items()}
    assert f"FedAvg's levels range from {ends['FedAvg']}, FedBAT's from {ends['FedBAT']}." in said
    assert [ahead > max(others) for ahead, *others in zip(runs["FedBAT"], runs["FedAvg"], runs[mud.BEST])].count(
        True
    ) == 1
    assert [round(of["FedBAT"] - of["FedMUD+AAD"], 1) for of in (whole, ours)] == [1.1, -7.3]
    leads = [round(skewed[mud.BEST] - skewed[name], 2) for name in ("EF21-P", "FedBAT")]
    assert leads == [0.87, 1.25]
    assert {sorted(of, key=of.get)[-2] for of in (whole, skewed)} == {mud.BEST}
    four = ["FedMUD", "FedMUD+BKD", "FedMUD+AAD", "FedMUD+BKD+AAD", "FedAvg"]
    assert sorted(four, key=whole.get) == sorted(four, key=skewed.get) == four
    for column in both:
        assert sorted(four, key=lambda name: column[name]["ours"]) == four
        assert sorted(four, key=lambda name: column[name]["paper"]) == four
        assert column["FedBAT"]["ours"] < column["FedMUD+AAD"]["ours"]
        ranked = sorted((row["paper"] for row in column.values()), reverse=True)[1:]
        assert ranked.index(column["FedBAT"]["paper"]) in (1, 2)
        low = [row["paper"] - row["ours"] for name, row in column.items() if name != "EF21-P"]
        assert 9 < min(low) < max(low) < 29.1
    assert sorted(ours, key=ours.get)[-3:] == ["EF21-P", "FedMUD+BKD+AAD", "FedAvg"]
    assert min(table, key=lambda name: table[name]["paper"]) == "EF21-P"
    turned = [("FedBAT", "FedMUD+AAD"), ("FedBAT", "FedMUD+BKD"), ("FedHM", "FedLMT")]
    assert all(table[a]["paper"] > table[b]["paper"] and ours[a] < ours[b] for a, b in turned)
    best = ours["FedMUD+BKD+AAD"]
    assert [round(best - ours[name], 1) for name in ("EF21-P", "FedBAT")] == [0.7, 8.5]
    each = {row["ratio"]: row for row in records.load(FIGURES, "mud/ratio")["table"][-2:]}["of each layer"]
    assert round(ours["FedAvg"] - each["ours"], 1) == 19.3
    assert 6 < ours["FedMUD"] - each["ours"] < 6.5
    assert 22 < each["paper"] - each["ours"] < 22.5
    orders = [cell for cell in records.load(FIGURES, "mud/cifar10")["cells"] if "<" in cell["cell"]]
    turned = [f"CIFAR-10 {of}" for of in ("N1 FedPara < FedMUD", "N2 FedPara < FedMUD", "N2 EF21-P < FedMUD+BKD+AAD")]
    assert [c["cell"] for c in orders if c["paper"] * c["ours"] < 0] == turned
    assert len(orders) == 28
