"""A share of the generated tries of bad input (tries.py): each works, or ends at once in one line with a fix."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from forked import fork

SHARE, LEAST = 24, 400


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits each try's memory by what /proc says")
def test_every_try_works_or_is_refused_at_once_in_one_line(tmp_path, monkeypatch):
    """In a process of its own, whose children may be killed. Each group has its part, and each outcome occurs."""
    import tries

    found, said = tmp_path / "found.json", tmp_path / "said"
    monkeypatch.setattr(sys, "argv", ["tries.py", "--share", str(SHARE), "--json", str(found)])
    assert fork(tries.main, tmp_path / "out", said) == 0, said.read_text()
    outcomes = json.loads(found.read_text())
    faults = {name: outcome for name, outcome in outcomes.items() if outcome[0] not in ("works", "clear")}
    assert not faults
    counts = Counter(verdict for verdict, _ in outcomes.values())
    assert counts["clear"] + counts["works"] >= LEAST
    assert counts["works"] > 20, "numbers of NumPy, for example, are taken"


def test_the_judge_tells_the_faults_apart():
    """Each of the outcomes that count as a fault, from a call that is made to have it; `sweep` ends what hangs."""
    import tries

    def refuse(text):
        raise ValueError(text)

    good = "n=0: expected an integer >= 1. Fix: choose n within these bounds"
    for work, silent, verdict in (
        (lambda: refuse(good), True, "clear"),
        (lambda: refuse("bad value"), True, "vague"),
        (lambda: refuse(good.replace("n=", "m=")), True, "vague"),
        (lambda: refuse(good.replace(". ", ".\n")), True, "vague"),
        (lambda: [][1], True, "vague"),
        (lambda: None, True, "silent"),
        (lambda: None, False, "works"),
    ):
        assert tries.judged(tries.Try("a call", "n", work, silent, ("n=",)))[0] == verdict
