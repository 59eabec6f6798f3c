"""What the pages of docs/theory take from records, written into them: `python docs/book/_ext/page_numbers.py`.

A number stands before the comment that names it: `0.31<!-- use/step: DeComFL, least edge over rule -->`. So does a
formula of `theory/<page>/formulas.py`: `$h=L\\tilde\\eta$<!-- formula h -->`; its layout is the page's. A table of
tight.md stands between `<!-- table ssf/tight -->` and `<!-- end -->`. The strongest
evidence of its steps, counted, and the links from steps to their checks end a page.
"""

import importlib
import math
import re
import sys
from collections.abc import Mapping

from item_pages import number, record_of
from mathematics import prose
from stage import ROOT, table
from tight_pages import blank, bounds, short, value_of

from fedtheory.core import registry
from fedtheory.running import records
from fedtheory.theory import ledger
from fedtheory.theory.formula import Formula, plain
from fedtheory.theory.letters import letters
from fedtheory.theory.proof import PAPERS, WITH_FORMULAS, formulas, steps

sys.path.insert(0, str(ROOT / "proofs"))
import tie

PAGES = ROOT / "docs" / "theory"
NAMED = re.compile(r"[\w.,+-]*(<!-- ([\w/]+): (.+?) -->)")
TABLE = re.compile(r"<!-- table (\w+)/tight -->\n.*?<!-- end -->", re.DOTALL)
FORMULA = re.compile(r"(\$\$?)([^$]+)\1(?:<!-- formula (\w+) -->)?")
CHECKS = re.compile(r"\n<!-- checks -->\n.*", re.DOTALL)
HEAD = ["statement", "what the constant multiplies", "printed", "ours", "worst case", "factor"]


def filled(name: str, text: str) -> str:
    """The page of that name with today's numbers, formulas, tables and links.

    Raises KeyError for a number that no record has, and for a formula of no such name.
    """
    text = TABLE.sub(_table, NAMED.sub(lambda found: _value(found[2], found[3]) + found[1], text))
    text = CHECKS.sub("", text.rstrip("\n")).rstrip("\n") + "\n"
    if name in WITH_FORMULAS:
        text = rendered(text, formulas(name))
    return text + _checks(name)


def rendered(text: str, known: Mapping[str, Formula]) -> str:
    """The text with every named formula as its object renders it; one that differs in layout alone stays."""

    def one(found: re.Match[str]) -> str:
        sign, latex, name = found.groups()
        if name is None or plain(latex) == plain(known[name].latex()):
            return found[0]
        end = latex[len(latex.rstrip(".,:; \n")) :]
        return f"{sign}{known[name].latex()}{end}{sign}<!-- formula {name} -->"

    return FORMULA.sub(one, text)


def _value(source: str, name: str) -> str:
    if source == "margin":
        margins = {record["id"]: record["margin"] for record in ledger.load(ROOT / "docs" / "ledger.json")}
        return f"{margins[name]:.2g}"
    if source.endswith("/tight"):
        return short(value_of(_rows(source.removesuffix("/tight")), *name.rsplit(": ", 1)))
    found = importlib.import_module(registry.items()[source].module)
    value = found.says(records.load(ROOT / "figures", source)["table"])[name]
    return f"{float(f'{value:.3g}'):,g}" if math.isfinite(value) else "none"


def _rows(paper: str) -> records.Table:
    found = record_of(f"{paper}/tight")
    if found is None:
        raise KeyError(f"no record of {paper}/tight")
    return found[0]["table"]


def _table(found: re.Match[str]) -> str:
    paper = found[1]
    picture = f"![Shares of the bounds that are reached](../../figures/{paper}/tight.png)"
    lines = [f"<!-- table {paper}/tight -->", picture, "", *table(HEAD, map(_row, _rows(paper))), "<!-- end -->"]
    return "\n".join(lines)


def _row(row: records.Row) -> list[str]:
    worst, factor = bounds(row)
    return [
        prose(letters(row["statement"])),
        prose(row["unit"]),
        blank(row["printed"]),
        number(row["ours"]),
        worst,
        factor,
    ]


def _checks(name: str) -> str:
    if name not in PAPERS:
        return ""
    source = f"../../fedtheory/theory/{name}/steps.py"
    said = ((id, " ".join(step.says.split()).replace('"', "'")) for id, step in steps(name).items())
    links = (f'[{id}]: {source} "{says}"' for id, says in said)
    return "\n".join(["", "<!-- checks -->", tie.badge(name), "", *links]) + "\n"


if __name__ == "__main__":
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(filled(path.stem, path.read_text()))
