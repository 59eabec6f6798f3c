"""SSF: Subspace Optimization for Efficient Federated Learning under Heterogeneous Data, arXiv:2604.25467v1, Alg. 1."""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.message import Known, Replay, Seed
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.subspace import Gaussian, Projection, Spherical

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
    n: int  # N


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
    c_proj: torch.Tensor  # P_t (c_i^{t+1} - c_i^t) ("all") or P_t c_i^{t+1} ("participants"), (S, r)


@dataclass(frozen=True)
class SSF(Algorithm):
    """SCAFFOLD in a random subspace per round, with full-dimensional control variates that are refreshed only there.

    Fields:
        lr: local step size eta_l.
        local_steps: K.
        projection: distribution of P_t with P_t P_t^T = I_r. `Spherical(r, "orthonormal")` is Sec. 3.6's QR.
        server_lr: eta_g.
        refresh: rounds between projectors; 1 is the algorithm analysed (Sec. 3.6).
        server_control: how c is averaged when S < N (the paper's (6) sums over all N, its experiments sample S).
            "participants" (default): (6) with the S participants in place of N. "all": the mean of all stored c_i,
            kept up to date as in SCAFFOLD by c + (1/N) sum_S (c_i^+ - c_i).
        resend_model: True sends the full x^t each round; False (default) sends each client the steps it missed, so
            that a payload is r-dimensional from a client's second round on (Sec. 3.6, "projected communication only").
        factored: False forms lines 8 and 9 as printed and projects the full gradient. True has the problem evaluate
            P_t grad f_i on the subspace (`Problem.restrict`): equal in exact arithmetic, and where the problem
            supports it the cost of a local step does not depend on d (Sec. 3.7, "Computation").

    Raises ValueError for a projection that is not orthonormal.
    """

    lr: float
    local_steps: int
    projection: Projection
    server_lr: float = 1.0
    refresh: int = 1
    server_control: str = "participants"
    resend_model: bool = False
    factored: bool = False
    name = "SSF"

    def __post_init__(self) -> None:
        checks.rate("lr", self.lr)
        checks.count("local_steps", self.local_steps)
        if self.projection.scale != "orthonormal":
            checks.reject("projection.scale", self.projection.scale, "'orthonormal' (P P^T = I_r)", "set its scale")
        if isinstance(self.projection, Gaussian):
            checks.reject(
                "projection", self.projection, "orthonormal rows, P P^T = I_r", "use Spherical(r, 'orthonormal')"
            )
        checks.rate("server_lr", self.server_lr)
        checks.whole("refresh", self.refresh, 1)
        checks.choice("server_control", self.server_control, ("participants", "all"))

    @staticmethod
    def haar(lr: float, local_steps: int, r: int, **options) -> "SSF":
        """SSF with the paper's projector: uniform among r orthonormal rows."""
        return SSF(lr, local_steps, Spherical(r, "orthonormal"), **options)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        P = self.projection.seed(problem.layout, key.fold("P"), problem.dtype, problem.device)  # 1
        step = Step(P, P.value.project(x))
        own = Own(x.new_zeros(problem.n, problem.d))
        return State(Server(x, torch.zeros_like(x), P, step, 0, problem.n), own)

    def broadcast(self, server: Server, key: Key) -> Down:
        step = None if self.resend_model or server.t == 0 else server.last
        x = Replay(server.x, step, held=server.last.P)  # a client that was there then has that seed
        return Down(server.P, x, server.P.value.project(server.c))

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        P, x, c_proj = down.P.value, down.x.value, down.c_proj
        x_proj = P.project(x)  # 3
        x_res = x - P.lift(x_proj)
        ci_proj = P.project(own.c)  # 5
        y_proj = x_proj.expand_as(ci_proj)  # 6
        correction, total = c_proj - ci_proj, torch.zeros_like(ci_proj)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        factored = problem.restrict(P, x_res, xi) if self.factored else None
        for k in range(self.local_steps):  # 7
            if factored is None:
                y = P.lift(y_proj) + x_res  # 8
                g = problem.grads(y, xi[k])  # 9
                g_proj = P.project(g)
            else:
                g_proj = factored(y_proj, k)  # 8-9 without leaving the subspace
            y_proj = y_proj.sub(g_proj + correction, alpha=self.lr)  # 10: y - eta_l (P g - P c_i + P c)
            total += g_proj
            yield y_proj
        mean = total / self.local_steps
        c = own.c + P.lift(mean - ci_proj)  # 12: (I - P^T P) c_i + (1/K) P^T P sum_k g_i
        return Up(y_proj, mean - ci_proj if self.server_control == "all" else mean), Own(c)

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        P, t = down.P.value, server.t + 1
        x_proj = P.project(server.x)  # 3
        x_res = server.x - P.lift(x_proj)
        x_proj = x_proj - self.server_lr * (x_proj - up.y_proj).mean(0)  # 14
        x = P.lift(x_proj) + x_res  # 15
        mean = up.c_proj.mean(0)
        change = (len(clients) / server.n) * mean if self.server_control == "all" else mean - down.c_proj
        c = server.c + P.lift(change)  # 16: P^T (P c + change) + c_res, c_res = (I - P^T P) c
        P_next = down.P
        if t % self.refresh == 0:
            P_next = self.projection.seed(P.layout, key.fold("P"), x.dtype, x.device)  # 17
        return Server(x, c, P_next, Step(down.P, x_proj), t, server.n), None


METHODS = [
    Method(
        "SSF",
        "subspace",
        lambda o: SSF(o.lr, o.local_steps, Spherical(o.ranks, "orthonormal")),
        Card(
            "SCAFFOLD in a random subspace per round; full control variates, refreshed only there.",
            "y_P -= eta (P g_i - P c_i + P c); c_i += P^T (mean of P g_i - P c_i); x += P^T mean(y_P - x_P)",
            "r = d is SCAFFOLD, and x* is a fixed point in any subspace (laws). Its Theorem 1 and Corollary 1:",
            "d numbers of state per client; the bounds carry a factor d/r.",
            ("ssf.theorem1", "ssf.cor1"),
        ),
        command=lambda o: SSF.haar(o.lr, o.local_steps, o.rank),
    ),
]
