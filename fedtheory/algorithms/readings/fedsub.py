"""FedSub's open points: every field puts another step instead of a named one of the box."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms import fedsub
from fedtheory.algorithms.fedsub import FedSub, Own, Projector, Renewed, Up
from fedtheory.algorithms.readings import OpenPoint
from fedtheory.core import checks
from fedtheory.core.algorithm import State
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Known, Seed, cost
from fedtheory.core.problem import Problem


@dataclass(frozen=True)
class Server(fedsub.Server):
    stored: torch.Tensor | None  # last B_i of every client, (N, r); kept for dual_mean="stored"


@dataclass(frozen=True)
class Resent:
    """The dual of a client that was away, sent to it on its return: its own row, which a server that has all uploads
    makes, too. It is as large as one mean of B, and who was away has missed at least one of those.

    Fields:
        one: price of a dual.
        round: this round; before the first one all duals are zero.
    """

    one: Cost
    round: int

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge for all that were not there in the last round."""
        return self.one * sum(lag != 1 for lag in lags) if self.round else Cost()


@dataclass(frozen=True)
class Down(fedsub.Down):
    lr: float | None  # sent only where the rate is not constant
    dual: Resent | None  # sent only where the duals of absent clients go on


@dataclass(frozen=True)
class Reply(fedsub.Reply):
    lr_ratio: float | None  # eta^{k+1} / eta^k, sent only where the dual is rescaled


@dataclass(frozen=True)
class FedSubReading(FedSub):
    """FedSub as it could also be meant. With all defaults it is FedSub, bit for bit.

    Fields, with the numbers of the paper's open points:
        gradient_factor: line 6's r/m in front of P^T grad f_i (8, 9; SSF, 15). True: (P^T P)^{-1}, which is 1 for an
            orthonormal P. "r/m": r/m for an orthonormal P, too, as the public code for networks has it. False: none,
            as the public regression code has it.
        refresh: rounds between projectors (5). Line 12 multiplies by (P^{k+1})^T P^k only where P changes: with
            P^{k+1} = P^k it would multiply the dual by m/r in every round.
        rotate: False leaves the dual's coordinates as they are when P changes (6).
        product_first: True forms (P^{k+1})^T P^k before applying it, as the public DNN code does (7).
        absent: what a client that was not sampled does with its dual (17; SSF, 14). When P changes, "rotate" applies
            the same (P^{k+1})^T P^k when it is back, and is sent the seeds of all rounds it missed; "keep" leaves the
            coordinates: client lines are run by participants only, and the latest seed is enough. "step" runs all of
            line 12 for every client in every round, with the B_i that it sent last (zero before its first). The loop
            over i goes over all n, and B_i, computed at participants only, keeps its value. The stale B_i stays in the
            coordinates of its own round. "step turned" turns it with the dual into every new P. A returning client is
            then sent its dual.
        dual_mean: the mean of line 10 that enters the dual when S < n (17; SSF, 16). "participants": over this round's
            uploads. "stored": over the last endpoint of every client, which the server keeps (SSF, Sec. 3.7: FedSub's
            "dual and endpoint states" take N r m); absent clients' endpoints are stale, in old coordinates
            (turned by absent="step turned"). The model moves by the participants' mean either way. Equal with S = n.
        decay_every, decay_factor: every so many rounds the rate is multiplied by the factor (10). 0: constant.
        rescale_dual: multiply Lambda by eta^{k+1}/eta^k when the rate changes, so that Lambda/(eta tau), which tracks
            gradients, does not (10). False leaves it in units of the old rate.
        factored: True has the problem evaluate P^T grad f_i(x + P B) on the subspace, "without explicitly evaluating"
            the gradient (Sec. 7.3; 19). Equal in exact arithmetic; its cost is C_g(rd) where the problem supports it.
    """

    gradient_factor: bool | str = True
    refresh: int = 1
    rotate: bool = True
    product_first: bool = False
    absent: str = "rotate"
    dual_mean: str = "participants"
    averaged = False  # "stored" means read each upload
    decay_every: int = 0
    decay_factor: float = 0.1
    rescale_dual: bool = True
    factored: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.gradient_factor, bool) and self.gradient_factor != "r/m":
            checks.reject("gradient_factor", self.gradient_factor, "True, False or 'r/m'", "pass gradient_factor='r/m'")
        checks.whole("refresh", self.refresh, 1)
        checks.choice("absent", self.absent, ("rotate", "keep", "step", "step turned"))
        checks.choice("dual_mean", self.dual_mean, ("participants", "stored"))
        checks.whole("decay_every", self.decay_every, 0)
        checks.number("decay_factor", self.decay_factor, 0.0, 1.0, open_low=True)

    @property
    def steps(self) -> bool:
        """Whether line 12 is run for absent clients, too."""
        return self.absent in ("step", "step turned")

    @property
    def turns_endpoints(self) -> bool:
        """Whether last endpoints follow the projector."""
        return self.absent == "step turned"

    def rate(self, k: int) -> float:
        """The rate of round k (10)."""
        return self.lr * self.decay_factor ** (k // self.decay_every) if self.decay_every else self.lr

    def eta(self, down: Any) -> float:
        return self.lr if down.lr is None else down.lr

    def at_rate(self, lr: float, own: Own) -> tuple[FedSub, Own]:
        """`rescale_dual` says whether the dual is carried over."""
        return super().at_rate(lr, own) if self.rescale_dual else (replace(self, lr=lr), own)

    def factor(self, problem: Problem) -> Any:
        if self.gradient_factor == "r/m":
            isotropic = replace(self.projection, scale="isotropic")
            return 1 / isotropic.norm2(problem.layout, problem.dtype, problem.device)
        return super().factor(problem) if self.gradient_factor else 1.0

    def gradient(self, problem: Problem, P: Basis, x: torch.Tensor, xi: Any) -> Callable[..., torch.Tensor]:
        return problem.restrict(P, x, xi) if self.factored else super().gradient(problem, P, x, xi)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        (server, own) = super().init(problem, x, key)
        stored = x.new_zeros(problem.n, own.sent.shape[1]) if self.dual_mean == "stored" else None
        return State(Server(server.x, server.P, server.k, stored), own)

    def broadcast(self, server: Any, key: Key) -> Down:
        P = server.P
        if isinstance(P, Seed):
            turned = self.dual and self.rotate
            P = Renewed(P, server.k, self.refresh, ahead=int(turned), every=turned and self.absent == "rotate")
        resent = None
        if self.dual and self.steps:
            resent = Resent(cost(server.x.new_zeros(P.value.low.size)), server.k)
        return Down(P, server.x, self.rate(server.k) if self.decay_every else None, resent)

    def server(self, server: Any, down: Any, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, Reply | None]:
        P, k, mean = down.P.value, server.k + 1, up.B.mean(0)
        x = server.x + P.lift(mean)
        P_next: Projector | None = None
        if k % self.refresh == 0 and not isinstance(server.P, Known):
            P_next = self.projection.seed(P.layout, key.fold("P"), x.dtype, x.device)
        ratio = self.rate(k) / self.rate(k - 1) if self.rescale_dual and self.rate(k) != self.rate(k - 1) else None
        stored = server.stored
        if stored is not None:
            stored = stored.index_copy(0, clients, up.B)
            mean = stored.mean(0)
            if self.turns_endpoints and self.rotate and P_next is not None:
                stored = self.turn(stored, P, P_next.value)
        reply = Reply(mean, P_next if self.rotate else None, ratio) if self.dual else None
        return Server(x, P_next or server.P, k, stored), reply

    def close(self, own: Own, clients: torch.Tensor, down: Any, reply: Any) -> Own:
        if reply is None:
            return own
        closed = super().close(own, clients, down, reply)
        dual, sent = closed.dual, own.sent
        if reply.P_next is not None and self.absent == "keep":
            dual = self.moved(own, clients, reply).index_copy(0, clients, dual[clients])
        if reply.P_next is not None and self.turns_endpoints:
            sent = self.turn(sent, down.P.value, reply.P_next.value)
        return Own(dual if reply.lr_ratio is None else reply.lr_ratio * dual, sent)

    def moved(self, own: Own, clients: torch.Tensor, reply: Any) -> torch.Tensor:
        everyone = torch.arange(len(own.dual), device=own.dual.device)
        return super().moved(own, everyone if self.steps else clients, reply)

    def turn(self, dual: torch.Tensor, P: Basis, P_next: Basis) -> torch.Tensor:
        if not self.product_first:
            return super().turn(dual, P, P_next)
        blocks = zip(P_next.matrices(), P.matrices(), P.low.matrices(dual))
        return P.low.flatten([P1.T @ P0 @ block for P1, P0, block in blocks])


OPEN = (
    OpenPoint(
        "2-4",
        "How are CD, SS and RD drawn, and in which scale?",
        ("projection",),
        ("fedsub/fig1a", "ssf/readings", "fedsub.a1-cd", "fedsub.a1-ss", "fedsub.a1-rd"),
    ),
    OpenPoint(
        "5",
        "Is P redrawn in every round, or less often?",
        ("refresh",),
        ("ssf/readings",),
    ),
    OpenPoint(
        "6",
        "Is the dual turned into the next subspace whatever the projection?",
        ("rotate",),
        ("ssf/readings", "fedsub/why_nan"),
    ),
    OpenPoint(
        "7",
        "In which order are line 12's products formed?",
        ("product_first",),
        ("fedsub.line12-cost", "test_laws.py::test_line_12_in_either_order_of_its_products"),
    ),
    OpenPoint(
        "8, 9",
        "Is the projected gradient multiplied by r/m, also in FedAvg-CD?",
        ("gradient_factor",),
        ("ssf/readings", "test_laws.py::test_fedsub_gradient_factor_is_the_inverse_gram_matrix"),
    ),
    OpenPoint(
        "10",
        "Does the step size fall, and what becomes of the dual, which is divided by it?",
        ("decay_every", "decay_factor", "rescale_dual"),
        ("fedsub/geometry", "notebook 10", "test_laws.py::test_fedsub_decaying_rate"),
    ),
    OpenPoint(
        "17",
        "What does a client that was not sampled do with its dual, and its last endpoint, meanwhile?",
        ("absent",),
        (
            "ssf/readings",
            "ssf/stale",
            "test_laws.py::test_an_absent_client_and_its_dual",
            "test_transcripts.py::test_fedsub_partial_participation",
            "test_messages.py::test_a_server_can_make_the_dual_that_it_sends_again",
        ),
    ),
    OpenPoint(
        "17",
        "Over whom is the mean that enters the dual?",
        ("dual_mean",),
        ("ssf/readings", "test_transcripts.py::test_fedsub_partial_participation"),
    ),
    OpenPoint(
        "19",
        "Is the gradient formed and then projected, or evaluated on the subspace?",
        ("factored",),
        ("fedsub.cg-reduction", "test_transcripts.py::test_factored_steps"),
    ),
)
