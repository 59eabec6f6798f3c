"""Small valid files in every published format, and ways to damage them."""

import gzip
import io
import os
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
from PIL import Image

WNIDS = ("n02124075", "n01443537", "n04067472")  # not sorted: labels follow the file's order
COUNTS = {  # images per file of the small sets, training and test (per class in Tiny-ImageNet's training set)
    "mnist": (6, 4),
    "fashion_mnist": (6, 4),
    "cifar10": (4, 4),
    "cifar100": (6, 4),
    "svhn": (6, 4),
    "tiny_imagenet": (2, 3),
}


def pixels(n, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def labels(n, classes):
    """Label i is i modulo `classes`, the last label among them."""
    y = np.arange(n) % classes
    y[-1] = classes - 1
    return y.astype(np.uint8)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def idx(array):
    return struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def small_idx(root, subfolder="mnist", packed=True):
    end, pack = (".gz", lambda raw: gzip.compress(raw, mtime=0)) if packed else ("", bytes)
    truth = {}
    for split, part, n in (("train", "train", 6), ("test", "t10k", 4)):
        x, y = pixels(n, 28, 28), labels(n, 10)
        write(root / subfolder / f"{part}-images-idx3-ubyte{end}", pack(idx(x)))
        write(root / subfolder / f"{part}-labels-idx1-ubyte{end}", pack(idx(y)))
        truth[split] = x[:, None], y
    return truth


def cifar_names(classes, end=""):
    if classes == 10:
        return {"train": [f"data_batch_{i}{end}" for i in range(1, 6)], "test": [f"test_batch{end}"]}
    return {"train": [f"train{end}"], "test": [f"test{end}"]}


def cifar_batches(classes):
    """split -> [(x, y) of each file]."""
    sizes = {"train": [4] * 5 if classes == 10 else [6], "test": [4]}
    return {s: [(pixels(n, 3072, seed=i), labels(n, classes)) for i, n in enumerate(ns)] for s, ns in sizes.items()}


def joined(batches):
    return {s: tuple(np.concatenate(part) for part in zip(*files)) for s, files in batches.items()}


def records(x, y, classes):
    coarse = [] if classes == 10 else [y[:, None] // 5]
    return np.concatenate([*coarse, y[:, None], x], axis=1).tobytes()


def small_cifar_binary(root, classes=10):
    folder = root / ("cifar-10-batches-bin" if classes == 10 else "cifar-100-binary")
    batches, names = cifar_batches(classes), cifar_names(classes, ".bin")
    for split, files in batches.items():
        for name, (x, y) in zip(names[split], files):
            write(folder / name, records(x, y, classes))
    return joined(batches)


def python2(x, y, key="labels", dtype=b"u1", shape=None, fortran=b"\x89"):
    """The published pickles' own opcodes (Python 2, protocol 2)."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    def size(value):
        return b"M" + struct.pack("<H", value)

    raw = x.tobytes()
    rows, columns = shape or x.shape
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x06cnumpy\nndarray\nq\x07K\x00\x85U\x01b\x87Rq\x08(K\x01"
        + (size(rows) + size(columns) + b"\x86")
        + (
            b"cnumpy\ndtype\nq\x09"
            + text(dtype)
            + b"K\x00K\x01\x87Rq\x0a(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        )
        + (b"K\x00tb" + fortran + b"T" + struct.pack("<I", len(raw)) + raw + b"tb")
    )
    listed = b"]q\x03(" + b"".join(b"K" + bytes([label]) for label in y) + b"e"
    return b"\x80\x02}q\x01(" + text(key.encode()) + b"q\x02" + listed + text(b"data") + b"q\x05" + array + b"u."


def small_cifar_python(root, classes=10, dump=python2):
    folder = root / ("cifar-10-batches-py" if classes == 10 else "cifar-100-python")
    batches, names = cifar_batches(classes), cifar_names(classes)
    for split, files in batches.items():
        for name, (x, y) in zip(names[split], files):
            write(folder / name, dump(x, y, "labels" if classes == 10 else "fine_labels"))
    return joined(batches)


def python3(x, y, key="labels"):
    """As pickled today."""
    return pickle.dumps({b"data": x, key.encode(): [int(label) for label in y]}, protocol=4)


def mat(packed=True, **variables):
    stream = io.BytesIO()
    scipy.io.savemat(stream, variables, do_compression=packed)
    return stream.getvalue()


def svhn_arrays(n):
    return {"X": pixels(n, 32, 32, 3).transpose(1, 2, 3, 0), "y": (labels(n, 10) + 1)[:, None]}


def small_svhn(root, packed=True):
    truth = {}
    for split, n in (("train", 6), ("test", 4)):
        arrays = svhn_arrays(n)
        write(root / "svhn" / f"{split}_32x32.mat", mat(packed, **arrays))
        truth[split] = arrays["X"].transpose(3, 2, 0, 1), arrays["y"][:, 0] % 10
    return truth


def jpeg(value, size=64, mode="RGB", form="JPEG"):
    """An image of one colour."""
    stream = io.BytesIO()
    Image.new(mode, (size, size), value if mode == "L" else (value, value, value)).save(stream, form, quality=95)
    return stream.getvalue()


def small_tiny_imagenet(root):
    folder = root / "tiny-imagenet-200"
    write(folder / "wnids.txt", "".join(f"{wnid}\n" for wnid in WNIDS).encode())
    for y, wnid in enumerate(WNIDS):
        for k in range(2):
            mode = "L" if k else "RGB"  # some of the published images are grey
            write(folder / "train" / wnid / "images" / f"{wnid}_{k}.JPEG", jpeg(40 * y + 10 * k, mode=mode))
    notes = []
    for i, y in enumerate((2, 0, 1)):
        write(folder / "val" / "images" / f"val_{i}.JPEG", jpeg(40 * y))
        notes.append(f"val_{i}.JPEG\t{WNIDS[y]}\t0\t1\t62\t63\n")
    write(folder / "val" / "val_annotations.txt", "".join(notes).encode())

    def flat(values):
        return np.broadcast_to(np.array(values, np.uint8)[:, None, None, None], (len(values), 3, 64, 64))

    train = flat([40 * y + 10 * k for y in range(3) for k in range(2)]), np.array([0, 0, 1, 1, 2, 2])
    return {"train": train, "test": (flat([80, 0, 40]), np.array([2, 0, 1]))}


SMALL: dict[str, tuple[str, Callable]] = {
    "idx.gz": ("mnist", small_idx),
    "idx": ("mnist", lambda root: small_idx(root, packed=False)),
    "fashion": ("fashion_mnist", lambda root: small_idx(root, "fashion-mnist")),
    "cifar10-bin": ("cifar10", small_cifar_binary),
    "cifar100-bin": ("cifar100", lambda root: small_cifar_binary(root, 100)),
    "cifar10-py": ("cifar10", small_cifar_python),
    "cifar10-py3": ("cifar10", lambda root: small_cifar_python(root, dump=python3)),
    "cifar100-py": ("cifar100", lambda root: small_cifar_python(root, 100)),
    "svhn": ("svhn", small_svhn),
    "svhn-plain": ("svhn", lambda root: small_svhn(root, packed=False)),
    "tiny": ("tiny_imagenet", small_tiny_imagenet),
}


@dataclass(frozen=True)
class Damage:
    """What is done to `file` (below the data folder), and what the error must say.

    Fields:
        edit: bytes -> bytes, or a function of the path for what is no change of bytes.
        cause: regular expression.
        offset: the byte named; None where it is a decoder's own position, or depends on how zlib packs.
        on_path: whether `edit` takes the path.
        blamed: the file or folder that the error names, where that is not `file`.
    """

    form: str
    name: str
    file: str
    edit: Callable
    cause: str
    offset: int | None = None
    split: str = "train"
    on_path: bool = False
    blamed: str = ""


def flip(at, by=0xFF):
    """One byte changed (negative: from the end)."""

    def edit(raw):
        changed = bytearray(raw)
        changed[at] ^= by
        return bytes(changed)

    return edit


def put(at, content):
    return lambda raw: raw[:at] + content + raw[at + len(content) :]


def cut(at):
    return lambda raw: raw[:at]


def add(content):
    return lambda raw: raw + content


def instead(content):
    return lambda raw: content


def as_folder(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_dangling_link(path):
    path.unlink()
    path.symlink_to(path.with_name("nothing-here"))


def as_loop(path):
    path.unlink()
    path.symlink_to(path)


def unreadable(path):
    path.chmod(0)


HTML = b"<!DOCTYPE html>\n<html><title>404 Not Found</title></html>\n"
TEXT = b"This is not the file that you are looking for.\n"


def anywhere(form, file, text_cause):
    """What can happen to any file."""
    return [
        Damage(form, "empty", file, instead(b""), "empty", 0),
        Damage(form, "web-page", file, instead(HTML), "web page", 0),
        Damage(form, "text", file, instead(TEXT), text_cause),
        Damage(form, "folder", file, as_folder, "not a regular file", 0, on_path=True),
        Damage(form, "pipe", file, as_pipe, "not a regular file", 0, on_path=True),
        Damage(form, "dangling-link", file, as_dangling_link, "cannot be read", 0, on_path=True),
        Damage(form, "link-to-itself", file, as_loop, "cannot be read", 0, on_path=True),
        Damage(form, "unreadable", file, unreadable, "cannot be read", 0, on_path=True),
    ]


IMAGES, LABELS = "mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte"
FULL = 16 + 6 * 784


def regzip(edit):
    """The edit on the content of a gzip file."""
    return lambda raw: gzip.compress(edit(gzip.decompress(raw)), mtime=0)


IDX = [
    *anywhere("idx", IMAGES, "magic number"),
    Damage("idx", "short-header", IMAGES, cut(10), "short: its header has 16", 10),
    Damage("idx", "short-magic", LABELS, cut(3), "magic number", 0),
    Damage("idx", "one-byte-short", IMAGES, cut(FULL - 1), f"short: 6 images end at byte {FULL}", FULL - 1),
    Damage("idx", "header-only", IMAGES, cut(16), "short", 16),
    Damage("idx", "one-byte-long", IMAGES, add(b"\0"), "1 bytes follow the last of 6 images", FULL),
    Damage("idx", "wrong-magic", IMAGES, flip(2), "magic number 0x0000f703", 0),
    Damage("idx", "other-number-type", IMAGES, put(2, b"\x0d"), "magic number 0x00000d03", 0),
    Damage("idx", "little-endian", IMAGES, put(0, b"\x03\x08\0\0\x06\0\0\0"), "magic number 0x03080000", 0),
    Damage("idx", "labels-for-images", IMAGES, instead(idx(labels(6, 10))), "of labels: are the files exchanged", 0),
    Damage("idx", "images-for-labels", LABELS, instead(idx(pixels(6, 28, 28))), "of images: are the files exch", 0),
    Damage("idx", "size-14x14", IMAGES, instead(idx(pixels(24, 14, 14))), r"size \(14, 14\)", 8),
    Damage("idx", "size-8x98", IMAGES, instead(idx(pixels(6, 8, 98))), r"size \(8, 98\)", 8),
    Damage("idx", "no-images", IMAGES, instead(idx(pixels(0, 28, 28))), "0 images, published are 6", 4),
    Damage("idx", "test-for-training", IMAGES, instead(idx(pixels(4, 28, 28))), "4 images, published are 6", 4),
    Damage("idx", "test-labels-for-training", LABELS, instead(idx(labels(4, 10))), "4 labels, published are 6", 4),
    Damage("idx", "count-of-billions", IMAGES, put(4, b"\xff\xff\xff\xff"), "4294967295 images, published", 4),
    Damage("idx", "label-10", LABELS, put(11, b"\x0a"), "label 10 of image 3 is not within 0 to 9", 11),
    Damage("idx", "label-255-at-the-end", LABELS, put(13, b"\xff"), "label 255 of image 5", 13),
    Damage("idx", "labels-short", LABELS, cut(12), "short: 6 labels end at byte 14", 12),
    Damage("idx", "labels-long", LABELS, add(b"\0\0"), "2 bytes follow the last of 6 labels", 14),
    Damage("idx.gz", "gzip-short", f"{IMAGES}.gz", lambda raw: raw[: len(raw) // 2], "gzip stream has no end"),
    Damage("idx.gz", "gzip-header-only", f"{IMAGES}.gz", cut(10), "gzip stream has no end", 10),
    Damage("idx.gz", "gzip-without-trailer", f"{IMAGES}.gz", lambda raw: raw[:-1], "gzip stream has no end"),
    Damage("idx.gz", "gzip-checksum", f"{IMAGES}.gz", flip(-6), "gzip stream is damaged.*data check", 0),
    Damage("idx.gz", "gzip-length", f"{IMAGES}.gz", flip(-1), "gzip stream is damaged.*length check", 0),
    Damage("idx.gz", "gzip-pixel-flipped", f"{IMAGES}.gz", flip(2000, 1), "gzip stream is damaged", 0),
    Damage("idx.gz", "gzip-method", f"{IMAGES}.gz", put(2, b"\x09"), "gzip stream is damaged", 0),
    Damage("idx.gz", "gzip-trailing-bytes", f"{LABELS}.gz", add(b"tail"), "bytes follow the end of the gzip stream"),
    Damage("idx.gz", "gzip-second-stream", f"{LABELS}.gz", lambda raw: raw + raw, "bytes follow the end of the gzip"),
    Damage("idx.gz", "gzip-twice", f"{IMAGES}.gz", lambda raw: gzip.compress(raw, mtime=0), "magic number 0x1f8b", 0),
    Damage("idx.gz", "gzip-of-short", f"{IMAGES}.gz", regzip(cut(FULL - 1)), "short: 6 images", FULL - 1),
    Damage("idx.gz", "gzip-of-long", f"{IMAGES}.gz", regzip(add(b"\0")), "1 bytes follow the last", FULL),
    Damage("idx.gz", "gzip-of-label-10", f"{LABELS}.gz", regzip(put(8, b"\x0a")), "label 10 of image 0", 8),
    Damage("idx.gz", "gzip-of-page", f"{IMAGES}.gz", regzip(instead(HTML)), "magic number", 0),
]

BIN, BIN100, R, R100 = "cifar-10-batches-bin/data_batch_3.bin", "cifar-100-binary/train.bin", 3073, 3074
ONE_BATCH = records(pixels(4, 3072, seed=0), labels(4, 10), 10)
SHIFTED = b"\xc8" * 3072

CIFAR_BINARY = [
    *anywhere("cifar10-bin", BIN, "bytes left after 0 records"),
    Damage("cifar10-bin", "one-byte-short", BIN, cut(4 * R - 1), "3072 bytes left after 3 records of 3073", 3 * R),
    Damage("cifar10-bin", "half-a-record", BIN, cut(R + R // 2), "1536 bytes left after 1 record", R),
    Damage("cifar10-bin", "one-byte-long", BIN, add(b"\0"), "1 bytes left after 4 records", 4 * R),
    Damage(
        "cifar10-bin", "padded-to-a-sector", BIN, lambda r: r + b"\0" * (-len(r) % 512), "bytes left after 4", 4 * R
    ),
    Damage("cifar10-bin", "record-missing", BIN, cut(3 * R), "3 images, published are 4", 3 * R),
    Damage("cifar10-bin", "record-too-many", BIN, lambda raw: raw + raw[:R], "5 images, published are 4", 5 * R),
    Damage("cifar10-bin", "first-label-10", BIN, put(0, b"\x0a"), "label 10 of image 0 is not within 0 to 9", 0),
    Damage("cifar10-bin", "last-label-255", BIN, put(3 * R, b"\xff"), "label 255 of image 3", 3 * R),
    Damage("cifar10-bin", "byte-lost", BIN, lambda raw: raw[1:] + b"\0", "label .* of image 0", 0),
    Damage("cifar10-bin", "labels-behind-pixels", BIN, lambda raw: SHIFTED + raw[: 4 * R - 3072], "label 200 of im", 0),
    Damage(
        "cifar10-bin", "pixels-only", BIN, lambda raw: pixels(4, 3072).tobytes(), "bytes left after 3 records", 3 * R
    ),
    Damage("cifar10-bin", "copy-of-batch-1", BIN, instead(ONE_BATCH), "same images as data_batch_1.bin", 0),
    Damage("cifar10-bin", "cifar100", BIN, instead(records(pixels(6, 3072), labels(6, 100), 100)), "bytes left after"),
    Damage("cifar10-bin", "python-version", BIN, lambda raw: python2(pixels(4, 3072), labels(4, 10)), "bytes left"),
    Damage("cifar10-bin", "gzip", BIN, gzip.compress, "bytes left after"),
    Damage("cifar10-bin", "line-ends-changed", BIN, lambda raw: raw.replace(b"\n", b"\r\n"), "bytes left after"),
    Damage("cifar10-bin", "header-in-front", BIN, lambda raw: b"\x93NUMPY" + raw, "6 bytes left after 4", 4 * R),
    Damage("cifar10-bin", "utf8-mangled", BIN, lambda raw: raw.decode("latin1").encode(), "bytes left after"),
    Damage(
        "cifar10-bin", "test-batch", BIN.replace("data_batch_3", "test_batch"), cut(9), "0 records", 0, split="test"
    ),
    Damage(
        "cifar100-bin", "coarse-label-20", BIN100, put(2 * R100, b"\x14"), "label 20 of image 2 .* 0 to 19", 2 * R100
    ),
    Damage("cifar100-bin", "fine-label-100", BIN100, put(R100 + 1, b"\x64"), "label 100 of image 1 .* 99", R100 + 1),
    Damage("cifar100-bin", "labels-exchanged", BIN100, put(5 * R100, b"\x63\x13"), "label 99 of image 5", 5 * R100),
    Damage("cifar100-bin", "cifar10", BIN100, instead(ONE_BATCH), "bytes left after 3 records of 3074", 3 * R100),
    Damage("cifar100-bin", "record-missing", BIN100, cut(5 * R100), "5 images, published are 6", 5 * R100),
]

PY = "cifar-10-batches-py/data_batch_3"
X, Y = pixels(4, 3072, seed=2), labels(4, 10)
TRACE = "executed"  # the file that a payload would leave in the working folder
TOUCH = f"touch {TRACE}".encode()


def pickled(**changes):
    return instead(python2(**{"x": X, "y": Y} | changes))


def python3_of(**changes):
    content = {b"data": X, b"labels": [int(label) for label in Y]} | {k.encode(): v for k, v in changes.items()}
    return instead(pickle.dumps(content, protocol=4))


class Payload:
    """Unpickling it runs a command."""

    def __reduce__(self):
        return os.system, (TOUCH.decode(),)


CIFAR_PYTHON = [
    *anywhere("cifar10-py", PY, "first byte 0x54 instead of 0x80"),
    Damage(
        "cifar10-py", "system-call", PY, instead(b"\x80\x02cos\nsystem\n(U\x0e" + TOUCH + b"tR."), "names os.system", 2
    ),
    Damage("cifar10-py", "system-call-today", PY, instead(pickle.dumps(Payload(), protocol=4)), r"names posix\.system"),
    Damage("cifar10-py", "payload-among-the-data", PY, python3_of(more=Payload()), r"names posix\.system"),
    Damage("cifar10-py", "payload-as-label", PY, python3_of(labels=[0, Payload(), 1, 2]), r"names posix\.system"),
    Damage("cifar10-py", "eval", PY, instead(b"\x80\x02c__builtin__\neval\n(U\x011tR."), "names __builtin__.eval", 2),
    Damage("cifar10-py", "numpy-function", PY, instead(b"\x80\x02cnumpy\nload\n(U\x011tR."), "names numpy.load", 2),
    Damage("cifar10-py", "attribute-walk", PY, python3_of(data=np.testing.assert_equal), "names numpy.testing"),
    Damage("cifar10-py", "instance", PY, instead(b"\x80\x02(U\x0e" + TOUCH + b"ios\nsystem\n."), "opcode INST"),
    Damage("cifar10-py", "object", PY, instead(b"\x80\x02(cos\nsystem\nU\x01xo."), "names os.system", 3),
    Damage("cifar10-py", "new-object", PY, python3_of(data=Path("x")), r"names pathlib|opcode NEWOBJ"),
    Damage("cifar10-py", "persistent", PY, instead(b"\x80\x02Pnumber\n."), "opcode PERSID", 2),
    Damage("cifar10-py", "extension", PY, instead(b"\x80\x02\x82\x01."), "opcode EXT1", 2),
    Damage("cifar10-py", "huge-memo", PY, instead(b"\x80\x02}r\xff\xff\xff\x7f."), "memo index 2147483647", 3),
    Damage("cifar10-py", "unknown-opcode", PY, put(2, b"\xff"), "damaged after this opcode"),
    Damage("cifar10-py", "short-in-array", PY, cut(5000), "breaks off"),
    Damage("cifar10-py", "short-in-labels", PY, cut(20), "breaks off"),
    Damage("cifar10-py", "no-stop", PY, lambda raw: raw[:-1], "breaks off"),
    Damage("cifar10-py", "trailing-bytes", PY, add(b"tail"), "bytes follow the end of the pickle", len(python2(X, Y))),
    Damage("cifar10-py", "two-pickles", PY, lambda raw: raw + raw, "bytes follow the end", len(python2(X, Y))),
    Damage("cifar10-py", "stack-empty", PY, instead(b"\x80\x02."), "no valid pickle"),
    Damage("cifar10-py", "protocol-0", PY, instead(pickle.dumps([1], protocol=0)), "instead of 0x80", 0),
    Damage("cifar10-py", "gzip", PY, gzip.compress, "first byte 0x1f instead of 0x80", 0),
    Damage("cifar10-py", "a-list", PY, instead(pickle.dumps([1], protocol=2)), "is or has a list", 0),
    Damage("cifar10-py", "no-labels", PY, pickled(key="lables"), "no 'labels'", 0),
    Damage("cifar10-py", "cifar100", PY, pickled(key="fine_labels"), "no 'labels'", 0),
    Damage("cifar10-py", "no-data", PY, instead(pickle.dumps({b"labels": [1]}, protocol=2)), "opcode|names|no 'data'"),
    Damage("cifar10-py", "label-10", PY, pickled(y=[1, 2, 3, 10]), "label 10 of image 3 is not within 0 to 9"),
    Damage("cifar10-py", "label-negative", PY, python3_of(labels=[1, 2, 3, -1]), "label -1 of image 3"),
    Damage("cifar10-py", "label-beyond-64-bits", PY, python3_of(labels=[1, 2, 3, 1 << 70]), "label 11805.* of image 3"),
    Damage("cifar10-py", "label-text", PY, python3_of(labels=[1, 2, 3, "4"]), "not a list of integers"),
    Damage("cifar10-py", "label-bool", PY, python3_of(labels=[1, 2, 3, True]), "not a list of integers"),
    Damage("cifar10-py", "labels-a-number", PY, python3_of(labels=7), "not a list of integers"),
    Damage("cifar10-py", "label-missing", PY, pickled(y=[1, 2, 3]), "3 labels for 4 images"),
    Damage("cifar10-py", "image-missing", PY, pickled(x=X[:3], y=Y[:3]), "3 images, published are 4"),
    Damage("cifar10-py", "no-images", PY, pickled(x=X[:0], y=Y[:0]), "0 images, published are 4"),
    Damage("cifar10-py", "data-a-list", PY, python3_of(data=[[1] * 3072] * 4), "'data' is a list, not an array"),
    Damage("cifar10-py", "floats", PY, python3_of(data=X.astype(np.float32)), "type 'f4'"),
    Damage("cifar10-py", "objects", PY, python3_of(data=X.astype(object)), "type 'O8', row order, a list"),
    Damage("cifar10-py", "signed", PY, pickled(dtype=b"i1"), "type b'i1'"),
    Damage("cifar10-py", "wrong-shape", PY, pickled(shape=(12, 1024)), r"shape \(12, 1024\)"),
    Damage("cifar10-py", "shape-beyond-data", PY, pickled(shape=(5, 3072)), r"shape \(5, 3072\), .* 12288 bytes"),
    Damage("cifar10-py", "column-order", PY, pickled(fortran=b"\x88"), "column order"),
    Damage("cifar10-py", "four-axes", PY, python3_of(data=X.reshape(4, 3, 32, 32)), r"shape \(4, 3, 32, 32\)"),
    Damage("cifar10-py", "copy-of-batch-1", PY, pickled(x=pixels(4, 3072)), "same images as data_batch_1", 0),
]

MAT = "svhn/train_32x32.mat"
ARRAYS = svhn_arrays(6)
LENGTH = len(mat(**ARRAYS))


def mat_of(**changes):
    return instead(mat(**ARRAYS | changes))


SVHN = [
    *anywhere("svhn", MAT, "no MATLAB 5 file"),
    Damage("svhn", "short-header", MAT, cut(100), "byte-order mark b''", 100),
    Damage("svhn", "header-only", MAT, cut(128), r"no variable 'X'; it has \[\]", 128),
    Damage("svhn", "short-in-variable", MAT, cut(1000), "short: the element at byte 128", 1000),
    Damage("svhn", "one-byte-short", MAT, lambda raw: raw[:-1], "short: the element", LENGTH - 1),
    Damage("svhn", "one-byte-long", MAT, add(b"\0"), "1 bytes where an element's head", LENGTH),
    Damage("svhn", "zeros-behind", MAT, add(bytes(16)), "element of type 0", LENGTH),
    Damage("svhn", "version-7.3", MAT, put(0, b"MATLAB 7.3 MAT-file"), "no MATLAB 5 file", 0),
    Damage("svhn", "byte-order", MAT, put(126, b"XX"), "byte-order mark b'XX'", 126),
    Damage("svhn", "other-byte-order", MAT, put(126, b"MI"), "short: the element at byte 128"),
    Damage("svhn", "element-type", MAT, put(128, b"\x63"), "element of type 99", 128),
    Damage("svhn", "element-size", MAT, put(132, b"\xff\xff\xff\x7f"), "short: the element at byte 128", LENGTH),
    Damage("svhn", "pixel-flipped", MAT, flip(3000), "variable is damaged", 136),
    Damage("svhn", "head-flipped", MAT, flip(140), "variable is damaged|element", None),
    Damage("svhn", "no-X", MAT, instead(mat(y=ARRAYS["y"])), r"no variable 'X'; it has \['y'\]", 128),
    Damage("svhn", "no-y", MAT, instead(mat(X=ARRAYS["X"])), "no variable 'y'", 128),
    Damage("svhn", "names-lower-case", MAT, instead(mat(x=ARRAYS["X"], y=ARRAYS["y"])), "no variable 'X'", 128),
    Damage("svhn", "X-double", MAT, mat_of(X=ARRAYS["X"] / 255), "X has .* bytes of type 9", 128),
    Damage("svhn", "X-28x28", MAT, mat_of(X=pixels(28, 28, 3, 6)), r"X has shape \(28, 28, 3, 6\)", 128),
    Damage("svhn", "X-grey", MAT, mat_of(X=pixels(32, 32, 6)), r"X has shape \(32, 32, 6\)", 128),
    Damage("svhn", "X-images-first", MAT, mat_of(X=pixels(6, 32, 32, 3)), r"X has shape \(6, 32, 32, 3\)", 128),
    Damage("svhn", "X-cell", MAT, mat_of(X=np.array([[1, "a"]], object)), r"X has shape \(1, 2\).* type 14", 128),
    Damage("svhn", "X-text", MAT, mat_of(X="pixels"), r"X has shape \(1,\)|X has shape \(1, 6\)", 128),
    Damage("svhn", "X-signed", MAT, mat_of(X=ARRAYS["X"].astype(np.int8)), "X has .* bytes of type 1;", 128),
    Damage("svhn", "exchanged", MAT, instead(mat(X=ARRAYS["y"], y=ARRAYS["X"])), r"X has shape \(6, 1\)", 128),
    Damage("svhn", "y-row", MAT, mat_of(y=ARRAYS["y"].T), r"y has shape \(1, 6\)"),
    Damage("svhn", "y-double", MAT, mat_of(y=ARRAYS["y"] / 1), "y has shape .* 48 bytes of type 9"),
    Damage("svhn", "label-0", MAT, mat_of(y=ARRAYS["y"] - 1), "label 0 of image 0 is not within 1 to 10", 56),
    Damage("svhn", "label-11", MAT, mat_of(y=ARRAYS["y"] + 1), "label 11 of image 5", 61),
    Damage("svhn", "label-missing", MAT, mat_of(y=ARRAYS["y"][1:]), "5 labels for 6 images"),
    Damage("svhn", "test-for-training", MAT, instead(mat(**svhn_arrays(4))), "4 images, published are 6", 128),
    # The parts of an uncompressed variable: flags at 136, shape at 152, name at 176, values at 184.
    Damage("svhn-plain", "flags-beyond", MAT, put(140, b"\xff\xff"), "short: the element at byte 136"),
    Damage("svhn-plain", "shape-type", MAT, put(152, b"\x06"), "shape is not a list of integers", 160),
    Damage("svhn-plain", "shape-of-15-bytes", MAT, put(156, b"\x0f"), "shape is not a list of integers", 160),
    Damage("svhn-plain", "shape-negative", MAT, put(175, b"\xff"), r"shape \(32, 32, 3, -16777210\)", 128),
    Damage("svhn-plain", "shape-beyond-data", MAT, put(172, b"\x07"), r"shape \(32, 32, 3, 7\), 18432 bytes", 128),
    Damage("svhn-plain", "name-of-9-bytes", MAT, put(178, b"\x09"), "element at byte 176 has 9 bytes"),
    Damage("svhn-plain", "name-changed", MAT, put(180, b"Z"), r"no variable 'X'; it has \['Z', 'y'\]", 128),
    Damage("svhn-plain", "values-type", MAT, put(184, b"\x07"), "18432 bytes of type 7", 128),
    Damage("svhn-plain", "values-beyond", MAT, put(191, b"\x7f"), "short: the element at byte 184"),
]

TINY = "tiny-imagenet-200"
NAMES, NOTES = f"{TINY}/wnids.txt", f"{TINY}/val/val_annotations.txt"
PICTURE = f"{TINY}/train/{WNIDS[1]}/images/{WNIDS[1]}_0.JPEG"
LINE = len(f"val_0.JPEG\t{WNIDS[0]}\t0\t1\t62\t63\n")


def note(line):
    """The second line of val_annotations.txt replaced."""
    return lambda raw: raw[:LINE] + line + raw[2 * LINE :]


def rename(name):
    def edit(path):
        path.rename(path.with_name(name))

    return edit


def beside(name, content=b"?"):
    def edit(path):
        (path.parent / name).write_bytes(content)

    return edit


def make_folder_of_no_class(path):
    (path.parents[2] / "n99999999").mkdir()


TINY_IMAGENET = [
    *anywhere("tiny", PICTURE, "no JPEG"),
    Damage("tiny", "short", PICTURE, lambda raw: raw[: len(raw) // 2], "no end-of-image marker"),
    Damage("tiny", "without-end", PICTURE, lambda raw: raw[:-2], "no end-of-image marker"),
    Damage("tiny", "middle-lost", PICTURE, lambda raw: raw[: len(raw) // 2] + raw[-2:], "JPEG is damaged"),
    Damage("tiny", "first-bytes-only", PICTURE, instead(b"\xff\xd8\xff\xd9"), "JPEG is damaged"),
    Damage("tiny", "32x32", PICTURE, instead(jpeg(9, 32)), r"size \(32, 32\) instead of \(64, 64\)"),
    Damage("tiny", "png", PICTURE, instead(jpeg(9, form="PNG")), "no JPEG", 0),
    Damage("tiny", "gzip", PICTURE, gzip.compress, "no JPEG", 0),
    Damage(
        "tiny",
        "of-another-class",
        PICTURE,
        rename(f"{WNIDS[0]}_9.JPEG"),
        "does not belong among",
        0,
        on_path=True,
        blamed=PICTURE.replace(f"{WNIDS[1]}_0", f"{WNIDS[0]}_9"),
    ),
    Damage(
        "tiny",
        "foreign-file",
        PICTURE,
        beside("Thumbs.db"),
        "does not belong among",
        0,
        on_path=True,
        blamed=f"{Path(PICTURE).parent}/Thumbs.db",
    ),
    Damage(
        "tiny",
        "image-lost",
        PICTURE,
        Path.unlink,
        "1 images, published are 2",
        0,
        on_path=True,
        blamed=str(Path(PICTURE).parent),
    ),
    Damage(
        "tiny",
        "folder-of-no-class",
        PICTURE,
        make_folder_of_no_class,
        "names no such class",
        0,
        on_path=True,
        blamed=f"{TINY}/train/n99999999",
    ),
    Damage("tiny", "class-unnamed", NAMES, lambda raw: raw[10:], "2 classes, published are 3", 0),
    Damage("tiny", "class-twice", NAMES, lambda raw: raw + raw[:10], "stands here a second time", 30),
    Damage("tiny", "class-misspelt", NAMES, put(10, b"m"), "'m01443537' is no class name", 10),
    Damage(
        "tiny",
        "class-without-folder",
        NAMES,
        put(21, b"99999999"),
        "no such folder, and wnids.txt names n99999999",
        0,
        blamed=f"{TINY}/train/n99999999/images",
    ),
    Damage("tiny", "names-short", NAMES, cut(25), "'n0406' is no class name", 20),
    Damage("tiny", "names-binary", NAMES, put(3, b"\xff"), "byte beyond ASCII", 3),
    Damage("tiny", "names-empty", NAMES, instead(b""), "empty", 0),
    Damage("tiny", "names-a-page", NAMES, instead(HTML), "web page", 0),
    Damage("tiny", "names-a-folder", NAMES, as_folder, "not a regular file", 0, on_path=True),
    Damage("tiny", "note-of-no-file", NOTES, note(b"val_9.JPEG\tn01443537\t0\t1\t2\t3\n"), "not in", LINE, "test"),
    Damage(
        "tiny", "note-outside", NOTES, note(b"../images/val_1.JPEG\tn01443537\t0\t1\t2\t3\n"), "not in", LINE, "test"
    ),
    Damage(
        "tiny", "note-of-no-class", NOTES, note(b"val_1.JPEG\tn01443530\t0\t1\t2\t3\n"), "n01443530", LINE + 11, "test"
    ),
    Damage("tiny", "note-five-columns", NOTES, note(b"val_1.JPEG\tn01443537\t0\t1\t2\n"), "5 columns", LINE, "test"),
    Damage("tiny", "note-twice", NOTES, note(b"val_0.JPEG\tn01443537\t0\t1\t2\t3\n"), "second time", LINE, "test"),
    Damage("tiny", "note-lost", NOTES, note(b""), "2 images, published are 3", 0, "test"),
    Damage("tiny", "notes-short", NOTES, lambda raw: raw[:-12], "columns instead of 6", 2 * LINE, "test"),
    Damage("tiny", "notes-binary", NOTES, put(1, b"\xe9"), "byte beyond ASCII", 1, "test"),
    Damage("tiny", "notes-absent", NOTES, Path.unlink, "cannot be read", 0, "test", on_path=True),
    Damage("tiny", "validation-image-short", f"{TINY}/val/images/val_1.JPEG", cut(300), "no end-of", 300, "test"),
]

DAMAGES = [*IDX, *CIFAR_BINARY, *CIFAR_PYTHON, *SVHN, *TINY_IMAGENET]
