"""FedSLoP: He, Huang, Geng 2026, "Memory-Efficient Federated Learning with Low-Rank Gradient Projection",
arXiv:2604.24012. Read from the authors' code.
"""

from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Known, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.subspace import Projection, Spherical, fifth


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    layout: Known[Layout]


@dataclass(frozen=True)
class Own:
    m: torch.Tensor  # coordinates of the momentum, (N, r)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    P: Seed[Basis] | Known[Basis]


@dataclass(frozen=True)
class Up:
    b: torch.Tensor  # coordinates of y_i - x, (S, r)


@dataclass(frozen=True)
class FedSLoP(Algorithm):
    """FedAvg whose clients keep momentum in a random subspace, which is drawn anew in every round.

    A client keeps the coordinates of its momentum, and takes them over into the next subspace, as the authors' class
    does. Their script for networks keeps the whole vector, and projects no biases. The authors' code sends whole
    changes; here their coordinates cross. The server's momentum is a part, `Momentum`.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: K.
        projection: distribution of P with orthonormal columns; None: `Spherical` with a fifth of each layer's rows.
        momentum: mu.
        carry: False starts each round's momentum at zero.
    """

    lr: float = by_problem()
    local_steps: int = 5
    projection: Projection = by_problem()
    momentum: float = 0.8
    carry: bool = True
    name = "FedSLoP"
    pace = 0.1
    averaged = True

    def __post_init__(self) -> None:
        if self.projection is not None and self.projection.scale != "orthonormal":
            expected, fix = "'orthonormal' (P^T P = I)", "pass Spherical(r, 'orthonormal')"
            checks.reject("projection.scale", self.projection.scale, expected, fix)
        checks.number("momentum", self.momentum, 0.0, 1.0)
        if self.momentum == 1:
            checks.reject("momentum", self.momentum, "a number from 0 to below 1", "choose for example 0.8")

    def suited(self, problem: Problem) -> dict[str, Any]:
        return super().suited(problem) | {"projection": Spherical(fifth(problem.layout), "orthonormal")}

    @property
    def gradient_only(self) -> bool:
        return not self.momentum

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        r = self.projection.low(problem.layout).size
        return State(Server(x, Known(problem.layout)), Own(x.new_zeros(problem.kept, r)))

    def broadcast(self, server: Server, key: Key) -> Down:
        layout, x = server.layout.value, server.x
        return Down(x, self.projection.seed(layout, key.fold("P"), x.dtype, x.device))

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        P, xi = down.P.value, problem.draw(clients, self.local_steps, key.fold("xi"))
        m = own.m if self.carry else torch.zeros_like(own.m)
        b = torch.zeros_like(m)
        for k in range(self.local_steps):
            g = problem.grads(down.x + P.lift(b), xi[k])
            m = self.momentum * m + P.project(g)  # m <- mu m + G P
            b = b.sub(m, alpha=self.lr)  # W <- W - eta m P^T
            yield b
        return Up(b), Own(m)

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        return Server(server.x + down.P.value.lift(up.b.mean(0)), server.layout), None


METHODS = [
    Method(
        "FedSLoP",
        "subspace",
        lambda o: FedSLoP(o.lr, o.local_steps, Spherical(o.ranks, "orthonormal")),
        Card(
            "Clients keep momentum in a random subspace, which is drawn anew in every round.",
            "m_i = mu m_i + P^T g_i(y); y -= eta P m_i; x += P mean(P^T (y_i - x))",
            "mu = 0 with P = I is FedAvg; P moves r/m of a gradient in the mean (laws). Original: O(1/sqrt(N T)).",
            "Momentum that is carried over points nowhere in the new subspace: it saves no rounds (law).",
        ),
        command=lambda o: FedSLoP(o.lr, o.local_steps, Spherical(o.rank, "orthonormal")),
        rate=0.3,
    ),
]
