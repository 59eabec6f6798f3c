"""FLSS and SignSGD: the trajectory's SVD, the laws of the projected rounds, what crosses, and a NumPy transcript."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from cases import ETA, TWO_LAYERS, K, last, quadratic, regression, relative, rounds, start
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bad_input import COUNTS, FLAGS, INF, NAN, RATES, complaint
from test_transcripts import PROBLEMS, T, chosen, compare, gradient, samples_of, unvec, vec, weigh
from torch.utils._python_dispatch import TorchDispatchMode

from fedtheory import FLSS, FedAvg, Key, SignSGD, play_round, run
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.core.message import cost
from fedtheory.maps.signs import Signs
from fedtheory.maps.subspace import Trajectory

T0, R = 3, 2
PLAIN = FLSSReading(ETA, K, R, T0)
SIGNED = replace(PLAIN, base="signsgd")


def random(*shape, seed=0):
    return torch.randn(*shape, generator=Key(seed).generator(), dtype=torch.float64)


def same(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


# The SVD of a trajectory that is never held

seeds = st.integers(0, 2**31)


def grown(G, kept, sizes=None, centred=False, forget=1.0):
    """The trajectory with the columns of G, one by one."""
    trajectory = Trajectory.empty(sizes or [len(G)], kept, G, centred)
    for g in G.T:
        trajectory = trajectory.add(g, forget)
    return trajectory


def projector(P):
    return P @ P.T


@given(st.integers(1, 8), st.integers(0, 3), st.integers(1, 20), seeds)
def test_a_trajectory_of_low_rank_is_kept_exactly(rank, spare, J, seed):
    """rank(G) <= k: singular values and the projector on the span are those of the exact SVD; P^T P = I."""
    D = 30
    G = random(D, min(rank, J), seed=seed) @ random(min(rank, J), J, seed=seed + 1)
    trajectory = grown(G, rank + spare)
    U, s, _ = torch.linalg.svd(G, full_matrices=False)
    r = int((s > 1e-12 * s[0]).sum())
    (values,) = trajectory.values
    same(values[:r], s[:r], 1e-10)
    assert not values[r:].any()
    P = trajectory.basis(r).matrices()[0]
    same(projector(P), projector(U[:, :r]), 1e-7)
    same(P.T @ P, torch.eye(r, dtype=torch.float64))
    assert not trajectory.frames[0][:, r:].any(), "no direction is made up"


@given(st.integers(2, 12), seeds)
def test_keeping_every_column_is_the_exact_svd(J, seed):
    """kept = J, any G; with `centred` that of G minus its mean column, with `forget` that of the weighted columns."""
    G = random(30, J, seed=seed)
    weights = 0.8 ** torch.arange(J - 1, -1, -1, dtype=torch.float64)
    for options, matrix in (
        ({}, G),
        ({"centred": True}, G - G.mean(1, keepdim=True)),
        ({"forget": 0.8}, G * weights),
    ):
        same(grown(G, J, **options).values[0], torch.linalg.svdvals(matrix), 1e-10)


def test_the_gap_of_truncation_is_one_sided_and_small_where_the_spectrum_falls():
    """rank(G) > k: the span kept captures no more of G than the best one (Eckart-Young), and here nearly as much.

    Measured: spectrum 1/j, D = 200, J = 60, k = 8. Keeping 3 k columns closes most of the gap.
    """
    D, J, k = 200, 60, 8
    U, V = torch.linalg.qr(random(D, J))[0], torch.linalg.qr(random(J, J, seed=1))[0]
    G = U @ torch.diag(1 / torch.arange(1, J + 1, dtype=torch.float64)) @ V.T
    best = float((torch.linalg.svdvals(G)[:k] ** 2).sum())

    def captured(kept):
        return float((grown(G, kept).basis(k).project(G.T) ** 2).sum()) / best

    gap, wide = 1 - captured(k), 1 - captured(3 * k)
    assert 0 < wide < gap / 10
    assert gap < 0.05
    assert 1 - captured(J) < 1e-12


def test_layer_by_layer_is_one_svd_per_slice():
    G = random(11, 3)
    whole, layers = grown(G, 3), grown(G, 3, [8, 3])
    for P, rows in zip(layers.basis(3).matrices(), G.split([8, 3]), strict=True):
        same(projector(P), projector(torch.linalg.svd(rows, full_matrices=False)[0]))
    g = random(4, 11, seed=1)
    same(layers.basis(3).lift(layers.basis(3).project(g))[:, :8], g[:, :8] @ projector(layers.frames[0]))
    assert layers.basis(3).low.size == 6
    assert whole.basis(3).low.size == 3


class Sizes(TorchDispatchMode):
    """Entries of every tensor that is made."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.made += [
            part.numel() for part in (out if isinstance(out, (tuple, list)) else [out]) if torch.is_tensor(part)
        ]
        return out


def test_memory_is_d_times_k_and_does_not_grow_with_the_columns():
    """D = 50,000, k = 4: the 40th column makes what the 5th made, no tensor above D k, a few D k in all."""
    D, k, found = 50_000, 4, []
    trajectory = Trajectory.empty([D], k, torch.zeros(1))
    for j in range(40):
        g = random(D, seed=j).float()
        with Sizes() as sizes:
            trajectory = trajectory.add(g)
        found.append(sizes.made)
    assert max(found[39]) == D * k
    assert sum(found[39]) == sum(found[4]) < 7 * D * k
    P = trajectory.basis(k).matrices()[0]
    same(P.T @ P, torch.eye(k), 1e-5)


# Laws


@pytest.mark.parametrize("layerwise", [False, True])
@pytest.mark.parametrize("sampled", [5, 3])
def test_a_full_rank_trajectory_is_fedavg(layerwise, sampled):
    """R = D and D independent updates: P P^T = I."""
    problem = quadratic(layout=TWO_LAYERS, sigma=0.3)
    flss = FLSSReading(ETA, K, problem.d, problem.d, refresh=0, layerwise=layerwise)
    same(last(flss, problem, 25, sampled=sampled).server.x, last(FedAvg(ETA, K), problem, 25, sampled=sampled).server.x)
    cut = last(replace(flss, rank=2, warm_up=11), problem, 25, sampled=sampled)
    assert relative(cut.server.x, last(FedAvg(ETA, K), problem, 25, sampled=sampled).server.x) > 1e-2


@pytest.mark.parametrize("base", ["fedavg", "signsgd"])
def test_the_box_is_its_reading_with_all_defaults(base):
    """Bit for bit."""
    problem = quadratic(layout=TWO_LAYERS, sigma=0.3)
    box, reading = (kind(ETA, K, 2, 3, refresh=2, base=base) for kind in (FLSS, FLSSReading))
    assert torch.equal(last(box, problem, 8, sampled=3).server.x, last(reading, problem, 8, sampled=3).server.x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["fedavg", "signsgd", "signsgd by layer"])
def test_a_warm_up_without_end_is_the_base_method(name, weighted):
    """T0 >= rounds: the same bits, model and residuals, and the same bytes. Clients' sizes differ."""
    base = {"fedavg": FedAvg(ETA, K), "signsgd": SignSGD(ETA, K), "signsgd by layer": SignSGD(ETA, K, scale="layer")}
    scale = "layer" if name.endswith("layer") else "model"
    flss = FLSSReading(ETA, K, R, 12, base=name.split()[0], scale=scale, sr=3.0)
    problem = weigh(regression() if scale == "model" else quadratic(layout=TWO_LAYERS))
    both = (replace(a, weighted=weighted) for a in (flss, base[name]))
    one, two = (run(a, problem, 12, sampled=3, x0=start(problem)) for a in both)
    assert torch.equal(one.x, two.x)
    assert one.columns == two.columns
    if name != "fedavg":
        assert torch.equal(one.state.own.e, two.state.own.e)


@pytest.mark.parametrize("base", ["fedavg", "signsgd"])
def test_clients_count_by_their_data(base):
    """With equal sizes the bits of the plain mean; else another run, in which a client without weight has no say."""
    flss = FLSSReading(ETA, K, R, 4, base=base, refresh=3)
    counted = replace(flss, weighted=True)
    same, other = regression(), weigh(regression())
    runs = [run(a, p, 12, x0=start(p)).x for p in (same, other) for a in (flss, counted)]
    assert torch.equal(runs[0], runs[1])
    assert torch.equal(runs[0], runs[2])
    assert relative(runs[3], runs[2]) > 1e-3
    mute, silent = regression(), regression()
    mute.weights = torch.tensor([1.0, 2.0, 0.0, 3.0, 4.0], dtype=torch.float64) / 10
    grads = silent.grads
    silent.weights = mute.weights
    silent.grads = lambda y, xi: grads(y, xi).index_fill(0, torch.tensor([2]), 7.0)
    assert torch.equal(*(run(counted, p, 12, x0=start(p)).x for p in (mute, silent)))


def history(algorithm, problem, T, **options):
    """(clients, state before, down, up, state after) of every round."""
    root, before = Key(0), algorithm.init(problem, start(problem), Key(0))
    for t, (clients, _) in enumerate(rounds(algorithm, problem, T, **options)):
        key = root.fold("round", t)
        down = algorithm.broadcast(before.server, key)
        e = None if before.own is None else before.own.e.clone()
        after, up, _ = play_round(algorithm, problem, before, clients, key)
        yield clients, e, before, down, up, after
        before = after


def local_changes(algorithm, problem, x, clients, t):
    """g_t^k by plain local steps from w_t, (S, d)."""
    y = x.expand(len(clients), -1)
    for xi in problem.draw(clients, algorithm.local_steps, Key(0).fold("round", t, "xi")):
        y = y - algorithm.lr * problem.grads(y, xi)
    return y - x


@pytest.mark.parametrize("layerwise", [False, True])
def test_projected_rounds(layerwise):
    """(7), C.1: uploads are R numbers a client; P times their mean is the mean of P P^T g_t^k; Proj is idempotent.

    C.1's inner projection cannot be the one on the complement: P P^T (I - P P^T) g = 0.
    """
    problem, algorithm = regression(), replace(PLAIN, layerwise=layerwise)
    for t, (clients, _, before, down, up, after) in enumerate(history(algorithm, problem, 9, sampled=3)):
        g = local_changes(algorithm, problem, before.server.x, clients, t)
        assert (down.P is not None) == (t >= T0 and t != 7), "rounds 0-2: warm-up, round 7: the fifth since"
        if down.P is None:
            same(up.dy, g)
            continue
        P = down.P.value
        assert up.dy.shape == (3, R)
        proj = lambda v, P=P: P.lift(P.project(v))
        same(proj(up_full := P.lift(up.dy)), up_full)
        same(up_full, proj(g))
        same(proj(g.mean(0)), proj(g).mean(0))
        same(proj(g - proj(g)), torch.zeros_like(g))
        same(after.server.x - before.server.x, proj(g).mean(0))
        assert relative(proj(g), g) > 1e-2, "the projection takes something away"


def test_the_global_updates_span_what_is_projected_on():
    """C.5: at T0, P spans the R main directions of the columns w_{t+1} - w_t that were sampled."""
    problem = regression()
    algorithm = FLSSReading(ETA, K, 3, 9, interval=2, kept=4, refresh=0)
    states = [state for _, state in rounds(algorithm, problem, 9)]
    models = [start(problem)] + [state.server.x for state in states]
    G = torch.stack([models[t + 1] - models[t] for t in (1, 3, 5, 7)], 1)
    U, s, _ = torch.linalg.svd(G, full_matrices=False)
    P = states[-1].server.G.basis(3).matrices()[0]
    same(projector(P), projector(U[:, :3]), 1e-8)
    same(states[-1].server.G.values[0], s, 1e-10)
    unit = last(replace(algorithm, normalise=True), problem, 9).server.G.values[0]
    same(unit, torch.linalg.svdvals(G / G.norm(dim=0)), 1e-10)


def test_projecting_gradients_leaves_nothing_to_project():
    """Table 1: g_t^k = -eta sum P P^T grad is in the span of P, so "both" is "gradient", in R numbers instead of d."""
    problem = regression()
    one, two, update = (run(replace(PLAIN, project=p), problem, 20, sampled=3) for p in ("gradient", "both", "update"))
    same(one.x, two.x)
    assert relative(update.x, one.x) > 1e-3
    assert one["up_scalars"][-1] == 20 * 3 * 12
    assert two["up_scalars"][-1] == update["up_scalars"][-1] == 3 * (6 * 12 + 14 * R)


def test_the_projected_global_update_adds_no_direction():
    """stream="projected": P turns within its span, so the run is that of a fixed P; "full" leaves it."""
    for problem in (regression(), quadratic(sigma=0.3)):
        fixed = last(replace(PLAIN, refresh=0), problem, 30, sampled=3).server
        turned = last(replace(PLAIN, refresh=2, stream="projected"), problem, 30, sampled=3).server
        same(turned.x, fixed.x, 1e-10)
        P, Q = (server.G.basis(R).matrices()[0] for server in (fixed, turned))
        same(projector(P), projector(Q), 1e-10)
        assert relative(P, Q) > 1e-4, "it does turn"
        full = last(replace(PLAIN, refresh=2, normalise=True), problem, 30, sampled=3).server
        assert relative(projector(full.G.basis(R).matrices()[0]), projector(P)) > 1e-2


def test_scaled_rates():
    """sr scales local steps in projected rounds only; with one local step it is the server's step size as well."""
    problem = regression()
    plain, local, server = (
        replace(PLAIN, local_steps=1, sr=sr, scaled=by) for sr, by in ((1.0, "local"), (3.0, "local"), (3.0, "server"))
    )
    same(last(local, problem, T0).server.x, last(plain, problem, T0).server.x)
    same(last(local, problem, 20).server.x, last(server, problem, 20).server.x)
    assert relative(last(local, problem, 20).server.x, last(plain, problem, 20).server.x) > 1e-3
    first = replace(PLAIN, sr=3.0)
    x = last(PLAIN, problem, T0).server
    g = local_changes(replace(PLAIN, lr=3 * ETA), problem, x.x, problem.clients, T0).mean(0)
    same(last(first, problem, T0 + 1).server.x - x.x, x.G.basis(R).lift(x.G.basis(R).project(g)))


@pytest.mark.parametrize("problem", ["regression", "noisy quadratic"])
def test_one_client_is_projected_sgd(problem):
    problem = regression(n=1) if problem == "regression" else quadratic(1, sigma=0.3)
    for t, (clients, _, before, down, _, after) in enumerate(history(PLAIN, problem, 10)):
        g = local_changes(PLAIN, problem, before.server.x, clients, t)[0]
        same(after.server.x, before.server.x + (g if down.P is None else down.P.value.lift(down.P.value.project(g))))


# SignSGD with error feedback


@given(st.integers(1, 70), st.integers(1, 3), st.sampled_from([torch.float32, torch.float64]), seeds)
def test_signs_are_one_bit_per_entry(d, S, dtype, seed):
    """32 signs to a word; the receiver has sign(p) times the mean of |p|, group by group; 0 counts as positive."""
    p = random(S, d, seed=seed).to(dtype)
    p[:, 0] = 0.0
    sizes = [d // 2, d - d // 2] if d > 1 else [1]
    signs = Signs.of(p, sizes)
    assert signs.words.shape == (S, -(-d // 32))
    assert cost(signs).bytes == S * (4 * -(-d // 32) + len(sizes) * dtype.itemsize)
    wanted = torch.cat([torch.where(q >= 0, 1.0, -1.0) * q.abs().mean(1, keepdim=True) for q in p.split(sizes, 1)], 1)
    same(signs.expand(sizes), wanted.to(dtype), 1e-6)
    assert signs.expand(sizes).dtype == dtype


def test_signs_of_the_whole_vector_make_it_shorter():
    """Delta = (||p||_1/d) sign(p) is the projection of p on its sign vector: <Delta, p> = ||Delta||^2 <= ||p||^2."""
    p = random(4, 50)
    delta = Signs.of(p, [50]).expand([50])
    same((delta * p).sum(1), (delta**2).sum(1))
    assert bool(((delta**2).sum(1) < (p**2).sum(1)).all())


def test_signsgd_by_hand():
    """One client, two entries, K = 1: grad = (3, -1), lr 1: p = (-3, 1), sent (-2, 2), left (-1, -1)."""
    problem = quadratic(1, layout=type(TWO_LAYERS).single(2))
    problem.H[:], problem.b[:] = torch.eye(2, dtype=torch.float64), torch.tensor([-3.0, 1.0], dtype=torch.float64)
    state = last(SignSGD(1.0, 1), problem, 1, x0=torch.zeros(2, dtype=torch.float64))
    assert state.server.x.tolist() == [-2.0, 2.0]
    assert state.own.e.tolist() == [[-1.0, -1.0]]
    forgetful = last(SignSGD(1.0, 1, error_feedback=False), problem, 1, x0=torch.zeros(2, dtype=torch.float64))
    assert forgetful.own is None
    assert forgetful.server.x.tolist() == [-2.0, 2.0]


def test_signsgd_conserves_what_it_does_not_send():
    """Over all rounds: x_T - x_0 + mean of e_i = mean of all changes g_i."""
    problem, algorithm = regression(), SignSGD(ETA, K)
    total, x = torch.zeros(problem.d, dtype=torch.float64), start(problem)
    for t, (clients, state) in enumerate(rounds(algorithm, problem, 20)):
        total = total + local_changes(algorithm, problem, x, clients, t).mean(0)
        x = state.server.x
    same(x - start(problem) + state.own.e.mean(0), total)
    forgetful = replace(algorithm, error_feedback=False)
    assert relative(last(forgetful, problem, 20).server.x, x) > 1e-2


@pytest.mark.parametrize("order", ["project", "sign"])
@pytest.mark.parametrize("residual", ["sign", "all"])
@pytest.mark.parametrize("scale", ["model", "layer"])
def test_what_is_sent_and_what_is_left(order, residual, scale):
    """p = g + e. "all": P(sent) + e' = p. "sign": the same for what was signed, P P^T p or p itself."""
    problem = quadratic(layout=TWO_LAYERS, sigma=0.3)
    algorithm = replace(SIGNED, order=order, residual=residual, scale=scale, layerwise=scale == "layer", refresh=2)
    projected = 0
    for t, (clients, e, before, down, up, after) in enumerate(history(algorithm, problem, 12, sampled=3)):
        p = local_changes(algorithm, problem, before.server.x, clients, t) + e[clients]
        left = after.own.e[clients]
        P = None if down.P is None else down.P.value
        assert isinstance(up, Signs) == (P is None or order == "project")
        if P is None:
            same(up.expand(groups(problem.layout, scale)) + left, p)
            continue
        projected += 1
        sent = P.lift(up.expand(groups(P.low, scale)) if order == "project" else up.dy)
        same(after.server.x - before.server.x, sent.mean(0))
        if residual == "all":
            same(sent + left, p)
        elif order == "project":
            same(sent + left, P.lift(P.project(p)))
        else:
            same(sent, P.lift(P.project(p - left)))
    assert projected == 5


def groups(layout, scale):
    return [layer.rows * layer.cols for layer in layout.layers] if scale == "layer" else [layout.size]


def test_what_the_projection_left_out_never_comes_back_while_p_stays():
    """order="project": residual "all" and "sign" train the same model under a fixed P, and part where P changes."""
    problem = quadratic(sigma=0.3)
    for refresh, alike in ((0, True), (2, False)):
        one, two = (last(replace(SIGNED, residual=r, refresh=refresh), problem, 20, sampled=3) for r in ("sign", "all"))
        assert (relative(one.server.x, two.server.x) < 1e-12) == alike
        assert float(two.own.e.norm()) > float(one.own.e.norm())


# What crosses: d = 12, R = 2


def charged(algorithm, problem, T, sampled, dtype):
    """Bytes down of each round, as `run` counts them."""
    column = run(algorithm, problem, T, sampled=sampled, x0=start(problem))["down_bytes"]
    return [b - a for a, b in pairwise(column)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sampled", [5, 3, 1])
@pytest.mark.parametrize("refresh", [0, 2])
@pytest.mark.parametrize("stream", ["full", "projected"])
def test_traffic_down_by_hand(dtype, sampled, refresh, stream):
    """Before T0: w, 12. From T0 on: 2 per projected round and 12 per unprojected one since the client's last.

    Or all of w and P, 12 + 24 (with refresh > 0 and the 2 singular values), where that is less or the client was not
    there since T0. If everybody always takes part, P is known, and round T0 brings w.
    """
    algorithm, problem, T, b = (
        replace(PLAIN, refresh=refresh, stream=stream),
        quadratic(dtype=dtype),
        14,
        dtype.itemsize,
    )
    last_seen, expected = {}, []
    for t, (clients, _) in enumerate(rounds(algorithm, problem, T, sampled=sampled)):
        numbers = 0
        for i in clients.tolist():
            wide = lambda s: s < T0 or (refresh == 2 and stream == "full" and (s - T0) % 2 == 1)
            if t < T0:
                numbers += 12
            elif sampled < 5 and last_seen.get(i, -1) < T0:
                numbers += 12 + 24 + (2 if refresh else 0)
            else:
                steps = sum(12 if wide(s) else 2 for s in range(last_seen[i], t))
                numbers += min(steps, 36 + (2 if refresh else 0))
            last_seen[i] = t
        expected.append(numbers * b)
    assert charged(algorithm, problem, T, sampled, dtype) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_traffic_up_by_hand(dtype):
    """FedAvg: 12 or 2 numbers. SignSGD: one word (12 or 2 signs fit) and a scale; order="sign": 2 numbers."""
    problem, b = quadratic(dtype=dtype), dtype.itemsize
    for algorithm, wide, low in (
        (PLAIN, 12 * b, 2 * b),
        (SIGNED, 4 + b, 4 + b),
        (replace(SIGNED, order="sign"), 4 + b, 2 * b),
        (replace(SIGNED, layerwise=True, scale="layer"), 4 + b, 4 + b),
    ):
        column = run(algorithm, problem, 9, sampled=3)["up_bytes"]
        assert [y - x for x, y in pairwise(column)] == [3 * (low if t in (3, 4, 5, 6, 8) else wide) for t in range(9)]


schedules = st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=5), min_size=4, max_size=14)
STREAMED = {
    "fixed": replace(PLAIN, refresh=0),
    "full": replace(PLAIN, refresh=2),
    "projected": replace(PLAIN, refresh=2, stream="projected", kept=3, layerwise=True),
    "centred": replace(PLAIN, refresh=3, centre=True, sr=2.0, scaled="server"),
    "signed": replace(SIGNED, refresh=2, normalise=True, forget=0.9),
}


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(schedule=schedules)
@settings(max_examples=15)
def test_a_client_that_was_away_rebuilds_model_and_subspace_bit_for_bit(name, dtype, schedule):
    """Random participation. From its last (w, SVD of G) and the steps it is charged for, a client has the server's.

    A projected round's step is R numbers, an unprojected one's the next model.
    """
    algorithm, problem, root = STREAMED[name], regression(dtype=dtype), Key(3)
    state = algorithm.init(problem, start(problem), root)
    copies, steps, last_seen, complete = {}, [], {}, True
    for t, ids in enumerate(schedule):
        key = root.fold("round", t)
        down = algorithm.broadcast(state.server, key)
        for i in ids if t >= T0 else ():
            price = cost(down.model, [t - last_seen[i] if i in last_seen else None])
            if i in copies:
                x, G = copies[i]
                for step in steps[last_seen[i] :]:
                    x, G = follow(algorithm, x, G, *step)
                assert price.scalars == min(
                    sum(step[0].numel() for step in steps[last_seen[i] :]), cost((x, trimmed(algorithm, G))).scalars
                )
            elif complete:
                assert price.scalars == problem.d
            else:
                x, G = down.model.value
                assert price == cost(down.model.value)
            if i in copies or not complete:
                assert torch.equal(x, down.x)
                for mine, theirs in zip(G.basis(R).matrices(), state.server.G.basis(R).matrices(), strict=True):
                    assert torch.equal(mine, theirs)
            copies[i] = (state.server.x, state.server.G)
        before = state.server
        state, up, _ = play_round(algorithm, problem, state, torch.tensor(sorted(ids)), key)
        complete = complete and len(ids) == 5
        if down.P is None:
            steps.append((state.server.x, t))
        else:
            sent = up.expand([R]) if isinstance(up, Signs) else up.dy
            steps.append((sent.mean(0) * (algorithm.sr if algorithm.scaled == "server" else 1), t))
        assert before.t == t
        last_seen |= dict.fromkeys(ids, t)


def trimmed(algorithm, G):
    return G if algorithm.refresh else Trajectory(G.basis(R).frames, ())


def follow(algorithm, x, G, step, t):
    """One round at a client: w_{t+1} and its SVD of G."""
    wide = len(step) == len(x)
    change = step - x if wide else G.basis(R).lift(step)
    if algorithm.streams(t):
        column = change / torch.linalg.vector_norm(change) if algorithm.normalise else change
        G_next = G.add(column, algorithm.forget)
    else:
        G_next = G
    return step if wide else x + change, G_next


@pytest.mark.parametrize("algorithm", [PLAIN, SIGNED, replace(PLAIN, interval=2, warm_up=6, normalise=True)])
def test_a_client_that_saw_every_model_makes_p_itself(algorithm):
    """Everybody takes part: from w_0, ..., w_T0 alone, the server's P bit for bit; it is charged for nothing more."""
    problem = quadratic(dtype=torch.float32)
    models = [start(problem)]
    for _, state in rounds(algorithm, problem, algorithm.warm_up):
        models.append(state.server.x)
    G = Trajectory.empty([problem.d], R, models[0])
    for t in range(algorithm.interval - 1, algorithm.warm_up, algorithm.interval):
        g = models[t + 1] - models[t]
        G = G.add(g / torch.linalg.vector_norm(g) if algorithm.normalise else g)
    assert torch.equal(G.frames[0], state.server.G.frames[0])
    down = algorithm.broadcast(state.server, Key(0))
    assert cost(down, [1] * 5).scalars == 5 * 12
    assert cost(down, [None]).scalars == 12 + 24 + 2


# A second writing: NumPy, loops over clients, the SVD of whole matrices


def flss(problem, a, S, root, x):
    """C.1, C.5 and the reading of the class. G is truncated to `kept` columns U diag(s) by a dense SVD each time."""
    d, N, w = problem.d, problem.n, vec(x)
    e = np.zeros((N, d))
    slices = problem.layout.slices if a.layerwise else [slice(0, d)]
    kept, columns = a.kept or a.rank, []
    main = [np.zeros((s.stop - s.start, 0)) for s in slices]

    def sign(p, cut):
        return np.concatenate([np.where(q >= 0, 1.0, -1.0) * np.abs(q).sum() / len(q) for q in np.split(p, cut)])

    ends = [s.stop for s in problem.layout.slices][:-1] if a.scale == "layer" else []
    for t in range(T):
        key = root.fold("round", t)
        u = t - a.warm_up
        streams = u >= 0 and a.refresh > 0 and u % a.refresh == a.refresh - 1
        projected = u >= 0 and not (streams and a.stream == "full")
        P = np.zeros((d, 0))
        low = []  # where the slices' coordinates end
        if projected:
            for where, block in zip(slices, main):
                r = min(a.rank, block.shape[1])
                wide = np.zeros((d, r))
                wide[where] = np.linalg.svd(block, full_matrices=False)[0][:, :r]
                P = np.hstack([P, wide])
                low.append(P.shape[1])
        total = np.zeros(d)
        ids = chosen(problem, S, key)
        p_i = {i: float(problem.weights[i]) if a.weighted else 1.0 for i in ids}
        for i in ids:
            share = p_i[i] / sum(p_i.values())
            y = w.copy()
            for sample in samples_of(problem, i, a.local_steps, key):
                grad = vec(gradient(problem, i, sample, unvec(y, problem)))
                if projected and a.project != "update":
                    grad = P @ (P.T @ grad)
                y = y - a.lr * (a.sr if projected and a.scaled == "local" else 1) * grad
            g = y - w
            if a.base == "fedavg":
                total += share * (P @ (P.T @ g) if projected else g)
                continue
            p = g + e[i]
            if not projected:
                sent = sign(p, ends)
                e[i] = p - sent
            elif a.order == "sign":
                signs = sign(p, ends)
                sent = P @ (P.T @ signs)
                e[i] = p - (signs if a.residual == "sign" else sent)
            else:
                b = P.T @ p
                signs = sign(b, low[:-1] if a.scale == "layer" else [])
                sent = P @ signs
                e[i] = P @ (b - signs) if a.residual == "sign" else p - sent
            total += share * sent
        if projected and a.scaled == "server":
            total = a.sr * total
        w = w + total
        if streams or (u < 0 and (t + 1) % a.interval == 0):
            column = total / np.linalg.norm(total) if a.normalise else total
            columns = [a.forget * old for old in columns] + [column]
            if a.centre:
                G = np.stack(columns, 1)
                main = [(G - G.mean(1, keepdims=True))[where] for where in slices]
            else:
                for j, where in enumerate(slices):
                    U, s, _ = np.linalg.svd(np.hstack([a.forget * main[j], column[where, None]]), full_matrices=False)
                    main[j] = (U * s)[:, :kept]
        yield w, None  # residuals: see test_what_is_sent_and_what_is_left


READINGS = {
    "default": PLAIN,
    "fixed": replace(PLAIN, refresh=0, warm_up=8, interval=3),
    "projected": replace(PLAIN, stream="projected", refresh=2, kept=4),
    "layers": replace(PLAIN, layerwise=True, normalise=True, refresh=3),
    "gradient": replace(PLAIN, project="gradient", sr=2.0),
    "both": replace(PLAIN, project="both", sr=2.0),
    "server": replace(PLAIN, sr=2.0, scaled="server"),
    "centred": replace(PLAIN, centre=True, kept=12, warm_up=6),
    "forget": replace(PLAIN, forget=0.7, kept=3),
    "signed": SIGNED,
    "signed, all": replace(SIGNED, residual="all", refresh=2),
    "sign first": replace(SIGNED, order="sign"),
    "sign first, all": replace(SIGNED, order="sign", residual="all", sr=2.0),
    "signed by layer": replace(SIGNED, layerwise=True, scale="layer"),
    "weighted": replace(PLAIN, weighted=True),
    "signed, weighted": replace(SIGNED, weighted=True),
}


@pytest.mark.parametrize("reading", READINGS)
@each(problem=["regression", "quadratic", "two layers"], S=[5, 3])
def test_transcript(reading, problem, S):
    compare(flss, READINGS[reading], weigh(PROBLEMS[problem]()), S)


# Bad input


def table():
    """(field, bad value)."""
    yield from (("lr", bad) for bad in RATES if bad is not None)  # None: the problem suggests one
    yield from (("sr", bad) for bad in RATES)
    for name in ("local_steps", "rank", "warm_up", "interval"):
        yield from ((name, bad) for bad in COUNTS)
    yield from (("refresh", bad) for bad in (-1, True, 2.0, None))
    yield from (("kept", bad) for bad in (1, 0, True, 2.0, "2"))
    yield from (("forget", bad) for bad in (0.0, -0.5, 1.5, NAN, INF, "half"))
    for name in ("layerwise", "normalise", "centre", "weighted"):
        yield from ((name, bad) for bad in FLAGS)
    for name in ("stream", "base", "project", "scaled", "order", "residual", "scale"):
        yield from ((name, bad) for bad in ("sideways", "", 1, None))


@each("field, value", table())
def test_bad_fields(field, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        replace(PLAIN, **{field: value})
    complaint(caught, field, repr(value)[:40])


@pytest.mark.parametrize("field", ["lr", "local_steps", "error_feedback", "scale"])
def test_bad_fields_of_signsgd(field):
    bad = {"lr": RATES[1:], "local_steps": COUNTS, "error_feedback": FLAGS, "scale": ["sideways", None]}[field]
    for value in bad:
        with pytest.raises((ValueError, TypeError)) as caught:
            replace(SignSGD(ETA, K), **{field: value})
        complaint(caught, field, repr(value)[:40])


@pytest.mark.parametrize(
    ("make", "name", "part"),
    [
        (lambda: FLSS(ETA, K, 4, 3), "rank", "4"),
        (lambda: FLSSReading(ETA, K, 2, 9, interval=5), "rank", "interval smaller"),
        (lambda: FLSSReading(ETA, K, 2, 5, centre=True, forget=0.5), "forget", "0.5"),
        (lambda: FLSS(ETA, K, 2, 5, base="signsgd", project="gradient"), "project", "gradient"),
        (lambda: FLSS(ETA, K, 13, 20).init(quadratic(), start(quadratic()), Key(0)), "rank", "13"),
    ],
)
def test_bad_combinations(make, name, part):
    with pytest.raises(ValueError, match=name) as caught:
        make()
    complaint(caught, name, part)


def test_divergence_is_reported_and_not_raised_by_the_svd():
    for algorithm in (replace(PLAIN, lr=30.0, warm_up=400), replace(SIGNED, lr=30.0, warm_up=400)):
        found = run(algorithm, quadratic(), 2000, x0=start(quadratic())).diverged
        assert found is not None
        assert found.quantity.startswith("Up.")
