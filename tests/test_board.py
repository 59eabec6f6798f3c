"""The derivations for the board: one page each, at most ten lines with a reason, and a check that can fail."""

import re
from pathlib import Path

import pytest

BOARD = Path(__file__).resolve().parents[1] / "docs" / "book" / "course" / "board"
WRONG = {  # page -> a constant of its check, and another one that must be refused
    "resting_point": [("- 0.2 * H, K", "- 0.2 * H, K + 1")],
    "projector": [("r / d * torch", "r / (d + 1) * torch")],
    "nan": [("m / r * v", "(m / r) ** 2 * v")],
    "drift": [("<= 5 / 6\n", "<= 4 / 5\n"), ("(5 / 6 *", "(1 / 4 *"), ("0.3 <", "0.5 <")],
    "price": [("- 1 / 2 * r", "- 1 / 3 * r")],
    "lower_bound": [("2 * delta", "3 * delta"), ("(1 - rho) ** T", "(1 - rho) ** (T - 1)")],
    "aad": [("1 / N *", "2 / N *"), ('"aad"', '"product"')],
    "kronecker": [("== z**2\n", "== z\n"), ("== 2 * z**2", "== z**2")],
    "two_point": [("(d + 1) *", "(d + 2) *"), ("(w * g)", "(w * g / 2)")],
    "error_feedback": [("x + e + change", "x + change"), ("4 / delta**2", "1 / delta**2 / 50")],
}
PAGES = sorted(path.stem for path in BOARD.glob("*.md") if path.stem != "index")


def text_of(name: str) -> str:
    return (BOARD / f"{name}.md").read_text()


def code_of(name: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", text_of(name), re.DOTALL)
    return code


def test_ten_pages_and_an_index():
    assert len(PAGES) == 10
    assert sorted(WRONG) == PAGES
    index = (BOARD / "index.md").read_text()
    assert sorted(re.findall(r"\]\((\w+)\.md\)", index)) == PAGES
    assert sorted(index.partition(":hidden:")[2].strip("`\n ").split()) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short_and_has_its_parts(name):
    text = text_of(name)
    lines = re.findall(r"^(\d+)\. (.*(?:\n   .*)*)", text, re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    assert 5 <= len(lines) <= 10
    for _, line in lines:
        formula, _, reason = re.sub(r"\$[^$]*\$", "x", line).partition(":")
        assert "$" in line
        assert reason.strip(), line
        assert formula
    for part in ("**Claim.**", "**Say.**", "**Check.**", "**Where.**"):
        assert text.count(part) == 1
    (said,) = re.findall(r"\*\*Say\.\*\*(.*?)\n\n", text, re.DOTALL)
    assert len(re.findall(r"[.!?](?:\s|$)", said)) == 1
    assert len(text.splitlines()) <= 60
    assert re.search(r"\.\./\.\./(theory|look-up)/", text.partition("**Where.**")[2])


@pytest.mark.parametrize("name", PAGES)
def test_the_check_holds(name):
    exec(compile(code_of(name), name, "exec"), {})


@pytest.mark.parametrize(("name", "old", "new"), [(name, *pair) for name in PAGES for pair in WRONG[name]])
def test_the_check_fails_for_another_constant(name, old, new):
    code = code_of(name)
    assert code.count(old) == 1
    with pytest.raises(AssertionError):
        exec(compile(code.replace(old, new), name, "exec"), {})
