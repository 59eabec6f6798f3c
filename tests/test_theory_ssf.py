"""The ledger of SSF up to Lemma 4: complete, verdicts frozen, counterexamples replay, controls are refuted and near."""

import json
import re
from pathlib import Path

import pytest
import torch
from entries import brief, entry_of, outcome, refuting

from fedtheory.theory.claim import Printed
from fedtheory.theory.search import Adam, maximise_together, units
from fedtheory.theory.ssf import algorithm, claims, family
from fedtheory.theory.ssf import lemma4 as lemma4_claims
from fedtheory.theory.ssf.attack import BENCH, NOISY, build, edges, found_gap, identical, on, survives, times
from fedtheory.theory.ssf.bounds import scaled
from fedtheory.theory.ssf.lemma1 import lemma1
from fedtheory.theory.ssf.lemma2 import (
    check_concave,
    eq10,
    eq11_12,
    eq16,
    eq20,
    eq109,
    lemma2,
    step6_repaired,
    step6_sum,
)
from fedtheory.theory.ssf.lemma3 import (
    STILL,
    cross,
    eq21,
    eq35,
    eq36,
    eq38_39,
    eq40,
    eq42_repaired,
    eq43_45,
    eq48,
    eq53_54,
    eq55,
    eq57,
    lemma3,
)
from fedtheory.theory.ssf.lemma4 import LEMMA4, eq60, eq68, eq75, eq80, eq81, eq87, eq99, lemma4
from fedtheory.theory.ssf.moments import Terms
from fedtheory.theory.ssf.round import ROOT, admissible, crossed, dump, leap, load, offset, play, rescaled, steep, tiny
from fedtheory.theory.ssf.sharper import sharper_lemma2, sharper_lemma3, sharper_lemma4, steady

HOLDS, CAVEAT, FALSE, SLIP = "holds", "holds-with-caveat", "false-as-stated", "slip"
VERDICTS = {
    "ssf.eq1-5": HOLDS,
    "ssf.eq6-7": HOLDS,
    "ssf.info_loss": HOLDS,
    "ssf.alg1": HOLDS,
    "ssf.shared_projector": HOLDS,
    "ssf.refresh_tunable": CAVEAT,
    "ssf.r_tradeoff": HOLDS,
    "ssf.A2": FALSE,
    "ssf.A3": CAVEAT,
    "ssf.lemma1": HOLDS,
    "ssf.lemma2": HOLDS,
    "ssf.lemma2.noise": HOLDS,
    "ssf.lemma2.eq9-10": HOLDS,
    "ssf.lemma2.eq11-12": HOLDS,
    "ssf.lemma2.eq13-16": HOLDS,
    "ssf.lemma2.eq17-20": HOLDS,
    "ssf.lemma2.step6": SLIP,
    "ssf.lemma3": CAVEAT,
    "ssf.lemma3.eq22-25": HOLDS,
    "ssf.lemma3.eq26-28": CAVEAT,
    "ssf.lemma3.eq29-30": CAVEAT,
    "ssf.lemma3.eq31": CAVEAT,
    "ssf.lemma3.eq32-36": CAVEAT,
    "ssf.lemma3.eq37-40": CAVEAT,
    "ssf.lemma3.eq42": FALSE,
    "ssf.lemma3.eq43-45": HOLDS,
    "ssf.lemma3.eq46-48": CAVEAT,
    "ssf.lemma3.eq49-54": HOLDS,
    "ssf.lemma3.eq55-56": FALSE,
    "ssf.lemma3.eq57-59": CAVEAT,
    "ssf.lemma4": CAVEAT,
    "ssf.lemma4.eq61-63": HOLDS,
    "ssf.lemma4.eq64-67": HOLDS,
    "ssf.lemma4.eq68": HOLDS,
    "ssf.lemma4.eq69-75": CAVEAT,
    "ssf.lemma4.eq76-80": HOLDS,
    "ssf.lemma4.eq81": HOLDS,
    "ssf.lemma4.eq82-87": HOLDS,
    "ssf.lemma4.eq88-99": CAVEAT,
    "ssf.lemma4.eq100-101": HOLDS,
    "ssf.sharper.lemma2": HOLDS,
    "ssf.sharper.lemma3": HOLDS,
    "ssf.sharper.lemma4": HOLDS,
    "ssf.sharper.theorem": HOLDS,
    "ssf.sharper.short": HOLDS,
    "ssf.family": HOLDS,
    "ssf.family_noise": HOLDS,
    "ssf.limits_average": HOLDS,
    "ssf.limits_masks": HOLDS,
    "ssf.limits_steps": HOLDS,
    "ssf.limits_curvature": HOLDS,
    "ssf.partial_control": HOLDS,
}
CLAIMS = {claim.id: claim for claim in claims.CLAIMS}
DECIDED_HERE = [  # exact and symbolic ones, and of the searches those whose verdict is the most surprising
    "ssf.eq1-5", "ssf.eq6-7", "ssf.info_loss", "ssf.alg1", "ssf.shared_projector", "ssf.refresh_tunable",
    "ssf.r_tradeoff", "ssf.A2", "ssf.A3", "ssf.lemma1", "ssf.lemma2.noise", "ssf.lemma3",
    "ssf.lemma3.eq22-25", "ssf.lemma3.eq26-28", "ssf.lemma3.eq31", "ssf.lemma3.eq42",
    "ssf.lemma3.eq55-56", "ssf.lemma4.eq61-63", "ssf.lemma4.eq64-67", "ssf.lemma4.eq100-101",
    "ssf.lemma3.eq46-48", "ssf.sharper.lemma2", "ssf.family",
    "ssf.limits_average", "ssf.limits_masks", "ssf.limits_steps", "ssf.limits_curvature",
    "ssf.partial_control",
    "ssf.sharper.lemma4", "ssf.sharper.theorem", "ssf.sharper.short",
]  # fmt: skip
REFUTED = [name for name, verdict in VERDICTS.items() if verdict != HOLDS]


def test_every_claim_is_there_in_the_papers_order():
    assert [claim.id for claim in claims.CLAIMS[: len(VERDICTS)]] == list(VERDICTS)


@pytest.mark.parametrize("name", DECIDED_HERE)
def test_verdict_and_control(name):
    entry = entry_of(CLAIMS[name])
    assert entry.verdict == VERDICTS[name]
    assert entry.control_refuted
    json.dumps(vars(entry), allow_nan=False)


@pytest.mark.parametrize("name", [name for name in VERDICTS if name not in DECIDED_HERE])
def test_control_is_refuted(name):
    assert not outcome(CLAIMS[name].control, True).holds


@pytest.mark.parametrize("name", REFUTED)
def test_counterexample_replays(name):
    """From the stored data alone: the instance meets the assumptions and breaks the statement."""
    found = outcome(refuting(CLAIMS[name]), True)
    assert not found.holds
    assert found.counterexample is not None
    data = json.loads(json.dumps(found.counterexample, allow_nan=False))
    if "instance" in data:
        at = load(data["instance"])
        assert dump(at) == data["instance"]
        admissible(at)


def test_every_refuted_claim_says_what_is_true_instead():
    for name, verdict in VERDICTS.items():
        claim = CLAIMS[name]
        assert (verdict == CAVEAT) == bool(claim.caveat) == (claim.as_printed is not None), name
        assert (verdict in (FALSE, SLIP)) == bool(claim.error), name
        if verdict == FALSE:
            assert claim.repair, name
            assert claim.repaired is not None, name
            assert claim.implies, name


TERMS = {
    "lemma 1": lemma1, "step 6 repaired": step6_repaired,
    "lemma 2": lemma2(), "(10)": eq10, "(11)-(12)": eq11_12, "(16)": eq16, "(20)": eq20,
    "lemma 3": lemma3(), "lemma 3 repaired": lemma3(G=0.5, extra=True), "(35)": eq35, "(36)": eq36,
    "(39)": eq38_39, "(40)": eq40, "(42) repaired": eq42_repaired, "(45)": eq43_45,
    "(48)": eq48, "(54)": eq53_54, "(55)": eq55(), "(57)": eq57, "lemma 4": lemma4(),
    "(68)": eq68, "(75)": eq75, "(80)": eq80, "(81)": eq81(), "(87)": eq87,
    "(99)": eq99,
    "(109)": eq109, "sharper lemma 2": sharper_lemma2(), "sharper lemma 3": sharper_lemma3(),
    "sharper lemma 4": sharper_lemma4(),
}  # fmt: skip


@pytest.mark.parametrize("name", TERMS)
def test_both_sides_scale_alike(name):
    """Losses times 3, variables times 1/2: both sides change by the same factor."""
    assert BENCH.alike(TERMS[name])


@pytest.mark.parametrize("terms", [family.drift, family.descent, family.refreshed, family.potential])
@pytest.mark.parametrize("method", ["FedAvg-CD", "SSF", "FedSub"])
def test_the_family_scales_alike(terms, method):
    """As above, for the three methods that have a subspace, one of two clients where it may be."""
    sampled, share = (0, None) if method == "FedSub" else (1, 0.1 if method == "SSF" else None)
    of = family.Member(K=2, N=2, d=2, method=method, sampled=sampled, global_share=share)
    z = torch.randn(of.size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    values = lambda a, b: [float(v) for v in terms(family.play(rescaled(family.made(z, of), a, b), of))[:2]]
    assert units(values, rtol=1e-7)[0]


def test_steps_beyond_the_familys_theorem_are_refused():
    """A search that strayed there would attack what nobody claims."""
    of = family.Member(K=2, N=2, d=2, method="SSF", sampled=1, global_share=2.0)
    z = torch.zeros(of.size, dtype=torch.float64)
    with pytest.raises(AssertionError, match="steps that the theorem does not admit"):
        family.potential(family.play(family.made(z, of), of))


def test_a_wrong_unit_is_noticed():
    """sigma^2 in place of sigma^2/L^2 would not scale."""
    assert not BENCH.alike(lambda q: (q.drifts.mean(), q.at.sigma2))


def test_the_smallest_counterexample_to_55_in_exact_numbers():
    """N = 1, K = 2, F = -x^2/2, noise +-1, eta_l = 1/4: y^1 = +-1/4, ... : E|P(g_bar + xi_bar)|^2 = 41/64 > 9/16."""
    q = play(crossed())
    half = q.at.L * q.at.eta**2 / 2
    assert float(q.T2) / half == 41 / 64
    assert float(eq55()(q)[1]) / half == 9 / 16
    assert float(cross(q)) == 1 / 16
    assert all(slack >= 0 for slack in admissible(crossed()).values())


def test_the_limit_of_lemma_2s_ratio():
    """The drift on F = -L x^2/2 in exact numbers at K = 2: 1/16 of eta_l^2's unit; and (e - 2)/6 for large K."""
    q = play(tiny(-1.0, K=2, lr=0.25, u=1.0))
    assert float(q.drifts) == 1 / 16  # e_0 = 0, e_1 = eta_l^2
    outcome = check_concave()("quick")
    assert outcome.holds
    assert outcome.margin == pytest.approx((2.718281828459045 - 2) / 6)


def test_lemma_3_at_its_published_edge_with_all_clients():
    """The smallest state at which Lemma 3 fails as printed: N = K = 1, no noise, c = 1, c_1 = 0, at the minimiser."""
    q = play(offset())
    assert float(q.gain) == 1 / 32
    assert float(q.drift) == float(q.G2) == float(q.at.sigma2) == 0


def test_controls_stay_consistent_when_they_start_so():
    """c^t = mean c_i^t is kept by a round in which all clients take part, whatever the noise."""
    for place, edge in enumerate(edges()):
        z = torch.randn(edge.size, generator=torch.Generator().manual_seed(place), dtype=torch.float64)
        q = play(build(z, edge))
        torch.testing.assert_close(q.pick(q.ci).mean(1), q.c, rtol=1e-10, atol=1e-10)


# Controls lie just beyond what the statements' own searches and families attain


NEAR = {  # statement, what its control multiplies the right-hand side by, an instance that attains nearly that
    "(10)": (eq10, 0.72, steep),
    "(20)": (eq20, 0.61, steep),
    "(39)": (eq38_39, 0.985, leap),
    "(80)": (eq80, 0.985, leap),
    "(99)": (eq99, 0.72, steep),
    "(109)": (eq109, 0.094, steep),
    "sharper lemma 2": (sharper_lemma2(), 0.44, lambda: steep(0.2)),
}


@pytest.mark.parametrize("name", NEAR)
def test_the_control_is_the_nearest_false_statement(name):
    """Refuted, and by less than 2 percent: a constant 2 percent larger holds on the same instance."""
    terms, by, at = NEAR[name]
    assert not on(at, times(by, terms), "")("quick").holds
    assert on(at, times(1.02 * by, terms), "")("quick").holds


def test_lemma_2s_control_is_just_below_what_is_reached():
    """What F = -L x^2/2 reaches, e - 2 and 4 (sqrt e - 2)^2, between control and statement."""
    assert not check_concave(0.718)("quick").holds
    assert check_concave(0.719)("quick").holds
    assert not check_concave(6, 0.4935)("quick").holds
    assert check_concave(6, 0.4936)("quick").holds


@pytest.mark.parametrize("bound", [Terms.sharper, Terms.shorter])
def test_the_theorems_control_is_the_nearest_false_bound(bound):
    """One client on a parabola is within 2 percent of 53/100 of the bound."""
    assert not steady(scaled(bound, (0.53,) * 4))("quick").holds
    assert steady(scaled(bound, (0.54,) * 4))("quick").holds


def test_step_6_fails_by_its_surplus_term_alone():
    """Without e_K the sums agree; with K = 2 the largest e_k is the only one, and the repaired line is attained."""
    at = lambda: tiny(0.0, a=1.0, lr=0.5)
    assert found_gap(at, step6_sum(0.0), "")("quick").holds
    assert identical(step6_sum(0.0), "step 6")("quick").holds
    assert not found_gap(at, step6_sum(0.01), "")("quick").holds
    two = lambda: tiny(0.0, a=1.0, K=2)
    assert on(two, step6_repaired, "")("quick").margin == 1
    assert not on(two, times(0.99, step6_repaired), "")("quick").holds


# The full effort's search: all restarts of a corner at once


@pytest.mark.parametrize("name", TERMS)
def test_a_batch_of_instances_has_the_ratios_of_each(name):
    terms = TERMS[name]
    for edge in [edge for edge in edges() if edge.K > 1 or "step 6" not in name][::3]:
        Z = torch.randn(3, edge.size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        together = torch.func.vmap(lambda z, edge=edge: terms(play(build(z, edge)))[:2])(Z)
        alone = [torch.stack(terms(play(build(z, edge)))[:2]) for z in Z]
        for (left, right), both in zip(zip(*together), alone):
            assert float(left / right) == pytest.approx(float(both[0] / both[1]), rel=1e-7, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("by", "holds"), [(1.0, True), (0.99, False)])
def test_the_search_in_batches_finds_what_breaks(by, holds):
    """(16) is attained: it holds, and not with 99/100 of its right-hand side."""
    few = dict(restarts=3, steps=12, edges=[edge for edge in edges() if edge.noisy][:3])
    sides = lambda z, edge: times(by, eq16)(play(build(z, edge)))
    found = maximise_together(sides, lambda edge: edge.size, ROOT.fold("eq16"), **few)
    assert found.holds == holds
    assert found.ratio == pytest.approx(1 / by, rel=1e-6)


@pytest.mark.parametrize("size", [1, 40])
def test_the_searchs_adam_has_the_bits_of_pytorchs(size):
    start = torch.randn(size, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    ours, theirs = (start.clone().requires_grad_() for _ in range(2))
    steppers = {ours: Adam(ours, 0.1), theirs: torch.optim.Adam([theirs], lr=0.1)}
    for t in range(100):
        for z, stepper in steppers.items():
            z.grad = None
            ((z - 1) ** 4).sum().mul(1 + t % 3).sin().backward()
            stepper.step()
        assert torch.equal(ours, theirs), t


# A change of the algorithm turns the checks red


def altered(monkeypatch, old, new):
    """SSF with one of its lines changed, in all the checks."""
    import inspect
    import textwrap

    from fedtheory.algorithms import ssf as trained

    lines = ("client", "server", "change")
    method = next(name for name in lines if old in inspect.getsource(getattr(trained.SSF, name)))
    source = textwrap.dedent(inspect.getsource(getattr(trained.SSF, method)))
    assert source.count(old) == 1
    scope = dict(vars(trained))
    exec(compile("from __future__ import annotations\n" + source.replace(old, new), "altered", "exec"), scope)
    monkeypatch.setattr(trained.SSF, method, scope[method])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ssf.alg1", "alpha=self.lr", "alpha=0.9 * self.lr"),
        ("ssf.eq6-7", "up.c_proj.mean(0)", "0.9 * up.c_proj.mean(0)"),
        ("ssf.eq6-7", "P.lift(mean - ci_proj)", "P.lift(mean)"),
        ("ssf.info_loss", "own.c + P.lift(mean - ci_proj)", "P.lift(mean)"),
        ("ssf.eq1-5", "P.lift(x_proj) + x_res", "P.lift(x_proj)"),
        ("ssf.lemma3.eq22-25", "self.server_lr * (x_proj", "0.9 * self.server_lr * (x_proj"),
        ("ssf.lemma4.eq61-63", "total / self.local_steps", "total"),
        ("ssf.lemma4.eq81", "own.c + P.lift(mean - ci_proj)", "own.c + P.lift(0.5 * mean - ci_proj)"),
    ],
)
def test_a_changed_algorithm_turns_the_check_red(monkeypatch, name, old, new):
    check = CLAIMS[name].check
    assert check is not None
    altered(monkeypatch, old, new)
    assert not check("quick").holds


def test_a_step_that_is_too_long_breaks_lemma_3(monkeypatch):
    """By a tenth, where the lemma's noise term is attained."""
    check = survives(lemma3(), "lemma3c", "", [STILL])
    assert check("quick").holds
    altered(monkeypatch, "self.server_lr * (x_proj", "1.1 * self.server_lr * (x_proj")
    assert not check("quick").holds


def test_fedsubs_loss_is_read_off_its_own_line(monkeypatch):
    """A FedSub that keeps its duals unchanged would lose nothing, and the claim would be refuted."""
    from fedtheory.algorithms import fedsub

    monkeypatch.setattr(fedsub.FedSub, "turn", lambda self, dual, P, P_next: dual)
    assert not CLAIMS["ssf.info_loss"].check("quick").holds


def test_a_basis_that_is_sent_is_noticed(monkeypatch):
    """A message that carries the basis grows with d."""
    from fedtheory.core.message import Known

    send = lambda self, layout, key, dtype, device="cpu": Known(self.draw(layout, key, dtype))
    monkeypatch.setattr(algorithm.Spherical, "seed", send)
    monkeypatch.setattr(algorithm, "cost", lambda part: ssf_cost(part))
    assert not CLAIMS["ssf.shared_projector"].check("quick").holds


def ssf_cost(part):
    """As `message.cost`, with a known basis paid for in full."""
    from fedtheory.core.message import Known, cost

    return cost(part.value.matrices()[0]) if isinstance(part, Known) else cost(part)


# Assumptions are printed where the ledger says


PAPER = next((f for folder in Path(__file__).resolve().parents for f in folder.glob("shared/papers/004_*.txt")), None)
PLACES = {  # a label in the ledger -> how the paper's text shows it
    r"Assumption (\d+)": r"^Assumption \1 \(",
    r"Lemma (\d+)": r"^Lemma \1 \(",
    r"Theorem (\d+)": r"^Theorem \1 \(",
    r"Corollary (\d+)": r"^Corollary \1 \(",
    r"Algorithm (\d+)": r"^Algorithm \1 ",
    r"Step (\d+)": r"^Step \1:",
    r"Sec\. ([\d.]*\d)": r"^\1 ",
    r"eq\. \((\d+)\)": r"\(\1\)$",
}


def printed_in(text, where):
    """Whether every label of a place occurs in the text, and the place has one."""
    found = [m.expand(shown) for label, shown in PLACES.items() for m in re.finditer(label, where)]
    return bool(found) and all(re.search(re.sub(r"(?<=\d)\.(?=\d)", r"\.", p), text, re.MULTILINE) for p in found)


@pytest.mark.skipif(PAPER is None, reason="the papers' texts are not here")
def test_every_assumption_is_printed_where_the_ledger_says():
    text = PAPER.read_text()
    for claim in claims.CLAIMS:
        for assumption in claim.assumes:
            assert isinstance(assumption, Printed), claim.id
            assert printed_in(text, assumption.where), (claim.id, assumption)


@pytest.mark.skipif(PAPER is None, reason="the papers' texts are not here")
@pytest.mark.parametrize(
    "where", ["Assumption 4", "Lemma 5", "Sec. 4.9", "eq. (138)", "Algorithm 2", "Step 8", "folklore"]
)
def test_an_invented_place_is_noticed(where):
    assert not printed_in(PAPER.read_text(), where)


def test_the_slack_of_lemma_4_is_what_its_words_say(monkeypatch):
    lemma = CLAIMS["ssf.lemma4"]
    monkeypatch.setattr(lemma4_claims, "LEMMA4", LEMMA4[1::4])
    assert lemma.check("quick").detail.endswith("without their 1/rho: 2 passes, 0.5 does not")
    assert "2 in the place of 12, 6 and 12, without 1/rho" in lemma.implies


# Regimes: a statement that is right for half of the dimensions and two clients alone is broken


def small_rho_unseen(q):
    """(21) with max(rho, 1/2) for rho."""
    at, rho = q.at, max(q.at.rho, 1 / 2)
    right = eq21(at.eta, at.L, at.N, at.K, rho, at.sigma2, q.G2, q.drift, 1.0, 0.0, 1.5)
    return q.gain + rho * at.eta * q.G2 / 4, right, (at.eta * q.G2 + at.L * q.moved).detach()


def small_rho_unseen_by_the_memory(q):
    """(60), likewise."""
    at = q.at
    return q.C1, eq60(at.eta, at.L, at.N, at.K, max(at.rho, 1 / 2), at.sigma2, q.G2, q.drift, q.C0)


def many_clients_unseen(q):
    """(53) with 2^(N - 1) for N, which is N for one and for two."""
    return q.every((q.xi_bar**2).sum(-1)), q.at.sigma2 / (2.0 ** (q.at.N - 1) * q.at.K)


@pytest.mark.parametrize(
    ("terms", "corners"),
    [(small_rho_unseen, edges()), (small_rho_unseen_by_the_memory, LEMMA4), (many_clients_unseen, NOISY)],
)
def test_the_searches_reach_small_subspaces_and_three_clients(terms, corners):
    halves = [edge for edge in corners if edge.r / edge.d >= 1 / 2 and edge.N <= 2]
    with brief(4):
        assert survives(terms, "regimes", "", halves)("quick").holds
    rest = [edge for edge in corners if edge not in halves]
    assert not survives(terms, "regimes", "", rest, enough=1 + 1e-6)("quick").holds
