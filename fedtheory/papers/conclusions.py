"""What a paper concludes, and what its numbers and claims that were checked say of it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedtheory.core import checks
from fedtheory.running import verdicts


@dataclass(frozen=True)
class Conclusion:
    """A sentence that a reader takes home from a paper.

    Fields:
        says: it, in plain words.
        where: its place in the paper.
        cells: numbers that decide it, as "<item>: <cell>"; * stands for anything.
        claims: ids of the ledger that decide it.
        know: what a reader should know besides.
        turned: those of the cells of which the paper prints the other side than the sentence claims. Here the sentence
            is judged: what is reversed there holds for it, and what holds there is reversed.
    """

    says: str
    where: str
    cells: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    know: str = ""
    turned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.cells and not self.claims:
            checks.reject("cells", self.says, "numbers or claims that decide it", "name one")


@dataclass(frozen=True)
class Outcome:
    """What the evidence says.

    Fields:
        experiment: the verdict of all its numbers together, of `verdicts.VERDICTS`; None: it rests on claims alone.
        theory: ledger verdict -> how many of its claims have it.
        empirical: the same of what the paper says of runs and proves nowhere.
        cells: the rows that decide, as `records.report_rows` has them.
        claims: the ledger's records that decide.
    """

    experiment: str | None
    theory: dict[str, int]
    empirical: dict[str, int]
    cells: list[dict[str, Any]]
    claims: list[Mapping[str, Any]]

    def words(self) -> str:
        """Both, for a table."""
        part = any(row["verdict"] == verdicts.UNTESTED for row in self.cells)
        said = [] if self.experiment is None else [self.experiment]
        if part and self.experiment not in (None, verdicts.UNTESTED):
            said = [f"{self.experiment}, in part"]
        for kind, found in (("theory", self.theory), ("empirical claim", self.empirical)):
            for verdict, count in found.items():
                said.append(f"{kind} {_LEDGER_WORDS[verdict]}" + (f" ({count})" if len(self.claims) > 1 else ""))
        return "; ".join(said)


_LEDGER_WORDS = {
    "holds": "holds",
    "holds-with-caveat": "holds with a caveat",
    "slip": "holds but for a slip",
    "false-as-stated": "false as stated",
    "unchecked": "not checked",
}


def named(row: Mapping[str, Any]) -> str:
    """A cell, as `Conclusion.cells` names it."""
    return f"{row['item']}: {row['cell']}"


def decide(
    conclusion: Conclusion,
    rows: Sequence[dict[str, Any]],
    ledger: Mapping[str, Mapping[str, Any]],
    states: Callable[[Mapping[str, Any]], str] = named,
) -> Outcome:
    """The outcome of a conclusion.

    Args:
        conclusion: it.
        rows: of all committed items, as `records.report_rows` makes them.
        ledger: id -> record.
        states: what a cell states: of those that state the same and have the same result only the first is shown.

    Raises ValueError for evidence that does not exist.
    """
    said = lambda row: (states(row), *((row["ours"], row["low"], row["high"]) if row["seeds"] else ()))
    cells: list[dict[str, Any]] = []
    for pattern in (*conclusion.cells, *conclusion.turned):
        known = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        found = [row for row in rows if known.fullmatch(named(row))]
        if not found:
            checks.reject("cells", pattern, "a cell of the committed items", "see python -m fedtheory report")
        if pattern in conclusion.turned:
            turned = [row | {"verdict": verdicts.turned(row["verdict"])} for row in found]
            cells = [*(row for row in cells if row not in found), *turned]
            continue
        for row in found:
            if said(row) not in map(said, cells):
                cells.append(row)
    for name in conclusion.claims:
        checks.choice("claims", name, ledger)
    claims = [ledger[name] for name in conclusion.claims]
    empirical = [claim["verdict"] for claim in claims if claim["kind"] == "empirical"]
    theory = [claim["verdict"] for claim in claims if claim["kind"] != "empirical"]
    return Outcome(
        verdicts.combine(row["verdict"] for row in cells) if cells else None,
        _counts(theory),
        _counts(empirical),
        cells,
        claims,
    )


def _counts(found: Sequence[str]) -> dict[str, int]:
    """Of each of the ledger's verdicts that was found, in the ledger's order."""
    return {verdict: found.count(verdict) for verdict in _LEDGER_WORDS if verdict in found}
