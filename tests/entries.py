"""What every entry of the ledger owes, whatever its paper."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from fedtheory.theory import search
from fedtheory.theory.claim import ERRORS, EVIDENCE, Check, Claim, Entry, Outcome, decide

FAILED = ("slip", "false-as-stated")


def refuting(claim: Claim) -> Check | None:
    """The check that refutes a statement that fails."""
    return claim.as_printed or claim.check


def fewer(climb: Callable[..., Any], part: int, least: int) -> Callable[..., Any]:
    """A search with a part of its steps."""
    return lambda *args, steps, **options: climb(*args, steps=max(least, steps // part), **options)


@contextmanager
def brief(part: int) -> Iterator[None]:
    """Within it searches take one in `part` of their steps: at least two, or where many go together one and a batch."""
    theory = [one for of, one in sys.modules.items() if of.startswith("fedtheory.theory.")]
    with pytest.MonkeyPatch.context() as patch:
        for name, least in (("maximise", 2), ("maximise_together", 1)):
            climb = getattr(search, name)
            for module in theory:
                if getattr(module, name, None) is climb:
                    patch.setattr(module, name, fewer(climb, part, least))
        yield


@cache
def outcome(check: Check | None, refutes: bool = False) -> Outcome:
    """What a check says at quick effort, computed once for all the tests of a file; not for a package under a patch.

    What holds has a quarter of the steps; `test_theory_bench.py` gives it all of them (make test-all).

    Args:
        refutes: whether the check must find a counterexample; it then has half the steps, all if these find none.
    """
    assert check is not None
    with brief(2 if refutes else 4):
        found = check("quick")
    return check("quick") if refutes and found.holds else found


def entry_of(claim: Claim) -> Entry:
    """The claim's entry at quick effort, made of `outcome`s."""
    parts = {name: getattr(claim, name) for name in ("check", "control", "as_printed", "repaired")}
    wrong = {"control", "as_printed", *(["check"] if claim.error and claim.as_printed is None else [])}
    known = {
        name: lambda effort, name=name, check=check: outcome(check, name in wrong)
        for name, check in parts.items()
        if check is not None
    }
    return decide(replace(claim, **known), "quick")


def decided(claim: Claim) -> Entry:
    """The claim's entry, after a look at everything that its verdict obliges it to carry."""
    entry = entry_of(claim)
    json.dumps(vars(entry), allow_nan=False)
    if entry.verdict == "unchecked":
        assert len(claim.unchecked) > 60
        return entry
    assert entry.control_refuted, entry.control
    assert entry.evidence in EVIDENCE
    if entry.verdict in FAILED:
        assert entry.counterexample
        assert entry.error in ERRORS
        assert entry.implies
        assert entry.repaired
        assert entry.repaired_detail
    if entry.verdict == "holds-with-caveat":
        assert entry.counterexample
        assert entry.caveat
        assert entry.met
    return entry


def replays(check: Check | None) -> None:
    """The counterexample comes back the same."""
    assert check is not None
    first, second = outcome(check, True), outcome.__wrapped__(check, True)
    assert not second.holds
    assert second.counterexample == first.counterexample
