"""Every test runs on one thread, and every property-based test draws the same examples each time.

The files that take longest come first, then the notebooks (nbval's), then the many short files, so that no worker
waits long for the other at the end (`make test` keeps this order).
"""

import gc
import importlib.util
import os
import sys
from concurrent.futures import Executor, Future
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("FEDTHEORY_ROOT", str(Path(__file__).resolve().parent.parent))

import kernels
import pytest
from hypothesis import settings

settings.register_profile("laws", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("laws")
gc.set_threshold(100_000, 20, 10)  # sympy and the tests hold many objects, and a collection looks at each

LONG = (  # the first take most
    "test_quiz.py", "test_theory_fedsub.py", "test_theory_ssf.py", "test_shards.py", "test_cli.py",
    "test_notebooks.py", "test_theory_mud.py", "test_theory_decomfl.py", "test_theory_flss.py", "test_laws.py",
    "test_house.py", "test_styles.py", "test_robust.py", "test_decomfl.py", "test_halves.py", "test_moving.py",
)  # fmt: skip


def pytest_configure(config):
    if sys.platform == "linux" and config.getoption("nbval", False):
        forks = kernels.forked()
        forks.__enter__()
        config.add_cleanup(lambda: forks.__exit__(None, None, None))


def pytest_collection_modifyitems(items):
    import torch  # not where pytest only hands out tests

    torch.set_num_threads(1)
    order = {name: place for place, name in enumerate(LONG)}
    if importlib.util.find_spec("transformers") is None:
        for item in items:
            if item.path.name == "09_language_models.ipynb" or item.name == "test_exercises[09_language_models]":
                item.add_marker(pytest.mark.skip(reason="needs the extra: pip install 'fedtheory[llm]'"))
    items.sort(key=lambda item: order.get(item.path.name, len(LONG) + (item.path.suffix != ".ipynb")))


def pytest_collection_finish():
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.collect()
    gc.freeze()  # or the end of a process looks at each again, several times


class Inline(Executor):
    """Runs what it is given at once, in this process."""

    _processes = None

    def __init__(self, *given, **options):
        pass

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture
def alone(monkeypatch):
    """No other process writes: a file that is damaged is not looked at again after a pause."""
    from fedtheory.running import records

    monkeypatch.setattr(records, "_PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def inline(monkeypatch):
    """Runs are made in this process; what is made is listed."""
    from fedtheory.papers import store

    made = []
    execute = store.execute
    monkeypatch.setattr(store, "ProcessPoolExecutor", Inline)
    monkeypatch.setattr(store, "execute", lambda *given: made.append(given[0]) or execute(*given))
    return made
