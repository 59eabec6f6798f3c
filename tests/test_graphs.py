"""What a card replays, with a stand-in for the card's graph that runs the function again, unseen and in place."""

import copy
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from cases import problem
from torch.utils._python_dispatch import _disable_current_modes

from fedtheory import DeComFL, FedAvg, Key, run
from fedtheory.maps.directions import Direction
from fedtheory.problems import graphs
from fedtheory.problems.graphs import Graphs
from fedtheory.problems.images import Batch, ImageClassification
from fedtheory.running import meter


def captured(self, of, given):
    inputs = [one.clone() for one in given]
    out = of(*inputs).detach()

    def replay():
        with _disable_current_modes(), torch.no_grad():
            out.copy_(of(*inputs))

    return inputs, SimpleNamespace(replay=replay), out


@pytest.fixture
def card(monkeypatch):
    """This processor plays the card's part."""
    plays_a_card(monkeypatch)


def plays_a_card(monkeypatch):
    monkeypatch.setattr(Graphs, "_captured", captured)
    monkeypatch.setattr(graphs, "side_by_side", lambda works: [work() for work in works])
    monkeypatch.setattr(ImageClassification, "_launched", lambda self, y, xi: xi.full)


def test_results_are_copies_and_inputs_are_taken_anew(card):
    replay, double = Graphs(), lambda x: 2 * x
    given = [torch.full((3,), float(i)) for i in range(6)]
    found = [replay("double", double, x) for x in given]
    assert [(shape[0], shape[1][0]) for shape in replay._kept] == [("double", (3,))]
    for x, y in zip(given, found, strict=True):
        assert torch.equal(y, 2 * x)


def test_a_shape_is_captured_at_its_third_call_and_eight_are_at_most(card):
    replay, calls = Graphs(), []
    of = lambda x: calls.append(len(x)) or x + 1
    for n in range(1, 12):
        for _ in range(4):
            assert torch.equal(replay("f", of, torch.ones(n)), torch.full((n,), 2.0))
    assert [shape[1][0] for shape in replay._kept] == [(n,) for n in range(1, 9)]
    assert calls.count(9) == 4  # computed each time


def test_names_are_told_apart(card):
    replay = Graphs()
    for _ in range(4):
        assert float(replay("a", lambda x: x + 1, torch.zeros(1))) == 1
        assert float(replay("b", lambda x: x + 2, torch.zeros(1))) == 2


def test_watched_work_and_other_threads_are_computed(card):
    replay, of = Graphs(), lambda x: x @ x
    count = lambda: [replay("f", of, torch.ones(2, 2)) for _ in range(5)]
    assert meter.multiplications(count) == 5 * 8
    with ThreadPoolExecutor(1) as pool:
        pool.submit(count).result()
        assert not replay._kept
        count()
        assert replay._kept
        assert meter.multiplications(count) == 5 * 8
        (kept,) = replay._kept.values()
        kept[1].replay = None
        assert len(pool.submit(count).result()) == 5  # computed, though the shape is captured


@pytest.mark.parametrize("name", ["mlp", "decomfl-mnist", "resnet8"])
@pytest.mark.parametrize("how", [FedAvg(0.05, 3), DeComFL(1e-4, 1, 3), DeComFL(1e-4, 3, 3)], ids=repr)
def test_a_run_is_the_same(name, how, monkeypatch):
    """On even and uneven clients, and after a first run of another shape; but for rounding where clients are stacked.

    On the card it is the same bits whether a shape is captured already, and in any number of threads. Here float64
    convolutions go through MKL, whose bits depend on where memory lies on some processors; they agree to 1e-13.
    """
    near = lambda one, other: float((one - other).norm() / other.norm()) < 1e-13
    for sizes, options in (((12, 12, 12), {}), ((12, 9, 7), {"epochs": 1})):
        make = lambda sizes=sizes, options=options: problem(name, sizes, stacked=True, **options)
        if isinstance(how, FedAvg):
            steps = make().steps if options else 3
            how = FedAvg(0.05, steps)
        elif options:
            continue
        rounds = 2 if how.local_steps > 1 else 3  # until a shape is captured
        plain = run(how, make(), rounds, metrics=("loss",))
        with monkeypatch.context() as there:
            plays_a_card(there)
            other = make()
            run(how, other, 1, sampled=2, metrics=())
            found = run(how, other, rounds, metrics=("loss",))
            same = near if other.network.convolutional else torch.equal
            assert same(run(how, make(), rounds, metrics=()).x, found.x)
            if not options:
                assert same(*(run(how, make(), 2, chunk=2, threads=k, metrics=()).x for k in (1, 2)))
        assert float((found.x - plain.x).norm() / plain.x.norm()) < (1e-9 if other.network.convolutional else 1e-300)
        assert found["loss"] == pytest.approx(plain["loss"], rel=1e-9)
        assert other._graphs._kept or options


@pytest.mark.parametrize(("name", "times"), [("decomfl-mnist", 1), ("resnet8", 1), ("mlp", 0)])
def test_clients_with_weights_of_their_own_are_captured_side_by_side(name, times, card, monkeypatch):
    asked, stacks = [], set()
    monkeypatch.setattr(graphs, "side_by_side", lambda works: asked.append(len(works)) or [work() for work in works])
    p = problem(name, (12, 12, 12), stacked=True, augment="flip")
    of = p._gradient
    monkeypatch.setattr(p, "_gradient", lambda y, xi: stacks.add(len(y)) or of(y, xi))
    y = p.start() + 0.1 * torch.randn(3, p.d, dtype=torch.float64, generator=Key(2).generator())
    for i, xi in enumerate(p.draw(p.clients, 4, Key(1))):
        rows = [p._gradient(y[j : j + 1], xi.client(j)) for j in range(3)]
        torch.testing.assert_close(p.grads(y, xi), torch.cat(rows), rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            own = [p.losses_at(y[j : j + 1], None, xi.client(j)) for j in range(3)]
            torch.testing.assert_close(p.losses(y, xi), torch.cat(own), rtol=1e-9, atol=1e-12)
        assert asked == (2 * times * (i - 1) + 2 * times) * [3] if i > 1 else not asked
    assert stacks == ({1} if times else {1, 3})  # of convolutions, also before they are captured
    p.grads(y[:1], xi.client(0))
    assert set(asked) <= {3}  # one is alone in its launch


def test_streams_are_joined_whatever_happens_and_an_interrupt_arrives(monkeypatch):
    """A capture whose streams are not joined ends with an error of its own, in the place of Ctrl-C."""
    out = set()

    class Stream:
        def wait_stream(self, other):
            out.add(self) if other is now else out.discard(other)

    now, streams = Stream(), [Stream() for _ in range(16)]
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: now)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(graphs, "_streams", lambda device: streams)
    assert graphs.side_by_side([lambda i=i: i for i in range(20)]) == list(range(20))
    assert not out

    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        graphs.side_by_side([lambda: 1, stopped, lambda: 2])
    assert not out

    def ended(self, of, given):
        try:
            of(*given)
        finally:
            raise RuntimeError("the capture's end")

    monkeypatch.setattr(Graphs, "_captured", ended)
    replay, calls = Graphs(), []
    of = lambda x: calls.append(1) or (stopped() if len(calls) == 3 else x)
    for _ in range(2):
        replay("f", of, torch.ones(1))
    with pytest.raises(KeyboardInterrupt):
        replay("f", of, torch.ones(1))
    assert len(calls) == 3


def test_workspaces_are_cleared_on_both_sides_of_a_capture(monkeypatch):
    done = []
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: done.append("cleared"), raising=False)
    with graphs._own_workspaces():
        done.append("captured")
    assert done == ["cleared", "captured", "cleared"]
    with pytest.raises(KeyboardInterrupt), graphs._own_workspaces():
        raise KeyboardInterrupt
    assert done[3:] == ["cleared", "cleared"]


def test_graphs_hold_an_eighth_of_the_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=800))
    replay = Graphs()
    replay._hold(60)
    with pytest.raises(RuntimeError, match="41 bytes beside 60: expected 100 at most"):
        replay._hold(41)
    replay._hold(40)
    with pytest.raises(RuntimeError, match="1 bytes beside 100"):
        replay._hold(1)


def test_what_cannot_be_captured_is_computed(card, monkeypatch):
    tried = []

    def refused(self, of, given):
        graph = torch.zeros(1)
        tried.append(weakref.ref(graph))
        raise torch.OutOfMemoryError("no memory for the graph")

    def added(x):
        assert all(graph() is None for graph in tried)  # its memory is free by then
        return x + 1

    monkeypatch.setattr(Graphs, "_captured", refused)
    replay = Graphs()
    for _ in range(6):
        assert float(replay("f", added, torch.zeros(1))) == 1
    assert len(tried) == 1
    with pytest.raises(RuntimeError, match="own error"):
        replay("g", broken, torch.zeros(1))


@pytest.fixture
def switches():
    """PyTorch's, which are put back."""
    cudnn = torch.backends.cudnn
    yield cudnn
    if hasattr(cudnn, "conv"):
        torch.backends.fp32_precision = "none"
    cudnn.allow_tf32 = True


@pytest.mark.parametrize("chosen", ["nothing", "older", "newer", "newest"])
def test_tf32_is_switched_off_whatever_was_chosen(chosen, switches):
    if chosen.startswith("new") and not hasattr(switches, "conv"):
        pytest.skip("PyTorch 2.9 has these switches")
    choose = {
        "nothing": lambda: None,
        "older": lambda: setattr(switches, "allow_tf32", True),
        "newer": lambda: setattr(switches.conv, "fp32_precision", "tf32"),
        "newest": lambda: setattr(torch.backends, "fp32_precision", "tf32"),
    }
    choose[chosen]()
    for _ in range(2):
        assert graphs.convolved_in() in (True, "tf32")
        graphs.without_tf32()
        assert graphs.convolved_in() in (False, "none", "ieee")
        assert chosen == "newest" or switches.allow_tf32 is False  # the older switch can still be read
        switches.allow_tf32 = True  # a user's choice after the problem was made


def broken(x):
    raise RuntimeError("own error")


def test_a_held_direction_gives_the_losses_of_one_made_layer_by_layer():
    """The branch of a card, whose vector is put there by hand."""
    p = problem("decomfl-mnist", (12, 12, 12))
    xi = p.draw(p.clients, 1, Key(1))[0]
    y = p.start() + 0.1 * torch.randn(3, p.d, dtype=torch.float64, generator=Key(2).generator())
    made, held = (Direction(Key(3), p.layout, "gaussian", torch.float64, p.device) for _ in range(2))
    held.__dict__["_whole"] = torch.cat([part for _, part in made])
    with torch.no_grad():
        for at in (y, y[1:2].expand(3, -1)):
            found, wanted = (z.losses(p, at, 0.3, xi) for z in (held, made))
            torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)
            assert not torch.allclose(found, p.losses(at, xi))
    for j, where in enumerate(p.layout.slices):
        assert torch.equal(held.add(j, y[:, where], 0.3), made.add(j, y[:, where], 0.3))


def test_losses_of_clients_at_one_point_and_apart(card):
    p = problem("decomfl-mnist", (12, 12, 12), stacked=True)
    xi = p.draw(p.clients, 1, Key(1))[0]
    y = p.start() + 0.1 * torch.randn(3, p.d, dtype=torch.float64, generator=Key(2).generator())
    with torch.no_grad():
        for _ in range(4):
            for at in (y, y[1:2].expand(3, -1)):
                torch.testing.assert_close(p.losses(at, xi), p.losses_at(at, None, xi), rtol=1e-12, atol=0)
    assert [shape[1][0] for shape in p._graphs._kept] == [(3, p.d), (1, p.d)]
    leaf = y.clone().requires_grad_()
    p.losses(leaf, xi).sum().backward()
    torch.testing.assert_close(leaf.grad, p.grads(y, xi), rtol=1e-9, atol=1e-12)


def test_a_copy_captures_anew_and_is_the_same_problem(card):
    p = problem("mlp", (12, 12, 12))
    xi = p.draw(p.clients, 1, Key(1))[0]
    found = [p.grads(p.start().expand(3, -1), xi) for _ in range(4)]
    assert p._graphs._kept
    other = copy.deepcopy(p)
    assert not other._graphs._kept
    own = [other.grads(other.start().expand(3, -1), xi) for _ in range(4)]
    assert other._graphs._kept
    assert not {*map(id, other._graphs._kept.values())} & {*map(id, p._graphs._kept.values())}
    assert all(torch.equal(one, found[0]) for one in found + own)
    assert copy.deepcopy(p).fingerprint() == p.fingerprint() == problem("mlp", (12, 12, 12)).fingerprint()


def test_what_a_card_is_asked_in_one_launch(monkeypatch):
    p = problem("mlp", (12, 12, 12))
    xi, y = p.draw(p.clients, 1, Key(1))[0], p.start()[None]
    assert not p._launched(y, xi)  # no card
    p.device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: y.device.index)
    assert p._launched(y, xi)
    assert not p._launched(y, Batch(xi.index, (1, 2, 3)))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert not p._launched(y, xi)  # of another card


def test_a_direction_that_fits_in_a_block_is_drawn_once(monkeypatch):
    """On a card, for which "meta" stands; on the CPU, and beyond a block, for every use."""
    p, drawn = problem("mlp"), []
    made = Direction._drawn
    monkeypatch.setattr(Direction, "_drawn", lambda self, j: drawn.append(j) or made(self, j))
    uses = {"meta": 1, "cpu": 2}
    for device, times in uses.items():
        drawn.clear()
        z = Direction(Key(3), p.layout, "gaussian", torch.float64, torch.device(device))
        assert sum(len(part) for _ in range(2) for _, part in z) == 2 * p.d
        assert drawn == times * [0, 1, 2, 3]
    monkeypatch.setattr("fedtheory.maps.directions.BLOCK", p.d - 1)
    assert Direction(Key(3), p.layout, "gaussian", torch.float64, torch.device("meta"))._whole is None
