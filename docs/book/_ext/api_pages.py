"""The public names from their docstrings: the list is fedtheory/__init__.pyi, and nothing is written twice."""

import importlib
import inspect
import re
import textwrap
from typing import Any

from code_pages import Code
from method_pages import said
from stage import ROOT, Stage, slug, table, toctree

import fedtheory

FOLDERS = {
    "running": "Running",
    "core": "Rounds",
    "algorithms": "Methods",
    "maps": "Bases",
    "problems": "Problems",
    "theory": "Rules",
    "papers": "Advice",
}
PARTS = ("Fields", "Args", "Returns", "Raises", "Example")


def names() -> dict[str, list[str]]:
    """Public names by folder, as the stub lists them."""
    found: dict[str, list[str]] = {folder: [] for folder in FOLDERS}
    for folder, name in re.findall(
        r"^from \.(\w+)\S* import (\w+) as", (ROOT / "fedtheory" / "__init__.pyi").read_text(), re.M
    ):
        found[folder].append(name)
    assert sorted(name for own in found.values() for name in own) == sorted(
        n for n in fedtheory.__all__ if not n.startswith("__")
    )
    return found


def write(stage: Stage, code: Code) -> None:
    lines = ["# The public names", "", "What a program may rely on: `from fedtheory import ...`.", ""]
    for folder, own in names().items():
        rows = [[f"[`{name}`]({place(name)}.md)", first(getattr(fedtheory, name))] for name in own]
        lines += [f"## {FOLDERS[folder]}", "", *table(["name", "what it is"], rows), ""]
    lines += toctree(place(name) for own in names().values() for name in own)
    stage.write("look-up/api/index.md", "\n".join(lines) + "\n")
    for own in names().values():
        for name in own:
            stage.write(f"look-up/api/{place(name)}.md", "\n".join(_page(name, code)) + "\n")


def place(name: str) -> str:
    """The file of a name's page: that of `estimate` is not that of `Estimate`, whatever the file system."""
    return slug(name) + "-function" * (name.islower() and name.capitalize() in fedtheory.__all__)


def first(thing: Any) -> str:
    return said((inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")).replace("|", r"\|")


def _page(name: str, code: Code) -> list[str]:
    thing = getattr(fedtheory, name)
    module = importlib.import_module(thing.__module__)
    file = f"{module.__name__.replace('.', '/')}.py"
    line = inspect.getsourcelines(thing)[1]
    lines = [f"# {name}", "", f'<a href="../../{code.line(file, max(line, 1))}">{file}</a>', ""]
    lines += ["```python", signature(name, thing), "```", "", *docstring(thing), ""]
    if inspect.isclass(thing):
        for own, member in sorted(_members(thing).items()):
            lines += [f"## `{own}`", "", "```python", signature(own, member), "```", "", *docstring(member), ""]
    return lines


def _members(thing: type) -> dict[str, Any]:
    """Public methods with a docstring of their own, those of bases in the package included."""
    found: dict[str, Any] = {}
    for base in thing.__mro__:
        if base.__module__.startswith("fedtheory"):
            for name, member in vars(base).items():
                bare = getattr(member, "__func__", member)
                if inspect.isfunction(bare) and bare.__doc__ and not name.startswith("_") and name not in found:
                    found[name] = bare
    return found


def signature(name: str, thing: Any) -> str:
    """Names and plain defaults, one line where it fits."""
    shown = []
    star = False
    for part in inspect.signature(thing).parameters.values():
        if part.name in ("self", "cls"):
            continue
        if part.kind is part.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        mark = {part.VAR_POSITIONAL: "*", part.VAR_KEYWORD: "**"}.get(part.kind, "")
        star = star or mark == "*"
        default = "" if part.default is part.empty else f"={_default(part.default)}"
        shown.append(f"{mark}{part.name}{default}")
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= 90 else f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + ")"


def _default(value: Any) -> str:
    simple = value is None or isinstance(value, (bool, int, float, str)) or value == ()
    return repr(value) if simple else "..."


def docstring(thing: Any) -> list[str]:
    """The house's docstrings as Markdown: paragraphs, then Fields, Args, Returns, Raises as lists of definitions."""
    lines: list[str] = []
    for block in (inspect.getdoc(thing) or "").split("\n\n"):
        head = block.split("\n", 1)[0].strip()
        if head.rstrip(":") in PARTS and head.endswith(":") and "\n" in block:
            lines += [f"**{head[:-1]}**", "", "{.facts}", *_definitions(textwrap.dedent(block.split("\n", 1)[1]))]
        elif block.startswith(">>>"):
            lines += ["```pycon", block, "```", ""]
        elif block.lstrip() != block or "\n    " in block:
            lines += ["```text", block, "```", ""]
        else:
            lines += [said(block.replace("\n", " ")), ""]
    return lines


def _definitions(text: str) -> list[str]:
    lines: list[str] = []
    for part in re.split(r"\n(?=\S)", text):
        name, colon, rest = " ".join(part.split()).partition(": ")
        if colon and re.fullmatch(r"[\w, *()\[\]]+", name):
            lines += [f"`{name}`", f": {said(rest)}", ""]
        else:
            lines += ["", said(" ".join(part.split())), ""]
    return lines
