"""Forms that checks of several papers take: an implication, a sharper statement beside."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.rounding import listed
from fedtheory.theory.search import implies


def chain(premises: Callable[[], tuple[list[Any], Any]], what: str = "") -> Check:
    """An implication over the whole admissible set, decided by z3: premises() -> (premises, conclusion)."""

    def check(effort: str) -> Outcome:
        found = implies(*premises(), timeout_ms=20000)
        said = found.detail if found.model is None else f"z3 found {listed(found.model)}"
        return Outcome(found.holds, "smt", None, f"{what}: {said}" if what else said, found.model)

    return check


def with_sharper(printed: Check, sharper: Check) -> Check:
    """A statement beside a sharper one that is no part of it: verdict and margin are those of the statement."""

    def check(effort: str) -> Outcome:
        outcome, other = printed(effort), sharper(effort)
        if not other.holds:
            raise AssertionError(f"the sharper statement is broken: {other.detail}")
        return replace(outcome, detail=f"{outcome.detail}; sharper: {other.detail}")

    return check
