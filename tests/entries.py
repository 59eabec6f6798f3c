"""What every entry of the ledger owes, whatever its paper."""

import json
from dataclasses import replace
from functools import cache

from fedtheory.theory.claim import ERRORS, EVIDENCE, Check, Claim, Entry, Outcome, decide

FAILED = ("slip", "false-as-stated")


def refuting(claim: Claim) -> Check | None:
    """The check that refutes a statement that fails."""
    return claim.as_printed or claim.check


@cache
def outcome(check: Check | None) -> Outcome:
    """What a check says at quick effort, computed once for all the tests of a file; not for a package under a patch."""
    assert check is not None
    return check("quick")


def entry_of(claim: Claim) -> Entry:
    """The claim's entry at quick effort, made of `outcome`s."""
    parts = {name: getattr(claim, name) for name in ("check", "control", "as_printed", "repaired")}
    known = {name: lambda effort, check=check: outcome(check) for name, check in parts.items() if check is not None}
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
    first = outcome(check)
    second = check("quick")
    assert not second.holds
    assert second.counterexample == first.counterexample
