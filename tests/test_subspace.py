"""What a basis promises. The papers' P has r columns of length m (FedSub) or, transposed, r rows of length d (SSF)."""
# ruff: noqa: E741 (l is the papers' layer index)

import itertools
import math

import pytest
import torch
from cases import TWO_LAYERS
from hypothesis import given
from hypothesis import strategies as st

from fedtheory import Coordinate, Gaussian, Identity, Key, Layer, Layout, Spherical

KINDS = {
    "Coordinate": Coordinate,
    "Coordinate with signs": lambda rank, scale="isotropic": Coordinate(rank, scale, signs=True),
    "Spherical": Spherical,
    "Gaussian": Gaussian,
    "Identity": lambda rank, scale="isotropic": Identity(),
}
EXACT_GRAM = ["Coordinate", "Coordinate with signs", "Spherical", "Identity"]  # P^T P is a multiple of I for each draw
SCALES = ["orthonormal", "isotropic"]

layouts = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3)), min_size=1, max_size=3).map(
    lambda sizes: Layout(tuple(Layer(f"W{i}", rows, cols) for i, (rows, cols) in enumerate(sizes)))
)
seeds = st.integers(0, 2**63 - 1)


@st.composite
def drawn(draw, kinds=tuple(KINDS)):
    """A projection, a layout it fits, a scale and a basis in float64."""
    layout, scale = draw(layouts), draw(st.sampled_from(SCALES))
    rank = draw(st.integers(1, max(layer.rows for layer in layout.layers)))
    projection = KINDS[draw(st.sampled_from(kinds))](rank, scale)
    return projection, layout, projection.draw(layout, Key(draw(seeds)), torch.float64)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=Key(seed).generator(), dtype=torch.float64)


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@given(drawn(EXACT_GRAM))
def test_gram_matrix(case):
    """P^T P = s^2 I in every layer: s^2 = 1 for "orthonormal", m/r for "isotropic" (1 for P = I)."""
    projection, layout, basis = case
    for P, layer in zip(basis.matrices(), layout.layers, strict=True):
        m, r = P.shape
        assert m == layer.rows
        s2 = m / r if projection.scale == "isotropic" else 1.0
        same(P.double().T @ P.double(), s2 * torch.eye(r, dtype=torch.float64))


@given(drawn(EXACT_GRAM), st.integers(0, 9))
def test_project_after_lift_is_the_scale(case, seed):
    """P_l^T (P_l B_l) = s_l^2 B_l."""
    projection, _, basis = case
    b = random(3, basis.low.size, seed=seed)
    again = basis.low.matrices(basis.project(basis.lift(b)))
    for B, same_B, P in zip(basis.low.matrices(b), again, basis.matrices(), strict=True):
        same(same_B, (P.shape[0] / P.shape[1] if projection.scale == "isotropic" else 1.0) * B)


@pytest.mark.parametrize("scale", SCALES)
def test_norm2_is_exact(scale):
    """s_l^2 per coordinate: 5/3 on one matrix, 5/3 and 7/3 on two layers, to the last digit of the dtype."""
    assert Spherical(3, scale).norm2(Layout.single(5, 2), torch.float64) == (5 / 3 if scale == "isotropic" else 1.0)
    layout = Layout((Layer("a", 5, 1), Layer("b", 7, 2)))
    for dtype in (torch.float32, torch.float64):
        got = Spherical(3, scale).norm2(layout, dtype) * torch.ones(9, dtype=dtype)
        wanted = [5 / 3] * 3 + [7 / 3] * 6 if scale == "isotropic" else [1.0] * 9
        assert torch.equal(got, torch.tensor(wanted, dtype=dtype))


@given(drawn())
def test_project_is_the_adjoint_of_lift(case):
    """<P^T g, b> = <g, P b>."""
    _, layout, basis = case
    g, b = random(layout.size), random(basis.low.size, seed=1)
    same(basis.project(g) @ b, g @ basis.lift(b))


@given(drawn())
def test_layer_by_layer_is_block_diagonal(case):
    """On x = (vec W_1, vec W_2, ...) the basis is blockdiag(I_{d_l} (x) P_l), one block per column of each layer."""
    _, layout, basis = case
    blocks = [P.double() for P, layer in zip(basis.matrices(), layout.layers, strict=True) for _ in range(layer.cols)]
    P = torch.block_diag(*blocks)
    g, b = random(4, layout.size), random(4, basis.low.size, seed=1)
    same(basis.project(g), g @ P)
    same(basis.lift(b), b @ P.T)


@given(drawn())
def test_matrices_act_from_the_left(case):
    """project is P_l^T W_l and lift is P_l B_l on the weight matrices."""
    _, layout, basis = case
    g, b = random(layout.size), random(basis.low.size, seed=1)
    low, full = basis.low.matrices(basis.project(g)), layout.matrices(basis.lift(b))
    for l, P in enumerate(basis.matrices()):
        same(low[l], P.double().T @ layout.matrices(g)[l])
        same(full[l], P.double() @ basis.low.matrices(b)[l])


@given(drawn(), st.lists(st.integers(1, 3), max_size=2))
def test_leading_axes_are_carried_along(case, lead):
    """One vector, or a stack of them (clients, runs): the same result row by row."""
    _, layout, basis = case
    g, b = random(*lead, layout.size), random(*lead, basis.low.size, seed=1)
    down, up = basis.project(g), basis.lift(b)
    assert down.shape == (*lead, basis.low.size)
    assert up.shape == (*lead, layout.size)
    for at in itertools.product(*map(range, lead)):
        same(down[at], basis.project(g[at]))
        same(up[at], basis.lift(b[at]))


@given(drawn(), seeds)
def test_same_key_same_bits(case, seed):
    """A basis is a function of its key: the server's and the client's are the same, bit for bit."""
    projection, layout, _ = case
    one, two = (projection.draw(layout, Key(seed), torch.float64) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.matrices(), two.matrices(), strict=True))
    g = random(layout.size)
    assert torch.equal(one.project(g), two.project(g))


@given(drawn([kind for kind in KINDS if kind != "Identity"]), seeds)
def test_float32_is_the_cast_of_float64(case, seed):
    """Both precisions name the same subspace."""
    projection, layout, _ = case
    single, double = (projection.draw(layout, Key(seed), dtype) for dtype in (torch.float32, torch.float64))
    for a, b in zip(single.matrices(), double.matrices(), strict=True):
        assert a.dtype == torch.float32
        assert torch.equal(a, b.float())
    g = random(layout.size).float()
    assert single.project(g).dtype == single.lift(single.project(g)).dtype == torch.float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matrices_have_the_dtype_that_was_asked_for(kind, dtype, request):
    for P in KINDS[kind](2).draw(TWO_LAYERS, Key(0), dtype).matrices():
        assert P.dtype == dtype


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Identity"])
def test_different_keys_differ(kind):
    layout = Layout.single(40, 1)
    one, two = (KINDS[kind](5).draw(layout, Key(seed), torch.float64).matrices()[0] for seed in (1, 2))
    assert not torch.equal(one, two)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Identity"])
def test_layers_draw_independently(kind):
    """Two layers of the same size get different blocks."""
    layout = Layout((Layer("a", 40, 1), Layer("b", 40, 1)))
    one, two = KINDS[kind](5).draw(layout, Key(0), torch.float64).matrices()
    assert not torch.equal(one, two)


# Ranks


@given(layouts, st.data())
def test_one_rank_is_capped_by_each_layer(layout, data):
    """A layer with fewer rows than r keeps all of them."""
    r = data.draw(st.integers(1, max(layer.rows for layer in layout.layers)))
    for kind in ("Coordinate", "Spherical", "Gaussian"):
        basis = KINDS[kind](r).draw(layout, Key(0), torch.float64)
        wanted = [(min(r, layer.rows), layer.cols) for layer in layout.layers]
        assert [(layer.rows, layer.cols) for layer in basis.low.layers] == wanted
        assert [tuple(P.shape) for P in basis.matrices()] == [
            (layer.rows, low) for layer, (low, _) in zip(layout.layers, wanted, strict=True)
        ]


def test_one_rank_per_layer():
    basis = Spherical((3, 1)).draw(TWO_LAYERS, Key(0), torch.float64)
    assert [tuple(P.shape) for P in basis.matrices()] == [(4, 3), (3, 1)]
    assert basis.low.size == 3 * 2 + 1 * 1
    assert Spherical((3, 1)).norm2(TWO_LAYERS, torch.float64).tolist() == pytest.approx([4 / 3] * 6 + [3.0])


def test_identity_keeps_every_row():
    basis = Identity().draw(TWO_LAYERS, Key(0), torch.float64)
    g = random(11)
    assert basis.low == TWO_LAYERS
    assert torch.equal(basis.project(g), g)
    assert torch.equal(basis.lift(g), g)
    assert [P.tolist() for P in basis.matrices()] == [torch.eye(4).tolist(), torch.eye(3).tolist()]


# Distributions


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("m", "r"), [(4, 1), (4, 2), (5, 3), (3, 3)])
def test_coordinate_draws_every_subset_and_their_mean_is_exact(m, r, scale):
    """E[P P^T] over all C(m, r) subsets: (r/m) I for "orthonormal", I for "isotropic", exactly.

    All subsets are drawn, each with probability 1/C(m, r): |z| < 4.5 for every count.
    """
    draws, layout = 150 * math.comb(m, r), Layout.single(m)
    counts, means = {}, {}
    for seed in range(draws):
        P = Coordinate(r, scale).draw(layout, Key(seed), torch.float64).matrices()[0]
        subset = tuple(sorted(P.nonzero()[:, 0].tolist()))
        counts[subset] = counts.get(subset, 0) + 1
        means[subset] = P @ P.T
    assert set(counts) == set(itertools.combinations(range(m), r))
    same(
        sum(means.values()) / len(means), (r / m if scale == "orthonormal" else 1.0) * torch.eye(m, dtype=torch.float64)
    )
    p = 1 / len(counts)
    if len(counts) > 1:
        assert all(abs(count - draws * p) / (draws * p * (1 - p)) ** 0.5 < 4.5 for count in counts.values())


def sample(projection, m, draws):
    """P of many keys, (draws, m, r)."""
    layout = Layout.single(m)
    return torch.stack([projection.draw(layout, Key(seed), torch.float64).matrices()[0] for seed in range(draws)])


def z_scores(values, expected):
    """How many standard errors the mean over axis 0 is away from what it should be."""
    return (values.mean(0) - expected) / (values.std(0) / len(values) ** 0.5).clamp(min=1e-12)


@pytest.mark.parametrize("kind", ["Spherical", "Gaussian"])
@pytest.mark.parametrize("scale", SCALES)
def test_mean_projector_is_a_multiple_of_the_identity(kind, scale):
    """E[P P^T] = (r/m) I or I and E[P] = 0: every entry within 4.5 standard errors over 3000 draws."""
    m, r = 4, 2
    P = sample(KINDS[kind](r, scale), m, 3000)
    expected = (r / m if scale == "orthonormal" else 1.0) * torch.eye(m, dtype=torch.float64)
    assert float(z_scores(P @ P.mT, expected).abs().max()) < 4.5
    assert float(z_scores(P, torch.zeros(m, r, dtype=torch.float64)).abs().max()) < 4.5


def test_spherical_is_haar_and_not_just_some_orthonormal_frame():
    """Entries: E[p^2] = 1/m, E[p^4] = 3/(m(m+2)), E[p_11^2 p_12^2] = 1/(m(m+2)); for r = m, det = +-1 evenly.

    The last fails for QR without the sign correction of R's diagonal.
    """
    m = 3
    P = sample(Spherical(m, "orthonormal"), m, 3000)
    assert float(z_scores(P**2, 1 / m).abs().max()) < 4.5
    assert float(z_scores(P**4, 3 / (m * (m + 2))).abs().max()) < 4.5
    assert abs(float(z_scores(P[:, 0, 0] ** 2 * P[:, 0, 1] ** 2, 1 / (m * (m + 2))))) < 4.5
    determinants = torch.linalg.det(P)
    same(determinants.abs(), torch.ones(3000, dtype=torch.float64))
    assert abs(float(z_scores(determinants, 0.0))) < 4.5


@pytest.mark.parametrize("scale", SCALES)
def test_gaussian_entries(scale):
    """Independent normals of variance 1/r or 1/m, so that P^T P is a multiple of I only in the mean."""
    m, r = 4, 2
    P = sample(Gaussian(r, scale), m, 3000)
    variance = 1 / r if scale == "isotropic" else 1 / m
    assert float(z_scores(P**2, variance).abs().max()) < 4.5
    assert float(z_scores(P**4, 3 * variance**2).abs().max()) < 4.5
    assert abs(float(z_scores(P[:, 0, 0] * P[:, 1, 1], 0.0))) < 4.5
    s2 = Gaussian(r, scale).norm2(Layout.single(m), torch.float64)
    assert float(z_scores(P.mT @ P, s2 * torch.eye(r, dtype=torch.float64)).abs().max()) < 4.5


def test_coordinate_signs_are_even_and_change_no_subspace():
    """Both signs half of the time (|z| < 4.5); P P^T is that of some subset of coordinates."""
    P = sample(Coordinate(2, "orthonormal", signs=True), 4, 3000)
    for column in (P[:, :, 0].sum(1), P[:, :, 1].sum(1), P[:, :, 0].sum(1) * P[:, :, 1].sum(1)):
        assert abs(float(z_scores(column, 0.0))) < 4.5
    projectors = P @ P.mT
    assert bool(((projectors == 0) | (projectors == 1)).all())


@pytest.mark.parametrize("projection", [Coordinate(2), Spherical(2), Gaussian(2)])
@pytest.mark.parametrize(
    "layout", [Layout.single(4), Layout.single(4, 3), Layout((Layer("a", 3, 2), Layer("b", 4, 1)))]
)
def test_vectors_of_another_length_are_refused(projection, layout):
    """A multiple of it would have passed for more columns."""
    P = projection.draw(layout, Key(0), torch.float64)
    for whole, low in ((layout, P.project), (P.low, P.lift)):
        for size in (whole.size - 1, whole.size + 1, 2 * whole.size):
            with pytest.raises(ValueError, match=rf"shape=\(5, {size}\): expected {whole.size} entries"):
                low(torch.ones(5, size, dtype=torch.float64))
        assert low(torch.ones(0, whole.size, dtype=torch.float64)).shape[0] == 0
