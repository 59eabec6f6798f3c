"""Facts on which the papers stand, as laws that anyone can read: what a projector is on average, how far clients
drift, what averaging does to a decomposed update, and which rank a decomposed update has.

**Projectors.** SSF (Assumption 3) asks for P P^T = I_r and E[P^T P] = (r/d) I; FedSub (Assumption 1, transposed) for
P^T P = (m/r) I and E[P P^T] = I. In the package P always has its columns in the full space: `P.project` is P^T and
`P.lift` is P.

**Drift.** SSF's Lemma 2 and FedSub's Lemma 1 bound how far local iterates move from the broadcast model. Both are
checked on the very `client` generators that train.

**Averages.** FedMUD (6)-(9): an update U V^T is not linear in (U, V), so the update of the averaged factors is not the
average of the updates; with aggregation-aware decomposition (AAD), U V~^T + U~ V^T, it is.

**Rank.** FedMUD, Sec. 3.2: low rank updates have rank r, block-wise Kronecker updates (BKD) may have full rank.
"""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtheory import SSF, Coordinate, FedSub, Gaussian, Key, Layout, Spherical
from fedtheory.algorithms import fedsub
from fedtheory.maps.decomposition import Decoupled, KroneckerBlocks, Outer, Product
from fedtheory.theory.instances import Smooth, coordinate_frames, fixed, haar_second_moment, plane_frames, run_locals
from fedtheory.theory.ssf.attack import Edge, build
from fedtheory.theory.ssf.lemma2 import lemma2
from fedtheory.theory.ssf.round import Instance, kept, play, tiny

sizes = st.integers(1, 5).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m)))
scales = st.sampled_from(["orthonormal", "isotropic"])
seeds = st.integers(0, 2**32)


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=1e-10, atol=atol)


# Projector expectation


@given(sizes, scales, seeds)
def test_coordinate_projectors_on_average(size, scale, seed):
    """COORDINATE, exactly, over all C(m, r) subsets: both halves of both assumptions hold.

    orthonormal: P^T P = I, E[P P^T] = (r/m) I, E||(I - P P^T) v||^2 = (1 - r/m) ||v||^2.
    isotropic: P^T P = (m/r) I, E[P P^T] = I, E||(I - P P^T) v||^2 = (m/r - 1) ||v||^2.
    """
    m, r = size
    frames = coordinate_frames(m, r, scale=scale)
    eye, s2 = torch.eye(m, dtype=torch.float64), 1.0 if scale == "orthonormal" else m / r
    same(frames.mT @ frames, s2 * eye[:r, :r].expand(len(frames), -1, -1))
    same((frames @ frames.mT).mean(0), s2 * r / m * eye)
    v = normal(m, seed=seed)
    rest = ((eye - frames @ frames.mT) @ v).pow(2).sum(-1).mean()
    same(rest, (1 - r / m if scale == "orthonormal" else m / r - 1) * (v @ v))


@given(sizes, scales, seeds)
def test_coordinate_draws_are_among_the_enumerated_subsets(size, scale, seed):
    """What `Coordinate` draws is one of the frames enumerated above, up to the order of its columns."""
    m, r = size
    P = Coordinate(r, scale).draw(Layout.single(m), Key(seed), torch.float64).matrices()[0]
    frames = coordinate_frames(m, r, scale=scale)
    assert any(torch.equal(P @ P.T, frame @ frame.T) for frame in frames)


def mean_and_error(values):
    """Mean over draws and its standard error, entry by entry."""
    return values.mean(0), values.std(0) / len(values) ** 0.5


def draw(kind, m, r, scale, count=3000):
    projection, layout = kind(r, scale), Layout.single(m)
    return torch.stack([projection.draw(layout, Key(11).fold(i), torch.float64).matrices()[0] for i in range(count)])


@pytest.mark.parametrize(("m", "r"), [(4, 1), (4, 3)])
@pytest.mark.parametrize("scale", ["orthonormal", "isotropic"])
def test_haar_projectors_on_average(m, r, scale):
    """HAAR (`Spherical`): P^T P exact for every draw; E[P P^T] and E||(I - P P^T) v||^2 within 4.5 standard errors."""
    P, v, eye = draw(Spherical, m, r, scale), normal(m, seed=1), torch.eye(m, dtype=torch.float64)
    s2 = 1.0 if scale == "orthonormal" else m / r
    same(P.mT @ P, (s2 * eye[:r, :r]).expand(len(P), -1, -1))
    mean, error = mean_and_error(P @ P.mT)
    assert float(((mean - s2 * r / m * eye).abs() / error.clamp(min=1e-12)).max()) < 4.5
    mean, error = mean_and_error(((eye - P @ P.mT) @ v).pow(2).sum(-1))
    wanted = (1 - r / m if scale == "orthonormal" else m / r - 1) * (v @ v)
    assert abs(float((mean - wanted) / error)) < 4.5


@pytest.mark.parametrize(("m", "r"), [(4, 1), (4, 3)])
@pytest.mark.parametrize("scale", ["orthonormal", "isotropic"])
def test_gaussian_projectors_on_average(m, r, scale):
    """GAUSSIAN: E[P P^T] is right, E[P^T P] too, but no draw has P^T P a multiple of I: half of each assumption FAILS.

    E||(I - P P^T) v||^2 is larger than for an orthonormal basis: with entry variance t = 1/m or 1/r,
    (1 - 2 r t + r t^2 (m + r + 1)) ||v||^2.
    """
    P, v, eye = draw(Gaussian, m, r, scale), normal(m, seed=1), torch.eye(m, dtype=torch.float64)
    t = 1 / m if scale == "orthonormal" else 1 / r
    gram = P.mT @ P
    assert float((gram - m * t * eye[:r, :r]).flatten(1).abs().amax(-1).min()) > 1e-6
    for values, wanted in ((P @ P.mT, r * t * eye), (gram, m * t * eye[:r, :r])):
        mean, error = mean_and_error(values)
        assert float(((mean - wanted).abs() / error).max()) < 4.5
    mean, error = mean_and_error(((eye - P @ P.mT) @ v).pow(2).sum(-1))
    wanted = (1 - 2 * r * t + r * t**2 * (m + r + 1)) * (v @ v)
    assert abs(float((mean - wanted) / error)) < 4.5


@given(seeds)
def test_haar_second_moment_in_the_plane(seed):
    """E[Pi A Pi] for a Haar line in the plane: the closed form equals the exact quadrature over equal angles."""
    A = normal(2, 2, seed=seed)
    A = A + A.T
    frames = plane_frames(5)
    projectors = frames @ frames.mT
    same((projectors @ A @ projectors).mean(0), haar_second_moment(A, 1))


def test_haar_second_moment_in_space():
    """E[Pi A Pi] in R^4, r = 2: the closed form within 4.5 standard errors of 3000 draws."""
    P, A = draw(Spherical, 4, 2, "orthonormal"), torch.diag(torch.tensor([3.0, 1.0, 0.0, -2.0], dtype=torch.float64))
    projectors = P @ P.mT
    mean, error = mean_and_error(projectors @ A @ projectors)
    assert float(((mean - haar_second_moment(A, 2)).abs() / error).max()) < 4.5


# Drift bounds


edges = st.builds(
    Edge,
    N=st.integers(1, 2),
    K=st.integers(1, 4),
    shape=st.sampled_from(["quadratic", "huber", "cosine", "spline"]),
    share=st.sampled_from([1.0, 0.5, 0.05]),
    noisy=st.booleans(),
    free_c=st.just(True),
    one_frame=st.just(True),
) | st.builds(
    Edge,
    N=st.integers(1, 2),
    K=st.integers(1, 3),
    d=st.just(2),
    r=st.integers(1, 2),
    share=st.sampled_from([1.0, 0.5]),
    free_c=st.just(True),
    one_frame=st.just(True),
)


@settings(max_examples=60)
@given(edges, seeds)
def test_ssf_lemma_2(edge, seed):
    """SSF, LEMMA 2, exactly over all noise scenarios: for eta_l <= 1/(2KL), any x, any P, ANY controls,

    sum_k E||y_proj^k - x_proj||^2 <= 6 K^2 eta_l^2 sigma^2 + 12 K^3 eta_l^2 ||grad F_i(x) - c_i + c||^2,

    and even with 2 and 1 in place of 6 and 12.
    """
    q = play(build(normal(edge.size, seed=seed), edge))
    for noise, drift in ((6.0, 12.0), (2.0, 1.0)):
        left, right = lemma2(noise, drift)(q)
        assert float(left) <= float(right) * (1 + 1e-9) + 1e-15


@given(st.integers(2, 6), st.floats(0.1, 100.0))
def test_ssf_without_control_variates_drifts_with_heterogeneity(K, spread):
    """WITHOUT CONTROLS (c_i = c = 0) Lemma 2's right-hand side holds the gradients of the single clients.

    Two clients with opposite gradients +-s at the global minimiser: with exact controls they do not move at all,
    without them the drift is at least (eta_l s)^2/4, however large the heterogeneity s^2 is.
    """
    b = torch.tensor([[-spread], [spread]], dtype=torch.float64)
    problem = Smooth(torch.ones(2, 1, dtype=torch.float64), b)
    x, none = torch.zeros(1, dtype=torch.float64), torch.zeros(2, 1, dtype=torch.float64)
    frame, lr = torch.ones(1, 1, 1, dtype=torch.float64), 1 / (2 * K)
    drifts = [
        float(play(Instance(problem, x, ci, ci.mean(0), frame, lr, K)).drift) for ci in (problem.gradients(x), none)
    ]
    assert drifts[0] == 0.0
    assert drifts[1] >= lr**2 * spread**2 / 4


def fedsub_drift(seed, n, m, r, tau, share, dual):
    """Both sides of FedSub's Lemma 1, from FedSub.client, for any x and any duals that sum to zero.

    Lambda_i = eta tau c_i; P is given and gradients are exact, so no expectation is left. Y_i = eta tau ((r/m) P^T
    grad f_i(x) + c_i).
    """
    problem = Smooth(torch.sin(normal(n, m, seed=seed)), normal(n, m, seed=seed + 1))  # L_f = 1
    P = coordinate_frames(m, r, scale="isotropic")[0]
    eta = share * (r / m) ** 0.5 / (32**0.5 * tau)
    algorithm = FedSub(eta, tau, fixed(P, "isotropic"))
    x = normal(m, seed=seed + 2)
    c = normal(n, r, seed=seed + 3) if dual else torch.zeros(n, r, dtype=torch.float64)
    c = c - c.mean(0)
    state = algorithm.init(problem, x, Key(0))
    own = fedsub.Own(eta * tau * c, torch.zeros_like(c))
    local = run_locals(algorithm, problem, own, algorithm.broadcast(state.server, Key(0)))
    left = sum(float((B**2).sum()) for B in local.iterates[:-1])  # B^0 = 0
    gradients = problem.gradients(x)
    Y = eta * tau * (r / m * gradients @ P + c)
    spread = float(((Y - Y.mean(0)) ** 2).sum())
    theta = r / m
    right = 5 * tau * spread + 5 * eta**2 * theta**2 * tau**3 * n * float(((gradients.mean(0) @ P) ** 2).sum())
    return left, right


@given(st.integers(1, 3), sizes, st.integers(1, 5), st.sampled_from([1.0, 0.5, 0.05]), seeds)
def test_fedsub_lemma_1(n, size, tau, share, seed):
    """FEDSUB, LEMMA 1, for eta as in (31), here eta <= sqrt(r/(32 m))/(tau L_f), any x and any duals of sum zero:

    sum_i sum_t ||B_i^t||^2 <= 5 tau sum_i ||Y_i - mean Y||^2 + 5 eta^2 theta_r^2 tau^3 n ||P^T grad f(x)||^2.
    """
    left, right = fedsub_drift(seed, n, *size, tau, share, dual=True)
    assert left <= right * (1 + 1e-9) + 1e-15


def test_fedsub_without_duals_drifts_with_heterogeneity():
    """WITHOUT DUALS Y_i is eta tau (r/m) P^T grad f_i(x): at the minimiser its spread is the heterogeneity itself.

    Two clients, f_i = (x -+ s)^2/2, x = 0: the drift is proportional to s^2; with Lambda_i = -eta tau grad f_i it is 0.
    """
    frame = torch.ones(1, 1, dtype=torch.float64)
    for spread, dual in itertools.product((1.0, 10.0), (False, True)):
        b = torch.tensor([[-spread], [spread]], dtype=torch.float64)
        problem = Smooth(torch.ones(2, 1, dtype=torch.float64), b)
        algorithm = FedSub(0.1, 3, fixed(frame, "isotropic"))
        state = algorithm.init(problem, problem.start(), Key(0))
        Lambda = -0.3 * problem.gradients(problem.start()) if dual else torch.zeros(2, 1, dtype=torch.float64)
        own = fedsub.Own(Lambda, torch.zeros_like(Lambda))
        local = run_locals(algorithm, problem, own, algorithm.broadcast(state.server, Key(0)))
        left = sum(float((B**2).sum()) for B in local.iterates[:-1])
        wanted = 0.0 if dual else 2 * spread**2 * (0.1**2 + 0.19**2)
        assert left == pytest.approx(wanted, rel=1e-12, abs=1e-15)


def test_one_sample_for_all_steps_breaks_lemma_2():
    """Assumption 2 as printed allows a client to keep one sample: at K = 16 the drift is above Lemma 2's bound."""
    q = play(kept(16, -1.0, lr=1 / 32))
    left, right = lemma2()(q)
    assert float(left) > float(right)
    fresh = SSF(1 / 32, 8, fixed(torch.ones(1, 1, dtype=torch.float64)))
    assert fresh.local_steps == 8
    left, right = lemma2()(play(tiny(-1.0, K=8, lr=1 / 16, u=1.0)))
    assert float(left) < float(right) / 5


# Averages of factors


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3))  # m, n and the rank or the number of blocks
kinds = st.sampled_from(["low rank", "stacked blocks", "square of blocks"])


def bilinear(kind, m, n, r):
    """(U, V) -> U V^T, or r blocks U (x) V one after the other, or r x r of them in a square."""
    if kind == "low rank":
        return Outer(m, n, r)
    p, q = (r, 1) if kind == "stacked blocks" else (r, r)
    return KroneckerBlocks(m * n, p, q, next(z for z in itertools.count(1) if p * q * z**4 >= m * n))


def clients_factors(of, N, seed, sums):
    """N clients' u_i = (U_i, V_i), and aggregation weights p_i that sum to 1."""
    p = normal(N, seed=seed + 1).abs() + 0.01
    return normal(N, sum(of.sizes), seed=seed), p / p.sum() if sums == "weighted" else torch.full_like(p, 1 / N)


@given(kinds, shapes, st.integers(1, 5), st.sampled_from(["alike", "weighted"]), seeds)
def test_aad_averages_of_factors_give_averages_of_updates(kind, shape, N, sums, seed):
    """WITH AAD (9): sum_i p_i (U_i V~^T + U~ V_i^T) = U_bar V~^T + U~ V_bar^T, any product, any weights, any U~, V~."""
    of = bilinear(kind, *shape)
    u, p = clients_factors(of, N, seed, sums)
    aad, fixed = Decoupled(of, random=False), normal(sum(of.sizes), seed=seed + 2)
    same(aad.update(p @ u, fixed), p @ aad.update(u, fixed))


@given(kinds, shapes, st.integers(2, 5), st.sampled_from(["alike", "weighted"]), seeds)
def test_without_aad_the_gap_is_the_covariance_of_the_factors(kind, shape, N, sums, seed):
    """WITHOUT AAD (6), (7): mean(U_i V_i^T) - mean(U_i) mean(V_i)^T = mean((U_i - U_bar)(V_i - V_bar)^T), not zero.

    Started from common U_0, V_0 the gap has the changes dU_i and dV_i in place of U_i and V_i: it is of second order.
    """
    of, nothing = bilinear(kind, *shape), torch.zeros(0, dtype=torch.float64)
    plain = Product(of, random=False)
    u, p = clients_factors(of, N, seed, sums)
    gap = p @ plain.update(u, nothing) - plain.update(p @ u, nothing)
    U, V = u.split(of.sizes, -1)
    same(gap, p @ of.product(U - p @ U, V - p @ V))
    same(gap, p @ of.product(U, V) - of.product(p @ U, p @ V))
    assert float(gap.norm()) > 0
    common = normal(sum(of.sizes), seed=seed + 3)
    small = p @ plain.update(common + 1e-3 * u, nothing) - plain.update(common + 1e-3 * p @ u, nothing)
    same(small, 1e-6 * gap)


def test_the_gap_of_two_clients_in_figure_1c():
    """(U_1 V_1^T + U_2 V_2^T)/2 is not (U_1 + U_2)(V_1 + V_2)^T/4: with U_2 = -U_1, V_2 = -V_1 the average is lost."""
    plain, u = Product(Outer(3, 2, 1), random=False), normal(5, seed=0)
    none = torch.zeros(0, dtype=torch.float64)
    both = plain.update(torch.stack([u, -u]), none)
    same(both[0], both[1])
    assert not plain.update((u - u) / 2, none).any()
    assert float(both.mean(0).norm()) > 0.1


# Rank of an update

PRIME = 2**31 - 1


def rank_by_elimination(matrix):
    """Rank of a matrix of integers modulo a prime, by Gaussian elimination: no rounding, no threshold."""
    rows, rank = [[int(entry) % PRIME for entry in row] for row in matrix.tolist()], 0
    for column in range(matrix.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, PRIME)
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] * inverse % PRIME
            rows[i] = [(a - factor * b) % PRIME for a, b in zip(rows[i], rows[rank])]
        rank += 1
    return rank


def whole_numbers(size, seed):
    """Random integers below 2^24 as float64: products of two are exact."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(1, 2**24, (size,), generator=g).double()


sides = st.integers(1, 14)


@given(sides, sides, st.integers(1, 4), seeds)
def test_the_rank_of_a_low_rank_update(m, n, r, seed):
    """LOW RANK: min(r, m, n), with (m + n) r numbers."""
    of = Outer(m, n, r)
    assert sum(of.sizes) == (m + n) * r
    update = of.product(*(whole_numbers(size, seed + i) for i, size in enumerate(of.sizes)))
    assert rank_by_elimination(update.view(m, n)) == min(r, m, n)


@settings(max_examples=200)
@given(sides, sides, st.integers(1, 4), st.sampled_from(["stacked blocks", "square of blocks"]), seeds)
def test_the_rank_of_a_block_wise_kronecker_update(m, n, k, kind, seed):
    """BKD, any m, n, k: full rank min(m, n) for factors in general position, as Sec. 3.2 and Appendix B say.

    Two shapes are exceptions, for truncation leaves them too little of a single block: 2 x 2 and 6 x 3 (next test).
    """
    of = bilinear(kind, m, n, k)
    update = of.product(*(whole_numbers(size, seed + i) for i, size in enumerate(of.sizes)))
    lost = ((m, n) == (2, 2) and of.z == 2) or ((m, n) == (6, 3) and k == 1)
    assert rank_by_elimination(update.view(m, n)) == min(m, n) - lost


@given(seeds)
def test_truncation_can_cost_bkd_its_full_rank(seed):
    """2 x 2, k = 1: z = ceil(4^(1/4)) = 2, and the first 4 of 16 entries are U[0, :] (x) V[0, :], an outer product.

    6 x 3, k = 1: z = 3, and the first 18 of 81 entries are multiples of V[0, :] and V[1, :]: rank 2. For any U and V.
    """
    for m, n, z, rank in ((2, 2, 2, 1), (6, 3, 3, 2)):
        of = KroneckerBlocks(m * n, 1, 1, z)
        U, V = normal(z, z, seed=seed), normal(z, z, seed=seed + 1)
        update = of.product(U.flatten(), V.flatten()).view(m, n)
        rows = torch.stack([U[0, j] * V[i] for i in range(rank) for j in range(z)])
        same(update, rows)
        assert int(torch.linalg.matrix_rank(update)) <= rank < min(m, n)


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3), seeds)
def test_the_rank_of_kronecker_blocks_without_truncation(z, ranks, seed):
    """One block: rank U * rank V. Blocks one above the other: no less than each, no more than their sum and z^2."""
    ranks = [(min(a, z), min(b, z)) for a, b in ranks]

    def factor(rank, seed):  # z x z of the given rank, entries small integers
        left, right = (whole_numbers(z * rank, seed + i) % 100 + 1 for i in (0, 1))
        return left.view(z, rank) @ right.view(rank, z)

    factors = [(factor(a, seed + 10 * i), factor(b, seed + 10 * i + 5)) for i, (a, b) in enumerate(ranks)]
    U, V = (torch.stack(parts).flatten() for parts in zip(*factors))
    update = KroneckerBlocks(len(ranks) * z**4, len(ranks), 1, z).product(U, V).view(len(ranks) * z**2, z**2)
    each = [rank_by_elimination(a) * rank_by_elimination(b) for a, b in factors]
    blocks = update.split(z**2)
    assert [rank_by_elimination(block) for block in blocks] == each
    assert max(each) <= rank_by_elimination(update) <= min(sum(each), z**2)
