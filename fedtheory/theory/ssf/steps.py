"""SSF, the repaired Theorem 1: the steps of docs/theory/ssf.md. G = grad F(x), P a round's projector, as there."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from fedtheory.theory.proof import Step, equal, follows
from fedtheory.theory.search import number, reals

# 1: the round


def _vectors(sympy: Any, names: str, count: int, d: int = 2) -> list[Any]:
    return [sympy.Matrix(sympy.symbols(f"{names}{i}_:{d}")) for i in range(count)]


def controls(weight: int = 1) -> Callable[[], bool]:
    """c^{t+1} is the mean of the c_i^{t+1} again, for any linear map in the place of P. `weight`: of the second."""

    def check() -> bool:
        import sympy

        P, one = sympy.Matrix(2, 2, sympy.symbols("p:4")), sympy.eye(2)
        c, g = _vectors(sympy, "c", 3), _vectors(sympy, "g", 3)
        mean = lambda v: (v[0] + weight * v[1] + v[2]) / 3
        new = [(one - P) * a + P * b for a, b in zip(c, g)]
        return sympy.expand(sum(new, sympy.zeros(2, 1)) / 3 - (one - P) * mean(c) - P * mean(g)) == sympy.zeros(2, 1)

    return check


def server(known: bool) -> Callable[[], bool]:
    """Two clients, two steps: the controls leave the model's step where c is their mean (`known`)."""

    def check() -> bool:
        import sympy

        P, lr, eta = sympy.Matrix(2, 2, sympy.symbols("p:4")), *sympy.symbols("lr eta")
        (x,), c, g = _vectors(sympy, "x", 1), _vectors(sympy, "c", 2), _vectors(sympy, "g", 4)
        mean = (c[0] + c[1]) / 2 if known else _vectors(sympy, "m", 1)[0]
        ends = [x - lr * P * (g[2 * i] + g[2 * i + 1] - 2 * c[i] + 2 * mean) for i in (0, 1)]
        moved = x + eta / (2 * lr) * ((ends[0] + ends[1]) / 2 - x)
        return sympy.expand(moved - x + eta * P * sum(g, sympy.zeros(2, 1)) / 4) == sympy.zeros(2, 1)

    return check


def unrolled(times: int = 1) -> Callable[[], bool]:
    """Three local steps, one dimension of the subspace: y^3 - x. `times`: how often d enters a step."""

    def check() -> bool:
        import sympy

        lr, p, d = sympy.symbols("lr p d")
        a, noise = sympy.symbols("a0:3"), sympy.symbols("n0:3")
        y = sympy.Integer(0)
        for k in range(3):
            y = y - lr * p * (a[k] + times * d + noise[k])
        return sympy.expand(y + lr * p * (sum(a) + 3 * d + sum(noise))) == 0

    return check


# 2: drift


def squares(factor: str) -> Callable[[], bool]:
    """factor (u^2 + v^2) - (u + v)^2 is the square (u - v)^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        u, v = sympy.symbols("u v")
        return sympy.Rational(factor) * (u**2 + v**2) - (u + v) ** 2, (u - v) ** 2

    return equal(sides)


def sums(lost: int) -> Callable[[], bool]:
    """k sum a^2 - (sum a)^2 is a sum of squares: one more, b, adds sum_j (a_j - b)^2. s1, s2: sums of a and of a^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        k, b, s1, s2 = sympy.symbols("k b s1 s2")
        more = (k + 1 - lost) * (s2 + b**2) - (s1 + b) ** 2
        return more - (k * s2 - s1**2), s2 - 2 * b * s1 + k * b**2

    return equal(sides)


def martingale(fresh: bool) -> Callable[[], bool]:
    """Three noises e_j s_j, e_j = +-1, s_j any function of the signs before: the square's mean is that of the squares.

    `fresh`: a sign is drawn for every step; else the first one is kept.
    """

    def check() -> bool:
        import sympy

        size = {
            past: sympy.Symbol(f"s{''.join(map(str, past))}") for n in range(3) for past in product((0, 1), repeat=n)
        }
        total = parts = sympy.Integer(0)
        for signs in product((0, 1), repeat=3):
            drawn = [size[signs[:j]] * (2 * signs[j if fresh else 0] - 1) for j in range(3)]
            total += sum(drawn) ** 2 / 8
            parts += sum(one**2 for one in drawn) / 8
        return sympy.expand(total - parts) == 0

    return check


def share(drawn: Sequence[tuple[int, ...]]) -> Callable[[], bool]:
    """E |P d|^2 = (r/m) |d|^2 over coordinate subspaces, r = 2, m = 4: P independent of d."""

    def check() -> bool:
        import sympy

        d = sympy.symbols("d:4")
        mean = sum(sum(d[i] ** 2 for i in chosen) for chosen in drawn) / sympy.Integer(len(drawn))
        return sympy.expand(mean - sum(one**2 for one in d) / 2) == 0

    return check


def gronwall(known: bool) -> Callable[[], bool]:
    """The induction from S_k <= (1 + alpha)^k B_k to k + 1; `known`: that the power is at least 1."""

    def premises() -> tuple[list, Any]:
        alpha, power, S, B, b = reals("alpha power S B b")
        given = [alpha >= 0, b >= 0, B >= 0, power * B >= S, power >= (1 if known else 0)]
        return given, (1 + alpha) * S + b <= (1 + alpha) * power * (B + b)

    return follows(premises)


def counted(third: int) -> Callable[[], bool]:
    """The sums of 2k and 4k^2 up to K - 1, and their bounds K^2 and (4/third) K^3 for K >= 1."""

    def check() -> bool:
        import sympy

        K, k = sympy.symbols("K k", positive=True)
        one = sympy.expand(sympy.summation(2 * k, (k, 0, K - 1)) - K * (K - 1)) == 0
        two = sympy.expand(sympy.summation(4 * k**2, (k, 0, K - 1)) - 2 * K * (K - 1) * (2 * K - 1) / 3) == 0
        x = reals("x y")[0]
        bound = follows(lambda: ([x >= 1], third * 2 * x * (x - 1) * (2 * x - 1) <= 3 * 4 * x * x * x))()
        return one and two and bound and follows(lambda: ([x >= 1], x * (x - 1) <= x * x))()

    return check


def exponential(bound: str) -> Callable[[], bool]:
    """e^(1/25) <= bound: five terms of the series, the rest by a geometric one; 4/3 of it is 1.388."""

    def check() -> bool:
        x, term, total = Fraction(1, 25), Fraction(1), Fraction(0)
        for n in range(5):
            total += term
            term *= x / (n + 1)
        return total + term / (1 - x) <= Fraction(bound) and Fraction(4, 3) * Fraction(bound) <= Fraction("1.388")

    return check


def pulls(mean: bool) -> Callable[[], bool]:
    """(1/N) sum |u_i - u + G|^2 = m2 - |u|^2 + |G|^2 for u = m1, the moments m1 = (1/N) sum u_i, m2 of any N."""

    def sides() -> tuple[Any, Any]:
        import sympy

        m1, m2, G, other = sympy.symbols("m1 m2 G o")
        centre = m1 if mean else other
        shift = G - centre  # the mean of (u_i + shift)^2 is m2 + 2 shift m1 + shift^2
        return m2 + 2 * shift * m1 + shift**2, m2 - centre**2 + G**2

    return equal(sides)


# 3: descent


def smooth(half: int) -> Callable[[], bool]:
    """The integral of L u s^2 over u from 0 to 1 is L s^2 / half."""

    def sides() -> tuple[Any, Any]:
        import sympy

        L, s, u = sympy.symbols("L s u", positive=True)
        return sympy.integrate(L * u * s**2, (u, 0, 1)), L * s**2 / half

    return equal(sides)


def descent(noise: str) -> Callable[[], bool]:
    """T1 + T2 in units of L = 1; a2 = E|PG|^2, b2 = E|P(g - G)|^2, n2 = E|P xi|^2, ab and bn the mean products."""

    def premises() -> tuple[list, Any]:
        eta, a2, b2, n2, ab, bn = reals("eta a2 b2 n2 ab bn")
        given = [eta > 0, eta <= 1, a2 >= 0, b2 >= 0, n2 >= 0, -2 * ab <= a2 + b2, 2 * bn <= b2 + n2]
        total = -eta * (a2 + ab) + eta * eta / 2 * (a2 + b2 + n2 + 2 * ab + 2 * bn)
        return given, total <= -eta / 2 * a2 + eta * (1 + eta) / 2 * b2 + number(noise) * eta * eta * n2

    return follows(premises)


def averaged(independent: bool) -> Callable[[], bool]:
    """The mean of two clients' two noises: a quarter of the mean square each, where signs are independent."""

    def check() -> bool:
        import sympy

        s = sympy.symbols("s0:4")
        total = sympy.Integer(0)
        for signs in product((-1, 1), repeat=4):
            drawn = [one * (sign if independent else signs[0]) for one, sign in zip(s, signs)]
            total += (sum(drawn) / 4) ** 2 / 16
        return sympy.expand(total - sum(one**2 for one in s) / 16) == 0

    return check


def through(quarter: int) -> Callable[[], bool]:
    """F at x+ by way of y: F(x+) <= F(y) + ... upwards, and F(y) by a third point x + w between x and y.

    From x to the third point upwards, from y to it downwards, w = (u + a/L)/2; g = grad F(x), a = grad F(y) - g.
    """

    def sides() -> tuple[Any, Any]:
        import sympy

        L, g, a, u, s = sympy.symbols("L g a u s")
        w, b = (u + a / L) / 2, L * u - a
        of_y = g * w + L / 2 * w**2 - (g + a) * (w - u) + L / 2 * (w - u) ** 2  # at least F(y) - F(x)
        bound = of_y + (g + a) * (s - u) + L / 2 * (s - u) ** 2
        return bound, g * s + L / 2 * s**2 - b * (s - u) - b**2 / (quarter * L)

    return equal(sides)


def remembered(uncorrelated: bool) -> Callable[[], bool]:
    """Two clients, two steps, one dimension: E <p, n>, and E <u_i^K, q^K> for each client i.

    A step draws z in {-2, -1, 1, 2}; one client's noise is a size times z, the other's a size times 2|z| - 3: dependent
    and uncorrelated (`uncorrelated`; else z for both). Gradients and sizes are any functions of the z before.
    """

    def check() -> bool:
        import sympy

        drawn, lr = (-2, -1, 1, 2), sympy.Symbol("lr")
        past = [(), *((z,) for z in drawn)]
        named = lambda name: {(i, one): sympy.Symbol(f"{name}{i}{one}") for i in (0, 1) for one in past}
        a, size, d = named("a"), named("s"), sympy.symbols("d:2")
        ends, products, squares = ([sympy.Integer(0)] * 2 for _ in range(3))
        both = sympy.Integer(0)  # E <p, n>, less what PG has in it
        for draws in product(drawn, repeat=2):
            u, q, slopes = [sympy.Integer(0)] * 2, sympy.Integer(0), sympy.Integer(0)
            for k in (0, 1):
                unit = (draws[k], 2 * abs(draws[k]) - 3 if uncorrelated else draws[k])
                noise = [size[i, draws[:k]] * unit[i] for i in (0, 1)]
                slope = [a[i, draws[:k]] for i in (0, 1)]
                products = [old + g * q / 16 for old, g in zip(products, slope)]
                squares = [old + one**2 / 16 for old, one in zip(squares, noise)]
                u = [old - lr * (d[i] + slope[i] + noise[i]) for i, old in enumerate(u)]
                q, slopes = q + sum(noise), slopes + sum(slope)
            both += slopes / 4 * q / 4 / 16
            ends = [old + one * q / 16 for old, one in zip(ends, u)]
        sides = [end + lr * (c + one) for end, c, one in zip(ends, products, squares)]
        return all(sympy.expand(one) == 0 for one in [*sides, both - sum(products) / 16])

    return check


def solved(last: int) -> Callable[[], bool]:
    """One step more in 3.7: W is the sum of tau_k (beta_k - v_k), V that of v_k, T that of C^k, so far.

    m = lr W and T = -W - V stay so, as m goes to m - lr (C + v), C = L m - beta, and W to (1 - lr L) W + beta - v.
    """

    def sides() -> tuple[Any, Any]:
        import sympy

        lr, L, W, V, beta, v, other = sympy.symbols("lr L W V beta v other")
        m, T = lr * W, -W - V
        C = L * m - beta
        more = (1 - lr * L) * W + (1 - lr * L) ** last * (beta - v)
        return m - lr * (C + v) + other * (T + C), lr * more - other * (more + V + v)

    return equal(sides)


def cancelled(share: int) -> Callable[[], bool]:
    """What stands before tau_k beta_i^k: from (L/2)|s|^2 by 3.7, and from 3.5 with the weight h tau_k/(share K)."""

    def sides() -> tuple[Any, Any]:
        import sympy

        L, eta, N, K = sympy.symbols("L eta N K", positive=True)
        return L / 2 * eta**2 * 2 / (N * K) ** 2, L * eta / (share * N * K) * eta / (N * K)

    return equal(sides)


def pointwise(half: str) -> Callable[[], bool]:
    """3.9 in units of L = 1: what the right side has more is a sum of squares, and of u^2 - a^2 >= 0; t is tau."""

    def sides() -> tuple[Any, Any]:
        import sympy

        t, h, u, a, p = sympy.symbols("t h u a p")
        left = a**2 / 2 + t * ((u - a) * (u + h * p) - (u - a) ** 2 / 4)
        right = sympy.Rational(3, 2) * u**2 + h**2 * p**2 - 2 * h * a * p
        more = (1 - t) * ((a - h * p) ** 2 + sympy.Rational(3, 2) * (u**2 - a**2))
        more += t * (((u + a) / 2 - h * p) ** 2 + sympy.Rational(half) * (u**2 - a**2))
        return right - left, more

    return equal(sides)


def half_step(most: str) -> Callable[[], bool]:
    """-|g|^2/2 - (1 - h)|p|^2/2 + h^2 |p|^2 - 2 h <p - g, p> <= -|g|^2/4 for 0 < h <= most."""

    def premises() -> tuple[list, Any]:
        h, g, p = reals("h g p")
        left = -g * g / 2 - (1 - h) * p * p / 2 + h * h * p * p - 2 * h * (p - g) * p
        return [h > 0, h <= number(most)], left <= -g * g / 4

    return follows(premises)


def long_steps(most: str) -> Callable[[], bool]:
    """lr L >= 1, L = 1: 2 sqrt(K - 1) <= sqrt(N) K lr, and D/2 + hD/2 - (1 - h) p2/2 <= (3/2) D for h <= most.

    r and n are the roots of K - 1 and N.
    """

    def premises() -> tuple[list, Any]:
        import z3

        h, r, K, n, lr, D, p2 = reals("h r K n lr D p2")
        given = [h > 0, h <= number(most), r >= 0, r * r == K - 1, K >= 1, n >= 1, lr >= 1, D >= 0, p2 >= 0]
        rest = D / 2 + h * D / 2 - (1 - h) * p2 / 2
        return given, z3.And(2 * r <= n * K * lr, rest <= number("3/2") * D)

    return follows(premises)


def pythagoras(sign: int) -> Callable[[], bool]:
    """|(I - P) a + P b|^2 = |(I - P) a|^2 + sign |P b|^2, and |b|^2 - |P b|^2 = |(I - P) b|^2.

    In an orthonormal basis in which the projector P is diagonal, coordinate by coordinate: p is 0 or 1.
    """

    def check() -> bool:
        import sympy

        a, b = sympy.symbols("a b")
        for p in (0, 1):
            first = ((1 - p) * a + p * b) ** 2 - ((1 - p) * a) ** 2 - sign * (p * b) ** 2
            if sympy.expand(first) != 0 or sympy.expand(b**2 - (p * b) ** 2 - ((1 - p) * b) ** 2) != 0:
                return False
        return True

    return check


def mean_zero(given: bool) -> Callable[[], bool]:
    """E <G, P xi> = 0 where the noise has mean zero given P; not where its sign depends on the drawn P."""

    def check() -> bool:
        import sympy

        G, s = sympy.symbols("G0:2"), sympy.symbols("s0:2", positive=True)
        outcomes = [(line, sign) for line in (0, 1) for sign in ((-1, 1) if given else (1 - 2 * line,))]
        return sympy.expand(sum(G[line] * sign * s[line] for line, sign in outcomes)) == 0

    return check


# 4: controls


def young(cross: int) -> Callable[[], bool]:
    """(1 + s^2) a^2 + (1 + 1/s^2) b^2 - (a + b)^2 = (s a - b/s)^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        s, a, b = sympy.symbols("s a b", positive=True)
        return (1 + s**2) * a**2 + (1 + 1 / s**2) * b**2 - (a + b) ** 2, (s * a - cross * b / s) ** 2

    return equal(sides)


def constants(kept: str) -> Callable[[], bool]:
    """With beta = rho/2, 0 < rho <= 1: what Young's factors become. `kept`: the share of rho that is left."""

    def premises() -> tuple[list, Any]:
        import z3

        rho = reals("rho other")[0]
        lost = 1 - number(kept) * rho
        parts = [(1 + rho / 2) * (1 - rho) <= lost, 1 + rho / 2 <= number("3/2"), rho + 2 <= 3]
        return [rho > 0, rho <= 1], z3.And(*parts)

    return follows(premises)


def moved(share: str) -> Callable[[], bool]:
    """E|P(g + xi)|^2 <= 4 rho G2 + 4 L^2 D + 2 n2, for the parts a = P G, b = P(g - G), n = P xi."""

    def premises() -> tuple[list, Any]:
        a2, b2, n2, ab, an, bn = reals("a2 b2 n2 ab an bn")
        pairs = [2 * ab <= a2 + b2, 2 * (an + bn) <= a2 + b2 + 2 * ab + n2]
        total = a2 + b2 + n2 + 2 * ab + 2 * an + 2 * bn
        return [a2 >= 0, b2 >= 0, n2 >= 0, *pairs], total <= number(share) * (a2 + b2) + 2 * n2

    return follows(premises)


def memories(share: str) -> Callable[[], bool]:
    """Claim 4 from its parts, times 2 rho; C, G, D, s, n: the means of C, |G|^2, D, sigma^2/K, sigma^2/(NK); L = 1."""

    def premises() -> tuple[list, Any]:
        rho, eta, C, G, D, s, n = reals("rho eta C G D s n")
        given = [rho > 0, rho <= 1, eta > 0, C >= 0, G >= 0, D >= 0, s >= 0, n >= 0]
        first = (2 + rho) * rho * ((1 - rho) * C + 2 * s + 2 * D)
        moved = (2 * rho + 4) * eta * eta * (4 * rho * G + 4 * D + 2 * n)
        claim = (1 - rho / 2) * C + 3 * s + 3 * D + number(share) * eta * eta * G
        return given, first + moved <= 2 * rho * claim + 24 * eta * eta * D + 12 * eta * eta * n

    return follows(premises)


# 5: the potential; q = (K L eta_l)^2, h = L eta, u = h^2/rho


BOX = "q > 0, 100 q <= 1, 0 <= u <= 1/8, 0 < rho <= 1"


def _box() -> tuple[list, Any, Any, Any]:
    q, u, rho = reals("q u rho")
    B = number("5/8") + 2 * q * (3 + 12 * u)
    return [q > 0, 100 * q <= 1, u >= 0, 8 * u <= 1, rho > 0, rho <= 1], q, u, B


def step_size(eighth: int) -> Callable[[], bool]:
    """L eta <= min(1/4, sqrt(rho/eighth)), or min(1/4, rho/2), gives u <= 1/8, (1 + h)/2 <= 5/8 and h <= 1."""

    def premises() -> tuple[list, Any]:
        import z3

        rho, h, u = reals("rho h u")
        given = [rho > 0, rho <= 1, h > 0, 4 * h <= 1, u * rho == h * h, z3.Or(eighth * h * h <= rho, 2 * h <= rho)]
        return given, z3.And(8 * u <= 1, (1 + h) / 2 <= number("5/8"), h <= 1)

    return follows(premises)


def assembled(drift: str) -> Callable[[], bool]:
    """Claim 3 and M times Claim 4, with Claim 2 in the place of D, has the coefficients of the steps that follow."""

    def sides() -> tuple[Any, Any]:
        import sympy

        rho, eta, lr, L, K, N, C, G, s2 = sympy.symbols("rho eta lr L K N C G s2", positive=True)
        q, h = (K * L * lr) ** 2, L * eta
        u, M, a, b = h**2 / rho, 2 * eta * (K * L * lr) ** 2, sympy.Rational("1.041"), sympy.Rational("1.388")
        D = a * K * lr**2 * s2 + sympy.Rational(drift) * rho * K**2 * lr**2 * (C + G)
        third = -rho * eta / 2 * G + (1 + h) / 2 * L**2 * eta * D + L * eta**2 * s2 / (N * K)
        fourth = -rho / 2 * C + 3 * s2 / K + (3 + 12 * u) * L**2 * D + 12 * h**2 * G + 6 * u * s2 / (N * K)
        B = (1 + h) / 2 + 2 * q * (3 + 12 * u)
        right = -rho * eta * (sympy.Rational(1, 2) - 24 * q * u - b * q * B) * G - rho * eta * q * (1 - b * B) * C
        right += L**2 * eta * K * lr**2 * s2 * (6 + 12 * u / N + a * B) + L * eta**2 * s2 / (N * K)
        return third + M * fourth, right

    return equal(sides)


def gradients(part: str) -> Callable[[], bool]:
    """The coefficient of rho eta |G|^2 is at least 9/20."""

    def premises() -> tuple[list, Any]:
        box, q, u, B = _box()
        return box, number("1/2") - 24 * q * u - number("347/250") * q * B >= number(part)

    return follows(premises)


def memory(factor: str) -> Callable[[], bool]:
    """The coefficient of C is not positive."""

    def premises() -> tuple[list, Any]:
        box, _, _, B = _box()
        return box, 1 - number(factor) * B >= 0

    return follows(premises)


def noise(most: str) -> Callable[[], bool]:
    """The coefficient of L^2 eta K eta_l^2 sigma^2 is at most 33/4."""

    def premises() -> tuple[list, Any]:
        box, _, u, B = _box()
        return box, 6 + 12 * u + number("1041/1000") * B <= number(most)

    return follows(premises)


def rate(part: str) -> Callable[[], bool]:
    """Divided by (9/20) rho eta T: the constants 20/9, 40/9, 20/9 and 55/3 of the theorem."""

    def check() -> bool:
        turned = 1 / Fraction(part)
        return (turned, 2 * turned, turned * Fraction(33, 4)) == (Fraction(20, 9), Fraction(40, 9), Fraction(55, 3))

    return check


# 6: corollaries


def noise_free(share: str) -> Callable[[], bool]:
    """sigma = 0, eta_l = 1/(10 K L), L eta = sqrt(rho/8) for rho <= 1/2, else 1/4: 20/9 times its inverse, and 2/45."""

    def check() -> bool:
        root = Fraction(20, 9) ** 2 * 8 == Fraction(40, 9) ** 2 * 2  # 20/9 sqrt(8) is 40 sqrt(2)/9
        return root and (Fraction(20, 9) * 4, Fraction(40, 9) / 100) == (Fraction(80, 9), Fraction(share))

    return check


def balanced(factor: int) -> Callable[[], bool]:
    """D/(T b) + 2 L b s^2/(N K) at b^2 = N K D/(2 L s^2 T) is 2 sqrt(2 L D s^2/(N K T))."""

    def sides() -> tuple[Any, Any]:
        import sympy

        D, T, L, s, M = sympy.symbols("D T L s M", positive=True)  # M = N K
        b = sympy.sqrt(M * D / (factor * L * s**2 * T))
        return D / (T * b) + 2 * L * b * s**2 / M, 2 * sympy.sqrt(2 * L * D * s**2 / (M * T))

    return equal(sides)


def small_steps(part: str) -> Callable[[], bool]:
    """eta_l^2 <= (4/33) eta/(L N K^2): the drift's noise is at most that of the averaged gradient."""

    def check() -> bool:
        return Fraction(55, 3) * Fraction(part) <= Fraction(20, 9)

    return check


def longer(eighth: int) -> Callable[[], bool]:
    """min(1/4, rho/2) <= min(1/4, sqrt(rho/eighth)), and by the factor sqrt(2 rho) for rho <= 1/2; 40/9 with it.

    And at q = 1/100, h = 1/4 u = 1/7 is too much for 5.5, u = 1/6 for 5.4.
    """

    def premises() -> tuple[list, Any]:
        rho, h = reals("rho h")
        given = [rho > 0, rho <= 1, h > 0, 4 * h <= 1, 2 * h <= rho]
        return given, eighth * h * h <= rho

    def shorter() -> tuple[list, Any]:
        import z3

        rho, h = reals("rho h")  # h = sqrt(rho/8)
        given = [rho > 0, 2 * rho <= 1, h > 0, 8 * h * h == rho]
        return given, z3.And(4 * h <= 1, 2 * rho * h * h == rho / 2 * (rho / 2))

    B = lambda u: Fraction(5, 8) + Fraction(2, 100) * (3 + 12 * u)
    seventh, sixth = Fraction(1, 7), Fraction(1, 6)
    ends = 6 + 12 * seventh + Fraction("1.041") * B(seventh) > Fraction(33, 4) and Fraction("1.388") * B(sixth) > 1
    exact = Fraction(20, 9) * 2 == Fraction(40, 9)
    return lambda: ends and exact and follows(premises)() and follows(shorter)()


def short_local(small: bool) -> Callable[[], bool]:
    """Section 5 for any h <= 1/4 and q = s rho, so that q u = s h^2; 15 and 103/45. Then 5.3 and 5.4 for q u <= 1/800.

    `small`: s <= 1/100; else only q <= 1/100, as in the theorem.
    """

    def premises() -> tuple[list, Any]:
        import z3

        s, h, rho = reals("s h rho")
        given = [s > 0, 100 * s * (1 if small else rho) <= 1, rho > 0, rho <= 1, h > 0, 4 * h <= 1]
        B, drift = number("5/8") + 6 * s * rho + 24 * s * h * h, number("347/250")
        lead = number("1/2") - 24 * s * h * h - drift * s * rho * B >= number("9/20")
        noise = z3.And(6 + number("1041/1000") * B <= number("27/4"), 12 * s * h * h <= number("3/100") * h)
        return given, z3.And(lead, drift * B <= 1, noise)

    def product() -> tuple[list, Any]:
        import z3

        q, w = reals("q w")  # w = q u
        B, drift = number("5/8") + 6 * q + 24 * w, number("347/250")
        given = [q > 0, 100 * q <= 1, w >= 0, 800 * w <= 1]
        return given, z3.And(number("1/2") - 24 * w - drift * q * B >= number("9/20"), drift * B <= 1)

    turned = Fraction(20, 9)
    exact = (turned * Fraction(27, 4), turned * Fraction(103, 100)) == (15, Fraction(103, 45))
    return lambda: exact and follows(premises)() and follows(product)()


def weighted(whole: str, full: str) -> Callable[[], bool]:
    """3.3 and section 5 with -2 <a, b> <= |a|^2/4 + 4 |b|^2 and M = (32/5) eta q: 1/`whole` before rho eta |G|^2.

    `full`: the same at r = d, where u = h^2.
    """

    def line() -> tuple[list, Any]:
        eta, a2, b2, n2, ab, bn = reals("eta a2 b2 n2 ab bn")
        given = [eta > 0, eta <= 1, a2 >= 0, b2 >= 0, n2 >= 0, -2 * ab <= a2 / 4 + 4 * b2, 2 * bn <= b2 + n2]
        total = -eta * (a2 + ab) + eta * eta / 2 * (a2 + b2 + n2 + 2 * ab + 2 * bn)
        kept = number("7/8") - number("3/8") * eta
        return given, total <= -eta * kept * a2 + eta * (2 - eta) * b2 + eta * eta * n2

    def potential(only_full: bool) -> tuple[list, Any]:
        import z3

        q, u, h = reals("q u h")
        given = [q > 0, 100 * q <= 1, h > 0, 4 * h <= 1, u == h * h if only_full else z3.And(u >= 0, 8 * u <= 1)]
        m, drift = number("32/5"), number("347/250")
        B = 2 - h + m * q * (3 + 12 * u)
        lead = number("7/8") - number("3/8") * h - 12 * m * q * u - drift * q * B
        noise = m * (3 + 6 * u) + number("1041/1000") * B <= number("132/5")
        return given, z3.And(number(full if only_full else whole) * lead >= 1, drift * B <= m / 2, noise)

    return lambda: follows(line)() and follows(lambda: potential(False))() and follows(lambda: potential(True))()


# 7: other memories


def rescaled(power: int) -> Callable[[], bool]:
    """A local step and the server's with s Pi are those with Pi at s times the step sizes."""

    def check() -> bool:
        import sympy

        s, lr, p, g, y = sympy.symbols("s lr p g y")
        return sympy.expand((y - lr * (s * p) * g) - (y - (s**power * lr) * p * g)) == 0

    return check


def spread(mean: bool) -> Callable[[], bool]:
    """(1/N) sum |g_i|^2 = |G|^2 + (1/N) sum |g_i - G|^2 for G = m1, the moments m1 and m2 of any N."""

    def sides() -> tuple[Any, Any]:
        import sympy

        m1, m2, other = sympy.symbols("m1 m2 o")
        G = m1 if mean else other
        return m2, G**2 + m2 - 2 * G * m1 + G**2

    return equal(sides)


def without(part: str) -> Callable[[], bool]:
    """The coefficient of rho eta |G|^2 without a memory, for q <= 1/100, and what it is divided by."""

    def premises() -> tuple[list, Any]:
        import z3

        q = reals("q other")[0]
        kept = number("49/100")
        lead = number("1/2") - number("5/8") * number("347/250") * q >= kept
        parts = [number("205/100") * kept >= 1, number(part) * kept >= number("5/8") * number("347/250")]
        return [q > 0, 100 * q <= 1], z3.And(lead, *parts, number("4/3") * kept >= number("5/8") * number("1041/1000"))

    return follows(premises)


ALL = list(combinations(range(4), 2))

STEPS = [
    Step("ssf.1.1", "identity", "three clients, any linear map in the place of P", controls(), controls(2),
         "a mean with another weight for one client", ("ssf.lemma3.eq26-28",)),
    Step("ssf.1.2", "identity", "two clients, two local steps, any linear map in the place of P", server(True),
         server(False), "c is not the mean of the c_i", ("ssf.lemma3.eq22-25", "ssf.lemma3.eq26-28")),
    Step("ssf.2.1", "identity", "three local steps, unrolled", unrolled(), unrolled(2), "the correction counted twice",
         ("ssf.lemma2.eq9-10",)),
    Step("ssf.2.2", "certificate", "2 u^2 + 2 v^2 - (u + v)^2 = (u - v)^2, for each coordinate", squares("2"),
         squares("19/10"),
         "19/10 in the place of 2", ("ssf.lemma2.eq9-10",)),
    Step("ssf.2.3", "certificate", "from k to k + 1 the difference k sum a^2 - (sum a)^2 grows by a sum of squares",
         sums(0), sums(1), "k - 1 in the place of k", ("ssf.lemma2.eq11-12",)),
    Step("ssf.2.4", "expectation", "three steps, the size of each noise any function of the signs before it",
         martingale(True), martingale(False), "one sample kept for all local steps", ("ssf.lemma2.eq13-16",)),
    Step("ssf.2.5", "expectation", "all coordinate subspaces of two dimensions in four, d as symbols",
         share(ALL), share([(0, 1), (0, 1), (2, 3)]), "a law whose mean is not rho I", ("ssf.lemma3.eq32-36",)),
    Step("ssf.2.6", "implication", "the induction from k to k + 1", gronwall(True), gronwall(False),
         "a power that may be less than 1"),
    Step("ssf.2.7", "implication", "both sums by sympy, their bounds for all real K >= 1 by z3", counted(3), counted(4),
         "K^3 in the place of (4/3) K^3"),
    Step("ssf.2.8", "arithmetic", "the series of the exponential with a bound of its rest", exponential("1.041"),
         exponential("1.0408"), "1.0408 in the place of 1.041"),
    Step("ssf.2.9", "identity", "any number of clients, by the first two moments of the u_i",
         pulls(True), pulls(False), "any vector in the place of the mean", ("ssf.theorem1.eq110",)),
    Step("ssf.3.1", "identity", "the integral that is left after Lipschitz continuity", smooth(2), smooth(3),
         "L/3 in the place of L/2"),
    Step("ssf.3.2", "expectation", "two coordinate lines, noise of any size and both signs for each",
         mean_zero(True), mean_zero(False), "a sign that depends on the drawn P", ("ssf.lemma3.eq31",)),
    Step("ssf.3.3", "implication", "T_1 + T_2 for all steps up to 1/L and all second moments", descent("1"),
         descent("9/10"), "nine tenths of the noise", ("ssf.sharper.lemma3",)),
    Step("ssf.3.4", "expectation", "two clients, two steps, independent signs", averaged(True), averaged(False),
         "one sign for all", ("ssf.lemma3.eq49-54",)),
    Step("ssf.3.5", "identity", "two quadratics that meet, in one dimension: all terms are inner products",
         through(4), through(3), "|b|^2/(3 L) in the place of |b|^2/(4 L)"),
    Step("ssf.3.6", "expectation", "two clients with dependent noise, two steps, gradients and sizes of the noise any "
         "functions of what was drawn before", remembered(True), remembered(False), "clients whose noises correlate"),
    Step("ssf.3.7", "identity", "the induction from K to K + 1", solved(0), solved(1),
         "tau_k with K in the place of K - 1"),
    Step("ssf.3.8", "identity", "the two factors of tau_k beta_i^k", cancelled(1), cancelled(2),
         "half of that weight for 3.5"),
    Step("ssf.3.9", "certificate", "what is left is a sum of squares and of u^2 - a^2", pointwise("1/2"),
         pointwise("2/5"), "2/5 of |u|^2 - |a|^2"),
    Step("ssf.3.10", "implication", "for all steps up to 1/(2 L)", half_step("1/2"), half_step("51/100"),
         "steps up to 0.51/L", ("ssf.lemma3",)),
    Step("ssf.3.11", "implication", "for all K, N >= 1, local steps of 1/L or more and steps up to 1/L",
         long_steps("1"), long_steps("11/10"), "steps up to 1.1/L"),
    Step("ssf.4.1", "identity", "in each coordinate of a basis in which P is diagonal", pythagoras(1), pythagoras(-1),
         "a minus between the parts", ("ssf.lemma4.eq61-63",)),
    Step("ssf.4.2", "certificate", "the difference is a square", young(1), young(2), "twice b in the square"),
    Step("ssf.4.3", "implication", "for all rho in (0, 1]", constants("1/2"), constants("3/4"),
         "1 - 3 rho/4 in the place of 1 - rho/2", ("ssf.lemma4.eq82-87",)),
    Step("ssf.4.4", "implication", "for all second moments of the three parts", moved("4"), moved("3"),
         "3 in the place of 4", ("ssf.lemma4.eq88-99",)),
    Step("ssf.4.5", "implication", "for all rho in (0, 1], all steps and second moments", memories("12"),
         memories("11"), "11 in the place of 12"),
    Step("ssf.5.1", "implication", "for all rho in (0, 1], both ways to bound the step", step_size(8), step_size(7),
         "sqrt(rho/7) in the place of sqrt(rho/8)"),
    Step("ssf.5.2", "identity", "the sum of the three claims", assembled("1.388"), assembled("1.389"),
         "1.389 in the place of 1.388"),
    Step("ssf.5.3", "implication", BOX, gradients("9/20"), gradients("47/100"), "47/100 in the place of 9/20"),
    Step("ssf.5.4", "implication", BOX, memory("347/250"), memory("7/5"), "1.4 in the place of 1.388"),
    Step("ssf.5.5", "implication", BOX, noise("33/4"), noise("8"), "8 in the place of 33/4"),
    Step("ssf.5.6", "arithmetic", "20/9, 40/9 and 55/3", rate("9/20"), rate("2/5"), "2/5 in the place of 9/20"),
    Step("ssf.6.1", "arithmetic", "40 sqrt(2)/9, 80/9 and 2/45", noise_free("2/45"), noise_free("1/45"), "1/45"),
    Step("ssf.6.2", "arithmetic", "55/3 of 4/33 is 20/9", small_steps("4/33"), small_steps("1/8"), "1/8 for 4/33"),
    Step("ssf.6.3", "identity", "both terms at the step that balances them", balanced(2), balanced(1),
         "twice that step, squared"),
    Step("ssf.6.4", "implication", "for all rho in (0, 1]; 5.4 and 5.5 each at one point", longer(8), longer(9),
         "sqrt(rho/9) in the place of sqrt(rho/8)", ("ssf.sharper.theorem",)),
    Step("ssf.6.5", "implication", "for all rho in (0, 1], q <= rho/100, L eta <= 1/4", short_local(True),
         short_local(False), "q <= 1/100 alone", ("ssf.sharper.short",)),
    Step("ssf.6.6", "implication", "3.3 for all steps up to 1/L; " + BOX + ", h <= 1/4; then u = h^2",
         weighted("1.53", "1.42"), weighted("1.53", "1.41"), "1.41 in the place of 1.42"),
    Step("ssf.7.1", "identity", "a local step in the subspace", rescaled(1), rescaled(2), "the square of the scale"),
    Step("ssf.7.2", "identity", "any number of clients, by the first two moments of the g_i",
         spread(True), spread(False), "any vector in the place of the mean"),
    Step("ssf.7.3", "implication", "for 0 < q <= 1/100", without("9/5"), without("17/10"), "1.7 in the place of 1.8"),
]  # fmt: skip
