"""Modules of the user's as networks: the same mathematics as PyTorch's own, whoever stacks or threads them."""

import copy
import random
import time
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from each import each
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector
from torch.utils.checkpoint import checkpoint

from fedtheory import MOON, DeComFL, FedAvg, FedMUD, ImageClassification, Key, Kronecker, run
from fedtheory.core.loop import sample_clients
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


@pytest.mark.parametrize("build", MODULES)
def test_an_exported_model_is_the_module_with_these_weights(build):
    module = made(build)
    of = problem(module)
    history = run(FedAvg(0.1, 2), of, 2)
    x = history.x
    module.load_state_dict(of.export(history))
    assert torch.allclose(parameters_to_vector(module.parameters()).double(), x, rtol=1e-6)
    assert all(torch.equal(value, of.export(x)[name].to(value)) for name, value in module.state_dict().items())
    with pytest.raises(ValueError, match="network='mlp': expected a module of yours"):
        ImageClassification.load("digits", "mlp").export(x)


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


class Ways(nn.Module):
    """A perceptron whose forward is `way(module, images)`."""

    def __init__(self, way, **parts) -> None:
        super().__init__()
        self.way, self.first, self.last = way, nn.Linear(64, 6), nn.Linear(6, CLASSES)
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.way(self, x)


def plainly(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return m.last(m.first(x.flatten(1)).tanh())


def keeps(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    m.h = m.first(x.flatten(1))
    return m.last(m.h.tanh())


def shares(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = m.first(x.flatten(1))
    for part in m.blocks:
        h = h + part(h).tanh()
    return m.last(h)


class Thirds(nn.Sequential):
    """Made and called in its own ways."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) / 3


def tutorial(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = m.conv(x).relu()
    return m.last(m.first(h.view(h.size(0), -1)))


def attends(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = x.flatten(1).view(len(x), 8, 8)
    return plainly(m, h + m.mha(h, h, h)[0])


def caches(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    if len(x) not in m.cache:
        m.cache[len(x)] = torch.zeros_like(x[0, 0, 0]) + torch.arange(8)
    return plainly(m, x + m.cache[len(x)])


def looks_up(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Values of which one row in four pads."""
    at = (4 * x.flatten(1).clamp(-1, 1) + 4).long()
    return m.last((m.table(at) if "table" in m._modules else functional.embedding(at, m.rows, padding_idx=3)).mean(1))


ACCEPTED = {
    "a cache of what hangs on no weight": lambda: Ways(caches, cache={}),
    "a padding row": lambda: Ways(looks_up, table=nn.Embedding(9, 6, padding_idx=4)),
    "a padding row in forward": lambda: Ways(looks_up, rows=nn.Parameter(torch.randn(9, 6))),
    "plain": lambda: Ways(plainly),
    "keeps an activation": lambda: Ways(keeps),
    "one block three times": lambda: Ways(shares, blocks=nn.ModuleList([nn.Linear(6, 6)] * 3)),
    "a layer twice in a sequence": lambda: nn.Sequential(
        nn.Flatten(), (same := nn.Linear(64, 64)), nn.ReLU(), same, nn.ReLU(), nn.Linear(64, CLASSES)
    ),
    "a sequence with a forward": Thirds,
    "view after a convolution": lambda: Ways(tutorial, conv=nn.Conv2d(1, 1, 3, padding=1)),
    "a kernel that is not square": lambda: Ways(tutorial, conv=nn.Conv2d(1, 1, (3, 5), padding=(1, 2))),
    "attention": lambda: Ways(attends, mha=nn.MultiheadAttention(8, 2, batch_first=True)),
    "attention, eval": lambda: Ways(attends, mha=nn.MultiheadAttention(8, 2, batch_first=True)).eval(),
    "recurrent": lambda: Ways(lambda m, x: m.last(m.gru(x[:, 0])[0][:, -1]), gru=nn.GRU(8, 6, batch_first=True)),
    "a parametrization": lambda: Ways(plainly, more=nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))),
    "normed weights": lambda: Ways(
        lambda m, x: m.last(m.more(m.first(x.flatten(1)))), more=nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))
    ),
    "a head of two": lambda: nn.Sequential(
        nn.Flatten(2), nn.Linear(64, 4), nn.Sequential(nn.Flatten(), nn.Linear(4, 4))
    ),
    "orthogonal weights": lambda: Ways(
        lambda m, x: m.last(m.more(m.first(x.flatten(1)))), more=nn.utils.parametrizations.orthogonal(nn.Linear(6, 6))
    ),
    "a frozen body": lambda: nn.Sequential(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 6)).requires_grad_(False), nn.Linear(6, 4)
    ),
    "a table of bytes": lambda: Ways(
        lambda m, x: plainly(m, m.table((100 * x).long().clamp(0, 9))[..., 0]), table=nn.Embedding(10, 1)
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
@each(view=["rows", "filter"], stacked=[True, False])
def test_logits_and_gradients_are_autograds_at_any_weights(case, view, stacked):
    """At weights of its own for each client; so are losses without a gradient, as methods of zeroth order ask them."""
    module = made(ACCEPTED[case]).double()
    plain = problem(module, stacked=stacked)
    network = of_module(module, plain.images, torch.device("cpu"), view)
    of = problem_of(network, plain, stacked)
    y = of.start() + 0.3 * torch.randn(3, of.d, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    xi = of.draw(torch.tensor([0, 1, 3]), 1, Key(1))[0]
    slopes, losses = of.grads(y, xi), of.losses(y, xi)
    shared = of.losses(y[:1].expand(3, -1), xi)
    with torch.no_grad():
        assert torch.allclose(losses, of.losses(y, xi), rtol=1e-10)
    trained = [own for own in module.parameters() if own.requires_grad]
    for j, index in enumerate(xi.index):
        for at, found in ((0, shared[j]), (j, losses[j])):
            nn.utils.vector_to_parameters(y[at], trained)
            loss = functional.cross_entropy(module(of.images[index]), of.labels[index])
            assert found.item() == pytest.approx(loss.item(), rel=1e-10)
        wanted = torch.autograd.grad(loss, trained, allow_unused=True)
        flat = [torch.zeros(own.numel()) if one is None else one.flatten() for own, one in zip(trained, wanted)]
        assert torch.allclose(slopes[j], torch.cat(flat).double(), rtol=1e-8, atol=1e-12)
    loss = functional.cross_entropy(module(of.images), of.labels)
    assert of.loss(y[-1]) == pytest.approx(loss.item(), rel=1e-10)


def problem_of(network: networks.Network, like: ImageClassification, stacked: bool) -> ImageClassification:
    return ImageClassification(like.images, like.labels, like.parts, network, Key(0), batch=5, stacked=stacked)


def test_what_a_call_leaves_on_a_module_is_gone():
    """So a problem can be copied and sent to another process, and two runs of one problem are the same run."""
    of = problem(made(lambda: Ways(keeps)))
    seen = of.fingerprint()
    run(FedAvg(0.1, 1), of, 2, metrics=(), threads=2, chunk=1)
    of.grads(of.start()[None], of.full(torch.tensor([0])))
    assert of.fingerprint() == seen == copy.deepcopy(of).fingerprint()


def zero_headed(body: nn.Module) -> nn.Module:
    head = nn.Linear(64, CLASSES)
    nn.init.zeros_(head.weight)
    return nn.Sequential(nn.Flatten(), body, nn.Unflatten(1, (1, 64)), nn.Flatten(), head)


def counts(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    m.calls += 1
    return plainly(m, x)


def hooked(module: nn.Module, of=lambda m: m) -> nn.Module:
    of(module).register_forward_hook(lambda m, i, o: 3 * o)
    return module


def weight_hooked() -> nn.Module:
    module = perceptron_of_torch()
    module[1].weight.register_hook(lambda g: 0 * g)
    return module


def patched() -> nn.Module:
    module = perceptron_of_torch()
    before = module[1].forward
    module[1].forward = lambda x: 5 * before(x)
    return module


def called() -> nn.Module:
    module = Ways(keeps)
    module(torch.zeros(2, *SHAPE))
    return module


def bounded(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    m.first.weight.data.clamp_(-0.01, 0.01)
    return plainly(m, x)


def again(reentrant: bool) -> nn.Module:
    """It computes its middle a second time, when the gradient is asked for."""
    middle = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    way = lambda m, x: m.last(checkpoint(m.middle, m.first(x.flatten(1)), use_reentrant=reentrant).tanh())
    return Ways(way, middle=middle)


class Remembers:
    """Beyond what a module's attributes hold."""

    def __init__(self) -> None:
        self.weight = None


def hides(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    if m.memory.weight is None:
        m.memory.weight = m.first.weight.detach().norm()
    return m.memory.weight * plainly(m, x)


def registers(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    if not hasattr(m, "mask"):
        m.register_buffer("mask", torch.ones(CLASSES, dtype=x.dtype))
    return plainly(m, x) * m.mask


def numbered(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    m.number = getattr(m, "number", 0) + 1
    return m.number * plainly(m, x)


REFUSED = [
    (lambda: Ways(numbered), "same output twice.*remember nothing"),
    (lambda: Ways(hides, memory=Remembers()), "gradient is autograd's"),
    (lambda: Ways(plainly, more=[nn.Linear(6, 6)]), "names its parts.*nn.ModuleList"),
    (lambda: Ways(registers), "buffers stay as they are .mask does not"),
    (lambda: nn.Flatten(), "a module with parameters. .*nn.Linear"),
    (lambda: Ways(plainly).requires_grad_(False), "parameters that require a gradient"),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(60, CLASSES)), r"takes images \(b, 1, 8, 8\).*mat1 and mat2"),
    (lambda: nn.Linear(8, CLASSES), r"the output of Linear=.*logits \(4, classes\)"),
    (lambda: Ways(lambda m, x: (plainly(m, x),)), "the output of Ways='tuple': expected logits"),
    (lambda: Ways(lambda m, x: plainly(m, x).long()), "torch.int64.*expected logits"),
    (lambda: Ways(lambda m, x: plainly(m, x).log() - 99), "finite logits"),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), "labels"),
    (lambda: Ways(lambda m, x: functional.dropout(plainly(m, x))), r"without chance.*module.eval\(\)"),
    (lambda: zero_headed(nn.Dropout(0.5)), "without chance"),
    (lambda: Ways(lambda m, x: plainly(m, x) * (1 if random.random() < 2 else 2)), "without chance"),
    (lambda: Ways(counts, calls=torch.zeros(())), "buffers stay as they are .calls does not"),
    (lambda: Ways(lambda m, x: plainly(m, x - x.mean(0))), "each image of a batch by itself.*GroupNorm"),
    (lambda: zero_headed(nn.BatchNorm1d(64, track_running_stats=False)), "each image of a batch by itself"),
    (lambda: hooked(perceptron_of_torch()), "without hooks"),
    (lambda: hooked(perceptron_of_torch(), lambda m: m[3]), "without hooks"),
    (weight_hooked, "without hooks"),
    (patched, "forward is its class's"),
    (called, r"can be copied \(RuntimeError.*a fresh one"),
    (lambda: Ways(bounded), "leaves its weights alone"),
    (lambda: Ways(lambda m, x: plainly(m, x.sub_(0.5))), "leaves the images alone"),
    (lambda: again(False), "gradient is autograd's.*activation checkpointing"),
    (lambda: again(True), "a module with a gradient.*use_reentrant"),
    (lambda: Ways(torch.no_grad()(plainly)), "a module with a gradient.*no_grad"),
    (lambda: Ways(plainly, more=torch.ones(2, dtype=torch.cfloat)), "real weights"),
    (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(CLASSES)), r"knows its shapes.*module\(images"),
    (lambda: nn.DataParallel(perceptron_of_torch()), "as it was written.*module.module"),
]


@pytest.mark.parametrize(("build", "said"), REFUSED)
def test_what_is_no_classifier_of_single_images_is_refused(build, said):
    """By a line that names what, what was expected and a fix; the caller's generators and images stay as they were."""
    module = made(build)
    state, python, numbers = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    with pytest.raises(ValueError, match=said):
        problem(module)
    assert torch.equal(state, torch.random.get_rng_state())
    assert python == random.getstate()
    assert (numbers == np.random.get_state()[1]).all()  # noqa: NPY002


@pytest.mark.parametrize("given", ["mlp", nn.Linear, {}])
def test_what_is_no_network_says_what_is(given):
    with pytest.raises(TypeError, match=r"network.*Network or Module.*Fix: pass a torch.nn.Module that was made"):
        problem(given)


def test_with_averages_of_its_own_it_is_taken_as_it_is():
    """eval() fixes dropout and batch normalisation: constants, as the module has them."""
    assert problem(nn.Sequential(nn.Dropout(0.5), *made(perceptron_of_torch)).eval()).d > 0
    block = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, CLASSES)]
    module = nn.Sequential(*block).double()
    module[1].running_mean.fill_(0.3)
    of = problem(module.eval())
    assert not of.network.normalised
    assert of.loss(of.start()) == pytest.approx(
        functional.cross_entropy(module(of.images), of.labels).item(), rel=1e-12
    )


def test_another_module_is_another_problem(tmp_path):
    """So that no checkpoint of one is taken for another's: whatever it holds, and whatever its forward says."""

    class Held(Ways):
        def __init__(self, **held) -> None:
            super().__init__(plainly)
            vars(self).update(held)

    def other() -> nn.Module:
        class Held(Ways):
            def __init__(self) -> None:
                super().__init__(plainly)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x).tanh()

        return Held()

    held = [{}, {"k": (1,)}, {"k": (2,)}, {"mask": torch.ones(2)}, {"mask": torch.zeros(2)}]
    held += [{"f": partial(torch.mul, other=k)} for k in (1, 2)]
    held += [{"config": SimpleNamespace(heads=k)} for k in (1, 2)] + [{"_k": k} for k in (1, 2)]
    held += [{"of": {"f": torch.tanh}}, {"of": {"f": torch.relu}}, {"more": [np.ones(1)]}]

    def written(body: str) -> nn.Module:
        space = {"nn": nn}
        exec(f"class Net(nn.Module):\n def __init__(s):\n  super().__init__(); s.f = nn.Linear(64, {CLASSES})\n"
             f" def forward(s, x): return s.f(x.flatten(1)).{body}()", space)  # fmt: skip
        return space["Net"]()

    builds = [
        *MODULES,
        lambda: Skip(8),
        Branches,
        other,
        lambda: written("tanh"),
        lambda: written("relu"),
        *(lambda one=one: Held(**one) for one in held),
    ]
    seen = [problem(made(build)).fingerprint() for build in (*builds, *builds)]
    assert len(set(seen)) == len(builds)
    other = made(Skip)
    with torch.no_grad():
        other.shift += 1
    assert problem(other).fingerprint() not in seen
    run(FedAvg(0.1, 1), problem(made(Skip)), 2, checkpoint=tmp_path / "a", metrics=())
    whole = run(FedAvg(0.1, 1), problem(made(Skip)), 4, checkpoint=tmp_path / "a", metrics=()).x
    assert torch.equal(whole, run(FedAvg(0.1, 1), problem(made(Skip)), 4, metrics=()).x)
    with pytest.raises(ValueError, match="expected checkpoints of this run"):
        run(FedAvg(0.1, 1), problem(other), 4, checkpoint=tmp_path / "a", metrics=())


def test_a_data_set_by_name():
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 10))
    of = ImageClassification.load("digits", module, Key(0), clients=5, view="filter", dtype=torch.float64)
    assert of.layout.layers[0] == ("0.conv", 9, 4)
    assert torch.equal(of.start()[36:40], module[0].bias.detach().double())
    history = run(FedAvg(0.05, 5), of, 10, every=10, metrics=("accuracy",))
    assert history["accuracy"][-1] > history["accuracy"][0] + 0.2
    with pytest.raises(ValueError, match=r"std=0.5: expected None for a module"):
        ImageClassification.load("digits", module, Key(0), std=0.5)
    with pytest.raises(ValueError, match="at least one image"):
        ImageClassification(torch.zeros(0, *SHAPE), torch.zeros(0).long(), [torch.zeros(0).long()], module, Key(0))


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


@pytest.mark.parametrize("case", ACCEPTED)
def test_nothing_is_warned_of(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(FedAvg(0.1, 1), problem(made(ACCEPTED[case])), 1, metrics=("loss",))


def test_a_padding_row_that_no_trial_sees_is_not_stacked():
    module = Ways(looks_up, table=nn.Embedding(9, 6, padding_idx=8))
    network = of_module(module, torch.zeros(4, *SHAPE), torch.device("cpu"))
    assert not network.ops[0].together


def test_a_layer_whose_gradient_is_small_beside_the_others_counts():
    """In float32, behind seven sigmoids: its weight is read past the module, so it would stay what it was."""

    def way(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        h = functional.linear(x.flatten(1), m.known[0], m.first.bias).sigmoid()
        for part in m.more:
            h = part(h).sigmoid()
        return m.last(h)

    module = made(lambda: Ways(way, more=nn.ModuleList([nn.Linear(6, 6) for _ in range(6)])))
    module.known = [module.first.weight]
    with pytest.raises(ValueError, match="gradient is autograd's"):
        problem(module, dtype=torch.float32)


def test_addresses_are_no_part_of_a_fingerprint():
    class Says(Ways):
        def extra_repr(self) -> str:
            return f"act={self.act}"

    def build() -> nn.Module:
        def act(x: torch.Tensor) -> torch.Tensor:
            return x

        return Says(plainly, act=act, table={act: 1})

    one, two = made(build), made(build)
    assert repr(one) != repr(two)
    assert problem(one).fingerprint() == problem(two).fingerprint()


MODES = [
    torch.no_grad,
    torch.inference_mode,
    partial(torch.autocast, "cpu", torch.bfloat16),
    partial(torch.device, "meta"),
]


@pytest.mark.parametrize("mode", MODES)
def test_a_module_becomes_a_network_in_any_of_the_callers_modes(mode):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 10))
    make = lambda: ImageClassification.load("digits", module, Key(0), clients=3, subset=60, tested=20)
    wanted = make()
    with mode():
        found = make()
        x = found.start()
        assert (found.loss(x), found.accuracy(x)) == (wanted.loss(x), wanted.accuracy(x))
    assert torch.equal(x, wanted.start())


def test_an_export_has_the_moments_that_evaluation_used():
    torch.manual_seed(0)
    body = [nn.Conv2d(1, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    module = nn.Sequential(*body, nn.Linear(72, 10))
    of = ImageClassification.load("digits", module, Key(0), clients=4, subset=200, dtype=torch.float64)
    history = run(FedAvg(0.2, 5), of, 3)
    back = copy.deepcopy(module)
    back.load_state_dict(of.export(history))
    images, labels = of.test
    with torch.no_grad():
        found = back.double().eval()(images).argmax(1)
    assert float((found == labels).double().mean()) == pytest.approx(history["accuracy"][-1])
    assert list(of.export(history)) == list(module.state_dict())
