"""The limits of docs/theory/limits.md, attacked by the code that trains and by draws of its subspaces."""

import itertools
from pathlib import Path

import pytest
import torch

from fedtheory import (
    SSF,
    Coordinate,
    FedSub,
    Key,
    Layout,
    Quadratic,
    Scaffold,
    Spherical,
    play_round,
    run,
    subspace_price,
)
from fedtheory.theory.instances import Smooth, coordinate_frames, fixed
from fedtheory.theory.limits.chain import Chain

PAGE = Path(__file__).resolve().parent.parent / "docs" / "theory" / "limits.md"
D = 3


def turned(d, seed):
    return torch.linalg.qr(torch.randn(d, d, generator=Key(seed).generator(), dtype=torch.float64))[0]


def bowl(d, clients=2, L=1.0):
    return Quadratic(L * torch.eye(d).double().expand(clients, d, d), torch.zeros(clients, d).double())


def methods(lr, K, law):
    return [SSF(lr, K, law, 1.3), FedSub(lr, K, law), FedSub(lr, K, law, dual=False)]


def mean_square(method, frames, x, problem):
    """E |x^1|^2 over all frames, by the method's own round."""
    ends = [run(method(fixed(frame)), problem, 1, x0=x).x for frame in frames]
    return float(torch.stack(ends).square().sum(-1).mean())


@pytest.mark.parametrize("r", [1, 2, 3])
def test_no_method_beats_the_limit_and_a_full_step_attains_it(r):
    x, L = torch.tensor([3.0, -1.0, 0.2]).double(), 2.0
    for seed, K in itertools.product(range(3), (1, 3)):
        frames = coordinate_frames(D, r, rotation=turned(D, seed))
        least = (1 - r / D) * float(x @ x)
        for which, share in itertools.product(range(3), (0.3, 1.0, 1.7)):
            method = lambda law, at=(which, share, K): methods(at[1] / (at[2] * L), at[2], law)[at[0]]
            assert mean_square(method, frames, x, bowl(D, L=L)) >= least * (1 - 1e-12)
        full = lambda law: FedSub(1 / L, 1, law, dual=False)
        assert mean_square(full, frames, x, bowl(D, L=L)) == pytest.approx(least, abs=1e-12)


def test_scaffold_is_the_case_of_all_directions():
    assert run(Scaffold(1.0, 1), bowl(D), 1, x0=torch.ones(D).double()).x.abs().max() == 0


@pytest.mark.parametrize(("d", "r"), [(2, 1), (5, 2), (6, 5)])
def test_the_price_is_that_of_the_drawn_subspaces(d, r):
    """E[P H P] over draws of Spherical, within five standard errors; the largest entry is that of L = 1."""
    eigenvalues = torch.linspace(1, 0.1, d).double()
    bases = [Spherical(r, "orthonormal").draw(Layout.single(d), Key(s), torch.float64) for s in range(1500)]
    frames = [basis.matrices()[0] for basis in bases]
    tops = torch.stack([((P @ P.T)[0].square() * eigenvalues).sum() for P in frames]) * (d / r) ** 2
    price = subspace_price(d, r, float(eigenvalues.sum()))
    assert abs(float(tops.mean()) - price) < 5 * float(tops.std()) / len(tops) ** 0.5


@pytest.mark.parametrize(
    ("spectrum", "r", "page"),
    [("harmonic", 5, 2.6), ("harmonic", 20, 1.4), ("squares", 20, 1.1), ("ones", 5, 7.3), ("ones", 20, 3.4)],
)
def test_the_price_of_the_curvature_seen(spectrum, r, page):
    """Section 3's table: c of E[lambda P] for lambda = |P H P|, at an eigenvector of the largest eigenvalue."""
    d, g, j = 400, torch.Generator().manual_seed(0), torch.arange(1, 401, dtype=torch.float64)
    H = {"harmonic": 1 / j, "squares": 1 / j**2, "ones": (j <= 20).double()}[spectrum]
    Q = torch.linalg.qr(torch.randn(1000, d, r, generator=g, dtype=torch.float64))[0]
    seen = torch.linalg.eigvalsh(Q.mT @ (H[:, None] * Q))[:, -1]
    c = seen * Q[:, H == 1].square().sum(2).mean(1) * (d / r) ** 2
    assert abs(float(c.mean()) - page) < 0.05 + 3 * float(c.std()) / len(c) ** 0.5
    name = {"harmonic": r"$\frac1j$", "squares": r"$\frac1{j^2}$", "ones": "20 ones, else 0"}[spectrum]
    rows = [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith(f"| {name} |") and f"| {r} | {d // r} |" in line
    ]
    assert len(rows) == 1
    assert rows[0].endswith(f"| {page} |")


def test_prices_and_their_bounds():
    for d, r in ((1, 1), (2, 1), (7, 3), (400, 20), (5, 5)):
        for effective in (1.0, d / 3, float(d)):
            if effective > d:
                continue
            price = subspace_price(d, r, effective)
            assert price <= min(d / r, 1 + (effective + 1) / r) * (1 + 1e-12)
        assert subspace_price(d, r, d) == pytest.approx(d / r)
        assert subspace_price(d, r, 1.0, "coordinate") == d / r
    assert subspace_price(10, 4, 3.0, "gaussian") == 2.0


@pytest.mark.parametrize("K", [1, 2, 5])
def test_local_steps_in_the_curvature_seen(K):
    """A round of FedSub at the step beta/(K lambda), beta = 1/10, curvature of both signs: limits.3.1 and 3.2."""
    for seed in range(8):
        g, H = Key(seed).generator(), torch.diag(torch.tensor([1.0, 0.3, 0.05, 0.01])).double()
        signs = [turned(4, 10 * seed + i) for i in range(3)]
        ball = [q * torch.diag(2 * torch.rand(4, generator=g, dtype=torch.float64) - 1) @ q.T for q in signs]
        curved = torch.stack([H.sqrt() @ b @ H.sqrt() for b in ball])
        problem = Quadratic((curved + curved.mT) / 2, torch.randn(3, 4, generator=g).double())
        x, frame = torch.randn(4, generator=g).double(), turned(4, seed)[:, : 1 + seed % 3]
        P = frame @ frame.T
        seen = float(torch.linalg.eigvalsh(P @ H @ P)[-1])
        after = run(FedSub(0.1 / (K * seen), K, fixed(frame), dual=False), problem, 1, x0=x).x
        own = problem.grads(x.expand(3, -1), problem.full(problem.clients)) @ P
        mean, p = own.mean(0), 0.01 * (1 - 1 / K)
        spread = float((own - mean).square().sum(-1).mean())
        least = 0.1 / (2 * seen) * ((1 - 0.69 * p) * float(mean @ mean) - 0.69 * p * spread)
        assert float(problem.loss(x) - problem.loss(after)) >= least - 1e-12


def test_the_ramp():
    """Four rounds of FedSub and SSF on a ramp: the slope stays g = 1 as long as the sum of <e, P e> allows."""
    h, T, e = 0.25, 4, torch.tensor([1.0, 0.0]).double()
    problem = Smooth(e[None], 0 * e[None], shape="huber")  # slope 1 from 1 on
    start = (1 + h * (T - 1)) * e  # one round less than T: the iterates 0 to T - 1
    for method in (FedSub(h, 1, Coordinate(1, "orthonormal"), dual=False), SSF(h / 3, 3, Coordinate(1, "orthonormal"))):
        for seed in range(6):
            x = run(method, problem, T - 1, seed=seed, x0=start).x
            assert float(problem.grads(x[None], problem.full(problem.clients))[0, 0]) == 1.0
    gap = float(problem.loss(start) - problem.loss(0 * e))
    assert gap / (h * (T - 1) + 0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("clients", [1, 2])
def test_the_chain_holds_its_methods_back(clients):
    """SSF on masks: the front moves through kept coordinates only, and |grad F| >= 1 until it has reached the end."""
    M, K, problem, largest = 12, 3, Chain(12, clients), 0
    for seed in range(6):
        front, g = 0, Key(seed).generator()
        masks = [torch.randperm(M, generator=g)[:8] for _ in range(13)]
        made = [SSF(0.9, K, fixed(torch.eye(M).double()[:, kept])) for kept in masks]
        state = made[0].init(problem, torch.zeros(M).double(), Key(seed))
        for t in range(12):  # a server draws the next round's subspace
            state, _, _ = play_round(made[t + 1], problem, state, problem.clients, Key(seed).fold("round", t))
            kept = masks[t].tolist()
            free = next((j for j in range(front, M) if j not in kept), M) - front  # kept from the front on
            x = state.server.x
            front, before = int(x.nonzero().max()) + 1 if x.any() else 0, front
            assert front <= before + min(free, K if clients == 1 else 2)
            largest = max(largest, front - before)
            gradient = problem.grads(x.expand(clients, -1), problem.full(problem.clients)).mean(0)
            assert front == M or float(gradient.norm()) >= 1 - 1e-12
            assert gradient[front + 1 :].abs().sum() == 0
    # two clients: a memory is nonzero only where some round kept a coordinate, and that round moved the front past it
    assert largest == (K if clients == 1 else 1)


def test_the_chain_is_as_smooth_as_it_says():
    g = Key(0).generator()
    for clients, L in ((1, 25 / 3), (2, 38 / 3)):
        problem = Chain(6, clients)
        for _ in range(300):
            x = torch.rand(clients, 6, generator=g, dtype=torch.float64) * 1.8 - 0.4
            y = x + 0.01 * torch.randn(clients, 6, generator=g, dtype=torch.float64)
            apart = problem.grads(x, problem.clients) - problem.grads(y, problem.clients)
            assert bool((apart.norm(dim=-1) <= L * (x - y).norm(dim=-1) * (1 + 1e-9)).all())
            assert float(problem.losses(x, problem.clients).mean()) >= -7 / 6 * 6
