"""Pages with the package's sources, so that a claim or a method links to its line: made for the files linked to.

build.py asks for lines; Sphinx, for which this is an extension, makes the pages of their files, and gives the pictures
of the notebooks the sentences that say what is seen.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

FOLDER = "code"


class Code:
    """Links to sources; it remembers the files that a page was asked for."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def line(self, file: str, number: int) -> str:
        """The target of a line of a file, from the book's root."""
        self.files.add(file)
        return f"{FOLDER}/{file.removesuffix('.py')}.html#line-{number}"

    def claim(self, id: str) -> str:
        place = _claims().get(id)
        return self.line(*place) if place else ""


def pages(app: Any) -> Iterator[tuple[str, dict[str, str], str]]:
    """For Sphinx's event html-collect-pages."""
    for file in json.loads((Path(app.srcdir) / "_ext" / "code.json").read_text()):
        text = (Path(app.config.repository) / file).read_text()
        look = HtmlFormatter(linenos="inline", lineanchors="line", cssclass="highlight")
        body = f'<h1>{file}</h1><div class="code-page">{highlight(text, PythonLexer(), look)}</div>'
        yield f"{FOLDER}/{file.removesuffix('.py')}", {"title": file, "body": body}, "page.html"


def describe(app: Any, doctree: Any) -> None:
    """For Sphinx's event doctree-read: a notebook's picture is a file that its digest names."""
    sentences = json.loads((Path(app.srcdir) / "_ext" / "alternatives.json").read_text())
    for image in doctree.findall(lambda node: node.tagname == "image"):
        if sentence := sentences.get(Path(image["uri"]).stem):
            image["alt"] = sentence


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("repository", "", "html")
    app.connect("html-collect-pages", pages)
    app.connect("doctree-read", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


@cache
def _claims() -> dict[str, tuple[str, int]]:
    """Where each claim is written: file and line."""
    from stage import ROOT

    from fedtheory.core import registry

    found, names = {}, set(registry.claim_names())
    for paper in registry.PAPERS:
        folder = ROOT / "fedtheory" / "theory" / paper
        for path in sorted(folder.rglob("*.py")):
            text, file = path.read_text(), path.relative_to(ROOT).as_posix()
            for called in re.finditer(rf'(?:\b(?:claim|{paper}|waits|Claim)\(\s*|^    )"([^"]+)"', text, re.M):
                id = f"{paper}.{called[1].removeprefix(f'{paper}.')}"
                if id in names:
                    found.setdefault(id, (file, text.count("\n", 0, called.start()) + 1))
    return found
