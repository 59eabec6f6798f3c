"""Commands as processes of their own that need not import PyTorch: forks of the tests' process, or of a fork server."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from importlib import reload
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch


def fork(work: Callable[[], int | None], out: Path, err: Path) -> int:
    """The exit status of `work()` in a fork of this process, whose output goes to two files; SIGALRM's after 600 s."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(600)
            _say_in(out, err)
            sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
            status = work() or 0
        except SystemExit as stopped:
            status = int(stopped.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def command(*words: str, path: str = "", workers: str = "spawn") -> CompletedProcess:
    """`python -m fedtheory WORDS`, with a folder at the front of the path. The package is imported anew.

    Its workers start anew, as everywhere, or where they are "fork" need not import PyTorch either.
    """

    context = multiprocessing.get_context

    def work() -> int:
        reload(warnings)  # pytest records them
        warnings.resetwarnings()
        sys.path[:0] = [path] if path else []
        for name in [name for name in sys.modules if name.split(".")[0] == "fedtheory"]:
            del sys.modules[name]
        with patch("multiprocessing.get_context", lambda way: context(workers if way == "spawn" else way)):
            return main(list(words))

    with tempfile.TemporaryDirectory() as folder:
        out, err = (Path(folder) / name for name in ("out", "err"))
        return CompletedProcess(words, fork(work, out, err), out.read_text(), err.read_text())


def forks() -> BaseContext:
    """The context of a process that has imported the package and the tests' cases; all its children are forks of it.

    Elsewhere than on Linux, where libraries do not bear forks, each child starts anew.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver  # Windows has none

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fedtheory.papers.store", "shards_worker"])
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(path)):
        forkserver.ensure_running()
    return context


def background(work: Callable[..., int], said: Path, *given: object) -> BaseProcess:
    """Start a process that exits with the status of `work(*given)`, and says it in `said` (stderr) and `said`.out."""
    process = forks().Process(target=_work, args=(work, said, given))
    process.start()
    return process


def ended(process: BaseProcess, seconds: float = 180.0) -> int | None:
    """Its exit status, None where it had to be killed after so many seconds."""
    process.join(seconds)
    status = process.exitcode
    process.kill()
    process.join()
    return status


def main(words: list[str]) -> int:
    """`python -m fedtheory WORDS`."""
    from fedtheory import cli

    return cli.main(words)


def torchrun(processes: int, path: str, *program: str) -> int:
    """`python -m torch.distributed.run` on this machine, with folders for its processes to import from."""
    from torch.distributed.run import main

    os.setsid()  # a process group of its own
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    main(["--standalone", "--nproc-per-node", str(processes), *program])
    return 0


def _work(work: Callable[..., int], said: Path, given: tuple[object, ...]) -> None:
    _say_in(Path(f"{said}.out"), said)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is born ignoring it
    try:
        status = work(*given)
    finally:
        threading._shutdown()  # its threads end first, as where a process is not multiprocessing's: they share pipes
    sys.exit(status)


def _say_in(out: Path, err: Path) -> None:
    for stream, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
