"""What no method in a subspace can beat, and what a decaying curvature saves: the steps of docs/theory/limits.md."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import factorial
from typing import Any

from fedtheory.theory.proof import Step, either, equal, every, follows, mean_of
from fedtheory.theory.search import number, reals

# 1: the average criterion


def outside(kept: str) -> Callable[[], bool]:
    """|x + P u|^2 = |x|^2 - <x, P x> + |P x + P u|^2, P on the first axis of two; `kept`: its eigenvalue."""

    def sides() -> tuple[Any, Any]:
        import sympy

        a, b, c, k = *sympy.symbols("a b c"), sympy.Rational(kept)
        return (a + k * c) ** 2 + b**2, a**2 + b**2 - k * a**2 + (k * a + k * c) ** 2

    return equal(sides)


def _masks(d: int, r: int) -> list[list[int]]:
    return [[int(i in kept) for i in range(d)] for kept in combinations(range(d), r)]


def left_over(fair: bool) -> Callable[[], bool]:
    """E(|x|^2 - <x, P x>) = (1 - r/d) |x|^2 over all masks, d up to 4. `fair`: all masks are drawn, not only some."""

    def check() -> bool:
        import sympy

        for d in (2, 3, 4):
            for r in range(1, d):
                x, masks = sympy.symbols(f"x:{d}"), _masks(d, r)[: None if fair else -1]
                mean = sum((1 - m) * v**2 for mask in masks for m, v in zip(mask, x)) / len(masks)
                if sympy.expand(mean - (1 - sympy.Rational(r, d)) * sum(v**2 for v in x)) != 0:
                    return False
        return True

    return check


def induction(most: int) -> Callable[[], bool]:
    """n1 >= (1 - rho) n0 and n0 >= w give n1 >= (1 - rho) w; `most`: of rho."""

    def premises() -> tuple[list, Any]:
        rho, n0, n1, w = reals("rho n0 n1 w")
        return [rho >= 0, rho <= most, w >= 0, n0 >= w, n1 >= (1 - rho) * n0], n1 >= (1 - rho) * w

    return follows(premises)


def geometric(factor: int) -> Callable[[], bool]:
    """Sum_{t<T} L^2 (1 - rho)^t |x|^2 = 2 L Delta (1 - (1 - rho)^T)/rho, Delta = L |x|^2/2, by induction on T."""

    def check() -> bool:
        import sympy

        L, n, rho, power = sympy.symbols("L n rho power", positive=True)  # power: (1 - rho)^T
        total = lambda power: factor * L * (L * n / 2) * (1 - power) / rho
        step = total(power * (1 - rho)) - total(power) - L**2 * power * n
        return total(1) == 0 and sympy.simplify(step) == 0

    return check


def attained(share: str) -> Callable[[], bool]:
    """x' = x - share P x over all masks of two of three, three rounds: E |x_t|^2 = (1 - rho)^t |x|^2."""

    def check() -> bool:
        import sympy

        x = sympy.symbols("x:3")
        weights = [sum((1 - sympy.Rational(share) * m) ** 2 for m in axis) / 3 for axis in zip(*_masks(3, 2))]
        return all(
            sympy.expand(
                sum(w**t * v**2 for w, v in zip(weights, x)) - sympy.Rational(1, 3) ** t * sum(v**2 for v in x)
            )
            == 0
            for t in range(4)
        )

    return check


def best_step(part: str) -> Callable[[], bool]:
    """1 - 2 rho a + a^2 omega rho >= 1 - rho/omega for every a, times omega; `part`: of rho."""

    def premises() -> tuple[list, Any]:
        rho, omega, a = reals("rho omega a")
        left = omega * (1 - 2 * rho * a + a * a * omega * rho)
        return [rho > 0, omega >= rho], left >= omega - number(part) * rho

    return follows(premises)


# 2: the curvature that counts


def effective(part: str) -> Callable[[], bool]:
    """-e rho g + (e^2/2) E<P G, H P G> <= -(e rho/2) g at e = 1/omega, L = 1; that mean is at most rho omega g."""

    def premises() -> tuple[list, Any]:
        e, rho, omega, g, mean = reals("e rho omega g mean")
        given = [rho > 0, omega > 0, e * omega == 1, g >= 0, mean <= rho * omega * g]
        return given, -e * rho * g + e * e / 2 * mean <= -number(part) * e * rho * g

    return follows(premises)


def telescoped(twice: int) -> Callable[[], bool]:
    """(rho/(2 L omega)) times the sum is at most Delta: the mean is at most 2 L omega Delta/(rho T)."""

    def sides() -> tuple[Any, Any]:
        import sympy

        rho, omega, L, gap, T = sympy.symbols("rho omega L gap T", positive=True)
        return gap / (rho / (2 * L * omega)) / T, twice * L * omega * gap / (rho * T)

    return equal(sides)


def _haar(d: Any, r: Any) -> tuple[Any, Any]:
    return r * (d * (r + 1) - 2) / (d * (d - 1) * (d + 2)), r * (d - r) / (d * (d - 1) * (d + 2))


def haar(plus: int) -> Callable[[], bool]:
    """a + b d = r/d (the trace), a + b = r (r + 2)/(d (d + 2)) (a chi-square's second moments: `plus` is 2)."""

    def check() -> bool:
        import sympy

        d, r = sympy.symbols("d r", positive=True)
        a, b = _haar(d, r)
        z = sympy.symbols("z:4")
        moments = all(mean_of(sum(v**2 for v in z[:n]) ** 2, z[:n]) == n * (n + plus) for n in (1, 2, 3, 4))
        second = r * (r + plus) / (d * (d + plus))
        return moments and sympy.simplify(a + b * d - r / d) == 0 and sympy.simplify(a + b - second) == 0

    return check


def haar_price(extra: int) -> Callable[[], bool]:
    """(a + b k) d^2/r^2 is at most 1 + (k + `extra`)/r and at most d/r, for 1 <= r <= d, d >= 2, 0 <= k <= d."""

    def premises() -> tuple[list, Any]:
        import z3

        d, r, k = reals("d r k")
        above, below = d * (d * (r + 1) - 2) + d * (d - r) * k, (d - 1) * (d + 2)  # the price times r
        return [r >= 1, r <= d, d >= 2, k >= 0, k <= d], z3.And(above <= (r + k + extra) * below, above <= d * below)

    return follows(premises)


def gaussian(kurtosis: int) -> Callable[[], bool]:
    """E g g^T H g g^T = 2 H + tr H I in three dimensions, and for r vectors ((r + 1) H + tr H I)/r."""

    def check() -> bool:
        import sympy

        g, H = (
            sympy.Matrix(sympy.symbols("g:3")),
            sympy.Matrix(3, 3, lambda i, j: sympy.Symbol(f"h{min(i, j)}{max(i, j)}")),
        )
        r, one = sympy.Symbol("r", positive=True), sympy.eye(3)
        product = g * g.T * H * g * g.T
        mean = product.applyfunc(lambda entry: mean_of(entry, tuple(g), kurtosis))
        own = 2 * H + H.trace() * one
        whole = (r * own + r * (r - 1) * H) / r**2 - ((r + 1) * H + H.trace() * one) / r
        return sympy.expand(mean - own) == sympy.zeros(3, 3) and sympy.simplify(whole) == sympy.zeros(3, 3)

    return check


def masked(d: int, pairs: bool) -> Callable[[], bool]:
    """E[P H P] = rho2 H + (rho - rho2) diag H over masks, rho2 = r (r - 1)/(d (d - 1)); rho^2 without `pairs`."""

    def check() -> bool:
        import sympy

        H = sympy.Matrix(d, d, lambda i, j: sympy.Symbol(f"h{min(i, j)}{max(i, j)}"))
        for r in range(1, d):
            masks = [sympy.diag(*mask) for mask in _masks(d, r)]
            rho = sympy.Rational(r, d)
            rho2 = sympy.Rational(r * (r - 1), d * (d - 1)) if pairs else rho**2
            mean = sum((P * H * P for P in masks), sympy.zeros(d, d)) / len(masks)
            if sympy.expand(mean - rho2 * H - (rho - rho2) * sympy.diag(*[H[i, i] for i in range(d)])) != H * 0:
                return False
        return True

    return check


def top(reached: bool) -> Callable[[], bool]:
    """H <= L I with H_ii = L has no other entry in row i: c = 0 in the block [[a, c], [c, b]]. `reached`: a = L."""

    def premises() -> tuple[list, Any]:
        L, a, b, c = reals("L a b c")
        given = [a <= L, b <= L, (L - a) * (L - b) >= c * c]
        return given + ([a == L] if reached else []), c == 0

    return follows(premises)


def fixed_step(power: int) -> Callable[[], bool]:
    """c (1 - 2 rho a + a^2 c) = c - rho^2 + (a c - rho)^2: at least c - rho^2, equal at a = rho/c."""

    def sides() -> tuple[Any, Any]:
        import sympy

        a, c, rho = sympy.symbols("a c rho")
        return c * (1 - 2 * rho * a + a**2 * c), c - rho**power + (a * c - rho) ** 2

    return equal(sides)


def turned(both: bool) -> Callable[[], bool]:
    """m = 2: what a line u of R^3 leaves of x in the plane is |x|^2 - <w, x>^2, w along (u_1, u_2): half in the mean of
    u and u turned by a right angle in the plane. `both`: the mean, not u alone."""

    def check() -> bool:
        import sympy

        u, v, x, y = sympy.symbols("u v x y")
        leaves = lambda u, v: x**2 + y**2 - (u * x + v * y) ** 2 / (u**2 + v**2)
        mean = (leaves(u, v) + leaves(-v, u)) / 2 if both else leaves(u, v)
        return sympy.simplify(mean - (x**2 + y**2) / 2) == 0

    return check


# 3: more local steps


def drift(most: str) -> Callable[[], bool]:
    """The sum of 2 k^2 over k < K is at most (2/3) K^2 (K - 1), the induction, and (2/3) e^(1/50) <= `most`."""

    def check() -> bool:
        import sympy

        K, k = sympy.symbols("K k", positive=True)
        whole = sympy.expand(sympy.summation(2 * k**2, (k, 0, K - 1)) - K * (K - 1) * (2 * K - 1) / 3) == 0
        x = reals("x y")[0]
        bound = follows(lambda: ([x >= 1], x * (x - 1) * (2 * x - 1) <= 2 * x * x * (x - 1)))()
        return whole and bound and grown() and Fraction(2, 3) * growth <= Fraction(most)

    def grown() -> bool:
        c, w, S, B, b = reals("c w S B b")  # S: the sum so far, at most w B; then S + c S + b <= (1 + c) w (B + b)
        given = [c >= 0, w >= 1, B >= 0, b >= 0, w * B >= S]
        return follows(lambda: (given, S + c * S + b <= (1 + c) * w * (B + b)))()

    x = Fraction(1, 50)
    growth = sum((x**n / factorial(n) for n in range(4)), Fraction(0)) + x**4  # at least e^x, for x <= 1
    return check


def decrease(most: str) -> Callable[[], bool]:
    """-h (g2 + ga) + (h^2/2) |P G + a|^2 <= -(h/2) g2 + (h/2) a2, lambda = 1; `most`: of h."""

    def premises() -> tuple[list, Any]:
        h, g2, a2, ga = reals("h g2 a2 ga")
        square = g2 + 2 * ga + a2
        given = [h > 0, h <= number(most), g2 >= 0, a2 >= 0, square >= 0]
        return given, -h * (g2 + ga) + h * h / 2 * square <= -h / 2 * g2 + h / 2 * a2

    return follows(premises)


def weighted(sign: int) -> Callable[[], bool]:
    """E[q/l] E[l q] - (E q)^2 = t (1 - t) q1 q2 (l1 - l2)^2/(l1 l2), two outcomes with odds t and 1 - t."""

    def sides() -> tuple[Any, Any]:
        import sympy

        t, p, q, a, b = sympy.symbols("t p q a b", positive=True)
        left = (t * p / a + (1 - t) * q / b) * (t * p * a + (1 - t) * q * b) - (t * p + (1 - t) * q) ** 2
        return sympy.expand(left), sympy.expand(t * (1 - t) * p * q * (a - sign * b) ** 2 / (a * b))

    return equal(sides)


def many_steps(lead: str) -> Callable[[], bool]:
    """2/(1 - 0.69 p) <= 2.014 and 0.69/(1 - 0.69 p) <= 0.7 for p <= 1/100; twice both with the floor."""

    def check() -> bool:
        rest = 1 - Fraction("0.69") / 100
        return 2 / rest <= Fraction(lead) and Fraction("0.69") / rest <= Fraction("0.7")

    return check


# 4: the best iterate, fixed steps


def ramp(half: str) -> Callable[[], bool]:
    """phi' is g, g + L s and 0, continuous; phi falls by g s0 + g^2/(2 L)."""

    def check() -> bool:
        import sympy

        g, L, s, s0 = sympy.symbols("g L s s0", positive=True)
        slope = g + L * s
        fits = slope.subs(s, 0) == g and slope.subs(s, -g / L) == 0
        fall = sympy.integrate(slope, (s, -g / L, 0)) + g * s0
        return fits and sympy.simplify(fall - g * s0 - sympy.Rational(half) * g**2 / L) == 0

    return check


def spread(most: int) -> Callable[[], bool]:
    """q in [0, 1] with mean rho has variance at most rho (1 - rho): q^2 <= q, two outcomes; `most`: of q."""

    def premises() -> tuple[list, Any]:
        t, p, q = reals("t p q")
        mean, square = t * p + (1 - t) * q, t * p * p + (1 - t) * q * q
        given = [t >= 0, t <= 1, p >= 0, p <= most, q >= 0, q <= most]
        return given, square - mean * mean <= mean * (1 - mean)

    return follows(premises)


def on_ramp(half: str) -> Callable[[], bool]:
    """Delta = g s0 + g^2/(2 L) at s0 = (h/L) g (1 + delta) rho T; then (80/9)/4 = 20/9 at h = 1/4."""

    def check() -> bool:
        import sympy

        g, L, h, rho, T, delta = sympy.symbols("g L h rho T delta", positive=True)
        way = (1 + delta) * h * rho * T
        gap = g * (g * way / L) + g**2 / (2 * L)
        found = sympy.simplify(L * gap / (way + sympy.Rational(half)) - g**2) == 0
        return found and Fraction(80, 9) / (1 / Fraction(1, 4)) == Fraction(20, 9)

    return check


# 5: the best iterate, masks


def _pieces(v: Any) -> dict[str, Any]:
    """Psi, Phi, n and their first and second derivatives at v, by z3; the second ones as the larger side at a knot."""
    import z3

    def cases(*of: tuple[Any, Any], last: Any) -> Any:
        found = z3.RealVal(str(last)) if not z3.is_expr(last) else last
        for where, value in reversed(of):
            found = z3.If(where, value, found)
        return found

    q, one = number("1/6"), number("1")
    return {
        "Psi": cases((v <= 0, 0 * v), (2 * v <= 1, 2 * v * v), (v <= 1, 1 - 2 * (1 - v) * (1 - v)), last=1),
        "Psi1": cases((v <= 0, 0 * v), (2 * v <= 1, 4 * v), (v <= 1, 4 * (1 - v)), last=0),
        "Phi": cases(
            (v <= -q, 0 * v), (v <= 0, (1 + 6 * v) * (1 + 6 * v) / 12), (v <= 1, one / 12 + v),
            (v <= 1 + q, number("7/6") - 3 * (number("7/6") - v) * (number("7/6") - v)), last=number("7/6"),
        ),
        "Phi1": cases((v <= -q, 0 * v), (v <= 0, 1 + 6 * v), (v <= 1, one), (v <= 1 + q, 7 - 6 * v), last=0),
        "n": cases((v <= -q, -v - one / 12), (v <= 0, 3 * v * v), last=0),
        "n1": cases((v <= -q, -one), (v <= 0, 6 * v), last=0),
    }  # fmt: skip


def forced(least: str) -> Callable[[], bool]:
    """u >= 1 and v < 1: the derivative by v, with any next w, is at most -`least`."""

    def premises() -> tuple[list, Any]:
        u, v, w = reals("u v w")
        at_u, at_v, at_w = map(_pieces, (u, v, w))
        slope = at_v["n1"] - at_u["Psi"] * at_v["Phi1"] - at_v["Psi1"] * at_w["Phi"]
        return [u >= 1, v < 1], slope <= -number(least)

    return follows(premises)


def unset(knot: str) -> Callable[[], bool]:
    """At 0 Psi, Psi' and n' are 0: an unset coordinate behind an unset one has no slope, whatever Phi is there."""

    def premises() -> tuple[list, Any]:
        (v, w), zero = reals("v w"), number(knot)
        at = _pieces(v)
        import z3

        return [v == zero, w == w], z3.And(at["Psi"] == 0, at["Psi1"] == 0, at["n1"] == 0)

    return follows(premises)


def curvature(most: str, apart: str) -> Callable[[], bool]:
    """Every row of the Hessian adds up to at most `most`; of twice a link's own block to at most `apart`.

    By the pieces of v, the coordinate; u is before it and w behind it. Second derivatives are 6 or 4 in absolute value;
    a gradient that is continuous needs them almost everywhere.
    """

    def premises() -> tuple[list, Any]:
        import z3

        u, v, w = reals("u v w")
        at_u, at_v, at_w = map(_pieces, (u, v, w))
        before, behind = at_u["Psi1"] * at_v["Phi1"], at_v["Psi1"] * at_w["Phi1"]
        q = number("1/6")
        own = z3.If(  # as the second of a link: n'' - Psi Phi''
            z3.And(v >= -q, v <= 0), 6 - 6 * at_u["Psi"], z3.If(z3.And(v >= 1, v <= 1 + q), 6 * at_u["Psi"], 0)
        )
        first = z3.If(z3.And(v > 0, v < 1), 4 * at_w["Phi"], 0)  # as the first: |Psi''| Phi
        rows = own + first + before + behind <= number(most)
        return [], z3.And(rows, 2 * (own + before) <= number(apart), 2 * (first + behind) <= number(apart))

    return follows(premises)


def deep(most: str) -> Callable[[], bool]:
    """A link is at least -`most`: n >= 0, 0 <= Psi <= 1 and 0 <= Phi <= 7/6."""

    def premises() -> tuple[list, Any]:
        import z3

        v = reals("v w")[0]
        at = _pieces(v)
        between = [at["Psi"] >= 0, at["Psi"] <= 1, at["Phi"] >= 0, at["Phi"] <= number(most), at["n"] >= 0]
        return [], z3.And(*between)

    return follows(premises)


def scaled(first: str) -> Callable[[], bool]:
    """|grad|^2 >= L Delta/(l gap M): 1/((25/3)(7/6)) = 18/175 and 1/((38/3)(7/6)) = 9/133."""
    return lambda: (
        1 / (Fraction(25, 3) * Fraction(7, 6)) == Fraction(first)
        and 1 / (Fraction(38, 3) * Fraction(7, 6)) == Fraction(9, 133)
    )


def runs(pair: int) -> Callable[[], bool]:
    """(r - j)/(d - j) <= r/d, so that k coordinates are kept with odds at most rho^k; the geometric law's moments."""

    def check() -> bool:
        import sympy

        d, r, j = reals("d r j")
        less = follows(lambda: ([d >= r, r >= j, j >= 0, d > j], (r - pair * j) * d <= r * (d - j)))()
        rho = sympy.Symbol("rho", positive=True)
        mean, variance = rho / (1 - rho), rho / (1 - rho) ** 2
        square = variance + mean**2  # Y is 0, or 1 + Y' with odds rho
        again = (mean - rho * (1 + mean), square - rho * (1 + 2 * mean + square))
        return less and all(sympy.simplify(gap) == 0 for gap in again)

    return check


def two_clients(most: str) -> Callable[[], bool]:
    """Odds rho of one coordinate and rho^2 of two: the variance over the square of the mean is at most `most`/rho."""

    def premises() -> tuple[list, Any]:
        rho = reals("rho v")[0]
        mean, square = rho * (1 + rho), rho + 3 * rho * rho  # 1 + 3 rho: one more coordinate adds 4 - 1
        return [rho > 0, rho <= 1], rho * (square - mean * mean) <= number(most) * mean * mean

    return follows(premises)


# 6: a longer step with few clients; s = 1/S, and p, h^2/(phi^2 rho), nu and h nu in units of s, 1/s, s and s


def longer(part: str) -> Callable[[], bool]:
    """The theorem's conditions and 7.4's noise for P = p/s <= 1/100, Y = h^2 s/(phi^2 rho) <= 1/`part`, V = nu/s <= 1.

    H = h nu/s is at most 1/8, and for S = 1 at most phi/8 <= 1/16.
    """

    def premises() -> tuple[list, Any]:
        import z3

        P, Y, V, H, s = reals("P Y V H s")
        k = number("1/2") - number("21/5") * P * s - number("63/5") * P * Y - 6 * V * Y
        q = number("7/8") * P + H
        steps = q * (number("21/5") * P * s * s + (number("21/5") * P * s + 2) * 3 * Y) <= k / 25
        noise = number("3.06") + (number("3.123") * P + 2) * 3 * Y <= number("8.8") * number("9/25")
        given = [P >= 0, 100 * P <= 1, Y >= 0, number(part) * Y <= 1, V >= 0, V <= 1, H >= 0, 8 * H <= 1]
        given += [s > 0, z3.Or(2 * s <= 1, z3.And(s == 1, 16 * H <= 1))]
        return given, z3.And(k >= number("9/25"), steps, noise)

    return follows(premises)


def noise(third: str) -> Callable[[], bool]:
    """family.6.4 with 3.123 p for 1/25: what multiplies theta sigma^2/K; A, B: M/eta times alpha and gamma h^2."""

    def premises() -> tuple[list, Any]:
        p, A, B, s, hs = reals("p A B s hs")
        drift = number("1.041") * p * (number("5/8") + A + 3 * B)
        right = hs + number(third) * p + number("1.02") * A + (number("3.123") * p + 2 * s) * B
        return [p >= 0, 100 * p <= 1, A >= 0, B >= 0, s > 0], drift + hs + A + 2 * B * s <= right

    return follows(premises)


def odds(most: str) -> Callable[[], bool]:
    """For S = 1 < N: h nu <= phi/8 <= 1/16; and nu S = (N - S)/(N - 1) <= `most`."""

    def premises() -> tuple[list, Any]:
        N, S = reals("N S")
        return [S >= 1, S <= N, N >= 2], number(most) * (N - 1) >= N - S

    return follows(premises)


def compared(third: int) -> Callable[[], bool]:
    """phi S^(1/2)/8 >= phi^(2/3)/24 where 3^6 S^5 >= N^2: from S = 5, 11 and 68 at N = 10^3, 10^4 and 10^6."""

    def check() -> bool:
        first = lambda N: next(S for S in range(1, N) if third**6 * S**5 >= N**2)
        return [first(10**k) for k in (3, 4, 6)] == [5, 11, 68] and Fraction("11.7") / 8 <= Fraction("1.5")

    return check


STEPS = [
    Step("limits.1.1", "identity", "the difference is |P x + P u|^2, in a basis in which P is diagonal", outside("1"),
         outside("1/2"), "an eigenvalue 1/2"),
    Step("limits.1.2", "expectation", "all masks of r of d coordinates, d up to 4, any x", left_over(True),
         left_over(False), "one mask is never drawn"),
    Step("limits.1.3", "implication", "the induction, for 0 <= rho <= 1", induction(1), induction(2), "rho up to 2"),
    Step("limits.1.4", "identity", "the geometric sum, by induction on T", geometric(2), geometric(1),
         "L Delta in the place of 2 L Delta"),
    Step("limits.1.5", "expectation", "masks of two of three coordinates, three rounds, any x", attained("1"),
         attained("1/2"), "half the step"),
    Step("limits.1.6", "implication", "for every step and every omega >= rho", best_step("1"), best_step("9/10"),
         "1 - 9 rho/(10 omega)"),
    Step("limits.2.1", "implication", "for every second moment that the hypothesis admits", effective("1/2"),
         effective("3/5"), "3/5 for 1/2"),
    Step("limits.2.2", "identity", "the sum over T rounds, divided", telescoped(2), telescoped(1), "L for 2 L"),
    Step("limits.2.3", "expectation", "a and b from the trace and from chi-squares of up to 4 squares", haar(2),
         haar(0), "the square of the mean for the mean of the square"),
    Step("limits.2.4", "implication", "for all real 1 <= r <= d, d >= 2, 0 <= d_eff <= d", haar_price(1), haar_price(0),
         "1 + d_eff/r"),
    Step("limits.2.5", "expectation", "any symmetric H in three dimensions, Gaussian moments; any r", gaussian(3),
         gaussian(1), "signs in the place of normal numbers"),
    Step("limits.2.6", "expectation", "any symmetric H, all masks of r of d, d up to 4; the zero entries by z3",
         every(masked(3, True), masked(4, True), top(True)), either(masked(3, False), top(False)),
         "coordinates kept independently; H_ii < L"),
    Step("limits.2.7", "identity", "the square is completed", fixed_step(2), fixed_step(1), "rho for rho^2"),
    Step("limits.2.8", "expectation", "m = 2, a line in three dimensions: the mean over a right angle", turned(True),
         turned(False), "one line and not the mean"),
    Step("limits.3.1", "implication", "the sums by sympy, the induction by z3, the exponential's series", drift("0.69"),
         drift("0.68"), "0.68 for 0.69"),
    Step("limits.3.2", "implication", "for h <= 1", decrease("1"), decrease("5/4"), "h up to 5/4"),
    Step("limits.3.3", "certificate", "the difference is a square times what is positive, two outcomes", weighted(1),
         weighted(-1), "the square of the sum"),
    Step("limits.3.4", "arithmetic", "2.014 and 0.7", many_steps("2.014"), many_steps("2.01"), "2.01 for 2.014"),
    Step("limits.4.1", "identity", "the pieces fit; the fall by integration", ramp("1/2"), ramp("1"), "g^2/L"),
    Step("limits.4.2", "implication", "two outcomes in [0, 1] with any odds", spread(1), spread(2), "outcomes up to 2"),
    Step("limits.4.3", "identity", "g^2 from Delta; 20/9", on_ramp("1/2"), on_ramp("0"), "1/2 left out"),
    Step("limits.5.1", "implication", "all pieces of the splines, every next coordinate", forced("1"), forced("11/10"),
         "11/10 for 1"),
    Step("limits.5.2", "implication", "the values at 0", unset("0"), unset("1/6"), "the values at 1/6"),
    Step("limits.5.3", "implication", "the rows of the Hessian over all pieces", curvature("25/3", "38/3"),
         either(curvature("8", "38/3"), curvature("25/3", "12")), "8 for 25/3; 12 for 38/3"),
    Step("limits.5.4", "implication", "the bounds of all pieces", deep("7/6"), deep("1"), "1 for 7/6"),
    Step("limits.5.5", "arithmetic", "18/175 and 9/133", scaled("18/175"), scaled("3/25"), "3/25 for 18/175"),
    Step("limits.5.6", "expectation", "the odds by z3, the moments of the geometric law by sympy", runs(1), runs(0),
         "coordinates drawn with replacement"),
    Step("limits.5.7", "implication", "for 0 < rho <= 1", two_clients("1"), two_clients("9/10"), "9/10 for 1"),
    Step("limits.6.1", "implication", "for all S >= 1, P <= 1/100, Y <= 1/64; h nu for S = 1",
         every(longer("64"), odds("1")), every(longer("49"), odds("1")), "h^2 <= phi^2 rho S/49"),
    Step("limits.6.2", "implication", "6.4 of the family's page with 3.123 p for 1/25", noise("2/3"), noise("13/20"),
         "13/20 for 2/3"),
    Step("limits.6.3", "arithmetic", "5, 11 and 68 clients, 1.5", compared(3), compared(2), "2^6 for 3^6"),
]  # fmt: skip
