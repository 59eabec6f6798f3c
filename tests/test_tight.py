"""How tight the theorems are: nothing found breaks a bound, steps multiply to what it loses, sharper ones break."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import tight_pages
import torch

from fedtheory.core import records
from fedtheory.core.key import Key
from fedtheory.figures import EXTRAS
from fedtheory.figures.tight import decomfl, fedsub, flss, mud, ssf
from fedtheory.figures.tight.table import GOAL, Entry, over_the_line, shares
from fedtheory.theory import ledger
from fedtheory.theory.instances import is_smooth
from fedtheory.theory.worst_case import found, ours

ROOT = Path(__file__).resolve().parent.parent
MODULES = {"fedsub": fedsub, "ssf": ssf, "mud": mud, "flss": flss, "decomfl": decomfl}
AMOUNT = {"restarts": 1, "steps": 4}
CLOSE = 1e-5


def entry(paper: str, name: str) -> Entry:
    return next(one for one in MODULES[paper].entries() if one.name == name)


def close(number: float):
    return pytest.approx(number, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize("paper", MODULES)
def test_committed_tables(paper):
    """A row an entry; ours is never broken; where the goal is missed a step or a reason is named."""
    table = records.load(ROOT / "figures", f"{paper}/tight")["table"]
    assert [row["statement"] for row in table] == [one.name for one in MODULES[paper].entries()]
    known = {record["id"] for record in ledger.load(ROOT / "docs" / "ledger.json")}
    for row in table:
        assert not over_the_line(row), row["statement"]
        assert not row["claim"] or row["claim"] in known
        if row["how"] == "SDP":
            assert row["gap"] <= 1e-5
            part = shares(row)
            assert math.isnan(row["reached"]) or part["reached"] <= part["worst"] * (1 + CLOSE)
        if row["factor"] > GOAL[row["kind"]]:
            assert row["loses"] or row["why"]
        if row["how"] == "not computed":
            assert row["why"]
    assert EXTRAS[f"{paper}/tight"].draw(table).axes


SMALL = [
    ("ssf", "drift (2), K = 2"), ("ssf", "one round (5), K = 1"), ("ssf", "Theorem, T to infinity"),
    ("fedsub", "dual (4), tau = 3"), ("fedsub", "one round (5), tau = 2"), ("flss", "rate, one round (3)"),
    ("flss", "theorem, sampling"), ("decomfl", "theorem, noise"), ("mud", "theorem, small steps"),
]  # fmt: skip


@pytest.mark.parametrize(("paper", "name"), SMALL)
def test_a_row_again(paper, name):
    """What is committed comes out again, and a constant 1% better than the worst case is refused."""
    one = replace(entry(paper, name), reached=None)
    committed = next(
        row for row in records.load(ROOT / "figures", f"{paper}/tight")["table"] if row["statement"] == name
    )
    row = one.row(AMOUNT, {})
    assert row["worst"] == close(committed["worst"])
    assert row["ours"] == committed["ours"]
    sharper = row["worst"] * (1.01 if one.descent else 0.99)
    with pytest.raises(AssertionError, match="is broken"):
        replace(one, ours=sharper).row(AMOUNT, {})


def test_what_the_code_reaches_breaks_a_constant_below_it():
    one = replace(entry("ssf", "drift (2), K = 2"), worst=None)
    assert one.row(AMOUNT, {})["reached"] <= 0.125 * (1 + CLOSE)
    with pytest.raises(AssertionError, match="reached"):
        replace(one, ours=0.1).row(AMOUNT, {})


def test_programs_have_their_closed_forms():
    """Drift: F = -x^2/2. One step: 1 - L eta/2, and section 3 of FedSub exactly 1/2. FLSS: (1 - eta mu)^(2 tau)."""
    for K in (2, 3):
        assert ours.ssf_drift(K, 1, 1).dual == close(ssf.drift_chain(K)[0][0])
        assert ours.fedsub_drift(K, 1, 1).dual == close(fedsub.drift_chain(K)[0][0])
    assert ours.ssf_descent(1, 2, 1).dual == close(7 / 8)
    assert ours.memoryless_round(1).dual == close(7 / 8)
    assert ours.fedsub_descent(1, 2, 2).dual == close(1 / 2)
    assert ours.flss_rate(2).dual == close((1 - (1 - ours.REACH / 2 * 0.1) ** 4) / (0.1 * ours.REACH))


def test_a_third_client_changes_nothing():
    assert ours.ssf_round(2, 1, 3).dual == close(ours.ssf_round(2, 1, 2).dual)
    assert ours.memoryless_round(2, 1, 3).dual == close(ours.memoryless_round(2).dual)
    assert ours.fedsub_dual(2, 1, 3).dual == close(ours.fedsub_dual(2, 1, 2).dual)


def test_one_client_is_the_worst_for_the_theorems():
    """There the program is exact: for several, F above F* at the points of the run is necessary only."""
    assert ours.ssf_theorem(2, 2, 1).dual == close(ours.ssf_theorem(2, 2, 2).dual)
    assert ours.fedsub_theorem(2, 2, 1).dual == close(ours.fedsub_theorem(2, 2, 2).dual)


@pytest.mark.parametrize("paper", ["ssf", "fedsub"])
def test_a_search_stays_below_the_program(paper):
    for which in ("drift", "descent", {"ssf": "memory", "fedsub": "dual"}[paper], "round"):
        tight = getattr(ours, f"{paper}_{which}")(2).dual
        reached = getattr(found, paper)(which, 2, **AMOUNT)
        ratio = tight / reached if which in ("descent", "round") else reached / tight
        assert 0.4 < ratio <= 1 + CLOSE, which


def test_steps_multiply_to_what_a_bound_loses():
    chains = {
        "ssf": [(ssf.drift_chain(K), 1.388) for K in (2, 3, 50)],
        "fedsub": [(fedsub.drift_chain(K), 5 / 6) for K in (2, 3, 50)],
    }
    for values, bound in (pair for pairs in chains.values() for pair in pairs):
        assert values[0][-1] == close(bound)
        assert all(by >= 1 - 1e-12 for by in values[1].values())
    lost = math.prod(flss.rate_steps().values())
    assert lost == close((1 - (1 - ours.REACH / 2) ** 4) / ours.REACH / 0.5)
    assert math.prod(flss.drift_steps().values()) == close(6.2 / ours.flss_drift(flss.TAU, flss.STRONG).dual)
    assert math.prod(decomfl.bias_steps().values()) == close(1 / decomfl.bias())
    assert math.prod(flss.floor_steps(8 * (ours.REACH / flss.contracted()) ** 2, "").values()) == close(
        1 / flss.sampling()
    )


def test_a_staircase_is_smooth_and_loses_what_it_says():
    stairs = found.staircase(0.25, 8)
    assert is_smooth(stairs, 1.0, Key(0)) <= 1 + 1e-12
    x = -0.25 * torch.arange(9, dtype=torch.float64)[:, None]
    assert stairs.gradients(x).flatten().tolist() == pytest.approx([1.0] * 9)
    falls = (stairs.values(x)[0, :-1] - stairs.values(x)[0, 1:]).tolist()
    assert falls == pytest.approx([0.25 * (1 - 0.25 / 4)] * 8)


def test_what_the_page_quotes_is_in_the_records():
    """Every table and every number: a name or a key that the record lacks is an error, not a blank."""
    text = (ROOT / "docs" / "theory" / "tight.md").read_text()
    tables = {paper: records.load(ROOT / "figures", f"{paper}/tight")["table"] for paper in MODULES}
    assert sorted(tight_pages.TABLE.findall(text)) == sorted(MODULES)
    quoted = tight_pages.VALUE.findall(text)
    assert len(quoted) >= 10
    for paper, name, key in quoted:
        assert math.isfinite(tight_pages.value_of(tables[paper], name, key))
    assert not re.search(r"\[\w+: ", tight_pages.VALUE.sub("", text))
    with pytest.raises(KeyError):
        tight_pages.value_of(tables["ssf"], "drift", "factor")
