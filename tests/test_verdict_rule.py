"""One rule for verdicts: what a caveat owes, what a slip is, when a count matches, what a record says that it ran."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fedtheory.cli import report
from fedtheory.papers import judge
from fedtheory.papers.conclusions import Conclusion
from fedtheory.papers.conclusions import decide as conclude
from fedtheory.running import records, verdicts
from fedtheory.theory import ledger
from fedtheory.theory.claim import ERRORS, EVIDENCE, RULE, SLIPS, VERDICTS, Claim, Outcome, decide
from fedtheory.theory.letters import untex

pytest.importorskip("z3")
pytest.importorskip("sympy")

ROOT = Path(__file__).resolve().parent.parent


def told(holds, detail="as told"):
    return lambda effort: Outcome(holds, "exact", None, detail, None if holds else {"x": detail})


def claim(**options):
    """A claim whose control is refuted."""
    given = {"check": told(True, "with it"), "control": told(False), "broken": "half of b"}
    return Claim("p.c", "p", "eq. (1)", "a <= b", "inequality", **given | options)


CAVEAT = {"caveat": "b > 0", "as_printed": told(False, "without it")}


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({}, "holds"),
        (CAVEAT | {"met": "Sec. 5"}, "holds-with-caveat"),
        (CAVEAT | {"error": "missing assumption"}, "false-as-stated"),
        (CAVEAT | {"error": "unit"}, "slip"),
        ({"check": told(False), "error": "index", "repair": "j", "repaired": told(True)}, "slip"),
        ({"check": told(False), "error": "wrong step"}, "false-as-stated"),
    ],
)
def test_the_rule_decides(options, verdict):
    assert decide(claim(**options), "quick").verdict == verdict


def test_a_caveat_that_the_papers_uses_do_not_satisfy_is_the_repair():
    found = decide(claim(**CAVEAT, error="missing assumption", repair="also c"), "quick")
    assert (found.repaired, found.repaired_detail, found.detail) == ("b > 0; also c", "with it", "without it")
    assert found.counterexample == {"x": "without it"}
    assert (found.caveat, found.met) == ("", "")
    kept = decide(claim(**CAVEAT, met="Sec. 5"), "quick")
    assert (kept.caveat, kept.met, kept.detail, kept.counterexample) == (
        "b > 0",
        "Sec. 5",
        "with it",
        {"x": "without it"},
    )


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (CAVEAT, "caveat"),
        (CAVEAT | {"met": "Sec. 5", "error": "unit"}, "caveat"),
        ({"error": "typo"}, "error"),
        ({"error": "misprint"}, "error"),
    ],
)
def test_a_claim_that_breaks_the_rule_is_refused(options, name):
    with pytest.raises(ValueError, match=f"^{name}.*Fix: ") as found:
        claim(**options)
    assert "\n" not in str(found.value)


def test_an_outcome_names_how_it_was_decided():
    with pytest.raises(ValueError, match="evidence='proved'"):
        Outcome(True, "proved", None, "")


@pytest.fixture(scope="module")
def committed():
    return ledger.load(ROOT / "docs" / "ledger.json")


def test_every_committed_verdict_obeys_the_rule(committed):
    for record in committed:
        verdict, failed = record["verdict"], record["verdict"] in ("slip", "false-as-stated")
        assert verdict in VERDICTS
        assert bool(record["caveat"]) == bool(record.get("met")) == (verdict == "holds-with-caveat"), record["id"]
        assert (record["error"] in SLIPS) == (verdict == "slip"), record["id"]
        assert (record["error"] in ERRORS) == failed, record["id"]
        assert (record["evidence"] in EVIDENCE) == (verdict != "unchecked"), record["id"]
        assert record["control_refuted"] == (verdict != "unchecked"), record["id"]


def test_the_committed_words_are_those_of_the_claims(committed):
    """What a record copies from its claim."""
    for record in committed:
        one = ledger.claims()[record["id"]]
        assert (record["statement"], record["reading"]) == (untex(one.statement), one.reading)
        assert record["control"].startswith(one.broken)
        if record["verdict"] == "holds-with-caveat":
            assert (record["caveat"], record["met"]) == (one.caveat, one.met)
        if record["error"]:
            assert record["error"] == one.error


def test_one_missing_hypothesis_has_one_verdict(committed):
    """A bound in the mean that is needed surely; a loss that is smooth only in the mean of its samples."""
    found = {record["id"]: record["verdict"] for record in committed}
    surely = ("lemma4", "lemma5", "eq44", "eq45", "eq51", "eq52", "eq56", "eq57", "eq62")
    names = [*(f"mud.{name}" for name in surely), "flss.eq10-ineq / prop341"]
    samples = ("assump1-3", "theorem2 / theorem4", "eq30-33", "eq36-37ab", "eq51", "eq66", "eq69-70")
    assert {found[name] for name in (*names, *(f"decomfl.{name}" for name in samples))} == {"false-as-stated"}


def test_the_page_states_the_rule_and_counts_slips_by_themselves(committed):
    page = ledger.page(committed)
    assert RULE in page
    head = next(line for line in page.splitlines() if line.startswith("| paper | "))
    assert " | ".join(VERDICTS) in head
    assert "### fedsub.eq8-pdhg: slip" in page


def test_a_slip_is_no_failure_of_a_conclusion():
    one = {"id": "p.c", "kind": "inequality", "verdict": "slip"}
    assert conclude(Conclusion("S", "W", claims=("p.c",)), [], {"p.c": one}).word() == "holds but for a slip"


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (10500, 10500, verdicts.MATCHES),
        (10500, 14000, verdicts.SAME_ORDER),
        (8500, 10500, verdicts.SAME_ORDER),
        (640000, 740000, verdicts.SAME_ORDER),
        (1.0, 1.6, verdicts.AGAINST),
    ],
)
def test_a_count_matches_when_it_is_equal(paper, ours, verdict):
    assert judge.counted("c", paper, ours, verdicts.times(paper), "").verdict == verdict


def test_what_is_printed_in_the_place_of_a_number_has_three_words():
    cells = {
        "NaN": judge.diverges("c", [math.nan] * 2, "paper's", "printed"),
        "no value": judge.absent("c", math.nan, "a hole"),
        "a sentence": judge.side("c", math.nan, [1.0, 2.0], verdicts.above(), "reduced", "ours"),
        "": judge.absent("c", 1.0, "not run"),
    }
    for word, cell in cells.items():
        record = {"scale": "medium", "cells": [cell.written()]}
        assert records.report_rows("p/t", records.plain(record))[0]["prints"] == word
        assert ("prints" in cell.written()) == (word in ("NaN", "no value"))


def test_the_report_prints_nan_where_the_paper_does():
    lines = (ROOT / "docs" / "report.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ") and line.count(" | ") > 4]
    counts = {word: sum(row[1] == word for row in rows) for word in records.PRINTS}
    assert counts["NaN"] == sum(row[1] == "NaN" and "r=50 FedSub" in row[0] for row in rows) > 0
    assert counts["no value"] == 2
    assert counts["a sentence"] > 100


def test_units_that_disagree_refute():
    """FedMUD: a statement whose sides scale differently does not hold, whatever the search says."""
    pytest.importorskip("torch")
    from fedtheory.theory.mud.round import with_units

    wrong = with_units(told(True), lambda q: [q.G2, q.G2.sqrt()])("quick")
    assert not wrong.holds
    assert wrong.detail.endswith("units agree: False")
    assert with_units(told(True), lambda q: [q.G2, 2 * q.G2])("quick").holds


RAN = {  # item -> the columns whose values its methods' names hold, beside the method
    **dict.fromkeys([f"ssf/{name}" for name in ("fig1a", "fig2c", "table2", "table3", "table4")], ("het", "r")),
    **dict.fromkeys(["mud/fig3", "mud/fig4", "mud/fig5"], ("value",)),
}


@pytest.mark.parametrize("item", RAN)
def test_settings_of_a_record_are_those_of_its_rows(item):
    record = json.loads((ROOT / "figures" / f"{item}.json").read_text())
    with open(ROOT / "figures" / f"{item}.csv") as file:
        rows = list(csv.DictReader(file))
    named = lambda row: [f"{part}={row[part]}" if len(RAN[item]) > 1 else row[part] for part in RAN[item] if row[part]]
    wanted = {", ".join([row["method"], *named(row)]) for row in rows}
    assert set(record["settings"]["methods"]) == wanted
    for name, shown in record["settings"]["methods"].items():
        if "het=2.0" in name:
            assert "lr=0.001" in shown
        if "SSF" in name:
            assert f"rank={name.rpartition('r=')[2]}," in shown


def test_controls_on_committed_numbers_change_what_they_read():
    """The same judge on rows moved on, labels exchanged, another method: refuted; as committed: not."""
    from fedtheory.theory.ssf import experiments

    for needs, judged, changed, _ in experiments.EMPIRICAL.values():
        found = experiments.results(ROOT / "figures", *needs)
        assert judged(found).holds
        assert not judged(found, **changed).holds


def test_the_page_of_numbers_says_how_counts_match():
    page = report.report_page([], ROOT / "figures", ROOT / "docs" / "ledger.json")
    assert "a count matches when it is equal" in page
    assert replace(judge.absent("c", 1.0, "r"), prints="no value").prints in records.PRINTS
