"""Sets of images: where they are published, and what vouches for a copy.

`load("digits")` and `load("shapes")` need no file. The other sets are read from the folder named by the argument or by
FEDTHEORY_DATA, in the files as published: MNIST and Fashion-MNIST (IDX, gzip or plain), CIFAR-10 and CIFAR-100 (binary;
the Python version without running its pickle), SVHN (.mat), Tiny-ImageNet (JPEGs). A file that is damaged, short or of
another set raises `DataError` with file, byte and cause.

Pixels have no checksum in most formats, so a changed byte shows only by a digest of the whole. Where the publisher's
is known, content is verified, once per file and process; a folder's own SHA256SUMS (`sha256sum * > SHA256SUMS`) vouches
for any other copy; what nothing vouches for is "unverified" (`Images.verified`). The digest of what was read goes into
the record of a run, so that a later change is seen as other data (`origin`).
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.problems import shapes
from fedtheory.problems.formats import (
    FETCH,
    IDX_FILES,
    Arrays,
    DataError,
    _idx_raw,
    _read,
    read_cifar_binary,
    read_cifar_python,
    read_idx,
    read_svhn,
    read_tiny_imagenet,
)


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images, kept as bytes; `floats` normalises those that are asked for.

    Fields:
        x: uint8, (n, channels, height, width).
        y: int64, (n,), indices into `classes`.
        classes: names of the labels.
        name: of the data set and split.
        mean, std: per channel, on the scale from 0 to 1; another normalisation is `dataclasses.replace`.
        missing: published files, and images of the others, that were not there (`load(..., partial=True)`).
        verified: what vouches for the files' content: "published" (the publisher's digests), "SHA256SUMS" (beside the
            files), "packaged" (a library or this package brings them), "copy: ..." (a known one that differs), or
            "unverified".
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
_FASHION_MNIST = _idx_form(
    "the four files linked from https://github.com/zalandoresearch/fashion-mnist",
    *("fashion-mnist", "fashion_mnist", "FashionMNIST", "FashionMNIST/raw"),
)
_CIFAR10 = (
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
_CIFAR100 = (
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
_TINY_IMAGENET = Form(
    read_tiny_imagenet,
    ("tiny-imagenet-200",),
    ("wnids.txt", "train"),
    ("wnids.txt", "val"),
    (500, 10_000),
    "http://cs231n.stanford.edu/tiny-imagenet-200.zip, unpacked in the data folder",
)

_DIGITS = tuple("0123456789")
_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_NUMBERS = tuple(map(str, range(200)))

# The usual statistics of the training pixels; the tests recompute those of MNIST, CIFAR-10 and the digits.
SETS: dict[str, Published] = {
    "mnist": Published((MNIST,), _DIGITS, (0.1307,), (0.3081,)),
    "fashion_mnist": Published((_FASHION_MNIST,), _FASHION, (0.2860,), (0.3530,)),
    "cifar10": Published(_CIFAR10, _OBJECTS, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": Published(_CIFAR100, _NUMBERS[:100], (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "svhn": Published((SVHN,), _DIGITS, (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
    "tiny_imagenet": Published((_TINY_IMAGENET,), _NUMBERS, (0.4802, 0.4481, 0.3975), (0.2770, 0.2691, 0.2821)),
}
PACKAGED = ("digits", "shapes")  # need no file
NAMES = (*PACKAGED, *SETS)

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
# SHA-256 of the copy on which the committed CIFAR-10 results were measured: the publisher's bytes in another order (the
# classes take turns; 77 training images of the last batch are missing), 34 of the 10,000 test images decoded from JPEG.
_COPIES = {
    "cifar10/data_batch_1.bin": "55dd26dd4624d8c50f0eb9d394e887c47a6640ca8761935ad07070f5ddd1034a",
    "cifar10/data_batch_2.bin": "a4f909593bfdd80c2596a3e95808d74e605ac107f8e4432f19d2528f960c2f3a",
    "cifar10/data_batch_3.bin": "33396316b3f857980ad2036be9156b64a20143a1ec69298934f4809a8dab75bb",
    "cifar10/data_batch_4.bin": "054db217df5057c47f83a5fbe48f8b5d74cda586280e3f00ff3337d1542c6da5",
    "cifar10/data_batch_5.bin": "e48585b240fd654086227477e2dc6d0c9847193cd4acd9662ee5e84f89aa630c",
    "cifar10/test_batch.bin": "050806bddd989ee49798ab7b35f16f124c3ab0f1bc089693bba09f38ba3f4d4c",
}
_KNOWN_COPY = "copy: in another order than published, 34 of the 10,000 test images decoded from JPEG"
_SUMS = "SHA256SUMS"

_Stamp = tuple[str, int, int, int]
_vouched: dict[tuple[str, bool, tuple[_Stamp, ...]], str] = {}
_origins: dict[tuple[Any, ...], dict[str, Any]] = {}


def _stamps(paths: Sequence[Path]) -> tuple[_Stamp, ...]:
    """Name, size, time of change and number of each file, of all files in a folder: while they stay, so does it."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    found = [(str(file), file.stat()) for file in files if file.exists()]
    return tuple((name, at.st_size, at.st_mtime_ns, at.st_ino) for name, at in found)


def digest_of(paths: Sequence[Path]) -> str:
    """Return SHA-256 over names and bytes of files (of all in a folder), computed once while they do not change."""
    where = ("files", _stamps(paths))
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
    where = (f"{name}/{path.name}", official, _stamps([path, path.with_name(_SUMS)]))
    if where not in _vouched:
        _vouched[where] = _look(name, path, official)
    return _vouched[where]


def _look(name: str, path: Path, official: bool) -> str:
    raw, label = _read(path), f"{name}/{path.name.removesuffix('.gz')}"
    listed = _listed(path)
    if listed is not None and hashlib.sha256(raw).hexdigest() != listed:
        raise DataError(path, 0, f"its SHA-256 is not the one in {_SUMS}", f"{FETCH}, or make {_SUMS} again")
    if "-idx" in path.name:
        raw = _idx_raw(path, *IDX_FILES["images" if "images" in path.name else "labels"], None)[1]
    md5, sha1 = (hashlib.new(kind, raw, usedforsecurity=False).hexdigest() for kind in ("md5", "sha1"))
    owner = next((other for other, published in DIGESTS.items() if published in (md5, sha1)), None)
    if owner == label:
        return "published"
    if listed is not None:
        return _SUMS
    if _COPIES.get(label) == hashlib.sha256(raw).hexdigest():
        return _KNOWN_COPY
    if official and (owner or label in DIGESTS):
        published = DIGESTS.get(label, "")
        found = f"MD5 {md5}" if len(published) == 32 else f"SHA-1 {sha1}"
        cause = f"is the published {owner}" if owner else f"{found}, published is {published}"
        fix = f"{FETCH}; if another copy is meant, vouch for it by a {_SUMS} beside it, or pass official=False"
        raise DataError(path, 0, cause, fix)
    return "unverified"


def _listed(path: Path) -> str | None:
    """The SHA-256 of a file in the SHA256SUMS beside it."""
    sums = path.with_name(_SUMS)
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
    partial: bool | int = False,
    official: bool = True,
) -> Images:
    """Read a data set.

    Args:
        name: "digits" (scikit-learn's, 8 x 8) or "shapes" (drawn here, 28 x 28), which need no file; "mnist",
            "fashion_mnist", "cifar10", "cifar100", "svhn" or "tiny_imagenet".
        folder: where the published files lie, in it or in their usual subfolder; default: FEDTHEORY_DATA.
        split: "train" or "test". The digits have no published split: the 1,797 are permuted by Key(0).fold("digits"),
            1,437 train and 360 test. Of the shapes 4,000 are train and 1,000 test. Tiny-ImageNet's "test" is its
            validation set, the test set has no labels.
        partial: CIFAR-10's training set from the images that are there; `Images.missing` says what is not. A number:
            only if there are so many.
        official: require the published number of images, and the published digests where they are known.

    Raises FileNotFoundError for a file that is not there, DataError for one that is not what its name says.
    """
    name = checks.choice("name", checks.alike(name, NAMES), NAMES)
    checks.choice("split", split, ("train", "test"))
    if name in PACKAGED:
        return (_digits if name == "digits" else _shapes)(split)
    published = SETS[name]
    form, paths, missing = _find(name, folder, split, partial)
    count, some = form.counts[split == "test"], partial and form.batches and split == "train"
    before = _stamps(paths)
    x, y = form.read(paths, len(published.classes), count if official and not some else None)
    lacking = count * len(paths) - len(x) if some else 0
    if lacking < 0 and official:
        raise DataError(paths[0].parent, 0, f"{len(x)} images, published are {count * len(paths)}")
    if lacking > 0:
        missing += (f"{lacking} image{'s' * (lacking > 1)}",)
    if some and partial is not True and len(x) != partial:
        raise DataError(paths[0].parent, 0, f"{len(x)} images, asked for are {partial}", "name a folder with so many")
    vouched = dict.fromkeys(_verify(name, path, official) if path.is_file() else "unverified" for path in paths)
    if _stamps(paths) != before:
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
    partial: bool | int = False,
    images: Images | None = None,
) -> dict[str, Any]:
    """Return what `load` reads: SHA-256 of images and labels, their number, what vouches for them, what is missing.

    The files are read once per process, and again when they change; not where `images` is what `load` just gave.
    """
    name = checks.choice("name", checks.alike(name, NAMES), NAMES)
    paths = [] if name in PACKAGED else _find(name, folder, split, partial)[1]
    where = (name, split, partial, _stamps(paths))
    if where not in _origins:
        _origins[where] = (images or load(name, folder, split, partial=partial)).origin
    return _origins[where]


def _find(
    name: str, folder: str | Path | None, split: str, partial: bool | int
) -> tuple[Form, list[Path], tuple[str, ...]]:
    """The form of which a file is there, the paths of its files, and the names of those that may be missing."""
    forms = SETS[name].forms
    get = f"get {' or '.join(form.get for form in forms)}"
    folder = folder if folder is not None else os.environ.get("FEDTHEORY_DATA")
    if not folder:
        fix = f"{get}; then pass folder=... or set FEDTHEORY_DATA; load('digits') needs no file"
        checks.reject("folder", folder, f"the folder of {name}'s published files", fix, FileNotFoundError)
    root = checks.path("folder", folder)
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


@cache  # a text of 117,000 numbers, which every run on the digits asks for twice
def _all_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """scikit-learn's 1,797 digits; their values 0 to 16 are stored times 15.

    Its file is read as its `load_digits` reads it, without importing it, which takes most of a second.
    """
    found = find_spec("sklearn")
    assert found is not None
    assert found.origin is not None
    rows = np.loadtxt(Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz", np.int64, delimiter=",")
    return torch.from_numpy(15 * rows[:, :-1]).to(torch.uint8).view(-1, 1, 8, 8), torch.from_numpy(rows[:, -1].copy())


def _digits(split: str) -> Images:
    """A copy of one part of them."""
    x, y = _all_digits()
    order = torch.randperm(len(y), generator=Key(0).fold("digits").generator())
    mine = order[:1437] if split == "train" else order[1437:]
    return Images(x[mine], y[mine], _DIGITS, f"digits {split}", (0.2868,), (0.3539,), verified="packaged")


def _shapes(split: str) -> Images:
    """A copy of one part of them."""
    x, y = shapes.shapes()
    mine = slice(shapes.TRAIN) if split == "train" else slice(shapes.TRAIN, None)
    mean, std = (0.3322,), (0.1938,)
    return Images(x[mine].clone(), y[mine].clone(), shapes.CLASSES, f"shapes {split}", mean, std, verified="packaged")
