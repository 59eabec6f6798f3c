"""The ledger of FLSS: every id of the catalogue, its verdict, a refuted control, counterexamples that replay."""

import itertools
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from each import each
from entries import FAILED, decided, refuting, replays

from fedtheory.algorithms.flss import FLSS, Up
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.maps.subspace import Trajectory
from fedtheory.theory.claim import Outcome, Printed, each_needed
from fedtheory.theory.flss import claims as flss
from fedtheory.theory.flss import fixed, statements, tables
from fedtheory.theory.flss import proof as flss_proof
from fedtheory.theory.flss import rates as flss_rates
from fedtheory.theory.flss import round as flss_round
from fedtheory.theory.flss import updates as flss_updates
from fedtheory.theory.flss.printed import PAPER, fits, method, sent
from fedtheory.theory.search import ratio

pytest.importorskip("z3")
pytest.importorskip("sympy")

CLAIMS = {claim.id: claim for claim in flss.CLAIMS}

HOLDS = """eq1 lemma-c21 lemma-c23 eq2 eq8 eq9 eq10-equality eq11 eq12 eq15 eq22 eq23 eq24 eq25 eq26 eq28
thm-c31-stepsizes thm-c31-B eq34 eq35 sharper.round sharper.fixed sharper.gap a343-convex a344-span"""
CAVEAT = """b5-most-baselines table3-cost table4-cost c1-def lemma-c22_/_eq29 thm-c31 cor-c41 cor-c42 eq7 eq14-e-term
eq17 eq19 eq20 cor-c42-eta1 b1-claim"""
FALSE = """b2-claim eq14-centering eq16 eq18 eq21 eq27 eq10-ineq_/_prop341"""
SLIP = """b5-numbers eq13 eq36 drift-formula"""
VERDICTS = {
    f"flss.{name.replace('_', ' ')}": verdict
    for verdict, names in (("holds", HOLDS), ("holds-with-caveat", CAVEAT), ("false-as-stated", FALSE), ("slip", SLIP))
    for name in names.split()
}
ORDER = """b1-claim b2-claim b5-most-baselines b5-numbers table3-cost table4-cost c1-def eq1 lemma-c21 lemma-c22_/_eq29
lemma-c23 eq2 thm-c31 cor-c41 cor-c42 eq7 eq8 eq9 eq10-equality eq10-ineq_/_prop341 eq11 eq12 eq13 eq14-centering
eq14-e-term eq15 eq16 eq17 eq18 eq19 eq20 eq21 eq22 eq23 eq24 eq25 eq26 eq27 drift-formula eq28 thm-c31-stepsizes
thm-c31-B cor-c42-eta1 eq34 eq35 eq36 sharper.round sharper.fixed sharper.gap a343-convex a344-span"""


@pytest.fixture(autouse=True)
def one_run_a_corner(monkeypatch):
    """A corollary is checked along one run of each corner; the ledger takes two."""
    run = flss_rates.drawn_run
    monkeypatch.setattr(flss_rates, "drawn_run", lambda *which: run(*which[:-1], 0))


def test_every_id_of_the_catalogue_is_there_in_its_order():
    assert [claim.id for claim in flss.CLAIMS] == [f"flss.{name.replace('_', ' ')}" for name in ORDER.split()]
    assert set(CLAIMS) == set(VERDICTS)


@pytest.mark.parametrize("name", list(CLAIMS))
def test_verdict_and_control(name):
    entry = decided(CLAIMS[name])
    assert entry.verdict == VERDICTS[name], entry.detail


@pytest.mark.parametrize("name", [name for name, verdict in VERDICTS.items() if verdict in FAILED])
def test_counterexample_replays(name):
    replays(refuting(CLAIMS[name]))


def round_at(number, seed=0):
    edge = flss_round.edges()[number]
    g = flss_round.ROOT.fold("test", seed).generator()
    return flss_round.play(flss_round.build(torch.randn(edge.size, generator=g, dtype=torch.float64), edge))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_round_by_hand(number):
    """A transcript of the local steps and of the server's line, scenario by scenario and set by set."""
    q = round_at(number)
    at, p = q.at, q.at.problem
    signs = list(itertools.product((1.0, -1.0), repeat=at.tau))
    h_a = zip(p.h, p.a, p.b, p.q, p.noise)
    sent = torch.zeros_like(q.ghat)
    for k, (h, a, b, Q, u) in enumerate(h_a):
        for s, draw in enumerate(signs):
            w = at.x
            for sign in draw:
                w = w - at.lr * (Q.T @ (h * p.slope(Q @ (w - b))) + a + sign * u)
            sent[k, s] = at.frame @ (at.frame.T @ (w - at.x))
    torch.testing.assert_close(q.ghat, sent)
    later = []
    for chosen in itertools.combinations(range(at.N), at.M):
        later.append(
            [
                float(((at.x + sum(sent[k, s[k]] for k in chosen) / at.M) ** 2).sum())
                for s in itertools.product(range(len(signs)), repeat=at.N)
            ]
        )
    assert float(q.next) == pytest.approx(sum(map(sum, later)) / sum(map(len, later)))


@pytest.mark.parametrize("number", [0, 3, 7])
def test_the_clients_minima_are_minima(number):
    """No gradient step from a random point goes below F_k^*, and long gradient descent comes close to it."""
    p = round_at(number).at.problem
    low, x = flss_round.lowest(p), torch.zeros(p.n, p.d, dtype=torch.float64)
    for _ in range(3000):
        x = x - p.grads(x, p.full(p.clients)) / float(p.h.max())
    torch.testing.assert_close(p.losses(x, p.full(p.clients)), low)


def test_noise_at_the_optimum_by_hand():
    """(16), (21), (27) at w_t = w^* = 0, F = w^2/2, noise +-1, eta = 1/2: eta^2 = 1/4 against 0."""
    q = flss_round.play(flss_proof.noisy_optimum())
    assert float(q.after) == 0.25
    for terms in (flss_proof.eq21(0.0), flss_proof.eq27(0.0)):
        left, right = terms(q)[:2]
        assert (float(left), float(right)) == (0.25, 0.0)


@pytest.mark.parametrize("tau", range(1, 9))
def test_two_slips_cancel(tau):
    """sum i^2 - sum (i-1)^2 = tau^2: what (28) has too much is what (16) lacks."""
    assert flss_proof.squares(tau) - flss_proof.squares(tau - 1) == tau**2


@pytest.mark.parametrize("L", [Fraction(1, 4), Fraction(2, 5)])
def test_the_steps_of_the_second_corollary_turn_negative_by_hand(L):
    """L = mu, tau = 1, L (tau + 1) < 1: B < 0 and gamma < 0."""
    q = 2 * L
    B, gamma = 1 - 1 / q, 2 * q**2 / (L * (q - 1)) - 1
    assert B < 0
    assert gamma < 0
    steps = [2 / (L * B * (gamma + t)) for t in range(1, 60) if gamma + t != 0]
    assert steps[0] == 1 / q
    assert steps[1] > steps[0]
    assert steps[-1] < 0


def test_units_of_the_lemma():
    assert not flss_round.BENCH.alike(flss_proof.eq29_pieces)
    assert flss_round.BENCH.alike(flss_proof.sharp_pieces)


def test_every_path_of_a_run_has_its_weight():
    """Three rounds of client sampling and noise: mean and variance of w_T against the linear recursion."""
    at = flss_round.build(
        torch.tensor([0.0, 0.0, 1.0, -1.0, 2.0, 0.5, 0.25], dtype=torch.float64), flss_round.Edge(N=2, tau=1, d=1, R=1)
    )
    run = flss_rates.path(at, [0.1] * 3)
    h, a, u = at.problem.h[0, 0], at.problem.a[:, 0], at.problem.noise[:, 0]  # both clients have one curvature
    mean, variance = at.x[0], torch.zeros(())
    for _ in range(3):
        mean, variance = (1 - 0.1 * h) * mean, (1 - 0.1 * h) ** 2 * variance + 0.01 * (a**2 + u**2).mean()
    assert run.deltas[-1] == pytest.approx(float(mean**2 + variance))


def test_a_search_reports_ratios_that_the_instance_reproduces():
    found = flss_round.attack(flss_proof.eq28(), "quick", "replay", flss_round.edges()[1:3])
    left, right = flss_proof.eq28()(flss_round.play(flss_round.build(found.point, found.edge)))
    assert ratio(left, right) == pytest.approx(found.ratio)


def test_the_printed_costs_are_those_of_half_the_rounds():
    """40 D and 200 D of the CNN: 35.14 M and 0.17 G; 240 D: 0.21 G, the same run in Table 4."""
    D = tables.parameters()["CNN, 10 classes"]
    assert D == 878_538
    assert round(40 * D / 1e6, 2) == 35.14
    assert int(200 * D / 1e7) / 100 == 0.17
    assert round(240 * D / 1e9, 2) == 0.21


# Places: what is called printed is printed there


def printed_text():
    for folder in Path(__file__).resolve().parents:
        for path in (folder / "shared" / "papers").glob("001_*.txt"):
            return path.read_text()
    pytest.skip("the papers are not at hand")


def missing(where, text):
    """The labels of a place that the paper does not have: sections, the equations within them, statements, tables."""
    heads = list(re.finditer(r"^([A-E](?:\.\d+)+) [A-Z]", text, re.MULTILINE))
    sections = {
        head[1]: text[head.start() : (heads[i + 1].start() if i + 1 < len(heads) else len(text))]
        for i, head in enumerate(heads)
    }
    names = r"(?P<kind>Assumption|Theorem|Lemma|Corollary) (?P<name>[\dA-E](?:\.\d+)+)"
    labels = rf"{names}|(?P<section>[A-E](?:\.\d+)+)|\((?P<number>\d+)\)|Table (?P<table>\d+)"
    found, absent, inside = 0, [], text
    for label in re.finditer(labels, where):
        found += 1
        if label["kind"]:
            known = f"{label['kind']} {label['name']}".lower() in text.lower()
            inside = sections.get(label["name"].rpartition(".")[0], text)
        elif label["section"]:
            known = label["section"] in sections
            inside = sections.get(label["section"], "")
        elif label["number"]:
            known = re.search(rf"\({label['number']}\)\s*\$\$", inside) is not None
        else:
            known = f"Table {label['table']}:" in text
        if not known:
            absent.append(label[0])
    return absent if found else [where]


@each(name=CLAIMS)
def test_the_paper_has_every_place_that_a_claim_names(name):
    text, claim = printed_text(), CLAIMS[name]
    for part in claim.assumes:
        assert isinstance(part, Printed), part
        assert missing(part.where, text) == [], part
    if claim.where != "this package":
        assert missing(claim.where, text) == []


@pytest.mark.parametrize(
    "invented",
    ["Assumption 3.4.7", "App. C.11", "App. C.7 (16)", "Theorem C.3.2", "Theorem C.3.1 (5)", "Table 9", "the paper"],
)
def test_an_invented_place_is_seen(invented):
    assert missing(invented, printed_text())


# Caveats: each of them is needed


def test_a_caveat_that_is_not_needed_is_seen():
    broken, fine = (
        (lambda effort: Outcome(False, "exact", None, "no", {"w": 1})),
        flss_round.equal(statements.eq1(), "eq1"),
    )
    assert not each_needed(without={"one": broken, "other": broken})("quick").holds
    found = each_needed(without={"one": broken, "other": fine})("quick")
    assert found.holds
    assert "without other" in found.detail


def test_one_sample_kept_by_hand():
    """`ratchet`: unbiased wherever one looks; the second step's noise points outwards in both draws; 3.4.4 holds."""
    at = flss_proof.ratchet()
    q = flss_round.play(at)
    problem = at.problem
    points = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    draws = [problem.at(points.expand(2, 5, 2), flss_round.Sample(problem.clients, sign)) for sign in (1.0, -1.0)]
    assert float((draws[0] + draws[1]).abs().max()) == 0
    noise = q.noisy - q.grad
    assert noise[..., 0, 0].tolist() == [[4.0, -4.0]] * 2
    assert noise[..., 1, 0].tolist() == [[-4.0, -4.0]] * 2
    assert float(flss_round.outside(q)) == 0
    first = 1 - at.lr * (1 + torch.tensor([4.0, -4.0], dtype=torch.float64))
    mean = float((first - at.lr * (first - 4)).mean())
    assert q.w.mean((0, 1)).tolist() == pytest.approx([mean, 0.0])
    assert mean > 1, "outwards, where the gradient points inwards"
    fresh = flss_round.play(replace(at, reuse=False))
    assert float(fresh.w[..., 0].mean()) == pytest.approx((1 - at.lr) ** 2), "with fresh samples it moves inwards"


def test_rare_noise_breaks_the_proposition_by_hand():
    """F = w_1^2/2, eta = 1/2: G has the columns (-1/2, -v/2) and (-1/4, -u/2); sigma^2 of the 2 x 2 Gram matrix."""
    left = right = above = 0.0
    for (v, p), (u, q) in itertools.product(((3.0, 0.1), (-1 / 3, 0.9)), repeat=2):
        a, b, c = 1 / 4 + v * v / 4, 1 / 16 + u * u / 4, 1 / 8 + v * u / 4
        small = ((a + b) - ((a - b) ** 2 + 4 * c * c) ** 0.5) / 2
        one, other = small / 2, small / (a + b) * 2.0 / 4
        left, right, above = left + p * q * one, right + p * q * other, above + p * q * (one > other)
    found = flss_updates.check_prop341_noisy("quick").counterexample
    assert found["mean of the left"] == pytest.approx(left, rel=1e-3)
    assert found["mean of the right"] == pytest.approx(right, rel=1e-3)
    assert found["odds of left > right"] == pytest.approx(above)
    assert left > right


def test_the_proposition_is_tight_where_clients_pull_apart():
    """Gradients of one length in three directions: ||G||_F^2 = J eta^2 tau^2 G^2 and rho_R > 0."""
    found = flss_updates.pulling([0.1] * 5)
    assert float(found.sigma2.sum()) == pytest.approx(5 * 0.01 * 4 * 3)
    assert found.rho > 0.1
    assert ratio(*found.sides(0.01)) == pytest.approx(1)


# Controls: the nearest false statement survives no search, the tight one does


def at_corner(terms, corner, effort="quick"):
    return flss_round.survives(terms, "tight", corners=[corner], needs=flss_round.ANY_STEP)(effort).holds


TIGHT = {  # the constant at which the statement is still true, and its control's
    "lemma-c21": (lambda c: flss_proof.lemma_c21(c, True), flss_proof.APART, 1.0, 0.99),
    "lemma-c22": (flss_proof.lemma_c22, flss_proof.PURE, 0.4976, 0.49),
    "thm-c31": (flss_proof.theorem, flss_proof.PURE, 0.2494, 0.245),
    "eq14-e-term": (lambda c: flss_proof.eq14_e(1.0, c), flss_proof.PURE, 1.0, 0.99),
    "eq16": (lambda c: flss_proof.eq16(True, c), flss_proof.POINT, 1.0, 0.99),
    "eq18": (lambda c: flss_proof.eq18(False, c), flss_proof.POINT, 1.0, 0.99),
    "eq19": (flss_proof.eq19, flss_proof.CORNER[0], 1.0, 1.01),
    "eq24": (flss_proof.eq24, flss_proof.POINT, 1.0, 0.99),
    "eq25": (flss_proof.eq25, flss_proof.STRAIGHT, 0.75, 0.74),
    "eq28": (flss_proof.eq28, flss_proof.PURE, 1.0, 0.99),
    "sharper.round": (lambda c: flss_proof.sharp(True, c), replace(flss_proof.PURE, share=3.0), 1.0, 0.99),
}


@pytest.mark.parametrize("name", list(TIGHT))
def test_a_control_is_just_beyond_the_tight_constant(name):
    terms, corner, tight, beyond = TIGHT[name]
    assert abs(beyond / tight - 1) < 0.02
    assert at_corner(terms(tight), corner)
    assert not at_corner(terms(beyond), corner)


IN_A_FIXED_SUBSPACE = {
    "sharper.fixed": (fixed.contraction, fixed.NOISE_ALONE, 0.6667, 0.664),
    "sharper.gap": (fixed.gap, [fixed.ROUND_BOWL], 1.0, 0.99),
    "a343-convex": (fixed.steep, [fixed.ROUND_BOWL], 1.0, 1.01),
}


@pytest.mark.parametrize("name", list(IN_A_FIXED_SUBSPACE))
def test_a_control_in_a_fixed_subspace_is_just_beyond_the_tight_constant(name):
    terms, corners, tight, beyond = IN_A_FIXED_SUBSPACE[name]
    assert fixed.survives(terms(tight), "tight", "", corners)("quick").holds
    assert not fixed.survives(terms(beyond), "tight", "", corners)("quick").holds


def test_a_projected_run_ends_at_the_best_point_of_its_subspace():
    """Without noise and with all clients: linearly to a point that nears w_P as the step shrinks, and not to w^*."""
    corner = fixed.Fixed(replace(fixed.EDGES[2].edge, noise=False, kappa=0.5), 1)
    z = torch.randn(corner.size, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    left = []
    for q in (1 / 20, 1 / 40):
        at = fixed.posed(z, replace(corner, q=q))
        goal = fixed.optimum(at)
        for _ in range(800):
            at = replace(at, x=flss_round.play(at).w[0, 0])
        left.append(float((at.x - goal).norm()))
        assert float(at.x.norm()) > 10 * left[-1]
    assert left[0] < 0.01
    assert left[1] < 0.6 * left[0]


def test_the_corollaries_controls_are_just_beyond_the_tight_constants():
    for share, holds in ((0.2494, True), (0.245, False)):
        assert flss_rates.corollary([flss_rates.eq32(share)], False, runs=flss_rates.NOISY)("quick").holds == holds
    for share, holds in ((0.0903, True), (0.089, False)):
        assert flss_rates.corollary([flss_rates.eq6(share)], True, runs=flss_rates.QUIET)("quick").holds == holds


def test_the_bound_on_gradients_along_a_run_is_a_mean_over_what_came_before():
    """The second round starts at two points: the mean of E||g||^2 over them is enough for the corollary."""
    z = torch.tensor([0.3, 0.2, 1.0, 2.0], dtype=torch.float64)
    at = flss_round.build(z, flss_round.Edge(N=1, tau=1, d=1, R=1, kappa=1.0))
    run, first = flss_rates.path(at, [at.lr] * 2), flss_round.play(at)
    seconds = [flss_round.play(replace(at, x=x)) for x in first.w.flatten(0, 1)]
    mean = sum(float(p * q.G2) for p, q in zip(first.all_odds, seconds))
    assert pytest.approx(max(mean, float(first.G2))) == run.G2
    assert max(float(q.G2) for q in seconds) > run.G2


def test_the_slow_runs_have_a_negative_rate():
    """There the bound of C.4.1 grows with T."""
    for edge, _ in flss_rates.SLOW:
        at = flss_round.build(torch.ones(edge.size, dtype=torch.float64), edge)
        assert at.B < 0
        assert at.mu * at.lr * at.B < 0


def test_the_cells_that_fail_are_found_and_an_exception_too_many_is_refused():
    found = tables.check_table2(tables.PAIRS)("quick")
    assert found.counterexample == {"wrong": ["Sign+EF+FLSS 13.2, Signsgd+EF 14.02 at TINY beta=0.1"]}
    told = ["Sign+EF+FLSS, TINY beta=0.1", "Sign+EF+FLSS, TINY beta=0.5"]
    assert tables.check_table2(tables.PAIRS, told[:1])("quick").holds
    assert not tables.check_table2(tables.PAIRS, told)("quick").holds


def test_the_costs_leave_no_room():
    """One round more, another rank or the other order of signs and projection, and a printed cost does not come out."""
    D = tables.parameters()["CNN, 10 classes"]
    late = range(200, 400)
    assert tables.words("FedAvg+FLSS", D, late) == 40 * D + 160 * 50
    assert tables.words("FedAvg+FLSS", D, range(400)) == 240 * D + 160 * 50
    for first, failing in ((199, "FedAvg+FLSS"), (201, "Signsgd+EF")):
        found = tables.check_table3_cost(first)("quick").counterexample
        assert any(failing in name for name in found)
    ranks = [R for R in range(35, 60) if fits("1.11 M", sent(replace(signs_first(), rank=R), D, late)) in FITTING]
    assert (min(ranks), max(ranks)) == (43, 59)
    assert fits("35.14 M", 40 * D + 160 * 53) in FITTING
    assert fits("35.14 M", 40 * D + 160 * 54) not in FITTING
    assert fits("1.11 M", sent(replace(signs_first(), order="project"), D, late)) not in FITTING


FITTING = ("rounded", "cut off, not rounded")


def signs_first():
    return FLSSReading(**vars(method("Sign+EF+FLSS", PAPER)), order="sign")


# A change of the algorithm turns the checks red


def whole_ghat(self, server, down, up, clients, key, of=FLSS.server):
    """The sum over the round's clients in place of their mean."""
    return of(self, server, down, up if down.P is None else Up(up.dy * len(up.dy)), clients, key)


def shorter(self, problem, clients, own, down, key, of=FLSS.client):
    """Clients whose steps are a tenth shorter than eta_t."""
    up, own = yield from of(replace(self, lr=0.9 * self.lr), problem, clients, own, down, key)
    return up, own


def column_lost(self, change, forget, of=Trajectory.add):
    """The third column of G is forgotten."""
    return of(self, 0.0 * change if int((self.values[0] > 1e-9).sum()) == 2 else change, forget)


BROKEN = {
    "the sum for the mean": (FLSS, "server", whole_ghat, "c1-def lemma-c23 eq2 eq11 eq14-centering"),
    "shorter steps": (FLSS, "client", shorter, "eq17 drift-formula"),
    "a column of G lost": (Trajectory, "add", column_lost, "eq8 eq10-equality"),
}


def refuted(check):
    """Whether a check comes out red, by its outcome or by a part that must never break."""
    try:
        return not check("quick").holds
    except AssertionError as error:
        return "is broken" in str(error)


@pytest.mark.parametrize("what", list(BROKEN))
def test_a_broken_algorithm_is_seen(what, monkeypatch):
    owner, method, wrong, names = BROKEN[what]
    ours = [CLAIMS[f"flss.{name}"] for name in names.split()]
    right = [claim.repaired or claim.check for claim in ours]
    assert not any(refuted(check) for check in right)
    monkeypatch.setattr(owner, method, wrong)
    for claim, check in zip(ours, right):
        assert refuted(check), claim.id
