"""Zeroth order in its first two forms: FedZO, whose clients send models, and MeZO, one trainer.

FedZO: Fang et al. 2022, arXiv:2201.09531, its algorithm for noise-free channels; DeComFL (arXiv:2405.15861v4) writes it
as (2a)-(2c). MeZO: Malladi et al. 2023, arXiv:2305.17333, Algorithm 1, and its n-SPSA.
"""

from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down, Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.directions import Direction, Each, bearable, slopes, walk


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


@dataclass(frozen=True)
class FedZO(Algorithm):
    """FedAvg whose local steps know losses only: differences along random directions stand for gradients.

    The paper's v is uniform on the unit sphere and its estimator (d / mu') (f(x + mu' v) - f(x)) v, averaged over
    directions. With z = sqrt(d) v that is the slope along z times z, with mu = mu' / sqrt(d).

    Fields:
        lr: eta; None: `pace` times the problem's `rate`, less by the directions' variance.
        local_steps: H.
        perturbations: b_2, directions of a step; b_1, the samples that share them, is the problem's batch.
        smoothing: mu, where a loss is evaluated at x + mu z and z has length sqrt(d) (in the mean, where Gaussian).
        scalar: "forward" as printed, or "central".
        direction: "sphere", or "gaussian", the other choice that DeComFL's (2b) names.

    Every client draws directions of its own, z_{i,r}^k. All participants weigh the same.
    """

    lr: float = by_problem()
    local_steps: int = 1
    perturbations: int = 10
    smoothing: float = 1e-3
    scalar: str = "forward"
    direction: str = "sphere"
    name = "FedZO"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("smoothing", self.smoothing, 0.0, open_low=True)
        checks.choice("scalar", self.scalar, ("forward", "central"))
        checks.choice("direction", self.direction, ("gaussian", "sphere"))

    def suited(self, problem: Problem) -> dict[str, Any]:
        return {"lr": self.pace * problem.rate * bearable(self.perturbations, problem.d)}

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)  # (2a)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y, ids = down.x.repeat(len(clients), 1), clients.tolist()
        for k in range(self.local_steps):
            z = [
                Each(tuple(_direction(self.direction, problem, key.fold("z", i, k, p)) for i in ids))
                for p in range(self.perturbations)
            ]
            g = slopes(problem, y, z, self.smoothing, xi[k], central=self.scalar == "central")  # (3)
            y = y.clone()
            walk(y, z, -self.lr / self.perturbations * g)  # (2b)
            yield y
        return Up(y - down.x), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        return Server(server.x + up.dy.mean(0)), None  # (2c)


@dataclass(frozen=True)
class Alone:
    """A model that never leaves its machine."""

    x: Known[torch.Tensor]  # (d,)


@dataclass(frozen=True)
class MeZO(Algorithm):
    """In-place zeroth-order SGD at one trainer: two losses, one direction, which a seed makes four times over.

    It is no federated method: a problem with more than one client must be pooled first, `Pooled(problem)`. Client and
    server are one machine, so nothing crosses. Directions come block by block, and a problem that evaluates layer by
    layer (`Problem.losses_at`) holds one perturbed layer at a time. That replaces adding epsilon z, taking 2 epsilon z
    away and adding it back, which would leave rounding.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`, less by the directions' variance.
        local_steps: steps between two looks at the model.
        perturbations: n of n-SPSA; 1 is Algorithm 1.
        smoothing: epsilon.
    """

    lr: float = by_problem()
    local_steps: int = 1
    perturbations: int = 1
    smoothing: float = 1e-3
    name = "MeZO"

    def __post_init__(self) -> None:
        checks.number("smoothing", self.smoothing, 0.0, open_low=True)

    def suited(self, problem: Problem) -> dict[str, Any]:
        return {"lr": self.pace * problem.rate * bearable(self.perturbations, problem.d)}

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        if problem.n > 1:
            checks.reject("problem.n", problem.n, "one client, as MeZO trains in one place", "pass Pooled(problem)")
        return State(Server(x), None)

    def broadcast(self, server: Server, key: Key) -> Alone:
        return Alone(Known(server.x))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Alone, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.value[None]
        for k in range(self.local_steps):
            keys = [key.fold("z", 0, k, p) for p in range(self.perturbations)]  # the seed s
            z = [_direction("gaussian", problem, one) for one in keys]
            g = slopes(problem, y, z, self.smoothing, xi[k], central=True)  # projected_grad = (l+ - l-) / (2 epsilon)
            y = y.clone()
            walk(y, z, -self.lr / self.perturbations * g)  # theta_i <- theta_i - eta projected_grad z
            yield y
        return Alone(Known(y[0])), None

    def server(self, server: Server, down: Alone, up: Alone, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        return Server(up.x.value), None


def _direction(kind: str, problem: Problem, key: Key) -> Direction:
    return Direction(key, problem.layout, kind, problem.dtype, problem.device)


METHODS = [
    Method(
        "FedZO",
        "zeroth order",
        lambda o: FedZO(o.lr, o.local_steps, o.perturbations),
        Card(
            "FedAvg whose local steps know losses only.",
            "y -= eta / P sum_p g_ip z_ip, own directions; x += mean(y_i - x)",
            "Unbiased for the smoothed loss of a quadratic; over all +- sqrt(d) e_j it is FedAvg (laws). Costs:",
            "A model crosses up and down, and steps have about d / P times a gradient's second moment.",
            ("decomfl.eq2", "decomfl.table4"),
        ),
        rate=0.1,
    ),
    Method(
        "MeZO",
        "zeroth order",
        lambda o: MeZO(o.lr, o.local_steps, o.perturbations),
        Card(
            "Zeroth-order SGD in place, at one trainer that holds all data.",
            "x -= eta g z, g = (f(x + eps z) - f(x - eps z)) / (2 eps)",
            "With central differences and Gaussian z: FedZO with one client; DeComFL with K = 1 on pooled data (laws).",
            "Not federated: the data must be in one place. As slow as FedZO where the effective rank is not low.",
        ),
        pooled=True,
    ),
]
