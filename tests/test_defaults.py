"""What may be left out: a method's arguments, a problem's key, network and partition, the metrics of a run."""

import math

import pytest
import torch
from cases import regression

import fedtheory
from fedtheory import (
    SSF,
    Coordinate,
    FedAvg,
    FedSub,
    ImageClassification,
    Key,
    LogisticRegression,
    MatrixRegression,
    Pooled,
    Quadratic,
    Spherical,
    run,
)
from fedtheory.core.algorithm import Algorithm
from fedtheory.federation.halves import ClientHalf, ServerHalf
from fedtheory.problems import data

PUBLIC = [getattr(fedtheory, name) for name in fedtheory.__all__]
METHODS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, Algorithm) and kind is not Algorithm]
METHODS = [kind for kind in METHODS if "method" not in getattr(kind, "__dataclass_fields__", {})]  # no part of one


@pytest.fixture(scope="module")
def digits():
    return ImageClassification.load("digits", subset=200, tested=50)


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
def test_a_method_without_arguments_lowers_the_loss_in_ten_rounds(kind, digits):
    method = kind(server_steps=10) if kind.__name__ == "FedGen" else kind()  # 1000 steps of a generator take long
    assert kind().lr is None
    problem = digits if kind.__name__ in ("FedGen", "FedNTD", "MOON") else regression()
    history = run(method, Pooled(problem) if kind.__name__ == "MeZO" else problem, rounds=10, metrics=("loss",))
    assert history.diverged is None
    assert all(map(math.isfinite, history["loss"]))
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.parametrize("method", [FedAvg, SSF], ids=lambda kind: kind.__name__)
def test_a_run_records_loss_and_accuracy_where_no_solution_is_known(method, digits):
    history = run(method(), digits, rounds=5)
    assert history["loss"][-1] < history["loss"][0]
    assert history["accuracy"][-1] > history["accuracy"][0]
    assert run(method(), Pooled(digits), rounds=1)["accuracy"]


def test_a_run_records_the_error_where_a_solution_is_known():
    history = run(FedAvg(), regression(), rounds=5)
    assert set(history.columns) >= {"error"}
    assert "loss" not in history.columns
    unsolved = Quadratic(torch.zeros(2, 3, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64))
    assert unsolved.metrics == ("loss",)


def test_the_step_size_is_one_over_the_smoothness_where_it_is_known(digits):
    problem = regression()
    assert FedAvg().on(problem) == FedAvg(1 / problem.constants.L, 5)
    assert FedAvg().on(digits) == FedAvg(0.1, 5)
    assert FedAvg(0.3).on(problem) == FedAvg(0.3, 5)
    assert SSF().on(problem).projection == Spherical((2,), "orthonormal")
    assert FedSub(projection=Coordinate(3)).on(problem) == FedSub(0.3 * problem.rate, 5, Coordinate(3))


def test_a_run_is_that_of_the_method_with_what_was_chosen_for_it(tmp_path):
    """Bit for bit, so that one goes on from the other's checkpoint; a federation of two halves has the same bits."""
    problem, method = regression(), FedAvg()
    chosen = run(method.on(problem), problem, rounds=3, checkpoint=tmp_path)
    assert torch.equal(run(method, problem, rounds=3).x, chosen.x)
    assert run(method, problem, rounds=4, checkpoint=tmp_path)["round"] == [0, 1, 2, 3, 4]
    server = ServerHalf(method, problem)
    clients = {i: ClientHalf(method, problem, i) for i in range(problem.n)}
    for _ in range(3):
        server.close({i: clients[i].play(parcel) for i, parcel in server.open().items()})
    assert torch.equal(server.state.server.x, run(method, problem, rounds=3, blocks=problem.n).x)


@pytest.mark.parametrize(
    "make",
    [Quadratic.random, MatrixRegression.ssf, lambda **of: LogisticRegression.fedsub(samples=600, **of)],
    ids=["quadratic", "regression", "logistic"],
)
def test_a_key_may_be_its_seed(make):
    assert make(key=3).fingerprint() == make(key=Key(3)).fingerprint() != make().fingerprint()


def test_images_come_with_a_network_a_partition_and_a_key(digits):
    same = ImageClassification.load("digits", "mlp", Key(0), clients=10, partition="iid", subset=200, tested=50)
    assert digits.fingerprint() == same.fingerprint()


def test_colour_images_name_two_networks_to_try(monkeypatch):
    pixels = torch.zeros(20, 3, 8, 8, dtype=torch.uint8)
    colours = data.Images(pixels, torch.arange(20) % 2, ("a", "b"), "colours", (0.5,) * 3, (1.0,) * 3)
    monkeypatch.setattr(data, "load", lambda *given, **options: colours)
    monkeypatch.setattr(data, "origin", lambda *given, **options: {})
    with pytest.raises(ValueError, match=r"network=None: expected .* try network='flss-cnn' or network='resnet8'"):
        ImageClassification.load("cifar10")
