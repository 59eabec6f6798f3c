"""SCAFFOLD: Karimireddy et al. 2020, arXiv:1910.06378 (ICML version), Algorithm 1."""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, later, shares
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    c: torch.Tensor  # (d,)
    n: int  # N
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Own:
    c: torch.Tensor  # c_i, (N, d)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    c: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)
    c: torch.Tensor  # c_i^+ - c_i ("all") or c_i^+ ("participants"), (S, d)


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Local SGD steps corrected by control variates: c_i tracks the client's gradient, c the global one.

    Fields:
        lr: local step size eta_l; None: `pace` times the problem's `rate`.
        local_steps: K.
        server_lr: eta_g.
        option: "II" takes c_i^+ from the steps just made; "I" from the full local gradient at the server's model.
        server_control: how c is averaged when S < N. "all" (line 17): c + (1/N) sum_S (c_i^+ - c_i), the mean of all
            stored c_i. "participants": c = (1/S) sum_S c_i^+, which is SSF's (6) at r = d with S for N.
        weighted: False counts the clients alike, as printed. True counts them by the problem's client weights p_i, in
            the mean of y_i - x over the participants and in c = sum_i p_i c_i. Then F = sum_i p_i F_i is minimised.
    """

    lr: float = by_problem()
    local_steps: int = 5
    server_lr: float = 1.0
    option: str = "II"
    server_control: str = "all"
    weighted: bool = later(False)
    name = "SCAFFOLD"
    averaged = True
    own_steps = True

    def __post_init__(self) -> None:
        checks.choice("option", self.option, ("I", "II"))
        checks.choice("server_control", self.server_control, ("all", "participants"))

    @property
    def gradient_only(self) -> bool:
        return False

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(
            Server(x, torch.zeros_like(x), problem.n, shares(problem, self.weighted, x)),
            Own(x.new_zeros(problem.kept, problem.d)),
        )

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x, server.c)  # 5

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand_as(own.c)  # 7
        correction = down.c - own.c
        for k in range(self.local_steps):  # 8
            g = problem.grads(y, xi[k])  # 9
            y = y.sub(g + correction, alpha=self.lr)  # 10: y_i - eta_l (g_i(y_i) - c_i + c)
            yield y
        dy = y - down.x
        if self.option == "I":
            c = problem.grads(down.x.expand_as(own.c), problem.full(clients))  # 12 (i)
        else:
            c = dy / (-self.local_steps * self.lr) - correction  # 12 (ii): c_i - c + (x - y_i) / (K eta_l)
        return Up(dy, c - own.c if self.server_control == "all" else c), Own(c)  # 13-14

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        x = server.x + self.server_lr * average(up.dy, server.p, clients)  # 16-17
        mean = average(up.c, server.p, clients)
        share = len(clients) / server.n if server.p is None else server.p[clients].sum()
        c = server.c + share * mean if self.server_control == "all" else mean
        return Server(x, c, server.n, server.p), None

    def as_sent(self, own: Own, down: Down, up: Up, sent: Up) -> Own:
        return Own(own.c + (sent.c - up.c))


METHODS = [
    Method(
        "SCAFFOLD",
        "full",
        lambda o: Scaffold(o.lr, o.local_steps),
        Card(
            "Control variates take a client's drift out of its steps.",
            "y -= eta (g_i(y) - c_i + c); c_i += (x - y) / (K eta) - c",
            "x* with c_i = grad F_i(x*) is a fixed point; it is reached on quadratics whatever the clients (laws).",
            "Twice the traffic; c_i grows old at clients that are seldom sampled.",
        ),
    ),
]
