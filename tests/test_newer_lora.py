"""RoLoRA, FFA-LoRA, FedEx-LoRA, FLoRA, FSLoRA: their texts in NumPy, their laws, their bytes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import ALGORITHMS, ETA, K, last, quadratic, regression, relative, rounds, start
from each import each
from test_laws import close
from test_lowrank_baselines import (
    PROBLEMS,
    T,
    compare,
    drawn,
    flat,
    images,
    low,
    shares,
    slope,
    train,
    transposed,
    weighed,
)
from test_transcripts import chosen, samples_of

from fedtheory import (
    FedExLoRA,
    FedMUD,
    FSLoRA,
    Key,
    Layout,
    MatrixRegression,
    Quadratic,
    RoLoRA,
    play_round,
    run,
)
from fedtheory.algorithms.fslora import Sketch
from fedtheory.maps.decomposition import LowRank


def rolora(problem, a, S, root, x):
    """A^0 drawn, B^0 = 0; W + A B^T. In rounds of B's turn A is the same matrix for all clients, and the other way."""
    W = transposed(x, problem)
    AB = drawn(a.decomposition.draw(problem.layout, root.fold("D"), torch.float64), problem)
    for t in range(T):
        key, new = root.fold("round", t), [[0, 0] for _ in W]
        turn = 0 if a.switch_every is None else t // a.switch_every % 2
        for i in chosen(problem, S, key):
            own = [list(pair) for pair in AB]
            for sample in samples_of(problem, i, a.local_steps, key):
                G = slope(problem, i, sample, [w + A @ B.T for w, (A, B) in zip(W, own)])
                for pair, g in zip(own, G):
                    if turn == 0:
                        pair[1] = pair[1] - a.lr * g.T @ pair[0]
                    else:
                        pair[0] = pair[0] - a.lr * g @ pair[1]
            for mean, pair in zip(new, own):
                mean[:] = [old + one / S for old, one in zip(mean, pair)]
        AB = new
        yield flat([w + A @ B.T for w, (A, B) in zip(W, AB)])


def fedexlora(problem, a, S, root, x):
    """W += sum p_i A_i B_i^T - (sum p_i A_i)(sum p_i B_i)^T; FLoRA: without the last, and A, B drawn anew."""
    W = transposed(x, problem)
    draw = lambda key: drawn(a.decomposition.draw(problem.layout, key.fold("D"), torch.float64), problem)
    AB = draw(root)
    for t in range(T):
        key = root.fold("round", t)
        ids = chosen(problem, S, key)
        ends = [train(problem, i, a, key, W, AB) for i in ids]
        p = shares(problem, a, ids)
        products = [sum(s * e[layer][0] @ e[layer][1].T for s, e in zip(p, ends)) for layer in range(len(W))]
        means = [tuple(sum(s * e[layer][j] for s, e in zip(p, ends)) for j in (0, 1)) for layer in range(len(W))]
        model = [w + P for w, P in zip(W, products)]
        AB = draw(key) if a.fresh else means
        W = model if a.fresh else [w - A @ B.T for w, (A, B) in zip(model, means)]
        yield flat(model)


def fslora(problem, a, S, root, x):
    """A client's factors have k columns: there is no mask here. The model is W + (r/k) A B^T for it."""
    W = transposed(x, problem)
    AB = drawn(a.decomposition.draw(problem.layout, root.fold("D"), torch.float64), problem)
    for t in range(T):
        key, new = root.fold("round", t), [[A.copy(), B.copy()] for A, B in AB]
        for i in chosen(problem, S, key):
            g, share = key.fold("sketch", i).generator(), a.shares[i % len(a.shares)]
            ranks = [A.shape[1] for A, _ in AB]
            kept = [torch.randperm(r, generator=g)[: max(1, round(share * r))].numpy() for r in ranks]
            scale = [r / len(k) for r, k in zip(ranks, kept)]
            own = [(A[:, k], B[:, k]) for k, (A, B) in zip(kept, AB)]
            for sample in samples_of(problem, i, a.local_steps, key):
                G = slope(problem, i, sample, [w + c * A @ B.T for w, c, (A, B) in zip(W, scale, own)])
                own = [(A - a.lr * c * g @ B, B - a.lr * c * g.T @ A) for c, g, (A, B) in zip(scale, G, own)]
            for mean, k, pair, before in zip(new, kept, own, AB):
                for all, mine, old in zip(mean, pair, before):
                    all[:, k] += (mine - old[:, k]) / S
        AB = new
        yield flat([w + A @ B.T for w, (A, B) in zip(W, AB)])


TEXTS = {
    "RoLoRA": (rolora, RoLoRA(0.08, 3, low(0.7))),
    "RoLoRA, three rounds": (rolora, RoLoRA(0.08, 3, low(0.7), 3)),
    "FFA-LoRA": (rolora, RoLoRA(0.15, 3, low(1.0), None)),
    "FedEx-LoRA": (fedexlora, FedExLoRA(0.05, 3, low(0.5))),
    "FedEx-LoRA weighted": (fedexlora, FedExLoRA(0.05, 3, low(0.7), weighted=True)),
    "FLoRA": (fedexlora, FedExLoRA(0.05, 3, low(0.5), True)),
    "FSLoRA": (fslora, FSLoRA(0.03, 3, low(1.0))),
    "FSLoRA shares": (fslora, FSLoRA(0.02, 3, low(1.0), (0.5, 1.0, 0.1))),
}


@pytest.mark.parametrize("name", TEXTS)
@each(problem=PROBLEMS, S=[5, 3])
def test_transcript(name, problem, S):
    compare(*TEXTS[name], weighed(PROBLEMS[problem]()), S)


# Laws

EXACT = {
    "RoLoRA": RoLoRA(ETA, K, low(0.5)),
    "FFA-LoRA": RoLoRA(ETA, K, low(0.5), None),
    "FedEx-LoRA": FedExLoRA(ETA, K, low(0.5)),
    "FLoRA": FedExLoRA(ETA, K, low(0.5), True),
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
    """Positions in u of the factor whose turn it is."""
    left = part.of.sizes[0]
    mine = range(left) if algorithm.switch_every and server.t // algorithm.switch_every % 2 else range(left, part.size)
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


def test_ffa_lora_is_fedmud_with_its_left_factor_frozen():
    """At the same rank: 2 of a 2 x 6 matrix is ratio 1 of both sides' numbers, and of the left side's."""
    for problem in (regression(), quadratic()):
        one = last(RoLoRA(ETA, K, low(1.0), None), problem, 10, sampled=3).server.x
        two = last(FedMUD(ETA, K, low(1.0, form="freeze"), reset_every=None), problem, 10, sampled=3).server.x
        close(one, two)


@pytest.mark.parametrize("fresh", [False, True])
def test_for_one_client_nothing_is_missed(fresh):
    """The mean of one product is the product of the means: FedMUD, with a reset in every round for FLoRA."""
    problem = quadratic(1)
    ours = rounds(FedExLoRA(ETA, K, low(0.5), fresh), problem, 10)
    mud = rounds(FedMUD(ETA, K, low(0.5), reset_every=1 if fresh else None), problem, 10)
    for (_, a), (_, b) in zip(ours, mud, strict=True):
        close(a.server.x, b.server.x)


@pytest.mark.parametrize("sampled", [5, 3])
def test_fslora_with_all_ranks_is_fedmud_without_a_reset(sampled):
    for problem in (regression(), quadratic()):
        ours, theirs = (
            last(a, problem, 10, sampled=sampled).server.x
            for a in (FSLoRA(ETA, K, low(1.0), (1.0,)), FedMUD(ETA, K, low(1.0), reset_every=None))
        )
        close(ours, theirs)


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
    found = last(FSLoRA(lr, 2, low(1.0), (share,)), problem, 400, x0=torch.zeros_like(problem.b[0])).server
    U, s, Vh = torch.linalg.svd(M)
    assert len(found.u) == 4 * 16
    assert relative(found.x, (U[:, :rank] * s[:rank] @ Vh[:rank]).flatten()) < 1e-3


def matrices(m=5, n=3, seed=0):
    """Clients with their own features and one solution of rank 1; its right singular vector."""
    g = Key(seed).generator()
    A = torch.randn(4, 20, m, generator=g, dtype=torch.float64)
    u, v = (torch.nn.functional.normalize(torch.randn(k, generator=g, dtype=torch.float64), dim=0) for k in (m, n))
    return MatrixRegression(A, A @ torch.outer(u, v), lam=0.0), v


def test_rolora_finds_a_matrix_of_rank_one_that_ffa_lora_cannot():
    """RoLoRA's Sec. 4: with A frozen the error stays at the sine of its angle to the solution's."""
    problem, v = matrices()
    decomposition = LowRank(1e-9, 1.0, layers="all")
    zero = torch.zeros(problem.d, dtype=torch.float64)
    frozen, turns = (last(RoLoRA(0.3, 5, decomposition, switch), problem, 100, x0=zero).server for switch in (None, 1))
    A = frozen.u[:3] / frozen.u[:3].norm()
    sine = float((1 - (A @ v) ** 2).sqrt())
    assert sine > 0.3
    assert relative(frozen.x, problem.constants.x_star) == pytest.approx(sine, rel=1e-3)
    assert relative(turns.x, problem.constants.x_star) < 1e-6


@pytest.mark.parametrize("S", [1, 2, 3])
def test_a_round_of_flora_adds_the_rank_of_all_participants(S):
    """Rank 1 adapters of S clients are one of rank S; averaged factors stay at rank 1."""
    decomposition = LowRank(1e-9, 1.0, layers="all")
    problem = MatrixRegression.ssf(0.5, Key(2), n=5, rows=8, d=6, m=4, batch=None)
    x0 = start(problem)
    for algorithm, rank in (
        (FedExLoRA(0.1, 3, decomposition, True), S),
        (FedExLoRA(0.1, 3, decomposition), S),
        (FedMUD(0.1, 3, decomposition), 1),
    ):
        change = last(algorithm, problem, 1, sampled=S, x0=x0).server.x - x0
        s = torch.linalg.svdvals(change.view(4, 6))
        assert int((s > 1e-9 * s[0]).sum()) == rank


# Bytes, networks, bad input


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_traffic_by_hand(dtype):
    """d = 12, rank 1: A has 2 numbers, B 6. Five clients, which have W and the seed of A after their first round."""
    problem, b = quadratic(dtype=dtype), dtype.itemsize
    for name, ups, down, once in (
        ("RoLoRA", (6, 2, 6), 8 * b + 8, 12 * b + 8),
        ("FFA-LoRA", (6, 6, 6), 6 * b, 12 * b + 8),
        ("FedEx-LoRA", (8, 8, 8), 20 * b + 8, 0),
        ("FLoRA", (8, 8, 8), 12 * b + 8, 0),
    ):
        history = run(ALGORITHMS[name], problem, 3)
        assert history["up_bytes"] == [0, *(5 * b * int(n) for n in np.cumsum(ups))], name
        assert history["down_bytes"] == [0, *(5 * (once + t * down) for t in (1, 2, 3))], name


@each(b=[4, 8])
def test_a_client_of_fslora_is_sent_and_sends_its_ranks(b):
    """d = 12, r = 2: a rank is 8 numbers. Clients 0, 2, 4 have one, and 1, 3 both: 7 ranks; a seed of S for each."""
    algorithm, dtype = FSLoRA(ETA, K, low(1.0), (0.5, 1.0)), torch.float32 if b == 4 else torch.float64
    history = run(algorithm, quadratic(dtype=dtype), 3)
    assert history["up_bytes"] == [0, 56 * b, 112 * b, 168 * b]
    assert history["down_bytes"] == [0, *(5 * 12 * b + t * (56 * b + 5 * 8) for t in (1, 2, 3))]


@pytest.mark.parametrize("name", EXACT)
def test_networks(name):
    algorithm = replace(EXACT[name], lr=0.1, decomposition=LowRank(0.5, 0.3, layers="matrices"))
    history = run(algorithm, images(), 6, sampled=3, every=6, metrics=("loss",))
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RoLoRA(0.0), "lr=0.0"),
        (lambda: RoLoRA(0.1, 0), "local_steps=0"),
        (lambda: RoLoRA(0.1, 1, low(0.5, form="aad")), "decomposition=LowRank"),
        (lambda: RoLoRA(0.1, 1, low(0.5), 0), "switch_every=0"),
        (lambda: FSLoRA(0.1, 1, low(0.5, form="aad")), "decomposition=LowRank"),
        (lambda: FSLoRA(0.1, 1, low(0.5), ()), "shares=()"),
        (lambda: FSLoRA(0.1, 1, low(0.5), (0.5, 0.0)), "shares[1]=0.0"),
        (lambda: FedExLoRA(0.1, 1.5), "local_steps=1.5"),
        (lambda: FedExLoRA(0.1, 1, low(0.5, random=True)), "decomposition=LowRank"),
        (lambda: FedExLoRA(0.1, 1, low(0.5), 1), "fresh=1"),
        (lambda: FedExLoRA(0.1, 1, low(0.5), weighted="p"), "weighted='p'"),
    ],
)
def test_bad_input(make, named):
    with pytest.raises((ValueError, TypeError), match="Fix: ") as caught:
        make()
    assert named in str(caught.value)
