"""DeComFL, C.2 and A.5: the Gaussian smoothing f^mu, in closed form for losses that reach its bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.theory.bench import Bench, Edge
from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.round import DOUBLE, ROOT, Enumerated, decomfl, directions, equal, tiny
from fedtheory.theory.forms import chain
from fedtheory.theory.instances import Smooth
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import reals, same

SHAPES = ("quadratic", "cosine", "vee")
LIPSCHITZ = Printed("f_i is L-smooth", "Lemma 2")


@dataclass(frozen=True)
class Curve:
    """f(x) = sum_j h_j phi(x_j), |h_j| <= L = 1: phi = u^2/2, 1 - cos u or u|u|/2 (phi' = |u|), f^mu in closed form."""

    shape: str
    h: torch.Tensor
    mu: torch.Tensor

    def parts(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """phi, phi', phi^mu and (phi^mu)', entry by entry."""
        mu = self.mu
        if self.shape == "quadratic":
            return x**2 / 2, x, (x**2 + mu**2) / 2, x
        if self.shape == "cosine":
            damp = torch.exp(-(mu**2) / 2)
            return 1 - torch.cos(x), torch.sin(x), 1 - torch.cos(x) * damp, torch.sin(x) * damp
        bell, erf = mu * math.sqrt(2 / math.pi) * torch.exp(-((x / mu) ** 2) / 2), torch.erf(x / mu / math.sqrt(2))
        return x * x.abs() / 2, x.abs(), ((x**2 + mu**2) * erf + x * bell) / 2, bell + x * erf

    def f(self, x: torch.Tensor) -> torch.Tensor:
        return (self.h * self.parts(x)[0]).sum(-1)

    def grad(self, x: torch.Tensor) -> torch.Tensor:
        return self.h * self.parts(x)[1]

    def f_mu(self, x: torch.Tensor) -> torch.Tensor:
        return (self.h * self.parts(x)[2]).sum(-1)

    def grad_mu(self, x: torch.Tensor) -> torch.Tensor:
        return self.h * self.parts(x)[3]


Sides = Callable[[Curve, torch.Tensor, torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Setting(Edge):
    """Which loss, in how many dimensions."""

    d: int
    shape: str = "quadratic"

    def __str__(self) -> str:
        return f"{self.shape}, d={self.d}"

    def parts(self) -> dict[str, int]:
        return {"h": self.d, "x": self.d, "y": self.d, "mu": 1}


Point = tuple[Curve, torch.Tensor, torch.Tensor, int]  # with two points


def build(v: torch.Tensor, edge: Setting) -> Point:
    h, x, y, mu = edge.split(v).values()
    return Curve(edge.shape, h / h.abs().max(), mu.exp()), x, y, edge.d


def settings(shapes: Sequence[str], *dimensions: int) -> list[Setting]:
    return [Setting(d, shape) for shape in shapes for d in dimensions]


HELD = "closed forms, {n} points by ascent, worst for {edge}"
BENCH: Bench[Setting, Point, Point] = Bench(
    ROOT, lambda: settings(SHAPES, 1, 2, 5), build, lambda q: q, lambda q: {"shape": q[0].shape, "d": q[3]},
    HELD, HELD, {"quick": (2, 20), "full": (8, 100)}, together=False,
)  # fmt: skip


def survives(sides: Sides, name: str, what: str = "", corners: Sequence[Setting] | None = None) -> Check:
    """The check of an inequality over curvatures, mu and two points."""
    return BENCH.survives(lambda q: sides(*q), name, what, corners)


def norm(v: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(v, dim=-1)


def lipschitz(scale: float = 1.0) -> Sides:
    return lambda c, x, y, d: (norm(c.grad_mu(x) - c.grad_mu(y)), scale * norm(x - y))


def value_gap(scale: float = 0.5) -> Sides:
    return lambda c, x, y, d: ((c.f_mu(x) - c.f(x)).abs(), scale * c.mu[0] ** 2 * d)


def gradient_gap(scale: float = 0.5) -> Sides:
    return lambda c, x, y, d: (norm(c.grad_mu(x) - c.grad(x)), scale * c.mu[0] * (d + 3) ** 1.5)


def jensen(back: bool, scale: float = 0.5, twice: float = 2.0) -> Sides:
    def sides(c: Curve, x: torch.Tensor, y: torch.Tensor, d: int) -> tuple[torch.Tensor, torch.Tensor]:
        one, two = norm(c.grad_mu(x)) ** 2, norm(c.grad(x)) ** 2
        left, right = (two, one) if back else (one, two)
        return left, twice * right + scale * c.mu[0] ** 2 * (d + 3) ** 3

    return sides


def second_moment(first: float = 0.5, second: float = 2.0) -> Sides:
    """(18), by quadrature (exact for quadratics)."""

    def sides(c: Curve, x: torch.Tensor, y: torch.Tensor, d: int) -> tuple[torch.Tensor, torch.Tensor]:
        z, p = directions(d, False, 40 if d == 1 else 16)
        moved = c.f(x + c.mu * z) - c.f(x)
        left = (p * moved**2 * (z**2).sum(1)).sum() / c.mu[0] ** 2
        return left, first * c.mu[0] ** 2 * (d + 6) ** 3 + second * (d + 4) * norm(c.grad(x)) ** 2

    return sides


def between(scale: float = 1.0) -> Sides:
    """The last inequality of (21), for any two points."""

    def sides(c: Curve, x: torch.Tensor, y: torch.Tensor, d: int) -> tuple[torch.Tensor, torch.Tensor]:
        gap = (c.f_mu(x) - c.f_mu(y)) - (c.f(x) - c.f(y))
        return gap.abs(), scale * c.mu[0] ** 2 * d

    return sides


def minimum(scale: float = 0.5) -> Check:
    """(21), first part: at the minimiser of f^mu, and for the two minima; f = a curve plus a bowl, on a grid."""

    def check(effort: str) -> Outcome:
        grid, worst = torch.linspace(-8, 8, 4001, dtype=DOUBLE)[:, None], 0.0
        for shape in SHAPES:
            for mu in (0.1, 1.0, 3.0):
                c = Curve(shape, torch.ones(1, dtype=DOUBLE), torch.tensor([mu], dtype=DOUBLE))
                bowl = grid[:, 0] ** 2 / 2
                f, f_mu = (c.f(grid) + bowl) / 2, (c.f_mu(grid) + bowl + mu**2 / 2) / 2
                at = int(f_mu.argmin())
                gap = max(abs(float(f_mu[at] - f[at])), abs(float(f_mu.min() - f.min())))
                worst = max(worst, gap / (scale * mu**2))
        said = "three losses, three mu: the gap at the minimiser of f^mu and between the two minima"
        data = None if worst <= 1 + 1e-9 else {"ratio": digits(worst)}
        return Outcome(worst <= 1 + 1e-9, "exact", worst, said, data)

    return check


def estimate(mu: float) -> Check:
    """(15) and E[g z] = grad f^mu for mu = 0.9, through `DeComFL.client` with smoothing `mu` on a cosine."""

    def check(effort: str) -> Outcome:
        at = tiny(x=0.7, mu=mu)
        loss = Smooth(torch.ones(1, 1, dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE), shape="cosine")
        r = Enumerated(at, losses=loss, nodes=60)
        c = Curve("cosine", torch.ones(1, dtype=DOUBLE), torch.tensor([0.9], dtype=DOUBLE))
        said = "1 - cos x, mu = 0.9, 60 nodes: mean of g z by the client against (f^mu)'"
        return equal(r.mean(r.G[0, :, 0]), c.grad_mu(at.x), said, {"x": 0.7, "mu": 0.9})

    return check


def check_lemma1(one_sided: bool) -> Check:
    """f(w) at w = (x+y)/2 +- v: four inequalities add up to <grad f(y) - grad f(x), 2v> <= 2L (|y-x|^2/4 + |v|^2)."""

    def check(effort: str) -> Outcome:
        import sympy

        if one_sided:
            # the upper half alone, on a line: f(y) <= f(x) + p D + L D^2/2 and the same from y; p, q the slopes
            return chain(one_side, "the upper bound alone, |p - q| <= L D")(effort)
        fx, fy, fw, fv, L = sympy.symbols("fx fy fw fv L")
        gx, gy, x, y, v = (sympy.Matrix(sympy.symbols(f"{n}1:4")) for n in ("g", "q", "x", "y", "v"))
        w, u = (x + y) / 2 + v, (x + y) / 2 - v
        square = lambda a: a.dot(a)
        gap = lambda f, f0, g, to, of: f - f0 - g.dot(to - of)
        total = gap(fw, fx, gx, w, x) - gap(fw, fy, gy, w, y) - gap(fv, fx, gx, u, x) + gap(fv, fy, gy, u, y)
        room = L / 2 * (square(w - x) + square(w - y) + square(u - x) + square(u - y))
        fine = same(total, (gy - gx).dot(2 * v)) and same(room, 2 * L * (square(y - x) / 4 + square(v)))
        said = "four uses of (13) at (x+y)/2 +- v, v along grad f(y) - grad f(x) with |v| = |y-x|/2, give L-Lipschitz"
        return Outcome(fine, "symbolic", None, said)

    return check


def one_side() -> tuple[list[Any], Any]:
    fx, fy, p, q, D, L = reals("fx fy p q D L")
    upper = [fy - fx - p * D <= L * D * D / 2, fx - fy + q * D <= L * D * D / 2]
    return [D == 1, L == 1, *upper], q - p >= -L * D


def check_taylor(order: int) -> Check:
    """Remainder of the expansion over mu, with two terms or one: goes to 0 with mu (a cosine, by `DeComFL.client`)."""

    def check(effort: str) -> Outcome:
        x, rest = 0.7, []
        loss = Smooth(torch.ones(1, 1, dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE), shape="cosine")
        for mu in (1e-2, 1e-3):
            r = Enumerated(tiny(x=x, mu=mu), losses=loss, nodes=12)
            z = r.z[:, 0, 0, 0]
            right = math.sin(x) * z + (mu / 2 * math.cos(x) * z**2 if order == 2 else 0)
            rest.append(float((r.g[0, :, 0, 0] - right).abs().max()) / mu)
        holds = rest[1] < 0.2 * rest[0]
        said = f"1 - cos x, the client's scalars: remainder over mu is {rest[0]:.3g} at 0.01 and {rest[1]:.3g} at 0.001"
        return Outcome(holds, "exact", None, said, None if holds else {"remainder": [digits(v) for v in rest]})

    return check


def check_information(effort: str) -> Outcome:
    """The second-order term leaves the mean step unchanged: E[z (z^T H z)] = 0 (client code, quadratic)."""
    steps = [Enumerated(tiny(h=[[1.0, -0.5]], x=[0.3, -0.8], d=2, mu=mu)) for mu in (0.0, 2.0)]
    means = [r.mean(r.G[0, :, 0]) for r in steps]
    gap = float((means[0] - means[1]).abs().max())
    said = f"f = x_1^2/2 - x_2^2/4: the mean step with mu = 2 and with the projection differ by {gap:.1g}"
    data = {"h": [1.0, -0.5], "mu": 2.0, "difference of the mean steps": 0.0}
    return Outcome(gap > 1e-12, "exact", None, said, data)


def check_strictly_better(effort: str) -> Outcome:
    """L_mu < L for a quadratic?"""
    c = Curve("quadratic", torch.ones(1, dtype=DOUBLE), torch.tensor([1.0], dtype=DOUBLE))
    x, y = torch.tensor([0.0], dtype=DOUBLE), torch.tensor([1.0], dtype=DOUBLE)
    L_mu = float(norm(c.grad_mu(x) - c.grad_mu(y)))
    return Outcome(L_mu < 1, "exact", L_mu, "f = x^2/2: L_mu = L for every mu", {"f": "x^2/2", "L_mu": 1, "L": 1})


CLAIMS: list[Claim] = [
    decomfl(
        "A5.smoothing",
        "inequality",
        assumes=(LIPSCHITZ,),
        check=worst_of(estimate(0.9), survives(lipschitz(), "A5", "L_mu <= L")),
        as_printed=check_strictly_better,
        met="a reading of 'better'",
        caveat="'better' in the sense of not worse: on quadratics L_mu = L for every mu",
        control=survives(lipschitz(0.999), "A5.control", "L_mu <= 0.999 L"),
        broken="0.999 L",
        implies="no gain over the gradient itself can be expected where the loss is close to quadratic at scale mu",
    ),
    decomfl(
        "A5.taylor",
        "identity",
        check=check_taylor(2),
        as_printed=check_information,
        met="a reading of 'information'",
        caveat="more information in the single scalar; in the mean step the second-order term cancels exactly, "
        "E[z (z^T H z)] = 0, so nothing of it reaches the expected update",
        control=check_taylor(1),
        broken="the second-order term left out",
    ),
    decomfl(
        "lemma1",
        "inequality",
        check=check_lemma1(False),
        control=check_lemma1(True),
        broken="only the upper bound of (13)",
    ),
    decomfl(
        "lemma2a",
        "expectation",
        assumes=(LIPSCHITZ,),
        check=survives(lipschitz(), "lemma2a"),
        control=survives(lipschitz(0.999), "lemma2a.control", "L_mu <= 0.999 L"),
        broken="0.999 L",
    ),
    decomfl(
        "eq15",
        "expectation",
        assumes=(LIPSCHITZ,),
        check=estimate(0.9),
        control=estimate(0.89),
        broken="differences over 0.89",
    ),
    decomfl(
        "eq16",
        "inequality",
        assumes=(LIPSCHITZ,),
        check=survives(value_gap(), "eq16"),
        control=survives(value_gap(0.499), "eq16.control", "0.499 in place of 1/2"),
        broken="0.499 for 1/2: quadratics attain the bound",
    ),
    decomfl(
        "eq17",
        "inequality",
        assumes=(LIPSCHITZ,),
        check=survives(gradient_gap(), "eq17"),
        control=survives(gradient_gap(0.099), "eq17.control", "0.099 in place of 1/2"),
        broken="0.099 for 1/2: at a kink of the curvature the gap is mu L sqrt(2/pi), d = 1",
    ),
    decomfl(
        "eq18",
        "inequality",
        assumes=(LIPSCHITZ,),
        check=survives(second_moment(), "eq18", "", settings(SHAPES, 1, 2)),
        control=survives(second_moment(0.165, 0.66), "eq18.control", "0.165 and 0.66", settings(["quadratic"], 1, 2)),
        broken="0.165 and 0.66 in place of 1/2 and 2, a third of each being reached",
    ),
    decomfl(
        "eq19-20",
        "inequality",
        assumes=(LIPSCHITZ,),
        check=worst_of(survives(jensen(False), "eq19", "(19)"), survives(jensen(True), "eq20", "(20)")),
        control=survives(jensen(False, 0.249, 0.996), "eq19.control", "0.996 and 0.249 in place of 2 and 1/2"),
        broken="0.996 and 0.249 in place of 2 and 1/2, a half of each being reached",
    ),
    decomfl(
        "eq21",
        "inequality",
        assumes=(LIPSCHITZ, Printed("the minimum of f_i^mu, and x* where it is reached", "eq. (21)")),
        check=worst_of(minimum(), survives(between(), "eq21", "the second line, for any two points")),
        control=survives(between(0.99), "eq21.control", "0.99 mu^2 L d for any two points"),
        broken="0.99 mu^2 L d in the second line",
    ),
]
