"""The bench: a paper's rounds on extreme instances, and how its statements are attacked on them.

A paper brings how free numbers become an instance, what its own code makes of the instance, and what it assumes. The
search for the worst instance, stored counterexamples, identities, controls and units are here.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import torch

from fedtheory.core.key import Key
from fedtheory.theory import search
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import ROUNDING, Found, ratio, units

DOUBLE = torch.float64


class Edge:
    """The discrete side of an instance, a frozen dataclass in every paper: its `parts` say which numbers are free."""

    shape: str = "quadratic"

    def parts(self) -> dict[str, int]:
        """How many free numbers an instance takes, by what they stand for."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        return sum(self.parts().values())

    def split(self, z: torch.Tensor) -> dict[str, torch.Tensor]:
        """The free numbers by what they stand for."""
        parts = self.parts()
        return dict(zip(parts, z.split(list(parts.values()))))


def spline(numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Three knots in increasing order from the first of seven free numbers, and the other four."""
    return torch.cumsum(torch.cat([numbers[:1] - 0.7, numbers[1:3].exp()]), 0), numbers[3:]


Corner = TypeVar("Corner", bound=Edge)
At = TypeVar("At")  # an instance
Played = TypeVar("Played")  # a round, with its instance as `at`
Pair = tuple[torch.Tensor, torch.Tensor]
Pairs = Callable[[Played], Sequence[Pair]]
Terms = Callable[[Played], tuple[Any, ...]]  # left, right, and what may be added to both (see `maximise`)


class Gap(NamedTuple):
    """The largest relative gap between the sides of an identity, the round where it is, and what was compared."""

    size: float
    at: Any
    pairs: int
    rounds: int


def _no_units(at: Any, loss: float, variable: float) -> Any:
    raise NotImplementedError("the instances of this bench do not rescale")


UNITS = ("both sides scale differently in other units", "both sides scale alike in other units")


@dataclass(frozen=True)
class Bench(Generic[Corner, At, Played]):
    """How one paper's statements are attacked.

    Fields:
        key: of all random numbers.
        edges: the standard corners.
        build: (free numbers, edge) -> instance.
        play: instance -> round, through the algorithm's own lines.
        dump: instance -> plain data.
        holds_text, breaks_text: what a search says, of `n` points tried and the worst `edge`.
        effort: restarts and steps of a search.
        slacks: (instance, needs) -> every assumption with its slack.
        admissible: the same, which raises AssertionError where a needed assumption is broken.
        rescaled: (instance, a, b) -> the same with losses times a and variables times b.
        needs: what every instance must meet; None: the worst instance of a search is not checked.
        starts: corners -> free numbers from which every search also starts.
        together: many restarts in one call, by `search.maximise_together`.
        units_text: in words, that sides do not scale alike in other units, and that they do.
        test_units: every search that breaks nothing also tests the units, at its quadratic corners.
        unit_edges: where `with_units` tests them, and a search none of whose corners is quadratic.
        number_format, rounded: both sides of a stored instance in its sentence, and as data.
    """

    key: Key
    edges: Callable[[], Sequence[Corner]]
    build: Callable[[torch.Tensor, Corner], At]
    play: Callable[[At], Played]
    dump: Callable[[At], Any]
    holds_text: str
    breaks_text: str
    effort: Mapping[str, tuple[int, int]]
    slacks: Callable[[At, Any], dict[str, float]] = lambda at, needs: {}
    admissible: Callable[[At, Any], dict[str, float]] = lambda at, needs: {}
    rescaled: Callable[[At, float, float], At] = _no_units
    needs: Any = None
    starts: Callable[[Sequence[Corner]], Sequence[torch.Tensor]] = lambda corners: ()
    together: bool = True
    units_text: tuple[str, str] = UNITS
    test_units: bool = False
    unit_edges: Sequence[Corner] = ()
    number_format: str = ".6g"
    rounded: Callable[[float], float] = digits

    def drawn(self, edge: Any, *names: str | int) -> At:
        """A random instance at an edge."""
        g = self.key.fold(*names).generator()
        return self.build(torch.randn(edge.size, generator=g, dtype=DOUBLE), edge)

    def rounds(self, name: str, corners: Iterable[Corner] | None = None, trials: int | None = None) -> Iterator[Played]:
        """Rounds at random instances of every corner, one each or `trials`."""
        for number, edge in enumerate(self.edges() if corners is None else corners):
            for last in [()] if trials is None else [(trial,) for trial in range(trials)]:
                yield self.play(self.drawn(edge, name, number, *last))

    def sides(self, at: At, terms: Callable[[Played], Sequence[Any]]) -> list[float]:
        return [float(value) for value in terms(self.play(at))]

    # Inequalities

    def attack(
        self, terms: Terms[Played], effort: str, name: str, corners: Iterable[Corner] | None = None, **options: Any
    ) -> Found:
        """Search for the largest left/right of a statement over admissible instances."""

        def sides(z: torch.Tensor, edge: Corner) -> tuple[torch.Tensor, ...]:
            values = terms(self.play(self.build(z, edge)))
            return tuple(v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=DOUBLE) for v in values)

        edges = self.edges() if corners is None else list(corners)
        amount: dict[str, Any] = dict(zip(("restarts", "steps"), self.effort[effort])) | options
        amount["starts"] = [*options.get("starts", ()), *self.starts(edges)]
        climb = search.maximise_together if self.together else search.maximise
        return climb(sides, lambda edge: edge.size, self.key.fold(name), edges=edges, **amount)

    def survives(
        self,
        terms: Terms[Played],
        name: str,
        what: str = "",
        corners: Iterable[Corner] | None = None,
        needs: Any = None,
        unlike: str = "",
        **options: Any,
    ) -> Check:
        """The check of an inequality: it holds where the search does not break it.

        Args:
            name: of the search's random numbers.
            what: which inequality, where a claim has several.
            corners: default the standard ones.
            needs: what the worst instance must meet.
            unlike: why both sides do not scale alike, where they must not (see `test_units`).
            options: of the search.
        """
        needs = self.needs if needs is None else needs

        def check(effort: str) -> Outcome:
            found = self.attack(terms, effort, name, corners, **options)
            at = self.build(found.point, found.edge)
            said = about(
                what, (self.holds_text if found.holds else self.breaks_text).format(n=found.tried, edge=found.edge)
            )
            if not found.holds:
                return Outcome(False, "search", found.ratio, said, self.witness(at, terms, needs))
            if needs is not None:
                self.admissible(at, needs)
            outcome = Outcome(True, "search", found.ratio, said)
            if not self.test_units:
                return outcome
            return self._scaled(outcome, terms, corners or self.edges(), unlike)

        return check

    def witness(self, at: At, terms: Terms[Played], needs: Any) -> dict[str, Any]:
        """An instance as data, with both sides and the slack of every assumption."""
        (left, right, *_), slacks = self.sides(at, terms), self.slacks(at, needs)
        data = {"instance": self.dump(at), "left": left, "right": right}
        return data | {"slacks": slacks} if slacks else data

    def stored(self, at: Callable[[], At], terms: Terms[Played], why: str, needs: Any = None) -> Check:
        """An inequality on a stored instance, of which every assumption that it must meet is checked."""

        def check(effort: str) -> Outcome:
            instance = at()
            slacks = self.admissible(instance, self.needs if needs is None else needs)
            left, right = self.sides(instance, terms)[:2]
            worst = left / right if right > 0 else ratio(left, right)  # rare events have small moments
            holds = worst <= 1 + ROUNDING
            said = about(why, f"left {left:{self.number_format}}, right {right:{self.number_format}}")
            data = {"instance": self.dump(instance), "left": self.rounded(left), "right": self.rounded(right)}
            data |= {"slacks": slacks} if slacks else {}
            return Outcome(holds, "exact", worst if right > 0 or holds else None, said, None if holds else data)

        return check

    def sharpened(
        self, terms: Terms[Played], name: str, corners: Iterable[Corner] | None = None, enough: float = 1 + 1e-6,
        **options: Any,
    ) -> Check:  # fmt: skip
        """The control of an inequality: a sharper one under a search that stops where it has broken it."""
        return self.survives(terms, name, corners=corners, enough=enough, **options)

    # Units

    def alike(self, terms: Callable[[Played], Sequence[Any]], edges: Iterable[Corner] | None = None) -> bool:
        """Whether all terms change by the same factor in other units, at a random quadratic of each edge."""
        quadratic = lambda edges: [edge for edge in edges if edge.shape == "quadratic"]
        edges = quadratic(edges or ()) or quadratic(self.unit_edges)
        if not edges:
            raise ValueError("unit_edges=(): expected edges at which units are tested. Fix: name one")
        instances = (self.drawn(edge, "units") for edge in edges)
        scaled = lambda at: lambda a, b: self.sides(self.rescaled(at, a, b), terms)
        return all(units(scaled(at))[0] for at in instances)

    def _scaled(
        self, outcome: Outcome, terms: Callable[[Played], Sequence[Any]], edges: Iterable[Corner] | None, unlike: str
    ) -> Outcome:
        alike = self.alike(terms, edges)
        said = unlike if unlike and not alike else self.units_text[alike]
        holds = outcome.holds and alike != bool(unlike)
        return replace(outcome, holds=holds, detail=f"{outcome.detail}; {said}")

    def with_units(self, check: Check, terms: Callable[[Played], Sequence[Any]], unlike: str = "") -> Check:
        """A check that also demands that all terms scale alike in other units, or, with words why, that they do not."""
        return lambda effort: self._scaled(check(effort), terms, None, unlike)


def about(what: str, found: str) -> str:
    """A sentence with what it is about in front."""
    return f"{what}: {found}" if what else found


def require(slacks: dict[str, float], names: Iterable[str]) -> None:
    """Raise AssertionError where a named assumption is broken."""
    for name in names:
        if slacks[name] < -1e-9:
            raise AssertionError(f"{name} is broken by {-slacks[name]:.3g}")


def largest_gap(
    rounds: Iterable[Any], pairs: Pairs[Any], scale: Callable[[Any, torch.Tensor, torch.Tensor], Any]
) -> Gap:
    """The largest gap between the sides of an identity, over `scale` of the round and both sides."""
    found = Gap(0.0, None, 0, 0)
    for q in rounds:
        found = found._replace(rounds=found.rounds + 1)
        for left, right in pairs(q):
            difference = (left - right).abs().max()
            gap = math.inf if bool(difference.isnan()) else float(difference / scale(q, left, right))
            found = found._replace(pairs=found.pairs + 1)
            if gap > found.size:
                found = found._replace(size=gap, at=q.at)
    return found
