"""Any module, loss and data: plain PyTorch's numbers, masks by the key alone, one line for what does not fit."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

from fedtheory import SSF, DeComFL, FedAvg, FedMUD, History, Key, LocalLayers, LowRank, Scaffold, Supervised, run
from fedtheory.core.loop import sample_clients
from fedtheory.problems import layers, partitions
from tests.test_rounds import refused

SIZES = (10, 20, 30)


def inputs(*shape: int, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(sum(SIZES), *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def regression(x=None):
    x = inputs(3) if x is None else x
    return list(zip(x.split(SIZES), x.sin().sum(1, keepdim=True).split(SIZES)))


def classes(x: torch.Tensor):
    y = (x.flatten(1).sum(1) > 0).long() + (x.flatten(1)[:, 0] > 1).long()
    return list(zip(x.split(SIZES), y.split(SIZES)))


def made(build) -> nn.Module:
    torch.manual_seed(3)
    return build().double()


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def dropped() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout2d(0.3), nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 3))


class Vit(nn.Module):
    def __init__(self, attention: float = 0.1) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(9, 16), nn.Linear(16, 3)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.layer.self_attn.dropout = attention

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = x.unfold(2, 3, 3).unfold(3, 3, 3).reshape(len(x), -1, 9)
        return self.head(self.layer(self.embed(patches)).mean(1))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.functional.l1_loss, lambda out, y: (out - y).cosh().log().mean()])
def test_fedavg_is_pytorchs_own_loop(together, loss):
    module, lr, steps, rounds = made(mlp), 0.1, 3, 2
    p = Supervised(module, loss, regression(), batch=8, together=together)
    found = run(FedAvg(lr, steps), p, rounds, sampled=2, every=rounds, metrics=()).x
    for t in range(rounds):
        key, models = Key(0).fold("round", t), []
        clients = sample_clients(p.n, 2, key.fold("clients"))
        xi = p.draw(clients, steps, key.fold("xi"))
        for j in range(2):
            own = copy.deepcopy(module)
            optimizer = torch.optim.SGD(own.parameters(), lr)
            for step in xi:
                optimizer.zero_grad()
                at = step.client(j).index[0]
                loss(own(p.inputs[at]), p.targets[at]).backward()
                optimizer.step()
            models.append(nn.utils.parameters_to_vector(own.parameters()).detach())
        nn.utils.vector_to_parameters(torch.stack(models).mean(0), module.parameters())
    assert torch.allclose(found, nn.utils.parameters_to_vector(module.parameters()), rtol=0, atol=1e-13)


class Recurrent(nn.Module):
    """A GRU of two layers over an image's rows."""

    def __init__(self, first: bool = True, biased: bool = True) -> None:
        super().__init__()
        self.first = first
        self.rows, self.head = nn.GRU(6, 5, 2, batch_first=first, bias=biased), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, 0] if self.first else x[:, 0].transpose(0, 1)
        out, last = self.rows(x, torch.ones(2, len(x) if self.first else x.shape[1], 5).to(x))
        return self.head(last.sum(0) + (out if self.first else out.transpose(0, 1)).mean(1))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3))


def convolutions() -> nn.Module:
    convolved = (nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2), nn.ReLU())
    return nn.Sequential(*convolved, nn.Flatten(), nn.Linear(16, 3))


@pytest.mark.parametrize("together", [None, True, False])
@pytest.mark.parametrize("size", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "build", [perceptron, convolutions, Recurrent, lambda: Recurrent(False, False), lambda: Vit(0.0)]
)
def test_gradients_are_autograds_however_clients_are_stacked(build, size, together):
    """Of the package's own operations, too: written-out gradients, oneDNN's layout, attention and GRUs."""
    module, tight = made(build).to(size), {torch.float32: 1e-4, torch.float64: 1e-10}[size]
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    p = Supervised(module, nn.CrossEntropyLoss(), classes(inputs(1, 6, 6, dtype=size)), batch=8, together=together)
    assert together is not None or p.together
    g = torch.Generator().manual_seed(5)
    y = p.start() + 0.1 * torch.randn(p.n, p.d, generator=g, dtype=torch.float64).to(size)
    for xi in (p.draw(p.clients, 1, Key(0))[0], p.full(p.clients)):
        found, losses = p.grads(y, xi), p.losses(y, xi)
        for i in range(p.n):
            nn.utils.vector_to_parameters(y[i], module.parameters())
            at = xi.client(i).index[0]
            loss = nn.functional.cross_entropy(module(p.inputs[at]), p.targets[at])
            wanted = nn.utils.parameters_to_vector(torch.autograd.grad(loss, list(module.parameters())))
            torch.testing.assert_close(found[i], wanted, rtol=tight, atol=tight * float(wanted.abs().max()))
            torch.testing.assert_close(losses[i], loss.detach(), rtol=tight, atol=0)


def test_small_steps_are_stacked_and_large_ones_taken_client_by_client():
    """The choice hangs on module and shapes; an argument fixes it."""
    build = lambda side, width: nn.Sequential(
        nn.Conv2d(1, width, 3), nn.Tanh(), nn.Flatten(), nn.Linear(width * (side - 2) ** 2, 3)
    )
    made_of = lambda side, width, **options: Supervised(
        build(side, width), nn.CrossEntropyLoss(), classes(inputs(1, side, side, dtype=torch.float32)), **options
    )
    small, large = made_of(6, 4), made_of(18, 32)
    assert small.together
    assert small.chunk > 1
    assert not large.together
    assert large.chunk == 1
    assert made_of(18, 32, batch=2).together  # a step of so few samples is small
    assert made_of(18, 32, together=True).together
    assert not made_of(6, 4, together=False).together


@pytest.mark.parametrize("epochs", [None, 1])
@pytest.mark.parametrize("build", [dropped, Vit])
def test_a_run_with_dropout_does_not_hang_on_stacking_or_company(build, epochs):
    data = classes(inputs(1, 6, 6))
    options = {"batch": 8, "epochs": epochs}
    p = Supervised(made(build), nn.CrossEntropyLoss(), data, **options)
    drawn = p.draw(p.clients, 2 if epochs is None else p.steps, Key(4))
    assert len({key.hash() for xi in drawn for key in xi.keys}) == p.n * len(drawn)
    assert p.draw(p.clients[2:], len(drawn), Key(4))[0].keys == drawn[0].keys[2:]
    alone = Supervised(made(build), nn.CrossEntropyLoss(), data, together=False, **options)
    steps = 3 if epochs is None else p.steps
    for method in (Scaffold(0.1, steps), FedAvg(0.1, steps), DeComFL(0.01, steps, 2)):
        whole = run(method, p, 2, sampled=2)
        one = run(method, p, 2, sampled=2, chunk=1)
        apart = run(method, alone, 2, sampled=2)
        torch.testing.assert_close(whole.x, one.x)
        torch.testing.assert_close(whole.x, apart.x)
    other = Supervised(made(build), nn.CrossEntropyLoss(), data, Key(1), **options)
    assert not torch.equal(run(FedAvg(0.1, steps), p, 1).x, run(FedAvg(0.1, steps), other, 1).x)


class Meeting(nn.Module):
    """Two threads are in it at the same time."""

    both = threading.Barrier(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.both.wait(60)
        return x


def test_threads_note_the_shapes_of_masks_apart():
    module = nn.Sequential(nn.Dropout(0.5), Meeting(), nn.Dropout(0.25))
    scored = layers.Scored(module, nn.MSELoss(), "moments")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(scored.shapes_of_masks, [torch.zeros(2, 3)] * 2))
    assert found == [[((2, 3), 0.5), ((2, 3), 0.25)]] * 2


def test_masks_drop_the_share_that_the_layer_names_and_keep_the_mean():
    module = nn.Sequential(nn.Dropout(0.25), nn.Linear(400, 1, bias=False)).double()
    nn.init.ones_(module[1].weight)
    data = [(torch.ones(50, 400, dtype=torch.float64), torch.zeros(50, 1, dtype=torch.float64))]
    p = Supervised(module, lambda out, y: out.mean(), data, batch=50)
    found = [float(p.losses(p.start()[None], xi)) / 400 for xi in p.draw(p.clients, 20, Key(0))]
    deviation = (0.25 / 0.75 / (50 * 400)) ** 0.5  # of one mean
    assert len(set(found)) == 20
    assert all(abs(value - 1) < 5 * deviation for value in found)
    assert float(p.losses(p.start()[None], p.full(p.clients))) == pytest.approx(400)
    (mask,) = p._drawn_masks(data[0][0], [Key(5)])
    assert set(mask.unique().tolist()) == {0.0, 1 / 0.75}


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "masks", [{}, {"attn_mask": True}, {"key_padding_mask": True}, {"attn_mask": True, "many": True}]
)
def test_attention_is_pytorchs_where_nothing_is_dropped_and_drops_a_share(batch_first, masks):
    plain = made(lambda: nn.MultiheadAttention(8, 2, dropout=0.4, batch_first=batch_first))
    own = layers.Scored(copy.deepcopy(plain), nn.MSELoss(), "moments").module
    x = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = x if batch_first else x.transpose(0, 1)
    options = {}
    if "attn_mask" in masks:
        options["attn_mask"] = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    if "many" in masks:
        options["attn_mask"] = options["attn_mask"].expand(6, 5, 5).clone()
    if "key_padding_mask" in masks:
        options["key_padding_mask"] = torch.tensor([[False] * 4 + [True]] * 3)
    found, wanted = own(x, x, x, **options), plain.eval()(x, x, x, **options)
    torch.testing.assert_close(found[0], wanted[0])
    torch.testing.assert_close(found[1], wanted[1])
    own.given.masks = iter([torch.zeros(3, 2, 5, 5, dtype=torch.float64)])
    bias = plain.out_proj.bias.expand_as(x)
    torch.testing.assert_close(own(x, x, x, **options)[0], bias)


MATRICES = (SSF(0.05, 5), FedMUD(0.05, 5, LowRank(0.5, layers="all")), Scaffold(0.05, 5))


@pytest.mark.parametrize("method", MATRICES, ids=lambda method: method.name)
def test_methods_of_subspaces_see_the_modules_matrices(method):
    p = Supervised(made(mlp), nn.MSELoss(), regression())
    assert [layer.name for layer in p.layout.layers] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [layer[1:] for layer in p.layout.layers] == [(3, 8), (8, 1), (8, 1), (1, 1)]
    history = run(method, p, 20)
    assert history["loss"][-1] < history["loss"][0]


def test_data_come_as_tensors_arrays_and_datasets():
    x = inputs(3)
    pairs = regression(x)

    class Own(Dataset):
        def __init__(self, pair):
            self.pair = pair

        def __len__(self):
            return len(self.pair[0])

        def __getitem__(self, j):
            return self.pair[0][j].numpy(), float(self.pair[1][j])

    forms = [
        pairs,
        tuple((a.numpy(), b.numpy()) for a, b in pairs),
        [TensorDataset(*pair) for pair in pairs],
        [(a.float(), b.float()) for a, b in pairs],
    ]
    found = [Supervised(made(mlp), nn.MSELoss(), form).loss(made_start()) for form in forms]
    assert found[0] == found[1] == found[2] == pytest.approx(found[3], rel=1e-6)
    loss = lambda out, y: nn.functional.mse_loss(out[:, 0], y)
    assert Supervised(made(mlp), loss, list(map(Own, pairs))).loss(made_start()) == pytest.approx(found[0], rel=1e-12)


def made_start() -> torch.Tensor:
    return nn.utils.parameters_to_vector(made(mlp).parameters()).detach()


def test_a_table_is_divided_by_a_column_or_by_a_partition(tmp_path):
    pandas = pytest.importorskip("pandas")
    x = inputs(3).numpy()
    frame = pandas.DataFrame(x, columns=["a", "b", "c"]).assign(y=x.sum(1), site=np.repeat(["s", "u", "t"], 20))
    frame.to_csv(tmp_path / "own.csv", index=False)
    p = Supervised.from_frame(made(mlp), nn.MSELoss(), frame, "y", by="site")
    assert [len(part) for part in p.parts] == [20, 20, 20]
    assert torch.equal(p.inputs[p.parts[1]], torch.from_numpy(x[40:]))  # s, t, u
    again = Supervised.from_frame(made(mlp), nn.MSELoss(), str(tmp_path / "own.csv"), "y", by="site")
    assert again.loss(again.start()) == pytest.approx(p.loss(p.start()), rel=1e-12)
    parts = partitions.iid(torch.from_numpy(x), 5, Key(0))
    net = nn.Linear(4, 1).double()
    iid = Supervised.from_frame(net, nn.MSELoss(), frame.assign(site=1.0), "y", by=parts)
    assert iid.n == 5
    above = frame.assign(y=frame.y > 0)
    named = Supervised.from_frame(nn.Linear(3, 2), nn.CrossEntropyLoss(), above, "y", "site", classes=True, test=above)
    assert named.metrics == ("loss", "accuracy")
    counts = Supervised.from_frame(made(mlp), nn.MSELoss(), frame.assign(y=range(60)), "y", "site")
    assert counts.targets.shape == (60, 1)
    refused(lambda: Supervised.from_frame(net, nn.MSELoss(), frame, "z", by="site"), "column='z'")
    refused(lambda: Supervised.from_frame(net, nn.MSELoss(), frame, "y", by=parts), "columns=['site']", "get_dummies")
    gap = frame.assign(a=np.nan)
    refused(lambda: Supervised.from_frame(net, nn.MSELoss(), gap, "y", by="site"), "columns=['a']", "fillna")
    refused(lambda: Supervised.from_frame(net, nn.MSELoss(), frame.assign(site=None), "y", "site"), "column='site'")
    refused(lambda: Supervised.from_frame(net, nn.MSELoss(), {"y": 1}, "y", "site"), "pandas.DataFrame")
    refused(lambda: Supervised.from_frame(nn.Linear(3, 2), nn.CrossEntropyLoss(), above, "y", "site"), "classes=True")


def test_a_table_that_does_not_fit_is_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(inputs(3).numpy(), columns=["a", "b", "c"]).assign(y=1.5, site=[i % 3 for i in range(60)])
    net, classes = nn.Linear(3, 1), {"classes": True}
    made_of = lambda table, target="y", by="site", **more: Supervised.from_frame(
        net, nn.MSELoss(), table, target, by, **more
    )
    assert made_of(frame.set_axis(range(5), axis=1), 3, 4).n == 3
    refused(lambda: made_of(frame, **classes), "target='y'", "whole numbers")
    refused(lambda: made_of(frame, ["y", "a"], **classes), "one column of classes")
    refused(lambda: made_of(frame.assign(a=pandas.Timestamp("2020-01-01"))), "column='a'", "dates")
    refused(lambda: made_of(frame, by=frame["site"]), "pass by='site'")
    refused(lambda: made_of(frame, by=["s", "t"] * 30), "partitions.by_value(names)")
    refused(lambda: made_of(frame, test=frame.drop(columns="b")), "column='b'")
    refused(lambda: made_of(frame.assign(site=["s", 1] * 30)), "int, str", "names of one type")
    refused(lambda: made_of(pandas.concat([frame, frame["a"]], axis=1)), "column='a'", "one column of this name")
    refused(lambda: made_of(frame[["y", "site"]]), "columns besides")


def test_a_sample_or_a_loss_that_does_not_fit_is_found_wherever_it_stands():
    x, y = torch.randn(60, 4, generator=Key(0).generator()), torch.zeros(60, dtype=torch.int64)
    of = lambda loss, targets, net=None: Supervised(
        net or nn.Linear(4, 2), loss, list(zip(x.split(20), targets.split(20)))
    )
    y[50] = 1
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0]))
    refused(lambda: of(weighted, y), "loss='CrossEntropyLoss'", "divide by the batch")
    by_batch = lambda out, y: nn.functional.cross_entropy(out, y, weighted.weight, reduction="none").mean()
    assert of(by_batch, y).n == 3
    refused(lambda: of(nn.CrossEntropyLoss(), 2 * y), "give the module 3 outputs")
    refused(lambda: of(nn.CrossEntropyLoss(), y + 1), "count classes from 0")
    binary = lambda out, y: nn.functional.binary_cross_entropy_with_logits(out, y.to(out))
    assert of(binary, (y > 0)[:, None], nn.Linear(4, 1)).n == 3
    flat = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
    refused(lambda: of(nn.MSELoss(), y[:, None].float(), flat), "targets=", "squeeze")


def test_an_exported_model_is_the_module_with_these_weights():
    module = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval())
    module[0].bias.requires_grad_(False)
    p = Supervised(module, nn.MSELoss(), regression())
    x = run(FedAvg(0.1, 5), p, 3).x
    back = copy.deepcopy(module)
    back.load_state_dict(p.export(x))
    with torch.no_grad():
        assert torch.equal(back(p.inputs), p.outputs(x, p.inputs))
    history = run(FedAvg(0.1, 5), p, 3)
    assert all(torch.equal(value, p.export(x)[name]) for name, value in p.export(history).items())
    assert torch.equal(back[0].bias, module[0].bias)
    assert not torch.equal(back[0].weight, module[0].weight)


# Batch normalisation


def normed() -> nn.Module:
    body = (nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2))
    return nn.Sequential(*body, nn.Linear(64, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))


def without_dropout() -> nn.Module:
    return nn.Sequential(*(layer for layer in made(normed) if not isinstance(layer, nn.Dropout)))


def images():
    """Clients whose pictures have another mean and scale."""
    moved = [(i + 1) * x + i for i, x in enumerate(inputs(1, 6, 6).split(SIZES))]
    return [(x, (torch.arange(len(x)) + i) % 3) for i, x in enumerate(moved)]


def around(method, norm):
    return LocalLayers(method) if norm == "local" else method


@pytest.mark.parametrize("epochs", [None, 1])
@pytest.mark.parametrize("norm", ["moments", "shared", "local"])
def test_a_run_with_batch_normalisation_does_not_hang_on_stacking_and_resumes(norm, epochs, tmp_path):
    options = {"batch": 7, "epochs": epochs, "norm": norm}
    p, alone = (
        Supervised(made(normed), nn.CrossEntropyLoss(), images(), together=together, **options)
        for together in (None, False)
    )
    steps = 3 if epochs is None else p.steps
    for method in (Scaffold(0.1, steps), FedAvg(0.1, steps), SSF(0.05, steps)):
        whole = run(around(method, norm), p, 3, sampled=2)
        torch.testing.assert_close(run(around(method, norm), p, 3, sampled=2, chunk=1).x, whole.x)
        torch.testing.assert_close(run(around(method, norm), alone, 3, sampled=2).x, whole.x)
        folder = tmp_path / method.name
        run(around(method, norm), p, 2, sampled=2, checkpoint=folder)
        again = run(around(method, norm), p, 3, sampled=2, checkpoint=folder)
        assert torch.equal(again.x, whole.x)
        assert again.columns == whole.columns
        assert not torch.equal(whole.x, p.start())
    kinds = {"moments": 0, "shared": 2 * 9, "local": -2 * 9}
    assert p.d == 4 * 9 + 64 * 5 + 5 + 5 * 3 + 3 + 2 * 9 + kinds[norm]


@pytest.mark.parametrize("norm", ["moments", "shared", "local"])
def test_a_local_step_is_pytorchs_and_so_are_the_running_statistics(norm):
    """One client: PyTorch's loop, with the step size as the momentum of its running statistics."""
    lr, module, (x, y) = 0.1, without_dropout(), images()[2]
    p = Supervised(module, nn.CrossEntropyLoss(), [(x, y)], batch=10, norm=norm)
    history = run(around(FedAvg(lr, 4), norm), p, 3)
    for part in (module[1], module[5]):
        part.momentum = lr
    optimizer = torch.optim.SGD(module.parameters(), lr)
    for t in range(3):
        for step in p.draw(p.clients, 4, Key(0).fold("round", t).fold("xi")):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x[step.index[0]]), y[step.index[0]]).backward()
            optimizer.step()
    found = p.export(history, 0) if norm == "local" else p.export(history)
    wanted = module.state_dict()
    assert found.keys() == wanted.keys()
    for name in wanted:
        if "num_batches" not in name and ("running" not in name or norm != "moments"):
            torch.testing.assert_close(found[name], wanted[name])
    back = without_dropout()
    back.load_state_dict(found)
    with torch.no_grad():
        right = float((back.eval()(x).argmax(1) == y).double().mean())
        loss = float(nn.functional.cross_entropy(back(x), y))
    assert history["accuracy"][-1] == pytest.approx(right)
    assert history["loss"][-1] == pytest.approx(loss)


def test_moments_in_blocks_are_those_of_clients_one_by_one():
    """Clients of two sizes, two layers, one without scale and shift: as plain PyTorch has them, client after client."""
    normed = (nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.BatchNorm1d(64, affine=False))
    module, seen = made(lambda: nn.Sequential(*normed, nn.Linear(64, 3))), {1: [], 4: []}
    data = [(x[: 5 + 2 * i], y[: 5 + 2 * i]) for i, (x, y) in enumerate(classes(inputs(1, 6, 6)))]
    p = Supervised(module, nn.CrossEntropyLoss(), data, batch=7)
    for at, found in seen.items():
        module[at].register_forward_pre_hook(lambda part, given, found=found: found.append(given[0].transpose(0, 1)))
    for _, index in p._looked_at:
        assert len(index[0]) in (5, 7)
        for one in index:
            module(p.inputs[one])
    weights = p.weights[torch.cat([clients for clients, _ in p._looked_at])]
    for found, pair in zip(seen.values(), p.moments(p.start())):
        each = torch.stack([torch.stack([of.flatten(1).mean(1), of.flatten(1).var(1, False)]) for of in found])
        torch.testing.assert_close(pair, layers.mixture(weights, each).detach())


def test_moments_are_those_of_all_data_where_each_client_looks_at_all():
    p = Supervised(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)).double(), nn.MSELoss(), regression(), batch=60)
    (pair,) = p.moments(p.start())
    torch.testing.assert_close(pair, torch.stack([p.inputs.mean(0), p.inputs.var(0, correction=0)]))


class Scaled(nn.BatchNorm1d):
    def forward(self, h):
        return 2 * super().forward(h)


def test_a_module_that_changes_its_buffers_is_refused():
    """Its loss would depend on what was called before. In eval mode it changes none."""
    net = lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)), nn.Linear(4, 1))
    refused(lambda: Supervised(made(net), nn.MSELoss(), regression()), "module=", "buffers", "eval()")
    p = Supervised(made(net).eval(), nn.MSELoss(), regression())
    assert p.loss(p.start()) == p.loss(p.start())


def test_a_subclass_of_batch_normalisation_keeps_its_own_forward():
    """In eval mode it is called as it is; in training mode it changes its running statistics."""
    net = lambda: nn.Sequential(nn.Linear(3, 4), Scaled(4), nn.Linear(4, 1))
    refused(lambda: Supervised(made(net), nn.MSELoss(), regression()), "module=", "1.running_mean")
    module = made(net).eval()
    p = Supervised(module, nn.MSELoss(), regression())
    with torch.no_grad():
        torch.testing.assert_close(p.outputs(p.start(), p.inputs), module(p.inputs))


class Swapped(nn.Module):
    """Registers its layers of batch normalisation in another order than it calls them."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.first, self.unused = nn.BatchNorm1d(5), nn.BatchNorm1d(4), nn.ReLU()
        self.one, self.other, self.head = nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.last(self.other(self.first(self.one(x)).relu())))


def test_moments_belong_to_their_layer_in_whatever_order_layers_are_called():
    p, module = Supervised(made(Swapped), nn.MSELoss(), regression(), batch=60), made(Swapped)
    module.load_state_dict(p.export(p.start()))
    torch.testing.assert_close(module.first.running_mean, module.one(p.inputs).mean(0).detach())
    with torch.no_grad():
        loss = nn.functional.mse_loss(module.eval()(p.inputs), p.targets)
    assert p.loss(p.start()) == pytest.approx(float(loss))


def test_a_layer_with_moments_runs_once():
    """Otherwise it has none, or several; running statistics do not mind."""
    norm, unused = nn.BatchNorm1d(3), made(Swapped)
    module = nn.Sequential(norm, nn.Linear(3, 3), norm, nn.Linear(3, 1))
    of = lambda module, **options: Supervised(made(lambda: module), nn.MSELoss(), regression(), **options)
    refused(lambda: of(module), "module='0 runs 2 times'", "a layer for each place", "norm='shared'")
    p = of(module, norm="shared")
    assert [layer.name for layer in p.layout.layers if "running" in layer.name] == ["0.running_mean", "0.running_var"]
    unused.unused = nn.BatchNorm1d(2)
    refused(lambda: of(unused), "module='unused runs 0 times'", "take it out")
    assert of(unused, norm="shared").n == 3


class OverTime(nn.Module):
    """Normalises (time, sample) rows, the time first."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.BatchNorm1d(2), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(x.transpose(0, 1).flatten(0, 1)).unflatten(0, (-1, len(x))).mean(0))


def test_moments_are_of_one_client_where_rows_are_not_in_the_order_of_samples():
    moved = [(i + 1) * x + i for i, x in enumerate(inputs(5, 2).split(SIZES))]
    p = Supervised(made(OverTime), nn.MSELoss(), [(x, x.sum((1, 2))[:, None]) for x in moved], batch=10)
    (_, index), (pair,) = p._looked_at[0], p.moments(p.start())
    each = [p.inputs[at].flatten(0, 1) for at in index]
    each = torch.stack([torch.stack([x.mean(0), x.var(0, correction=0)]) for x in each])
    torch.testing.assert_close(pair, layers.mixture(p.weights, each))


def test_local_layers_stay_with_their_client_and_nothing_of_them_crosses(tmp_path):
    p = Supervised(made(normed), nn.CrossEntropyLoss(), images(), batch=7, norm="local", test=images())
    history = run(LocalLayers(FedAvg(0.1, 3)), p, 6, sampled=2)
    kept = history.state.own.local
    assert kept.shape == (3, 4 * 9)
    assert not torch.allclose(kept[0], kept[1])
    first = run(LocalLayers(FedAvg(0.1, 3)), p, 1, sampled=2)
    (away,) = (i for i in range(3) if torch.equal(first.state.own.local[i], p.local_start()))  # keeps its layers
    one, other = first.state.own.local[[i for i in range(3) if i != away]]
    assert not torch.allclose(one, other)
    assert history["up_bytes"][-1] == 6 * 2 * p.d * 8
    assert not any(layer.name.startswith(("1.", "6.")) for layer in p.layout.layers)
    accuracies = p.with_local(kept).accuracies(history.x)
    assert history["accuracy"][-1] == pytest.approx(float(accuracies @ p.weights))
    for i, (x, y) in enumerate(images()):
        back = made(normed)
        back.load_state_dict(p.export(history, i))
        with torch.no_grad():
            assert float((back.eval()(x).argmax(1) == y).double().mean()) == pytest.approx(float(accuracies[i]))
    refused(lambda: run(FedAvg(0.1, 3), p, 1), "norm='local'", "LocalLayers(method)")
    refused(lambda: run(LocalLayers(DeComFL(0.01, 1, 2)), p, 1), "method=", "steps by gradients")
    refused(lambda: p.export(history), "client=None", "pass client=0")
    refused(lambda: p.export(history.x, 0), "x=", "History")
    history.save(tmp_path / "kept.json")
    refused(lambda: p.export(History.load(tmp_path / "kept.json"), 0), "a History from a file")
    refused(lambda: Supervised(made(normed), nn.CrossEntropyLoss(), images(), norm="batch"), "norm='batch'")
    refused(lambda: Supervised(nn.BatchNorm1d(3).double(), nn.MSELoss(), regression(), norm="local"), "norm='shared'")
    data = images()
    refused(lambda: Supervised(made(normed), nn.CrossEntropyLoss(), data, test=data[:2]), "test=", "3 clients")


def test_a_module_in_eval_mode_keeps_its_averages():
    module = made(normed).eval()
    p = Supervised(module, nn.CrossEntropyLoss(), images())
    assert p.d == 4 * 9 + 64 * 5 + 5 + 5 * 3 + 3 + 2 * 9
    with torch.no_grad():
        torch.testing.assert_close(p.outputs(p.start(), p.inputs), module(p.inputs))


def test_accuracy_is_of_the_test_data_and_only_of_classes():
    x = inputs(1, 6, 6)
    p = Supervised(made(dropped), nn.CrossEntropyLoss(), classes(x), test=(x[:7], classes(x)[0][1][:7]))
    with torch.no_grad():
        logits = copy.deepcopy(made(dropped)).eval()(x[:7])
    assert p.accuracy(p.start()) == float((logits.argmax(1) == p.test[1]).double().mean())
    assert p.metrics == ("loss", "accuracy")
    assert Supervised(made(mlp), nn.MSELoss(), regression()).metrics == ("loss",)


class Tagger(nn.Module):
    """A class for each of a sentence's words: its own number."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.eye(4), freeze=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x).transpose(1, 2)


@pytest.mark.parametrize(("ignored", "options"), [(-100, {}), (3, {"ignore_index": 3})])
def test_targets_that_the_loss_ignores_do_not_count(ignored, options):
    """Two words of a sentence of four are padding; a client of the test has nothing else."""
    tokens = torch.arange(60 * 4).view(60, 4) % 3
    targets = torch.where(torch.arange(4) < 2, tokens.where(torch.arange(60)[:, None] % 3 > 0, 2 - tokens), ignored)
    module = Tagger().double()
    data, none = list(zip(tokens.split(SIZES), targets.split(SIZES))), (tokens[:2], targets[:2] * 0 + ignored)
    p = Supervised(module, nn.CrossEntropyLoss(**options), data, test=[*data[:2], none])
    (tried, wanted), x = p.test, p.start()
    right = (p.outputs(x, tried).argmax(1) == wanted) & (wanted != ignored)
    shares = [float(right[at].sum() / (wanted[at] != ignored).sum().clamp(min=1)) for at in p.tested]
    assert 0.4 < shares[0] < 1
    assert shares[2] == 0
    assert p.accuracies(x).tolist() == pytest.approx(shares)
    assert p.accuracy(x) == pytest.approx(float(right.sum() / (wanted != ignored).sum()))


def test_one_output_has_no_accuracy():
    """Its largest output is always class 0, whatever the loss makes of it."""
    binary = lambda out, y: nn.functional.binary_cross_entropy_with_logits(out[:, 0], y.to(out))
    data = [(x, (x.sum(1) > 0).long()) for x in inputs(3).split(SIZES)]
    p = Supervised(made(mlp), binary, data)
    assert p.metrics == ("loss",)
    refused(lambda: p.accuracy(p.start()), "metrics='accuracy'")


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(3, 1)

    def forward(self, x):
        return nn.functional.dropout(self.map(x), 0.5)


class Centred(nn.Linear):
    def __init__(self) -> None:
        super().__init__(3, 1)

    def forward(self, x):
        return super().forward(x - x.mean(0))


def test_what_does_not_fit_has_a_line():
    mse, data = nn.MSELoss(), regression()
    flat = [(x, y[:, 0]) for x, y in data]
    seen = lambda module, loss=mse, data=data, **options: (
        lambda: Supervised(made(lambda: module), loss, data, **options)
    )
    refused(seen(mlp(), data=flat), "targets=(7,)", "(7, 1)", "pass y.unsqueeze(-1)")
    refused(seen(Noisy()), "module='Noisy'", "draws nothing", "nn.Dropout")
    refused(seen(Centred()), "each sample", "nn.GroupNorm")
    refused(seen(mlp(), nn.MSELoss(reduction="sum")), "loss='MSELoss'", "the mean", "reduction='mean'")
    refused(seen(mlp(), nn.MSELoss(reduction="none")), "loss=", "a scalar", ".mean()")
    refused(seen(nn.Linear(5, 1)), "module='Linear'", "inputs (7, 3)", "let the first layer take (3,) a sample")
    refused(seen(mlp(), data=[]), "clients=", "a list of (inputs, targets)")
    refused(seen(mlp(), data=data[0][0]), "clients=", "a list of (inputs, targets)")
    refused(seen(mlp(), data=data[0]), "clients=", "pass [(x, y)]")
    refused(seen(mlp(), data=dict(enumerate(data))), "clients=", "list(clients.values())")
    refused(seen(mlp(), nn.MSELoss), "loss=", "pass nn.MSELoss()")
    refused(lambda: Supervised(nn.MSELoss(), mlp(), data), "module='MSELoss'", "swap module and loss")
    refused(seen(mlp(), test=(inputs(4), inputs(4)[:, :1])), "test inputs=(4,)", "(3,) a sample")
    refused(seen(mlp(), data=[[data[0][0]]]), "clients[0]=", "a pair (inputs, targets)")
    refused(seen(mlp(), data=[(data[0][0], data[1][1])]), "clients[0]=", "as many targets as inputs", "one target for")
    refused(seen(mlp(), data=[(data[0][0], ["a"] * 7)]), "clients[0] targets='list'", "pandas.factorize(names)[0]")
    refused(seen(mlp(), data=[(data[0][0].long(), data[0][1])]), "module=", "pass numbers as floats: x.float()")
    refused(seen(nn.Embedding(2, 1), data=[(data[0][0].long() * 0 + 5, data[0][1])]), "module=", "IndexError")
    for names in (["a", "b"], np.array(["a", "b"])):
        refused(lambda names=names: partitions.iid(names, 2, Key(0)), "y=", "numpy.unique(y, return_inverse=True)[1]")
    column = torch.zeros(4, 1, dtype=torch.int64)
    refused(lambda: partitions.dirichlet(column, 2, 0.5, Key(0)), "y=", "pass y.squeeze(1)")
    refused(seen(nn.Flatten()), "module='Flatten'", "a module with parameters", "nn.Linear")
    refused(seen(mlp(), together="yes"), "together='yes'", "bool or NoneType")
    refused(seen(mlp(), data=[data[0], (inputs(4)[:5], data[1][1][:5])]), "clients[1] inputs=", "pad sequences")
    refused(seen(mlp(), data=[(data[0][0] * torch.nan, data[0][1])]), "clients[0] inputs=", "finite numbers")
    refused(seen(mlp(), 3), "loss=3", "nn.MSELoss()")
    refused(lambda: Supervised("net", mse, data), "module='net'")
    images = classes((inputs(1, 6, 6) * 9).to(torch.uint8))
    refused(seen(dropped(), nn.CrossEntropyLoss(), images), "module='Sequential'", "x.float() / 255")
    p = Supervised(made(mlp), mse, data)
    refused(lambda: run(FedAvg(0.1, 1), p, 1, metrics=("accuracy",)), "metrics='accuracy'", "record 'loss'")


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.L1Loss(), nn.HuberLoss(), lambda out, y: ((out - y) ** 2).mean()])
@pytest.mark.parametrize("far", [0.0, 2e5])
@pytest.mark.parametrize("whole", [False, True])
def test_a_loss_that_compares_each_output_with_all_targets_is_refused(loss, far, whole):
    """However large the targets are beside their spread; a loss that takes the column itself is not."""
    data = [(x, (y[:, 0] + far).long() if whole else y[:, 0] + far) for x, y in regression()]
    refused(lambda: Supervised(made(mlp), loss, data), "targets=(", "the shape of the outputs", "y.unsqueeze(-1)")
    own = lambda out, y: loss(out[:, 0], y.to(out))
    assert Supervised(made(mlp), own, data).n == 3


CROSS, BCE = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()


@pytest.mark.parametrize(
    ("loss", "wrong", "fix"),
    [
        (CROSS, lambda y: y.double(), "y.long()"),
        (CROSS, lambda y: y.int(), "y.long()"),
        (CROSS, lambda y: y[:, None], "y.squeeze(1).long()"),
        (CROSS, lambda y: y + 1, "y - 1"),
        (CROSS, lambda y: y + 7, "10 outputs"),
        (CROSS, lambda y: y - 1, "y.unique(return_inverse=True)[1]"),
        (CROSS, lambda y: nn.functional.one_hot(y, 3), "y.argmax(1)"),
        (BCE, lambda y: y.clamp(max=1), "y.float().unsqueeze(-1)"),
        (BCE, lambda y: y.clamp(max=1).double(), "y.float().unsqueeze(-1)"),
    ],
)
def test_targets_of_another_form_have_the_fix_that_works(loss, wrong, fix):
    data = [(x, torch.arange(len(x)) % 3) for x in inputs(3).split(SIZES)]
    net = lambda: nn.Linear(3, 3 if loss is CROSS else 1)
    forms = {"y.squeeze(1).long()": lambda y: y.squeeze(1).long(), "10 outputs": lambda y: y - 7}
    refused(lambda: Supervised(made(net), loss, [(x, wrong(y)) for x, y in data]), fix)
    mended = forms.get(fix) or (lambda y: eval(fix, {"y": y}))  # the line that the user follows
    assert Supervised(made(net), loss, [(x, mended(wrong(y))) for x, y in data]).n == 3


def test_whole_targets_of_cross_entropy_want_as_many_outputs():
    """One output and cross-entropy: nothing would train, whatever the targets' form."""
    data = [(x, torch.arange(len(x)) % 2) for x in inputs(3).split(SIZES)]
    refused(lambda: Supervised(made(lambda: nn.Linear(3, 1)), CROSS, data), "give the module 2 outputs")
    assert Supervised(made(lambda: nn.Linear(3, 2)), CROSS, data).n == 3


@pytest.mark.parametrize("wrong", [torch.tensor([0, 3]), torch.tensor([-1, 1]), torch.tensor([0.5, 1.0])])
def test_test_targets_that_are_none_of_the_classes_are_refused(wrong):
    data, tested = [(x, torch.arange(len(x)) % 3) for x in inputs(3).split(SIZES)], inputs(3)[:2]
    made_of = lambda y: Supervised(made(lambda: nn.Linear(3, 3)), CROSS, data, test=(tested, y))
    refused(lambda: made_of(wrong), "test targets=", "classes from 0 to 2")
    assert made_of(torch.tensor([0, 2])).n == 3
    padded = [(x, torch.where(torch.arange(len(x)) == 0, -100, y)) for x, y in data]
    loss = lambda out, y: nn.functional.cross_entropy(out, y, reduction="none").mean()  # ignores -100
    assert Supervised(made(lambda: nn.Linear(3, 3)), loss, padded, test=(tested, torch.tensor([-100, 1]))).n == 3


def test_batches_of_one_value_are_refused_where_batch_normalisation_makes_it_0():
    """A value a channel is its own mean; several pixels of one image are not."""
    flat, images = [(x, torch.arange(len(x)) % 3) for x in inputs(3).split(SIZES)], classes(inputs(1, 6, 6))
    net = lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    for norm in ("moments", "shared", "local"):
        refused(lambda norm=norm: Supervised(made(net), CROSS, flat, batch=1, norm=norm), "batch=1", "batch=2")
        assert Supervised(made(net), CROSS, flat, batch=2, norm=norm).n == 3
    deep = lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(32, 3))
    assert Supervised(made(deep), CROSS, images, batch=1).n == 3


def test_instance_normalisation_with_running_statistics_is_refused():
    """They would be those of an export, and not of the run."""
    images = classes(inputs(1, 6, 6))
    net = lambda track: nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.InstanceNorm2d(2, track_running_stats=track), nn.Flatten(), nn.Linear(32, 3)
    )
    refused(lambda: Supervised(made(lambda: net(True)), CROSS, images), "module=", "track_running_stats=False")
    assert Supervised(made(lambda: net(False)), CROSS, images).n == 3


class Uncopied(nn.Linear):
    def __deepcopy__(self, memo):
        raise RuntimeError("only leaves")


class Weighted(nn.MSELoss):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))


def test_what_raised_an_error_of_pytorch_has_a_line():
    mse, data = nn.MSELoss(), regression()
    of = lambda module, loss=mse, data=data, **options: lambda: Supervised(module, loss, data, **options)
    net, cross, y = made(lambda: nn.Linear(3, 3)), nn.CrossEntropyLoss(), torch.arange(10) % 3
    for strange in (torch.uint16, torch.uint32, torch.uint64):
        refused(of(net, cross, [(inputs(3)[:10], y.to(strange))]), "clients[0] targets=", "pass it as .to(torch.int64)")
    refused(of(net, cross, [(inputs(3)[:10].to(torch.complex64), y)]), "clients[0] inputs=", "torch.view_as_real")
    refused(of(net, cross, [(inputs(3)[:10].to_sparse(), y)]), "clients[0] inputs=", ".to_dense()")
    refused(of(made(mlp), test=(inputs(3)[:2].long(), inputs(1)[:2])), "test inputs=", "torch.float64", "prepare both")
    refused(of(Uncopied(3, 1).double()), "module='Uncopied'", "can be copied (RuntimeError: only leaves)")
    mixed = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1).double())
    refused(of(mixed), "module.dtype=", "1.weight", "module.to(torch.float32)")
    refused(of(made(mlp), Weighted()), "loss='Weighted'", "requires_grad_(False)")
    bare = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False, track_running_stats=False), nn.Linear(4, 1))
    p, plain = (Supervised(one.double(), mse, data, norm="shared") for one in (bare, nn.Sequential(bare[0], bare[2])))
    assert p.loss(p.start()) == pytest.approx(plain.loss(plain.start()), rel=1e-4)


class Hidden(nn.Module):
    """A layer that no list of parameters has."""

    def __init__(self, around) -> None:
        super().__init__()
        self.layers, self.head = around(nn.Linear(3, 3)), nn.Linear(3, 1)
        self.layers.append(self.layers)  # a list may hold itself

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)


@pytest.mark.parametrize("around", [lambda one: [one], lambda one: [[one]], lambda one: [{"a": ({"b": one},)}]])
def test_layers_in_lists_are_refused_however_deep(around):
    refused(lambda: Supervised(made(lambda: Hidden(around)), nn.MSELoss(), regression()), "module=", "nn.ModuleList")


def test_images_of_another_form_have_the_fix_that_works():
    x = inputs(1, 6, 6)
    for wrong, fix in ((x.permute(0, 2, 3, 1), "x.permute(0, 3, 1, 2)"), (x[:, 0], "x.unsqueeze(1)")):
        given = [(some, torch.arange(len(some)) % 3) for some in wrong.split(SIZES)]
        refused(lambda given=given: Supervised(made(dropped), CROSS, given), fix)
        mended = [(eval(fix, {"x": some}), y) for some, y in given]
        assert Supervised(made(dropped), CROSS, mended).n == 3


# What a call with borrowed weights cannot do


def tokens(pad):
    """Sequences, of which only later ones are padded."""
    z = torch.randint(1, 9, (sum(SIZES), 5), generator=torch.Generator().manual_seed(0))
    z[30:, 3:] = pad
    return z


def embedded(**options):
    return nn.Sequential(nn.Embedding(10, 4, **options), nn.Flatten(), nn.Linear(20, 3))


class Way(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.first, self.last, self.way = nn.Linear(6, 6), nn.Linear(6, 3), way

    def forward(self, x):
        return self.way(self, x)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.of, self.last = nn.LSTM(6, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.of(x)[0][:, -1])


def again(m, x):
    """It computes its end a second time, when the gradient is asked for."""
    return checkpoint(lambda h: m.last(h.tanh()), m.first(x), use_reentrant=False)


@pytest.mark.parametrize("pad", [0, 9])
def test_a_padding_row_stays_however_clients_are_stacked(pad):
    of = Supervised(embedded(padding_idx=pad).double(), nn.CrossEntropyLoss(), classes(tokens(pad)), batch=8)
    one, other = (run(FedAvg(0.5, 5), of, 3, chunk=chunk).x for chunk in (None, 1))
    assert torch.allclose(one, other, rtol=1e-9)
    assert not one[4 * pad : 4 * pad + 4].any()


@pytest.mark.parametrize(
    ("build", "x", "said"),
    [
        (lambda: Way(again), inputs(6), "gradient is autograd's.*activation checkpointing"),
        (lambda: Way(torch.no_grad()(lambda m, x: m.last(x))), inputs(6), "with a gradient.*no_grad"),
        (lambda: embedded(sparse=True), tokens(0), "with a gradient.*sparse"),
        (lambda: Way(lambda m, x: m.last(x.sub_(0.5))), inputs(6), "leaves its inputs alone"),
        (lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 3)), inputs(6), "leaves its inputs alone"),
        (lambda: embedded(max_norm=1.0), tokens(0), "leaves its weights alone"),
    ],
)
def test_modules_that_supervised_cannot_call_are_refused(build, x, said):
    with pytest.raises(ValueError, match=rf"module=.*{said}"):
        Supervised(build().double(), nn.CrossEntropyLoss(), classes(x), batch=8)


@pytest.mark.parametrize(
    ("build", "x"),
    [(lambda: embedded(padding_idx=0), tokens(0)), (lambda: Lstm(), inputs(1, 6))],
)
def test_clients_that_cannot_be_stacked_are_not(build, x):
    assert not Supervised(build().double(), nn.CrossEntropyLoss(), classes(x), batch=8).together
    with pytest.raises(ValueError, match=r"together=True.*leave it out"):
        Supervised(build().double(), nn.CrossEntropyLoss(), classes(x), batch=8, together=True)


def test_a_column_may_be_named_by_a_number_of_numpys():
    pandas = pytest.importorskip("pandas")
    x = inputs(2)
    frame = pandas.DataFrame({0: x[:, 0], 1: x[:, 1], 2: (x[:, 0] > 0).int()}, columns=pandas.Index([0, 1, 2]))
    name = frame.columns[2]
    of = Supervised.from_frame(nn.Linear(1, 1).double(), nn.MSELoss(), frame, frame.columns[0], name)
    assert (of.n, type(name).__name__) == (2, "int64")
