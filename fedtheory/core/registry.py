"""What can be named on the command line: methods, problems, figures, claims.

A name stands once, in the file of what it names; a claim's is a heading of its paper's claims.md.
A file of `algorithms/` ends with the list METHODS, one of `problems/` with the list PROBLEMS, one of `papers/` with
the lists ITEMS (of the papers) and EXTRAS (our own). Their names are read from the sources, so that a list of names
costs no import; what a name stands for is imported when it is asked for.
Other distributions add their own through the entry-point groups `fedtheory.algorithms` and `fedtheory.problems`: an
entry point's name is the method's or problem's, and it refers to a `Method` or an `Offer`.
"""

import ast
import importlib
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib.metadata import EntryPoint, distributions, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from fedtheory.core import checks

if TYPE_CHECKING:
    from fedtheory.core.algorithm import Algorithm
    from fedtheory.core.key import Key
    from fedtheory.core.problem import Problem

_PACKAGE = Path(__file__).resolve().parent.parent
FAMILIES = ("full", "compressed", "low rank", "subspace", "zeroth order")
_NEEDS = ("", "matrices", "networks")


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

    def __post_init__(self) -> None:
        checks.tidy(self)


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


def no_option(name: str, known: Sequence[str]) -> NoReturn:
    """Say that what methods are built from has no such option: by ValueError, by AttributeError for names of Python."""
    if name.startswith("_"):
        raise AttributeError(name)
    fix = "write the number in the method's entry, as in lambda o: Mine(o.lr, o.local_steps, 0.9)"
    checks.reject("option", name, f"one of {', '.join(known)}", fix)


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
        _text("Method.name", self.name)
        checks.choice("family", self.family, FAMILIES)
        checks.choice("needs", self.needs, _NEEDS)
        label = f"Method({self.name!r})"
        _takes(f"{label}.make", self.make, "options", "lambda o: Mine(o.lr, o.local_steps)")
        if self.command is not None:
            _takes(f"{label}.command", self.command, "options", "lambda o: Mine(o.lr, o.local_steps), or leave it out")
        checks.instance(
            f"{label}.card", self.card, Card, "pass Card('its idea', 'its update', 'proved', 'where it fails')"
        )
        checks.number(f"{label}.rate", self.rate, 0.0, open_low=True, fix="pass rate=1.0, or leave it out")
        checks.instance(f"{label}.pooled", self.pooled, bool, "pass pooled=True or pooled=False")


@dataclass(frozen=True)
class Offer:
    """A problem by name.

    Fields:
        name: as it is called everywhere.
        kind: its class.
        make: builds the one that `run` plays on, from its data's key, the device and the options of the command line.
        metrics: what is recorded on it.
        rates: learning rates that `compare` tries on it, falling by a factor of about three; where it names none, it is
            not compared. Methods are judged by the error where x* is known, else by the accuracy, else by the loss.
        rounds, level: of a comparison: how long it plays, and the error, accuracy or loss by which methods' rounds are
            compared.
    """

    name: str
    kind: type["Problem"]
    make: Callable[["Key", str, Any], "Problem"] = field(repr=False)
    metrics: tuple[str, ...] = ("error",)
    rates: tuple[float, ...] = ()
    rounds: int = 100
    level: float = 0.1

    def __post_init__(self) -> None:
        _text("Offer.name", self.name)
        label = f"Offer({self.name!r})"
        checks.instance(f"{label}.kind", self.kind, type, "pass the problem's class")
        _takes(f"{label}.make", self.make, "key, device, options", "lambda key, device, options: Mine(key)")
        checks.instance(f"{label}.metrics", self.metrics, tuple, "pass metrics=('loss',)")
        for metric in self.metrics:
            _text(f"{label}.metrics", metric)
        checks.instance(f"{label}.rates", self.rates, tuple, "pass rates=(0.3, 0.1, 0.03), or leave it out")
        for rate in self.rates:
            checks.number(
                f"{label}.rates", rate, 0.0, open_low=True, fix="pass rates=(0.3, 0.1, 0.03), or leave it out"
            )
        checks.whole(f"{label}.rounds", self.rounds, 20)
        checks.number(f"{label}.level", self.level, 0.0, open_low=True)


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        checks.reject(name, value, "a text that is not empty", "pass a name in quotes", TypeError)


def _takes(name: str, make: Any, given: str, like: str) -> None:
    """A function that is called with so many arguments."""
    try:
        if isinstance(make, type):  # its first argument is a hyperparameter
            raise TypeError
        inspect.signature(make).bind(*given.split(", "))
    except (TypeError, ValueError):
        checks.reject(name, make, f"a function of ({given})", f"pass {like}", TypeError)


class _Kind:
    """Where things of one kind are found: the folder, the list at the end of its files, the entry-point group."""

    def __init__(self, folder: str, listed: str, of: type, what: str) -> None:
        self.folder, self.listed, self.of, self.what = folder, listed, of, what

    @cached_property
    def places(self) -> dict[str, str | EntryPoint]:
        """Name -> the package's module, or another distribution's entry point."""
        found: dict[str, str | EntryPoint] = {}
        for path in sorted((_PACKAGE / self.folder).glob("*.py")):
            for name, *_ in _listed(path, self.listed):
                found[name] = f"fedtheory.{self.folder}.{path.stem}"
        for point in _points(f"fedtheory.{self.folder}"):
            if point.name in found:
                owner = found[point.name]
                there = owner if isinstance(owner, str) else owner.value
                taken = f"entry point fedtheory.{self.folder}={point.name!r}, whose name {there} has. Fix: rename it"
                warnings.warn(f"left out: {taken}", stacklevel=2)
                continue
            found[point.name] = point
        return found

    def get(self, name: str) -> Any:
        """What a name stands for.

        Raises ValueError for an unknown name, and for an entry point that refers to something else.
        """
        name = checks.choice(self.what, checks.alike(name, self.places), self.places)
        place = self.places[name]
        if isinstance(place, str):
            found = {one.name: one for one in getattr(importlib.import_module(place), self.listed)}
            return found[name]
        try:
            entry = place.load()
        except (Exception, SystemExit) as error:
            broken(place, error)
        if not isinstance(entry, self.of) or entry.name != name:
            expected = f"a {self.of.__name__} of this name"
            checks.reject(
                f"entry point {place.name}", place.value, expected, f"let it refer to {self.of.__name__}(...)"
            )
        guarded = {name: _guarded(place, getattr(entry, name)) for name in ("make", "command") if hasattr(entry, name)}
        return replace(entry, **guarded)


def _points(group: str) -> Iterator[EntryPoint]:
    """A group's entry points. A distribution whose list cannot be read is left out, with a warning."""
    try:
        yield from entry_points(group=group)
        return
    except Exception:  # of one distribution: which one is not said
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # PyTorch reads the same lists, and would not be imported
    for one in distributions():
        try:
            yield from one.entry_points.select(group=group)
        except Exception as error:
            where = getattr(one, "_path", "a distribution")
            said = f"entry_points.txt in {where} ({type(error).__name__}). Fix: repair or uninstall it"
            warnings.warn(f"left out: {said}", stacklevel=2)


def _guarded(place: EntryPoint, make: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Another distribution's function, whose error is told in one line. What it refuses in our own form stays."""
    if make is None:
        return None

    @wraps(make)
    def call(*given: Any) -> Any:
        try:
            return make(*given)
        except Exception as error:
            if isinstance(error, MemoryError) or checks.out_of_memory(error) or "Fix: " in str(error):
                raise
            broken(place, error)

    return call


def broken(place: EntryPoint, error: BaseException) -> NoReturn:
    """Raise a ValueError that says whose entry point cannot be used, and why."""
    owner = "a distribution" if place.dist is None else place.dist.name
    expected = f"one of {owner} that works ({type(error).__name__}: {error})"
    try:
        checks.reject(f"entry point {place.name}", place.value, expected, f"repair {owner}, or uninstall it")
    except ValueError as said:
        raise said from error


def _listed(path: Path, name: str) -> Iterator[list[str]]:
    """The words that each call begins with, in a list of this name at the top level of a source."""
    found = re.search(rf"^{name} = (\[.*?^\]|\[.*\])$", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    if found:
        for call in ast.parse(found[1], mode="eval").body.elts:  # type: ignore[attr-defined]
            words = [part.value if isinstance(part, ast.Constant) else None for part in call.args[:2]]
            yield [word for word in words if isinstance(word, str)]


# Names of the command line whose tables need PyTorch; test_house.py compares them.
PROJECTIONS = ("cd", "ss", "rd", "identity")  # of maps.subspace
TASKS = ("sst2", "cb", "wsc", "wic", "rte", "boolq")  # of problems.text
PACKAGED = ("smollm2",)  # of problems.models.packaged


@dataclass(frozen=True)
class Listed:
    """A figure or table by name, not imported.

    Fields:
        name, title: as its `Item` has them.
        module: where it stands.
        ours: whether it is our own picture, in EXTRAS, and no item of a paper, in ITEMS.
    """

    name: str
    title: str
    module: str
    ours: bool

    @property
    def paper(self) -> str:
        """The paper, or the folder of our own pictures."""
        return self.name.partition("/")[0]


PAPERS = {"fedsub": "FedSub", "ssf": "SSF", "mud": "FedMUD", "flss": "FLSS", "decomfl": "DeComFL"}
"""The papers, as items and claims are named -> each one's method."""


def _order(item: Listed) -> tuple[Any, ...]:
    """The papers' own first, by paper, figures before tables."""
    place = list(PAPERS).index(item.paper) if item.paper in PAPERS else len(PAPERS)
    return (True, place) if item.ours else (False, place, item.name)


@cache
def items() -> dict[str, Listed]:
    """Return all figures and tables, by paper, the papers' own first; nothing is imported."""
    found = []
    for path in sorted((_PACKAGE / "papers").rglob("*.py")):
        module = ".".join(("fedtheory", *path.relative_to(_PACKAGE).with_suffix("").parts))
        for ours, listed in enumerate(("ITEMS", "EXTRAS")):
            found += [Listed(name, title, module, bool(ours)) for name, title in _listed(path, listed)]
    return {item.name: item for item in sorted(found, key=_order)}


def item(name: str) -> Any:
    """Return the `Item` of a figure or table by name.

    Raises ValueError for an unknown one.
    """
    module = importlib.import_module(items()[checks.choice("item", name, items())].module)
    return next(one for one in (*getattr(module, "ITEMS", ()), *getattr(module, "EXTRAS", ())) if one.name == name)


_METHODS = _Kind("algorithms", "METHODS", Method, "algorithm")
_PROBLEMS = _Kind("problems", "PROBLEMS", Offer, "problem")


def method_names() -> list[str]:
    """Return names of all methods, by the alphabet; nothing is imported."""
    return sorted(_METHODS.places, key=str.lower)


def others_methods() -> list[str]:
    """Return names of the methods of other distributions; nothing is imported."""
    return [name for name, place in _METHODS.places.items() if not isinstance(place, str)]


def problem_names() -> list[str]:
    """Return names of all problems, by the alphabet; nothing is imported."""
    return sorted(_PROBLEMS.places, key=str.lower)


@cache
def method(name: str) -> Method:
    """Return a method by name.

    Raises ValueError for an unknown one.
    """
    return _METHODS.get(name)


@cache
def problem(name: str) -> Offer:
    """Return a problem by name.

    Raises ValueError for an unknown one.
    """
    return _PROBLEMS.get(name)


@cache
def further_problems() -> dict[str, Offer]:
    """Return other distributions' problems, by the alphabet. One that cannot be loaded is left out, with a warning."""
    further = [name for name in problem_names() if not isinstance(_PROBLEMS.places[name], str)]
    return dict(_loaded(further, problem))


def _loaded(names: Sequence[str], get: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """What loads of these; of another one a warning says why not."""
    for name in names:
        try:
            yield name, get(name)
        except ValueError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)


def methods() -> dict[str, Method]:
    """Return all methods that can be loaded, by family and within it by the alphabet."""
    found = dict(_loaded(method_names(), method)).values()
    return {one.name: one for family in FAMILIES for one in found if one.family == family}


def problems() -> dict[str, Offer]:
    """Return all problems that can be loaded, by the alphabet."""
    return dict(_loaded(problem_names(), problem))


@cache
def claim_names() -> list[str]:
    """Return all claims' ids, by paper and in its order: headings of theory/<paper>/claims.md; nothing is imported."""
    pages = ((_PACKAGE / "theory" / paper / "claims.md").read_text("utf-8") for paper in PAPERS)
    return [id for page in pages for id in re.findall(r"^## (.+)$", page, re.MULTILINE)]


def chosen_claims(wanted: Sequence[str], paper: str | None = None) -> list[str]:
    """Return claims' ids by name: a paper, a leading part that ends at a dot, an id, or one id of a shared claim.

    Raises ValueError for a name of none, and for one that is not of `paper`.
    """
    if paper is not None:
        checks.choice("paper", paper, PAPERS)
    chosen: dict[str, None] = {}
    for name in wanted:
        some = [i for i in claim_names() if i == name or i.startswith(f"{name}.") or name in i.split(" / ")]
        if not some:
            checks.reject("id", name, "the id of a claim", spelling(name, claim_names()))
        if paper is not None and not all(i.startswith(f"{paper}.") for i in some):
            checks.reject("paper", paper, f"the paper of {name}", "leave out --paper, or the id")
        chosen |= dict.fromkeys(some)
    return [i for i in (chosen if wanted else claim_names()) if paper is None or i.startswith(f"{paper}.")]


def spelling(name: str, known: Iterable[str]) -> str:
    """What to write for a name that is none of the known ones."""

    near = checks.nearest(name, known)
    return "see python -m fedtheory list" if near is None else f"spell it {near}"
