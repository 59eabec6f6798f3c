"""Every method one card: from its entry in the package, the counts of docs/methods.md, and the ledger."""

import inspect
import re
import sys
from collections.abc import Mapping

from claim_pages import Place
from code_pages import Code
from mathematics import prose
from stage import ROOT, Stage, badge, folded, plain, slug, table, toctree
from used import Uses

from fedtheory.cli import methods
from fedtheory.core import registry
from fedtheory.theory.letters import letters

WORDS = {
    "full": "Whole models",
    "compressed": "Compressed messages",
    "low rank": "Low rank",
    "subspace": "Subspaces",
    "zeroth order": "Zeroth order",
}


def counted() -> dict[str, dict[str, str]]:
    """The rows of docs/methods.md, which a test holds in step with the code: method -> column -> cell."""
    found, head = {}, []
    for line in (ROOT / "docs" / "methods.md").read_text().splitlines():
        if line.startswith("| method"):
            head = [cell.strip() for cell in line.strip("|").split("|")]
        elif row := re.match(r"\| \[(.+?)\]", line):
            found[row[1]] = dict(zip(head, (cell.strip() for cell in line.strip("|").split(" | "))))
    return found


def write(stage: Stage, code: Code, uses: Uses, where: Mapping[str, Place], verdicts: Mapping[str, str]) -> None:
    rows, made = counted(), methods.algorithms()
    lines = [
        "# Methods",
        "",
        "One card for each method. Down, up and state are counted on the messages: bytes of one client in one round on",
        "a small perceptron: [how, and of which](how-counted.md).",
        "",
    ]
    for family in registry.FAMILIES:
        own = [entry for entry in registry.methods().values() if entry.family == family]
        lines += [f"## {WORDS.get(family, family.capitalize())}", ""]
        cells = [
            [
                f"[{e.name}]({slug(e.name)}.md)",
                said(e.card.idea),
                named(rows[e.name]["up"]),
                named(rows[e.name]["down"]),
            ]
            for e in own
        ]
        lines += [*table(["method", "idea", "up", "down"], cells), ""]
    lines += toctree(["how-counted", *(slug(name) for name in registry.methods())])
    stage.write("look-up/methods/index.md", "\n".join(lines) + "\n")
    head = (ROOT / "docs" / "methods.md").read_text().split("\n## ", 1)[0].split("\n\n")[-1]
    stage.write("look-up/methods/how-counted.md", f"# How bytes are counted\n\n{head.strip()}\n")
    for name, entry in registry.methods().items():
        text = _card(entry, type(made[name]), rows[name], code, uses, where, verdicts)
        stage.write(f"look-up/methods/{slug(name)}.md", "\n".join(text) + "\n")


def named(cell: str) -> str:
    """What crosses, "x 40, reply.mean 8", the names of the code as such."""
    return re.sub(r"\b([A-Za-z][\w.]*)(?= \d)", r"`\1`", cell)


def said(text: str) -> str:
    """A sentence of the code: code spans stay, mathematics is set."""
    parts = re.split(r"(`[^`]+`)", text)
    joined = [part if part.startswith("`") else _kept(part) for part in parts]
    return "".join(joined).strip()


def _kept(part: str) -> str:
    """Set, with the spaces at its ends."""
    inner = prose(part)
    return (" " if part[:1].isspace() else "") + inner + (" " if part[-1:].isspace() and inner else "")


def _card(
    entry: registry.Method,
    kind: type,
    row: Mapping[str, str],
    code: Code,
    uses: Uses,
    where: Mapping[str, Place],
    verdicts: Mapping[str, str],
) -> list[str]:
    file = f"{kind.__module__.replace('.', '/')}.py"
    source, line = inspect.getsourcelines(kind)
    origin = inspect.getdoc(sys.modules[kind.__module__]) or ""
    card = entry.card
    facts = [
        ("Update", f"`{letters(card.update)}`"),
        ("Down, bytes", named(row["down"])),
        ("Up, bytes", named(row["up"])),
        ("Kept by a client, bytes", named(row["state"])),
        ("Needs", entry.needs or "any problem"),
    ]
    claims = [
        f"[{id}](../../{where[id].page}.md#{where[id].anchor}) {badge(verdicts[id])}"
        for id in card.claims
        if id in where
    ]
    facts.append(("What is proved or tested", " ".join([said(card.proved), ", ".join(claims)]).strip()))
    facts.append(("Where it fails", said(card.fails)))
    lines = [f"# {plain(entry.name)}", "", said(card.idea), "", said(origin.replace("\n\n", " ")), "", "{.facts}"]
    for title, text in facts:
        lines += [title, f": {text}", ""]
    lines += folded(
        f"Its code: {file}",
        ["```python", "".join(source).rstrip(), "```", "", f'<a href="../../{code.line(file, line)}">in its file</a>'],
    )
    lines.append("")
    names = [entry.name, kind.__name__]
    if places := uses.of(*names, most=12):
        lines += [f"In {', '.join(f'[{title}](../../{target})' for title, target in places)}.", ""]
    return lines
