"""FedMUD, Appendix D.3, Lemmas 1 to 3, (29) to (37): what the factors see of a gradient, and how far they go."""

from collections.abc import Callable
from itertools import pairwise

import torch

from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.mud.counterexamples import column, drifting, scalars, steady, tilted, uneven
from fedtheory.theory.mud.quantities import BOTH, constants, delta2, local, lows, path_from_average
from fedtheory.theory.mud.reset import REDRAWN, redrawn
from fedtheory.theory.mud.round import (
    A1,
    A2,
    A3,
    A4,
    DOUBLE,
    FRESH,
    Pair,
    Terms,
    Window,
    admissible,
    both,
    broken,
    gaps,
    mud,
    outcome,
    sq,
    survives,
    with_units,
    worst,
)
from fedtheory.theory.mud.stuck import slacks_tilted
from fedtheory.theory.search import same


def eq29(factor: int) -> Check:
    """n sum z_i^2 - (sum z_i)^2 = sum_{i<j} (z_i - z_j)^2, for n = 1..4; factor: what is added to n."""

    def check(effort: str) -> Outcome:
        import sympy

        good = True
        for n in range(1, 5):
            z = sympy.symbols(f"z0:{n}")
            slack = (n + factor) * sum(v**2 for v in z) - sum(z) ** 2
            squares = sum((z[i] - z[j]) ** 2 for i in range(n) for j in range(i))
            good = good and same(slack, squares)
        return outcome(
            good, "symbolic", 1.0, f"slack = sum of squares of differences: {good} (n = 1..4, entry by entry)"
        )

    return check


def lemma1(gram: bool, scale: float = 1.0) -> Terms:
    """psi^2 ||grad f_l||^2 <= ||grad h_l||^2. gram: psi^2 by the least eigenvalues of U U^T, V V^T (m x m, n x n).

    scale: of psi^2.
    """

    def terms(q: Window) -> Pair:
        lines = []
        for t in range(q.at.S):
            f, h = q.fbar(t), q.pieces(q.D.pullback(q.ubar[t], q.fbar(t)))
            for k, (U, V) in zip(q.low, q.factors(q.ubar[t])):
                if gram:
                    psi2 = torch.linalg.eigvalsh(U @ U.mT)[..., 0] + torch.linalg.eigvalsh(V @ V.mT)[..., 0]
                else:
                    psi2 = delta2(U) + delta2(V)
                lines.append((scale * psi2.clamp(min=0) * sq(q.matrices(f)[k]), (h[k] ** 2).sum(-1) + 1e-13))
        return worst(*lines)

    return terms


def printed2(q: Window) -> Pair:
    """Lemma 2 for V at t_s with epsilon_v^2 bounding ||U||^2, as (27) prints it."""
    U, V = q.factors(q.at.start)[0]
    gv = torch.minimum(2 * sq(U) + 2 * q.at.lr**2 * q.at.S**2 * q.G2 * q.kappa[0], q.kappa[1])
    return sq(V), gv


def lemma2(scale: float = 1.0, sure: bool = False) -> Terms:
    """`sure`: in every scenario, with a sure bound on the gradients."""

    def terms(q: Window) -> Pair:
        gu, gv = q.gamma(sure)
        mean = (lambda v: v) if sure else q.mean
        lines = []
        for low in lows(q):
            lines += [(mean(sq(low.U)), scale * gu), (mean(sq(low.V)), scale * gv)]
        return worst(*lines)

    return terms


def eq33(mean: bool) -> Callable[[Window], list[Pair]]:
    """mean: up to t_e the average of the clients' gradients, as printed; otherwise each client's own."""

    def pairs(q: Window) -> list[Pair]:
        out, before = [], (lambda v: v.mean(1)) if mean else (lambda v: v)
        for low in lows(q):
            for t in range(1, q.at.S + 1):
                te = q.last(t)
                U = low.U[0] - q.at.lr * (before(low.a[:te]).sum(0) + low.a[te:t].sum(0))
                V = low.V[0] - q.at.lr * (before(low.b[:te]).sum(0) + low.b[te:t].sum(0)).mT
                out += [(low.U[t], U), (low.V[t], V)]
        return out

    return pairs


def eq34(scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, S, lines = q.at.lr, q.at.S, []
        kv, eu = q.kappa[1], q.epsilon[0]
        for low in lows(q):
            for t in range(1, S + 1):
                te = q.last(t)
                total = low.a[:te].mean(1).sum(0) + low.a[te:t].sum(0)  # (N, C, m, r)
                first = 2 * q.mean(sq(low.U[0])) + 2 * eta**2 * q.mean(sq(total))
                squares = sq(low.a[:te].mean(1)).sum(0) + sq(low.a[te:t]).sum(0)
                second = 2 * q.mean(sq(low.U[0])) + 2 * eta**2 * t * q.mean(squares)
                means = sq(low.a[:te]).mean(1).sum(0) + sq(low.a[te:t]).sum(0)
                third = 2 * q.mean(sq(low.U[0])) + 2 * eta**2 * t * q.mean(means)
                fourth = 2 * q.mean(sq(low.U[0])) + 2 * eta**2 * t**2 * q.G2 * kv
                last = (2 * eu + 2 * eta**2 * S**2 * q.G2 * kv).expand_as(fourth)
                steps = [q.mean(sq(low.U[t])), first, second, third, fourth, last]
                lines += [(a, scale * b) for a, b in pairwise(steps)]
        return worst(*lines)

    return terms


def lemma3(scale: float = 1.0, sure: bool = False, kappa: tuple[float, float] | None = None) -> Terms:
    """`kappa`: bounds that the window does not respect."""

    def terms(q: Window) -> Pair:
        eta, E, G2, gu, gv = constants(q, sure)
        if kappa is not None:
            gu, gv = (torch.tensor(v, dtype=DOUBLE) for v in kappa)
        lines = []
        for piece, bar in zip(q.pieces(q.u), q.pieces(q.ubar[:, None])):
            lines.append((q.mean(((piece - bar) ** 2).sum(-1)), scale * 4 * eta**2 * E**2 * G2 * (gu + gv)))
        return worst(*[lines[k] for k in q.low])

    return terms


def eq36(mean: bool = True) -> Callable[[Window], list[Pair]]:
    """(36): the trained numbers of all layers."""

    def pairs(q: Window) -> list[Pair]:
        return [pair for t, te in local(q) for pair in path_from_average(q, q.u, q.h, t, te, mean)]

    return pairs


def eq37(printed: bool, scale: float = 1.0) -> Terms:
    """Line 3 with the gradients of one client and one iteration as printed, or with the largest of them."""

    def terms(q: Window) -> Pair:
        eta, E, G2, gu, gv = constants(q, False)
        h, lines = q.pieces(q.h), []
        for k in q.low:
            for t, te in local(q):
                own = h[k][te:t]  # (t - te, N, C, q_l)
                left = q.mean(((q.pieces(q.ubar[t])[k] - q.pieces(q.u[t])[k]) ** 2).sum(-1))
                norms = q.mean((own**2).sum(-1))  # (t - te, N)
                first = 2 * eta**2 * (t - te) * (q.mean((own.mean(1) ** 2).sum(-1)).sum(0) + norms.sum(0))
                second = 2 * eta**2 * (t - te) * (norms.mean(1).sum(0) + norms.sum(0))
                third = 4 * eta**2 * (t - te) ** 2 * (norms.amin(0) if printed else norms.max().expand_as(second))
                last = (4 * eta**2 * E**2 * G2 * (gu + gv)).expand_as(third)
                steps = [left, first, second, third, last]
                lines += [(a, scale * b) for a, b in pairwise(steps)]
        return worst(*lines)

    return terms


def claims() -> list[Claim]:
    """Lemmas 1 to 3."""
    rank1 = "r < min(m, n): V^T (r x n) has a kernel, delta_min(V) is the least of its r singular values only"
    eigenvalues = "least eigenvalues of the m x m, n x n matrices"
    gram = "With the least eigenvalues of U U^T (m x m), V V^T (n x n) for delta_min^2: nothing for r < min(m, n). "
    return [
        mud(
            "eq29", "inequality",
            check=eq29(0), control=eq29(-1), broken="n - 1",
        ),
        mud(
            "lemma1", "inequality",
            check=broken(tilted, lemma1(False), "U = (1, 1/8), V = 0, grad f = -E_22", slacks_tilted),
            control=survives(lemma1(True, 1.01), "lemma1", eigenvalues),
            broken="1% above the repair, which is attained",
            assumes=(A4,), error="wrong step", repair=gram + REDRAWN,
            repaired=both(survives(lemma1(True), "lemma1", eigenvalues), redrawn()),
            implies="A gradient orthogonal to the span of U (and of V) does not move FedMUD until the next reset.",
        ),
        mud(
            "eq31", "inequality",
            check=broken(tilted, lemma1(False), f"{rank1}: U = (1, 1/8)", slacks_tilted),
            control=survives(lemma1(True, 1.01), "lemma1", eigenvalues), broken="1% above the repair",
            assumes=(A4,), error="wrong step",
            repair="delta_min(U) ||V||_F <= ||U V||_F needs m >= r; it is used for U^T (r x m) and V^T (r x n), so r "
            ">= m, n.",
            repaired=survives(lemma1(True), "lemma1", eigenvalues),
            implies="The lemma that is cited is about tall matrices.",
        ),
        mud(
            "lemma2", "expectation", check=with_units(survives(lemma2(), "lemma2", near=[steady]), lambda q: [
                q.mean(sq(q.factors(q.u)[0][0])).max(), 2 * q.epsilon[0],
                2 * q.at.lr**2 * q.at.S**2 * q.G2 * q.kappa[1], q.kappa[0]]),
            control=survives(lemma2(0.99), "lemma2", near=[steady]), broken="Gamma^2 1% smaller",
            assumes=(A2, A3),
            as_printed=broken(
                lambda: scalars((1 / 8, 1), 0.5, 1, h=column(0), a=column(1 / 8)), printed2,
                "t = t_s, eps_v^2 = ||U||^2 = 1/64, V = 1", admissible,
            ),
            met="FedMUD starts V at 0",
            caveat="||V^{t_s}||^2 <= eps_v^2, where (27) prints U twice. FedMUD has V = 0 there; FedLMT needs it",
        ),
        mud(
            "eq33", "identity",
            check=gaps("33", eq33(True)), control=gaps("33", eq33(False)),
            broken="the client's own gradients up to t_e",
        ),
        mud(
            "eq34", "expectation",
            check=survives(eq34(), "34", "every step", near=[steady]),
            control=survives(eq34(0.99), "34", "99% of every line", near=[steady]),
            broken="right-hand sides 1% smaller", assumes=(A2, A3),
        ),
        mud(
            "lemma3", "expectation", check=with_units(survives(lemma3(), "lemma3", near=[drifting]), lambda q: [
                q.mean(((q.u - q.ubar[:, None]) ** 2).sum(-1)).max(), q.at.lr**2 * q.G2 * q.gamma()[0],
                q.at.lr**2 * q.G2 * q.gamma()[1]]),
            control=survives(lemma3(0.93), "lemma3", near=[drifting]), broken="3.72 in place of 4",
            assumes=(A1, A2),
            reading=FRESH,
            as_printed=survives(lemma3(1.0, kappa=(1e-3, 1e-3)), "lemma3", "U, V not bounded by kappa"),
            met="Theorem 1 assumes A1 to A4",
            caveat="Assumption 3, through Lemma 2: under A1 and A2 alone Gamma bounds nothing",
        ),
        mud(
            "eq36", "identity",
            check=gaps("36", eq36()), control=gaps("36", eq36(False)),
            broken="one client's gradients for their average",
        ),
        mud(
            "eq37",
            "expectation", check=broken(uneven, eq37(True), "f_1 = w, f_2 = w/8: line 3 of client 2", admissible),
            control=survives(eq37(False, 0.99), "37", near=[drifting]), broken="the repair, every line 1% less",
            assumes=BOTH, reading=FRESH, error="index",
            repair="The third line with the largest of E||grad H_jl(x_j^{tau-1})||^2 over j and tau.",
            repaired=survives(eq37(False), "37", "every step", near=[drifting]),
            implies="None for Lemma 3: i and tau are free in the third line, where sums over both were.",
        ),
    ]  # fmt: skip
