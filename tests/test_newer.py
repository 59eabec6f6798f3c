"""Newer methods, one by one: the box in NumPy, its laws, one claim of its theory, measured; bytes by hand.

The transcripts loop over clients and steps on flat vectors. Only the draws are shared with the package.
"""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from cases import ALGORITHMS, ETA, TWO_LAYERS, K, last, quadratic, regression, relative, rounds, start
from cases import PROBLEMS as CASES
from cases import problem as network
from each import each
from test_laws import close
from test_transcripts import PROBLEMS, SEED, T, chosen, frames, gradient, samples_of, unvec, vec, weigh

from fedtheory import (
    TAMUNA,
    ClientMomentum,
    CompressedScaffnew,
    Coordinate,
    DeComFL,
    FedAvg,
    FedBuff,
    FedCM,
    FedKRSO,
    FedKSeed,
    FedSB,
    FedSLoP,
    Ferret,
    Gaussian,
    HiSo,
    Identity,
    Key,
    Layout,
    MimeLite,
    Quadratic,
    Scaffnew,
    Scaffold,
    Scallion,
    Spherical,
    play_round,
    run,
)
from fedtheory.algorithms.compressedscaffnew import Holders
from fedtheory.algorithms.ferret import rho

SAMPLED = pytest.mark.parametrize("sampled", [5, 3])
TEXTS, SAME, BYTES, BAD = {}, {}, {}, {}  # each method's rows for the tests at the end


def slope(problem, i, sample, x):
    """A gradient of client i at the flat vector x."""
    return vec(gradient(problem, i, sample, unvec(x, problem)))


def whole(problem, i):
    return problem.full(torch.tensor([i]))


def gradients(problem, x):
    """grad F_i(x) of all clients."""
    return problem.grads(x.expand(problem.n, -1), problem.full(problem.clients))


def rounds_until(algorithm, problem, level, most=20_000):
    """Rounds until the relative error is below a level."""
    for t, (_, state) in enumerate(rounds(algorithm, problem, most)):
        if problem.error(state.server.x) < level:
            return t + 1
    return most


# Scaffnew


def scaffnew(problem, a, S, root, x):
    """Algorithm 2; a coin is tossed until it shows 1."""
    h, p = np.zeros((problem.n, problem.d)), 1 / a.local_steps
    for t in range(T):
        key, steps = root.fold("round", t), a.local_steps
        if a.coin and p < 1:
            u = float(torch.rand((), generator=key.fold("coin").generator(), dtype=torch.float64))
            steps = next(k for k in range(1, 10**6) if (1 - p) ** k < 1 - u)
        ids, y = chosen(problem, S, key), {}
        for i in ids:
            y[i] = x
            for sample in samples_of(problem, i, steps, key):
                y[i] = y[i] - a.lr * (slope(problem, i, sample, y[i]) - h[i])  # 6
        x = sum(y.values()) / S  # 8
        for i in ids:
            h[i] += p / a.lr * (x - y[i])  # 12
        yield x, h


TEXTS |= {"Scaffnew": (scaffnew, Scaffnew(0.05, 4)), "Scaffnew fixed": (scaffnew, Scaffnew(0.05, 4, coin=False))}
BAD |= {"coin=1": lambda: Scaffnew(0.1, 2, 1)}


@pytest.mark.parametrize("algorithm", [Scaffnew(0.1, 1), Scaffold(0.1, 1)], ids=lambda a: a.name)
def test_scaffnew_with_one_step_is_gradient_descent(algorithm):
    """p = 1, everyone: h_i sum to 0, so that they cancel in the mean."""
    problem = quadratic()
    x = start(problem)
    for _, state in rounds(algorithm, problem, 20):
        x = x - 0.1 * problem.grad(x)
        close(state.server.x, x)


@SAMPLED
@pytest.mark.parametrize("coin", [True, False])
def test_controls_of_scaffnew_sum_to_zero_and_reach_the_gradients_at_the_solution(coin, sampled):
    """Whoever takes part: those present change their h_i by a sum of zero."""
    problem = quadratic(spectrum=(0.3, 1.0))
    for _, state in rounds(Scaffnew(0.5, 4, coin), problem, 150, sampled=sampled):
        assert float(state.own.h.mean(0).norm()) < 1e-13
    assert problem.error(state.server.x) < 1e-11
    close(state.own.h, gradients(problem, problem.constants.x_star), 1e-10)


def test_the_solution_is_a_fixed_point_of_scaffnew():
    problem, algorithm = quadratic(), Scaffnew(0.1, 4)
    x = problem.constants.x_star
    state = algorithm.init(problem, x, Key(0))
    state.own.h.copy_(gradients(problem, x))
    for t in range(3):
        state = play_round(algorithm, problem, state, torch.tensor([0, 2, 3]), Key(0).fold("round", t))[0]
    close(state.server.x, x, 1e-14)
    close(state.own.h, gradients(problem, x), 1e-13)


def test_the_coin_is_tossed_by_all_and_shows_one_at_every_fourth_toss():
    steps = [Scaffnew(0.1, 4)._first_one(Key(i)) for i in range(1000)]
    assert min(steps) == 1
    assert abs(np.mean(steps) - 4) < 4.5 * math.sqrt(12 / 1000)
    assert abs(np.mean(np.array(steps) > 4) - 0.75**4) < 4.5 * math.sqrt(0.22 / 1000)


@pytest.mark.parametrize("kind", [Scaffnew, CompressedScaffnew, TAMUNA])
def test_a_coin_is_refused_where_a_round_is_a_number_of_epochs(kind):
    problem = network(sizes=(12,) * 4, epochs=1)
    with pytest.raises(ValueError, match=r"coin=True: .*Fix: pass coin=False"):
        run(kind(0.1, problem.steps), problem, 1, metrics=())
    run(kind(0.1, problem.steps, coin=False), problem, 1, metrics=())


def test_rounds_of_scaffnew_grow_as_the_root_of_the_condition_number():
    """Theorem 3.6: O(kappa log 1/eps) steps, of which O(sqrt(kappa) log 1/eps) communicate, at p = 1/sqrt(kappa).

    With one step a round, which is gradient descent, the rounds grow as kappa.
    """
    found = {}
    for kappa in (9, 144):
        problem = quadratic()
        H = torch.diag(torch.logspace(-math.log10(kappa), 0, problem.d, dtype=torch.float64))
        problem = Quadratic(H.repeat(5, 1, 1), problem.b, layout=problem.layout)
        found[kappa] = [rounds_until(Scaffnew(1.0, K), problem, 1e-4) for K in (1, math.isqrt(kappa))]
    (descent, ours), (descent_16, ours_16) = found[9], found[144]
    assert 10 < descent_16 / descent < 20, "kappa is 16 times as large"
    assert 2.5 < ours_16 / ours < 6, "and its root 4 times"


def test_too_many_local_steps_slow_scaffnew_down():
    """h_i moves by 1/K of what it lacks. Here sqrt(kappa) is 1.5."""
    problem = quadratic(spectrum=(0.3, 1.0))
    few, many = (rounds_until(Scaffnew(0.5, K), problem, 1e-6) for K in (4, 40))
    assert many > 4 * few


def test_a_client_of_scaffnew_that_was_away_is_sent_the_model():
    algorithm, problem = ALGORITHMS["Scaffnew fixed"], quadratic()
    state = algorithm.init(problem, start(problem), Key(0))
    for lags, models in (([1, 1], 0), ([1, 2], 1), ([None, 7], 2)):
        *_, traffic = play_round(algorithm, problem, state, torch.tensor([0, 1]), Key(1), lags=lags)
        assert traffic.down.scalars == 12 * models + 24


@pytest.mark.parametrize("name", ["Scaffnew", "Scaffnew fixed"])
@each(b=[4, 8])
def test_clients_of_scaffnew_have_the_model_from_the_last_reply(name, b):
    """Up y_i - x; down x once, the coin's steps, and the reply."""
    history = run(ALGORITHMS[name], quadratic(dtype=torch.float32 if b == 4 else torch.float64), 3)
    coin = 0 if name == "Scaffnew fixed" else 8
    assert history["up_bytes"] == [5 * t * 12 * b for t in range(4)]
    assert history["down_bytes"] == [0, *(5 * (12 * b + t * (12 * b + coin)) for t in (1, 2, 3))]


# SCALLION and SCAFCOM


def scallion(problem, a, S, root, x):
    n, d, K = problem.n, problem.d, a.local_steps
    c, c_i, v, k = np.zeros(d), np.zeros((n, d)), np.zeros((n, d)), max(1, round(a.ratio * d))
    for t in range(T):
        key, total = root.fold("round", t), np.zeros(d)
        for i in chosen(problem, S, key):
            y = x
            for sample in samples_of(problem, i, K, key):
                y = y - a.lr * (slope(problem, i, sample, y) - c_i[i] + c)
            delta = (a.ratio if a.alpha is None else a.alpha) * ((x - y) / (K * a.lr) - c)
            if a.momentum is not None:
                v[i] = (1 - a.momentum) * v[i] + a.momentum * ((x - y) / (K * a.lr) + c_i[i] - c)
                delta = v[i] - c_i[i]
            if a.compressor == "top-k":
                sent, scale = np.argsort(-np.abs(delta), kind="stable")[:k], 1.0
            else:
                g = torch.Generator().manual_seed(key.fold("positions", i).hash())
                sent, scale = torch.randperm(d, generator=g)[:k].numpy(), d / k
            c_i[i, sent] += scale * delta[sent]
            total[sent] += scale * delta[sent]
        x = x - a.server_lr * K * a.lr * (total / S + c)
        c = c + total / n
        yield x, np.concatenate([c_i, v], 1) if a.momentum is not None else c_i


TEXTS |= {
    "SCALLION": (scallion, Scallion(0.05, 4, 0.5, server_lr=0.9)),
    "SCALLION-alpha": (scallion, Scallion(0.05, 4, 0.5, alpha=0.2)),
    "SCAFCOM": (scallion, Scallion(0.05, 4, 0.3, "top-k", momentum=0.4)),
}
SAME |= {
    "SCALLION, k = d": (Scallion(ETA, K, 1.0, server_lr=0.7), Scaffold(ETA, K, 0.7)),
    "SCAFCOM, k = d": (Scallion(ETA, K, 1.0, "top-k", momentum=1.0), Scaffold(ETA, K)),
}
BYTES |= {"SCALLION": lambda b: (3 * b + 8, 24 * b), "SCAFCOM": lambda b: (3 * (b + 4), 24 * b)}  # k = 3
BAD |= {
    "ratio=0.0": lambda: Scallion(0.1, 2, 0.0),
    "compressor='rand'": lambda: Scallion(0.1, 2, 0.5, "rand"),
    "alpha=0.0": lambda: Scallion(0.1, 2, 0.5, alpha=0.0),
    "momentum=1.5": lambda: Scallion(0.1, 2, 0.5, momentum=1.5),
}


@pytest.mark.parametrize("name", ["SCALLION", "SCAFCOM"])
def test_the_server_control_is_the_mean_of_the_clients(name):
    for _, state in rounds(ALGORITHMS[name], regression(), 15, sampled=2):
        close(state.server.c, state.own.c.mean(0))


@pytest.mark.parametrize("algorithm", [Scallion(0.1, 5, 0.5), Scallion(0.1, 5, 0.5, "top-k", momentum=0.2)])
@SAMPLED
def test_compressed_controls_arrive_where_compressed_changes_stall(algorithm, sampled):
    """What is compressed vanishes at x*. A drift would stay, as FedAvg's does without any compression."""
    problem = quadratic(spectrum=(0.3, 1.0))
    assert problem.error(last(algorithm, problem, 200, sampled=sampled).server.x) < 1e-4
    assert problem.error(last(FedAvg(0.1, 5), problem, 100).server.x) > 1e-2


def test_the_price_of_compression_in_scallion():
    """The controls learn at the rate alpha = k/d: a quarter of the entries takes more rounds, at most 4 times."""
    problem = quadratic(spectrum=(0.3, 1.0))
    full, quarter = (rounds_until(Scallion(0.1, 5, ratio), problem, 1e-6) for ratio in (1.0, 0.25))
    assert 1.2 < quarter / full < 4


@pytest.mark.parametrize("times", [0.4, 1.0, 1.6, 2.0, 2.4])
def test_alpha_of_scallion_must_stay_near_the_part_that_crosses(times):
    """At rest |c_i - grad F_i|^2 is 1 - 2 alpha + alpha^2 d/k of the last round's: least at k/d, it grows from 2k/d."""
    problem, part = Quadratic.random(100, 64, Key(1)), 1 / 8
    alpha, slopes = times * part, problem.grads(start(problem).expand(100, -1), problem.full(problem.clients))
    state = last(Scallion(0.1, 1, part, alpha=alpha, server_lr=1e-15), problem, 8)
    grown = (state.own.c - slopes).square().sum() / slopes.square().sum()
    assert grown.item() ** (1 / 8) == pytest.approx(1 - 2 * alpha + alpha**2 / part, rel=0.02)


# FedCM


def fedcm(problem, a, S, root, x):
    """Algorithm 2."""
    delta = np.zeros(problem.d)
    for t in range(T):
        key, change = root.fold("round", t), 0
        for i in chosen(problem, S, key):
            y = x
            for sample in samples_of(problem, i, a.local_steps, key):
                y = y - a.lr * (a.alpha * slope(problem, i, sample, y) + (1 - a.alpha) * delta)
            change = change + (y - x) / S
        delta, x = -change / (a.lr * a.local_steps), x + a.server_lr * change
        yield x, None


TEXTS |= {"FedCM": (fedcm, FedCM(0.05, 4, 0.3, 0.9))}
SAME |= {"FedCM, alpha = 1": (FedCM(ETA, K, 1.0, 0.7), FedAvg(ETA, K, 0.7))}
BYTES |= {"FedCM": lambda b: (12 * b, 24 * b)}
BAD |= {"alpha=1.5": lambda: FedCM(0.1, 2, 1.5)}


def test_fedcm_rests_where_fedavg_with_smaller_steps_does():
    """At rest Delta = 0, so that each local step is alpha eta times a gradient."""
    problem = quadratic(spectrum=(0.6, 1.0))
    ours, small, plain = (
        last(a, problem, 200).server.x for a in (FedCM(0.1, 10, 0.3), FedAvg(0.03, 10), FedAvg(0.1, 10))
    )
    assert relative(ours, small) < 1e-12
    assert 0.2 < problem.error(ours) / problem.error(plain) < 0.5


# MimeLite


def mimelite(problem, a, S, root, x):
    """Algorithm 1 with momentum SGD: U(g, s) = V(g, s) = (1 - beta) g + beta s."""
    s = np.zeros(problem.d)
    for t in range(T):
        key, ends, g = root.fold("round", t), 0, 0
        for i in chosen(problem, S, key):
            y = x
            for sample in samples_of(problem, i, a.local_steps, key):
                y = y - a.lr * ((1 - a.momentum) * slope(problem, i, sample, y) + a.momentum * s)
            ends, g = ends + y / S, g + slope(problem, i, whole(problem, i), x) / S
        x, s = ends, (1 - a.momentum) * g + a.momentum * s
        yield x, None


TEXTS |= {"MimeLite": (mimelite, MimeLite(0.05, 4, 0.6))}
SAME |= {"MimeLite, beta = 0": (MimeLite(ETA, K, 0.0), FedAvg(ETA, K))}
BYTES |= {"MimeLite": lambda b: (24 * b, 24 * b)}
BAD |= {"momentum=1.0": lambda: MimeLite(0.1, 2, 1.0)}


@pytest.mark.parametrize("make", [lambda b: FedCM(0.1, 1, 1 - b), lambda b: MimeLite(0.1, 1, b)], ids=["cm", "mime"])
def test_one_local_step_is_momentum_sgd(make):
    """m <- (1 - beta) grad F(x) + beta m, x <- x - eta m."""
    problem = quadratic()
    x, m = start(problem), 0.0
    for _, state in rounds(make(0.8), problem, 20):
        m = 0.2 * problem.grad(x) + 0.8 * m
        x = x - 0.1 * m
        close(state.server.x, x)


def test_the_drift_of_mimelite_falls_with_the_square_of_what_is_fresh():
    """Momentum stands still within a round: of the K steps' drift (1 - beta)^2 is left, and of FedCM's alpha."""
    problem = quadratic(spectrum=(0.6, 1.0))
    x_star = problem.constants.x_star
    away = lambda a: float((last(a, problem, 250).server.x - x_star).norm())
    plain = away(FedAvg(0.02, 5))
    assert away(MimeLite(0.02, 5, 0.7)) / plain == pytest.approx(0.09, rel=0.05)
    assert away(FedCM(0.02, 5, 0.3)) / plain == pytest.approx(0.3, rel=0.05)


# FedKSeed


def direction(problem, seed):
    """z of a seed, (d,): each layer has a stream of its own."""
    sizes = enumerate(layer.rows * layer.cols for layer in problem.layout.layers)
    drawn = [torch.empty(n, dtype=torch.float64).normal_(generator=Key(seed).fold(j).generator()) for j, n in sizes]
    return torch.cat(drawn).numpy()


def directions(problem, count, root):
    """z_s of the pool, (count, d)."""
    seeds = torch.randint(2**63 - 1, (count,), generator=root.fold("pool").generator()).tolist()
    return np.stack([direction(problem, seed) for seed in seeds])


def fedkseed(problem, a, S, root, x):
    """One number for each seed of the pool."""
    z, total, w_0 = directions(problem, a.pool, root), np.zeros(a.pool), x
    for t in range(T):
        key, ids = root.fold("round", t), chosen(problem, S, root.fold("round", t))
        p, change = np.array([float(problem.weights[i]) if a.weighted else 1.0 for i in ids]), 0
        for i, share in zip(ids, p / p.sum()):
            w, g = w_0 + total @ z, key.fold("seeds", i).generator()
            own, picks = np.zeros(a.pool), torch.randint(a.pool, (a.local_steps,), generator=g).tolist()
            for s, sample in zip(picks, samples_of(problem, i, a.local_steps, key)):
                above, below = (
                    float(problem.losses(torch.from_numpy(w + e * z[s])[None], sample)[0])
                    for e in (a.smoothing, -a.smoothing)
                )
                step = -a.lr * (above - below) / (2 * a.smoothing)
                w, own[s] = w + step * z[s], own[s] + step
            change = change + share * own
        total = total + change
        yield w_0 + total @ z, None


TEXTS |= {
    "FedKSeed": (fedkseed, FedKSeed(0.02, 2, 20, 0.5)),
    "FedKSeed weighted": (fedkseed, FedKSeed(0.02, 2, 20, 0.5, weighted=True)),
}
# A seed and a number for each step go up; down 20 numbers, and once the pool of 20 seeds with w_0.
BYTES |= {"FedKSeed": lambda b: (K * (8 + b), 20 * b, 12 * b + 160)}
BAD |= {"pool=0": lambda: FedKSeed(0.1, 2, 0), "smoothing=0.0": lambda: FedKSeed(0.1, 2, 4, 0.0)}


def test_the_model_that_fedkseed_rebuilds_is_the_mean_of_the_clients():
    algorithm, problem = FedKSeed(0.02, 4, 20), quadratic()
    state = algorithm.init(problem, start(problem), Key(0))
    for t in range(5):
        key, down = Key(0).fold("round", t), algorithm.broadcast(state.server, Key(0).fold("round", t))
        *_, ends = algorithm.client(problem, problem.clients, None, down, key)
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key)
        close(state.server.x, ends.mean(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_pool_that_is_smaller_than_the_steps_sends_a_number_for_each_seed(dtype):
    problem = quadratic(3, dtype=dtype)
    whole, alone = (run(FedKSeed(0.02, 6, 4), problem, 2, chunk=chunk) for chunk in (None, 1))
    close(whole.x, alone.x, 1e-5 if dtype == torch.float32 else 1e-12)
    assert whole["up_bytes"][-1] == 2 * 3 * 4 * dtype.itemsize
    assert not torch.equal(whole.x, start(problem))


@pytest.mark.parametrize("pool", [1, 8])
def test_fedkseed_finds_the_best_model_of_its_pool(pool):
    """Alike clients: it rests at the minimum of F on x_0 + span(z_s), x* for a pool of d or more."""
    one = quadratic(1, spectrum=(0.5, 1.0), layout=Layout.single(2, 1))
    problem = Quadratic(one.H.repeat(2, 1, 1), one.b.repeat(2, 1), layout=one.layout)
    x0, H, b = start(problem), one.H[0].numpy(), one.b[0].numpy()
    z = directions(problem, pool, Key(0)).T
    best = x0.numpy() + z @ np.linalg.lstsq(z.T @ H @ z, z.T @ H @ (b - x0.numpy()), rcond=None)[0]
    found = last(FedKSeed(0.2, 5, pool), problem, 90, x0=x0).server.x
    assert np.linalg.norm(found.numpy() - best) < 1e-6 * np.linalg.norm(b)
    assert (problem.error(found) > 0.1) == (pool < problem.d)


# CompressedScaffnew


def compressed_scaffnew(problem, a, S, root, x):
    """Entry j comes from s of c clients, whose places in a random order follow one another from j s on."""
    n, d = problem.n, problem.d
    c = S if isinstance(a, TAMUNA) else n
    h, p, s = np.zeros((n, d)), 1 / a.local_steps, min(c, max(2, round(a.ratio * c)))
    chi = 1 if s == c else c * (s - 1) / (s * (c - 1))
    for t in range(T):
        key, q = root.fold("round", t), np.zeros((n, d))
        ids, y = chosen(problem, S, key), {}
        order = torch.randperm(n, generator=key.fold("holders").generator()).tolist()
        place = {i: at for at, i in enumerate(sorted(ids if c == S else range(n), key=lambda i: order[i]))}
        for j in range(d):
            for i in place:
                q[i, j] = place[i] in [(j * s + b) % c for b in range(s)]
        for i in ids:
            y[i] = x
            for sample in samples_of(problem, i, a.local_steps, key):
                y[i] = y[i] - a.lr * (slope(problem, i, sample, y[i]) - h[i])
        new = x.copy()
        for j in range(d):
            there = [i for i in ids if q[i, j]]
            if there:
                new[j] = sum(y[i][j] for i in there) / len(there)
        for i in ids:
            h[i] += p * chi / a.lr * q[i] * (new - y[i])
        x = new
        yield x, h


TEXTS |= {
    "CompressedScaffnew": (compressed_scaffnew, CompressedScaffnew(0.05, 4, coin=False, ratio=0.4)),
    "CompressedScaffnew, s = 3": (compressed_scaffnew, CompressedScaffnew(0.05, 4, coin=False, ratio=0.6)),
}
SAME |= {"CompressedScaffnew, s = N": (CompressedScaffnew(ETA, K, ratio=1.0), Scaffnew(ETA, K))}


@pytest.mark.parametrize("sampled", [4, 3])
def test_compressed_scaffnew_reaches_the_solution(sampled):
    """Whoever takes part, and whoever sends an entry, the h_i change by a sum of zero."""
    problem = quadratic(4, spectrum=(0.6, 1.0))
    for _, state in rounds(CompressedScaffnew(1.0, 2, ratio=0.75), problem, 120, sampled=sampled):
        assert float(state.own.h.mean(0).norm()) < 1e-12
    assert problem.error(state.server.x) < 1e-8
    close(state.own.h, gradients(problem, problem.constants.x_star), 1e-4)


def test_rounds_of_compressed_scaffnew_grow_as_its_controls_learn_slower():
    """Where they decide: chi (s - 1)/(N - 1) is 0.395 for s = 5 of N = 10 clients an entry, and 0.165 for s = 3."""
    problem = quadratic(10, spectrum=(0.8, 1.0))
    five, three = (
        rounds_until(CompressedScaffnew(1.0, 3, coin=False, ratio=ratio), problem, 1e-3) for ratio in (0.5, 0.3)
    )
    assert three / five == pytest.approx(0.395 / 0.165, rel=0.1)


def test_every_entry_comes_from_s_clients_and_every_client_sends_as_many():
    for n, s, d in ((5, 2, 20), (7, 3, 14), (4, 4, 6)):
        holders = Holders.draw(Key(n), n, s)
        q = holders.at(holders.place, torch.zeros(d))
        assert q.sum(0).tolist() == [s] * d
        assert q.sum(1).tolist() == [d * s // n] * n


@each(b=[4, 8])
def test_a_client_of_compressed_scaffnew_sends_its_entries(b):
    """s = 2 of 5 clients for each of 12 entries: 24 numbers up. Down the model, the coin's steps and a seed."""
    algorithm, dtype = CompressedScaffnew(ETA, K, ratio=0.4), torch.float32 if b == 4 else torch.float64
    history = run(algorithm, quadratic(dtype=dtype), 2)
    assert history["up_bytes"] == [0, 24 * b, 48 * b]
    assert history["down_bytes"] == [0, 5 * (24 * b + 16), 5 * (36 * b + 32)]


# TAMUNA


TEXTS |= {
    "TAMUNA": (compressed_scaffnew, TAMUNA(0.05, 4, coin=False, ratio=0.4)),
    "TAMUNA, s = 3": (compressed_scaffnew, TAMUNA(0.05, 4, coin=False, ratio=0.8)),
}
SAME |= {"TAMUNA, s = c": (TAMUNA(ETA, K, ratio=1.0), Scaffnew(ETA, K))}


def test_tamuna_of_everyone_is_compressed_scaffnew():
    one, two = (last(kind(ETA, K, ratio=0.4), quadratic(), 6) for kind in (TAMUNA, CompressedScaffnew))
    close((one.server.x, one.own.h), (two.server.x, two.own.h), 0.0)


def test_tamuna_reaches_the_solution_and_masks_for_all_clients_do_sooner():
    """Half of the entries from each of four of ten clients. Masks for all ten: each entry comes from two on average."""
    problem, errors = quadratic(10, spectrum=(0.8, 1.0)), {}
    for kind in (TAMUNA, CompressedScaffnew):
        for _, state in rounds(kind(1.0, 3, ratio=0.5), problem, 800, sampled=4):
            assert float(state.own.h.mean(0).norm()) < 1e-12
        errors[kind] = problem.error(state.server.x)
        close(state.own.h, gradients(problem, problem.constants.x_star), 1e-4)
    assert 100 * errors[CompressedScaffnew] < errors[TAMUNA] < 1e-7


def test_rounds_of_tamuna_grow_as_its_controls_learn_slower():
    """Where they decide, a round takes p chi (s - 1)/(N - 1) of the controls' error: the paper's rate, for any c."""
    problem, products = quadratic(10, spectrum=(0.8, 1.0)), []
    for c, s in ((5, 5), (5, 3), (3, 3), (2, 2)):
        errors = []
        for _, state in rounds(TAMUNA(1.0, 3, coin=False, ratio=s / c), problem, 400, sampled=c):
            errors.append(problem.error(state.server.x))
        first, last = (next(t for t, error in enumerate(errors) if error < level) for level in (1e-3, 1e-6))
        products.append((last - first) * c * (s - 1) ** 2 / (s * (c - 1) * 9))
    assert max(products) < 1.2 * min(products)  # the rounds themselves differ by more than three


def test_masks_of_a_cohort():
    """Each entry comes from s of those who take part, and each of them sends as many."""
    clients = torch.tensor([1, 4, 5, 7])
    algorithm, problem = TAMUNA(ETA, K, ratio=0.5), quadratic(9)
    down = algorithm.broadcast(algorithm.init(problem, start(problem), Key(0)).server, Key(1))
    assert down.cohort.tolist() == list(range(9))
    holders = algorithm._holders(algorithm.address(down, clients))
    q = holders.at(holders.place[clients], torch.zeros(8))
    assert q.sum(0).tolist() == [2] * 8
    assert q.sum(1).tolist() == [4] * 4


@each(b=[4, 8])
def test_a_client_of_tamuna_hears_who_takes_part(b):
    """s = 2 of 4 clients for each of 12 entries: 24 numbers up. Down the model, the coin's steps, a seed and 4 ids."""
    algorithm, dtype = TAMUNA(ETA, K, ratio=0.5), torch.float32 if b == 4 else torch.float64
    history = run(algorithm, quadratic(dtype=dtype), 1, sampled=4)
    assert history["up_bytes"] == [0, 24 * b]
    assert history["down_bytes"] == [0, 4 * (24 * b + 16 + 4 * 8)]


def test_tamuna_averages_over_the_senders_that_answer():
    """An entry of two silent clients stays, and their h_i; the sum of all h_i stays 0."""
    problem, algorithm = quadratic(4, layout=Layout.single(6, 1)), TAMUNA(ETA, K, ratio=0.5)
    state, clients = algorithm.init(problem, start(problem), Key(0)), torch.tensor([0, 1, 3, 2])
    after, _, _ = play_round(algorithm, problem, state, clients, Key(1), dropped=(0, 3))
    down = algorithm.address(algorithm.broadcast(state.server, Key(1)), clients)
    holders = algorithm._holders(down)
    senders = holders.at(holders.place[[1, 2]], state.server.x).sum(0)
    assert senders.tolist() == [0, 2, 0, 2, 0, 2]
    assert torch.equal(after.server.x == state.server.x, senders == 0)
    assert after.own.h.any(1).tolist() == [False, True, True, False]
    assert float(after.own.h.sum(0).norm()) < 1e-14


def test_one_participant_of_tamuna_is_one_client_alone():
    """Its entries come from itself, and its control stays where it is."""
    problem = quadratic()
    for _, state in rounds(TAMUNA(ETA, K), problem, 3, sampled=1):
        assert float(state.own.h.abs().max()) < 1e-14


# FedKRSO


def fedkrso(problem, a, S, root, x):
    for t in range(T):
        key, total, ids = root.fold("round", t), 0, chosen(problem, S, root.fold("round", t))
        pool = []
        for k in range(a.pool):
            basis = a.projection.draw(problem.layout, key.fold("P").fold(k), torch.float64)
            pool.append([P.numpy() for P in basis.matrices()])
        p = np.array([float(problem.weights[i]) if a.weighted else 1.0 for i in ids])
        for i, share in zip(ids, p / p.sum()):
            g, W = key.fold("picks", i).generator(), unvec(x, problem)
            picks = torch.randint(a.pool, (-(-a.local_steps // a.interval),), generator=g).tolist()
            B = {k: [np.zeros((P.shape[1], w.shape[1])) for P, w in zip(pool[k], W)] for k in picks}
            for step, sample in enumerate(samples_of(problem, i, a.local_steps, key)):
                k = picks[step // a.interval]
                G = gradient(problem, i, sample, W)
                B[k] = [b - a.lr * P.T @ g for b, P, g in zip(B[k], pool[k], G)]
                W = [w - a.lr * P @ (P.T @ g) for w, P, g in zip(W, pool[k], G)]
            total = total + share * sum(vec([P @ b for P, b in zip(pool[k], B[k])]) for k in B)
        x = x + total
        yield x, None


TEXTS |= {
    "FedKRSO": (fedkrso, FedKRSO(0.02, 5, Gaussian(2), 3, 2)),
    "FedKRSO weighted": (fedkrso, FedKRSO(0.02, 4, Spherical(1), 2, 1, weighted=True)),
}
SAME |= {"FedKRSO, P = I": (FedKRSO(ETA, K, Identity(scale="isotropic"), 3, 2), FedAvg(ETA, K))}
BAD |= {
    "pool=-1": lambda: FedKRSO(0.1, 2, pool=-1),
    "interval=0": lambda: FedKRSO(0.1, 2, interval=0),
    "scale='orthonormal'": lambda: FedKRSO(0.1, 2, Spherical(2, "orthonormal")),
}


def test_the_model_that_fedkrso_rebuilds_is_the_mean_of_the_clients():
    algorithm, problem = ALGORITHMS["FedKRSO"], quadratic()
    state = algorithm.init(problem, start(problem), Key(0))
    for t in range(3):
        key = Key(0).fold("round", t)
        *_, ends = algorithm.client(problem, problem.clients, None, algorithm.broadcast(state.server, key), key)
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key)
        close(state.server.x, ends.mean(0))


@pytest.mark.parametrize("b", [4, 8])
def test_a_client_of_fedkrso_sends_one_sum_for_each_subspace_it_picked(b):
    """Three intervals: a pick for each, and r = 2 of 6 rows, two columns, for each subspace."""
    problem = quadratic(dtype=torch.float32 if b == 4 else torch.float64)
    one = run(FedKRSO(ETA, 6, Gaussian(2), pool=1, interval=2), problem, 2)
    assert one["up_bytes"] == [0, 5 * (12 + 4 * b), 10 * (12 + 4 * b)]
    assert one["down_bytes"] == [0, 5 * (12 * b + 8), 10 * (12 * b + 8)]
    drawn = [Key(0).fold("round", 0).fold("picks", i).generator() for i in range(5)]
    sums = sum(len({*torch.randint(3, (3,), generator=g).tolist()}) for g in drawn)
    assert 5 < sums < 15
    assert run(FedKRSO(ETA, 6, Gaussian(2), pool=3, interval=2), problem, 1)["up_bytes"] == [0, 5 * 12 + sums * 4 * b]


def test_a_step_of_fedkrso_is_the_gradients_in_the_mean_and_longer():
    """E[P P^T g] = g, and E ||P P^T g||^2 = (1 + (m + 1)/r) ||g||^2: here m = 6, r = 2."""
    g = torch.randn(6, generator=Key(0).generator(), dtype=torch.float64)
    P = torch.randn(20_000, 6, 2, generator=Key(1).generator(), dtype=torch.float64) / 2**0.5
    one = Gaussian(2).draw(Layout.single(6), Key(1), torch.float64).matrices()[0]
    assert torch.allclose(one, P[:1].new_tensor(one.tolist()))
    steps = torch.einsum("sij,skj,k->si", P, P, g)
    assert relative(steps.mean(0), g) < 0.05
    assert float(steps.square().sum(1).mean() / g.square().sum()) == pytest.approx(4.5, rel=0.05)


# Fed-SB


def fedsb(problem, a, S, root, x):
    W, R = unvec(x, problem), None
    for t in range(T):
        key, ids = root.fold("round", t), chosen(problem, S, root.fold("round", t))
        if R is None:
            step = [np.zeros_like(w) for w in W]
            for i in ids:
                for sample in samples_of(problem, i, a.local_steps, key):
                    G = gradient(problem, i, sample, W)
                    step = [s - a.lr * g / (len(ids) * a.local_steps) for s, g in zip(step, G)]
            step = [a.lr * np.sign(s) if a.sign else s for s in step]
            B, A = [], []
            for s in step:
                m, n = s.shape
                r = min(m, n, math.ceil(math.sqrt(a.ratio * m * n))) if n > 1 else 1
                U, _, Vt = np.linalg.svd(s, full_matrices=False)
                B, A = [*B, U[:, :r] if n > 1 else np.eye(m)], [*A, Vt[:r] if n > 1 else np.eye(1)]
            R = [b.T @ s @ c.T for s, b, c in zip(step, B, A)]
        else:
            new = [np.zeros_like(one) for one in R]
            for i in ids:
                own = R
                for sample in samples_of(problem, i, a.local_steps, key):
                    G = gradient(problem, i, sample, [w + b @ o @ c for w, b, o, c in zip(W, B, own, A)])
                    own = [o - a.lr * b.T @ g @ c.T for o, b, g, c in zip(own, B, G, A)]
                new = [one + o / len(ids) for one, o in zip(new, own)]
            R = new
        yield vec([w + b @ o @ c for w, b, o, c in zip(W, B, R, A)]), None


TEXTS |= {
    "Fed-SB": (fedsb, FedSB(0.1, 3, 1 / 12)),
    "Fed-SB sign": (fedsb, FedSB(0.1, 3, 0.2, sign=True)),
}
BAD |= {"ratio=1.5": lambda: FedSB(0.1, 2, 1.5), "sign=1": lambda: FedSB(0.1, 2, sign=1)}


def test_the_model_of_fed_sb_is_the_mean_of_the_clients():
    algorithm, problem = FedSB(ETA, K, 0.2), quadratic(layout=Layout.single(4, 3))
    (_, state), *later = rounds(algorithm, problem, 4)
    W = state.server.base
    for t, (_, after) in enumerate(later, 1):
        B, A = state.server.frames[0]
        _, up, _ = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))
        ends = [W + problem.layout.flatten([B @ u.view(2, 2) @ A]) for u in up.u]
        close(after.server.x, torch.stack(ends).mean(0))
        state = after


def test_the_first_round_of_fed_sb_is_the_step_nearest_to_gradient_descents():
    """Of all of rank r; on square matrices of full rank the rounds that follow are FedAvg's."""
    problem = quadratic(layout=Layout.single(4, 4))
    x0, step = start(problem), lambda x, algorithm: last(algorithm, problem, 1, x0=x).server.x
    full = problem.layout.matrices(step(x0, FedAvg(ETA, 1)) - x0)[0]
    for ratio, r in ((1 / 16, 1), (1 / 4, 2), (1.0, 4)):
        low = problem.layout.matrices(step(x0, FedSB(ETA, K, ratio)) - x0)[0]
        assert float(torch.linalg.svdvals(low)[r:].sum()) < 1e-14
        assert float((full - low).norm()) == pytest.approx(float(torch.linalg.svdvals(full)[r:].norm()), abs=1e-15)
    one, *others = rounds(FedSB(ETA, K, 1.0), problem, 6, x0=x0)
    x, root = one[1].server.x, Key(0)
    for t, (_, state) in enumerate(others, 1):
        plain = FedAvg(ETA, K).init(problem, x, root)
        x = play_round(FedAvg(ETA, K), problem, plain, problem.clients, root.fold("round", t))[0].server.x
        close(state.server.x, x)


@pytest.mark.parametrize("kappa", [1, 10, 100])
def test_frozen_b_costs_fed_sb_what_steepest_descent_leaves(kappa):
    """For a solution u v^T and features with Hessian H, B = H u/||H u|| and A = v stay. So what one step of steepest
    descent leaves of the loss stays, 1 - (u.H^2 u)^2 / (u.H u u.H^3 u): at most, as here, ((kappa - 1)/(kappa + 1))^2.
    """
    H = torch.tensor([1.0, kappa], dtype=torch.float64)
    u = torch.tensor([kappa, 1.0], dtype=torch.float64)
    v = torch.nn.functional.normalize(torch.tensor([1.0, 2.0, 2.0], dtype=torch.float64), dim=0)
    Hs, bs = H.repeat(3).diag().repeat(2, 1, 1), torch.outer(v, u).flatten().repeat(2, 1)
    problem = Quadratic(Hs, bs, layout=Layout.single(2, 3))
    x0 = torch.zeros(6, dtype=torch.float64)
    x = last(FedSB(1 / kappa, 1, 1 / 6), problem, 50, x0=x0).server.x
    left = problem.loss(x) / problem.loss(x0)
    moments = [float(u @ (H**p * u)) for p in (1, 2, 3)]
    assert left == pytest.approx(1 - moments[1] ** 2 / (moments[0] * moments[2]), abs=1e-12)
    assert left == pytest.approx(((kappa - 1) / (kappa + 1)) ** 2, abs=1e-12)


@each(b=[4, 8])
def test_fed_sb_sends_r_by_r_numbers_after_its_first_round(b):
    """6 x 2, r = 1: up 12 numbers, then 1. Down W (12), then R (1), with B and A (6 + 2) once."""
    history = run(ALGORITHMS["Fed-SB"], quadratic(dtype=torch.float32 if b == 4 else torch.float64), 3)
    assert history["up_bytes"] == [0, 60 * b, 65 * b, 70 * b]
    assert history["down_bytes"] == [0, 60 * b, 105 * b, 110 * b]


# FedSLoP


def fedslop(problem, a, S, root, x):
    m = {}
    for t in range(T):
        key, change = root.fold("round", t), 0
        P = frames(a.projection, problem, key)
        for i in chosen(problem, S, key):
            W, zero = unvec(x, problem), [np.zeros((p.shape[1], w.shape[1])) for p, w in zip(P, unvec(x, problem))]
            own = m.get(i, zero) if a.carry else zero
            for sample in samples_of(problem, i, a.local_steps, key):
                G = gradient(problem, i, sample, W)
                own = [a.momentum * v + p.T @ g for v, p, g in zip(own, P, G)]
                W = [w - a.lr * p @ v for w, p, v in zip(W, P, own)]
            m[i], change = own, change + (vec(W) - x) / S
        x = x + change
        yield x, None


TEXTS |= {
    "FedSLoP": (fedslop, FedSLoP(0.05, 4, Spherical(2, "orthonormal"), 0.6)),
    "FedSLoP anew": (fedslop, FedSLoP(0.05, 4, Coordinate(1, "orthonormal"), 0.6, carry=False)),
}
SAME |= {
    "FedSLoP, P = I, mu = 0": (FedSLoP(ETA, K, Identity(), 0.0), FedAvg(ETA, K)),
    "FedSLoP, P = I": (FedSLoP(ETA, K, Identity(), 0.6, carry=False), ClientMomentum(FedAvg(ETA, K), 0.6)),
}
BYTES |= {"FedSLoP": lambda b: (4 * b, 12 * b + 8)}  # r = 2 of 6 rows, two columns
BAD |= {
    "momentum=1": lambda: FedSLoP(0.1, 2, momentum=1),
    "scale='isotropic'": lambda: FedSLoP(0.1, 2, Spherical(2)),
}


def test_momentum_that_fedslop_carries_over_is_no_momentum():
    """Its coordinates point nowhere in a new subspace: with K = 1 no round is spared, where P = I spares half."""
    problem = quadratic(2, spectrum=(0.6, 1.0), layout=Layout.single(6))
    until = lambda projection, mu: rounds_until(FedSLoP(0.05, 1, projection, mu), problem, 0.1)
    assert until(Identity(), 0.0) > 2 * until(Identity(), 0.8)
    half = Spherical(3, "orthonormal")
    assert until(half, 0.8) == pytest.approx(until(half, 0.0), rel=0.2)


def test_half_the_rows_of_fedslop_take_twice_the_rounds():
    problem = quadratic(spectrum=(0.5, 1.0))
    full, half = (rounds_until(FedSLoP(0.3, 1, Spherical(r, "orthonormal"), 0.0), problem, 1e-3) for r in (6, 3))
    assert half / full == pytest.approx(2, rel=0.1)


# Ferret


def blocks(problem, ratio):
    """(d_l, K_l) of the layers."""
    sizes = [layer.rows * layer.cols for layer in problem.layout.layers]
    return [(d, max(1, round(ratio * d))) for d in sizes]


def cut_off(d):
    """E v^2 and E v^4 of v ~ N(0, 1) on [-1/sqrt(d), 1/sqrt(d)], by the midpoint rule."""
    v = (np.arange(200_000) + 0.5) / 200_000 / math.sqrt(d)
    p = np.exp(-(v**2) / 2)
    return float(p @ v**2 / p.sum()), float(p @ v**4 / p.sum())


def ferret(problem, a, S, root, x):
    for t in range(T):
        key, change, ids = root.fold("round", t), 0, chosen(problem, S, root.fold("round", t))
        p = np.array([float(problem.weights[i]) if a.weighted else 1.0 for i in ids])
        for i, share in zip(ids, p / p.sum()):
            w, g, rebuilt, at = x, torch.Generator().manual_seed(key.fold("V", i).hash()), [], 0
            for sample in samples_of(problem, i, a.local_steps, key):
                w = w - a.lr * slope(problem, i, sample, w)
            for d, count in blocks(problem, a.ratio):
                delta, at, normal = (x - w)[at : at + d], at + d, NormalDist()
                most = 2 * normal.cdf(1 / math.sqrt(d)) - 1
                u = torch.empty(count, d, dtype=torch.float64).uniform_(-most, most, generator=g)
                V = np.array([[normal.inv_cdf((1 + one) / 2) for one in row] for row in u.tolist()]).T
                gamma = V.T @ delta / (cut_off(d)[0] * count)
                rebuilt.append(V @ gamma)
            change = change + share * np.concatenate(rebuilt)
        x = x - change
        yield x, None


TEXTS |= {
    "Ferret": (ferret, Ferret(0.05, 3, 0.5)),
    "Ferret weighted": (ferret, Ferret(0.02, 4, 1.5, weighted=True)),
}
BYTES |= {"Ferret": lambda b: (6 * b + 8, 12 * b)}  # 6 directions for 12 entries, and their seed
BAD |= {"ratio=0.0": lambda: Ferret(0.1, 2, 0.0)}


def test_ferret_with_many_directions_is_fedavg():
    problem = quadratic(layout=TWO_LAYERS)
    one, two = (last(a, problem, 3, sampled=3).server.x for a in (Ferret(ETA, K, 500), FedAvg(ETA, K)))
    assert relative(one, two) < 0.02


def test_ferret_makes_its_directions_in_pieces(monkeypatch):
    problem = quadratic(layout=TWO_LAYERS)
    x = last(ALGORITHMS["Ferret"], problem, 3).server.x
    monkeypatch.setattr("fedtheory.algorithms.ferret.BLOCK", 16)  # two directions of the first layer
    close(last(ALGORITHMS["Ferret"], problem, 3).server.x, x)


@pytest.mark.parametrize("ratio", [1 / 8, 1 / 2, 4])
def test_a_change_that_ferret_rebuilds_is_unbiased_and_d_over_k_of_its_square_away(ratio):
    """Exactly (d - 2 + E v^4/(E v^2)^2)/K, Ferret's Theorems 1 and 2."""
    layout, trials = Layout.single(8, 2), 4000
    delta = torch.randn(16, generator=Key(0).generator(), dtype=torch.float64)
    algorithm = Ferret(0.1, 1, ratio)
    found = torch.stack([algorithm._rebuild(layout, s, algorithm._project(layout, s, delta)) for s in range(trials)])
    (d, K), (second, fourth) = blocks(quadratic(layout=layout), ratio)[0], cut_off(16)
    error = (d - 2 + fourth / second**2) / K
    assert float((found - delta).square().sum(1).mean() / delta.square().sum()) == pytest.approx(error, rel=0.1)
    assert relative(found.mean(0), delta) < 2 * math.sqrt(error / trials)
    assert rho(16) == pytest.approx(second, rel=1e-9)


# HiSo


def hiso(problem, a, S, root, x):
    H = np.ones(problem.d)
    for t in range(T):
        key, ids = root.fold("round", t), chosen(problem, S, root.fold("round", t))
        seeds = torch.randint(2**63 - 1, (a.local_steps, a.perturbations), generator=key.fold("z").generator())
        z = [[direction(problem, s) / np.sqrt(H) for s in row] for row in seeds.tolist()]
        g = np.zeros(seeds.shape)
        for i in ids:
            y = x
            for k, sample in enumerate(samples_of(problem, i, a.local_steps, key)):
                at = lambda w, sample=sample: float(problem.losses(torch.from_numpy(w)[None], sample)[0])
                own = [(at(y + a.smoothing * v) - at(y)) / a.smoothing for v in z[k]]
                y = y - a.lr / len(own) * sum(s * v for s, v in zip(own, z[k]))
                g[k] += np.array(own) / S
        for row, slopes in zip(z, g):
            change = sum(s * v for s, v in zip(slopes, row)) / len(row)
            x = x - a.lr * change
        H = (1 - a.nu) * H + a.nu * change**2
        yield x, None


TEXTS |= {"HiSo": (hiso, HiSo(0.03, 2, 3, 0.5, nu=0.2))}
SAME |= {"HiSo, nu = 0": (HiSo(ETA, K, 4, 0.5, nu=0.0), DeComFL(ETA, K, 4, 0.5))}
BAD |= {"nu=2.0": lambda: HiSo(0.1, nu=2.0), "momentum=0.9": lambda: HiSo(0.1, momentum=0.9)}


def test_one_step_of_hiso_is_newtons_where_it_has_the_hessian():
    """In the mean a step is H^-1 grad F: with many directions and H the Hessian, kappa = 1000 costs nothing."""
    H = torch.logspace(-3, 0, 12, dtype=torch.float64)
    problem = Quadratic(H.diag().repeat(2, 1, 1), quadratic(2).b, layout=Layout.single(6, 2))
    algorithm, x0 = HiSo(1.0, 1, 3000, nu=0.0), start(problem)
    state = algorithm.init(problem, x0, Key(0))
    state.server.m.copy_(H)
    after = play_round(algorithm, problem, state, problem.clients, Key(0))[0].server.x
    norm = lambda x: float((H * (x - problem.constants.x_star).square()).sum().sqrt())
    assert norm(after) < 0.12 * norm(x0)


@each(b=[4, 8])
def test_hiso_costs_what_decomfl_does_until_a_model_is_sent(b):
    """K P = 2 slopes up; down 2 seeds and the last round's step: 2 seeds, 2 slopes; x and H are 24 numbers."""
    history = run(HiSo(0.01, 1, 2), quadratic(dtype=torch.float32 if b == 4 else torch.float64), 3)
    assert history["up_bytes"] == [5 * t * 2 * b for t in range(4)]
    step = min(16 + 2 * b, 24 * b)
    assert history["down_bytes"] == [0, 5 * 16, 5 * (32 + step), 5 * (48 + 2 * step)]


def test_at_the_solution_steps_of_hiso_grow_until_the_error_hovers():
    """H falls by 1 - nu a round, whatever K is, while slopes are 0; then steps are so long that they are not."""
    problem = quadratic(1)
    at = lambda rounds: last(HiSo(0.01, 3, 4, 1e-9, nu=0.1), problem, rounds, x0=problem.constants.x_star).server
    assert torch.allclose(at(20).m, torch.full((problem.d,), 0.9**20, dtype=torch.float64), rtol=1e-6)
    end = at(300)
    assert float(end.m.min()) > 1e-4 > 1e9 * 0.9**300
    assert 1e-5 < float(problem.error(end.x)) < 1


# FedBuff


def fedbuff(problem, a, S, root, x):
    """One arrival after the other, as in the authors' aggregator."""
    past, version, buffer = [(x, 0)], 0, []
    for t in range(T):
        key, ids, arrivals = root.fold("round", t), chosen(problem, S, root.fold("round", t)), {}
        ages = torch.randint(a.delay + 1, (problem.n,), generator=key.fold("age").generator()).tolist()
        for i, place in zip(ids, torch.randperm(S, generator=key.fold("order").generator()).tolist()):
            y, began = past[max(0, t - ages[i])]
            for sample in samples_of(problem, i, a.local_steps, key):
                y = y - a.lr * slope(problem, i, sample, y)
            arrivals[place] = y - past[max(0, t - ages[i])][0], began
        for _, (change, began) in sorted(arrivals.items()):
            buffer.append((1 + version - began) ** -a.power * change)
            if len(buffer) == (a.buffer or S):
                x, version, buffer = x + a.server_lr * sum(buffer) / len(buffer), version + 1, []
        past.append((x, version))
        yield x, None


TEXTS |= {
    "FedBuff": (fedbuff, FedBuff(0.05, 4, 2, 3, 1.0, 0.9)),
    "FedBuff, a round": (fedbuff, FedBuff(0.05, 4)),
    "FedBuff, K = 7": (fedbuff, FedBuff(0.1, 4, 7, 2)),
}
SAME |= {"FedBuff, nothing stale": (FedBuff(ETA, K, delay=0, server_lr=0.7), FedAvg(ETA, K, 0.7))}
BYTES |= {"FedBuff": lambda b: (12 * b, 12 * b)}  # of the models that the server holds a client is sent one
BAD |= {
    "buffer=0": lambda: FedBuff(0.1, 2, 0),
    "delay=-1": lambda: FedBuff(0.1, 2, delay=-1),
    "power=2.0": lambda: FedBuff(0.1, 2, power=2.0),
}


def test_fedbuff_rests_where_fedavg_does():
    """At rest all models that the server holds are one; without weights the delays leave no trace."""
    problem = quadratic(spectrum=(0.6, 1.0))
    ours, theirs = (last(a, problem, 300).server.x for a in (FedBuff(0.1, 5, delay=3, power=0.0), FedAvg(0.1, 5)))
    assert relative(ours, theirs) < 1e-12
    assert problem.error(theirs) > 0.01


@pytest.mark.parametrize("delay", [0, 1, 3, 7])
def test_the_largest_stable_step_of_fedbuff_falls_with_the_delay(delay):
    """L = 1, many clients: x+ = x - eta mean(x_{t-j}, j = 0..delay). A root is on the circle, e^(i pi/(delay+1)), at

    eta = 2 (delay + 1) sin(pi / (2 (delay + 1)))^2, which is 2 without delay and about pi^2 / (2 (delay + 1)).
    """
    one = torch.ones(600, 1, 1, dtype=torch.float64)
    problem = Quadratic(one, torch.zeros_like(one[:, 0]), layout=Layout.single(1))
    most = 2 * (delay + 1) * math.sin(math.pi / (2 * (delay + 1))) ** 2
    for share, stable in ((0.95, True), (1.05, False)):
        algorithm = FedBuff(share * most, 1, delay=delay, power=0.0)
        size = [float(state.server.x.abs()) for _, state in rounds(algorithm, problem, 160, x0=one[0, 0])]
        assert (max(size[-20:]) < max(size[40:60])) == stable


# All of them


@pytest.mark.parametrize("name", TEXTS)
@each(problem=PROBLEMS, sampled=[5, 3])
def test_transcript(name, problem, sampled):
    (text, algorithm), problem = TEXTS[name], weigh(PROBLEMS[problem]())
    x0 = start(problem)
    theirs = text(problem, algorithm, sampled, Key(SEED), x0.numpy())
    for (x, own), (_, state) in zip(theirs, rounds(algorithm, problem, T, sampled=sampled, seed=SEED, x0=x0)):
        assert np.linalg.norm(state.server.x.numpy() - x) <= 1e-10 * np.linalg.norm(x)
        if own is not None:
            leaves = [getattr(state.own, name) for name in state.own.__dataclass_fields__]
            mine = torch.cat([leaf for leaf in leaves if leaf.is_floating_point()], 1).numpy()
            assert np.linalg.norm(mine - own) <= 1e-9 * max(np.linalg.norm(own), 1e-3)
    assert relative(state.server.x, x0) > 0.05, "the trajectory should go somewhere"


@pytest.mark.parametrize("name", SAME)
@each("problem, sampled", zip(CASES, itertools.cycle([5, 3])))
def test_at_the_end_of_its_hyperparameter_it_is_an_older_method(name, problem, sampled):
    one, two = (last(algorithm, CASES[problem](), 6, sampled=sampled) for algorithm in SAME[name])
    close(one.server.x, two.server.x, 1e-11)
    if "k = d" in name:
        close(one.server.c, two.server.c, 1e-11)
        close(one.own.c, two.own.c, 1e-11)


@pytest.mark.parametrize("name", BYTES)
@each(dtype=[torch.float32, torch.float64])
def test_traffic_by_hand(name, dtype):
    """A client's bytes up and down in a round, and down once; b bytes a number, d = 12, five clients."""
    up, down, once = (*BYTES[name](dtype.itemsize), 0)[:3]
    history = run(ALGORITHMS[name], quadratic(dtype=dtype), 2)
    assert history["up_bytes"] == [0, 5 * up, 10 * up]
    assert history["down_bytes"] == [0, 5 * (once + down), 5 * (once + 2 * down)]


@pytest.mark.parametrize("named", BAD)
def test_bad_input(named):
    with pytest.raises((ValueError, TypeError), match="Fix: ") as caught:
        BAD[named]()
    assert named in str(caught.value)
