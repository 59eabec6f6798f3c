"""The ledger: every claim of the papers with its verdict, and the page that shows it."""

import importlib
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from fedtheory.core import checks, registry
from fedtheory.core.files import RESEAL, misfit, seal, unseal, write_target
from fedtheory.theory.claim import EFFORTS, RULE, VERDICTS, Claim, decide
from fedtheory.theory.letters import letters
from fedtheory.theory.search import reseeded

SOLVERS = ("sympy", "z3", "PEPit", "clarabel")


def require_solvers() -> None:
    """The packages of the extra [theory], before any work."""
    for name in SOLVERS:
        try:
            there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            _missing(name)


def _missing(name: str) -> NoReturn:
    expected, fix = "the packages that the checks use", "pip install 'fedtheory[theory]'"
    checks.reject("module", name, expected, fix, ModuleNotFoundError)


@cache
def claims_of(paper: str) -> dict[str, Claim]:
    """A paper's claims by id, in its order; no other paper's are built."""
    found: dict[str, Claim] = {}
    for claim in importlib.import_module(f"fedtheory.theory.{paper}.claims").CLAIMS:
        if claim.id in found:
            checks.reject("id", claim.id, "ids that are used once", "rename one of the claims")
        found[claim.id] = claim
    return found


def claims() -> dict[str, Claim]:
    """Every claim by id."""
    return {id: claim for paper in registry.PAPERS for id, claim in claims_of(paper).items()}


def choose(ids: Sequence[str], paper: str | None) -> list[Claim]:
    """Claims by id (a paper's name or a leading part that ends at a dot chooses several) and by paper, in its order."""
    chosen = set(registry.chosen_claims(ids, paper))
    papers = [one for one in registry.PAPERS if paper in (None, one) and any(id.startswith(f"{one}.") for id in chosen)]
    return [claim for one in papers for id, claim in claims_of(one).items() if id in chosen]


def check(
    chosen: Sequence[Claim], effort: str, tick: Callable[[str], object] | None = None, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Decide the claims; one plain record each. Another seed attacks from other random starts.

    Raises ModuleNotFoundError with the fix where a check uses a solver that is not installed.
    """
    checks.choice("effort", effort, EFFORTS)
    records = []
    with reseeded(seed):
        for claim in chosen:
            try:
                records.append(asdict(decide(claim, effort)))
            except ModuleNotFoundError as error:
                if error.name not in SOLVERS:
                    raise
                _missing(error.name)
            if tick is not None:
                tick(claim.id)
    return records


TEXTS = ("id", "paper", "where", "statement", "kind", "verdict", "evidence", "detail", "control", "caveat", "effort")
RECORD = {  # what the page, and whoever builds on the file, needs of every record
    **dict.fromkeys(TEXTS, str),
    "margin": (int, float, str, type(None)),
    "counterexample": (dict, type(None)),
    "control_refuted": bool,
    "assumes": [{"text": str, "where": str}],
}


def load(path: str | Path) -> list[dict[str, Any]]:
    """The records saved in a file.

    Raises FileNotFoundError where there is no file, ValueError for one that holds something else, or was changed.
    """
    path = checks.path("ledger", path)
    if not path.exists():
        fix = "name another file, or python -m fedtheory claims --save FILE"
        checks.reject("path", str(path), "a file of the ledger's records", fix, FileNotFoundError)
    try:
        found = unseal(path.read_bytes())
        wrong = misfit(found, {"claims": [RECORD]})
    except ValueError as error:
        found, wrong = {}, str(error)
    if wrong is not None:
        fix = f"name another file; if it was only never sealed, {RESEAL.format(path)}"
        checks.reject("path", str(path), f"a JSON file of the ledger's records ({wrong})", fix)
    return found["claims"]


def save(path: str | Path, records: Sequence[dict[str, Any]]) -> None:
    """Write records, with their SHA-256; numbers that are not finite must have become words."""
    write_target(path, seal({"claims": list(records)}))


def merge(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """New records in place of old ones of the same claim, in the ledger's order; without claims that are no more."""
    found = {record["id"]: record for record in (*old, *new)}
    return [found[name] for name in claims() if name in found]


def heading(record: Mapping[str, Any]) -> str:
    """Under which a claim stands on the page: its own if something is wrong with it, else its paper's."""
    if record["verdict"] in VERDICTS[1:4]:
        return f"{record['id']}: {record['verdict']}"
    return record["paper"]


def page(records: Sequence[dict[str, Any]]) -> str:
    """docs/ledger.md: counts, then one table per paper, then each refuted claim in full."""
    papers = list(dict.fromkeys(record["paper"] for record in records))
    efforts = {paper: sorted({r["effort"] for r in records if r["paper"] == paper}) for paper in papers}
    lines = [
        "# The ledger",
        "",
        "Generated by `python -m fedtheory claims --save docs/ledger.json --page docs/ledger.md` (or `--effort full`);",
        "not edited by hand.",
        "",
        *RULE.splitlines(),
        "",
        "A search looks in the regime that a claim is about and at its edges. The worst ratio is left side over right",
        "side at the worst instance found. A control is the same check with an assumption dropped, a constant",
        "sharpened or the data changed, which it must refute.",
        "",
        "| paper | " + " | ".join(VERDICTS) + " | controls refuted | effort |",
        "|---|" + "---|" * (len(VERDICTS) + 2),
    ]
    for paper in papers:
        own = [record for record in records if record["paper"] == paper]
        counts = Counter(record["verdict"] for record in own)
        checked = [record for record in own if record["verdict"] != "unchecked"]
        refuted = sum(record["control_refuted"] for record in checked)
        row = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
        lines.append(f"| {paper} | {row} | {refuted} of {len(checked)} | {', '.join(efforts[paper])} |")
    for paper in papers:
        own = [record for record in records if record["paper"] == paper]
        lines += [
            "",
            f"## {paper}",
            "",
            "| id | where | statement | assumed | verdict | evidence | worst ratio | control |",
            "|---|---|---|---|---|---|---|---|",
            *map(_row, own),
            *(line for record in own if heading(record) != paper for line in _section(record)),
        ]
    return "\n".join(lines) + "\n"


def _row(record: dict[str, Any]) -> str:
    """A claim's row in its paper's table."""
    cells = (
        f"`{record['id']}`",
        record["where"],
        _unmarked(record["statement"]),
        letters(assumed(record)),
        f"**{record['verdict']}**",
        letters(f"{record['evidence']}: {_in_coq(record['detail'])}" if record["evidence"] else record["detail"]),
        "" if record["margin"] is None else f"{float(record['margin']):.4g}",
        letters(record["control"]),
    )
    return "| " + " | ".join(_cell(text) for text in cells) + " |"


def _in_coq(detail: str) -> str:
    """The detail and, where a theory page proves the claim, how many of the page's steps Coq accepts."""
    root = Path(__file__).resolve().parents[2]
    digests = root / "proofs" / "digests.json"
    if not digests.is_file():
        return detail

    def counted(found: re.Match[str]) -> str:
        proved = sum(step.startswith(f"{found[1]}.") for step in json.loads(digests.read_text())["steps"])
        text = (root / "docs" / "theory" / f"{found[1]}.md").read_text()
        steps = re.findall(rf"^\[{found[1]}\.\d+\.\d+\]:", text, re.MULTILINE)
        return f"{found[0]}; {proved} of the page's {len(steps)} steps are in Coq"

    return re.sub(r"proved in docs/theory/(\w+)\.md, of whose steps \d+ were run again", counted, detail)


_DETAILS = {
    "error": "Kind of error",
    "reading": "Read as",
    "caveat": "Missing assumption",
    "met": "Satisfied",
    "detail": "Found",
    "implies": "In practice",
    "repaired": "Repaired",
    "repaired_detail": "Repair checked",
}


def _section(record: dict[str, Any]) -> list[str]:
    """A claim in full, under a heading of its own."""
    said = f"*{record['where']}.* {_unmarked(record['statement'])}"
    lines = ["", f"### {heading(record)}", "", said, ""]
    lines += [f"- {title}: {letters(record[key])}" for key, title in _DETAILS.items() if record.get(key)]
    if record["counterexample"]:
        facts = ", ".join(f"{key} = {value}" for key, value in record["counterexample"].items())
        lines.append(f"- Counterexample: {facts}")
    return lines


def assumed(record: dict[str, Any]) -> str:
    """Everything that a claim's check took for granted: what the paper prints (where), then what it does not."""
    if "assumes" not in record:
        return "not recorded; check the claim again"
    parts = [f"{part['text']} ({part['where']})" for part in record["assumes"]]
    if record["caveat"]:
        parts.append(f"NOT PRINTED: {record['caveat']}")
    if record.get("reading"):
        parts.append(f"read as: {record['reading']}")
    return "; ".join(parts) or "nothing"


def _unmarked(formulas: str) -> str:
    """Formulas in which Markdown sees no link and no emphasis."""
    return re.sub(r"(?<=\])\(|\*", r"\\\g<0>", formulas)


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
