"""DeComFL with one local step: the checks of sections 1 to 4 of docs/theory/decomfl.md, and what 6 takes from them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from fedtheory.theory.proof import equal, follows, mean_of
from fedtheory.theory.search import number, reals


def fourth(twice: int) -> Callable[[], bool]:
    """E (z^T w)^2 z^T H z = tr(H) |w|^2 + 2 w^T H w: three dimensions, H symmetric, all symbols."""

    def check() -> bool:
        import sympy

        z, w = sympy.Matrix(sympy.symbols("z:3")), sympy.Matrix(sympy.symbols("w:3"))
        h = sympy.symbols("h:6")
        H = sympy.Matrix([[h[0], h[1], h[2]], [h[1], h[3], h[4]], [h[2], h[4], h[5]]])
        left = mean_of((z.T * w)[0] ** 2 * (z.T * H * z)[0], tuple(z.flat()))
        return sympy.expand(left - H.trace() * (w.T * w)[0] - twice * (w.T * H * w)[0]) == 0

    return check


def two(independent: bool) -> tuple[Any, Any, Any, tuple[Any, ...]]:
    """(1/P) sum_p z_p z_p^T w for two directions in two dimensions, w, a symmetric H, and the entries of the z_p."""
    import sympy

    first, w = sympy.Matrix(sympy.symbols("y:2")), sympy.Matrix(sympy.symbols("w:2"))
    second = sympy.Matrix(sympy.symbols("z:2")) if independent else first
    h = sympy.symbols("h:3")
    a = ((first.T * w)[0] * first + (second.T * w)[0] * second) / 2
    normal = (*first, *second) if independent else tuple(first.flat())
    return a, w, sympy.Matrix([[h[0], h[1]], [h[1], h[2]]]), normal


def several(independent: bool) -> Callable[[], bool]:
    """a^T H a for two directions in two dimensions, H symmetric: (1/P)(tr(H)|w|^2 + 2 w^T H w) + (1 - 1/P) w^T H w."""

    def check() -> bool:
        import sympy

        a, w, H, normal = two(independent)
        form = (w.T * H * w)[0]
        wanted = (H.trace() * (w.T * w)[0] + 2 * form) / 2 + form / 2
        return sympy.expand(mean_of((a.T * H * a)[0], normal) - wanted) == 0

    return check


def rank(more: int) -> Callable[[], bool]:
    """(1/P)(tr H W + 2 wHw) + (1 - 1/P) wHw <= L (1 + (kappa + more)/P) W, for tr H <= kappa L, wHw <= L W, P >= 1."""

    def premises() -> tuple[list, Any]:
        L, W, wHw, trace, kappa, P = reals("L W wHw trace kappa P")
        given = [L > 0, W >= 0, wHw >= 0, wHw <= L * W, trace >= 0, trace <= kappa * L, P >= 1]
        return given, trace * W + 2 * wHw + (P - 1) * wHw <= L * (P + kappa + more) * W

    return follows(premises)


def lengths(step: int) -> Callable[[], bool]:
    """E|z|^2 and E|z|^4 z_j^2 for any d: |z|^2 = z_j^2 + s, E s^k by 2^k Gamma(n/2 + k)/Gamma(n/2), n = d - 1."""

    def check() -> bool:
        import sympy

        n, z, s = sympy.Symbol("n", positive=True), *sympy.symbols("z s")

        def mean(of: Any) -> Any:
            total: Any = sympy.Integer(0)
            for (k,), factor in sympy.Poly(sympy.expand(of), s).terms():
                total += mean_of(factor, (z,)) * sympy.gammasimp(2**k * sympy.gamma(n / 2 + k) / sympy.gamma(n / 2))
            return total

        square, sixth = mean(z**2 + s) - (n + 1), mean((z**2 + s) ** 2 * z**2) - (n + 3) * (n + 3 + step)
        return sympy.simplify(square) == 0 and sympy.simplify(sixth) == 0

    return check


def difference(half: str) -> Callable[[], bool]:
    """Forward and central differences of an L-smooth function miss z^T g by at most L mu |z|^2/2; Z = |z|^2."""

    def premises() -> tuple[list, Any]:
        import z3

        L, mu, Z, slope, up, down = reals("L mu Z slope up down")
        bound = L * mu * mu * Z / 2
        given = [L > 0, mu > 0, Z >= 0, up - mu * slope <= bound, mu * slope - up <= bound]
        given += [down + mu * slope <= bound, -down - mu * slope <= bound]  # f(x - mu z) - f(x)
        most = number(half) * L * mu * mu * Z
        forward = z3.And(up - mu * slope <= most, mu * slope - up <= most)
        central = z3.And(up - down - 2 * mu * slope <= 2 * most, 2 * mu * slope - up + down <= 2 * most)
        return given, z3.And(forward, central)

    return follows(premises)


def by_parts(half: int) -> Callable[[], bool]:
    """phi' - t phi, times exp(-t^2/half), is the derivative of phi exp(-t^2/half), which vanishes at both ends.

    So E z phi(z) = E phi'(z); and the squared mean of any values is at most the mean of their squares.
    """

    def check() -> bool:
        import sympy

        t, a, b, c = sympy.symbols("t a b c", real=True)
        phi, weight = sympy.Function("phi")(t), sympy.exp(-(t**2) / half)
        parts = sympy.diff(phi * weight, t) - (sympy.diff(phi, t) - t * phi) * weight
        ends = [sympy.limit((a * t**2 + b * t + c) * weight, t, end) for end in (sympy.oo, -sympy.oo)]
        return sympy.simplify(parts) == 0 and ends == [0, 0]

    return lambda: check() and cauchy(2)()


def repeated(share: str) -> Callable[[], bool]:
    """P squares of mean q and P (P - 1) products of mean m, over P^2; with L = 1, q <= (kappa/4) Z, m <= d: at most B.

    Everything over (L mu)^2; Z = (d + 2)(d + 4).
    """

    def premises() -> tuple[list, Any]:
        P, q, m, kappa, d, Z = reals("P q m kappa d Z")
        given = [P >= 1, kappa >= 0, d >= 1, Z >= 0, 4 * q <= kappa * Z, m <= d]
        return given, P * q + P * (P - 1) * m <= P * P * number(share) * d + P * kappa * Z / 4

    return follows(premises)


def cauchy(factor: int) -> Callable[[], bool]:
    """E X^2 E Y^2 - (E XY)^2 is half the mean of squares over pairs of outcomes: three of them, any probabilities."""

    def sides() -> tuple[Any, Any]:
        import sympy

        p, x, y = (sympy.symbols(f"{name}:3") for name in "pxy")
        mean = lambda values: sum(a * b for a, b in zip(p, values))
        left = mean([v**2 for v in x]) * mean([v**2 for v in y]) - mean([a * b for a, b in zip(x, y)]) ** 2
        pairs = product(range(3), repeat=2)
        return factor * left, sum(p[i] * p[j] * (x[i] * y[j] - x[j] * y[i]) ** 2 for i, j in pairs)

    return equal(sides)


def young(part: str) -> Callable[[], bool]:
    """u^2/4 + v^2 - u v is the square (u/2 - v)^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        u, v = sympy.symbols("u v")
        return sympy.Rational(part) * u**2 + v**2 - u * v, (u / 2 - v) ** 2

    return equal(sides)


def form(sign: int) -> Callable[[], bool]:
    """2 a^T H a + 2 b^T H b - (a + b)^T H (a + b) = (a - b)^T H (a - b): two dimensions, H symmetric."""

    def check() -> bool:
        import sympy

        a, b = sympy.Matrix(sympy.symbols("a:2")), sympy.Matrix(sympy.symbols("b:2"))
        h = sympy.symbols("h:3")
        H = sympy.Matrix([[h[0], h[1]], [h[1], h[2]]])
        quadratic = lambda v: (v.T * H * v)[0]
        return sympy.expand(2 * quadratic(a) + 2 * quadratic(b) - quadratic(a + b) - quadratic(a + sign * b)) == 0

    return check


def averaged(clients: int) -> Callable[[], bool]:
    """E|g + n|^2 for the mean n of two clients' independent noises of mean zero: |g|^2 and half their mean square."""

    def check() -> bool:
        import sympy

        g, s = sympy.Symbol("g"), sympy.symbols("s:2")
        total = sum((g + sum(a * b for a, b in zip(s, signs)) / 2) ** 2 for signs in product((-1, 1), repeat=2)) / 4
        return sympy.expand(total - g**2 - (s[0] ** 2 + s[1] ** 2) / (2 * clients)) == 0

    return check


def descent(part: str) -> Callable[[], bool]:
    """-eta G + eta G/4 + eta b2 + eta^2 L c (G + N) + eta^2 L B for eta L c <= 1/4; G = |g|^2, b2 = |b|^2."""

    def premises() -> tuple[list, Any]:
        eta, G, b2, N, s, c, B = reals("eta G b2 N s c B")  # s = eta L
        given = [eta > 0, G >= 0, b2 >= 0, N >= 0, c >= 1, B >= 0, s > 0, 4 * s * c <= 1]
        total = -eta * G + eta * G / 4 + eta * b2 + eta * s * c * (G + N) + eta * s * B
        return given, total <= -number(part) * eta * G + eta * s * c * N + eta * b2 + eta * s * B

    return follows(premises)


def collected(most: str) -> Callable[[], bool]:
    """2 |b|^2 + 2 eta L B over (L mu)^2, s = eta L, k = kappa/P: at most 5 d/2 and s k Z/2, and s k <= 1/4.

    Z = (d + 2)(d + 4).
    """

    def premises() -> tuple[list, Any]:
        import z3

        d, s, k, Z, more = reals("d s k Z more")  # more: 1/P
        given = [d >= 1, s > 0, k >= 0, Z >= 0, more > 0, 4 * s * (1 + k + more) <= 1]
        total = 2 * d + 2 * s * (d + k * Z / 4)
        return given, z3.And(total <= number(most) * d + s * k * Z / 2, 4 * s * k <= 1)

    return follows(premises)


def bowl(plus: int) -> Callable[[], bool]:
    """f = |x|^2/2, exact scalars, P = 2, d = 2: E|x+|^2 = (1 - 2 eta + eta^2 (1 + (d + plus)/P)) |x|^2."""

    def check() -> bool:
        import sympy

        x, y, z = (sympy.Matrix(sympy.symbols(f"{name}:2")) for name in "xyz")
        eta = sympy.Symbol("eta")
        new = x - eta * ((y.T * x)[0] * y + (z.T * x)[0] * z) / 2
        found, size = mean_of((new.T * new)[0], (*y, *z)), (x.T * x)[0]
        return sympy.expand(found - (1 - 2 * eta + eta**2 * (1 + sympy.Rational(2 + plus, 2))) * size) == 0

    return check


def balanced(factor: int) -> Callable[[], bool]:
    """2 D/(eta R) + 2 eta L c v^2/m at eta^2 = D m/(L c R v^2) is factor times v sqrt(L c D/(m R)).

    And that step is the longest one, eta L c = 1/4, at R = 16 m L c D/v^2.
    """

    def check() -> bool:
        import sympy

        D, R, L, c, v, m = sympy.symbols("D R L c v m", positive=True)
        eta = sympy.sqrt(D * m / (L * c * R)) / v
        first: Any = (eta * L * c).subs(R, 16 * m * L * c * D / v**2)
        both = 2 * D / (eta * R) + 2 * eta * L * c * v**2 / m - factor * v * sympy.sqrt(L * c * D / (m * R))
        return sympy.simplify(both) == 0 and sympy.simplify(first - sympy.Rational(1, 4)) == 0

    return check


def doubled(share: str) -> Callable[[], bool]:
    """Twice the directions, or twice the clients, at d = 1000: P from 10 to 20 lowers c/m by `share` of 2 at least."""

    def check() -> bool:
        c = lambda P: 1 + Fraction(1001, P)
        return c(10) / c(20) >= 2 * Fraction(share)

    return check
