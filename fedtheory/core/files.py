"""Files that are there whole or not at all, and JSON that carries its own SHA-256.

A sealed file is a JSON object whose last member is the SHA-256 of all bytes before that member, so every change of a
byte is seen. `python -m fedtheory.running.seal FILE...` seals JSON files that are not.
"""

import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None

from fedtheory.core import checks

_SEAL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\n\Z')
RESEAL = "look at it, then seal it: python -m fedtheory.running.seal {}"


class Broken(ValueError):
    """A sealed file that fails its checks; the message says how."""


def open_own(path: Path, flags: int) -> int:
    """Open a file of ours for writing, made where missing: the descriptor. Never through a link.

    Raises OSError for a link, a file with a second name, and what is no regular file.
    """
    flags |= os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would be waited for
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        descriptor = -1
    if descriptor >= 0:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
            return descriptor
        os.close(descriptor)
    raise OSError(errno.EEXIST, f"{path.name} is a link or no regular file", str(path))


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is written whole or not at all: a temporary one beside it, fsync, rename, fsync of the folder.

    A file that is replaced keeps its permissions. An OSError names the file.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(open_own(temporary, os.O_WRONLY | os.O_EXCL), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    except OSError as error:
        if error.filename is None:  # a full disk says no name
            error.filename = str(path)
        raise
    finally:
        if not temporary.is_symlink():  # that would be another's
            with suppress(FileNotFoundError, NotADirectoryError):  # renamed, or never made
                temporary.unlink()
    _sync(path.parent)


def write_atomic(path: Path, content: bytes) -> None:
    """Write a whole file or none, see `written`."""
    with written(path) as file:
        file.write(content)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process is in a block for this folder, where the system can lock files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def require_folder(folder: Path) -> None:
    """Check before any work that a folder can be made, or written into. Raises OSError otherwise."""
    folder = folder.absolute()
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        with tempfile.TemporaryDirectory(prefix=".fedtheory-probe-", dir=there):
            pass
    except OSError as error:
        _not_made(folder, error)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Make a new folder to write into, beside `folder`; at the end of the block it gets that name.

    Where the block raises it is removed, where the process is killed it is left. `folder` must be new or empty.

    Raises OSError where it cannot be made, or is no longer new or empty at the end.
    """
    folder = folder.absolute()
    if folder == Path.cwd():
        checks.reject("folder", str(folder), "another folder than the current one", "name a new one in it", OSError)
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
    except OSError as error:
        _not_made(folder, error)
    try:
        yield part
        for path in part.rglob("*"):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        _sync(part)
        try:
            os.rename(part, folder)
        except OSError as error:
            _not_made(folder, error)
    except BaseException:
        shutil.rmtree(part)
        raise


def _not_made(folder: Path, error: OSError) -> NoReturn:
    expected = f"a folder that can be made ({(error.strerror or str(error)).lower()})"
    checks.reject("folder", str(folder), expected, "name one where you may write", type(error))


def _sync(folder: Path) -> None:
    """Have the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _end_of_links(path: Path) -> Path | int:
    """The file at the end of a chain of links, or the number of the open file to which it leads (/dev/stdout)."""
    for _ in range(40):
        number = re.fullmatch(r"(?:/dev/fd|/proc/(?:self|thread-self|\d+)/fd)/(\d+)", str(path))
        if number:
            return int(number[1])
        if not path.is_symlink():
            return path
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def is_plain(value: str | Path) -> bool:
    """Return whether a file is regular and can be read back: no device, no pipe, no open file of this process."""
    end = _end_of_links(Path(value))
    return not isinstance(end, int) and end.is_file()


def require_target(name: str, value: str, *others: str | None) -> None:
    """Check before any work that `write_target` can write a file, which is none of the `others` that the command uses.

    Raises OSError otherwise.
    """
    path = Path(value)
    for other in others:
        special = path.exists() and not path.is_file()
        if other is not None and os.path.realpath(path) == os.path.realpath(other) and not special:
            expected = "a file that the command does not use otherwise"
            checks.reject(name, value, expected, f"choose another --{name}", OSError)
    try:
        end = _end_of_links(path)
        if isinstance(end, int):
            os.fstat(end)
            return
        if end.is_dir() or not value:
            checks.reject(
                name, value, "a file to write (this is a folder)", f"name a file in it with --{name}", OSError
            )
        if end.exists() and not os.access(end, os.W_OK):
            checks.reject(name, value, "a file that can be written to", f"choose another --{name}", OSError)
        if not end.exists() or end.is_file():  # replaced as a whole: by a new file in its folder
            with tempfile.TemporaryFile(dir=end.parent):
                pass
    except OSError as error:
        if error.strerror is None:
            raise
        expected = f"a file that can be written ({error.strerror})"
        checks.reject(name, value, expected, f"make its folder, or choose another --{name}", OSError)


def write_target(value: str | Path, content: bytes) -> None:
    """Write to a file that a user named: whole or not at all, and a link, device or pipe stays what it is."""
    end = _end_of_links(Path(value))
    if isinstance(end, int):
        sys.stdout.flush()
        left = memoryview(content)
        while left:
            left = left[os.write(end, left) :]
    elif end.exists() and not end.is_file():
        with open(end, "wb") as file:
            file.write(content)
    else:
        write_atomic(end, content)


def sha256(content: bytes | bytearray) -> str:
    """Return the SHA-256 of bytes, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def seal(value: dict[str, Any], indent: int | None = 1) -> bytes:
    """Write a JSON object with its SHA-256 as last member. A number that is not finite raises ValueError."""
    body = json.dumps(value, indent=indent, allow_nan=False).removesuffix("}").removesuffix("\n").encode()
    return body + f',\n "sha256": "{sha256(body)}"\n}}\n'.encode()


def unseal(content: bytes) -> dict[str, Any]:
    """Read a sealed file, without its SHA-256.

    Raises Broken for a changed byte, a file cut short, or one without a seal.
    """
    found = _SEAL.search(content)
    if found is None:
        raise Broken("it does not end in its SHA-256: cut short, changed, or never sealed")
    if sha256(content[: found.start()]) != found[1].decode():
        raise Broken("its SHA-256 does not match: a byte was changed")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is no JSON ({error})") from error
    del value["sha256"]
    return value


def misfit(value: Any, shape: Any, where: str = "") -> str | None:
    """Say what is wrong with a JSON value, or None.

    A shape is a type, a tuple of types, a function that raises ValueError or TypeError, a list of one shape (of every
    entry), or a dict of shapes (of members that must be there).
    """
    at = where or "it"
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{at} is {type(value).__name__}, not an object"
        for name, part in shape.items():
            if name not in value:
                return f"{at} has no {name!r}"
            if (wrong := misfit(value[name], part, f"{where}.{name}" if where else name)) is not None:
                return wrong
        return None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{at} is {type(value).__name__}, not a list"
        wrongs = (misfit(part, shape[0], f"{where}[{i}]") for i, part in enumerate(value))
        return next((wrong for wrong in wrongs if wrong is not None), None)
    if isinstance(shape, (type, tuple)):
        kinds = shape if isinstance(shape, tuple) else (shape,)
        fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        return None if fits else f"{at} is {str(value)[:40]!r}, not {' or '.join(kind.__name__ for kind in kinds)}"
    try:
        shape(value)
    except (ValueError, TypeError):
        return f"{at} is {str(value)[:40]!r}"
    return None


def plain(value: Any) -> Any:
    """Make a value JSON: a number that is not finite becomes "NaN" or "Infinity"."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def number(value: Any) -> float:
    """Turn what `plain` wrote back into a number. Raises ValueError where a file holds none."""
    return float(value)
