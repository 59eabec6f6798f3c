"""Quadratics with chosen spectra: everything about them is known, so theory is checked on them first."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Constants, Problem
from fedtheory.core.registry import Offer


class QuadraticSample(NamedTuple):
    """Clients (S,) and the noise vector (S, d) that their gradients see, None where exact."""

    clients: torch.Tensor
    noise: torch.Tensor | None


class Quadratic(Problem):
    """F_i(x) = 1/2 (x - b_i)^T H_i (x - b_i), with two-point gradient noise +- u_i, each sign with probability 1/2.

    Args:
        H: symmetric matrices, (N, d, d); indefinite ones are allowed.
        b: centres, (N, d), same dtype.
        noise: u, (N, d), same dtype; None for exact gradients. Its variance ||u_i||^2 is exact at every x.
        layout: layers of the parameter vector; default one column of d rows.
        weights: client weights, (N,), non-negative with a positive sum; default 1/N each.
        device: where to compute.

    Raises TypeError or ValueError for wrong shapes, dtypes, non-finite entries or a matrix that is not symmetric.
    """

    @checks.arguments
    def __init__(
        self,
        H: torch.Tensor,
        b: torch.Tensor,
        *,
        noise: torch.Tensor | None = None,
        layout: Layout | None = None,
        weights: torch.Tensor | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        H = checks.tensor("H", H, (None, None, None)).detach()
        if 0 in H.shape:
            checks.reject(
                "H.shape", tuple(H.shape), "at least one client and one dimension", "pass (N, d, d), N, d >= 1"
            )
        n, d = H.shape[0], H.shape[1]
        checks.tensor("H", H, (n, d, d), checks.dtype("H.dtype", H.dtype))
        b = checks.tensor("b", b, (n, d), H.dtype).detach()
        if noise is not None:
            noise = checks.tensor("noise", noise, (n, d), H.dtype).detach()
        if not torch.equal(H, H.mT):
            gap = float((H - H.mT).abs().max())
            checks.reject("H", f"asymmetric by {gap:.2g}", "symmetric matrices", "pass (H + H.mT) / 2")
        self.n, self.dtype, self.device = n, H.dtype, checks.device("device", device)
        self.layout = layout or Layout.single(d)
        if self.layout.size != d:
            checks.reject("layout.size", self.layout.size, f"d = {d}", "give a layout whose layers hold d entries")
        self.weights = client_weights(weights, n)
        self.H, self.b = H.to(self.device), b.to(self.device)
        self.noise = None if noise is None else noise.to(self.device)
        self.constants = self._constants(H.double().cpu(), b.double().cpu(), noise)

    def _constants(self, H: torch.Tensor, b: torch.Tensor, noise: torch.Tensor | None) -> Constants:
        mean_H = torch.einsum("i,ijk->jk", self.weights, H)
        rhs = torch.einsum("i,ijk,ik->j", self.weights, H, b)
        spectrum = torch.linalg.eigvalsh(mean_H)
        L = float(torch.linalg.eigvalsh(H).abs().max())
        sigma2 = 0.0 if noise is None else float((noise.double() ** 2).sum(-1).max())
        if float(spectrum.abs().min()) < 1e-12 * max(L, 1e-300):
            return Constants(L=L, mu=float(spectrum[0]), sigma2=sigma2)
        x_star = torch.linalg.solve(mean_H, rhs)
        gaps = x_star - b
        grads = torch.einsum("ijk,ik->ij", H, gaps)
        return Constants(
            L=L,
            mu=float(spectrum[0]),
            sigma2=sigma2,
            heterogeneity=float((grads**2).sum(-1).mean()),
            x_star=x_star.to(self.device, self.dtype),
            f_star=float(self.weights @ (0.5 * (gaps * grads).sum(-1))),
        )

    @staticmethod
    @checks.arguments
    def random(
        n: int = 10,
        d: int = 20,
        key: Key | int = 0,
        *,
        spectrum: tuple[float, float] = (0.1, 1.0),
        spread: float = 1.0,
        sigma: float = 0.0,
        dtype: torch.dtype = torch.float64,
        layout: Layout | None = None,
        device: str | torch.device = "cpu",
    ) -> "Quadratic":
        """Heterogeneous quadratics: Haar eigenvectors, eigenvalues uniform in `spectrum`, centres N(0, spread^2 I).

        Args:
            n, d: clients and dimension.
            key: of the draw, or its seed.
            spectrum: smallest and largest eigenvalue of every H_i, both attained (d >= 2); may be negative.
            spread: standard deviation of the centres: 0 is a homogeneous problem.
            sigma: norm of the two-point noise vector, so that the gradient variance is sigma^2.

        >>> problem = Quadratic.random(n=10, d=5, key=Key(0))
        >>> problem.n, problem.d, round(problem.constants.L, 3)
        (10, 5, 1.0)
        """
        key = Key.of(key)
        checks.whole("n", n, 1)
        checks.whole("d", d, 1)
        checks.dtype("dtype", dtype)
        checks.number("spread", spread, 0.0)
        checks.number("sigma", sigma, 0.0)
        checks.room("(n, d)", (n, d), 8 * 6 * n * d * d)
        low, high = spectrum
        if low > high:
            checks.reject("spectrum", spectrum, "(smallest, largest)", "swap the two")
        g = key.generator()
        q = torch.linalg.qr(torch.randn(n, d, d, generator=g, dtype=torch.float64))[0]
        eigen = low + (high - low) * torch.rand(n, d, generator=g, dtype=torch.float64)
        eigen[:, 0] = high
        eigen[:, -1] = low
        H = (q * eigen[:, None, :]) @ q.mT
        b = spread * torch.randn(n, d, generator=g, dtype=torch.float64)
        direction = torch.randn(n, d, generator=g, dtype=torch.float64)
        noise = sigma * direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        return Quadratic(
            ((H + H.mT) / 2).to(dtype),
            b.to(dtype),
            noise=noise.to(dtype) if sigma else None,
            layout=layout,
            device=device,
        )

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[QuadraticSample]:
        if self.noise is None:
            return [self.full(clients)] * steps
        signs = 2 * torch.randint(2, (steps, self.n, 1), generator=key.generator()) - 1
        signs = signs[:, clients].to(self.device, self.dtype)
        clients = clients.to(self.device)
        return [QuadraticSample(clients, sign * self.noise[clients]) for sign in signs]

    def full(self, clients: torch.Tensor) -> QuadraticSample:
        return QuadraticSample(clients.to(self.device), None)

    def grads(self, y: torch.Tensor, xi: QuadraticSample) -> torch.Tensor:
        exact = (self.H[xi.clients] @ (y - self.b[xi.clients])[..., None])[..., 0]
        return exact if xi.noise is None else exact + xi.noise

    def losses(self, y: torch.Tensor, xi: QuadraticSample) -> torch.Tensor:
        gap = y - self.b[xi.clients]
        exact = 0.5 * (gap * (self.H[xi.clients] @ gap[..., None])[..., 0]).sum(-1)
        return exact if xi.noise is None else exact + (xi.noise * y).sum(-1)


def client_weights(weights: torch.Tensor | None, n: int) -> torch.Tensor:
    """Return client weights p in float64, normalised to sum 1; 1/N each where none are given."""
    if weights is None:
        return torch.full((n,), 1.0 / n, dtype=torch.float64)
    checks.tensor("weights", weights, (n,))
    if float(weights.min()) < 0 or not 0 < float(weights.double().sum()) < float("inf"):
        expected = "non-negative weights with a positive, finite sum"
        checks.reject("weights", weights.tolist(), expected, "pass sample counts")
    weights = weights.double().cpu()
    return weights / weights.sum()


PROBLEMS = [Offer("quadratic", Quadratic, lambda key, device, options: Quadratic.random(10, 20, key, device=device))]
