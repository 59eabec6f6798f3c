"""What a practitioner takes: the rules against the pages they are from, and the page against the records."""

import importlib
import itertools
import math
import re
from functools import cache
from pathlib import Path

import pytest
import torch

from fedtheory import (
    Estimate,
    Key,
    Layout,
    MatrixRegression,
    Quadratic,
    best_directions,
    controls_pay_after,
    estimate,
    largest_step,
)
from fedtheory.core import registry
from fedtheory.maps.decomposition import LowRank
from fedtheory.papers import EXTRAS, store
from fedtheory.papers.store import measured
from fedtheory.papers.use import reset, step
from fedtheory.running import records
from fedtheory.theory import rules

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "theory" / "use.md").read_text()
ITEMS = [name for name in EXTRAS if name.startswith("use/")]
NAMED = re.compile(r"<!-- (use/\w+): (.+?) -->")


@cache
def committed(item):
    return records.load(ROOT / "figures", item)["table"]


@cache
def said(item):
    module = importlib.import_module(registry.items()[item].module)
    return module.says(committed(item))


def rows(item, **wanted):
    return [row for row in committed(item) if all(row[name] == value for name, value in wanted.items())]


# The rules


def admitted(page, *conditions):
    """The page still states what a rule was taken from."""
    text = (ROOT / "docs" / "theory" / page).read_text()
    return all(condition in text for condition in conditions)


def test_steps_are_those_of_the_pages():
    assert admitted("ssf.md", r"$KL\eta_l\le\frac1{10}$", r"$L\tilde\eta\le\min\bigl(\frac14,\sqrt{\rho/8}\bigr)$")
    assert admitted("fedsub.md", r"$L\eta\tau\le\frac1{3\sqrt{\theta_m}}$", r"$\lambda\le\frac13$")
    for K, rho in itertools.product((1, 5), (0.01, 0.19, 0.21, 1.0)):
        q = K * 2.0 * largest_step("SSF", 2.0, K, rho)
        holds = lambda q, rho=rho: q <= 0.1 and q**2 / rho <= 1 / 8
        assert holds(0.9999 * q)
        assert not holds(1.0001 * q)
        theta = 1 / rho
        assert K * 2.0 * largest_step("FedSub", 2.0, K, rho) == pytest.approx(1 / (3 * theta**0.5))
        assert K * 2.0 * largest_step("FedAvg-CD", 2.0, K, rho) == pytest.approx(1 / 3)
    assert largest_step("SCAFFOLD", 2.0, 5) == largest_step("SSF", 2.0, 5, 1.0)


def test_minibatches_shorten_the_step_as_the_family_says():
    assert admitted("family.md", r"$\hat L^2=L^2+2\frac{\ell^2}K$", r"$K\hat L\eta_l\le\frac1{10}$")
    K, L, rough = 5, 2.0, 3.0
    lr = largest_step("SSF", L, K, 1.0, sample_L=rough)
    assert K * lr * math.sqrt(L**2 + 2 * rough**2 / K) == pytest.approx(0.1)


def test_estimates_are_the_sizes_of_a_quadratic():
    """Of two clients with diagonal Hessians and noise of one size; a longer run of points only raises them."""
    values = torch.tensor([[4.0, 2.0, 1.0], [1.0, 1.0, 3.0]], dtype=torch.float64)
    b = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]], dtype=torch.float64)
    noise = Quadratic.random(2, 3, Key(0), sigma=0.5).noise
    made = Quadratic(torch.diag_embed(values), b, noise=noise)
    x = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    found = estimate(made, x, least=-7.0, effort=60)
    grads = made.grads(x.expand(2, -1), made.full(made.clients))
    mean = grads.mean(0)
    assert abs(found.L - 4) < 1e-6
    assert found.effective == pytest.approx(float(values.mean(0).sum()) / 4)
    assert found.gap == pytest.approx(made.loss(x) + 7)
    assert found.start2 == pytest.approx(float(grads.square().sum(1).mean()))
    assert found.zeta2 == pytest.approx(float((grads - mean).square().sum(1).mean()))
    assert found.sigma2 == pytest.approx(0.25, rel=0.5)
    assert found.sample_L == pytest.approx(0.0, abs=1e-6)
    assert found.mu == pytest.approx(float(mean.square().sum()) / (2 * found.gap))
    more = estimate(made, torch.stack([x, 3 * x]), least=-7.0, effort=60)
    assert (more.gap, more.start2) == (found.gap, found.start2)
    assert more.zeta2 > found.zeta2


def test_minibatches_of_a_regression_are_noise():
    made = lambda batch: MatrixRegression.ssf(0.5, Key(0), n=3, rows=4, d=5, m=2, batch=batch)
    found, whole = estimate(made(1), effort=60), estimate(made(None), effort=60)
    assert pytest.approx(made(1).constants.L, rel=1e-3) == found.L
    assert whole == found._replace(sigma2=0.0, sample_L=0.0)
    assert found.sigma2 > 0


@pytest.mark.parametrize("kappa", [1.0, 2.3, 50.0, 999.0])
@pytest.mark.parametrize(("fixed", "each"), [(1.0, 1.0), (0.0, 1.0), (20.0, 0.5)])
def test_directions_are_the_cheapest(kappa, fixed, each):
    cost = lambda P: (1 + (kappa + 1) / P) * (fixed + P * each)
    assert cost(best_directions(kappa, fixed, each)) == pytest.approx(min(map(cost, range(1, 500))))


def test_the_price_of_directions_is_the_second_moment():
    """E||(1/P) sum_p z_p z_p^T w||^2 = c ||w||^2 in one dimension, where kappa = 1."""
    P = 3
    moment = {0: 1, 2: 1, 4: 3}  # of a standard normal
    total = sum(moment[4] if i == j else moment[2] ** 2 for i, j in itertools.product(range(P), repeat=2))
    assert total / P**2 == pytest.approx(rules.directions_price(1.0, P))


@pytest.mark.parametrize("aad", [False, True])
def test_the_price_of_fedmud_is_that_of_its_factors(aad):
    """E||preconditioned A||^2 over (E ...)^2, of factors as the code draws them."""
    m, n, r = 3, 4, 1
    layout, A = Layout.single(n, m), torch.randn(m * n, generator=Key(1).generator(), dtype=torch.float64)
    of = LowRank(r * (m + n) / (m * n), 1.0, "aad" if aad else "product", layers="all")
    squares = []
    for i in range(4000):
        D = of.draw(layout, Key(0).fold("f", i), torch.float64)
        moved = D.pullback(D.start, A)  # a local step from the start
        after = moved if aad else torch.cat([D.start[: m * r], moved[m * r :]])  # U has no gradient where V = 0
        squares.append(float(D.update(after).square().sum()))
    gamma = (2 if aad else 1) * r / 3
    values = torch.tensor(squares, dtype=torch.float64) / (gamma**2 * A.square().sum())
    error = float(values.std() / len(values) ** 0.5)
    assert abs(float(values.mean()) - rules.mud_price(m, n, r, aad=aad)) < 4.5 * error
    assert abs(float(values.mean()) - rules.mud_price(m, n, r, aad=not aad)) > 4.5 * error


def test_what_no_reset_has_touched():
    """Over all pairs of coordinate frames of rank 1 in three rows and two columns, one after the other."""
    X = torch.arange(6, dtype=torch.float64).view(3, 2) + 1
    left = [X - X * (torch.arange(3)[:, None] == i) for i in range(3)]
    both = [Y - Y * (torch.arange(2) == j) for Y in left for j in range(2)]
    again = [Y - Y * (torch.arange(3)[:, None] == i) for Y in left for i in range(3)]
    share = lambda found: float(torch.stack(found).square().sum((1, 2)).mean() / X.square().sum())
    assert share(left) == pytest.approx(rules.untouched_share((1 / 3,), 1))
    assert share(both) == pytest.approx(rules.untouched_share((1 / 3, 1 / 2), 1))
    assert share(again) == pytest.approx(rules.untouched_share((1 / 3,), 2))


def test_controls_pay_where_the_bounds_cross():
    common = {"L": 2.0, "gap": 3.0, "N": 10, "K": 5}
    known = Estimate(L=2.0, effective=1.0, gap=3.0, start2=4.0, zeta2=1.0, sigma2=0.0, sample_L=0.0, mu=0.0)
    pays = lambda q, rho, **sizes: controls_pay_after(known._replace(**sizes), q, rho, n=10, local_steps=5)
    for q, rho, sigma2 in ((0.1, 1.0, 0.0), (0.05, 0.2, 0.0), (0.1, 0.5, 0.01)):
        T = pays(q, rho, sigma2=sigma2)
        less = lambda t, q=q, rho=rho, s=sigma2: (
            rules.bound_with_memory(t, q, rho, start2=4.0, sigma2=s, **common)
            < rules.bound_without(2 * t, q, rho, zeta2=1.0, sigma2=s, **common)
        )
        assert less(1.001 * T)
        assert not less(0.999 * T)
    assert math.isinf(pays(0.1, 1.0, zeta2=0.0))
    assert math.isinf(pays(0.1, 1.0, sigma2=1.0))


def test_the_bounds_are_those_of_the_page():
    """Each coefficient of the two displayed bounds, by switching the others off."""
    assert admitted("ssf.md", r"\frac{55L^2K\eta_l^2\sigma^2}{3\rho}", r"+1.8\,L^2K^2\eta_l^2\zeta^2+2.05\,\frac{L\t")
    T, q, rho, L, N, K = 7.0, 0.1, 0.5, 2.0, 4, 5
    lr = q / (K * L)
    of = lambda bound, **on: bound(T, q, rho, L=L, N=N, K=K, **({"gap": 0.0, "sigma2": 0.0} | on))
    memory = lambda **on: of(rules.bound_with_memory, **({"start2": 0.0} | on))
    plain = lambda **on: of(rules.bound_without, **({"zeta2": 0.0} | on))
    assert memory(gap=1.0) == pytest.approx(20 / (9 * rho * K * lr * T))
    assert memory(start2=1.0) == pytest.approx(40 * L**2 * K**2 * lr**2 / (9 * rho * T))
    noise = 20 * L * K * lr / (9 * rho * N * K) + 55 * L**2 * K * lr**2 / (3 * rho)
    assert memory(sigma2=1.0) == pytest.approx(noise)
    assert plain(gap=1.0) == pytest.approx(2.05 / (rho * K * lr * T))
    assert plain(zeta2=1.0) == pytest.approx(1.8 * L**2 * K**2 * lr**2)
    assert plain(sigma2=1.0) == pytest.approx(2.05 * L * K * lr / (rho * N * K) + 4 * L**2 * K * lr**2 / (3 * rho))


# The page and the records


def test_every_number_of_the_page_is_in_a_record():
    """And every item is on the page, with its picture."""
    named = NAMED.findall(PAGE)
    assert len(named) > 30
    for item, name in named:
        assert name in said(item), (item, name)
    assert {item for item, _ in named} == set(ITEMS)
    assert sorted(re.findall(r"\]\(\.\./\.\./figures/(\S+)\.png\)", PAGE)) == sorted(ITEMS)
    for item in ITEMS:
        record = records.load(ROOT / "figures", item)
        assert (record["scale"], len(record["seeds"])) == ("medium", 5)
        assert record["notes"] == [f"{name}: {value:.3g}" for name, value in said(item).items()]


def test_the_cell_of_the_page_runs(capsys):
    (cell,) = re.findall(r"```python\n(.*?)\n```", PAGE, re.DOTALL)
    assert len(cell.splitlines()) <= 10
    exec(compile(cell, "use", "exec"), {})
    assert capsys.readouterr().out.count("\n") == 5


def test_the_book_links_the_pictures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "book" / "_ext"))
    page = importlib.import_module("proof_pages").use()
    assert "<!--" not in page
    assert "../look-up/items/use-step.png" in page


@pytest.mark.parametrize("name", ITEMS)
def test_quick_runs_draw(name, tmp_path):
    table = measured(store.Runner(tmp_path), EXTRAS[name].measure("quick", 2)).table
    assert EXTRAS[name].draw(records.read_csv(records.to_csv(table))).axes


def test_rows_come_back():
    """Cheap rows of two items, by the code of today."""
    (kept,) = rows("use/reset", panel="range", x=0.3)
    fresh = reset.scaled(0.3, "medium", 5)
    assert all(kept[name] == pytest.approx(fresh[name], rel=1e-6) for name in ("mean", "low", "high", "rule"))
    (kept,) = rows("use/step", panel="price", method="FedMUD", x=4)
    fresh = step.by_price("FedMUD", 4, "medium", 5)
    assert all(kept[name] == pytest.approx(fresh[name], rel=1e-6) for name in ("mean", "low", "high", "rule"))


def means(item, **wanted):
    return [row["mean"] for row in rows(item, **wanted)]


def test_steps_stand_as_the_page_says():
    for panel in ("matrix regression", "logistic regression"):
        for method in ("SSF", "FedAvg-CD"):
            small, *_, whole = rows("use/step", panel=panel, method=method)
            if panel == "matrix regression":
                assert small["low"] > whole["high"], "longer steps in smaller subspaces"
            else:
                assert small["high"] < whole["low"]
        assert all(row["low"] > row["rule"] for row in rows("use/step", panel=panel))
        rules_ = [row["rule"] for row in rows("use/step", panel=panel, method="SSF")]
        assert rules_ == sorted(rules_)
        ssf, fedsub = (rows("use/step", panel=panel, method=name) for name in ("SSF", "FedSub"))
        assert (ssf[1]["x"], ssf[1]["rule"] < fedsub[1]["rule"]) == (0.2, True)
        assert ssf[0]["rule"] == pytest.approx(fedsub[0]["rule"], rel=0.1), "level"
        assert fedsub[0]["high"] < ssf[0]["low"]
        assert fedsub[1]["high"] < ssf[1]["low"]
    found = said("use/step")
    for method, factor in (("DeComFL", 8), ("FedMUD", 2)):
        assert 0.8 * factor < found[f"{method}, least edge over rule"]
        assert found[f"{method}, largest edge over rule"] < 1.25 * factor


def test_ranks_stand_as_the_page_says():
    full, mini, mud = ("SSF, full gradients", "SSF, minibatches", "FedMUD, one step a reset")
    found = said("use/rank")
    assert {row["sent"] for row in rows("use/rank") if row["panel"] != mud} == {4000}
    assert len({row["sent"] for row in rows("use/rank", panel=mud)}) == 1
    for panel in (full, mini):
        assert found[f"{panel}, same, smallest r over largest"] == pytest.approx(1, abs=0.005)
        assert (
            found[f"{panel}, best, smallest r over largest, high"]
            < 1
            < found[f"{panel}, bound, smallest r over largest"]
        )
        first, *between, last = rows("use/rank", panel=panel, kind="best")
        assert (first["edge"], last["edge"]) == (1, 0)
        assert first["step"] > last["step"]
        assert all(row["mean"] < last["mean"] for row in between)
        unsure = [row["r"] for row in between if row["ratio high"] > 1]
        assert unsure == ([20] if panel == mini else [])
    assert found[f"{mud}, rule, smallest r over largest, high"] < 1
    for kind in ("rule", "best"):
        shares = [row["ratio"] for row in rows("use/rank", panel=mud, kind=kind)]
        assert shares == sorted(shares)
        assert shares[0] > found[f"{full}, best, smallest r over largest"]
    assert found[f"{mud}, bound, smallest r over largest"] < 1


def test_resets_stand_as_the_page_says():
    for panel in ("one curvature", "curvatures 0.1 to 1"):
        for form in ("freeze", "aad", "product"):
            left = means("use/reset", panel=panel, form=form)
            assert left == sorted(left)
    for form in ("freeze", "aad"):
        for row in rows("use/reset", panel="one curvature", form=form):
            if row["x"] >= 20:
                assert row["low"] < row["rule"] < row["high"]
    freeze, aad = (rows("use/reset", panel="one curvature", form=form) for form in ("freeze", "aad"))
    assert all(a["rule"] < b["rule"] for a, b in zip(freeze, aad))
    ranges = rows("use/reset", panel="range")
    price = rules.mud_price(16, 16, 4)
    for row in ranges:
        assert (row["mean"] < 1) == (row["x"] ** 2 < 6 / (0.25 * 4 * price))
    assert ranges[0]["mean"] > 0.95


def test_low_rank_targets_stand_as_the_page_says():
    for panel, keeps in (("rank 4", True), ("rank 4 and 1% noise", False)):
        every, now_and_then, never = rows("use/targets", panel=panel)
        best = min((every, now_and_then, never), key=lambda row: row["mean"])
        assert best is (never if keeps else every)
        assert [str(row["chosen"]) for row in (every, now_and_then, never)] == [str(not keeps), "False", str(keeps)]
        assert every["mean"] < every["rule"]
    assert never["mean"] == pytest.approx(never["rule"], rel=0.05)


def test_what_keeps_its_factors():
    """A frozen tail against fresh factors, (3/4)^10 = 0.056, at both sides of the line."""
    least = 0.75**10
    for share, wanted in ((0.9 * least, None), (1.1 * least, 1)):
        values = [math.sqrt(1 - share), math.sqrt(share)]
        assert rules.reset_interval(values, rank=1, rows=4, rounds=10) == wanted
    assert rules.reset_interval([0.1, 3.0], rank=1, rows=4, rounds=10) is None  # any order
    assert rules.reset_interval([1e200, 1e200], rank=1, rows=4, rounds=10) == 1  # their squares overflow
    with pytest.raises(ValueError, match=r"singular_values=.*at least one above 0.*Fix: give those of the target"):
        rules.reset_interval([0.0, 0.0], rank=1, rows=4, rounds=10)


def test_directions_stand_as_the_page_says():
    for name in ("flat", "falling", "logistic regression"):
        found, tried = said("use/directions"), rows("use/directions", panel=name)
        low, high = (found[f"{name}, evaluations at the rule's P over the best, {end}"] for end in ("low", "high"))
        assert low < 1 < high
        assert {row["step"] for row in tried} == {1.0}
        assert tried[-1]["P"] == 100
        assert found[f"{name}, evaluations at the largest P over the best"] > 1.5


def test_controls_stand_as_the_page_says():
    case = lambda **wanted: rows("use/controls", panel="case", **wanted)
    (alike,) = case(curvatures="alike")
    assert math.isinf(alike["found"])
    assert alike["rule"] < 10
    assert alike["end ratio"] == pytest.approx(2, 1e-3)
    for row in case(curvatures="different"):
        pays = row["share"] == row["q"] == 1
        assert math.isfinite(row["found"]) == pays
        assert (row["high"] < 1) == pays
        assert math.isinf(row["rule"]) == (row["sigma"] == 3)
        assert math.isinf(row["rule"]) or row["found"] > 10 * row["rule"]


def test_the_network_stands_as_the_page_says():
    found = said("use/network")
    assert found["effective"] < 0.01 * 4810
    for r in (10, 100):
        low, high = (found[f"r = {r}: price, {end}"] for end in ("low", "high"))
        assert high < 0.1 * 4810 / r, "far below the worst case"
        assert 0.5 * low < found[f"r = {r}: price by rule"] < 2 * high
    for method in ("SSF", "FedAvg"):
        assert found[f"{method}: best step over rule"] > 4
    assert found["share 0.2, q 10: found"] < found["share 0.2, q 10: rule"]
    assert found["share 0.2, q 10: end ratio, low"] < 1 < found["share 0.2, q 10: end ratio, high"]
    assert (round(found["P by rule"]), found["P by experiment"]) == (3, 3)
    assert found["planned over needed, low"] > 1
    assert all(abs(found[f"theta over rho, step {x}"] - 1) < 0.05 for x in (1, 512))
