"""FedZO, MeZO, BAFFLE: their texts written down a second time, their laws, their bytes."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from cases import TWO_LAYERS, last, logistic, quadratic, regression, relative, rounds, start

from fedtheory import BAFFLE, FedAvg, FedZO, ImageClassification, Key, Layout, MeZO, Pooled, Quadratic, play_round, run
from fedtheory.algorithms import fedzo
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.engine import drain
from fedtheory.core.loop import sample_clients
from fedtheory.core.message import Known, Seed, cost
from fedtheory.maps.directions import Direction, Field, slopes, walk
from fedtheory.problems.models.networks import network
from tests.test_rounds import refused

T, SEED, MU = 12, 11, 0.3
PROBLEMS = {
    "regression": lambda: regression(),
    "quadratic": lambda: quadratic(sigma=0.3),
    "two layers": lambda: quadratic(layout=TWO_LAYERS),
}


def images(n=5, **options):
    g = Key(0).generator()
    x, y = torch.rand(40, 1, 8, 8, generator=g), torch.arange(40) % 10
    parts = [part.clone() for part in torch.arange(40).chunk(n)]
    return ImageClassification(x, y, parts, network("mlp", (1, 8, 8), 10), Key(1), batch=4, **options)


# The texts, in NumPy, one client and one vector at a time; only the draws are shared.


def loss(problem, i, sample, x):
    """f_i(x; xi)."""
    if isinstance(problem, Quadratic):
        gap = x - problem.b[i].numpy()
        return 0.5 * gap @ problem.H[i].numpy() @ gap + (0 if sample.noise is None else sample.noise[0].numpy() @ x)
    A, B, X = sample.A[0].numpy(), sample.Bt[0].numpy().T, x.reshape(problem.layout.layers[0][1:], order="F")
    return 0.5 * np.sum((A @ X - B) ** 2) / len(A) + 0.5 * problem.lam * np.sum(x**2)


def gauss(problem, key):
    return torch.cat([z for _, z in Direction(key, problem.layout, "gaussian", torch.float64, problem.device)]).numpy()


def samples_of(problem, i, steps, key):
    return problem.draw(torch.tensor([i]), steps, key.fold("xi"))


def fedzo_text(problem, a, S, root, x):
    """Fang et al.: H steps along (d / mu') (f(x + mu' v) - f(x)) v, v on the unit sphere; then the mean."""
    d = len(x)
    for t in range(T):
        key, ends = root.fold("round", t), []
        for i in sample_clients(problem.n, S, key.fold("clients")).tolist():
            w = x
            for k, sample in enumerate(samples_of(problem, i, a.local_steps, key)):
                g = 0 * x
                for p in range(a.perturbations):
                    v = gauss(problem, key.fold("z", i, k, p))
                    v, mu = v / np.linalg.norm(v), a.smoothing * math.sqrt(d)
                    g = g + d / mu * (loss(problem, i, sample, w + mu * v) - loss(problem, i, sample, w)) * v
                w = w - a.lr * g / a.perturbations
            ends.append(w)
        x = sum(ends) / S
        yield x


def mezo_text(problem, a, S, root, x):
    """Malladi et al., Algorithm 1: perturb in place by +epsilon, -2 epsilon, +epsilon; n directions of a step."""
    for t in range(T):
        key, theta = root.fold("round", t), x.copy()
        for k, sample in enumerate(samples_of(problem, 0, a.local_steps, key)):
            grads = []
            for p in range(a.perturbations):
                z = gauss(problem, key.fold("z", 0, k, p))
                theta += a.smoothing * z
                plus = loss(problem, 0, sample, theta)
                theta -= 2 * a.smoothing * z
                minus = loss(problem, 0, sample, theta)
                theta += a.smoothing * z
                grads.append((plus - minus) / (2 * a.smoothing))
            for p in range(a.perturbations):
                theta -= a.lr / a.perturbations * grads[p] * gauss(problem, key.fold("z", 0, k, p))
        x = theta
        yield x


def baffle_text(problem, a, S, root, x):
    """Feng et al.: g = (1/P) sum_p delta_p Delta L_p / (2 sigma^2), Delta L the clients' weighted mean."""
    for t in range(T):
        key, total, share = root.fold("round", t), np.zeros(a.perturbations), 0.0
        deltas = [a.smoothing * gauss(problem, key.fold("z", p)) for p in range(a.perturbations)]
        for i in sample_clients(problem.n, S, key.fold("clients")).tolist():
            (sample,), weight = samples_of(problem, i, 1, key), float(problem.weights[i]) if a.weighted else 1.0
            base = loss(problem, i, sample, x)
            for p, delta in enumerate(deltas):
                ahead = loss(problem, i, sample, x + delta)
                back = loss(problem, i, sample, x - delta)
                total[p] += weight * (ahead - back if a.scalar == "central" else 2 * (ahead - base))
            share += weight
        g = sum(delta * total[p] / share for p, delta in enumerate(deltas)) / (2 * a.smoothing**2)
        x = x - a.lr * g / a.perturbations
        yield x


def compare(text, algorithm, problem, S):
    x0 = start(problem)
    theirs = text(problem, algorithm, S, Key(SEED), x0.numpy())
    for x, (_, state) in zip(theirs, rounds(algorithm, problem, T, sampled=S, seed=SEED, x0=x0), strict=True):
        assert np.linalg.norm(state.server.x.numpy() - x) <= 1e-10 * np.linalg.norm(x)
    assert relative(state.server.x, x0) > 0.05, "the trajectory should go somewhere"


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("S", [5, 3])
def test_fedzo(problem, S):
    compare(fedzo_text, FedZO(0.05, 3, 4, MU), PROBLEMS[problem](), S)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("n", [1, 3])
def test_mezo(problem, n):
    one = {"regression": lambda: regression(1), "quadratic": lambda: quadratic(1, sigma=0.3)}
    compare(mezo_text, MeZO(0.02, 3, n, MU), one.get(problem, lambda: quadratic(1, layout=TWO_LAYERS))(), 1)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("scalar", ["central", "forward"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("S", [5, 3])
def test_baffle(problem, scalar, weighted, S):
    problem = PROBLEMS[problem]()
    problem.weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64) / 15
    compare(baffle_text, BAFFLE(0.05, 4, MU, scalar, weighted), problem, S)


# Laws


@dataclass(frozen=True)
class Axis(Field):
    """z = +- sqrt(d) e_j: uniform over j and the sign it has the moments 0, I and 0 of the sphere and of N(0, I)."""

    layout: Layout
    entry: int
    sign: float

    def blocks(self, j):
        where = self.layout.slices[j]
        z = torch.zeros(where.stop - where.start, dtype=torch.float64)
        if where.start <= self.entry < where.stop:
            z[self.entry - where.start] = self.sign * math.sqrt(self.layout.size)
        yield where, z

    def losses(self, problem, y, mu, xi):
        moved = y.clone()
        walk(moved, [self], torch.full((len(y), 1), mu, dtype=y.dtype))
        return problem.losses(moved, xi)


def axes(layout):
    return [Axis(layout, entry, sign) for entry in range(layout.size) for sign in (1.0, -1.0)]


@pytest.mark.parametrize("central", [False, True])
@pytest.mark.parametrize("mu", [1e-2, 3.0])
@pytest.mark.parametrize("problem", ["quadratic", "two layers"])
def test_the_estimator_is_unbiased_for_the_smoothed_loss(central, mu, problem):
    """On a quadratic the smoothed loss is F_i plus a constant: the mean of g z over the moments is grad F_i, any mu."""
    problem = PROBLEMS[problem]()
    y, xi, z = start(problem).expand(problem.n, -1), problem.full(problem.clients), axes(problem.layout)
    mean = torch.zeros_like(y)
    walk(mean, z, slopes(problem, y, z, mu, xi, central=central) / len(z))
    assert relative(mean, problem.grads(y, xi)) < 1e-11


@pytest.mark.parametrize("scalar", ["forward", "central"])
@pytest.mark.parametrize("problem", ["quadratic", "two layers"])
def test_fedzo_over_all_directions_is_fedavg(scalar, problem, monkeypatch):
    """P = 2 d and every +- sqrt(d) e_j once: all local steps are exact, whatever mu is."""
    problem = PROBLEMS[problem]()
    z = axes(problem.layout)
    monkeypatch.setattr(fedzo, "_direction", lambda kind, problem, key: z[key.path[-1]])
    algorithm = FedZO(0.05, 3, len(z), 2.0, scalar)
    for (_, a), (_, b) in zip(
        rounds(algorithm, problem, 8, sampled=3), rounds(FedAvg(0.05, 3), problem, 8, sampled=3), strict=True
    ):
        assert relative(a.server.x, b.server.x) < 1e-11


@pytest.mark.parametrize("direction", ["sphere", "gaussian"])
def test_fedzo_is_unbiased_within_its_error_bar(direction):
    """The drawn directions, too: one round of K = 1, P = 4000 against -eta grad F_i, five standard errors."""
    problem, P, mu = quadratic(), 4000, 0.5
    algorithm, x, d = FedZO(1.0, 1, P, mu, direction=direction), start(problem), problem.d
    _, up, _ = play_round(algorithm, problem, algorithm.init(problem, x, Key(0)), problem.clients, Key(5))
    exact = problem.grads(x.expand(5, -1), problem.full(problem.clients))
    second = mu**2 / 4 * (d + 2) * (d + 4)  # E (z^T H z mu / 2)^2 z_j^2 <= L^2 mu^2 / 4 E ||z||^4 z_j^2, L = 1
    bar = 5 * torch.sqrt((2 * exact.square().sum(1) + second) / P)[:, None]
    assert ((up.dy + exact).abs() < bar).all()
    assert relative(up.dy, -exact) > 1e-3, "an estimate, no gradient"


@pytest.mark.parametrize("problem", [lambda: quadratic(1, sigma=0.3), lambda: regression(1), lambda: logistic(1)])
@pytest.mark.parametrize("K", [1, 3])
def test_fedzo_with_one_client_is_mezo(problem, K):
    one = last(FedZO(0.02, K, 3, MU, "central", "gaussian"), problem(), 6, seed=3)
    two = last(MeZO(0.02, K, 3, MU), problem(), 6, seed=3)
    assert relative(one.server.x, two.server.x) < 1e-13
    forward = last(FedZO(0.02, K, 3, MU, "forward", "gaussian"), problem(), 6, seed=3)
    assert relative(forward.server.x, two.server.x) > 1e-4


def decomfl_round(scalar):
    """DeComFL's first round of K = 1 on five quadratics, its seeds and its directions."""
    problem, algorithm = quadratic(), DeComFLReading(0.05, 1, 4, MU, scalar=scalar)
    state, key = algorithm.init(problem, start(problem), Key(0)), Key(0).fold("round", 0)
    seeds = algorithm.broadcast(state.server, key).seeds[0]
    z = algorithm.directions(problem.layout, seeds, state.server.x)
    return problem, z, play_round(algorithm, problem, state, problem.clients, key)[0].server.x


@pytest.mark.parametrize("scalar", ["forward", "central"])
def test_baffle_is_the_first_round_of_decomfl(scalar):
    """The same directions and K = 1: the same scalars up and the same step; only the download differs."""
    problem, z, wanted = decomfl_round(scalar)
    algorithm, key = BAFFLE(0.05, 4, MU, scalar), Key(0).fold("round", 0)
    server = algorithm.init(problem, start(problem), Key(0)).server
    down = replace(algorithm.broadcast(server, key), z=Known(z))
    up, _ = drain(algorithm.client(problem, problem.clients, None, down, key))
    x = algorithm.server(server, down, up, problem.clients, key)[0].x
    assert relative(x, wanted) < 1e-14


def test_mezo_on_pooled_data_is_decomfl_with_everybody(monkeypatch):
    """K = 1: the mean of the clients' scalars is the scalar of their pooled loss."""
    problem, z, wanted = decomfl_round("central")
    monkeypatch.setattr(fedzo, "_direction", lambda kind, problem, key: z[key.path[-1]])
    assert relative(last(MeZO(0.05, 1, 4, MU), Pooled(problem), 1).server.x, wanted) < 1e-14


def test_what_crosses():
    """d = 12 in float64. FedZO: the model both ways. BAFFLE: model and one seed down, P scalars up. MeZO: nothing."""
    for algorithm, down, up in ((FedZO(0.05, 3), 96, 96), (BAFFLE(0.05, 7), 96 + 8, 7 * 8)):
        history = run(algorithm, quadratic(), 4, sampled=3)
        assert (history["down_bytes"][-1], history["up_bytes"][-1]) == (4 * 3 * down, 4 * 3 * up)
    history = run(MeZO(0.05, 3), quadratic(1), 4)
    assert (history["down_bytes"][-1], history["up_bytes"][-1]) == (0, 0)
    assert not torch.equal(history.x, torch.zeros(12, dtype=torch.float64))


def test_a_client_makes_baffles_directions_from_the_seed():
    problem = quadratic()
    algorithm = BAFFLE(0.05, 7)
    sent = algorithm.broadcast(algorithm.init(problem, start(problem), Key(0)).server, Key(4)).z
    assert cost(sent).scalars == 1
    again = Seed(sent.key, sent.make, sent.dense).value
    z, other = (torch.stack([torch.cat([part for _, part in one]) for one in some]) for some in (sent.value, again))
    assert torch.equal(z, other)
    assert len(set(z.flatten().tolist())) == 7 * 12


# Pooled problems


@pytest.mark.parametrize("problem", [quadratic, regression, logistic, images])
def test_a_pooled_problem_is_the_global_loss(problem):
    whole = problem()
    pooled, x = Pooled(whole), 0.3 * start(whole)
    xi = pooled.full(pooled.clients)
    assert pooled.loss(x) == whole.loss(x)
    assert abs(float(pooled.losses(x[None], xi)[0]) - whole.loss(x)) < 1e-5
    assert relative(pooled.grad(x), whole.grad(x)) < 1e-5
    shifted = pooled.losses_at(x[None], lambda j, layer: layer + 0.1, xi)
    assert abs(float(shifted[0]) - whole.loss(x + 0.1)) < 1e-5
    assert pooled.fingerprint() != whole.fingerprint()


def test_clients_of_unequal_steps_are_not_pooled():
    """The gradient of those that are done would be left out."""
    refused(lambda: Pooled(images(3, epochs=1)), "epochs=1", "epochs=None")
    assert Pooled(images(epochs=1)).steps == images(epochs=1).steps == 2
    refused(lambda: Pooled(quadratic()).steps, "counts epochs", "local_steps")


def test_fedavg_with_one_step_pools_its_clients():
    whole = quadratic(sigma=0.3)
    one, two = (last(FedAvg(0.05, 1), problem, 6).server.x for problem in (whole, Pooled(whole)))
    assert relative(one, two) < 1e-14


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [(FedZO(0.02, 2, 20), images), (BAFFLE(0.02, 20), images), (MeZO(0.02, 2, 20), lambda: Pooled(images()))],
)
@pytest.mark.parametrize("stacked", [True, False])
def test_networks(algorithm, problem, stacked):
    problem = problem()
    getattr(problem, "whole", problem).stacked = stacked
    history = run(algorithm, problem, 2, every=2, metrics=("loss",))
    assert history["loss"][-1] < history["loss"][0]
    again = run(algorithm, problem, 2, every=2, metrics=("loss",), chunk=2)
    assert relative(again.x, history.x) < 1e-5


# Refused


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FedZO(0.0), "lr=0.0"),
        (lambda: FedZO(0.1, 0), "local_steps=0"),
        (lambda: FedZO(0.1, 1, 0), "perturbations=0"),
        (lambda: FedZO(0.1, smoothing=0.0), "smoothing=0.0"),
        (lambda: FedZO(0.1, scalar="projection"), "scalar='projection'"),
        (lambda: FedZO(0.1, direction="ball"), "direction='ball'"),
        (lambda: MeZO(math.nan), "lr=nan"),
        (lambda: MeZO(0.1, 1.0), "local_steps=1.0"),
        (lambda: MeZO(0.1, 1, True), "perturbations=True"),
        (lambda: MeZO(0.1, smoothing=-1.0), "smoothing=-1.0"),
        (lambda: run(MeZO(0.1), quadratic(), 1), "problem.n=5"),
        (lambda: BAFFLE(-1.0), "lr=-1.0"),
        (lambda: BAFFLE(0.1, 0), "perturbations=0"),
        (lambda: BAFFLE(0.1, smoothing=math.inf), "smoothing=inf"),
        (lambda: BAFFLE(0.1, scalar="both"), "scalar='both'"),
        (lambda: BAFFLE(0.1, weighted=1), "weighted=1"),
        (lambda: Pooled(3), "whole=3"),
    ],
)
def test_bad_input(make, named):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert named in str(caught.value)
    assert "expected" in str(caught.value)
    assert "Fix:" in str(caught.value)


def test_a_diverging_run_says_where():
    """MeZO uploads nothing: the model itself is looked at."""
    diverged = run(MeZO(0.1, smoothing=1e200), quadratic(1), 2).diverged
    assert diverged is not None
    assert (diverged.round, diverged.quantity) == (0, "Server.x")
