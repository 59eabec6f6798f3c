"""One theorem for the family: the steps of docs/theory/family.md. What SSF's proof has already is imported."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

from fedtheory.theory.fedsub.steps import centred, parts
from fedtheory.theory.mud.steps import second
from fedtheory.theory.proof import Step, either, equal, every, follows
from fedtheory.theory.search import number, reals
from fedtheory.theory.ssf.steps import (
    averaged,
    exponential,
    gronwall,
    martingale,
    pulls,
    pythagoras,
    rescaled,
    squares,
    sums,
)
from fedtheory.theory.ssf.steps import unrolled as drifted

# 1: the round


def contraction(bounded: bool) -> Callable[[], bool]:
    """An eigenvalue p of P in [0, 1]: |P v|^2 <= <v, P v> <= |v|^2, and E P^2 <= E P. `bounded`: by 1."""

    def premises() -> tuple[list, Any]:
        p, v = reals("p v")
        return [p >= 0, p <= (1 if bounded else 2)], _all([(p * v) * (p * v) <= p * v * v, p * v * v <= v * v])

    return follows(premises)


def _vectors(sympy: Any, names: str, count: int) -> list[Any]:
    return [sympy.Matrix(sympy.symbols(f"{names}{i}_:2")) for i in range(count)]


def direction(known: bool) -> Callable[[], bool]:
    """Clients 0 and 1 of three, two steps: x^+ - x = -eta P (G + a_S + w + noise). `known`: c is the c_i's mean."""

    def check() -> bool:
        import sympy

        P, lr, server = sympy.Matrix(2, 2, sympy.symbols("p:4")), *sympy.symbols("lr g")
        c, f, a, n = (_vectors(sympy, name, 3) for name in "cfan")  # f = grad F_i(x); a, n: sums of two steps
        c_mean = (c[0] + c[1] + c[2]) / 3 if known else _vectors(sympy, "m", 1)[0]
        ends = [-lr * P * (2 * f[i] + a[i] + n[i] - 2 * c[i] + 2 * c_mean) for i in (0, 1)]
        G = (f[0] + f[1] + f[2]) / 3
        u = [f[i] - c[i] for i in range(3)]
        w = (u[0] + u[1]) / 2 - (u[0] + u[1] + u[2]) / 3
        wanted = -2 * server * lr * P * (G + (a[0] + a[1]) / 4 + w + (n[0] + n[1]) / 4)
        return sympy.expand(server * (ends[0] + ends[1]) / 2 - wanted) == sympy.zeros(2, 1)

    return check


def stored(increments: bool) -> Callable[[], bool]:
    """c^+ is the mean of all three c_i^+ after clients 0 and 1 refreshed theirs with any linear map Q.

    `increments`: the server adds their increments over 3; else it takes the mean of their fresh controls.
    """

    def check() -> bool:
        import sympy

        Q, one = sympy.Matrix(2, 2, sympy.symbols("q:4")), sympy.eye(2)
        c, g = _vectors(sympy, "c", 3), _vectors(sympy, "g", 2)
        new = [(one - Q) * a + Q * b for a, b in zip(c, g)]
        mean = (c[0] + c[1] + c[2]) / 3
        kept = mean + (new[0] - c[0] + new[1] - c[1]) / 3
        server = kept if increments else (one - Q) * mean + Q * (g[0] + g[1]) / 2
        return sympy.expand(server - (new[0] + new[1] + c[2]) / 3) == sympy.zeros(2, 1)

    return check


# 2: sampling


def sampled(replaced: bool) -> Callable[[], bool]:
    """E |(1/S) sum over the set of r_i|^2 = nu V for sum r_i = 0, N and S as symbols.

    From the odds S/N of a client and S(S-1)/(N(N-1)) of a pair, counted for N = 5. `replaced`: drawn with replacement.
    """

    def check() -> bool:
        import sympy

        N, S, V = sympy.symbols("N S V", positive=True)
        pair = (S / N) ** 2 if replaced else S * (S - 1) / (N * (N - 1))
        total = S / N * N * V - pair * N * V  # sum of r_i r_j over i != j is -sum r_i^2 = -N V
        nu = (N - S) / (S * (N - 1))
        sets = {s: list(combinations(range(5), s)) for s in range(1, 6)}
        odds = {s: Fraction(sum({0, 1} <= set(one) for one in of), len(of)) for s, of in sets.items()}
        counted = all(odds[s] == Fraction(str(pair.subs({N: 5, S: s}))) for s in sets)
        return counted and sympy.simplify(total / S**2 - nu * V) == 0

    return check


# 3: drift


def moment(second: bool) -> Callable[[], bool]:
    """E |P d|^2 = <d, E[P^2] d> for two symmetric outcomes with odds t and 1 - t; not with (E P)^2."""

    def check() -> bool:
        import sympy

        t, d = sympy.Symbol("t"), sympy.Matrix(sympy.symbols("d:2"))
        outcomes = []
        for name, odds in (("a", t), ("b", 1 - t)):
            p, q, r = sympy.symbols(f"{name}:3")
            outcomes.append((sympy.Matrix([[p, q], [q, r]]), odds))
        mean = sum(((P * d).T * (P * d) * odds for P, odds in outcomes), sympy.zeros(1, 1))
        first = sum((P * odds for P, odds in outcomes), sympy.zeros(2, 2))
        square = sum((P * P * odds for P, odds in outcomes), sympy.zeros(2, 2)) if second else first * first
        return sympy.expand(mean - d.T * square * d) == sympy.zeros(1, 1)

    return check


def counted(less: int) -> Callable[[], bool]:
    """Over k < K the sum of 2k is K(K-1), of 4k^2 at most (4/3) K^2 (K-1) for K >= 1; `less`: taken from K^2."""

    def check() -> bool:
        import sympy

        K, k = sympy.symbols("K k", positive=True)
        one = sympy.expand(sympy.summation(2 * k, (k, 0, K - 1)) - K * (K - 1)) == 0
        two = sympy.expand(sympy.summation(4 * k**2, (k, 0, K - 1)) - 2 * K * (K - 1) * (2 * K - 1) / 3) == 0
        x = reals("x y")[0]
        bound = follows(lambda: ([x >= 1], 2 * x * (x - 1) * (2 * x - 1) <= 4 * (x - less) * x * (x - 1)))()
        return one and two and bound

    return check


# 4: descent


def descent(part: str) -> Callable[[], bool]:
    """For L = 1: a2 = E<G, P G>, ab = E<G, P a>, b2, w2, n2 the squares of a_S, w and the noise by <., P .>, bw and bn
    their products with a_S, the others zero in the mean. `part`: of the sampling's square."""

    def premises() -> tuple[list, Any]:
        eta, a2, b2, w2, n2, ab, bw, bn = reals("eta a2 b2 w2 n2 ab bw bn")
        given = [eta > 0, eta <= 1, a2 >= 0, b2 >= 0, w2 >= 0, n2 >= 0, -2 * ab <= a2 + b2]
        given += [2 * bw + 2 * bn <= b2 + w2 + n2]
        square = a2 + b2 + w2 + n2 + 2 * ab + 2 * bw + 2 * bn
        right = -eta / 2 * a2 + eta * (1 + eta) / 2 * b2 + eta * eta * (number(part) * w2 + n2)
        return given, -eta * (a2 + ab) + eta * eta / 2 * square <= right

    return follows(premises)


def moved(share: str) -> Callable[[], bool]:
    """The square of four parts, the three products with zero mean left out: at most 2, 3, 2 and 2 times theirs."""

    def premises() -> tuple[list, Any]:
        a2, b2, w2, n2, ab, bw, bn = reals("a2 b2 w2 n2 ab bw bn")
        given = [a2 >= 0, b2 >= 0, w2 >= 0, n2 >= 0, 2 * ab <= a2 + b2, 2 * bw + 2 * bn <= b2 + w2 + n2]
        total = a2 + b2 + w2 + n2 + 2 * ab + 2 * bw + 2 * bn
        return given, total <= 2 * a2 + number(share) * b2 + 2 * w2 + 2 * n2

    return follows(premises)


# 5: memories


def convex(factor: int) -> Callable[[], bool]:
    """(1 - p) u^2 + p z^2 - ((1 - p) u + p z)^2 = p (1 - p) (u - z)^2, for an eigenvalue p of Q."""

    def sides() -> tuple[Any, Any]:
        import sympy

        p, u, z = sympy.symbols("p u z")
        return (1 - p) * u**2 + p * z**2 - ((1 - p) * u + p * z) ** 2, factor * p * (1 - p) * (u - z) ** 2

    return equal(sides)


def kept(part: str) -> Callable[[], bool]:
    """(1 + f/2)((1 - f) C + 2 phi Z) + (1 + 2/f) X <= (1 - f/2) C + 3 phi Z + (3/f) X, f = phi mu; times f."""

    def premises() -> tuple[list, Any]:
        f, C, Z, X = reals("f C Z X")  # Z: phi (L^2 D + theta sigma^2/K); X: L^2 E|x^+ - x|^2
        left = f * (1 + f / 2) * ((1 - f) * C + 2 * Z) + (f + 2) * X
        right = f * ((1 - number(part) * f) * C + 3 * Z) + 3 * X
        return [f > 0, f <= 1, C >= 0, Z >= 0, X >= 0], left <= right

    return follows(premises)


def parted(middle: int) -> Callable[[], bool]:
    """4 a^2 + 2 b^2 + 4 c^2 - (a + b + c)^2 = (b - a - c)^2 + 2 (a - c)^2."""

    def sides() -> tuple[Any, Any]:
        import sympy

        a, b, c = sympy.symbols("a b c")
        return 4 * a**2 + middle * b**2 + 4 * c**2 - (a + b + c) ** 2, (b - a - c) ** 2 + 2 * (a - c) ** 2

    return equal(sides)


def forgotten(power: int) -> Callable[[], bool]:
    """|v|^2 - (2/rho) E<v, Q v> + E|Q v|^2/rho^2 = (omega/rho - 1) |v|^2, with E Q = rho I and E Q^2 = omega rho I."""

    def sides() -> tuple[Any, Any]:
        import sympy

        rho, omega, v2 = sympy.symbols("rho omega v2", positive=True)
        return v2 - 2 / rho * rho * v2 + omega * rho * v2 / rho**power, (omega / rho - 1) * v2

    return equal(sides)


# 6: the potential; weight: M over eta


def assembled(drift: str) -> Callable[[], bool]:
    """Descent and M times the memory, with the drift put in, has the coefficients that the page says."""

    def sides() -> tuple[Any, Any]:
        import sympy

        rho, omega, eta, L, K, S, nu, p, theta, s2 = sympy.symbols("rho omega eta L K S nu p theta s2", positive=True)
        m, chi, alpha, gamma, weight = sympy.symbols("m chi alpha gamma weight", positive=True)
        C, G, Z2 = sympy.symbols("C G zeta2", positive=True)  # V is replaced by C, which bounds it
        h, noise, a = L * eta, theta * s2 / K, sympy.Rational("1.041")
        D = a * p * noise + sympy.Rational(drift) * omega * rho * p * (C + G)
        B = (1 + h) / 2 + alpha * weight + 3 * gamma * h**2 * weight
        down = -rho * eta / 2 * G + (1 + h) / 2 * eta * D + h * eta * (rho * nu * C + noise / S)
        step = 2 * omega * rho * G + 3 * D + 2 * omega * rho * nu * C + 2 * noise / S
        memory = -m * C + chi * Z2 + alpha * (D + noise) + gamma * h**2 * step
        b = sympy.Rational("1.388")
        ofG = -rho * eta * (sympy.Rational(1, 2) - b * omega * p * B - 2 * omega * gamma * h**2 * weight)
        ofC = -eta * (weight * m - rho * (b * omega * p * B + h * nu + 2 * omega * nu * gamma * h**2 * weight))
        ofN = eta * (a * p * B + h / S + alpha * weight + 2 * gamma * h**2 * weight / S)
        return down + weight * eta * memory, ofG * G + ofC * C + ofN * noise + weight * eta * chi * Z2

    return equal(sides)


def balanced(lead: str) -> Callable[[], bool]:
    """C has no positive coefficient: w = m M/eta, where M kappa = rho eta q.

    X, Y, Z: rho omega M/eta times alpha p, p gamma h^2 and nu gamma h^2; T, W: rho times omega p and h nu.
    """

    def premises() -> tuple[list, Any]:
        X, Y, Z, T, W, w = reals("X Y Z T W w")
        chosen = w - number("7/5") * X - number("21/5") * Y - 2 * Z == number(lead) * T + W
        drift = number("1.388") * (number("5/8") * T + X + 3 * Y)
        return [X >= 0, Y >= 0, Z >= 0, T >= 0, W >= 0, chosen], -w + drift + W + 2 * Z <= 0

    return follows(premises)


def gradients(part: str) -> Callable[[], bool]:
    """The coefficient of -rho eta |G|^2. X, Y, Z: omega M/eta times alpha p, p gamma h^2 and gamma h^2; T = omega p."""

    def premises() -> tuple[list, Any]:
        X, Y, Z, T = reals("X Y Z T")
        steps = number("7/5") * X + number("21/5") * Y + 2 * Z <= number("1/25")
        lead = number("1/2") - number("1.388") * (number("5/8") * T + X + 3 * Y) - 2 * Z
        return [X >= 0, Y >= 0, Z >= 0, T >= 0, 100 * T <= 1, steps], lead >= number(part)

    return follows(premises)


def noise(third: str) -> Callable[[], bool]:
    """What multiplies theta sigma^2/K, over eta. A, B: M/eta times alpha and gamma h^2; s = 1/S."""

    def premises() -> tuple[list, Any]:
        p, A, B, s, hs = reals("p A B s hs")
        drift = number("1.041") * p * (number("5/8") + A + 3 * B)
        right = hs + number(third) * p + number("1.02") * A + (number("1/25") + 2 * s) * B
        return [p >= 0, 100 * p <= 1, A >= 0, B >= 0, s > 0], drift + hs + A + 2 * B * s <= right

    return follows(premises)


def summed(part: str) -> Callable[[], bool]:
    """Divided by (9/20) rho eta T: 20/9, and for no memory 35/18 of omega p and 40/27 of the drift's noise."""

    def check() -> bool:
        turned = 1 / Fraction(part)
        wanted = (Fraction(20, 9), Fraction(35, 18), Fraction(40, 27))
        return (turned, turned * Fraction(7, 8), turned * Fraction(2, 3)) == wanted

    return check


# 7: corollaries, for omega = 1, which bounds the others: q and kappa move with omega to the worse side


def _all(parts: list) -> Any:
    import z3

    return z3.And(*parts)


def whole(part: str) -> Callable[[], bool]:
    """SSF, all clients: m = rho/2, alpha = 3, gamma = 3/rho; u = h^2/rho, s = 1/N; k = kappa/rho."""

    def premises() -> tuple[list, Any]:
        p, u, s = reals("p u s")
        k = number("1/2") - number("21/5") * p - number("63/5") * p * u
        steps = number("7/8") * p * (number("21/5") * p + (number("21/5") * p + 2) * 3 * u) <= k / 25
        rest = number("2/3") + number("1.98") * (number("3.06") + (number("1/25") + 2 * s) * 3 * u)
        given = [p >= 0, 100 * p <= 1, u >= 0, number(part) * u <= 1, s > 0, s <= 1]
        return given, _all([k > 0, number("7/8") <= number("1.98") * k, steps, rest <= number("33/4")])

    return follows(premises)


def once(part: str) -> Callable[[], bool]:
    """The same without noise, p <= rho/100 and h = 1/4: v = p/rho, so that 12.6 p u = 12.6 v h^2; 2/45 and 80/9."""

    def premises() -> tuple[list, Any]:
        p, v = reals("p v")
        k = number("1/2") - number("21/5") * p - number("63/5") * v / 16
        steps = number("7/8") * (number("21/5") * p * p + (number("21/5") * p + 2) * 3 * v / 16) <= k / 25
        lead = number("7/8") * v * number("20/9") <= number(part) * k
        return [p >= 0, 100 * p <= 1, v >= p, 100 * v <= 1], _all([k > 0, steps, lead])

    return follows(premises)


def some(part: str) -> Callable[[], bool]:
    """SSF with S of N: m = phi rho/2, alpha = 3 phi, gamma = 3/(phi rho); y = h^2/(phi^2 rho), k = kappa/(phi rho);
    H = h nu <= y^(1/2) phi nu <= 1/16, as phi nu <= 1/N <= 1/2; s = 1/S."""

    def premises() -> tuple[list, Any]:
        p, y, nu, H, s = reals("p y nu H s")
        q = number("7/8") * p + H
        k = number("1/2") - number("21/5") * p - (number("63/5") * p + 6 * nu) * y
        steps = q * (number("21/5") * p + (number("21/5") * p + 2) * 3 * y) <= k / 25
        rest = (number("3.06") + (number("1/25") + 2 * s) * 3 * y) <= number("8.8") * number("9/25")
        given = [p >= 0, 100 * p <= 1, y >= 0, number(part) * y <= 1, nu >= 0, nu <= 1, H >= 0, 16 * H <= 1]
        return [*given, s > 0, s <= 1], _all([k >= number("9/25"), steps, rest])

    return follows(premises)


def constants(most: str) -> Callable[[], bool]:
    """20/9 over 9/25: 5.5 p + 6.2 h nu; and 2/3 + 8.8 (7/8) = 8.4 at most, times 20/9 at most 19; 8.8 times 20/9."""

    def check() -> bool:
        turned = Fraction(20, 9) / Fraction(9, 25)
        drift = Fraction(20, 9) * (Fraction(2, 3) + Fraction("8.8") * Fraction(7, 8))
        starts = turned * Fraction(7, 8) <= Fraction(most) and turned <= Fraction("6.2")
        return starts and drift <= 19 and Fraction(20, 9) * Fraction("8.8") <= 20

    return check


def odds(most: str) -> Callable[[], bool]:
    """phi nu = (N - S)/(N (N - 1)) is at most 1/N, for 1 <= S <= N, N >= 2: cleared of the denominators."""

    def premises() -> tuple[list, Any]:
        N, S = reals("N S")
        return [S >= 1, S <= N, N >= 2], number(most) * (N - 1) >= N - S

    return follows(premises)


def full(part: str) -> Callable[[], bool]:
    """A memory refreshed in full, all clients: m = 1/2, alpha = gamma = 3; h <= 1/4, e = h^2, s = 1/N.

    The drift's noise, 2/3 + (7/8)(rho/k)(3.06 + ...), is at most 33/2 over 20/9.
    """

    def premises() -> tuple[list, Any]:
        rho, p, e, s = reals("rho p e s")
        k = number("1/2") - rho * (number("21/5") * p + number("63/5") * p * e)
        steps = rho * number("7/8") * p * (number("21/5") * p + (number("21/5") * p + 2) * 3 * e) <= k / 25
        noise = number("7/8") * rho * (number("3.06") + (number("1/25") + 2 * s) * 3 * e)
        rest = noise <= (number("33/2") * number("9/20") - number("2/3")) * k
        given = [rho > 0, rho <= 1, p >= 0, 100 * p <= 1, e >= 0, 16 * e <= 1, s > 0, s <= 1]
        return given, _all([k > 0, steps, number("20/9") * number("7/8") <= number(part) * k, rest])

    return follows(premises)


def dropped(part: str) -> Callable[[], bool]:
    """FedSub: m = 1, alpha = c/rho^2, gamma = 4, c p <= rho/5 (c = 4, 8 with noise); a = alpha p rho, e = h^2."""

    def premises() -> tuple[list, Any]:
        rho, p, e, a = reals("rho p e a")
        k = 1 - number("7/5") * a - rho * number("84/5") * p * e
        steps = number("7/8") * p * (number("7/5") * a + rho * (number("21/5") * p + 2) * 4 * e) <= k / 25
        given = [rho > 0, rho <= 1, p >= 0, 100 * p <= 1, e >= 0, 100 * e <= 1, a >= 0, a <= number(part)]
        return given, _all([k >= number("7/10"), steps])

    return follows(premises)


def dropping(most: str) -> Callable[[], bool]:
    """(20/9)(7/8)/(7/10) = 25/9, twice 50/9; and the noise 2/3 + (5/4)(8.16 + ...)/rho, times 20/9, at most 25/rho."""

    def check() -> bool:
        lead = Fraction(20, 9) * Fraction(7, 8) / Fraction(7, 10)
        drift = Fraction(2, 3) + Fraction(5, 4) * (Fraction("8.16") + Fraction("2.04") * 4 * Fraction(1, 100))
        return (lead, 2 * lead) == (Fraction(25, 9), Fraction(most)) and Fraction(20, 9) * drift <= 25

    return check


def single(part: str) -> Callable[[], bool]:
    """One local step: -eta rho G2 + (eta^2/2) omega rho (G2 + R) <= -(eta rho/2) G2 + (eta^2/2) omega rho R, L = 1."""

    def premises() -> tuple[list, Any]:
        eta, rho, omega, G2, R = reals("eta rho omega G2 R")
        given = [eta > 0, rho > 0, omega > 0, eta * omega <= 1, G2 >= 0, R >= 0]
        rest = eta * eta / 2 * omega * rho
        return given, -eta * rho * G2 + rest * (G2 + R) <= -number(part) * eta * rho * G2 + rest * R

    return follows(premises)


def gaussian(fourth: int) -> Callable[[], bool]:
    """E of (g g^T)^2 is (E g_1^4 + d - 1) I, and with r columns over r: (d + 1)/r + 1. `fourth`: E g_1^4."""

    def sides() -> tuple[Any, Any]:
        import sympy

        d, r = sympy.symbols("d r", positive=True)
        return (r * (fourth + d - 1) + r * (r - 1)) / r**2, 1 + (d + 1) / r

    return equal(sides)


def chosen(twice: str) -> Callable[[], bool]:
    """A/e + B e <= A/H + 2 (A B)^(1/2) at e = min(H, (A/B)^(1/2)); a, b: the roots of A and B."""

    def premises() -> tuple[list, Any]:
        import z3

        a, b, H, e = reals("a b H e")
        given = [a > 0, b > 0, H > 0, e > 0, z3.Or(z3.And(e == H, b * H <= a), z3.And(b * e == a, a <= b * H))]
        return given, H * (a * a + b * b * e * e) <= a * a * e + number(twice) * a * b * e * H

    return follows(premises)


def speedup(most: str) -> Callable[[], bool]:
    """160/9 = 8 (20/9), 2 (A B)^(1/2) of 7.10, squared, for (20/9)(20/9 + 39), and 39 = 20 + 19 of 7.4; the start."""

    def check() -> bool:
        first = Fraction(20, 9)
        start = (Fraction("5.5") + Fraction("6.2")) / 8 <= Fraction("1.5")
        return start and 8 * first == Fraction(160, 9) and 4 * first * (first + 20 + 19) <= Fraction(most) ** 2

    return check


# 8: which control


def fresh(power: int) -> Callable[[], bool]:
    """(1 - (1 - rho)^t) R solves E^+ = (1 - rho) E + rho R, E_0 = 0."""

    def sides() -> tuple[Any, Any]:
        import sympy

        rho, R, rest = sympy.symbols("rho R rest", positive=True)  # rest: (1 - rho)^t
        return (1 - rho) * (1 - rest) * R + rho * R, (1 - rest * (1 - rho) ** power) * R

    return equal(sides)


STEPS = [
    Step("family.1.1", "identity", "a local step with s P is one with P at s times the step", rescaled(1), rescaled(2),
         "the square of the scale"),
    Step("family.1.2", "implication", "for every eigenvalue in [0, 1]", contraction(True), contraction(False),
         "an eigenvalue that may be 2"),
    Step("family.1.3", "identity", "two of three clients, two local steps, any linear map in the place of P",
         direction(True), direction(False), "c is not the mean of the c_i"),
    Step("family.1.4", "identity", "two of three clients, any linear map in the place of Q", stored(True),
         stored(False), "the mean of the participants' fresh controls", ("ssf.lemma3.eq26-28",)),
    Step("family.2.1", "expectation", "all N and S, from the odds of one client and of a pair; these counted for N = 5",
         sampled(False), sampled(True), "drawn with replacement"),
    Step("family.3.1", "identity", "three local steps, unrolled", drifted(), drifted(2), "the correction counted twice",
         ("ssf.lemma2.eq9-10",)),
    Step("family.3.2", "certificate", "both differences are sums of squares", every(squares("2"), sums(0)),
         every(squares("2"), sums(1)), "k - 1 in the place of k", ("ssf.lemma2.eq11-12",)),
    Step("family.3.3", "expectation", "two symmetric outcomes with any odds, all symbols", moment(True), moment(False),
         "the square of the mean"),
    Step("family.3.4", "expectation", "three steps, the size of each noise any function of the signs before it",
         martingale(True), martingale(False), "one sample kept for all local steps", ("ssf.lemma2.eq13-16",)),
    Step("family.3.5", "implication", "the sums by sympy, their bound, the induction by z3, the exponential's series",
         every(counted(0), gronwall(True), exponential("1.041")), every(counted(1), gronwall(True)),
         "K (K - 1)^2 in the place of K^2 (K - 1)", ("ssf.sharper.lemma2",)),
    Step("family.3.6", "identity", "any number of clients, by the first two moments of the u_i", pulls(True),
         pulls(False), "any vector in the place of the mean", ("ssf.theorem1.eq110",)),
    Step("family.4.1", "implication", "for all steps up to 1/L and all second moments", descent("1"), descent("9/10"),
         "nine tenths of the sampling", ("ssf.sharper.lemma3",)),
    Step("family.4.2", "expectation", "two clients, two steps, independent signs", averaged(True), averaged(False),
         "one sign for all", ("ssf.lemma3.eq49-54",)),
    Step("family.4.3", "implication", "for all second moments of the four parts", moved("3"), moved("2"),
         "2 in the place of 3"),
    Step("family.5.1", "certificate", "the difference is p (1 - p) times a square, for each eigenvalue", convex(1),
         convex(2), "twice the square"),
    Step("family.5.2", "implication", "for all phi mu in (0, 1]", kept("1/2"), kept("3/4"), "1 - 3 f/4 for 1 - f/2"),
    Step("family.5.3", "certificate", "the parts, three clients, any matrix in the place of Q/rho (fedsub.4.1); the "
         "difference of the squares is a sum of squares", every(parts(1), parted(2)), either(parts(-1), parted(1)),
         "the drift with the other sign; 1 for 2"),
    Step("family.5.4", "expectation", "from the first two moments of Q; a client's part against the mean one "
         "(fedsub.4.6)", every(forgotten(2), centred(True)), either(forgotten(1), centred(False)),
         "divided by rho, not by its square; any vector in the place of the mean"),
    Step("family.6.1", "identity", "the sum of the claims", assembled("1.388"), assembled("1.389"), "1.389 for 1.388"),
    Step("family.6.2", "implication", "linear in the products that occur", balanced("7/8"), balanced("6/7"),
         "6/7 in the place of 7/8"),
    Step("family.6.3", "implication", "linear in the products that occur", gradients("9/20"), gradients("47/100"),
         "47/100 in the place of 9/20"),
    Step("family.6.4", "implication", "for 0 <= p <= 1/100", noise("2/3"), noise("13/20"), "13/20 in the place of 2/3"),
    Step("family.6.5", "arithmetic", "20/9, 35/18, 40/27", summed("9/20"), summed("1/2"), "1/2 in the place of 9/20"),
    Step("family.7.1", "implication", "for p <= 1/100, u <= 1/8 and N >= 1", whole("8"), whole("7"), "h^2 <= rho/7"),
    Step("family.7.2", "implication", "for p <= rho/100, h = 1/4", once("2/45"), once("1/24"), "1/24 for 2/45"),
    Step("family.7.3", "implication", "for p <= 1/100, y <= 1/64, all S, N >= 2", every(some("64"), odds("1")),
         every(some("40"), odds("1")), "h^2 <= phi^2 rho/40"),
    Step("family.7.4", "arithmetic", "the constants of 7.3", constants("5.5"), constants("5"), "5 for 5.5"),
    Step("family.7.5", "implication", "for p <= 1/100, h <= 1/4, N >= 1", full("13/3"), full("4"), "4 for 13/3"),
    Step("family.7.6", "implication", "for p <= 1/100, h <= 1/10, c p <= rho/5", dropped("1/5"), dropped("1/4"),
         "c p <= rho/4"),
    Step("family.7.7", "arithmetic", "25/9, 50/9 and 25", dropping("50/9"), dropping("5"), "5 for 50/9"),
    Step("family.7.8", "implication", "for all steps up to 1/(L omega), with 3.3 for any two symmetric outcomes",
         every(moment(True), single("1/2")), every(moment(True), single("3/5")), "3/5 for 1/2"),
    Step("family.7.9", "expectation", "E (U U^T)^2 for entries of any fourth moment, d and r up to 3 (mud.3.2), at 3",
         every(second(2), gaussian(3)), every(second(2), gaussian(1)), "signs in the place of normal numbers"),
    Step("family.7.10", "implication", "both cases of the smaller step", chosen("2"), chosen("3/2"), "3/2 for 2"),
    Step("family.7.11", "arithmetic", "160/9, 19.2 and 1.5", speedup("19.2"), speedup("19"), "19 in the place of 19.2"),
    Step("family.8.1", "identity", "the two parts are orthogonal, in a basis in which P is diagonal; the solution",
         every(pythagoras(1), fresh(1)), every(pythagoras(1), fresh(2)), "two rounds forgotten in one"),
]  # fmt: skip
