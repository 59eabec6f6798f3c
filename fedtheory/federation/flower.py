# pyright: reportMissingImports=false
"""Any algorithm on any problem as an app of Flower, by one call for each side; no line of the algorithm changes.

    server = server_app(algorithm, problem, rounds=100, sampled=10)
    client = client_app(algorithm, problem)

A Flower message carries the parcels (`codec.Parcel`) of all clients that its node holds: one array of bytes, which is
the payload of all of them, one after the other, and one text, which is JSON. Nothing is unpickled, and no number is
sent twice. A supernode says which clients it holds, and where they keep what they keep, in its configuration:

    flower-supernode --node-config 'clients="0,1,2" folder="/where/they/keep"' ...

An app's process lives for one message. So a client's state lies in a file of its node, which a killed supernode leaves
as it was before or after a message, and a later one goes on from.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.files import open_own, sha256, write_atomic
from fedtheory.core.problem import Problem
from fedtheory.core.schedule import Schedule
from fedtheory.federation.codec import Parcel
from fedtheory.federation.halves import ClientHalf, ServerHalf

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
except ModuleNotFoundError as error:
    if not str(error.name).startswith("flwr"):
        raise
    fix = "make flower, then use .venv-flower/bin/python; elsewhere pip install 'fedtheory[flower]'"
    raise ModuleNotFoundError(f"flower: it is not installed here. Fix: {fix}", name="flwr") from None

_LOG = logging.getLogger("fedtheory.federation")
_LOOK = 0.1  # seconds between two looks for answers
_TEXT, _BYTES = "text", "payload"
_MOST_TEXT = 1 << 24  # characters of a message's JSON
_LONGEST_KIND = 16  # characters
Sent = list[tuple[int, Parcel]]  # (client, parcel)


# Messages


def pack(parcels: Sent, said: dict[str, Any]) -> RecordDict:
    """Parcels, and plain words beside them, as the content of a Flower message."""
    listed = [
        {"client": i, "round": one.round, "kind": one.kind, "size": one.payload, "metadata": one.metadata}
        for i, one in parcels
    ]
    content = RecordDict(
        {_TEXT: ConfigRecord({"json": json.dumps({"parcels": listed, "said": said}, allow_nan=False)})}
    )
    payload = b"".join(one.data for _, one in parcels)
    if payload:
        content[_BYTES] = ArrayRecord({"all": Array("uint8", (len(payload),), "bytes", payload)})
    return content


def unpack(content: RecordDict) -> tuple[Sent, dict[str, Any]]:
    """What `pack` packed. Raises ValueError in one line for anything else."""
    words = content.get(_TEXT)
    text = words.get("json") if isinstance(words, ConfigRecord) else None
    if not isinstance(text, str) or len(text) > _MOST_TEXT:
        _refuse("message", type(text).__name__, f"a text of JSON, of at most {_MOST_TEXT} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        _refuse("message", text[:40], "JSON")
    record = content.get(_BYTES)
    array = record.get("all") if isinstance(record, ArrayRecord) else None
    payload = getattr(array, "data", b"")
    listed = found.get("parcels") if isinstance(found, dict) else None
    said = found.get("said") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not isinstance(said, dict) or not all(map(_is_parcel, listed)):
        _refuse("message", text[:40], "a list of parcels: client, round, kind, size, metadata")
    if sum(one["size"] for one in listed) != len(payload):
        _refuse("message's payload", len(payload), "as many bytes as its parcels name")
    parcels, at = [], 0
    for one in listed:
        data = payload[at : at + one["size"]]
        parcels.append((one["client"], Parcel(one["round"], one["kind"], one["metadata"], data)))
        at += one["size"]
    return parcels, said


def _is_parcel(one: Any) -> bool:
    wanted = {"client": int, "round": int, "kind": str, "size": int, "metadata": dict}
    if not isinstance(one, dict) or set(one) != set(wanted):
        return False
    right = all(type(one[name]) is kind for name, kind in wanted.items())
    return right and min(one["size"], one["client"]) >= 0 and len(one["kind"]) <= _LONGEST_KIND


def _refuse(name: str, value: Any, expected: str) -> NoReturn:
    checks.reject(name, value, expected, "refuse it, and leave its sender out of this round")


# A client's side


def client_app(
    algorithm: Algorithm,
    problem: Problem,
    *,
    seed: int = 0,
    x0: torch.Tensor | None = None,
    schedule: Schedule | None = None,
    rounds: int | None = None,
) -> ClientApp:
    """The app of a supernode: it plays for each of the clients that the node holds.

    Args:
        algorithm, problem, seed, x0, schedule: as in `run`, and the same as at the server. Of the problem's data a node
            reads those of its own clients alone.
        rounds: of the run; see `ClientHalf` for what holds without it.

    What cannot be played is refused in one line, which the server logs: a parcel that does not fit, a client that has
    lost what it kept. The others of the node play on.
    """
    app = ClientApp()

    @app.query()
    def who(message: Message, context: Context) -> Message:
        return Message(pack([], {"clients": _held(context)}), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        folder = checks.path("folder", context.node_config.get("folder")) / str(context.run_id)
        came, _ = unpack(message.content)
        answers: Sent = []
        said: dict[str, Any] = {"heard": [], "refused": {}}
        for i in dict.fromkeys(client for client, _ in came):
            try:
                if i not in _held(context):
                    _refuse("client", i, f"one of {_held(context)}, which this node holds")
                half = ClientHalf(algorithm, problem, i, seed=seed, x0=x0, schedule=schedule, rounds=rounds)
                mine = [parcel for client, parcel in came if client == i]
                up, heard = _play(half, mine, folder / f"client-{i}.state")
            except (ValueError, TypeError) as error:
                _LOG.warning("client %d: %s", i, error)
                said["refused"][str(i)] = str(error)
                continue
            answers += [(i, one) for one in up]
            said["heard"] += [[i, t] for t in heard]
        return Message(pack(answers, said), reply_to=message)

    return app


def _held(context: Context) -> list[int]:
    """The clients that a node holds, from its configuration."""
    text = str(context.node_config.get("clients", ""))
    words = text.split(",")
    if not context.node_config.get("folder") or not all(word.strip().isdigit() for word in words):
        config = dict(context.node_config)
        fix = """start it with --node-config 'clients="0,1" folder="/where/they/keep"'"""
        checks.reject("node-config", config, "the clients that the node holds, and a folder for what they keep", fix)
    return [int(word) for word in words]


def _play(half: ClientHalf, parcels: Sequence[Parcel], file: Path) -> tuple[list[Parcel], list[int]]:
    """A client's answers to what it is sent, and the rounds whose replies it has heard. Its file is written then."""
    heard_last = _restore(half, file)
    answers, heard = [], []
    for parcel in parcels:
        if parcel.kind == "reply":
            if parcel.round > heard_last:  # else its receipt was lost, and it came again
                half.hear(parcel)
                heard_last = parcel.round
            heard.append(parcel.round)
        else:
            answers.append(half.play(parcel))
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = half.state()
    words = {"heard": heard_last, "round": kept.round, "metadata": kept.metadata}
    body = json.dumps(words, allow_nan=False).encode() + b"\n" + kept.data
    write_atomic(file, sha256(body).encode() + b"\n" + body)
    return answers, heard


def _restore(half: ClientHalf, file: Path) -> int:
    """Give a client what it kept, if there is anything. Returns the last round whose reply it heard, or -1."""
    if not file.exists():
        return -1
    digest, _, body = file.read_bytes().partition(b"\n")
    head, _, data = body.partition(b"\n")
    try:
        if digest != sha256(body).encode():
            raise ValueError("its SHA-256 does not match")
        words = json.loads(head)
        half.restore(Parcel(words["round"], "state", words["metadata"], data))
        return int(words["heard"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        fix = "put its copy back; without it a client that was ever counted is left out of every round"
        checks.reject("file", str(file), f"what a client keeps ({error})", fix)


# The server's side


@dataclass
class Played:
    """What happened in a round.

    Fields:
        round: from 0.
        start, end: seconds since the epoch.
        up, down: bytes of parcels that came and were sent.
        messages: Flower messages that were sent and that came back.
        clients: those whose uploads were counted.
        dropped: client -> why it was left out.
    """

    round: int
    start: float = 0.0
    end: float = 0.0
    up: int = 0
    down: int = 0
    messages: int = 0
    clients: list[int] = field(default_factory=list)
    dropped: dict[int, str] = field(default_factory=dict)


@dataclass
class _Rounds:
    """The rounds of a run over a grid: who holds whom, what is under way."""

    grid: Grid
    half: ServerHalf
    patience: float
    asked: set[int] = field(default_factory=set)  # nodes that were asked whom they hold
    claims: dict[int, list[int]] = field(default_factory=dict)  # node -> the clients that it says it holds
    fresh: list[int] = field(default_factory=list)  # nodes that have said so since the last round
    silent: set[int] = field(default_factory=set)  # nodes that let their last message go unanswered
    node_of: dict[int, int] = field(default_factory=dict)  # client -> node
    waiting: dict[str, tuple[int, int]] = field(default_factory=dict)  # message -> its round, its node
    unheard: dict[int, int] = field(default_factory=dict)  # client -> the round whose reply has no receipt
    played: list[Played] = field(default_factory=list)

    def gather(self) -> None:
        """Wait until every client is held by some node, as long as patience lasts."""
        end, wanted = time.monotonic() + self.patience, set(range(self.half.problem.n))
        while not wanted <= set(self.node_of) and time.monotonic() < end:
            self.meet()
            time.sleep(_LOOK)

    def meet(self) -> None:
        """Ask nodes that are new whom they hold; then say which node is asked for each client.

        It is the first that claims the client. One that let its last message go unanswered gives way to another.
        """
        here = list(self.grid.get_node_ids())
        self.push(_WHO, [Message(pack([], {}), node, "query") for node in here if node not in self.asked])
        self.asked |= set(here)
        for _, t, node, answer in self.look():  # no round is open
            self.refuse_late(t, node, answer)
        known = [node for node in reversed(self.claims) if node in here]
        held = {i: node for node in known for i in self.claims[node]}
        self.node_of = held | {i: node for node in known if node not in self.silent for i in self.claims[node]}
        for node in self.fresh:
            for i in self.claims[node]:
                if self.node_of.get(i, node) != node:
                    _LOG.warning("node %d: client %d refused: node %d holds it", node, i, self.node_of[i])
        self.fresh.clear()

    def claim(self, node: int, answer: Message) -> None:
        """A node says whom it holds."""
        held: Any = None
        if not answer.has_error():
            with suppress(ValueError):
                held = unpack(answer.content)[1].get("clients")
        if not isinstance(held, list):
            _LOG.warning("node %d refused: it does not say which clients it holds", node)
            held = []
        self.claims[node] = [i for i in range(self.half.problem.n) if i in held]
        self.fresh.append(node)

    def play(self) -> Played:
        """One round: it is asked again until an upload can be taken. Raises ValueError where none ever can."""
        t = self.half.round
        now = Played(t, start=time.time())
        self.played.append(now)
        parcels, uploads, replies = self.half.open(), dict[int, Parcel](), None
        for left in reversed(range(_TRIES)):
            self.meet()
            uploads = self.ask(parcels, now)
            try:
                replies = self.half.close(uploads)
                break
            except ValueError as error:  # nobody answered, or the model is finite no more
                if not left and uploads:
                    raise
                _LOG.warning("round %d: %s", t, error)
        if replies is None:
            fix = "start the supernodes, or look at their logs"
            checks.reject("round", t, f"an upload that can be taken, in {_TRIES} times {self.patience:g} s", fix)
        for i, cause in self.half.refused.items():
            now.dropped[i] = cause
        now.clients = [i for i in sorted(uploads) if i not in self.half.refused]
        now.dropped = {i: cause for i, cause in sorted(now.dropped.items()) if i not in now.clients}
        self.unheard |= dict.fromkeys(replies, t)
        if replies:
            self.tell(now, replies)
        now.end = time.time()
        return now

    def ask(self, parcels: dict[int, Parcel], now: Played) -> dict[int, Parcel]:
        """Send the round's parcels, after the replies that their receivers have not heard; what comes back in time."""
        t, silent = self.half.round, {i: "no node holds it" for i in parcels if i not in self.node_of}
        again = {i: [self.half.again(i)] for i in parcels if i in self.unheard and i in self.node_of}
        sent = {i: [*again.get(i, []), parcel] for i, parcel in parcels.items() if i in self.node_of}
        uploads: dict[int, Parcel] = {}
        silent |= {i: f"no answer in {self.patience:g} s" for i in sent}
        for node, content in self.exchange(sent, now, silent):
            for i, parcel in self.received(node, content, now, silent):
                if i in uploads or self.node_of.get(i) != node or i not in sent:
                    _LOG.warning("round %d: client %d refused: node %d does not hold it, or it came twice", t, i, node)
                    continue
                uploads[i] = parcel
                silent.pop(i, None)
        now.dropped |= silent
        for i, cause in silent.items():
            _LOG.warning("round %d: client %d dropped: %s", t, i, cause)
        return uploads

    def tell(self, now: Played, replies: dict[int, Parcel]) -> None:
        """Send the round's replies. Who does not say that it has heard is told again before its next round."""
        sent = {i: [parcel] for i, parcel in replies.items() if i in self.node_of}
        for node, content in self.exchange(sent, now, {}):
            for i, parcel in self.received(node, content, now, {}):
                _LOG.warning("round %d: client %d refused: it answers %r to a reply", now.round, i, parcel.kind)

    def exchange(
        self, sent: dict[int, list[Parcel]], now: Played, silent: dict[int, str]
    ) -> Iterator[tuple[int, RecordDict]]:
        """One message to each node that holds some of the clients; the contents of the answers, as they come."""
        by_node: dict[int, Sent] = {}
        for i, parcels in sent.items():
            by_node.setdefault(self.node_of[i], []).extend((i, one) for one in parcels)
        messages = []
        for node, parcels in sorted(by_node.items()):
            messages.append(Message(pack(parcels, {}), node, "train", group_id=str(now.round), ttl=10 * self.patience))
            now.down += sum(one.payload for _, one in parcels)
        now.messages += len(messages)
        ids = self.push(now.round, messages)
        for answer in self.answers(ids, self.patience, silent):
            now.messages += 1
            yield answer

    def received(self, node: int, content: RecordDict, now: Played, silent: dict[int, str]) -> Sent:
        """The parcels of an answer; receipts and refusals are noted."""
        try:
            parcels, said = unpack(content)
        except ValueError as error:
            _LOG.warning("round %d: node %d refused: %s", now.round, node, error)
            silent |= {i: str(error) for i in silent if self.node_of.get(i) == node}
            return []
        now.up += sum(one.payload for _, one in parcels)
        heard = said.get("heard")
        for one in heard if isinstance(heard, list) else ():
            pair = isinstance(one, list) and [type(part) for part in one] == [int, int]
            if pair and self.node_of.get(one[0]) == node and self.unheard.get(one[0]) == one[1]:
                del self.unheard[one[0]]
        refused: Any = said.get("refused")
        for i in silent:
            if isinstance(refused, dict) and self.node_of.get(i) == node and str(i) in refused:
                silent[i] = " ".join(str(refused[str(i)]).split())[:_LONGEST]
        return parcels

    def push(self, t: int, messages: Sequence[Message]) -> set[str]:
        """Hand messages to the superlink; their ids."""
        pushed = list(self.grid.push_messages(messages)) if messages else []
        self.waiting |= {
            one: (t, message.metadata.dst_node_id) for one, message in zip(pushed, messages) if one is not None
        }
        return {one for one in pushed if one is not None}

    def answers(self, ids: set[str], seconds: float, silent: dict[int, str]) -> Iterator[tuple[int, RecordDict]]:
        """(node, content) of the answers to these messages; what answers an older one is refused, and said."""
        end, left = time.monotonic() + seconds, set(ids)
        self.silent |= {self.waiting[one][1] for one in ids}
        while left and time.monotonic() < end:
            for name, t, node, answer in self.look():
                if name not in left:
                    self.refuse_late(t, node, answer)
                    continue
                left.discard(name)
                if answer.has_error():
                    cause = " ".join(str(answer.error.reason).split())[:_LONGEST]
                    _LOG.warning("round %d: node %d failed: %s", t, node, cause)
                    silent |= {i: cause for i in silent if self.node_of.get(i) == node}
                else:
                    yield node, answer.content
            time.sleep(_LOOK)

    def look(self) -> list[tuple[str, int, int, Message]]:
        """What has come: the message that it answers, its round, its node, the answer; claims are heard."""
        found = []
        for answer in self.grid.pull_messages(list(self.waiting)) if self.waiting else ():
            name = answer.metadata.reply_to_message_id
            if name not in self.waiting:
                continue
            t, node = self.waiting.pop(name)
            if not answer.has_error():  # an error may be the superlink's own, about a node that is gone
                self.silent.discard(node)
            if t == _WHO:
                self.claim(node, answer)
            else:
                found.append((name, t, node, answer))
        return found

    def refuse_late(self, t: int, node: int, answer: Message) -> None:
        """An answer to a round that is over."""
        found: Any = []
        if not answer.has_error():
            with suppress(ValueError):
                found = [i for i, _ in unpack(answer.content)[0]]
        now = self.half.round
        for i in found:
            _LOG.warning("round %d: client %d refused: it answers round %d, which is over", now, i, t)
        if not found:
            _LOG.warning("round %d: node %d refused: it answers round %d, which is over", now, node, t)


_WHO = -1  # in the place of a round: the question whom a node holds
_TRIES = 3  # of a round that nobody answers
_LONGEST = 300  # characters of a cause


def server_app(
    algorithm: Algorithm,
    problem: Problem,
    rounds: int,
    *,
    seed: int = 0,
    sampled: int | None = None,
    x0: torch.Tensor | None = None,
    schedule: Schedule | None = None,
    patience: float = 120.0,
    save: str | Path | None = None,
    progress: Callable[[Played], object] | None = None,
) -> ServerApp:
    """The app of a superlink: it plays the rounds of `run` with the clients that the supernodes hold.

    Args:
        algorithm, problem, rounds, seed, sampled, x0, schedule: as in `run`. The problem's data are not read.
        patience: seconds that a round waits for its clients; who has not answered then is left out of it.
        save: folder for `record.json` and `models.bin`: the models after each round, the traffic as counted and as it
            crossed, and who was left out why; `log.txt` has the lines of the log, `failed.txt` why there is no record.
        progress: called after each round.

    A client that falls silent, cannot be understood, or answers a round that is over is left out of the round with one
    line in the log of "fedtheory.federation"; the round is that of the others, and it may take part in the next.
    """
    checks.whole("rounds", rounds, 0, checks.MOST_ROUNDS)
    checks.number("patience", patience, 0.0, open_low=True)
    start = partial(ServerHalf, algorithm, problem, seed=seed, sampled=sampled, x0=x0, schedule=schedule)
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        torch.set_num_threads(1)
        if save is None:
            _serve(grid, start(), rounds, patience, progress)
            return
        folder = checks.path("save", save)
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_own(folder / "log.txt", os.O_WRONLY | os.O_APPEND), "a") as lines:
            log = logging.StreamHandler(lines)
            _LOG.addHandler(log)
            try:
                _save(folder, *_serve(grid, start(), rounds, patience, progress))
            except BaseException as error:
                write_atomic(folder / "failed.txt", str(error).encode())
                raise
            finally:
                _LOG.removeHandler(log)

    return app


def _serve(
    grid: Grid, half: ServerHalf, rounds: int, patience: float, progress: Callable[[Played], object] | None
) -> tuple[list[torch.Tensor], list[dict[str, int]], list[Played]]:
    """All rounds: the models from the start on, what was counted by then, what happened in each."""
    under_way = _Rounds(grid, half, patience)
    under_way.gather()
    models, counted = [half.state.server.x], [_counted(half)]
    for _ in range(rounds):
        now = under_way.play()
        models.append(half.state.server.x)
        counted.append(_counted(half))
        if progress is not None:
            progress(now)
    return models, counted, under_way.played


def _counted(half: ServerHalf) -> dict[str, int]:
    """The columns of `History` that count."""
    up, down = half.traffic.up, half.traffic.down
    saved = up.saved_bytes + down.saved_bytes
    return {
        "round": half.round,
        "up_scalars": up.scalars,
        "up_bytes": up.bytes,
        "down_scalars": down.scalars,
        "down_bytes": down.bytes,
        "saved_bytes": saved,
    }


def _save(folder: Path, models: Sequence[torch.Tensor], counted: list[dict[str, int]], played: list[Played]) -> None:
    stacked = torch.stack([x.detach().cpu() for x in models])
    data = stacked.contiguous().view(torch.uint8).numpy().tobytes()
    record = {
        "models": {
            "dtype": str(stacked.dtype),
            "shape": list(stacked.shape),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
        "columns": {name: [row[name] for row in counted] for name in counted[0]},
        "rounds": [asdict(one) for one in played],
    }
    write_atomic(folder / "models.bin", data)
    write_atomic(folder / "record.json", json.dumps(record, indent=1).encode())  # last: who sees it has both
