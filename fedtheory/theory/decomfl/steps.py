"""DeComFL with one local step: the steps of docs/theory/decomfl.md. c = 1 + (kappa + 1)/P, as there."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from fedtheory.theory.proof import Step, equal, follows
from fedtheory.theory.search import number, reals


def mean_of(expression: Any, normal: tuple[Any, ...]) -> Any:
    """The expectation of a polynomial in independent standard normal variables: E z^k = (k - 1)!! for even k."""
    import sympy

    total = sympy.Integer(0)
    for powers, factor in sympy.Poly(sympy.expand(expression), *normal).terms():
        if all(k % 2 == 0 for k in powers):
            total += factor * sympy.prod([sympy.factorial2(k - 1) for k in powers])
    return sympy.expand(total)


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


def several(independent: bool) -> Callable[[], bool]:
    """a^T H a for two directions in two dimensions, H symmetric: (1/P)(tr(H)|w|^2 + 2 w^T H w) + (1 - 1/P) w^T H w."""

    def check() -> bool:
        import sympy

        first, w = sympy.Matrix(sympy.symbols("y:2")), sympy.Matrix(sympy.symbols("w:2"))
        second = sympy.Matrix(sympy.symbols("z:2")) if independent else first
        h = sympy.symbols("h:3")
        H = sympy.Matrix([[h[0], h[1]], [h[1], h[2]]])
        a = ((first.T * w)[0] * first + (second.T * w)[0] * second) / 2
        normal, form = (*first, *second) if independent else tuple(first.flat()), (w.T * H * w)[0]
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
    """E|z|^2, E|z|^4, E|z|^6 for any d: those of the chi-squared law, 2^k Gamma(d/2 + k)/Gamma(d/2)."""

    def check() -> bool:
        import sympy

        d = sympy.Symbol("d", positive=True)
        for k in (1, 2, 3):
            moment: Any = sympy.gammasimp(2**k * sympy.gamma(d / 2 + k) / sympy.gamma(d / 2))
            if sympy.simplify(moment - sympy.prod([d + step * j for j in range(k)])) != 0:
                return False
        return True

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


def collected(power: int) -> Callable[[], bool]:
    """Twice |b|^2 and 2 eta L B with the moments of 1.4: (L mu)^2/2 times d^2 (d + 2), and d (d + 2)(d + 4) eta L."""

    def check() -> bool:
        import sympy

        d, L, mu, eta = sympy.symbols("d L mu eta", positive=True)
        b2 = (L * mu / 2) ** 2 * d * (d * (d + 2))
        B = (L * mu / 2) ** 2 * d * (d + 2) * (d + 4)
        first = sympy.simplify(2 * b2 - (L * mu) ** 2 / 2 * d**power * (d + 2)) == 0
        return first and sympy.simplify(2 * eta * L * B - eta * L**3 * mu**2 / 2 * d * (d + 2) * (d + 4)) == 0

    return check


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
    """2 D/(eta R) + 2 eta L c v^2/m at eta^2 = D m/(L c R v^2) is factor times v sqrt(L c D/(m R))."""

    def sides() -> tuple[Any, Any]:
        import sympy

        D, R, L, c, v, m = sympy.symbols("D R L c v m", positive=True)
        eta = sympy.sqrt(D * m / (L * c * R)) / v
        return 2 * D / (eta * R) + 2 * eta * L * c * v**2 / m, factor * v * sympy.sqrt(L * c * D / (m * R))

    return equal(sides)


def doubled(share: str) -> Callable[[], bool]:
    """Twice the directions, or twice the clients, at d = 1000: P from 10 to 20 lowers c/m by `share` of 2 at least."""

    def check() -> bool:
        c = lambda P: 1 + Fraction(1001, P)
        return c(10) / c(20) >= 2 * Fraction(share)

    return check


STEPS = [
    Step("decomfl.1.1", "expectation", "three dimensions, H symmetric, all symbols, moments of normal variables",
         fourth(2), fourth(1), "1 in the place of 2"),
    Step("decomfl.1.2", "expectation", "two directions in two dimensions, H symmetric", several(True), several(False),
         "the same direction twice"),
    Step("decomfl.1.3", "implication", "for all P >= 1, kappa, and all values of the two forms", rank(1), rank(0),
         "kappa in the place of kappa + 1"),
    Step("decomfl.1.4", "identity", "moments of the chi-squared law, for any d", lengths(2), lengths(1),
         "d + 1, d + 2"),
    Step("decomfl.2.1", "implication", "from the two bounds by the tangent", difference("1/2"), difference("2/5"),
         "2/5 in the place of 1/2"),
    Step("decomfl.2.2", "certificate", "three outcomes: half of a sum of squares with the probabilities as weights",
         cauchy(2), cauchy(1), "without the half"),
    Step("decomfl.3.1", "certificate", "the difference is a square", young("1/4"), young("1/5"), "1/5 for 1/4"),
    Step("decomfl.3.2", "certificate", "two dimensions: the difference is the form at a - b", form(-1), form(1),
         "the form at a + b"),
    Step("decomfl.3.3", "expectation", "two clients, independent signs", averaged(2), averaged(1), "undivided"),
    Step("decomfl.3.4", "implication", "for eta L c <= 1/4, all second moments", descent("1/2"), descent("3/5"),
         "3/5 in the place of 1/2"),
    Step("decomfl.3.5", "identity", "what is left of the smoothing", collected(2), collected(1), "d for d squared"),
    Step("decomfl.4.1", "expectation", "two directions in two dimensions, any step", bowl(1), bowl(2), "d + 2"),
    Step("decomfl.4.2", "identity", "both terms at the step that balances them", balanced(4), balanced(2), "half"),
    Step("decomfl.4.3", "arithmetic", "d = 1000, ten and twenty directions", doubled("99/100"), doubled("1"),
         "a whole factor of two"),
]  # fmt: skip
