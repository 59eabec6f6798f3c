"""Ends the processes of a federation when the process that started them is gone, whatever ended it.

`local` runs this file by its path, as a process of its own. It is given the federation's folder and the folder of its
sockets, which it removes, and holds the end of a pipe. Only the standard library is imported.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path


def find_processes(folder: Path) -> list[int]:
    """Processes that have this folder's `flower` as Flower's home, where the system has /proc."""
    mark, found = f"FLWR_HOME={folder / 'flower'}\0".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def kill_processes(folder: Path) -> None:
    """Kill them, and those that they have started meanwhile."""
    while left := find_processes(folder):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    os.setsid()  # no Ctrl-C of a terminal
    sys.stdin.read()  # until the pipe is closed
    kill_processes(Path(sys.argv[1]))
    shutil.rmtree(sys.argv[2], ignore_errors=True)
