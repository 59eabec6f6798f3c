"""Tables and algorithm boxes in HTML for a notebook, in text wherever else they are shown."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from html import escape
from itertools import zip_longest
from typing import Any

from fedtheory.core import registry
from fedtheory.theory.letters import GREEK, letters

WIDTH = 100  # characters of a line that a reader sees whole
LONG = 24  # rows; a longer table is folded
_PIECE = re.compile(r"\s*[^\s_/:]*(?:::|[_/:])|\s*[^\s_/:]+|\s+")  # a line may end behind each
_LINK = re.compile(
    rf"\b(test_\w+\.py)::\w+|\b(?:{'|'.join(registry.PAPERS)})[./]\w(?:[\w.-]*\w)?(?!\w*\()|https?://[^\s,;)]+"
)


def put(text: str, html: str) -> None:
    """Display HTML, with the text as its fallback; outside of a notebook print the text."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": html}, raw=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show rows of words: columns of words to the left, of numbers to the right."""
    words = [any(row[at][:1].isalpha() for row in rows) for at in range(len(header))]
    html = _html(list(map(escape, header)), [list(map(linked, row)) for row in rows], words)
    if len(rows) > LONG:
        named = ", ".join(escape(name) for name in header if name)
        html = f"<details><summary>{len(rows)} rows: {named}</summary>{html}</details>"
    put(_text(header, rows, words), html)


def linked(text: str) -> str:
    """A cell in HTML: tests, claims, items and addresses are links, and long names may go on in a second line."""

    def link(found: re.Match[str]) -> str:
        name = found[0]
        if found[1]:
            target = f"../tests/{found[1]}"
        elif "://" in name:
            target = name
        elif name in registry.items():
            target = "../docs/report.md"
        elif name in registry.claim_names():
            target = "../docs/ledger.md"
        else:
            return name
        broken = re.sub("(::|_|/)", r"\1<wbr>", name)
        return f'<a href="{target}">{broken}</a>'

    return _LINK.sub(link, escape(text))


def _html(header: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[bool]) -> str:
    """A table of cells in HTML; on a narrow screen it is moved sideways, and no word is broken."""
    sides = [f"text-align:{'left' if left else 'right'};vertical-align:top" for left in words]
    line = lambda cells, tag: "".join(f'<{tag} style="{side}">{cell}</{tag}>' for cell, side in zip(cells, sides))
    body = "\n".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    head = f"<thead><tr>{line(header, 'th')}</tr></thead>\n" if any(header) else ""
    return f'<div style="overflow-x:auto"><table>\n{head}<tbody>\n{body}\n</tbody></table></div>'


def _text(header: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[bool]) -> str:
    """Aligned columns; of a row that is too wide the widest cells are wrapped, between words where that is enough."""
    every, columns = [header, *rows], range(len(header))
    widths = [max(len(row[at]) for row in every) for at in columns]
    least = [max(len(piece.strip()) for row in every for piece in [*_PIECE.findall(row[at]), ""]) for at in columns]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        free = [at for at in columns if widths[at] > least[at]] or columns
        widths[max(free, key=lambda at: widths[at])] -= 1
    lines = []
    for number, row in enumerate(every):
        cells = [_wrapped(text, width) for text, width in zip(row, widths)]
        for parts in zip_longest(*cells, fillvalue=""):
            lines.append(
                "  ".join(t.ljust(w) if left else t.rjust(w) for t, w, left in zip(parts, widths, words)).rstrip()
            )
        if number == 0:
            lines.append("  ".join("-" * w for w in widths))
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines, cut between words; a word longer than a line behind a part of it, or where the line ends."""
    lines = [""]
    words = re.findall(r"\s*\S+", text)
    for piece in (part for word in words for part in (_PIECE.findall(word) if len(word.strip()) > width else [word])):
        if len(lines[-1] + piece) > width and lines[-1]:
            lines.append("")
            piece = piece.lstrip()
        lines[-1] += piece
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


_MARK = r"\(?[A-Z]?\.?\d[\d.]*\)?"  # 12, (17), C.1
_LABEL = re.compile(rf"^ *((?:{_MARK}(?:, )?)+)  ( *)(.*)$")
_CODE = re.compile(rf"^(.*?)  # ((?:{_MARK}(?:-\d+)?(?:, )?)+)(?=$|[ :;])")


def box(title: str, lines: str, *parts: Callable[..., Any]) -> None:
    """Show an algorithm's box, each line with its number and with the lines of our code that name this number.

    Args:
        title: of the box.
        lines: as printed, one a line: its number or equation, two blanks, the line. Lines without a number are words.
        parts: functions of the package; "# 3" or "# 14, 16: why" behind a line of theirs names lines of the box.
    """
    sources = [textwrap.dedent(inspect.getsource(part)) for part in parts]
    rows, html = [], []
    for line in textwrap.dedent(lines).strip("\n").splitlines():
        found = _LABEL.match(line)
        label, indent, said = found.groups() if found else ("", "", line.strip())
        code = [one for mark in re.findall(_MARK, label) for source in sources for one in _named(mark, source)]
        code = list(dict.fromkeys(code))
        rows.append([label, indent + letters(said), " ; ".join(code)])
        shown = f'<div style="padding-left:{len(indent) / 2:g}em;min-width:14em">{_typeset(said)}</div>'
        html.append([label, shown, "<br>".join(f"<code>{escape(one)}</code>" for one in code)])
    header, words = ["", title, "our code"], [False, True, True]
    listing = escape("\n".join(sources))
    whole = f"<details><summary>The whole code</summary><pre>{listing}</pre></details>"
    put(_text(header, rows, words), _html(["", escape(title), "our code"], html, words) + whole)


def _named(mark: str, source: str) -> list[str]:
    """The lines of code whose comment names a line of the box."""
    found = []
    for line in source.splitlines():
        if named := _CODE.match(line):
            ranges = re.findall(r"\b(\d+)-(\d+)\b", named[2])
            marks = {str(at) for first, last in ranges for at in range(int(first), int(last) + 1)}
            if mark in marks | set(re.findall(_MARK, named[2])):
                found.append(named[1].strip())
    return found


_SCRIPTS = re.compile(r"([_^])(?:\{([^{}]*)\}|(\d+|[A-Za-z]+|\*))")
_SIGNS = {
    r"\bsum(?![a-z])": "∑",
    r"\bgrad ": "∇",
    r"&lt;-": "←",
    r"\(x\)": "⊗",
    r"(\w)~": "\\1\u0303",
    r"_bar\b": "\u0304",
}
_NAMES = re.compile(rf"(?<![A-Za-z])({'|'.join(GREEK)})(?![A-Za-z])")
_LETTER = re.compile(r"(?<![A-Za-z&])[B-Zb-z][\u0303\u0304]?(?![A-Za-z'])")


def _typeset(line: str) -> str:
    """A line of a box in HTML: Greek letters, indices, powers, single letters in italics."""
    text = escape(line, quote=False)
    for sign, shown in _SIGNS.items():
        text = re.sub(sign, shown, text)
    tag = lambda found: "sub" if found[1] == "_" else "sup"
    text = _SCRIPTS.sub(lambda found: f"<{tag(found)}>{found[2] or found[3]}</{tag(found)}>", text)
    return _LETTER.sub(r"<i>\g<0></i>", _NAMES.sub(lambda found: GREEK[found[1]], text))
