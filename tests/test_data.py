"""Readers: what was written is read, damaged files are refused with file, byte and cause. Partitions are partitions."""

import gzip
import math
import os
import pickle
import re
import struct
import tracemalloc
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import damage
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from fedtheory.core.key import Key
from fedtheory.problems import data, shapes
from fedtheory.problems.data import Images, load
from fedtheory.problems.formats import DataError
from fedtheory.problems.partitions import _filled, dirichlet, iid, labels_per_client


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The published counts and checksums become those of the small files; payloads would leave their trace here."""
    for name, counts in damage.COUNTS.items():
        published = data.SETS[name]
        forms = tuple(replace(form, counts=counts) for form in published.forms)
        classes = published.classes[:3] if name == "tiny_imagenet" else published.classes
        monkeypatch.setitem(data.SETS, name, replace(published, forms=forms, classes=classes))
    monkeypatch.setattr(data, "DIGESTS", {})
    monkeypatch.delenv("FEDTHEORY_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("form", damage.SMALL)
def test_reads_what_was_written(form, small):
    name, writer = damage.SMALL[form]
    for split, (x, y) in writer(small).items():
        images = load(name, small, split)
        assert images.x.dtype == torch.uint8
        assert images.name == f"{name} {split}"
        np.testing.assert_array_equal(images.y.numpy(), y)
        np.testing.assert_array_equal(images.x.flatten(1).numpy(), x.reshape(len(y), -1))


@pytest.mark.parametrize("case", damage.DAMAGES, ids=lambda case: f"{case.form}-{case.name}")
def test_damage_is_named(case, small):
    if case.edit is damage.unreadable and os.geteuid() == 0:
        pytest.skip("root reads everything")
    name, writer = damage.SMALL[case.form]
    writer(small)
    path = small / case.file
    if case.on_path:
        case.edit(path)
    else:
        before = path.read_bytes()
        path.write_bytes(case.edit(before))
        assert path.read_bytes() != before, "the edit changes nothing"
    with pytest.raises(DataError, match=case.cause) as caught:
        load(name, small, case.split)
    error = caught.value
    assert re.search(case.cause, error.cause)
    assert re.sub(r" \(.*decompressed\)$", "", error.path) == str(small / (case.blamed or case.file))
    assert isinstance(error.offset, int)
    assert error.offset >= 0
    assert case.offset in (None, error.offset)
    assert str(error).startswith(f"{error.path}, byte {error.offset}: {error.cause}. Fix: ")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # it crosses from worker processes
    assert not (small / damage.TRACE).exists()


def test_twenty_kinds_of_damage_per_format():
    counts = Counter(re.sub(r"\.gz|-plain|0(?=0-)", "", case.form) for case in damage.DAMAGES)
    assert set(counts) == {"idx", "cifar10-bin", "cifar10-py", "svhn", "tiny"}
    assert min(counts.values()) >= 20
    names = Counter((case.form, case.name) for case in damage.DAMAGES)
    assert max(names.values()) == 1


def test_payloads_would_leave_their_trace(small):
    """The control of the pickle cases: an ordinary unpickler runs them."""
    pickle.loads(pickle.dumps(damage.Payload()))
    assert (small / damage.TRACE).exists()


@pytest.mark.parametrize("form", [form for form in damage.SMALL if form != "tiny"])
def test_no_prefix_is_read(form, small):
    """A file that breaks off, wherever it does, is refused."""
    name, writer = damage.SMALL[form]
    writer(small)
    for path in sorted(path for path in small.rglob("*") if path.is_file() and "test" not in path.name):
        if path.name.startswith("t10k"):
            continue
        whole = path.read_bytes()
        ends = {*range(40), *range(len(whole) - 40, len(whole)), *range(0, len(whole), len(whole) // 60 + 1)}
        for end in sorted(end for end in ends if 0 <= end < len(whole)):
            path.write_bytes(whole[:end])
            with pytest.raises(DataError) as caught:
                load(name, small)
            assert caught.value.path.startswith(str(path))
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "form", ["idx.gz", "idx", "cifar10-bin", "cifar10-py", "cifar10-py3", "svhn", "svhn-plain", "tiny"]
)
def test_changed_bytes_give_images_or_a_data_error(form, small):
    """Random bytes changed: what comes out is labelled images of the right shape, or a DataError."""
    name, writer = damage.SMALL[form]
    sides = {"tiny_imagenet": (3, 64, 64), "mnist": (1, 28, 28)}.get(name, (3, 32, 32))
    shape = {split: (len(y), *sides) for split, (_, y) in writer(small).items()}
    paths = sorted(path for path in small.rglob("*") if path.is_file())
    rng = np.random.default_rng(0)
    for _ in range(150):
        path = paths[rng.integers(len(paths))]
        whole = path.read_bytes()
        changed = bytearray(whole)
        for at in rng.integers(min(len(whole), 400), size=rng.integers(1, 4)):
            changed[at] = rng.integers(256)
        path.write_bytes(changed)
        for split in ("train", "test"):
            with suppress(DataError):
                assert load(name, small, split).x.shape == shape[split]
        path.write_bytes(whole)
    assert not (small / damage.TRACE).exists()


# load: where files are looked for, what is said of those that are absent, checksums.


def test_absent_files_are_said(small):
    with pytest.raises(FileNotFoundError, match=r"folder=None.*svhn.*ufldl\.stanford\.edu.*FEDTHEORY_DATA"):
        load("svhn")
    with pytest.raises(FileNotFoundError, match=rf"train_32x32\.mat.*{re.escape(str(small / 'svhn'))}.*ufldl"):
        load("svhn", small)
    damage.small_idx(small)
    (small / f"{damage.LABELS}.gz").unlink()
    with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte beside the other files"):
        load("mnist", small, partial=True)
    with pytest.raises(ValueError, match="name='mnits'"):
        load("mnits")
    with pytest.raises(ValueError, match="split='validation'"):
        load("digits", split="validation")


def test_the_folder_comes_from_the_environment_or_is_the_sets_own(small, monkeypatch):
    damage.small_idx(small)
    assert len(load("mnist", small / "mnist")) == 6
    monkeypatch.setenv("FEDTHEORY_DATA", str(small))
    assert len(load("mnist", split="test")) == 4
    with pytest.raises(FileNotFoundError, match="fashion-mnist"):  # the same file names: never taken for another set
        load("fashion_mnist")
    with pytest.raises(FileNotFoundError, match="fashion-mnist"):
        load("fashion_mnist", small / "mnist")


def test_missing_batches_are_said(small):
    x, y = damage.small_cifar_binary(small)["train"]
    for i in (3, 5):
        (small / f"cifar-10-batches-bin/data_batch_{i}.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3\.bin, data_batch_5\.bin.*partial=True"):
        load("cifar10", small)
    images = load("cifar10", small, partial=True)
    assert images.missing == ("data_batch_3.bin", "data_batch_5.bin")
    here = np.r_[0:8, 12:16]
    np.testing.assert_array_equal(images.y.numpy(), y[here])
    np.testing.assert_array_equal(images.x.flatten(1).numpy(), x[here])
    assert load("cifar10", small, "test").missing == ()


def test_missing_images_are_said(small):
    x, y = damage.small_cifar_binary(small)["train"]
    last = small / "cifar-10-batches-bin/data_batch_5.bin"
    last.write_bytes(last.read_bytes()[: 3 * 3073])
    with pytest.raises(DataError, match=r"data_batch_5\.bin.*3 images, published are 4"):
        load("cifar10", small)
    images = load("cifar10", small, partial=True)
    assert images.missing == ("1 image",)
    assert len(load("cifar10", small, partial=19)) == 19
    with pytest.raises(DataError, match="19 images, asked for are 18"):
        load("cifar10", small, partial=18)
    np.testing.assert_array_equal(images.y.numpy(), y[:-1])
    np.testing.assert_array_equal(images.x.flatten(1).numpy(), x[:-1])
    whole = last.read_bytes()
    last.write_bytes(whole + whole[:3073] + whole[3073:6146])
    with pytest.raises(DataError, match="21 images, published are 20"):
        load("cifar10", small, partial=True)
    last.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="3072 bytes left after 2 records"):
        load("cifar10", small, partial=True)


def test_digests(small, monkeypatch):
    """A published digest, of decompressed content, is required unless another copy is meant; another set is named."""
    damage.small_idx(small)
    damage.small_idx(small, "fashion-mnist", packed=False)
    content = (small / "fashion-mnist/train-images-idx3-ubyte").read_bytes()
    digest, label = data.hashlib.md5(content).hexdigest(), "fashion_mnist/train-images-idx3-ubyte"
    monkeypatch.setattr(data, "DIGESTS", {label: digest})
    monkeypatch.setattr(data, "_vouched", {})
    assert load("fashion_mnist", small).verified == "unverified"  # nothing is known of its labels
    labels = (small / "fashion-mnist/train-labels-idx1-ubyte").read_bytes()
    known = {label: digest, label.replace("images-idx3", "labels-idx1"): data.hashlib.sha1(labels).hexdigest()}
    monkeypatch.setattr(data, "DIGESTS", known)
    monkeypatch.setattr(data, "_vouched", {})
    assert load("fashion_mnist", small).verified == "published"
    with pytest.raises(DataError, match=r"is the published fashion_mnist/train-images.*SHA256SUMS.*official=False"):
        load("mnist", small)
    assert load("mnist", small, official=False).verified == "unverified"
    monkeypatch.setattr(data, "DIGESTS", {label: "0" * 32})
    monkeypatch.setattr(data, "_vouched", {})
    with pytest.raises(DataError, match=f"MD5 {digest}, published is 0000"):
        load("fashion_mnist", small)


def test_every_changed_byte_is_seen_where_a_digest_is_known(small, monkeypatch):
    """60 flips of one bit in plain files whose digests are known: none is taken. Without digests most are."""
    damage.small_idx(small, packed=False)
    damage.small_cifar_binary(small)
    sets = {"mnist": "mnist", "cifar10": "cifar-10-batches-bin"}
    paths = [path for folder in sets.values() for path in sorted((small / folder).iterdir())]
    known = {
        f"{name}/{path.name}": data.hashlib.md5(path.read_bytes()).hexdigest()
        for name, folder in sets.items()
        for path in (small / folder).iterdir()
    }

    def taken():
        silent = 0
        rng = np.random.default_rng(0)
        for _ in range(60):
            path = paths[rng.integers(len(paths))]
            whole = path.read_bytes()
            path.write_bytes(damage.flip(int(rng.integers(len(whole))), 1 << int(rng.integers(8)))(whole))
            name = next(name for name, folder in sets.items() if folder == path.parent.name)
            with suppress(DataError):
                load(name, small, "test" if path.name.startswith(("t10k", "test")) else "train")
                silent += 1
            path.write_bytes(whole)
        return silent

    assert taken() > 40
    monkeypatch.setattr(data, "DIGESTS", known)
    monkeypatch.setattr(data, "_vouched", {})
    assert taken() == 0
    assert load("cifar10", small).verified == load("mnist", small).verified == "published"


def test_a_copy_is_vouched_for_by_its_own_sums(small, monkeypatch):
    damage.small_cifar_binary(small)
    folder = small / "cifar-10-batches-bin"
    files = sorted(folder.glob("*.bin"))
    monkeypatch.setattr(data, "DIGESTS", {f"cifar10/{path.name}": "0" * 40 for path in files})
    with pytest.raises(DataError, match=r"SHA-1 .*published is 0000"):
        load("cifar10", small)
    lines = [f"{data.hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    assert load("cifar10", small).verified == "SHA256SUMS"
    files[0].write_bytes(damage.flip(100)(files[0].read_bytes()))
    with pytest.raises(DataError, match=r"data_batch_1\.bin, byte 0: its SHA-256 is not the one in SHA256SUMS"):
        load("cifar10", small)


def test_content_is_verified_once_per_file_and_process(small, monkeypatch):
    """A second load looks at the stamps alone; a changed file is looked into again, and is another origin."""
    damage.small_idx(small)
    looked = []
    look = data._look
    monkeypatch.setattr(
        data, "_look", lambda name, path, official: looked.append(path.name) or look(name, path, official)
    )
    first = data.origin("mnist", small)
    again = data.origin("mnist", small)
    load("mnist", small)
    assert first == again == load("mnist", small).origin
    assert len(looked) == 2
    assert (first["verified"], first["images"]) == ("unverified", 6)
    path = small / f"{damage.IMAGES}.gz"
    path.write_bytes(damage.regzip(damage.flip(16))(path.read_bytes()))
    assert data.origin("mnist", small)["sha256"] != first["sha256"]
    assert len(looked) == 3
    (small / f"{damage.IMAGES}.gz").unlink()
    (small / damage.IMAGES).write_bytes(damage.idx(damage.pixels(6, 28, 28)))
    assert data.origin("mnist", small)["sha256"] == first["sha256"], "the same images, not packed"


def test_files_that_change_while_they_are_read_are_refused(small, monkeypatch):
    damage.small_idx(small)

    def slow(paths, classes, count):
        found = data.read_idx(paths, classes, count)
        paths[0].write_bytes(damage.regzip(damage.flip(16))(paths[0].read_bytes()))
        return found

    form = replace(data.SETS["mnist"].forms[0], read=slow)
    monkeypatch.setitem(data.SETS, "mnist", replace(data.SETS["mnist"], forms=(form,)))
    with pytest.raises(DataError, match="changed while they were read"):
        load("mnist", small)


def peak(work):
    """What it raised, and the largest sum of bytes held in Python objects meanwhile."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            work()
        return caught.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_too_large_is_refused_by_its_declared_size(small, monkeypatch):
    """A sparse file of 40 GB, and streams that would decompress to 12 MB: little is read, little is held."""
    damage.small_idx(small)
    path = small / f"{damage.IMAGES}.gz"
    whole = path.read_bytes()
    with open(path, "wb") as file:
        file.truncate(40 * 10**9)
    error, held = peak(lambda: load("mnist", small))
    assert "40000000000 bytes" in error.cause
    assert held < 10**7
    for content in (damage.idx(damage.pixels(6, 28, 28)), struct.pack(">4I", 0x803, 6, 28, 28)):
        path.write_bytes(gzip.compress(content + bytes(12 * 10**6), 1))
        error, held = peak(lambda: load("mnist", small))
        assert "holds more than" in error.cause
        assert held < 10**7
    path.write_bytes(gzip.compress(struct.pack(">4I", 0x803, 2**31, 28, 28) + bytes(3 * 10**6), 1))
    assert "declares" in peak(lambda: load("mnist", small, official=False))[0].cause
    path.write_bytes(whole)
    damage.small_svhn(small)
    bomb = damage.mat(X=np.zeros((32, 32, 3, 76_000), np.uint8), y=np.ones((76_000, 1), np.uint8))
    (small / "svhn/train_32x32.mat").write_bytes(bomb)
    error, held = peak(lambda: load("svhn", small))
    assert "declares" in error.cause
    assert held < 10**7


def test_published_counts_are_required(tmp_path):
    damage.small_idx(tmp_path)
    with pytest.raises(DataError, match=r"byte 4: 6 images, published are 60000.*official=False"):
        load("mnist", tmp_path)
    assert len(load("mnist", tmp_path, official=False)) == 6
    (tmp_path / f"{damage.LABELS}.gz").write_bytes(damage.idx(damage.labels(4, 10)))
    with pytest.raises(DataError, match=r"byte 4: 4 labels for the 6 images of train-images"):
        load("mnist", tmp_path, official=False)


# Images.


def test_digits_need_no_file(monkeypatch):
    monkeypatch.delenv("FEDTHEORY_DATA", raising=False)
    train, test = load(), load(split="test")
    assert (len(train), len(test)) == (1437, 360)
    assert train.x.shape[1:] == (1, 8, 8)
    both = torch.cat([train.x, test.x]).flatten(1)
    assert len(both.unique(dim=0)) == 1797  # every digit once
    assert torch.equal(train.y, load().y)
    assert int(torch.bincount(train.y).min()) > 100
    assert_standard(train, 1e-3)


def test_shapes_are_drawn_alike_everywhere(monkeypatch):
    """The bytes are those of every machine; classes are equally frequent; a caller has a copy of its own."""
    monkeypatch.delenv("FEDTHEORY_DATA", raising=False)
    train, test = load("shapes"), load("shapes", split="test")
    assert (train.x.shape, len(test)) == ((4000, 1, 28, 28), 1000)
    assert set((torch.bincount(train.y) + torch.bincount(test.y)).tolist()) == {500}
    assert int(torch.bincount(test.y).min()) > 75
    assert (train.digest[:16], test.digest[:16]) == ("1910903936a2f433", "f7f1269ebb0ebf31")
    assert_standard(train, 1e-3)
    train.x.zero_()
    assert int(load("shapes").x.sum()) > 0


def test_a_shape_is_what_its_name_says():
    """Areas by a fine grid, to a percent: formulas that were mixed up would show."""
    at = np.linspace(-1.5, 1.5, 600)
    u, v = np.meshgrid(at, at)
    areas = [9 * shapes._inside(kind, u, v).mean() for kind in range(len(shapes.CLASSES))]
    disc = math.pi
    a = math.acos(0.25 + 1 - 0.7)  # half angles of the lens in which the crescent's two discs meet
    b = math.acos((0.25 + 0.7 - 1) / (2 * 0.5 * math.sqrt(0.7)))
    lens = a - math.sin(2 * a) / 2 + 0.7 * (b - math.sin(2 * b) / 2)
    exact = [
        disc, 0.6 * math.pi, math.pi / 2, disc - lens, 1.7**2, 1.7**2 - 1, 1.7**2 - 1.1**2, 2 * 2 * 0.6 - 0.36,
        2 * 0.6, 1.6**2 / 1.8,
    ]  # fmt: skip
    np.testing.assert_allclose(areas, exact, rtol=0.015)


def test_digits_are_those_that_scikit_learn_gives():
    """And each call's own: what one caller writes into is not what the next one gets."""
    pixels, labels = load_digits(return_X_y=True)
    parts = [load(), load(split="test")]
    found = [row for part in parts for row in zip(part.x.flatten(1).tolist(), part.y.tolist())]
    assert sorted(found) == sorted(zip((15 * pixels).astype(int).tolist(), labels.tolist()))
    load().x.zero_()
    load().y.zero_()
    assert int(load().x.sum()) > 0
    assert int(load().y.sum()) > 0


def assert_standard(images, tolerance):
    """Normalised with the statistics of the training images: mean 0 and deviation 1 per channel."""
    x = images.floats()
    assert x.dtype == torch.float32
    assert x.mean((0, 2, 3)).abs().max() < tolerance
    assert (x.std((0, 2, 3)) - 1).abs().max() < tolerance


def test_floats_are_the_normalised_bytes():
    x = torch.arange(24, dtype=torch.uint8).view(2, 3, 2, 2)
    images = Images(x, torch.tensor([0, 1]), ("a", "b"), "two", (0.1, 0.2, 0.3), (0.5, 0.25, 1.0))
    got = images.floats(torch.tensor([1]), torch.float64)
    for channel, (mean, std) in enumerate(zip(images.mean, images.std)):
        want = (x[1:, channel].double() / 255 - mean) / std
        torch.testing.assert_close(got[:, channel], want)
    assert images.x.equal(x)
    with pytest.raises(ValueError, match=r"labels 0 to 1.*labels from 0 to 0"):
        replace(images, classes=("a",))
    with pytest.raises(ValueError, match="one label per image"):
        replace(images, y=torch.tensor([0]))
    with pytest.raises(ValueError, match="uint8"):
        replace(images, x=x.float())
    with pytest.raises(ValueError, match="one pair per channel"):
        replace(images, mean=(0.5,))


SHARED = os.environ.get("FEDTHEORY_DATA")


def shared(name, file):
    return pytest.mark.skipif(
        SHARED is None or not (Path(SHARED) / file).exists(), reason=f"FEDTHEORY_DATA holds no {name}"
    )


@shared("MNIST", "mnist/train-images-idx3-ubyte.gz")
def test_real_mnist():
    train, test = load("mnist"), load("mnist", split="test")
    assert train.verified == test.verified == "published"
    assert train.x.shape == (60_000, 1, 28, 28)
    assert torch.bincount(test.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert_standard(train, 5e-4)


@shared("CIFAR-10", "cifar-10-batches-bin/data_batch_1.bin")
def test_real_cifar10():
    train, test = load("cifar10", partial=True), load("cifar10", split="test")
    files = [name for name in train.missing if name.endswith(".bin")]
    assert len(train) == 10_000 * (5 - len(files)) - (77 if "77 images" in train.missing else 0)
    assert torch.bincount(test.y).tolist() == [1000] * 10
    assert_standard(train, 1e-2)  # a part of the images, or all


# Partitions.

PARTITIONS = {
    "iid": lambda y, clients, key: iid(y, clients, key),
    "dirichlet": lambda y, clients, key: dirichlet(y, clients, 0.5, key, min_size=0),
    "dirichlet-uncapped": lambda y, clients, key: dirichlet(y, clients, 0.5, key, min_size=0, cap=False),
    "labels": lambda y, clients, key: labels_per_client(y, clients, min(2, len(y.unique())), key),
}
problems = st.tuples(st.integers(0, 99), st.integers(1, 12), st.integers(1, 6))


def draw_labels(seed, clients, classes):
    """At least 24 samples of every label, in random order, with unequal counts."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), rng.integers(24, 60, classes))
    return torch.from_numpy(rng.permutation(y))


@pytest.mark.parametrize("name", PARTITIONS)
@given(problem=problems)
def test_a_partition_is_a_partition(name, problem):
    """No sample twice, none out of range, each one used (labels: where every label has a holder)."""
    seed, clients, classes = problem
    y = draw_labels(*problem)
    parts = PARTITIONS[name](y, clients, Key(seed))
    assert len(parts) == clients
    assert all(part.dtype == torch.int64 and torch.equal(part, part.sort().values) for part in parts)
    used = torch.cat(parts)
    assert len(used.unique()) == len(used)
    assert int(used.min()) >= 0
    assert int(used.max()) < len(y)
    if name != "labels" or clients * min(2, classes) >= classes:
        assert len(used) == len(y)


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_is_a_function_of_its_key(name):
    y = draw_labels(0, 5, 6)
    first, again, other = (PARTITIONS[name](y, 5, key) for key in (Key(1), Key(1), Key(1).fold("other")))
    assert all(map(torch.equal, first, again))
    assert not all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(first, other))


def share_as_far(y, parts, batch=64, draws=199):
    """How often `batch` images drawn from each part have labels as far from the parts' as the first `batch` have.

    By chi-squared, summed over the parts; the first ones count as one draw.
    """
    rng, first, drawn = np.random.default_rng(0), 0.0, np.zeros(draws)
    for part in parts:
        held = np.bincount(y[part], minlength=len(y.unique()))
        b = min(batch, len(part))
        mean = b * held / len(part)
        far = lambda counts, mean=mean: ((counts - mean) ** 2 / np.maximum(mean, 1e-9)).sum(-1)
        first += far(np.bincount(y[part[:b]], minlength=len(held)))
        drawn += far(rng.multivariate_hypergeometric(held, b, size=draws))
    return (1 + (drawn >= first).sum()) / (1 + draws)


@pytest.mark.parametrize(
    ("name", "clients"),
    [
        ("digits", 10),
        pytest.param("mnist", 100, marks=shared("MNIST", "mnist/train-images-idx3-ubyte.gz")),
        pytest.param("fashion_mnist", 100, marks=shared("Fashion-MNIST", "fashion-mnist/train-images-idx3-ubyte.gz")),
        pytest.param("cifar10", 20, marks=shared("CIFAR-10", "cifar-10-batches-bin/data_batch_1.bin")),
        pytest.param("cifar10", 100, marks=shared("CIFAR-10", "cifar-10-batches-bin/data_batch_1.bin")),
    ],
)
def test_the_first_images_of_a_part_are_as_drawn_ones(name, clients):
    """So moments="first", which committed items name, is no worse there than a draw; sorted by label it is."""
    y, key = load(name, partial=True).y, Key(0).fold("data", "partition")
    sort = y.sort().values
    for parts in (
        iid,
        lambda y, *of: dirichlet(y, clients, 0.3, key),
        lambda y, *of: labels_per_client(y, clients, 3, key),
    ):
        assert share_as_far(y, parts(y, clients, key)) > 0.01
        assert share_as_far(sort, parts(sort, clients, key)) < 0.01


@given(problem=problems)
def test_iid_sizes_are_equal(problem):
    y = draw_labels(*problem)
    sizes = [len(part) for part in iid(y, problem[1], Key(0))]
    assert max(sizes) - min(sizes) <= 1


def shares(parts, y):
    """(clients, labels): the part of each label's samples that a client holds."""
    counts = torch.stack([torch.bincount(y[part], minlength=int(y.max()) + 1) for part in parts]).double()
    return counts / counts.sum(0)


@pytest.mark.parametrize("cap", [True, False])
def test_dirichlet_between_equal_shares_and_one_owner(cap):
    """alpha -> infinity: every client 1/N of every label; alpha -> 0: every label has one owner."""
    y = torch.arange(10).repeat(1000)
    even = shares(dirichlet(y, 10, 1e7, Key(0), cap=cap), y)
    assert (even - 0.1).abs().max() < 0.005
    single = shares(dirichlet(y, 10, 1e-3, Key(0), min_size=0, cap=cap), y)
    assert (single.max(0).values > 0.99).all()


def test_dirichlet_has_the_moments_of_its_shares():
    """Without cap and minimum a label's shares are Dirichlet(alpha): mean 1/N, variance (N-1) / (N^2 (N alpha + 1))."""
    clients, alpha = 5, 0.7
    y = torch.arange(4).repeat(2000)
    drawn = torch.stack(
        [shares(dirichlet(y, clients, alpha, Key(seed), min_size=0, cap=False), y) for seed in range(300)]
    )
    variance = (clients - 1) / (clients**2 * (clients * alpha + 1))
    error = (variance / (300 * 4)) ** 0.5
    assert (drawn.mean((0, 2)) - 1 / clients).abs().max() < 5 * error
    assert abs(drawn.var() / variance - 1) < 0.1


def test_dirichlet_cap_and_minimum():
    """Who has n/N samples gets no more labels; everyone has the minimum."""
    y = torch.arange(10).repeat(300)
    parts = dirichlet(y, 20, 0.3, Key(3))
    assert min(map(len, parts)) >= 10
    for part in parts:
        held = torch.bincount(y[part], minlength=10)
        last = int(held.nonzero()[-1])
        assert held[:last].sum() < len(y) / 20


@pytest.mark.parametrize(("clients", "alpha", "tries"), [(100, 0.01, 5), (300, 0.01, 1000), (500, 0.05, 1000)])
def test_dirichlet_exists_where_samples_suffice(clients, alpha, tries):
    """Draws do not reach ten samples for everyone here, and the last one is repaired."""
    y = torch.arange(10).repeat(10 * clients if clients == 500 else clients)
    parts = dirichlet(y, clients, alpha, Key(0), tries=tries)
    assert torch.equal(torch.cat(parts).sort()[0], torch.arange(len(y)))
    assert min(map(len, parts)) == 10


def test_a_repair_takes_from_the_largest():
    """By hand: 7, 1, 5, 0 samples and a minimum of 3 leave 3, 3, 4, 3."""
    parts = np.split(np.arange(13), [7, 8, 13])
    found = _filled(parts, 3, np.random.default_rng(0))
    assert [len(part) for part in found] == [3, 3, 4, 3]
    assert sorted(np.concatenate(found).tolist()) == list(range(13))
    assert {7} < set(found[1].tolist()) <= {7, *range(7)}


@given(problem=problems, labels=st.integers(1, 6))
def test_labels_per_client_gives_exactly_that_many(problem, labels):
    seed, clients, classes = problem
    labels = min(labels, classes)
    y = draw_labels(*problem)
    parts = labels_per_client(y, clients, labels, Key(seed))
    assert [len(y[part].unique()) for part in parts] == [labels] * clients
    held = torch.stack([torch.bincount(y[part], minlength=classes) for part in parts])
    holders = (held > 0).sum(0)
    assert holders.max() - holders.min() <= 1
    for label in range(classes):
        mine = held[:, label][held[:, label] > 0]
        assert len(mine) == 0 or mine.max() - mine.min() <= 1


def test_labels_are_drawn_by_the_key():
    """Which labels a client holds depends on the key, not only which of their samples."""
    y = torch.arange(10).repeat(40)
    held = {str([y[part].unique().tolist() for part in labels_per_client(y, 8, 3, Key(s))]) for s in range(5)}
    assert len(held) == 5


Y = torch.arange(20) % 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: iid(Y.tolist(), 2, Key(0)), TypeError, "y="),
        (lambda: dirichlet(Y.double(), 2, 1.0, Key(0)), ValueError, "y='torch.float64"),
        (lambda: iid(Y[:0], 2, Key(0)), ValueError, "y="),
        (lambda: iid(Y, 0, Key(0)), ValueError, "clients=0"),
        (lambda: iid(Y, 21, Key(0)), ValueError, "clients=21"),
        (lambda: iid(Y, 2, 0), TypeError, "key=0"),
        (lambda: dirichlet(Y, 2, 0.0, Key(0)), ValueError, "alpha=0"),
        (lambda: dirichlet(Y, 2, float("nan"), Key(0)), ValueError, "alpha=nan"),
        (lambda: dirichlet(Y, 2, 1.0, Key(0), min_size=11), ValueError, "clients=2: expected at most 1"),
        (lambda: dirichlet(Y, 2, 1.0, Key(0), tries=0), ValueError, "tries=0"),
        (lambda: labels_per_client(Y, 2, 5, Key(0)), ValueError, "labels=5"),
        (lambda: labels_per_client(Y, 2, 0, Key(0)), ValueError, "labels=0"),
        (lambda: labels_per_client(Y, 20, 4, Key(0)), ValueError, "hold label 0, which has 5 samples"),
    ],
)
def test_bad_partitions_are_refused(call, error, words):
    with pytest.raises(error, match=re.escape(words)) as caught:
        call()
    assert "expected" in str(caught.value)
    assert "Fix:" in str(caught.value)
