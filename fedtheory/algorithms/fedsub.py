"""FedSub: An Efficient Subspace Algorithm for Federated Learning on Heterogeneous Data, Algorithm 1."""

from dataclasses import dataclass, replace

import torch

from fedtheory import checks
from fedtheory.algorithm import Algorithm, State
from fedtheory.key import Key
from fedtheory.message import Known, Renewed, Seed
from fedtheory.problem import Problem
from fedtheory.subspace import Basis, Projection

Projector = Seed[Basis] | Known[Basis]


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # x^k, (d,)
    P: Projector  # P^k
    k: int
    stored: torch.Tensor | None  # last B_i of every client, (N, r); kept for dual_mean="stored"


@dataclass(frozen=True)
class Own:
    dual: torch.Tensor  # Lambda_i, (N, r)
    sent: torch.Tensor  # B_i^{k,tau} (form "sums": U_i) of the last round a client took part in, (N, r)


@dataclass(frozen=True)
class Down:
    P: Renewed[Basis] | Known[Basis]
    x: torch.Tensor  # (d,)
    lr: float | None  # sent only where the rate is not constant


@dataclass(frozen=True)
class Up:
    B: torch.Tensor  # B_i^{k,tau} (form "sums": U_i), (S, r)


@dataclass(frozen=True)
class Reply:
    mean: torch.Tensor  # (1/n) sum_i B_i^{k,tau}, (r,)
    P_next: Projector | None  # P^{k+1}, None where P^k or the dual's coordinates are kept
    lr_ratio: float | None  # eta^{k+1} / eta^k, sent only where the dual is rescaled


@dataclass(frozen=True)
class FedSub(Algorithm):
    """Local gradient steps in a random subspace per round, corrected by dual variables that live in it.

    Where the paper leaves a point open (shared numbering with its list of open points), a field decides it.

    Fields:
        lr: eta, constant as in the paper unless `decay_every` is set.
        local_steps: tau.
        projection: distribution of P^k. Assumption 1 is `scale="isotropic"`. `Identity()` is "our-P^k=I".
        dual: False keeps Lambda_i = 0, and no reply crosses: with `Coordinate`, the paper's FedAvg-CD.
        gradient_factor: line 6's r/m in front of P^T grad f_i, i.e. (P^T P)^{-1} (1 for an orthonormal scale).
            False drops it, as FedSub's public code does (8, 15).
        refresh: rounds between projectors (5). Line 12 multiplies by (P^{k+1})^T P^k only where P changes: with
            P^{k+1} = P^k it would multiply the dual by m/r in every round.
        rotate: False leaves the dual's coordinates as they are when P changes (6).
        product_first: True forms (P^{k+1})^T P^k before applying it, as the public DNN code does (7).
        absent: what a client that was not sampled does with its dual when P changes (17; SSF, 14): "rotate" applies
            the same (P^{k+1})^T P^k when it is back, and is sent the seeds of all rounds it missed; "keep" leaves the
            coordinates: client lines are run by participants only, and the latest seed is enough.
        form: "printed" sends B_i and adds it to Lambda_i (lines 6-14). "sums" is the paper's own rewriting (13)-(19):
            the client sends U_i = -eta sum_t g_i, of the same size, and Lambda_i^{k+1} = (P^{k+1})^T P^k (U_i - mean
            U). Equal in exact arithmetic with S = n, where Lambda_i + B_i = U_i and sum_i Lambda_i = 0 (15). In
            floating point "printed" carries the rounding error of (15) from round to round, and (P^{k+1})^T P^k
            multiplies it, by about sqrt(m/r) for `Spherical` and more for `Gaussian`; "sums" makes it anew.
        dual_mean: the mean of line 10 that enters the dual when S < n (16, 17). "participants": over this round's
            uploads. "stored": over the last endpoint of every client, which the server keeps (SSF, Sec. 3.7: FedSub's
            "dual and endpoint states" take N r m); absent clients' endpoints are stale, in old coordinates. The model
            moves by the participants' mean either way. Equal with S = n.
        decay_every, decay_factor: every so many rounds the rate is multiplied by the factor (10). 0: constant.
        factored: True has the problem evaluate P^T grad f_i(x + P B) on the subspace, "without explicitly evaluating"
            the gradient (Sec. 7.3; 19). Equal in exact arithmetic; its cost is C_g(rd) where the problem supports it.
        rescale_dual: multiply Lambda by eta^{k+1}/eta^k when the rate changes, so that Lambda/(eta tau), which tracks
            gradients, does not (10). False leaves it in units of the old rate.

    All participants weigh the same, 1/S; the paper has S = n.
    """

    lr: float
    local_steps: int
    projection: Projection
    dual: bool = True
    gradient_factor: bool = True
    refresh: int = 1
    rotate: bool = True
    product_first: bool = False
    absent: str = "rotate"
    form: str = "printed"
    dual_mean: str = "participants"
    decay_every: int = 0
    decay_factor: float = 0.1
    rescale_dual: bool = True
    factored: bool = False
    name = "FedSub"

    def __post_init__(self) -> None:
        checks.rate("lr", self.lr)
        checks.whole("local_steps", self.local_steps, 1)
        checks.instance("projection", self.projection, Projection, "pass Coordinate(r), Spherical(r) or Gaussian(r)")
        checks.whole("refresh", self.refresh, 1)
        checks.choice("absent", self.absent, ("rotate", "keep"))
        checks.choice("form", self.form, ("printed", "sums"))
        checks.choice("dual_mean", self.dual_mean, ("participants", "stored"))
        checks.whole("decay_every", self.decay_every, 0)
        checks.number("decay_factor", self.decay_factor, 0.0, 1.0, open_low=True)
        for field in ("dual", "gradient_factor", "rotate", "product_first", "rescale_dual", "factored"):
            checks.instance(field, getattr(self, field), bool, "pass True or False")

    def rate(self, k: int) -> float:
        """eta in round k."""
        return self.lr * self.decay_factor ** (k // self.decay_every) if self.decay_every else self.lr

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        P = self.projection.seed(problem.layout, key.fold("P"), problem.dtype, problem.device)
        zeros = x.new_zeros(problem.n, self.projection.low(problem.layout).size)
        stored = zeros.clone() if self.dual_mean == "stored" else None
        return State(Server(x, P, 0, stored), Own(zeros, zeros.clone()))  # 1

    def at_rate(self, lr: float, own: Own) -> tuple["FedSub", Own]:
        """Lambda is eta tau times a mean of gradients (16); `rescale_dual` says whether it is carried over."""
        dual = lr / self.lr * own.dual if self.rescale_dual and lr != self.lr else own.dual
        return replace(self, lr=lr), Own(dual, own.sent)

    def broadcast(self, server: Server, key: Key) -> Down:
        P = server.P
        if isinstance(P, Seed):
            turned = self.dual and self.rotate  # participants of the last round have P^k from its reply
            P = Renewed(P, server.k, self.refresh, ahead=int(turned), every=turned and self.absent == "rotate")
        return Down(P, server.x, self.rate(server.k) if self.decay_every else None)  # 15

    def client(self, problem: Problem, clients: torch.Tensor, own: Own, down: Down, key: Key):
        P, tau = down.P.value, self.local_steps
        lr = self.lr if down.lr is None else down.lr
        r_m = 1 / self.projection.norm2(problem.layout, problem.dtype, problem.device) if self.gradient_factor else 1.0
        xi = problem.draw(clients, tau, key.fold("xi"))
        B = torch.zeros_like(own.dual)  # 4
        U, correction = B, own.dual / (lr * tau)
        factored = problem.restrict(P, down.x, xi) if self.factored else None
        for t in range(tau):  # 5
            g = P.project(problem.grads(down.x + P.lift(B), xi[t])) if factored is None else factored(B, t)
            g = r_m * g
            B = B - lr * (g + correction)  # 6
            if self.form == "sums":
                U = U - lr * g
            yield B
        sent = B if self.form == "printed" else U
        return Up(sent), Own(own.dual, sent)  # 8

    def server(
        self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key
    ) -> tuple[Server, Reply | None]:
        P, k = down.P.value, server.k + 1
        mean = up.B.mean(0)  # 10
        x = server.x + P.lift(mean)  # 14
        P_next = None
        if k % self.refresh == 0 and not isinstance(server.P, Known):
            P_next = self.projection.seed(P.layout, key.fold("P"), x.dtype, x.device)
        ratio = self.rate(k) / self.rate(k - 1) if self.rescale_dual and self.rate(k) != self.rate(k - 1) else None
        stored = server.stored
        if stored is not None:
            stored = stored.index_copy(0, clients, up.B)
            mean = stored.mean(0)
        reply = Reply(mean, P_next if self.rotate else None, ratio) if self.dual else None
        return Server(x, P_next or server.P, k, stored), reply

    def close(self, own: Own, clients: torch.Tensor, down: Down, reply: Reply | None) -> Own:
        if reply is None:
            return own
        change = own.sent[clients] - reply.mean
        if self.form == "printed":
            dual = own.dual.index_add(0, clients, change)  # 12: Lambda_i + B_i - mean B
        else:
            dual = own.dual.index_copy(0, clients, change)  # (16): eta sum_t (g_bar - g_i)
        if reply.P_next is not None:
            rotated = self._change(dual, down.P.value, reply.P_next.value)
            dual = rotated if self.absent == "rotate" else dual.index_copy(0, clients, rotated[clients])
        return Own(dual if reply.lr_ratio is None else reply.lr_ratio * dual, own.sent)

    def _change(self, dual: torch.Tensor, P: Basis, P_next: Basis) -> torch.Tensor:
        if self.product_first:
            layout = P.low
            parts = [P1.T @ P0 @ block for P1, P0, block in zip(P_next.matrices(), P.matrices(), layout.matrices(dual))]
            return layout.flatten(parts)
        return P_next.project(P.lift(dual))  # 12: (P^{k+1})^T (P^k (...))
