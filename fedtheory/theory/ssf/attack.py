"""How statements on one round of SSF are attacked: instances from free numbers, their corners, checks and controls."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.theory import bench
from fedtheory.theory.bench import Bench, about, largest_gap, spline
from fedtheory.theory.claim import Check, Outcome, Parts, each_needed
from fedtheory.theory.instances import Smooth, coordinate_frames, exact, orthogonal
from fedtheory.theory.search import Implied
from fedtheory.theory.ssf.round import ROOT, Instance, Round, admissible, dump, play, rescaled, slacks


@dataclass(frozen=True)
class Edge(bench.Edge):
    """The discrete side of an instance: sizes, the family of losses, and the step sizes as shares of their bounds.

    lr = share / (2 K L); server_lr makes the effective step size global_share / (4 L) (None: it is `server_lr`).
    """

    N: int = 1
    K: int = 2
    d: int = 1
    r: int = 1
    shape: str = "quadratic"
    share: float = 1.0
    global_share: float | None = 1.0
    server_lr: float = 1.0
    noisy: bool = True
    reuse: bool = False
    free_c: bool = False
    gated: bool = False
    stretch: float = 1.0  # of the frames: P P^T = stretch^2 I
    one_frame: bool = False  # a single projector: statements given P_t
    stationary: bool = False  # grad F(x^t) = 0
    controlled: bool = False  # c_i^t = grad F_i(x^t) + a common vector: no first-order drift

    def __str__(self) -> str:
        sizes = f"N={self.N}, K={self.K}, d={self.d}, r={self.r}, {self.shape}, eta_l = {self.share:g}/(2KL)"
        eta = f"eta_g = {self.server_lr:g}" if self.global_share is None else f"eta = {self.global_share:g}/(4L)"
        flags = {"no noise": not self.noisy, "grad F = 0": self.stationary, "c_i = grad F_i": self.controlled,
                 "one P": self.one_frame, "any c": self.free_c}  # fmt: skip
        return ", ".join([sizes, eta, *(name for name, on in flags.items() if on)])

    def parts(self) -> dict[str, int]:
        full = self.N * self.d
        parts = {"h": full, "a": full, "ci": full, "b": 0 if self.shape == "quadratic" else full}
        parts["q"] = self.N * self.d * (self.d - 1) // 2
        parts["frame"] = self.d * (self.d - 1) // 2
        parts["u"] = full + 1 if self.noisy else 0
        parts["c"] = self.d if self.free_c else 0
        parts["spline"] = 7 if self.shape == "spline" else 0
        parts["gate"] = full if self.gated else 0
        return parts


def build(z: torch.Tensor, edge: Edge) -> Instance:
    """The admissible instance (L = 1, x = 0) that the free numbers z describe."""
    parts = edge.split(z)
    N, d = edge.N, edge.d
    rows = lambda name: parts[name].view(N, d)
    q = frames = None
    if d > 1:
        turns = parts["q"].view(N, -1)
        q = torch.stack([orthogonal(turn, d) for turn in turns])
        frames = coordinate_frames(d, edge.r, rotation=orthogonal(parts["frame"], d))
    else:
        frames = coordinate_frames(1, 1)
    frames = edge.stretch * (frames[:1] if edge.one_frame else frames)
    knots = slopes = None
    if edge.shape == "spline":
        knots, bends = spline(parts["spline"])
        slopes = torch.sin(bends)
    noise = gate = None
    if edge.noisy:
        v = parts["u"][:-1].view(N, d)
        noise = parts["u"][-1].exp() * v / torch.linalg.vector_norm(v, dim=-1).max().clamp(min=1e-9)
    if edge.gated:
        gate = rows("gate") * 3
    b = rows("b") if edge.shape != "quadratic" else torch.zeros(N, d, dtype=torch.float64)
    problem = Smooth(
        torch.sin(rows("h") * 1.5), b, shape=edge.shape, a=rows("a"), q=q, knots=knots, slopes=slopes, noise=noise,
        gate=gate,
    )  # fmt: skip
    x = torch.zeros(d, dtype=torch.float64)
    if edge.stationary:
        problem = problem.replace(a=rows("a") - problem.gradients(x).mean(0))
    ci = rows("ci")
    if edge.controlled:
        ci = problem.gradients(x) + 0 * ci
    c = parts["c"] if edge.free_c else ci.mean(0)
    lr = edge.share / (2 * edge.K)
    server_lr = edge.server_lr if edge.global_share is None else edge.global_share / (4 * lr * edge.K)
    return Instance(problem, x, ci, c, frames, lr, edge.K, server_lr, reuse=edge.reuse)


Terms = bench.Terms[Round]
Pairs = bench.Pairs[Round]


def edges(**changes: Any) -> list[Edge]:
    """The standard corners: K = 1; r = d; r < d, down to an eighth of it; one to three clients; losses with curvature
    of both signs; small and largest steps.
    """
    base = [
        Edge(K=1, N=2, d=2),
        Edge(K=2, N=1),
        Edge(K=3, N=2, global_share=0.5),
        Edge(K=2, N=2, d=2, share=0.25),
        Edge(K=2, N=1, d=2, r=2),
        Edge(K=3, N=1, shape="spline", share=0.5),
        Edge(K=2, N=2, shape="cosine", share=0.1),
        Edge(K=2, N=1, d=2, shape="huber", noisy=False),
        Edge(K=3, N=1, noisy=False),
        Edge(K=2, N=2, shape="spline", stationary=True, share=0.25),
        Edge(K=2, N=1, stationary=True, controlled=True),
        Edge(K=4, N=1, stationary=True, controlled=True, share=0.02),
        Edge(K=1, N=3),
        Edge(K=2, N=1, d=8, noisy=False, share=0.5),
        Edge(K=1, N=2, d=4),
    ]
    return [replace(edge, **changes) for edge in base]


GIVEN_P = [replace(edge, one_frame=True, free_c=True) for edge in edges()]
FREE = [replace(edge, free_c=True) for edge in edges()]
NOISY = [edge for edge in edges() if edge.noisy]
FAR = [  # eta_g > 1 and losses that bend down near x and up further away: the step of Lemma 3 whose proof is broken
    Edge(K=2, shape="spline", stationary=True, controlled=True, share=0.25),
    Edge(K=3, shape="spline", stationary=True, share=0.125),
    Edge(K=3, N=2, shape="spline", stationary=True, share=0.06),
    Edge(K=2, share=4.0),  # Lemma 3 bounds eta only: local steps beyond 1/(2KL)
    Edge(K=3, shape="cosine", share=8.0),
]


SCALING = ("the sides scale differently", "both sides scale alike")
TRIED = "{n} admissible instances by ascent through SSF.client and SSF.server"
BENCH: Bench[Edge, Instance, Round] = Bench(
    ROOT, edges, build, play, dump,
    slacks=lambda at, needs: slacks(at),
    admissible=lambda at, needs: {name: round(slack, 12) for name, slack in admissible(at, needs or ()).items()},
    rescaled=rescaled, holds_text=f"{TRIED}, worst at {{edge}}", breaks_text=f"broken at {{edge}} after {TRIED}",
    effort={"quick": (2, 8), "full": (6, 40)}, units_text=SCALING, unit_edges=[Edge(K=2, N=2, d=2)], rounded=float,
)  # fmt: skip
attack, survives, on, with_units = BENCH.attack, BENCH.survives, BENCH.stored, BENCH.with_units


def times(by: float, terms: Terms) -> Terms:
    """The statement with its right-hand side multiplied (not for statements whose sides may be negative)."""

    def less(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = terms(q)[:2]
        return left, by * right

    return less


def sharpened(by: float, terms: Terms, name: str, *corners: Edge) -> Check:
    """The control of an inequality: its right-hand side lowered to just beyond the tightest ratio that its own search
    finds, attacked at the corners at which it is tight."""
    return BENCH.sharpened(times(by, terms), name, corners, enough=1 + 1e-3)


def _numbers(values: torch.Tensor) -> str:
    """Entries in words; every value once."""
    return ", ".join(f"{value:g}" for value in dict.fromkeys(values.flatten().tolist()))


def identical(pairs: Pairs, name: str, what: str = "", **changes: Any) -> Check:
    """The check of an identity: the largest relative gap over the standard corners."""

    def check(effort: str) -> Outcome:
        rounds = BENCH.rounds(name, edges(**changes) * (1 if effort == "quick" else 5))
        found = largest_gap(rounds, pairs, lambda q, left, right: right.abs().max().clamp(min=1.0))
        holds = found.size < 1e-10
        data = None if holds else {"instance": dump(found.at), "gap": found.size}
        said = about(what, f"largest gap {found.size:.1e} over {found.pairs} pairs of sides (scenarios enumerated)")
        return Outcome(holds, "exact", found.size, said, data)

    return check


def found_gap(at: Callable[[], Instance], pairs: Pairs, why: str, strict: bool = True) -> Check:
    """A stored instance on which an identity fails; `strict`: it must meet Assumptions 1-3."""

    def check(effort: str) -> Outcome:
        instance = at()
        slack = admissible(instance) if strict else slacks(instance)
        gaps = [(float((a - b).abs().max()), a, b) for a, b in pairs(play(instance))]
        gap, left, right = max(gaps, key=lambda entry: entry[0])
        data = {"instance": dump(instance), "left": exact(left), "right": exact(right), "slacks": slack}
        said = about(why, f"left {_numbers(left)}, right {_numbers(right)}")
        relative = gap / max(float(left.abs().max()), float(right.abs().max()), 1e-300)
        return Outcome(gap < 1e-10, "exact", relative, said, data if gap >= 1e-10 else None)

    return check


def _also(found: Parts) -> dict[str, Any]:
    first, *others = (part.counterexample for part in found.values())
    return (first or {}) | {"also": others}


def refuted_each(*checks: Check) -> Check:
    """Several hidden assumptions, each with its own counterexample: refuted where every part is refuted."""
    return each_needed(*checks, data=_also)


# Outcomes of solvers


def all_implied(parts: dict[str, Implied]) -> Outcome:
    """Several implications in one outcome: the first that fails, or that all hold."""
    failed = next(((name, part) for name, part in parts.items() if not part.holds), None)
    if failed is None:
        return Outcome(True, "smt", None, f"{', '.join(parts)}: no point of the admissible set breaks them (z3)")
    return Outcome(False, "smt", None, f"{failed[0]}: {failed[1].detail}", failed[1].model)


def smt(found: Implied, detail: str, counterexample: dict[str, Any] | None = None) -> Outcome:
    """An implication's outcome."""
    stored = None if found.holds else (counterexample or {"model": found.model})
    return Outcome(found.holds, "smt", None, f"{detail}: {found.detail}", stored)


def symbolic(equal: bool, detail: str) -> Outcome:
    """An identity's outcome."""
    detail = f"{detail}: {'holds' if equal else 'fails'} (sympy)"
    return Outcome(equal, "symbolic", None, detail, None if equal else {"identity": detail})


# Units


def units_sentence(alike: bool) -> str:
    """Say whether all terms of a statement scale alike in other units."""
    return SCALING[alike]
