"""The papers' conclusions, decided by the committed items and the ledger."""

import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fedtheory.core import checks, registry
from fedtheory.core.files import unseal
from fedtheory.core.registry import PAPERS
from fedtheory.papers.conclusions import Conclusion, Outcome, decide, named
from fedtheory.running import records, verdicts

Decided = list[tuple[Conclusion, Outcome]]

SAME = {  # a cell that states what another one does -> the other
    "ssf/table5: text: Full-SCAFFOLD minus SSF": "ssf/fig4: final: SSF < Full-SCAFFOLD",
    "mud/table1: CIFAR-10 N1 FedMUD+BKD+AAD": "mud/table1: CIFAR-10 N1 FedMUD+BKD+AAD < FedAvg",
    "decomfl/fig2b: scalars, FedAvg / P = 10 (above)": "decomfl/fig2a: scalars, FedAvg / K = 1 (above)",
    "mud/table2: CIFAR-10 N1 FedMUD+AAD": "mud/table2: CIFAR-10 N1 FedMUD+F < FedMUD+AAD",
    "flss/table3: ResNet-18 epochs=5 FedAvg+FLSS": "flss/table1: update, sr=1",
}


def states(row: Mapping[str, Any]) -> str:
    """What a cell of a committed item states, the same for cells that state the same.

    They are an order of two methods, or a number that is printed in several items under one name, with more digits or
    fewer, and those of SAME; and a number under two readings, each looked at in a round of its own.
    """
    paper, cell = row["item"].split("/")[0], row["cell"]
    other = SAME.get(named(row))
    if other is not None:
        return states({"item": other.split(": ")[0], "cell": other.split(": ", 1)[1], "paper": row["paper"]})
    cell = re.sub(r" in round \d+", "", cell.removesuffix(f", {verdicts.AUTHORS}"))
    return f"{paper}: {cell}" + ("" if " < " in cell else f": {row['paper']:.3g}")


def distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every number and statement once, with one verdict."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(states(row), []).append(row)
    shown = lambda group: next((row for row in group if row["seeds"]), group[0])
    return [shown(group) | {"verdict": verdicts.combine(row["verdict"] for row in group)} for group in groups.values()]


def of_paper(paper: str) -> list[Conclusion]:
    """A paper's conclusions; one of PAPERS."""
    return _module(paper).CONCLUSIONS


def take_home(paper: str) -> tuple[str, ...]:
    """Five sentences about a paper for a stranger; one of PAPERS."""
    return _module(paper).TAKE_HOME


def _module(paper: str) -> ModuleType:
    checks.choice("paper", paper, PAPERS)
    return importlib.import_module(f"fedtheory.papers.{paper}.conclusions")


def _records(path: Path) -> list[dict[str, Any]]:
    """Of the ledger's file. Raises OSError or ValueError in one line where there is none, or it is another's."""
    fix = "name the ledger with --ledger, as docs/ledger.json; python -m fedtheory claims --save FILE makes one"
    if not path.is_file():
        checks.reject("ledger", str(path), "the ledger's file", fix, FileNotFoundError)
    try:
        found = unseal(path.read_bytes())
        wrong = "no claims in it" if not isinstance(found.get("claims"), list) else None
    except ValueError as error:
        found, wrong = {}, str(error)
    if wrong is not None:
        checks.reject("ledger", str(path), f"a file of the ledger's records ({wrong})", fix)
    return found["claims"]


def decided(paper: str, figures: Path, ledger: Path) -> Decided:
    """A paper's conclusions with their outcomes.

    Args:
        paper: one of PAPERS.
        figures: folder of the committed items; the paper's own are read, and ours that a conclusion names.
        ledger: the ledger's file.

    Raises OSError or ValueError where the ledger or an item's record cannot be read, or evidence does not exist.
    """
    chosen = of_paper(paper)
    claims = {record["id"]: record for record in _records(ledger)}
    cited = {cell.partition(": ")[0] for one in chosen for cell in (*one.cells, *one.turned)}
    own = [name for name, item in registry.items().items() if item.paper == paper and (not item.ours or name in cited)]
    rows = [
        row
        for name in own
        if records.made(figures, name)
        for row in records.report_rows(name, records.load(figures, name, pictured=False))
    ]
    return [(one, decide(one, rows, claims, states)) for one in chosen]
