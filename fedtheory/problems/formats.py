"""Files of images in their publishers' formats, read as bytes and checked: IDX, CIFAR's, SVHN's, Tiny-ImageNet's.

A file that is damaged, short or of another set raises `DataError` with file, byte and cause.
"""

import io
import math
import pickle
import pickletools
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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


# What every file goes through.

_BLOCK, _LIMIT = 1 << 16, 1 << 30  # bytes decompressed at a time; of a file, and of what it decompresses to


def content_of(path: Path) -> bytearray:
    """Return the bytes of a regular file, refused by its size before it is read where no data file is that large."""
    try:
        if path.exists() and not path.is_file():
            raise DataError(path, 0, "is not a regular file", "put the published file in its place")
        if (size := path.stat().st_size) > _LIMIT:
            raise DataError(
                path, _LIMIT, f"the file has {size} bytes, more than {_LIMIT}: no published file is so large"
            )
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


_Declared = Callable[[bytearray], int]  # the beginning of some content -> the length that it declares


def _inflate(path: Path, raw: bytearray, start: int, end: int, what: str, head: int, declared: _Declared) -> bytearray:
    """The content of raw[start:end], one whole gzip or zlib stream with its checksum verified and nothing behind it.

    Its first `head` bytes declare its length; what is longer, or would be too long, is not decompressed.
    """
    stream, content, at, limit = zlib.decompressobj(wbits=47), bytearray(), start, None
    while at < end and not stream.eof:
        part = raw[at : min(at + _BLOCK, end)]
        while True:
            room = head - len(content) if limit is None else limit + 1 - len(content)
            try:
                some = stream.decompress(part, room)
            except zlib.error as error:
                raise DataError(path, at, f"{what} is damaged within {_BLOCK} bytes from here ({error})") from error
            content += some
            part = stream.unconsumed_tail
            if limit is None and (len(content) == head or stream.eof):
                limit = declared(content)
                if limit > _LIMIT:
                    raise DataError(path, at, f"{what} declares {limit} bytes, more than {_LIMIT}")
            if limit is not None and len(content) > limit:
                raise DataError(path, at, f"{what} holds more than the {limit} bytes that it declares")
            if stream.eof or (not part and len(some) < room):
                break
        at = min(at + _BLOCK, end)
    if not stream.eof:
        raise DataError(path, end, f"the file is short: {what} has no end")
    if stream.unused_data:
        raise DataError(path, at - len(stream.unused_data), f"bytes follow the end of {what}")
    return content


# IDX: MNIST and Fashion-MNIST.

_IDX_MAGIC = {0x801: "labels", 0x803: "images"}


def _idx_end(where: Path, raw: bytearray, magic: int, shape: tuple[int, ...], count: int | None) -> int:
    """Where the content ends by its header: magic number, sizes as big-endian words."""
    start = 4 * (2 + len(shape))
    found = int.from_bytes(raw[:4], "big")
    if found != magic:
        other = f", that of {_IDX_MAGIC[found]}: are the files exchanged?" if found in _IDX_MAGIC else ""
        raise DataError(where, 0, f"magic number {found:#010x}{other} instead of {magic:#010x} ({_IDX_MAGIC[magic]})")
    if len(raw) < start:
        raise DataError(where, len(raw), f"the file is short: its header has {start} bytes")
    n, *sizes = struct.unpack_from(f">{1 + len(shape)}I", raw, 4)
    if tuple(sizes) != shape:
        raise DataError(where, 8, f"images of size {tuple(sizes)} instead of {shape}")
    _require_count(where, n, count, 4, _IDX_MAGIC[magic])
    return start + n * math.prod(shape)


def _idx_raw(path: Path, magic: int, shape: tuple[int, ...], count: int | None) -> tuple[Path, bytearray]:
    """The decompressed content of an IDX file, and what to call it."""
    raw = _read(path)
    if not raw.startswith(b"\x1f\x8b"):
        return path, raw
    where, head = Path(f"{path} (decompressed)"), 4 * (2 + len(shape))
    end = lambda content: _BLOCK + _idx_end(where, content, magic, shape, count)
    return where, _inflate(path, raw, 0, len(raw), "the gzip stream", head, end)


def _idx(path: Path, magic: int, shape: tuple[int, ...], count: int | None) -> np.ndarray:
    """An IDX file of bytes (n, *shape)."""
    where, raw = _idx_raw(path, magic, shape, count)
    start, end = 4 * (2 + len(shape)), _idx_end(where, raw, magic, shape, count)
    n = (end - start) // math.prod(shape)
    if len(raw) < end:
        raise DataError(where, len(raw), f"the file is short: {n} {_IDX_MAGIC[magic]} end at byte {end}")
    if len(raw) > end:
        raise DataError(where, end, f"{len(raw) - end} bytes follow the last of {n} {_IDX_MAGIC[magic]}")
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
    """Return batches of <label><pixels> (CIFAR-10) or <coarse label><fine label><pixels> (CIFAR-100)."""
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

_PICKLE_NAMES = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
_PICKLE_OPCODES = """PROTO FRAME STOP MARK EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE
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
        if (module, name) not in _PICKLE_NAMES:
            raise pickle.UnpicklingError(f"names {module}.{name}, which is no piece of an array")
        return _Piece


def _unpickle(path: Path, raw: bytearray) -> Any:
    """Dicts, lists, strings, integers and `_Piece`s; nothing in the file is called."""
    content, at, allowed = bytes(raw), 0, frozenset(_PICKLE_OPCODES.split())
    opcodes: Iterator[tuple[Any, Any, Any]] = pickletools.genops(content)
    try:
        for before, (opcode, argument, at) in enumerate(opcodes):
            if opcode.name not in allowed:
                raise DataError(path, at, f"pickle opcode {opcode.name}, which no array needs")
            if opcode.name.endswith("PUT") and not 0 <= int(argument) <= before:  # a memo that long would be allocated
                raise DataError(path, at, f"memo index {argument} beyond the {before} opcodes before it")
            if opcode.name == "GLOBAL" and tuple(argument.split(" ")) not in _PICKLE_NAMES:
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
    """Return batches of CIFAR-10's or CIFAR-100's Python version; pickles are read, never run."""
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

_MAT_BYTES, _MAT_INTS, _MAT_VARIABLE, _MAT_COMPRESSED = 2, 5, 14, 15  # types of elements


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
        return size + _BLOCK

    if not raw.startswith(b"MATLAB 5.0 MAT-file"):
        raise DataError(path, 0, "no MATLAB 5 file (its first bytes do not say so)")
    order = {b"IM": "<", b"MI": ">"}.get(bytes(raw[126:128]))
    if order is None:
        raise DataError(path, min(126, len(raw)), f"byte-order mark {bytes(raw[126:128])!r} instead of b'IM' or b'MI'")
    variables, at = {}, 128
    while at < len(raw):
        kind, start, stop = _mat_element(path, raw, at, order)
        where, body, end = path, raw[:stop], stop
        if kind == _MAT_COMPRESSED:
            where = Path(f"{path} (variable from byte {at}, decompressed)")
            body = _inflate(path, raw, start, stop, "the variable", 8, declared)
            kind, start, end = _mat_element(where, body, 0, order)
        if kind != _MAT_VARIABLE or end != len(body):
            raise DataError(where, start - 8, f"element of type {kind} where a variable ({_MAT_VARIABLE}) should be")
        parts = []  # flags, shape, name, values; each starts at a multiple of 8 bytes
        for _ in range(4):
            part = _mat_element(where, body, start, order)
            parts.append(part)
            start += -(-(part[2] - start) // 8) * 8
        _, (ints, low, high), (_, *name), (kind, first, last) = parts
        if ints != _MAT_INTS or (high - low) % 4:
            raise DataError(where, low, "a variable's shape is not a list of integers")
        shape = tuple(np.frombuffer(body[low:high], f"{order}i4").tolist())
        values = np.frombuffer(body, np.uint8, last - first, first)
        variables[body[slice(*name)].decode("latin1")] = _Variable(at, shape, kind, values, first, where)
        at = stop
    return variables


def read_svhn(paths: Sequence[Path], classes: int, count: int | None) -> Arrays:
    """SVHN's cropped digits."""
    (path,) = paths
    variables = _mat_variables(path, _read(path), _LIMIT if count is None else 3072 * count + 2 * _BLOCK)
    for name, expected in (("X", "(32, 32, 3, n)"), ("y", "(n, 1)")):
        if name not in variables:
            raise DataError(path, 128, f"no variable {name!r}; it has {sorted(variables)}")
        v = variables[name]
        fits = v.shape[:-1] == (32, 32, 3) if name == "X" else v.shape[1:] == (1,)
        if not fits or v.kind != _MAT_BYTES or len(v.values) != math.prod(v.shape):
            found = f"shape {v.shape}, {len(v.values)} bytes of type {v.kind}"
            raise DataError(path, v.at, f"{name} has {found}; expected {expected} bytes (type {_MAT_BYTES})")
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
    from PIL import Image  # of one data set, and a tenth of a second

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
