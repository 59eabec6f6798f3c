"""DeComFL: its boxes written down a second time, its laws, the rebuild from scalars, its bytes, its memory."""

import math
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from cases import TWO_LAYERS, ZEROTH, K, logistic, quadratic, regression, relative, rounds, start
from each import each
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.weak import WeakIdKeyDictionary

from fedtheory import DeComFL, Key, MatrixRegression, Quadratic, Steps, play_round, run
from fedtheory.algorithms.decomfl import Model
from fedtheory.algorithms.readings.decomfl import DeComFLReading, value
from fedtheory.core.engine import drain
from fedtheory.core.loop import sample_clients
from fedtheory.core.message import Cost, Seed, cost
from fedtheory.maps import directions
from fedtheory.maps.directions import Direction
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.models.networks import network

PROBLEMS = {
    "quadratic": lambda: quadratic(sigma=0.3),
    "two layers": lambda: quadratic(layout=TWO_LAYERS),
    "regression": lambda: regression(),
}
SGD = Quadratic(torch.eye(2, dtype=torch.float64)[None], torch.zeros(1, 2, dtype=torch.float64))


# The boxes, in NumPy, one client and one vector at a time; only the draws are shared.


def loss(problem, i, sample, x):
    """f_i(x; xi)."""
    if isinstance(problem, Quadratic):
        gap = x - problem.b[i].numpy()
        return 0.5 * gap @ problem.H[i].numpy() @ gap + (0 if sample.noise is None else sample.noise[0].numpy() @ x)
    assert isinstance(problem, MatrixRegression)
    X = x.reshape(problem.layout.layers[0].cols, -1).T
    residual = sample.A[0].numpy() @ X - sample.Bt[0].numpy().T
    return (residual**2).sum() / (2 * len(residual)) + problem.lam / 2 * (X**2).sum()


def normal(problem, seed, secret=None):
    """z: a stream per layer."""
    key = Key(seed) if secret is None else Key(seed).fold("secret", secret)
    draws = enumerate(problem.layout.layers)
    return np.concatenate([torch.randn(a.rows * a.cols, generator=key.fold(j).generator()).numpy() for j, a in draws])


@pytest.fixture(autouse=True)
def double():
    """`torch.randn` above draws in the precision of the problems."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def algorithms_1_and_2(problem, eta, mu, K, T, m, x_0):
    """P = 1, forward differences, local models that lag; yields x_r as the server's line 12 makes it."""
    N, root = problem.n, Key(0)
    t, s, g = [0] * N, {}, {}  # 2
    local, x = [x_0.copy() for _ in range(N)], x_0
    for r in range(T):  # 4
        key = root.fold("round", r)
        C = sample_clients(N, m, key.fold("clients")).tolist()  # 5
        s[r] = torch.randint(2**63 - 1, (K, 1), generator=key.fold("z").generator())[:, 0].tolist()
        sent = []
        for i in C:  # 6
            y = local[i]
            for r_ in range(t[i], r):  # Algorithm 2, 3
                for k in range(K):
                    y = y - eta * g[r_][k] * normal(problem, s[r_][k])  # 6
            local[i], g_i = y, []
            for k, sample in enumerate(problem.draw(torch.tensor([i]), K, key.fold("xi"))):  # 12
                z = normal(problem, s[r][k])  # 13
                g_i.append((loss(problem, i, sample, y + mu * z) - loss(problem, i, sample, y)) / mu)  # 14
                y = y - eta * g_i[k] * z  # 15
            sent.append(g_i)  # 17-18: the local model stays local[i]
            t[i] = r  # 11
        g[r] = [sum(g_i[k] for g_i in sent) / len(C) for k in range(K)]  # 10
        for k in range(K):
            x = x - eta * g[r][k] * normal(problem, s[r][k])  # 12
        yield x


def algorithms_3_and_4(problem, a, T, m, x_0):
    """P > 1, with what the paper adds in words: (7), (8)-(9), the sphere, central differences, seed shifting."""
    a = DeComFLReading(**vars(a)) if type(a) is DeComFL else a
    N, root, mu, K = problem.n, Key(0), a.smoothing, a.local_steps
    t, history = [0] * N, []
    local = [(x_0.copy(), 0 * x_0) for _ in range(N)]
    x, momentum = x_0, 0 * x_0

    def z_of(seed):
        z = normal(problem, seed, a.secret)
        return z if a.direction == "gaussian" else math.sqrt(len(z)) * z / np.linalg.norm(z)

    def update(x, momentum, g, z, eta):
        Delta = sum(g_p * z_p for g_p, z_p in zip(g, z)) / (len(z) if a.average else 1)
        momentum = a.momentum * momentum + (1 - a.momentum if a.dampened else 1) * Delta
        return x - eta * momentum, momentum

    for r in range(T):
        key = root.fold("round", r)
        eta, P = [(a.lr, a.perturbations), *[(e, p) for first, e, p in a.schedule if first <= r]][-1]
        seeds = torch.randint(2**63 - 1, (K, P), generator=key.fold("z").generator()).tolist()
        Z, sent = [[z_of(seed) for seed in row] for row in seeds], []
        C = sample_clients(N, m, key.fold("clients")).tolist()
        for i in C:
            for Z_, g_, eta_ in history[t[i] :]:
                for k in range(K):
                    local[i] = update(*local[i], g_[k], Z_[k], eta_)  # 8
            t[i], (y, v), g_i = r, local[i], []
            for k, sample in enumerate(problem.draw(torch.tensor([i]), K, key.fold("xi"))):
                f = lambda x, i=i, sample=sample: loss(problem, i, sample, x)
                if a.scalar == "central":
                    g_i.append([(f(y + mu * z) - f(y - mu * z)) / (2 * mu) for z in Z[k]])
                else:
                    g_i.append([(f(y + mu * z) - f(y)) / mu for z in Z[k]])  # 18
                y, v = update(y, v, g_i[k], Z[k], eta)  # 19-21
            sent.append(g_i)
        g = np.mean(sent, axis=0)  # 10
        history.append((Z, g, eta))
        for k in range(K):
            x, momentum = update(x, momentum, g[k], Z[k], eta)  # 12
        yield x


def compare(theirs, algorithm, problem, T, m):
    for r, (x, (_, state)) in enumerate(zip(theirs, rounds(algorithm, problem, T, sampled=m), strict=True)):
        gap = np.linalg.norm(state.server.x.numpy() - x) / np.linalg.norm(x)
        assert gap <= 1e-10, f"round {r}: the models differ by {gap:.1e}"
    assert relative(state.server.x, start(problem)) > 0.1, "the trajectory should go somewhere"


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("m", [5, 2])
def test_algorithms_1_and_2(problem, steps, m):
    problem = PROBLEMS[problem]()
    theirs = algorithms_1_and_2(problem, 0.02, 0.1, steps, 20, m, start(problem).numpy())
    compare(theirs, DeComFL(0.02, steps, 1, 0.1), problem, 20, m)


VARIANTS = {
    "printed": DeComFL(0.02, 3, 4, 0.1),
    "central": DeComFLReading(0.02, 1, 4, 0.1, scalar="central"),
    "sum (7)": DeComFLReading(0.01, 2, 3, 0.1, average=False),
    "momentum (8)-(9)": DeComFLReading(0.05, 3, 3, 0.1, 0.5, scalar="central"),
    "momentum, public code": DeComFLReading(0.02, 2, 3, 0.1, 0.5, scalar="central", dampened=False),
    "sphere": DeComFLReading(0.02, 2, 3, 0.1, direction="sphere"),
    "secret": DeComFLReading(0.02, 2, 3, 0.1, secret=41),
    "schedule": DeComFLReading(0.01, 2, 2, 0.1, 0.3, scalar="central", schedule=((4, 0.03, 5), (9, 0.02, 1))),
    "derived": DeComFLReading(0.02, 2, 3, 0.1, seeds="derived"),
    "momentum, forward": DeComFL(0.05, 2, 3, 0.1, 0.5),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", VARIANTS)
def test_algorithms_3_and_4(problem, name):
    problem = PROBLEMS[problem]()
    theirs = algorithms_3_and_4(problem, VARIANTS[name], 15, 3, start(problem).numpy())
    compare(theirs, VARIANTS[name], problem, 15, 3)


# Laws


def scalars(algorithm, problem, y, seed=0, xi=None):
    """g (S, P) at y, and z (P, d)."""
    seeds = torch.randint(2**40, (algorithm.perturbations,), generator=Key(seed).generator())
    z = algorithm.directions(problem.layout, seeds, y)
    g = algorithm.measure(problem, y, z, problem.full(problem.clients) if xi is None else xi)
    return g, torch.stack([torch.cat([part for _, part in one]) for one in z])


@pytest.mark.parametrize("layout", ["quadratic", "two layers"])
@pytest.mark.parametrize("direction", ["gaussian", "sphere"])
def test_central_differences_of_a_quadratic_are_exact(layout, direction):
    """f(x + mu z) - f(x - mu z) = 2 mu <grad f(x), z> for any mu; a forward difference is off by (mu/2) z^T H z."""
    problem = PROBLEMS[layout]()
    y = start(problem).expand(problem.n, -1)
    exact, z = scalars(DeComFLReading(1.0, 1, 6, scalar="projection", direction=direction), problem, y)
    torch.testing.assert_close(exact, problem.grads(y, problem.full(problem.clients)) @ z.T, rtol=1e-12, atol=1e-12)
    for mu in (3.0, 0.1):
        central, _ = scalars(DeComFLReading(1.0, 1, 6, mu, scalar="central", direction=direction), problem, y)
        forward, _ = scalars(DeComFLReading(1.0, 1, 6, mu, scalar="forward", direction=direction), problem, y)
        torch.testing.assert_close(central, exact, rtol=1e-11, atol=1e-11)
        curvature = torch.einsum("pd,nde,pe->np", z, problem.H, z)
        torch.testing.assert_close(forward, exact + mu / 2 * curvature, rtol=1e-11, atol=1e-11)
    if direction == "sphere":
        torch.testing.assert_close(z.norm(dim=1), torch.full((6,), math.sqrt(problem.d)))


def test_projection_is_the_limit_of_both_differences():
    """mu -> 0 on logistic losses: errors fall like mu (forward) and mu^2 (central)."""
    problem = logistic()
    y = start(problem).expand(problem.n, -1)
    exact, _ = scalars(DeComFLReading(1.0, 1, 5, scalar="projection"), problem, y)
    for scalar, order in (("forward", 1), ("central", 2)):
        at = partial(DeComFLReading, 1.0, 1, 5, scalar=scalar)
        errors = [relative(scalars(at(smoothing=mu), problem, y)[0], exact) for mu in (1e-2, 1e-3)]
        assert errors[1] < 1e-2
        assert math.log10(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("direction", ["gaussian", "sphere"])
def test_the_mean_of_g_z_is_the_gradient(direction):
    """E[<grad, z> z] = grad F for both distributions; 4,000 draws, each coordinate within 4.5 standard errors."""
    problem = quadratic(layout=TWO_LAYERS)
    y = start(problem)[None]
    algorithm = DeComFLReading(1.0, 1, 4_000, 0.1, scalar="central", direction=direction)
    g, z = scalars(algorithm, problem, y, xi=problem.full(torch.tensor([0])))
    samples = g[0][:, None] * z
    error = (samples.mean(0) - problem.grads(y, problem.full(torch.tensor([0])))[0]).abs()
    assert bool((error < 4.5 * samples.std(0) / len(samples) ** 0.5).all())
    moment = (z.T @ z) / len(z)
    assert float((moment - torch.eye(problem.d)).abs().max()) < 4.5 * math.sqrt(2 / len(z))


def test_one_client_is_zo_sgd_in_mezos_form():
    """N = 1, K = 1: perturb in place, evaluate, perturb back twice, evaluate, restore; x <- x - eta g z."""
    problem, eta, mu = regression(1), 0.02, 0.1
    x = start(problem)
    for t, (_, state) in enumerate(rounds(DeComFLReading(eta, 1, 1, mu, scalar="central"), problem, 20)):
        key = Key(0).fold("round", t)
        (xi,) = problem.draw(torch.tensor([0]), 1, key.fold("xi"))
        seed = int(torch.randint(2**63 - 1, (1, 1), generator=key.fold("z").generator()))
        z = torch.from_numpy(normal(problem, seed))
        x = x + mu * z
        plus = problem.losses(x[None], xi)
        x = x - 2 * mu * z
        minus = problem.losses(x[None], xi)
        x = x + mu * z
        x = x - eta * (plus - minus) / (2 * mu) * z
        assert relative(state.server.x, x) < 1e-12


@pytest.mark.parametrize("name", ZEROTH)
def test_averaging_scalars_is_averaging_models(name):
    """(4a)-(4b): x_{r+1} = (1/S) sum_i x_i^{K+1}; and scalars are measured at the iterates that `client` yields."""
    algorithm, problem = ZEROTH[name], regression()
    state = algorithm.init(problem, start(problem), Key(0))
    for t, clients in enumerate(torch.tensor([[0, 2, 3], [1, 2, 4], [0, 3, 4]])):
        key = Key(0).fold("round", t)
        down = algorithm.broadcast(state.server, key)
        seeds = value(down.seeds)
        points = list(algorithm.client(problem, clients, None, down, key))
        up, _ = drain(algorithm.client(problem, clients, None, down, key))
        xi = problem.draw(clients, K, key.fold("xi"))
        ends = state.server.x.expand(3, -1).clone()
        m = None if state.server.m is None else state.server.m.expand(3, -1).clone()
        for k in range(K):
            torch.testing.assert_close(points[k], ends, rtol=1e-12, atol=1e-12)
            z = algorithm.directions(problem.layout, seeds[k], ends)
            torch.testing.assert_close(up.g[:, k], algorithm.measure(problem, ends, z, xi[k]), rtol=1e-11, atol=1e-11)
            algorithm.move(Model(ends, m), z, up.g[:, k], algorithm.lr)
        state = play_round(algorithm, problem, state, clients, key)[0]
        assert relative(ends.mean(0), state.server.x) < 1e-12


@pytest.mark.parametrize("name", [name for name in ZEROTH if name != "DeComFL projection"])
def test_a_diverging_run_comes_to_rest(name):
    """Differences do not overflow: once x + mu z rounds to x all scalars are 0, at ||x|| > mu / eps, far from x*."""
    algorithm, problem = replace(ZEROTH[name], lr=30.0), quadratic()
    history = run(algorithm, problem, 100, x0=start(problem), every=50)
    assert history.diverged is None
    assert history["error"][-1] == history["error"][-2] > 1e10
    assert float(history.x.abs().max()) > algorithm.smoothing / torch.finfo(torch.float64).eps


def test_each_and_derived_seeds_are_the_same_run():
    kinds = (DeComFLReading(0.02, 2, 3, seeds=seeds) for seeds in ("each", "derived"))
    one, two = (run(algorithm, regression(), 10, sampled=3) for algorithm in kinds)
    assert torch.equal(one.x, two.x)
    assert one["up_bytes"] == two["up_bytes"]
    assert one["down_bytes"][-1] > two["down_bytes"][-1]


def test_another_rate_is_that_of_every_phase():
    """So that `run(schedule=...)` acts on later phases, too: a tenth from the start on is a tenth of each."""
    scheduled = DeComFLReading(0.02, 2, 3, schedule=((2, 0.05, 4),))
    slower, _ = scheduled.at_rate(0.002, None)
    assert [slower.at(r) for r in (0, 2)] == [(0.002, 3), (pytest.approx(0.005), 4)]
    fast, slow = (run(a, quadratic(), 4, schedule=s).x for a, s in ((scheduled, Steps(2, 0.1)), (scheduled, None)))
    assert not torch.equal(fast, slow)


def test_a_constant_schedule_is_no_schedule():
    """The same model; the rate crosses each round and with each missed step."""
    plain, scheduled = DeComFL(0.02, 2, 3), DeComFLReading(0.02, 2, 3, schedule=((3, 0.02, 3),))
    one, two = (run(algorithm, regression(), 10, sampled=2) for algorithm in (plain, scheduled))
    assert torch.equal(one.x, two.x)
    assert two["down_bytes"][-1] > one["down_bytes"][-1]


def test_the_server_cannot_make_the_directions_of_a_secret():
    """A.3: with the private shift the history alone leads elsewhere; with it, to the clients' model."""
    problem, secret = quadratic(), DeComFLReading(0.05, 2, 3, 0.1, secret=5)
    state, steps = secret.init(problem, start(problem), Key(0)), []
    for r in range(10):
        key = Key(0).fold("round", r)
        down = secret.broadcast(state.server, key)
        assert not down.model.pull
        state, up, _ = play_round(secret, problem, state, problem.clients, key)
        steps.append(secret.step(down, up.g.mean(0)))
    for reader, same in ((secret, True), (replace(secret, secret=None), False), (replace(secret, secret=6), False)):
        model = Model(start(problem).clone(), None)
        for step in steps:
            reader.rebuild(problem.layout, model, step)
        assert torch.equal(model.x, state.server.x) == same
        assert same or relative(model.x, state.server.x) > 0.1


def test_layers_blocks_and_keys_are_streams_of_their_own(monkeypatch):
    """z does not repeat itself between layers, seeds, blocks; its pieces are the whole, and adding uses the same z."""
    monkeypatch.setattr(directions, "BLOCK", 32)
    problem = quadratic(2, layout=replace(TWO_LAYERS, layers=(TWO_LAYERS.layers[0]._replace(rows=50),) * 1))
    one, two = (Direction(Key(seed), problem.layout, "gaussian", torch.float64, problem.device) for seed in (1, 2))
    z, other = (torch.cat([part for _, part in direction]) for direction in (one, two))
    assert z.shape == (100,)
    assert len(set(z.tolist()) | set(other.tolist())) == 200
    assert torch.equal(torch.cat([part for _, part in one]), z), "made twice, the same"
    torch.testing.assert_close(one.add(0, torch.ones(3, 100), 0.5), (1 + 0.5 * z).expand(3, -1))


# The rebuild


def random_algorithm(chance):
    changes = sorted(chance.sample(range(1, 20), chance.randrange(3)))
    return DeComFLReading(
        chance.uniform(0.001, 0.05),
        chance.randint(1, 3),
        chance.randint(1, 4),
        0.1,
        scalar=chance.choice(("forward", "central", "projection")),
        direction=chance.choice(("gaussian", "sphere")),
        average=chance.random() < 0.5,
        momentum=chance.choice((0.0, 0.5, 0.9)),
        dampened=chance.random() < 0.5,
        schedule=tuple((r, chance.uniform(0.001, 0.05), chance.randint(1, 5)) for r in changes),
        seeds=chance.choice(("each", "derived")),
    )


@each(trial=range(15))
def test_lagging_clients_rebuild_the_servers_model_bit_for_bit(trial):
    """Six clients with models of their own. Some are called and never hear of it, some drop out after the rebuild.

    Whoever holds x_{t_i} and gets the steps of rounds t_i, ..., r-1 holds x_r, momentum included, all bits; so do the
    clients that were away for most of the run. What they were sent is what `Down` charged.
    """
    chance = random.Random(trial)
    algorithm = random_algorithm(chance)
    dtype = chance.choice((torch.float32, torch.float64))
    problem = quadratic(6, layout=TWO_LAYERS, dtype=dtype)
    state = algorithm.init(problem, start(problem), Key(trial))
    local = [Model(state.server.x, state.server.m).map(torch.clone) for _ in range(6)]
    t, steps, absent = [0] * 6, [], chance.randrange(6)
    called = lambda attempt: [i for i in range(6) if chance.random() < 0.5 and (i != absent or attempt > 20)]
    for attempt in range(25):
        key, r = Key(trial).fold("round", attempt), state.server.r
        down = algorithm.broadcast(state.server, key)
        present = []
        for i in called(attempt):
            if chance.random() < 0.2:
                continue  # the call was lost: it holds what it held
            missed = steps[t[i] :]
            assert down.model.steps(r - t[i]) == sum((cost(step) for step in missed), Cost())
            for step in missed:
                algorithm.rebuild(problem.layout, local[i], step)
            t[i] = r
            assert torch.equal(local[i].x, state.server.x)
            assert local[i].m is None or torch.equal(local[i].m, state.server.m)
            if chance.random() < 0.8:
                present.append(i)  # the others drop out in the middle of the round
        if present:  # else the round is tried again
            state, up, _ = play_round(algorithm, problem, state, torch.tensor(present), key)
            steps.append(algorithm.step(down, up.g.mean(0)))
    assert bool(torch.isfinite(state.server.x).all())


def test_a_rebuild_with_another_rate_or_average_is_seen():
    """The comparison above can fail: a client that misses the change of eta is elsewhere."""
    problem, algorithm = quadratic(), DeComFLReading(0.05, 2, 3, 0.1, schedule=((1, 0.02, 3),))
    state = algorithm.init(problem, start(problem), Key(0))
    down = algorithm.broadcast(state.server, Key(1))
    after, up, _ = play_round(algorithm, problem, state, problem.clients, Key(1))
    for lr, same in ((0.05, True), (0.02, False)):
        model = Model(state.server.x.clone(), None)
        algorithm.rebuild(problem.layout, model, replace(algorithm.step(down, up.g.mean(0)), lr=lr))
        assert torch.equal(model.x, after.server.x) == same


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_a_snapshot_rounding_errors_pile_up(dtype):
    """(10) synchronises a client by scalars alone: 400 rounds in a row leave a gap of some tens of units in the last
    place, and not zero; the snapshot leaves none."""
    algorithm, problem = DeComFLReading(0.02, 3, 2, 0.1, scalar="central"), quadratic(3, dtype=dtype)
    state = algorithm.init(problem, start(problem), Key(0))
    y, gaps = state.server.x.clone(), []
    for r in range(400):
        key = Key(0).fold("round", r)
        down = algorithm.broadcast(state.server, key)
        before = state.server.x
        state, up, _ = play_round(algorithm, problem, state, problem.clients, key)
        algorithm.rebuild(problem.layout, Model(y, None), algorithm.step(down, up.g[0]))  # y = x_{0,r}^{K+1}
        if r == 0:
            back = y.clone()
            algorithm.synchronise(problem.layout, back, up.g[0], algorithm.step(down, torch.zeros_like(up.g[0])))
            assert relative(back, before) < 8 * torch.finfo(dtype).eps, "g = 0 leads back to x_r"
        algorithm.synchronise(problem.layout, y, up.g[0], algorithm.step(down, up.g.mean(0)))
        gaps.append(relative(y, state.server.x) / torch.finfo(dtype).eps)
    assert 0 < gaps[0] < 8
    assert 0 < max(gaps[200:]) < 100


def test_synchronise_is_refused_with_momentum():
    with pytest.raises(ValueError, match=r"momentum=0.5: expected 0, .*Fix: revert from a snapshot"):
        DeComFLReading(0.1, momentum=0.5).synchronise(SGD.layout, torch.zeros(2), torch.zeros(1, 1), None)


# Bytes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seeds", ["each", "derived"])
@pytest.mark.parametrize("sampled", [5, 2])
def test_bytes_by_hand(dtype, seeds, sampled):
    """Table 1: m K P numbers up; down K P seeds for the round and (K P seeds, K P numbers) per round missed.

    Large d, so no model is pulled. Every client that took part in the last round misses one step (line 7 resends it
    the seeds of line 8), one that never did misses all of them.
    """
    steps, P, T = 2, 3, 9
    layout = replace(TWO_LAYERS, layers=(TWO_LAYERS.layers[0]._replace(rows=250),))
    problem = quadratic(layout=replace(layout, layers=(layout.layers[0]._replace(cols=1),)), dtype=dtype)
    history = run(DeComFLReading(1e-4, steps, P, seeds=seeds), problem, T, sampled=sampled)
    b, count, seed_bytes = dtype.itemsize, steps * P, 8 * (steps * P if seeds == "each" else 1)
    up, down, last = [0], [0], [0] * 5
    for t in range(T):
        lags = [t - last[i] for i in sample_clients(5, sampled, Key(0).fold("round", t, "clients")).tolist()]
        up.append(up[-1] + sampled * count * b)
        down.append(down[-1] + sum(seed_bytes + lag * (seed_bytes + count * b) for lag in lags))
        for i in sample_clients(5, sampled, Key(0).fold("round", t, "clients")).tolist():
            last[i] = t
    assert history["up_bytes"] == up
    assert history["down_bytes"] == down
    if sampled == 5 and seeds == "each":  # Table 1's columns, all M = m clients: mKP up, 2MKP of history down
        one = [b - a for a, b in zip(history["down_scalars"], history["down_scalars"][1:])]
        assert history["up_scalars"][1] == 5 * count
        assert one[1:] == [2 * 5 * count + 5 * count] * (T - 1), "and the round's own seeds (line 8), not in Table 1"


@pytest.mark.parametrize("options", [None, {}, {"known_start": False}, {"secret": 3}])
def test_model_pull(options):
    """A small model: a client that lags far is sent x (and m) instead, unless the server cannot have it."""
    plain, options = options is None, options or {}
    algorithm = DeComFL(0.01, 1, 2, momentum=0.5) if plain else DeComFLReading(0.01, 1, 2, momentum=0.5, **options)
    problem = quadratic()  # d = 12: x and m take 192 bytes, a step 2 * (8 + 8) = 32
    state = algorithm.init(problem, start(problem), Key(0))
    state = state._replace(server=replace(state.server, r=20))
    down = algorithm.broadcast(state.server, Key(1))
    pulled = 192 if "secret" not in options else 7 * 32
    assert cost(down.model, [1, 5, 6]).bytes == 32 * 12
    assert cost(down.model, [7]).bytes == pulled
    assert cost(down.model, [None]).bytes == (20 * 32 if "secret" in options else 192)
    first = algorithm.broadcast(replace(state.server, r=0), Key(1))
    assert cost(first.model, [None]).bytes == (192 if options == {"known_start": False} else 0)


# Memory


class Live(TorchDispatchMode):
    """Bytes of all tensors made inside that are alive, and their peak."""

    def __init__(self):
        super().__init__()
        self.storages, self.peak = WeakIdKeyDictionary(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for leaf in tree_flatten(out)[0]:
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                self.storages[storage] = storage.nbytes()
        self.peak = max(self.peak, sum(self.storages.values()))
        return out


def peak(work):
    """Peak bytes while `work` runs, beyond what lived before."""
    with Live() as live:
        work()
    return live.peak


def test_memory_of_a_client_is_one_model_and_its_activations():
    """Issue 4: at most 1.2 times one model and the activations of a plain forward pass, on the Fashion network.

    The client rebuilds (in place) three missed rounds of P = 4 and measures its scalars.
    """
    torch.set_default_dtype(torch.float32)
    images, labels = torch.rand(64, 1, 28, 28), torch.arange(64) % 10
    net = network("decomfl-fashion", (1, 28, 28), 62)
    problem = ImageClassification(images, labels, [torch.arange(64)], net, Key(0), batch=32)
    x, one = problem.start(), torch.tensor([0])
    model_bytes = 4 * problem.d
    assert problem.d == 1_206_590
    algorithm = DeComFLReading(1e-4, 1, 4, scalar="central")
    state = algorithm.init(problem, x, Key(0))
    down = algorithm.broadcast(state.server, Key(1))
    (xi,) = problem.draw(one, 1, Key(1))
    with torch.no_grad():
        plain = model_bytes + peak(lambda: problem.losses(x[None], xi))
        step = algorithm.step(down, torch.full((1, 4), 0.1))

        def client():
            for _ in range(3):
                algorithm.rebuild(problem.layout, Model(x, None), step)
            drain(algorithm.client(problem, one, None, down, Key(1)))

        ours = model_bytes + peak(client)
    naive = plain + peak(lambda: x + 1e-3 * torch.randn(problem.d))
    assert ours <= 1.2 * plain, f"{ours / plain:.3f}"
    assert naive > 1.2 * plain, "a second model and a stored z would be seen"


# Networks


@pytest.mark.parametrize("name", ["mlp", "decomfl-mnist"])
def test_clients_at_one_point_share_the_perturbed_models(name, monkeypatch):
    """K = 1: 2 P forward passes a round, whatever S; the scalars are those of client by client."""
    torch.manual_seed(0)
    net = network(name, (1, 8, 8), 10)
    parts = [torch.arange(8) + 8 * i for i in range(6)]
    problem = ImageClassification(torch.rand(48, 1, 8, 8), torch.arange(48) % 10, parts, net, Key(0), batch=4)
    algorithm, passes, forward = DeComFLReading(0.1, 1, 3, scalar="central"), [], type(net).forward
    monkeypatch.setattr(type(net), "forward", lambda *a: passes.append(1) or forward(*a))
    found = {}
    for chunk, count in ((None, 6), (1, 36), (4, 12)):
        passes.clear()
        state = algorithm.init(problem, problem.start(), Key(0))
        found[chunk] = play_round(algorithm, problem, state, problem.clients, Key(1), chunk=chunk)[1].g
        assert len(passes) == count
    torch.testing.assert_close(found[1], found[None], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[4], found[None], rtol=1e-9, atol=1e-9)


# Bad input

BAD = [
    ({"lr": 0.0}, "lr"),
    ({"local_steps": 0}, "local_steps"),
    ({"perturbations": 0}, "perturbations"),
    ({"perturbations": 2.0}, "perturbations"),
    ({"smoothing": 0.0}, "smoothing"),
    ({"smoothing": math.nan}, "smoothing"),
    ({"scalar": "backward"}, "scalar"),
    ({"direction": "ball"}, "direction"),
    ({"momentum": 1.0}, "momentum"),
    ({"momentum": -0.1}, "momentum"),
    ({"average": 1}, "average"),
    ({"dampened": None}, "dampened"),
    ({"seeds": "none"}, "seeds"),
    ({"schedule": [(1, 0.1, 2)]}, "schedule"),
    ({"schedule": ((1, 0.1),)}, "schedule"),
    ({"schedule": ((0, 0.1, 2),)}, r"schedule\[0\] round"),
    ({"schedule": ((5, 0.1, 2), (5, 0.1, 2))}, r"schedule\[1\] round"),
    ({"schedule": ((5, -0.1, 2),)}, r"schedule\[0\] lr"),
    ({"schedule": ((5, 0.1, 0),)}, r"schedule\[0\] P"),
    ({"secret": -1}, "secret"),
    ({"secret": 1, "known_start": False}, "known_start"),
]


@pytest.mark.parametrize(("options", "name"), BAD)
def test_bad_input(options, name):
    with pytest.raises((TypeError, ValueError), match=rf"{name}(\[0\])?=.*: expected .*Fix: \S"):
        DeComFLReading(**{"lr": 0.1} | options)


def test_seeds_are_distinct_and_derived_seeds_one_message():
    down = DeComFL(0.1, 3, 4).broadcast(DeComFL(0.1).init(SGD, torch.zeros(2), Key(0)).server, Key(0))
    assert down.seeds.dtype == torch.int64
    assert down.seeds.unique().numel() == 12
    server = DeComFL(0.1).init(SGD, torch.zeros(2), Key(0)).server
    one = DeComFLReading(0.1, 3, 4, seeds="derived").broadcast(server, Key(0))
    assert isinstance(one.seeds, Seed)
    assert cost(one.seeds).bytes == 8
    assert torch.equal(one.seeds.value, down.seeds)
