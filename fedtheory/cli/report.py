"""report"""

import argparse
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from fedtheory.cli.output import print_json, show_ours, show_paper
from fedtheory.cli.template import render
from fedtheory.core import checks, registry
from fedtheory.core.files import require_target, write_target
from fedtheory.core.registry import PAPERS
from fedtheory.papers.evidence import decided, distinct
from fedtheory.running import records, verdicts
from fedtheory.running.records import report_rows
from fedtheory.theory.letters import letters

_LEDGER = "docs/ledger.json"  # where the page's part from the ledger is left out if there is none
_NAME_IT = "name the folder that reproduce wrote, such as --out figures"


def show(options: argparse.Namespace) -> None:
    """report"""
    if options.page is not None:
        require_target("page", options.page, options.ledger or _LEDGER)
        if options.ledger is not None and not Path(options.ledger).is_file():
            fix = "name one that `python -m fedtheory claims --save FILE` wrote, or leave it out"
            checks.reject("ledger", options.ledger, "an existing file", fix, FileNotFoundError)
    out = Path(options.out)
    if not out.is_dir():
        checks.reject("out", options.out, "a folder of results", _NAME_IT)
    found = {name: _record(out, name, options.scale) for name in papers_items()}
    rows = [row for name, record in found.items() if record for row in report_rows(name, record)]
    others = [name for name, record in found.items() if record is None and _record(out, name) is not None]
    if not rows and others:
        checks.reject("scale", options.scale, f"a scale of the results in {out}", "leave it out")
    if not rows:
        checks.reject("out", options.out, "a folder with results", _NAME_IT)
    if options.page is not None:
        write_target(options.page, report_page(rows, out, Path(options.ledger or _LEDGER), others).encode())
    if options.json:
        print_json(rows)
        return
    print_table(rows)
    items = list_items(rows, others)
    print("\n" + "\n".join(f"{item['item']:<15} | {item['verdicts']} | {item['reason']}" for item in items))
    print("\n".join(summary(rows)))


def _record(out: Path, name: str, scale: str | None = None) -> dict[str, Any] | None:
    """An item's record, of this scale if one is given; None: there is none."""
    kept = (records.load(folder, name) for folder in records.folders(out) if records.made(folder, name))
    return next((record for record in kept if scale in (None, record["scale"])), None)


def papers_items() -> dict[str, registry.Listed]:
    """The papers' figures and tables."""
    return {name: item for name, item in registry.items().items() if not item.ours}


def list_items(rows: Sequence[dict[str, Any]], others: Collection[str] = ()) -> list[dict[str, str]]:
    """Every item of the papers: how many of its numbers have which verdict, and how many were run or why none was.

    `others`: items without rows here that were made at another scale.
    """
    listed = []
    for name, item in papers_items().items():
        own = [row for row in rows if row["item"] == name]
        ran = sum(row["seeds"] > 0 for row in own)
        reason = "made at another scale than the one that is shown"
        if own or name not in others:
            reason = own[0]["reason"] if own else f"not made: python -m fedtheory reproduce {name} --scale paper"
        if ran:
            reason = f"{ran} of {len(own)} numbers, at the {own[0]['scale']} scale: {item.title}"
        found = verdicts.tally([row["verdict"] for row in own]) or verdicts.UNTESTED
        listed.append({"item": name, "verdicts": found, "reason": reason})
    return listed


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How many distinct numbers and statements there are, their verdicts, by what ours is and at which scale."""
    once = distinct(rows)
    lines = [f"{len(once)} distinct numbers and statements in {len(rows)} cells"]
    for kind, words in KINDS.items():
        own = [row for row in once if row["kind"] == kind and row["seeds"]]
        lines.append(f"{len(own)} {words}: {verdicts.tally([row['verdict'] for row in own])}")
        for ran in [name for name in verdicts.RUNS if name] if kind == "run" else []:
            part = [row["verdict"] for row in own if row["ran"] == ran]
            lines += [f"of these, {SCALE_WORDS[ran]}: {verdicts.tally(part)}"] if part else []
    return [*lines, *_together(once), f"{sum(not row['seeds'] for row in once)} were not run"]


def _together(once: Sequence[dict[str, Any]]) -> list[str]:
    """How many verdicts on intervals stay if their errors are limited for each paper's together, not one by one."""
    judged = [row for row in once if row["p"] == row["p"] and row["verdict"] != verdicts.UNTESTED]
    if not judged:
        return []
    stay: dict[bool, list[str]] = {False: [], True: []}
    for paper in PAPERS:
        own = [row for row in judged if registry.items()[row["item"]].paper == paper]
        for holm, found in stay.items():
            mask = verdicts.significant([row["p"] for row in own], any_error=holm)
            found += [row["verdict"] for row, kept in zip(own, mask) if kept]
    all_of = [row["verdict"] for row in judged]

    def words(found: Sequence[str]) -> str:
        decided = [verdict for verdict in verdicts.VERDICTS if verdict != verdicts.OPEN and verdict in all_of]
        count = sum(verdict != verdicts.OPEN for verdict in found)
        return f"{count} ({', '.join(f'{found.count(verdict)} {verdict}' for verdict in decided)})"

    return [
        f"intervals decide {words(all_of)}, each by itself at 95%",
        f"of these {words(stay[False])} stay with at most 5% false ones expected among a paper's (Benjamini-Hochberg)",
        f"of these {words(stay[True])} stay with a chance of at most 5% of any false one (Holm)",
    ]


def of_paper(paper: str, rows: Sequence[dict[str, Any]]) -> tuple[str, str, str, str]:
    """How many distinct numbers a paper has; verdicts of those that training runs decide, and of counts; the rest."""
    own = [row for row in distinct(rows) if registry.items()[row["item"]].paper == paper]
    ran = [row for row in own if row["seeds"]]
    runs, counts = ([row["verdict"] for row in ran if (row["kind"] == "run") == run] for run in (True, False))
    return str(len(own)), verdicts.tally(runs), verdicts.tally(counts), str(len(own) - len(ran))


SCALE_WORDS = {
    "paper's": "on the paper's data, network and length",
    "inferred": "on the paper's data and network, at a length that it does not print",
    "reduced": "on less of the paper's data, for fewer rounds or with a smaller network",
    "stand-in": "on other data or with another network than the paper's",
    "smoke": "as a smoke test",
}
KINDS = {
    "run": "are results of training runs",
    "count": "are counts, on messages, tensors or parameters",
    "arithmetic": "are arithmetic on printed numbers",
}


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """item | paper | ours (mean and interval over seeds) | verdict | reason"""
    width = max((len(f"{row['item']} {row['cell']}") for row in rows), default=10)
    print(f"{'item':<{width}} | {'paper':>10} | {'ours (95% interval over seeds)':<34} | {'verdict':<15} | reason")
    for row in rows:
        name, paper = f"{row['item']} {row['cell']}", show_paper(row)
        print(f"{name:<{width}} | {paper:>10} | {show_ours(row):<34} | {row['verdict']:<15} | {row['reason']}")


def concluded(out: Path, ledger: Path) -> list[str]:
    """How many conclusions have which outcome; a word where there is no ledger, or where items of `out` are missing."""
    from fedtheory.cli import conclusions  # takes the ledger's seconds, which a report without a page does not need

    if ledger.exists() and all(records.made(out, name) for name in papers_items()):
        counted = conclusions.summary({paper: decided(paper, out, ledger) for paper in PAPERS})
        return [
            "[Conclusions](conclusions.md) has each conclusion with its outcome. How many have which:",
            "",
            *counted,
        ]
    return ["The conclusions are left out here: they need all items and the ledger (`--ledger`)."]


def ran_in_words(table: Sequence[dict[str, Any]]) -> str:
    """What was run, without a network where there is none."""
    return records.ran_words(table).replace("none on ", "")


def own_lines(out: Path, name: str) -> list[str]:
    """What one of our own pictures was made from: scale, runs and seeds, and its notes."""
    record = records.load(out, name)
    ran, seeds = ran_in_words(record["table"]), records.seed_words(record["seeds"])
    said = f"Scale: {record['scale']}.{f' Run: {ran}.' if ran else ''}{f' Seeds: {seeds}.' if seeds else ''}"
    return [said, *(["", *(f"- {letters(note)}" for note in folded(record["notes"]))] if record["notes"] else [])]


NUMBER = re.compile(r"-?(inf|nan|[\d.]+(e[+-]?\d+)?)")


def folded(notes: Sequence[str]) -> list[str]:
    """Notes, of which "name: value", "name, low: value" and "name, high: value" become one, and so do all that are
    "setting: name: value" with the same setting.
    """
    found = {name: value for name, _, value in (note.rpartition(": ") for note in notes)}
    ends = {name: (f"{name}, low", f"{name}, high") for name in found}
    whole = {name: pair for name, pair in ends.items() if all(end in found for end in pair)}
    gone = {end for pair in whole.values() for end in pair}
    lines: dict[str, list[str]] = {}
    for note in notes:
        name, _, value = note.rpartition(": ")
        setting, _, what = name.partition(": ")
        if name in gone:
            continue
        spread = f" [{', '.join(found[end] for end in whole[name])}]" if name in whole else ""
        if what and NUMBER.fullmatch(value):
            lines.setdefault(f"{setting}: ", []).append(f"{what} {value}{spread}")
        else:
            lines[note + spread] = [""]
    return [head + "; ".join(said) for head, said in lines.items()]


def report_page(
    rows: Sequence[dict[str, Any]],
    out: Path,
    ledger: Path,
    others: Collection[str] = (),
) -> str:
    """docs/report.md: the conclusions, every printed number beside ours with its item's picture, our own pictures.

    Args:
        rows: of all items.
        out, ledger: where results and claims lie.
        others: see `list_items`.
    """
    own = {name: item for name, item in registry.items().items() if item.ours}
    drawn = [name for name in own if (out / name).with_suffix(".png").exists()]
    return render(
        "report.md.jinja",
        concluded=concluded(out, ledger),
        summary=summary(rows),
        items=list_items(rows, others),
        results=[_result(name, rows, out) for name in dict.fromkeys(row["item"] for row in rows)],
        own=[{"name": name, "title": own[name].title, "lines": own_lines(out, name)} for name in drawn],
    )


def _result(name: str, rows: Sequence[dict[str, Any]], out: Path) -> dict[str, Any]:
    """One item of a paper, as the page shows it."""
    own = [row for row in rows if row["item"] == name]
    record = _record(out, name, own[0]["scale"]) or {"table": [], "notes": []}
    ran = ran_in_words(record["table"])
    scale = f"Scale: {own[0]['scale']}." if any(row["seeds"] for row in own) else "Not run here."
    cells = []
    for row in own:
        how = "; ".join(part for part in (row["ran"] or row["kind"], row["tuning"]) if part) if row["seeds"] else ""
        paper, ours = show_paper(row), show_ours(row)
        cells.append([letters(row["cell"]), paper, ours, row["verdict"], how, letters(row["reason"])])
    return {
        "name": name,
        "title": registry.items()[name].title,
        "ran": scale + (f" Run: {ran}." if ran else ""),
        "rows": cells,
        "notes": list(map(letters, record["notes"])),
    }
