"""FLSS in a fixed subspace: the steps of docs/theory/flss.md. Names as there: w, w_P, P, q = eta tau L.

The formulas stand in formulas.py. A check here quotes no constant of the page that a formula has.
"""

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

from fedtheory.theory.flss.formulas import FORMULAS as F
from fedtheory.theory.formula import Formula
from fedtheory.theory.proof import Equal, Fails, Implies, Put, Step, every


def same(v: Any) -> Any:
    return v


def _inner(a: Any, b: Any) -> Any:
    import z3

    return z3.Real("inner")


# 1, 2: no bound on all gradients; the gap


UNBOUNDED = Implies(
    ["w > w_k", F["strong"], "inner <= norm(grad_k)*norm(w - w_k)"], [F["steep"]],
    [("norm", same), ("dot", _inner)], line=True,
)  # fmt: skip
CONVEX = Implies(["mu <= L"], [F["convex"]], cleared=True)
GAP = Implies([F["convex"], F["nearest"], F["farther"]], [F["gap"]])
BOTH_SIDES = every(
    GAP,
    Implies([F["convex"], "far >= dist**2"], ["less >= least"],
            [("less", F["farther"].side(1)), ("least", F["farther"].side(2))]),
    Equal(F["farther"].side(1), "F_star + low", ["far == dist**2", ("low", F["gap"].side(0))]),
    Equal(F["nearest"], "F_star + smooth", ["near == dist**2", ("smooth", F["smooth"])]),
)  # fmt: skip


# 3: the rate


def squared(fresh: bool) -> Callable[[], bool]:
    """Two of three clients, noise of both signs, one of two directions kept: E|w^+ - w_P|^2 from its parts.

    `fresh`: else a client is never drawn.
    """

    def check() -> bool:
        import sympy

        eta, tau = sympy.symbols("eta tau", positive=True)
        away, g, n = (sympy.symbols(f"{name}:3") for name in ("w", "g", "n"))
        mean, second, count = sympy.Integer(0), sympy.Integer(0), 0
        for drawn in list(combinations(range(3), 2))[: None if fresh else -1]:
            for signs in product((-1, 1), repeat=2):
                moved = sum(g[i] + sign * n[i] for i, sign in zip(drawn, signs)) / 2
                mean += (away[0] - eta * tau * moved) ** 2
                second += moved**2
                count += 1
        names = {"near": away[0] ** 2, "inner": away[0] * sum(g) / 3, "second": second / count, "E": same}
        right = F["square"].right({**names, "eta": eta, "tau": tau}, sympy.Rational)
        return sympy.expand(mean / count - right) == 0

    return check


TANGENT = Implies(
    [F["convex"], F["thirds"], "h_z <= h_y + dot(grad_y, z - y) + L/2*sq(z - y)",
     "h_x >= h_y + dot(grad_y, x - y) + mu/2*sq(y - x)",
     "dot(grad_y, z - x) == dot(grad_y, z - y) - dot(grad_y, x - y)"],
    [F["tangent"]],
)  # fmt: skip
SLOPE = Equal(
    F["slope"], F["tangent"],
    [("sq", same), "z == 0", "x == -near", "y == -D", "h_x == 0", "h_z == delta"],
)  # fmt: skip
LOWERED = Equal("-step*sq(g) + L/2*step**2*sq(g)", "-lowered", ["step == 1/L", ("lowered", F["lowered"])])
AT_OPTIMUM: list[Put] = [("dot", lambda a, b: 0), "h_w == delta", "h_v == 0", ("most", F["cocoercive"])]
COCOERCIVE = every(
    LOWERED,
    Equal(F["cocoercive"].side(0), "2*L*lowered", ["g == grad_w - grad_v", ("lowered", F["lowered"])]),
    Equal(F["cocoercive"], "2*L*((h_w - dot(grad_v, w)) - (h_v - dot(grad_v, v)))"),
    Equal("sq(u + v) <= (1 + p)*sq(u) + (1 + 1/p)*sq(v)", "sq(p*u - v)/p", gap=True),
    Equal(F["slopes"], "(1 + p)*most + (1 + 1/p)*zeta**2", AT_OPTIMUM),
    Equal(F["slopes_1"], F["slopes"], ["p == 1"]),
    Equal(F["slopes_10"], F["slopes"], ["p == 10"]),
    Equal(F["slope_P"], "most", AT_OPTIMUM),
    Implies(["F_w >= F_P + product + mu/2*near", "product == 0", "delta == F_w - F_P"], [F["grows"]]),
)
AT_A: list[Put] = ["h_w == h_a", "w == a", "h_v == h_b", "v == b", "grad_v == g_b"]
AT_B: list[Put] = ["h_w == h_b", "w == b", "h_v == h_a", "v == a", "grad_v == g_a"]
APART = every(
    Equal("first + second", "2*most",
          [*AT_A, ("first", F["cocoercive"]), *AT_B, ("second", F["cocoercive"]),
           "u == a", "v == b", "grad_u == g_a", "grad_v == g_b", ("most", F["nearer"])]),
    Equal(F["nearer"].side(0), "sq(grad_u - grad_v)"),
    Equal(F["apart"].side(0), "sq(u - v) - 2*eta*dot(grad_u - grad_v, u - v) + eta**2*sq(grad_u - grad_v)"),
    Implies(["n >= 0", "n <= L*p", "eta > 0", "L > 0", "eta*L <= 2"], ["eta**2*n <= 2*eta*p"]),
    Implies(["tau >= 1", F["steps"].side(1).text + " <= 1/20"], ["eta*L <= 2"], cleared=True),
)  # fmt: skip


def summed(*sums: Formula) -> Callable[[], bool]:
    """Sums over j < tau by sympy: with tau = 1 + t the bound has more, by coefficients that are not negative."""

    def check() -> bool:
        import sympy

        tau, t, j = sympy.symbols("tau t j")
        names = {"tau": tau, "j": j, "sum_j": lambda v: sympy.summation(v, (j, 0, tau - 1))}
        for left, sign, right in (link for one in sums for link in one.links(names, sympy.Rational)):
            more = sympy.Poly(sympy.expand(right - left).subs(tau, 1 + t), t)
            if min(more.coeffs()) < 0 or (sign == "==" and not more.is_zero):
                return False
        return True

    return check


LENGTH: Put = ("norm", same)
OVER_TAU: list[Put] = ["tau == 1 + t", "eta == 1", ("squares", F["sums_squares"]), ("single", F["sums"])]
DRIFT = every(
    summed(F["sums"], F["sums_squares"]),
    *(Equal("most + added", "more",
            [LENGTH, ("most", F[name]), ("more", F[name].changed("j*eta", "(j + 1)*eta")), ("added", added)])
      for name, added in (("quiet_far", Formula("eta*grad_k")), ("noise_far", Formula("eta**2*sigma**2")))),
    # L times a distance bounds what gradients differ by
    Equal("eta*L*(u**2 + (changed/L)**2) + 2*eta*u*changed", "eta/L*(L*u + changed)**2"),
    Implies([], ["j**2/2 + j <= (j + 1)**2/2"]),
    Equal(F["together"], "eta*L*(j*sq(v_j - w) + j**2/2*eta**2*sigma**2)", ["q == eta*L*j"]),
    Equal(F["drifted"], "far**2 + both + noise",
          [LENGTH, ("far", F["quiet_far"]), "v_j == far + w", ("both", F["together"]), ("noise", F["noise_far"])]),
    *(Implies([f"q <= {F['steps'].side(-1).text}"], ["made/tau <= most"],
              [f"grad_k == {slope}", f"sigma == {1 - slope}", *OVER_TAU, "slopes == grad_k**2", "j == 1",
               ("one", F["drifted"].term(0)), ("noise", F["drifted"].term(1)),
               "made == squares*one + single*noise", ("most", F["drift"])], cleared=True) for slope in (0, 1)),
)  # fmt: skip


def drawn(size: Formula) -> Callable[[], bool]:
    """The variance of the mean of M of N numbers drawn without replacement is `size` times that of one: all subsets."""

    def check() -> bool:
        import sympy

        for N, M in ((4, 2), (5, 3), (3, 3)):
            g = sympy.symbols(f"g0:{N}")
            mean, subsets = sum(g) / N, list(combinations(g, M))
            left = sum((sum(one) / M - mean) ** 2 for one in subsets) / len(subsets)
            right = size.right({"N": N, "M": M}, sympy.Rational) * sum((one - mean) ** 2 for one in g) / N
            if sympy.expand(left - right) != 0:
                return False
        return True

    return check


SHARE = F["sampling"].side(1)
DRAWN = every(
    Implies(["M == 1", "N == 1"], [F["sizes"]]),  # admitted
    drawn(SHARE),
    Equal(F["count"]),
    Equal(F["count"], "share/N", [("share", SHARE)]),
    Implies([F["sizes"], "M < N"], ["share <= most"], [("share", SHARE), ("most", F["sampling"].side(2))],
            cleared=True),
    Equal(SHARE, F["sampling"].side(2), ["M == 1"]),
)  # fmt: skip
SECOND = every(
    Equal(F["parts"], "1/2*sq(a - 2*b) + 1/2*sq(c - 2*b)", gap=True),
    Equal(F["second"], "most",
          [("sq", same), ("dot", lambda a, b: 0), ("a", F["sampled"]), "b == L**2*D", "c == sigma**2/(M*tau)",
           ("most", F["parts"])]),
    Equal(F["sampled"], "slope_P + s*slopes", [("slope_P", F["slope_P"]), ("slopes", F["slopes_1"])]),
)  # fmt: skip
PULLED: list[Put] = [("slopes", F["slopes_10"].term(1)), ("rest", F["drift"])]  # the drift without delta
MOVED = ("moved", F["drift"].changed("(1 - 1/tau)", "1").changed("sigma**2", "0"))  # that of delta alone
ASSEMBLED = every(
    Equal(F["square"], "kept*near + eta*tau*delta*of_delta + of_D*rest + left",
          [("E", same), "q == eta*tau*L", *PULLED, ("slopes", F["slopes_10"].term(0)), MOVED, "D == moved + rest",
           ("inner", F["slope"]), ("second", F["second"]), ("of_delta", F["of_delta"].side(0)),
           ("of_D", F["of_D"].side(0)), ("left", F["left"]), ("kept", F["kept"])]),
    Implies(["tau >= 1"], ["(1 - 1/tau)*x <= x"], cleared=True),
)  # fmt: skip
LARGEST = [f"q <= {F['steps'].side(-1).text}", f"s <= {F['sampling'].side(2).text}"]
OF_DELTA = every(
    Implies(LARGEST, [F["of_delta"]], cleared=True),
    Fails(
        Implies(
            LARGEST, ["left <= 51/50*most"], [("left", F["of_delta"].side(0)), ("most", F["of_delta"])], cleared=True
        )
    ),
    Equal(F["round"], "kept*near + eta*tau*most*grows",
          ["c == 0", ("kept", F["kept"]), ("most", F["of_delta"]), ("grows", F["grows"])]),
)  # fmt: skip
OF_DRIFT = every(
    Implies(LARGEST[:1], [F["of_D"]], cleared=True),
    Equal(F["of_D"].side(0), F["of_D"], ["q == 1/20"]),
    Implies([], [F["of_noise"], F["of_zeta"]]),
    Equal("of_D*rest", "(1 - 1/tau)*eta*tau*L*(noise*tau*eta**2*sigma**2 + pull*tau**2*eta**2*zeta**2)",
          [*PULLED, ("of_D", F["of_D"]), ("noise", F["of_noise"].side(0)), ("pull", F["of_zeta"].side(0))]),
    Equal(F["left_drift"], "(1 - 1/tau)*eta*tau*L*(noise*tau*eta**2*sigma**2 + pull*tau**2*eta**2*zeta**2)",
          [("noise", F["of_noise"]), ("pull", F["of_zeta"])]),
)  # fmt: skip
KEPT: list[Put] = ["near == 1", "c == 0", ("kept", F["round"])]
ADDED: list[Put] = [("left", F["left"]), ("drifted", F["left_drift"])]
FIXED = every(
    Equal("(1 - m)*e + c", "e", [("e", F["fixed"])]),
    Equal("(1 - m)*bound + c", "next",
          [("bound", F["unrolled"]), ("next", F["unrolled"].changed("T", "(T + 1)"))]),
    Implies([F["contracts"]], ["1 - m > 0", "1 - m < 1"]),
    Implies([F["convex"], F["steps"]], [F["contracts"]], [F["m"]], cleared=True),
    Equal("1 - m", "kept", [F["m"], *KEPT]),
    Equal(F["theorem"].term(0), "kept**T*near_0", KEPT),
    Equal(F["theorem"].term(1), F["fixed"], [F["m"], *ADDED, "c == left + drifted"]),
)  # fmt: skip


# 4: the paper's corollaries


LOSS = every(
    Implies(["F_w <= F_P + product + L/2*near", "product == 0"], [F["smooth"]]),
    Equal(F["loss"], "smooth + up", ["near == near_T", ("smooth", F["smooth"]), ("up", F["gap"])]),
)
OTHER = ("max", lambda a, b: b)
AT_N: list[Put] = ["eta_t == 2/(mu*tau*n)", "eta == eta_t"]
MANY: Put = ("drifted", F["left_drift"].changed("(1 - 1/tau)", "1"))
DECREASING = every(
    Equal("L*eta_t*tau", F["short"], ["t == 0", F["gamma"], F["eta_t"]]),
    Equal(F["short"], F["steps"]),
    Equal("2/(mu*tau*n)", F["eta_t"], ["n == t + gamma"]),
    *(Implies([], ["used <= said"], [("most", F["short"]), "eta_t == most/(L*tau)", ("used", F[one].side(0)),
                                     ("said", F[one])], cleared=True) for one in ("short_zeta", "short_noise")),
    Equal("drifted", "noise*eta_t**2*tau*sigma**2 + pull*eta_t**2*tau**2*zeta**2",
          ["eta == eta_t", MANY, ("noise", F["short_noise"].side(0)), ("pull", F["short_zeta"].side(0))]),
    Equal("left + noise*eta_t**2*tau*sigma**2 + pull*eta_t**2*tau**2*zeta**2", F["adds"],
          [*AT_N, *ADDED, ("noise", F["short_noise"]), ("pull", F["short_zeta"]), OTHER, F["A"]]),
    Equal(F["keeps"], "kept", [*AT_N, *KEPT]),
    Equal(F["next_bound"].side(0), "keeps*(A/n) + adds", [("keeps", F["keeps"]), ("adds", F["adds"])]),
    Implies([], [F["next_bound"]], cleared=True),
    Implies([F["convex"], "n >= gamma"], ["keeps > 0"], [F["gamma"], ("keeps", F["keeps"])], cleared=True),
    Equal(F["decreasing"], "A/n", ["n == T + gamma"]),
    Equal(F["A"], "gamma*near_0", [("max", lambda a, b: a)]),
)  # fmt: skip


STEPS = [
    Step("flss.1.1", "implication", "strong convexity and Cauchy-Schwarz", UNBOUNDED, {"mu*norm": "11/10*mu*norm"},
         "mu raised by a tenth"),
    Step("flss.2.1", "implication", "both sides of the gap, from smoothness at the nearest point and strong convexity",
         BOTH_SIDES, {"L/2*dist": "L/4*dist"}, "L/4 instead of L/2"),
    Step("flss.3.0", "expectation", "two of three clients, noise of both signs, one of two directions kept",
         squared(True), squared(False), "one pair of clients is never drawn"),
    Step("flss.3.1", "certificate", "the difference is a square",
         Equal(F["thirds"], "-3/4*sq(4/3*y - x - 1/3*z)", gap=True), {"1/4": "2/7"}),
    Step("flss.3.2", "implication", "from the tangent at y, for all 0 < mu <= L", every(CONVEX, TANGENT, SLOPE),
         {"mu/8": "mu/4"}, "mu/4 instead of mu/8", ("flss.eq19",)),
    Step("flss.3.3", "identity", "what a step of 1/L gains", COCOERCIVE, {"1/L": "2/L"}, "a step of 2/L"),
    Step("flss.3.4", "implication", "both ways round, for all steps up to 2/L", APART, {"eta*L <= 2": "eta*L <= 3"},
         "steps up to 3/L"),
    Step("flss.3.5", "implication", "by induction over j, the sums by sympy, for all tau >= 1", DRIFT,
         {"0.35": "0.34"}),
    Step("flss.3.6", "expectation", "all subsets of two of four, three of five, three of three",
         DRAWN, drawn(Formula("1/M")), "1/M, as with replacement", ("flss.eq11", "flss.eq12")),
    Step("flss.3.7", "certificate", "the difference is a sum of two squares", SECOND, {"5*sq(b)": "4*sq(b)"},
         "4 instead of 5"),
    Step("flss.3.8", "identity", "the sum of all parts", ASSEMBLED, {"22*L*delta": "21*L*delta"},
         "21 L delta in the drift"),
    Step("flss.3.9", "implication", "for 0 < q <= 1/20, 0 <= s <= 1", OF_DELTA, {"-3/2": "-8/5"}),
    Step("flss.3.10", "arithmetic", "19/12 of 0.513, of 0.385", OF_DRIFT, {"0.82": "0.81"}),
    Step("flss.3.11", "identity", "the fixed point of the recursion, and that it contracts", FIXED, {"0.61": "0.6"}),
    Step("flss.4.1", "implication", "smoothness at w_P and the gap", LOSS, {"L/2*near": "L/4*near"},
         "L/4 instead of L/2"),
    Step("flss.4.2", "implication", "the terms by sympy, the induction for all n", DECREASING, {"A/n**2": "A/n"},
         "a round that adds A/n"),
]  # fmt: skip
