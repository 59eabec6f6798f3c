"""Slides of a lecture, from a committed notebook: reveal.js through nbconvert, in a folder that needs no network.

One rule makes them. Each heading begins a slide; what is below it is put on as many as it fills, and a prediction ends
a slide. Pictures, tables and listings are kept, code is folded. Exercises, prerequisites and references are left out.
"""

import importlib
import importlib.metadata
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedtheory.core import checks
from fedtheory.core.files import require_folder
from fedtheory.course import course
from fedtheory.course.course import Cell

LECTURES = ("00", "01")
SIZE = (1280, 720)  # pixels of a slide
ROOM = 610  # of them below the heading
LINE, CODE, ROW = 34, 24, 38  # pixels of a line of text, of code, and of a table's row
WIDE = 92  # characters of a line of text
LEFT_OUT = ("prerequisites", "symbols", "exercises", "references")
LISTED = 22  # lines of code or output on one slide
FILES = {  # distribution -> its file -> the file in the folder
    "sphinx-revealjs": {"revealjs/dist/reveal.js": "dist/reveal.js", "revealjs/dist/reveal.css": "dist/reveal.css"},
    "sphinx-mathjax-offline": {"tex-svg.js": "tex-svg.js"},
}


@dataclass(frozen=True)
class Block:
    """What is not cut.

    Fields:
        text: Markdown.
        height: the pixels that it takes.
        pictures: as PNG in base64, by name.
        leads: whether it stands on the slide of the next block.
        last: whether a slide ends behind it.
    """

    text: str
    height: int
    pictures: Mapping[str, str] = field(default_factory=dict)
    leads: bool = False
    last: bool = False


@dataclass(frozen=True)
class Deck:
    """The slides of one notebook."""

    name: str
    slides: int
    page: bytes


def save(folder: str | Path, chosen: Sequence[str] = ()) -> list[Deck]:
    """Write the slides of notebooks, with reveal.js and MathJax, into a folder: NN_name.html.

    Args:
        folder: new, empty, or one that was made here before.
        chosen: beginnings of notebooks' names; none for the first two lectures, 00 and 01.

    Raises ModuleNotFoundError where nbconvert, reveal.js or MathJax is not installed; FileExistsError and ValueError as
    `course.course` does.
    """
    out = checks.path("folder", folder)
    course.made_before(out, "slides")
    require_folder(out)
    paths = course.committed_notebooks(chosen or LECTURES)
    files = {f"reveal.js/{name}": path.read_bytes() for name, path in _installed().items()}
    files["reveal.js/dist/theme/course.css"] = CSS.encode()
    decks = [deck(path) for path in paths]
    course.save(out, "slides", files | {f"{one.name}.html": one.page for one in decks})
    return decks


def _installed() -> dict[str, Path]:
    """The files of reveal.js and MathJax in the packages that hold them."""
    found = {}
    for name, wanted in FILES.items():
        try:
            held = importlib.metadata.files(name) or ()
        except importlib.metadata.PackageNotFoundError:
            held = ()
        for end, target in wanted.items():
            place = next((file for file in held if file.as_posix().endswith(f"/{end}")), None)
            if place is None:
                fix = "pip install 'fedtheory[teach]'"
                checks.reject("package", name, f"an installed package that holds {end}", fix, ModuleNotFoundError)
            found[target] = Path(str(place.locate()))
    return found


def deck(path: Path) -> Deck:
    """The slides of a notebook, as one page.

    Raises ModuleNotFoundError where nbconvert is not installed.
    """
    try:
        exporters, nbformat = importlib.import_module("nbconvert.exporters"), importlib.import_module("nbformat")
    except ModuleNotFoundError as error:
        checks.reject("package", error.name, "nbconvert", "pip install 'fedtheory[teach]'", ModuleNotFoundError)
    slides = list(paged(course.cells_of(path)))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "title": path.stem}
    whole = {"cells": slides, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    exporter = exporters.SlidesExporter(
        raw_template=TEMPLATE,
        reveal_url_prefix="reveal.js",
        reveal_theme="course",
        reveal_transition="none",
        reveal_number="c/t",
    )
    exporter.reveal_width, exporter.reveal_height = map(str, SIZE)
    page, _ = exporter.from_notebook_node(nbformat.reads(json.dumps(whole), as_version=4))
    return Deck(path.stem, len(slides), page.encode())


def paged(cells: Sequence[Cell]) -> Iterator[Cell]:
    """One cell a slide: a heading, and as many blocks as fit; a `###` and what goes on stand below their slide."""
    heading, level, count = "", 1, 0
    blocks: list[Block] = []
    for block in [*_blocks(cells), None]:
        found = None if block is None else re.match(r"(#{1,3}) (.*)", block.text)
        if found or block is None:
            for at, page in enumerate(_filled(blocks)):
                again = f"{'#' * level} {heading}" + (" …" if at else "")
                kind = "slide" if level < 3 and at == 0 else "subslide"
                count += 1
                yield _slide(count, kind, "\n\n".join([again, *(one.text for one in page)]), page)
        if found:
            assert block is not None
            heading, level, blocks = found[2], len(found[1]), []
        elif block is not None:
            blocks.append(block)


def _slide(number: int, kind: str, text: str, page: Sequence[Block]) -> Cell:
    pictures = {name: {"image/png": data} for block in page for name, data in block.pictures.items()}
    meta = {"slideshow": {"slide_type": kind}}
    cell: dict[str, Any] = {"cell_type": "markdown", "id": f"slide-{number}", "metadata": meta, "source": text}
    return cell | ({"attachments": pictures} if pictures else {})


def _filled(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks in pages: a page ends where the next block finds no room, and behind a prediction.

    What leads to the next block goes with it: a text to a prediction, the word "code" to an output.
    """
    page: list[Block] = []
    for block in blocks:
        if page and (page[-1].last or sum(one.height for one in page) + block.height > ROOM):
            leads = len(page) > 1 and not page[-1].last and (page[-1].leads or (block.last and not page[-1].pictures))
            yield page[:-1] if leads else page
            page = page[-1:] if leads else []
        page.append(block)
    if page:
        yield page


# What stands on a slide.


def _blocks(cells: Sequence[Cell]) -> Iterator[Block]:
    """Of a notebook, in its order; without the sections of LEFT_OUT, and without checks and imports."""
    section = ""
    for at, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            for heading, part in course.parts(cell["source"]):
                section = heading or section
                if not section.startswith(LEFT_OUT):
                    yield from _prose(course.QUESTION.split(part)[0])
        elif not section.startswith(LEFT_OUT) and "check(" not in cell["source"]:
            shown = [block for output in cell["outputs"] for block in _output(output, f"{at}.png")]
            if shown:
                yield Block(_code(cell["source"]), CODE + 8, leads=True)
            yield from shown


def _prose(text: str) -> Iterator[Block]:
    """Paragraphs, the items of lists, tables, formulas, listings."""
    text = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
    part: list[str] = []
    for line in [*text.splitlines(), ""]:
        fenced = bool(part) and part[0].startswith("```")
        ends = line.startswith("```") if fenced else not line.strip()
        if ends and fenced:
            yield from _listing("\n".join(part[1:]))
        elif ends and part:
            yield from _paragraph("\n".join(part))
        part = [] if ends else [*part, line]


def _paragraph(part: str) -> Iterator[Block]:
    if part.startswith(("**Time:**", course.ANSWER)):
        return
    if re.match(r"#{1,6} ", part):
        first, _, rest = part.partition("\n")
        yield Block(first.removesuffix(" *"), LINE)  # the star marks a core section
        if rest.strip():
            yield from _paragraph(rest.strip())
    elif re.match(r"- |\* |\d+\. ", part):
        for item in re.split(r"\n(?=- |\* |\d+\. )", part):
            yield Block(item, LINE * _lines(item) + 6)
    elif part.startswith("|"):
        yield Block(part, ROW * sum(max(1, _lines(row)) for row in part.splitlines()) + 10)
    elif part.startswith(">"):
        yield Block(part, LINE * _lines(part) + 40, last="Predict" in part)
    else:
        yield Block(part, LINE * _lines(part) + 16 + _formulas(part))


def _lines(text: str) -> int:
    """Lines that a text takes on a slide; a command of TeX is about one character."""
    plain = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    plain = re.sub(r"\\[a-zA-Z]+|[{}$\\^_>`]", lambda found: "x" if len(found[0]) > 1 else "", " ".join(plain.split()))
    return -(-len(plain) // WIDE)


def _formulas(text: str) -> int:
    found = re.findall(r"\$\$.*?\$\$", text, re.DOTALL)
    return sum(70 + 60 * one.count(r"\\") + 36 * ("brace" in one) for one in found)


def _listing(text: str) -> Iterator[Block]:
    """Lines as they are, in pieces that fit."""
    lines = text.rstrip("\n").splitlines()
    for begin in range(0, len(lines), LISTED):
        piece = lines[begin : begin + LISTED]
        yield Block("\n".join(["```text", *piece, "```"]), CODE * len(piece) + 34)


def _output(output: Mapping[str, Any], name: str) -> Iterator[Block]:
    data = output.get("data", {})
    if "image/png" in data:
        png = "".join(data["image/png"])
        words = "".join(data.get("text/plain", ["a picture"])).splitlines()[0]
        words = re.sub(r"[^\w ,.:()-]", "", words)
        yield Block(f"![{words}](attachment:{name})", 450, {name: png})
    elif said := "".join(output.get("text", data.get("text/plain", ""))):
        yield from _listing(said)


def _code(source: str) -> str:
    """Code behind its caption, which opens it, over the slide; a caption is a comment in the first line."""
    caption = re.match(r"# ((?:Picture|Checks?): .+)", source)
    word = caption[1] if caption else "code"
    return f"<details class='code'><summary>{word}</summary>\n\n```python\n{source.strip()}\n```\n\n</details>"


TEMPLATE = """\
{% extends 'reveal/index.html.j2' %}
{% block html_head_js %}{% endblock %}
{% block html_head_js_mathjax %}
<script>
MathJax = {
  tex: {inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]], processEscapes: true},
  svg: {fontCache: "global", mtextInheritFont: true},
  options: {enableMenu: false}
};
</script>
<script src="reveal.js/tex-svg.js"></script>
<script src="reveal.js/dist/reveal.js"></script>
{% endblock %}
{% block footer_js %}
<script>
MathJax.startup.promise.then(() => Reveal.initialize({
  width: {{ resources.reveal.width }}, height: {{ resources.reveal.height }}, margin: 0.02, center: false,
  hash: true, controls: true, progress: true, slideNumber: "{{ resources.reveal.number }}",
  transition: "{{ resources.reveal.transition }}"
}));
</script>
{% endblock %}
"""

CSS = """\
body, .reveal-viewport { background: #fff; }
.reveal { font: 25px/1.36 "Helvetica Neue", Helvetica, Arial, sans-serif; color: #222; }
.reveal .slides { text-align: left; }
.reveal .slides section { padding: 14px 30px; box-sizing: border-box; height: 100%; overflow: hidden auto; }
.reveal .slides > section:has(> section) { padding: 0; overflow: hidden; }
.reveal h1, .reveal h2, .reveal h3 { color: #16325c; margin: 0 0 14px; line-height: 1.2; }
.reveal .jp-RenderedHTMLCommon h1 { font-size: 54px; margin: 150px 0 30px; }
.reveal h2 { font-size: 38px; }
.reveal h3 { font-size: 32px; }
.reveal .jp-RenderedHTMLCommon { font-size: 25px; line-height: 1.36; padding: 0; color: inherit; }
.reveal p, .reveal ul, .reveal ol { margin: 0 0 14px; padding-right: 0; }
.reveal ul, .reveal ol { padding-left: 28px; }
.reveal li { margin-bottom: 6px; }
.reveal blockquote { margin: 4px 0 14px; padding: 8px 18px; border-left: 5px solid #d98200; background: #fff6e6; }
.reveal blockquote p { margin: 0; }
.reveal pre { font-size: 18px; line-height: 24px; margin: 0 0 10px; box-shadow: none; width: auto; }
.reveal .jp-RenderedHTMLCommon p, .reveal .jp-RenderedHTMLCommon .highlight { margin-bottom: 14px; }
.reveal .highlight { background: #f5f6f8; padding: 8px 12px; margin: 0 0 10px; border-radius: 4px; }
.reveal .highlight pre { background: none; padding: 0; margin: 0; }
.reveal table { font-size: 21px; margin: 0 0 14px; border-collapse: collapse; }
.reveal td, .reveal th { padding: 4px 14px; text-align: left !important; }
.reveal img { display: block; margin: 0 auto 8px; max-width: 100%; max-height: 430px; }
.reveal details.code { font-size: 16px; color: #667; margin: 0 0 6px; }
.reveal details.code[open] > .highlight {
  position: absolute; z-index: 9; left: 30px; right: 30px; max-height: 540px; overflow: auto;
  box-shadow: 0 2px 14px #0005;
}
.reveal .controls { font-size: 6px; }
.reveal .slide-number { right: auto; left: 12px; background: none; color: #667; font-size: 14px; }
.reveal .jp-InputPrompt, .reveal .jp-Collapser, .reveal a.anchor-link { display: none; }
.reveal .jp-Cell, .reveal .jp-Cell-inputWrapper { padding: 0; margin: 0; display: block; }
"""
