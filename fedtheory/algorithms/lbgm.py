"""LBGM: Azam et al. 2022, "Recycling Model Updates in Federated Learning: Are Gradient Subspaces Low-Rank?",
arXiv:2202.00280, Algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Down, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # theta, (d,)
    g: torch.Tensor  # g_k^l: the server's copy of every client's look-back gradient, (N, d)


@dataclass(frozen=True)
class Own:
    g: torch.Tensor  # g_k^l, (N, d)


@dataclass(frozen=True)
class Up:
    """The rows of g_k cross only where they are marked; the others are zero."""

    sent: torch.Tensor  # the marks, (S, 1) bool, one byte each
    rows: torch.Tensor  # g_k, (S, d)
    rho: torch.Tensor  # look-back coefficient, (S, 1)

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        return cost(self.crosses(), lags)

    def crosses(self, whole: Any = None, client: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What is sent of it: the marks, the marked rows, the coefficients."""
        return self.sent, self.rows[self.sent[:, 0]], self.rho

    def arrived(self, crossed: Any, whole: Any = None, client: int = 0) -> "Up":
        """The upload of what was sent; `self` is one of the same shapes."""
        if not isinstance(crossed, tuple) or len(crossed) != 3:
            checks.reject("upload", crossed, "marks, rows, coefficients", "send what `crosses` gives")
        sent, rows, rho = crossed
        checks.tensor("sent", sent, tuple(self.sent.shape), torch.bool, finite=False, kinds=None)
        checks.tensor("rows", rows, (int(sent.sum()), *self.rows.shape[1:]), self.rows.dtype)
        return Up(sent, torch.zeros_like(self.rows).masked_scatter(sent, rows), rho)


@dataclass(frozen=True)
class LBGM(Algorithm):
    """A client whose change points nearly where its last whole upload did sends one number: how far along that.

    The accumulated gradient g_k becomes the change y - x = -lr g_k; rho is the same. The server keeps a vector of d
    numbers for every client. As printed, a vector is the whole model's; the authors' code has a rho, an angle and a
    vector for each tensor. All participants weigh the same, that code weighs them by their data.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: tau.
        delta: threshold on sin^2 of the angle between g_k and g_k^l. FLSS: 0.05. At 0 only an exact multiple is sent as
            a number, and this is FedAvg. A client that never sent a vector does so, and so does one with g_k^l = 0.
    """

    lr: float = by_problem()
    local_steps: int = 5
    delta: float = 0.05
    name = "LBGM"

    def __post_init__(self) -> None:
        checks.number("delta", self.delta, 0.0, 1.0)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, x.new_zeros(problem.n, problem.d)), Own(x.new_zeros(problem.kept, problem.d)))

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand_as(own.g)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        g = y - down.x
        norm2 = (own.g**2).sum(-1, keepdim=True)
        rho = (g * own.g).sum(-1, keepdim=True) / norm2.where(norm2 > 0, 1.0)  # <g_k, g_k^l> / ||g_k^l||^2
        off2 = ((g - rho * own.g) ** 2).sum(-1, keepdim=True)  # sin^2(alpha) ||g_k||^2, without its cancellation
        near = (off2 <= self.delta * (g**2).sum(-1, keepdim=True)) & (norm2 > 0)  # sin^2(alpha) <= delta
        return Up(~near, g.where(~near, 0.0), rho), Own(own.g.where(near, g))  # g_k^l <- g_k where it was sent

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        g = server.g[clients]
        change = up.rows.where(up.sent, up.rho * g)  # g_k, or rho_k g_k^l
        copies = server.g.index_copy(0, clients, up.rows.where(up.sent, g))
        return Server(server.x + change.mean(0), copies), None  # theta <- theta - eta sum_k w_k (.), w_k = 1/S


METHODS = [
    Method(
        "LBGM",
        "compressed",
        lambda o: LBGM(o.lr, o.local_steps, delta=0.05),
        Card(
            "A change that points as the last whole upload did crosses as one number.",
            "rho_i = <y_i - x, l_i> / <l_i, l_i>; x += mean(rho_i l_i or y_i - x)",
            "delta = 0 is FedAvg (law).",
            "The server holds d numbers for each client; noise turns every change away from the last.",
        ),
    ),
]
