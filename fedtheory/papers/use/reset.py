"""When FedMUD's reset stalls: factors that are not redrawn, too seldom, or too small, by rule and by experiment."""

import math
from functools import lru_cache

from matplotlib.figure import Figure

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Problem
from fedtheory.maps.decomposition import LowRank
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each, side_by_side
from fedtheory.papers.use.common import SCALES, filled, middle, of, panelled
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Row, Table, behind
from fedtheory.running.simulate import run
from fedtheory.theory import rules

SIDE, N, E = 16, 2, 5
FORMS = {"freeze": 8, "aad": 4, "product": 4}  # form -> rank, for the same 128 numbers sent
NAMES = {"freeze": "FedMUD+F", "aad": "FedMUD+AAD", "product": "FedMUD"}
PANELS = {"quick": ("one curvature",), "medium": ("one curvature", "curvatures 0.1 to 1")}
EVERY = {"quick": (1, 20), "medium": (1, 2, 5, 20, 60)}  # rounds between resets; the last: never
ROUNDS = {"quick": 20, "medium": 60}
STEPS = {"quick": (0.5, 2.0), "medium": (0.5, 1.0, 2.0, 4.0)}  # L alpha c, spread over the local steps
RANGES = {"quick": (0.1, 1.0), "medium": (0.03, 0.1, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0)}  # a
LR = 0.25


@lru_cache(maxsize=8)
def problem(panel: str, seed: int) -> Quadratic:
    """Two clients' quadratics of a 16 x 16 matrix, L = 1."""
    least = 1.0 if panel == "one curvature" else 0.1
    layout = Layout.single(SIDE, SIDE)
    return Quadratic.random(N, SIDE**2, Key(seed).fold("data"), spectrum=(least, 1.0), layout=layout)


def left(algorithm: FedMUD, of_it: Problem, rounds: int, seed: int) -> float:
    """||x - x*||^2 over where it started, x^0 = 0; infinite for a run that diverged."""
    history = run(algorithm, of_it, rounds, seed=seed, every=rounds)
    return math.inf if history.diverged else max(history["error"][-1] ** 2, 1e-300)


def algorithm(form: str, every: int, step: float, rounds: int) -> FedMUD:
    """The form at L alpha c = step for all local steps of a round together."""
    r, aad = FORMS[form], form == "aad"
    gamma = (2 if aad else 1) * r / 3  # a = 1
    lr = step / (rules.mud_price(SIDE, SIDE, r, aad=aad) * gamma * E)
    factors = LowRank((1 if form == "freeze" else 2) * r / SIDE, 1.0, form, layers="all")
    return FedMUD(lr, E, factors, reset_every=None if every == rounds else every)


def rows_of(panel: str, form: str, every: int, scale: str, seeds: int) -> Row:
    """What is left at the best of a grid of steps, chosen on a seed of its own, and what the rule says is left."""
    T = ROUNDS[scale]
    tried = {step: left(algorithm(form, every, step, T), problem(panel, seeds), T, seeds) for step in STEPS[scale]}
    step = min(tried, key=lambda step: tried[step])
    found = [left(algorithm(form, every, step, T), problem(panel, seed), T, seed) for seed in range(seeds)]
    shares = (FORMS[form] / SIDE,) * (2 if form == "aad" else 1)
    rule = math.nan if form == "product" else rules.untouched_share(shares, math.ceil(T / every))
    row: Row = {"panel": panel, "form": form, "x": every, "step": step, "rule": rule, "seeds": seeds}
    return row | dict(zip(("mean", "low", "high"), middle(found))) | behind("quadratics", "none", T)


def scaled(a: float, scale: str, seeds: int) -> Row:
    """One local step, a reset every round, rank 4: what is left over the range a of the factors, at one eta."""
    r, T = 4, ROUNDS[scale]
    alpha, price = LR * r * a**2 / 3, rules.mud_price(SIDE, SIDE, r)
    factors = LowRank(2 * r / SIDE, a, layers="all")
    found = [left(FedMUD(LR, 1, factors), problem("one curvature", seed), T, seed) for seed in range(seeds)]
    exact = (1 - 2 * alpha + alpha**2 * price) ** T  # mud.5.3
    row: Row = {"panel": "range", "form": "product", "x": a, "step": alpha * price, "rule": exact, "seeds": seeds}
    return row | dict(zip(("mean", "low", "high"), middle(found))) | behind("quadratics", "none", T)


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Intervals between resets for three forms, then ranges a."""
    points = [(panel, form, every) for panel in PANELS[scale] for form in FORMS for every in EVERY[scale]]
    intervals = each(rows_of, [(*point, scale, seeds) for point in points])
    ranges = each(scaled, [(a, scale, seeds) for a in RANGES[scale]])
    parts = yield from side_by_side({"intervals": intervals, "ranges": ranges})
    table = filled([*parts["intervals"], *parts["ranges"]])
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    settings = {"side": SIDE, "N": N, "local steps": E, "rounds": ROUNDS[scale], "L alpha c": STEPS[scale], "eta": LR}
    return Result(table, [], settings | {"tuned on": f"seed {seeds}"}, notes)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, section 5."""
    said: dict[str, float] = {}
    for row in table:
        if row["panel"] == "range":
            continue
        name = f"{row['panel']}, {NAMES[row['form']]}, s = {row['x']:g}"
        said |= {f"{name}: left": row["mean"]} | ({} if math.isnan(row["rule"]) else {f"{name}: rule": row["rule"]})
    ranges = of(table, panel="range")
    best = min(ranges, key=lambda row: row["mean"])
    price = rules.mud_price(SIDE, SIDE, 4)
    said |= {
        "range: best a": best["x"],
        "range: best a by rule": math.sqrt(3 / (4 * LR * price)),
        "range: left at the smallest a": ranges[0]["mean"],
        "range: left at the best a": best["mean"],
        "range: largest a that converges": max(row["x"] for row in ranges if row["mean"] < 1),
        "range: largest a by rule": math.sqrt(6 / (4 * LR * price)),
    }
    return said


@style.styled
def draw(table: Table) -> Figure:
    """What is left over the rounds between resets (wide: the rule), and over the range of the factors."""
    figure, panels, names = panelled(table)
    for name, axes in zip(names, panels):
        for form in FORMS:
            rows = [row for row in of(table, panel=name, form=form) if math.isfinite(row["mean"])]
            if not rows:
                continue
            how, mean = style.look(NAMES[form]), [row["mean"] for row in rows]
            error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
            x, label = [row["x"] for row in rows], f"{NAMES[form]} (n={rows[0]['seeds']})"
            look = {"color": how.color, "linestyle": how.dash, "marker": how.marker, "markersize": 3.5}
            axes.errorbar(x, mean, error, label=label, **look)
            axes.plot(x, [row["rule"] for row in rows], color=how.color, linewidth=3.5, alpha=0.2)
        axes.set(xscale="log", yscale="log", title=name, xlabel="rounds between resets (last: never)")
        axes.xaxis.set_minor_formatter("")
    panels[0].set_ylabel(r"$\|W-W^\star\|^2$ over its start")
    panels[-1].set(title=r"redrawn every round, $\eta=1/4$", xlabel="range $a$ of the factors", ylim=(1e-6, 1e3))
    panels[0].plot([], [], color="0.4", linewidth=3.5, alpha=0.3, label="pale band: the rule")
    style.legend_above(figure, 4)
    return figure


EXTRAS = [Item("use/reset", "When a reset stalls", measure, draw, SCALES)]
