"""Images in their publishers' formats, and partitions of the samples among clients.

`load("digits")` needs no file. The other sets are read from the folder named by the argument or by FEDTHEORY_DATA, in
the files as published: MNIST and Fashion-MNIST (IDX, gzip or plain), CIFAR-10 and CIFAR-100 (binary; the Python version
without running its pickle), SVHN (.mat), Tiny-ImageNet (JPEGs). A file that is damaged, short or of another set raises
`DataError` with file, byte and cause.

Pixels have no checksum in most formats, so a changed byte shows only by a digest of the whole. Where the publisher's
is known, content is verified, once per file and process; a folder's own SHA256SUMS (`sha256sum * > SHA256SUMS`) vouches
for any other copy; what nothing vouches for is "unverified" (`Images.verified`). The digest of what was read goes into
the record of a run, so that a later change is seen as other data (`origin`).
"""

import hashlib
import io
import math
import os
import pickle
import pickletools
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from fedtheory.core import checks
from fedtheory.core.key import Key

FETCH = "fetch the file again from its publisher"
Arrays = tuple[np.ndarray, np.ndarray]  # x uint8 (n, channels, height, width), y (n,)


class DataError(ValueError):
    """A data file that is not what its name says. Attributes: path, offset (in bytes), cause, fix."""

    def __init__(self, path: Path | str, offset: int, cause: str, fix: str = FETCH) -> None:
        super().__init__(str(path), int(offset), cause, fix)
        self.path, self.offset, self.cause, self.fix = self.args

    def __str__(self) -> str:
        where = "" if self.cause.startswith("line ") else f", byte {self.offset}"
        return f"{self.path}{where}: {self.cause}. Fix: {self.fix}"


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images, kept as bytes; `floats` normalises those that are asked for.

    Fields:
        x: uint8, (n, channels, height, width).
        y: int64, (n,), indices into `classes`.
        classes: names of the labels.
        name: of the data set and split.
        mean, std: per channel, on the scale from 0 to 1; another normalisation is `dataclasses.replace`.
        missing: published files that were not there (`load(..., partial=True)`).
        verified: what vouches for the files' content: "published" (the publisher's digests), "SHA256SUMS" (beside the
            files), "packaged" (a library brings them), "copy: ..." (a known one that differs), or "unverified".
    """

    x: torch.Tensor
    y: torch.Tensor
    classes: tuple[str, ...]
    name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    missing: tuple[str, ...] = ()
    verified: str = "unverified"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of shape, images and labels, whatever files they came from (64 hex digits)."""
        found = hashlib.sha256(repr(tuple(self.x.shape)).encode())
        for part in (self.x, self.y):
            found.update(np.ascontiguousarray(part.cpu().numpy()).data)
        return found.hexdigest()

    @property
    def origin(self) -> dict[str, Any]:
        """What was read, for the record of a run."""
        return {
            "sha256": self.digest,
            "images": len(self),
            "verified": self.verified,
            "missing": list(self.missing),
        }

    def __post_init__(self) -> None:
        x, y = self.x, self.y
        if x.dtype != torch.uint8 or x.dim() != 4 or len(x) == 0:
            found = f"{x.dtype} {tuple(x.shape)}"
            checks.reject("x", found, "bytes (n, channels, height, width)", "pass a uint8 tensor of that shape")
        if y.dtype != torch.int64 or y.shape != x.shape[:1]:
            checks.reject("y", f"{y.dtype} {tuple(y.shape)}", f"int64 ({len(x)},)", "pass one label per image")
        if int(y.min()) < 0 or int(y.max()) >= len(self.classes):
            span = f"labels {int(y.min())} to {int(y.max())}"
            checks.reject("y", span, f"labels from 0 to {len(self.classes) - 1}", "name every class")
        if not len(self.mean) == len(self.std) == x.shape[1] or min(self.std) <= 0:
            expected = f"{x.shape[1]} means and as many positive deviations"
            checks.reject("mean, std", (self.mean, self.std), expected, "pass one pair per channel")

    def __len__(self) -> int:
        return len(self.y)

    def floats(self, index: torch.Tensor | slice = slice(None), dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """The images at `index`, (x / 255 - mean) / std per channel: (len, channels, height, width)."""
        mean, std = (255 * torch.tensor(v, dtype=dtype).view(-1, 1, 1) for v in (self.mean, self.std))
        return self.x[index].to(dtype).sub_(mean).div_(std)


# What every file goes through.

BLOCK, LIMIT = 1 << 16, 1 << 30  # bytes decompressed at a time; of a file, and of what it decompresses to


def content_of(path: Path) -> bytearray:
    """The bytes of a regular file, refused by its size before it is read where no data file is that large."""
    try:
        if path.exists() and not path.is_file():
            raise DataError(path, 0, "is not a regular file", "put the published file in its place")
        if (size := path.stat().st_size) > LIMIT:
            raise DataError(path, LIMIT, f"the file has {size} bytes, more than {LIMIT}: no published file is so large")
        return bytearray(path.read_bytes())
    except OSError as error:
        raise DataError(path, 0, f"cannot be read ({error.strerror})", "check that it is there and readable") from error


def _read(path: Path) -> bytearray:
    """The bytes of a regular, non-empty file that is no web page."""
    raw = content_of(path)
    if not raw:
        raise DataError(path, 0, "the file is empty")
    if raw[:64].lstrip().startswith(b"<"):  # no format here begins with "<"
        raise DataError(path, 0, "a web page was saved under this name")
    return raw


def _require_labels(path: Path, y: np.ndarray, low: int, high: int, start: int, stride: int = 1) -> None:
    """Labels in [low, high]; label i stands at byte start + i stride."""
    bad = np.flatnonzero((y < low) | (y > high))
    if len(bad):
        at = int(bad[0])
        raise DataError(path, start + at * stride, f"label {y[at]} of image {at} is not within {low} to {high}")


def _require_count(path: Path, found: int, published: int | None, offset: int, what: str = "images") -> None:
    """At least one; as many as published, where that is asked for."""
    if published is not None and found != published:
        raise DataError(
            path, offset, f"{found} {what}, published are {published}", f"{FETCH}, or pass official=False for a subset"
        )
    if found == 0:
        raise DataError(path, offset, f"no {what}")


Declared = Callable[[bytearray], int]  # the beginning of some content -> the length that it declares


def _inflate(path: Path, raw: bytearray, start: int, end: int, what: str, head: int, declared: Declared) -> bytearray:
    """The content of raw[start:end], one whole gzip or zlib stream with its checksum verified and nothing behind it.

    Its first `head` bytes declare its length; what is longer, or would be too long, is not decompressed.
    """
    stream, content, at, limit = zlib.decompressobj(wbits=47), bytearray(), start, None
    while at < end and not stream.eof:
        part = raw[at : min(at + BLOCK, end)]
        while True:
            room = head - len(content) if limit is None else limit + 1 - len(content)
            try:
                some = stream.decompress(part, room)
            except zlib.error as error:
                raise DataError(path, at, f"{what} is damaged within {BLOCK} bytes from here ({error})") from error
            content += some
            part = stream.unconsumed_tail
            if limit is None and (len(content) == head or stream.eof):
                limit = declared(content)
                if limit > LIMIT:
                    raise DataError(path, at, f"{what} declares {limit} bytes, more than {LIMIT}")
            if limit is not None and len(content) > limit:
                raise DataError(path, at, f"{what} holds more than the {limit} bytes that it declares")
            if stream.eof or (not part and len(some) < room):
                break
        at = min(at + BLOCK, end)
    if not stream.eof:
        raise DataError(path, end, f"the file is short: {what} has no end")
    if stream.unused_data:
        raise DataError(path, at - len(stream.unused_data), f"bytes follow the end of {what}")
    return content


# IDX: MNIST and Fashion-MNIST.

IDX_MAGIC = {0x801: "labels", 0x803: "images"}


def _idx_end(where: Path, raw: bytearray, magic: int, shape: tuple[int, ...], count: int | None) -> int:
    """Where the content ends by its header: magic number, sizes as big-endian words."""
    start = 4 * (2 + len(shape))
    found = int.from_bytes(raw[:4], "big")
    if found != magic:
        other = f", that of {IDX_MAGIC[found]}: are the files exchanged?" if found in IDX_MAGIC else ""
        raise DataError(where, 0, f"magic number {found:#010x}{other} instead of {magic:#010x} ({IDX_MAGIC[magic]})")
    if len(raw) < start:
        raise DataError(where, len(raw), f"the file is short: its header has {start} bytes")
    n, *sizes = struct.unpack_from(f">{1 + len(shape)}I", raw, 4)
    if tuple(sizes) != shape:
        raise DataError(where, 8, f"images of size {tuple(sizes)} instead of {shape}")
    _require_count(where, n, count, 4, IDX_MAGIC[magic])
    return start + n * math.prod(shape)


def _idx_raw(path: Path, magic: int, shape: tuple[int, ...], count: int | None) -> tuple[Path, bytearray]:
    """The decompressed content of an IDX file, and what to call it."""
    raw = _read(path)
    if not raw.startswith(b"\x1f\x8b"):
        return path, raw
    where, head = Path(f"{path} (decompressed)"), 4 * (2 + len(shape))
    end = lambda content: BLOCK + _idx_end(where, content, magic, shape, count)
    return where, _inflate(path, raw, 0, len(raw), "the gzip stream", head, end)


def _idx(path: Path, magic: int, shape: tuple[int, ...], count: int | None) -> np.ndarray:
    """An IDX file of bytes (n, *shape)."""
    where, raw = _idx_raw(path, magic, shape, count)
    start, end = 4 * (2 + len(shape)), _idx_end(where, raw, magic, shape, count)
    n = (end - start) // math.prod(shape)
    if len(raw) < end:
        raise DataError(where, len(raw), f"the file is short: {n} {IDX_MAGIC[magic]} end at byte {end}")
    if len(raw) > end:
        raise DataError(where, end, f"{len(raw) - end} bytes follow the last of {n} {IDX_MAGIC[magic]}")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(n, *shape)


IDX_FILES: dict[str, tuple[int, tuple[int, ...]]] = {"images": (0x803, (28, 28)), "labels": (0x801, ())}


def read_idx(paths: Sequence[Path], classes: int, count: int | None) -> Arrays:
    """Image file and label file of MNIST or Fashion-MNIST, 28 x 28."""
    images, labels = paths
    x, y = _idx(images, *IDX_FILES["images"], count), _idx(labels, *IDX_FILES["labels"], count)
    if len(x) != len(y):
        raise DataError(labels, 4, f"{len(y)} labels for the {len(x)} images of {images.name}")
    _require_labels(labels, y, 0, classes - 1, 8)
    return x[:, None], y


# CIFAR, binary version: records of labels and 3072 bytes.


def read_cifar_binary(paths: Sequence[Path], classes: int, count: int | None) -> Arrays:
    """Batches of <label><pixels> (CIFAR-10) or <coarse label><fine label><pixels> (CIFAR-100)."""
    label_ranges = (9,) if classes == 10 else (19, classes - 1)
    head = len(label_ranges)
    length = head + 3072
    batches = []
    for path in paths:
        raw = _read(path)
        n, rest = divmod(len(raw), length)
        if rest:
            raise DataError(path, n * length, f"{rest} bytes left after {n} records of {length} bytes")
        records = np.frombuffer(raw, np.uint8).reshape(n, length)
        for place, high in enumerate(label_ranges):
            _require_labels(path, records[:, place], 0, high, place, length)
        _require_count(path, n, count, len(raw))
        batches.append(records)
    _require_distinct(paths, batches)
    x, y = (np.concatenate([batch[:, part] for batch in batches]) for part in (slice(head, None), head - 1))
    return x.reshape(-1, 3, 32, 32), y


def _require_distinct(paths: Sequence[Path], batches: Sequence[np.ndarray]) -> None:
    """No batch is a copy of another."""
    for i, batch in enumerate(batches):
        for j in range(i):
            if np.array_equal(batches[j], batch):
                raise DataError(paths[i], 0, f"holds the same images as {paths[j].name}")


# CIFAR, Python version: a pickle of a dict with a list of labels and an array of bytes (n, 3072).

PICKLE_NAMES = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
PICKLE_OPCODES = """PROTO FRAME STOP MARK EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE
TUPLE TUPLE1 TUPLE2 TUPLE3 NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG1 STRING BINSTRING SHORT_BINSTRING
BINUNICODE SHORT_BINUNICODE BINBYTES SHORT_BINBYTES PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL
STACK_GLOBAL REDUCE BUILD"""


class _Piece:
    """Stands for NumPy's names in a pickle: it records what it is given and does nothing."""

    def __init__(self, *given: Any) -> None:
        self.given, self.state = given, ()

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """Every global of an array's pickle becomes a `_Piece`; any other is refused."""

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in PICKLE_NAMES:
            raise pickle.UnpicklingError(f"names {module}.{name}, which is no piece of an array")
        return _Piece


def _unpickle(path: Path, raw: bytearray) -> Any:
    """Dicts, lists, strings, integers and `_Piece`s; nothing in the file is called."""
    content, at, allowed = bytes(raw), 0, frozenset(PICKLE_OPCODES.split())
    opcodes: Iterator[tuple[Any, Any, Any]] = pickletools.genops(content)
    try:
        for before, (opcode, argument, at) in enumerate(opcodes):
            if opcode.name not in allowed:
                raise DataError(path, at, f"pickle opcode {opcode.name}, which no array needs")
            if opcode.name.endswith("PUT") and not 0 <= int(argument) <= before:  # a memo that long would be allocated
                raise DataError(path, at, f"memo index {argument} beyond the {before} opcodes before it")
            if opcode.name == "GLOBAL" and tuple(argument.split(" ")) not in PICKLE_NAMES:
                raise DataError(path, at, f"names {argument.replace(' ', '.')}, which is no piece of an array")
    except DataError:
        raise
    except Exception as error:
        raise DataError(path, at, f"the pickle breaks off or is damaged after this opcode ({error})") from error
    if at + 1 != len(content):
        raise DataError(path, at + 1, "bytes follow the end of the pickle")
    stream = io.BytesIO(content)
    try:
        return _Unpickler(stream, encoding="bytes").load()
    except Exception as error:
        raise DataError(path, stream.tell(), f"no valid pickle of an array ({error})") from error


def _array(path: Path, piece: Any, at: int) -> np.ndarray:
    """The bytes (n, 3072) that a pickled array holds."""
    if not isinstance(piece, _Piece):
        raise DataError(path, at, f"'data' is a {type(piece).__name__}, not an array")
    match piece.state:
        case (1, (int(n), 3072), _Piece(given=(b"u1" | "u1", *_)), False, bytes(raw)) if len(raw) == n * 3072:
            return np.frombuffer(bytearray(raw), np.uint8).reshape(n, 3072)
        case (1, shape, _Piece(given=(code, *_)), fortran, content):
            held = f"{len(content)} bytes" if isinstance(content, bytes) else f"a {type(content).__name__}"
            order = "column" if fortran else "row"
            found = f"shape {shape}, type {code!r}, {order} order, {held}"
            raise DataError(path, at, f"'data' has {found}; expected (n, 3072) bytes row by row")
    raise DataError(path, at, "'data' is not the state of an array")


def read_cifar_python(paths: Sequence[Path], classes: int, count: int | None) -> Arrays:
    """Batches of CIFAR-10's or CIFAR-100's Python version; pickles are read, never run."""
    key = b"labels" if classes == 10 else b"fine_labels"
    batches, labels = [], []
    for path in paths:
        raw = _read(path)
        if raw[0] != 0x80:
            raise DataError(path, 0, f"first byte {raw[0]:#04x} instead of 0x80: no pickle of protocol 2 or later")
        batch = _unpickle(path, raw)
        for name in (b"data", key):
            if not isinstance(batch, dict) or name not in batch:
                what = sorted(map(repr, batch)) if isinstance(batch, dict) else f"a {type(batch).__name__}"
                raise DataError(path, 0, f"no {name.decode()!r} in it; it is or has {what}")
        at, y = raw.find(key), batch[key]
        x = _array(path, batch[b"data"], raw.find(b"data"))
        if not isinstance(y, list) or any(type(label) is not int for label in y):
            raise DataError(path, at, f"{key.decode()!r} is not a list of integers")
        for i, label in enumerate(y):
            if not 0 <= label < classes:
                raise DataError(path, at, f"label {label} of image {i} is not within 0 to {classes - 1}")
        if len(y) != len(x):
            raise DataError(path, at, f"{len(y)} labels for {len(x)} images")
        _require_count(path, len(x), count, at)
        batches.append(x)
        labels.append(np.array(y, np.int64))
    _require_distinct(paths, batches)
    return np.concatenate(batches).reshape(-1, 3, 32, 32), np.concatenate(labels)


# SVHN: a MATLAB 5 file with X (32, 32, 3, n) and y (n, 1), where label 10 is the digit 0. Read here and not by SciPy,
# whose reader takes the whole process down (a segmentation fault) at some damaged files.

MAT_BYTES, MAT_INTS, MAT_VARIABLE, MAT_COMPRESSED = 2, 5, 14, 15  # types of elements


def _mat_element(where: Path, raw: bytearray, at: int, order: str) -> tuple[int, int, int]:
    """Type, start and end of the element at `at`; up to 4 bytes may stand in the second half of its 8-byte head."""
    if at + 8 > len(raw):
        raise DataError(where, at, f"{len(raw) - at} bytes where an element's head of 8 should be")
    kind, size = struct.unpack_from(f"{order}2I", raw, at)
    start = at + 8
    if kind >> 16:
        kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
    if start + size > len(raw) or (start == at + 4 and size > 4):
        raise DataError(where, len(raw), f"the file is short: the element at byte {at} has {size} bytes")
    return kind, start, start + size


@dataclass(frozen=True)
class _Variable:
    """Where it is in the file; its shape; the type and the bytes of its values, which start at `start` of `where`."""

    at: int
    shape: tuple[int, ...]
    kind: int
    values: np.ndarray
    start: int
    where: Path


def _mat_variables(path: Path, raw: bytearray, most: int) -> dict[str, _Variable]:
    """The variables of a file by name; none is larger than `most` bytes."""

    def declared(content: bytearray) -> int:
        size = struct.unpack_from(f"{order}I", content, 4)[0] if len(content) >= 8 else 0
        if size > most:
            raise DataError(where, 4, f"the variable declares {size} bytes, more than {most}")
        return size + BLOCK

    if not raw.startswith(b"MATLAB 5.0 MAT-file"):
        raise DataError(path, 0, "no MATLAB 5 file (its first bytes do not say so)")
    order = {b"IM": "<", b"MI": ">"}.get(bytes(raw[126:128]))
    if order is None:
        raise DataError(path, min(126, len(raw)), f"byte-order mark {bytes(raw[126:128])!r} instead of b'IM' or b'MI'")
    variables, at = {}, 128
    while at < len(raw):
        kind, start, stop = _mat_element(path, raw, at, order)
        where, body, end = path, raw[:stop], stop
        if kind == MAT_COMPRESSED:
            where = Path(f"{path} (variable from byte {at}, decompressed)")
            body = _inflate(path, raw, start, stop, "the variable", 8, declared)
            kind, start, end = _mat_element(where, body, 0, order)
        if kind != MAT_VARIABLE or end != len(body):
            raise DataError(where, start - 8, f"element of type {kind} where a variable ({MAT_VARIABLE}) should be")
        parts = []  # flags, shape, name, values; each starts at a multiple of 8 bytes
        for _ in range(4):
            part = _mat_element(where, body, start, order)
            parts.append(part)
            start += -(-(part[2] - start) // 8) * 8
        _, (ints, low, high), (_, *name), (kind, first, last) = parts
        if ints != MAT_INTS or (high - low) % 4:
            raise DataError(where, low, "a variable's shape is not a list of integers")
        shape = tuple(np.frombuffer(body[low:high], f"{order}i4").tolist())
        values = np.frombuffer(body, np.uint8, last - first, first)
        variables[body[slice(*name)].decode("latin1")] = _Variable(at, shape, kind, values, first, where)
        at = stop
    return variables


def read_svhn(paths: Sequence[Path], classes: int, count: int | None) -> Arrays:
    """SVHN's cropped digits."""
    (path,) = paths
    variables = _mat_variables(path, _read(path), LIMIT if count is None else 3072 * count + 2 * BLOCK)
    for name, expected in (("X", "(32, 32, 3, n)"), ("y", "(n, 1)")):
        if name not in variables:
            raise DataError(path, 128, f"no variable {name!r}; it has {sorted(variables)}")
        v = variables[name]
        fits = v.shape[:-1] == (32, 32, 3) if name == "X" else v.shape[1:] == (1,)
        if not fits or v.kind != MAT_BYTES or len(v.values) != math.prod(v.shape):
            found = f"shape {v.shape}, {len(v.values)} bytes of type {v.kind}"
            raise DataError(path, v.at, f"{name} has {found}; expected {expected} bytes (type {MAT_BYTES})")
    X, y = variables["X"], variables["y"]
    x = X.values.reshape(-1, 3, 32, 32)  # stored column by column: the axes come out reversed
    if len(x) != len(y.values):
        raise DataError(path, y.at, f"{len(y.values)} labels for {len(x)} images")
    _require_labels(y.where, y.values, 1, classes, y.start)
    _require_count(path, len(x), count, X.at)
    return np.ascontiguousarray(x.swapaxes(2, 3)), y.values % classes


# Tiny-ImageNet: wnids.txt names the classes; a folder of JPEGs per class, or one folder and val_annotations.txt.


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text file, each with the byte at which it starts."""
    lines, at = [], 0
    for line in bytes(_read(path)).splitlines(keepends=True):
        try:
            lines.append((at, line.decode("ascii").rstrip("\r\n")))
        except UnicodeDecodeError as error:
            raise DataError(path, at + error.start, "not a text file: a byte beyond ASCII") from error
        at += len(line)
    return lines


def _jpeg(path: Path) -> np.ndarray:
    """(3, 64, 64); grey images become three equal channels."""
    raw = _read(path)
    if not raw.startswith(b"\xff\xd8"):
        raise DataError(path, 0, f"first bytes {bytes(raw[:2])!r}: no JPEG")
    if b"\xff\xd9" not in raw:
        raise DataError(path, len(raw), "the file is short: no end-of-image marker")
    stream = io.BytesIO(raw)
    try:
        with Image.open(stream, formats=("JPEG",)) as picture:
            if picture.size != (64, 64):
                raise DataError(path, stream.tell(), f"an image of size {picture.size} instead of (64, 64)")
            return np.asarray(picture.convert("RGB")).transpose(2, 0, 1)
    except DataError:
        raise
    except Exception as error:
        raise DataError(path, stream.tell(), f"the JPEG is damaged ({error})") from error


def read_tiny_imagenet(paths: Sequence[Path], classes: int, count: int | None) -> Arrays:
    """wnids.txt and the folder `train` (class by class) or `val` (in the order of val_annotations.txt)."""
    wnids, folder = paths
    label: dict[str, int] = {}
    for at, line in _lines(wnids):
        if len(line) != 9 or line[0] != "n" or not line[1:].isdigit():
            raise DataError(wnids, at, f"{line[:40]!r} is no class name such as n01443537")
        if line in label:
            raise DataError(wnids, at, f"class {line} stands here a second time")
        label[line] = len(label)
    if len(label) > classes or (count is not None and len(label) != classes):
        raise DataError(wnids, 0, f"{len(label)} classes, published are {classes}")
    read = _training_files if folder.name == "train" else _validation_files
    files = read(folder, label, count)
    x = np.empty((len(files), 3, 64, 64), np.uint8)
    for i, (path, _) in enumerate(files):
        x[i] = _jpeg(path)
    return x, np.array([y for _, y in files])


def _training_files(folder: Path, label: dict[str, int], count: int | None) -> list[tuple[Path, int]]:
    """<wnid>/images/<wnid>_<k>.JPEG of every class."""
    files: list[tuple[Path, int]] = []
    for wnid, y in label.items():
        images = folder / wnid / "images"
        if not images.is_dir():
            raise DataError(images, 0, f"no such folder, and wnids.txt names {wnid}", "unpack the archive again")
        found = sorted(images.iterdir())
        for path in found:
            if path.suffix != ".JPEG" or not path.name.startswith(f"{wnid}_"):
                raise DataError(path, 0, f"does not belong among the images of {wnid}", "remove it")
        _require_count(images, len(found), count, 0)
        files += [(path, y) for path in found]
    for path in sorted(folder.iterdir()):
        if path.name not in label:
            raise DataError(path, 0, "wnids.txt names no such class", "remove it")
    return files


def _validation_files(folder: Path, label: dict[str, int], count: int | None) -> list[tuple[Path, int]]:
    """images/<name> for every line <name> <wnid> <box> of val_annotations.txt."""
    notes = folder / "val_annotations.txt"
    files: dict[Path, int] = {}
    for at, line in _lines(notes):
        columns = line.split("\t")
        if len(columns) != 6:
            raise DataError(notes, at, f"{len(columns)} columns instead of 6 (name, class, and the box)")
        name, wnid = columns[:2]
        path = folder / "images" / name
        if wnid not in label:
            raise DataError(notes, at + len(name) + 1, f"class {wnid!r} is not in wnids.txt")
        if Path(name).name != name or not path.exists():
            raise DataError(notes, at, f"names {name!r}, which is not in {path.parent}", "unpack the archive again")
        if path in files:
            raise DataError(notes, at, f"names {name!r} a second time")
        files[path] = label[wnid]
    _require_count(notes, len(files), count, 0)
    return list(files.items())


# The published sets.


@dataclass(frozen=True)
class Form:
    """A format in which a set is published.

    Fields:
        read: its reader: (paths, classes, published count or None) -> x, y.
        folders: where its files lie below the data folder; the data folder itself may be one of these.
        train, test: its files.
        counts: published images per file of the training and the test set (per class in Tiny-ImageNet's training set).
        get: how to get it.
        ends: what may follow a file's name.
        batches: whether the training files are batches that make sense on their own.
    """

    read: Callable[[Sequence[Path], int, int | None], Arrays]
    folders: tuple[str, ...]
    train: tuple[str, ...]
    test: tuple[str, ...]
    counts: tuple[int, int]
    get: str
    ends: tuple[str, ...] = ("",)
    batches: bool = False


@dataclass(frozen=True)
class Published:
    """A data set: its formats, the names of its labels, mean and deviation of the training pixels per channel."""

    forms: tuple[Form, ...]
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def _idx_form(get: str, *folders: str) -> Form:
    train, test = ((f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte") for part in ("train", "t10k"))
    return Form(read_idx, folders, train, test, (60_000, 10_000), get, (".gz", ""))


def _cifar_page(version: str, md5: str) -> str:
    return f"https://www.cs.toronto.edu/~kriz/cifar-{version}.tar.gz (MD5 {md5}), unpacked in the data folder"


def _cifar10_form(read: Callable[..., Arrays], folder: str, end: str, get: str) -> Form:
    train = tuple(f"data_batch_{i}{end}" for i in range(1, 6))
    return Form(read, (folder,), train, (f"test_batch{end}",), (10_000, 10_000), get, batches=True)


def _cifar100_form(read: Callable[..., Arrays], folder: str, end: str, get: str) -> Form:
    return Form(read, (folder,), (f"train{end}",), (f"test{end}",), (50_000, 10_000), get)


MNIST = _idx_form("https://ossci-datasets.s3.amazonaws.com/mnist/<file>.gz", "mnist", "MNIST", "MNIST/raw")
FASHION_MNIST = _idx_form(
    "the four files linked from https://github.com/zalandoresearch/fashion-mnist",
    *("fashion-mnist", "fashion_mnist", "FashionMNIST", "FashionMNIST/raw"),
)
CIFAR10 = (
    _cifar10_form(
        read_cifar_binary,
        "cifar-10-batches-bin",
        ".bin",
        _cifar_page("10-binary", "c32a1d4ab5d03f1284b67883e8d87530"),
    ),
    _cifar10_form(
        read_cifar_python, "cifar-10-batches-py", "", _cifar_page("10-python", "c58f30108f718f92721af3b95e74349a")
    ),
)
CIFAR100 = (
    _cifar100_form(
        read_cifar_binary, "cifar-100-binary", ".bin", _cifar_page("100-binary", "03b5dce01913d631647c71ecec9e9cb8")
    ),
    _cifar100_form(
        read_cifar_python, "cifar-100-python", "", _cifar_page("100-python", "eb9058c3a382ffc7106e4002c42a8d85")
    ),
)
SVHN = Form(
    read_svhn,
    ("svhn", "SVHN"),
    ("train_32x32.mat",),
    ("test_32x32.mat",),
    (73_257, 26_032),
    "http://ufldl.stanford.edu/housenumbers/<file>",
)
TINY_IMAGENET = Form(
    read_tiny_imagenet,
    ("tiny-imagenet-200",),
    ("wnids.txt", "train"),
    ("wnids.txt", "val"),
    (500, 10_000),
    "http://cs231n.stanford.edu/tiny-imagenet-200.zip, unpacked in the data folder",
)

DIGITS = tuple("0123456789")
FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NUMBERS = tuple(map(str, range(200)))

# The usual statistics of the training pixels; the tests recompute those of MNIST, CIFAR-10 and the digits.
SETS: dict[str, Published] = {
    "mnist": Published((MNIST,), DIGITS, (0.1307,), (0.3081,)),
    "fashion_mnist": Published((FASHION_MNIST,), FASHION, (0.2860,), (0.3530,)),
    "cifar10": Published(CIFAR10, OBJECTS, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": Published(CIFAR100, NUMBERS[:100], (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "svhn": Published((SVHN,), DIGITS, (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
    "tiny_imagenet": Published((TINY_IMAGENET,), NUMBERS, (0.4802, 0.4481, 0.3975), (0.2770, 0.2691, 0.2821)),
}
NAMES = ("digits", *SETS)

# Digests of published content, decompressed for IDX: MD5 (32 digits) or SHA-1 (40). MNIST and Fashion-MNIST: widely
# listed, and Fashion-MNIST's .gz files with the MD5 sums on its page decompress to these. CIFAR-10's binary version:
# MXNet's list, which checked the members of the publisher's archive. CIFAR's Python version and SVHN: torchvision's.
DIGESTS = {
    "mnist/train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "mnist/train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "mnist/t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "mnist/t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    "fashion_mnist/train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "fashion_mnist/train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "fashion_mnist/t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "fashion_mnist/t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    "cifar10/data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "cifar10/data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "cifar10/data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "cifar10/data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "cifar10/data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    "cifar10/test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
    "cifar10/data_batch_1": "c99cafc152244af753f735de768cd75f",
    "cifar10/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "cifar10/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "cifar10/data_batch_4": "634d18415352ddfa80567beed471001a",
    "cifar10/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "cifar10/test_batch": "40351d587109b95175f43aff81a1287e",
    "cifar100/train": "16019d7e3df5f24257cddd939b257f8d",
    "cifar100/test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "svhn/train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "svhn/test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
}
# SHA-256 of the copy on which the committed CIFAR-10 results were measured: the publisher's bytes in another order (two
# of five training batches, the classes take turns), 34 of the 10,000 test images decoded from JPEG.
COPIES = {
    "cifar10/data_batch_1.bin": "55dd26dd4624d8c50f0eb9d394e887c47a6640ca8761935ad07070f5ddd1034a",
    "cifar10/data_batch_2.bin": "a4f909593bfdd80c2596a3e95808d74e605ac107f8e4432f19d2528f960c2f3a",
    "cifar10/test_batch.bin": "050806bddd989ee49798ab7b35f16f124c3ab0f1bc089693bba09f38ba3f4d4c",
}
KNOWN_COPY = "copy: in another order than published, 34 of the 10,000 test images decoded from JPEG"
SUMS = "SHA256SUMS"

Stamp = tuple[str, int, int, int]
_vouched: dict[tuple[str, bool, tuple[Stamp, ...]], str] = {}
_origins: dict[tuple[Any, ...], dict[str, Any]] = {}


def stamps(paths: Sequence[Path]) -> tuple[Stamp, ...]:
    """Name, size, time of change and number of each file, of all files in a folder: while they stay, so does it."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    found = [(str(file), file.stat()) for file in files if file.exists()]
    return tuple((name, at.st_size, at.st_mtime_ns, at.st_ino) for name, at in found)


def digest_of(paths: Sequence[Path]) -> str:
    """SHA-256 over names and bytes of files (of all in a folder), computed once while they do not change."""
    where = ("files", stamps(paths))
    if where not in _origins:
        files = [(path, file) for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
        found = hashlib.sha256()
        for path, file in files:
            if file.is_file():
                with open(file, "rb") as stream:
                    inner = hashlib.file_digest(stream, "sha256").hexdigest()
                found.update(f"{file.relative_to(path) if path.is_dir() else file.name} {inner}\n".encode())
        _origins[where] = {"sha256": found.hexdigest()}
    return _origins[where]["sha256"]


def _verify(name: str, path: Path, official: bool) -> str:
    """What vouches for a file's content (see `Images.verified`), looked into once while it does not change.

    The folder's SHA256SUMS, the publisher's digest where there is one, and that of no other published file.
    """
    where = (f"{name}/{path.name}", official, stamps([path, path.with_name(SUMS)]))
    if where not in _vouched:
        _vouched[where] = _look(name, path, official)
    return _vouched[where]


def _look(name: str, path: Path, official: bool) -> str:
    raw, label = _read(path), f"{name}/{path.name.removesuffix('.gz')}"
    listed = _listed(path)
    if listed is not None and hashlib.sha256(raw).hexdigest() != listed:
        raise DataError(path, 0, f"its SHA-256 is not the one in {SUMS}", f"{FETCH}, or make {SUMS} again")
    if "-idx" in path.name:
        raw = _idx_raw(path, *IDX_FILES["images" if "images" in path.name else "labels"], None)[1]
    md5, sha1 = (hashlib.new(kind, raw, usedforsecurity=False).hexdigest() for kind in ("md5", "sha1"))
    owner = next((other for other, published in DIGESTS.items() if published in (md5, sha1)), None)
    if owner == label:
        return "published"
    if listed is not None:
        return SUMS
    if COPIES.get(label) == hashlib.sha256(raw).hexdigest():
        return KNOWN_COPY
    if official and (owner or label in DIGESTS):
        published = DIGESTS.get(label, "")
        found = f"MD5 {md5}" if len(published) == 32 else f"SHA-1 {sha1}"
        cause = f"is the published {owner}" if owner else f"{found}, published is {published}"
        fix = f"{FETCH}; if another copy is meant, vouch for it by a {SUMS} beside it, or pass official=False"
        raise DataError(path, 0, cause, fix)
    return "unverified"


def _listed(path: Path) -> str | None:
    """The SHA-256 of a file in the SHA256SUMS beside it."""
    sums = path.with_name(SUMS)
    if not sums.is_file():
        return None
    for line in bytes(_read(sums)).decode(errors="replace").splitlines():
        digest, _, name = line.partition(" ")
        if name.lstrip(" *") == path.name:
            return digest.lower()
    return None


@checks.arguments
def load(
    name: str = "digits",
    folder: str | Path | None = None,
    split: str = "train",
    *,
    partial: bool = False,
    official: bool = True,
) -> Images:
    """A data set.

    Args:
        name: "digits" (scikit-learn's, 8 x 8, no file needed), "mnist", "fashion_mnist", "cifar10", "cifar100", "svhn"
            or "tiny_imagenet".
        folder: where the published files lie, in it or in their usual subfolder; default: FEDTHEORY_DATA.
        split: "train" or "test". The digits have no published split: the 1,797 are permuted by Key(0).fold("digits"),
            1,437 train and 360 test. Tiny-ImageNet's "test" is its validation set, the test set has no labels.
        partial: CIFAR-10's training set from the batches that are there; `Images.missing` names the others.
        official: require the published number of images, and the published digests where they are known.

    Raises FileNotFoundError for a file that is not there, DataError for one that is not what its name says.
    """
    checks.choice("name", name, NAMES)
    checks.choice("split", split, ("train", "test"))
    if name == "digits":
        return _digits(split)
    published = SETS[name]
    form, paths, missing = _find(name, folder, split, partial)
    count = form.counts[split == "test"] if official else None
    before = stamps(paths)
    x, y = form.read(paths, len(published.classes), count)
    vouched = dict.fromkeys(_verify(name, path, official) if path.is_file() else "unverified" for path in paths)
    if stamps(paths) != before:
        raise DataError(paths[0].parent, 0, "its files changed while they were read", "load again when they rest")
    return Images(
        torch.from_numpy(x),
        torch.from_numpy(y.astype(np.int64)),
        published.classes,
        f"{name} {split}",
        published.mean,
        published.std,
        missing,
        "unverified" if "unverified" in vouched else "; ".join(vouched),
    )


def origin(
    name: str = "digits",
    folder: str | Path | None = None,
    split: str = "train",
    *,
    partial: bool = False,
    images: Images | None = None,
) -> dict[str, Any]:
    """What `load` reads: SHA-256 of images and labels, their number, what vouches for them, what is missing.

    The files are read once per process, and again when they change; not where `images` is what `load` just gave.
    """
    checks.choice("name", name, NAMES)
    paths = [] if name == "digits" else _find(name, folder, split, partial)[1]
    where = (name, split, stamps(paths))
    if where not in _origins:
        _origins[where] = (images or load(name, folder, split, partial=partial)).origin
    return _origins[where]


def _find(name: str, folder: str | Path | None, split: str, partial: bool) -> tuple[Form, list[Path], tuple[str, ...]]:
    """The form of which a file is there, the paths of its files, and the names of those that may be missing."""
    forms = SETS[name].forms
    get = f"get {' or '.join(form.get for form in forms)}"
    folder = folder if folder is not None else os.environ.get("FEDTHEORY_DATA")
    if not folder:
        fix = f"{get}; then pass folder=... or set FEDTHEORY_DATA; load('digits') needs no file"
        checks.reject("folder", folder, f"the folder of {name}'s published files", fix, FileNotFoundError)
    root = Path(folder)
    candidates = [
        (form, place)
        for form in forms
        for place in [*(root / sub for sub in form.folders), *([root] if root.name in form.folders else [])]
    ]
    for form, place in candidates:
        wanted = getattr(form, split)
        found = [next((p for e in form.ends if os.path.lexists(p := place / f"{w}{e}")), None) for w in wanted]
        missing = tuple(w for w, path in zip(wanted, found) if path is None)
        if len(missing) == len(wanted):
            continue
        if missing and not (partial and form.batches):
            fix = get + ("; or pass partial=True to do without" if form.batches else "")
            expected = f"{', '.join(missing)} beside the other files of {name}"
            checks.reject("folder", str(place), expected, fix, FileNotFoundError)
        return form, [path for path in found if path is not None], missing
    looked = ", ".join(str(place) for _, place in candidates)
    expected = f"{getattr(forms[0], split)[0]} of {name} in one of {looked}"
    checks.reject("folder", str(folder), expected, get, FileNotFoundError)


def _digits(split: str) -> Images:
    """scikit-learn's 1,797 digits; their values 0 to 16 are stored times 15."""
    from sklearn.datasets import load_digits  # here, because it takes a second to import

    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=Key(0).fold("digits").generator())
    mine = order[:1437] if split == "train" else order[1437:]
    x = torch.from_numpy(15 * pixels).to(torch.uint8).view(-1, 1, 8, 8)
    y = torch.from_numpy(labels).long()[mine]
    return Images(x[mine], y, DIGITS, f"digits {split}", (0.2868,), (0.3539,), verified="packaged")


# Partitions: the samples of each client, sorted; no sample has two owners.


def _checked(y: torch.Tensor, clients: int, key: Key) -> tuple[np.ndarray, np.random.Generator]:
    """Labels as an array, and the key's generator."""
    if y.dtype != torch.int64 or y.dim() != 1 or len(y) == 0:
        checks.reject("y", f"{y.dtype} {tuple(y.shape)}", "labels: int64 (n,), n > 0", "pass images.y")
    checks.whole("clients", clients, 1, len(y), fix="give every client at least one sample")
    return y.numpy(), np.random.default_rng(key.hash())


def _tensors(parts: Sequence[np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(np.sort(part).astype(np.int64)) for part in parts]


@checks.arguments
def iid(y: torch.Tensor, clients: int, key: Key) -> list[torch.Tensor]:
    """All samples in a random order, cut into parts of equal size (to within one sample)."""
    y_, rng = _checked(y, clients, key)
    return _tensors(np.array_split(rng.permutation(len(y_)), clients))


ALPHA = (1e-4, 1e8)  # where NumPy's Dirichlet draws are sound


@checks.arguments
def dirichlet(
    y: torch.Tensor, clients: int, alpha: float, key: Key, min_size: int = 10, *, cap: bool = True, tries: int = 1000
) -> list[torch.Tensor]:
    """Each label's samples are divided among the clients in proportions from Dirichlet(alpha); sizes are unequal.

    Every sample is used. The whole partition is redrawn until every client has `min_size` samples. FedMUD's Non-IID-1
    is alpha=0.3 (CIFAR-100: 0.1) with the defaults; DeComFL prints alpha=1, FLSS beta in {0.1, 0.5, 1}.

    Args:
        cap: a client that has n/N samples gets none of the labels that follow (the benchmark's rule); the proportions
            of the others are then Dirichlet(alpha) again.
        tries: draws before giving up.
    """
    y_, rng = _checked(y, clients, key)
    checks.number("alpha", alpha, *ALPHA)
    checks.whole("min_size", min_size, 0, len(y_) // clients, fix=f"at most n/N = {len(y_) // clients}")
    checks.count("tries", tries)
    of_label = [np.flatnonzero(y_ == label) for label in np.unique(y_)]
    smallest = -1
    for _ in range(tries):
        owner = np.empty(len(y_), np.int64)
        sizes = np.zeros(clients, np.int64)
        for samples in of_label:
            takers = np.flatnonzero(sizes < len(y_) / clients) if cap else np.arange(clients)
            shares = rng.dirichlet(np.full(len(takers), alpha))
            cuts = (np.cumsum(shares)[:-1] * len(samples)).astype(np.int64)
            counts = np.diff(cuts, prepend=0, append=len(samples))
            owner[rng.permutation(samples)] = np.repeat(takers, counts)
            sizes[takers] += counts
        smallest = max(smallest, int(sizes.min()))
        if sizes.min() >= min_size:
            order = np.argsort(owner, kind="stable")
            return _tensors(np.split(order, np.cumsum(sizes)[:-1]))
    found = f"{min_size} (the best of {tries} draws left a client with {smallest})"
    checks.reject("min_size", found, "a size that a draw reaches", "lower min_size or clients, or raise alpha")


@checks.arguments
def labels_per_client(y: torch.Tensor, clients: int, labels: int, key: Key) -> list[torch.Tensor]:
    """Every client holds exactly `labels` labels; a label's samples are shared equally among its holders.

    Labels are drawn at random among those with the fewest holders so far, so holders per label differ by one at most.
    Every sample is used if clients * labels reaches the number of labels. FedMUD's Non-IID-2: 3 (CIFAR-100: 10).
    """
    y_, rng = _checked(y, clients, key)
    names = np.unique(y_)
    checks.whole("labels", labels, 1, len(names), fix=f"the data have {len(names)} labels")
    holds = np.zeros((clients, len(names)), bool)
    for client in range(clients):
        holders = holds.sum(0)
        holds[client, np.lexsort((rng.random(len(names)), holders))[:labels]] = True
    parts: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for place, label in enumerate(names):
        samples, holders = np.flatnonzero(y_ == label), np.flatnonzero(holds[:, place])
        if len(samples) < len(holders):
            found = f"{clients} ({len(holders)} of them hold label {label}, which has {len(samples)} samples)"
            checks.reject("clients", found, "at least one sample per holder", "lower clients or labels")
        for client, mine in zip(holders, np.array_split(rng.permutation(samples), max(1, len(holders)))):
            parts[client].append(mine)
    return _tensors([np.concatenate(part) for part in parts])
