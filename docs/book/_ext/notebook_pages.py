"""The notebooks as the book shows them: with links, folded cells with their captions, and pictures that move.

The committed files are not touched and not run: their outputs are those that the tests checked.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping

import moving_pages
import nbformat
from claim_pages import Place
from stage import GUIDES, Stage, slug
from used import NOTEBOOKS

from fedtheory.core import registry
from fedtheory.theory.letters import letters

PROSE = re.compile(
    r"(```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\[[^\]]*\]\([^)]*\)|<[^>]*>|^#.*?$)", re.DOTALL | re.MULTILINE
)
HREF = re.compile(r'<a href="\.\./[^"]*">(.*?)</a>')  # of a table, into the repository
PAGES = {  # of docs, and the book's places
    "conclusions": "look-up/conclusions",
    "report": "look-up/items/index",
    "symbols": "look-up/symbols",
    "proofs": "theory/coq",
    **{f"theory/{name}": f"theory/{name}" for name in ("ssf", "mud", "family")},
    **{name: f"guides/{name}" for name in GUIDES},
}


FILES = "_static/notebooks"
TITLE = re.compile(r"\A# (?=\S)")
WAY = re.compile(r"\s*^---\s+(?:Previous|Next): \[.*\n?", re.MULTILINE)


def write(stage: Stage, where: Mapping[str, Place], frames: moving_pages.Frames) -> None:
    sentences: dict[str, str] = {}

    def link(found: re.Match[str]) -> str:
        page = _in_the_book(found[1].replace("<wbr>", ""), stage, where)
        return f'<a href="{page}">{found[1]}</a>' if page else found[1]

    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        sentences |= dict(alternatives(notebook))
        linked: set[str] = set()
        stage.copy(path, f"{FILES}/{path.name}")
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = titled(with_links(cell.source, path.stem, where, linked), path.name)
                continue
            if "hide-input" in cell.metadata.get("tags", []):
                prompts = {f"code_prompt_{way}": f"{caption(cell.source)} ({way} the code)" for way in ("show", "hide")}
                cell.metadata["mystnb"] = prompts
            for output in cell.outputs:
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = HREF.sub(link, output.data["text/html"])
            if picture := moving_pages.shown(cell.source):
                data = {"text/html": moving_pages.html(picture, frames, "../")}
                cell.outputs = [nbformat.v4.new_output("display_data", data=data)]
        stage.write(f"notebooks/{path.name}", nbformat.writes(notebook))
    stage.write("_ext/alternatives.json", json.dumps(sentences))


def titled(source: str, file: str) -> str:
    """A cell's text: a title gets the notebook's number and its download; the page has its own previous and next."""
    source = WAY.sub("", source)
    if not TITLE.match(source):
        return source
    title, _, rest = source.partition("\n")
    button = f'<a class="download" href="../{FILES}/{file}" download>Download this notebook</a>'
    return f"# {file[:2]}. {title[2:]}\n\n{button}\n{rest}"


def _in_the_book(name: str, stage: Stage, where: Mapping[str, Place]) -> str | None:
    """The page of a claim or an item; tests have none."""
    if name in where:
        return f"../{where[name].page}.html#{where[name].anchor}"
    page = f"look-up/items/{slug(name)}"
    return f"../{page}.html" if stage.folder / f"{page}.md" in stage.kept else None


def alternatives(notebook: nbformat.NotebookNode) -> Iterator[tuple[str, str]]:
    """Of each picture: the digest that names its file in the book, and the sentence that says what is seen."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            picture = base64.b64decode(output["data"]["image/png"])
            yield hashlib.sha256(picture).hexdigest(), output.metadata["image/png"]["alt"]


def caption(source: str) -> str:
    """Of a folded cell: its first line, a comment."""
    first = source.lstrip().partition("\n")[0]
    return letters(first.lstrip("# ").strip()) if first.startswith("#") else "the code"


def with_links(text: str, stem: str, where: Mapping[str, Place], linked: set[str]) -> str:
    """Names of other notebooks, of claims, and of methods where they first appear, as links."""
    for page, target in PAGES.items():
        text = text.replace(f"](../docs/{page}.md)", f"](../{target}.md)")
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
