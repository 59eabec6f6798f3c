"""How a page reads: long sentences, wide tables, full cells, and phrases that plain English does without."""

import re
from collections.abc import Iterator

BANNED = (  # a phrase, and what says it plainly
    ("in the place of", "instead of"),
    ("of course", "leave it out"),
    ("note that", "leave it out"),
    ("it is said", "say who says it, or leave it out"),
    ("as said", "leave it out"),
    ("which is said", "leave it out"),
    ("honestly", "leave it out"),
    ("the latter", "name it"),
    ("the former", "name it"),
    ("one of which", "name it"),
    ("those of which", "name it"),
    ("hangs on", "depends on"),
    ("hang on", "depend on"),
    ("for itself", "alone"),
    ("next to nothing", "give the number"),
)
WORDS, CELL, COLUMNS = 30, 15, 6


def paragraphs(page: str) -> Iterator[str]:
    """The running text of a page, without code, tables, formulas and headings."""
    page = re.sub(r"```.*?```|~~~.*?~~~", "", page, flags=re.DOTALL)
    page = re.sub(r"\$\$.*?\$\$", " F ", page, flags=re.DOTALL)
    page = re.sub(r"<!--.*?-->|^\[[^\]]+\]: .*$", "", page, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", page):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|!\[|:::|>? ?\[!)", line)]
        if text := " ".join(" ".join(lines).split()):
            yield plain(text)


def plain(text: str) -> str:
    """Markdown as it is read: a link's words, a formula or a piece of code as one word."""
    text = re.sub(r"\$[^$]+\$|`[^`]+`", "F", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*_>]+", "", text)


def sentences(page: str) -> Iterator[str]:
    for text in paragraphs(page):
        shortened = re.sub(r"\b(e\.g|i\.e|Sec|Secs|Fig|Figs|Eq|Eqs|Tab|App|Apps|et al|vs|cf|Alg)\.", r"\1", text)
        end = r"(?<=[.!?])\s+(?=[A-Z\"(])|(?<=[.!?][)\"])\s+(?=[A-Z\"(])|(?<=:)\s+(?=[A-Z])|(?<=[.;])\s+(?=[a-z]+/\w+)"
        yield from re.split(end, shortened)


def rows(page: str) -> Iterator[list[str]]:
    for line in re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL).splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s:-]+", line):
            yield [plain(cell).strip() for cell in line.strip("| ").split(" | ")]


def faults(page: str) -> Iterator[str]:
    """One line for each thing that a reader must read twice."""
    for sentence in sentences(page):
        if (count := len(sentence.split())) > WORDS:
            yield f"{count} words: {sentence[:90]}"
    text = " ".join(paragraphs(page)).lower()
    for phrase, fix in BANNED:
        if found := len(re.findall(rf"\b{phrase}\b", text)):
            yield f"{found} times {phrase!r} ({fix})"
    for cells in rows(page):
        if len(cells) > COLUMNS:
            yield f"a table of {len(cells)} columns: {' | '.join(cells)[:60]}"
            break
    for cells in rows(page):
        for cell in cells:
            if (count := len(cell.split())) > CELL:
                yield f"a cell of {count} words: {cell[:60]}"
