"""Exercises of the notebooks: what an answer is tested by, its points, and the wrong answers that are typical.

One file a notebook (`n05.py`), with EXERCISES: number -> `Exercise`. The question and the solution stand in the
notebook, where the cell is `answer = ...` and `check("05.1", answer)`; the test stands here, so that nothing of the
answer is read above the solution. Student and instructor versions are made from both (`python -m fedtheory course`).
"""

import importlib
import importlib.util
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from fedtheory.core import checks

KINDS = ("compute", "derive", "break", "implement", "design", "explain")
WIDTH = 100  # characters of a line that a reader sees whole


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Fields:
        kind: of KINDS: work out a number; derive and check; break an assumption or predict what fails; write a line
            that passes its law; design an experiment; explain in words.
        points: for the right answer, or for all of the rubric.
        hint: shown after a wrong answer.
        test: of the answer, and of what `check` is given by name: "" or true if it is right; a text says what a wrong
            one reveals.
        right: other forms of the right answer than the notebook's solution, as code: the tests try them.
        wrong: typical wrong answers, as code, and words that their refusal contains.
        tells: patterns that would give the answer away above its solution, beside the answer itself.
        open: whether the answer may stand above, since more than one is right or since it is a small count.
        rubric: of kind "explain", which people grade: what a good answer says, and its points.
        weak: of kind "explain": typical weak answers and what they reveal.
    """

    kind: str
    points: int
    hint: str = ""
    test: Callable[..., Any] | None = None
    right: tuple[str, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)
    tells: tuple[str, ...] = ()
    open: bool = False
    rubric: Mapping[str, int] = field(default_factory=dict)
    weak: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, KINDS)
        checks.whole("points", self.points, 1)
        if (self.kind == "explain") == (self.test is not None):
            checks.reject("test", self.test, "a function, and None for kind 'explain'", "give test, or a rubric")
        if self.kind == "explain" and sum(self.rubric.values()) != self.points:
            checks.reject("rubric", self.rubric, f"{self.points} points in all", "let its points add up")


def exercises(notebook: str) -> dict[int, Exercise]:
    """Those of a notebook, by its two digits; empty where it has no file here."""
    if importlib.util.find_spec(f"{__name__}.n{notebook}") is None:
        return {}
    return importlib.import_module(f"{__name__}.n{notebook}").EXERCISES


def plain(answer: Any) -> Any:
    """Turn numbers of NumPy, PyTorch and sympy into Python's, whole ones into int, and arrays and lists into tuples.

    Sets and dictionaries are turned inside, too; functions, formulas with symbols and other objects stay as they are.
    """
    if isinstance(answer, np.floating) and answer.dtype.itemsize < 8:
        answer = float(str(answer))  # np.float32(0.1) is 0.1, and not 0.10000000149
    elif isinstance(answer, (np.ndarray, np.generic, torch.Tensor)):
        answer = answer.tolist()
    elif type(answer).__module__.startswith("sympy."):  # sympy is imported where a learner has used it
        if getattr(answer, "is_real", False) and answer.is_number:
            answer = float(answer)
        elif hasattr(answer, "__iter__"):
            answer = list(answer)
    if isinstance(answer, (list, tuple)):
        return tuple(map(plain, answer))
    if isinstance(answer, (set, frozenset)):
        return set(map(plain, answer))
    if isinstance(answer, dict):
        return {plain(name): plain(value) for name, value in answer.items()}
    answer = float(answer) if isinstance(answer, Fraction) else answer
    return int(answer) if isinstance(answer, float) and answer.is_integer() else answer


def verdict(name: str, answer: Any, **given: Any) -> tuple[bool, str]:
    """Whether an answer is right, and what it reveals.

    Args:
        name: of the exercise, as "05.1".
        answer: the learner's; its numbers may be of any kind (see `plain`).
        given: what its test needs of the notebook.

    Raises ValueError for a name that no exercise has.
    """
    notebook = name.partition(".")[0]
    known = {f"{notebook}.{n}": one for n, one in exercises(notebook).items()}
    exercise = known.get(name)
    if exercise is None or exercise.test is None:
        asked = [one for one, of in known.items() if of.test is not None]
        checks.reject("name", name, "an exercise with a check", f"one of {', '.join(asked) or 'no other'}")
    try:
        found = exercise.test(plain(answer), **given)
    except Exception as error:
        return False, f"It stopped with {type(error).__name__}: {error}."
    return (found == "", found) if isinstance(found, str) else (bool(found), "")


def check(name: str, answer: Any, **given: Any) -> None:
    """Print whether the answer to an exercise is right; a wrong answer never raises. Arguments as for `verdict`."""
    number = name.partition(".")[2]
    if answer is ...:
        print(f"Exercise {number}: no answer yet. Replace the three dots and run the cell again.")
        return
    right, word = verdict(name, answer, **given)
    hint = exercises(name[:2])[int(number)].hint
    said = f"Exercise {number}: right." if right else f"Exercise {number}: not yet. {word} Hint: {hint}"
    print(textwrap.fill(" ".join(said.split()), WIDTH, subsequent_indent="  "))


def graded(name: str, answer: Any, **given: Any) -> None:
    """As `check`, for a graded notebook: a wrong answer raises AssertionError with what it reveals."""
    check(name, answer, **given)
    right, word = (False, "no answer") if answer is ... else verdict(name, answer, **given)
    assert right, word or "not yet"
