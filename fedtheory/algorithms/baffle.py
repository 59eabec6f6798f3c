"""BAFFLE: A Baseline of Backpropagation-Free Federated Learning, Feng et al. 2023, arXiv:2301.12195v3."""

from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, Known, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.directions import Direction, bearable, slopes, walk


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    weights: torch.Tensor  # (N,)
    layout: Known[Layout]


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    z: Seed[list[Direction]] | Known[list[Direction]]  # delta_p = sigma z_p


@dataclass(frozen=True)
class Up:
    g: torch.Tensor  # Delta L(x, delta_p) / (2 sigma): the slope along z_p, (S, P)


@dataclass(frozen=True)
class BAFFLE(Algorithm):
    """Clients only evaluate: the model goes down, P loss differences come up, and the server makes the step.

    By Stein's identity delta Delta L / (2 sigma^2) has the gradient of the smoothed loss as its mean. The sum over
    clients is all that the server needs, so secure aggregation applies; here the differences cross as they are. A round
    is one step, and what crosses is divided by 2 sigma already. Hardswish and an average of the models, with which the
    paper trains networks, are no part of the method, nor is what the public code adds: Adam, and a factor on the whole
    gradient that makes its largest entry 0.3 where it is larger. That code's default is forward differences.

    Fields:
        lr: eta, at the server; None: `pace` times the problem's `rate`, less by the directions' variance.
        perturbations: P (the paper's K).
        smoothing: sigma, with delta_p ~ N(0, sigma^2 I).
        scalar: "central", L(x + delta) - L(x - delta), or "forward", L(x + delta) - L(x), over sigma^2.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    perturbations: int = 10
    smoothing: float = 1e-3
    scalar: str = "central"
    weighted: bool = False
    name = "BAFFLE"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("smoothing", self.smoothing, 0.0, open_low=True)
        checks.choice("scalar", self.scalar, ("forward", "central"))

    def suited(self, problem: Problem) -> dict[str, Any]:
        return {"lr": self.pace * problem.rate * bearable(self.perturbations, problem.d)}

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        weights = problem.weights.to(x.device, torch.promote_types(x.dtype, torch.float32))  # as slopes are
        return State(Server(x, weights, Known(problem.layout)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        x, layout, P = server.x, server.layout.value, self.perturbations
        make = lambda key: [Direction(key.fold(p), layout, "gaussian", x.dtype, x.device) for p in range(P)]
        return Down(x, Seed(key.fold("z"), make, Cost(P * len(x), P * x.nbytes)))

    def chunk(self, problem: Problem) -> int | None:
        """All clients at once: they share the perturbed models."""
        return None

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        (xi,) = problem.draw(clients, 1, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        yield y
        return Up(slopes(problem, y, down.z.value, self.smoothing, xi, central=self.scalar == "central")), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        g = p @ up.g
        x = server.x.clone()
        walk(x[None], down.z.value, -self.lr / self.perturbations * g[None])  # x <- x - eta (1/P) sum_p g_p z_p
        return Server(x, server.weights, server.layout), None


METHODS = [
    Method(
        "BAFFLE",
        "zeroth order",
        lambda o: BAFFLE(o.lr, o.perturbations),
        Card(
            "Clients only evaluate: model and seed down, P loss differences up.",
            "x -= eta / P sum_p mean_i(g_ip) z_p, central differences",
            "With the same differences and z it is DeComFL's first round, K = 1 (law).",
            "The model goes down whole, for a single step.",
        ),
        rate=0.1,
    ),
]
