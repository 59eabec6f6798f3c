"""Searches that play many instances in one call: each has what it has alone, and starts that are given are tried."""

import importlib
import json
import math
from pathlib import Path

import pytest
import torch

from fedtheory.core.key import Key
from fedtheory.theory import search
from fedtheory.theory.search import Found, maximise_together, ratio

pytest.importorskip("z3")

LEDGER = json.loads((Path(__file__).parents[1] / "docs" / "ledger.json").read_text())
SEARCHED = {entry["id"] for entry in LEDGER["claims"] if entry["evidence"] == "search"}


@pytest.mark.parametrize(("paper", "least"), [("fedsub", 15), ("flss", 15)])
def test_a_batch_of_instances_has_the_ratios_of_each(paper, least, monkeypatch):
    """In the searches that decide a paper's claims, at edges in turn: random instances, together and one by one."""
    met = []

    def compared(sides, size, key, *, edges, **options):
        edge = list(edges)[len(met) % len(edges)]
        Z = torch.randn(2, size(edge), generator=key.fold(len(met)).generator(), dtype=torch.float64)
        together = torch.func.vmap(lambda z: sides(z, edge)[:2])(Z)
        alone = [ratio(*sides(z, edge)[:2]) for z in Z]
        assert [ratio(a, b) for a, b in zip(*together)] == pytest.approx(alone, rel=1e-7, abs=1e-9, nan_ok=True)
        met.append(edge)
        return Found(alone[0], Z[0], edge, 1)

    monkeypatch.setattr(search, "maximise_together", compared)
    for claim in importlib.import_module(f"fedtheory.theory.{paper}.claims").CLAIMS:
        if claim.id in SEARCHED:
            claim.check("quick")
    assert len(met) >= least


def test_starts_that_are_given_are_tried():
    """A peak that no random start comes near."""
    sides = lambda z, edge: (torch.exp(-50 * (z[0] - 30) ** 2), torch.ones(()))
    few = dict(edges=[None], restarts=2, steps=4)
    assert maximise_together(sides, lambda edge: 1, Key(0), **few).ratio < 1e-6
    near, unfit = torch.tensor([30.05], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    found = maximise_together(sides, lambda edge: 1, Key(0), starts=[near, unfit], **few)
    assert found.ratio > math.exp(-50 * 0.05**2)
