"""Modules of the user's as networks: the same mathematics as PyTorch's own, whoever stacks or threads them."""

import copy
import time
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector

from fedtheory import MOON, DeComFL, FedAvg, FedMUD, ImageClassification, Key, Kronecker, run
from fedtheory.core.simulate import sample_clients
from fedtheory.problems.models import networks, perceptron
from fedtheory.problems.models.modules import Module, of_module

SHAPE, CLASSES = (1, 8, 8), 4


class Skip(nn.Module):
    """No sequence: its middle is added to what it is given, and one matrix is used twice."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.middle = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm, self.gain = nn.GroupNorm(2, width), nn.Parameter(torch.tensor(0.7))
        self.last = nn.Linear(width, CLASSES)
        self.register_buffer("shift", torch.full((width, 1, 1), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x).relu()
        h = h + self.gain * self.middle(self.norm(h) + self.shift).relu()
        return self.last(self.middle(h).mean((2, 3)))


def perceptron_of_torch() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, CLASSES))


def normalised() -> nn.Module:
    block = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.ReLU())
    return nn.Sequential(
        block, nn.Conv2d(4, 6, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, CLASSES)
    )


def problem(module: nn.Module, clients: int = 4, dtype: torch.dtype = torch.float64, **options) -> ImageClassification:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(12 * clients, *SHAPE, generator=g, dtype=torch.float64).to(dtype)
    labels = torch.randint(CLASSES, (len(x),), generator=g)
    return ImageClassification(x, labels, torch.arange(len(x)).split(12), module, Key(0), batch=5, **options)


def made(build) -> nn.Module:
    torch.manual_seed(3)
    return build()


MODULES = [perceptron_of_torch, normalised, Skip]


@pytest.mark.parametrize("build", MODULES)
def test_it_starts_at_the_modules_own_weights_and_leaves_the_module_alone(build):
    module = made(build)
    before = copy.deepcopy(module.state_dict())
    of = problem(module)
    at = of.loss(of.start())
    assert torch.equal(of.start(), parameters_to_vector(module.parameters()).double())
    run(FedAvg(0.1, 2), of, 2, every=2, metrics=("loss", "accuracy"))
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert {value.dtype for value in module.parameters()} == {torch.float32}
    with torch.no_grad():
        for own in (*module.parameters(), *module.buffers()):
            own.zero_()
    assert of.loss(of.start()) == at


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("build", MODULES)
def test_fedavg_is_pytorchs_own_loop(build, stacked):
    """A module, its backward pass and an optimizer for each client, on the batches of the run."""
    module, rounds, lr, steps = made(build).double(), 2, 0.1, 3
    of = problem(module, stacked=stacked)
    found = run(FedAvg(lr, steps), of, rounds, sampled=3, every=rounds, metrics=()).x
    for t in range(rounds):
        key, models = Key(0).fold("round", t), []
        clients = sample_clients(of.n, 3, key.fold("clients"))
        xi = of.draw(clients, steps, key.fold("xi"))
        for j in range(len(clients)):
            own = copy.deepcopy(module)
            optimizer = torch.optim.SGD(own.parameters(), lr)
            for step in xi:
                optimizer.zero_grad()
                index = step.client(j).index[0]
                functional.cross_entropy(own(of.images[index]), of.labels[index]).backward()
                optimizer.step()
            models.append(parameters_to_vector(own.parameters()).detach())
        nn.utils.vector_to_parameters(torch.stack(models).mean(0), module.parameters())
    assert torch.allclose(found, parameters_to_vector(module.parameters()), rtol=0, atol=1e-13)


def test_a_sequence_of_known_layers_becomes_the_packages_operations():
    """A perceptron gets its written-out gradient, and the bits of the package's own."""
    of = problem(made(perceptron_of_torch))
    own = networks.Network("own", SHAPE, CLASSES, (networks.Flatten(), *of.network.ops[1:]))
    assert perceptron.is_perceptron(of.network)
    assert of.written_out
    assert of.layout == own.layout
    kinds = [type(op) for op in problem(made(normalised)).network.ops]
    wanted = ["Conv", "Norm", "Pool", "ReLU", "Conv", "Mean", "Flatten", "Linear"]
    assert kinds == [getattr(networks, name) for name in wanted]


def test_any_other_module_is_called_and_its_matrices_are_seen_as_the_packages():
    of = problem(made(Skip))
    assert isinstance(of.network.ops[0], Module)
    found = [(layer.name, layer.rows, layer.cols) for layer in of.layout.layers]
    assert found == [
        ("0.bias", 1, 1),
        ("1.conv", 3, 18),
        ("2.bias", 6, 1),
        ("3.conv", 18, 18),
        ("4.bias", 6, 1),
        ("5.bias", 6, 1),
        ("6.bias", 6, 1),
        ("7.linear", 6, 4),
        ("8.bias", 4, 1),
    ]
    assert not of.stacked


class Waits(Skip):
    """Another thread runs in the middle of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(1e-4)
        return super().forward(x)


@pytest.mark.parametrize(
    "algorithm", [FedAvg(0.1, 2), DeComFL(0.1, 2, 2, 1e-3), FedMUD(0.1, 2, Kronecker(0.5, 1.0, "aad", layers="all"))]
)
def test_chunks_and_threads_change_nothing(algorithm):
    """Threads no bit, though functional calls hang weights on the module; stacking no more than rounding."""
    of = problem(made(Waits), stacked=True)
    assert of.network.ops[0].together
    one = run(algorithm, of, 3, sampled=4, metrics=(), chunk=1).x
    assert torch.equal(one, run(algorithm, of, 3, sampled=4, metrics=(), chunk=1, threads=4).x)
    whole = run(algorithm, of, 3, sampled=4, metrics=(), chunk=4).x
    assert torch.allclose(one, whole, rtol=1e-9, atol=1e-9)
    assert not torch.equal(one, of.start())


def test_a_sequence_that_the_packages_operations_do_not_make_stays_a_module():
    """Its mean leaves no image for the second convolution."""
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 5, 1), nn.Flatten())
    of = problem(made(lambda: module.append(nn.Linear(5, CLASSES))))
    assert [type(op) for op in of.network.ops] == [Module, networks.Linear]
    assert of.loss(of.start()) < 2


class Branches(nn.Module):
    """Its way hangs on a number, which cannot be asked of a stack."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.linear(x.flatten(1))
        return out if float(self.linear.weight.detach().sum()) > 1e9 else 2 * out


def test_what_cannot_be_stacked_is_called_for_each():
    of = problem(made(Branches), stacked=True)
    assert not of.network.ops[0].together
    found = run(FedAvg(0.1, 2), of, 2, metrics=()).x
    one = run(FedAvg(0.1, 2), of, 2, metrics=(), chunk=1).x
    assert torch.allclose(found, one, rtol=1e-12)


def test_weights_that_are_frozen_or_shared():
    """What requires no gradient is no part of x; of a matrix with two names there is one."""
    module = made(Skip)
    module.first.requires_grad_(False)
    assert problem(module).d == sum(own.numel() for own in module.parameters()) - 60

    module = made(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))).double()
    module[3].weight = module[1].weight
    module.append(nn.Linear(64, CLASSES).double())
    of = problem(module)
    assert of.d == 64 * 64 + 2 * 64 + 64 * CLASSES + CLASSES
    xi = of.full(torch.tensor([0]))
    loss = functional.cross_entropy(module(of.images[:12]), of.labels[:12])
    slopes = torch.autograd.grad(loss, list(module.parameters()))
    assert torch.allclose(of.grads(of.start()[None], xi)[0], parameters_to_vector(slopes), atol=1e-13)


def test_a_head_is_seen_where_a_sequence_ends_with_one():
    """MOON, FedNTD and FedGen ask for it."""
    body = made(normalised)[0].eval()
    of = problem(nn.Sequential(body, nn.Flatten(), nn.Linear(64, CLASSES)))
    assert isinstance(of.network.ops[0], Module)
    assert of.network.head.n_in == 64
    run(MOON(0.1, 1, mu=1.0), of, 1, metrics=())
    with pytest.raises(ValueError, match=r"network='Skip'.*ends with a linear map.*nn.Sequential\(body"):
        run(MOON(0.1, 1, mu=1.0), problem(made(Skip)), 1, metrics=())


class Drops(Skip):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(super().forward(x), training=self.training)


class Counts(Skip):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(x)


class Mixes(Skip):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x - x.mean(0))


REFUSED = [
    (lambda: nn.Flatten(), "parameters that require a gradient"),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(60, CLASSES)), r"takes images \(b, 1, 8, 8\).*mat1 and mat2"),
    (lambda: nn.Linear(8, CLASSES), r"the output of Linear=\(3, 1, 8, 4\).*logits \(3, classes\)"),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), "labels"),
    (Drops, r"same output twice.*module.eval\(\)"),
    (Counts, "buffers stay as they are"),
    (Mixes, "each image of a batch by itself.*GroupNorm"),
]


@pytest.mark.parametrize(("build", "said"), REFUSED)
def test_what_is_no_classifier_of_single_images_is_refused(build, said):
    state = torch.random.get_rng_state()
    module = made(build)
    after = torch.random.get_rng_state()
    with pytest.raises(ValueError, match=said):
        problem(module)
    assert torch.equal(after, torch.random.get_rng_state())
    torch.random.set_rng_state(state)


def test_with_averages_of_its_own_it_is_taken_as_it_is():
    """eval() fixes dropout and batch normalisation: constants, as the module has them."""
    assert problem(made(Drops).eval()).d > 0
    block = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, CLASSES)]
    module = nn.Sequential(*block).double()
    module[1].running_mean.fill_(0.3)
    of = problem(module.eval())
    assert not of.network.normalised
    assert of.loss(of.start()) == pytest.approx(
        functional.cross_entropy(module(of.images), of.labels).item(), rel=1e-12
    )


def test_another_module_is_another_problem(tmp_path):
    """So that no checkpoint of one is taken for another's."""
    seen = {problem(made(build)).fingerprint() for build in (*MODULES, lambda: Skip(8), Branches)}
    seen.add(problem(made(perceptron_of_torch).requires_grad_()).fingerprint())
    assert len(seen) == 5
    other = made(Skip)
    with torch.no_grad():
        other.shift += 1
    assert problem(other).fingerprint() not in seen
    run(FedAvg(0.1, 1), problem(made(Skip)), 2, checkpoint=tmp_path / "a", metrics=())
    whole = run(FedAvg(0.1, 1), problem(made(Skip)), 4, checkpoint=tmp_path / "a", metrics=()).x
    assert torch.equal(whole, run(FedAvg(0.1, 1), problem(made(Skip)), 4, metrics=()).x)
    with pytest.raises(ValueError, match="expected checkpoints of this run"):
        run(FedAvg(0.1, 1), problem(other), 4, checkpoint=tmp_path / "a", metrics=())


def test_a_data_set_by_name_and_a_deviation():
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 10))
    of = ImageClassification.load("digits", module, Key(0), clients=5, view="filter", std=0.5, dtype=torch.float64)
    assert of.layout.layers[0] == ("0.conv", 9, 4)
    spread = of.start().split(of.network.sizes)
    assert 0.3 < float(spread[0].std()) < 0.7
    assert torch.equal(spread[1], module[0].bias.double())
    history = run(FedAvg(0.05, 5), of, 10, every=10, metrics=("accuracy",))
    assert history["accuracy"][-1] > history["accuracy"][0] + 0.2


def test_precision_is_an_option_as_elsewhere():
    of = problem(made(Skip), dtype=torch.float32)
    half = problem(made(Skip), dtype=torch.float32, precision="bf16")
    a, b = (run(FedAvg(0.1, 2), one, 2, metrics=()).x for one in (of, half))
    assert not torch.equal(a, b)
    assert float((a - b).norm()) < 0.02 * float((a - of.start()).norm() + a.norm())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no card")
@pytest.mark.parametrize("build", MODULES)
def test_on_a_card_it_is_the_same(build):
    on = [problem(made(build), device=device) for device in ("cpu", "cuda")]
    a, b = (run(FedAvg(0.1, 2), of, 3, metrics=()).x.cpu() for of in on)
    assert torch.allclose(a, b, atol=1e-9)


def test_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_module(made(Skip), SHAPE, torch.float32, torch.device("cpu"))
        run(FedAvg(0.1, 1), problem(made(Skip)), 1, metrics=("loss",))
