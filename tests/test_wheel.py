"""The wheel: what it holds, what it says of itself, and that it works without the extras."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("sympy", "z3", "PEPit", "clarabel", "transformers", "peft", "datasets", "jupyterlab", "nbval", "pytest")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source, wheel and editable wheel of a copy, as `python -m build --no-isolation` makes them, without a warning."""
    tree = tmp_path_factory.mktemp("parent") / "fedtheory"
    tree.mkdir()
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "fedtheory", tree / "fedtheory", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "notebooks", "figures", "docs", "proofs"):
        (tree / name).mkdir()
        (tree / name / "test_one.py").write_text("")
    code = """
import warnings
from setuptools import build_meta
warnings.simplefilter("error")
print(build_meta.build_sdist("."))
print(build_meta.build_wheel("."))
os.mkdir("editable")
print(os.path.join("editable", build_meta.build_editable("editable")))
"""
    done = subprocess.run(
        [sys.executable, "-c", "import os" + code], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [tree / line for line in done.stdout.splitlines() if line.endswith((".tar.gz", ".whl"))]


@pytest.fixture(scope="module")
def wheel(built):
    return built[1]


def package() -> set[str]:
    paths = [path for pattern in ("*.py*", "claims.md", "*.jinja") for path in (ROOT / "fedtheory").rglob(pattern)]
    found = {path.relative_to(ROOT).as_posix() for path in paths}
    return {name for name in found if "__pycache__" not in name} | {"fedtheory/py.typed"}


def test_the_source_holds_the_package_and_what_builds_it(built):
    with tarfile.open(built[0]) as archive:
        names = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    beside = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert {name for name in names if ".egg-info/" not in name} == package() | beside


def test_it_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == package()


STARTS = """
import json, os, sys
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[3])
from forked import fork
sys.path[:] = [part for part in sys.path[1:] if not part or not Path(part, "fedtheory/__init__.py").exists()]
sys.meta_path[:] = [finder for finder in sys.meta_path if not finder.__module__.startswith("__editable__")]

def start(folder, code, words):
    os.chdir(folder)
    exec(code, {"words": words})

for number, given in enumerate(json.loads(sys.argv[1])):
    files = [Path(sys.argv[2], f"{number}.{end}") for end in ("out", "err")]
    print(json.dumps([fork(lambda: start(*given), *files), *(file.read_text() for file in files)]))
"""
FOUND = """
import site
site.addsitedir(words)
import fedtheory
from fedtheory import *
from fedtheory.core.key import Key as inner
print(fedtheory.__file__, Key is inner)
"""
CLAIMS = """
import os, sys
os.environ.pop("FEDTHEORY_ROOT", None)
sys.path.insert(0, words)
from fedtheory import cli
print(cli.__file__)
cli.main(["claims", "ssf.tables2-4"])
"""
BARE = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
assert not {{name.split(".")[0] for name in sys.modules}} & set({EXTRAS!r})
sys.meta_path.insert(0, Blocked())
sys.path[:] = [words[0], *(part for part in sys.path if part)]
import fedtheory
assert fedtheory.__file__.startswith(words[0]), fedtheory.__file__
for name in fedtheory.__all__:
    getattr(fedtheory, name)
import contextlib, io, json
from fedtheory.cli import main
for call in words[1]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(call)
    print(json.dumps([status, said.getvalue()]))
"""
CALLS = [
    (["list"], 0, "SSF"),
    (["run", "SSF", "matrix_regression", "--rounds", "3"], 0, "SSF"),
    (["claims", "ssf.lemma2"], 2, r"expected the packages that the checks use\. Fix: .*'fedtheory\[theory\]'"),
]


@pytest.fixture(scope="module")
def started(built, tmp_path_factory):
    """The folder with the wheel's content, and what each start said; all are forks of one process that has PyTorch.

    It does not have the package yet. Beside the wheel's package lie results that nobody may look for.
    """
    tree, here = built[0].parent, tmp_path_factory.mktemp("started")
    for name, archive in (("wheel", built[1]), ("editable", built[2])):
        zipfile.ZipFile(archive).extractall(here / name)
    shutil.copytree(ROOT / "figures" / "ssf", here / "wheel" / "figures" / "ssf")
    (here / "figures").mkdir()
    starts = [(folder, FOUND, here / "editable") for folder in (tree.parent, "/", tree / "notebooks")]
    starts += [(tree.parent, FOUND, here / "wheel"), (here, CLAIMS, here / "wheel")]
    starts += [(here, BARE, [str(here / "wheel"), [words for words, _, _ in CALLS]])]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, "-c", STARTS, json.dumps(starts, default=str), str(here), str(Path(__file__).parent)]
    done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True, check=True)
    return here / "wheel", [json.loads(line) for line in done.stdout.splitlines()]


def test_the_package_is_found_wherever_python_starts(built, started):
    """Beside a clone of the package's name, too, whose folder Python takes for a package without a file."""
    wheel, said = started
    tree = built[0].parent
    for root, (status, out, err) in zip((tree, tree, tree, wheel), said[:4], strict=True):
        assert status == 0, err
        assert out == f"{root / 'fedtheory' / '__init__.py'} True\n"


def test_its_metadata_are_valid(wheel):
    """As the package index checks them; the text of the README stands in it."""
    with zipfile.ZipFile(wheel) as archive:
        found = next(name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = Metadata.from_email(archive.read(found), validate=True)
    assert metadata.name == "fedtheory"
    assert metadata.description is not None
    assert metadata.description.strip() == (ROOT / "README.md").read_text().strip()
    assert metadata.description_content_type == "text/markdown"
    assert {
        "notebooks",
        "theory",
        "llm",
        "frame",
        "privacy",
        "smollm",
        "test",
        "book",
        "course",
        "teach",
        "flower",
    } == set(metadata.provides_extra or [])


def test_a_claim_of_runs_says_where_results_are_missing(started):
    """Nothing is looked for beside the package; `claims` says what to do, and calls no control refuted or not."""
    wheel, said = started
    status, out, err = said[4]
    assert status == 0, err
    where, _, line, counts = out.splitlines()
    assert where.startswith(str(wheel))
    assert counts == "1 unchecked"
    assert "waits for the paper-scale results of ssf/table2 ssf/table3 ssf/table4: run it in a clone" in line
    assert "NOT REFUTED" not in line


def test_it_works_without_the_extras(started):
    """Every module can be imported, a method runs, and what needs an extra says which."""
    status, out, err = started[1][5]
    assert status == 0, err
    for (_, status, said), line in zip(CALLS, out.splitlines(), strict=True):
        found, text = json.loads(line)
        assert found == status, text
        assert re.search(said, text), text
