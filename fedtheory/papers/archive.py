"""Finished runs in a few archives, `<out>/runs/<data or problem>.zip`, in the place of thousands of files.

python -m fedtheory.papers.archive [OUT]     packs the loose runs of OUT/.runs (default: figures/.runs)

A member is the sealed file of one run, under the name that it has as a loose file. A loose run comes before a packed
one of the same name, so a run that was made again counts until it is packed. The same runs give the same bytes.
"""

import argparse
import os
import re
import sys
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from fedtheory.core.files import Broken, unseal, write_atomic
from fedtheory.running.records import alone

RUN = "*-*.json"  # names of stored runs


@lru_cache(maxsize=64)
def _opened(path: Path, changed: int, size: int) -> zipfile.ZipFile:
    """An archive in memory: it stays whole when another process replaces the file."""
    return zipfile.ZipFile(BytesIO(path.read_bytes()))


def _open(path: Path) -> zipfile.ZipFile:
    at = path.stat()
    return _opened(path, at.st_mtime_ns, at.st_size)


def packed(out: Path) -> tuple[dict[str, Path], dict[Path, str]]:
    """The archive of each packed run, by the run's name; and of each archive that cannot be opened, why not."""
    found: dict[str, Path] = {}
    broken: dict[Path, str] = {}
    for path in _archives(out):
        try:
            found |= dict.fromkeys(_open(path).NameToInfo, path)
        except (OSError, zipfile.BadZipFile) as error:
            broken[path] = str(error)
    return found, broken


def _archives(out: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(out / "runs") as entries:
        return _paths(out / "runs", tuple(sorted(entry.name for entry in entries if entry.name.endswith(".zip"))))
    return []


@lru_cache(maxsize=64)
def _paths(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """Of the same names the same paths: a table reads thousands of runs, and looks for the archives at each."""
    return [folder / name for name in names]


def _member(path: Path, name: str) -> bytes:
    """One run's bytes in an archive. Raises Broken where they are damaged, KeyError where they are not in it."""
    archive = _open(path)
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise Broken(f"in {path.name}: {error}") from error


def read(out: Path, name: str) -> bytes:
    """A stored run's bytes, loose or packed. Raises FileNotFoundError where there is none, Broken at a damaged one."""
    with suppress(FileNotFoundError):
        return (out / ".runs" / name).read_bytes()
    for path in _archives(out):
        with suppress(OSError, zipfile.BadZipFile):
            if name in _open(path).NameToInfo:
                return _member(path, name)
    raise FileNotFoundError(name)


def names(out: Path) -> list[str]:
    """Names of all stored runs, loose or packed, in order."""
    return sorted({path.name for path in (out / ".runs").glob(RUN)} | set(packed(out)[0]))


def runs(out: Path) -> Iterator[dict[str, Any]]:
    """Every stored run of a folder of figures, loose or packed. Raises Broken at a damaged one."""
    return (unseal(read(out, name)) for name in names(out))


def _group(run: Mapping[str, Any]) -> str:
    """The archive that a run belongs to: by the data it reads, or by its problem."""
    words = run["words"]
    return re.sub(r"[^\w.-]", "_", str(words["options"].get("data") or words["problem"]))


def _zipped(members: Mapping[str, bytes]) -> bytes:
    """The bytes of an archive, which depend on its members alone."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, members[name], compresslevel=9)
    return stream.getvalue()


def pack(out: Path) -> tuple[int, list[str]]:
    """Move the loose runs of a folder of figures into its archives.

    Returns how many were moved, and the names of damaged ones, which stay. Raises Broken, before any work, where an
    archive is damaged: nothing is written in its place.
    """
    with alone(out):
        there, broken = packed(out)
        if broken:
            raise Broken("; ".join(f"{path} is damaged ({why})" for path, why in broken.items()))
        loose: defaultdict[Path, dict[str, bytes]] = defaultdict(dict)
        damaged = []
        for path in sorted((out / ".runs").glob(RUN)):
            try:
                content = path.read_bytes()
                loose[out / "runs" / f"{_group(unseal(content))}.zip"][path.name] = content
            except (ValueError, KeyError, TypeError, AttributeError):
                damaged.append(path.name)
        for archive, members in loose.items():
            archive.parent.mkdir(exist_ok=True)
            kept = {
                name: _member(path, name) for name, path in there.items() if path == archive and name not in members
            }
            write_atomic(archive, _zipped(kept | members))
            for name in members:
                (out / ".runs" / name).unlink()
    return sum(map(len, loose.values())), damaged


def main(words: list[str] | None = None) -> None:
    """Pack the loose runs of a folder and say how many."""
    parser = argparse.ArgumentParser(prog="python -m fedtheory.papers.archive", description="Pack loose runs.")
    parser.add_argument("out", nargs="?", type=Path, default=Path("figures"), help="folder of figures")
    out = parser.parse_args(words).out
    if not out.is_dir():
        sys.exit(f"archive: {out}: expected a folder of figures. Fix: name the folder that holds .runs")
    try:
        moved, damaged = pack(out)
    except Broken as error:
        sys.exit(f"archive: {error}. Fix: restore it, or move it away; its runs are then made again")
    print(f"{moved} runs packed into {out / 'runs'}")
    for name in damaged:
        print(f"left in {out / '.runs'}: {name} is damaged")


if __name__ == "__main__":
    main()
