"""What glibc does with memory that operations free; other allocators do not care."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from fedtheory.core.checks import free_bytes

MAPPED = 31 * 2**20  # bytes: larger blocks glibc maps one by one, and gives back at once
ROOM = 30
_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
_LARGEST = 2**30  # blocks that are kept; what mallopt takes is an int


@contextmanager
def keeping_freed(size: int) -> Iterator[None]:
    """Have glibc keep what operations free, so that the next ones need not ask the system for it.

    It gives back whatever exceeds twice the largest block freed so far, of those below 32 MiB. By itself it comes to
    give back a network's activations after each step: hundreds of page faults a step and 10% of the time, more where a
    virtual machine's host takes idle pages away. A vector above `MAPPED` is new memory at every operation: more than
    half of the time of a step of SGD on a language model. Then all blocks are kept until the end, where `ROOM` times
    the vector is free: the holes between them take up to half as much memory again.

    Args:
        size: of the model's vector in bytes.
    """
    torch.empty(MAPPED, dtype=torch.uint8)
    free = free_bytes(torch.device("cpu")) if size > MAPPED else None
    glibc = _glibc() if free is not None and free > ROOM * size else None
    if glibc is None:
        yield
        return
    glibc.mallopt(_TRIM, -1)  # never
    glibc.mallopt(_MAP, _LARGEST)
    try:
        yield
    finally:
        glibc.mallopt(_TRIM, 2 * MAPPED)
        glibc.mallopt(_MAP, MAPPED)
        glibc.malloc_trim(0)


def _glibc() -> Any:
    """The C library, where it is glibc."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows has none to name
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None
