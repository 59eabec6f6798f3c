"""What our numbers say about a printed one: one rule for all papers.

A printed statement is a region in which a quantity lies if the statement holds: a level, or the side of a bound. Ours
is a mean and a 95% interval over seeds; two methods are compared by the interval of their difference, paired by seed.

    matches             the paper's data, network and length, and the whole interval lies in the region
    same order          a count that is not equal to the printed number, within a factor of 1.5 of it
    direction holds     the same for a side, where data, network or length are others
    inconclusive        the interval lies on both sides of the region's edge (it is said from how many seeds on it is
                        more likely than not decided), there is one seed, or some diverge (all, where data, network or
                        length are others). Runs that are all alike have no interval: six seeds decide a side, and
                        five whether a run that diverges in print does
    direction reversed  data, network or length are others, and the whole interval lies outside: more seeds of the
                        same run would not decide, and only the paper's own can contradict
    contradicted        the paper's data, network and length, and the whole interval lies outside, or all of two
                        seeds or more diverge where none does in print
    not tested          not run; run as a smoke test; a level, where data, network or length are others; a statement
                        whose own condition our runs did not meet, or that no run of this length could have failed
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedtheory.core import checks

VERDICTS = (
    "matches",
    "same order",
    "direction holds",
    "inconclusive",
    "direction reversed",
    "contradicted",
    "not tested",
)
MATCHES, SAME_ORDER, HOLDS, OPEN, REVERSED, AGAINST, UNTESTED = VERDICTS
RUNS = ("paper's", "inferred", "reduced", "stand-in", "smoke", "")
"""What ran: the paper's data, network and length; its data and network, at a length that it does not print; the same
kind at a smaller one; other data in their place; a few seconds' test; nothing."""
AUTHORS = "authors' files"
TUNINGS = ("printed", AUTHORS, "ours", "")
MOST = 1000  # seeds that are asked for by number
_FACTOR = 1.5
_ALIKE_SEEDS = 6  # from so many on, all on one side, a sign test rejects a fair coin at 5%
_FINITE_SEEDS = 5  # from so many on, all finite or none, a one-sided test rejects a fair coin at 5%


def turned(verdict: str) -> str:
    """Return what a verdict on one side says of the other side."""
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


def times(paper: float, factor: float = _FACTOR) -> Region:
    """Return the region within a factor of a positive number."""
    return Region(paper / factor, paper * factor, False)


def points(paper: float, width: float = 2.0) -> Region:
    """Return the region within `width` points of an accuracy in percent."""
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
    """Return the side of 0 of a printed difference in points; up to a tenth of a point it states no order."""
    return COMPARABLE if abs(printed) < 0.1 + 1e-9 else above() if printed > 0 else below()


def ordered(printed: float) -> Region:
    """A ratio of errors above 1, as printed; within 1% of it a printed one states no order."""
    return ALIKE if abs(printed - 1) < 0.01 else above(1.0)


def judge(region: Region, found: _Interval, seeds: int, ran: str, lost: int = 0) -> tuple[str, str]:
    """Judge a measured quantity: return the verdict, and why in words.

    Args:
        region: of the printed statement.
        found: mean and 95% interval over seeds; NaN where a run diverged.
        seeds: how many.
        ran: one of RUNS.
        lost: in how many the run of the statement diverged; 0 and NaN: that which it is compared with did.
    """
    checks.choice("ran", ran, RUNS)
    mean, low, high = found if all(map(math.isfinite, found)) else (math.nan,) * 3
    if seeds == 0 or not ran:
        return UNTESTED, "not run"
    if ran == "smoke":
        return UNTESTED, "a smoke test decides nothing"
    if math.isnan(region.low):
        return UNTESTED, "no number is printed"
    if not region.side and ran != "paper's":
        return UNTESTED, "levels are compared on the paper's data, network and length only"
    if math.isnan(mean):
        if lost == seeds > 1 and ran == "paper's":
            return AGAINST, "diverged"
        return OPEN, f"diverges in {lost} of {seeds} seeds" if lost else "what it is compared with diverges"
    if seeds == 1:
        return OPEN, "one seed: two at least decide"
    if low == high and region.side and seeds < _ALIKE_SEEDS and region.misses(mean):
        return OPEN, f"the same in all seeds, which has no interval: by signs {_ALIKE_SEEDS} at least decide"
    if region.misses(low) < 0 and region.misses(high) < 0:
        return (MATCHES, "the whole interval lies where it is printed") if ran == "paper's" else (HOLDS, "as printed")
    if low > region.high or high < region.low:
        if ran == "paper's":
            return AGAINST, "the whole interval lies elsewhere"
        scale = "length inferred" if ran == "inferred" else f"{ran} scale"
        return REVERSED, f"the other way here ({scale}), which only the paper's can decide"
    if low == high:
        return OPEN, "on the edge in every seed, neither as stated nor the other way"
    return OPEN, f"the interval lies on both sides: {needed(region, found, seeds)} would as likely as not decide"


def chance(region: Region, found: _Interval, seeds: int) -> float:
    """p of a verdict: how seldom an interval over as many seeds misses a value as far away as the nearest edge is.

    Two-sided, by Student's t: below 0.05 the 95% interval lies on one side of the edge. NaN without an interval.
    """
    from scipy.special import stdtr, stdtrit

    mean, low, high = found
    if not high > low:
        return math.nan
    error = (high - low) / 2 / float(stdtrit(seeds - 1, 0.975))
    return 2 * float(stdtr(seeds - 1, -abs(region.misses(mean)) / error))


def significant(chances: Sequence[float], level: float = 0.05, any_error: bool = False) -> list[bool]:
    """Which of many verdicts stay if their errors are limited together.

    By Benjamini and Hochberg (1995) at most a share `level` of those kept is expected to be wrong; `any_error`: by Holm
    (1979) the chance that one of them is, is at most `level`.
    """
    order, total = sorted(range(len(chances)), key=lambda at: chances[at]), len(chances)
    if any_error:
        passed = [chances[at] <= level / (total - place) for place, at in enumerate(order)]
        count = passed.index(False) if False in passed else total
    else:
        count = max((place for place, at in enumerate(order, 1) if chances[at] <= level * place / total), default=0)
    return [at in order[:count] for at in range(total)]


def beside(rival: str, gap: _Interval, printed: float) -> str:
    """Say how far a level lies from a rival's, ours and in print, as a cell's reason begins."""
    return f"minus {rival} {gap[0]:+.3g} [{gap[1]:+.3g}, {gap[2]:+.3g}], printed {printed:+.3g}"


_BESIDE = re.compile(r"minus .+? ([+-]\S+ \[[^]]+\]), printed [^:;]+")


def read_beside(reason: str) -> tuple[str, str] | None:
    """Read the sentence of `beside` in a cell's reason, and our difference in it; None where there is none."""
    found = _BESIDE.search(reason)
    return found and (found[0], found[1])


def diverged(lost: Sequence[bool], ran: str) -> tuple[str, str]:
    """The verdict on a run that diverges in print; `lost`: whether ours does, one per seed."""
    if ran != "paper's" or not lost:
        return UNTESTED, "whether it diverges is compared on the paper's data, network and length only"
    if any(lost) and not all(lost):
        return OPEN, f"diverges in {sum(lost)} of {len(lost)} seeds"
    if len(lost) < _FINITE_SEEDS:
        return OPEN, f"the same in all seeds: {_FINITE_SEEDS} at least decide"
    return (MATCHES, "diverges here too") if all(lost) else (AGAINST, "finite here")


def exact(region: Region, value: float) -> tuple[str, str]:
    """The verdict on a number without chance: counted, or computed from printed ones.

    It matches where it is equal, to half a percent or to the printed digits (`rounded`).
    """
    if region.misses(value) >= 0:
        return AGAINST, "another number"
    if region.side or region.low <= 0 or region.high < region.low * _FACTOR:
        return MATCHES, "as printed"
    if abs(value / math.sqrt(region.low * region.high) - 1) < 0.005:
        return MATCHES, "as printed"
    return SAME_ORDER, f"within a factor {math.sqrt(region.high / region.low):.3g} of it"


def needed(region: Region, found: _Interval, seeds: int) -> str:
    """How many seeds would make the interval fit on one side of the region's edge, if mean and spread stay.

    Of as many new ones the mean moves: half of such intervals, or some more, fit.
    """
    from scipy.special import stdtrit

    mean, low, high = found
    room = min(abs(mean - edge) for edge in (region.low, region.high) if math.isfinite(edge))
    spread = (high - low) / 2 * math.sqrt(seeds) / stdtrit(seeds - 1, 0.975)
    for n in range(seeds + 1, MOST + 1):
        if stdtrit(n - 1, 0.975) * spread / math.sqrt(n) < room:
            return f"about {n} seeds"
    return f"more than {MOST:,} seeds"


def combine(verdicts: Iterable[str]) -> str:
    """Combine verdicts on one statement: contradicted or reversed by one, open if one is, else the weakest."""
    found = [checks.choice("verdicts", verdict, VERDICTS) for verdict in verdicts]
    tested = [verdict for verdict in found if verdict != UNTESTED]
    for verdict in (AGAINST, REVERSED, OPEN, HOLDS, SAME_ORDER, MATCHES):
        if verdict in tested:
            return verdict
    return UNTESTED


def tally(verdicts: Sequence[str]) -> str:
    """Count verdicts, as in "40 matches, 3 direction holds, 2 inconclusive"; those that occur."""
    counts = {verdict: sum(one == verdict for one in verdicts) for verdict in VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
