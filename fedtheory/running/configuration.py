"""The words of a run: what decides its numbers, in plain JSON that outlives moves of code.

An algorithm is its class's name, outside this package with its module, and its hyperparameters by name. A
hyperparameter that is added later, with a default that means what was done before, is declared with `later(default)`
and left out while it has that value: the words of old runs stay what they were. A default that is changed changes the
words of every run that relied on it.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from typing import Any

from fedtheory.core import checks


def describe(value: Any) -> Any:
    """A hyperparameter or option as JSON; dataclasses as {class: {field: value}}.

    Raises TypeError for what has no words, such as a tensor or a function.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (tuple, list)):
        return [describe(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): describe(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {checks.class_name(type(value)): members(value)}
    checks.reject("option", value, "numbers, words, lists of them, or a dataclass", "name it by a word", TypeError)


def members(value: Any, **instead: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON, without later ones that are neutral; `instead`: other values for some."""
    named = {f.name: instead.get(f.name, getattr(value, f.name)) for f in fields(value)}
    later = {f.name: f.metadata["neutral"] for f in fields(value) if "neutral" in f.metadata}
    return {name: describe(part) for name, part in named.items() if name not in later or part != later[name]}


def revisions(value: Any) -> dict[str, int]:
    """Class name -> revision of every dataclass within a value: the number that a person raises (1 where none is)."""
    if isinstance(value, (tuple, list)):
        return {name: number for part in value for name, number in revisions(part).items()}
    if isinstance(value, Mapping):
        return revisions(list(value.values()))
    if is_dataclass(value) and not isinstance(value, type):
        own = {checks.class_name(type(value)): int(getattr(type(value), "revision", 1))}
        return own | revisions([getattr(value, f.name) for f in fields(value)])
    return {}


def defaults(functions: tuple[Callable[..., Any], ...]) -> dict[str, Any]:
    """The options that these functions take where none is passed."""
    return {name: default for function in functions for name, default in _defaults(function)}


@cache  # every run of a table asks the same few functions
def _defaults(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    parameters = signature(function).parameters.values()
    return [(p.name, p.default) for p in parameters if p.default is not Parameter.empty]


def digest(words: Any) -> str:
    """SHA-256 of canonical JSON, 64 hex digits."""
    return hashlib.sha256(json.dumps(words, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
