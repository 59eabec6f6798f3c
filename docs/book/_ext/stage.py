"""The folder that Sphinx reads: every page is written there only where its text changed, so that builds are short."""

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedtheory.running import verdicts
from fedtheory.theory import ledger

ROOT = Path(__file__).resolve().parents[3]
BOOK = ROOT / "docs" / "book"
GUIDES = ("your-data", "your-network", "your-method", "your-experiment", "which-method", "loggers", "coming-from")
GUIDES += ("processes", "federation", "speed", "speed-details")


def proved(name: str) -> str:
    """A page of docs/theory, without the links to its checks' source: the book has a table of them."""
    text = (ROOT / "docs" / "theory" / f"{name}.md").read_text()
    return text.partition("\n<!-- checks -->\n")[0]


def bare(text: str) -> str:
    """Markdown without its comments."""
    return re.sub(r"<!--.*?-->", "", text)


class Stage:
    """Pages and files of one build; `finish` removes what an earlier one left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, set()

    def write(self, name: str, text: str | bytes) -> None:
        path, data = self.folder / name, text.encode() if isinstance(text, str) else text
        self.kept.add(path)
        if path.exists() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def copy(self, source: Path, name: str) -> None:
        self.write(name, source.read_bytes())

    def finish(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_file() and path not in self.kept:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                shutil.rmtree(path)


def badge(verdict: str) -> str:
    """A verdict, as the ledger and the records have it, in its colour: best first there, then the worst, then none."""
    words = next((words for words in (ledger.VERDICTS, verdicts.VERDICTS) if verdict in words), (verdict,))
    grade = {0: "good", len(words) - 2: "bad", len(words) - 1: "open"}.get(words.index(verdict), "partly")
    return f"[{verdict}]{{.verdict .{grade}}}"


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def plain(text: str) -> str:
    """A text of the code as Markdown that shows it, character by character."""
    return re.sub(r"([\\`*_{}\[\]<>#$|~^&])", r"\\\1", " ".join(text.split()))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; its cells are Markdown."""
    cell = lambda text: str(text).replace("\n", " ")
    line = lambda cells: f"| {' | '.join(map(cell, cells))} |"
    return [line(head), "|---" * len(head) + "|", *map(line, rows)]


def toctree(names: Iterable[str], *, hidden: bool = True, depth: int = 1) -> list[str]:
    options = [":hidden:"] if hidden else [f":maxdepth: {depth}"]
    return ["```{toctree}", *options, "", *names, "```"]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]


def read_json(path: Path) -> dict:
    return json.loads(path.read_text())
