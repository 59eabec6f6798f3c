"""Every test runs on one thread, and every property-based test draws the same examples each time.

The files that take longest come first, so that no worker waits for another at the end (`make test` keeps this order).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("laws", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("laws")

FIRST = ("test_notebooks.py", "test_theory_decomfl.py", "test_theory_fedsub.py", "test_theory_ssf.py", "test_robust.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))
