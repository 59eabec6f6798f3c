"""FedMUD where nothing moves: what Lemma 6, (63), (66), (68) and Theorem 1 promise there, as printed."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.instances import exact
from fedtheory.theory.mud.counterexamples import resting, stuck
from fedtheory.theory.mud.quantities import constants, delta2, residual
from fedtheory.theory.mud.round import DOUBLE, KEY, Instance, Pair, Terms, Window, admissible, outcome, sq
from fedtheory.theory.rounding import digits

LOST = "U = (1/4, 0), V = 0, grad f = -E_22: nothing moves"


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


def slacks_tilted(q: Window) -> dict[str, float]:
    """psi^2 = |U|^2 = 65/64."""
    return {"A4, psi^2 = 65/64": float(seen2(q)) - 65 / 64} | admissible(q)


def stuck_terms(q: Window) -> tuple[torch.Tensor, ...]:
    """psi^2, ||grad f||^2, the change of f, and C of (66) in parts, all with `smooth4` and Gamma = kappa, the largest
    that any S gives.
    """
    (eta, E, G2, *_), (gu, gv), L = constants(q, True), q.kappa, smooth4(q)
    C = residual(1, 0, E, 1, eta, L, G2, 0.0, gu, gv)
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
