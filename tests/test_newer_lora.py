"""RoLoRA, FFA-LoRA, FedEx-LoRA, FLoRA, FSLoRA: their texts in NumPy, their laws, their bytes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import ALGORITHMS, ETA, K, last, quadratic, relative, rounds, start
from each import each
from test_laws import close
from test_lowrank_baselines import (
    PROBLEMS,
    T,
    adapted,
    compare,
    flat,
    images,
    lora,
    low,
    shares,
    slope,
    transposed,
    weighed,
)
from test_transcripts import chosen, samples_of

from fedtheory import (
    FedExLoRA,
    FedMUD,
    FSLoRA,
    Key,
    Layer,
    Layout,
    MatrixRegression,
    Quadratic,
    RoLoRA,
    play_round,
    run,
)
from fedtheory.algorithms.fslora import Sketch
from fedtheory.core.message import cost
from fedtheory.maps.decomposition import Kronecker, LowRank


def adapters(decomposition, problem, key):
    """Each layer's A (r x in), drawn, and B (out x r) = 0."""
    return adapted(decomposition.draw(problem.layout, key.fold("D"), torch.float64), problem)


def fitted(problem, i, a, key, W, AB):
    """LoRA's local steps: both factors of W + B A, (out x in)."""
    for sample in samples_of(problem, i, a.local_steps, key):
        G = slope(problem, i, sample, [w + B @ A for w, (A, B) in zip(W, AB)])
        AB = [(A - a.lr * B.T @ g, B - a.lr * g @ A.T) for g, (A, B) in zip(G, AB)]
    return AB


def rolora(problem, a, S, root, x):
    """W + B A. In rounds of B's turn A is the same matrix for all clients, and the other way."""
    W, AB = transposed(x, problem), adapters(a.decomposition, problem, root)
    for t in range(T):
        key, new = root.fold("round", t), [[0, 0] for _ in W]
        turn = 0 if a.switch_every is None else t // a.switch_every % 2
        for i in chosen(problem, S, key):
            own = [list(pair) for pair in AB]
            for sample in samples_of(problem, i, a.local_steps, key):
                G = slope(problem, i, sample, [w + B @ A for w, (A, B) in zip(W, own)])
                for pair, g in zip(own, G):
                    A, B = pair
                    pair[:] = (A, B - a.lr * g @ A.T) if turn == 0 else (A - a.lr * B.T @ g, B)
            for mean, pair in zip(new, own):
                mean[:] = [old + one / S for old, one in zip(mean, pair)]
        AB = new
        yield flat([w + B @ A for w, (A, B) in zip(W, AB)])


def fedexlora(problem, a, S, root, x):
    """W += sum p_i B_i A_i - (sum p_i B_i)(sum p_i A_i); FLoRA: without the last, and each client draws its A."""
    W, AB = transposed(x, problem), adapters(a.decomposition, problem, root)
    anew = lambda i, key: adapted(a.decomposition.draw(problem.layout, key.fold("D", i), torch.float64), problem)
    for t in range(T):
        key = root.fold("round", t)
        ids = chosen(problem, S, key)
        ends = [fitted(problem, i, a, key, W, anew(i, key) if a.fresh else AB) for i in ids]
        p = shares(problem, a, ids)
        products = [sum(s * e[layer][1] @ e[layer][0] for s, e in zip(p, ends)) for layer in range(len(W))]
        AB = [tuple(sum(s * e[layer][j] for s, e in zip(p, ends)) for j in (0, 1)) for layer in range(len(W))]
        model = [w + P for w, P in zip(W, products)]
        W = model if a.fresh else [w - B @ A for w, (A, B) in zip(model, AB)]
        yield flat(model)


def fslora(problem, a, S, root, x):
    """A client's factors have rank k: there is no mask here. The model is W + (r/k) B A for it."""
    W, AB = transposed(x, problem), adapters(a.decomposition, problem, root)
    for t in range(T):
        key, new = root.fold("round", t), [[A.copy(), B.copy()] for A, B in AB]
        for i in chosen(problem, S, key):
            g, share = key.fold("sketch", i).generator(), a.shares[i % len(a.shares)]
            ranks = [len(A) for A, _ in AB]
            kept = [torch.randperm(r, generator=g)[: max(1, round(share * r))].numpy() for r in ranks]
            scale = [r / len(k) for r, k in zip(ranks, kept)]
            own = [(A[k], B[:, k]) for k, (A, B) in zip(kept, AB)]
            for sample in samples_of(problem, i, a.local_steps, key):
                G = slope(problem, i, sample, [w + c * B @ A for w, c, (A, B) in zip(W, scale, own)])
                own = [(A - a.lr * c * B.T @ g, B - a.lr * c * g @ A.T) for c, g, (A, B) in zip(scale, G, own)]
            for mean, k, (A, B), (old_A, old_B) in zip(new, kept, own, AB):
                mean[0][k] += (A - old_A[k]) / S
                mean[1][:, k] += (B - old_B[:, k]) / S
        AB = new
        yield flat([w + B @ A for w, (A, B) in zip(W, AB)])


TEXTS = {
    "RoLoRA": (rolora, RoLoRA(0.08, 3, lora(0.7))),
    "RoLoRA, three rounds": (rolora, RoLoRA(0.08, 3, lora(0.7), 3)),
    "FFA-LoRA": (rolora, RoLoRA(0.15, 3, lora(1.0), None)),
    "FedEx-LoRA": (fedexlora, FedExLoRA(0.05, 3, lora(0.5))),
    "FedEx-LoRA weighted": (fedexlora, FedExLoRA(0.05, 3, lora(0.7), weighted=True)),
    "FLoRA": (fedexlora, FedExLoRA(0.05, 3, lora(0.5), True)),
    "FSLoRA": (fslora, FSLoRA(0.03, 3, lora(1.0))),
    "FSLoRA shares": (fslora, FSLoRA(0.02, 3, lora(1.0), (0.5, 1.0, 0.1))),
}


@pytest.mark.parametrize("name", TEXTS)
@each(problem=PROBLEMS, S=[5, 3])
def test_transcript(name, problem, S):
    compare(*TEXTS[name], weighed(PROBLEMS[problem]()), S)


# Laws

EXACT = {
    "RoLoRA": RoLoRA(ETA, K, lora(0.5)),
    "FFA-LoRA": RoLoRA(ETA, K, lora(0.5), None),
    "FedEx-LoRA": FedExLoRA(ETA, K, lora(0.5)),
    "FLoRA": FedExLoRA(ETA, K, lora(0.5), True),
}


def models(algorithm, server, up):
    """What the uploads stand for: the clients' models, (S, d)."""
    if isinstance(algorithm, FedExLoRA):
        return server.base + server.D.value.update(up.u)
    D, split = server.frozen.D.value, up.u.shape[-1]
    u = server.u.expand(len(up.u), -1).clone()
    trained = [i for part, at in zip(D.parts, starts(D)) for i in half(algorithm, server, part, at)]
    assert len(trained) == split
    u[:, trained] = up.u
    return server.frozen.base + D.update(u)


def starts(D):
    return np.cumsum([0, *(part.size for part in D.parts)])[:-1].tolist()


def half(algorithm, server, part, at):
    """Positions in u of the factor whose turn it is: A (6 x r), then B (2 x r)."""
    size = part.size * 6 // 8
    mine = range(size) if algorithm.switch_every and server.t // algorithm.switch_every % 2 else range(size, part.size)
    return [at + i for i in mine]


@pytest.mark.parametrize("name", EXACT)
def test_the_model_is_the_mean_of_the_clients_models(name):
    """That averaged factors are not, FedMUD shows."""
    algorithm, problem = EXACT[name], quadratic()
    state = algorithm.init(problem, start(problem), Key(0))
    for t in range(6):
        before = state.server
        state, up, _ = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))
        close(state.server.x, models(algorithm, before, up).mean(0))
    mud = FedMUD(ETA, K, low(0.5), reset_every=None)
    state = mud.init(problem, start(problem), Key(0))
    new, up, _ = play_round(mud, problem, state, problem.clients, Key(0))
    whole = state.server.frozen.base + state.server.frozen.D.value.update(up.u)
    assert relative(new.server.x, whole.mean(0)) > 1e-4


MUD = FedMUD(ETA, K, low(1.0), reset_every=None)
ON_TRANSPOSED = {  # at rank 2 of a 2 x 6 matrix
    "FFA-LoRA": (RoLoRA(ETA, K, lora(1.0), None), replace(MUD, decomposition=low(1 / 3, form="freeze"))),
    "FSLoRA, all ranks": (FSLoRA(ETA, K, lora(1.0), (1.0,)), MUD),
}


@pytest.mark.parametrize("name", ON_TRANSPOSED)
@pytest.mark.parametrize("sampled", [5, 3])
def test_on_transposed_layers_it_is_fedmud(name, sampled):
    """LoRA draws A, the factor on the side of a layer's inputs, and FedMUD the one on that of the outputs."""
    problem, turn = quadratic(), torch.arange(12).view(2, 6).T.flatten()
    H, b = problem.H[:, turn][:, :, turn], problem.b[:, turn]
    other = Quadratic(H, b, layout=Layout.single(2, 6))
    ours, mud = ON_TRANSPOSED[name]
    ours = last(ours, problem, 10, sampled=sampled, x0=problem.b[0]).server.x
    close(ours[turn], last(mud, other, 10, sampled=sampled, x0=other.b[0]).server.x)


def test_for_one_client_nothing_is_missed():
    """The mean of one product is the product of the means."""
    problem, decomposition = quadratic(1), lora(0.5)
    ours = rounds(FedExLoRA(ETA, K, decomposition), problem, 10)
    mud = rounds(FedMUD(ETA, K, decomposition, reset_every=None), problem, 10)
    for (_, a), (_, b) in zip(ours, mud, strict=True):
        close(a.server.x, b.server.x)


def test_with_a_common_A_nothing_is_missed():
    """B = 0 keeps A for one step of all clients, so W stands; in the next round their A differ, and W moves."""
    problem = quadratic()
    x, (first, second) = start(problem), (s.server for _, s in rounds(FedExLoRA(ETA, 1, lora(0.5)), problem, 2))
    close(first.base, x)
    assert relative(first.x, x) > 1e-3
    assert relative(second.base, x) > 1e-4


CONVOLUTIONS = Layout((Layer("0.conv", 6, 9), Layer("1.bias", 4, 1), Layer("2.linear", 3, 5)))


def test_a_convolution_by_its_kernel_takes_turns():
    """Of rank 2 A has 6 x 2 numbers and B 9 x 2, and of rank 1 of the linear layer 3 and 5; the bias always moves."""
    problem = quadratic(layout=CONVOLUTIONS)
    algorithm = RoLoRA(ETA, K, LowRank(0.5, 1.0, "lora", layers="matrices", kernel=3))
    state = algorithm.init(problem, start(problem), Key(0))
    A = torch.tensor([True] * 12 + [False] * 18 + [False] * 4 + [True] * 3 + [False] * 5)
    bias = (torch.arange(len(A)) >= 30) & (torch.arange(len(A)) < 34)
    for t in range(4):
        new, up, _ = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))
        assert torch.equal(new.server.u != state.server.u, (A if t % 2 else ~A) | bias)
        assert up.u.shape[1] == (19 if t % 2 else 27)
        state = new


def test_a_sketch_is_the_identity_in_the_mean():
    """k = 2 of r = 5: S has 5/2 at two places, each place in two of five clients."""
    S = Sketch(((30, 5),), (0.4,), Key(0)).root(torch.arange(5000), torch.zeros(1, dtype=torch.float64)) ** 2
    assert torch.equal(S.view(-1, 6, 5), S[:, None, :5].expand(-1, 6, -1)), "the same for every row of A and B"
    assert torch.equal((S > 0).sum(1), torch.full((5000,), 12))
    assert float((S.mean(0) - 1).abs().max()) < 4.5 * (1.5 / 5000) ** 0.5


# Claims, measured


@pytest.mark.parametrize(("lr", "share", "rank"), [(0.1, 0.25, 1), (0.2, 1.0, 4)])
def test_sketches_of_one_rank_end_at_one_rank(lr, share, rank):
    """M has rank r = 4, and clients train on E_S ||B S A - M||^2. With k = 1 each rank fits M/r alone."""
    u, v = (torch.linalg.qr(torch.randn(8, 8, generator=Key(i).generator(), dtype=torch.float64))[0] for i in (0, 1))
    M = u[:, :4] * torch.tensor([1.0, 0.8, 0.6, 0.5]).double() @ v[:, :4].T
    problem = Quadratic(torch.eye(64).double().repeat(20, 1, 1), M.flatten().repeat(20, 1), layout=Layout.single(8, 8))
    found = last(FSLoRA(lr, 2, lora(1.0), (share,)), problem, 500, x0=torch.zeros_like(problem.b[0])).server
    U, s, Vh = torch.linalg.svd(M)
    assert len(found.u) == 4 * 16
    assert relative(found.x, (U[:, :rank] * s[:rank] @ Vh[:rank]).flatten()) < 1e-3


def matrices(m=5, n=3, seed=0):
    """Clients with their own features and one solution of rank 1; its singular vector on the features' side."""
    g = Key(seed).generator()
    A = torch.randn(4, 20, m, generator=g, dtype=torch.float64)
    u, v = (torch.nn.functional.normalize(torch.randn(k, generator=g, dtype=torch.float64), dim=0) for k in (m, n))
    return MatrixRegression(A, A @ torch.outer(u, v), lam=0.0), u


def test_rolora_finds_a_matrix_of_rank_one_that_ffa_lora_cannot():
    """RoLoRA's Sec. 4: with A frozen at a, it ends at least squares on the feature a'x."""
    problem, u = matrices()
    decomposition = lora(1e-9)
    zero = torch.zeros(problem.d, dtype=torch.float64)
    frozen = last(RoLoRA(0.3, 1, decomposition, None), problem, 300, x0=zero).server
    turns = last(RoLoRA(0.3, 5, decomposition), problem, 100, x0=zero).server
    a, x_star = frozen.u[:5], problem.constants.x_star.view(3, 5)
    G = (problem.A.mT @ problem.A).mean(0)  # the features' second moments
    best = torch.outer(x_star @ G @ a / (a @ G @ a), a)
    assert relative(frozen.x, best.flatten()) < 1e-4
    assert relative(best, x_star) > float((1 - (a @ u) ** 2 / (a @ a)).sqrt()) > 0.3
    assert relative(turns.x, problem.constants.x_star) < 1e-6


@pytest.mark.parametrize("S", [1, 2, 3])
def test_a_round_of_flora_adds_the_rank_of_all_participants(S):
    """Rank 1 adapters of S clients are one of rank S, after a single step too; averaged factors stay at rank 1."""
    decomposition = lora(1e-9)
    problem = MatrixRegression.ssf(0.5, Key(2), n=5, rows=8, d=6, m=4, batch=None)
    x0 = start(problem)
    for algorithm, rank in (
        (FedExLoRA(0.1, 3, decomposition, True), S),
        (FedExLoRA(0.1, 1, decomposition, True), S),
        (FedExLoRA(0.1, 3, decomposition), S),
        (FedMUD(0.1, 3, decomposition), 1),
    ):
        change = last(algorithm, problem, 1, sampled=S, x0=x0).server.x - x0
        s = torch.linalg.svdvals(change.view(4, 6))
        assert int((s > 1e-9 * s[0]).sum()) == rank


# Bytes, networks, bad input


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_traffic_by_hand(dtype):
    """d = 12, rank 1: A has 6 numbers, B 2. W and the seed of A come once, then the factor that moved."""
    problem, b = quadratic(dtype=dtype), dtype.itemsize
    for name, ups, downs in (
        ("RoLoRA", (2, 6, 2, 6), (12 * b + 16, 2 * b + 8, 6 * b + 8, 2 * b + 8)),
        ("FFA-LoRA", (2, 2, 2, 2), (12 * b + 8, 2 * b, 2 * b, 2 * b)),
        ("FedEx-LoRA", (8, 8, 8, 8), (20 * b,) * 4),
        ("FLoRA", (8, 8, 8, 8), (12 * b,) * 4),
    ):
        history = run(ALGORITHMS[name], problem, 4)
        assert history["up_bytes"] == [0, *(5 * b * int(n) for n in np.cumsum(ups))], name
        assert history["down_bytes"] == [0, *(5 * int(n) for n in np.cumsum(downs))], name


def test_a_client_of_rolora_is_sent_what_moved_since_it_took_part():
    """Two rounds for each factor, B first; lag 1 is one that took part in the last round, and A has 6 numbers, B 2."""
    algorithm, problem = RoLoRA(ETA, K, lora(0.5), 2), quadratic()
    state, found = algorithm.init(problem, start(problem), Key(0)), []
    for t in range(8):
        down = algorithm.broadcast(state.server, Key(t))
        found.append([cost((down.B, down.A), [lag]).scalars for lag in (1, 2, 3, None)])
        state, _, _ = play_round(algorithm, problem, state, problem.clients, Key(t))
    assert found == [
        [0, 0, 0, 0],  # B = 0, A as drawn
        [2, 2, 2, 2],
        [2, 2, 2, 2],  # A's turn, not yet moved
        [6, 8, 8, 8],
        [6, 6, 8, 8],  # B's turn: it stood for two rounds
        [2, 8, 8, 8],
        [2, 2, 8, 8],
        [6, 8, 8, 8],
    ]


@each(b=[4, 8])
def test_a_client_of_fslora_is_sent_and_sends_its_ranks(b):
    """d = 12, r = 2: a rank is 8 numbers. Clients 0, 2, 4 have one, and 1, 3 both: 7 ranks; a seed of S for each."""
    algorithm, dtype = FSLoRA(ETA, K, lora(1.0), (0.5, 1.0)), torch.float32 if b == 4 else torch.float64
    history = run(algorithm, quadratic(dtype=dtype), 3)
    assert history["up_bytes"] == [0, 56 * b, 112 * b, 168 * b]
    assert history["down_bytes"] == [0, *(5 * 12 * b + t * (56 * b + 5 * 8) for t in (1, 2, 3))]


@pytest.mark.parametrize("kernel", [None, 3])
def test_a_convolution_of_fslora_has_one_count_of_ranks(kernel):
    """Ranks 4 of 6 x 9 and 2 of 3 x 5, half of which cross: 2 (6 + 9) + 1 (3 + 5) numbers and the bias."""
    algorithm = FSLoRA(ETA, K, LowRank(1.0, 1.0, "lora", layers="matrices", kernel=kernel))
    history = run(algorithm, quadratic(layout=CONVOLUTIONS), 1)
    assert history["up_bytes"][-1] == 5 * 8 * (30 + 8 + 4)


@pytest.mark.parametrize("name", EXACT)
def test_networks(name):
    algorithm = replace(EXACT[name], lr=0.1, decomposition=LowRank(0.5, 0.3, "lora", layers="matrices"))
    history = run(algorithm, images(), 6, sampled=3, every=6, metrics=("loss",))
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RoLoRA(0.0), "lr=0.0"),
        (lambda: RoLoRA(0.1, 0), "local_steps=0"),
        (lambda: RoLoRA(0.1, 1, lora(0.5, form="aad")), "decomposition=LowRank"),
        (lambda: RoLoRA(0.1, 1, low(0.5)), "form='lora'"),
        (lambda: Kronecker(0.5, form="lora"), "form='lora'"),
        (lambda: RoLoRA(0.1, 1, lora(0.5), 0), "switch_every=0"),
        (lambda: FSLoRA(0.1, 1, lora(0.5, form="aad")), "decomposition=LowRank"),
        (lambda: FSLoRA(0.1, 1, lora(0.5), ()), "shares=()"),
        (lambda: FSLoRA(0.1, 1, lora(0.5), (0.5, 0.0)), "shares[1]=0.0"),
        (lambda: FedExLoRA(0.1, 1.5), "local_steps=1.5"),
        (lambda: FedExLoRA(0.1, 1, lora(0.5, random=True)), "decomposition=LowRank"),
        (lambda: FedExLoRA(0.1, 1, lora(0.5), 1), "fresh=1"),
        (lambda: FedExLoRA(0.1, 1, lora(0.5), weighted="p"), "weighted='p'"),
    ],
)
def test_bad_input(make, named):
    with pytest.raises((ValueError, TypeError), match="Fix: ") as caught:
        make()
    assert named in str(caught.value)
