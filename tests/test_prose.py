"""Pages are read once: short sentences, narrow tables, short cells, plain phrases (`prose.py` says what is counted)."""

from pathlib import Path

import prose
import pytest

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("report", "ledger", "methods", "open-points", "proofs")  # their sources are tested
WIDE = {"federation.md", "processes.md", "speed-details.md", "symbols.md"}  # each a table of measurements or of symbols
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in GENERATED),
    *(page for folder in ("course", "start") for page in sorted((ROOT / "docs" / "book" / folder).glob("*.md"))),
    ROOT / "docs" / "book" / "do_it_yourself.md",
    *(ROOT / "docs" / "theory" / f"{page}.md" for page in ("fedsub", "flss", "limits")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_read_once(page):
    found = list(prose.faults(page.read_text()))
    assert [line for line in found if not (page.name in WIDE and line.startswith("a table of"))] == []


def test_faults_are_found():
    long = "word " * 41 + "end."
    said = list(prose.faults(f"{long}\n\nIt is used in the place of another.\n\n|{' a |' * 7}\n\n| x | {'w ' * 16}|"))
    assert [line.split(":")[0] for line in said] == [
        "42 words", "1 times 'in the place of' (instead of)", "a table of 7 columns", "a cell of 16 words",
    ]  # fmt: skip
    assert list(prose.faults("Short. `code and more code`\n\n```\n" + long + "\n```\n\n| a | b |\n")) == []
