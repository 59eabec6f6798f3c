"""docs/methods.md: one row per method, in step with the code, the messages and the ledger."""

import inspect
from pathlib import Path

import pytest

import fedtheory
from fedtheory import FedAvg, ImageClassification, Scaffold
from fedtheory.algorithms.readings import points
from fedtheory.cli import methods
from fedtheory.compare import METHODS
from fedtheory.core import registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.theory import ledger

ROOT = Path(__file__).resolve().parent.parent


def test_every_method_has_a_row_and_every_claim_exists():
    assert set(registry.methods()) == set(METHODS) | {"MeZO"} == set(registry.method_names())
    public = {getattr(fedtheory, name) for name in fedtheory.__all__}
    built = {type(one) for one in methods.algorithms().values()} | {paper.reading for paper in points.PAPERS.values()}
    found = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, Algorithm)} - {Algorithm}
    assert built == {kind for kind in found if "method" not in kind.__dataclass_fields__}  # others are parts of one
    known = ledger.claims()
    for row in [entry.card for entry in registry.methods().values()]:
        assert set(row.claims) <= set(known)
        assert not any("|" in text for text in (row.idea, row.update, row.proved, row.fails)), "it would end the cell"


def test_the_page_is_made_from_the_code():
    """Every number on it is counted again."""
    records = ledger.load(ROOT / "docs" / "ledger.json")
    made = methods.page(records)
    assert made == (ROOT / "docs" / "methods.md").read_text(), "make it again, as its second line says"
    for name, row in ((name, entry.card) for name, entry in registry.methods().items()):
        (line,) = (line for line in made.splitlines() if line.startswith(f"| [{name}]("))
        assert line.count(" | ") == 7
        file = line.split("](../")[1].split(")")[0]
        assert (ROOT / file).exists()
        assert all(f"`{claim}`" in line for claim in row.claims)


@pytest.mark.parametrize(
    ("algorithm", "down", "up", "state"),
    [
        (FedAvg(0.1, 2), {"x": 19240}, {"dy": 19240}, 0),
        (Scaffold(0.1, 2), {"x": 19240, "c": 19240}, {"dy": 19240, "c": 19240}, 19240),
    ],
)
def test_counts(algorithm, down, up, state):
    problem = ImageClassification.load("digits", "mlp", Key(0), clients=3)
    assert methods.count(algorithm, problem) == methods.Counted(down, up, state)
