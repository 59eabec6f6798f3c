"""A run in two halves that share no memory: a server, and clients of one row each. What passes is a `Parcel`.

    server = ServerHalf(algorithm, problem, seed=0, sampled=3)
    clients = {i: ClientHalf(algorithm, problem, i, seed=0) for i in range(problem.n)}
    for t in range(rounds):
        uploads = {i: clients[i].play(parcel) for i, parcel in server.open().items()}
        for i, parcel in server.close(uploads).items():
            clients[i].hear(parcel)

gives the bits of `run(..., blocks=problem.n)`, in which every client is alone, too. Both sides know before the first
round: the method with its hyperparameters and schedule, the problem's layout and precision, x0, N, and the run's seed,
of which minibatches are drawn. Of the data a client needs its own; the server needs none. Whatever else a side needs it
is sent, and the bytes are counted.

A parcel down says which round its client was last counted in. A client keeps what it made of a round until that word
says whether it counts: so an upload that was lost leaves no trace, and an answer needs no receipt.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.engine import drain, map_leaves, run_clients
from fedtheory.core.key import Key
from fedtheory.core.loop import Traffic, require_steps, sample_clients
from fedtheory.core.message import Known, Seed, cost, field_names
from fedtheory.core.problem import Problem
from fedtheory.core.schedule import Schedule
from fedtheory.federation import admission, catch_up
from fedtheory.federation.codec import Parcel, Reader, Vocabulary, Writer, walk
from fedtheory.running.parts import Around

_LOG = logging.getLogger("fedtheory.federation")
_MISSED = 100_000  # rounds


class _Blank(Problem):
    """A problem without data, for the shapes of what a client line returns: its gradients are zero."""

    def __init__(self, problem: Problem) -> None:
        self.n, self.layout, self.dtype, self.device = problem.n, problem.layout, problem.dtype, problem.device
        self.weights, self._of = problem.weights, problem

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[torch.Tensor]:
        return [clients] * steps

    def full(self, clients: torch.Tensor) -> torch.Tensor:
        return clients

    def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        return torch.zeros_like(y)

    def losses(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        return y.new_zeros(len(y), dtype=torch.promote_types(y.dtype, torch.float32))  # as losses are

    @property
    def classifier(self) -> Any:
        return self._of.classifier

    def penalised(self, y: torch.Tensor, xi: Any, penalty: Any, *extras: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(y)

    def count_labels(self, xi: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(xi), self.classifier.classes, dtype=torch.int32, device=self.device)


def _start(
    algorithm: Algorithm, problem: Problem, seed: int, x0: torch.Tensor | None
) -> tuple[State, Any, Vocabulary, Key]:
    """What both sides know: the first state, the first message, the words of all messages, the run's key."""
    if isinstance(algorithm, Around):
        checks.reject("algorithm", algorithm.name, "a method without parts around it", "play it in one process, by run")
    require_steps(algorithm, problem)
    root = Key(seed)
    x0 = problem.start() if x0 is None else checks.tensor("x0", x0, (problem.d,), problem.dtype).detach()
    state = algorithm.init(problem.keeping(1), x0.to(problem.device).clone(), root)
    down = algorithm.broadcast(state.server, root.fold("round", 0))
    return state, down, Vocabulary.of(algorithm, problem, state.server, down), root


class ServerHalf:
    """The server of a run, to which clients are bytes.

    Args:
        algorithm, problem, seed, sampled, x0, schedule: as in `run`. Of the problem neither losses nor data are used.

    Attributes:
        round: the one that is played, or comes next.
        state: `State` after the last round; its `own` is None, for private state lies with its clients.
        traffic: what crossed so far, as `run` counts it.
        payload: what crossed so far, (up, down), as bytes of parcels.
        refused: of the last round, client -> one line that says why its upload was left out.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        *,
        seed: int = 0,
        sampled: int | None = None,
        x0: torch.Tensor | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        fix = f"sample from 1 to the {problem.n} clients there are"
        self.sampled = problem.n if sampled is None else checks.whole("sampled", sampled, 1, problem.n, fix)
        algorithm = algorithm.on(problem)
        self.problem, self.full, self.schedule = problem, algorithm, schedule
        state, self._first, self._words, self._root = _start(algorithm, problem, seed, x0)
        self.state, self._rows = State(state.server, None), state.own
        self.round, self.traffic, self.payload, self.refused = 0, Traffic(), (0, 0), dict[int, str]()
        self._algorithm, self._last_seen = algorithm, dict[int, int]()
        self._steps: dict[str, list[tuple[int, Any, Any]]] = {}
        self._down: Any = None
        self._alike: Any = None
        self._replies: dict[int, Parcel] = {}
        self._ids: list[int] = []

    @property
    def key(self) -> Key:
        """The round's."""
        return self._root.fold("round", self.round)

    def open(self) -> dict[int, Parcel]:
        """What is sent to each client of the round: client id -> parcel.

        Asked again for the same round it is the same, and counted again.
        """
        t, key = self.round, self.key
        if self.schedule is not None:
            self._algorithm, _ = self._algorithm.at_rate(self.full.lr * self.schedule.factor(t), self._rows)
        self._ids = sample_clients(self.problem.n, self.sampled, key.fold("clients")).tolist()
        down = self._algorithm.broadcast(self.state.server, key)
        self._down = down = self._algorithm.address(down, torch.tensor(self._ids))
        self._alike = None
        self._look_at(down)
        for path, part in walk(down):
            if hasattr(type(part), "missed"):
                self._remember(path, t, part.change, getattr(part, "held", None))
                most = max(part.missed(lag) or 0 for lag in {self._lag(i) for i in range(self.problem.n)})
                self._steps[path] = self._steps[path][len(self._steps[path]) - most :]
        lags = [self._lag(i) for i in self._ids]
        parcels = {i: self._down_to(i) for i in self._ids}
        self._count("down", cost(down, lags, self._ids), parcels)
        return parcels

    def close(self, uploads: Mapping[int, Parcel]) -> dict[int, Parcel]:
        """The server's line on the uploads that came: what goes back to each client, nothing for most methods.

        Who is missing has fallen silent. An upload that cannot be taken is left out, with a line in the log of
        "fedtheory.federation" and in `refused`; the round is that of the others.

        Raises ValueError where no upload can be taken; nothing has changed then, and `open` asks again.
        """
        t, taken, self.refused = self.round, [], {}
        for i, parcel in sorted(uploads.items()):
            try:
                taken.append(self._admitted(i, parcel))
            except admission.Refused as error:
                self.refused[i] = str(error)
                _LOG.warning("%s", error)
        if not taken:
            checks.reject("uploads", list(uploads), f"one of round {t} that can be taken", "open the round again")
        ids = torch.tensor([one.client for one in taken])
        up = taken[0].up
        if len(taken) > 1:
            up = map_leaves(lambda *leaves: torch.cat(leaves), *(one.up for one in taken))
        before, rows = self.state.server, ids.to(self.problem.device)
        server, reply = self._algorithm.server(before, self._down, up, rows, self.key)
        if not bool(torch.isfinite(server.x).all()):
            checks.reject("Server.x", server.x, f"finite numbers after round {t}", "take a smaller step size")
        self._count("up", cost(up), {one.client: uploads[one.client] for one in taken})
        for path, step in catch_up.steps_of_round(self._algorithm, before, self._down, up, rows, server).items():
            self._remember(path, t + 1, step, None)
        replies: dict[int, Parcel] = {}
        if reply is not None:
            for i in ids.tolist():
                writer = Writer(i)
                replies[i] = Parcel(t, "reply", {"message": writer.write(reply)}, bytes(writer.data))
            self._count("down", cost(reply) * len(ids), replies)
            self._replies |= replies
        self.state, self.round = State(server, None), t + 1
        self._last_seen |= dict.fromkeys(ids.tolist(), t)
        return replies

    def again(self, i: int) -> Parcel:
        """The reply to client i's last upload, for one that did not hear it. Its bytes are counted once more.

        Raises ValueError where there is none.
        """
        if i not in self._replies:
            checks.reject("i", i, "a client that was sent a reply", "open the next round")
        up, down = self.payload
        self.payload = (up, down + self._replies[i].payload)
        return self._replies[i]

    def _lag(self, i: int) -> int | None:
        return self.round - self._last_seen[i] if i in self._last_seen else None

    def _down_to(self, i: int) -> Parcel:
        lag = self._lag(i)

        def steps(part: Any, path: str) -> list[tuple[int, Any, Any]] | None:
            count, log = part.missed(lag), self._steps[path]
            some = log[len(log) - (count or 0) :]
            first = [(r, step, held if at == 0 else None) for at, (r, step, held) in enumerate(some)]
            return None if count is None else first

        writer = Writer(i, steps)
        metadata = {"message": writer.write(self._down), "last": self._last_seen.get(i), "replied": i in self._replies}
        return Parcel(self.round, "down", metadata, bytes(writer.data))

    def _remember(self, path: str, t: int, step: Any, held: Any) -> None:
        """Log a step, once."""
        log = self._steps.setdefault(path, [])
        if step is not None and (not log or log[-1][0] < t):
            log.append((t, step, held))

    def _admitted(self, i: int, parcel: Parcel) -> admission.Upload:
        if i not in self._ids:
            raise admission.Refused(i, parcel.round, f"it was not asked in round {self.round}")
        if parcel.kind != "up" or parcel.round != self.round or not isinstance(parcel.metadata, dict):
            raise admission.Refused(i, self.round, f"it answers round {checks.show(parcel.round)} with {parcel.kind!r}")
        like = self._like(i)
        try:
            reader = Reader(parcel.data, self._words, client=i)
            up = reader.read(parcel.metadata.get("message"), like)
            reader.end()
        except Exception as error:  # whatever a stranger's bytes may do
            cause = " ".join(str(error).split()).partition(". Fix:")[0]
            raise admission.Refused(i, self.round, cause) from error
        one = admission.Upload(i, self.round, up)
        size = float(self.state.server.x.abs().max())
        admission.admit([one], self.round, like, self.problem.n, self.problem.d, size)
        return one

    def _like(self, i: int) -> Any:
        """An upload as client i's must look, made without data; where it crosses whole, all clients' look the same."""
        if self._alike is None:
            ids = torch.tensor([i])
            up, _ = drain(self._algorithm.client(_Blank(self.problem), ids, self._rows, self._down, self.key))
            if hasattr(type(up), "crosses"):
                return up
            self._alike = up
        return self._alike

    def _look_at(self, down: Any) -> None:
        """What both sides are said to know is what they knew before the first round."""
        complete = catch_up.complete_message.dispatch
        makes_parts = complete(type(self._algorithm)) is not complete(object)
        for path, part in walk(down):
            if isinstance(part, Known) and (path in self._words.known or not makes_parts):
                first = self._words.known.get(path, Known(None))
                if not _same(first.value, part.value):
                    self._refuse(path, "a value that both sides knew before the first round, and that stays as it was")
            elif isinstance(part, Seed):
                maker = self._words.makers.get(str(part.key.path[-1]))
                if maker is None or maker.dense != part.dense:
                    self._refuse(path, "a seed whose value is made in every round as in the first one")

    def _refuse(self, path: str, expected: str) -> NoReturn:
        fix = f"play {self.full.name} in one process, with `run`"
        checks.reject(f"{type(self._down).__name__}.{path}", self.full.name, expected, fix)

    def _count(self, way: str, counted: Any, parcels: Mapping[int, Parcel]) -> None:
        sent, (up, down) = sum(parcel.payload for parcel in parcels.values()), self.payload
        if way == "up":
            self.traffic, self.payload = replace(self.traffic, up=self.traffic.up + counted), (up + sent, down)
        else:
            self.traffic, self.payload = replace(self.traffic, down=self.traffic.down + counted), (up, down + sent)


@dataclass
class _Kept:
    """What a client holds after a round that was counted.

    Fields:
        round: that round; None before the first.
        own: its private row, leading with 1; None where clients keep nothing.
        copies: of the parts that are replayed, by their path.
        held: seeds and known values of its last message, by the names of their fields.
        algorithm: at the step size of the last round that `own` has followed, `rated`.
    """

    round: int | None
    own: Any
    algorithm: Algorithm
    rated: int = -1
    copies: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Any] = field(default_factory=dict)


class ClientHalf:
    """One client of a run: its private row, its copies, its data. Of the server it has what it was sent.

    Args:
        algorithm, problem, seed, x0, schedule: as in `run` and at the server: both sides know them.
        client: its id.
        rounds: of the run; a parcel of a later round is refused. Without it a client goes along with 100,000 rounds
            that it missed, and refuses the parcel of a round beyond them.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        client: int,
        *,
        seed: int = 0,
        x0: torch.Tensor | None = None,
        schedule: Schedule | None = None,
        rounds: int | None = None,
    ) -> None:
        self.rounds = None if rounds is None else checks.whole("rounds", rounds, 0, checks.MOST_ROUNDS)
        self.client = checks.whole("client", client, 0, problem.n - 1, f"the clients are 0 to {problem.n - 1}")
        algorithm = algorithm.on(problem)
        self.problem, self.full, self.schedule = problem, algorithm, schedule
        state, self._first, self._words, self._root = _start(algorithm, problem, seed, x0)
        self._kept = _Kept(None, state.own, algorithm)
        self._blank = self._kept.own
        self._pending: _Kept | None = None
        self._down: Any = None
        self._asked: Parcel | None = None
        self._reply: Any = None  # the first one's form, which the others must have

    def play(self, parcel: Parcel) -> Parcel:
        """The local steps of a round: its upload. What it leaves behind waits for the word that it counts.

        Raises ValueError in one line for a parcel that is not of a round to come, or that does not fit.
        """
        self._look_at(parcel, "down")
        t = parcel.round
        over = -1 if self._kept.round is None else self._kept.round
        first = over + 1 if self._pending is None or self._pending.round is None else self._pending.round
        last = over + _MISSED if self.rounds is None else self.rounds - 1
        if not first <= t <= last:
            self._refuse("round", t, f"a round from {first}, as those before it are over, to {last}")
        self._settle(parcel.metadata.get("last"), parcel.metadata.get("replied"))
        kept = self._kept
        down, timelines = self._read(parcel)
        algorithm, own = kept.algorithm, map_leaves(torch.clone, kept.own)
        for q in range(kept.rated + 1, t + 1):
            if self.schedule is not None:
                algorithm, own = algorithm.at_rate(self.full.lr * self.schedule.factor(q), own)
            if kept.round is not None and q < t and own is not None:
                own = catch_up.own_after_absence(algorithm, own, _at(timelines, q), _at(timelines, q + 1), q)
        key = self._root.fold("round", t)
        up, own = run_clients(algorithm, self.problem, torch.tensor([self.client]), own, down, key)
        self._wait(parcel, own, down, timelines)
        writer = Writer(self.client)
        return Parcel(t, "up", {"message": writer.write(up)}, bytes(writer.data))

    def hear(self, parcel: Parcel) -> None:
        """The server's reply to its upload: the round is over, and counted.

        Raises ValueError in one line for a reply to another round, or one that does not fit.
        """
        self._look_at(parcel, "reply")
        pending = self._pending
        if pending is None or parcel.round != pending.round:
            asked = "nothing that it waits for" if pending is None else f"its upload of round {pending.round}"
            self._refuse("round", parcel.round, f"a reply to {asked}")
        with self._fits():
            reader = Reader(parcel.data, self._words, strict=True)
            reply = reader.read(parcel.metadata.get("message"), self._reply)
            reader.end()
            pending.own = pending.algorithm.close(pending.own, torch.tensor([0]), self._down, reply)
            pending.copies = pending.copies | catch_up.copies_of_reply(pending.algorithm, pending.copies, reply)
        self._kept, self._pending = pending, None
        if self._reply is None:
            self._reply = _form(reply)

    def state(self) -> Parcel:
        """All that it holds, to go on in another process: `restore`."""
        kept, pending = self._kept, self._pending
        writer = Writer(self.client, lambda part, path: None)
        metadata: dict[str, Any] = {
            "own": writer.write(kept.own),
            "copies": {path: writer.write(copy, path=path) for path, copy in kept.copies.items()},
            "held": {path: writer.write(part, path=path) for path, part in kept.held.items()},
            "round": kept.round,
            "rated": kept.rated,
        }
        data = bytes(writer.data)
        if pending is not None and self._asked is not None:
            writer = Writer(self.client)
            own = writer.write(pending.own)
            metadata |= {"pending": own, "asked": self._asked.metadata, "sizes": [len(data), len(writer.data)]}
            data += bytes(writer.data) + self._asked.data
        return Parcel(-1 if pending is None or pending.round is None else pending.round, "state", metadata, data)

    def restore(self, parcel: Parcel) -> None:
        """Go on from a `state` of this client. Raises ValueError in one line for one that does not fit."""
        self._look_at(parcel, "state", -1)
        plain, data = parcel.metadata, parcel.data
        first, second = plain.get("sizes", (len(data), 0))
        reader, row = Reader(data[:first], self._words), self._kept.own
        own = reader.read(plain.get("own"), row)
        copies = {path: reader.read(node, path=path) for path, node in plain.get("copies", {}).items()}
        held = {path: reader.read(node, path=path) for path, node in plain.get("held", {}).items()}
        reader.end()
        rated = plain.get("rated", -1)
        self._kept = _Kept(plain.get("round"), own, self._at_rate(rated), rated, copies, held)
        self._pending = None
        if "asked" in plain:
            asked = Parcel(parcel.round, "down", plain["asked"], data[first + second :])
            reader = Reader(data[first : first + second], self._words)
            own = reader.read(plain.get("pending"), row)
            self._wait(asked, own, *self._read(asked))

    def _read(self, parcel: Parcel) -> tuple[Any, dict[str, list[tuple[int, Any]]]]:
        """The message, and how its replayed parts came to be what they are: from which round on which value stood."""
        t, kept, timelines = parcel.round, self._kept, dict[str, list[tuple[int, Any]]]()

        def replay(path: str, rounds: list[int] | None, came: Any) -> Any:
            if rounds is None:
                timelines[path] = [(t, came)]
                return came
            value = kept.copies[path] if path in kept.copies else self._known_start(path)
            timelines[path] = [(-1, value)]
            for r, step in zip(rounds, came):
                value = catch_up.apply_step(self._at_rate(r - 1), self.problem, value, step, r)
                timelines[path].append((r, value))
            return value

        with self._fits():
            reader = Reader(parcel.data, self._words, replay, kept.held, self.client, strict=True)
            message = reader.read(parcel.metadata.get("message"), self._first)
            reader.end()
            return catch_up.complete_message(self.full, self.problem, message), timelines

    def _wait(self, asked: Parcel, own: Any, down: Any, timelines: dict[str, list[tuple[int, Any]]]) -> None:
        """Hold what a round left behind until it is said to count."""
        t, algorithm = asked.round, self._at_rate(asked.round)
        copies = {path: line[-1][1] for path, line in timelines.items()}
        copies |= catch_up.copies_of_message(algorithm, self.problem, self._kept.copies, down, self._kept.round, t)
        held = {path: part for path, part in walk(down) if isinstance(part, (Seed, Known)) and "." not in path}
        self._pending, self._down, self._asked = _Kept(t, own, algorithm, t, copies, held), down, asked

    def _settle(self, last: Any, replied: Any) -> None:
        """Keep or forget what was made of the last round, as the server's word has it."""
        if self._pending is not None and last is not None and last == self._pending.round:
            if replied:
                self._refuse("last", last, "a round whose reply it has heard", "let it hear `ServerHalf.again` first")
            pending = self._pending
            pending.own = pending.algorithm.close(pending.own, torch.tensor([0]), self._down, None)
            self._kept, self._pending = pending, None
        if last != self._kept.round:
            self._refuse("last", last, f"{self._kept.round}, the last round that it knows to be counted")
        self._pending = None

    def _at_rate(self, t: int) -> Algorithm:
        """The method at the step size of round t."""
        if self.schedule is None or t < 0:
            return self.full
        return self.full.at_rate(self.full.lr * self.schedule.factor(t), self._blank)[0]

    @contextmanager
    def _fits(self) -> Iterator[None]:
        """What breaks in a method's own lines is told as a parcel that does not fit."""
        try:
            yield
        except (RuntimeError, AttributeError, LookupError, TypeError) as error:
            self._refuse("message", str(error), f"what {self.full.name} sends")

    def _look_at(self, parcel: Parcel, kind: str, least: int = 0) -> None:
        if parcel.kind != kind or not isinstance(parcel.metadata, dict):
            self._refuse("kind", parcel.kind, repr(kind))
        checks.whole("parcel.round", parcel.round, least)

    def _known_start(self, path: str) -> Any:
        for name, part in walk(self._first):
            if name == path and hasattr(type(part), "missed"):
                return part.copy
        return None

    def _refuse(self, name: str, value: Any, expected: str, fix: str = "") -> NoReturn:
        fix = fix or f"send client {self.client} the parcel that was made for it"
        checks.reject(f"parcel.{name}", value, expected, fix)


def _form(message: Any) -> Any:
    """Shapes and types of a message's tensors, without their data."""
    held = {name: getattr(message, name) for name in field_names(type(message))} if is_dataclass(message) else {}
    tensors = {name: part.to("meta") for name, part in held.items() if isinstance(part, torch.Tensor)}
    return SimpleNamespace(**tensors)


def _same(a: Any, b: Any) -> bool:
    """Whether two values that are known are equal, tensors bit for bit."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if is_dataclass(a) and type(a) is type(b):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return a is b or a == b


def _at(timelines: Mapping[str, list[tuple[int, Any]]], r: int) -> dict[str, Any]:
    """What stood in round r, by its path: the last value that began by then, where it is known."""
    return {path: value for path, line in timelines.items() for start, value in line if start <= r}
