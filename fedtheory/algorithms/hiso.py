"""HiSo: "Converge Faster, Talk Less: Hessian-Informed Federated Zeroth-Order Optimization", 2025, arXiv:2506.02370.
Read from the authors' code.
"""

from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.algorithms.decomfl import DeComFL, Down, Model, Server, Step, Up
from fedtheory.core import checks
from fedtheory.core.algorithm import State
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.directions import Scaled, walk


@dataclass(frozen=True)
class HiSo(DeComFL):
    """DeComFL along directions z ~ N(0, H^-1), where H, a vector, is a running mean of squares of sum_p g_p z_p / P.

    All rebuild H from the scalars that cross; it is sent only beside a whole model. Within a round H stands still;
    after it the last of the K steps enters H.

    Fields:
        nu: weight of a new square in H; 0 is DeComFL. 0.05 is the authors' default (hessian_smooth = 0.95).

    Others: as `DeComFL`, without momentum.
    """

    nu: float = 0.05
    name = "HiSo"
    revision = 2  # 1 took all K steps into H

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("nu", self.nu, 0.0, 1.0)
        if self.momentum:
            checks.reject("momentum", self.momentum, "0: HiSo has none", "leave it out, or use DeComFL")

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, torch.ones_like(x), Known(problem.layout), 0), None)  # m is H here

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        model, xi, scalars = down.model.value, problem.draw(clients, self.local_steps, key.fold("xi")), []
        y = model.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            yield y
            z = self._scaled(problem.layout, down.seeds[k], model)
            scalars.append(self.measure(problem, y, z, xi[k]))  # (f(x + mu z) - f(x)) / mu
            if k + 1 < self.local_steps:
                y = y.clone()
                walk(y, z, -self.lr / len(z) * scalars[-1])
        return Up(torch.stack(scalars, 1)), None

    def rebuild(self, layout: Layout, model: Model, step: Step) -> None:
        H: Any = model.m
        change = torch.empty_like(model.x)
        for seeds, g in zip(step.seeds, step.g):
            z = self._scaled(layout, seeds, model)
            walk(change.zero_()[None], z, g[None] / len(z))
            model.x.sub_(change, alpha=self.lr)  # x <- x - (eta/P) sum_p g_p z_p
        H.mul_(1 - self.nu).add_(change.square(), alpha=self.nu)  # of the last step

    def _scaled(self, layout: Layout, seeds: torch.Tensor, model: Model) -> list[Any]:
        """z = H^(-1/2) u, u ~ N(0, I); H as it is now."""
        H: Any = model.m
        root = H.rsqrt()
        return [Scaled(one, root) for one in self.directions(layout, seeds, model.x)]


METHODS = [
    Method(
        "HiSo",
        "zeroth order",
        lambda o: HiSo(o.lr, o.local_steps, o.perturbations),
        Card(
            "DeComFL along directions that are longer where past updates were small.",
            "x -= eta / P sum_p mean_i(g_ip) z_p, z_p ~ N(0, H^-1); of the last step H = (1 - nu) H + "
            "nu (sum_p g_p z_p / P)^2",
            "nu = 0 is DeComFL; its step is H^-1 grad F in the mean (laws). "
            "Original: a rate free of d and L if H is near the Hessian.",
            "At x* H shrinks by 1 - nu a round (law): steps grow, and the error hovers.",
        ),
        rate=0.1,
    ),
]
