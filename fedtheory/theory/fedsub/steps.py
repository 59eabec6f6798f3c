"""FedSub: the steps of docs/theory/fedsub.md. R holds r_l/m_l, Pi = P R P^T, |v|_R^2 = <v, R v>, t = eta tau, as there.

The formulas stand in formulas.py. A check here quotes no constant of the page that a formula has.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from fedtheory.theory.fedsub.formulas import FORMULAS as F
from fedtheory.theory.fedsub.round import attack
from fedtheory.theory.fedsub.sharper import CORNERS, potential
from fedtheory.theory.formula import Formula, Root
from fedtheory.theory.proof import Equal, Fails, Implies, Put, Said, Step, equal, every
from fedtheory.theory.ssf.formulas import FORMULAS as OF_SSF
from fedtheory.theory.ssf.steps import (
    CAUCHY,
    INDUCTION,
    NOT_CAUCHY,
    NOT_INDUCTION,
    TWO,
    exponential,
    pythagoras,
    two,
    unrolled,
)


def same(v: Any) -> Any:
    return v


def positive(name: str) -> Any:
    import sympy

    return sympy.Symbol(name, positive=True)


MEANS: list[Put] = [("E", same), ("sqR", same)]  # squares are numbers of their own


# 1: the round in the full space


def _vectors(sympy: Any, names: str, count: int, d: int = 2) -> list[Any]:
    return [sympy.Matrix(sympy.symbols(f"{names}{i}_:{d}")) for i in range(count)]


def projector(exact: bool) -> Callable[[], bool]:
    """Pi = P P^T/kappa with P^T P = kappa: Pi^2 = Pi, for any sizes; Q is P^T. `exact`: else kappa is left out."""

    def check() -> bool:
        import sympy

        (P, Q), kappa = sympy.symbols("P Q", commutative=False), sympy.Symbol("kappa", positive=True)
        Pi = P * Q / (kappa if exact else 1)
        return sympy.expand(sympy.expand(Pi * Pi).subs(Q * P, kappa) - Pi) == 0

    return check


def lifted(inverse: bool) -> Callable[[], bool]:
    """Line 6 times P: a step of z = P B with Pi = rho P P^T. `inverse`: the dual enters with 1/rho; for any P."""

    def check() -> bool:
        import sympy

        P, lr, rho = sympy.Matrix(3, 2, sympy.symbols("p:6")), *sympy.symbols("lr rho")
        (B,), (g, u) = _vectors(sympy, "B", 1), _vectors(sympy, "g", 2, 3)
        Pi = rho * P * P.T
        left = P * (B - lr * (rho * P.T * g + P.T * u))
        right = P * B - lr * Pi * (g + (u / rho if inverse else u))
        return (left - right).applyfunc(sympy.expand) == sympy.zeros(3, 1)

    return check


def turned(known: bool) -> Callable[[], bool]:
    """Lines 6, 10, 12, 14 for two clients and two steps: x moves by -eta tau Pi mean a, u_i becomes -Pi (a_i - mean).

    `known`: the duals have the sum zero.
    """

    def check() -> bool:
        import sympy

        P, lr, rho = sympy.Matrix(3, 2, sympy.symbols("p:6")), *sympy.symbols("lr rho", positive=True)
        g, u, Pi, t = _vectors(sympy, "g", 4, 3), _vectors(sympy, "u", 2, 3), rho * P * P.T, 2 * lr
        u[1] = -u[0] if known else u[1]
        dual = [t * P.T * one for one in u]
        a = [(g[0] + g[1]) / 2, (g[2] + g[3]) / 2]
        B = [-lr * (2 * rho * P.T * a[i] + 2 * dual[i] / t) for i in (0, 1)]
        mean, centre = (B[0] + B[1]) / 2, (a[0] + a[1]) / 2
        new = [P * (dual[i] + B[i] - mean) / t for i in (0, 1)]
        gaps = [P * mean + t * Pi * centre, *(new[i] + Pi * (a[i] - centre) for i in (0, 1))]
        return all(gap.applyfunc(sympy.expand) == sympy.zeros(3, 1) for gap in gaps)

    return check


def opposed(known: bool) -> Callable[[], bool]:
    """The pulls of three clients sum to zero where the duals do (`known`)."""

    def check() -> bool:
        import sympy

        g, u, R = sympy.symbols("g:3"), list(sympy.symbols("u:3")), sympy.Symbol("R")
        u[2] = -u[0] - u[1] if known else u[2]
        names = {
            "G": sum(g) / sympy.Integer(3),
            "R_inverse": R,
            "h_i": 0,
            **dict.fromkeys(("sum_i", "mean_i", "E"), same),
        }
        rows = [F["pull"].links({**names, "H": 0, "sqR": same, "grad_i": a, "u_i": b}) for a, b in zip(g, u)]
        return sympy.expand(sum(row[0][2] for row in rows) - rows[0][1][2]) == 0

    return check


# 2: drift


ROWS = ((0, 1, 2), (3, 4))  # two layers, one line kept in each: r/m = 1/3 and 1/2
LINES = tuple(product(*ROWS))  # every choice, with the same probability


def _moment(drawn: Iterable[tuple[int, ...]], inside: Any, v: Any) -> Any:
    """The mean over the drawn lines of sum_j weight_j v_j^2, where `inside` makes a coordinate's weight of (kept, rho).

    The weight is that of the square: Pi and R are diagonal in these coordinates.
    """
    import sympy

    drawn = tuple(drawn)
    rho = [sympy.Rational(1, len(rows)) for rows in ROWS for _ in rows]
    total = sum(inside(int(j in kept), rho[j]) * v[j] ** 2 for kept in drawn for j in range(5))
    return sympy.expand(total / len(drawn))


def share(drawn: Iterable[tuple[int, ...]]) -> Callable[[], bool]:
    """E |Pi d|^2 = |d|_R^2."""

    def check() -> bool:
        import sympy

        d = sympy.symbols("d:5")
        weighted = sum(d[j] ** 2 / len(rows) for rows in ROWS for j in rows)
        return sympy.expand(_moment(drawn, lambda kept, rho: kept, d) - weighted) == 0

    return check


def summed(squares: Formula) -> Callable[[], bool]:
    """The sum over s < tau of the first side is the second."""

    def check() -> bool:
        import sympy

        tau, s = positive("tau"), positive("s")
        names = {"tau": tau, "s": s, "sum_s": lambda v: sympy.summation(v, (s, 0, tau - 1))}
        (left, _, right), _ = squares.links(names, sympy.Rational)
        return sympy.expand(left - right) == 0

    return check


SQUARES = every(
    Implies(["tau == 1"], [F["taus"]]),  # admitted
    summed(F["squares"]),
    Implies([F["taus"]], ["sum <= most"], [("sum", F["squares"].side(1)), ("most", F["squares"])]),
)


class _Log:
    """The base of the exponential, of whose powers only the exponents are kept."""

    def __pow__(self, x: Any) -> Any:
        return x


def exponents(first: Formula, second: Formula, **values: Fraction) -> Callable[[], bool]:
    """Two powers of e are the same at these values."""
    return lambda: first.right({"e": _Log(), **values}) == second.right({"e": _Log()})


OF_LAM: list[Put] = ["lam == L*eta*tau"]


def largest(growth: Formula) -> Callable[[], bool]:
    """The chain at the largest lambda, for one step."""
    lam = F["third"].right({})
    return exponential(growth, {"alpha": 2 * lam**2, "K": Fraction(1), "tau": Fraction(1), "lam": lam})


GROWTH = every(
    largest(F["growth"]),
    exponents(F["growth"].side(1), F["growth"].side(2), lam=F["third"].right({})),
    Equal("alpha*tau", "2*lam**2", [F["alpha"], *OF_LAM]),
    Equal(F["third"], F["steps"], ["theta_m == 1"]),
    Equal(F["five_sixths"]),
    Equal(F["five_sixths"].side(0), "squares*growth/(tau**2*(tau - 1))",
          [("squares", F["squares"]), ("growth", F["growth"])]),
)  # fmt: skip


def pulled(mean: bool) -> Callable[[], bool]:
    """Both sides of 2.7 for any number of clients, by the first two moments m1 = 0 and m2 of the h_i."""

    def check() -> bool:
        import sympy

        m1, m2, G, h = *sympy.symbols("m1 m2 G"), sympy.Symbol("h_i")
        moments = {0: 1, 1: 0 if mean else m1, 2: m2}
        taken = lambda v: sum(c * moments[n] for (n,), c in sympy.Poly(v, h).terms())
        names = {"G": G, "h_i": h, "mean_i": taken, "sqR": lambda v: v**2}
        ((left, _, right),) = F["pulls"].links(names)
        return sympy.expand(left - right) == 0

    return check


MOST_S: list[Put] = ["k == s", "S_k == S_s", "b_k == b_s"]  # the letters of SSF's page
HALVES = every(
    TWO, CAUCHY, Equal(F["halves"], OF_SSF["halves"]),
    Equal(F["cauchy"], OF_SSF["cauchy"], ["k == s", ("sum_j", same)]),
)  # fmt: skip
INDUCED = every(
    INDUCTION, Equal(F["sums"], OF_SSF["sums"], ["k == s", ("sum_j", same)]),
    Equal(F["gronwall"], OF_SSF["gronwall"], MOST_S),
)  # fmt: skip
DRIFT = every(
    Equal(F["recursion"], "eta**2*two(s*L**2*S_s, s**2*d_i) + (1 - s/tau)*alpha*S_s",
          [*MEANS, F["alpha"], F["b_s"], ("two", two)]),
    Equal(F["b_s"], "eta**2*d_i*of_s", [*MEANS, ("sum_s", same), ("of_s", F["squares"].side(0))]),
    Equal(F["drift"], "scale/tau*growth*squares*eta**2*d_i",
          [*MEANS, "D == 1", ("scale", F["drift"].side(0)), ("mean_i", same), ("growth", F["growth"]),
           ("squares", F["squares"]), "h_i == H",
           ("d_i", F["pulls"]), ("p", F["p"].side(1))]),
)  # fmt: skip


# 3: descent; G_R is |G|_R^2


def _integral(v: Any) -> Any:
    import sympy

    return sympy.integrate(v, (positive("vartheta"), 0, 1))


def _square(v: Any) -> Any:
    """What the squares of 3.3 are in the mean, by 3.4."""
    Pi, G, a, L, D, t, moved = map(positive, ("Pi", "G", "a_bar", "L", "D", "t", "moved"))
    return {Pi * G: positive("G_R"), Pi * (a - G): L**2 * D, Pi * a: moved / t**2}[v]


IN_MEAN: list[Put] = [("E", same), ("sqR", lambda v: positive("G_R")), ("sq", _square)]
STEP = ["v == t*Pi*a_bar", "lam == L*t"]
SMOOTH = Equal(F["smooth"].side(1), F["smooth"].side(2), [("int01", _integral)])
POLAR = every(*(Equal(F["polar"], None, [f"Pi == {one}"]) for one in (0, 1)))
SPLIT = Equal(F["split"], "f0 - t/2*twice + smooth", [*STEP, ("twice", F["polar"]), ("smooth", F["smooth"])])
DESCENT = Equal(F["descent"], "split", [*IN_MEAN, ("split", F["split"])])
SHORT = every(
    *(Equal("dot(G, Pi*a_bar)", "sq(Pi*G) + dot(Pi*G, Pi*(a_bar - G))", [f"Pi == {one}"]) for one in (0, 1)),
    Equal(F["short"], "f0 - t*(G_R + product) + curved*t**2*two(G_R, L**2*D)",
          ["lam == L*t", "v == 1", ("curved", F["smooth"]), ("two", two), *IN_MEAN]),
    Equal(F["short_move"], "t**2*two(G_R, L**2*D)", [*IN_MEAN, ("two", two)]),
)  # fmt: skip


# 4: the dual


def parts(sign: int) -> Callable[[], bool]:
    """h_i of the next round in three parts, three clients, any matrix M instead of R^{-1} Pi."""

    def check() -> bool:
        import sympy

        M, one = sympy.Matrix(2, 2, sympy.symbols("m:4")), sympy.eye(2)
        g, y, ahead = (_vectors(sympy, name, 3) for name in ("g", "y", "w"))
        centred = lambda v: [w - sum(v, sympy.zeros(2, 1)) / 3 for w in v]
        now, later, moved = centred(g), centred(ahead), centred(y)
        pulled = centred([v + w for v, w in zip(g, y)])  # a_i - mean a, a_i = grad f_i(x) + y_i
        gaps = [
            later[i] - M * pulled[i] - (later[i] - now[i]) - (one - M) * now[i] + sign * M * moved[i] for i in range(3)
        ]
        return all(gap.applyfunc(sympy.expand) == sympy.zeros(2, 1) for gap in gaps)

    return check


def variance(drawn: Iterable[tuple[int, ...]]) -> Callable[[], bool]:
    """E |(I - R^{-1} Pi) v|_R^2 = <v, (I - R) v>."""

    def check() -> bool:
        import sympy

        v = sympy.symbols("v:5")
        right = sum((1 - sympy.Rational(1, len(rows))) * v[j] ** 2 for rows in ROWS for j in rows)
        return sympy.expand(_moment(drawn, lambda kept, rho: rho * (1 - kept / rho) ** 2, v) - right) == 0

    return check


def layers(then: Sequence[Said], *where: Put) -> Implies:
    """For two layers with shares x and y between 1/theta_m and theta_r, which have V and W of a square."""
    given = [F["shares"].changed("shares", one) for one in ("x", "y")]
    parts: list[Put] = [("sq", lambda v: positive("V") + positive("W")), "v_R == (1 - x)*V + (1 - y)*W"]
    weighted: Put = ("sqR", lambda v: positive("x") * positive("V") + positive("y") * positive("W"))
    return Implies([*given, F["thetas"]], then, [*parts, weighted, *where], cleared=True)


CUT = every(
    layers([F["cut"], F["norms"]]),
    Equal(F["norms"].side(0), "least*sq(v)", [("least", F["shares"].side(0))]),
    Equal(F["cut"], "(1 - least)*sq(v)", [("least", F["shares"].side(0))]),
)
TURNED = every(
    layers([F["turned"].side(0).text + " <= " + F["turned"].side(1).text], "cut == V/x + W/y"),
    Equal(F["turned"].side(1), F["turned"].side(2), ["Pi_delta == delta"]),
)


def centred(mean: bool) -> Callable[[], bool]:
    """(1/n) sum |y_i|^2 - (1/n) sum |y_i - ybar|^2 = |ybar|^2; n = 4, and any n: linear in the sums."""

    def sides() -> tuple[Any, Any]:
        import sympy

        y, other = sympy.symbols("y0:4"), sympy.Symbol("o")
        centre = sum(y) / 4 if mean else other
        return sum(one**2 for one in y) / 4 - sum((one - centre) ** 2 for one in y) / 4, centre**2

    return equal(sides)


DUAL = every(
    Equal(F["three"], F["three_left"], gap=True),
    Equal(F["dual"], "three",
          [("sq", same), ("sqR", same), "v == L**2*moved", ("moving", F["norms"]), "v == zeta**2",
           ("forgotten", F["cut"]), "delta == L**2*D", ("drifted", F["turned"]), "a == sqrt(moving)",
           "b == sqrt(forgotten)", "c == sqrt(drifted)", ("three", F["three"])]),
)  # fmt: skip


# 5: the potential; in AT lam is the largest step or less


SET = "0 < p <= lambda^2, 9 lambda^2 theta_m <= 1, theta_m >= 1, 0 < theta_r <= 1"
SHORT_P = f"p <= {F['p'].side(2).text}"
AT = [SHORT_P, f"lam <= {F['steps'].side(1).text}", F["thetas"]]


def within(*then: Said, where: Sequence[Put] = ()) -> Implies:
    return Implies(AT, then, [F["weight"], *where], cleared=True)


WEIGHED: list[Put] = ["lam == L*t", F["weight"]]
GATHERED = every(
    Equal("descent + w*dual", "f0 - t/2*G + of_D*L**2*D + of_move*moved + w*lost",
          [*MEANS, *WEIGHED, ("descent", F["descent"]), ("dual", F["dual"]), ("of_D", F["of_D"].side(1)),
           ("of_move", F["of_move"].side(0)), ("lost", F["dual"].term(0))]),
    Equal(F["of_D"].side(0), F["of_D"].side(1), WEIGHED),
    Equal(F["of_drift"], None, [*MEANS, *WEIGHED]),
    Equal(F["of_drift"].side(0), "t*drift", [*MEANS, ("drift", F["drift"])]),
    within(f"{F['of_D'].side(1).text} <= {F['of_D'].side(2).text}"),
)  # fmt: skip
MOVED = every(
    within(F["of_move"]),
    Equal(F["of_move"].side(1), "0"),
)
GRADIENT = every(
    Equal(F["of_G"].side(0), F["of_G"].side(1), WEIGHED),
    within("left <= kept", where=[("left", F["of_G"].side(1)), ("kept", F["of_G"])]),
    Fails(within("left <= 41/40*kept", where=[("left", F["of_G"].side(1)), ("kept", F["of_G"])])),
)


def whole(part: str) -> Callable[[], bool]:
    """The round through FedSub's own lines, with `part` of t |G|_R^2."""

    def check() -> bool:
        terms, options = potential(F["round"].changed("2/5", part)), {"restarts": 1, "steps": 15, "enough": 1 + 1e-6}
        return attack(terms, "quick", f"fedsub.5.5 {part}", CORNERS, **options).holds

    return check


RATE = every(
    Equal(F["round"], "EPhi + kept*G + w*lost", [*MEANS, ("kept", F["of_G"]), ("lost", F["dual"].term(0))]),
    Equal(F["start"], "potential", ["f0 == Delta + fstar", "H == H_0", ("potential", F["potential"])]),
    Equal(F["divisor"], "-kept*K/more", [*MEANS, ("kept", F["of_G"]), "G == 1", ("more", F["norm"])]),
    Equal(F["theorem"], "(Phi_0 + K*gained)/divisor",
          ["t == eta*tau", F["weight"], F["start"], *MEANS, "EPhi == 0", "G == 0", ("gained", F["round"]),
           ("divisor", F["divisor"])]),
    Equal(F["H_0"].side(2), "most", [("sq", same), ("sqR", same), "v == zeta**2", ("most", F["norms"])]),
)  # fmt: skip


# 6: what it says; s is a layer's share


def above(ours: int, part: int, theirs: int) -> Implies:
    """A term of the theorem is at most its part of the ledger's repair."""
    return Implies(
        [F["thetas"], F["thetas_product"], F["shares"].changed("shares", "s")], ["ours <= theirs"],
        ["tau == x + 1", ("p", F["p"].side(1)), "t == eta*tau", "R == s", "H_0 == s*v_i**2", ("mean_i", same),
         F["dual_0"], ("Omega", F["Omega"].term(part)), ("theirs", F["repair"].term(theirs)),
         ("ours", F["theorem"].term(ours))], cleared=True)  # fmt: skip


REPAIRED = every(
    Implies([F["thetas"], F["thetas_product"], F["repair_steps"]], [F["steps"]], cleared=True),
    above(0, 0, 0),
    above(1, 1, 0),
    above(2, 0, 1),
    # the ledger's round: w |Y|^2 is paid for by t/(8 theta_m) of the gradient, and w 4 t^2 theta_r^2 ... is left
    Equal(F["repair"].term(1), "K*once*w*4*t**2*theta_r**2*(theta_m - 1)*zeta**2",
          ["t == eta*tau", "Omega == 1", ("once", F["repair"].term(0)), "Delta == 0", "dual_0 == 1", ("mean_i", same),
           ("w", F["Omega"]), ("p", F["p"].side(1))]),
)  # fmt: skip
FIRST, SECOND = ("min", lambda a, b: a), ("min", lambda a, b: b)
AT_BEST = "A == 2*C*t**3"
BEST = every(
    Equal(F["balanced"].term(0), F["theorem"].term(0), ["t == eta*tau", F["A"]]),
    Equal(F["balanced"].term(1), F["theorem"].term(2), [F["C"], "p == L**2*t**2"]),
    Equal(F["balance"].side(0), F["balance"].side(1), [AT_BEST]),
    Equal("2*C*t - A/t**2", "0", [AT_BEST]),
    Equal(F["balanced"], "3*C*t**2", [AT_BEST]),
    Equal("(3*C*t**2)**3", "27/4*C*A**2", [AT_BEST]),
    Equal("most**3*one_C*one_A**2", "one**3*C*A**2",
          [F["A"], F["C"], ("most", F["best"].term(1)), *(f"{one} == 2" for one in ("theta_m", "Delta", "L", "zeta",
           "K")), ("one", F["best"].term(1)), ("one_A", F["A"]), ("one_C", F["C"])]),
    Implies([F["thetas"]], ["27/4*C*A**2 <= most**3"], [F["A"], F["C"], ("most", F["best"].term(1))], cleared=True),
    Fails(Implies([F["thetas"]], ["27/4*C*A**2 <= (499/500*most)**3"], [F["A"], F["C"], ("most", F["best"].term(1))],
                  cleared=True)),
    Equal(F["best"].term(0), "A*first", [F["A"], ("first", F["inverse"].term(0))]),
    *(Equal(F["inverse"].term(at), "1/t", [take, F["chosen"]]) for at, take in enumerate((FIRST, SECOND))),
    Equal("L*t", F["steps"], [FIRST, F["chosen"]]),
    Equal(F["inverse"].side(0), "1/t"),
    Equal(F["chosen"], "((A/(2*C)))**(1//3)", [SECOND]),
    Implies([], ["1/x <= 1/x + 1/y", "1/y <= 1/x + 1/y"], cleared=True),
)  # fmt: skip
# of t |G|_R^2 there is left `kept`, as 2 and 3 with u_i = 0 have it


def alone(then: str) -> Implies:
    return Implies([SHORT_P, F["third"]], [then],
                   [*MEANS, "G == 1", "H == 0", ("drift", F["drift"]), "kept == 1/2 - 1/2*drift",
                    *(f"{one} == 1" for one in ("theta_m", "theta_r", "Delta", "eta", "tau", "K", "zeta")),
                    ("first", F["without"].term(0)), ("second", F["without"].term(1))], cleared=True)  # fmt: skip


WITHOUT = every(
    alone("first*kept >= 1"),
    Fails(alone("97/100*first*kept >= 1")),
    alone("second*kept >= 1/2*drift"),
    Fails(alone("9/10*second*kept >= 1/2*drift")),
    Equal(F["without"].term(0), "first*theta_m*Delta/(eta*tau*K)",
          [("first", F["without"].term(0).changed("theta_m*Delta/(eta*tau*K)", "1"))]),
    Equal(F["without"].term(1), "theta_m*p*most", [("sq", same), ("sqR", same), "v == zeta**2", ("most", F["norms"])]),
)  # fmt: skip
ONE: list[Put] = ["theta_r == rho", "theta_m == 1/rho"]
RATIO = every(
    Equal(F["one_theirs"], "L*eta*tau", [*ONE, ("eta", F["repair_steps"])]),
    Equal(F["one_ours"], F["steps"], ONE),
    Equal(F["longer"], "ours/theirs", ["rho == r/m", ("ours", F["one_ours"]), ("theirs", F["one_theirs"])]),
    Equal(F["repair"].term(1), "theirs*floor", [*ONE, ("theirs", F["stays_theirs"]), ("floor", F["one_floor"])]),
    Equal(F["theorem"].term(2), "ours*floor", [*ONE, ("ours", F["stays_ours"]), ("floor", F["one_floor"])]),
    Equal(F["smaller"], "theirs/ours", [("theirs", F["stays_theirs"]), ("ours", F["stays_ours"])]),
    *(Implies([given], [then], [("ours", F["dual_stays"]), ("none", F["none_stays"])], cleared=True)
      for given, then in ((F["beats"], "ours < none"), ("ours < none", F["beats"]))),
)  # fmt: skip


# 7: what the dropped term costs


def undropped(kept: bool) -> Callable[[], bool]:
    """(9) and (10) with y_i whole, two clients, two steps: e_i = -y_i/(eta tau) becomes (I - Pi) e_i + Pi (a_i - mean).

    `kept`: y_i stays as it is out of the subspace; else only its projection is kept.
    """

    def check() -> bool:
        import sympy

        Pi, lr, one = sympy.Matrix(2, 2, sympy.symbols("p:4")), sympy.Symbol("lr", positive=True), sympy.eye(2)
        g, (y,) = _vectors(sympy, "g", 4), _vectors(sympy, "y", 1)
        duals, t = [y, -y], 2 * lr
        a = [(g[0] + g[1]) / 2, (g[2] + g[3]) / 2]
        z = [-lr * Pi * (2 * a[i] + 2 * duals[i] / t) for i in (0, 1)]
        centre, mean = (a[0] + a[1]) / 2, (z[0] + z[1]) / 2
        for i in (0, 1):
            before = duals[i] if kept else Pi * duals[i]
            new = -(before + z[i] - mean) / t
            gap = new - (one - Pi) * (-duals[i] / t) - Pi * (a[i] - centre)
            if gap.applyfunc(sympy.expand) != sympy.zeros(2, 1):
                return False
        return True

    return check


ORDER: list[Put] = [  # FedSub's letters first: SSF's theorem has K for tau, T for K, lr for eta
    ("ours", F["whole"]), "lr == eta", "T == K", "eta == lr*tau", "K == tau", "sigma == 0", "gap == Delta",
    "C0 == mean_i(sq(grad0_i - grad0))",
]  # fmt: skip
IS_SSF = every(
    Equal("ours", OF_SSF["theorem"], [("mean_i", same), *ORDER]),
    Equal(F["whole_steps"], OF_SSF["local"], [FIRST]),
    Equal(F["whole_steps"], OF_SSF["server"], [SECOND]),
)


def remembered(fresh: bool) -> Callable[[], bool]:
    """Linear losses, lines of R^3, two rounds: what the dual leaves and what SSF's memory leaves.

    `fresh`: a new line in the second round; else the first one twice.
    """

    def check() -> bool:
        import sympy

        v, rho = sympy.symbols("v:3"), sympy.Rational(1, 3)
        names = {"rho": rho, "zeta": Root(sum(one**2 for one in v)), "k": 2}
        drawn = [(i, j) for i, j in product(range(3), repeat=2) if fresh or i == j]
        new = sum(rho * ((1 - int(k == j) / rho) * v[k]) ** 2 for _, j in drawn for k in range(3))
        old = sum(rho * v[k] ** 2 for i, j in drawn for k in range(3) if k not in (i, j))
        none = sum(rho * v[k] ** 2 for k in range(3))
        found = {"dual_left": new / len(drawn), "whole_left": old / len(drawn), "none_left": none}
        return all(sympy.expand(one - F[name].right(names, sympy.Rational)) == 0 for name, one in found.items())

    return check


LEFT = every(
    remembered(True),
    Equal(F["none_stays"], F["without"].term(1), ONE),
    Equal(F["dual_stays"], F["theorem"].term(2), ONE),
    Equal(F["dual_third"], F["quadratic"].term(2), ONE),
    *(Implies([given], [then], [("ours", F["dual_left"]), ("none", F["none_left"])], cleared=True)
      for given, then in ((F["more"], "ours > none"), ("ours > none", F["more"]))),
)  # fmt: skip


# 8: quadratic losses; c is the root of theta_m, r that of Q


QUADRATIC = "0 < Q <= (5/6) lambda^2, 6 lambda theta_m^(1/2) <= 1, theta_m >= 1"


def linear(square: bool) -> Callable[[], bool]:
    """Two local steps with the gradient d + M z, any Pi and M: of d + e they make the sum of what they make of d and e.

    `square`: the gradient has the squares of z besides.
    """

    def check() -> bool:
        import sympy

        lr, (Pi, M) = sympy.Symbol("lr"), (sympy.Matrix(2, 2, sympy.symbols(f"{name}:4")) for name in "pm")
        d, e = _vectors(sympy, "d", 2)

        def end(pull: Any) -> Any:
            z = sympy.zeros(2, 1)
            for _ in range(2):
                z = z - lr * Pi * (pull + M * z + (z.applyfunc(lambda one: one**2) if square else sympy.zeros(2, 1)))
            return z

        return (end(d + e) - end(d) - end(e)).applyfunc(sympy.expand) == sympy.zeros(2, 1)

    return check


def unbiased(drawn: Iterable[tuple[int, ...]]) -> Callable[[], bool]:
    """E (I - R^{-1} Pi) v = 0, coordinate by coordinate."""
    drawn = tuple(drawn)
    return lambda: all(
        sum(1 - (j in kept) * len(rows) for kept in drawn) == 0
        for rows in ROWS
        for j in rows  # 1/rho rows in a layer
    )


PRODUCTS = Implies([], [F["two_parts"], F["zero_part"], F["start_part"]],
                   [("norm", same), ("sqR", lambda v: v**2)], cleared=True)  # fmt: skip


def _part(v: Any) -> Any:
    """The squares of the parts of 4.1 in the mean, made in the round before: by 4.6, 4.3, and 4.5 with 2."""
    lam, V, Z, m, Q, G, H = map(positive, ("lam", "old_V", "Z", "theta_m", "Q", "old_G", "old_H"))
    known = {"part1": lam**2 * V, "part2": Z, "part3": m * Q * (G + H), "v_i": positive("H_0")}
    return known.get(str(v), v)


BIAS = every(
    PRODUCTS,
    Equal(F["bias"], "two_parts + zero_part",
          [("E", same), ("sqR", _part), ("two_parts", F["two_parts"]), ("zero_part", F["zero_part"])]),
    Equal(F["start_bias"], "start_part", [("E", same), ("sqR", _part), ("start_part", F["start_part"])]),
)  # fmt: skip
SMALL = [f"lam <= {F['short_steps'].side(1).text}", "Q <= most_Q", F["thetas"]]
IN_ROOTS: list[Put] = ["theta_m == c**2", "p == lam**2", ("most_Q", F["Q"]), "Q == r**2"]


def small(*then: Said, where: Sequence[Put] = ()) -> Implies:
    return Implies(SMALL, then, [*IN_ROOTS, *where], cleared=True)


ALL_ROUNDS: list[Put] = [*MEANS, "G == Gamma", "H == Theta"]
OF_ONE: list[Put] = [
    "H_0 == 0", "Z == 0", "Gamma == 0", "Theta == 1", ("own", F["duals"]),
    "Theta == 0", "Gamma == 1", ("added", F["duals"]), ("part", F["duals_most"]),
    "Gamma == 0", "H_0 == 1", ("times", F["duals_most"]),
]  # fmt: skip
DUALS = every(
    small("times*(1 - own) >= 1", "part*(1 - own) >= added", where=OF_ONE),
    Fails(small("98/100*part*(1 - own) >= added", where=OF_ONE)),
    Equal(F["duals"], "H_0 + K*dual_first + dual_second + dual_third",
          [*ALL_ROUNDS, F["Z"], ("dual_first", F["dual"].term(0)), "theta_r == 1", "D == Q*(G + H)/L**2",
           ("dual_second", F["dual"].term(1)), ("V", F["V"]), "moved == (lam/L)**2*V",
           ("dual_third", F["dual"].term(2))]),
    Equal(F["duals_most"], "times*(H_0 + 2*K*Z) + part*Gamma",
          [("times", F["duals_most"].term(0).changed("(H_0 + 2*K*Z)", "1")),
           ("part", F["duals_most"].term(1).changed("Gamma", "1"))]),
    Equal(F["V"], "move/t**2", [*MEANS, "D == Q*(G + H)/L**2", ("move", F["short_move"])]),
    Equal(F["Q"], "most", [*MEANS, "G == 1", "H == 0", ("most", F["drift"])]),
    Equal(F["Z"], "most", [("sq", same), "v == zeta**2", ("most", F["cut"])]),
)  # fmt: skip
# the sum of the descents, with 8.3; then with 8.4
SUMMED: list[Put] = [
    *ALL_ROUNDS, ("V", F["V"]), "old_V == V", "old_G == G", "old_H == H",
    "own_Z == K*Z", "plain_Z == Z", "Z == own_Z", ("bias", F["bias"]), "Z == plain_Z",
    "G == 0", ("first", F["start_bias"]), "G == Gamma",
]  # fmt: skip
BARE = F["of_Gamma"].side(0).changed("9/25", "0")
DESCENTS = every(
    Equal(F["short"], "f0 + of_Gamma*Gamma + of_Theta*Theta + t*Q*K*Z*lam/2 + t*4*Q*H_0",
          [*SUMMED, F["kappa"], "product == -sqrt(Q)*Gamma - bias - first", "D == Q*(Gamma + Theta)/L**2",
           ("of_Gamma", BARE), ("of_Theta", F["of_Theta"])]),
    Equal("bare*Gamma + of_Theta*Theta + t*Q*K*Z*lam/2 + t*4*Q*H_0", "of_Gamma*Gamma + of_Z + of_H_0",
          [("Theta", F["duals_most"]), ("bare", BARE), ("of_Theta", F["of_Theta"]),
           ("of_Gamma", F["of_Gamma"].side(0)), ("of_Z", F["of_Z"].side(0)), ("of_H_0", F["of_H_0"].side(0))]),
    small("lost <= kept", where=["t == 1", F["kappa"], ("lost", F["of_Gamma"].side(0)), ("kept", F["of_Gamma"])]),
    Fails(small("lost <= 9/8*kept",
                where=["t == 1", F["kappa"], ("lost", F["of_Gamma"].side(0)), ("kept", F["of_Gamma"])])),
    Equal(F["of_Gamma"], F["of_G"]),
)  # fmt: skip
STAYS = every(
    small(F["of_Z"], F["of_H_0"], where=["t == 1", "K == 1", "Z == 1", "H_0 == 1", F["kappa"]]),
    Equal(F["quadratic"], "(Delta + of_H_0 + of_Z)/divisor",
          ["t == eta*tau", "lam == L*t", F["Q"], F["Z"], ("of_Z", F["of_Z"]), ("of_H_0", F["of_H_0"]),
           ("divisor", F["divisor"])]),
)  # fmt: skip


STEPS = [
    Step("fedsub.1.1", "identity", "as matrices that do not commute, of any sizes", projector(True), projector(False),
         "P P^T itself instead of (r/m) P P^T", ("fedsub.a1-cd", "fedsub.a1-ss")),
    Step("fedsub.1.2", "identity", "any matrix P of 3 x 2", lifted(True), lifted(False),
         "the dual without 1/rho", ("fedsub.eq4 / eq17",)),
    Step("fedsub.1.3", "identity", "two clients, two local steps, any matrix P of 3 x 2",
         every(turned(True), opposed(True)), opposed(False), "duals whose sum is not zero",
         ("fedsub.eq15", "fedsub.eq18", "fedsub.eq3 / eq16")),
    Step("fedsub.2.1", "identity", "three local steps, unrolled, with any additional terms", unrolled(), unrolled(2),
         "the pull counted twice", ("fedsub.eq23-26",)),
    Step("fedsub.2.2", "certificate", "both differences are sums of squares, the second from t to t + 1",
         HALVES, NOT_CAUCHY, "t - 1 instead of t",
         ("fedsub.eq23-26", "fedsub.eq27")),
    Step("fedsub.2.3", "expectation", "two layers with r/m = 1/3 and 1/2, all their coordinate lines, d as symbols",
         share(LINES), share(LINES[:-1]), "one of the six choices left out", ("fedsub.eq45",)),
    Step("fedsub.2.4", "implication", "the induction from t to t + 1", INDUCED, NOT_INDUCTION,
         "a power that may be less than 1", ("fedsub.eq28-32",)),
    Step("fedsub.2.5", "implication", "the sum by sympy, its bound for all real tau >= 1 by z3", SQUARES,
         {"2/3": "3/5"}),
    Step("fedsub.2.6", "arithmetic", "the series of the exponential with a bound of its rest", GROWTH,
         largest(F["growth"].changed("5/4", "1.248")),
         "1.248 instead of 5/4", ("fedsub.eq33",)),
    Step("fedsub.2.7", "identity", "any number of clients, by the first two moments of the G + h_i",
         pulled(True), pulled(False), "pulls whose mean is not zero"),
    Step("fedsub.2.8", "identity", "2.2 and 2.3 in one step, the sums of 2.5 and the claim, by expansion", DRIFT,
         {"eta**2*s**2": "eta**2*s"}, "s instead of s^2"),
    Step("fedsub.3.1", "identity", "the integral that is left after Lipschitz continuity", SMOOTH, {"L/2": "L/3"}),
    Step("fedsub.3.2", "identity", "in each coordinate of a basis in which Pi is diagonal", POLAR,
         {"- sq(Pi*(a_bar - G))": "+ sq(Pi*(a_bar - G))"}, "a plus before the difference", ("fedsub.eq37",)),
    Step("fedsub.3.3", "identity", "the three squares as symbols", SPLIT, {"1 - lam": "1 - lam/2"},
         "L t/2 instead of L t", ("fedsub.eq37",)),
    Step("fedsub.3.4", "identity", "in each coordinate of a basis in which Pi is diagonal", pythagoras(1),
         pythagoras(-1), "a minus between the parts", ("fedsub.IV",)),
    Step("fedsub.3.5", "identity", "the claim from its parts", DESCENT, {"t/2*L**2": "t/3*L**2"}),
    Step("fedsub.3.6", "identity", "3.1 with the product kept; in each coordinate", SHORT, {"lam*t": "1/2*lam*t"},
         "half of the curvature"),
    Step("fedsub.4.1", "identity", "three clients, any matrix instead of R^{-1} Pi", parts(1), parts(-1),
         "the drift with the other sign", ("fedsub.eq34",)),
    Step("fedsub.4.2", "certificate", "the difference is (B - A - C)^2 + 2 (A - C)^2",
         Equal(F["three"], F["three_left"], gap=True), {"4*a": "3*a"}),
    Step("fedsub.4.3", "expectation", "two layers with r/m = 1/3 and 1/2, all their coordinate lines, v as symbols",
         variance(LINES), variance(LINES[:-1]), "one of the six choices left out", ("fedsub.eq35-variance",)),
    Step("fedsub.4.4", "implication", "two layers, all shares between 1/theta_m and theta_r", CUT,
         {"(1 - 1/theta_m)": "99/100*(1 - 1/theta_m)"}, "0.99 of the first"),
    Step("fedsub.4.5", "implication", "two layers, all shares between 1/theta_m and theta_r", TURNED,
         {"V/x + W/y": "V/x**2 + W/y**2"}, "R^{-2} instead of R^{-1}", ("fedsub.eq35",)),
    Step("fedsub.4.6", "identity", "four clients; both sides are linear in the sums, so for any n", centred(True),
         centred(False), "any vector instead of the mean", ("fedsub.eq34",)),
    Step("fedsub.4.7", "identity", "the claim from its parts", DUAL, {"4*theta_m": "3*theta_m"}),
    Step("fedsub.5.1", "implication", "the sum of both claims by sympy; " + SET,
         GATHERED, {"10/3": "9/3"}, "3 instead of 10/3"),
    Step("fedsub.5.2", "implication", SET, MOVED, {"1/(3*sqrt": "1/(sqrt"}, "a step three times as long"),
    Step("fedsub.5.3", "implication", SET, GRADIENT, {"2/5": "41/100"}),
    Step("fedsub.5.4", "arithmetic", "5/2, 25/12 and 25/6", RATE, {"2/5": "9/20"}),
    Step("fedsub.5.5", "search", "no proof, and none is needed: the round's inequality that 5.1 to 5.3 prove, attacked "
         "through the training code at the largest step", whole("2/5"), whole("9/10"), "9/10 instead of 2/5",
         ("fedsub.lemma3 / eq46", "fedsub.sharper.round")),
    Step("fedsub.6.1", "implication", "theta_r theta_m >= 1, theta_m >= 1, any layer's share", REPAIRED,
         {"6*theta_r": "2*theta_r"}, "a step three times as long"),
    Step("fedsub.6.2", "identity", "at the step that balances both terms, and 5.61", BEST, {"A == 2*C": "A == C"},
         "twice the cube of that step"),
    Step("fedsub.6.3", "implication", "for 0 <= 9 p <= 1", WITHOUT, {"9/4": "2"},
         claims=("fedsub.sharper.without",)),
    Step("fedsub.6.4", "identity", "2, 51.2 and 25/31", RATIO, {"25/31": "24/31"}),
    Step("fedsub.7.1", "identity", "two clients, two local steps, any matrix instead of Pi",
         every(undropped(True), IS_SSF), undropped(False), "of y_i only its projection is kept", ("fedsub.eq10",)),
    Step("fedsub.7.2", "expectation", "all pairs of lines of three dimensions, v as symbols", LEFT,
         remembered(False), "the same line in both rounds"),
    Step("fedsub.8.1", "identity", "two local steps in two dimensions, any matrices instead of Pi and M_i",
         linear(False), linear(True),
         "a gradient with a square in it"),
    Step("fedsub.8.2", "expectation", "two layers with r/m = 1/3 and 1/2, all their coordinate lines", unbiased(LINES),
         unbiased(LINES[:-1]), "one of the six choices left out"),
    Step("fedsub.8.3", "implication", "all three products, for all real numbers", BIAS, {"8*Q": "7*Q"}),
    Step("fedsub.8.4", "implication", QUADRATIC, DUALS, {"10/9": "11/10"}),
    Step("fedsub.8.5", "implication", QUADRATIC, DESCENTS, {"-2/5": "-9/20"}),
    Step("fedsub.8.6", "implication", QUADRATIC, STAYS, {"8*t": "7*t"},
         claims=("fedsub.sharper.quadratic",)),
]  # fmt: skip
