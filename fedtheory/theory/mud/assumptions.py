"""FedMUD, Section 4: Assumptions 1 to 4, Theorem 1 and the remarks on it."""

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import torch

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.loop import play_round
from fedtheory.maps.decomposition import LowRank
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.forms import chain
from fedtheory.theory.instances import Smooth, exact
from fedtheory.theory.mud.counterexamples import (
    apart,
    bowl,
    column,
    grown,
    jumped,
    resting,
    scalars,
    stuck,
    to_the_centre,
    together,
    uneven,
)
from fedtheory.theory.mud.method import fedlmt
from fedtheory.theory.mud.quantities import delta2, lows
from fedtheory.theory.mud.round import (
    A1,
    A2,
    A3,
    A4,
    DOUBLE,
    FRESH,
    KEY,
    LOW,
    SIGNS,
    SMALL,
    STEP,
    SURE,
    WHOLE,
    Atoms,
    Pair,
    Terms,
    Window,
    admissible,
    both,
    broken,
    gaps,
    layout,
    mud,
    outcome,
    sq,
    survives,
    worst,
)
from fedtheory.theory.mud.stuck import remark1_printed, theorem_printed
from fedtheory.theory.mud.theorem import REPAIR, one_iteration, repaired_theorem, theorem, too_much
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import maximise


def A1_curvature(effort: str) -> Outcome:
    """(25) for h(U, V) = f(U V), f = w^2/2 with L_s = 1, between (s, 1) and (s, -1); and for other constants of h."""
    q = Window(scalars((1, 1), 0.5, 1, h=column(1)))
    lines = []
    for L in (1.0, 10.0, 1000.0):
        s = 2 * math.sqrt(L) if L > 1 else 4.0
        x1, x2 = torch.tensor([s, 1], dtype=DOUBLE), torch.tensor([s, -1], dtype=DOUBLE)
        f, grad = (lambda x: q.at.problem.values(q.D.update(x))[0]), q.at.problem.gradients(q.D.update(x2))[0]
        right = f(x2) + (x1 - x2) @ q.D.pullback(x2, grad) + L / 2 * ((x1 - x2) ** 2).sum()
        lines.append((L, s, float(f(x1)), float(right)))
    L, s, left, right = lines[0]
    said = f"h(4, 1) = {left:g}, right side of (25) from (4, -1) with the L_s = 1 of f: {right:g}; L_s = "
    said += ", ".join(f"{L:g}: {left:.4g} against {right:.4g} for U = {s:.3g}" for L, s, left, right in lines[1:])
    data = {"f": "w^2/2", "x_1": ["4", "1"], "x_2": ["4", "-1"], "left": exact(left), "right": exact(right)}
    return outcome(all(left <= right for _, _, left, right in lines), "exact", None, said, data)


def A1_ball(scale: float = 1.0) -> Terms:
    """grad h_i between x_i^t and xbar^t with L_h = L_s max(1, kappa_u^2 + kappa_v^2) + sup ||grad f_i||."""

    def terms(q: Window) -> Pair:
        lines = []
        for t in range(q.at.S):
            gap = q.D.pullback(q.ubar[t], q.fbars(t)) - q.D.pullback(q.u[t], q.d[t])
            lines.append(((gap**2).sum(-1), scale * q.Lh**2 * ((q.u[t] - q.ubar[t]) ** 2).sum(-1) + 1e-13))
        return worst(*lines)

    return terms


def A2_pairs(atoms: Atoms) -> Callable[[Window], list[Pair]]:
    """E grad H_i = grad h_i from E grad F_i = grad f_i."""

    def pairs(q: Window) -> list[Pair]:
        mean = sum(p * q.D.pullback(q.u[:-1], q.d + v * q.noise) for v, p in atoms)
        return [(torch.as_tensor(mean), q.D.pullback(q.u[:-1], q.d))]

    return pairs


def A3_inequality(front: float) -> Check:
    """||U_0 + eta sum g_i||^2 <= front (||U_0||^2 + eta^2 tau^2 G^2), ||g_i|| <= G: the printed line with tau + 1 for
    `front`.
    """

    def sides(z: torch.Tensor, tau: int) -> Pair:
        U, eta_g = z[:2], z[2:].view(-1, 2)[:tau]
        G2 = (eta_g**2).sum(-1).max()
        return ((U + eta_g.sum(0)) ** 2).sum(), front * ((U**2).sum() + tau**2 * G2)

    def check(effort: str) -> Outcome:
        found = maximise(sides, 8, KEY.fold("A3"), edges=(1, 2, 3), restarts=2, steps=60)
        said = f"{found.tried} points, worst at tau = {found.edge}"
        return outcome(found.holds, "search", found.ratio, said)

    return check


def A3_window(factor: int) -> Terms:
    """||U_t||^2 (factor 0) or ||V_t||^2 (1) against the bound as printed, t = S."""

    def terms(q: Window) -> Pair:
        X, tau, G2 = q.factors(q.u)[0][factor], q.at.S, q.G2_sure if q.at.problem.noise is None else q.G2
        return sq(X[-1]).max(), (tau + 1) * (sq(X[0]).max() + q.at.lr**2 * tau**2 * G2)

    return terms


def A3_sure(growth: float = 1.0) -> Terms:
    """||U^t|| + ||V^t|| <= (1 + eta G)^{t - t_s} (||U|| + ||V||) at t_s, with G a sure bound: finite for finite S."""

    def terms(q: Window) -> Pair:
        G, lines = q.G2_sure.sqrt(), []
        for low in lows(q):
            total = sq(low.U).sqrt() + sq(low.V).sqrt()
            for t in range(1, q.at.S + 1):
                lines.append((total[t], growth * (1 + q.at.lr * G) ** t * total[0]))
        return worst(*lines)

    return terms


def A4_draw(collapse: bool) -> Check:
    """FedMUD's draw of U (m x r), a = 1, has delta_min > 0, near (sqrt m - sqrt r)/sqrt 3 for large m. collapse: a
    column repeated, so that its entries are not independent.
    """

    def check(effort: str) -> Outcome:
        least, edge = [], 0.0
        for m, n, ratio in ((1, 1, 1.0), (2, 2, 0.5), (4, 4, 1.0), (8, 8, 0.75), (400, 400, 0.5)):
            how = LowRank(ratio, 1.0, layers="all")
            part: Any = how.part(m, n)
            U = how.draw(Layout((Layer("0", n, m),)), KEY.fold("A4", m), DOUBLE).start[: part.of.sizes[0]].view(m, -1)
            if collapse:
                U = torch.cat([U, U[:, :1]], 1)
            least.append(float(torch.linalg.svdvals(U)[-1]))
            edge = least[-1] / ((math.sqrt(m) - math.sqrt(part.of.r)) / math.sqrt(3)) if m > 100 else edge
        said = f"least singular values {', '.join(f'{v:.3g}' for v in least)}; the last over its limit: {edge:.3g}"
        return outcome(min(least) > 1e-9 and 0.9 < edge < 1.1, "run", None, said)

    return check


def A4_trained(effort: str) -> Outcome:
    """f = (w - 2)^2/2, eta = 1/2, U = 2, V = 0: after two iterations U = V = 0."""
    q = Window(scalars((2, 0), 0.5, 2, h=column(1), b=column(2)))
    end = [float(v) for v in q.ubar[2, 0]]
    psi2 = sum(v**2 for v in end)
    data = {"instance": q.at.dump(), "U, V after two iterations": exact(end), "slacks": {"eta <= 1/L_s": 0.5}}
    return outcome(psi2 > 0, "exact", None, f"U = V = {end} after two iterations, so psi_uv = 0", data)


# Remarks


def rate1(limit: float) -> Check:
    """c = 1 + 2 log(2/psi^2)/log T: eta = 1/sqrt T is allowed, and sqrt T times 2/(eta^c T) is `limit`/psi^2."""

    def check(effort: str) -> Outcome:
        worst_, allowed = 0.0, True
        for psi2 in (0.01, 0.5, 1.9):
            for T in (2.0**20, 2.0**40):
                eta, c = T**-0.5, 1 + 2 * math.log(2 / psi2) / math.log(T)
                allowed = allowed and 1 < c < 2 and eta <= (psi2 / 2) ** (1 / (c - 1)) * (1 + 1e-9)
                worst_ = max(worst_, 2 / (eta**c * T) * math.sqrt(T) * psi2 / limit)
        said = f"psi^2 = 0.01, 0.5, 1.9, T = 2^20, 2^40: allowed: {allowed}; sqrt T psi^2 2/(eta^c T) at most "
        return outcome(allowed and worst_ <= 1 + 1e-9, "exact", worst_, f"{said}{limit * worst_:.4g}")

    return check


def gamma_grows(strictly: bool) -> Check:
    """Gamma_u^2 of windows of S = 1, 2, ... iterations: it grows with S until it is kappa_u^2."""

    def check(effort: str) -> Outcome:
        sizes = (1, 2, 4, 8, 16, 24)
        start = {"lr": 1 / 16, "E": 1, "kappa": (9.0, 9.0), "h": column(0), "a": column(1)}
        values = [float(Window(scalars((0.5, 0.5), rounds=S, **start)).gamma(True)[0]) for S in sizes]
        good = all(a < b if strictly else a <= b for a, b in pairwise(values)) and values[0] < values[-1]
        said = f"Gamma_u^2 of windows of S = {', '.join(map(str, sizes))} iterations: {[digits(v) for v in values]}"
        return outcome(good, "exact", None, said)

    return check


RACE = {"lr": 2.0**-6, "T": 256, "a": 1.0}


@cache
def race() -> dict[str, dict[str, float]]:
    """f = ||w - 4 e_1||^2/2, w (8 x 1), W^0 = 0, E = 1: FedMUD with s = 1, 4, never, and FedLMT, with the constants of
    Assumptions 1, 3 and 4 along the run. "average": of the squared gradients, the left side of (10).
    """
    problem, m = (
        Smooth(torch.ones(1, 8, dtype=DOUBLE), 4.0 * torch.eye(1, 8, dtype=DOUBLE), layout=layout([(8, 1, 1)])),
        8,
    )
    lr, how = RACE["lr"], LowRank(1.0, RACE["a"], layers="all")
    kinds = {f"s = {s}": FedMUD(lr, 1, how, s) for s in (1, 4)} | {"s >= R": FedMUD(lr, 1, how, None)}
    out = {}
    for name, algorithm in (kinds | {"FedLMT": FedMUD.of_model(lr, 1, how)}).items():
        state, seen, total = algorithm.init(problem, torch.zeros(m, dtype=DOUBLE), Key(5)), [], []
        for t in range(int(RACE["T"])):
            total.append(float((problem.gradients(state.server.x) ** 2).sum()))
            seen.append(state.server.u)
            state, up, _ = play_round(algorithm, problem, state, problem.clients, Key(5).fold("round", t))
            seen.append(up.u[0])
        U, V = (v[..., None] for v in torch.stack(seen).split([m, 1], -1))
        psi2, top = float((delta2(U) + delta2(V.mT)).min()), math.sqrt(max(total))
        ku, kv = float(sq(U).max()), float(sq(V).max())
        L = max(1.0, ku + kv + top + math.sqrt(ku * kv))  # of h on the set of A3
        out[name] = {
            "average": sum(total) / len(total),
            "psi^2": psi2,
            "eta <= 1/L_s": 1 / L - lr,
            "eta <= (psi^2/2)^2": (psi2 / 2) ** 2 - lr,
        }
    return out


def slower(*names: str) -> Check:
    """Whether the average squared gradient grows along these runs, all of them within Theorem 1's step sizes."""

    def check(effort: str) -> Outcome:
        found = race()
        bad = {name: run for name, run in found.items() if min(run["eta <= 1/L_s"], run["eta <= (psi^2/2)^2"]) < 0}
        if bad:
            raise AssertionError(f"outside Theorem 1's step sizes: {bad}")
        shown = {name: digits(found[name]["average"]) for name in names}
        said = "f = ||w - 4 e_1||^2/2, w 8 x 1, eta = 2^-6, c = 3/2, T = 256: average squared gradient "
        said += ", ".join(f"{name}: {value:g}" for name, value in shown.items())
        slack = {name: digits(min(run["eta <= 1/L_s"], run["eta <= (psi^2/2)^2"])) for name, run in found.items()}
        data = {"average squared gradient": shown, "eta": RACE["lr"], "T": RACE["T"], "a": RACE["a"], "slacks": slack}
        values = [found[name]["average"] for name in names]
        return outcome(all(a <= b for a, b in pairwise(values)), "run", values[0] / values[-1], said, data)

    return check


def claims() -> list[Claim]:
    """Section 4."""
    return [
        mud(
            "A1", "definition", check=A1_curvature,
            control=survives(A1_ball(0.98), "A1 control", "1% below L_h", near=[uneven]),
            broken="the repair with L_h 1% smaller", assumes=(A1,), error="wrong statement",
            repair="On the bounded set of A3, and with a constant of its own: grad h_i is Lipschitz between x_i and "
            "xbar with L_h = L_s max(1, kappa_u^2 + kappa_v^2) + sup ||grad f_i||, attained for linear losses. "
            "Lipschitz, as the proof needs it; (25) bounds curvature from above only.",
            repaired=survives(A1_ball(), "A1", "L_h on the set of A3", near=[uneven, apart]),
            implies="Taken literally the appendix is about nothing: h's curvature along V at (sU, V/s) is s^2 times "
            "f's along U xi^T, so with a bound for all s f lies below its tangent along every rank-one line through W; "
            "if f is bounded below, grad_l f(W) = 0 in every decomposed layer.",
        ),
        mud(
            "A2", "definition",
            reading=FRESH,
            check=gaps("A2", A2_pairs(SIGNS)), control=gaps("A2", A2_pairs(((1.0, 0.5), (0.0, 0.5)))),
            broken="noise with a mean",
        ),
        mud(
            "A3.exact", "inequality",
            check=both(
                broken(grown, A3_window(0), "f = -w, |grad f| = 1 surely, U = 10, V = 0, eta = 1, six steps",
                       admissible),
                broken(jumped, A3_window(1), "E g^2 = 1, g = 64 with probability 2^-12, one step", admissible),
            ),
            control=survives(A3_sure(0.99), "A3", "1% below", near=[together]),
            broken="the repair, 1% less", assumes=(A1, A2), error="wrong step",
            repair=f"With {SURE}: ||U_t|| + ||V_t|| <= (1 + eta G)^(t - t_s) (||U|| + ||V||) at t_s, attained; A3 "
            "holds with constants that grow exponentially in S. The printed line holds where the g_i themselves are "
            "bounded by G, with 2 in place of tau + 1.",
            repaired=both(
                survives(A3_sure(), "A3", "||U|| + ||V|| against (1 + eta G)^tau", LOW, near=[together]),
                A3_inequality(2.0),
            ),
            implies="g_i is grad F V: its bound grows with V, and V with U. A bound on grad F in the mean square, as "
            "in A2, bounds neither surely after a single step.",
        ),
        mud(
            "A4", "definition", check=A4_draw(False), control=A4_draw(True),
            broken="a column of U repeated: entries that are not independent",
            as_printed=A4_trained,
            error="missing assumption",
            caveat="at the draw of U (m x r, r <= m), where that theory speaks; later iterates may lose it",
            implies="And it is not what Lemma 1 needs: that is the least eigenvalue of U U^T or V V^T, zero for r < "
            "min(m, n).",
        ),
        mud(
            "theorem1", "rate",
            check=theorem_printed(stuck, "f = (w_22 - 1)^2/2, U = (1/4, 0), V = 0"),
            control=too_much,
            broken="the repair with the left side times 1.95 (1.93 holds where it is tightest), or its derivation with "
            "the descent times 1.01",
            assumes=(A1, A2, A3, A4, STEP), error="wrong step", repair=REPAIR, repaired=repaired_theorem,
            implies="Between resets FedMUD moves within the span of U and V: a low-rank update that misses the "
            "gradient stays at a point that is not stationary for ever, whatever eta and T. What saves the algorithm "
            "is the random redraw of U, which the theorem does not use; see mud.sharper.reset. Units: eta <= 1 and "
            "eta^c change with the unit of the loss. (Smoothness of h is met on the set of A3; asked for everywhere, "
            "it leaves no decomposed layer anything to learn, see mud.A1.)",
        ),
        mud(
            "remark1", "rate",
            check=remark1_printed,
            control=survives(theorem(1.0, 1.95), "fedavg", "1.95 times the left side", near=[bowl]),
            broken="the repair with the left side times 1.95", assumes=(A1, A2, A3, A4, STEP), error="wrong statement",
            repair="For rho = L and eta <= 1/L_s, c = 1: (1/T) sum E||grad f||^2 <= 2(f(w^0) - f*)/(eta T) + L_s eta "
            "sigma^2/N + 4 L_s^2 L E^2 G^2 eta^2. For FedMUD, given the repaired Theorem 1: c = 1 + 2 "
            "log(2/psi^2)/log T, and 2/(eta^c T) = 4/(psi^2 sqrt T); c -> 1 at a fixed T is not allowed, as "
            "(psi^2/2)^(1/(c-1)) -> 0 for psi^2 < 2.",
            repaired=both(
                survives(theorem(1.0), "fedavg", "rho = L, c = 1", WHOLE, near=[bowl, to_the_centre]), rate1(4.0),
                chain(one_iteration(whole=True), "one iteration, rho = L, c = 1"),
            ),
            implies="For every T the average squared gradient of the counterexample is 1.",
        ),
        mud(
            "remark2", "rate",
            check=slower("s = 1", "s = 4", "s >= R"), control=gamma_grows(True),
            broken="the repair for all S, also where kappa_u is reached", assumes=(A1, A2, A3, A4, STEP),
            error="wrong statement",
            repair="Gamma_u and Gamma_v, and with them the terms of the repaired Theorem 1, do not fall as S grows, "
            "and rise until they are kappa_u, kappa_v. That is a bound, not the algorithm.",
            repaired=gamma_grows(False),
            implies="With a small a the first local steps after a reset see almost nothing of the gradient (a^2/3 of "
            "it), so that s = 1 starts anew each round; longer windows let U and V grow, and their steps with them.",
        ),
        mud(
            "remark3", "rate",
            check=both(
                theorem_printed(resting, "f = |w - I|^2/2, W = 0, U = V = (1, 0)", fedlmt=True),
                slower("s = 1", "FedLMT"),
            ),
            control=fedlmt("V"), broken="V = 0 at the start", assumes=(A1, A2, A3, A4, STEP), error="wrong step",
            repair="With S >= T, W_l = 0 and random factors FedMUD is FedLMT, and the repaired Theorem 1 (any start, "
            "no reset) is about it. It orders no two algorithms.",
            repaired=both(fedlmt(), survives(theorem(1.5), "theorem", "repaired, any start, no reset", SMALL)),
            implies="Theorem 1 fails for FedLMT as it does for FedMUD (Lemma 1): a model of rank r has no stationary "
            "point where the minimiser has a larger rank. And FedLMT can be the faster one, within the theorem's step "
            "sizes.",
        ),
    ]  # fmt: skip
