"""Formulas as answers: a learner's function is called with sympy's symbols and compared as a formula."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy

from fedtheory.core import checks

_TOLERANCE = 1e-9  # relative, at a point
_SMALL = 1e-3  # of values below it, relative to this: where the right one is 0, floats leave a rest


def formula(
    answer: Any,
    right: Callable[..., Any],
    points: Iterable[tuple[float, ...]],
    slips: Mapping[str, Callable[..., Any]] | None = None,
) -> str:
    """What a formula reveals: "" if it is the right one, else a word for `check`.

    It is called with positive symbols, so that it must be a formula for all values; the difference is then evaluated at
    the points, since two forms of one formula need not simplify to the same.

    Args:
        answer: the learner's function.
        right: the right formula, as a function; its parameters name the symbols.
        points: values of the symbols, in the order of the parameters.
        slips: what is said of a known wrong formula, and that formula.

    Raises ValueError without points.
    """
    exact = [tuple(sympy.nsimplify(value) for value in at) for at in points]
    if not exact:
        checks.reject("points", points, "at least one point", "pass tuples of values")
    names = tuple(inspect.signature(right).parameters)
    if not callable(answer):
        return f"A function is asked for, such as lambda {', '.join(names)}: ..."
    symbols = [sympy.Symbol(name, positive=True) for name in names]
    wanted = sympy.sympify(right(*symbols))
    try:
        given = sympy.sympify(answer(*symbols))
    except TypeError as error:
        if "Symbol" not in str(error):
            raise
        return f"{', '.join(names)} are symbols here, which no loop, range or int can take: write one formula."
    if not isinstance(given, sympy.Expr):
        return f"One expression is asked for, not {given}."
    values: list[dict[Any, Any]] = [dict(zip(symbols, at)) for at in exact]
    if all(_near(given, wanted, at) for at in values):
        return ""
    for word, slip in (slips or {}).items():
        if all(_near(given, sympy.sympify(slip(*symbols)), at) for at in values):
            return word
    at = next(at for at in values if not _near(given, wanted, at))
    place = ", ".join(f"{symbol} = {value}" for symbol, value in at.items())
    here = sympy.N(given.subs(at), 4)
    if not here.is_number or not here.is_real or not here.is_finite:
        return f"At {place} it is {here}, which is no finite number."
    return f"At {place} it is {here}, which is too {'small' if here < sympy.N(wanted.subs(at)) else 'large'}."


def same(one: Any, other: Any) -> bool:
    """Whether two expressions agree at three points of their symbols, which are positive."""
    one, other = sympy.sympify(one), sympy.sympify(other)
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    points = [{symbol: sympy.Rational(2 * n + 3 * k + 1, 7) for n, symbol in enumerate(symbols)} for k in (1, 2, 3)]
    return all(_near(one, other, at) for at in points)


def _near(one: Any, other: Any, at: dict[Any, Any]) -> bool:
    gap, size = (sympy.N(abs(value.subs(at)), 30) for value in (one - other, other))
    return bool(gap.is_number and gap.is_finite and gap <= _TOLERANCE * max(size, _SMALL))
