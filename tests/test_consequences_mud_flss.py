"""What the repaired theorems of FedMUD and FLSS say in practice: the tables behind the two pictures."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fedtheory.papers import EXTRAS, store
from fedtheory.papers import consequences_mud_flss as consequences
from fedtheory.papers.store import measured
from fedtheory.running import records
from fedtheory.theory.flss import round as flss_round
from fedtheory.theory.flss.round import play, square
from fedtheory.theory.mud.counterexamples import stuck

ROOT = Path(__file__).resolve().parent.parent


def committed(name, panel):
    record = records.load(ROOT / "figures", name)
    assert record["scale"] == "paper"
    return [row for row in record["table"] if row["panel"] == panel]


@pytest.mark.parametrize("panel", ["sampling", "in the span"])
def test_the_error_rises_with_R_where_the_printed_bound_falls(panel):
    rows = committed("flss/rank_bound", panel)
    measured, paper, repaired = ([row[key] for row in rows] for key in ("measured", "paper", "repaired"))
    assert measured == sorted(measured)
    assert measured[-1] > measured[1] > 0
    assert paper == sorted(paper, reverse=True)
    assert len(set(repaired)) == 1
    assert all(m <= r <= p for m, r, p in zip(measured, repaired, paper))


def test_what_the_warm_up_misses_falls_with_R():
    outside, inside = (
        [row["measured"] for row in committed("flss/rank_bound", f"warm-up, {part}")] for part in ("outside", "inside")
    )
    assert outside == sorted(outside, reverse=True)
    assert inside == sorted(inside)


def test_the_instance_meets_the_assumptions_for_every_R():
    """3.4.4 given w_t, for w_t anywhere on the first R axes; the axes are G's singular vectors, in order."""
    at = consequences.clients(1.0)
    for R in range(1, 9):
        x = torch.linspace(1, 2, 8, dtype=torch.float64) * (torch.arange(8) < R)
        flss_round.admissible(replace(at, x=x, frame=at.frame[:, :R]))
    G = (play(at).w[:, 0] - at.x).T
    second = G @ G.T
    assert float((second - second.diag().diag()).abs().max()) < 1e-15
    assert second.diag().tolist() == sorted(second.diag().tolist(), reverse=True)


def test_two_rounds_by_enumeration():
    """Over all pairs of sets, through FLSS.client and FLSS.server."""
    at = replace(consequences.clients(0.4), x=torch.linspace(1, -2, 8, dtype=torch.float64))
    frame = torch.linalg.qr(torch.linspace(-1, 1, 24, dtype=torch.float64).view(8, 3).sin() + at.frame[:, :3])[0]
    at = replace(at, frame=frame)
    last = torch.cat([play(replace(at, x=w)).w[:, 0] for w in play(at).w[:, 0]])
    total, outside = consequences.after(*consequences.updates(at), frame, at.x, 2)
    assert float(square(last).mean()) == pytest.approx(total, rel=1e-12)
    mean = last.mean(0)
    assert float(square(mean - frame @ (frame.T @ mean))) == pytest.approx(outside, rel=1e-12)


def test_G_is_reached_nowhere():
    """Along random runs from the start of the pictures."""
    at = consequences.clients(0.2)
    G2, x = consequences.reach(at, *consequences.updates(at)), at.x
    g = torch.Generator().manual_seed(0)
    for _ in range(50):
        q = play(replace(at, x=x))
        assert float(q.G2) <= G2
        x = q.w[int(torch.randint(len(q.w), (), generator=g)), 0]


def test_the_repaired_theorem_of_fedmud_is_above_what_is_measured():
    rows = committed("mud/repaired_rate", "full rank")
    assert all(row["measured"] <= row["repaired"] for row in rows)
    promised = [row for row in rows if not math.isnan(row["terms of (71)"])]
    assert [row["eta"] for row in promised] == [row["eta"] for row in rows if row["eta"] <= row["allowed"]]
    assert all(row["repaired"] <= row["terms of (71)"] for row in promised)
    assert min(row["repaired"] for row in rows) < 0.5


def test_rank_1_with_and_without_resets():
    rows = committed("mud/repaired_rate", "rank 1")
    printed = [row for row in rows if not math.isnan(row["printed"])]
    assert {row["no reset"] for row in rows} == {1.0}
    assert len(printed) > 5
    assert all(row["printed"] < 1 for row in printed)
    assert all(row["redrawn"] <= row["repaired"] for row in rows)
    for run in committed("mud/repaired_rate", "runs"):
        (row,) = (row for row in rows if row["T"] == run["T"])
        assert abs(run["measured"] - row["redrawn"]) <= run["high"] - run["low"]  # twice the 95% interval


def test_rows_come_back():
    row = consequences.full_rank(2.0**-6, 256)
    assert row["measured"] <= row["repaired"] <= row["terms of (71)"]
    committed_rows = committed("mud/repaired_rate", "rank 1")
    for power in (2, 12):
        fresh = consequences.stuck_row(power)
        (kept,) = (row for row in committed_rows if row["T"] == fresh["T"])
        for name, value in fresh.items():
            assert kept[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12, nan_ok=True))


def test_a_redrawn_U_sees_the_gradient_in_the_mean():
    """E(1 - eta U^2)^2 over U(-1/2, 1/2), by the midpoint rule, against two steps of `missed`'s mean."""
    lr, U = 0.25, (torch.arange(20000, dtype=torch.float64) + 0.5) / 20000 - 0.5
    keep = float(((1 - lr * U**2) ** 2).mean())
    assert consequences.stuck_row(2)["redrawn"] == pytest.approx(sum(keep**t for t in range(16)) / 16, rel=1e-7)
    assert consequences.played(1, 0) <= 1
    assert float(stuck().problem.values(torch.zeros(4, dtype=torch.float64))) == 0.5


@pytest.mark.parametrize("name", ["flss/rank_bound", "mud/repaired_rate"])
def test_quick_runs_draw(name, tmp_path):
    item = EXTRAS[name]
    if name.startswith("flss"):
        table = measured(store.Runner(tmp_path), item.measure("quick", 1)).table
        assert item.draw(records.read_csv(records.to_csv(table))).axes
    assert item.draw(records.load(ROOT / "figures", name)["table"]).axes
