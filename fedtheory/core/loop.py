"""A round, and the loop over rounds."""

import math
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from fedtheory.core import checks, engine
from fedtheory.core import schedule as schedules
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.contract import Watched
from fedtheory.core.files import misfit
from fedtheory.core.history import COUNTED, METRICS, Divergence, History, Metric, lost_metric
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, cost
from fedtheory.core.problem import Problem, own_modes
from fedtheory.core.sampling import Sampler
from fedtheory.core.schedule import Schedule


@dataclass
class Traffic:
    """Messages of one round or of all rounds so far, summed over clients.

    Fields:
        up, down: to the server and from it, each a `Cost`.
    """

    up: Cost = field(default_factory=Cost)
    down: Cost = field(default_factory=Cost)


class Keeper(Protocol):
    """Where a loop finds and leaves its state; `running.checkpoint` is one."""

    folder: Path

    def load(
        self, template: tuple[State, Any], wrong: Callable[[dict[str, Any]], str | None]
    ) -> tuple[tuple[State, Any], dict[str, Any]] | None: ...
    def save(self, tree: tuple[State, Any], extra: dict[str, Any]) -> object: ...


class Division(Protocol):
    """This process's share of the clients, and how it meets the others; `running.shards` is one."""

    start: int
    rank: int
    reduces: bool

    @property
    def kept(self) -> int: ...
    def players(self, clients: torch.Tensor) -> torch.Tensor: ...
    def mine(self, clients: torch.Tensor) -> torch.Tensor: ...
    def meet(self, up: Any, sent: Cost, clients: torch.Tensor) -> tuple[Any, Cost]: ...
    def agree(self, x: torch.Tensor, values: Sequence[float], count: int) -> list[float]: ...
    def most(self, number: int) -> int: ...


_MOST_THREADS = 1024
_AHEAD = 400  # clients, over all rounds that are drawn at once
_STACKED = 0.01  # of an upload's length: far above rounding, far below another draw
_ROUNDED = 1000  # units of rounding, of what a client is given: an upload that should be zero is as large


def sample_clients(n: int, sampled: int, key: Key) -> torch.Tensor:
    """Draw `sampled` of n clients, uniformly without replacement, in increasing order: (S,) int64."""
    if sampled == n:
        return torch.arange(n)
    return torch.randperm(n, generator=key.generator())[:sampled].sort()[0]


def _sampled(n: int, sampled: int, root: Key, start: int, rounds: int) -> Iterator[tuple[Key, torch.Tensor, list[int]]]:
    """Key, clients (S,) and their ids of each round; where clients are few, of some rounds at once, which is faster."""
    ahead = max(1, _AHEAD // n)
    for first in range(start, rounds, ahead):
        keys = [root.fold("round", t) for t in range(first, min(first + ahead, rounds))]
        clients = [sample_clients(n, sampled, key.fold("clients")) for key in keys]
        yield from zip(keys, clients, [some.tolist() for some in clients])


def _picked(plan: "Plan", start: int) -> Iterator[tuple[Key, torch.Tensor, list[int]]]:
    """As `_sampled`, by the plan's sampler."""
    for t in range(start, plan.rounds):
        key = plan.root.fold("round", t)
        picked = plan.sampler.pick(plan.problem, t, key.fold("clients"))  # type: ignore[union-attr]
        ids = sorted(checks.clients(f"{type(plan.sampler).__name__}.pick", picked, plan.problem.n))
        yield key, torch.tensor(ids), ids


def _drop_clients(ids: Sequence[int], dropout: float, key: Key) -> list[int]:
    """Those of the clients that fall silent, each with probability `dropout`; a random one always answers."""
    g = key.generator()
    silent = torch.rand(len(ids), generator=g, dtype=torch.float32) < dropout
    silent[torch.randint(len(ids), (), generator=g)] = False
    return [i for i, out in zip(ids, silent.tolist()) if out]


@checks.arguments
def play_round(
    algorithm: Algorithm,
    problem: Problem,
    state: State,
    clients: torch.Tensor,
    key: Key | int,
    *,
    lags: Sequence[int | None] | None = None,
    dropped: Collection[int] = (),
    chunk: int | None = None,
    threads: int = 1,
) -> tuple[State, Any, Traffic]:
    """Play one round for the given clients: a function of (state, key). Returns the new state, uploads and traffic.

    Clients are computed and summed by rising id, so their order changes no bit; uploads come in the order given.

    Args:
        algorithm, problem: as in `run`.
        state: its `own` is updated in place, row by row; clone it to keep the old one.
        clients: ids (S,), each once, in any order.
        key: the round's key, or its seed.
        lags: for each client the rounds since it last took part (None: never); it prices `Replay` messages.
        dropped: those of the clients that receive the round's message and then fall silent: their download is paid,
            their private state stays, and the round is that of the others.
        chunk: clients stacked at a time; None: the problem's choice.
        threads: chunks that run at a time.

    >>> import torch
    >>> from fedtheory import FedAvg, Key, Quadratic, play_round
    >>> problem, key = Quadratic.random(n=10, d=5, key=Key(0)), Key(0)
    >>> state = FedAvg(0.5, 5).init(problem, problem.start(), key)
    >>> state, up, traffic = play_round(FedAvg(0.5, 5), problem, state, torch.tensor([0, 3]), key.fold("round", 0))
    >>> up.dy.shape, traffic.up.bytes
    (torch.Size([2, 5]), 80)
    """
    ids, key, algorithm = checks.clients("clients", clients, problem.n), Key.of(key), algorithm.on(problem)
    require_steps(algorithm, problem)
    _require_state(problem, state)
    lag_of = dict(zip(ids, _require_lags(lags, len(ids))))
    if not set(dropped) < set(ids):
        checks.reject("dropped", list(dropped), f"some of the clients {ids}, not all", "let one client answer")
    answering = [i for i in ids if i not in dropped]
    if getattr(algorithm, "weighted", False) and not float(problem.weights[answering].to(problem.dtype).sum()):
        fix = "choose clients of which one weighs something, or pass weighted=False"
        checks.reject("clients", ids, "clients whose weights do not sum to 0", fix)
    if chunk is not None:
        checks.whole("chunk", chunk, 1)
    checks.whole("threads", threads, 1, _MOST_THREADS)
    rising = sorted(ids)
    given = (problem, state, torch.tensor(rising), key, [lag_of[i] for i in rising], dropped, chunk, threads)
    with own_modes():
        try:
            exchange = _exchange(algorithm, *given)
        except (TypeError, AttributeError, LookupError, RuntimeError) as error:
            if not checks.out_of_memory(error):
                _first_exchange(algorithm, *given)  # it names the step that broke the contract, if one did
            raise
        up = exchange.up
        if rising != ids:
            place = {i: at for at, i in enumerate(i for i in rising if i not in dropped)}
            given = torch.tensor([place[i] for i in ids if i not in dropped], device=problem.device)
            up = engine.map_leaves(lambda leaf: leaf.index_select(0, given), up)
        return _settle(algorithm, state, exchange), up, exchange.traffic


def _require_lags(lags: Sequence[int | None] | None, count: int) -> list[int | None]:
    """Return a lag for each of so many clients. Raises ValueError for another number of them, or one below 1."""
    known: list[int | None] = [None] * count if lags is None else list(lags)
    if len(known) != count:
        checks.reject("lags", known, f"one entry for each of {count} clients", "pass None where unknown")
    for i, lag in enumerate(known):
        if lag is not None:
            checks.whole(f"lags[{i}]", lag, 1)
    return known


class _Exchange(NamedTuple):
    """A round up to the server's line, before any private state has changed."""

    rows: torch.Tensor  # the participants
    mine: torch.Tensor  # where those that are kept here have their private state
    down: Any
    up: Any
    own: Any
    server: Any
    reply: Any
    traffic: Traffic


def _exchange(
    algorithm: Algorithm | Watched,
    problem: Problem,
    state: State,
    clients: torch.Tensor,
    key: Key,
    lags: Sequence[int | None],
    dropped: Collection[int],
    chunk: int | None,
    threads: int,
    cut: Sequence[int] = (),
    shards: Division | None = None,
) -> _Exchange:
    down = algorithm.address(algorithm.broadcast(state.server, key), clients)
    received = cost(down, lags, clients.tolist())
    if dropped:
        clients = torch.tensor([i for i in clients.tolist() if i not in dropped])
    rows = mine = clients.to(problem.device)  # the same ids, where the state is
    played = clients
    if shards is not None:
        played = shards.players(clients)
        mine = (played - shards.start).to(problem.device)
    own = engine.map_leaves(lambda leaf: leaf.index_select(0, mine), state.own)
    up, own = engine.run_clients(algorithm, problem, played, own, down, key, chunk, threads, cut)
    sent = cost(up)
    if shards is not None:
        if len(shards.mine(clients)) == 0:  # it played for the shape of an upload
            mine, own = mine[:0], engine.map_leaves(lambda leaf: leaf[:0], own)
        up, sent = shards.meet(up, sent, clients)
    server, reply = algorithm.server(state.server, down, up, rows, key)
    if reply is not None:
        received = received + cost(reply) * len(clients)
    return _Exchange(rows, mine, down, up, own, server, reply, Traffic(sent, received))


def _first_exchange(algorithm: Algorithm, *given: Any) -> _Exchange:
    """As `_exchange`, where what every step returns is looked at."""
    with checks.first_round():
        exchange = _exchange(Watched(algorithm), *given)
        problem, state, _, key, _, _, chunk = given[:7]
        _look_at_stacks(algorithm, problem, state, key, exchange, chunk)
        return exchange


def _look_at_stacks(
    algorithm: Algorithm,
    problem: Problem,
    state: State,
    key: Key,
    exchange: _Exchange,
    chunk: int | None,
) -> None:
    """Warns where an upload hangs on who is stacked with a client: of methods and problems that are not this package's,
    whose own are tested. One client is played alone, or two together where all were alone."""
    theirs = [kind for kind in (type(algorithm), type(problem)) if checks.class_name(kind) != kind.__name__]
    if not theirs or len(exchange.mine) < 2 or len(exchange.mine) != len(exchange.rows):
        return
    alone = (chunk or algorithm.chunk(problem) or len(exchange.rows)) > 1
    some = slice(1, 2) if alone else slice(0, 2)
    mine = engine.map_leaves(lambda leaf: leaf[exchange.mine[some]], state.own)
    ids = exchange.rows[some].cpu()
    given = [
        state.server.x,
        *(getattr(part, f.name) for part in (exchange.down, mine) if is_dataclass(part) for f in fields(part)),
    ]
    scale = max(float(leaf.double().norm()) for leaf in given if isinstance(leaf, torch.Tensor))
    up, _ = engine.run_clients(algorithm, problem, ids, mine, exchange.down, key, len(ids))
    for name, found in ((f.name, getattr(up, f.name)) for f in fields(up)):
        before = getattr(exchange.up, name)[some]
        gap = float((found.double() - before.double()).norm())
        off = gap / max(float(before.double().norm()), 1e-30)
        if off > _STACKED and gap > _ROUNDED * torch.finfo(problem.dtype).eps * scale:
            how, kind = "alone" if alone else "with another client", checks.class_name(theirs[0])
            warnings.warn(
                f"{kind}: client {int(ids[-1])}'s {type(up).__name__}.{name} is another one when it "
                f"is computed {how} ({off:.2g} of its length). A client's upload must not hang on who is stacked with "
                "it. Fix: fold the id into what a client draws, as key.fold('noise', int(i)) for i in clients; index "
                "by `clients`, add losses up, and change nothing in place",
                stacklevel=2,
            )
            return


def _settle(
    algorithm: Algorithm | Watched, state: State, exchange: _Exchange, cut: Sequence[int] = (), start: int = 0
) -> State:
    """The round is done. Private state changes in place; with blocks, of one after the other: see `running.shards`."""
    mine = exchange.mine
    own = engine.map_leaves(lambda leaf, new: leaf.index_copy_(0, mine, new), state.own, exchange.own)
    if not cut or own is None:
        return State(exchange.server, algorithm.close(own, mine, exchange.down, exchange.reply))
    if type(algorithm.algorithm if isinstance(algorithm, Watched) else algorithm).close is Algorithm.close:
        return State(exchange.server, own)
    for a, b in pairwise(edge - start for edge in cut):
        block = engine.map_leaves(lambda leaf: leaf[a:b].clone(), own)  # noqa: B023  # called at once
        inside = mine[(mine >= a) & (mine < b)] - a
        closed = algorithm.close(block, inside, exchange.down, exchange.reply)
        engine.map_leaves(
            lambda leaf, new: leaf if torch.equal(leaf[a:b], new) else leaf[a:b].copy_(new),  # noqa: B023
            own,
            closed,
        )
    return State(exchange.server, own)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM wait until the end of the block. Only the main thread gets them, and can be told to."""
    waiting: list[Any] = []
    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda *given: waiting.append(given))
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number, frame in waiting:
            if callable(before[number]):
                before[number](number, frame)
            elif before[number] == signal.SIG_DFL:
                signal.raise_signal(number)


def _wrong(extra: dict[str, Any], n: int, names: Sequence[str]) -> str | None:
    """What is wrong with what a checkpoint of n clients says of its rounds, or None."""
    there = extra.get("columns")
    sizes = {"up": [int], "down": [int]}
    columns = {"columns": {name: [(int, float)] for name in (there if isinstance(there, dict) else names)}}
    if (found := misfit(extra, {"every": int, "last_seen": [int], **sizes, **columns})) is not None:
        return found
    t, done, kept = extra["round"], extra["columns"]["round"], extra["columns"]
    right = {
        "every": extra["every"] >= 1,
        "last_seen": len(extra["last_seen"]) == n and all(-1 <= seen < t for seen in extra["last_seen"]),
        "up, down": all(len(extra[way]) == len(Cost._fields) and min(extra[way][:2]) >= 0 for way in sizes),
        "columns": list(dict.fromkeys(re.split(r"[.\[]", name)[0] for name in kept)) == list(names)
        and {len(column) for column in kept.values()} == {len(done)},
        "columns.round": all(0 <= r <= t for r in done) and all(a < b for a, b in pairwise(done)),
    }
    return next((f"its {name} cannot be" for name, holds in right.items() if not holds), None)


def _require_state(problem: Problem, state: State) -> None:
    """A state has this problem's sizes. Raises ValueError."""
    fix = "pass what algorithm.init(problem, problem.start(), key) or play_round returned for this problem"
    x = getattr(state.server, "x", None)
    if isinstance(x, torch.Tensor) and tuple(x.shape) != (problem.d,):
        checks.reject("state.server.x.shape", tuple(x.shape), f"({problem.d},), as the problem's parameters", fix)
    for f in fields(state.own) if is_dataclass(state.own) else ():
        leaf = getattr(state.own, f.name)
        if isinstance(leaf, torch.Tensor) and len(leaf) != problem.kept:
            checks.reject(f"len(state.own.{f.name})", len(leaf), f"a row for each of {problem.kept} clients", fix)


@dataclass(frozen=True)
class Plan:
    """What a run computes: the arguments of `run`, checked. Nothing in it depends on where the run takes place.

    Fields:
        algorithm, problem, rounds, sampled, dropout, schedule, every, chunk, threads: as in `run`.
        root: the run's key.
        x0: the start, (d,).
        metrics: what is recorded, by its column's name.
        edges: client ids between which no two are stacked.
        sampler: picks the participants; None: `sampled` of them, uniformly.
    """

    algorithm: Algorithm
    problem: Problem
    rounds: int
    sampled: int
    dropout: float
    root: Key
    x0: torch.Tensor
    schedule: Schedule | None
    every: int
    metrics: Mapping[str, Metric]
    chunk: int | None
    threads: int
    edges: Sequence[int]
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        algorithm, problem = self.algorithm, self.problem
        checks.whole("rounds", self.rounds, 0, checks.MOST_ROUNDS)
        checks.whole("sampled", self.sampled, 1, problem.n, f"sample from 1 to the {problem.n} clients there are")
        checks.number("dropout", self.dropout, 0.0, 1.0)
        checks.whole("every", self.every, 1)
        if self.chunk is not None:
            checks.whole("chunk", self.chunk, 1)
        checks.whole("threads", self.threads, 1, _MOST_THREADS)
        if self.sampler is not None:
            self.sampler.require(problem)
        if algorithm.everyone and (self.dropout or (self.sampler is None and self.sampled < problem.n)):
            value = f"{self.sampled} of {problem.n}, dropout={self.dropout}"
            checks.reject("sampled", value, "all clients in every round", "leave out sampled and dropout")
        _require_rates(algorithm, problem, self.rounds, self.schedule)
        require_steps(algorithm, problem)
        nothing = int((problem.weights.to(problem.dtype) == 0).sum())
        if getattr(algorithm, "weighted", False) and (
            nothing >= self.sampled or (nothing and (self.dropout or self.sampler is not None))
        ):
            what = f"positive where a round's participants may be some of the {nothing} clients that weigh nothing"
            checks.reject("problem.weights", problem.weights, what, "leave these clients out, or pass weighted=False")


def require_steps(algorithm: Algorithm, problem: Problem) -> None:
    """A method of several local steps suits clients of which some have fewer batches. Raises ValueError."""
    if not problem.uneven or algorithm.gradient_only:
        return
    if not algorithm.own_steps:
        own = f"{algorithm.name} has terms of its own, which would move clients that are done before the others"
        fix = "construct the problem with epochs=None, or leave these terms out"
        checks.reject("epochs", getattr(problem, "epochs", None), f"as many batches for each client: {own}", fix)
    K = getattr(algorithm, "local_steps", None)
    if problem.steps != K:
        checks.reject("local_steps", K, f"{problem.steps}, as the client with most", "pass local_steps=problem.steps")


def _require_rates(algorithm: Algorithm, problem: Problem, rounds: int, schedule: Schedule | None) -> None:
    """Every round has a step size that the problem's numbers can hold. Raises ValueError with the first without."""
    least, most = torch.finfo(problem.dtype).tiny, torch.finfo(problem.dtype).max
    own = schedules.first_bad_round(algorithm.rate, rounds, 0, least, most)
    if own is not None:
        what = f"a step size from {least:.1g} to {most:.1g} (of {problem.dtype}) in each of the {rounds} rounds"
        fix = "choose another, let it fall less or later, or run fewer rounds"
        checks.reject("lr", algorithm.lr, f"{what}; in round t={own} it is {algorithm.rate(own):.1g}", fix)
    if schedule is None:
        return
    checks.number(f"{type(schedule).__name__}.factor", schedule.factor(0), fix="return the round's share of lr")
    rate = lambda t: schedule.factor(t) * algorithm.rate(t)
    found = schedules.first_bad_round(rate, rounds, schedule.falls_from, least, most)
    if found is not None:
        expected = f"a positive step size in each of the {rounds} rounds; in round t={found} there is none"
        checks.reject("schedule", schedule, expected, "let it fall less or later, as for example Cosine(rounds) does")


@dataclass(frozen=True)
class Place:
    """Where a run takes place: what the loop is handed, and does not import.

    Fields:
        keeper: where it finds and leaves its state; None: nowhere.
        due: rounds and seconds after which the next checkpoint is due.
        progress: called with the rounds done, at every recorded round.
        shards: this process's share of the clients; None: all.
        store_rows: (Own, rows) -> Own with so many rows that lie elsewhere, such as on disk; None: in memory.
        stops: what has been asked to end the run, as it comes.
        rules: asked after each record whether the run ends there.
        log: called with each new record.
    """

    keeper: Keeper | None
    due: tuple[int, float]
    progress: Callable[[int], object] | None
    shards: Division | None
    store_rows: Callable[[Any, int], Any] | None
    stops: Sequence[Any]
    rules: Sequence[Callable[[History], bool]] = ()
    log: Callable[[dict[str, float]], object] | None = None


def loop(plan: Plan, place: Place) -> History:
    """Play a run's rounds, from its checkpoint where there is one. Returns what was recorded."""
    return _Loop(plan, place).play()


class _Loop:
    """A run on its way.

    Attributes:
        algorithm: at the step size of the last round.
        state, traffic, last_seen, done: after the last round that counts.
        settled: whether `state` is whole: private state changes in place, and what breaks off then cannot be saved.
    """

    def __init__(self, plan: Plan, place: Place) -> None:
        self.plan, self.place, self.algorithm = plan, place, plan.algorithm
        problem, shards, store_rows = plan.problem, place.shards, place.store_rows
        self.first, kept = (0, problem.n) if shards is None else (shards.start, shards.kept)
        self.blocks = [edge for edge in plan.edges if self.first <= edge <= self.first + kept]
        if store_rows is not None and not plan.edges:
            self.blocks = [self.first, self.first + kept]  # what `close` makes anew is written into the files, too
        with checks.first_round():
            began = problem if kept == problem.n and store_rows is None else problem.keeping(1 if store_rows else kept)
            self.state = Watched(plan.algorithm).init(began, plan.x0.to(problem.device).clone(), plan.root)
        if store_rows is not None:
            self.state = State(self.state.server, store_rows(self.state.own, kept))
        self.traffic, self.last_seen, self.done, self.settled = Traffic(), [-1] * problem.n, 0, True
        self.history = History({name: [] for name in ("round", *plan.metrics, *COUNTED)}, self.state)
        self._restore()
        self.start = self.saved = self.done
        self.saved_at = self.began_at = time.monotonic()
        self.returns = hasattr(sys, "ps1") and shards is None  # Ctrl-C at a prompt or in a notebook
        breakable = shards is not None or (place.keeper is None and not self.returns)
        self.uninterrupted = nullcontext if breakable else _uninterrupted

    def play(self) -> History:
        plan, place, history = self.plan, self.place, self.history
        on_grid = [done % plan.every == 0 for done in history["round"]]  # or of a shorter or finer run
        history.columns = {name: list(compress(column, on_grid)) for name, column in history.columns.items()}
        history.seconds = [math.nan] * len(history["round"])
        if self.start in (0, plan.rounds) or self.start % plan.every == 0:
            with checks.first_round():
                self._record()
        elif place.progress is not None:
            place.progress(self.start)
        try:
            self._play_rounds()
        except BaseException as error:
            if place.shards is None:
                self._save()
            if not (isinstance(error, KeyboardInterrupt) and self.returns):
                raise
            history.interrupted = self.done
        try:
            self._save()  # in shards: with the others, who are all here
        except OSError as error:
            if place.shards is not None:
                raise
            # nothing is lost but the way to go on
            warnings.warn(f"the run is done, and its last checkpoint is not kept: {error}", stacklevel=4)
        history.diverged = history.diverged or lost_metric(history.columns, plan.metrics)
        return history

    def _play_rounds(self) -> None:
        plan, place, last_seen = self.plan, self.place, self.last_seen
        if plan.schedule is not None and self.start > 0:  # what is saved is at that rate
            factor = plan.schedule.factor(self.start - 1)
            self.algorithm, _ = plan.algorithm.at_rate(plan.algorithm.lr * factor, self.state.own)
        if self.start > 0 and self._ended():
            return
        drawn = _sampled(plan.problem.n, plan.sampled, plan.root, self.start, plan.rounds)
        drawn = drawn if plan.sampler is None else _picked(plan, self.start)
        for t, (key, clients, ids) in zip(range(self.start, plan.rounds), drawn):
            moved = self._at_rate(t)
            lags = [None if last_seen[i] < 0 else t - last_seen[i] for i in ids]
            with torch.inference_mode(plan.problem.closed_form):  # no autograd bookkeeping: a tenth of a small round
                dropped = _drop_clients(ids, plan.dropout, key.fold("dropout")) if plan.dropout else ()
                exchange = (_first_exchange if t == self.start else _exchange)(
                    self.algorithm, plan.problem, moved, clients, key, lags, dropped,
                    plan.chunk, plan.threads, plan.edges, place.shards,
                )  # fmt: skip
                if (found := self._diverged(t, exchange)) is not None:
                    self.history.diverged = found
                    break
                with self.uninterrupted():  # from here on the round is done, and counted
                    self.settled = False
                    algorithm = Watched(self.algorithm) if t == self.start else self.algorithm
                    self.state = self.history.state = _settle(algorithm, moved, exchange, self.blocks, self.first)
                    crossed = exchange.traffic
                    self.traffic = Traffic(self.traffic.up + crossed.up, self.traffic.down + crossed.down)
                    for i in ids:
                        if i not in dropped:
                            last_seen[i] = t
                    self.done, self.settled = t + 1, True
            if self.done % plan.every == 0 or self.done == plan.rounds:
                self._record()
                if place.rules and self._ended():
                    break
            if place.keeper is not None:
                self._save_where_due()

    def _ended(self) -> bool:
        """Whether a rule ends the run at the last record; processes that share it end together."""
        shards, history = self.place.shards, self.history
        for rule in self.place.rules:
            found, name = rule(history), getattr(rule, "__name__", None) or repr(rule)
            if getattr(found, "ndim", 0):
                checks.reject(f"stop ({name})", found, "True or False", "add .all() or .any() to what it returns")
            met = bool(found)
            if met if shards is None else shards.most(int(met)):
                history.stopped = name
                return True
        return False

    def _at_rate(self, t: int) -> State:
        """The state at round t's step size; `self.state` stays at the last one's until the round is settled."""
        plan = self.plan
        if plan.schedule is None:
            return self.state
        self.algorithm, own = self.algorithm.at_rate(plan.algorithm.lr * plan.schedule.factor(t), self.state.own)
        if self.place.store_rows is not None and own is not self.state.own:
            what = f"None with {self.algorithm.name}, which rescales private state: it would be in memory then"
            checks.reject("schedule", plan.schedule, what, "leave out memory_map, or the schedule")
        return State(self.state.server, own)

    def _diverged(self, t: int, exchange: _Exchange) -> Divergence | None:
        if math.isfinite(float(exchange.server.x.sum())):
            return None
        found = _not_finite(t, exchange.rows.tolist(), exchange.up, exchange.server)
        if found is not None and self.place.shards is not None and self.place.shards.reduces:
            return replace(found, client=None)  # the others' uploads are in the average, too
        return found

    def _record(self) -> None:
        """Write a row of the history, if this round has none."""
        history, done = self.history, self.done
        if not history["round"] or history["round"][-1] < done:
            values, (up, down) = self._measure(), (self.traffic.up, self.traffic.down)
            counted = (up.scalars, up.bytes, down.scalars, down.bytes, up.saved_bytes + down.saved_bytes)
            row = {"round": done, **values, **dict(zip(COUNTED, counted))}
            if not history["round"]:
                history.columns = {name: [] for name in row}
            elif row.keys() != history.columns.keys():
                there = f"the entries of the first record, {list(history.columns)}"
                checks.reject("metrics", list(values), there, "return the same entries each time")
            with self.uninterrupted():
                for name, number in row.items():
                    history.columns[name].append(number)
                history.seconds.append(time.monotonic() - self.began_at)
            if self.place.log is not None and (self.place.shards is None or self.place.shards.rank == 0):
                self.place.log(row)
        if self.place.progress is not None:
            self.place.progress(done)

    def _measure(self) -> dict[str, float]:
        """The metrics at this model; with shards the first process's, on which all agree."""
        metrics, problem, shards, x = self.plan.metrics, self.plan.problem, self.place.shards, self.state.server.x
        values: dict[str, float] = {}
        if shards is None or shards.rank == 0:
            of = f"{type(problem).__name__}."
            problem = self.algorithm.evaluated(problem, self.state.own) if metrics else problem
            for name, metric in metrics.items():
                found = metric(problem, x)
                parts = found if isinstance(found, dict) else {name: found}
                values |= {
                    part: checks.outcome(f"{of if part in METRICS else ''}{part}", number)
                    for part, number in parts.items()
                }
        if shards is None:
            return values
        if shards.rank == 0 and values.keys() != metrics.keys():
            fix = "return a number, or leave out the group"
            checks.reject("metrics", list(metrics), "functions that return a number, in a group", fix)
        return dict(zip(metrics, shards.agree(x, list(values.values()), len(metrics))))

    def _restore(self) -> None:
        """Go on from the checkpoint, if there is one. Raises ValueError for one that this call does not continue."""
        keeper, plan, history = self.place.keeper, self.plan, self.history
        wrong = partial(_wrong, n=plan.problem.n, names=tuple(history.columns))
        found = None if keeper is None else keeper.load((self.state, plan.x0), wrong)
        if keeper is None or found is None:
            return
        (self.state, _), extra = found
        self.done, self.last_seen, history.columns = extra["round"], extra["last_seen"], extra["columns"]
        self.traffic = Traffic(Cost(*extra["up"]), Cost(*extra["down"]))
        history.state = self.state
        if self.done > plan.rounds:
            there = f"at least the {self.done} rounds in {keeper.folder}"
            checks.reject("rounds", plan.rounds, there, "name another folder")
        if plan.every % extra["every"]:
            there = f"a multiple of {extra['every']}, the rounds between two records in {keeper.folder}"
            checks.reject("every", plan.every, there, f"pass every={extra['every']}, or name another folder")

    def _save(self) -> None:
        """Write a checkpoint of the rounds done, if the last one is of fewer."""
        keeper = self.place.keeper
        if keeper is not None and self.settled and self.done > self.saved:
            extra = {
                "round": self.done,
                "every": self.plan.every,
                "last_seen": self.last_seen,
                "columns": self.history.columns,
                "up": list(self.traffic.up),
                "down": list(self.traffic.down),
            }
            keeper.save((self.state, self.plan.x0), extra)
            self.saved, self.saved_at = self.done, time.monotonic()

    def _save_where_due(self) -> None:
        """Save after so many rounds or seconds. Raises KeyboardInterrupt where the processes are asked to end."""
        rounds, seconds = self.place.due
        due = self.done % rounds == 0 or time.monotonic() - self.saved_at >= seconds
        if self.place.shards is not None:
            due = self.place.shards.most(2 if self.place.stops else int(due))
        if due:
            self._save()
        if due == 2:
            raise KeyboardInterrupt


def _not_finite(t: int, ids: list[int], up: Any, server: Any) -> Divergence | None:
    """The first value that is not finite: a client's upload before the server's model."""
    for f in fields(up):
        leaf = getattr(up, f.name)
        if not isinstance(leaf, torch.Tensor):  # both sides are one machine
            continue
        bad = ~torch.isfinite(leaf).reshape(len(leaf), -1).all(1)
        if bool(bad.any()):
            return Divergence(t, ids[int(bad.nonzero()[0, 0])], f"Up.{f.name}")
    if not bool(torch.isfinite(server.x).all()):
        return Divergence(t, None, "Server.x")
    return None  # the sum overflowed, the entries did not
