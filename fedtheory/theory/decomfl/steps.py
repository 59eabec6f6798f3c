"""DeComFL, one local step and K of them: the steps of docs/theory/decomfl.md. The formulas stand in formulas.py.

Checks of sections 1 to 4: single.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from fedtheory.theory.decomfl.formulas import FORMULAS as F
from fedtheory.theory.decomfl.single import (
    BALANCED,
    BIAS,
    BOWL,
    COLLECTED,
    DESCENT,
    DIFFERENCE,
    RANK,
    REPEATED,
    YOUNG,
    averaged,
    bowl,
    by_parts,
    doubled,
    form,
    fourth,
    lengths,
    normal,
    of,
    one,
    positive,
    same,
    several,
    symmetric,
    two,
    vector,
)
from fedtheory.theory.formula import Formula
from fedtheory.theory.proof import Equal, Fails, Implies, Put, Said, Step, Values, either, every, exact, mean_of
from fedtheory.theory.ssf.steps import CAUCHY

SQUARED: Put = ("sqH", lambda v: v * v)
OF_THETA: Put = ("theta", F["theta"].side(1))
OF_H: Put = "h == K*eta*L"
OF_ETAT = F["etat"]


def halves(u: Any, v: Any) -> Any:
    """What 3.2 makes of two squares."""
    return F["two"].right({"u": u, "v": v, "sqH": same})


HALVES: Put = ("halves", halves)

# 5: lengths in H


TANGENT = Implies(
    ["s_H >= 0", "d_n >= 0", "d_H >= 0", "L > 0", F["delta_s"], F["delta_H"]],
    ["d_n**2 <= most"],
    ["s == s_H", SQUARED, ("most", F["tangent"])],
)


def _integral(v: Any) -> Any:
    import sympy

    return sympy.integrate(v, (positive("u"), 0, 1))


INTEGRAL = every(
    Equal(F["smooth"].side(2), F["smooth"].side(3), [SQUARED, ("int01", _integral)]),
    Equal(F["above"].term(2), F["smooth"].side(3), [SQUARED, "sHs == s**2"]),
    Equal(F["missed_H"], "most/mu", ["s == mu*z", "zHz == z**2", SQUARED, ("most", F["smooth"])]),
)


# 6: directions


def spread(independent: bool) -> Callable[[], bool]:
    """(A - I) w for two directions in two dimensions."""

    def values() -> Values:
        a, w, H, mean = two(independent)
        form = lambda v: of(H)(a - w) if v is not w else of(H)(w)
        return {"AI": _Minus(), "w": w, "sqH": form, "E": mean, "P": 2, "trH": H.trace(), "a": 1, "L": 1}

    return exact(F["spread"].changed("<= a*L*sq(w)", "== 1/P*(trH*sq(w) + sqH(w))"), values)


class _Minus:
    """(A - I), which makes of w something else."""

    def __mul__(self, w: Any) -> str:
        return "(A - I) w"


SPREAD = every(
    spread(True),
    Implies(["P >= 1", "trH <= kappa*L", "wHw <= L*sq(w)"], ["left <= right"],
            [F["a"], ("left", F["spread"].side(1).changed("sqH(w)", "wHw")), ("right", F["spread"])], cleared=True),
    Equal(F["size"], "spread + L*sq(w)", [F["c_a"], ("spread", F["spread"])]),
    Equal(F["c_a"], F["c"], [F["a"]]),
)  # fmt: skip


def powers(third: Formula) -> Callable[[], bool]:
    """z^T H z with the eigenvalues h: three dimensions."""

    def values() -> Values:
        import sympy

        z, h = sympy.symbols("z:3"), sympy.symbols("h:3")
        q, t = sum(a * b**2 for a, b in zip(h, z)), sum(h)
        traces = {f"tr{k}": sum(a**k for a in h) for k in (2, 3)}
        return {"zHz2": q**2, "zHz3": q**3, "t": t, "E": lambda v: mean_of(v, z), **traces}

    return every(exact(F["second"], values), exact(third, values))


TRACES = ["t <= kappa", "tr2 <= t", "tr3 <= t"]
FLAT: list[Put] = ["t == kappa*L", "tr2 == L*t", "tr3 == L**2*t"]
MOMENTS: list[Put] = [(name, F[name]) for name in ("second", "third", "second_most", "third_most")]
RANKED = every(
    Implies(TRACES, ["second <= second_most", "third <= third_most"], ["L == 1", *MOMENTS], cleared=True),
    Equal(F["second_most"], "second", [*FLAT, ("second", F["second"])]),
    Equal(F["third_most"], "third", [*FLAT, ("third", F["third"])]),
)


def sphere(radius: int) -> Callable[[], bool]:
    """The length for any d; then the moments of 1.1 and 6.2 on the circle |z|^2 = radius: over 1, 2, 6.

    d = 2 there, and the circle's mean is that over eight points. And 2.2 there, for all powers up to the sixth.
    """

    def check() -> bool:
        import sympy

        d, r = sympy.symbols("d r", positive=True)
        for k in (1, 2, 3):
            j, moment = sympy.Symbol("j"), sympy.gammasimp(2**k * sympy.gamma(d / 2 + k) / sympy.gamma(d / 2))
            factors = lambda v, j=j, k=k: sympy.prod([v.subs(j, at) for at in range(k)])
            names = {"z2k": moment, "d": d, "k": k, "j": j, "E": same, "prod": factors}
            (left, _, middle), (_, _, least) = F["sphere"].links(names, sympy.Rational)
            if sympy.simplify(left - middle) != 0 or least != 1:
                return False
        inside = sympy.integrate(r ** (d + 1), (r, 0, sympy.sqrt(d))) / sympy.integrate(
            r ** (d - 1), (r, 0, sympy.sqrt(d))
        )
        if sympy.simplify(inside / d - F["ball_length"].right({"d": d, "tr": 1})) != 0:
            return False
        h, w = sympy.symbols("h:2"), sympy.symbols("w:2")
        angles = [sympy.pi * j / 4 for j in range(8)]  # integrates cosines and sines up to the seventh power
        points = [(sympy.sqrt(radius) * sympy.cos(a), sympy.sqrt(radius) * sympy.sin(a)) for a in angles]
        y = sympy.symbols("y:2")

        def agrees(make: Callable[[Any], Any], over: int) -> bool:
            return sympy.expand(sum(make(z) for z in points) / 8 - mean_of(make(y), y) / over) == 0

        def parts(i: int, j: int) -> bool:
            """E z_0 phi on the circle is E d phi/dz_0 in the disk, phi = z_0^i z_1^j: of degree n it has 2/(n + 2)."""
            circle = lambda a, b: sum(z[0] ** a * z[1] ** b for z in points) / 8
            disk = i * circle(i - 1, j) * sympy.Rational(2, i + j + 1) if i else 0
            return sympy.expand(circle(i + 1, j) - disk) == 0

        if not all(parts(i, n - i) for n in range(7) for i in range(n + 1)):
            return False
        q = lambda z: h[0] * z[0] ** 2 + h[1] * z[1] ** 2
        slope = lambda z: (w[0] * z[0] + w[1] * z[1]) ** 2
        fourth = agrees(lambda z: slope(z) * q(z), 2) and agrees(lambda z: q(z) ** 2, 2)
        return agrees(slope, 1) and fourth and agrees(lambda z: q(z) ** 3, 6)

    return check


def averages(share: str) -> Callable[[], bool]:
    """The mean of two independent copies around its mean: half of the square of one; three outcomes, their odds p."""

    def check() -> bool:
        import sympy

        p, y = sympy.symbols("p:2"), sympy.symbols("y:3")
        odds = (*p, 1 - sum(p))
        mean = sum(a * b for a, b in zip(odds, y))
        both = sum(odds[i] * odds[j] * ((y[i] + y[j]) / 2 - mean) ** 2 for i, j in product(range(3), repeat=2))
        alone = sum(a * b**2 for a, b in zip(odds, y)) - mean**2
        return sympy.expand(both - sympy.Rational(share) * alone) == 0

    return check


BT: list[Put] = [("bt2", F["bt"]), "bt == sqrt(bt2)"]
VARIES = every(
    averages("1/2"),
    Equal(F["beta"].side(2), "most", ["s == mu*z", SQUARED, ("most", F["tangent"])]),
    Equal(F["beta"].side(3), F["b_K"], ["tr == kappa*L"]),
    Equal(F["b_K"].side(0), F["beta"].side(4)),
    Equal(F["b_K"], F["b"], ["kappa == d"]),
    Equal(F["varies"].side(2), "1/P*missed**2*third",
          ["zHz == 1", ("missed", F["missed_H"]), ("third", F["third_most"])]),
    Equal(F["varies"].side(3), "front*rounded",
          ["front == mu**2*L**3/4*kappa/P", ("rounded", F["rounded"]), F["a"], *BT]),
    Equal(F["varies"].side(2), "front*rounded",
          ["front == mu**2*L**3/4*kappa/P", ("rounded", F["rounded"].side(0))]),
    Equal(F["varies"].side(1), F["varies"].side(2),
          [("E", same), ("third", F["third_most"]), "zHz == third**(1//3)", ("e", F["missed_H"])]),
    Equal(F["bt"].side(0), "bt**2"),
    Implies(["kappa >= 1"], [F["rounded"]]),
    Fails(Implies(["kappa >= 2/5"], [F["rounded"]])),
)  # fmt: skip


# 7: sums over local steps


def crossed(fresh: bool) -> Callable[[], bool]:
    """Products of two steps in H: w^T H w of the fixed parts, 0 of noise, also where it depends on the step before.

    Two dimensions, P = 1; y, z the directions, s, t the signs of the noises, the later one t (y_0 y_1 + s) u.
    Not `fresh`: the later step uses the first one's direction.
    """

    def check() -> bool:
        import sympy

        y, w, u, v = (vector(name, 2) for name in "ywuv")
        z, H = vector("z", 2) if fresh else y, symmetric(2)
        mean, (s, t) = normal(y, *[z] * fresh), sympy.symbols("s t")
        later = t * (sympy.prod(y) + s) * u
        total = mean((y.T * (w + s * v))[0] * (z.T * (w + later))[0] * (y.T * H * z)[0])
        signs = sum(total.subs({s: a, t: b}) for a, b in product((-1, 1), repeat=2)) / 4
        return sympy.expand(signs - of(H)(w)) == 0

    return check


FIXED = every(
    crossed(True),
    Equal(F["pairs"].side(0), F["pairs"].side(1), [F["c_a"]]),
    Equal(F["fixed"], "k*(k - 1)*L*sq(w) + k*single", [F["c_a"], ("single", F["one_most"])]),
    Equal(F["one_most"], "size", [("size", F["size"].changed("sq(w)", "(sq(w) + s**2)"))]),
)


def moving(fresh: bool) -> Callable[[], bool]:
    """Three steps: the squared sum of the (A_j - I) d_j has the mean of the squares. d_j knows the steps before j.

    Two dimensions and two steps with any H; then three steps in one dimension. `fresh`: every step has a direction.
    """

    def check() -> bool:
        import sympy

        y, q, u = (vector(name, 2) for name in "yqu")
        z, H = vector("z", 2) if fresh else y, symmetric(2)
        later = q + sympy.prod(y) * u
        before, after = (y.T * q)[0] * y - q, (z.T * later)[0] * z - later
        mean = normal(y, *[z] * fresh)
        if sympy.expand(mean((before.T * H * after)[0])) != 0:
            return False
        z0, z1, z2, r = *sympy.symbols("z0:3"), sympy.symbols("r:6")
        parts = [
            (z0**2 - 1) * r[0],
            (z1**2 - 1) * (r[1] + r[2] * z0),
            (z2**2 - 1) * (r[3] + r[4] * z0 + r[5] * z1 * z0),
        ]
        gap = sum(parts) ** 2 - sum(part**2 for part in parts)
        return sympy.expand(mean_of(gap, (z0, z1, z2))) == 0

    return check


SUMS: list[Put] = [("sum_d", same), ("sum_j", same), ("E", same)]
MOVING = every(
    moving(True),
    CAUCHY,
    Equal(F["two"], "sqH(u - v)", [SQUARED], gap=True),
    Equal(F["moving"], "halves(first, second)",
          [*SUMS, HALVES, ("first", F["moving_first"]), ("second", F["moving_second"])]),
    Equal(F["moving_second"], "most", [*SUMS, "w == d_j", ("most", F["spread"])]),
    Equal(F["moving_first"], "k*L*d_j**2", SUMS),
)  # fmt: skip
ERRORS = every(
    Equal(F["errors"], "halves(first, k*second)", [HALVES, ("first", F["errors_first"]), ("second", F["varies"])]),
    Equal(F["errors_first"], "first", [*SUMS, ("first", F["moving_first"].changed("sq(d_j)", "(k*b**2)"))]),
)


# 8: the drift


def summed(*sums: Formula) -> Callable[[], bool]:
    """Sums over k < K by sympy: with K = 1 + t the bound has more, by coefficients that are not negative."""

    def check() -> bool:
        import sympy

        names = {name: sympy.Symbol(name) for name in ("K", "k", "a", "b", "bt", "t")}
        names["sum_k"] = lambda v: sympy.summation(v, (names["k"], 0, names["K"] - 1))
        names["theta"] = F["theta"].side(1).right(names)
        names["b_th"] = sympy.sqrt(F["b_theta"].right(names))
        for left, sign, right in (link for sum_ in sums for link in sum_.links(names, sympy.Rational)):
            gap = sympy.cancel(sympy.expand(right - left).subs(names["K"], 1 + names["t"]))
            more = sympy.Poly(gap, *(names[name] for name in ("t", "a", "b", "bt")))
            if not more.is_zero and (sign == "==" or min(more.coeffs()) < 0):
                return False
        return True

    return check


BOTH: list[Put] = [("squares", F["sums_squares"]), ("single", F["sums"]), OF_THETA]
SUMMED = every(
    summed(*(F[name] for name in ("sums", "sums_squares", "sums_theta", "sums_b"))),
    Equal(F["sums_theta"], "squares + a*single", BOTH),
    Equal(F["sums_b"].changed("b_th**2", f"({F['b_theta'].side(1).text})"), "b**2*squares + bt**2*a*single", BOTH),
    Equal(F["b_theta"].side(0), "b_th**2"),
)
SHORT_STEP = f"h*theta <= {F['steps'].side(1).text}"
ADMITTED: list[Said] = ["h > 0", "theta >= 1", SHORT_STEP]
SOLVED = every(
    Equal(F["middle"].side(0), F["middle"].side(1), [OF_H, OF_THETA]),
    Implies([*ADMITTED, "S >= 0"], [f"{F['middle'].side(1).text} <= {F['middle'].side(2).text}"]),
    Implies(["S <= most + y", "S >= 0", "y >= 0"], ["S <= front*y"], [("most", F["middle"]), ("front", F["solved"])]),
)


def drawn(clients: int) -> Callable[[], bool]:
    """Mean of squares, and square of the mean, over all sets of two of `clients`, as of four."""

    def check() -> bool:
        import sympy

        g = sympy.symbols(f"g:{clients}")
        mean, sets = sum(g) / clients, list(combinations(g, 2))
        spread = sum((each - mean) ** 2 for each in g) / clients
        squares = sum(sum(each**2 for each in some) / 2 for some in sets) / len(sets)
        square = sum((sum(some) / 2) ** 2 for some in sets) / len(sets)
        names = {"g": mean, "sigma_G": sympy.sqrt(spread), "m": 2, "sq": lambda v: v**2}
        names["gamma"] = F["gamma"].right({"M": sympy.Integer(4), "m": 2})
        gaps = squares - F["drawn"].right(names), square - F["drawn_mean"].right(names)
        return all(sympy.expand(gap) == 0 for gap in gaps)

    return check


DRAWN = every(  # where the u_i add to 0 so do u_i^2 and the products with the others
    drawn(4),
    Equal("(single - pair)/m**2*M", "gamma/m", [("single", F["odds"]), ("pair", F["odds_pair"]), F["gamma"]]),
)
OVER_J: Put = ("sum_j", same)
LEVELS: list[Put] = [
    *SUMS, HALVES, ("first", F["fixed"].changed("sq(w)", "sq(g_i)").changed("s**2", "sigma**2")),
    ("second", F["moving"].changed("k + a", "K + a").changed("sq(d_j)", "(L*e_j)")), ("third", F["errors"]),
]  # fmt: skip
RECURSION = Equal(F["recursion"], "eta**2*halves(first, halves(second, third))", LEVELS)
TOTAL = "2*eta**2*L*(of_theta*sq(g_i) + of_c*c*sigma**2) + 8*eta**2*L*of_b"
OF_SUMS = (("of_theta", "sums_theta"), ("of_c", "sums"), ("of_b", "sums_b"))
AVERAGED = F["drift"].changed("sq(g_i)", f"({F['drawn'].side(1).text})")
DRIFT = every(
    Equal(F["recursion"], TOTAL, [("sum_j", lambda v: 0), ("sum_k", same),
                                  *((name, F[sum_].side(0)) for name, sum_ in OF_SUMS)]),
    Equal(F["recursion"].term(1), "middle", [OVER_J, "S == e_j/K", ("middle", F["middle"].side(0))]),
    Equal(F["drift"], "solved/K*total",
          [OF_ETAT, ("solved", F["solved"]), *((name, F[sum_]) for name, sum_ in OF_SUMS), ("total", TOTAL)]),
    Equal(F["LQ"], "L*drift", ["h == etat*L", ("drift", AVERAGED)]),
    Equal(F["drift"].side(1), "q", [("sum_k", same), ("E", same), ("sqH", lambda v: 1), "q == 1/K"]),
)  # fmt: skip


# 9: the descent


def with_young(v: str) -> Formula:
    return Formula(F["slope_young"].side(1).text.replace("sq(v)", v))


B_THETA = f"({F['b_theta'].side(1).text})"
SLOPE = every(
    Equal(F["slope_young"], "1/2*sq(1/2*g + 2*v)", gap=True),
    Equal(F["slope_most"], "-etat*sq(g) + etat*(first + second)",
          [("first", with_young("L*Q")), ("second", with_young("b**2"))]),
)  # fmt: skip
DOWNHILL, DRIFTING = Implies(ADMITTED, [F["of_g"]]), Implies(ADMITTED, [F["of_drift"]])
SMOOTHED = every(
    Implies([*ADMITTED, "a >= 0", "theta == 1 + a"], [F["of_b"].changed("b_th**2", B_THETA)], ["K == 1"]),
    Equal(F["h_a"].side(0), F["h_a"].side(1), [OF_H]),
)
ROOTS: list[Put] = [("b2", F["b_K"]), "b == sqrt(b2)", *BT, F["B_mu"]]
AT_D: list[Put] = ["kappa == d", F["a"], OF_ETAT, OF_THETA, F["c_a"], "mu == mu"]
NOISE_ONLY: list[Put] = ["sigma_G == 0", *AT_D]
RATED = every(
    Equal(F["theorem"], "(D + R*rest)/divisor",
          ["F0 == 0", "g == 0", OF_ETAT, *ROOTS, ("rest", F["descent"]), ("divisor", F["divisor"])]),
    Equal(F["smoothing"].side(0), F["smoothing"].side(1), ROOTS),
    Equal(F["short_h"].side(0), F["short_h"].side(1), [OF_H, OF_THETA]),
    Implies(ADMITTED, [f"h*(theta - 1) <= {F['short_h'].side(2).text}"]),
    *(Equal(F["steps"].side(1), F[name].side(-1)) for name in ("short", "short_h")),
    Equal(F["B_mu_most"], F["B_mu"], [("most", F["short"]), "a == most/(L*eta)"]),
    # the table
    Equal(F["row_start"], F["theorem"].term(0), [OF_ETAT]),
    Equal(F["row_drawn"], F["theorem"].term(1), ["sigma == 0", *AT_D]),
    Equal(F["row_minibatch"], F["theorem"].term(1), NOISE_ONLY),
    Equal(F["row_smoothing"], "mu**2*L**2*most", [*AT_D, ("most", F["B_mu_most"])]),
    Equal(F["row_start_printed"], F["printed"].term(0)),
    Equal(F["row_drawn_printed"], F["printed"].term(1)),
    Equal(F["row_minibatch_printed"], F["printed"].term(2)),
    Equal(F["printed_smoothing"], F["printed"].term(3)),
    Equal(F["theta"].side(1), F["theta"].side(2), [F["a"]]),
)  # fmt: skip
REST = F["moving"].side(1).changed("sum_j(E(sq(d_j)))", "(K*L*Q)")
CURVATURE = every(
    Equal("L*first", "most", ["k == K", "w == g_bar", "s == sigma/sqrt(m)", F["c_a"], OF_THETA, ("first", F[
        "curve_first"]), ("most", F["fixed"])]),
    Equal("L*rest", "halves(moving, errors)",
          ["k == K", OF_THETA, HALVES, ("rest", F["curve_rest"].changed("b_th**2", B_THETA)), ("moving", REST),
           ("errors", F["errors"])]),
    Equal(F["curvature"], "eta**2*L*(first + rest)",
          [OF_ETAT, ("first", F["curve_first"].changed("sq(g_bar)", f"({F['drawn_mean'].side(1).text})")),
           ("rest", F["curve_rest"])]),
    Equal("halves(first, rest)/2", "first + rest", [HALVES]),
)  # fmt: skip
ADDED: list[Put] = ["h == etat*L", ("slope", F["slope_most"]), ("curvature", F["curvature"])]
OF: list[Put] = [("of_g", F["of_g"].side(0)), ("of_drift", F["of_drift"].side(0)), ("of_b", F["of_b"].side(0))]
SUM = every(
    Equal("slope + curvature", "of_LQ*L*Q", ["g == 0", "b == 0", "b_th == 0", "sigma == 0", "sigma_G == 0", *ADDED,
                                             ("of_LQ", F["of_LQ"])]),
    Equal("slope + curvature", "etat*of_drift*(1 - 1/K)*h**2*(theta*sigma_G**2 + c*sigma**2/K) + made",
          ["g == 0", "b == 0", "b_th == 0", ("LQ", F["LQ"].changed("h**2", "(etat*L)**2")), "Q == LQ/L", *ADDED, *OF,
           "F0 == 0", "bt == 0", ("made", F["descent"].changed("3*(1 - 1/K)", "0"))]),
    Equal("slope + curvature", "etat*(of_g*sq(g) + of_b)",
          ["sigma == 0", "sigma_G == 0", ("LQ", F["LQ"].changed("(1 - 1/K)", "1").changed("h**2", "(etat*L)**2")),
           "Q == LQ/L", *ADDED, *OF]),
    Equal(F["descent"], "F0 + etat*(at_g*sq(g) + at_b + at_drift*(1 - 1/K)*h**2*(theta*sigma_G**2 + c*sigma**2/K))"
          " + L*etat**2*N2",
          [OF_ETAT, OF_H, ("N2", F["N2"]), ("at_g", F["of_g"]), ("at_b", F["of_b"]), ("at_drift", F["of_drift"])]),
)  # fmt: skip


# 10: the paper's theorems and corollaries


def three_steps(last: Formula) -> Callable[[], bool]:
    """The rate at the step that is the least of three, 1/step at most the sum of theirs."""

    def check() -> bool:
        import sympy

        names = {name: positive(name) for name in ("D", "L", "R", "N", "V", "theta", "mu", "B_mu")}
        names["sqrt"] = sympy.sqrt
        value = lambda said: said.right(names, sympy.Rational)
        rate = [value(F["rate"].term(at)) for at in range(3)]
        first, second, third = (value(F[f"{name}_step"]) for name in ("first", "second", "third"))
        step, noise = F["theorem"].term(0), F["descent"]
        start = lambda at: step.right({**names, "etat": at})
        floor = lambda at: 2 * names["L"] * at * names["N"] ** 2
        drift = lambda at: 6 * names["L"] ** 2 * at**2 * names["V"]
        gaps = [start(first) - rate[0], start(second) + floor(second) - rate[1]]
        exactly = (
            start(third) + drift(third) - value(last) * (names["L"] * names["D"] / names["R"]) ** sympy.Rational(2, 3)
        )
        alike = all(sympy.simplify(gap) == 0 for gap in [*gaps, exactly])
        more = sympy.simplify(rate[2] / value(last) * (names["R"] / (names["L"] * names["D"])) ** sympy.Rational(2, 3))
        return alike and bool(1 <= more < sympy.Rational(11, 10)) and noise is not None

    return check


RATE = every(
    three_steps(F["third_term"]),
    Equal(F["first_step"], "most/(L*theta)", [("most", F["steps"])]),
    Equal(F["theorem"].term(1), "2*L*etat*N2", [("N2", F["N2"])]),
    Equal(F["theorem"].term(2), "6*L**2*etat**2*V", [F["V"]]),
    Equal(F["rate"].term(3), F["theorem"].term(3)),
)
PK: list[Put] = [F["a"], F["c"], OF_THETA, ("most", F["speedup_most"])]
SPEEDUP = every(
    Implies(["P*K <= kappa", "K >= 1", "P >= 1"], ["theta <= most", "c/K <= most"], PK, cleared=True),
    Implies([], ["second**2 <= all**2"],
            [("most", F["speedup_most"]), "N == sqrt(most*(gamma*sigma_G**2 + sigma**2)/m)",
             ("second", F["rate"].term(1)), ("all", F["speedup"])], cleared=True),
    Fails(Implies([], ["second**2 <= all**2"],
                  [("most", F["speedup_most"]), "N == sqrt(most*(gamma*sigma_G**2 + sigma**2)/m)",
                   ("second", F["rate"].term(1)), ("all", F["speedup"].changed("7", "6"))], cleared=True)),
    Implies(["P*K >= kappa", "kappa >= 1"], [F["beyond"]], PK[:3], cleared=True),
    Fails(Implies(["P*K >= kappa", "kappa >= 1"], [F["beyond"].changed("3", "2")], PK[:3], cleared=True)),
    Fails(Implies(["P*K >= kappa", "kappa >= 1"], ["11/10 <= theta"], PK[:3], cleared=True)),
    Implies(["P >= kappa", "kappa >= 1"], [F["beyond_c"]], [F["c"]], cleared=True),
    Fails(Implies(["P >= kappa", "kappa >= 1"], [F["beyond_c"].changed("3", "2")], [F["c"]], cleared=True)),
    *(Equal(F[name].side(0), "1") for name in ("beyond", "beyond_c", "twice")),
)  # fmt: skip


def rounds(third: Formula) -> Callable[[], bool]:
    """From which R the second term is the largest: there two terms are equal."""

    def check() -> bool:
        import sympy

        names = {name: positive(name) for name in ("D", "L", "N", "V", "theta")} | {"sqrt": sympy.sqrt}
        gaps = []
        for bound, at in ((F["from_first"], 0), (third, 2)):
            here = {**names, "R": bound.right(names, sympy.Rational)}
            other, second = (F["rate"].term(k).right(here, sympy.Rational) for k in (at, 1))
            gaps.append(other**3 - second**3)
        return all(sympy.simplify(gap) == 0 for gap in gaps)

    return check


SPHERE: list[Put] = [("b2", F["b"]), "b == sqrt(b2)", ("B", F["B_sphere"])]
PRINTED = every(
    Equal(F["c_hat"], "several", ["shrink == d/(d + 2)", "trH == kappa*shrink", "w == 1", "wHw == shrink",
                                  ("once", F["several"].changed("(1 - 1/P)*wHw", "0")), "several == once + 1 - 1/P"]),
    Equal(F["missed_sphere"], F["missed"], [("sq", lambda v: v), "z == d"]),
    Equal(F["B_sphere"], "missed**2*d", [("missed", F["missed_sphere"])]),
    Equal(F["long_most"], "eta*(d*G + sqrt(d)*missed)", [("missed", F["missed_sphere"])]),
    Equal(F["long_most"], "2*eta*d*G", [F["in_ball"]]),
    Equal(F["out_most"], F["long_most"], [F["in_ball"]]),
    Equal(F["out"], "F0 - eta*sq(g) + slope + L/2*long**2", [("slope", F["slope_one"]), ("long", F["out_most"])]),
    Equal(F["left_two"], "rest/divisor",
          ["F0 == 0", "g == 0", *SPHERE, ("rest", F["out"]), ("divisor", F["divisor_two"])]),
    Implies([], ["rest/divisor <= left"],
            ["F0 == 0", "g == 0", "nu == 0", *SPHERE, ("rest", F["descent_one"]), ("divisor", F["divisor_two"]),
             ("left", F["left_two"])], cleared=True),
    Implies(["d >= 1", F["short_one"]], ["left <= most"],
            [("left", F["left_two"]), ("most", F["printed_two_smoothing"])], cleared=True),
    Equal(F["theorem_two"].term(0), F["theorem_one"].term(0)),
    Equal(F["theorem_two"].term(1), F["theorem_one"].term(1), ["c == c_hat", ("nu2", F["nu"]), "nu == sqrt(nu2)"]),
    Equal(F["theorem_two"].term(2), F["printed_two_smoothing"]),
    Equal(F["printed_two"].term(2), F["printed_two_smoothing"]),
    Equal(F["printed_two"].term(1), F["theorem_two"].term(1)),
    Equal(F["step_two"].side(0), F["step"].side(0), ["c == c_hat"]),
    Equal(F["step_two"].side(1), F["step"].side(1)),
    Equal(F["nu"].side(0), "nu**2"),
)  # fmt: skip


def sixth(formula: Formula) -> Callable[[], bool]:
    """Normal z, H with the eigenvalues h: three dimensions."""

    def values() -> Values:
        import sympy

        z, w, h = sympy.symbols("z:3"), sympy.symbols("w:3"), sympy.symbols("h:3")
        along, q, t = sum(a * b for a, b in zip(w, z)), sum(a * b**2 for a, b in zip(h, z)), sum(h)
        first, second = (sum(a**k * b**2 for a, b in zip(h, w)) for k in (1, 2))
        names = {"zw2": along**2, "zHz2": q**2, "trH": t, "tr_2": t**2, "tr2": sum(a**2 for a in h), "wHw": first}
        return names | {"wH2w": second, "w": sympy.Matrix(w), "E": lambda v: mean_of(v, z)}

    return exact(formula, values)


WORST: list[Put] = ["tr_2 == kappa**2", "tr2 == d", "trH == kappa", "wHw == 1", "wH2w == 1", "w == 1"]
RHO: list[Put] = [F["c_one"], ("rho2", F["rho"]), "rho == sqrt(rho2)"]
SIGNED = every(
    sixth(F["sixth_signed"]),
    Equal(F["on_sphere"], "1/((1 + 2/d)*(1 + 4/d))"),
    Equal(F["rho"], "on_sphere*moment", [*WORST, ("on_sphere", F["on_sphere"]), ("moment", F["sixth_signed"])]),
    Equal(F["rho"].side(0), "most", ["L == 1", "w == 1", ("most", F["signed_most"])]),
    Equal(F["signed_most"], "moment", ["moment == (rho*L*w)**2"]),
    Equal(F["c_one"], F["c_hat"], ["P == 1"]),
    Equal(F["rho_most"].side(0), F["rho_most"].side(1), RHO),
    Implies(["kappa <= d"], ["more >= 0"], [("more", F["rho_most"].side(1))], cleared=True),
    Equal(F["rho_most"].side(2), "0"),
)
MADE, B_IS = (Formula(text) for text in F["signed"].text.split(", "))
E_0: Put = F["e_0"].side(2)
MIXED = every(
    Implies(["P >= 1", "d >= 1", "rho**2 <= d*c_one"], [F["Y"]],
            ["c_hat == 1 - 1/P + c_one/P", ("Y", F["Y_is"])], cleared=True),
    Equal(F["c_hat"], "1 - 1/P + c_one/P", [F["c_one"]]),
    Equal(F["mixed"], "(1 - 1/P)*apart + 1/P*alone",
          [("Y", F["Y_is"]), ("apart", F["apart"]), ("alone", F["alone"])]),
    Implies(["Y**2 <= d*c_hat", "e_0 >= 0", "nw >= 0", "c_hat > 0", "d >= 1", "Y >= 0"], ["2*mixed <= most"],
            ["L == 1", ("mixed", F["mixed"]), "w == nw", ("most", F["mixed_most"])], line=True),
    Equal(F["mixed_most"].side(0), "2*v", ["aHb == v"]),
    Equal(MADE, "one_part + mixed + square",
          [("B", B_IS.side(1)), "c == c_hat", ("one_part", F["several_most"]), ("mixed", F["mixed_most"]),
           ("square", F["bHb_most"])]),
    Equal(B_IS.side(1), B_IS.side(2), [("e_0", E_0)]),
    Equal(F["bHb_most"], "L*B", [("B", B_IS.side(1))]),
    Equal(F["e_0"].side(2), F["missed_sphere"]),
    Equal(B_IS.side(2), F["B_sphere"]),
    Equal(F["apart"].side(2), "e_0*L*nw"),
    Equal(F["alone"], "root", ["w == nw", ("most", F["signed_most"]), "root == e_0*sqrt(most)"]),
    # d = 1
    Equal(F["line_step"].side(1), "most/c_hat",
          ["d == 1", "kappa == 0", "P == 1", F["c_hat"], ("most", F["step_two"])]),
    Equal(F["line_left"].side(0), F["left_two"], ["mu == 1", "L == 1", ("eta", F["line_step"])]),
    Equal(F["line_left"].side(1), F["printed_two_smoothing"], ["mu == 1", "L == 1"]),
    Implies(["d >= 1"], [F["line_left"]]),
)  # fmt: skip


# 11: what no proof can mend


def flat_bowl(factor: str) -> Callable[[], bool]:
    """f = |x|_H^2/2, H a projector of rank 2 in three dimensions, P = 1: one local step, for any number of clients."""

    def check() -> bool:
        import sympy

        x, z, H, eta = vector("x", 3), vector("z", 3), sympy.diag(1, 1, 0), sympy.Symbol("eta")
        new = x - eta * (z.T * H * x)[0] * z
        c = F["c"].right({"kappa": 2, "P": 1})
        wanted = Formula(factor).right({"eta": eta, "c": c})
        return sympy.expand(normal(z)(of(H)(new)) - wanted * of(H)(x)) == 0

    return check


def exponent() -> bool:
    """All rounds: the power P K R of one step; the share eps is met at the number of 11.1; 1/(1 + x) >= e^-x at x = 0
    with a derivative that stays above: (1 + x) e^-x falls.
    """
    import sympy

    names = {name: positive(name) for name in ("P", "K", "R", "kappa", "eps", "J")} | {"e": sympy.E}
    one_step = F["numbers_step"].side(3).right(names, sympy.Rational)
    ratio = lambda J: F["numbers"].side(1).right({**names, "J": J, "sqH": one, "x0": 1}, sympy.Rational)
    sent = names["P"] * names["K"] * names["R"]
    needed = F["numbers_most"].right({**names, "log": sympy.log})
    x = sympy.Symbol("x", positive=True)
    falls = sympy.simplify(sympy.diff((1 + x) * sympy.exp(-x), x) + x * sympy.exp(-x)) == 0
    powers = sympy.simplify(one_step ** (names["K"] * names["R"]) - ratio(sent)) == 0
    return bool(falls and powers and sympy.simplify(ratio(needed) - names["eps"]) == 0)


NUMBERS = every(
    flat_bowl(F["numbers_step"].side(0).text),
    Equal(F["numbers_step"].side(0), "least + c*(eta - 1/c)**2", [("least", F["numbers_step"].side(1))]),
    Equal(F["numbers_step"].side(1), F["numbers_step"].side(2), [F["c"]]),
    Equal(F["numbers_step"].side(2), "1/(1 + x)", ["e == 1", "x == P/(kappa + 1)"]),
    exponent,
)


def resting(found: Formula) -> Callable[[], bool]:
    """X = q X + eta^2 c s^2/m."""

    def check() -> bool:
        import sympy

        names = {name: positive(name) for name in ("eta", "c", "sigma", "m")}
        X = found.side(1).right(names, sympy.Rational)
        q = F["q"].right(names, sympy.Rational)
        added = names["eta"] ** 2 * names["c"] * names["sigma"] ** 2 / names["m"]
        return sympy.simplify(X - q * X - added) == 0

    return check


RESTING = every(
    resting(F["resting"]),
    Implies(
        [F["resting_step"]],
        ["rest >= most"],
        [OF_ETAT, ("rest", F["resting"].side(1)), ("most", F["resting"])],
        cleared=True,
    ),
    Equal(F["resting_step"].side(1), "2"),
    Equal(F["theorem"].term(1), "4*most", ["sigma_G == 0", "L == 1", ("most", F["resting"])]),
)


def pulled(fresh: bool) -> Callable[[], bool]:
    """K = 2, P = 1, two dimensions, H = I: the means of Pi x and of (I - Pi) b. `fresh`: a direction a step."""

    def check() -> bool:
        import sympy

        x, y, b, eta = vector("x", 2), vector("y", 2), vector("b", 2), sympy.Symbol("eta")
        z = vector("z", 2) if fresh else y
        step = lambda v, at: v - eta * (at.T * v)[0] * at
        names = {"eta": eta, "K": 2, "sqH": lambda v: of(sympy.eye(2))(v), "E": normal(y, *[z] * fresh)}
        names["q"] = F["q"].right({"eta": eta, "c": F["c"].right({"kappa": 2, "P": 1})})
        moved = lambda v: step(step(v, y), z)
        links = F["kept"].links({**names, "Pi": _Named(moved), "x": x})
        links += F["pulled"].links({**names, "IPi": _Named(lambda v: v - moved(v)), "b_bar": b})
        return all(sympy.expand(left - right) == 0 for left, _, right in links)

    return check


class _Named:
    """A linear map."""

    def __init__(self, of: Callable[[Any], Any]) -> None:
        self.of = of

    def __mul__(self, v: Any) -> Any:
        return self.of(v)


def sampled(small: Formula) -> Callable[[], bool]:
    """The fixed point for small steps, any K: two terms of the series."""

    def check() -> bool:
        import sympy

        eta, c, K = sympy.symbols("eta c K", positive=True)
        names = {"eta": eta, "c": c, "K": K, "q": F["q"].right({"eta": eta, "c": c}), "gamma": 1, "sigma_G": 1, "m": 1}
        top, low = (sympy.fraction(F["sampled"].right(names))[at] for at in (0, 1))
        made = F["pulled"].right({**names, "E": one, "b_bar": 1, "sqH": one})
        gap = sympy.simplify(F["sampled"].right(names) * (1 - names["q"] ** K) - made)
        top, low = made, 1 - names["q"] ** K
        flat = top.subs(eta, 0) == 0 and sympy.simplify(sympy.diff(top, eta).subs(eta, 0)) == 0
        curve: Any = sympy.diff(top, eta, 2).subs(eta, 0)
        slope: Any = sympy.diff(low, eta).subs(eta, 0)
        theta = F["theta"].side(1).right({"a": c - 1, "K": K})
        wanted = small.right({**names, "etat": K * eta, "theta": theta}, sympy.Rational)
        return bool(gap == 0 and flat and sympy.simplify(curve / (2 * slope) * eta - wanted) == 0)

    return check


SAMPLED = every(
    pulled(True),
    sampled(F["sampled_small"]),
    Equal(F["spread_C"], "spread", [("spread", F["drawn_mean"].side(1).changed("sq(g)", "0"))]),
    Equal(
        F["sampled"],
        f"({F['pulled'].side(1).text})/(1 - q**K)",
        [("spread", F["spread_C"]), "b_bar == sqrt(spread)", SQUARED],
    ),
    Equal(F["theorem"].term(1), "4*most", ["sigma == 0", "L == 1", ("most", F["sampled_small"])]),
)


def hidden(wanted: Formula) -> Callable[[], bool]:
    """The two clients, K = 2, P = 1, from 0. The mean is linear in d: the entries after the second are alike, and
    their products vanish.
    """

    def check() -> bool:
        import sympy

        eta, h0 = sympy.symbols("eta h0")
        for d in (3, 4):
            y, z = vector("y", d), vector("z", d)
            ends: list[Any] = []
            for sign in (1, -1):
                bent = sympy.diag(1, *[sign] * (d - 1))
                pull = sympy.Matrix([0, sign * h0, *[0] * (d - 2)])
                slope = lambda x, bent=bent, pull=pull: bent * x + pull
                x = -eta * (y.T * slope(sympy.zeros(d, 1)))[0] * y
                ends.append(x - eta * (z.T * slope(x))[0] * z)
            loss = sympy.expand(((ends[0][0] + ends[1][0]) / 2) ** 2 / 2)
            if sympy.expand(normal(y, z)(loss) - wanted.right({"eta": eta, "h0": h0, "d": d}, sympy.Rational)) != 0:
                return False
        at = {"eta": F["hidden_step"].right({}), "h0": Fraction(1)}
        made = [wanted.right({**at, "d": F["hidden_d"].right({}) + more}) for more in (0, -1)]
        return made[0] > F["hidden_promised"].right(at) >= made[1]

    return check


PROMISED = every(
    hidden(F["hidden"]),
    Equal(F["hidden_promised"], "claim",
          ["K == 2", "P == 1", "kappa == 1", "sigma == 0", "gamma == 0", "b == 0", "bt == 0", "g == 0", "F0 == 0",
           "sigma_G == h0", "L == 1", F["a"], OF_THETA, "etat == K*eta", ("claim", F["descent"])]),
    Equal("K*step*theta", F["steps"].side(1),
          ["K == 2", "P == 1", "kappa == 1", F["a"], OF_THETA, ("step", F["hidden_step"])]),
)  # fmt: skip
SENT = every(
    Equal(F["directions"].side(0), F["directions"].side(1), [F["a"], OF_THETA]),
    Equal(F["sent"].side(0), F["sent"].side(1),
          [F["a"], OF_THETA, F["c"], ("N2", F["N2"]), "N == sqrt(N2)", "R == 1", ("second", F["rate"].term(1)),
           "R == second**2/eps**2"]),
    Implies(["P*K >= kappa + 1"], [F["twice"]], [F["a"], OF_THETA], cleared=True),
    Fails(Implies(["P*K >= kappa + 1"], [F["twice"].changed("2", "19/10")], [F["a"], OF_THETA], cleared=True)),
)  # fmt: skip


# 12: two examples; what a round needs, over its step: -g^2/2 and g times what the slopes' mean has beside g


NEEDED = "(-1/2*g**2 + g*more)*etat"
EXAMPLE = every(
    Equal(F["flat"], NEEDED, ["L == 1", OF_ETAT, F["flat_at"], "more == (K - 1)/2*eta*sigma_G"]),
    Equal(F["flat"], "etat**3*L**2*sigma_G**2*share", [("share", F["flat_has"])]),
    Equal(
        F["descent"],
        "has*L**2*etat**3*sigma_G**2",
        [("has", F["bound_has"]), "theta == 1", "sigma == 0", "gamma == 0", "b == 0", "bt == 0", "g == 0", "F0 == 0"],
    ),
)


def kink() -> bool:
    """A for K = 2, by all signs, and its share for many: E|S_k| is near the root of 2 k/pi."""
    import sympy

    mean = sum(sum(abs(sum(signs)) for signs in product((-1, 1), repeat=k)) * Fraction(1, 2**k) for k in (0, 1)) / 2
    two = F["kink_factor"].right({"A": mean, "K": Fraction(2)}) == F["kink_two"].right({})
    u, K = sympy.symbols("u K", positive=True)
    many = sympy.integrate(sympy.sqrt(2 * K * u / sympy.pi), (u, 0, 1))
    share = F["kink_factor"].right({"A": many, "K": K}) - F["kink_many"].right({"pi": sympy.pi})
    return two and sympy.simplify(share) == 0


KINK = every(
    kink,
    Equal(F["kink"], NEEDED, [OF_ETAT, F["kink_at"], "more == -(L*eta*sigma*A)"]),
    Equal(F["kink"], "share*L**2*etat**3*sigma**2/K", [("share", F["kink_factor"])]),
)

# a sharper round


def split(fresh: bool) -> Callable[[], bool]:
    """Two steps on the line, P = 1, noise of both signs: the square of what 12.3 puts first. Not `fresh`: one z."""

    def check() -> bool:
        import sympy

        u, v, w, s, t = sympy.symbols("u v w s t")
        y, z = sympy.symbols("y z") if fresh else [sympy.Symbol("y")] * 2
        first = (y**2 - 1) * u + y**2 * s * v + (z**2 - 1) * u + z**2 * t * v + 2 * w
        signs = sum(first.subs({s: i, t: j}) ** 2 for i, j in product((-1, 1), repeat=2)) / 4
        return sympy.expand(mean_of(signs, (y, z) if fresh else (y,)) - (2 * 2 * u**2 + 2 * 3 * v**2 + 4 * w**2)) == 0

    return check


WIDE = F["spread"].side(2)
IN_THREE = every(
    split(True),
    Fails(split(False)),
    moving(True),
    Equal(F["polar"]),
    Equal("sq(u + v) <= 3/2*sq(u) + 3*sq(v)", "1/2*sq(u - 2*v)", gap=True),
    Equal(F["apart_most"], "3/2*u + 3*v", ["u == L*Q", "v == b**2"]),
    Equal(F["three"], "1/3*sqH(u - 3*v) + 1/6*sqH(2*u - 3*y) + 1/2*sqH(2*v - y)", [SQUARED], gap=True),
    Equal(F["first_part"], "K*wide + K*noise + K**2*L*gamma*sigma_G**2/m",
          [F["c_a"], OF_THETA, ("wide", WIDE.changed("sq(w)", f"({F['drawn_mean'].side(1).text})")),
           ("noise", F["size"].side(1).changed("sq(w)", "(sigma**2/m)"))]),
    Equal(F["third_part"], "K*halves(first, second)",
          [HALVES, OF_THETA, ("first", WIDE.changed("sq(w)", "(L*Q)")), ("second", F["varies"])]),
    Equal(F["curvature_3"], "eta**2/2*whole",
          [OF_ETAT, ("sqH", same), ("u", F["first_part"]), "v == L*K**2*sq(g + Delta)", ("y", F["third_part"]),
           ("whole", F["three"])]),
)  # fmt: skip
PARTS: list[Put] = [("G2", Formula("sq(g + Delta)")), ("D2", Formula("sq(Delta)")), ("given", F["given"]),
                    ("bill", F["bill"].side(0)), ("of_Delta", F["of_Delta"].side(0))]  # fmt: skip
ONE_K: Put = ("LQ", F["LQ_3"].changed("(1 - 1/K)", "1"))
SHARPER = every(
    summed(F["sums_thirds"], F["sums_theta_3"]),
    Equal(F["sums_theta_3"], "squares + a*single", [("squares", F["sums_thirds"]), ("single", F["sums"]), OF_THETA]),
    Equal(F["LQ_3"], "L*solved/K*total",
          [OF_H, ("solved", F["solved"]), ("of_theta", F["sums_theta_3"]), ("of_c", F["sums"]), ("of_b", F["sums_b"]),
           ("total", TOTAL.replace("sq(g_i)", f"({F['drawn'].side(1).text})"))]),
    Equal(F["paid"], "1/3*sq(3*g + 4*Delta)", gap=True),
    Implies(ADMITTED, [F["bill"], F["of_Delta"]]),
    Implies(ADMITTED, [F["of_LQ_3"]], cleared=True),
    Implies(ADMITTED, [F["of_g_3"]], cleared=True),
    Implies(["theta >= 1"], [F["of_spread_3"]], cleared=True),
    Implies([], [F["of_noise_3"]]),
    Implies([*ADMITTED], [F["of_b_3"].changed("b_th**2", "(b**2 + (theta - 1)*bt**2)")], cleared=True),
    # what is paid; then what the three parts leave
    Equal("etat*(-1/2*sq(g) - 1/2*sq(g + Delta) + 1/2*sq(Delta)) + curvature",
          "etat*(-1/2*sq(g) + (bill - 1/2)*G2 + of_Delta*D2 + 3*h*(theta - 1)*(L*Q + bt**2)"
          " + given*(sq(g) - 4*G2 - 4/3*D2) - h/5*sq(g)) + L*etat**2*N2",
          ["h == etat*L", *PARTS, ("N2", F["N2"]), ("curvature", F["curvature_3"])]),
    Equal("of_Delta*D2 + 3*h*(theta - 1)*(L*Q + bt**2)", "of_LQ*L*Q + 3*of_Delta*b**2 + 3*h*(theta - 1)*bt**2",
          [("of_Delta", F["of_Delta"].side(0)), ("D2", F["apart_most"]), ("of_LQ", F["of_LQ_3"].side(0))]),
    Equal("3*most", "2", [("most", F["of_Delta"])]),
    Equal("of_LQ*LQ", "of_g*sq(g) + h**2*of_spread*sigma_G**2 + of_LQ*(8/7)*h**2*(c*sigma**2/K + 4*b_th**2)",
          [ONE_K, ("of_LQ", F["of_LQ_3"]), ("of_g", F["of_g_3"].side(0)), ("of_spread", F["of_spread_3"].side(0))]),
    Equal(F["descent_3"],
          "F0 + etat*(-1/2*sq(g) + (1 - 1/K)*h**2*(of_spread*sigma_G**2 + of_noise*c*sigma**2/K) + of_b)"
          " + L*etat**2*N2",
          [OF_ETAT, OF_H, OF_THETA, ("N2", F["N2"]), ("of_spread", F["of_spread_3"]), ("of_noise", F["of_noise_3"]),
           ("of_b", F["of_b_3"])]),
    Equal(F["theorem_3"], "(D + R*rest)/divisor",
          ["F0 == 0", "g == 0", OF_ETAT, *ROOTS, ("rest", F["descent_3"]), ("divisor", F["divisor"])]),
)  # fmt: skip

BOX = "for all h > 0, theta >= 1 with h theta <= 1/8"

STEPS = [
    Step("decomfl.1.1", "expectation", "three dimensions, H symmetric, all symbols, moments of normal variables",
         fourth(F["fourth"]), fourth(F["fourth"].changed("2*wHw", "wHw")), "1 instead of 2"),
    Step("decomfl.1.2", "expectation", "two directions in two dimensions, H symmetric", several(True), several(False),
         "the same direction twice"),
    Step("decomfl.1.3", "implication", "for all P >= 1, kappa, and all values of the two forms", RANK,
         {"(kappa + 1)": "kappa"}, "kappa instead of kappa + 1"),
    Step("decomfl.1.4", "expectation", "one entry and the chi-squared law of the others, for any d",
         lengths(F["sixth"]), lengths(F["sixth"].changed("d + 4", "d + 3")), "d + 3 instead of d + 4"),
    Step("decomfl.2.1", "implication", "from the two bounds by the tangent", DIFFERENCE, {"L*mu/2": "2/5*L*mu"},
         "2/5 instead of 1/2"),
    Step("decomfl.2.2", "identity", "the derivative for any function, its ends for any quadratic one", BIAS,
         by_parts(1), "the density exp(-t^2)"),
    Step("decomfl.2.3", "implication", "for all P >= 1 and all values of the two means", REPEATED,
         {"(d + kappa/(4*P)*(d + 2)*(d + 4))": "(9/10*d + kappa/(4*P)*(d + 2)*(d + 4))"}, "9/10 d instead of d"),
    Step("decomfl.3.1", "certificate", "the difference is a square", YOUNG, {"eta/4": "eta/5"}, "1/5 for 1/4"),
    Step("decomfl.3.2", "certificate", "two dimensions: the difference is the form at v - b", form(-1), form(1),
         "the form at v + b"),
    Step("decomfl.3.3", "expectation", "two clients, independent signs", every(averaged(2), Equal(F["averaged"],
         "sq(g) + noise", [("noise", F["noise"])])), averaged(1), "undivided"),
    Step("decomfl.3.4", "implication", "for eta L c <= 1/4, all second moments", DESCENT,
         {"eta/2*sq(g)": "3/5*eta*sq(g)"}, "3/5 instead of 1/2"),
    Step("decomfl.3.5", "implication", "for all admitted steps", COLLECTED, {"5/2": "9/4"}, "9/4 for 5/2"),
    Step("decomfl.4.1", "expectation", "two directions in two dimensions, any step", BOWL,
         bowl(F["bowl"].changed("eta**2*c", "eta**2*(c + 1/2)")), "d + 2"),
    Step("decomfl.4.2", "identity", "both terms at the step that balances them; when it is short enough", BALANCED,
         {"4*nu": "2*nu"}, "half"),
    Step("decomfl.4.3", "arithmetic", "d = 1000, ten and twenty directions", doubled(F["doubled"]),
         doubled(Formula("2")), "a whole factor of two"),
    Step("decomfl.5.1", "implication", "for all lengths", TANGENT, {"L*sqH(s)": "9/10*L*sqH(s)"}, "9/10 instead of 1"),
    Step("decomfl.5.2", "identity", "the integral of u from 0 to 1", INTEGRAL, {"1/2*sqH(s)": "sqH(s)"}, "without 1/2"),
    Step("decomfl.6.1", "expectation", "two directions in two dimensions, H symmetric", SPREAD, spread(False),
         "the same direction twice"),
    Step("decomfl.6.2", "expectation", "three dimensions, any eigenvalues, moments of normal variables",
         powers(F["third"]), powers(F["third"].changed("8", "7")), "7 instead of 8"),
    Step("decomfl.6.3", "implication", "for all traces and kappa", RANKED, {"kappa + 4": "kappa + 3"}),
    Step("decomfl.6.4", "expectation", "the length for any d; then the circle of radius sqrt 2, by an exact quadrature",
         sphere(2), sphere(1), "radius 1"),
    Step("decomfl.6.5", "expectation", "three outcomes, any odds, two copies; then for all kappa >= 1", VARIES,
         averages("1/3"), "a third"),
    Step("decomfl.7.1", "expectation", "two steps in two dimensions, H symmetric, noise that depends on the first "
         "step; the sum over all pairs", FIXED, crossed(False), "the first step's direction again"),
    Step("decomfl.7.2", "expectation", "two steps in two dimensions, three in one, each depends on those before; the "
         "two parts, of any k steps", MOVING, moving(False), "the first step's direction again"),
    Step("decomfl.7.3", "identity", "the two parts, of any k steps", ERRORS, {"2*L": "19/10*L"}, "19/10 instead of 2"),
    Step("decomfl.8.1", "implication", "the sums by sympy, for all K >= 1, a >= 0", SUMMED,
         summed(F["sums_theta"].changed("1/2", "2/5")), "2/5 instead of 1/2"),
    Step("decomfl.8.2", "implication", BOX, SOLVED, {"8/7": "9/8"}, claims=("decomfl.sharper.drift",)),
    Step("decomfl.8.3", "expectation", "any M and m by the odds of one and of a pair; two clients of four, all sets",
         DRAWN, drawn(5), "of five"),
    Step("decomfl.8.4", "identity", "3.2 twice, and 7.1 to 7.3", RECURSION, {"8*eta**2*L**2": "4*eta**2*L**2"}),
    Step("decomfl.8.5", "identity", "the sums of 8.1, solved by 8.2, over the drawn clients", DRIFT,
         {"4*b_th**2": "3*b_th**2"}),
    Step("decomfl.9.1", "certificate", "the difference is half a square", SLOPE, {"1/8": "1/9"}),
    Step("decomfl.9.2", "implication", BOX, DOWNHILL, {"-1/2": "-3/5"}),
    Step("decomfl.9.3", "implication", BOX, DRIFTING, {"<= 3": "<= 14/5"}),
    Step("decomfl.9.4", "implication", BOX, SMOOTHED, {"11/2": "5"}, claims=("decomfl.sharper.round",)),
    Step("decomfl.9.5", "identity", "the sum over the rounds, divided; the rows of the table", RATED,
         {"11/4": "5/2"}, claims=("decomfl.sharper.theorem",)),
    Step("decomfl.9.6", "identity", "7.1 to 7.3 at k = K", CURVATURE, {"4*K**2*theta": "2*K**2*theta"}),
    Step("decomfl.9.7", "identity", "slope and curvature with 8.5 put in, coefficient by coefficient", SUM,
         {"2 + 4*h*theta": "2 + 3*h*theta"}),
    Step("decomfl.10.1", "identity", "the three terms at their steps, and 6 against 4 times the cube root of 3",
         RATE, three_steps(F["third_term"].changed("4", "5")), "5 instead of 4"),
    Step("decomfl.10.2", "implication", "for all P, K, kappa with P K <= kappa, and beyond", SPEEDUP,
         {"P*K <= kappa": "P*K <= 2*kappa"}),
    Step("decomfl.10.3", "identity", "the rounds at which two terms are equal", rounds(F["from_third"]),
         rounds(F["from_third"].changed("N**6", "N**4")), "N to the fourth"),
    Step("decomfl.10.4", "implication", "the constants by sympy, both cases; then for all d >= 1", PRINTED,
         {"mu**2*L**2/2": "mu**2*L**2/5"}, "1/5 instead of 1/2"),
    Step("decomfl.10.5", "expectation", "three dimensions, any eigenvalues, moments of normal variables; then any d",
         SIGNED, sixth(F["sixth_signed"].changed("8*wH2w", "7*wH2w")), "7 instead of 8"),
    Step("decomfl.10.6", "implication", "for all d, P >= 1, and all lengths", MIXED,
         {"L*e_0**2*d": "9/10*L*e_0**2*d"}, "9/10 instead of 1"),
    Step("decomfl.11.1", "certificate", "a projector of rank 2 in three dimensions; the difference is a square; all "
         "rounds", NUMBERS, {"(kappa + 1)": "(kappa + 2)"}, "kappa + 2", ("decomfl.sharper.numbers",)),
    Step("decomfl.11.2", "identity", "the fixed point, any step", RESTING, resting(F["resting"].changed("2 - eta*c",
         "1 - eta*c")), "1 instead of 2"),
    Step("decomfl.11.3", "identity", "two steps in two dimensions; then two terms of the series in the step, any K",
         SAMPLED, either(sampled(F["sampled_small"].changed("theta", "(theta + 1/K)")), pulled(False)),
         "c instead of c - 1; the same direction twice"),
    Step("decomfl.11.4", "expectation", "the two clients' steps in three and four dimensions", PROMISED,
         hidden(F["hidden"].changed("(d + 1)", "d")), "d instead of d + 1"),
    Step("decomfl.11.5", "identity", "any P, K, kappa", SENT, {"P*K + kappa + 1": "P*K + kappa"}),
    Step("decomfl.12.1", "identity", "the round at the slope that needs most, to third order in the step", EXAMPLE,
         {"(K - 1)*eta": "K*eta"}),
    Step("decomfl.12.2", "identity", "the same; the mean of K = 2 by all signs, that of many by its integral", KINK,
         {"A**2": "A"}),
    Step("decomfl.12.3", "certificate", "the differences are sums of squares; two steps on the line", IN_THREE,
         {"6*sqH(v)": "5*sqH(v)"}, "5 instead of 6"),
    Step("decomfl.12.4", "implication", BOX, SHARPER, {"0.61*(3*theta - 2)": "0.6*(3*theta - 2)"},
         "0.6 instead of 0.61"),
]  # fmt: skip
