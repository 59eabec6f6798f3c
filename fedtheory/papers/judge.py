"""Cells: a printed number, ours, and what the one rule of `running.verdicts` says of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedtheory.papers.store import interval
from fedtheory.running import verdicts
from fedtheory.running.records import Cell
from fedtheory.running.verdicts import Region

NAN = math.nan


@dataclass(frozen=True)
class Rival:
    """What a level is compared with where levels themselves are not comparable: another method on the same seeds.

    Fields:
        name: of the method.
        paper: its printed number.
        values: ours, one per seed.
    """

    name: str
    paper: float
    values: Sequence[float]


def side(
    cell: str,
    paper: float,
    values: Sequence[float],
    region: Region,
    ran: str,
    tuning: str,
    said: str = "",
    *,
    ratio: bool = False,
    certain: str = "",
    own: Sequence[float] | None = None,
) -> Cell:
    """A statement on a quantity that is measured once per seed, such as a difference of two methods.

    `ratio`: its interval is formed and judged on logarithms. `certain`: why no run of this length could have come out
    on the other side, so that nothing is tested; empty: it could. `own`: what the statement is about, of two that are
    compared, NaN where it diverged.
    """
    found = interval([math.log(value) for value in values] if ratio else values)
    edges = Region(_log(region.low), _log(region.high), region.side) if ratio else region
    lost = sum(map(math.isnan, values if own is None else own))
    verdict, why = verdicts.judge(edges, found, len(values), ran, lost)
    if certain:
        verdict, why = verdicts.UNTESTED, f"it could not fail: {certain}"
    p = NAN if verdict == verdicts.UNTESTED else verdicts.chance(edges, found, len(values))
    if ratio:
        mean, low, high = map(math.exp, found)
        found = (mean, low, high)
    return Cell(cell, paper, *found, len(values), verdict, _both(said, why), "run", ran, tuning, p)


def level(
    cell: str,
    paper: float,
    values: Sequence[float],
    region: Region,
    ran: str,
    tuning: str,
    rival: Rival | None = None,
    said: str = "",
) -> Cell:
    """A printed level. Where it is not comparable, its difference to a rival's is judged instead, by its sign."""
    found, p, lost = interval(values), NAN, sum(map(math.isnan, values))
    if ran == "paper's" or rival is None:
        verdict, why = verdicts.judge(region, found, len(values), ran, lost)
        p = verdicts.chance(region, found, len(values))
    elif rival.values is values:
        verdict, why = verdicts.UNTESTED, "the others are compared with it; its level is not comparable"
    else:
        gap, printed = interval([a - b for a, b in zip(values, rival.values, strict=True)]), paper - rival.paper
        verdict, why = verdicts.judge(verdicts.like(printed), gap, len(values), ran, lost)
        p = verdicts.chance(verdicts.like(printed), gap, len(values))
        why = f"{verdicts.beside(rival.name, gap, printed)}: {why}"
    p = NAN if verdict == verdicts.UNTESTED else p
    return Cell(cell, paper, *found, len(values), verdict, _both(said, why), "run", ran, tuning, p, _hole(paper))


def order(
    where: str,
    low: str,
    high: str,
    printed: Mapping[str, float],
    ours: Mapping[str, list[float]],
    ran: str,
    tuning: str,
) -> Cell:
    """Two methods' accuracies: the difference in points, paired by seed. NaN in print: the order alone is stated."""
    paper, gaps = printed[high] - printed[low], [b - a for a, b in zip(ours[low], ours[high], strict=True)]
    region = verdicts.above() if math.isnan(paper) else verdicts.like(paper)
    better = ours[low if paper < 0 else high]
    return side(f"{where} {low} < {high}", paper, gaps, region, ran, tuning, "difference in points", own=better)


def diverges(cell: str, values: Sequence[float], ran: str, tuning: str, said: str = "") -> Cell:
    """A run that diverges in print: NaN of ours are those that do here."""
    verdict, why = verdicts.diverged([math.isnan(value) for value in values], ran)
    return Cell(cell, NAN, *interval(values), len(values), verdict, _both(said, why), "run", ran, tuning, prints="NaN")


def counted(cell: str, paper: float, ours: float, region: Region, said: str, kind: str = "count") -> Cell:
    """A number without chance: counted on messages, tensors or parameters, or computed from printed ones."""
    verdict, why = verdicts.exact(region, ours)
    return Cell(cell, paper, ours, ours, ours, 1, verdict, _both(said, why), kind)


def absent(cell: str, paper: float, reason: str, kind: str = "run") -> Cell:
    """A printed number that was not run, and what is missing."""
    return Cell(cell, paper, NAN, NAN, NAN, 0, verdicts.UNTESTED, reason, kind, prints=_hole(paper))


def unmet(cell: Cell, why: str) -> Cell:
    """A statement whose own condition our runs did not meet: they say nothing of it."""
    return replace(cell, verdict=verdicts.UNTESTED, reason=why)


def _hole(paper: float) -> str:
    """What a table prints in the place of a number."""
    return "no value" if math.isnan(paper) else ""


def _log(edge: float) -> float:
    """Of a region's edge: a ratio has nothing below 0."""
    return math.log(edge) if edge > 0 else -math.inf


def _both(said: str, why: str) -> str:
    return f"{said}; {why}" if said else why
