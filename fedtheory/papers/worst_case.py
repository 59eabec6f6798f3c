"""How tight the papers' one-round inequalities are: printed constant, tight one (SDP) and the worst one reached."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each
from fedtheory.running.records import Row, Table, behind
from fedtheory.theory.worst_case import program as worst_case
from fedtheory.theory.worst_case import reached as worst_case_search

AMOUNT = {"quick": {"restarts": 1, "steps": 8}, "paper": {"restarts": 2, "steps": 30}}
SHARES = {"quick": (0.25, 1.0, 2.0), "paper": (0.05, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0)}
STEPS = {"quick": (0.1, 0.25, 1.0), "paper": (0.02, 0.06, 0.12, 0.25, 0.4, 0.7, 1.0, 1.5, 2.0)}
WIDE = (0.02, 0.05, 0.1, 0.125, 1 / 6, 32**-0.5, 0.3, 0.5, 0.75, 1.0, 1.3)
TOTALS = {"quick": (0.1, 32**-0.5, 0.6), "paper": WIDE}


@dataclass(frozen=True)
class Curve:
    """A constant as a function of the step size.

    Fields:
        panel, label: where it is drawn.
        tight, reached: by semidefinite program and by search, of `arguments(x)` and `options`.
        printed: the paper's constant, for x up to `condition`.
    """

    panel: str
    label: str
    tight: Callable[..., worst_case.Tight]
    reached: Callable[..., float]
    arguments: Callable[[float], tuple]
    printed: Callable[[float], float]
    condition: float
    options: dict[str, Any] = field(default_factory=dict)

    def row(self, x: float, amount: dict[str, int]) -> Row:
        found = self.tight(*self.arguments(x), **self.options)
        return {
            "panel": self.panel,
            "curve": self.label,
            "x": x,
            "condition": self.condition,
            "paper": self.printed(x) if x <= self.condition else math.nan,
            "tight_dual": found.dual,
            "tight_primal": found.primal,
            "reached": self.reached(*self.arguments(x), **self.options, **amount),
            **behind("worst case over losses"),
        }


def ssf_curves() -> list[Curve]:
    """Lemma 2 per client, and over clients whose gradients differ; Lemma 3; both together."""
    w, s = worst_case, worst_case_search
    drift, spread = (w.ssf_drift, s.ssf_drift), (w.fedavg_drift, s.fedavg_drift)
    descent, whole = (w.ssf_descent, s.ssf_descent), (w.one_round, s.one_round)
    twelve, quarter = lambda x: 12.0, lambda x: 0.25
    both = lambda x: 0.25 - 18 * x**2
    out = [Curve("Lemma 2", f"K = {K}", *drift, lambda x, K=K: (K, x / (2 * K)), twelve, 1.0) for K in (2, 3, 4)]
    out.append(Curve("Lemma 2", "K = 4, convex", *drift, lambda x: (4, x / 8), twelve, 1.0, {"convex": True}))
    out.append(Curve("drift", "SSF, any ζ²", *drift, lambda x: (4, x / 8), twelve, 1.0, {"N": 2}))
    for zeta2 in (1.0, 10.0, 100.0):
        label = f"FedAvg, ζ² = {zeta2:g}"
        out.append(Curve("drift", label, *spread, lambda x, z=zeta2: (4, x / 8, z), lambda x: math.nan, 1.0))
    for K in (1, 2, 4):
        step = lambda x, K=K: (K, x, 1 / (2 * K))
        out.append(Curve("Lemma 3", f"K = {K}, ρ = 1", *descent, step, quarter, 0.25, {"N": 2}))
    half = lambda x: (4, x, 1 / 8)
    out.append(Curve("Lemma 3", "K = 4, ρ = 1/2", *descent, half, quarter, 0.25, {"parts": 2}))
    out += [Curve("round", f"SSF, K = {K}", *whole, lambda x, K=K: (K, x, None), both, 0.25) for K in (2, 4)]
    for zeta2 in (1.0, 10.0):
        label = f"FedAvg, K = 4, ζ² = {zeta2:g}"
        out.append(Curve("round", label, *whole, lambda x, z=zeta2: (4, x, z), lambda x: math.nan, 0.25))
    return out


def fedsub_curves() -> list[Curve]:
    """Lemma 1 at r = m and r = m/2; Lemma 3 at P = I, with the printed Omega and with the repaired one."""
    w, s, n = worst_case, worst_case_search, 2
    drift, descent = (w.fedsub_drift, s.fedsub_drift), (w.fedsub_descent, s.fedsub_descent)
    five, eighth = lambda x: 5.0, lambda x: 0.125
    out = []
    for tau, parts in ((2, 1), (3, 1), (4, 1), (4, 2)):
        label = f"τ = {tau}, r = m" + ("/2" if parts == 2 else "")
        limit = (32 * parts) ** -0.5
        out.append(Curve("Lemma 1", label, *drift, lambda x, K=tau: (K, x / K), five, limit, {"n": n, "parts": parts}))
    for repaired in (False, True):
        limit = 1 / 6 if repaired else 1 / (5 * n)
        for tau in (2, 4):
            label = f"{'repaired' if repaired else 'printed'} Ω, τ = {tau}"
            options = {"n": n, "repaired": repaired}
            out.append(Curve("Lemma 3", label, *descent, lambda x, K=tau: (K, x / K), eighth, limit, options))
    return out


CURVES = {"ssf": ssf_curves, "fedsub": fedsub_curves}  # by paper


def row_of(paper: str, at: int, x: float, scale: str) -> Row:
    """A curve at a point, in a worker."""
    return CURVES[paper]()[at].row(x, AMOUNT[scale])


def measure(panels: dict[str, dict[str, tuple[float, ...]]], paper: str, scale: str, seeds: int) -> Wants[Result]:
    """Every curve on its panel's grid, and what the numbers are at the edge of the paper's step sizes."""
    curves, grids = CURVES[paper](), {panel: grid[scale] for panel, grid in panels.items()}
    points = [(paper, at, x, scale) for at, curve in enumerate(curves) for x in grids[curve.panel]]
    table = yield from each(row_of, points)
    gap = max(abs(r["tight_dual"] - r["tight_primal"]) for r in table if math.isfinite(r["tight_dual"]))
    notes = [
        "L = 1, exact gradients. Tight: dual value of a semidefinite program (PEPit, CLARABEL), over all L-smooth "
        f"losses in all dimensions; largest gap to the primal value {gap:.1e}.",
        "Reached: gradient ascent through the algorithms' own code over quadratic, Huber and spline losses in one and "
        "two dimensions: a lower bound of how bad it gets.",
    ]
    for curve in curves:
        inside = [row for row in table if row["curve"] == curve.label and row["panel"] == curve.panel]
        edge = max((row for row in inside if row["x"] <= row["condition"]), key=lambda row: row["x"])
        printed = "not printed" if math.isnan(edge["paper"]) else f"printed {edge['paper']:.4g}"
        notes.append(
            f"{curve.panel}, {curve.label}, x = {edge['x']:.4g}: {printed}, tight {edge['tight_dual']:.6g}, reached "
            f"{edge['reached']:.6g}"
        )
    settings = {"search": AMOUNT[scale], "grids": grids, "solver": "CLARABEL", "tolerance": worst_case.TOLERANCES[0]}
    return Result(table, [], settings, notes)


def draw_panel(axes: Axes, rows: Table) -> None:
    """Lines: tight. Circles: reached. Black: printed, as far as the paper's step-size condition (dotted) goes."""
    for name, how in style.looks(row["curve"] for row in rows).items():
        own = [row for row in rows if row["curve"] == name]
        x = [row["x"] for row in own]
        axes.plot(x, [row["tight_dual"] for row in own], **how.line, label=name)
        axes.plot(x, [row["reached"] for row in own], "o", color=how.color, markersize=3.2, markerfacecolor="none")
        printed = [(row["x"], row["paper"]) for row in own if not math.isnan(row["paper"])]
        axes.plot(*zip(*printed), "k-", linewidth=2) if printed else None
    for condition in {row["condition"] for row in rows}:
        axes.axvline(condition, color="black", linestyle=":", linewidth=1)


def finish(figure: Figure) -> Figure:
    """What black lines, coloured lines and circles are, once for all panels; log axes labelled at decades only."""
    for axes in figure.axes:
        axes.xaxis.set_minor_formatter("")
        axes.yaxis.set_minor_formatter("")
    axes = figure.axes[0]
    handles = [
        axes.plot([], [], "k-", linewidth=2)[0],
        axes.plot([], [], "-", color="0.4")[0],
        axes.plot([], [], "o", color="0.4", markersize=3.2, markerfacecolor="none")[0],
        axes.plot([], [], "k:", linewidth=1)[0],
    ]
    names = ["printed", "tight (SDP, dual value)", "reached by search", "printed step-size condition"]
    figure.legend(handles, names, loc="outside upper center", ncols=4)
    return figure


def of(table: Table, panel: str) -> Table:
    return [row for row in table if row["panel"] == panel]


@style.styled
def draw_ssf(table: Table) -> Figure:
    """Four panels: Lemma 2 with and without controls, Lemma 3, and both together."""
    figure = Figure(figsize=(2 * style.WIDTH, 5.0), layout="constrained")
    drift, spread, descent, whole = figure.subplots(2, 2).flat
    for axes, panel in ((drift, "Lemma 2"), (spread, "drift"), (descent, "Lemma 3"), (whole, "round")):
        draw_panel(axes, of(table, panel))
    for axes, limits in ((drift, (0.08, 30)), (spread, (0.15, 1500))):
        axes.set(xscale="log", yscale="log", xlabel=r"$2K\eta_\ell L$", ylim=limits)
    drift.set(ylabel=r"worst $\mathcal{E}_{i,t}\,/\,(K^3\eta_\ell^2 G_{i,t})$", title="Lemma 2: local drift, any $P$")
    spread.set_ylabel(r"worst $\mathcal{E}_{drift}^t\,/\,(K^2\eta_\ell^2\|\nabla F\|^2)$")
    spread.set_title(r"without controls, $K=4$ ($\zeta^2$ in $\|\nabla F\|^2$)")
    descent.set(xlabel=r"$\tilde\eta L$, with $\eta_\ell=1/(2KL)$", ylim=(0, 1.02))
    descent.set(ylabel=r"guaranteed $c$ in $-c\,\rho\tilde\eta\|\nabla F\|^2$", title="Lemma 3: descent at given drift")
    whole.set(
        xlabel=r"$\tilde\eta L=K\eta_\ell L$", ylim=(-1, 1.02), title="whole round; black: Lemmas 2 and 3 combined"
    )
    whole.set_ylabel(r"guaranteed $c$ in $-c\,\tilde\eta\|\nabla F\|^2$")
    for axes, place in ((drift, (0.02, 0.38)), (spread, "upper left"), (descent, (0.19, 0.02)), (whole, (0.18, 0.02))):
        axes.legend(loc=place)
    return finish(figure)


@style.styled
def draw_fedsub(table: Table) -> Figure:
    """Two panels: Lemma 1 and Lemma 3."""
    figure, (drift, descent) = style.new_figure(2, height=2.8)
    draw_panel(drift, of(table, "Lemma 1"))
    draw_panel(descent, of(table, "Lemma 3"))
    drift.set(
        xscale="log", yscale="log", xlabel=r"$\eta\tau L_f$", ylim=(0.08, 12), title="Lemma 1: local drift, any $P$"
    )
    drift.set_ylabel("worst constant in place of both 5")
    descent.set(xlabel=r"$\eta\tau L_f$", ylim=(-1, 1.02), title=r"Lemma 3: descent of $\Omega$, $P=I$, $n=2$, $L_f=1$")
    descent.set_ylabel(r"guaranteed $c$ in $-c\,\eta\tau\|\nabla f\|^2$")
    drift.legend(loc=(0.02, 0.42))
    descent.legend(loc=(0.17, 0.02))
    return finish(figure)


EXTRAS = [
    Item(
        "ssf/worst_case",
        "How tight Lemmas 2 and 3 are: printed, tight and reached constants",
        partial(measure, {"Lemma 2": SHARES, "drift": SHARES, "Lemma 3": STEPS, "round": STEPS}, "ssf"),
        draw_ssf,
    ),
    Item(
        "fedsub/worst_case",
        "How tight Lemmas 1 and 3 are: printed, tight and reached constants",
        partial(measure, {"Lemma 1": TOTALS, "Lemma 3": TOTALS}, "fedsub"),
        draw_fedsub,
    ),
]
