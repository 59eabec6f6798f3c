"""Runs, tables and provenance: what stands behind a figure, and how it gets to disk whole or not at all."""

import ast
import csv
import hashlib
import io
import json
import math
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from scipy import stats

from fedtheory import checks
from fedtheory.algorithm import Algorithm
from fedtheory.checkpoint import write_atomic
from fedtheory.figures import budget, meter
from fedtheory.key import Key
from fedtheory.problem import Problem
from fedtheory.problems import ImageClassification, LogisticRegression, MatrixRegression, Quadratic
from fedtheory.problems.validation import validation
from fedtheory.simulate import run

SCALES = ("quick", "medium", "paper")  # a lower one never overwrites a higher one
Row = dict[str, Any]
Table = list[Row]


@dataclass(frozen=True)
class Spec:
    """One run, in words: what is run on what, from which seed. Its hash names the cached result.

    Fields:
        algorithm: with its hyperparameters.
        problem: "ssf" (MatrixRegression.ssf), "fedsub" (LogisticRegression.fedsub), "quadratic" (Quadratic.random),
            "images" (ImageClassification.load; its data folder is FEDTHEORY_DATA) or "validation" (the same, tested on
            a fifth of every client's training images, which are not trained on).
        options: of the problem, as sorted (name, value) pairs.
        rounds, sampled, every, dropout: of the run.
        seed: of the problem's data (path "data") and of the run.
        metered: what a client computes and holds is measured in one more round.
    """

    algorithm: Algorithm
    problem: str
    options: tuple[tuple[str, Any], ...]
    rounds: int
    seed: int
    sampled: int | None = None
    every: int = 100
    dtype: str = "float64"
    metrics: tuple[str, ...] = ("error",)
    dropout: float = 0.0
    metered: bool = False

    def build(self, device: str) -> Problem:
        """The problem of this run."""
        dtype = {"float32": torch.float32, "float64": torch.float64}[self.dtype]
        options = dict(self.options)
        builder, first = BUILDERS[self.problem]
        named = [options.pop(name) for name in first]
        return builder(*named, Key(self.seed).fold("data"), dtype=dtype, device=device, **options)

    @property
    def sources(self) -> str:
        """Hash of the sources that decide this run's numbers."""
        modules = type(self.algorithm).__module__, BUILDERS[self.problem][0].__module__
        return source_hash(*modules, "fedtheory.simulate", "fedtheory.figures.meter")


BUILDERS: dict[str, tuple[Callable[..., Problem], tuple[str, ...]]] = {
    "ssf": (MatrixRegression.ssf, ("het",)),
    "fedsub": (LogisticRegression.fedsub, ()),
    "quadratic": (Quadratic.random, ("n", "d")),
    "images": (ImageClassification.load, ("data", "network")),
    "validation": (validation, ("data", "network")),
}


@cache
def source_hash(*modules: str) -> str:
    """SHA-256 over the code, words apart, of some modules and of what they import from the package.

    Without modules: of all that decide numbers (not figures, not the command line).
    """
    root = Path(__file__).resolve().parent.parent
    if modules:
        paths = _imported(modules)
    else:
        apart = ("figures", "theory", "cli.py", "__main__.py", "compare.py", "methods.py", "notebook.py")
        paths = [path for path in root.rglob("*.py") if path.relative_to(root).parts[0] not in apart]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(root)} {ast.dump(_code(path))}".encode())
    return digest.hexdigest()[:16]


def _code(path: Path) -> ast.Module:
    """A source without comments and docstrings."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            del node.body[0]
    return tree


def _imported(modules: Iterable[str]) -> set[Path]:
    """Files of the package's modules that these import, directly or not, and their own."""
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name == "fedtheory" or name not in sys.modules:
            continue
        found[name] = Path(str(sys.modules[name].__file__)).resolve()
        for node in ast.walk(_code(found[name])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fedtheory":
                waiting += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return set(found.values())


def execute(spec: Spec, device: str) -> dict[str, Any]:
    """Run a spec with one thread; plain numbers come back, ready for JSON."""
    torch.set_num_threads(1)
    problem = spec.build(device)
    started, cpu = time.time(), time.process_time()
    history = run(
        spec.algorithm,
        problem,
        spec.rounds,
        sampled=spec.sampled,
        dropout=spec.dropout,
        seed=spec.seed,
        every=spec.every,
        metrics=spec.metrics,
    )
    diverged = history.diverged
    metered = {} if not spec.metered else meter.client(spec.algorithm, problem, history.state, Key(spec.seed))._asdict()
    return {
        "columns": history.columns,
        "diverged": None if diverged is None else [diverged.round, diverged.client, diverged.quantity],
        **metered,
        "seconds": round(time.time() - started, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }


class Runner:
    """Executes specs in worker processes of one thread each and keeps every finished run on disk.

    Args:
        out: the folder of the figures; finished runs are kept in `<out>/.runs`, so that an interrupted command goes
            on where it stopped.
        device: "cpu" or "cuda".
        workers: processes; default one per core on the CPU, one on CUDA.
        tick: called with (runs done, runs in all) whenever a run is finished.
    """

    def __init__(
        self,
        out: Path,
        device: str = "cpu",
        workers: int | None = None,
        tick: Callable[[int, int], object] | None = None,
    ) -> None:
        self.cache = out / ".runs"
        self.device = device
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.workers = workers or (cores if device == "cpu" else 1)
        self.tick = tick or (lambda done, total: None)
        self._pool: ProcessPoolExecutor | None = None  # kept from call to call: a process takes seconds to start

    def path(self, spec: Spec) -> Path:
        """Where the result of a spec is kept: named by its words, the sources and the versions of what computes."""
        words = f"{spec!r} {spec.sources} {torch.__version__} {np.__version__} {self.device}"
        return self.cache / f"{hashlib.sha256(words.encode()).hexdigest()[:24]}.json"

    def __call__(self, specs: Iterable[Spec]) -> dict[Spec, dict[str, Any]]:
        """Results of the specs, finished ones from disk.

        Raises OSError, before any work, where a run on images does not fit into memory.
        """
        wanted = list(dict.fromkeys(specs))
        results = {spec: found for spec in wanted if (found := self._read(spec)) is not None}
        missing = sorted((s for s in wanted if s not in results), key=lambda s: -s.rounds)
        self.tick(len(results), len(wanted))
        if not missing:
            return results
        images = (spec for spec in missing if spec.problem in ("images", "validation"))
        for needed in {budget.of_images(dict(spec.options), spec.sampled) for spec in images}:
            needed.require_room(self.device)
        self.cache.mkdir(parents=True, exist_ok=True)
        pool = self._pool = self._pool or ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=_follow, initargs=(os.getpid(),)
        )
        try:
            for spec, result in as_finished(pool, execute, missing, self.device):
                results[spec] = result
                write_atomic(self.path(spec), json.dumps(result).encode())
                self.tick(len(results), len(wanted))
        except BaseException:
            processes = list((pool._processes or {}).values())  # shutdown() forgets them
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            self._pool = None
            raise
        return results

    def _read(self, spec: Spec) -> dict[str, Any] | None:
        path = self.path(spec)
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:  # not written by write_atomic: run it again
            return None


def as_finished(pool: Executor, work: Callable[..., Any], jobs: Sequence[Any], *more: Any) -> Iterator[tuple[Any, Any]]:
    """(job, work(job, *more)) for each job, as they finish. Ctrl-C leaves no lock of a future held.

    `concurrent.futures.wait` takes the locks of all pending futures in Python code: a KeyboardInterrupt raised between
    two of them leaves them taken, the pool's own thread waits for one for ever, and so does the interpreter at exit.
    Here the main thread takes them with SIGINT blocked, and then waits on a queue that is written in C.
    """
    finished: SimpleQueue[Future] = SimpleQueue()
    with _sigint_blocked():
        pending = {pool.submit(work, job, *more): job for job in jobs}
        for future in pending:
            future.add_done_callback(finished.put)
    while pending:
        future = finished.get()
        yield pending.pop(future), future.result()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Have Ctrl-C wait until the end of the block, where the system can (not on Windows)."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow(parent: int) -> None:
    """Have a worker end when its parent does, however the parent ended; leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95% Student interval over seeds; NaN where any value is; the value itself for one seed."""
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    if len(array) < 2 or not math.isfinite(mean):
        return mean, mean, mean
    half = float(stats.t.ppf(0.975, len(array) - 1) * array.std(ddof=1) / math.sqrt(len(array)))
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class Cell:
    """One number that the paper prints, and ours. NaN: diverged, or not run.

    Fields:
        cell: what the number is.
        paper: printed number.
        ours, low, high: mean and 95% interval over seeds.
        seeds: how many.
        verdict: "reproduced", "trend only", "differs" or "not run here".
        reason: why.
    """

    cell: str
    paper: float
    ours: float
    low: float
    high: float
    seeds: int
    verdict: str
    reason: str


@dataclass
class Result:
    """What `measure` returns: the table behind the picture, the numbers beside the paper's, and how it came about."""

    table: Table
    cells: list[Cell] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Item:
    """A figure or table of a paper.

    Fields:
        name: "<paper>/fig<N><letter>" or "<paper>/table<N>"; own pictures that explain them have other names.
        title: what it shows.
        measure: (runner, scale, seeds) -> Result.
        draw: table rows -> Figure.
        scales: at which it can be measured.
        grows: whether `measure` takes the rows of a finished table as fourth argument: it then runs the methods that
            are missing there, and returns the whole table with the cells that change.
    """

    name: str
    title: str
    measure: Callable[..., Result]
    draw: Callable[[Table], Any]
    scales: tuple[str, ...] = ("quick", "paper")
    grows: bool = False


VERDICTS = ("reproduced", "trend only", "differs", "not run here")


def overall(verdicts: Sequence[str]) -> str:
    """The verdict of an item: the worst of those of its numbers that were run."""
    found = [verdict for verdict in verdicts if verdict != VERDICTS[-1]]
    return max(found, key=VERDICTS.index, default=VERDICTS[-1] if verdicts else VERDICTS[0])


def versions() -> dict[str, str]:
    """What computed: package sources, Python and libraries, processor."""
    import matplotlib

    from fedtheory import __version__

    return {
        "fedtheory": __version__,
        "sources": source_hash(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "matplotlib": matplotlib.__version__,
        "machine": f"{platform.machine()}, {_processor()}",
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def plain(value: Any) -> Any:
    """JSON has no NaN: a number that diverged is written as the string "NaN"."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def number(value: Any) -> float:
    """The inverse of `plain` for one number; a file that holds none raises ValueError."""
    return float(value)


def place(out: Path, item: str, scale: str) -> Path:
    """Where an item's files go, without suffix: `<out>/<item>`.

    A run never overwrites a result of a higher scale: it goes to `<out>/<scale>/<item>` then.
    """
    stem = out / item
    try:
        there = json.loads(stem.with_suffix(".json").read_bytes())["scale"]
        return out / scale / item if SCALES.index(scale) < SCALES.index(there) else stem
    except (OSError, ValueError, KeyError):
        return stem


def save(
    out: Path,
    item: Item,
    result: Result,
    scale: str,
    seeds: int,
    seconds: float,
    device: str,
    grown: dict[str, Any] | None = None,
) -> Path:
    """Write `<item>.csv`, `.png`, `.json`; the .json last: an item without it is not done.

    `grown`: the record to which the result adds. Its cells stand unless the result has them, and so does what it says
    of how it came about; of the result that is said under "added".
    """
    from fedtheory.figures import style

    stem = place(out, item.name, scale)
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").unlink(missing_ok=True)
    write_atomic(stem.with_suffix(".csv"), to_csv(result.table).encode())
    write_atomic(stem.with_suffix(".png"), style.save_bytes(item.draw(read_csv(to_csv(result.table)))))
    cells = [vars(cell) for cell in result.cells]
    origin = made = {
        "settings": result.settings,
        "versions": versions(),
        "device": device,
        "seconds": round(seconds, 1),
    }
    if grown is not None:
        cells = list({cell["cell"]: cell for cell in [*grown["cells"], *cells]}.values())
        origin = {name: grown[name] for name in made} | {"added": [*grown.get("added", []), made]}
    record = {
        "item": item.name,
        "title": item.title,
        "scale": scale,
        "seeds": list(range(seeds)),
        "verdict": overall([cell["verdict"] for cell in cells]),
        "cells": cells,
        "notes": result.notes,
        **origin,
    }
    text = json.dumps(plain(record), indent=1, allow_nan=False) + "\n"
    write_atomic(stem.with_suffix(".json"), text.encode())
    return stem


def to_csv(table: Table) -> str:
    """Rows as CSV, numbers with 17 significant digits at most (they round-trip)."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return stream.getvalue()


def read_csv(text: str) -> Table:
    """Rows of a CSV written by `to_csv`; what reads as a number is one."""

    def parse(value: str) -> Any:
        try:
            return int(value)
        except ValueError:
            try:
                return float(value)
            except ValueError:
                return value

    return [{key: parse(value) for key, value in row.items()} for row in csv.DictReader(io.StringIO(text))]


def load(out: Path, item: str) -> dict[str, Any]:
    """The record of a finished item (its .json, with the table's rows under "table").

    Raises FileNotFoundError with the command that makes it, ValueError for a damaged file.
    """
    stem = out / item
    path = stem.with_suffix(".json")
    if not path.exists():
        checks.reject(
            "item",
            item,
            f"a finished item in {out}",
            f"python -m fedtheory reproduce {item} --out {out}",
            FileNotFoundError,
        )
    try:
        record = json.loads(path.read_bytes())
        record["table"] = read_csv(stem.with_suffix(".csv").read_text())
    except (ValueError, OSError) as error:
        checks.reject("item", str(path), f"a readable record ({error})", "delete it and run reproduce again")
    return record
