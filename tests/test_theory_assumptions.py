"""What a claim's check takes for granted: printed with its place, read in one way, or not printed, and always shown."""

import json
from dataclasses import asdict, replace

import pytest

from fedtheory import cli
from fedtheory.theory import ledger
from fedtheory.theory.claim import Claim, Outcome, Printed, decide
from fedtheory.theory.letters import letters

pytest.importorskip("z3")
pytest.importorskip("sympy")


def fixed(holds, runs=None, name=""):
    """A check with a given outcome, which notes that it was run."""

    def check(effort):
        if runs is not None:
            runs.append(name)
        return Outcome(holds, "exact", None, "as told", None if holds else {"x": 1})

    return check


def entry(claim):
    """The entry of a claim with all its words, its checks replaced by such as take no time."""
    if claim.check is None:
        return decide(claim, "quick")
    return decide(
        replace(
            claim,
            check=fixed(not claim.error),
            control=fixed(False),
            as_printed=fixed(False) if claim.as_printed else None,
            repaired=fixed(True) if claim.repaired else None,
        ),
        "quick",
    )


@pytest.fixture(scope="module")
def records():
    return [{**asdict(entry(claim)), "effort": "quick", "seed": 0} for claim in ledger.claims().values()]


def words(claim):
    """All that a reader must find beside a claim."""
    found = [word for part in claim.assumes for word in part]
    if claim.caveat and not claim.error:
        found.append(f"NOT PRINTED: {claim.caveat}")
    if claim.reading:
        found.append(f"read as: {claim.reading}")
    return found


def test_every_caveat_has_a_check_of_the_statement_without_it():
    """And no statement is checked without an assumption that nobody names."""
    for claim in ledger.claims().values():
        assert bool(claim.caveat) == (claim.as_printed is not None), claim.id


@pytest.mark.parametrize(("as_printed", "verdict"), [(False, "holds-with-caveat"), (True, "holds")])
def test_the_statement_without_its_caveat_is_run_and_decides(as_printed, verdict):
    runs = []
    claim = Claim(
        "p.c", "p", "eq. (1)", "a <= b", "inequality", check=fixed(True, runs, "check"),
        control=fixed(False, runs, "control"), broken="half of b", caveat="b > 0", met="Sec. 5",
        as_printed=fixed(as_printed, runs, "as printed"),
    )  # fmt: skip
    found = decide(claim, "quick")
    assert sorted(runs) == ["as printed", "check", "control"]
    assert (found.verdict, found.caveat) == (verdict, "" if as_printed else "b > 0")
    assert (found.counterexample is None) == as_printed


def test_the_page_shows_what_every_claim_took_for_granted(records):
    lines = {line.split(" | ")[0]: line for line in ledger.page(records).splitlines() if line.startswith("| `")}
    for claim in ledger.claims().values():
        for word in words(claim):
            assert letters(word).replace("|", "\\|").replace("\n", " ") in lines[f"| `{claim.id}`"], (claim.id, word)


def test_the_command_line_shows_what_every_claim_took_for_granted(records, monkeypatch, capsys):
    monkeypatch.setattr(ledger, "check", lambda *chosen, **options: records)
    assert cli.main(["claims"]) == 0
    lines = {line.split(" | ")[0]: line for line in capsys.readouterr().out.splitlines()}
    for claim in ledger.claims().values():
        for word in words(claim):
            assert letters(word) in lines[claim.id], (claim.id, word)
    assert cli.main(["claims", "--json"]) == 0
    for record, claim in zip(json.loads(capsys.readouterr().out), ledger.claims().values(), strict=True):
        assert [part["where"] for part in record["assumes"]] == [part.where for part in claim.assumes]


@pytest.mark.parametrize("part", ["b > 0", Printed("b > 0", ""), Printed("b > 0", " "), Printed("", "eq. (1)"), None])
def test_an_assumption_without_a_place_that_prints_it_is_refused(part):
    options = {"check": fixed(True), "control": fixed(False), "broken": "half of b"}
    with pytest.raises(ValueError, match=r"assumes=.* of 'p\.c': expected Printed\(text, where\).*Fix: ") as found:
        Claim("p.c", "p", "eq. (1)", "a <= b", "inequality", assumes=(part,), **options)
    assert "\n" not in str(found.value)
    kept = Claim("p.c", "p", "eq. (1)", "a <= b", "inequality", assumes=(Printed("b > 0", "eq. (1)"),), **options)
    assert decide(kept, "quick").assumes == [{"text": "b > 0", "where": "eq. (1)"}]


def test_a_claim_that_takes_nothing_for_granted_says_so(records):
    bare = next(record for record in records if not (record["assumes"] or record["caveat"] or record["reading"]))
    assert ledger.assumed(bare) == "nothing"
    old = {name: value for name, value in bare.items() if name != "assumes"}
    assert ledger.assumed(old) == "not recorded; check the claim again"
    assert ledger.assumed(old) in ledger.page([old])
