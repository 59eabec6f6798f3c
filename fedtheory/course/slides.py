"""Slides of a lecture, from a committed notebook: reveal.js in a folder that needs no network.

One rule makes them. A slide shows one picture, table, formula or question, and the point of the prose around it: the
first sentences of each paragraph, more of them where nothing else is on the slide. The whole prose is in the speaker's
notes. Exercises, prerequisites, references and long tables are left out.
"""

import base64
import importlib
import importlib.metadata
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from fedtheory.core import checks
from fedtheory.core.files import require_folder
from fedtheory.course import course
from fedtheory.course.course import Cell

LECTURES = ("00", "01", "02", "03", "04", "05", "06", "07", "08", "12")
SIZE = (1280, 720)  # pixels of a slide
ROOM = 605  # of them below the heading
LINE, CODE, ROW, FOLDED = 41, 27, 38, 28  # pixels of a line of text, of code, of a table's row, and of code's caption
PICTURE = 390  # pixels that a picture gets at least
TALL, BROAD = 560, 1.4  # pixels of its file, and width over height: a higher one, no broader, is beside the text
WIDE, CELLS, PRINT = 80, 88, 98  # characters of a line of text, of a table's row, and of a printed line
SHORT, POINT, BOLD = 40, 150, 300  # characters up to which a point takes in: any next sentence, a short, a bold one
PROSE = 320  # pixels of the text that leads to what is seen
TALK = 420  # characters of prose on a slide of prose alone
BRIEF = 140  # pixels of prose that goes onto the slide before, or of lines that a picture stands below
SMALL = 200  # pixels of a table that checks the formula above it
ROWS = 12  # of a table that fits on a slide
PRINTED = 6  # lines that a cell prints and a class can read
LEFT_OUT = ("prerequisites", "exercises", "references", "do it yourself", "methods", "what the paper")
SKIPPED = {  # sections that a class reads at home: two lectures of ninety minutes are too much for one notebook
    "02": ("figure 2",),
    "03": ("figure 4",),
    "05": ("3.2", "6. ", "7. "),
    "06": ("4.4", "4.5", "4.6", "5.2", "table 1", "table 3", "table 4", "figure 1(b)", "figure 2"),
    "07": ("3.2", "tables 2", "table 4", "figure 6", "6. "),
    "12": ("6. ", "7. ", "what a played"),
}
# a cell whose output is not shown; `key.fold(` is no such call
FOR_NOTES = re.compile(r"(?<![.\w])(provenance|what_was_run|beside|conclusions|fold)\(")
ASIDE = re.compile(r"^\((?!\d+\))|\bnext cell\b")  # a sentence that is not shown
WORDS = 120  # of the notes, that are said in a minute
LOOK, ASK = 1, 2  # minutes for a picture, table or formula, and for a question to the class
# what is no formula within a line; such a one, with the brackets and stops at it, from which no line may break it
FORMULA = re.compile(r"(\$\$.*?\$\$|<(pre|code)\b.*?</\2>)|[(\[]?\$[^$]+\$[^\s<$]*", re.DOTALL)
ENDED = r"(?<=[.!?\ue001])|(?<=[.!?][*)\"])|(?<=[.!?]\*\*)"  # of a sentence
FILES = {  # distribution -> its file -> the file in the folder
    "sphinx-revealjs": {
        "revealjs/dist/reveal.js": "dist/reveal.js",
        "revealjs/dist/reveal.css": "dist/reveal.css",
        "revealjs/plugin/notes/notes.js": "plugin/notes.js",
        "revealjs/plugin/zoom/zoom.js": "plugin/zoom.js",
    },
    "sphinx-mathjax-offline": {"tex-svg.js": "tex-svg.js"},
}


@dataclass(frozen=True)
class Block:
    """What is not cut.

    Fields:
        kind: "heading", "text", "formula", "list", "table", "printed", "picture", or "ask", which ends its slide.
        text: Markdown, or HTML for "table", "printed" and "picture".
        said: the prose of which `text` is the point, for the notes.
        height: the pixels that it takes.
        level: of a heading.
        code: that made it.
        goes_on: whether it is a further output of the cell that made the block before.
        tall: of a picture, whether it has its room beside the text.
    """

    kind: str
    text: str
    said: str = ""
    height: int = LINE
    level: int = 0
    code: str = ""
    goes_on: bool = False
    tall: bool = False

    @property
    def seen(self) -> bool:
        return self.kind not in ("text", "ask")

    @property
    def leads(self) -> bool:
        """Whether the next block belongs to it."""
        leads = re.search(r"[:?]\**$|^\*\*[^*]+\*\*$", self.said)
        return self.kind == "text" and bool(self.code or leads)


@dataclass(frozen=True)
class Slide:
    """Fields: heading, its level, whether it goes on with the heading of the slide before, and what stands on it."""

    heading: str
    level: int
    goes_on: bool
    blocks: tuple[Block, ...]

    @property
    def notes(self) -> str:
        return "\n\n".join(block.said for block in self.blocks if block.said)


@dataclass(frozen=True)
class Deck:
    """The slides of one notebook: how many, the minutes that they take, and the page."""

    name: str
    slides: int
    minutes: int
    page: bytes


def save(folder: str | Path, chosen: Sequence[str] = ()) -> list[Deck]:
    """Write the slides of notebooks, with reveal.js and MathJax, into a folder: NN_name.html.

    Args:
        folder: new, empty, or one that was made here before.
        chosen: beginnings of notebooks' names; none for all of LECTURES.

    Raises ModuleNotFoundError where nbconvert, reveal.js or MathJax is not installed; FileExistsError and ValueError as
    `course.course` does.
    """
    out = checks.path("folder", folder)
    course.made_before(out, "slides")
    require_folder(out)
    paths = course.committed_notebooks(chosen or LECTURES)
    files = {f"reveal.js/{name}": path.read_bytes() for name, path in installed().items()}
    files["reveal.js/dist/theme/course.css"] = CSS.encode()
    decks = [deck(path) for path in paths]
    course.save(out, "slides", files | {f"{one.name}.html": one.page for one in decks})
    return decks


def installed() -> dict[str, Path]:
    """The files of reveal.js and MathJax in the packages that hold them, by their place in the folder."""
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
    slides = list(paged(course.cells_of(path), SKIPPED.get(path.stem[:2], ())))
    time = minutes(slides)
    stacks: list[list[str]] = []
    for number, slide in enumerate(slides):
        again = slide.heading + (" …" if slide.goes_on else "")
        time_line = f"<p class='time'>About {time} minutes.</p>" if number == 0 else ""
        body = html(f"{'#' * slide.level} {again}") + "".join(map(shown, slide.blocks)) + time_line
        kind = "page beside" if any(block.tall for block in slide.blocks) else "page"
        page = f"<section><div class='{kind}'>{body}</div><aside class='notes'>{html(slide.notes)}</aside></section>"
        if slide.level < 3 and not slide.goes_on:
            stacks.append([])
        stacks[-1].append(page)
    whole = "\n".join(f"<section>{''.join(pages)}</section>" for pages in stacks)
    return Deck(path.stem, len(slides), time, document(path.stem, HEAD, BODY.replace("{slides}", whole)).encode())


def minutes(slides: Sequence[Slide]) -> int:
    """What a lecture takes, rounded to five: the notes said aloud, and time to look and to answer."""
    blocks = [block for slide in slides for block in slide.blocks]
    words = sum(len(re.findall(r"[^\W_][\w.'-]*", _bare(block.said))) for block in blocks)
    looked = sum(LOOK if block.seen else ASK * (block.kind == "ask") for block in blocks)
    return 5 * max(1, round((words / WORDS + looked) / 5))


def document(title: str, head: str, body: str) -> str:
    """A page in HTML whose formulas MathJax sets, from reveal.js/tex-svg.js beside it."""
    return DOCUMENT.replace("{title}", title).replace("{head}", head).replace("{body}", body)


def html(text: str) -> str:
    """Markdown in HTML; formulas stay as they are. Raises ModuleNotFoundError where nbconvert is not installed."""
    try:
        filters = importlib.import_module("nbconvert.filters.markdown_mistune")
    except ModuleNotFoundError as error:
        checks.reject("package", error.name, "nbconvert", "pip install 'fedtheory[teach]'", ModuleNotFoundError)
    made = filters.markdown2html_mistune(re.sub(r"\\tag\{([^}]*)\}", r"\\qquad (\1)", text))
    made = re.sub(r'<a class="anchor-link".*?</a>', "", made)
    return FORMULA.sub(lambda found: found[1] or f"<span class='one'>{found[0]}</span>", made)


def shown(block: Block, code: bool = True) -> str:
    """A block in HTML, below the folded code that made it."""
    made = block.text if block.kind in ("table", "printed", "picture") else html(block.text)
    return (block.code if code else "") + f"<div class='{block.kind}'>{made}</div>"


# One idea a slide.


def paged(cells: Sequence[Cell], skipped: tuple[str, ...] = ()) -> Iterator[Slide]:
    """The slides of a notebook, in its order; without the sections whose headings begin so."""
    heading, blocks = Block("heading", "", level=1), []
    for block in [*_blocks(cells, LEFT_OUT + skipped), None]:
        if block is not None and not block.text and blocks:  # an aside, for the notes of what it follows
            blocks[-1] = replace(blocks[-1], said=f"{blocks[-1].said}\n\n{block.said}")
            continue
        if block is not None and block.kind != "heading":
            blocks.append(block)
            continue
        for at, page in enumerate(_settled(_filled(blocks))):
            yield Slide(heading.text, heading.level, at > 0, tuple(page))
        if block is not None:
            heading, blocks = block, []


def _filled(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks in slides: one thing to look at, the text that leads to it, and the text that says what is seen."""
    page: list[Block] = []
    for at, block in enumerate(blocks):
        following = blocks[at + 1] if at + 1 < len(blocks) else None
        if page and not _joins(page, block, following):
            leads = len(page) > 1 and page[-1].leads and page[-1].height + block.height <= ROOM
            yield page[:-1] if leads else page
            page = page[-1:] if leads else []
        page.append(block)
    if page:
        yield page


def _settled(pages: Iterable[list[Block]]) -> Iterator[list[Block]]:
    """Pages, of which those of prose alone say more, or stand on the page before, where there is room for them."""
    before: list[Block] = []
    for page in pages:
        page = _fuller(page)
        joins = all(block.kind == "text" for block in page) and not page[0].text.startswith("**")
        if before and joins and before[-1].kind != "ask" and _height(page) < min(BRIEF, ROOM - _height(before)):
            before += page
            continue
        if before:
            yield before
        before = page
    if before:
        yield before


def _fuller(page: list[Block]) -> list[Block]:
    """A page without pictures and tables, with more sentences of each paragraph."""
    prose = [block for block in page if block.kind in ("text", "formula") and not block.text.startswith(">")]
    limit = TALK // max(1, len(prose))
    if limit <= POINT or any(block not in prose and block.kind not in ("ask", "printed") for block in page):
        return page
    made = [replace(_spoken(block.said, limit), code=block.code) if block in prose else block for block in page]
    return made if _height(made) <= ROOM else page


def _height(page: Iterable[Block]) -> int:
    return sum(block.height for block in page)


def _joins(page: Sequence[Block], block: Block, following: Block | None) -> bool:
    """Whether a block belongs on the slide of those before it."""
    rest = following.height if following is not None and following.goes_on and following.height < BRIEF else 0
    if page[-1].kind == "ask" or _height(page) + block.height + rest > ROOM:
        return False
    seen = [one for one in page if one.seen]
    if not seen:
        return _height(page) + block.height <= PROSE or block.kind != "text"
    if block.goes_on and page[-1].seen and "picture" not in (page[-1].kind, block.kind):
        return True
    if not any(one.code or one.goes_on for one in seen):  # what is stated; a question is about it, a cell checks it
        if block.kind == "ask" or (block.kind in ("table", "printed") and block.height < SMALL):
            return True
        if block.kind == "text" and following is not None and following.kind == "ask":
            return _height(page) + block.height + following.height <= ROOM
    if block.kind == "text":  # what is seen, once; a question, a new topic, or what leads on begins the next slide
        begins = block.leads or block.code or re.match(r"\*\*\w", block.text)
        return page[-1].seen and not begins and not (following is not None and following.kind == "ask")
    if (page[-1].kind, block.kind) == ("printed", "picture"):
        return page[-1].height < BRIEF
    return (page[-1].kind, block.kind) in (("printed", "table"), ("text", "printed"))


# What stands on a slide.


def _blocks(cells: Sequence[Cell], left_out: tuple[str, ...]) -> Iterator[Block]:
    """Of a notebook, in its order; without some sections, and without checks and imports."""
    section = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for heading, part in course.parts(cell["source"], r"#{1,3} "):
                section = heading or section
                if section == "symbols":  # and their meaning: a class does not read code
                    part = re.sub(r"(?m)^(\|[^|]*\|[^|]*\|).*", r"\1", part)
                if not section.startswith(left_out):
                    yield from _prose(course.QUESTION.split(part)[0])
        elif not section.startswith(left_out) and "check(" not in cell["source"]:
            code = _code(cell["source"])
            checked = cell["source"].startswith("# Check")  # what it prints is for the reader of the code
            for output in cell["outputs"]:
                if checked and "data" not in output:
                    continue
                for block in _output(output, cell["source"]):
                    height = block.height + FOLDED * (code != "" and block.kind != "picture")
                    yield replace(block, code=code, goes_on=not code, height=height)
                    code = ""


def _prose(text: str) -> Iterator[Block]:
    """Paragraphs, lists, tables, listings; a sentence that goes on behind a formula is one paragraph."""
    text = unlinked(text)
    parts: list[str] = []
    for part in re.findall(r"```.*?\n```|(?:(?!```)[^\n]*\S[^\n]*\n?)+", text, re.DOTALL):
        part = part.strip()
        plain = (
            bool(parts) and not re.match(r"[#|>`-]|\* |\d+\. ", parts[-1]) and not re.match(r"[#|>`-]|\* |\d+\. ", part)
        )
        if plain and (part.startswith("$$") or re.match(r"[a-z]", part) or not _ended(parts[-1])):
            parts[-1] += f"\n\n{part}"
        else:
            parts.append(part)
    for part in parts:
        yield from _paragraph(part)


def unlinked(text: str) -> str:
    """A text without what is folded, and without links into the repository."""
    text = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


def _ended(text: str) -> bool:
    return re.search(r"[.:?!][)*\"]*\s*(\$\$)?$", text) is not None


def _paragraph(part: str) -> Iterator[Block]:
    if part.startswith(("**Time:**", "**Pictures that move", "**A picture that moves", "---", course.ANSWER)):
        return
    if found := re.match(r"(#{1,6}) (.*)", part):
        yield Block("heading", found[2].removesuffix(" *"), level=min(3, len(found[1])))  # the star: a core section
        if rest := part[found.end() :].strip():
            yield from _prose(rest)
    elif re.match(r"- |\* |\d+\. ", part):
        yield from _items(re.split(r"\n(?=- |\* |\d+\. )", part))
    elif part.startswith("|"):
        yield from _rows(part)
    elif part.startswith("```"):
        yield from _printed("\n".join(part.splitlines()[1:-1]))
    elif part.startswith(">"):
        asks = "**Predict" in part or "**Break it" in part
        yield Block("ask" if asks else "text", part, _bare(part), 46 * _lines(part, 72) + 60)
    else:
        yield from map(_spoken, _by_formula(part))


def _spoken(said: str, limit: int = POINT) -> Block:
    """Prose, of which its point is shown."""
    text = point(said, limit)
    return Block("formula" if "$$" in text else "text", text, said, LINE * _lines(text) + 16 + _formulas(text))


def _by_formula(part: str) -> Iterator[str]:
    """A paragraph in pieces, each up to the end of the sentence that has a formula on lines of its own."""
    piece: list[str] = []
    for sentence in sentences(part):
        piece.append(sentence)
        if "$$" in sentence:
            yield " ".join(piece)
            piece = []
    if piece:
        yield " ".join(piece)


def point(text: str, limit: int = POINT) -> str:
    """The first sentences of a paragraph, and each sentence with a formula of its own line; no sentence is cut.

    Of a paragraph that is an aside: nothing.
    """
    kept: list[str] = []
    open_ = True
    for sentence in [one for one in sentences(text) if not ASIDE.search(one)]:
        size = sum(map(len, kept))
        after = size + len(sentence)
        open_ = open_ and (size < SHORT or after <= limit)
        if open_ or "$$" in sentence or (after <= BOLD and re.search(r"\*\*\w", sentence)):
            kept.append(sentence)
    return " ".join(kept)


def sentences(text: str) -> list[str]:
    """The sentences of a text; formulas, code and brackets are looked into for nothing but a last full stop."""
    held: list[str] = []

    def hide(found: re.Match[str]) -> str:
        held.append(found[0])
        ends = "\ue001" if re.search(r"\.\s*\$\$$", found[0]) else ""
        return f"\ue000{len(held) - 1}\ue002{ends}"

    hidden = re.sub(r"\$\$.*?\$\$|\$[^$]+\$|`[^`]+`", hide, text, flags=re.DOTALL)
    hidden = re.sub(r"\([^()]*\)", lambda found: hide(found) + "\ue001" * found[0].endswith(".)"), hidden)
    parts = re.split(rf"(?<!al\.)(?<!e\.g\.)(?:{ENDED})\s+(?=[A-Z*(\"\ue000])", hidden)
    for at in reversed(range(len(held))):
        parts = [re.sub(f"\ue000{at}\ue002\ue001?", lambda _, at=at: held[at], part) for part in parts]
    return parts


def _bare(text: str) -> str:
    return re.sub(r"(?m)^> ?", "", text)


def _lines(text: str, wide: int = WIDE) -> int:
    """Lines that a text takes on a slide, without its formulas on lines of their own."""
    return -(-len(_seen(re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL))) // wide)


def _seen(text: str) -> str:
    """A text without marks; a command of TeX is about one character."""
    return re.sub(r"\\[a-zA-Z]+|[{}$\\^_>`*]", lambda found: "x" if len(found[0]) > 1 else "", " ".join(text.split()))


def _formulas(text: str) -> int:
    found = re.findall(r"\$\$.*?\$\$", text, re.DOTALL)
    return sum(130 + 70 * one.count(r"\\") + 44 * ("brace" in one) for one in found)


def _items(items: Sequence[str]) -> Iterator[Block]:
    """A list, in pieces that fit; of a long item its point."""
    made = []
    for item in items:
        mark, text = re.match(r"(- |\* |\d+\. )(.*)", item, re.DOTALL).groups()  # type: ignore[union-attr]
        short = mark + point(text)
        made.append(Block("list", short, item, LINE * _lines(short) + 8))
    for some in _even([one.height for one in made], ROOM):
        piece = [made[at] for at in some]
        text, said = ("\n".join(parts) for parts in zip(*((one.text, one.said) for one in piece)))
        yield Block("list", text, said, _height(piece))


def _even(heights: Sequence[int], room: int) -> list[list[int]]:
    """The places of things in groups, in their order: as few as fit, and then as equal as they can be."""

    def groups(room: int) -> list[list[int]]:
        found: list[list[int]] = [[]]
        for at, height in enumerate(heights):
            if found[-1] and sum(heights[one] for one in found[-1]) + height > room:
                found.append([])
            found[-1].append(at)
        return found

    fewest = len(groups(room))
    return next(made for less in range(1, room + 1) if len(made := groups(less)) == fewest)


def _rows(part: str) -> Iterator[Block]:
    """A table of Markdown, in pieces that fit."""
    head, rows = part.splitlines()[:2], part.splitlines()[2:]
    cells = [[_seen(cell) for cell in row.strip("|").split("|")] for row in [head[0], *rows]]
    for some, height in _cut(cells):
        yield Block("table", html("\n".join([*head, *(rows[at] for at in some)])), height=height)


def _cut(cells: Sequence[Sequence[str]]) -> Iterator[tuple[list[int], int]]:
    """Of a table's rows, below its head, those that fit on a slide each time, and the pixels that they take."""
    longest = [max(map(len, column)) + 2 for column in zip(*cells)]
    share = min(1.0, CELLS / sum(longest))
    tall = [
        ROW + 29 * (max(-(-len(cell) // max(8, int(share * long))) for cell, long in zip(row, longest)) - 1)
        for row in cells
    ]
    tall = [max(ROW, one) for one in tall]
    head = tall[0] + 16
    for some in _even(tall[1:], ROOM - head):
        yield some, head + sum(tall[1 + at] for at in some)


def _printed(text: str) -> Iterator[Block]:
    """Lines as they are, in pieces that fit."""
    lines = text.strip("\n").splitlines()
    tall = [CODE * max(1, -(-len(line) // PRINT)) for line in lines]
    for some in _even(tall, ROOM - 34):
        piece = "\n".join(lines[at] for at in some)
        yield Block("printed", f"<pre>{escape(piece)}</pre>", height=34 + sum(tall[at] for at in some))


def _output(output: Mapping[str, Any], source: str) -> Iterator[Block]:
    """What a cell shows: pictures, tables of at most ROWS rows, boxes, and a few printed lines."""
    data = output.get("data", {})
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        seen = output.get("metadata", {}).get("image/png", {}).get("alt", "")
        wide, high = struct.unpack(">II", base64.b64decode(png[:32])[16:24])
        image = f'<img alt="{escape(seen)}" src="data:image/png;base64,{png}">'
        yield Block("picture", image, height=PICTURE, tall=high > max(TALL, wide / BROAD))
    elif "text/html" in data and not FOR_NOTES.search(source):
        yield from _shown_table("".join(data["text/html"]), boxed="box(" in source)
    elif said := "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n"):
        if "moving(" in source:  # a caption
            words = " ".join(said.partition("\nHere:")[0].split())
            yield Block("text", point(words), words, LINE * _lines(point(words)) + 16)
        elif said.count("\n") < PRINTED and not FOR_NOTES.search(source):
            yield from _printed(said)


def _shown_table(page: str, *, boxed: bool) -> Iterator[Block]:
    """A table of the notebook, without the code below a box; a long one is left out."""
    page = re.sub(r"<details><summary>The whole code.*?</details>", "", page, flags=re.DOTALL)
    page = re.sub(r'<a href="(?!https?:)[^>]*>(.*?)</a>', r"\1", page)
    rows = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    head = rows[0] if "<thead>" in page else ""
    below = rows[1:] if head else rows
    if len(below) > ROWS and not boxed:
        return
    text = lambda cell: re.sub(r"<br>|<[^>]+>", "", cell)
    cells = [
        [text(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in [head or below[0], *below]
    ]
    for some, height in _cut(cells):
        body = "".join([head, *(below[at] for at in some)])
        yield Block("table", f"<table{' class=box' if boxed else ''}>{body}</table>", height=height)


def _code(source: str) -> str:
    """Code behind its caption, which opens it, over the slide; a caption is a comment in the first line."""
    caption = re.match(r"# ((?:Picture|Checks?)[^:]*: .+)", source)
    word = caption[1] if caption else "code"
    return f"<details class='code'><summary>{escape(word)}</summary><pre>{escape(source.strip())}</pre></details>"


DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
.one { white-space: nowrap; }
mjx-container g { stroke: none; }  /* a line of width 0 is a hair in a PDF */
</style>
{head}
<script>
MathJax = {
  tex: {inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]], processEscapes: true},
  svg: {fontCache: "none", mtextInheritFont: true},
  options: {enableMenu: false, enableAssistiveMml: false}
};
</script>
<script src="reveal.js/tex-svg.js"></script>
</head>
<body>
{body}
</body>
</html>
"""

HEAD = """\
<link rel="stylesheet" href="reveal.js/dist/reveal.css">
<link rel="stylesheet" href="reveal.js/dist/theme/course.css">"""

BODY = """\
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script src="reveal.js/dist/reveal.js"></script>
<script src="reveal.js/plugin/notes.js"></script>
<script src="reveal.js/plugin/zoom.js"></script>
<script>
MathJax.startup.promise.then(() => Reveal.initialize({
  width: 1280, height: 720, margin: 0.02, center: false, hash: true, slideNumber: "c/t", transition: "none",
  plugins: [RevealNotes, RevealZoom]
}));
</script>"""

CSS = """\
body, .reveal-viewport { background: #fff; }
.reveal { font: 30px/1.36 "Helvetica Neue", Helvetica, Arial, sans-serif; color: #222; }
.reveal .slides { text-align: left; }
.reveal .slides section { padding: 0; height: 100%; }
.reveal .page { display: flex; flex-direction: column; height: 100%; padding: 14px 30px 26px; box-sizing: border-box; }
.reveal .page { overflow: hidden auto; }
.reveal h1, .reveal h2, .reveal h3 { color: #16325c; margin: 0 0 12px; line-height: 1.2; }
.reveal h1 { font-size: 54px; margin: 130px 0 30px; }
.reveal h2 { font-size: 38px; }
.reveal h3 { font-size: 32px; }
.reveal p, .reveal ul, .reveal ol { margin: 0 0 14px; }
.reveal ul, .reveal ol { padding-left: 28px; }
.reveal li { margin-bottom: 8px; }
.reveal .time { color: #667; font-size: 20px; }
.reveal blockquote { margin: 4px 0 14px; padding: 8px 18px; border-left: 5px solid #d98200; background: #fff6e6; }
.reveal blockquote p { margin: 0; }
.reveal .ask { font-size: 34px; margin-top: 16px; }
.reveal pre { font-size: 20px; line-height: 27px; margin: 0 0 10px; padding: 8px 12px; background: #f5f6f8; }
.reveal .printed pre { white-space: pre-wrap; }
.reveal .printed { margin-bottom: 10px; }
.reveal table { font-size: 23px; line-height: 29px; margin: 0 0 14px; border-collapse: collapse; }
.reveal td, .reveal th { padding: 4px 14px; text-align: left; border-bottom: 1px solid #dde; vertical-align: top; }
.reveal table.box { font-size: 21px; line-height: 27px; }
.reveal .picture { flex: 1 1 0; min-height: 0; display: flex; justify-content: center; margin-bottom: 10px; }
.reveal .picture img { max-width: 100%; max-height: 100%; object-fit: contain; margin: 0; }
.reveal .beside { display: block; padding-right: 770px; }
.reveal .beside .picture { position: absolute; top: 14px; right: 30px; bottom: 26px; width: 720px; margin: 0; }
.reveal details.code { font-size: 15px; color: #667; margin: 0 0 6px; }
.reveal details.code[open] > pre {
  position: absolute; z-index: 9; left: 30px; right: 30px; max-height: 540px; overflow: auto;
  box-shadow: 0 2px 14px #0005;
}
.reveal mjx-container svg[viewBox] { max-width: 100%; height: auto; }
.reveal .controls { font-size: 6px; }
.reveal .slide-number { right: auto; left: 12px; background: none; color: #667; font-size: 14px; }
"""
