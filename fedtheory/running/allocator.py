"""What glibc does with memory that operations free; other allocators do not care."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from fedtheory.core.checks import free_bytes

_MAPPED = 31 * 2**20  # bytes: larger blocks glibc maps one by one, and gives back at once
_ROOM = 30
_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
_LARGEST = 2**31 - 1  # what mallopt takes is an int
_lock, _runs = threading.Lock(), 0  # that keep all blocks


@contextmanager
def keeping_freed(size: int) -> Iterator[bool]:
    """Have glibc keep what operations free, so that the next ones need not ask the system for it.

    It gives back whatever exceeds twice the largest block freed so far, of those below 32 MiB. By itself it comes to
    give back a network's activations after each step: hundreds of page faults a step and 10% of the time, more where a
    virtual machine's host takes idle pages away. A vector above `_MAPPED` is new memory at every operation: more than
    half of the time of a step of SGD on a language model. Then the process keeps all blocks below 2 GiB that its main
    thread frees until the last such run ends, where `_ROOM` times the vector is free: they leave holes, and the process
    takes a quarter more memory in `benchmarks/tried.py`. It needs glibc 2.35, and leaves alone what the environment
    says of malloc.

    Args:
        size: of the model's vector in bytes; 0 where it does not lie in this memory.

    Yields whether all blocks are kept.
    """
    global _runs
    torch.empty(_MAPPED, dtype=torch.uint8)
    glibc = _glibc() if size > _MAPPED and (free_bytes(torch.device("cpu")) or 0) > _ROOM * size else None
    if glibc is None:
        yield False
        return
    with _lock:
        kept = bool(glibc.mallopt(_MAP, _LARGEST))
        if kept:
            glibc.mallopt(_TRIM, -1)  # never
            _runs += 1
    try:
        yield kept
    finally:
        with _lock:
            _runs -= kept
            if kept and _runs == 0:
                glibc.mallopt(_TRIM, 2 * _MAPPED)
                glibc.mallopt(_MAP, _MAPPED)
                glibc.malloc_trim(0)


def _glibc() -> Any:
    """The C library, where it is glibc, and nobody has told it what to do."""
    told = "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ)
    try:
        library = None if told else ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows has none to name
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None
