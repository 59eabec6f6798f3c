"""Have a federation's processes meet at Unix sockets in a private folder instead of at TCP ports.

`local` copies this file as `sitecustomize.py` into a folder of mode 0700 and puts that folder first on PYTHONPATH. So
each Python process of the federation runs it first, and so does each process that those start. A port of HOST is then
a socket in that folder, which no other account can enter. No machine has the address HOST (RFC 5737). A process that
did not run this file can therefore neither listen nor connect there.

Only the standard library is imported.
"""

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

HOST = "192.0.2.1"


def socket_path(folder: Path, port: int) -> str:
    """The path of the Unix socket that stands for a port."""
    return str(folder / str(port))


def is_listening(path: str) -> bool:
    """Whether a process listens at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(path)
        return True
    return False


def redirect_ports(folder: Path) -> None:
    """From here on, have this process use the folder's Unix sockets for the ports of HOST."""
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # its sockets are not Python's: uvicorn takes asyncio's
    plain = socket.socket
    bind, connect, setsockopt = plain.bind, plain.connect, plain.setsockopt

    def moved(end: socket.socket, address: Any) -> Any:
        """The address to use; a socket of HOST becomes a Unix socket."""
        if end.family != socket.AF_INET or address[0] != HOST:
            return address
        timeout = end.gettimeout()
        os.close(end.detach())
        plain.__init__(end, socket.AF_UNIX)
        end.settimeout(timeout)
        return socket_path(folder, address[1])

    def bind_there(end: socket.socket, address: Any) -> None:
        there = moved(end, address)
        if there is not address and not is_listening(there):  # of a process that is gone
            with suppress(FileNotFoundError):
                os.unlink(there)
        bind(end, there)

    def connect_there(end: socket.socket, address: Any) -> None:
        try:
            connect(end, moved(end, address))
        except FileNotFoundError as error:
            raise ConnectionRefusedError(error.errno, error.strerror) from error

    def set_there(end: socket.socket, level: int, *option: Any) -> None:
        if end.family != socket.AF_UNIX or level != socket.IPPROTO_TCP:
            setsockopt(end, level, *option)

    replaced: Any = plain
    replaced.bind, replaced.connect, replaced.setsockopt = bind_there, connect_there, set_there


if __name__ == "sitecustomize":
    redirect_ports(Path(__file__).parent)
