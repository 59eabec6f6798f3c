"""What is counted on a socket, and the page that shows it."""

import gc
import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fedtheory import cli
from fedtheory.course.exercises import n13
from fedtheory.federation import reaper, unix_sockets, wire
from fedtheory.papers import EXTRAS
from fedtheory.papers.frontier import wire as item
from fedtheory.running import records

ROOT = Path(__file__).resolve().parent.parent
ASKED = [
    b"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/fleet/push-object HTTP/1.1\r\n\r\n" + b"x" * 70_000,
]
ANSWERS = [b"HTTP/1.1 200 OK\r\n\r\n" + b"y" * 200_000, b"HTTP/1.1 204 No Content\r\n\r\n"]


def serve(listening: socket.socket, got: list[bytes]) -> None:
    """A server that reads each request to its end, and answers with the next of ANSWERS."""
    with listening, listening.accept()[0] as end:
        for asked, answer in zip(ASKED, ANSWERS):
            got.append(received(end, len(asked)))
            end.sendall(answer)


def received(end: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += end.recv(1 << 16)
    return data


def listener(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(1000)
    return listening


def connected(path: Path) -> socket.socket:
    end = socket.socket(socket.AF_UNIX)
    try:
        end.settimeout(5)
        end.connect(str(path))
    except OSError:
        end.close()
        raise
    return end


def test_a_relay_counts_every_byte_and_changes_none(tmp_path):
    listening, got = listener(tmp_path / "link"), []
    server = threading.Thread(target=serve, args=(listening, got))
    server.start()
    with wire.counted(str(tmp_path / "relay"), str(tmp_path / "link")) as counter:
        with connected(tmp_path / "relay") as end:
            back = []
            for asked, answer in zip(ASKED, ANSWERS):
                end.sendall(asked)
                back.append(received(end, len(answer)))
        server.join()
    assert got == ASKED
    assert back == ANSWERS
    named = [one for one in counter.requests if one.name]
    assert [(one.name, one.up, one.down) for one in named] == [
        ("pull-messages", len(ASKED[0]), len(ANSWERS[0])),
        ("push-object", len(ASKED[1]), len(ANSWERS[1])),
    ]


def test_nobody_listens_behind_a_relay(tmp_path):
    """The connection is closed at once, again and again."""
    with wire.counted(str(tmp_path / "relay"), str(tmp_path / "link")) as counter:
        for _ in range(2):
            with connected(tmp_path / "relay") as end:
                assert end.recv(1) == b""
    assert counter.requests == []


@pytest.mark.parametrize("attempt", range(3))
def test_connections_made_while_it_ends_leave_nothing_behind(attempt, caplog, tmp_path):
    """Three clients connect without a pause while the block ends: no task is lost, no callback fails."""
    gc.freeze()  # what other tests left is not looked at below
    ends = []

    def connect() -> None:
        with suppress(OSError):  # of the first that is refused
            while True:
                ends.append(connected(tmp_path / "relay"))

    with listener(tmp_path / "link"):
        with wire.counted(str(tmp_path / "relay"), str(tmp_path / "link")) as counter:
            clients = [threading.Thread(target=connect) for _ in range(3)]
            for client in clients:
                client.start()
            while len(counter.requests) < 10:
                time.sleep(0.001)
        for client in clients:
            client.join()
    for end in ends:
        end.close()
    gc.collect()
    assert not caplog.records


MEETING = """
import socket

for _ in range(2):  # the second finds the place of the first
    with socket.create_server(("192.0.2.1", 80)) as server, socket.create_connection(("192.0.2.1", 80)) as near:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        near.sendall(b"met")
        with server.accept()[0] as far:
            print(far.recv(3).decode())
        try:
            socket.create_server(("192.0.2.1", 80))
        except OSError:
            print("taken")
try:
    socket.create_connection(("192.0.2.1", 81))
except ConnectionRefusedError:
    print("refused")
"""


def test_processes_with_a_door_meet_in_its_folder(tmp_path):
    """Without it they cannot listen: its address is nobody's."""
    shutil.copyfile(unix_sockets.__file__, tmp_path / "sitecustomize.py")
    call = [sys.executable, "-c", MEETING]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    met = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert met.stdout.split() == ["met", "taken", "met", "taken", "refused"], met.stderr
    assert (tmp_path / "80").is_socket()
    (tmp_path / "sitecustomize.py").unlink()
    alone = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert "OSError" in alone.stderr


def asked(at: float, name: str, up: int = 10, down: int = 1) -> wire.Request:
    return wire.Request(at, name, up, down)


def test_polls_that_bring_nothing_are_idle():
    """A poll counts where something other than a poll or an upload follows; what is outside of the round does not."""
    requests = [
        asked(0, "pull-messages"),
        asked(1, "pull-messages", 100),
        asked(2, "pull-object", 1000),
        asked(3, "confirm-message-received", 10_000),
        asked(4, "send-node-heartbeat"),
        asked(5, "push-messages", 200),
        asked(6, "push-object", 2000),
        asked(7, "pull-messages"),
        asked(8, "pull-object", 10**6),
    ]
    assert wire.passed(requests, 0, 7.5) == wire.Passed(up=2202, down=11103, requests=5, idle=33)


def test_rows_of_a_record():
    record = {
        "columns": {"up_bytes": [0, 8, 24], "down_bytes": [0, 4, 8]},
        "rounds": [
            {
                "round": t,
                "start": t,
                "end": t + 1,
                "up": 8 * (t + 1),
                "down": 4,
                "messages": 2,
                "clients": [0],
                "dropped": {},
            }
            for t in (0, 1)
        ],
    }
    counters = [
        wire.Counter([asked(0.5, "push-object"), asked(1.5, "pull-object")]),
        wire.Counter([asked(1.2, "x")]),
    ]
    first, second = wire.by_round(record, counters)
    assert (first["up_count"], first["up_payload"], first["up_wire"], first["down_wire"]) == (8, 8, 11, 0)
    assert (second["up_count"], second["up_payload"], second["up_wire"], second["down_wire"]) == (16, 16, 0, 11)
    assert (first["idle"], second["idle"], second["clients"]) == (0, 11, 1)


def test_processes_are_known_by_their_folder(tmp_path):
    assert reaper.find_processes(tmp_path) == []
    reaper.kill_processes(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("FedAvg quadratic --nodes 0", "nodes=0"),
        ("FedAvg quadratic --nodes 1000", "nodes=1000"),
        ("FedAvg quadratic --rounds 0", "rounds=0"),
        ("FedAvg quadratic --sampled 1000", "sampled=1000"),
        ("MeZO quadratic", "algorithm='MeZO'"),
        ("FedAvg quadratic --rank 3", "rank=3"),
    ],
)
def test_what_cannot_be_federated_is_refused(words, said, capsys):
    assert cli.main(["federate", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Fix: " in error
    assert len(error.splitlines()) == 1


@pytest.mark.skipif(importlib.util.find_spec("flwr") is not None, reason="it is installed here")
def test_without_flower(capsys):
    """The command and the import say how to get it."""
    assert cli.main(["federate", "FedAvg", "quadratic"]) == 2
    assert "make flower" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError, match=r"^flower: it is not installed here. Fix: make flower"):
        importlib.import_module("fedtheory.federation.flower")


def test_every_app_of_the_item_makes_its_method():
    """Its source names all that it needs, and nothing else."""
    for algorithm in item.METHODS.values():
        found: dict = {}
        lines = item.app(algorithm).splitlines()
        exec("\n".join(line for line in lines if line.startswith(("from fedtheory import", "algorithm ="))), found)
        assert found["algorithm"] == algorithm


def test_the_page_shows_the_record():
    """The table of docs/federation.md is the committed one; its payload is the count, its bits those of `run`."""
    table = records.load(ROOT / "figures", "frontier/wire")["table"]
    for row in table:
        assert row["count"] == row["payload"] == row["counted by run"] < row["wire"]
        assert row["same bits"] == 1
    assert {row["method"] for row in table} == set(item.METHODS)
    page = (ROOT / "docs" / "federation.md").read_text()
    assert lines(table) in page
    assert EXTRAS["frontier/wire"].draw(table).axes


def test_notebook_13_quotes_the_record():
    """In its last exercise, whose weak answers the package knows."""
    table = records.load(ROOT / "figures", "frontier/wire")["table"]
    short, long = ({row["method"]: row for row in table if row["way"] == "up"}[name] for name in ("DeComFL", "FedAvg"))
    text = " ".join((ROOT / "notebooks" / "13_federation.py").read_text().replace("\n#", "\n").split())
    assert f"carries {short['wire']:,.0f} bytes where you count {short['count']:.0f}." in text
    assert f"The other {short['over']:,.0f} are Flower's" in text
    assert f"FedAvg's {long['count']:,.0f} bytes carry them too" in text
    weak = " ".join(n13.EXERCISES[4].weak.values())
    assert f"{short['over'] / short['wire']:.0%}".replace("%", " percent of the bill") in weak
    assert f"for FedAvg it is {long['wire'] / long['count']:.1f} times" in weak


def lines(table: records.Table) -> str:
    """The rows of the page's table."""
    of = {(row["method"], row["way"]): row for row in table}
    text = ""
    for name in dict.fromkeys(row["method"] for row in table):
        cells = [
            f"{of[name, way][what]:,.0f}" for way in ("up", "down") for what in ("count", "payload", "wire", "over")
        ]
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text
