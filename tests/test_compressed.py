"""Compressed messages and the methods that send them: what a compressor owes, laws, what crosses, NumPy transcripts."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch
from cases import ETA, TWO_LAYERS, K, last, quadratic, regression, relative, rounds, start
from cases import PROBLEMS as CASES
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bad_input import COUNTS, FLAGS, INF, NAN, RATES, complaint
from test_transcripts import PROBLEMS, T, chosen, compare, gradient, samples_of, unvec, vec, weigh

from fedtheory import (
    DGC,
    EF21P,
    LBGM,
    STC,
    FedAvg,
    FedBAT,
    FedCom,
    FetchSGD,
    Key,
    Scaffold,
    SignSGD,
    Steps,
    TopK,
    play_round,
    run,
)
from fedtheory.algorithms.lbgm import Up
from fedtheory.core.message import Cost, cost
from fedtheory.core.problem import Problem
from fedtheory.maps.compress import (
    Hashes,
    Quantized,
    Sampled,
    Sketch,
    Sparse,
    Ternary,
    count_kept,
    groups,
    largest,
    uniforms,
)
from fedtheory.maps.signs import Signs

DTYPES = [torch.float32, torch.float64]
seeds = st.integers(0, 2**31)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=Key(seed).generator(), dtype=torch.float64)


def same(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def square(p):
    return (p**2).sum(-1)


# What a compressor owes


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.floats(0.01, 1), st.integers(0, 30), seeds)
def test_the_largest_of_each_group_and_the_first_of_equal_ones(scores, ratio, cut, seed):
    """Brute force: by falling score, then rising position. Many scores are equal here."""
    cut = min(cut, len(scores) - 1)
    sizes = [cut, len(scores) - cut] if cut else [len(scores)]
    score = torch.stack([torch.tensor(scores, dtype=torch.float64), random(len(scores), seed=seed)])
    index = largest(score, ratio, sizes)
    for row, found in zip(score.tolist(), index.tolist(), strict=True):
        wanted, at = [], 0
        for size in sizes:
            part = sorted(range(at, at + size), key=lambda i, row=row: (-row[i], i))
            wanted += sorted(part[: max(1, round(ratio * size))])
            at += size
        assert found == wanted


@given(st.integers(1, 40), st.floats(0.01, 1), seeds)
def test_top_k_contracts(d, ratio, seed):
    """||C(p) - p||^2 <= (1 - k/d) ||p||^2, with equality where all entries are alike."""
    p = torch.cat([random(3, d, seed=seed), torch.ones(1, d, dtype=torch.float64)])
    lost = square(Sparse.of(p, largest(p.abs(), ratio, [d])).expand(d) - p)
    bound = (1 - count_kept(ratio, d) / d) * square(p)
    assert bool((lost <= bound + 1e-12).all())
    same(lost[3], bound[3])


@given(st.integers(1, 40), st.floats(0.01, 1), seeds)
def test_ternary_is_the_projection_on_its_sign_vector(d, ratio, seed):
    """T = mu sign(p) on k entries: <T, p> = ||T||^2, so ||T - p||^2 = ||p||^2 - ||T||^2; p itself if |p| = c."""
    p = random(3, d, seed=seed)
    p[2] = p[2].sign()
    index = largest(p.abs(), ratio, [d])
    t = Ternary.of(p, index).expand(d)
    same((t * p).sum(-1), square(t))
    same(square(t - p), square(p) - square(t))
    same(t[2], Sparse.of(p, index).expand(d)[2])


def test_ternary_by_hand():
    """Entries 3, 0, -1, 0 with k = 3: mu = 4/3, and an entry that is 0 stays 0."""
    p = torch.tensor([[3.0, 0.0, -1.0, 0.0]])
    message = Ternary.of(p, largest(p.abs(), 0.75, [4]))
    assert message.code.tolist() == [[0, 4, -3]]
    same(message.expand(4), torch.tensor([[4 / 3, 0, -4 / 3, 0]]))


@pytest.mark.parametrize("values", ["ternary", "own"])
def test_all_ties_or_the_first(values):
    """Entries 3, -3, 1, 3 with k = 2: the first two cross, or all three of the threshold's size.

    mu is 3, but 9/2 as printed. At k = 1 the printed mu of four equal entries is four of them: what is left is larger.
    """

    def sent(ties, p, k):
        p = torch.tensor([p], dtype=torch.float64)
        return STC(ETA, K, values=values, ties=ties)._compress(p, k / 4).expand(4)[0].tolist()

    mu = 4.5 if values == "ternary" else 3
    assert sent("first", [3.0, -3, 1, 3], 2) == [3, -3, 0, 0]
    assert sent("all", [3.0, -3, 1, 3], 2) == [3, -3, 0, 3]
    assert sent("printed", [3.0, -3, 1, 3], 2) == [mu, -mu, 0, mu]
    assert sent("printed", [1.0] * 4, 1) == [4 if values == "ternary" else 1] * 4
    assert sent("first", [3.0, -2, 1, 0], 2) == sent("all", [3.0, -2, 1, 0], 2) == sent("printed", [3.0, -2, 1, 0], 2)


def test_rand_k_is_unbiased_and_has_its_variance():
    """d = 4, k = 2: over the six sets, E (d/k) C(p) = p and E ||(d/k) C(p) - p||^2 = (d/k - 1) ||p||^2, exactly.

    Over 6000 seeds each set comes up alike (|z| < 4.5).
    """
    p, found, counts = random(1, 4), {}, {}
    for s in range(6000):
        one = Sampled.of(2 * p, 2, [Key(s)]).expand(4)
        where = tuple(one[0].nonzero().flatten().tolist())
        found[where], counts[where] = one, counts.get(where, 0) + 1
    assert set(found) == set(combinations(range(4), 2))
    assert all(abs(n - 1000) / (6000 * 5 / 36) ** 0.5 < 4.5 for n in counts.values())
    every = torch.cat(list(found.values()))
    same(every.mean(0), p[0])
    same(square(every - p).mean(), square(p)[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rand_k_is_rebuilt_from_its_seed(dtype):
    """All that crosses: k values and one integer per row; positions are the first k of that integer's permutation."""
    p = random(3, 10).to(dtype)
    message = Sampled.of(p, 4, [Key(i) for i in range(3)])
    assert cost(message).bytes == 3 * (4 * dtype.itemsize + 8)
    for row, values, seed, back in zip(p, message.values, message.seed[:, 0].tolist(), message.expand(10)):
        index = torch.randperm(10, generator=torch.Generator().manual_seed(seed))[:4]
        assert torch.equal(back[index], values)
        assert torch.equal(row[index], values)
        assert int((back != 0).sum()) == 4


@pytest.mark.parametrize("bits", [8, 16])
def test_stochastic_rounding_is_unbiased_and_has_its_variance(bits):
    """d = 4 in two groups: over the 2^4 roundings, E Q(p) = p and E ||Q(p) - p||^2 = sum s^2 f (1 - f), exactly.

    s: distance of two levels, f: share of the way from the lower one to the upper. At most d/(4 L^2) ||p||^2.
    """
    p, sizes, top = random(1, 4), [3, 1], 2 ** (bits - 1) - 1
    s = torch.cat([p[0, :3].abs().max().expand(3), p[0, 3:].abs()]) / top
    f = p[0] / s - torch.floor(p[0] / s)
    f[f > 1 - 1e-9] = 0.0  # a level itself, reached from below by rounding
    f[f < 1e-9] = 0.0
    mean, variance = torch.zeros(4, dtype=torch.float64), 0.0
    for ups in product([0.0, 1.0], repeat=4):
        up = torch.tensor(ups, dtype=torch.float64)
        weight = float(torch.where(up > 0, f, 1 - f).prod())
        if weight > 0:
            q = Quantized.of(p, sizes, bits, torch.where(up > 0, 1e-6, 1 - 1e-6)[None]).expand(sizes)[0]
            mean, variance = mean + weight * q, variance + weight * float(square(q - p[0]))
    same(mean, p[0])
    same(variance, float((s**2 * f * (1 - f)).sum()))
    assert variance <= 4 / (4 * top**2) * float(square(p))


@given(st.integers(1, 60), st.sampled_from(DTYPES), st.sampled_from([8, 16]), seeds)
def test_levels_never_leave_their_type_and_the_nearest_is_near(d, dtype, bits, seed):
    """The largest entry is its own level, rounded up or down; the nearest level is off by half a step at most."""
    p, top = random(2, d, seed=seed).to(dtype), 2 ** (bits - 1) - 1
    p[1] *= 0
    for u in (0.0, 0.5, 1.0):
        q = Quantized.of(p, [d], bits, u)
        assert q.levels.dtype == {8: torch.int8, 16: torch.int16}[bits]
        assert int(q.levels.int().abs().max()) <= top
        assert not q.expand([d])[1].any()
        assert q.expand([d]).dtype == dtype
    tiny = 1e-5 if dtype == torch.float32 else 1e-12
    near = Quantized.of(p, [d], bits)
    step = near.scale / top
    assert bool(((near.expand([d]) - p).abs() <= step / 2 + tiny).all())
    same(near.expand([d]).abs().amax(-1), p.abs().amax(-1), tiny)
    assert cost(near).bytes == 2 * (d * bits // 8 + dtype.itemsize)


def hashes(rows, cols, d, seed=0):
    return Hashes.draw(rows, cols, Key(seed), torch.zeros(d, dtype=torch.float64))


@given(st.integers(2, 40), st.integers(1, 60), seeds)
def test_two_entries_meet_with_a_probability_of_at_most_one_over_cols(d, cols, seed):
    """Buckets are filled alike, by a uniform permutation: pairs in one bucket over all pairs; none for cols >= d."""
    for bucket in hashes(3, cols, d, seed).bucket:
        counts = bucket.bincount(minlength=cols)
        assert int(counts.max() - counts.min()) <= 1
        meeting = float((counts * (counts - 1)).sum() / (d * (d - 1)))
        assert meeting <= 1 / cols + 1e-12
        assert (meeting == 0) == (cols >= d)


def test_an_entry_of_a_sketch_is_unbiased_and_has_its_variance():
    """One row, d = 5, two buckets: over the 2^5 signs, the estimate of p_i has mean p_i, variance the sum of p_j^2 over
    the others in its bucket, exactly."""
    p, drawn = random(1, 5), hashes(1, 2, 5)
    every = []
    for signs in product([-1.0, 1.0], repeat=5):
        one = replace(drawn, sign=torch.tensor([signs], dtype=torch.float64))
        every.append(Sketch.of(p, one).expand(one))
    every = torch.cat(every)
    same(every.mean(0), p[0])
    for i in range(5):
        others = sum(p[0, j] ** 2 for j in range(5) if j != i and drawn.bucket[0, j] == drawn.bucket[0, i])
        same(((every[:, i] - p[0, i]) ** 2).mean(), torch.as_tensor(others, dtype=torch.float64))


def test_sketches_are_linear():
    """The sketch of the mean is the mean of the sketches."""
    p, drawn = random(6, 20), hashes(3, 7, 20)
    same(Sketch.of(p.mean(0, keepdim=True), drawn).table[0], Sketch.of(p, drawn).table.mean(0))
    same(
        Sketch.of(2 * p[:1] - 3 * p[1:2], drawn).table,
        2 * Sketch.of(p[:1], drawn).table - 3 * Sketch.of(p[1:2], drawn).table,
    )


def test_the_median_of_rows_finds_a_large_entry():
    """One entry of 100 among 400 of size 1, 5 x 40 cells: found within the noise of a bucket; one row is worse."""
    p = torch.ones(1, 400, dtype=torch.float64)
    p[0, 17] = 100.0
    gaps = {1: [], 5: []}
    for rows, found in gaps.items():
        for seed in range(40):
            drawn = hashes(rows, 40, 400, seed)
            estimate = Sketch.of(p, drawn).expand(drawn)
            assert int(estimate.argmax()) == 17 or rows == 1
            found.append(float((estimate[0, 17] - 100).abs()))
    assert np.mean(gaps[5]) < 0.8 * np.mean(gaps[1])


def test_a_wide_sketch_loses_nothing():
    p = random(2, 30)
    for rows, cols in ((1, 30), (5, 30), (3, 100)):
        drawn = hashes(rows, cols, 30)
        assert torch.equal(Sketch.of(p, drawn).expand(drawn), p)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hashes_are_rebuilt_from_their_key(dtype):
    """FetchSGD sends 8 bytes for them; who knows the key alone has the same ones."""
    problem = quadratic(dtype=dtype)
    algorithm = FetchSGD(ETA, K, 0.25, 1.0, 3)
    message = algorithm.init(problem, start(problem), Key(5)).server.hashes
    assert cost(message).bytes == 8
    assert message.key == Key(5).fold("hashes")
    rebuilt, value = message.make(Key(message.key.seed, message.key.path)), message.value
    assert torch.equal(rebuilt.bucket, value.bucket)
    assert torch.equal(rebuilt.sign, value.sign)
    assert rebuilt.sign.dtype == dtype
    assert value.cols == 4
    assert set(value.sign.flatten().tolist()) == {-1.0, 1.0}


def test_rows_cost_what_is_marked():
    """A byte and a coefficient for every row, and d numbers for a marked one."""
    sent = torch.tensor([[True], [False], [True]])
    assert cost(Up(sent, torch.zeros(3, 7), torch.zeros(3, 1))) == Cost(3 + 3 + 14, 3 + 3 * 4 + 14 * 4)
    state, up = play(LBGM(ETA, K), quadratic(), 6)
    assert cost(up) == Cost(10 + 12 * int(up.sent.sum()), 5 * 9 + 96 * int(up.sent.sum()))
    assert not up.rows[~up.sent[:, 0]].any(), "what does not cross is not there"
    assert 0 < int(up.sent.sum()) < 5
    assert state.server.x.isfinite().all()


def play(algorithm, problem, rounds_played):
    """The state and the uploads of the last of some rounds with everyone."""
    state, up = algorithm.init(problem, start(problem), Key(0)), None
    for t in range(rounds_played):
        state, up, _ = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))
    return state, up


# One algorithm is another

FULL = {
    "Top-k": TopK(ETA, K, 1.0),
    "Top-k with error feedback": TopK(ETA, K, 1.0, True),
    "STC, own values": STC(ETA, K, 1.0, values="own"),
    "DGC": DGC(ETA, K, 1.0),
    "DGC without momentum": DGC(ETA, K, 1.0, momentum=0.0, masking=False),
    "FedCom": FedCom(ETA, K, None),
    "FetchSGD": FetchSGD(ETA, K, 1.0, 5.0, momentum=0.0),
    "FetchSGD, one row": FetchSGD(ETA, K, 1.0, 1.0, 1, momentum=0.0),
    "FetchSGD, cleared": FetchSGD(ETA, K, 1.0, 5.0, momentum=0.9, clear="zero"),
    "LBGM": LBGM(ETA, K, 0.0),
    "EF21-P": EF21P(ETA, K, 1.0),
}


@pytest.mark.parametrize("name", FULL)
@each(problem=CASES, sampled=[5, 3])
def test_without_compression_it_is_fedavg(name, problem, sampled):
    """Every entry, every number whole, no two entries in a bucket. FetchSGD clears its momentum where it sent."""
    problem = CASES[problem]()
    ours, fedavg = (last(a, problem, 4, sampled=sampled).server.x for a in (FULL[name], FedAvg(ETA, K)))
    assert relative(ours, fedavg) <= 1e-12


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("rounding", ["stochastic", "nearest"])
def test_fedcom_is_within_its_levels_of_fedavg(bits, rounding):
    """One round: no entry is off by more than a step of the widest client; a bit more halves it."""
    problem = quadratic()
    ours, fedavg = (last(a, problem, 1).server.x for a in (FedCom(ETA, K, bits, rounding), FedAvg(ETA, K)))
    changes = torch.stack([change(FedAvg(ETA, K), problem, i, 0, start(problem)) for i in range(5)])
    step = float(changes.abs().max()) / (2 ** (bits - 1) - 1)
    assert 0 < float((ours - fedavg).abs().max()) <= step


@pytest.mark.parametrize("problem", CASES)
def test_fedcomgate_unquantized_is_scaffold(problem):
    """Everybody takes part: delta_i = c_i - c."""
    problem = CASES[problem]()
    gate, scaffold = FedCom(ETA, K, None, gate=True, server_lr=0.8), Scaffold(ETA, K, server_lr=0.8)
    for (_, a), (_, b) in zip(rounds(gate, problem, 12), rounds(scaffold, problem, 12), strict=True):
        same(a.server.x, b.server.x)
        same(a.own.delta, b.own.c - b.server.c, 1e-11)


def test_fedcomgate_quantized_arrives_where_fedcom_stalls():
    """Heterogeneous quadratics, 8 bits: the quantized changes shrink to zero with the gate, and so does their noise."""
    problem = quadratic(spectrum=(0.3, 1.0))
    stalled, arrived = (run(FedCom(0.1, 10, gate=gate), problem, 400, every=400)["error"][-1] for gate in (False, True))
    assert arrived < 1e-12 < 1e-2 < stalled


def test_dgc_without_masking_is_momentum():
    """ratio = 1, everyone takes part: x <- x + u, u <- m u + mean of the changes."""
    problem, x, u = quadratic(), start(quadratic()), 0.0
    algorithm = DGC(ETA, K, 1.0, 0.7, masking=False)
    for t, (_, state) in enumerate(rounds(algorithm, problem, 12)):
        u = 0.7 * u + sum(change(algorithm, problem, i, t, x) for i in range(5)) / 5
        x = x + u
        same(state.server.x, x)


def test_fetchsgd_with_momentum_is_momentum():
    """Nothing lost in the sketch, ratio = 1, momentum not cleared: the server's momentum SGD on the mean change."""
    problem, x, u = quadratic(), start(quadratic()), 0.0
    algorithm = FetchSGD(ETA, K, 1.0, 3.0, 3, momentum=0.7, server_lr=0.5)
    for t, (_, state) in enumerate(rounds(algorithm, problem, 12)):
        u = 0.7 * u + sum(change(algorithm, problem, i, t, x) for i in range(5)) / 5
        x = x + 0.5 * u
        same(state.server.x, x)


def test_ef21p_with_diana_at_full_k_is_fedavg():
    """beta = 1, nothing compressed, everyone: h_i is the last change, h + mean(change_i - h_i) the mean change."""
    for beta in (0.3, 1.0):
        ours, fedavg = (last(a, regression(), 12).server.x for a in (EF21P(ETA, K, 1.0, beta=beta), FedAvg(ETA, K)))
        assert relative(ours, fedavg) <= 1e-12


def test_diana_arrives_where_dcgd_stalls():
    """EF21-P, K = 1, heterogeneous quadratics, Rand-K of half the entries: with shifts the noise dies out."""
    problem = quadratic(spectrum=(0.3, 1.0))
    dcgd, diana = (run(EF21P(0.2, 1, 0.5, beta=beta), problem, 800, every=800)["error"][-1] for beta in (0.0, 0.5))
    assert diana < 1e-10 < 1e-3 < dcgd


def test_lbgm_in_one_dimension_sends_one_vector():
    """All changes are multiples of the first: FedAvg whatever delta is, and one whole upload per client."""
    problem = quadratic(layout=type(TWO_LAYERS).single(1))
    for delta in (0.0, 0.05, 1.0):
        algorithm = LBGM(ETA, K, delta)
        assert relative(last(algorithm, problem, 12).server.x, last(FedAvg(ETA, K), problem, 12).server.x) < 1e-12
        if delta > 0:  # at 0 a rounding error is a new direction
            assert run(algorithm, problem, 12)["up_bytes"][-1] == 5 * 12 * 9 + 5 * 8


def test_lbgm_with_delta_one_stays_in_the_span_of_the_first_uploads():
    """sin^2 <= 1 always: after its first round no client sends a vector again; a smaller delta sends more."""
    problem, x = quadratic(), start(quadratic())
    first = torch.stack([change(FedAvg(ETA, K), problem, i, 0, x) for i in range(5)])
    moved = last(LBGM(ETA, K, 1.0), problem, 12).server.x - x
    solution = torch.linalg.lstsq(first.T, moved[:, None]).solution
    same(first.T @ solution, moved[:, None], 1e-10)
    costs = [run(LBGM(ETA, K, delta), problem, 30, x0=x)["up_bytes"][-1] for delta in (0.0, 0.05, 0.5, 1.0)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == 30 * 5 * (12 * 8 + 9)
    assert costs[-1] == 30 * 5 * 9 + 5 * 12 * 8
    assert costs[0] > costs[1] > costs[2] > costs[3]


def test_lbgm_keeps_the_same_look_back_gradient_at_both_ends():
    algorithm, kept_on = LBGM(ETA, K, 0.3), 0
    before = torch.zeros(5, 12, dtype=torch.float64)
    for clients, state in rounds(algorithm, regression(), 12, sampled=3):
        assert torch.equal(state.server.g, state.own.g)
        kept_on += sum(torch.equal(state.own.g[i], before[i]) for i in clients)
        before = state.own.g.clone()
    assert 0 < kept_on < 36 - 5, "some sent a number, some a vector again"


# What is not sent is kept


def change(algorithm, problem, i, t, x, seed=0):
    """y_i - x of round t, by local steps of SGD."""
    y = x
    for sample in problem.draw(torch.tensor([i]), algorithm.local_steps, Key(seed).fold("round", t, "xi")):
        y = y - algorithm.lr * problem.grads(y[None], sample)[0]
    return y - x


def changes(algorithm, problem, steps, model=lambda server: server.x, **options):
    """After each round: the clients, the state, and the sum of all mean changes so far."""
    total, x = torch.zeros(problem.d, dtype=torch.float64), start(problem)
    for t, (clients, state) in enumerate(rounds(algorithm, problem, steps, **options)):
        total = total + sum(change(algorithm, problem, int(i), t, x) for i in clients) / len(clients)
        x = model(state.server)
        yield clients, state, total


def test_error_feedback_conserves_what_was_not_sent():
    """x_T - x_0 + mean of e_i = sum of all mean changes; STC: + R at the server; forgetting loses some."""
    problem = regression()
    x0 = start(problem)
    for _, state, total in changes(TopK(ETA, K, 0.25, True), problem, 20):
        same(state.server.x - x0 + state.own.e.mean(0), total)
    for values in ("ternary", "own"):
        for _, state, total in changes(STC(ETA, K, 0.3, 0.2, values), problem, 20):
            same(state.server.x - x0 + state.server.R + state.own.R.mean(0), total)
    *_, (_, state, total) = changes(TopK(ETA, K, 0.25), problem, 20)
    assert relative(state.server.x - x0, total) > 1e-2


def test_a_client_keeps_nothing_where_nothing_is_used():
    """Top-k and SignSGD without error feedback, EF21-P with beta = 0: no zeros, N times a model, either."""
    for plain, keeping in (
        (SignSGD(ETA, K, error_feedback=False), SignSGD(ETA, K)),
        (TopK(ETA, K, 0.25), TopK(ETA, K, 0.25, True)),
        (EF21P(ETA, K, 0.5), EF21P(ETA, K, 0.5, beta=0.1)),
    ):
        assert play(plain, regression(), 2)[0].own is None
        assert play(keeping, regression(), 2)[0].own is not None


def test_diana_stays_where_it_is_when_the_rate_falls():
    """h_i is a gradient: at the optimum, where it is -grad f_i(x*), a tenth of the rate moves nothing."""
    found = run(EF21P(0.2, 1, 0.5, beta=0.5), regression(batch=None), 900, schedule=Steps(600, 0.1), every=1)["error"]
    assert found[600] < 1e-6
    assert max(found[600:]) <= 2 * found[600]


def test_fedbat_lives_where_nothing_moves():
    """At a client's own optimum alpha = 0, and (S - m)/alpha would be 0/0."""
    problem = quadratic(1)
    problem.H[:], problem.b[:] = torch.eye(problem.d, dtype=torch.float64), 0.0
    state = last(FedBAT(0.05, 4), problem, 3, x0=torch.zeros(problem.d, dtype=torch.float64))
    assert state.server.x.tolist() == [0.0] * problem.d


def test_dgc_conserves_momentum():
    """Unmasked: x_T - x_0 + mean of V_i is the sum of the mean momenta. Masked: U and V are 0 where it was sent."""
    problem, x0 = regression(), start(regression())
    momenta = u = 0.0
    before = torch.zeros(problem.d, dtype=torch.float64)
    for _, state, total in changes(DGC(ETA, K, 0.25, 0.7, masking=False), problem, 20):
        u = 0.7 * u + total - before
        before, momenta = total, momenta + u
        same(state.server.x - x0 + state.own.V.mean(0), momenta)
        same(state.own.U.mean(0), u)
    state, up = play(DGC(ETA, K, 0.25), problem, 5)
    assert not state.own.U.gather(1, up.index.long()).any()
    assert not state.own.V.gather(1, up.index.long()).any()
    assert state.own.U.count_nonzero() == state.own.V.count_nonzero() == 5 * (problem.d - 3)


def test_dgc_clips_what_enters_the_momentum():
    """At ratio = 1 one round moves each client by min(1, clip/norm) of its change."""
    problem, x = quadratic(), start(quadratic())
    G = torch.stack([change(FedAvg(ETA, K), problem, i, 0, x) for i in range(5)])
    norms = G.norm(dim=1)
    clip = float(norms.median())
    wanted = (G * torch.clamp(clip / norms, max=1.0)[:, None]).mean(0)
    same(last(DGC(ETA, K, 1.0, clip=clip), problem, 1).server.x - x, wanted)
    assert 0 < int((norms < clip).sum()) < 5


@pytest.mark.parametrize("masking", [True, False])
def test_dgc_keeps_gradients_whatever_the_rate(masking):
    """The paper's U and V are sums of gradients: what waited is sent at the rate of the round that sends it."""
    problem, rates = regression(batch=None), [ETA * Steps(3, 0.2).factor(t) for t in range(9)]
    x, U = start(problem), torch.zeros(problem.n, problem.d, dtype=torch.float64)
    V = U.clone()
    for lr in rates:
        U = 0.7 * U + problem.grads(x.expand(problem.n, -1), problem.full(problem.clients))
        V = V + U
        index = largest(V.abs(), 0.25, groups(problem.layout, "layer"))
        sent = torch.zeros_like(V).scatter(-1, index, V.gather(-1, index))
        x, V, U = x - lr * sent.mean(0), V - sent, U.scatter(-1, index, 0.0) if masking else U
    found = run(DGC(ETA, 1, 0.25, 0.7, masking), problem, 9, x0=start(problem), schedule=Steps(3, 0.2)).x
    assert relative(found, x) < 1e-12


def test_fetchsgd_conserves_its_sketches():
    """ "subtract": S_e + S(x_T - x_0) = sum of eta S_u; "zero": no cell that was touched keeps anything."""
    problem = regression()
    algorithm = FetchSGD(ETA, K, 0.25, 1.5, 3, momentum=0.6, server_lr=0.7)
    total, x0 = 0.0, start(problem)
    for _, state in rounds(algorithm, problem, 20, sampled=3):
        drawn = state.server.hashes.value
        total = total + 0.7 * state.server.S_u
        same(state.server.S_e + Sketch.of((state.server.x - x0)[None], drawn).table, total)
    for _, state in rounds(replace(algorithm, clear="zero"), problem, 20, sampled=3):
        touched = Sketch.of(state.server.last.expand(problem.d), state.server.hashes.value).table != 0
        assert touched.any()
        assert not state.server.S_e[touched].any()
        assert not state.server.S_u[touched].any()


def test_a_small_sketch_feeds_its_noise_back_unless_it_is_cleared():
    """Three columns, three entries sent, no momentum: "subtract" takes noise away as if it were signal, and grows."""
    problem = quadratic()
    printed, cleared = (
        run(FetchSGD(ETA, K, 0.25, 1.0, momentum=0.0, clear=clear), problem, 700, every=700, x0=start(problem))
        for clear in ("subtract", "zero")
    )
    assert printed["error"][-1] > 10 * printed["error"][0]
    assert cleared["error"][-1] < cleared["error"][0]
    wide = FetchSGD(ETA, K, 0.25, 5.0, momentum=0.0)
    assert run(wide, problem, 700, every=700, x0=start(problem))["error"][-1] < 0.5 * cleared["error"][-1]


def test_ef21p_contracts_the_gap_of_the_clients_model():
    """||w^{t+1} - x^{t+1}||^2 <= (1 - k/d) ||w^t - x^{t+1}||^2; x moves by the mean upload, whatever went down."""
    problem, algorithm = regression(), EF21P(ETA, K, 1.0, 0.25)
    w = x = start(problem)
    for t, (clients, state) in enumerate(rounds(algorithm, problem, 20, sampled=3)):
        x = x + sum(change(algorithm, problem, int(i), t, w) for i in clients) / 3
        same(state.server.x, x)
        assert float(square(state.server.w - x)) <= (1 - 3 / 12) * float(square(w - x)) + 1e-15
        w = state.server.w


# FedBAT


class Slope(Problem):
    """f(x; xi) = <g, x> for every client: the gradient is g wherever it stands."""

    def __init__(self, g):
        self.n, self.layout, self.dtype, self.device = 1, type(TWO_LAYERS).single(len(g)), g.dtype, g.device
        self.g, self.weights = g, torch.ones(1, dtype=torch.float64)

    def draw(self, clients, steps, key):
        return [clients] * steps

    def full(self, clients):
        return clients

    def grads(self, y, xi):
        return self.g.expand_as(y)

    def losses(self, y, xi):
        return y @ self.g


def test_binarization_is_unbiased_within_alpha():
    """After the warm-up alpha = mean |m|. Over many uploads the mean of S is m clipped to alpha (|z| < 4.5)."""
    g = torch.tensor([-1.0, 0.5, 0.25, 2.0, 1.25], dtype=torch.float64)
    problem, m = Slope(g), -0.1 * 2 * g  # two plain steps
    algorithm = FedBAT(0.1, 2, warm_up=1.0, both=False)
    total, rounds_played = torch.zeros(5, dtype=torch.float64), 1000
    state = algorithm.init(problem, torch.zeros(5, dtype=torch.float64), Key(0))
    for t in range(rounds_played):
        after, up, _ = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))
        same(up.scale, m.abs().mean()[None, None])
        same(after.server.x.abs(), up.scale[0].expand(5))
        total += after.server.x
    alpha = float(m.abs().mean())
    wanted = m.clamp(-alpha, alpha)
    deviation = ((alpha**2 - wanted**2) / rounds_played).sqrt()
    assert bool(((total / rounds_played - wanted).abs() <= 4.5 * deviation + 1e-12).all())
    assert 0 < int((m.abs() < alpha).sum()) < 5


@pytest.mark.parametrize("both", [False, True])
def test_fedbat_is_fedavg_where_a_bit_says_all(both):
    """Every |m| alike: S(m, alpha) = m for certain, up and down, so it is FedAvg with all steps plain."""
    problem = Slope(torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64))
    ours, fedavg = (
        last(a, problem, 5, x0=torch.zeros(4, dtype=torch.float64)).server.x
        for a in (FedBAT(ETA, K, warm_up=1.0, both=both), FedAvg(ETA, K))
    )
    same(ours, fedavg)


def test_alpha_learns_by_its_printed_slope():
    """One plain step, one binarized: alpha = alpha_0 exp(-rho lr rho alpha_0 sum_i g_i dS_i/dalpha), m moves inside.

    g = (1, -1, 4), lr 1/2: m = (-1/2, 1/2, -2), alpha_0 = 1. The third is outside: slope sign(m) = -1, no step. For
    the others S = +-1 and the slope is S - m.
    """
    g, rho = torch.tensor([1.0, -1.0, 4.0], dtype=torch.float64), 0.1
    problem, algorithm = Slope(g), FedBAT(0.5, 2, rho, both=False)
    seen = set()
    for s in range(12):
        u = torch.rand(3, generator=Key(s).fold("round", 0, "S", 0).generator(), dtype=torch.float64)
        S = torch.where(u < torch.tensor([0.25, 0.75, 0.0]), 1.0, -1.0)
        slope = S - torch.tensor([-0.5, 0.5, 0.0])
        slope[2] = -1.0
        state = algorithm.init(problem, torch.zeros(3, dtype=torch.float64), Key(s))
        iterates = algorithm.client(
            problem, problem.clients, None, algorithm.broadcast(state.server, Key(s)), Key(s).fold("round", 0)
        )
        assert next(iterates).tolist() == [[-0.5, 0.5, -2.0]]
        assert next(iterates).tolist() == [[-1.0, 1.0, -2.0]]
        with pytest.raises(StopIteration) as stop:
            next(iterates)
        up = stop.value.value[0]
        same(float(up.scale), float(torch.exp(-rho * 0.5 * rho * (g * slope).sum())))
        seen.add(tuple(S.tolist()))
    assert len(seen) > 2
    clipped = replace(algorithm, clip=(0.2, 0.9))
    _, up, _ = play_round(clipped, problem, state, problem.clients, Key(0).fold("round", 0))
    assert up.scale.tolist() == [[0.9]], "at a clip alpha has no slope"


# A client that was away rebuilds the model from what it is charged for

schedules = st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=5), min_size=2, max_size=10)
REPLAYED = {
    "STC": STC(ETA, K, 0.25),
    "STC, own values": STC(ETA, K, 0.25, 0.1, "own"),
    "FetchSGD": FetchSGD(ETA, K, 0.1, 1.0, momentum=0.5),
    "EF21-P": EF21P(ETA, K, 0.25, 0.1),
    "FedBAT": FedBAT(ETA, K, 0.5),
}


@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.parametrize("dtype", DTYPES)
@given(schedule=schedules)
@settings(max_examples=10)
def test_a_client_that_was_away_rebuilds_the_model_bit_for_bit(name, dtype, schedule):
    """Its last copy and the updates since then give the server's model to the last bit; it pays for no more."""
    algorithm, problem, root = REPLAYED[name], regression(dtype=dtype), Key(3)
    state, log, copies, seen = algorithm.init(problem, start(problem), root), [], {}, {}
    for t, ids in enumerate(schedule):
        key = root.fold("round", t)
        down = algorithm.broadcast(state.server, key)
        message = down.w if name == "EF21-P" else down.x
        log.append(message.step)
        for i in ids:
            charged = cost(message, [t - seen[i] if i in seen else None])
            if i in seen:
                x, steps = copies[i], log[seen[i] + 1 :]
                for step in steps:
                    x = x + step.expand([12] if isinstance(step, Signs) else 12)[0]
                assert torch.equal(x, message.value)
                priced = sum((cost(step) for step in steps), Cost())
                assert charged == min(cost(message.value), priced, key=lambda c: c.bytes)
            else:
                assert charged == cost(message.value)
            copies[i], seen[i] = message.value, t
        state = play_round(algorithm, problem, state, torch.tensor(sorted(ids)), key)[0]


# What crosses, by hand. d = 12 (8 + 3 = 11 in two layers); b bytes a number, 4 an index, 8 a seed

UP = {
    "Top-k": (TopK(ETA, K, 0.25), lambda b: 3 * (b + 4)),
    "STC": (STC(ETA, K, 0.25), lambda b: 3 * 4 + b),
    "STC, own values": (STC(ETA, K, 0.25, values="own"), lambda b: 3 * (b + 4)),
    "DGC": (DGC(ETA, K, 0.5), lambda b: 6 * (b + 4)),
    "FedCom": (FedCom(ETA, K), lambda b: 12 + b),
    "FedCom, 16 bits": (FedCom(ETA, K, 16), lambda b: 24 + b),
    "FedCom, unquantized": (FedCom(ETA, K, None), lambda b: 12 * b),
    "FedCOMGATE": (FedCom(ETA, K, gate=True), lambda b: 12 + b),
    "FetchSGD": (FetchSGD(ETA, K, 0.25, 1.0), lambda b: 5 * 3 * b),
    "EF21-P": (EF21P(ETA, K, 0.25), lambda b: 3 * b + 8),
    "FedBAT": (FedBAT(ETA, K), lambda b: 4 + b),
}
STEP = {  # one update down, where the model is rebuilt
    "STC": lambda b: 3 * 4 + b,
    "STC, own values": lambda b: 3 * (b + 4),
    "FetchSGD": lambda b: 3 * (b + 4),
    "EF21-P": lambda b: 3 * (b + 4),
    "FedBAT": lambda b: 4 + b,
}


@pytest.mark.parametrize("name", UP)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sampled", [5, 2])
def test_traffic_by_hand(name, dtype, sampled):
    """Up: the message. Down: the model, or the updates missed where they are smaller; a seed; the mean as a reply."""
    (algorithm, up), b, problem = UP[name], dtype.itemsize, quadratic(dtype=dtype)
    history = run(algorithm, problem, 9, sampled=sampled, x0=start(problem))
    assert history["up_bytes"] == [t * sampled * up(b) for t in range(10)]
    seen, total, expected = {}, 0, [0]
    for t, (clients, _) in enumerate(rounds(algorithm, problem, 9, sampled=sampled)):
        for i in clients.tolist():
            model = 12 * b
            if name in STEP and i in seen:
                model = min(model, (t - seen[i]) * STEP[name](b))
            total += model + 8 * (name == "FetchSGD") + 12 * b * (name == "FedCOMGATE")
            seen[i] = t
        expected.append(total)
    assert history["down_bytes"] == expected


def test_layers_are_counted_one_by_one():
    """DGC: half of 8 and of 3 entries, 4 + 2; scales: two."""
    problem = quadratic(layout=TWO_LAYERS)
    for algorithm, size in (
        (DGC(ETA, K, 0.5), (4 + 2) * 12),
        (TopK(ETA, K, 0.5), 6 * 12),
        (FedCom(ETA, K, scale="layer"), 11 + 2 * 8),
        (FedBAT(ETA, K), 4 + 2 * 8),
    ):
        assert run(algorithm, problem, 1)["up_bytes"] == [0, 5 * size]


# A second writing: NumPy, loops over clients and entries


def local(problem, a, i, key, w):
    """The change of client i."""
    y = w.copy()
    for sample in samples_of(problem, i, a.local_steps, key):
        y = y - a.lr * vec(gradient(problem, i, sample, unvec(y, problem)))
    return y - w


def top(score, ratio):
    """Positions of the largest scores; of equal ones the first."""
    order = sorted(range(len(score)), key=lambda i: (-score[i], i))
    return order[: max(1, round(ratio * len(score)))]


def only(p, index):
    q = np.zeros_like(p)
    for i in index:
        q[i] = p[i]
    return q


def topk(problem, a, S, root, x):
    """w <- w + mean of Top-k(change + e)."""
    w, e = vec(x), np.zeros((problem.n, problem.d))
    for t in range(T):
        key, sent = root.fold("round", t), []
        for i in chosen(problem, S, key):
            p = local(problem, a, i, key, w) + e[i]
            q = only(p, top(p if a.by == "value" else np.abs(p), a.ratio))
            if a.error_feedback:
                e[i] = p - q
            sent.append(q)
        w = w + sum(sent) / S
        yield w, None


def stc(problem, a, S, root, x):
    """Algorithms 1 and 2 of the paper."""
    W, R, R_i = vec(x), np.zeros(problem.d), np.zeros((problem.n, problem.d))

    def compress(p, ratio):
        q = only(p, top(np.abs(p), ratio))
        k = max(1, round(ratio * len(p)))
        return np.abs(q).sum() / k * np.sign(q) if a.values == "ternary" else q

    for t in range(T):
        key, sent = root.fold("round", t), []
        for i in chosen(problem, S, key):
            dW = R_i[i] + local(problem, a, i, key, W)
            sent.append(compress(dW, a.ratio))
            R_i[i] = dW - sent[-1]
        dW = R + sum(sent) / S
        down = compress(dW, a.down_ratio or a.ratio)
        R, W = dW - down, W + down
        yield W, None


def dgc(problem, a, S, root, x):
    """The paper's algorithm for vanilla momentum SGD, G = -(change), layer by layer."""
    theta, U, V = vec(x), np.zeros((problem.n, problem.d)), np.zeros((problem.n, problem.d))
    for t in range(T):
        key, total = root.fold("round", t), np.zeros(problem.d)
        for k in chosen(problem, S, key):
            G = -local(problem, a, k, key, theta)
            if a.clip is not None and np.linalg.norm(G) > a.clip:
                G = G * a.clip / np.linalg.norm(G)
            U[k] = a.momentum * U[k] + G
            V[k] = V[k] + U[k]
            for where in problem.layout.slices:
                for j in top(np.abs(V[k][where]), a.ratio):
                    total[where.start + j] += V[k][where.start + j] / S
                    V[k][where.start + j] = 0
                    if a.masking:
                        U[k][where.start + j] = 0
        theta = theta - total
        yield theta, None


def fedcom(problem, a, S, root, x):
    """FedCOM and FedCOMGATE as printed: Q((x - x_j)/eta), entry by entry."""
    w, delta, layers = vec(x), np.zeros((problem.n, problem.d)), problem.layout.slices

    def quantize(p, u):
        q = np.zeros_like(p)
        for where in layers if a.scale == "layer" else [slice(0, len(p))]:
            s = np.abs(p[where]).max() / (2 ** (a.bits - 1) - 1)
            for j in range(where.start, where.stop):
                lower = np.floor(p[j] / s)
                q[j] = s * (lower + (p[j] / s - lower >= 1 - u[j]))  # the upper level of p is the lower one of -p
        return q

    for t in range(T):
        key, sent = root.fold("round", t), {}
        for i in chosen(problem, S, key):
            y = w.copy()
            for sample in samples_of(problem, i, a.local_steps, key):
                y = y - a.lr * (vec(gradient(problem, i, sample, unvec(y, problem))) - delta[i])
            if a.rounding == "stochastic":
                u = torch.rand(problem.d, generator=key.fold("u", i).generator(), dtype=torch.float64).numpy()
            else:
                u = np.full(problem.d, 0.5)
            sent[i] = quantize((w - y) / a.lr, u)
        mean = sum(sent.values()) / S
        if a.gate:
            for i, mine in sent.items():
                delta[i] += (mine - mean) / a.local_steps
        w = w - a.lr * a.server_lr * mean
        yield w, None


def fetchsgd(problem, a, S, root, x):
    """Algorithm 1 of the paper, cell by cell, g = -(change)."""
    w, d = vec(x), problem.d
    cols = int(np.ceil(a.size * d / a.rows))
    drawn = Hashes.draw(a.rows, cols, root.fold("hashes"), torch.zeros(d, dtype=torch.float64))
    h, s = drawn.bucket.numpy(), drawn.sign.numpy()

    def sketch(p):
        table = np.zeros((a.rows, cols))
        for r in range(a.rows):
            for i in range(d):
                table[r, h[r, i]] += s[r, i] * p[i]
        return table

    S_u = S_e = np.zeros((a.rows, cols))
    for t in range(T):
        key = root.fold("round", t)
        S_u = a.momentum * S_u + sum(sketch(-local(problem, a, i, key, w)) for i in chosen(problem, S, key)) / S
        S_e = a.server_lr * S_u + S_e
        u = np.array([np.median([s[r, i] * S_e[r, h[r, i]] for r in range(a.rows)]) for i in range(d)])
        delta = only(u, top(np.abs(u), a.ratio))
        if a.clear == "subtract":
            S_e = S_e - sketch(delta)
        else:
            empty = sketch(delta) == 0
            S_u, S_e = S_u * empty, S_e * empty
        w = w - delta
        yield w, None


def lbgm(problem, a, S, root, x):
    """Algorithm 1 of the paper, with the printed sin^2."""
    theta, g_l = vec(x), {}
    for t in range(T):
        key, total = root.fold("round", t), np.zeros(problem.d)
        for k in chosen(problem, S, key):
            g = -local(problem, a, k, key, theta) / a.lr
            old = g_l.get(k)
            if old is not None and 1 - (g @ old / np.linalg.norm(g) / np.linalg.norm(old)) ** 2 <= a.delta:
                total += g @ old / (old @ old) * old / S
            else:
                total += g / S
                g_l[k] = g
        theta = theta - a.lr * total
        yield theta, None


def ef21p(problem, a, S, root, x):
    """EF21-P + DCGD (beta = 0), + DIANA; yields x^t."""
    d, N = problem.d, problem.n
    k = max(1, round(a.ratio * d))
    x = vec(x)
    w, h_i = x, np.zeros((N, d))
    for t in range(T):
        key, m = root.fold("round", t), {}
        for i in chosen(problem, S, key):
            p = local(problem, a, i, key, w) - h_i[i]
            seed = key.fold("positions", i).hash()
            index = torch.randperm(d, generator=torch.Generator().manual_seed(seed))[:k].tolist()
            m[i] = only(p, index) * (d / k if a.unbiased else 1)
        x = x + a.server_lr * (h_i.sum(0) / N + sum(m.values()) / S)
        for i, mine in m.items():
            h_i[i] += a.beta * mine
        w = w + only(x - w, top(np.abs(x - w), a.down_ratio or a.ratio))
        yield x, None


def fedbat(problem, a, S, root, x):
    """Local training as the paper has it, layer by layer; S and its derivatives entry by entry."""
    w, layers = vec(x), problem.layout.slices

    def binarize(m, alpha, u):
        S = np.zeros_like(m)
        for where, one in zip(layers, alpha):
            for j in range(where.start, where.stop):
                S[j] = one if u[j] < min(max((m[j] + one) / (2 * one), 0), 1) else -one
        return S

    def steps(alpha_0, a_l):
        alpha = [one * np.exp(a.rho * mine) for one, mine in zip(alpha_0, a_l)]
        return alpha if a.clip is None else [min(max(one, a.clip[0]), a.clip[1]) for one in alpha]

    for t in range(T):
        key, sent = root.fold("round", t), []
        ids = chosen(problem, S, key)
        p = np.array([float(problem.weights[i]) if a.weighted else 1.0 for i in ids])
        for i in ids:
            g = key.fold("S", i).generator()
            m, a_l, alpha_0 = np.zeros(problem.d), [0.0] * len(layers), None
            for k, sample in enumerate(samples_of(problem, i, a.local_steps, key)):
                if k < max(1, np.floor(a.warm_up * a.local_steps)):
                    m = m - a.lr * vec(gradient(problem, i, sample, unvec(w + m, problem)))
                    alpha_0 = [np.abs(m[where]).mean() for where in layers]
                    continue
                alpha = steps(alpha_0, a_l)
                hat = binarize(m, alpha, torch.rand(problem.d, generator=g, dtype=torch.float64).numpy())
                grad = vec(gradient(problem, i, sample, unvec(w + hat, problem)))
                for n, where in enumerate(layers):
                    slope = 0.0
                    for j in range(where.start, where.stop):
                        if abs(m[j]) > alpha[n]:
                            slope += np.sign(m[j]) * grad[j]
                        else:
                            slope += (hat[j] - m[j]) / alpha[n] * grad[j]
                            m[j] = m[j] - a.lr * grad[j]
                    if a.clip is None or a.clip[0] < alpha[n] < a.clip[1]:
                        a_l[n] -= a.lr * slope * alpha[n] * a.rho
            sent.append(
                binarize(m, steps(alpha_0, a_l), torch.rand(problem.d, generator=g, dtype=torch.float64).numpy())
            )
        mean = p / p.sum() @ np.stack(sent)
        if a.both:
            u = torch.rand(problem.d, generator=key.fold("down").generator(), dtype=torch.float64).numpy()
            mean = binarize(mean, [np.abs(mean[where]).mean() for where in layers], u)
        w = w + mean
        yield w, None


WRITTEN = {
    "Top-k": (topk, TopK(ETA, K, 0.3)),
    "Top-k, kept": (topk, TopK(ETA, K, 0.3, True)),
    "Top-k, value": (topk, TopK(ETA, K, 0.3, by="value")),
    "STC": (stc, STC(ETA, K, 0.3)),
    "STC, own values": (stc, STC(ETA, K, 0.3, 0.5, "own")),
    "STC, all ties": (stc, STC(ETA, K, 0.3, ties="all")),
    "STC, ties as printed": (stc, STC(ETA, K, 0.3, ties="printed")),
    "DGC": (dgc, DGC(ETA, K, 0.3)),
    "DGC, clipped": (dgc, DGC(ETA, K, 0.3, 0.5, masking=False, clip=0.2)),
    "FedCom": (fedcom, FedCom(ETA, K)),
    "FedCom, layers": (fedcom, FedCom(ETA, K, 16, "nearest", "layer", server_lr=0.8)),
    "FedCOMGATE": (fedcom, FedCom(ETA, K, gate=True, server_lr=0.8)),
    "FetchSGD": (fetchsgd, FetchSGD(ETA, K, 0.3, 2.0, 3, momentum=0.5)),
    "FetchSGD, cleared": (fetchsgd, FetchSGD(ETA, K, 0.3, 2.0, 3, 0.5, 0.8, "zero")),
    "LBGM": (lbgm, LBGM(ETA, K)),
    "LBGM, wide": (lbgm, LBGM(ETA, K, 0.3)),
    "EF21-P": (ef21p, EF21P(ETA, K, 0.5)),
    "EF21-P, plain": (ef21p, EF21P(ETA, K, 0.5, 0.3, unbiased=False, server_lr=0.8)),
    "EF21-P with DIANA": (ef21p, EF21P(ETA, K, 0.5, 0.3, beta=0.5)),
    "FedBAT": (fedbat, FedBAT(ETA, 4, 0.5)),
    "FedBAT, one way": (fedbat, FedBAT(ETA, 4, 2.0, 0.3, (0.02, 0.2), both=False)),
    "FedBAT, weighted": (fedbat, FedBAT(ETA, 4, 0.5, weighted=True)),
}


@pytest.mark.parametrize("name", WRITTEN)
@each(problem=PROBLEMS, S=[5, 3])
def test_transcript(name, problem, S):
    transcript, algorithm = WRITTEN[name]
    compare(transcript, algorithm, weigh(PROBLEMS[problem]()), S)


# Bad input

BAD = {
    "ratio": [0.0, -0.5, 1.5, NAN, INF, "half", True, None],
    "down_ratio": [0.0, -0.5, 1.5, NAN, "half", True],
    "momentum": [-0.1, 1.5, NAN, None, "0.9"],
    "beta": [-0.1, 1.5, NAN, None],
    "delta": [-0.1, 1.5, NAN, None],
    "warm_up": [-0.1, 1.5, NAN, None],
    "rho": [-1.0, NAN, INF, None, "6"],
    "size": [0.0, -1.0, NAN, INF, None],
    "rows": [*COUNTS, 2, 4],
    "bits": [0, 4, 32, "8", 8.5],
    "clip": [0.0, -1.0, NAN, "1", True, (0.1,), (0.0, 1.0), (0.2, 0.1), (0.1, INF)],
    "values": ["sideways", "", 1, None],
}
for text in ("by", "rounding", "scale", "clear", "ties"):
    BAD[text] = BAD["values"]
for flag in ("error_feedback", "masking", "gate", "unbiased", "both", "weighted"):
    BAD[flag] = FLAGS


def table():
    """(algorithm, field, bad value)."""
    for algorithm in (TopK(ETA, K, 0.5), STC(ETA, K, 0.5), DGC(ETA, K, 0.5), FedCom(ETA, K), FetchSGD(ETA, K, 0.5)):
        yield from ((algorithm, name, bad) for name in algorithm.__dataclass_fields__ for bad in bad_for(name))
    for algorithm in (LBGM(ETA, K), EF21P(ETA, K, 0.5), FedBAT(ETA, K)):
        yield from ((algorithm, name, bad) for name in algorithm.__dataclass_fields__ for bad in bad_for(name))


def bad_for(name):
    if name == "lr":
        return [rate for rate in RATES if rate is not None]  # None: the problem suggests one
    return RATES if name == "server_lr" else COUNTS if name == "local_steps" else BAD[name]


@each("algorithm, field, value", [row for row in table() if row[1:] != ("clip", 0.1)])
def test_bad_fields(algorithm, field, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        replace(algorithm, **{field: value})
    complaint(caught, field)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_uniform_numbers_stay_below_one(dtype):
    """What is sure happens, also where few bits round 0.999 up."""
    u = uniforms([Key(0).generator()], torch.zeros(1, 200_000, dtype=dtype))
    assert float(u.max()) < 1
    assert u.dtype == dtype
    assert abs(float(u.double().mean()) - 0.5) < 0.01
