"""What the items of this folder share."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.core.problem import Problem
from fedtheory.papers import style
from fedtheory.papers.store import interval
from fedtheory.running.records import Row, Table

SCALES = ("quick", "medium")


def middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean and 95% interval of positive numbers, one per seed; of ratios paired by seed as well."""
    mean, low, high = (math.exp(value) for value in interval([math.log(value) for value in values]))
    return mean, low, high


def squares(algorithm: Algorithm, problem: Problem, rounds: int, seed: int) -> list[float]:
    """||grad F(x^t)||^2 for t < rounds, all clients in every round."""
    key, found = Key(seed), []
    state = algorithm.init(problem, problem.start(), key)
    for t in range(rounds):
        found.append(float(problem.grad(state.server.x).square().sum()))
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
    return found


def filled(rows: Sequence[Row]) -> Table:
    """Rows with the same columns; a number that a row has not is NaN."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name, math.nan) for name in names} for row in rows]


def of(table: Table, **wanted: object) -> Table:
    """The rows that have these values."""
    return [row for row in table if all(row[name] == value for name, value in wanted.items())]


def panelled(table: Table) -> tuple[Figure, list[Axes], list[str]]:
    """A figure with a panel for each name in the column "panel": the panels and their names, in the table's order."""
    names = list(dict.fromkeys(row["panel"] for row in table))
    figure, panels = style.new_figure(len(names), height=2.9)
    return figure, list(panels), names
