"""The wheel: what it holds, what it says of itself, and that it works without the extras."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("sympy", "z3", "PEPit", "clarabel", "transformers", "peft", "datasets", "jupyterlab", "nbval", "pytest")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, as `python -m build --wheel --no-isolation` builds it."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "fedtheory", tree / "fedtheory", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "notebooks", "figures", "docs"):
        (tree / name).mkdir()
        (tree / name / "one.py").write_text("")
    code = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=True)
    return tree / done.stdout.split()[-1]


def test_it_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "fedtheory").rglob("*.py*")}
    package = {name for name in package if "__pycache__" not in name}
    assert {name for name in names if ".dist-info/" not in name} == package


def test_its_metadata_are_valid(wheel):
    """As the package index checks them; the text of the README stands in it."""
    with zipfile.ZipFile(wheel) as archive:
        found = next(name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = Metadata.from_email(archive.read(found), validate=True)
    assert metadata.name == "fedtheory"
    assert metadata.description is not None
    assert metadata.description.strip() == (ROOT / "README.md").read_text().strip()
    assert metadata.description_content_type == "text/markdown"
    assert {"notebooks", "theory", "llm", "test", "book"} == set(metadata.provides_extra or [])


def test_it_works_without_the_extras(wheel, tmp_path):
    """Every module can be imported, a method runs, and what needs an extra says which."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    block = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
sys.path.insert(0, {str(tmp_path / "site")!r})
import fedtheory
assert fedtheory.__file__.startswith({str(tmp_path)!r}), fedtheory.__file__
for name in fedtheory.__all__:
    getattr(fedtheory, name)
from fedtheory.cli import main
"""
    for words, status, said in (
        (["list"], 0, "SSF"),
        (["run", "SSF", "matrix_regression", "--rounds", "3"], 0, "SSF"),
        (["claims", "ssf.lemma2"], 2, r"expected the packages that the checks use\. Fix: pip install .*\[theory\]"),
    ):
        code = f"{block}\nsys.exit(main({words!r}))"
        done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert re.search(said, done.stdout + done.stderr), done.stderr
        assert "Traceback" not in done.stderr
