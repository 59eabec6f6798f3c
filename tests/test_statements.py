"""What the papers say: one section a claim, read by id; a section or a claim without its words is one clear line."""

import pytest

from fedtheory.core import registry
from fedtheory.theory import ledger
from fedtheory.theory import statements as module
from fedtheory.theory.claim import entries
from fedtheory.theory.letters import untex
from fedtheory.theory.statements import Statement, notation, statements

PAGE = """# Paper

* $x$: a model.

## p.a

*Sec. 1; (2).* $a\\le b$,
for all $a$.

> It is less.

```python
print(1)
```

## p.b / c

*App. A.* $c$.

> It is.
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Writes a paper's page, and reads it."""
    monkeypatch.setattr(module, "_FOLDER", tmp_path)
    (tmp_path / "p").mkdir()

    def read(text):
        (tmp_path / "p" / "claims.md").write_text(text, "utf-8")
        return statements.__wrapped__("p")

    return read


def test_a_section_is_place_statement_words_and_cell(page):
    assert page(PAGE) == {
        "p.a": Statement("Sec. 1; (2)", "$a\\le b$,\nfor all $a$.", "It is less.", "print(1)"),
        "p.b / c": Statement("App. A", "$c$.", "It is.", ""),
    }
    assert notation("p") == "* $x$: a model."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("*App. A.* ", ""),
        ("> It is.\n", ""),
        ("$c$.\n", ""),
        ("## p.b / c", "## p.a"),
        ("> It is.", "> It is.\n\nx"),
    ],
)
def test_a_section_of_another_form_is_one_line(page, old, new):
    with pytest.raises(ValueError, match=r"theory/p/claims.md, 'p\..*expected \*place\.\* statement, > words"):
        page(PAGE.replace(old, new))


def test_every_claim_is_stated_and_every_statement_is_a_claim():
    stated = {id: one for paper in registry.PAPERS for id, one in statements(paper).items()}
    assert list(stated) == registry.claim_names()
    assert {id: (one.where, one.latex) for id, one in stated.items()} == {
        id: (claim.where, claim.statement) for id, claim in ledger.claims().items()
    }


def test_a_claim_without_a_statement_is_one_line():
    with pytest.raises(
        ValueError, match=r"id='nowhere': expected a section of theory/ssf/claims.md. Fix: add ## ssf.nowh"
    ):
        entries("ssf")("nowhere", "identity")


def test_the_ledger_shows_the_statement_in_the_letters_of_mathematics():
    (record,) = ledger.check([ledger.claims()["ssf.text.cifar"]], "quick")
    assert record["statement"] == untex(statements("ssf")["ssf.text.cifar"].latex)
