"""FedSub's logistic regression (paper Sec. 5.1): clusters on distinct hyperplanes, one per client."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch.nn.functional import logsigmoid

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Constants, Problem
from fedtheory.core.registry import Offer
from fedtheory.problems.quadratic import client_weights

FAR = 1e6  # in deviations of the data; farther away no digit of theirs is left


class SignedRows(NamedTuple):
    """Features times labels of every client, Z (S, m, b): a column a sample, so that products run along long rows."""

    Z: torch.Tensor


class LogisticRegression(Problem):
    """f_i(x) = (1/n_i) sum_j log(1 + exp(-b_ij a_ij^T x)) + lambda/2 ||x||^2, x in R^m, local full gradients.

    x* is found by Newton's method in float64 and certified: ||x - x*|| <= ||grad F(x)|| / mu <= 1e-12 ||x*||.

    Args:
        A: features, (N, n_i, m).
        b: labels +-1, (N, n_i), same dtype.
        lam: lambda >= 0. With 0 the data must not be linearly separable, or there is no x*.
        device: where to compute.

    Raises TypeError or ValueError for wrong shapes, dtypes, labels, or data on which Newton's method finds no x*.
    """

    @checks.arguments
    def __init__(
        self, A: torch.Tensor, b: torch.Tensor, lam: float = 0.0, *, device: str | torch.device = "cpu"
    ) -> None:
        A = checks.tensor("A", A, (None, None, None)).detach()
        if 0 in A.shape:
            checks.reject(
                "A.shape", tuple(A.shape), "at least one client, row and feature", "pass (N, n_i, m), all >= 1"
            )
        self.n, self.rows, m = A.shape
        self.dtype = checks.dtype("A.dtype", A.dtype)
        b = checks.tensor("b", b, (self.n, self.rows), A.dtype).detach()
        if not bool((b.abs() == 1).all()):
            checks.reject("b", float(b[b.abs() != 1][0]), "labels -1 and +1", "map your labels: 2 * b - 1")
        self.lam = checks.number("lam", lam, 0.0, 1e100)
        self.device = checks.device("device", device)
        self.layout = Layout.single(m)
        self.weights = client_weights(None, self.n)
        Z = A * b[..., None]
        self.Z = Z.mT.contiguous().to(self.device)
        self.constants = self._constants(Z.double().cpu())

    def _constants(self, Z: torch.Tensor) -> Constants:
        m, eye = Z.shape[2], torch.eye(Z.shape[2], dtype=torch.float64)
        x = torch.zeros(m, dtype=torch.float64)
        flat, gap = Z.flatten(0, 1), float("inf")
        for _ in range(100):
            slope = torch.sigmoid(-(flat @ x))
            grad = -(slope @ flat) / len(flat) + self.lam * x
            H = (flat.T * (slope * (1 - slope))) @ flat / len(flat) + self.lam * eye
            mu = float(torch.linalg.eigvalsh(H)[0])
            gap = float(torch.linalg.vector_norm(grad)) / max(mu, 1e-300)
            if gap <= 1e-13 * float(torch.linalg.vector_norm(x)):
                break
            if mu <= 1e-14:  # flat: the iterates run off along a separating direction
                break
            step = torch.linalg.solve(H, grad)
            damping = 1.0 / (1.0 + float((grad @ step).clamp(min=0).sqrt()) * float(flat.norm(dim=1).max()) / 4)
            x = x - (step if gap < 1e-3 else damping * step)
        length = float(flat.norm(dim=1).max())
        if not gap <= 1e-12 * float(torch.linalg.vector_norm(x)) + 1e-15 / max(length, 1e-300):  # x* = 0 has no length
            checks.reject(
                "lam",
                self.lam,
                f"a problem with a minimiser (Newton stopped at ||x - x*|| <= {gap:.1e})",
                "use lam > 0: the data may be linearly separable",
            )
        slope = torch.sigmoid(-(Z @ x))
        grads = -(slope[:, None, :] @ Z)[:, 0] / Z.shape[1] + self.lam * x
        L = float(torch.linalg.eigvalsh(Z.mT @ Z / (4 * Z.shape[1])).max()) + self.lam
        bounded = float((Z.norm(dim=2).mean(1) ** 2).mean()) if self.lam == 0 else None
        return Constants(
            L=L,
            mu=self.lam if self.lam > 0 else None,
            sigma2=0.0,
            heterogeneity=float((grads**2).sum(-1).mean()),
            gradient_bound2=bounded,
            x_star=x.to(self.device, self.dtype),
            f_star=-float(logsigmoid(flat @ x).mean()) + 0.5 * self.lam * float(x @ x),
        )

    @staticmethod
    @checks.arguments
    def fedsub(
        key: Key | int = 0,
        *,
        geometry: str = "hyperplane",
        n: int = 30,
        samples: int = 60_000,
        m: int = 20,
        noise: float = 0.1,
        offset: float = 1.0,
        lam: float = 0.0,
        dtype: torch.dtype = torch.float64,
        device: str | torch.device = "cpu",
    ) -> "LogisticRegression":
        """The problem of FedSub's Fig. 1, as far as it is printed: sizes, one cluster per client, small noise.

        The rest is this package's reading, and a setting, because the figure's levels depend on it.
            "hyperplane" (default): cluster i lies near its own hyperplane {a : w_i^T a = offset}, w_i a random unit
                normal. Coordinates are standard normal inside it and `noise` times a normal across. Labels are drawn
                from one logistic model common to all clients.
            "center": cluster i is N(mu_i, I) around a centre of norm offset * sqrt(m). Its labels are decided by its
                own random hyperplane through that centre and flipped with probability `noise`.

        >>> problem = LogisticRegression.fedsub(Key(0), samples=3000)
        >>> problem.n, problem.d
        (30, 20)
        """
        key = Key.of(key)
        checks.choice("geometry", geometry, ("hyperplane", "center"))
        for name, value in (("n", n), ("m", m)):
            checks.whole(name, value, 1)
        checks.whole("samples", samples, n, fix=f"use at least one sample per client, samples >= {n}")
        checks.number("noise", noise, 0.0, FAR)
        checks.number("offset", offset, -FAR, FAR)
        checks.number("lam", lam, 0.0)
        checks.dtype("dtype", dtype)
        checks.device("device", device)
        checks.room("(samples, m)", (samples, m), 8 * (6 * samples * m + 4 * (n + 1) * m * m))
        g = key.generator()
        rows = samples // n
        normal = torch.randn(n, m, generator=g, dtype=torch.float64)
        normal = normal / torch.linalg.vector_norm(normal, dim=1, keepdim=True)
        z = torch.randn(n, rows, m, generator=g, dtype=torch.float64)
        chance = torch.rand(n, rows, generator=g, dtype=torch.float64)
        if geometry == "hyperplane":
            across = (z @ normal[:, :, None])[..., 0]
            A = z + ((noise - 1) * across + offset)[..., None] * normal[:, None, :]
            truth = torch.randn(m, generator=g, dtype=torch.float64)
            b = torch.where(chance < torch.sigmoid(A @ truth), 1.0, -1.0).to(torch.float64)
        else:
            center = torch.randn(n, 1, m, generator=g, dtype=torch.float64)
            A = offset * center + z
            side = (z @ normal[:, :, None])[..., 0]
            b = torch.where((side > 0) ^ (chance < noise), 1.0, -1.0).to(torch.float64)
        return LogisticRegression(A.to(dtype), b.to(dtype), lam, device=device)

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[SignedRows]:
        return [self.full(clients)] * steps

    def full(self, clients: torch.Tensor) -> SignedRows:
        if len(clients) == self.n and torch.equal(clients, self.clients):  # no copy
            return SignedRows(self.Z)
        return SignedRows(self.Z[clients.to(self.device)])

    def grads(self, y: torch.Tensor, xi: SignedRows) -> torch.Tensor:
        slope = (-y[:, None] @ xi.Z).sigmoid_()  # (S, 1, b)
        return (xi.Z @ slope.mT)[..., 0].mul_(-1 / xi.Z.shape[2]).add_(y, alpha=self.lam)

    def losses(self, y: torch.Tensor, xi: SignedRows) -> torch.Tensor:
        margin = (y[:, None] @ xi.Z)[:, 0]
        return -logsigmoid(margin).mean(1) + 0.5 * self.lam * (y**2).sum(-1)


PROBLEMS = [
    Offer(
        "logistic_regression",
        LogisticRegression,
        lambda key, device, options: LogisticRegression.fedsub(key, device=device),
    )
]
