"""Checkpoints: written atomically, carrying their own SHA-256, loaded without pickle.

A file is a magic line, the SHA-256 of the rest, the length of a JSON header, the header, and NumPy's .npz of the
tensors. It is written beside its final name, flushed to disk and renamed, so a killed process leaves either the whole
file or none; the last two are kept, so a damaged one costs the rounds since the one before.
"""

import hashlib
import io
import json
import os
import re
import socket
import struct
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn
from weakref import WeakSet

try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None

import numpy as np
import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import State
from fedtheory.core.files import misfit, open_own, write_atomic
from fedtheory.core.key import Key
from fedtheory.core.message import Known, Seed
from fedtheory.running import private_rows

MAGIC = b"fedtheory checkpoint 1\n"
_KEEP = 2
_FILE = re.compile(r"round-\d{12}\.ckpt")
_LEFT = re.compile(rf"\.({_FILE.pattern}|{private_rows.NAME.pattern})\.[0-9a-f]{{16}}\.tmp")


def _part(value: Any) -> None:
    """Raises ValueError or TypeError for what is no part of a checkpoint."""
    part = private_rows.Part(*value)
    if misfit(part._asdict(), {"file": str, "sha256": str, "start": int, "stop": int}) or not part.start <= part.stop:
        raise ValueError


_HEADER = {"identity": str, "tree": list, "extra": {"round": int}}


class Damaged(Exception):
    """A checkpoint file that fails its checks."""


class Busy(OSError):
    """Another run uses the folder."""


class Foreign(ValueError):
    """The folder holds checkpoints of another run."""


class _Descriptor:
    """An open file that is closed with the last reference to it, and in every child that is forked.

    A child's copy would keep a lock when the one that took it is gone.
    """

    number: int = -1

    def __init__(self, path: Path) -> None:
        self.number = open_own(path, os.O_RDWR)
        _OPEN.add(self)

    def close(self) -> None:
        number, self.number = self.number, -1
        if number >= 0:
            os.close(number)

    __del__ = close


_OPEN: WeakSet[_Descriptor] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [one.close() for one in list(_OPEN)])


class Owned:
    """A folder that belongs to one `with` block at a time, of all processes and threads that ask for it here.

    The owner holds a lock on the file `.lock` in it (`flock`; on NFS the system asks the server for one). The system
    takes the lock back when the owner's process ends, however it ends, so a file that was left behind locks nothing and
    is used again. A child that is forked inside the block does not own the folder and does not keep it locked. Where
    the system has no such locks, nothing is owned, and a warning says so.

    Raises Busy, at once, while another holds it.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self._process = folder / ".lock", 0
        self._file: _Descriptor | None = None

    @property
    def held(self) -> bool:
        return self._file is not None and self._process == os.getpid()

    def __enter__(self) -> None:
        if self.held:
            self._refuse("this run")
        while True:
            try:
                file = _Descriptor(self.path)
            except OSError as error:
                _no_room(self.path.parent, error)
            if not self._lock(file.number):
                return
            if self._is_the_file(file.number):  # not one that its last owner has just taken away
                break
        try:
            os.ftruncate(file.number, 0)
            os.write(file.number, f"process {os.getpid()} on {socket.gethostname()}".encode())
        except OSError as error:
            self.path.unlink(missing_ok=True)
            _no_room(self.path.parent, error)
        self._file, self._process = file, os.getpid()

    def __exit__(self, *raised: object) -> None:
        if self.held:
            self.path.unlink(missing_ok=True)  # while it is locked: whoever opened it meanwhile sees that it is gone
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _lock(self, descriptor: int) -> bool:
        """Whether the lock is there; False where the system has none."""
        if fcntl is None:
            warnings.warn(f"{self.path.parent}: this system has no file locks; start no second run on it", stacklevel=4)
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._refuse(os.pread(descriptor, 200, 0).decode(errors="replace") or "another process")
        except OSError as error:
            text = f"{self.path.parent}: its file system has no locks ({error.strerror}); start no second run on it"
            warnings.warn(text, stacklevel=4)
            return False
        return True

    def _is_the_file(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _refuse(self, owner: str) -> None:
        expected = f"a folder that no other run is using ({owner} is)"
        checks.reject("checkpoint", str(self.path.parent), expected, "name another folder, or wait for it", Busy)


class Checkpoint:
    """The checkpoints of one run in one folder.

    Inside `with` the folder belongs to it, see `Owned`; `save` outside takes it for as long as it writes.

    Args:
        folder: made if missing.
        identity: what the run is; a folder that holds another run's checkpoints is refused.
        shards: this process's share of a sharded run: each process writes the private state that it keeps, the first
            one binds the parts. Any number of processes, also one without shards, goes on from it.
        parted: whether private state is written as a part in one process, too, without a copy of it in memory, whatever
            its size; above 64 MiB it always is.

    Raises OSError for a folder that cannot be written, Busy (one, too) for one that another run uses, Foreign (a
    ValueError) for checkpoints of another run.
    """

    @checks.arguments
    def __init__(self, folder: str | Path, identity: str, shards: Any = None, parted: bool = False) -> None:
        self.folder = checks.folder("checkpoint", folder)
        self.identity = identity
        self.shards, self.parted = shards, parted or shards is not None
        self._owned = Owned(self.folder)

    @property
    def _first(self) -> bool:
        """Whether this process binds the parts."""
        return self.shards is None or self.shards.rank == 0

    def __enter__(self) -> "Checkpoint":
        if self._first:
            self._owned.__enter__()
            for left in self.folder.glob(".round-*.tmp"):  # of a process that was killed while it wrote
                if _LEFT.fullmatch(left.name):
                    left.unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._first:
            self._owned.__exit__()

    def files(self) -> list[Path]:
        """Checkpoint files, newest first."""
        return sorted((path for path in self.folder.glob("round-*.ckpt") if _FILE.fullmatch(path.name)), reverse=True)

    def save(self, tree: tuple[State, Any], extra: dict[str, Any]) -> Path:
        """Write a state and what else belongs to the run (tensors, numbers, seeds, in tuples and dataclasses).

        Args:
            extra: JSON; it names "round".
        """
        try:
            if self._first and not self._owned.held:
                with self:
                    return self._save(tree, extra)
            return self._save(tree, extra)
        except Busy:
            raise
        except OSError as error:
            _no_room(self.folder, error)

    def _save(self, tree: tuple[State, Any], extra: dict[str, Any]) -> Path:
        state, rest = tree
        path = self.folder / f"round-{extra['round']:012d}.ckpt"
        if self.parted or private_rows.large(state.own):
            extra, state = extra | {"parts": self._save_rows(path, state.own)}, State(state.server, None)
            if not self._first:
                return path
        arrays: list[np.ndarray] = []
        header = {"identity": self.identity, "tree": _pack((state, rest), arrays), "extra": extra}
        text = json.dumps(header).encode()
        stream = io.BytesIO()
        np.savez(stream, *arrays)
        body = struct.pack("<Q", len(text)) + text + stream.getvalue()
        write_atomic(path, MAGIC + hashlib.sha256(body).digest() + body)
        for old in [file for file in self.files() if file.name <= path.name][_KEEP:]:  # later ones are damaged
            old.unlink()
        kept = {old.stem for old in self.files()}
        for part in self.folder.glob("round-*.rank-*-of-*.part"):
            if private_rows.NAME.fullmatch(part.name) and part.name.split(".")[0] not in kept:
                part.unlink()
        return path

    def _save_rows(self, path: Path, own: Any) -> list[private_rows.Part]:
        """Each process writes the private state that it keeps, into a file of its own. Returns all parts."""
        if self.shards is None:
            count = len(getattr(own, fields(own)[0].name)) if own is not None else 0
            return [private_rows.save(path.with_suffix(".rank-0-of-1.part"), own, 0, count)]
        at = self.shards
        name = path.with_suffix(f".rank-{at.rank}-of-{at.size}.part")
        part = private_rows.save(name, own, at.start, at.stop)
        return [private_rows.Part(*json.loads(text)) for text in at.all(json.dumps(part))]

    def load(
        self, template: tuple[State, Any], wrong: Callable[[dict[str, Any]], str | None] = lambda extra: None
    ) -> tuple[tuple[State, Any], dict[str, Any]] | None:
        """The newest undamaged checkpoint in the shape of `template`; None if there is none.

        Args:
            wrong: what is wrong with the `extra` of a checkpoint, or None; one with something wrong is damaged.

        Private state that was saved in parts, or is kept in parts now, is filled into the template's.
        A damaged file is named in a warning and passed over.
        """
        found, chosen = None, self.files()
        if self._first:
            found = self._newest(chosen, wrong)
        if self.shards is not None:
            (at,) = self.shards.broadcast([-1 if found is None else found[0]["extra"]["round"]])
            if at < 0:
                return None
            if found is None:
                found = self._read(self.folder / f"round-{int(at):012d}.ckpt")
        if found is None:
            return None
        header, arrays = found
        parts = header["extra"].pop("parts", None)
        if parts is None and not self.parted:
            return _unpack(template, header["tree"], arrays), header["extra"]
        (state, rest), start = template, 0 if self.shards is None else self.shards.start
        new, rest = _unpack((State(state.server, None), rest), header["tree"], arrays)
        if parts is not None:
            private_rows.load(self.folder, [private_rows.Part(*part) for part in parts], state.own, start)
        elif state.own is not None:
            for f in fields(state.own):
                leaf = getattr(state.own, f.name)
                try:
                    packed = header["tree"][0][1][f.name]
                except (LookupError, TypeError):
                    _misfit(state.own, header["tree"])
                own = _array(leaf, packed, arrays)[start : start + len(leaf)]
                _require_shape(own, leaf)
                leaf.copy_(own)
        return (State(new.server, state.own), rest), header["extra"]

    def _newest(
        self, paths: list[Path], wrong: Callable[[dict[str, Any]], str | None]
    ) -> tuple[dict[str, Any], list[np.ndarray]] | None:
        for path in paths:
            try:
                header, arrays = self._read(path)
                if header["identity"] != self.identity:
                    checks.reject(
                        "checkpoint",
                        str(self.folder),
                        f"checkpoints of this run ({self.identity})",
                        f"name another folder; this one holds {header['identity']}",
                        Foreign,
                    )
                extra = header["extra"]
                parts = [private_rows.Part(*part) for part in extra.get("parts", ())]
                if path.name != f"round-{extra['round']:012d}.ckpt":
                    raise Damaged(f"it is named for another round than its {extra['round']}")
                if any(part.start != before for part, before in zip(parts, [0, *(part.stop for part in parts)])):
                    raise Damaged("its parts leave out clients")
                for part in parts:
                    if not private_rows.whole(self.folder, part):
                        raise Damaged(f"{part.file} is not the file that was written")
                if (cause := wrong(extra)) is not None:
                    raise Damaged(cause)
            except Damaged as error:
                warnings.warn(f"checkpoint {path.name} is damaged ({error}); trying the one before", stacklevel=3)
                continue
            return header, arrays
        return None

    def _read(self, path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Damaged(f"it cannot be read: {error.strerror}") from error
        if content[: len(MAGIC)] != MAGIC:
            raise Damaged("its first line is not a checkpoint's")
        digest, body = content[len(MAGIC) : len(MAGIC) + 32], content[len(MAGIC) + 32 :]
        if hashlib.sha256(body).digest() != digest:
            raise Damaged("its SHA-256 does not match")
        try:
            (length,) = struct.unpack("<Q", body[:8])
            header = json.loads(body[8 : 8 + length])
        except (ValueError, RecursionError, struct.error) as error:
            raise Damaged(f"its header cannot be read: {error}") from error
        if (cause := misfit(header, _HEADER) or misfit(header["extra"].get("parts", []), [_part])) is not None:
            raise Damaged(f"its header is not a checkpoint's: {cause}")
        try:
            with np.load(io.BytesIO(body[8 + length :]), allow_pickle=False) as archive:
                arrays = [archive[f"arr_{i}"] for i in range(len(archive.files))]
            for array in arrays:
                torch.from_numpy(array)
        except Exception as error:  # whatever a file made on purpose may do to NumPy's reader
            raise Damaged(f"its tensors cannot be read: {' '.join(str(error).split())}") from error
        return header, arrays


def _no_room(folder: Path, error: OSError) -> NoReturn:
    """Raise an OSError that says what could not be written where."""
    expected = f"a folder that can be written ({error.strerror or error})"
    checks.reject("checkpoint", str(folder), expected, "make room there, or name another folder", OSError)


def copy_tree(tree: Any) -> Any:
    """The same tree with ordinary tensors, whatever mode its own were made in."""
    arrays: list[np.ndarray] = []
    packed = _pack(tree, arrays)
    return _unpack(tree, packed, [array.copy() for array in arrays])


def _pack(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, torch.Tensor):
        tree = tree.detach().cpu()
        arrays.append((tree.view(torch.int16) if tree.dtype == torch.bfloat16 else tree).numpy())  # NumPy lacks it
        return len(arrays) - 1
    if isinstance(tree, Seed):
        return [tree.key.seed, list(tree.key.path)]
    if isinstance(tree, Known) or tree is None:
        return None
    if isinstance(tree, (bool, int, float)):
        return tree
    if isinstance(tree, tuple):
        return [_pack(part, arrays) for part in tree]
    if is_dataclass(tree):
        return {f.name: _pack(getattr(tree, f.name), arrays) for f in fields(tree)}
    raise TypeError(f"{type(tree).__name__} cannot be checkpointed")


def _array(template: torch.Tensor, packed: Any, arrays: list[np.ndarray]) -> torch.Tensor:
    if type(packed) is not int or not 0 <= packed < len(arrays):
        _misfit(template, packed)
    loaded = torch.from_numpy(arrays[packed])
    return loaded.view(template.dtype) if (template.dtype, loaded.dtype) == (torch.bfloat16, torch.int16) else loaded


def _require_shape(loaded: torch.Tensor, template: torch.Tensor) -> None:
    if loaded.shape != template.shape or loaded.dtype != template.dtype:
        checks.reject("checkpoint", (tuple(loaded.shape), loaded.dtype), "this run's shapes", "name another folder")


def _misfit(template: Any, packed: Any) -> NoReturn:
    kept = f"{type(template).__name__} kept as {packed if packed is None else type(packed).__name__}"
    if isinstance(packed, dict):
        kept = f"{type(template).__name__} with {', '.join(packed)}"
    expected = "a state of the fields that this run's has"
    checks.reject("checkpoint", kept, expected, "name another folder, or undo the change of the state", Foreign)


def _unpack(template: Any, packed: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(template, torch.Tensor):
        loaded = _array(template, packed, arrays)
        _require_shape(loaded, template)
        return loaded.to(template.device)
    if isinstance(template, Seed):
        try:
            return replace(template, key=Key(packed[0], tuple(packed[1])))
        except (TypeError, ValueError, LookupError):
            _misfit(template, packed)
    if isinstance(template, Known) or template is None:
        return template
    if isinstance(template, (bool, int, float)):
        if not isinstance(packed, (bool, int, float)) or isinstance(packed, bool) != isinstance(template, bool):
            _misfit(template, packed)
        return packed
    if isinstance(template, tuple):
        if not isinstance(packed, list) or len(packed) != len(template):
            _misfit(template, packed)
        values = [_unpack(part, value, arrays) for part, value in zip(template, packed)]
        return getattr(template, "_make", tuple)(values)  # named tuples, as State is one, have it
    names = [f.name for f in fields(template)]
    if not isinstance(packed, dict) or list(packed) != names:
        _misfit(template, packed)
    return replace(template, **{name: _unpack(getattr(template, name), packed[name], arrays) for name in names})
