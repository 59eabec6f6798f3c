"""The proofs of docs/theory: every step's check holds, its control does not, and pages and steps name each other."""

import re
from pathlib import Path

import pytest
import sympy

from fedtheory.theory import ledger
from fedtheory.theory.claim import EVIDENCE
from fedtheory.theory.fedsub.rates import floor, pair
from fedtheory.theory.instances import coordinate_frames
from fedtheory.theory.proof import PAPERS, Step, _cancelled, mean_of, steps
from fedtheory.theory.search import vanishes

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "theory"
MARK = re.compile(r"\[(\w+\.\d+\.\d+)\](?!:)")


@pytest.mark.parametrize("paper", PAPERS)
def test_a_step_holds_and_its_control_does_not(paper):
    for step in steps(paper).values():
        found = step.outcome()
        assert found.holds, step.id
        assert found.evidence in EVIDENCE, step.id


def test_a_control_that_holds_is_no_control():
    step = Step("ssf.0.0", "identity", "1 = 1", lambda: True, lambda: True, "1 = 1")
    with pytest.raises(AssertionError, match=r"ssf\.0\.0: the control holds, too: 1 = 1"):
        step.outcome()


def test_the_mean_of_a_polynomial():
    """Of normal entries (odd powers, 3, 15), of signs, and of entries that are not symmetric."""
    x, y, k = sympy.symbols("x y k")
    assert mean_of(x**6 + x**4 * y**2 + x**3 * y + 2 * x + 7, (x, y)) == 15 + 3 + 7
    assert mean_of(x**4 + k * x**2 * y**2 + x**3 * y, (x, y), 1) == 1 + k
    assert mean_of((x + y) ** 4, (x, y), k) == 2 * k + 6
    assert mean_of(k * x**2, (x,)) == k
    with pytest.raises(ValueError, match=r"expression=.*expected no power above the fourth.*Fix: "):
        mean_of(x**6, (x,), k)


def test_what_vanishes():
    x, y, k = sympy.symbols("x y k", positive=True)
    assert vanishes((x**2 - y**2) / (x - y) - x - y)
    assert vanishes(1 / (1 + 1 / x) - x / (x + 1))
    assert vanishes(sympy.sqrt(x) * sympy.sqrt(x * y) - x * sympy.sqrt(y))
    assert vanishes(x ** (k + 1) - x * x**k)
    assert vanishes(0)
    assert not vanishes((x**2 - y**2) / (x - y) - x)
    assert not vanishes(sympy.sqrt(x) - x)


def test_cancelled_fractions_are_sympys():
    x, y = sympy.symbols("x y", positive=True)
    for one in ((x**2 - y**2) / (x - y) / 6, x / 6 - y / 4, 5 * x / 6, (x + 1) / (2 * x * y + 2 * y) - 3 / x,
                sympy.sqrt(x) / y + 1 / x, sympy.Rational(3, 4) + 0 * x):  # fmt: skip
        assert _cancelled(one) == sympy.fraction(sympy.cancel(one))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_step_of_a_page_has_its_check(paper):
    """Each once, in the page's order; SSF's page has some of its third section in an appendix."""
    marked = MARK.findall((FOLDER / f"{paper}.md").read_text())
    if paper == "ssf":
        marked.sort(key=lambda step: tuple(map(int, step.split(".")[1:])))
    assert marked == list(steps(paper))


@pytest.mark.parametrize("paper", PAPERS)
def test_numbered_steps_are_marked(paper):
    """A bold number is followed by its own mark before the next one; what is not numbered is no step."""
    text = (FOLDER / f"{paper}.md").read_text()
    parts = re.split(r"^\*\*(\d+\.\d+)", text, flags=re.MULTILINE)[1:]
    for number, body in zip(parts[::2], parts[1::2]):
        assert MARK.findall(body) == [f"{paper}.{number}"], number


@pytest.mark.parametrize("paper", PAPERS)
def test_what_a_page_names_exists(paper):
    known = {record["id"]: record for record in ledger.load(FOLDER.parent / "ledger.json")}
    text = (FOLDER / f"{paper}.md").read_text()
    for id in [*re.findall(rf"`({paper}\.[\w.-]+)`", text), *re.findall(r"\[margin (\S+?)\]", text)]:
        assert id in known, id
    for step in steps(paper).values():
        assert all(known[id]["verdict"].startswith("holds") for id in step.claims), step.id


@pytest.mark.parametrize("paper", PAPERS)
def test_cells_of_a_page_run(paper, capsys):
    """At most ten lines. They print something: what stands below them, where the page shows it."""
    text = (FOLDER / f"{paper}.md").read_text()
    cells = re.findall(r"```python\n(.*?)\n```(?:\n\n```\n(.*?)```)?", text, re.DOTALL)
    assert len(cells) == text.count("```python") > 0
    for cell, shown in cells:
        assert len(cell.splitlines()) <= 10
        exec(compile(cell, paper, "exec"), {})
        said = capsys.readouterr().out
        assert said == (shown or said) != ""


def test_what_fedsub_says_of_its_exact_errors():
    """Half the step: a quarter without the dual, under an eighth with it; a thousandth of what both theorems leave."""
    frames, zeta2 = coordinate_frames(2, 1, scale="isotropic"), 1.25  # theta_m = 2; of the pulls at the solution
    coarse, fine = ([floor(pair(), frames, eta, 2, dual=dual) for dual in (True, False)] for eta in (0.05, 0.025))
    assert 8 < coarse[0] / fine[0] < 9
    assert 4 < coarse[1] / fine[1] < 4.3
    for eta, (error, _) in ((0.05, coarse), (0.025, fine)):
        p, lam = 2 * eta**2, 2 * eta
        assert lam <= 1 / (6 * 2**0.5)
        assert 1000 * error < min(25 / 6, 50 / 3 * 2**0.5 * lam) * p * zeta2
