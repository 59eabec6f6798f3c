"""A right answer in every type in which a learner may have it."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy
import torch

NUMBERS: tuple[Callable[[Any], Any], ...] = (
    float,
    np.float64,
    np.float32,
    np.array,
    torch.tensor,
    sympy.sympify,
    lambda x: np.int64(x) if isinstance(x, int) else torch.tensor(x, dtype=torch.float32),
)
PAIRS: tuple[Callable[[Any], Any], ...] = (
    sympy.Tuple,
    lambda *pair: np.array(pair, dtype=object),
    *5 * [lambda *pair: list(pair)],
)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def kinds(answer: Any) -> Iterator[Any]:
    """The same answer as numbers, sequences and formulas of other types; a function returns them."""
    if is_number(answer):
        yield from (kind(answer) for kind in NUMBERS)
    elif isinstance(answer, (list, tuple)):
        yield from (list(answer), tuple(answer))
        if all(map(is_number, answer)):
            yield from (np.array(answer), torch.tensor(answer), tuple(map(np.float32, answer)), sympy.Tuple(*answer))
        elif not any(isinstance(one, str) for one in answer):
            with contextlib.suppress(TypeError, ValueError, RuntimeError):  # sets, words, models
                yield tuple(torch.as_tensor(one).float() for one in answer)
    elif isinstance(answer, (set, frozenset)):
        yield from (list(answer), tuple(answer), frozenset(answer))
    elif isinstance(answer, dict):
        for kind in (list, tuple, frozenset):
            yield {
                key: kind(value) if isinstance(value, (set, list, tuple)) else value for key, value in answer.items()
            }
    elif callable(answer) and not isinstance(answer, type):
        yield from (returning(answer, number, pair) for number, pair in zip(NUMBERS, PAIRS, strict=True))


def returning(
    answer: Callable[..., Any], number: Callable[[Any], Any], pair: Callable[[Any], Any]
) -> Callable[..., Any]:
    """The function with its number, its formula or its tuple of them in another type; tensors stay."""

    def one(value: Any) -> Any:
        if isinstance(value, sympy.Expr) and value.free_symbols:
            return sympy.factor(value)
        return number(value) if is_number(value) else value

    def called(*given: Any) -> Any:
        value = answer(*given)
        known = lambda part: is_number(part) or isinstance(part, sympy.Expr)
        if isinstance(value, (list, tuple)) and all(map(known, value)):
            return pair(*map(one, value))
        return one(value)

    return called
