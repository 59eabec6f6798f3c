"""FedMUD, Section 4 and Appendix D: counterexamples, and checks that are no search over windows."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import torch

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.simulate import play_round
from fedtheory.maps.decomposition import Decomposition, LowRank
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedmud import proof
from fedtheory.theory.fedmud.proof import delta2
from fedtheory.theory.fedmud.round import (
    A1,
    A2,
    A3,
    DOUBLE,
    KEY,
    SIGNS,
    Atoms,
    Edge,
    Instance,
    Pair,
    Terms,
    Window,
    admissible,
    edges,
    layout,
    rare,
    sq,
    survives,
    with_units,
    worst,
)
from fedtheory.theory.instances import Smooth, exact
from fedtheory.theory.search import maximise, number, reals, same
from fedtheory.theory.shown import digits, level

BOTH = (A1, A2, A3)
SECOND = "G and Gamma bound second moments only"
WHOLE = [
    Edge(1, 1, 1, ((2, 1, 0),)),
    Edge(2, 2, 1, ((1, 1, 0),)),
    Edge(2, 2, 1, ((1, 1, 0),), share=0.1),
    Edge(4, 4, 1, ((1, 1, 0), (1, 1, 0)), noisy=False, shape="cosine"),
]
SMALL = [
    Edge(1, 1, 1, ((1, 1, 1),), share=0.02),
    Edge(2, 2, 1, ((2, 2, 2),), share=0.01),
    Edge(2, 2, 1, ((1, 1, 0), (1, 1, 1)), share=0.02),
    Edge(2, 2, 2, ((1, 1, 1),), mud=True, share=0.05),
    Edge(4, 3, 1, ((1, 2, 1),), noisy=False, share=0.02),
]
LOW = [edge for edge in edges() if all(r for _, _, r in edge.layers)]


# Counterexamples


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=DOUBLE)[:, None]


def scalars(start: tuple[float, ...], lr: float, E: int, rounds: int = 1, atoms: Atoms = SIGNS, **problem: Any):
    """One decomposed layer of one entry, or, with one number to start from, one that is not decomposed."""
    kappa = problem.pop("kappa", (0.0, 0.0))
    layers = ((1, 1, int(len(start) == 2)),)
    given: dict[str, Any] = {"b": torch.zeros_like(problem["h"])} | problem
    return Instance(
        Smooth(given.pop("h"), given.pop("b"), layout=layout(layers), **given), layers,
        torch.tensor(start, dtype=DOUBLE), torch.zeros(1, dtype=DOUBLE), lr, E, rounds, atoms, kappa,
    )  # fmt: skip


def stuck(lr: float = 2.0**-20, tilt: float = 0.0, U: float = 0.25) -> Instance:
    """f(w) = (w_22 - 1)^2/2, U = (U, tilt), V = 0: where tilt = 0 the gradient E_22 is invisible and nothing moves."""
    h = torch.tensor([[0.0, 0, 0, 1]], dtype=DOUBLE)
    start = torch.tensor([U, tilt, 0, 0], dtype=DOUBLE)
    layers = ((2, 2, 1),)
    problem = Smooth(h, h, layout=layout(layers))
    return Instance(problem, layers, start, torch.zeros(4, dtype=DOUBLE), lr, 1, kappa=(1.0, 1.0))


def burst() -> Instance:
    """Two clients with linear losses: eta g = 128 with probability 2^-50, else 0; U = V = 1 at the start."""
    p = 2.0**-50
    return scalars(
        (1, 1), 0.5, 2, atoms=rare(p), h=column(0, 0), a=column(256 * p, 256 * p), noise=column(256, 256)
    )  # fmt: skip


def once() -> Instance:
    """One client, one step, linear loss: eta g = 2 with probability 2^-10, else 0; U = V = 1."""
    p = 2.0**-10
    return scalars((1, 1), 0.5, 1, atoms=rare(p), kappa=(100, 100), h=column(0), a=column(4 * p), noise=column(4))


def flutter(S: int = 512, eta: float = 2.0**-20) -> Instance:
    """One client after a reset, U = 1, V = 0, G = 1, kappa_u^2 = 100: V jumps to -8/eta with probability eta^4/64 in
    each of S iterations; from then on g = sign(w), and U goes from 1 to -7 and back in every iteration. The jump also
    takes a layer that is not decomposed from 0 to -1, where the noise stops.
    """
    u, p = 8 / eta**2, eta**4 / 64
    row = lambda *values: torch.tensor([values], dtype=DOUBLE)
    layers = ((1, 1, 0), (1, 1, 1))
    problem = Smooth(
        row(p / eta, 1), row(-1, 0), shape="huber", a=row(0, p * u), noise=row(1 / eta, u), gate=row(1, 0),
        layout=layout(layers),
    )  # fmt: skip
    draws = 1 - torch.eye(S + 1, dtype=torch.long)[:S, None]  # no jump, or one at one of the iterations
    start = torch.tensor([0, 1, 0], dtype=DOUBLE)
    return Instance(problem, layers, start, torch.zeros(2, dtype=DOUBLE), eta, S, 1, rare(p), (100, 0), draws)


def carried() -> Instance:
    """Two clients, two rounds after a reset: V of client 1 jumps to -2 with probability 2^-40; f_2 = 0."""
    p = 2.0**-40
    return scalars(
        (1, 0), 0.5, 2, 2, atoms=rare(p), kappa=(100, 0), h=column(2 * p, 0), b=column(-2, 0), noise=column(4, 0),
        gate=column(0.5, 0),
    )  # fmt: skip


def drifting() -> Instance:
    """64 clients with linear losses, the first one against the others, 64 steps so small that U = V = 1 stays: what
    the clients drift apart is all that the triangle inequality allows.
    """
    return scalars((1, 1), 2.0**-20, 64, h=column(*[0] * 64), a=column(1, *[-1] * 63))


def drifting_whole() -> Instance:
    """`drifting` for a layer that is not decomposed."""
    return scalars((0,), 2.0**-20, 64, h=column(*[0] * 64), a=column(1, *[-1] * 63))


def together() -> Instance:
    """One client with f = -w, U = V = 1, 64 small steps: all gradients add up."""
    return scalars((1, 1), 2.0**-20, 64, h=column(0), a=column(-1))


def one_step() -> Instance:
    """`together`, one step."""
    return scalars((1, 1), 2.0**-20, 1, h=column(0), a=column(-1))


def steady() -> Instance:
    """f = -w, U = eta S G kappa_v at the start, V = 1: U doubles in S = 8 steps."""
    return scalars((2.0**-17, 1), 2.0**-20, 8, kappa=(1, 0), h=column(0), a=column(-1))


def apart() -> Instance:
    """f_1 = w, f_2 = -w, U = V = 1, 64 small steps."""
    return scalars((1, 1), 2.0**-20, 64, h=column(0, 0), a=column(1, -1))


def bowl_and_dome() -> Instance:
    """f_1 = w + w^2/2, f_2 = -w - w^2/2, not decomposed: the clients drift apart, their gradients change alike."""
    return scalars((0,), 2.0**-20, 64, h=column(1, -1), b=column(-1, -1))


def noise() -> Instance:
    """Two clients with nothing but noise, a layer that is not decomposed."""
    return scalars((0,), 0.5, 1, h=column(0, 0), noise=column(1, 1))


def bowl() -> Instance:
    """f = (w - 1)^2/16, not decomposed, one step with eta = 1 = 1/(8 L_s)."""
    return scalars((0,), 1.0, 1, h=column(1 / 8), b=column(1))


def to_the_centre() -> Instance:
    """f = w^2/2, not decomposed, one step with eta = 1/L_s, to the minimum."""
    return scalars((1,), 1.0, 1, h=column(1))


def same_noise() -> Instance:
    """`noise`, the same sign for both clients."""
    both = torch.tensor([[[0, 1], [0, 1]]])
    return replace(noise(), draws=both, odds=torch.full((2,), 0.5, dtype=DOUBLE))


def grown() -> Instance:
    """f = -w, U = 10, V = 0, eta = 1, six steps: U is 320."""
    return scalars((10, 0), 1.0, 6, h=column(0), a=column(-1))


def jumped() -> Instance:
    """f = w/64, the gradient 64 with probability 2^-12, else 0: E g^2 = 1; U = 1, V = 0, eta = 1, one step."""
    p = 2.0**-12
    return scalars((1, 0), 1.0, 1, atoms=rare(p), h=column(0), a=column(64 * p), noise=column(64))


def resting() -> Instance:
    """FedLMT (W = 0, no reset) on f = |w - I|^2/2 with U = V = (1, 0): grad f = -E_22 is invisible."""
    eye = torch.eye(2, dtype=DOUBLE).reshape(1, 4)
    problem = Smooth(torch.ones(1, 4, dtype=DOUBLE), eye, layout=layout(((2, 2, 1),)))
    start = torch.tensor([1, 0, 1, 0], dtype=DOUBLE)
    return Instance(problem, ((2, 2, 1),), start, 0 * eye[0], 2.0**-20, 1)


def rare_drift() -> Instance:
    """Two clients: in the decomposed layer eta g = 256 with probability 2^-60, else 0; the gradient of the other layer
    sees it through a curvature 2^-60 along (1, 1).
    """
    p, L = 2.0**-60, 2.0**-60
    row = lambda *values: torch.tensor([values] * 2, dtype=DOUBLE)
    layers = ((1, 1, 0), (1, 1, 1))
    turn = torch.tensor([[1, 1], [1, -1]], dtype=DOUBLE) / math.sqrt(2)
    problem = Smooth(
        row(L, 0), row(0, 1), a=row(0, 512 * p), noise=row(0, 512), q=turn, layout=layout(layers)
    )  # fmt: skip
    start = torch.tensor([0, 1, 1], dtype=DOUBLE)
    return Instance(problem, layers, start, torch.zeros(2, dtype=DOUBLE), 0.5, 2, 1, rare(p))


def uneven() -> Instance:
    """f_1 = w, f_2 = w/8, U = 1, V = 0."""
    return scalars((1, 0), 0.5, 2, kappa=(100, 100), h=column(0, 0), a=column(1, 1 / 8))


def bent() -> Instance:
    """f_1 = w + w^2, f_2 = -w^2/2, U = 1, V = 0: a step of 1/2 takes the clients to -1/2 and 0, where g_i V_i = 0."""
    return scalars((1, 0), 0.5, 2, h=column(2, -1), a=column(1, 0))


def seen2(q: Window) -> torch.Tensor:
    """psi_uv^2 of Assumption 4: the least delta_min(Ubar)^2 + delta_min(Vbar)^2 of the window."""
    return torch.stack([(delta2(U) + delta2(V)).min() for U, V in q.factors(q.ubar)]).min()


def smooth4(q: Window) -> float:
    """A constant L_s for f and, on all that A3 admits, for h: curvature L (kappa_u^2 + kappa_v^2) + sup ||grad f||,
    f a quadratic with centre b.
    """
    ku, kv = (float(v) for v in q.kappa)
    L, far = float(q.Ls), float((q.at.base - q.at.problem.b).norm(dim=-1).max())
    return max(L, L * (ku + kv) + L * (far + math.sqrt(ku * kv)))


def slacks_A4(q: Window) -> dict[str, float]:
    """Slacks of all four assumptions, c = 3/2, with `smooth4` and `seen2`."""
    psi2, L = float(seen2(q)), smooth4(q)
    return admissible(q) | {
        "A4": psi2 if psi2 > 0 else -1.0,
        "eta <= 1/L_s": 1 / L - q.at.lr,
        "eta <= (psi^2/2)^2, c = 3/2": (psi2 / 2) ** 2 - q.at.lr,
    }


def tilted() -> Instance:
    """`stuck` with U = (1, 1/8): the gradient is seen by an eighth."""
    return stuck(2.0**-10, 1 / 8, 1.0)


def slacks_tilted(q: Window) -> dict[str, float]:
    """psi^2 = |U|^2 = 65/64."""
    return {"A4, psi^2 = 65/64": float(seen2(q)) - 65 / 64} | admissible(q)


def stuck_terms(q: Window) -> tuple[torch.Tensor, ...]:
    """psi^2, ||grad f||^2, the change of f, and C of (66) in parts, all with `smooth4` and Gamma = kappa, the largest
    that any S gives.
    """
    (eta, E, G2, *_), (gu, gv), L = proof.constants(q, True), q.kappa, smooth4(q)
    C = proof.residual(1, 0, E, 1, eta, L, G2, 0.0, gu, gv)
    from6 = C - 1.5 * L * eta**2 * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv)
    from63 = 2 * L**2 * eta**3 * E**2 * G2 * (gu + gv) + eta**2 * G2**2 * gu * gv / 2
    return seen2(q), sq(q.matrices(q.fbar(0))[0])[0], q.f(1) - q.f(0), C, from6, from63


def printed(part: int) -> Terms:
    """Lemma 6 (part 4), (63) (5) and (66) (3) at `stuck`: the descent that they promise against their other terms."""

    def terms(q: Window) -> Pair:
        psi2, f2, change, *parts = stuck_terms(q)
        eta = q.at.lr
        left = change + eta * psi2 / 2 * f2
        return left, eta**2 / 2 * f2 + parts[part - 3]

    return terms


def printed68(c: float) -> Terms:
    def terms(q: Window) -> Pair:
        _, f2, change, C, *_ = stuck_terms(q)
        return change + q.at.lr**c / 2 * f2, C

    return terms


def theorem_printed(make: Callable[[], Instance], what: str, fedlmt: bool = False, T: float = 2.0**40) -> Check:
    """(10), (64) with the terms of (71) and c = 3/2 where the iterates never move; no reset: S >= T."""

    def check(effort: str) -> Outcome:
        q = Window(make())
        slack = slacks_A4(q)
        if min(slack.values()) < -1e-12 or not torch.equal(q.u[0], q.u[1]):
            raise AssertionError(f"not admissible or not at rest: {slack}")
        _, f2, _, C, *_ = stuck_terms(q)
        right = float(2 / (q.at.lr**1.5 * T) * q.f(0) + 2 * C / q.at.lr**1.5)
        floor = min(eckart_young(seed, fedlmt) for seed in range(3))
        said = f"{what}, eta = 2^-20, T = 2^40, no reset: average squared gradient {float(f2):g}, bound {right:.3g}. "
        said += "And whatever is drawn: f = |w - I|^2/2, r = 1 keeps |grad f|^2 >= 1 "
        said += f"(Eckart and Young; least of 3 draws, 200 iterations: {floor:.4g})"
        data = {"instance": q.at.dump(), "T": "2^40", "c": "3/2", "left": digits(float(f2)), "right": digits(right)}
        holds = float(f2) <= right and floor < 1 - 1e-9
        return Outcome(holds, "exact", float(f2) / right, said, None if holds else data | {"slacks": slack})

    return check


def eckart_young(seed: int, fedlmt: bool = False) -> float:
    """Least ||grad f(w)||^2 of FedMUD (V = 0 at the start) or FedLMT, r = 1, on f = |w - I|^2/2 over 200 iterations."""
    U, V = torch.rand(2, 2, generator=KEY.fold("U", seed).generator(), dtype=DOUBLE) - 0.5
    q = Window(replace(resting(), start=torch.cat([U, V if fedlmt else 0 * V]), lr=0.1, E=200))
    return min(float((q.fbar(t) ** 2).sum()) for t in range(200))


# Single checks


def outcome(holds: bool, evidence: str, margin: float | None, said: str, data: dict[str, Any] | None = None) -> Outcome:
    return Outcome(holds, evidence, margin, said, None if holds else (data or {"found": said}))


def both(*checks: Check) -> Check:
    """All of them, with the first one's margin; where some fail, the first of these, and what the others found."""

    def check(effort: str) -> Outcome:
        found = [one(effort) for one in checks]
        some = [one for one in found if not one.holds] or found
        return replace(some[0], detail="; ".join(one.detail for one in some))

    return check


def each_needed(*checks: Check) -> Check:
    """The statement without one of its hypotheses at a time: refuted only where it fails without each of them."""

    def check(effort: str) -> Outcome:
        found = [one(effort) for one in checks]
        first = next((one for one in found if one.holds), found[0])
        merged = {str(number): one.counterexample for number, one in enumerate(found, 1)} if not first.holds else None
        return replace(first, detail="; ".join(one.detail for one in found), counterexample=merged)

    return check


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
        for low in proof.lows(q):
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


NET = Layout((Layer("0", 3, 4), Layer("1", 2, 3)))


def linear_problem() -> Smooth:
    g = KEY.fold("net").generator()
    h, b = torch.rand(3, NET.size, generator=g, dtype=DOUBLE), torch.randn(3, NET.size, generator=g, dtype=DOUBLE)
    return Smooth(h, b, layout=NET)


def rounds(how: Decomposition, s: int | None, count: int):
    """States of FedMUD on three clients with two decomposed layers."""
    problem, algorithm = linear_problem(), FedMUD(0.3, 2, how, s)
    state = algorithm.init(problem, torch.ones(NET.size, dtype=DOUBLE), Key(3))
    for t in range(count):
        after, up, _ = play_round(algorithm, problem, state, torch.arange(3), Key(3).fold("round", t))
        yield state.server, up, after.server
        state = after


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


def eq17(weighted: bool) -> Check:
    def check(effort: str) -> Outcome:
        p = torch.tensor([0.5, 0.25, 0.25] if weighted else [1 / 3] * 3, dtype=DOUBLE)
        gap = max(
            float((p @ up.u - after.u).abs().max()) for _, up, after in rounds(LowRank(0.5, 0.5, layers="all"), None, 3)
        )
        gap, shown = level(gap, 1e-12)
        said = f"3 rounds: largest gap {shown} between FedMUD.server's factors and the clients' average"
        return outcome(gap < 1e-12, "exact", gap, said)

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


def printed2(q: Window) -> Pair:
    """Lemma 2 for V at t_s with epsilon_v^2 bounding ||U||^2, as (27) prints it."""
    U, V = q.factors(q.at.start)[0]
    gv = torch.minimum(2 * sq(U) + 2 * q.at.lr**2 * q.at.S**2 * q.G2 * q.kappa[0], q.kappa[1])
    return sq(V), gv


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


def eq70(twelve: int, multiply: bool = False) -> Check:
    """C of (66) expanded against (70), or 2C/eta^c against (71)."""

    def check(effort: str) -> Outcome:
        import sympy

        names = "L rho E N eta L_s G2 sigma2 gu gv c"
        L, rho, E, N, eta, Ls, G2, s2, gu, gv, c = sympy.symbols(names, positive=True)
        C = sympy.nsimplify(proof.residual(L, rho, E, N, eta, Ls, G2, s2, gu, gv, twelve))
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


def order71(absolute: bool) -> Check:
    """2C/eta^c over eta^{2-c} (1 + low (Gu^4 + Gv^4)) as eta -> 0; absolute: as low grows, Gamma^4 = 1/low."""

    def check(effort: str) -> Outcome:
        ratios = []
        for k in range(1, 9):
            eta, low, g = (2.0**-k, 1, 0.5) if not absolute else (0.5, 4.0**k, 2.0**-k)
            C = float(proof.residual(int(low), 0, 4, 1, eta, 1.0, 1.0, 1.0, g, g))
            ratios.append(2 * C / eta**2 / (1 + low * 2 * g**2))
        growth = ratios[-1] / ratios[-2]
        said = f"over eta^(2-c) [1 + (L - rho)(Gu^4 + Gv^4)]: {ratios[0]:.3g} to {ratios[-1]:.3g}"
        return outcome(
            growth < 1.05, "exact", growth, said, {"L - rho = 4^k, Gamma^4 = 4^-k": [digits(v) for v in ratios]}
        )

    return check


def remark1_printed(effort: str) -> Outcome:
    """`stuck` with eta = 1/sqrt T: sqrt T times the average squared gradient has no bound."""
    windows = {T: Window(stuck(2.0 ** -(T // 2))) for T in (20, 30, 40)}
    if not all(torch.equal(q.u[0], q.u[-1]) for q in windows.values()):
        raise AssertionError("the iterates move")
    average = [float((q.fbar(0) ** 2).sum()) for q in windows.values()]
    scaled = [2.0 ** (T // 2) * value for T, value in zip(windows, average)]
    said = f"eta = 1/sqrt T, T = 2^20, 2^30, 2^40: average squared gradients {average}, times sqrt T "
    said += ", ".join(f"{value:g}" for value in scaled)
    data = {"instance": stuck().dump(), "T": ["2^20", "2^30", "2^40"], "average": [exact(v) for v in average]}
    return outcome(scaled[-1] <= 1.05 * scaled[0], "exact", scaled[-1] / scaled[0], said, data)


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
        data = {"average squared gradient": shown, "eta, T, a": str(RACE), "slacks": slack}
        values = [found[name]["average"] for name in names]
        return outcome(all(a <= b for a, b in pairwise(values)), "run", values[0] / values[-1], said, data)

    return check


def fedlmt(broken: str = "") -> Check:
    """FedMUD with W^0 = 0, s >= R and random factors against SGD on the factors, written out. broken: "V": V = 0 at
    the start; "W": W^0 = 1 is kept.
    """

    def check(effort: str) -> Outcome:
        problem, how = linear_problem(), LowRank(0.5, 0.5, layers="all")
        lr, random = 0.1, replace(how, random=True)
        algorithm = {
            "": FedMUD.of_model(lr, 2, how), "V": FedMUD(lr, 2, how, None), "W": FedMUD(lr, 2, random, None)
        }[broken]  # fmt: skip
        start = torch.ones if broken == "W" else torch.zeros
        state = algorithm.init(problem, start(NET.size, dtype=DOUBLE), Key(7))
        drawn = random.draw(NET, Key(7).fold("D"), DOUBLE)
        pairs = []
        for piece, part, layer in zip(drawn.start.split([p.size for p in drawn.parts]), drawn.parts, NET.layers):
            U, V = piece.split(part.of.sizes)  # pyright: ignore[reportAttributeAccessIssue]
            pairs.append((U.view(layer.cols, -1), V.view(layer.rows, -1)))
        clients = [list(pairs) for _ in problem.clients]
        for t in range(4):
            for own in clients:
                own[:] = pairs
            for _ in range(2):
                for i, own in enumerate(clients):
                    w = torch.cat([(U @ V.T).flatten() for U, V in own])
                    g = NET.columns(problem.gradients(w)[i])
                    own[:] = [(U - lr * G @ V, V - lr * G.T @ U) for (U, V), G in zip(own, g)]
            pairs = [tuple(torch.stack(factor).mean(0) for factor in zip(*layer)) for layer in zip(*clients)]
            state, *_ = play_round(algorithm, problem, state, problem.clients, Key(7).fold("round", t))
        model = torch.cat([(U @ V.T).flatten() for U, V in pairs])
        gap, shown = level(float((state.server.x - model).abs().max()), 1e-12)
        data = {"broken": broken or "nothing", "largest gap": digits(gap)}
        return outcome(gap < 1e-12, "exact", gap, f"4 rounds of 3 clients, 2 local steps: largest gap {shown}", data)

    return check


def redrawn(share: float = 1.0) -> Check:
    """The repaired statements at a reset: E||grad h||^2 = r s^2 ||grad f||^2, and the descent of one iteration with eta
    = `share` of what is allowed, for every law of U in `proof.LAWS`.
    """

    def check(effort: str) -> Outcome:
        shapes = [(1, 1, 1, 1), (2, 2, 1, 1), (1, 3, 1, 1), (2, 2, 1, 2), (1, 3, 1, 2)]
        edges = [(*shape, law, noisy) for shape in shapes for law in proof.LAWS for noisy in (True, False)]
        gap = 0.0

        def sides(z: torch.Tensor, edge: tuple[int, int, int, int, str, bool]) -> tuple[torch.Tensor, ...]:
            nonlocal gap
            h2, change, f2, rs2, c, noise, eta = proof.reset_step(z, edge, share)
            gap = max(gap, float((h2 - rs2 * f2).abs() / (rs2 * f2)))
            return change + eta * rs2 * f2, eta * rs2 / 2 * f2 + eta**2 * c / 2 * noise

        size = lambda e: 3 * e[0] * e[1] * e[2] + e[1] * e[2]
        alike = [torch.cat([torch.ones(k), torch.full((k,), 2.0), torch.zeros(size(s) - 2 * k)]).to(DOUBLE)
                 for s in shapes for k in (s[0] * s[1] * s[2],)]  # fmt: skip
        restarts, steps = (1, 6) if effort == "quick" else (2, 30)
        found = maximise(sides, size, KEY.fold("reset"), edges=edges, restarts=restarts, steps=steps,
                         starts=alike, enough=1 + 1e-6)  # fmt: skip
        said = f"E||grad h_l||^2 = r s^2 ||grad f_l||^2: largest gap {level(gap, 1e-9)[1]}; descent: {found.tried} "
        said += f"instances through FedMUD.client, {len(proof.LAWS)} laws of the entries of U, all draws; worst at "
        said += str(found.edge)
        return outcome(found.holds and gap < 1e-9, "search", found.ratio, said)

    return check


REDRAWN = (
    "In the mean over a redrawn U with independent entries of mean 0 and variance s^2 (a^2/3 for U(-a, a)) and V = 0: "
    "E||grad h_l||^2 = r s^2 ||grad f_l||^2, for every r"
)
REPAIR = (
    "With ||grad F_il|| <= G surely, samples drawn anew and independent across clients, psi^2 ||grad f_l||^2 <= "
    "||grad h_l||^2 along the run (A4 gives that only with the least eigenvalues of U U^T and V V^T, hence r >= "
    "min(m, n)) and L_s the larger of the Lipschitz constants of grad f and, on the set of A3, grad h: (64) with the "
    "terms of (71) plus 4 rho L_s^2 E^2 G^2 eta^(3-c). In consistent units, with L_s of f alone, L_h of h, all L "
    "layers decomposed and any eta: (1/T) sum E||grad f||^2 <= 4(f(w^0) - f*)/(eta psi^2 T) + 8 L L_h^2 eta^2 E^2 G^2 "
    "(Gu^2 + Gv^2)/psi^2 + 4 L eta^2 G^4 Gu^2 Gv^2/psi^4 + 6 L L_s eta G^2 (Gu^4 + Gv^4 + eta^2 G^2 Gu^2 Gv^2)/psi^2"
)
repaired_theorem = both(
    survives(proof.theorem(1.5), "theorem", "with (71), c = 3/2", [*SMALL, *WHOLE]),
    with_units(survives(proof.sharper(), "sharper", "rho = 0, any eta", LOW), proof.sharper_parts),
)


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
