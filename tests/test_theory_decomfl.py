"""The ledger of DeComFL: every id of the catalogue, its verdict, a refuted control, counterexamples that replay."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
import torch

pytest.importorskip("z3")
pytest.importorskip("sympy")

from each import each
from entries import decided, outcome, refuting, replays

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedzo import FedZO
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.maps.directions import Direction
from fedtheory.problems.models.networks import NETWORKS
from fedtheory.theory.claim import Outcome, Printed, each_needed
from fedtheory.theory.decomfl import box as decomfl_box
from fedtheory.theory.decomfl import claims as decomfl
from fedtheory.theory.decomfl import costs as decomfl_costs
from fedtheory.theory.decomfl import descent as decomfl_descent
from fedtheory.theory.decomfl import lemmas as decomfl_lemmas
from fedtheory.theory.decomfl import local as decomfl_local
from fedtheory.theory.decomfl import low_rank as decomfl_low_rank
from fedtheory.theory.decomfl import rough as decomfl_rough
from fedtheory.theory.decomfl import round as decomfl_round
from fedtheory.theory.decomfl import smooth as decomfl_smooth
from fedtheory.theory.decomfl import tails as decomfl_tails
from fedtheory.theory.decomfl import theorem1 as decomfl_theorem1
from fedtheory.theory.decomfl import theorem2 as decomfl_theorem2
from fedtheory.theory.decomfl import variants as decomfl_variants
from fedtheory.theory.decomfl.round import Edge, Enumerated, Round, build, load, tiny

CLAIMS = {claim.id: claim for claim in decomfl.CLAIMS}

CAVEAT = """remark1-2; corollary1; assump4; table1; params; A2.queue; A3.seedshift; eq11-12; A5.smoothing; A5.taylor;
eq59"""
FALSE = """theorem1 / theorem3; eq10.sgd_only; A3.privacy; table6.bytes; lemma3; lemma3.display; lemma4; lemma5; eq27;
eq28; lemma5.stepsize; eq34; eq37c; eq39; eq40; eq41; eq42; eq52; lemma6; eq57; eq63-64; eq65; theorem5; eq74; eq75;
eq76; eq77; assump1-3; theorem2 / theorem4; table4; eq24; eq30-33; eq36-37ab; eq51; eq66; eq69-70"""
SLIP = """thm2.perturbation; eq46-50; eq4b; eq5; theorem1.left; table2.bytes; eq7; eq8; eq10; eq10.use; alg5;
lemma5.relation; lemma5.sum; eq54,60; alg1-2; alg3-4"""
UNCHECKED = """remark3"""


def named(text):
    return [f"decomfl.{' '.join(name.split())}" for name in text.split(";")]


VERDICTS = {name: "holds" for name in CLAIMS}
for verdict, names in (
    ("holds-with-caveat", CAVEAT),
    ("false-as-stated", FALSE),
    ("slip", SLIP),
    ("unchecked", UNCHECKED),
):
    VERDICTS.update(dict.fromkeys(named(names), verdict))


def test_every_id_of_the_catalogue_is_there_in_its_order():
    assert list(CLAIMS) == named(decomfl.ORDER)
    assert len(CLAIMS) == 100
    assert set(VERDICTS) == set(CLAIMS)
    assert [claim.id for claim in decomfl.CLAIMS if claim.unchecked] == named(UNCHECKED)


@pytest.mark.parametrize("name", list(CLAIMS))
def test_verdict_and_control(name):
    """And a control that a search refutes is barely false: at most 3% beyond what the search reaches."""
    entry = decided(CLAIMS[name])
    assert entry.verdict == VERDICTS[name], entry.detail
    if not CLAIMS[name].unchecked and (control := outcome(CLAIMS[name].control, True)).evidence == "search":
        assert 1 < control.margin < 1.03, control.detail


# What is assumed, and where it is printed

FORMS = [form for folder in Path(__file__).resolve().parents for form in sorted(folder.glob("shared/papers/002_*.txt"))]


def printed(where, text):
    """Whether the paper has the place that a label names."""
    heading = re.fullmatch(r"(?:Sec|App)\. ([A-C0-9][0-9.]*)", where)
    if heading:
        return re.search(rf"^{re.escape(heading[1])} [A-Z]", text, re.M) is not None
    equation = re.fullmatch(r"eq\. \((\d+)\)", where)
    if equation:
        return re.search(rf"\({equation[1]}\)\s*$", text, re.M) is not None
    line = re.fullmatch(r"(Algorithm \d), line (\d+)", where)
    if line:
        box = text.partition(f"\n{line[1]} ")[2].split("\nAlgorithm ")[0]
        return re.search(rf"^\s*{line[2]}:", box, re.M) is not None
    return re.search(rf"^{re.escape(where)}\b", text, re.M) is not None


def test_every_assumption_is_printed_somewhere():
    assert all(isinstance(assumption, Printed) for claim in CLAIMS.values() for assumption in claim.assumes)


@pytest.mark.skipif(not FORMS, reason="the paper's text is not at hand")
def test_every_assumption_names_a_place_of_the_paper():
    text = FORMS[0].read_text()
    for claim in CLAIMS.values():
        for assumption in claim.assumes:
            assert printed(assumption.where, text), (claim.id, assumption)
    for invented in (
        "Assumption 5", "Theorem 6", "Lemma 7", "Corollary 2", "Sec. 4.3", "Sec. 7", "App. A.6", "App. D",
        "eq. (78)", "Algorithm 6, line 1", "Algorithm 1, line 14", "Table 7", "Remark 5",
    ):  # fmt: skip
        assert not printed(invented, text), invented


def test_each_part_of_a_caveat_must_be_needed():
    holds, fails = (lambda effort, fine=fine: Outcome(fine, "exact", None, "", None) for fine in (True, False))
    assert not each_needed(without={"one": fails, "two": fails})("quick").holds
    assert each_needed(without={"one": fails, "two": holds})("quick").holds


@pytest.mark.parametrize("name", [*named(FALSE), *named(SLIP)])
def test_counterexample_replays(name):
    replays(refuting(CLAIMS[name]))


@each(name=sorted({*named(FALSE), *named(SLIP)} - {"decomfl.lemma6", "decomfl.theorem5"}))
def test_mu_is_positive_where_a_step_of_the_algorithm_refutes(name):
    """Lemma 6 is about the projected gradient, Theorem 5 leaves O(mu^2) open: only these two take mu -> 0."""
    data = outcome(refuting(CLAIMS[name]), True).counterexample
    assert data is not None
    if "instance" in data:
        at = load(data["instance"])
        assert at.mu > 0
        assert float(at.h.abs().max()) <= at.L


# The moments against the algorithm's own code


@pytest.mark.parametrize(
    "edge",
    [
        Edge(M=2, m=1, K=2, share=3.0),
        Edge(M=2, m=2, P=3),
        Edge(M=2, m=1, d=2, K=2, noisy=False, share=3.0),
        Edge(M=2, m=1, d=2, P=2, sphere=True),
        Edge(M=3, m=2, K=2, noisy=False, sphere=True),
    ],
    ids=str,
)
def test_moments_agree_with_the_client_on_all_directions(edge):
    v = torch.randn(edge.size, generator=decomfl_round.ROOT.generator(), dtype=torch.float64)
    at = build(v, edge)
    q, r = Round(at), Enumerated(at)
    mean = torch.stack([r.mean(end) for end in r.ends]).mean(0)
    second = torch.stack([torch.einsum("c,ca,cb->ab", r.p, end, end) for end in r.ends]).mean(0)
    torch.testing.assert_close(mean, q.next[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(second, q.next[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(torch.einsum("c,mckd->km", r.p, r.G**2), q.size2, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(torch.einsum("c,kmcd->km", r.p, (r.points - at.x) ** 2), q.far, rtol=1e-11, atol=1e-12)
    own = at.h[:, None] * r.points + at.a[:, None]  # grad f_i(x_i^k)
    each = [(r.G[rows].movedim(2, 0) - own[:, rows]).mean(1).sum(0) for rows in r.sets]
    together = sum(float(r.mean((e**2).sum(1))) for e in each) / len(each)
    assert q.together == pytest.approx(together, rel=1e-9)
    sampled = sum(float(r.mean((own[:, rows].mean(1).sum(0) ** 2).sum(1))) for rows in r.sets) / len(r.sets)
    assert q.of_sample == pytest.approx(sampled, rel=1e-9)
    assert q.of_all == pytest.approx(float(r.mean((own.mean(1).sum(0) ** 2).sum(1))), rel=1e-9)
    _, later = decomfl_round.course(at, 2)  # from the random point where the first round ends
    apart, offset = at.h - at.h.mean(0), at.a - at.a.mean(0)
    differ = torch.stack([r.mean(((apart * end[:, None] + offset) ** 2).sum(-1)) for end in r.ends]).mean(0)
    torch.testing.assert_close(differ, later.dissimilar, rtol=1e-11, atol=1e-11)
    assert float(q.dissimilar.max()) == pytest.approx(at.dissimilarity2, rel=1e-12)


@pytest.mark.parametrize(("M", "d", "K"), [(1, 1, 1), (3, 2, 2), (2, 5, 1), (2, 24, 1)])
def test_a_run_has_the_bits_of_its_rounds(M, d, K):
    edge = Edge(M=M, m=1, d=d, K=K, P=2, rule=lambda e: 0.05 / e.d)
    at = decomfl_round.bounded(build(torch.linspace(-1, 1.5, edge.size, dtype=torch.float64), edge))
    run, rounds = decomfl_round.Run(at, 6), list(decomfl_round.course(at, 6))
    assert run.gradient2 == [q.gradient2 for q in rounds]
    assert run.gains == [q.gain for q in rounds]
    assert torch.equal(run.dissimilar, torch.stack([q.dissimilar for q in rounds]))


def test_whole_runs_start_from_clients_of_unequal_curvature():
    """The mean stays positive, as f needs a minimum; and where x spreads the clients' gradients part."""
    edges = [edge for edge in decomfl_round.corners() if edge.M > 1]
    starts = decomfl_round.uneven(edges)
    for edge in edges:
        fitting = [decomfl_round.bounded(build(v, edge)) for v in starts if len(v) == edge.size]
        assert len(fitting) == 3
        for at in fitting:
            assert float(at.h.mean(0).min()) > 0
            assert sorted(at.h[:, 0].unique().tolist()) == [-0.5, 1.0]
        noisy = replace(fitting[1], lr=0.1, noise=torch.ones_like(fitting[1].noise))
        first, later = decomfl_round.course(noisy, 2)
        assert float(first.dissimilar.max()) == 0 < float(later.dissimilar.max())


def test_no_errors_of_one_difference_break_step_10_6():
    """One direction on the circle and on the line: the worst errors, chosen with z, for H of trace 0 or more.

    E v^T H v over 2 L c |w|^2 + 2 L eps^2 d, where v = z (z^T w + e), |e| <= eps. On the line it is reached.
    """
    angle = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000 * 2 * math.pi
    circle = 2**0.5 * torch.stack([angle.cos(), angle.sin()], 1)
    worst = {}
    for d, points in ((1, torch.tensor([[1.0], [-1.0]]).double()), (2, circle)):
        ratios = []
        for h, turn, eps in product(torch.linspace(-1, 1, 9), torch.linspace(0, 1.5, 5), (0.0, 0.3, 1.0, 1.4, 3.0)):
            H = torch.tensor([1.0, float(h)][:d]).double()
            w = torch.stack([turn.cos(), turn.sin()][:d]).double()
            form, slope = points.square() @ H, (points @ w).abs()
            square = torch.where(form > 0, slope + eps, (slope - eps).clamp(min=0)).square()
            c = d * (float(H.sum()) + 2) / (d + 2)
            ratios.append(float((square * form).mean() / (2 * c * w.square().sum() + 2 * eps**2 * d)))
        worst[d] = max(ratios)
    assert worst[1] == pytest.approx(1, abs=1e-12)
    assert 0.94 < worst[2] < 0.96


def test_the_search_of_step_10_6_sees_its_constants():
    """Half of the right side is reached, for one direction on the line."""
    for share, holds in ((0.51, True), (0.49, False)):
        check = decomfl_round.survives(decomfl_low_rank.signed_round(share), "sees", "", decomfl_low_rank.STEPPED)
        assert check("quick").holds == holds


@pytest.mark.parametrize("which", ["(26)", "(33)", "(36)", "(38)"])
def test_the_term_of_the_smoothing_is_needed(which):
    """(E|z|)^2 = 2/pi stands against it alone."""
    left = 2 / math.pi / (2 if which == "(33)" else 1)
    term = {"(26)": 32, "(33)": 16}.get(which, 96)
    for share, holds in ((1.0, True), (1.001 * left / term, True), (0.999 * left / term, False), (0.0, False)):
        assert decomfl_rough.check_bias(which, share)("quick").holds == holds


def test_the_bias_of_step_10_6_is_needed():
    """By hand: x goes to -1/16 along both signs, f there is 1/64 - 1/512, and eta/2 (1/4)^2 is 1/128."""
    left, without = Fraction(1, 64) - Fraction(1, 512) + Fraction(1, 128), Fraction(1, 64)
    share = float(4 * (left - without))
    for times, holds in ((1.0, True), (1.001 * share, True), (0.999 * share, False), (0.0, False)):
        assert decomfl_rough.check_signed_bias(times)("quick").holds == holds


def test_stored_instances_survive_as_data():
    data = outcome(CLAIMS["decomfl.eq39"].check, True).counterexample
    assert data is not None
    again = load(json.loads(json.dumps(data["instance"])))
    left, right = decomfl_descent.eq39(decomfl_descent.printed_A2)(Round(again))
    assert left == pytest.approx(data["left"], rel=1e-3)
    assert left > right


# By hand, in rationals


def test_theorem_1_and_its_minibatch_by_hand():
    """E x^2 <- (1 - 2 eta + eta^2 c) E x^2 + eta^2 c sigma^2, c = E[(mean of 256 z_p^2)^2] = 1 + 2/P."""
    P, eta, R = 256, Fraction(1, 8), 200
    c, second, total = 1 + Fraction(2, P), Fraction(0), Fraction(0)
    for _ in range(R):
        total += second
        second = (1 - 2 * eta + eta**2 * c) * second + eta**2 * c
    bound = Fraction(16 * 5, P) * eta
    assert total / R > Fraction(3, 2) * bound
    assert float(total / R) == pytest.approx(sum(decomfl_round.trajectory(decomfl_theorem1.MINIBATCH, R)) / R)
    assert eta <= min(Fraction(P, 120), Fraction(2 * P, P + 5), 1, Fraction(64 * P, 2 * (3 * 64 * P + 343)))


def test_theorem_5_by_hand():
    """m E x^2 = 3/5 at rest, where 2 eta L sigma^2 = 1/2: eta L = 1/4, E z^4 = 3, m clients with own noises."""
    rest = Fraction(3, 16) / (Fraction(2, 4) - Fraction(3, 16))
    assert rest == Fraction(3, 5) > 2 * Fraction(1, 4)
    squares, _ = decomfl_low_rank.runs(decomfl_tails.GAUSSIAN, 60)
    assert float(squares[-1]) == pytest.approx(0.6 / decomfl_tails.GAUSSIAN.m)


def test_theorem_5_fails_with_any_constant_in_its_tail():
    """64 equal clients do for exp(-mdP) in place of exp(-mdP/16): (3/5)/64 at rest against (1/2)/64."""
    m, R = 64, 60
    at = tiny(h=1.0, noise=1.0, lr=1 / 4, M=m, m=m)
    decomfl_round.admissible(at, ("theorem2",))
    squares, _ = decomfl_low_rank.runs(at, R)
    largest = 2 * float((squares[1:] + at.sigma2).sum())  # E max_r G(x_r)^2
    bound = 2 * at.lr / m * at.sigma2 + largest * math.exp(-m)
    assert float(squares[1:].mean()) > 1.15 * bound


def test_the_smoothing_terms_of_the_repair_are_worst_at_d_1():
    """(d+6)^3/((d+3)^3 (d+4)) falls with d, so that `symbolic_repair` may look at d = 1 alone."""
    shares = [Fraction((d + 6) ** 3, (d + 3) ** 3 * (d + 4)) for d in range(1, 300)]
    assert shares == sorted(shares, reverse=True)


def test_the_bounds_agree_that_P_is_no_cure_only_once_repaired():
    """As P grows: Theorem 1's noise goes to 0, the repaired bound's and Theorem 2's to a multiple of sigma^2/m."""
    for P, below in ((10, False), (10_000, True)):
        at = tiny(noise=1.0, P=P, lr=0.1)
        printed, repaired = (decomfl_descent.per_round(at, kind)[1] for kind in (True, False))
        theorem2 = 2 * at.lr * decomfl_round.rank_factor(1, P, 1.0)
        assert (printed < 0.1 * theorem2) == below
        assert repaired > theorem2


def test_more_clients_do_not_average_directions():
    """E||mean of G - grad f||^2 of equal clients: the same for every m."""
    sizes = [Round(tiny(a=1.0, M=m, m=m)).together for m in (1, 2, 16)]
    assert sizes == pytest.approx([2.0] * 3)


def test_the_repaired_steps_are_admissible_where_the_printed_are_too_long():
    """Lemma 5's printed step with K = 3, P = 5000 on x^2/2 leaves the bound; the repaired one does not."""
    edge = Edge(K=3, P=5000)
    for step, inside in ((decomfl_round.step_of_lemma5(1, 3, 5000), False), (decomfl_lemmas.right_step5(edge), True)):
        q = Round(tiny(x=1.0, K=3, P=5000, lr=step))
        left, right = decomfl_lemmas.lemma5(True)(q)
        assert (left <= right) == inside


def test_a_statement_in_wrong_units_is_noticed():
    alike = lambda terms: decomfl_round.BENCH.alike(terms, [Edge(), Edge(M=2, m=2, d=2)])
    assert alike(decomfl_low_rank.eq63(1, decomfl_low_rank.above))
    assert not alike(lambda q: (q.gain + 1e-9, q.at.L * q.at.lr))
    assert not alike(decomfl_low_rank.eq63(2, decomfl_low_rank.above))


def test_step_sizes_are_the_same_in_all_units():
    at = tiny(h=[[1.0, 0.3]], x=1.0, noise=1.0, d=2, K=3, P=4, lr=0.01)
    needs = ("theorem1", "lemma5", "theorem2")
    before, after = decomfl_round.slacks(at, needs), decomfl_round.slacks(at.rescaled(3.0, 0.5), needs)
    assert after == pytest.approx(before)


def test_chi_square_tails():
    for n in (1, 2, 7, 40):
        exact = decomfl_tails.chi2_above(n, 2 * n)
        assert exact <= math.exp(-n * (1 - math.log(2)) / 2)
    assert decomfl_tails.chi2_above(1, 2) == pytest.approx(math.erfc(1))
    assert decomfl_tails.chi2_above(2, 4) == pytest.approx(math.exp(-2))


# Statements at their edges


@pytest.mark.parametrize("d", [1, 2, 5])
def test_41_fails_from_3d_plus_16_directions_on(d):
    """sigma^2 (1 + (d+1)/P)/2 against 2(d+4)/P: at P = 3d + 15 they are the same."""
    for P, inside in ((3 * d + 14, True), (3 * d + 16, False)):
        noise = [[1.0] + [0.0] * (d - 1)]
        at = tiny(h=1.0, noise=noise, d=d, P=P, lr=2.0**-6, mu=decomfl_round.SMALL_MU)
        decomfl_round.admissible(at, ("theorem1",))
        left, right = decomfl_descent.eq41(decomfl_descent.printed_A2)(Round(at))
        assert (left <= right) == inside
        left, right = decomfl_descent.eq41(decomfl_descent.repaired_A2)(Round(at))
        assert left < right


def test_a_negative_bound_on_the_hessian_breaks_66_and_not_68():
    """H = -1 is above f'' = -1, and no step is too long for it: kappa = -1, C = 1/3."""
    at = tiny(h=-1.0, noise=1.0, lr=0.25, mu=1 / 64, sphere=True)
    assert decomfl_round.rank_of(at.h[0]) == -1
    assert at.lr <= 1 / (4 * decomfl_round.rank_factor(1, 1, -1.0))
    left, right = decomfl_low_rank.eq65(lambda at: at.h.mean(0), last=True)(Round(at))
    assert left > 60 * right
    left, right = decomfl_low_rank.eq67()(Round(at))
    assert left < 0 < right


def test_68_needs_a_kappa_that_allows_a_step():
    """H = -I/10, d = 3, kappa = -3, L = 1: T_3 = -3/10 and not below C = -3/5."""
    at = tiny(h=-0.1, a=[[1.0, 0.0, 0.0]], d=3, lr=0.1, sphere=True)
    C = decomfl_round.rank_factor(3, 1, -3.0)
    assert pytest.approx(-0.6) == C
    assert decomfl_low_rank.form(at, at.h[0]) == pytest.approx(-0.3)
    assert decomfl_low_rank.low_rank(at) > -3


def test_noise_bounded_where_clients_stand_alone_does_not_mend_lemma_3():
    """All P scalars share what smoothing adds to their minibatch's gradient; for h' = |x| it is mu^2 8/(4 pi)."""
    assert decomfl_rough.check_shared_bias(True)("quick").margin == pytest.approx(0.906, abs=1e-3)
    found = decomfl_rough.check_shared_bias(False)("quick")
    assert not found.holds
    assert found.counterexample["left"] == pytest.approx(2 / math.pi, rel=1e-3)


def test_rough_clients_need_a_large_d_to_break_theorem_2():
    """E||grad f(x_1)||^2/2 = d/(32 C^2), C = 3d/(d+2), against 1/2: d = 144 is enough, and 120 is not."""
    assert decomfl_rough.check_cones("theorem", 120)("quick").holds
    found = decomfl_rough.check_cones("theorem", 160)("quick")
    assert found.margin == pytest.approx(160 / 16 / (480 / 162) ** 2, rel=1e-3)


def test_the_aligned_gradients_reach_the_constants_of_26():
    at = decomfl_lemmas.ALIGNED
    q = Round(at)
    assert float(q.exact2[1, 0]) == pytest.approx(9, rel=0.01)
    assert (q.gradient2, at.dissimilarity2) == (1, 1)


# Checks that must see a change of the algorithm


def refuted(check):
    return not check("quick").holds


def test_no_average_over_the_perturbations_is_noticed(monkeypatch):
    monkeypatch.setattr(DeComFL, "share", lambda self, P: 1.0)
    assert refuted(decomfl_lemmas.check_eq22(True))
    assert refuted(decomfl_variants.check_sum(True))


def test_another_smoothing_is_noticed(monkeypatch):
    measure = DeComFL.measure
    longer = lambda self, *rest: measure(replace(self, smoothing=1.01 * self.smoothing), *rest)
    monkeypatch.setattr(DeComFL, "measure", longer)
    assert refuted(decomfl_box.check_eq3(0.5))
    assert refuted(decomfl_smooth.check_taylor(2))
    assert refuted(decomfl_smooth.estimate(0.9))


def test_a_wrong_compensation_is_noticed(monkeypatch):
    assert not refuted(decomfl_variants.check_synchronise(1))
    synchronise = DeComFLReading.synchronise
    for wrong in (
        lambda self, layout, y, g, step: None,
        lambda self, layout, y, g, step: synchronise(self, layout, y, step.g, replace(step, g=g)),
    ):
        monkeypatch.setattr(DeComFLReading, "synchronise", wrong)
        assert refuted(decomfl_variants.check_synchronise(1))


def test_another_momentum_is_noticed(monkeypatch):
    assert not refuted(decomfl_variants.check_compensation(0))
    monkeypatch.setattr(DeComFL, "damping", 1.0)
    assert refuted(decomfl_variants.check_compensation(0))


def test_a_private_shift_that_clients_do_not_share_is_noticed(monkeypatch):
    assert not refuted(decomfl_variants.check_secret(37))
    rebuild = DeComFLReading.rebuild
    server = lambda self, *rest: rebuild(replace(self, secret=None), *rest)
    monkeypatch.setattr(DeComFLReading, "rebuild", server)
    assert refuted(decomfl_variants.check_secret(37))


def test_directions_off_the_sphere_are_noticed(monkeypatch):
    assert not refuted(decomfl_theorem2.check_perturbation("sphere"))
    monkeypatch.setattr(Direction, "_scale", 1.0)
    assert refuted(decomfl_theorem2.check_perturbation("sphere"))


def test_another_network_is_noticed(monkeypatch):
    assert not refuted(decomfl_costs.check_parameters())
    small = NETWORKS["decomfl-mnist"]
    monkeypatch.setitem(NETWORKS, "decomfl-fashion", small)
    assert refuted(decomfl_costs.check_parameters())
    assert decomfl_costs.trained()["Fashion CNN"][0] == small((1, 28, 28), 62).layout.size


def test_other_messages_are_noticed(monkeypatch):
    assert not refuted(decomfl_costs.check_rule("6"))
    draw = DeComFL.draw
    monkeypatch.setattr(DeComFL, "draw", lambda self, P, key: draw(self, P + 1, key))
    assert refuted(decomfl_costs.check_rule("6"))


def test_another_fedzo_is_noticed(monkeypatch):
    assert not refuted(decomfl_box.check_fedzo_round(True))
    server = FedZO.server
    monkeypatch.setattr(
        FedZO,
        "server",
        lambda self, state, down, up, *rest: server(self, state, down, replace(up, dy=up.dy[:1]), *rest),
    )
    assert refuted(decomfl_box.check_fedzo_round(True))


def test_sizes_of_opt_are_those_of_its_names():
    for hidden, blocks, name in ((768, 12, 125e6), (2048, 24, 1.3e9)):
        d, phi = decomfl_costs.opt(hidden, blocks)
        assert d == pytest.approx(name, rel=0.015)
        assert phi == 50_272 * hidden


@pytest.mark.parametrize("K", [2, 5, 10])
def test_the_rounds_bound_needs_the_drifts_noise(K):
    """docs/theory/decomfl.md, there: K steps at the kink of x|x|/2 + g x; m and P so large that only means are left."""
    A = sum(sum(math.comb(k, i) * abs(k - 2 * i) for i in range(k + 1)) / 2**k for k in range(K)) / K
    L, sigma, eta = 0.7, 1.3, 1e-4
    g = -L * eta * sigma * A
    places, slopes = {0.0: 1.0}, 0.0  # where clients stand, with which probability; their mean slopes, added up
    for _ in range(K):
        further: dict[float, float] = {}
        for y, p in places.items():
            for error in (-sigma, sigma):
                slope = L * abs(y) + g + error
                slopes += p / 2 * slope
                further[y - eta * slope] = further.get(y - eta * slope, 0.0) + p / 2
        places = further
    x, step = -eta * slopes, K * eta
    left = L / 2 * x * abs(x) + g * x + step / 2 * g**2  # f(x_{r+1}) - f(x_r) + (eta'/2) |f'(x_r)|^2
    assert left == pytest.approx(A**2 / (2 * K) * L**2 * step**3 * sigma**2 / K, rel=1e-3)
    assert 1 / 16 <= A**2 / (2 * K) < 4 / (9 * math.pi)
    assert A**2 / (2 * K) < 3 * (1 - 1 / K)


SEEN = {  # parts of the round's bound with K: whether the search breaks it without them, as the page says
    "nothing": False,
    "the drift": True,
    "the drift's noise": False,
    "the smoothing": True,
    "the smoothing's bias": False,
    "what varies of the smoothing": False,
}


@pytest.mark.parametrize("left_out", SEEN)
def test_parts_of_the_rounds_bound_that_its_search_sees(left_out, monkeypatch):
    """docs/theory/decomfl.md, at the end of its section on what is reached."""
    local, floors, smoothed = decomfl_local, decomfl_local.floors, decomfl_local.smoothed
    of_clients = lambda at: (1 - 1 / at.K) * local.prices(at)[0] * local.spread(at)[0]
    change = {
        "nothing": ("floors", floors),
        "the drift": ("floors", lambda at: (floors(at)[0], 0.0)),
        "the drift's noise": ("floors", lambda at: (floors(at)[0], of_clients(at))),
        "the smoothing": ("smoothed", lambda at: (0.0, 0.0)),
        "the smoothing's bias": ("smoothed", lambda at: (0.0, smoothed(at)[1])),
        "what varies of the smoothing": ("smoothed", lambda at: (smoothed(at)[0], 0.0)),
    }
    monkeypatch.setattr(local, *change[left_out])
    search = local.survives(local.longest(local.one_round()), "local", "", local.EDGES, starts=[local.APART])
    assert search("quick").holds == (not SEEN[left_out])
