"""Tight constants of the inequalities that docs/theory proves: the same programs, for our statements and steps.

As in `program`: L = 1, exact gradients, one round of the algorithm's own lines on symbols, dual values. All constants
are at the largest steps that the page admits, where they are worst. A theorem's program is that over two rounds, the
second of which only has to start: its gradient is in the average.
"""

from functools import cached_property
from typing import Any

import torch

from fedtheory.theory.ssf.family import memory, weight
from fedtheory.theory.worst_case.program import Program, Symbols, Tight, Traced, trace_fedavg, trace_fedsub, trace_ssf


class Round:
    """The quantities of a round as expressions of the program, means over clients and branches.

    Fields:
        at, traced, program: see there.
        rho: 1/parts.
    """

    def __init__(self, at: Symbols, traced: Traced, parts: int) -> None:
        self.at, self.traced, self.rho = at, traced, 1 / parts
        self.program = Program(at, traced, convex=False)
        # F(x^+) - F(x) in every branch; it also makes x^+ a point of the program
        self.gains = [self.program.value(x.expand_as(g), g) for x, g in zip(traced.x, at.after)]

    def mean(self, rows: torch.Tensor) -> Any:
        """The mean of ||row||^2."""
        return self.program.square(rows) / (rows.numel() / rows.shape[-1])

    @cached_property
    def G2(self) -> Any:
        return self.mean(self.at.G)

    @cached_property
    def drift(self) -> Any:
        """D of the pages."""
        return self.mean(self.traced.y)

    @cached_property
    def moved(self) -> Any:
        """E||x^+ - x||^2."""
        return self.mean(self.traced.x)

    @cached_property
    def gain(self) -> Any:
        return sum(self.gains) / len(self.gains)

    def average(self) -> tuple[Any, Any, list[Any]]:
        """Mean squared gradient of two rounds, a variable F(x) - F*, and what keeps F above F* everywhere."""
        from PEPit import Expression

        gap, after = Expression(), self.at.after.mean(1)
        limits = [gap >= self.G2 / 2]
        limits += [gain + gap >= self.program.square(g) / 2 for gain, g in zip(self.gains, after)]
        return (self.G2 + self.mean(after)) / 2, gap, limits

    def most(self, metric: Any, *limits: Any) -> Tight:
        return self.program.maximise(metric, *limits)


# SSF: docs/theory/ssf.md, K L eta_l = 1/10 and L eta = min(1/4, sqrt(rho/8))

LOCAL = 0.1


def ssf_step(parts: int) -> float:
    """The largest L eta."""
    return min(0.25, (8 * parts) ** -0.5)


class SSFRound(Round):
    """Controls are c_i = grad F_i(x) - u_i, any u_i; all grad F_i(x) = G loses no generality (`Symbols.make`)."""

    def __init__(self, K: int, parts: int, N: int) -> None:
        self.eta, self.lr = ssf_step(parts), LOCAL / K
        at = Symbols.make(N, K, LOCAL, parts, spare=1)
        self.u = at.spare + at.e
        super().__init__(at, trace_ssf(at, self.lr, at.G - self.u, self.eta / LOCAL), parts)

    @cached_property
    def C(self) -> Any:
        return self.mean(self.u)

    @cached_property
    def C1(self) -> Any:
        assert self.traced.kept is not None
        return self.mean(self.traced.kept - self.at.after)


def ssf_drift(K: int, parts: int = 2, N: int = 2) -> Tight:
    """Section 2, sigma = 0: the smallest c with D <= c rho K^2 eta_l^2 (C + ||G||^2). Ours: 1.388."""
    q = SSFRound(K, parts, N)
    return q.most(q.drift / (q.rho * LOCAL**2), q.C + q.G2 <= 1)


def ssf_descent(K: int, parts: int = 2, N: int = 2) -> Tight:
    """Section 3: the largest c with E F(x^+) <= F(x) - c rho eta ||G||^2 + (1 + L eta)/2 L^2 eta D. Ours: 1/2."""
    q = SSFRound(K, parts, N)
    metric = (q.gain / q.eta - (1 + q.eta) / 2 * q.drift) / q.rho
    return q.most(metric, q.G2 == 1).guaranteed()


def ssf_memory(K: int, parts: int = 2, N: int = 2) -> Tight:
    """Section 4: the largest left over right side, sigma = 0. Ours: 1."""
    q = SSFRound(K, parts, N)
    h2 = q.eta**2
    right = (1 - q.rho / 2) * q.C + (3 + 12 * h2 / q.rho) * q.drift + 12 * h2 * q.G2
    return q.most(q.C1, right <= 1)


def ssf_round(K: int, parts: int = 2, N: int = 2) -> Tight:
    """Section 5: the largest c with E Phi^+ <= Phi - c rho eta ||G||^2. Ours: 9/20."""
    q = SSFRound(K, parts, N)
    metric = (q.gain / q.eta + 2 * LOCAL**2 * (q.C1 - q.C)) / q.rho
    return q.most(metric, q.G2 == 1).guaranteed()


def ssf_theorem(K: int, parts: int = 2, N: int = 2) -> Tight:
    """The theorem for T = 2, sigma = 0: the largest left over right side."""
    q = SSFRound(K, parts, N)
    left, gap, limits = q.average()
    right = (20 / 9 * gap / q.eta + 40 / 9 * LOCAL**2 * q.C) / (2 * q.rho)
    return q.most(left, right <= 1, *limits)


# Without controls: FedAvg and FedAvg in random subspaces, whose clients differ by zeta^2


class BareRound(Round):
    """SSF's lines with controls that are zero; K L eta_l and L eta as given."""

    def __init__(self, K: int, local: float, eta: float, parts: int, N: int) -> None:
        at = Symbols.make(N, K, local, parts, tilted=False)
        super().__init__(at, trace_ssf(at, local / K, torch.zeros_like(at.start), eta / local), parts)
        self.local, self.eta = local, eta

    @cached_property
    def zeta2(self) -> Any:
        return self.mean(self.at.e)


def bare_drift(K: int, local: float, parts: int = 1, N: int = 2) -> Tight:
    """The smallest c with L^2 D <= c rho (1 - 1/K) (K L eta_l)^2 (||G||^2 + zeta^2), sigma = 0.

    1.714 in section 8 of docs/theory/mud.md (of Lambda L^2 D/gamma, rho = gamma/Lambda); 8/7 in that of decomfl.md,
    with so many directions that no step is random.
    """
    q = BareRound(K, local, local, parts, N)
    return q.most(q.drift / (q.rho * (1 - 1 / K) * local**2), q.G2 + q.zeta2 <= 1)


def bare_round(K: int, local: float, eta: float, kept: float, parts: int = 1, N: int = 2) -> Tight:
    """The largest c with E F(x^+) <= F(x) - rho eta (c ||G||^2 - kept (K L eta_l)^2 zeta^2)."""
    q = BareRound(K, local, eta, parts, N)
    return q.most(q.gain / (q.rho * eta) - kept * local**2 * q.zeta2, q.G2 == 1).guaranteed()


def bare_spread(K: int, local: float, descent: float, N: int = 2) -> Tight:
    """The smallest c with F(x^+) <= F(x) - eta (descent ||G||^2 - c (1 - 1/K) (K L eta_l)^2 zeta^2), eta = K eta_l."""
    q = BareRound(K, local, local, 1, N)
    found = q.most((q.gain / local + descent * q.G2) / local, local * q.zeta2 <= 1)  # these units solve well
    return Tight(found.dual / (1 - 1 / K), found.primal / (1 - 1 / K))


def memoryless_round(K: int, parts: int = 1, N: int = 2) -> Tight:
    """7.3 for one round: the largest c with
    E F(x^+) <= F(x) - rho eta (c ||G||^2 - (1.8/2.05) (K L eta_l)^2 zeta^2). Ours: 1/2.05.
    """
    return bare_round(K, LOCAL, 0.25, 1.8 / 2.05, parts, N)


# The family: docs/theory/family.md, orthogonal projectors, S = N, p = (K L eta_l)^2 (1 - 1/K)


def family_drift(K: int, parts: int = 2, N: int = 2) -> Tight:
    """Section 3, sigma = 0: the smallest c with L^2 D <= c rho p (V + ||G||^2). Ours: 1.388."""
    q = SSFRound(K, parts, N)
    V = q.mean(q.u - q.u.mean(0))
    return q.most(q.drift / (q.rho * (1 - 1 / K) * LOCAL**2), V + q.G2 <= 1)


def family_memory(K: int, parts: int = 2, N: int = 2) -> Tight:
    """5.2 for SSF, sigma = 0: the largest left over right side. Ours: 1."""
    q = SSFRound(K, parts, N)
    return q.most(q.C1, (1 - q.rho / 2) * q.C + 3 * q.drift + 3 / q.rho * q.moved <= 1)


def family_round(K: int, parts: int = 2, N: int = 2) -> Tight:
    """Section 6 for SSF: the largest c with E Phi^+ <= Phi - c rho eta ||G||^2. Ours: 9/20."""
    q = SSFRound(K, parts, N)
    share = weight(memory("SSF", q.rho, 1), (1 - 1 / K) * LOCAL**2, q.eta, q.rho)
    return q.most((q.gain / q.eta + share * (q.C1 - q.C)) / q.rho, q.G2 == 1).guaranteed()


def family_forgetting(K: int, parts: int = 2, N: int = 2) -> Tight:
    """The same for FedSub as printed, K L eta_l = 1/10: Phi - c rho eta ||G||^2 + M chi zeta^2. Ours: 9/20."""
    q = FedSubRound(K, parts, N, step=LOCAL)
    own = memory("FedSub", q.rho, 1)
    share = weight(own, q.p, q.t, q.rho)
    metric = (q.gain / q.t + share * ((q.H1 - q.H) / q.rho - own.chi * q.zeta2)) / q.rho
    return q.most(metric, q.G2 == 1).guaranteed()


# FedSub: docs/theory/fedsub.md, L eta tau = 1/(3 sqrt(m/r))


class FedSubRound(Round):
    """Duals Lambda_i = t P^T u_i with any u_i of sum zero, or none (`fresh`); v_i = grad f_i(x) - G are e_i.

    `step`: L eta tau, another than the largest.
    """

    def __init__(self, tau: int, parts: int, n: int, fresh: bool = False, step: float | None = None) -> None:
        self.t = step or 1 / (3 * parts**0.5)
        at = Symbols.make(n, tau, self.t, parts, tilted=False, spare=n - 1)
        u = torch.cat([at.spare, -at.spare.sum(0, keepdim=True)]) * (not fresh)
        self.parts, self.p = parts, self.t**2 * (tau - 1) / tau
        self.h = at.e + parts * u
        super().__init__(at, trace_fedsub(at, self.t / tau, u), parts)

    @cached_property
    def H(self) -> Any:
        return self.rho * self.mean(self.h)

    @cached_property
    def H1(self) -> Any:
        assert self.traced.kept is not None
        spread = self.at.after - self.at.after.mean(1, keepdim=True)
        return self.rho * self.mean(spread + self.parts * self.traced.kept / self.t)

    @cached_property
    def zeta2(self) -> Any:
        return self.mean(self.at.e)


def fedsub_drift(tau: int, parts: int = 2, n: int = 2) -> Tight:
    """Section 2: the smallest c with L^2 D <= c p (E||G||_R^2 + H). Ours: 5/6."""
    q = FedSubRound(tau, parts, n)
    return q.most(q.drift / q.p, q.rho * q.G2 + q.H <= 1)


def fedsub_descent(tau: int, parts: int = 2, n: int = 2) -> Tight:
    """Section 3: the largest c with E f(x^+) <= f(x) - c t ||G||_R^2 + (t/2) L^2 D - (1 - lambda)/(2t) E||x^+ - x||^2.
    Ours: 1/2.
    """
    q = FedSubRound(tau, parts, n)
    metric = q.gain / q.t - q.drift / 2 + (1 - q.t) / (2 * q.t**2) * q.moved
    return q.most(metric, q.rho * q.G2 == 1).guaranteed()


def fedsub_dual(tau: int, parts: int = 2, n: int = 2) -> Tight:
    """Section 4: the largest left over right side. Ours: 1."""
    q = FedSubRound(tau, parts, n)
    right = 2 * (1 - q.rho) * q.zeta2 + 4 * parts * q.drift + 4 * q.rho * q.moved
    return q.most(q.H1, right <= 1)


def fedsub_round(tau: int, parts: int = 2, n: int = 2) -> Tight:
    """Section 5: the largest c with E Phi^+ <= Phi - c t ||G||_R^2 + 2w(1 - r/m) zeta^2. Ours: 2/5."""
    q = FedSubRound(tau, parts, n)
    w = 5 / 6 * q.p  # over t
    metric = q.gain / q.t + w * (q.H1 - q.H) - 2 * w * (1 - q.rho) * q.zeta2
    return q.most(metric, q.rho * q.G2 == 1).guaranteed()


def fedsub_theorem(tau: int, parts: int = 2, n: int = 2) -> Tight:
    """Theorem 1 for two rounds: the largest left over right side."""
    from PEPit import Expression

    q = FedSubRound(tau, parts, n, fresh=True)
    left, gap, limits = q.average()
    zeta2, after = Expression(), q.at.after
    limits += [zeta2 >= q.zeta2, *(zeta2 >= q.mean(g - g.mean(0)) for g in after)]
    start = 5 / 2 * gap / q.t + 25 / 12 * q.p * q.H
    right = parts * start / 2 + 25 / 6 * (parts - 1) * q.p * zeta2
    return q.most(left, right <= 1, *limits)


# FLSS: docs/theory/flss.md, P = I, eta tau L = 1/20, all clients, sigma = 0

REACH = 0.05  # eta tau L


def _flss(tau: int, mu: float) -> tuple[Program, Any, Any, Any]:
    """The program; ||w - w_P||^2, ||w^+ - w_P||^2 and zeta^2 of two clients."""
    at = Symbols.make(2, tau, REACH, tilted=False, spare=2)
    traced = trace_fedavg(at, REACH / tau)
    program = Program(at, traced, convex=True, strong=mu)
    target, pull = REACH * at.spare[0], at.spare[1]
    program.value(target.expand(2, -1), torch.stack([pull, -pull]))
    return program, program.square(target), program.square(traced.x[0] - target), program.square(pull)


def flss_rate(tau: int, mu: float = 0.1) -> Tight:
    """Section 3 at zeta = 0: the largest c with ||w^+ - w_P||^2 <= (1 - c mu eta tau) ||w - w_P||^2. Ours: 1."""
    program, before, after, zeta2 = _flss(tau, mu)
    return program.maximise((after - before) / (mu * REACH), before == 1, zeta2 <= 0).guaranteed()


def flss_drift(tau: int, mu: float = 0.1) -> Tight:
    """Section 3: the smallest c such that a round adds at most c (1 - 1/tau) L eta^3 tau^3 zeta^2. Ours: 0.61.

    It adds that to (1 - mu eta tau) ||w - w_P||^2.
    """
    program, before, after, zeta2 = _flss(tau, mu)
    return program.maximise((after - (1 - mu * REACH) * before) / ((1 - 1 / tau) * REACH**3), zeta2 <= 1)
