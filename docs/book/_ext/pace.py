"""How long the notebooks and the primer take: minutes by one rule, points, what needs what, seconds to run.

python docs/book/_ext/pace.py            minutes, points and needs of every notebook
python docs/book/_ext/pace.py --write    put the minutes into the notebooks' first cells; nothing is run
python docs/book/_ext/pace.py --measure  run every notebook once and write docs/book/course/seconds.csv
"""

import argparse
import csv
import importlib.util
import re
import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import ModuleType

import nbformat

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "notebooks"
SECONDS = ROOT / "docs" / "book" / "course" / "seconds.csv"
# A minute holds so many of each. Not measured on students: prose is read at half of the 238 words a minute that adults
# reach in their first language (Brysbaert 2019), a proof by checking each formula.
WORDS, LINES, FORMULAS, DISPLAYS, POINTS = 130, 12, 2, 0.5, 0.2
SOLUTION = re.compile(r"<details>.*?</details>", re.DOTALL)
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
DISPLAY = re.compile(r"\$\$.*?\$\$", re.DOTALL)
OPERATION = re.compile(
    r"[=<>+/]|\\(le|ge|ll|in|to|sum|t?frac|lVert|langle|mathbb\{E\}|cdot|times|approx|sqrt)(?![a-z])"
)
TIME = re.compile(r"(\*\*Time:\*\*.*?about )(\d+)(\s+minutes;.*?about )(\d+)", re.DOTALL)
PRIMER = {  # which notebooks use a page of the primer
    "svd": ("05", "06"),
    "haar": ("01", "02", "03"),
    "jensen": ("01", "06"),
    "smoothness": ("04", "07", "12"),
    "control_variates": ("00", "03"),
    "zeroth_order": ("07", "09"),
}


@dataclass(frozen=True)
class Count:
    """What there is to read: words of prose, lines of open code, formulas within a line, and on lines of their own.

    A letter alone, such as $x_i$, is a word; a formula has a relation or an operation.
    """

    words: int = 0
    lines: int = 0
    formulas: int = 0
    displays: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))

    def minutes(self, points: int = 0) -> int:
        """By the rule, in steps of five, and never nothing."""
        exact = self.words / WORDS + self.lines / LINES + self.formulas / FORMULAS
        exact += self.displays / DISPLAYS + points / POINTS
        return max(5, 5 * round(exact / 5))


@dataclass(frozen=True)
class Pace:
    """Fields: stem and title; all that is read; the part in core sections; the sections by number; points; what it
    needs; the minutes that it states."""

    stem: str
    title: str
    whole: Count
    core: Count
    sections: dict[str, Count]
    points: int
    needs: tuple[str, ...]
    said: tuple[int, int] | None


def count(source: str, kind: str, folded: bool = False) -> Count:
    """Of one cell. Solutions are not counted, nor is folded code; a paper's box in the prose is code."""
    if kind == "code":
        return Count(lines=0 if folded else _lines(source))
    text = SOLUTION.sub("", source)
    boxes, text = FENCE.findall(text), FENCE.sub("", text)
    displays = DISPLAY.findall(text)
    text = DISPLAY.sub("", text)
    formulas = [one for one in re.findall(r"\$([^$]*)\$", text) if OPERATION.search(one)]
    text = re.sub(r"\]\([^)]*\)|[#>|*-]", " ", re.sub(r"\$[^$]*\$", " x ", text))
    return Count(
        len(re.findall(r"[^\W_][\w.'-]*", text)), sum(_lines(box) - 2 for box in boxes), len(formulas), len(displays)
    )


def _lines(source: str) -> int:
    """Lines with something on them that is no comment."""
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in source.splitlines())


def pace(path: Path) -> Pace:
    """Of a built notebook; a section whose heading ends with a star is core, with all that stands below it."""
    return _pace(path, path.read_text(encoding="utf-8"))


@cache
def _pace(path: Path, text: str) -> Pace:
    from fedtheory.course.exercises import exercises

    notebook = nbformat.reads(text, as_version=4)
    whole, core, star = Count(), Count(), 0  # star: level of the core heading that we are below
    sections: dict[str, Count] = {}
    inside = ""  # the number of the section
    for cell in notebook.cells:
        hidden = "hide-input" in cell.metadata.get("tags", [])
        parts = re.split(r"(?m)^(?=#{1,4} )", cell.source) if cell.cell_type == "markdown" else [cell.source]
        for part in parts:
            head = re.match(r"(#{1,4}) (.+)", part) if cell.cell_type == "markdown" else None
            if head and (not star or len(head[1]) <= star):
                star = len(head[1]) if head[2].endswith(" *") else 0
            here = count(part, cell.cell_type, hidden)
            whole, core = whole + here, core + here if star else core
            if head and len(head[1]) == 2:
                inside = head[2].partition(".")[0]
            sections[inside] = sections.get(inside, Count()) + here
    first = notebook.cells[0].source
    points = sum(one.points for one in exercises(path.stem[:2]).values()) if path.parent == FOLDER else 0
    title = first.splitlines()[0].lstrip("# ")
    return Pace(path.stem, title, whole, core, sections, points, needs(first, path.stem[:2]), said(first))


def minutes(number: str, what: str = "") -> int:
    """Of a notebook: all that is read; "core"; "sections 1, 2 and 4"; "with exercises"; "with exercises 1 and 3"."""
    from fedtheory.course.exercises import exercises

    (one,) = map(pace, FOLDER.glob(f"{number}_*.ipynb"))
    asked, before = exercises(number), what.partition("with exercise")
    chosen = [int(n) for n in numbers(before[2])] if numbers(before[2]) else list(asked)
    points = sum(asked[n].points for n in chosen) if before[1] else 0
    if before[0].strip() == "core":
        return one.core.minutes(points)
    wanted = numbers(before[0])
    parts = one.sections if not wanted else {n: one.sections[n] for n in wanted}
    return sum(parts.values(), Count()).minutes(points) if wanted else one.whole.minutes(points)


def numbers(text: str) -> list[str]:
    """The numbers that a text lists: "1, 2 and 4", "1 to 4"."""
    found: list[str] = []
    for low, high in re.findall(r"\b(\d+)\b(?: to (\d+))?", text):
        found += map(str, range(int(low), int(high or low) + 1))
    return found


def needs(first: str, own: str) -> tuple[str, ...]:
    """The notebooks that a first cell says it needs: on its line "Needs", or else under "Prerequisites"."""
    said = re.search(r"\*\*Needs:\*\*(.*?)(?:\n\s*\n|\Z)", first, re.DOTALL)
    said = said or re.search(r"## Prerequisites\n(.*?)(?:\n## |\Z)", first, re.DOTALL)
    text = said[1] if said else ""
    found = set(re.findall(r"(?<![\d.])\d\d(?![\d.]\d|\d)", text))
    for low, high in re.findall(r"(\d\d) to (\d\d)", text):
        found |= {f"{number:02}" for number in range(int(low), int(high) + 1)}
    return tuple(sorted(one for one in found if one < own))


def said(first: str) -> tuple[int, int] | None:
    """Minutes of the core sections and of all with the exercises, as a first cell states them; None without them."""
    found = TIME.search(first)
    return (int(found[2]), int(found[4])) if found else None


def reduced(all_needs: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Without what is needed anyway by something else that is needed."""

    @cache
    def below(one: str) -> frozenset[str]:
        direct = all_needs.get(one, ())
        return frozenset(direct).union(*(below(other) for other in direct))

    return {
        one: tuple(n for n in direct if not any(n in below(other) for other in direct))
        for one, direct in all_needs.items()
    }


def notebooks() -> list[Pace]:
    return [pace(path) for path in sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))]


def primer() -> list[Pace]:
    return [pace(path) for path in sorted((ROOT / "docs" / "book" / "foundations").glob("*.ipynb"))]


def seconds() -> dict[str, float]:
    """Processor seconds of a run, by stem, as they were measured once."""
    with SECONDS.open() as file:
        return {row["notebook"]: float(row["cpu_seconds"]) for row in csv.DictReader(file)}


def _builder() -> ModuleType:
    """notebooks/build.py"""
    spec = importlib.util.spec_from_file_location("build_notebooks", ROOT / "notebooks" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build


def write(one: Pace) -> bool:
    """Put the rule's minutes into the first cell of a notebook and of its source; True if they were others."""
    wanted = (one.core.minutes(), one.whole.minutes(one.points))
    if one.said in (None, wanted):
        return False
    path, build = FOLDER / f"{one.stem}.ipynb", _builder()
    source = path.with_suffix(".py")
    said = lambda found: f"{found[1]}{wanted[0]}{found[3]}{wanted[1]}"
    source.write_text(TIME.sub(said, source.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    notebook = nbformat.read(path, as_version=4)
    first = build.read_source(source).cells[0]
    notebook.cells[0].update(source=first.source, id=first.id)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")
    return True


def measure(paths: Iterable[Path]) -> dict[str, float]:
    """Run notebooks one after the other, as build.py does, and write nothing: processor seconds by stem."""
    build, found = _builder(), {}
    for path in paths:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        resources = {"metadata": {"path": str(FOLDER)}}
        build.NotebookClient(build.read_source(path), timeout=600, kernel_name="python3", resources=resources).execute()
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[path.stem] = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        print(f"{path.stem}: {found[path.stem]:.0f} s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run them and keep the times")
    parser.add_argument("--write", action="store_true", help="bring the first cells up to date")
    parser.add_argument("names", nargs="*", help="beginnings of names, such as 00 (default: all)")
    options = parser.parse_args()
    if options.measure:
        chosen = [path for path in sorted(FOLDER.glob("[0-9][0-9]_*.py"))
                  if not options.names or path.stem.startswith(tuple(options.names))]  # fmt: skip
        kept = (seconds() if SECONDS.exists() else {}) | measure(chosen)
        rows = [f"{stem},{kept[stem]:.0f}" for stem in sorted(kept)]
        SECONDS.write_text("\n".join(["notebook,cpu_seconds", *rows]) + "\n")
        return 0
    if options.write:
        print("\n".join(one.stem for one in notebooks() if write(one)))
        return 0
    for one in [*notebooks(), *primer()]:
        core = f"core {one.core.minutes()}" if one.core != Count() else "no core section"
        states = "" if one.said is None else f" (it states {one.said[0]} and {one.said[1]})"
        print(f"{one.stem}: {core}, all {one.whole.minutes()}, with {one.points} points "
              f"{one.whole.minutes(one.points)}{states}; needs {', '.join(one.needs) or 'nothing'}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
