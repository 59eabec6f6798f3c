"""One round of every method of the family of docs/theory/family.md, with S of N clients. Not in the paper."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms import fedsub, scaffold
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.core.algorithm import State
from fedtheory.core.engine import map_leaves
from fedtheory.theory.bench import Bench
from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.instances import Smooth, coordinate_frames, fixed, joint, pick_leaves, run_locals, subsets
from fedtheory.theory.ssf.attack import Edge, build
from fedtheory.theory.ssf.hypotheses import A123, claim
from fedtheory.theory.ssf.round import ROOT, Instance, dump


@dataclass(frozen=True)
class Member(Edge):
    """An edge of the search with its method; sampled: S, 0 for all N. K L eta_l = share/2, h = global_share/4.

    young: s of section 9, whose noise is that of samples, with L_hat for L in the step; 0: any noise.
    """

    method: str = "SSF"
    sampled: int = 0
    share: float = 0.2
    young: float = 0.0

    def __str__(self) -> str:
        return f"{self.method}, S={self.sampled or self.N}, {super().__str__()}"


@dataclass(frozen=True)
class Memory:
    """E C^+ <= (1 - m) C + chi zeta^2 + alpha (L^2 D + theta sigma^2/K) + gamma L^2 E|x^+ - x|^2."""

    m: float
    chi: float
    alpha: float
    gamma: float


def memory(method: str, rho: float, phi: float) -> Memory:
    """What docs/theory/family.md, section 5, proves of a method's memory; rho: of the refresh."""
    if method == "FedAvg-CD":
        return Memory(1, 1, 0, 0)
    if method == "FedSub":
        return Memory(1, 2 * (1 / rho - 1), 8 / rho**2, 4)
    return Memory(phi * rho / 2, 0, 3 * phi, 3 / (phi * rho))


def weight(own: Memory, p: float, h: float, rho: float, nu: float = 0.0) -> float:
    """M/eta of the potential. Raises AssertionError for steps that the theorem does not admit."""
    kappa = own.m - rho * (7 / 5 * own.alpha * p + (21 / 5 * p + 2 * nu) * own.gamma * h**2)
    share = rho * (7 / 8 * p + h * nu) / kappa
    if kappa <= 0 or share * (7 / 5 * own.alpha * p + (21 / 5 * p + 2) * own.gamma * h**2) > 1 / 25:
        raise AssertionError(f"p = {p:g}, h = {h:g}, rho = {rho:g}: steps that the theorem does not admit")
    return share


@dataclass(frozen=True)
class Round:
    """What the lemmas speak of, as numbers: expectations over projectors, noise and the sets of S clients.

    Fields:
        at, of: the instance and its edge.
        drift: D, over all N clients, whether they are in the set or not.
        gain: E F(x^+) - F(x).
        moved: E|x^+ - x|^2.
        C1: the error of the memory after the round.
        apart: E|c^+ - (1/N) sum_i c_i^+|^2; zero for methods whose c is none.
    """

    at: Instance
    of: Member
    drift: torch.Tensor
    gain: torch.Tensor
    moved: torch.Tensor
    C1: torch.Tensor
    apart: torch.Tensor

    @property
    def S(self) -> int:
        return self.of.sampled or self.at.N

    @property
    def nu(self) -> float:
        """The mean of S of N vectors without replacement has nu times their variance."""
        return (self.at.N - self.S) / (self.S * max(self.at.N - 1, 1))

    @property
    def h(self) -> float:
        return self.at.L * self.at.eta

    @property
    def L2(self) -> Any:
        """L^2, or L_hat^2."""
        return self.at.L**2 + (of_samples(self.at, self.of.young)[1] if self.of.young else 0.0)

    @property
    def p(self) -> Any:
        return self.L2 * self.at.lr**2 * self.at.K * (self.at.K - 1)

    @property
    def noise(self) -> torch.Tensor:
        """theta sigma^2: with one local step the noise does not know P, and a sample hardly does."""
        if self.of.young:
            return (1 + self.of.young) * self.at.rho * of_samples(self.at, self.of.young)[0]
        return (self.at.rho if self.at.K == 1 else 1.0) * self.at.sigma2

    @property
    def memory(self) -> Memory:
        return memory(self.of.method, self.at.rho, self.S / self.at.N)

    @functools.cached_property
    def start(self) -> torch.Tensor:
        return self.at.problem.gradients(self.at.x)

    @functools.cached_property
    def G2(self) -> torch.Tensor:
        return (self.start.mean(0) ** 2).sum()

    @functools.cached_property
    def zeta2(self) -> torch.Tensor:
        return _variance(self.start)

    @functools.cached_property
    def V(self) -> torch.Tensor:
        """(1/N) sum |u_i - u|^2, u_i = grad F_i(x) - c_i."""
        return _variance(self.start - self.at.ci)

    @functools.cached_property
    def C0(self) -> torch.Tensor:
        kept = self.of.method in ("SSF", "SCAFFOLD")
        return ((self.start - self.at.ci) ** 2).sum(-1).mean() if kept else self.V


def _variance(v: torch.Tensor) -> torch.Tensor:
    """Over clients: (N, ..., d) -> (...)."""
    return ((v - v.mean(0)) ** 2).sum(-1).mean(0)


def of_samples(at: Instance, young: float) -> tuple[torch.Tensor, torch.Tensor]:
    """sigma^2 at x, and L_hat^2 - L^2, of noise +-u_i <gate_i, y - b_i>, cut off at +-u_i."""
    problem = at.problem
    assert problem.noise is not None
    assert problem.gate is not None
    size = (problem.noise**2).sum(-1)
    here = ((at.x - problem.b) * problem.gate).sum(-1).clamp(-1, 1) ** 2
    bend = (size * (problem.gate**2).sum(-1)).max()
    return (size * here).max(), (1 + 1 / young) * bend / at.K


def begin(at: Instance, method: str, frame: torch.Tensor) -> tuple[Any, State]:
    """A method in the instance's state, with one projector. FedAvg is FedAvg-CD with r = d."""
    if method == "SCAFFOLD":
        server = scaffold.Server(at.x, at.c, at.N, None)
        return Scaffold(at.lr, at.K, at.server_lr), State(server, scaffold.Own(at.ci))
    if method == "SSF":
        ssf = SSFReading(at.lr, at.K, fixed(frame), server_lr=at.server_lr, server_control="all")
        state = ssf.init(at.problem, at.x, ROOT)
        return ssf, State(replace(state.server, c=at.c), replace(state.own, c=at.ci))
    wide = frame / at.rho**0.5
    sub = FedSub(at.lr, at.K, fixed(wide, "isotropic"), dual=method == "FedSub")
    dual = -at.eta * at.rho * (at.ci - at.c) @ wide  # Lambda_i = eta tau P^T u_i, where c_i - c = -u_i/rho
    return sub, State(sub.init(at.problem, at.x, ROOT).server, fedsub.Own(dual, torch.zeros_like(dual)))


def play(at: Instance, of: Member, served: bool = True) -> Round:
    """One round through the method's own lines, for every projector, noise and set of S clients.

    served: whether the server has its turn; without it all fields but the drift are NaN.
    """
    problem, S = at.problem, of.sampled or at.N
    if problem.noise is not None and problem.scenarios is None:
        problem = problem.enumerated(at.K)
    sets, zero = subsets(at.N, S) if served else [], torch.zeros((), dtype=torch.float64)
    drift = zero
    gain = moved = C1 = apart = zero if served else zero * math.nan
    for frame in at.frames:
        algorithm, state = begin(at, of.method, frame)
        down = algorithm.broadcast(state.server, ROOT)
        local = run_locals(algorithm, problem, state.own, down)
        squares = [(_step(y, at, of.method, frame) ** 2).sum(-1) for y in local.iterates[:-1]]
        start = torch.zeros(at.N, len(local.probability), dtype=torch.float64)
        drift = drift + local.mean(sum(squares, start)).mean() / at.K
        for chosen in sets:
            both = joint(local.probability, S)
            sent = pick_leaves(map_leaves(lambda leaf, rows=chosen: leaf[rows], local.up), both.pick)
            server, reply = algorithm.server(state.server, down, sent, chosen, ROOT)
            away = (problem.values(server.x) - problem.values(at.x)[:, None]).mean(0)
            gain = gain + both.mean(away) / len(sets)
            moved = moved + both.mean(((server.x - at.x) ** 2).sum(-1)) / len(sets)
            target = problem.gradients(server.x)  # (N, C, d)
            if of.method == "FedSub":
                own = pick_leaves(local.own, both.pick)
                u = (algorithm.moved(own, chosen, reply) @ (frame / at.rho**0.5).mT) / at.eta
                error = _variance(target + u / at.rho)
            elif of.method == "FedAvg-CD":
                error = _variance(at.problem.gradients(at.x))[None]  # zeta^2 bounds it at every model
            else:
                new = at.ci[:, None].expand_as(target).index_copy(0, chosen, both.pick(local.own.c[chosen]))
                error = ((new - target) ** 2).sum(-1).mean(0)
                apart = apart + both.mean(((server.c - new.mean(0)) ** 2).sum(-1)) / len(sets)
            C1 = C1 + both.mean(error.expand_as(both.probability)) / len(sets)
    count = len(at.frames)
    return Round(at, of, drift / count, gain / count, moved / count, C1 / count, apart / count)


def _step(y: torch.Tensor, at: Instance, method: str, frame: torch.Tensor) -> torch.Tensor:
    """y_i^k - x in R^d from what a method yields."""
    if method == "SCAFFOLD":
        return y - at.x
    return (y - at.x @ frame) @ frame.mT if method == "SSF" else y @ (frame / at.rho**0.5).mT


# The lemmas and the theorem of the page

Terms = Callable[[Round], tuple[torch.Tensor, ...]]


def drift(q: Round) -> tuple[torch.Tensor, ...]:
    rho, L2 = q.at.rho, q.L2
    return L2 * q.drift, 1.041 * q.p / q.at.K * q.noise + 1.388 * rho * q.p * (q.V + q.G2)


def descent(q: Round, sampling: float = 1.0, hat: bool = True) -> tuple[torch.Tensor, ...]:
    """`hat`: L_hat of section 9, else L."""
    eta, rho, h = q.at.eta, q.at.rho, q.h
    left = q.gain + rho * eta / 2 * q.G2
    noise = sampling * rho * q.nu * q.V + q.noise / (q.S * q.at.K)
    L2 = q.L2 if hat else q.at.L**2
    return left, (1 + h) / 2 * L2 * eta * q.drift + h * eta * noise, (eta * q.G2 + q.moved).detach()


def refreshed(q: Round) -> tuple[torch.Tensor, ...]:
    own, L2 = q.memory, q.at.L**2
    right = own.alpha * (q.L2 * q.drift + q.noise / q.at.K) + own.gamma * L2 * q.moved
    return q.C1, (1 - own.m) * q.C0 + own.chi * q.zeta2 + right


def potential(q: Round, kept: float = 1.0) -> tuple[torch.Tensor, ...]:
    """The round of the theorem, E Phi^+ - Phi, with M C. `kept`: of what the clients' difference leaves."""
    own, p, h, rho, eta = q.memory, q.p, q.h, q.at.rho, q.at.eta
    share = weight(own, p, h, rho, q.nu)
    noise = h / q.S + 2 / 3 * p + share * (1.02 * own.alpha + (1 / 25 + 2 / q.S) * own.gamma * h**2)
    left = q.gain + 9 / 20 * rho * eta * q.G2 + eta * share * (q.C1 - q.C0)
    right = kept * eta * share * own.chi * q.zeta2 + eta * noise * q.noise / q.at.K
    return left, right, (eta * q.G2 + q.moved + eta * share * (q.C0 + q.C1)).detach()


def made(z: torch.Tensor, of: Member) -> Instance:
    """The instance of free numbers z; a method without a memory has c_i = c = 0."""
    at = build(z, of)
    if of.young:  # K L_hat eta_l = share/2, and h as before where the server has a step
        longer = float((1 + of_samples(at, of.young)[1].detach()) ** 0.5)
        at = replace(at, lr=at.lr / longer, server_lr=at.server_lr * (longer if of.global_share else 1))
    return replace(at, ci=0 * at.ci, c=0 * at.c) if of.method == "FedAvg-CD" else at


def _convex(of: Member) -> torch.Tensor:
    """Free numbers of losses with all curvatures at L, where noise and sampling do the most harm; the rest random."""
    z = torch.randn(of.size, generator=ROOT.fold("family", "convex").generator(), dtype=torch.float64)
    return torch.cat([torch.full((of.N * of.d,), torch.pi / 3, dtype=torch.float64), z[of.N * of.d :]])


BENCH: Bench[Member, tuple[Instance, Member], Round] = Bench(
    ROOT.fold("family"), lambda: MEMBERS, lambda z, of: (made(z, of), of), lambda pair: play(*pair),
    lambda pair: {**dump(pair[0]), "method": pair[1].method, "S": pair[1].sampled},
    "", "", {"quick": (1, 3), "full": (4, 25)}, together=False,
    starts=lambda corners: list({of.size: _convex(of) for of in corners}.values()),
)  # fmt: skip


def unbroken(terms: Terms, name: str, corners: Sequence[Member], **options: Any) -> Check:
    """A lemma of the page holds where the search does not break it."""
    held = f"{name}: {{n}} states of {len({of.method for of in corners})} methods, worst at {{edge}}"
    rounds = replace(BENCH, play=lambda pair: play(*pair, served=terms is not drift))
    return replace(rounds, holds_text=held, breaks_text=held).survives(terms, name, "", corners, **options)


def check_mean(effort: str) -> Outcome:
    """c^+ is the mean of all c_i^+, one random state per member."""
    worst = 0.0
    for q in BENCH.rounds("mean"):
        worst = max(worst, float(q.apart))
    return Outcome(worst < 1e-20, "exact", None, f"c^+ less the mean of the c_i^+: at most {worst**0.5:.1e}")


def _partial(phi: float, rho: float) -> float:
    """h = phi sqrt(rho)/8, as a share of 1/4."""
    return phi * math.sqrt(rho) / 2


MEMBERS = [  # the largest steps that the corollaries admit
    Member(K=2, N=2, d=2, method="FedAvg-CD", global_share=None, sampled=1),
    Member(K=3, N=2, d=2, r=2, method="FedAvg-CD", global_share=None, noisy=False, sampled=1),
    Member(K=1, N=3, d=2, method="FedAvg-CD", global_share=None, sampled=2, stationary=True),
    Member(K=2, N=2, method="SCAFFOLD", global_share=1 / 4, sampled=1, shape="spline"),
    Member(K=3, N=2, method="SCAFFOLD"),
    Member(K=1, N=3, method="SCAFFOLD", global_share=1 / 6, sampled=1, stationary=True),
    Member(K=2, N=2, d=2, method="SSF", global_share=_partial(1 / 2, 1 / 2), sampled=1),
    Member(K=2, N=3, d=2, method="SSF", global_share=_partial(2 / 3, 1 / 2), sampled=2, noisy=False, shape="cosine"),
    Member(K=2, N=2, d=8, method="SSF", global_share=_partial(1 / 2, 1 / 8), sampled=1, noisy=False),
    Member(K=2, N=2, d=8, method="SSF", global_share=4 * math.sqrt(1 / 8 / 8), noisy=False),
    Member(K=2, N=2, d=2, method="SSF"),
    Member(K=1, N=2, d=2, method="SSF", global_share=_partial(1 / 2, 1 / 2), sampled=1),
    Member(K=2, N=2, d=2, r=2, method="SSF", global_share=1 / 4, sampled=1),
    Member(K=2, N=2, d=2, method="SSF", controlled=True, stationary=True, noisy=False),
    Member(K=2, N=2, d=2, method="FedSub", global_share=None),
    Member(K=3, N=2, d=3, method="FedSub", global_share=None, noisy=False, shape="cosine"),
    Member(K=2, N=2, d=2, r=2, method="FedSub", global_share=None),
    Member(K=2, N=2, d=8, method="FedSub", global_share=None, share=2 * math.sqrt(1 / 8 / 20), noisy=False),
]
_MINIBATCHES = [
    Member(K=2, N=2, d=2, method="SSF", global_share=_partial(1 / 2, 1 / 2), sampled=1, gated=True, young=1.0),
    Member(K=2, N=2, d=2, method="SSF", shape="spline", gated=True, young=0.3),
    Member(K=3, N=1, d=2, method="SSF", shape="spline", gated=True, young=2.0),
    Member(K=2, N=2, d=2, method="FedAvg-CD", global_share=None, sampled=1, gated=True, young=1.0),
    Member(K=2, N=2, d=2, method="FedSub", global_share=None, shape="cosine", gated=True, young=1.0),
]
_UNHATTED = [Member(K=2, N=2, d=2, gated=True, young=1.0, stationary=True)]
# Two clients that pull apart along a line, curvatures 1; noise of slope 90 along it
_STEEP = torch.tensor([
    *[torch.pi / 3] * 4, 1.0, 0.0, -1.0, 0.0, *[0.0] * 4, *[0.0] * 3, 1.0, 0.0, 1.0, 0.0, 5.7, 0.1, 0.0, 0.1, 0.0
], dtype=torch.float64)  # fmt: skip
_SAMPLED = [Member(K=1, N=3, d=2, method="FedAvg-CD", global_share=None, sampled=1, stationary=True, noisy=False)]


# Which control a server should keep when S of N take part


def walk(control: str, rounds: int, sampled: int) -> tuple[list[float], float]:
    """E|x^{t+1} - x^t|^2 over eta^2 rho nu zeta^2 for t < rounds, of SSF on linear losses whose gradients v_i have mean
    zero, with c_i = v_i and c = 0 at the start; d = 2, r = 1, every projector and set. The second: what is expected of
    FedAvg in the same subspaces, by its own code."""
    v = torch.tensor([[1.0, 0.5], [-2.0, 1.0], [1.0, -1.5]], dtype=torch.float64)
    problem = Smooth(torch.zeros_like(v), torch.zeros_like(v), a=v)
    at = Instance(problem, torch.zeros(2, dtype=torch.float64), v, torch.zeros(2, dtype=torch.float64),
                  coordinate_frames(2, 1), 0.1, 2)  # fmt: skip
    nu = (3 - sampled) / (sampled * 2)
    unit = at.eta**2 * at.rho * nu * float(_variance(v))
    states, found, sets = [at], [], subsets(3, sampled)
    for _ in range(rounds):
        ends = []
        for one, frame, chosen in itertools.product(states, at.frames, sets):
            ssf = SSFReading(one.lr, one.K, fixed(frame), server_control=control)
            start = ssf.init(problem, one.x, ROOT)
            down = ssf.broadcast(replace(start.server, c=one.c), ROOT)
            local = run_locals(ssf, problem, replace(start.own, c=one.ci[chosen]), down, chosen)
            up = map_leaves(lambda leaf: leaf[:, 0], local.up)
            server, _ = ssf.server(replace(start.server, c=one.c), down, up, chosen, ROOT)
            ci = one.ci.index_copy(0, chosen, local.own.c[:, 0])
            ends.append((one, replace(one, x=server.x, ci=ci, c=server.c)))
        found.append(sum(float(((new.x - old.x) ** 2).sum()) for old, new in ends) / len(ends) / unit)
        states = [new for _, new in ends]
    bare = play(replace(at, ci=0 * v), Member(N=3, d=2, K=2, method="FedAvg-CD", sampled=sampled))
    return found, float(bare.moved) / unit


def check_control(control: str, kept: float) -> Check:
    """The mean squares are kept (1 - (1 - rho)^t), FedAvg's is 1."""

    def check(effort: str) -> Outcome:
        gap, rounds = 0.0, 3 if effort == "quick" else 4
        for sampled in (1, 2):
            found, bare = walk(control, rounds, sampled)
            wanted = [kept * (1 - 0.5**t) for t in range(rounds)]
            gap = max(gap, abs(bare - 1), *(abs(a - b) for a, b in zip(found, wanted)))
        said = f"{control}: {', '.join(f'{value:.4g}' for value in found)} of FedAvg's; largest gap {gap:.1e}"
        return Outcome(gap < 1e-12, "exact", gap, said)

    return check


CLAIMS: list[Claim] = [
    claim(
        "family", "expectation", assumes=A123,
        check=worst_of(
            unbroken(drift, "drift", MEMBERS), unbroken(descent, "descent", MEMBERS),
            unbroken(refreshed, "memory", [of for of in MEMBERS if of.method != "FedAvg-CD"]),
            unbroken(potential, "potential", MEMBERS), check_mean,
        ),
        control=unbroken(functools.partial(descent, sampling=0.4), "sampling", _SAMPLED, restarts=2, steps=25),
        broken="the sampling noise times 4/10",
        implies="One theorem for the family: the subspace costs d/r once, the correction removes what local steps and "
        "sampling leave of the clients' difference, and FedSub's dual leaves 2 (d/r - 1) of it.",
    ),
    claim(
        "family_noise", "expectation", assumes=A123,
        check=worst_of(
            *(unbroken(terms, name, _MINIBATCHES) for terms, name in (
                (drift, "drift"), (descent, "descent"), (potential, "potential"))),
            unbroken(refreshed, "memory", [of for of in _MINIBATCHES if of.method != "FedAvg-CD"]),
        ),
        control=unbroken(functools.partial(descent, hat=False), "no hat", _UNHATTED, starts=[_STEEP]),
        broken="L for L_hat",
        implies="Minibatches cost a subspace about twice what noise costs that does not know it, and not d/r times.",
    ),
    claim(
        "partial_control", "identity", assumes=A123,
        check=worst_of(check_control("participants", 1.0), check_control("all", 0.0)),
        control=check_control("participants", 0.0),
        broken="the mean of fresh controls said to let the model rest",
        implies="With partial participation a mean of fresh controls has all of FedAvg's sampling noise, though every "
        "c_i is exact; a mean of increments has none of it.",
    ),
]  # fmt: skip
