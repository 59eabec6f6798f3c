"""How the processes of a sharded run end when one of them dies: soon, and with one line that says which.

torchrun asks the others to end (SIGTERM) as soon as it sees one fail, and kills them after half a minute. They are
given the time to say why. Nothing but the standard library is imported here: it is in place before PyTorch is.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

AGAIN = "start the same command again: with a checkpoint it goes on from there"
_SECONDS = 8.0  # after which a process that was asked to end does so, whatever it computes or waits for

active = False  # whether this process ends in one line
mark: Callable[[], object] = lambda: None  # tells the others, once they have met, that this one is left
who: Callable[[], str] | None = None  # what is to be said; "" where another process says it; None before they have met
_speaking = threading.Lock()


def launched() -> bool:
    """Return whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def watch() -> None:
    """From here on, where another of torchrun's processes dies, this one ends; one of those left says which it was.

    For the main thread of a program that torchrun starts; elsewhere nothing happens.
    """
    global active
    if active or not launched() or threading.current_thread() is not threading.main_thread():
        return
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # the thread hears of it, whatever this one waits for
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(told,), daemon=True).start()
    active = True


def _listen(told: int) -> None:
    while signal.SIGTERM not in os.read(told, 1):
        pass
    with suppress(Exception):  # the store may be gone
        mark()
    time.sleep(_SECONDS)
    leave()


def leave() -> NoReturn:
    """End at once, with the line if it is this process's to say: a connection to one that is gone is not waited for."""
    with _speaking:
        try:
            text = _before_they_met() if who is None else who()
        except Exception as error:  # the store may be gone with the process that served it
            text = f"group: another process of the run is gone, and who it was cannot be told ({error}). Fix: {AGAIN}"
        if text:
            print(f"fedtheory: {text}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(1)


def _before_they_met() -> str:
    """The first process of a machine that comes to it says it."""
    name = "-".join(os.environ.get(key, "") for key in ("TORCHELASTIC_RUN_ID", "MASTER_PORT"))
    try:
        (Path(tempfile.gettempdir()) / f".fedtheory-ended-{os.getppid()}-{name}").open("x").close()
    except FileExistsError:
        return ""
    return f"group: another process of the run is gone before all had met, so the others end. Fix: {AGAIN}"
