"""What every notebook starts with, and the few lines that several of them need."""

import math
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.style import use
from matplotlib.ticker import FixedLocator

from fedtheory.core import checks, registry
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.course import rich
from fedtheory.course.rich import WIDTH
from fedtheory.course.rich import box as box
from fedtheory.papers import style
from fedtheory.papers.conclusions import number as our_number
from fedtheory.papers.evidence import decided
from fedtheory.running import records
from fedtheory.running.verdicts import VERDICTS, tally
from fedtheory.theory import ledger
from fedtheory.theory.letters import letters, untex

FLOOR = 1e-12  # smaller numbers are rounding, which differs between processors
DPI = 180  # sharp on a screen, and a notebook of many figures stays small


@checks.arguments
def start(seed: int = 0) -> Key:
    """The first line of a notebook: one thread, float64, the package's figure style, no progress bars.

    Returns the key from which all randomness of the notebook is drawn.
    """
    os.environ["TQDM_DISABLE"] = "1"
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    use(style.OURS)
    return Key(seed)


@checks.arguments
def show(figure: Figure, *, values: bool = True) -> None:
    """Display a figure as PNG, with a sentence that says what is seen, and its description in words.

    The words are checked when the notebook is tested, pictures are not: axis labels, scales, legend, and for each curve
    the number of points and its last value.

    Args:
        values: False leaves the last values out, for curves that are made of rounding errors.
    """
    from IPython.display import display

    width, _ = figure.get_size_inches()
    content = {"image/png": style.few_colours(figure, DPI), "text/plain": describe(figure, values=values)}
    look = {"width": round(110 * float(width)), "alt": seen(figure, values=values)}
    display(content, raw=True, metadata={"image/png": look})


@checks.arguments
def seen(figure: Figure, *, values: bool = True) -> str:
    """One sentence on what a figure shows: each panel's axes, and from where to where its curves go.

    Args:
        values: False leaves the values out, for curves that are made of rounding errors.
    """
    panels: list[str] = []
    names: list[str] = []
    for axes in figure.axes:
        lines = _curves(axes)
        if not (said := _heading(axes)):  # of a scale of colours
            continue
        before, names = names, [name for name, _, _ in lines]
        told = [_course(*line, values and len(lines) <= MOST) for line in lines]
        if len(lines) > MOST or (names == before and not values):
            told = ["the same curves" if names == before else f"{len(lines)} curves"] if lines else []
        panels.append(f"{said}: {', '.join(told)}" if told else said)
    return f"{'; '.join(panels) or 'A picture without axes'}."


MOST = 6  # curves of a panel that are told one by one


def _heading(axes: Axes) -> str:
    """A panel's title and axes."""
    y, x = (
        _axis(axes, which) if label else "" for which, label in (("y", axes.get_ylabel()), ("x", axes.get_xlabel()))
    )
    against = " against ".join(part for part in (y, x) if part)
    return untex(": ".join(part for part in (axes.get_title(), against) if part)).replace("\n", " ")


def _curves(axes: Axes) -> list[tuple[str, list[float], bool]]:
    """Of each named curve its name and values, and whether the axis across has names: then it goes nowhere.

    The values lie along the axis that has no names. A curve with bars counts as one.
    """
    barred = [(bars.get_label(), bars.lines[0]) for bars in axes.containers if isinstance(bars, ErrorbarContainer)]
    lines = [(line.get_label(), line) for line in axes.get_lines()]
    across, named = _named(axes.yaxis), _named(axes.yaxis) or _named(axes.xaxis)
    return [
        (str(label), list(map(float, np.ravel(line.get_xdata() if across else line.get_ydata()))), named)
        for label, line in [*lines, *barred]
        if line is not None and not str(label).startswith("_")
    ]


def _named(axis: Axis) -> bool:
    """Whether its ticks have names, not numbers, or none beside a panel whose ticks have."""
    labels = [label.get_text() for label in axis.get_ticklabels()]
    words = any(re.match(r"[^\W\d_]{2}", label) for label in labels)
    return isinstance(axis.get_major_locator(), FixedLocator) and (words or not any(labels))


def _course(label: str, found: list[float], named: bool, values: bool) -> str:
    """A curve's name, and from where to where it goes."""
    name, y = untex(label).replace("\n", " "), [value for value in found if math.isfinite(value)]
    if not values or not y:
        return name
    if named and len(y) > 1:
        return f"{name} between {brief(min(y), 2)} and {brief(max(y), 2)}"
    first, last = brief(y[0], 2), brief(y[-1], 2)
    if len(y) == 1:
        return f"{name} at {last}"
    goes = "rises" if y[-1] > y[0] else "falls"
    return f"{name} stays at {last}" if first == last else f"{name} {goes} from {first} to {last}"


@checks.arguments
def describe(figure: Figure, *, values: bool = True) -> str:
    """A figure in words: one line per panel, one per labelled curve."""
    lines = []
    for number, axes in enumerate(figure.axes, 1):
        lines.append(f"Panel {number}: {axes.get_title() or _axis(axes, 'y') + ' against ' + _axis(axes, 'x')}")
        if axes.get_title():
            lines[-1] += f" ({_axis(axes, 'y')} against {_axis(axes, 'x')})"
        for label, y, _ in (curves := _curves(axes)):
            text = f"  {label}: {len(y)} points" if len(y) != 1 else f"  {label}: 1 point"
            if values and y:
                text += f", the last at {brief(y[-1], 3)}"
            lines.append(text)
        if unnamed := len(axes.get_lines()) - len(curves):
            lines.append(f"  {unnamed} more without a name")
    return "\n".join(lines)


def _axis(axes: Axes, which: str) -> str:
    label = (axes.get_ylabel() if which == "y" else axes.get_xlabel()) or "(no label)"
    scale = axes.get_yscale() if which == "y" else axes.get_xscale()
    return label if scale == "linear" else f"{label} [{scale}]"


def brief(value: float, digits: int = 4) -> str:
    """A number in few digits; zero, or what is only rounding error, reads "~0". NaN and infinity are numbers here."""
    value = checks.outcome("value", value)
    checks.whole("digits", digits, 1, 17)
    return "~0" if abs(value) < FLOOR else f"{value:.{digits}g}"


@checks.arguments
def table(header: Sequence[str], rows: Iterable[Sequence[Any]], digits: int = 4) -> None:
    """Show rows in aligned columns, in a notebook as HTML: floats in a few digits, words to the left, numbers right.

    Formulas in words, such as "sigma^2 <= 1", are shown in the letters of mathematics; names of tests, claims and items
    become links.
    """
    checks.whole("digits", digits, 1, 17)
    header = [letters(str(name)) for name in header]
    for i, row in enumerate(rows := list(rows)):
        if not isinstance(row, (tuple, list)) or len(row) != len(header):
            checks.reject(f"rows[{i}]", row, f"{len(header)} values, as in the header", "pass one value per column")
    shown = [[brief(v, digits) if isinstance(v, float) else letters(str(v)) for v in row] for row in rows]
    rich.table(header, shown)


def reveals(answer: Any, right: float, slips: Mapping[str, float] | None = None, within: float = 1e-6) -> str:
    """What a number reveals: "" if it is right, else a word for `check`.

    Args:
        answer: the learner's.
        right: computed, never written down where the learner reads it.
        slips: what is said of a known wrong number, and that number.
        within: relative error allowed; by default what float32 leaves.
    """
    if isinstance(answer, bool) or not isinstance(answer, (int, float)) or not math.isfinite(answer):
        return f"One finite number is asked for, not {answer!r}."
    near = lambda value: abs(answer - value) <= within * max(abs(value), 1e-12)
    if near(right):
        return ""
    for word, value in (slips or {}).items():
        if near(value):
            return word
    return "Too small." if answer < right else "Too large."


def first_of(tests: Iterable[tuple[Any, str]]) -> str:
    """The word of the first test that fails, "" where all hold: for `check`. Tests that are functions are called."""
    return next((word for test, word in tests if not (test() if callable(test) else test)), "")


@checks.arguments
def located(name: str) -> Path:
    """Find a file or folder of the repository, such as "docs/ledger.json", from wherever a notebook runs.

    It is looked for in the working folder and those above it, or where the variable FEDTHEORY_ROOT says.

    Raises FileNotFoundError.
    """
    for base in records.bases():
        if (base / name).exists():
            return base / name
    fix = "run the notebook in a clone of the repository, or copy this beside it"
    checks.reject("name", name, "a file or folder of the repository", fix, FileNotFoundError)


@checks.arguments
def committed(item: str) -> dict[str, Any]:
    """The record of a figure or table that was computed before: "table" (rows), "cells", "settings", "notes", "scale".

    It is looked for in folders `figures` (see `located`): the result at the highest scale first.

    Raises FileNotFoundError with the command that makes it.
    """
    for base in records.bases():
        for folder in records.folders(base / "figures"):
            if (folder / item).with_suffix(".json").exists():
                return records.load(folder, item)
    checks.reject(
        "item",
        item,
        "a finished item in the folder figures",
        f"python -m fedtheory reproduce {item}",
        FileNotFoundError,
    )


@checks.arguments
def judged(*ids: str) -> list[dict[str, Any]]:
    """Check claims of the ledger now, at quick effort, print their verdicts, and return their records in this order.

    "left/right" is the largest ratio of an inequality's sides over all instances that were tried: at 1 they meet.

    Raises ValueError for an id that the ledger does not have.
    """
    for id in ids:
        if id not in registry.claim_names():
            checks.reject("ids", id, "the id of a claim", "see python -m fedtheory claims --list")
    known = {claim.id: claim for claim in ledger.choose(ids, None)}  # of the papers that are named, no other
    found = ledger.check([known[id] for id in ids], "quick")
    rows = []
    for one in found:
        worst = "-" if one["margin"] is None else f"{one['margin']:.2g}"
        rows.append([one["id"], one["verdict"], one["error"] or "-", worst, "yes" if one["control_refuted"] else "NO"])
    table(["claim", "verdict", "error", "left/right", "control refuted"], rows)
    return found


@checks.arguments
def conclusions(paper: str, *items: str, theory: bool = False) -> None:
    """Print a paper's conclusions, each with its outcome, our number and its place in the paper.

    They are looked for in the folders `figures` and `docs` of the repository (see `located`).

    Args:
        paper: one of "fedsub", "ssf", "mud", "flss", "decomfl".
        items: show those that rest on numbers of these items, such as "ssf/fig4"; none: all.
        theory: show those that rest on claims of the ledger alone.

    Raises FileNotFoundError where there is no ledger, ValueError for evidence that does not exist.
    """
    checks.choice("paper", paper, registry.PAPERS)
    ledger = located("docs/ledger.json")
    found = decided(paper, ledger.parents[1] / "figures", ledger)
    if items:
        known = {row["item"] for _, how in found for row in how.cells}
        chosen = {checks.choice("items", item, known) for item in items}
        found = [(one, how) for one, how in found if chosen & {row["item"] for row in how.cells}]
    if theory:
        found = [(one, how) for one, how in found if not how.cells]
    table(
        ["the paper says", "outcome", "our number", "where"],
        [(one.says, how.word(), our_number(one, how), one.where) for one, how in found],
    )


def fold(text: str, indent: str = "  ") -> None:
    """Print a paragraph in lines that fit on a page, its formulas in the letters of mathematics."""
    print(textwrap.fill(letters(text), WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def provenance(record: dict[str, Any]) -> None:
    """Print where the numbers of a committed record come from."""
    needed = ("item", "title", "scale", "seeds", "device", "settings")
    if not isinstance(record, dict) or not set(needed) <= set(record):
        checks.reject("record", record, f"a record with {', '.join(needed)}", "pass what committed(item) returns")
    print(f"{record['item']}: {record['title']}")
    print(f"scale: {record['scale']}, seeds: {records.seed_words(record['seeds'])}, device: {record['device']}")
    print(f"made by: python -m fedtheory reproduce {record['item']} --scale {record['scale']}")
    words = {name: value for name, value in record["settings"].items() if isinstance(value, (int, float, str))}
    if "method" in record["table"][0]:
        words.pop("methods", None)  # the rows name them, those that were added later, too
    plain = {name: str(value) for name, value in words.items() if not OBJECT.match(str(value))}
    on = _data(record)
    if on:
        fold(f"on: {on}")
    short = [f"{name} {value}" for name, value in plain.items() if value != on and len(value) <= 30]
    if short:
        fold(f"settings: {'; '.join(short)}")
    for name, value in plain.items():
        if value != on and len(value) > 30:
            fold(f"{name}: {value}")


OBJECT = re.compile(r"[A-Za-z_]\w*\(|[\[({]")  # how the repr of an object of the package begins


def _data(record: dict[str, Any]) -> str:
    """Data and network of an item's runs in words, as far as its record has them."""
    return str(record["settings"].get("scale in words") or records.ran_words(record["table"]))


def what_was_run(*items: str) -> None:
    """Print for each item what of it was run, from its committed record: no notebook says that in words of its own."""
    for item in items:
        fold(standing(committed(item)))


def standing(record: dict[str, Any]) -> str:
    """What of an item was run: scale, seeds, data and network, verdicts, and what was not run and why."""
    name, cells = f"{record['item']} ({record['title']})", record["cells"]
    waiting = [cell for cell in cells if not cell["seeds"]]
    if cells and len(waiting) == len(cells):
        return f"{name}: none of the paper's {len(cells)} numbers was run here. {waiting[0]['reason']}"
    seeds = "1 seed" if len(record["seeds"]) == 1 else f"{len(record['seeds'])} seeds"
    text = f"{name}: run here at the scale {record['scale']!r}, {seeds}"
    text += f", on {_data(record)}" if _data(record) else ""
    if not cells:
        return f"{text}. The paper prints no numbers for it."
    said = tally([cell["verdict"] for cell in cells if cell["seeds"]])
    lacking = f"; {len(waiting)} were not run" if waiting else ""
    return f"{text}. Of the paper's {len(cells)} numbers and statements: {said}{lacking}."


def beside(item: str, *, grid: bool = False) -> "Cells":
    """Print the numbers of a committed item beside the paper's; returns its cells by name.

    Args:
        grid: one column per setting, one row per method (the last word of a number's name, before ", level") and per
            comparison of two, for tables of many rows: ours, the paper's in brackets, and a mark for the verdict.
    """
    record = committed(item)
    cells = [cell | {name: records.number(cell[name]) for name in NUMBERS} for cell in record["cells"]]
    ran = [cell for cell in cells if cell["seeds"]]
    if grid and ran:
        _grid(ran)
    elif ran:
        rows = [[str(at), cell["cell"], *_numbers(cell), cell["verdict"]] for at, cell in enumerate(ran, 1)]
        table(["", "number", "paper", "ours [95% interval]", "verdict"], rows)
    whys: dict[str, list[int]] = {}
    for at, cell in enumerate(ran, 1):
        whys.setdefault(re.sub(r"^ours/(paper|formula) = [\d.]+(; )?", "", cell["reason"]), []).append(at)
    whys.pop("", None)
    if len(whys) <= 6 and not grid:
        for why, at in whys.items():
            fold(f"{_ranges(at)}: {why}", "   ")
    fold(tally([cell["verdict"] for cell in ran]))
    if len(ran) < len(cells):
        waiting = [cell for cell in cells if not cell["seeds"]]
        fold(f"{len(waiting)} not run here, for example {waiting[0]['cell']}: {waiting[0]['reason']}")
    return Cells({cell["cell"]: cell for cell in cells})


class Cells(dict[str, dict[str, Any]]):
    """What `beside` returns: at the end of a notebook's cell it is not shown again."""

    def _ipython_display_(self) -> None:
        pass


NUMBERS = ("paper", "ours", "low", "high")
MARKS = dict(zip(VERDICTS, "=o~?!x "))


def _numbers(cell: dict[str, Any]) -> tuple[str, str]:
    """The paper's number and ours with its interval."""
    short = lambda value: "none" if math.isnan(value) else f"{value:.3g}"
    ours = short(cell["ours"])
    if cell["seeds"] > 1 and not math.isnan(cell["ours"]):
        ours += f" [{short(cell['low'])}, {short(cell['high'])}]"
    return short(cell["paper"]), ours


def _ranges(numbers: Sequence[int]) -> str:
    """Such as 1-3, 7."""
    parts: list[list[int]] = []
    for one in numbers:
        if parts and one == parts[-1][-1] + 1:
            parts[-1].append(one)
        else:
            parts.append([one])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _grid(cells: Sequence[dict[str, Any]]) -> None:
    levels = [cell["cell"] for cell in cells if " " in cell["cell"] and not re.search(" [</] ", cell["cell"])]
    level = {name.removesuffix(", level").rsplit(" ", 1)[0] for name in levels}
    names = "|".join(sorted(map(re.escape, level), key=len, reverse=True))  # of settings: "FMNIST N1 A < B" begins so
    split = lambda cell: re.findall(f"^(?:({names}) )?(.*)$", cell)[0]
    at = {split(cell["cell"]): cell for cell in cells}
    settings, methods = (list(dict.fromkeys(key[part] for key in at)) for part in (0, 1))
    show = lambda cell: f"{cell['ours']:.3g} ({cell['paper']:.3g}) {MARKS[cell['verdict']]}"
    entry = lambda setting, method: show(at[setting, method]) if (setting, method) in at else "-"
    most = max(len(entry(setting, method)) for setting in settings for method in methods)
    fit = max(1, (WIDTH - max(map(len, methods))) // (2 + max(most, *map(len, settings))))
    for start_ in range(0, len(settings), fit):
        some = settings[start_ : start_ + fit]
        rows = [[name, *(entry(setting, name) for setting in some)] for name in methods]
        table(["", *some], [row for row in rows if set(row[1:]) != {"-"}])
    fold("ours (the paper's): " + ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items() if mark != " "))


@checks.arguments
def watch(algorithm: Algorithm, problem: Problem, state: State, key: Key) -> torch.Tensor:
    """The local iterates of all clients in one round, (local_steps, N, .), without playing the round.

    They are what the algorithm's `client` yields, in the coordinates in which it works (FedSub: B, in the subspace).
    """
    algorithm = algorithm.on(problem)
    down = algorithm.broadcast(state.server, key)
    return torch.stack(list(algorithm.client(problem, problem.clients, state.own, down, key)))
