"""FLSS in a fixed subspace: docs/theory/flss.md. eta tau L = 1/20."""

from functools import partial

import torch

from fedtheory.algorithms.flss import FLSS
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.papers.tight.ssf import chain
from fedtheory.papers.tight.table import Entry, Steps, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.instances import Smooth
from fedtheory.theory.worst_case import ours
from fedtheory.theory.worst_case.ours import REACH

TAU = 2  # local steps
MANY = 50  # that stand for any number
STRONG = 0.05  # mu/L in the program of the heterogeneity


def rate_steps() -> Steps:
    """What multiplies mu eta tau on F = w^2/2 (mu = L = 1), one client: 2 at first, 1/2 at the end."""
    lr = REACH / TAU
    y = [(1 - lr) ** j for j in range(TAU)]
    mean, drift, gap = sum(y) / TAU, sum((1 - v) ** 2 for v in y) / TAU, 0.5
    most = 1.388 * REACH**2 * 4 * gap
    values = {
        "": 2 * mean - REACH * mean**2,
        "3.2": 2 * (gap + 1 / 4 - drift) - REACH * mean**2,
        "3.5": 2 * (gap + 1 / 4 - drift) - REACH * (8 * gap + 4 * drift),
        "drift": 2 * (gap + 1 / 4 - most) - REACH * (8 * gap + 4 * most),
        "3.7": 1 / 2,
    }
    return {name: 1 / by for name, by in chain(values)[1].items()}


def contracted() -> float:
    """1 - (1 - eta mu)^tau, mu = L: what a round takes away of w on F = w^2/2."""
    return 1 - (1 - REACH / TAU) ** TAU


def sampling() -> float:
    """Clients |w - b_k|^2/2, mu = L, M of N: the stationary square over 16 s eta tau zeta^2/mu."""
    m = contracted()
    return m**2 / (1 - (1 - m) ** 2) / (16 * REACH)


def noise() -> float:
    """The same with noise in the local steps, over 4 eta sigma^2/(mu M)."""
    m, lr = contracted(), REACH / TAU
    once = lr**2 * sum((1 - lr) ** (2 * j) for j in range(TAU))
    return once / (1 - (1 - m) ** 2) / (4 * lr)


def unequal() -> float:
    """F_1 = L w^2/2 + w, F_2 = mu w^2/2 - w, all clients: the square where FedAvg rests over 12.4 L eta^2 tau^2/mu."""
    lr, best = REACH / MANY, 0.0
    for mu in (k / 100 for k in range(5, 100)):
        one, two = (1 - (1 - lr * h) ** MANY for h in (1.0, mu))
        rest = (two / mu - one) / (one + two)
        best = max(best, rest**2 * mu / (12.4 * lr**2 * MANY**2))
    return best


def floor_steps(kept: float, said: str) -> Steps:
    """`said`: what bounds a round's part, by what factor; 3.9: half of the rate that the loss has, twice."""
    m = contracted()
    return {said: kept, "3.2, 3.7, 3.9": 2 * (1 - (1 - m) ** 2) / REACH}


def drift_steps() -> Steps:
    """A round's part of the heterogeneity: 3.2 pays 2 L D, the rest is the drift's bound."""
    exact, drift = ours.flss_drift(TAU, STRONG).dual, (TAU - 1) * (2 * TAU - 1) / (6 * TAU**2)
    return {"3.2": 2 * drift / exact, "drift": 2 * 1.388 / drift, "3.8": 6.2 / (2 * 2 * 1.388)}


@torch.no_grad()
def reached(mu: float) -> float:
    """c of the rate by a projected round of FLSS on F = mu w_1^2/2 + mu w_2^2, in a subspace that holds both."""
    one = torch.ones(1, 2, dtype=torch.float64)
    problem = Smooth(mu * torch.tensor([[1.0, 2.0]], dtype=torch.float64), 0 * one)
    algorithm, key = FLSS(REACH / TAU, TAU, 2, 2, refresh=0), Key(1)
    state = algorithm.init(problem, torch.tensor([1.0, 1.0], dtype=torch.float64), key)
    for t in range(2):
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
    before = state.server.x.clone()
    state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", 2))
    return float((1 - state.server.x[0] ** 2 / before[0] ** 2) / (mu * REACH))


@torch.no_grad()
def typical(T: int) -> tuple[dict[str, float], str]:
    """FLSS on a small problem of SSF's kind: its distance to w_P, round by round, and where it comes to rest."""
    N, d, R, warm = 10, 12, 6, 10
    problem = MatrixRegression.ssf(0.3, Key(17), n=N, rows=50, d=d, m=1, noise=1.0, batch=None)
    L, each = known(problem.constants.L), problem.A.mT @ problem.A / problem.rows
    mu = float(torch.linalg.eigvalsh(each).min()) + problem.lam
    algorithm, key = FLSS(REACH / (TAU * L), TAU, R, warm, refresh=0), Key(2)
    state = algorithm.init(problem, problem.start(), key)
    for t in range(warm):
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
    P = algorithm.broadcast(state.server, key).P
    assert P is not None  # the warm-up is over
    frame = P.value.matrices()[0].to(torch.float64)
    H = each.mean(0) + problem.lam * torch.eye(d, dtype=torch.float64)
    w, best = state.server.x, problem.constants.x_star
    target = w + frame @ torch.linalg.lstsq(frame.T @ H @ frame, frame.T @ H @ (best - w), driver="gelsd").solution
    grads = problem.grads(target.expand(N, -1), problem.full(problem.clients))
    zeta2 = float((grads**2).sum(-1).mean())
    values = [float(((w - target) ** 2).sum())]
    for t in range(warm, warm + 20 * T):
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
        values.append(float(((state.server.x - target) ** 2).sum()))
    eta = REACH / (TAU * L)
    stays = eta / mu * 12.4 * L * eta * TAU**2 * zeta2
    head = values[: T + 1]
    return {
        "rate": (1 - sum(head[1:]) / sum(head[:-1])) / (mu * REACH / L),
        "floor": values[-1] / stays,
    }, f"{20 * T} projected rounds of FLSS (R = 6 of 12) on ten clients' regression, all clients, tau = 2, no noise."


def entries() -> list[Entry]:
    return [
        Entry(
            "gap (2)", "left/right", 1.0, "F = L |w|^2/2", "exact", lambda: 1.0,
            why="both sides are attained, where mu = L",
        ),
        Entry(
            "rate, one round (3)", "mu eta tau", 0.5, f"two clients, P = I, tau = {TAU}, mu = L/10, zeta = 0", "SDP",
            partial(ours.flss_rate, TAU), claim="flss.thm-c31", typical="rate", descent=True,
            reached=lambda amount: reached(0.1), steps=rate_steps,
        ),
        Entry(
            "heterogeneity, one round (3)", "L eta^3 tau^3 zeta^2", 6.2,
            f"two clients, P = I, tau = {TAU}, mu = L/20, all clients", "SDP",
            partial(ours.flss_drift, TAU, STRONG), steps=drift_steps,
        ),
        Entry(
            "theorem, sampling", "left/right", 1.0, f"|w - b_k|^2/2, mu = L, tau = {TAU}", "lower bound", sampling,
            claim="flss.lemma-c21", kind="theorem", why="the worst ratio over quadratics of one curvature",
            steps=lambda: floor_steps(8 * (REACH / contracted()) ** 2, "3.3, 3.5"),
        ),
        Entry(
            "theorem, noise", "left/right", 1.0, f"|w|^2/2, mu = L, tau = {TAU}", "lower bound", noise,
            claim="flss.thm-c31", kind="theorem", why="the worst ratio over quadratics of one curvature",
        ),
        Entry(
            "theorem, heterogeneity", "left/right", 1.0, f"two quadratics on a line, tau = {MANY}", "lower bound",
            unequal, kind="theorem", typical="floor",
            why="the worst ratio of that family; what loses it is in the row of one round",
            steps=lambda: {"as in one round, then 3.9": 1 / unequal()},
        ),
    ]  # fmt: skip


EXTRAS = [
    item("flss/tight", "How tight the page's theorem is: FLSS in a fixed subspace", entries(), typical),
]
