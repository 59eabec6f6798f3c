"""What tells one value from another, whatever it is made of: behind fingerprints, and names of checkpoints."""

import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import PurePath
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from fedtheory.core import checks

_PLAIN = (int, float, complex, str, bytes, range, Fraction, Decimal, PurePath, Enum, torch.dtype, torch.device)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_FRAMEWORK = frozenset(vars(torch.nn.Module()))  # what every network has, whatever it computes
_LIBRARIES = ("torch", "transformers", "fedtheory")


def content_bytes(name: str, value: Any, unread: list[str], within: tuple[int, ...] = ()) -> Iterator[bytes]:
    """Yield bytes that differ where values do.

    Args:
        name: of the value, for the bytes and for `unread`.
        unread: takes the names of what cannot be looked into: of these only the type counts. Of a class, a module and
            a function that is not written in Python the name counts, of other functions all of `_written`, too; of a
            bound method what it is bound to.
        within: the ids of the objects around it, so that one which holds itself comes to an end.
    """
    value, kind = checks.plain(value), type(value).__qualname__
    if id(value) in within:
        yield f"{name}: {kind} again".encode()
        return
    within = (*within, id(value))
    if isinstance(value, torch.nn.Module):
        yield f"{name}: {_ADDRESS.sub('', repr(value))}".encode()
        value = _module(value)
    if isinstance(value, torch.Tensor):
        yield from _tensor_bytes(name, value, unread, within)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{name}: {value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, Mapping):
        yield f"{name}: {len(value)}".encode()
        for shown, key in sorted(((_ADDRESS.sub("", repr(key)), key) for key in value), key=lambda pair: pair[0]):
            yield from content_bytes(f"{name}[{shown}]", value[key], unread, within)
    elif isinstance(value, (tuple, list, np.ndarray)):
        yield f"{name}: {len(value)}".encode()
        for place, part in enumerate(value):
            yield from content_bytes(f"{name}[{place}]", part, unread, within)
    elif isinstance(value, (set, frozenset)):
        yield f"{name}: {len(value)}".encode()
        yield from sorted(digest(part).encode() for part in value)
    elif value is None or isinstance(value, _PLAIN):
        yield f"{name}={value!r}".encode()
    elif hasattr(value, "tocoo"):  # SciPy's sparse arrays
        flat: Any = value.tocoo()  # pyright: ignore[reportAttributeAccessIssue]
        yield from content_bytes(name, (kind, tuple(flat.shape), flat.row, flat.col, flat.data), unread, within)
    elif inspect.isroutine(value) or isinstance(value, (type, ModuleType)):
        yield from _named_bytes(name, value, unread, within)
    elif isinstance(value, partial):
        yield from content_bytes(name, (kind, value.func, value.args, value.keywords), unread, within)
    else:
        yield f"{name}: {kind}".encode()
        held = _attributes(value)
        if held is None:
            unread.append(name)
        for part in held or ():
            yield from content_bytes(f"{name}.{part}", getattr(value, part, None), unread, within)


def _tensor_bytes(name: str, value: torch.Tensor, unread: list[str], within: tuple[int, ...]) -> Iterator[bytes]:
    yield f"{name}: {value.dtype} {tuple(value.shape)}".encode()
    value = value.detach()
    if value.layout == torch.sparse_coo:
        value = value.coalesce()
        yield from content_bytes(f"{name}.indices", value.indices(), unread, within)
        value = value.values()
    elif value.layout != torch.strided:
        value = value.to_dense()
    if not value.is_meta:
        value = value.resolve_conj().resolve_neg()
        yield value.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def _named_bytes(name: str, value: Any, unread: list[str], within: tuple[int, ...]) -> Iterator[bytes]:
    """Of a function, a bound method, a class or a module."""
    kind = type(value).__qualname__
    if inspect.isfunction(value):
        yield f"{name}: {kind} {value.__qualname__}".encode()
        yield from content_bytes(f"{name}()", _written(value), unread, within)
    elif inspect.ismethod(value):
        ours = value.__func__.__module__.partition(".")[0] == "fedtheory"  # of one version, which the name tells
        function = value.__func__.__qualname__ if ours else value.__func__
        yield from content_bytes(name, (kind, function, value.__self__), unread, within)
    else:
        module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)
        yield f"{name}: {kind} {module}.{own}".encode()


def _module(module: torch.nn.Module) -> list[Any]:
    """What tells a network from another of the same repr: its tensors, what its parts hold, what their classes do."""
    held = [
        (
            name,
            type(part).__qualname__,
            {key: value for key, value in vars(part).items() if _tells(key, value, _theirs(type(part)))},
            [list(getattr(part, hooks).values()) for hooks in ("_forward_pre_hooks", "_forward_hooks")],
        )
        for name, part in module.named_modules()
    ]
    kinds = {base: None for part in module.modules() for base in type(part).__mro__ if _theirs(base)}
    trained = [name for name, own in module.named_parameters() if own.requires_grad]
    return [module.state_dict(), dict(module.named_buffers()), held, trained, list(map(_describe_class, kinds))]


def _theirs(kind: type) -> bool:
    """Whether a class is the user's: of a library's the name tells."""
    return kind is not object and kind.__module__.partition(".")[0] not in _LIBRARIES


def _tells(name: str, value: Any, theirs: bool = True) -> bool:
    """Whether an attribute of a network decides what it computes, as far as can be seen: not what it is made of."""
    kinds = (*_PLAIN, np.generic, np.ndarray, torch.Tensor, type, tuple, list, dict, set, frozenset)
    if not theirs:
        return not name.startswith("_") and (value is None or isinstance(value, kinds) or inspect.isroutine(value))
    kinds += (partial, property, staticmethod, classmethod)
    seen = value is None or isinstance(value, kinds) or inspect.isroutine(value) or hasattr(value, "__dict__")
    return seen and name not in _FRAMEWORK and not isinstance(value, torch.nn.Module)


def _describe_class(kind: type) -> list[tuple[str, Any]]:
    """A class's functions, those behind its properties, and its values."""
    plain = lambda one: one.__func__ if isinstance(one, (staticmethod, classmethod)) else one
    within = ((name, plain(one)) for name, one in sorted(vars(kind).items()) if _tells(name, one))
    return [(name, one.fget if isinstance(one, property) else one) for name, one in within if not _dunder(name)]


def _dunder(name: str) -> bool:
    """Of Python's own names: all but those that a network is called and made by."""
    return name.startswith("__") and name not in ("__init__", "__call__")


def describe_callable(function: Any, within: tuple[int, ...] = ()) -> Any:
    """Describe what tells a callable from another and stays while it is called: its lines and plain values.

    Of a method and of an object these are its class's; what else they hold may change from call to call.

    Args:
        within: the ids of the functions around it, so that one which captured itself comes to an end.
    """
    function = inspect.unwrap(function)
    if inspect.ismethod(function):
        function = function.__func__
    if id(function) in within:
        return function.__qualname__
    within = (*within, id(function))
    if inspect.isfunction(function):
        said, defaults, named, _ = _written(function)
        values = [*(defaults or ()), *(named or {}).values(), *map(_inside, function.__closure__ or ())]
        return [said, [_stays(value, within) for value in values]]
    if isinstance(function, partial):
        values = (*function.args, *function.keywords.values())
        return [describe_callable(function.func, within), [_stays(value, within) for value in values]]
    return function if inspect.isroutine(function) else [type(function).__qualname__, _describe_class(type(function))]


def _stays(value: Any, within: tuple[int, ...]) -> Any:
    """A value where it is plain, a tuple, a function or a problem; of others, which may change, the type."""
    if isinstance(value, tuple):
        return [_stays(part, within) for part in value]
    if inspect.isroutine(value) or isinstance(value, partial):
        return describe_callable(value, within)
    if callable(getattr(value, "fingerprint", None)) and not isinstance(value, type):
        return value.fingerprint()
    return value if value is None or isinstance(value, (*_PLAIN, np.generic)) else type(value).__qualname__


def _written(function: FunctionType) -> list[Any]:
    """What tells a function from another; its instructions are another version of Python's others.

    What it has captured counts where it is plain: an object there, as a counter, may change while a run goes on.
    """
    said, codes = [], [function.__code__]
    for code in codes:
        inner = [part for part in code.co_consts if isinstance(part, CodeType)]
        constants = [part for part in code.co_consts if part not in inner and part != function.__doc__]
        said.append((code.co_code, code.co_names, constants))
        codes += inner
    captured = [_content(cell) for cell in function.__closure__ or ()]
    return [said, function.__defaults__, function.__kwdefaults__, captured]


def _content(cell: CellType) -> Any:
    """What a function has captured, where it is plain."""
    held = _inside(cell)
    plain = isinstance(held, (*_PLAIN, torch.Tensor, np.ndarray, np.generic)) or inspect.isfunction(held)
    return held if plain or held is None else type(held).__qualname__


def _inside(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not there yet
        return None


def _attributes(value: Any) -> list[str] | None:
    """The names of what an object holds; None where it does not say."""
    if is_dataclass(value):
        return [field.name for field in fields(value)]
    slots: list[str] = []
    for kind in type(value).__mro__:
        given = vars(kind).get("__slots__", ())
        for name in (given,) if isinstance(given, str) else given:
            hidden = name.startswith("__") and not name.endswith("__")  # Python stores it under the class's name
            slots.append(f"_{kind.__name__.lstrip('_')}{name}" if hidden else name)
    named = getattr(value, "__dict__", None)
    return None if named is None and not slots else sorted({*(named or ()), *slots} - {"__dict__", "__weakref__"})


def digest(value: Any) -> str:
    """Return the SHA-256 over `content_bytes`, 16 hex digits."""
    sha = hashlib.sha256()
    for part in content_bytes("", value, []):
        sha.update(part)
    return sha.hexdigest()[:16]


def describe(value: Any) -> str:
    """Describe a value in words that tell it from others: its repr, and a digest of what this leaves out.

    That is a tensor's or an array's entries, a field that is not shown, and what an object without a repr holds.
    """
    said = repr(value)
    plain = _ADDRESS.sub("", said)
    if plain == said and _shown(value):
        return said
    return f"{plain} {digest(value)}"


def _shown(value: Any) -> bool:
    """Whether the repr tells all."""
    if isinstance(value, (tuple, list)):
        return all(map(_shown, value))
    if is_dataclass(value):
        return all(f.repr and _shown(getattr(value, f.name)) for f in fields(value))
    return value is None or isinstance(value, (*_PLAIN, np.generic))
