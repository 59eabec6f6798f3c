"""DeComFL with one local step: the checks of sections 1 to 4 of docs/theory/decomfl.md, and what 6 takes from them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from fedtheory.theory.decomfl.formulas import FORMULAS as F
from fedtheory.theory.formula import Formula
from fedtheory.theory.proof import Equal, Implies, Put, Said, Values, equal, every, exact, mean_of


def same(v: Any) -> Any:
    """Return the value: of a function that a check may leave out, as a mean of constants."""
    return v


def one(v: Any) -> int:
    """Return 1: of a squared length that both sides have as a factor."""
    return 1


def positive(name: str) -> Any:
    """Return the symbol that `Equal` makes of a name."""
    import sympy

    return sympy.Symbol(name, positive=True)


def symmetric(n: int, name: str = "h") -> Any:
    """Return a symmetric matrix of symbols."""
    import sympy

    return sympy.Matrix(n, n, lambda i, j: sympy.Symbol(f"{name}{min(i, j)}{max(i, j)}"))


def vector(name: str, n: int) -> Any:
    """Return a column of symbols."""
    import sympy

    return sympy.Matrix(sympy.symbols(f"{name}:{n}"))


def normal(*vectors: Any) -> Callable[[Any], Any]:
    """Return the mean over vectors of independent normal entries."""
    return lambda v: mean_of(v, tuple(entry for each in vectors for entry in each))


def of(H: Any) -> Callable[[Any], Any]:
    """Return the quadratic form of a matrix."""
    return lambda v: (v.T * H * v)[0]


# 1: directions


def fourth(formula: Formula) -> Callable[[], bool]:
    """Three dimensions, H symmetric, all symbols."""

    def values() -> Values:
        z, w, H = vector("z", 3), vector("w", 3), symmetric(3)
        names = {"zw2": (z.T * w)[0] ** 2, "zHz": of(H)(z), "trH": H.trace(), "w": w, "wHw": of(H)(w)}
        return names | {"EB": normal(z)}

    return exact(formula, values)


def two(independent: bool) -> tuple[Any, Any, Any, Callable[[Any], Any]]:
    """Return (1/P) sum_p z_p z_p^T w for two directions in two dimensions, w, a symmetric H, and the mean."""
    y, w = vector("y", 2), vector("w", 2)
    z = vector("z", 2) if independent else y
    return ((y.T * w)[0] * y + (z.T * w)[0] * z) / 2, w, symmetric(2), normal(y, *[z] * independent)


_, A_K, EPS_K = (Formula(text) for text in F["local"].text.split(", "))


def several(independent: bool) -> Callable[[], bool]:
    """P = 2."""

    def values() -> Values:
        a, w, H, mean = two(independent)
        a = 2 * A_K.right({"P": 2, "zz": a, "sum_p": same})
        return {"aHa": of(H)(a), "trH": H.trace(), "w": w, "wHw": of(H)(w), "P": 2, "E": mean}

    return exact(F["several"], values)


FORMS = ["P >= 1", "trH <= kappa*L", "wHw <= L*sq(w)"]
RANK = Implies(FORMS, ["form <= most"], [F["c"], ("form", F["several"]), ("most", F["several_most"])], cleared=True)


def lengths(sixth: Formula) -> Callable[[], bool]:
    """E|z|^2 and E|z|^4 z_j^2 for any d: |z|^2 = z_j^2 + s, E s^k by 2^k Gamma(n/2 + k)/Gamma(n/2), n = d - 1."""

    def check() -> bool:
        import sympy

        n, z, s = sympy.Symbol("n", positive=True), *sympy.symbols("z s")

        def mean(v: Any) -> Any:
            total: Any = sympy.Integer(0)
            for (k,), factor in sympy.Poly(sympy.expand(v), s).terms():
                total += mean_of(factor, (z,)) * sympy.gammasimp(2**k * sympy.gamma(n / 2 + k) / sympy.gamma(n / 2))
            return total

        wanted = F["length"].right({"d": n + 1}), sixth.right({"d": n + 1, "tr": 1})
        gaps = mean(z**2 + s) - wanted[0], mean((z**2 + s) ** 2 * z**2) - wanted[1]
        return all(sympy.simplify(gap) == 0 for gap in gaps)

    return check


# 2: differences


MISSED: Put = ("most", F["missed"])
SMOOTH = ["up - mu*slope <= bound", "mu*slope - up <= bound", "down + mu*slope <= bound", "-down - mu*slope <= bound"]
DIFFERENCE = Implies(  # forward and central; down = f(x - mu z) - f(x)
    ["mu > 0", *SMOOTH],
    ["up - mu*slope <= mu*most", "mu*slope - up <= mu*most", "up - down - 2*mu*slope <= 2*mu*most",
     "2*mu*slope - up + down <= 2*mu*most"],
    ["bound == 1/2*L*mu**2*sq(z)", MISSED],
)  # fmt: skip


def by_parts(half: int) -> Callable[[], bool]:
    """phi' - t phi, times exp(-t^2/half), is the derivative of phi exp(-t^2/half), which vanishes at both ends."""

    def check() -> bool:
        import sympy

        t, a, b, c = sympy.symbols("t a b c", real=True)
        phi, weight = sympy.Function("phi")(t), sympy.exp(-(t**2) / half)
        parts = sympy.diff(phi * weight, t) - (sympy.diff(phi, t) - t * phi) * weight
        ends = [sympy.limit((a * t**2 + b * t + c) * weight, t, end) for end in (sympy.oo, -sympy.oo)]
        return sympy.simplify(parts) == 0 and ends == [0, 0]

    return check


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


BIAS = every(
    by_parts(2),
    cauchy(2),
    Implies(["nz >= 0", "nz**2 <= d"], [F["bias_most"]], ["L == 1", "mu == 1"]),
    Equal(F["bias_most"].side(0), "L*mu*nz"),
    Equal(F["b"], "most**2", [("most", F["bias_most"])]),
)
BIASES: list[Put] = [("b2", F["b"]), F["B"].changed("B_", "B")]
REPEATED = every(
    Equal(F["squares"], "most**2*sixth", [("sq", one), MISSED, ("sixth", F["sixth"]), "sixth == sixth/tr*kappa*L"]),
    Equal(F["squares"].side(0), "most**2*zHz", [("E", same), MISSED, "e == most"]),
    Equal(A_K, EPS_K, [("sum_p", one)]),
    Equal(F["products"], "L*b2", [("b2", F["b"])]),
    Implies(["P >= 1"], ["(squares + (P - 1)*products)/P <= most"],
            [*BIASES, ("most", F["smoothed"]), ("squares", F["squares"]), ("products", F["products"])], cleared=True),
)  # fmt: skip


# 3: descent


YOUNG = Equal(F["slope_one"], "eta*sq(1/2*g + b)", gap=True)


def form(sign: int) -> Callable[[], bool]:
    """The right side has more by the form at v - b~: two dimensions, H symmetric."""

    def check() -> bool:
        import sympy

        a, b, form = vector("a", 2), vector("b", 2), of(symmetric(2))
        ((left, _, right),) = F["halves"].links({"vHv": form(a + b), "aHa": form(a), "bHb": form(b)})
        return sympy.expand(right - left - form(a + sign * b)) == 0

    return check


def averaged(clients: int) -> Callable[[], bool]:
    """E|g + n|^2 for the mean n of two clients' independent noises of mean zero and mean square nu^2."""

    def check() -> bool:
        import sympy

        g, s = positive("g"), sympy.symbols("s:2", positive=True)
        total = sum((g + sum(a * b for a, b in zip(s, signs)) / 2) ** 2 for signs in product((-1, 1), repeat=2)) / 4
        nu = sympy.sqrt((s[0] ** 2 + s[1] ** 2) / 2)
        return sympy.expand(total - F["averaged"].right({"g": g, "nu": nu, "m": clients, "sq": lambda v: v**2})) == 0

    return check


CURVED: list[Put] = [
    ("aHa", F["several_most"].changed("sq(w)", f"({F['averaged'].side(1).text})")),
    ("bHb", F["smoothed"]),
    ("vHv", F["halves"]),
    "sHs == eta**2*vHv",
    ("curved", F["above"].term(2)),
    ("slope", F["slope_one"]),
    ("made", F["descent_one"]),
]
DESCENT = Implies(
    ["eta > 0", "c >= 1", "B >= 0", F["step"]],
    ["F0 - eta*sq(g) + slope + curved <= made"],
    ["L == 1", "m == 1", *CURVED],
)
PER_ROUND: list[Put] = ["F0 == 0", "g == 0", *BIASES, "b == sqrt(b2)", ("rest", F["descent_one"]),
                        ("divisor", F["divisor_one"]), "left == R*rest/divisor"]  # fmt: skip
SHORT: list[Said] = ["P >= 1", F["step"]]
COLLECTED = every(
    Implies([*SHORT, "d >= 1"], ["left <= third + fourth"],
            ["nu == 0", *PER_ROUND, F["c"], ("third", F["theorem_one"].term(2)), ("fourth", F["theorem_one"].term(3))],
            cleared=True),
    Equal(F["theorem_one"].term(0), "D/divisor", [("divisor", F["divisor_one"])]),
    Equal(F["theorem_one"].term(1), "R*rest/divisor", ["b == 0", "B == 0", *PER_ROUND[:2], *PER_ROUND[5:7]]),
    Implies(SHORT, [F["falls_step"], F["short_one"]], [F["c"]], cleared=True),
    Equal(F["falls_most"], F["theorem_one"].term(3), [("most", F["falls_step"]), "eta == most*P/(L*kappa)"]),
    Equal(F["step"].side(1), F["falls_step"].side(1)),
    Equal(F["step"].side(1), F["short_one"].side(1)),
)  # fmt: skip


# 4: what P, m and d buy


def bowl(formula: Formula) -> Callable[[], bool]:
    """f = |x|^2/2, exact scalars, P = 2, d = 2, any step."""

    def values() -> Values:
        import sympy

        x, y, z, eta = vector("x", 2), vector("y", 2), vector("z", 2), sympy.Symbol("eta")
        new = x - eta * ((y.T * x)[0] * y + (z.T * x)[0] * z) / 2
        return {"x1": new, "x": x, "eta": eta, "c": F["c"].right({"kappa": 2, "P": 2}), "E": normal(y, z)}

    return exact(formula, values)


FACTOR: list[Put] = ["x == 1", ("factor", F["bowl"])]
BOWL = every(
    bowl(F["bowl"]),
    Implies([F["stable"]], ["factor < 1"], FACTOR, cleared=True),
    Implies([F["stable"].changed("<", ">=")], ["factor >= 1"], FACTOR, cleared=True),
    Equal("factor", "slowest + c*(eta - 1/c)**2", [*FACTOR, ("slowest", F["slowest"])]),
)
BALANCED = every(
    Equal("first + second", F["balanced_one"],
          [F["chosen_one"], ("first", F["theorem_one"].term(0)), ("second", F["theorem_one"].term(1))]),
    Equal(F["theorem_one"].term(0), F["theorem_one"].term(1), [F["chosen_one"]]),
    Equal("eta*L*c", F["step"], [F["rounds_one"], F["chosen_one"]]),
)  # fmt: skip


def doubled(share: Formula) -> Callable[[], bool]:
    """d = kappa = 1000: the digits of c at P = 10 over c at P = 20."""

    def check() -> bool:
        c = lambda P: F["c"].right({"kappa": Fraction(1000), "P": Fraction(P)})
        digits = share.right({})
        return digits <= c(10) / c(20) < digits + Fraction(1, 100)

    return check
