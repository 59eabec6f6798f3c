"""The largest stable step: by the theorems, and by experiment."""

import math
from collections.abc import Callable

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Problem
from fedtheory.maps.decomposition import LowRank
from fedtheory.maps.subspace import Spherical
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each, side_by_side
from fedtheory.papers.use.common import SCALES, filled, middle, of, panelled
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Row, Table, behind
from fedtheory.running.simulate import may_diverge, run
from fedtheory.theory import rules

K = 5
RANKS = {"quick": (0.2, 1.0), "medium": (0.05, 0.2, 1.0)}
DIRECTIONS = {"quick": (1, 10), "medium": (1, 3, 10, 30)}
SIDES = {"quick": (2, 8), "medium": (1, 2, 4, 8)}  # ranks of a 16 x 16 matrix
ROUNDS = {"quick": 10, "medium": 25}
SIDE, FLAT = 16, 50
METHODS: dict[str, Callable[[float, int], Algorithm]] = {
    "FedAvg-CD": lambda lr, r: FedSub(lr, K, Spherical(r), dual=False),
    "SSF": lambda lr, r: SSF.haar(lr, K, r),
    "FedSub": lambda lr, r: FedSub(lr, K, Spherical(r), form="sums"),
}


def problems(scale: str, seed: int) -> dict[str, Problem]:
    """Full gradients. SSF's matrix regression has two columns here: its Hessians are the same for each."""
    key = Key(seed).fold("data")
    made: dict[str, Problem] = {
        "matrix regression": MatrixRegression.ssf(0.5, key, n=20 if scale == "medium" else 4, m=2, batch=None)
    }
    if scale == "medium":
        made["logistic regression"] = LogisticRegression.fedsub(key)
    return made


def bowl(d: int, key: Key, layout: Layout | None = None) -> Quadratic:
    """||x - b||^2/2 for one client."""
    b = torch.randn(1, d, generator=key.generator(), dtype=torch.float64)
    return Quadratic(torch.eye(d, dtype=torch.float64)[None], b, layout=layout)


def converges(algorithm: Algorithm, problem: Problem, rounds: int, seed: int) -> bool:
    """Whether the loss is below where it started."""
    with may_diverge():
        history = run(algorithm, problem, rounds, seed=seed, every=rounds, metrics=("loss",))
    return history.diverged is None and history["loss"][-1] < history["loss"][0]


def edge(make: Callable[[float], Algorithm], problem: Problem, rounds: int, seed: int, low: float) -> float:
    """The largest value, to a tenth, up to which runs converge: from `low`, where they do, upwards, then by bisection.

    Raises AssertionError where `low` diverges.
    """
    assert converges(make(low), problem, rounds, seed), "a step that the rule admits diverges"
    high = 4 * low
    while converges(make(high), problem, rounds, seed):
        low, high = high, 4 * high
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if converges(make(middle), problem, rounds, seed) else (low, middle)
    return low


def in_subspace(name: str, method: str, share: float, scale: str, seeds: int) -> Row:
    """K L eta at the edge, and by the rule."""
    found, rule = [], rules.largest_step(method, 1.0, 1, share)
    for seed in range(seeds):
        problem = problems(scale, seed)[name]
        r, L = round(share * problem.layout.layers[0].rows), problem.constants.L
        assert L is not None
        make = lambda q, r=r, L=L: METHODS[method](q / (K * L), r)
        found.append(edge(make, problem, ROUNDS[scale], seed, rule))
    row = {"panel": name, "method": method, "x": share, "rule": rule}
    return (
        row
        | dict(zip(("mean", "low", "high"), middle(found)))
        | {"seeds": seeds, **behind(name, "none", ROUNDS[scale])}
    )


def by_price(method: str, x: int, scale: str, seeds: int) -> Row:
    """One client, ||x - b||^2/2, one local step: L eta (DeComFL) or L alpha (FedMUD) at the edge, times its price c."""
    found, rounds = [], 2 * ROUNDS[scale]
    price = rules.directions_price(FLAT, x) if method == "DeComFL" else rules.mud_price(SIDE, SIDE, x)
    rule = 1 / (4 * price) if method == "DeComFL" else 1 / price
    for seed in range(seeds):
        key = Key(seed).fold("data")
        if method == "DeComFL":
            problem, make = bowl(FLAT, key), lambda step: DeComFL(step, 1, x, smoothing=1e-4)
        else:
            problem = bowl(SIDE**2, key, Layout.single(SIDE, SIDE))
            factors = LowRank(2 * x / SIDE, 1.0, layers="all")
            make = lambda alpha, D=factors: FedMUD(3 * alpha / x, 1, D)
        found.append(edge(make, problem, rounds, seed, rule))
    row = {"panel": "price", "method": method, "x": x, "rule": rule, "price": price}
    return (
        row | dict(zip(("mean", "low", "high"), middle(found))) | {"seeds": seeds, **behind("a bowl", "none", rounds)}
    )


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Every method at every share on every problem, then DeComFL and FedMUD."""
    points = [(name, method, share) for name in problems(scale, 0) for method in METHODS for share in RANKS[scale]]
    priced = [("DeComFL", P) for P in DIRECTIONS[scale]] + [("FedMUD", r) for r in SIDES[scale]]
    subspaces = each(in_subspace, [(*point, scale, seeds) for point in points])
    prices = each(by_price, [(*point, scale, seeds) for point in priced])
    parts = yield from side_by_side({"subspaces": subspaces, "prices": prices})
    table = filled([*parts["subspaces"], *parts["prices"]])
    settings = {"K": K, "rounds": ROUNDS[scale], "data": "redrawn per seed", "stable": "loss below its start"}
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    return Result(table, [], settings, notes)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, section 1."""
    said: dict[str, float] = {}
    for panel in dict.fromkeys(row["panel"] for row in table if row["panel"] != "price"):
        for method in METHODS:
            rows = of(table, panel=panel, method=method)
            first, last = rows[0], rows[-1]
            said |= {
                f"{panel}, {method}, edge at the smallest share": first["mean"],
                f"{panel}, {method}, edge at share 1": last["mean"],
                f"{panel}, {method}, least edge over rule": min(row["mean"] / row["rule"] for row in rows),
                f"{panel}, {method}, largest edge over rule": max(row["mean"] / row["rule"] for row in rows),
            }
    for method in ("DeComFL", "FedMUD"):
        times = [row["mean"] / row["rule"] for row in of(table, panel="price", method=method)]
        said |= {f"{method}, least edge over rule": min(times), f"{method}, largest edge over rule": max(times)}
    return said


@style.styled
def draw(table: Table) -> Figure:
    """K L eta over r/d for each problem, with the rules in thin lines; steps over P or r for DeComFL and FedMUD."""
    figure, panels, names = panelled(table)
    for name, axes in zip(names, panels):
        for method in dict.fromkeys(row["method"] for row in of(table, panel=name)):
            rows, how = of(table, panel=name, method=method), style.look(method)
            x, mean = [row["x"] for row in rows], [row["mean"] for row in rows]
            errors = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
            label = f"{method} (n={rows[0]['seeds']})"
            axes.errorbar(
                x, mean, errors, color=how.color, linestyle=how.dash, marker=how.marker, markersize=3.5, label=label
            )
            axes.plot(x, [row["rule"] for row in rows], color=how.color, linestyle=how.dash, linewidth=0.7, alpha=0.8)
            if name == "price":
                axes.plot(x, [2 / row["price"] for row in rows], color=how.color, linewidth=3.5, alpha=0.2)
        axes.set(xscale="log", yscale="log", title=name, xlabel="share $r/d$", ylabel=r"largest $KL\eta$")
        axes.xaxis.set_minor_formatter("")
        axes.yaxis.set_minor_formatter("")
    panels[-1].set(title=r"one step on $\frac{1}{2}\|x\|^2$", xlabel="$P$, or rank $r$ of 16")
    panels[-1].set_ylabel(r"largest $L\eta$, or $L\alpha$")
    panels[0].plot([], [], color="0.4", linewidth=0.7, label="thin line: the rule")
    panels[0].plot([], [], color="0.6", linewidth=3.5, alpha=0.4, label="pale band: the exact limit $2/c$")
    style.legend_above(figure, 6)
    return figure


EXTRAS = [Item("use/step", "The largest stable step, by rule and by experiment", measure, draw, SCALES)]
