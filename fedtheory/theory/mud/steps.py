"""FedMUD with fresh factors in every round: the steps of docs/theory/mud.md. c is the price of a pair of factors."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, factorial
from typing import Any

from fedtheory.theory.fedsub.steps import centred
from fedtheory.theory.flss.steps import floor
from fedtheory.theory.mud.quantities import residual
from fedtheory.theory.proof import Step, either, equal, every, follows, mean_of
from fedtheory.theory.search import number, reals


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


def orthonormal(twice: int) -> Callable[[], bool]:
    """Pi, Pi' on r random coordinates: of every A_ij^2 E|Pi A|^2 has r/m, E|A Pi' + Pi A|^2 has c (r/m + r/n)^2, AAD's
    c = m n (m + n + 2 r)/(r (m + n)^2). `twice`: of the mixed product.
    """

    def check() -> bool:
        for m, n, r in ((2, 2, 1), (3, 2, 1), (3, 2, 2), (3, 3, 2)):
            pairs = list(product(combinations(range(m), r), combinations(range(n), r)))
            price = Fraction(m * n * (m + n + twice * r), r * (m + n) ** 2)
            for i, j in product(range(m), range(n)):
                one = Fraction(sum(int(i in S) for S, _ in pairs), len(pairs))
                two = Fraction(sum((int(i in S) + int(j in T)) ** 2 for S, T in pairs), len(pairs))
                if one != Fraction(r, m) or two != price * (Fraction(r, m) + Fraction(r, n)) ** 2:
                    return False
        return True

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


# Lemma 1, and Theorem 1 with fresh factors


def eigenbases(turned: bool) -> Callable[[], bool]:
    """|G V|^2 + |U^T G|^2 = <G, S G> + <G, G Z> = sum (a_i + b_j) Ghat_ij^2, S = U U^T, Z = V V^T, Ghat = P^T G Q."""

    def check() -> bool:
        import sympy

        G, U, V = _matrix("g", 2, 2), _matrix("u", 2, 1), _matrix("v", 2, 1)
        first = sum(one**2 for one in G * V) + sum(one**2 for one in U.T * G)
        good = sympy.expand(first - sum((U * U.T * G + G * V * V.T).multiply_elementwise(G))) == 0
        (c, s, c2, s2), a, b = sympy.symbols("c s c2 s2"), sympy.symbols("a:2"), sympy.symbols("b:2")
        P, Q = sympy.Matrix([[c, -s], [s, c]]), sympy.Matrix([[c2, -s2], [s2, c2]])
        form = sum((P * sympy.diag(*a) * P.T * G + G * Q * sympy.diag(*b) * Q.T).multiply_elementwise(G))
        seen = P.T * G * Q if turned else G
        gap = sympy.expand(form - sum((a[i] + b[j]) * seen[i, j] ** 2 for i, j in product(range(2), repeat=2)))
        gap = sympy.rem(sympy.rem(gap, c**2 + s**2 - 1, c), c2**2 + s2**2 - 1, c2)
        return good and sympy.expand(gap) == 0

    return check


def least(of: int) -> Callable[[], bool]:
    """sum (a_i + b_j) y_ij >= (a_of + b_0) sum y_ij for a_0 <= a_1, b_0 <= b_1 and y >= 0."""

    def premises() -> tuple[list, Any]:
        a, b, y = reals("a0 a1"), reals("b0 b1"), reals("y00 y01 y10 y11")
        given = [a[0] >= 0, a[0] <= a[1], b[0] >= 0, b[0] <= b[1], *(one >= 0 for one in y)]
        pairs = [(a[i] + b[j]) * one for (i, j), one in zip(product(range(2), repeat=2), y)]
        return given, sum(pairs) >= (a[of] + b[0]) * sum(y)

    return follows(premises)


def unseen(orthogonal: bool) -> Callable[[], bool]:
    """U 3 x 2: x orthogonal to both columns, G = x y^T, V = 0: both gradients of the factors vanish."""

    def check() -> bool:
        import sympy

        U, y = _matrix("u", 3, 2), _matrix("y", 2, 1)
        x = U[:, 0].cross(U[:, 1]) if orthogonal else U[:, 0]
        G = x * y.T
        return not any((G.T * U).applyfunc(sympy.expand)) and any((G.T * G).applyfunc(sympy.expand))

    return check


def partners(fixed: bool) -> Callable[[], bool]:
    """The gradients in U, V of <G, U V~^T + U~ V^T> are G V~ and G^T U~."""

    def check() -> bool:
        import sympy

        G, U, V, Ut, Vt = (_matrix(*one) for one in (("g", 2, 3), ("u", 2, 2), ("v", 3, 2), ("w", 2, 2), ("z", 3, 2)))
        value = sum((U * Vt.T + Ut * V.T).multiply_elementwise(G))
        left, right = (G * Vt, G.T * Ut) if fixed else (G * V, G.T * U)
        gaps = [sympy.diff(value, one) - want for M, W in ((U, left), (V, right)) for one, want in zip(M, W)]
        return not any(sympy.expand(gap) for gap in gaps)

    return check


def passed(times: int) -> Callable[[], bool]:
    """The average of the squared gradients is at least so many times (69) with (71), c = 3/2, at m = 64."""

    def check() -> bool:
        m, s2, eta, T, G2 = 64, Fraction(1, 2**12), Fraction(1, 2**14), 2**28, Fraction(1, 4)
        psi2, root = m * s2, Fraction(1, 2**7)  # the root of eta
        ku, kv = 16 * psi2, Fraction(1, 16)
        curvature = ku + kv + Fraction(1, 2) + Fraction(1, 8)  # of h: L_s = 1; 1/8 = sqrt(ku kv)
        delta = 2 * eta * s2 - m * eta**2 * s2**2
        left = G2 / (delta * T) * (1 - 1 / (1 + delta * T))
        gu, gv = 2 * psi2 + 2 * eta**2 * G2 * kv, 2 * eta**2 * G2 * ku
        C = residual(1, 0, 1, 1, eta, 1, G2, 0, gu, gv, 12)
        right = G2 / (eta * root * T) + 2 * Fraction(C) / (eta * root)
        admitted = root**2 == eta == (psi2 / 2) ** 2 and curvature <= 1 and ku * kv == Fraction(1, 64)
        return admitted and left >= times * right

    return check


# Several local steps: the preconditioner


def _steps(form: str, clients: int, K: int, n: int = 2) -> tuple[Any, ...]:
    """K local steps with any gradients: U, V, gradients g[i][k], and U_i^k, V_i^k of all clients and steps."""
    import sympy

    m, lr = 2, sympy.Symbol("lr")
    Ut, Vt = _matrix("u", m, 1), _matrix("v", n, 1)
    g = [[_matrix(f"g{i}{k}_", m, n) for k in range(K)] for i in range(clients)]
    paths = []
    for own in g:
        U, V = (Ut if form == "product" else sympy.zeros(m, 1)), sympy.zeros(n, 1)
        path = [(U, V)]
        for G in own:
            left, right = (V, U) if form == "product" else (Vt, Ut)
            U, V = U - lr * G * left, V - lr * G.T * right
            path.append((U, V))
        paths.append(path)
    return lr, Ut, Vt, g, paths


def affine(form: str) -> Callable[[], bool]:
    """Two clients, two steps: W+ - W = -lr R (sum over steps of the clients' mean gradient)."""

    def check() -> bool:
        import sympy

        lr, Ut, Vt, g, paths = _steps(form, 2, 2)
        (U1, V1), (U2, V2) = (path[-1] for path in paths)
        U, V = (U1 + U2) / 2, (V1 + V2) / 2
        moved = U * V.T if form == "product" else U * Vt.T + Ut * V.T
        total = (g[0][0] + g[0][1] + g[1][0] + g[1][1]) / 2
        R = Ut * Ut.T * total if form == "product" else total * Vt * Vt.T + Ut * Ut.T * total
        return (moved + lr * R).applyfunc(sympy.expand) == sympy.zeros(2, 2)

    return check


def symmetric(sign: int) -> Callable[[], bool]:
    """<A, R B> = <A V~, B V~> + <U~^T A, U~^T B>."""

    def check() -> bool:
        import sympy

        A, B, U, V = (_matrix(name, 2, 2) for name in "abuv")
        form = sum((B * V * V.T + U * U.T * B).multiply_elementwise(A))
        roots = sum((A * V).multiply_elementwise(B * V)) + sign * sum((U.T * A).multiply_elementwise(U.T * B))
        return sympy.expand(form - roots) == 0

    return check


def ceiling(part: str) -> Callable[[], bool]:
    """sum l^2 y <= Lambda sum l y for 0 <= l <= Lambda, y >= 0."""

    def premises() -> tuple[list, Any]:
        l1, l2, y1, y2, most = reals("l1 l2 y1 y2 Lambda")
        given = [l1 >= 0, l1 <= most, l2 >= 0, l2 <= most, y1 >= 0, y2 >= 0]
        return given, l1 * l1 * y1 + l2 * l2 * y2 <= number(part) * most * (l1 * y1 + l2 * y2)

    return follows(premises)


def laws(third: int) -> Callable[[], bool]:
    """kappa: uniform entries of variance a^2/third, and orthonormal columns; without and with AAD."""

    def check() -> bool:
        import sympy

        m, n, r, a, tau = sympy.symbols("m n r a tau", positive=True)
        s2 = a**2 / third
        pairs = [
            (m * r * a**2, r * s2, 3 * m),
            ((m + n) * r * a**2, 2 * r * s2, sympy.Rational(3, 2) * (m + n)),
            (tau, tau * r / m, m / r),
            (2 * tau, tau * (r / m + r / n), 2 * m * n / (r * (m + n))),
        ]
        return all(sympy.simplify(most / gamma - kappa) == 0 for most, gamma, kappa in pairs)

    return check


# The factors' drift


def growth(same: bool) -> Callable[[], bool]:
    """c_{k+1} = c_k + x s_k, s_{k+1} = s_k + x c_k, with (1 + x)^k = p, (1 - x)^k = q."""

    def check() -> bool:
        import sympy

        x, p, q = sympy.symbols("x p q")
        c, s = (p + q) / 2, (p - q) / 2
        higher = ((1 + x) * p + (1 - x) * q) / 2, ((1 + x) * p - (1 - x) * q) / 2
        rises = (x * s, x * c) if same else (x * c, x * s)
        return all(sympy.expand(new - old - rise) == 0 for new, old, rise in zip(higher, (c, s), rises))

    return check


def drifts(larger: str) -> Callable[[], bool]:
    """u <= c - 1 and v <= s, then also u + x v <= c + x s - 1 and v + x (1 + u) <= s + x c; `larger`: in place of 1."""

    def premises() -> tuple[list, Any]:
        import z3

        u, v, c, s, x = reals("u v c s x")
        return [x >= 0, u <= c - 1, v <= s], z3.And(
            u + x * v <= c + x * s - 1, v + x * (number(larger) + u) <= s + x * c
        )

    return follows(premises)


def bent(whole: bool) -> Callable[[], bool]:
    """Two clients, three steps: W+ - W + lr U U^T sum g = (Ubar - U) Vbar^T - lr U sum_j mean_i (U_i^j - U)^T g_i^j."""

    def check() -> bool:
        import sympy

        lr, U, _, g, paths = _steps("product", 2, 3, 1)
        Ub, Vb = ((paths[0][-1][k] + paths[1][-1][k]) / 2 for k in (0, 1))
        pairs = [(paths[i][j][0], g[i][j]) for i in range(2) for j in range(3)]
        total = sum((G for _, G in pairs), sympy.zeros(2, 1)) / 2
        late = sum(((Uj - U).T * G for Uj, G in pairs), sympy.zeros(1, 1)) / 2
        error = (Ub - U) * Vb.T - (lr * U * late if whole else sympy.zeros(2, 1))
        return (Ub * Vb.T + lr * U * U.T * total - error).applyfunc(sympy.expand) == sympy.zeros(2, 1)

    return check


def _hyperbolic(k: int) -> tuple[Any, Any, Any]:
    import sympy

    x = sympy.Symbol("x")
    return x, ((1 + x) ** k + (1 - x) ** k) / 2, ((1 + x) ** k - (1 - x) ** k) / 2


def summed(linear: int) -> Callable[[], bool]:
    """(c_K - 1) s_K + sum x (c_j - 1) = c_K s_K - `linear` K x = ((1 + x)^2K - (1 - x)^2K)/4 - K x; K = 1..6."""

    def check() -> bool:
        import sympy

        for K in range(1, 7):
            x, c, s = _hyperbolic(K)
            left = (c - 1) * s + sum(x * (_hyperbolic(j)[1] - 1) for j in range(K))
            closed = ((1 + x) ** (2 * K) - (1 - x) ** (2 * K)) / 4 - linear * K * x
            if sympy.expand(left - closed) != 0 or sympy.expand(c * s - linear * K * x - closed) != 0:
                return False
        return True

    return check


def layers(crossed: bool) -> Callable[[], bool]:
    """(x1^2 + x2^2)(y1^2 + y2^2) - (x1^2 y1^2 + x2^2 y2^2) is a sum of squares; crossed: both layers' products."""

    def sides() -> tuple[Any, Any]:
        import sympy

        x, y = sympy.symbols("x1 x2"), sympy.symbols("y1 y2")
        apart = x[0] ** 2 * y[0] ** 2 + x[1] ** 2 * y[1] ** 2
        crosses = x[0] ** 2 * y[1] ** 2 + (x[1] ** 2 * y[0] ** 2 if crossed else 0)
        return (x[0] ** 2 + x[1] ** 2) * (y[0] ** 2 + y[1] ** 2) - apart, crosses

    return equal(sides)


def cubic(most: str) -> Callable[[], bool]:
    """(1/2) sum_{j >= 3 odd} 1/j! 2^3 <= most, the value at theta = 1/2 over theta^3; binom(2K, j) <= (2K)^j/j!."""

    def check() -> bool:
        odd = range(3, 15, 2)
        rest = 2 * Fraction(1, factorial(15))  # what follows is less than a geometric series of ratio 1/2
        counted = all(comb(2 * K, j) * factorial(j) <= (2 * K) ** j for K in range(1, 9) for j in odd)
        return counted and 4 * (sum(Fraction(1, factorial(j)) for j in odd) + rest) <= Fraction(most)

    return check


def attained(linear: int) -> Callable[[], bool]:
    """m = n = r = 1, U = 1, gradient -B: U_K V_K - K x is the bound; K = 1..6."""

    def check() -> bool:
        import sympy

        for K in range(1, 7):
            x, c, s = _hyperbolic(K)
            U, V = sympy.Integer(1), sympy.Integer(0)
            for _ in range(K):
                U, V = U + x * V, V + x * U
            if sympy.expand(U * V - K * x - (c * s - linear * K * x)) != 0:
                return False
        return True

    return check


# The round


def four(factor: int) -> Callable[[], bool]:
    """4 sum v_i^2 - (sum v_i)^2 = sum (v_i - v_j)^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        v = sympy.symbols("v:4")
        squares = sum((a - b) ** 2 for a, b in combinations(v, 2))
        return factor * sum(one**2 for one in v) - sum(v) ** 2, squares

    return equal(sides)


def counted(less: int) -> Callable[[], bool]:
    """sum 4 k^2 = (4/3) K^2 (K - less) - (2/3) K (K - 1), sum 4 k = 2 K (K - 1)."""

    def check() -> bool:
        import sympy

        k, K = sympy.symbols("k K")
        squares, sums = (sympy.summation(4 * k**power, (k, 0, K - 1)) for power in (2, 1))
        third = sympy.Rational(2, 3)
        first = sympy.expand(squares - 2 * third * K**2 * (K - less) + third * K * (K - 1))
        return first == 0 and sympy.expand(sums - 2 * K * (K - 1)) == 0

    return check


def exponential(most: str) -> Callable[[], bool]:
    """e^(1/4) <= most, 4/3 of it <= 1.714."""

    def check() -> bool:
        terms = [Fraction(1, 4**i * factorial(i)) for i in range(9)]
        bound = Fraction(most)
        return sum(terms) + terms[-1] <= bound and Fraction(4, 3) * bound <= Fraction(1714, 1000)

    return check


def local_descent(most: str) -> Callable[[], bool]:
    """-a (a + b) + (5/8) q (a + b + z)^2 <= -a^2/2 + b^2/2 + (5/4) q z^2 for 0 <= q <= most, in every coordinate."""

    def premises() -> tuple[list, Any]:
        a, b, z, q = reals("a b z q")
        left = -a * (a + b) + number("5/8") * q * (a + b + z) * (a + b + z)
        return [q >= 0, q <= number(most)], left <= -a * a / 2 + b * b / 2 + number("5/4") * q * z * z

    return follows(premises)


def young(factor: int) -> Callable[[], bool]:
    """(5/4) y^2 + 5 e^2 - (y + e)^2 = (y/2 - 2 e)^2; w t G^2 + e^2/(4 w t) - G e = (2 w t G - e)^2/(4 w t), w t = 9 K
    alpha/200.
    """

    def check() -> bool:
        import sympy

        y, e, G, step = sympy.symbols("y e G Ka", positive=True)
        first = sympy.Rational(5, 4) * y**2 + factor * e**2 - (y + e) ** 2 - (y / 2 - 2 * e) ** 2
        w = 9 * step / 200
        second = w * G**2 + 50 * e**2 / (9 * step) - G * e - (2 * w * G - e) ** 2 / (4 * w)
        return sympy.expand(first) == 0 and sympy.simplify(second) == 0

    return check


def collected(kept: str) -> Callable[[], bool]:
    """The coefficients of |G|^2 and, over (kappa theta^2 B)^2, of the error, for q <= 1/4 and kappa >= 1."""

    def premises() -> tuple[list, Any]:
        import z3

        q, u, kappa = reals("q u kappa")
        given = [q > 0, q <= number("1/4"), u >= 0, u <= 1, kappa >= 1]
        gradient = 1 - number("1.714") * q * q * u - number("0.09")
        rest = number("5.14") * kappa * q * q * u + 5 * kappa * q + kappa * kappa / number("0.09")
        small = number("0.4915") * rest <= number("6.25") * kappa * kappa
        return given, z3.And(gradient >= number(kept), small, number("0.701") * number("0.701") <= number("0.4915"))

    return follows(premises)


def divided(zeta: str) -> Callable[[], bool]:
    """Over 4/5 the constants are those of the page's second theorem."""

    def check() -> bool:
        found = [Fraction(one) / Fraction(4, 5) for one in ("2", "1.714", "2.57", "2.5", "6.25")]
        return all(one <= Fraction(most) for one, most in zip(found, ("2.5", zeta, "3.3", "3.2", "8")))

    return check


# Corollaries


def alike(times: str) -> Callable[[], bool]:
    """B = `times` |G| stays a bound, theta <= 1/2, and what is left of 4/5 gives 3.2, at kappa (eta K |G|)^2 = 1/25."""

    def check() -> bool:
        B = Fraction(times)
        sinh = sum(Fraction(1, factorial(j)) for j in range(1, 14, 2)) + 2 * Fraction(1, factorial(15))
        inside = sinh <= Fraction("1.1753") and 1 + Fraction("1.1753") * B / 4 <= B and 2 * B <= 5
        lost = Fraction("6.25") * B**6 / 5**4
        return inside and lost <= Fraction("0.168") and 2 / (Fraction(4, 5) - Fraction("0.168")) <= Fraction("3.2")

    return check


def contracts(part: str) -> Callable[[], bool]:
    """With G2 >= 2 mu gap: gap - (2/5) u (G2 - X) - Y <= (1 - part mu u)(gap - Y), Y = X/(2 mu); one step alike."""

    def premises() -> tuple[list, Any]:
        import z3

        gap, G2, mu, u, Y, Z = reals("gap G2 mu u Y Z")
        given = [gap >= 0, mu > 0, u > 0, Y >= 0, Z >= 0, 2 * mu * gap <= G2]
        several = gap - number("2/5") * u * (G2 - 2 * mu * Y) - Y <= (1 - number(part) * mu * u) * (gap - Y)
        one = gap - u / 2 * (G2 - 2 * mu * Z) - Z <= (1 - mu * u) * (gap - Z)
        return given, z3.And(several, one)

    return follows(premises)


def interval(first: str) -> Callable[[], bool]:
    """Three rounds in one subspace: E f falls by (2/5) u |G|^2 - (2/5) u (X + 2 X'), of later rounds only a_t >= 0."""

    def premises() -> tuple[list, Any]:
        f, (u, G, X, Xk, a1, a2) = reals("f0 f1 f2 f3"), reals("u G X Xk a1 a2")
        part = number("2/5") * u
        given = [u > 0, a1 >= 0, a2 >= 0, f[1] <= f[0] - part * (G - X)]
        given += [f[2] <= f[1] - part * (a1 - Xk), f[3] <= f[2] - part * (a2 - Xk)]
        return given, f[3] <= f[0] - number(first) * part * G + part * (X + 2 * Xk)

    return follows(premises)


def given(part: str) -> Callable[[], bool]:
    """Half of 1 - 1.714 q^2 u is at least `part` for q <= 1/4, u <= 1; l y <= Lambda y for an eigenvalue l of R."""

    def premises() -> tuple[list, Any]:
        import z3

        q, u, size, most, apart = reals("q u l Lambda apart")
        bounds = [q > 0, 4 * q <= 1, u >= 0, u <= 1, size >= 0, size <= most, apart >= 0]
        return bounds, z3.And(1 - number("1.714") * q * q * u >= 2 * number(part), size * apart <= most * apart)

    return follows(premises)


# What a reset buys


def left_over(twice: int) -> Callable[[], bool]:
    """E|(I - eta R)^K W|^2 over random coordinates, AAD and frozen; K = 1, 2, layers of 2 x 2 and 3 x 2."""

    def check() -> bool:
        import sympy

        eta = sympy.Symbol("eta")
        for (m, n, r), K in product(((2, 2, 1), (3, 2, 1), (3, 2, 2)), (1, 2)):
            W, a, b = _matrix("w", m, n), sympy.Rational(r, m), sympy.Rational(r, n)
            rows, cols = list(combinations(range(m), r)), list(combinations(range(n), r))
            once, more = (1 - eta) ** (2 * K), (1 - twice * eta) ** (2 * K)
            size = sum(one**2 for one in W)
            aad = frozen = 0
            for S in rows:
                for i, j in product(range(m), range(n)):
                    frozen += (1 - eta * int(i in S)) ** (2 * K) * W[i, j] ** 2 / len(rows)
                    for T in cols:
                        aad += (1 - eta * (int(i in S) + int(j in T))) ** (2 * K) * W[i, j] ** 2 / len(rows) / len(cols)
            both = (1 - a) * (1 - b) + (a + b - 2 * a * b) * once + a * b * more
            if sympy.expand(aad - both * size) != 0 or sympy.expand(frozen - (1 - a * (1 - once)) * size) != 0:
                return False
        return True

    return check


def projected(flips: bool, exchanges: bool = True) -> Callable[[], bool]:
    """The mean of S M S^T over exchanges and changes of sign S of the rows is (tr M/m) I, M symmetric; m = 2, 3.

    `exchanges`: False leaves the rows in their places, as for independent entries of different laws.
    """

    def check() -> bool:
        import sympy

        for m in (2, 3):
            M = sympy.Matrix(m, m, lambda i, j: sympy.Symbol(f"m{min(i, j)}{max(i, j)}"))
            total, count = sympy.zeros(m, m), 0
            orders = list(permutations(range(m))) if exchanges else [tuple(range(m))]
            for order, signs in product(orders, product((1, -1) if flips else (1,), repeat=m)):
                S = sympy.Matrix(m, m, lambda i, j, order=order, signs=signs: signs[i] * int(order[i] == j))
                total, count = total + S * M * S.T, count + 1
            if (total / count - M.trace() / m * sympy.eye(m)).applyfunc(sympy.expand) != sympy.zeros(m, m):
                return False
        return True

    return check


def compared(times: int) -> Callable[[], bool]:
    """r/(m + r + k - 2) <= r/m for r, k >= 1; (1 - a)(1 - b) - (1 - a - b) = `times` a b."""

    def check() -> bool:
        import sympy

        def premises() -> tuple[list, Any]:
            m, r, k = reals("m r k")
            return [m >= 1, r >= 1, k >= 1], r * m <= r * (m + r + k - 2)

        a, b = sympy.symbols("a b")
        return follows(premises)() and sympy.expand((1 - a) * (1 - b) - (1 - a - b) - times * a * b) == 0

    return check


def tails(more: int) -> Callable[[], bool]:
    """sum s_j p_j >= the smallest 4 - r of the s_j, and `more`, for 0 <= p <= 1, sum p = 4 - r; r = 1, 2, 3.

    For any number of them: A, B and a, b are sums over j <= r of s_j p_j and p_j, over j > r of s_j (1 - p_j), 1 - p_j.
    """

    def premises() -> tuple[list, Any]:
        import z3

        s, parts, given = reals("s1 s2 s3 s4"), [], []
        given += [s[j] >= s[j + 1] for j in range(3)] + [s[3] >= 0]
        for r in (1, 2, 3):
            p = reals(" ".join(f"p{r}{j}" for j in range(4)))
            given += [sum(p) == 4 - r] + [one >= 0 for one in p] + [one <= 1 for one in p]
            parts.append(sum(a * b for a, b in zip(s, p)) >= sum(s[r - more :]))
        A, B, a, b, least = reals("A B a b least")
        return [*given, least * a <= A, least * b >= B, a == b], z3.And(*parts, A >= B)

    return follows(premises)


def distance(sign: int) -> Callable[[], bool]:
    """|t p - e|^2 - (|e|^2 - <e, p>^2/|p|^2) is the square |p|^2 (t - <e, p>/|p|^2)^2: no point of a line is nearer."""

    def sides() -> tuple[Any, Any]:
        import sympy

        t, p, e = sympy.Symbol("t"), sympy.symbols("p:2"), sympy.symbols("e:2")
        size, along = sum(one**2 for one in p), sum(a * b for a, b in zip(p, e))
        left = sum((t * a - b) ** 2 for a, b in zip(p, e)) - (sum(one**2 for one in e) - along**2 / size)
        return left, size * (t + sign * along / size) ** 2

    return equal(sides)


STEPS = [
    Step("mud.1.1", "identity", "both gradients of the factors, and that of f", resting("first row"),
         resting("second row"), "U in the second row"),
    Step("mud.1.2", "identity", "a matrix of 2 x 2, both eigenbases turned by any angle", eigenbases(True),
         eigenbases(False), "G in place of P^T G Q"),
    Step("mud.1.3", "implication", "two eigenvalues each, all squared entries", least(0), least(1),
         "the second eigenvalue of S"),
    Step("mud.1.4", "identity", "every U of 3 x 2 with independent columns", unseen(True), unseen(False),
         "x a column of U"),
    Step("mud.1.5", "identity", "a matrix of 2 x 3, r = 2, all entries", partners(True), partners(False),
         "the trained factors in place of their partners", ("mud.aad.any_product",)),
    Step("mud.1.6", "arithmetic", "both sides at m = 64, as fractions", passed(14), passed(17), "17 times"),
    Step("mud.2.1", "identity", "a matrix of 2 x 3, r = 1", one_step(False), one_step(False, 2), "twice the step"),
    Step("mud.2.2", "identity", "a matrix of 2 x 3, r = 1", one_step(True), one_step(True, 2), "one side twice",
         ("mud.eq8-9",)),
    Step("mud.3.1", "expectation", "all m, r up to 3, entries of any law with mean 0 and variance 1", first(1),
         first(2), "twice as much"),
    Step("mud.3.2", "expectation", "all m, r up to 3; both sides are polynomials of degree 1 in m and 2 in r, which "
         "nine values decide", second(2), second(1), "k - 1 instead of k - 2", ("mud.sharper.reset",)),
    Step("mud.3.3", "expectation", "m, n up to 2, r up to 3; degree 1 in m and n, 2 in r", both(2), both(1),
         "half of the mixed product"),
    Step("mud.4.1", "implication", "for L alpha c <= 1 and all second moments", descent("1/2"), descent("3/5"),
         "3/5 instead of 1/2"),
    Step("mud.5.1", "identity", "the two prices at m = n", halved("1/2"), halved("0"), "half, without the rest"),
    Step("mud.5.2", "expectation", "random coordinates, four shapes; of any law only E Pi, E Pi' and independence are "
         "used", orthonormal(2), orthonormal(1), "half of the mixed product"),
    Step("mud.5.3", "expectation", "W with two rows, r = 1, entries of any law", bowl(1), bowl(2), "k + 2"),
    Step("mud.6.1", "identity", "two clients, two steps, any gradients, layers of 2 x 2", affine("aad"),
         affine("product"), "the product U V^T in place of AAD", ("mud.eq8-9",)),
    Step("mud.6.2", "identity", "all matrices of 2 x 2", symmetric(1), symmetric(-1), "minus"),
    Step("mud.6.3", "implication", "two eigenvalues between 0 and Lambda", ceiling("1"), ceiling("1/2"), "Lambda/2"),
    Step("mud.6.4", "identity", "all sides, ranks and scales", laws(3), laws(2), "a variance of a^2/2"),
    Step("mud.7.1", "implication", "from k to k + 1, for all norms, and the recursion of c and s as an identity",
         every(growth(True), drifts("1")), either(growth(False), drifts("11/10")),
         "c and s exchanged; |U| a tenth longer"),
    Step("mud.7.2", "identity", "two clients, three steps, any gradients, a layer of 2 x 1", bent(True), bent(False),
         "without the second term", ("mud.sharper.bent",)),
    Step("mud.7.3", "identity", "K up to 6, all x; for every K by 7.1, whose second part summed is s_K; two layers",
         every(summed(1), layers(True)), either(every(summed(2), layers(True)), every(summed(1), layers(False))),
         "2 K x; one of the layers' products"),
    Step("mud.7.4", "arithmetic", "partial sums as fractions, what is left of the series; binomials for K up to 8, a "
         "binomial times j! being j factors of at most 2K for every K", cubic("0.701"),
         cubic("0.7"), "0.7"),
    Step("mud.7.5", "identity", "K up to 6, all x; the recursion is that of 7.1", attained(1), attained(2), "2 K x"),
    Step("mud.8.1", "identity", "in every coordinate", four(4), four(3), "3 instead of 4"),
    Step("mud.8.2", "identity", "all K; what is dropped is (2/3) K (K - 1) >= 0", counted(1), counted(2), "K - 2"),
    Step("mud.8.3", "arithmetic", "the exponential series as fractions", exponential("1.285"), exponential("1.284"),
         "1.284"),
    Step("mud.8.4", "implication", "q <= 1/4, in every coordinate", local_descent("1/4"), local_descent("1/2"),
         "q <= 1/2"),
    Step("mud.8.5", "identity", "in every coordinate; G and e stand for the two norms", young(5), young(4),
         "4 instead of 5"),
    Step("mud.8.6", "implication", "all q <= 1/4, kappa >= 1 and K", collected("0.8"), collected("0.81"), "0.81"),
    Step("mud.8.7", "arithmetic", "five quotients", divided("2.2"), divided("2.1"), "2.1 instead of 2.2",
         ("mud.sharper.local",)),
    Step("mud.9.1", "arithmetic", "1.6 of the gradient, as fractions", alike("1.6"), alike("1.4"), "1.4"),
    Step("mud.9.2", "implication", "all gaps, gradients and steps", contracts("4/5"), contracts("5/4"),
         "5/4 instead of 4/5"),
    Step("mud.9.3", "implication", "section 8 for a given R, in an eigenvector of it; three rounds; each round more "
         "adds a line", every(centred(True), given("2/5"), interval("1")), either(given("9/20"), interval("2")),
         "9/20 instead of 2/5; the first round twice"),
    Step("mud.10.1", "expectation", "random coordinates, three shapes, one and two steps; the left side is linear in "
         "each projection, and a function of three eigenvalues", left_over(2), left_over(1),
         "1 - eta where both projections act",
         ("mud.sharper.saturates",)),
    Step("mud.10.2", "expectation", "every symmetric matrix of 2 or 3 rows, all exchanges and signs",
         projected(True), either(projected(False), projected(True, exchanges=False)),
         "exchanges alone, and signs alone"),
    Step("mud.10.3", "identity", "all shares; the first part for all m, r, k at least 1", compared(1), compared(2),
         "2 a b"),
    Step("mud.10.4", "implication", "four singular values, ranks 1 to 3, and the sums for any number; p_j is the share "
         "of the j-th direction in Z",
         tails(0), tails(1), "one singular value more"),
    Step("mud.10.5", "implication", "both bounds, for all mu <= L (as flss.2.1); the nearest point of a line in the "
         "plane", every(floor("1/2"), distance(-1)), either(floor("1/4"), distance(1)), "L/4; the other sign"),
]  # fmt: skip
