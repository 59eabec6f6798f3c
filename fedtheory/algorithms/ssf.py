"""SSF: Subspace Optimization for Efficient Federated Learning under Heterogeneous Data, arXiv:2604.25467v1, Alg. 1.

The paper prints no line numbers: its lines are counted here; 15 and 16 are one line there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.message import Known, Replay, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.subspace import Gaussian, Projection, Spherical, fifth

Projector = Seed[Basis] | Known[Basis]


@dataclass(frozen=True)
class Step:
    """What turns x^{t-1} into x^t at a client that holds x^{t-1}: the seed of P_{t-1} and the new coordinates."""

    P: Projector
    x_proj: torch.Tensor  # (r,)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    c: torch.Tensor  # (d,)
    P: Projector  # P_t
    last: Step
    t: int


@dataclass(frozen=True)
class Own:
    c: torch.Tensor  # c_i, full-dimensional, (N, d)


@dataclass(frozen=True)
class Down:
    P: Projector
    x: Replay[torch.Tensor]  # (d,)
    c_proj: torch.Tensor  # (r,)


@dataclass(frozen=True)
class Up:
    y_proj: torch.Tensor  # projected endpoint, (S, r)
    c_proj: torch.Tensor  # P_t c_i^{t+1}, (S, r)


@dataclass(frozen=True)
class SSF(Algorithm):
    """SCAFFOLD in a random subspace per round, with full-dimensional control variates that are refreshed only there.

    What the paper leaves open, and what else could be meant, is in `readings.ssf`.

    Fields:
        lr: local step size eta_l; None: `pace` times the problem's `rate`.
        local_steps: K.
        projection: distribution of P_t with P_t P_t^T = I_r. `Spherical(r, "orthonormal")` is Sec. 3.6's QR; None:
            that, with a fifth of each layer's rows, as Sec. 5's r = 20 of 100.
        server_lr: eta_g.

    The sums of lines 14 and 16 go over the S participants, instead of all N. With S < N such a c has FedAvg's sampling
    noise (`ssf.partial_control`), and `SSFReading(server_control="all")` has none. The full x^t crosses once:
    afterwards a client is sent the steps that it missed, so that a payload is r-dimensional (Sec. 3.6, "projected
    communication only").

    Raises ValueError for a projection that is not orthonormal.
    """

    lr: float = by_problem()
    local_steps: int = 5
    projection: Projection = by_problem()
    server_lr: float = 1.0
    name = "SSF"
    averaged = True
    own_steps = True

    def __post_init__(self) -> None:
        if self.projection is not None and self.projection.scale != "orthonormal":
            fix = " or ".join(f"{kind}({self.projection.rank}, 'orthonormal')" for kind in ("Spherical", "Coordinate"))
            checks.reject("projection.scale", self.projection.scale, "'orthonormal' (P P^T = I_r)", f"pass {fix}")
        if isinstance(self.projection, Gaussian):
            checks.reject(
                "projection", self.projection, "orthonormal rows, P P^T = I_r", "use Spherical(r, 'orthonormal')"
            )

    @classmethod
    def haar(cls, lr: float, local_steps: int, r: int | tuple[int, ...], **options: Any) -> Self:
        """SSF with the paper's projector: uniform among r orthonormal rows."""
        return cls(lr, local_steps, Spherical(r, "orthonormal"), **options)

    def suited(self, problem: Problem) -> dict[str, Any]:
        return super().suited(problem) | {"projection": Spherical(fifth(problem.layout), "orthonormal")}

    @property
    def gradient_only(self) -> bool:
        return False

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        P = self.projection.seed(problem.layout, key.fold("P"), problem.dtype, problem.device)  # 1
        step = Step(P, P.value.project(x))
        return State(Server(x, torch.zeros_like(x), P, step, 0), Own(x.new_zeros(problem.kept, problem.d)))

    def broadcast(self, server: Server, key: Key) -> Down:
        step = None if server.t == 0 else server.last
        x = Replay(server.x, step, held=server.last.P)  # a client that was there then has that seed
        return Down(server.P, x, server.P.value.project(server.c))  # 3

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        P, x, c_proj = down.P.value, down.x.value, down.c_proj
        x_proj = P.project(x)  # 3
        x_res = x - P.lift(x_proj)
        ci_proj = P.project(own.c)  # 5
        y_proj = x_proj.expand_as(ci_proj)  # 6
        correction, total = c_proj - ci_proj, torch.zeros_like(ci_proj)
        gradient = self.gradient(problem, P, x_res, problem.draw(clients, self.local_steps, key.fold("xi")))
        for k in range(self.local_steps):  # 7
            g_proj = gradient(y_proj, k)  # 8-9
            y_proj = y_proj.sub(g_proj + correction, alpha=self.lr)  # 10: y - eta_l (P g - P c_i + P c)
            total += g_proj
            yield y_proj
        mean = total / self.local_steps
        c = own.c + P.lift(mean - ci_proj)  # 12: (I - P^T P) c_i + (1/K) P^T P sum_k g_i
        return Up(y_proj, self.control_sent(mean, ci_proj)), Own(c)

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        P = down.P.value
        x_proj = P.project(server.x)  # 3
        x_res = server.x - P.lift(x_proj)
        x_proj = x_proj - self.server_lr * (x_proj - up.y_proj).mean(0)  # 14
        x = P.lift(x_proj) + x_res  # 15
        c = server.c + P.lift(self.change(server, down, up))  # 16: P^T (P c + change) + c_res, c_res = (I - P^T P) c
        P_next = self.projection.seed(P.layout, key.fold("P"), x.dtype, x.device)  # 17
        return replace(server, x=x, c=c, P=P_next, last=Step(down.P, x_proj), t=server.t + 1), None

    def as_sent(self, own: Own, down: Down, up: Up, sent: Up) -> Own:
        return Own(own.c + down.P.value.lift(sent.c_proj - up.c_proj))

    # The named steps: `readings.ssf` puts another in the place of each.

    def gradient(self, problem: Problem, P: Basis, x_res: torch.Tensor, xi: Any) -> Callable[..., torch.Tensor]:
        """(y_proj, k) -> P_t grad f_i(P_t^T y_proj + x_res; xi_i^k)."""

        def at(y_proj: torch.Tensor, k: int) -> torch.Tensor:
            y = P.lift(y_proj) + x_res  # 8
            return P.project(problem.grads(y, xi[k]))  # 9

        return at

    def control_sent(self, mean: torch.Tensor, ci_proj: torch.Tensor) -> torch.Tensor:
        """12: what a client sends of its new control, P_t c_i^{t+1} = (1/K) sum_k P_t g_i^k."""
        return mean

    def change(self, server: Server, down: Down, up: Up) -> torch.Tensor:
        """16, (6): P_t (c^{t+1} - c^t)."""
        return up.c_proj.mean(0) - down.c_proj


METHODS = [
    Method(
        "SSF",
        "subspace",
        lambda o: SSF(o.lr, o.local_steps, Spherical(o.ranks, "orthonormal")),
        Card(
            "SCAFFOLD in a random subspace per round; full control variates, refreshed only there.",
            "y_P -= eta (P g_i - P c_i + P c); c_i += P^T (mean of P g_i - P c_i); x += P^T mean(y_P - x_P)",
            "r = d is SCAFFOLD, and x* is a fixed point in any subspace (laws). Its Theorem 1 and Corollary 1:",
            "d numbers of state per client; the bounds carry a factor d/r. With few participants the mean of their "
            "fresh controls, (6), has all of FedAvg's sampling noise (`ssf.partial_control`); the mean of all stored "
            "ones, `server_control` in `SSFReading`, has none, for the same bytes.",
            ("ssf.theorem1", "ssf.cor1"),
        ),
        command=lambda o: SSF.haar(o.lr, o.local_steps, o.rank),
    ),
]
