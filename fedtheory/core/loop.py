"""A round, the loop over rounds, and what it leaves behind."""

import math
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from fedtheory.core import checks, engine, results
from fedtheory.core import schedule as schedules
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.configuration import class_name
from fedtheory.core.contract import Watched
from fedtheory.core.files import misfit
from fedtheory.core.key import Key
from fedtheory.core.message import Cost, cost
from fedtheory.core.problem import Problem, own_modes
from fedtheory.core.schedule import Schedule


@dataclass(frozen=True)
class Divergence:
    """Where a run left the finite numbers.

    Fields:
        round: the round (from 0) in which it happened; of a metric, the rounds done at the record.
        client: the first client whose upload was not finite; None where every upload was.
        quantity: which value, such as "Up.dy", "Server.x", or a metric.
    """

    round: int
    client: int | None
    quantity: str


@dataclass
class History:
    """What a run recorded.

    Fields:
        columns: one list per quantity, all of one length: "round" (rounds done, 0 = start), the metrics asked for
            ("error", "loss", a function's name), and the traffic so far, summed over the clients: "up_scalars",
            "up_bytes", "down_scalars", "down_bytes", and "saved_bytes", what shared seeds spared in both directions.
        state: after the last finite round.
        diverged: None, or where the run left the finite numbers; it stops there. A problem's metric that is not finite
            stops no run: where it is so in the last record, this names it, and the first record from which on it is.
        seconds: since the start of this call, at each record; NaN for records of an earlier call that it goes on from.
        interrupted: None, or the rounds that were done when Ctrl-C ended the run.

    Iterating gives a dict for each record, so `pandas.DataFrame(history)` is `history.frame()`.

    >>> from fedtheory import FedAvg, Key, Quadratic, run
    >>> run(FedAvg(lr=0.5, local_steps=5), Quadratic.random(n=10, d=5, key=Key(0)), rounds=20, every=10)
    History of rounds 0 to 20, 3 records
    round   error  up_bytes  down_bytes
        0       1         0           0
       10  0.1837      4000        4000
       20  0.1835      8000        8000
    """

    columns: dict[str, list[float]]
    state: State
    diverged: Divergence | None = None
    seconds: list[float] = field(default_factory=list, compare=False)
    interrupted: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        checks.tidy(self)

    @property
    def x(self) -> torch.Tensor:
        """The final global model, (d,)."""
        return self.state.server.x

    def __iter__(self) -> Iterator[dict[str, float]]:
        for row in zip(*self.columns.values()):
            yield dict(zip(self.columns, row))

    def frame(self) -> Any:
        """The records as a pandas frame."""
        return results.frame(self.columns)

    def plot(self, metric: str | None = None, against: str = "round", ax: Any = None, **line: Any) -> Any:
        """Draw a metric against "round", "bytes" or "seconds". Returns the axes, to draw further runs into.

        Args:
            metric: a column; default the first metric of the run.
            ax: axes of matplotlib; default new ones.
            line: options of matplotlib's `plot`, such as label="SSF".
        """
        name = results.chosen(metric, self.columns)
        places, label = results.across(self.columns, self.seconds, against)
        ax = results.axes(ax, name, label)
        ax.plot(places, self.columns[name], **line)
        if "label" in line:
            ax.legend(frameon=False)
        return ax

    def save(self, path: str | Path) -> None:
        """Write columns, divergence, seconds and the final model to a file: JSON with its SHA-256, no pickle."""
        results.save(path, self.columns, self.diverged and list(vars(self.diverged).values()), self.seconds, self.x)

    @staticmethod
    def load(path: str | Path) -> "History":
        """A history that was saved. Its state is the final model alone: a run does not go on from it.

        Raises ValueError for a damaged file.
        """
        content = results.load(path)
        diverged = content["diverged"] and Divergence(*content["diverged"])
        return History(content["columns"], State(_Model(content["x"]), None), diverged, content["seconds"])

    def __getitem__(self, name: str) -> list[float]:
        return self.columns[checks.choice("name", name, self.columns)]

    def __repr__(self) -> str:
        rounds = self.columns.get("round") or [0]
        said = f"History of rounds {rounds[0]} to {rounds[-1]}, {len(rounds)} records"
        said += f", diverged in round {self.diverged.round} ({self.diverged.quantity})" if self.diverged else ""
        return f"{said}\n{results.table(self.columns)}"


@dataclass(frozen=True)
class _Model:
    """The server's state of a history that was saved."""

    x: torch.Tensor


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


MOST_THREADS = 1024
_AHEAD = 400  # clients, over all rounds that are drawn at once
_STACKED = 0.01  # of an upload's length: far above rounding, far below another draw
_ROUNDED = 1000  # units of rounding, of what a client is given: an upload that should be zero is as large
Metric = Callable[[Any, torch.Tensor], Any]  # of a problem and a model: a number, a vector, a dict of numbers
_METRICS: dict[str, Metric] = {
    "error": lambda problem, x: problem.error(x),
    "loss": lambda problem, x: problem.loss(x),
    "accuracy": lambda problem, x: problem.accuracy(x),
}
_COUNTED = ("up_scalars", "up_bytes", "down_scalars", "down_bytes", "saved_bytes")


def measured_by(metrics: Sequence[str | Metric]) -> dict[str, Metric]:
    """What is recorded, by its column's name. Raises ValueError for a name that is unknown, taken, or none."""
    found: dict[str, Metric] = {}
    for metric in metrics:
        if not callable(metric):
            name = checks.choice("metrics", metric, _METRICS)
        else:
            name = getattr(metric, "__name__", None)
            if isinstance(metric, type) or not checks.takes(metric, 2):
                fix = f"write def {name if isinstance(name, str) and name.isidentifier() else 'metric'}(problem, x)"
                checks.reject("metrics", metric, "a function of (problem, x)", fix, TypeError)
            if not isinstance(name, str) or not name.isidentifier():
                fix = "write it with def, or give it a __name__"
                checks.reject("metrics", metric, "a function with a name, which its column has", fix)
            if name in (*_METRICS, *_COUNTED, "round"):
                checks.reject("metrics", metric, f"a function with another name than {name!r}, a column", "rename it")
        if name in found:
            fix = "leave one out" if metrics.count(metric) > 1 else "rename one"
            names = tuple(getattr(one, "__name__", one) for one in metrics)
            checks.reject("metrics", names, "each name once, which is a column's", fix)
        found[name] = _own(metric) if callable(metric) else _METRICS[name]
    return found


def _own(metric: Metric) -> Metric:
    """A user's: given a copy, which it may change and differentiate through; a float, on which a group can agree.

    Of a vector or a dict: its numbers by their columns' names, such as "name[0]" or "name.worst".
    """
    name = getattr(metric, "__name__", "")

    def number(value: Any) -> float:
        one = (
            isinstance(value, (torch.Tensor, np.ndarray))
            and math.prod(value.shape) == 1
            and not getattr(value, "is_meta", False)
        )
        return float(checks.outcome(name, value.item() if one else value))

    def measure(problem: Problem, x: torch.Tensor) -> float | dict[str, float]:
        found = metric(problem, x.detach().clone())
        if isinstance(found, Mapping):
            return {f"{name}.{part}": number(value) for part, value in found.items()}
        if isinstance(found, (list, tuple)) or (getattr(found, "ndim", 0) == 1 and len(found) > 1):
            return {f"{name}[{i}]": number(value) for i, value in enumerate(found)}
        return number(found)

    return measure


def sample_clients(n: int, sampled: int, key: Key) -> torch.Tensor:
    """`sampled` of n clients, uniformly without replacement, in increasing order: (S,) int64."""
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
    """One round for the given clients: a function of (state, key). Returns the new state, the uploads, the traffic.

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
    _require_state(problem, state)
    known = [None] * len(ids) if lags is None else list(lags)
    if len(known) != len(ids):
        checks.reject("lags", known, f"one entry for each of {len(ids)} clients", "pass None where unknown")
    for i, lag in enumerate(known):
        if lag is not None:
            checks.whole(f"lags[{i}]", lag, 1)
    if not set(dropped) < set(ids):
        checks.reject("dropped", list(dropped), f"some of the clients {ids}, not all", "let one client answer")
    answering = [i for i in ids if i not in dropped]
    if getattr(algorithm, "weighted", False) and not float(problem.weights[answering].to(problem.dtype).sum()):
        fix = "choose clients of which one weighs something, or pass weighted=False"
        checks.reject("clients", ids, "clients whose weights do not sum to 0", fix)
    if chunk is not None:
        checks.whole("chunk", chunk, 1)
    checks.whole("threads", threads, 1, MOST_THREADS)
    lag_of = dict(zip(ids, known))
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
    down = algorithm.broadcast(state.server, key)
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
    theirs = [kind for kind in (type(algorithm), type(problem)) if class_name(kind) != kind.__name__]
    if not theirs or len(exchange.mine) < 2 or len(exchange.mine) != len(exchange.rows):
        return
    alone = (chunk or algorithm.chunk(problem) or len(exchange.rows)) > 1
    some = slice(1, 2) if alone else slice(0, 2)
    mine = engine.map_leaves(lambda leaf: leaf[exchange.mine[some]], state.own)
    ids = exchange.rows[some].cpu()
    given = [
        state.server.x,
        *(leaf for part in (exchange.down, mine) if is_dataclass(part) for leaf in vars(part).values()),
    ]
    scale = max(float(leaf.double().norm()) for leaf in given if isinstance(leaf, torch.Tensor))
    up, _ = engine.run_clients(algorithm, problem, ids, mine, exchange.down, key, len(ids))
    for name, found in ((f.name, getattr(up, f.name)) for f in fields(up)):
        before = getattr(exchange.up, name)[some]
        gap = float((found.double() - before.double()).norm())
        off = gap / max(float(before.double().norm()), 1e-30)
        if off > _STACKED and gap > _ROUNDED * torch.finfo(problem.dtype).eps * scale:
            how = "alone" if alone else "with another client"
            warnings.warn(
                f"{class_name(theirs[0])}: client {int(ids[-1])}'s {type(up).__name__}.{name} is another one when it "
                f"is computed {how} ({off:.2g} of its length). A client's upload must not hang on who is stacked with "
                "it. Fix: fold the id into what a client draws, as key.fold('noise', int(i)) for i in clients",
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
    if type(getattr(algorithm, "algorithm", algorithm)).close is Algorithm.close:
        return State(exchange.server, own)
    for a, b in pairwise(edge - start for edge in cut):
        block = engine.map_leaves(lambda leaf: leaf[a:b].clone(), own)  # noqa: B023  # called at once
        inside = mine[(mine >= a) & (mine < b)] - a
        closed = algorithm.close(block, inside, exchange.down, exchange.reply)
        if closed is not block:
            engine.map_leaves(lambda leaf, new: leaf[a:b].copy_(new), own, closed)  # noqa: B023
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
        "up, down": all(len(extra[way]) == len(Cost._fields) and min(extra[way]) >= 0 for way in sizes),
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


def require_rates(algorithm: Algorithm, problem: Problem, rounds: int, schedule: Schedule | None) -> None:
    """Every round has a step size that the problem's numbers can hold. Raises ValueError with the first without."""
    least, most = torch.finfo(problem.dtype).tiny, torch.finfo(problem.dtype).max
    own = schedules.end(algorithm.rate, rounds, 0, least, most)
    if own is not None:
        what = f"a step size from {least:.1g} to {most:.1g} (of {problem.dtype}) in each of the {rounds} rounds"
        fix = "choose another, let it fall less or later, or run fewer rounds"
        checks.reject("lr", algorithm.lr, f"{what}; in round t={own} it is {algorithm.rate(own):.1g}", fix)
    if schedule is None:
        return
    rate = lambda t: schedule.factor(t) * algorithm.rate(t)
    found = schedules.end(rate, rounds, schedule.falls_from, least, most)
    if found is not None:
        expected = f"a positive step size in each of the {rounds} rounds; in round t={found} there is none"
        checks.reject("schedule", schedule, expected, "let it fall less or later, as for example Cosine(rounds) does")


def loop(
    algorithm: Algorithm,
    problem: Problem,
    rounds: int,
    S: int,
    dropout: float,
    root: Key,
    x0: torch.Tensor,
    schedule: Schedule | None,
    every: int,
    metrics: Mapping[str, Metric],
    chunk: int | None,
    threads: int,
    keeper: Keeper | None,
    due: tuple[int, float],
    progress: Callable[[int], object] | None,
    cut: Sequence[int],
    shards: Division | None,
    hold: Callable[[Any, int], Any] | None,
    asked: list[Any],
) -> History:
    """`run`, its arguments checked and its folder owned."""
    first, kept = (0, problem.n) if shards is None else (shards.start, shards.kept)
    here = [edge for edge in cut if first <= edge <= first + kept]
    if hold is not None and not cut:
        here = [first, first + kept]  # one block: what `close` makes anew is written into the files, too
    with checks.first_round():
        began = problem if kept == problem.n and hold is None else problem.keeping(1 if hold else kept)
        state = Watched(algorithm).init(began, x0.to(problem.device).clone(), root)
    if hold is not None:
        state = State(state.server, hold(state.own, kept))
    traffic, last_seen, start = Traffic(), [-1] * problem.n, 0
    names = ("round", *metrics, *_COUNTED)
    history = History({name: [] for name in names}, state)
    saved = None if keeper is None else keeper.load((state, x0), partial(_wrong, n=problem.n, names=names))
    if keeper is not None and saved is not None:
        (state, _), extra = saved
        start, last_seen, history.columns = extra["round"], extra["last_seen"], extra["columns"]
        traffic = Traffic(Cost(*extra["up"]), Cost(*extra["down"]))
        history.state = state
        if start > rounds:
            there = f"at least the {start} rounds in {keeper.folder}"
            checks.reject("rounds", rounds, there, "name another folder")
        if every % extra["every"]:
            there = f"a multiple of {extra['every']}, the rounds between two records in {keeper.folder}"
            checks.reject("every", every, there, f"pass every={extra['every']}, or name another folder")

    def record(done: int) -> None:
        if not history["round"] or history["round"][-1] < done:
            values: dict[str, float] = {}
            if shards is None or shards.rank == 0:
                of = f"{type(problem).__name__}."
                for name, metric in metrics.items():
                    found = metric(problem, state.server.x)
                    parts = found if isinstance(found, dict) else {name: found}
                    values |= {
                        part: checks.outcome(f"{of if part in _METRICS else ''}{part}", number)
                        for part, number in parts.items()
                    }
            if shards is not None:
                if shards.rank == 0 and values.keys() != metrics.keys():
                    fix = "return a number, or leave out the group"
                    checks.reject("metrics", list(metrics), "functions that return a number, in a group", fix)
                agreed = shards.agree(state.server.x, list(values.values()), len(metrics))
                values = dict(zip(metrics, agreed))
            up, down = traffic.up, traffic.down
            counted = (up.scalars, up.bytes, down.scalars, down.bytes, up.saved_bytes + down.saved_bytes)
            row = {"round": done, **values, **dict(zip(_COUNTED, counted))}
            if not history["round"]:
                history.columns = {name: [] for name in row}
            elif row.keys() != history.columns.keys():
                there = f"the entries of the first record, {list(history.columns)}"
                checks.reject("metrics", list(values), there, "return the same entries each time")
            with uninterrupted():
                for name, number in row.items():
                    history.columns[name].append(number)
                history.seconds.append(time.monotonic() - began_at)
        if progress is not None:
            progress(done)

    done, whole, at_disk, written = start, True, start, time.monotonic()
    returns = hasattr(sys, "ps1") and shards is None  # at a prompt or in a notebook
    uninterrupted = nullcontext if shards is not None or (keeper is None and not returns) else _uninterrupted
    began_at = time.monotonic()

    def save() -> None:
        nonlocal at_disk, written
        if keeper is not None and whole and done > at_disk:
            extra = {
                "round": done,
                "every": every,
                "last_seen": last_seen,
                "columns": history.columns,
                "up": list(traffic.up),
                "down": list(traffic.down),
            }
            keeper.save((state, x0), extra)
            at_disk, written = done, time.monotonic()

    on_grid = [done % every == 0 for done in history["round"]]  # others are a shorter run's last, or a finer one's
    history.columns = {name: list(compress(column, on_grid)) for name, column in history.columns.items()}
    history.seconds = [math.nan] * len(history["round"])
    if start in (0, rounds) or start % every == 0:
        with checks.first_round():
            record(start)
    elif progress is not None:
        progress(start)
    full = algorithm
    if schedule is not None and start > 0:
        algorithm, _ = full.at_rate(full.lr * schedule.factor(start - 1), state.own)  # what is saved is at that rate
    try:
        drawn = _sampled(problem.n, S, root, start, rounds)
        for t, (key, clients, ids) in zip(range(start, rounds), drawn):
            moved = state  # at this round's rate; `state` itself stays at the last one's until the round is settled
            if schedule is not None:
                algorithm, own = algorithm.at_rate(full.lr * schedule.factor(t), state.own)
                if hold is not None and own is not state.own:
                    expected = f"None with {algorithm.name}, which rescales private state: it would be in memory then"
                    checks.reject("schedule", schedule, expected, "leave out memory_map, or the schedule")
                moved = State(state.server, own)
            lags = [None if last_seen[i] < 0 else t - last_seen[i] for i in ids]
            with torch.inference_mode(problem.closed_form):  # no autograd bookkeeping: a tenth of a small round
                dropped = _drop_clients(ids, dropout, key.fold("dropout")) if dropout else ()
                play = _first_exchange if t == start else _exchange
                exchange = play(algorithm, problem, moved, clients, key, lags, dropped, chunk, threads, cut, shards)
                if not math.isfinite(float(exchange.server.x.sum())):
                    found = _not_finite(t, exchange.rows.tolist(), exchange.up, exchange.server)
                    if found is not None and shards is not None and shards.reduces:
                        found = replace(found, client=None)  # the others' uploads are in the average, too
                    if found is not None:
                        history.diverged = found
                        break
                with uninterrupted():  # from here on the round is done, and counted
                    whole = False  # private state changes in place: what breaks off in here cannot be saved
                    looked_at = Watched(algorithm) if t == start else algorithm
                    state = history.state = _settle(looked_at, moved, exchange, here, first)
                    crossed = exchange.traffic
                    traffic = Traffic(traffic.up + crossed.up, traffic.down + crossed.down)
                    for i in ids:
                        if i not in dropped:
                            last_seen[i] = t
                    done, whole = t + 1, True
            if done % every == 0 or done == rounds:
                record(done)
            if keeper is not None:
                save_now = done % due[0] == 0 or time.monotonic() - written >= due[1]
                if shards is not None:
                    save_now = shards.most(2 if asked else int(save_now))
                if save_now:
                    save()
                if save_now == 2:
                    raise KeyboardInterrupt
    except BaseException as error:
        if shards is None:
            save()
        if not (isinstance(error, KeyboardInterrupt) and returns):
            raise
        history.interrupted = done
    if shards is None:
        try:
            save()
        except OSError as error:  # nothing is lost but the way to go on
            warnings.warn(f"the run is done, and its last checkpoint is not kept: {error}", stacklevel=3)
    if shards is not None:
        save()  # with the others, who are all here
    history.diverged = history.diverged or _lost(history.columns, metrics)
    return history


def _lost(columns: Mapping[str, Sequence[float]], metrics: Iterable[str]) -> Divergence | None:
    """The first metric of the problem's that is not finite from some record to the last; a function's may be so."""
    for name in (name for name in metrics if name in _METRICS):
        finite = list(map(math.isfinite, columns[name]))
        if not finite[-1]:
            since = len(finite) - finite[::-1].index(True) if any(finite) else 0
            return Divergence(int(columns["round"][since]), None, name)
    return None


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
