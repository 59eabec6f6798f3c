"""What following `advise` costs on a task that it has not seen."""

import math
from typing import Any

from matplotlib.figure import Figure

from fedtheory.papers import style
from fedtheory.papers.advice import TASKS, advise, compared
from fedtheory.papers.store import Item, Result, itself
from fedtheory.running.records import RAN, Row, Table

LIMITS: dict[str, dict[str, Any]] = {
    "no limit": {},
    "up 1/4": {"up": 1 / 4},
    "up 1/16": {"up": 1 / 16},
    "up and down 1/2": {"up": 1 / 2, "down": 1 / 2},
    "memory 1.2": {"memory": 1.2},
    "up 1/16, memory 1.5": {"up": 1 / 16, "memory": 1.5},
}


def measure(scale: str, seeds: int) -> Result:
    """Advice from three tasks, judged on the fourth: points behind the best within the limits there.

    Beside it stand the mean and the smallest loss of those who take any method within the limits.
    """
    table: Table = []
    for unseen in TASKS:
        there = compared(unseen)
        for words, limits in LIMITS.items():
            advice = advise(**limits, tasks=[name for name in TASKS if name != unseen])
            within = [row for name, row in there.items() if name not in (*advice.dear, *advice.untried)]
            level = {row["method"]: row["quality"] if math.isfinite(row["quality"]) else 0.0 for row in within}
            first, best = advice.methods[0], max(level, key=lambda name: level[name])
            row: Row = {"unseen": unseen, "limits": words, "advised": first, "best": best, "within": len(within)}
            row |= {"seeds": there[first]["seeds"], "accuracy": level[first], "highest": level[best]}
            row |= {"behind": level[best] - level[first]}
            row |= {"any": level[best] - sum(level.values()) / len(level)}
            row |= {"surely": int(there[first]["high"] < there[best]["low"])}
            table.append(row | {name: there[first][name] for name in RAN})
    behind, any_of = (sum(row[name] for row in table) / len(table) for name in ("behind", "any"))
    wrong = sum(row["surely"] for row in table)
    note = (
        f"On average the method advised first ends {behind:.1f} points behind the best within the limits; a method "
        f"drawn at random within them ends {any_of:.1f} behind. In {wrong} of {len(table)} cases another "
        "method is surely better on the unseen task (95% intervals apart)."
    )
    return Result(table, [], {"tasks": ", ".join(TASKS), "limits": str(LIMITS)}, [note])


@style.styled
def draw(table: Table) -> Figure:
    """Points behind the best within the limits: the method advised first, and the mean of all within them."""
    tasks = list(dict.fromkeys(row["unseen"] for row in table))
    figure, panels = style.new_figure(len(tasks), height=2.4, columns=2.2)
    for axes, task in zip(panels, tasks):
        rows = [row for row in table if row["unseen"] == task]
        spots = range(len(rows), 0, -1)
        axes.plot([row["any"] for row in rows], spots, "o", color="0.6", label="any method within the limits, mean")
        axes.plot([row["behind"] for row in rows], spots, "D", color=style.SEQUENCE[0], label="advised first")
        for row, spot in zip(rows, spots):
            axes.annotate(row["advised"], (row["behind"], spot), (4, 4), textcoords="offset points", fontsize=5.5)
        labels = [row["limits"] for row in rows] if axes is panels[0] else [""] * len(rows)
        axes.set_yticks(list(spots), labels)
        axes.set(xlabel="points behind the best", title=f"unseen: {task} (n={rows[0]['seeds']})", xlim=(-1, None))
        axes.set_ylim(0.4, len(rows) + 0.6)
    style.caption(figure, table, "limits: shares of FedAvg's cost; advice from the other tasks", apart="unseen")
    style.legend_above(figure, 2)
    return figure


EXTRAS = [
    Item("frontier/advice", "What advice costs on a task that it has not seen", itself(measure), draw, ("medium",))
]
