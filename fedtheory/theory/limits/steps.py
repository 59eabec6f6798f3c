"""What no method in a subspace can beat, and what a decaying curvature saves: the steps of docs/theory/limits.md.

The formulas stand in formulas.py. A check here quotes no constant of the page that a formula has.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from fedtheory.theory.family.formulas import FORMULAS as OF_FAMILY
from fedtheory.theory.fedsub.steps import exponents
from fedtheory.theory.formula import Formula
from fedtheory.theory.limits.formulas import FORMULAS as F
from fedtheory.theory.proof import (
    Equal,
    Every,
    Fails,
    Implies,
    Put,
    Said,
    Step,
    either,
    equal,
    every,
    follows,
    mean_of,
)
from fedtheory.theory.search import reals, vanishes
from fedtheory.theory.ssf.formulas import FORMULAS as OF_SSF
from fedtheory.theory.ssf.steps import INDUCTION, TWO, counted, exponential


def same(v: Any) -> Any:
    return v


FIRST, SECOND = ("min", lambda a, b: a), ("min", lambda a, b: b)
TOP: Put = ("max", lambda a, b: b)


# 1: the average criterion


def _masks(d: int, r: int) -> list[list[int]]:
    return [[int(i in kept) for i in range(d)] for kept in combinations(range(d), r)]


def left_over(fair: bool) -> Callable[[], bool]:
    """E(|x|^2 - <x, P x>) is the bound over all masks, d up to 4. `fair`: all masks are drawn, not only some."""

    def check() -> bool:
        import sympy

        for d in (2, 3, 4):
            for r in range(1, d):
                x, masks = sympy.symbols(f"x:{d}"), _masks(d, r)[: None if fair else -1]
                mean = sum((1 - m) * v**2 for mask in masks for m, v in zip(mask, x)) / len(masks)
                names = {"rho": sympy.Rational(r, d), "now2": sum(v**2 for v in x)}
                if sympy.expand(mean - F["kept"].right(names)) != 0:
                    return False
        return True

    return check


def attained(share: str) -> Callable[[], bool]:
    """x' = x - share P x over all masks of two of three, three rounds: the bound is an equality."""

    def check() -> bool:
        import sympy

        x, names = sympy.symbols("x:3"), {"rho": sympy.Rational(2, 3)}
        weights = [sum((1 - sympy.Rational(share) * m) ** 2 for m in axis) / 3 for axis in zip(*_masks(3, 2))]
        found = {t: sum(w**t * v**2 for w, v in zip(weights, x)) for t in range(4)}
        bound = lambda t: F["power"].right(names | {"t": t, "start2": sum(v**2 for v in x)})
        return all(sympy.expand(one - bound(t)) == 0 for t, one in found.items())

    return check


OUTSIDE = every(*(Equal(F["outside"], None, [f"P == {one}"]) for one in (0, 1)))
LATER = F["power"].changed("t", "(t + 1)")
POWER = every(
    Implies(["rho == 1"], [F["rho"]]),  # admitted
    Equal("(1 - rho)*now", "later", [("now", F["power"]), ("later", LATER)]),
    Implies([F["rho"], "now2 >= w", F["kept"]], ["next2 >= (1 - rho)*w"]),
)
GEOMETRIC = every(
    Equal("then*(T + 1) - now*T", "slope",
          ["Delta == L*start2/2", ("now", F["limit"]), ("then", Formula(F["limit"].text.replace("T", "(T + 1)"))),
           "t == T", ("sq", same), ("x", F["power"]), ("slope", F["slope"])]),
    Equal(F["start"], None, ["Delta == L*start2/2"]),
    Equal(F["limit"], F["least"]),
    Equal("now", "0", [("now", F["limit"].changed("**T", "**0"))]),
)  # fmt: skip
FIXED_A = every(
    Equal(F["fixed_a"].side(1), "(1 - 2*a*mean + a**2*mean_square)*sq(x)", ["mean == rho", "mean_square == omega*rho"]),
    Equal("step - least", "rho*omega*(a - 1/omega)**2*sq(x)",
          [("step", F["fixed_a"].side(1)), ("least", F["fixed_a"])]),
    Equal(F["fixed_a"].side(1), F["fixed_a"].side(2), [F["best_a"]]),
    Equal(F["fixed_a"], "(1 - share)*sq(x)", [("share", F["share_a"])]),
    Equal(F["price_8"], "1/share", [("share", F["share_a"])]),
    Equal("ours/unit", F["eighty"], ["gap == Delta", ("ours", OF_FAMILY["once"].term(0)), ("unit", F["order"])]),
    Equal("ours/lead", F["forty"],
          [("ours", F["eighty"]), *(f"{one} == 1" for one in ("L", "Delta", "rho", "T")), ("lead", F["least"])]),
)  # fmt: skip


# 2: the curvature that counts


OF_H: list[Put] = ["H == L", "tr == d_eff*L", "I == 1"]  # at the top eigenvalue
CURVED = every(
    Equal(F["curved"], "F0 - eta*rho*G2 + half*eta**2*most",
          [F["step_H"], "v == 1", "H == 1", ("half", F["upper"].term(2)), ("sq", same), "G == G2",
           ("most", F["seen"])]),
    Equal(F["seen"], "norm(EPHP)*sq(G)", [("norm", same), ("omega_H", F["omega_H"].side(1))]),
    Equal(F["omega_H"].side(2), "0"),
)  # fmt: skip
EFFECTIVE = every(
    Equal(F["effective"], "-Delta/(T*fall)", ["F0 == 0", "G2 == 1", ("fall", F["curved"])]),
    Equal(F["effective"], "price*2*L*Delta/T", [("price", F["price"])]),
)


def chi(square: Formula) -> Callable[[], bool]:
    """E <e, P e>^2 is the ratio of E (z_1^2 + ... + z_n^2)^2 at n = r and n = d, for normal z and d up to 4."""

    def check() -> bool:
        import sympy

        z, number = sympy.symbols("z:4"), sympy.Rational
        moment = {n: mean_of(sum(v**2 for v in z[:n]) ** 2, z[:n]) for n in (1, 2, 3, 4)}
        cases = combinations(moment, 2)
        return all(square.right({"r": number(r), "d": number(d)}, number) == moment[r] / moment[d] for r, d in cases)

    return check


HAAR = every(
    chi(F["haar_square"]),
    Equal(F["haar_trace"], None, [F["a"], F["b"]]),
    Equal(F["haar_square"], "a + b", [F["a"], F["b"]]),
    Equal(F["haar"], "r/d", ["H == 1", "tr == d", "I == 1", F["a"], F["b"]]),
)
HAAR_PRICE = every(
    Implies(["r == 1", "d == 2"], [F["ranks"], F["dims"]]),  # admitted
    Implies(["r == 1", "d == 1"], [F["ranks"]]),
    Implies([F["ranks"], F["dims"], F["d_eff"]], ["price <= most", "price <= worst"],
            [F["a"], F["b"], ("price", F["haar_price"]), ("most", F["price_most"]), ("worst", F["worst_price"])],
            cleared=True),
    Equal(F["haar_price"], "seen/(L*rho**2)", ["rho == r/d", *OF_H, ("seen", F["haar"])]),
)  # fmt: skip


def gaussian(kurtosis: int) -> Callable[[], bool]:
    """E[P H P] in three dimensions for any symmetric H, from E g g^T H g g^T = 2 H + tr H I."""

    def check() -> bool:
        import sympy

        g = sympy.Matrix(sympy.symbols("g:3"))
        H = sympy.Matrix(3, 3, lambda i, j: sympy.Symbol(f"h{min(i, j)}{max(i, j)}"))
        r, one = sympy.Symbol("r", positive=True), sympy.eye(3)
        product = g * g.T * H * g * g.T
        mean = product.applyfunc(lambda entry: mean_of(entry, tuple(g), kurtosis))
        shown = F["gauss"].right({"r": r, "H": H, "tr": H.trace(), "I": one}, sympy.Rational)
        return all(map(vanishes, (r * mean + r * (r - 1) * H) / r**2 - shown))

    return check


GAUSS_PRICE = Equal(F["price_most"], "seen/L", [*OF_H, ("seen", F["gauss"])])


def masked(d: int, rho2: Formula = F["rho2"]) -> Callable[[], bool]:
    """E[P H P] over masks of r of d."""

    def check() -> bool:
        import sympy

        H = sympy.Matrix(d, d, lambda i, j: sympy.Symbol(f"h{min(i, j)}{max(i, j)}"))
        for r in range(1, d):
            masks = [sympy.diag(*mask) for mask in _masks(d, r)]
            names = {"r": sympy.Integer(r), "d": sympy.Integer(d), "rho": sympy.Rational(r, d), "H": H}
            names |= {"rho2": rho2.right(names), "diag": sympy.diag(*[H[i, i] for i in range(d)])}
            mean = sum((P * H * P for P in masks), sympy.zeros(d, d)) / len(masks)
            if sympy.expand(mean - F["masked"].right(names)) != H * 0:
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


MASKED = every(
    masked(3), masked(4), top(True),
    Equal(F["worst_price"], "seen/(L*rho**2)", ["rho == r/d", "H == L", "diag == L", F["rho2"], ("seen", F["masked"])]),
)  # fmt: skip
FIXED_Q = every(
    Equal(F["fixed_Q"].side(1), "(1 - 2*L*eta*mean + (L*eta)**2*twice)*sq(Q*x)", ["mean == rho", "twice == c"]),
    Equal("step - least", "(L*eta*c - rho)**2/c*sq(Q*x)",
          [("step", F["fixed_Q"].side(1)), ("least", F["fixed_Q"])]),
    Equal(F["fixed_Q"], "(1 - share)*sq(Q*x)", [("share", F["share_Q"])]),
    Equal(F["price_Q"], "1/share", [("share", F["share_Q"])]),
    Equal(F["c_Q"], "price*rho**2", ["rho == r/d", "d_eff == m", ("price", F["haar_price"])]),
)  # fmt: skip


def turned(both: bool) -> Callable[[], bool]:
    """m = 2: what a line u of R^3 leaves of x in the plane is |x|^2 - <w, x>^2, w along (u_1, u_2): half in the mean of
    u and u turned by a right angle in the plane. `both`: the mean, not u alone."""

    def check() -> bool:
        import sympy

        u, v, x, y = sympy.symbols("u v x y")
        leaves = lambda u, v: x**2 + y**2 - (u * x + v * y) ** 2 / (u**2 + v**2)
        mean = (leaves(u, v) + leaves(-v, u)) / 2 if both else leaves(u, v)
        return vanishes(mean - (x**2 + y**2) / 2)

    return check


LARGEST: Put = ("max", lambda a, b: a)
ANY_Q = every(
    turned(True),
    *(Equal(F["any_price"], "1/any", [low, up, ("any", F["any_Q"])]) for low, up in ((FIRST, LARGEST), (SECOND, TOP))),
    Equal(F["any_Q"], "r/m", [SECOND]),
    *(Implies([order], ["price <= factor*best"],
              [up, "d_eff == m", ("price", F["price_most"]), ("best", F["any_price"]), ("factor", F["between"])],
              cleared=True) for order, up in (("m >= r", TOP), ("m <= r", LARGEST))),
    Equal(F["price_most"], F["between"], ["d_eff == r"]),
)  # fmt: skip


# 3: more local steps


UNIT: list[Put] = ["P == 1", "grad_i == 1", "G == 0", ("mean_i", same), ("sq", same)]
LOST: list[Put] = [*UNIT, ("lost", F["apart"])]


def drifted(grown: str) -> Every:
    """3.1, where e^(1/50) is at most `grown`."""
    return every(
        TWO, Equal(F["halves"], OF_SSF["halves"]), INDUCTION, counted(F["squares"]),
        exponential(Formula(f"{F['growth'].side(1).text} <= {grown}"), {"alpha": Fraction(0), "K": Fraction(1)}),
        exponents(F["growth"].side(0), F["growth"].side(1), beta=F["beta"].right({})),
        Implies([F["one_step"]], ["lam**2/K*grown*squares*(beta/(K*lam))**2 <= most"],
                [f"grown == {grown}", ("squares", F["squares"]), F["p"], *UNIT, ("most", F["drift"])], cleared=True),
        Equal(F["drift"].side(0), "lam**2/K*total", [("sum_k", same), "total == sq(y_k - x)"]),
    )  # fmt: skip


DECREASE = every(
    Equal("bound - step", "h*(1 - h)/(2*lam)*sq(P*G + a_bar)",
          [("bound", F["decrease"]),
           "step == -h/lam*dot(P*G, P*G + a_bar) + lam/2*(h/lam)**2*sq(P*G + a_bar)"]),
    Implies([f"h <= {F['h'].side(2).text}"], ["h*(1 - h) >= 0"], cleared=True),
    Equal(F["apart"], "most", [*UNIT, ("most", F["drift"])]),
)  # fmt: skip


def weighted(sign: int) -> Callable[[], bool]:
    """E[q/l] E[l q] - (E q)^2 = t (1 - t) q1 q2 (l1 - l2)^2/(l1 l2), two outcomes with odds t and 1 - t."""

    def sides() -> tuple[Any, Any]:
        import sympy

        t, p, q, a, b = sympy.symbols("t p q a b", positive=True)
        left = (t * p / a + (1 - t) * q / b) * (t * p * a + (1 - t) * q * b) - (t * p + (1 - t) * q) ** 2
        return sympy.expand(left), sympy.expand(t * (1 - t) * p * q * (a - sign * b) ** 2 / (a * b))

    return equal(sides)


WEIGHTED = every(
    Implies(["K == 1"], [F["one_step"]]),  # admitted
    weighted(1),
    Equal(F["below"], "(rho*sq(G))**2/most", ["v == G", ("most", F["seen_price"])]),
    Equal(F["weighted"].side(0), "mean**2", ["mean == dot(v, P*v)"]),
    Equal(F["seen_price"], "rho*L*sq(v)", [("c", F["c_most"])]),
)


def several(atom: str, part: str = "1") -> Implies:
    """What stands before `atom` in the sum over the rounds, divided, against `part` of the theorem."""
    other = {"Delta": "zeta", "zeta": "Delta"}[atom]
    return Implies(
        [F["p_most"]], [f"(Delta/T + h/2*lost*clients)/divisor <= {part}*bound"],
        [*LOST, f"{other} == 0", ("clients", F["of_clients"]), ("divisor", F["divisor"]),
         ("bound", F["several"])], cleared=True)  # fmt: skip


RAISED: list[Put] = [
    "lambda_0 == rho*c*L", "zeta == 0", "once == c", "c == 2*once", ("bound", F["several"]), "c == once",
    ("most", F["raised_bound"]),
]  # fmt: skip
SEVERAL = every(
    several("Delta"), several("zeta"), Fails(several("Delta", "999/1000")), Fails(several("zeta", "99/100")),
    Equal(F["divisor"], "h/2*below*(1 - lost)", [*LOST, "G == 1", ("below", F["below"])]),
    Equal(F["p_most"], "most**2", [("most", F["beta"])]),
    Implies([f"beta <= {F['beta'].side(2).text}"], [F["beta"]], cleared=True),
    Equal(F["raised_share"].side(0), F["raised_share"].side(1), [TOP, ("lambda_0", F["raised"])]),
    Implies([], ["bound <= most"], RAISED, cleared=True),
    Fails(Implies([], ["bound <= 999/1000*most"], RAISED, cleared=True)),
    Equal(F["raised_bound"].term(1), "most",
          ["lambda_0 == rho*c*L", "Delta == 0", "once == c", "c == 2*once", ("most", F["several"])]),
)  # fmt: skip


# 4: the best iterate, fixed steps


def ramp(falls: Formula) -> Callable[[], bool]:
    """phi' is g, g + L s and 0, continuous; phi falls by its integral."""

    def check() -> bool:
        import sympy

        g, L, s, s_0 = sympy.symbols("g L s s_0", positive=True)
        slope = F["slope_s"].right({"g": g, "L": L, "s": s})
        fits = slope.subs(s, 0) == g and slope.subs(s, -g / L) == 0
        fall = sympy.integrate(slope, (s, -g / L, 0)) + g * s_0
        return fits and sympy.simplify(fall - falls.right({"g": g, "L": L, "s_0": s_0}, sympy.Rational)) == 0

    return check


def spread(most: int) -> Callable[[], bool]:
    """q in [0, 1] with mean rho has variance at most rho (1 - rho): q^2 <= q, two outcomes; `most`: of q."""

    def premises() -> tuple[list, Any]:
        t, p, q = reals("t p q")
        mean, square = t * p + (1 - t) * q, t * p * p + (1 - t) * q * q
        given = [t >= 0, t <= 1, p >= 0, p <= most, q >= 0, q <= most]
        return given, square - mean * mean <= F["spread"].right({"rho": mean})

    return follows(premises)


SPREAD = every(
    spread(1),
    Equal(F["ramp"], "(1 - T*spread/(delta*rho*T)**2)*square", [("spread", F["spread"]), ("square", F["g"])]),
    Equal(F["s_0"], "gone", [("sum_t", same), "ePe == (1 + delta)*rho*T", ("gone", F["passed"].side(0))]),
)


def on_ramp(falls: Formula) -> Equal:
    return Equal(F["g"], F["g"].side(0), [F["s_0"], ("Delta", falls)])


ON_RAMP = every(
    on_ramp(F["falls"]),
    Equal("ours/least", F["twenty"],
          [F["quarter"], ("least", F["long"]), "gap == Delta", ("ours", OF_FAMILY["once"].term(0))]),
    Equal(F["quarter"], OF_FAMILY["once_h"]),
)  # fmt: skip


# 5: the best iterate, masks


def _pieces(v: Any) -> dict[str, Any]:
    """Psi, Phi, n and their first derivatives at v, by z3; Psi has the second derivatives of the page."""
    import z3

    def cases(*of: tuple[Any, Any], last: Any) -> Any:
        found = z3.RealVal(str(last)) if not z3.is_expr(last) else last
        for where, value in reversed(of):
            found = z3.If(where, value, found)
        return found

    q, one = z3.RealVal("1/6"), z3.RealVal("1")
    up, down = F["bend"].right({}, z3.RealVal), -F["bent"].right({}, z3.RealVal)
    n1 = F["n1"].right({"v": v, "max": lambda a, b: z3.If(a >= b, a, b)}, z3.RealVal)
    top = z3.RealVal("7/6")
    return {
        "Psi": cases((v <= 0, 0 * v), (2 * v <= 1, up / 2 * v * v), (v <= 1, 1 - down / 2 * (1 - v) * (1 - v)), last=1),
        "Psi1": cases((v <= 0, 0 * v), (2 * v <= 1, up * v), (v <= 1, down * (1 - v)), last=0),
        "Phi": cases(
            (v <= -q, 0 * v), (v <= 0, (1 + 6 * v) * (1 + 6 * v) / 12), (v <= 1, one / 12 + v),
            (v <= 1 + q, top - 3 * (top - v) * (top - v)), last=top,
        ),
        "Phi1": cases((v <= -q, 0 * v), (v <= 0, 1 + 6 * v), (v <= 1, one), (v <= 1 + q, 7 - 6 * v), last=0),
        "n": cases((v <= -q, -v - one / 12), (v <= 0, 3 * v * v), last=0),
        "n1": cases((v <= 0, n1), last=0),
    }  # fmt: skip


def forced(bound: Formula) -> Callable[[], bool]:
    """u >= 1 and v < 1: the derivative by v, with any next w, against the chain of bounds; the parts of Psi meet."""

    def premises() -> tuple[list, Any]:
        import z3

        u, v, w = reals("u v w")
        at_u, at_v, at_w = map(_pieces, (u, v, w))
        slope = at_v["n1"] - at_u["Psi"] * at_v["Phi1"] - at_v["Psi1"] * at_w["Phi"]
        names = {"slope": slope, "x_j": v, "n1": lambda x: _pieces(x)["n1"], "Phi1": lambda x: _pieces(x)["Phi1"]}
        half = z3.RealVal("1/2")
        up, down = F["bend"].right({}, z3.RealVal), -F["bent"].right({}, z3.RealVal)
        meet = [
            up * half * half == 1,
            up == down,
            F["n1"].right({"v": -z3.RealVal("1/6"), "max": lambda a, b: a - b}, z3.RealVal) == 0,
        ]
        return [u >= 1, v < 1], z3.And(*(a <= b for a, _, b in bound.links(names, z3.RealVal)), *meet)

    return follows(premises)


def unset(knot: str) -> Callable[[], bool]:
    """At 0 Psi, Psi' and n' are 0: an unset coordinate behind an unset one has no slope, whatever Phi is there."""

    def premises() -> tuple[list, Any]:
        import z3

        (v, w), zero = reals("v w"), z3.RealVal(knot)
        at = _pieces(v)
        return [v == zero, w == w], z3.And(at["Psi"] == 0, at["Psi1"] == 0, at["n1"] == 0)

    return follows(premises)


def curvature(most: Formula, apart: Formula) -> Callable[[], bool]:
    """Every row of the Hessian adds up to at most `most`; of twice a link's own block to at most `apart`.

    By the pieces of v, the coordinate; u is before it and w behind it. Second derivatives are 6 or the page's in
    absolute value; a gradient that is continuous needs them almost everywhere.
    """

    def premises() -> tuple[list, Any]:
        import z3

        u, v, w = reals("u v w")
        at_u, at_v, at_w = map(_pieces, (u, v, w))
        before, behind = at_u["Psi1"] * at_v["Phi1"], at_v["Psi1"] * at_w["Phi1"]
        q, bend = z3.RealVal("1/6"), F["bend"].right({}, z3.RealVal)
        own = z3.If(  # as the second of a link: n'' - Psi Phi''
            z3.And(v >= -q, v <= 0), 6 - 6 * at_u["Psi"], z3.If(z3.And(v >= 1, v <= 1 + q), 6 * at_u["Psi"], 0)
        )
        first = z3.If(z3.And(v > 0, v < 1), bend * at_w["Phi"], 0)  # as the first: |Psi''| Phi
        rows, block = most.right({}, z3.RealVal), apart.right({}, z3.RealVal)
        parts = [own + first + before + behind <= rows, 2 * (own + before) <= block, 2 * (first + behind) <= block]
        return [], z3.And(*parts)

    return follows(premises)


ROWS = curvature(F["rows"], F["rows_two"])
NOT_ROWS = either(curvature(Formula("8"), F["rows_two"]), curvature(F["rows"], Formula("12")))


def deep(link: Formula) -> Callable[[], bool]:
    """A link is at least -Phi: n >= 0, 0 <= Psi <= 1 and 0 <= Phi <= -`link`."""

    def premises() -> tuple[list, Any]:
        import z3

        v = reals("v w")[0]
        at = _pieces(v)
        most = -link.right({}, z3.RealVal)
        return [], z3.And(at["Psi"] >= 0, at["Psi"] <= 1, at["Phi"] >= 0, at["Phi"] <= most, at["n"] >= 0)

    return follows(premises)


DEEP = every(deep(F["link"]), Equal(F["chain_falls"], "-link*M", [("link", F["link"])]))
SCALED = every(
    Equal(F["scaled"], "L*Delta/(rows*fall)", [("rows", F["rows"]), ("fall", F["chain_falls"])]),
    Equal(F["scaled"], "one*L*Delta/M", [("one", F["chain_one"])]),
    Equal(F["chain_two"], "M/(rows*fall)", [("rows", F["rows_two"]), ("fall", F["chain_falls"])]),
    Equal(F["chain"], "one*(1 - chance)*L*Delta/M", [("one", F["chain_one"]), ("chance", F["chance"])]),
)
# Y is 0, or 1 + Y' with odds rho; (r - j)/(d - j) <= r/d, so that k coordinates are kept with odds at most rho^k
OF_RUN: list[Put] = [("mean", F["geometric"]), ("spread", F["geometric_spread"])]
RUNS = every(
    Implies([F["ranks"]], ["(r - j)*d <= r*(d - j)"], cleared=True),
    Equal("mean", "rho*(1 + mean)", OF_RUN),
    Equal("spread + mean**2", "rho*(1 + 2*mean + spread + mean**2)", OF_RUN),
    Equal(F["chance"], "T*spread/(delta*T*mean)**2", OF_RUN),
    Equal(F["M"].side(1), "(1 + delta)*T*mean", [("ceil", same), *OF_RUN]),
)
TWO_CLIENTS = every(
    # 1 + 3 rho: one more coordinate adds 4 - 1
    Implies([F["rho"]], ["rho*(square - mean**2) <= mean**2"],
            [("mean", F["moves"]), "square == rho + 3*rho**2"], cleared=True),
    Fails(Implies([F["rho"]], ["rho*(square - mean**2) <= 99/100*mean**2"],
                  [("mean", F["moves"]), "square == rho + 3*rho**2"], cleared=True)),
    Equal(F["moves"], "rho + rho**2"),
    Equal(F["M2"].side(1), "(1 + delta)*T*mean", [("ceil", same), ("mean", F["moves"])]),
)  # fmt: skip


# 6: a longer step with few clients: P is p S, V is S nu, W is S h nu


ROW: list[Put] = [
    "omega == 1", "mu == rho", *((one, OF_FAMILY[f"kept_{one}"]) for one in ("m", "chi", "alpha", "gamma")),
    "p == P/S", "nu == V/S",
]  # fmt: skip
SQUARE = "(Y*phi**2*rho*S)"  # of h, by the definition of Y
OF_KAPPA = OF_FAMILY["kappa"].changed("h**2", SQUARE)
OF_Q = OF_FAMILY["q"].changed("h*nu", "W/S")
SHORTER = [f"P/S <= {F['local'].side(1).text}", f"Y <= {F['Y'].side(2).text}", f"V <= {F['S_nu'].side(1).text}",
           f"W/S <= {F['h_nu'].side(1).text}"]  # fmt: skip
SOME = ["S >= 2"], ["S == 1", f"W/S <= {F['h_nu_1'].side(1).text}"]


def few(then: Sequence[Said], *where: Put, given: Sequence[Said] = SHORTER) -> Every:
    """For two clients or more, and for one."""
    return every(*(Implies([*given, *case], then, [*ROW, OF_Q, *where], cleared=True) for case in SOME))


LEAST = f"{OF_KAPPA.name} >= {F['kappa'].side(1).text}"
LONGER = every(
    Implies(["S == 1", "N == 1"], [F["clients"]]),  # admitted
    lambda: all(any(Implies([f"S == {S}"], case[:1])() for case in SOME) for S in range(1, 9)),
    few([LEAST, OF_FAMILY["condition"].changed("h**2", SQUARE)], OF_KAPPA),
    Fails(few(["kappa >= 10/9*least"], OF_KAPPA, ("least", F["kappa"]))),
    Equal(F["kappa"], OF_FAMILY["some_kappa"]),
    Equal("longest**2", "most*phi**2*rho*S", [SECOND, ("longest", F["longer"]), ("most", F["Y"])]),
    Equal(F["Y"].side(1), "Y", [f"h == sqrt{SQUARE}"]),
    Equal("longest*nu", F["h_nu"], [FIRST, ("longest", F["longer"]), ("most", F["S_nu"]), "nu == most/S"]),
    Equal("longest", F["h_nu_1"], ["phi == 1/2", "rho == 1", "S == 1", SECOND, ("longest", F["longer"])]),
    Equal("local_lr**2", F["local"], [("local_lr", F["local_lr"])]),
    Equal(F["local"], OF_FAMILY["p"], ["S == 1"]),
    Equal(F["old_step"], OF_FAMILY["some_step"]),
    Equal(F["longer"], F["old_step"], ["S == 1", SECOND]),
    Implies([F["clients"], "S < N"], [f"(N - S)/(N - 1) <= {F['S_nu'].side(1).text}"], cleared=True),
)  # fmt: skip
AT_MOST = OF_FAMILY["at_most"].changed("1/25", F["more_p"].text)
NOISE = every(
    Implies([f"p <= {OF_FAMILY['p'].side(2).text}", F["clients"]], ["coef_noise <= at_most"],
            ["M == w*eta", "alpha == X/w", "gamma == Y/(w*h**2)", OF_FAMILY["B"].changed("(1 + h)/2", "5/8"),
             ("coef_noise", OF_FAMILY["coef_noise"]), ("at_most", AT_MOST)], cleared=True),
    Equal(F["more_p"], "3*drift", [*(f"{one} == 1" for one in ("K", "theta", "sigma")), "V == 0", "G2 == 0",
                                   ("drift", OF_FAMILY["drift"])]),
    Equal(F["more_noise"], "(more + 2/S)*gamma*h**2", [("more", F["more_p"])]),
    few(["theorem <= some"], *(f"{one} == 0" for one in ("gap", "C0", "zeta")), "theta == 1", "sigma == 1", "K == 1",
        "h == sqrt(Y*rho*S)*phi", "nu == W/(S*h)", ("kappa", F["kappa"]),
        ("theorem", OF_FAMILY["theorem"].changed("1/25", F["more_p"].text)), ("some", OF_FAMILY["some"]),
        given=SHORTER[:2]),
)  # fmt: skip


def compared(rule: Formula) -> Callable[[], bool]:
    """From how many clients on the step is at least SCAFFOLD's, at three sizes."""

    def check() -> bool:
        def first(N: int) -> int:
            return next(S for S in range(1, N) if (link := rule.links({"S": S, "N": N})[0])[0] >= link[2])

        sizes = [int(F[name].right({})) for name in ("N_3", "N_4", "N_6")]
        return [first(N) for N in sizes] == [int(F["S_3"].right({})), 11, 68] and sizes == [10**k for k in (3, 4, 6)]

    return check


SPEEDUP = every(
    compared(F["compared"]),
    Equal(F["H"], "longest/L", [("min", lambda a, b: a + 2 * b), ("longest", F["longer"])]),
    Equal(F["first"], "first/sqrt(S)", ["gap == Delta", ("first", OF_FAMILY["speedup"].term(0))]),
    Equal(F["first"], "A/H_", ["gap == Delta", SECOND, F["H"], OF_FAMILY["A"]]),
    Implies([], ["more*C0/(phi*rho*T) <= start"],
            [SECOND, ("h", F["longer"]), ("more", OF_FAMILY["bound_11"]), ("start", F["start_6"])], cleared=True),
    Fails(Implies([], ["more*C0/(phi*rho*T) <= 19/20*start"],
                  [SECOND, ("h", F["longer"]), ("more", OF_FAMILY["bound_11"]), ("start", F["start_6"])],
                  cleared=True)),
    # (phi S^(1/2)/8)^6 over (phi^(2/3)/24)^6 is 3^6 S^5/N^2
    Equal("(step/theirs)**6", "left/right",
          ["rho == 1", SECOND, "phi == S/N", ("step", F["longer"]), ("theirs", F["scaffold"]),
           ("left", F["compared"].side(0)), ("right", F["compared"].side(1))]),
    Equal("step", "theirs", ["rho == 1", ("old", F["old_S"]), "phi == old/N", ("step", F["old_step"]),
                             ("theirs", F["scaffold"])]),
)  # fmt: skip
# 6.4: Y is h^2/(phi^2 rho), H is h nu
OF_ROW: list[Put] = [*ROW[:-2], ("ours", F["kappa"])]
ANY_S = [F["any_p"], "nu <= 1", "phi <= 1", "phi*nu <= 1/2", f"Y*(nu + 4*p) <= {F['Y_nu'].side(1).text}",
         f"H**2 <= {F['hn'].side(2).text}", "4*H <= nu"]  # fmt: skip
ANY_KAPPA = OF_FAMILY["kappa"].changed("h**2", "(Y*phi**2*rho)")
NO_JUMP = every(
    Implies(ANY_S, ["kappa >= ours"], [*OF_ROW, ANY_KAPPA], cleared=True),
    Implies(ANY_S, [OF_FAMILY["condition"].changed("h**2", "(Y*phi**2*rho)")],
            [*OF_ROW, OF_FAMILY["q"].changed("h*nu", "H"), ANY_KAPPA], cleared=True),
    Implies([F["any_p"], "S >= 1", f"Y <= {F['Y_S'].side(1).text}", f"Y*(4*p) <= {F['Y_nu'].side(1).text}"],
            ["theorem <= some"],
            [*OF_ROW, OF_FAMILY["q"].changed("h*nu", "H"), *(f"{one} == 0" for one in ("gap", "C0", "zeta")),
             "theta == 1", "sigma == 1", "K == 1", "h == sqrt(Y*rho)*phi", "nu == H/h", ("kappa", F["kappa"]),
             ("theorem", OF_FAMILY["theorem"].changed("1/25", F["more_p"].text)), ("some", OF_FAMILY["some"])],
            cleared=True),
    Equal("step**2/(phi**2*rho)*(nu + 4*p)", F["Y_nu"], [("step", F["no_jump"])]),
    Equal(F["Y_nu"].side(0), "Y*(nu + 4*p)", ["h == sqrt(Y*rho)*phi"]),
    Equal(F["Y_S"].side(0), "Y", ["h == sqrt(Y*rho)*phi"]),
    Equal("step**2/(phi**2*rho)", F["Y_S"], [SECOND, ("step", F["both"])]),
    Equal("most", OF_FAMILY["quarter"], [FIRST, ("most", F["both"])]),
    Equal(F["any_p"], OF_FAMILY["p"]),
    Equal(F["hn"].side(1), "(step*nu)**2", ["rho == 1", "p == 0", ("step", F["no_jump"])]),
    Equal(F["hn"].side(1), F["hn"], ["phi == 1", "nu == 1/2"]),
    # all clients, eight or more: 7.1's step
    Implies([F["any_p"], "S >= 8"], ["old**2 <= one**2", "old**2 <= other**2"],
            ["nu == 0", "phi == 1", SECOND, ("old", OF_FAMILY["ssf_step"]), ("one", F["both"]),
             ("other", F["no_jump"])], cleared=True),
)  # fmt: skip

STEPS = [
    Step("limits.1.1", "identity", "the difference is |P x + P u|^2, in a basis in which P is diagonal", OUTSIDE,
         Equal(F["outside"], None, ["P == 1/2"]), "an eigenvalue 1/2"),
    Step("limits.1.2", "expectation", "all masks of r of d coordinates, d up to 4, any x", left_over(True),
         left_over(False), "one mask is never drawn"),
    Step("limits.1.3", "implication", "the induction, for 0 <= rho <= 1", POWER, {"rho <= 1": "rho <= 2"}),
    Step("limits.1.4", "identity", "the geometric sum, by induction on T", GEOMETRIC, {"2*L": "L"},
         "L Delta for 2 L Delta"),
    Step("limits.1.5", "expectation", "masks of two of three coordinates, three rounds, any x", attained("1"),
         attained("1/2"), "half the step"),
    Step("limits.1.6", "implication", "for every step and every omega >= rho", FIXED_A,
         {"1 - rho/omega": "1 - 9/10*rho/omega"}),
    Step("limits.2.1", "implication", "for every second moment that the hypothesis admits", CURVED,
         {"2*L*omega_H": "L*omega_H"}),
    Step("limits.2.2", "identity", "the sum over T rounds, divided", EFFECTIVE, {"2*L*Delta": "L*Delta"}),
    Step("limits.2.3", "expectation", "a and b from the trace and from chi-squares of up to 4 squares", HAAR,
         chi(Formula("(r/d)**2")), "the square of the mean for the mean of the square"),
    Step("limits.2.4", "implication", "for all real 1 <= r <= d, d >= 2, 0 <= d_eff <= d", HAAR_PRICE,
         {"(d_eff + 1)": "d_eff"}, "1 + d_eff/r"),
    Step("limits.2.5", "expectation", "any symmetric H in three dimensions, Gaussian moments; any r", every(gaussian(3),
         GAUSS_PRICE), gaussian(1), "signs instead of normal numbers"),
    Step("limits.2.6", "expectation", "any symmetric H, all masks of r of d, d up to 4; the zero entries by z3",
         MASKED, either(masked(3, Formula("(r/d)**2")), top(False)),
         "coordinates kept independently; H_ii < L"),
    Step("limits.2.7", "identity", "the square is completed", FIXED_Q, {"rho**2/c": "rho/c"}, "rho for rho^2"),
    Step("limits.2.8", "expectation", "m = 2, a line in three dimensions: the mean over a right angle", ANY_Q,
         turned(False), "one line and not the mean"),
    Step("limits.3.1", "implication", "the sums by sympy, the induction by z3, the exponential's series",
         drifted("1.0203"), {"0.69": "0.68"}),
    Step("limits.3.2", "implication", "for h <= 1", DECREASE, {"h <= 1": "h <= 5/4"}),
    Step("limits.3.3", "certificate", "the difference is a square times what is positive, two outcomes", WEIGHTED,
         weighted(-1), "the square of the sum"),
    Step("limits.3.4", "arithmetic", "2.014 and 0.7", SEVERAL, {"2.014": "2.01"}),
    Step("limits.4.1", "identity", "the pieces fit; the fall by integration", ramp(F["falls"]),
         ramp(F["falls"].changed("2*L", "L")), "g^2/L"),
    Step("limits.4.2", "implication", "two outcomes in [0, 1] with any odds", SPREAD, spread(2), "outcomes up to 2"),
    Step("limits.4.3", "identity", "g^2 from Delta; 20/9", ON_RAMP,
         on_ramp(F["falls"].changed("+ g**2/(2*L)", "")), "1/2 left out"),
    Step("limits.5.1", "implication", "all pieces of the splines, every next coordinate", forced(F["forced"]),
         forced(F["forced"].changed("-1", "-11/10")), "11/10 for 1"),
    Step("limits.5.2", "implication", "the values at 0", unset("0"), unset("1/6"), "the values at 1/6"),
    Step("limits.5.3", "implication", "the rows of the Hessian over all pieces", ROWS, NOT_ROWS,
         "8 for 25/3; 12 for 38/3"),
    Step("limits.5.4", "implication", "the bounds of all pieces", DEEP, deep(Formula("-1")), "1 for 7/6"),
    Step("limits.5.5", "arithmetic", "18/175 and 9/133", SCALED, {"18/175": "3/25"}),
    Step("limits.5.6", "expectation", "the odds by z3, the moments of the geometric law by sympy", RUNS,
         {"rho/(1 - rho)**2": "rho/(1 - rho)"}),
    Step("limits.5.7", "implication", "for 0 < rho <= 1", TWO_CLIENTS,
         {"<= mean**2": "<= 9/10*mean**2"}),
    Step("limits.6.1", "implication", "for all S >= 1, P <= 1/100, Y <= 1/64; h nu for S = 1",
         LONGER, {"1/64": "1/49"}, "h^2 <= phi^2 rho S/49"),
    Step("limits.6.2", "implication", "6.4 of the family's page with 3.123 p for 1/25", NOISE, {"2/3": "13/20"}),
    Step("limits.6.3", "arithmetic", "5, 11 and 68 clients, 1.5", SPEEDUP, {"1.5": "1.4"}),
    Step("limits.6.4", "implication", "for p <= 1/100, all S >= 1, nu and phi with phi nu <= 1/2", NO_JUMP,
         {"1/144": "1/100"}, "h^2 (nu + 4 p) <= phi^2 rho/100"),
]  # fmt: skip
