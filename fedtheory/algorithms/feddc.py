"""FedDC: Gao et al. 2022, "FedDC: Federated Learning with Non-IID Data via Local Drift Decoupling and Correction",
arXiv:2203.11751v1; steps as in its text and in the authors' public code, which differ in one of them.
"""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # w, (d,)
    c: torch.Tensor  # mean local gradient, -g / (K eta), (d,)
    h: torch.Tensor  # mean of all N drifts, (d,)
    n: int  # N


@dataclass(frozen=True)
class Own:
    c: torch.Tensor  # c_i = -g_i / (K eta), (N, d)
    h: torch.Tensor  # local drift h_i, (N, d)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    c: torch.Tensor | None  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # theta_i - w, (S, d)


@dataclass(frozen=True)
class FedDC(Algorithm):
    """Each client minimises F_i(theta) + (alpha/2) ||theta + h_i - w||^2 + <theta, g_i - g> / (K eta).

    The drift h_i adds up the client's changes and is added back where models are averaged; with -alpha h_i for its dual
    this is FedDyn. To it comes SCAFFOLD's correction c - c_i, written with g_i = -K eta c_i.

    Only theta_i - w crosses upwards: the server makes the means of h_i and c_i from it, as they change by it alone.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: K.
        alpha: weight of the penalty; 0 leaves the drift out altogether (h_i stays 0).
        correction: the new g_i. "scaffold": g_i - g + theta_i - w, SCAFFOLD's option II, and g the mean of all N, as in
            the authors' code. "update": theta_i - w, the last local update, and g its mean over the participants of
            that round, as the text has it. "none": no correction.

    The printed sum of theta_i + h_i runs over all N clients. Where S < N take part, theta_i is averaged over them and
    h_i over all N, as in the authors' code. Clients count alike; that code divides alpha and the global g by a client's
    data share, and clips the norm of the local gradient with its linear terms.
    """

    lr: float = by_problem()
    local_steps: int = 5
    alpha: float = 0.5
    correction: str = "scaffold"
    name = "FedDC"
    averaged = True

    def __post_init__(self) -> None:
        checks.number("alpha", self.alpha, 0.0)
        checks.choice("correction", self.correction, ("scaffold", "update", "none"))

    @property
    def gradient_only(self) -> bool:
        return False

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        zeros = torch.zeros_like(x)
        none = zeros.repeat(problem.kept, 1)
        return State(Server(x, zeros, zeros, problem.n), Own(none, none.clone()))

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x, None if self.correction == "none" else server.c)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand_as(own.h)
        correction = torch.zeros_like(own.c) if down.c is None else down.c - own.c  # (g_i - g) / (K eta)
        for k in range(self.local_steps):
            penalty = self.alpha * (y - down.x + own.h)
            y = y.sub(problem.grads(y, xi[k]) + penalty + correction, alpha=self.lr)
            yield y
        dy = y - down.x
        c = own.c if down.c is None else self._gradient(dy)
        if self.correction == "scaffold":
            c = c - correction
        return Up(dy), Own(c, own.h + dy if self.alpha else own.h)  # h_i^+ = h_i + theta_i - w

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        mean, share = up.dy.mean(0), len(clients) / server.n
        c = server.c
        if down.c is not None:
            c = c + (share if self.correction == "scaffold" else 1.0) * (self._gradient(mean) - c)
        h = server.h + share * mean if self.alpha else server.h
        return Server(server.x + mean + h, c, h, server.n), None  # w^+ = mean of theta_i + mean of h_i^+

    def as_sent(self, own: Own, down: Down, up: Up, sent: Up) -> Own:
        more = sent.dy - up.dy
        c = own.c if down.c is None else own.c + self._gradient(more)
        return Own(c, own.h + more if self.alpha else own.h)

    def _gradient(self, dy: torch.Tensor) -> torch.Tensor:
        """The mean gradient of K steps that went from w to w + dy."""
        return dy / (-self.local_steps * self.lr)


METHODS = [
    Method(
        "FedDC",
        "full",
        lambda o: FedDC(o.lr, o.local_steps, alpha=0.5),
        Card(
            "A client's drift is added up, penalised, and added back where models are averaged.",
            "y -= eta (g_i(y) + alpha (y + h_i - x) + (g_i - g) / (K eta)); h_i += y - x; "
            "x = mean(y_i) + sum_all(h_i) / N",
            "Without its correction it is FedDyn (law).",
            "Two vectors of state per client; its text and its code differ in one step.",
        ),
    ),
]
