"""FedMUD with fresh factors in every round: the steps of docs/theory/mud.md. c is the price of a pair of factors."""

from collections.abc import Callable
from itertools import product
from typing import Any

from fedtheory.theory.proof import Step, equal, follows
from fedtheory.theory.search import number, reals


def mean_of(expression: Any, entries: tuple[Any, ...], kurtosis: Any) -> Any:
    """The expectation of a polynomial in independent entries of mean 0, variance 1, fourth moment k; degree 4 at most.

    A third power stands beside a first one there, whose mean is 0.
    """
    import sympy

    moment = {0: 1, 1: 0, 2: 1, 3: sympy.Symbol("third"), 4: kurtosis}
    terms = sympy.Poly(sympy.expand(expression), *entries).terms()
    return sympy.expand(sum(factor * sympy.prod([moment[k] for k in powers]) for powers, factor in terms))


def _matrix(name: str, rows: int, cols: int) -> Any:
    import sympy

    return sympy.Matrix(rows, cols, sympy.symbols(f"{name}:{rows * cols}"))


def gram(U: Any, kurtosis: Any) -> Any:
    """E[U U^T]."""
    return (U * U.T).applyfunc(lambda one: mean_of(one, tuple(U), kurtosis))


def resting(start: str) -> Callable[[], bool]:
    """f = (w_22 - 1)^2/2, U = (u, 0), V = 0: both factors' gradients are 0, that of f is not."""

    def check() -> bool:
        import sympy

        U, V = sympy.Matrix([sympy.Symbol("u"), 0]), sympy.zeros(2, 1)
        if start == "second row":
            U = sympy.Matrix([0, sympy.Symbol("u")])
        G = sympy.Matrix([[0, 0], [0, (U * V.T)[1, 1] - 1]])
        return not any((G * V).flat()) and not any((G.T * U).flat()) and any(G.flat())

    return check


def one_step(fixed: bool, times: int = 1) -> Callable[[], bool]:
    """What a round of one local step does to W: A is the mean gradient of the clients. `fixed`: with AAD's partners."""

    def check() -> bool:
        import sympy

        lr, A = sympy.Symbol("lr"), _matrix("a", 2, 3)
        U, V = _matrix("u", 2, 1), _matrix("v", 3, 1)
        if fixed:  # U, V start at 0; their partners are U~ = U and V~ = V here
            moved = (-lr * A * V) * V.T + U * (-lr * A.T * U).T
            return sympy.expand(moved + lr * (times * A * V * V.T + U * U.T * A)) == sympy.zeros(2, 3)
        moved = U * (-lr * A.T * U).T  # V starts at 0, so that U does not move
        return sympy.expand(moved + times * lr * U * U.T * A) == sympy.zeros(2, 3)

    return check


GRID = tuple(product((1, 2, 3), (1, 2, 3)))


def first(scale: int) -> Callable[[], bool]:
    """E[U U^T] = r I, entries of variance 1."""

    def check() -> bool:
        import sympy

        return all(gram(_matrix("u", m, r), sympy.Symbol("k")) == scale * r * sympy.eye(m) for m, r in GRID)

    return check


def second(less: int) -> Callable[[], bool]:
    """E[(U U^T)^2] = r (m + r + k - 2) I: polynomials of degree 1 in m, 2 in r and 1 in k, equal on a grid of nine."""

    def check() -> bool:
        import sympy

        k = sympy.Symbol("k")
        for m, r in GRID:
            U = _matrix("u", m, r)
            found = ((U * U.T) ** 2).applyfunc(lambda one, U=U: mean_of(one, tuple(U), k))
            if found != (r * (m + r + k - less) * sympy.eye(m)).applyfunc(sympy.expand):
                return False
        return True

    return check


def both(cross: int) -> Callable[[], bool]:
    """E|A V V^T + U U^T A|^2 = r (m + n + 2 r + 2 k - 4 + cross r)|A|^2, U and V independent; m, n <= 2, r <= 3."""

    def check() -> bool:
        import sympy

        k = sympy.Symbol("k")
        for m, n, r in product((1, 2), (1, 2), (1, 2, 3)):
            A, U, V = _matrix("a", m, n), _matrix("u", m, r), _matrix("v", n, r)
            mixed = sum((A * gram(V, k)).multiply_elementwise(gram(U, k) * A))
            left = mean_of(sum(one**2 for one in A * V * V.T), tuple(V), k)
            right = mean_of(sum(one**2 for one in U * U.T * A), tuple(U), k)
            size = sum(one**2 for one in A)
            price = r * (m + n + 2 * r + 2 * k - 4 + cross * r)
            if sympy.expand(left + right + 2 * mixed - price * size) != 0:
                return False
        return True

    return check


def descent(part: str) -> Callable[[], bool]:
    """-alpha G + (L/2) alpha^2 c (G + N) <= -(alpha/2) G + (L/2) alpha^2 c N for L alpha c <= 1."""

    def premises() -> tuple[list, Any]:
        alpha, G, N, c, L = reals("alpha G N c L")
        given = [alpha > 0, G >= 0, N >= 0, c >= 1, L > 0, L * alpha * c <= 1]
        total = -alpha * G + L / 2 * alpha * alpha * c * (G + N)
        return given, total <= -number(part) * alpha * G + L / 2 * alpha * alpha * c * N

    return follows(premises)


def halved(rest: str) -> Callable[[], bool]:
    """m = n: AAD's price is half of FedMUD's, and a half."""

    def sides() -> tuple[Any, Any]:
        import sympy

        m, r, k = sympy.symbols("m r k", positive=True)
        return (2 * m + 4 * r + 2 * k - 4) / (4 * r), (m + r + k - 2) / (2 * r) + sympy.Rational(rest)

    return equal(sides)


def orthonormal(whole: bool) -> Callable[[], bool]:
    """U U^T = (gamma/rho) Pi with E Pi = rho I: E|(gamma/rho) Pi A|^2 = (gamma^2/rho)|A|^2; lines in two dimensions."""

    def check() -> bool:
        import sympy

        a, gamma, rho = sympy.symbols("a:2"), sympy.Symbol("gamma"), sympy.Rational(1, 2)
        lines = sum(one**2 for one in a) / 2 if whole else a[0] ** 2
        return sympy.expand((gamma / rho) ** 2 * lines - gamma**2 / rho * sum(one**2 for one in a)) == 0

    return check


def bowl(more: int) -> Callable[[], bool]:
    """f = |W|^2/2, W 2 x 1, r = 1, FedMUD: E|W+|^2 = (1 - 2 alpha + alpha^2 c)|W|^2 with c = m + r + k - 2 = k + 1."""

    def check() -> bool:
        import sympy

        W, U, alpha, k = _matrix("w", 2, 1), _matrix("u", 2, 1), *sympy.symbols("alpha k")
        new = W - alpha * U * U.T * W
        found, size = mean_of(sum(one**2 for one in new), tuple(U), k), sum(one**2 for one in W)
        return sympy.expand(found - (1 - 2 * alpha + alpha**2 * (k + more)) * size) == 0

    return check


STEPS = [
    Step("mud.1.1", "identity", "both gradients of the factors, and that of f", resting("first row"),
         resting("second row"), "U in the second row"),
    Step("mud.2.1", "identity", "a matrix of 2 x 3, r = 1", one_step(False), one_step(False, 2), "twice the step"),
    Step("mud.2.2", "identity", "a matrix of 2 x 3, r = 1", one_step(True), one_step(True, 2), "one side twice",
         ("mud.eq8-9",)),
    Step("mud.3.1", "expectation", "all m, r up to 3, entries of any law with mean 0 and variance 1", first(1),
         first(2), "twice as much"),
    Step("mud.3.2", "expectation", "all m, r up to 3; both sides are polynomials of degree 1 in m and 2 in r, which "
         "nine values decide", second(2), second(1), "k - 1 in the place of k - 2", ("mud.sharper.reset",)),
    Step("mud.3.3", "expectation", "m, n up to 2, r up to 3; degree 1 in m and n, 2 in r", both(2), both(1),
         "half of the mixed product"),
    Step("mud.4.1", "implication", "for L alpha c <= 1 and all second moments", descent("1/2"), descent("3/5"),
         "3/5 in the place of 1/2"),
    Step("mud.5.1", "identity", "the two prices at m = n", halved("1/2"), halved("0"), "half, without the rest"),
    Step("mud.5.2", "expectation", "both axes of two dimensions", orthonormal(True), orthonormal(False),
         "one axis alone"),
    Step("mud.5.3", "expectation", "W with two rows, r = 1, entries of any law", bowl(1), bowl(2), "k + 2"),
]  # fmt: skip
