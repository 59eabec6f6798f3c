"""Pages are read once: short sentences, narrow tables, short cells, plain phrases (`prose.py` says what is counted)."""

import argparse
import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import prose
import pytest

import fedtheory
from fedtheory import cli
from fedtheory.core import registry
from fedtheory.papers import load
from fedtheory.papers.quick import TEXTS

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("report", "ledger", "methods", "open-points", "proofs")  # their sources are tested
WIDE = {"federation.md", "processes.md", "speed-details.md", "symbols.md"}  # each a table of measurements or of symbols
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in GENERATED),
    *(page for folder in ("course", "start") for page in sorted((ROOT / "docs" / "book" / folder).glob("*.md"))),
    ROOT / "docs" / "book" / "do_it_yourself.md",
    *sorted((ROOT / "benchmarks").glob("*.md")),
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


FIGURES = ROOT / "figures"


@pytest.mark.parametrize("name", registry.items())
def test_an_item_is_read_once(name):
    """Its title, its sentences and its record's notes. A note lists settings between semicolons, each read alone."""
    said = [registry.items()[name].title]
    if name in TEXTS:
        said += [TEXTS[name].claim, TEXTS[name].see, TEXTS[name].found]
    if (FIGURES / f"{name}.json").exists():
        notes = load(FIGURES, name, pictured=False)["notes"]
        said += [re.sub(r";\s+(\w)", lambda part: ". " + part[1].upper(), note) for note in notes]
    assert list(prose.faults("\n\n".join(said))) == []


def documented(doc: str) -> str:
    """A docstring, without its examples; an argument's name stands apart."""
    doc = re.sub(r"^\s*>>>.*(\n(?!\s*\n).*)*", "", inspect.cleandoc(doc), flags=re.MULTILINE)
    return re.sub(r"^( *)([\w*`, ./]+): ", r"\n\1\2.\n\n\1", doc, flags=re.MULTILINE)


@pytest.mark.parametrize("name", fedtheory.__all__)
def test_a_docstring_is_read_once(name):
    """Of a public name, and of its public methods."""
    public = getattr(fedtheory, name)
    methods = vars(public).items() if inspect.isclass(public) else ()
    said = [public, *(one for part, one in methods if not part.startswith("_") and callable(one))]
    assert list(prose.faults("\n\n".join(documented(one.__doc__ or "") for one in said))) == []


def error_texts(tree: ast.AST) -> Iterator[str]:
    """The pieces of error lines: of what is raised, of `checks.reject` and of the fixes that are given to it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            parts = node.exc.args
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reject":
            parts = node.args
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "fix":
            parts = [node.value]
        else:
            continue
        for part in (piece for one in parts for piece in ast.walk(one)):
            if isinstance(part, ast.JoinedStr):
                yield "".join(str(one.value) if isinstance(one, ast.Constant) else "x" for one in part.values)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


@pytest.mark.parametrize("folder", sorted(path.name for path in (ROOT / "fedtheory").glob("[a-z]*") if path.is_dir()))
def test_error_lines_are_read_once(folder):
    sources = [path.read_text() for path in sorted((ROOT / "fedtheory" / folder).rglob("*.py"))]
    trees = [ast.parse(source) for source in sources if any(word in source for word in ("raise", ".reject", "fix"))]
    said = [text for tree in trees for text in error_texts(tree)]
    assert [fault for text in said for fault in prose.faults(text)] == []


def test_faults_are_found():
    long = "word " * 41 + "end."
    said = list(prose.faults(f"{long}\n\nIt is used in the place of another.\n\n|{' a |' * 7}\n\n| x | {'w ' * 16}|"))
    assert [line.split(":")[0] for line in said] == [
        "42 words", "1 times 'in the place of' (instead of)", "a table of 7 columns", "a cell of 16 words",
    ]  # fmt: skip
    assert list(prose.faults("Short. `code and more code`\n\n```\n" + long + "\n```\n\n| a | b |\n")) == []
