"""Runs, tables and provenance: what stands behind a figure, and how it gets to disk whole or not at all.

A finished run is one sealed JSON file, `<out>/.runs/<words>-<content>.json` or a member of an archive in `<out>/runs`
(see `fedtheory.papers.archive`), that holds all that is needed to make it again: its words (algorithm, problem,
rounds, seed, see `fedtheory.running.configuration`), the digests of the data that was read, revisions, versions, device
and seconds, and the result. The first part of its name is a hash of the words; the second, of the data's digests and of
the revisions, numbers that a person raises when results change: `Algorithm.revision` (or of any other dataclass in the
words), `Builder.revision` of a problem, `REVISION` of what all runs share. So a run is *stale* when the first part of
its name is asked for and the second is not: that is said, and it is kept and not used.
Of long runs checkpoints are kept until they are finished, in `<out>/.runs/unfinished`.
Sources are in neither: moving code, or making it faster, costs no run. Versions of libraries and the device change
rounding only (random numbers are drawn on the CPU): they are recorded and said, and no run is made again for them; only
one that measures memory and work (`metered`) holds for its device alone.
"""

import ast
import hashlib
import os
import platform
import shutil
import signal
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from multiprocessing import current_process, get_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import torch

from fedtheory.core import checks, registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.files import Broken, misfit, seal, sha256, unseal, write_atomic
from fedtheory.core.history import interval as interval
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.papers import archive, budget
from fedtheory.problems import data as readers
from fedtheory.problems import sentiment, text
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.models import networks
from fedtheory.problems.quadratic import Quadratic
from fedtheory.problems.text import TextClassification
from fedtheory.problems.validation import validation
from fedtheory.running import configuration, meter
from fedtheory.running.checkpoint import Busy, Foreign, Owned
from fedtheory.running.records import (
    RAN,
    Cell,
    Row,
    Table,
    alone,
    commit,
    current,
    give_names,
    keep_damaged,
    load,
    number,
    place,
    plain,
    read_csv,
    set_aside,
    to_csv,
)
from fedtheory.running.shards import Spread
from fedtheory.running.simulate import may_diverge, run

REVISION = 1  # raised by hand when results of all runs change beyond rounding: the round loop, keys, partitions


T = TypeVar("T")
K = TypeVar("K")
Wants = Generator[Iterable[Any], dict[Any, Any], T]
"""A generator that yields the runs (`Spec`) and the computations (`Work`) that it wants, receives what each of them
gave, and returns a T, as an algorithm's `client` yields its iterates and returns its upload."""


@dataclass(frozen=True)
class Work:
    """A computation that is no run: `function(*given)`, for a worker. It is not kept on disk.

    Fields:
        function: at the top level of a module.
        given: its arguments.
        on_device: whether it takes the runner's device besides, as `device`.
    """

    function: Callable[..., Any]
    given: tuple[Any, ...]
    on_device: bool = False

    def do(self, device: str) -> Any:
        """What the function returns, with one thread."""
        torch.set_num_threads(1)
        return self.function(*self.given, **({"device": device} if self.on_device else {}))


def each(function: Callable[..., T], points: Iterable[tuple[Any, ...]]) -> Wants[list[T]]:
    """`function` of every point, in their order; workers share the points."""
    works = [Work(function, point) for point in points]
    found = yield works
    return [found[work] for work in works]


def itself(function: Callable[..., "Result"], *, on_device: bool = False) -> "Callable[..., Wants[Result]]":
    """The `measure` of an item that wants no runs: a worker calls `function(scale, seeds)`, see `Work`."""

    def measure(scale: str, seeds: int) -> Wants[Result]:
        work = Work(function, (scale, seeds), on_device)
        found = yield [work]
        return found[work]

    return measure


def side_by_side(parts: Mapping[K, Wants[T]]) -> Wants[dict[K, T]]:
    """What each part returns; all say what they want before any is waited for."""
    done: dict[K, T] = {}
    answers: dict[K, Any] = dict.fromkeys(parts)
    while answers:
        asked: dict[K, list[Any]] = {}
        for name, answer in answers.items():
            try:
                asked[name] = list(parts[name].send(answer))
            except StopIteration as end:
                done[name] = end.value
        found = (yield [one for some in asked.values() for one in some]) if asked else {}
        answers = {name: {one: found[one] for one in some} for name, some in asked.items()}
    return {name: done[name] for name in parts}


def measured(find: Callable[[list["Spec"]], Mapping["Spec", Any]], steps: Wants[T]) -> T:
    """What a generator of `Wants` returns: `find` gives the results of runs, and this process does the rest."""
    try:
        wanted = next(steps)
        while True:
            runs, works = split(wanted)
            wanted = steps.send({**(find(runs) if runs else {}), **{work: work.do("cpu") for work in works}})
    except StopIteration as end:
        return end.value


@dataclass(frozen=True)
class Spec:
    """One run: what is run on what, from which seed. Its words, and what it reads, name the stored result.

    Fields:
        algorithm: with its hyperparameters.
        problem: "ssf" (MatrixRegression.ssf), "fedsub" (LogisticRegression.fedsub), "quadratic" (Quadratic.random),
            "images" (ImageClassification.load; its data folder is FEDTHEORY_DATA) or "validation" (the same, tested on
            a fifth of every client's training images, which are not trained on), or a problem of another distribution.
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
        options, builder = dict(self.options), BUILDERS[self.problem]
        named = [options.pop(name) for name in builder.first]
        return builder.make(*named, Key(self.seed).fold("data"), dtype=dtype, device=device, **options)

    def words(self) -> dict[str, Any]:
        """What decides the numbers, in plain JSON: every hyperparameter and option by name, defaults too."""
        builder = BUILDERS[self.problem]
        options = builder.say(configuration.defaults((builder.make, *builder.passed)) | dict(self.options))
        kept = {k: v for k, v in options.items() if k not in PASSED and (k, v) not in builder.later}
        return configuration.members(self, options=kept)

    def revisions(self) -> dict[str, int]:
        """The numbers that a person raises when results change, of all that takes part."""
        own = {"all": REVISION, self.problem: BUILDERS[self.problem].revision}
        return own | configuration.revisions([self.algorithm, dict(self.options)])

    def ran(self) -> Row:
        """The columns RAN of a row that shows this run: data, network, rounds."""
        data, network = BUILDERS[self.problem].label(dict(self.options))
        return dict(zip(RAN, (data, network, self.rounds)))


PASSED = ("key", "dtype", "device")  # to a builder: the spec has them


def _images_read(options: Mapping[str, Any]) -> dict[str, Any]:
    name, partial = options["data"], options.get("partial", False)
    return {
        f"{name} {split}": readers.origin(name, options.get("folder"), split, partial=split == "train" and partial)
        for split in ("train", "test")
    }


def _images_said(options: dict[str, Any]) -> dict[str, Any]:
    """What decides a run: what is read, not where; moments where there are any; the precision by its first name."""
    normalised = _normalised(networks.NETWORKS[options["network"]])
    apart = ("folder", "precision", *["moments"] * (not normalised))
    said = {name: value for name, value in options.items() if name not in apart}
    return said | {"mixed": options["precision"] == "bf16"}


@cache
def _normalised(make: Callable[..., networks.Network]) -> bool:
    return make((3, 32, 32), 10).normalised


@dataclass(frozen=True)
class Builder:
    """How a problem of specs is made.

    Fields:
        make: (options that come first, key, dtype=, device=, other options) -> problem.
        first: options that come first.
        passed: what `make` passes its further options on to: their defaults are options, too.
        reads: options -> what is read from files: name -> {"sha256": of the content, ...}.
        say: options -> those that go into the words: what is read, not where.
        label: options -> what is run, for a table's reader: data and network.
        later: (option, what runs did before it was added): left out where equal.
        revision: raised by hand when the problem's data, losses or gradients change beyond rounding.
        long: (spec, device) -> whether a run is: it is saved every ten minutes then, and goes on from there when it was
            interrupted.
    """

    make: Callable[..., Problem]
    first: tuple[str, ...] = ()
    passed: tuple[Callable[..., Any], ...] = ()
    reads: Callable[[dict[str, Any]], dict[str, Any]] = lambda options: {}
    say: Callable[[dict[str, Any]], dict[str, Any]] = dict
    label: Callable[[dict[str, Any]], tuple[str, str]] = lambda options: ("synthetic", "none")
    later: tuple[tuple[str, Any], ...] = ()
    revision: int = 1
    long: Callable[["Spec", str], bool] = lambda spec, device: False


_PART = "cifar10 (partial)"  # the images that are there, however many


def _images_label(options: dict[str, Any], held: str = "") -> tuple[str, str]:
    some = options["data"] == "cifar10" and options.get("partial")
    parts = [_PART if some is True else options["data"] + (f" ({some:,} images)" if some else "")]
    if "subset" in options:
        parts.append(f"{options['subset']:,} images")
    if "side" in options:
        parts.append(f"{options['side']} x {options['side']} pixels")
    if "clients" in options:
        parts.append(f"{options['clients']} client{'s' * (options['clients'] != 1)}")
    split = {"dirichlet": "alpha", "labels": "labels"}.get(options.get("partition", ""))
    if "partition" in options:
        parts.append(f"{options['partition']} {options[split]:g}" if split in options else options["partition"])
    if options.get("augment", "none") != "none":
        parts.append(f"augmented by {options['augment']}")
    return ", ".join(parts) + held, options["network"]


_LONG = 2e13  # floating-point operations; all runs on images that took a thread ten minutes have 3e13 or more


def _images_long(spec: Spec, device: str) -> bool:
    """By the count of its gradients; a difference along a direction counts as one. On CUDA ten minutes as assumed."""
    of = spec.algorithm
    steps = spec.rounds * getattr(of, "local_steps", 1) * getattr(of, "perturbations", 1)
    flop = 2.0 * steps * budget.of_images(dict(spec.options), spec.sampled).step.products
    return flop >= (600 * budget.SUSTAINED if device == "cuda" else _LONG)


def _equations(name: str, model: str) -> Callable[[dict[str, Any]], tuple[str, str]]:
    """Problems without a network: their name and options, and what is fitted."""
    return lambda options: (", ".join([name, *(f"{key} = {value}" for key, value in options.items())]), model)


_IMAGES = (ImageClassification.load, ImageClassification.__init__)
_LATER = (("augment", "none"), ("moments", "first"))


def _text_said(options: dict[str, Any]) -> dict[str, Any]:
    """The model by name; where it and the texts lie decides nothing."""
    named = options | {"model": Path(options["model"]).name}
    return {name: value for name, value in named.items() if name != "data"}


def _adapted(model: str, options: dict[str, Any]) -> str:
    return model if options.get("lora") is None else f"{model} with LoRA {options['lora']}"


def _text_label(options: dict[str, Any]) -> tuple[str, str]:
    parts = [options["task"], f"{options['clients']} clients"]
    if "subset" in options:
        parts.insert(1, f"{options['subset']:,} texts")
    return ", ".join(parts), _adapted(Path(options["model"]).name, options)


BUILDERS: dict[str, Builder] = {
    "ssf": Builder(MatrixRegression.ssf, ("het",), label=_equations("matrix regression", "linear")),
    "fedsub": Builder(LogisticRegression.fedsub, label=_equations("logistic regression", "linear")),
    "quadratic": Builder(Quadratic.random, ("n", "d"), label=_equations("quadratics", "none")),
    "images": Builder(
        ImageClassification.load,
        ("data", "network"),
        _IMAGES[1:],
        _images_read,
        _images_said,
        _images_label,
        _LATER,
        long=_images_long,
    ),
    "validation": Builder(
        validation,
        ("data", "network"),
        _IMAGES,
        _images_read,
        _images_said,
        lambda o: _images_label(o, ", a fifth held out"),
        _LATER,
        long=_images_long,
    ),
    "text": Builder(
        TextClassification.load,
        ("model", "task", "data"),
        (TextClassification.__init__,),
        lambda options: text.origin(options["model"], options["task"], options["data"]),
        _text_said,
        _text_label,
        long=lambda spec, device: True,
    ),
    "sentiment": Builder(
        sentiment.problem,
        passed=(sentiment.make,),
        label=lambda options: ("generated reviews, 8 clients", _adapted("tiny OPT", options)),
    ),
}


@cache
def _made(offer: registry.Offer) -> Problem:
    return offer.make(Key(0).fold("data"), "cpu", None)


def _further(offer: registry.Offer) -> Builder:
    """How another distribution's problem is made; runs on it are named by its data and its class's `revision`, too."""
    return Builder(
        lambda key, dtype, device: offer.make(key, device, None),
        reads=lambda options: dict(_made(offer).origin),
        say=lambda options: {"fingerprint": _made(offer).fingerprint()},
        label=lambda options: (offer.name, "none"),
        revision=getattr(offer.kind, "revision", 1),
    )


BUILDERS |= {name: _further(offer) for name, offer in registry.further_problems().items()}


APART = ("papers", "theory", "cli", "course", "compare.py", "__main__.py")  # of the root: they decide no number


@cache
def source_hash() -> str:
    """SHA-256 over the code, words apart, of all modules that decide numbers (not figures, not the command line).

    It is recorded, to tell which sources computed; no stored run depends on it.
    """
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*.py") if path.relative_to(root).parts[0] not in APART):
        digest.update(f"{path.relative_to(root)} {ast.dump(_code(path))}".encode())
    return digest.hexdigest()[:16]


def _code(path: Path) -> ast.Module:
    """A source without comments and docstrings."""
    tree = ast.parse(path.read_bytes())
    blocks: list[Any] = [tree]
    while blocks:
        node = blocks.pop()
        named = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if named and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        if isinstance(node, (ast.mod, ast.stmt, ast.excepthandler, ast.match_case)):  # no expression holds a docstring
            parts = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody", "handlers", "cases"))
            blocks += [one for part in parts for one in part]
    return tree


def execute(spec: Spec, device: str, unfinished: Mapping[Spec, Path] | None = None) -> dict[str, Any] | None:
    """Run a spec with one thread; plain numbers come back, ready for JSON.

    Args:
        unfinished: folder of the checkpoints of each spec that has any; such a run goes on from the last one. What is
            another run's there, as that of an older version, is kept aside.

    Returns None where another process was making the same run, and has finished it: the result is on disk.
    """
    folder = (unfinished or {}).get(spec)
    while True:
        if folder is not None and _result_of(folder).exists():  # since this process looked
            return None
        try:
            _ending["saves"] = folder is not None
            return _execute(spec, device, folder)
        except KeyboardInterrupt:
            if _ending["asked"]:  # this worker is, and has saved the run
                os._exit(1)
            raise
        except Foreign as error:
            assert folder is not None
            text = f"it starts anew, and what is there is kept as {set_aside(folder).name}: {error}"
            warnings.warn(f"a long run cannot go on from its checkpoint: {text}", stacklevel=2)
        except Busy as error:
            assert folder is not None
            warnings.warn(f"waiting for another process, which makes the same run: {error}", stacklevel=2)
            _wait_for(folder, spec.rounds)
        finally:
            _ending["saves"] = False


def carry_out(what: "Spec | Work", device: str, unfinished: Mapping[Spec, Path] | None = None) -> Any:
    """In a worker: the result of a run, see `execute`, or of another computation."""
    return what.do(device) if isinstance(what, Work) else execute(what, device, unfinished)


def _result_of(unfinished: Path) -> Path:
    """The file of a finished run whose checkpoints are in this folder."""
    return unfinished.parent.parent / f"{unfinished.name}.json"


def _wait_for(unfinished: Path, rounds: int) -> None:
    """Wait until the process that has the folder of a long run has written its result, or is gone."""
    since = None
    while not _result_of(unfinished).exists():
        time.sleep(1.0)
        try:
            with Owned(unfinished):
                pass
        except Busy:
            continue
        except FileNotFoundError:  # just thrown away, or moved
            return
        if not (unfinished / f"round-{rounds:012d}.ckpt").exists():
            return
        since = time.monotonic() if since is None else since  # all rounds are done: its result is being written
        if time.monotonic() - since > _PATIENCE:
            return


def _execute(spec: Spec, device: str, checkpoints: Path | None) -> dict[str, Any]:
    torch.set_num_threads(1)
    problem = spec.build(device)
    started, cpu, done = time.time(), time.process_time(), []
    with may_diverge():
        history = run(
            spec.algorithm,
            problem,
            spec.rounds,
            sampled=spec.sampled,
            dropout=spec.dropout,
            seed=spec.seed,
            every=spec.every,
            metrics=spec.metrics,
            checkpoint=checkpoints,
            checkpoint_every=checks.MOST,
            checkpoint_seconds=600.0,
            progress=done.append,
        )
    diverged = history.diverged
    metered = {} if not spec.metered else meter.client(spec.algorithm, problem, history.state, Key(spec.seed))._asdict()
    return {
        "data": dict(problem.origin),
        "columns": history.columns,
        "diverged": None if diverged is None else [diverged.round, diverged.client, diverged.quantity],
        **metered,
        **({"timed_from_round": done[0]} if done[0] else {}),  # it was resumed: the seconds are those since then
        "seconds": round(time.time() - started, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }


MOST_WORKERS = 1024
_PATIENCE = 60.0  # seconds that a worker may take to save its run, and a process to write a finished one
RUN = {
    "words": dict,
    "data": dict,
    "revisions": dict,
    "versions": {"torch": str, "numpy": str},
    "device": str,
    "result": {"columns": dict, "diverged": (list, type(None)), "seconds": (int, float)},
}


class Runner:
    """Executes specs in worker processes of one thread each and keeps every finished run on disk.

    Args:
        out: the folder of the figures; finished runs are kept in `<out>/.runs`, so that an interrupted command goes
            on where it stopped. Those in the archives of `<out>/runs` are found, too.
        device: "cpu" or "cuda".
        workers: processes; default one per core on the CPU, one on CUDA.
        tick: called with (runs done, runs in all) whenever a run is finished.
        spread: the processes that torchrun started, which share the runs in the place of workers. Each calls the runner
            with the same specs, and finds what the others ran on disk.
    """

    @checks.arguments
    def __init__(
        self,
        out: Path,
        device: str = "cpu",
        workers: int | None = None,
        tick: Callable[[int, int], object] | None = None,
        spread: Spread | None = None,
    ) -> None:
        if workers is not None:
            checks.whole("workers", workers, 1, MOST_WORKERS)
        self.cache = out / ".runs"
        self.device = device
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.workers = workers or (cores if device == "cpu" else 1)
        self.spread = spread
        self.tick = tick if tick is not None else (lambda done, total: None)
        self._pool: ProcessPoolExecutor | None = None  # kept from call to call: a process takes seconds to start
        self._origins: dict[str, dict[str, Any]] = {}  # of the results given, by the first part of the run's name

    @property
    def leads(self) -> bool:
        """Whether this process writes and prints: of those that share the runs, the first."""
        return self.spread is None or self.spread.rank == 0

    def _head(self, spec: Spec, words: dict[str, Any] | None = None) -> dict[str, Any]:
        """What a run is, without its result; `words`: its words, where they are known."""
        reads = BUILDERS[spec.problem].reads(dict(spec.options))
        return {"words": words or spec.words(), "data": reads, "revisions": spec.revisions()}

    def _named(self, head: dict[str, Any], first: str = "") -> Path:
        content = {"data": _digests(head["data"]), "revisions": head["revisions"]}
        if head["words"]["metered"]:
            content["device"] = self.device
        return self.cache / f"{first or _first(head['words'])}-{configuration.digest(content)[:12]}.json"

    def path(self, spec: Spec) -> Path:
        """Where the result of a spec is kept until it is packed: named by its words, the data it reads, the revisions.

        Raises FileNotFoundError or DataError where the data cannot be read.
        """
        return self._named(self._head(spec))

    def _stored(self) -> Mapping[str, list[str]]:
        """Names of stored runs by their first part: those of the same words, whatever they read."""
        return _by_first(tuple(archive.names(self.cache.parent)))

    def begin(self, specs: Iterable[Spec]) -> tuple[dict[Spec, dict[str, Any]], dict[Spec, dict[str, Any]]]:
        """Results that are on disk; what else is to be run, the longest first, with its head.

        Raises OSError, before any work, where a run on images does not fit into memory or its data are not there.
        """
        wanted = list(dict.fromkeys(specs))
        if not wanted:
            return {}, {}
        stored = self._stored()
        for path, why in archive.packed(self.cache.parent)[1].items():
            warnings.warn(f"{path} is damaged ({why}): the runs in it are not used", stacklevel=3)
        words = {spec: spec.words() for spec in wanted}
        self._require_room(spec for spec, said in words.items() if _first(said) not in stored)
        heads = {spec: self._head(spec, said) for spec, said in words.items()}
        results = {spec: found for spec in wanted if (found := self._read(heads[spec])) is not None}
        missing = sorted((s for s in wanted if s not in results), key=lambda s: -s.rounds)
        if missing:
            self._require_room(missing)
            self._say_stale(missing, heads)
            self._say_left(missing, heads)
            self.cache.mkdir(parents=True, exist_ok=True)
        return results, {spec: heads[spec] for spec in missing}

    def __call__(self, wanted: Iterable[Spec | Work]) -> dict[Any, Any]:
        """Results of runs, finished ones from disk, and of other computations; raises as `begin` does."""
        wanted = list(wanted)
        runs, works = split(wanted)
        results: dict[Any, Any]
        results, heads = self.begin(runs)
        total = len(results) + len(heads) + len(works)
        self.tick(len(results), total)
        if self.spread is not None:
            if heads:
                self._share(self.spread, heads, results)
            results |= {work: work.do(self.device) for work in works}
        elif heads or works:
            unfinished = self.unfinished(heads)
            with self.pool() as pool:
                for what, result in as_finished(pool, carry_out, [*heads, *works], self.device, unfinished):
                    if isinstance(what, Spec):
                        result = self.keep(heads[what], result, unfinished.get(what))
                    results[what] = result
                    self.tick(len(results), total)
        return {one: results[one] for one in wanted}

    def measure(self, item: "Item", scale: str, seeds: int, *rows: Table) -> "Result":
        """An item's result, with what stands behind it. `rows`: of a finished table that is added to."""
        steps, asked, found = item.measure(scale, seeds, *rows), [], None
        try:
            while True:
                wanted = list(steps.send(found))  # type: ignore[arg-type]
                asked += split(wanted)[0]
                found = self(wanted)
        except StopIteration as end:
            return self.signed(end.value, asked)

    def signed(self, result: "Result", asked: Iterable[Spec]) -> "Result":
        """The result with the provenance of the runs that its item asked for, and what a reader should know of it."""
        result.runs = self.provenance(asked)
        result.notes += self.provenance_notes(result.runs)
        return result

    @contextmanager
    def pool(self) -> Iterator[Executor]:
        """The worker processes, kept from call to call. Where the block is left by an exception, they end."""
        if self._pool is None:
            if current_process().daemon:
                fix = "start this one by concurrent.futures.ProcessPoolExecutor, or play `fedtheory.run` in it"
                what = "a process that may start others, which one of multiprocessing.Pool may not"
                checks.reject("process", current_process().name, what, fix, RuntimeError)
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=get_context("spawn"), initializer=_follow, initargs=(os.getpid(),)
            )
            # the interpreter's last breath otherwise clears concurrent.futures before the pool, which then complains
            weakref.finalize(self, self._pool.shutdown, wait=False)
        pool = self._pool
        try:
            yield pool
        except BaseException:
            processes = list((pool._processes or {}).values())  # shutdown() forgets them
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            self._pool = None
            raise

    def close(self) -> None:
        """End the worker processes that are kept; a later call starts new ones."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def unfinished(self, heads: Mapping[Spec, dict[str, Any]]) -> dict[Spec, Path]:
        """The folders of the checkpoints of those that are long."""
        long = [spec for spec in heads if BUILDERS[spec.problem].long(spec, self.device)]
        return {spec: self.cache / "unfinished" / self._named(heads[spec]).stem for spec in long}

    def _share(
        self,
        spread: Spread,
        heads: Mapping[Spec, dict[str, Any]],
        results: dict[Spec, dict[str, Any]],
    ) -> None:
        """Run this process's part, and wait for the others': one that dies ends them all."""
        unfinished, total = self.unfinished(heads), len(results) + len(heads)
        for spec in spread.taken({self._named(head).stem: spec for spec, head in heads.items()}):
            results[spec] = self.keep(heads[spec], execute(spec, self.device, unfinished), unfinished.get(spec))
            self.tick(len(results), total)
        for spec in heads:
            while spec not in results:
                if self._named(heads[spec]).exists() and (found := self._read(heads[spec])) is not None:
                    results[spec] = found
                    self.tick(len(results), total)
                else:
                    time.sleep(0.2)

    def _require_room(self, specs: Iterable[Spec]) -> None:
        images = (spec for spec in specs if spec.problem in ("images", "validation"))
        for needed in {budget.of_images(dict(spec.options), spec.sampled) for spec in images}:
            needed.require_room(self.device)

    def _say_stale(self, missing: Sequence[Spec], heads: Mapping[Spec, dict[str, Any]]) -> None:
        stored = self._stored()  # again: a damaged one has been set aside since
        own = {self._named(heads[spec]).name for spec in missing}  # damaged in an archive
        same = ((spec, name) for spec in missing for name in stored.get(_first(heads[spec]["words"]), ()))
        stale = [(spec, name) for spec, name in same if name not in own]
        if not stale:
            return
        spec, name = stale[0]
        try:
            there, here = unseal(archive.read(self.cache.parent, name)), heads[spec] | {"device": self.device}
            differs = [f"other {name}" for name in ("data", "revisions", "device") if there.get(name) != here[name]]
        except (OSError, ValueError):
            differs = ["damaged"]
        warnings.warn(
            f"{len(stale)} stored runs are stale, kept and not used: the same words, but {' and '.join(differs)} "
            f"({name})",
            stacklevel=3,
        )

    def _say_left(self, missing: Sequence[Spec], heads: Mapping[Spec, dict[str, Any]]) -> None:
        """Checkpoints of runs of the same words that nothing here goes on from."""
        own = {self._named(heads[spec]).stem for spec in missing}
        same = {name.split("-")[0] for name in own}
        folders = sorted(self.cache.glob("unfinished/*-*"))
        left = [path for path in folders if path.name not in own and path.name.split("-")[0] in same]
        if left:
            warnings.warn(
                f"{len(left)} folders of unfinished runs are kept and not used: the same words, but other data or "
                f"revisions, or damaged. Fix: delete {left[0]} and its like, which may be large, unless another "
                "version needs them",
                stacklevel=3,
            )

    def keep(
        self, head: dict[str, Any], result: dict[str, Any] | None, checkpoints: Path | None = None
    ) -> dict[str, Any]:
        """Write a finished run, and throw its checkpoints away. None: another process has, see `execute`."""
        if result is None:
            found = self._read(head)
            if found is None:
                fix = "run the same command again"
                checks.reject("out", str(self._named(head)), "the run that another process has finished", fix, OSError)
            return found
        read = result.pop("data")
        if _digests(read) != _digests(head["data"]):
            fix = "run the same command again when nothing writes to the folder"
            checks.reject("data", ", ".join(read), "files that stay as they are while a run reads them", fix)
        own = {name: value for name, value in versions().items() if name != "matplotlib"}
        if self.device == "cuda":
            own["machine"] += f", {torch.cuda.get_device_name()}"
        record = {"format": "fedtheory run 1", **head, "versions": own, "device": self.device, "result": result}
        path = self._named(head)
        write_atomic(path, seal(plain(record), None))
        self._remember(record, path)
        if checkpoints is not None:
            shutil.rmtree(checkpoints, ignore_errors=True)
        return result

    def _read(self, head: dict[str, Any]) -> dict[str, Any] | None:
        """A stored result; None where there is none. A damaged one is said, and a loose file of it kept aside."""
        path = self._named(head)
        try:
            record = unseal(archive.read(self.cache.parent, path.name))
            wrong = misfit(record, RUN) or ("it holds another run" if record["words"] != head["words"] else None)
            if wrong is not None:
                raise Broken(wrong)
            result = record["result"]
            result["columns"] = {name: [_float(v) for v in column] for name, column in result["columns"].items()}
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            if not path.exists():
                warnings.warn(f"the stored run {path.name} is damaged ({error}): it is made again", stacklevel=3)
                return None
            warnings.warn(f"the stored run {path} is damaged ({error}): kept as {set_aside(path).name}", stacklevel=3)
            return self._read(head)  # it may be packed, too
        self._remember(record, path)
        return result

    def _remember(self, record: Mapping[str, Any], path: Path) -> None:
        own = {name: record[name] for name in ("versions", "device", "data")}
        first = path.name.split("-")[0]  # of the same words
        self._origins[first] = own | {"name": self._named(dict(record), first).stem}

    def provenance(self, specs: Iterable[Spec]) -> dict[str, Any]:
        """Of runs whose results were given: how many, what made them, the data that they read, and their names.

        It ends up in an item's record, under "runs". A row's columns RAN, joined by commas, find its runs in "kept".
        """
        by_name = {_first(spec.words()): spec for spec in specs}
        used = [self._origins[name] for name in by_name]
        made_with = Counter(_maker(run["versions"], run["device"]) for run in used)
        data = {name: part for run in used for name, part in run["data"].items()}
        kept: dict[str, list[str]] = {}
        for spec, found in zip(by_name.values(), used):
            kept.setdefault(", ".join(map(str, spec.ran().values())), []).append(found["name"])
        return {"count": len(used), "made with": dict(made_with), "data": data, "kept": kept}

    def provenance_notes(self, runs: dict[str, Any]) -> list[str]:
        """Of such a provenance, what a reader should know: runs of other versions, devices or numbers of images."""
        others = {maker: n for maker, n in runs["made with"].items() if maker != _maker(versions(), self.device)}
        said = [
            f"{n} of {runs['count']} runs were made with {maker}; the numbers are expected to agree to rounding"
            for maker, n in others.items()
        ]
        if any(_PART in ran for ran in runs["kept"]) and (here := runs["data"]["cifar10 train"]["images"]) != 20_000:
            said.append(f"CIFAR-10 had {here:,} training images in these runs, not 20,000 as described")
        return said


def split(wanted: Iterable[Spec | Work]) -> tuple[list[Spec], list[Work]]:
    """What a generator of `Wants` asks for: runs, and other computations."""
    every = list(dict.fromkeys(wanted))
    return [one for one in every if isinstance(one, Spec)], [one for one in every if isinstance(one, Work)]


@lru_cache(maxsize=4)
def _by_first(names: tuple[str, ...]) -> dict[str, list[str]]:
    stored: dict[str, list[str]] = {}
    for name in names:
        stored.setdefault(name.split("-")[0], []).append(name)
    return stored


def _first(said: dict[str, Any]) -> str:
    """The first part of a stored run's name: a hash of the words."""
    return configuration.digest(said)[:20]


def _digests(read: Mapping[str, Any]) -> dict[str, str]:
    return {name: part["sha256"] for name, part in read.items()}


def _maker(of: Mapping[str, str], device: str) -> str:
    return f"torch {of['torch']}, numpy {of['numpy']}, {device}"


def _float(value: Any) -> Any:
    return number(value) if isinstance(value, str) else value


def as_finished(
    pool: Executor, work: Callable[..., Any], jobs: Iterable[Any], *more: Any, most: int | None = None
) -> Iterator[tuple[Any, Any]]:
    """(job, work(job, *more)) for each job, as they finish. Ctrl-C leaves no lock of a future held.

    `most`: so many at a time are with the pool; the next ones are then asked for when there is room for them.

    `concurrent.futures.wait` takes the locks of all pending futures in Python code: a KeyboardInterrupt raised between
    two of them leaves them taken, the pool's own thread waits for one for ever, and so does the interpreter at exit.
    Here the main thread takes them with SIGINT blocked, and then waits on a queue that is written in C.
    """
    finished: SimpleQueue[Future] = SimpleQueue()
    pending: dict[Future, Any] = {}
    following = iter(jobs)
    while True:
        chosen = list(islice(following, None if most is None else most - len(pending)))
        with _signals_blocked():
            for job in chosen:
                future = pool.submit(work, job, *more)
                pending[future] = job
                future.add_done_callback(finished.put)
        if not pending:
            return
        future = finished.get()
        yield pending.pop(future), future.result()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM wait until the end of the block, where the system can (not on Windows)."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_ending = {"asked": False, "saves": False}  # of this worker: whether it is asked to end, and keeps checkpoints


def _follow(parent: int) -> None:
    """Have a worker end when it is asked to (SIGTERM), and when its parent does, however the parent ended.

    A long run is saved first. Ctrl-C is left to the parent, which asks its workers to end then.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the pool asks again while this one saves
        if not _ending["saves"]:
            os._exit(1)
        _ending["asked"] = True
        threading.Thread(target=give_up, daemon=True).start()
        raise KeyboardInterrupt

    def give_up() -> None:
        time.sleep(_PATIENCE)
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)
        give_up()  # where the main thread does not hear of it

    signal.signal(signal.SIGTERM, end)
    if hasattr(signal, "pthread_sigmask"):  # born while the parent blocks it, see `_signals_blocked`
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=watch, daemon=True).start()


@dataclass
class Result:
    """What `measure` returns: the table behind the picture, the numbers beside the paper's, and how it came about.

    `seeds`: those that were run, where these are not as many as were asked for. `data`: what `measure` read itself, not
    its runs, as `Problem.origin` has it.
    """

    table: Table
    cells: list[Cell] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: dict[str, Any] | None = None  # what `Runner.provenance` says of the runs behind it
    seeds: Sequence[int] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> dict[str, Any] | None:
        """A record's "runs": those behind it, and all data that were read."""
        if not self.data:
            return self.runs
        runs = self.runs or {"count": 0, "made with": {}, "data": {}}
        return {**runs, "data": {**runs["data"], **self.data}}


@dataclass(frozen=True)
class Item:
    """A figure or table of a paper.

    Fields:
        name: "<paper>/fig<N><letter>" or "<paper>/table<N>"; own pictures that explain them have other names.
        title: what it shows.
        measure: (scale, seeds) -> a generator that yields the runs that it wants and returns a Result, see `Wants`.
        draw: table rows -> Figure.
        scales: at which it can be measured.
        grows: whether `measure` takes the rows of a finished table as third argument: it then runs the methods that
            are missing there, and returns the whole table with the cells that change.
        early: whether the quick scale begins it soon: one long computation, which workers cannot share.
    """

    name: str
    title: str
    measure: Callable[..., Wants[Result]]
    draw: Callable[[Table], Any]
    scales: tuple[str, ...] = ("quick", "paper")
    grows: bool = False
    early: bool = False


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
    """Write `<item>.csv`, `.png` and `.json`: the record, with the digests of the other two. All or none are replaced.

    `grown`: the record to which the result adds. Its cells stand unless the result has them, and so does what it says
    of how it came about; of the result that is said under "added".

    Raises OSError where it cannot be written, ValueError for a `grown` that was made from other data. Nothing is lost
    then; a damaged record in the place is kept aside as .damaged.
    """
    from fedtheory.papers import style

    cells = [cell.written() for cell in result.cells]
    origin = own = {
        "settings": result.settings,
        "versions": versions(),
        "device": device,
        "seconds": round(seconds, 1),
        **({} if result.read() is None else {"runs": result.read()}),
    }
    if grown is not None:
        _require_same_data(item.name, grown, result)
        cells = list({cell["cell"]: cell for cell in [*grown["cells"], *cells]}.values())
        origin = {name: grown[name] for name in own if name in grown}
        origin |= {"added": [*grown.get("added", []), own]}
    table = to_csv(result.table).encode()
    rows = read_csv(table.decode())
    picture = style.save_bytes(style.with_caption(item.draw(rows), rows))
    record = {
        "item": item.name,
        "title": item.title,
        "scale": scale,
        "seeds": list(range(seeds) if result.seeds is None else result.seeds),
        "cells": cells,
        "notes": result.notes,
        **origin,
        "files": {"csv": sha256(table), "png": sha256(picture)},
    }
    content = {"csv": table, "png": picture, "json": seal(plain(record))}
    with alone(out):
        stem = place(out, item.name, scale)
        stem.parent.mkdir(parents=True, exist_ok=True)
        give_names(stem)
        keep_damaged(stem)
        commit(stem, content)
    return stem


def repaint(out: Path, name: str, draw: Callable[[Table], Any]) -> bool:
    """Draw a finished item's picture again from its table, and put its digest in the record; whether it changed.

    Raises FileNotFoundError where the item is not finished, ValueError where its record or its table is damaged.
    """
    from fedtheory.papers import style

    with alone(out):
        record = load(out, name, pictured=False)
        rows, stem = record.pop("table"), out / name
        picture = style.save_bytes(style.with_caption(draw(rows), rows))
        path = current(stem, "png")
        files = {"csv": record["files"]["csv"], "png": sha256(picture)}
        if files == record["files"] and path.exists() and path.read_bytes() == picture:
            return False
        table = current(stem, "csv").read_bytes()
        commit(stem, {"csv": table, "png": picture, "json": seal(record | {"files": files})})
    return True


def _require_same_data(item: str, grown: dict[str, Any], result: Result) -> None:
    """Rows of a table are of one set of data, as far as the records know."""
    old, new = ((runs or {}).get("data", {}) for runs in (grown.get("runs"), result.read()))
    other = [name for name in new if name in old and new[name]["sha256"] != old[name]["sha256"]]
    if other:
        fix = "pass the folder it was made from with --data, or make the whole item again without --missing"
        checks.reject("data", ", ".join(other), f"the data of the finished {item}", fix)
