"""Lanczos quadrature against full eigendecompositions; costs of DeComFL's tables against formulas."""

import pytest
import torch

from fedtheory import ImageClassification, Key
from fedtheory.papers.decomfl import costs as decomfl_costs
from fedtheory.papers.decomfl import curves as decomfl
from fedtheory.papers.decomfl import spectrum
from fedtheory.problems.models.networks import network


def symmetric(values: torch.Tensor) -> torch.Tensor:
    Q, _ = torch.linalg.qr(torch.randn(len(values), len(values), generator=Key(1).generator(), dtype=torch.float64))
    H = Q @ torch.diag(values) @ Q.T
    return (H + H.T) / 2


SPECTRA = {
    "spread": torch.linspace(-1, 3, 60, dtype=torch.float64),
    "few above many zeros": torch.cat([torch.zeros(55), torch.tensor([1.0, 5.0, 20.0, 50.0, 100.0])]).double(),
    "geometric": 10 ** torch.linspace(-6, 2, 60, dtype=torch.float64),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_lanczos_is_gauss_quadrature(name):
    """`steps` nodes integrate polynomials of degree 2 steps - 1 exactly; the largest eigenvalue comes out once."""
    H = symmetric(SPECTRA[name])
    v = torch.randn(60, generator=Key(2).generator(), dtype=torch.float64)
    nodes, weights = spectrum.lanczos(lambda u: H @ u, v, 6)
    assert float(weights.sum()) == pytest.approx(1)
    for power in range(12):
        exact = float(v @ torch.linalg.matrix_power(H, power) @ v / (v @ v))
        assert float((weights * nodes**power).sum()) == pytest.approx(exact, rel=1e-9)
    nodes, _ = spectrum.lanczos(lambda u: H @ u, v, 60)
    top = SPECTRA[name].max()
    assert float(nodes[-1]) == pytest.approx(float(top), rel=1e-9)
    assert int(((nodes - top).abs() < 1e-6 * top).sum()) == 1, "a copy: the basis is not orthogonal"


def test_lanczos_ends_where_the_krylov_space_does():
    """Six different eigenvalues: six nodes, which are they."""
    values = SPECTRA["few above many zeros"]
    H = symmetric(values)
    nodes, weights = spectrum.lanczos(lambda u: H @ u, torch.ones(60, dtype=torch.float64), 60)
    torch.testing.assert_close(nodes, values.unique(), rtol=1e-9, atol=1e-9)
    assert float(weights.sum()) == pytest.approx(1)


@pytest.mark.parametrize("name", ["mlp", "resnet8"])
def test_hessian_products_are_differences_of_gradients(name):
    """(grad(x + h v) - grad(x - h v)) / 2h, on a smooth and on a normalised network; and H is symmetric."""
    images = torch.rand(12, 3, 8, 8, generator=Key(0).generator(), dtype=torch.float64)
    labels = torch.arange(12) % 4
    net = network(name, (3, 8, 8), 4)
    problem = ImageClassification(images, labels, [torch.arange(12)], net, Key(1), batch=12)
    x, (xi,) = problem.start(), problem.draw(torch.tensor([0]), 1, Key(2))
    u, v = torch.randn(2, problem.d, generator=Key(3).generator(), dtype=torch.float64)
    product = spectrum.hessian(problem, x, torch.arange(12))
    h = 1e-7
    gradients = [problem.grads((x + sign * h * v)[None], xi)[0] for sign in (1, -1)]
    torch.testing.assert_close(product(v), (gradients[0] - gradients[1]) / (2 * h), rtol=1e-4, atol=1e-5)
    assert float(u @ product(v)) == pytest.approx(float(v @ product(u)), rel=1e-9)


def test_hessian_products_in_batches(monkeypatch):
    """Of 12 images in batches of 5, each by its own moments: the mean of the batches' products, by their sizes."""
    images = torch.rand(12, 3, 8, 8, generator=Key(0).generator(), dtype=torch.float64)
    net = network("resnet8", (3, 8, 8), 4)
    problem = ImageClassification(images, torch.arange(12) % 4, [torch.arange(12)], net, Key(1), batch=12)
    v = torch.randn(problem.d, generator=Key(3).generator(), dtype=torch.float64)
    parts = torch.arange(12).split(5)
    each = [len(part) / 12 * spectrum.hessian(problem, problem.start(), part)(v) for part in parts]
    monkeypatch.setattr(spectrum, "BATCH", 5)
    torch.testing.assert_close(spectrum.hessian(problem, problem.start(), torch.arange(12))(v), sum(each))


def test_costs_per_client():
    """8 clients, 2 sampled: m/M scalars of 4 bytes and seeds of 8, and every round's 12 bytes again; up to the rounds
    that some clients still miss when the run ends."""
    counted = decomfl_costs.per_client(5)
    for rounds, megabytes in counted.items():
        full = rounds * 5 * (12 / 4 + 12) / 1e6
        assert full - 5 * 12 * 40 / 1e6 < megabytes <= full * 1.01


def test_one_seed_confirms_nothing():
    assert decomfl.order("", [1.0], "", "paper's").verdict == "inconclusive"
    assert decomfl.order("", [1.0, 1.1, 0.9], "", "paper's").verdict == "matches"
    assert decomfl.order("", [1.0, 1.1, 0.9], "", "reduced").verdict == "direction holds"
    assert decomfl.order("", [1.0, 3.0, -1.0], "", "paper's").verdict == "inconclusive"
    assert decomfl.order("", [-1.0, -1.1, -0.9], "", "paper's").verdict == "contradicted"
