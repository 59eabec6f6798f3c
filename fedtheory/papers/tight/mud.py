"""FedMUD with fresh factors in every round: docs/theory/mud.md. With several local steps q = K L alpha kappa = 1/4."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round, sample_clients
from fedtheory.core.problem import Problem
from fedtheory.maps.decomposition import Decoupled, Factors, LowRank, Outer, Product
from fedtheory.papers.tight.ssf import FAR, drift_chain, drift_of_many, opposed, slope_left
from fedtheory.papers.tight.table import Entry, Mean, Steps, gap, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.instances import Smooth
from fedtheory.theory.mud.local import bent, draws, left_over, play, scenarios
from fedtheory.theory.mud.round import layout
from fedtheory.theory.worst_case import ours

A = 0.5  # factors are U(-A, A): s^2 = A^2/3, k = 9/5
Q = 0.25  # q of the second theorem


@dataclass(frozen=True)
class Law:
    """FedMUD on one m x n layer, at the largest step alpha = 1/(L c), or a share of it.

    Fields:
        m, n, ratio: LowRank(ratio) gives the rank r.
        L: of the loss.
    """

    m: int
    n: int
    ratio: float
    L: float = 1.0
    aad: bool = False

    @property
    def r(self) -> int:
        return LowRank(self.ratio, A, layers="all").part(self.m, self.n).size // (self.m + self.n)

    @property
    def c(self) -> float:
        k = 9 / 5
        if self.aad:
            return (self.m + self.n + 4 * self.r + 2 * k - 4) / (4 * self.r)
        return (self.m + self.r + k - 2) / self.r

    @property
    def alpha(self) -> float:
        return 1 / (self.L * self.c)

    @property
    def algorithm(self) -> FedMUD:
        gamma = self.r * A**2 / 3 * (2 if self.aad else 1)
        form = LowRank(self.ratio, A, "aad" if self.aad else "product", layers="all")
        return FedMUD(self.alpha / gamma, 1, form, 1)


def bowl(law: Law) -> Smooth:
    """f = |W|^2/2 on the layer, one client."""
    one = torch.ones(1, law.m * law.n, dtype=torch.float64)
    return Smooth(one, 0 * one, layout=layout(((law.m, law.n, law.r),)))


def squares(algorithm: Algorithm, problem: Problem, x: torch.Tensor, T: int, key: Key) -> float:
    """The mean squared gradient of T rounds from x."""
    return sum(seen := squares_and_spreads(algorithm, problem, x, T, key)[0]) / len(seen)


@torch.no_grad()
def squares_and_spreads(
    algorithm: Algorithm, problem: Problem, x: torch.Tensor, T: int, key: Key, S: int | None = None
) -> tuple[list[float], list[float]]:
    """|grad F|^2 and (1/N) sum |grad F_i - grad F|^2 before each of T rounds from x; S: clients that take part."""
    full = problem.full(problem.clients)
    state, out = algorithm.init(problem, x, key), ([], [])
    for t in range(T):
        at = state.server.x
        g = problem.grads(at.expand(problem.n, -1), full)
        out[0].append(float((g.mean(0) ** 2).sum()))
        out[1].append(float(((g - g.mean(0)) ** 2).sum(-1).mean()))
        now = key.fold("round", t)
        clients = problem.clients if S is None else sample_clients(problem.n, S, now.fold("S"))
        state, _, _ = play_round(algorithm, problem, state, clients, now)
    return out


def reached(amount: dict[str, int], aad: bool = False) -> Mean:
    """The theorem's left over right side on the bowl, by FedMUD's own rounds, in the mean over runs."""
    law = Law(4, 3, 0.6, aad=aad)
    T, runs = round(4 * law.c), 10 * amount["steps"]
    problem, x = bowl(law), torch.ones(12, dtype=torch.float64)
    left = [squares(law.algorithm, problem, x, T, Key(s)) for s in range(runs)]
    return Mean.of(left, law.alpha * T / (2 * 6.0))  # f(x) - f* = 6


def price(amount: dict[str, int], aad: bool = False) -> Mean:
    """E|W^+ - W|^2/(alpha |G|)^2 over c: 3.2 and 3.3 by FedMUD's own rounds."""
    law = Law(4, 3, 0.6, aad=aad)
    problem, x = bowl(law), torch.linspace(-1, 1, 12, dtype=torch.float64)
    moved = []
    for s in range(100 * amount["steps"]):
        state = law.algorithm.init(problem, x.clone(), Key(s))
        new, _, _ = play_round(law.algorithm, problem, state, problem.clients, Key(s).fold("round", 0))
        moved.append(float(((new.server.x - x) ** 2).sum()))
    return Mean.of(moved, 1 / (law.alpha**2 * float((x**2).sum())) / law.c)


def typical(T: int) -> tuple[dict[str, float], str]:
    """FedMUD and FedMUD+AAD on a small problem of SSF's kind, full gradients."""
    problem = MatrixRegression.ssf(0.5, Key(17), n=10, rows=50, d=12, m=8, batch=None)
    out, start, L = {}, problem.start(), known(problem.constants.L)
    above = gap(problem, start)
    for name, aad in (("theorem", False), ("aad", True)):
        law = Law(8, 12, 0.5, L, aad)
        out[name] = squares(law.algorithm, problem, start, T, Key(3)) * law.alpha * T / (2 * above)
    K = 4
    alpha = Q / (K * L * 3 / 2 * (8 + 12))  # 6.4: kappa of AAD with independent entries
    several = replace(law.algorithm, lr=law.algorithm.lr * alpha / law.alpha, local_steps=K)
    G2, zeta2 = squares_and_spreads(several, problem, start, T, Key(3))
    right = 5 * above / (2 * K * alpha * T) + (1 - 1 / K) * Q**2 * 2.2 * max(zeta2)
    out["K"] = sum(G2) / T / right
    said = f"{T} rounds of FedMUD and FedMUD+AAD on ten clients' regression, an 8 x 12 layer, rank {law.r}"
    return out, f"{said}; K = 1, and K = 4 for the second theorem."


def on_bowl(share: float) -> float:
    """Left over right side on f = L|W|^2/2 as T grows, alpha = `share`/(L c), of the first term and of the noise.

    E|W^+|^2 = (1 - 2 alpha L + (alpha L)^2 c) |W|^2 + alpha^2 c nu^2/N, by 3.2 and 3.3: both ratios are 1/(2 - share).
    """
    return 1 / (2 - share)


def seen(aad: bool) -> float:
    """Lemma 1 by the pullback of FedMUD's own factors, r = 3: |grad h|^2 over the bound, S = U U^T, Z = V V^T."""
    m, n, r = 2, 3, 3
    U, V = (torch.randn(k, r, generator=Key(30).fold(k).generator(), dtype=torch.float64) for k in (m, n))
    both, zero = torch.cat([U.flatten(), V.flatten()]), torch.zeros((m + n) * r, dtype=torch.float64)
    part = (Decoupled if aad else Product)(Outer(m, n, r), False)
    D = Factors(layout(((m, n, r),)), (part,), zero if aad else both, both if aad else zero[:0])
    (s, left), (z, right) = (torch.linalg.eigh(v @ v.T) for v in (U, V))
    G = torch.outer(left[:, 0], right[:, 0])
    h = D.pullback(D.start, G.flatten())
    return float((h**2).sum() / (s[0] + z[0]))


# Several local steps, +F with a coordinate of two: Lambda = 1, gamma = 1/2, kappa = 2


class Played(NamedTuple):
    """Means over the coordinates and the noise, by FedMUD.client."""

    drift: float  # D
    gain: float  # E f(W^+) - f(W)


@torch.no_grad()
def plane(K: int, h: float, W: float, noise: float = 0.0) -> Played:
    """A round on h |W|^2/2 from (W, W), two numbers, with noise of variance 2 noise^2."""
    one = torch.ones(1, 2, dtype=torch.float64)
    problem = Smooth(h * one, 0 * one, noise=noise * one if noise else None, layout=layout(((2, 1, 1),)))
    x, factors = W * one[0], scenarios(problem, K)
    rounds = [play(problem, D, x, Q / K, K, factors) for D in draws(2, 1, 1, "freeze", "axes")]
    models = torch.stack([models for _, models, _ in rounds])
    after = torch.stack([after for after, _, _ in rounds])
    rise = float(problem.values(after).mean() - problem.values(x).mean())
    return Played(float(((models - x) ** 2).sum(-1).mean()), rise)


def drift_noise(K: int, q: float = Q) -> float:
    """f = -|W|^2/2, r = m: D over (1 - 1/K) q^2 nu^2/K."""
    lr, total, e = q / K, 0.0, 0.0
    for _ in range(K):
        total, e = total + e, (1 + lr) ** 2 * e + lr**2
    return total / ((K - 1) * K * lr**2)


PROOF = ("8.1", "convexity", "(1 + beta)^K", "8.2", "8.3")


def spread_steps(K: int) -> Steps:
    """What 8 loses for clients of curvatures 1 and -1: from the square of the mean of k eta to 8.7."""
    mean, square = (K - 1) / 2, sum(k**2 for k in range(K)) / K
    shown = square / (K * (K - 1))
    rest = {
        "8, square of the mean over steps": square / mean**2,
        "8.1": 4.0,
        "8.2": 1 / (3 * shown),
        "8.3": 1.714 * 3 / 4,
        "8.7": 0.88 / 0.857,
    }
    return {"8.4": 0.88 / ours.bare_spread(K, Q, 0.4).dual / math.prod(rest.values()), **rest}


def round_steps(K: int) -> Steps:
    """What the descent of 8 loses: half of it at once, then the drift's share, 8.5's, and a rounding."""
    exact = ours.bare_round(K, Q, Q, 0.88 * (1 - 1 / K), 2).dual
    kept = [exact, 0.5, 0.5 - 0.857 * Q**2 * (1 - 1 / K), 0.455 - 0.857 * Q**2 * (1 - 1 / K), 0.4]
    return {name: a / b for name, a, b in zip(("8.4", "drift", "8.5", "8.6"), kept, kept[1:])}


def rate(share: float) -> float:
    """|W|^2/2, K to infinity: what a round takes away of |W|^2, over 2 q/kappa, is (1 - exp(-2q))/(2q); `share`: of
    that descent which a bound promises.
    """
    return share / descent()


def descent() -> float:
    return -math.expm1(-2 * Q) / (2 * Q)


def whole_run(K: int = 4, T: int = 4096) -> float:
    """Left over right side of the second theorem on |W|^2/2: every round is the first one, scaled."""
    kept = left_over("freeze", "axes", K, 2, 1, 1, Q / K)
    return (1 - kept**T) / (1 - kept) / T / (5 / (4 * Q / 2 * T))


@torch.no_grad()
def rest(K: int = 8) -> float:
    """Two clients of curvatures 1 and -0.999 on the line that a round leaves as they are: |grad f|^2 over the bound."""
    problem, x = opposed(Q / K, K).replace(layout=layout(((1, 1, 1),))), torch.zeros(1, dtype=torch.float64)
    (D,) = draws(1, 1, 1, "freeze", "axes")
    after, _, _ = play(problem, D, x, Q / K, K, scenarios(problem, K))
    return slope_left(problem, after) / (2.2 * (1 - 1 / K) * Q**2)


def product_error(K: int) -> float:
    """7.3 on a linear loss by FedMUD.client: left over right side."""
    linear = torch.tensor([0.0, -1.0, 1.0, 0.0, -1.5], dtype=torch.float64)
    found, bound = bent()(linear, (1, K, 1, 1, 1))
    return float(found / bound)


def uniform() -> float:
    """c over kappa = 3m of the law that `price` plays."""
    law = Law(4, 3, 0.6)
    return law.c / (3 * law.m)


def precondition(amount: dict[str, int]) -> Mean:
    return Mean(*(uniform() * v for v in price(amount)))


def several() -> list[Entry]:
    """Rows of sections 6 to 10."""
    plane_of, square = "a frozen factor, r = 1 of m = 2", Q**2
    rows = [
        Entry(
            "preconditioner (6.3), orthonormal columns", "gamma^2 kappa |A|^2", 1.0, "any A", "exact", lambda: 1.0,
            why="an equality where all eigenvalues are 0 or Lambda",
        ),
        Entry(
            "preconditioner (6.3), uniform entries", "gamma^2 kappa |A|^2", 1.0, "m = 4, kappa = 3m", "exact", uniform,
            reached=precondition, steps=lambda: {"6.4, the largest draw for the mean": 1 / uniform()},
            why="c of one local step over kappa",
        ),
        Entry(
            "product's error (7.3)", "Lambda (c_K s_K - K x)", 1.0, "f = -B w, m = n = r = 1", "exact", lambda: 1.0,
            claim="mud.eq6", reached=lambda amount: product_error(4), why="attained, 7.5",
        ),
        Entry(
            "product's error (7.4), K = 2", "Lambda theta^3", 0.701, "f = -B w, m = n = r = 1", "exact", lambda: 0.25,
            steps=lambda: {"7.4, K to infinity for K = 2": 0.701 / 0.25},
        ),
        Entry(
            "product's error (7.4), any K", "Lambda theta^3", 0.701, "the same, K to infinity, theta = 1/2", "exact",
            lambda: 4 * (math.sinh(1) - 1),
        ),
        *(Entry(
            f"drift (8), K = {K}", "(1 - 1/K) q^2 gamma (|G|^2 + zeta^2)", 1.714, f"{plane_of}, two clients", "SDP",
            partial(ours.bare_drift, K, Q, 2), claim="mud.lemma4",
            reached=lambda amount, K=K: plane(K, -1.0, 1.0).drift / ((1 - 1 / K) * square),
            steps=lambda K=K: drift_chain(K, Q, 1.714, 1, PROOF)[1],
        ) for K in (2, 3)),
        drift_of_many(
            "drift (8), any K", "(1 - 1/K) q^2 gamma (|G|^2 + zeta^2)", "f = -|W|^2/2", "mud.lemma4", Q, 1.714, 1, PROOF
        ),
        Entry(
            "drift (8), noise", "(1 - 1/K) q^2 gamma p nu^2/K", 2.57, f"f = -|W|^2/2, K = {FAR}", "lower bound",
            lambda: drift_noise(FAR), claim="mud.lemma4",
            reached=lambda amount: plane(3, -1.0, 0.0, 1.0).drift / (2 / 3 * square / 3),
            steps=lambda: {"8.1": 4.0, "8.3 less what drifts itself": 2.57 / 4 / drift_noise(FAR)},
        ),
        *(Entry(
            f"round (8), K = {K}", "K alpha |G|^2", 0.4, f"{plane_of}, two clients", "SDP",
            partial(ours.bare_round, K, Q, Q, 0.88 * (1 - 1 / K), 2), descent=True, claim="mud.theorem1.eq68",
            reached=lambda amount, K=K: -plane(K, 1.0, 1.0).gain / Q,
            steps=lambda K=K: round_steps(K),
        ) for K in (2, 3)),
        Entry(
            "round (8), any K", "K alpha |G|^2", 0.4, "f = |W|^2/2, K to infinity", "lower bound", descent,
            descent=True, claim="mud.theorem1.eq68",
        ),
        Entry(
            "round (8), zeta^2, K = 2", "(1 - 1/K) K alpha q^2 zeta^2", 0.88, "r = m, two clients", "SDP",
            partial(ours.bare_spread, 2, Q, 0.4), claim="mud.theorem1.eq68", steps=lambda: spread_steps(2),
        ),
        Entry(
            "round (8), noise, K = 1", "K alpha L alpha kappa p nu^2/N", 1.28, "f = |W|^2/2, W = 0", "exact",
            lambda: 0.5, claim="mud.theorem1.eq68",
            reached=lambda amount: plane(1, 1.0, 0.0, 1.0).gain / (Q / 2 * Q * 2),
            steps=lambda: {"8.4": 2.0, "8.5": 1.25, "8.7": 1.28 / 1.25},
        ),
    ]  # fmt: skip
    rows += [
        Entry(
            "theorem with K, T to infinity", "left/right", 1.0, "f = |W|^2/2, K to infinity", "lower bound",
            lambda: rate(0.4), claim="mud.theorem1", kind="theorem", typical="K", reached=lambda amount: whole_run(),
        ),
        Entry(
            "theorem with K, noise", "left/right", 1.0, "f = |W|^2/2, K = 1", "lower bound",
            lambda: 1 / (3.2 * (2 - Q)), claim="mud.theorem1", kind="theorem",
        ),
        Entry(
            "theorem with K, zeta^2", "left/right", 1.0, "curvatures 1 and -1, r = m, K to infinity, eta to 0",
            "lower bound", lambda: 1 / 8.8, claim="mud.theorem1", kind="theorem", reached=lambda amount: rest(),
            why="where FedAvg rests on them: a run that starts there stays",
        ),
        Entry(
            "theorem with K, e", "left/right", 1.0, "FedMUD without AAD, K > 1", "not computed",
            claim="mud.theorem1", kind="theorem",
            why="whether anything of this order stays is open: 9.1 has nothing where clients are alike",
        ),
        Entry(
            "no floor (9.1)", "left/right", 1.0, "f = |W|^2/2 near its minimum, K to infinity", "lower bound",
            lambda: rate(5 / 16), kind="theorem",
        ),
        Entry(
            "contraction (9.2)", "mu K alpha", 0.8, "f = |W|^2/2, mu = L, K to infinity", "lower bound",
            lambda: 2 * descent(), descent=True, kind="theorem",
        ),
        Entry(
            "reset interval (9.3), first term", "left/right", 1.0, "f = |W|^2/2, tau to infinity", "lower bound",
            lambda: 0.8 * Q, claim="mud.remark3", kind="theorem",
            why="an interval takes away the share 1/kappa at most, however long",
        ),
        Entry(
            "saturation (10.2)", "(1 - r/m) (1 - r/n)", 1.0, "f = |W|^2/2, AAD, r = 1, m = n = 2, K to infinity",
            "exact", lambda: 1.0, descent=True, reached=lambda amount: left_over("aad", "axes", 40, 2, 2, 1, 0.5) * 4,
            why="attained by orthonormal columns; a bound from below",
        ),
    ]  # fmt: skip
    return rows


BOWL = "f = |W|^2/2, alpha = 1/(L c)"


def entries() -> list[Entry]:
    rows = []
    for aad, name, section in ((False, "FedMUD", "3.2"), (True, "FedMUD+AAD", "3.3")):
        rows += [
            Entry(
                f"{name}, price of a round ({section})", "c", 1.0, "any loss: an identity", "exact", lambda: 1.0,
                reached=lambda amount, aad=aad: price(amount, aad),
            ),
            Entry(
                f"{name}, theorem, T to infinity", "left/right", 1.0, BOWL, "exact", lambda: on_bowl(1.0),
                kind="theorem", claim="mud.theorem1", typical="aad" if aad else "theorem",
                reached=lambda amount, aad=aad: reached(amount, aad),
                why="attained; reached: a mean over runs of 4 c rounds",
            ),
        ]  # fmt: skip
    rows += [
        Entry(
            "theorem, noise", "left/right", 1.0, BOWL, "exact", lambda: on_bowl(1.0), claim="mud.theorem1",
            kind="theorem", why="the stationary mean square is L alpha c nu^2/N: attained",
        ),
        Entry(
            "theorem, small steps", "left/right", 1.0, "f = |W|^2/2, alpha to 0", "lower bound", lambda: on_bowl(0.0),
            claim="mud.theorem1", kind="theorem", why="4.1 gives half of the descent to the largest step",
        ),
        *(Entry(
            f"Lemma 1 as it should read{where}", "(lambda_min(S) + lambda_min(Z)) |G|^2", 1.0,
            "any factors; G of both lowest eigenvectors", "exact", lambda: 1.0, claim="mud.lemma1", descent=True,
            reached=lambda amount, aad=aad: seen(aad),
            why="attained, 1.3; a bound from below, which the theorems do not use",
        ) for aad, where in ((False, " (1.3)"), (True, ", with AAD (1.5)"))),
    ]  # fmt: skip
    return rows + several()


EXTRAS = [
    item("mud/tight", "How tight the page's theorem is: FedMUD with a reset in every round", entries(), typical),
]
