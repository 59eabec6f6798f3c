"""What a class answered: for each exercise how many were right, wrong, empty or stopped, and the slips that were met.

It reads graded notebooks, such as nbgrader's `autograded`, and counts; no name of a student is read or written.
"""

import csv
import io
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fedtheory.core import checks

ENDS = ("right", "wrong", "empty", "stopped")
_CELL = re.compile(r"exercise-(\d\d)-(\d+)-(answer|test)")
_SAID = re.compile(r"Exercise \d+: (right|no answer yet|not yet)\.\s*(.*)", re.DOTALL)


@dataclass
class Answers:
    """An exercise's answers: how many ended how, and how often a wrong one was told what."""

    ends: Counter[str] = field(default_factory=Counter)
    slips: Counter[str] = field(default_factory=Counter)


@checks.arguments
def collected(folder: str | Path) -> dict[str, Answers]:
    """Count the answers of all notebooks in a folder and below, by exercise, such as "05.1".

    Raises ValueError for a notebook that cannot be read, and where no notebook has a graded exercise.
    """
    out: dict[str, Answers] = {}
    for path in sorted(checks.path("folder", folder).rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        try:
            _add(out, json.loads(path.read_bytes())["cells"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            checks.reject("folder", str(folder), f"notebooks ({path} is none)", "move that file away")
    if not out:
        fix = "run nbgrader autograde, and give the folder autograded"
        checks.reject("folder", str(folder), "graded notebooks of this course", fix)
    return dict(sorted(out.items()))


def _add(out: dict[str, Answers], cells: list[dict]) -> None:
    """Count the answers of a notebook's cells, by exercise."""
    failed: dict[str, bool] = {}
    for cell in cells:
        if not (of := _CELL.fullmatch(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", ""))):
            continue
        name, outputs = f"{of[1]}.{of[2]}", cell.get("outputs", [])
        if of[3] == "answer":
            failed[name] = any(one.get("output_type") == "error" for one in outputs)
        else:
            _count(out.setdefault(name, Answers()), outputs, failed.get(name, False))


def _count(answers: Answers, outputs: list[dict], failed: bool) -> None:
    said = _SAID.search("".join("".join(one.get("text", "")) for one in outputs if one.get("name") == "stdout"))
    if said is None or (failed and said[1] == "no answer yet"):
        answers.ends["stopped"] += 1
        return
    answers.ends[{"right": "right", "no answer yet": "empty", "not yet": "wrong"}[said[1]]] += 1
    if said[1] == "not yet":
        answers.slips[" ".join(said[2].split(" Hint: ")[0].split())] += 1


def files(found: dict[str, Answers]) -> dict[str, bytes]:
    """The report as files: a table, a page with the slips of each exercise, a picture."""
    sheet = io.StringIO()
    table = csv.writer(sheet, lineterminator="\n")
    table.writerow(["exercise", *ENDS])
    page = ["# Answers of the class", "", "![Right, wrong, empty, stopped](answers.png)"]
    for name, one in found.items():
        table.writerow([name, *(one.ends[end] for end in ENDS)])
        counts = ", ".join(f"{one.ends[end]} {end}" for end in ENDS if one.ends[end])
        page += ["", f"## {name}: {counts}", ""]
        page += [f"- {count} x {slip}" for slip, count in one.slips.most_common()]
    return {
        "answers.csv": sheet.getvalue().encode(),
        "README.md": ("\n".join(page).rstrip() + "\n").encode(),
        "answers.png": _picture(found),
    }


def _picture(found: dict[str, Answers]) -> bytes:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 1.2 + 0.28 * len(found)), layout="constrained")
    axes, names, left = figure.add_subplot(), list(found), [0] * len(found)
    for end, colour, hatch in zip(ENDS, ("#009e73", "#d55e00", "#cccccc", "#000000"), ("", "//", "", "xx")):
        counts = [found[name].ends[end] for name in names]
        axes.barh(names, counts, left=left, color=colour, hatch=hatch, edgecolor="white", label=end)
        left = [a + b for a, b in zip(left, counts)]
    axes.invert_yaxis()
    axes.set_xlabel("answers")
    axes.set_ylabel("exercise")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
