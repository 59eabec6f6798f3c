"""The chain of docs/theory/limits.md, section 5: a loss that masks must walk along."""

from collections.abc import Sequence

import torch

from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Constants, Problem


class Chain(Problem):
    """sum_j n(x_j) - Psi(x_{j-1}) Phi(x_j), x_0 = 1; of two clients each has twice every second link."""

    closed_form = False

    def __init__(self, M: int, clients: int = 1) -> None:
        self.n, self.layout, self.dtype, self.device = clients, Layout.single(M), torch.float64, torch.device("cpu")
        self.weights, self.constants = torch.full((clients,), 1 / clients, dtype=torch.float64), Constants(L=38 / 3)
        links = torch.arange(M)
        self.share = torch.stack([clients * (links % clients == i).double() for i in range(clients)])

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[torch.Tensor]:
        return [clients] * steps

    def full(self, clients: torch.Tensor) -> torch.Tensor:
        return clients

    def links(self, y: torch.Tensor) -> torch.Tensor:
        """The values of the links at y (..., M)."""
        before = torch.cat([torch.ones_like(y[..., :1]), y[..., :-1]], -1).clamp(0, 1)
        psi = torch.where(before <= 0.5, 2 * before**2, 1 - 2 * (1 - before) ** 2)
        low, top = (y.clamp(-1 / 6, 0) + 1 / 6) ** 2 * 3, (7 / 6 - y.clamp(1, 7 / 6)) ** 2 * 3
        n = torch.where(y < -1 / 6, -y - 1 / 12, 3 * y.clamp(max=0) ** 2)
        return n - psi * (low + y.clamp(0, 1) + 1 / 12 - top)

    def losses(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        return (self.links(y) * self.share[xi].view(len(xi), *[1] * (y.dim() - 2), -1)).sum(-1)

    def grads(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            at = y.detach().requires_grad_()
            return torch.autograd.grad(self.losses(at, xi).sum(), at)[0]
