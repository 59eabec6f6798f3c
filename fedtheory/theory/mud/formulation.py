"""FedMUD, Appendix D.1: the iterates, (15) to (24), and the point at which they rest."""

from collections.abc import Callable

import torch

from fedtheory.maps.decomposition import Full, LowRank
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.instances import Sample, exact
from fedtheory.theory.mud.counterexamples import column, scalars
from fedtheory.theory.mud.quantities import RESET, RESET_TAKEN, Low, after_reset, lows
from fedtheory.theory.mud.round import (
    A1,
    A2,
    DOUBLE,
    KEY,
    NET,
    Pair,
    Window,
    admissible,
    broken,
    gaps,
    mud,
    outcome,
    rounds,
    sq,
)
from fedtheory.theory.rounding import level
from fedtheory.theory.search import maximise


def eq15(mean: bool, averaged: bool = True) -> Check:
    """(15) at t = E = 2 against FedMUD, clients f_1 = w, f_2 = -w. mean: from xbar^{t-1} in place of x_i^{t-1};
    averaged: along the average of the gradients, as printed, or along the client's own.
    """

    def check(effort: str) -> Outcome:
        q = Window(scalars((0,), 0.25, 2, h=column(0, 0), a=column(1, -1)))
        before, h = q.u[q.at.E - 1, :, 0], q.h[q.at.E - 1, :, 0]  # x_i^{t-1}, grad H_i
        start = before.mean(0) if mean else before
        after = (start - q.at.lr * (h.mean(0) if averaged else h)).expand(2, 1)
        gap = float((after - q.u[q.at.E, :, 0]).abs().max())
        data = {"instance": q.at.dump(), "x_1, x_2 by (15)": exact(after[:, 0]), "average": exact(q.ubar[2, 0])}
        said = f"E = 2, f_1 = w, f_2 = -w: clients at {after[:, 0].tolist()}, their average {float(q.ubar[2, 0])}"
        return outcome(gap == 0, "exact", gap, said, data)

    return check


def eq16(random: bool) -> Check:
    """x before and after the reset; V = 0, U drawn anew, by a key of its own. random: V is drawn too."""

    def check(effort: str) -> Outcome:
        how, gap, resets, fresh = LowRank(0.5, 0.5, layers="all", random=random), 0.0, 0, True
        for before, up, after in rounds(how, 2, 4):
            D, now = before.frozen.D.value, after.frozen.D.value
            gap = max(gap, float((before.frozen.base + D.update(up.u.mean(0)) - after.x).abs().max()))
            gap = max(gap, float((after.frozen.base + now.update(after.u) - after.x).abs().max()))
            if after.t % 2 == 0:
                resets += 1
                pieces = after.u.split([part.size for part in now.parts])
                gap = max(gap, *(float(p[part.of.sizes[0] :].abs().max()) for p, part in zip(pieces, now.parts)))
                again = how.draw(NET, after.frozen.D.key, DOUBLE)  # what a client makes of the key
                fresh = fresh and torch.equal(again.start, after.u) and not torch.equal(D.start, after.u)
        gap, shown = level(gap, 1e-12)
        said = f"4 rounds, {resets} resets: the recovered model changes and V differs from 0 by at most {shown}; U is "
        said += f"what the key that was sent draws, and new: {fresh}"
        return outcome(gap < 1e-12 and fresh and resets == 2, "exact", gap, said)

    return check


def eq17(*weights: float) -> Check:
    """The averages of the factors, and of the matrices where nothing is decomposed, by these weights."""

    def check(effort: str) -> Outcome:
        p = torch.tensor(weights, dtype=DOUBLE)
        runs = rounds(LowRank(0.5, 0.5, layers="all"), None, 3), rounds(Full(), None, 3)
        gap, shown = level(max(float((p @ up.u - after.u).abs().max()) for run in runs for _, up, after in run), 1e-12)
        said = f"3 rounds: largest gap {shown} between FedMUD.server's factors (and whole matrices) and the clients' "
        return outcome(gap < 1e-12, "exact", gap, f"{said}average, weights {', '.join(f'{w:.3g}' for w in weights)}")

    return check


def eq18(product: bool) -> Check:
    """product: W + Ubar Vbar^T; otherwise the average of the W + U_i V_i^T."""

    def check(effort: str) -> Outcome:
        gap = 0.0
        for before, up, after in rounds(LowRank(0.5, 0.5, layers="all"), None, 3):
            D, base = before.frozen.D.value, before.frozen.base
            wbar = base + (D.update(up.u.mean(0)) if product else D.update(up.u).mean(0))
            gap = max(gap, float((wbar - after.x).abs().max()))
        gap, shown = level(gap, 1e-12)
        said = f"3 rounds: largest gap {shown} to FedMUD.server's model"
        return outcome(gap < 1e-12, "exact", gap, said)

    return check


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


def stationary(effort: str) -> Outcome:
    """rho = L = 1, E = 2, f_1 = w^2/2, f_2 = (w - 1)^2/4, eta = 1: FedMUD rests at 3/7, where grad f = 1/14."""
    at = lambda w: scalars((w,), 1.0, 2, h=column(1, 0.5), b=column(0, 1))
    w = 0.0
    for _ in range(60):
        w = float(Window(at(w)).ubar[-1, 0, 0])
    q = Window(at(w))
    gradient, moved = float(q.fbar(0)[0, 0]), float((q.ubar[-1] - q.ubar[0]).abs().max())
    said = f"60 rounds from 0: at rest at {w:.6g} = 3/7 (a round moves it by less than 1e-15: {moved < 1e-15}) with "
    said += f"grad f = {gradient:.4g} = 1/14"
    data = {"instance": at(3 / 7).dump(), "w": "3/7", "grad f": "1/14", "slacks": admissible(q)}
    return outcome(moved > 1e-15 or abs(gradient) < 1e-9, "exact", gradient, said, data)


def at_rest(scale: float = 1.0) -> Check:
    """Without decomposed layers and noise: |grad f| <= (E - 1)/2 eta L_s max |grad f_i| wherever FedMUD rests.

    Scalar quadratics; the last client's centre is the one that makes 0 a point of rest.
    """

    def sides(z: torch.Tensor, edge: tuple[int, int, float]) -> Pair:
        N, E, lr = edge
        h = torch.cat([torch.tanh(z[: N - 1]), torch.ones(1, dtype=DOUBLE)])
        pull = 1 - (1 - lr * h) ** E
        b = torch.cat([z[N - 1 :], -(z[N - 1 :] @ pull[: N - 1] / pull[N - 1 :])])
        q = Window(scalars((0,), lr, E, h=h[:, None], b=b[:, None]))
        if float((q.ubar[-1] - q.ubar[0]).detach().abs().max()) > 1e-9 * float(1 + b.detach().abs().max()):
            raise AssertionError("it moves")
        return q.fbar(0).abs().sum(), scale * (E - 1) / 2 * lr * q.Ls * q.d.abs().max() + 1e-13

    def check(effort: str) -> Outcome:
        edges = [(2, 2, 2.0**-10), (2, 8, 2.0**-10), (3, 2, 0.5), (3, 4, 0.1), (2, 1, 0.5)]
        starts = [torch.tensor([-3.0, 1.0], dtype=DOUBLE)]
        steps = 15 if effort == "quick" else 200
        found = maximise(sides, lambda e: 2 * (e[0] - 1), KEY.fold("rest"), edges=edges, restarts=2, steps=steps,
                         starts=starts)  # fmt: skip
        said = f"{found.tried} points of rest through FedMUD.client, N, E, eta L_s = {found.edge} the worst"
        return outcome(
            found.holds, "search", found.ratio, said, {"N, E, eta": str(found.edge), "z": exact(found.point)}
        )

    return check


def claims() -> list[Claim]:
    """D.1."""
    return [
        mud(
            "eq15", "algorithm", check=eq15(False), control=eq15(True, averaged=False),
            broken="the repair with the client's own gradient", error="misprint",
            repair="xbar^{t-1} in place of x_i^{t-1} in the first line.", repaired=eq15(True),
            implies="As printed clients never agree again after their first local steps; (33), (36), (40), (42) use "
            "the repaired line, and so does FedMUD.",
        ),
        mud(
            "eq16", "algorithm",
            check=eq16(False), control=eq16(True), broken="V drawn at random too",
        ),
        mud(
            "eq17", "definition",
            check=eq17(1 / 3, 1 / 3, 1 / 3), control=eq17(0.334, 0.333, 0.333), broken="weights 0.334, 0.333, 0.333",
        ),
        mud(
            "eq18", "definition",
            check=eq18(True), control=eq18(False), broken="the average of the clients' w",
        ),
        mud(
            "eq19", "identity",
            check=gaps("19", eq19(False)), control=gaps("19", eq19(False, own=False)),
            broken="gradients at xbar^{t-1} for all clients",
            as_printed=gaps("19", eq19(True)), met=RESET_TAKEN, caveat=RESET,
        ),
        mud(
            "FH", "identity", check=gaps("FH", FH(False)), control=gaps("FH", FH(True)),
            broken="wbar read as the average of the w_i",
        ),
        mud(
            "eq20", "identity",
            check=gaps("20", eq20()), control=gaps("20", eq20(0.0)), broken="the frozen W left out of w",
        ),
        mud(
            "eq21", "identity",
            check=gaps("21", eq21(True)), control=gaps("21", eq21(False)),
            broken="the average of the grad f_il(w_i) for grad f_l(wbar)",
        ),
        mud(
            "eq22", "identity", check=broken(
                lambda: scalars((1, 0), 0.5, 1, h=column(0), a=column(1)), eq22_sides,
                "f = w, U = 1, V = 0, eta = 1/2, the right side as printed against the left", admissible),
            control=gaps("22", eq22(1)), broken="the repair with V^t, one index as printed", error="index",
            repair="U^{t-1}, V^{t-1} in place of U^t, V^t.", repaired=gaps("22", eq22(0)),
            implies="None: (37) uses the repaired form.",
        ),
        mud(
            "eq23-24", "identity",
            check=gaps("24", eq24(True)), control=gaps("24", eq24(False)),
            broken="the first layer left out",
        ),
        mud(
            "stationary", "rate",
            check=stationary, control=at_rest(0.98), broken="the repair, 2% less", assumes=(A1, A2),
            error="wrong statement",
            repair="Where FedMUD without decomposed layers and noise rests, ||grad f|| <= (E - 1)/2 eta L_s max ||grad "
            "f_i(w_i)||, attained to the first order in eta: stationary for E = 1 or eta -> 0 only. In general the "
            "repaired Theorem 1 bounds an average of squared gradients; it says nothing of convergence.",
            repaired=at_rest(),
            implies="With a constant step FedMUD comes to rest where grad f is not 0, without any decomposed layer and "
            "without noise. What the proof of App. D shows, where it can be repaired, is a bound on an average.",
        ),
    ]  # fmt: skip
