"""SCALLION and SCAFCOM: Huang, Li, Li 2023, arXiv:2308.08165v2, "Stochastic Controlled Averaging for Federated
Learning with Communication Compression". The lines are read from public code for Flower,
Dawitkiros/SA-PEF at 91fa16c, which lacks the K eta of the server and the d/k of Rand-k.
"""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import Sampled, Sparse, count_kept, largest


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    c: torch.Tensor  # (d,)
    n: int  # N


@dataclass(frozen=True)
class Own:
    c: torch.Tensor  # c_i, (N, d)
    v: torch.Tensor  # v_i, (N, d); (N, 0) without momentum


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    c: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Scallion(Algorithm):
    """SCAFFOLD whose clients send one compressed vector, the change of c_i.

    A client's mean gradient is G_i = (x - y_i) / (K eta) + c_i - c. SCALLION sends C(alpha (G_i - c_i)). SCAFCOM sends
    C(v_i - c_i), where v_i is the running mean of its G_i.

    Fields:
        lr: eta_l; None: `pace` times the problem's `rate`.
        local_steps: K.
        ratio: entries that cross, of d.
        compressor: C. "rand-k" is unbiased: random entries, times d/k. "top-k" is biased: the largest ones.
        alpha: of SCALLION; None: `ratio`, about 1 / (1 + omega) of "rand-k".
        momentum: beta of SCAFCOM, the weight of the new G_i in v_i; None is SCALLION.
        server_lr: eta_g.
    """

    lr: float = by_problem()
    local_steps: int = 5
    ratio: float = 1 / 32
    compressor: str = "rand-k"
    alpha: float | None = None
    momentum: float | None = None
    server_lr: float = 1.0
    name = "SCALLION"
    pace = 0.1

    def __post_init__(self) -> None:
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        checks.choice("compressor", self.compressor, ("rand-k", "top-k"))
        for name in ("alpha", "momentum"):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), 0.0, 1.0, open_low=True)

    @property
    def gradient_only(self) -> bool:
        return False

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        c, v = (x.new_zeros(problem.kept, 0 if part is None else problem.d) for part in (1.0, self.momentum))
        return State(Server(x, torch.zeros_like(x), problem.n), Own(c, v))

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x, server.c)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand_as(own.c)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]) + (down.c - own.c), alpha=self.lr)  # y - eta_l (g_i + c - c_i)
            yield y
        G, v = (down.x - y) / (self.local_steps * self.lr) - down.c + own.c, own.v
        if self.momentum is None:
            alpha = self.ratio if self.alpha is None else self.alpha
            delta = alpha * (G - own.c)  # delta_i = alpha ((x - y_i) / (eta_l K) - c)
        else:
            v = v + self.momentum * (G - v)  # v_i <- (1 - beta) v_i + beta G_i
            delta = v - own.c
        up = self._compress(delta, clients, key)
        return up, Own(own.c + up.expand(problem.d), v)  # c_i <- c_i + C(delta_i)

    def server(
        self, server: Server, down: Down, up: Sparse | Sampled, clients: torch.Tensor, key: Key
    ) -> tuple[Server, None]:
        delta = up.expand(len(server.x)).mean(0)
        x = server.x - self.server_lr * self.lr * self.local_steps * (delta + server.c)
        return Server(x, server.c + len(clients) / server.n * delta, server.n), None  # c = mean_i c_i

    def _compress(self, delta: torch.Tensor, clients: torch.Tensor, key: Key) -> Sparse | Sampled:
        d = delta.shape[-1]
        if self.compressor == "top-k":
            return Sparse.of(delta, largest(delta.abs(), self.ratio, [d]))
        k = count_kept(self.ratio, d)
        return Sampled.of(d / k * delta, k, [key.fold("positions", int(i)) for i in clients])


METHODS = [
    Method(
        "SCALLION",
        "compressed",
        lambda o: Scallion(o.lr, o.local_steps, o.ratio),
        Card(
            "SCAFFOLD with one compressed vector up: the change of a client's control.",
            "delta_i = Rand-k(alpha ((x - y_i) / (K eta) - c)); c_i += delta_i; x -= K eta (mean(delta_i) + c)",
            "k = d and alpha = 1 are SCAFFOLD; its error falls to 0 with the controls (laws).",
            "alpha must stay below 2k/d (law), and c follows the gradient that slowly.",
        ),
        rate=0.3,
    ),
    Method(
        "SCAFCOM",
        "compressed",
        lambda o: Scallion(o.lr, o.local_steps, o.ratio, "top-k", momentum=0.2),
        Card(
            "SCALLION for biased compressors: a client's gradients are averaged over its rounds first.",
            "v_i += beta ((x - y_i) / (K eta) + c_i - c - v_i); delta_i = Top-k(v_i - c_i); c_i += delta_i; "
            "x -= K eta (mean(delta_i) + c)",
            "k = d and beta = 1 are SCAFFOLD (law). Original: nonconvex rates for any heterogeneity.",
            "Two vectors of state per client; c goes down whole.",
        ),
        rate=0.3,
    ),
]
