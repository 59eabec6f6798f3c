"""What a method or a problem of one's own may be called, hold and do, and the modes that a caller may be in."""

import copy
import math
import multiprocessing
import pickle
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pytest
import torch

import fedtheory
from fedtheory import (
    SSF,
    FedAvg,
    FedNTD,
    ImageClassification,
    Key,
    LogisticRegression,
    MatrixRegression,
    Quadratic,
    Scaffold,
    Spherical,
    play_round,
    run,
)
from fedtheory.core.algorithm import State
from fedtheory.core.history import Divergence
from fedtheory.papers.store import Runner, Spec
from fedtheory.problems import sentiment
from fedtheory.running import configuration


class Own:
    """Holds classes that have the names of others."""

    @dataclass(frozen=True)
    class FedAvg(fedtheory.FedAvg):
        def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> Any:
            new, reply = super().server(server, down, up, clients, key)
            return replace(new, x=0 * new.x + 1), reply

    class Quadratic(Quadratic):
        def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
            return 2 * super().grads(y, xi)


QUADRATIC = Quadratic.random(4, 3, Key(0))


def of_class(kind: type[Quadratic]) -> Quadratic:
    """The same problem, of a class of one's own."""
    problem = copy.copy(QUADRATIC)
    problem.__class__ = kind
    return problem


def test_a_class_of_the_same_name_is_another_method(tmp_path, inline):
    """Its stored runs are its own; what is stored of this package's is named as it was. A worker can be sent both."""
    theirs, ours = (Spec(kind(0.1, 2), "quadratic", (("d", 4), ("n", 3)), 20, 0) for kind in (FedAvg, Own.FedAvg))
    runner = Runner(tmp_path, workers=1)
    found = [runner([one])[one]["columns"]["error"][-1] for one in (theirs, ours, theirs)]
    assert found[0] == found[2] != found[1]
    assert inline == [theirs, ours]
    assert [pickle.loads(pickle.dumps(one)) for one in inline] == inline
    assert list(configuration.describe(FedAvg(0.1, 2))) == ["FedAvg"]
    assert list(configuration.describe(Own.FedAvg(0.1, 2))) == ["test_own_code.Own.FedAvg"]
    assert list(configuration.revisions(Own.FedAvg(0.1, 2))) == ["test_own_code.Own.FedAvg"]


def test_a_checkpoint_of_a_class_of_the_same_name_is_refused(tmp_path):
    run(FedAvg(0.1, 2), QUADRATIC, 3, checkpoint=tmp_path / "method")
    with pytest.raises(ValueError, match=r"another folder"):
        run(Own.FedAvg(0.1, 2), QUADRATIC, 3, checkpoint=tmp_path / "method")
    twin = of_class(Own.Quadratic)
    assert twin.fingerprint() == QUADRATIC.fingerprint()
    run(FedAvg(0.1, 2), QUADRATIC, 3, checkpoint=tmp_path / "problem")
    with pytest.raises(ValueError, match=r"another folder"):
        run(FedAvg(0.1, 2), twin, 3, checkpoint=tmp_path / "problem")


class Scaled(torch.nn.Module):
    """A network that its repr and its tensors do not tell from another."""

    def __init__(self, scale: float, act: Any = torch.tanh) -> None:
        super().__init__()
        self.scale, self.act = scale, act

    def twice(self) -> float:
        return 2 * self.scale

    def thrice(self) -> float:
        return 3 * self.scale


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tanh, torch.sin),
        (math.sin, math.cos),
        (torch.nn.ReLU, torch.nn.Tanh),
        (math, torch),
        (Scaled(1.0), Scaled(2.0)),
        (Scaled(1.0), Scaled(1.0, torch.sin)),
        (Scaled(1.0).twice, Scaled(2.0).twice),
        (Scaled(1.0).twice, Scaled(1.0).thrice),
        (partial(torch.mul, other=2.0), partial(torch.add, other=2.0)),
        (torch.nn.Sequential(Scaled(1.0)), torch.nn.Sequential(Scaled(2.0))),
    ],
)
def test_what_a_problem_computes_with_is_in_its_fingerprint(one, other):
    class Holds(Quadratic):
        pass

    prints = []
    for held in (one, one, other):
        problem = of_class(Holds)
        problem.held = held
        prints.append(problem.fingerprint())
    assert prints[0] == prints[1] != prints[2]


def test_a_bound_method_of_the_problem_itself_comes_to_an_end():
    problem = Quadratic.random(4, 3, Key(0))
    problem.again = problem.grads
    assert problem.fingerprint() != QUADRATIC.fingerprint()


DIGITS = {"clients": 3, "subset": 60, "tested": 20, "batch": 8, "dtype": torch.float32}


@pytest.mark.parametrize("network", ["mlp", "resnet8"])
def test_a_callers_modes_change_no_bit(network):
    """Autocast would round, and only outside of a run's threads; a default device is not where generators are."""
    digits = ImageClassification.load("digits", network, Key(1), **DIGITS)
    method, settings = FedNTD(0.1, 2), {"metrics": ("loss", "accuracy"), "sampled": 2, "dropout": 0.3}
    plain = run(method, digits, 2, **settings)
    with torch.autocast("cpu", torch.bfloat16):
        cast = [run(method, digits, 2, **settings, chunk=1, threads=n) for n in (1, 2)]
    assert torch.equal(cast[0].x, cast[1].x)
    assert torch.equal(cast[0].x, run(method, digits, 2, **settings, chunk=1).x)
    with torch.device("meta"):
        away = run(method, digits, 2, **settings)
    assert torch.equal(away.x, plain.x)
    assert away.columns == plain.columns


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, partial(torch.autocast, "cpu", torch.bfloat16)])
def test_a_single_round_takes_no_notice_of_the_callers_modes(mode):
    digits = ImageClassification.load("digits", "mlp", Key(1), **DIGITS)
    method = FedNTD(0.1, 2)
    rounds = []
    for inside in (torch.enable_grad, mode):
        state = method.init(digits, digits.start(), Key(0))
        with inside():
            rounds.append(play_round(method, digits, state, digits.clients, Key(0))[0].server.x)
    assert torch.equal(*rounds)


def test_data_that_require_gradients_are_data():
    A, b = torch.randn(3, 5, 4, dtype=torch.float64), torch.ones(3, 5, dtype=torch.float64)
    H, x = torch.eye(4, dtype=torch.float64).repeat(3, 1, 1), torch.ones(3, 4, dtype=torch.float64)
    digits = ImageClassification.load("digits", "mlp", Key(1), **DIGITS)
    of = (digits.labels, digits.parts, digits.network, Key(1))
    for make in (
        lambda on: MatrixRegression(A.clone().requires_grad_(on), b[..., None].clone().requires_grad_(on)),
        lambda on: LogisticRegression(A.clone().requires_grad_(on), b.clone().requires_grad_(on), 0.1),
        lambda on: Quadratic(H.clone().requires_grad_(on), x.clone().requires_grad_(on)),
        lambda on: ImageClassification(digits.images.clone().requires_grad_(on), *of),
    ):
        runs = [run(FedAvg(0.1, 2), make(on), 2, metrics=("loss",)).x for on in (False, True)]
        assert torch.equal(*runs)


def test_a_generated_corpus_hangs_on_no_default_type():
    plain = sentiment._corpus(20, Key(0).generator())
    torch.set_default_dtype(torch.float64)
    try:
        assert sentiment._corpus(20, Key(0).generator()) == plain
    finally:
        torch.set_default_dtype(torch.float32)


@dataclass(frozen=True)
class Up:
    norm: Any  # (S,)
    dy: Any


@dataclass(frozen=True)
class Noisy(FedAvg):
    """FedAvg whose clients add noise: of one name for all of them, of the client's, or in parts."""

    how: str = "stacked"

    def client(self, problem: Any, clients: torch.Tensor, own: Any, down: Any, key: Key) -> Any:
        up, _ = yield from super().client(problem, clients, own, down, key)
        noise = torch.zeros_like(up.dy)
        if self.how == "stacked":
            noise = torch.randn(up.dy.shape, generator=key.fold("noise").generator(), dtype=up.dy.dtype)
        if self.how == "own":
            keys = [key.fold("noise", int(i)) for i in clients]
            noise = torch.stack([torch.randn(problem.d, generator=k.generator(), dtype=up.dy.dtype) for k in keys])
        dy = up.dy + noise
        return Up(dy.norm(dim=1), (dy, dy) if self.how == "parts" else dy), None


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_what_hangs_on_who_is_stacked_with_a_client_is_said(chunk):
    with pytest.warns(UserWarning, match=r"Noisy: client \d's Up\.norm is another one .* Fix: fold the id"):
        run(Noisy(0.1, 2), QUADRATIC, 2, chunk=chunk)
    run(Noisy(0.1, 2, how="own"), QUADRATIC, 2, chunk=chunk)  # warnings are errors here
    run(Noisy(0.1, 2, how="none"), QUADRATIC, 2, sampled=1, chunk=chunk)


def test_a_problem_that_draws_for_all_clients_at_once_is_said():
    class Loose(Quadratic):
        def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Any:
            g = key.generator()
            return [torch.randn(len(clients), self.d, generator=g, dtype=self.dtype) for _ in range(steps)]

        def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
            return y + xi

    with pytest.warns(UserWarning, match="Loose: client"):
        run(FedAvg(0.1, 2), of_class(Loose), 1, chunk=1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chunk", [None, 1])
def test_an_upload_that_should_be_zero_is_rounding(chunk):
    """F = ||x||^2 / 2 in one step of rate 1 leaves differences of equal numbers, whose rounding hangs on the stack."""

    class Bowl(Quadratic):
        def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
            return y * (1 + 2e-16 * len(y))

    problem = Bowl(torch.eye(6, dtype=torch.float64).repeat(4, 1, 1), torch.zeros(4, 6, dtype=torch.float64))
    x = torch.randn(6, generator=Key(1).generator(), dtype=torch.float64)
    for algorithm in (FedAvg(1.0, 1), SSF(1.0, 1, Spherical(3, "orthonormal")), Scaffold(1.0, 1)):
        run(algorithm, problem, 3, x0=x, chunk=chunk)


def test_a_run_without_a_finite_loss_at_its_end_diverged():
    """It is played to its end all the same. A function of the user's may return what it likes."""

    class Lost(Quadratic):
        def loss(self, x: torch.Tensor) -> float:
            return math.nan if float(x.norm()) < limit else 1.0

    problem, limit = of_class(Lost), math.inf
    x0 = torch.full((problem.d,), 100.0, dtype=problem.dtype)
    found = run(FedAvg(0.1, 2), problem, 6, x0=x0, every=2, metrics=("error", "loss"))
    assert found["round"] == [0, 2, 4, 6]
    assert found.diverged == Divergence(0, None, "loss")
    limit = float(found.x.norm()) * 1.0001
    assert run(FedAvg(0.1, 2), problem, 6, x0=x0, every=2, metrics=("loss",)).diverged == Divergence(6, None, "loss")

    def rank(problem: Any, x: torch.Tensor) -> float:
        return math.nan

    assert run(FedAvg(0.1, 2), problem, 6, metrics=("error", rank)).diverged is None


def test_an_upload_in_parts_is_refused_where_it_is_made():
    with pytest.raises(TypeError, match=r"Up\.dy=.*expected a tensor that leads with S = 4"):
        run(Noisy(0.1, 2, how="parts"), QUADRATIC, 1)


def test_a_diverging_upload_of_one_number_a_client_is_named():
    found = run(Noisy(1e300, 2, how="none"), QUADRATIC, 5).diverged
    assert found is not None
    assert found.quantity == "Up.norm"


def test_a_layout_in_the_servers_state_is_named_as_what_both_sides_know():
    @dataclass(frozen=True)
    class Server:
        x: torch.Tensor
        layout: Any

    class Kept(FedAvg):
        def init(self, problem: Any, x: torch.Tensor, key: Key) -> State:
            return State(Server(x, problem.layout), None)

    with pytest.raises(TypeError, match=r"Known\(problem\.layout\)"):
        run(Kept(0.1, 2), QUADRATIC, 1)


def test_a_process_that_may_start_none_says_so(tmp_path, monkeypatch):
    """As those of multiprocessing.Pool."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(RuntimeError, match="a process that may start others"):
        Runner(tmp_path, workers=1)([Spec(FedAvg(0.1, 2), "quadratic", (("d", 4), ("n", 3)), 2, 0)])


def test_a_history_is_shown_as_a_table():
    """Without the model."""
    said = repr(run(FedAvg(0.1, 2), QUADRATIC, 4, every=2))
    assert said.startswith("History of rounds 0 to 4, 3 records\nround ")
    assert len(said.splitlines()) == 5
    assert "tensor" not in said


class Grads(Quadratic):
    def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        y -= 0.1
        return super().grads(y, xi)


class Sums(fedtheory.FedAvg):
    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> Any:
        server.x.add_(up.dy.mean(0))
        return server, None


class Walks(fedtheory.FedAvg):
    def client(self, problem: Any, clients: torch.Tensor, own: None, down: Any, key: Key) -> Any:
        steps = super().client(problem, clients, own, down, key)
        down.x.sub_(0.1)
        return (yield from steps)


class Flat(fedtheory.Cosine):
    def factor(self, t: int) -> Any:
        return None


@pytest.mark.parametrize(
    ("algorithm", "problem", "options", "error"),
    [
        (FedAvg(0.1, 2), of_class(Grads), {}, r"y in Grads.grads='changed in place'.* Fix: make a new tensor, as y - "),
        (Sums(0.1, 2), QUADRATIC, {}, "server.x in Sums.server='changed in place'"),
        (Walks(0.1, 2), QUADRATIC, {}, "down.x in Walks.client='changed in place'"),
        (FedAvg(0.1, 2), QUADRATIC, {"schedule": Flat(3)}, "Flat.factor=None: .* Fix: return the round's share of lr"),
        (FedAvg(0.1, 2), QUADRATIC, {"stop": lambda h: torch.ones(2) > 0}, r"stop \(<lambda>\)=.* Fix: add .all"),
    ],
)
def test_what_would_spoil_a_run_without_a_word_is_refused(algorithm, problem, options, error):
    """With one participant the model is the tensor that a client starts from."""
    before = problem.b.clone()
    with pytest.raises((TypeError, ValueError), match=error):
        run(algorithm, problem, 3, sampled=1, **options)
    assert torch.equal(problem.b, before)


def test_a_list_of_ranks_is_told_to_be_a_tuple():
    with pytest.raises(TypeError, match=r"rank=\[3, 1\].* Fix: pass a tuple"):
        Spherical([3, 1])


@dataclass(frozen=True, slots=True)
class Slotted:
    x: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Named:
    dy: torch.Tensor


@dataclass(frozen=True)
class Kept:
    h: torch.Tensor


@dataclass(frozen=True)
class InPlace(fedtheory.Algorithm):
    """Controls that `close` changes in place; messages with slots and of keywords; a field that is called algorithm."""

    lr: float = 0.1
    local_steps: int = 3
    algorithm: object = None
    name = "in place"

    def init(self, problem: Any, x: torch.Tensor, key: Key) -> State:
        return State(Slotted(x), Kept(x.new_zeros(problem.kept, len(x))))

    def broadcast(self, server: Any, key: Key) -> Any:
        return Slotted(server.x)

    def client(self, problem: Any, clients: torch.Tensor, own: Any, down: Any, key: Key) -> Any:
        y = down.x.expand(len(clients), -1)
        for xi in problem.draw(clients, self.local_steps, key.fold("b")):
            y = y - self.lr * (problem.grads(y, xi) + own.h)
            yield y
        return Named(dy=y - down.x), own

    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> Any:
        return Slotted(server.x + up.dy.mean(0)), Kept(up.dy.mean(0, keepdim=True))

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        own.h[clients] += 0.1 * reply.h
        return own


@pytest.mark.parametrize("options", [{"blocks": 1}, {"blocks": 4}, {"chunk": 2}], ids=str)
def test_private_rows_changed_in_place_stay_changed(options):
    """In blocks too, whatever a method's fields are called and its messages are made of."""
    for algorithm in (InPlace(), InPlace(algorithm=FedAvg(0.1, 5))):
        one, other = (run(algorithm, QUADRATIC, 3, **some) for some in ({}, options))
        torch.testing.assert_close(one.state.own.h, other.state.own.h)
        torch.testing.assert_close(one.x, other.x)


class Cached(Quadratic):
    @cached_property
    def twice(self) -> torch.Tensor:
        return 2 * self.H

    def loss(self, x: torch.Tensor, scale: float = 1.0) -> float:
        return scale * super().loss(x) + 0 * float(self.twice.sum())


def test_a_property_that_is_cached_makes_no_other_problem(tmp_path):
    problem = of_class(Cached)
    run(FedAvg(0.1, 5), problem, 2, metrics=("loss",), checkpoint=tmp_path)
    assert run(FedAvg(0.1, 5), problem, 4, metrics=("loss",), checkpoint=tmp_path)["round"][-1] == 4
    assert problem.loss(problem.start(), scale=2.0) == 2 * problem.loss(problem.start())


def test_a_field_may_have_a_type_that_is_known_to_type_checkers_only():
    @dataclass(frozen=True)
    class Mine(FedAvg):
        more: "Unknown | None" = None  # noqa: F821

    assert Mine(0.1, 5).more is None
    with pytest.raises(TypeError, match=r"lr='0\.1'"):
        Mine("0.1", 5)
