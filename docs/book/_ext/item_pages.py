"""Every figure and table of the papers on a page of its own: our picture, the printed numbers beside ours, verdicts."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mathematics import prose
from stage import ROOT, Stage, badge, plain, slug, table, toctree
from used import Uses

from fedtheory.core import registry
from fedtheory.core.registry import PAPERS as TITLES
from fedtheory.running import records, verdicts

FIGURES = ROOT / "figures"
OURS = {
    "deep": "Deep networks",
    "family": "One theorem for the family",
    "frontier": "All methods compared",
    "use": "What a practitioner takes",
}


def record_of(name: str) -> tuple[dict[str, Any], str] | None:
    """The record of an item at the highest scale that is committed, and its picture's path from figures/."""
    for folder in ("", *(f"{scale}/" for scale in reversed(records.SCALES))):
        if records.made(FIGURES / folder, name):
            return records.load(FIGURES / folder, name), f"{folder}{name}.png"
    return None


def write(stage: Stage, uses: Uses) -> list[str]:
    """All pages of the items; returns the names that have one."""
    made = {name: found for name in registry.items() if (found := record_of(name)) is not None}
    groups: dict[str, list[str]] = {}
    for name in registry.items():
        if name in made:
            groups.setdefault(name.split("/")[0], []).append(name)
    lines = [
        "# Figures and tables",
        "",
        "The figures and tables of the five papers, with the printed numbers beside ours, and our own pictures.",
        "A number *matches* or is *contradicted* only by a run on the paper's own data, network and length; a smaller",
        "run can show that a direction holds, or find it reversed. Every item says what was run.",
        "",
        '<div class="filter"></div>',
        "",
    ]
    for paper, names in groups.items():
        lines += [f"## {TITLES.get(paper) or OURS.get(paper, paper)}", ""]
        rows = [
            [f"[{name}]({slug(name)}.md)", plain(registry.items()[name].title), _verdict(name, made[name][0])]
            for name in names
        ]
        lines += [*table(["item", "what it shows", "verdicts"], rows), ""]
    lines += toctree(slug(name) for names in groups.values() for name in names)
    stage.write("look-up/items/index.md", "\n".join(lines) + "\n")
    for name, (record, picture) in made.items():
        stage.copy(FIGURES / picture, f"look-up/items/{slug(name)}.png")
        stage.write(f"look-up/items/{slug(name)}.md", "\n".join(_page(name, record, uses)) + "\n")
    return list(made)


def _verdict(name: str, record: dict[str, Any]) -> str:
    """How many of an item's numbers have which verdict."""
    counts = Counter(cell["verdict"] for cell in record["cells"])
    if registry.items()[name].ours or not counts:
        return "ours"
    return ", ".join(f"{counts[verdict]} {badge(verdict)}" for verdict in verdicts.VERDICTS if counts[verdict])


def _page(name: str, record: dict[str, Any], uses: Uses) -> list[str]:
    ran = ran_words(record["table"])
    lines = [
        f"# {name}: {plain(registry.items()[name].title)}",
        "",
        f"{_verdict(name, record)}. Scale: {record['scale']}." + (f" Run: {plain(ran)}." if ran else ""),
        "",
        f"![{alternative(record)}]({slug(name)}.png)",
        "",
    ]
    if record["cells"]:
        lines += ['<div class="filter"></div>', ""]
        rows = [
            [prose(c["cell"]), row["prints"] or number(c["paper"]), ours(c), badge(c["verdict"]), prose(c["reason"])]
            for c, row in zip(record["cells"], records.report_rows(name, record), strict=True)
        ]
        lines += ["{.beside}", *table(["number", "paper", "ours [95% interval]", "verdict", "why"], rows), ""]
    lines += notes(record["notes"])
    seeds = records.seed_words(record["seeds"])
    lines += [
        f"Made by `python -m fedtheory reproduce {name} --scale {record['scale']}`, "
        + (f"{'seeds' if len(record['seeds']) > 1 else 'seed'} {seeds}, " if seeds else "")
        + f"on {plain(record['device'])}, "
        + (f"in {record['seconds']:,.0f} seconds." if record["seconds"] >= 1 else "in less than a second.")
        + " Runs that were kept are not counted.",
        "",
    ]
    if places := uses.of(name):
        lines += [f"In {', '.join(f'[{title}](../../{target})' for title, target in places)}.", ""]
    return lines


def ran_words(table: Sequence[Mapping[str, Any]]) -> str:
    """What ran, without a network where there is none, and "1 round"."""
    words = re.sub(r"(^|; )none on ", r"\1", records.ran_words(table))
    return re.sub(r"(?<![\d,.])(1 (?:client|round))s\b", r"\1", words)


NAMED = re.compile(r"(?P<name>[^:]+(?:: [^:]+)?): (?P<value>-?[\d.]+(?:e[+-]?\d+)?|inf)")


def notes(of: Sequence[str]) -> list[str]:
    """An item's notes: sentences as a list; names with a number, and its interval where one was noted, as a table."""
    values = {found["name"]: found["value"] for note in of if (found := NAMED.fullmatch(note))}
    lines = [f"- {prose(note)}" for note in of if not NAMED.fullmatch(note)]
    rows = []
    for name, value in values.items():
        ends = [values.get(f"{name}, {end}") for end in ("low", "high")]
        if all(ends):
            rows.append([prose(name), rf"{value} \[{', '.join(map(str, ends))}\]"])
        elif not re.search(", (low|high)$", name):
            rows.append([prose(name), value])
    return [*lines, "", *(table(["number", "value [95% interval]"], rows) if rows else []), ""]


def alternative(record: dict[str, Any]) -> str:
    """What stands in the place of an item's picture: its title, who made it, where its numbers stand in words."""
    where = "table" if record["cells"] else "notes"
    return plain(f"{record['title']}: our runs at the scale {record['scale']}, in numbers in the {where} below.")


def number(value: Any) -> str:
    """Three digits; "none" for what diverged or was not run."""
    value = records.number(value)
    if not math.isfinite(value):
        return "none" if math.isnan(value) else "infinite"
    return f"{value:.3g}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"


def ours(cell: dict[str, Any]) -> str:
    """Mean, 95% interval over seeds, number of seeds."""
    text = number(cell["ours"])
    if cell["seeds"] > 1 and text != "none":
        text += rf" \[{number(cell['low'])}, {number(cell['high'])}\], {cell['seeds']} seeds"
    return text
