"""A formula of a theory page is one object: the page shows it, a step checks it, a run is held against it."""

import importlib
import random
import re
import sys
from pathlib import Path

import pytest
import sympy

from fedtheory.theory.formula import NUMBER, Formula, Root, plain
from fedtheory.theory.proof import WITH_FORMULAS, Equal, Every, Fails, Implies, Step, formulas
from fedtheory.theory.ssf.formulas import FORMULAS
from fedtheory.theory.ssf.moments import SAMPLE

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "book" / "_ext"))
import page_numbers  # noqa: E402

PAGES = {name: (ROOT / "docs" / "theory" / f"{name}.md").read_text() for name in WITH_FORMULAS}
DRAWN = {"ssf": 40, "family": 20}  # mutations of objects, else 10; of the page twice as many
PRINTED = {  # formulas of the papers, and the claims that state them
    "ssf": {"printed": "ssf.theorem1"},
    "fedsub": dict.fromkeys(("printed", "printed_steps"), "fedsub.thm1"),
    "flss": dict.fromkeys(("printed", "printed_steps", "printed_B"), "flss.thm-c31"),
}
STATED = {  # ours that are claims
    "ssf": {"theorem": "ssf.sharper.theorem", "short": "ssf.sharper.short"},
    "fedsub": {"without": "fedsub.sharper.without", "quadratic": "fedsub.sharper.quadratic"},
    "flss": {"theorem": "flss.sharper.fixed", "gap": "flss.sharper.gap"},
}
NOTATION = {  # of claims, and of pages
    r"\mathbf": "", "^*": r"^\star", "E[": "E", "_2^2]": "^2", r"\eta_t": r"\eta", "L_f": "L",
    r"\sum_{k=0}^{K-1}": r"\sum_{k<K}",
}  # fmt: skip

PARTS = {"decomfl": ("single", "steps")}  # modules whose checks read the objects, else the steps alone


@pytest.mark.parametrize("page", WITH_FORMULAS)
def test_a_page_shows_every_formula_and_names_every_display(page):
    spans = page_numbers.FORMULA.findall(PAGES[page])
    assert {name for _, _, name in spans if name} == set(formulas(page))
    assert [latex for sign, latex, name in spans if sign == "$$" and not name] == []


@pytest.mark.parametrize("page", WITH_FORMULAS)
def test_a_changed_number_of_a_page_is_rendered_back(page):
    """Drawn from all numbers within named formulas, in tables, too."""
    text, known = PAGES[page], formulas(page)
    assert page_numbers.rendered(text, known) == text
    spans = [span[0] for span in page_numbers.FORMULA.finditer(text) if span[3]]
    places = [(span, digit) for span in spans for digit in re.finditer(r"\d(?=.*\$)", span, re.DOTALL)]
    for span, digit in random.Random(1).sample(places, 2 * DRAWN.get(page, 10)):
        changed = f"{span[: digit.start()]}{(int(digit[0]) + 1) % 10}{span[digit.end() :]}"
        again = page_numbers.rendered(changed, known)
        assert again != changed
        assert plain(again) == plain(span)


def read(part, known: dict[str, Formula]) -> set[str]:
    """The formulas of which a check is made, as far as its data, what it closes over and its own words tell."""
    if isinstance(part, str | Formula):
        return {str(getattr(part, "text", part))}
    if isinstance(part, tuple | list):
        return set().union(*(read(one, known) for one in part))
    if hasattr(part, "__dataclass_fields__"):
        return read([*vars(part).values()], known)
    code = getattr(part, "__code__", None)
    if code is None:
        return set()
    inner, words = [code], []
    for one in inner:
        inner += [found for found in one.co_consts if hasattr(found, "co_consts")]
        words += [found for found in one.co_consts if isinstance(found, str) and found in known]
    cells = [cell.cell_contents for cell in part.__closure__ or ()]
    return {known[word].text for word in words} | read([one for one in cells if one is not part], known)


@pytest.mark.parametrize("page", WITH_FORMULAS)
def test_a_changed_number_of_an_object_fails_a_step(page, monkeypatch):
    """The steps that are made of the formula's text are run first; a quotation that it no longer has counts, too."""
    parts = [importlib.import_module(f"fedtheory.theory.{page}.{name}") for name in PARTS.get(page, ("steps",))]
    known = formulas(page)
    of = {step.id: read(step.check, known) for step in parts[-1].STEPS}

    def caught(text: str) -> bool:
        near = lambda id: any(len(one) > 3 and (one in text or text in one) for one in of.get(id, ()))
        try:
            steps = {step.id: step for part in parts for step in getattr(importlib.reload(part), "STEPS", ())}
            return any(
                not steps[id].check() or steps[id].control() for id in sorted(steps, key=lambda id: not near(id))
            )
        except ValueError:
            return True

    own = [name for name in known if name not in PRINTED.get(page, ()) and not name.startswith("printed")]
    changes = [(name, other) for name in own for other in known[name].neighbours()]
    survived = []
    try:
        for name, other in random.Random(2).sample(changes, DRAWN.get(page, 10)):
            text = known[name].text
            with monkeypatch.context() as patch:
                patch.setitem(known, name, other)
                survived += [] if caught(text) else [other.text]
    finally:
        for part in parts:
            importlib.reload(part)
    assert survived == []


@pytest.mark.parametrize(
    ("page", "name", "claim"),
    [(page, *one) for listed in (PRINTED, STATED) for page, of in listed.items() for one in of.items()],
)
def test_a_formula_is_the_statement_of_its_claim(page, name, claim):
    text = (ROOT / "fedtheory" / "theory" / page / "claims.md").read_text()
    (statement,) = re.findall(rf"## {re.escape(claim)}\n\n(.*)\n", text)
    for theirs, ours in NOTATION.items():
        statement = statement.replace(theirs, ours)
    assert plain(formulas(page)[name].latex()) in plain(statement)


def test_the_printed_theorem_has_the_value_of_its_claim():
    values = SAMPLE.named(7)
    assert FORMULAS["printed"].right(values, float) == pytest.approx(sum(SAMPLE.theorem(7)), rel=1e-14)


@pytest.mark.parametrize(
    ("page", "name", "term"),
    [
        *(("decomfl", name, None) for name in ("printed", "theorem", "c_hat", "gamma")),
        *(("decomfl", f"printed_c{k}", None) for k in range(1, 5)),
        ("decomfl", "printed_two", 0), ("decomfl", "printed_two", 3), ("mud", "rest", None),
    ],
)  # fmt: skip
def test_a_formula_of_a_claim_is_in_its_statement(page, name, term):
    statements = plain((ROOT / "fedtheory" / "theory" / page / "claims.md").read_text())
    found = formulas(page)[name]
    assert plain((found.side(-1) if term is None else found.term(term)).latex()) in statements


def test_a_formula_in_latex():
    letters = {"eta": r"\tilde\eta", "C": r"\mathcal C", "sum_j": r"\sum_{j<k}{}"}
    shown = {
        "-1/2*sq(u - v) + 2*C**2": r"-\frac12\Vert u-v\Vert^2+2\mathcal C^2",
        "h == L*eta <= min(1/4, sqrt(eta//8))": r"h=L\tilde\eta\le\min(\frac14,\sqrt{\tilde\eta/8})",
        "(1 + h)/2*sum_j(a + b)": r"\frac{1+h}2\sum_{j<k}(a+b)",
        "4/3*1.041": r"\frac43\cdot1.041",
        "a - (b - c)": "a-(b-c)",
    }
    assert {text: Formula(text, letters).latex() for text in shown} == shown
    assert plain(r"\Bigl[\tfrac{1}2\,a \Bigr].") == plain(r"(\frac12a)")


def test_values_of_a_formula():
    """Exact, in floats, in symbols; a decimal is the fraction that it says."""
    one = Formula("D <= 1.041*K + a/3")
    assert one.right({"K": 2, "a": 1}) == sympy.Rational("1.041") * 2 + sympy.Rational(1, 3)
    assert one.terms({"K": 2.0, "a": 1.0}) == (1.041 * 2, 1 / 3)
    assert one.right({"K": sympy.Symbol("K"), "a": 0}, sympy.Rational) == sympy.Rational(1041, 1000) * sympy.Symbol("K")
    assert [str(other.text) for other in one.neighbours()] == ["D <= 1.042*K + a/3", "D <= 1.041*K + a/4"]
    assert Formula("sigma**2").right({"sigma": Root(2.0)}) == 2.0
    with pytest.raises(ValueError, match=r"power=3: expected an even number"):
        Formula("sigma**3").right({"sigma": Root(2.0)})
    assert len(NUMBER.findall("C0 + G2**2 - 1.5")) == 2
    with pytest.raises(ValueError, match=r"old='1.04': expected words of D <= .* Fix: quote the formula's text"):
        one.changed("1.04", "1")
    with pytest.raises(ValueError, match=r"expected one name on its left side.*Fix: write name == expression"):
        Formula("2*D <= 1").name  # noqa: B018


def test_checks_as_data():
    """What is true holds, what is false does not, and a control quotes its check."""
    assert Implies(["0 <= x", "x <= 1/4"], ["sqrt(x) <= 1/2"])()
    assert not Implies(["0 <= x", "x <= 1/4"], ["sqrt(x) <= 2/5"])()
    assert not Implies([], ["-2*dot(a, b) <= sq(a) + sq(b)"])()  # numbers of their own
    assert Implies([], ["-2*dot(a, b) <= sq(a) + sq(b)"], line=True)()
    assert Implies(["x <= y"], ["x/(x + y) <= 1/2"], cleared=True)()
    assert not Implies(["x <= y"], ["x/(x + y) <= 1/3"], cleared=True)()
    assert Equal("y", "x**2 + 2*x + 1", ["y == (1 + x)**2"])()
    assert Equal("sq(u + v) <= 2*sq(u) + 2*sq(v)", "sq(u - v)", gap=True)()
    assert not Equal("sq(u + v) <= 2*sq(u) + 3*sq(v)", "sq(u - v)", gap=True)()
    with pytest.raises(ValueError, match=r"given=\['x >= 1', 'x <= 0'\]: expected hypotheses that some numbers meet"):
        Implies(["x >= 1", "x <= 0"], ["x == 2"])()
    both = Every([Equal("x", "x"), Fails(Equal("x", "y"))])
    assert both()
    assert not both.changed("x", "z")()
    with pytest.raises(ValueError, match=r"control=.*expected words of the check of ssf\.0\.0"):
        Step("ssf.0.0", "identity", "x is x", Equal("x", "x"), {"y": "z"})
    step = Step("ssf.0.0", "identity", "x is x", Equal("x", "x"), {"x": "z"})
    assert step.broken == "z instead of x"
    assert step.outcome().holds
