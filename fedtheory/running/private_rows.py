"""Private rows on disk: memory-mapped while a run goes on, and as the processes' parts of a checkpoint.

A part is a magic line, the length of a JSON header, the header, and the bytes of the leaves' rows, one leaf after the
other. Its SHA-256 stands in the checkpoint that binds the parts, so it is one of that checkpoint's or it is damaged.
Nothing here holds more than `_PIECE` bytes of rows at a time.
"""

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import struct
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import numpy as np
import torch

from fedtheory.core import checks
from fedtheory.core.engine import map_leaves
from fedtheory.core.files import open_own, written

MAGIC = b"fedtheory rows 1\n"
NAME = re.compile(r"round-\d{12}\.rank-\d+-of-\d+\.part")
_PIECE = 64 * 2**20

T = TypeVar("T")


class Part(NamedTuple):
    """The rows of the clients from `start` up to `stop` in one file."""

    file: str
    sha256: str
    start: int
    stop: int


def mapped(row: T, folder: Path, rows: int) -> T:
    """A dataclass of tensors with so many rows, each leaf in a file that is mapped into memory.

    The system reads and writes what is used, so it may be larger than the memory. The files have no name once they are
    open: they are gone with the process, however it ends. Rows take room once they are written, and where there is none
    left the system ends the process (SIGBUS): a warning says so where all rows would not find room.

    Args:
        row: leads with 1: with what every client starts.
        folder: where there is room.
    """

    leaves = [getattr(row, f.name) for f in fields(cast(Any, row))] if is_dataclass(row) else []
    needed, free = rows * sum(leaf[0].nbytes for leaf in leaves), shutil.disk_usage(folder).free
    if needed > free:
        text = f"{needed / 2**30:.3g} GiB of private state, and {free / 2**30:.3g} GiB free in {folder}"
        end = "rows that no round touches take no room, but a disk that is full ends the process without a word"
        warnings.warn(f"memory_map: {text}: {end}. Fix: name a folder on a disk with room", stacklevel=2)

    def leaf_of(start: torch.Tensor) -> torch.Tensor:
        path = folder / f".rows-{secrets.token_hex(8)}"
        count = rows * start[0].numel()
        size = count * start.element_size()
        try:
            with os.fdopen(open_own(path, os.O_WRONLY | os.O_EXCL), "wb") as file:
                file.truncate(max(size, 1))
            data = torch.from_file(str(path), shared=True, size=count, dtype=start.dtype).view(rows, *start.shape[1:])
        except (OSError, RuntimeError) as error:
            fix = "name a folder on a disk with room"
            checks.reject("memory_map", str(folder), f"room for {size / 2**30:.3g} GiB ({error})", fix, OSError)
        finally:
            path.unlink(missing_ok=True)
        if bool((start != 0).any()):  # a new file holds zeros
            data.copy_(start.expand_as(data))
        return data

    return map_leaves(leaf_of, row)


def _bytes(leaf: torch.Tensor) -> bytes:
    return leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _pieces(leaf: torch.Tensor) -> range:
    """The first rows of slices of at most `_PIECE` bytes."""
    each = max(1, leaf[:1].numel() * leaf.element_size())
    return range(0, len(leaf), max(1, _PIECE // each))


def large(own: Any) -> bool:
    """Whether it takes more bytes than are held here at a time."""
    return own is not None and sum(getattr(own, f.name).nbytes for f in fields(own)) > _PIECE


def save(path: Path, own: Any, start: int, stop: int) -> Part:
    """Write the rows of the clients from `start` up to `stop`, whole or not at all."""
    leaves = [] if own is None else [(f.name, getattr(own, f.name)) for f in fields(own)]
    shapes = [[name, str(leaf.dtype), list(leaf.shape)] for name, leaf in leaves]
    header = json.dumps({"start": start, "stop": stop, "leaves": shapes}).encode()
    digest = hashlib.sha256()
    with written(path) as file:

        def put(content: bytes) -> None:
            digest.update(content)
            file.write(content)

        put(MAGIC + struct.pack("<Q", len(header)) + header)
        for _, leaf in leaves:
            pieces = _pieces(leaf)
            for first in pieces:
                put(_bytes(leaf[first : first + pieces.step]))
    return Part(path.name, digest.hexdigest(), start, stop)


def whole(folder: Path, part: Part) -> bool:
    """Whether a part's file is there, in the folder, has its SHA-256, and holds the rows that it says."""
    if not NAME.fullmatch(part.file):
        return False
    try:
        with open(folder / part.file, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != part.sha256:
                return False
            _, held = _leaves(file, part)
            return file.tell() + sum(held) == file.seek(0, os.SEEK_END)
    except (OSError, ValueError, TypeError, LookupError, RecursionError, AttributeError, struct.error):
        return False


def _leaves(file: BinaryIO, part: Part) -> tuple[list[tuple[str, str, list[int]]], list[int]]:
    """Name, type and shape of each leaf of a part, and its bytes; the file stands at the first row then."""
    file.seek(len(MAGIC))
    (length,) = struct.unpack("<Q", file.read(8))
    leaves, held = json.loads(file.read(length))["leaves"], []
    for _, dtype, shape in leaves:
        if shape[0] != part.stop - part.start or min(shape) < 0:
            raise ValueError
        held.append(math.prod(shape) * getattr(torch, dtype.removeprefix("torch.")).itemsize)
    return leaves, held


def load(folder: Path, parts: list[Part], own: Any, start: int) -> None:
    """Fill `own`, the rows of the clients from `start` on, from the parts that hold them.

    Raises ValueError for rows of another run.
    """
    if own is None:
        return
    names, fix = [f.name for f in fields(own)], "name another folder"
    if not parts or parts[-1].stop < start + len(getattr(own, names[0])):
        checks.reject("checkpoint", [part.file for part in parts], "the rows of all clients", fix)
    for part in parts:
        with open(folder / part.file, "rb") as file:
            leaves, _ = _leaves(file, part)
            at = file.tell()
        if [name for name, *_ in leaves] != names:
            checks.reject("checkpoint", part.file, f"rows of {', '.join(names)}", fix)
        for name, dtype, shape in leaves:
            leaf = getattr(own, name)
            if (dtype, shape[1:]) != (str(leaf.dtype), list(leaf.shape[1:])):
                checks.reject("checkpoint", (name, dtype, shape), "this run's shapes", fix)
            first, last = max(start, part.start), min(start + len(leaf), part.stop)
            each = leaf[:1].numel() * leaf.element_size()
            if first < last and each:
                rows = np.memmap(folder / part.file, np.uint8, "r", at, (shape[0], each))
                pieces = _pieces(leaf)
                for a in range(first, last, pieces.step):
                    b = min(a + pieces.step, last)
                    raw = torch.from_numpy(np.array(rows[a - part.start : b - part.start]))
                    leaf[a - start : b - start] = raw.view(leaf.dtype).view(b - a, *leaf.shape[1:]).to(leaf.device)
            at += shape[0] * each
