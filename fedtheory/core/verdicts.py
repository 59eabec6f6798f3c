"""What our numbers say about a printed one: one rule for all papers.

A printed statement is a region in which a quantity lies if the statement holds: a level, or the side of a bound. Ours
is a mean and a 95% interval over seeds; two methods are compared by the interval of their difference, paired by seed.

    matches             the paper's data, network and length, and the whole interval lies in the region
    direction holds     the same for a side, where data, network or length are others
    inconclusive        the interval lies on both sides of the region's edge (the number of seeds that would decide is
                        said), there is one seed, or runs diverge where data, network or length are others
    direction reversed  data, network or length are others, and the whole interval lies outside: more seeds of the
                        same run would not decide, and only the paper's own can contradict
    contradicted        the paper's data, network and length, and the whole interval lies outside
    not tested          not run; run as a smoke test; a level, where data, network or length are others; a statement
                        whose own condition our runs did not meet, or that no run of this length could have failed
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedtheory.core import checks

VERDICTS = ("matches", "direction holds", "inconclusive", "direction reversed", "contradicted", "not tested")
MATCHES, HOLDS, OPEN, REVERSED, AGAINST, UNTESTED = VERDICTS
RUNS = ("paper's", "reduced", "stand-in", "smoke", "")
"""What ran: the paper's data, network and length; the same kind at a smaller one; other data in their place; a few
seconds' test; nothing."""
AUTHORS = "authors' files"
TUNINGS = ("printed", AUTHORS, "ours", "")
MOST = 1000  # seeds that are asked for by number


def turned(verdict: str) -> str:
    """What a verdict on a side says of the other side."""
    return {MATCHES: AGAINST, AGAINST: MATCHES, HOLDS: REVERSED, REVERSED: HOLDS}.get(verdict, verdict)


_Interval = tuple[float, float, float]  # mean, low, high


@dataclass(frozen=True)
class Region:
    """Where a quantity lies if a statement holds: low < quantity < high.

    Fields:
        low, high: its edges.
        side: whether it is the side of a bound, which other data can show too; False: a level.
    """

    low: float
    high: float
    side: bool

    def misses(self, value: float) -> float:
        """How far a value lies from the nearest edge: negative inside."""
        return max(self.low - value, value - self.high)


def times(paper: float, factor: float = 1.5) -> Region:
    """The level of a positive number: within a factor of it."""
    return Region(paper / factor, paper * factor, False)


def points(paper: float, width: float = 2.0) -> Region:
    """The level of an accuracy in percent: within two points."""
    return Region(paper - width, paper + width, False)


def rounded(paper: float, digits: int) -> Region:
    """The level of a number that is printed with so many decimals."""
    half = 0.5 * 10.0**-digits
    return Region(paper - half, paper + half, False)


def above(bound: float = 0.0) -> Region:
    """More than a bound."""
    return Region(bound, math.inf, True)


def below(bound: float = 0.0) -> Region:
    """Less than a bound."""
    return Region(-math.inf, bound, True)


COMPARABLE = Region(-2.0, 2.0, True)  # a difference in points that a paper calls comparable, or prints as next to none
ALIKE = Region(1 / 1.5, 1.5, True)  # a ratio of errors, likewise


def like(printed: float) -> Region:
    """On the side of 0 on which a printed difference in points lies; up to a tenth of a point it states no order."""
    return COMPARABLE if abs(printed) < 0.1 + 1e-9 else above() if printed > 0 else below()


def ordered(printed: float) -> Region:
    """A ratio of errors above 1, as printed; within 1% of it a printed one states no order."""
    return ALIKE if abs(printed - 1) < 0.01 else above(1.0)


def judge(region: Region, found: _Interval, seeds: int, ran: str) -> tuple[str, str]:
    """The verdict on a measured quantity, and why in words.

    Args:
        region: of the printed statement.
        found: mean and 95% interval over seeds; NaN where a run diverged.
        seeds: how many.
        ran: one of RUNS.
    """
    checks.choice("ran", ran, RUNS)
    mean, low, high = found
    if seeds == 0 or not ran:
        return UNTESTED, "not run"
    if ran == "smoke":
        return UNTESTED, "a smoke test decides nothing"
    if math.isnan(region.low):
        return UNTESTED, "no number is printed"
    if not region.side and ran != "paper's":
        return UNTESTED, "levels are compared on the paper's data, network and length only"
    if math.isnan(mean):
        return (AGAINST, "diverged") if ran == "paper's" else (OPEN, "diverged here")
    if seeds == 1:
        return OPEN, "one seed: two at least decide"
    if region.misses(low) < 0 and region.misses(high) < 0:
        return (MATCHES, "the whole interval lies where it is printed") if ran == "paper's" else (HOLDS, "as printed")
    if low > region.high or high < region.low:
        if ran == "paper's":
            return AGAINST, "the whole interval lies elsewhere"
        return REVERSED, f"the other way here ({ran} scale), which only the paper's can decide"
    if low == high:
        return OPEN, "on the edge in every seed, neither as stated nor the other way"
    return OPEN, f"the interval lies on both sides: {needed(region, found, seeds)} would decide"


def diverged(lost: Sequence[bool], ran: str) -> tuple[str, str]:
    """The verdict on a run that diverges in print; `lost`: whether ours does, one per seed."""
    if ran != "paper's" or not lost:
        return UNTESTED, "whether it diverges is compared on the paper's data, network and length only"
    if any(lost) and not all(lost):
        return OPEN, f"diverges in {sum(lost)} of {len(lost)} seeds"
    return (MATCHES, "diverges here too") if all(lost) else (AGAINST, "finite here")


def exact(region: Region, value: float) -> tuple[str, str]:
    """The verdict on a number without chance: counted, or computed from printed ones."""
    if region.misses(value) >= 0:
        return AGAINST, "another number"
    if region.side or region.low <= 0 or abs(value / math.sqrt(region.low * region.high) - 1) < 0.01:
        return MATCHES, "as printed"
    return MATCHES, f"within a factor {math.sqrt(region.high / region.low):.3g} of it"


def needed(region: Region, found: _Interval, seeds: int) -> str:
    """How many seeds would make the interval fit on one side of the region's edge, if mean and spread stay."""
    from scipy import stats

    mean, low, high = found
    room = min(abs(mean - edge) for edge in (region.low, region.high) if math.isfinite(edge))
    spread = (high - low) / 2 * math.sqrt(seeds) / stats.t.ppf(0.975, seeds - 1)
    for n in range(seeds + 1, MOST + 1):
        if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) < room:
            return f"about {n} seeds"
    return f"more than {MOST:,} seeds"


def combine(verdicts: Iterable[str]) -> str:
    """Of a statement that several numbers decide together: contradicted or reversed by one, open if one is, else the
    weakest.
    """
    found = [checks.choice("verdicts", verdict, VERDICTS) for verdict in verdicts]
    tested = [verdict for verdict in found if verdict != UNTESTED]
    for verdict in (AGAINST, REVERSED, OPEN, HOLDS, MATCHES):
        if verdict in tested:
            return verdict
    return UNTESTED


def tally(verdicts: Sequence[str]) -> str:
    """Such as "40 matches, 3 direction holds, 2 inconclusive": those that occur."""
    counts = {verdict: sum(one == verdict for one in verdicts) for verdict in VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
