"""What a client keeps between two rounds, as a parcel: for a process that ends in between."""

from typing import Any

from fedtheory.core import checks
from fedtheory.federation.codec import Parcel, Reader, Writer
from fedtheory.federation.halves import ClientHalf, _Kept


def keep(half: ClientHalf) -> Parcel:
    """All that a client holds: its row, its copies, and what it made of a round that may not count yet."""
    writer = Writer(half.client, lambda part, path: None)
    metadata = {"kept": _write(writer, half._kept), "pending": None, "down": None}
    if half._pending is not None:
        metadata["pending"] = _write(writer, half._pending)
        metadata["down"] = writer.write(half._down)
    return Parcel(-1 if half._kept.round is None else half._kept.round, "state", metadata, bytes(writer.data))


def restore(half: ClientHalf, parcel: Parcel) -> None:
    """Give a new half of the same client what an older one kept. Raises ValueError in one line for anything else."""
    reader = Reader(parcel.data, half._words, lambda path, rounds, came: came, client=half.client)
    try:
        words = parcel.metadata
        kept, pending = _read(half, reader, words["kept"]), None
        if words["pending"] is not None:
            pending = _read(half, reader, words["pending"])
        half._kept, half._pending, half._down = kept, pending, reader.read(words["down"], half._first)
    except (LookupError, TypeError, AttributeError) as error:
        checks.reject("state", type(error).__name__, "what a client of this run keeps", "remove it, and start anew")


def _write(writer: Writer, kept: _Kept) -> dict[str, Any]:
    return {
        "round": kept.round,
        "rated": kept.rated,
        "own": writer.write(kept.own),
        "copies": {path: writer.write(value, path=path) for path, value in kept.copies.items()},
        "held": {path: writer.write(part, path=path) for path, part in kept.held.items()},
    }


def _read(half: ClientHalf, reader: Reader, words: dict[str, Any]) -> _Kept:
    own = reader._read(words["own"], None, None, "", 0)
    copies = {path: reader._read(node, None, None, path, 0) for path, node in words["copies"].items()}
    held = {path: reader._read(node, None, None, path, 0) for path, node in words["held"].items()}
    algorithm, rated = half.full, words["rated"]
    if half.schedule is not None and rated >= 0:
        algorithm, _ = algorithm.at_rate(algorithm.lr * half.schedule.factor(rated), own)
    return _Kept(words["round"], own, algorithm, rated, copies, held)
