"""FedHM: Efficient Federated Learning for Heterogeneous Models via Low-rank Factorization, Yao et al. 2021.

arXiv:2111.14655. As FedMUD describes and uses it (its Sec. 1 and 5): one rank for all clients.
"""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Known
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.decomposition import Factors, LowRank


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # (d,)
    D: Known[Factors]
    weights: torch.Tensor  # (N,)


@dataclass(frozen=True)
class Down:
    D: Known[Factors]
    u: torch.Tensor  # U, V of the truncated model, (q,)


@dataclass(frozen=True)
class Up:
    u: torch.Tensor  # U_i, V_i, (S, q)


@dataclass(frozen=True)
class FedHM(Algorithm):
    """The server sends a truncated SVD of the model, clients train its factors, the server averages their products.

    What the truncation cuts off is lost: the clients' model is not the server's. Where a layer is zero, zero factors
    would never move, so one of the two is drawn, as LoRA's. The original's clients may have ranks of their own; here,
    as in FedMUD, all have one. A public FedHM code keeps a convolution's axes together: `LowRank(..., kernel=k)`.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: E, the local steps of a round.
        decomposition: which layers are truncated and to what rank, as the factors' share of the entries. The singular
            values go to both factors alike: U S^(1/2), V S^(1/2).
        decay: lambda of the Frobenius decay (lambda / 2) ||U V^T||^2 of every layer; on layers that stay whole it is
            weight decay. FedMUD names none.
        weighted: False averages the participants alike; True by the problem's client weights p_i.
    """

    lr: float = by_problem()
    local_steps: int = 5
    decomposition: LowRank = LowRank(1 / 8, layers="matrices")
    decay: float = 0.0
    weighted: bool = False
    name = "FedHM"
    own_steps = True
    pace = 0.1

    def __post_init__(self) -> None:
        if self.decomposition.form != "product" or self.decomposition.random:
            checks.reject("decomposition", self.decomposition, "a product that starts at zero", "pass LowRank(1/32)")
        checks.number("decay", self.decay, 0.0)

    @property
    def gradient_only(self) -> bool:
        return not self.decay

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self.decomposition.draw(problem.layout, key.fold("D"), problem.dtype, problem.device)
        return State(Server(x, Known(D), problem.weights.to(x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.D, server.D.value.nearest(server.x))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        D, u = down.D.value, down.u.expand(len(clients), -1)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            w = D.update(u)  # W = U V^T
            g = problem.grads(w, xi[k])
            u = u.sub(D.pullback(u, g.add(w, alpha=self.decay) if self.decay else g), alpha=self.lr)
            yield u
        return Up(u), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        x = p @ down.D.value.update(up.u)  # the mean of the products
        return Server(x, server.D, server.weights), None


METHODS = [
    Method(
        "FedHM",
        "low rank",
        lambda o: FedHM(o.lr, o.local_steps, LowRank(o.ratio, 1.0, layers="matrices")),
        Card(
            "The server sends a truncated SVD of the model and averages the trained products.",
            "(U, V) = SVD_r(x); (U, V) -= eta grad; x = mean(U_i V_i^T)",
            "The cut is the least possible (Eckart-Young); at full rank clients start at x (laws). In FedMUD's tables:",
            "What is cut off is lost in every round: clients never see more than rank r.",
            ("mud.text.fedhm_fedlmt",),
        ),
        command=lambda o: FedHM(o.lr, o.local_steps, LowRank(o.ratio, layers="matrices")),
        needs="matrices",
    ),
]
