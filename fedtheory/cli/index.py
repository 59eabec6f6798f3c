"""The page that `reproduce` ends with: every item's quick picture beside the committed one, and what we found."""

import os
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from fedtheory.core import registry
from fedtheory.core.files import write_atomic
from fedtheory.core.registry import PAPERS
from fedtheory.papers.quick import TEXTS, committed, picture
from fedtheory.running import records

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 1300px; padding: 0 1rem; }
section { border-top: 1px solid #ccc; padding: .5rem 0 1.5rem; }
.pair { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { flex: 1 1 320px; margin: 0; min-width: 0; }
img { max-width: 100%; height: auto; }
figcaption, nav { color: #444; font-size: .9rem; }
"""


def write(out: Path) -> Path:
    """Write `<out>/quick/index.html`: the papers' items that have a quick picture in this folder."""
    page = out / "quick" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    shown = {name: path for name in TEXTS if (path := picture(out, name)) is not None}
    papers = {paper: list(names) for paper, names in groupby(shown, lambda name: name.split("/")[0])}
    links = " · ".join(f'<a href="#{paper}">{PAPERS[paper]}</a>' for paper in papers)
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>fedtheory: quick pictures</title><style>{_STYLE}</style></head><body>",
        "<h1>What five papers claim, seen in minutes</h1>",
        "<p>First what you have just computed: a small problem with few seeds shows an effect and is not judged. "
        "Then the committed run, on which our verdicts rest.</p>",
        f"<nav>{links}</nav>",
    ]
    for paper, names in papers.items():
        lines.append(f'<h2 id="{paper}">{PAPERS[paper]}</h2>')
        for name in names:
            lines += _section(out, name, shown[name], page.parent)
    write_atomic(page, "\n".join([*lines, "</body></html>", ""]).encode())
    return page


def _section(out: Path, name: str, drawn: Path, folder: Path) -> Iterator[str]:
    """One item."""
    text, title, place = TEXTS[name], registry.items()[name].title, committed(out, name)
    to = lambda path: escape(Path(os.path.relpath(path, folder)).as_posix())
    yield f'<section id="{name.replace("/", "-")}"><h3>{escape(f"{name}: {title}")}</h3>'
    yield f"<p><b>The paper claims:</b> {escape(text.claim)}</p><p><b>We found:</b> {escape(text.found)}</p>"
    yield '<div class="pair">'
    kind = "Too long for a quick run: drawn from the committed one." if text.committed else "Quick run."
    yield from _picture(to(drawn), f"{name}, quick", f"{kind} What to see: {text.see}")
    if place is None:
        yield "<p>The committed runs lie in the repository, which is not here.</p></div></section>"
        return
    record, stem = records.load(place, name, pictured=False), to(place / name)
    said = f"Committed run: {record['scale']} scale, seeds {records.seed_words(record['seeds'])}."
    yield from _picture(f"{stem}.png", f"{name}, committed", said)
    links = [f'<a href="{stem}.csv">table</a>', f'<a href="{stem}.json">record</a>']
    if (report := place.parent / "docs" / "report.md").exists():
        links.append(f'<a href="{to(report)}">every number</a>')
    yield f"</div><nav>{' · '.join(links)}</nav></section>"


def _picture(source: str, words: str, said: str) -> Iterator[str]:
    yield f'<figure><a href="{source}"><img src="{source}" alt="{escape(words)}" loading="lazy"></a>'
    yield f"<figcaption>{escape(said)}</figcaption></figure>"
