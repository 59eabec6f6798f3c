"""Tight constants: known results, closed forms, searches that stay below them, sharper constants that are refuted."""

import math
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from fedtheory.papers import EXTRAS
from fedtheory.papers import worst_case as worst_case_items
from fedtheory.running import records
from fedtheory.theory.fedsub import round as fedsub_round
from fedtheory.theory.ssf.attack import attack
from fedtheory.theory.ssf.lemma2 import lemma2
from fedtheory.theory.worst_case import program as worst_case
from fedtheory.theory.worst_case import reached as worst_case_search
from fedtheory.theory.worst_case.program import Program, Symbols, Tight, settles, trace_fedavg

ROOT = Path(__file__).resolve().parent.parent
CLOSE = 1e-6  # relative; the solver is asked for 1e-7
QUICK = {"restarts": 2, "steps": 20}


def value(tight: Tight) -> float:
    """The dual value, once the primal one agrees with it."""
    assert tight.gap <= CLOSE * max(1.0, abs(tight.dual))
    return tight.dual


def close(number: float):
    return pytest.approx(number, rel=CLOSE, abs=CLOSE)


def geometric(K: int, lr: float) -> float:
    """||y^k - x|| <= ((1 + eta L)^k - 1)/L ||G||, by the triangle inequality; F = -x^2/2 attains it."""
    return sum(((1 + lr) ** k - 1) ** 2 for k in range(K)) / (K**3 * lr**2)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_gradient_descent_has_its_known_rate(steps):
    """FedAvg with one client is gradient descent: F(x_N) - F* <= L ||x_0 - x*||^2/(4 N L + 2) with eta = 1/L."""
    from PEPit import Expression, Point
    from PEPit.point import null_point

    at = Symbols.make(1, steps, 1.0, tilted=False)
    traced = trace_fedavg(at, 1.0)
    program = Program(at, traced, convex=True)
    solution, least = Point(), Expression()
    program.losses[0].add_point((solution, null_point, least))
    end = program.value(traced.x[0].expand(1, -1), at.after[0])
    assert value(program.maximise(end - least, solution**2 <= 1)) == close(1 / (4 * steps + 2))


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_drift_has_a_closed_form(K):
    """Lemma 2, Lemma 1: any losses ((1 + eta L)^k - 1)^2, convex ones k^2; P, N and r/m change nothing."""
    lr = 1 / (2 * K)
    assert value(worst_case.ssf_drift(K, lr)) == close(geometric(K, lr))
    assert value(worst_case.ssf_drift(K, 3 * lr, parts=2, N=2)) == close(geometric(K, 3 * lr))
    assert value(worst_case.ssf_drift(K, lr, convex=True)) == close((K - 1) * (2 * K - 1) / (6 * K**2))
    assert value(worst_case.fedsub_drift(K, lr, parts=2, n=2)) == close(geometric(K, lr))


def test_drift_at_the_largest_step_stays_below_one_half_for_every_K():
    """A left Riemann sum of an increasing function: at most 4 int_0^1 (e^(u/2) - 1)^2 du = 4e - 16 sqrt(e) + 16."""
    limit = 4 * math.e - 16 * math.sqrt(math.e) + 16
    constants = [geometric(K, 1 / (2 * K)) for K in range(1, 2000)]
    assert constants == sorted(constants)
    assert 0.998 * limit < constants[-1] < limit < 0.4937


def test_without_controls_drift_grows_with_heterogeneity():
    """FedAvg's constant is 1 + zeta^2/||grad F||^2 times that of exact controls."""
    for zeta2 in (0.0, 3.0):
        assert value(worst_case.fedavg_drift(3, 0.1, zeta2)) == close((1 + zeta2) * geometric(3, 0.1))


def test_descent_has_closed_forms():
    """K = 1: 1 - eta L/2. Exact controls: gradient descent on the curvature L. Lemma 3 at K = 2: g_bar = (1 + b) G."""
    s = 0.25
    assert value(worst_case.ssf_descent(1, s, 0.5, parts=2, N=1)) == close(1 - s / 2)
    assert value(worst_case.one_round(1, s, 10.0)) == close(1 - s / 2)
    for convex in (False, True):
        assert value(worst_case.one_round(3, s, None, convex=convex)) == close((1 - (1 - s / 3) ** 6) / (2 * s))
    b = (s - 1) / (6 - s)
    assert value(worst_case.ssf_descent(2, s, 0.25, N=2)) == close((1 + b) - s / 2 * (1 + b) ** 2 + 3 * b**2)
    assert value(worst_case.fedsub_descent(3, s / 3, n=2)) == close((1 - (1 - s / 3) ** 6) / (2 * s))


CASES = {
    "lemma 2": ("ssf_drift", (3, 1 / 6), {}),
    "lemma 2, convex": ("ssf_drift", (3, 1 / 6), {"convex": True}),
    "lemma 2, projected": ("ssf_drift", (2, 0.5), {"parts": 2}),
    "fedavg": ("fedavg_drift", (3, 1 / 6, 4.0), {}),
    "lemma 1": ("fedsub_drift", (3, 0.05), {"n": 2, "parts": 2}),
    "lemma 3": ("ssf_descent", (2, 0.25, 0.25), {}),
    "round": ("one_round", (2, 0.25, None), {}),
    "fedavg round": ("one_round", (2, 0.25, 1.0), {}),
    "fedsub lemma 3": ("fedsub_descent", (2, 0.05), {"n": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_search_through_the_algorithms_code_reaches_the_tight_constant_and_never_more(case):
    name, arguments, options = CASES[case]
    tight = value(getattr(worst_case, name)(*arguments, **options))
    found = getattr(worst_case_search, name)(*arguments, **options, **QUICK)
    descent = "lemma 3" in case or "round" in case
    ratio = tight / found if descent else found / tight
    assert ratio <= 1 + CLOSE
    assert ratio >= (0.97 if case == "fedavg round" else 0.995)


def test_a_constant_sharpened_below_the_tight_one_is_refuted():
    """Lemma 2 with its terms and its own edges: the tight constant survives the search, 0.99 of it does not."""
    tight = value(worst_case.ssf_drift(3, 1 / 6))
    edges = worst_case_search.ssf_edges(1, 3, 1 / 6)
    assert attack(lemma2(0.0, tight * (1 + CLOSE)), "quick", "tight", edges).holds
    assert not attack(lemma2(0.0, 0.99 * tight), "quick", "sharper", edges).holds


def test_evidence_for_the_ledger():
    """The printed constants hold with evidence "sdp"; sharpened ones are refuted by the same check."""
    drift = {f"K = {K}": partial(worst_case.ssf_drift, K, 1 / (2 * K)) for K in (2, 3)}
    outcome = settles(drift, 12.0, "Lemma 2")("quick")
    assert outcome.holds
    assert outcome.evidence == "sdp"
    assert outcome.margin == close(geometric(3, 1 / 6) / 12)
    assert not settles(drift, 0.2, "Lemma 2")("quick").holds
    descent = {"K = 1": partial(worst_case.ssf_descent, 1, 0.25, 0.5)}
    assert settles(descent, 0.25, "Lemma 3", guaranteed=True)("quick").margin == close(0.25 / 0.875)
    assert not settles(descent, 0.9, "Lemma 3", guaranteed=True)("quick").holds
    rising = {"eta L = 3": partial(worst_case.ssf_descent, 1, 3.0, 0.5)}
    assert not settles(rising, 0.25, "Lemma 3", guaranteed=True)("quick").holds


def test_no_constant_does_where_the_drift_outgrows_its_price():
    """Exact controls keep what FedAvg loses: at a stationary point of F clients that differ still drift."""
    at = Symbols.make(2, 2, 0.5, tilted=False)
    traced = trace_fedavg(at, 0.25)
    program = Program(at, traced, convex=False)
    assert program.maximise(program.square(traced.y), program.square(at.G) <= 1).dual == math.inf


def test_fedsubs_conditions_are_where_the_picture_draws_them():
    for n, limit, parts in ((2, 0.1, 1), (1, 32**-0.5, 1)):
        for x, admitted in ((0.999 * limit, True), (1.001 * limit, False)):
            edge = worst_case_search.fedsub_edges(n, 4, x / 4, parts)[0]
            at = fedsub_round.build(torch.zeros(edge.size, dtype=torch.float64), edge)
            assert (min(fedsub_round.conditions(at).values()) >= 0) == admitted
    edge = worst_case_search.fedsub_edges(2, 4, 64**-0.5 / 4, 2)[0]
    at = fedsub_round.build(torch.zeros(edge.size, dtype=torch.float64), edge)
    assert fedsub_round.conditions(at)["(31)"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["ssf/worst_case", "fedsub/worst_case"])
def test_committed_tables(name):
    """Within the paper's step sizes: printed no sharper than tight; everywhere: the search stays below tight."""
    record = records.load(ROOT / "figures", name)
    assert record["scale"] == "paper"
    for row in record["table"]:
        tight, paper = row["tight_dual"], row["paper"]
        upper = row["panel"] in ("Lemma 1", "Lemma 2", "drift")
        slack = 1e-5 * max(1.0, abs(tight))
        if math.isfinite(tight):
            assert abs(tight - row["tight_primal"]) <= slack
            assert (row["reached"] <= tight + slack) if upper else (row["reached"] >= tight - slack)
        if not math.isnan(paper):
            assert (tight <= paper) if upper else (tight >= paper)
    assert EXTRAS[name].draw(record["table"]).axes


@pytest.mark.parametrize("paper", ["ssf", "fedsub"])
def test_the_programs_give_the_committed_numbers(paper):
    """One row of every curve, solved again."""
    curves = {"ssf": worst_case_items.ssf_curves, "fedsub": worst_case_items.fedsub_curves}[paper]()
    table = records.load(ROOT / "figures", f"{paper}/worst_case")["table"]
    for place, curve in enumerate(curves):
        rows = [row for row in table if (row["panel"], row["curve"]) == (curve.panel, curve.label)]
        row = rows[place % len(rows)]
        assert value(curve.tight(*curve.arguments(row["x"]), **curve.options)) == pytest.approx(
            row["tight_dual"], rel=1e-5, abs=1e-5
        )


def test_pepit_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PEPit", None)
    with pytest.raises(ModuleNotFoundError, match=r"PEPit.*Fix: pip install"):
        worst_case.ssf_drift(2, 0.1)
