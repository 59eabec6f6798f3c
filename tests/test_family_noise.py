"""docs/theory/family.md, section 9, attacked by NumPy alone: every map, sample and set of clients of a round."""

import contextlib
import io
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "theory" / "family.md"
N, D, RHO = 2, 2, 0.5


def turned(rng):
    return np.linalg.qr(rng.standard_normal((D, D)))[0]


def drawn(rng, ell, still):
    """Two clients <v, H v>/2 + <a, v> at v = y - x, |H| <= 1, and noise +-(u + A v) with |A| <= ell; any controls.

    `still`: grad F(x) = 0, exact but for a common vector, curvatures 1: nothing but noise moves the loss.
    """
    H, A = [], []
    for _ in range(N):
        q, p = turned(rng), turned(rng)
        H.append(q @ np.diag(np.ones(D) if still else rng.uniform(-1, 1, D)) @ q.T)
        A.append(ell * q @ np.diag([1, rng.uniform(-1, 1)]) @ p)
    a, u, c = (rng.standard_normal((N, D)) * rng.exponential() for _ in range(3))
    if still:
        a[1], u, c = -a[0], 0 * u, 0 * c
    return H, A, a, u, c


def rounds(at, K, S, lr, server_lr):
    """Every outcome of a round of SSF: P, y - x of all steps, x^+ - x, the new controls."""
    H, A, a, u, c = at
    frames = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    for P, signs in itertools.product(frames, itertools.product((-1, 1), repeat=N * K)):
        paths, ends, means = [], [], []
        for i in range(N):
            v, path, total = np.zeros(D), [], np.zeros(D)
            for k in range(K):
                path.append(v)
                g = H[i] @ v + a[i] + signs[i * K + k] * (u[i] + A[i] @ v)
                v, total = v - lr * P @ (g - c[i] + c.mean(0)), total + g / K
            paths.append(path)
            ends.append(v)
            means.append(total)
        for chosen in itertools.combinations(range(N), S):
            new = [c[i] + (P @ (means[i] - c[i]) if i in chosen else 0) for i in range(N)]
            yield paths, server_lr * sum(ends[i] for i in chosen) / S, np.array(new)


def sides(at, K, S, split, ell, h, reach=0.1, noise=1.0):
    """Left and right of the drift, descent, move, memory and round of section 9. `noise`: of l^2 in L_hat^2."""
    H, _, a, u, c = at
    hat2 = 1 + (1 + 1 / split) * ell**2 / K * noise
    lr = reach / (K * (1 + (1 + 1 / split) * ell**2 / K) ** 0.5)
    eta, p, theta = h, hat2 * lr**2 * K * (K - 1), (1 + split) * RHO
    drift = gain = moved = C1 = count = 0
    for paths, step, new in rounds(at, K, S, lr, h / (K * lr)):
        drift += sum(v @ v for path in paths for v in path) / (N * K)
        gain += sum(step @ H[i] @ step / 2 + a[i] @ step for i in range(N)) / N
        moved += step @ step
        C1 += sum(((H[i] @ step + a[i] - new[i]) ** 2).sum() for i in range(N)) / N
        count += 1
    drift, gain, moved, C1 = (total / count for total in (drift, gain, moved, C1))
    G, e = a.mean(0), a - c
    G2, C, V = G @ G, (e**2).sum(1).mean(), ((e - e.mean(0)) ** 2).sum(1).mean()
    sigma2, nu, phi = (u**2).sum(1).max(), (N - S) / (S * (N - 1)), S / N
    noisy = theta * sigma2 / K
    m, alpha, gamma = phi * RHO / 2, 3 * phi, 3 / (phi * RHO)
    q, kappa = 7 / 8 * p + h * nu, m - RHO * (7 / 5 * alpha * p + (21 / 5 * p + 2 * nu) * gamma * h**2)
    assert kappa > 0
    M, last = (
        RHO * eta * q / kappa,
        h / S + 2 / 3 * p + RHO * q / kappa * (51 / 50 * alpha + (1 / 25 + 2 / S) * gamma * h**2),
    )
    return {
        "drift": (hat2 * drift, 1.041 * p * noisy + 1.388 * RHO * p * (V + G2)),
        "descent": (gain + RHO * eta / 2 * G2, (1 + h) / 2 * eta * hat2 * drift + h * eta * (RHO * nu * V + noisy / S)),
        "move": (moved, eta**2 * (2 * RHO * G2 + 3 * hat2 * drift + 2 * RHO * nu * V + 2 * noisy / S)),
        "memory": (C1, (1 - m) * C + alpha * (hat2 * drift + noisy) + gamma * moved),
        "round": (gain + M * (C1 - C) + 9 / 20 * RHO * eta * G2, eta * noisy * last),
    }  # fmt: skip


@pytest.mark.parametrize(("K", "S"), [(2, 1), (2, 2), (3, 2)])
def test_a_round_with_fresh_samples_keeps_section_9(K, S):
    h = S / N * RHO**0.5 / 8 if S < N else min(1 / 4, (RHO / 8) ** 0.5)
    for seed, ell, split in itertools.product(range(2), (0.3, 30.0), (0.2, 1.0, 4.0)[: 7 - 2 * K]):
        at = drawn(np.random.default_rng(seed), ell, still=seed % 2 == 1)
        for name, (left, right) in sides(at, K, S, split, ell, h).items():
            assert left <= right + 1e-12 * (1 + abs(right)), (name, seed, ell, split)


def test_without_the_samples_smoothness_the_descent_fails():
    """L for L_hat: what the noise adds on the way is not in D's coefficient then."""
    at = drawn(np.random.default_rng(1), 30.0, still=True)
    left, right = sides(at, 2, 2, 1.0, 30.0, 1 / 4)["descent"]
    less = sides(at, 2, 2, 1.0, 30.0, 1 / 4, noise=0.0)["descent"]
    assert less[1] < left <= right
    assert less[0] == left


def shares(ell, along):
    """E<xi, P xi>/sigma^2 after one step along e, over two lines P. `along`: the noise is +-(y - x)/|y - x|."""
    e, c, total = np.array([0.6, 0.8]), 0.7, 0
    for P in (np.diag([1.0, 0.0]), np.diag([0.0, 1.0])):
        v = c * P @ e
        xi = v / np.linalg.norm(v) if along else e + ell * v
        total += xi @ P @ xi / 2
    return total, (RHO**0.5 + ell * (c**2 * RHO) ** 0.5) ** 2


def test_what_section_9_says_of_the_best_split_is_attained():
    for ell in (0.0, 0.5, 3.0):
        share, most = shares(ell, along=False)
        assert share == pytest.approx(most, rel=1e-13)
    assert shares(0.0, along=True)[0] == pytest.approx(1.0)


def test_the_page_prints_what_its_code_prints():
    (block,) = re.findall(r"```python\n([^`]*)```\n\n```\n([^`]*)```", PAGE.read_text())
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(block[0], {})
    assert said.getvalue() == block[1]
