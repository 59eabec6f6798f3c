"""SSF's federated matrix regression (arXiv:2604.25467v1, Sec. 5.1, eq. 130-134, Table 1)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from fedtheory.core import checks
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Constants, Problem
from fedtheory.core.registry import Offer
from fedtheory.problems.quadratic import client_weights


class Rows(NamedTuple):
    """A minibatch of every client: features A (S, b, d) and targets, transposed, Bt (S, m, b)."""

    A: torch.Tensor
    Bt: torch.Tensor


class Batches(Sequence[Rows]):
    """The minibatches of all steps; element k is step k's. Rows are gathered for some steps at a time, when asked for.

    Fields:
        table: all clients' rows of features and targets, (N n_i, d + m).
        at: which rows of the table, (steps, S, b).
        clients: (S,).
        d: number of features.
    """

    def __init__(self, table: torch.Tensor, at: torch.Tensor, clients: torch.Tensor, d: int) -> None:
        self.table, self.at, self.clients, self.d = table, at, clients, d
        self._some: list[Rows] = []
        self._first = 0  # the step of the first of them

    def gather(self, at: torch.Tensor) -> torch.Tensor:
        """The rows at (steps, S, b) of the table, (steps, S, b, d + m)."""
        return self.table.index_select(0, at.flatten()).view(*at.shape, -1)

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, k: int) -> Rows:  # type: ignore[override]
        at = k - self._first
        if not 0 <= at < len(self._some):
            k = range(len(self))[k]  # IndexError behind the last one
            steps = max(1, _GATHERED // (self.at[0].numel() * self.table.shape[1] * self.table.element_size()))
            self._first, at = k - k % steps, k % steps
            rows = self.gather(self.at[self._first : self._first + steps])
            self._some = list(map(Rows, rows[..., : self.d].unbind(), rows[..., self.d :].mT.unbind()))
        return self._some[at]


_AT_A_TIME = 2048  # clients whose Hessians are held
_GATHERED = 2**21  # bytes of minibatches that are gathered at a time, so that a core's cache still has them when used


class MatrixRegression(Problem):
    """f_i(X) = 1/(2 n_i) ||A_i X - B_i||_F^2 + lambda/2 ||X||_F^2, X in R^{d x m} (eq. 130).

    The flat vector is vec(X): columns stacked, so that a row of length d is contiguous and a basis acts on it from the
    left. A minibatch replaces 1/n_i by 1/b and keeps the regulariser.

    Args:
        A: features, (N, n_i, d).
        B: targets, (N, n_i, m), same dtype.
        lam: lambda >= 0.
        batch: minibatch size b; None for full gradients.
        replacement: True draws the b rows independently (xi ~ D_i, as Assumption 2's samples); False without.
        device: where to compute.

    Raises TypeError or ValueError for wrong shapes, dtypes, ranges, or non-finite data.
    """

    @checks.arguments
    def __init__(
        self,
        A: torch.Tensor,
        B: torch.Tensor,
        lam: float = 0.1,
        *,
        batch: int | None = None,
        replacement: bool = True,
        device: str | torch.device = "cpu",
    ) -> None:
        A = checks.tensor("A", A, (None, None, None)).detach()
        if 0 in A.shape:
            checks.reject(
                "A.shape", tuple(A.shape), "at least one client, row and feature", "pass (N, n_i, d), all >= 1"
            )
        self.n, self.rows, d = A.shape
        self.dtype = checks.dtype("A.dtype", A.dtype)
        B = checks.tensor("B", B, (self.n, self.rows, None), A.dtype).detach()
        self.lam = checks.number("lam", lam, 0.0, 1e100)
        if batch is not None:
            checks.whole("batch", batch, 1, checks.MOST_PER_ROUND if replacement else self.rows)
        self.batch, self.replacement = batch, replacement
        self.device = checks.device("device", device)
        self.layout = Layout.single(d, B.shape[2])
        self.weights = client_weights(None, self.n)
        self.constants = self._constants(A.double().cpu(), B.double().cpu())
        self.A, self.Bt = A.to(self.device), B.mT.contiguous().to(self.device)
        self._transposed = (-1, B.shape[2], d)  # a batch of X^T
        self._first = self.rows * torch.arange(self.n)[:, None]  # where a client's rows begin in the table
        self._table = torch.cat([A, B], dim=2).flatten(0, 1).to(self.device)  # one gather fetches a row and its target

    def _constants(self, A: torch.Tensor, B: torch.Tensor) -> Constants:
        """A Hessian a client, (N, d, d), is held for so many clients at a time only."""
        eye = torch.eye(A.shape[2], dtype=torch.float64)
        parts = list(zip(A.split(_AT_A_TIME), B.split(_AT_A_TIME)))
        L, mean_H, mean_AB = 0.0, torch.zeros_like(eye), torch.zeros(A.shape[2], B.shape[2], dtype=torch.float64)
        for a, b in parts:
            H = a.mT @ a / self.rows + self.lam * eye  # Hessian of f_i, the same for every column of X
            share = len(a) / self.n
            mean_H, mean_AB = mean_H + share * H.mean(0), mean_AB + share * (a.mT @ b).mean(0)
            L = max(L, self._largest(a, H))
        mu = float(torch.linalg.eigvalsh(mean_H)[0])
        if mu <= 1e-12 * L:
            return Constants(L=L, mu=mu)
        X = torch.linalg.solve(mean_H, mean_AB / self.rows)  # closed-form minimiser of (131)
        heterogeneity = f_star = 0.0
        for a, b in parts:
            residual, share = a @ X - b, len(a) / self.n
            grads = a.mT @ residual / self.rows + self.lam * X
            loss = (residual**2).sum((1, 2)) / (2 * self.rows) + 0.5 * self.lam * (X**2).sum()
            heterogeneity += share * float((grads**2).sum((1, 2)).mean())
            f_star += share * float(loss.mean())
        return Constants(
            L=L,
            mu=mu,
            heterogeneity=heterogeneity,
            x_star=self.layout.flatten([X]).to(self.device, self.dtype),
            f_star=f_star,
        )

    def _largest(self, A: torch.Tensor, H: torch.Tensor) -> float:
        """The largest eigenvalue of the Hessians; of many clients by A A^T, which is small where the rows are few."""
        if self.n > _AT_A_TIME and self.rows < A.shape[2]:
            return float(torch.linalg.eigvalsh(A @ A.mT / self.rows).max()) + self.lam
        return float(torch.linalg.eigvalsh(H).max())

    @staticmethod
    @checks.arguments
    def ssf(
        het: float = 0.5,
        key: Key | int = 0,
        *,
        n: int = 20,
        rows: int = 50,
        d: int = 100,
        m: int = 10,
        lam: float = 0.1,
        noise: float = 0.01,
        batch: int | None = 20,
        replacement: bool = True,
        dtype: torch.dtype = torch.float64,
        device: str | torch.device = "cpu",
    ) -> "MatrixRegression":
        """The problem of SSF's Table 1.

        A_i = mu_i + standard normal rows, mu_i ~ N(0, het^2 I_d) (133); one X_true with standard normal entries for
        all clients; B_i = A_i X_true + noise * standard normal. The paper prints mu_i, the noise level and the sizes;
        the distribution around mu_i, X_true and where the noise enters are this package's reading.

        >>> problem = MatrixRegression.ssf(het=0.5, key=Key(0))
        >>> problem.n, problem.d
        (20, 1000)
        """
        key = Key.of(key)
        checks.number("het", het, 0.0, 1e100)
        checks.number("noise", noise, 0.0, 1e100)
        for name, value in (("n", n), ("rows", rows), ("d", d), ("m", m)):
            checks.whole(name, value, 1)
        checks.dtype("dtype", dtype)
        if batch is not None:
            checks.whole("batch", batch, 1, checks.MOST_PER_ROUND if replacement else rows)
        checks.room("(n, rows, d, m)", (n, rows, d, m), 8 * 4 * (n * rows + min(n, _AT_A_TIME) * d) * (d + m))
        g = key.generator()
        mu = het * torch.randn(n, 1, d, generator=g, dtype=torch.float64)
        A = mu + torch.randn(n, rows, d, generator=g, dtype=torch.float64)
        X_true = torch.randn(d, m, generator=g, dtype=torch.float64)
        B = A @ X_true + noise * torch.randn(n, rows, m, generator=g, dtype=torch.float64)
        return MatrixRegression(A.to(dtype), B.to(dtype), lam, batch=batch, replacement=replacement, device=device)

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Rows]:
        if self.batch is None:
            return [self.full(clients)] * steps
        g, b = key.generator(), self.batch
        if steps * self.n * b > 2**27:  # 1 GiB of positions
            checks.room("(steps, n, batch)", (steps, self.n, b), 8 * 3 * steps * self.n * b)
        if self.replacement:
            row = torch.randint(self.rows, (steps, self.n, b), generator=g)
        else:
            chance = torch.rand(steps, self.n, self.rows, generator=g, dtype=torch.float32)
            row = chance.topk(b, dim=-1, sorted=False)[1]
        at = row.add_(self._first).index_select(1, clients).to(self.device)
        return Batches(self._table, at, clients, self.A.shape[2])

    def full(self, clients: torch.Tensor) -> Rows:
        clients = clients.to(self.device)
        return Rows(self.A[clients], self.Bt[clients])

    def grads(self, y: torch.Tensor, xi: Rows) -> torch.Tensor:
        Yt = y.view(*self._transposed)  # X^T: (S, m, d)
        residual = torch.baddbmm(xi.Bt, Yt, xi.A.mT, beta=-1)  # (A X - B)^T
        grad = torch.baddbmm(Yt, residual, xi.A, beta=self.lam, alpha=1 / xi.A.shape[1])
        return grad.view(-1, self.d)

    def restrict(self, P: Basis, x: torch.Tensor, xi: Sequence[Rows]) -> Callable[[torch.Tensor, int], torch.Tensor]:
        """P^T grad f_i(x + P b) = H b + g with H and g formed once a round: a step then costs r/b of a full gradient's.

        H = (A P)^T A P / b + lam P^T P is (r, r), so this pays while r is not much larger than the minibatch. Where a
        round draws more rows than a client has, each row is multiplied by P and X once, however often it is drawn.
        """
        (frame,) = (matrix.to(x) for matrix in P.matrices())
        both = torch.cat([frame.T, x.view(*self._transposed[1:])])  # P^T and X^T
        r, steps = frame.shape[1], len(xi)
        if not isinstance(xi, Batches):  # full batches: one sample, repeated
            products = self._products(both, r, torch.cat([xi[0].A, xi[0].Bt.mT], dim=2)[None])
        elif xi.at[:, 0].numel() < self.rows:
            products = self._products(both, r, xi.gather(xi.at))
        else:
            clients = xi.clients.to(self.device)
            each = self._products(both, r, self._table.view(self.n, self.rows, -1).index_select(0, clients))
            moved = (clients - torch.arange(len(clients), device=self.device)) * self.rows
            at = (xi.at - moved[:, None]).flatten()
            products = each.flatten(1).index_select(1, at).view(len(both), *xi.at.shape)
        S, b = products.shape[2:]
        products = products.flatten(1, 2).transpose(0, 1)  # (A P)^T and (A X - B)^T, all steps at once
        terms = torch.baddbmm(self.lam * (both @ frame), products, products[:, :r].mT, alpha=1 / b)
        terms = terms.view(-1, S, *terms.shape[1:]).expand(steps, -1, -1, -1)
        Ht, gt = terms[:, :, :r].unbind(), terms[:, :, r:].unbind()

        def gradient(b: torch.Tensor, k: int) -> torch.Tensor:
            return torch.baddbmm(gt[k], b.view(len(b), -1, r), Ht[k]).view(len(b), -1)

        return gradient

    @staticmethod
    def _products(both: torch.Tensor, r: int, rows: torch.Tensor) -> torch.Tensor:
        """Features (.., d) times P and X, less the targets: (r + m, ..); rows (.., d + m), both (r + m, d)."""
        A, B = rows.flatten(0, -2).split([both.shape[1], len(both) - r], dim=1)
        products = both @ A.T
        products[r:] -= B.T
        return products.view(len(both), *rows.shape[:-1])

    def losses(self, y: torch.Tensor, xi: Rows) -> torch.Tensor:
        Yt = y.view(*self._transposed)
        residual = torch.baddbmm(xi.Bt, Yt, xi.A.mT, beta=-1)
        return (residual**2).sum((1, 2)) / (2 * xi.A.shape[1]) + 0.5 * self.lam * (y**2).sum(-1)


PROBLEMS = [
    Offer(
        "matrix_regression",
        MatrixRegression,
        lambda key, device, options: MatrixRegression.ssf(0.5, key, device=device),
    )
]
