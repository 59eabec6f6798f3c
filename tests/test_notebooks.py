"""What nbval does not see: outputs that are missing or edited, pictures, structure, exercises and their solutions.

nbval itself runs beside these tests (see the Makefile); here it runs once, on copies that were damaged on purpose.
"""

import ast
import base64
import contextlib
import dis
import html
import importlib.util
import io
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, SimpleNamespace

import flips
import kernels
import matplotlib as mpl
import nbformat
import numpy as np
import pytest
import sympy
import torch
from each import each
from jupyter_client.manager import start_new_kernel
from kinds import kinds
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.style import context

from fedtheory import SSF
from fedtheory import course as helper
from fedtheory.core.registry import PAPERS
from fedtheory.course import course
from fedtheory.course.exercises import check, exercises, graded
from fedtheory.course.exercises.symbolic import formula
from fedtheory.papers import ITEMS, load, store, style
from fedtheory.running.verdicts import VERDICTS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
SPEC = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
assert SPEC is not None
assert SPEC.loader is not None
build = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build)
read_source = cache(build.read_source)

SOURCES = sorted(FOLDER.glob("[0-9][0-9]_*.py"))
NAMES = [source.stem for source in SOURCES]
MIMES = {"text/plain", "text/html", "image/png"}
SPEAKING = re.compile(r"^\s*(print|show|check|table|provenance|moving)\(", re.MULTILINE)
ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:[\w.-]+/)+[\w.-]+|\b[A-Z]:\\")
NUMBER = re.compile(r"(?<![\w.])(\d+\.\d+)(?:e[+-]?\d+)?(?![\w.])")
SECTIONS = ("what you will learn", "prerequisites", "exercises", "summary", "references")
SOLUTION = re.compile(r"<details>\s*<summary>.*?</summary>\s*\n```python\n(.*?)```.*?</details>", re.DOTALL)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(output) -> str:
    return output.get("text", "") + output.get("data", {}).get("text/plain", "")


def output_faults(path: Path) -> list[str]:
    """What is wrong with the outputs of a committed notebook, without executing it."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    faults = []
    if path.stat().st_size > 1_000_000:
        faults.append(f"{path.stat().st_size} bytes: over 1 MB")
    if notebook.metadata.kernelspec.name != "python3":
        faults.append(f"kernel {notebook.metadata.kernelspec.name}")
    if notebook.metadata.get("fedtheory") != build.manifest(notebook):
        faults.append("outputs or figures differ from the manifest")
    for number, cell in enumerate(code_cells(notebook), 1):
        if cell.execution_count != number:
            faults.append(f"cell {number}: execution count {cell.execution_count}")
        if SPEAKING.search(cell.source) and not cell.outputs:
            faults.append(f"cell {number}: output is missing")
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                faults.append(f"cell {number}: error or stderr")
            data = output.get("data", {})
            if not set(data) <= MIMES:
                faults.append(f"cell {number}: MIME types {sorted(set(data) - MIMES)}")
            if "image/png" in data:
                faults += [f"cell {number}: {fault}" for fault in picture_faults(data)]
            faults += [f"cell {number}: {fault}" for fault in table_faults(data)]
            for digits in NUMBER.findall(printed(output)):
                if len(digits.replace(".", "").lstrip("0")) > 6:
                    faults.append(f"cell {number}: {digits} has more than 6 digits")
    return faults


def table_faults(data) -> list[str]:
    """A table in HTML has the words of its text, which GitHub's search, slides and terminals show in its place."""
    page = data.get("text/html", "")
    if "<summary>The whole code</summary>" in page:  # a box, which is typeset
        return []
    shown = re.sub(r"<summary>.*?</summary>|<wbr>|<[^>]+>", lambda found: "" if found[0] == "<wbr>" else " ", page)
    numbers = Counter(re.findall(r"\d+(?:\.\d+)?", html.unescape(shown)))
    missing = numbers - Counter(re.findall(r"\d+(?:\.\d+)?", data.get("text/plain", "")))
    return [f"the table's text lacks {', '.join(missing)}"] if missing else []


def picture_faults(data) -> list[str]:
    try:
        picture = imread(io.BytesIO(base64.b64decode(data["image/png"])), format="png")
    except Exception as error:
        return [f"picture does not decode ({type(error).__name__})"]
    if min(picture.shape[:2]) < 100 or float(np.ptp(picture[..., :3])) < 0.1:
        return ["picture is empty"]
    return [] if data.get("text/plain", "").startswith("Panel 1: ") else ["picture without a description"]


def test_a_shown_picture_has_few_colours_and_the_same_look(monkeypatch):
    """Of lines and of a colour map: at most 256 colours, near the exact ones, in half the bytes."""
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda content, **_: shown.append(content["image/png"]))
    for kind in ("lines", "map"):
        figure, (axes,) = style.new_figure()
        if kind == "lines":
            for name, how in style.looks("abcdefgh").items():
                axes.plot(np.linspace(0, 1, 50) ** (1 + ord(name) % 7), **how.line)
        else:
            axes.imshow(np.linspace(0, 1, 900).reshape(30, 30), cmap="viridis")
        exact = io.BytesIO()
        with context(style.OURS):
            figure.savefig(exact, format="png", dpi=helper.DPI, pil_kwargs={"optimize": True})
        helper.show(figure)
        few, all_of_them = (imread(io.BytesIO(data), format="png")[..., :3] for data in (shown[-1], exact.getvalue()))
        assert len(np.unique(few.reshape(-1, 3), axis=0)) <= 256
        off = np.abs(few - all_of_them).max(axis=-1)
        assert (off == 0).mean() > {"lines": 0.9, "map": 0.5}[kind]  # viridis alone has 256 colours
        assert off.mean() < 0.01
        assert np.quantile(off, 0.999) < 0.15
        assert len(shown[-1]) < len(exact.getvalue()) / 2


@pytest.mark.parametrize("item", ["ssf/table3", "decomfl/fig2b"])
def test_bands_keep_their_hue(item):
    """Pale tints are near each other: a palette that merges two shows a band in another method's colour."""
    figure, exact = ITEMS[item].draw(helper.committed(item)["table"]), io.BytesIO()
    with context(style.OURS):
        figure.savefig(exact, format="png", dpi=helper.DPI)
    few, all_of_them = (
        (255 * imread(io.BytesIO(data), format="png")[..., :3]).round().astype(int) @ (1 << 16, 1 << 8, 1)
        for data in (style.few_colours(figure, helper.DPI), exact.getvalue())
    )
    colours, counts = np.unique(all_of_them, return_counts=True)
    assert len(colours) > 256
    often = np.isin(all_of_them, colours[np.argsort(-counts)[:32]])
    assert (few[often] == all_of_them[often]).all()


def test_words_of_a_picture_are_its_values_and_not_its_rows():
    """Rows have names; a panel beside them, too, though it does not repeat them. Curves with bars are told, too."""
    figure, (left, right) = style.new_figure(2)
    for axes in (left, right):
        axes.plot([87.5, 90.0, 89.0], [3, 2, 1], label="ours")
        axes.set_xlabel("accuracy")
    left.set_yticks([3, 2, 1], ["FedAvg", "FedMUD", "SSF"])
    right.set_yticks([3, 2, 1], [""] * 3)
    assert helper.seen(figure).count("ours between 88 and 90") == 2
    assert helper.describe(figure).count("ours: 3 points, the last at 89") == 2
    figure, (axes,) = style.new_figure()
    style.bars(axes, [1, 2], [40.0, 42.0], [39.0, 41.0], [41.0, 43.0], "FedAvg", 3)
    axes.set_xticks([1, 2], ["1/32", "1/8"])
    axes.set_ylabel("accuracy")
    assert "FedAvg (n=3) rises from 40 to 42" in helper.seen(figure)
    assert "FedAvg (n=3): 2 points, the last at 42" in helper.describe(figure)


def unspoken(path: Path) -> list[str]:
    """Pictures of a notebook without a sentence that says what is seen: what a screen reader reads."""
    outputs = (output for cell in code_cells(nbformat.read(path, as_version=4)) for output in cell.outputs)
    said = (o.metadata.get("image/png", {}).get("alt", "") for o in outputs if "image/png" in o.get("data", {}))
    return [words for words in said if len(words.split()) < 4 or not words.endswith(".") or "$" in words]


def text_faults(path: Path) -> list[str]:
    """What a notebook lacks for a reader."""
    notebook = nbformat.read(path, as_version=4)
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = [line for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines() if line.startswith("#")]
    faults = []
    if notebook.cells[0].cell_type != "markdown" or not notebook.cells[0].source.startswith("# "):
        faults.append("no # title")
    if sum(line.startswith("# ") for line in headings) != 1:
        faults.append("more than one # title")
    below = [line.lstrip("# ").lower() for line in headings]
    faults += [f"no section {name!r}" for name in SECTIONS if not any(line.startswith(name) for line in below)]
    code = code_cells(notebook)
    if not re.search(r"^key = start\(\d*\)$", code[0].source, re.MULTILINE):
        faults.append("the first code cell does not call start")
    if "assert " not in "".join(cell.source for cell in code):
        faults.append("no claim is asserted")
    if sum(cell.source.count("check(") for cell in code if "answer" in cell.source) < 3:
        faults.append("fewer than three exercises with a check")
    for cell in notebook.cells:
        for found in [cell.source, *(printed(output) for output in cell.get("outputs", []))]:
            faults += [f"absolute path {match}" for match in ABSOLUTE.findall(re.sub(r"https?://\S+", "", found))]
    return faults


REPR = re.compile(r"\b[A-Z]\w*\(\w+=")  # of an object of the package
RULE = re.compile(r"^-+(?:  -+)+$", re.MULTILINE)  # under a table's header


def reader_faults(path: Path) -> list[str]:
    """Outputs that a reader cannot take in: wide, long and no table, an object's repr; listings are lessons."""
    faults = []
    for number, cell in enumerate(code_cells(nbformat.read(path, as_version=4)), 1):
        if "getsource" in cell.source:
            continue
        tables = any(RULE.search(printed(output)) for output in cell.outputs)
        for output in cell.outputs:
            lines = printed(output).splitlines()
            if "image/png" in output.get("data", {}):
                continue
            if max(map(len, lines), default=0) > helper.WIDTH:
                faults.append(f"cell {number}: a line of {max(map(len, lines))} characters")
            if len(lines) > 20 and not tables:
                faults.append(f"cell {number}: {len(lines)} lines and no table")
            if len(lines) > 60 and "<details>" not in output.get("data", {}).get("text/html", ""):
                faults.append(f"cell {number}: {len(lines)} lines")
            faults += [f"cell {number}: {found}" for found in REPR.findall(printed(output))]
    return faults


PAPER = {"02": "fedsub", "03": "ssf", "05": "mud", "06": "flss", "07": "decomfl", "09": "decomfl"}  # of a notebook
NAMED = {name: paper for paper, name in PAPERS.items()}
ITEM = re.compile(r"(?:(\w+)'s )?(Figure|Table)s? (\d+(?:\([a-z]\))?(?:(?:, | and | to )\d+(?:\([a-z]\))?)*)")
DENIAL = re.compile(
    r"\b(?:is|are|was|were) not (?:run|reproduced|computed|repeated)\b|\bno such run\b|"
    r"\b(?:nothing|none)\b[^.]*\b(?:is|are|was|were) (?:run|said|reproduced)\b|\bhas no (?:such )?runs?\b"
)


def items_of(text: str, paper: str | None) -> set[str]:
    """The items that a text names, by their numbers."""
    found = set()
    for owner, kind, listed in ITEM.findall(text):
        numbers = [int(one) for one in re.findall(r"\d+", listed)]
        for number in range(numbers[0], numbers[-1] + 1) if " to " in listed else numbers:
            stem = f"{NAMED.get(owner, paper)}/{'fig' if kind == 'Figure' else 'table'}{number}"
            found |= {name for name in ITEMS if re.fullmatch(rf"{stem}[a-z]*", name)}
    return found


def denials(text: str, paper: str | None) -> list[str]:
    """Sentences by hand that say of an item that it was not run; the items stand in the paragraph or its heading.

    What was run is said by the records (`what_was_run`): a sentence by hand is not right for long.
    """
    faults, heading = [], ""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        heading = next((line for line in lines if line.startswith("#")), heading)
        body = " ".join(line for line in lines if not line.startswith("#"))
        if not DENIAL.search(body):
            continue
        for item in sorted(items_of(body, paper) or items_of(heading, paper)):
            record = load(ROOT / "figures", item)
            ran = sum(cell["seeds"] > 0 for cell in record["cells"])
            so = f"but {ran} of {len(record['cells'])} numbers were" if ran else "as its record says"
            faults.append(f"{item} is said not to be run, {so}: {DENIAL.search(body)[0]}")  # type: ignore[index]
    return faults


def markdown(path: Path) -> str:
    notebook = nbformat.read(path, as_version=4)
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def assumption_1(text: str) -> list[str]:
    """FedSub prints P^T P = (m/r) I first and E[P P^T] = I second; they are stated so, since "halves" are counted."""
    faults = []
    for paragraph in re.split(r"\n\s*\n", text):
        both = [re.search(r"\^\\top P(?:\^k)?\s*=", paragraph), re.search(r"\\mathbb\{E\}(?:\\,)?\s*\[P", paragraph)]
        if "Assumption 1" in paragraph and all(both) and both[0].start() > both[1].start():  # type: ignore[union-attr]
            faults.append(f"the halves of Assumption 1 are swapped: {paragraph[:60]}")
    lines = " ".join(text.split())
    if re.search(r"[Ff]irst half (?:holds|is met|is satisfied) (?:for|by) all", lines):
        faults.append("the first half, P^T P = (m/r) I for every draw, does not hold for Gaussian bases")
    return faults


def other_conditions(path: Path) -> list[str]:
    """Hints that name conditions which their solution does not use."""
    cells = nbformat.read(path, as_version=4).cells
    faults = []
    for cell, following in pairwise(cells):
        if cell.cell_type == "code" and SOLUTION.search(following.source):
            given = ast.parse(cell.source).body[-1].value.args  # type: ignore[attr-defined]
            hint = exercises(path.name[:2])[int(given[0].value[3:])].hint
            named = conditions(hint) - conditions(following.source)
            faults += [f"the hint names condition ({number}), the solution does not" for number in sorted(named)]
    return faults


def conditions(text: str) -> set[str]:
    """The numbers after the word condition."""
    groups = re.findall(r"[Cc]onditions? ((?:\(\d\)(?:, | and )?)+)", text)
    return {number for group in groups for number in re.findall(r"\((\d)\)", group)}


def test_there_are_notebooks():
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
class TestCommitted:
    """Cheap: nothing is executed."""

    def test_source_and_notebook_are_in_step(self, name):
        assert build.out_of_step(FOLDER / f"{name}.py") is None

    def test_outputs(self, name):
        assert output_faults(FOLDER / f"{name}.ipynb") == []

    def test_pictures_say_what_is_seen(self, name):
        assert unspoken(FOLDER / f"{name}.ipynb") == []

    def test_text(self, name):
        assert text_faults(FOLDER / f"{name}.ipynb") == []

    def test_outputs_are_for_a_reader(self, name):
        assert reader_faults(FOLDER / f"{name}.ipynb") == []

    def test_what_was_run_is_said_by_the_records(self, name):
        assert denials(markdown(FOLDER / f"{name}.ipynb"), PAPER.get(name[:2])) == []

    def test_assumption_1_has_the_same_halves(self, name):
        assert assumption_1(markdown(FOLDER / f"{name}.ipynb")) == []

    def test_hints_and_solutions_name_the_same_conditions(self, name):
        assert other_conditions(FOLDER / f"{name}.ipynb") == []


@pytest.mark.parametrize("page", ["README.md", "docs/scales.md", "docs/results.md"])
def test_pages_say_what_was_run_by_the_records(page):
    assert denials((ROOT / page).read_text(), None) == []


def test_denials_are_found():
    """As they stood: they denied runs that the report shows."""
    said = (
        "Figure 4 and Table 5 (CIFAR-100) are not reproduced here: this package has no such run, so nothing is\nsaid."
    )
    found = denials(said, "ssf")
    assert [fault.split(" is said")[0] for fault in found] == ["ssf/fig4", "ssf/table5"]
    assert all("numbers were" in fault for fault in found)
    assert len(denials("### Tables 3 to 5\n\nThe settings are there, nothing was run here.", "mud")) == 3
    assert denials("Above, SSF's Table 5 was not run.", None) != []
    assert denials("Fashion-MNIST was not run. Figure 2 shows it.\n\nTable 9 was not run.", "mud") != []
    assert denials("Table 1 was run, Figure 2 is not small.", "mud") == []


def test_swapped_halves_are_found():
    assert assumption_1(r"Assumption 1, in halves: $\mathbb{E}[P P^\top] = I$ and $P^\top P = \tfrac mr I$") != []
    assert assumption_1("74%. The first half holds for all three constructions.") != []
    assert assumption_1(r"Assumption 1, in halves: $P^\top P = \tfrac mr I$ and $\mathbb{E}[P P^\top] = I$") == []


@each(name=ITEMS)
def test_standing_counts_what_the_report_counts(name):
    """The sentence on what was run has the verdicts, seeds and scale of the committed record."""
    record = load(ROOT / "figures", name)
    text, counts = helper.standing(record), Counter(cell["verdict"] for cell in record["cells"] if cell["seeds"])
    assert text.startswith(f"{name} ({record['title']}): ")
    if not counts:
        assert "none of the paper's" in text
    else:
        assert f"at the scale {record['scale']!r}, {len(record['seeds'])} seed" in text
        assert {v: int(n) for n, v in re.findall(rf"(\d+) ({'|'.join(VERDICTS)})", text)} == dict(counts)
        lacking = sum(not cell["seeds"] for cell in record["cells"])
        assert (f"; {lacking} were not run." in text) == (lacking > 0)


def test_no_notebook_without_source():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES


def test_no_function_is_defined_twice():
    names = Counter()
    for source in SOURCES:
        tree = ast.parse(source.read_text())
        names.update(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.fixture
def as_in_a_kernel(monkeypatch):
    """What `start` changes is put back."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    before = torch.get_default_dtype()
    with mpl.rc_context():
        yield
    torch.set_default_dtype(before)


def said_by(code: list[str], space: dict, name: str) -> str:
    """What some code prints, run in a copy of a notebook's names; as one line."""
    said, copy = io.StringIO(), dict(space)
    with contextlib.redirect_stdout(said):
        for part in code:
            exec(compile(part, name, "exec"), copy)
    return " ".join(said.getvalue().split())


NUMERAL = re.compile(r"(?<![\w.,\\])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w%]|[.,]\d)")


def stands(answer: object, text: str) -> bool:
    """Whether a number, or a pair, stands in a text, as 4800, 4,800 or 4.8e+03."""
    if isinstance(answer, (tuple, list)):
        inside = r"\s*,\s*".join(str(one) for one in answer)
        return re.search(rf"[\[(]\s*{inside}\s*[\])]", text) is not None
    found = (float(one.replace(",", "").rstrip(".")) for one in NUMERAL.findall(text))
    return any(abs(one - answer) <= 1e-6 * abs(answer) for one in found)  # type: ignore[operator, arg-type]


def squeezed(code: str) -> str:
    return re.sub(r"\s", "", code)


def given_away(answer: object, code: str, above: str, tells: tuple[str, ...]) -> list[str]:
    """How an answer can be read off what stands above its solution: its number, its formula, or a pattern."""
    faults = [f"{tell} stands above" for tell in tells if re.search(tell, above)]
    if isinstance(answer, (int, float, tuple, list)):
        return [*faults, f"{answer} stands above"] if stands(answer, above) else faults
    lambdas = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Lambda)]
    bodies = [squeezed(ast.unparse(node.body)) for node in lambdas]
    return faults + [f"{body} stands above" for body in bodies if body in squeezed(above)]


def asks(cell) -> bool:
    """Whether a code cell is an exercise: it ends with a check."""
    last = ast.parse(cell.source).body[-1] if cell.cell_type == "code" else None
    return isinstance(last, ast.Expr) and ast.unparse(last).startswith("check(")


def names_of(code: str | CodeType) -> tuple[set[str], set[str], set[str]]:
    """Names that some code binds, those that it uses and has not bound before, and those that its functions use."""
    bound, used, later = set(), set(), set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif step.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            used |= {step.argval} - bound
        elif isinstance(step.argval, CodeType):
            _, inner, deeper = names_of(step.argval)
            used |= inner - bound
            later |= deeper if step.argval.co_name in ("<listcomp>", "<genexpr>") else inner | deeper
    return bound, used, later


def needed(cells: list, answers: str) -> list[int]:
    """Places of the code cells on which the exercises of a notebook and answers to them depend: the rest is nbval's.

    From the end: a cell is needed where it binds a name that a needed cell below uses, and no cell between binds it. A
    function may be called anywhere below, so that what it uses is wanted there, too.
    """
    later, before = names_of(answers)[1], None
    while later != before:
        wanted, found, before = set(), [], later
        for at in reversed(range(len(cells))):
            if cells[at].cell_type != "code":
                continue
            bound, used, inner = names_of(cells[at].source)
            if asks(cells[at]):
                wanted = wanted | before
            if asks(cells[at]) or bound & wanted:
                wanted, later = wanted - bound | used, later | inner
                found.append(at)
    return found[::-1]


def test_cells_that_are_needed():
    """Rebound names, names in functions, loops and comprehensions; what binds nothing that is used is left out."""
    sources = [
        "size = 1",
        "size, shown = 2, 3",
        "def grow(by):\n    return [by * size for _ in range(times)]",
        "for shown in range(2):\n    print(shown, [size for size in 'ab'])",
        "times = 2\ntimes += 1",
        "answer = ...\ncheck(1, answer, lambda a: a == grow(1))",
        "times = 4",
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    assert needed(cells, "answer = shown") == [1, 2, 3, 4, 5]
    assert needed(cells, "answer = 1") == [1, 2, 4, 5]
    assert needed([nbformat.v4.new_code_cell("size = 1"), *cells[2:]], "answer = 1") == [0, 1, 3, 4]


@pytest.fixture
def space():
    """Names of a notebook whose cells run here. The cell that empties a temporary folder may not be among them."""
    names: dict = {"__name__": "__main__"}
    yield names
    for value in names.values():
        if isinstance(value, TemporaryDirectory):
            value.cleanup()


def listed_for(name: str) -> dict[int, dict]:
    """The exercises of a notebook that a check decides."""
    return {number: vars(one) for number, one in exercises(name[:2]).items() if one.test is not None}


QUESTION = re.compile(r"^\*\*Exercise (\d+)\*\* \((\d+) points?(, in words)?\)\.", re.MULTILINE)
ANSWER = "*Your answer:*"  # the cell below a question that is answered in words


@pytest.mark.parametrize("name", NAMES)
def test_questions_and_their_points(name):
    """Each exercise is asked once, with its points; one in words has a cell to answer in, and its rubric folded."""
    cells = read_source(FOLDER / f"{name}.py").cells
    asked = {}
    for at, cell in enumerate(cells):
        for number, points, words in QUESTION.findall(cell.source):
            assert int(number) not in asked
            asked[int(number)] = (int(points), bool(words))
            if words:
                assert cells[at + 1].source == ANSWER
                assert "<summary>Rubric and a model answer</summary>" in cells[at + 2].source
                for says in exercises(name[:2])[int(number)].rubric:
                    assert says in " ".join(cells[at + 2].source.split()), says
    assert asked == {n: (one.points, one.kind == "explain") for n, one in exercises(name[:2]).items()}


@pytest.mark.parametrize("name", NAMES)
def test_exercises(name, as_in_a_kernel, space):
    """Solutions and other right answers are accepted, typical wrong ones refused with a word on what they reveal, and
    no answer stands in the exercise or above it, nor anywhere in the student version."""
    cells = read_source(FOLDER / f"{name}.py").cells
    built = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    above, solved, faults = "", set(), []
    listed, students = listed_for(name), ""
    if exercises(name[:2]):
        cells_given = course.student(course.cells_of(FOLDER / f"{name}.ipynb"), name[:2])
        students = "\n".join(cell["source"] for cell in cells_given)
    answers = [code for one in listed.values() for code in (*one["right"], *one["wrong"])]
    solutions = [found for cell in cells if cell.cell_type == "markdown" for found in SOLUTION.findall(cell.source)]
    runs = needed(cells, "\n".join([*answers, *solutions]))
    for at, (cell, following) in enumerate(zip(cells, [*cells[1:], None])):
        if cell.cell_type == "markdown":
            above += re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL) + "\n"
            continue
        above += cell.source + "\n"
        said = io.StringIO()
        if at in runs:
            with contextlib.redirect_stdout(said):
                exec(compile(cell.source, name, "exec"), space)
        last = ast.parse(cell.source).body[-1]
        if not asks(cell):
            shown = "\n".join(printed(output) for output in built[at].outputs) + "\n"
            if re.search("number +paper +ours", shown):  # a table of `beside`, whose row numbers are no answer
                shown = re.sub(r"(?m)^ *\d+  (?=\S)", "", shown)
            above += shown
            continue
        assert "no answer yet" in said.getvalue()
        solution = SOLUTION.search(following.source) if following is not None else None
        assert solution is not None, f"no solution behind:\n{cell.source}"
        first, ask = last.value.args[0].value, ast.unparse(last)  # type: ignore[attr-defined]
        number = int(str(first).removeprefix(f"{name[:2]}."))
        exercise = listed[number]
        assert exercise["right"], "a second form of the right answer"
        assert len(exercise["wrong"]) >= 3, "three typical wrong answers"
        for code in [solution[1], *(f"answer = {code}" for code in exercise["right"])]:
            reply = said_by([code, ask], space, name)
            if reply != f"Exercise {number}: right.":
                faults.append(f"{number}: {code.strip()} is right, but: {reply}")
        for wrong, word in exercise["wrong"].items():
            reply = said_by([f"answer = {wrong}", ask], space, name)
            reason = reply.split(" Hint: ")[0].removeprefix(f"Exercise {number}: not yet.")
            if not reply.startswith(f"Exercise {number}: not yet.") or word not in reason or "It stopped" in reason:
                faults.append(f"{number}: {wrong} should be refused with {word!r}, but: {reply}")
        copy = dict(space)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(solution[1], name, "exec"), copy)
        for other in kinds(copy["answer"]):
            reply = said_by([ask], space | {"answer": other}, name)
            if reply != f"Exercise {number}: right.":
                faults.append(f"{number}: {other!r} of {type(other)} is right, but: {reply}")
        if not exercise.get("open"):
            tells = tuple(exercise.get("tells", ()))
            faults += [f"{number}: {fault}" for fault in given_away(copy["answer"], solution[1], above, tells)]
            told = given_away(copy["answer"], solution[1], students, tells)
            faults += [f"{number}, student version: {fault}" for fault in told]
        solved.add(number)
    assert faults == []
    assert solved == set(listed)
    assert len(solved) >= 3


def test_what_is_given_away():
    """The search for answers finds them, in each form."""
    assert stands(4800, "a client sends 4,800 bytes")
    assert stands(4800.0, "4.8e+03")
    assert stands(0.02, "eta = 0.020.")
    assert not stands(48, "4800 of 48.5, 148, 1.48, x48, 48%")
    assert stands((1, 3), "answer = [1, 3]")
    assert not stands((1, 3), "(1, 2, 3)")
    code = "answer = lambda c, P, g: c + P.lift(g)"
    assert given_away(print, code, "where c+P.lift( g ) is", ()) == ["c+P.lift(g) stands above"]
    assert given_away(57, "answer = 57", "check(1, answer, lambda a: a == 57)", ()) == ["57 stands above"]
    assert given_away(print, code, "repair: rho/(16 L)", (r"rho/\(16",)) != []


SMALL = """\
# %% [markdown]
# # A small notebook

# %%
first = [number**2 / 7 for number in range(4)]

# %%
print(f"{first[3]:.4f}")

# %%
second = sum(first)
print(f"{second:.4f}")

# %%
from IPython.display import display

square = f"{first[3]:.3f}"
display({"text/plain": f"number 3, square {square}", "text/html": f"<td>3</td><td>{square}</td>"}, raw=True)

# %%
import io

from matplotlib.figure import Figure

figure, stream = Figure(), io.BytesIO()
figure.subplots().plot(first)
figure.savefig(stream, metadata={"Software": None})
display({"image/png": stream.getvalue(), "text/plain": "Panel 1: square over seven against number"}, raw=True)
"""


def flip_a_digit(notebook) -> None:
    output = code_cells(notebook)[1].outputs[0]
    output.text = output.text.replace("1.2857", "1.2867")


def drop_an_output(notebook) -> None:
    code_cells(notebook)[2].outputs = []


def swap_two_cells(notebook) -> None:
    cells = notebook.cells
    cells[2], cells[3] = cells[3], cells[2]
    cells[2].execution_count, cells[3].execution_count = 2, 3


def spoil_a_picture(notebook) -> None:
    code_cells(notebook)[4].outputs[0].data["image/png"] = base64.b64encode(b"no picture").decode()


def change_a_label(notebook) -> None:
    data = code_cells(notebook)[4].outputs[0].data
    data["text/plain"] = data["text/plain"].replace("number", "numbers")


def change_a_table(notebook) -> None:
    data = code_cells(notebook)[3].outputs[0].data
    data["text/html"] = data["text/html"].replace("1.286", "1.287")


MUTATIONS = [flip_a_digit, drop_an_output, swap_two_cells, spoil_a_picture, change_a_label, change_a_table]
SEEN_BY_NBVAL = [flip_a_digit, change_a_label, change_a_table]  # an output that is gone is not compared


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> Path:
    """A small notebook that was just built, and one copy for each kind of damage."""
    folder = tmp_path_factory.mktemp("notebooks")
    source = folder / "intact.py"
    source.write_text(SMALL)
    target = build.build(source)
    for mutate in MUTATIONS:
        notebook = nbformat.read(target, as_version=4)
        mutate(notebook)
        copy = folder / f"{mutate.__name__}.ipynb"
        copy.write_text(nbformat.writes(notebook))
        copy.with_suffix(".py").write_text(SMALL)
    return folder


class TestGate:
    """The gate holds for what was built and fails for each kind of damage."""

    def test_intact(self, damaged):
        assert output_faults(damaged / "intact.ipynb") == []
        assert build.out_of_step(damaged / "intact.py") is None

    def test_building_again_gives_the_same_bytes(self, damaged):
        before = (damaged / "intact.ipynb").read_bytes()
        assert build.build(damaged / "intact.py").read_bytes() == before

    @pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
    def test_contract(self, damaged, mutate):
        path = damaged / f"{mutate.__name__}.ipynb"
        assert output_faults(path) != []
        assert (build.out_of_step(path.with_suffix(".py")) is not None) == (mutate is swap_two_cells)

    @pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
    def test_contract_without_manifest(self, damaged, mutate):
        """Even where the manifest was made to fit, what nbval cannot see is seen."""
        notebook = nbformat.read(damaged / f"{mutate.__name__}.ipynb", as_version=4)
        notebook.metadata["fedtheory"] = build.manifest(notebook)
        path = damaged / f"forged_{mutate.__name__}.nb"
        path.write_text(nbformat.writes(notebook))
        caught = output_faults(path) != [] or mutate in (*SEEN_BY_NBVAL, swap_two_cells)
        assert caught

    def test_a_picture_without_a_sentence_is_seen(self, damaged):
        assert unspoken(damaged / "intact.ipynb") == [""]

    def test_nbval(self, damaged):
        notebook = nbformat.read(damaged / "intact.ipynb", as_version=4)
        for mutate in SEEN_BY_NBVAL:  # each in a cell of its own
            mutate(notebook)
        (damaged / "three_faults.ipynb").write_text(nbformat.writes(notebook))
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(damaged)]
        command += ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--nbval", "--nbval-current-env"]
        command += ["--nbval-sanitize-with", str(ROOT / "tests" / "nbval_sanitize.cfg"), "--color", "no"]
        command += ["--junitxml", str(damaged / "report.xml"), str(damaged / "three_faults.ipynb")]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(command, cwd=damaged, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 1, done.stdout + done.stderr
        assert re.findall(r"^FAILED \S+::Cell (\d+)", done.stdout, re.MULTILINE) == ["1", "3", "4"]
        assert "3 failed, 2 passed" in done.stdout

    @pytest.mark.skipif(sys.platform != "linux", reason="kernels are forks on Linux only")
    def test_a_forked_kernel_is_a_process_of_its_own(self, tmp_path):
        """It has its folder and names, not the tests' path, and ends as any other kernel does."""
        code = "import os, sys; print(os.getpid(), os.getcwd(), 'own' in dir(), sys.path); own = 1"
        said: list[str] = []
        hear = lambda message: said.append(message["content"].get("text", ""))
        with kernels.forked():
            for _ in range(2):
                manager, client = start_new_kernel(cwd=str(tmp_path))
                assert isinstance(manager.provisioner.process, kernels.Fork)
                client.execute_interactive(code, output_hook=hear, timeout=60)
                client.stop_channels()
                manager.shutdown_kernel()
                pid, folder, own, path = said[-2].split(maxsplit=3)
                assert (folder, own) == (str(tmp_path), "False")
                assert str(ROOT / "tests") not in ast.literal_eval(path)
                assert int(pid) == manager.provisioner.pid != os.getpid()
                with pytest.raises(ProcessLookupError):
                    os.kill(int(pid), 0)


class TestHelper:
    """fedtheory.course."""

    @pytest.mark.parametrize("folder", [ROOT, FOLDER, None], ids=["root", "notebooks", "elsewhere"])
    def test_files_are_found_from_every_folder(self, folder, monkeypatch, tmp_path, capsys):
        """A folder figures of the reader's own is in the way of nothing."""
        (tmp_path / "figures").mkdir()
        monkeypatch.chdir(folder or tmp_path)
        assert helper.committed("ssf/table2")["item"] == "ssf/table2"
        assert helper.located("docs/ledger.json").samefile(ROOT / "docs" / "ledger.json")
        helper.conclusions("ssf", "ssf/table2")
        assert "SSF" in capsys.readouterr().out
        with pytest.raises(FileNotFoundError, match=r"name='docs/none\.json'.*clone of the repository"):
            helper.located("docs/none.json")

    @pytest.mark.parametrize("name", NAMES)
    def test_no_path_hangs_on_the_working_folder(self, name):
        code = "\n".join(cell.source for cell in code_cells(read_source(FOLDER / f"{name}.py")))
        assert re.findall(r"""["']\.\.(?:/[^"']*)?["']""", code) == []

    def test_a_table_is_html_in_a_kernel(self, monkeypatch, capsys):
        """Numbers to the right, names as links that are cut between their parts only, text elsewhere."""
        rows = [["SSF", 0.5, "test_laws.py::test_two_words, ssf.lemma2"], ["<b>", 12, "no claim: ssf.none"]]
        helper.table(["method", "error", "by"], rows)
        assert capsys.readouterr().out.splitlines()[2].startswith("SSF       0.5  test_laws.py::")
        shown = []
        monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=None))
        monkeypatch.setattr("IPython.display.display", lambda content, **_: shown.append(content["text/html"]))
        helper.table(["method", "error", "by"], rows)
        assert '<td style="text-align:right;vertical-align:top">0.5</td>' in shown[0]
        assert '<a href="../tests/test_laws.py">test_<wbr>laws.py::<wbr>test_<wbr>two_<wbr>words</a>' in shown[0]
        assert '<a href="../docs/ledger.md">ssf.lemma2</a>' in shown[0]
        assert "&lt;b&gt;" in shown[0]
        assert shown[0].count("<a ") == 2
        helper.table(["n"], [[n] for n in range(30)])
        assert shown[1].startswith("<details><summary>30 rows: n</summary>")

    def test_a_wide_table_is_cut_between_words(self, capsys):
        """A name is cut between its parts, a part only where nothing else is left."""
        name = "test_laws.py::test_server_control_all_is_the_mean_of_the_stored_controls"
        helper.table(["point", "what the paper leaves open", "shown by"], [["1, 2", "Over whom? " * 9, name]])
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= helper.WIDTH
        pieces = [line[lines[0].index("shown") :].strip() for line in lines[2:]]
        assert "".join(pieces) == name
        assert all(piece.endswith(("_", "::", "controls")) for piece in pieces if piece)
        helper.table(["a"], [["x" * 150]])
        assert max(map(len, capsys.readouterr().out.splitlines())) == helper.WIDTH

    def test_a_box_has_the_code_of_each_line_beside_it(self, monkeypatch):
        shown = []
        monkeypatch.setattr("fedtheory.course.rich.put", lambda *made: shown.append(made))
        helper.box("SSF", "3  x_proj = P_t x^t\n11  end for\n 9    g_i^k = grad f_i", SSF.server, SSF.gradient)
        text, page = shown[0]
        assert "x_proj = P.project(server.x)" in text.splitlines()[2]
        assert "<i>x</i><sub>proj</sub> = <i>P</i><sub><i>t</i></sub> <i>x</i><sup><i>t</i></sup>" in page
        assert re.search(r">11</td><td[^>]*><div[^>]*>end for</div></td><td[^>]*></td>", page)
        assert "∇<i>f</i><sub><i>i</i></sub>" in page
        assert "<code>return P.project(problem.grads(y, xi[k]))</code>" in page
        assert "<summary>The whole code</summary>" in page

    def test_start(self, as_in_a_kernel):
        key = helper.start(3)
        assert (key.seed, torch.get_default_dtype(), torch.get_num_threads()) == (3, torch.float64, 1)

    def test_check(self, capsys):
        for answer in (..., 55, 110, "two"):
            check("05.2", answer)
        said = " ".join(capsys.readouterr().out.split())
        assert said.startswith("Exercise 2: no answer yet. Replace the three dots and run the cell again.")
        assert "Exercise 2: right. Exercise 2: not yet. A matrix of 768 rows" in said
        assert "Exercise 2: not yet. One finite number is asked for, not 'two'. Hint: how much rank" in said
        check("05.3", lambda U: U)
        assert "It stopped with TypeError" in capsys.readouterr().out
        with pytest.raises(ValueError, match=r"name.*'05\.99'.*05\.1"):
            check("05.99", 1)

    def test_graded_raises_what_a_wrong_answer_reveals(self, capsys):
        graded("05.2", 55)
        for answer, word in ((110, "no rank of 768"), (..., "no answer")):
            with pytest.raises(AssertionError, match=word):
                graded("05.2", answer)

    def test_reveals(self):
        slips = {"Half.": 2.0}
        assert helper.reveals(4, 4.0, slips) == ""
        assert helper.reveals(2, 4.0, slips) == "Half."
        assert [helper.reveals(a, 4.0, slips) for a in (3, 5)] == ["Too small.", "Too large."]
        assert helper.reveals(4.3, 4.0, within=0.1) == ""
        for answer in (True, "4", None, [4], float("nan")):
            assert helper.reveals(answer, 4.0).startswith("One finite number is asked for")

    def test_first_of(self):
        assert helper.first_of([(True, "a"), (lambda: False, "b"), (lambda: 1 / 0, "c")]) == "b"
        assert helper.first_of([(True, "a")]) == ""

    def test_formula(self):
        right, points = (lambda m, r: (m**2 - r**2) / m), [(20, 5), (3, 1.5), (7, 7)]
        said = lambda answer: formula(answer, right, points, {"Not squared.": lambda m, r: (m - r) / m})
        for answer in (right, lambda m, r: (m - r) * (1 + r / m), lambda m, r: m - r**2.0 / m):
            assert said(answer) == ""
        assert said(lambda m, r: 1 - r / m) == "Not squared."
        assert said(lambda m, r: m) == "At m = 20, r = 5 it is 20.00, which is too large."
        assert said(lambda m, r: 0).endswith("too small.")
        assert said(lambda m, r: (m**2 - r**2) / m + (m - 20) * (m - 3) * 1e-3).startswith("At m = 7, r = 7")
        for answer in (lambda m, r: 1 / (m - m), lambda m, r: (r - m) ** 0.5, lambda m, r: m / (r - r) * 0):
            assert said(answer).endswith("which is no finite number.")
        assert said(lambda m, r: sympy.Symbol("x")).endswith("which is no finite number.")
        assert said(lambda m, r: m > r).startswith("One expression is asked for")
        assert said(2).startswith("A function is asked for, such as lambda m, r: ...")
        with pytest.raises(ValueError, match="at least one point"):
            formula(right, right, [])

    def test_beside(self, capsys, monkeypatch):
        monkeypatch.chdir(FOLDER)
        cells = helper.beside("ssf/fig4")
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= helper.WIDTH
        assert "difference in points; the interval lies on both sides" in " ".join(said.split())
        assert cells["final: FedSub < FedAvg"]["verdict"] in VERDICTS
        helper.beside("mud/table1")
        assert " not run here, for example " in capsys.readouterr().out
        helper.beside("flss/table3", grid=True)
        said = capsys.readouterr().out.splitlines()
        assert len(said) < 35
        assert max(map(len, said)) <= helper.WIDTH
        assert sum(line.startswith("FedAvg ") for line in said) == 2
        helper.beside("mud/table5", grid=True)
        assert " not run here, for example " in capsys.readouterr().out
        at = {"paper": 1.0, "ours": 2.0, "verdict": "matches"}
        helper._grid([{"cell": name} | at for name in ("FedAvg", "FedMUD", "FedAvg < FedMUD")])
        said = capsys.readouterr().out
        assert [said.index(f"\n{name} ") for name in ("FedAvg", "FedMUD", "FedAvg < FedMUD")]
        helper.beside("mud/table1", grid=True)
        said = capsys.readouterr().out.splitlines()
        assert len(said) < 40
        (order,) = [line for line in said if line.startswith("FedHM < FedMUD ")]
        assert order.count("(") == 3, "one column for each of the three settings that were run"

    def test_provenance_shows_no_objects(self, capsys, monkeypatch):
        monkeypatch.chdir(FOLDER)
        for item in ITEMS:
            helper.provenance(helper.committed(item))
        said = capsys.readouterr().out
        assert not REPR.search(said)
        assert max(map(len, said.splitlines())) <= helper.WIDTH

    def test_judged(self, capsys):
        with pytest.raises(ValueError, match=r"ids='ssf\.no-such'"):
            helper.judged("ssf.no-such")
        (found,) = helper.judged("fedsub.eq20")
        head, _, row = capsys.readouterr().out.splitlines()
        assert head.split() == ["claim", "verdict", "error", "left/right", "control", "refuted"]
        assert row.startswith("fedsub.eq20")
        assert found["verdict"] in row
        assert row.endswith("yes" if found["control_refuted"] else "NO")

    def test_a_picture_is_told_in_a_sentence(self):
        figure = Figure()
        left, right = figure.subplots(1, 2)
        left.plot([0, 1], [3.0, 1e-20], label=r"$\eta_\ell = 1$")
        left.plot([0], [2.0], label="solution")
        left.set(xlabel="rounds", ylabel=r"$\|x-x^\star\|$", yscale="log", title="drift")
        for at in range(helper.MOST + 1):
            right.plot([0, 1], [at, at], label=f"client {at}")
        right.set(xlabel="rounds")
        said = "drift: ‖x - x⋆‖ [log] against rounds: η_ℓ = 1 falls from 3 to ~0, solution at 2; rounds: 7 curves."
        assert helper.seen(figure) == said
        assert helper.seen(figure, values=False).startswith("drift: ‖x - x⋆‖ [log] against rounds: η_ℓ = 1, solution;")
        assert helper.seen(Figure()) == "A picture without axes."

    def test_a_wide_table_is_folded(self, capsys):
        helper.table(["a", "words"], [["x", "many " * 40], ["y", "few"]])
        said = capsys.readouterr().out.splitlines()
        assert max(map(len, said)) <= helper.WIDTH
        assert len(said) == 6

    def test_committed(self, tmp_path, monkeypatch):
        (tmp_path / "notebooks").mkdir()
        monkeypatch.chdir(tmp_path / "notebooks")
        monkeypatch.delenv("FEDTHEORY_ROOT")
        with pytest.raises(FileNotFoundError, match="reproduce ssf/none"):
            helper.committed("ssf/none")
        for scale, folder in (("quick", "figures/quick"), ("paper", "figures")):
            (tmp_path / folder).mkdir(exist_ok=True, parents=True)
            store.save(tmp_path / folder, flips.item("ssf/table2"), flips.result(), scale, 3, 1.0, "cpu")
            record = helper.committed("ssf/table2")
            assert (record["scale"], len(record["table"])) == (scale, 40)

    def test_table(self, capsys):
        helper.table(["method", "error"], [["FedAvg", 0.123456], ["SSF", 3e-17], ["exact", 0.0]])
        assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
            ["FedAvg", "0.1235"],
            ["SSF", "~0"],
            ["exact", "~0"],
        ]
