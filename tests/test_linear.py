"""docs/theory/linear.md, attacked by the code that trains and by rounds written again in NumPy."""

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedtheory import Key, linear_plan, play_round
from fedtheory.theory.fedsub.rates import floor
from fedtheory.theory.instances import Smooth, coordinate_frames, subsets
from fedtheory.theory.linear.formulas import FORMULAS as F
from fedtheory.theory.ssf.family import Member, begin, memory, play
from fedtheory.theory.ssf.round import Instance

PAGE = Path(__file__).resolve().parent.parent / "docs" / "theory" / "linear.md"


def normal(seed):
    g = Key(seed).generator()
    return lambda *size: torch.randn(*size, generator=g, dtype=torch.float64)


def turned(d, seed):
    return torch.linalg.qr(normal(seed)(d, d))[0]


# Theorem 1, by the training code


class Bumps(Smooth):
    """h_ij (u^2 + 3 sin^2 u)/8 + a_i x: curvature from -h/2 to h, no other stationary point of the mean than 0."""

    def phi(self, u):
        return (u**2 + 3 * u.sin() ** 2) / 8

    def slope(self, u):
        return (2 * u + 3 * (2 * u).sin()) / 8


GRID = torch.linspace(-20, 20, 400_002).double()  # without 0
FLAT = 0.999 * float((Bumps.slope(None, GRID) ** 2 / (2 * Bumps.phi(None, GRID))).min())


def test_the_bumps_are_not_convex_and_meet_the_condition():
    u = torch.linspace(-9, 9, 100_000).double().requires_grad_()
    bend = torch.autograd.grad(Bumps.slope(None, u).sum(), u)[0]
    assert -0.51 < float(bend.min()) < -0.49
    assert float(bend.max()) <= 1
    assert 0.02 < FLAT < 0.03


MEMBERS = [
    ("FedAvg-CD", 3, 0.2, False),
    ("FedAvg-CD", 1, 0.2, False),
    ("SSF", 3, 0.2, True),
    ("SSF", 1, 0.2, True),
    ("SCAFFOLD", 2, 0.2, True),
    ("FedSub", 3, 0.2, False),
    ("FedSub", 3, 0.05, False),
]  # method, S, 2 K L eta_l, whether the server's step makes h the largest


def contraction(method, S, share, server, seed, K):
    """Both sides of 1.3."""
    draw, N, d = normal(seed), 3, 2
    a = draw(N, d)
    h = torch.tensor([1.0, 0.7, -0.4 + 0.9 * (seed % 2)]).double()[:, None].expand(N, d)
    noise = draw(N, d)
    noisy = seed % 3 == 0 and K == 1
    problem = Bumps(h, torch.zeros(N, d).double(), a=a - a.mean(0), noise=noise / 4 if noisy else None)
    x = draw(d) * (0.1, 1.0, 4.0)[seed % 3]
    exact = problem.gradients(x)
    ci = 0 * exact if method == "FedAvg-CD" else exact + draw(N, d) * (seed % 2)
    full = method == "SCAFFOLD"
    frames = coordinate_frames(d, d) if full else coordinate_frames(d, 1, rotation=turned(d, seed))
    rho = 1.0 if full else 0.5
    lr = share / (2 * K)
    most = min(0.25, math.sqrt(rho / 8)) if S == N else S / N * math.sqrt(rho) / 8
    step = most / (K * lr) if server else 1.0
    at = Instance(problem, x, ci, ci.mean(0), frames, lr, K, step)
    played = play(at, Member(method=method, sampled=S, N=N, d=d, K=K))
    ell = FLAT * float(h[:, 0].mean())
    own, value = memory(method, rho, S / N), float(problem.values(x).mean())
    names = {
        "rho": rho, "ell": ell, "eta": at.eta, "L": 1.0, "omega": 1.0, "p": played.p, "h": played.h, "nu": played.nu,
        "S": S, "K": K, "theta": 1.0, "sigma": float(played.noise) ** 0.5, "zeta": float(played.zeta2) ** 0.5,
        "alpha": own.alpha, "gamma": own.gamma, "chi": own.chi,
    }  # fmt: skip
    s = F["s"].right(names, float)
    kappa = own.m - rho * (7 / 5 * own.alpha * played.p + (21 / 5 * played.p + 2 * played.nu) * own.gamma * played.h**2)
    names |= {"q": 7 / 8 * played.p + played.h * played.nu, "kappa_s": kappa - s}
    if method == "FedAvg-CD":
        weight, stays = 0.0, F["none"].right(names, float)
    else:
        assert all(left <= right for left, _, right in F["condition"].links(names, float))
        weight, stays = F["weight"].right(names, float), F["stays"].right(names, float)
    before = value + weight * float(played.C0)
    return value + float(played.gain) + weight * float(played.C1), (1 - s) * before + s * stays


@pytest.mark.parametrize("member", MEMBERS)
def test_no_round_breaks_theorem_1(member):
    """On losses that are not convex, in exact expectation."""
    sides = [contraction(*member, seed, K) for seed, K in itertools.product(range(6), (1, 3))]
    assert all(left <= right * (1 + 1e-12) for left, right in sides)


# Both theorems, by NumPy alone


def rounds(g, K, S, Q_full, noisy, shorter):
    """A random convex instance and the exact mean of one round: before, after, and the numbers of the theorems."""
    N, d, r = 2, 2, 1
    rotate = lambda: np.linalg.qr(g.normal(size=(d, d)))[0]
    curved = [rotate() for _ in range(N)]
    H = np.stack([q @ np.diag([1.0, g.choice([0.0, 0.05, 1.0])]) @ q.T for q in curved])
    ell = np.linalg.eigvalsh(H.mean(0))[0]
    if ell < 1e-3:
        return None
    b = g.normal(size=(N, d))
    slope = lambda y: np.einsum("ijk,ik->ij", H, y - b)
    star = np.linalg.solve(H.sum(0), np.einsum("ijk,ik->j", H, b))
    loss = lambda y: 0.5 * np.einsum("ij,ijk,ik->i", y - b, H, y - b).mean()
    at_star = slope(np.tile(star, (N, 1)))
    nu, phi, rho = (N - S) / (S * (N - 1)), S / N, r / d
    mu = 1.0 if Q_full else rho
    if shorter:  # theorem 2
        lr, h = math.sqrt(ell) / (10 * K), 0.25 / (1 + 10 * nu)
    else:
        lr, h = 0.1 / K, 0.25 if S == N else phi * math.sqrt(rho) / 8
        h = min(h, math.sqrt(rho / 8)) if S == N and not Q_full else h
    server = h / (K * lr)
    x = star + g.normal(size=d) * g.choice([0.01, 1.0])
    c = at_star + g.normal(size=(N, d)) * g.choice([0.0, 0.1, 1.0])
    u = g.normal(size=(N, d)) * (0.3 if noisy else 0.0)
    sigma2 = (u**2).sum(1).max()
    basis = rotate()
    draws = list(itertools.product((-1, 1), repeat=N * K)) if noisy else [(0,) * (N * K)]
    sets = list(itertools.combinations(range(N), S))
    after = {"e": 0.0, "f": 0.0, "star": 0.0, "here": 0.0}
    for j, signs, chosen in itertools.product(range(d), draws, sets):
        P = np.outer(basis[:, j], basis[:, j])
        Q = np.eye(d) if Q_full else P
        y, total = np.tile(x, (N, 1)), 0.0
        for k in range(K):
            seen = slope(y) + u * np.array(signs[k * N : (k + 1) * N])[:, None]
            total = total + seen / K
            y = y - lr * (seen - c + c.mean(0)) @ P
        x1, c1 = x + server * (y - x)[list(chosen)].mean(0), c.copy()
        for i in chosen:
            c1[i] = c[i] + Q @ (total[i] - c[i])
        weight = 1 / (d * len(draws) * len(sets))
        after["e"] += weight * ((x1 - star) ** 2).sum()
        after["f"] += weight * (loss(x1) - loss(star))
        after["star"] += weight * ((c1 - at_star) ** 2).sum(1).mean()
        after["here"] += weight * ((c1 - slope(np.tile(x1, (N, 1)))) ** 2).sum(1).mean()
    before = {"e": ((x - star) ** 2).sum(), "f": loss(x) - loss(star), "star": ((c - at_star) ** 2).sum(1).mean(),
              "here": ((c - slope(np.tile(x, (N, 1)))) ** 2).sum(1).mean()}  # fmt: skip
    p = lr**2 * K * (K - 1)
    names = {"rho": rho, "ell": ell, "L": 1.0, "eta": h, "h": h, "p": p, "nu": nu, "phi": phi, "mu": mu, "S": S,
             "K": K, "theta": 1.0, "sigma": sigma2**0.5, "omega": 1.0, "zeta": 0.0, "chi": 0.0, "alpha": 3 * phi,
             "gamma": 3 / (phi * mu), "min": min}  # fmt: skip
    return before, after, names


def bound(found, theorem):
    """Phi or Psi after the round and before it, s, and what the noise adds."""
    before, after, names = found
    h, p, nu = names["h"], names["p"], names["nu"]
    if theorem == 2:
        s, M = F["s2"].right(names, float), F["weight2"].right(names, float)
        added = names["sigma"] ** 2 / names["K"] * F["noise_most"].right(names, float)
        return after["e"] + M * after["star"], before["e"] + M * before["star"], s, added
    s, m = F["s"].right(names, float), names["phi"] * names["mu"] / 2
    kappa = m - names["rho"] * (7 / 5 * names["alpha"] * p + (21 / 5 * p + 2 * nu) * names["gamma"] * h**2)
    names = names | {"kappa_s": kappa - s, "q": 7 / 8 * p + h * nu}
    M, stays = F["weight"].right(names, float), F["stays"].right(names, float)
    return after["f"] + M * after["here"], before["f"] + M * before["here"], s, s * stays


@pytest.mark.parametrize(("theorem", "faster"), [(1, 2.5), (2, 4.0)])
def test_no_round_of_numpy_breaks_a_theorem(theorem, faster):
    """Random convex quadratics, in exact expectation. A rate that is `faster` times the page's breaks."""
    g, worst, broken = np.random.default_rng(theorem), 0.0, 0
    for K, S, Q_full, noisy in itertools.product((1, 2), (1, 2), (False, True), (False, True)):
        for _ in range(25):
            found = rounds(g, K, S, Q_full, noisy, theorem == 2)
            if found is not None:
                after, before, s, added = bound(found, theorem)
                worst = max(worst, after / ((1 - s) * before + added))
                broken += after > (1 - faster * s) * before + added
    assert 0.9 < worst <= 1
    assert broken > 0


@pytest.mark.parametrize(("method", "S"), [("SSF", 1), ("SSF", 3), ("SCAFFOLD", 1), ("SCAFFOLD", 2)])
def test_no_round_of_the_training_code_breaks_theorem_2(method, S):
    N, d, K = 3, 2, 3
    for seed in range(5):
        draw = normal(seed)
        h = torch.tensor([[1.0, 0.3], [1.0, 0.0], [0.2, 1.0]]).double()
        problem = Smooth(h, draw(N, d))
        star = (h * problem.b).sum(0) / h.sum(0)
        rho = 1.0 if method == "SCAFFOLD" else 0.5
        frames = coordinate_frames(d, int(rho * d), rotation=turned(d, seed))
        nu, ell = (N - S) / (S * (N - 1)), float(h.mean(0).min())
        lr = math.sqrt(ell) / (10 * K)
        step = 0.25 / (1 + 10 * nu)
        x = star + draw(d) * (0.1, 1.0)[seed % 2]
        ci = problem.gradients(star) + draw(N, d) * (0.0, 1.0)[seed % 2]
        at = Instance(problem, x, ci, ci.mean(0), frames, lr, K, step / (K * lr))
        names = {"rho": rho, "ell": ell, "L": 1.0, "eta": step, "h": step, "nu": nu, "phi": S / N, "mu": rho,
                 "p": lr**2 * K * (K - 1), "min": min}  # fmt: skip
        M, s = F["weight2"].right(names, float), F["s2"].right(names, float)
        psi = lambda x, ci, M=M, star=star, of=problem: float(
            ((x - star) ** 2).sum() + M * ((ci - of.gradients(star)) ** 2).sum(-1).mean()
        )
        ends = []
        for frame, chosen in itertools.product(frames, subsets(N, S)):
            algorithm, state = begin(replace(at, ci=ci.clone()), method, frame)  # a round writes into it
            after, _, _ = play_round(algorithm, problem, state, chosen, Key(0))
            ends.append(psi(after.server.x, after.own.c))
        assert sum(ends) / len(ends) <= (1 - s) * psi(x, ci) * (1 + 1e-12)


# Section 4


def pair(m):
    v = torch.linspace(0.5, 1, m).double()
    return Smooth(torch.stack([v / v, 0 * v]), torch.zeros(2, m).double(), a=torch.stack([v, -v])), float(v @ v)


def ends(lam, K, rho):
    names = {"lam": lam, "K": K, "rho": rho, "L": 1.0, "zeta": 1.0}
    names["delta"] = F["delta"].right(names, float)
    return F["none_end"].right(names, float), F["forget_end"].right(names, float), F["bursts"].links(names, float)[0]


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_floors_are_those_of_the_training_code(m):
    """E |grad F|^2 = L times the gap, as F = L/4 |x|^2."""
    for lam, K in ((0.1, 2), (0.7, 3), (1.0, 6)):
        problem, zeta2 = pair(m)
        without, dual, _ = ends(lam, K, 1 / m)
        frames = coordinate_frames(m, 1, scale="isotropic")
        assert floor(problem, frames, lam / K, K, dual=False) == pytest.approx(without * zeta2, rel=1e-9)
        assert floor(problem, frames, lam / K, K) == pytest.approx(dual * zeta2, rel=1e-9)
    assert floor(pair(8)[0], coordinate_frames(8, 1, scale="isotropic"), 3 / 8, 8) == math.inf
    left, _, right = ends(3.0, 8, 1 / 8)[2]
    assert left > right


def test_fedsub_bursts_where_the_page_says():
    """The spectral radius of a coordinate's second moments, in NumPy, over lambda <= 1."""
    seen = set()
    for lam, K, rho in itertools.product((0.2, 0.5, 1.0), (2, 5, 50), (0.5, 0.05, 0.02, 0.005, 0.001)):
        delta = 1 - (1 - (1 - lam / K) ** K) / lam
        t, share = lam, 1 - delta
        jump = np.array([-t / 2 * share, t / 2 * delta])  # of (x, w)
        drawn = np.stack([np.array([1.0, 0.0]) + jump, jump / (rho * t)])
        rest = np.array([[1.0, 0.0], [0.0, 0.0]])
        moments = rho * np.kron(drawn, drawn) + (1 - rho) * np.kron(rest, rest)
        left, _, right = ends(lam, K, rho)[2]
        bursts = float(np.abs(np.linalg.eigvals(moments)).max()) >= 1
        assert bursts == (left >= right)
        seen.add(bursts)
    assert seen == {True, False}


def test_the_sampling_floor():
    for N, S, K, lr, rho in ((2, 1, 1, 0.3, 0.5), (5, 2, 3, 0.1, 0.2)):
        nu = (N - S) / (S * (N - 1))
        names = {"L": 1.0, "lr": lr, "K": K, "nu": nu, "zeta": 1.0}
        c = names["c"] = F["c"].right(names, float)
        square = 0.0
        for _ in range(3000):
            square = rho * ((1 - c) ** 2 * square + c**2 * nu) + (1 - rho) * square
        assert F["sampled_end"].right(names, float) == pytest.approx(square / 2)


# The table, the rule and the cells


def test_the_table_of_how_tight():
    text = PAGE.read_text().partition("## How tight")[2]
    h, small = 0.25, 1e-6
    rate = 1 - (1 - h) ** 2  # of |x|^2, over rho
    found = [rate / (0.9 * h), rate / (h / 2)]
    found.append(10 / 9 * small / (small / (2 * (2 - small))))
    ell, lam = 1e-3, 1e-6  # K to infinity: slopes of both paths by exponentials
    S1, S2 = 1 - math.exp(-lam), (math.exp((1 - 2 * ell) * lam) - 1) / (1 - 2 * ell)
    end = (S2 - S1) / (S1 - (1 - 2 * ell) * S2)
    found.append(10 / (9 * ell) * 7 / 8 * lam**2 / (ell / 2 * end**2))
    found.append(10 / 9 * small / (small / (2 * (2 - small))))
    assert re.findall(r"\| (\d\.\d) \|$", text, re.MULTILINE) == [f"{one:.1f}" for one in found]
    ratios = [2.6 * 2 * lam**2 / ends(lam, 50, 0.5)[1] for lam in (0.1, 0.05, 0.025)]
    assert all(b > 1.9 * a for a, b in itertools.pairwise(ratios))


def test_the_plan_is_that_of_theorem_2():
    for L, mu, share, n, S, K in ((2.0, 0.3, 0.25, 10, 3, 4), (1.0, 1.0, 1.0, 1, 1, 1), (5.0, 5.0, 0.1, 1000, 1, 7)):
        plan = linear_plan(L, mu, share, n, S, K, left=1e-4)
        nu = (n - S) / (S * (n - 1)) if n > 1 else 0.0
        h = L * K * plan.lr * plan.server_lr
        names = {"L": L, "ell": mu, "nu": nu, "h": h, "p": (L * plan.lr) ** 2 * K * (K - 1), "N": n, "S": S,
                 "rho": share, "Psi_0": 1.0, "eps": 1e-4, "max": max, "log": math.log}  # fmt: skip
        assert plan.rounds == math.ceil(F["rounds2"].right(names, float))
        assert names["p"] <= F["short"].right(names, float)
        left, _, right = F["server"].links(names, float)[0]
        assert left == pytest.approx(right)
    with pytest.raises(ValueError, match=r"sampled=3: expected at most n = 2"):
        linear_plan(1.0, 0.5, n=2, sampled=3)
    with pytest.raises(ValueError, match=r"mu=2.0"):
        linear_plan(1.0, 2.0)
