"""Where the notebooks speak of something: each place as the heading above it and a link to it."""

import re
from collections import defaultdict
from collections.abc import Iterable

import nbformat
from mdit_py_plugins.anchors.index import slugify
from stage import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


class Uses:
    """The places of names in the notebooks; a name is found where its whole word stands."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str, str, str]] = []  # notebook, heading, target, text
        for path in NOTEBOOKS:
            heading, anchor = "", ""
            counts: defaultdict[str, int] = defaultdict(int)
            for cell in nbformat.read(path, as_version=4).cells:
                if cell.cell_type == "markdown":
                    for part in re.split(r"(?m)^(?=#{1,4} )", cell.source):
                        if title := re.match(r"#{1,4} (.+)", part):
                            heading = title[1]
                            base = slugify(re.sub(r"[`*$]", "", heading))
                            anchor = base if not counts[base] else f"{base}-{counts[base]}"
                            counts[base] += 1
                        self.texts.append((path.stem, heading, anchor, part))
                else:
                    self.texts.append((path.stem, heading, anchor, cell.source))

    def of(self, *names: str, most: int = 3) -> list[tuple[str, str]]:
        """At most three places, of different notebooks first: (title, target from the book's root)."""
        whole = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in names))
        found = [(stem, heading, anchor) for stem, heading, anchor, text in self.texts if whole.search(text)]
        first = {stem: (stem, heading, anchor) for stem, heading, anchor in reversed(found)}
        return [(f"notebook {stem[:2]}", f"notebooks/{stem}.ipynb") for stem, *_ in sorted(first.values())[:most]]


def stems(names: Iterable[str]) -> list[str]:
    return [path.stem for path in NOTEBOOKS if path.stem[:2] in set(names)]
