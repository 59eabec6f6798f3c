"""docs/open-points.md: every option of a reading answers a point, and what is said to show the choices exists."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fedtheory.algorithms.readings import OpenPoint, points
from fedtheory.core import registry
from fedtheory.theory import ledger

ROOT = Path(__file__).resolve().parent.parent


def faults(paper: points.Paper) -> list[str]:
    """What is wrong with a paper's list."""
    known, found = points.options(paper), []
    answered = {name for point in paper.points for name in point.options}
    found += [f"{name}: no such option" for name in sorted(answered - set(known))]
    found += [f"{name}: answers no point" for name in sorted(points.own(paper) - answered)]
    for point in paper.points:
        found += [f"{point.number}: {name} is not there" for name in point.shown if not exists(name, point)]
        if not point.shown or "|" in point.question:
            found.append(f"{point.number}: nothing shows it, or its question ends the cell")
    return found


def exists(name: str, point: OpenPoint) -> bool:
    if "/" in name:
        return name in registry.items()
    if "::" in name:
        file, test = name.split("::")
        return f"\ndef {test}(" in (ROOT / "tests" / file).read_text()
    if name.startswith("notebook "):
        (path,) = (ROOT / "notebooks").glob(f"{name.split()[1]}_*.py")
        return any(re.search(rf"\b{option}\b", path.read_text()) for option in point.options)
    return name in ledger.claims()


@pytest.mark.parametrize("name", points.PAPERS)
def test_every_option_answers_a_point_and_what_shows_it_exists(name):
    assert faults(points.PAPERS[name]) == []


def test_a_wrong_list_is_seen():
    paper = points.PAPERS["SSF"]
    first = paper.points[0]
    for wrong, said in (
        (paper.points[1:], "server_control: answers no point"),
        ((replace(first, options=("control", *first.options)), *paper.points[1:]), "control: no such option"),
        ((replace(first, shown=("ssf/reading",)), *paper.points[1:]), "1, 2: ssf/reading is not there"),
        ((replace(first, shown=("ssf.A33",)), *paper.points[1:]), "1, 2: ssf.A33 is not there"),
        ((replace(first, shown=("test_laws.py::test_",)), *paper.points[1:]), "1, 2: test_laws.py::test_ is not there"),
        ((replace(first, shown=("notebook 02",)), *paper.points[1:]), "1, 2: notebook 02 is not there"),
    ):
        assert faults(replace(paper, points=wrong)) == [said]


def test_the_page_is_made_from_the_lists():
    assert points.page() == (ROOT / "docs" / "open-points.md").read_text(), "make it again, as its third line says"
