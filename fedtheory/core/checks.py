"""Argument checks. Every message is one line that names the argument, its value, what was expected, and one fix.

A number of NumPy's counts as the Python number that it holds, and is turned into it, so that what is made of it (names
of runs, keys, JSON) does not hang on where it came from. A bool is no number; neither is an array or a tensor.
"""

from __future__ import annotations

import collections.abc as abc
import difflib
import importlib
import inspect
import math
import os
import re
import reprlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, wraps
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import numpy as np
    import torch

F = TypeVar("F", bound=Callable[..., Any])


class _Never:
    """In the place of a package's types while nobody has imported it: no value is of one."""


class _Later:
    """A package that is imported when it is first used: the command line checks its words without PyTorch."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if self._name not in sys.modules and name in ("Tensor", "ndarray", "generic", "floating"):
            return _Never
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found


if not TYPE_CHECKING:
    np, torch = _Later("numpy"), _Later("torch")

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_LONG = 120  # characters of a value that a message shows
MOST = 10**9  # of anything that is counted
MOST_PER_ROUND = 10**6  # of what a round does one after the other, or holds side by side
MOST_ROUNDS = 10**8  # half an hour at 20 microseconds, and no round is that fast


def show(value: Any) -> str:
    """Show any value in one line of at most `_LONG` characters."""
    try:
        if isinstance(value, int) and value.bit_length() > 400:  # Python refuses to write out very long ones
            text = f"{'-' if value < 0 else ''}10**{int(value.bit_length() * math.log10(2))} or more"
            return text.replace("or more", "or less") if value < 0 else text
        if isinstance(value, (torch.Tensor, np.ndarray)) and (math.prod(value.shape) > 8 or _holds_nothing(value)):
            return f"{type(value).__name__} of shape {tuple(value.shape)}, {value.dtype}"
        text = reprlib.repr(value) if isinstance(value, (list, tuple, dict, set)) and len(value) > 20 else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def show_text(text: str) -> str:
    """Show words as they are, cut to one line of at most `_LONG` characters."""
    text = " ".join(text.split())
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def _holds_nothing(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_meta or value.layout != torch.strided)


def reject(name: str, value: Any, expected: str, fix: str, error: type[Exception] = ValueError) -> NoReturn:
    """Raise `error` with the four parts in one sentence each."""
    raise error(" ".join(f"{name}={show(value)}: expected {expected}. Fix: {fix}".splitlines()))


def plain(value: Any) -> Any:
    """Turn NumPy's scalars into Python's, also within tuples; anything else stays as it is."""
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else value.item()
    if type(value) is tuple and any(plain(part) is not part for part in value):
        return tuple(map(plain, value))
    return value


# Types, from annotations.

_FIXES = {  # by the name of a type: what to pass
    "Algorithm": "pass for example FedAvg(lr=0.1, local_steps=5)",
    "Problem": "pass for example Quadratic.random(10, 5, Key(0))",
    "Key": "pass Key(0)",
    "Layout": "pass Layout.single(d)",
    "Projection": "pass Coordinate(r), Spherical(r) or Gaussian(r)",
    "Decomposition": "pass LowRank(1/32) or Kronecker(1/32)",
    "LowRank": "pass LowRank(1/32)",
    "Network": "pass a torch.nn.Module that was made, as Net(), or network('mlp', (1, 28, 28), 10)",
    "Schedule": "pass Steps(100) or Cosine(rounds)",
    "Optimizer": "pass for example Adam(0.01), of this package",
    "Sampler": "pass Weighted(S), Cyclic(S) or Available(trace)",
    "State": "pass what algorithm.init or play_round returned",
    "Generator": "pass Key(0).generator()",
    "Figure": "pass a matplotlib Figure",
    "bool": "pass True or False",
    "int": "pass a plain integer",
    "str": "pass a text in quotes",
    "dtype": "pass torch.float64",
    "Path": "pass a path",
    "Callable": "pass a function",
    "parts": "pass a partition, such as problems.partitions.iid(labels, 10, Key(0))",
}
_FIXES_OF_NAMES = {  # of an argument: what to pass in the place of a value of another type
    "seed": lambda value: "pass seed=0; run_seeds takes several as seeds=",
    "sampled": lambda value: (
        f"pass a number of clients, as sampled=round({value} * problem.n)"
        if isinstance(value, float)
        else "pass a number of clients; sampler=Cyclic(S), Weighted(S) or Available(trace) choose who they are"
    ),
    "x0": lambda value: (
        "pass torch.nn.utils.parameters_to_vector(x0.parameters()).detach()"
        if hasattr(value, "parameters")
        else "call module.load_state_dict(x0): the start is the module's own weights"
        if isinstance(value, Mapping)
        else "wrap it: torch.as_tensor(x0)"
    ),
}
_NAMES = {"int": "an integer", "str": "a text", "bool": "True or False", "NoneType": "None", "Path": "a path"}
_NAMES |= {"Callable": "a function"}


def _typed(name: str, value: Any, kind: Any) -> Any:
    """The value, if it has the type that an annotation names; NumPy's scalars become Python's.

    Types are checked, with the parts of tuples and sequences, and floats for being finite; ranges are not.
    """
    value = plain(value)
    if value.__class__ is kind and kind in (int, bool, str):
        return value
    if kind is float:
        found = number(name, value)
        return found if not isinstance(value, int) or abs(value) > 2**53 else value  # 1 stays 1: it is in names of runs
    if kind is torch.Tensor:
        return tensor(name, value, kinds=None, finite=False)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(name, value, parts)
    shape = origin or kind
    if shape in (tuple, abc.Sequence, abc.Iterable, abc.Collection, list):
        return _each(name, value, shape, parts)
    if shape is abc.Callable:
        return value if callable(value) else reject(name, value, "a function", _FIXES["Callable"], TypeError)
    if not isinstance(shape, type) or shape in (object, Any):
        return value
    if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        said = shape.__name__
        expected = _NAMES.get(said, f"an instance of {said}")
        fix = _FIXES_OF_NAMES[name](value) if name in _FIXES_OF_NAMES else _FIXES.get(said, f"pass {expected}")
        reject(name, value, expected, fix, TypeError)
    return value


def _one_of(name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    if value is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    for number_of, kind in enumerate(rest, 1):
        try:
            return _typed(name, value, kind)
        except (TypeError, ValueError):
            if number_of == len(rest):
                if len(rest) == 1:
                    raise
                said = [_NAMES.get(n, n) for n in map(_called, kinds)]
                listed = isinstance(value, list) and any(get_origin(kind) is tuple for kind in rest)
                fix = "pass a tuple, not a list" if listed else _FIXES.get(said[0], f"pass {said[0]}")
                reject(name, value, " or ".join(said), fix, TypeError)
    return value


def _called(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _each(name: str, value: Any, shape: Any, parts: tuple[Any, ...]) -> Any:
    said = {tuple: "a tuple", list: "a list"}.get(shape, "a list or tuple")
    if isinstance(value, np.ndarray) and value.ndim and shape not in (tuple, list):
        value = value.tolist()
    if not isinstance(value, shape) or isinstance(value, (str, bytes, torch.Tensor, np.ndarray)):
        many = isinstance(value, (list, np.ndarray)) or hasattr(value, "__next__")
        plainly = repr(value) if isinstance(value, (str, float)) else name
        fix = f"{name}=tuple({name})" if many else f"wrap it: {name}=({plainly},)"
        if not many and parts:
            kind = parts[0]
            try:
                _typed(name, value, kind)
            except (TypeError, ValueError):
                fix = _FIXES.get(name, f"pass {said}, each entry {_NAMES.get(_called(kind), _called(kind))}")
        reject(name, value, said, fix, TypeError)
    if parts and value and isinstance(value, range):
        _typed(f"{name}[0]", value[0], parts[0])
    if not parts or not isinstance(value, (tuple, list)):
        return value
    if shape is tuple and parts[-1] is not Ellipsis:
        if len(value) != len(parts):
            reject(name, value, f"{len(parts)} values", f"pass a tuple of {len(parts)}", TypeError)
        kinds: Iterable[Any] = parts
    else:
        kinds = [parts[0]] * len(value)
    found = [_typed(f"{name}[{i}]", part, kind) for i, (part, kind) in enumerate(zip(value, kinds))]
    same = all(one is other for one, other in zip(found, value))
    return value if same else type(value)(found) if type(value) in (tuple, list) else value


@cache
def _hints(of: Any) -> dict[str, Any]:
    known: dict[str, Any] = {}
    while True:
        try:
            hints = get_type_hints(of, localns=known or None)
        except NameError as error:  # imported for type checkers only, or local to a function
            if error.name is None or error.name in known:
                raise
            known[error.name] = Any
        else:
            hints.pop("return", None)
            return hints


def tidy(instance: Any) -> None:
    """Give every field of a dataclass, frozen or not, its annotation's type; NumPy's scalars become Python's."""
    hints = _hints(type(instance))
    for f in fields(instance):
        value = getattr(instance, f.name)
        if value is None and f.default is None:
            continue
        found = _typed(f.name, value, hints[f.name])
        if found is not value:
            object.__setattr__(instance, f.name, found)


_ELSEWHERE = {  # how other libraries call it -> our names, of which the first that is known is meant
    "learning_rate": ("lr", "rates"),
    "lr": ("rates",),
    "batch_size": ("batch",),
    "local_epochs": ("epochs",),
    "num_clients": ("clients", "n"),
    "n_clients": ("clients", "n"),
    "clients_per_round": ("sampled",),
    "random_state": ("seed", "key"),
    "callback": ("log",),
    "callbacks": ("log",),
    "criterion": ("loss",),
    "model": ("module", "network"),
    "momentum": ("beta",),
    "clip": ("norm",),
}
_EXAMPLES = {"rounds": "10", "key": "Key(0)", "algorithm": "FedAvg(0.1, 5)", "method": "FedAvg(0.1, 5)"}
_EXAMPLES |= {"problem": "Quadratic.random(10, 5, Key(0))", "optimizer": "Adam(0.01)", "lr": "0.1", "local_steps": "5"}
_EXAMPLES |= {"clients": "10", "alpha": "0.5"}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return which of the known names is meant."""
    known = list(known)
    meant = [one for one in _ELSEWHERE.get(name, ()) if one in known]
    return (meant or difflib.get_close_matches(name, known, 1) or [None])[0]


def spelled(named: Mapping[str, Any], *functions: Callable[..., Any]) -> None:
    """Check that keywords are arguments of one of these functions. TypeError names what comes nearest."""
    every = [one for function in functions for one in inspect.signature(function).parameters.values()]
    known = dict.fromkeys(one.name for one in every if one.kind not in _VARIADIC and one.name != "self")
    for name in named:
        if name not in known:
            near = nearest(name, known)
            owner = functions[0].__qualname__.removesuffix(".__init__")
            fix = f"spell it {near}" if near else "leave it out"
            if (name, near) == ("seeds", "seed"):
                fix = f"call run_seeds, which takes seeds={show(named[name])}"
            reject(name, named[name], f"an argument of {owner}: {', '.join(known)}", fix, TypeError)


def fitting(function: Callable[..., Any], called: str, *before: Any) -> Callable[..., None]:
    """Return what raises TypeError, in a line, for arguments that are too many, missing or misspelt.

    Args:
        called: what the line calls the function.
        before: what stands before the arguments, as self.
    """
    signature = inspect.signature(function)

    def fit(*given: Any, **named: Any) -> None:
        try:
            signature.bind(*before, *given, **named)
        except TypeError as error:
            _misbound(function, signature, called, (*before, *given), named, error)

    return fit


def _misbound(
    function: Callable[..., Any],
    signature: inspect.Signature,
    called: str,
    given: tuple[Any, ...],
    named: Mapping[str, Any],
    error: TypeError,
) -> NoReturn:
    every = list(signature.parameters.values())
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in every):
        spelled(named, function)
    placed = [one.name for one in every if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(given) > len(placed):
        others = [one.name for one in every if one.kind is inspect.Parameter.KEYWORD_ONLY and one.name not in named]
        fix = f"name the others, as {others[0]}={show(given[len(placed)])}" if others else "leave the last ones out"
        placed = [name for name in placed if name != "self"]
        reject(
            called, given[len(placed) :], f"{len(placed)} arguments without names: {', '.join(placed)}", fix, TypeError
        )
    for name in placed[: len(given)]:
        if name in named:
            expected = "one value, and it is given by its place as well"
            reject(name, named[name], expected, f"leave out {name}={show(named[name])}", TypeError)
    found = re.findall(r"'(\w+)'", str(error))
    name = found[-1] if found else ""
    fix = f"pass {name}={_EXAMPLES.get(name, '...')}"
    raise TypeError(f"{called}: {error}. Fix: {fix}") from None


def arguments(function: F) -> F:
    """Wrap a function so that each call first checks its arguments against their annotations."""
    signature = inspect.signature(function)

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        try:
            bound, hints = signature.bind(*given, **named), _hints(function)
        except TypeError as error:
            _misbound(function, signature, function.__qualname__, given, named, error)
        for name, value in bound.arguments.items():
            if name in hints and signature.parameters[name].kind not in _VARIADIC:
                try:
                    bound.arguments[name] = _typed(name, value, hints[name])
                except TypeError:
                    _require_order(function.__qualname__, name, bound.arguments, hints)
                    raise
        return function(*bound.args, **bound.kwargs)

    return checked  # type: ignore[return-value]


def _require_order(called: str, name: str, given: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Raise TypeError where an argument fits in another one's place, and that one in its."""
    for other in [one for one in given if one in hints and one != name]:
        try:
            _typed(other, given[name], hints[other])
            _typed(name, given[other], hints[name])
        except (TypeError, ValueError):
            continue
        reject(name, type(given[name]).__name__, f"{called}({', '.join(given)})", f"swap {name} and {other}", TypeError)


class _Now:
    """Whether the round that is played is a run's first, in which what steps return is looked at, too."""

    first_round = False


@contextmanager
def first_round() -> Iterator[None]:
    """Check in this block what a problem's functions return."""
    before, _Now.first_round = _Now.first_round, True
    try:
        yield
    finally:
        _Now.first_round = before


def explained(function: F, returned: Callable[..., None] | None = None) -> F:
    """Wrap a function as `arguments` does, but check only once it has failed: for what runs in every step.

    Args:
        returned: called with the arguments and, behind them, what came back or the error, in a run's first round.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def tried(*given: Any, **named: Any) -> Any:
        seen = seen_tensors(signature.bind(*given, **named).arguments) if returned and _Now.first_round else {}
        try:
            found = function(*given, **named)
        except (
            TypeError,
            ValueError,
            RuntimeError,
            LookupError,
            AttributeError,
            ArithmeticError,
            MemoryError,
        ) as error:
            hints = _hints(function)
            for name, value in signature.bind(*given, **named).arguments.items():
                if name in hints:
                    _typed(name, value, hints[name])
                    if hints[name] is int:
                        whole(name, value, 0, MOST_PER_ROUND)
            if returned is not None and _Now.first_round:
                returned(*given, *named.values(), error)
            raise
        if _Now.first_round and returned is not None:
            returned(*given, *named.values(), found)
            unwritten(f"{type(given[0]).__name__}.{function.__name__}", seen)
        return found

    return tried  # type: ignore[return-value]


Seen = dict[str, tuple[Any, int]]  # name -> a tensor, and how often it had been written into


def seen_tensors(named: Mapping[str, Any]) -> Seen:
    """The tensors among named values as they are now, for `unwritten`."""
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    return {name: (value, value._version) for name, value in tensors.items() if not value.is_inference()}


def unwritten(step: str, seen: Seen) -> None:
    """Raise ValueError where a step changed what it was given: others may hold the same tensor, as the model."""
    for name, (value, version) in seen.items():
        if value._version != version:
            fix = f"make a new tensor, as {name} - step, or start with {name}.clone()"
            reject(f"{name} in {step}", "changed in place", "to be left as it is: others hold the same tensor", fix)


# Ranges.


def whole(name: str, value: Any, low: int, high: int | None = None, fix: str = "") -> int:
    """Check for an integer in [low, high], by default at most `MOST`. A bool or a float raises TypeError."""
    value = plain(value)
    bounds = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int):
        reject(name, value, bounds, fix or f"pass an integer such as {name}={low}", TypeError)
    if high is None and value > MOST:
        reject(name, value, f"{bounds} and <= {MOST}", f"choose {name} within these bounds")
    if value < low or (high is not None and value > high):
        reject(name, value, bounds, fix or f"choose {name} within these bounds")
    return value


def count(name: str, value: Any, most: int = MOST_PER_ROUND) -> int:
    """Check for an integer from 1 on that counts what a round makes and that a machine can be asked for."""
    return whole(name, value, 1, most)


def number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, fix: str = ""
) -> float:
    """Check for a finite real number in [low, high] (or (low, high] with `open_low`)."""
    value = plain(value)
    left = f"{'>' if open_low else '>='} {low:g}" if low > -math.inf else ""
    right = f"<= {high:g}" if high < math.inf else ""
    bounds = " ".join(["a finite number", " and ".join(part for part in (left, right) if part)]).strip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        reject(name, value, bounds, fix or f"pass a plain float for {name}", TypeError)
    try:
        found = float(value)
    except OverflowError:
        reject(name, value, bounds, fix or f"choose {name} within these bounds")
    if not math.isfinite(found) or found < low or found > high or (open_low and found <= low):
        reject(name, value, bounds, fix or f"choose {name} within these bounds")
    return found


def outcome(name: str, value: Any) -> float:
    """Check for a number that came out of a computation: NaN and infinity are allowed."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (type(value) is int and abs(value) > 10**308):
        reject(name, value, "a number", f"pass a plain float for {name}", TypeError)
    return value


def rate(name: str, value: Any) -> float:
    """Check for a step size: finite and positive."""
    return number(name, value, 0.0, open_low=True, fix=f"use a positive step size, for example {name}=0.01")


def step_size(name: str, value: Any) -> None:
    """Check for a method's step size: positive, or None where the problem suggests one."""
    if value is not None:
        rate(name, value)


def choice(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Check for one of a few names. Raises ValueError that names the nearest one."""
    options, value = list(allowed), plain(value)
    simple = value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))
    if not simple or value not in options:
        listed = ", ".join(repr(option) for option in options)
        near = alike(value, options)
        fix = f"spell {name} as one of these" if near is value else f"spell it {near!r}"
        reject(name, value, f"one of {listed}", fix)
    return value


def alike(value: Any, names: Iterable[Any]) -> Any:
    """Return the name that equals `value` up to capitals, spaces and hyphens (SCAFFOLD is Scaffold), or `value`."""
    known = [name for name in names if isinstance(name, str)]
    if not isinstance(value, str) or value in known:
        return value
    found = [name for name in known if _letters(name) == _letters(value)]
    return found[0] if len(found) == 1 else value


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def instance(name: str, value: Any, kind: type | tuple[type, ...], fix: str) -> Any:
    """Check for an object of the type that the interface needs."""
    value = plain(value)
    if not isinstance(value, kind):
        names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        reject(name, value, f"an instance of {names}", fix, TypeError)
    return value


def tensor(
    name: str,
    value: Any,
    shape: tuple[int | None, ...] | None = None,
    dtype: torch.dtype | None = None,
    *,
    finite: bool = True,
    kinds: str | None = "floating-point",
) -> torch.Tensor:
    """Check for a real floating-point tensor (`kinds=None`: any) of a shape (None: any size on an axis) and dtype."""
    if not isinstance(value, torch.Tensor):
        texts = isinstance(value, (list, tuple, np.ndarray)) and len(value) and isinstance(value[0], str)
        fix = f"torch.as_tensor(numpy.unique({name}, return_inverse=True)[1])" if texts else f"torch.as_tensor({name})"
        fix = _FIXES_OF_NAMES[name](value) if name in _FIXES_OF_NAMES else f"wrap it: {fix}"
        reject(name, type(value).__name__, "a torch.Tensor", fix, TypeError)
    if _holds_nothing(value):
        kind = "meta" if value.is_meta else str(value.layout)
        reject(
            name, f"a {kind} tensor", "a tensor that holds its entries", f"make {name} dense, on cpu or cuda", TypeError
        )
    if kinds is not None and not value.is_floating_point():
        reject(f"{name}.dtype", value.dtype, "a floating-point tensor", f"call {name}.double()", TypeError)
    if shape is not None:
        fits = value.dim() == len(shape) and all(want in (None, got) for want, got in zip(shape, value.shape))
        if not fits:
            wanted = "(" + ", ".join("any" if want is None else str(want) for want in shape) + ")"
            fix = f"pass one of shape {wanted}"
            if None not in shape and math.prod(size or 0 for size in shape) == value.numel() > 0:
                fix = f"pass {name}.reshape{wanted}"
            elif value.dim() == len(shape) - 1 and all(w in (None, got) for w, got in zip(shape[1:], value.shape)):
                fix = f"pass {name}.unsqueeze(0)"
            reject(f"{name}.shape", tuple(value.shape), f"shape {wanted}", fix)
    if dtype is not None and value.dtype != dtype:
        reject(f"{name}.dtype", value.dtype, str(dtype), f"call {name}.to({dtype})", TypeError)
    if finite and not bool(torch.isfinite(value).all()):
        at = tuple(int(i) for i in (~torch.isfinite(value)).nonzero()[0])
        reject(
            f"{name}[{', '.join(map(str, at))}]", float(value[at]), "finite entries", f"clean {name} before the call"
        )
    return value


def dtype(name: str, value: Any) -> torch.dtype:
    """Check for float32 or float64."""
    if not isinstance(value, torch.dtype) or value not in (torch.float32, torch.float64):
        of, dot, _ = name.rpartition(".dtype")
        fix = f"pass {of}.double()" if dot else f"pass {name}=torch.float64"
        reject(name, value, "torch.float32 or torch.float64", fix, TypeError)
    return value


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory ran out: an allocator's, of the CPU or of CUDA, is a RuntimeError."""
    return any(words in str(error) for words in ("can't allocate memory", "out of memory"))


def device(name: str, value: Any) -> torch.device:
    """Check for a device that exists on this machine."""
    value = plain(value)
    try:
        if not isinstance(value, (str, torch.device)):
            raise TypeError
        found = torch.device(value)
    except (RuntimeError, TypeError):
        reject(name, value, "'cpu' or 'cuda'", f"pass {name}='cpu'")
    if found.type not in ("cpu", "cuda"):
        reject(name, value, "'cpu' or 'cuda'", f"pass {name}='cpu'")
    if found.type == "cuda" and not torch.cuda.is_available():
        reject(name, value, "a device of this machine (no CUDA device was found)", f"pass {name}='cpu'")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        reject(name, value, f"one of {torch.cuda.device_count()} CUDA devices", f"pass {name}='cuda:0'")
    return found


def path(name: str, value: Any) -> Path:
    """Check for a path in words, which need not be there; `~` at its beginning is the user's home."""
    value = plain(value)
    if not isinstance(value, (str, Path)) or not str(value):
        reject(name, value, "a path", f"pass {name}='figures'", TypeError)
    if "\0" in str(value):
        reject(name, value, "a path without a null character", f"pass {name}='figures'")
    found = os.path.expanduser(value)
    if str(found).startswith("~"):
        reject(name, value, "a path whose ~ names a home folder", f"write ./{value}, or the whole path")
    return Path(found)


def folder(name: str, value: Any) -> Path:
    """Check for a folder that exists or can be made, and can be written to. Any number of processes may ask at once."""
    value = plain(value)
    if not isinstance(value, (str, Path)) or not str(value):
        reject(name, value, "the path of a folder", f"pass {name}='figures'", TypeError)
    found = path(name, value)
    try:
        found.mkdir(parents=True, exist_ok=True)
        descriptor, probe = tempfile.mkstemp(prefix=".fedtheory-probe-", dir=found)  # a name that no other process has
        os.close(descriptor)
        os.unlink(probe)
    except OSError as error:
        reject(
            name, str(found), f"a folder that can be written to ({error.strerror})", f"choose another {name}", OSError
        )
    return found


def class_name(kind: type) -> str:
    """Return a class's name; of one that is not this package's with its module, for two may share a name."""
    module = kind.__module__.replace("__mp_main__", "__main__")  # a script's, in the processes that it starts
    return kind.__name__ if module.partition(".")[0] == "fedtheory" else f"{module}.{kind.__qualname__}"


def takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with so many arguments, as far as its signature says."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a function of C may have no signature
        return True
    return True


def steps(kind: type, wanted: Mapping[str, Sequence[str]]) -> None:
    """Check that a class that a user writes has its contract's methods, each with the arguments it will be given.

    Args:
        kind: the class.
        wanted: name of a method -> its arguments, self apart.

    Raises TypeError with the first that is missing or takes something else.
    """
    for name, given in wanted.items():
        written = f"def {name}({', '.join(('self', *given))})"
        found = getattr(kind, name, None)
        if found is None or name in getattr(kind, "__abstractmethods__", ()):
            what = (found.__doc__ or "").strip().partition("\n")[0].rstrip(".")
            reject(f"{kind.__name__}.{name}", None, f"a method: {what}", f"write {written}", TypeError)
        try:
            inspect.signature(found).bind("self", *given)
        except TypeError:
            said = f"({', '.join(inspect.signature(found).parameters)})"
            reject(
                f"{kind.__name__}.{name}", said, f"these arguments: {', '.join(given)}", f"write {written}", TypeError
            )


def clients(name: str, value: Any, n: int) -> list[int]:
    """Check for ids of different clients of n, as a tensor of integers (S,), S >= 1: returned as a list."""
    instance(name, value, torch.Tensor, "pass a tensor of client ids")
    if value.dim() != 1 or value.dtype != torch.int64 or _holds_nothing(value):
        found = f"{value.dtype} {tuple(value.shape)}"
        reject(name, found, "ids: torch.int64 (S,)", f"pass torch.tensor([0, {min(1, n - 1)}]).unique()", TypeError)
    ids = value.tolist()
    if not ids or len(set(ids)) < len(ids) or min(ids) < 0 or max(ids) >= n:
        reject(name, ids, f"ids from 0 to {n - 1}, each once", "remove the others")
    return ids


_CGROUPS = Path("/sys/fs/cgroup")
_CGROUP = (  # limit and use, in the second and the first version
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def free_bytes(device: torch.device) -> int | None:
    """Return the free memory in bytes, in a container what its limit leaves; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    left = [] if found is None else [1024 * int(found[1])]
    for limit, used in _CGROUP:
        try:
            most, now = ((_CGROUPS / name).read_text().strip() for name in (limit, used))
            cached = re.search(r"^inactive_file (\d+)", (_CGROUPS / limit).with_name("memory.stat").read_text(), re.M)
        except OSError:
            continue
        if most != "max":
            left.append(int(most) - int(now) + (int(cached[1]) if cached else 0))
    return min(left, default=None)


def room(name: str, value: Any, needed: int, device: torch.device | None = None) -> None:
    """Raise MemoryError where an argument asks for more than the device has left (`needed` bytes)."""
    if needed < 2**24:  # nobody lacks that, and asking takes longer than allocating it
        return
    free = free_bytes(device or torch.device("cpu"))
    if free is not None and free < needed:
        expected = f"what fits into memory: it takes {needed / 1e9:.2g} GB, {free / 1e9:.2g} are free"
        reject(name, value, expected, f"choose a smaller {name}", MemoryError)
