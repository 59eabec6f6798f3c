"""DeComFL with K local steps: docs/theory/decomfl.md, sections 5 to 11. L = 1, K eta theta = 1/8, a = (kappa + 1)/P.

Closed forms are of losses +-|x|^2/2, where kappa = d and any a can be had; c = 1 + a, K theta = K + a. "Many
directions": a = 0. A round is then one of FedAvg, and directions of length sqrt(d) on the line, +-1, are it exactly.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.core.problem import Problem
from fedtheory.papers.tight.mud import squares
from fedtheory.papers.tight.ssf import chain, opposed, slope_left
from fedtheory.papers.tight.table import Entry, Mean, Steps, gap, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.decomfl.round import Enumerated, Instance, tiny
from fedtheory.theory.instances import Smooth, drain
from fedtheory.theory.worst_case import ours

TINY = 1e-6  # smoothing that leaves no trace
LONG = 1 / 8  # K eta L theta
GRID = [(K, a) for K in (1, 2, 4, 16, 64, 256) for a in (0.0, *(K * 4.0**j for j in range(-3, 4)))]


def step(K: int, a: float) -> float:
    """eta L."""
    return LONG / (K + a)


def most(f: Callable[[int, float], float], K: int = 1) -> tuple[int, float]:
    """Where f(K, a) is largest on the grid, from so many steps on."""
    return max((at for at in GRID if at[0] >= K), key=lambda at: f(*at))


# What local steps add up to


def adapted(k: int, a: float) -> float:
    """7.2 for H = LI, the smallest v with E|sum_j A_j delta_j|^2 <= v sum_j E|delta_j|^2 for all delta_j known in time.

    A control problem: x_j = x_{j-1} + A_j delta_j pays |x_k|^2 and costs v |delta_j|^2. What can still be won from x is
    p |x|^2, and p before a step is p + p^2/(v - p c). From x = 0 there is nothing to win while p c <= v.
    """

    def enough(v: float) -> bool:
        p = 1.0
        for _ in range(k - 1):
            if p * (1 + a) >= v:
                return False
            p += p**2 / (v - p * (1 + a))
        return p * (1 + a) <= v

    low, high = 0.0, 2 * (k + a)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


ADAPTED = math.e / (math.e - 1)  # of `adapted` over k + a: its limit for k to infinity, a = k/(e - 2)


def of_sums(amount: dict[str, int]) -> Mean:
    """7.1 by DeComFL's own rounds on f = <w, x>, w along the largest eigenvalue of H, kappa = 3/2, left/right."""
    h = torch.tensor([1.0, 0.25, 0.25, 0.0], dtype=torch.float64)
    w = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    problem, K, P, found = Smooth(0 * w, 0 * w, a=w), 3, 2, []
    algorithm = DeComFL(1.0, K, P, 1e-3)
    for s in range(100 * amount["steps"]):
        state = algorithm.init(problem, torch.zeros(4, dtype=torch.float64), Key(s))
        new, _, _ = play_round(algorithm, problem, state, problem.clients, Key(s))
        found.append(float((h * new.server.x**2).sum()))
    return Mean.of(found, 1 / (K**2 + K * 2.5 / P))


# Drift


def local_drift(K: int, a: float, noise: bool = False) -> list[float]:
    """E|y^k - x|^2, k < K, on f = -|x|^2/2 with |g| = 1 and no noise, or with g = 0 and sigma = 1."""
    lr, c, e, out = step(K, a), 1 + a, 0.0, []
    for k in range(K):
        out.append(e)
        m = 0.0 if noise else (1 + lr) ** k - 1
        e = (1 + 2 * lr + lr**2 * c) * e + (lr**2 * c if noise else 2 * lr * m + lr**2 * c * (1 + 2 * m))
    return out


def drift_chain(K: int, a: float) -> tuple[list[float], Steps]:
    """Section 8 on it: the bound of the sum over k, step by step, over (1 - 1/K) theta K^3 eta^2."""
    lr, e = step(K, a), local_drift(K, a)
    own = [2 * lr**2 * (k**2 + k * a) for k in range(K)]
    drifted, before = 0.0, 0.0
    for v in e:
        drifted, before = drifted + 8 * lr**2 * (K + a) * before, before + v
    values = {
        "": sum(e),
        "3.2, 7.2": sum(own) + drifted,
        "8.2": 8 / 7 * sum(own),
        "8.1": 8 / 7 * (K - 1) * K * (K + a) * lr**2,
    }
    return chain({name: v / ((K - 1) * K * (K + a) * lr**2) for name, v in values.items()})


def drift(K: int, a: float) -> float:
    return drift_chain(K, a)[0][0] if K > 1 else 0.0


def drift_noise(K: int, a: float) -> float:
    """Over (1 - 1/K) (K eta)^2 c sigma^2/K."""
    return sum(local_drift(K, a, noise=True)) / ((K - 1) * K * step(K, a) ** 2 * (1 + a)) if K > 1 else 0.0


def seen(at: Instance, unit: float) -> float:
    """The drift of a client by DeComFL.client over all directions and samples, over its unit."""
    q = Enumerated(at, nodes=6)
    return float(sum(q.mean(((y[0] - at.x) ** 2).sum(-1)) for y in q.points)) / at.K / unit


def line(K: int, **options: Any) -> Instance:
    """-x^2/2 on the line, one Gaussian direction: a = 2."""
    return tiny(h=-1.0, K=K, lr=step(K, 2.0), **options)


# One round


def descent(K: int, a: float) -> float:
    """The decrease of |x|^2/2 in K eta |g|^2."""
    lr = step(K, a)
    return (1 - left(lr, a) ** K) / (2 * K * lr)


def left(lr: float, a: float) -> float:
    """What a step leaves of E|x|^2 there."""
    return 1 - 2 * lr + lr**2 * (1 + a)


def played(at: Instance, g2: float, unit: float) -> float:
    """E f(x^+) - f(x) + (K eta/2) |grad f|^2 by DeComFL's own lines over everything random, over a unit."""
    q = Enumerated(at, nodes=6)
    losses = Smooth(at.h, torch.zeros_like(at.h), a=at.a)
    rise = [float(q.mean(losses.values(end).mean(0))) - float(losses.values(at.x).mean()) for end in q.ends]
    return (sum(rise) / len(rise) + at.K * at.lr / 2 * g2) / unit


def once(noise: bool) -> float:
    """K = 1, P = 1 on the line, at a minimum of x^2/2: what samples, or one of two clients, add."""
    lr, unit = step(1, 2.0), 3 * step(1, 2.0) ** 2
    at = tiny(noise=1.0, lr=lr) if noise else tiny(a=[[1.0], [-1.0]], M=2, m=1, lr=lr)
    return played(at, 0.0, unit)


def apart(K: int = 2) -> float:
    """Clients +-(x^2/2 + x) + g x with the g of the page's last section, over (1 - 1/K) (K eta)^3 sigma_G^2."""
    lr = step(K, 0.0)
    g = (K - 1) * lr / 2
    at = tiny(h=[[1.0], [-1.0]], a=[[1 + g], [g - 1]], M=2, m=2, K=K, lr=lr, sphere=True)
    return played(at, g**2, (1 - 1 / K) * LONG**3)


def straight(K: int = 2) -> float:
    """The decrease of x^2/2 by it, with many directions."""
    at = tiny(x=1.0, K=K, lr=step(K, 0.0), sphere=True)
    return 0.5 - played(at, 1.0, LONG)


def apart_steps(K: int, exact: float) -> Steps:
    """What 12.4 loses on those clients: |delta| of step k is k eta, and the mean's is half of the last one's.

    `exact`: the worst case that the program finds.
    """
    mean, square = sum(range(K)) / K, sum(k**2 for k in range(K)) / K
    drift = square / K**2 / (1 - 1 / K)
    of_LQ = 0.61 / (8 / 7 * 2 / 3)  # where 1/2 would do
    rest = {"12.4, sum of squares": 1 / (3 * drift), "8.2": 8 / 7, "12.3, 12.4: of LQ": 2 * of_LQ}
    return {
        "12.3, square of the mean over steps": square / mean**2,
        "3.2": mean**2 / K**2 / (1 - 1 / K) / exact,
        **rest,
    }


# Smoothing


def angular(d: int, points: int = 20001) -> float:
    """E[psi |t|] on the unit sphere, t along u: psi = 1/2 where |t| > |y|, else |t| |y|."""
    if d == 1:
        return 0.5
    angle = torch.linspace(0, math.pi / 2, points, dtype=torch.float64)
    t, y = angle.cos(), angle.sin()
    weight = y ** (d - 2)
    psi = torch.where(t > y, 0.5, t * y)
    return float(torch.trapezoid(weight * psi * t, angle) / torch.trapezoid(weight, angle))


def bias2(d: int, sphere: bool = False) -> float:
    """|E ze|^2/(mu L)^2 of f = L sign(t) (t^2 + |y|^2)/2 where |t| > |y| and L t |y| elsewhere, t one of d entries.

    It is L-smooth, and odd: a difference misses the slope at 0 by mu f(z).
    """
    cubed = d**1.5 if sphere else 2**1.5 * math.gamma((d + 3) / 2) / math.gamma(d / 2)
    return (cubed * angular(d)) ** 2


def bias2_at_most(d: int) -> float:
    """(E|z|)^2: by 2.2 no L-smooth loss has more."""
    return 2 * math.exp(2 * (math.lgamma((d + 1) / 2) - math.lgamma(d / 2)))


def bound2(kappa: float) -> float:
    """b^2/(mu L)^2 of 6.5, and of 2.2 with kappa = d."""
    return kappa


def spread2(kappa: float) -> float:
    """The square of b with a tilde in 6.5, over (mu L)^2."""
    return kappa * (kappa + 7) / 4


def bias_steps(d: int) -> Steps:
    """2.2 takes E|z|^2 for the square of E|z|."""
    limit = bias2_at_most(d)
    return {"2.2": bound2(d) / limit, "the instance, which may not be the worst": limit / bias2(d)}


def errors() -> float:
    """7.3 for K = P = d = 1 by DeComFL's own lines on x^2/2 at 0: E eps^2 over what 7.3 multiplies by two."""
    q = Enumerated(tiny(mu=0.5, lr=step(1, 2.0)), nodes=6)
    return float(q.mean((q.G[0, :, 0] ** 2).sum(-1))) / (0.25 * (bound2(1) + 2 * spread2(1)))


# Whole runs


def start(K: int, a: float) -> float:
    """|x|^2/2 without noise, R to infinity."""
    return K * step(K, a) / (1 - left(step(K, a), a) ** K)


def drawn(K: int, a: float) -> float:
    """11.3: what one of many clients |x - b_i|^2/2 leaves, over 2 K eta theta gamma sigma_G^2/m."""
    lr = step(K, a)
    q = left(lr, a) ** K
    kept = (1 - lr) ** K
    return ((1 - kept) ** 2 + (q - kept**2)) / (1 - q) / (2 * lr * (K + a))


def rest(K: int = 8) -> float:
    """Where rounds of DeComFL with many directions leave two clients of curvatures 1 and -0.999 as they are:
    |grad f|^2 over 1.22 (1 - 1/K) (K eta)^2 sigma_G^2.
    """
    problem = opposed(step(K, 0.0), K)
    assert problem.a is not None
    at = tiny(h=problem.h.tolist(), a=problem.a.tolist(), M=2, m=2, K=K, lr=step(K, 0.0), sphere=True)
    return slope_left(problem, Enumerated(at).ends) / (1.22 * (1 - 1 / K) * LONG**2)


def sampled(K: int, a: float) -> float:
    """11.2: what samples leave, over 2 eta c sigma^2/m."""
    return 1 / (2 * (2 - step(K, a) * (1 + a)))


def reached(amount: dict[str, int]) -> Mean:
    """The theorem's left over right side on |x|^2/2, d = 4, K = 4, P = 2, in the mean over runs."""
    d, K, P = 4, 4, 2
    lr = step(K, (d + 1) / P)
    one = torch.ones(1, d, dtype=torch.float64)
    problem, T = Smooth(one, 0 * one), round(2 / (K * lr))
    runs = [squares(DeComFL(lr, K, P, TINY), problem, one[0], T, Key(s)) for s in range(amount["steps"])]
    return Mean.of(runs, K * lr * T / (2 * d / 2))


@torch.no_grad()
def typical(T: int) -> tuple[dict[str, float], str]:
    """DeComFL on a small problem of SSF's kind, full gradients, H = LI."""
    problem: Problem = MatrixRegression.ssf(0.5, Key(17), n=10, rows=50, d=12, m=4, batch=None)
    K, P, L = 4, 10, known(problem.constants.L)
    a = (problem.d + 1) / P
    lr, theta = step(K, a) / L, 1 + a / K
    algorithm, key = DeComFL(lr, K, P, TINY), Key(3)
    x = problem.start()
    state, above, full = algorithm.init(problem, x, key), gap(problem, x), problem.full(problem.clients)
    G2, zeta2, drifts, units = [], [], 0.0, 0.0
    for t in range(T):
        at, x = key.fold("round", t), state.server.x
        g = problem.grads(x.expand(problem.n, -1), full)
        G2.append(float((g.mean(0) ** 2).sum()))
        zeta2.append(float(((g - g.mean(0)) ** 2).sum(-1).mean()))
        down = algorithm.broadcast(state.server, at)
        path, _ = drain(algorithm.client(problem, problem.clients, None, down, at))
        drifts += sum(float(((y - x) ** 2).sum(-1).mean()) for y in path) / K
        units += float((g**2).sum(-1).mean())
        state, _, _ = play_round(algorithm, problem, state, problem.clients, at)
    right = 2 * above / (K * lr * T) + 6 * (1 - 1 / K) * (L * K * lr) ** 2 * theta * max(zeta2)
    return {
        "drift, K": drifts / ((1 - 1 / K) * (K * lr) ** 2 * theta * units),
        "theorem, K": sum(G2) / T / right,
    }, f"Then {T} rounds with K = {K}, H = LI, all clients."


MANY = "many directions, two clients"
BOTH = "f = |x|^2/2 or -|x|^2/2, the worst K and P of a grid"


def entries() -> list[Entry]:
    at = most(drift)
    rows = [
        Entry(
            "sums of directions (7.1)", "L (k^2 + k a) |w|^2", 1.0, "w along the largest eigenvalue of H", "exact",
            lambda: 1.0, claim="decomfl.lemma5.sum", reached=of_sums, why="attained: 1.2 in every step",
        ),
        Entry(
            "sums of what drifts (7.2)", "L (k + a) sum E|delta|^2", 2.0, "H = LI, k to infinity, a = k/(e - 2)",
            "exact", lambda: ADAPTED,
            why="e/(e - 1), the value of a control problem; deltas that no loss need have",
        ),
        Entry(
            "bias (6.5), d = 1", "mu^2 L^2", bound2(1), "f = x |x|/2", "exact", lambda: bias2(1),
            claim="decomfl.lemma2a",
        ),
        Entry(
            "bias (6.5), d = 10", "mu^2 L^2", bound2(10), "f = t |y| between cones of x^2/2", "lower bound",
            lambda: bias2(10), claim="decomfl.lemma2a", why="over d it tends to 1 as d grows",
        ),
        Entry(
            "sums of errors (7.3), K = 1", "L (k^2 b^2 + k a b~^2)", 2.0, "f = |x|^2/2, g = 0, P = 1, d to infinity",
            "lower bound", lambda: 1.0, reached=lambda amount: errors(),
            why="(d^2 + 6d + 8)/(d^2 + 8d + 11); reached: at d = 1",
        ),
        Entry(
            "drift (8), K = 2", "(1 - 1/K) L (K eta)^2 theta |g_i|^2", 8 / 7, f"{MANY}, K = 2", "SDP",
            partial(ours.bare_drift, 2, LONG), claim="decomfl.lemma5", steps=lambda: drift_chain(2, 0.0)[1],
            reached=lambda amount: seen(tiny(h=-1.0, a=1.0, K=2, lr=step(2, 0.0), sphere=True), LONG**2 / 2),
        ),
        Entry(
            "drift (8), any K and P", "(1 - 1/K) L (K eta)^2 theta |g_i|^2", 8 / 7, BOTH, "lower bound",
            lambda: drift(*at), claim="decomfl.lemma5", typical="drift, K", steps=lambda: drift_chain(*at)[1],
            reached=lambda amount: seen(line(2, a=1.0), 0.5 * 2 * (2 * step(2, 2.0)) ** 2),
        ),
        Entry(
            "drift (8), noise", "(1 - 1/K) L (K eta)^2 c sigma^2/K", 8 / 7, BOTH, "lower bound",
            lambda: drift_noise(*most(drift_noise)), claim="decomfl.lemma5",
            reached=lambda amount: seen(line(2, noise=1.0), 3 * step(2, 2.0) ** 2),
            steps=lambda: {"3.2": 2.0, "8.2 less what drifts itself": 4 / 7 / drift_noise(*most(drift_noise))},
        ),
        Entry(
            "round (9), K = 2", "K eta |g|^2", 0.5, f"{MANY}, K = 2", "SDP",
            partial(ours.bare_round, 2, LONG, LONG, 1.5), descent=True, reached=lambda amount: straight(),
        ),
        Entry(
            "round (9), any K and P", "K eta |g|^2", 0.5, "f = |x|^2/2, the worst K and P of a grid", "lower bound",
            lambda: min(descent(*at) for at in GRID), descent=True,
        ),
        *(Entry(
            f"round (9), {name}, K = 1", unit, 1.0, "f = |x|^2/2, g = 0", "exact", lambda: 0.5, reached=found,
            why="3.2 keeps it apart from the drift and the smoothing, of which there is none here",
        ) for name, unit, found in (
            ("drawn clients", "L (K eta)^2 theta gamma sigma_G^2/m", lambda amount: once(False)),
            ("noise", "L (K eta)^2 c sigma^2/(mK)", lambda amount: once(True)),
        )),
        Entry(
            "round (12.4), drift, K = 2", "(1 - 1/K) L^2 (K eta)^3 (3 theta - 2) sigma_G^2", 0.61,
            f"{MANY}, K = 2", "SDP",
            partial(ours.bare_spread, 2, LONG, 0.5), reached=lambda amount: apart(), 
            steps=lambda: apart_steps(2, ours.bare_spread(2, LONG, 0.5).dual),
        ),
        *(Entry(
            f"round (9), smoothing, d = {d}", "K eta b^2", 3.0, "g = -b, small steps", "lower bound",
            lambda d=d: bias2(d) / 2 / bound2(d), steps=lambda d=d: {**bias_steps(d), "9.1": 4.0, "9.4": 3 / 2},
        ) for d in (1, 10)),
    ]  # fmt: skip
    rows += [
        Entry(
            "theorem with K, R to infinity", "left/right", 1.0, "f = |x|^2/2, the worst K and P of a grid",
            "lower bound", lambda: start(*most(start)), claim="decomfl.theorem1 / theorem3", kind="theorem",
            typical="theorem, K", reached=reached,
        ),
        Entry(
            "theorem with K, drawn clients", "left/right", 1.0, "f_i = |x - b_i|^2/2, worst K and P (11.3)",
            "lower bound", lambda: drawn(*most(drawn)), claim="decomfl.theorem1 / theorem3", kind="theorem",
        ),
        Entry(
            "theorem with K, noise", "left/right", 1.0, "f = |x|^2/2, worst K and P (11.2)", "lower bound",
            lambda: sampled(*most(sampled)), claim="decomfl.theorem1 / theorem3", kind="theorem",
        ),
        Entry(
            "theorem (12.4), drift", "left/right", 1.0, "curvatures 1 and -1, many directions, K to infinity, eta to 0",
            "lower bound", lambda: 1 / 4 / 1.22, claim="decomfl.theorem1 / theorem3", kind="theorem",
            reached=lambda amount: rest(), why="where FedAvg rests on them: a run that starts there stays",
        ),
        *(Entry(
            f"theorem with K, smoothing, d = {d}", "left/right", 1.0, "rest at g = -b, small steps", "lower bound",
            lambda d=d: bias2(d) / (6 * bound2(d)), claim="decomfl.theorem1 / theorem3", kind="theorem",
            steps=lambda d=d: {**bias_steps(d), "9.1": 8 / 3, "9.2": 1.5, "9.4": 1.5},
            why="the first of the two terms with mu",
        ) for d in (1, 10)),
        Entry(
            "corollary (10.1), noise", "left/right", 1.0, "f = |x|^2/2 with noise, R to infinity", "lower bound",
            lambda: 3 / 8, claim="decomfl.corollary1", kind="theorem",
            why="at the corollary's step; 10.2 rounds the square root of 48 to 7",
        ),
        Entry(
            "Theorem 2 (10.4), smoothing, d = 10", "mu^2 L^2", 20.0, "the sphere, small steps, rest at g = -b",
            "lower bound", lambda: bias2(10, sphere=True), printed=13**3 / 2, claim="decomfl.theorem2 / theorem4",
            kind="theorem",
        ),
        Entry(
            "numbers a client must send (11.1)", "log(1/epsilon)", 11.0, "|x|^2/2, kappa = d = 10, P = 1, best step",
            "exact", lambda: 1 / math.log(12 / 11), claim="decomfl.remark1-2", descent=True,
            why="a bound from below; P = 1 is the best",
        ),
    ]  # fmt: skip
    return rows
