"""FedMUD: The Panaceas for Improving Low-Rank Decomposition in Communication-Efficient Federated Learning, Sec. 3.

The paper prints no box; numbers behind lines are its equations. FedLMT (Liu et al. 2024) and FedPara (Hyeon-Woo et al.
2022, arXiv:2108.06098) are FedMUD with W^0 = 0, s >= R and all factors random (Sec. 3.1). FedLoRU (Park and Klabjan
2024, arXiv:2409.12371v2) is FedMUD with `LowRank` and s its accumulation cycle tau: alpha A B at rate eta is U V^T with
U = A sqrt(alpha), V^T = B sqrt(alpha) at rate alpha eta.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, Known, Replay, Seed, cost
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.decomposition import Decomposition, Factors, Hadamard, Kronecker, LowRank


@dataclass(frozen=True)
class Frozen:
    """What stands between two resets."""

    base: torch.Tensor | Known[torch.Tensor]  # W^t of (3), (d,)
    D: Seed[Factors]  # start and fixed values of the factors


@dataclass(frozen=True)
class Reset:
    """What turns the frozen part before a reset into the one after it."""

    u: torch.Tensor  # U_bar, V_bar, (q,)
    D: Seed[Factors]


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # base + update, (d,)
    frozen: Frozen
    u: torch.Tensor  # U_bar, V_bar of all layers, (q,)
    last: Reset
    t: int
    weights: torch.Tensor  # (N,)


@dataclass(frozen=True)
class Down:
    frozen: Replay[Frozen]
    u: torch.Tensor | None  # (q,); None just after a reset, when it is D's start


@dataclass(frozen=True)
class Everyone:
    """A message that all clients receive in every round, those too that do not take part: nobody falls behind.

    Fields:
        value: the message.
        n: number of clients.
        first: whether nobody holds anything yet.
    """

    value: Down
    n: int
    first: bool

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge for all clients, whoever takes part."""
        return cost(self.value, [None if self.first else 1] * self.n)


@dataclass(frozen=True)
class Up:
    u: torch.Tensor  # U_i, V_i, (S, q)


@dataclass(frozen=True)
class FedMUD(Algorithm):
    """Local SGD on the factors of an update, the rest of the model frozen; then the average of the factors.

    Where the paper leaves a point open, a field decides it.

    Fields:
        lr: eta; None: `pace` times the problem's `rate`.
        local_steps: E, the local steps of a round.
        decomposition: how the update is decomposed; `Full()` makes FedMUD FedAvg.
        reset_every: s, rounds between resets. None: never (s >= R). The model x is the same before and after.
        base: "model": W^0 is the start of the run. "zero": 0, so that the factors are the whole model; layers that
            stay whole keep their start. It needs reset_every=None.
        weighted: False averages the participants alike, as (4); True by the problem's client weights p_i.
        absent: what the download of clients that do not take part is charged. "later": a client that comes back is
            sent the factors of all resets that it missed, or the model where that is smaller. "at once": every client
            downloads the global update in every round, as Sec. 2 demands. What clients compute is the same.

    The server resets and, from the same messages, so do the clients.
    """

    lr: float = by_problem()
    local_steps: int = 5
    decomposition: Decomposition = LowRank(1 / 8, 1.0, layers="matrices")
    reset_every: int | None = 1
    base: str = "model"
    weighted: bool = False
    absent: str = "later"
    name = "FedMUD"
    pace = 0.1
    averaged = True

    def __post_init__(self) -> None:
        checks.choice("base", self.base, ("model", "zero"))
        if self.reset_every is not None:
            checks.whole("reset_every", self.reset_every, 1)
            if self.base == "zero":
                checks.reject("reset_every", self.reset_every, "None where base='zero'", "pass reset_every=None")
        checks.choice("absent", self.absent, ("later", "at once"))
        if self.base == "model" and self.decomposition.random:
            what = "an update that starts at zero where base='model', or a reset would move the model"
            checks.reject("decomposition.random", True, what, "pass random=False, or use FedMUD.of_model")

    @staticmethod
    @checks.arguments
    def of_model(lr: float, local_steps: int, decomposition: Decomposition, **options) -> "FedMUD":
        """The model is decomposed, not its updates: FedLMT with `LowRank`, FedPara with `Hadamard`."""
        for name in options.keys() & {"base", "reset_every"}:
            what = "left out: the factors are the whole model, which has no base and is never reset"
            checks.reject(name, options[name], what, f"pass no {name}, or use FedMUD itself", TypeError)
        decomposition = replace(decomposition, random=True)
        return FedMUD(lr, local_steps, decomposition, reset_every=None, base="zero", **options)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        D = self.decomposition.seed(problem.layout, key.fold("D"), problem.dtype, problem.device)
        frozen, u = Frozen(x, D), D.value.start
        if self.base == "zero":
            frozen, u = Frozen(Known(torch.zeros_like(x)), D), D.value.whole(x)
        server = Server(x, frozen, u, Reset(u, D), 0, problem.weights.to(x))
        return State(replace(server, x=_model(frozen, u)), None)

    def broadcast(self, server: Server, key: Key) -> Down | Everyone:
        t, s = server.t, self.reset_every or server.t + 1
        at_start = t % s == 0 and self.base == "model"
        down = Down(Replay(server.frozen, server.last, round=t, period=s), None if at_start else server.u)
        return down if self.absent == "later" else Everyone(down, len(server.weights), t == 0)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down | Everyone, key: Key):
        down = down.value if isinstance(down, Everyone) else down
        D, base = down.frozen.value.D.value, _base(down.frozen.value)
        u = (D.start if down.u is None else down.u).expand(len(clients), -1)
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        for k in range(self.local_steps):
            w = base + D.update(u)  # 3: W_i = W + U_i V_i^T
            u = u.sub(D.pullback(u, problem.grads(w, xi[k])), alpha=self.lr)  # 15, 20
            yield u
        return Up(u), None

    def server(
        self, server: Server, down: Down | Everyone, up: Up, clients: torch.Tensor, key: Key
    ) -> tuple[Server, None]:
        p = average_weights(server.weights, clients, self.weighted)
        u, frozen, last, t = p @ up.u, server.frozen, server.last, server.t + 1  # 4
        x = _model(frozen, u)
        if self.reset_every and t % self.reset_every == 0:
            D = replace(frozen.D, key=key.fold("D"))
            frozen, u, last = Frozen(x, D), D.value.start, Reset(u, D)  # 5, 16
        return Server(x, frozen, u, last, t, server.weights), None


def _base(frozen: Frozen) -> torch.Tensor:
    return frozen.base.value if isinstance(frozen.base, Known) else frozen.base


def _model(frozen: Frozen, u: torch.Tensor) -> torch.Tensor:
    """W + U V^T, (d,)."""
    return _base(frozen) + frozen.D.value.update(u)


METHODS = [
    Method(
        "FedMUD",
        "low rank",
        lambda o: FedMUD(o.lr, o.local_steps, LowRank(o.ratio, 1.0, layers="matrices")),
        Card(
            "Train a low-rank update of a frozen model, and merge it every s rounds.",
            "(U, V) -= eta grad in (U, V) of f_i(W + U V^T); W += mean(U) mean(V)^T",
            "With everything whole it is FedAvg (law); its Theorem 1, and Remark 1 on rates:",
            "The mean of products is not the product of means; the factors' range a decides whether it trains.",
            ("mud.theorem1", "mud.remark1"),
        ),
        needs="matrices",
    ),
    Method(
        "FedMUD+BKD",
        "low rank",
        lambda o: FedMUD(o.lr, o.local_steps, Kronecker(o.ratio, 1.0, layers="matrices")),
        Card(
            "FedMUD with Kronecker products, block by block, in place of low rank.",
            "W += blocks of mean(U) (x) mean(V)",
            "Ranks of a Kronecker product, and of the blocks as they are cut:",
            "The bias of averaged factors, as FedMUD; needs larger a.",
            ("mud.rank.kron", "mud.bkd.truncated_rank"),
        ),
        needs="matrices",
    ),
    Method(
        "FedMUD+AAD",
        "low rank",
        lambda o: FedMUD(o.lr, o.local_steps, LowRank(o.ratio, 1.0, "aad", layers="matrices")),
        Card(
            "An update that is linear in what is trained, so that averaging is exact.",
            "dW = U V~^T + U~ V^T with U~, V~ drawn and fixed",
            "Recovering and averaging commute:",
            "Twice the random factors; its subspace is drawn, not learned.",
            ("mud.eq8-9",),
        ),
        needs="matrices",
    ),
    Method(
        "FedMUD+BKD+AAD",
        "low rank",
        lambda o: FedMUD(o.lr, o.local_steps, Kronecker(o.ratio, 1.0, "aad", layers="matrices")),
        Card(
            "FedMUD with both: Kronecker blocks (BKD), linear in what is trained (AAD).",
            "dW = blocks of U (x) V~ + U~ (x) V",
            "Recovering and averaging commute for any product:",
            "Where FedMUD+AAD does, and it needs larger a, as FedMUD+BKD.",
            ("mud.aad.any_product",),
        ),
        needs="matrices",
    ),
    Method(
        "FedLMT",
        "low rank",
        lambda o: FedMUD.of_model(o.lr, o.local_steps, LowRank(o.ratio, 0.8, layers="matrices")),
        Card(
            "The model itself is a product, from the start to the end.",
            "(U, V) -= eta grad in (U, V) of f_i(U V^T); U, V = means",
            "It is FedMUD with W = 0 that never resets; its rate:",
            "The model's rank is bounded for good; factors that start small stay small for long.",
            ("mud.sec3.1.fedlmt", "mud.remark3"),
        ),
        command=lambda o: FedMUD.of_model(o.lr, o.local_steps, LowRank(o.ratio, 0.3, layers="matrices")),
        needs="matrices",
    ),
    Method(
        "FedPara",
        "low rank",
        lambda o: FedMUD.of_model(o.lr, o.local_steps, Hadamard(o.ratio, 0.9, layers="matrices")),
        Card(
            "As FedLMT, with an entrywise product of two low-rank products.",
            "W = (X1 Y1^T) o (X2 Y2^T)",
            "Original: rank up to r^2 for the numbers of rank 2 r. In FedMUD's tables:",
            "Fourth order in its factors: very sensitive to their scale.",
            ("mud.text.fedhm_fedlmt",),
        ),
        command=lambda o: FedMUD.of_model(o.lr, o.local_steps, Hadamard(o.ratio, 0.7, layers="matrices")),
        needs="matrices",
    ),
    Method(
        "FedLoRU",
        "low rank",
        lambda o: FedMUD(o.lr, o.local_steps, LowRank(o.ratio, 1.0, layers="matrices"), reset_every=10),
        Card(
            "Low-rank updates are merged every tau rounds: their ranks add up.",
            "(A, B) -= eta grad of f_i(W + A B); every tau rounds W += mean(A) mean(B)",
            "It is FedMUD with s = tau; k merges give rank (k + 1) r (laws). Original: FedAvg's rate.",
            "The bias of averaged factors, as FedMUD.",
        ),
        needs="matrices",
    ),
]
