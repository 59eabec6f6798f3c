"""The pages of proofs, docs/theory: every step with its strongest evidence, its Coq statement and the proof, folded."""

import re
import sys
from collections.abc import Mapping
from html import escape

import tight_pages
from claim_pages import Place
from code_pages import Code
from mathematics import prose
from stage import ROOT, Stage, bare, proved, slug, table, toctree
from used import NOTEBOOKS

from fedtheory.theory.proof import KINDS, PAPERS, Step, steps

sys.path.insert(0, str(ROOT / "proofs"))
import tie

MARK = re.compile(r"\[((?:" + "|".join(PAPERS) + r")\.\d+\.\d+)\]")
CLAIM = re.compile(r"`([a-z]+\.[\w.-]+(?: / [\w.-]+)*)`")
HEAD = """\
# Proofs

What the papers' theorems should say, proved in numbered steps. Behind each step stands its check, which a machine
carries out, and a control: a false step near by, which the same check refuses. The tests run both.
"""


def anchor(id: str) -> str:
    return f"step-{id.replace('.', '-')}"


def write(stage: Stage, code: Code, where: Mapping[str, Place]) -> None:
    for picture in sorted((ROOT / "docs" / "theory").glob("*.svg")):
        stage.copy(picture, f"theory/{picture.name}")
    for paper in PAPERS:
        stage.write(f"theory/{paper}.md", page(paper, code, where))
    tight_pages.write(stage, where)
    stage.write("theory/use.md", use())
    stage.write("theory/prior-art.md", bare((ROOT / "docs" / "theory" / "prior-art.md").read_text()))
    text = (ROOT / "docs" / "proofs.md").read_text()
    stage.write("theory/coq.md", bare(text).replace("](theory/", "]("))
    stage.write(
        "theory/index.md",
        "\n".join([HEAD, *toctree([*PAPERS, "prior-art", "tight", "use", "coq"], hidden=False)]) + "\n",
    )


def page(paper: str, code: Code, where: Mapping[str, Place]) -> str:
    text, known = bare(proved(paper)).replace("](../proofs.md", "](coq.md"), steps(paper)
    text = with_evidence(text)
    text = CLAIM.sub(lambda found: _linked(found, where), text)
    text = re.sub(r"\b[Nn]otebook (\d\d)\b", _notebook, text)
    source = f"fedtheory/theory/{paper}/steps.py"
    lines = [
        "",
        "## The checks",
        "",
        f'In <a href="../{code.line(source, 1)}">{source}</a>. '
        "Each also names the claims that measure the same on what the training code yields.",
        "",
        *table(
            ["step", "how", "what is checked", "refused", "claims"], map(lambda step: _row(step, where), known.values())
        ),
    ]
    return text + "\n".join(lines) + "\n"


def with_evidence(text: str) -> str:
    """Write beside every step its strongest evidence, and after its paragraph the folded Coq statement and proof."""
    found, proved, shown = tie.evidence(), tie.results(), tie.stored()

    def block(part: str) -> str:
        names = [proved[step] for step in MARK.findall(part) if found[step] == "Coq"]
        part = MARK.sub(lambda mark: f'(<a href="#{anchor(mark[1])}">{found[mark[1]]}</a>)', part)
        return "\n\n".join([part, *(unfolded(name, shown[name], tie.proof_of(name)) for name in names)])

    return "\n\n".join(map(block, text.split("\n\n")))


def unfolded(name: str, statement: str, proof: str) -> str:
    """A Coq statement behind one fold, its proof behind a second."""
    blank = re.compile(r"\n\s*\n")
    pre = lambda code: f"<pre>{escape(blank.sub(chr(10), code))}</pre>"
    inner = f"<details><summary>Proof</summary>{pre(proof)}</details>"
    return f"<details><summary>Coq: {name}</summary>{pre(statement)}{inner}</details>"


def use() -> str:
    """The page of consequences, with the items' pictures and links to them."""
    text = bare(proved("use"))
    text = re.sub(r"\.\./\.\./figures/([\w/]+)\.png", lambda found: f"../look-up/items/{slug(found[1])}.png", text)
    text = re.sub(r"`(use/\w+)`", lambda found: f"[`{found[1]}`](../look-up/items/{slug(found[1])}.md)", text)
    return re.sub(r"\b[Nn]otebook (\d\d)\b", _notebook, text)


def _row(step: Step, where: Mapping[str, Place]) -> list[str]:
    number = step.id.partition(".")[2]
    claims = ", ".join(f"[{id}](../{where[id].page}.md#{where[id].anchor})" for id in step.claims)
    return [
        f'<span id="{anchor(step.id)}">{number}</span>',
        KINDS[step.kind],
        prose(step.says),
        prose(step.broken),
        claims,
    ]


def _notebook(found: re.Match[str]) -> str:
    target = next(path.stem for path in NOTEBOOKS if path.stem.startswith(found[1]))
    return f"[{found[0]}](../notebooks/{target}.ipynb)"


def _linked(found: re.Match[str], where: Mapping[str, Place]) -> str:
    id = found[1]
    return f"[`{id}`](../{where[id].page}.md#{where[id].anchor})" if id in where else found[0]
