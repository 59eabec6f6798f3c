"""The notebooks as the book shows them: with links, and with the code of pictures and checks folded.

The committed files are not touched and not run: their outputs are those that the tests checked.
"""

import ast
import re
from collections.abc import Mapping

import nbformat
from claim_pages import Place
from stage import Stage, slug
from used import NOTEBOOKS

from fedtheory.core import registry

PICTURE = re.compile(r"^\s*(show\(|figure\b.*=|style\.)", re.MULTILINE)
PROSE = re.compile(
    r"(```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\[[^\]]*\]\([^)]*\)|<[^>]*>|^#.*?$)", re.DOTALL | re.MULTILINE
)
PAGES = {"conclusions": "conclusions", "report": "items/index"}  # of docs, and where the book has them
LONG = 12  # lines of code above which a cell that draws is folded


def write(stage: Stage, where: Mapping[str, Place]) -> None:
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        linked: set[str] = set()
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = with_links(cell.source, path.stem, where, linked)
            elif caption := fold(cell.source):
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
                cell.metadata["mystnb"] = {"code_prompt_show": f"Show {caption}", "code_prompt_hide": f"Hide {caption}"}
        stage.write(f"notebooks/{path.name}", nbformat.writes(notebook))


def fold(source: str) -> str:
    """What a cell is, where it only checks or mostly draws; "" for a cell that is part of the story."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ""
    if body and all(isinstance(node, ast.Assert) for node in body):
        return "the checks"
    if "answer" in source or len(source.splitlines()) <= LONG:
        return ""
    return "the code of the picture" if PICTURE.search(source) and "show(" in source else ""


def with_links(text: str, stem: str, where: Mapping[str, Place], linked: set[str]) -> str:
    """Names of other notebooks, of claims, and of methods where they first appear, as links."""
    for page, target in PAGES.items():
        text = text.replace(f"](../docs/{page}.md)", f"](../look-up/{target}.md)")
    parts = PROSE.split(text)
    for at, part in enumerate(parts):
        if at % 2:
            id = part.strip("`")
            if part.startswith("`") and id in where and not part.startswith("```"):
                parts[at] = f"[`{id}`](../{where[id].page}.md#{where[id].anchor})"
    for name in registry.method_names():
        whole = re.compile(rf"(?<![\w/\[.-]){re.escape(name)}(?![\w\].-])")
        for at in range(0, len(parts), 2):
            if name not in linked and whole.search(parts[at]):
                linked.add(name)
                before, after = whole.split(parts[at], maxsplit=1)
                parts[at : at + 1] = [before, f"[{name}](../look-up/methods/{slug(name)}.md)", after]
                break
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"\b([Nn]otebook) (\d\d)\b", lambda found: _notebook(found, stem), parts[at])
    return "".join(parts)


def _notebook(found: re.Match[str], stem: str) -> str:
    target = next((path.stem for path in NOTEBOOKS if path.stem.startswith(found[2])), None)
    return found[0] if target in (None, stem) else f"[{found[0]}]({target}.ipynb)"
