"""FLSS in a fixed subspace: docs/theory/flss.md. eta tau L = 1/20."""

from functools import cache, partial

import torch

from fedtheory.algorithms.flss import FLSS
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.papers.tight.table import Entry, Steps, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.instances import Smooth
from fedtheory.theory.worst_case import ours
from fedtheory.theory.worst_case.ours import REACH

TAU = 2  # local steps
MANY = 50  # that stand for any number
STRONG = 0.05  # mu/L in the program of the heterogeneity
FLAT = 0.001  # mu/L of the clients that leave most


def bent(mu: float) -> Smooth:
    """phi(v_k.w) + phi(u_k.w) +- w_2 in the plane, v_k = (c, +-s) and u_k = (s, -+c), phi'' = 1 left of 0, mu right.

    w_P = 0. A client that leaves w_P along the second axis bends towards the first one, whichever side it is on.
    """
    c, s = (1.5 * mu) ** 0.5, (1 - 1.5 * mu) ** 0.5
    turned = torch.tensor([[[c, s], [s, -c]], [[c, -s], [s, c]]], dtype=torch.float64)
    slopes, knots = torch.tensor([1.0, mu], dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    pull = torch.tensor([[0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    return Smooth(torch.ones_like(pull), 0 * pull, shape="spline", knots=knots, slopes=slopes, a=pull, q=turned)


def moved(problem: Smooth, x: torch.Tensor) -> torch.Tensor:
    """Where a round of FedAvg with all clients leads."""
    y = x.expand(2, -1)
    for _ in range(MANY):
        y = y - REACH / MANY * problem.grads(y, problem.full(problem.clients))
    return y.mean(0)


@cache
@torch.no_grad()
def bent_rest() -> torch.Tensor:
    """Where FedAvg rests on `bent`: on the first axis, by bisection."""
    problem, low, high = bent(FLAT), 0.0, 1.0
    for _ in range(50):
        x = torch.tensor([(low + high) / 2, 0.0], dtype=torch.float64)
        low, high = (float(x[0]), high) if moved(problem, x)[0] > x[0] else (low, float(x[0]))
    return torch.tensor([low, 0.0], dtype=torch.float64)


def unequal(x: torch.Tensor) -> float:
    """|x|^2 over 0.61 (1 - 1/tau) L eta^2 tau^2 zeta^2/mu on `bent`."""
    return float((x**2).sum()) * FLAT / (0.61 * (1 - 1 / MANY) * REACH**2)


@torch.no_grad()
def stayed() -> float:
    """The same where two whole and a projected round of FLSS's own code leave its rest."""
    problem, algorithm, key = bent(FLAT), FLSS(REACH / MANY, MANY, 2, 2, refresh=0), Key(3)
    state = algorithm.init(problem, bent_rest(), key)
    for t in range(3):
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
    return unequal(state.server.x)


def drift_steps() -> Steps:
    """A round's part of the heterogeneity: 3.2 pays 4/3 L D, the rest is the drift's bound and 3.7."""
    exact, drift = ours.flss_drift(TAU, STRONG).dual, (2 * TAU - 1) / (6 * TAU)
    most = 0.35 * 1.1
    return {"3.2": 4 / 3 * drift / exact, "3.3, 3.5": most / drift, "3.7": 0.61 / (4 / 3 * most)}


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
    stays = eta / mu * (1 - 1 / TAU) * 0.61 * L * eta * TAU**2 * zeta2
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
            "rate, one round (3)", "mu eta tau", 1.0, f"two clients, P = I, tau = {TAU}, mu = L/10, zeta = 0", "SDP",
            partial(ours.flss_rate, TAU), claim="flss.thm-c31", typical="rate", descent=True,
            reached=lambda amount: reached(0.1),
        ),
        Entry(
            "heterogeneity, one round (3)", "(1 - 1/tau) L eta^3 tau^3 zeta^2", 0.61,
            f"two clients, P = I, tau = {TAU}, mu = L/20, all clients", "SDP",
            partial(ours.flss_drift, TAU, STRONG), steps=drift_steps,
        ),
        Entry(
            "theorem, sampling", "left/right", 1.0, "|w - b_k|^2/2, mu = L, tau = 1", "lower bound",
            lambda: 1 / (3 * (2 - REACH)),  # what a round adds to |w|^2, (eta zeta)^2 s, over what it takes
            claim="flss.lemma-c21", kind="theorem", why="the worst ratio over quadratics of one curvature",
        ),
        Entry(
            "theorem, noise", "left/right", 1.0, "|w|^2/2, mu = L, tau = 1", "lower bound",
            lambda: 2 / (3 * (2 - REACH)),
            claim="flss.thm-c31", kind="theorem", why="the worst ratio over quadratics of one curvature",
        ),
        Entry(
            "theorem, heterogeneity", "left/right", 1.0,
            f"two kinked clients in the plane, mu = L/{1 / FLAT:.0f}, tau = {MANY}", "lower bound",
            lambda: unequal(bent_rest()), kind="theorem", typical="floor", reached=lambda amount: stayed(),
            why="two quadratics leave 5/6 of it",
        ),
    ]  # fmt: skip


EXTRAS = [
    item("flss/tight", "How tight the page's theorem is: FLSS in a fixed subspace", entries(), typical),
]
