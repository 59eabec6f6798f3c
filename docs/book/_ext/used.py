"""Which notebooks speak of something, each with a link to it."""

import re
from collections.abc import Iterable

import nbformat
from stage import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


class Uses:
    """The notebooks' texts; a name is found where its whole word stands."""

    def __init__(self) -> None:
        read = {path.stem: nbformat.read(path, as_version=4).cells for path in NOTEBOOKS}
        self.texts = {stem: "\n\n".join(cell.source for cell in cells) for stem, cells in read.items()}

    def of(self, *names: str, most: int = 3) -> list[tuple[str, str]]:
        """The first notebooks, at most so many: (title, target from the book's root)."""
        whole = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in names))
        stems = (
            stem for stem, text in self.texts.items() if any(name in text for name in names) and whole.search(text)
        )
        return [(f"notebook {stem[:2]}", f"notebooks/{stem}.ipynb") for stem, _ in zip(stems, range(most))]


def stems(names: Iterable[str]) -> list[str]:
    return [path.stem for path in NOTEBOOKS if path.stem[:2] in set(names)]
