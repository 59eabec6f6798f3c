"""DeComFL: rounds of its own code on enumerated directions and noise, and exact moments for any P and K on quadratics.

What this paper needs beyond the others: all clients of a round step along the same z_{r,p}^k, and all P scalars of a
local step are measured on the same minibatch xi_{i,r}^k. Neither is independent, and both decide variances.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from fedtheory.algorithms.decomfl import Model
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.key import Key
from fedtheory.theory import bench
from fedtheory.theory.bench import Bench
from fedtheory.theory.claim import Check, Outcome, Printed, entries
from fedtheory.theory.decomfl.formulas import FORMULAS
from fedtheory.theory.instances import Sample, Smooth, drain, parse, plain
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import ROUNDING, worst

decomfl = entries("decomfl")
ROOT = Key(2405)
DOUBLE = torch.float64
SMALL_MU = 2.0**-20  # mu of instances in which it plays no part: the paper has mu > 0
A1 = Printed("A1: unbiased stochastic gradients of variance at most sigma^2 at the x_r", "Assumption 1")
MEAN = Printed("f_i is the mean of f_i(.; xi), so that its gradients are unbiased everywhere", "eq. (1)")
A2 = Printed("A2: ||grad f - grad f_i||^2 <= sigma_G^2", "Assumption 2")
A3 = Printed("A3: f is L-smooth", "Assumption 3")
A4 = Printed("A4: Hess f <= H(x_r) <= L I in a ball around x_r, tr H <= kappa ||H||", "Assumption 4")
UNIFORM = Printed("C_r a set of m clients, uniform", "Algorithm 1, line 5")
EACH = "every f_i(.; xi) is L-smooth (Assumption 3 says it of f alone)"
LOCAL = (
    ". With every f_i(.; xi) L-smooth, and the variance of Assumption 1 at every point, not only where a client "
    "stands: it bounds what smoothing adds to the minibatch's gradient, which all P scalars share"
)


# An instance: quadratic clients f_i(x; xi) = x^T diag(h_i) x/2 + (a_i + xi u_i)^T x with xi = +-1


@dataclass(frozen=True)
class Instance:
    """A state of DeComFL on quadratics.

    Fields:
        h, a, noise: h_i, a_i, u_i, each (M, d).
        x: x_r, (d,).
        lr, K, P, mu, m, L: of the paper.
        sphere: z on the sphere of radius sqrt(d); else Gaussian.
    """

    h: torch.Tensor
    a: torch.Tensor
    noise: torch.Tensor
    x: torch.Tensor
    lr: float
    K: int = 1
    P: int = 1
    mu: float = 0.0
    m: int = 1
    L: float = 1.0
    sphere: bool = False

    @property
    def M(self) -> int:
        return len(self.h)

    @property
    def d(self) -> int:
        return self.h.shape[1]

    @property
    def sigma2(self) -> float:
        return float((self.noise**2).sum(1).max())

    @property
    def dissimilarity2(self) -> float:
        """max_i ||grad f_i - grad f||^2 at x_r, the smallest sigma_G^2 that Assumption 2 allows."""
        own = self.h * self.x + self.a
        return float(((own - own.mean(0)) ** 2).sum(1).max())

    @cached_property
    def maps(self) -> "Maps":
        return Maps.of(self)

    def rescaled(self, loss: float, variable: float) -> "Instance":
        """Losses times `loss`, variables times `variable`."""
        g, h = loss / variable, loss / variable**2
        return replace(
            self, h=self.h * h, a=self.a * g, noise=self.noise * g, x=self.x * variable, lr=self.lr / h,
            mu=self.mu * variable, L=self.L * h,
        )  # fmt: skip


def tiny(
    h: Any = 1.0,
    a: Any = 0.0,
    noise: Any = 0.0,
    x: Any = 0.0,
    *,
    M: int = 1,
    d: int = 1,
    lr: float = 1 / 8,
    **options: Any,
) -> Instance:
    """h, a, noise: one number, or lists that broadcast to (M, d); x: to (d,)."""
    table = lambda v: torch.tensor(v, dtype=DOUBLE).expand(M, d).clone()
    return Instance(table(h), table(a), table(noise), torch.tensor(x, dtype=DOUBLE).expand(d).clone(), lr, **options)


def load(data: dict[str, Any]) -> Instance:
    """An instance from its stored numbers."""
    return Instance(**{name: parse(value) for name, value in data.items()})


# Step sizes


@cache
def steps_of_theorem1(d: int, K: int, P: int, m: int, L: float = 1.0) -> Mapping[str, float]:
    """c1 to c4."""
    at = {"d": d, "K": K, "P": P, "m": m, "L": L}
    return {f"c{k}": FORMULAS[f"printed_c{k}"].right(at, float) for k in range(1, 5)}


def step_of_lemma5(d: int, K: int, P: int, L: float = 1.0) -> float:
    return 2 * P / (math.sqrt(6) * L * K * math.sqrt(d + P + 4))


def rank_factor(d: int, P: int, kappa: float, sphere: bool = True) -> float:
    """1 + (kappa d + d - 2)/(P (d + 2)) of Theorem 2; for Gaussian z the same moment gives 1 + (kappa + 1)/P."""
    return 1 + ((kappa * d + d - 2) / (d + 2) if sphere else kappa + 1) / P


def rank_of(H: torch.Tensor) -> float:
    """tr H/||H|| of a diagonal H, as printed: from -d to d."""
    return float(H.sum() / H.abs().max()) if bool((H != 0).any()) else 1.0


def kappa_of(at: Instance) -> float:
    """Effective rank of the smallest diagonal H that lies above every Hessian and is not negative."""
    return rank_of(at.h.mean(0).clamp(min=0))


def slacks(at: Instance, needs: Sequence[str] = ()) -> dict[str, float]:
    """Left over right of every assumption: admissible where none exceeds 1."""
    found = {"A3: max |h| / L": float(at.h.abs().max()) / at.L}
    if "theorem1" in needs:
        found |= {name: at.lr / top for name, top in steps_of_theorem1(at.d, at.K, at.P, at.m, at.L).items()}
    if "lemma5" in needs:
        found["eta of Lemma 5"] = at.lr / step_of_lemma5(at.d, at.K, at.P, at.L)
    if "theorem2" in needs:
        found["eta of Theorem 2"] = at.lr * 4 * at.L * rank_factor(at.d, at.P, kappa_of(at))
    return found


def admissible(at: Instance, needs: Sequence[str] = ()) -> dict[str, float]:
    """The slacks; AssertionError where an assumption is not met."""
    found = slacks(at, needs)
    if bad := {name: value for name, value in found.items() if value > 1 + ROUNDING}:
        raise AssertionError(f"not admissible: {bad}")
    return found


# Moments


@cache
def pairs(M: int, m: int) -> torch.Tensor:
    """E[1(i in C) 1(j in C)]/m^2 for a uniform set C of m clients, (M, M)."""
    off = (m - 1) / (m * M * (M - 1)) if M > 1 else 0.0
    return torch.full((M, M), off, dtype=DOUBLE) + (1 / (m * M) - off) * torch.eye(M, dtype=DOUBLE)


class Maps(NamedTuple):
    """What every local step of every round from an instance shares, on the state (x_1..x_M, T_1..T_M, 1).

    Attributes:
        gradient: the state to all grad f_i(x_i), (M d, 2 M d + 1).
        step: the state to the next one but for the estimates' errors, (2 M d + 1, 2 M d + 1).
        noise: of the minibatches, (M, M, d, d).
        curvature: what mu adds to the second moments of the estimates, (M, M, d, d).
        four, eye: E of fourth moments over those of Gaussian z, and the unit matrix of d.
        one: the second moments of a state that is 0 but for its last entry, (2 M d + 1, 2 M d + 1).
    """

    gradient: torch.Tensor
    step: torch.Tensor
    noise: torch.Tensor
    curvature: torch.Tensor
    four: float
    eye: torch.Tensor
    one: torch.Tensor

    @classmethod
    def of(cls, at: Instance) -> "Maps":
        M, d, size = at.M, at.d, at.M * at.d
        gradient = torch.zeros(size, 2 * size + 1, dtype=DOUBLE)
        gradient[:, :size], gradient[:, -1] = torch.diag(at.h.flatten()), at.a.flatten()
        step = torch.eye(2 * size + 1, dtype=DOUBLE)
        step[:size] -= at.lr * gradient
        step[size : 2 * size] += gradient
        four = d / (d + 2) if at.sphere else 1.0
        six = d**2 / ((d + 2) * (d + 4)) if at.sphere else 1.0
        eye, same = torch.eye(d, dtype=DOUBLE), torch.eye(M, dtype=DOUBLE)[..., None, None]
        noise = same * torch.einsum("ia,jb->ijab", at.noise, at.noise)
        one = torch.zeros_like(step)
        one[-1, -1] = 1
        return cls(gradient, step, noise, at.mu**2 / (4 * at.P) * six * curvatures(at.h), four, eye, one)


class Round:
    """Exact second moments of one round from x_r, or from a random x_r with given mean and second moment.

    The state is (x_1..x_M, T_1..T_M, 1), T_i the sum of grad f_i over the steps so far. All M clients are followed,
    sampled or not, as the proof does.

    Attributes:
        G: E<G_i^k, G_j^k>, K matrices (M, M); `exact`: the same of grad f_i(x_i^k), which is grad f_i^mu(x_i^k) here.
        apart: E of the squared entries of x_i^k - x_r, K tensors (M, d), from a given x_r; `distance`: their sums.
    """

    def __init__(self, at: Instance, mean: torch.Tensor | None = None, second: torch.Tensor | None = None) -> None:
        M, d, size = at.M, at.d, at.M * at.d
        mean = at.x if mean is None else mean
        second = torch.outer(mean, mean) if second is None else second
        gradient, step, noise, curvature, four, eye, one = at.maps
        S = one.clone()
        S[:size, :size] = second if M == 1 else second.repeat(M, M)
        S[:size, -1] = S[-1, :size] = mean if M == 1 else mean.repeat(M)
        self.at, self.size, self.start, self.mean, self.second = at, size, S, mean, second
        self.steps: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []  # state, G and grad f_i of each
        for _ in range(at.K):
            exact = (gradient @ S @ gradient.T).view(M, d, M, d).permute(0, 2, 1, 3)
            W = exact + noise
            G = (1 - 1 / at.P) * W + four / at.P * (traces(W)[..., None, None] * eye + W + W.mT) + curvature
            self.steps.append((S, G, exact))
            S = step @ S @ step.T
            own = S[:size, :size]
            own += at.lr**2 * (G - exact).permute(0, 2, 1, 3).reshape(size, size)
        self.end = S

    @cached_property
    def G(self) -> list[torch.Tensor]:
        return [traces(G) for _, G, _ in self.steps]

    @cached_property
    def exact(self) -> list[torch.Tensor]:
        return [traces(exact) for _, _, exact in self.steps]

    @cached_property
    def apart(self) -> list[torch.Tensor]:
        n, M, mean = self.size, self.at.M, self.mean
        own = lambda S: S[:n, :n].diagonal().view(M, -1) - 2 * mean * S[:n, -1].view(M, -1)
        return [own(S) + mean**2 for S, _, _ in self.steps]

    @property
    def distance(self) -> list[torch.Tensor]:
        return [own.sum(1) for own in self.apart]

    def _sampled(self, block: torch.Tensor) -> torch.Tensor:
        """E of the mean over C of the second moments of (M d)-vectors, (d, d)."""
        M, d = self.at.M, self.at.d
        return block if M == 1 else torch.einsum("ij,iajb->ab", pairs(M, self.at.m), block.view(M, d, M, d))

    @cached_property
    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and second moment of x_{r+1}."""
        n = self.size
        return self.end[:n, -1].view(self.at.M, self.at.d).mean(0), self._sampled(self.end[:n, :n])

    @cached_property
    def gradient2(self) -> float:
        """||grad f(x_r)||^2 in expectation."""
        d, h, a = self.at.d, self.at.h.mean(0), self.at.a.mean(0)
        second, mean = self.start[:d, :d], self.start[:d, -1]
        return float((h**2 * second.diagonal()).sum() + 2 * (h * a * mean).sum() + a @ a)

    @cached_property
    def dissimilar(self) -> torch.Tensor:
        """E||grad f_i(x_r) - grad f(x_r)||^2, (M,)."""
        d, h, a = self.at.d, self.at.h - self.at.h.mean(0), self.at.a - self.at.a.mean(0)
        second, mean = self.start[:d, :d], self.start[:d, -1]
        return (h**2 * second.diagonal() + 2 * h * a * mean + a**2).sum(1)

    @property
    def gain(self) -> float:
        """E f(x_{r+1}) - E f(x_r)."""
        d, h, a = self.at.d, self.at.h.mean(0), self.at.a.mean(0)
        mean, second = self.next
        value = lambda mean, second: float((h * second.diagonal()).sum() / 2 + a @ mean)
        return value(mean, second) - value(self.start[:d, -1], self.start[:d, :d])

    @property
    def moved(self) -> float:
        """E||x_{r+1} - x_r||^2/eta^2, from a given x_r."""
        mean, second = self.next
        x = self.at.x
        return float(second.trace() - 2 * x @ mean + x @ x) / self.at.lr**2

    @property
    def chi(self) -> float:
        """chi_r."""
        return float(torch.stack(self.distance).sum(0).mean())

    @property
    def far(self) -> torch.Tensor:
        """E||x_i^k - x_r||^2, (K, M)."""
        return torch.stack(self.distance)

    @property
    def size2(self) -> torch.Tensor:
        """E||G_i^k||^2, (K, M)."""
        return torch.stack([G.diagonal() for G in self.G])

    @property
    def exact2(self) -> torch.Tensor:
        """E||grad f_i(x_i^k)||^2, (K, M)."""
        return torch.stack([exact.diagonal() for exact in self.exact])

    @property
    def together(self) -> float:
        """E||(1/m) sum_{i in C} sum_k [G_i^k - grad f_i^mu(x_i^k)]||^2: a martingale in k, not independent in i."""
        weights = pairs(self.at.M, self.at.m)
        return sum(float((weights * (G - exact)).sum()) for G, exact in zip(self.G, self.exact, strict=True))

    def summed(self, weights: torch.Tensor) -> float:
        """sum_ij w_ij E<sum_k grad f_i(x_i^k), sum_k grad f_j(x_j^k)>."""
        n, M, d = self.size, self.at.M, self.at.d
        block = self.end[n : 2 * n, n : 2 * n].view(M, d, M, d)
        return float(torch.einsum("ij,iaja->", weights, block))

    @property
    def of_sample(self) -> float:
        """E||(1/m) sum_{i in C} sum_k grad f_i^mu(x_i^k)||^2."""
        return self.summed(pairs(self.at.M, self.at.m))

    @property
    def of_all(self) -> float:
        """E||(1/M) sum_i sum_k grad f_i^mu(x_i^k)||^2."""
        return self.summed(pairs(self.at.M, self.at.M))


def traces(blocks: torch.Tensor) -> torch.Tensor:
    return blocks.diagonal(dim1=-2, dim2=-1).sum(-1)


def curvatures(h: torch.Tensor) -> torch.Tensor:
    """E[z z^T (z^T H_i z)(z^T H_j z)] for Gaussian z and H_i = diag(h_i), (M, M, d, d)."""
    t, both = h.sum(1), h[:, None] * h[None]
    across = t[:, None, None] * h[None] + t[None, :, None] * h[:, None]
    return torch.diag_embed((t[:, None] * t + 2 * both.sum(-1))[..., None] + 2 * across + 8 * both)


def course(at: Instance, rounds: int) -> Iterator[Round]:
    """The rounds from x_r = at.x on, each from the random point where the one before it ends."""
    mean, second = at.x, torch.outer(at.x, at.x)
    for _ in range(rounds):
        q = Round(at, mean, second)
        yield q
        mean, second = q.next


def trajectory(at: Instance, rounds: int) -> list[float]:
    """E||grad f(x_r)||^2, r = 0, ..., rounds - 1."""
    return Run(at, rounds).gradient2


class Run:
    """The rounds from x_0 = at.x on. Their values are computed for all at once, with the bits of each `Round`.

    Attributes:
        gradient2: E||grad f(x_r)||^2, r = 0, ..., rounds - 1.
        dissimilar: E||grad f_i(x_r) - grad f(x_r)||^2, (rounds, M).
        gains: E f(x_{r+1}) - E f(x_r).
    """

    def __init__(self, at: Instance, rounds: int) -> None:
        played = list(course(at, rounds))
        mean, second = played[-1].next
        self.at, self.played = at, played
        self.means = torch.stack([*(q.mean for q in played), mean])
        self.squares = torch.stack([*(q.second for q in played), second]).diagonal(dim1=1, dim2=2)

    @cached_property
    def gradient2(self) -> list[float]:
        h, a = self.at.h.mean(0), self.at.a.mean(0)
        means, squares = self.means[:-1], self.squares[:-1]
        return ((h**2 * squares).sum(1) + 2 * (h * a * means).sum(1) + a @ a).tolist()

    @cached_property
    def dissimilar(self) -> torch.Tensor:
        h, a = self.at.h - self.at.h.mean(0), self.at.a - self.at.a.mean(0)
        means, squares = self.means[:-1, None], self.squares[:-1, None]
        return (h**2 * squares + 2 * h * a * means + a**2).sum(2)

    @cached_property
    def gains(self) -> list[float]:
        h, a = self.at.h.mean(0), self.at.a.mean(0)
        curved = (h * self.squares).sum(1) / 2
        # products of the tensors themselves: copies of theirs have other strides and alignments, thus other bits
        start = torch.stack([a @ q.start[: self.at.d, -1] for q in self.played])
        end = torch.stack([a @ q.next[0] for q in self.played])
        return [after - before for before, after in zip((curved[:-1] + start).tolist(), (curved[1:] + end).tolist())]


def averages(values: Sequence[float] | torch.Tensor) -> torch.Tensor:
    """Of the first R of them, for every R."""
    return torch.as_tensor(values, dtype=DOUBLE).cumsum(0) / torch.arange(1, len(values) + 1, dtype=DOUBLE)


def bounded(at: Instance) -> Instance:
    """The same with all clients' Hessians moved so that their mean, that of f, is positive, and no |h| is above 1."""
    mean = at.h.mean(0)
    h = at.h - mean + mean.abs().clamp(min=0.02)
    return replace(at, h=h / h.abs().max().clamp(min=1))


def start_gap(at: Instance) -> float:
    """D = f(x_0) - f*; inf where f has no minimum."""
    h, g = at.h.mean(0), at.h.mean(0) * at.x + at.a.mean(0)
    if bool(((h <= 0) & ((h < 0) | (g != 0))).any()):
        return math.inf
    return float((g**2 / h.clamp(min=1e-300) / 2).sum())


# The algorithm's own rounds on enumerated directions and noise


@dataclass(frozen=True)
class Rows:
    """A direction per row in place of one for all: z (S, d)."""

    z: torch.Tensor

    def __iter__(self):
        yield slice(0, self.z.shape[1]), self.z

    def losses(self, problem: Any, y: torch.Tensor, mu: float, xi: Any) -> torch.Tensor:
        return problem.losses(y + mu * self.z, xi)


@dataclass(frozen=True)
class Played(DeComFLReading):
    """DeComFL whose seeds count the directions in `rows`, (S, K P, d)."""

    rows: torch.Tensor = field(kw_only=True)

    def directions(self, layout: Any, seeds: torch.Tensor, like: torch.Tensor) -> list[Any]:
        return [Rows(self.rows[:, seed]) for seed in seeds.tolist()]


class Given(Smooth):
    """A problem whose noise factors are given, (K, S, 1)."""

    def __init__(self, base: Smooth, factors: torch.Tensor) -> None:
        for name, value in vars(base).items():
            setattr(self, name, value)
        self.factors = factors

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Sample]:
        return [Sample(clients, self.factors[k]) for k in range(steps)]


def directions(d: int, sphere: bool, nodes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points z and weights that integrate polynomials of degree < 2 nodes exactly (sphere: d = 1, 2)."""
    if sphere and d == 1:
        return torch.tensor([[1.0], [-1.0]], dtype=DOUBLE), torch.full((2,), 0.5, dtype=DOUBLE)
    if sphere:
        angle = torch.arange(2 * nodes, dtype=DOUBLE) * (math.pi / nodes)
        return math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], 1), torch.full(
            (2 * nodes,), 0.5 / nodes, dtype=DOUBLE
        )
    points, weights = (torch.tensor(v, dtype=DOUBLE) for v in np.polynomial.hermite_e.hermegauss(nodes))
    grid = torch.cartesian_prod(*[torch.arange(nodes)] * d).view(-1, d)
    return points[grid], (weights / weights.sum())[grid].prod(1)


class Enumerated:
    """One round of `DeComFL.client` and of the server's line over all directions, noise and sampled sets.

    Attributes:
        p: probability of a scenario, (C,).
        z: (C, K, P, d); g: (M, C, K, P); points: x_i^k, (K, M, C, d); G: (M, C, K, d).
        ends: (sets, C, d): x_{r+1} for each set of m clients.
    """

    def __init__(self, at: Instance, *, losses: Smooth | None = None, nodes: int = 4, **options: Any) -> None:
        M, d, K, P = at.M, at.d, at.K, at.P
        base = losses or Smooth(at.h, torch.zeros_like(at.h), a=at.a, noise=at.noise)
        values, weights = directions(d, at.sphere, nodes)
        noisy = bool((at.noise != 0).any())
        signs = torch.tensor(list(itertools.product((1.0, -1.0), repeat=K * M if noisy else 0)), dtype=DOUBLE)
        pick = torch.cartesian_prod(*[torch.arange(len(values))] * (K * P)).view(-1, K * P)
        z = values[pick].repeat_interleave(len(signs), 0)  # (C, K P, d)
        self.p = weights[pick].prod(1).repeat_interleave(len(signs)) / len(signs)
        C = len(z)
        factors = (
            signs.repeat(len(pick), 1).view(C, K, M).permute(1, 2, 0) if noisy else torch.zeros(K, M, C, dtype=DOUBLE)
        )
        problem = Given(base, factors.reshape(K, M * C, 1))
        options = {"scalar": "forward" if at.mu else "central"} | options  # central: exact on quadratics, as mu -> 0
        algorithm = Played(at.lr, K, P, at.mu or 1.0, rows=z.repeat(M, 1, 1), **options)
        down = algorithm.broadcast(algorithm.init(problem, at.x, ROOT).server, ROOT)
        down = replace(down, seeds=torch.arange(K * P).view(K, P))
        points, (up, _) = drain(algorithm.client(problem, torch.arange(M).repeat_interleave(C), None, down, ROOT))
        self.at, self.algorithm, self.problem = at, algorithm, problem
        self.points = torch.stack(points).view(K, M, C, d)
        self.g, self.z = up.g.view(M, C, K, P), z.view(C, K, P, d)
        self.G = torch.einsum("mckp,ckpd->mckd", self.g, self.z) / P
        self.sets = [list(rows) for rows in itertools.combinations(range(M), at.m)]
        self.ends = torch.stack([self.server(self.g[rows].mean(0)) for rows in self.sets])

    def server(self, g: torch.Tensor) -> torch.Tensor:
        """x_{r+1} from scalars (C, K, P) by the algorithm's own line."""
        server = replace(self.algorithm, rows=self.z.flatten(1, 2))
        model = Model(self.at.x.expand(len(self.z), -1).clone(), None)
        for k in range(self.at.K):
            own = server.directions(None, torch.arange(self.at.P) + k * self.at.P, model.x)
            server.move(model, own, g[:, k], self.at.lr)
        return model.x

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """E over the scenarios, axis 0."""
        return torch.tensordot(self.p, values, dims=1)


# Checks

Terms = bench.Terms[Round]
STEPS = {"theorem1": lambda e: min(steps_of_theorem1(e.d, e.K, e.P, e.m).values()),
         "lemma5": lambda e: step_of_lemma5(e.d, e.K, e.P)}  # fmt: skip


@dataclass(frozen=True)
class Edge(bench.Edge):
    """A discrete setting: sizes, how large the step is, whether there is noise, which z."""

    M: int = 1
    m: int = 1
    d: int = 1
    K: int = 1
    P: int = 1
    rule: str | Callable[["Edge"], float] = "theorem1"
    share: float = 1.0
    noisy: bool = True
    sphere: bool = False

    def parts(self) -> dict[str, int]:
        each = self.M * self.d
        return {"h": each, "a": each, "noise": each, "x": self.d, "mu": 1}

    def __str__(self) -> str:
        z = "sphere" if self.sphere else "Gaussian"
        return f"M={self.M}, m={self.m}, d={self.d}, K={self.K}, P={self.P}, {z}"


def build(v: torch.Tensor, e: Edge) -> Instance:
    """The instance that free numbers stand for, L = 1."""
    h, a, noise, x, mu = e.split(v.detach()).values()
    h = h.view(e.M, e.d)
    rule = STEPS[e.rule] if isinstance(e.rule, str) else e.rule
    return Instance(
        h / h.abs().max(), a.view(e.M, e.d), noise.view(e.M, e.d) * float(e.noisy), x, e.share * rule(e), e.K, e.P,
        float(mu.exp()) / 10, e.m, 1.0, e.sphere,
    )  # fmt: skip


def corners(**changes: Any) -> list[Edge]:
    """One client and many, all sampled and few, one direction and many more than d."""
    edges = [
        Edge(), Edge(P=1000), Edge(d=3, K=3), Edge(M=3, m=3, d=2, noisy=False), Edge(M=3, m=2, K=2, P=4),
        Edge(M=8, m=8, d=3, noisy=False), Edge(M=2, m=1, d=2, K=4, P=50), Edge(M=4, m=1, K=3, noisy=False, share=0.3),
    ]  # fmt: skip
    return [replace(edge, **changes) for edge in edges]


def alone(edges: Sequence[Edge]) -> list[torch.Tensor]:
    """Numbers for `build`: curvature 1 and one cause of error alone, a gradient, dissimilarity, noise or smoothing.

    In many dimensions also with curvature, and its cause, in one of them only: an effective rank of 1.
    """
    starts = []
    for M, d in dict.fromkeys((e.M, e.d) for e in edges):
        turns = (1 - 2 * (torch.arange(M, dtype=DOUBLE) % 2)).repeat_interleave(d)
        for curved in (d, 1) if d >= MANY else (d,):
            point = (torch.arange(d) < curved).to(DOUBLE)
            ones = point.repeat(M)
            for a, noise, x, log_mu in ((0, 0, 1, -12.0), (1, 0, 0, -12.0), (0, 1, 0, -12.0), (0, 0, 0, 2.0)):
                mu = torch.tensor([log_mu], dtype=DOUBLE)
                starts.append(torch.cat([ones, a * turns * ones, noise * ones, x * point, mu]))
    return starts


def uneven(edges: Sequence[Edge]) -> list[torch.Tensor]:
    """As `alone`, every other client with curvature 1, the rest with -1/2: gradients part where x spreads or starts.

    Either all clients have the same gradient at 0, or gradients there part along the curvature.
    """
    starts = []
    for M, d in dict.fromkeys((e.M, e.d) for e in edges if e.M > 1):
        h = torch.where(torch.arange(M) % 2 == 0, 1.0, -0.5).to(DOUBLE).repeat_interleave(d)
        for a, noise, x in ((0, 0, 1), (0, 1, 0), (1, 1, 1)):
            full, point = torch.ones(M * d, dtype=DOUBLE), torch.full((d,), float(x), dtype=DOUBLE)
            starts.append(torch.cat([h, a * h, noise * full, point, torch.tensor([-12.0], dtype=DOUBLE)]))
    return starts


MANY = 16  # dimensions, beside which an effective rank of 1 is low


HELD = "exact moments of {n} rounds, worst at {edge}"
BENCH: Bench[Edge, Instance, Round] = Bench(
    ROOT, corners, build, Round, plain, holds_text=HELD, breaks_text=f"{HELD}; broken",
    effort={"quick": (3, 12), "full": (12, 60)}, slacks=slacks, admissible=admissible, rescaled=Instance.rescaled,
    needs=(), starts=alone, together=False, test_units=True,
)  # fmt: skip
survives = BENCH.survives


def whole_runs(
    sides: Callable[[Instance, int], tuple[torch.Tensor, torch.Tensor]],
    name: str,
    edges: Sequence[Edge],
    held: str,
    rounds: tuple[int, int],
    effort: dict[str, tuple[int, int]],
    pose: Callable[[Instance], Instance] = bounded,
) -> Check:
    """The check of a bound on averages over the first rounds, for every number of rounds.

    Args:
        sides: (instance, R) -> left and right for every number of rounds up to R.
        held: the sentence, with `n` runs tried and the worst `edge`.
        rounds: R at quick and at full effort.
        effort: restarts and steps of the search.
        pose: what is done to the instances of `build`.
    """
    runs: Bench[Edge, Instance, Instance] = Bench(
        ROOT, corners, lambda v, e: pose(build(v, e)), lambda at: at, plain, held, held, effort, together=False,
        starts=lambda edges: [*alone(edges), *uneven(edges)],
    )  # fmt: skip

    def check(effort: str) -> Outcome:
        R = rounds[effort == "full"]
        return runs.survives(lambda at: worst(sides(at, R)), name, "", edges)(effort)

    return check


def beyond(
    terms: Callable[[float], Terms], share: float, name: str, of: str = "the right side", edges: Any = None, **more: Any
) -> dict[str, Any]:
    """The control of an inequality that survives, and its words: `share` of its right side, under another search.

    Args:
        terms: the inequality with its right side scaled.
        share: just below what the search reaches.
    """
    said = f"{share:g} of {of}"
    return {"control": survives(terms(share), f"{name}.control", said, edges, **more), "broken": said}


def mended(
    terms: Callable[[float], Terms], share: float, name: str, edges: Sequence[Edge], **more: Any
) -> dict[str, Any]:
    """The repair of an inequality that a stored instance has broken, and the control that is `beyond` it."""
    repaired = survives(terms(1.0), name, "", edges, **more)
    return {"repaired": repaired, **beyond(terms, share, name, "the repaired right side", edges, **more)}


def broken(at: Instance, terms: Terms, why: str, needs: Sequence[str] = ()) -> Check:
    """A stored instance against an inequality."""
    return BENCH.stored(lambda: at, terms, why, needs)


def equal(left: Any, right: Any, said: str, data: dict[str, Any] | None = None, *, tolerance: float = 1e-9) -> Outcome:
    """Two values or tensors that must agree, up to rounding."""
    left, right = (torch.as_tensor(v, dtype=DOUBLE) for v in (left, right))
    size = max(float(left.abs().max()), float(right.abs().max()), 1e-300)
    gap = float((left - right).abs().max()) / size
    holds = gap < tolerance
    shown = "below rounding" if holds else f"{gap:.3g}"
    found = None if holds else {**(data or {}), "relative gap": digits(gap)}
    return Outcome(holds, "exact", 0.0 if holds else gap, f"{said}: relative gap {shown}", found)


def over_sets(factor: Callable[[int, int], Fraction], values: Callable[[int], list[Fraction]], name: str) -> Check:
    """E (sum_{i in C} v_i)^2 = m^2 vbar^2 + m factor(M, m) (mean v_i^2 - vbar^2), C uniform among sets of m clients.

    Args:
        values: M -> v_1, ..., v_M.
        name: what they stand for.
    """

    def check(effort: str) -> Outcome:
        for M, m in ((2, 2), (2, 1), (3, 2), (4, 1), (5, 3)):
            v = values(M)
            sets = list(itertools.combinations(v, m))
            left = sum(sum(rows) ** 2 for rows in sets) / len(sets)
            mean = sum(v) / M
            right = m * m * mean**2 + m * factor(M, m) * (sum(u * u for u in v) / M - mean**2)
            if left != right:
                data = {"M": M, "m": m, name: [str(u) for u in v], "left": str(left), "right": str(right)}
                return Outcome(False, "exact", None, f"M = {M}, m = {m}: {left} against {right}", data)
        return Outcome(True, "exact", 0.0, "all sets of five (M, m), in rationals: equal")

    return check
