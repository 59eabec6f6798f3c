"""Networks of one flat vector against PyTorch's modules, and image classification as a federated problem."""

import math
import os
import platform
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from cases import DOUBLE, SMALL, images, problem
from torch import nn
from torch.nn import functional

from fedtheory import (
    BAFFLE,
    SSF,
    FedAvg,
    FedCom,
    FedDC,
    FedDyn,
    FedFTG,
    FedHM,
    FedProx,
    FedSub,
    ImageClassification,
    Key,
    LowRank,
    Scaffold,
    Spherical,
    play_round,
    run,
)
from fedtheory.core.checks import free_bytes
from fedtheory.core.engine import drain, map_leaves, run_clients
from fedtheory.problems.images import EVALUATED, _mixture
from fedtheory.problems.minibatches import Batch
from fedtheory.problems.models import networks
from fedtheory.problems.models import perceptron as perceptron_module
from fedtheory.problems.models.networks import NETWORKS, Flatten, Linear, Network, Pool, ReLU, network
from fedtheory.running import allocator, meter


def points(p: ImageClassification, S: int) -> torch.Tensor:
    return p.start() + 0.1 * torch.randn(S, p.d, generator=Key(5).generator(), dtype=DOUBLE)


# Networks.


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_batch_of_one_image_is_normalised(dtype):
    """PyTorch's own backward pass of such a batch, one image with channels last in memory, is wrong on a CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body = [nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.ReLU()]
        module = nn.Sequential(*body, nn.Flatten(), nn.Linear(36, 3)).to(dtype)
    x, labels = (part[:9] for part in images(9, (3, 6, 6)))
    x = x.to(dtype)
    p = ImageClassification(x, labels, [torch.arange(9)], module, Key(1), batch=4, epochs=1)
    *_, last = p.draw(p.clients, p.steps, Key(2))
    assert last.index.shape == (1, 1)
    at, own = p.start()[None], list(module.parameters())
    loss = functional.cross_entropy(module(x[last.index[0]]), labels[last.index[0]])
    wanted = torch.cat([part.flatten() for part in torch.autograd.grad(loss, own)])[None]
    leaf = at.clone().requires_grad_()
    found = {
        "grads": p.grads(at, last),
        "penalised": p.penalised(at, last, lambda out: torch.zeros(1, dtype=dtype)),
        "losses": torch.autograd.grad(p.losses(leaf, last).sum(), leaf)[0],
    }
    bound = 1e-12 if dtype == torch.float64 else 1e-5
    assert {name: float((of - wanted).norm() / wanted.norm()) < bound for name, of in found.items()} == dict.fromkeys(
        found, True
    )


@pytest.mark.parametrize(
    ("name", "shape", "classes", "count"),
    [
        ("decomfl-mnist", (1, 28, 28), 10, 28_938),  # DeComFL, Sec. 5.1
        ("decomfl-fashion", (1, 28, 28), 62, 1_206_590),  # DeComFL, Sec. 5.1
        ("flss-cnn", (3, 32, 32), 10, 878_538),
        ("flss-cnn", (3, 32, 32), 100, 924_708),
        ("resnet18", (3, 32, 32), 10, 11_173_962),
        ("resnet20", (3, 32, 32), 10, 269_722),  # He et al. 2016, Table 6: 0.27M
        ("resnet110", (3, 32, 32), 10, 1_727_962),  # He et al. 2016, Table 6: 1.7M
    ],
)
def test_parameter_counts(name, shape, classes, count):
    assert network(name, shape, classes).layout.size == count


@pytest.mark.parametrize(("side", "fits"), [(8, False), (15, False), (16, True)])
def test_images_too_small_for_a_network_are_refused(side, fits):
    with nullcontext() if fits else pytest.raises(ValueError, match="expected"):
        network("flss-cnn", (3, side, side), 10)


def module(built: Network) -> nn.Sequential:
    """The same network in PyTorch's modules, written apart from the package's: one entry per layer."""
    shape, classes = built.shape, built.classes
    if built.name == "mlp":
        pixels = math.prod(shape)
        return nn.Sequential(nn.Flatten(), nn.Linear(pixels, 64), nn.ReLU(), nn.Linear(64, classes))
    if built.name == "decomfl-mnist":
        body = [nn.Conv2d(shape[0], 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        body += [nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        return nn.Sequential(*body, nn.Linear(32 * (shape[1] // 4) * (shape[2] // 4), classes))
    if built.name == "fedmud-cnn4":
        c, side, body = shape[0], shape[1], []
        for width in (32, 64, 128, 256):
            body += [nn.Conv2d(c, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            c = width
            if side > 1:
                body, side = [*body, nn.MaxPool2d(2)], side // 2
        return nn.Sequential(*body, nn.Flatten(), nn.Linear(256 * side * side, classes, bias=False))
    return _ResNet8(shape, classes)


class _ResNet8(nn.Sequential):
    def __init__(self, shape, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(shape[0], 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))
        self.blocks = nn.ModuleList()
        for c, out, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
            first = [nn.Conv2d(c, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
            self.blocks.append(nn.Sequential(*first, nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)))
        self.head = nn.Linear(64, classes)

    def forward(self, h):
        h = self.stem(h).relu()
        for block in self.blocks:
            out = block(h)
            stride = h.shape[-1] // out.shape[-1]
            h = functional.pad(h[:, :, ::stride, ::stride], (0, 0, 0, 0, 0, out.shape[1] - h.shape[1]))
            h = (out + h).relu()
        return self.head(h.mean((2, 3)))


@pytest.mark.parametrize("name", SMALL)
def test_networks_are_the_modules(name):
    """Logits, and the gradient of the loss, of the flat vector are those of PyTorch's modules with the same weights."""
    built = network(name, SMALL[name], 3)
    x, (pictures, labels) = built.init(Key(2)), images(10, SMALL[name])
    reference = module(built).double()
    nn.utils.vector_to_parameters(x, reference.parameters())
    leaf = x[None].clone().requires_grad_()
    logits = built.logits(leaf, pictures[None])[0]
    torch.testing.assert_close(logits, reference(pictures), rtol=1e-10, atol=1e-10)
    functional.cross_entropy(logits, labels).backward()
    functional.cross_entropy(reference(pictures), labels).backward()
    expected = torch.cat([p.grad.flatten() for p in reference.parameters()])
    torch.testing.assert_close(leaf.grad[0], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", NETWORKS)
def test_stacked_networks_are_the_networks_one_by_one(name):
    shape = (3, 16, 16)
    built = network(name, shape, 4)
    moved = torch.empty(2, built.layout.size, dtype=DOUBLE).uniform_(-0.02, 0.02, generator=Key(4).generator())
    weights = moved.add_(built.init(Key(3)))
    pictures = images(6, shape)[0].view(2, 3, *shape)
    with torch.no_grad():
        together = built.logits(weights, pictures)
        apart = torch.cat([built.logits(weights[i : i + 1], pictures[i : i + 1]) for i in range(2)])
    torch.testing.assert_close(together, apart, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("side", [2, 5, 8])
def test_pooling_with_and_without_gradients(side):
    h = torch.randn(2, 3, 4, side, side, generator=Key(6).generator(), dtype=DOUBLE)
    assert torch.equal(Pool().forward(iter([]), h, None), Pool().forward(iter([]), h.clone().requires_grad_(), None))


def test_initial_weights_are_pytorchs_in_range_and_can_be_normal():
    built = network("decomfl-mnist", (1, 28, 28), 10)
    first = built.init(Key(0))[:400]
    assert float(first.abs().max()) <= 1 / 5
    assert float(first.std()) == pytest.approx(0.2 / math.sqrt(3), rel=0.1)
    normal = built.init(Key(0), std=0.01).split(built.sizes)
    assert all(float(normal[i].std()) == pytest.approx(0.01, rel=0.15) for i in built.weights)


# The federated problem.


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("epochs", [None, 2])
def test_stacked_clients_equal_clients_one_by_one(name, epochs):
    """Full and ragged batches, idle clients, gradients and losses; batch moments never see padding."""
    p = problem(name, epochs=epochs)
    steps = 3 if epochs is None else p.steps
    xi, y = p.draw(p.clients, steps, Key(7)), points(p, 4)
    for k in range(steps):
        found = []
        for p.stacked in (True, False):
            found.append((p.grads(y, xi[k]), p.losses(y, xi[k])))
        torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_gradients_are_those_of_the_losses(name):
    p = problem(name)
    (xi,), y = p.draw(p.clients, 1, Key(8)), points(p, 4)
    v = torch.randn(p.d, generator=Key(9).generator(), dtype=DOUBLE)
    h = 1e-7  # small enough that no unit of these changes sign
    slope = (p.losses(y + h * v, xi) - p.losses(y - h * v, xi)) / (2 * h)
    torch.testing.assert_close(p.grads(y, xi) @ v, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (5,), (7, 4)])
@pytest.mark.parametrize("epochs", [None, 2])
def test_the_gradient_of_perceptrons_is_that_of_autograd(hidden, epochs):
    built, (x, y) = perceptron(*hidden), images()
    p = ImageClassification(x, y, list(torch.arange(40).split([12, 9, 7, 12])), built, Key(1), batch=4, epochs=epochs)
    written, by_autograd = points(p, 4), points(p, 4).requires_grad_()
    for xi in (*p.draw(p.clients, 6 if epochs else 3, Key(2)), p.full(p.clients)):
        (expected,) = torch.autograd.grad(p.losses(by_autograd, xi).sum(), by_autograd)
        assert p.written_out
        assert torch.allclose(p.grads(written, xi), expected, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("onednn", [True, False])
def test_both_libraries_of_products_give_the_gradient(onednn, monkeypatch):
    """In float32 a large first layer goes to oneDNN, client by client, where torch has it; to MKL otherwise."""
    if onednn and perceptron_module.LINEAR is None:
        pytest.skip("this build of torch has no oneDNN")
    calls, product = [], perceptron_module.LINEAR
    monkeypatch.setattr(perceptron_module, "LINEAR", (lambda *a: calls.append(1) or product(*a)) if onednn else None)
    built, (x, y) = perceptron(-(-(2**14) // math.prod(SMALL["mlp"]))), images()
    p, q = (
        ImageClassification(x.to(dtype), y, list(torch.arange(40).split([19, 21])), built, Key(1), batch=19)
        for dtype in (torch.float32, DOUBLE)
    )
    at = 0.1 * torch.randn(2, p.d, generator=Key(9).generator(), dtype=DOUBLE)
    for xi in (*p.draw(p.clients, 1, Key(2)), p.full(p.clients)):
        calls.clear()
        found, exact = p.grads(at.float(), xi), q.grads(at, xi)
        assert len(calls) == (4 if onednn else 0)
        torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-6)


def test_only_perceptrons_are_written_out():
    assert perceptron_module.is_perceptron(perceptron(5, 4))
    flat = math.prod(SMALL["mlp"])
    for ops in (
        (Linear(flat, 3),),
        (Flatten(), Linear(flat, 3, bias=False)),
        (Flatten(), Linear(flat, 5), Linear(5, 3)),
        (Flatten(), Linear(flat, 3), ReLU()),
    ):
        assert not perceptron_module.is_perceptron(Network("other", SMALL["mlp"], 3, ops))


def perceptron(*hidden: int) -> Network:
    widths = (math.prod(SMALL["mlp"]), *hidden, 3)
    ops = [op for a, b in pairwise(widths) for op in (Linear(a, b), ReLU())]
    return Network("perceptron", SMALL["mlp"], 3, (Flatten(), *ops[:-1]))


@pytest.mark.parametrize("count", [1, 7, 20, 1000])
@torch.no_grad()
def test_one_model_on_many_images_is_evaluated_in_passes(count, monkeypatch):
    """Clients at one point, with a shift that is made once: passes of at most so many images give the same losses."""
    p = problem("decomfl-mnist")
    (xi,), y, made, passes = p.draw(p.clients, 1, Key(8)), p.start()[None].expand(4, -1), [], []
    shift = lambda j, layer: made.append(j) or 1.1 * layer
    alone = torch.cat([p.losses(1.1 * y[:1], xi.client(i)) for i in range(4)])
    forward = Network.forward
    monkeypatch.setattr(Network, "forward", lambda net, *args: passes.append(args[1].shape[1]) or forward(net, *args))
    monkeypatch.setitem(EVALUATED, "cpu", count)
    assert torch.allclose(p.losses_at(y, shift, xi), alone, rtol=1e-12)
    images = xi.index.numel()
    assert sum(passes) == images
    assert max(passes) <= count
    assert len(passes) == -(-images // count)
    assert made == list(range(len(p.layout.layers)))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("stacked", [True, False])
def test_a_shift_made_layer_by_layer_is_the_shifted_model(name, stacked):
    p = problem(name, stacked=stacked)
    (xi,) = p.draw(p.clients, 1, Key(8))
    v = torch.randn(1, p.d, generator=Key(9).generator(), dtype=DOUBLE)
    shift = lambda j, layer: layer + v.split(p.network.sizes, dim=-1)[j]
    for y in (points(p, 4), p.start().expand(4, -1)):  # apart, and all at one point
        torch.testing.assert_close(p.losses_at(y, shift, xi), p.losses(y + v, xi), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "decomfl-mnist"])
def test_clients_at_one_point_share_one_pass(name, monkeypatch):
    p = problem(name, stacked=False)
    (xi,) = p.draw(p.clients, 1, Key(8))
    passes = []
    forward = Network.forward
    monkeypatch.setattr(Network, "forward", lambda *a: passes.append(1) or forward(*a))
    p.losses(p.start().expand(4, -1), xi)
    assert len(passes) == 1
    p.losses(p.start().repeat(4, 1), xi)
    assert len(passes) == 5


CHAINS = {
    "decomfl-mnist": (1, 14, 14),
    "decomfl-fashion": (2, 11, 11),
    "flss-cnn": (3, 16, 16),
    "fedmud-cnn4": (2, 11, 11),
}
onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")


def chain(name: str, dtype=torch.float32, flat: bool = False, **options) -> ImageClassification:
    """Float32 of what is otherwise float64; `flat`: images of one colour each, where all pixels of a pooling tie."""
    x, y = images(24, CHAINS[name])
    x = x[:, :, :1, :1].expand_as(x) if flat else x
    parts, built = [torch.arange(9), torch.arange(9, 24)], network(name, CHAINS[name], 3)
    return ImageClassification(x.to(dtype).contiguous(), y, parts, built, Key(1), batch=9, **options)


@onednn
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("flat", [False, True])
def test_a_step_in_onednns_layout_is_the_step(name, flat, monkeypatch):
    """Gradients and losses in float32 beside float64's, also where an odd row is dropped and where maxima tie."""
    laid, p, exact = [], chain(name, flat=flat), chain(name, DOUBLE, flat)
    to_mkldnn = torch.Tensor.to_mkldnn
    monkeypatch.setattr(torch.Tensor, "to_mkldnn", lambda h, *dtype: laid.append(dtype) or to_mkldnn(h, *dtype))
    y = (exact.start() + 0.02 * torch.randn(2, p.d, generator=Key(5).generator(), dtype=DOUBLE)).float()
    for xi in (*p.draw(p.clients, 1, Key(2)), p.full(p.clients)):
        torch.testing.assert_close(p.grads(y, xi).double(), exact.grads(y.double(), xi), rtol=1e-4, atol=1e-6)
        assert laid == [(torch.float32,)] * 2
        with torch.no_grad():
            torch.testing.assert_close(p.losses(y, xi).double(), exact.losses(y.double(), xi), rtol=1e-5, atol=1e-6)
        assert laid == [(torch.float32,)] * 4
        laid.clear()


@onednn
def test_one_value_a_channel_in_onednns_layout():
    """A batch of one image that poolings make one pixel: it is its own mean, and what is left is the shift."""
    p, exact = chain("fedmud-cnn4"), chain("fedmud-cnn4", DOUBLE)
    y, xi = exact.start()[None], Batch(torch.tensor([[3]]), (1,))
    assert p.network.blocked(p.images[xi.index], torch.float32).is_mkldnn
    torch.testing.assert_close(p.grads(y.float(), xi).double(), exact.grads(y, xi), rtol=1e-4, atol=1e-6)


@onednn
def test_evaluation_second_derivatives_and_other_networks_stay_in_torchs_layout(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "to_mkldnn", refuse)
    p = chain("decomfl-mnist")
    p.loss(p.start())
    p.accuracy(p.start())
    (xi,), leaf = p.draw(p.clients, 1, Key(2)), p.start().repeat(2, 1).requires_grad_()
    (first,) = torch.autograd.grad(p.losses(leaf, xi).sum(), leaf, create_graph=True)
    assert float(torch.autograd.grad(first.square().sum(), leaf)[0].norm()) > 0
    x, y = images(20, (3, 8, 8))
    residual = network("resnet18", (3, 8, 8), 3)
    q = ImageClassification(x.float(), y, [torch.arange(20)], residual, Key(1))
    assert q.grads(q.start()[None], q.full(q.clients)).isfinite().all()
    with pytest.raises(AssertionError, match="in oneDNN's layout"):
        p.grads(leaf.detach(), xi)


def refuse(*given):
    raise AssertionError("in oneDNN's layout")


@pytest.mark.parametrize("work", ["grads", "losses"])
def test_what_is_metered_lies_as_torch_has_it(work, monkeypatch):
    """A meter sees all products and tensors: in float32 as many as in float64, in half the bytes."""
    p, exact = chain("decomfl-mnist"), chain("decomfl-mnist", DOUBLE)
    (xi,) = p.draw(p.clients[:1], 1, Key(2))
    monkeypatch.setattr(torch.Tensor, "to_mkldnn", refuse)
    with torch.no_grad():
        counts, bytes_ = zip(
            *[
                (meter.multiplications(made), meter.peak_bytes(made))
                for of in (p, exact)
                for made in [lambda of=of: getattr(of, work)(of.start()[None], xi)]
            ]
        )
    assert counts[0] == counts[1] > 0
    assert 0.4 < bytes_[0] / bytes_[1] < 0.7


@pytest.mark.parametrize("precision", ["full", "bf16"])
def test_a_step_needs_no_onednn(precision, monkeypatch):
    """Without it, or in bfloat16 on a processor that lacks it, a step takes torch's layout and is the same step."""
    monkeypatch.setattr(networks, "wide", lambda: False)
    p = chain("decomfl-mnist", precision=precision)
    (xi,), y = p.draw(p.clients, 1, Key(2)), p.start().repeat(2, 1)
    first = p.grads(y, xi)
    monkeypatch.setattr(torch.Tensor, "to_mkldnn", refuse)
    if precision == "full":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    else:
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    second = p.grads(y, xi)
    assert float((first - second).norm() / second.norm()) < (1e-5 if precision == "full" else 0.02)


@onednn
@pytest.mark.parametrize("wide", [True, False])
def test_bfloat16_rounds_the_products_of_a_chain(wide, monkeypatch):
    """Gradients, losses and the model stay in float32; a gradient is off by bfloat16's eight bits, not by float32's."""
    monkeypatch.setattr(networks, "wide", lambda: wide)
    p, exact = chain("decomfl-mnist", precision="bf16"), chain("decomfl-mnist", DOUBLE)
    (xi,), y = p.draw(p.clients, 1, Key(2)), p.start().repeat(2, 1)
    laid, to_mkldnn = [], torch.Tensor.to_mkldnn
    monkeypatch.setattr(torch.Tensor, "to_mkldnn", lambda h, *dtype: laid.append(dtype) or to_mkldnn(h, *dtype))
    found, right = p.grads(y, xi), exact.grads(y.double(), xi)
    assert laid == [(torch.bfloat16,)] * (2 if torch.ops.mkldnn._is_mkldnn_bf16_supported() and not wide else 0)
    assert found.dtype == p.losses(y, xi).dtype == torch.float32
    assert 1e-4 < float((found - right).norm() / right.norm()) < 0.1
    threads = [run(FedAvg(0.05, 2), p, 2, metrics=(), threads=t).x for t in (1, 2)]
    assert torch.equal(*threads)


@pytest.mark.parametrize(
    ("capability", "own", "wide"),
    [
        ("AVX512", (), True),
        ("AVX2", (), True),
        ("AVX512", ("_is_amx_tile_supported", "_is_avx512_bf16_supported"), False),
        ("AVX512", ("_is_avx512_bf16_supported",), False),
        ("DEFAULT", (), False),
    ],
)
def test_a_processor_with_products_of_bfloat16_uses_them(capability, own, wide, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda name=name: name in own, raising=False)
    assert networks.wide.__wrapped__() == wide


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_through_float32_is_bfloat16s(groups, monkeypatch):
    """Of sums that bfloat16 can hold they are the same bits, forward and back; others are rounded before and after."""
    op, g = networks.Conv(3, 4, 3, pad=1), Key(3).generator()
    draw = lambda *shape: torch.randint(-2, 3, shape, generator=g).float().requires_grad_()
    exact = draw(groups, 4 * 27), draw(groups, 4), draw(groups, 5, 3, 4, 4)
    rough = tuple((one + 0.3).detach().requires_grad_() for one in exact)
    rounded = [one.bfloat16().double() for one in rough]

    def both(weight, bias, h):
        with torch.autocast("cpu", torch.bfloat16):
            out = op.forward(iter((weight, bias)), h, None)
        assert out.dtype == torch.bfloat16
        return out, *torch.autograd.grad(out.float().sum(), (weight, bias, h))

    found = {}
    for wide in (True, False):
        monkeypatch.setattr(networks, "wide", lambda wide=wide: wide)
        found[wide] = both(*exact)
        whole = op.forward(iter(rounded[:2]), rounded[2], None)
        torch.testing.assert_close(both(*rough)[0].double(), whole, rtol=1 / 256, atol=1e-5)
    assert all(map(torch.equal, found[True], found[False]))
    assert all(one.dtype == torch.float32 for one in found[True][1:])


def test_an_epoch_is_a_permutation_and_hangs_on_the_client_alone():
    p = problem(epochs=2)
    assert p.steps == 6
    assert [b.size for b in p.draw(p.clients, 6, Key(1))][2] == (4, 1, 4, 4)
    alone = p.draw(torch.tensor([2]), 6, Key(1))
    xi = p.draw(torch.tensor([3, 2]), 6, Key(1))
    rows = [b.index[1, : b.size[1]] for b in xi]
    assert all(torch.equal(a.client(0).index[0], row) for a, row in zip(alone, rows))
    for epoch in (rows[:2], rows[2:4]):
        assert torch.equal(torch.cat(epoch).sort()[0], p.parts[2])
    assert [len(row) for row in rows[4:]] == [0, 0]  # done after two epochs of two batches: idle
    idle = p.draw(p.clients, 6, Key(1))[5]
    assert torch.equal(p.grads(points(p, 4), idle)[2], torch.zeros(p.d, dtype=DOUBLE))


REFUSED = {  # methods with terms of their own whose server counts on one K, and the same without them
    "FedCom": (FedCom(0.1, 6, gate=True), FedCom(0.1, 6)),
    "FedSub": (FedSub(0.1, 6, Spherical(3)), FedSub(0.1, 6, Spherical(3), dual=False)),
    "FedDC": (FedDC(0.1, 6, 0.1), FedAvg(0.1, 6)),
    "FedProx": (None, FedProx(0.1, 6, 0.0)),
    "FedHM": (None, FedHM(0.1, 6, LowRank(0.5, layers="all"))),
}


@pytest.mark.parametrize(("refused", "allowed"), REFUSED.values(), ids=REFUSED)
def test_clients_that_are_done_stand_still_or_the_method_is_refused(refused, allowed):
    """With epochs, where clients have unequally many batches. What runs leaves a client where it is in an idle step."""
    p, even = problem(epochs=2), problem(epochs=2, sizes=(12, 12, 12, 12))
    assert (p.uneven, even.uneven, problem().uneven) == (True, False, False)
    if refused is not None:
        with pytest.raises(ValueError, match=f"epochs=2: .*{refused.name}.*Fix: "):
            run(refused, p, 1, metrics=())
        with pytest.raises(ValueError, match=f"epochs=2: .*{refused.name}.*Fix: "):
            play_round(refused, p, refused.init(p, p.start(), Key(0)), p.clients, 0)
        run(refused, even, 1, metrics=())
    state = allowed.init(p, p.start(), Key(0))
    down = allowed.broadcast(state.server, Key(1))
    *_, before, after = allowed.client(p, p.clients, state.own, down, Key(1))
    assert torch.equal(before[2], after[2])
    assert not torch.equal(before[0], after[0])


OWN_STEPS = {
    "FedProx": FedProx(0.1, 6, 1.0),
    "FedHM": FedHM(0.1, 6, LowRank(0.5, layers="all"), decay=0.5),
    "FedDyn": FedDyn(0.1, 6, 0.1),
    "SCAFFOLD": Scaffold(0.1, 6),
    "SSF": SSF.haar(0.1, 6, 3),
    "FedFTG": FedFTG(0.1, 6, 2),
}


@pytest.mark.parametrize("method", OWN_STEPS.values(), ids=OWN_STEPS)
def test_a_client_with_fewer_batches_runs_its_line_with_its_own_k(method):
    """However clients are stacked, and whoever takes part; another number of steps is refused."""
    p = problem(epochs=2)
    assert p.steps_of(p.clients) == [6, 6, 4, 6]
    state = method.init(p, p.start(), Key(0))
    down = method.broadcast(state.server, Key(1))
    up, own = run_clients(method, p, p.clients, state.own, down, Key(1))
    for i in p.clients.tolist():
        one = p.clients[i : i + 1]
        alone = replace(method, local_steps=p.steps_of(one)[0])
        row = lambda leaf, i=i: leaf[i : i + 1]
        sent, kept = drain(alone.client(p, one, map_leaves(row, state.own), down, Key(1)))
        for found, wanted in ((up, sent), (own, kept)):
            map_leaves(lambda leaf, own, row=row: torch.testing.assert_close(row(leaf), own), found, wanted)
    once, again = (run(method, p, 3, metrics=("loss",), sampled=3, chunk=chunk).x for chunk in (None, 1))
    torch.testing.assert_close(once, again)
    with pytest.raises(ValueError, match="local_steps=5: expected 6"):
        run(replace(method, local_steps=5), p, 1, metrics=())


def test_scaffold_on_unequal_clients_by_hand():
    """Client 2 makes four steps where the others make six, and its control is the mean of four gradients."""
    p, lr = problem(epochs=2), 0.1
    method = Scaffold(lr, 6)
    state = run(method, p, 2, metrics=()).state
    x, c, ci = state.server.x, state.server.c, state.own.c[2]
    batches, y, grads = p.draw(torch.tensor([2]), 4, Key(9).fold("xi")), x, []
    for xi in batches:
        grads.append(p.grads(y[None], xi)[0])
        y = y - lr * (grads[-1] - ci + c)
    down = method.broadcast(state.server, Key(9))
    up, own = run_clients(method, p, p.clients, state.own, down, Key(9))
    torch.testing.assert_close(up.dy[2], y - x)
    torch.testing.assert_close(own.c[2], torch.stack(grads).mean(0))


def test_endless_batches_are_full():
    p = problem()
    sizes = {b.size for b in p.draw(p.clients, 9, Key(1))}
    assert sizes == {(4, 4, 4, 4)}
    seen = torch.cat([b.index[1] for b in p.draw(p.clients, 9, Key(1))])
    assert torch.equal(torch.bincount(seen - 12), torch.full((9,), 4))  # 36 draws of 9 samples: each four times


@pytest.mark.parametrize("name", ["mlp", "decomfl-mnist"])
def test_one_client_with_one_pass_is_an_epoch_of_sgd(name):
    p = problem(name, sizes=(10,), epochs=1)
    reference = module(p.network).double()
    nn.utils.vector_to_parameters(p.start(), reference.parameters())
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    for batch in p.draw(p.clients, p.steps, Key(0).fold("round", 0, "xi")):
        rows = batch.index[0, : batch.size[0]]
        optimizer.zero_grad()
        functional.cross_entropy(reference(p.images[rows]), p.labels[rows]).backward()
        optimizer.step()
    history = run(FedAvg(0.1, p.steps), p, 1, metrics=())
    torch.testing.assert_close(history.x, nn.utils.parameters_to_vector(reference.parameters()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "decomfl-mnist", "fedmud-cnn4"])
def test_threads_and_chunks(name):
    """Two threads give the bits of one; stacking changes rounding only."""
    p = problem(name)
    runs = [run(Scaffold(0.05, 3), p, 2, sampled=3, metrics=(), chunk=1, threads=t).x for t in (1, 2)]
    assert torch.equal(*runs)
    p.stacked = True
    stacked = run(Scaffold(0.05, 3), p, 2, sampled=3, metrics=(), chunk=4).x
    torch.testing.assert_close(stacked, runs[0], rtol=1e-8, atol=1e-10)


def test_a_checkpoint_is_of_this_partition_and_network(tmp_path):
    """What decides a run is in its fingerprint; a run that was killed goes on with the same bits."""
    prints = {problem(**options).fingerprint() for options in ({}, {"sizes": (10, 11, 7, 12)}, {"std": 0.1})}
    prints |= {problem(epochs=1).fingerprint(), problem(batch=5).fingerprint(), problem("decomfl-mnist").fingerprint()}
    assert len(prints) == 6
    assert problem().fingerprint() == problem().fingerprint()
    whole = run(FedAvg(0.1, 2), problem(), 6, sampled=2, metrics=("loss",))
    run(FedAvg(0.1, 2), problem(), 4, sampled=2, metrics=("loss",), checkpoint=tmp_path, checkpoint_every=2)
    resumed = run(FedAvg(0.1, 2), problem(), 6, sampled=2, metrics=("loss",), checkpoint=tmp_path)
    assert torch.equal(whole.x, resumed.x)
    assert whole["loss"] == resumed["loss"]
    with pytest.raises(ValueError, match="checkpoint"):
        run(FedAvg(0.1, 2), problem(sizes=(10, 11, 7, 12)), 6, sampled=2, metrics=("loss",), checkpoint=tmp_path)


def test_moments_are_those_of_the_mixture():
    p = problem("fedmud-cnn4", batch=100)
    first = p.network.ops[0]
    x = p.start()
    (mean, var), *rest = p.moments(x)
    h = first.forward(iter([x[None, : p.network.sizes[0]]]), p.images[None], None)[0]
    torch.testing.assert_close(mean[0], h.mean((0, 2, 3)))
    torch.testing.assert_close(var[0], h.var((0, 2, 3), correction=0))
    assert len(rest) == 3
    assert p.moments_cost.scalars == 2 * (32 + 64 + 128 + 256)
    assert problem("mlp").moments(problem("mlp").start()) == []
    assert problem("mlp").moments_cost.scalars == 0


def test_moments_hang_on_no_order():
    """Data sorted by label: drawn images have every label, the first ones few; a client's indices may be shuffled."""
    shift = torch.arange(10.0, dtype=torch.float64).repeat_interleave(40)  # each label has a mean of its own
    noise = torch.randn(400, 1, 4, 4, generator=Key(0).generator(), dtype=DOUBLE)
    x, y = noise + shift[:, None, None, None], shift.long()
    net = network("fedmud-cnn4", (1, 4, 4), 10)
    halves = list(torch.arange(400).view(-1, 2).T)
    made = lambda parts, **options: ImageClassification(x, y, parts, net, Key(1), batch=40, **options)
    spread = lambda p: float(p.moments(p.start())[0][1].sum())
    whole = spread(ImageClassification(x, y, [torch.arange(400)], net, Key(1), batch=400))
    drawn, shuffled = made(halves), made([part[torch.randperm(200)] for part in halves])
    assert spread(drawn) == pytest.approx(whole, rel=0.25)
    assert spread(made(halves, moments="first")) < whole / 2
    x0 = drawn.start()
    assert all(
        torch.equal(a, b) for ours, theirs in zip(drawn.moments(x0), shuffled.moments(x0)) for a, b in zip(ours, theirs)
    )
    assert drawn.fingerprint() != made(halves, moments="first").fingerprint()
    few = ImageClassification(x, y, list(torch.arange(400).split([3] * 20 + [7] * 20 + [200])), net, Key(1), batch=5)
    each = [made([part]).moments(x0) for _, index in few._looked_at for part in index]  # in blocks as one by one
    mixed = sum(w * mean for w, ((mean, _), *_) in zip(few.weights.tolist(), each))
    torch.testing.assert_close(few.moments(x0)[0][0], mixed)


def test_a_small_variance_beside_a_large_mean():
    """Mean square minus squared mean would be rounding alone."""
    found = [(torch.tensor([[4000.0], [4000.5]]), torch.tensor([[1e-3], [1e-3]]))] * 2
    mixed = None
    for at, block in enumerate(found, 1):
        mixed = _mixture(torch.tensor([0.5, 0.5]) / at, block, mixed)
    assert float(mixed[0]) == 4000.25
    assert float(mixed[1]) == pytest.approx(0.0625 + 1e-3, rel=1e-4)


def test_accuracy_and_loss_by_hand():
    p = problem("mlp")
    x = points(p, 1)[0]
    logits = p.network.logits(x[None], p.images[None])[0]
    assert p.accuracy(x) == pytest.approx(float((logits.argmax(1) == p.labels).double().mean()))
    assert p.loss(x) == pytest.approx(float(functional.cross_entropy(logits, p.labels)))
    assert p.loss(x) == pytest.approx(super(ImageClassification, p).loss(x))


def test_digits_are_learnt():
    """scikit-learn's digits need no file: a perceptron reaches 90% on the held-out fifth in 30 rounds."""
    p = ImageClassification.load("digits", "mlp", Key(0), clients=8, partition="dirichlet", alpha=1.0, batch=32)
    history = run(FedAvg(0.1, 10), p, 30, sampled=4, every=30, metrics=("accuracy",))
    assert history["accuracy"][-1] > 0.9 > 0.3 > history["accuracy"][0]


def test_load_resizes_and_cuts():
    p = ImageClassification.load("digits", "decomfl-mnist", Key(0), clients=3, side=12, subset=100, tested=50)
    assert p.images.shape == (100, 1, 12, 12)
    assert len(p.test[0]) == 50
    assert sorted(torch.cat(p.parts).tolist()) == list(range(100))


X, Y = images()
NET = network("mlp", (1, 6, 6), 3)
HALVES = [torch.arange(20), torch.arange(20, 40)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: network("vgg", (1, 8, 8), 3), "network='vgg'"),
        (lambda: network("mlp", (0, 8, 8), 3), "shape (channels)=0"),
        (lambda: network("mlp", (1, 8, 8), 1), "classes=1"),
        (lambda: network("flss-cnn", (1, 8, 8), 3), "shape="),
        (lambda: ImageClassification(X, Y, HALVES, "mlp", Key(0)), "network='mlp'"),
        (lambda: ImageClassification(X.half(), Y, HALVES, NET, Key(0)), "images.dtype"),
        (lambda: ImageClassification(X.flatten(1), Y, HALVES, NET, Key(0)), "images.shape"),
        (
            lambda: ImageClassification(torch.zeros(2, 12, 14, 3), Y, HALVES, network("mlp", (3, 12, 14), 10), Key(0)),
            "pass images.permute(0, 3, 1, 2)",
        ),
        (lambda: ImageClassification(X * math.nan, Y, HALVES, NET, Key(0)), "images[0, 0, 0, 0]"),
        (lambda: ImageClassification(X, Y.double(), HALVES, NET, Key(0)), "labels (dtype, shape)"),
        (lambda: ImageClassification(X, Y[:9], HALVES, NET, Key(0)), "labels (dtype, shape)"),
        (lambda: ImageClassification(X, Y + 2, HALVES, NET, Key(0)), "labels (lowest, highest)"),
        (lambda: ImageClassification(X, Y, [], NET, Key(0)), "parts="),
        (lambda: ImageClassification(X, Y, [HALVES[0], HALVES[1] + 1], NET, Key(0)), "parts[1]"),
        (lambda: ImageClassification(X, Y, [Y > 0, Y < 1], NET, Key(0)), "pass parts[0].nonzero()[:, 0]"),
        (lambda: ImageClassification(X, Y, [HALVES[0], HALVES[1][:0]], NET, Key(0)), "parts[1]"),
        (lambda: ImageClassification(X, Y, HALVES, NET, "0"), "key='0'"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0), batch=0), "batch=0"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0), epochs=0), "epochs=0"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0), std=-1.0), "std=-1.0"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0), stacked=1), "stacked=1"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0), test=(X, Y - 1)), "test labels"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0), device="tpu"), "device='tpu'"),
        (lambda: ImageClassification(X, Y, HALVES, NET, Key(0)).steps, "epochs=None"),
        (lambda: run(FedAvg(0.1, 3), problem(epochs=1), 1, metrics=("error",)), "x_star=None"),
        (lambda: run(FedAvg(0.1, 2), problem(epochs=1), 1, metrics=()), "local_steps=2"),
        (lambda: run(BAFFLE(0.1), problem(epochs=1), 1, metrics=()), "epochs=None"),
        (lambda: run(FedAvg(0.1, 2), problem(), 1, metrics=(), threads=0), "threads=0"),
        (lambda: ImageClassification.load("digits", "mlp", Key(0), partition="shards"), "partition='shards'"),
        (lambda: ImageClassification.load("digits", "mlp", Key(0), subset=10**6), "subset=1000000"),
        (lambda: ImageClassification.load("digits", "mlp", Key(0), side=0), "side=0"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert words in str(caught.value)
    assert "expected" in str(caught.value)
    assert "Fix:" in str(caught.value)


def test_as_many_clients_together_as_a_cache_holds():
    """784-64-10 with batches of 64 is 0.6 MB a client: five in 3 MB; small networks all, convolutions one by one."""
    large = torch.zeros(10, 1, 28, 28)
    parts = list(torch.arange(10).split(1))
    built = ImageClassification(large, torch.arange(10) % 10, parts, network("mlp", (1, 28, 28), 10), Key(0), batch=64)
    assert built.chunk == 5
    apart, together = (run(FedAvg(0.1, 2), built, 2, metrics=(), chunk=chunk).x for chunk in (None, 10))
    torch.testing.assert_close(apart, together, rtol=1e-5, atol=1e-7)
    assert problem().chunk > problem().n
    assert problem("decomfl-mnist").chunk == 1


NEWER = platform.libc_ver()[0] == "glibc" and tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 35)
SHORT = (free_bytes(torch.device("cpu")) or 0) < 2**32


@cache
def played() -> dict[str, list[float]]:
    """What runs say of their memory, each in a fork of its own of one new process."""
    words = """if True:
        import os, resource, sys, torch
        from fedtheory import FedAvg, ImageClassification, Key, Problem, run
        from fedtheory.core.layout import Layer, Layout
        from fedtheory.core.problem import Constants
        from fedtheory.problems.models.networks import network
        torch.set_num_threads(1)
        pages = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096

        def activations():
            x, y = torch.randn(256, 1, 28, 28), torch.arange(256) % 10
            net = network("decomfl-mnist", (1, 28, 28), 10)
            p = ImageClassification(x, y, torch.arange(256).split(64), net, Key(0), batch=64)
            for rounds in (2, 1, 2):
                before = pages()
                run(FedAvg(0.1, 4), p, rounds, metrics=())
            print("activations", (pages() - before) / (rounds * 16))

        class Bowl(Problem):
            n, d = 2, 9 * 2**20
            layout = Layout((Layer("x", 9 * 2**20, 1),))
            weights, constants = torch.full((2,), 0.5).double(), Constants()
            dtype, device, closed_form, chunk = torch.float32, torch.device("cpu"), True, 1
            def start(self): return torch.ones(self.d)
            def draw(self, clients, steps, key): return [None] * steps
            def full(self, clients): return None
            def losses(self, y, xi): return y.square().sum(1) / 2
            def grads(self, y, xi): return y.clone()

        def vectors(rounds=12, last=3, name="vectors"):
            asked = []
            run(FedAvg(0.1, 2), Bowl(), rounds, metrics=(), progress=lambda done: asked.append(pages()))
            print(name, (asked[-1] - asked[-1 - last]) / last, resident())

        def told():
            os.environ["MALLOC_ARENA_MAX"] = "2"
            vectors(2, 1, "told")

        for name in sys.argv[1:]:
            if (child := os.fork()) == 0:
                globals()[name]()
                sys.exit()
            assert os.waitpid(child, 0)[1] == 0
    """
    free = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))} | {"OMP_NUM_THREADS": "1"}
    names = ["activations", *(["vectors", "told"] if NEWER and not SHORT else [])]
    command = [sys.executable, "-c", words, *names]
    done = subprocess.run(command, env=free, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = (line.split() for line in done.stdout.splitlines())
    return {name: [float(number) for number in numbers] for name, *numbers in said}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that gives memory back")
def test_a_run_keeps_the_memory_of_its_activations():
    """Steps of a convolutional network hardly ask the system for pages: fewer than its largest activation has (784)."""
    (asked,) = played()["activations"]
    assert asked < 50


@pytest.mark.skipif(not NEWER, reason="glibc before 2.35 keeps no large blocks, others care for themselves")
@pytest.mark.skipif(SHORT, reason="where memory is short nothing is kept")
def test_a_run_of_a_large_model_keeps_its_vectors_memory_until_it_ends():
    """Vectors of 36 MiB (9,216 pages): a round makes 15 of them, and finds the holes for them from round 9 on."""
    asked, resident = played()["vectors"]
    assert asked < 9216
    assert resident < 2**29
    asked, _ = played()["told"]  # who has told malloc something is left alone
    assert asked > 10 * 9216


def test_runs_within_a_run_leave_it_its_memory(monkeypatch):
    """What is kept is given back when the last run ends that keeps it."""
    told = []
    library = SimpleNamespace(mallopt=lambda *what: told.append(what) or 1, malloc_trim=lambda rest: told.append("end"))
    monkeypatch.setattr(allocator, "_glibc", lambda: library)
    monkeypatch.setattr(allocator, "free_bytes", lambda device: 2**50)
    with allocator.keeping_freed(2**26) as kept:
        with allocator.keeping_freed(2**26), allocator.keeping_freed(2**10) as small:
            assert (kept, small) == (True, False)
        assert "end" not in told
    assert told[-1] == "end"
    library.mallopt = lambda *what: 0  # as glibc before 2.35 answers
    told.clear()
    with allocator.keeping_freed(2**26) as kept:
        assert not kept
    assert told == []


def test_no_test_images_are_refused():
    images, labels = torch.rand(4, 1, 4, 4), torch.arange(4) % 2
    with pytest.raises(ValueError, match=r"test='0 images': expected at least one test image"):
        ImageClassification(
            images, labels, [torch.arange(4)], network("mlp", (1, 4, 4), 2), Key(0), test=(images[:0], labels[:0])
        )
