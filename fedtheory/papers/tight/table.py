"""How tight the theorems of docs/theory are: one entry a statement, one table and one picture a paper.

An entry has the printed constant and ours, the exact worst case where it can be computed, and what two runs of the
training code reach: a search for bad instances, and a typical run. `factor` is what ours loses to the worst case; where
that is more than GOAL, `loses` names the steps of the proof and by how much each of them does, on the worst instance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from matplotlib.figure import Figure

from fedtheory.core import checks, registry
from fedtheory.core.problem import Problem
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each
from fedtheory.running.records import Row, Table, behind
from fedtheory.theory.worst_case import found
from fedtheory.theory.worst_case import program as worst_case
from fedtheory.theory.worst_case.program import Tight

NAN = math.nan
GOAL = {"lemma": 2.0, "theorem": 10.0}
HOW = {
    "SDP": "a semidefinite program over all losses of the class, dual value",
    "exact": "a closed form that is attained",
    "lower bound": "a family of instances in closed form: the worst case is at least that",
    "not computed": "no value",
}
Steps = Mapping[str, float]  # of the page's proof: by what factor it raises the bound on the worst instance


class Mean(NamedTuple):
    """What was reached in the mean over draws, with its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float], scale: float = 1.0) -> "Mean":
        v = scale * torch.tensor(values, dtype=torch.float64)
        return cls(float(v.mean()), float(v.std() / len(v) ** 0.5))


@dataclass(frozen=True)
class Entry:
    """A lemma or a theorem.

    Fields:
        name: with the page's section.
        unit: what the constant multiplies; "left/right" where it is the ratio of both sides.
        ours: the constant that the page proves.
        setting: where the worst case was looked for.
        how: of HOW.
        worst: the program, or the closed form.
        printed: the paper's constant in the same unit; NAN where it has none.
        claim: the ledger's entry of what the paper prints; "" where it prints nothing like it.
        reached: amount of search -> the constant that the training code reached.
        typical: name of the quantity in the paper's typical run.
        steps: what the steps of the proof lose.
        why: what the value leaves open.
        descent: the constant is a guaranteed decrease: smaller is weaker.
        kind: of GOAL.
    """

    name: str
    unit: str
    ours: float
    setting: str
    how: str
    worst: Callable[[], Tight | float] | None = None
    printed: float = NAN
    claim: str = ""
    reached: Callable[[dict[str, int]], float | Mean] | None = None
    typical: str = ""
    steps: Callable[[], Steps] = field(default=dict)
    why: str = ""
    descent: bool = False
    kind: str = "lemma"

    def __post_init__(self) -> None:
        checks.choice("how", self.how, HOW)
        checks.choice("kind", self.kind, GOAL)

    def lost(self, constant: float) -> float:
        """By what factor ours is weaker than `constant`."""
        return constant / self.ours if self.descent else self.ours / constant if constant else math.inf

    def row(self, amount: dict[str, int], typical: Mapping[str, float]) -> Row:
        """Computes everything; raises AssertionError where the constant is broken by what was found."""
        value = self.worst() if self.worst else NAN
        reached = self.reached(amount) if self.reached else NAN
        exact = value.dual if isinstance(value, Tight) else value
        factor = self.lost(exact) if self.worst else NAN
        over = {} if factor <= GOAL[self.kind] else {name: by for name, by in self.steps().items() if by > 1.05}
        row: Row = {
            "statement": self.name,
            "kind": self.kind,
            "unit": self.unit,
            "constant": "descent" if self.descent else "bound",
            "claim": self.claim,
            "printed": self.printed,
            "ours": self.ours,
            "setting": self.setting,
            "how": self.how,
            "worst": exact,
            "gap": value.gap if isinstance(value, Tight) else NAN,
            "reached": reached.value if isinstance(reached, Mean) else reached,
            "standard error": reached.error if isinstance(reached, Mean) else 0.0,
            "typical": typical.get(self.typical, NAN),
            "factor": factor,
            "loses": ", ".join(f"{name} ({by:.3g})" for name, by in over.items()),
            "why": self.why,
            **behind("worst case over losses"),
        }
        if broken := over_the_line(row):
            raise AssertionError(f"{self.name}: the constant {self.ours:g} is broken: {broken}")
        return row


def over_the_line(row: Row) -> dict[str, float]:
    """What stands above our bound, in shares of it; `reached` by more than four standard errors."""
    found = shares(row)
    beyond = {"worst": 1e-5, "reached": 1e-5 + 4 * row["standard error"] / row["ours"]}
    return {name: found[name] for name, slack in beyond.items() if found[name] > 1 + slack}


def known(value: float | None) -> float:
    """A constant that the problem has."""
    assert value is not None
    return value


def gap(problem: Problem, x: torch.Tensor) -> float:
    """F(x) - F*."""
    losses = problem.losses(x.expand(problem.n, -1), problem.full(problem.clients))
    return float(losses.mean()) - known(problem.constants.f_star)


_ENTRIES: dict[str, Sequence[Entry]] = {}  # of each item


def row_of(name: str, at: int, scale: str, typical: tuple[tuple[str, float], ...]) -> Row:
    """A row of an item, in a worker that knows the item by its name alone."""
    registry.item(name)  # its module fills _ENTRIES
    return _ENTRIES[name][at].row(found.AMOUNT[scale], dict(typical))


def item(
    name: str, title: str, entries: Sequence[Entry], typical: Callable[[int], tuple[dict[str, float], str]]
) -> Item:
    """The item of a paper; `typical`: rounds -> quantities by name, and what was run."""
    _ENTRIES[name] = entries

    def measure(scale: str, seeds: int) -> Wants[Result]:
        ((values, said),) = yield from each(typical, [({"quick": 50}.get(scale, 500),)])
        table = yield from each(row_of, [(name, at, scale, tuple(values.items())) for at in range(len(entries))])
        apart = max((row["gap"] for row in table if not math.isnan(row["gap"])), default=0.0)
        notes = [
            "Worst case: " + "; ".join(f"{how}: {words}" for how, words in HOW.items()) + ".",
            f"Programs: PEPit with CLARABEL at tolerance {worst_case.TOLERANCES[0]:g}, L = 1, exact gradients; "
            f"largest difference of dual and primal value {apart:.1e}.",
            "Reached: by gradient ascent through the algorithm's own code, or by an instance that was made for it.",
            f"Typical: {said}",
        ]
        settings = {"search": found.AMOUNT[scale], "solver": "CLARABEL", "tolerance": worst_case.TOLERANCES[0]}
        return Result(table, [], settings, notes)

    return Item(name, title, measure, draw)


def shares(row: Row) -> dict[str, float]:
    """Printed, worst, reached and typical constant as shares of ours: 1 is ours, and less is what it gives away."""
    part = lambda v: (
        NAN
        if v is None or math.isnan(v) or v <= 0
        else row["ours"] / v
        if row["constant"] == "descent"
        else v / row["ours"]
    )
    return {name: part(row[name]) for name in ("printed", "worst", "reached", "typical")}


@style.styled
def draw(table: Table) -> Figure:
    """A line a statement: ours at 1, the goal as a band, the worst case, what was reached, a typical run."""
    figure, (axes,) = style.new_figure(1, height=0.9 + 0.27 * len(table), columns=2)
    blue, orange, green, red = style.SEQUENCE[:4]
    looks = {
        "printed": ("D", "none", red, "printed, where it is not false"),
        "worst": ("s", blue, blue, "worst case, exact"),
        "below": ("s", "none", blue, "worst case, at least"),
        "reached": ("o", orange, orange, "reached by the training code"),
        "typical": ("^", green, green, "typical run"),
    }
    for y, row in enumerate(reversed(table)):
        goal = 1 / GOAL[row["kind"]]
        axes.plot([goal, 1], [y, y], color="0.85", linewidth=6, solid_capstyle="butt", zorder=0)
        if all(math.isnan(share) for share in shares(row).values()):
            axes.text(math.sqrt(goal), y, row["how"], fontsize=6, ha="center", va="center")
        for name, share in shares(row).items():
            marker, face, edge, _ = looks["below" if name == "worst" and row["how"] == "lower bound" else name]
            size = {"worst": 6.0, "reached": 3.5}.get(name, 4.5)
            axes.plot([share], [y], marker, markersize=size, markerfacecolor=face, markeredgecolor=edge, clip_on=False)
    shown = {name for row in table for name, share in shares(row).items() if share == share}
    for name, (marker, face, edge, label) in looks.items():
        if name == "printed" and name not in shown:
            continue
        axes.plot([], [], marker, markersize=4.5, markerfacecolor=face, markeredgecolor=edge, label=label)
    axes.plot([], [], color="0.85", linewidth=6, label="aim: within 2 times (lemmas), 10 (theorems)")
    axes.axvline(1, color="black", linewidth=1.3)
    axes.set(xscale="log", xlabel="share of our bound (1: attained; log scale)", ylim=(-0.6, len(table) - 0.4))
    axes.set_yticks(range(len(table)), [row["statement"] for row in reversed(table)])
    axes.grid(axis="y", visible=False)
    style.legend_above(figure, 3)
    return figure
