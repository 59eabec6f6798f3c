"""What can be named on the command line: methods and problems. A name stands once, in the file of what it names.

A file of `algorithms/` ends with the list METHODS, one of `problems/` with the list PROBLEMS. Their names are read from
the sources, so that a list of names costs no import; what a name stands for is imported when it is asked for.
Other distributions add their own through the entry-point groups `fedtheory.algorithms` and `fedtheory.problems`: an
entry point's name is the method's or problem's, and it refers to a `Method` or an `Offer`.
"""

import ast
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fedtheory.core import checks

if TYPE_CHECKING:
    from fedtheory.core.algorithm import Algorithm
    from fedtheory.core.key import Key
    from fedtheory.core.problem import Problem

PACKAGE = Path(__file__).resolve().parent.parent
FAMILIES = ("full", "compressed", "low rank", "subspace", "zeroth order")
NEEDS = ("", "matrices", "networks")


@dataclass(frozen=True)
class Card:
    """What is said of a method; the rest of its row in docs/methods.md is measured.

    Fields:
        idea: a sentence.
        update: of client and server. g_i is a gradient of client i; y_i starts a round at x; mean is over participants.
        proved: what is known of it, under what; "Original:" is what the method's own paper states, not checked here.
        fails: where it breaks.
        claims: ids of the ledger.
    """

    idea: str
    update: str
    proved: str
    fails: str
    claims: tuple[str, ...] = ()


class Asked(Protocol):
    """What a method is built from: a learning rate, and what it may need besides."""

    lr: float
    local_steps: int
    ratio: float  # of the numbers that a compressed message keeps
    rounds: int
    perturbations: int  # directions of zeroth-order methods

    @property
    def ranks(self) -> tuple[int, ...]:
        """Rows of a basis for each layer at that ratio."""
        ...


@dataclass(frozen=True)
class Method:
    """A method by name.

    Fields:
        name: as it is called everywhere.
        family: of FAMILIES.
        make: builds it for a comparison, from an `Asked`.
        card: its row in docs/methods.md.
        command: builds it for `run`, from the options of the command line; where missing, as `make` does.
        needs: "matrices" in the model, "networks" behind the losses, or "" for any problem.
        rate: factor on all learning rates that are tried in a comparison.
        pooled: whether it trains at one place that holds all data: it is no federated method and is not compared.
    """

    name: str
    family: str
    make: Callable[[Any], "Algorithm"] = field(repr=False)
    card: Card = field(repr=False)
    command: Callable[[Any], "Algorithm"] | None = field(default=None, repr=False)
    needs: str = ""
    rate: float = 1.0
    pooled: bool = False

    def __post_init__(self) -> None:
        checks.choice("family", self.family, FAMILIES)
        checks.choice("needs", self.needs, NEEDS)


@dataclass(frozen=True)
class Offer:
    """A problem by name.

    Fields:
        name: as it is called everywhere.
        kind: its class.
        make: builds the one that `run` plays on, from its data's key, the device and the options of the command line.
        metrics: what is recorded on it.
    """

    name: str
    kind: type["Problem"]
    make: Callable[["Key", str, Any], "Problem"] = field(repr=False)
    metrics: tuple[str, ...] = ("error",)


class _Kind:
    """Where things of one kind are found: the folder, the list at the end of its files, the entry-point group."""

    def __init__(self, folder: str, listed: str, of: type, what: str) -> None:
        self.folder, self.listed, self.of, self.what = folder, listed, of, what

    @cached_property
    def places(self) -> dict[str, str | EntryPoint]:
        """Name -> the package's module, or another distribution's entry point."""
        found: dict[str, str | EntryPoint] = {}
        for path in sorted((PACKAGE / self.folder).glob("*.py")):
            for name in _listed(path, self.listed):
                found[name] = f"fedtheory.{self.folder}.{path.stem}"
        for point in entry_points(group=f"fedtheory.{self.folder}"):
            if point.name in found:
                owner = found[point.name]
                there = owner if isinstance(owner, str) else owner.value
                expected = f"a name that {there} does not have"
                checks.reject(f"entry point fedtheory.{self.folder}", point.name, expected, "rename it")
            found[point.name] = point
        return found

    def get(self, name: str) -> Any:
        """What a name stands for.

        Raises ValueError for an unknown name, and for an entry point that refers to something else.
        """
        place = self.places[checks.choice(self.what, name, self.places)]
        if isinstance(place, str):
            found = {one.name: one for one in getattr(importlib.import_module(place), self.listed)}
            return found[name]
        entry = place.load()
        if not isinstance(entry, self.of) or entry.name != name:
            expected = f"a {self.of.__name__} of this name"
            checks.reject(
                f"entry point {place.name}", place.value, expected, f"let it refer to {self.of.__name__}(...)"
            )
        return entry


def _listed(path: Path, name: str) -> Iterator[str]:
    """The first argument of each call in a list at the top level of a source."""
    source = path.read_text()
    if name not in source:
        return
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            for call in getattr(node.value, "elts", ()):
                yield ast.literal_eval(call.args[0])


_METHODS = _Kind("algorithms", "METHODS", Method, "algorithm")
_PROBLEMS = _Kind("problems", "PROBLEMS", Offer, "problem")


def method_names() -> list[str]:
    """Names of all methods, by the alphabet; nothing is imported."""
    return sorted(_METHODS.places, key=str.lower)


def problem_names() -> list[str]:
    """Names of all problems, by the alphabet; nothing is imported."""
    return sorted(_PROBLEMS.places, key=str.lower)


@cache
def method(name: str) -> Method:
    """A method by name.

    Raises ValueError for an unknown one.
    """
    return _METHODS.get(name)


@cache
def problem(name: str) -> Offer:
    """A problem by name.

    Raises ValueError for an unknown one.
    """
    return _PROBLEMS.get(name)


def methods() -> dict[str, Method]:
    """All methods, by family and within it by the alphabet."""
    found = [method(name) for name in method_names()]
    return {one.name: one for family in FAMILIES for one in found if one.family == family}


def problems() -> dict[str, Offer]:
    """All problems, by the alphabet."""
    return {name: problem(name) for name in problem_names()}
