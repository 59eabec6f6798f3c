"""How to choose r at fixed bytes: SSF and FedMUD, by the theorems and by experiment."""

import math
from collections.abc import Callable
from functools import lru_cache

from matplotlib.figure import Figure

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Problem
from fedtheory.maps.decomposition import LowRank
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each
from fedtheory.papers.use.common import SCALES, filled, middle, of, panelled
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Row, Table, behind
from fedtheory.running.simulate import run
from fedtheory.theory import rules

K, SIDE = 5, 16
RANKS = {"quick": (20, 100), "medium": (5, 20, 50, 100)}  # of 100
MUD = {"quick": (1, 8), "medium": (1, 2, 4, 8)}  # of 16
BUDGET = {"quick": 5, "medium": 10}  # rounds at the largest rank
STEPS = {"quick": (0.3, 3.0), "medium": (1.0, 3.0, 10.0, 20.0, 40.0)}  # K L eta
PRICED = {"quick": (0.5, 1.0), "medium": (0.25, 0.5, 1.0, 1.5, 2.0)}  # L alpha c
SAME = 0.1  # K L eta: one step for all ranks
PANELS = ("SSF, full gradients", "SSF, minibatches", "FedMUD, one step a reset")


@lru_cache(maxsize=8)
def regression(seed: int, batch: int | None) -> MatrixRegression:
    """SSF's problem with two columns."""
    return MatrixRegression.ssf(0.5, Key(seed).fold("data"), m=2, batch=batch)


@lru_cache(maxsize=8)
def matrices(seed: int) -> Quadratic:
    """Four clients' quadratics of a 16 x 16 matrix, curvatures 0.1 to 1."""
    return Quadratic.random(4, SIDE**2, Key(seed).fold("data"), layout=Layout.single(SIDE, SIDE))


def final(algorithm: Algorithm, problem: Problem, rounds: int, seed: int) -> tuple[float, float]:
    """Relative error (infinite for a run that diverged), and numbers that a client sent up."""
    history = run(algorithm, problem, rounds, seed=seed, every=rounds)
    error = math.inf if history.diverged else max(history["error"][-1], 1e-300)
    return error, history["up_scalars"][-1] / problem.n


def setting(panel: str, r: int, scale: str) -> tuple[Callable[[int], Problem], Callable[..., Algorithm], int, float]:
    """Problem of a seed, algorithm of (step, problem), rounds, and the step by the rule, in the panel's unit."""
    if panel == PANELS[2]:
        factors, price = LowRank(2 * r / SIDE, 1.0, layers="all"), rules.mud_price(SIDE, SIDE, r)
        mud = lambda step, problem: FedMUD(3 * step / (r * price * problem.constants.L), 1, factors)
        return matrices, mud, BUDGET[scale] * 8 // r, 1.0
    batch = None if panel == PANELS[0] else 20
    ssf = lambda step, problem: SSF.haar(step / (K * problem.constants.L), K, r)
    rule = rules.largest_step("SSF", 1.0, 1, r / 100)
    return lambda seed: regression(seed, batch), ssf, BUDGET[scale] * 100 // r, rule


def rows_of(panel: str, r: int, scale: str, seeds: int) -> list[Row]:
    """Errors at the rule's step, at one step for all ranks, and at the best of a grid, chosen on a seed of its own."""
    problem, make, rounds, rule = setting(panel, r, scale)
    grid = PRICED[scale] if panel == PANELS[2] else STEPS[scale]
    apart = problem(seeds)
    tried = {step: final(make(step, apart), apart, rounds, seeds)[0] for step in grid}
    steps = {"rule": rule, "best": min(tried, key=lambda step: tried[step])}
    steps |= {} if panel == PANELS[2] else {"same": SAME}
    rows: list[Row] = []
    for kind, step in steps.items():
        found = []
        for seed in range(seeds):
            built = problem(seed)
            found.append(final(make(step, built), built, rounds, seed))
        mean, low, high = middle([error for error, _ in found])
        row: Row = {"panel": panel, "kind": kind, "r": r, "step": step, "mean": mean, "low": low, "high": high}
        row |= {"sent": found[0][1], "edge": int(kind == "best" and step in (grid[0], grid[-1])), "seeds": seeds}
        row |= {f"seed {seed}": error for seed, (error, _) in enumerate(found)}
        rows.append(row | behind("matrix regression" if "SSF" in panel else "quadratics", "none", rounds))
    return rows


def measure(scale: str, seeds: int) -> Wants[Result]:
    """All ranks at the same numbers sent; the ratio to the largest rank, paired by seed."""
    points = [(panel, r) for panel in PANELS for r in (MUD[scale] if panel == PANELS[2] else RANKS[scale])]
    found = yield from each(rows_of, [(*point, scale, seeds) for point in points])
    rows = [row for rows in found for row in rows]
    for row in rows:
        largest = of(rows, panel=row["panel"], kind=row["kind"])[-1]
        ratios = middle([row[f"seed {seed}"] / largest[f"seed {seed}"] for seed in range(seeds)])
        row |= dict(zip(("ratio", "ratio low", "ratio high"), ratios))
        share = row["r"] / (100 if "SSF" in row["panel"] else SIDE)
        row["bound"] = bound(row["panel"], row["r"], share)
    table = filled(rows)
    settings = {"K": K, "rounds at the largest rank": BUDGET[scale], "steps": STEPS[scale], "L alpha c": PRICED[scale]}
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    return Result(table, [], settings | {"tuned on": f"seed {seeds}"}, notes)


def bound(panel: str, r: int, share: float) -> float:
    """What multiplies L (F - F*) over the bytes in the bound at the rule's step, over that at the largest rank."""
    if panel == PANELS[2]:
        return rules.mud_price(SIDE, SIDE, r) * r / (rules.mud_price(SIDE, SIDE, 8) * 8)
    return rules.largest_step("SSF", 1.0) / rules.largest_step("SSF", 1.0, 1, share)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, section 2."""
    said: dict[str, float] = {}
    for panel in dict.fromkeys(row["panel"] for row in table):
        for kind in dict.fromkeys(row["kind"] for row in of(table, panel=panel)):
            rows = of(table, panel=panel, kind=kind)
            said[f"{panel}, {kind}, smallest r over largest"] = rows[0]["ratio"]
            said[f"{panel}, {kind}, smallest r over largest, low"] = rows[0]["ratio low"]
            said[f"{panel}, {kind}, smallest r over largest, high"] = rows[0]["ratio high"]
            said[f"{panel}, {kind}, step at the smallest r"] = rows[0]["step"]
            said[f"{panel}, {kind}, step at the largest r"] = rows[-1]["step"]
        said[f"{panel}, bound, smallest r over largest"] = of(table, panel=panel, kind="rule")[0]["bound"]
    return said


LABELS = {"rule": "at the rule's step", "same": f"at $KL\\eta={SAME:g}$", "best": "at the best step of a grid"}


@style.styled
def draw(table: Table) -> Figure:
    """Errors over r, all at the same numbers sent up; thin: what the bound makes of r, through the largest rank."""
    figure, panels, names = panelled(table)
    for name, axes in zip(names, panels):
        for kind, how in style.looks(LABELS).items():
            rows = of(table, panel=name, kind=kind)
            if not rows:
                continue
            mean = [row["mean"] for row in rows]
            error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
            label = f"{LABELS[kind]} (n={rows[0]['seeds']})"
            look = {"color": how.color, "linestyle": how.dash, "marker": how.marker, "markersize": 3.5}
            axes.errorbar([row["r"] for row in rows], mean, error, label=label, **look)
            ends = [row for row in rows if row["edge"]]
            hollow = {"markerfacecolor": "white", "color": how.color, "markersize": 3.5, "zorder": 3}
            axes.plot([row["r"] for row in ends], [row["mean"] for row in ends], how.marker, **hollow)
        rows = of(table, panel=name, kind="rule")
        axes.plot(
            [r["r"] for r in rows], [r["bound"] for r in rows], "k:", linewidth=1, label="the bound, largest r = 1"
        )
        axes.set(xscale="log", yscale="log", title=name, xlabel="$r$")
        axes.xaxis.set_minor_formatter("")
    panels[0].set_ylabel("relative error at the same bytes")
    style.caption(figure, table, "hollow: the best step is the grid's last")
    style.legend_above(figure, 4)
    return figure


EXTRAS = [Item("use/rank", "Which rank is best at fixed bytes", measure, draw, SCALES)]
