"""SmolLM2's items: rates chosen on a seed of their own, and numbers that are the runs'. No model is loaded here."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.compare import TUNING_SEED
from fedtheory.papers import archive, store
from fedtheory.papers.decomfl import smollm
from fedtheory.papers.store import measured
from fedtheory.running import records

ROOT = Path(__file__).resolve().parent.parent
BEST = {"FedAvg": 3e-3, "FedZO": 3e-5, "DeComFL": 1e-4}  # of all weights; of adapters a thousand times that


class Fake:
    """A loss that is least at the best rate; at ten times that a run diverges, with a low one. Seeds differ."""

    def __init__(self):
        self.asked = []

    def __call__(self, specs):
        return {one: self.result(one) for one in dict.fromkeys(specs)}

    def result(self, one):
        self.asked.append(one)
        best = BEST[one.algorithm.name] * (1 if dict(one.options)["lora"] is None else 1000)
        far = abs(math.log10(one.algorithm.lr / best))
        rounds = [*range(0, one.rounds, one.every), one.rounds]
        gain = 0.3 if isinstance(one.algorithm, FedAvg) else 0.1
        columns = {
            "round": rounds,
            "loss": [1.0 + far * r / one.rounds for r in rounds],
            "accuracy": [0.5 + (gain + 0.01 * one.seed) * r / one.rounds for r in rounds],
            "up_bytes": [4e6 * r for r in rounds],
            "down_bytes": [12e6 * r for r in rounds],
        }
        if one.algorithm.lr > 9 * best:
            return {"columns": columns | {"loss": [0.0]}, "diverged": [1, None, "Server.x"]}
        return {"columns": columns, "diverged": None}


@pytest.fixture(scope="module")
def made():
    runner = Fake()
    return measured(runner, smollm.measure("sst2", smollm.BOTH, "medium", 2)), runner


def test_the_best_rate_is_found_on_the_tuning_seed_also_beyond_the_grid(made):
    result, runner = made
    trials = [one for one in runner.asked if one.seed == TUNING_SEED]
    assert all(one.metrics == ("loss",) for one in trials)
    found = {(row["method"], row["trained"]): row["rate"] for row in result.table}
    assert found[("FedAvg", "full")] == 3e-3
    assert found[("DeComFL", "full")] == 1e-4
    assert found[("FedZO", "LoRA 8")] == 0.03
    grids = smollm.SETTINGS["sst2"]["medium"].rates
    assert grids[False, "full"][-1] == 3e-3
    assert {len(tried) for tried in result.settings["tried"].values()} <= {3, 4, 5}
    assert "0.01" in result.settings["tried"]["FedAvg, full"]  # the next beyond an end is looked at
    assert all(one.algorithm.lr in found.values() for one in runner.asked if one.seed != TUNING_SEED)


def test_every_method_has_as_many_trials_and_runs(made):
    runs = [one for one in made[1].asked if one.seed != TUNING_SEED]
    assert len(runs) == 2 * 6
    assert {one.seed for one in runs} == {0, 1}
    assert all((one.rounds == 60) == isinstance(one.algorithm, FedAvg) for one in runs)


def test_adapters_alone_are_the_same_runs(made):
    """Of the item with both, a half: with its rows and its rates."""
    runner = Fake()
    found = measured(runner, smollm.measure("sst2", (smollm.LORA,), "medium", 2))
    assert set(runner.asked) < set(made[1].asked)
    assert found.table == [row for row in made[0].table if row["trained"] == smollm.LORA]


def test_fixed_rates_are_taken_and_what_the_trials_found_is_said():
    runner = Fake()
    found = measured(runner, smollm.measure("cb", (smollm.FULL,), "medium", 1))
    rates = {row["method"]: row["rate"] for row in found.table}
    assert rates == {"FedAvg": 3e-4, "FedZO": 1e-4, "DeComFL": 1e-4}
    assert BEST["FedZO"] == 3e-5  # which the trials see
    assert {name: len(losses) for name, losses in found.settings["tried"].items()} == {
        "FedAvg, full": 3,
        "FedZO, full": 5,
        "DeComFL, full": 5,
    }
    assert "SST-2's trials" in found.notes[0]
    assert "12 rounds by zeroth order and 3 of FedAvg, are not followed" in found.notes[1]
    assert "1.000 before, after them: FedAvg 2.477 at 0.0001" in found.notes[1]
    assert "FedZO 2.000 at 3e-06, 1.477 at 1e-05, 1.000 at 3e-05, 1.523 at 0.0001" in found.notes[1]


def test_adapters_of_cb_have_no_trials():
    runner = Fake()
    found = measured(runner, smollm.measure("cb", (smollm.LORA,), "medium", 1))
    assert {one.seed for one in runner.asked} == {0}
    assert [note for note in found.notes if "Trials" in note] == []
    assert {row["rate"] for row in found.table if row["method"] != "FedAvg"} == {0.01}


def test_rows_are_percent_rounds_and_bytes_a_client(made):
    table = made[0].table
    ends = [row for row in table if row["method"] == "DeComFL" and row["trained"] == "full"]
    assert (ends[0]["round"], ends[0]["mean"], ends[0]["MB"]) == (0, 50.0, 0.0)
    assert ends[-1]["mean"] == pytest.approx(60.5)
    assert ends[-1]["MB"] == pytest.approx(16 * 240 / 8)
    assert {row["seeds"] for row in table} == {2}


def test_notes_say_what_was_gained(made):
    (note,) = (text for text in made[0].notes if text.startswith("FedAvg, full"))
    assert "50.0% before, 80.5% at its highest record (round 60), 80.5% after 60 rounds" in note
    assert "+30.5 points" in note
    assert "n = 2" in note


def test_a_picture_shows_both_ways(made):
    figure = smollm.draw(made[0].table)
    left, right = figure.axes
    assert len(left.get_lines()) == 6 + 1
    assert len(right.get_lines()) == 6


def test_what_is_missing_is_said_before_any_run(tmp_path, monkeypatch):
    """The runner reads digests first."""
    from fedtheory.papers import Runner

    monkeypatch.setenv("FEDTHEORY_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="python -m fedtheory model smollm2"):
        measured(Runner(tmp_path / "out", workers=1), smollm.measure("sst2", smollm.BOTH, "medium", 1))


@pytest.mark.parametrize("lora", [None, 8])
def test_the_quick_stand_in_is_made_on_the_spot(lora):
    """And says what it is."""
    pytest.importorskip("peft", reason="needs the extra: pip install 'fedtheory[llm]'")
    of = replace(smollm.QUICK, options={"train": 128, "tested": 16, "steps": 0}, rounds={True: 1, False: 1})
    one = smollm.spec(of, "DeComFL", "full" if lora is None else "LoRA 8", 0.01, 0)
    found = store.execute(one, "cpu")
    assert found["data"] == store.BUILDERS["sentiment"].reads(dict(one.options)) == {}
    assert found["columns"]["round"] == [0, 1]
    assert one.words()["options"]["lora"] == lora
    assert one.ran()["ran network"] == ("tiny OPT" if lora is None else "tiny OPT with LoRA 8")


@pytest.fixture(scope="module")
def kept_runs():
    """Those on SST-2 that the archives hold."""
    return [run for run in archive.runs(ROOT / "figures") if run["words"]["options"].get("task") == "sst2"]


def test_what_is_said_of_single_seeds_is_what_their_kept_runs_say(kept_runs):
    """Of the adapters on SST-2: notebook 09, the README and the conclusions name seeds, and the table has means."""
    found = {}
    for kept in kept_runs:
        words, (name,) = kept["words"], kept["words"]["algorithm"]
        options = words["options"]
        if options["lora"] == 8 and words["seed"] != TUNING_SEED:
            columns = kept["result"]["columns"]
            found[name, words["seed"]] = {t: round(100 * a) for t, a in zip(columns["round"], columns["accuracy"])}
    assert {name for name, _ in found} == {"FedAvg", "FedZO", "DeComFL"}
    assert len(found) == 9
    assert [found["DeComFL", seed][240] for seed in range(3)] == [63, 47, 72]
    assert [found["DeComFL", seed][200] - found["DeComFL", seed][240] for seed in range(3)] == [13, 27, 4]
    assert [found["FedAvg", seed][60] for seed in (0, 2)] == [83, 82]
    lost = found["FedAvg", 1]
    assert (lost[10], lost[20], max(lost[t] for t in lost if t > 20)) == (71, 51, 51)


def test_all_weights_gain_in_every_seed_what_notebook_09_says(kept_runs):
    """SST-2: 17 to 23 points after 240 rounds of zeroth order, in each of six kept runs."""
    gains, fallen = [], []
    for kept in kept_runs:
        words, options = kept["words"], kept["words"]["options"]
        if options["lora"] is None and words["rounds"] == 240:
            accuracy = kept["result"]["columns"]["accuracy"]
            gains.append(100 * (accuracy[-1] - accuracy[0]))
            fallen.append(100 * (max(accuracy) - accuracy[-1]))
    assert len(gains) == 6
    assert (round(min(gains)), round(max(gains))) == (17, 23)
    assert round(max(fallen)) == 4


def test_intervals_beyond_all_accuracies_are_cut_and_the_caption_says_so():
    table = records.load(ROOT / "figures", "decomfl/smollm2_lora")["table"]
    figure = smollm.draw(table)
    assert all(0 <= low < high <= 100 for low, high in (axes.get_ylim() for axes in figure.axes))
    assert figure.get_supxlabel().endswith("cut at 0 and 100%")
    within = [row | {"low": row["mean"] - 1, "high": row["mean"] + 1} for row in table]
    assert "cut" not in smollm.draw(within).get_supxlabel()
