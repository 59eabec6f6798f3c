"""A federation on one machine: superlink, supernodes and an app, each a process of its own, on Unix sockets (`door`).

What is started here is Flower's own: `flower-superlink`, `flower-supernode`, `flwr run`. All of it ends with the block,
whatever happens in it, and with the process that started it, however that ends (`reaper`).
"""

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.files import open_own, write_atomic
from fedtheory.federation import reaper, unix_sockets, wire

_LINK, _RELAYS, _NODES = 10_000, 20_000, 40_000  # ports of `unix_sockets.HOST`, the latter two for node 0
_WAIT = 60.0  # seconds for a process to come up: imports take long on a machine that is busy
_GRACE = 8.0  # seconds to end in, before a process is killed
_LONGEST = 103  # bytes of a Unix socket's path that every system takes
APP = "fedtheory_app"
_PROJECT = f"""[project]
name = "federation"
version = "1.0.0"
description = "An algorithm and a problem of fedtheory"
license = "MIT"
dependencies = []

[tool.flwr.app]
publisher = "fedtheory"

[tool.flwr.app.components]
serverapp = "{APP}:server"
clientapp = "{APP}:client"
"""


def clients_of(node: int, nodes: int, n: int) -> list[int]:
    """The clients that a node holds where n of them are dealt out to the nodes in turn."""
    return list(range(node, n, nodes))


@dataclass
class Federation:
    """Processes that run.

    Fields:
        folder: of logs, of what the nodes keep, and of Flower's own files.
        door: private folder of the Unix sockets.
        held: for each node the clients that it holds.
        counters: for each node the relay that its connection passes.
        processes: by name, "link", "node-0", ...
    """

    folder: Path
    door: Path
    held: Sequence[Sequence[int]]
    counters: list[wire.Counter] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_node(self, node: int) -> None:
        """Start a supernode. What its clients keep lies in a folder, so that it may be killed and started again."""
        kept = self.folder / f"node-{node}"
        kept.mkdir(exist_ok=True)
        config = f'clients="{",".join(map(str, self.held[node]))}" folder="{kept}"'
        command = [_tool("flower-supernode"), "--insecure", "--superlink", f"{unix_sockets.HOST}:{_RELAYS + node}"]
        command += ["--host", unix_sockets.HOST, "--port", str(_NODES + node), "--node-config", config]
        self._start(f"node-{node}", command)

    def kill_node(self, node: int) -> None:
        """Kill a supernode and the client that it runs, at once (SIGKILL)."""
        _end(self.processes.pop(f"node-{node}"), signal.SIGKILL)

    def play(self, source: str, seconds: float) -> dict[str, Any]:
        """Run an app: a Python module with `server` and `client`. Returns the record that its server saved.

        Args:
            source: of the module. Its server app is told to save to the folder `os.environ["FEDTHEORY_SAVE"]`.
            seconds: after which it is given up.

        Raises ValueError where there is no record in time, or the server app failed; it names the log.
        """
        saved = self.folder / "saved"
        shutil.rmtree(saved, ignore_errors=True)
        app = self.folder / "app"
        app.mkdir(exist_ok=True)
        write_atomic(app / "pyproject.toml", _PROJECT.encode())
        write_atomic(app / f"{APP}.py", source.encode())
        said = subprocess.run(
            [_tool("flwr"), "run", str(app), "here"],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_WAIT,
        )
        if said.returncode:
            self._failed("flwr run", said.stdout + said.stderr)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (saved / "record.json").exists():
                return json.loads((saved / "record.json").read_text())
            if (saved / "failed.txt").exists():
                self._failed("the server app", (saved / "failed.txt").read_text())
            self._look()
            time.sleep(0.1)
        self._failed("the run", f"no result after {seconds:g} s")
        raise AssertionError

    @property
    def environment(self) -> dict[str, str]:
        """Of every process: the door, Flower's files in the folder, nothing sent home, one thread each, no proxy."""
        first = {"PATH": Path(sys.executable).parent, "PYTHONPATH": self.door}  # Flower starts its tools by name
        own = {
            **{name: os.pathsep.join(filter(None, (str(at), os.environ.get(name)))) for name, at in first.items()},
            "FLWR_HOME": str(self.folder / "flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
            "FEDTHEORY_SAVE": str(self.folder / "saved"),
            "OMP_NUM_THREADS": "1",
            "NO_PROXY": unix_sockets.HOST,
            "no_proxy": unix_sockets.HOST,
        }
        return os.environ | own

    def start_link(self) -> None:
        """Start the superlink, and wait until it listens."""
        home = self.folder / "flower"
        home.mkdir(exist_ok=True)
        address = f"{unix_sockets.HOST}:{_LINK}"
        settings = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{address}"\ninsecure = true\n'
        write_atomic(home / "config.toml", settings.encode())
        command = [_tool("flower-superlink"), "--insecure", "--host", unix_sockets.HOST, "--port", str(_LINK)]
        self._start("link", [*command, "--disable-runtime-dependency-installation"])
        end = time.monotonic() + _WAIT
        while time.monotonic() < end:
            if unix_sockets.is_listening(unix_sockets.socket_path(self.door, _LINK)):
                return
            self._look()
            time.sleep(0.1)
        self._failed("the superlink", f"it does not listen after {_WAIT:g} s")

    def end(self) -> None:
        """End all processes: nodes first, so that they can take their leave of the superlink, and whatever is left."""
        for name in reversed(list(self.processes)):
            _end(self.processes.pop(name), signal.SIGTERM)
        reaper.kill_processes(self.folder)

    def log(self, name: str) -> str:
        """What a process has said so far. The server app's lines are in `saved/log.txt`."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, command: list[str]) -> None:
        with os.fdopen(open_own(self.folder / f"{name}.log", os.O_WRONLY | os.O_APPEND), "ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )

    def _look(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is not None:
                self._failed(name, self.log(name))

    def _failed(self, what: str, said: str) -> None:
        lines = [line for line in said.strip().splitlines() if line.strip()]
        checks.reject("federation", " ".join(lines[-1:]), f"{what} to run", f"read the logs in {self.folder}")


def _tool(name: str) -> str:
    """A command of Flower, from the environment of this Python. Raises ValueError where it is not installed."""
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if path is None:
        checks.reject(
            "flower", name, "Flower's commands beside this Python", "make flower, then use .venv-flower/bin/python"
        )
    return str(path)


def _end(process: subprocess.Popen[bytes], first: signal.Signals) -> None:
    """End a process with all that it started: they are one session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, first)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def federation(held: Sequence[Sequence[int]], folder: Path) -> Iterator[Federation]:
    """Start a superlink and one supernode for each entry of `held`, each behind a relay that counts (`wire`).

    Args:
        held: for each node the clients that it holds.
        folder: new or empty, and writable for you alone; it holds the logs, and what the nodes keep.
    """
    with ExitStack() as stack:
        private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedtheory-door-")))  # of mode 0700
        here = Federation(folder, private, held)
        link = unix_sockets.socket_path(private, _LINK)
        if len(os.fsencode(link)) > _LONGEST:
            expected = f"a folder whose name has at most {_LONGEST - len('/10000')} bytes"
            checks.reject("TMPDIR", str(private), expected, "set TMPDIR=/tmp")
        shutil.copyfile(unix_sockets.__file__, private / "sitecustomize.py")
        guard = [sys.executable, reaper.__file__, str(folder), str(private)]
        stack.enter_context(subprocess.Popen(guard, stdin=subprocess.PIPE))  # its end of the pipe is closed at the end
        relays = [wire.counted(unix_sockets.socket_path(private, _RELAYS + node), link) for node in range(len(held))]
        here.counters = [stack.enter_context(relay) for relay in relays]
        stack.callback(here.end)
        here.start_link()
        for node in range(len(held)):
            here.start_node(node)
        yield here


def models(folder: Path) -> torch.Tensor:
    """Read the models that a server app saved in a federation's folder: (rounds + 1, d), the start first."""
    saved = folder / "saved"
    record = json.loads((saved / "record.json").read_text())["models"]
    kind = getattr(torch, record["dtype"].removeprefix("torch."))
    data = torch.frombuffer(bytearray((saved / "models.bin").read_bytes()), dtype=torch.uint8)
    return data.view(kind).view(record["shape"])


def app(words: Mapping[str, Any], build: str) -> str:
    """The source of an app whose algorithm and problem a function makes of plain words.

    Args:
        words: what is passed to it, plain JSON.
        build: where it is, as in "package.module.function"; it returns algorithm, problem, options of the server app.
    """
    module, name = build.rsplit(".", 1)
    return f"""import json
import os

from fedtheory.federation import flower
from {module} import {name}

algorithm, problem, options = {name}(json.loads({json.dumps(json.dumps(words))}))
server = flower.server_app(algorithm, problem, save=os.environ["FEDTHEORY_SAVE"], **options)
client = flower.client_app(algorithm, problem, seed=options["seed"], rounds=options["rounds"])
"""


def version() -> str:
    """Of Flower, here."""
    return importlib.metadata.version("flwr")
