"""report"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedtheory.cli.say import emit
from fedtheory.core import records, registry
from fedtheory.core.files import require_target, write_target


def report_rows(item: str, record: dict[str, Any]) -> list[dict[str, Any]]:
    """One object per number that the paper prints."""
    rows = []
    for cell in record["cells"]:
        numbers = {name: records.number(cell[name]) for name in ("paper", "ours", "low", "high")}
        rows.append(
            {
                "item": item,
                "cell": cell["cell"],
                **numbers,
                "kind": cell.get("kind", "run"),
                "seeds": cell["seeds"],
                "scale": record["scale"],
                "verdict": cell["verdict"],
                "reason": cell["reason"],
            }
        )
    return rows


def show(options: argparse.Namespace) -> None:
    """report"""
    if options.page is not None:
        require_target("page", options.page)
    out = Path(options.out)
    rows = []
    for name in papers_items():
        for folder in (out, *(out / scale for scale in reversed(records.SCALES))):
            if not records.made(folder, name):
                continue
            record = records.load(folder, name)
            if options.scale in (None, record["scale"]):
                rows += report_rows(name, record)
                break
    if options.page is not None:
        write_target(options.page, report_page(rows, out).encode())
    if options.json:
        emit(rows)
        return
    print_table(rows)
    items = list_items(rows)
    print("\n" + "\n".join(f"{item['item']:<15} | {item['verdict']:<12} | {item['reason']}" for item in items))
    print(f"{len(items)} items: {count_verdicts(items)}")
    print("\n".join(summary(rows)))


def papers_items() -> dict[str, registry.Listed]:
    """The papers' figures and tables."""
    return {name: item for name, item in registry.items().items() if not item.ours}


def list_items(rows: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Every item of the papers: the worst verdict of its numbers that were run, and how many were or why none was."""
    listed = []
    for name, item in papers_items().items():
        own = [row for row in rows if row["item"] == name]
        ran = sum(row["verdict"] != records.VERDICTS[-1] for row in own)
        reason = own[0]["reason"] if own else f"not made: python -m fedtheory reproduce {name} --scale paper"
        if ran:
            reason = f"{ran} of {len(own)} numbers, at the {own[0]['scale']} scale: {item.title}"
        verdict = records.overall([row["verdict"] for row in own]) if own else records.VERDICTS[-1]
        listed.append({"item": name, "verdict": verdict, "reason": reason})
    return listed


def count_verdicts(rows: Sequence[dict[str, Any]]) -> str:
    """Such as "40 reproduced, 3 trend only, 2 differs"."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in records.VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count or verdict != "not run here")


def distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every printed number once, with the worst of its verdicts: a cell of one paper that stands in several items."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        paper = row["item"].split("/")[0]
        groups.setdefault((paper, row["cell"], str(row["paper"])), []).append(row)
    return [group[0] | {"verdict": records.overall([row["verdict"] for row in group])} for group in groups.values()]


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How many distinct numbers there are, their verdicts, and the verdicts by what ours is."""
    once = distinct(rows)
    lines = [f"{len(once)} distinct numbers in {len(rows)} cells: {count_verdicts(once)}"]
    for kind, words in KINDS.items():
        own = [row for row in once if row["kind"] == kind and row["verdict"] != records.VERDICTS[-1]]
        lines.append(f"{len(own)} {words}: {count_verdicts(own)}")
    return lines


KINDS = {
    "run": "of them are results of training runs",
    "count": "are counts, on messages, tensors or parameters",
    "arithmetic": "are arithmetic on printed numbers",
}


def show_number(value: float) -> str:
    """Three digits; NaN for a run that diverged or was not made."""
    return "NaN" if math.isnan(value) else f"{value:.3g}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"


def show_ours(row: dict[str, Any]) -> str:
    """Mean, 95% interval and n."""
    text = show_number(row["ours"])
    if row["seeds"] > 1 and not math.isnan(row["ours"]):
        text += f" [{show_number(row['low'])}, {show_number(row['high'])}] n={row['seeds']}"
    return text


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """item | paper | ours (mean and interval over seeds) | verdict | reason"""
    width = max((len(f"{row['item']} {row['cell']}") for row in rows), default=10)
    print(f"{'item':<{width}} | {'paper':>8} | {'ours (95% interval over seeds)':<34} | {'verdict':<10} | reason")
    for row in rows:
        name, paper = f"{row['item']} {row['cell']}", show_number(row["paper"])
        print(f"{name:<{width}} | {paper:>8} | {show_ours(row):<34} | {row['verdict']:<10} | {row['reason']}")


def report_page(rows: Sequence[dict[str, Any]], out: Path) -> str:
    """docs/report.md: every printed number beside ours, with the picture of its item, and our own pictures in `out`."""
    lines = [
        "# The papers' numbers and ours",
        "",
        "Generated by `python -m fedtheory report --page docs/report.md` from the committed results; not edited by",
        "hand. *reproduced*: within a factor of 1.5 of the printed number, or the printed statement holds. *trend",
        "only*: the printed order holds, the level does not. *differs*: neither. *not run here*: the reason names",
        "what is missing and the command. Intervals: mean and 95% Student interval over seeds.",
        "",
        "A number that a paper prints in several items is counted once, with the worst of its verdicts:",
        "",
        *(f"- {line}" for line in summary(rows)),
        "",
        "## The items",
        "",
        "An item has the worst verdict of its numbers that were run.",
        "",
        "| item | verdict | numbers run, or what is missing |",
        "|---|---|---|",
    ]
    items = list_items(rows)
    lines += [f"| {item['item']} | {item['verdict']} | {item['reason']} |" for item in items]
    lines += ["", f"{len(items)} items: {count_verdicts(items)}."]
    for name in dict.fromkeys(row["item"] for row in rows):
        own = [row for row in rows if row["item"] == name]
        lines += ["", f"## {name}: {registry.items()[name].title}", "", f"![{name}](../figures/{name}.png)", ""]
        record = records.load(out, name) if records.made(out, name) else {"table": [], "notes": []}
        ran = records.ran_words(record["table"])
        lines += [
            f"Scale: {own[0]['scale']}." + (f" Run: {ran}." if ran else ""),
            "",
            "| cell | paper | ours | verdict | reason |",
            "|---|---|---|---|---|",
        ]
        for row in own:
            paper = show_number(row["paper"])
            lines.append(f"| {row['cell']} | {paper} | {show_ours(row)} | {row['verdict']} | {row['reason']} |")
        lines += ["", *(f"- {note}" for note in record["notes"])] if record["notes"] else []
    for name, item in registry.items().items():
        if item.ours and (out / name).with_suffix(".png").exists():
            lines += ["", f"## {name}: {item.title}", "", f"![{name}](../figures/{name}.png)"]
    return "\n".join(lines) + "\n"
