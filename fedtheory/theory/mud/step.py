"""FedMUD, Appendix D.3, Lemma 5, (47) to (53): how far the recovered average moves in one step."""

from collections.abc import Callable

import torch

from fedtheory.theory.claim import Claim, Printed
from fedtheory.theory.mud.counterexamples import flutter, noise, once, one_step, same_noise
from fedtheory.theory.mud.quantities import (
    BOTH,
    RARE,
    RESET,
    RESET_TAKEN,
    SECOND,
    Low,
    after_reset,
    constants,
    lows,
    moving_parts,
    stepped,
    surely,
)
from fedtheory.theory.mud.round import (
    A2,
    DOUBLE,
    FRESH,
    SURE,
    WHOLE,
    Pair,
    Terms,
    Window,
    admissible,
    both,
    broken,
    gaps,
    mud,
    sq,
    survives,
    with_units,
    worst,
)


def parts50(q: Window, low: Low, t: int) -> list[torch.Tensor]:
    """A_l, B_l, C_l of (50), (C, m, n)."""
    eta, am, bm = q.at.lr, low.a[t - 1].mean(0), low.b[t - 1].mean(0)
    return [-eta * am @ low.Vb[t - 1].mT, -eta * low.Ub[t - 1] @ bm, eta**2 * am @ bm]


def lemma5(sure: bool, factor: float = 3.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, sure)
        left = q.mean(((q.wbar[1:] - q.wbar[:-1]) ** 2).sum(-1))
        full = sum((q.mean(sq(q.matrices(q.d)[k].mean(1))) for k in q.full), 0 * left)
        low = stepped(len(q.low), eta, G2, gu, gv, factor)
        return worst((left, eta**2 * full + eta**2 * q.sigma2 / q.at.N + low))

    return terms


def eq48(reset: bool, inner: bool = False, whole: bool = True) -> Callable[[Window], list[Pair]]:
    """(48); `inner`: (55), the inner product with the gradient. At a reset wbar stays, U V^T does not."""

    def pairs(q: Window) -> list[Pair]:
        factors = q.factors(after_reset(q) if reset else q.ubar)
        out = []
        for t in range(1, q.at.S + 1):
            moved, f = q.wbar[t] - q.wbar[t - 1], q.fbar(t - 1)
            layers, grads = q.matrices(moved), q.matrices(f)
            low = [U[t] @ V[t].mT - U[t - 1] @ V[t - 1].mT for U, V in factors]
            deltas = [(layers[k], grads[k]) for k in q.full if whole] + [(v, grads[k]) for k, v in zip(q.low, low)]
            if inner:
                left, right = (f * moved).sum(-1), [(v * g).sum((-2, -1)) for v, g in deltas]
            else:
                left, right = (moved**2).sum(-1), [sq(v) for v, _ in deltas]
            out.append((q.mean(left), q.mean(sum(right) + 0 * left)))
        return out

    return pairs


def eq49(q: Window) -> list[Pair]:
    """The equalities of (49) with independent clients, and (56)'s first one."""
    out = []
    for k in q.full:
        g, d = q.matrices(q.g)[k], q.matrices(q.d)[k]
        mean = q.mean(sq(g.mean(1)))
        apart = q.mean(sq((g - d).mean(1))) + q.mean(sq(d.mean(1)))
        spread = q.mean(sq(g - d)).sum(1) / q.at.N**2 + q.mean(sq(d.mean(1)))
        moved = q.matrices(q.wbar[1:] - q.wbar[:-1])[k]
        out += [(mean, apart), (apart, spread), (q.mean(sq(moved)), q.at.lr**2 * mean)]
    return out


def eq49_bound(scale: float = 1.0) -> Terms:
    """The last line of (49), sigma^2/N times `scale`."""

    def terms(q: Window) -> Pair:
        lines = []
        for t in range(1, q.at.S + 1):
            moved, d = q.matrices(q.wbar[t] - q.wbar[t - 1]), q.matrices(q.d[t - 1])
            left = sum((q.mean(sq(moved[k])) for k in q.full), torch.zeros((), dtype=DOUBLE))
            full = sum((q.mean(sq(d[k].mean(0))) for k in q.full), torch.zeros((), dtype=DOUBLE))
            lines.append((left, q.at.lr**2 * (full + scale * q.sigma2 / q.at.N)))
        return worst(*lines)

    return terms


def eq50(reset: bool, keep: int = 3) -> Callable[[Window], list[Pair]]:
    def pairs(q: Window) -> list[Pair]:
        factors = q.factors(after_reset(q) if reset else q.ubar)
        out = []
        for low, (U, V) in zip(lows(q), factors):
            for t in range(1, q.at.S + 1):
                left = U[t] @ V[t].mT - U[t - 1] @ V[t - 1].mT
                out.append((left, sum(parts50(q, low, t)[:keep])))
        return out

    return pairs


def eq51(sure: bool, scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, sure)
        lines = []
        for low, t in moving_parts(q):
            A, B, _ = parts50(q, low, t)
            lines += [(q.mean(sq(A)), scale * eta**2 * G2 * gv**2), (q.mean(sq(B)), scale * eta**2 * G2 * gu**2)]
        return worst(*lines)

    return terms


def eq52(sure: bool, scale: float = 1.0) -> Terms:
    """E||C_l||^2 <= eta^4 G^4 Gamma_u^2 Gamma_v^2."""

    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, sure)
        lines = [(q.mean(sq(parts50(q, low, t)[2])), scale * eta**4 * G2**2 * gu * gv) for low, t in moving_parts(q)]
        return worst(*lines)

    return terms


def eq53(factor: float) -> Terms:
    """The first inequality of (53) and, where (51) and (52) hold, its last line; G and Gamma as printed."""

    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, False)
        lines = []
        for low, t in moving_parts(q):
            P = parts50(q, low, t)
            squares = [q.mean(sq(v)) for v in P]
            three = 3 * sum(squares, torch.zeros((), dtype=DOUBLE))
            lines.append((q.mean(sq(torch.stack(P).sum(0))), three))
            given = [eta**2 * G2 * gv**2, eta**2 * G2 * gu**2, eta**4 * G2**2 * gu * gv]
            if all(bool(v <= bound * (1 + 1e-12)) for v, bound in zip(squares, given)):
                last = factor * eta**2 * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv)
                lines.append((three, last))
        return worst(*lines)

    return terms


def claims() -> list[Claim]:
    """Lemma 5."""
    return [
        mud(
            "lemma5", "expectation",
            check=broken(flutter, lemma5(False), "V jumps with probability 2^-86, 512 iterations", admissible),
            control=survives(lemma5(True, 1.98), "lemma5", near=[one_step]),
            broken="the repair with 1.98 in place of 3", assumes=BOTH, error="wrong independence",
            repair=f"With {SURE}, and samples of different clients that are independent given the past, see mud.eq49: "
            "then Gamma bounds U and V surely, and the display holds as printed.",
            repaired=with_units(survives(lemma5(True), "lemma5", near=[one_step, noise]), lambda q: [
                q.mean(((q.wbar[1:] - q.wbar[:-1]) ** 2).sum(-1)).max(), q.at.lr**2 * q.G2 * q.gamma()[0] ** 2]),
            implies=f"{RARE}. FedMUD's own start V = 0 and kappa_u^2 = 100 epsilon_u^2 break it, in a window "
            "long enough: every iteration may be the one with the jump.",
        ),
        mud(
            "eq48", "identity",
            check=gaps("48", eq48(False)), control=gaps("48", eq48(False, whole=False)),
            broken="without l <= rho", as_printed=gaps("48", eq48(True)), met=RESET_TAKEN, caveat=RESET,
        ),
        mud(
            "eq49", "expectation",
            check=both(gaps("49", eq49), survives(eq49_bound(), "49", "the bound", [*WHOLE], near=[noise])),
            control=survives(eq49_bound(0.99), "49 control", "99% of sigma^2/N", near=[noise]),
            broken="the noise term 1% smaller", assumes=(A2,), reading=FRESH,
            as_printed=broken(same_noise, eq49_bound(), "N = 2, the same noise +-1 for both clients", admissible),
            met="clients of Sec. 5 draw their batches each by itself",
            caveat="the samples of different clients are independent given the past; A2 does not say so",
        ),
        mud(
            "eq50", "identity",
            check=gaps("50", eq50(False)), control=gaps("50", eq50(False, 2)), broken="without C_l",
            as_printed=gaps("50", eq50(True)), met=RESET_TAKEN, caveat=RESET,
        ),
        mud(
            "eq51", "expectation",
            **surely(eq51, "51", flutter, "V = -2^23 with probability 2^-77", one_step, 0.99),
            broken="the repair, 1% less",
            implies=f"E||V||^4 is not Gv^4: {SECOND}.",
        ),
        mud(
            "eq52", "expectation",
            **surely(eq52, "52", once, "g = 4 with probability 2^-10, U = V = 1", one_step, 0.99) | {
                "repair": f"With {SURE}: E||C_l||^2 <= eta^4 E[||av a||^2 ||av b||^2] <= eta^4 G^4 Gu^2 Gv^2; the "
                "product of expectations in the middle stays too small."},
            broken="the repair, 1% less",
            implies="a and b hold the same gradient: their squares are not independent.",
        ),
        mud(
            "eq53", "inequality",
            check=survives(eq53(3), "53", "every step, the last where (51), (52) hold", near=[one_step]),
            control=survives(eq53(2.97), "53", near=[one_step]), broken="3 lowered to 2.97",
            assumes=(*BOTH, Printed("E||A_l||^2, E||B_l||^2 as bounded there", "eq. (51)"),
                     Printed("E||C_l||^2 as bounded there", "eq. (52)")),
        ),
    ]  # fmt: skip
