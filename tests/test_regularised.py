"""Baselines that bend the clients' local problem: FedProx, FedDyn, FedDC; MOON, FedNTD, FedGen on networks.

The transcripts are a second reading of each source: loops over clients and steps, plain NumPy.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import ALGORITHMS, ETA, PROBLEMS, REGULARISED, K, last, leaves, quadratic, regression, rounds, start
from test_laws import close
from test_networks import SMALL, points
from test_networks import problem as images
from test_transcripts import PROBLEMS as WRITTEN
from test_transcripts import chosen, gradient, samples_of, unvec, vec
from torch.nn import functional

from fedtheory import MOON, FedAvg, FedDC, FedDyn, FedGen, FedNTD, FedProx, Key, Scaffold, play_round, run
from fedtheory.algorithms.fedntd import not_true

SAMPLED = pytest.mark.parametrize("sampled", [5, 3])


def same_model(one, two, problem, T=12, **options):
    """Both algorithms walk through the same models. Yields both states, round by round."""
    for (_, a), (_, b) in zip(rounds(one, problem, T, **options), rounds(two, problem, T, **options), strict=True):
        close(a.server.x, b.server.x)
        yield a, b


# FedProx


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
@SAMPLED
def test_fedprox_without_penalty_is_fedavg(problem, weighted, sampled):
    pair = FedProx(ETA, K, 0.0, weighted), FedAvg(ETA, K, weighted=weighted)
    assert len(list(same_model(*pair, PROBLEMS[problem](), sampled=sampled))) == 12


@pytest.mark.parametrize("mu", [0.0, 0.7, 50.0])
def test_fedprox_solved_to_the_end_is_the_proximal_point(mu):
    """argmin h_i = (H_i + mu I)^{-1} (H_i b_i + mu x), no further from x than ||grad F_i(x)|| / mu."""
    problem = quadratic(spectrum=(0.3, 1.0))
    x = start(problem)
    eye = torch.eye(problem.d, dtype=torch.float64)
    points = torch.linalg.solve(problem.H + mu * eye, (problem.H @ problem.b[..., None])[..., 0] + mu * x)
    found = last(FedProx(1 / (1 + mu), 200, mu), problem, 1, x0=x).server.x
    torch.testing.assert_close(found, points.mean(0), rtol=1e-10, atol=1e-10)
    if mu:
        grads = problem.grads(x.expand(problem.n, -1), problem.full(problem.clients))
        assert bool(((points - x).norm(dim=1) <= grads.norm(dim=1) / mu).all())


# FedDyn and FedDC

ARRIVE = {
    "FedDyn": FedDyn(0.1, 10, 1.0),
    "FedDC": FedDC(0.1, 10, 1.0),
    "FedDC update": FedDC(0.1, 10, 1.0, "update"),
    "FedDC none": FedDC(0.1, 10, 1.0, "none"),
}


@pytest.mark.parametrize("stalls", [FedAvg(0.1, 10), FedProx(0.1, 10, 1.0)])
def test_fedavg_and_fedprox_stall(stalls):
    problem = quadratic(spectrum=(0.3, 1.0))
    assert problem.error(last(stalls, problem, 400).server.x) > 1e-2


@pytest.mark.parametrize("name", ARRIVE)
@SAMPLED
def test_they_arrive_where_fedavg_and_fedprox_stall(name, sampled):
    """Heterogeneous quadratics: at rest the global gradient is zero, with inexact local solves and S < N too."""
    problem = quadratic(spectrum=(0.3, 1.0))
    assert problem.error(last(ARRIVE[name], problem, 300, sampled=sampled).server.x) < 1e-13


@pytest.mark.parametrize("problem", ["quadratic", "logistic", "two layers"])
def test_the_solution_is_a_fixed_point(problem):
    """At x* with dual_i = grad F_i(x*) nothing moves; FedDC has it as c_i - alpha h_i, in any split of the two."""
    problem = PROBLEMS[problem]()
    x_star = problem.constants.x_star
    grads = problem.grads(x_star.expand(problem.n, -1), problem.full(problem.clients))
    for algorithm, parts in (
        (FedDyn(0.1, 4, 2.0), [grads]),
        (FedDC(0.1, 4, 2.0), [0.3 * grads, -0.35 * grads]),
        (FedDC(0.1, 4, 2.0, "none"), [0 * grads, -0.5 * grads]),
        (FedDC(0.1, 4, 2.0, "update"), [0 * grads, -0.5 * grads]),
    ):
        state = algorithm.init(problem, x_star, Key(0))
        for leaf, part in zip(leaves(state.own), parts, strict=True):
            leaf.copy_(part)
        for t in range(3):
            state = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))[0]
        close(state.server.x, x_star, 1e-14)
        for leaf, part in zip(leaves(state.own), parts, strict=True):
            close(leaf, part, 1e-13)


def test_feddyn_dual_is_the_gradient_at_the_clients_model():
    """First-order optimality of the local problem, solved to the end: dual_k = grad L_k(theta_k^t)."""
    problem, algorithm = quadratic(spectrum=(0.3, 1.0)), FedDyn(0.4, 300, 1.0)
    state, before = algorithm.init(problem, start(problem), Key(0)), start(problem)
    for t in range(4):
        duals = state.own.dual.clone()
        state, up, _ = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))
        close(state.own.dual, problem.grads(before + up.dy, problem.full(problem.clients)), 1e-11)
        close(state.own.dual, duals - 1.0 * up.dy)
        before = state.server.x


@pytest.mark.parametrize("problem", PROBLEMS)
@SAMPLED
def test_server_sums_are_means_over_all_clients(problem, sampled):
    """h = (1/N) sum_k dual_k; FedDC: h and c are the means of h_i and c_i, made from the changes alone."""
    for _, state in rounds(FedDyn(ETA, K, 2.0), PROBLEMS[problem](), 15, sampled=sampled):
        close(state.server.h, state.own.dual.mean(0))
    for _, state in rounds(FedDC(ETA, K, 2.0), PROBLEMS[problem](), 15, sampled=sampled):
        close(state.server.h, state.own.h.mean(0))
        close(state.server.c, state.own.c.mean(0))


@pytest.mark.parametrize("problem", PROBLEMS)
@SAMPLED
def test_feddc_is_feddyn_without_correction_and_scaffold_without_drift(problem, sampled):
    problem = PROBLEMS[problem]()
    for a, b in same_model(FedDC(ETA, K, 2.0, "none"), FedDyn(ETA, K, 2.0), problem, sampled=sampled):
        close(-2.0 * a.own.h, b.own.dual)
        assert not a.own.c.any()
    for a, b in same_model(FedDC(ETA, K, 0.0), Scaffold(ETA, K), problem, sampled=sampled):
        close(a.own.c, b.own.c)
        close(a.server.c, b.server.c)
        assert not a.own.h.any()
    assert len(list(same_model(FedDC(ETA, K, 0.0, "none"), FedAvg(ETA, K), problem, sampled=sampled))) == 12


# Second readings


def fedprox(problem, a, S, root, x):
    """Algorithm 2, each device's h_k(w; w^t) descended step by step."""
    for t in range(12):
        key = root.fold("round", t)
        total, share = 0 * x, 0.0
        for k in chosen(problem, S, key):
            w = x.copy()
            for sample in samples_of(problem, k, a.local_steps, key):
                w = w - a.lr * (flat(problem, k, sample, w) + a.mu * (w - x))
            p = float(problem.weights[k]) if a.weighted else 1.0
            total, share = total + p * w, share + p
        x = total / share
        yield x, None


def feddyn(problem, a, S, root, theta):
    """Algorithm 1: the local argmin by gradient steps from theta^{t-1}."""
    m, h, stored = problem.n, np.zeros_like(theta), np.zeros((problem.n, theta.size))
    for t in range(12):
        key, ends = root.fold("round", t), []
        for k in chosen(problem, S, key):
            th = theta
            for sample in samples_of(problem, k, a.local_steps, key):
                th = th - a.lr * (flat(problem, k, sample, th) - stored[k] + a.alpha * (th - theta))
            stored[k] = stored[k] - a.alpha * (th - theta)
            ends.append(th)
        h = h - a.alpha / m * sum(end - theta for end in ends)
        theta = sum(ends) / len(ends) - h / a.alpha
        yield theta, stored.copy()


def feddc(problem, a, S, root, w):
    """Local loss + alpha/2 ||theta + h_i - w||^2 + <theta, g_i - g> / (K eta); every client's g_i and h_i kept here."""
    N, K, g = problem.n, a.local_steps, np.zeros_like(w)
    g_i, h_i = np.zeros((N, w.size)), np.zeros((N, w.size))
    for t in range(12):
        key, ends, updates = root.fold("round", t), [], []
        for i in chosen(problem, S, key):
            theta = w
            for sample in samples_of(problem, i, K, key):
                slope = flat(problem, i, sample, theta) + a.alpha * (theta + h_i[i] - w) + (g_i[i] - g) / (K * a.lr)
                theta = theta - a.lr * slope
            g_i[i] = theta - w + (g_i[i] - g if a.correction == "scaffold" else 0)
            h_i[i] = h_i[i] + theta - w
            ends.append(theta)
            updates.append(theta - w)
        g = g_i.mean(0) if a.correction == "scaffold" else np.mean(updates, 0)
        w = np.mean(ends, 0) + h_i.mean(0)
        yield w, np.concatenate([-g_i / (K * a.lr), h_i], 1)


def flat(problem, i, sample, x):
    return vec(gradient(problem, i, sample, unvec(x, problem)))


SECOND = {
    "FedProx": (fedprox, FedProx(0.05, 4, 0.8)),
    "FedProx weighted": (fedprox, FedProx(0.05, 4, 0.8, True)),
    "FedDyn": (feddyn, FedDyn(0.05, 4, 2.0)),
    "FedDC": (feddc, FedDC(0.05, 4, 2.0)),
    "FedDC update": (feddc, FedDC(0.05, 4, 2.0, "update")),
}


@pytest.mark.parametrize("problem", WRITTEN)
@pytest.mark.parametrize("name", SECOND)
@SAMPLED
def test_transcript(name, problem, sampled):
    transcript, algorithm = SECOND[name]
    problem = WRITTEN[problem]()
    problem.weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64) / 15
    x0 = start(problem)
    theirs = transcript(problem, algorithm, sampled, Key(11), x0.numpy())
    ours = rounds(algorithm, problem, 12, sampled=sampled, seed=11, x0=x0)
    for (x, own), (_, state) in zip(theirs, ours, strict=True):
        assert np.linalg.norm(state.server.x.numpy() - x) <= 1e-10 * np.linalg.norm(x)
        if own is not None:
            mine = torch.cat(leaves(state.own), 1).numpy()
            assert np.linalg.norm(mine - own) <= 1e-10 * np.linalg.norm(own)
    assert np.linalg.norm(x - x0.numpy()) > 0.1 * np.linalg.norm(x0.numpy())


# On networks: MOON, FedNTD, FedGen

SMALL_GEN = {"server_steps": 5, "generated": 6, "noise": 3, "hidden": 7}
NETWORKED = {
    "MOON": MOON(0.1, 3, 2.0, weighted=True),
    "FedNTD": FedNTD(0.1, 3, 2.0, 1.5, weighted=True),
    "FedGen": FedGen(0.1, 3, 2.0, **SMALL_GEN, diversity=0.5, weighted=True),
}


def on(name, problem, T, **options):
    """States after each of T rounds, from the network's own start."""
    algorithm = NETWORKED[name] if isinstance(name, str) else name
    return [state for _, state in rounds(algorithm, problem, T, x0=problem.start(), **options)]


def everything(out, others, weights):
    """A penalty that uses all that there is to use."""
    away = out.at(others)
    near = functional.cosine_similarity(out.features, away.features, dim=-1)
    return out.mean(near + (out.logits * away.logits).sum(-1)) + out.head(weights).square().mean((1, 2))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("epochs", [None, 2])
def test_penalised_gradients(name, epochs):
    """Without a penalty they are the gradients; with one, stacked or one by one; an idle client has none."""
    p = images(name, epochs=epochs)
    steps = 2 if epochs is None else p.steps
    y, others = points(p, 4), p.start() + 0.3 * points(p, 4).flip(0)
    weights = torch.randn(4, 5, p.network.head.n_in, generator=Key(3).generator(), dtype=torch.float64)
    drawn = p.draw(p.clients, steps, Key(7))
    for xi in drawn if epochs is None else (drawn[0], drawn[2], drawn[-1]):  # whole, in part, and with an idle client
        found = []
        for p.stacked in (True, False):
            found.append(p.penalised(y, xi, everything, others, weights))
            nothing = p.penalised(y, xi, lambda out: 0 * out.mean(out.logits[..., 0]))
            torch.testing.assert_close(nothing, p.grads(y, xi), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12)
        idle = torch.tensor(xi.size) == 0
        assert not found[0][idle].any()
        assert bool((found[0] - nothing)[~idle].any(1).all())


@pytest.mark.parametrize("name", ["mlp", "decomfl-mnist"])
def test_penalised_gradients_are_those_of_the_sum(name):
    p = images(name)
    (xi,), y, others = p.draw(p.clients, 1, Key(8)), points(p, 4), points(p, 4).flip(0)
    weights = torch.randn(4, 5, p.network.head.n_in, generator=Key(3).generator(), dtype=torch.float64)
    v, h = torch.randn(p.d, generator=Key(9).generator(), dtype=torch.float64), 1e-7
    total = lambda at: p.losses(at, xi) + everything(p.outputs(at, xi), others, weights)
    slope = (total(y + h * v) - total(y - h * v)) / (2 * h)
    torch.testing.assert_close(p.penalised(y, xi, everything, others, weights) @ v, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_the_head_is_what_makes_logits_of_features(name):
    p = images(name)
    (xi,) = p.draw(p.clients, 1, Key(8))
    out, x = p.outputs(points(p, 4), xi), p.images[xi.index]
    torch.testing.assert_close(out.head(out.features), out.logits, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(p.network.logits(points(p, 4), x), out.logits, rtol=1e-12, atol=1e-12)
    assert out.features.shape == (4, 4, p.network.head.n_in)
    other = out.at(points(p, 4).flip(0))
    torch.testing.assert_close(p.network.logits(points(p, 4).flip(0), x), other.logits, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKED)
@pytest.mark.parametrize("network", ["mlp", "resnet8"])
@pytest.mark.parametrize("epochs", [None, 1])
def test_stacked_clients_equal_clients_one_by_one(name, network, epochs):
    p = images(network, epochs=epochs, stacked=True)
    algorithm = NETWORKED[name] if epochs is None else replace(NETWORKED[name], local_steps=p.steps)
    together = on(algorithm, p, 2, sampled=3)[-1]
    for chunk in (1, 2):
        close(on(algorithm, p, 2, sampled=3, chunk=chunk)[-1], together, 1e-9)


@pytest.mark.parametrize("name", NETWORKED)
def test_a_run_depends_on_its_seed_alone_and_can_be_resumed(name, tmp_path):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    whole = run(NETWORKED[name], images(), 5, sampled=2, metrics=("loss",))
    assert torch.equal(torch.get_rng_state(), before)
    run(NETWORKED[name], images(), 3, sampled=2, metrics=("loss",), checkpoint=tmp_path, checkpoint_every=2)
    resumed = run(NETWORKED[name], images(), 5, sampled=2, metrics=("loss",), checkpoint=tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(leaves(resumed.state), leaves(whole.state), strict=True))
    assert resumed["down_bytes"] == whole["down_bytes"]
    assert not torch.equal(run(NETWORKED[name], images(), 5, sampled=2, metrics=(), seed=1).x, whole.x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("network", ["mlp", "decomfl-mnist"])
@pytest.mark.parametrize("algorithm", [MOON(0.1, 3, 0.0), FedNTD(0.1, 3, 0.0), FedGen(0.1, 3, 0.0, **SMALL_GEN)])
def test_without_their_term_they_are_fedavg(algorithm, network, weighted):
    p = images(network)
    algorithm = replace(algorithm, weighted=weighted)
    for a, b in zip(
        on(algorithm, p, 3, sampled=3), on(FedAvg(0.1, 3, weighted=weighted), p, 3, sampled=3), strict=True
    ):
        close(a.server.x, b.server.x, 1e-10)


def test_moon_contrasts_a_client_from_its_second_round_on():
    """No previous model: z_prev = z_glob, and the loss is log 2 whatever the model. So a first round is FedAvg's."""
    p, fedavg, moon = images(), FedAvg(0.1, 3), MOON(0.1, 3, 5.0)
    (state,) = on(moon, p, 1)
    close(state.server.x, on(fedavg, p, 1)[0].server.x, 1e-10)
    assert state.own.trained.all()
    state, key = moon.init(p, p.start(), Key(0)), Key(0).fold("round", 3)
    state = play_round(moon, p, state, torch.tensor([0, 2]), Key(0).fold("round", 0))[0]
    kept = state.own.y.clone()
    x = state.server.x
    up = play_round(moon, p, state, torch.tensor([1, 2]), key)[1]
    plain = play_round(fedavg, p, fedavg.init(p, x, Key(0)), torch.tensor([1, 2]), key)[1]
    close(up.dy[0], plain.dy[0], 1e-10)
    assert float((up.dy[1] - plain.dy[1]).norm()) > 1e-3
    assert torch.equal(state.own.y[[0, 3]], kept[[0, 3]])
    close(state.own.y[[1, 2]], x + up.dy)


def test_moon_pulls_to_the_global_features_and_pushes_from_the_previous():
    """Steps along the contrastive term alone raise sim(z, z_glob) - sim(z, z_prev)."""
    p, moon = images(), MOON(0.05, 3, 1.0)
    (xi,), y, x, previous = p.draw(p.clients, 1, Key(8)), points(p, 4), points(p, 4).roll(1, 0), points(p, 4).roll(2, 0)

    def margin(y):
        z, a, b = (p.outputs(at, xi).features for at in (y, x, previous))
        return functional.cosine_similarity(z, a, dim=-1).mean(1) - functional.cosine_similarity(z, b, dim=-1).mean(1)

    step = p.penalised(y, xi, moon._contrast, x, previous) - p.grads(y, xi)
    assert bool((margin(y - 0.01 * step) > margin(y)).all())


def test_fedntd_does_not_see_the_true_logit():
    logits = torch.randn(4, 6, 5, generator=Key(1).generator(), dtype=torch.float64)
    labels = torch.randint(5, (4, 6), generator=Key(2).generator())
    shifted = logits + 7 * functional.one_hot(labels, 5)
    assert torch.equal(not_true(shifted, labels), not_true(logits, labels))
    for row, label, kept in zip(logits.view(-1, 5), labels.flatten(), not_true(logits, labels).view(-1, 4)):
        assert kept.tolist() == [float(row[c]) for c in range(5) if c != label]


def test_fedntd_acts_from_the_second_step_on_and_with_three_classes():
    """At the global model q_l = q_g: one step is FedAvg's. With two classes one is not true, and q = 1 for both."""
    for p, steps, same in ((images(), 1, True), (images(), 2, False), (images(classes=2), 3, True)):
        ntd, plain = (on(a, p, 2)[-1].server.x for a in (FedNTD(0.1, steps, 5.0), FedAvg(0.1, steps)))
        assert (float((ntd - plain).norm()) < 1e-10) == same


def test_fedgen_first_round_is_fedavg_and_its_term_moves_the_head_only():
    p, gen = images(), FedGen(0.1, 1, 3.0, **SMALL_GEN)
    one, two = on(gen, p, 2)
    (plain,) = on(FedAvg(0.1, 1), p, 1)
    close(one.server.x, plain.server.x, 1e-12)
    key = Key(0).fold("round", 1)
    x = play_round(FedAvg(0.1, 1), p, plain, p.clients, key)[0].server.x
    head = sum(p.network.sizes[-2:])
    close(two.server.x[:-head], x[:-head], 1e-12)
    assert float((two.server.x - x)[-head:].norm()) > 1e-3


def test_fedgen_generator_learns_what_the_heads_take_for_a_label():
    """(4) at the averaged head, on fresh draws, falls; with diversity two draws of a label lie further apart."""
    p, spread = images(), []
    for diversity in (0.0, 20.0):
        gen = FedGen(0.1, 3, server_steps=150, generated=16, noise=4, hidden=16, diversity=diversity)
        states = [gen.init(p, p.start(), Key(0)), *on(gen, p, 2)]
        labels, inputs = gen._draw(states[-1].server.generator.p, 1, Key(77))
        made = [gen.maker(p.network).logits(s.server.generator.w[None], inputs) for s in states]
        fit = [functional.cross_entropy(p.network.classify(states[-1].server.x[None], z)[0], labels[0]) for z in made]
        assert fit[2] < 0.2 < 0.8 < fit[0]
        spread.append(torch.cdist(made[2][0], made[2][0]).mean())
    assert spread[1] > 1.2 * spread[0]


def test_fedgen_diversity_slope_is_a_slope():
    gen, p = FedGen(0.1, 1, diversity=2.0, **SMALL_GEN), images()
    w = gen.maker(p.network).init(Key(4))
    labels, inputs = (part[0] for part in gen._draw(torch.ones(3) / 3, 1, Key(5)))
    inputs, head = inputs.double(), lambda z: p.network.classify(p.start()[None], z)

    def value(w):
        z = gen.maker(p.network).logits(w[None], inputs[None])[0]
        pairs = [(i, j) for i in range(6) for j in range(6)]
        apart = [float((inputs[i, :3] - inputs[j, :3]).square().mean() * (z[i] - z[j]).abs().mean()) for i, j in pairs]
        return float(functional.cross_entropy(head(z[None])[0], labels)) + 2 * np.exp(-np.mean(apart))

    v, h = torch.randn(len(w), generator=Key(9).generator(), dtype=torch.float64), 1e-6
    slope = (value(w + h * v) - value(w - h * v)) / (2 * h)
    assert float(gen._slope(gen.maker(p.network), w, head, labels, inputs) @ v) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", NETWORKED)
def test_traffic_on_networks_by_hand(name):
    """The model each way; FedGen: three counts of 4 bytes up, from the second round on the generator and p down."""
    p = images()
    history = run(NETWORKED[name], p, 3, sampled=2, metrics=())
    up, down = 2 * 8 * p.d, [2 * 8 * p.d] * 3
    if name == "FedGen":
        made = (3 + 3) * 7 + 7 + 7 * 64 + 64
        up, down = up + 2 * 3 * 4, [down[0], down[1] + 16 * (made + 3), down[2] + 16 * (made + 3)]
        counts = play_round(FedGen(0.1, 3, **SMALL_GEN), p, on(name, p, 1)[0], p.clients, Key(1))[1].c
        assert counts.dtype == torch.int32
        assert counts.sum(1).tolist() == [12] * 4
    assert history["up_bytes"] == [0, up, 2 * up, 3 * up]
    assert history["down_bytes"] == [0, down[0], sum(down[:2]), sum(down)]


def softmax(a):
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Perceptron:
    """One hidden layer in NumPy: PyTorch's order of weights."""

    def __init__(self, x, inputs, outputs):
        width = (len(x) - outputs) // (inputs + 1 + outputs)
        cuts = np.cumsum([width * inputs, width, outputs * width])
        W, self.a, V, self.b = np.split(np.asarray(x), cuts)
        self.W, self.V = W.reshape(width, inputs), V.reshape(outputs, width)

    def features(self, X):
        return np.maximum(X @ self.W.T + self.a, 0)

    def logits(self, h):
        return h @ self.V.T + self.b

    def slope(self, X, d_logits, d_features=0.0):
        """Backpropagation by hand."""
        h = self.features(X)
        d = (d_logits @ self.V + d_features) * (h > 0)
        return np.concatenate([(d.T @ X).ravel(), d.sum(0), (d_logits.T @ h).ravel(), d_logits.sum(0)])


def moon_term(a, X, labels, y, x, previous, draw):
    """d(mu l_con)/dy: sigma(s_p - s_g) (grad s_p - grad s_g), with grad cos(z, u) = u/|z||u| - cos z/|z|^2."""
    z, total = y.features(X), 0
    sims, grads = [], []
    for other in (x, previous):
        u = other.features(X)
        norms = np.linalg.norm(z, axis=1, keepdims=True), np.linalg.norm(u, axis=1, keepdims=True)
        cos = (z * u).sum(1, keepdims=True) / (norms[0] * norms[1])
        sims.append(cos / a.temperature)
        grads.append((u / (norms[0] * norms[1]) - cos * z / norms[0] ** 2) / a.temperature)
    total = (grads[1] - grads[0]) / (1 + np.exp(sims[0] - sims[1]))
    return y.slope(X, np.zeros((len(X), 3)), a.mu * total / len(X))


def ntd_term(a, X, labels, y, x, previous, draw):
    """d(beta KL(q_g || q_l))/d logits = beta (q_l - q_g) / tau on the classes that are not true."""
    d = np.zeros((len(X), 3))
    mine, world = y.logits(y.features(X)), x.logits(x.features(X))
    for j, label in enumerate(labels):
        rest = [c for c in range(3) if c != label]
        d[j, rest] = (softmax(mine[j, rest] / a.temperature) - softmax(world[j, rest] / a.temperature)) / a.temperature
    return y.slope(X, a.beta * d / len(X))


def gen_term(a, X, labels, y, x, previous, draw):
    """d(reg CE(g(z), yhat))/d head, z made from the generator."""
    if draw is None:
        return 0
    z, target = draw
    d = (softmax(y.logits(z)) - np.eye(3)[target]) / len(z)
    zeros = np.zeros(y.W.size + y.a.size)
    return a.reg * np.concatenate([zeros, (d.T @ z).ravel(), d.sum(0)])


def drawn(a, p, steps, key):
    """Labels from p, then noise, from one generator."""
    g = key.generator()
    labels = torch.multinomial(torch.as_tensor(p), steps * a.generated, True, generator=g).view(steps, a.generated)
    eps = torch.randn(steps, a.generated, a.noise, generator=g, dtype=torch.float64).numpy()
    return labels.numpy(), np.concatenate([eps, np.eye(3)[labels.numpy()]], 2)


def on_networks(problem, a, S, root, term):
    """FedAvg with a term of its own in the loss; FedGen's server trains its generator with the mean of all logits."""
    x, own = problem.start().numpy(), {}
    width = 3 + a.noise if isinstance(a, FedGen) else 0
    w = a.maker(problem.network).init(root.fold("w")).numpy() if width else None
    m, v, steps, p = 0, 0, 0, None
    for t in range(4):
        key, ends, counts = root.fold("round", t), {}, np.zeros(3)
        for i in chosen(problem, S, key):
            y, draws = x, [None] * a.local_steps
            if p is not None:
                labels, inputs = drawn(a, p, a.local_steps, key.fold("generated", i))
                G = Perceptron(w, width, 64)
                draws = [(G.logits(G.features(step)), yhat) for step, yhat in zip(inputs, labels)]
            for sample, draw in zip(samples_of(problem, i, a.local_steps, key), draws):
                X, labels = problem.images[sample.index[0]].flatten(1).numpy(), problem.labels[sample.index[0]].numpy()
                net, nets = Perceptron(y, 36, 3), [Perceptron(z, 36, 3) for z in (x, own.get(i, x))]
                d = (softmax(net.logits(net.features(X))) - np.eye(3)[labels]) / len(X)
                y = y - a.lr * (net.slope(X, d) + term(a, X, labels, net, *nets, draw))
                counts += np.bincount(labels, minlength=3)
            ends[i] = own[i] = y
        share = {i: len(problem.parts[i]) / sum(len(problem.parts[j]) for j in ends) for i in ends}
        x = sum(share[i] * ends[i] for i in ends)
        if width:
            p = counts / counts.sum()
            labels, inputs = drawn(a, p, a.server_steps, key.fold("generator"))
            for yhat, batch in zip(labels, inputs):
                G, heads = Perceptron(w, width, 64), {i: Perceptron(ends[i], 36, 3) for i in ends}
                z = G.logits(G.features(batch))
                mean = sum(share[i] * heads[i].logits(z) for i in ends)
                V = sum(share[i] * heads[i].V for i in ends)
                g = G.slope(batch, (softmax(mean) - np.eye(3)[yhat]) @ V / len(z))
                m, v, steps = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2, steps + 1
                w = w - a.generator_lr * (m / (1 - 0.9**steps)) / (np.sqrt(v / (1 - 0.999**steps)) + 1e-8)
        yield x, w


@pytest.mark.parametrize(
    ("algorithm", "term"),
    [
        (MOON(0.1, 3, 2.0, weighted=True), moon_term),
        (FedNTD(0.1, 3, 2.0, 1.5, weighted=True), ntd_term),
        (FedGen(0.1, 3, 2.0, **SMALL_GEN, weighted=True), gen_term),
    ],
)
@pytest.mark.parametrize("sampled", [4, 2])
def test_transcript_on_networks(algorithm, term, sampled):
    p = images()
    theirs = on_networks(p, algorithm, sampled, Key(11), term)
    for (x, w), state in zip(theirs, on(algorithm, p, 4, sampled=sampled, seed=11), strict=True):
        assert np.linalg.norm(state.server.x.numpy() - x) <= 1e-10 * np.linalg.norm(x)
        if w is not None:
            assert np.linalg.norm(state.server.generator.w.numpy() - w) <= 1e-10 * np.linalg.norm(w)


# Costs, private state, bad input


@pytest.mark.parametrize("name", REGULARISED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_traffic_by_hand(name, dtype):
    """d = 12 numbers up; down the model, and with FedDC its c."""
    problem, b = quadratic(dtype=dtype), dtype.itemsize
    history = run(ALGORITHMS[name], problem, 3, sampled=2)
    assert history["up_bytes"] == [0, 24 * b, 48 * b, 72 * b]
    down = 48 * b if name.startswith("FedDC") else 24 * b
    assert history["down_bytes"] == [0, down, 2 * down, 3 * down]
    assert run(FedDC(ETA, K, 2.0, "none"), problem, 1, sampled=2)["down_bytes"][-1] == 24 * b


@pytest.mark.parametrize("name", ["FedDyn", "FedDC", "FedDC update"])
def test_absent_clients_keep_their_state(name):
    algorithm, problem, root = ALGORITHMS[name], regression(), Key(0)
    state = algorithm.init(problem, start(problem), root)
    state = play_round(algorithm, problem, state, problem.clients, root.fold("round", 0))[0]
    before = [leaf.clone() for leaf in leaves(state.own)]
    state = play_round(algorithm, problem, state, torch.tensor([1, 4]), root.fold("round", 1))[0]
    for old, new in zip(before, leaves(state.own), strict=True):
        assert torch.equal(old[[0, 2, 3]], new[[0, 2, 3]])
        assert not torch.equal(old[[1, 4]], new[[1, 4]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: FedProx(0.0, 2, 0.1), "lr=0.0"),
        (lambda: FedProx(0.1, 0, 0.1), "local_steps=0"),
        (lambda: FedProx(0.1, 2, -0.1), "mu=-0.1"),
        (lambda: FedProx(0.1, 2, 0.1, 1), "weighted=1"),
        (lambda: FedDyn(-1.0, 2, 0.1), "lr=-1.0"),
        (lambda: FedDyn(0.1, 2.0, 0.1), "local_steps=2.0"),
        (lambda: FedDyn(0.1, 2, 0.0), "alpha=0.0"),
        (lambda: FedDC("1", 2, 0.1), "lr='1'"),
        (lambda: FedDC(0.1, True, 0.1), "local_steps=True"),
        (lambda: FedDC(0.1, 2, -1), "alpha=-1"),
        (lambda: FedDC(0.1, 2, 1.0, "both"), "correction='both'"),
        (lambda: MOON(0.1, 2, -1.0), "mu=-1.0"),
        (lambda: MOON(0.1, 2, 1.0, 0.0), "temperature=0.0"),
        (lambda: MOON(0.1, 2, 1.0, weighted="yes"), "weighted='yes'"),
        (lambda: FedNTD(0.1, 2, -1.0), "beta=-1.0"),
        (lambda: FedNTD(0.1, 2, 1.0, -1.0), "temperature=-1.0"),
        (lambda: FedNTD(0.1, 0), "local_steps=0"),
        (lambda: FedGen(0.1, 2, -1.0), "reg=-1.0"),
        (lambda: FedGen(0.1, 2, server_steps=0), "server_steps=0"),
        (lambda: FedGen(0.1, 2, generator_lr=0.0), "generator_lr=0.0"),
        (lambda: FedGen(0.1, 2, generated=0), "generated=0"),
        (lambda: FedGen(0.1, 2, noise=0), "noise=0"),
        (lambda: FedGen(0.1, 2, hidden=1.5), "hidden=1.5"),
        (lambda: FedGen(0.1, 2, diversity=-0.1), "diversity=-0.1"),
        (lambda: run(MOON(0.1, 2, 1.0), quadratic(), 1), "problem='Quadratic'"),
        (lambda: run(FedNTD(0.1, 2), regression(), 1), "problem='MatrixRegression'"),
        (lambda: run(FedGen(0.1, 2), PROBLEMS["logistic"](), 1), "problem='LogisticRegression'"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for part in (words, "expected", "Fix: "):
        assert part in str(caught.value)
