"""Examinations: numbers differ from class to class, answers are right. Reports of a class count what was answered."""

import contextlib
import io
import itertools
import json
import math
import random
import re
import shutil
import statistics

import pytest

from fedtheory import cli
from fedtheory.course import answers, exam
from fedtheory.course.exercises import graded


def numbers(text: str) -> list[float]:
    return [float(one.replace(" ", "")) for one in re.findall(r"(?<![\w^])-?\d+(?:\.\d+)?", text)]


def asked(name: str, seed: int) -> tuple[list[float], float]:
    """The numbers in a question's text, and its answer."""
    (of,) = (of for _, of in exam.BANK if of.__name__ == name)
    text, answer, _ = of(random.Random(seed))
    return numbers(text), float(answer)


def by_hand(name: str, given: list[float]) -> float:
    """The answer from the numbers of the text, in another way than the bank's."""
    match name, given:
        case "sampled", [*values, S]:
            return statistics.pvariance([statistics.fmean(some) for some in itertools.combinations(values, int(S))])
        case "recursion", [_, _, by, add, K]:
            e = 0.0
            for _ in range(int(K)):
                e = by * e + add
            return e
        case "gap", [_, p, u1, v1, _, u2, v2]:
            return p * u1 * v1 + (1 - p) * u2 * v2 - (p * u1 + (1 - p) * u2) * (p * v1 + (1 - p) * v2)
        case "pull_alone", [_, K, lr, rho]:
            return statistics.fmean(rho * 6 * (lr * k) ** 2 for k in range(int(K)))
        case "fedavg_bytes", [d, T, S, _]:
            return 4 * d * T * S
        case "scaffold_bytes", [d, T]:
            return 8 * d * T
        case "ssf_upload", [d, r, T]:
            return 8 * r * T
        case "warm_up", [d, T0, T, R]:
            return 4 * (T0 * d + (T - T0) * R)
        case "scalars", [K, P, T]:
            return 4 * K * P * T
        case "signs", [d, *_]:
            return 4 + 4 * math.ceil(d / 32)
        case "factors", [_, share, m, n]:
            return next(r * (m + n) for r in range(1, 999) if r * (m + n) * share >= m * n)
        case "low_dimension", [_, q, r]:
            return q * r
        case "convolution", [inputs, outputs, kernel, _, _, r]:
            return inputs * outputs * kernel * r
        case "unequal", [*sizes, epochs, batch]:
            return epochs * sum(len(range(0, int(size), int(batch))) for size in sizes)
        case "rounds_to_see", [r, d, *_]:
            return next(t for t in range(1, 10**4) if (1 - r / d) ** t <= 0.05)
        case "memory", [r, d, _, power]:
            return next(t for t in range(1, 10**5) if (1 - r / d) ** t <= 10**power)
    raise KeyError(name, given)


HAND = ("sampled", "recursion", "gap", "pull_alone", "fedavg_bytes", "scaffold_bytes", "ssf_upload", "warm_up",
        "scalars", "signs", "factors", "low_dimension", "convolution", "unequal", "rounds_to_see",
        "memory")  # fmt: skip


@pytest.mark.parametrize("name", HAND)
def test_an_answer_follows_from_the_numbers_of_its_text(name):
    for seed in range(4):
        given, answer = asked(name, seed)
        assert answer == pytest.approx(by_hand(name, given), rel=1e-9), given


def test_a_resting_point_is_where_the_changes_cancel():
    for seed in range(4):
        text, rest, _ = exam.resting_point(random.Random(seed))
        (h1, b1), (h2, b2) = (
            (float(h), -float(b.replace(" ", ""))) for h, b in re.findall(r"= ([\d.]+)\(x ([-+] \d+)", text)
        )
        K, lr = int(re.findall(r"K = (\d+)", text)[0]), float(re.findall(r"rate ([\d.]+)\?", text)[0])
        w1, w2 = (1 - (1 - lr * h) ** K for h in (h1, h2))
        assert rest == pytest.approx((w1 * b1 + w2 * b2) / (w1 + w2), rel=1e-9)


def test_a_class_has_its_own_numbers():
    """One seed makes one sheet; another one other numbers, for each question."""
    whole = len(exam.BANK)
    assert whole == 40
    first, again, other = (exam.draw(seed, whole) for seed in (1, 1, 2))
    assert first == again
    for one, two in zip(first, other, strict=True):
        assert one.text != two.text
        assert math.isfinite(one.answer)
        assert one.text.endswith((".", "?", ")"))
        assert exam.brief(one.answer) in exam.sheet([one], 1, True)
    assert {one.text for one in exam.draw(1, 5)} < {one.text for one in first}


def test_an_examination_is_written(tmp_path, capsys):
    assert cli.main(["course", "--exam", str(tmp_path / "exam"), "--seed", "7", "--questions", "3"]) == 0
    sheet, solved = ((tmp_path / "exam" / name).read_text() for name in ("examination.md", "solutions.md"))
    assert sheet.count("\n**") == 3
    for one in exam.draw(7, 3):
        assert one.text in sheet
        assert one.way in solved
        assert one.way not in sheet
    assert cli.main(["course", "--exam", str(tmp_path / "exam"), "--questions", "41"]) == 2
    assert "questions=41: expected an integer from 1 to 40" in capsys.readouterr().err


def cells(answer, error: str = "") -> list[dict]:
    """Of a graded notebook: text, the cell of an answer with the error in it, the locked cell with what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(AssertionError):
        graded("05.1", answer)
    outputs = {"answer": [{"output_type": "error", "ename": error}] if error else []}
    outputs["test"] = [{"output_type": "stream", "name": "stdout", "text": said.getvalue()}]
    ids = {kind: {"nbgrader": {"grade_id": f"exercise-05-1-{kind}"}} for kind in outputs}
    made = [{"cell_type": "code", "source": "", "metadata": ids[kind], "outputs": outputs[kind]} for kind in outputs]
    return [{"cell_type": "markdown", "source": "graded", "metadata": {}}, *made]


def test_answers_of_a_class_are_counted(tmp_path, capsys, monkeypatch):
    """Two right, of which one goes on to an error; two wrong in the same way, one empty, one stopped."""
    for name, made in {
        "ann": cells((768 + 384) * 7),
        "amy": cells((768 + 384) * 7, "NameError"),
        "bob": cells(768 * 384),
        "cem": cells(768 * 384.0),
        "dan": cells(...),
        "eve": cells(..., "ZeroDivisionError"),
    }.items():
        path = tmp_path / "autograded" / name / "05_fedmud" / "05_fedmud.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"cells": made}))
    (found,) = answers.collected(tmp_path / "autograded").values()
    assert found.ends == {"right": 2, "wrong": 2, "empty": 1, "stopped": 1}
    assert found.slips == {"That is the whole layer.": 2}
    assert cli.main(["course", "--report", str(tmp_path / "autograded")]) == 0
    assert capsys.readouterr().out.startswith("05.1: 2 right, 2 wrong, 1 empty, 1 stopped\n")
    page = (tmp_path / "report" / "README.md").read_text()
    assert "- 2 x That is the whole layer." in page
    assert not re.search("ann|amy|bob|cem|dan|eve", page + (tmp_path / "report" / "answers.csv").read_text())
    assert (tmp_path / "report" / "answers.png").read_bytes()[:4] == b"\x89PNG"
    assert cli.main(["course", "--report", str(tmp_path / "report")]) == 2
    assert "Fix: run nbgrader autograde" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "report")
    monkeypatch.chdir(tmp_path / "autograded")
    assert cli.main(["course", "--report", "."]) == 0
    assert (tmp_path / "report" / "answers.png").exists()


TESTED = {"metadata": {"nbgrader": {"grade_id": "exercise-05-1-test"}}}


@pytest.mark.parametrize(
    "made",
    [
        {"cells": 5},
        {"cells": ["x"]},
        {"cells": [{"metadata": None}]},
        {"cells": [TESTED | {"outputs": 5}]},
        {"cells": [TESTED | {"outputs": [{"name": "stdout", "text": 5}]}]},
    ],
)
def test_a_broken_notebook_is_named_in_one_line(made, tmp_path):
    (tmp_path / "broken.ipynb").write_text(json.dumps(made))
    with pytest.raises(ValueError, match=r"expected notebooks \(.*broken\.ipynb is none\). Fix: move that file away"):
        answers.collected(tmp_path)
