"""Kernels for nbval that are forks of one process, so that PyTorch is imported once and not for each notebook.

A kernel starts with these modules imported and nothing else done: each notebook still has a process of its own. Unlike
those of `forked`, it is no child of multiprocessing, which would change how it starts workers.
"""

import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from select import select
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

ADDRESS = "FEDTHEORY_KERNELS"  # the variable that tells pytest's workers where the process listens
WARM = (
    "ipykernel.kernelapp", "fedtheory.course.exercises", "fedtheory.course.moving", "fedtheory.papers",
    "torch._dynamo",  # with sympy; parts of PyTorch import it when they are first used
)  # fmt: skip


class Fork:
    """What jupyter_client uses of a `Popen`, for a kernel that is another process's child. Its status is unknown."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return 0

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def reap(*_: object) -> None:
    """Wait for the kernels that have ended; their CPU time then counts."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def serve(listener: socket.socket) -> None:
    """Fork a kernel for each caller, until stdin closes."""
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel and matplotlib read them when they are imported
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    signal.signal(signal.SIGCHLD, reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(100_000, 20, 10)  # as in the tests' own process
    while listener in select([sys.stdin, listener], [], [])[0]:
        for name in WARM:  # at the first call
            import_module(name)
        gc.freeze()
        with listener.accept()[0] as caller:
            asked = json.loads(caller.makefile().readline())
            if os.fork() == 0:
                os.setsid()  # jupyter_client signals the kernel's group
                caller.sendall(f"{os.getpid()}\n".encode())
                listener.close()
                break
    else:
        return
    run(**asked)


def run(command: Sequence[str], cwd: str, env: dict[str, str]) -> None:
    """Become what `python -m ipykernel_launcher ...` is."""
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(command[command.index("-m") + 1 :])
    import_module("ipykernel.kernelapp").launch_new_instance()


@contextmanager
def forked() -> Iterator[None]:
    """In here jupyter_client starts kernels of this Python as forks; in pytest's workers, too."""
    from jupyter_client.provisioning import local_provisioner

    started = local_provisioner.launch_kernel

    def launch(command: list[str], *, cwd: str | None = None, env: dict[str, str] | None = None, **how: Any) -> Any:
        if command[:3] != [sys.executable, "-m", "ipykernel_launcher"]:
            return started(command, cwd=cwd, env=env, **how)
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(os.environ[ADDRESS])
            asked = {"command": command, "cwd": str(cwd or os.getcwd()), "env": env or dict(os.environ)}
            server.sendall(json.dumps(asked).encode() + b"\n")
            return Fork(int(server.makefile().readline()))

    with patch.object(local_provisioner, "launch_kernel", launch), server():
        yield


@contextmanager
def server() -> Iterator[None]:
    """The process, if none runs yet. It listens at once and imports at the first call."""
    if ADDRESS in os.environ:
        yield
        return
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/kernels")
        listener.listen()
        command = [sys.executable, __file__, str(listener.fileno())]
        process = Popen(command, stdin=PIPE, pass_fds=[listener.fileno()])
        with process, patch.dict(os.environ, {ADDRESS: f"{folder}/kernels"}):
            yield


if __name__ == "__main__":
    del sys.path[0]  # this folder, which is not on a kernel's path
    serve(socket.socket(fileno=int(sys.argv[1])))
