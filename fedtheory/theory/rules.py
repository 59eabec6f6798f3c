"""What the theorems of docs/theory say to who must choose: steps, ranks, directions, control variates, resets.

Each rule names the page and the step that it is from. Losses are L-smooth, steps of the server are 1, all clients take
part. q stands for K L eta: how far a round's local steps go, in units of what curvature allows.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fedtheory.core import checks
from fedtheory.theory.estimate import Estimate

_STEPS = {  # q, of the share rho = r/d
    "FedAvg": lambda rho: 1 / 3,  # fedsub.6.3 with P = I: exact gradients
    "FedAvg-CD": lambda rho: 1 / 3,  # fedsub.6.3
    "FedSub": lambda rho: math.sqrt(rho) / 3,  # FedSub's theorem
    "SCAFFOLD": lambda rho: 1 / 10,  # that at rho = 1
    "SSF": lambda rho: min(1 / 10, math.sqrt(rho / 8)),  # SSF's theorem
}
_FULL = ("FedAvg", "SCAFFOLD")
_PLACE = "take it from the problem, for example L=problem.constants.L or L=estimate(problem).L"


@checks.arguments
def largest_step(method: str, L: float, local_steps: int = 1, share: float = 1.0, *, sample_L: float = 0.0) -> float:
    """Return the largest local step for which a theorem of docs/theory holds; larger ones may converge, too.

    K L eta is at most 1/3 for FedAvg and FedAvg-CD with exact gradients (fedsub.6.3), sqrt(share)/3 for FedSub (its
    theorem), min(1/10, sqrt(share/8)) for SSF and SCAFFOLD (SSF's, server step 1). How far beyond it runs still
    converge is measured in the item use/step.

    Args:
        method: "FedAvg", "FedAvg-CD", "FedSub", "SCAFFOLD" or "SSF".
        L: smoothness of every client's loss, > 0: `problem.constants.L`.
        local_steps: K.
        share: r/d, the share of the directions that a round keeps; 1 for methods without a subspace.
        sample_L: mean-square smoothness of the noise of minibatches: `estimate(problem).sample_L`. With it the rank
            leaves the noise's term of the bound (section 9 of docs/theory/family.md).

    Raises TypeError or ValueError for arguments out of range.

    >>> largest_step("SSF", L=2.0, local_steps=5, share=0.2)
    0.01
    """
    checks.choice("method", method, _STEPS)
    checks.number("L", L, 1e-100, 1e100, fix=_PLACE)
    checks.count("local_steps", local_steps)
    checks.number("share", share, 0.0, 1.0, open_low=True, fix="pass r/d, for example share=0.2")
    if method in _FULL and share != 1:
        checks.reject("share", share, f"1 for {method}, which keeps all directions", "leave it out")
    checks.number("sample_L", sample_L, 0.0, 1e100, fix="take it from estimate(problem).sample_L")
    return _STEPS[method](share) / (local_steps * math.hypot(L, sample_L * math.sqrt(2 / local_steps)))


def directions_price(kappa: float, directions: float) -> float:
    """DeComFL's c = 1 + (kappa + 1)/P: its step is 1/(4 L c), its rounds grow with c (decomfl.1.3, decomfl.4.1)."""
    return 1 + (kappa + 1) / directions


@checks.arguments
def best_directions(kappa: float, fixed: float = 1.0, each: float = 1.0) -> int:
    """Return how many directions P pay for DeComFL: rounds times the cost of a round are least there.

    Rounds grow with c = 1 + (kappa + 1)/P (decomfl.4.1), and a round costs fixed + P each: the product is least at
    P = sqrt((kappa + 1) fixed/each). For evaluations of the loss by forward differences both costs are 1.

    Args:
        kappa: effective rank of the Hessian, its trace over its largest eigenvalue, > 0; d where nothing is known.
        fixed: what a round costs whatever P is (latency, the loss at the model), >= 0.
        each: what a direction costs (a loss, a scalar, a seed), > 0, in the same unit.

    Raises TypeError or ValueError for arguments out of range.

    >>> best_directions(kappa=24)
    5
    """
    checks.number("kappa", kappa, 0.0, 1e12, open_low=True, fix="pass the trace of the Hessian over L, or d")
    checks.number("fixed", fixed, 0.0, 1e12, fix="pass what a round costs without directions, for example fixed=1.0")
    checks.number("each", each, 1e-12, 1e12, fix="pass what a direction costs, for example each=1.0")
    near = max(1, math.floor(math.sqrt((kappa + 1) * fixed / each)))
    return min((near, near + 1), key=lambda P: directions_price(kappa, P) * (fixed + P * each))


@checks.arguments
def subspace_price(d: int, r: int, effective: float, law: str = "spherical") -> float:
    """Bound how many times more rounds gradient descent takes in a random subspace than in the full space.

    Curvature counts by its effective dimension tr H/L, not by d (limits.2.2). For random orthonormal directions the
    price is below 1 + (tr H/L + 1)/r and below d/r (limits.2.4). It equals the first for Gaussian ones (limits.2.5). It
    is up to d/r for random coordinates (limits.2.6): rotate first. The step is 1/(L price) for maps with E[P] = I. It
    is d/r times that for orthonormal projectors, and for `FedSub(dual=False)`, which scales its maps.

    Args:
        d: parameters.
        r: directions of a round, at most d.
        effective: tr H/L, at most d, where H bounds the curvature and L its largest eigenvalue.
        law: "spherical", "gaussian" or "coordinate".

    Raises TypeError or ValueError for arguments out of range.

    >>> round(subspace_price(400, 20, effective=20.0), 2), 400 / 20
    (1.99, 20.0)
    """
    checks.count("d", d)
    checks.count("r", r)
    checks.number("effective", effective, 0.0, d, open_low=True, fix="pass the trace of the Hessian over L, or d")
    checks.choice("law", law, ("spherical", "gaussian", "coordinate"))
    if r > d:
        checks.reject("r", r, f"at most d = {d}", "pass fewer directions")
    if law == "gaussian":
        return directions_price(effective, r)
    if law == "coordinate" or d == 1:
        return d / r
    return d * (d * (r + 1) - 2 + (d - r) * effective) / (r * (d - 1) * (d + 2))


class LinearPlan(NamedTuple):
    """Steps with which a method reaches the minimum, and how long it takes: `linear_plan`.

    Fields:
        rounds: T.
        lr: local step eta_l.
        server_lr: eta_g.
    """

    rounds: int
    lr: float
    server_lr: float


@checks.arguments
def linear_plan(
    L: float, mu: float, share: float = 1.0, n: int = 1, sampled: int = 1, local_steps: int = 1, left: float = 1e-6
) -> LinearPlan:
    """Return steps and rounds with which SSF and SCAFFOLD reach the minimum of a strongly convex loss.

    Without noise Psi = ||x - x*||^2 + M C falls to `left` of its start in these rounds, in the mean (theorem 2 of
    docs/theory/linear.md): C is the mean squared error of the clients' memories. SSF must keep the mean of all
    memories: `SSFReading(server_control="all")` where sampled < n.

    Args:
        L: smoothness of every client's loss, which is convex, > 0: `problem.constants.L`.
        mu: strong convexity of their mean, at most L: `problem.constants.mu`.
        share: r/d, the share of the directions that a round keeps; 1 for SCAFFOLD.
        n, sampled: clients, and those of a round.
        local_steps: K. It changes the local step only.
        left: share of Psi at the end, between 0 and 1.

    Raises TypeError or ValueError for arguments out of range.

    >>> linear_plan(L=1.0, mu=0.1, share=0.25, n=10, sampled=10, local_steps=5).rounds
    4421
    """
    checks.number("L", L, 1e-100, 1e100, fix=_PLACE)
    checks.number("mu", mu, 0.0, L, open_low=True, fix="take it from the problem's constants: mu=problem.constants.mu")
    checks.number("share", share, 0.0, 1.0, open_low=True, fix="pass r/d, for example share=0.2")
    checks.count("n", n)
    checks.count("sampled", sampled)
    checks.count("local_steps", local_steps)
    checks.number("left", left, 1e-300, 1.0, fix="pass a share of the start, for example left=1e-6")
    if sampled > n:
        checks.reject("sampled", sampled, f"at most n = {n}", "pass fewer clients")
    nu = (n - sampled) / (sampled * (n - 1)) if n > 1 else 0.0
    rounds = 2 / share * max(4 * (1 + 10 * nu) * L / mu, n / sampled) * math.log(1 / left)
    q = math.sqrt(mu / L) / 10
    return LinearPlan(math.ceil(rounds), q / (local_steps * L), 1 / (4 * (1 + 10 * nu) * q))


def mud_price(m: int, n: int, r: int, *, aad: bool = False, moment: float = 9 / 5) -> float:
    """FedMUD's c: alpha = eta gamma is at most 1/(L c), its rounds grow with c (mud.3.2, mud.3.3, mud.5.3).

    `moment`: E u^4/(E u^2)^2 of the factors' entries, 9/5 for uniform ones.
    """
    return (m + n + 4 * r + 2 * moment - 4) / (4 * r) if aad else (m + r + moment - 2) / r


def untouched_share(shares: tuple[float, ...], resets: int) -> float:
    """Return the share of the squared distance to a target that FedMUD has not touched after so many redrawn factors.

    A frozen left factor of rank r sees the share r/m of a matrix, AAD's two see all but (1 - r/m)(1 - r/n) of it, each
    in the mean; redrawn factors are independent. `shares`: (r/m,) or (r/m, r/n). It holds for every loss, step and
    number of local steps (docs/theory/use.md, section 5).
    """
    return math.prod(1 - share for share in shares) ** resets


@checks.arguments
def reset_interval(singular_values: Sequence[float], rank: int, rows: int, rounds: int) -> int | None:
    """Return FedMUD's `reset_every`: 1, or None where one set of factors leaves less than fresh ones in every round.

    Without a reset an update has rank `rank`, and leaves the singular values beyond (mud.10.4). Fresh factors leave
    about `(1 - rank / rows) ** rounds` of the squared distance, whatever the target is (mud.10.2). For the product, not
    for AAD or a frozen factor: those see the same share of every target.

    Args:
        singular_values: of the target W* - W_0, or of what a trial run with a reset in every round has changed.
        rank: r.
        rows: m, of the factor U.
        rounds: T.

    Raises TypeError or ValueError for arguments out of range.

    >>> reset_interval([3.0, 2.0, 0.0, 0.0], rank=2, rows=4, rounds=60)
    >>> reset_interval([3.0, 2.0, 0.1, 0.1], rank=2, rows=4, rounds=60)
    1
    """
    checks.whole("rank", rank, 1)
    checks.whole("rows", rows, rank)
    checks.whole("rounds", rounds, 1)
    for value in singular_values:
        checks.number("singular_values", value, 0.0)
    largest = max(singular_values, default=0.0)
    if not largest > 0:
        checks.reject("singular_values", list(singular_values), "at least one above 0", "give those of the target")
    squares = sorted(((value / largest) ** 2 for value in singular_values), reverse=True)  # 1e200 has no square
    return None if sum(squares[rank:]) < untouched_share((rank / rows,), rounds) * sum(squares) else 1


def bound_with_memory(
    T: float, q: float, rho: float, *, L: float, gap: float, start2: float, sigma2: float, N: int, K: int
) -> float:
    """SSF's theorem: a bound on the mean squared gradient of T rounds. gap: F(x^0) - F*; start2: C_0."""
    fading = 20 * L * gap / (9 * rho * q) + 40 * q**2 * start2 / (9 * rho)
    return fading / T + sigma2 * (20 * q / (9 * rho * N * K) + 55 * q**2 / (3 * rho * K))


def bound_without(
    T: float, q: float, rho: float, *, L: float, gap: float, zeta2: float, sigma2: float, N: int, K: int
) -> float:
    """ssf.7.3: the same with no memory. zeta2: mean of ||grad F_i - grad F||^2 over the clients."""
    stays = 1.8 * q**2 * zeta2 + sigma2 * (2.05 * q / (rho * N * K) + 4 * q**2 / (3 * rho * K))
    return 2.05 * L * gap / (rho * q * T) + stays


@checks.arguments
def controls_pay_after(known: Estimate, q: float, share: float = 1.0, n: int = 1, local_steps: int = 1) -> float:
    """Return the rounds from which SSF's bound lies below that of the same method without memory, at the same bytes.

    Without memory a client sends half as much, so that it has twice the rounds (ssf.7.3). The answer is infinite where
    memory's noise, 17 q^2 sigma^2/(rho K) and a little, outweighs what it removes, 1.8 q^2 zeta^2.

    Args:
        known: the sizes of the problem, `estimate(problem)`.
        q: K L eta, how far a round's local steps go.
        share: r/d, the share of the directions that a round keeps.
        n: clients, all of which take part.
        local_steps: K.

    Raises TypeError or ValueError for arguments out of range.

    >>> from fedtheory import Quadratic, estimate
    >>> round(controls_pay_after(estimate(Quadratic.random(n=10, d=20, key=0)), q=1.0, n=10, local_steps=5), 1)
    3.1
    """
    checks.instance("known", known, Estimate, "pass estimate(problem)")
    for name, value in known._asdict().items():
        checks.number(f"known.{name}", value, fix="pass what estimate(problem) returned")
    checks.number("q", q, 1e-100, 1e100, fix="pass K L eta, for example q=0.1")
    checks.number("share", share, 1e-100, 1.0, fix="pass r/d, for example share=0.2")
    checks.count("n", n)
    checks.count("local_steps", local_steps)
    common = {"L": known.L, "gap": known.gap, "sigma2": known.sigma2, "N": n, "K": local_steps}
    stays = bound_without(math.inf, q, share, zeta2=known.zeta2, **common)
    stays -= bound_with_memory(math.inf, q, share, start2=known.start2, **common)
    fades = 20 * known.L * known.gap / (9 * share * q) + 40 * q**2 * known.start2 / (9 * share)
    fades -= 2.05 * known.L * known.gap / (2 * share * q)
    return fades / stays if stays > 0 else math.inf
