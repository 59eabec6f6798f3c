"""The Coq proofs fit the theory pages: names, statements, axioms. Needs no Coq."""

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "proofs"))
import tie  # noqa: E402


@pytest.fixture
def copy(tmp_path):
    """Pages and proofs in a folder that a test may damage."""
    for name in ("docs/theory", "proofs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*"))
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def said(root: Path) -> list[str]:
    return tie.faults(root, root / "proofs")


def test_pages_and_proofs_fit():
    assert tie.faults() == []


def test_a_changed_formula_asks_for_a_review(copy):
    change(copy / "docs/theory/ssf.md", "[ssf.2.7]", "$K=1$ [ssf.2.7]")
    assert said(copy) == ["ssf.2.7: review again, the page changed"]


def test_a_changed_sentence_does_not(copy):
    change(copy / "docs/theory/ssf.md", "[ssf.2.6]", "In other words. [ssf.2.6]")
    assert said(copy) == []


def test_a_changed_proof_asks_for_a_build_and_a_changed_statement_for_a_review(copy):
    change(copy / "proofs/Ssf.v", "Lemma step_2_7 K", "Lemma step_2_7 n")
    assert said(copy) == ["the proofs changed: make proofs, then python proofs/tie.py statements --write"]
    change(copy / "proofs/statements/ssf.txt", "<= 4 / 3 * INR K ^ 3", "<= 5 / 3 * INR K ^ 3")
    assert said(copy)[1:] == ["ssf.2.7: review again, the statement changed"]


def test_a_name_without_a_step_and_an_admitted_proof_are_seen(copy):
    with open(copy / "proofs/Ssf.v", "a") as file:
        file.write("Lemma step_9_9 : 0 = 1. Proof. Admitted.\n")
    assert said(copy)[:2] == ["ssf.9.9: no step of this name on a page", "Ssf.v: Admitted"]


def test_every_file_is_built():
    listed = set(re.findall(r"^(\w+\.v)$", (ROOT / "proofs/_CoqProject").read_text(), re.MULTILINE))
    assert listed | {"Kron.v"} == {path.name for path in (ROOT / "proofs").glob("*.v")}


def test_notebook_12_shows_the_statement_that_coq_printed():
    source = (ROOT / "notebooks/12_one_proof.py").read_text()
    shown = "\n".join(line.removeprefix("# ") for line in source.splitlines())
    assert tie.stored()["Ssf.step_2_7"] in shown


def test_every_step_has_a_kind_and_a_step_out_of_coq_is_in_the_table(copy):
    assert set(tie.kinds()) == set(tie.page_steps())
    change(copy / "proofs/Ssf.v", "Lemma step_2_7 ", "Lemma other ")
    shutil.copytree(ROOT / "fedtheory/theory", copy / "fedtheory/theory")
    assert "| ssf | 45 | 44 | 1 | 0 | 0 |" in tie.table(copy, copy / "proofs")
    assert "- Not in Coq, of ssf: 2.7 (identity)." in tie.table(copy, copy / "proofs")


def test_a_constant_outside_of_the_steps_asks_for_a_review(copy):
    change(copy / "docs/theory/family.md", r"leaves $\frac{25}6$", r"leaves $\frac{26}6$")
    assert said(copy) == ["family: review again, the page changed"]


def test_the_pages_say_no_more_than_their_evidence(copy):
    for page in tie.MODULES:
        assert tie.badge(page) in (ROOT / f"docs/theory/{page}.md").read_text().splitlines()
    change(copy / "proofs/Ssf.v", "Lemma step_2_7 ", "Lemma other ")
    shutil.copytree(ROOT / "fedtheory/theory", copy / "fedtheory/theory")
    counts = "Coq 44; sympy or z3, all real parameters 1"
    assert tie.badge("ssf", copy, copy / "proofs").startswith(f"The evidence of this page's 45 steps: {counts} (")


def test_every_result_has_a_proof_to_unfold():
    for name in tie.results().values():
        assert re.match(
            rf"(Lemma|Theorem|Corollary) {name.split('.')[1]}\b.*\bQed\.$", tie.proof_of(name), re.DOTALL
        ), name


def test_the_page_has_the_table_and_the_axioms():
    text = (ROOT / "docs/proofs.md").read_text()
    assert tie.with_table(text) == text
    assert set(re.findall(r"^- `([\w.]+)`", text, re.MULTILINE)) == set(
        (ROOT / "proofs/axioms.txt").read_text().split()
    )
