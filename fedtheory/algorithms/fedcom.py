"""FedCOM, FedCOMGATE: Haddadpour et al. 2021, "Federated Learning with Compression: Unified Analysis and Sharp
Guarantees", arXiv:2007.01154.
"""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Down, Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import LEVELS, Quantized, groups, uniforms


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    layout: Known[Layout]


@dataclass(frozen=True)
class Own:
    delta: torch.Tensor  # delta_i: what a local gradient is corrected by, (N, d)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


@dataclass(frozen=True)
class Reply:
    change: torch.Tensor  # the mean of the quantized changes, (d,)


@dataclass(frozen=True)
class FedCom(Algorithm):
    """FedAvg with quantized uploads; with `gate`, local gradients are corrected by what the others uploaded.

    The paper's Q is any unbiased compressor; DeComFL's baseline is "compressing each element ... to 8 bits". The paper
    sends Q((x - y)/eta) and steps by eta gamma times the mean; ours sends Q(y - x): Q is homogeneous. The authors' code
    rounds to the nearest of 256 levels between each tensor's least and largest entry. It quantizes the mean on its way
    down as well, and has a client's own unquantized change in delta_i.

    Fields:
        lr: eta, local step size; None: `pace` times the problem's `rate`.
        local_steps: tau.
        bits: 8 or 16 for an entry; None: unquantized. Then this is FedAvg, and with `gate` FedGATE, which is SCAFFOLD
            (option II, delta_i = c_i - c) where all clients take part.
        rounding: "stochastic" is unbiased, as the paper assumes; "nearest" is not. DeComFL does not say which.
        scale: the largest magnitude of the "model", or of each "layer".
        gate: FedCOMGATE. Only participants change their delta_i. The mean of their uploads comes back to them in
            numbers of full precision.
        server_lr: gamma.
    """

    lr: float = by_problem()
    local_steps: int = 5
    bits: int | None = 8
    rounding: str = "stochastic"
    scale: str = "model"
    gate: bool = False
    server_lr: float = 1.0
    name = "FedCom"

    def __post_init__(self) -> None:
        checks.choice("bits", self.bits, (*LEVELS, None))
        checks.choice("rounding", self.rounding, ("stochastic", "nearest"))
        checks.choice("scale", self.scale, ("model", "layer"))

    @property
    def gradient_only(self) -> bool:
        return not self.gate

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        own = Own(x.new_zeros(problem.kept, problem.d)) if self.gate else None
        return State(Server(x, Known(problem.layout)), own)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own | None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            g = problem.grads(y, xi[k])
            y = y.sub(g if own is None else g - own.delta, alpha=self.lr)  # x <- x - eta (g - delta_j)
            yield y
        up = self._quantize(y - down.x, clients, problem.layout, key)  # Delta_{j,q} = Q((x - x_j)/eta)
        if own is None:
            return up, None
        return up, Own(own.delta - self._expand(up, problem.layout) / (self.lr * self.local_steps))

    def server(
        self, server: Server, down: Down, up: Up | Quantized, clients: torch.Tensor, key: Key
    ) -> tuple[Server, Reply | None]:
        change = self._expand(up, server.layout.value).mean(0)  # Delta_q = (1/m) sum_j Delta_{j,q}
        x = server.x + self.server_lr * change  # x <- x - eta gamma Delta_q
        return Server(x, server.layout), Reply(change) if self.gate else None

    def close(self, own: Own | None, clients: torch.Tensor, down: Down, reply: Reply | None) -> Own | None:
        if own is None or reply is None:
            return own
        back = (reply.change / (self.lr * self.local_steps)).expand(len(clients), -1)
        return Own(own.delta.index_add(0, clients, back))  # delta_j <- delta_j + (Delta_{j,q} - Delta_q) / tau

    def as_sent(self, own: Own | None, down: Down, up: Up, sent: Up) -> Own | None:
        return own and Own(own.delta - (sent.dy - up.dy) / (self.lr * self.local_steps))

    def _quantize(self, p: torch.Tensor, clients: torch.Tensor, layout: Layout, key: Key) -> Up | Quantized:
        if self.bits is None:
            return Up(p)
        u = 0.5
        if self.rounding == "stochastic":
            u = uniforms([key.fold("u", int(i)).generator() for i in clients], p)
        return Quantized.of(p, groups(layout, self.scale), self.bits, u)

    def _expand(self, up: Up | Quantized, layout: Layout) -> torch.Tensor:
        return up.dy if isinstance(up, Up) else up.expand(groups(layout, self.scale))


METHODS = [
    Method(
        "FedCom",
        "compressed",
        lambda o: FedCom(o.lr, o.local_steps, bits=8),
        Card(
            "Uploads are rounded at random to 8 bits.",
            "y -= eta g_i(y); x += mean(Q(y_i - x))",
            "Q is unbiased; without it FedAvg, and with `gate` SCAFFOLD (laws).",
            "A fourth of FedAvg's upload at best; FedAvg's drift (without `gate`).",
        ),
    ),
]
