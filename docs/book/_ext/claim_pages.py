"""Every claim of the ledger as a section of a page: a page for each section of each paper, with filters by verdict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from code_pages import Code
from mathematics import latex, prose, runs, said, worded
from stage import ROOT, Stage, badge, folded, plain, read_json, slug, table, toctree
from used import Uses

from fedtheory.core.registry import PAPERS as TITLES
from fedtheory.theory.claim import RULE
from fedtheory.theory.letters import letters
from fedtheory.theory.statements import Statement, notation, statements

EVIDENCE = {
    "exact": "exactly: a closed form, or all cases enumerated",
    "symbolic": "with symbols (SymPy)",
    "smt": "by a solver for real arithmetic (z3)",
    "sdp": "by a semidefinite program (PEPit)",
    "search": "by a search: no counterexample was found where it holds; a search proves nothing",
    "monte-carlo": "by sampling, with error bars",
    "run": "by training runs",
}
FACTS = (
    ("Missing assumption, which the paper does not print", "caveat"),
    ("Where the paper's own uses satisfy it, or what it reads", "met"),
    ("Read as", "reading"),
    ("Found", "detail"),
    ("Control: what the same check refutes", "control"),
    ("Kind of error", "error"),
    ("In practice", "implies"),
    ("Repair", "repaired"),
    ("Repair checked", "repaired_detail"),
)


@dataclass(frozen=True)
class Place:
    """Where a claim stands in the book: its page and the anchor there."""

    page: str
    anchor: str


def records() -> list[dict[str, Any]]:
    return read_json(ROOT / "docs" / "ledger.json")["claims"]


KINDS = (  # what a place begins with, or names, and the section that its claim is sorted under, in this order
    (r"Abstract", "Abstract"),
    (r"(?:Sec\. |Section )(\d+)", "Section {}"),
    (r"((?:Lemma|Theorem|Corollary) \d+)", "{}"),
    (r"App\. (\d+|[A-Z])", "Appendix {}"),
    (r"\b([A-D])\.\d", "Appendix {}"),
    (r"Fig\.|Table", "Figures and tables"),
    (r"Alg\.", "Algorithms"),
    (r"not in the paper|this package", "Beyond the paper"),
)


def section(where: str) -> str:
    """The paper's section that a claim is sorted under, from the place that it names first."""
    first = re.split(r"[;,]", where)[0].strip()
    for look, text, kinds in ((re.match, first, KINDS[:5]), (re.search, where, KINDS)):
        for pattern, name in kinds:
            if found := look(pattern, text):
                return name.format(*found.groups())
    raise ValueError(f"where={where!r}: expected a place in the paper. Fix: name its section first")


def in_order(found: Sequence[dict[str, Any]]) -> list[str]:
    """The sections of a paper's claims: the abstract, sections, proofs by their lemma, appendices, the rest."""
    names = list(dict.fromkeys(section(record["where"]) for record in found))
    heads = [name.split("{}")[0] for _, name in KINDS]
    rank = lambda name: next(at for at, head in enumerate(heads) if head and name.startswith(head))
    kind = lambda name: 2 if re.match("Lemma|Theorem|Corollary", name) else rank(name)
    return sorted(names, key=lambda name: (kind(name), name if kind(name) in (1, 3, 4) else ""))


def places(found: Sequence[dict[str, Any]]) -> dict[str, Place]:
    return {r["id"]: Place(f"look-up/claims/{r['paper']}/{slug(section(r['where']))}", slug(r["id"])) for r in found}


def write(stage: Stage, code: Code, uses: Uses) -> dict[str, Place]:
    """All pages of the claims; returns where each claim stands."""
    found = records()
    where = places(found)
    verdicts = list(dict.fromkeys(record["verdict"] for record in found))
    papers = list(dict.fromkeys(record["paper"] for record in found))
    lines = [
        "# Claims",
        "",
        f"{len(found)} statements of the five papers: definitions, identities, inequalities, rates, costs, and what",
        "the experiments are said to show. A check forms the printed formula from what the training code yields. Each",
        "claim has a control, the nearest false statement, which the same check must refute. In an instance *left* and",
        "*right* are the sides of an inequality read as left at most right, also where it is printed the other way.",
        "",
        *table(
            ["paper", *verdicts, "controls refuted"],
            [
                [
                    f"[{TITLES[paper]}]({paper}/index.md)",
                    *(str(sum(r["verdict"] == verdict for r in found if r["paper"] == paper)) for verdict in verdicts),
                    f"{sum(r['control_refuted'] for r in found if r['paper'] == paper)} of "
                    f"{sum(bool(r['evidence']) for r in found if r['paper'] == paper)}",
                ]
                for paper in papers
            ],
        ),
        "",
        *RULE.splitlines(),
        "Verdicts name how they were decided; where that is a search, *holds* means that the search found nothing.",
        "",
        "## All of them",
        "",
        '<div class="filter"></div>',
        "",
        *table(
            ["claim", "in plain words", "verdict"],
            [[_link(r, where, "../claims/"), _given(r).words, badge(r["verdict"])] for r in found],
        ),
        "",
        *toctree(f"{paper}/index" for paper in papers),
    ]
    stage.write("look-up/claims/index.md", "\n".join(lines) + "\n")
    for paper in papers:
        own = [record for record in found if record["paper"] == paper]
        _paper(stage, paper, own, where)
        for name in in_order(own):
            some = [record for record in own if section(record["where"]) == name]
            _section(stage, paper, name, some, code, uses)
    return where


def _given(record: dict[str, Any]) -> Statement:
    return statements(record["paper"])[record["id"]]


def _link(record: dict[str, Any], where: dict[str, Place], base: str) -> str:
    place = where[record["id"]]
    return f"[{record['id']}]({base}{place.page.removeprefix('look-up/claims/')}.md#{place.anchor})"


def _paper(stage: Stage, paper: str, own: list[dict[str, Any]], where: dict[str, Place]) -> None:
    sections = in_order(own)
    lines = [
        f"# {TITLES[paper]}",
        "",
        f"{len(own)} claims, in the paper's order. [What the letters mean](notation.md).",
        "",
        '<div class="filter"></div>',
        "",
    ]
    for name in sections:
        some = [record for record in own if section(record["where"]) == name]
        lines += [f"## {name}", ""]
        rows = [[_link(r, where, "../"), _given(r).words, badge(r["verdict"])] for r in some]
        lines += [*table(["claim", "in plain words", "verdict"], rows), ""]
    lines += toctree(["notation", *(slug(name) for name in sections)])
    stage.write(f"look-up/claims/{paper}/index.md", "\n".join(lines) + "\n")
    head = f"# {TITLES[paper]}: letters and assumptions"
    stage.write(f"look-up/claims/{paper}/notation.md", f"{head}\n\n{notation(paper)}\n")


def _section(stage: Stage, paper: str, name: str, some: list[dict[str, Any]], code: Code, uses: Uses) -> None:
    lines = [f"# {TITLES[paper]}, {name}", "", "[What the letters mean](notation.md).", ""]
    lines += ['<div class="filter"></div>', ""]
    for record in some:
        lines += one_claim(record, _given(record), code, uses)
    stage.write(f"look-up/claims/{paper}/{slug(name)}.md", "\n".join(lines) + "\n")


def one_claim(record: dict[str, Any], given: Statement, code: Code, uses: Uses) -> list[str]:
    """The section of one claim."""
    up = "../../../"
    lines = [
        f"({slug(record['id'])})=",
        f"## {plain(record['id'])}",
        "",
        "{.verdict-line}",
        f"{badge(record['verdict'])} {prose(record['where'])} ({record['kind']})",
        "",
        "{.statement}",
        *(f"> {line}" for line in given.latex.splitlines()),
        "",
        f"*In plain words.* {given.words}",
        "",
    ]
    facts: list[tuple[str, str]] = []
    assumed = [f"- {prose(part['text'])} ({prose(part['where'])})" for part in record["assumes"]]
    facts.append(("Assumed, where the paper prints it", "\n".join(assumed) or "nothing"))
    if record["evidence"]:
        facts.append(("How it was decided", EVIDENCE.get(record["evidence"], record["evidence"])))
    for title, key in FACTS:
        if record.get(key):
            title = "Why it is not checked" if key == "detail" and not record["evidence"] else title
            facts.append((title, prose(record[key])))
    lines += ["{.facts}"]
    for title, text in facts:
        first, *rest = text.split("\n")
        lines += [title, f": {first}", *(f"  {line}" for line in rest), ""]
    if record["counterexample"]:
        shown = f'<div class="table-box">{numbers(record["counterexample"])}</div>'  # wide ones scroll on a phone
        lines += folded("Counterexample in numbers", [shown])
        lines.append("")
    if record["evidence"]:
        cell = given.cell or RUN.format(id=record["id"])
        lines += folded("Run it", ["```python", cell, "```"])
        lines.append("")
    target = code.claim(record["id"])
    links = [f'<a href="{up}{target}">the check</a>'] if target else []
    links += [f"[{title}]({up}{target})" for title, target in uses.of(record["id"])]
    if links:
        lines += [f"Code and notebooks: {', '.join(links)}.", ""]
    return lines


RUN = """from fedtheory.theory import ledger
from fedtheory.course import start

start()
(record,) = ledger.check(ledger.choose(["{id}"], None), "quick", seed=3)  # other random starts than the ledger's
print(record["verdict"], record["detail"], sep="; ")
print(record["counterexample"])"""


def numbers(value: Any) -> str:
    """Plain data as a table in HTML, without Python's marks."""
    if isinstance(value, dict):
        rows = "".join(f"<tr><th>{formulas(str(k))}</th><td>{numbers(v)}</td></tr>" for k, v in value.items())
        return f'<table class="numbers"><tbody>{rows}</tbody></table>'
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        if len({tuple(part) for part in value}) == 1 and not any(_deep(v) for part in value for v in part.values()):
            head = "".join(f"<th>{formulas(str(key))}</th>" for key in value[0])
            rows = "".join(f"<tr>{''.join(f'<td>{numbers(v)}</td>' for v in part.values())}</tr>" for part in value)
            return f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        return "".join(numbers(part) for part in value)
    if isinstance(value, list) and value and all(isinstance(part, list) for part in value):
        if any(_deep(part) for row in value for part in row) or len(value) > MOST:
            return _short(said(value))
        rows = "".join(
            f"<tr>{''.join(f'<td>{formulas(said(part))}</td>' for part in row[:MOST])}</tr>" for row in value
        )
        return f'<table class="numbers"><tbody>{rows}</tbody></table>'
    return _short(said(value))


MOST = 12  # rows and columns of a matrix that are shown; longer ones are cut, and say so


def _deep(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _short(text: str) -> str:
    text = worded(text).replace("**", "^")
    if len(text) > 300:
        text = f"{text[:260]} ... ({len(text)} characters; in full in docs/ledger.json)"
    return formulas(text)


def formulas(text: str) -> str:
    """A text as HTML, its mathematics as Sphinx writes it for MathJax."""
    shown = [
        rf"{MATH}\({escape(latex(piece))}\)</span>" if set_ else escape(letters(piece)) for set_, piece in runs(text)
    ]
    return "".join(shown) or escape(text)


MATH = '<span class="math notranslate nohighlight">'
