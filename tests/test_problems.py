"""What a problem promises: gradients of its losses, unbiased samples, constants that are right."""
# ruff: noqa: SIM300 (constants.L is a value, no literal)

import itertools
import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from cases import PROBLEMS, TWO_LAYERS, logistic, quadratic, regression, start
from scipy.sparse import eye_array

from fedtheory import (
    Coordinate,
    FedAvg,
    Gaussian,
    Identity,
    Key,
    Layer,
    Layout,
    LogisticRegression,
    MatrixRegression,
    Quadratic,
    Spherical,
    run,
)
from fedtheory.problems import matrix_regression, partitions
from fedtheory.problems.matrix_regression import Rows
from fedtheory.problems.quadratic import QuadraticSample

SOFTPLUS = "torch's softplus is linear above 20: LogisticRegression.losses is off by up to 2e-9 per sample"


def points(problem, count=1, seed=0):
    """Random parameters, (count * N, d) cut into one row per client: (N, d) each."""
    g = Key(seed).fold("points").generator()
    for scale in [0.1, 1.0, 10.0] * count:
        yield scale * torch.randn(problem.n, problem.d, generator=g, dtype=torch.float64)


# Gradients and samples


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sample", ["full", "drawn"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_gradients_are_the_gradients_of_the_losses(name, sample, scale, request):
    """grads is what automatic differentiation makes of losses, client by client, on full data and on a minibatch."""
    problem = PROBLEMS[name]()
    xi = problem.full(problem.clients) if sample == "full" else problem.draw(problem.clients, 2, Key(4))[1]
    y = scale * torch.randn(problem.n, problem.d, generator=Key(0).generator(), dtype=torch.float64)
    y.requires_grad_(True)
    (wanted,) = torch.autograd.grad(problem.losses(y, xi).sum(), y)
    if name == "logistic" and scale == 10:
        torch.testing.assert_close(problem.grads(y.detach(), xi), wanted, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(problem.grads(y.detach(), xi), wanted, rtol=1e-12, atol=1e-12)


RESTRICTED = PROBLEMS | {  # steps draw as many rows as a client has, fewer, all of them
    "regression, fewer rows": lambda **options: regression(batch=3, **options),
    "regression, full batches": lambda **options: regression(batch=None, **options),
}


@pytest.mark.parametrize("name", RESTRICTED)
@pytest.mark.parametrize("projection", [Coordinate(2), Spherical(2), Gaussian(2), Identity()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_restricted_gradients(name, projection, dtype):
    """restrict evaluates P^T grad f_i(x + P b) on the subspace: the same as lifting, differentiating, projecting."""
    problem = RESTRICTED[name](dtype=dtype)
    basis = projection.draw(problem.layout, Key(1), dtype)
    x, b = start(problem), torch.randn(3, basis.low.size, generator=Key(2).generator(), dtype=dtype)
    xi = problem.draw(torch.tensor([0, 2, 3]), 2, Key(3))
    wanted = [basis.project(problem.grads(x + basis.lift(b), xi[k])) for k in (0, 1)]
    factored = problem.restrict(basis, x, xi)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-4
    for k in (0, 1):
        torch.testing.assert_close(factored(b, k), wanted[k], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("margin", [-700.0, -25.0, -1.0, 0.0, 1.0, 25.0, 700.0])
def test_logistic_loss_at_large_margins(margin, request):
    """log(1 + exp(-margin)) to the last digits, also for samples far on the wrong side."""
    problem = LogisticRegression(*(torch.ones(shape, dtype=torch.float64) for shape in ((1, 1, 1), (1, 1))), lam=1.0)
    x = torch.tensor([[margin]], dtype=torch.float64)
    exact = max(-margin, 0) + math.log1p(math.exp(-abs(margin))) + margin**2 / 2
    loss = float(problem.losses(x, problem.full(problem.clients)))
    assert loss == pytest.approx(exact, rel=1e-12)
    assert loss == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_global_loss_is_the_weighted_mean_of_the_client_losses(name):
    problem = PROBLEMS[name]()
    problem.weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64) / 15
    x = start(problem)
    parts, slopes = [], []
    for i in range(problem.n):
        one = problem.full(torch.tensor([i]))
        parts.append(float(problem.losses(x[None], one)[0]) * (i + 1) / 15)
        slopes.append(problem.grads(x[None], one)[0] * (i + 1) / 15)
    assert problem.loss(x) == pytest.approx(sum(parts), rel=1e-14)
    torch.testing.assert_close(problem.grad(x), sum(slopes), rtol=1e-13, atol=1e-13)


def test_losses_are_the_printed_formulas():
    """(130), FedSub's logistic loss and 1/2 (x-b)^T H (x-b), written out once more for one client."""
    q, m, s = quadratic(), regression(), logistic()
    x = start(q).numpy()
    gap = x - q.b[2].numpy()
    client = torch.tensor([2])
    assert float(q.losses(start(q)[None], q.full(client))) == pytest.approx(0.5 * gap @ q.H[2].numpy() @ gap)

    A, B = m.full(client).A[0].numpy(), m.full(client).Bt[0].numpy().T
    X = start(m).numpy().reshape(6, 2, order="F")
    value = np.sum((A @ X - B) ** 2) / (2 * 8) + m.lam / 2 * np.sum(X**2)
    assert float(m.losses(start(m)[None], m.full(client))) == pytest.approx(value, rel=1e-14)

    Z, x = s.full(client).Z[0].T.numpy(), start(s).numpy()
    value = np.mean(np.log(1 + np.exp(-Z @ x))) + s.lam / 2 * x @ x
    assert float(s.losses(start(s)[None], s.full(client))) == pytest.approx(value, rel=1e-14)


def test_labels_multiply_the_features():
    """f depends on b a^T x only: flipping a label and its features changes nothing."""
    g = Key(0).generator()
    A = torch.randn(2, 9, 3, generator=g, dtype=torch.float64)
    b = torch.where(torch.rand(2, 9, generator=g) < 0.5, 1.0, -1.0).double()
    one, two = LogisticRegression(A, b, 0.2), LogisticRegression(-A, -b, 0.2)
    assert torch.equal(one.constants.x_star, two.constants.x_star)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("replacement", [True, False])
def test_the_sample_of_a_client_does_not_depend_on_who_else_takes_part(name, replacement):
    """Client 3 alone, in company, or in another order: the same minibatches, bit for bit."""
    options = {"replacement": replacement} if name == "regression" else {}
    problem = PROBLEMS[name](**options)
    y = start(problem)
    all_of_them = problem.draw(problem.clients, 3, Key(9))
    for ids in ([3], [1, 3], [3, 1], [4, 3, 0, 2]):
        some = problem.draw(torch.tensor(ids), 3, Key(9))
        for k in range(3):
            for field, whole in zip(some[k], all_of_them[k], strict=True):
                if field is not None:
                    assert torch.equal(field, whole[ids])
            rows = problem.grads(y.expand(len(ids), -1), some[k])
            whole = problem.grads(y.expand(problem.n, -1), all_of_them[k])[ids]
            torch.testing.assert_close(rows, whole, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["regression", "noisy quadratic"])
def test_samples_differ_between_steps_clients_and_keys(name):
    problem = PROBLEMS[name]()
    one, two = problem.draw(problem.clients, 40, Key(9)), problem.draw(problem.clients, 40, Key(10))
    what = (lambda s: s.A) if name == "regression" else (lambda s: s.noise)
    assert any(not torch.equal(what(one[0]), what(one[k])) for k in range(1, 40))
    assert any(not torch.equal(what(one[k]), what(two[k])) for k in range(40))
    rows = [torch.stack([what(one[k])[i] for k in range(40)]) for i in range(problem.n)]
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(rows, 2))


def test_matrix_minibatches_are_unbiased_by_enumeration():
    """The mean gradient over all 3^2 ordered pairs (with replacement) or all 3 pairs (without) is the full one."""
    problem = MatrixRegression.ssf(0.5, Key(1), n=2, rows=3, d=4, m=2, batch=2)
    A, Bt = problem.full(problem.clients)
    y = start(problem).expand(2, -1)
    full = problem.grads(y, problem.full(problem.clients))
    for batches in (list(itertools.product(range(3), repeat=2)), list(itertools.combinations(range(3), 2))):
        grads = [problem.grads(y, Rows(A[:, rows], Bt[:, :, rows])) for rows in map(list, batches)]
        torch.testing.assert_close(sum(grads) / len(grads), full, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("replacement", [True, False])
def test_matrix_minibatches_draw_every_row_alike(replacement):
    """Row j of client i in a batch of 2 out of 3: probability 2/3 per batch place; |z| < 4.5 for all of them."""
    rows, batch, steps = 3, 2, 6000
    A = torch.arange(6.0, dtype=torch.float64).reshape(2, rows, 1)  # the feature names client and row
    problem = MatrixRegression(A, A.clone(), batch=batch, replacement=replacement)
    picked = torch.stack([xi.A[..., 0] for xi in problem.draw(problem.clients, steps, Key(7))])  # (steps, N, b)
    bt = torch.stack([xi.Bt[:, 0] for xi in problem.draw(problem.clients, steps, Key(7))])
    assert torch.equal(picked, bt), "features and targets of one row stay together"
    for i in range(2):
        for j in range(rows):
            count = float((picked[:, i] == rows * i + j).sum())
            p = 1 / rows if replacement else batch / rows
            trials = steps * batch if replacement else steps
            z = (count - trials * p) / (trials * p * (1 - p)) ** 0.5
            assert abs(z) < 4.5
    repeats = float((picked[..., 0] == picked[..., 1]).double().mean())
    if replacement:
        assert abs(repeats - 1 / 3) < 4.5 * (2 / 9 / (2 * steps)) ** 0.5
    else:
        assert repeats == 0


@pytest.mark.parametrize("bytes", [1, 3000, 10**9])
def test_matrix_minibatches_do_not_depend_on_how_many_are_gathered_at_a_time(bytes, monkeypatch):
    problem, clients = MatrixRegression.ssf(0.5, Key(0), n=4, rows=6, d=5, m=2, batch=3), torch.tensor([0, 2, 3])
    whole = problem.draw(clients, 7, Key(1))
    expected = [(one.A.clone(), one.Bt.clone()) for one in (whole[k] for k in range(7))]
    monkeypatch.setattr(matrix_regression, "_GATHERED", bytes)
    pieces = problem.draw(clients, 7, Key(1))
    for k in [0, 1, 2, 3, 4, 5, 6, 2, 6, 0]:
        assert torch.equal(pieces[k].A, expected[k][0])
        assert torch.equal(pieces[k].Bt, expected[k][1])
    assert len(list(pieces)) == 7
    assert torch.equal(pieces[-1].A, expected[6][0])


def test_a_batch_of_all_rows_without_replacement_is_the_full_gradient():
    problem = regression(batch=8, replacement=False)
    y = start(problem).expand(problem.n, -1)
    for xi in problem.draw(problem.clients, 3, Key(1)):
        torch.testing.assert_close(
            problem.grads(y, xi), problem.grads(y, problem.full(problem.clients)), rtol=1e-12, atol=1e-12
        )


def test_two_point_noise_is_unbiased_and_has_the_stated_variance():
    """+u and -u: their mean is the exact gradient, each squared distance is ||u_i||^2 = sigma^2, at every x."""
    problem = quadratic(sigma=0.3)
    exact = QuadraticSample(problem.clients, None)
    for y in points(problem):
        g = problem.grads(y, exact)
        plus, minus = (problem.grads(y, QuadraticSample(problem.clients, s * problem.noise)) for s in (1.0, -1.0))
        torch.testing.assert_close((plus + minus) / 2, g, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(
            ((plus - g) ** 2).sum(1), torch.full((5,), 0.09, dtype=torch.float64), rtol=1e-9, atol=0
        )
    assert problem.constants.sigma2 == pytest.approx(0.09, rel=1e-12)
    assert quadratic().constants.sigma2 == 0


def test_two_point_noise_draws_both_signs_alike_and_independently():
    """One sign per client and step: half of them +, pairs of clients and of steps agree half of the time; |z| < 4.5."""
    problem, steps = quadratic(2, sigma=0.3), 6000
    noise = torch.stack([xi.noise for xi in problem.draw(problem.clients, steps, Key(3))])
    signs = noise[..., 0] / problem.noise[:, 0]
    assert torch.equal(signs.abs().round(decimals=12), torch.ones(steps, 2, dtype=torch.float64))
    torch.testing.assert_close(noise, signs[..., None] * problem.noise)
    for mean in (signs[:, 0], signs[:, 1], signs[:, 0] * signs[:, 1], signs[1:, 0] * signs[:-1, 0]):
        assert abs(float(mean.mean())) * len(mean) ** 0.5 < 4.5


# Constants


@pytest.mark.parametrize("name", PROBLEMS)
def test_constants(name):
    """L and mu hold at random probes, x* is stationary, f* is its value, heterogeneity is the mean squared gradient."""
    problem = PROBLEMS[name]()
    known = problem.constants
    full = problem.full(problem.clients)
    x_star = known.x_star
    assert float(problem.grad(x_star).norm()) <= 1e-13 * max(known.L * float(x_star.norm()), 1)
    assert problem.error(x_star) == 0
    assert known.f_star == pytest.approx(problem.loss(x_star), rel=1e-13)
    at_star = problem.grads(x_star.expand(problem.n, -1), full)
    assert known.heterogeneity == pytest.approx(sum(float(g @ g) for g in at_star) / problem.n, rel=1e-10)
    for y, z in itertools.pairwise(points(problem, 10)):
        change = problem.grads(y, full) - problem.grads(z, full)
        assert bool((change.norm(dim=1) <= known.L * (y - z).norm(dim=1) * (1 + 1e-12)).all())
        u, v = y[0], z[0]
        slope = float((problem.grad(u) - problem.grad(v)) @ (u - v))
        assert slope >= known.mu * float((u - v) @ (u - v)) * (1 - 1e-12)
        assert problem.loss(u) >= known.f_star - 1e-13


def test_quadratic_constants_in_closed_form():
    """Two clients on the line, F_1 = (x-1)^2, F_2 = 2 (x+2)^2 with weights 3/4 and 1/4."""
    H = torch.tensor([[[2.0]], [[4.0]]], dtype=torch.float64)
    b = torch.tensor([[1.0], [-2.0]], dtype=torch.float64)
    noise = torch.tensor([[0.5], [3.0]], dtype=torch.float64)
    problem = Quadratic(H, b, noise=noise, weights=torch.tensor([3.0, 1.0]))
    known = problem.constants  # F' = 3/4 * 2 (x-1) + 1/4 * 4 (x+2) = 2.5 x + 0.5
    assert known.x_star.tolist() == pytest.approx([-0.2])
    assert known.mu == pytest.approx(2.5)
    assert known.L == pytest.approx(4)
    assert known.sigma2 == pytest.approx(9)
    assert known.f_star == pytest.approx(0.75 * 1.2**2 + 0.25 * 2 * 1.8**2)
    assert known.heterogeneity == pytest.approx(((2 * -1.2) ** 2 + (4 * 1.8) ** 2) / 2)
    assert problem.weights.tolist() == [0.75, 0.25]


def test_clients_that_weigh_nothing_are_refused_where_they_may_be_alone():
    """Their mean would be 0/0; in a round with others they do not count."""
    problem = Quadratic.random(3, 4, Key(0))
    problem = Quadratic(problem.H, problem.b, weights=torch.tensor([0.0, 0.0, 1.0]))
    for options in ({"sampled": 1}, {"sampled": 2}, {"dropout": 0.5}):
        with pytest.raises(ValueError, match=r"problem\.weights=.*2 clients that weigh nothing.*Fix: "):
            run(FedAvg(0.1, 2, weighted=True), problem, 5, **options)
    assert run(FedAvg(0.1, 2, weighted=True), problem, 5)["error"][-1] < 1
    assert run(FedAvg(0.1, 2), problem, 5, sampled=1)["error"][-1] < 1


def test_quadratic_spectrum_is_attained():
    """Every H_i has the smallest and the largest eigenvalue that were asked for; L is attained along one of them."""
    problem = quadratic(spectrum=(-0.2, 1.5))
    for H in problem.H:
        spectrum = torch.linalg.eigvalsh(H)
        assert float(spectrum[0]) == pytest.approx(-0.2)
        assert float(spectrum[-1]) == pytest.approx(1.5)
    assert problem.constants.L == pytest.approx(1.5)
    assert quadratic(spectrum=(-2.0, 1.5)).constants.L == pytest.approx(2.0)
    mean = torch.linalg.eigvalsh(problem.H.mean(0))
    assert problem.constants.mu == pytest.approx(float(mean[0]))
    assert float(problem.grad(problem.constants.x_star).norm()) < 1e-12, "the saddle point is stationary"


def test_quadratic_spread_and_singular_problems():
    assert quadratic(spread=0.0).constants.heterogeneity == 0
    flat = Quadratic(torch.zeros(2, 3, 3, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64))
    assert flat.constants.x_star is None
    with pytest.raises(ValueError, match="x_star=None"):
        flat.error(torch.zeros(3, dtype=torch.float64))


def test_matrix_regression_constants_in_closed_form():
    """x* solves the pooled normal equations; L and mu are attained along eigenvectors."""
    problem = regression()
    A, Bt = problem.full(problem.clients)
    pooled, targets = A.flatten(0, 1).numpy(), Bt.mT.flatten(0, 1).numpy()
    normal = pooled.T @ pooled / len(pooled) + problem.lam * np.eye(6)
    X = np.linalg.solve(normal, pooled.T @ targets / len(pooled))
    np.testing.assert_allclose(problem.constants.x_star.numpy(), X.flatten(order="F"), rtol=1e-11)
    assert problem.constants.mu == pytest.approx(np.linalg.eigvalsh(normal)[0])
    each = [np.linalg.eigvalsh(a.T @ a / 8 + problem.lam * np.eye(6))[-1] for a in A.numpy()]
    assert problem.constants.L == pytest.approx(max(each))
    short = MatrixRegression(A[:, :1], Bt.mT[:, :1], 0.0)  # five rows, six features: no unique minimiser
    assert short.constants.x_star is None


def test_matrix_regression_of_ssf_has_the_printed_sizes():
    """Table 1: N = 20, n_i = 50, d = 100, m = 10, minibatch 20, lambda = 0.1; A_i is shifted by mu_i ~ N(0, het^2)."""
    problem = MatrixRegression.ssf(2.0, Key(0))
    A, Bt = problem.full(problem.clients)
    assert (tuple(A.shape), tuple(Bt.shape)) == ((20, 50, 100), (20, 10, 50))
    assert (problem.d, problem.lam, problem.batch) == (1000, 0.1, 20)
    centre = A.mean(1)  # mu_i plus noise of variance 1/50
    assert float(centre.var()) == pytest.approx(4 + 1 / 50, rel=0.15)
    assert float((A - centre[:, None]).var()) == pytest.approx(1, rel=0.1)


def test_logistic_solution_is_certified():
    """||x - x*|| <= 1e-12 ||x*||, from the gradient alone.

    F is strongly convex with lam. With lam = 0: along any h the Hessian falls at most like exp(-R ||h||), R the longest
    row, so ||grad F(x)|| >= mu(x) (1 - exp(-R ||h||)) / R, which bounds the distance ||h|| to x*.
    """
    for problem in (logistic(lam=0.1), logistic(lam=0.0), logistic(lam=0.0, geometry="center")):
        Z, x = problem.full(problem.clients).Z.mT.flatten(0, 1).numpy(), problem.constants.x_star.numpy()
        slope = 1 / (1 + np.exp(Z @ x))
        grad = -(slope @ Z) / len(Z) + problem.lam * x
        hessian = (Z.T * (slope * (1 - slope))) @ Z / len(Z) + problem.lam * np.eye(len(x))
        R, mu = np.linalg.norm(Z, axis=1).max(), np.linalg.eigvalsh(hessian)[0]
        h = -np.log1p(-R * np.linalg.norm(grad) / mu) / R
        assert h <= 1e-12 * np.linalg.norm(x)


def test_logistic_smoothness_is_attained_at_zero():
    """At x = 0 every weight sigma (1 - sigma) is 1/4, its largest value."""
    problem = logistic()
    Z = problem.full(problem.clients).Z.mT
    hessians = [
        torch.autograd.functional.hessian(lambda x, z=z: torch.log1p(torch.exp(-z @ x)).mean(), torch.zeros(6).double())
        for z in Z
    ]
    largest = max(float(torch.linalg.eigvalsh(H)[-1]) for H in hessians) + problem.lam
    assert problem.constants.L == pytest.approx(largest, rel=1e-12)


def test_logistic_gradient_bound_holds_everywhere():
    """FedSub, Assumption 3: B_g^2 >= (1/N) sum_i ||grad F_i(x)||^2, also far away; it needs lam = 0."""
    problem = logistic(lam=0.0)
    full, bound = problem.full(problem.clients), problem.constants.gradient_bound2
    for y in points(problem, 20):
        for x in (y[0], 100 * y[1]):
            mean = float((problem.grads(x.expand(problem.n, -1), full) ** 2).sum(1).mean())
            assert mean <= bound
    assert logistic(lam=0.1).constants.gradient_bound2 is None


@pytest.mark.parametrize("geometry", ["hyperplane", "center"])
def test_logistic_of_fedsub_has_the_printed_sizes(geometry):
    """60,000 samples, m = 20, 30 clients (the sizes scaled down by 10 here), one cluster each."""
    problem = LogisticRegression.fedsub(Key(0), geometry=geometry, samples=6000)
    Z = problem.full(problem.clients).Z
    assert tuple(Z.shape) == (30, 20, 200)


def test_logistic_clusters_lie_near_their_hyperplanes():
    """Across its hyperplane {w_i^T a = offset} a cluster has standard deviation `noise`, inside it 1."""
    problem = LogisticRegression.fedsub(Key(0), n=3, samples=6000, m=5, noise=0.05, offset=2.0, lam=0.1)
    for Z in problem.full(problem.clients).Z.mT:
        scatter = torch.linalg.eigvalsh(Z.T @ Z / len(Z))  # labels drop out: rows come as +-a
        assert float(scatter[-1]) == pytest.approx(2.0**2 + 0.05**2, rel=0.05)  # offset^2 + noise^2 across
        assert [float(value) for value in scatter[:-1]] == pytest.approx([1.0] * 4, rel=0.15)


@pytest.mark.parametrize("name", PROBLEMS)
def test_float32_is_the_cast_of_float64(name):
    """The same key gives the same problem in both precisions; constants are computed in float64."""
    single, double = PROBLEMS[name](dtype=torch.float32), PROBLEMS[name](dtype=torch.float64)
    assert single.constants.x_star.dtype == single.start().dtype == torch.float32
    assert single.constants.L == pytest.approx(double.constants.L, rel=1e-5)
    x = start(double)
    single_grad = single.grad(x.float())
    assert single_grad.dtype == torch.float32
    torch.testing.assert_close(single_grad.double(), double.grad(x), rtol=1e-4, atol=1e-4)


# Fingerprints and layouts


@pytest.mark.parametrize("name", PROBLEMS)
def test_fingerprint_tells_problems_apart(name):
    make = PROBLEMS[name]
    assert make().fingerprint() == make().fingerprint()
    others = [make(seed=99), make(4), make(dtype=torch.float32)]
    if name == "regression":
        others += [make(batch=3), make(lam=0.2), make(batch=None), make(replacement=False)]
    prints = {problem.fingerprint() for problem in (make(), *others)}
    assert len(prints) == 1 + len(others)


class Held(Quadratic):
    """A problem of one's own that keeps further data in some way."""

    def __init__(self, held):
        super().__init__(torch.eye(2)[None].double(), torch.zeros(1, 2).double())
        self.held = held


@dataclass
class Pair:
    first: object
    second: object


@dataclass
class OtherPair:
    first: object
    second: object


class Thing:
    """An object of a user's own, one of them with a cycle."""

    def __init__(self, value):
        self.value, self.me = value, self


class Slotted:
    __slots__ = "__value"

    def __init__(self, value):
        self.__value = value


def named(x):
    """One."""
    return x


def named_otherwise(x):
    """Another."""
    return x


class Side(Enum):
    LEFT = 1
    RIGHT = 2


@pytest.mark.parametrize(
    "held",
    [
        lambda value: [torch.full((3,), value)],
        lambda value: (1, (torch.full((3,), value),)),
        lambda value: {"a": {"b": torch.tensor(value)}},
        lambda value: np.full(3, value),
        lambda value: np.array([np.full(2, value), None], dtype=object),
        lambda value: Pair("x", torch.tensor([value], dtype=torch.bfloat16)),
        lambda value: torch.tensor(value, requires_grad=True),
        lambda value: torch.full((4, 3), value).mT[::2],
        lambda value: torch.nn.Linear(2, 1).apply(lambda layer: torch.nn.init.constant_(layer.weight, value)),
        lambda value: (None, value > 1.5),
        lambda value: np.float32(value),
        lambda value: {"a": np.int64(value)},
        lambda value: {"x", value},
        lambda value: range(int(value)),
        lambda value: Fraction(value),
        lambda value: (torch.eye(2) * value).to_sparse(),
        lambda value: eye_array(2) * value,
        lambda value: Thing(value),
        lambda value: [Thing([Thing(value)])],
        lambda value: Slotted(value),
        lambda value: Pair(1, 2) if value < 1.5 else OtherPair(1, 2),
        lambda value: torch.nn.Sequential(torch.nn.ReLU() if value < 1.5 else torch.nn.Tanh()),
        lambda value: {"a": {}} if value < 1.5 else {"b": {}, "a": {}},
        lambda value: Side(int(value)),
        lambda value: partial(max, value),
        lambda value: lambda x: value * x,
        lambda value: (lambda x: x + 1) if value < 1.5 else (lambda x: x + 2),
        lambda value: (lambda x: torch.relu(x)) if value < 1.5 else (lambda x: torch.tanh(x)),
        lambda value: (lambda xs: [x + 1 for x in xs]) if value < 1.5 else (lambda xs: [x + 2 for x in xs]),
        lambda value: lambda x, by=value: by * x,
        lambda value: named if value < 1.5 else named_otherwise,
        lambda value: torch.tensor([value * 1j]).conj(),
    ],
)  # fmt: skip
def test_data_count_wherever_they_are_kept(held):
    """A checkpoint of one problem is not taken for another's."""
    same = Held(held(1.0)), Held(held(1.0))
    if not isinstance(same[0].held, torch.nn.Module):
        assert same[0].fingerprint() == same[1].fingerprint()
    assert same[0].fingerprint() != Held(held(2.0)).fingerprint()
    assert same[0].fingerprint() != Held(None).fingerprint()


def test_what_cannot_be_looked_into_is_said():
    """A function is documented, and silent."""
    Held(lambda: 1).fingerprint()
    with pytest.warns(UserWarning, match=r"Held\.held\[1\]: a checkpoint or a kept run .*Fix: keep it as numbers"):
        Held([1, object()]).fingerprint()


def test_shapes_and_types_count():
    prints = [Held(torch.zeros(2, 3)), Held(torch.zeros(3, 2)), Held(torch.zeros(6).long()), Held([torch.zeros(6)])]
    assert len({one.fingerprint() for one in prints}) == 4


def test_vec_stacks_columns():
    """x = (vec W_1, vec W_2), column after column: NumPy's Fortran order."""
    x = torch.arange(11.0)
    first, second = TWO_LAYERS.matrices(x)
    assert first.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert second.tolist() == [[8], [9], [10]]
    assert torch.equal(x, torch.from_numpy(np.concatenate([first.numpy().flatten("F"), second.numpy().flatten("F")])))


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_layout_round_trip(lead):
    """flatten undoes matrices, for any leading axes; the layers are views, so writing to one writes to x."""
    x = torch.randn(*lead, TWO_LAYERS.size)
    assert torch.equal(TWO_LAYERS.flatten(TWO_LAYERS.matrices(x)), x)
    assert TWO_LAYERS.size == 11
    assert TWO_LAYERS.slices == (slice(0, 8), slice(8, 11))
    for columns, matrix in zip(TWO_LAYERS.columns(x), TWO_LAYERS.matrices(x), strict=True):
        assert torch.equal(columns.mT, matrix)
    TWO_LAYERS.matrices(x)[0].zero_()
    assert not x[..., :8].any()


def test_layout_single():
    assert Layout.single(7).size == 7
    assert Layout.single(3, 4).layers == (Layer("W", 3, 4),)


def test_a_minimiser_at_the_origin_is_one():
    """Each sample once with either label: x* = 0, which has no length to be precise to."""
    h = torch.randn(1, 50, 5, generator=Key(0).generator(), dtype=torch.float64)
    labels = torch.cat([torch.ones(1, 50), -torch.ones(1, 50)], 1).double()
    problem = LogisticRegression(torch.cat([h, h], 1), labels, 0.1)
    assert float(problem.constants.x_star.norm()) < 1e-15
    separable = torch.ones(1, 2, 1).double(), torch.ones(1, 2).double()
    with pytest.raises(ValueError, match="a problem with a minimiser"):
        LogisticRegression(*separable)


def test_weights_whose_sum_is_no_number():
    H, b = torch.eye(2).expand(3, 2, 2).contiguous().double(), torch.ones(3, 2).double()
    with pytest.raises(ValueError, match=r"weights=.*a positive, finite sum"):
        Quadratic(H, b, weights=torch.full((3,), 1e308, dtype=torch.float64))


def test_draws_for_which_there_is_no_room():
    problem = MatrixRegression.ssf(0.5, Key(0), n=2, rows=3, d=3, m=1, batch=10**6)
    with pytest.raises(MemoryError, match=r"\(steps, n, batch\)=\(10000, 2, 1000000\)"):
        problem.draw(torch.arange(2), 10**4, Key(0))


def test_values_of_a_tensor_are_its_numbers():
    parts = [torch.tensor([1, 3]), torch.tensor([0, 2])]
    whole = torch.tensor([7, 2, 7, 2])
    for values in (whole.tolist(), whole, list(whole), torch.tensor([7.5, 2, 7.5, 2]).numpy()):
        assert all(map(torch.equal, partitions.by_value(values), parts))
    for values in ([], [1.0, math.nan], torch.zeros(2, 2), list(torch.zeros(2, 2))):
        with pytest.raises(ValueError, match=r"values=.*expected one value for each sample"):
            partitions.by_value(values)
