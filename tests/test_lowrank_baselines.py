"""FedHM, FlexLoRA, FedLoRU, FedFTG, projected FedAvg: their texts in NumPy, their laws, their bytes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from cases import TWO_LAYERS, last, quadratic, regression, relative, rounds, start
from each import each
from test_transcripts import chosen, gradient, samples_of, unvec, vec

from fedtheory import (
    FedAvg,
    FedFTG,
    FedHM,
    FedMUD,
    FlexLoRA,
    ImageClassification,
    Key,
    Layer,
    Layout,
    ProjectedFedAvg,
    play_round,
    run,
)
from fedtheory.algorithms.flexlora import Tailored
from fedtheory.core.engine import drain
from fedtheory.core.message import ONE, Cost, cost
from fedtheory.maps.decomposition import Hadamard, Kronecker, LowRank
from fedtheory.problems.models.networks import network

T, SEED = 12, 11
TALL = Layout((Layer("first", 6, 4), Layer("second", 5, 1)))
PROBLEMS = {
    "regression": lambda **_: regression(),
    "quadratic": lambda **_: quadratic(sigma=0.3),
    "two layers": lambda: quadratic(layout=TWO_LAYERS),
    "tall": lambda: quadratic(layout=TALL, sigma=0.3),
}


def weighed(problem):
    problem.weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64) / 15
    return problem


def shares(problem, a, ids):
    p = [float(problem.weights[i]) if a.weighted else 1.0 for i in ids]
    return [one / sum(p) for one in p]


# The texts, in NumPy: matrices M = W^T (m x n) as `decomposition` names them, clients and layers one at a time.


def transposed(x, problem):
    return [W.T for W in unvec(x, problem)]


def flat(layers):
    return vec([M.T for M in layers])


def slope(problem, i, sample, M):
    return [G.T for G in gradient(problem, i, sample, [W.T for W in M])]


def rank_of(decomposition, M):
    m, n = M.shape
    return max(1, int(np.ceil(decomposition.ratio * m * n / (m + n))))


def train(problem, i, a, key, W, UV, decay=0.0):
    """Gradient descent on the factors of W + U V^T, layer by layer."""
    for sample in samples_of(problem, i, a.local_steps, key):
        M = [base + U @ V.T for base, (U, V) in zip(W, UV)]
        G = [g + decay * w for g, w in zip(slope(problem, i, sample, M), M)]
        UV = [(U - a.lr * g @ V, V - a.lr * g.T @ U) for g, (U, V) in zip(G, UV)]
    return UV


def fedhm(problem, a, S, root, x):
    M = transposed(x, problem)
    for t in range(T):
        key, factors, total = root.fold("round", t), [], [0 * W for W in M]
        for W in M:
            U, s, Vt = np.linalg.svd(W)
            r = rank_of(a.decomposition, W)
            factors.append((U[:, :r] * np.sqrt(s[:r]), Vt[:r].T * np.sqrt(s[:r])))
        ids = chosen(problem, S, key)
        for i, p in zip(ids, shares(problem, a, ids)):
            UV = train(problem, i, a, key, [0 * W for W in M], factors, a.decay)
            total = [old + p * U @ V.T for old, (U, V) in zip(total, UV)]
        M = total
        yield flat(M)


def drawn(D, problem, lora=False):
    """U, V of every layer at the start of a `LowRank`; of LoRA V, the inputs' side, is drawn and comes first."""
    pairs, at = [], 0
    for layer, part in zip(problem.layout.layers, D.parts):
        m, n = (layer.rows, layer.cols) if lora else (layer.cols, layer.rows)
        r = part.size // (m + n)
        u, at = D.start[at : at + part.size].numpy(), at + part.size
        pairs.append((u[: m * r].reshape(m, r), u[m * r :].reshape(n, r)))
    return pairs


def adapted(D, problem):
    """A (r x in) and B (out x r) of every layer at the start of a `LowRank` in its form "lora"."""
    return [(A.T, B) for A, B in drawn(D, problem, lora=True)]


def flexlora(problem, a, S, root, x):
    """Each client's factors have the shape of its own rank: there is no padding here."""
    base = transposed(x, problem)
    largest = max(a.decompositions, key=lambda one: one.ratio)
    start = drawn(largest.draw(problem.layout, root.fold("D"), torch.float64), problem, lora=True)
    factors = [(U, V) for V, U in start]
    for t in range(T):
        key, delta = root.fold("round", t), [0 * W for W in base]
        ids = chosen(problem, S, key)
        for i, p in zip(ids, shares(problem, a, ids)):
            own = a.decompositions[i % len(a.decompositions)]
            r = [rank_of(own, W) for W in base]
            cut = [(U[:, :k], V[:, :k]) for k, (U, V) in zip(r, factors)]
            delta = [old + p * U @ V.T for old, (U, V) in zip(delta, train(problem, i, a, key, base, cut))]
        factors = []
        for W in delta:
            U, s, Vt = np.linalg.svd(W, full_matrices=False)
            factors.append((U * s**a.share, Vt.T * s ** (1 - a.share)))
        yield flat([W + change for W, change in zip(base, delta)])


def fedloru(problem, a, S, root, x):
    """Park and Klabjan: alpha A B on a frozen W; A and B are averaged, and every tau rounds W <- W + alpha A B.

    `a` is FedMUD at rate alpha eta; its draws are sqrt(alpha) A, here with alpha = 2.
    """
    alpha, tau, eta = 2.0, a.reset_every, a.lr / 2.0
    W, key = transposed(x, problem), root
    for t in range(T):
        if t % tau == 0:
            D = a.decomposition.draw(problem.layout, key.fold("D"), torch.float64)
            AB = [(U / np.sqrt(alpha), V) for U, V in drawn(D, problem)]
        key, ends = root.fold("round", t), []
        for i in chosen(problem, S, key):
            own = AB
            for sample in samples_of(problem, i, a.local_steps, key):
                G = slope(problem, i, sample, [w + alpha * A @ B.T for w, (A, B) in zip(W, own)])
                own = [(A - eta * alpha * g @ B, B - eta * alpha * g.T @ A) for g, (A, B) in zip(G, own)]
            ends.append(own)
        AB = [tuple(sum(end[j][f] for end in ends) / S for f in (0, 1)) for j in range(len(W))]
        if (t + 1) % tau == 0:
            W = [w + alpha * A @ B.T for w, (A, B) in zip(W, AB)]
            yield flat(W)
        else:
            yield flat([w + alpha * A @ B.T for w, (A, B) in zip(W, AB)])


def projected(problem, a, S, root, x):
    x, P = unvec(x, problem), []
    for t in range(T):
        key, change = root.fold("round", t), [0 * W for W in x]
        full = t % a.period == 0
        ids = chosen(problem, S, key)
        for i, p in zip(ids, shares(problem, a, ids)):
            y = x
            for sample in samples_of(problem, i, a.local_steps, key):
                G = gradient(problem, i, sample, y)
                y = [W - a.lr * (g if full else Q @ Q.T @ g) for W, g, Q in zip(y, G, P or G)]
            change = [old + p * (W - w) for old, W, w in zip(change, y, x)]
        if full:
            P = [np.eye(len(W)) if W.shape[1] == 1 else np.linalg.svd(W)[0][:, : a.rank] for W in change]
        x = [w + step for w, step in zip(x, change)]
        yield vec(x)


def fedftg(problem, a, S, root, x):
    """GaLore, Algorithm 2, at every client: its own P, moments and count of steps. The shorter side is projected."""
    x, memory = unvec(x, problem), {}
    for t in range(T):
        key, change = root.fold("round", t), [0 * W for W in x]
        ids = chosen(problem, S, key)
        for i, p in zip(ids, shares(problem, a, ids)):
            y, mine = x, memory.setdefault(i, {"t": 0, "P": {}, "M": {}, "V": {}})
            for sample in samples_of(problem, i, a.local_steps, key):
                due, y_next = mine["t"] % a.period == 0, []
                mine["t"] += 1
                for j, (W, G) in enumerate(zip(y, gradient(problem, i, sample, y))):
                    wide, whole = W.shape[0] < W.shape[1], 1 in W.shape
                    G = G if wide else G.T
                    if due and not whole:
                        U = np.linalg.svd(G)[0][:, : a.rank]
                        mine["P"][j] = U * [np.sign(u[np.argmax(np.abs(u))]) for u in U.T]
                    P = np.eye(len(G)) if whole else mine["P"][j]
                    step = R = P.T @ G
                    if a.optimizer == "adam":
                        M = mine["M"][j] = a.beta1 * mine["M"].get(j, 0) + (1 - a.beta1) * R
                        V = mine["V"][j] = a.beta2 * mine["V"].get(j, 0) + (1 - a.beta2) * R**2
                        M, V = M / (1 - a.beta1 ** mine["t"]), V / (1 - a.beta2 ** mine["t"])
                        step = M / (np.sqrt(V) + a.eps)
                    G = (1.0 if whole else a.alpha) * P @ step
                    y_next.append(W - a.lr * (G if wide else G.T))
                y = y_next
            change = [old + p * (W - w) for old, W, w in zip(change, y, x)]
        x = [w + step for w, step in zip(x, change)]
        yield vec(x)


def compare(text, algorithm, problem, S):
    x0 = start(problem)
    theirs = text(problem, algorithm, S, Key(SEED), x0.numpy())
    for x, (_, state) in zip(theirs, rounds(algorithm, problem, T, sampled=S, seed=SEED, x0=x0), strict=True):
        assert np.linalg.norm(state.server.x.numpy() - x) <= 1e-10 * np.linalg.norm(x)
    assert relative(state.server.x, x0) > 0.05, "the trajectory should go somewhere"


def low(ratio, **options):
    return LowRank(ratio, 1.0, layers="all", **options)


def lora(ratio, **options):
    return low(ratio, **{"form": "lora"} | options)


TEXTS = {
    "FedHM": (fedhm, FedHM(0.05, 3, low(0.5))),
    "FedHM decay": (fedhm, FedHM(0.05, 3, low(1.0), 0.2, weighted=True)),
    "FlexLoRA": (flexlora, FlexLoRA(0.02, 3, (lora(1.0), lora(0.3)))),
    "FlexLoRA share": (flexlora, FlexLoRA(0.05, 3, (lora(0.3), lora(0.7), lora(1.0)), 0.5, weighted=True)),
    "FedLoRU": (fedloru, FedMUD(0.04, 3, low(0.5), reset_every=3)),
    "FedFTG": (fedftg, FedFTG(0.02, 3, 2, 4)),
    "FedFTG one step": (fedftg, FedFTG(0.05, 1, 1, 2, 0.5, beta1=0.5, beta2=0.9)),
    "FedFTG SGD": (fedftg, FedFTG(0.05, 3, 1, 5, 1.0, "sgd", weighted=True)),
    "projected": (projected, ProjectedFedAvg(0.05, 3, 2, 4)),
    "projected weighted": (projected, ProjectedFedAvg(0.05, 3, 1, 2, weighted=True)),
}


@pytest.mark.parametrize("name", TEXTS)
@each(problem=PROBLEMS, S=[5, 3])
def test_transcript(name, problem, S):
    compare(*TEXTS[name], weighed(PROBLEMS[problem]()), S)


# FedHM


def sent(algorithm, problem, x):
    """What a client makes of FedHM's first message: (d,)."""
    down = algorithm.broadcast(algorithm.init(problem, x, Key(0)).server, Key(1))
    return down.D.value.update(down.u)


@pytest.mark.parametrize("kernel", [None, 3])
def test_a_client_of_fedhm_starts_at_the_nearest_model_of_its_rank(kernel):
    """Eckart and Young: the squared distance is the sum of the squared singular values that were cut off."""
    layout = Layout((Layer("0.conv", 6, 9), Layer("1.bias", 4, 1), Layer("2.linear", 5, 4)))
    problem, decomposition = quadratic(layout=layout), LowRank(0.5, layers="matrices", kernel=kernel)
    x = start(problem)
    D = decomposition.draw(layout, Key(0), torch.float64)
    kept = sent(FedHM(0.1, 1, decomposition), problem, x)
    for j, where in enumerate(layout.slices):
        gap = (kept - x)[where]
        if j == 1:
            assert not gap.any(), "a vector stays whole"
            continue
        layer = layout.layers[j]
        r = D.parts[j].size // (layer.rows + layer.cols)
        M = x[where].view(layer.cols, layer.rows)
        if kernel and j == 0:
            M = x[where].view(3, 2, 3, 3).transpose(1, 2).reshape(9, 6)
        tail = torch.linalg.svdvals(M)[r:]
        assert len(tail) > 0
        torch.testing.assert_close(gap.square().sum(), tail.square().sum(), rtol=1e-11, atol=0)


@pytest.mark.parametrize("problem", ["regression", "two layers"])
def test_at_full_rank_fedhm_loses_nothing_and_moves_along_the_factors(problem):
    """r = min(m, n): the clients start at x, and a small step is -eta (G (M^T M)^(1/2) + (M M^T)^(1/2) G)."""
    problem, eta = PROBLEMS[problem](), 1e-6
    x = start(problem)
    assert relative(sent(FedHM(0.1, 1, low(1.0)), problem, x), x) < 1e-13
    problem.batch = None
    moved = last(FedHM(eta, 1, low(1.0)), problem, 1, x0=x).server.x - x
    wanted = []
    for M, G in zip(transposed(x.numpy(), problem), transposed(problem.grad(x).numpy(), problem)):
        U, s, Vt = np.linalg.svd(M, full_matrices=False)
        wanted.append(-eta * (G @ (Vt.T * s) @ Vt + (U * s) @ U.T @ G))
    assert np.linalg.norm(moved.numpy() - flat(wanted)) < 1e-4 * np.linalg.norm(flat(wanted))


def test_fedhm_averages_products_not_factors():
    problem = quadratic()
    algorithm, x = FedHM(0.1, 5, low(0.5)), start(problem)
    state = algorithm.init(problem, x, Key(0))
    D = state.server.D.value
    state, up, _ = play_round(algorithm, problem, state, problem.clients, Key(1))
    assert relative(state.server.x, D.update(up.u).mean(0)) < 1e-14
    assert relative(D.update(up.u.mean(0)), state.server.x) > 1e-3


def test_a_layer_that_is_zero_is_no_trap():
    """U = V = 0 would be a saddle. One factor is drawn, and the clients still start at the zero model."""
    problem, algorithm = quadratic(), FedHM(0.1, 3, low(0.5))
    zero = torch.zeros(problem.d, dtype=torch.float64)
    assert torch.equal(sent(algorithm, problem, zero), zero)
    assert float(last(algorithm, problem, 5, x0=zero).server.x.norm()) > 0.1


# FlexLoRA


@pytest.mark.parametrize("problem", ["regression", "two layers", "tall"])
def test_at_full_rank_flexlora_redistributes_the_average_exactly(problem):
    """Equal ranks r = min(m, n): all clients start a round at the server's model. At a lower rank they do not."""
    gaps = {}
    for ratio in (1.0, 0.2):
        lr = 0.02 if problem == "regression" else 0.05
        problem_, algorithm = PROBLEMS[problem](), FlexLoRA(lr, 3, (lora(ratio),))
        if problem == "tall":
            algorithm = FlexLoRA(0.05, 3, (replace(lora(ratio), layers="matrices"),))
        gaps[ratio] = 0.0
        for _, state in rounds(algorithm, problem_, 6, sampled=3):
            down = algorithm.broadcast(state.server, Key(1))
            begun = down.base.value + down.adapters.value.D.update(down.u.value)
            gaps[ratio] = max(gaps[ratio], relative(begun, state.server.x))
    full = problem != "tall"  # at ratio 1 a 4 x 6 matrix has rank 3 of 4
    assert (gaps[1.0] < 1e-13) == full
    assert gaps[0.2] > 1e-3


def test_a_client_makes_its_adapters_of_what_it_was_charged():
    """Its q_i numbers, in the places that the marks name, are all that `client` reads; and it sends no more back."""
    problem = quadratic(layout=TALL)
    algorithm = FlexLoRA(0.05, 3, (lora(1.0), lora(0.3)))
    state = last(algorithm, problem, 2)
    key = Key(0).fold("round", 2)
    down = algorithm.broadcast(state.server, key)
    kept = algorithm.kept(TALL)
    assert kept.sum(1).tolist() == [(4 + 6) * 3 + 6, (4 + 6) * 1 + 6]
    for i in range(problem.n):
        own = kept[i % 2]
        charged = cost(down.u, ONE, [i])
        assert charged == Cost(int(own.sum()), 8 * int(own.sum()))
        u = torch.full_like(down.u.value, 7.0)
        u[own] = down.u.value[own]  # what crossed; the rest could be anything
        one = torch.tensor([i])
        up, _ = drain(algorithm.client(problem, one, None, down, key))
        again, _ = drain(algorithm.client(problem, one, None, replace(down, u=Tailored(u, down.u.prices)), key))
        assert torch.equal(up.rows, again.rows)
        assert not up.rows[0, ~own].any()
        assert cost(up) == charged
    with pytest.raises(ValueError, match="clients"):
        cost(down.u)


def test_traffic_of_flexlora_by_hand():
    """Kinds 0, 1, 0, 1, 0 with q = 16 and q = 8 numbers; the frozen 12 numbers once for each client."""
    problem, seen = quadratic(), set()
    algorithm = FlexLoRA(0.05, 3, (lora(1.0), lora(0.3)))
    history, down, up = run(algorithm, problem, 9, sampled=2), 0, 0
    for t, (clients, _) in enumerate(rounds(algorithm, problem, 9, sampled=2)):
        for i in clients.tolist():
            q = (16, 8)[i % 2]
            down, up = down + 8 * (q + (0 if i in seen else 12)), up + 8 * q
            seen.add(i)
        assert (history["down_bytes"][t + 1], history["up_bytes"][t + 1]) == (down, up)


# FedLoRU


def test_every_accumulation_adds_its_rank():
    """After k cycles x - W_0 has rank (k + 1) r, until the matrix is full: 8 x 6, r = 1."""
    problem = quadratic(layout=Layout.single(8, 6), spectrum=(0.5, 1.0))
    algorithm = FedMUD(0.1, 3, LowRank(1 / 8, 1.0, layers="all"), reset_every=2)
    x0 = start(problem)
    for t, (_, state) in enumerate(rounds(algorithm, problem, 14, x0=x0)):
        values = torch.linalg.svdvals((state.server.x - x0).view(6, 8))
        assert int((values > 1e-10 * values[0]).sum()) == min(t // 2 + 1, 6)


# FedFTG


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("S", [5, 3])
def test_galore_with_sgd_at_full_rank_is_fedavg(problem, S):
    """P P^T = I, whatever gradient P came from."""
    problem = weighed(PROBLEMS[problem]())
    wanted = last(FedAvg(0.05, 3, weighted=True), problem, T, sampled=S).server.x
    full = last(FedFTG(0.05, 3, 99, 2, 1.0, "sgd", weighted=True), problem, T, sampled=S).server.x
    assert relative(full, wanted) < 1e-13


def test_a_client_stays_in_the_best_subspace_of_the_gradient_that_gave_it():
    """rank r of its change until the period ends; P holds the r largest singular values of its first gradient."""
    problem, algorithm = quadratic(layout=Layout.single(8, 6)), FedFTG(0.1, 4, 2, 4)
    x, key = start(problem), Key(3)
    state = algorithm.init(problem, x, key)
    steps = list(algorithm.client(problem, problem.clients, state.own, algorithm.broadcast(state.server, key), key))
    first = problem.layout.matrices(problem.grads(x.expand(5, -1), problem.draw(problem.clients, 1, key.fold("xi"))[0]))
    for i, end in enumerate(problem.layout.matrices(steps[-1] - x)[0]):
        assert int(torch.linalg.matrix_rank(end, rtol=1e-10)) == 2
        U = torch.linalg.svd(first[0][i].mT)[0][:, :2]  # six columns: the shorter side
        assert relative(end @ U @ U.T, end) < 1e-12
    frames = [torch.linalg.svd(one.mT)[0][:, :2] for one in first[0]]
    assert relative(frames[0] @ frames[0].T, frames[1] @ frames[1].T) > 0.1, "clients move in subspaces of their own"


@pytest.mark.parametrize("rank", [1, 2])
def test_traffic_and_memory_of_fedftg_by_hand(rank):
    """Models cross whole, 12 numbers. A client keeps 2 r of P, twice 6 r of moments, and its count of steps."""
    problem, algorithm = quadratic(), FedFTG(0.05, 3, rank)
    history = run(algorithm, problem, 4, sampled=3)
    assert (history["up_bytes"][-1], history["down_bytes"][-1]) == (4 * 3 * 12 * 8, 4 * 3 * 12 * 8)
    own = history.state.own
    assert [part[0].numel() for part in (own.P, own.M, own.V, own.t)] == [2 * rank, 6 * rank, 6 * rank, 1]


def test_moments_stay_with_their_client():
    """Who is not sampled keeps all it has; who is has made K steps more."""
    problem, algorithm = quadratic(), FedFTG(0.05, 3, 1, 2)
    before = None
    for clients, state in rounds(algorithm, problem, 6, sampled=2):
        if before:
            away = [i for i in range(5) if i not in clients.tolist()]
            assert all(torch.equal(getattr(state.own, f)[away], part[away]) for f, part in before.items())
            assert (state.own.t[clients] - before["t"][clients] == 3).all()
        before = {f: getattr(state.own, f).clone() for f in ("P", "M", "V", "t")}


# Projected FedAvg


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("S", [5, 3])
def test_at_full_rank_or_with_full_rounds_only_it_is_fedavg(problem, S):
    problem = weighed(PROBLEMS[problem]())
    wanted = last(FedAvg(0.05, 3, weighted=True), problem, T, sampled=S).server.x
    full = last(ProjectedFedAvg(0.05, 3, 99, 4, weighted=True), problem, T, sampled=S).server.x
    assert relative(full, wanted) < 1e-13
    always = last(ProjectedFedAvg(0.05, 3, 1, 1, weighted=True), problem, T, sampled=S).server.x
    assert relative(always, wanted) < 1e-15


def test_p_is_the_best_subspace_of_the_last_full_update():
    """It holds the r largest singular values of that update, and the model leaves it in full rounds only."""
    problem, algorithm = quadratic(layout=Layout.single(8, 6)), ProjectedFedAvg(0.05, 3, 2, 4)
    before, P = start(problem), None
    for t, (_, state) in enumerate(rounds(algorithm, problem, 12, sampled=3, x0=before)):
        change, (frame,) = (state.server.x - before).view(6, 8).T, state.server.frames
        if t % 4 == 0:
            P = frame
            torch.testing.assert_close(P.T @ P, torch.eye(2, dtype=torch.float64))
            best = torch.linalg.svdvals(change)[:2].square().sum()
            torch.testing.assert_close((P.T @ change).square().sum(), best)
        else:
            assert torch.equal(frame, P)
            assert relative(P @ (P.T @ change), change) < 1e-12
        before = state.server.x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("sampled", [5, 2])
def test_traffic_of_projected_fedavg_by_hand(dtype, rank, sampled):
    """d = 12 in 6 x 2, r = 2 `rank` numbers. Up: 12 in a full round, else r.

    Down: r for each round since the last, if those were projected rounds of this period; else, or if that is more,
    12, and P's 6 `rank` numbers with it in a projected round.
    """
    problem, algorithm, b = quadratic(dtype=dtype), ProjectedFedAvg(0.05, 3, rank, 4), dtype.itemsize
    history = run(algorithm, problem, 11, sampled=sampled)
    played = rounds(algorithm, problem, 11, sampled=sampled)
    seen, ups, downs = {}, [], []
    for t, (clients, _) in enumerate(played):
        full, down = t % 4 == 0, 0
        for i in clients.tolist():
            whole = 12 if full else 12 + 6 * rank
            begun = 4 * ((t - 1) // 4) + 1  # first projected round of the period that round t - 1 is in
            near = i in seen and seen[i] >= begun
            down += min(2 * rank * (t - seen[i]), whole) if near else whole
            seen[i] = t
        ups.append(b * len(clients) * (12 if full else 2 * rank))
        downs.append(b * down)
    assert [b - a for a, b in pairwise(history["up_bytes"])] == ups
    assert [b - a for a, b in pairwise(history["down_bytes"])] == downs


def test_a_client_rebuilds_the_model_from_the_steps_bit_for_bit():
    """From round 2 of a period on a client that holds x and P adds P b of every round since."""
    problem, algorithm = quadratic(layout=TALL), ProjectedFedAvg(0.05, 3, 2, 5)
    x, P, rebuilt = None, None, 0
    states = [algorithm.init(problem, start(problem), Key(0)), *(s for _, s in rounds(algorithm, problem, 14))]
    for t, state in enumerate(states):
        down = algorithm.broadcast(state.server, Key(1))
        if t > 1 and t % 5 != 1:  # the step of a projected round, to a client that was there
            x = x + P.lift(down.model.step)
            assert torch.equal(x, down.model.value[0])
            assert cost(down.model, [1]).scalars == 2 * 4 + 5
            rebuilt += 1
        x, P = down.model.value[0], P if down.P is None else down.P.value
    assert rebuilt == 11


# Networks, bad input


def images():
    g = Key(0).generator()
    x, y = torch.rand(40, 1, 8, 8, generator=g), torch.arange(40) % 10
    return ImageClassification(
        x, y, torch.arange(40).split(8), network("decomfl-mnist", (1, 8, 8), 10), Key(1), batch=4
    )


@pytest.mark.parametrize(
    "algorithm",
    [
        FedHM(0.1, 3, LowRank(0.5, layers="matrices")),
        FlexLoRA(0.1, 3, tuple(LowRank(ratio, 0.3, "lora", layers="matrices") for ratio in (0.5, 0.2))),
        FedFTG(0.01, 3, 4, 5),
        ProjectedFedAvg(0.1, 3, 4, 3),
    ],
    ids=lambda a: a.name,
)
def test_networks(algorithm):
    history = run(algorithm, images(), 3, sampled=3, every=3, metrics=("loss",))
    assert history["loss"][-1] < history["loss"][0]
    again = run(algorithm, images(), 3, sampled=3, every=3, metrics=("loss",), chunk=2)
    assert relative(again.x, history.x) < 1e-5


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FedHM(0.0, 1, low(0.5)), "lr=0.0"),
        (lambda: FedHM(0.1, 0, low(0.5)), "local_steps=0"),
        (lambda: FedHM(0.1, 1, Kronecker(0.5)), "decomposition=Kronecker"),
        (lambda: FedHM(0.1, 1, low(0.5, form="aad")), "decomposition=LowRank"),
        (lambda: FedHM(0.1, 1, low(0.5, random=True)), "decomposition=LowRank"),
        (lambda: FedHM(0.1, 1, low(0.5), -1.0), "decay=-1.0"),
        (lambda: FedHM(0.1, 1, low(0.5), weighted=1), "weighted=1"),
        (lambda: FlexLoRA(-0.1, 1, (lora(0.5),)), "lr=-0.1"),
        (lambda: FlexLoRA(0.1, True, (lora(0.5),)), "local_steps=True"),
        (lambda: FlexLoRA(0.1, 1, lora(0.5)), "decompositions=LowRank"),
        (lambda: FlexLoRA(0.1, 1, ()), "decompositions=()"),
        (lambda: FlexLoRA(0.1, 1, (lora(0.5), Hadamard(0.5))), "decompositions[1]=Hadamard"),
        (lambda: FlexLoRA(0.1, 1, (lora(0.5), LowRank(0.5))), "decompositions=(LowRank"),
        (lambda: FlexLoRA(0.1, 1, (lora(0.5, form="freeze"),)), "decompositions=(LowRank"),
        (lambda: FlexLoRA(0.1, 1, (lora(0.5, random=True),)), "decompositions=(LowRank"),
        (lambda: FlexLoRA(0.1, 1, (lora(0.5),), 1.5), "share=1.5"),
        (lambda: FlexLoRA(0.1, 1, (lora(0.5),), weighted=0), "weighted=0"),
        (lambda: FedFTG(0.1, 1, 0), "rank=0"),
        (lambda: FedFTG(0.1, 1, 1, 0), "period=0"),
        (lambda: FedFTG(0.1, 1, 1, alpha=0.0), "alpha=0.0"),
        (lambda: FedFTG(0.1, 1, 1, optimizer="adamw"), "optimizer='adamw'"),
        (lambda: FedFTG(0.1, 1, 1, beta1=1.0), "beta1=1.0"),
        (lambda: FedFTG(0.1, 1, 1, eps=0.0), "eps=0.0"),
        (lambda: FedFTG(0.1, 1, 1, weighted=1), "weighted=1"),
        (lambda: ProjectedFedAvg(np.inf, 1, 1), "lr=inf"),
        (lambda: ProjectedFedAvg(0.1, 1.5, 1), "local_steps=1.5"),
        (lambda: ProjectedFedAvg(0.1, 1, 0), "rank=0"),
        (lambda: ProjectedFedAvg(0.1, 1, 1, 0), "period=0"),
        (lambda: ProjectedFedAvg(0.1, 1, 1, weighted="p"), "weighted='p'"),
    ],
)
def test_bad_input(make, named):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert named in str(caught.value)
    assert "expected" in str(caught.value)
    assert "Fix:" in str(caught.value)
