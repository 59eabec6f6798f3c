"""Change one bit or one byte of a stored file, many times, and count what is taken without a word (test_store.py).

python flips.py COUNT [DATA]     of runs, tables, records and ledgers; with DATA, a folder of MNIST and CIFAR-10, of the
                                 plain files of their test sets
"""

import contextlib
import gzip
import io
import json
import random
import shutil
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from pathlib import Path

from matplotlib.figure import Figure

from fedtheory import SSF, cli
from fedtheory.papers import store
from fedtheory.problems import data
from fedtheory.running import records
from fedtheory.theory import ledger

SPEC = store.Spec(SSF.haar(0.01, 2, 5), "ssf", (("het", 0.5), ("n", 4), ("rows", 6)), 30, 0, 2, 1)
CLAIMS = ("fedsub.a1-cd", "ssf.lemma2.step6")


def item(name="ssf/made"):
    """An item whose picture is empty."""
    return store.Item(name, "A small table", lambda runner, scale, seeds: result(), lambda table: Figure((1, 1)))


def result(ours=1.25):
    """A table of 40 rows and two cells."""
    table = [{"method": f"m{i}", "seed": i, "value": ours * i / 7} for i in range(40)]
    cells = [records.Cell(f"c{i}", 1.5, ours, 1.0, 1.5, 3, "matches", "within a factor of 1.5") for i in range(2)]
    return store.Result(table, cells, {"rounds": 30, "rates": [0.1, 0.01]}, ["a note"])


def stored(folder, runner):
    """kind -> (path, how it is read): a run, a record with its table, a ledger."""
    runner([SPEC])
    stem = store.save(folder, item(), result(), "quick", 3, 1.0, "cpu")
    book = folder / "ledger.json"
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(["claims", *CLAIMS, "--json", "--save", str(book)]) == 0
    asked = runner._head(SPEC) if hasattr(runner, "_head") else SPEC
    load = lambda: records.load(folder, "ssf/made")
    return {
        "run": (runner.path(SPEC), lambda: runner._read(asked)),
        "table": (stem.with_suffix(".csv"), load),
        "record": (stem.with_suffix(".json"), load),
        "ledger": (book, lambda: ledger.load(book)),
    }


def changed(content, chance):
    """One bit flipped, or one byte replaced by another."""
    at, new = chance.randrange(len(content)), bytearray(content)
    new[at] ^= 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(1, 256)
    return bytes(new)


def silent(kinds, count, seed=0):
    """(kind, end) -> how often: "refused" (an error or a warning), "crashed", "taken", "taken, other content"."""
    chance, found = random.Random(seed), Counter()
    truth = {kind: repr(load()) for kind, (_, load) in kinds.items()}
    for trial in range(count):
        kind = list(kinds)[trial % len(kinds)]
        path, load = kinds[kind]
        whole = path.read_bytes()
        path.write_bytes(changed(whole, chance))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                got = load()
            end = "refused" if got is None else "taken" if repr(got) == truth[kind] else "taken, other content"
        except (ValueError, UserWarning) as error:
            end = (
                "refused" if "expected" in str(error) or isinstance(error, (data.DataError, UserWarning)) else "crashed"
            )
        except Exception:
            end = "crashed"
        found[kind, end] += 1
        for left in path.parent.glob(f"{path.name}.damaged*"):
            left.unlink()
        path.write_bytes(whole)
    return found


def published(folder, source):
    """kind -> (path, how it is read) of the test sets' plain files."""
    names = ("mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte")
    (folder / "mnist").mkdir()
    for name in names:
        (folder / name).write_bytes(gzip.decompress((source / f"{name}.gz").read_bytes()))
    (folder / "cifar-10-batches-bin").mkdir()
    batch = folder / "cifar-10-batches-bin/test_batch.bin"
    shutil.copyfile(source / "cifar-10-batches-bin/test_batch.bin", batch)
    sums = lambda name: lambda: _sums(data.load(name, folder, "test"))
    kinds = {name: (folder / name, sums("mnist")) for name in names}
    return kinds | {"cifar10/test_batch.bin": (batch, sums("cifar10"))}


def _sums(images):
    return zlib.crc32(images.x.numpy()), zlib.crc32(images.y.numpy())


def main(count, source=None):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = stored(folder, store.Runner(folder, workers=1)) if source is None else published(folder, Path(source))
        found = silent(kinds, count)
    print(json.dumps({f"{kind}: {end}": number for (kind, end), number in sorted(found.items())}, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
