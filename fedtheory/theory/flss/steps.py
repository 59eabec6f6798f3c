"""FLSS in a fixed subspace: the steps of docs/theory/flss.md. Names as there: w, w_P, P, q = eta tau L."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

from fedtheory.theory.proof import Step, equal, follows
from fedtheory.theory.search import implies, number, reals
from fedtheory.theory.ssf.steps import SQUARE


def unbounded(part: str) -> Callable[[], bool]:
    """<g, s> >= mu |s|^2 and <g, s> <= |g| |s| give |g| >= mu |s|."""

    def premises() -> tuple[list, Any]:
        g, s, mu, inner = reals("g s mu inner")
        return [g >= 0, s > 0, mu > 0, inner >= mu * s * s, inner <= g * s], g >= number(part) * mu * s

    return follows(premises)


def floor(half: str) -> Callable[[], bool]:
    """F(w_P) - F* between mu/2 and L/2 times the distance squared; at: F at the nearest point, far: |w_P - w*|^2."""

    def premises() -> tuple[list, Any]:
        import z3

        L, mu, distance, far, low, at = reals("L mu distance far low at")
        given = [
            mu > 0,
            mu <= L,
            distance >= 0,
            far >= distance,
            low <= at,
            at <= L / 2 * distance,
            low >= mu / 2 * far,
        ]
        return given, z3.And(low <= number(half) * L * distance, low >= mu / 2 * distance)

    return follows(premises)


def nearer(factor: str) -> Callable[[], bool]:
    """2 |y - x|^2 + 2 |z - y|^2 - |z - x|^2 is the square |(y - x) - (z - y)|^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        x, y, z = sympy.symbols("x y z")
        return sympy.Rational(factor) * (y - x) ** 2 + 2 * (z - y) ** 2 - (z - x) ** 2, (2 * y - x - z) ** 2

    return equal(sides)


def perturbed(share: str) -> Callable[[], bool]:
    """h at x and z from its tangent at y: A = |z - y|^2, B = |z - x|^2, C = |y - x|^2, gz = <grad h(y), z - y>."""

    def premises() -> tuple[list, Any]:
        L, mu, A, B, C, hx, hy, hz, gx, gz = reals("L mu A B C hx hy hz gx gz")
        given = [mu > 0, mu <= L, A >= 0, B >= 0, C >= 0, 2 * C >= B - 2 * A]
        given += [hz <= hy + gz + L / 2 * A, hx >= hy + gx + mu / 2 * C]
        return given, gz - gx >= hz - hx + number(share) * mu * B - L * A

    return follows(premises)


def gained(length: int) -> Callable[[], bool]:
    """A step of length/L against the gradient lowers an L-smooth function by |g|^2/(2L) at least, at length 1."""

    def sides() -> tuple[Any, Any]:
        import sympy

        L, g = sympy.symbols("L g", positive=True)
        step = length / L
        return -step * g**2 + L / 2 * step**2 * g**2, -(g**2) / (2 * L)

    return equal(sides)


def drawn(size: Callable[[int, int], Fraction]) -> Callable[[], bool]:
    """The variance of the mean of M of N numbers drawn without replacement: all subsets, and the count for any N, M."""

    def check() -> bool:
        import sympy

        for N, M in ((4, 2), (5, 3), (3, 3)):
            g = sympy.symbols(f"g0:{N}")
            mean, subsets = sum(g) / N, list(combinations(g, M))
            left = sum((sum(one) / M - mean) ** 2 for one in subsets) / len(subsets)
            right = sympy.Rational(size(N, M)) * sum((one - mean) ** 2 for one in g) / N
            if sympy.expand(left - right) != 0:
                return False
        N, M = sympy.symbols("N M")
        count = (M / N - M * (M - 1) / (N * (N - 1))) / M**2 - (N - M) / (M * (N - 1)) / N
        return sympy.simplify(count) == 0

    return check


def descent(most: str) -> Callable[[], bool]:
    """What multiplies eta tau (F(w) - F(w_P)), for q <= 1/20 and any sampling."""

    def premises() -> tuple[list, Any]:
        q, s = reals("q s")
        total = 8 * q * (1 + 2 * s) + (2 + 4 * q) * number("5552/1000") * q * q - 2
        return [q > 0, 20 * q <= 1, s >= 0, s <= 1], total <= number(most)

    return follows(premises)


def constants(noise: str) -> Callable[[], bool]:
    """With 2 + 4 q <= 11/5: what the drift leaves of noise and heterogeneity; and twice 1.388, four times 1.388."""

    def check() -> bool:
        lead = 2 + 4 * Fraction(1, 20)
        drift = Fraction("1.388")
        left = lead * Fraction("1.041") <= Fraction(noise) and lead * 2 * drift <= Fraction("6.2")
        return left and 4 * drift == Fraction("5.552")

    return check


def summed(last: str) -> Callable[[], bool]:
    """The fixed point of e = (1 - m/2) e + c, m = mu eta tau, is 2 c/m, with the theorem's constants; 0 < m/2 < 1."""

    def check() -> bool:
        import sympy

        mu, eta, tau, L, s, z, noise, M = sympy.symbols("mu eta tau L s z noise M", positive=True)
        m, e, tenth = mu * eta * tau, sympy.Symbol("e"), sympy.Rational(1, 10)
        c = 8 * s * eta**2 * tau**2 * z + 2 * eta**2 * tau * noise / M
        c += 23 * tenth * L * eta**3 * tau**2 * noise + 62 * tenth * L * eta**3 * tau**3 * z
        shown = 16 * s * tau * z + 4 * noise / M + 46 * tenth * L * eta * tau * noise
        shown += sympy.Rational(last) * L * eta * tau**2 * z
        fixed = sympy.solve(sympy.Eq(e, (1 - m / 2) * e + c), e)[0]
        q, size = reals("q size")  # m <= eta tau L = q <= 1/20
        less = implies([q > 0, 20 * q <= 1, size > 0, size <= q], size / 2 < 1).holds
        return less and sympy.expand(fixed - eta / mu * shown) == 0

    return check


def assembled(factor: int) -> Callable[[], bool]:
    """The square of 3, with 3.2, 3.5 and the drift; W = |w - w_P|^2. `factor`: of L delta in the drift."""

    def sides() -> tuple[Any, Any]:
        import sympy

        names = "mu eta tau L s z noise M delta W"
        mu, eta, tau, L, s, z, noise, M, delta, W = sympy.symbols(names, positive=True)
        a, b, q = sympy.Rational("1.041"), sympy.Rational("1.388"), eta * tau * L
        D = a * tau * eta**2 * noise + b * tau**2 * eta**2 * (factor * L * delta + 2 * z)
        second = 4 * (2 * L * delta + s * (4 * L * delta + 2 * z)) + 4 * L**2 * D + 2 * noise / (M * tau)
        left = -2 * eta * tau * (delta + mu / 4 * W - L * D) + eta**2 * tau**2 * second
        right = -mu * eta * tau / 2 * W + 8 * s * eta**2 * tau**2 * z + 2 * eta**2 * tau * noise / M
        right += eta * tau * delta * (8 * q * (1 + 2 * s) + (2 + 4 * q) * 4 * b * q**2 - 2)
        right += eta * tau * L * (2 + 4 * q) * (a * tau * eta**2 * noise + 2 * b * tau**2 * eta**2 * z)
        return left, right

    return equal(sides)


def loss(half: str) -> Callable[[], bool]:
    """F(w) - F* <= (L/2)(|w - w_P|^2 + dist^2), from smoothness at w_P, a product that is zero, and the gap."""

    def premises() -> tuple[list, Any]:
        L, low, at, inner, near, distance = reals("L low at inner near distance")  # at, low: F(w) - F*, F(w_P) - F*
        given = [L > 0, near >= 0, distance >= 0, inner == 0, at <= low + inner + L / 2 * near, low <= L / 2 * distance]
        return given, at <= number(half) * L * (near + distance)

    return follows(premises)


def decreasing(power: int) -> Callable[[], bool]:
    """eta = 4/(mu tau n): m/2 is 2/n, c at most v/n^2, z = zeta^2; 0 <= (1 - 2/n) v/n + v/n^power <= v/(n + 1)."""

    def check() -> bool:
        import sympy

        mu, tau, n, s, z, noise, M = sympy.symbols("mu tau n s z noise M", positive=True)
        eta, share = 4 / (mu * tau * n), sympy.Rational(1, 20)  # L eta tau <= 1/20
        most = [sympy.Rational(one) * share for one in ("6.2", "2.3")]
        c = eta**2 * tau**2 * z * (8 * s + most[0]) + eta**2 * tau * noise * (2 / M + most[1])
        wanted = (8 * s + sympy.Rational("0.31")) * z + (2 / M + sympy.Rational("0.115")) * noise / tau
        alike = sympy.simplify(c - 16 / mu**2 * wanted / n**2) == 0 and sympy.simplify(mu * eta * tau / 2 - 2 / n) == 0

        def premises() -> tuple[list, Any]:
            import z3

            k, v = reals("n v")
            total = (k - 2) * v + (v if power == 2 else v * k)  # times n^2
            return [k >= 80, v >= 0], z3.And(total >= 0, total * (k + 1) <= v * k * k)

        return alike and follows(premises)()

    return check


STEPS = [
    Step("flss.1.1", "implication", "strong convexity and Cauchy-Schwarz", unbounded("1"), unbounded("11/10"),
         "mu raised by a tenth"),
    Step("flss.2.1", "implication", "both sides of the gap, from smoothness at the nearest point and strong convexity",
         floor("1/2"), floor("1/4"), "L/4 instead of L/2"),
    Step("flss.3.1", "certificate", "the difference is a square", nearer("2"), nearer("19/10"),
         "19/10 instead of 2"),
    Step("flss.3.2", "implication", "from the tangent at y, for all 0 < mu <= L", perturbed("1/4"), perturbed("1/2"),
         "mu/2 instead of mu/4", ("flss.eq19",)),
    Step("flss.3.3", "identity", "what a step of 1/L gains", gained(1), gained(2), "a step of 2/L"),
    Step("flss.3.4", "expectation", "all subsets of two of four, three of five, three of three",
         drawn(lambda N, M: Fraction(N - M, M * (N - 1))), drawn(lambda N, M: Fraction(1, M)),
         "1/M, as with replacement", ("flss.eq11", "flss.eq12")),
    Step("flss.3.5", "implication", "for all second moments of the three parts", SQUARE, {"4*rho": "3*rho"},
         "3 instead of 4"),
    Step("flss.3.6", "identity", "the sum of all parts", assembled(4), assembled(5), "5 L delta in the drift"),
    Step("flss.3.7", "implication", "for 0 < q <= 1/20, 0 <= s <= 1", descent("-3/4"), descent("-4/5"),
         "-4/5 instead of -3/4"),
    Step("flss.3.8", "arithmetic", "11/5 of 1.041, of 2.776", constants("2.3"), constants("2.2"), "2.2 for 2.3"),
    Step("flss.3.9", "identity", "the fixed point of the recursion, and that it contracts", summed("12.4"),
         summed("12.3"), "12.3 instead of 12.4"),
    Step("flss.4.1", "implication", "smoothness at w_P and the gap", loss("1/2"), loss("1/4"),
         "L/4 instead of L/2"),
    Step("flss.4.2", "implication", "the terms by sympy, the induction for all n >= 80", decreasing(2), decreasing(1),
         "a round that adds v/n"),
]  # fmt: skip
