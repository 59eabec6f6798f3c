"""On a machine with a CUDA device: the same draws, the same trajectory."""

import pytest
import torch
from cases import ALGORITHMS, PROBLEMS, start
from test_networks import HALVES, NET, SMALL, X, Y
from test_networks import problem as images

from fedtheory import (
    MOON,
    FedAvg,
    FedGen,
    FedNTD,
    FedSub,
    ImageClassification,
    Key,
    MatrixRegression,
    Scaffold,
    Spherical,
    run,
)
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.maps.directions import Direction

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def close(algorithm, make, tolerance, **options):
    """Draws are made on the CPU, so only rounding differs."""
    here, there = (run(algorithm, make(device), every=options["rounds"], **options) for device in ("cpu", DEVICE))
    assert here.diverged == there.diverged
    assert here["up_bytes"] == there["up_bytes"]
    assert here["down_bytes"] == there["down_bytes"]
    assert float((here.x - there.x.cpu()).norm() / here.x.norm()) < tolerance


@pytest.mark.parametrize("problem", ["two layers", "regression", "logistic"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_gives_the_trajectory_of_the_cpu(name, problem):
    make = lambda device: PROBLEMS[problem](device=device)
    close(ALGORITHMS[name], make, 1e-8, rounds=8, sampled=3, x0=start(make("cpu")), metrics=("loss",))


@pytest.mark.parametrize(
    "algorithm",
    [Scaffold(1e-2, 3), SSFReading.haar(1e-2, 3, 5, factored=True), FedSub(1e-2, 3, Spherical(5))],
    ids=repr,
)
def test_at_the_papers_size(algorithm):
    close(algorithm, lambda device: MatrixRegression.ssf(0.5, Key(0), device=device), 1e-10, rounds=20, sampled=5)


@pytest.mark.parametrize("name", SMALL)
def test_networks(name):
    make = lambda device: images(name, device=device)
    close(FedAvg(0.05, 2), make, 1e-8, rounds=2, x0=make("cpu").start(), metrics=("loss", "accuracy"))


@pytest.mark.parametrize("algorithm", [MOON(0.05, 2, 0.1), FedNTD(0.05, 2, 0.1), FedGen(0.05, 2)], ids=repr)
def test_methods_that_look_into_networks(algorithm):
    make = lambda device: images(device=device)
    close(algorithm, make, 1e-8, rounds=2, x0=make("cpu").start(), metrics=("loss",))


def test_crops_and_flips_are_those_of_the_cpu():
    """Pixels are moved, so the images are equal bit for bit."""
    here, there = (images("decomfl-mnist", augment="crop+flip", device=device) for device in ("cpu", DEVICE))
    for a, b in zip(here.draw(here.clients, 3, Key(2)), there.draw(there.clients, 3, Key(2)), strict=True):
        assert torch.equal(here._seen(a), there._seen(b).cpu())
    make = lambda device: images("decomfl-mnist", augment="crop+flip", device=device)
    close(FedAvg(0.05, 2), make, 1e-8, rounds=2, x0=here.start(), metrics=("loss", "accuracy"))


def test_mixed_precision_is_near_single():
    """bfloat16 products: as near to float32 on this device as they are on the CPU, within its 8 bits."""
    make = lambda kind: ImageClassification(X.float(), Y, HALVES, NET, Key(0), device=DEVICE, precision=kind)
    x0 = make("full").start()
    single, mixed = (run(FedAvg(0.05, 2), make(kind), 2, x0=x0, metrics=("loss",)) for kind in ("full", "bf16"))
    assert mixed.x.dtype == torch.float32
    assert mixed["loss"][-1] == pytest.approx(single["loss"][-1], rel=0.02)
    assert not torch.equal(mixed.x, single.x)


def test_directions_are_those_of_the_cpu():
    """Zeroth-order clients on other hardware agree bit for bit."""
    layout = PROBLEMS["two layers"]().layout
    parts = [Direction(Key(3), layout, "sphere", torch.float32, torch.device(name)) for name in ("cpu", DEVICE)]
    for (where, here), (place, there) in zip(*parts, strict=True):
        assert where == place
        assert torch.equal(here, there.cpu())
