"""Linear rates of the family: the steps of docs/theory/linear.md. The formulas stand in formulas.py.

A check here quotes no constant of the page that a formula has, but where the next smaller one must fail.
"""

from collections.abc import Callable, Sequence
from typing import Any

from fedtheory.theory.family.formulas import FORMULAS as OF_FAMILY
from fedtheory.theory.family.steps import HALVED, NUMBERS, memory, parts_of
from fedtheory.theory.formula import Formula
from fedtheory.theory.linear.formulas import FORMULAS as F
from fedtheory.theory.proof import Equal, Every, Fails, Implies, Put, Said, Step, every
from fedtheory.theory.search import vanishes
from fedtheory.theory.ssf.steps import TWO

FIRST, SECOND = ("min", lambda a, b: a), ("min", lambda a, b: b)
UP: Put = ("max", lambda a, b: a)
OVER: Put = ("max", lambda a, b: b)

# 1: the Polyak-Lojasiewicz condition

KEPT = every(
    Implies([], ["coef_C <= left"],
            ["L == 1", "D == X", "m == 0", ("loss", OF_FAMILY["kappa"]), "m == kappa_s + s - loss", OF_FAMILY["q"],
             F["weight"], HALVED, ("coef_C", OF_FAMILY["coef_C"]), ("left", F["left"])], cleared=True),
    Equal(F["weight"], OF_FAMILY["weight"], ["kappa == kappa_s"]),
    Equal(F["kappa_s"].side(1), "kappa - s"),
    Equal(F["kappa_s"].side(2), "0"),
)  # fmt: skip
SAME = every(
    Equal(F["condition"].side(0), OF_FAMILY["condition"].side(0), ["kappa == kappa_s"]),
    Equal(F["condition"].side(1), OF_FAMILY["condition"].side(1)),
    Equal("s*stays", "coef_zeta*zeta**2 + at_most*theta*sigma**2/K",
          [F["s"], F["weight"], F["stays"], *parts_of("coef_zeta", "at_most")]),
)  # fmt: skip
CONTRACTED = every(
    Implies([F["pl"], "rho > 0", "eta > 0"], [F["used"]], [F["s"]]),
    Equal(F["used"].side(0), "lead*G2", parts_of("lead")),
    Implies([F["pl"], F["slope"], "f > 0"], ["ell <= L"]),
    Implies([F["ell"], "rho > 0", "rho <= 1", "eta > 0", OF_FAMILY["server"]], ["s <= most"],
            [F["s"], ("most", F["s_most"])]),
    Equal(F["round"], "f + M*C - s*f - s*M*C + s*stays", ["Phi == f + M*C"]),
)  # fmt: skip
UNROLLED = every(
    Equal(F["unrolled"], None),
    Equal(F["theorem"], "(1 - s)**T*Phi_0 + stays", ["Phi_0 == gap + M*C0"]),
    Equal(F["rounds"], "log(Phi_0/eps)/s", ["eta == h/L", F["s"], ("log", lambda v: v)]),
)  # fmt: skip
ALONE: list[Put] = ["M == 0", HALVED, *parts_of("coef_G", "coef_C", "coef_noise", "lead")]
NONE = every(
    Implies(["p <= 1/100", OF_FAMILY["omega_p"], "S >= 1"],
            ["coef_G <= lead", "coef_C <= rho*eta*q", "coef_noise <= eta*(h/S + 2/3*p)"],
            ["omega == X/p", OF_FAMILY["q"], *ALONE], cleared=True),
    Equal("s*none", "rho*eta*q*zeta**2 + eta*(h/S + 2/3*p)*theta*sigma**2/K", [F["s"], ("none", F["none"])]),
)  # fmt: skip

# 2: the members; omega = 1, which bounds the others, and units of L = 1


OF_S: list[Put] = ["L == 1", "eta == h", F["s"], "kappa_s == kappa - s"]
LOCAL = ["p <= 1/100", "rho <= 1", "ell <= 1", "N >= 1"]
ALL: list[Put] = ["omega == 1", "phi == 1", "nu == 0", "S == N"]


def most(given: Sequence[Said], where: Sequence[Put], left: Formula, right: Formula, *less: tuple[str, str]) -> Every:
    """A bound, and that it does not hold with the next smaller numbers in the place of its own."""
    one = lambda right: Implies(given, ["left <= right"], [*where, ("left", left), ("right", right)], cleared=True)
    return every(one(right), *(Fails(one(right.changed(*numbers))) for numbers in less))


def member(
    name: str, given: Sequence[Said], row: Sequence[Put], *, start: Sequence[tuple[str, str]],
    noise: Sequence[tuple[str, str]] | None = None, clients: Sequence[tuple[str, str]] = (),
) -> Every:  # fmt: skip
    """A row of the memories in theorem 1: kappa_s, the condition, the start and what stays of noise and clients.

    row: of the memory, and what h, q and kappa are.
    """
    least = F[f"{name}_kappa"]
    bound: list[Put] = [*row, ("kappa_s", least)]
    alone = lambda zeta, sigma: [f"zeta == {zeta}", f"sigma == {sigma}", *bound]
    return every(
        Implies(given, ["kappa_s >= least", F["condition"]], [*row, *OF_S, ("least", least)], cleared=True),
        Fails(Implies(given, ["kappa_s >= 11/10*least"], [*row, *OF_S, ("least", least)], cleared=True)),
        most(given, bound, F["weight"], F[f"{name}_start"], *start),
        *([] if noise is None else [most(given, alone(0, 1), F["stays"], F[f"{name}_stays"], *noise)]),
        most(given, alone(1, 0), F["stays"], F[f"{name}_stays"], *clients),
    )


WHOLE: list[Put] = [*ALL, "mu == rho", *memory("kept"), "h == sqrt(u*rho)", *NUMBERS]
SSF = every(
    member("ssf", [*LOCAL, "u <= 1/8", "u*rho <= 1/16"], WHOLE, start=[("4.1", "4.0")], noise=[("17", "16")]),
    member(
        "ssf",
        ["p <= 1/100*rho", "rho <= 1", "ell <= 1"],
        [*ALL, "mu == rho", *memory("kept"), OF_FAMILY["once_h"], *NUMBERS],
        start=[("4.1", "4.0")],
    ),
    Equal("most**2", "1/100*rho", [("most", OF_FAMILY["once_local"])]),
    Equal("h**2", "1/8*rho", [SECOND, ("h", OF_FAMILY["ssf_step"])]),
    Equal("h", "1/4", [FIRST, ("h", OF_FAMILY["ssf_step"])]),
    Equal(F["ssf_stays"], "10/(9*ell)*noise*(h/N + 17*p)", ["noise == theta*sigma**2/(rho*K)"]),
)
# y: h^2/(phi^2 rho); H: h nu, at most 1/8 phi nu <= 1/16 by the family's 7.3
FEW = "(y*phi**2*rho)"
FEW_AT: list[Put] = ["omega == 1", "mu == rho", *memory("kept"), OF_FAMILY["q"].changed("h*nu", "H"),
                     ("kappa_s", F["some_kappa"])]  # fmt: skip
SOME_GIVEN = ["p <= 1/100", "rho <= 1", "ell <= 1", "phi <= 1", "y <= 1/64", "S >= 1"]
SOME = every(
    Implies([*SOME_GIVEN, "nu <= 1", "phi*nu <= 1/2", "H <= 1/8*phi*nu"],
            ["kappa_s >= least", F["condition"].changed("h**2", FEW)],
            [*FEW_AT[:-1], OF_FAMILY["kappa"].changed("h**2", FEW), ("most", OF_FAMILY["some_step"]),
             "s == 9/10*rho*ell*most", "kappa_s == kappa - s", ("least", F["some_kappa"])], cleared=True),
    Equal("s", F["s"], [("most", OF_FAMILY["some_step"]), "s == 9/10*rho*ell*most", "eta == most"]),
    Equal(F["some_kappa"], "least - 9/80*phi*rho", [("least", OF_FAMILY["some_kappa"])]),
    most(SOME_GIVEN, FEW_AT, F["weight"], F["some_start"].changed("h*nu", "H"), ("3.6", "3.5"), ("4.1", "4.0")),
    most(SOME_GIVEN, ["zeta == 0", *FEW_AT], F["stays"].changed("h**2", FEW), F["some_stays"].changed("h*nu", "H"),
         ("12", "11"), ("13", "12")),
    Equal(F["some_stays"], "10/(9*ell)*noise*(h/S + 12*p + 13*h*nu)", ["noise == theta*sigma**2/(rho*K)"]),
)  # fmt: skip
FULL = every(
    member("full", [*LOCAL, OF_FAMILY["quarter"]], [*ALL, "mu == 1", "theta == 1", *memory("kept"), *NUMBERS],
           start=[("3.9", "3.8")], noise=[("15", "14")]),
    Equal(F["full_stays"], "10/(9*ell)*noise*(h/N + 15*p)", ["noise == sigma**2/(rho*K)"]),
)  # fmt: skip
FORGET_GIVEN = [*LOCAL, "p <= h**2", "h <= 1/10", "h**2 <= rho/40"]
FORGET = every(
    member("forget", FORGET_GIVEN, [*ALL, *memory("forget"), *NUMBERS], start=[("1.3", "1.2")],
           noise=[("12", "11")], clients=[("2.6", "2.5")]),
    Implies([*FORGET_GIVEN[:-1], "h**2 <= rho/20"], ["kappa_s >= least", F["condition"]],
            [*ALL, *memory("forget"), ("alpha", OF_FAMILY["quiet_alpha"]), *NUMBERS, *OF_S,
             ("least", F["forget_kappa"])], cleared=True),
    Equal(F["forget_stays"], "10/(9*ell)*(2.6*(1/rho - 1)*p*zeta**2 + noise*(h/N + 12*p/rho))",
          ["noise == theta*sigma**2/(rho*K)"]),
)  # fmt: skip

# 3: strong convexity, in units of L = 1; A, r: squares of A_i and of c_i - grad F_i(x*)


def of_convex(smooth: int) -> Callable[[], bool]:
    """g(y) = f(y) - f(z) - <f'(z), y - z> of a convex and L-smooth f has g'(y)^2 <= 2 L g(y): a step of g'(y)/L."""
    return Implies(["least >= 0", "least <= value - slope*t + smooth/2*t**2", "t == slope/L", f"smooth <= {smooth}*L",
                    "L > 0"], ["slope**2 <= 2*L*value"])  # fmt: skip


COCOERCIVE = every(
    of_convex(1),
    TWO,
    Equal(F["apart"], "2*mean + 2*C_", [("mean", F["cocoercive"])]),
    Equal(F["slope"], F["cocoercive"]),
)
DISTANCE = every(
    Equal("sq(P*a)*ell/2 + 2/ell*sq(b) + 2*dot(P*a, b)", "2/ell*sq(ell*P*a/2 + b)"),
    Equal("side - other", "2/ell*sq(ell*P*a/2 + b)", [("side", F["cross"]), ("other", F["cross"].side(0))]),
    Equal(F["distance"], "e2 - 2*eta*rho*(f + ell/2*e2) + eta*cross + moved",
          ["P == 1", "a == sqrt(rho*e2)", "b == L*sqrt(D)", ("cross", F["cross"])]),
)  # fmt: skip
MEMORY = every(
    Equal(F["memory"], "(1 - phi)*C_ + phi*((1 - mu)*C_ + two(mu*mean, two(L**2*D, theta*sigma**2/K)))",
          [("two", lambda a, b: 2 * a + 2 * b), ("mean", F["cocoercive"])]),
)  # fmt: skip
DRIFT2 = OF_FAMILY["drift"].changed("V + G2", f"({F['apart'].side(1).text})")
ASSEMBLED = every(
    Equal("e2_1 + M*C_1", "(1 - 1/2*rho*ell*eta)*e2 + M*C_ + coef_f*f + coef_C*C_ + coef_noise*(theta*sigma**2/K)",
          ["omega == 1", "h == L*eta", ("drift", DRIFT2), "D == drift/L**2", F["B"], ("slope", F["slope"]),
           ("moved", OF_FAMILY["moved"].changed("2*omega*rho*G2", "2*rho*slope")
            .changed("2*omega*rho*nu*V", f"2*rho*nu*({F['apart'].side(1).text})")),
           ("e2_1", F["distance"]), ("C_1", F["memory"]), ("coef_f", F["coef_f"]), ("coef_C", F["coef_C"]),
           ("coef_noise", F["coef_noise"])]),
    Equal(F["potential"], "e2 + M*C_"),
)  # fmt: skip
# P: p L/ell, at most 1/100; W: h nu
UNITS: list[Put] = ["L == 1", "eta == h", "p == P*ell", "nu == W/h", F["weight2"], F["B"]]
ADMITTED = ["P <= 1/100", "ell <= 1", "rho <= 1", "mu <= 1", F["share"], "phi <= 1", "W <= h", "S >= 1",
            F["server"].changed("h*(1 + 10*nu)", "(h + 10*W)")]  # fmt: skip


def coefficients(*said: str, where: Sequence[Put] = (), given: Sequence[Said] = ADMITTED) -> Implies:
    names: list[Put] = [(one, F[one]) for one in ("coef_f", "coef_C", "coef_noise", "none_f", "half_C", "noise_most")]
    return Implies(given, said, [*UNITS, *names, *where], cleared=True)


FALLS = every(
    coefficients("coef_f <= none_f"),
    coefficients("coef_C <= half_C"),
    Equal(F["short"], "ell/L*most", ["most == 1/100"]),
    Equal(F["server"].side(0), "h + 10*W", ["nu == W/h"]),
    Equal(F["server"].side(1), "1/4"),
    Fails(coefficients("coef_f <= none_f", given=[*ADMITTED[:-1], "h + 9*W <= 1/4"])),
    Fails(coefficients("coef_C <= half_C", where=[("weight", F["weight2"].changed("20", "19")), "M == weight", F["B"],
                                                  ("coef_C", F["coef_C"]), ("half_C", F["half_C"])])),
    Fails(coefficients("coef_C <= half_C", where=[("weight", F["weight2"].changed("8", "7")), "M == weight",
                                                  F["B"], ("coef_C", F["coef_C"]), ("half_C", F["half_C"])])),
)  # fmt: skip
OF_NOISE: list[Put] = [("theorem", F["theorem2"].term(1)), ("most", F["noise_most"])]
RATE = every(
    coefficients("coef_noise <= noise_most"),
    Fails(coefficients("coef_noise <= noise_most", where=[("noise_most", F["noise_most"].changed("32", "31"))])),
    Fails(coefficients("coef_noise <= noise_most", where=[("noise_most", F["noise_most"].changed("84", "83"))])),
    Equal("theorem", "most*theta*sigma**2/(K*s)", OF_NOISE),
    Equal("one", "1/2*rho*ell*eta", [FIRST, ("one", F["s2"])]),
    Equal("one", "-half/M", [SECOND, ("one", F["s2"]), ("half", F["half_C"])]),
    Equal("T*s", "log(Psi_0/eps)", [FIRST, UP, "eta == 1/(4*L*(1 + 10*nu))", ("log", lambda v: v),
                                    ("s", F["s2"]), ("T", F["rounds2"])]),
    Equal("T*s", "log(Psi_0/eps)", [SECOND, OVER, "phi == S/N", "mu == rho", ("log", lambda v: v),
                                    ("s", F["s2"]), ("T", F["rounds2"])]),
)  # fmt: skip
NONE2_AT: list[Put] = ["M == 0", F["B"], ("coef_f", F["coef_f"]), ("coef_C", F["coef_C"])]
NONE2 = every(
    coefficients("coef_f <= 0", "coef_C <= 1/2*rho*ell*eta*none2", where=[*NONE2_AT, "zeta_ == 1",
                 ("none2", F["none2"])]),
    Fails(coefficients("coef_C <= 1/2*rho*ell*eta*none2",
                       where=[*NONE2_AT, "zeta_ == 1", ("none2", F["none2"].changed("8", "7"))])),
    Fails(coefficients("coef_C <= 99/100*(1/2*rho*ell*eta*none2)", where=[*NONE2_AT, "zeta_ == 1", "P == 0",
                 "p == 0", F["B"], ("coef_C", F["coef_C"]), ("none2", F["none2"])])),
)  # fmt: skip

# 4: the floors are real


def local_paths(share: Formula) -> Callable[[], bool]:
    """K = 1 to 4 local steps of both clients, with a correction w - v of client 1 and v - w of client 2.

    The model moves as `share` says, by K lr/2 (delta w - (1 - delta) L x); FedSub's next dual is its own line 12.
    """

    def check() -> bool:
        import sympy

        x, v, w, L, lr, rho = sympy.symbols("x v w L lr rho", positive=True)
        first, second = [F["two"].links({"x": x, "v": v, "L": L, "F_1": 0, "F_2": 0, "sq": lambda a: a**2,
                                         "dot": lambda a, b: a * b}, sympy.Rational)[i][2] for i in (0, 1)]  # fmt: skip
        for K in (1, 2, 3, 4):
            names = {"K": K, "L": L, "lr": lr, "x": x, "v": v, "w": w, "rho": rho}
            names["lam"] = F["lam"].right(names)
            names["delta"] = share.right(names, sympy.Rational)
            means = []
            for loss, sign in ((first, 1), (second, -1)):
                y, total, slope = x, 0, sympy.diff(loss, x)
                for _ in range(K):
                    total += slope.subs(x, y)
                    y = y - lr * (slope.subs(x, y) + sign * (w - v))
                means.append((y, total / K))
            jump = (means[0][0] + means[1][0]) / 2 - x
            dual = (means[1][1] - means[0][1]) / 2  # u_1^+ = -(a_1 - a)
            names["j"] = jump
            said = [
                F["jump"].right(names, sympy.Rational) - jump,
                F["next_w"].right(names, sympy.Rational) - v - dual / rho,
            ]
            said += [F["drifts"].right(names, sympy.Rational) - x - jump.subs(w, v)]
            if not all(map(vanishes, said)):
                return False
        return True

    return check


NONE_END = every(
    local_paths(F["delta"]),
    Equal("rest", "x", ["x == delta*v/(L*(1 - delta))", ("rest", F["drifts"])]),
    Equal(F["none_end"], "L/4*x**2", ["v == zeta", "x == delta*v/(L*(1 - delta))"]),
)
SAMPLED_END = every(
    Equal("y", "(1 - c)**2*y + c**2*nu*zeta**2/L**2", ["y == 2*end/L", ("end", F["sampled_end"]),
                                                       "y == 2*end/L"]),
    Equal(F["c"], "c", ["K == 1", "c == L*lr"]),
    Equal("(1 - next)", "(1 - c)*(1 - L*lr)", [("c", F["c"]), ("next", F["c"].changed("**K", "**(K + 1)"))]),
)  # fmt: skip


def stationary(turned: str) -> Callable[[], bool]:
    """The second moments solve their equations: a coordinate is drawn with odds rho, x and w have mean zero.

    turned: the factor of the dual in w^+ = v + u^+/rho.
    """

    def check() -> bool:
        import sympy

        lam, d, rho, L, v = sympy.symbols("lam delta rho L v", positive=True)
        x, w = sympy.symbols("x w")
        names = {"lam": lam, "delta": d, "rho": rho, "L": L, "v": v, "zeta": v, "x": x, "w": w}
        names["j"] = F["jump"].right(names, sympy.Rational)
        later = F["next_w"].changed("1/rho", turned).right(names, sympy.Rational)
        names["step2"] = 4 * F["forget_end"].right(names, sympy.Rational) / L * lam * (1 - d) / (1 + d / 2)
        x2, xw, w2 = (F[one].right(names, sympy.Rational) for one in ("of_x2", "of_xw", "of_w2"))

        def mean(of: Any) -> Any:
            values = {(2, 0): x2, (1, 1): xw, (0, 2): w2, (0, 0): 1, (1, 0): 0, (0, 1): 0}
            return sum(c * values[k] for k, c in sympy.Poly(sympy.expand(of), x, w).terms())

        after = x + names["j"]
        gaps = [rho * mean(after**2) + (1 - rho) * x2 - x2, rho * mean(after * later) + (1 - rho) * mean(x * v) - xw,
                rho * mean(later**2) + (1 - rho) * v**2 - w2, rho * mean(later) + (1 - rho) * v,
                L / 4 * x2 - F["forget_end"].right(names, sympy.Rational)]  # fmt: skip
        return all(map(vanishes, gaps))

    return check


BURSTS = every(
    # I (1 - ...) = positive has no solution I >= 0 where 1 - ... <= 0
    Implies(["step2 >= 0", "push > 0", "step2*rest == push"], ["rest > 0"]),
    Equal("(1/rho - 1)*(lam*delta**2/(16*L))*((1 + delta/2)/(1 - delta))*zeta**2/(right - left)", F["forget_end"],
          [("left", F["bursts"].side(0)), ("right", F["bursts"].side(1))]),
)  # fmt: skip

STEPS = [
    Step("linear.1.1", "implication", "for all positive numbers", KEPT, {"-s*M": "-11/10*s*M"}),
    Step("linear.1.2", "identity", "the family's 6.3 and 6.4 with kappa_s for kappa; the sum of what stays", SAME,
         {"51/50": "1"}),
    Step("linear.1.3", "implication", "for all ell <= L, rho <= 1, L eta <= 1/4", CONTRACTED,
         {"9/10*rho": "19/20*rho"}),
    Step("linear.1.4", "identity", "the induction from T to T + 1", UNROLLED, {"+ stays": "+ 2*stays"}),
    Step("linear.1.5", "implication", "for p <= 1/100 and S >= 1", NONE, {"2/3": "13/20"}),
    Step("linear.2.1", "implication",
         "for p <= 1/100, u <= 1/8, u rho <= 1/16, N >= 1; for p <= rho/100, h = 1/4; ell <= L", SSF, {"4.1": "4"}),
    Step("linear.2.2", "implication", "for p <= 1/100, y <= 1/64, ell <= L, all S, N >= 2", SOME, {"3.6": "3.5"}),
    Step("linear.2.3", "implication", "for p <= 1/100, h <= 1/4, ell <= L, N >= 1", FULL, {"3.9": "3.8"}),
    Step("linear.2.4", "implication", "for p <= 1/100, h <= 1/10, c p <= rho/5, ell <= L", FORGET, {"2.6": "2.5"}),
    Step("linear.3.1", "implication", "one step of length 1/L on a convex function; 2 a^2 + 2 b^2", COCOERCIVE,
         of_convex(2), "twice the smoothness"),
    Step("linear.3.2", "identity", "the square is completed; the sum of the parts", DISTANCE, {"2/ell": "1/ell"}),
    Step("linear.3.3", "identity", "5.1 and 5.5 of the family's page, with another centre", MEMORY, {"4*phi": "3*phi"}),
    Step("linear.3.4", "identity", "the sum of the claims", ASSEMBLED, {"5.552": "5.553"}),
    Step("linear.3.5", "implication", "for all p L/ell <= 1/100, h + 10 h nu <= 1/4, rho <= mu <= 1, S >= 1", FALLS,
         {"8*h": "7*h"}),
    Step("linear.3.6", "implication", "the same numbers; the sum over the rounds", RATE, {"84": "80"}),
    Step("linear.3.7", "implication", "the same numbers, M = 0", NONE2, {"8*p": "7*p"}),
    Step("linear.4.1", "identity", "one to four local steps of both clients, all symbols", NONE_END,
         local_paths(F["delta"].changed("**K", "**(K + 1)")), "a step more"),
    Step("linear.4.2", "identity", "the fixed point of the second moment", SAMPLED_END, {"2 - c": "2"}),
    Step("linear.4.3", "expectation", "drawn or not, with odds rho: the second moments solve their equations",
         stationary("1/rho"), stationary("1"), "a dual that is not turned"),
    Step("linear.4.4", "implication", "no second moment solves the equations", BURSTS, {"push > 0": "push >= 0"}),
]  # fmt: skip
