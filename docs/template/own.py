"""A method and a problem of one's own: notebook 11 explains every line. Copy this folder and change it."""

from dataclasses import dataclass

import torch

from fedtheory import Algorithm, Card, Constants, Layout, Method, Offer, Problem, State


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # the model, (d,)
    v: torch.Tensor  # its velocity, (d,)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


@dataclass(frozen=True)
class ServerMomentum(Algorithm):
    lr: float
    local_steps: int
    momentum: float = 0.9
    name = "ServerMomentum"

    def init(self, problem, x, key):
        return State(Server(x, torch.zeros_like(x)), None)

    def broadcast(self, server, key):
        return Down(server.x)

    def client(self, problem, clients, own, down, key):
        xi, y = problem.draw(clients, self.local_steps, key.fold("xi")), down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        return Up(y - down.x), None

    def server(self, server, down, up, clients, key):
        v = self.momentum * server.v + up.dy.mean(0)
        return Server(server.x + v, v), None


class LogCosh(Problem):
    def __init__(self, a):
        self.a, self.n, self.layout = a, len(a), Layout.single(a.shape[1])
        self.dtype, self.device = a.dtype, a.device
        self.weights = torch.full((self.n,), 1 / self.n, dtype=torch.float64)
        x = a.detach().mean(0)
        for _ in range(300):
            x = x - torch.tanh(x - a.detach()).mean(0)
        self.constants = Constants(L=1.0, x_star=x)

    def draw(self, clients, steps, key):
        return [clients] * steps

    def full(self, clients):
        return clients

    def grads(self, y, xi):
        return torch.tanh(y - self.a[xi])

    def losses(self, y, xi):
        return torch.cosh(y - self.a[xi]).log().sum(-1)


def offered(key, device, options):
    """Eight clients in five dimensions, their centres drawn from the key."""
    return LogCosh(2 * torch.randn(8, 5, generator=key.generator(), dtype=torch.float64).to(device))


CARD = Card(
    "FedAvg whose server goes on with a share of its last step.",
    "v = beta v + mean(y_i - x); x += v",
    "beta = 0 is FedAvg, bit for bit. It rests where FedAvg rests.",
    "Does nothing against drift; beta near 1 oscillates.",
)
METHOD = Method("ServerMomentum", "full", lambda o: ServerMomentum(o.lr, o.local_steps), CARD)
PROBLEM = Offer("logcosh", LogCosh, offered, rates=(1.0, 0.3, 0.1), rounds=100, level=0.1)
