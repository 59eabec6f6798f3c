"""The house: which folder may use which, names that stand once, methods and problems from other distributions."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest
from each import each
from forked import command

import fedtheory
from fedtheory.core import registry
from fedtheory.core.problem import Problem
from fedtheory.maps import subspace
from fedtheory.problems import text
from fedtheory.problems.models import packaged
from fedtheory.theory import ledger

ROOT = Path(fedtheory.__file__).parent
LIBRARY = ("core", "maps", "problems", "algorithms")  # what a user's program is made of
FLOORS = (
    *LIBRARY,
    *("running", "federation", "compare", "theory", "papers", "course", "cli"),
)


@cache
def tree(source: str) -> ast.Module:
    return ast.parse(source)


def imports(source: str) -> Iterator[ast.AST]:
    """Statements that import, at any depth: no expression holds one."""
    blocks: list[ast.AST] = [tree(source)]
    while blocks:
        node = blocks.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.mod, ast.stmt, ast.excepthandler, ast.match_case)):
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                blocks += getattr(node, name, ())


def floors_used(source: str) -> set[str]:
    """Folders and files at the package's root that a source imports from, wherever the import stands."""
    used = set()
    for node in imports(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fedtheory":
            name = str(node.module)
            used |= {name.split(".")[1]} if "." in name else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            used |= {a.name.split(".")[1] for a in node.names if a.name.startswith("fedtheory.")}
    return used & set(FLOORS)


def arrows_up(root: Path) -> set[tuple[str, str]]:
    found = set()
    for path in root.rglob("*.py"):
        place = path.relative_to(root)
        floor = place.parts[0].removesuffix(".py")
        if floor in FLOORS:
            above = FLOORS[FLOORS.index(floor) + 1 :]
            found |= {(place.as_posix(), name) for name in floors_used(path.read_text()) if name in above}
    return found


DEEP = """
class A:
    async def f(self):
        try:
            import fedtheory.running
        except ValueError:
            from fedtheory import federation
        else:
            with self:
                from fedtheory.theory import rules
        finally:
            while self:
                match self:
                    case 1:
                        import fedtheory.papers
        if self:
            pass
        else:
            from fedtheory import course
"""


def test_arrows_run_down():
    assert arrows_up(ROOT) == set()


def test_an_arrow_that_runs_up_is_seen(tmp_path):
    """Also inside a function, and by way of the package itself."""
    for name, line in (("core", "from fedtheory import compare"), ("maps", "import fedtheory.papers.store")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "new.py").write_text(f"def f():\n    {line}\n")
    (tmp_path / "core" / "deep.py").write_text(DEEP)
    found = {("core/deep.py", name) for name in ("running", "federation", "theory", "papers", "course")}
    assert arrows_up(tmp_path) == {("core/new.py", "compare"), ("maps/new.py", "papers")} | found


def test_every_place_at_the_root_has_its_floor():
    """At most a dozen, and each in FLOORS, so that none escapes the test of the arrows."""
    there = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    there -= {"__pycache__", "__init__", "__main__"}
    assert there == set(FLOORS)
    assert len(there) <= 12


WRITING = ("open", "write_text", "write_bytes", "FileHandler")


def opened_for_writing(source: str) -> list[str]:
    """Calls that open a file for writing by its name, but `files.open_own`'s."""
    found = []
    for node in ast.walk(tree(source)) if any(word in source for word in WRITING) else ():
        if not isinstance(node, ast.Call):
            continue
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last not in WRITING:
            continue
        name = ast.unparse(node.func)
        modes = [
            one.value
            for one in (*node.args[:2], *(word.value for word in node.keywords))
            if isinstance(one, ast.Constant)
        ]
        opens = name == "open" or name.endswith(".open")
        writes = any(isinstance(mode, str) and re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", mode) for mode in modes)
        if (opens and writes) or name.endswith((".write_text", ".write_bytes", ".FileHandler")):
            found.append(ast.unparse(node))
    return found


def test_files_are_opened_for_writing_at_one_place():
    """`core/files.py` follows no link; the others are its own, of the system's empty file, and new by their mode."""
    found = {path.relative_to(ROOT).as_posix(): opened_for_writing(path.read_text()) for path in ROOT.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == {
        "cli/__init__.py": ["open(os.devnull, 'w')"],
        "running/watchdog.py": [found["running/watchdog.py"][0]],
        "core/files.py": ["open(end, 'wb')"],
    }
    assert found["running/watchdog.py"][0].endswith(".open('x')")
    assert opened_for_writing("open(path, mode='ab')\npath.open('w')\npath.write_text('')\nopen(path, 'rb')") != []


def test_a_name_stands_once():
    """In the file of what it names: the classes that are public are those that some file defines and lists."""
    for names, entries in (
        (registry.method_names(), registry.methods()),
        (registry.problem_names(), registry.problems()),
    ):
        assert set(names) == set(entries)
        assert all(name == entry.name for name, entry in entries.items())
    text = "".join(path.read_text() for path in (ROOT / "algorithms").glob("*.py"))
    for name in registry.method_names():
        assert text.count(f'    Method(\n        "{name}",\n') == 1, name


def test_figures_and_claims_stand_once():
    """What is read from the sources, without importing them, is what they hold."""
    for name, listed in registry.items().items():
        item = registry.item(name)
        assert (item.name, item.title) == (listed.name, listed.title)
        assert "paper" in item.scales or listed.ours
    modules = {importlib.import_module(item.module) for item in registry.items().values()}
    held = [item.name for module in modules for part in ("ITEMS", "EXTRAS") for item in getattr(module, part, ())]
    assert sorted(held) == sorted(registry.items())
    assert set(registry.claim_names()) == set(ledger.claims())
    assert tuple(subspace.PROJECTIONS) == registry.PROJECTIONS
    assert tuple(text.TASKS) == registry.TASKS
    assert tuple(packaged.PACKAGED) == registry.PACKAGED


def test_names_a_run_and_a_search_import_no_compiler():
    """Public names are imported when they are used; torch's compiler and matplotlib are not needed for that.

    Nor does a run or a search need the compiler, nor what meters one; nor scikit-learn for its digits, or SciPy in a
    worker: half of the time before a round.
    """
    code = """
import sys, fedtheory; print('torch' in sys.modules); fedtheory.FedAvg; print('matplotlib' in sys.modules)
import torch, fedtheory.papers.together
from fedtheory import FedAvg, ImageClassification, Key, run
from fedtheory.running import meter
from fedtheory.theory.search import maximise
for network in ("mlp", "resnet8"):
    problem = ImageClassification.load("digits", network, Key(0), clients=2, subset=40)
    history = run(FedAvg(0.1, 1), problem, 1, metrics=("loss",))
    meter.client(FedAvg(0.1, 1), problem, history.state, Key(0))
maximise(lambda z, edge: ((z**2).sum(), 1 + (z**2).sum()), 2, Key(0), restarts=1, steps=2)
print(*{"torch._dynamo", "sympy", "sklearn", "pandas", "scipy", "PIL"} & set(sys.modules), "done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "done"]


SHOWING = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from forked import fork, main

def show(words):
    try:
        return main(words.split())
    finally:
        heavy = {"torch", "numpy", "scipy", "sympy", "matplotlib", "pandas", "tqdm"}
        print(*heavy & set(sys.modules), file=sys.stderr)

for number, words in enumerate(json.loads(sys.argv[1])):
    files = (Path(sys.argv[2], f"{number}.{end}") for end in ("out", "err"))
    assert fork(lambda: show(words), *files) == 0, words
"""


def test_what_only_shows_names_or_numbers_starts_at_once(tmp_path):
    """The command line has its choices from the sources, and the report is made of records."""
    shown = ["--help", "list", "run --help", "report", "claims --list"]
    call = [sys.executable, "-c", SHOWING, json.dumps(shown), str(tmp_path), str(Path(__file__).parent)]
    subprocess.run(call, check=True, cwd=ROOT.parent)
    for number, words in enumerate(shown):
        assert (tmp_path / f"{number}.err").read_text().split() == [], words
        assert len((tmp_path / f"{number}.out").read_text().split()) > 30, words


def met(annotation: object) -> Iterator[type]:
    """The package's classes in an annotation."""
    for part in typing.get_args(annotation):
        yield from met(part)
    if inspect.isclass(annotation) and annotation.__module__.startswith("fedtheory."):
        yield annotation


def test_what_a_user_passes_or_is_given_is_public():
    """Hyperparameters, and what the public functions take and return; for an abstract class, what can stand there."""
    public = {name: getattr(fedtheory, name) for name in fedtheory.__all__}
    classes = [one for one in public.values() if inspect.isclass(one)]
    hidden = set()
    for name, one in public.items():
        if inspect.isclass(one) and not (is_dataclass(one) and not issubclass(one, Problem)):
            continue  # a problem is loaded by names
        for argument, annotation in typing.get_type_hints(one, vars(sys.modules[one.__module__]) | public).items():
            for kind in met(annotation):
                if not any(issubclass(known, kind) for known in classes):
                    hidden.add((name, argument, kind.__name__))
    assert hidden == set()


@each(name=fedtheory.__all__)
def test_a_public_name_says_what_it_takes(name):
    """Every field of a class and every argument of a function stands in its docstring, or in that of its base."""
    public = getattr(fedtheory, name)
    if inspect.isclass(public):
        said = " ".join(part.__doc__ or "" for part in public.__mro__)
        wanted = [one.name for one in fields(public)] if is_dataclass(public) else []
        assert public.__doc__
        assert not public.__doc__.startswith(f"{name}("), "made by @dataclass"
    else:
        said, wanted = public.__doc__ or "", list(inspect.signature(public).parameters)
    assert [part for part in wanted if not re.search(rf"\b{part}\b", said)] == []


PLUGIN = """
from dataclasses import dataclass
from fedtheory import Card, FedAvg, Method, Offer, Quadratic

@dataclass(frozen=True)
class Half(FedAvg):
    name = "Half"
    def server(self, server, down, up, clients, key):
        new, reply = super().server(server, down, up, clients, key)
        return type(new)(*[0.5 * (a + b) if i == 0 else a for i, (a, b) in
                           enumerate(zip(vars(new).values(), vars(server).values()))]), reply

CARD = Card("Half a step.", "x += mean(y_i - x) / 2", "Nothing.", "Slow.")
HALF = Method("Half", "full", lambda o: Half(o.lr, o.local_steps), CARD)
TINY = Offer("tiny", Quadratic, lambda key, device, options: Quadratic.random(3, 4, key, device=device))
OTHER = 7
RAISES = Method("Helf", "full", lambda o: Half(1 / 0, o.local_steps), CARD)
RAISES_TOO = Method("Raises", "full", lambda o: {}["here"], CARD)
NONE = Offer("tiny", Quadratic, lambda key, device, options: {}["here"])
"""


@pytest.fixture
def distribution(tmp_path):
    """A small distribution as pip leaves it: a module, and metadata with entry points."""

    def install(points: str) -> str:
        (tmp_path / "half.py").write_text(PLUGIN)
        info = tmp_path / "half-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        return str(tmp_path)

    return install


def test_a_method_and_a_problem_from_another_distribution(distribution, tmp_path):
    """They are listed, run, and compared with ours; broken ones beside them are left out, with a line."""
    points = (
        "[fedtheory.algorithms]\nHalf = half:HALF\nHelf = half:ABSENT\nRaises = half:RAISES_TOO\n"
        "[fedtheory.problems]\ntiny = half:TINY\ntinier = half:ABSENT\n"
    )
    path = distribution(points)
    listed = json.loads(command("list", "--json", path=path).stdout)
    assert "Half" in listed["algorithms"]
    assert "tiny" in listed["problems"]
    done = json.loads(command("run", "Half", "tiny", "--rounds", "5", "--json", path=path).stdout)
    assert done[0]["algorithm"].startswith("Half(")
    assert done[0]["columns"]["error"][-1] < done[0]["columns"]["error"][0]
    words = ("--methods", "Half", "FedAvg", "--tasks", "quadratics", "--seeds", "1", "--workers", "1", "--json")
    compared = command("compare", *words, "--out", str(tmp_path / "out"), path=path)  # by a worker, which looks itself
    assert compared.returncode == 0, compared.stderr
    assert {row["method"] for row in json.loads(compared.stdout)[0]["table"]} == {"Half", "FedAvg"}
    for point in ("tinier='half:ABSENT'", "Helf='half:ABSENT'", "Raises='half:RAISES_TOO'"):
        assert f"left out: entry point {point}" in compared.stderr


def test_a_module_that_ends_the_process_is_left_out():
    """As a script does that another distribution names by mistake."""

    class Ending:
        name, value, dist = "Mine", "script:MINE", None

        def load(self):
            raise SystemExit(0)

    kind = registry._Kind("algorithms", "METHODS", registry.Method, "method")
    kind.__dict__["places"] = {"Mine": Ending()}
    with pytest.raises(ValueError, match=r"entry point Mine='script:MINE'.*SystemExit"):
        kind.get("Mine")


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ("[fedtheory.algorithms]\nHelf = half:HALF\n", "entry point Helf='half:HALF'"),
        ("[fedtheory.problems]\ntiny = half:OTHER\n", "entry point tiny='half:OTHER'"),
        (
            "[fedtheory.problems]\ntiny = half:ABSENT\n",
            "entry point tiny='half:ABSENT': expected one of half that works",
        ),
        (
            "[fedtheory.algorithms]\nHelf = half:RAISES\n",
            "entry point Helf='half:RAISES': expected one of half that works (ZeroDivisionError: division by zero)",
        ),
        (
            "[fedtheory.problems]\ntiny = half:NONE\n",
            "entry point tiny='half:NONE': expected one of half that works (KeyError: 'here')",
        ),
    ],
)
def test_entry_points_that_do_not_fit(distribution, points, said):
    words = "Helf" if "Helf" in points else "FedAvg", "tiny" if "tiny" in points else "quadratic"
    done = command("run", *words, "--rounds", "1", path=distribution(points))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Fix: " in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ("[fedtheory.algorithms]\nFedAvg = half:HALF\n", "entry point fedtheory.algorithms='FedAvg', whose name"),
        ("[fedtheory.problems]\nquadratic = half:TINY\n", "entry point fedtheory.problems='quadratic', whose name"),
        ("[fedtheory.algorithms]\nHalf\n", "entry_points.txt in "),
    ],
)
def test_a_bad_list_elsewhere_is_a_warning(distribution, points, said):
    done = command("run", "FedAvg", "quadratic", "--rounds", "1", path=distribution(points))
    assert done.returncode == 0, done.stderr
    assert f"left out: {said}" in done.stderr
