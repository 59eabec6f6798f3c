"""SSF (arXiv:2604.25467v1), Section 4.5: Lemma 3, the descent of one round, (21) to (59)."""

import functools
from dataclasses import replace
from typing import Any

import torch

from fedtheory.algorithms.ssf import SSF
from fedtheory.core.loop import play_round
from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.instances import Smooth, coordinate_frames, exact, fixed
from fedtheory.theory.proof import by_steps
from fedtheory.theory.search import ROUNDING, implies, number, ratio, reals, same, worst
from fedtheory.theory.ssf.attack import (
    FAR,
    NOISY,
    Edge,
    Terms,
    all_implied,
    edges,
    found_gap,
    identical,
    on,
    refuted_each,
    sharpened,
    survives,
    times,
    with_units,
)
from fedtheory.theory.ssf.hypotheses import (
    A1,
    A3,
    A12,
    A123,
    ALL,
    CENTRED,
    EVERYONE,
    MEAN,
    STEPS3,
    TAKEN_MEAN,
    TAKEN_NOISE,
    UNBIASED,
    X_FIXED,
    claim,
)
from fedtheory.theory.ssf.round import (
    ONE_STEP,
    ROOT,
    Instance,
    Round,
    biased,
    client_parts,
    crossed,
    kept,
    leap,
    offset,
    play,
    projected_directions,
    slow,
    stale,
)
from fedtheory.theory.worst_case.program import settles, ssf_descent

# The statements: (left, right) of one round


def eq21(
    eta: Any, L: Any, N: Any, K: Any, rho: Any, sigma2: Any, G2: Any, D: Any,
    noise: float = 1, G: float = 0.25, drift: float = 1.5,
) -> Any:  # fmt: skip
    """Of (21), less F(x^t); G2 is |grad F(x^t)|^2, D is E_drift."""
    return -G * rho * eta * G2 + noise * L * eta**2 * sigma2 / (2 * N * K) + drift * L**2 * eta * D


def lemma3(noise: float = 1.0, G: float = 0.25, drift: float = 1.5, extra: bool = False) -> Terms:
    """Left: E F(x^{t+1}) - F(x^t) + G rho eta ||grad F||^2."""

    def terms(q: Round) -> tuple[torch.Tensor, ...]:
        eta, L, N, K = q.at.eta, q.at.L, q.at.N, q.at.K
        factor = noise * (1 + L * eta * (K - 1) / (4 * N * K) if extra else 1.0)
        left = q.gain + G * q.at.rho * eta * q.G2
        right = eq21(eta, L, N, K, q.at.rho, q.at.sigma2, q.G2, q.drift, factor, 0.0, drift)
        return left, right, (eta * q.G2 + L * q.moved).detach()

    return terms


def eq57(q: Round) -> tuple[torch.Tensor, ...]:
    eta, L = q.at.eta, q.at.L
    left = q.gain + (q.at.rho * eta / 2 - L * eta**2 * q.at.rho) * q.G2
    right = (eta * L**2 / 2 + L**3 * eta**2) * q.drift + L * eta**2 * q.at.sigma2 / (2 * q.at.N * q.at.K)
    return left, right, (eta * q.G2 + L * q.moved).detach()


def eq29_30(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The right-hand side of (29) is that of (30)."""
    step = q.x - q.at.x
    right = q.every((step * q.G).sum(-1)) + q.at.L / 2 * q.moved
    return [(right, q.T1 + q.T2)]


def eq29(q: Round) -> tuple[torch.Tensor, ...]:
    bound = q.every(((q.x - q.at.x) * q.G).sum(-1)) + q.at.L / 2 * q.moved
    shift = (q.at.eta * q.G2 + 2 * q.at.L * q.moved + q.G2.sqrt() * q.moved.sqrt()).detach()
    return q.gain + shift, bound + shift


def eq22_25(total: float | None = None):
    def pairs(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
        at = q.at
        eta = at.eta if total is None else total * at.server_lr * at.lr
        direction = projected_directions(q) + q.down(q.xi)  # P^T (P g - P c_i + P c)
        ends = torch.stack([f @ e[..., -1, :, None] for f, e in zip(at.frames, q.delta)])[..., 0]  # P^T Delta^K
        v = q.pick(direction.mean(-2)).mean(1)
        return [(-ends, at.lr * direction.sum(-2)), (q.x, at.x - eta * v)]

    return pairs


def eq28(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(q.x, q.at.x - q.at.eta * q.down(q.g_bar + q.xi_bar)), (q.c.mean((0, 1)), q.pick(q.ci).mean((0, 1, 2)))]


def eq28_unprojected(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(q.x, q.at.x - q.at.eta * (q.g_bar + q.xi_bar))]


def eq31(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    cross = q.every((q.down(q.xi_bar) * q.G).sum(-1))
    gradient = q.every((q.down(q.g_bar) * q.G).sum(-1))
    return [(cross, torch.zeros_like(cross)), (q.T1, -q.at.eta * gradient - q.at.eta * cross)]


def bias(q: Round) -> torch.Tensor:
    """E ||g_bar - G||^2."""
    return q.every(((q.g_bar - q.G) ** 2).sum(-1))


def eq32(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    inner = lambda v: q.every((q.down(v) * q.G).sum(-1))
    G = q.G.expand_as(q.g_bar)
    return [(q.T1, -q.at.eta * inner(G) - q.at.eta * inner(q.g_bar - G)), (inner(G), q.at.rho * q.G2)]


def eq35(q: Round) -> tuple[torch.Tensor, ...]:
    left = -q.every((q.down(q.g_bar - q.G) * q.G).sum(-1))
    return left, q.at.rho / 2 * q.G2 + bias(q) / 2, (q.G2 + bias(q)).detach()


def eq36(q: Round) -> tuple[torch.Tensor, ...]:
    eta = q.at.eta
    return q.T1 + q.at.rho * eta / 2 * q.G2, eta / 2 * bias(q), 2 * eta * q.G2.detach()


def eq38_39(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    N, K = q.at.N, q.at.K
    grads = q.pick((q.grad - q.start[:, None, None]).pow(2).sum((-1, -2))).sum(1) / (N * K)
    lines = [
        (((q.g_bar - q.G) ** 2).sum(-1).flatten(), grads.flatten()),
        (bias(q)[None], q.at.L**2 * q.drift[None]),
    ]
    return worst(*lines)


def eq40(q: Round) -> tuple[torch.Tensor, ...]:
    eta = q.at.eta
    return q.T1 + q.at.rho * eta / 2 * q.G2, eta * q.at.L**2 / 2 * q.drift, 2 * eta * q.G2.detach()


def cross(q: Round) -> torch.Tensor:
    """E <P g_bar, P xi_bar>."""
    return q.every((q.down(q.g_bar) * q.down(q.xi_bar)).sum(-1))


def eq42(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    half = q.at.L * q.at.eta**2 / 2
    parts = [q.every((q.down(v) ** 2).sum(-1)) for v in (q.g_bar, q.xi_bar)]
    return [(q.T2, half * (parts[0] + parts[1]))]


def eq42_repaired(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    N, K = q.at.N, q.at.K
    bound = q.at.L / (N * K) * (q.at.sigma2 * (K - 1) / 2 * q.drift).clamp(min=0).sqrt()
    return cross(q).abs(), bound


def eq43_45(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    G = q.down(q.G.expand_as(q.g_bar))
    pointwise = 2 * (G**2).sum(-1) + 2 * ((q.g_bar - q.G) ** 2).sum(-1)
    left = (q.down(q.g_bar) ** 2).sum(-1)
    lines = [
        (left.flatten(), pointwise.flatten()),
        (q.every(left)[None], (2 * q.at.rho * q.G2 + 2 * q.at.L**2 * q.drift)[None]),
    ]
    return worst(*lines)


def eq48(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    return q.every((q.down(q.xi_bar) ** 2).sum(-1)), q.every((q.xi_bar**2).sum(-1))


def eq53_54(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    return q.every((q.xi_bar**2).sum(-1)), q.at.sigma2 / (q.at.N * q.at.K)


def eq55(G: float = 2.0, drift: float = 2.0, extra: bool = False) -> Terms:
    def terms(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
        N, K = q.at.N, q.at.K
        noise = (1 + (K - 1) / (2 * N * K) if extra else 1.0) * q.at.sigma2 / (N * K)
        half = q.at.L * q.at.eta**2 / 2
        return q.T2, half * (G * q.at.rho * q.G2 + drift * q.at.L**2 * q.drift + noise)

    return terms


# (46)-(48): noise and projector


def tied(informed: bool, curvature: float = 0.0, lr: float = 0.25) -> list[Round]:
    """One client, d = 2, P_t = e_1^T or e_2^T with noise of mean zero that depends on P_t: a round for each P_t.

    F is `curvature` |x|^2/2, and x^t = -e_1 where it is not flat. `informed`: noise e_1 where P_t = e_1^T, -e_1 where
    P_t = e_2^T: no mean, but one given P_t. Otherwise +-P_t^T, both signs equally likely: only the covariance depends
    on P_t.
    """
    zero, flat = torch.zeros(2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)
    h, x = torch.full_like(flat, curvature), torch.tensor([-1.0 if curvature else 0.0, 0.0], dtype=torch.float64)
    rounds = []
    for frame, sign in zip(coordinate_frames(2, 1), (1.0, -1.0)):
        if informed:
            one = torch.ones(1, dtype=torch.float64)
            noise = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
            problem = Smooth(h, flat, noise=noise, scenarios=sign * one[None], probability=one)
        else:
            problem = Smooth(h, flat, noise=frame.mT).enumerated(1)
        rounds.append(play(Instance(problem, x, flat, zero, frame[None], lr, 1)))
    return rounds


def traces(q: Round, centred: bool = True) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(46)-(47), (69) and the displays after them, given each P_t: tr(P Sigma) and tr(Sigma) against second moments.

    Sigma is the covariance given P_t; not `centred`: the matrix of second moments.
    """
    client, _ = client_parts(q)
    sides = []
    for xi, odds in [(q.xi_bar, q.joint.probability), *((client[:, i], q.odds) for i in range(q.at.N))]:
        mean = torch.einsum("c,mcj->mj", odds, xi)
        gap = xi - mean[:, None] if centred else xi
        sigma = torch.einsum("c,mcj,mck->mjk", odds, gap, gap)
        seen = [torch.einsum("c,mcj->m", odds, v**2) for v in (q.down(xi), xi)]
        sides += [(seen[0], torch.einsum("mjk,mkj->m", q.P, sigma)), (seen[1], torch.einsum("mjj->m", sigma))]
    return sides


def check_traces(effort: str) -> Outcome:
    """`traces` where the noise has mean zero given P_t, its covariance depending on P_t or not."""
    known = [(float((a - b).abs().max())) for q in tied(False) for a, b in traces(q)]
    rest = identical(traces, "eq46", "(46)-(47), (69), noise of any state-dependent size", gated=True)(effort)
    worst = max(rest.margin or 0.0, *known)
    said = f"{rest.detail}; covariance tied to P_t: gap {max(known):.1e}"
    return replace(rest, holds=rest.holds and worst < 1e-10, margin=worst, detail=said)


def check_informed_noise(effort: str) -> Outcome:
    """E xi = 0 but E[xi | P_t] = +-e_1: the covariance given P_t vanishes, |P_t xi|^2 does not."""
    rounds = tied(True)
    left, right = (float(side[0]) for side in traces(rounds[0])[0])
    slack = {
        "A2: mean zero": -float(torch.stack([q.xi_bar for q in rounds]).sum(0).abs().max()),
        "A2: variance": 1 - max(float(eq48(q)[1]) for q in rounds),
        "A3: E[P^T P] = rho I": -float((torch.cat([q.P for q in rounds]).sum(0) - torch.eye(2)).abs().max()),
    }
    if min(slack.values()) < -1e-12:
        raise AssertionError(f"not admissible: {slack}")
    data = {
        "d": 2, "r": 1, "N": 1, "K": 1, "F": "0", "P_t": "e_1^T or e_2^T, probability 1/2 each",
        "noise": "e_1 where P_t = e_1^T, -e_1 where P_t = e_2^T: mean zero, sigma^2 = 1",
        "E[P^T P]": "I/2", "left": exact(left), "right": exact(right), "slacks": slack,
    }  # fmt: skip
    said = f"P_t tied to the noise: E[|P xi|^2 | P] = {left:g}, tr(P Cov) = {right:g}"
    return Outcome(abs(left - right) < 1e-12, "exact", None, said, data)


def check_informed_descent(effort: str) -> Outcome:
    """(21) with noise of mean zero, but one given P_t: every step of |x|^2/2 from -e_1 is undone, and x stays."""
    rounds = tied(True, 1.0, 1 / 8)
    sides = [lemma3()(q)[:2] for q in rounds]
    left, right = (sum(float(side[place]) for side in sides) / len(sides) for place in (0, 1))
    moved = max(float(q.moved) for q in rounds)
    if float(torch.stack([q.xi_bar for q in rounds]).sum(0).abs().max()) > 0 or moved > 0:
        raise AssertionError(f"not admissible: the noise has a mean, or x moves ({moved:g})")
    data = {
        "d": 2, "r": 1, "N": 1, "K": 1, "F": "|x|^2/2", "x": "-e_1", "c, c_1": "0", "eta = eta_l": "1/8",
        "P_t": "e_1^T or e_2^T, probability 1/2 each",
        "noise": "e_1 where P_t = e_1^T, -e_1 where P_t = e_2^T: mean zero, sigma^2 = 1",
        "left: E F(x^{t+1}) - F(x^t) + (rho eta/4)|grad F|^2": exact(left), "right": exact(right),
    }  # fmt: skip
    said = f"P_t tied to the noise, F = |x|^2/2, no step moves x: left {left:g}, right {right:g}"
    return Outcome(left <= right, "exact", left / right, said, None if left <= right else data)


def check_second_moments(effort: str) -> Outcome:
    """(47) and (48) with second moments, for noise tied to P_t in either way."""
    rounds = [*tied(True), *tied(False)]
    gap = max(float((a - b).abs().max()) for q in rounds for a, b in traces(q, centred=False))
    worst = max(ratio(*(float(side) for side in eq48(q))) for q in rounds)
    said = f"noise tied to P_t: gap {gap:.1e} in (47), |P xi|^2 over |xi|^2 in (48) at most {worst:g}"
    return Outcome(gap < 1e-12 and worst <= 1 + ROUNDING, "exact", worst, said)


# Symbolic parts


def symbolic_eq59(limit: str) -> Check:
    """(59) and the display after it, for all eta <= limit/L."""

    def check(effort: str) -> Outcome:
        eta, L, rho = reals("eta L rho")
        premises = [eta > 0, L > 0, rho > 0, rho <= 1, eta * L <= number(limit)]
        first = implies(premises, -rho * eta / 2 + L * eta * eta * rho <= -rho * eta / 4)
        second = implies(premises, eta * L * L / 2 + L * L * L * eta * eta <= 3 * eta * L * L / 4)
        return all_implied({"(59)": first, "the drift coefficient": second})

    return check


def symbolic_lemma3(effort: str) -> Outcome:
    """The repaired chain of Lemma 3, with the cross term kept. L = 1 by a change of units; s = sigma^2/(NK).

    (32) by polarisation: T1 = -(eta/2)(g + p - w), g = rho |G|^2, p = E|P g_bar|^2, w = E|P(g_bar - G)|^2 <= D;
    T2 = (eta^2/2)(p + n + 2 q) with n <= s and q^2 <= D s k / 2, k = (K - 1)/(NK) (repair of (42)).
    """
    eta, g, p, w, n, q, D, s, k, u, v = reals("eta g p w n q D s k u v")
    base = [eta > 0, eta <= 1, g >= 0, p >= 0, w >= 0, w <= D, n >= 0, n <= s, D >= 0, s >= 0, k >= 0]
    # u^2 = D and v^2 = s k / 2, so that q <= u v; then eta^2 u v <= eta u^2 + eta^3 v^2 / 4
    young = implies([eta > 0, u >= 0, v >= 0], eta * u * v <= u * u + eta * eta * v * v / 4)
    total = -(eta / 2) * (g + p - w) + (eta * eta / 2) * (p + n + 2 * q)
    bound = -(eta / 2) * g + (eta * eta / 2) * s + (3 * eta / 2) * D + eta * eta * eta * (s * k) / 8
    chain = implies([*base, eta * q <= D + eta * eta * (s * k) / 8], total <= bound)
    return all_implied({"Young on the cross term": young, "T1 + T2": chain})


def symbolic_cross(effort: str) -> Outcome:
    """The repairs of (42) and (55): sum_k sqrt(e_k k) by Cauchy-Schwarz, then 2 |E <P g_bar, P xi_bar>| by Young.

    Only j < k of one client correlate: |E <P (grad F_i(y^k) - grad F_i(x)), sum_{j<k} P xi^j>| <= L sigma sqrt(e_k k),
    over N K terms of weight 1/(NK)^2. L = 1; D = u^2, and (K - 1)/(NK) sigma^2/(NK) = 2 v^2.
    """
    import sympy

    K, N, k = sympy.symbols("K N k", positive=True)
    counted = sympy.summation(k, (k, 0, K - 1))
    bound = same(N * K * N * counted / (N * K) ** 4, ((K - 1) / 2) / (N * K) ** 2)  # of its square, over sigma^2 D
    u, v = reals("u v")
    young = implies([u >= 0, v >= 0], 2 * u * v <= u * u + v * v)
    holds = bound and young.holds
    verb = "agrees" if bound else "differs"
    return Outcome(holds, "symbolic", None, f"sum of k by Cauchy-Schwarz {verb} (sympy); Young: {young.detail}")


STILL = Edge(K=1, stationary=True, controlled=True)  # noise alone moves x


def wide_steps(times: float = 4.0) -> list[Edge]:
    """eta = 1/L, four times what Lemma 3 allows, or another multiple of that."""
    return [replace(edge, global_share=times) for edge in (*edges(), *FAR)]


def sampled(effort: str) -> Outcome:
    """S = 1 of N = 2 clients, K = 1, no noise, c = c_i = 0 at the minimiser: the right-hand side of (21) is F(x)."""
    problem = Smooth(torch.ones(2, 1, dtype=torch.float64), torch.tensor([[-1.0], [1.0]], dtype=torch.float64))
    x = torch.zeros(1, dtype=torch.float64)
    after = []
    for client in (0, 1):
        algorithm = SSF(0.25, 1, fixed(torch.ones(1, 1, dtype=torch.float64)))
        state = algorithm.init(problem, x, ROOT)
        after.append(problem.loss(play_round(algorithm, problem, state, torch.tensor([client]), ROOT)[0].server.x))
    left, right = sum(after) / 2, problem.loss(x)
    data = {"N": 2, "S": 1, "K": 1, "F_i": "(x + 1)^2/2, (x - 1)^2/2", "x, c, c_i": "0", "eta_l": "1/4",
            "E F(x^{t+1})": exact(left), "right-hand side of (21) = F(x^t)": exact(right)}  # fmt: skip
    return Outcome(left <= right, "exact", left / right, f"S = 1 of N = 2: E F(x+) = {left:g}, bound {right:g}", data)


LEMMA3_REPAIR = (
    "Lemma 3 with the cross term of (42) kept: for eta <= 1/L, E F(x^{t+1}) <= F(x^t) - (rho eta/2)|grad F|^2 + "
    "(L eta^2/(2NK))(1 + L eta (K-1)/(4NK)) sigma^2 + (3 L^2 eta/2) E_drift. Twice the descent, four times the step, "
    "at the price of at most 1/(16N) more noise where eta <= 1/(4L)"
)


CLAIMS: list[Claim] = [
    claim(
        "lemma3", "expectation", assumes=(*A123, X_FIXED),
        check=with_units(
            worst_of(
                survives(lemma3(), "lemma3", "eta = 1/(4L)", [*edges(), *FAR]),
                survives(lemma3(), "lemma3.half", "eta = 1/(2L)", wide_steps(2.0)),
                by_steps("ssf", *(f"ssf.3.{step}" for step in range(5, 12))),
                settles(
                    {f"K = {K}": functools.partial(ssf_descent, K, 0.25, 1 / (2 * K), N=2) for K in (1, 2)},
                    0.25,
                    "descent without noise, exact controls, any smooth loss",
                    guaranteed=True,
                ),
            ),
            lemma3(),
        ),
        control=survives(lemma3(noise=0.99), "lemma3c", "", [STILL], restarts=6),  # of two both end below the peak
        broken="the noise term times 99/100",
        met=f"{TAKEN_MEAN}; {TAKEN_NOISE}",
        caveat=f"{MEAN}; {ALL}; {UNBIASED}. The printed proof is broken at (42) and (55); another one, by way of "
        "the clients' points, has it with the same constants, for eta <= 1/(2L): docs/theory/ssf.md, 3.5-3.11",
        as_printed=refuted_each(
            on(offset, lemma3(), "N = K = 1, at the minimiser, no noise, c = 1, c_1 = 0"),
            on(lambda: kept(4, 1.0, lr=1 / 16), lemma3(), "one sample kept, K = 4, F = x^2/2, x = 0"),
            check_informed_descent,
            sampled,
        ),
        implies="At the minimiser, without noise, SSF moves away by eta (c - mean c_i) in the first round.",
        repair=LEMMA3_REPAIR,
        repaired=worst_of(
            symbolic_lemma3, survives(lemma3(G=0.5, extra=True), "lemma3r", "eta = 1/L", wide_steps())
        ),
    ),
    claim(
        "lemma3.eq22-25", "identity", assumes=(EVERYONE,),
        check=identical(eq22_25(), "eq22", "(22)-(25), any controls, S = N", free_c=True),
        control=identical(eq22_25(1.0), "eq22", free_c=True),
        broken="eta without its factor K",
    ),
    claim(
        "lemma3.eq26-28", "identity",
        check=identical(eq28, "eq28", "(28), and that mean c_i^{t+1} = c^{t+1}"),
        control=identical(eq28_unprojected, "eq28"),
        broken="the step not projected by P_t",
        met=TAKEN_MEAN, caveat=f"{MEAN} and {ALL[0].lower() + ALL[1:]}: then c^t = mean c_i^t in every round",
        as_printed=found_gap(offset, lambda q: eq28(q)[:1], "N = K = 1, F = x^2/2, x = 0, c_1 = 0, c = 1"),
        implies="With c^0 = 0 and c_i^0 = grad F_i(x^0), or with S < N clients per round, every round adds "
        "-eta P (c - mean c_i): a drift that none of the lemmas contains.",
    ),
    claim(
        "lemma3.eq29-30", "inequality", assumes=(A1,),
        check=with_units(
            worst_of(survives(eq29, "eq29", "(29)"), identical(eq29_30, "eq30", "(30)")), eq29
        ),
        control=survives(lambda q: (eq29(q)[0], eq29(q)[1] - 0.01 * q.at.L * q.moved), "eq29", enough=1 + 1e-6),
        broken="L/2 lowered to 49/100 L",
        met=TAKEN_MEAN, caveat=f"{MEAN} and {ALL[0].lower() + ALL[1:]} (through (28))",
        as_printed=found_gap(offset, eq29_30, "N = K = 1, F = x^2/2, x = 0, c_1 = 0, c = 1"),
    ),
    claim(
        "lemma3.eq31", "expectation", assumes=A123,
        check=identical(eq31, "eq31", "(31), noise of any state-dependent size", gated=True),
        control=found_gap(biased, lambda q: eq31(q)[:1], "", strict=False),
        broken="noise with a mean",
        met=TAKEN_NOISE, caveat=UNBIASED,
        as_printed=found_gap(stale, lambda q: eq31(q)[:1], "one sample kept, K = 2, noise s x: E[xi^1] = -eta_l/2 x"),
    ),
    claim(
        "lemma3.eq32-36", "expectation", assumes=(*A123, X_FIXED),
        check=with_units(
            worst_of(survives(eq35, "eq35", "(35)"), survives(eq36, "eq36", "(36)"), identical(eq32, "eq32", "(32)")),
            eq36,
        ),
        control=identical(eq32, "eq32", one_frame=True),
        broken="one fixed P instead of a random one",
        met=TAKEN_NOISE, caveat=UNBIASED,
        as_printed=on(slow, eq36, "one sample kept, K = 2, F = x/16, noise s x at x = 1/2"),
    ),
    claim(
        "lemma3.eq37-40", "inequality", assumes=A123,
        check=with_units(
            worst_of(
                survives(eq38_39, "eq38", "(37)-(39)"), on(leap, eq38_39, ONE_STEP),
                survives(eq40, "eq40", "(40)"),
            ), eq40
        ),
        control=on(leap, times(0.985, eq38_39), ""),
        broken="right-hand sides times 985/1000",
        met=TAKEN_NOISE, caveat=f"{UNBIASED} (only (40))",
        as_printed=on(slow, eq40, "one sample kept, K = 2, F = x/16, noise s x at x = 1/2, L = 1/16"),
    ),
    claim(
        "lemma3.eq42", "expectation", assumes=A123,
        check=found_gap(crossed, eq42, "N = 1, K = 2, F = -x^2/2, eta_l = 1/4"),
        control=sharpened(0.99, eq42_repaired, "eq42", Edge(K=4, stationary=True, controlled=True, share=0.02)),
        broken="the repaired bound times 99/100",
        error="wrong independence",
        implies="g_bar contains gradients taken after xi^j, so it is not F_{t,i,k}-measurable: local steps on negative "
        "curvature amplify the noise, and the paper's (55) is then too small by up to 14% (K = 2).",
        repair="|E <P g_bar, P xi_bar>| <= (L sigma/(NK)) sqrt((K-1)/2 E_drift), so E T_2 <= (L eta^2/2)(E|P g_bar|^2 "
        "+ E|P xi_bar|^2) + (L^2 eta^2 sigma/(NK)) sqrt((K-1)/2 E_drift); zero for K = 1",
        repaired=with_units(
            worst_of(symbolic_cross, survives(eq42_repaired, "eq42", "", [e for e in NOISY if e.K > 1])),
            eq42_repaired,
        ),
    ),
    claim(
        "lemma3.eq43-45", "expectation", assumes=(A1, A3, X_FIXED),
        check=with_units(survives(eq43_45, "eq43", "(43)-(45)"), eq43_45),
        control=sharpened(0.99, eq43_45, "eq43", *edges()),
        broken="right-hand sides times 99/100",
    ),
    claim(
        "lemma3.eq46-48", "expectation", assumes=A123,
        check=with_units(worst_of(check_traces, survives(eq48, "eq48", "(48)", NOISY)), eq48),
        control=sharpened(0.99, eq48, "eq48", *NOISY),
        broken="the right-hand side of (48) times 99/100",
        met=TAKEN_NOISE, caveat=CENTRED,
        as_printed=check_informed_noise,
        implies="Nothing downstream: (48) holds for every joint law of P_t and the noise. But T_1 does need the noise "
        "to have mean zero given P_t: see ssf.theorem1.independence.",
        repair="E[|P xi_bar|^2 | P] = tr(P E[xi_bar xi_bar^T | P]) <= E[|xi_bar|^2 | P] for every joint law",
        repaired=check_second_moments,
    ),
    claim(
        "lemma3.eq49-54", "expectation", assumes=(*A12, STEPS3),
        check=with_units(survives(eq53_54, "eq53", "(53)-(54)", NOISY), eq53_54),
        control=sharpened(0.99, eq53_54, "eq53", *NOISY),
        broken="sigma^2/(NK) times 99/100",
        implies="Linear speedup in K is an assumption on the sampling, not a consequence of Assumption 2: one sample "
        "kept for K = 2 steps of F = 0 leaves sigma^2/N.",
    ),
    claim(
        "lemma3.eq55-56", "inequality", assumes=A123,
        check=on(crossed, eq55(), "N = 1, K = 2, F = -x^2/2, x = 0, eta_l = 1/4, eta = 1/4"),
        control=on(crossed, times(1.138, eq55()), ""),
        broken="the right-hand side times 1.138, all but the 41/36 that the counterexample needs",
        error="wrong independence",
        implies="The bound on the quadratic term is too small by up to 14% at K = 2. Lemma 3 itself survives, because "
        "its drift term is twice what its proof needs and curvature that amplifies noise also lowers F.",
        repair="E T_2 <= (L eta^2/2)(2 rho |G|^2 + 3 L^2 E_drift + (1 + (K-1)/(2NK)) sigma^2/(NK))",
        repaired=with_units(
            worst_of(symbolic_cross, survives(eq55(drift=3.0, extra=True), "eq55r", "", [*edges(), *FAR])),
            eq55(drift=3.0, extra=True),
        ),
    ),
    claim(
        "lemma3.eq57-59", "inequality", assumes=(*A123, X_FIXED),
        check=with_units(worst_of(survives(eq57, "eq57", "(57)-(58)", [*edges(), *FAR]), symbolic_eq59("1/4")), eq57),
        control=symbolic_eq59("251/1000"),
        broken="eta <= 251/(1000 L)",
        met=f"{TAKEN_MEAN}; {TAKEN_NOISE}",
        caveat=f"{MEAN}; {ALL}; {UNBIASED}. (57)-(58) rests on the false (56); it survived the search",
        as_printed=on(offset, eq57, "N = K = 1, at the minimiser, no noise, c = 1, c_1 = 0"),
        repair=LEMMA3_REPAIR,
        repaired=symbolic_lemma3,
    ),
]  # fmt: skip
