"""A run as a user starts it: checks arguments, makes checkpoint, processes and folders, and has the loop play."""

import hashlib
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from fedtheory.core import checks, fingerprints
from fedtheory.core.algorithm import Algorithm, State, shares
from fedtheory.core.contract import look_at_problem
from fedtheory.core.history import History, Metric, choose_metrics
from fedtheory.core.key import Key
from fedtheory.core.loop import Place, Plan, loop
from fedtheory.core.problem import Problem, own_modes
from fedtheory.core.sampling import Sampler
from fedtheory.core.schedule import Schedule
from fedtheory.running import private_rows
from fedtheory.running.allocator import keeping_freed
from fedtheory.running.checkpoint import Checkpoint, copy_tree
from fedtheory.running.shards import BLOCKS, Group, Shards, edges


@contextmanager
def _told_to_stop() -> Iterator[list[Any]]:
    """Note the first Ctrl-C: processes that share a run end together, after a round. A second one ends this one."""
    asked: list[Any] = []
    before: Any = None

    def note(*given: Any) -> None:
        asked.append(given)
        signal.signal(signal.SIGINT, before)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread
        yield asked
        return
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@checks.arguments
def run(
    algorithm: Algorithm,
    problem: Problem,
    rounds: int,
    *,
    sampled: int | None = None,
    sampler: Sampler | None = None,
    dropout: float = 0.0,
    seed: int = 0,
    x0: torch.Tensor | None = None,
    schedule: Schedule | None = None,
    every: int = 1,
    metrics: Sequence[str | Metric] | None = None,
    chunk: int | None = None,
    threads: int = 1,
    blocks: int | None = None,
    group: Any = None,
    memory_map: str | Path | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
    checkpoint_seconds: float = 30.0,
    progress: Callable[[int], object] | bool | None = None,
    log: Callable[[dict[str, float]], object] | None = None,
    stop: Callable[[History], bool] | Sequence[Callable[[History], bool]] = (),
) -> History:
    """Run an algorithm on a problem. A run that diverges warns.

    Ctrl-C at a prompt or in a notebook returns what is there, and says so; in a script it raises KeyboardInterrupt.

    Args:
        algorithm: what it left out (`lr=None`) is chosen for the problem, by `Algorithm.on`.
        rounds: T >= 0.
        sampled: S, clients per round, uniform without replacement; default all.
        sampler: picks each round's participants instead of uniform draws: `Weighted`, `Cyclic`, `Available`, or a
            `Sampler` of yours.
        dropout: probability that a sampled client falls silent after its download; one always answers.
        seed: of every draw of the run. Draws name their path under it: ("P",), ("round", t, ...).
        x0: start, (d,), the problem's dtype; default `problem.start()`, which is zeros for all but networks.
        schedule: factors on the algorithm's lr, see `fedtheory.core.schedule`; default none: 1.
        every: record each so many rounds; the start and the last round always.
        metrics: "error" (||x - x*|| / ||x*||), "loss" (F(x)), "accuracy" (share of test samples that are right), or a
            function (problem, x) -> a number. A function names its column. Default `problem.metrics`: the error, or
            where there is no x* the loss, and the accuracy of a classification. With a group the first process calls
            it. Of a vector each entry has a column, "name[0]", and of a dict each number, "name.key"; not with a group.
        chunk: clients stacked at a time; None: the problem's choice. Changes no result beyond rounding.
        threads: chunks that run at a time; changes no bit. For convolutions, with torch.set_num_threads(1).
        blocks: of client ids; only clients of one block are stacked. Default one, with a group `shards.BLOCKS`. A run
            with so many blocks has the same bits in one process and in any number of them.
        group: processes that share the clients, a `shards.Group` or a group of torch.distributed; every process calls
            `run` with the same arguments. Each keeps the private state of its own clients only, which is what
            `History.state.own` holds; all else is the same in all of them.
        memory_map: a folder. Private state lies in files there that are mapped into memory and may be larger than it.
        checkpoint: a folder (with a group: one that all processes see). If it holds a checkpoint of this very run, the
            run goes on from there, with the same bits as an unbroken run, in any number of processes. A checkpoint of
            another run is refused, and so is a folder that a run uses.
        checkpoint_every, checkpoint_seconds: rounds and seconds after which the next checkpoint is due, whichever comes
            first; one more is written at the end, also where the run diverges or is interrupted (Ctrl-C). A run may go
            on with more rounds, and with fewer records, at multiples of `every`.
        progress: called with the number of rounds done, at every recorded round; True: a bar.
        log: called with each new record, a dict: the round, the metrics, what crossed so far. With a group the first
            process calls it.
        stop: ends the run after a record: `EarlyStopping`, `Budget`, a function of the history that returns True, or
            several. What stopped is in `History.stopped`. With a checkpoint the run may go on under another rule.

    Raises TypeError or ValueError for arguments out of range, before any work.

    >>> from fedtheory import FedAvg, Key, Quadratic, run
    >>> problem = Quadratic.random(n=10, d=5, key=Key(0))
    >>> history = run(FedAvg(lr=0.5, local_steps=5), problem, rounds=20, every=10)
    >>> [round(error, 3) for error in history["error"]]
    [1.0, 0.184, 0.184]
    """
    look_at_problem(problem)
    checks.whole("checkpoint_every", checkpoint_every, 1)
    checks.number("checkpoint_seconds", checkpoint_seconds, 0.0)
    if sampled is not None and sampler is not None:
        checks.reject("sampled", sampled, "None with a sampler", "leave it out: a sampler has its own number")
    metrics, algorithm = problem.metrics if metrics is None else metrics, algorithm.on(problem)
    if blocks is not None:
        checks.whole("blocks", blocks, 1, problem.n, f"cut the {problem.n} clients into so many at most")
    shards = None
    if group is not None:
        shards = _shards(algorithm, problem, blocks or min(BLOCKS, problem.n), group)
        blocks = shards.blocks
    map_folder = None if memory_map is None else checks.folder("memory_map", memory_map)
    if x0 is None:
        with own_modes():
            x0 = problem.start()
    x0 = checks.tensor("x0", x0, (problem.d,), problem.dtype).detach()
    cut = () if blocks is None else edges(problem.n, blocks)
    plan = Plan(
        algorithm, problem, rounds, problem.n if sampled is None else sampled, dropout, Key(seed), x0, schedule, every,
        choose_metrics(metrics), chunk, threads, cut, sampler
    )  # fmt: skip
    keeper = nullcontext()
    if checkpoint is not None:
        keeper = Checkpoint(checkpoint, _identity(plan, metrics, blocks, shards), shards, map_folder is not None)
    rules = (stop,) if callable(stop) else tuple(stop)
    for rule in filter(lambda rule: isinstance(rule, type), rules):
        checks.reject("stop", rule, "a rule that was made", f"pass {rule.__name__}()", TypeError)
    stops = nullcontext([]) if shards is None or checkpoint is None else _told_to_stop()
    store_rows = None if map_folder is None else lambda own, rows: private_rows.mapped(own, map_folder, rows)
    size = x0.nbytes if problem.device.type == "cpu" else 0
    bar = _Bar(rounds) if progress is True else nullcontext(progress or None)
    with keeper as kept, stops as asked, keeping_freed(size), own_modes(), bar as show:
        due = (checkpoint_every, checkpoint_seconds)
        history = loop(plan, Place(kept, due, show, shards, store_rows, asked, rules, log))
        own = history.state.own
        if map_folder is None and not _ordinary(own):
            own = copy_tree(own)
        history.state = State(copy_tree(history.state.server), own)
    _warn_of_an_early_end(history, plan)
    return history


def _ordinary(own: Any) -> bool:
    """Whether the private state is tensors of its own, so that it need not be held twice to hand it out."""
    leaves = [] if own is None else [getattr(own, of.name) for of in fields(own)]
    tensors = all(isinstance(leaf, torch.Tensor) and not leaf.is_inference() for leaf in leaves)
    return tensors and len({leaf.untyped_storage().data_ptr() for leaf in leaves}) == len(leaves)


def _identity(plan: Plan, metrics: Sequence[str | Metric], blocks: int | None, shards: Shards | None) -> str:
    """What tells a run from another: its checkpoint is refused where this differs."""
    algorithm, problem, schedule = plan.algorithm, plan.problem, plan.schedule
    revised = getattr(type(problem), "revision", 1)
    name = checks.class_name(type(problem)) + ("" if revised == 1 else f" (revision {revised})")
    own = checks.class_name(type(algorithm))
    of = "" if own == type(algorithm).__name__ else f" of {own}"
    x0 = hashlib.sha256(plan.x0.cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()[:16]
    known = tuple(
        f"{name} ({fingerprints.digest(fingerprints.describe_callable(metric))})" if callable(metric) else name
        for name, metric in zip(plan.metrics, metrics)
    )
    said = f"{fingerprints.describe(algorithm)}{of} on {name} {problem.fingerprint()}, S={plan.sampled}, "
    said += f"dropout={plan.dropout}, x0={x0}, seed={plan.root.seed}, metrics={known}"
    said += "" if algorithm.revision == 1 else f", revision={algorithm.revision}"
    said += "" if plan.sampler is None else f", sampler={fingerprints.describe(plan.sampler)}"
    said += "" if schedule is None else f", {fingerprints.describe(schedule)}"
    said += "" if blocks is None else f", blocks={blocks}"
    return said + (", reduced" if shards is not None and shards.reduces else "")


def _warn_of_an_early_end(history: History, plan: Plan) -> None:
    if history.interrupted is not None:
        done = f"{history.interrupted} of {plan.rounds} rounds"
        warnings.warn(f"the run was interrupted: its history holds {done}", stacklevel=4)
    elif (of := history.diverged) is not None:
        who = "" if of.client is None else f" of client {of.client}"
        fix = f"a smaller lr than {plan.algorithm.lr:g}" if hasattr(plan.algorithm, "lr") else "smaller steps"
        fix += "" if of.round else ", if the gradients are finite"
        warnings.warn(f"the run diverged in round {of.round}: {of.quantity}{who}. Fix: {fix}", stacklevel=4)


@contextmanager
def may_diverge() -> Iterator[None]:
    """Have runs in the block not warn when they diverge: their caller looks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the run diverged")
        yield


class _Bar:
    """A progress bar over rounds, also in a notebook, as the function that `progress` takes."""

    def __init__(self, rounds: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets has a bar of letters
            from tqdm.auto import tqdm
        self._bar = tqdm(total=rounds, unit="round")

    def __enter__(self) -> Callable[[int], object]:
        return lambda done: self._bar.update(done - self._bar.n)

    def __exit__(self, *error: object) -> None:
        self._bar.close()


def _shards(algorithm: Algorithm, problem: Problem, blocks: int, group: Any) -> Shards:
    """This process's share. Raises ValueError for a group or a division that does not fit."""
    group = group if isinstance(group, Group) else Group(group)
    if group.reduce and not algorithm.averaged:
        expected = f"False with {algorithm.name}, whose server line reads each participant's upload"
        checks.reject("group.reduce", True, expected, "leave it out: uploads are gathered then")
    weights = shares(problem, getattr(algorithm, "weighted", False), problem.weights)
    return Shards(group, problem.n, blocks, problem.device, weights)
