"""FedMUD, Section 4 and Appendix D: assumptions, lemmas, Theorem 1.

What the proof uses and what is wrong with it, in short:
    - (31) takes delta_min(V) ||G||_F <= ||V^T G^T||_F for a wide V^T, which has a kernel. Lemma 1 fails for every
      rank below min(m, n), and with it (61), (63), Lemma 6, (66), (68) and Theorem 1: a gradient outside the span of U
      and V is invisible to FedMUD. It holds in the mean over U at a reset, see `sharper.reset`.
    - (44), (45), (51), (52), (62) put the product of expectations for the expectation of a product: G and Gamma bound
      second moments, fourth moments are needed. With a sure bound on the gradient Gamma holds surely and all is well.
    - (61) bounds layer by layer what smoothness of h bounds for all layers: 2 rho L_s^2 eta^3 E^2 G^2 is missing.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from fedtheory.algorithms.fedmud import Down, FedMUD, Frozen
from fedtheory.core.key import Key
from fedtheory.core.message import Known, Replay
from fedtheory.maps.decomposition import Factors, Full, Outer, Product
from fedtheory.theory.fedmud.round import DOUBLE, SIGNS, Atoms, Given, Pair, Terms, Window, layout, sq, worst
from fedtheory.theory.instances import Sample, Smooth, drain

RESET = (
    "t is no reset, or U^t, V^t, W^t are those before it: with (16) at t mod S = 0 the left side holds redrawn factors"
)


# What the displays are made of


class Low:
    """A decomposed layer: U, V (S+1, N, C, ., .), gradients g, d, and a = g V, b = U^T g (S, N, C, ., .)."""

    def __init__(self, q: Window, number: int) -> None:
        layer = q.low[number]
        self.U, self.V = q.factors(q.u)[number]
        self.Ub, self.Vb = q.factors(q.ubar)[number]
        self.g, self.d = q.matrices(q.g)[layer], q.matrices(q.d)[layer]
        self.a, self.b = self.g @ self.V[:-1], self.U[:-1].mT @ self.g
        self.number, self.layer = number, layer


def lows(q: Window) -> list[Low]:
    return [Low(q, k) for k in range(len(q.low))]


def local(q: Window) -> list[tuple[int, int]]:
    """(t, t_e) with t > t_e."""
    return [(t, q.last(t)) for t in range(1, q.at.S + 1) if t > q.last(t)]


def sums(low: Low, t: int, te: int) -> tuple[torch.Tensor, torch.Tensor]:
    """sum_tau a_i^{tau-1}, sum_tau b_i^{tau-1}, (N, C, ., .)."""
    return low.a[te:t].sum(0), low.b[te:t].sum(0)


def parts43(q: Window, low: Low, t: int, te: int) -> list[torch.Tensor]:
    """A_l, B_l, C_l, D_l of (43), (N, C, m, n)."""
    eta = q.at.lr
    a, b = sums(low, t, te)
    am, bm = a.mean(0, keepdim=True), b.mean(0, keepdim=True)
    A, B = -eta * (am - a) @ low.Vb[te].mT, -eta * low.Ub[te] @ (bm - b)
    return [A, B, (eta**2 * am @ bm).expand_as(A), -(eta**2) * a @ b]


def parts50(q: Window, low: Low, t: int) -> list[torch.Tensor]:
    """A_l, B_l, C_l of (50), (C, m, n)."""
    eta, am, bm = q.at.lr, low.a[t - 1].mean(0), low.b[t - 1].mean(0)
    return [-eta * am @ low.Vb[t - 1].mT, -eta * low.Ub[t - 1] @ bm, eta**2 * am @ bm]


def after_reset(q: Window) -> torch.Tensor:
    """ubar with the last one redrawn: U as at t_s, V = 0."""
    pieces = []
    for piece, (m, _, r) in zip(q.pieces(q.at.start), q.at.layers):
        pieces.append(torch.cat([piece[: m * r], torch.zeros_like(piece[m * r :])]) if r else piece)
    return torch.cat([q.ubar[:-1], torch.cat(pieces).expand_as(q.ubar[-1:])])


# Identities


def eq19(reset: bool, own: bool = True) -> Callable[[Window], list[Pair]]:
    """own: gradients at the clients' x_i^{t-1}; otherwise at xbar^{t-1}."""

    def pairs(q: Window) -> list[Pair]:
        ubar = after_reset(q) if reset else q.ubar
        rows, wbar = q.ubar[:-1, None].expand_as(q.h), q.wbar[:-1, None].expand_as(q.g)
        at_mean = [q.at.problem.grads(w.flatten(0, 1), xi).view_as(w) for w, xi in zip(wbar, q.samples)]
        h = q.h if own else q.D.pullback(rows, torch.stack(at_mean))
        return [(ubar[1:], q.ubar[:-1] - q.at.lr * h.mean(1))]

    return pairs


def eq20(base: float = 1.0) -> Callable[[Window], list[Pair]]:
    """grad H_i(x_i, xi) by automatic differentiation of F_i(base W + U V^T, xi) against [grad F V; grad F^T U]."""

    def pairs(q: Window) -> list[Pair]:
        out, layers = [], lows(q)
        for t, xi in enumerate(q.samples):
            x = q.u[t].detach().clone().requires_grad_()
            losses = q.at.problem.losses((base * q.at.base + q.D.update(x)).flatten(0, 1), xi)
            (found,) = torch.autograd.grad(losses.sum(), x)
            for low in layers:
                both = [(low.g[t] @ low.V[t]).flatten(-2), (low.g[t].mT @ low.U[t]).flatten(-2)]
                out.append((q.pieces(found)[low.layer], torch.cat(both, -1)))
            if base == 1.0:  # FedMUD's own
                out.append((q.h[t], found))
        return out

    return pairs


def eq21(own: bool) -> Callable[[Window], list[Pair]]:
    """grad h_il(x_i) and grad h_l(xbar) by automatic differentiation of f_i(W + U V^T) and f(W + U V^T).

    own: the second from grad f_l(wbar), as printed; otherwise from the average of the grad f_il(w_i).
    """

    def pairs(q: Window) -> list[Pair]:
        out = []
        rows = Sample(q.samples[0].clients, None)
        for t in range(q.at.S):
            for u, whole, d in ((q.u[t], False, q.d[t]), (q.ubar[t], True, q.fbar(t) if own else q.d[t].mean(0))):
                x = u.detach().clone().requires_grad_()
                w = q.at.base + q.D.update(x)
                values = q.at.problem.values(w).mean(0) if whole else q.at.problem.losses(w.flatten(0, 1), rows)
                (found,) = torch.autograd.grad(values.sum(), x)
                grads = q.matrices(d)
                out.append((q.D.pullback(u, d), found))  # FedMUD's own
                for k, (U, V) in zip(q.low, q.factors(u)):
                    both = torch.cat([(grads[k] @ V).flatten(-2), (grads[k].mT @ U).flatten(-2)], -1)
                    out.append((q.pieces(found)[k], both))
        return out

    return pairs


def eq22_sides(q: Window) -> Pair:
    """The right side of (22) as printed, and its left side, t = 1."""
    low = Low(q, 0)
    return (sq(low.g[0] @ low.V[1]) + sq(low.g[0].mT @ low.U[1])).max(), (q.pieces(q.h)[low.layer][0] ** 2).sum()


def eq22(shift: int) -> Callable[[Window], list[Pair]]:
    """U^{t-1}, V^{t-1}; shift = 1: V^t, one of the two that are printed."""

    def pairs(q: Window) -> list[Pair]:
        out = []
        h = q.pieces(q.h)
        for low in lows(q):
            U, V = low.U[: q.at.S], low.V[shift : q.at.S + shift]
            out.append(((h[low.layer] ** 2).sum(-1), sq(low.g @ V) + sq(low.g.mT @ U)))
        return out

    return pairs


def eq24(whole: bool) -> Callable[[Window], list[Pair]]:
    def pairs(q: Window) -> list[Pair]:
        layers = range(len(q.at.layers)) if whole else range(1, len(q.at.layers))
        total = lambda pieces: sum((pieces[k] for k in layers), torch.zeros((), dtype=DOUBLE))
        h = [(piece**2).sum(-1) for piece in q.pieces(q.h)]
        g = [sq(piece) for piece in q.matrices(q.g)]
        return [((q.h**2).sum(-1), total(h)), ((q.g**2).sum(-1), total(g))]

    return pairs


def recovered(q: Window, u: torch.Tensor) -> torch.Tensor:
    """(13): w from x, layer by layer, W_l + U_l V_l^T written out."""
    parts, factors = q.pieces(u), q.factors(u)
    for k, (U, V) in zip(q.low, factors):
        parts[k] = (U @ V.mT).flatten(-2)
    return q.at.base + torch.cat(parts, -1)


def FH(average: bool) -> Callable[[Window], list[Pair]]:
    """F_i(w) with w as in (13), (18) against H_i(x), the loss that FedMUD's factors give; and the gradients of layers
    that are not decomposed, H's by automatic differentiation. `average`: wbar as the mean of the w_i.
    """

    def pairs(q: Window) -> list[Pair]:
        problem, out = q.at.problem, []
        for t, xi in enumerate(q.samples):
            x = q.u[t].detach().clone().requires_grad_()
            H = problem.losses((q.at.base + q.D.update(x)).flatten(0, 1), xi)
            out.append((H.detach(), problem.losses(recovered(q, q.u[t]).flatten(0, 1), xi)))
            (found,) = torch.autograd.grad(H.sum(), x)
            out += [(q.pieces(found)[k], q.matrices(q.g[t])[k].flatten(-2)) for k in q.full]
        wbar = recovered(q, q.u).mean(1) if average else recovered(q, q.ubar)
        return [*out, (problem.values(q.at.base + q.D.update(q.ubar)), problem.values(wbar))]

    return pairs


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


def since(q: Window, path: torch.Tensor, steps: torch.Tensor, t: int, te: int, mean: bool) -> list[Pair]:
    """What a client has at t, and the average, from the average at t_e: the pattern of (36), (40) and (42).

    mean: the average by averaged gradients, as printed; otherwise by those of the first client.
    """
    start, moved = path[te].mean(0), q.at.lr * steps[te:t].sum(0)
    return [(path[t], start - moved), (path[t].mean(0), start - (moved.mean(0) if mean else moved[0]))]


def eq36(mean: bool = True) -> Callable[[Window], list[Pair]]:
    """(36): the trained numbers of all layers."""

    def pairs(q: Window) -> list[Pair]:
        return [pair for t, te in local(q) for pair in since(q, q.u, q.h, t, te, mean)]

    return pairs


def eq40(mean: bool = True) -> Callable[[Window], list[Pair]]:
    """(40): the matrices that are not decomposed, from grad F_il."""

    def pairs(q: Window) -> list[Pair]:
        W, g = q.matrices(q.w), q.matrices(q.g)
        return [pair for t, te in local(q) for k in q.full for pair in since(q, W[k], g[k], t, te, mean)]

    return pairs


def eq42(mean: bool = True) -> Callable[[Window], list[Pair]]:
    """(42): U from grad F V, V from grad F^T U."""

    def pairs(q: Window) -> list[Pair]:
        out = []
        for low in lows(q):
            for t, te in local(q):
                out += since(q, low.U, low.a, t, te, mean) + since(q, low.V, low.b.mT, t, te, mean)
        return out

    return pairs


def eq39(frozen: bool) -> Callable[[Window], list[Pair]]:
    def pairs(q: Window) -> list[Pair]:
        out = []
        for t, _ in local(q):
            whole = q.matrices(q.wbar[t] - q.w[t])
            parts = [sq(whole[k]) for k in q.full]
            for low in lows(q):
                product = low.U[t] @ low.V[t].mT
                mean = product.mean(0) if frozen else low.Ub[t] @ low.Vb[t].mT
                parts.append(sq(mean - product))
            out.append((((q.wbar[t] - q.w[t]) ** 2).sum(-1), sum(parts)))
        return out

    return pairs


def eq43(keep: int = 4) -> Callable[[Window], list[Pair]]:
    def pairs(q: Window) -> list[Pair]:
        out = []
        for low in lows(q):
            for t, te in local(q):
                left = low.Ub[t] @ low.Vb[t].mT - low.U[t] @ low.V[t].mT
                out.append((left, sum(parts43(q, low, t, te)[:keep])))
        return out

    return pairs


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


def eq58(unbiased: bool) -> Callable[[Window], list[Pair]]:
    """The second term of (55) by A_l, B_l, C_l of (58)."""

    def pairs(q: Window) -> list[Pair]:
        out = []
        for t in range(1, q.at.S + 1):
            for low in lows(q):
                f = q.matrices(q.fbar(t - 1))[low.layer]
                left = ((low.Ub[t] @ low.Vb[t].mT - low.Ub[t - 1] @ low.Vb[t - 1].mT) * f).sum((-2, -1))
                A, B, C = parts58(q, low, t)
                eta = q.at.lr
                right = -eta * A - eta * B + (eta**2 * C if unbiased else 0 * C)
                out.append((q.mean(left), right))
        return out

    return pairs


def parts58(q: Window, low: Low, t: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A_l, B_l, C_l of (58), expectations."""
    f = q.matrices(q.fbar(t - 1))[low.layer]
    U, V, d = low.U[t - 1], low.V[t - 1], low.d[t - 1]
    A = ((f @ low.Vb[t - 1]) * (d @ V).mean(0)).sum((-2, -1))
    B = ((low.Ub[t - 1].mT @ f) * (U.mT @ d).mean(0)).sum((-2, -1))
    C = (f * (low.a[t - 1].mean(0) @ low.b[t - 1].mean(0))).sum((-2, -1))
    return q.mean(A), q.mean(B), q.mean(C)


# Inequalities: (left, right), worst over t, clients and layers


def constants(q: Window, sure: bool) -> tuple[Any, ...]:
    """eta, E, G^2, Gamma_u^2, Gamma_v^2."""
    return q.at.lr, q.at.E, q.G2_sure if sure else q.G2, *q.gamma(sure)


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
        return worst(*lines or [(torch.zeros(1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE))])

    return terms


def Lambda(q: Window, sure: bool, factor: float = 12.0) -> torch.Tensor:
    """Lambda of (38)."""
    eta, E, G2, gu, gv = constants(q, sure)
    rho, low = len(q.full), len(q.low)
    return eta**2 * E**2 * G2 * (4 * rho + factor * low * (gu**2 + gv**2 + eta**2 * E**2 * G2 * gu * gv))


def lemma4(sure: bool, factor: float = 12.0) -> Terms:
    def terms(q: Window) -> Pair:
        left = q.mean(((q.w - q.wbar[:, None]) ** 2).sum(-1))
        return worst((left, Lambda(q, sure, factor)))

    return terms


def eq41(scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, E, G2 = q.at.lr, q.at.E, q.G2
        lines = []
        for k in q.full:
            g, W, bar = q.matrices(q.g)[k], q.matrices(q.w)[k], q.matrices(q.wbar)[k]
            for t, te in local(q):
                norms = q.mean(sq(g[te:t]))
                first = 2 * eta**2 * (t - te) * (norms.mean(1).sum(0) + norms.sum(0))
                second = (4 * eta**2 * (t - te) ** 2 * G2).expand_as(first)
                steps = [q.mean(sq(bar[t] - W[t])), first, second, (4 * eta**2 * E**2 * G2).expand_as(first)]
                lines += [(a, scale * b) for a, b in pairwise(steps)]
        return worst(*lines or [(torch.zeros(1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE))])

    return terms


def eq44(sure: bool, scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, E, G2, gu, gv = constants(q, sure)
        lines = []
        for low in lows(q):
            for t, te in local(q):
                A, B = parts43(q, low, t, te)[:2]
                lines += [
                    (q.mean(sq(A)), scale * 4 * eta**2 * E**2 * G2 * gv**2),
                    (q.mean(sq(B)), scale * 4 * eta**2 * E**2 * G2 * gu**2),
                ]
        return worst(*lines or [(torch.zeros(1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE))])

    return terms


def eq45(sure: bool, scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, E, G2, gu, gv = constants(q, sure)
        lines = []
        for low in lows(q):
            for t, te in local(q):
                C, D = parts43(q, low, t, te)[2:]
                right = scale * eta**4 * E**4 * G2**2 * gu * gv
                lines += [(q.mean(sq(C)), right), (q.mean(sq(D)), right)]
        return worst(*lines or [(torch.zeros(1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE))])

    return terms


def eq46(front: float) -> Terms:
    """The two inequalities of (46) and, where (44) and (45) hold, its last line; G and Gamma as printed."""

    def terms(q: Window) -> Pair:
        eta, E, G2, gu, gv = constants(q, False)
        lines = [(torch.zeros(1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE))]
        for low in lows(q):
            for t, te in local(q):
                P = parts43(q, low, t, te)
                squares = [q.mean(sq(v)) for v in P]
                A, B, C, D = squares
                three = 3 * (A + B + q.mean(sq(P[2] + P[3])))
                four = 3 * (A + B + 2 * C + 2 * D)
                lines += [(q.mean(sq(torch.stack(P).sum(0))), three), (three, four)]
                second = eta**4 * E**4 * G2**2 * gu * gv
                given = [4 * eta**2 * E**2 * G2 * gv**2, 4 * eta**2 * E**2 * G2 * gu**2, second, second]
                if all(bool((v <= bound * (1 + 1e-12)).all()) for v, bound in zip(squares, given)):
                    last = front * eta**2 * E**2 * G2 * (gu**2 + gv**2 + eta**2 * E**2 * G2 * gu * gv)
                    lines.append((four, last))
        return worst(*lines)

    return terms


def lemma5(sure: bool, factor: float = 3.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, sure)
        left = q.mean(((q.wbar[1:] - q.wbar[:-1]) ** 2).sum(-1))
        full = sum((q.mean(sq(q.matrices(q.d)[k].mean(1))) for k in q.full), 0 * left)
        low = factor * len(q.low) * eta**2 * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv)
        return worst((left, eta**2 * full + eta**2 * q.sigma2 / q.at.N + low))

    return terms


def eq51(sure: bool, scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, sure)
        lines = []
        for low in lows(q):
            for t in range(1, q.at.S + 1):
                A, B, _ = parts50(q, low, t)
                lines += [(q.mean(sq(A)), scale * eta**2 * G2 * gv**2), (q.mean(sq(B)), scale * eta**2 * G2 * gu**2)]
        return worst(*lines)

    return terms


def eq52(sure: bool, scale: float = 1.0) -> Terms:
    """E||C_l||^2 <= eta^4 G^4 Gamma_u^2 Gamma_v^2."""

    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, sure)
        lines = [
            (q.mean(sq(parts50(q, low, t)[2])), scale * eta**4 * G2**2 * gu * gv)
            for low in lows(q)
            for t in range(1, q.at.S + 1)
        ]
        return worst(*lines)

    return terms


def eq53(factor: float) -> Terms:
    """The first inequality of (53) and, where (51) and (52) hold, its last line; G and Gamma as printed."""

    def terms(q: Window) -> Pair:
        eta, _, G2, gu, gv = constants(q, False)
        lines = []
        for low in lows(q):
            for t in range(1, q.at.S + 1):
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


def eq57(scale: float = 1.0, sure: bool = True, Ls: float | None = None) -> Terms:
    """Every line of (57); Ls: a constant that (25) admits, where it is not the Lipschitz constant of the gradients."""

    def terms(q: Window) -> Pair:
        L2, lines = (q.Ls if Ls is None else Ls) ** 2, []
        for t in range(q.at.S):
            gap = q.fbars(t) - q.d[t]  # (N, C, d)
            layers = q.matrices(gap)
            first = sum((q.mean(sq(layers[k].mean(0))) for k in q.full), torch.zeros((), dtype=DOUBLE))
            second = sum((q.mean(sq(layers[k])).mean() for k in q.full), torch.zeros((), dtype=DOUBLE))
            third = q.mean((gap**2).sum(-1)).mean()
            fourth = L2 * q.mean(((q.wbar[t] - q.w[t]) ** 2).sum(-1)).mean()
            steps = [first, second, third, fourth, L2 * Lambda(q, sure)]
            lines += [(a, scale * b) for a, b in pairwise(steps)]
        return worst(*lines)

    return terms


def lines56(q: Window, t: int) -> list[torch.Tensor]:
    """The expressions of (56) that it says are equal, from what the layers l <= rho do in FedMUD on."""
    zero, eta = torch.zeros((), dtype=DOUBLE), q.at.lr
    f, d, g = q.matrices(q.fbar(t - 1)), q.matrices(q.d[t - 1]), q.matrices(q.g[t - 1])
    moved = q.matrices(q.wbar[t] - q.wbar[t - 1])
    inner = lambda x, y: q.mean((x * y).sum((-2, -1)))
    total = lambda terms: sum(terms, zero)
    return [
        total(inner(f[k], moved[k]) for k in q.full),
        total(-eta * inner(f[k], g[k].mean(0)) for k in q.full),
        total(-eta * inner(f[k], d[k].mean(0)) for k in q.full),
        total(
            -eta / 2 * q.mean(sq(f[k]) + sq(d[k].mean(0))) + eta / 2 * q.mean(sq(f[k] - d[k].mean(0))) for k in q.full
        ),
    ]


def eq56_lines(q: Window) -> list[Pair]:
    """The equalities (a) to (c) of (56)."""
    return [pair for t in range(1, q.at.S + 1) if q.full for pair in pairwise(lines56(q, t))]


def eq56(scale: float = 1.0, sure: bool = True, Ls: float | None = None) -> Terms:
    """(56) from its first expression to its last, the negative terms on the left; Ls as in `eq57`."""

    def terms(q: Window) -> tuple[torch.Tensor, ...]:
        lines, eta, L2 = [], q.at.lr, (q.Ls if Ls is None else Ls) ** 2
        for t in range(1, q.at.S + 1):
            f, d = q.matrices(q.fbar(t - 1)), q.matrices(q.d[t - 1])
            zero = torch.zeros((), dtype=DOUBLE)
            squares = sum((q.mean(sq(f[k]) + sq(d[k].mean(0))) for k in q.full), zero)
            lines.append((lines56(q, t)[0] + eta / 2 * squares, scale * eta / 2 * L2 * Lambda(q, sure)))
        return worst(*lines)

    return terms


def eq59(index: bool, left: bool = True, scale: float = 1.0) -> Terms:
    """(59) (left) or (60), the square completed, with both sides raised by (1/2) E||first factor||^2.

    index: client i's gradient at w_i; otherwise at wbar, one reading of the printed w^{t-1}.
    """

    def terms(q: Window) -> Pair:
        lines = []
        for t in range(1, q.at.S + 1):
            for low in lows(q):
                f = q.matrices(q.fbar(t - 1))[low.layer]
                d = low.d[t - 1] if index else q.matrices(q.fbars(t - 1))[low.layer]
                x = f @ low.Vb[t - 1] if left else low.Ub[t - 1].mT @ f
                y = (d @ low.V[t - 1]).mean(0) if left else (low.U[t - 1].mT @ d).mean(0)
                inner = parts58(q, low, t)[0 if left else 1]
                lines.append((-inner + q.mean(sq(x)) / 2, scale * q.mean(sq(x - y)) / 2))
        return worst(*lines)

    return terms


def eq62(sure: bool, scale: float = 1.0) -> Terms:
    """The second step of (62): E||[av a][av b]||^2 <= G^4 Gamma_u^2 Gamma_v^2; and the first with both sides raised."""

    def terms(q: Window) -> Pair:
        _, _, G2, gu, gv = constants(q, sure)
        lines = []
        for t in range(1, q.at.S + 1):
            for low in lows(q):
                f = q.mean(sq(q.matrices(q.fbar(t - 1))[low.layer])) / 2
                square = q.mean(sq(low.a[t - 1].mean(0) @ low.b[t - 1].mean(0))) / 2
                C = parts58(q, low, t)[2]
                lines += [(C, f + square), (square, scale * G2**2 * gu * gv / 2)]
        return worst(*lines)

    return terms


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


def delta2(U: torch.Tensor) -> torch.Tensor:
    """delta_min^2."""
    return torch.linalg.svdvals(U)[..., -1] ** 2


def eq61(q: Window, printed: bool, t: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A_{l,2} + B_{l,2}, summed over the layers, against what (61) bounds it by (printed), or with all layers."""
    bar = q.D.pullback(q.ubar[t], q.fbars(t))
    own = q.D.pullback(q.u[t], q.d[t])
    gap = q.pieces(bar.mean(0) - own.mean(0))
    left = sum((q.mean((gap[k] ** 2).sum(-1)) for k in q.low), torch.zeros((), dtype=DOUBLE)) / 2
    eta, E, G2, gu, gv = constants(q, True)
    rho = 0 if printed else len(q.full)
    return left, q.Lh**2 * 2 * eta**2 * E**2 * G2 * (len(q.low) * (gu + gv) + rho)


def eq61_terms(printed: bool, scale: float = 1.0) -> Terms:
    def terms(q: Window) -> Pair:
        lines = [eq61(q, printed, t) for t in range(q.at.S)]
        return worst(*[(a, scale * b) for a, b in lines])

    return terms


def lemma6(scale: float = 1.0, descent: float = 1.0) -> Terms:
    """Lemma 6 repaired: psi^2 as it is on the window, the layers that are not decomposed included in (61)."""

    def terms(q: Window) -> Pair:
        eta, E, G2, gu, gv = constants(q, True)
        rho, low = len(q.full), len(q.low)
        right = eta / 2 * q.Ls**2 * Lambda(q, True) + 2 * q.Lh**2 * eta**3 * E**2 * G2 * (low * (gu + gv) + rho)
        right = right + low * eta**2 * G2**2 * gu * gv / 2
        lines = []
        for t in range(1, q.at.S + 1):
            f, d = q.fbar(t - 1), q.matrices(q.d[t - 1])
            layers = q.matrices(f)
            zero = torch.zeros((), dtype=DOUBLE)
            inner = q.mean((f * (q.wbar[t] - q.wbar[t - 1])).sum(-1))
            full = sum((q.mean(sq(layers[k]) + sq(d[k].mean(0))) for k in q.full), zero)
            squares = sum((q.mean(sq(layers[k])) for k in q.low), zero)
            left = inner + eta / 2 * full + (descent * eta * q.psi2 - eta**2) / 2 * squares
            lines.append((left, scale * right))
        return worst(*lines)

    return terms


def residual(
    L: int, rho: int, E: int, N: int, eta: Any, Ls: Any, G2: Any, sigma2: Any, gu: Any, gv: Any, twelve: float = 12
) -> Any:
    """C of (66)."""
    low = L - rho
    lam = 4 * rho * eta**2 * E**2 * G2
    lam = lam + twelve * low * eta**2 * E**2 * G2 * (gu**2 + gv**2 + eta**2 * E**2 * G2 * gu * gv)
    return (
        eta / 2 * Ls**2 * lam + 2 * low * Ls**2 * eta**3 * E**2 * G2 * (gu + gv) + low * eta**2 * G2**2 * gu * gv / 2
        + Ls * eta**2 * sigma2 / (2 * N) + 3 * Ls / 2 * low * eta**2 * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv)
    )  # fmt: skip


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
            C = C + extra * 2 * rho * L**2 * eta**3 * E**2 * G2
        squares = sum(q.mean((q.fbar(t) ** 2).sum(-1)) for t in range(T)) / T
        fall = 2 / (eta**c * T) * (q.f(0) - q.f(T))
        return descent * squares - fall, 2 * C / eta**c, fall.detach().abs()

    return terms


def sharper_parts(q: Window) -> tuple[torch.Tensor, ...]:
    """The terms of the repaired theorem with rho = 0, any step size, in units that agree."""
    eta, E, G2, gu, gv = constants(q, True)
    L, T, p2 = len(q.low), q.at.S, q.psi2
    squares = sum(q.mean((q.fbar(t) ** 2).sum(-1)) for t in range(T)) / T
    return (
        torch.as_tensor(squares),
        4 / (eta * p2 * T) * (q.f(0) - q.f(T)),
        8 * L * q.Lh**2 * eta**2 * E**2 * G2 * (gu + gv) / p2,
        4 * L * eta**2 * G2**2 * gu * gv / p2**2,
        6 * L * q.Ls * eta * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv) / p2,
    )


def sharper(descent: float = 1.0) -> Terms:
    def terms(q: Window) -> tuple[torch.Tensor, ...]:
        left, start, *rest = sharper_parts(q)
        return descent * left - start, sum(rest, torch.zeros((), dtype=DOUBLE)), start.detach().abs()

    return terms


# The reset itself: E over U


LAWS: dict[str, Atoms] = {  # of one entry of U, before it is scaled: values and probabilities, mean 0
    "signs": SIGNS,
    "as U(-a, a)": ((0.6**0.5, 5 / 18), (0.0, 4 / 9), (-(0.6**0.5), 5 / 18)),  # its moments up to the fifth
    "skew": ((2.0, 1 / 3), (-1.0, 2 / 3)),
    "heavy": ((1.0, 1 / 16), (0.0, 7 / 8), (-1.0, 1 / 16)),
}


@torch.no_grad()
def reset_step(z: torch.Tensor, edge: tuple[int, int, int, int, str, bool], share: float) -> tuple[torch.Tensor, ...]:
    """One iteration of FedMUD.client after a reset (E = 1), in exact expectation over U and the noise.

    The entries of U are independent with one of `LAWS`; eta is `share` of r s^2/(L_s c_U). Returns E||grad h||^2,
    E f(wbar^1) - f(w^0), ||grad f||^2, r s^2, c_U, sigma^2/N, eta.
    """
    N, m, n, r, law, noisy = edge
    d = m * n
    h, b, noise, base = z.split([N * d, N * d, N * d, d])
    h = h.view(N, d) / h.abs().max().clamp(min=1e-9)
    problem = Smooth(h, b.view(N, d), noise=noise.view(N, d) * noisy, layout=layout(((m, n, r),)))
    values, odds = (torch.tensor(v, dtype=DOUBLE) for v in zip(*LAWS[law]))
    s2, fourth = float(odds @ values**2), float(odds @ values**4)
    c = r * (fourth + (m + r - 2) * s2**2)
    lr = share * r * s2 / c
    which = torch.cartesian_prod(*[torch.arange(len(values))] * (m * r)).view(-1, m * r)
    signs = 2.0 * torch.cartesian_prod(*[torch.arange(2)] * N).view(-1, N).to(DOUBLE) - 1
    probability = odds[which].prod(-1).repeat_interleave(len(signs)) / len(signs)  # of the draws of U and the noise
    U, factors = values[which].repeat_interleave(len(signs), 0), signs.repeat(len(which), 1)
    start = torch.cat([U, U.new_zeros(len(U), n * r)], -1)
    D = Factors(problem.layout, (Product(Outer(m, n, r), True),), start[0], torch.zeros(0, dtype=DOUBLE))
    frozen: Any = Frozen(Known(base), Known(D))  # pyright: ignore[reportArgumentType]
    rows = torch.arange(N).repeat_interleave(len(start))
    given = Given(problem, factors.T.reshape(1, -1, 1))
    down = Down(Replay(frozen, None), start.repeat(N, 1))
    _, (up, _) = drain(FedMUD(lr, 1, Full(), None).client(given, rows, None, down, Key(0)))
    w = base + D.update(up.u.view(N, len(start), -1).mean(0))
    change = probability @ problem.values(w).mean(0) - problem.values(base).mean()
    gradient = problem.gradients(base).mean(0)
    squares = probability @ (D.pullback(start, gradient.expand(len(start), -1)) ** 2).sum(-1)
    sigma2 = (problem.noise**2).sum(-1).mean() if problem.noise is not None else torch.zeros((), dtype=DOUBLE)
    return (
        squares,
        change,
        (gradient**2).sum(),
        *(torch.as_tensor(v, dtype=DOUBLE) for v in (r * s2, c, sigma2 / N, lr)),
    )
