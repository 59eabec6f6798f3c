"""FLSS, App. C.1 to C.9: from the updates to Theorem C.3.1, on one round of FLSS at arbitrary admissible states.

What the proof uses and what is wrong with it, in short:
    - 3.4.4 is needed given w_t: (17), and all that rests on it, fails where only the unconditional mean lies in span P.
    - (16), (18), (21) and (27) bound stochastic gradients by 2 L (F_k - F_k^*), which noise at the optimum refutes; the
      formula before (28) sums one gradient too many. The second slip pays for the first, so that (29) holds.
    - Neither Gamma, L nor a bound on the step size is needed in Lemma C.2.2, see `sharp`; rho_R is not in C.2.1.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from fedtheory.algorithms.flss import FLSS
from fedtheory.problems import Quadratic
from fedtheory.simulate import play_round
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedsub_round import digits, level, listed, worst
from fedtheory.theory.flss_round import (
    ROOT,
    ROUND,
    SPAN,
    Edge,
    Instance,
    Round,
    Terms,
    admissible,
    build,
    dump,
    edges,
    outside,
    play,
    random_rounds,
    square,
)
from fedtheory.theory.instances import Smooth, exact, fixed
from fedtheory.theory.search import reals

# The sums over i: sum of i^2 and of (i - 1)^2, i = 1, ..., tau


def squares(tau: int) -> float:
    return tau * (tau + 1) * (2 * tau + 1) / 6


# The displays: (left, right) of one round. Terms that may be negative stand on the left


def lemma_c21(factor: float = 2.0, exact_share: bool = False) -> Terms:
    """With rho_R = 0, the smallest right side there is. exact_share: (N - M)/(N - 1) in place of the factor."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        share = (at.N - at.M) / max(at.N - 1, 1) if exact_share else 1.0
        return q.spread, factor * share * (at.lr * at.tau) ** 2 * q.G2 / at.M

    return terms


def eq14_e(sign: float) -> Terms:
    """The last step, e_t^k = sign (ghat - g), rho_R = 0; with sign = 1 the first step is an equality, g + e = ghat."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        shifted = q.g + sign * (q.ghat - q.g)
        return q.E(square(shifted)).mean(), 2 * (q.at.lr * q.at.tau) ** 2 * q.G2

    return terms


def noise_term(q: Round) -> torch.Tensor:
    """eta^2 tau^2 sigma^2, which (16), (21) and (27) lack."""
    return (q.at.lr * q.at.tau) ** 2 * q.at.sigma2


def eq16(noisy: bool, scale: float = 1.0) -> Terms:
    """noisy: the last step with eta^2 tau^2 sigma^2 added."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at, eta2 = q.at, q.at.lr**2
        mean = (square(q.v - at.x) @ q.all_odds).sum()
        kept, full = q.E(square(q.ghat)).mean(), q.E(square(q.g)).mean()
        apart = eta2 * at.tau * q.over(square(q.noisy))
        last = 2 * at.L * eta2 * at.tau * q.over(q.loss - q.low) + (noise_term(q) if noisy else 0)
        return worst((mean, kept), (kept, full), (full, apart), (apart, scale * last))

    return terms


def eq18(noisy: bool, scale: float = 1.0) -> Terms:
    """noisy: the stochastic gradient in the middle, as printed; else grad F_k(w_{t,i}^k)."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        eta2 = q.at.lr**2
        middle = q.drift + eta2 * q.over(square(q.noisy if noisy else q.grad))
        return worst((q.C1, middle), (middle, q.drift + scale * 2 * q.at.L * eta2 * q.over(q.loss - q.low)))

    return terms


def eq19_equality(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    return [(q.C2, -2 * q.at.lr * q.over((q.y * q.grad).sum(-1)))]


def eq19(scale: float = 1.0) -> Terms:
    """For every client, step and scenario."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        bregman = (q.y * q.grad).sum(-1) + q.best - q.loss
        return worst((scale * q.at.mu / 2 * square(q.y), bregman + 1e-13 * q.scale))

    return terms


def fall(q: Round) -> torch.Tensor:
    """(1/N) sum_k sum_i E(F_k(w_{t,i}^k) - F_k(w^*))."""
    return q.over(q.loss - q.best)


def D1(q: Round) -> torch.Tensor:
    return q.at.mu * q.at.lr * q.over(square(q.y))


def eq20(scale: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        left = 2 * q.A3 + 2 * q.at.lr * fall(q) + D1(q)
        right = q.drift + 2 * q.at.L * q.at.lr**2 * q.over(q.loss - q.low)
        return left, scale * right, q.scale

    return terms


def eq21(noisy: bool) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        left = q.after - q.D + D1(q) + 2 * q.at.lr * fall(q)
        right = q.drift + 2 * q.at.lr**2 * q.at.q * q.over(q.loss - q.low)
        return left, right + (noise_term(q) if noisy else 0), q.scale

    return terms


def eq22_equality(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    product = (q.moved * q.at.x).sum(-1)
    return [(-square(q.y), -square(q.moved) - q.D - 2 * product)]


def eq22(scale: float = 1.0) -> Terms:
    """For every client, step and scenario; all step sizes."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        eta = q.at.lr
        left = -2 * (q.moved * q.at.x).sum(-1)
        return worst((left, scale * (square(q.moved) / eta + eta * q.D) + 1e-13 * q.scale))

    return terms


def eq23(share: float = 1.0) -> Callable[[Round], Sequence[tuple[torch.Tensor, torch.Tensor]]]:
    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        front = 2 * q.at.lr**2 * q.at.q
        D2 = front * q.over(q.loss - q.low) - 2 * q.at.lr * fall(q)
        E = -q.at.gamma * q.over(q.loss - q.best.mean())
        return [(D2, E + share * front * q.over((q.best.mean() - q.low).expand_as(q.loss)))]

    return pairs


def eq24(share: float = 1.0) -> Terms:
    """Its three steps, the first with the terms of the last added to both sides."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        start = at.problem.gradients(at.x)
        drop, inner = q.over(q.start - q.loss), -q.over((start[:, None, None] * q.moved).sum(-1))
        young = (at.lr * at.tau * square(start).mean() + q.drift / at.lr) / 2
        last = at.tau * at.lr * at.L * (q.start - q.low).mean() + q.drift / (2 * at.lr)
        return worst((drop + last, inner + last), (inner, share * young), (young, last), (drop, last))

    return terms


def from_25(q: Round) -> torch.Tensor:
    """The right side of (25), gamma_t tau (F(w_t) - F^*) added."""
    at = q.at
    return at.gamma * (at.tau * at.lr * at.L * (q.start - q.low).mean() + q.drift / (2 * at.lr))


def eq25(share: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        return q.at.gamma * q.over(q.start - q.loss), share * from_25(q) + 1e-13 * q.scale

    return terms


def gamma_terms(q: Round, first: float = 2.0, second: float = 4.0) -> torch.Tensor:
    """(2 L eta^2 tau^2 + 4 L eta^2 tau) Gamma."""
    at = q.at
    return at.L * at.lr**2 * (first * at.tau**2 + second * at.tau) * q.Gamma


def middle_26(q: Round) -> torch.Tensor:
    at = q.at
    sink = at.gamma * (at.lr * at.L - 1) * at.tau * q.gap
    return sink + gamma_terms(q, 2, 2) + at.gamma * (at.lr * at.L * at.tau * q.Gamma + q.drift / (2 * at.lr))


def eq26_equality(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    return [(from_25(q) - q.at.gamma * q.at.tau * q.gap + gamma_terms(q, 2, 2), middle_26(q))]


def eq26(second: float = 4.0) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at, lift = q.at, q.at.gamma * q.at.tau * q.gap
        left = -at.gamma * q.over(q.loss - q.best.mean()) + gamma_terms(q, 2, 2)
        first = from_25(q) + gamma_terms(q, 2, 2)
        last = gamma_terms(q, second=second) + q.drift
        tiny = 1e-13 * q.scale
        return (*worst((left + lift, first + tiny), (middle_26(q), last + tiny), (left, last + tiny)), q.scale)

    return terms


def contraction(q: Round) -> torch.Tensor:
    """(1 - mu eta_t tau (1 - eta_t)) E||w_t - w^*||^2."""
    at = q.at
    return (1 - at.mu * at.lr * at.tau * (1 - at.lr)) * q.D


def eq27(noisy: bool) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        right = gamma_terms(q) + (2 + q.at.mu * (1 - q.at.lr)) * q.drift
        return q.after - contraction(q), right + (noise_term(q) if noisy else 0), q.scale

    return terms


def eq28(less: int = 0) -> Terms:
    """less = 1: one gradient less, as the drift has."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        front = (2 + at.mu * (1 - at.lr)) * at.lr**2
        return front * q.over(square(q.noisy.cumsum(2))), front * q.G2 * squares(at.tau - less)

    return terms


def eq29_pieces(q: Round) -> Sequence[torch.Tensor]:
    """Its terms one by one, (2 + mu) taken apart."""
    at = q.at
    last = at.lr**2 * q.G2 * squares(at.tau)
    return [q.after, at.mu * at.lr * at.tau * q.D, at.mu * at.lr**2 * at.tau * q.D, 2 * last, at.mu * last]


def lemma_c22(noise: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at = q.at
        right = noise * (2 + at.mu) * at.lr**2 * q.G2 * squares(at.tau) + gamma_terms(q)
        return q.after - contraction(q), right, q.scale

    return terms


HALF = 0.5  # the pure number a in place of eta_t


def sharp(sampling: bool, factor: float = 1.0) -> Terms:
    """For every step size and with a = 1/2: E||v_{t+1} - w^*||^2 <= (1 - mu eta tau (1 - a)) E||w_t - w^*||^2 +
    eta^2 G^2 (3 tau^2 - 2 tau + mu eta (1/a - 1) (tau - 1) tau (2 tau - 1)/6); for w_{t+1} (`sampling`) the bracket
    grows by tau^2 (N - M)/(M (N - 1)).
    """

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at = q.at
        bracket = 3 * at.tau**2 - 2 * at.tau + at.mu * at.lr * (1 / HALF - 1) * squares(at.tau - 1)
        bracket += at.tau**2 * (at.N - at.M) / (at.M * max(at.N - 1, 1)) if sampling else 0
        kept = (1 - at.mu * at.lr * at.tau * (1 - HALF)) * q.D
        return (q.next if sampling else q.after) - kept, factor * at.lr**2 * q.G2 * bracket, q.scale

    return terms


def sharp_pieces(q: Round) -> Sequence[torch.Tensor]:
    at = q.at
    return [q.after, q.D, at.mu * at.lr * q.D, at.lr**2 * q.G2, at.mu * at.lr**3 * q.G2]


def theorem(noise: float = 1.0, B: float | None = None, rho: float = 0.0) -> Terms:
    """(3)-(4). rho_R = 0 is the smallest right side there is. B: in place of tau - tau/(L (tau + 1))."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        at = q.at
        C = (2 + at.mu) * q.G2 * squares(at.tau) + gamma_terms(q) / at.lr**2
        C = C + 2 * (1 + rho) * at.tau**2 * q.G2 / at.M
        rate = at.B if B is None else B
        return q.next - (1 - at.mu * at.lr * rate) * q.D, noise * at.lr**2 * C, q.scale

    return terms


# Stored instances


def row(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float64)


def noisy_optimum(noise: float = 1.0) -> Instance:
    """One client, F = w^2/2, w_t = w^* = 0, stochastic gradient w +- 1, one local step of size 1/2."""
    problem = Smooth(row(1.0), row(0.0), noise=row(noise))
    return Instance(problem, row(0.0)[0], torch.ones(1, 1).double(), 0.5, 1, 1, L=1.0, mu=1.0)


def blind(lr: float = 1 / 128) -> Instance:
    """One client, F = ||w||^2/2, w_t = (1, 0), P = (0, 1)^T."""
    problem = Smooth(row(1.0, 1.0), row(0.0, 0.0))
    return Instance(problem, row(1.0, 0.0)[0], torch.tensor([[0.0], [1.0]]).double(), lr, 1, 1, L=1.0, mu=1.0)


def torn() -> Instance:
    """Two clients, F_k = ||w||^2/2 +- w_2, w_t = 0, P = (1, 0)^T: the mean update is 0, each client's lies across P."""
    problem = Smooth(row(1.0, 1.0).repeat(2, 1), row(0.0, 0.0).repeat(2, 1), a=torch.tensor([[0.0, 1.0], [0.0, -1.0]]))
    problem = problem.replace(a=problem.a.double() if problem.a is not None else None)
    return Instance(problem, row(0.0, 0.0)[0], torch.tensor([[1.0], [0.0]]).double(), 0.5, 1, 1, L=1.0, mu=1.0)


def kept_sample() -> Instance:
    """One client, F = w^2/2, stochastic gradient w +- 1, two steps of size 1/4 with one and the same sample."""
    problem = Smooth(row(1.0), row(0.0), noise=row(1.0))
    return Instance(problem, row(0.0)[0], torch.ones(1, 1).double(), 1 / 4, 2, 1, L=1.0, mu=1.0, reuse=True)


def unconditional(terms: Terms, why: str = "w_t = (1, 0) or (-1, 0), each half the time, P = (0, 1)^T") -> Check:
    """3.4.4 for the unconditional mean only: E[g_t] = 0 over both values of w_t, E[g_t | w_t] across P."""

    def check(effort: str) -> Outcome:
        at = blind()
        both = [at, replace(at, x=-at.x)]
        rounds = [play(one) for one in both]
        mean = torch.stack([q.E(q.g).mean(0) for q in rounds]).mean(0)
        if float(mean.abs().max()) > 0 or float(outside(rounds[0])) == 0:
            raise AssertionError("E[g_t] = 0 is broken")
        slack = admissible(at, [name for name in ROUND if not name.startswith(SPAN)])
        left, right = (float(sum(v) / 2) for v in list(zip(*(terms(q)[:2] for q in rounds))))
        bad = left > right + 1e-9
        data = {"w_t": "+-(1, 0)", **dump(at), "left": digits(left), "right": digits(right), "slacks": slack}
        said = f"{why}: left {left:.6g}, right {right:.6g}"
        return Outcome(not bad, "exact", None, said, data if bad else None)

    return check


TILTED = [Edge(R=1, tau=1, tilted=True, share=0.01, noise=False), Edge(R=1, tilted=True, share=0.01, kappa=0.5)]
FAR = [*edges(), *edges(share=3.0), *edges(share=30.0)]  # steps far beyond 1/(L (tau + 1))
ANY_STEP = tuple(name for name in ROUND if not name.startswith("eta_t"))
THIN = Edge(L=0.34, kappa=0.5)  # L (tau + 1) = 1.02


# C.1, C.2, C.5 and C.7: projections, singular values, client subsets


def check_c1(inner: str) -> Check:
    """The server's change against Proj_P(Proj_inner(g)) of the local updates; first P = (0, 1)^T, w_t = (0, 1)."""

    def check(effort: str) -> Outcome:
        rounds = [play(replace(blind(), x=row(0.0, 1.0)[0])), *random_rounds("c1")]
        gap = 0.0
        for q in rounds:
            P = q.at.frame @ q.at.frame.T
            twice = q.g @ P @ (P if inner == "P" else torch.eye(len(P), dtype=P.dtype) - P)
            value = float((q.ghat - twice).abs().max() / q.g.abs().max())
            if value > 1e-12:
                data = {"instance": dump(q.at), "g": exact(q.g), "the server adds": exact(q.ghat), "C.1": exact(twice)}
                return Outcome(False, "exact", value, f"Proj_P(Proj_{inner}(g)) = 0, nothing moves", data)
            gap = max(gap, value)
        margin, small = level(gap, 1e-12)
        said = (
            f"what the server adds against Proj_P(Proj_{inner}(g)), {len(rounds)} rounds: largest relative gap {small}"
        )
        return Outcome(True, "exact", margin, said)

    return check


def eq1(shift: float = 0.0) -> Callable[[Round], Sequence[tuple[torch.Tensor, torch.Tensor]]]:
    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        cross = (2 - shift) * ((q.w - q.v) * q.v).sum(-1)
        return [(square(q.w), square(q.w - q.v) + square(q.v) + cross)]

    return pairs


def eq15(factor: float = 2.0) -> Callable[[Round], Sequence[tuple[torch.Tensor, torch.Tensor]]]:
    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        A2 = square(q.v - q.at.x) @ q.all_odds
        return [(q.after, q.D + A2 + factor * q.A3)]

    return pairs


def c23(uneven: bool) -> Callable[[Round], Sequence[tuple[torch.Tensor, torch.Tensor]]]:
    """uneven: the first set M_t drawn twice as often."""

    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        weight = torch.ones(len(q.w), dtype=torch.float64)
        weight[0] += float(uneven)
        mean = torch.tensordot(weight / weight.sum(), q.w, dims=1)
        return [(mean, q.v), (((mean - q.v) * q.v).sum(-1), torch.zeros(len(q.v), dtype=torch.float64))]

    return pairs


Vectors = list[list[Fraction]]


def rational(N: int) -> Vectors:
    """N vectors in two dimensions, centred like ghat_k - ghat."""
    values = [[Fraction((7 * k * k + 3 * i) % 11, 1 + k % 3) for i in range(2)] for k in range(N)]
    mean = [sum((v[i] for v in values), Fraction(0)) / N for i in range(2)]
    return [[v[i] - mean[i] for i in range(2)] for v in values]


def dot(u: list[Fraction], v: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, v)), Fraction(0))


def comb(n: int, k: int) -> int:
    return math.comb(n, k) if 0 <= k <= n else 0


Sampled = Callable[[int, int, Vectors, list[tuple[int, ...]]], tuple[Fraction, ...]]


def over_subsets(sides: Sampled, what: str, replacement: bool = False) -> Check:
    """All sides equal, in exact rationals, for every M <= N <= 6. sides: (N, M, vectors, sets M_t) -> values.

    replacement: ordered draws with replacement in place of sets.
    """

    def check(effort: str) -> Outcome:
        count, most = 0, 6
        for N, M in itertools.combinations_with_replacement(range(1, most + 1), 2):
            N, M = M, N
            draws = itertools.product(range(N), repeat=M) if replacement else itertools.combinations(range(N), M)
            if replacement and N**M > 4000:
                continue
            values = sides(N, M, rational(N), list(draws))
            count += 1
            if len(set(values)) > 1:
                data = {"N": N, "M": M, "ghat_k - ghat": [[str(x) for x in v] for v in rational(N)]}
                data["sides"] = [str(v) for v in values]
                return Outcome(False, "exact", None, f"{what}: N = {N}, M = {M}: sides {data['sides']}", data)
        return Outcome(True, "exact", 0.0, f"{what}: equal in rationals for all {count} pairs M <= N <= {most}")

    return check


def eq2_sides(wrong: int = 0) -> Sampled:
    """wrong = 1: C(N - 1, M) for C(N - 1, M - 1)."""

    def sides(N: int, M: int, v: Vectors, sets: list[tuple[int, ...]]) -> tuple[Fraction, ...]:
        first = [x[0] + 1 for x in v]  # not centred
        mean = sum((sum((first[k] for k in s), Fraction(0)) / M for s in sets), Fraction(0)) / len(sets)
        total = sum(first, Fraction(0))
        return mean, Fraction(comb(N - 1, M - 1 + wrong), M * comb(N, M)) * total, total / N

    return sides


def eq11_sides(cross: int = 1) -> Sampled:
    def sides(N: int, M: int, v: Vectors, sets: list[tuple[int, ...]]) -> tuple[Fraction, ...]:
        whole = parts = Fraction(0)
        for s in sets:
            total = [sum((v[k][i] for k in s), Fraction(0)) for i in range(2)]
            whole += dot(total, total) / M**2
            parts += sum((dot(v[k], v[k]) for k in s), Fraction(0))
            parts += cross * sum(
                (dot(v[k], v[j]) for a, k in enumerate(s) for b, j in enumerate(s) if a != b), Fraction(0)
            )
        return whole / len(sets), parts / M**2 / len(sets)

    return sides


def eq12_sides(wrong: int = 0) -> Sampled:
    def sides(N: int, M: int, v: Vectors, sets: list[tuple[int, ...]]) -> tuple[Fraction, ...]:
        mean = sum((sum((dot(v[k], v[k]) for k in s), Fraction(0)) for s in sets), Fraction(0)) / len(sets)
        total = sum((dot(x, x) for x in v), Fraction(0))
        return mean, Fraction(comb(N - 1, M - 1 + wrong), comb(N, M)) * total, Fraction(M, N) * total

    return sides


def eq13_sides(K: str = "N") -> Sampled:
    """K: what the first sum on the right runs to."""

    def sides(N: int, M: int, v: Vectors, sets: list[tuple[int, ...]]) -> tuple[Fraction, ...]:
        pairs = lambda s: sum(
            (dot(v[k], v[j]) for a, k in enumerate(s) for b, j in enumerate(s) if a != b), Fraction(0)
        )
        mean = sum((pairs(s) for s in sets), Fraction(0)) / len(sets)
        weight = Fraction(comb(N - 2, M - 2), comb(N, M)) if N > 1 else Fraction(0)
        last = N if K == "N" else M
        double = sum((dot(v[k], v[j]) for k in range(last) for j in range(N) if j != k), Fraction(0))
        square_ = sum((dot(x, x) for x in v), Fraction(0))
        return mean, weight * double, -weight * square_ if N > 1 else mean

    return sides


def check_14_centering(times: int | None) -> Check:
    """(1/(NM)) sum ||ghat_k - ghat||^2 against (1/(NM)) (sum ||ghat_k||^2 - times ||ghat||^2); None: times = N."""

    def check(effort: str) -> Outcome:
        for N, M in itertools.product(range(1, 7), repeat=2):
            v = [x[0] + 1 for x in rational(N)]
            mean = sum(v, Fraction(0)) / N
            left = sum(((x - mean) ** 2 for x in v), Fraction(0)) / (N * M)
            right = (sum((x * x for x in v), Fraction(0)) - (times or N) * mean**2) / (N * M)
            if M <= N and left != right:
                data = {"N": N, "M": M, "ghat_k": [str(x) for x in v], "left": str(left), "right": str(right)}
                said = f"N = {N}, M = {M}: (1/(NM)) sum ||ghat_k - ghat||^2 = {left}, the right side is {right}"
                return Outcome(False, "exact", None, said, data)
        said = f"with {times or 'N'} E||ghat||^2 both sides are equal in rationals for all M <= N <= 6"
        return Outcome(True, "exact", 0.0, said)

    return check


def sampled_run(
    kept: int, J: int = 5, more: int = 0, lrs: Sequence[float] = ()
) -> tuple[torch.Tensor, Any, list[float]]:
    """G (D, J) with the next `more` global updates, the trajectory FLSS made of G, G^2 of every round; M = 1."""
    problem = Quadratic.random(3, 6, ROOT.fold("trajectory"))
    algorithm = FLSS(0.1, 2, 2, warm_up=J + more, refresh=0, kept=kept)
    state = algorithm.init(problem, problem.start() + 1, ROOT)
    columns, trajectory, bounds = [], None, []
    full = problem.full(problem.clients)
    for t in range(J + more):
        stepped = replace(algorithm, lr=lrs[t]) if lrs else algorithm
        x, points = state.server.x, [state.server.x.expand(3, -1)]
        local = stepped.client(problem, problem.clients, None, stepped.broadcast(state.server, ROOT), ROOT)
        points += [y for y in local][:-1]
        bounds.append(max(float(square(problem.grads(y, full)).max()) for y in points))
        state, _, _ = play_round(stepped, problem, state, problem.clients[t % 3, None], ROOT.fold("round", t))
        columns.append(state.server.x - x)
        if t == J - 1:
            trajectory = state.server.G
    return torch.stack(columns, 1), trajectory, bounds


def check_8_to_10(part: str, *, kept: int = 5, later: bool = False, stretch: float = 1.0) -> Check:
    """(8), (9), (10) on a G made of FLSS's own warm-up; later: the five updates after those in G."""

    def check(effort: str) -> Outcome:
        columns, trajectory, _ = sampled_run(kept, more=5)
        G, J, R = columns[:, :5], 5, 2
        (P,) = trajectory.basis(R).matrices()
        P = stretch * P
        error = lambda A: square((A - P @ (P.T @ A)).T).sum() / J
        rest = torch.eye(len(G), dtype=G.dtype) - P @ P.T
        tail = torch.linalg.svdvals(G)[R:].square().sum() / J
        pairs = {
            "(8)": [
                (error(columns[:, 5:] if later else G), torch.stack([square(g - P @ (P.T @ g)) for g in G.T]).mean())
            ],
            "(9)": [(error(G), (G.T @ rest @ G).trace() / J), ((G.T @ rest @ G).trace(), (rest @ G @ G.T).trace())],
            "(10)": [(error(G), tail)],
        }[part]
        gap = max(float((left - right).abs() / right.abs()) for left, right in pairs)
        margin, small = level(gap, 1e-9)
        said = f"{part}, G of J = 5 global updates of FLSS's warm-up, D = 6, R = 2: relative gap {small}"
        return Outcome(gap < 1e-9, "exact", margin, said, None if gap < 1e-9 else {"gap": digits(gap), "kept": kept})

    return check


def check_prop341(effort: str) -> Outcome:
    """Decreasing steps: one client, F = w_1^2/2 + w_2^2/4, w_0 = (1, 1), steps 1/2 and 1/8, R = 1."""
    problem = Smooth(row(1.0, 0.5), row(0.0, 0.0))
    algorithm = FLSS(0.5, 1, 1, warm_up=2, refresh=0, kept=2)
    state = algorithm.init(problem, torch.ones(2, dtype=torch.float64), ROOT)
    G2 = 0.0
    for lr in (0.5, 0.125):
        G2 = max(G2, float(square(problem.gradients(state.server.x)).max()))
        state, _, _ = play_round(replace(algorithm, lr=lr), problem, state, problem.clients, ROOT)
    (values,) = state.server.G.values
    tail, whole = float(values[1] ** 2), float((values**2).sum())
    bound = 2 * 0.125**2 * G2
    left, right = tail / 2, tail / whole * 0.125**2 * G2
    data = {
        "F": "w_1^2/2 + w_2^2/4", "w_0": "(1, 1)", "steps": "1/2, 1/8", "tau, R, J": "1, 1, 2", "G^2": digits(G2),
        "sigma^2": [digits(float(v**2)) for v in values], "left": digits(left), "right": digits(right),
        "||G||_F^2": digits(whole), "J eta_t^2 tau^2 G^2": exact(bound),
        "slacks": {"eta <= 1/(L (tau + 1))": 0.0, "||grad F||^2 <= G^2": 0.0},
    }  # fmt: skip
    said = f"steps 1/2, then eta_t = 1/8: (1/J) sum_(r>R) sigma_r^2 = {left:.4g} against {right:.4g}"
    return Outcome(left <= right, "exact", left / right, said, data if left > right else None)


def check_prop341_new(effort: str) -> Outcome:
    """The control: the next global update in place of those in G, constant steps; J = R, so that rho_R = 0."""
    columns, trajectory, _ = sampled_run(2, J=2, more=1)
    (P,) = trajectory.basis(2).matrices()
    g = columns[:, 2]
    left = float(square(g - P @ (P.T @ g)))
    said = f"the update after the J = R = 2 in G: left {left:.3g}, right 0"
    return Outcome(left <= 1e-12, "exact", None, said, {"left": digits(left), "right": 0})


def check_prop341_repaired(effort: str) -> Outcome:
    """(1/J) sum_{r>R} sigma_r^2 <= rho_R (1/J) sum_j eta_j^2 tau^2 G^2, without noise."""
    worst_ratio, runs = 0.0, 4 if effort == "quick" else 40
    for run in range(runs):
        lrs = (0.2 * torch.rand(5, generator=ROOT.fold("steps", run).generator())).tolist()
        _, trajectory, bounds = sampled_run(5, lrs=lrs)
        (values,) = trajectory.values
        tail, whole = float(values[2:].square().sum()), float(values.square().sum())
        right = tail / whole * sum(lr**2 for lr in lrs) * 4 * max(bounds)
        worst_ratio = max(worst_ratio, tail / right)
    said = f"{runs} warm-ups of FLSS with random steps: with the mean of eta_j^2 over the sampled rounds"
    return Outcome(worst_ratio <= 1, "run", worst_ratio, said)


def check_rank(effort: str) -> Outcome:
    """Only R varies, P nested: E||w_{t+1} - v_{t+1}||^2 grows with R, where the bound falls through rho_R."""
    edge = Edge(N=3, M=1, d=3, R=3)
    at = build(torch.randn(edge.size, generator=ROOT.fold("rank").generator(), dtype=torch.float64), edge)
    found = {R: float(play(replace(at, frame=fixed(torch.eye(3).double()[:, :R]).frames[0])).spread) for R in (1, 2, 3)}
    holds = found[1] <= found[2] <= found[3]
    said = "only R varied: E||w_{t+1} - v_{t+1}||^2 rises, " + listed({f"R = {R}": v for R, v in found.items()})
    return Outcome(holds, "exact", None, said)


def check_7(case: str) -> Check:
    """E[Proj g_t] against Proj E[g_t] and E[g_t] over noise and M_t. case: "given", "tilted" or "random" P."""

    def check(effort: str) -> Outcome:
        if case == "random":
            return two_updates()
        gap, data = 0.0, None
        corners = edges(R=1) if case == "given" else TILTED
        for number, edge in enumerate(corners):
            if edge.shape != "quadratic":
                continue
            g = ROOT.fold("eq7", number).generator()
            q = play(build(torch.randn(edge.size, generator=g, dtype=torch.float64), edge))
            mean = q.E(q.g).mean(0)
            low = torch.stack([q.w.mean(0) - q.at.x]).squeeze(0).T @ q.all_odds  # the projected global update
            for value in (q.at.frame @ (q.at.frame.T @ mean), mean):
                step = float((low - value).abs().max() / mean.abs().max().clamp(min=1e-3))
                if step > gap:
                    gap, data = step, dump(q.at)
        margin, small = level(gap, 1e-10)
        said = f"P fixed before the draws, E over noise and M_t by enumeration: largest relative gap {small}"
        return Outcome(gap < 1e-10, "exact", margin, said, data if gap >= 1e-10 else None)

    return check


def two_updates() -> Outcome:
    """F_k = ||w - e_k||^2/2, k = 1, 2, M = 1, eta = 1/4: P is made of the first update, E over both rounds' clients."""
    problem = Smooth(torch.ones(2, 2).double(), torch.eye(2).double())
    algorithm = FLSS(0.25, 1, 1, warm_up=1, refresh=0)
    projected, plain, projectors = [], [], []
    for k in (0, 1):
        state = algorithm.init(problem, torch.zeros(2, dtype=torch.float64), ROOT)
        first, _, _ = play_round(algorithm, problem, state, torch.tensor([k]), ROOT)
        (P,) = first.server.G.basis(1).matrices()
        projectors.append(P @ P.T)
        for j in (0, 1):
            second, _, _ = play_round(algorithm, problem, first, torch.tensor([j]), ROOT)
            projected.append(second.server.x - first.server.x)
            plain.append(-0.25 * problem.gradients(first.server.x)[j])
    left = torch.stack(projected).mean(0)
    right = torch.stack(projectors).mean(0) @ torch.stack(plain).mean(0)
    gap = float((left - right).abs().max() / right.abs().max())
    data = {"F_k": "||w - e_k||^2/2", "eta": "1/4", "E[P P^T g]": left.tolist(), "E[P P^T] E[g]": right.tolist()}
    said = f"P made of the first round's update: E[P P^T g] = {left.tolist()}, E[P P^T] E[g] = {right.tolist()}"
    return Outcome(gap < 1e-12, "exact", gap, said, data if gap >= 1e-12 else None)


# C.8 and C.9: algebra over the whole admissible set


def sharp_chain() -> tuple[list[Any], Any]:
    """`sharp` with a = eta implies Lemma C.2.2's noise term: 3 tau^2 - 2 tau and sum (i-1)^2 against sum i^2."""
    tau, mu, eta = reals("tau mu eta")
    up, down = tau * (tau + 1) * (2 * tau + 1), (tau - 1) * tau * (2 * tau - 1)
    premises = [tau >= 1, mu >= 0, eta > 0]
    return premises, 6 * (3 * tau * tau - 2 * tau) + mu * (1 - eta) * down <= (2 + mu) * up


def two_slips_chain() -> tuple[list[Any], Any]:
    """What (28) adds, (2 + mu (1 - eta)) eta^2 G^2 tau^2, covers what (16) leaves out, eta^2 tau^2 sigma^2."""
    mu, eta, G2, s2 = reals("mu eta G2 s2")
    return [mu >= 0, eta > 0, mu * eta <= 1, s2 >= 0, s2 <= G2], s2 <= (2 + mu * (1 - eta)) * G2


def eq30_chain(B_less: bool = True) -> Callable[[], tuple[list[Any], Any]]:
    """(1 - mu eta tau (1 - eta)) Delta <= (1 - mu eta B) Delta for eta <= 1/(L (tau + 1)), q = L (tau + 1)."""

    def make() -> tuple[list[Any], Any]:
        mu, eta, tau, q, delta, B = reals("mu eta tau q Delta B")
        premises = [mu >= 0, eta > 0, tau >= 1, q > 0, eta * q <= 1, delta >= 0]
        premises.append(B * q == tau * q - tau if B_less else B - tau == 0)
        return premises, mu * eta * tau * (1 - eta) * delta >= mu * eta * B * delta

    return make


def check_C(wrong: int = 0) -> Check:
    """C of (4) is the sum of the terms of the lemmas over eta_t^2."""

    def check(effort: str) -> Outcome:
        import sympy

        t, mu, G, L, Gamma, rho, M, eta = sympy.symbols("tau mu G L Gamma rho M eta", positive=True)
        lemmas = (2 + mu) * eta**2 * G**2 * t * (t + 1) * (2 * t + 1) / 6
        lemmas += (2 * L * eta**2 * t**2 + 4 * L * eta**2 * t) * Gamma + 2 * eta**2 * t**2 * G**2 * (1 + rho) / M
        C = (2 + mu) * G**2 * (2 * t**3 + 3 * t**2 + t) / 6 + (2 * L * t**2 + 4 * L * t) * Gamma
        C += 2 * (1 + rho) * t**2 * G**2 / M - wrong * G**2
        gap = sympy.simplify(sympy.expand(lemmas / eta**2 - C))
        return Outcome(gap == 0, "symbolic", None, f"the lemmas' sum over eta^2, minus C: {gap}", {"gap": str(gap)})

    return check


def needs_chain(multiple: int) -> Callable[[], tuple[list[Any], Any]]:
    """gamma_t >= 0, eta L <= 1 and mu eta B <= 1 for eta <= 1/(L (multiple tau + 1)), mu <= L (0: 1/(L tau))."""

    def make() -> tuple[list[Any], Any]:
        import z3

        eta, L, tau, mu, B = reals("eta L tau mu B")
        top = L * (multiple * tau + 1) if multiple else L * tau
        premises = [
            eta > 0,
            L > 0,
            tau >= 1,
            mu >= 0,
            mu <= L,
            eta * top <= 1,
            B * L * (tau + 1) == tau * (L * (tau + 1) - 1),
        ]
        return premises, z3.And(1 - L * eta * tau - L * eta >= 0, eta * L <= 1, mu * eta * B <= 1)

    return make


def check_ranges(effort: str) -> Outcome:
    """Whether C.9 covers the steps that Theorem C.3.1 admits; L = tau = 1, mu = 1/2, so that 1/(mu B) is 4."""
    L, tau, mu = 1, 1, Fraction(1, 2)
    first = 1 / (mu * (tau - Fraction(tau, L * (tau + 1))))
    theorem_, proof = (min(first, Fraction(1, L * (n * tau + 1))) for n in (1, 2))
    data = {"L, tau, mu": "1, 1, 1/2", "C.3.1 admits up to": str(theorem_), "C.9 up to": str(proof)}
    said = f"L = tau = 1: C.3.1 admits steps up to {theorem_}, its proof in C.9 no more than {proof}"
    holds = theorem_ <= proof
    return Outcome(holds, "exact", float(theorem_ / proof), said, None if holds else data)


def drift(sign: int, last: int) -> Callable[[Round], Sequence[tuple[torch.Tensor, torch.Tensor]]]:
    """w_{t,i}^k - w_t against sign times eta_t times the gradients 1, ..., i - 1 + last; printed: 1, 1."""

    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        sums = q.noisy.cumsum(2) if last else q.noisy.cumsum(2) - q.noisy
        return [(q.moved, sign * q.at.lr * sums)]

    return pairs


def check_drift(sign: int, last: int) -> Check:
    """One client, F = w^2/2, w_t = 1, one step of 1/2."""

    def check(effort: str) -> Outcome:
        at = replace(noisy_optimum(), problem=Smooth(row(1.0), row(0.0)), x=row(1.0)[0])
        ((left, right),) = drift(sign, last)(play(at))
        data = {"instance": dump(at), "w_{t,1} - w_t": float(left), "formula": float(right)}
        holds = bool(left == right)
        said = f"F = w^2/2, w_t = 1, eta = 1/2: w_(t,1) - w_t = {float(left):g}, the formula gives {float(right):g}"
        return Outcome(holds, "exact", None, said, None if holds else data)

    return check


def eq19_sides(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    ((left, right),) = eq19_equality(q)
    return left, right


def eq17_sides(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    return 2 * q.A3, q.B1


def eq17(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    return [eq17_sides(q)]
