"""What the algorithms' own code reaches of the constants in `ours`: searches, and instances made for one line."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from fedtheory.core.algorithm import Algorithm
from fedtheory.running.simulate import run
from fedtheory.theory.fedsub import round as fedsub_round
from fedtheory.theory.instances import Smooth
from fedtheory.theory.ssf.attack import build
from fedtheory.theory.ssf.round import Instance, Round, play
from fedtheory.theory.worst_case.ours import LOCAL, ssf_step
from fedtheory.theory.worst_case.reached import SHAPES, Sides, fedsub_edges, reached, ssf_edges

DOUBLE = torch.float64
AMOUNT = {"quick": {"restarts": 1, "steps": 12}, "paper": {"restarts": 2, "steps": 40}}

# SSF: sides of a statement, over random controls, losses and bases


def ssf_sides(which: str, q: Round) -> Sides:
    """Left and right side of which the constant is the ratio (of a guaranteed descent, its negative)."""
    rho, eta, lr, K = q.at.rho, q.at.eta, q.at.lr, q.at.K
    unit = rho * eta * q.G2
    if which == "drift":
        return q.drift, rho * (K * lr) ** 2 * (q.C0 + q.G2)
    if which == "descent":
        return q.gain - (1 + eta) / 2 * eta * q.drift, unit
    if which == "memory":
        return q.C1, (1 - rho / 2) * q.C0 + (3 + 12 * eta**2 / rho) * q.drift + 12 * eta**2 * q.G2
    return q.gain + 2 * eta * (K * lr) ** 2 * (q.C1 - q.C0), unit


def ssf(which: str, K: int, parts: int = 2, N: int = 2, **amount: Any) -> float:
    """`ours.ssf_<which>` by search: drift, descent, memory or round."""
    edges = ssf_edges(N, K, LOCAL / K, d=parts, eta=ssf_step(parts))
    value = reached(lambda at: ssf_sides(which, play(at)), build, edges, f"ours {which}", False, **amount)
    return -value if which in ("descent", "round") else value


def memoryless(K: int, N: int = 2, **amount: Any) -> float:
    """`ours.memoryless_round` by search: SSF's lines with controls that are zero, P = I."""

    def sides(at: Instance) -> Sides:
        q = play(replace(at, ci=0 * at.ci, c=0 * at.c))
        spread = ((q.start - q.G) ** 2).sum(-1).mean()
        return q.gain - 1.8 / 2.05 * LOCAL**2 * at.eta * spread, at.eta * q.G2

    edges = [replace(edge, shape=shape) for edge in ssf_edges(N, K, LOCAL / K, eta=0.25)[:1] for shape in SHAPES]
    return -reached(sides, build, edges, "ours memoryless", False, **amount)


# FedSub


def fedsub_sides(which: str, at: fedsub_round.Instance) -> Sides:
    """As `ssf_sides`; one layer."""
    q, t, tau, rho = fedsub_round.play(at), at.lr * at.tau, at.tau, at.theta_r
    p = t**2 * (tau - 1) / tau
    spread = q.start - q.start.mean(0)
    square = lambda rows: (rows**2).sum(-1).mean()
    H, G2 = rho * square(spread + at.u / rho), (q.start.mean(0) ** 2).sum()
    drift, gain, moved = q.lifted.mean(), q.gain.mean(), q.moved.mean()
    H1 = square(q.v - q.v.mean(1, keepdim=True)) / rho  # v is r/m grad f_i + u_i there
    if which == "drift":
        return drift, p * (rho * G2 + H)
    if which == "descent":
        return gain - t / 2 * drift + (1 - t) / (2 * t) * moved, t * rho * G2
    if which == "dual":
        return H1, 2 * (1 - rho) * q.zeta2 + 4 / rho * drift + 4 * rho * moved
    w = 5 / 6 * t * p
    return gain + w * (H1 - H) - 2 * w * (1 - rho) * q.zeta2, t * rho * G2


def fedsub(which: str, tau: int, parts: int = 2, n: int = 2, **amount: Any) -> float:
    """`ours.fedsub_<which>` by search: drift, descent, dual or round."""
    edges = fedsub_edges(n, tau, 1 / (3 * parts**0.5) / tau, parts)
    sides = partial(fedsub_sides, which)
    value = reached(sides, fedsub_round.build, edges, f"ours fedsub {which}", False, **amount)
    return -value if which in ("descent", "round") else value


# A descent that never speeds up


def on_bowl(algorithm: Algorithm, rounds: int, bound: Callable[[float], float]) -> float:
    """The mean squared gradient of a run on F = x^2/2 over `bound` of F(x^0) - F*."""
    one = torch.ones(1, 1, dtype=DOUBLE)

    def squared(problem: Smooth, x: torch.Tensor) -> float:
        return float((problem.gradients(x).mean(0) ** 2).sum())

    seen = run(algorithm, Smooth(one, 0 * one), rounds, x0=one[0], metrics=(squared,))["squared"]
    return sum(seen[:rounds]) / rounds / bound(0.5)
