"""Targets of low rank: whether FedMUD's product should keep its factors, by rule and by experiment."""

import math
from functools import lru_cache

import torch
from matplotlib.figure import Figure

from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each
from fedtheory.papers.use.common import SCALES, middle, of
from fedtheory.papers.use.reset import FORMS, ROUNDS, SIDE, STEPS, E, N, algorithm, left
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Row, Table, behind
from fedtheory.theory import rules

TARGETS = {"rank 4": 0.0, "rank 4 and 1% noise": 0.01}  # the share of noise in the squared length of x*
EVERY = {"quick": (1, 20), "medium": (1, 5, 60)}  # rounds between resets; the last: never


@lru_cache(maxsize=8)
def low_rank(panel: str, seed: int) -> Quadratic:
    """Two clients |x - x*|^2/2, x* a 16 x 16 matrix of rank 4 with as many squares as entries, and noise beside it."""
    g, share = Key(seed).fold("target").generator(), TARGETS[panel]
    a, b = torch.randn(2, SIDE, 4, generator=g, dtype=torch.float64)
    noise = torch.randn(SIDE, SIDE, generator=g, dtype=torch.float64)
    low = a @ b.T
    target = SIDE * (math.sqrt(1 - share) * low / low.norm() + math.sqrt(share) * noise / noise.norm())
    H = torch.eye(SIDE**2, dtype=torch.float64).expand(N, -1, -1)
    return Quadratic(H.clone(), target.reshape(-1).expand(N, -1).clone(), layout=Layout.single(SIDE, SIDE))


def target_row(panel: str, every: int, scale: str, seeds: int) -> Row:
    """What FedMUD's product leaves at the best of a grid of steps, and what the rule expects of both ends."""
    T, form, r = ROUNDS[scale], "product", FORMS["product"]
    tried = {step: left(algorithm(form, every, step, T), low_rank(panel, seeds), T, seeds) for step in STEPS[scale]}
    step = min(tried, key=lambda step: tried[step])
    problems = [low_rank(panel, seed) for seed in range(seeds)]
    found = [left(algorithm(form, every, step, T), problem, T, seed) for seed, problem in enumerate(problems)]
    singular = [torch.linalg.svdvals(problem.b[0].view(SIDE, SIDE)) for problem in problems]
    tails = [float((values[r:] ** 2).sum() / (values**2).sum()) for values in singular]
    rule = middle([max(tail, 1e-300) for tail in tails])[0] if every == T else math.nan
    rule = rules.untouched_share((r / SIDE,), T) if every == 1 else rule
    chosen = {rules.reset_interval(values.tolist(), r, SIDE, T) for values in singular}
    takes = every in {T if one is None else one for one in chosen}
    row: Row = {"panel": panel, "x": every, "step": step, "rule": rule, "chosen": takes, "seeds": seeds}
    return row | dict(zip(("mean", "low", "high"), middle(found))) | behind("quadratics", "none", T)


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Targets of low rank, with and without noise."""
    table = yield from each(target_row, [(panel, every, scale, seeds) for panel in TARGETS for every in EVERY[scale]])
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    settings = {"side": SIDE, "N": N, "local steps": E, "rounds": ROUNDS[scale], "L alpha c": STEPS[scale], "rank": 4}
    return Result(table, [], settings | {"tuned on": f"seed {seeds}"}, notes)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, section 5, on targets of low rank."""
    said: dict[str, float] = {}
    for row in table:
        name = f"{row['panel']}, s = {row['x']:g}"
        said |= {f"{name}: left": row["mean"]} | ({} if math.isnan(row["rule"]) else {f"{name}: rule": row["rule"]})
    return said


@style.styled
def draw(table: Table) -> Figure:
    """What is left over the rounds between resets; crosses: the rule's two ends."""
    figure, (axes,) = style.new_figure(1, height=2.4)
    for at, panel in enumerate(TARGETS):
        rows = of(table, panel=panel)
        color, x = style.SEQUENCE[at], [row["x"] for row in rows]
        label = f"{panel} (n={rows[0]['seeds']})"
        axes.plot(x, [row["mean"] for row in rows], "o-", color=color, markersize=3.5, label=label)
        axes.plot(x, [row["rule"] for row in rows], "x", color=color, label="the rule" if at else None)
    axes.set(xscale="log", yscale="log", xlabel="rounds between resets (last: never)")
    axes.set_ylabel(r"$\|W-W^\star\|^2$ over its start")
    axes.xaxis.set_minor_formatter("")
    style.legend_above(figure, 3)
    return figure


EXTRAS = [Item("use/targets", "Targets of low rank and a reset", measure, draw, SCALES)]
