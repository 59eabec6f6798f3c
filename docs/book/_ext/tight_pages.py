"""The page docs/theory/tight.md: the tables and pictures of the items <paper>/tight, with their numbers in the text.

The page holds a short table of each (`page_numbers.py`); here the whole one takes its place.
"""

import re
from collections.abc import Mapping
from typing import Any

from claim_pages import Place
from item_pages import FIGURES, number, record_of
from mathematics import prose
from stage import ROOT, Stage, badge, bare, plain, proved, slug, table

from fedtheory.running import records
from fedtheory.theory import ledger
from fedtheory.theory.letters import letters
from fedtheory.theory.proof import PAPERS

TABLE = re.compile(r"<!-- table (\w+)/tight -->\n.*?<!-- end -->", re.DOTALL)
HEAD = ["statement", "what the constant multiplies", "printed", "ours", "worst case", "reached", "typical", "factor"]


def write(stage: Stage, where: Mapping[str, Place]) -> None:
    text = proved("tight")
    known = {record["id"]: record for record in ledger.load(ROOT / "docs" / "ledger.json")}
    found = {paper: record_of(f"{paper}/tight") for paper in PAPERS}
    held = {paper: (made[0]["table"], made[1]) for paper, made in found.items() if made}

    def shown(mark: re.Match[str]) -> str:
        rows, picture = held[mark[1]]
        stage.copy(FIGURES / picture, f"theory/tight-{mark[1]}.png")
        return "\n".join(_shown(mark[1], rows, known, where))

    stage.write("theory/tight.md", bare(TABLE.sub(shown, text)))


def value_of(rows: records.Table, name: str, key: str) -> float:
    """Of the row of that statement.

    Raises KeyError for one that the record does not have.
    """
    return records.number({row["statement"]: row for row in rows}[name][key])


def short(value: float) -> str:
    """Two digits, more where they stand before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _shown(paper: str, rows: records.Table, known: Mapping[str, Any], where: Mapping[str, Place]) -> list[str]:
    """Picture, table, and a line a row on the setting, the steps that lose, and what is open."""
    lines = [
        f"![Shares of the bounds on the page of {paper} that are reached](tight-{paper}.png)",
        "",
        *table(HEAD, (_row(r, known, where) for r in rows)),
        "",
    ]
    lines += ["<details>", "<summary>Settings, and which steps lose</summary>", ""]
    for row in rows:
        loses = f" Steps that lose, by what factor: {prose(row['loses'])}." if row["loses"] else ""
        why = " " + prose(f"{row['why'][0].upper()}{row['why'][1:]}.") if row["why"] else ""
        gap = records.number(row["gap"])
        solver = f", gap {gap:.0e}" if row["how"] == "SDP" else ""
        lines.append(
            f"- **{plain(letters(row['statement']))}**: {prose(row['setting'])} ({row['how']}{solver}).{loses}{why}"
        )
    return [
        *lines,
        "",
        "</details>",
        "",
        f"The table and its record: [{paper}/tight](../look-up/items/{slug(paper + '/tight')}.md).",
    ]


def _row(row: records.Row, known: Mapping[str, Any], where: Mapping[str, Place]) -> list[str]:
    worst, factor = bounds(row)
    return [
        plain(letters(row["statement"])),
        prose(row["unit"]),
        _printed(row, known, where),
        number(row["ours"]),
        worst,
        blank(row["reached"]),
        blank(row["typical"]),
        factor,
    ]


def bounds(row: records.Row) -> tuple[str, str]:
    """The worst case and the factor that ours loses; a family of instances bounds both from one side."""
    if row["how"] == "not computed":
        return "not computed", ""
    worst, factor = number(row["worst"]), short(records.number(row["factor"]))
    if row["how"] == "lower bound":
        return f"{'at most' if row['constant'] == 'descent' else 'at least'} {worst}", f"at most {factor}"
    return worst, factor


def blank(value: Any) -> str:
    text = number(value)
    return "" if text == "none" else text


def _printed(row: records.Row, known: Mapping[str, Any], where: Mapping[str, Place]) -> str:
    """The printed constant, or the ledger's verdict on what is printed, linked."""
    text, id = blank(row["printed"]), row["claim"]
    if not id:
        return text
    verdict = known[id]["verdict"]
    link = f"[{id}](../{where[id].page}.md#{where[id].anchor})"
    return f"{text or badge(verdict)} {link}"
