"""A claim, its check, its control, and the entry they make in the ledger."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fedtheory.core import checks
from fedtheory.theory.letters import untex
from fedtheory.theory.statements import statements

EVIDENCE = ("exact", "symbolic", "smt", "sdp", "search", "monte-carlo", "run")
KINDS = (
    "definition", "identity", "inequality", "expectation", "rate", "algorithm", "cost", "empirical", "chain", "remark",
)  # fmt: skip
ERRORS = (
    "misprint", "index", "unit", "missing assumption", "wrong independence", "wrong constant", "wrong step",
    "wrong statement",
)  # fmt: skip
SLIPS = ERRORS[:3]  # of the pen: put right, the statement holds
EFFORTS = ("quick", "full")
VERDICTS = ("holds", "holds-with-caveat", "slip", "false-as-stated", "unchecked")
RULE = """A claim *holds* where it is proved, or where a search that was made to break it has failed. It *holds with a
caveat* only where the paper's own uses satisfy the condition that the caveat adds, or where the caveat names the
reading of a vague word. It has a *slip* where an index, a misprint or a unit is wrong, and it holds once that is put
right. It is *false as stated* where anything else breaks it; a condition that the paper's own uses do not satisfy is
then its repair."""


@dataclass(frozen=True)
class Outcome:
    """What one check found.

    Fields:
        holds: whether the statement survived.
        evidence: how it was decided, one of EVIDENCE; never "proved" for a search.
        margin: worst left/right found for an inequality (its tightness where it holds), relative gap for an identity;
            None where no number makes sense.
        detail: one sentence: how many instances, which edge, what was found.
        counterexample: for a refuted statement the smallest instance found, as plain data (numbers, strings, lists,
            exact rationals as "p/q"), with what both sides evaluate to.
    """

    holds: bool
    evidence: str
    margin: float | None
    detail: str
    counterexample: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        checks.choice("evidence", self.evidence, EVIDENCE)


Check = Callable[[str], Outcome]  # of the effort


class Printed(NamedTuple):
    """An assumption that the paper prints.

    Fields:
        text: what is assumed.
        where: the place that prints it ("Assumption 2", "Sec. 3.4.3", "eq. (31)"): what has no such place is no
            assumption of the paper's but a caveat of ours.
    """

    text: str
    where: str


@dataclass(frozen=True)
class Claim:
    """A statement of a paper as printed, with the check that decides it and the control that the check must refute.

    Fields:
        id, paper, where, statement, kind: as in the catalogue of claims; the statement is Markdown with LaTeX.
        assumes: the assumptions that the instances satisfy and that the paper prints, each with its place. A
            hypothesis that no place prints is a caveat: see there.
        reading: where the print allows several readings, which one was taken; where nothing turns on it, nothing.
        check: decides the statement as printed.
        control: the same check with an assumption broken, a constant sharpened or the data changed: it must come out
            refuted. Another threshold on the same committed numbers cannot fail, and is none.
        broken: what the control breaks, in words.
        caveat: for a statement that holds only under an assumption nobody wrote down, or in one reading: that
            assumption. Then `check` is run with it, `as_printed` without it, and `as_printed` must be refuted.
        met: where the paper's own uses satisfy the caveat, or which vague word it reads. Without it the statement is
            false as stated, and the caveat is its repair.
        as_printed: see `caveat`.
        repair: for a false statement: the strongest repaired statement, in words, and `repaired`, its check.
        error: for a false statement, what kind, one of ERRORS; one of SLIPS has a repair that is checked.
        implies: what the printed statement would imply in practice.
        unchecked: why the claim cannot be checked here; then nothing is run.
    """

    id: str
    paper: str
    where: str
    statement: str
    kind: str
    check: Check | None = None
    control: Check | None = None
    broken: str = ""
    assumes: tuple[Printed, ...] = ()
    reading: str = ""
    caveat: str = ""
    met: str = ""
    as_printed: Check | None = None
    repair: str = ""
    repaired: Check | None = None
    error: str = ""
    implies: str = ""
    unchecked: str = ""

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, KINDS)
        if self.error:
            checks.choice("error", self.error, ERRORS)
        if self.error in SLIPS and self.repaired is None and not self.caveat:
            raise ValueError(f"error={self.error!r} of {self.id!r}: expected a repair with a check. Fix: add repaired")
        if self.caveat and bool(self.met) == bool(self.error):
            raise ValueError(
                f"caveat of {self.id!r}: expected either met, where the paper's own uses satisfy it, or error. "
                "Fix: name the place, or the kind of error"
            )
        if not self.unchecked and (self.check is None or self.control is None or not self.broken):
            raise ValueError(f"id={self.id!r}: expected a check, a control and what it breaks. Fix: add them")
        for part in self.assumes:
            if not isinstance(part, Printed) or not part.text.strip() or not part.where.strip():
                raise ValueError(
                    f"assumes={part!r} of {self.id!r}: expected Printed(text, where) with the place that prints it. "
                    "Fix: name the place, or make it a caveat with `as_printed`"
                )


def entries(paper: str) -> Callable[..., Claim]:
    """Return the function that writes a paper's claims: entry(id without the paper, kind, check, control, broken, ...).

    Place and statement are read from the paper's claims.md.
    """

    def entry(id: str, kind: str, *found: Any, **fields: Any) -> Claim:
        said = statements(paper).get(f"{paper}.{id}")
        if said is None:
            checks.reject("id", id, f"a section of theory/{paper}/claims.md", f"add ## {paper}.{id}")
        return Claim(f"{paper}.{id}", paper, said.where, said.latex, kind, *found, **fields)

    return entry


@dataclass
class Entry:
    """A line of the ledger."""

    id: str
    paper: str
    where: str
    statement: str
    kind: str
    verdict: str
    evidence: str
    margin: float | None
    detail: str
    counterexample: dict[str, Any] | None
    caveat: str
    repaired: str
    repaired_detail: str
    error: str
    implies: str
    control: str
    control_refuted: bool
    seconds: float
    assumes: list[dict[str, str]] = field(default_factory=list)
    reading: str = ""
    met: str = ""


def worst_of(*checks: Check) -> Check:
    """Return the check of a statement with several parts: all must hold; the first refuted part is the outcome."""

    def check(effort: str) -> Outcome:
        outcomes = [part(effort) for part in checks]
        for outcome in outcomes:
            if not outcome.holds:
                return outcome
        margins = [o.margin for o in outcomes if o.margin is not None]
        return Outcome(True, outcomes[0].evidence, max(margins, default=None), "; ".join(o.detail for o in outcomes))

    return check


Parts = dict[str, Outcome]  # what each of several checks found


def found_in(parts: Parts) -> dict[str, Any]:
    """The counterexample of each part."""
    return {name: part.counterexample for name, part in parts.items()}


def each_needed(
    *checks: Check, without: Mapping[str, Check] | None = None, data: Callable[[Parts], dict[str, Any]] = found_in
) -> Check:
    """The statement without one of its hypotheses at a time: refuted only where it fails without each of them.

    Args:
        checks: the statement without one of them; the outcome is the first that holds, else that of the first check.
        without: the same by the hypothesis's name, in the place of `checks`.
        data: the counterexample of all of them.
    """
    parts = {f"without {name}": check for name, check in without.items()} if without else dict(enumerate(checks, 1))

    def check(effort: str) -> Outcome:
        found = {str(name): part(effort) for name, part in parts.items()}
        first = next((one for one in found.values() if one.holds), next(iter(found.values())))
        if without:
            first = replace(first, evidence="exact", margin=None)
        detail = "; ".join(f"{name}: {one.detail}" if without else one.detail for name, one in found.items())
        return replace(first, detail=detail, counterexample=None if first.holds else data(found))

    return check


def decide(claim: Claim, effort: str) -> Entry:
    """Run a claim's check, control and repair, and enter the verdict that they decide."""
    started = time.process_time()
    if claim.check is None or claim.control is None:
        return _entry(claim, "unchecked", None, None, None, started)
    outcome = claim.check(effort)
    control = claim.control(effort)
    repaired = claim.repaired(effort) if claim.repaired is not None else None
    if repaired is not None and not repaired.holds:
        raise AssertionError(f"{claim.id}: the repaired statement was refuted: {repaired.detail}")
    failed = "slip" if claim.error in SLIPS else "false-as-stated"
    verdict = "holds" if outcome.holds else failed
    if claim.as_printed is not None and outcome.holds and not (printed := claim.as_printed(effort)).holds:
        if claim.met:
            verdict = "holds-with-caveat"
            outcome = replace(outcome, counterexample=printed.counterexample)
        else:  # the caveat is a repair
            found = [outcome.detail, *([repaired.detail] if repaired else [])]
            verdict, repaired, outcome = failed, replace(outcome, detail="; ".join(found)), printed
    return _entry(claim, verdict, outcome, control, repaired, started)


def _entry(
    claim: Claim,
    verdict: str,
    outcome: Outcome | None,
    control: Outcome | None,
    repaired: Outcome | None,
    started: float,
) -> Entry:
    wrong = verdict in ("slip", "false-as-stated")
    margin = None if outcome is None or outcome.margin is None or math.isnan(outcome.margin) else outcome.margin
    return Entry(
        id=claim.id,
        paper=claim.paper,
        where=claim.where,
        statement=untex(claim.statement),
        kind=claim.kind,
        verdict=verdict,
        evidence=outcome.evidence if outcome else "",
        margin=margin,
        detail=outcome.detail if outcome else claim.unchecked,
        counterexample=outcome.counterexample if outcome else None,
        caveat=claim.caveat if verdict == "holds-with-caveat" else "",
        repaired="; ".join(filter(None, (claim.caveat if wrong else "", claim.repair))),
        repaired_detail=repaired.detail if repaired else "",
        error=claim.error if wrong else "",
        implies=claim.implies,
        control=f"{claim.broken}: {control.detail}" if control else "",
        control_refuted=control is not None and not control.holds,
        seconds=round(time.process_time() - started, 3),
        assumes=[part._asdict() for part in claim.assumes],
        reading=claim.reading,
        met=claim.met if verdict == "holds-with-caveat" else "",
    )
