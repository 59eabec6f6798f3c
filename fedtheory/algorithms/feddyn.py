"""FedDyn: Acar et al. 2021, "Federated Learning Based on Dynamic Regularization", arXiv:2111.04263v2, Algorithm 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedtheory.algorithms.fedprox import pulled
from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Down
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # theta^t, (d,)
    h: torch.Tensor  # h^t, the mean of all N duals, (d,)
    n: int  # m


@dataclass(frozen=True)
class Own:
    dual: torch.Tensor  # grad L_k(theta_k^t), (N, d)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # theta_k^t - theta^{t-1}, (S, d)


@dataclass(frozen=True)
class FedDyn(Algorithm):
    """Each client minimises L_k(theta) - <dual_k, theta> + (alpha/2) ||theta - theta^{t-1}||^2.

    At an exact minimiser the new dual is the client's gradient there, so a fixed point has consensus and a zero mean of
    the gradients. The paper minimises exactly; here it is K gradient steps from theta^{t-1}, as in the authors' code,
    whose fixed points are the same. L is the plain mean of the clients' losses, as in the paper. The authors' code
    divides alpha by a client's share of the data, and clips the norm of the local gradient with its linear terms. What
    is evaluated is theta^t, not the mean of the clients' models.

    Fields:
        lr: local step size; None: `pace` times the problem's `rate`.
        local_steps: K.
        alpha: weight of the quadratic term.
    """

    lr: float = by_problem()
    local_steps: int = 5
    alpha: float = 0.5
    name = "FedDyn"
    averaged = True
    own_steps = True

    def __post_init__(self) -> None:
        checks.number("alpha", self.alpha, 0.0, open_low=True)

    @property
    def gradient_only(self) -> bool:
        return False

    def reach(self, gradients: Sequence[float]) -> float:
        return pulled(gradients, self.lr * self.alpha)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        return State(Server(x, torch.zeros_like(x), problem.n), Own(x.new_zeros(problem.kept, problem.d)))

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x)

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y = down.x.expand_as(own.dual)
        for k in range(self.local_steps):  # theta_k^t = argmin
            g = problem.grads(y, xi[k]) - own.dual + self.alpha * (y - down.x)
            y = y.sub(g, alpha=self.lr)
            yield y
        dy = y - down.x
        return Up(dy), Own(own.dual - self.alpha * dy)  # grad L_k(theta_k^t) = grad L_k(theta_k^{t-1}) - alpha dy

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        mean = up.dy.mean(0)
        h = server.h - self.alpha * (len(clients) / server.n) * mean  # h^t = h^{t-1} - (alpha/m) sum_k dy_k
        return Server(server.x + mean - h / self.alpha, h, server.n), None  # theta^t = mean_k theta_k^t - h^t / alpha

    def as_sent(self, own: Own, down: Down, up: Up, sent: Up) -> Own:
        return Own(own.dual - self.alpha * (sent.dy - up.dy))


METHODS = [
    Method(
        "FedDyn",
        "full",
        lambda o: FedDyn(o.lr, o.local_steps, alpha=0.5),
        Card(
            "A client's linear term is changed until all clients' minimisers agree.",
            "y -= eta (g_i(y) - dual_i + alpha (y - x)); dual_i -= alpha (y - x); "
            "x = mean(y_i) - sum_all(dual_i) / (N alpha)",
            "A fixed point is stationary for F (law). Original: rates for exact local minimisers.",
            "Duals of absent clients grow old; few local steps are far from the minimiser that it assumes.",
        ),
    ),
]
