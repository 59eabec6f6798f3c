"""The course: what students get gives nothing away, what nbgrader gets it takes; slides that fit.

The round trip through nbgrader runs where it is installed (`make course-check`), and is skipped elsewhere.
"""

import base64
import copy
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

import fedtheory
from fedtheory import cli
from fedtheory.course import course, handouts, slides
from fedtheory.course.exercises import Exercise, exercises

ROOT = Path(fedtheory.__file__).resolve().parents[1]
NAMES = [path.stem for path in course.committed_notebooks()]
FIRST = "05_fedmud"

QUESTION = """**Exercise 1** (2 points). What is twice 21?

It has ![a picture](x.png)."""
SOLVED = "<details>\n<summary>Solution</summary>\n\n```python\nanswer = 2 * 21\n```\n\nTwice.\n\n</details>"
ORDER = ("exercise-99-1-answer", "exercise-99-1-test", "exercise-99-2-words")
MODEL = "<details>\n<summary>Rubric and a model answer</summary>\n\n- 3: it says why\n\nBecause.\n\n</details>"


def cell(kind: str, source: str, **more) -> dict:
    found = {"cell_type": kind, "id": f"{kind}-{abs(hash(source)) % 10**8}", "metadata": {}, "source": source}
    return (
        found
        | ({"execution_count": 1, "outputs": [{"output_type": "stream", "text": "42"}]} if kind == "code" else {})
        | more
    )


SMALL = [
    cell(
        "markdown",
        "# Small\n\nThe solutions are folded. An answer in words goes below;\ngrade it by the rubric that is folded "
        "behind it. [the next](01_next.ipynb), [docs](../docs/report.md#x)\n\n## One",
    ),
    cell("code", 'import math\nfrom fedtheory.course.exercises import check\nopen("x")'),
    cell("markdown", QUESTION),
    cell("code", 'given = 1\nanswer = ...  # a number\ncheck("99.1", answer)'),
    cell("markdown", SOLVED),
    cell("markdown", "**Exercise 2** (3 points, in words). Why?"),
    cell("markdown", "*Your answer:*"),
    cell("markdown", MODEL),
    cell("markdown", "## Summary\n- twice 21 is 42\n\n```\n# no heading\n```\n\n### Still\n\n## References\n- none"),
]
TEST = lambda answer: "" if answer == 42 else "That is not twice 21."
TWO = {
    1: Exercise("compute", 2, "add", TEST, right=("42.0",), wrong={"21": "not twice", "nowhere": "not twice"}),
    2: Exercise("explain", 3, rubric={"it says why": 3}, weak={"It is so": "Nothing is said."}),
}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr("fedtheory.course.exercises.exercises", lambda number: TWO if number == "99" else {})
    monkeypatch.setattr(course, "exercises", lambda number: TWO if number == "99" else {})
    return SMALL


def graded(cells) -> dict[str, dict]:
    return {
        c["metadata"]["nbgrader"]["grade_id"]: c["metadata"]["nbgrader"] for c in cells if "nbgrader" in c["metadata"]
    }


def faults(cells) -> list[str]:
    """What nbgrader's schema 3 and its rules forbid."""
    found, seen = [], set()
    for one in cells:
        meta = one["metadata"].get("nbgrader")
        if one["cell_type"] == "code" and set(one) != {
            "cell_type",
            "id",
            "metadata",
            "source",
            "outputs",
            "execution_count",
        }:
            found.append(f"{one['id']}: fields {sorted(one)}")
        if one["id"] in seen or not re.fullmatch(r"[\w-]{1,64}", one["id"]):
            found.append(f"{one['id']}: an id twice, or none")
        seen.add(one["id"])
        if meta is None:
            continue
        if set(meta) - {"points"} != {"schema_version", "grade_id", "grade", "solution", "locked", "task"}:
            found.append(f"{one['id']}: {sorted(meta)}")
        if meta["schema_version"] != 3 or not re.fullmatch(r"[a-zA-Z0-9_-]+", meta["grade_id"]):
            found.append(f"{one['id']}: schema or id")
        if ("points" in meta) != meta["grade"] or meta["locked"] != (meta["grade"] and not meta["solution"]):
            found.append(f"{one['id']}: points or lock")
        if one["cell_type"] == "markdown" and not (meta["grade"] and meta["solution"]):
            found.append(f"{one['id']}: words are answered and graded")
    return found


class TestSmall:
    """A notebook of nine cells."""

    def test_student(self, small):
        made = course.student(small, "99")
        assert faults(made) == []
        text = "\n".join(one["source"] for one in made)
        assert not re.search(r"2 \* 21|42|Twice|Because|it says why|Summary|Still|folded|details", text)
        assert [one["source"] for one in made if one["id"].startswith("exercise")] == [
            "given = 1\n# a number\nanswer = ...",
            course.LOCKED.format(test='graded("99.1", given)'),
            "*Your answer:*",
        ]
        assert {name: meta.get("points") for name, meta in graded(made).items()} == {
            "exercise-99-1-answer": None,
            "exercise-99-1-test": 2,
            "exercise-99-2-words": 3,
        }
        assert all(
            one["outputs"] == [] and one["execution_count"] is None for one in made if one["cell_type"] == "code"
        )
        assert "[the next](../01_next/01_next.ipynb), docs" in text
        assert "![a picture](x.png)" in text
        assert 'open("x")' in text
        assert "import check" not in text
        assert made[-1]["source"] == "## References\n- none"

    def test_no_exercise_is_graded_by_the_answer_to_another(self, small, capsys):
        """The cell of the next answer stopped with an error."""
        locked, space = course.student(small, "99")[5]["source"], {"answer": 42}
        exec(locked, space)
        with pytest.raises(AssertionError, match="no answer"):
            exec(locked, space)
        assert "right" in capsys.readouterr().out

    def test_what_a_student_deleted_is_added_again(self, small):
        """Each cell in its place and without its solution, with an id where the others have one."""
        source, made = course.instructor(small, "99"), course.student(small, "99")
        empty = {one["id"]: one for one in made}
        assert course.restored(made, source) == made
        for gone in (ORDER[1:2], ORDER):
            again = course.restored([one for one in made if one["id"] not in gone], source)
            notes = [one["id"] for one in again if one["source"] == course.RESTORED]
            assert notes == [f"{id}-note" for id in gone]
            assert [one for one in again if "nbgrader" in one["metadata"]] == [empty[id] for id in ORDER]
            assert [again[again.index(empty[id]) - 1]["id"] for id in gone] == notes
        bare = [{name: value for name, value in one.items() if name != "id"} for one in made[:5]]
        assert not any("id" in one for one in course.restored(bare, source))

    def test_instructor(self, small):
        made = course.instructor(small, "99")
        assert faults(made) == []
        assert graded(made) == graded(course.student(small, "99"))
        by_id = {one["id"]: one for one in made}
        answer = "given = 1\n# a number\n### BEGIN SOLUTION\nanswer = 2 * 21\n### END SOLUTION"
        assert by_id["exercise-99-1-answer"]["source"] == answer
        notes = by_id["exercise-99-1-notes"]["source"]
        assert "- `21`: That is not twice 21.\n- `nowhere`: ... not twice ..." in notes
        assert SOLVED in notes
        assert "- `42.0`" in notes
        words = by_id["exercise-99-2-words"]["source"]
        assert words == "### BEGIN SOLUTION\n\n- 3: it says why\n\nBecause.\n\n### END SOLUTION"
        assert '- "It is so": Nothing is said.' in by_id["exercise-99-2-notes"]["source"]
        hidden = [one["source"] for one in made if "instructor" in one["metadata"].get("tags", [])]
        assert len(hidden) == 3
        assert "### Still" in hidden[-1]
        assert all(source.startswith(course.NOTES[0]) and source.endswith(course.NOTES[1]) for source in hidden)

    def test_what_nbgrader_makes_of_the_source_is_what_students_get(self, small):
        """Notes out, what stands between the marks replaced: the same cells."""
        assert released(course.instructor(small, "99")) == course.student(small, "99")

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda cells: cells.__delitem__(slice(3, 6)), "exercise='99.1': expected one of its notebook"),
            (
                lambda cells: [
                    cells[3].update(source='answer = ...\ncheck("99.2", answer)'),
                    cells.__delitem__(slice(5, 8)),
                ],
                "exercise='99.2': expected one of its notebook",
            ),
            (lambda cells: cells.pop(4), "its folded solution in the next cell"),
            (lambda cells: cells.pop(7), "its folded solution in the next cell"),
            (lambda cells: cells[3].update(source='answer = 1\ncheck("99.1", answer)'), "one line answer = ..."),
            (lambda cells: cells[3].update(source='answer = ...\ncheck("99.7", answer)'), "exercise='99.7'"),
            (lambda cells: cells.insert(5, cells[3]), "asked once"),
            (lambda cells: cells.__delitem__(slice(5, 8)), "exercise='99.2': expected a question"),
            (lambda cells: cells[4].update(source=SOLVED.replace("python", "text")), "its folded solution"),
        ],
    )
    def test_an_exercise_that_is_not_written_as_they_are(self, small, change, said):
        cells = [dict(one) for one in small]
        change(cells)
        for make in (course.student, course.instructor):
            with pytest.raises(ValueError, match=re.escape(said)):
                make(cells, "99")

    def test_the_old_form_is_left_out(self, small):
        cells = [*small[:3], cell("code", 'answer = ...\ncheck(1, answer, lambda a: a == 1, "one")'), *small[4:]]
        for number, found in (("99", cells), ("98", small), ("99", small[:2])):
            with pytest.raises(course.OldForm):
                course.student(found, number)


def released(cells) -> list[dict]:
    """What `nbgrader generate_assignment` makes of a source, with the course's configuration."""
    made = []
    for one in cells:
        if "instructor" in one["metadata"].get("tags", []):
            continue
        stub = course.STUB if one["cell_type"] == "code" else course.ANSWER
        source = re.sub(r"### BEGIN SOLUTION\n.*?### END SOLUTION", stub, one["source"], flags=re.DOTALL)
        made.append(one | {"source": source} | ({"outputs": []} if one["cell_type"] == "code" else {}))
    return made


@cache
def _students(name: str) -> list[dict]:
    return course.student(course.cells_of(ROOT / "notebooks" / f"{name}.ipynb"), name[:2])


def students(name: str) -> list[dict]:
    """The cells of a notebook's student version, made once."""
    return copy.deepcopy(_students(name))


@pytest.mark.parametrize("name", NAMES)
class TestVersions:
    """Of every notebook; nothing is run."""

    def cells(self, name):
        return course.cells_of(ROOT / "notebooks" / f"{name}.ipynb"), name[:2]

    def test_students_get_no_solution(self, name):
        cells, number = self.cells(name)
        made = students(name)
        assert faults(made) == []
        text = "\n".join(one["source"] for one in made)
        assert not re.search(r"<details>|BEGIN SOLUTION|## Summary|\bcheck\(\"\d", text)
        locked = [one["source"] for one in made if one["id"].endswith("-test")]
        assert [source for source in locked if not re.search(rf'^graded\("{number}\.\d+", given', source, re.M)] == []
        for asked in course.read(cells, number):
            if not isinstance(asked, course.Asked):
                continue
            own = asked.exercise
            for pattern in own.tells:
                assert not re.search(pattern, text), f"{asked.name}: {pattern}"
            for says in own.rubric:
                assert " ".join(says.split()) not in " ".join(text.split())
            if asked.test:
                solution = re.sub(r"#.*", "", course.SOLUTION.findall(asked.folded["source"])[0])
                told = [line.strip() for line in solution.splitlines() if len(line.strip()) > len("answer = 12345")]
                assert [line for line in told if line.startswith("answer") and line in text] == []
        assert [one["id"] for one in made if one.get("outputs") or one.get("execution_count")] == []

    def test_points_add_up(self, name):
        points = [meta["points"] for meta in graded(students(name)).values() if meta["grade"]]
        assert sorted(points) == sorted(one.points for one in exercises(name[:2]).values())

    def test_instructors_get_all(self, name, monkeypatch):
        """Checks are not run: what they say of these answers is test_exercises' of test_notebooks.py."""
        monkeypatch.setattr(course, "verdict", lambda *given: (False, ""))
        cells, number = self.cells(name)
        made = course.instructor(cells, number)
        assert faults(made) == []
        assert released(made) == students(name)
        notes = [one["source"] for one in made if one["id"].endswith("-notes")]
        assert len(notes) == len(exercises(number))
        for note, own in zip(notes, exercises(number).values()):
            for word in [*own.wrong.values(), *own.weak.values()]:
                assert " ".join(word.split()) in " ".join(note.split())

    def test_the_records_that_it_reads_come_along(self, name, tmp_path, monkeypatch):
        from fedtheory.core import registry
        from fedtheory.running import records

        cells, _ = self.cells(name)
        held = course.data(cells)
        code = "\n".join(one["source"] for one in cells if one["cell_type"] == "code")
        named = {item for item in registry.items() if f'"{item}"' in code}
        for path, content in held.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(content)
        assert {item for item in named if not records.made(tmp_path / "figures", item)} == set()
        assert sum(map(len, held.values())) < 5e6


def whole(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class TestFolder:
    """What a folder holds, and which are refused."""

    def test_made_twice(self, tmp_path, capsys):
        folder = tmp_path / "of" / "students"
        assert cli.main(["course", "--student", str(folder), FIRST]) == 0
        points = sum(one.points for one in exercises("05").values())
        assert capsys.readouterr().out.endswith(f"exercises, {points} points\n")
        first = whole(folder)
        assert f"{FIRST}/{FIRST}.ipynb" in first
        assert f"{FIRST}/docs/ledger.json" in first
        assert cli.main(["course", "--student", str(folder), FIRST, "--json"]) == 0
        assert whole(folder) == first
        said = json.loads(capsys.readouterr().out)
        assert said["notebooks"][0]["name"] == FIRST
        assert sum(said["notebooks"][0]["points"].values()) == points

    def test_what_a_teacher_has_there_stays(self, tmp_path):
        folder = tmp_path / "course"
        course.save(folder, "instructor", {"source/a.txt": b"a", "old/b.txt": b"b"})
        (folder / "gradebook.db").write_bytes(b"grades")
        course.save(folder, "instructor", {"source/a.txt": b"new"})
        assert {name: held for name, held in whole(folder).items() if name != course.MADE} == {
            "gradebook.db": b"grades",
            "source/a.txt": b"new",
        }

    def test_a_file_that_was_not_made_here_is_not_overwritten(self, tmp_path):
        folder = tmp_path / "course"
        course.save(folder, "student", {"a.txt": b"a"})
        (folder / "b.txt").write_bytes(b"mine")
        before = whole(folder)
        with pytest.raises(FileExistsError, match=r"expected no other file at b\.txt, where one is written"):
            course.save(folder, "student", {"a.txt": b"new", "b.txt": b"b"})
        assert whole(folder) == before
        course.save(folder, "student", {"a.txt": b"new", "b.txt": b"mine"})
        assert (folder / "a.txt").read_bytes() == b"new"

    def test_what_lies_beside_stays(self, tmp_path):
        """A folder of the user's, or a link to one, whose name is that of a folder under way."""
        (tmp_path / ".course.part").mkdir()
        (tmp_path / ".course.part" / "known.txt").write_text("known")
        (tmp_path / ".other.part").symlink_to(tmp_path / ".course.part")
        for name in ("course", "other"):
            course.save(tmp_path / name, "student", {"sub/a.txt": b"a"})
        assert (tmp_path / ".course.part" / "known.txt").read_text() == "known"
        assert {path.name for path in tmp_path.iterdir()} == {".course.part", ".other.part", "course", "other"}

    @pytest.mark.parametrize("name", ["../known.txt", "{0}/known.txt", "sub/../../known.txt", "sub/known.txt", "", "."])
    def test_no_name_leads_out_of_the_folder(self, name, tmp_path):
        """Of a file that was made before: by its path, or through a link."""
        folder, known = tmp_path / "course", tmp_path / "known.txt"
        known.write_text("known")
        course.save(folder, "student", {"a.txt": b"a"})
        (folder / "sub").symlink_to(tmp_path)
        record = json.loads((folder / course.MADE).read_text())
        record["files"][name.format(tmp_path)] = hashlib.sha256(b"known").hexdigest()
        (folder / course.MADE).write_text(json.dumps(record))
        before = whole(folder)
        with pytest.raises(FileExistsError, match=r"^folder=.*: expected (files in it, not|no link at sub)"):
            course.save(folder, "student", {"a.txt": b"new"})
        assert known.read_text() == "known"
        assert whole(folder) == before

    def test_nothing_is_written_through_a_link(self, tmp_path):
        """The folder of a notebook, or a file, was replaced by one."""
        folder, mine = tmp_path / "course", tmp_path / "mine"
        mine.mkdir()
        (mine / "a.txt").write_text("mine")
        for name, target in (("sub", mine), ("a.txt", mine / "a.txt")):
            course.save(folder, "student", {"b.txt": b"b"})
            (folder / name).symlink_to(target)
            with pytest.raises(FileExistsError, match=f"expected no link at {name}, where a file is written"):
                course.save(folder, "student", {"b.txt": b"b", f"{name}/a.txt" if name == "sub" else name: b"a"})
            shutil.rmtree(folder)
        assert [path.read_text() for path in mine.iterdir()] == ["mine"]

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="has no folder in which none can be made")
    @pytest.mark.parametrize("kind", ["student", "instructor", "slides"])
    def test_a_folder_that_cannot_be_made_is_said_before_any_work(self, kind, monkeypatch, capsys):
        monkeypatch.setattr(course, "committed_notebooks", lambda chosen=(): pytest.fail("work was begun"))
        assert cli.main(["course", f"--{kind}", "/proc/x"]) == 2
        said = "fedtheory: folder='/proc/x': expected a folder that can be made (no such file or directory). Fix: "
        assert capsys.readouterr().err.startswith(said)

    @pytest.mark.parametrize("words", [["--student"], ["--instructor"], ["--slides"]])
    def test_refused(self, tmp_path, capsys, words):
        """A folder with other things, one of another kind, one with a changed file, a file: in one line each."""
        folders = {name: tmp_path / name for name in ("other", "kind", "changed", "file", "broken")}
        (folders["other"] / "sub").mkdir(parents=True)
        course.save(folders["kind"], "another kind", {"a.txt": b"a"})
        course.save(folders["changed"], words[0][2:], {"a.txt": b"a"})
        (folders["changed"] / "a.txt").write_bytes(b"mine")
        folders["file"].write_text("x")
        folders["broken"].mkdir()
        (folders["broken"] / course.MADE).write_text("[")
        for folder in folders.values():
            before = whole(folder)
            assert cli.main(["course", *words, str(folder)]) == 2
            said = capsys.readouterr().err
            assert said.startswith("fedtheory: folder=")
            assert "Fix: " in said
            assert len(said.splitlines()) == 1
            assert whole(folder) == before
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "course='none': expected one of --student, --instructor, --slides"),
            (["05"], "course='none': expected one of --student, --instructor, --slides"),
            (["--student"], "--student: expected a value behind it"),
            (["--student", "{0}/a", "--instructor", "{0}/b"], "course='--student, --instructor': expected one of"),
            (["--student", "{0}/a", "99"], "notebooks='99': expected the beginning of a notebook's name"),
            (["--instructor", "{0}/a", "05", ""], "notebooks='': expected the beginning of a notebook's name"),
            (["--student", ""], "folder='': expected a path"),
            (["--exam", "{0}/a", "05"], "notebooks='05': expected --student, --instructor, --slides or --handouts"),
            (["--exam", "{0}/a", "--colab", "http://x"], "colab='http://x': expected --student or --instructor"),
            (["--student", "{0}/a", "--seed", "0"], "seed=0: expected --exam"),
            (["--instructor", "{0}/a", "--questions", "3"], "questions=3: expected --exam"),
            (["--slides", "{0}/a", "--extra", "llm"], "extra='llm': expected --wheels"),
            (["--student", "{0}/file/sub/course", "05"], "expected a folder that can be made (not a directory)"),
            (
                ["--instructor", "{0}/" + 300 * "n", "05"],
                "expected a folder that can be looked into (file name too long)",
            ),
        ],
    )
    def test_bad_words(self, tmp_path, capsys, words, said):
        """One line that names what was wrong, and nothing is left of the attempt."""
        (tmp_path / "file").write_text("x")
        try:
            code = cli.main(["course", *(word.format(tmp_path) for word in words)])
        except SystemExit as stop:  # of words that are not understood
            code = stop.code
        printed = capsys.readouterr()
        assert (code, printed.out) == (2, "")
        assert printed.err.startswith("fedtheory: ")
        assert said in printed.err
        assert ". Fix: " in printed.err
        assert len(printed.err.splitlines()) == 1
        assert whole(tmp_path) == {"file": b"x"}

    def test_nothing_half_written(self, tmp_path, monkeypatch):
        """An error in a notebook, and one while writing."""

        def broken(*_):
            raise OSError("full")

        with monkeypatch.context() as patch:
            patch.setattr(course, "instructor", broken)
            assert cli.main(["course", "--instructor", str(tmp_path / "course"), FIRST]) == 2
        with monkeypatch.context() as patch:
            patch.setattr(course, "write_atomic", broken)
            assert cli.main(["course", "--student", str(tmp_path / "course"), FIRST]) == 2
        assert list(tmp_path.iterdir()) == []

    def test_an_update_that_broke_off_goes_on(self, tmp_path, monkeypatch):
        """Its files are half of the old ones and half of the new: nobody else has changed them."""
        folder, write = tmp_path / "course", course.write_atomic
        old, new = ({name: f"{name} {time}".encode() for name in "abc"} for time in ("old", "new"))
        course.save(folder, "student", old)

        def stops(path, content):
            if path.name == "b":
                raise KeyboardInterrupt
            write(path, content)

        with monkeypatch.context() as patch:
            patch.setattr(course, "write_atomic", stops)
            with pytest.raises(KeyboardInterrupt):
                course.save(folder, "student", new)
        course.save(folder, "student", new)
        assert {name: (folder / name).read_bytes() for name in "abc"} == new
        (folder / "a").write_bytes(b"mine")
        with pytest.raises(FileExistsError, match="a as it was made"):
            course.save(folder, "student", old)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--student", "{}", "77"], "notebooks='77': expected the beginning of a notebook's name"),
            (["--student", "{}", "--instructor", "{}"], "--student, --instructor: expected one of"),
            ([], "course='none'"),
        ],
    )
    def test_words(self, tmp_path, capsys, words, said):
        assert cli.main(["course", *(word.format(tmp_path / "x") for word in words)]) == 2
        assert said.split(": ")[0] in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_without_notebooks(self, tmp_path, monkeypatch, capsys):
        """As where the package was installed and not cloned."""
        monkeypatch.setenv("FEDTHEORY_ROOT", str(tmp_path))
        assert cli.main(["course", "--student", str(tmp_path / "x")]) == 2
        said = capsys.readouterr().err
        assert "expected the committed notebooks. Fix: run the command in a clone" in said
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("ann_05_fedmud.ipynb", ("ann", "05_fedmud")),
        ("12345_05_fedmud.ipynb", ("12345", "05_fedmud")),
        ("Ann Lee_7_file_05_fedmud.ipynb", ("Ann Lee_7_file", "05_fedmud")),
        ("ann/05_fedmud.ipynb", ("ann", "05_fedmud")),
        ("ann/05_fedmud/05_fedmud.ipynb", ("ann", "05_fedmud")),
        (r"ann\05_fedmud.ipynb", ("ann", "05_fedmud")),
        ("ann_homework.ipynb", None),
        ("05_fedmud.ipynb", None),
        ("__MACOSX/ann/._05_fedmud.ipynb", None),
        ("__MACOSX/05_fedmud/._05_fedmud.ipynb", None),
        ("ann/.ipynb_checkpoints/05_fedmud-checkpoint.ipynb", None),
    ],
)
def test_whose_notebook_is_collected(path, found):
    match = re.match(course.HANDED_IN, f"/class/downloaded/05_fedmud/extracted/{path}")
    assert (match and (match["student_id"], match["file_id"])) == found


# The round trip, with nbgrader itself.

RIGHT, WRONG = "right", "wrong"
GRADES = """
import json, sys
from nbgrader.api import Gradebook
name, words = sys.argv[1], json.loads(sys.argv[2])
with Gradebook("sqlite:///gradebook.db") as book:
    for (student, id), score in [((*key.split("/"),), score) for key, score in words.items()]:
        grade = book.find_grade(id, name, name, student)
        grade.manual_score, grade.needs_manual_grade = score, False
    book.db.commit()
    found = {}
    for one in book.assignment_submissions(name):
        grades = [grade for notebook in one.notebooks for grade in notebook.grades]
        found[one.student.id] = {grade.name: [grade.auto_score, grade.max_score, grade.score] for grade in grades}
    print(json.dumps(found))
"""


def command(folder: Path, *words: str) -> str:
    """nbgrader in a course's folder; what it prints."""
    bin = Path(sys.executable).parent
    env = os.environ | {
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run([str(bin / words[0]), *words[1:]], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def submit(made: Path, target: Path, answers: dict[str, str | None]) -> None:
    """A student's notebook, with answers by the cells' ids; None deletes the cell."""
    notebook = json.loads(made.read_text())
    for one in notebook["cells"]:
        one["source"] = answers.get(one["id"], one["source"])
    notebook["cells"] = [one for one in notebook["cells"] if one["source"] is not None]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(notebook))


@pytest.mark.skipif(importlib.util.find_spec("nbgrader") is None, reason="needs nbgrader: make course-check")
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name, tmp_path):
    """nbgrader makes the assignment, grades right, wrong and no answers, and says what a wrong one reveals."""
    number = name[:2]
    students, teacher = tmp_path / "students", tmp_path / "teacher"
    course.course("student", students, [name])
    course.course("instructor", teacher, [name])
    command(teacher, "nbgrader", "generate_assignment", name)
    release = json.loads((teacher / "release" / name / f"{name}.ipynb").read_text())["cells"]
    ours = json.loads((students / name / f"{name}.ipynb").read_text())["cells"]
    assert ["".join(one["source"]) for one in release] == [one["source"] for one in ours]
    assert set(graded(release)) == set(graded(ours))
    asked = [one for one in course.read(course.cells_of(ROOT / "notebooks" / f"{name}.ipynb"), number)]
    asked = [one for one in asked if isinstance(one, course.Asked)]
    coded = [one for one in asked if one.test]
    right = {f"{one.id}-answer": course.SOLUTION.findall(one.folded["source"])[0] for one in coded}
    firsts = {one.name: next(iter(one.exercise.wrong.items())) for one in coded}
    wrong = {f"{one.id}-answer": f"answer = {firsts[one.name][0]}" for one in coded}
    words = {f"{one.id}-words": "Since it is so." for one in asked if not one.test}
    handed_in = {RIGHT: right | words, WRONG: wrong}
    for student, answers in handed_in.items():
        target = teacher / "submitted" / student / name / f"{name}.ipynb"
        submit(students / name / f"{name}.ipynb", target, answers)
    command(teacher, "nbgrader", "autograde", name)
    manual = {f"{RIGHT}/{id}": 1 for id in words}
    grades = json.loads(command(teacher, "python", "-c", GRADES, name, json.dumps(manual)))
    for one in asked:
        id = f"{one.id}-test" if one.test else f"{one.id}-words"
        points = one.exercise.points
        assert grades[RIGHT][id] == ([points, points, points] if one.test else [None, points, 1]), one.name
        assert grades[WRONG][id] == [0, points, 0], one.name
    assert len(grades[RIGHT]) == len(asked)
    run = json.loads((teacher / "autograded" / RIGHT / name / f"{name}.ipynb").read_text())["cells"]
    assert [one["source"] for one in run for out in one.get("outputs", []) if out["output_type"] == "error"] == []
    command(teacher, "nbgrader", "generate_feedback", name)
    page = (teacher / "feedback" / WRONG / name / f"{name}.html").read_text()
    page = " ".join(
        re.sub(r"<[^>]+>", "", page).replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">").split()
    )
    assert [word for _, word in firsts.values() if " ".join(word.split()) not in page] == []


@pytest.mark.skipif(importlib.util.find_spec("nbgrader") is None, reason="needs nbgrader: make course-check")
def test_a_class_of_five(tmp_path):
    """As teach.md says: five submissions, their grades and feedback, and what the report makes of them."""
    name, teacher = "01_subspaces", tmp_path / "class"
    assert cli.main(["course", "--instructor", str(teacher), name]) == 0
    command(teacher, "nbgrader", "generate_assignment", name)
    asked = course.read(course.cells_of(ROOT / "notebooks" / f"{name}.ipynb"), "01")
    coded = [one for one in asked if isinstance(one, course.Asked) and one.test]
    right = {f"{one.id}-answer": course.SOLUTION.findall(one.folded["source"])[0] for one in coded}
    wrong = {f"{one.id}-answer": f"answer = {next(iter(one.exercise.wrong))}" for one in coded}
    first, *others = (one.id for one in coded)
    cheat = {f"{first}-test": "print('Exercise 1: right.')"} | {f"{id}-test": None for id in others}
    students = {
        "right": right,
        "wrong": wrong,
        "crash": right | {f"{others[0]}-answer": "answer = 1 / 0"},
        "cheat": wrong | cheat | {f"{others[-1]}-answer": None},
    }
    release, archive = teacher / "release" / name / f"{name}.ipynb", teacher / "downloaded" / name / "archive"
    for student, answers in students.items():
        submit(release, archive / f"{student}_{name}.ipynb", answers)
    with zipfile.ZipFile(archive / "empty.zip", "w") as pack:
        pack.write(release, release.name)
    command(teacher, "nbgrader", "zip_collect", name)
    command(teacher, "nbgrader", "autograde", name)
    grades = json.loads(command(teacher, "python", "-c", GRADES, name, "{}"))
    scores = {student: [grades[student][f"{one.id}-test"][0] for one in coded] for student in grades}
    points = [one.exercise.points for one in coded]
    stopped, nothing = [points[0], 0, *points[2:]], [0] * len(points)
    assert scores == {"right": points, "crash": stopped} | dict.fromkeys(("wrong", "empty", "cheat"), nothing)
    command(teacher, "nbgrader", "generate_feedback", name)
    pages = {student: (teacher / "feedback" / student / name / f"{name}.html").read_text() for student in scores}
    assert [student for student, page in pages.items() if "ZeroDivisionError" in page] == ["crash"]
    assert [student for student, page in pages.items() if "It was added for grading" in page] == ["cheat"]
    assert cli.main(["course", "--report", str(teacher / "autograded")]) == 0
    table = (teacher / "report" / "answers.csv").read_text().splitlines()
    assert table[:3] == ["exercise,right,wrong,empty,stopped", "01.1,2,2,1,0", "01.2,1,2,1,1"]
    assert table[-1] == f"{coded[-1].name},2,1,2,0"


@pytest.mark.skipif(importlib.util.find_spec("nbgrader") is None, reason="needs nbgrader: make course-check")
def test_without_the_configuration_nothing_is_handed_out(tmp_path):
    """A source that was moved into another course: nbgrader stops at the first note."""
    course.course("instructor", tmp_path / "course", [FIRST])
    (tmp_path / "course" / "nbgrader_config.py").unlink()
    with pytest.raises(AssertionError, match="Solution region detected in a non-solution cell"):
        command(tmp_path / "course", "nbgrader", "generate_assignment", FIRST)
    assert not (tmp_path / "course" / "release" / FIRST / f"{FIRST}.ipynb").exists()


# Slides.

MEASURE = r"""(async () => {
  const wrong = [];
  for (const slide of Reveal.getSlides()) {
    const { h, v } = Reveal.getIndices(slide);
    Reveal.slide(h, v);
    await new Promise((done) => setTimeout(done, 30));
    const name = `slide ${h + 1}.${v + 1}`, page = slide.querySelector(".page");
    const end = page.getBoundingClientRect().right + 1;
    if (page.scrollHeight > page.clientHeight + 1) wrong.push(`${name}: too high`);
    for (const text of page.querySelectorAll(".printed pre"))
      if (text.scrollWidth > text.clientWidth) wrong.push(`${name}: a printed line is cut`);
    for (const part of page.querySelectorAll("*"))
      if (!part.closest("details, svg, mjx-assistive-mml") && part.getBoundingClientRect().right > end)
        wrong.push(`${name}: ${part.tagName} too wide`);
    for (const image of page.querySelectorAll("img"))
      if (!image.naturalWidth || image.clientHeight < 300) wrong.push(`${name}: no picture, or a small one`);
    if (/\$[^$\s][^$]*\$|\\(frac|sum|mathbb)/.test(slide.innerText)) wrong.push(`${name}: raw TeX`);
    if (!slide.querySelector("aside.notes")) wrong.push(`${name}: no notes`);
  }
  return wrong;
})()"""
WAIT = r"""new Promise((done) => {
  const look = () => (window.Reveal?.isReady() ? done(true) : setTimeout(look, 50));
  look();
})"""


def installed(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


def packaged() -> bool:
    return {"sphinx-revealjs", "sphinx-mathjax-offline"} <= {
        str(one.metadata["Name"]).replace("_", "-") for one in importlib.metadata.distributions()
    }


def slides_of(cells, skipped=()) -> list[slides.Slide]:
    return list(slides.paged(cells, skipped))


def picture(wide: int, high: int) -> dict:
    """A cell that shows a picture of this size: the head of a PNG has it."""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + wide.to_bytes(4, "big") + high.to_bytes(4, "big")
    data = {"image/png": base64.b64encode(head).decode(), "text/plain": ""}
    return cell("code", "show(figure)", outputs=[{"data": data}])


PICTURE = picture(1260, 468)


def text_of(pages) -> str:
    return "\n\n".join(block.text for page in pages for block in page.blocks)


def _pictures(cells) -> int:
    """Pictures of the sections that are not left out."""
    section, found = "", 0
    for one in cells:
        if one["cell_type"] == "markdown":
            section = ["", section, *re.findall(r"^##?#? (.*)$", one["source"], re.M)][-1].lower()
        elif not section.startswith(slides.LEFT_OUT):
            found += sum("image/png" in out.get("data", {}) for out in one["outputs"])
    return found


def _only_parts(cells, heading: str) -> bool:
    """Whether a section has nothing before its first part, so that the part begins the slides."""
    text = "\n\n".join(one["source"] if one["cell_type"] == "markdown" else "code" for one in cells)
    return re.search(rf"^## {re.escape(heading)}( \*)?\n+###", text, re.M) is not None


class TestSlides:
    @pytest.mark.parametrize("lecture", slides.LECTURES)
    def test_what_is_on_them(self, lecture):
        """All sections but those left out, all pictures, no exercise, no solution; a question ends its slide."""
        (path,) = course.committed_notebooks([lecture])
        cells = course.cells_of(path)
        pages = slides_of(cells)
        text = text_of(pages)
        assert not re.search(r"Exercise \d|Solution|answer = ", text)
        assert text.count("data:image/png;base64,") == _pictures(cells) > 1
        for page in pages:
            assert [block.kind for block in page.blocks[:-1]].count("ask") == 0
            assert sum(block.kind == "picture" for block in page.blocks) <= 1
            assert sum(block.height for block in page.blocks) <= slides.ROOM or len(page.blocks) == 1
            assert page.notes or any(block.seen for block in page.blocks)
        headings = [
            h.removesuffix(" *")
            for one in cells
            if one["cell_type"] == "markdown"
            for h in re.findall(r"^## (.*)$", one["source"], re.M)
        ]
        kept = [h for h in headings if not h.lower().startswith(slides.LEFT_OUT)]
        shown = [page.heading for page in pages if page.level == 2 and not page.goes_on]
        assert [h for h in kept if h not in shown] == [h for h in kept if _only_parts(cells, h)]

    @pytest.mark.parametrize("lecture", slides.LECTURES)
    def test_no_sentence_is_cut(self, lecture):
        """The point of a paragraph is made of whole sentences of it, in their order; the notes have them all."""
        (path,) = course.committed_notebooks([lecture])
        for page in slides_of(course.cells_of(path)):
            for block in page.blocks:
                if block.kind not in ("text", "formula") or not block.said or block.text.startswith(">"):
                    continue
                whole, shown = slides.sentences(block.said), slides.sentences(block.text)
                assert shown == [one for one in whole if one in shown]
                end = re.sub(r"[$*)\"\s]+$", "", shown[-1])
                assert end.endswith((".", ":", "?", "!")) or shown[-1] == whole[-1], shown[-1]

    def test_what_is_read_at_home_is_a_section(self):
        for number, names in slides.SKIPPED.items():
            (path,) = course.committed_notebooks([number])
            text = "\n".join(one["source"] for one in course.cells_of(path) if one["cell_type"] == "markdown")
            headings = [h.lower() for h in re.findall(r"^##+ (.*)$", text, re.M)]
            assert [name for name in names if not any(h.startswith(name) for h in headings)] == []

    def test_sentences(self):
        text = (
            "**Two.** It is $F(x). $ here, by (8). So\n\n$$a = b .$$\n\nWith `x. Y` it ends. *Why?* (At $x$. So.) Thus."
        )
        assert slides.sentences(text) == [
            "**Two.**",
            "It is $F(x). $ here, by (8).",
            "So\n\n$$a = b .$$",
            "With `x. Y` it ends.",
            "*Why?*",
            "(At $x$. So.)",
            "Thus.",
        ]

    def test_the_point(self):
        """Short sentences that follow each other, then those that define a term or have a formula."""
        long = "This sentence " + "goes on and " * 12 + "ends."
        short = "No. It does not stay where it was before."
        assert slides.point(f"{short} {long} Short again.") == short
        assert slides.point(f"**Fact 1.** {long} Short.") == f"**Fact 1.** {long}"
        assert slides.point(f"First. {long} Short. {long} That is **drift**.") == f"First. {long} That is **drift**."
        assert slides.point(f"(Aside.) The next cell waits. {short}") == short
        ends = "That is **drift**. So\n\n$$a .$$"
        assert slides.point(f"{short} {long} {ends}") == f"{short} {ends}"

    def test_more_is_said_where_there_is_room(self):
        """A paragraph alone shows more of its sentences; beside a picture its point."""
        text = "It is short and has a point, as a paragraph should have. " + "So it goes on and on, for a while. " * 5
        (alone,) = slides_of([cell("markdown", f"# T\n\n{text}")])
        assert alone.blocks[0].text == text.strip()
        (_, beside) = slides_of([cell("markdown", f"# T\n\n{text}\n\n- seen"), PICTURE])[0].blocks
        assert beside.kind == "list"
        seen = slides_of([cell("markdown", f"# T\n\n{text}"), PICTURE])[0].blocks
        assert [block.kind for block in seen] == ["text", "picture"]
        assert len(seen[0].text) <= slides.POINT

    def test_an_aside_is_in_the_notes(self):
        (page,) = slides_of([cell("markdown", "# T\n\nShown.\n\n(Not shown.)\n\nThe next cell prints it.")])
        assert [block.text for block in page.blocks] == ["Shown."]
        assert page.notes == "Shown.\n\n(Not shown.)\n\nThe next cell prints it."

    def test_a_question_stands_below_its_formula_and_not_below_an_answer(self):
        asked = "> **Predict.** Why?"
        assert len(slides_of([cell("markdown", f"# T\n\n$$a$$\n\n{asked}")])) == 1
        assert len(slides_of([cell("markdown", "# T"), cell("code", "x = 1"), cell("markdown", asked)])) == 2

    def test_a_key_hides_no_output(self):
        """`fold("...")` is for the notes alone; `key.fold("...")` draws."""
        assert "42" in text_of(slides_of([cell("markdown", "# T"), cell("code", 'print(key.fold("x"))')]))
        assert "42" not in text_of(slides_of([cell("markdown", "# T"), cell("code", 'fold("x")')]))

    def test_a_high_picture_stands_beside_its_text(self):
        sizes = {(630, 780): True, (630, 468): False, (1890, 972): False}
        for size, tall in sizes.items():
            (page,) = slides_of([cell("markdown", "# T"), picture(*size)])
            assert page.blocks[0].tall == tall

    def test_no_line_breaks_between_a_formula_and_its_stop(self):
        pytest.importorskip("nbconvert")
        made = slides.html("So ($x$), and `$y$`, is\n\n$$z .$$")
        assert "<span class='one'>($x$),</span>" in made
        assert made.count("class='one'") == 1

    def test_pieces_are_even(self):
        assert slides._even([1] * 7, 6) == [[0, 1, 2, 3], [4, 5, 6]]
        assert slides._even([9, 1, 1], 4) == [[0], [1, 2]]

    def test_minutes(self):
        """120 words a minute, a minute for what is looked at, two for a question; in steps of five."""
        cells = [cell("markdown", f"# T\n\n{'word ' * 1199}end.\n\n> **Predict.** Why?\n\n$$a$$")]
        assert slides.minutes(slides_of(cells)) == 15
        assert slides.minutes([]) == 5

    def test_long_things_are_cut(self):
        """A listing and a list that fill several slides; a long table is left out."""
        items = "\n".join(f"- item {i}" for i in range(40))
        rows = "".join(f"<tr><td>{i}</td></tr>" for i in range(slides.ROWS + 1))
        cells = [cell("markdown", f"# T\n\n## Long\n\n{items}\n\n```\n" + "line\n" * 50 + "```"), cell("code", "x = 1")]
        cells[1]["outputs"] = [{"data": {"text/html": f"<table>{rows}</table>", "text/plain": ""}}]
        pages = slides_of(cells)
        assert len(pages) > 4
        assert text_of(pages).count("line") == 50
        assert max(len(page.blocks) for page in pages) == 1
        assert re.findall(r"- item \d+", text_of(pages)) == items.splitlines()
        assert "<td>" not in text_of(pages)

    @pytest.mark.skipif(installed("nbconvert") and packaged(), reason="all is installed")
    def test_what_is_missing_is_said(self, tmp_path, capsys):
        assert cli.main(["course", "--slides", str(tmp_path / "slides")]) == 2
        assert "Fix: pip install 'fedtheory[teach]'" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(not (installed("nbconvert", "websocket") and packaged()), reason="needs make course-check")
    def test_they_fit(self, tmp_path, monkeypatch):
        """In a browser without a network: nothing is cut off, no picture is missing, every formula is set."""
        monkeypatch.syspath_prepend(str(ROOT / "docs" / "book"))
        browser = pytest.importorskip("browser")
        try:
            browser.find()
        except SystemExit as missing:
            pytest.skip(str(missing))
        decks = slides.save(tmp_path / "slides")
        assert [deck.name[:2] for deck in decks] == list(slides.LECTURES)
        with browser.Browser(width=slides.SIZE[0], height=slides.SIZE[1]) as tab:
            for deck in decks:
                tab.open((tmp_path / "slides" / f"{deck.name}.html").as_uri())
                tab.ask(WAIT)
                assert tab.ask(MEASURE) == []
                assert tab.errors == []
                assert tab.ask("Reveal.getTotalSlides()") == deck.slides
                assert tab.ask("Reveal.hasPlugin('notes')")

    @pytest.mark.skipif(not (installed("nbconvert") and packaged()), reason="needs make course-check")
    def test_handouts(self, tmp_path):
        """A page has the slides' text and the exercises without their solutions; a browser prints it."""
        page = handouts.page(course.committed_notebooks(["00"])[0])
        asked = len(exercises("00"))
        assert page.count("<section class='exercise'>") == asked
        assert "Solution" not in page
        assert page.count("data:image/png") > 3
        try:
            handouts.browser()
        except FileNotFoundError as missing:
            pytest.skip(str(missing))
        assert cli.main(["course", "--handouts", str(tmp_path / "made"), "00"]) == 0
        assert (tmp_path / "made" / "00_tour.pdf").read_bytes().startswith(b"%PDF-")

    def test_without_a_browser(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("BROWSER", "no-such-browser")
        assert cli.main(["course", "--handouts", str(tmp_path / "made"), "00"]) == 2
        said = capsys.readouterr().err
        assert said.startswith("fedtheory: browser='no-such-browser': expected one of chromium")
        assert len(said.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []
