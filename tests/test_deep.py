"""Deep networks: what a basis compresses in a convolution, rates that change, counted budgets, and the items' cells."""

import math
from dataclasses import replace

import pytest
import torch
from cases import quadratic

from fedtheory import SSF, Coordinate, FedAvg, Identity, ImageClassification, Key, Scaffold, Spherical, cli, run
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.core.loop import play_round
from fedtheory.core.schedule import Cosine, Steps
from fedtheory.course import watch
from fedtheory.papers import budget
from fedtheory.papers.deep import items as deep
from fedtheory.papers.store import measured
from fedtheory.problems.models.networks import VIEWS, network
from fedtheory.running import meter

SHAPE = (3, 8, 8)
HALVED = Steps(3, 0.5)


# What a basis compresses.


def test_43_percent_is_seven_wide_kernels_of_which_three_train():
    """FedSub, Sec. 5.2 and its public logs: 43%; 9.37M parameters before, 4.03M trainable after."""
    found = {(row["network"], row["m"]): row for row in deep.readings()}
    assert {key for key, row in found.items() if round(row["share"], 2) == deep.SHARE} == {("resnet110-7", "k")}
    row = found["resnet110-7", "k"]
    assert (round(row["parameters"] / 1e6, 2), round(row["trained"] / 1e6, 2)) == (9.37, 4.03)


def test_resnet50_has_the_usual_number_of_parameters():
    assert network("resnet50", (3, 32, 32), 10).layout.size == 23_520_842  # 3 x 3 stem, as ResNet-18's 11,173,962


@pytest.mark.parametrize("view", VIEWS)
def test_views_leave_the_numbers_where_they_are(view):
    """Projecting along the width multiplies the last axis of (c_out, c_in, k, k); along a filter, the last three."""
    built = network("resnet8-7", SHAPE, 4, view, deep.WHOLE)
    plain = network("resnet8-7", SHAPE, 4)
    assert built.sizes == plain.sizes
    assert built.layout.slices == plain.layout.slices
    x = plain.init(Key(0))
    (at, *_) = built.weights[1:]
    kernel = x[plain.layout.slices[at]].view(16, 16, 7, 7)
    axes = {"width": kernel, "rows": kernel.reshape(16, 7, 16 * 7), "filter": kernel.reshape(16, -1)}[view]
    P = Spherical(3).draw(built.layout, Key(1), torch.float64)
    low = P.project(x)[P.low.slices[at]]
    torch.testing.assert_close(low, (axes @ P.matrices()[at]).flatten())


@pytest.mark.parametrize("projection", [Coordinate(3), Spherical(3), Spherical(3, "orthonormal")], ids=repr)
def test_whole_layers_are_no_subspace(projection):
    """Biases, normalisation and the linear layer come back as they were; convolutions do not."""
    layout = network("resnet8-7", SHAPE, 4, deep.VIEW, deep.WHOLE).layout
    P = projection.draw(layout, Key(0), torch.float64)
    g = torch.randn(layout.size, generator=Key(1).generator(), dtype=torch.float64)
    back = P.lift(P.project(g))
    for layer, where in zip(layout.layers, layout.slices):
        assert torch.equal(back[where], g[where]) == (not layer.name.endswith("conv"))


def test_kinds_and_views_are_checked():
    with pytest.raises(ValueError, match=r"view='height'.*'rows', 'width', 'filter'.*Fix: "):
        network("resnet8", SHAPE, 4, "height")
    with pytest.raises(ValueError, match=r"whole='norm'.*'conv'.*Fix: "):
        network("resnet8", SHAPE, 4, "width", ("norm",))


# Rates that change.


def test_schedules():
    assert [HALVED.factor(t) for t in (0, 2, 3, 8)] == [1, 1, 0.5, 0.25]
    cosine = Cosine(12, 2)
    assert [cosine.factor(t) for t in (0, 1, 2, 7)] == pytest.approx([0.5, 1, 1, 0.5])
    assert 0 < cosine.factor(11) < 0.03
    problem = quadratic()
    for make, name in (
        (lambda: Steps(0), "every"),
        (lambda: Steps(2, 1.5), "by"),
        (lambda: Cosine(5, 5), "warm_up"),
        (lambda: run(FedAvg(0.1, 2), problem, 3, schedule=0.5), "schedule"),
        (lambda: run(FedAvg(0.1, 2), problem, 6, schedule=Cosine(5)), "schedule=Cosine"),
    ):
        with pytest.raises((ValueError, TypeError), match=rf"{name}.*expected.*Fix: "):
            make()


def test_a_scheduled_run_is_its_rounds_at_their_rates():
    problem, algorithm, root = quadratic(), Scaffold(0.08, 2), Key(0)
    state = algorithm.init(problem, problem.start(), root)
    for t in range(7):
        at = replace(algorithm, lr=0.08 * 0.5 ** (t // 3))
        state, _, _ = play_round(at, problem, state, problem.clients, root.fold("round", t))
    assert torch.equal(run(algorithm, problem, 7, schedule=HALVED).x, state.server.x)


@pytest.mark.parametrize("algorithm", [Scaffold(0.08, 2), SSF.haar(0.08, 2, 2)], ids=repr)
def test_control_variates_are_mean_gradients_whatever_the_rate(algorithm):
    """c_i^+ = (1/K) sum_k g_i, in SSF within the subspace, in the round in which the rate has just changed."""
    problem, root = quadratic(), Key(0)
    state = run(algorithm, problem, 3, schedule=HALVED).state
    now, own = algorithm.at_rate(0.5 * algorithm.lr, state.own)
    state, key = state._replace(own=own), root.fold("round", 3)
    P = now.broadcast(state.server, key).P.value if isinstance(now, SSF) else None
    iterates = watch(now, problem, state, key)
    start = state.server.x if P is None else P.project(state.server.x)
    points = torch.cat([start.expand_as(iterates[:1]), iterates[:-1]])
    if P is not None:
        points = P.lift(points) + state.server.x - P.lift(P.project(state.server.x))
    xi = problem.draw(problem.clients, now.local_steps, key.fold("xi"))
    mean = torch.stack([problem.grads(y, sample) for y, sample in zip(points, xi)]).mean(0)
    before = state.own.c.clone()
    after = play_round(now, problem, state, problem.clients, key)[0].own.c
    expected = mean if P is None else before + P.lift(P.project(mean - before))
    torch.testing.assert_close(after, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rescale", [True, False])
def test_fedsubs_duals_are_carried_to_the_new_rate(rescale):
    """As by the algorithm's own decay: rescaled, Lambda / (eta tau) stays what it was."""
    problem = quadratic()
    base = FedSubReading(0.08, 2, Identity(), rescale_dual=rescale)
    own = run(replace(base, decay_every=3, decay_factor=0.5), problem, 7).x
    torch.testing.assert_close(run(base, problem, 7, schedule=HALVED).x, own, rtol=1e-12, atol=1e-14)
    state = run(base, problem, 3).state
    there, carried = base.at_rate(0.02, state.own)
    same = torch.allclose(carried.dual / there.lr, state.own.dual / base.lr, rtol=1e-12)
    assert same == rescale


def test_with_a_schedule_an_exact_method_stays_exact():
    """P = I converges to x* through four changes of the rate; rescaling spares it the start at each."""
    problem = quadratic()
    for algorithm in (Scaffold(0.05, 2), FedSubReading(0.05, 2, Identity(), rescale_dual=True)):
        assert run(algorithm, problem, 2000, every=2000, schedule=Steps(400, 0.8))["error"][-1] < 1e-9


@pytest.mark.parametrize(
    "algorithm", [Scaffold(0.08, 2), FedSubReading(0.08, 2, Identity(), rescale_dual=True)], ids=repr
)
@pytest.mark.parametrize("stop", [3, 5])
def test_a_scheduled_run_goes_on_from_a_checkpoint(algorithm, stop, tmp_path):
    problem, options = quadratic(), {"schedule": HALVED, "checkpoint": tmp_path}
    run(algorithm, problem, stop, **options)
    assert torch.equal(run(algorithm, problem, 8, **options).x, run(algorithm, problem, 8, schedule=HALVED).x)
    with pytest.raises(ValueError, match="checkpoint"):
        run(algorithm, problem, 8, checkpoint=tmp_path)


# Precision, and what is counted.


def small(**options) -> ImageClassification:
    g = Key(0).generator()
    images, labels = torch.randn(40, *SHAPE, generator=g), torch.randint(4, (40,), generator=g)
    parts = list(torch.arange(40).split(10))
    return ImageClassification(images, labels, parts, network("resnet8", SHAPE, 4), Key(1), batch=8, **options)


def test_mixed_precision_rounds_products_and_nothing_else():
    exact, mixed = small(), small(precision="bf16")
    xi = exact.draw(exact.clients, 1, Key(2))[0]
    y = exact.start().expand(4, -1)
    a, b = exact.grads(y, xi), mixed.grads(y, xi)
    assert b.dtype == torch.float32
    assert 0.99 < float(torch.cosine_similarity(a.flatten(), b.flatten(), dim=0)) < 0.99999
    assert all(part.dtype == torch.float32 for pair in mixed.moments(mixed.start()) for part in pair)
    assert math.isfinite(run(FedAvg(0.1, 2), mixed, 2, metrics=("loss", "accuracy"))["loss"][-1])
    images = exact.images.double()
    with pytest.raises(ValueError, match=r"precision='bf16': expected 'full' for images of torch.float64.*float32"):
        ImageClassification(images, exact.labels, exact.parts, exact.network, Key(1), precision="bf16")
    with pytest.raises(ValueError, match=r"precision='half': expected one of 'full', 'bf16'"):
        small(precision="half")


def test_a_step_is_counted_without_being_made():
    """Memory is that of the step itself; products are three forward passes less the first layer's input gradient."""
    run = budget.Budget("resnet8", 4, 8, 2, 10, SHAPE)
    counted = run.step
    held = meter.peak_bytes(budget.gradient(run.network, 8, "cpu", clients=2))
    assert counted.memory == pytest.approx(held, rel=0.1)
    first = 64 * 9 * 3 * 16  # pixels, kernel, channels in and out
    forward = first + 9 * (64 * 2 * 16 * 16 + 16 * (16 * 32 + 32 * 32) + 4 * (32 * 64 + 64 * 64)) + 64 * 4
    assert counted.products == 2 * 8 * (3 * forward - first)
    with budget._Counted() as alone:  # a step, and nothing that is done once
        budget.gradient(run.network, 8, clients=2)()
    assert counted.operations == alone.operations


# The items.


class Fake:
    """Runs that end at the accuracy of their method, with one better record before."""

    device = "cpu"

    def __init__(self, values):
        self.values, self.specs = values, []

    def __call__(self, specs):
        self.specs += specs
        return {one: self.result(one) for one in specs}

    def result(self, one):
        (name,) = (name for name in self.values if deep.method(name, deep.SETTINGS["medium"].lr) == one.algorithm)
        last = self.values[name] + 0.001 * one.seed
        columns = {"round": [0, 5, 10], "accuracy": [0.1, last + 0.01, last], "up_bytes": [0, 1, 2]}
        return {"diverged": None, "columns": {**columns, "down_bytes": [0, 1, 2]}}


ORDER = {"Full-SCAFFOLD": 0.5, "SSF": 0.4, "FedAvg": 0.3, "FedSub": 0.2, "our-CD": 0.5, "our-P=I": 0.5, deep.CODE: 0.5}


@pytest.mark.parametrize(("item", "count"), [("fedsub/fig2", 5), ("ssf/fig4", 3), ("ssf/table5", 13)])
def test_every_printed_number_has_a_cell_a_verdict_and_a_reason(item, count):
    """In the paper's order every order holds; levels are not compared below the paper's scale."""
    chosen = next(one for one in deep.ITEMS if one.name == item)
    result = measured(Fake(ORDER), chosen.measure("medium", 6))
    assert len(result.cells) == count
    assert all(cell.reason and cell.seeds for cell in result.cells)
    for cell in result.cells:
        levels = "nearly" in cell.cell or "epoch" in cell.cell or cell.cell.startswith("Full-SCAFFOLD ")
        if cell.kind == "run":
            assert cell.verdict == ("not tested" if levels else "direction holds"), cell
    assert chosen.draw(result.table).axes


def test_all_methods_compute_the_same():
    """Local steps, batches, clients, data and rounds are those of every method of an item; only the method differs."""
    for scale in deep.SCALES:
        specs = [deep.spec(name, "ssf", scale, 0) for name in deep.TABLE5]
        assert {one.algorithm.local_steps for one in specs} == {deep.TAU}
        assert len({replace(one, algorithm=None) for one in specs}) == 1
    paper = deep.SETTINGS["paper"]
    assert paper.epochs(paper.length("ssf")) == pytest.approx(100, abs=0.05)
    assert paper.epochs(paper.length("fedsub")) == pytest.approx(40, abs=0.05)


@pytest.mark.parametrize("item", ["mud/table5", "flss/table1", "flss/table3", "mud/fig2"])
def test_missing_memory_is_said_before_any_work_on_images(item, capsys, tmp_path, monkeypatch):
    words = ["reproduce", item, "--scale", "paper", "--seeds", "1", "--out", str(tmp_path), "--data", str(tmp_path)]
    monkeypatch.setattr(budget, "free_bytes", lambda device: 10**8)
    assert cli.main(words) == 2
    assert "room for a run" in (error := capsys.readouterr().err)
    assert "Fix: " in error
    assert not any(tmp_path.iterdir())


def test_missing_data_and_memory_are_said_before_any_work(capsys, tmp_path, monkeypatch):
    words = ["reproduce", "ssf/fig4", "--scale", "paper", "--seeds", "1", "--out", str(tmp_path), "--json"]
    monkeypatch.setattr(budget, "free_bytes", lambda device: 10**9)
    assert cli.main([*words, "--data", str(tmp_path)]) == 2
    assert "GB" in (error := capsys.readouterr().err)
    assert "Fix: " in error
    monkeypatch.setattr(budget, "free_bytes", lambda device: None)
    assert cli.main([*words, "--data", str(tmp_path)]) == 2
    assert "cifar100" in (error := capsys.readouterr().err)
    assert "Fix: " in error
