"""Which speed-up of DeComFL is real, in m, K and P: the paper's rate, both bounds, exact expectations, and runs."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each, interval, side_by_side
from fedtheory.running.records import Row, Table, behind
from fedtheory.running.simulate import run
from fedtheory.theory.decomfl.descent import repaired_step
from fedtheory.theory.decomfl.round import DOUBLE, Edge, Instance, Round, steps_of_theorem1
from fedtheory.theory.decomfl.theorem1 import bound1
from fedtheory.theory.instances import Smooth

D, CLIENTS = 30, 64
ROUNDS = 100_000  # of the exact expectations
CAUSES = ("minibatch noise", "heterogeneity", "neither")
RATE = 0.5  # the paper's rate is sqrt(d / (m P K R))
AXES = {  # what is varied: from which (m, K, P), and where
    "m": ((1, 1, 1), {"quick": (1, 4, 16, 64), "paper": (1, 2, 4, 8, 16, 32, 48, 64)}),
    "K": ((1, 1, D), {"quick": (1, 4, 16), "paper": (1, 2, 4, 8, 16, 32, 64)}),
    "P": ((1, 1, 1), {"quick": (1, 30, 1000), "paper": (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)}),
}
RUNS = {"quick": 100, "paper": 400}  # rounds of the runs
PLAYED = ((1, 1, 1), (16, 1, 1), (1, 8, 1), (1, 1, D))  # (m, K, P) of the runs


def instance(cause: str, m: int, K: int, P: int, lr: float) -> Instance:
    """f_i = ||x||^2/2 + (a_i + xi u)^T x in 30 dimensions, at ||grad f|| = 1: a_i = +-e_1 or u = e_1, or neither."""
    first = torch.zeros(D, dtype=DOUBLE)
    first[0] = 1.0
    every = first.expand(CLIENTS, D)
    turns = (1 - 2 * (torch.arange(CLIENTS, dtype=DOUBLE) % 2))[:, None]
    a, noise = float(cause == "heterogeneity") * turns * every, float(cause == "minibatch noise") * every
    return Instance(torch.ones(CLIENTS, D, dtype=DOUBLE), a, noise, first, lr, K, P, m=m)


def on_a_line(at: Instance) -> Instance:
    """The same traces in one dimension, where 2/P is (d+1)/P: tr E[G_i G_j^T] = tr E[g_i g_j^T] (1 + (d+1)/P).

    For h = 1 nothing else enters; all vectors lie along e_1, and mu -> 0.
    """
    line = lambda v: v[:, :1]
    return replace(at, h=line(at.h), a=line(at.a), noise=line(at.noise), x=at.x[:1], P=2 * at.P / (at.d + 1))


def average(at: Instance, rounds: int) -> float:
    """(1/R) sum_{r<R} E||grad f(x_r)||^2, exactly: a round is a linear map of (1, E x, E x^2)."""
    at = on_a_line(at)

    def after(mean: float, second: float) -> torch.Tensor:
        m, s = Round(at, torch.tensor([mean], dtype=DOUBLE), torch.tensor([[second]], dtype=DOUBLE)).next
        return torch.tensor([1.0, float(m), float(s)], dtype=DOUBLE)

    start = after(0.0, 0.0)
    step = torch.stack([start, after(1.0, 0.0) - start, after(0.0, 1.0) - start], 1)
    one, zero = torch.eye(3, dtype=DOUBLE), torch.zeros(3, 3, dtype=DOUBLE)
    both = torch.cat([torch.cat([step, one], 1), torch.cat([zero, one], 1)])
    total = torch.linalg.matrix_power(both, rounds)[:3, 3:]  # sum_{r<R} step^r
    x = float(at.x)
    return float(total[2] @ torch.tensor([1.0, x, x * x], dtype=DOUBLE)) / rounds


def bound(at: Instance, rounds: int, printed: bool) -> float:
    """Theorem 1's, or its repair's, on the same average."""
    return bound1(at, rounds, printed, at.dissimilarity2)


def longest(m: int, K: int, P: int, printed: bool) -> float:
    """The longest step of Theorem 1, or of its repair, L = 1."""
    return min(steps_of_theorem1(D, K, P, m).values()) if printed else repaired_step(Edge(d=D, K=K, P=P))


def lowest(value: Callable[[float], float], top: float) -> tuple[float, float]:
    """The smallest value over steps in (0, top], and its step."""
    found = minimize_scalar(
        lambda t: math.log(value(math.exp(t))), bounds=(math.log(top) - 16, math.log(top)), method="bounded"
    )
    return math.exp(found.fun), math.exp(found.x)


def best(cause: str, sizes: tuple[int, int, int], rounds: int) -> tuple[float, float]:
    """The smallest average, and the constant step that reaches it; the run is stable below 2/(1 + (d+1)/P)."""
    return lowest(lambda lr: average(instance(cause, *sizes, lr), rounds), 1.99 / (1 + (D + 1) / sizes[2]))


def exact_row(cause: str, axis: str, value: int) -> Row:
    base, _ = AXES[axis]
    m, K, P = (value if name == axis else size for name, size in zip("mKP", base))
    at = instance(cause, m, K, P, 1.0)
    row: Row = {"kind": "exact", "cause": cause, "axis": axis, "m": m, "K": K, "P": P, "R": ROUNDS}
    row["best"], row["best_step"] = best(cause, (m, K, P), ROUNDS)
    for name, printed in (("printed", True), ("repaired", False)):
        row[name], step = lowest(lambda lr, p=printed: bound(replace(at, lr=lr), ROUNDS, p), longest(m, K, P, printed))
        row[f"{name}_step"], row[f"at_{name}_step"] = step, average(replace(at, lr=step), ROUNDS)
    return row | {"low": math.nan, "high": math.nan, "seeds": 0, **behind("exact expectation")}


def played_row(cause: str, sizes: tuple[int, int, int], rounds: int, seeds: int) -> Row:
    """The algorithm itself, from x_0 at its best step: its average over the exact expectation."""
    (exact, lr), (m, K, P) = best(cause, sizes, rounds), sizes
    at = instance(cause, *sizes, lr)
    problem = Smooth(at.h, torch.zeros_like(at.h), a=at.a, noise=at.noise)
    algorithm = DeComFL(lr, K, P, smoothing=1e-4)
    ratios = []
    for seed in range(seeds):
        loss = run(algorithm, problem, rounds, sampled=m, seed=seed, x0=at.x, metrics=("loss",))["loss"]
        ratios.append(2 * sum(loss[:-1]) / rounds / exact)  # f* = 0 and ||grad f||^2 = 2f
    mean, low, high = interval(ratios)
    row: Row = {"kind": "run", "cause": cause, "axis": "", "m": m, "K": K, "P": P, "R": rounds}
    row |= {"best": mean, "best_step": lr}
    row |= {f"{name}{part}": math.nan for name in ("printed", "repaired") for part in ("", "_step")}
    row |= {f"at_{name}_step": math.nan for name in ("printed", "repaired")}
    return row | {"low": low, "high": high, "seeds": seeds, **behind("quadratics", "none", rounds)}


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Every cause along every axis, exactly; then runs."""
    points = [(cause, axis, value) for cause in CAUSES for axis, (_, grid) in AXES.items() for value in grid[scale]]
    plays = [(cause, sizes) for cause in CAUSES for sizes in PLAYED]
    exact = each(exact_row, points)
    played = each(played_row, [(cause, sizes, RUNS[scale], seeds) for cause, sizes in plays])
    parts = yield from side_by_side({"exact": exact, "played": played})
    table = [*parts["exact"], *parts["played"]]
    settings = {"d": D, "M": CLIENTS, "R": ROUNDS, "rounds of the runs": RUNS[scale], "smoothing of the runs": 1e-4}
    return Result(table, [], settings, [*SETTING, *summary(table)])


SETTING = (
    f"f_i(x; xi) = ||x||^2/2 + (a_i + xi u)^T x in {D} dimensions, {CLIENTS} clients, xi = +-1, L = ||grad f(x_0)|| = "
    "1. Minibatch noise: u = e_1. Heterogeneity: a_i = +-e_1. Exact expectations for mu -> 0, with Gaussian directions "
    "that all clients share and one minibatch for all P.",
    "Best: the smallest (1/R) sum_r E||grad f(x_r)||^2 over constant steps. Bounds: each at its own best step within "
    "its own conditions; the paper's rate, sqrt(d/(mPKR)) without a constant, through the first point.",
)


def summary(table: Table) -> list[str]:
    """By how much the best average falls along an axis, and where the printed bound is below what happens."""
    notes = []
    exact = [row for row in table if row["kind"] == "exact"]
    for cause in CAUSES:
        for axis in AXES:
            rows = of(exact, cause, axis)
            first, last = rows[0], rows[-1]
            factors = {name: first[name] / last[name] for name in ("best", "printed", "repaired")}
            notes.append(
                f"{cause}, {axis} from {first[axis]} to {last[axis]}: the best average falls by {factors['best']:.3g}; "
                f"rate {(last[axis] / first[axis]) ** RATE:.3g}, printed bound {factors['printed']:.3g}, repaired "
                f"{factors['repaired']:.3g}; largest average over repaired bound at its step "
                f"{max(row['at_repaired_step'] / row['repaired'] for row in rows):.3g}"
            )
    broken = [row for row in exact if row["at_printed_step"] > row["printed"]]
    for row in broken:
        notes.append(
            f"{row['cause']}, m = {row['m']}, K = {row['K']}, P = {row['P']}: at the printed bound's step "
            f"{row['at_printed_step']:.3g}, the printed bound {row['printed']:.3g}, the best step {row['best']:.3g}"
        )
    return notes


def of(table: Table, cause: str, axis: str) -> Table:
    return [row for row in table if (row["cause"], row["axis"]) == (cause, axis)]


LINES: tuple[tuple[str, str, dict[str, Any]], ...] = (  # column, label, look
    ("printed", "Theorem 1 as printed, at its best step", {"color": "#D55E00", "linestyle": "--"}),
    ("repaired", "repaired bound, at its best step", {"color": "#009E73", "linestyle": "-"}),
    ("at_printed_step", "exact, at the printed bound's step", {"color": "#E69F00", "linestyle": ":", "marker": "x"}),
    ("best", "exact, at the best step", {"color": "#0072B2", "linestyle": "-", "marker": "o"}),
)


def draw_panel(axes: Axes, rows: Table, axis: str) -> None:
    """Lines over m, K or P; the paper's rate as a slope through the first exact point."""
    x = [row[axis] for row in rows]
    for column, label, look in LINES:
        axes.plot(x, [row[column] for row in rows], label=label, markersize=3, markerfacecolor="none", **look)
    rate = [rows[0]["best"] * (value / x[0]) ** -RATE for value in x]
    axes.plot(x, rate, color="black", linewidth=0.9, label="the paper's rate, a slope", zorder=1)
    if axis == "P":
        axes.axvline(D, color="0.6", linestyle=":", linewidth=1)
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_minor_formatter("")


@style.styled
def draw(table: Table) -> Figure:
    """Causes down, m, K and P across; below, the runs over the exact expectations."""
    figure = Figure(figsize=(3 * style.WIDTH, 5.6), layout="constrained")
    grid = figure.add_gridspec(4, 3, height_ratios=(1, 1, 1, 0.62))
    fixed = {
        "m": "clients $m$ ($K=P=1$)",
        "K": f"local steps $K$ ($m=1$, $P=d={D}$)",
        "P": "directions $P$ ($m=K=1$; dotted: $P=d$)",
    }
    for i, cause in enumerate(CAUSES):
        left = None
        for j, axis in enumerate(AXES):
            axes = figure.add_subplot(grid[i, j], sharey=left)
            left = left or axes
            draw_panel(axes, of(table, cause, axis), axis)
            if i == 0:
                axes.set_title(fixed[axis])
            if i == len(CAUSES) - 1:
                axes.set_xlabel(f"${axis}$")
            axes.tick_params(labelleft=j == 0)
        assert left is not None
        left.set_ylabel(f"{cause}\n" + r"average of $\|\nabla f(x_r)\|^2$")
    style.legend_above(figure, 5)
    draw_runs(figure.add_subplot(grid[3, :]), [row for row in table if row["kind"] == "run"])
    return figure


def draw_runs(axes: Axes, rows: Table) -> None:
    """Means and intervals; one is the exact expectation."""
    axes.axhline(1.0, color="black", linewidth=0.8)
    for place, row in enumerate(rows):
        span = [[row["best"] - row["low"]], [row["high"] - row["best"]]]
        axes.errorbar([place], [row["best"]], span, fmt="o", color="0.2", markersize=3.5, capsize=2)
    axes.set_xticks(range(len(rows)), [f"{row['m']}, {row['K']}, {row['P']}" for row in rows])
    for i, cause in enumerate(CAUSES):
        axes.text(
            len(PLAYED) * (i + 0.5) - 0.5, 1.0, cause, ha="center", va="top", transform=axes.get_xaxis_transform()
        )
    axes.set(xlabel="$m$, $K$, $P$", ylabel="run / exact")
    axes.set_title(f"the algorithm itself: {rows[0]['R']} rounds, mean and 95% interval of {rows[0]['seeds']} seeds")


EXTRAS = [Item("decomfl/speedup", "Which speed-up in m, K and P is real", measure, draw)]
