"""SSF, the repaired Theorem 1: the steps of docs/theory/ssf.md. G = grad F(x), P a round's projector, as there.

The formulas stand in formulas.py. A check here quotes no constant of the page that a formula has.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from fedtheory.theory.formula import Formula
from fedtheory.theory.proof import Equal, Fails, Implies, Step, every
from fedtheory.theory.search import same
from fedtheory.theory.ssf.formulas import FORMULAS as F

# 1: the round


def _vectors(sympy: Any, names: str, count: int, d: int = 2) -> list[Any]:
    return [sympy.Matrix(sympy.symbols(f"{names}{i}_:{d}")) for i in range(count)]


def controls(weight: int = 1) -> Callable[[], bool]:
    """c^{t+1} is the mean of the c_i^{t+1} again, for any linear map instead of P. `weight`: of the second."""

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
        drawn = {"g_bar": sum(g, sympy.zeros(2, 1)) / 4, "xi_bar": sympy.zeros(2, 1)}  # the noise is in g
        return sympy.expand(moved - F["move"].right({"x": x, "eta": eta, "P": P, **drawn})) == sympy.zeros(2, 1)

    return check


def unrolled(times: int = 1) -> Callable[[], bool]:
    """Three local steps, one dimension of the subspace: y^3 - x. `times`: how often d enters a step."""

    def check() -> bool:
        import sympy

        lr, P, d, a_j, xi_j = sympy.symbols("lr P d a_j xi_j")
        a, noise = sympy.symbols("a0:3"), sympy.symbols("n0:3")
        y = sympy.Integer(0)
        for k in range(3):
            y = y - lr * P * (a[k] + times * d + noise[k])
        total = lambda v: sum(v.subs({a_j: a[k], xi_j: noise[k]}) for k in range(3))
        names = {"lr": lr, "P": P, "d": d, "a_j": a_j, "xi_j": xi_j, "k": 3, "sum_j": total}
        return sympy.expand(y - F["unrolled"].right(names)) == 0

    return check


# 2: drift; what other pages use, too, is a check by name


TWO = Equal(F["halves"], "sq(u - v)", gap=True)


def sums(bound: Formula) -> Callable[[], bool]:
    """k sum a^2 - (sum a)^2 is a sum of squares: one more, b, adds sum_j (a_j - b)^2. s1, s2: sums of a and of a^2."""

    def check() -> bool:
        import sympy

        k, b, s1, s2, a = sympy.symbols("k b s1 s2 a")

        def gap(k: Any, s1: Any, s2: Any) -> Any:
            names = {"k": k, "aj": a, "sq": lambda v: v**2, "sum_j": lambda v: {a: s1, a**2: s2}[v]}
            ((left, _, right),) = bound.links(names, sympy.Rational)
            return right - left

        return same(gap(k + 1, s1 + b, s2 + b**2) - gap(k, s1, s2), s2 - 2 * b * s1 + k * b**2)

    return check


CAUCHY, NOT_CAUCHY = sums(F["cauchy"]), sums(F["cauchy"].changed("k", "(k - 1)"))


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


def gronwall(bound: Formula) -> Callable[[], bool]:
    """The bound at k + 1 less one step of the recursion from that at k is ((1 + alpha)^(k+1) - 1) b_k."""

    def check() -> bool:
        import sympy

        alpha, k, B, b = sympy.symbols("alpha k B b", positive=True)
        at = lambda k, B: bound.right({"alpha": alpha, "k": k, "b_j": B, "sum_j": lambda v: v}, sympy.Rational)
        step = F["gronwall"].right({"alpha": alpha, "S_k": at(k, B), "b_k": b}, sympy.Rational)
        return same(sympy.powsimp(sympy.expand(at(k + 1, B + b) - step)), ((1 + alpha) ** (k + 1) - 1) * b)

    return check


INDUCTION, NOT_INDUCTION = gronwall(F["sums"]), gronwall(F["sums"].changed("(1 + alpha)**k", "alpha**k"))


def counted(*bounds: Formula) -> Callable[[], bool]:
    """Sums over k < K against their bounds for K >= 1: with K = 1 + t the difference has no negative coefficient.

    And its degree is less than the bound's: the leading term is the sum's own.
    """

    def check() -> bool:
        import sympy

        K, k, t = sympy.symbols("K k t", positive=True)
        names = {"K": K, "k": k, "sum_k": lambda v: sympy.summation(v, (k, 0, K - 1))}
        for bound in bounds:
            ((left, _, right),) = bound.links(names, sympy.Rational)
            more = sympy.Poly(sympy.expand((right - left).subs(K, 1 + t)), t)
            if min(more.all_coeffs()) < 0 or more.degree() >= sympy.degree(right, K):
                return False
        return True

    return check


class _E:
    """The base of the exponential: a power of it is a number that is a little more, by five terms of the series."""

    def __pow__(self, x: Fraction) -> Fraction:
        term, total = Fraction(1), Fraction(0)
        for n in range(5):
            total += term
            term *= x / (n + 1)
        return total + term / (1 - x)  # the rest, by a geometric series


def exponential(growth: Formula, at: Mapping[str, Fraction] | None = None) -> Callable[[], bool]:
    """The chain of inequalities at K = 1 and alpha = 1/25, the largest; or `at` other numbers."""

    def check() -> bool:
        numbers = at or {"alpha": F["alpha_K"].right({}), "K": Fraction(1)}
        return all(a <= b for a, _, b in growth.links({**numbers, "e": _E()}))

    return check


GROWTH = every(
    exponential(F["growth"]),
    Equal("grown*b_j", F["sums"], [("grown", F["growth"].side(0)), "k == K", ("sum_j", lambda v: v)]),
    Equal("alpha*K", F["alpha_K"].side(1), [F["alpha"]]),
    Equal(F["alpha_K"].side(1), F["alpha_K"].side(2), [f"lr == {F['local'].side(1).text}/(K*L)"]),
    Equal(F["third"]),
)


def pulls(mean: bool) -> Callable[[], bool]:
    """(1/N) sum |u_i - u + G|^2 = m2 - |u|^2 + |G|^2 for u = m1, the moments m1 = (1/N) sum u_i, m2 of any N."""

    def check() -> bool:
        import sympy

        m1, m2, G, other, u_i = sympy.symbols("m1 m2 G o u_i")
        u = m1 if mean else other
        taken = lambda v: sum(c * {0: 1, 1: m1, 2: m2}[n] for (n,), c in sympy.Poly(v, u_i).terms())
        d = F["pull"].right({"u_i": u_i, "u": u, "G": G})
        names = {"d": d, "mean_i": taken, "sq": lambda v: v**2, "C": m2, "u": u, "G2": G**2}
        (left, _, middle), (_, _, right) = F["pulls"].links(names)
        return sympy.expand(left - middle) == 0 and sympy.expand(right - middle - u**2) == 0

    return check


def two(u: Any, v: Any) -> Any:
    """What 2.2 makes of two squares."""
    return F["halves"].right({"u": u, "v": v, "sq": lambda x: x})


BOUNDED = F["recursion"].side(1)
SUMMED = Formula("lr**2*(rho*sq(d)*squares + sigma**2*counts)")
RECURSION = every(
    Equal(BOUNDED, "lr**2*two(two(k*L**2*S_k, k**2*rho*sq(d)), k*sigma**2)", [("two", two)]),
    Equal(F["recursion"], "bounded + (1 - k/K)*alpha*S_k",
          [F["alpha"], ("bounded", BOUNDED), ("b_k", BOUNDED.changed("S_k", "0"))]),
    Equal(BOUNDED.changed("S_k", "0"), SUMMED,
          [("sum_k", lambda v: v), ("squares", F["squares"].side(0)), ("counts", F["counts"].side(0))]),
    Equal(F["drift"], "growth/K*summed",
          [("growth", F["growth"]), ("squares", F["squares"]), ("counts", F["counts"]), ("sq", lambda d: d),
           ("d", F["pulls"]), ("summed", SUMMED)]),
)  # fmt: skip


# 3: descent; in units of L = 1


def _line(s: Any) -> Any:
    import sympy

    return F["smooth"].right({"L": sympy.Symbol("L", positive=True), "s": s, "sq": lambda v: v**2})


def _integral(v: Any) -> Any:
    import sympy

    u = sympy.Symbol("u", positive=True)
    return sympy.integrate(v, (u, 0, 1))


UNIT = ["L == 1", "eta == h"]
SMOOTH = Equal(F["smooth"].side(-2), F["smooth"].side(-1), [("int01", _integral)])
# 3.1 for s = -eta (a + b + n), less the product of a and n, whose mean is 0
MOVED = Equal(F["split"], "-eta*a*(a + b) + smooth - L*eta**2*a*n", ["s == eta*(a + b + n)", ("smooth", F["smooth"])])


def halved(back: str, square: str, right: str) -> Any:
    """3.3: the split with a bound on -2 <a, b>, whose sides differ by a square, is at most the right side."""
    put = [*UNIT, ("split", F["split"]), ("most", F[right])]
    return every(
        Implies(["h > 0", "h <= 1", F[back], F["ahead"]], ["split <= most"], put),
        Equal(F[back], square, gap=True),
        Equal(F["ahead"], "sq(b - n)", gap=True),
    )


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


# One step more in 3.7: W is the sum of tau_k (beta_k - v_k), V that of v_k, T that of C^k, so far. m = lr W and
# T = -W - V stay so, as m goes to m - lr (C + v) and W to (1 - lr L) W + beta - v.
SOLVED = Equal(
    "m - lr*(C + v) + other*(T + C)", "lr*more - other*(more + V + v)",
    ["m == lr*W", "T == -W - V", "C == L*m - beta", "more == (1 - lr*L)*W + (beta - v)"],
)  # fmt: skip


# What stands before tau_k beta_i^k: from (L/2)|s|^2 by 3.7, and from 3.5 with the weight h tau_k/K
CANCELLED = Equal("L/2*eta**2*(2/(N*K)**2)", "L*eta/(N*K)*(eta/(N*K))")


THROUGH = Equal(
    F["through"],
    # from y to x^+ upwards; F_i(y) - F_i(x) by the point x + w, from x to it upwards, from y to it downwards
    "Fi0 + grad*w + smooth(w) - (grad + a)*(w - u) + smooth(w - u) + (grad + a)*(s - u) + smooth(s - u)",
    [F["rest"], ("w", F["third_point"]), ("smooth", _line)],
)
WEIGHTED = Equal(
    F["weighted"],
    "through",
    [
        ("over_ik", lambda v: v),
        "tau_k == 1",
        "b_ik == b",
        "u_ik == u",
        "Fi0 == F0",
        "Gs == grad*s",
        ("through", F["through"]),
    ],
)
POINTWISE = Equal(F["pointwise"], F["left_over"], [F["rest"].changed("L*u", "u")], gap=True)
# -<g, p> + |p|^2 h/2 and the mean of 3.9, where p - g is the mean of the a; their squares cancel by 2.3
REMAINS = Equal(
    F["remains"],
    "polar - 1/2*sq(p - g) + h/2*sq(p) + pointwise",
    [("polar", F["polar"]), "u == 0", "a == p - g", ("pointwise", F["pointwise"])],
)
HALF = Implies(
    ["h > 0", F["half"]], ["remains <= quarter"], [("remains", F["remains"]), ("quarter", F["quarter"])], line=True
)
LONG_STEPS = Implies(
    ["h > 0", "h <= 1", "K >= 1", "N >= 1", "lr >= 1", "D >= 0"],
    ["product <= more", "h*(rest + more) <= claim"],
    [*UNIT, "rho == 1", "F0 == 0", "G2 == sq(g)", ("product", F["long_product"].side(1)), ("more", F["long_product"]),
     ("rest", F["long_remains"]), ("claim", F["lemma3"])],
)  # fmt: skip
LONG = every(
    LONG_STEPS,
    Equal(F["cross"], "sqrt(N*(K - 1)*total*v)",
          [("sum_iK", lambda v: v), ("sum_ik", lambda v: v), "e_ik == total", ("v", F["v_most"])]),
    Equal(F["long_product"].side(1), "h/(N*K)**2*cross",
          [("sum_ik", lambda v: v), "e_ik == N*K*D", ("cross", F["cross"])]),
    Equal(F["long_product"].side(1), F["long_product"].side(2), ["K == 2", "N == 1", "lr == 1"]),
    Equal(F["long_remains"], "polar + 1/2*(D - sq(p - g)) + 1/2*h*sq(p) + 1/2*h*noise",
          [("polar", F["polar"]), ("noise", F["noise"])]),
)  # fmt: skip
FIRST = Equal(
    F["descent"],
    "F0 + split",
    [("sq", lambda v: v), "a == rho*G2", "b == L**2*D", ("n", F["noise"]), ("split", F["split_at_most"])],
)
SECOND = Equal(
    F["lemma3"], "F0 + h*(quarter + drift) + 1/2*L*eta**2*noise",
    [*UNIT, ("sq", lambda v: v), "g == rho*G2", "u == D", "p == 0", "a == 0", ("quarter", F["quarter"]),
     ("drift", F["pointwise"]), ("noise", F["noise"])],
)  # fmt: skip


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


RHO = ["rho > 0", "rho <= 1"]
YOUNG = Equal(F["young"], "sq(s*v - w/s)", ["beta == s**2"], gap=True)
CONSTANTS = every(
    Implies(RHO, [F["lost"], F["factor"], F["inverse"]]),
    Equal(F["lost"].side(0), "(1 + beta)*(1 - rho)", [F["beta"]]),
    Equal(F["factor"].side(0), "1 + beta", [F["beta"]]),
    Equal(F["inverse"].side(0), "1 + 1/beta", [F["beta"]]),
    Equal(F["second_weight"], "(1 + 1/beta)*L**2", [F["beta"]]),
)
SQUARE = Implies(
    ["2*ab <= a2 + b2", "2*(an + bn) <= a2 + b2 + 2*ab + sigma**2", "a2 >= 0", "b2 >= 0"],
    ["a2 + b2 + sigma**2 + 2*ab + 2*an + 2*bn <= moved"],
    ["eta == 1", "L == 1", "rho == 1", "N == 1", "K == 1", "G2 == a2", "D == b2", ("moved", F["moved"])],
)
PARTS = every(SQUARE, Equal(F["moved"].side(1), "eta**2*sq(a + b + n)"))
FRESH = Formula(F["fresh"].text.replace("sum_all(E(sq(y_k - x)))", "(K*D)"))
REFRESHED = every(
    Equal(FRESH, "two(sigma**2/K, L**2*K*D/K)", [("two", two)]),
    Equal(F["memories"], "lost*C + factor*fresh + inverse*L**2*moved",
          [("lost", F["lost"]), ("factor", F["factor"]), ("inverse", F["inverse"]), ("fresh", FRESH),
           ("moved", F["moved"])]),
)  # fmt: skip


# 5: the potential; q = (K L eta_l)^2, h = L eta, u = h^2/rho


BOX = "q > 0, 100 q <= 1, 0 <= u <= 1/8, 0 < rho <= 1"
ADMITTED = ["q > 0", "q <= 1/100", "u >= 0", F["u_most"]]
ONE = ["rho == 1", "eta == 1"]  # both sides have rho eta
DRIFTED = [("q", F["q"].side(1)), F["u"], ("D", F["drift"])]


def in_box(then: str, B: str = "B", more: Sequence[Formula | str] = ()) -> Implies:
    """What 5.3 to 5.5 say, for all admitted q and u."""
    return Implies([*ADMITTED, *more], [F[then]], [*ONE, F[B]])


STEP_SIZES = every(
    Implies([*RHO, "h > 0", "u*rho == h**2", F["steps"]], [F["u_most"], F["h_most"], "h <= 1"]),
    Implies([*RHO, "h > 0", "u*rho == h**2", F["short_steps"]], [F["u_most"]]),
    *(Equal(F[one].side(-1), F["steps"].side(1)) for one in ("server", "server_most", "longest", "H")),
    Equal(F["printed_steps"], F["short_steps"]),
    Equal("limit**2", F["q"], [("limit", F["local"])]),
    Equal(F["u"], "h**2/rho"),
)
ASSEMBLED = every(
    Equal(
        "EF1 + M*C1", "F0 + M*C + of_G*G2 + of_C*C + of_noise*L**2*eta*K*lr**2*sigma**2 + L*eta**2*sigma**2/(N*K)",
        [F["h"], *DRIFTED, F["weight_q"], ("EF1", F["descent"]), ("C1", F["memories"]),
         F["B"].changed("5/8", "(1 + h)/2"), ("of_G", F["of_G"].side(0)), ("of_C", F["of_C"].side(0)),
         ("of_noise", F["of_noise"].side(0).changed("12*u", F["noise_N"].text))],
    ),
    Equal(F["weight"], F["weight_q"], [("q", F["q"].side(1))]),
)  # fmt: skip
POTENTIAL = "(Phi_0 + T*noise)/divisor"
SUMMED_UP = every(
    Equal(F["round"], "Phi + of_G*G2 + of_noise*L**2*eta*K*lr**2*sigma**2 + L*eta**2*sigma**2/(N*K)",
          [("of_G", F["of_G"]), ("of_noise", F["of_noise"])]),
    Equal(F["start"], "potential", ["F0 == gap + Fstar", "C == C0", F["weight"], ("potential", F["potential"])]),
    Equal("-T*of_G", F["divisor"], [("of_G", F["of_G"])]),
    Equal(F["theorem"], POTENTIAL,
          [F["start"], "Phi == 0", "G2 == 0", ("noise", F["round"]), ("divisor", F["divisor"])]),
)  # fmt: skip


# 6: corollaries


LONGEST = f"eta == ({F['server_most'].side(1).text})/L"
LOCAL = F["local_most"]
STEEP = ("min", lambda a, b: b)  # for rho <= 1/2
FLAT = ("min", lambda a, b: a)
NOISE_FREE = every(
    Equal(F["noise_free"], F["theorem"], ["sigma == 0", LOCAL, STEEP, LONGEST]),
    Equal(F["noise_free_full"], F["theorem"].term(0), [FLAT, LONGEST]),
    Equal("K*L*lr", F["local"], [LOCAL]),
    Implies(["rho > 0", F["small_rho"]], ["sqrt(rho//8) <= 1/4"]),
    Equal("sqrt(rho//8)", "1/4", [("rho", F["small_rho"])]),
    Equal(F["price"], "steep/flat",
          [("steep", F["noise_free"].term(0)), ("flat", F["noise_free_full"].changed("rho", "1"))]),
)  # fmt: skip
SMALL_STEPS = every(
    Equal(F["theorem"].term(3), F["theorem"].term(2), [f"lr == sqrt({F['small'].side(1).text})"]),
    Equal(F["small"].side(0), "lr**2"),
)
BALANCED = every(  # twice the noise, by 6.2
    Equal("first + 2*noise", F["balanced"].term(2),
          [F["b"], "eta == b", ("first", F["theorem"].term(0)), ("noise", F["theorem"].term(2))]),
    Equal(F["theorem"].term(0), "2*noise", [F["b"], "eta == b", ("noise", F["theorem"].term(2))]),
    Equal(F["balanced"].term(0), F["theorem"].term(0), ["eta == H/L"]),
    Equal(F["balanced"].term(1), F["theorem"].term(1), [LOCAL]),
    Implies(["L > 0", "H > 0", "b > 0", F["chosen"]], [F["inverse_step"]]),
    Equal(F["inverse_step"].side(0), F["inverse_step"].term(0), ["eta == H/L"]),
    Equal(F["inverse_step"].side(0), F["inverse_step"].term(1), ["eta == b"]),
)  # fmt: skip
LONGER = every(
    Implies([*RHO, "h > 0", F["short_steps"]], [F["steps"]]),
    Equal(F["less"], "short/long", [("min", lambda a, b: b), ("short", F["short_steps"]), ("long", F["steps"])]),
    Equal(F["printed_first"], F["theorem"].term(0), [STEEP, f"eta == ({F['printed_steps'].side(1).text})/L"]),
    Equal(F["h_most"].side(0), F["h_most"].side(1), [F["point_h"]]),
    Equal(F["point_q"], F["q"].side(2)),
    # at the next unit fraction both hold
    *(
        check(Implies([], [F[then]], [F["point_q"], F[point], *less, F["B"], *ONE]))
        for then, point in (("of_noise", "point_7"), ("of_C", "point_6"))
        for check, less in ((Fails, []), (every, ["u == u/(1 + u)"]))
    ),
)
SHORT = ["q > 0", "q <= 1/100", "u >= 0", "h > 0", "4*h <= 1"]
SHORT_LOCAL = every(
    Implies([*RHO, "lr > 0", F["short_local"]], [F["short_q"]], ["L == 1", "K == 1", "q == lr**2"]),
    Implies([*RHO, "q > 0", F["short_q"]], ["q*h**2 <= most*rho"], [("most", F["short_qu"])]),
    Implies([*SHORT, F["short_qu"]], [F["of_G"], F["of_C"], F["short_noise"]], [*ONE, F["B"]]),
    Implies([*SHORT, F["short_qu"]], ["rest <= share*h**2"],
            [*UNIT, "sigma == 1", "N == 1", "K == 1", ("rest", F["short_rest"]), ("share", F["short_share"])]),
    Equal(F["short"], POTENTIAL,
          [F["start"], ("divisor", F["divisor"]), ("share", F["short_share"]), ("more", F["short_noise"]),
           "noise == (1 + share)*L*eta**2*sigma**2/(N*K) + more*L**2*eta*K*lr**2*sigma**2"]),
    Implies([*RHO, "lr > 0", "eta > 0", F["product"]], ["lr**2*eta**2 <= most*rho"],
            ["L == 1", "K == 1", ("most", F["product_q"])]),
    Implies([*ADMITTED[:3], F["product_q"]], [F["of_G"], F["of_C"]], [*ONE, F["B"]]),
    Equal(F["short_server"], F["steps"].side(1), [FLAT]),
    Equal(F["short_rest"], "of_u*q*eta*sigma**2/K", [("of_u", F["noise_N"])]),
    Equal(F["short_noise"].side(0), F["of_noise"].side(0).changed("12*u", "0")),
    Equal("most**2", "qu*rho", [("most", F["product"]), ("qu", F["product_q"])]),
    Equal("most**2", F["short_q"], [("most", F["short_local"])]),
)  # fmt: skip
OTHER = [F["other_weight"], F["other_B"]]
WEIGHTS = every(
    halved("other_back", "sq(1/2*a + 2*b)", "other_split"),
    in_box("other_C", "other_B", ["h > 0", "4*h <= 1"]),
    in_box("other_noise", "other_B", ["h > 0", "4*h <= 1"]),
    Implies([*ADMITTED, "h > 0", "4*h <= 1"], [F["other_G"]], [*ONE, F["other_B"], F["omega"]]),
    Implies([*ADMITTED, "h > 0", "4*h <= 1", F["full_u"]], [F["other_G"]], [*ONE, F["other_B"], F["omega_full"]]),
    Equal("F0 + split + M*C1 - M*C", "F0 + of_G*G2 + of_C*C + of_noise*L**2*eta*K*lr**2*sigma**2 + noise*L*eta**2",
          [F["h"], *DRIFTED, *OTHER, ("sq", lambda v: v), "a == rho*G2", "b == L**2*D", ("n", F["noise"]),
           ("noise", F["noise"]), ("split", F["other_split"]), ("C1", F["memories"]), ("of_G", F["other_G"].side(0)),
           ("of_C", F["other_C"].side(0)),
           ("of_noise", F["other_noise"].side(0).changed("192/5*u", "192/5*u/N"))]),
    Equal(F["other"], "omega*(gap + M*C0 + T*(L*eta**2*noise + more*L**2*eta*K*lr**2*sigma**2))/(rho*eta*T)",
          [("q", F["q"].side(1)), F["other_weight"], ("noise", F["noise"]), ("more", F["other_noise"])]),
    Equal(F["full_u"], "(1/4)**2"),
    Equal(F["other_C"].side(1), F["of_C"].side(1)),
    Fails(Implies([*ADMITTED, "h > 0", "4*h <= 1"], [F["other_G"]],
                  [*ONE, F["other_B"], F["omega"].changed("1.53", "1.52")])),
)  # fmt: skip


# 7: other memories


def rescaled(power: int) -> Callable[[], bool]:
    """A local step and the server's with s Pi are those with Pi at s times the step sizes."""

    def check() -> bool:
        import sympy

        s, lr, p, g, y = sympy.symbols("s lr p g y")
        return sympy.expand((y - lr * (s * p) * g) - (y - (s**power * lr) * p * g)) == 0

    return check


# (1/N) sum |g_i|^2 = |G|^2 + (1/N) sum |g_i - G|^2 for G = m1, the moments m1 and m2 of any N
SPREAD = Equal("G**2 + (m2 - 2*G*m1 + G**2)", "m2", ["G == m1"])


def without_memory(kept: str) -> Callable[[], bool]:
    """Adding 3 and 2: `kept` of rho eta |G|^2 is left at q = 1/100, h = 1/4; no last digit could be less."""

    def check() -> bool:
        one = defaultdict(lambda: Fraction(1))
        drift = F["h_most"].right(one)  # what multiplies L^2 eta D
        noise, pull = (F["drift"].term(i).right(one | {"G2": Fraction(0)}) for i in (0, 1))
        left = Fraction(1, 2) - drift * pull * F["q"].right(one)
        needed = [part / Fraction(kept) for part in (Fraction(1), drift * pull, Fraction(1), drift * noise)]
        used = [F["without"].term(i).right(one) for i in range(4)]
        digits = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 100), Fraction(1, 100))
        return left >= Fraction(kept) and all(0 <= use - need < digit for use, need, digit in zip(used, needed, digits))

    return check


OF_DRIFT = [
    # the theorem's terms with other numbers
    Equal(F["without"].term(2).changed("2.05", "20/9"), F["theorem"].term(2)),
    Equal(F["without"].term(0).changed("2.05", "20/9"), F["theorem"].term(0)),
    Equal(F["without"].term(3).changed("4/3", "55/3"), F["theorem"].term(3)),
    Equal(F["left_none"], F["without"].term(1)),
    Equal(F["left_kept"], F["theorem"].term(1)),
    Equal(F["apart"], "G2 + zeta**2"),
]
ALL = list(combinations(range(4), 2))

STEPS = [
    Step("ssf.1.1", "identity", "three clients, any linear map instead of P", controls(), controls(2),
         "a mean with another weight for one client", ("ssf.lemma3.eq26-28",)),
    Step("ssf.1.2", "identity", "two clients, two local steps, any linear map instead of P", server(True),
         server(False), "c is not the mean of the c_i", ("ssf.lemma3.eq22-25", "ssf.lemma3.eq26-28")),
    Step("ssf.2.1", "identity", "three local steps, unrolled", unrolled(), unrolled(2), "the correction counted twice",
         ("ssf.lemma2.eq9-10",)),
    Step("ssf.2.2", "certificate", "2 u^2 + 2 v^2 - (u + v)^2 = (u - v)^2, for each coordinate", TWO, {"2": "19/10"},
         claims=("ssf.lemma2.eq9-10",)),
    Step("ssf.2.3", "certificate", "from k to k + 1 the difference k sum a^2 - (sum a)^2 grows by a sum of squares",
         CAUCHY, NOT_CAUCHY, "k - 1 instead of k", ("ssf.lemma2.eq11-12",)),
    Step("ssf.2.4", "expectation", "three steps, the size of each noise any function of the signs before it",
         martingale(True), martingale(False), "one sample kept for all local steps", ("ssf.lemma2.eq13-16",)),
    Step("ssf.2.5", "expectation", "all coordinate subspaces of two dimensions in four, d as symbols",
         share(ALL), share([(0, 1), (0, 1), (2, 3)]), "a law whose mean is not rho I", ("ssf.lemma3.eq32-36",)),
    Step("ssf.2.6", "identity", "what the induction from k to k + 1 leaves is at least 0", INDUCTION, NOT_INDUCTION,
         "alpha instead of 1 + alpha"),
    Step("ssf.2.7", "identity", "both sums by sympy, their bounds for all real K >= 1 by their coefficients",
         counted(F["counts"], F["squares"]), counted(F["squares"].changed("4/3*K**3", "K**3")),
         "K^3 instead of (4/3) K^3"),
    Step("ssf.2.8", "arithmetic", "the series of the exponential with a bound of its rest", GROWTH,
         exponential(F["growth"].changed("1.041", "1.0408")), "1.0408 instead of 1.041"),
    Step("ssf.2.9", "identity", "any number of clients, by the first two moments of the u_i",
         pulls(True), pulls(False), "any vector instead of the mean", ("ssf.theorem1.eq110",)),
    Step("ssf.2.10", "identity", "2.2 twice, the sums of 2.7 and the claim, by expansion", RECURSION,
         {"4*lr**2*k**2": "3*lr**2*k**2"}),
    Step("ssf.3.1", "identity", "the integral that is left after Lipschitz continuity", SMOOTH, {"L/2": "L/3"}),
    Step("ssf.3.2", "expectation", "two coordinate lines, noise of any size and both signs for each",
         mean_zero(True), mean_zero(False), "a sign that depends on the drawn P", ("ssf.lemma3.eq31",)),
    Step("ssf.3.3", "implication", "T_1 + T_2 for all steps up to 1/L and all second moments",
         every(halved("back", "sq(a + b)", "split_at_most"), MOVED), {"L*eta**2*E": "9/10*L*eta**2*E"},
         "nine tenths of the noise", ("ssf.sharper.lemma3",)),
    Step("ssf.3.4", "expectation", "two clients, two steps, independent signs", averaged(True), averaged(False),
         "one sign for all", ("ssf.lemma3.eq49-54",)),
    Step("ssf.3.5", "identity", "two quadratics that meet, in one dimension: all terms are inner products",
         THROUGH, {"1/(4*L)": "1/(3*L)"}, "|b|^2/(3 L) instead of |b|^2/(4 L)"),
    Step("ssf.3.6", "expectation", "two clients with dependent noise, two steps, gradients and sizes of the noise any "
         "functions of what was drawn before", remembered(True), remembered(False), "clients whose noises correlate"),
    Step("ssf.3.7", "identity", "the induction from K to K + 1", SOLVED, {"+ (beta - v)": "+ (1 - lr*L)*(beta - v)"},
         "tau_k with K instead of K - 1"),
    Step("ssf.3.8", "identity", "the two factors of tau_k beta_i^k", every(CANCELLED, WEIGHTED),
         {"L*eta/(N*K)": "L*eta/(2*N*K)"},
         "half of that weight for 3.5"),
    Step("ssf.3.9", "certificate", "what is left is a sum of squares and of delta^2 - a^2", POINTWISE,
         {"1/2*(sq(u) - sq(a))": "2/5*(sq(u) - sq(a))"}, "2/5 of |delta|^2 - |a|^2"),
    Step("ssf.3.10", "implication", "for all steps up to 1/(2 L)", every(HALF, REMAINS, Equal(F["step_half"],
         F["half"])), {"h <= 1/2": "h <= 51/100"},
         "steps up to 0.51/L", ("ssf.lemma3",)),
    Step("ssf.3.11", "implication", "for all K, N >= 1, local steps of 1/L or more and steps up to 1/L",
         LONG, {"h <= 1": "h <= 11/10"}, "steps up to 1.1/L"),
    Step("ssf.3.12", "identity", "the claim from its parts", FIRST, {"rho*eta/2": "rho*eta/3"}),
    Step("ssf.3.13", "identity", "the claim from its parts", SECOND, {"3/2*L**2": "7/5*L**2"}, claims=("ssf.lemma3",)),
    Step("ssf.4.1", "identity", "in each coordinate of a basis in which P is diagonal", pythagoras(1), pythagoras(-1),
         "a minus between the parts", ("ssf.lemma4.eq61-63",)),
    Step("ssf.4.2", "certificate", "the difference is a square", YOUNG, {"1/beta": "2/beta"}),
    Step("ssf.4.3", "implication", "for all rho in (0, 1]", CONSTANTS, {"1 - rho/2": "1 - 3/4*rho"},
         claims=("ssf.lemma4.eq82-87",)),
    Step("ssf.4.4", "implication", "for all second moments of the three parts", PARTS, {"4*rho": "3*rho"},
         claims=("ssf.lemma4.eq88-99",)),
    Step("ssf.4.5", "identity", "4.1 and 4.4 with the factors of 4.3", REFRESHED,
         {"12*L**2*eta**2*G2": "11*L**2*eta**2*G2"}, "11 instead of 12"),
    Step("ssf.5.1", "implication", "for all rho in (0, 1], both ways to bound the step", STEP_SIZES, {"8)": "7)"},
         "sqrt(rho/7) instead of sqrt(rho/8)"),
    Step("ssf.5.2", "identity", "the sum of the three claims", ASSEMBLED, {"1.388": "1.389"}),
    Step("ssf.5.3", "implication", BOX, in_box("of_G"), {"9/20": "47/100"}),
    Step("ssf.5.4", "implication", BOX, in_box("of_C"), {"1.388": "1.4"}),
    Step("ssf.5.5", "implication", BOX, in_box("of_noise"), {"33/4": "8"}),
    Step("ssf.5.6", "identity", "the sum over the rounds, divided", SUMMED_UP, {"55": "54"}),
    Step("ssf.6.1", "identity", "the theorem at these steps", NOISE_FREE, {"45": "90"}, "1/45 instead of 2/45"),
    Step("ssf.6.2", "identity", "both terms at the largest step", SMALL_STEPS, {"33": "32"}),
    Step("ssf.6.3", "identity", "both terms at the step that balances them", BALANCED, {"2*L*sigma**2": "L*sigma**2"},
         "twice that step, squared"),
    Step("ssf.6.4", "implication", "for all rho in (0, 1]; 5.4 and 5.5 each at one point", LONGER, {"8)": "9)"},
         "sqrt(rho/9) instead of sqrt(rho/8)", ("ssf.sharper.theorem",)),
    Step("ssf.6.5", "implication", "for all rho in (0, 1], q <= rho/100, L eta <= 1/4", SHORT_LOCAL,
         {"27/4": "13/2"}, claims=("ssf.sharper.short",)),
    Step("ssf.6.6", "implication", "3.3 for all steps up to 1/L; " + BOX + ", h <= 1/4; then u = h^2", WEIGHTS,
         {"1.42": "1.41"}),
    Step("ssf.7.1", "identity", "a local step in the subspace", rescaled(1), rescaled(2), "the square of the scale"),
    Step("ssf.7.2", "identity", "any number of clients, by the first two moments of the g_i",
         SPREAD, {"G == m1": "G == other"}, "any vector instead of the mean"),
    Step("ssf.7.3", "arithmetic", "for q <= 1/100 and L eta <= 1/4", every(without_memory("49/100"), *OF_DRIFT),
         without_memory("48/100"), "48/100 instead of 49/100"),
]  # fmt: skip
