"""One test for many small cases: `@each(name=ALGORITHMS, problem=PROBLEMS)`, or `@each("call, name", CASES)`."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable


def each(names: str = "", rows: Iterable = (), **values: Iterable) -> Callable:
    """Run a test over the rows, or over the product of the values, as one test. A failure names its case.

    For cases of milliseconds: pytest spends five on each test. The cases share the test's fixtures.
    """
    if names:
        cases = [dict(zip(names.split(", "), row, strict=True)) for row in rows]
    else:
        cases = [dict(zip(values, case)) for case in itertools.product(*values.values())]
    assert cases

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def looped(*args, **fixtures):
            for number, case in enumerate(cases):
                try:
                    test(*args, **fixtures, **case)
                except Exception as error:
                    shown = ", ".join(f"{name}={value!r}" for name, value in case.items())
                    error.add_note(f"case {number} of {len(cases)}: {shown}")
                    raise

        kept = [part for name, part in inspect.signature(test).parameters.items() if name not in cases[0]]
        looped.__signature__ = inspect.Signature(kept)
        return looped

    return decorate
