"""Project 2, a solution: when does a control variate help? The crossing of FedAvg and SCAFFOLD, predicted and measured.

On quadratics a round is an affine map of the state, drawn with the participants and the noise. So the stationary mean
square error solves a linear equation, exactly:

- FedAvg: a floor by noise, and a part that grows with the square of the heterogeneity zeta (drift and sampling);
- SCAFFOLD: a floor by noise alone, since x* with c_i = grad F_i(x*) is a fixed point of every participant's map. Its
  floor is higher, because control variates are made of noisy gradients.

The two are equal at one zeta. Below it the control variate does harm.
"""

import itertools
import math

import torch

from fedtheory import FedAvg, Key, Quadratic, Scaffold, play_round, run
from fedtheory.papers.store import interval

N, D, LR = 4, 3, 0.3
ROUNDS, BURNED, SEEDS = 500, 100, 6
Maps = list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]  # by participants: linear part, shift, noise (columns)

torch.set_default_dtype(torch.float64)


def clients(zeta: float) -> Quadratic:
    """N quadratics with fixed curvatures and noise of norm 1; their centres lie zeta times as far apart."""
    one = Quadratic.random(N, D, Key(3), spectrum=(0.1, 1.0), sigma=1.0)
    return Quadratic(one.H, zeta * one.b, noise=one.noise)


def local(problem: Quadratic, K: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """K local steps: M = (I - lr H)^K, S = lr sum (I - lr H)^j, and what each step's noise becomes, (N, K, D)."""
    step = torch.eye(D) - LR * problem.H
    powers = torch.stack([torch.linalg.matrix_power(step, j) for j in range(K + 1)])
    return powers[K], LR * powers[:K].sum(0), torch.einsum("kide,ie->ikd", powers[:K], problem.noise)


def fedavg(problem: Quadratic, K: int, sampled: int) -> Maps:
    """x' = mean over participants of b + M (x - b) - lr sum_k (I - lr H)^k u."""
    M, _, v = local(problem, K)
    shift = ((torch.eye(D) - M) @ problem.b[..., None])[..., 0]
    return [
        (M[at].mean(0), shift[at].mean(0), -LR / sampled * v[at].flatten(0, 1).T)
        for at in map(list, itertools.combinations(range(N), sampled))
    ]


def scaffold(problem: Quadratic, K: int, sampled: int) -> Maps:
    """State (x - x*, c_1 - c_1*, ..., c_N - c_N*); c is the mean of all c_i. No shift: the origin is fixed."""
    M, S, v = local(problem, K)
    block = lambda i: slice((i + 1) * D, (i + 2) * D)
    x, size, found = slice(0, D), (N + 1) * D, []
    for at in itertools.combinations(range(N), sampled):
        A, noise = torch.eye(size), []
        A[x, x] = M[list(at)].mean(0)
        for i in at:
            A[block(i), block(i)] = 0  # c_i' = c_i - c + (x - y_i) / (K lr)
            A[block(i), x] = (torch.eye(D) - M[i]) / (K * LR)
            for j in range(N):
                gap = 1 / N - (i == j)  # of c - c_i
                A[x, block(j)] -= S[i] * gap / sampled
                A[block(i), block(j)] += (S[i] / (K * LR) - torch.eye(D)) * gap
            for w in v[i]:
                column = torch.zeros(size)
                column[x], column[block(i)] = -LR / sampled * w, w / K
                noise.append(column)
        found.append((A, torch.zeros(size), torch.stack(noise, 1)))
    return found


def checked(K: int) -> None:
    """The maps are what a round of the package does: two of the clients, no noise, any state."""
    noisy, at = clients(1.0), torch.tensor([0, 2])
    problem = Quadratic(noisy.H, noisy.b)
    pair = list(itertools.combinations(range(N), 2)).index((0, 2))
    x_star, x = problem.constants.x_star, torch.randn(D, generator=Key(4).generator())
    plain = FedAvg(LR, K)
    state, _, _ = play_round(plain, problem, plain.init(problem, x, Key(5)), at, Key(6))
    A, shift, _ = fedavg(noisy, K, 2)[pair]
    assert torch.allclose(state.server.x, A @ x + shift)
    corrected = Scaffold(LR, K)
    state, _, _ = play_round(corrected, problem, corrected.init(problem, x, Key(5)), at, Key(6))
    at_star = problem.grads(x_star.expand(N, -1), problem.full(problem.clients))
    after = scaffold(noisy, K, 2)[pair][0] @ torch.cat([x - x_star, -at_star.flatten()])  # every c_i is zero at first
    assert torch.allclose(state.server.x - x_star, after[:D])
    assert torch.allclose(state.own.c - at_star, after[D:].view(N, D))


def mean_square(maps: Maps, origin: torch.Tensor) -> float:
    """E ||x - origin||^2 in the stationary state, x the first D entries."""
    size, count = len(maps[0][0]), len(maps)
    mean_A, mean_shift = (sum(one[part] for one in maps) / count for part in (0, 1))
    rest = torch.linalg.solve(torch.eye(size) - mean_A, mean_shift)
    jumps = [A @ rest + shift - rest for A, shift, _ in maps]  # zero on average
    added = sum(torch.outer(jump, jump) + noise @ noise.T for jump, (_, _, noise) in zip(jumps, maps)) / count
    spread = sum(torch.kron(A, A) for A, _, _ in maps) / count
    covariance = torch.linalg.solve(torch.eye(size**2) - spread, added.flatten()).view(size, size)
    return float(covariance.diagonal()[:D].sum() + (rest[:D] - origin).square().sum())


def predicted(K: int, sampled: int) -> tuple[float, float, float]:
    """FedAvg's floor by noise, its growth with zeta^2, SCAFFOLD's floor."""
    calm, apart = clients(0.0), clients(1.0)
    floor = mean_square(fedavg(calm, K, sampled), calm.constants.x_star)
    growth = mean_square(fedavg(apart, K, sampled), apart.constants.x_star) - floor
    return floor, growth, mean_square(scaffold(apart, K, sampled), torch.zeros(D))


def measured(algorithm: FedAvg | Scaffold, zeta: float, sampled: int, seed: int) -> float:
    """Mean over the rounds after the first of ||x - x*||^2."""
    problem = clients(zeta)
    errors = torch.tensor(run(algorithm, problem, ROUNDS, sampled=sampled, seed=seed)["error"][BURNED:])
    return float(errors.square().mean() * problem.constants.x_star.square().sum())


def main() -> None:
    for K in (1, 5):
        checked(K)
    print("predicted: FedAvg's floor, its growth with zeta^2, SCAFFOLD's floor, the crossing")
    for K, sampled in itertools.product((1, 5, 20), (1, 2, 4)):
        floor, growth, other = predicted(K, sampled)
        at = f"{math.sqrt((other - floor) / growth):.3f}" if other > floor and growth > 1e-12 else "none"
        print(f"K = {K:2}, {sampled} of {N} clients: {floor:.4f}  {growth:.4f}  {other:.4f}  {at}")
        assert (growth < 1e-12) == (K == 1 and sampled == N), "no drift, no sampling: heterogeneity does nothing"

    K, sampled = 5, 1
    floor, growth, other = predicted(K, sampled)
    crossing = math.sqrt((other - floor) / growth)
    print(f"\nmeasured at K = {K}, {sampled} of {N}: FedAvg minus SCAFFOLD, mean square, {SEEDS} seeds, paired, 95%")
    found = {}
    for share in (0.3, 1.0, 2.0):
        zeta = share * crossing
        pairs = [[measured(make(LR, K), zeta, sampled, seed) for make in (FedAvg, Scaffold)] for seed in range(SEEDS)]
        mean, low, high = found[share] = interval([a - b for a, b in pairs])
        print(
            f"zeta = {share:.1f} of the crossing: {mean:+.4f} [{low:+.4f}, {high:+.4f}], "
            f"predicted {floor + growth * zeta**2 - other:+.4f}"
        )
    assert found[0.3][2] < 0 < found[2.0][1], "below the crossing the control variate does harm, above it helps"
    (near, far), (below, above) = (0.3, 2.0), (found[0.3][0], found[2.0][0])  # the difference is linear in zeta^2
    seen = math.sqrt(near**2 - below * (far**2 - near**2) / (above - below))
    print(f"crossing measured: {seen:.2f} of the predicted one")
    assert abs(seen - 1) < 0.15


if __name__ == "__main__":
    main()
