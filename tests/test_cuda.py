"""On a machine with a CUDA device: the same draws, the same trajectory."""

import copy
from concurrent.futures import ThreadPoolExecutor

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
from fedtheory.maps.directions import Direction, slopes
from fedtheory.problems import graphs
from fedtheory.problems.models.networks import Conv, Flatten, Linear, Network, Norm, Pool, ReLU, network

DEVICE = "cuda"
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


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


@pytest.mark.parametrize("augment", ["none", "flip"])
@pytest.mark.parametrize("name", SMALL)
def test_what_is_replayed_is_what_is_computed(name, augment):
    """A shape's first calls are computed, the others are one launch: every call gives that call's numbers."""
    p = images(name, device=DEVICE, augment=augment)
    clients, g = torch.arange(3), Key(1).generator()
    for xi in p.draw(clients, 6, Key(2)):
        y = p.start() + 0.1 * torch.randn(3, p.d, generator=g, dtype=torch.float64).to(DEVICE)
        torch.testing.assert_close(p.grads(y, xi), p._gradient(y, xi), rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            for at in (y, y[:1].expand(3, -1)):
                torch.testing.assert_close(p.losses(at, xi), p.losses_at(at, None, xi), rtol=1e-9, atol=1e-12)
    assert {shape[0] for shape in p._graphs._kept} == {"grads", "losses"}
    again = copy.deepcopy(p)
    assert not again._graphs._kept
    assert again.fingerprint() == p.fingerprint()
    torch.testing.assert_close(again.grads(y, xi), p.grads(y, xi), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_what_is_replayed_in_single_precision(name):
    p = images(name)
    p = ImageClassification(p.images.float(), p.labels, p.parts, p.network, Key(1), batch=4, device=DEVICE)
    for xi in p.draw(torch.arange(3), 5, Key(2)):
        y = p.start().expand(3, -1)
        found, wanted = p.grads(y, xi), p._gradient(y, xi)
        assert float((found - wanted).norm() / wanted.norm()) < 1e-4
    assert p._graphs._kept


def odd() -> Network:
    """Layers of odd sizes: views of the flat vector lie at any address."""
    body = (Conv(3, 5, 3, bias=False), Norm(5), ReLU(), Conv(5, 7, 1), Norm(7), Pool(), ReLU(), Conv(7, 9, 2), ReLU())
    return Network("odd", (3, 8, 8), 3, (*body, Flatten(), Linear(36, 3)))


@pytest.mark.parametrize("precision", ["full", "bf16"])
@pytest.mark.parametrize("name", [*SMALL, "odd"])
def test_what_is_replayed_in_single_and_mixed_precision(name, precision):
    """Each client's gradient and loss are those that it has by itself, but for rounding."""
    net = odd() if name == "odd" else network(name, SMALL[name], 3)
    g = Key(4).generator()
    x, labels = torch.randn(60, *net.shape, generator=g), torch.randint(3, (60,), generator=g)
    options = {"batch": 7, "precision": precision, "device": DEVICE}
    p = ImageClassification(x, labels, torch.arange(60).split(12), net, Key(1), **options)
    y = p.start() + 0.1 * torch.randn(5, p.d, generator=g).to(DEVICE)
    for xi in p.draw(torch.arange(5), 5, Key(2)):
        found = p.grads(y, xi)
        own = torch.cat([p._gradient(y[i : i + 1], xi.client(i)) for i in range(5)])
        assert float((found - own).norm() / own.norm()) < (0.1 if precision == "bf16" else 1e-3)
        with torch.no_grad():
            losses = torch.cat([p.losses_at(y[i : i + 1], None, xi.client(i)) for i in range(5)])
            torch.testing.assert_close(p.losses(y, xi), losses, rtol=0.02 if precision == "bf16" else 1e-4, atol=1e-3)
    assert {shape[0] for shape in p._graphs._kept} == {"grads", "losses"}


def test_a_graph_that_would_hold_too_much_is_not_kept(monkeypatch):
    monkeypatch.setattr(graphs, "_SHARE", 1e-9)
    p = images("decomfl-mnist", device=DEVICE)
    y = p.start().expand(3, -1)
    for xi in p.draw(torch.arange(3), 5, Key(2)):
        torch.testing.assert_close(p.grads(y, xi), p._gradient(y, xi), rtol=1e-9, atol=1e-12)
    assert not p._graphs._kept
    assert p._graphs._refused


def test_other_threads_are_not_captured():
    p = images(device=DEVICE)
    (xi,), y = p.draw(torch.arange(3), 1, Key(2)), p.start().expand(3, -1)
    with ThreadPoolExecutor(1) as pool:
        found = [pool.submit(p.grads, y, xi).result() for _ in range(5)]
    assert not p._graphs._kept
    torch.testing.assert_close(found[-1], p.grads(y, xi), rtol=1e-12, atol=1e-14)


@pytest.fixture
def tf32():
    """The switch, which is put back."""
    before = torch.backends.cudnn.allow_tf32
    yield torch.backends.cudnn
    torch.backends.cudnn.allow_tf32 = before


def test_full_precision_is_not_tf32(tf32):
    """On an H100 this gradient is off by 1.6e-2 in TF32, and by 5e-7 in float32."""
    net = network("flss-cnn", (3, 32, 32), 10)
    g = torch.Generator().manual_seed(0)
    pictures, labels = torch.randn(64, 3, 32, 32, generator=g), torch.randint(10, (64,), generator=g)
    gaps = []
    for allowed in (False, True):
        grads = []
        for kind in (torch.float64, torch.float32):
            p = ImageClassification(pictures.to(kind), labels, [torch.arange(64)], net, Key(0), device=DEVICE)
            assert not tf32.allow_tf32
            tf32.allow_tf32 = allowed
            (xi,) = p.draw(p.clients, 1, Key(1))
            grads.append(p.grads(p.start()[None], xi).double())
        gaps.append(float((grads[1] - grads[0]).norm() / grads[0].norm()))
    assert gaps[0] < 1e-5
    assert gaps[1] > 1e-3


def test_zeroth_order_in_single_precision():
    """Slopes over 2 mu = 2e-3 of a loss: the card's float32 gives float64's within one in a thousand."""
    found = []
    for kind, device in ((torch.float64, "cpu"), (torch.float32, DEVICE)):
        p = ImageClassification(X.to(kind), Y, HALVES, NET, Key(0), device=device)
        z = [Direction(Key(i), p.layout, "gaussian", torch.float32, p.device) for i in range(4)]
        (xi,) = p.draw(p.clients, 1, Key(1))
        found.append(slopes(p, p.start().expand(p.n, -1), z, 1e-3, xi, central=True).double().cpu())
    assert float((found[1] - found[0]).norm() / found[0].norm()) < 2e-3


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
    here, there = (torch.cat([z.cpu() for _, z in made]) for made in parts)  # blocks on the one, whole on the other
    assert torch.equal(here, there)
