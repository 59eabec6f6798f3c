"""What a search through the algorithms' own code reaches of the constants in `worst_case`, in one or two dimensions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.theory.fedsub import lemma1 as fedsub_lemma1
from fedtheory.theory.fedsub import round as fedsub_round
from fedtheory.theory.search import maximise
from fedtheory.theory.ssf.attack import Edge, build
from fedtheory.theory.ssf.lemma2 import lemma2
from fedtheory.theory.ssf.round import Instance, play
from fedtheory.theory.worst_case.program import ROOT, lyapunov_weight, play_fedavg

SHAPES = ("quadratic", "huber")
LIFT = 100.0  # descents are negative: `maximise` takes logarithms of left + LIFT * right
Sides = tuple[torch.Tensor, ...]  # left, right


def reached(
    sides: Callable[[Any], Sides],
    build: Callable[..., Any],
    edges: Sequence[Any],
    name: str,
    convex: bool,
    **amount: Any,
) -> float:
    """The largest left/right over instances; `convex`: over those whose losses are."""

    def terms(z: torch.Tensor, edge: Any) -> Sides:
        at = build(z, edge)
        if convex:
            bends = at.problem.slopes
            convexed = at.problem.replace(h=at.problem.h.abs(), slopes=None if bends is None else bends.abs())
            at = replace(at, problem=convexed)
        left, right = sides(at)
        return left + LIFT * right, right

    return maximise(terms, lambda edge: edge.size, ROOT.fold(name), edges=edges, **amount).ratio - LIFT


def ssf_edges(
    N: int, K: int, lr: float, *, d: int = 1, r: int = 1, eta: float | None = None, **options: Any
) -> list[Edge]:
    """lr is eta_l L; eta_g is 1 unless eta_g eta_l K L is given."""
    share = None if eta is None else 4 * eta
    edge = Edge(N=N, K=K, d=d, r=r, share=2 * K * lr, global_share=share, noisy=False, **options)
    return [replace(edge, shape=shape) for shape in SHAPES]


def ssf_drift(K: int, lr: float, *, convex: bool = False, parts: int = 1, N: int = 1, **amount: Any) -> float:
    """`worst_case.ssf_drift` by search."""
    sides = lambda at: lemma2(0.0, 1.0)(play(at))
    return reached(sides, build, ssf_edges(N, K, lr, d=parts, one_frame=True), "drift", convex, **amount)


def ssf_descent(
    K: int, eta: float, lr: float, *, convex: bool = False, parts: int = 1, N: int = 1, **amount: Any
) -> float:
    """`worst_case.ssf_descent` by search."""

    def sides(at: Instance) -> Sides:
        q = play(at)
        return q.gain - 1.5 * eta * q.drift, at.rho * eta * q.G2

    return -reached(sides, build, ssf_edges(N, K, lr, d=parts, eta=eta), "descent", convex, **amount)


def spread_to(at: Instance, zeta2: float) -> Instance:
    """The instance with the deviations of grad F_i(x) scaled to zeta^2 = zeta2 ||grad F(x)||^2, by linear terms."""
    start = at.problem.gradients(at.x)
    G, e = start.mean(0), start - start.mean(0)
    share = (zeta2 * (G**2).sum() / (e**2).sum(-1).mean().clamp(min=1e-30)).sqrt()
    assert at.problem.a is not None
    return replace(at, problem=at.problem.replace(a=at.problem.a + (share - 1) * e))


def play_fedavg_on(at: Instance, zeta2: float) -> tuple[Instance, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The instance within zeta2, its local points, its new model and ||grad F(x)||^2."""
    at = spread_to(at, zeta2)
    y, x = play_fedavg(FedAvg(at.lr, at.K), at.problem, at.x)
    return at, y, x, (at.problem.gradients(at.x).mean(0) ** 2).sum()


def fedavg_drift(K: int, lr: float, zeta2: float, *, convex: bool = False, N: int = 2, **amount: Any) -> float:
    """`worst_case.fedavg_drift` by search."""

    def sides(at: Instance) -> Sides:
        at, y, _, G2 = play_fedavg_on(at, zeta2)
        return ((y - at.x) ** 2).sum() / (N * K), K**2 * lr**2 * G2

    return reached(sides, build, ssf_edges(N, K, lr), "fedavg drift", convex, **amount)


def one_round(K: int, eta: float, zeta2: float | None, *, convex: bool = False, N: int = 2, **amount: Any) -> float:
    """`worst_case.one_round` by search."""

    def sides(at: Instance) -> Sides:
        if zeta2 is None:
            q = play(at)
            return q.gain, eta * q.G2
        at, _, x, G2 = play_fedavg_on(at, zeta2)
        return at.problem.values(x).mean() - at.problem.values(at.x).mean(), eta * G2

    edges = ssf_edges(N, K, eta / K, controlled=zeta2 is None)
    if zeta2 is not None:  # clients that pull sideways; losses whose curvature changes
        edges += [*ssf_edges(N, K, eta / K, d=2, r=2), replace(edges[0], shape="spline")]
    return -reached(sides, build, edges, "round", convex, **amount)


def fedsub_edges(n: int, tau: int, lr: float, parts: int = 1) -> list[fedsub_round.Edge]:
    """lr is eta L_f, L_f = 1; one layer with r/m = 1/parts."""
    edge = fedsub_round.Edge(layers=((parts, 1, 1),), n=n, tau=tau, share=lr * tau * (32 * parts) ** 0.5)
    return [replace(edge, shape=shape) for shape in SHAPES]


def fedsub_drift(tau: int, lr: float, *, convex: bool = False, parts: int = 1, n: int = 1, **amount: Any) -> float:
    """`worst_case.fedsub_drift` by search."""
    sides = lambda at: fedsub_lemma1.lemma1(1.0, 1.0)(fedsub_round.play(at))
    return reached(sides, fedsub_round.build, fedsub_edges(n, tau, lr, parts), "lemma1", convex, **amount)


def fedsub_descent(
    tau: int, lr: float, *, repaired: bool = False, convex: bool = False, n: int = 1, **amount: Any
) -> float:
    """`worst_case.fedsub_descent` by search."""
    weight = lyapunov_weight(tau, lr, n, repaired)

    def sides(at: fedsub_round.Instance) -> Sides:
        q = fedsub_round.play(at)
        return (q.gain + weight * (q.next_spread - q.spread_Y)).mean(), lr * tau * q.a2.mean()

    return -reached(sides, fedsub_round.build, fedsub_edges(n, tau, lr), "lemma3", convex, **amount)
