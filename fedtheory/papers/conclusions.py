"""A paper's conclusions, and the outcome that its numbers and claims give each."""

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
        says: the sentence, of at most 14 words.
        where: its place in the paper.
        cells: the numbers that decide it, as "<item>: <cell>"; * stands for anything.
        claims: ids of the ledger's claims that decide it.
        know: the caveats.
        more: details for a reader of the evidence.
        turned: cells whose printed side is the opposite of the sentence. The sentence is judged: reversed there holds
            here, and the other way round.
        number: a cell that decides the outcome, and a few words; {} in them is our number with its interval, {100} a
            hundred times it.
    """

    says: str
    where: str
    cells: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    know: str = ""
    turned: tuple[str, ...] = ()
    more: str = ""
    number: tuple[str, str] | None = None

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

    def word(self) -> str:
        """The verdict of the runs; without runs the worst verdict of the claims."""
        if self.experiment is None:
            return LEDGER_WORDS[next(v for v in _WORST if any(claim["verdict"] == v for claim in self.claims))]
        part = self.experiment != verdicts.UNTESTED and any(row["verdict"] == verdicts.UNTESTED for row in self.cells)
        return f"{self.experiment}, in part" if part else self.experiment


LEDGER_WORDS = {
    "holds": "holds",
    "holds-with-caveat": "holds with a caveat",
    "slip": "holds but for a slip",
    "false-as-stated": "false as stated",
    "unchecked": "not checked",
}
_WORST = ("false-as-stated", "unchecked", "holds-with-caveat", "slip", "holds")


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


def number(conclusion: Conclusion, outcome: Outcome) -> str:
    """Our number, its interval and n; without such a number how many agree, or how many claims are false."""
    if conclusion.number is not None:
        cell, words = conclusion.number
        row = next((row for row in outcome.cells if named(row) == cell), None)
        if row is None:
            checks.reject("number", cell, "one of the conclusion's cells", "see python -m fedtheory conclusions --json")
        said = words.replace("{100}", _measured(row, 100)).replace("{}", _measured(row, 1))
        return f"{said}, n={row['seeds']}" if row["seeds"] > 1 else said
    if outcome.experiment is None:
        false = sum(claim["verdict"] == "false-as-stated" for claim in outcome.claims)
        many = len(outcome.claims)
        return f"{false or 'none'} of {many} claims false" if many > 1 else "theory alone"
    tested = [row["verdict"] for row in outcome.cells if row["verdict"] != verdicts.UNTESTED]
    if not tested:
        return "not tested" if any(row["seeds"] for row in outcome.cells) else "not run"
    agree = sum(verdict in (verdicts.MATCHES, verdicts.HOLDS) for verdict in tested)
    return f"{agree} of {len(tested)} numbers agree"


def _measured(row: Mapping[str, Any], times: int) -> str:
    """Ours with its interval; the difference, where an accuracy is judged beside another one."""
    if beside := verdicts.read_beside(row["reason"]):
        return beside[1].replace("+", "")
    shown = [
        f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}" for x in (times * row[end] for end in ("ours", "low", "high"))
    ]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if row["seeds"] > 1 else shown[0]


def _counts(found: Sequence[str]) -> dict[str, int]:
    """Of each of the ledger's verdicts that was found, in the ledger's order."""
    return {verdict: found.count(verdict) for verdict in LEDGER_WORDS if verdict in found}
