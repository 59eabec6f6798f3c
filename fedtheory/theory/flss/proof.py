"""FLSS, App. C.7 to C.9: the lemmas and Theorem C.3.1, on one round of FLSS at arbitrary admissible states.

What the proof uses and what is wrong with it, in short:
    - 3.4.4 is needed given w_t: (17), and all that rests on it, fails where only the unconditional mean lies in span P.
    - (16), (18), (21) and (27) bound stochastic gradients by 2 L (F_k - F_k^*), which noise at the optimum refutes; the
      formula before (28) sums one gradient too many. The second slip pays for the first, so that (29) holds.
    - Neither Gamma, L nor a bound on the step size is needed in Lemma C.2.2, see `sharp`; rho_R is not in C.2.1.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, each_needed, worst_of
from fedtheory.theory.flss.round import (
    ALL,
    ANY_STEP,
    BOUNDED,
    CONVEX,
    FRESH,
    GIVEN,
    GIVEN_TAKEN,
    ROUND,
    SMOOTH,
    SPANNED,
    STEP,
    UNBIASED,
    UNLIKE,
    Edge,
    Instance,
    Pairs,
    Round,
    Terms,
    admissible,
    broken,
    details,
    dump,
    edges,
    equal,
    flss,
    outside,
    play,
    square,
    survives,
    with_units,
)
from fedtheory.theory.forms import chain
from fedtheory.theory.instances import Smooth
from fedtheory.theory.rounding import digits
from fedtheory.theory.search import number, reals, worst

# The sums over i: sum of i^2 and of (i - 1)^2, i = 1, ..., tau


def squares(tau: int) -> float:
    """Return 1 + 4 + ... + tau^2."""
    return tau * (tau + 1) * (2 * tau + 1) / 6


# The displays: (left, right) of one round. Terms that may be negative stand on the left


def lemma_c21(factor: float = 2.0, exact_share: bool = False) -> Terms:
    """With rho_R = 0, the smallest right side there is. exact_share: (N - M)/(N - 1) in place of the factor."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        share = (at.N - at.M) / max(at.N - 1, 1) if exact_share else 1.0
        return q.spread, factor * share * (at.lr * at.tau) ** 2 * q.G2 / at.M

    return terms


def eq14_e(sign: float, factor: float = 2.0) -> Terms:
    """Its two steps times M, e_t^k = sign (ghat - g), rho_R = 0; with sign = 1 the first is an equality."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        kept = q.E(square(q.ghat)).mean()
        shifted = q.E(square(q.g + sign * (q.ghat - q.g))).mean()
        bound = factor * (q.at.lr * q.at.tau) ** 2 * q.G2
        return worst((kept, shifted + 1e-13 * q.scale), (shifted, bound))

    return terms


def noise_term(q: Round, share: float = 1.0) -> torch.Tensor:
    """share times eta^2 tau^2 sigma^2, which (16), (21) and (27) lack."""
    return share * (q.at.lr * q.at.tau) ** 2 * q.at.sigma2


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


def eq21(noise: float) -> Terms:
    """noise: the share of eta^2 tau^2 sigma^2 that is added on the right; printed: 0."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        left = q.after - q.D + D1(q) + 2 * q.at.lr * fall(q)
        right = q.drift + 2 * q.at.lr**2 * q.at.q * q.over(q.loss - q.low)
        return left, right + noise_term(q, noise), q.scale

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


def eq23(share: float = 1.0) -> Pairs:
    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        front = 2 * q.at.lr**2 * q.at.q
        D2 = front * q.over(q.loss - q.low) - 2 * q.at.lr * fall(q)
        E = -q.at.gamma * q.over(q.loss - q.best.mean())
        return [(D2, E + share * front * q.over((q.best.mean() - q.low).expand_as(q.loss)))]

    return pairs


def eq24(share: float = 1.0) -> Terms:
    """Its three steps, the first with the terms of the last added to both sides; share: of L in the last step."""

    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        start = at.problem.gradients(at.x)
        drop, inner = q.over(q.start - q.loss), -q.over((start[:, None, None] * q.moved).sum(-1))
        young = (at.lr * at.tau * square(start).mean() + q.drift / at.lr) / 2
        last = share * at.tau * at.lr * at.L * (q.start - q.low).mean() + q.drift / (2 * at.lr)
        return worst((drop + last, inner + last), (inner, young), (young, last), (drop, last))

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


def eq27(noise: float) -> Terms:
    """noise: as in `eq21`."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        right = gamma_terms(q) + (2 + q.at.mu * (1 - q.at.lr)) * q.drift
        return q.after - contraction(q), right + noise_term(q, noise), q.scale

    return terms


def eq28(share: float = 1.0) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        at = q.at
        front = (2 + at.mu * (1 - at.lr)) * at.lr**2
        return front * q.over(square(q.noisy.cumsum(2))), share * front * q.G2 * squares(at.tau)

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
    """Make a row of one client, (1, n), in float64."""
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


def ratchet(lr: float = 1 / 256) -> Instance:
    """Two clients, F_k = ||w||^2/2, w_t = (1, 0), P = (1, 0)^T, two steps with one and the same sample.

    The stochastic gradient is w +- (4, 1/8) near w_t; its noise changes sign where the second coordinate crosses -s
    (client 1; client 2 is the mirror image), so that the first step decides the sign of the second step's noise: that
    step goes outwards, whatever the draw. For every w the gradient is unbiased, and across P the clients cancel.
    """
    s = 2.0**-20
    side = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    b = torch.cat([0 * side, s * side], 1)
    noise = torch.cat([4 + 0 * side, -side / 8], 1)
    problem = Smooth(torch.ones_like(b), b, a=b, noise=noise, gate=torch.cat([0 * side, -side / s], 1), soft=True)
    frame = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    return Instance(problem, row(1.0, 0.0)[0], frame, lr, 2, 2, L=1.0, mu=1.0, reuse=True)


KEPT = "F_k = ||w||^2/2, one sample kept for two steps, whose noise depends on w"


def unconditional(terms: Terms, why: str = "w_t = (1, 0) or (-1, 0), each half the time, P = (0, 1)^T") -> Check:
    """3.4.4 for the unconditional mean only: E[g_t] = 0 over both values of w_t, E[g_t | w_t] across P."""

    def check(effort: str) -> Outcome:
        at = blind()
        both = [at, replace(at, x=-at.x)]
        rounds = [play(one) for one in both]
        mean = torch.stack([q.E(q.g).mean(0) for q in rounds]).mean(0)
        if float(mean.abs().max()) > 0 or float(outside(rounds[0])) == 0:
            raise AssertionError("E[g_t] = 0 is broken")
        slack = admissible(at, [name for name in ROUND if name != SPANNED])
        left, right = (float(sum(v) / 2) for v in list(zip(*(terms(q)[:2] for q in rounds))))
        bad = left > right + 1e-9
        data = {"w_t": "+-(1, 0)", **dump(at), "left": digits(left), "right": digits(right), "slacks": slack}
        said = f"{why}: left {left:.6g}, right {right:.6g}"
        return Outcome(not bad, "exact", None, said, data if bad else None)

    return check


# The corners where a statement is tight, for controls sharpened to just beyond it
POINT = Edge(N=1, tau=1, d=1, R=1, kappa=1.0, noise=False)  # F = L (w - b)^2/2, one client, one step
PURE = Edge(N=1, tau=1, d=1, R=1, kappa=0.01, still=True)  # nothing but noise
APART = Edge(tau=1, still=True, noise=False)  # two clients at w^* that pull in opposite directions
TILTED = [Edge(R=1, tau=1, tilted=True, share=0.01, noise=False), Edge(R=1, tilted=True, share=0.01, kappa=0.5)]
FAR = [*edges(), *edges(share=3.0), *edges(share=30.0)]  # steps far beyond 1/(L (tau + 1))
BEYOND = [  # the standard corners and a few with steps beyond 1/(L (tau + 1)), where no bound on eta_t is printed
    *edges(),
    Edge(tau=3, M=2, R=1, share=30.0),
    Edge(N=1, d=1, R=1, kappa=1.0, share=3.0, still=True),
    Edge(N=1, tau=1, d=1, R=1, kappa=0.5, share=5.0),
]
THIN = Edge(L=0.34, kappa=0.5)  # L (tau + 1) = 1.02


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


def eq30_chain(share: str = "1") -> Callable[[], tuple[list[Any], Any]]:
    """1 - mu eta tau (1 - eta) <= 1 - mu eta B, times Delta, for eta <= 1/q, B = tau - share tau/q, q = L (tau + 1)."""

    def make() -> tuple[list[Any], Any]:
        mu, eta, tau, q, delta, B = reals("mu eta tau q Delta B")
        premises = [mu >= 0, eta > 0, tau >= 1, q > 0, eta * q <= 1, delta >= 0]
        premises.append(B * q == tau * q - number(share) * tau)
        return premises, mu * eta * tau * (1 - eta) * delta >= mu * eta * B * delta

    return make


def eq30_sum(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    """The first line of (30) before the lemmas' bounds: (1) on average over M_t, whose cross term is 0 by C.2.3."""
    return [(q.next, q.spread + q.after)]


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


def needs_chain(multiple: int = 1, more: str = "1") -> Callable[[], tuple[list[Any], Any]]:
    """0 <= gamma_t <= 2 eta, eta L <= 1, mu eta B <= 1 for eta <= 1/(L (multiple tau + more)), mu <= L."""

    def make() -> tuple[list[Any], Any]:
        import z3

        eta, L, tau, mu, B = reals("eta L tau mu B")
        top = L * (multiple * tau + number(more))
        premises = [
            eta > 0,
            L > 0,
            tau >= 1,
            mu >= 0,
            mu <= L,
            eta * top <= 1,
            B * L * (tau + 1) == tau * (L * (tau + 1) - 1),
        ]
        share = 1 - L * eta * tau - L * eta  # gamma_t/(2 eta)
        return premises, z3.And(share >= 0, share <= 1, eta * L <= 1, mu * eta * B <= 1)

    return make


def ranges(effort: str) -> Outcome:
    """The two printed ranges at L = tau = 1, mu = 1/2, where 1/(mu B) is 4."""
    L, tau, mu = 1, 1, Fraction(1, 2)
    first = 1 / (mu * (tau - Fraction(tau, L * (tau + 1))))
    theorem_, proof = (min(first, Fraction(1, L * (n * tau + 1))) for n in (1, 2))
    said = f"L = tau = 1, mu = 1/2: C.3.1 goes up to {theorem_}, C.9 up to {proof}"
    return Outcome(0 < proof <= theorem_, "exact", None, said)


def drift(sign: int, last: int) -> Pairs:
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


def eq15(factor: float = 2.0) -> Pairs:
    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        A2 = square(q.v - q.at.x) @ q.all_odds
        return [(q.after, q.D + A2 + factor * q.A3)]

    return pairs


S = survives
NOISE = "one client at the minimum of F = w^2/2, stochastic gradient w +- 1"
SIGMA = "sigma^2 >= E||grad F_k(w, xi) - grad F_k(w)||^2"
CORNER = [Edge(N=1, d=1, R=1, kappa=1.0)]
STRAIGHT = Edge(N=1, tau=3, d=1, R=1, kappa=1.0, share=1e-3, noise=False)  # three tiny steps, one gradient


def without(terms: Terms, rest: Check) -> Check:
    """`as_printed` of a claim with both caveats; rest: the check without fresh samples."""
    return each_needed(data=details, without={"3.4.4 given w_t": unconditional(terms), "fresh samples": rest})


CLAIMS: list[Claim] = [
    flss(
        "eq15",
        "identity",
        check=equal(eq15(), "eq15"),
        control=equal(eq15(1.0), "eq15"),
        broken="A_3 once",
    ),
    flss(
        "eq16",
        "inequality",
        assumes=ALL,
        check=broken(noisy_optimum, eq16(False), NOISE),
        control=S(eq16(True, 0.99), "eq16.control", corners=[POINT]),
        broken="the repaired last step times 0.99",
        error="wrong step",
        repair=f"eta^2 tau^2 sigma^2 added on the right, {SIGMA} ({FRESH}): smoothness bounds the exact gradient only. "
        "As printed it holds where every sample's loss is L-smooth and nowhere below F_k^*",
        repaired=S(eq16(True), "eq16", "with eta^2 tau^2 sigma^2", BEYOND, ANY_STEP),
        implies="as printed a client at the minimum would not move, however noisy its gradients. The lemma survives, "
        "for (28) adds (2 + mu - mu eta) eta^2 tau^2 G^2 too much",
    ),
    flss(
        "eq17",
        "expectation",
        assumes=ALL,
        met=GIVEN_TAKEN,
        caveat=GIVEN,
        check=equal(eq17, "eq17"),
        as_printed=unconditional(eq17_sides),
        control=equal(eq17, "eq17", corners=TILTED),
        broken="w_t - w^* not in span P",
        implies="epsilon_t, by which w_t - w^* leaves span P, drops out only because E[g_t | w_t] lies in it",
    ),
    flss(
        "eq18",
        "inequality",
        assumes=ALL,
        check=broken(noisy_optimum, eq18(True), NOISE),
        control=S(eq18(False, 0.99), "eq18.control", corners=[POINT]),
        broken="the repaired last step times 0.99",
        error="wrong step",
        repair=f"grad F_k(w_{{t,i}}^k) in place of grad F_k(w_{{t,i}}^k, xi) in the middle ({FRESH}); then the ends "
        f"hold",
        repaired=S(eq18(False), "eq18", "exact gradients in the middle", BEYOND, ANY_STEP),
        implies="nothing for (20), which uses the ends",
    ),
    flss(
        "eq19",
        "inequality",
        assumes=(CONVEX, UNBIASED),
        met="local SGD draws a batch in every step",
        caveat=f"{FRESH}: unbiasedness is printed at w_t and used at w_{{t,i}}^k, which depends on the earlier samples",
        check=worst_of(
            S(eq19(), "eq19", "for every client and step", BEYOND, ANY_STEP),
            equal(eq19_equality, "eq19", "the equality"),
        ),
        as_printed=broken(kept_sample, eq19_sides, "one sample +-1 kept for two steps, F = w^2/2, w_t = 0"),
        control=S(eq19(1.01), "eq19.control", corners=CORNER),
        broken="1.01 mu",
    ),
    flss(
        "eq20",
        "inequality",
        assumes=ALL,
        met=GIVEN_TAKEN,
        caveat=f"{GIVEN}; {FRESH}",
        check=S(eq20(), "eq20", corners=BEYOND, needs=ANY_STEP),
        as_printed=without(eq20(), broken(ratchet, eq20(), KEPT)),
        control=S(eq20(0.99), "eq20.control", corners=[Edge(N=1, d=1, R=1, kappa=1.0, share=3.0, still=True)]),
        broken="the first two terms on the right times 0.99",
    ),
    flss(
        "eq21",
        "inequality",
        assumes=ALL,
        check=broken(noisy_optimum, eq21(0.0), NOISE),
        control=broken(noisy_optimum, eq21(0.99), "with 0.99 eta^2 tau^2 sigma^2"),
        broken="0.99 of the repair's new term",
        error="wrong step",
        repair=f"eta^2 tau^2 sigma^2 added on the right, {SIGMA}; 3.4.4 given w_t; {FRESH}",
        repaired=S(eq21(1.0), "eq21", "with eta^2 tau^2 sigma^2", BEYOND, ANY_STEP),
        implies="inherited from (16): SGD at the optimum would not move",
    ),
    flss(
        "eq22",
        "inequality",
        check=with_units(
            worst_of(
                S(eq22(), "eq22", "any step size", [*edges(), *edges(share=3.0)], ANY_STEP),
                equal(eq22_equality, "eq22"),
            ),
            lambda q: [q.D, q.at.lr * q.D],
            UNLIKE,
        ),
        control=S(eq22(0.99), "eq22.control", corners=[Edge(R=1, noise=False, kappa=0.0), Edge(d=1, R=1)]),
        broken="the Cauchy-Schwarz terms times 0.99",
    ),
    flss(
        "eq23",
        "identity",
        assumes=(STEP,),
        check=worst_of(equal(eq23(), "eq23"), chain(needs_chain(), "0 <= gamma_t <= 2 eta")),
        control=equal(eq23(0.99), "eq23"),
        broken="0.99 of the second term",
    ),
    flss(
        "eq24",
        "inequality",
        assumes=(SMOOTH, CONVEX),
        check=S(eq24(), "eq24", "its three steps", BEYOND, ANY_STEP),
        control=S(eq24(0.99), "eq24.control", corners=[POINT]),
        broken="0.99 L in the last step",
    ),
    flss(
        "eq25",
        "inequality",
        assumes=(SMOOTH, CONVEX, STEP),
        check=S(eq25(), "eq25", "3/4 is reached where gradients are constant", [STRAIGHT, *edges(), *edges(share=0.3)]),
        control=S(eq25(0.74), "eq25.control", corners=[STRAIGHT]),
        broken="the first two terms times 0.74",
    ),
    flss(
        "eq26",
        "inequality",
        assumes=(SMOOTH, CONVEX, STEP),
        check=worst_of(S(eq26(), "eq26", "both inequalities"), equal(eq26_equality, "eq26", "the equality")),
        control=S(eq26(3.9), "eq26.control", corners=[Edge(tau=1, still=True, share=1e-3)]),
        broken="3.9 L eta^2 tau in place of 4 L eta^2 tau",
    ),
    flss(
        "eq27",
        "inequality",
        assumes=(*ALL, STEP),
        check=broken(noisy_optimum, eq27(0.0), NOISE),
        control=broken(noisy_optimum, eq27(0.99), "with 0.99 eta^2 tau^2 sigma^2"),
        broken="0.99 of the repair's new term",
        error="wrong step",
        repair=f"eta^2 tau^2 sigma^2 added on the right, {SIGMA}; 3.4.4 given w_t; {FRESH}",
        repaired=S(eq27(1.0), "eq27", "with eta^2 tau^2 sigma^2"),
        implies="with one local step and equal clients the error would contract to zero whatever the noise",
    ),
    flss(
        "drift-formula",
        "identity",
        reading="w_{t,1}^k = w_t, for (16) sums the gradients at w_{t,1}^k, ..., w_{t,tau}^k; with any other numbering "
        "the sign is wrong all the same",
        check=check_drift(1, 1),
        control=check_drift(-1, 1),
        broken="the sign alone corrected",
        error="index",
        repair="w_{t,i}^k - w_t = -sum_{j=1}^{i-1} eta_t grad F_k(w_{t,j}^k, xi_{t,j}^k)",
        repaired=equal(drift(-1, 0), "drift"),
        implies="(28) has sum i^2 where sum (i-1)^2 will do; the surplus pays for the noise that (16) forgets",
    ),
    flss(
        "eq28",
        "inequality",
        assumes=(BOUNDED, STEP),
        check=S(eq28(), "eq28"),
        control=S(eq28(0.99), "eq28.control", corners=[PURE]),
        broken="0.99 of the right side",
    ),
]
