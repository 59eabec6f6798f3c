"""What tells one value from another, whatever it is made of: behind fingerprints, and names of checkpoints."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np
import torch

from fedtheory.core import checks

_PLAIN = (int, float, complex, str, bytes, range, Fraction, Decimal, PurePath, torch.dtype, torch.device)


def parts(name: str, value: Any, unread: list[str]) -> Iterator[bytes]:
    """Bytes that differ where values do.

    Args:
        name: of the value, for the bytes and for `unread`.
        unread: takes the names of what cannot be looked into. Of these, and of functions and classes, only the type
            counts.
    """
    value = checks.plain(value)
    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    if isinstance(value, torch.Tensor):
        yield f"{name}: {value.dtype} {tuple(value.shape)}".encode()
        if value.layout == torch.sparse_coo:
            value = value.detach().coalesce()
            yield from parts(f"{name}.indices", value.indices(), unread)
            value = value.values()
        elif value.layout != torch.strided:
            value = value.to_dense()
        if not value.is_meta:
            yield value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{name}: {value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from parts(f"{name}[{key!r}]", value[key], unread)
    elif isinstance(value, (tuple, list, np.ndarray)):
        yield f"{name}: {len(value)}".encode()
        for place, part in enumerate(value):
            yield from parts(f"{name}[{place}]", part, unread)
    elif isinstance(value, (set, frozenset)):
        yield f"{name}: {len(value)}".encode()
        yield from sorted(digest(part).encode() for part in value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from parts(f"{name}.{field.name}", getattr(value, field.name), unread)
    elif value is None or isinstance(value, _PLAIN):
        yield f"{name}={value!r}".encode()
    elif hasattr(value, "tocoo"):  # SciPy's sparse arrays
        flat: Any = value.tocoo()  # pyright: ignore[reportAttributeAccessIssue]
        yield from parts(name, (type(value).__name__, tuple(flat.shape), flat.row, flat.col, flat.data), unread)
    else:
        if not callable(value):
            unread.append(name)
        yield f"{name}: {type(value).__qualname__}".encode()


def digest(value: Any) -> str:
    """SHA-256 over `parts`, 16 hex digits."""
    sha = hashlib.sha256()
    for part in parts("", value, []):
        sha.update(part)
    return sha.hexdigest()[:16]


def told(value: Any) -> str:
    """A value in words that tell it from others: its repr, and a digest of what this leaves out.

    That is a tensor's or an array's entries, a field that is not shown, and what an object without a repr holds.
    """
    said = repr(value)
    plain = re.sub(r" at 0x[0-9a-f]+", "", said)
    if plain == said and _shown(value):
        return said
    held = value if is_dataclass(value) else getattr(value, "__dict__", None)
    return f"{plain} {digest(held)}"


def _shown(value: Any) -> bool:
    """Whether the repr tells all."""
    if isinstance(value, (tuple, list)):
        return all(map(_shown, value))
    if is_dataclass(value):
        return all(f.repr and _shown(getattr(value, f.name)) for f in fields(value))
    return value is None or isinstance(value, (*_PLAIN, np.generic))
