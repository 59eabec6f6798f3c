"""The benchmarks' own arithmetic: who is timed when, what is counted, what is refused. No time is asserted."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))  # behind all others: its names are plain words

import networks  # noqa: E402
import precision  # noqa: E402
import rounds  # noqa: E402
import since  # noqa: E402
import steps  # noqa: E402
import timing  # noqa: E402

from fedtheory import FedAvg, ImageClassification, Key  # noqa: E402
from fedtheory.papers.budget import Budget  # noqa: E402
from fedtheory.problems.models.networks import network  # noqa: E402


class Card:
    """A card in the place of CUDA's: work that is asked of it is done when somebody waits."""

    def __init__(self, monkeypatch) -> None:
        self.now = self.asked = 0.0
        self.held = self.peak = 0
        for name in ("synchronize", "reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)

    def work(self, seconds: float, size: int = 1) -> None:
        self.asked += seconds
        self.peak = max(self.peak, self.held + size)

    def synchronize(self) -> None:
        self.now, self.asked = self.now + self.asked, 0.0

    def reset_peak_memory_stats(self) -> None:
        self.peak = self.held

    def memory_allocated(self) -> int:
        return self.held

    def max_memory_allocated(self) -> int:
        return self.peak


# Times.


def test_all_take_turns_after_a_block_that_does_not_count(monkeypatch):
    """The first call of each is slow, as first calls are: no second of it is seen."""
    clock, played = [0.0], []
    monkeypatch.setattr(timing.time, "process_time", lambda: clock[0])

    def variant(name: str, seconds: float):
        def play() -> None:
            clock[0] += seconds if name in played else 100 * seconds
            played.append(name)

        return play

    found = timing.turns({"a": (variant("a", 1.0), 1), "b": (variant("b", 6.0), 3)}, "cpu", 2)
    assert found == {"a": [1.0, 1.0], "b": [2.0, 2.0]}
    assert played == ["a", "b"] * 3


def test_on_a_card_what_is_asked_for_is_waited_for(monkeypatch):
    """Also what was asked for before the clock began: it belongs to nobody's time."""
    card = Card(monkeypatch)
    assert timing.timed(lambda: card.work(2.0), "cuda") == 2.0
    card.work(50.0)
    assert timing.timed(lambda: card.work(3.0), "cuda") == 3.0
    assert timing.turns({"a": (lambda: card.work(4.0), 2)}, "cuda", 3) == {"a": [2.0] * 3}


def test_work_that_leaves_the_card_untouched_is_refused(monkeypatch):
    card = Card(monkeypatch)
    card.held = card.peak = 7
    variants = {"on the card": (lambda: card.work(1.0), 1), "beside it": (lambda: card.work(1.0, size=0), 1)}
    with pytest.raises(RuntimeError, match=r"^beside it: it made no tensor on the card"):
        timing.turns(variants, "cuda", 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
@pytest.mark.parametrize("benchmark", [rounds, networks, precision])
def test_a_card_that_is_not_there_is_refused(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [benchmark.__name__, "--device", "cuda"])
    with pytest.raises(SystemExit) as stop:
        benchmark.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith("error: --device cuda: no CUDA device was found\n")


def test_a_record_on_a_card_names_card_and_versions(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    found = timing.environment("cuda")
    assert found["gpu"] == "a card"
    assert {"torch", "cuda", "cudnn", "tf32", "cpu", "sources"} <= set(found)
    assert found["time"] == "wall seconds, synchronised, after a block that warms up"


# Counts.


def test_operations_of_a_round_by_hand():
    """Multiplications and additions of the products; images have no gradient."""
    perceptron = networks.workload("mlp/fedavg", "cpu", images=70)
    image = 2 * (784 * 64) * 2 + 2 * (64 * 10) * 3
    assert networks.flops("mlp/fedavg", perceptron) == 10 * 10 * 64 * image
    forward = 2 * (28 * 28 * 16 * 25 + 14 * 14 * 32 * 16 * 25 + 1568 * 10)
    convolutions = networks.workload("cnn/decomfl", "cpu", images=70)
    assert networks.flops("cnn/decomfl", convolutions) == 10 * 2 * 10 * 32 * forward


def small() -> ImageClassification:
    g = Key(0).generator()
    images, labels = torch.randn(16, 3, 8, 8, generator=g), torch.randint(4, (16,), generator=g)
    return ImageClassification(images, labels, [torch.arange(16)], network("resnet8", (3, 8, 8), 4), Key(1), batch=8)


def test_a_step_is_counted():
    """Products as on shapes alone; memory is at least the step's and a few models more."""
    problem = small()
    step = steps.Step(FedAvg(0.1, 1), problem)
    found, counted = steps.counted(step, "cpu"), Budget("resnet8", 4, 8, 1, 1, (3, 8, 8)).step
    assert found["flops"] == 2 * counted.products
    assert found["parameters"] == problem.d
    assert counted.memory < found["peak_bytes"] < 1.5 * counted.memory + 4 * 8 * problem.d


def test_the_deep_step_is_notebook_10s():
    found = steps.resnet("cpu")
    assert list(found) == ["full", "bf16"]
    for kind, step in found.items():
        assert step.problem.network.name == "resnet110-7"
        assert step.problem.mixed == (kind == "bf16")
        assert step.problem.batch == 32


def test_the_shape_is_smollm2s():
    pytest.importorskip("transformers")
    with torch.device("meta"):
        module = steps.shape()
    assert sum(p.numel() for p in module.parameters()) == 134_515_008


def test_without_a_model_its_lines_are_left_out_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["networks", "--only", "smollm2/fedavg", "--json"])
    assert networks.main() == 0
    out, err = capsys.readouterr()
    assert list(json.loads(out)) == ["environment"]
    assert err.count("\n") == 1
    assert "python -m fedtheory model smollm2 FOLDER" in err


# What bfloat16 does to a result.


@pytest.mark.parametrize("name", precision.METHODS)
def test_two_runs_of_a_pair_differ_in_precision_alone(name):
    for setting in precision.settings(None, True).values():
        pair = precision.specs(setting, name, 3)
        full, bf16 = (dict(pair[kind].options) for kind in ("full", "bf16"))
        assert (full.pop("precision"), bf16.pop("precision")) == ("full", "bf16")
        assert full == bf16
        same = [dataclasses.replace(pair[kind], options=()) for kind in ("full", "bf16")]
        assert same[0] == same[1]


def test_a_difference_is_bf16s_less_float32s_in_points(monkeypatch):
    reached = {"full": 50.0, "bf16": 49.0}
    monkeypatch.setattr(
        precision, "played", lambda one, device: (1.0, reached[dict(one.options)["precision"]] + one.seed)
    )
    found = precision.measure(precision.settings(None, False)["digits/mlp"], "FedAvg", 5, "cpu")
    assert found["difference"] == -1.0
    assert found["interval"] == [-1.0, -1.0]
    assert found["accuracy"] == {"full": 52.0, "bf16": 51.0}


# A commit against the working tree.


def test_of_two_trees_the_blocks_own_ratios_count():
    """A machine that slows down between blocks moves the times and no ratio."""
    found = since.row([2.0, 20.0, 200.0], [1.0, 10.0, 100.0])
    assert (found["before"], found["now"], found["ratio"], found["blocks"]) == (20.0, 10.0, 2.0, 3)
    assert found["ratio_quartiles"] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "name the commit"),
        (["HEAD", "--blocks", "0"], "--blocks must be at least 1"),
        (["HEAD", "--only", "tyo"], "--only tyo: no call begins so; they are toy/fedavg"),
        (["no-such-commit"], "no-such-commit: no commit of"),
        (["HEAD", "--device", "cuda", "--only", "process"], "--only process: no call begins so; they are toy/fedavg"),
        (["HEAD", "--device", "cuda", "--reproduce", "1"], "--reproduce: on the CPU alone"),
    ],
)
def test_what_cannot_be_compared_is_said(argv, said, capsys):
    with pytest.raises(SystemExit):
        since.main(argv)
    assert said in capsys.readouterr().err


def test_a_tree_answers_from_its_own_package(tmp_path):
    """A process in a folder that has no package would time the installed one: it ends, and that is said."""
    tree = since.Tree(Path(os.path.relpath(BENCHMARKS.parent)))
    assert tree.seconds("toy/fedavg") > 0
    tree.close()
    with pytest.raises(RuntimeError, match="ended"):
        since.Tree(tmp_path).seconds("toy/fedavg")
