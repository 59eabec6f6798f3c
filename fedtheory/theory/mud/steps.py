"""FedMUD with fresh factors in every round: the steps of docs/theory/mud.md. The formulas stand in formulas.py."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, factorial
from typing import Any

from fedtheory.theory.formula import Formula
from fedtheory.theory.mud.formulas import FORMULAS as F
from fedtheory.theory.mud.quantities import residual
from fedtheory.theory.proof import (
    Equal,
    Fails,
    Implies,
    Put,
    Step,
    Values,
    arithmetic,
    either,
    every,
    exact,
    inner,
    mean_of,
    squared,
)  # fmt: skip
from fedtheory.theory.search import implies
from fedtheory.theory.ssf.formulas import FORMULAS as OF_SSF
from fedtheory.theory.ssf.steps import INDUCTION, exponential


def _same(v: Any) -> Any:
    return v


def _matrix(name: str, rows: int, cols: int) -> Any:
    import sympy

    return sympy.Matrix(rows, cols, sympy.symbols(f"{name}:{rows * cols}"))


# 1: Lemma 1, and Theorem 1 with fresh factors


def resting(row: int) -> Callable[[], bool]:
    """f = (w_22 - 1)^2/2, U = u in one row, V = 0: both factors' gradients are 0, that of f is not."""

    def check() -> bool:
        import sympy

        U, V = sympy.zeros(2, 1), sympy.zeros(2, 1)
        U[row] = sympy.Symbol("u")
        G = sympy.Matrix([[0, 0], [0, (U * V.T)[1, 1] - 1]])
        return not any((G * V).flat()) and not any((G.T * U).flat()) and any(G.flat())

    return check


def pulled() -> Values:
    G, U, V = _matrix("g", 2, 2), _matrix("u", 2, 1), _matrix("v", 2, 1)
    gradients = [*(G * V), *(G.T * U)]
    return {"G": G, "V": V, "UT": U.T, "S": U * U.T, "Z": V * V.T, "nh": sum(one**2 for one in gradients)}


def eigenbases(turned: bool) -> Callable[[], bool]:
    """<G, S G> + <G, G Z> in the eigenbases of S and Z, each turned by any angle."""

    def check() -> bool:
        import sympy

        G, (c, s, c2, s2) = _matrix("g", 2, 2), sympy.symbols("c s c2 s2")
        a, b, names = sympy.symbols("a:2"), sympy.symbols("b:2"), sympy.symbols("a_i b_j Ghat")
        P, Q = sympy.Matrix([[c, -s], [s, c]]), sympy.Matrix([[c2, -s2], [s2, c2]])
        seen = P.T * G * Q if turned else G
        summed = lambda v: sum(v.subs(list(zip(names, (a[i], b[j], seen[i, j])))) for i in (0, 1) for j in (0, 1))
        form = (
            F["pulled"]
            .side(2)
            .right({"G": G, "S": P * sympy.diag(*a) * P.T, "Z": Q * sympy.diag(*b) * Q.T, "dot": inner})
        )
        gap = form - F["eigen"].right({**dict(zip(("a_i", "b_j", "Ghat"), names)), "sum_ij": summed})
        gap = sympy.rem(sympy.rem(sympy.expand(gap), c**2 + s**2 - 1, c), c2**2 + s2**2 - 1, c2)
        return sympy.expand(gap) == 0

    return check


OVER_IJ: Put = ("sum_ij", _same)  # term by term
LEMMA_1 = every(
    Implies(["a_i >= min_a", "b_j >= min_b"], [F["termwise"]], [OVER_IJ]),
    Equal(F["lemma1"], F["termwise"], ["min_a == least_S", "min_b == least_Z", OVER_IJ, "Ghat == sqrt(G2)"]),
    Equal(F["eigen"], F["termwise"].side(0), [OVER_IJ]),
)


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
    """The gradients in U, V of h, f linear with the gradient G, are G V~ and G^T U~."""

    def check() -> bool:
        import sympy

        G, U, V, Ut, Vt = (_matrix(*one) for one in (("g", 2, 3), ("u", 2, 2), ("v", 3, 2), ("w", 2, 2), ("z", 3, 2)))
        names = {"W": sympy.zeros(2, 3), "U": U, "VtT": Vt.T, "Ut": Ut, "VT": V.T, "f": lambda M: inner(G, M)}
        value = F["partners"].right(names)
        left, right = (G * Vt, G.T * Ut) if fixed else (G * V, G.T * U)
        gaps = [sympy.diff(value, one) - want for M, W in ((U, left), (V, right)) for one, want in zip(M, W)]
        return not any(sympy.expand(gap) for gap in gaps)

    return check


def passed(least: Formula) -> Callable[[], bool]:
    """The average of the squared gradients over (69) with (71) begins with these digits."""

    def check() -> bool:
        import sympy

        names = {name: sympy.Symbol(name, positive=True) for name in ("m", "s", "ku", "kv", "eta", "T", "w0", "gap0")}
        known: dict[Any, Any] = {}
        for left, _, right in F["fresh_numbers"].links(names, sympy.Rational):
            left, right = (sympy.sympify(one).subs(known) for one in (left, right))
            if left.is_Symbol:
                known[left] = right
            elif left != right:
                return False
        at = {str(name): value for name, value in known.items()} | {"c": F["exponent"].right({}, sympy.Rational)}
        at |= {"delta": F["fresh_rate"].right(at), "f0": at["gap0"], "fstar": 0}
        left = F["fresh_average"].changed(F["bernoulli"].side(0).text, F["bernoulli"].side(1).text).right(at)
        psi2, G2, eta = at["m"] * at["s"] ** 2, at["w0"] ** 2, at["eta"]
        gu, gv = 2 * psi2 + 2 * eta**2 * G2 * at["kv"], 2 * eta**2 * G2 * at["ku"]
        rest = 2 * residual(1, 0, 1, 1, eta, 1, G2, 0, gu, gv, 12) / eta ** at["c"]
        ratio = left / (F["printed"].term(0).right(at) + rest)
        curvature = at["ku"] + at["kv"] + sympy.Rational(1, 2) + sympy.sqrt(at["ku"] * at["kv"])  # of h: L_s = 1
        admitted = curvature <= 1 and 64 * at["ku"] * at["kv"] == 1 and 1 < at["c"] < 2
        e = sympy.Symbol("e", positive=True)  # the order of (71) in the step
        order = F["printed"].term(1).right({"eta": e, "c": at["c"], "O": _same, "bracket": 1})
        of = residual(1, 0, 1, 1, e, 1, G2, 0, 2 * psi2, e**2, 12) / e ** at["c"]
        admitted = admitted and sympy.limit(of / order, e, 0).is_positive
        digits = least.right({}, sympy.Rational)
        return bool(admitted and digits <= ratio < digits + sympy.Rational(1, 10))

    return check


BERNOULLI = every(  # from T to T + 1; equal at T = 0
    Implies(["delta < 1"], ["(1 - delta)*now <= then"],
            ["T == n", ("now", F["bernoulli"]), "T == n + 1", ("then", F["bernoulli"])], cleared=True),
    Equal(F["bernoulli"], "1", ["T == 0"]),
    Equal(F["fresh_rate"], "1 - factor", ["W == 1", "alpha == eta*s**2", "c == m", ("factor", F["bowl"])]),
    Equal(F["fresh_average"], "(1 + (1 - delta) + (1 - delta)**2)/3*w0**2", ["T == 3"]),
)  # fmt: skip


# 2: a round


def one_step(move: Formula) -> Callable[[], bool]:
    """FedMUD, V = 0: A is the mean gradient of the clients."""

    def values() -> Values:
        import sympy

        U, A, W, eta = _matrix("u", 2, 1), _matrix("a", 2, 3), _matrix("w", 2, 3), sympy.Symbol("eta")
        V = F["grown"].right({"eta": eta, "AT": A.T, "U": U})
        return {"W1": W + U * V.T, "W": W, "eta": eta, "UUt": U * U.T, "A": A}

    return exact(move, values)


def one_step_aad(move: Formula) -> Callable[[], bool]:
    """With AAD U and V start at 0 and see their partners."""

    def values() -> Values:
        import sympy

        eta, Ut, Vt, A, W = (
            sympy.Symbol("eta"),
            *(_matrix(*one) for one in (("u", 2, 1), ("v", 3, 1), ("a", 2, 3), ("w", 2, 3))),
        )
        V, U = F["grown"].right({"eta": eta, "AT": A.T, "U": Ut}), F["grown"].right({"eta": eta, "AT": A, "U": Vt})
        return {"W1": W + U * Vt.T + Ut * V.T, "W": W, "eta": eta, "UUt_": Ut * Ut.T, "VVt_": Vt * Vt.T, "A": A}

    return exact(move, values)


# 3: moments of the factors


GRID = tuple(product((1, 2, 3), (1, 2, 3)))


def moment(formula: Formula) -> Callable[[], bool]:
    """E U U^T and E (U U^T)^2 for entries of any law with mean 0: polynomials of degree 1 in m, 2 in r, 1 in chi."""

    def at(m: int, r: int) -> Callable[[], Values]:
        def values() -> Values:
            import sympy

            entries, s, chi = _matrix("u", m, r), *sympy.symbols("s chi")
            gram = s**2 * entries * entries.T
            mean = lambda M: M.applyfunc(lambda one: mean_of(one, tuple(entries), chi))
            return {"UUt": gram, "UUt2": gram * gram, "E": mean, "I": sympy.eye(m), "m": m, "r": r, "s": s, "chi": chi}

        return values

    return every(*(exact(formula, at(m, r)) for m, r in GRID))


def both(twice: Formula) -> Callable[[], bool]:
    """E|A V V^T + U U^T A|^2, U and V independent; `twice`: the mixed product."""

    def check() -> bool:
        import sympy

        s, chi = sympy.symbols("s chi")
        for m, n, r in product((1, 2), (1, 2), (1, 2, 3)):
            A, U, V = _matrix("a", m, n), _matrix("u", m, r), _matrix("v", n, r)
            mean = lambda M, entries: M.applyfunc(lambda one: mean_of(one, tuple(entries), chi))
            left = mean_of(squared(A * V * V.T), tuple(V), chi)
            right = mean_of(squared(U * U.T * A), tuple(U), chi)
            names = {"m": m, "n": n, "r": r, "s": s, "chi": chi, "A": A, "sq": squared}
            mixed = 2 * s**4 * inner(A * mean(V * V.T, V), mean(U * U.T, U) * A) - twice.right(names)
            price = F["price_both"].side(0).right(names)
            if sympy.expand(mixed) != 0 or sympy.expand(s**4 * (left + right) + twice.right(names) - price) != 0:
                return False
        return True

    return check


def uniform() -> bool:
    """The second and the fourth moment of an entry in (-a, a)."""
    import sympy

    a, x = sympy.symbols("a x", positive=True)
    square, fourth = (sympy.integrate(x**power / (2 * a), (x, -a, a)) for power in (2, 4))
    ((s2, _, right),) = F["uniform_s"].links({"a": a, "s": sympy.sqrt(square)}, sympy.Rational)
    return sympy.expand(right - s2) == 0 and sympy.expand(fourth - F["uniform_chi"].right({}) * s2**2) == 0


FIRST: list[Put] = ["I == 1", ("first", F["first_moment"])]
MEAN = every(
    moment(F["first_moment"]),
    uniform,
    Equal(F["mean_move"], "W - eta*first*G", [*FIRST, F["gamma"]]),
    Equal(F["mean_move"], "W - eta*2*first*G", [*FIRST, F["gamma_aad"]]),
    Equal(F["reset_mean"], "first*G2", FIRST),
    Equal(F["reset_mean_aad"], "2*first*G2", FIRST),
)
SECOND_MOMENT = moment(F["second_moment"])
SECOND = every(
    SECOND_MOMENT,
    Equal(F["price_size"], "second*sq(A)", ["I == 1", ("second", F["second_moment"]), F["gamma"], F["price"]]),
)


# 4, 5: the rate, and what it says


RATE = every(
    Implies(["alpha > 0", "G2 >= 0", "c >= 1", "L > 0", F["short_one"]], [F["descent_one"]],
            ["N == 1", "eta == alpha", "gamma == 1", ("noise", F["noise_one"]),
             "EF1 == F0 - eta*gamma*G2 + L/2*eta**2*gamma**2*c*(G2 + noise)"], line=True),
    Equal(F["theorem_one"], "(gap + T*rest)/divisor",
          ["F0 == 0", "G2 == 0", ("rest", F["descent_one"]), ("divisor", F["divisor_one"])]),
    Equal("T*kept", F["divisor_one"], ["F0 == 0", "nu == 0", "G2 == 1", ("kept", F["descent_one"]), "kept == -kept"]),
    Equal("most*L*c", F["short_one"], [("most", F["step_one"])]),
    Equal(F["step_one"].side(1), "eta*gamma"),
)  # fmt: skip
HALVED = every(
    Equal(F["halved"], F["price_aad"], ["n == m", ("c_mud", F["price"])]),
    Equal(F["frozen"], F["price_aad"], ["n == m"]),
    Equal(F["frozen"], "wide", ["s == r", "r == 2*s", ("wide", F["price"]), "r == s"]),
    Equal(F["frozen"], F["frozen_at"], ["m == 16", "r == 4", ("chi", F["uniform_chi"])]),
)


def orthonormal(price: Formula) -> Callable[[], bool]:
    """Pi, Pi' on r random coordinates: of every A_ij^2 E|Pi A|^2 and E|A Pi' + Pi A|^2 are gamma^2 c."""

    def check() -> bool:
        for m, n, r in ((2, 2, 1), (3, 2, 1), (3, 2, 2), (3, 3, 2)):
            pairs = list(product(combinations(range(m), r), combinations(range(n), r)))
            names = {"m": Fraction(m), "n": Fraction(n), "r": Fraction(r)}
            gamma, gamma_aad = Fraction(r, m), Fraction(r, m) + Fraction(r, n)
            for i, j in product(range(m), range(n)):
                one = Fraction(sum(int(i in S) for S, _ in pairs), len(pairs))
                two = Fraction(sum((int(i in S) + int(j in T)) ** 2 for S, T in pairs), len(pairs))
                if one != gamma**2 * F["orthonormal"].right(names) or two != gamma_aad**2 * price.right(names):
                    return False
        return True

    return check


ORTHONORMAL = every(
    orthonormal(F["orthonormal_aad"]),
    Equal(F["orthonormal_aad"], F["halved"], ["n == m", ("c_mud", F["orthonormal"])]),
)


def bowl(formula: Formula) -> Callable[[], bool]:
    """f = |W|^2/2, W 2 x 1, r = 1, s = 1: E over entries of any law; the price is that of the theorem."""

    def values() -> Values:
        import sympy

        W, U, alpha, chi = _matrix("w", 2, 1), _matrix("u", 2, 1), *sympy.symbols("alpha chi")
        new = F["move"].right({"W": W, "eta": alpha, "UUt": U * U.T, "A": W})
        price = F["price"].right({"m": 2, "r": 1, "chi": chi})
        return {"W1": new, "W": W, "alpha": alpha, "c": price, "E": lambda v: mean_of(v, tuple(U), chi)}

    return exact(formula, values)


FACTOR: list[Put] = ["W == 1", ("factor", F["bowl"])]
BOWL = every(
    bowl(F["bowl"]),
    Implies([F["stable"]], ["factor < 1"], FACTOR, cleared=True),
    Implies([F["stable"].changed("<", ">=")], ["factor >= 1"], FACTOR, cleared=True),
    Equal("factor", "1 - removed + c*(alpha - removed)**2", [*FACTOR, ("removed", F["removed"])]),
)


# 6: the preconditioner


class _Map:
    """The linear map R of one of the three forms, times a number."""

    def __init__(self, form: Formula, values: Values, scale: Any = 1) -> None:
        self.form, self.values, self.scale = form, values, scale

    def __rmul__(self, scale: Any) -> "_Map":
        return _Map(self.form, self.values, scale * self.scale)

    def __mul__(self, A: Any) -> Any:
        return self.scale * self.form.right({**self.values, "A": A})


def _run(form: str, clients: int, K: int, n: int = 2) -> tuple[Any, ...]:
    """K local steps with any gradients: eta, U, V, R, gradients g[i][k], and U_i^k, V_i^k of all clients and steps.

    form: as in `map_aad`, `map_freeze`, `map_mud`; U and V are the partners or what the factors start from.
    """
    import sympy

    eta, U, V = sympy.Symbol("eta"), _matrix("u", 2, 1), _matrix("v", n, 1)
    R = _Map(F[f"map_{form}"], {"UUt": U * U.T, "UUt_": U * U.T, "VVt_": V * V.T})
    g = [[_matrix(f"g{i}{k}_", 2, n) for k in range(K)] for i in range(clients)]
    paths = []
    for own in g:
        at = (U if form == "mud" else sympy.zeros(2, 1), sympy.zeros(n, 1))
        path = [at]
        for G in own:
            seen_V, seen_U = at[1] if form == "mud" else V, at[0] if form == "mud" else U
            new_U = F["step_U"].right({"U_k": at[0], "eta": eta, "g_k": G, "V_k": seen_V})
            at = (at[0] if form == "freeze" else new_U,
                  F["step_V"].right({"V_k": at[1], "eta": eta, "g_kT": G.T, "U_k": seen_U}))  # fmt: skip
            path.append(at)
        paths.append(path)
    return eta, U, V, R, g, paths


def affine(form: str) -> Callable[[], bool]:
    """Two clients, two steps: a client's last step, and the server's mean of the factors."""

    def model(at: tuple[Any, Any], U: Any, V: Any) -> Any:
        return at[0] * at[1].T if form == "mud" else at[0] * V.T + U * at[1].T

    def step() -> Values:
        eta, U, V, R, g, paths = _run(form, 1, 2)
        W, W_1 = (model(at, U, V) for at in paths[0][1:])
        return {"W_k1": W_1, "W_k": W, "eta": eta, "R": R, "g_k": g[0][1]}

    def round() -> Values:
        import sympy

        eta, U, V, R, g, paths = _run(form, 2, 2)
        ends = [path[-1] for path in paths]
        mean = ((ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2)
        total = (g[0][0] + g[0][1] + g[1][0] + g[1][1]) / 2
        return {"W1": model(mean, U, V), "W": sympy.zeros(2, 2), "eta": eta, "R": R, "g_bar": total, "sum_k": _same}

    return every(exact(F["local"], step), exact(F["whole"], round))


def symmetric(form: Formula) -> Callable[[], bool]:
    def values() -> Values:
        A, B, U, V = (_matrix(name, 2, 2) for name in "abuv")
        R = _Map(F["map_aad"], {"UUt_": U * U.T, "VVt_": V * V.T})
        return {"A": A, "B": B, "R": R, "Vt": V, "UtT": U.T}

    return exact(form, values)


OF_KAPPA: Put = ("kappa", F["kappa"].side(1))
EIGEN = ["lam >= 0", "lam <= Lambda"]  # of R
CEILING = every(
    Implies(EIGEN, [F["eigenvalue"]]),
    Implies(EIGEN, [F["ceiling"]], ["A == 1", "R == lam", "Rh == sqrt(lam)"], line=True),
    Equal(F["square"], "Lambda*root", [OF_KAPPA, ("root", F["root"])]),
    Equal(F["root"], None, ["ER == gamma", "Rh == sqrt(gamma)"]),
    Implies(["Lambda >= gamma"], [F["kappa"]], [OF_KAPPA], cleared=True),
)
UNIFORM: list[Put] = [("third", F["uniform_s"]), "s == sqrt(third)", ("most", F["uniform"]),
                      ("other", F["uniform"].side(3).changed("m", "n"))]  # fmt: skip
LAWS = every(
    Equal(F["uniform"].side(2), F["uniform"].side(3), UNIFORM[:2]),
    Equal(F["uniform_kappa"], "most/gamma", [*UNIFORM, F["gamma"]]),
    Equal(F["uniform_kappa_aad"], "(most + other)/gamma", [*UNIFORM, F["gamma_aad"]]),
    Equal(F["flat_kappa"], "scale/(scale*r/m)"),
    Equal(F["flat_kappa_aad"], "2*scale/(scale*(r/m + r/n))"),
    Equal(F["typical_kappa"], "top/gamma", [("top", F["typical"]), F["gamma"]]),
)


# 7: without AAD, the factors' drift


AT_K: list[Put] = [("c_k", F["c_k"]), ("s_k", F["s_k"])]
NEXT: list[Put] = ["k == n + 1", ("c_n", F["c_k"]), ("s_n", F["s_k"]), "k == n", *AT_K]
RISES = every(Equal("c_n", F["rise_c"], NEXT), Equal("s_n", F["rise_s"], NEXT))
START = every(*(Equal("0", F[one], ["k == 0", *AT_K]) for one in ("drift_U", "drift_V")))
DRIFTS = Implies(
    ["x >= 0", F["drift_U"], F["drift_V"], "U1 <= nU_k + x*nV_k", "V1 <= nV_k + x*(nU_k + sqrt(Lambda))"],
    [F["drift_U"].changed("nU_k", "U1").changed("c_k", "c_k1"), F["drift_V"].changed("nV_k", "V1").changed("s_k",
        "s_k1")],
    ["Lambda == 1", ("sqrt", _same), F["rise_c"], F["rise_s"]],
)  # fmt: skip


class _Each(list[Any]):
    """Values that a sum runs over."""

    def __mul__(self, other: "_Each") -> "_Each":  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Each(a * b for a, b in zip(self, other))


def bent(error: Formula, clients: int) -> Callable[[], bool]:
    """Three steps, a layer of 2 x 1, the server's model or that of one client: E is W less what R makes of it."""

    def values() -> Values:
        import sympy

        eta, U, _, R, g, paths = _run("mud", clients, 3, 1)
        mean: Any = lambda each: sum(each[1:], each[0]) / clients
        Ub, Vb = (mean([path[-1][k] for path in paths]) for k in (0, 1))
        late = _Each((paths[i][j][0] - U).T for i in range(clients) for j in range(3))
        seen = _Each(g[i][j] for i in range(clients) for j in range(3))
        W, zero = Ub * Vb.T, sympy.zeros(2, 1)
        moved = W + eta * R * mean(seen)
        names = {"Ub": Ub, "VbT": Vb.T, "eta": eta, "U": U, "lateT": late, "sum_late": mean, "E_": moved, "g_j": seen}
        sums = {"sum_j": mean, "sum_J": mean, "gb_j": seen, "W_k": W, "W1": W, "W": zero, "R": R, "E_k": moved}
        bounds = dict.fromkeys(("nE_k", "nE", "Lambda", "c_k", "s_k", "k", "x", "c_K", "s_K", "K"), 0)
        return bounds | names | sums

    return every(exact(error, values), exact(F["bent"], values))


def _times_K(v: Any) -> Any:
    import sympy

    return sympy.Symbol("K", positive=True) * v


def telescoped() -> Values:
    """Sums over j < K, K = 5."""
    import sympy

    x = sympy.Symbol("x")
    at = lambda name, k: F[name].right({"x": x, "k": k}, sympy.Rational)
    total = lambda v: sum(v.subs(sympy.Symbol("c_j"), at("c_k", k)) for k in range(5))
    return {"s_K": at("s_k", 5), "x": x, "c_j": sympy.Symbol("c_j"), "sum_J": total}


def two_layers() -> bool:
    """The roots' squares differ by nothing negative; both sums at x^2, which is the most, attain the last side."""
    import sympy

    under: list[Any] = []

    def root(v: Any) -> Any:
        under.append(v)
        return sympy.Symbol(f"root{len(under)}")

    names = {name: sympy.Symbol(name, positive=True) for name in ("x1", "x2", "y1", "y2", "x", "Lambda", "nE")}
    (_, _, first), (_, _, second), (_, _, last) = F["two_layers"].links({**names, "sqrt": root})
    roots = sympy.symbols("root1:5")
    factors = [sympy.expand(side / names["Lambda"]).coeff(one) for side, some in ((first, roots[:2]),
               (second, roots[2:])) for one in some]  # fmt: skip
    squares = [sympy.expand(factor**2 * one) for factor, one in zip(factors, under)]
    more = [sympy.Poly(squares[k + 2] - squares[k], *names.values()).coeffs() for k in (0, 1)]
    one_layer = {names["x2"]: 0, names["y2"]: 0, names["x1"]: names["x"], names["y1"]: names["x"]}
    at_most = names["Lambda"] * sum(sympy.sqrt(one.subs(one_layer)) for one in squares[2:])
    if squares[0].subs({names["x1"]: names["y1"], names["x2"]: names["y2"], names["y1"]: names["x1"],
                        names["y2"]: names["x2"]}, simultaneous=True) != squares[1]:  # fmt: skip
        return False
    at_squares = {**names, "x1": names["x1"] ** 2, "x2": names["x2"] ** 2}
    if sympy.expand(F["layers"].side(0).right(at_squares) - under[0]) != 0:
        return False
    return min(min(one) for one in more) >= 0 and sympy.expand(at_most - last) == 0


def two_steps(bound: Formula) -> Callable[[], bool]:
    """K = 2 in one dimension, U = 1, eta = 1, gradients -x and -y: E is attained."""

    def check() -> bool:
        import sympy

        lengths, U, V = sympy.symbols("x_l y_l"), sympy.Integer(1), sympy.Integer(0)
        for x in lengths:
            U, V = (F["step_U"].right({"U_k": U, "eta": 1, "g_k": -x, "V_k": V}),
                    F["step_V"].right({"V_k": V, "eta": 1, "g_kT": -x, "U_k": U}))  # fmt: skip
        names = {"x_l": lengths[0], "y_l": lengths[1], "Lambda": 1}
        return sympy.expand(U * V - sum(lengths) - bound.right(names)) == 0

    return check


CLOSED: list[Put] = ["k == K", ("c_K", F["c_k"]), ("s_K", F["s_k"])]
MOST_k, MOST_K = (Formula(text) for text in F["bent"].text.split(", ")[2:])
OVER_J: list[Put] = [("sum_J", _times_K), "c_j == s_K/(K*x)"]  # the mean of the c_j, by `telescoped`
SUMMED = every(
    exact(F["telescoped"], telescoped),
    Equal(F["closed"].side(0), F["closed"].side(1), CLOSED),
    Equal(F["telescoped"], "s_K", OVER_J),
    Equal(F["error_most"].side(1), F["error_most"].side(2), OVER_J),
    Equal(MOST_K, "Lambda*most", [("most", F["error_most"])]),
    Equal("nE", "Lambda*left", [("left", F["error_most"].side(0))]),
    Equal(MOST_k, MOST_K, ["k == K", "c_k == c_K", "s_k == s_K"]),
    Implies(["x1 >= 0", "x2 >= 0", "y1 >= 0", "y2 >= 0"], [F["layers"]]),
    two_layers,
    two_steps(F["two_steps"]),
    Equal(F["two_steps"], "Lambda*last", ["x_l == x", "y_l == x", ("last", F["at_two"])]),
    Equal(F["at_two"].side(0), F["at_two"].side(1), ["k == 2", ("c_2", F["c_k"]), ("s_2", F["s_k"])]),
)


def cubic(chain: Formula) -> Callable[[], bool]:
    """The binomial series for K up to 6; its terms against those of the exponential; and these at the largest theta.

    Every term of the last series over theta^3 grows with theta.
    """

    def check() -> bool:
        import sympy

        j, theta = sympy.Symbol("j"), F["theta_x"].right({}, sympy.Rational)
        rest = sympy.Rational(2, factorial(15))  # what follows is less than a geometric series of ratio 1/2
        for K in range(1, 7):
            x = sympy.Symbol("x")
            at = {name: F[f"{name[0]}_k"].right({"x": x, "k": K}, sympy.Rational) for name in ("c_K", "s_K")}
            odd = lambda v, K=K: sum(v.subs(j, n) for n in range(3, 2 * K, 2))
            names = {**at, "K": K, "x": x, "j": j, "binom": sympy.binomial(2 * K, j), "sum_odd": odd}
            left, right = (chain.side(n).right(names, sympy.Rational) for n in (0, 1))
            if sympy.expand(left - right) != 0:
                return False
            if not all(comb(2 * K, n) * factorial(n) <= (2 * K) ** n for n in range(3, 2 * K, 2)):
                return False
        total = lambda v: sum(v.subs(j, n) for n in range(3, 15, 2)) + rest
        names = {"theta": theta, "j": j, "fact": sympy.factorial(j), "sum_odd": total}
        series = chain.side(2).right(names, sympy.Rational)
        powers = chain.side(2).right({**names, "theta": sympy.Symbol("K") * sympy.Symbol("x") / 1, "sum_odd": _same})
        binomials = chain.side(1).right({"j": j, "x": sympy.Symbol("x"), "binom": (2 * sympy.Symbol("K")) ** j
                                         / sympy.factorial(j), "sum_odd": _same})  # fmt: skip
        alike = all(sympy.simplify((powers - binomials).subs(j, n)) == 0 for n in (3, 5))
        return alike and bool(series <= chain.side(3).right(names, sympy.Rational))

    return check


NUMBERS: list[Put] = [F["alpha"], OF_KAPPA, ("q", F["q"].side(1)), ("theta", F["theta"].side(1))]
CUBIC = every(
    cubic(F["cubic"]),
    Equal(F["ceiling_is"], "Lambda", NUMBERS),
    Equal(F["small"], "L*Lambda*most", [("Lambda", F["ceiling_is"]), ("most", F["cubic"])]),
    Equal(F["theta_x"].side(1), "theta", [F["x"], ("theta", F["theta"].side(1))]),
    Equal(F["theta_x"].side(2), F["theta"].side(2)),
)


def attained(linear: int) -> Callable[[], bool]:
    """m = n = r = 1, U = 1, gradient -B: U_K V_K - K x is the bound; K = 1..6."""

    def check() -> bool:
        import sympy

        x, U, V = sympy.Symbol("x"), sympy.Integer(1), sympy.Integer(0)
        for K in range(1, 7):
            U, V = (F["step_U"].right({"U_k": U, "eta": 1, "g_k": -x, "V_k": V}),
                    F["step_V"].right({"V_k": V, "eta": 1, "g_kT": -x, "U_k": U}))  # fmt: skip
            names = {"c_K": F["c_k"].right({"x": x, "k": K}, sympy.Rational), "K": linear * K, "x": x}
            names |= {"s_K": F["s_k"].right({"x": x, "k": K}, sympy.Rational)}
            if sympy.expand(U * V - K * x - F["error_most"].right(names)) != 0:
                return False
        return True

    return check


# 8: the round


def unrolled(moved: Formula) -> Callable[[], bool]:
    """Three local steps in numbers."""

    def values() -> Values:
        import sympy

        eta, R, grad, d_j, xi_j, E_k = sympy.symbols("eta R grad_i d_j xi_j E_k")
        d, noise = sympy.symbols("d0:3"), sympy.symbols("n0:3")
        steps = sum(F["local"].right({"W_k": 0, "eta": eta, "R": R, "g_k": grad + d[k] + noise[k]}) for k in range(3))
        total = lambda v: sum(v.subs({d_j: d[k], xi_j: noise[k]}) for k in range(3))
        names = {"eta": eta, "R": R, "grad_i": grad, "d_j": d_j, "xi_j": xi_j, "E_k": E_k, "k": 3, "sum_j": total}
        return names | {"W": 0, "W_k": steps + E_k}

    return exact(moved, values)


def _over_v(v: Any) -> Any:
    import sympy

    at = lambda name: sympy.Symbol(name, positive=True)
    return sum(v.subs(at("v_i"), at(f"v_{k}")) for k in range(1, 5))


FOUR = every(
    Equal(F["four"], " + ".join(f"sq(v_{i} - v_{j})" for i, j in combinations((1, 2, 3, 4), 2)),
          ["dots == v_2 + v_3", ("sum_v", _over_v)], gap=True),
    unrolled(F["unrolled"]),
)  # fmt: skip


def counted(*sums: Formula) -> Callable[[], bool]:
    """Sums over k < K by sympy; with K = 1 + t the bound has more by coefficients that are not negative."""

    def check() -> bool:
        import sympy

        K, k, t = sympy.symbols("K k t")
        names = {"K": K, "k": k, "sum_k": lambda v: sympy.summation(v, (k, 0, K - 1))}
        for left, sign, right in (link for one in sums for link in one.links(names, sympy.Rational)):
            more = sympy.Poly(sympy.expand((right - left).subs(K, 1 + t)), t)
            if (not more.is_zero) if sign == "==" else min(more.all_coeffs()) < 0 or more.degree() > 2:
                return False
        return True

    return check


MOST_Q = f"q <= {F['q'].side(2).text}"
GROWTH = every(
    exponential(F["growth"], {"beta": Fraction(1, 4), "K": Fraction(1), "q": Fraction(1, 4)}),
    Equal("e**(4*most**2)", F["growth"].side(3), [("most", F["q"])]),
    Equal(F["growth"].side(1), F["growth"].side(2), [("beta", F["beta"])]),
    Equal(F["beta"].side(1), F["beta"].side(2), ["Lambda == q/(K*L*eta)"]),
    Implies([], [F["third"]]),
    Equal(F["third"].side(0), "4/3*grown", [("grown", F["growth"])]),
    Fails(Implies([], [F["third"].changed("1.714", "1.713")])),
)
HALVES = every(
    Implies(["q >= 0", MOST_Q], [F["halves"]], ["eta_t == 1"], line=True),
    Equal(F["two"], "sq(a + b - z)", gap=True),
    Equal(F["polar"].side(0), F["polar"].side(1)),
)
YOUNG = every(
    Equal(F["young"], F["young_gap"], gap=True),
    Equal(F["young_G"], "sq(2*w*G - E_)/(4*w)",
          ["G2 == 1", ("w", F["young_G"].term(0)), "G2 == sq(G)"], gap=True),
)  # fmt: skip
KEPT: Put = ("kept", F["of_G"])  # -4/5
BETWEEN = ["u <= 1", "kappa >= 1", MOST_Q]
COLLECTED = every(
    Equal(F["eps_most"].changed("0.4915", "0.701**2"), "small**2", [("small", F["small"])]),
    Equal(F["eps_most"].side(0), "small**2", ["nE == eps", ("small", F["small"].side(0))]),
    Implies(BETWEEN, [F["of_G"], "eps2*of_eps <= share"],
            ["theta == 1", "B == 1", ("eps2", F["eps_most"]), ("of_eps", F["of_eps"]), ("share", F["eps_share"])],
            cleared=True),
    Implies([], ["most**2 <= eps2"],
            ["q == 1", "theta == 1", "B == 1", ("most", F["small"]), ("eps2", F["eps_most"])]),
    Fails(Implies([], ["most**2 <= eps2"], ["q == 1", "theta == 1", "B == 1", ("most", F["small"]),
                                            ("eps2", F["eps_most"].changed("0.4915", "0.4914"))])),
)  # fmt: skip
PARTS: list[Put] = [KEPT, *((name, F[name]) for name in ("in_zeta", "in_noise", "in_sampled", "eps_share"))]
QUOTIENTS = ("over_zeta", "over_noise", "over_sampled", "over_eps")
OVER: list[Put] = [(name, F[name]) for name in QUOTIENTS]
BARE: list[Put] = [f"{name} == 1" for name in ("q", "u", "zeta", "p", "nu", "K", "L", "alpha", "kappa", "N", "theta",
                                               "B")]  # fmt: skip
DIVIDED = every(
    *(Implies([], [F[name]]) for name in QUOTIENTS),
    *(Equal(F[over].side(0), f"-{part}/kept", [*BARE, *PARTS]) for over, part in zip(QUOTIENTS, (
        "in_zeta", "in_noise", "in_sampled", "eps_share"))),
    Equal(F["theorem"].term(1), "(1 - 1/K)*q**2*(over_zeta*zeta**2 + over_noise*(p*nu**2/K))", OVER),
    Equal(F["theorem"].term(2), "over_sampled*(L*alpha*kappa*p*nu**2/N)", OVER),
    Equal(F["rest"], "over_eps*(kappa*theta**2*B)**2", OVER),
    *(Fails(Implies([], [F[name].changed(old, new)])) for name, old, new in (
        ("over_zeta", "2.2", "2.1"), ("over_noise", "3.3", "3.2"), ("over_sampled", "3.2", "3.1"),
        ("over_eps", "8", "7"))),
)  # fmt: skip


def spread(formula: Formula) -> Callable[[], bool]:
    """Any number of clients, by the first two moments of their gradients."""

    def values() -> Values:
        import sympy

        m1, m2, g = sympy.symbols("m1 m2 grad_i")
        taken = lambda v: sum(c * {0: 1, 1: m1, 2: m2}[n] for (n,), c in sympy.Poly(v, g).terms())
        return {"grad_i": g, "G": m1, "G2": m1**2, "mean_i": taken}

    return exact(formula, values)


RECURSION, B_K = (Formula(text) for text in F["recursion"].text.split(", "))
SIZE: list[Put] = [OF_KAPPA, "A == 1", ("size", F["square"]), ("sq", _same), ("E", _same)]
OVER_K: Put = ("sum_k", _same)
DRIFT_STEPS = every(
    # 8.1, 2.3 of SSF's page, 6.3
    Equal(RECURSION, "four*eta**2*k*Lambda**2*L**2*sum_e + b_k",
          [("sum_j", _same), "e_j == sum_e", ("sum_v", lambda v: 1), ("four", F["four"])]),
    Equal(B_K, "four*(eta**2*k**2*size*(G2 + apart) + eta**2*k*Lambda*noise + eps**2)",
          [("sum_v", lambda v: 1), ("four", F["four"]), *SIZE, ("noise", F["noise"]), ("apart", F["apart"])]),
    spread(F["spread"]),
    INDUCTION,
    Equal(F["drift"].side(0), F["of_b"]),
    Equal(F["gronwall"], "grown*b_k", [OVER_K, ("grown", F["growth"].side(0))]),
    Equal(F["gronwall"], OF_SSF["sums"],
          ["alpha == beta", "k == K", ("sum_j", _same), OVER_K, "b_j == b_k"]),
    Equal(F["beta"].side(1), "at_K", [("sum_j", _same), "k == K", "e_j == 1", "b_k == 0", ("at_K", RECURSION)]),
)  # fmt: skip
COUNTS: list[Put] = [OVER_K, ("squares", F["squares"]), ("counts", F["counts"])]
DRIFT = every(
    Equal(B_K, "eta**2*Lambda*gamma*((G2 + zeta**2)*of_squares + p*nu**2*of_counts) + 4*eps**2",
          [OVER_K, ("of_squares", F["squares"].side(0)), ("of_counts", F["counts"].side(0))]),
    Equal(F["drift"], "Lambda*L**2/K*grown*(total + 4*eps**2*(K - 1))",
          ["eta == q/(K*L*Lambda)", ("grown", F["growth"]), *COUNTS,
           "total == eta**2*Lambda*gamma*((G2 + zeta**2)*squares + p*nu**2*counts)"]),
)  # fmt: skip
SQUARES: list[Put] = [("sq", _same), ("E", _same)]
DESCENT = every(
    Equal(F["descent"], "halves + young_G + L/2*young",
          [*SQUARES, "E_ == eps**2", "y == 0", *((name, F[name]) for name in ("halves", "young_G", "young"))]),
    Equal(F["halves"].side(0).term(1), "L/2*young*eta_t**2*Lambda",
          [("sq", lambda v: 1), "E_ == 0", ("young", F["young"].term(0)), "Lambda == q/(L*eta_t)"]),
)  # fmt: skip
UNITS: list[Put] = [*SQUARES, "eta_t == K*eta", F["alpha"], OF_KAPPA, "Lambda == q/(K*L*eta)"]
DROPPED: list[Put] = [*SQUARES, KEPT, ("unit", F["unit"])]
ROUND = every(
    Equal(F["descent"], "unit*(of_G*G2 + in_zeta + in_noise + in_sampled + of_eps*eps**2*L**2)",
          [*UNITS, ("drift", F["drift"].changed("4/3", "1.714/1.285")), "D == drift/(Lambda*L**2)", "u == 1 - 1/K",
           *((one, F[f"of_{one}"]) for one in ("a", "b", "z")), OF_KAPPA, ("unit", F["unit"]),
           ("of_G", F["of_G"].side(0)), *PARTS[1:4], ("of_eps", F["of_eps"])]),
    Equal(F["round"], "F0 + kept*unit*(grad - X)", DROPPED),
    Equal(F["divisor"], "-T*kept*unit", DROPPED),
    Equal(F["theorem"].term(0), "gap/divisor", [("divisor", F["divisor"])]),
    Implies([*EIGEN, "v >= 0", "v <= D"], ["lam*v <= most"], ["L == 1", ("most", F["of_b"])]),
    Equal(F["of_a"], "G2*size", ["size == gamma"]),
    Equal(F["of_z"], "noise/(N*K)", [*SQUARES, ("dot", lambda a, b: a), ("noise", F["noise"])]),
)  # fmt: skip


# 9: corollaries


def alike_way(way: Formula) -> Implies:
    return Implies(["theta >= 0", "theta <= 1/2"], ["most <= linear"],
                   ["Lambda == 1", ("most", way.side(2)), ("linear", way.side(3))])  # fmt: skip


ALIKE_AT: list[Put] = [F["alike_B"], ("step", F["alike_step"]), "eta == step/(K*nG)", ("theta", F["theta"].side(1)),
                       "G2 == nG**2"]  # fmt: skip
ALIKE_LEFT: list[Put] = ["G2 == 1", KEPT, ("lost", F["alike_lost"]), ("unit", F["unit"])]
ALIKE_RATE = "gap/(T*unit*(-kept - lost)) <= bound"
ALIKE = every(
    alike_way(F["alike_way"]),
    Fails(alike_way(F["alike_way"].changed("1.1753", "1.1752"))),
    Equal(F["alike_way"].side(2), "Lambda*(theta + most)", [("most", F["cubic"])]),
    Equal(F["alike_way"].side(1), "Lambda*product", [*CLOSED, "c_k == c_K", "s_k == s_K", "product == c_K*s_K"]),
    Implies([MOST_Q], [F["alike_stays"]], ["nG == 1"]),
    Equal(F["alike_stays"].side(0), "nG + L*way", [F["alike_B"], ("Lambda", F["ceiling_is"]), ("way", F["alike_way"])]),
    Equal(F["alike_stays"].side(1), F["alike_B"]),
    Implies(["kappa >= 1", "kappa == root**2"], [f"theta <= {F['theta'].side(2).text}"],
            [("sqrt", lambda v: v), "kappa == root", *ALIKE_AT], cleared=True),
    Equal(F["alike_lost"].side(0), F["eps_share"], ALIKE_AT),
    arithmetic(F["alike_lost"], lambda: {"G2": Fraction(1)}),
    Fails(arithmetic(F["alike_lost"].changed("0.168", "0.167"), lambda: {"G2": Fraction(1)})),
    Implies([], [ALIKE_RATE], [*ALIKE_LEFT[:1], KEPT, "lost == 0.168", *ALIKE_LEFT[3:], ("bound", F["alike"])],
            cleared=True),
    Equal("lost", F["alike_lost"].side(1), ["lost == 0.168", "G2 == 1"]),
    Fails(Implies([], [ALIKE_RATE], [KEPT, "lost == 0.168", ("unit", F["unit"]),
                                     ("bound", F["alike"].changed("3.2", "3.1"))], cleared=True)),
)  # fmt: skip


def contracts(formula: Formula, less: str, where: list[Put], steep: Formula = F["steep"]) -> Implies:
    """Above what noise leaves, the gap falls by the factor of the formula."""
    return Implies([steep], ["after - rest <= factor*(F0 - rest)"],
                   ["fstar == 0", *where, ("after", less), ("factor", formula.term(0).changed("**T*gap", "")),
                    ("rest", formula.term(1))], cleared=True)  # fmt: skip


CONTRACTS = every(
    contracts(F["contracts"], "round", [("round", F["round"])]),
    Fails(contracts(F["contracts"], "round", [("round", F["round"])], F["steep"].changed("2*mu", "19/10*mu"))),
    contracts(F["contracts_one"], "round", ["G2 == sq(grad)", ("round", F["descent_one"])]),
    Equal(F["best_one"], F["contracts_one"].term(0).changed("**T*gap", ""), ["alpha == 1/(L*c)"]),
    Equal(F["steps_several"], "most/(L*kappa)", [("most", F["q"])]),
    Implies([], ["best <= 1"], [("best", F["best_one"])], cleared=True),
)
PART: list[Put] = ["alpha == 1", "K == 1", "T == 1", ("part", F["divisor"])]
INTERVAL = every(
    Implies(["a1 >= 0", "a2 >= 0", "f1 <= f0 - part*(G - X)", "f2 <= f1 - part*(a1 - X1)",
             "f3 <= f2 - part*(a2 - X1)"], ["G <= bound"],
            [*PART, "J == 1", "tau == 3", "gap == f0 - f3", ("bound", F["interval"])]),
    Equal(F["dropped"].side(0), "-part/gamma*sq(Rh*G)", ["alpha == eta*gamma", "T == 1", ("part", F["divisor"])]),
    Implies(["eta >= 0", "K >= 0"], [F["dropped"]], line=True),
    Equal(F["dropped"].side(1), "0"),
    Implies([*EIGEN, "apart >= 0"], ["lam*apart <= Lambda*apart"]),
    spread(F["spread"]),
)  # fmt: skip


# 10: what a reset buys


def left_over(aad: Formula) -> Callable[[], bool]:
    """E|(I - eta R)^K W|^2 over random coordinates, AAD and frozen; K = 1, 2, layers of 2 x 2 and 3 x 2."""

    def check() -> bool:
        import sympy

        eta = sympy.Symbol("eta")
        for (m, n, r), K in product(((2, 2, 1), (3, 2, 1), (3, 2, 2)), (1, 2)):
            W, names = _matrix("w", m, n), {"rho": sympy.Rational(r, m), "rho1": sympy.Rational(r, n)}
            names |= {"eta": eta, "K": K}
            rows, cols = list(combinations(range(m), r)), list(combinations(range(n), r))
            both = frozen = 0
            for S, (i, j) in product(rows, product(range(m), range(n))):
                frozen += (1 - eta * int(i in S)) ** (2 * K) * W[i, j] ** 2 / len(rows)
                for T in cols:
                    left = (1 - eta * (int(i in S) + int(j in T))) ** (2 * K) * W[i, j] ** 2
                    both += left / len(rows) / len(cols)
            gaps = (both - aad.right(names) * squared(W), frozen - F["left_freeze"].right(names) * squared(W))
            if any(sympy.expand(gap) != 0 for gap in gaps):
                return False
        return True

    return check


def projected(flips: bool, exchanges: bool = True) -> Callable[[], bool]:
    """The mean of S M S^T over exchanges and changes of sign S of the rows, M symmetric of trace E rank U; m = 2, 3.

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
            wanted = F["mean_Pi"].right({"Erank": M.trace(), "m": sympy.Integer(m), "I": sympy.eye(m)})
            if (total / count - wanted).applyfunc(sympy.expand) != sympy.zeros(m, m):
                return False
        return True

    return check


STILL: list[Put] = ["eta == 1"]  # what is in the range is gone
SATURATES = every(
    projected(True),
    Equal(F["least_freeze"], F["left_freeze"], STILL),
    Equal(F["least_aad"], F["left_aad"].changed("(1 - 2*eta)", "(1 - eta)"), STILL),
)
SHARES: list[Put] = ["rho == r/m", "rho1 == r/n"]
COMPARED = every(
    Implies(["m >= 1", "r >= 1", "chi >= 1"], ["least <= best"],
            ["rho == r/m", ("least", F["least_freeze"]), ("best", F["once"])], cleared=True),
    Equal(F["once"], "1 - removed", [F["price"], ("removed", F["removed"])]),
    Equal(F["once"].side(0), F["once"].side(1), [F["price"]]),
    Equal(F["equal_freeze"], "1 - rank/m", [("rank", F["equal_rank"]), *SHARES]),
    Equal("aad - freeze", F["equal_more"], [("aad", F["least_aad"]), ("freeze", F["equal_freeze"])]),
    Equal(F["saturates"], "least**2*sq(W_0)", ["draws == 2", ("least", F["least_aad"])]),
)  # fmt: skip


def tails(more: int) -> Callable[[], bool]:
    """Four singular values, sum p_j = 4 - r, r = 1, 2, 3. `more`: of the singular values behind the r-th."""

    def check() -> bool:
        import z3

        s, p = z3.Reals("s1 s2 s3 s4"), z3.Reals("p1 p2 p3 p4")
        s_j, p_j = z3.Reals("s_j p_j")
        summed = lambda over: lambda v: z3.Sum([z3.substitute(v, (s_j, s[k]), (p_j, p[k])) for k in over])
        for r in (1, 2, 3):
            given = [s[3] >= 0, sum(p) == 4 - r, *(s[k] >= s[k + 1] for k in range(3))]
            given += [one >= 0 for one in p] + [one <= 1 for one in p]
            names = {"s_j": s_j, "p_j": p_j, "s_r": s[r - 1], "sq": _same, "H": z3.Real("H"), "Y": z3.Real("Y")}
            names |= {"sum_all": summed(range(4)), "sum_less": summed(range(r)), "sum_more": summed(range(r - more, 4))}
            names["HQ"] = F["eckart_form"].right(names | {"HQ": 0}, z3.RealVal)
            (_, _, least), (_, _, last) = F["eckart"].links(names, z3.RealVal)
            links = F["tails"].links(names, z3.RealVal)
            chain = [a == b if sign == "==" else a >= b for a, sign, b in links]
            if not implies(given, z3.And(least >= last, *chain)).holds:
                return False
        return True

    return check


def distance(sign: int) -> Callable[[], bool]:
    """|t p - e|^2 - (|e|^2 - <e, p>^2/|p|^2) is the square |p|^2 (t - <e, p>/|p|^2)^2: no point of a line is nearer."""

    def check() -> bool:
        import sympy

        t, p, e = sympy.Symbol("t"), sympy.symbols("p:2"), sympy.symbols("e:2")
        size, along = sum(one**2 for one in p), sum(a * b for a, b in zip(p, e))
        left = sum((t * a - b) ** 2 for a, b in zip(p, e)) - (sum(one**2 for one in e) - along**2 / size)
        return sympy.simplify(left - size * (t + sign * along / size) ** 2) == 0

    return check


NEAREST: list[Put] = ["W == d", "Ws == 0"]
WELL = ["mu > 0", "L >= mu", F["well"]]
FIXED = every(
    Implies([*WELL, "sq(W - Ws) >= d**2"], ["F0 >= low"], [("low", F["well_low"])]),
    Implies([*WELL, "sq(W - Ws) == d**2"], ["F0 <= high"], [("high", F["well_high"])]),
    Equal(F["well_high"], "fstar + most", [*NEAREST, ("most", F["well"])]),
    Equal(F["well_low"], "fstar + most", [*NEAREST, ("most", F["well"].side(0))]),
    Equal(F["far"], "least*sq(Ws - W_0)", [("least", F["least_aad"])]),
    distance(-1),
)

STEPS = [
    Step("mud.1.1", "identity", "both gradients of the factors, and that of f", resting(0), resting(1),
         "U in the second row"),
    Step("mud.1.2", "identity", "a matrix of 2 x 2, both eigenbases turned by any angle",
         every(exact(F["pulled"], pulled), eigenbases(True)), eigenbases(False), "G in place of P^T G Q"),
    Step("mud.1.3", "implication", "term by term, for all eigenvalues and entries", LEMMA_1,
         {"(min_a + min_b)": "(min_a + b_k)"}, "another eigenvalue of Z"),
    Step("mud.1.4", "identity", "every U of 3 x 2 with independent columns", unseen(True), unseen(False),
         "x a column of U"),
    Step("mud.1.5", "identity", "a matrix of 2 x 3, r = 2, all entries", partners(True), partners(False),
         "the trained factors in place of their partners", ("mud.aad.any_product",)),
    Step("mud.1.6", "arithmetic", "both sides at m = 64, as fractions; Bernoulli's inequality from T to T + 1",
         every(passed(F["fresh_ratio"]), BERNOULLI), passed(Formula("14.2")), "14.2 times"),
    Step("mud.2.1", "identity", "a matrix of 2 x 3, r = 1", one_step(F["move"]),
         one_step(F["move"].changed("eta", "2*eta")), "twice the step"),
    Step("mud.2.2", "identity", "a matrix of 2 x 3, r = 1", one_step_aad(F["move_aad"]),
         one_step_aad(F["move_aad"].changed("A*VVt_", "2*A*VVt_")), "one side twice", ("mud.eq8-9",)),
    Step("mud.3.1", "expectation", "all m, r up to 3, entries of any law with mean 0; two moments of U(-a, a)", MEAN,
         moment(F["first_moment"].changed("r", "2*r")), "twice as much"),
    Step("mud.3.2", "expectation", "all m, r up to 3; both sides are polynomials of degree 1 in m and 2 in r, which "
         "nine values decide", SECOND, moment(F["second_moment"].changed("chi - 2", "chi - 1")),
         "chi - 1 instead of chi - 2", ("mud.sharper.reset",)),
    Step("mud.3.3", "expectation", "m, n up to 2, r up to 3; degree 1 in m and n, 2 in r",
         every(both(F["mixed"]),
               Equal(F["price_both"].side(0), F["price_both"].side(1), [F["gamma_aad"], F["price_aad"]])),
         both(F["mixed"].changed("r**2", "r")), "r instead of r^2"),
    Step("mud.4.1", "implication", "for L alpha c <= 1 and all second moments", RATE, {"alpha/2*G2": "3/5*alpha*G2"},
         "3/5 instead of 1/2"),
    Step("mud.5.1", "identity", "the two prices at m = n", HALVED, {"+ 1/2": "+ 0"}, "half, without the rest"),
    Step("mud.5.2", "expectation", "random coordinates, four shapes; of any law only E Pi, E Pi' and independence are "
         "used", ORTHONORMAL, orthonormal(F["orthonormal_aad"].changed("2*r", "r")), "half of the mixed product"),
    Step("mud.5.3", "expectation", "W with two rows, r = 1, entries of any law; for all steps", BOWL,
         bowl(F["bowl"].changed("alpha**2*c", "alpha**2*(c + 1)")), "c + 1"),
    Step("mud.6.1", "identity", "two clients, two steps, any gradients, layers of 2 x 2; AAD and a frozen factor",
         every(affine("aad"), affine("freeze")), affine("mud"), "the product U V^T in place of AAD", ("mud.eq8-9",)),
    Step("mud.6.2", "identity", "all matrices of 2 x 2", symmetric(F["form"]),
         symmetric(F["form"].changed("+", "-")), "minus"),
    Step("mud.6.3", "implication", "for every eigenvalue between 0 and Lambda", CEILING, {"Lambda*lam": "lam*lam/2"},
         "half of it"),
    Step("mud.6.4", "identity", "all sides, ranks and scales", LAWS, {"a**2/3": "a**2/2"}, "a variance of a^2/2"),
    Step("mud.7.1", "implication", "from k to k + 1, for all norms, and the recursion of c and s as an identity",
         every(RISES, DRIFTS, START), {"x*s_k": "x*c_k"}, "c and s exchanged"),
    Step("mud.7.2", "identity", "two clients, three steps, any gradients, a layer of 2 x 1; and one client",
         every(bent(F["error"], 2), bent(F["error"], 1)),
         bent(F["error"].changed("- eta*U*sum_late(lateT*g_j)", ""), 2), "without the second term",
         ("mud.sharper.bent",)),
    Step("mud.7.3", "identity", "all K and x; two layers and two steps", SUMMED, {"1/4": "1/5"}),
    Step("mud.7.4", "arithmetic", "partial sums as fractions, what is left of the series; binomials for K up to 6, a "
         "binomial times j! being j factors of at most 2K for every K", CUBIC,
         cubic(F["cubic"].changed("0.701", "0.700")), "0.7"),
    Step("mud.7.5", "identity", "K up to 6, all x; the recursion is that of 7.1", attained(1), attained(2), "2 K x"),
    Step("mud.8.1", "identity", "in every coordinate; three local steps in numbers", FOUR, {"4*sum_v": "3*sum_v"},
         "3 instead of 4"),
    Step("mud.8.2", "identity", "all K, by the coefficients in K - 1", counted(F["squares"], F["counts"]),
         counted(F["squares"].changed("K**2*(K - 1)", "K**2*(K - 2)")), "K - 2"),
    Step("mud.8.3", "arithmetic", "the exponential series as fractions", GROWTH,
         exponential(F["growth"].changed("1.285", "1.284"), {"beta": Fraction(1, 4), "K": Fraction(1),
                                                             "q": Fraction(1, 4)}), "1.284"),
    Step("mud.8.4", "implication", "q <= 1/4, in every coordinate", HALVES, {"q <= 1/4": "q <= 1/2"}),
    Step("mud.8.5", "identity", "in every coordinate; G and E stand for the two norms", YOUNG, {"5*sq(E_)": "4*sq(E_)"},
         "4 instead of 5"),
    Step("mud.8.6", "implication", "all q <= 1/4, kappa >= 1 and K", COLLECTED, {"4/5": "81/100"}, "0.81"),
    Step("mud.8.7", "arithmetic", "four quotients, the numbers of the theorem", DIVIDED, {"2.2": "2.1"},
         "2.1 instead of 2.2", ("mud.sharper.local",)),
    Step("mud.8.8", "identity", "the recursion from its parts, the induction by sympy", DRIFT_STEPS,
         {"4*eta**2*Lambda**2*L**2*k": "3*eta**2*Lambda**2*L**2*k"}),
    Step("mud.8.9", "identity", "the sums of 8.2, divided", DRIFT, {"1.285": "1.284"}),
    Step("mud.8.10", "identity", "the sum of 8.4 and 8.5", DESCENT, {"5/2*L": "2*L"}),
    Step("mud.8.11", "identity", "the claims put in, in units of K alpha/2", ROUND, {"5.14": "5.15"}),
    Step("mud.9.1", "arithmetic", "1.6 of the gradient, as fractions", ALIKE, {"1.6*q)*nG <= 1.6": "1.4*q)*nG <= 1.4"},
         "1.4"),
    Step("mud.9.2", "implication", "all gaps, gradients and steps", CONTRACTS, {"4/5": "5/4"}),
    Step("mud.9.3", "implication", "three rounds; each round more adds a line", INTERVAL, {"(tau - 1)": "(tau - 2)"},
         "the last round without X'"),
    Step("mud.10.1", "expectation", "random coordinates, three shapes, one and two steps; the left side is linear in "
         "each projection, and a function of three eigenvalues", left_over(F["left_aad"]),
         left_over(F["left_aad"].changed("2*eta", "eta")), "1 - eta where both projections act",
         ("mud.sharper.saturates",)),
    Step("mud.10.2", "expectation", "every symmetric matrix of 2 or 3 rows, all exchanges and signs",
         SATURATES, either(projected(False), projected(True, exchanges=False)),
         "exchanges alone, and signs alone"),
    Step("mud.10.3", "identity", "all shares; the first part for all m, r, chi at least 1", COMPARED,
         {"rho*rho1": "2*rho*rho1"}),
    Step("mud.10.4", "implication", "four singular values, ranks 1 to 3; p_j is the share of the j-th direction in Q",
         tails(0), tails(1), "one singular value more"),
    Step("mud.10.5", "implication", "both bounds, for all mu <= L; the nearest point of a line in the plane", FIXED,
         {"mu/2*sq": "mu/4*sq"}),
]  # fmt: skip
