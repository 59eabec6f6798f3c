"""The one rule of verdicts: where an interval lies, on what, and nothing else."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fedtheory.papers import judge as cells
from fedtheory.papers.store import interval
from fedtheory.running import verdicts
from fedtheory.running.verdicts import (
    AGAINST,
    HOLDS,
    MATCHES,
    OPEN,
    REVERSED,
    UNTESTED,
    Region,
    above,
    below,
    judge,
    points,
    times,
)

FINITE = st.floats(-1e6, 1e6)
REGIONS = st.one_of(
    FINITE.map(above),
    FINITE.map(below),
    FINITE.map(points),
    st.floats(1e-6, 1e6).map(times),
    st.just(verdicts.COMPARABLE),
)


@given(REGIONS, FINITE, st.floats(0, 1e3), st.integers(2, 50), st.sampled_from([r for r in verdicts.RUNS if r]))
def test_only_the_papers_scale_matches_or_contradicts(region, mean, half, seeds, ran):
    verdict, why = judge(region, (mean, mean - half, mean + half), seeds, ran)
    assert why
    if ran != "paper's":
        assert verdict in (HOLDS, OPEN, REVERSED, UNTESTED)
    if ran == "smoke":
        assert verdict == UNTESTED
    if ran in ("reduced", "stand-in"):
        assert (verdict == UNTESTED) == (not region.side)


@given(REGIONS, FINITE, st.floats(1e-9, 1e3), st.integers(2, 50))
def test_the_whole_interval_decides(region, mean, half, seeds):
    low, high = mean - half, mean + half
    verdict, _ = judge(region, (mean, low, high), seeds, "paper's")
    inside, outside = region.low < low and high < region.high, high < region.low or low > region.high
    assert verdict == (MATCHES if inside else AGAINST if outside else OPEN)
    if region.side:
        elsewhere, why = judge(region, (mean, low, high), seeds, "reduced")
        assert elsewhere == (HOLDS if inside else REVERSED if outside else OPEN)
        assert ("seeds would as likely as not decide" in why) == (elsewhere == OPEN)


@pytest.mark.parametrize("ran", ["paper's", "reduced", "stand-in"])
def test_one_seed_and_a_lost_run_decide_nothing_for(ran):
    assert judge(above(), (1.0, 1.0, 1.0), 1, ran)[0] == OPEN
    found = [judge(above(), (math.nan,) * 3, 3, ran, lost) for lost in (3, 1, 0)]
    assert [verdict for verdict, _ in found] == [AGAINST if ran == "paper's" else OPEN, OPEN, OPEN]
    assert [why for _, why in found[1:]] == ["diverges in 1 of 3 seeds", "what it is compared with diverges"]
    assert judge(above(), (math.nan,) * 3, 1, ran, 1)[0] == OPEN
    assert judge(above(), (math.nan,) * 3, 0, "")[0] == UNTESTED


@pytest.mark.parametrize(("spread", "edge"), [(1.0, 0.5), (3.0, 0.4), (0.2, 0.07)])
def test_the_seeds_that_would_decide_do(spread, edge):
    """With as many values of the same spread about the same mean the interval lies on one side, with one less not."""
    found = interval([edge - spread, edge, edge + spread])
    assert judge(above(), found, 3, "paper's")[0] == OPEN
    n = int(verdicts.needed(above(), found, 3).split()[1])

    def verdict(count):  # same sample deviation, whatever the count
        ends = [edge + side * spread * math.sqrt((count - 1) / 2) for side in (-1, 1)]
        return judge(above(), interval([*ends, *[edge] * (count - 2)]), count, "paper's")[0]

    assert (verdict(n), verdict(n - 1)) == (MATCHES, OPEN)
    assert "more than" in verdicts.needed(above(), (1e-9, -1.0, 1.0), 3)


def test_a_number_that_is_not_printed_is_not_tested():
    assert judge(points(math.nan), (1.0, 0.0, 2.0), 3, "paper's")[0] == UNTESTED


def test_a_printed_difference_of_zero_is_comparable():
    assert verdicts.like(0.0) == verdicts.COMPARABLE
    assert verdicts.like(-3.0) == below()
    assert verdicts.like(0.07) == verdicts.like(-0.09) == verdicts.COMPARABLE
    assert verdicts.like(91.0 - 90.9) == verdicts.like(90.2 - 90.1) == verdicts.COMPARABLE  # 0.0999... and 0.1000...
    assert verdicts.like(0.2) == above()
    assert (verdicts.ordered(1.0036), verdicts.ordered(0.995)) == (verdicts.ALIKE, verdicts.ALIKE)
    assert verdicts.ordered(1.02) == above(1.0)
    assert judge(verdicts.like(0.0), (0.5, 0.2, 0.8), 3, "paper's")[0] == MATCHES


@pytest.mark.parametrize("ran", ["paper's", "reduced"])
def test_no_difference_in_any_seed_is_not_the_other_way(ran):
    verdict, why = judge(above(), (0.0, 0.0, 0.0), 3, ran)
    assert verdict == OPEN
    assert "neither as stated nor the other way" in why


@pytest.mark.parametrize(("seeds", "decided"), [(2, False), (5, False), (6, True)])
def test_values_that_are_all_alike_are_judged_by_signs(seeds, decided):
    """0.5^5 * 2 is 6%, 0.5^6 * 2 is 3%."""
    assert judge(above(), (1.0, 1.0, 1.0), seeds, "reduced")[0] == (HOLDS if decided else OPEN)
    assert judge(below(), (1.0, 1.0, 1.0), seeds, "paper's")[0] == (AGAINST if decided else OPEN)
    assert (0.5 ** (seeds - 1) < 0.05) == decided
    assert judge(points(1.0), (1.0, 1.0, 1.0), seeds, "paper's")[0] == MATCHES  # a level is just there
    assert math.isnan(verdicts.chance(above(), (1.0, 1.0, 1.0), seeds))


@given(REGIONS, st.lists(FINITE, min_size=2, max_size=9, unique=True))
def test_p_says_what_the_interval_says(region, values):
    found, n = interval(values), len(values)
    assume(found[2] - found[1] > 1e-6)
    edge = min((region.low, region.high), key=lambda one: abs(found[0] - one))
    p = verdicts.chance(region, found, n)
    assert p == pytest.approx(stats.ttest_1samp(values, edge).pvalue, rel=1e-6, abs=1e-9)
    assume(abs(p - 0.05) > 1e-9)
    if region.side and math.isinf(region.low) + math.isinf(region.high):
        assert (judge(region, found, n, "paper's")[0] != OPEN) == (p < 0.05)


def test_verdicts_that_stay_if_errors_are_limited_together():
    """Benjamini and Hochberg (1995), Sec. 3.2: of these fifteen four stay; three by Bonferroni, and by Holm."""
    text = "0.0001 0.0004 0.0019 0.0095 0.0201 0.0278 0.0298 0.0344 0.0459 0.3240 0.4262 0.5719 0.6528 0.7590 1"
    p = [float(one) for one in text.split()]
    order = [7, 0, 14, 3, 9, 1, 12, 5, 2, 13, 8, 4, 11, 6, 10]
    mixed = [p[at] for at in order]
    for any_error, count in ((False, 4), (True, 3)):
        assert verdicts.significant(mixed, any_error=any_error) == [at < count for at in order]
    assert verdicts.significant([]) == verdicts.significant([], any_error=True) == []
    assert verdicts.significant([0.04, 0.045, 0.05]) == [True] * 3  # the largest decides for all
    assert verdicts.significant([0.04, 0.045, 0.05], any_error=True) == [False] * 3


def test_a_run_that_diverges_in_print():
    """All or none of five seeds: of fair coins seldomer than one in twenty."""
    assert verdicts.diverged([True] * 5, "paper's")[0] == MATCHES
    assert verdicts.diverged([False] * 5, "paper's")[0] == AGAINST
    assert [verdicts.diverged([lost] * 4, "paper's")[0] for lost in (True, False)] == [OPEN, OPEN]
    assert verdicts.diverged([True, False], "paper's")[0] == OPEN
    assert verdicts.diverged([True, True], "reduced")[0] == UNTESTED


def test_an_error_that_is_not_finite_is_a_run_that_diverged():
    assert verdicts.judge(above(), (math.inf,) * 3, 6, "paper's")[0] == OPEN
    assert verdicts.judge(above(), (math.inf,) * 3, 6, "paper's", 6)[0] == AGAINST


def test_a_level_that_is_not_comparable_is_set_against_a_rival():
    first, rest = [60.0, 61.0, 62.0], [58.0, 58.9, 60.1]
    rival = cells.Rival("FedAvg", 80.0, first)
    cell = cells.level("c", 70.0, rest, points(70.0), "reduced", "ours", rival)
    assert (cell.verdict, cell.ours) == (HOLDS, pytest.approx(59.0))
    assert "minus FedAvg" in cell.reason
    assert cells.level("c", 80.0, first, points(80.0), "reduced", "ours", rival).verdict == UNTESTED
    assert cells.level("c", 90.0, rest, points(90.0), "reduced", "ours", rival).verdict == REVERSED
    assert cells.level("c", 59.0, rest, points(59.0, 3), "paper's", "ours", rival).verdict == MATCHES


def test_a_ratio_is_judged_on_logarithms():
    """Twice as much and half as much are the same distance: both decide after as many seeds."""
    more = cells.side("c", 1.0, [1.0, 2.0, 4.0], above(1.0), "paper's", "ours", ratio=True)
    less = cells.side("c", 1.0, [1.0, 0.5, 0.25], below(1.0), "paper's", "ours", ratio=True)
    assert (more.verdict, more.ours, less.ours) == (OPEN, pytest.approx(2.0), pytest.approx(0.5))
    assert more.reason == less.reason
    below_zero = cells.side("c", 1.0, [1.0, 2.0], above(0.0), "paper's", "ours", ratio=True)
    assert below_zero.verdict == MATCHES


def test_numbers_without_chance():
    assert cells.counted("c", 0.43, 0.4295, verdicts.rounded(0.43, 2), "").verdict == MATCHES
    assert cells.counted("c", 0.43, 0.436, verdicts.rounded(0.43, 2), "").verdict == AGAINST


def test_of_several_verdicts():
    assert verdicts.combine([MATCHES, HOLDS]) == HOLDS
    assert verdicts.combine([MATCHES, OPEN, UNTESTED]) == OPEN
    assert verdicts.combine([REVERSED, AGAINST]) == AGAINST
    assert verdicts.combine([HOLDS, REVERSED, OPEN]) == REVERSED
    assert verdicts.combine([UNTESTED]) == verdicts.combine([]) == UNTESTED
    assert verdicts.tally([OPEN, MATCHES, OPEN]) == "1 matches, 2 inconclusive"
    with pytest.raises(ValueError, match="verdicts"):
        verdicts.combine(["reproduced"])


def test_a_region_knows_its_edge():
    assert Region(0.0, 2.0, False).misses(1.5) == -0.5
    assert above(1.0).misses(0.0) == 1.0


@pytest.mark.parametrize(
    ("worse", "better", "verdict"),
    [
        ([math.nan] * 3, [70.0, 71.0, 72.0], OPEN),  # the method printed as worse: no evidence against the order
        ([70.0, 71.0, 72.0], [math.nan] * 3, AGAINST),
        ([70.0, 71.0, 72.0], [math.nan, 71.0, 72.0], OPEN),
        ([60.0, 61.0, 62.5], [70.0, 71.0, 72.0], MATCHES),
    ],
)
def test_of_two_methods_it_is_the_better_one_whose_divergence_contradicts(worse, better, verdict):
    cell = cells.order("here", "a", "b", {"a": 60.0, "b": 70.0}, {"a": worse, "b": better}, "paper's", "ours")
    assert cell.verdict == verdict
    assert math.isnan(cell.p) == any(map(math.isnan, (*worse, *better)))
    turned = cells.order("here", "b", "a", {"a": 60.0, "b": 70.0}, {"a": worse, "b": better}, "paper's", "ours")
    assert turned.verdict == verdict  # printed as b ahead, whichever comes first
