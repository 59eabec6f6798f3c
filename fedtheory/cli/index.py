"""The page that `reproduce` ends with: every item's quick picture beside the committed one, and what we found."""

import os
from itertools import groupby
from pathlib import Path
from typing import Any

from fedtheory.cli.template import render
from fedtheory.core import registry
from fedtheory.core.files import write_atomic
from fedtheory.core.registry import PAPERS
from fedtheory.papers.quick import TEXTS, committed, picture
from fedtheory.running import records


def write(out: Path) -> Path:
    """Write `<out>/quick/index.html`: the papers' items that have a quick picture in this folder."""
    page = out / "quick" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    shown = {name: path for name in TEXTS if (path := picture(out, name)) is not None}
    papers = [
        {"id": paper, "title": PAPERS[paper], "shown": [_item(out, name, shown[name], page.parent) for name in names]}
        for paper, names in groupby(shown, lambda name: name.split("/")[0])
    ]
    write_atomic(page, render("index.html.jinja", papers=papers).encode())
    return page


def _item(out: Path, name: str, drawn: Path, folder: Path) -> dict[str, Any]:
    """What the page shows of an item; paths from `folder`."""
    to = lambda path: Path(os.path.relpath(path, folder)).as_posix()
    item = {"name": name, "title": registry.items()[name].title, "text": TEXTS[name], "drawn": to(drawn), "stem": None}
    place = committed(out, name)
    if place is None:
        return item
    record, report = records.load(place, name, pictured=False), place.parent / "docs" / "report.md"
    seeds = records.seed_words(record["seeds"])
    found = {"stem": to(place / name), "scale": record["scale"], "seeds": seeds}
    return item | found | {"report": to(report) if report.exists() else None}
