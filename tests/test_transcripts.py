"""Each paper's algorithm box, written down a second time: loops over clients and steps, matrices, plain NumPy.

Nothing here is stacked or flattened, and no line of the package's algorithms is used. Only the draws are shared: client
ids, minibatches and bases come from the package's keys, whose paths are written out here. The law: package and
transcript walk the same trajectory, model and private states, to 1e-10 in every round.
"""
# ruff: noqa: E741 (l is the papers' layer index)

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import TWO_LAYERS, quadratic, regression, rounds, start
from each import each

from fedtheory import Coordinate, FedAvg, FedSub, Gaussian, Identity, Key, Quadratic, Scaffold, Spherical, run
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.core.loop import sample_clients

T, SEED = 6, 11
PROBLEMS = {
    "regression": lambda: regression(),
    "quadratic": lambda: quadratic(),
    "two layers": lambda: quadratic(layout=TWO_LAYERS, sigma=0.3),
}


def unvec(x, problem):
    """The layers W_l (m_l x d_l) of a flat vector: their columns, one after the other."""
    layers, at = [], 0
    for layer in problem.layout.layers:
        size = layer.rows * layer.cols
        layers.append(np.reshape(x[at : at + size], (layer.rows, layer.cols), order="F"))
        at += size
    return layers


def vec(layers):
    return np.concatenate([W.flatten(order="F") for W in layers])


def gradient(problem, i, sample, layers):
    """grad f_i(W; xi) by layer. Regression: A^T (A X - B) / b + lam X; quadratic: H_i (x - b_i) + xi."""
    if isinstance(problem, Quadratic):
        noise = 0 if sample.noise is None else sample.noise[0].numpy()
        return unvec(problem.H[i].numpy() @ (vec(layers) - problem.b[i].numpy()) + noise, problem)
    A, B, (X,) = sample.A[0].numpy(), sample.Bt[0].numpy().T, layers
    return [A.T @ (A @ X - B) / len(A) + problem.lam * X]


def samples_of(problem, i, steps, key):
    """xi_i^0, ..., xi_i^{steps-1}: the key of the round's minibatches is (..., "xi")."""
    return problem.draw(torch.tensor([i]), steps, key.fold("xi"))


def frames(projection, problem, key):
    """P_l (m_l x r_l) of every layer: the key of a projector is (..., "P")."""
    if isinstance(projection, Identity):
        return [np.eye(layer.rows) for layer in problem.layout.layers]
    basis = projection.draw(problem.layout, key.fold("P"), torch.float64)
    return [P.numpy() for P in basis.matrices()]


def chosen(problem, S, key):
    return sample_clients(problem.n, S, key.fold("clients")).tolist()


def fedavg(problem, a, S, root, x):
    """McMahan et al. 2017, Algorithm 1, batch by batch; n_k/n is the problem's client weight."""
    for t in range(T):
        key = root.fold("round", t)
        ends = {}
        for k in chosen(problem, S, key):
            w = x
            for sample in samples_of(problem, k, a.local_steps, key):
                g = gradient(problem, k, sample, w)
                w = [w[l] - a.lr * g[l] for l in range(len(w))]
            ends[k] = w
        share = {k: float(problem.weights[k]) if a.weighted else 1.0 for k in ends}
        m_t = sum(share.values())
        average = [sum(share[k] / m_t * ends[k][l] for k in ends) for l in range(len(x))]
        x = [x[l] + a.server_lr * (average[l] - x[l]) for l in range(len(x))]
        yield vec(x), None


def scaffold(problem, a, S, root, x):
    """Karimireddy et al. 2020, Algorithm 1."""
    L, N, K = range(len(x)), problem.n, a.local_steps
    c = [np.zeros_like(W) for W in x]
    c_i = [[np.zeros_like(W) for W in x] for _ in range(N)]
    for t in range(T):
        key = root.fold("round", t)
        dx, dc, sent = [0 * W for W in x], [0 * W for W in x], [0 * W for W in x]
        ids = chosen(problem, S, key)
        p = {i: float(problem.weights[i]) if a.weighted else 1 / N for i in ids}
        P = sum(p.values())
        for i in ids:
            y = x
            for sample in samples_of(problem, i, K, key):
                g = gradient(problem, i, sample, y)
                y = [y[l] - a.lr * (g[l] - c_i[i][l] + c[l]) for l in L]
            if a.option == "I":
                new = gradient(problem, i, problem.full(torch.tensor([i])), x)
            else:
                new = [c_i[i][l] - c[l] + (x[l] - y[l]) / (K * a.lr) for l in L]
            dx = [dx[l] + p[i] / P * (y[l] - x[l]) for l in L]
            dc = [dc[l] + p[i] * (new[l] - c_i[i][l]) for l in L]
            sent = [sent[l] + p[i] / P * new[l] for l in L]
            c_i[i] = new
        x = [x[l] + a.server_lr * dx[l] for l in L]
        c = [c[l] + dc[l] for l in L] if a.server_control == "all" else sent
        yield vec(x), np.stack([vec(mine) for mine in c_i])


def fedsub(problem, a, S, root, x):
    """FedSub, Algorithm 1. Beyond the print: P is kept for `refresh` rounds, S < n clients take part.

    An absent client carries its dual to the new projector ("rotate") or leaves its coordinates alone ("keep"); or line
    12 is run for it, too, with its last upload ("step"), which is carried along ("step turned"). The mean in the dual
    is over the participants, or over the last upload of every client ("stored").
    """
    a = FedSubReading(**vars(a)) if type(a) is FedSub else a
    L, n, tau, eta = range(len(x)), problem.n, a.local_steps, a.lr
    P = frames(a.projection, problem, root)
    r_m = [P[l].shape[1] / P[l].shape[0] for l in L]  # r/m, layer by layer
    zeros = [np.zeros((P[l].shape[1], x[l].shape[1])) for l in L]
    Lambda, latest = [zeros for _ in range(n)], [zeros for _ in range(n)]  # 1
    for k in range(T):  # 2
        key = root.fold("round", k)
        ids, B, U = chosen(problem, S, key), {}, {}
        for i in ids:  # 3
            B[i], U[i] = zeros, zeros  # 4
            for sample in samples_of(problem, i, tau, key):  # 5
                grad = gradient(problem, i, sample, [x[l] + P[l] @ B[i][l] for l in L])
                g = [r_m[l] * P[l].T @ grad[l] for l in L]
                B[i] = [B[i][l] - eta * (g[l] + Lambda[i][l] / (eta * tau)) for l in L]  # 6
                U[i] = [U[i][l] - eta * g[l] for l in L]
        sent = B if a.form == "printed" else U  # 8
        mean = [sum(sent[i][l] for i in ids) / S for l in L]  # 10
        latest = [sent.get(i, latest[i]) for i in range(n)]
        shared = mean if a.dual_mean == "participants" else [sum(one[l] for one in latest) / n for l in L]
        fresh = (k + 1) % a.refresh == 0 and not isinstance(a.projection, Identity)
        P_next = frames(a.projection, problem, key) if fresh else P
        for i in range(n if a.dual else 0):  # 11
            new, stepped = Lambda[i], i in ids or a.absent in ("step", "step turned")
            if stepped and a.form == "printed":
                new = [Lambda[i][l] + latest[i][l] - shared[l] for l in L]
            elif stepped:
                new = [latest[i][l] - shared[l] for l in L]
            if fresh and (stepped or a.absent == "rotate"):
                new = [P_next[l].T @ (P[l] @ new[l]) for l in L]  # 12
            Lambda[i] = new
            if fresh and a.absent == "step turned":
                latest[i] = [P_next[l].T @ (P[l] @ latest[i][l]) for l in L]
        x = [x[l] + P[l] @ mean[l] for l in L]  # 14
        P = P_next
        yield vec(x), np.stack([vec(dual) for dual in Lambda])


def ssf(problem, a, S, root, x):
    """SSF, Algorithm 1, its P (r x d) with orthonormal rows. Its sums over N run over the S participants.

    Server control "all" is written as what it means: the mean of the controls stored by all N clients.
    """
    L, N, K = range(len(x)), problem.n, a.local_steps
    P = [F.T for F in frames(a.projection, problem, root)]  # 1
    c, c_i = [0 * W for W in x], [[0 * W for W in x] for _ in range(N)]
    for t in range(T):  # 2
        key = root.fold("round", t)
        x_proj = [P[l] @ x[l] for l in L]  # 3
        x_res = [x[l] - P[l].T @ x_proj[l] for l in L]
        c_proj = [P[l] @ c[l] for l in L]
        c_res = [c[l] - P[l].T @ c_proj[l] for l in L]
        moved, total = [0 * b for b in x_proj], [0 * W for W in x]
        for i in chosen(problem, S, key):  # 4
            ci_proj = [P[l] @ c_i[i][l] for l in L]  # 5
            y_proj, G = x_proj, [0 * W for W in x]  # 6
            for sample in samples_of(problem, i, K, key):  # 7
                y = [P[l].T @ y_proj[l] + x_res[l] for l in L]  # 8
                g = gradient(problem, i, sample, y)  # 9
                y_proj = [y_proj[l] - a.lr * (P[l] @ g[l] - ci_proj[l] + c_proj[l]) for l in L]  # 10
                G = [G[l] + g[l] for l in L]
            c_i[i] = [(np.eye(len(x[l])) - P[l].T @ P[l]) @ c_i[i][l] + P[l].T @ P[l] @ G[l] / K for l in L]  # 12
            moved = [moved[l] + (x_proj[l] - y_proj[l]) / (a.lr * K) for l in L]
            total = [total[l] + P[l].T @ P[l] @ G[l] for l in L]
        x_proj = [x_proj[l] - a.server_lr * (a.lr * K / S) * moved[l] for l in L]  # 14
        x = [P[l].T @ x_proj[l] + x_res[l] for l in L]  # 15
        if a.server_control == "participants":
            c = [total[l] / (S * K) + c_res[l] for l in L]  # 16
        else:
            c = [sum(c_i[i][l] for i in range(N)) / N for l in L]
        if (t + 1) % a.refresh == 0:
            P = [F.T for F in frames(a.projection, problem, key)]  # 17
        yield vec(x), np.stack([vec(mine) for mine in c_i])


def compare(transcript, algorithm, problem, S):
    """Both trajectories, round by round; then the last model against `run`, bit for bit."""
    x0 = start(problem)
    theirs = transcript(problem, algorithm, S, Key(SEED), unvec(x0.numpy(), problem))
    ours = rounds(algorithm, problem, T, sampled=S, seed=SEED, x0=x0)
    moved = 0.0
    for t, ((x, own), (_, state)) in enumerate(zip(theirs, ours, strict=True)):
        gap = np.linalg.norm(state.server.x.numpy() - x) / np.linalg.norm(x)
        assert gap <= 1e-10, f"round {t}: the models differ by {gap:.1e}"
        if own is not None:
            mine = state.own.dual if isinstance(algorithm, FedSub) else state.own.c
            gap = np.linalg.norm(mine.numpy() - own) / max(np.linalg.norm(own), 1e-300)
            assert gap <= 1e-10, f"round {t}: the private states differ by {gap:.1e}"
        moved = np.linalg.norm(x - x0.numpy()) / np.linalg.norm(x0.numpy())
    assert moved > 0.1, "the trajectory should go somewhere"
    final = run(algorithm, problem, T, sampled=S, seed=SEED, x0=x0, every=T)
    assert torch.equal(final.x, state.server.x)


@each(problem=PROBLEMS, weighted=[False, True], S=[5, 3])
def test_fedavg(problem, weighted, S):
    compare(fedavg, FedAvg(0.05, 4, server_lr=0.9, weighted=weighted), weigh(PROBLEMS[problem]()), S)


def weigh(problem):
    """The same problem with unequal client weights."""
    problem.weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64) / 15
    return problem


@pytest.mark.parametrize("option", ["I", "II"])
@each(problem=PROBLEMS, server_control=["all", "participants"], S=[5, 3], weighted=[False, True])
def test_scaffold(problem, option, server_control, S, weighted):
    """Without weights (N/S) (1/N) is 1/S, as printed."""
    algorithm = Scaffold(0.05, 4, 0.9, option, server_control, weighted)
    compare(scaffold, algorithm, weigh(PROBLEMS[problem]()), S)


PROJECTIONS = {
    "CD": Coordinate(2),
    "CD signs": Coordinate(2, signs=True),
    "SS": Spherical(2),
    "RD": Gaussian(2),
    "I": Identity(),
}


@pytest.mark.parametrize("projection", PROJECTIONS)
@each(problem=PROBLEMS, form=["printed", "sums"], refresh=[1, 3])
def test_fedsub(problem, projection, form, refresh):
    algorithm = FedSub(0.05, 4, PROJECTIONS[projection], form=form)
    if refresh > 1:
        algorithm = FedSubReading(**vars(algorithm), refresh=refresh)
    compare(fedsub, algorithm, PROBLEMS[problem](), 5)


@each(problem=PROBLEMS, projection=PROJECTIONS)
def test_fedsub_without_dual(problem, projection):
    """With `Coordinate` this is the paper's FedAvg-CD."""
    compare(fedsub, FedSub(0.05, 4, PROJECTIONS[projection], dual=False), PROBLEMS[problem](), 5)


@pytest.mark.parametrize("absent", ["rotate", "keep", "step", "step turned"])
@each(problem=PROBLEMS, form=["printed", "sums"], dual_mean=["participants", "stored"], refresh=[1, 3])
def test_fedsub_partial_participation(problem, absent, form, dual_mean, refresh):
    """The paper has all clients take part; this is the reading stated in the class."""
    algorithm = FedSubReading(0.05, 4, Coordinate(2), refresh=refresh, absent=absent, form=form, dual_mean=dual_mean)
    compare(fedsub, algorithm, PROBLEMS[problem](), 3)


@pytest.mark.parametrize("projection", PROJECTIONS)
@each(problem=PROBLEMS)
def test_factored_steps(problem, projection):
    """Gradients evaluated on the subspace, x + P B never formed: the same trajectory."""
    problem, projection = PROBLEMS[problem](), PROJECTIONS[projection]
    compare(fedsub, FedSubReading(0.05, 4, projection, factored=True), problem, 5)
    if not isinstance(projection, Gaussian):
        compare(ssf, SSFReading(0.05, 4, replace(projection, scale="orthonormal"), factored=True), problem, 3)


@pytest.mark.parametrize("projection", [Spherical(2, "orthonormal"), Coordinate(2, "orthonormal"), Identity()])
@each(problem=PROBLEMS, server_control=["participants", "all"], S=[5, 3], refresh=[1, 3])
def test_ssf(problem, projection, server_control, S, refresh):
    algorithm = SSFReading(0.05, 4, projection, server_lr=0.9, server_control=server_control, refresh=refresh)
    compare(ssf, algorithm, PROBLEMS[problem](), S)
