"""The course: the committed notebooks as students and as instructors get them, with the cells that nbgrader grades.

An exercise stands in a notebook as a question, a cell that ends in `check("05.1", answer)`, and its folded solution; in
words, as a question, a cell `*Your answer:*` and a folded rubric. A student version has the cell to answer in and the
check in a locked cell of its own, with points; outputs, solutions and the summary are out. An instructor version is
nbgrader's source of the same: the solution between its marks, and notes in cells tagged "instructor". Nothing is run
but the checks, on their typical wrong answers.
"""

import ast
import builtins
import contextlib
import copy
import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from fedtheory.core import checks, registry
from fedtheory.core.files import require_folder, whole_folder, write_atomic
from fedtheory.course.exercises import Exercise, exercises, verdict
from fedtheory.running import records

Cell = dict[str, Any]
MADE = "course.json"  # in a folder that was made here: what, and the digests of its files
ANSWER = "*Your answer:*"
STUB = "answer = ..."
QUESTION = re.compile(r"^\*\*Exercise (\d+)\*\* \((\d+) points?(, in words)?\)\.", re.MULTILINE)
SOLUTION = re.compile(r"```python\n(.*?)```", re.DOTALL)
FOLDED = re.compile(r"\s*<details>\s*<summary>.*?</summary>(.*)</details>\s*", re.DOTALL)
EMPTY = re.compile(rf"^{re.escape(STUB)}[ \t]*(#.*)?$", re.MULTILINE)
SAID = re.compile(  # of solutions and rubrics that are not there
    r"[^.\n]*(?:\n(?!\n)[^.\n]*)?\bsolutions?\s(?:are|is)\sfolded[^.]*\.|;\sgrade\sit\sby\sthe\srubric[^.]*(?=\.)"
)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
# nbgrader refuses such a mark outside a cell to answer in: without the course's configuration, which takes the notes
# out, it stops and hands out no solution.
# zip_collect takes STUDENT_05_fedmud.ipynb, and STUDENT.zip with the notebook in it, or with its folder.
# It leaves macOS's ._05_fedmud.ipynb and a notebook without a name, not to take them for those of "." and "extracted".
HANDED_IN = (
    r".*[\\/](?P<student_id>(?!\d\d_|\.|extracted[\\/])[^\\/]+?)([\\/]\d\d_\w+)?[_\\/](?P<file_id>\d\d_\w+)\.ipynb$"
)
RESTORED = "*The next cell was deleted. It was added for grading.*"
NOTES = ("<!-- BEGIN SOLUTION: notes for the instructor -->", "<!-- END SOLUTION -->")


LOCKED = """\
from fedtheory.course.exercises import graded

given, answer = answer, ...  # no other exercise is graded by this answer
{test}"""
EXTRAS = dict.fromkeys(("04", "05", "06", "12"), "theory") | {"09": "llm"}  # beyond `course`, by notebook
COLAB = """\
# On Colab this cell installs the package and fetches the results that the notebooks read. Elsewhere it does nothing.
import os
import sys

if "google.colab" in sys.modules:
    os.environ["FEDTHEORY_ROOT"] = "/content/fedtheory"
    ![ -d /content/fedtheory ] || git clone --quiet --depth 1 {address} /content/fedtheory
    %pip install --quiet "/content/fedtheory{extra}"
"""


class OldForm(ValueError):
    """A notebook whose exercises have no entry in `fedtheory.course.exercises`."""


@dataclass(frozen=True)
class Asked:
    """An exercise as a notebook asks it.

    Fields:
        name: such as "05.1".
        exercise: what is known of it.
        cell: to answer in.
        test: the line that grades it; "" for one in words.
        folded: the cell with its solution, or with its rubric and a model answer.
    """

    name: str
    exercise: Exercise
    cell: Cell
    test: str
    folded: Cell

    @property
    def id(self) -> str:
        return f"exercise-{self.name.replace('.', '-')}"


@dataclass(frozen=True)
class Version:
    """What was made of a notebook: its cells, the points of its exercises, and the files that it reads, by path."""

    name: str
    cells: list[Cell]
    points: Mapping[str, int]
    data: Mapping[str, bytes]

    def file(self) -> bytes:
        """The notebook as JSON."""
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        whole = {"cells": self.cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        return (json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def home() -> Path:
    """The clone of the repository, with `notebooks` and `figures`: see `records.bases`. Raises FileNotFoundError."""
    for base in records.bases():
        if any((base / "notebooks").glob("[0-9][0-9]_*.ipynb")):
            return base
    fix = "run the command in a clone of the repository, or set FEDTHEORY_ROOT to one"
    checks.reject("notebooks", "notebooks", "the committed notebooks", fix, FileNotFoundError)


def committed_notebooks(chosen: Sequence[str] = ()) -> list[Path]:
    """The committed notebooks whose names begin with one of those chosen; all, where none is."""
    paths = sorted((home() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    for name in chosen:
        if not name or not any(path.stem.startswith(name) for path in paths):
            known = ", ".join(path.stem for path in paths)
            checks.reject("notebooks", name, "the beginning of a notebook's name", f"one of {known}")
    return [path for path in paths if not chosen or path.stem.startswith(tuple(chosen))]


def cells_of(path: Path) -> list[Cell]:
    """The cells of a notebook; their sources as one text each."""
    cells = json.loads(path.read_bytes())["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


# What stands in a notebook.


def _call(source: str) -> tuple[Any, str, str] | None:
    """Of a cell that ends in a check: the name of its exercise, what stands above, the check; None for another."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic
        return None
    if not body or not isinstance(last := body[-1], ast.Expr) or not isinstance(call := last.value, ast.Call):
        return None
    if not isinstance(call.func, ast.Name) or call.func.id != "check" or not isinstance(call.args[0], ast.Constant):
        return None
    lines = source.splitlines()
    return call.args[0].value, "\n".join(lines[: last.lineno - 1]), "\n".join(lines[last.lineno - 1 :])


def read(cells: Sequence[Cell], number: str) -> Iterator[Cell | Asked]:
    """The cells of the notebook with this number, and in the place of those of an exercise the exercise.

    Raises OldForm, and ValueError for an exercise that is not written as they are: with no line `answer = ...`, no
    solution below, or not asked at all.
    """
    known, asked, told, rest = exercises(number), set(), 0, iter(cells)
    for cell in rest:
        source, words = cell["source"], cell["source"].strip() == ANSWER
        found = _call(source) if cell["cell_type"] == "code" else None
        if cell["cell_type"] == "markdown" and not words:
            told = max([told, *(int(n) for n, _, _ in QUESTION.findall(source))])
        if found is None and not words:
            yield cell
            continue
        if not known or (found is not None and not isinstance(found[0], str)):
            raise OldForm(number)
        name = f"{number}.{told}" if found is None else found[0]
        exercise = known.get(int(name.partition(".")[2]))
        if exercise is None or name in asked or (exercise.kind == "explain") != words:
            checks.reject("exercise", name, "one of its notebook, asked once", f"see exercises/n{number}.py")
        below = next(rest, {"source": ""})
        if not FOLDED.fullmatch(below["source"]) or not (words or SOLUTION.search(below["source"])):
            checks.reject("exercise", name, "its folded solution in the next cell", "write it there")
        if found is not None and len(EMPTY.findall(found[1])) != 1:
            checks.reject("exercise", name, f"one line {STUB}", "write it in the cell of its check")
        asked.add(name)
        stub = ANSWER if found is None else found[1].strip()
        test = "" if found is None else re.sub(r"check\((.*?), answer\b", r"graded(\1, given", found[2], count=1)
        yield Asked(name, exercise, cell | {"source": stub}, test, below)
    if not asked:
        raise OldForm(number)
    if missing := [f"{number}.{n}" for n in known if f"{number}.{n}" not in asked]:
        checks.reject("exercise", missing[0], "a question in its notebook", f"ask it, or see exercises/n{number}.py")


def parts(source: str, headings: str = r"##? ") -> Iterator[tuple[str, str]]:
    """A text by its headings: (heading in small letters, part with it); code is no heading."""
    heading, lines, fenced = "", [], False
    for line in source.splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced and re.match(headings, line):
            if lines:
                yield heading, "\n".join(lines).strip()
            heading, lines = line.lstrip("# ").lower(), []
        lines.append(line)
    yield heading, "\n".join(lines).strip()


def _bare(cell: Cell, source: str, *, id: str = "", outputs: bool = False) -> Cell:
    """A cell of the course: its tags and whether it is folded stay, other metadata does not."""
    kept = {name: value for name, value in cell["metadata"].items() if name in ("tags", "jupyter")}
    made: Cell = {"cell_type": cell["cell_type"], "id": id or cell["id"], "metadata": copy.deepcopy(kept)}
    if cell["cell_type"] == "code":
        made |= {"execution_count": None, "outputs": copy.deepcopy(cell["outputs"]) if outputs else []}
    return made | {"source": source}


def _text(source: str) -> str:
    """A text with the links that a course has: to other notebooks of it, not into the repository."""
    source = SAID.sub("", source)
    source = re.sub(r"\]\((\d\d_\w+)\.ipynb\)", r"](../\1/\1.ipynb)", source)
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\.md[^)]*\)", r"\1", source)


def _code(source: str) -> str:
    """Code of a notebook, without the import of what the locked cells import."""
    return re.sub(r"^from fedtheory\.course\.exercises import check\n?", "", source, flags=re.MULTILINE)


def _graded(cell: Cell, id: str, points: int | None = None, *, solution: bool) -> Cell:
    """A cell with nbgrader's metadata: to answer in, a test with points, or both, for an answer in words."""
    grade = points is not None
    word: dict[str, Any] = {"schema_version": 3, "grade_id": id, "task": False, "grade": grade}
    word |= {"solution": solution, "locked": grade and not solution} | ({"points": points} if grade else {})
    cell["metadata"] |= {"nbgrader": word, "deletable": False} | ({} if solution else {"editable": False})
    return cell


def _locked(asked: Asked) -> Cell:
    """The cell that grades an answer, and then forgets it; a wrong one stops no "run all"."""
    source = LOCKED.format(test=asked.test)
    cell = _bare({**asked.cell, "metadata": {"tags": ["raises-exception"]}}, source, id=f"{asked.id}-test")
    return _graded(cell, f"{asked.id}-test", asked.exercise.points, solution=False)


def _stub(source: str, answer: str) -> str:
    """The cell to answer in: what the comment behind the dots says stands above the answer."""
    return EMPTY.sub(lambda found: f"{found[1]}\n{answer}" if found[1] else answer, source)


def _plain(cells: Sequence[Cell | Asked], *, outputs: bool) -> Iterator[tuple[bool, Cell | Asked]]:
    """Cells ready for a course, and whether they are of the summary, which gives answers away."""
    summary = False
    for cell in cells:
        if isinstance(cell, Asked):
            yield False, cell
        elif cell["cell_type"] != "markdown":
            yield summary, _bare(cell, _code(cell["source"]), outputs=outputs)
        else:
            for at, (heading, part) in enumerate(parts(cell["source"])):
                summary = heading.startswith("summary") if heading else summary
                if part := _text(part).strip():
                    yield summary, _bare(cell, part, id=cell["id"] if at == 0 else f"{cell['id']}-{at}")


def student(cells: Sequence[Cell], number: str) -> list[Cell]:
    """The cells of a student version: without outputs, solutions, rubrics and summary; see `read` for errors."""
    made: list[Cell] = []
    for summary, cell in _plain(list(read(cells, number)), outputs=False):
        if not isinstance(cell, Asked):
            made += [] if summary else [cell]
        elif cell.test:
            answer = _bare(cell.cell, _stub(cell.cell["source"], STUB), id=f"{cell.id}-answer")
            made += [_graded(answer, f"{cell.id}-answer", solution=True), _locked(cell)]
        else:
            answer = _bare(cell.cell, ANSWER, id=f"{cell.id}-words")
            made.append(_graded(answer, f"{cell.id}-words", cell.exercise.points, solution=True))
    return made


def instructor(cells: Sequence[Cell], number: str) -> list[Cell]:
    """The cells of nbgrader's source, with the notes and the outputs; see `read` for errors."""
    made: list[Cell] = []
    space = _imports(cells)
    for summary, cell in _plain(list(read(cells, number)), outputs=True):
        if not isinstance(cell, Asked):
            made.append(_note(cell["id"], cell["source"]) if summary and cell["cell_type"] == "markdown" else cell)
            if summary and cell["cell_type"] == "code":
                cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "instructor"]
        elif cell.test:
            (solution,) = SOLUTION.findall(cell.folded["source"])[:1]
            source = _stub(cell.cell["source"], f"{BEGIN}\n{solution.strip()}\n{END}")
            answer = _bare(cell.cell, source, id=f"{cell.id}-answer")
            made += [_graded(answer, f"{cell.id}-answer", solution=True), _locked(cell)]
            made.append(_note(f"{cell.id}-notes", _of_code(cell, space)))
        else:
            inner = FOLDED.fullmatch(cell.folded["source"])
            source = f"{BEGIN}\n\n{'' if inner is None else inner[1].strip()}\n\n{END}"
            answer = _bare(cell.cell, source, id=f"{cell.id}-words")
            made.append(_graded(answer, f"{cell.id}-words", cell.exercise.points, solution=True))
            made.append(_note(f"{cell.id}-notes", _of_words(cell)))
    return made


def restored(cells: Sequence[Cell], source: Sequence[Cell]) -> list[Cell]:
    """A student's cells, and those graded cells of the instructor's version that the student deleted.

    Each stands behind the graded cell before it, below a note, without its solution.
    """
    made, at = list(cells), 0
    identified = all("id" in cell for cell in cells)  # Colab's notebooks have no ids
    of = lambda cell: cell["metadata"].get("nbgrader", {}).get("grade_id")
    for cell in filter(of, source):
        held = [of(one) for one in made]
        if of(cell) in held:
            at = held.index(of(cell)) + 1
            continue
        empty = STUB if cell["cell_type"] == "code" else ANSWER
        bare = re.sub(rf"{BEGIN}\n.*?{END}", empty, cell["source"], flags=re.DOTALL)
        note: Cell = {"cell_type": "markdown", "id": f"{cell['id']}-note", "metadata": {}, "source": RESTORED}
        added = [note, cell | {"source": bare}]
        made[at:at] = added if identified else [{k: v for k, v in one.items() if k != "id"} for one in added]
        at += 2
    return made


# Notes for the instructor.


def _note(id: str, text: str) -> Cell:
    source = f"{NOTES[0]}\n\n{text}\n\n{NOTES[1]}"
    return {"cell_type": "markdown", "id": id, "metadata": {"tags": ["instructor"]}, "source": source}


def _title(asked: Asked) -> str:
    points = f"{asked.exercise.points} point{'s' if asked.exercise.points > 1 else ''}"
    return f"**Notes on exercise {asked.name.partition('.')[2]}** ({asked.exercise.kind}, {points})"


def _of_code(asked: Asked, space: Mapping[str, Any]) -> str:
    """The folded solution, and what is said of typical wrong answers."""
    wrong = [f"- {_inline(code)}: {_sentence(asked, code, word, space)}" for code, word in asked.exercise.wrong.items()]
    right = ["Also right:", *(f"- {_inline(code)}" for code in asked.exercise.right)] if asked.exercise.right else []
    hint = f"The hint after each: {asked.exercise.hint}" if asked.exercise.hint else ""
    blocks = [[_title(asked)], [asked.folded["source"]], ["Typical wrong answers, and what each reveals:", *wrong]]
    return "\n\n".join("\n".join(block) for block in [*blocks, [hint], right] if "".join(block))


def _of_words(asked: Asked) -> str:
    """The rubric, and what typical weak answers reveal."""
    rubric = [f"- {points}: {' '.join(says.split())}" for says, points in asked.exercise.rubric.items()]
    weak = [f'- "{" ".join(says.split())}": {reveals}' for says, reveals in asked.exercise.weak.items()]
    blocks = [[_title(asked)], ["Points:", *rubric], ["Typical weak answers, and what each reveals:", *weak]]
    return "\n\n".join("\n".join(block) for block in (blocks if weak else blocks[:-1]))


def _inline(code: str) -> str:
    return f"`` {' '.join(code.split())} ``" if "`" in code else f"`{' '.join(code.split())}`"


def _imports(cells: Sequence[Cell]) -> dict[str, Any]:
    """The names that a notebook imports; what is not installed is left out."""
    space: dict[str, Any] = {"__builtins__": builtins}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        with contextlib.suppress(SyntaxError):
            for node in ast.parse(cell["source"]).body:
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    with contextlib.suppress(ImportError):
                        exec(compile(ast.Module([node], []), "imports", "exec"), space)
    return space


def _sentence(asked: Asked, code: str, word: str, space: Mapping[str, Any]) -> str:
    """What the check says of a wrong answer; the words that the tests hold it to, where it needs the notebook's run."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # as `start` does in a notebook
    try:
        names = dict(space)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            exec(f"answer = {code}", names)
            right, said = verdict(asked.name, names["answer"])
    except Exception:  # of the notebook's names, which are not there
        right, said = False, ""
    finally:
        torch.set_default_dtype(before)
    return " ".join(said.split()) if word in said and not right else f"... {word} ..."


# Folders.


def data(cells: Sequence[Cell]) -> dict[str, bytes]:
    """The committed records that a notebook reads, the ledger, the template: by their paths in the repository.

    All records of the papers whose items a notebook names, since a conclusion rests on all of a paper's.
    """
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    named = {*re.findall(r"[\"'](\w+)/", code), *re.findall(r"\bconclusions\([\"'](\w+)[\"']\)", code)}
    root, found = home(), {}
    for item in registry.items():
        place = next((folder for folder in records.folders(root / "figures") if records.made(folder, item)), None)
        if item.partition("/")[0] in named and place is not None:
            for suffix in (".json", ".csv"):
                path = (place / item).with_suffix(suffix)
                found[path.relative_to(root).as_posix()] = path.read_bytes()
    if "ledger" in code or "conclusions(" in code:
        found["docs/ledger.json"] = (root / "docs" / "ledger.json").read_bytes()
    if 'located("docs/template")' in code:
        for path in sorted((root / "docs" / "template").glob("*.*")):
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def _installing(address: str | None, number: str) -> list[Cell]:
    """The cell that a notebook begins with where it may be opened on Colab; none without an address."""
    if address is None:
        return []
    if not re.fullmatch(r"https?://[\w./~:@%+-]+", address):
        checks.reject("colab", address, "the web address of a git repository", "write it as https://HOST/OWNER/NAME")
    source = COLAB.format(address=address, extra=f"[{EXTRAS[number]}]" if number in EXTRAS else "").rstrip()
    cell: Cell = {"cell_type": "code", "id": "colab", "metadata": {"tags": ["hide-input"]}, "source": source}
    return [cell | {"execution_count": None, "outputs": []}]


def versions(kind: str, chosen: Sequence[str] = (), colab: str | None = None) -> tuple[list[Version], list[str]]:
    """The notebooks of a course, "student" or "instructor", and the names of those left out: in the old form.

    Raises ValueError where none is left, and for an exercise that is not written as they are.
    """
    make = {"student": student, "instructor": instructor}[checks.choice("kind", kind, ("student", "instructor"))]
    made, left_out = [], []
    for path in committed_notebooks(chosen):
        cells, number = cells_of(path), path.stem[:2]
        try:
            points = {f"{number}.{n}": one.points for n, one in exercises(number).items()}
            made.append(Version(path.stem, [*_installing(colab, number), *make(cells, number)], points, data(cells)))
        except OldForm:
            left_out.append(path.stem)
    if not made:
        expected = "a notebook whose exercises stand in fedtheory/course/exercises"
        checks.reject("notebooks", ", ".join(left_out), expected, "choose another one")
    return made, left_out


def course(
    kind: str, folder: str | Path, chosen: Sequence[str] = (), colab: str | None = None
) -> tuple[list[Version], list[str]]:
    """Write a course into a folder that is new, empty, or was made by this function before.

    Args:
        kind: "student": a folder for each notebook; "instructor": nbgrader's course, with its configuration.
        folder: where to.
        chosen: beginnings of notebooks' names; none for all.
        colab: the web address of a git repository of the package; each notebook then begins with a cell that installs
            from there on Colab and does nothing elsewhere.

    Returns what was made, and the names of the notebooks that were left out. The folder is there at the end, whole, or
    as it was before.

    Raises FileExistsError for a folder with something else in it, or with a file that was changed since it was made.
    """
    out = checks.path("folder", folder)
    made_before(out, kind)
    require_folder(out)
    made, left_out = versions(kind, chosen, colab)
    base = "source/" if kind == "instructor" else ""
    files = {"README.md": _readme(kind, made).encode()}
    for one in made:
        files[f"{base}{one.name}/{one.name}.ipynb"] = one.file()
        files |= {f"{base}{one.name}/{path}": content for path, content in one.data.items()}
    if kind == "instructor":
        files["nbgrader_config.py"] = CONFIG.encode()
    save(out, kind, files)
    return made, left_out


def made_before(folder: Path, kind: str) -> dict[str, str]:
    """The files that were written into a folder by `save`, with their digests; none for a folder that is new or empty.

    Raises FileExistsError for any other folder, for a file that was changed since, and for names that lead elsewhere.
    """
    try:
        new = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:  # a name that is too long, a folder that may not be read
        expected = f"a folder that can be looked into ({(error.strerror or str(error)).lower()})"
        checks.reject("folder", str(folder), expected, "name one where you may write", type(error))
    if new:
        return {}
    expected = f"a folder that is new, empty, or made by this command with --{kind}"
    try:
        record = json.loads((folder / MADE).read_bytes())
        files = dict(record["files"]) if record["made"] == kind else None
        before = dict(record.get("before", {}))  # of a call that broke off: some files are as it found them
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        files, before = None, {}
    if files is None:
        checks.reject("folder", str(folder), expected, "name another one", FileExistsError)
    files = before | files
    for name, digest in files.items():
        path = _within(folder, name)
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() not in (digest, before.get(name)):
            fix = "name another folder, or move that file away"
            checks.reject("folder", str(folder), f"{name} as it was made (it was changed since)", fix, FileExistsError)
    return files


def _within(folder: Path, name: str) -> Path:
    """The path of a file in a folder. Raises FileExistsError for one elsewhere: by `..`, by a root, through a link."""
    parts, fix = PurePosixPath(name).parts, "name another folder"
    if not parts or ".." in parts or parts[0] == "/":
        checks.reject("folder", str(folder), f"files in it, not {name!r}", fix, FileExistsError)
    path = folder.joinpath(*parts)
    for there in (path, *path.parents[: len(parts) - 1]):
        if there.is_symlink():
            expected = f"no link at {there.relative_to(folder)}, where a file is written"
            checks.reject("folder", str(folder), expected, fix, FileExistsError)
    return path


def save(folder: Path, kind: str, files: Mapping[str, bytes]) -> None:
    """Write files, by path, into a folder, and what was made; files of another time that are none of these go.

    What else is in the folder stays: a gradebook, submissions. Errors as for `made_before`.
    """
    before = made_before(folder, kind)
    record = {"made": kind, "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}}
    whole = {**files, MADE: (json.dumps(record, indent=1) + "\n").encode()}
    if before:
        paths = {name: _within(folder, name) for name in whole}
        for name in sorted(set(files) - set(before)):
            if paths[name].exists() and not (paths[name].is_file() and paths[name].read_bytes() == files[name]):
                expected, fix = f"no other file at {name}, where one is written", "move that file away"
                checks.reject("folder", str(folder), expected, fix, FileExistsError)
        write_atomic(folder / MADE, (json.dumps(record | {"before": before}, indent=1) + "\n").encode())
        _write(paths, whole)
        for name in set(before) - set(files):
            _within(folder, name).unlink(missing_ok=True)
        return
    with whole_folder(folder) as part:
        _write({name: part / name for name in whole}, whole)


def _write(paths: Mapping[str, Path], files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        write_atomic(paths[name], content)


def _readme(kind: str, made: Sequence[Version]) -> str:
    extra = lambda name: EXTRAS.get(name[:2], "")
    rows = [f"| {one.name} | {len(one.points)} | {sum(one.points.values())} | {extra(one.name)} |" for one in made]
    table = "\n".join(["| notebook | exercises | points | also needs |", "|---|---|---|---|", *rows])
    return (STUDENT if kind == "student" else INSTRUCTOR).format(table=table, first=made[0].name)


STUDENT = """\
# The course's notebooks

{table}

They need `fedtheory` with its extra `course`, and those that the table names. Each folder has its notebook and the
results that it reads; keep them together. Type `jupyter lab` in this folder, open a notebook and run its cells from the
top.

An exercise has a cell with `answer = ...`: replace the dots. The locked cell below it says whether the answer is right
or what it reveals; as long as it stops with an error, it gives no points. After a change run both again. Questions in
words have a cell *Your answer:*, which a person grades. Hand in the notebook with your name before its own, such as
`lee_{first}.ipynb`.
"""

INSTRUCTOR = """\
# The course, for nbgrader

{table}

`source/` has the notebooks with solutions, typical wrong answers and what they reveal, and rubrics. Keep
`nbgrader_config.py` beside it: it takes the notes out of what students get (without it nbgrader stops). In this folder,
with nbgrader and fedtheory installed in one environment:

```
nbgrader generate_assignment {first}   # release/{first}: hand it out
nbgrader zip_collect {first}           # downloaded/{first}/archive/STUDENT_{first}.ipynb
nbgrader autograde {first}             # of submitted/STUDENT/{first}/{first}.ipynb
jupyter lab                            # questions in words: menu Nbgrader, Formgrader
nbgrader generate_feedback {first}     # feedback/STUDENT/{first}
```

`nbgrader export` writes all grades as CSV. `course.json` lists what was made here: making the course again replaces
these files, refuses where you have changed one, and leaves the gradebook and all submissions.
"""

CONFIG = '''\
"""nbgrader's settings for this course."""

from pathlib import Path

import nbformat
from nbconvert.preprocessors import TagRemovePreprocessor
from nbgrader.preprocessors import NbGraderPreprocessor

from fedtheory.course.course import restored


class AddDeletedCells(NbGraderPreprocessor):
    def preprocess(self, nb, resources):
        of = resources["nbgrader"]
        path = Path(__file__).parent / "source" / of["assignment"] / f"{of['notebook']}.ipynb"
        source = nbformat.read(path, as_version=4)
        nb.cells = [nbformat.from_dict(cell) for cell in restored(nb.cells, source.cells)]
        return nb, resources


c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "fedtheory"
c.ClearSolutions.code_stub = {"python": "answer = ..."}
c.ClearSolutions.text_stub = "*Your answer:*"
# The instructor's notes are taken out before anything else is done.
c.GenerateAssignment.preprocessors.insert(0, TagRemovePreprocessor)
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"instructor"}
c.Execute.timeout = 600  # seconds for a cell, on a slow machine
c.Autograde.sanitize_preprocessors.insert(0, AddDeletedCells)
'''
CONFIG += f"c.FileNameCollectorPlugin.named_regexp = {HANDED_IN!r}\n"
