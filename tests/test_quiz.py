"""The course's papers: the quiz and its places in the notebooks, minutes by the rule, the projects' solutions.

That the pages are sound for Sphinx is `make book`.
"""

import importlib.util
import re
from pathlib import Path

import course_pages
import nbformat
import pace
import pytest
import torch
from test_book import ascii_left

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "docs" / "book" / "course"
SUBJECTS = {  # what the quiz must ask about: words of a question or its answer
    "FLSS's bound, and what R does to it": r"larger \$R\$ do",
    "m in DeComFL": r"more clients \(the paper's \$m\$\)",
    "reverting": r"put its model back",
    "replaying": r"replay",
    "FedMUD's Lemma 1": r"Lemma 1",
    "12 K^3 in SSF's Lemma 2": r"\$12K\^3\$",
    "FedSub's NaN": r"FedSub end in NaN",
    "AAD": r"what does AAD buy",
    "Kronecker blocks": r"Kronecker blocks not more information",
    "coverage": r"seen all coordinates",
    "control variates": r"control variate",
    "bytes and seeds": r"charged as eight bytes",
    "tuning and equal budgets": r"same tuning budget",
    "intervals paired by seed": r"intervals paired by seed",
    'what "contradicted" needs': r'"contradicted" need',
}


def faults(text: str) -> list[str]:
    """What is wrong with a quiz's source."""
    asked = course_pages.questions(text)
    found = [] if len(asked) == 60 else [f"{len(asked)} questions, not 60"]
    same = lambda one: re.sub(r"\W+", " ", one).lower().strip()
    seen: set[str] = set()
    for one in asked:
        name = f"{one.text!r}"
        if same(one.text) in seen:
            found.append(f"{name} is asked twice")
        seen.add(same(one.text))
        places = course_pages.places(one.quote)
        if [place.stem[:2] for place in places] != [one.notebook]:
            stand = ", ".join(f"{place.stem} cell {place.cell}" for place in places) or "nowhere"
            found.append(f"{name}: {one.quote!r} should stand in one cell of notebook {one.notebook}, stands: {stand}")
        elif not places[0].heading:
            found.append(f"{name}: no heading above {one.quote!r}")
        sentences = len(re.findall(r"[.?!](?=\s|$)", re.sub(r"\$[^$]*\$", "x", one.answer.replace("\n", " "))))
        if not 2 <= sentences <= 5:
            found.append(f"{name}: {sentences} sentences")
        if not one.text.startswith("Why ") or not one.text.endswith("?"):
            found.append(f"{name} is no why-question")
        words = f"{one.text}\n{one.answer}"
        if ascii_left(words) or words.count("$") % 2 or "$$" in words:
            found.append(f"{name}: ASCII mathematics or an open dollar {ascii_left(words)}")
    text = " ".join(text.split())
    return found + [f"nothing on {what}" for what, pattern in SUBJECTS.items() if not re.search(pattern, text)]


@pytest.fixture(scope="module")
def text() -> str:
    return course_pages.QUESTIONS.read_text()


def test_the_quiz_is_whole(text):
    """60 questions, none twice, each with an answer and a place that exists."""
    assert faults(text) == []
    assert {one.level for one in course_pages.questions(text)} == {1, 2, 3}
    assert {one.notebook for one in course_pages.questions(text)} >= {f"{number:02}" for number in (*range(11), 11)}


def test_a_broken_quiz_is_seen(text):
    first, second = course_pages.questions(text)[:2]
    assert any("stands: nowhere" in one for one in faults(text.replace(first.quote, f"{first.quote} indeed")))
    assert any("stands: 00" in one for one in faults(text.replace(f"00 | {first.quote}", f"01 | {first.quote}")))
    assert any("stands: " in one for one in faults(text.replace(first.quote, "key = start")))
    assert any("asked twice" in one for one in faults(text.replace(second.text, first.text)))
    assert any("59 questions" in one for one in faults(re.sub(r"(?s)### .*?(?=### )", "", text, count=1)))
    assert any("ASCII" in one for one in faults(text.replace(first.answer, "Since x_i^2 <= 1. So it is.")))
    assert any("1 sentences" in one for one in faults(text.replace(first.answer, "Because it is so.")))
    assert any("nothing on replaying" in one for one in faults(text.replace("replay", "repeat")))
    with pytest.raises(ValueError, match="has not the form"):
        course_pages.questions(text.replace("1 | 00 |", "00 |", 1))


def test_answers_are_folded_and_lead_to_their_cells(text, tmp_path):
    stage = course_pages.Stage(tmp_path)
    for path in course_pages.NOTEBOOKS:
        stage.copy(path, f"notebooks/{path.name}")
    page = course_pages.quiz(text, stage)
    assert page.count("<details>") == page.count("</details>") == page.count("*Taught in*") == 60
    outside = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert not any(one.answer in outside for one in course_pages.questions(text))
    assert page.count(".ipynb#") == 60
    assert course_pages.anchor("4. Seeing all of $\\mathbb{R}^m$") == "4-seeing-all-of-"
    assert course_pages.anchor("2.4 The price: variance, and *") == "24-the-price-variance-and-"


CELLS = [
    nbformat.v4.new_markdown_cell("# A title\n\n**Needs:** notebooks 01 to 03, 05.\n\n## Prerequisites\nNotebook 04."),
    nbformat.v4.new_markdown_cell("## 1. First *\none two $x_i$ three $x_i = 1$\n\n$$a\n= b$$\n\n```\nbox\n```"),
    nbformat.v4.new_code_cell("# a comment\n\nx = 1\ny = 2"),
    nbformat.v4.new_markdown_cell("### 1.1 Below\nfour\n\n<details>\n<summary>S</summary>\nhidden words\n\n</details>"),
    nbformat.v4.new_code_cell("# Picture: of it\nz = 3", metadata={"tags": ["hide-input"]}),
    nbformat.v4.new_markdown_cell("## 2. Second\nfive six"),
]


def test_minutes_follow_the_rule(tmp_path):
    """Words, open lines, formulas on lines of their own; solutions and folded code are not counted."""
    path = tmp_path / "09_made.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=CELLS), path)
    found = pace.pace(path)
    assert found.core == pace.Count(words=2 + 5 + 3, lines=3, formulas=1, displays=1)
    assert {name: part.words for name, part in found.sections.items()} == {"": 8, "Prerequisites": 3, "1": 10, "2": 4}
    assert found.needs == ("01", "02", "03", "05")
    assert pace.Count(words=1300, lines=120, formulas=10, displays=5).minutes(4) == 55
    assert pace.Count().minutes() == 5


def test_notebooks_state_the_minutes_of_the_rule():
    """Exactly: python docs/book/_ext/pace.py --write brings them up to date."""
    found = [one for one in pace.notebooks() if one.said != (one.core.minutes(), one.whole.minutes(one.points))]
    assert [one.stem for one in found] == []
    assert pace.said("**Time:** core sections (*) 1, about 40\nminutes; all of it about 80. It runs") == (40, 80)
    assert pace.said("no time") is None


def test_minutes_are_written_into_a_notebook_and_its_source(tmp_path, monkeypatch):
    """Nothing else changes: outputs, other cells, the manifest."""
    for end in (".py", ".ipynb"):
        text = (pace.FOLDER / f"14_your_experiment{end}").read_text()
        (tmp_path / f"14_your_experiment{end}").write_text(re.sub(r"(exercises about )\d+", r"\g<1>999", text))
    monkeypatch.setattr(pace, "FOLDER", tmp_path)
    (one,) = pace.notebooks()
    assert pace.write(one)
    for end in (".py", ".ipynb"):
        assert (tmp_path / f"14_your_experiment{end}").read_bytes() == (
            ROOT / "notebooks" / f"14_your_experiment{end}"
        ).read_bytes()
    assert not pace.write(pace.notebooks()[0])


def planned(title: str, text: str) -> list[tuple[list[tuple[str, str]], int]]:
    """The rows of a plan: (notebook, what of it) each, and the minutes that stand there."""
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    at, run = (
        rows[0].index("minutes"),
        next(rows[0].index(name) for name in ("run", "read and run", "step") if name in rows[0]),
    )
    found = []
    for row in rows[2:]:
        cell = re.sub(r"\[Notebook (\d\d)\]\([^)]*\)", r"\1", row[run])
        found.append((re.findall(r"(?:^|; )(\d\d)(?:, ([^;]*))?", cell), int(row[at] or 0)))
    return found


def plan_faults(text: str) -> list[str]:
    """Minutes that are not the rule's, notebooks before those that they need, totals beside what is said of them."""
    needs = {one.stem[:2]: set(one.needs) for one in pace.notebooks()}
    found, total = [], {}
    for title in ("One afternoon", "One week", "One semester"):
        read: set[str] = set()
        for parts, minutes in planned(title, text):
            for number, _ in parts:
                read |= {number}
                found += (
                    [f"{title}: {number} before {', '.join(sorted(needs[number] - read))}"]
                    if needs[number] - read
                    else []
                )
            counted = sum(pace.minutes(number, what) for number, what in parts)
            if parts and counted != minutes:
                found.append(f"{title}: {parts} takes {counted}, not {minutes}")
            if title == "One semester" and counted > 90:
                found.append(f"{title}: {parts} does not fit into a laboratory")
            if title == "One week" and counted > 270:
                found.append(f"{title}: {parts} does not fit into a day")
            total[title] = total.get(title, 0) + minutes
    return found + ([] if 165 <= total["One afternoon"] <= 195 else [f"the afternoon takes {total['One afternoon']}"])


def test_the_plan_obeys_itself():
    text = course_pages.PLAN.read_text()
    assert plan_faults(text) == []
    assert any(
        "08 before" in one
        for one in plan_faults(
            text.replace(
                "| [Notebook 07](../notebooks/07_decomfl.ipynb), core | 60", "| [Notebook 08](../x), core | 20"
            )
        )
    )
    assert any("takes 75, not 70" in one for one in plan_faults(text.replace("05, core | 75", "05, core | 70")))
    assert any("a laboratory" in one for one in plan_faults(text.replace("05, core | 75", "05 | 110")))


def test_numbers_of_a_list():
    assert pace.numbers("sections 1, 2 and 4") == ["1", "2", "4"]
    assert pace.numbers("sections 7 to 10") == ["7", "8", "9", "10"]
    assert pace.minutes("00", "with exercise 1") - pace.minutes("00") in (5, 10)


def test_needs_are_drawn_without_what_follows():
    assert pace.reduced({"00": (), "01": ("00",), "02": ("00", "01")}) == {"00": (), "01": ("00",), "02": ("01",)}


def test_the_plan_has_every_notebook():
    """Minutes, needs and points are made from the notebooks; the seconds were measured once, for all of them."""
    found = {one.stem for one in pace.notebooks()}
    assert len(course_pages.minutes()) == len(course_pages.wanted()) == len(found) + 2
    assert set(pace.seconds()) >= found
    assert course_pages.picture().startswith(b"\x89PNG")
    for one in pace.notebooks():
        assert one.stem[:2] == "00" or one.needs, one.stem
    made = set(re.findall(r"^\{\{(\w+)\}\}$", course_pages.PLAN.read_text(), re.MULTILINE))
    assert made == {"minutes", "needs", "primer"}


def test_teachers_are_told_the_minutes_of_the_slides():
    """Of each lecture, as the command computes them."""
    text = (COURSE / "teach.md").read_text()
    told = {number: int(minutes) for number, minutes in re.findall(r"^\| (\d\d) \| (\d+)", text, re.MULTILINE)}
    assert told == course_pages.lectures()


FEWER = {  # the same comparisons in fewer and shorter runs
    "crossing": {"SEEDS": 3, "ROUNDS": 300},
    "decomposition": {"SEEDS": 2, "ROUNDS": 10},
}


@pytest.mark.parametrize("path", sorted((COURSE / "projects").glob("*.py")), ids=lambda path: path.stem)
def test_a_projects_solution_runs(path, monkeypatch, capsys):
    """It prints what it found and asserts it."""
    before = torch.get_default_dtype()
    try:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        project = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(project)
        for name, value in FEWER.get(path.stem, {}).items():
            monkeypatch.setattr(project, name, value)
        project.main()
    finally:
        torch.set_default_dtype(before)
    assert len(capsys.readouterr().out.splitlines()) >= 5
    assert "assert " in path.read_text()


@pytest.mark.parametrize("name", [pytest.param("good", marks=pytest.mark.full), "weak"])
def test_a_sample_report_has_the_numbers_of_its_runs(name, capsys):
    spec = importlib.util.spec_from_file_location(name, COURSE / "reports" / f"{name}.py")
    runs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runs)
    runs.main()
    page = (COURSE / "reports.md").read_text()
    assert [line for line in capsys.readouterr().out.splitlines() if line not in page] == []


def test_points_of_the_sample_reports_add_up():
    """Each graded by the rubric's rows, none with more than the row has."""
    page = (COURSE / "reports.md").read_text()
    most, *graded = (
        {row: int(points) for row, points in re.findall(r"^\| ([^|]+?) \| (\d+) \|", part, re.MULTILINE)}
        for part in re.split(r"^## ", page, flags=re.MULTILINE)
        if "| points |" in part
    )
    assert len(graded) == 2
    for points in graded:
        assert points.keys() == most.keys()
        assert all(points[row] <= most[row] for row in most)
        assert f"**{sum(points.values())} of {sum(most.values())}**" in page
