"""Project 3, a solution: SSF's Lemma 2 without its condition on the step size.

The lemma bounds the drift of K local steps for eta_l <= 1/(2 K L). The ledger finds it true with room to spare
(notebook 04, section 6). What is the condition for? We drop it, let the package's search look for the smallest
counterexample, repair the condition, prove the repair for K up to 1,000, and attack it again. Below s = K eta_l L, so
that printed is s <= 1/2.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache

from fedtheory.theory.ssf.attack import Edge, attack
from fedtheory.theory.ssf.lemma2 import lemma2
from fedtheory.theory.ssf.round import play, tiny


@cache
def found(K: int, s: float, name: str = "search") -> float:
    """The largest left over right that the search finds, one client in one dimension, any quadratic, noise or none."""
    edges = [Edge(K=K, share=2 * s, one_frame=True, noisy=noisy) for noisy in (True, False)]
    return max(attack(lemma2(), "quick", f"{name} {K} {s}", [edge]).ratio for edge in edges)


def noise_alone(K: int, s: float) -> float:
    """Left over right of F = -L x^2 / 2 with noise alone: independent noises, stretched by q = 1 + s/K per step."""
    q2, spread, total = (1 + s / K) ** 2, 0.0, 0.0
    for _ in range(K - 1):
        spread = 1 + q2 * spread  # of y^k, in units of eta_l^2 sigma^2
        total += spread
    return total / (6 * K**2)


def proved(s: float, sizes: Iterable[int]) -> bool:
    """Whether Lemma 2 follows for this s and these K, for any smooth loss.

    By norms in L2, |y^k - x| <= eta_l (k |G| + sigma sqrt(k)) + eta_l L sum_{j<k} |y^j - x|: a recursion for the part
    of G and one for the part of sigma. (a + b)^2 <= 2 a^2 + 2 b^2 takes them apart.
    """
    for K in sizes:
        a, n_sum, d_sum, n2, d2 = s / K, 0.0, 0.0, 0.0, 0.0
        for k in range(K):
            n, d = math.sqrt(k) + a * n_sum, k + a * d_sum
            n_sum, d_sum, n2, d2 = n_sum + n, d_sum + d, n2 + n * n, d2 + d * d
        if 2 * n2 > 6 * K**2 or 2 * d2 > 12 * K**3:
            return False
    return True


def edge_of(true, low: float, high: float, steps: int = 30) -> float:
    """Where a condition that is true at `low` and false at `high` turns, by bisection."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if true(middle) else (low, middle)
    return low


def main() -> None:
    print("1. with the condition, s = 1/2:", ", ".join(f"K = {K}: {found(K, 0.5):.3f}" for K in (2, 3, 5)))
    assert all(found(K, 0.5) < 1 for K in (2, 3, 5))

    worst = {K: max(found(K, s) for s in (5.0, 50.0)) for K in (1, 2, 3)}
    print("2. without it, s up to 50:", ", ".join(f"K = {K}: {ratio:.3g}" for K, ratio in worst.items()))
    assert worst[1] < 1, "one step goes nowhere before it is measured"
    assert worst[2] < 1, "with two steps only the first counts, which no curvature has stretched"
    assert worst[3] > 1
    turn = edge_of(lambda s: found(3, s) <= 1, 5.0, 50.0, 8)
    print(f"   the fewest steps with a counterexample: K = 3, from s = {turn:.1f} on, by the search")
    q = 1 + Fraction(25, 4)  # L = 1, eta_l = 25/4: s = 75/4
    left, right = 1 + (1 + q**2), Fraction(6 * 3**2)  # over eta_l^2 sigma^2
    print(f"   in whole numbers: F = -x^2/2, noise +-1, eta_l = 25/4: left {left} > right {right}")
    assert left > right
    sides = lemma2()(play(tiny(-1.0, K=3, lr=6.25, u=1.0)))
    assert abs(float(sides[0] / sides[1]) - float(left / right)) < 1e-12, "the algorithm's own lines agree"

    turns = {K: edge_of(lambda s, K=K: noise_alone(K, s) <= 1, 0.5, 50.0) for K in (3, 10, 100, 1000)}
    print("3. noise alone breaks it at s =", ", ".join(f"{s:.2f} (K = {K})" for K, s in turns.items()))
    assert list(turns.values()) == sorted(turns.values(), reverse=True)
    limit = edge_of(lambda s: (math.exp(2 * s) - 1 - 2 * s) / (4 * s**2) <= 6, 0.5, 5.0)
    print(f"   and for K to infinity at {limit:.3f}: five times the printed 1/2")
    assert abs(turns[1000] / limit - 1) < 0.01

    safe = math.floor(100 * edge_of(lambda s: proved(s, (3, 30, 300, 1000)), 0.1, limit, 12)) / 100
    whole = proved(safe, range(1, 1001))
    print(f"4. repaired: eta_l <= {safe} / (K L), by two recursions, for every K up to 1,000: {whole}")
    assert whole
    assert not proved(limit, (1000,)), "control: the same argument must not prove what is false"
    again = {K: found(K, safe, "again") for K in (2, 5, 8)}
    print("   attacked again there:", ", ".join(f"K = {K}: {ratio:.3f}" for K, ratio in again.items()))
    assert max(again.values()) < 1
    print(f"   control: the search at K = 8 and s = 5: {found(8, 5.0):.3g}")
    assert found(8, 5.0) > 1
    print(f"5. open: {safe} < s < {limit:.3f}. There neither the proof nor a counterexample reaches.")


if __name__ == "__main__":
    main()
