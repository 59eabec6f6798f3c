"""What the papers say: theory/<paper>/claims.md, read when a paper's first claim is built.

Above the first claim stand the paper's notation and assumptions. Then follows one section a claim:

    ## <id>

    *<place in the paper>.* <the statement, its formulas in LaTeX between dollars>

    > <the statement in plain words>

and, where there is a better cell to run than the check, a block of Python.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Statement:
    """A claim as its paper prints it.

    Fields:
        where: the place in the paper.
        latex: Markdown with LaTeX.
        words: a sentence in plain words.
        cell: Python that a reader can run and change, or "".
    """

    where: str
    latex: str
    words: str
    cell: str


def _text(paper: str) -> str:
    return (_FOLDER / paper / "claims.md").read_text("utf-8")


@cache
def statements(paper: str) -> dict[str, Statement]:
    """Return the statements of a paper's claims by id, in the paper's order.

    Raises ValueError for a section without a place or without words, and for an id that stands twice.
    """
    found: dict[str, Statement] = {}
    for section in re.split(r"^## ", _text(paper), flags=re.MULTILINE)[1:]:
        id, body = section.split("\n", 1)
        parts = re.fullmatch(
            r"\n\*([^*\n]+)\.\* (.+?)\n\n> ([^\n]+)\n(?:\n```python\n(.*?)\n```\n)?\n*", body, re.DOTALL
        )
        if parts is None or id in found:
            raise ValueError(f"theory/{paper}/claims.md, {id!r}: expected *place.* statement, > words, once each")
        where, latex, words, cell = parts.groups("")
        found[id] = Statement(where, latex, words, cell)
    return found


def notation(paper: str) -> str:
    """Return what the letters of a paper's statements mean, and its assumptions, in Markdown."""
    return _text(paper).split("\n", 1)[1].split("\n## ", 1)[0].strip()
