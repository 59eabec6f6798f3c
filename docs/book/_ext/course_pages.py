"""The course's pages: the quiz, its answers folded and each with its place in a notebook, and the plan with its tables.

The quiz is written in docs/book/course/questions.md, one section a topic:

    ### <question>
    <level> | <two digits of the notebook> | <words that stand in one cell of it and nowhere else>

    <answer>

The plan, docs/book/course/plan.md, has a line {{name}} where a table is made here from the notebooks.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pace
from matplotlib.figure import Figure
from stage import BOOK, Stage, folded, table
from used import NOTEBOOKS

from fedtheory.course import slides
from fedtheory.course.course import cells_of, committed_notebooks
from fedtheory.papers import style

QUESTIONS, PLAN = BOOK / "course" / "questions.md", BOOK / "course" / "plan.md"
MADE = ("course/questions.md", "course/plan.md")  # not copied as they are
COLOURS = style.SEQUENCE
HEADING = re.compile(r"(?m)^(?=#{1,4} )")


@dataclass(frozen=True)
class Question:
    """Fields: heading of its part; question; level; notebook, two digits; words to search for there; answer."""

    topic: str
    text: str
    level: int
    notebook: str
    quote: str
    answer: str


@dataclass(frozen=True)
class Place:
    """A cell: its notebook, its number there, the heading above the words, and whether it is code."""

    stem: str
    cell: int
    heading: str
    code: bool


def questions(text: str) -> list[Question]:
    """Those of the quiz's source, in order. Raises ValueError for one that has not the form above."""
    found = []
    for topic, part in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE):
        for one in re.split(r"^### ", part, flags=re.MULTILINE)[1:]:
            said = re.fullmatch(r"(.+)\n([123]) \| (\d\d) \| (.+)\n\n(.+)", one.strip(), re.DOTALL)
            if said is None or "\n" in said[1] + said[4]:
                raise ValueError(f"questions.md: {one.splitlines()[0]!r} has not the form of a question")
            found.append(Question(topic, said[1], int(said[2]), said[3], said[4], said[5].strip()))
    return found


@cache
def sections(path: Path) -> tuple[tuple[Place, str], ...]:
    """A notebook's parts from heading to heading, each with its text in single blanks."""
    heading, found = "", []
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells, 1):
        prose = cell.cell_type == "markdown"
        for part in HEADING.split(cell.source) if prose else [cell.source]:
            if prose and (title := re.match(r"#{1,4} (.+)", part)):
                heading = title[1]
            found.append((Place(path.stem, number, heading, not prose), " ".join(part.split())))
    return tuple(found)


def places(quote: str, notebooks: Sequence[Path] = NOTEBOOKS) -> list[Place]:
    """Every part of every notebook in which the words stand."""
    words = " ".join(quote.split())
    return [place for path in notebooks for place, text in sections(path) if words in text]


def write(stage: Stage) -> None:
    """The quiz's page, the plan's, and the files of projects and reports; the notebooks have been staged."""
    stage.write("course/quiz.md", quiz(QUESTIONS.read_text(), stage))
    made = {"minutes": minutes(), "needs": wanted(), "primer": primer()}
    text = re.sub(r"^\{\{(\w+)\}\}$", lambda found: "\n".join(made[found[1]]), PLAN.read_text(), flags=re.MULTILINE)
    stage.write("course/plan.md", text)
    stage.write("course/needs.png", picture())
    for folder in ("projects", "reports"):
        for path in sorted((BOOK / "course" / folder).glob("*.py")):
            stage.copy(path, f"course/{folder}/{path.name}")


def quiz(text: str, stage: Stage) -> str:
    """The page: questions numbered, every answer in a box that opens, with the cell that teaches it."""
    lines, topic = [text.split("\n## ", 1)[0].rstrip(), ""], ""
    for number, one in enumerate(questions(text), 1):
        if one.topic != topic:
            topic = one.topic
            lines += ["", f"## {topic}"]
        (place,) = places(one.quote)
        named = f"notebook {one.notebook}, {place.heading.removesuffix(' *')}"
        words = f"`{one.quote}`" if place.code else f'"{one.quote}"'
        taught = f"*Taught in* [{named}](../notebooks/{target(place, stage)}), at the words {words}."
        lines += ["", f"**{number}.** {one.text} *(level {one.level})*", ""]
        lines += folded("Answer", [one.answer, "", taught])
    return "\n".join(lines) + "\n"


def target(place: Place, stage: Stage) -> str:
    """The section as it was staged, where the star of a core section may have gone; else the notebook."""
    name = f"{place.stem}.ipynb"
    staged = {part.heading for part, _ in sections(stage.folder / "notebooks" / name)}
    for heading in (place.heading, place.heading.removesuffix(" *")):
        if heading in staged:
            return f"{name}#{anchor(heading)}"
    return name


def anchor(heading: str) -> str:
    """Of a heading, as MyST makes it: mathematics is left out, what is left of it is not stripped."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"\$[^$]*\$", "", heading).lower().replace(" ", "-"))


def minutes() -> list[str]:
    """What each notebook takes: to read, as a lecture, to run."""
    ran, told, rows = pace.seconds(), lectures(), []
    for one in pace.notebooks():
        core = str(one.core.minutes()) if one.core != pace.Count() else "-"
        took = f"{ran[one.stem]:.0f}" if one.stem in ran else "-"
        link = f"[{one.stem[:2]}](../notebooks/{one.stem}.ipynb) {short(one.title)}"
        whole, asked = one.whole.minutes(), one.whole.minutes(one.points)
        rows.append([link, core, whole, asked, told.get(one.stem[:2], "-"), took])
    return table(["notebook", "core", "all", "with exercises", "slides", "seconds"], rows)


def lectures() -> dict[str, int]:
    """The minutes that the slides of a notebook take, by its number."""
    found = {}
    for path in committed_notebooks(slides.LECTURES):
        pages = slides.paged(cells_of(path), slides.SKIPPED.get(path.stem[:2], ()))
        found[path.stem[:2]] = slides.minutes(list(pages))
    return found


def short(title: str) -> str:
    """A notebook's title up to its colon."""
    return title.split(":")[0]


def wanted() -> list[str]:
    """What needs what, as a table."""
    found = pace.notebooks()
    after = {one.stem[:2]: [other.stem[:2] for other in found if one.stem[:2] in other.needs] for one in found}
    rows = []
    for one in found:
        number = one.stem[:2]
        pages = [f"[{page.replace('_', ' ')}](../foundations/{page}.ipynb)" for page in primer_of(number)]
        rows.append([f"{number} {short(one.title)}", ", ".join(one.needs), ", ".join(pages), ", ".join(after[number])])
    return table(["notebook", "needs", "primer", "is needed by"], rows)


def primer_of(number: str) -> list[str]:
    return [page for page, used in pace.PRIMER.items() if number in used]


def primer() -> list[str]:
    rows = [
        [f"[{one.title}](../foundations/{one.stem}.ipynb)", one.whole.minutes(), ", ".join(pace.PRIMER[one.stem])]
        for one in pace.primer()
    ]
    return table(["page", "minutes", "for notebooks"], rows)


def picture() -> bytes:
    """What needs what: names in a column, an arc from each to what builds on it. PNG, readable on a phone."""
    found = {one.stem[:2]: one for one in pace.notebooks()}
    arrows = pace.reduced({number: one.needs for number, one in found.items()})
    at = {number: -float(place) for place, number in enumerate(found)}
    figure = Figure(figsize=(4.0, 0.42 * len(found)), layout="constrained")
    axes = figure.subplots()
    for number, direct in arrows.items():
        for other in direct:
            bend = {"connectionstyle": f"arc3,rad={-0.9 if at[other] - at[number] < 2 else -0.45}"}
            look = {"arrowstyle": "-|>", "color": COLOURS[int(other) % len(COLOURS)], "shrinkA": 3, "shrinkB": 3} | bend
            axes.annotate("", (0, at[number] + 0.12), (0, at[other] - 0.12), arrowprops=look)
    for number, y in at.items():
        axes.text(-0.06, y, f"{number} {short(found[number].title)}", ha="right", va="center", fontsize=8)
        axes.plot(0, y, "o", color=COLOURS[int(number) % len(COLOURS)], markersize=5)
    axes.set(xlim=(-2.1, 1.9), ylim=(0.6 - len(found), 0.6))
    axes.axis("off")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=200, metadata={"Software": None})
    return stream.getvalue()
