"""Proofs in steps: every step of a page in docs/theory has a check here that a machine carries out, and a control.

A page says `[ssf.2.3]` behind a step; the paper's file `theory/<paper>/steps.py` has the step of that name. A step is
proved where its check is a proof: an identity, an implication over the whole admissible set, a certificate, an
expectation by enumeration. One that rests on a search says so.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fedtheory.core import checks, registry
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.search import implies, same

KINDS = {
    "identity": "an identity, expanded by sympy",
    "implication": "an implication between polynomials, decided by z3 over all real numbers that are admitted",
    "certificate": "an inequality, by writing the difference as a sum of squares",
    "expectation": "an expectation, by enumeration of all outcomes with symbols for what they depend on",
    "arithmetic": "exact rational arithmetic",
    "search": "a search that failed to break it: no proof",
}
_EVIDENCE = dict(zip(KINDS, ("symbolic", "smt", "symbolic", "exact", "exact", "search"), strict=True))  # of a claim


@dataclass(frozen=True)
class Step:
    """One step of a proof.

    Fields:
        id: "<paper>.<lemma>.<step>", as the page says it.
        kind: of KINDS.
        says: what is checked, in words.
        check: whether it holds.
        control: a false step near by: whether that one holds, by the same means.
        broken: what is false there, in words.
        claims: ids of the ledger that measure the same on what the training code yields.
    """

    id: str
    kind: str
    says: str
    check: Callable[[], bool]
    control: Callable[[], bool]
    broken: str
    claims: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, KINDS)

    def outcome(self) -> Outcome:
        """Run the check and its control. A control that holds raises AssertionError: the check could not fail."""
        if self.control():
            raise AssertionError(f"{self.id}: the control holds, too: {self.broken}")
        return Outcome(self.check(), _EVIDENCE[self.kind], None, self.says)


PAPERS = (*registry.PAPERS, "family", "limits")  # those with a page; the last two are of no paper


def steps(paper: str) -> dict[str, Step]:
    """Return the steps of a paper's proofs by id, in their order."""
    checks.choice("paper", paper, PAPERS)
    listed = importlib.import_module(f"fedtheory.theory.{paper}.steps").STEPS
    return {step.id: step for step in listed}


def by_steps(paper: str, *ids: str) -> Check:
    """Return a claim's check: these steps of a page hold, and their controls do not."""

    def check(effort: str) -> Outcome:
        known = steps(paper)
        failed = [id for id in ids if not known[id].outcome().holds]
        said = f"proved in docs/theory/{paper}.md, of whose steps {len(ids)} were run again"
        return Outcome(not failed, "symbolic", None, f"steps that fail: {', '.join(failed)}" if failed else said)

    return check


def follows(premises: Callable[[], tuple[list, object]]) -> Callable[[], bool]:
    """Return a check that premises imply a conclusion over all reals; `premises` makes both with z3's variables."""
    return lambda: implies(*premises()).holds


def equal(sides: Callable[[], tuple[object, object]]) -> Callable[[], bool]:
    """Return a check that two sides, made of sympy's symbols, are the same expression."""
    return lambda: same(*sides())


def every(*checks: Callable[[], bool]) -> Callable[[], bool]:
    """Whether all parts of a check hold."""
    return lambda: all(check() for check in checks)


def either(*checks: Callable[[], bool]) -> Callable[[], bool]:
    """Return a control that holds where any of these controls holds."""
    return lambda: any(check() for check in checks)


def mean_of(expression: Any, entries: tuple[Any, ...], kurtosis: Any = 3) -> Any:
    """Return the expectation of a polynomial in independent entries of mean 0 and variance 1.

    Args:
        expression: of sympy.
        entries: its symbols that are random.
        kurtosis: their fourth moment. At 3 they are standard normal, E z^k = (k - 1)!! for even k. Otherwise no power
            above the fourth may occur, and a third one only beside a first one, whose mean is 0.

    Raises ValueError where a higher power occurs.
    """
    import sympy

    def moment(k: int) -> Any:
        if kurtosis == 3:
            return 0 if k % 2 else sympy.factorial2(k - 1)
        if k > 4:
            expected = "no power above the fourth beside a kurtosis that is not 3"
            checks.reject("expression", expression, expected, "leave out kurtosis for normal entries")
        return {0: 1, 1: 0, 2: 1, 3: sympy.Symbol("third"), 4: kurtosis}[k]

    terms = sympy.Poly(sympy.expand(expression), *entries).terms()
    return sympy.expand(sum(factor * sympy.prod([moment(k) for k in powers]) for powers, factor in terms))
