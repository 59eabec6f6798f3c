"""Records: what an item leaves on disk, `<item>.csv`, `.png` and `.json`, whole or not at all, and verified when read.

The record (.json) is sealed and holds the digests of the table and the picture beside it.
"""

import csv
import io
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedtheory.core import checks, registry
from fedtheory.core.files import RESEAL, Broken, misfit, open_own, sha256, unseal, write_atomic
from fedtheory.core.files import number as number
from fedtheory.core.files import plain as plain
from fedtheory.running.verdicts import RUNS, TUNINGS, VERDICTS

SCALES = ("quick", "medium", "large", "paper")  # a lower one never overwrites a higher one
Row = dict[str, Any]
Table = list[Row]


@dataclass(frozen=True)
class Cell:
    """One number that the paper prints, and ours. NaN: diverged, or not run.

    Fields:
        cell: what the number is.
        paper: printed number.
        ours, low, high: mean and 95% interval over seeds.
        seeds: how many.
        verdict: one of `verdicts.VERDICTS`, by the rule written there.
        reason: why.
        kind: what ours is: "run", a measurement of training; "count", of messages, tensors, parameters; "arithmetic",
            on numbers that the paper prints.
        ran: one of `verdicts.RUNS`: whether data, network and length are the paper's; "" where nothing was run.
        tuning: one of `verdicts.TUNINGS`: where rates and the like are from; "" where there is nothing to tune.
        p: `verdicts.chance` of the quantity that is judged; NaN where none has an interval.
        prints: what the paper prints where `paper` is no number, one of `PRINTS`; "": a number.
    """

    cell: str
    paper: float
    ours: float
    low: float
    high: float
    seeds: int
    verdict: str
    reason: str
    kind: str = "run"
    ran: str = ""
    tuning: str = ""
    p: float = math.nan
    prints: str = ""

    def __post_init__(self) -> None:
        checks.choice("verdict", self.verdict, VERDICTS)
        checks.choice("kind", self.kind, KINDS)
        checks.choice("ran", self.ran, RUNS)
        checks.choice("tuning", self.tuning, TUNINGS)
        checks.choice("prints", self.prints, ("", *PRINTS))

    def written(self) -> dict[str, Any]:
        """Its fields for a record."""
        return {name: value for name, value in vars(self).items() if name != "prints" or value}


PRINTS = ("NaN", "no value", "a sentence")  # a run that diverged; a hole in a table; a statement without a number
KINDS = ("run", "count", "arithmetic")


def place(out: Path, item: str, scale: str) -> Path:
    """Return where an item's files go, without suffix: `<out>/<item>`.

    A run never overwrites a result of a higher scale: it goes to `<out>/<scale>/<item>` then. A damaged record is taken
    for one of the highest scale, and it is said where a run gives way to it.
    """
    stem = out / item
    if not made(out, item):
        return stem
    there, problem = SCALES[-1], None
    try:
        there = read(stem)["scale"]
    except (OSError, ValueError) as error:
        problem = error
    if SCALES.index(scale) >= SCALES.index(there):
        return stem
    if problem is not None:
        warnings.warn(f"{stem}.json is damaged ({problem}); it may be of the scale {SCALES[-1]}", stacklevel=2)
    return out / scale / item


def bases() -> tuple[Path, ...]:
    """Return where files of the repository are looked for: FEDTHEORY_ROOT, else the working folder and those above."""
    given = os.environ.get("FEDTHEORY_ROOT")
    return (Path(given),) if given else (Path.cwd(), *Path.cwd().parents)


def results() -> Path:
    """Return the folder of committed results: the first `figures` of `bases`, which need not be there."""
    places = [base / "figures" for base in bases()]
    return next((place for place in places if place.is_dir()), places[0])


def folders(out: Path) -> list[Path]:
    """Return where an item's record may lie: the highest scale first."""
    return [out, *(out / scale for scale in reversed(SCALES))]


RAN = ("ran data", "ran network", "ran rounds")  # columns of every table: what stands behind a row


def behind(data: str = "not run", network: str = "none", rounds: int = 0) -> Row:
    """Return the columns RAN of a row without a `Spec`: printed alone, counted, solved, or run in another way."""
    return dict(zip(RAN, (data, network, rounds)))


def ran_words(table: Sequence[Row]) -> str:
    """Say what the runs behind a table were: networks, data, rounds; "" where nothing was run."""
    found = list(dict.fromkeys(tuple(row[part] for part in RAN) for row in table if row.get(RAN[2])))
    alike: dict[int, list[tuple[str, str, int]]] = {}
    for label in found:
        alike.setdefault(len(label[0].split(", ")), []).append(label)
    return "; ".join(
        f"{_either(network for _, network, _ in labels)} on "
        f"{', '.join(map(_either, zip(*(data.split(', ') for data, _, _ in labels))))}, "
        f"{_numbers(sorted({rounds for _, _, rounds in labels}))} rounds"
        for labels in alike.values()
    )


def seed_words(seeds: Sequence[int]) -> str:
    """Write a record's seeds: "0, 1, 2", and "0 to 127" for many."""
    many = len(seeds) > 16 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if many else ", ".join(map(str, seeds))


def _either(words: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def _numbers(rising: Sequence[int]) -> str:
    """Each, or where they are many the first and the last."""
    return f"{rising[0]} to {rising[-1]}" if len(rising) > 4 else _either(map(str, rising))


_ENDS = ("csv", "png", "json")  # in the order in which they are written and get their names


def _final(stem: Path, end: str) -> Path:
    return stem.with_name(f"{stem.name}.{end}")


def _next(stem: Path, end: str) -> Path:
    return stem.with_name(f".{stem.name}.{end}.next")


def current(stem: Path, end: str) -> Path:
    """The file that counts: what `commit` left waiting for its name, once all of it was there."""
    waiting = _next(stem, end)
    return waiting if _next(stem, "json").exists() and waiting.exists() else _final(stem, end)


def made(out: Path, item: str) -> bool:
    """Return whether an item has a record, damaged or not."""
    return current(out / item, "json").exists()


def commit(stem: Path, contents: Mapping[str, bytes]) -> None:
    """Write the three files of an item so that at any moment all are the old or all the new, also after a kill.

    They are written under other names, the record last: from then on they count. Then they get their names.
    """
    try:
        for end in _ENDS:
            write_atomic(_next(stem, end), contents[end])
    finally:
        if not _next(stem, "json").exists():  # such as on a full disk: the old ones stay
            for end in _ENDS:
                _next(stem, end).unlink(missing_ok=True)
    give_names(stem)


def give_names(stem: Path) -> None:
    if _next(stem, "json").exists():
        for end in _ENDS:
            with suppress(FileNotFoundError):
                os.replace(_next(stem, end), _final(stem, end))


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Let one process at a time save into a folder, where the system can lock files."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    (out / ".runs").mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_own(out / ".runs" / "lock", os.O_WRONLY), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep_damaged(stem: Path) -> None:
    """What is about to be replaced and fails its checks is renamed."""
    if not _final(stem, "json").exists():
        return
    try:
        read(stem)
    except (OSError, ValueError) as error:
        kept = [set_aside(_final(stem, end)).name for end in reversed(_ENDS) if _final(stem, end).exists()]
        warnings.warn(f"{stem}.json was damaged ({error}): kept as {', '.join(kept)}", stacklevel=3)


def set_aside(path: Path) -> Path:
    """Rename a damaged file so that it is kept and never read: <name>.damaged, .damaged-2 ..."""
    numbers = (f"-{n}" if n > 1 else "" for n in range(1, 10**6))
    kept = next(new for n in numbers if not (new := path.with_name(f"{path.name}.damaged{n}")).exists())
    with suppress(FileNotFoundError):
        os.replace(path, kept)
    return kept


def to_csv(table: Table) -> str:
    """Rows as CSV, numbers with 17 significant digits at most (they round-trip)."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return stream.getvalue()


def read_csv(text: str) -> Table:
    """Rows of a CSV written by `to_csv`; what reads as a number is one."""

    words: set[str] = set()  # that are no numbers: most stand in many rows

    def parse(value: str) -> Any:
        if value in words:
            return value
        try:
            return int(value)
        except ValueError:
            try:
                return float(value)
            except ValueError:
                words.add(value)
                return value

    return [{key: parse(value) for key, value in row.items()} for row in csv.DictReader(io.StringIO(text))]


def _one_of(*allowed: str) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if value not in allowed:
            raise ValueError

    return check


_CELL = {
    "cell": str,
    **dict.fromkeys(("paper", "ours", "low", "high"), number),
    "seeds": int,
    "verdict": _one_of(*VERDICTS),
    "reason": str,
    "kind": _one_of(*KINDS),
    "ran": _one_of(*RUNS),
    "tuning": _one_of(*TUNINGS),
}
_RECORD = {
    "item": str,
    "title": str,
    "scale": _one_of(*SCALES),
    "seeds": [int],
    "cells": [_CELL],
    "notes": [str],
    "settings": dict,
    "versions": dict,
    "device": str,
    "seconds": (int, float),
    "files": {"csv": str, "png": str},
}


def read(stem: Path, *, pictured: bool = True) -> dict[str, Any]:
    """The record `<stem>.json` with the rows of its table under "table"; table and (`pictured`) picture are verified.

    Raises OSError or Broken (a ValueError), which say what is wrong with which file.
    """
    record = unseal(current(stem, "json").read_bytes())
    if (wrong := misfit(record, _RECORD)) is not None:
        raise Broken(wrong)
    table, picture = current(stem, "csv").read_bytes(), current(stem, "png")
    if sha256(table) != record["files"]["csv"]:
        raise Broken(f"{stem.name}.csv is not the table that it was saved with")
    if pictured and picture.exists() and sha256(picture.read_bytes()) != record["files"]["png"]:
        raise Broken(f"{stem.name}.png is not the picture that it was saved with")
    record["table"] = read_csv(table.decode())
    return record


def _made_by(out: Path, item: str) -> str:
    """What makes an item in a folder; its nearest name where there is no such item."""
    if item not in registry.items():
        return registry.spelling(item, registry.items())
    scales = registry.item(item).scales
    scale = "" if "quick" in scales else f" --scale {scales[0]}"  # larger ones may need --data, too
    return f"python -m fedtheory reproduce {item} --out {out}{scale}"


_PAUSES = 0.05, 0.2, 0.0  # seconds: another process may be giving the files their names


def load(out: Path, item: str, *, pictured: bool = True) -> dict[str, Any]:
    """Return the record of a finished item (its .json, with the table's rows under "table"); see `read`.

    Raises FileNotFoundError with the command that makes it, ValueError for a damaged file.
    """
    if not made(out, item):
        checks.reject(
            "item",
            item,
            f"a finished item in {out}",
            _made_by(out, item),
            FileNotFoundError,
        )
    path, problem = f"{out / item}.json", ""
    for pause in _PAUSES:
        try:
            record = read(out / item, pictured=pictured)
            if record["item"] == item:
                return record
            problem = f"it is the record of {record['item']}"
        except (ValueError, OSError) as error:
            problem = str(error)
        time.sleep(pause)
    fix = f"move it away and run reproduce again; if it was only never sealed, {RESEAL.format(path)}"
    checks.reject("item", path, f"a readable record ({problem})", fix)


def report_rows(item: str, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one object per number that the paper prints."""
    rows = []
    for cell in record["cells"]:
        numbers = {name: number(cell[name]) for name in ("paper", "ours", "low", "high")}
        rows.append(
            {
                "item": item,
                "cell": cell["cell"],
                **numbers,
                **{name: cell[name] for name in ("kind", "seeds", "ran", "tuning", "verdict", "reason")},
                "p": number(cell.get("p", "NaN")),
                "prints": cell.get("prints") or ("a sentence" if math.isnan(numbers["paper"]) else ""),
                "scale": record["scale"],
            }
        )
    return rows
