"""The command line in a fork of the tests' process: a process of its own, which need not import PyTorch."""

import os
import sys
import tempfile
import traceback
import warnings
from importlib import reload
from pathlib import Path
from subprocess import CompletedProcess


def command(*words: str, path: str = "") -> CompletedProcess:
    """`python -m fedtheory WORDS`, with a folder at the front of the path. The package is imported anew."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = (Path(folder) / name for name in ("out", "err"))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for stream, file in ((1, out), (2, err)):
                    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
                sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
                reload(warnings)  # pytest records them
                warnings.resetwarnings()
                sys.path[:0] = [path] if path else []
                for name in [name for name in sys.modules if name.split(".")[0] == "fedtheory"]:
                    del sys.modules[name]
                from fedtheory.cli import main

                status = main(words)
            except SystemExit as stopped:
                status = int(stopped.code or 0)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return CompletedProcess(words, code, out.read_text(), err.read_text())
