"""Pages are read once: short sentences, narrow tables, short cells, plain phrases (`prose.py` says what is counted)."""

import argparse
from pathlib import Path

import nbformat
import prose
import pytest

from fedtheory import cli

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("report", "ledger", "methods", "open-points", "proofs")  # their sources are tested
WIDE = {"federation.md", "processes.md", "speed-details.md", "symbols.md"}  # each a table of measurements or of symbols
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in GENERATED),
    *(page for folder in ("course", "start") for page in sorted((ROOT / "docs" / "book" / folder).glob("*.md"))),
    ROOT / "docs" / "book" / "do_it_yourself.md",
    *(page for page in sorted((ROOT / "docs" / "theory").glob("*.md"))),
]
STATEMENTS = sorted((ROOT / "fedtheory" / "theory").glob("*/claims.md"))
NOTEBOOKS = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "docs" / "book" / "foundations").glob("*.ipynb")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_read_once(page):
    found = list(prose.faults(page.read_text()))
    assert [line for line in found if not (page.name in WIDE and line.startswith("a table of"))] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_read_once(path):
    cells = nbformat.read(path, as_version=4).cells
    assert list(prose.faults("\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown"))) == []


@pytest.mark.parametrize("page", STATEMENTS, ids=lambda page: page.parent.name)
def test_statements_are_read_once(page):
    assert list(prose.faults(page.read_text())) == []


def commands() -> dict[str, argparse.ArgumentParser]:
    (actions,) = (one for one in cli.parser()._actions if isinstance(one, argparse._SubParsersAction))
    return actions.choices


@pytest.mark.parametrize("name", commands())
def test_every_option_has_its_words(name):
    """One that takes a name of a list needs none: the list stands there."""
    parser = commands()[name]
    said = {one.dest: one.help for one in parser._actions if not (one.choices and not one.option_strings)}
    assert [dest for dest, help in said.items() if not help] == []
    assert [help for help in (parser.description, *said.values()) if len(help.split()) > 20] == []
    assert list(prose.faults("\n\n".join(said.values()))) == []


def test_faults_are_found():
    long = "word " * 41 + "end."
    said = list(prose.faults(f"{long}\n\nIt is used in the place of another.\n\n|{' a |' * 7}\n\n| x | {'w ' * 16}|"))
    assert [line.split(":")[0] for line in said] == [
        "42 words", "1 times 'in the place of' (instead of)", "a table of 7 columns", "a cell of 16 words",
    ]  # fmt: skip
    assert list(prose.faults("Short. `code and more code`\n\n```\n" + long + "\n```\n\n| a | b |\n")) == []
