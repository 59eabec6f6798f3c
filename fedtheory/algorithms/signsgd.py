"""SignSGD with error feedback: Karimireddy et al. 2019, arXiv:1901.09847, Algorithm 1, on clients' changes."""

from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, later, shares
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Down, Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.signs import Signs


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    layout: Known[Layout]
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Own:
    e: torch.Tensor  # e_i: what was not sent yet, (N, d)


@dataclass(frozen=True)
class SignSGD(Algorithm):
    """Local SGD steps; of their change, one bit per entry crosses, and what a bit cannot say is added next time.

    The paper's step -gamma g_t becomes a client's change over K local steps; N workers are averaged.

    Fields:
        lr: local step size; with K = 1 the paper's gamma. None: `pace` times the problem's `rate`.
        local_steps: K.
        error_feedback: False forgets the error, e_i = 0.
        scale: the scale ||p||_1 / d is taken over the whole "model", as printed, or "layer" by layer.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    error_feedback: bool = True
    scale: str = "model"
    weighted: bool = later(False)
    name = "SignSGD"

    def __post_init__(self) -> None:
        checks.choice("scale", self.scale, ("model", "layer"))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(
            Server(x, Known(problem.layout), shares(problem, self.weighted, x)),
            Own(x.new_zeros(problem.kept, problem.d)) if self.error_feedback else None,
        )

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own | None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        sizes = self._groups(problem.layout)
        p = y - down.x if own is None else y - down.x + own.e  # p_t = -gamma g_t + e_t
        up = Signs.of(p, sizes)  # Delta_t = (||p_t||_1 / d) sign(p_t)
        return up, None if own is None else Own(p - up.expand(sizes))  # e_{t+1} = p_t - Delta_t

    def server(self, server: Server, down: Down, up: Signs, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        change = average(up.expand(self._groups(server.layout.value)), server.p, clients)
        return replace(server, x=server.x + change), None  # x_{t+1} = x_t + Delta_t

    def _groups(self, layout: Layout) -> list[int]:
        """Entries that share a scale."""
        return [layer.rows * layer.cols for layer in layout.layers] if self.scale == "layer" else [layout.size]


METHODS = [
    Method(
        "SignSGD",
        "compressed",
        lambda o: SignSGD(o.lr, o.local_steps),
        Card(
            "One bit per entry crosses; what a bit cannot say is added next time.",
            "p = y_i - x + e_i; sent = sign(p) mean abs p; e_i = p - sent; x += mean(sent)",
            "What is sent and what is kept sum to what was to be sent (law). Original: SGD's rate for one worker.",
            "Without error feedback it need not converge; the model goes down whole.",
        ),
    ),
]
