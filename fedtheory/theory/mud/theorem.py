"""FedMUD, Appendix D.4, (64) to (71): Theorem 1 and its repair."""

from collections.abc import Callable
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, Printed, each_needed
from fedtheory.theory.forms import chain
from fedtheory.theory.mud.counterexamples import bowl, column, one_step, scalars, stuck, to_the_centre
from fedtheory.theory.mud.descent import lemma6
from fedtheory.theory.mud.quantities import constants, crossed, exchanged, residual, rest6, stepped
from fedtheory.theory.mud.round import (
    A1,
    A2,
    A3,
    A4,
    DOUBLE,
    LOW,
    SMALL,
    STEP,
    WHOLE,
    Pair,
    Terms,
    Window,
    admissible,
    both,
    broken,
    mud,
    outcome,
    survives,
    with_units,
    worst,
)
from fedtheory.theory.mud.step import lemma5
from fedtheory.theory.mud.stuck import LOST, printed, printed68, slacks_A4
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import number, reals, same


def theorem(c: float, descent: float = 1.0, extra: float = 1.0) -> Terms:
    """Theorem 1 with (71) repaired: psi^2 as it is, sure bounds, 4 rho L^2 E^2 G^2 eta^{3-c} more. Else 0 <= 1."""

    def terms(q: Window) -> tuple[torch.Tensor, ...]:
        eta, E, G2, gu, gv = constants(q, True)
        rho, T, L = len(q.full), q.at.S, torch.maximum(q.Ls, q.Lh)
        allowed = torch.minimum((q.psi2 / 2) ** (1 / (c - 1)), 1 / L).clamp(max=1) if q.low else 1 / L
        if eta > float(allowed.detach()):
            return torch.zeros((), dtype=DOUBLE), torch.ones((), dtype=DOUBLE)
        C = residual(len(q.at.layers), rho, E, q.at.N, eta, L, G2, q.sigma2, gu, gv)
        if q.low:
            C = C + extra * more(rho, L, E, eta, G2)
        squares = sum(q.mean((q.fbar(t) ** 2).sum(-1)) for t in range(T)) / T
        fall = 2 / (eta**c * T) * (q.f(0) - q.f(T))
        return descent * squares - fall, 2 * C / eta**c, fall.detach().abs()

    return terms


def more(rho: int, Ls: Any, E: int, eta: Any, G2: Any) -> Any:
    """The term that the repair adds to C of (66): decomposed layers feel the drift of whole ones, (61)."""
    return 2 * rho * Ls**2 * eta**3 * E**2 * G2


def sharper_parts(q: Window) -> tuple[torch.Tensor, ...]:
    """The terms of the repaired theorem with rho = 0, any step size, in units that agree."""
    eta, E, G2, gu, gv = constants(q, True)
    T = q.at.S
    squares = sum(q.mean((q.fbar(t) ** 2).sum(-1)) for t in range(T)) / T
    start = 4 / (eta * q.psi2 * T) * (q.f(0) - q.f(T))
    return torch.as_tensor(squares), start, *floor(len(q.low), E, eta, q.Ls, q.Lh, G2, gu, gv, q.psi2)


def floor(L: int, E: int, eta: Any, Ls: Any, Lh: Any, G2: Any, gu: Any, gv: Any, p2: Any) -> tuple[Any, Any, Any]:
    """The last three terms of the repaired theorem with rho = 0."""
    return (
        8 * L * Lh**2 * eta**2 * E**2 * G2 * (gu + gv) / p2,
        4 * L * eta**2 * G2**2 * gu * gv / p2**2,
        6 * L * Ls * eta * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv) / p2,
    )


def sharper(descent: float = 1.0) -> Terms:
    def terms(q: Window) -> tuple[torch.Tensor, ...]:
        left, start, *rest = sharper_parts(q)
        return descent * left - start, sum(rest, torch.zeros((), dtype=DOUBLE)), start.detach().abs()

    return terms


REPAIR = (
    "With ||grad F_il|| <= G surely, samples drawn anew and independent across clients, psi^2 ||grad f_l||^2 <= "
    "||grad h_l||^2 along the run (A4 gives that only with the least eigenvalues of U U^T and V V^T, hence r >= "
    "min(m, n); psi^2 is that of the factors drawn: over all draws it is 0) and L_s the larger of the Lipschitz "
    "constants of grad f and, on the set of A3, grad h: (64) with the terms of (71) plus 4 rho L_s^2 E^2 G^2 "
    "eta^(3-c). In consistent units, with L_s of f alone, L_h of h, all L layers decomposed and any eta: (1/T) sum "
    "E||grad f||^2 <= 4(f(w^0) - f*)/(eta psi^2 T) + 8 L L_h^2 eta^2 E^2 G^2 (Gu^2 + Gv^2)/psi^2 + 4 L eta^2 G^4 Gu^2"
    " Gv^2/psi^4 + 6 L L_s eta G^2 (Gu^4 + Gv^4 + eta^2 G^2 Gu^2 Gv^2)/psi^2"
)


def one_iteration(weight: str = "1", whole: bool = False) -> Callable[[], tuple[list[Any], Any]]:
    """The repaired (68) from (65) and Lemmas 5 and 6, each as repaired, e = eta^c; whole: rho = L and c = 1, Remark 1.

    f0, f1: loss before and after; full, low: squared gradients of whole and of decomposed layers; mean: of the average
    of the clients' in whole ones; R5, R6: what the lemmas have besides gradients.
    """

    def make() -> tuple[list[Any], Any]:
        eta, e, psi2, Ls, R5, R6, f0, f1 = reals("eta e psi2 Ls R5 R6 f0 f1")
        full, low, mean, inner, step = reals("full low mean inner step")
        premises = [eta > 0, Ls > 0, Ls * eta <= 1, full >= 0, low >= 0, mean >= 0]
        premises += [e == eta, low == 0] if whole else [eta <= 1, eta * eta <= e, e <= eta, 2 * e <= eta * psi2]
        premises += [f1 <= f0 + inner + Ls / 2 * step, step <= eta * eta * mean + R5]
        premises += [inner + eta / 2 * (full + mean) + (eta * psi2 - eta * eta) / 2 * low <= R6]
        return premises, f1 <= f0 - number(weight) * e / 2 * (full + low) + left_over(Ls, R5, R6)

    return make


def left_over(Ls: Any, R5: Any, R6: Any) -> Any:
    """What one iteration adds to the loss besides the descent."""
    return Ls / 2 * R5 + R6


def in_units(weight: str = "1") -> Callable[[], tuple[list[Any], Any]]:
    """The same with rho = 0 and any eta, from (58) to (60), (61) and (62), (48) and (51) to (53), each as repaired.

    grad, h: squared gradients of f and of h at the average; gap: of (61)'s second part; C: of (58), summed over the
    layers, for which Cauchy and Schwarz give C^2 <= grad S; S: of (62); R5: of (53), no noise, as no layer is whole.
    """

    def make() -> tuple[list[Any], Any]:
        eta, psi2, Ls, grad, h, gap, C, S = reals("eta psi2 Ls grad h gap C S")
        inner, step, R5, f0, f1 = reals("inner step R5 f0 f1")
        premises = [eta > 0, psi2 > 0, Ls > 0, grad >= 0, S >= 0, psi2 * grad <= h, grad * S >= C * C, step <= R5]
        premises += [inner <= eta * (gap - h / 2) + eta * eta * C, f1 <= f0 + inner + Ls / 2 * step]
        return premises, number(weight) * eta * psi2 / 4 * grad <= f0 - f1 + sum(three(eta, psi2, Ls, gap, S, R5))

    return make


def three(eta: Any, psi2: Any, Ls: Any, gap: Any, S: Any, R5: Any) -> tuple[Any, Any, Any]:
    """`left_over` in consistent units, part by part."""
    return eta * gap, eta * eta * eta * S / psi2, Ls / 2 * R5


def summed(weight: str = "1", T: int = 4) -> Callable[[], tuple[list[Any], Any]]:
    """a G_t <= f_t - f_{t+1} + X, summed over t: a is e/2 or eta psi^2/4. At a reset wbar stays, and with it f."""

    def make() -> tuple[list[Any], Any]:
        f, G = reals(" ".join(f"f{t}" for t in range(T + 1))), reals(" ".join(f"G{t}" for t in range(T)))
        a, X = reals("a X")
        premises = [a > 0, *(g >= 0 for g in G), *(a * g <= f[t] - f[t + 1] + X for t, g in enumerate(G))]
        return premises, number(weight) * sum(G) / T <= (f[0] - f[T]) / (a * T) + X / a

    return make


def assembled(effort: str) -> Outcome:
    """What one iteration leaves, over e/2 or eta psi^2/4: (71) with the repair's term; in units, the three terms."""
    import sympy

    names = "low rho E N eta L_s L_h G2 sigma2 gu gv psi2 c"
    low, rho, E, N, eta, Ls, Lh, G2, s2, gu, gv, p2, c = sympy.symbols(names, positive=True)
    R5 = eta**2 * s2 / N + stepped(low, eta, G2, gu, gv)
    C = residual(low + rho, rho, E, N, eta, Ls, G2, s2, gu, gv) + more(rho, Ls, E, eta, G2)
    rest = left_over(Ls, R5, rest6(low, rho, E, eta, Ls, Ls, G2, gu, gv))
    printed = same(2 / eta**c * rest, 2 * C / eta**c)
    gap, S = exchanged(low, 0, E, eta, Lh, G2, gu, gv), crossed(low, G2, gu, gv)
    parts = zip(three(eta, p2, Ls, gap, S, stepped(low, eta, G2, gu, gv)), floor(low, E, eta, Ls, Lh, G2, gu, gv, p2))
    units = all(same(4 / (eta * p2) * part, ours) for part, ours in parts)
    said = f"Lemmas 5 and 6 make (71) and the repair's term: {printed}; the terms in consistent units: {units}"
    return outcome(printed and units, "symbolic", None, said)


ONE = "one iteration from (65), Lemmas 5 and 6"
ANY = "one iteration from (48) to (62), rho = 0, any eta"
repaired_theorem = both(
    survives(theorem(1.5), "theorem", "with (71), c = 3/2", [*SMALL, *WHOLE]),
    with_units(survives(sharper(), "sharper", "rho = 0, any eta", LOW), sharper_parts),
    chain(one_iteration(), ONE),
    chain(in_units(), ANY),
    chain(summed(), "four of them"),
    assembled,
)
too_much = each_needed(
    survives(theorem(1.5, 1.95), "theorem", "1.95 times the left side", near=[bowl]),
    chain(one_iteration("101/100"), ONE),
    chain(in_units("101/100"), ANY),
    chain(summed("101/100"), "four of them"),
)


# (65) to (71)


def descent_lemma(own: bool, scale: float = 1.0) -> Terms:
    """f(wbar^t) - f(wbar^{t-1}) - <grad f, moved> <= L_s/2 ||.||^2; own: ||wbar^t - w_i^t||^2 as printed."""

    def terms(q: Window) -> Pair:
        lines = []
        for t in range(1, q.at.S + 1):
            moved = q.wbar[t] - q.wbar[t - 1]
            left = q.f(t) - q.f(t - 1) - q.mean((q.fbar(t - 1) * moved).sum(-1))
            gap = (q.wbar[t] - q.w[t]) if own else moved[None]
            lines.append((left.expand(len(gap)), scale * q.Ls / 2 * q.mean((gap**2).sum(-1)) + 1e-13))
        return lines[0] if own else worst(*lines)

    return terms


def first65(q: Window) -> Pair:
    left, right = descent_lemma(True)(q)
    return left[0], right[0]


def eq67(weight: str = "1") -> Callable[[], tuple[list[Any], Any]]:
    """A_t and B_t with e = eta^c between eta^2 and eta, 2 e <= eta psi^2, L_s eta <= 1."""

    def make() -> tuple[list[Any], Any]:
        eta, e, psi2, Ls, f1, f2, d = reals("eta e psi2 Ls f1 f2 d")
        premises = [eta > 0, eta <= 1, eta * eta <= e, e <= eta, 2 * e <= eta * psi2, Ls > 0, Ls * eta <= 1]
        premises += [f1 >= 0, f2 >= 0, d >= 0]
        A = -eta / 2 * f1 + (eta * eta - eta * psi2) / 2 * f2
        B = (Ls * eta * eta - eta) / 2 * d
        return premises, _and(-number(weight) * e / 2 * (f1 + f2) >= A, B <= 0)

    return make


def _and(*terms: Any) -> Any:
    import z3

    return z3.And(*terms)


def stepsize(bound: str) -> Callable[[], tuple[list[Any], Any]]:
    """(a)-(c) with x = log eta, y = log(psi^2/2) and eta <= (psi^2/2)^{1/(c - bound)}."""

    def make() -> tuple[list[Any], Any]:
        x, y, c, Ls, eta = reals("x y c Ls eta")
        power = c - number(bound)
        premises = [x <= 0, c > 1, c < 2, power * x <= y, Ls > 0, eta > 0, Ls * eta <= 1]
        return premises, _and(x >= c * x, 2 * x <= c * x, c * x <= x + y, Ls * eta * eta <= eta)

    return make


def eq69(factor: str, T: int = 4) -> Callable[[], tuple[list[Any], Any]]:
    """(68) for t = 1..T, f for grad f, summed and divided by eta^c T/2; G_t = eta^c ||grad f||^2."""

    def make() -> tuple[list[Any], Any]:
        f, G = reals(" ".join(f"f{t}" for t in range(T + 1))), reals(" ".join(f"G{t}" for t in range(T)))
        (C,) = reals("C")
        premises = [f[t + 1] <= f[t] - G[t] / 2 + C for t in range(T)] + [C >= 0] + [v >= 0 for v in G]
        return premises, sum(G) / T <= 2 * (f[0] - f[T]) / T + number(factor) * C

    return make


def eq69_literal(effort: str) -> Outcome:
    """(e/2) sum G divided by e/(2T) is T sum G, not (1/T) sum G."""
    import sympy

    e, T, total = sympy.symbols("e T total", positive=True)
    good = same(e / 2 * total / (e / (2 * T)), total / T)
    data = {"divided by eta^c/(2T)": "T sum", "printed": "(1/T) sum"}
    return outcome(good, "symbolic", None, "dividing by eta^c/(2T) leaves T sum_t in place of (1/T) sum_t", data)


def eq70(twelve: str = "12", multiply: bool = False) -> Check:
    """C of (66), with this constant in Lambda, expanded against (70), or 2C/eta^c against (71)."""

    def check(effort: str) -> Outcome:
        import sympy

        names = "L rho E N eta L_s G2 sigma2 gu gv c"
        L, rho, E, N, eta, Ls, G2, s2, gu, gv, c = sympy.symbols(names, positive=True)
        C = sympy.nsimplify(residual(L, rho, E, N, eta, Ls, G2, s2, gu, gv, sympy.Rational(twelve)))
        half = sympy.Rational(1, 2)
        low = L - rho
        six = Ls**2 * E**2 * eta
        terms = 2 * Ls**2 * rho * E**2 * G2 * eta**3 + Ls * s2 / (2 * N) * eta**2
        terms += low * 2 * Ls**2 * E**2 * eta**3 * G2 * (gu + gv)
        terms += low * (6 * Ls**2 * E**4 * eta**3 + 3 * half * Ls * eta**2 + half) * eta**2 * G2**2 * gu * gv
        terms += low * (6 * six + 3 * half * Ls) * eta**2 * G2 * (gu**2 + gv**2)
        good = same(C, terms)
        if multiply:
            power = 4 * Ls**2 * rho * E**2 * G2 * eta ** (3 - c) + Ls * s2 / N * eta ** (2 - c)
            power += low * 4 * Ls**2 * E**2 * eta ** (3 - c) * G2 * (gu + gv)
            power += low * (12 * Ls**2 * E**4 * eta**3 + 3 * Ls * eta**2 + 1) * eta ** (2 - c) * G2**2 * gu * gv
            power += low * (12 * six + 3 * Ls) * eta ** (2 - c) * G2 * (gu**2 + gv**2)
            good = sympy.simplify(sympy.powsimp(sympy.expand(2 * C / eta**c - power))) == 0
        said = f"expanded with {twelve} in Lambda: the terms agree: {good}"
        return outcome(good, "symbolic", None, said, {"Lambda": f"{twelve} (L - rho) ...", "terms agree": good})

    return check


def order71(absolute: bool, faster: float = 0.0) -> Check:
    """2C/eta^c over eta^{2-c} (1 + low (Gu^4 + Gv^4)) as eta -> 0; absolute: as low grows, Gamma^4 = 1/low.

    faster: added to the exponent 2 - c.
    """

    def check(effort: str) -> Outcome:
        ratios = []
        for k in range(1, 9):
            eta, low, g = (16.0**-k, 1, 0.5) if not absolute else (0.5, 4.0**k, 2.0**-k)
            C = float(residual(int(low), 0, 4, 1, eta, 1.0, 1.0, 1.0, g, g))
            ratios.append(2 * C / eta ** (2 + faster) / (1 + low * 2 * g**2))
        growth = ratios[-1] / ratios[-2]
        said = f"over eta^({2 + faster:g}-c) [1 + (L - rho)(Gu^4 + Gv^4)]: {ratios[0]:.3g} to {ratios[-1]:.3g}"
        along = "L - rho = 4^k, Gamma^4 = 4^-k" if absolute else "eta = 16^-k"
        return outcome(growth < 1.05, "exact", growth, said, {along: [digits(v) for v in ratios]})

    return check


def claims() -> list[Claim]:
    """D.4."""
    at, sl = stuck, slacks_A4
    loss = "f(wbar) in place of grad f(wbar)"
    return [
        mud(
            "theorem1.eq65", "inequality", check=broken(
                lambda: scalars((1,), 0.5, 2, h=column(1, 1), b=column(1 / 8, -1 / 8)), first65,
                "f for grad f; f_i = (w -+ 1/8)^2/2, t = 1", admissible),
            control=survives(descent_lemma(False, 0.99), "65", near=[to_the_centre]),
            broken="the repair with L_s 1% smaller", assumes=(A1,),
            error="misprint", repair=f"{loss}, and wbar^t - wbar^{{t-1}} in the last term.",
            repaired=survives(descent_lemma(False), "65", near=[to_the_centre]),
            implies="None: (66) uses Lemma 5, which bounds the right "
            "distance.",
        ),
        mud(
            "theorem1.eq66", "inequality",
            check=broken(at, printed(3), LOST, sl),
            control=survives(lemma5(True, 1.98), "lemma5", "Lemma 5", near=[one_step]),
            broken="the repair with 0.99 L_s (L - rho) eta^2 G^2 (...) in place of 1.5", assumes=(A1, A2, A3, A4),
            error="wrong step",
            repair=f"{loss}; Lemmas 5 and 6 as repaired.", repaired=both(
                survives(lemma6(), "lemma6", "Lemma 6"), survives(lemma5(True), "lemma5", "Lemma 5")),
            implies="Inherits Lemma 1 through Lemma 6; read with f for the misprinted grad f.",
        ),
        mud(
            "theorem1.eq67", "inequality",
            check=chain(eq67()), control=chain(eq67("101/100")), broken="descent 1% larger", assumes=(STEP,),
        ),
        mud(
            "theorem1.stepsize", "inequality",
            check=chain(stepsize("1"), "in logarithms"), control=chain(stepsize("99/100"), "in logarithms"),
            broken="(psi^2/2)^(1/(c - 0.99))", assumes=(STEP,),
            implies="As pure numbers. In units (rho = 0) eta is a variable per loss, psi^2 a variable: neither eta <= "
            "1 nor eta <= (psi^2/2)^(1/(c-1)) survives a change of the unit of the loss.",
        ),
        mud(
            "theorem1.eq68", "inequality",
            check=broken(at, printed68(1.5), LOST, sl),
            control=survives(theorem(1.5, 1.95), "theorem", "T = 1", near=[bowl]),
            broken="the repair for T = 1 with the descent times 1.95", assumes=(A1, A2, A3, A4, STEP),
            error="wrong step", repair=REPAIR,
            repaired=repaired_theorem, implies="As Theorem 1; read with f for the misprinted grad f.",
        ),
        mud(
            "theorem1.eq69", "inequality",
            check=chain(eq69("2"), "(68) for t = 1..4"), control=chain(eq69("199/100"), "(68) for t = 1..4"),
            broken="1.99 C for 2C", assumes=(Printed("one iteration's descent", "eq. (68)"),),
            as_printed=eq69_literal,
            error="misprint", implies="None: the right divisor gives the printed bound",
            caveat="given (68) with f for grad f, dividing by eta^c T/2, and wbar^T for w^T",
        ),
        mud(
            "theorem1.eq70", "identity",
            check=eq70(), control=eq70("12.01"), broken="12.01 for 12 in Lambda",
        ),
        mud(
            "theorem1.eq71", "rate",
            check=both(eq70(multiply=True), order71(False)),
            control=each_needed(eq70("12.01", True), order71(False, 0.02)),
            broken="12.01 for 12; and O(eta^(2.02-c))",
            as_printed=order71(True),
            met="a reading of O(.)",
            caveat="O as eta -> 0, with constants that depend on L_s, E, G, sigma, N and L: (L - rho)(Gu^2 + Gv^2) is "
            "not of the order of 1 + (L - rho)(Gu^4 + Gv^4) for many layers and small Gamma",
        ),
    ]  # fmt: skip
