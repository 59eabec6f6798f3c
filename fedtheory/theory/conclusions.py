"""The papers' conclusions, decided by the committed items and the ledger."""

import importlib
from pathlib import Path

from fedtheory.core import checks, records, registry
from fedtheory.core.conclusions import PAPERS, Conclusion, Outcome, decide
from fedtheory.core.files import unseal

Decided = list[tuple[Conclusion, Outcome]]


def of_paper(paper: str) -> list[Conclusion]:
    """What a paper concludes; one of PAPERS."""
    _, folder = PAPERS[checks.choice("paper", paper, PAPERS)]
    return importlib.import_module(f"fedtheory.theory.{folder}.conclusions").CONCLUSIONS


def decided(paper: str, figures: Path, ledger: Path) -> Decided:
    """A paper's conclusions with their outcomes.

    Args:
        paper: one of PAPERS.
        figures: folder of the committed items; the paper's own are read.
        ledger: the ledger's file.

    Raises OSError or ValueError where the ledger or an item's record cannot be read, or evidence does not exist.
    """
    chosen = of_paper(paper)
    claims = {record["id"]: record for record in unseal(ledger.read_bytes())["claims"]}
    own = [name for name, item in registry.items().items() if name.startswith(f"{paper}/") and not item.ours]
    rows = [
        row
        for name in own
        if records.made(figures, name)
        for row in records.report_rows(name, records.load(figures, name, pictured=False))
    ]
    return [(one, decide(one, rows, claims)) for one in chosen]
