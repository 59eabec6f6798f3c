"""What passes on a socket: a relay between a supernode and its superlink that counts bytes and changes none.

It stands at the transport, below HTTP. It counts all bytes that both sides hand to their sockets, headers included. To
say what they were for, it reads the line that begins a request, as in "POST /v1/fleet/pull-object HTTP/1.1".
"""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

_REQUEST = re.compile(rb"(?:GET|POST|PUT|DELETE) (\S{1,200}) HTTP/1\.1\r\n")
_CHUNK = 1 << 16
POLL = "pull-messages"  # asks for a message; what follows says whether there was one
_CARRIES = ("pull-object", "push-messages", "push-object", "confirm-message-received")


@dataclass
class Request:
    """One request and its answer.

    Fields:
        at: seconds since the epoch when it began.
        name: the last part of its path, "" where the bytes are not HTTP in the clear.
        up, down: bytes towards the superlink and back.
    """

    at: float
    name: str
    up: int = 0
    down: int = 0


@dataclass
class Counter:
    """A relay that runs.

    Fields:
        requests: in the order in which they began.
    """

    requests: list[Request] = field(default_factory=list)


async def _relay(counter: Counter, target: str, accepted: socket.socket) -> None:
    """One connection, passed on to `target`."""
    ends: list[asyncio.StreamWriter] = []

    async def connect(**where: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(**where)
        ends.append(writer)
        return reader, writer

    async def up() -> None:
        nonlocal current
        while chunk := await reader.read(_CHUNK):
            if found := _REQUEST.match(chunk):
                name = found[1].decode("ascii", "replace").rsplit("/", 1)[-1]
                current = Request(time.time(), name)
                counter.requests.append(current)
            current.up += len(chunk)
            there_writer.write(chunk)
            await there_writer.drain()
        there_writer.close()

    async def down() -> None:
        while chunk := await there_reader.read(_CHUNK):
            current.down += len(chunk)
            writer.write(chunk)
            await writer.drain()
        writer.close()

    try:
        reader, writer = await connect(sock=accepted)
        there_reader, there_writer = await connect(path=target)
        current = Request(time.time(), "")
        counter.requests.append(current)
        await asyncio.gather(up(), down(), return_exceptions=True)  # a side that is killed ends its connection, no more
    except OSError:  # the superlink is not up yet, or gone: as if nobody listened here
        return
    finally:
        for end in ends:
            end.close()
            with suppress(OSError):
                await end.wait_closed()


@contextmanager
def counted(place: str, target: str) -> Iterator[Counter]:
    """A relay from the Unix socket `place`, which is new, to `target`, for as long as the block lasts."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen(1000)
    listening.setblocking(False)
    counter, loop = Counter(), asyncio.SelectorEventLoop()
    stop, relays = asyncio.Event(), dict[asyncio.Task[None], socket.socket]()

    async def serve() -> None:
        def accept() -> None:
            with suppress(OSError):  # gone again
                accepted = listening.accept()[0]
                relays[loop.create_task(_relay(counter, target, accepted))] = accepted

        with listening:
            loop.add_reader(listening, accept)
            await stop.wait()
            loop.remove_reader(listening)
        for relay in relays:
            relay.cancel()
        await asyncio.gather(*relays, return_exceptions=True)
        for accepted in relays.values():  # also of a relay that was ended before its first line
            accepted.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield counter
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@dataclass
class Passed:
    """Bytes on a socket, both ways, by what they were for.

    Fields:
        up, down: of the requests and answers by which messages went to the superlink, and came from it.
        requests: how many these were.
        idle: of all others: polls that brought nothing, heartbeats, the app itself.
    """

    up: int = 0
    down: int = 0
    requests: int = 0
    idle: int = 0


def passed(requests: Sequence[Request], start: float, end: float) -> Passed:
    """What passed from `start` to `end`, in seconds since the epoch.

    A poll that is followed by another request than the next poll has brought a message.
    """
    total = Passed()
    window = [one for one in requests if start <= one.at < end]
    beats = [one for one in window if one.name not in (POLL, *_CARRIES)]
    line = [one for one in window if one.name in (POLL, *_CARRIES)]
    total.idle = sum(one.up + one.down for one in beats)
    for one, after in zip(line, [*line[1:], None]):
        empty = one.name == POLL and (after is None or after.name in (POLL, "push-messages"))
        if empty:
            total.idle += one.up + one.down
            continue
        way = "up" if one.name.startswith("push") else "down"
        setattr(total, way, getattr(total, way) + one.up + one.down)
        total.requests += 1
    return total


def by_round(record: Mapping[str, Any], counters: Sequence[Counter]) -> list[dict[str, int]]:
    """Return what crossed in each round of a record: as counted, as bytes of parcels, as bytes on the sockets.

    Args:
        record: of `flower.server_app`.
        counters: of all nodes.

    Fields of a row: "round", "clients" (that were asked), "messages" (Flower's, both ways), "requests" (HTTP's), for
    "up" and "down" "_count", "_payload", "_wire", and "idle" (polls and heartbeats meanwhile).
    """
    columns, rows = record["columns"], []
    for t, one in enumerate(record["rounds"]):
        row = {"round": one["round"], "clients": len(one["clients"]) + len(one["dropped"]), "messages": one["messages"]}
        through = [passed(counter.requests, one["start"], one["end"]) for counter in counters]
        for way in ("up", "down"):
            row[f"{way}_count"] = columns[f"{way}_bytes"][t + 1] - columns[f"{way}_bytes"][t]
            row[f"{way}_payload"] = one[way]
            row[f"{way}_wire"] = sum(getattr(part, way) for part in through)
        row["requests"] = sum(part.requests for part in through)
        row["idle"] = sum(part.idle for part in through)
        rows.append(row)
    return rows
