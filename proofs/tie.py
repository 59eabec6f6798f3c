"""Tie the theory pages to their Coq proofs: names, statements and digests.

    python proofs/tie.py                      list the steps that are proved, not proved, or fit no page
    python proofs/tie.py statements [--write] compare statements and axioms with those that Coq prints (or store them)
    python proofs/tie.py review               store the digests, after you compared page and statement
    python proofs/tie.py page                 write the table of docs/proofs.md

Only `statements` needs Coq, and the built files.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = ("ssf", "family", "fedsub", "flss", "mud", "decomfl", "limits", "linear")
MODULES = {page: page.capitalize() for page in PAGES}
FORBIDDEN = r"Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset\s+Guard\s+Checking|bypass_check"


def digest(text: str) -> str:
    """Return 16 hexadecimal digits that name a text, whatever its spaces and line breaks."""
    return hashlib.sha256("".join(text.split()).encode()).hexdigest()[:16]


def page_steps(root: Path = ROOT) -> dict[str, str]:
    """Return the mathematics of every numbered step of the theory pages, by its name, such as ssf.2.5."""
    return {name: text for name, text in page_parts(root).items() if "." in name}


def page_parts(root: Path = ROOT) -> dict[str, str]:
    """Return the mathematics of every step, and by the page's name what stands outside of its steps."""
    found = {}
    for page in MODULES:
        path = root / "docs" / "theory" / f"{page}.md"
        text = path.read_text().partition("\n<!-- checks -->")[0] if path.exists() else ""
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        end, outside = 0, []
        for mark in re.finditer(rf"\[({page}\.(\d+\.\d+))\](?!:)", text):
            start = max(end, text.rfind(f"**{mark[2]}", 0, mark.start()))
            found[mark[1]] = mathematics(text[start : mark.start()])
            outside.append(text[end:start])
            end = mark.end()
        found[page] = mathematics("\n".join([*outside, text[end:]]))
    return found


def mathematics(text: str) -> str:
    return " ".join(re.findall(r"\$\$?([^$]+)\$\$?", text))


def without_comments(text: str) -> str:
    return re.sub(r"\(\*.*?\*\)", " ", text, flags=re.DOTALL)


def results(proofs: Path = HERE) -> dict[str, str]:
    """Return the Coq names of all steps, as ssf.2.5, and of all theorems, by their own names."""
    found = {}
    for path in sorted(proofs.glob("*.v")):
        page = next((page for page, module in MODULES.items() if module == path.stem), None)
        for kind, name in re.findall(r"\b(Lemma|Theorem|Corollary)\s+(\w+)", without_comments(path.read_text())):
            step = re.fullmatch(r"step_(\d+)_(\d+)", name)
            if step and page:
                found[f"{page}.{step[1]}.{step[2]}"] = f"{path.stem}.{name}"
            elif kind != "Lemma" and path.stem != "Kron":
                found[f"{path.stem}.{name}"] = f"{path.stem}.{name}"
    return found


def stored(proofs: Path = HERE) -> dict[str, str]:
    """Return the committed statements, as Coq printed them, by their Coq names."""
    text = "\n\n".join(path.read_text() for path in sorted((proofs / "statements").glob("*.txt")))
    return {part.split()[0]: part.strip() for part in re.split(r"\n\n+", text) if part.strip()}


def sources(proofs: Path = HERE) -> str:
    return digest("".join(without_comments(path.read_text()) for path in sorted(proofs.glob("*.v"))))


def pairs(root: Path = ROOT, proofs: Path = HERE) -> dict[str, list[str]]:
    """Return the digests of page and statement, by step, and of what stands outside of a page's steps, by page."""
    page, shown, proved = page_parts(root), stored(proofs), results(proofs)
    return {
        part: [digest(text), digest(shown.get(proved[part], "")) if part in proved else ""]
        for part, text in page.items()
        if part in proved or part in MODULES
    }


def faults(root: Path = ROOT, proofs: Path = HERE) -> list[str]:
    """Return one line for everything that does not fit together. Needs no Coq."""
    page, proved, shown = page_steps(root), results(proofs), stored(proofs)
    kept = json.loads((proofs / "digests.json").read_text())
    said = [f"{name}: no step of this name on a page" for name in proved if name.islower() and name not in page]
    for path in sorted(proofs.glob("*.v")):
        said += [
            f"{path.name}: {word}" for word in re.findall(rf"\b({FORBIDDEN})\b", without_comments(path.read_text()))
        ]
    if kept["sources"] != sources(proofs) or set(shown) != set(proved.values()):
        said.append("the proofs changed: make proofs, then python proofs/tie.py statements --write")
    for step, now in pairs(root, proofs).items():
        then = kept["steps"].get(step, ["", ""])
        changed = " and ".join(side for side, a, b in zip(("page", "statement"), then, now) if a != b)
        said += [f"{step}: review again, the {changed} changed"] * bool(changed)
    return said


def printed() -> tuple[dict[str, str], str]:
    """Return the statements of all results by name, and the axioms that they rest on, as Coq prints them."""
    names = sorted(results().values())
    lines = ["From Coq Require Import Reals List.", "From Fedtheory Require Import Core.", "Open Scope R_scope."]
    lines += ["Set Printing Width 118.", "Set Printing Depth 1000."]
    for module in sorted({name.split(".")[0] for name in names}):
        checks = [f"Check {name}." for name in names if name.startswith(module + ".")]
        lines += [f"From Fedtheory Require {module}.", f"Module see_{module}.", f"Import {module}.", *checks]
        lines += [f"End see_{module}."]
    lines += ["Definition all : True := " + " ".join(f"let _ := @{name} in" for name in names) + " I."]
    lines += ["Print Assumptions all."]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "all.v").write_text("\n".join(lines))
        call = ["coqc", "-w", "none", "-Q", HERE, "Fedtheory", "all.v"]
        text = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=True).stdout
    text, axioms = text.split("Axioms:\n")
    statements, rest = {}, text
    for name, after in zip(names, [*names[1:], None]):
        module, own = name.split(".")
        begin = re.search(rf"^({module}\.)?{own}\s+:", rest, re.MULTILINE)
        end = after and re.search(rf"^(\w+\.)?{after.split('.')[1]}\s+:", rest[begin.end() :], re.MULTILINE)
        part = rest[begin.start() : begin.end() + end.start()] if end else rest[begin.start() :]
        rest = rest[begin.start() + len(part) :]
        statements[name] = f"{module}." + part.removeprefix(module + ".").rstrip()
    return statements, "\n".join(re.findall(r"^\S+", axioms, re.MULTILINE)) + "\n"


def write_statements(statements: dict[str, str], axioms: str) -> None:
    folder = HERE / "statements"
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.txt"):
        path.unlink()
    order = lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    for module in sorted({name.split(".")[0] for name in statements}):
        mine = sorted((name for name in statements if name.startswith(module + ".")), key=order)
        (folder / f"{module.lower()}.txt").write_text("\n\n".join(statements[name] for name in mine) + "\n")
    (HERE / "axioms.txt").write_text(axioms)


def save(**parts: object) -> None:
    path = HERE / "digests.json"
    kept = json.loads(path.read_text()) if path.exists() else {"sources": "", "steps": {}}
    path.write_text(json.dumps({**kept, **parts}, indent=0) + "\n")


# what checks a step that is not in Coq: the column of the table, by the kind in fedtheory/theory/<page>/steps.py
COLUMNS = {
    "identity": "sympy or z3, all real parameters", "implication": "sympy or z3, all real parameters",
    "certificate": "sympy or z3, all real parameters", "expectation": "enumeration or arithmetic",
    "arithmetic": "enumeration or arithmetic", "search": "search",
}  # fmt: skip


def kinds(root: Path = ROOT) -> dict[str, str]:
    """Return the kind of every step's check in Python."""
    found = {}
    for page in MODULES:
        source = (root / "fedtheory" / "theory" / page / "steps.py").read_text()
        found |= dict(re.findall(rf'Step\(\s*"({page}\.\d+\.\d+)",\s*"(\w+)"', source))
    return found


def evidence(root: Path = ROOT, proofs: Path = HERE) -> dict[str, str]:
    """Return the strongest evidence of every step: Coq, or the column of its check in Python."""
    proved, kind = results(proofs), kinds(root)
    return {step: "Coq" if step in proved else COLUMNS[kind[step]] for step in page_steps(root)}


def badge(page: str, root: Path = ROOT, proofs: Path = HERE) -> str:
    """Return the line at a theory page's end: how many of its steps each kind of evidence proves."""
    found = [kind for step, kind in evidence(root, proofs).items() if step.startswith(page + ".")]
    counts = "; ".join(
        f"{kind} {found.count(kind)}" for kind in ("Coq", *dict.fromkeys(COLUMNS.values())) if kind in found
    )
    return f"The evidence of this page's {len(found)} steps: {counts} ([what this means](../proofs.md))."


def proof_of(name: str, proofs: Path = HERE) -> str:
    """Return the source of a result's proof, by its Coq name, such as Ssf.step_2_5."""
    module, own = name.split(".")
    text = (proofs / f"{module}.v").read_text()
    start = re.search(rf"^(Lemma|Theorem|Corollary) {own}\b", text, re.MULTILINE).start()
    return text[start : re.compile(r"\bQed\.").search(text, start).end()]


def table(root: Path = ROOT, proofs: Path = HERE) -> str:
    """Return the table of docs/proofs.md: the strongest evidence of every step, counted."""
    strongest, kind = evidence(root, proofs), kinds(root)
    columns = list(dict.fromkeys(COLUMNS.values()))
    lines, left = [f"| page | steps | Coq | {' | '.join(columns)} |", "|---" * (3 + len(columns)) + "|"], [""]
    for name in MODULES:
        own = {step: found for step, found in strongest.items() if step.startswith(name + ".")}
        counts = [len(own), *map(list(own.values()).count, ("Coq", *columns))]
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
        missing = [step for step, found in own.items() if found != "Coq"]
        listed = ", ".join(f"{step.removeprefix(name + '.')} ({kind[step]})" for step in missing)
        left += [f"- Not in Coq, of {name}: {listed}."] * bool(missing)
    return "\n".join(lines + left).rstrip() + "\n\n"


def with_table(text: str) -> str:
    return re.sub(r"\| page \|.*?(?=Beside the)", lambda _: table(), text, count=1, flags=re.DOTALL)


def main(words: list[str]) -> int:
    if words == ["review"]:
        save(steps=pairs())
    elif words == ["page"]:
        path = ROOT / "docs" / "proofs.md"
        path.write_text(with_table(path.read_text()))
    elif words[:1] == ["statements"]:
        statements, axioms = printed()
        if words[1:] == ["--write"]:
            write_statements(statements, axioms)
            save(sources=sources())
        differ = [name for name in statements if statements[name] != stored().get(name)]
        differ += ["axioms.txt"] * ((HERE / "axioms.txt").read_text() != axioms)
        print("\n".join(f"{name}: Coq prints another statement" for name in differ) or "statements: as Coq prints them")
        return bool(differ)
    else:
        print(table())
        print("\n".join(faults()) or "pages and proofs fit")
        return bool(faults())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
