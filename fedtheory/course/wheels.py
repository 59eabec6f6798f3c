"""A folder of wheels, from which a room without a network installs the package."""

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedtheory.core import checks
from fedtheory.core.files import require_folder
from fedtheory.course.course import home


def save(folder: str | Path, extras: Sequence[str] = ("course",)) -> list[Path]:
    """Put the wheels of the package, of its extras and of all that they need into a folder, and return their paths.

    They are for this kind of machine and this version of Python. Called on another kind with the same folder, it adds
    that one's. pip fetches them, at the versions of constraints.txt; the package is built from the clone.

    Raises FileNotFoundError outside of a clone, ValueError for an extra that does not exist, OSError where pip fails.
    """
    out, root = checks.path("folder", folder).absolute(), home()
    known = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra in extras:
        checks.choice("extra", extra, tuple(known))
    require_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(out)]
    words += ["--constraint", str(root / "constraints.txt"), f"{root}[{','.join(extras)}]"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = next((line for line in reversed(done.stderr.splitlines()) if line.startswith("ERROR")), "it failed")
        expected, fix = f"wheels from pip ({said})", "see that the network is there, and run the command again"
        checks.reject("folder", str(folder), expected, fix, OSError)
    return sorted(out.glob("*.whl"))


def command(folder: str | Path, extras: Sequence[str] = ("course",)) -> str:
    """What installs from the folder alone, in any shell."""
    return f'python -m pip install --no-index --find-links "{folder}" "fedtheory[{",".join(extras)}]"'
