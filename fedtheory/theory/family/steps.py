"""One theorem for the family: the steps of docs/theory/family.md. What SSF's proof has already is imported.

The formulas stand in formulas.py. A corollary is the theorem with the row of its memory put in.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from fedtheory.theory.family.formulas import FORMULAS as F
from fedtheory.theory.fedsub.steps import centred, parts
from fedtheory.theory.formula import Formula
from fedtheory.theory.mud.steps import SECOND_MOMENT
from fedtheory.theory.proof import Equal, Fails, Implies, Put, Said, Step, either, equal, every
from fedtheory.theory.search import vanishes
from fedtheory.theory.ssf.formulas import FORMULAS as OF_SSF
from fedtheory.theory.ssf.steps import (
    CAUCHY,
    INDUCTION,
    NOT_CAUCHY,
    TWO,
    averaged,
    counted,
    exponential,
    martingale,
    pulls,
    pythagoras,
    rescaled,
    two,
)
from fedtheory.theory.ssf.steps import unrolled as drifted

# 1: the round


# An eigenvalue pi of P in [0, 1]: |P v|^2 <= <v, P v> <= |v|^2, and E P^2 <= E P
CONTRACTION = every(
    Implies(["pi >= 0", "pi <= 1"], [F["power"], "pi*v**2 <= v**2"]),
    Equal("square*v**2", "(pi*v)**2", [("square", F["power"].side(0))]),
)


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
        total = F["phi"].right({"N": N, "S": S}) * N * V - pair * N * V  # the sum over i != j is -sum r_i^2 = -N V
        nu = F["nu"].right({"N": N, "S": S}, sympy.Rational)
        sets = {s: list(combinations(range(5), s)) for s in range(1, 6)}
        odds = {s: Fraction(sum({0, 1} <= set(one) for one in of), len(of)) for s, of in sets.items()}
        counts = all(odds[s] == Fraction(str(pair.subs({N: 5, S: s}))) for s in sets)
        return counts and vanishes(total / S**2 - nu * V)

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


SUMMED = Formula("lr**2*(omega*rho*sq(d)*squares + theta*sigma**2*counts)")
SUMS = every(
    counted(F["counts"], F["squares"]),
    INDUCTION,
    exponential(F["growth"]),
    Equal(F["growth_local"].side(0), F["growth_local"].side(1), [f"lr == {F['local'].side(1).text}/(K*L)"]),
    Equal("K*alpha", F["growth_local"].side(0),
          ["S_k == 1", "d == 0", "sigma == 0", ("alpha", F["recursion"].side(1))]),
    Equal(F["third"]),
    Equal(F["summed"], "grown*summed",
          [("grown", F["growth"].side(0)), ("squares", F["squares"]), ("counts", F["counts"]), ("summed", SUMMED)]),
)  # fmt: skip
BOUNDED = F["recursion"].side(1)
RECURSION = every(
    Equal(BOUNDED.changed("K*S_k", "k*S_k"),
          "lr**2*two(two(k*L**2*S_k, k**2*omega*rho*sq(d)), k*theta*sigma**2)", [("two", two)]),
    Equal(BOUNDED.changed("S_k", "0"), SUMMED,
          [("sum_k", lambda v: v), ("squares", F["squares"].side(0)), ("counts", F["counts"].side(0))]),
    Equal(F["drift"], "scale/K*summed",
          ["D == 1", ("scale", F["drift"].side(0)), ("p", F["p"].side(1)), ("sq", lambda d: d), ("d", F["pulls"]),
           ("summed", F["summed"].changed("e**(1//25)", F["growth"].side(1).text))]),
    Equal("most**2", F["p"], [("most", F["local"])]),
)  # fmt: skip


# 4: descent; in units of L = 1


SPLIT = Implies(
    ["h > 0", "h <= 1", "g >= 0", "b >= 0", "w >= 0", "n >= 0", "-2*ab <= g + b", "2*bw + 2*bn <= b + w + n"],
    ["-h*(g + ab) + 1/2*h**2*(g + b + w + n + 2*ab + 2*bw + 2*bn) <= split"],
    ["eta == h", "G == g", "a_S == b", "xi_S == n", ("sqP", lambda v: v), ("split", F["split"])],
)


def descent_of(noise: Formula) -> Equal:
    """4.4: the right side of 4.1 with what its squares are in the mean."""
    return Equal(F["descent"], "F0 + split",
                 [("sqP", lambda v: v), ("G", F["of_G"]), "a_S == L**2*D", ("w", F["of_w"]), ("xi_S", noise),
                  ("split", F["split"])])  # fmt: skip


def quadratic(known: bool) -> Callable[[], bool]:
    """E <w, P w> = rho E |w|^2 for two symmetric outcomes whose mean is rho I (`known`), w independent of P."""

    def check() -> bool:
        import sympy

        t, rho, w, a = sympy.Symbol("t"), sympy.Symbol("rho"), sympy.Matrix(sympy.symbols("w:2")), sympy.symbols("a:3")
        first = sympy.Matrix([[a[0], a[1]], [a[1], a[2]]])
        other = (rho * sympy.eye(2) - t * first) / (1 - t) if known else first
        of = lambda P: (w.T * P * w)[0]
        wanted = F["of_w"].right({"rho": rho, "nu": 1, "V": w.dot(w)})  # 2.1: E |w|^2 = nu V
        both = F["of_G"].right({"rho": rho, "G2": w.dot(w)}) == wanted
        return both and vanishes(t * of(first) + (1 - t) * of(other) - wanted)

    return check


MOVED = Implies(
    ["a >= 0", "b >= 0", "w >= 0", "n >= 0", "2*ab <= a + b", "2*bw + 2*bn <= b + w + n"],
    ["a + b + w + n + 2*ab + 2*bw + 2*bn <= move"],
    ["eta == 1", "omega == 1", "rho == 1", "L == 1", "nu == 1", "S == 1", "K == 1", "theta == n", "sigma == 1",
        "G2 == a",
     "D == b", "V == w", ("move", F["moved"])],
)  # fmt: skip


# 5: memories


ROWS = ("none", "perfect", "kept", "forget")


def memory(name: str) -> list[Put]:
    """The row of a memory in the table of (M)."""
    return [(one, F[f"{name}_{one}"]) for one in ("m", "chi", "alpha", "gamma")]


def convex(factor: int) -> Callable[[], bool]:
    """(1 - p) u^2 + p z^2 - ((1 - p) u + p z)^2 = p (1 - p) (u - z)^2, for an eigenvalue p of Q."""

    def sides() -> tuple[Any, Any]:
        import sympy

        p, u, z = sympy.symbols("p u z")
        return (1 - p) * u**2 + p * z**2 - ((1 - p) * u + p * z) ** 2, factor * p * (1 - p) * (u - z) ** 2

    return equal(sides)


KEPT = every(
    Implies(["f > 0", "f <= 1"], ["(1 + beta)*refreshed + (1 + 1/beta)*L**2*moved <= memory"],
            ["mu == f/phi", *memory("kept"), F["beta"], ("refreshed", F["refreshed"]), ("memory", F["memory"])],
            cleared=True),
    Equal(F["young"], "sq(s*v - v2/s)", ["beta == s**2"], gap=True),
    *(Equal(F[f"of_{one}"], F[f"kept_{one}"]) for one in ("m", "alpha", "gamma")),
)  # fmt: skip
REFRESHED = every(
    Equal(F["client"], "(1 - mu)*sq(u_i) + two(sq(a_i), theta*sigma**2/K)", [("two", two)]),
    Equal("phi*client + (1 - phi)*sq(u_i)", F["refreshed"],
          [("sq", lambda v: v), "u_i == C", "a_i == L**2*D", ("client", F["client"])]),
)  # fmt: skip


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


FORGOT = every(
    Equal("4*L**2*moved + 2*((omega/rho - 1)*zeta**2) + 4*forgot", F["memory"],
          [*memory("forget"), ("forgot", F["forgot"])]),
    Equal("4*forgot", "alpha*D", ["L == 1", "sigma == 0", ("forgot", "1/rho**2*D"), ("alpha", F["quiet_alpha"])]),
    Equal(F["forgot"], "two(L**2*D, theta*sigma**2/K)/rho**2", [("two", two)]),
    Equal(F["memory"], "zeta**2", [*memory("none"), "C == zeta**2"]),
    Equal(F["memory"], "0", [*memory("perfect"), "C == 0"]),
    *(Implies(["phi <= 1", "mu <= 1"], ["m > 0", "m <= 1"], memory(row), cleared=True) for row in ROWS),
)  # fmt: skip


# 6: the potential; M over eta is w


MOST = "(1 + h)/2"
HALVED = F["B"].changed(MOST, "5/8")


def parts_of(*names: str) -> list[Put]:
    return [(name, F[name]) for name in names]


ASSEMBLED = every(
    Equal("EF1 + M*C1 - M*C", "F0 + coef_G*G2 + coef_C*C + coef_noise*(theta*sigma**2/K) + coef_zeta*zeta**2",
          ["L == 1", "eta == h", "V == C", ("D", F["drift"]), F["B"], ("moved", F["moved"]), ("EF1", F["descent"]),
           ("C1", F["memory"]), *parts_of("coef_G", "coef_C", "coef_noise", "coef_zeta")]),
    Equal(F["weight"], "rho*eta*q/kappa"),
    Implies(["h > 0", F["quarter"]], [f"{MOST} <= 5/8"]),
)  # fmt: skip
NO_MEMORY = every(
    Implies([], ["coef_C <= 0"],
            ["L == 1", "D == X", "m == 0", ("loss", F["kappa"]), "m == kappa - loss", F["q"], F["weight"], HALVED,
             ("coef_C", F["coef_C"])], cleared=True),
    Implies([], [F["up"], F["up5"]]),
    Fails(Implies([], ["most <= 49/50*1.388"], [("most", F["up5"].side(1))])),
    Equal(F["q"], "up*omega*p + h*nu", [("up", F["up"].side(1))]),
    Equal(F["kappa"], "m - rho*omega*(up*alpha*p + (3*up*p + 2*nu)*gamma*h**2)", [("up", F["up5"].side(1))]),
    Equal(F["condition"].side(0), "rho*omega*q/kappa*(up*alpha*p + (3*up*p + 2)*gamma*h**2)", [("up",
        F["up5"].side(1))]),
    Equal(F["up"].side(0), "drift*5/8", [("drift", F["up5"].side(0))]),
    Equal(F["none_left"], None, [F["weight"]]),
    Implies(["rho > 0", "eta > 0", "q > 0", F["positive"]], ["most > 0"], [("most", F["weight"])]),
)  # fmt: skip
# X, Y: what alpha p and gamma h^2 are with omega w; T: omega p
PRODUCTS: list[Put] = ["M == w*eta", "alpha == X/(omega*w*p)", "gamma == Y/(omega*w*h**2)", "q == w*kappa/rho"]
GIVEN = ["p <= 1/100", F["omega_p"]]
LEAD: list[Put] = [*PRODUCTS, "omega == T/p", HALVED, *parts_of("coef_G", "lead")]
GRADIENTS = every(
    Implies([*GIVEN, F["condition"]], ["coef_G <= lead"], LEAD, cleared=True),
    Fails(Implies([*GIVEN, F["condition"].changed("1/25", "1/23")], ["coef_G <= lead"], LEAD, cleared=True)),
    Equal(F["round"], "Phi + lead*G2 + coef_zeta*zeta**2 + dots", parts_of("lead", "coef_zeta")),
)  # fmt: skip
NOISE = every(
    Implies(["p <= 1/100", "S >= 1"], ["coef_noise <= at_most"],
            ["M == w*eta", "alpha == X/w", "gamma == Y/(w*h**2)", HALVED, *parts_of("coef_noise", "at_most")],
            cleared=True),
)  # fmt: skip
DIVIDED = every(
    Equal(F["theorem"], "(gap + M*C0 + T*(coef_zeta*zeta**2 + at_most*theta*sigma**2/K))/divisor",
          [F["weight"], *parts_of("coef_zeta", "at_most", "divisor")]),
    Equal("-T*lead", F["divisor"], parts_of("lead")),
    Equal(F["omega_p"].side(1), F["p"].side(2)),
)  # fmt: skip


# 7: corollaries, for omega = 1, which bounds the others: q and kappa move with omega to the worse side


def rate(
    given: Sequence[Said],
    where: Sequence[Put],
    bound: Formula,
    atoms: Sequence[str] = ("gap", "C0", "zeta", "sigma"),
    alone: Sequence[str] = ("p",),
) -> list[Any]:
    """The theorem's bound is at most the corollary's, and the same where `alone` is 0; 97/100 would not do.

    Args:
        where: the row of the memory, and the numbers of the corollary.
        alone: what the constants of the corollary stand before; each is looked at with the others at 0.
    """
    found: list[Any] = []
    for atom in atoms:
        only = [f"{one} == {2 * (one == atom)}" for one in atoms]
        put: list[Put] = [*where, *only, ("theorem", F["theorem"]), ("bound", bound)]
        found.append(Implies(given, ["theorem <= bound"], put, cleared=True))
        if any(bound.says(one) for one in alone):
            found.append(Equal("theorem", "bound", [*(f"{one} == 0" for one in alone), *put]))
        for one in alone if bound.says(atom) else ():
            zero = [f"{other} == 0" for other in alone if other != one]
            less = [*zero, *put, "lead == 20*h*theta*sigma**2/(9*S*rho*K)"]
            found.append(Fails(Implies(given, ["theorem - lead <= 97/100*(bound - lead)"], less, cleared=True)))
    return found


KEEPS: list[Put] = ["omega == 1", "phi == 1", "nu == 0", "S == N"]  # all clients
NUMBERS: list[Put] = [F["q"], F["kappa"]]
LOCAL = ["p <= 1/100", "N >= 1", "rho <= 1"]
WHOLE: list[Put] = [*KEEPS, "mu == rho", *memory("kept"), "h == sqrt(u*rho)", *NUMBERS]
SSF = every(
    Equal(F["ssf"], OF_SSF["theorem"], ["p == L**2*K**2*lr**2", "theta == 1", "h == L*eta"]),
    Implies(["rho > 0", "rho <= 1", "h > 0", "u*rho == h**2", F["ssf_step"]], ["u <= 1/8"]),
    Implies([*LOCAL, "u <= 1/8"], [F["positive"], F["condition"]], WHOLE, cleared=True),
    *rate([*LOCAL, "u <= 1/8"], WHOLE, F["ssf"]),
)
ONCE_GIVEN = ["rho <= 1", "p <= most**2"]
ONCE_AT: list[Put] = [
    ("most", F["once_local"]),
    "sigma == 0",
    F["once_h"],
    "eta == h/L",
    "p == v*rho",
    *KEEPS,
    "mu == rho",
    *memory("kept"),
    *NUMBERS,
]
ONCE = every(
    Equal("most**2", "limit*rho", [("most", F["once_local"]), ("limit", F["p"].side(2))]),
    Equal(F["once"].term(0), F["lead_term"], [F["once_h"], "eta == h/L"]),
    Implies(ONCE_GIVEN, [F["positive"], F["condition"]], ONCE_AT, cleared=True),
    *rate(ONCE_GIVEN, ONCE_AT, F["once"], atoms=("gap", "C0"), alone=("v",)),
)
# H: h nu; y: h^2/(phi^2 rho)
FEW = "(y*phi**2*rho)"
FEW_AT: list[Put] = [("most", F["some_step"]), ("product", F["some_h"]), "omega == 1", "mu == rho", *memory("kept"),
                     F["q"].changed("h*nu", "H"), F["kappa"].changed("h**2", FEW)]  # fmt: skip
FEW_GIVEN = ["p <= 1/100", f"{FEW} <= most**2"]
SOME = every(
    Implies([*FEW_GIVEN, "nu <= 1", "phi*nu <= 1/2", "H <= product"],
            [F["some_kappa"], F["condition"].changed("h**2", FEW)], FEW_AT, cleared=True),
    Fails(Implies([*FEW_GIVEN, "nu <= 1"], ["kappa >= 10/9*most_kappa"], [*FEW_AT, ("most_kappa", F["some_kappa"])],
        cleared=True)),
    Implies(["rho > 0", "rho <= 1", "phi > 0", "nu > 0", F["some_step"]], [F["some_h"]]),
    Equal("phi*nu", F["odds"].side(1), [F["phi"], F["nu"]]),
    Implies(["S >= 1", "S <= N", "N >= 2"], [f"{F['odds'].side(1).text} <= {F['odds'].side(2).text}"], cleared=True),
)  # fmt: skip
SOME_BOUND = rate(
    ["y <= 1/64", "S >= 1"],
    ["omega == 1", "mu == rho", *memory("kept"), "h == sqrt(y*rho)*phi", "nu == H/h", F["q"], ("kappa",
        F["some_kappa"])],
    F["some"], alone=("p", "H"),
)  # fmt: skip
FULL_AT: list[Put] = [*KEEPS, "mu == 1", "theta == 1", *memory("kept"), *NUMBERS]
FULL_GIVEN = [*LOCAL, F["quarter"]]
FULL = every(
    Implies(FULL_GIVEN, [F["positive"], F["condition"], F["full_q"]], FULL_AT, cleared=True),
    *rate(FULL_GIVEN, FULL_AT, Formula(" + ".join(F[one].text for one in ("lead_term", "full_start", "full_noise")))),
    Equal(F["full_start"], "full_q*C0/T", parts_of("full_q")),
    Equal("start*C0/T", F["theorem"], [("start", F["full_q"].side(0)), "gap == 0", "zeta == 0", "sigma == 0"]),
)
FIRST, SECOND = ("min", lambda a, b: a), ("min", lambda a, b: b)
FORGET_AT: list[Put] = [*KEEPS, *memory("forget"), *NUMBERS]
FORGET_GIVEN = ["rho <= 1", "p <= h**2", "h <= 1/10", "N >= 1"]
FORGET = every(
    Implies([*FORGET_GIVEN, "h**2 <= rho/40"], [F["forget_kappa"], F["condition"]], FORGET_AT, cleared=True),
    Implies([*FORGET_GIVEN, "h**2 <= rho/20"], [F["forget_kappa"], F["condition"]],
            [*KEEPS, *memory("forget"), ("alpha", F["quiet_alpha"]), *NUMBERS], cleared=True),
    Fails(Implies([*FORGET_GIVEN, "h**2 <= rho/40"], ["kappa >= 10/9*most"], [*FORGET_AT, ("most", F["forget_kappa"])],
        cleared=True)),
    *(Equal("most**2", square, [take, ("most", F[step])]) for step, take, square in (
        ("forget_loud", SECOND, "rho/40"), ("forget_loud", FIRST, "(1/10)**2"), ("forget_quiet", SECOND, "rho/20"),
        ("forget_quiet", FIRST, "(1/10)**2"))),
)  # fmt: skip
FORGET_BOUND = rate(
    [*FORGET_GIVEN, "h**2 <= rho/40"],
    [*KEEPS, *memory("forget"), F["q"], ("kappa", F["forget_kappa"])],
    F["forget"].changed("V0", "C0"),
)
REST = F["single_moved"].changed("G2", "0")
SINGLE = every(
    Implies([F["single_step"]], ["-eta1*rho*G2 + 1/2*L*move <= -1/2*eta1*rho*G2 + 1/2*L*rest"],
            [("move", F["single_moved"]), ("rest", REST)], cleared=True),
    Equal(F["single"], "(gap/T + 1/2*L*rest)*2/(rho*eta1)", [("rest", REST)]),
    Equal(F["single_moved"], "eta1**2*omega*rho*(G2 + w + n)", ["w == nu*zeta**2", "n == sigma**2/S"]),
    Equal(F["price"], F["single"].term(0), ["eta1 == 1/(L*omega)"]),
)  # fmt: skip
GAUSSIAN = Equal(F["gauss_price"], "(r*(d_ + 2) + r*(r - 1))/r**2")
CHOSEN = Implies(
    ["a > 0", "b > 0", "H > 0", "eta > 0", "eta == min(H, a/b)"], ["left <= right"],
    ["A == a**2", "B_ == b**2", ("sqrt", lambda v: v), ("left", F["chosen"]), ("right",
        F["chosen_at"].changed("sqrt(A*B_)", "a*b"))],
)  # fmt: skip
SPEEDUP = every(
    Equal("eta*B_", F["some"].term(2), ["p == L*eta/S", "nu == 1/S", "h == L*eta", F["B_11"]]),
    Equal(F["A"].side(1), F["some"].term(0), ["eta == 1"]),
    Equal(F["speedup"].term(0), "A/H", [F["A"], F["H"]]),
    Equal(F["H"].side(1), "most/L", [("most", F["some_step"])]),
    Implies([], ["4*A*B_ <= most**2"], [F["A"], F["B_11"], ("most", F["speedup"].term(1))], cleared=True),
    Fails(Implies([], ["4*A*B_ <= (99/100*most)**2"], [F["A"], F["B_11"], ("most", F["speedup"].term(1))],
        cleared=True)),
    Implies([F["small_p"], "nu <= 1/S"], [F["bound_11"]], cleared=True),
    Equal(F["bound_11"].side(0), F["bound_11"].side(1), ["p == h/S", "nu == 1/S"]),
    Implies(["h <= most"], ["more*C0/(phi*rho*T) <= start"],
            [("most", F["some_step"]), ("more", F["bound_11"]), ("start", F["start_11"])], cleared=True),
    Fails(Implies(["h <= most"], ["more*C0/(phi*rho*T) <= 19/20*start"],
                  [("most", F["some_step"]), ("more", F["bound_11"]), ("start", F["start_11"])], cleared=True)),
)  # fmt: skip
NONE: list[Put] = ["omega == 1", *memory("none"), *NUMBERS, "gap == 0", "C0 == 0"]
METHODS = every(
    Equal(F["none_stays"], F["theorem"], [*NONE, "sigma == 0"]),
    Equal(F["none_noise"], F["theorem"], [*NONE, "zeta == 0"]),
    Equal(F["scaffold_start"], F["some"].term(1), ["rho == 1"]),
    Equal(F["scaffold_step"], F["some_step"], ["rho == 1"]),
    *(Equal(F[one], F[of].term(at)) for one, of, at in (
        ("ssf_start", "ssf", 1), ("some_start", "some", 1), ("forget_start", "forget", 1), ("forget_stays", "forget",
            2),
        ("lead_term", "some", 0))),
    Equal(F["quarter"], F["ssf_step"], [FIRST]),
    Equal(F["server"], F["quarter"]),
)  # fmt: skip


# 8: which control


def gaussian(fourth: int) -> Callable[[], bool]:
    """E of (g g^T)^2 is (E g_1^4 + d - 1) I, and with r columns over r: (d + 1)/r + 1. `fourth`: E g_1^4."""

    def sides() -> tuple[Any, Any]:
        import sympy

        d, r = sympy.symbols("d r", positive=True)
        return (r * (fourth + d - 1) + r * (r - 1)) / r**2, 1 + (d + 1) / r

    return equal(sides)


FRESH = every(
    Equal(F["fresh"], "(1 - (1 - rho)*rest)*nu*zeta**2", ["c_2 == (1 - rest)*nu*zeta**2"]),
    Equal(F["fresh_moves"], "eta**2*rho*((1 - (1 - rho)**t)*nu*zeta**2)"),
    Equal("plain*(1 - (1 - rho)**t)", F["fresh_moves"], [("plain", F["plain_moves"])]),
)  # fmt: skip

# 9: minibatches; X: L_hat^2 - L^2


def fresh(known: bool) -> Callable[[], bool]:
    """9.1 for lines of the plane as P: the bound less E <xi, P xi> is a mean of squares.

    xi(x) = u and xi(y) = u + v, times the sample's sign; v is any function of P and of the sign before. `known`: both
    lines have the same odds, so that E P = I/2.
    """

    def check() -> bool:
        import sympy

        s, u, half = sympy.Symbol("s", positive=True), sympy.Matrix(sympy.symbols("u:2")), sympy.Rational(1, 2)
        left = more = squares = sympy.Integer(0)
        for line, odds in ((0, half if known else half / 2), (1, half if known else 3 * half / 2)):
            P = sympy.diag(1 - line, line)
            for sign in "mp":
                v = sympy.Matrix(sympy.symbols(f"v{line}{sign}:2"))
                off, inside = (sympy.eye(2) - P) * v, P * (s * u - v)
                left += odds / 2 * ((u + v).T * P * (u + v))[0]
                more += odds / 2 * v.dot(v)
                squares += odds / 2 * (inside.dot(inside) / s + (1 + 1 / s) * off.dot(off))
        names = {"s": s, "rho": half, "sigma": sympy.sqrt(u.dot(u)), "ell": 1, "e_k": more}
        return sympy.expand(F["fresh_noise"].right(names, sympy.Rational) - left - squares) == 0

    return check


OF_HAT: list[Put] = [("L", "sqrt(L_hat**2 - X)"), ("ell", "sqrt(K*X/(1 + 1/s))")]
SAMPLE = every(
    fresh(True),
    Implies(["s == 1/2"], [F["split_at"]]),  # admitted
    Equal(F["L_hat"], None, OF_HAT),
    Equal(F["hat_two"], F["L_hat"], ["s == 1"]),
    Equal(F["hat_many"], F["L_hat"], [F["many_split"]]),
    Equal(F["fresh_noise"].term(0), "theta*sigma**2", [F["theta_hat"]]),
    Equal(F["fresh_noise"].term(1), "(1 + 1/s)*most", [("sq", lambda v: v), "y == x + e_k", ("most", F["of_sample"])]),
)
HAT_BOUNDED = F["hat_recursion"].side(1)
HAT_DRIFT = every(
    Equal(HAT_BOUNDED.changed("K*L**2", "k*L**2"),
          "lr**2*two(two(k*L**2*S_k, k**2*omega*rho*sq(d)), k*theta*sigma**2 + more)",
          [("two", two), "e_k == S_k", ("more", F["fresh_noise"].term(1))]),
    Equal(HAT_BOUNDED.changed("S_k", "0"), BOUNDED.changed("S_k", "0")),
    Equal("K*alpha", F["hat_growth"].side(0), ["S_k == 1", "d == 0", "sigma == 0", ("alpha", HAT_BOUNDED)]),
    Implies(["K >= 1", F["hat_local"]], [F["hat_growth"]], OF_HAT, cleared=True),
    Equal(F["hat_growth"], F["growth_local"]),
    Equal(F["hat_drift"], "scale/K*summed",
          ["D == 1", ("scale", F["hat_drift"].side(0)), ("p_hat", F["p_hat"].side(1)), ("sq", lambda d: d),
           ("d", F["pulls"]), ("summed", F["summed"].changed("e**(1//25)", F["growth"].side(1).text))]),
    Equal("most**2", F["p_hat"], [("most", F["hat_local"])]),
)  # fmt: skip
SAMPLED: list[Put] = [*OF_HAT, F["theta_hat"], ("fresh", F["fresh_noise"])]
HAT_DESCENT = every(
    averaged(True),
    Equal(F["hat_noise"], "fresh/(S*K)", ["e_k == D", *SAMPLED]),
    Implies(["h <= 1", "S >= 1"], ["F0 + split <= most"],
            [*OF_HAT, ("most", F["hat_descent"]), ("sqP", lambda v: v), ("G", F["of_G"]), "a_S == L**2*D",
             ("w", F["of_w"]), ("xi_S", F["hat_noise"]), ("split", F["split"])], cleared=True),
    Implies(["S >= 1"], ["moved <= most"],
            [*OF_HAT, ("most", F["hat_moved"]), ("noise", F["hat_noise"]), "theta == noise*S*K/sigma**2",
             ("moved", F["moved"])], cleared=True),
    *(Equal(F[f"hat_{one}"], F[one], ["L == L_hat"]) for one in ("descent", "moved")),
)  # fmt: skip
HAT_MEMORY = every(
    Equal(F["hat_client"], "(1 - mu)*sq(u_i) + two(L**2*D_i, fresh/K)", ["e_k == D_i", *SAMPLED, ("two", two)]),
    Equal("phi*client + (1 - phi)*sq(u_i)", F["hat_refreshed"],
          [("sq", lambda v: v), "u_i == C", "D_i == D", ("client", F["hat_client"])]),
    Equal(F["hat_forgot"], "two(L**2*D, fresh/K)/rho**2", ["e_k == D", *SAMPLED, ("two", two)]),
    *(Equal(F[f"hat_{one}"], F[one], ["L == L_hat"]) for one in ("refreshed", "forgot")),
)  # fmt: skip
HAT_FORGET = every(
    Implies(["rho <= 1", "p <= hat**2", "h <= hat", "hat <= 1/10", "hat**2 <= rho/40", "N >= 1"],
            [F["forget_kappa"], F["condition"]], FORGET_AT, cleared=True),
    *(Equal(F["hat_forget"], F["forget_loud"], [take]) for take in (FIRST, SECOND)),
    Equal(F["hat_local"], F["local"]),
    Equal(F["p_hat"], F["p"]),
)  # fmt: skip
OF_NOISE = F["speedup"].term(1)
FEWER = every(
    Equal(F["fewer"], "(one/other)**2", ["theta == 1", ("one", OF_NOISE), F["theta_hat"], ("other", OF_NOISE)]),
    Equal("share*other**2", "(1 + s)*full**2",
          [F["theta_hat"], ("other", OF_NOISE), "share == rho", "theta == 1", "rho == 1", ("full", OF_NOISE)]),
)  # fmt: skip


def of_masks() -> bool:
    """E <e, P e> = rho |e|^2 over all masks of r of three coordinates."""
    import sympy

    e = sympy.symbols("e:3")
    sets = {r: list(combinations(e, r)) for r in (1, 2)}
    means = {r: sum(sum(one**2 for one in kept) for kept in of) / sympy.Integer(len(of)) for r, of in sets.items()}
    return all(sympy.expand(mean - sympy.Rational(r, 3) * sum(v**2 for v in e)) == 0 for r, mean in means.items())


BEST = every(
    Equal(F["fresh_noise"], F["best_split"], ["s == ell*sqrt(e_k)/(sqrt(rho)*sigma)"]),
    of_masks,
    # xi(y) = (1 + ell c) sigma e in range(P), where y - x = c sigma P e
    Equal("(1 + ell*c)**2*sigma**2*rho", F["best_split"], ["e_k == c**2*sigma**2*rho"]),
)

STEPS = [
    Step("family.1.1", "identity", "a local step with lambda P is one with P at lambda times the step",
         rescaled(1), rescaled(2), "the square of the scale"),
    Step("family.1.2", "implication", "for every eigenvalue in [0, 1]", CONTRACTION, {"pi <= 1": "pi <= 2"},
         "an eigenvalue that may be 2"),
    Step("family.1.3", "identity", "two of three clients, two local steps, any linear map instead of P",
         direction(True), direction(False), "c is not the mean of the c_i"),
    Step("family.1.4", "identity", "two of three clients, any linear map instead of Q", stored(True),
         stored(False), "the mean of the participants' fresh controls", ("ssf.lemma3.eq26-28",)),
    Step("family.2.1", "expectation", "all N and S, from the odds of one client and of a pair; these counted for N = 5",
         sampled(False), sampled(True), "drawn with replacement"),
    Step("family.3.1", "identity", "three local steps, unrolled", drifted(), drifted(2), "the correction counted twice",
         ("ssf.lemma2.eq9-10",)),
    Step("family.3.2", "certificate", "both differences are sums of squares", every(TWO, CAUCHY), NOT_CAUCHY,
         "k - 1 instead of k", ("ssf.lemma2.eq11-12",)),
    Step("family.3.3", "expectation", "two symmetric outcomes with any odds, all symbols", moment(True), moment(False),
         "the square of the mean"),
    Step("family.3.4", "expectation", "three steps, the size of each noise any function of the signs before it",
         martingale(True), martingale(False), "one sample kept for all local steps", ("ssf.lemma2.eq13-16",)),
    Step("family.3.5", "identity", "the sums and their bound, the induction by sympy, the exponential's series",
         SUMS, counted(F["squares"].changed("K**2*(K - 1)", "K*(K - 1)**2")),
         "K (K - 1)^2 instead of K^2 (K - 1)", ("ssf.sharper.lemma2",)),
    Step("family.3.6", "identity", "any number of clients, by the first two moments of the u_i", pulls(True),
         pulls(False), "any vector instead of the mean", ("ssf.theorem1.eq110",)),
    Step("family.3.7", "identity", "3.2 twice, the sums of 3.5 and the claim, by expansion", RECURSION,
         {"4*lr**2*k**2": "3*lr**2*k**2"}),
    Step("family.4.1", "implication", "for all steps up to 1/L and all second moments", SPLIT,
         {"sqP(w)": "9/10*sqP(w)"},
         "nine tenths of the sampling", ("ssf.sharper.lemma3",)),
    Step("family.4.2", "expectation", "two clients, two steps, independent signs", averaged(True), averaged(False),
         "one sign for all", ("ssf.lemma3.eq49-54",)),
    Step("family.4.3", "implication", "for all second moments of the four parts", MOVED, {"3*L**2": "3/2*L**2"}),
    Step("family.4.4", "identity", "two symmetric outcomes with any odds whose mean is rho I; the sum of the parts",
         every(quadratic(True), descent_of(F["noise"])), quadratic(False), "a map whose mean is no multiple of I"),
    Step("family.5.1", "certificate", "the difference is p (1 - p) times a square, for each eigenvalue", convex(1),
         convex(2), "twice the square"),
    Step("family.5.2", "implication", "for all phi mu in (0, 1]", KEPT, {"phi*mu/2": "3/4*phi*mu"}),
    Step("family.5.3", "certificate", "the parts, three clients, any matrix instead of Q/rho (fedsub.4.1); the "
         "difference of the squares is a sum of squares", every(parts(1), parted(2)), either(parts(-1), parted(1)),
         "the drift with the other sign; 1 for 2"),
    Step("family.5.4", "expectation", "from the first two moments of Q; a client's part against the mean one "
         "(fedsub.4.6); the rows of the table", every(forgotten(2), centred(True), FORGOT),
         either(forgotten(1), centred(False)),
             "divided by rho, not by its square; any vector instead of the mean"),
    Step("family.5.5", "identity", "the mean over the set and the clients", REFRESHED, {"2*phi": "phi"}),
    Step("family.6.1", "identity", "the sum of the claims", ASSEMBLED, {"1.388": "1.389"}),
    Step("family.6.2", "implication", "for all positive numbers", NO_MEMORY, {"7/8": "6/7"}),
    Step("family.6.3", "implication", "for all positive numbers", GRADIENTS, {"9/20": "47/100"}),
    Step("family.6.4", "implication", "for 0 < p <= 1/100", NOISE, {"2/3": "13/20"}),
    Step("family.6.5", "identity", "the sum over the rounds, divided", DIVIDED, {"20/9": "2"}),
    Step("family.7.1", "implication", "for p <= 1/100, u <= 1/8 and N >= 1", SSF, {"8)": "7)"}, "h^2 <= rho/7"),
    Step("family.7.2", "implication", "for p <= rho/100, h = 1/4", ONCE, {"45": "48"}),
    Step("family.7.3", "implication", "for p <= 1/100, y <= 1/64, all S, N >= 2", SOME, {"/8": "/6"},
         "h <= phi sqrt(rho)/6"),
    Step("family.7.4", "implication", "for y <= 1/64 and S >= 1", every(*SOME_BOUND), {"5.5": "5"}),
    Step("family.7.5", "implication", "for p <= 1/100, h <= 1/4, N >= 1", FULL, {"13/3": "4"}),
    Step("family.7.6", "implication", "for p <= 1/100, h <= 1/10, c p <= rho/5", FORGET, {"rho/40": "rho/30"}),
    Step("family.7.7", "implication", "the same, with 7/10 for kappa", every(*FORGET_BOUND), {"50/9": "5"}),
    Step("family.7.8", "implication", "for all steps up to 1/(L omega), with 3.3 for any two symmetric outcomes",
         every(moment(True), SINGLE), {"-1/2*eta1": "-3/5*eta1"}, "3/5 for 1/2"),
    Step("family.7.9", "expectation", "E (U U^T)^2 for entries of any fourth moment, d and r up to 3 (mud.3.2), at 3",
         every(SECOND_MOMENT, gaussian(3), GAUSSIAN), every(SECOND_MOMENT, gaussian(1)),
             "signs instead of normal numbers"),
    Step("family.7.10", "implication", "both cases of the smaller step", CHOSEN, {"2": "3/2"}),
    Step("family.7.11", "implication", "160/9, 19.2 and 1.5; the table of the methods", every(SPEEDUP, METHODS),
         {"19.2": "19"}),
    Step("family.8.1", "identity", "the two parts are orthogonal, in a basis in which P is diagonal; the solution",
         every(pythagoras(1), FRESH), {"rest)": "rest**2)"}, "two rounds forgotten in one"),
    Step("family.9.1", "expectation", "two lines as P, two samples before; v is any function of both",
         SAMPLE, fresh(False), "a map whose mean is no multiple of I", ("ssf.family_noise",)),
    Step("family.9.2", "implication", "3.2 twice, the sums of 3.5 and the claim, by expansion; the growth by z3",
         HAT_DRIFT, {"1/2*(1 + 1/s)": "1/3*(1 + 1/s)"}, claims=("ssf.family_noise",)),
    Step("family.9.3", "implication", "for h <= 1 and S >= 1", HAT_DESCENT,
         {"(1 + h)/2*eta*L_hat**2": "h/2*eta*L_hat**2"}, claims=("ssf.family_noise",)),
    Step("family.9.4", "identity", "the rows of the table, with L_hat^2 D for L^2 D", HAT_MEMORY, {"2*phi": "phi"},
         claims=("ssf.family_noise",)),
    Step("family.9.5", "implication", "for p <= hat^2, h <= hat <= 1/10, hat^2 <= rho/40", HAT_FORGET,
         {"rho/40": "rho/30"}, claims=("ssf.family_noise",)),
    Step("family.9.6", "arithmetic", "the rounds at which 7.11's second term is the same", FEWER,
         {"(1 + s)*rho": "(2 + s)*rho"}),
    Step("family.9.7", "identity", "the best s; all masks of one or two of three coordinates", BEST,
         {"ell*sqrt(e_k)": "2*ell*sqrt(e_k)"}),
]  # fmt: skip
