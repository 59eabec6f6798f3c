"""Pages made from the repository's own texts: symbols, open points, bibliography."""

import ast
import re

import nbformat
from mathematics import ACCENTED, GREEK, latex, prose
from method_pages import said
from stage import ROOT, Stage, plain, slug
from used import NOTEBOOKS

from fedtheory.core import registry

OPERATORS = r"[\s\d^_{}()\[\],+=/*'<>|.-]"


def symbols(stage: Stage) -> None:
    """docs/symbols.md, the papers' letters set as mathematics."""
    lines = []
    for line in (ROOT / "docs" / "symbols.md").read_text().splitlines():
        if line.startswith("|") and not line.startswith("|-"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            line = f"| {' | '.join(cell if '`' in cell and not letters(cell) else symbol(cell) for cell in cells)} |"
        elif not line.startswith(("|", "#")):
            line = said(line) if line.strip() else line
        lines.append(line)
    stage.write("look-up/symbols.md", "\n".join(lines) + "\n")


def letters(cell: str) -> bool:
    """Whether a cell is made of symbols only."""
    rest = re.sub(OPERATORS, " ", re.sub(r"[_^]\{?\w+\}?", "", cell))
    return bool(cell) and all(
        len(w) == 1 or w in GREEK or w in ACCENTED or re.fullmatch("[A-Z]{2}", w) for w in rest.split()
    )


def symbol(cell: str) -> str:
    """A cell of the dictionary: what is a symbol is set, words stay."""
    if "`" in cell:
        return said(cell)
    if re.fullmatch(r"[\d,.()\s]*", cell) or not re.search("[A-Za-z]", cell):
        return plain(cell)
    parts = re.split(r"(; |, (?![^(\[{]*[)\]}])|: )", cell)
    return "".join(
        f"${latex(part)}$" if letters(part) and re.search("[A-Za-z]", part) else _words(part) for part in parts
    )


def _words(part: str) -> str:
    inner = prose(part)
    return (" " if part[:1].isspace() else "") + inner + (" " if part[-1:].isspace() and inner else "")


def open_points(stage: Stage) -> None:
    """docs/open-points.md with links that hold in the book."""
    text = (ROOT / "docs" / "open-points.md").read_text()
    text = re.sub(r"\]\(\.\./[^)]+\)", "](api/index.md)", text).replace("(ledger.md)", "(claims/index.md)")
    lines = []
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|-"):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            line = f"| {' | '.join(said(cell) for cell in cells)} |"
        lines.append(line)
    stage.write("look-up/open-points.md", "\n".join(lines) + "\n")


def bibliography(stage: Stage) -> None:
    """What the methods' files and the notebooks cite."""
    lines = ["# Bibliography", "", "Collected from the methods' files and from the notebooks.", "", "## Methods", ""]
    for path in sorted((ROOT / "fedtheory" / "algorithms").glob("*.py")):
        text = path.read_text()
        own = re.findall(r"^METHODS\b", text, re.M)
        if own:
            said_of = ast.get_docstring(ast.parse(text)) or ""
            names = [name for name in registry.method_names() if f'Method(\n        "{name}"' in text]
            links = ", ".join(f"[{plain(name)}](methods/{slug(name)}.md)" for name in names)
            lines.append(f"- {links}: {said(' '.join(said_of.split()))}")
    lines += ["", "## Notebooks", ""]
    found: dict[str, list[str]] = {}
    for path in NOTEBOOKS:
        text = "\n\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")
        for part in re.split(r"\n- ", text.split("## References", 1)[-1])[1:]:
            found.setdefault(" ".join(part.split("\n\n")[0].split()), []).append(path.stem)
    for part in sorted(found):
        links = ", ".join(f"[{stem[:2]}](../notebooks/{stem}.ipynb)" for stem in found[part])
        lines.append(f"- {part} (notebook {links})")
    stage.write("look-up/bibliography.md", "\n".join(lines) + "\n")
