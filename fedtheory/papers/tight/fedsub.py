"""FedSub: docs/theory/fedsub.md. L eta tau = 1/(3 sqrt(m/r)), one layer."""

import functools
from functools import partial

import torch

from fedtheory.algorithms.fedsub import FedSub
from fedtheory.core.key import Key
from fedtheory.maps.subspace import Identity, Spherical
from fedtheory.papers.tight.ssf import bowl, chain
from fedtheory.papers.tight.table import Entry, Steps, gap, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.fedsub import round as fedsub_round
from fedtheory.theory.fedsub.rates import at_rest
from fedtheory.theory.instances import Smooth, coordinate_frames, drain, fixed, rotation
from fedtheory.theory.worst_case import found, ours

FAR = 2000  # local steps that stand for any number
LIMIT = 1 / 3  # L eta tau at P = I
HALF = LIMIT / 2**0.5  # at r = m/2


def drift_chain(tau: int, parts: int = 1) -> tuple[list[float], Steps]:
    """Section 2 on f = -x^2/2 with d = 1: the bound on L^2 D/p step by step, and by what factor each step raises it."""
    lr = LIMIT / parts**0.5 / tau
    z = torch.tensor([(1 + lr) ** s - 1 for s in range(tau)], dtype=torch.float64)
    s = torch.arange(tau, dtype=torch.float64)
    sums, squares = z.cumsum(0) - z, (z**2).cumsum(0) - z**2
    alpha, pull = 2 * lr**2 * tau, float((2 * (lr * s) ** 2).sum())
    values = {
        "": float((z**2).sum()),
        "2.2": pull + float((2 * (lr * sums) ** 2).sum()),
        "2.2, the sum": pull + float((2 * lr**2 * s * squares).sum()),
        "2.4": (1 + alpha) ** tau * pull,
        "2.5": (1 + alpha) ** tau * 2 / 3 * lr**2 * tau**2 * (tau - 1),
        "2.6": 5 / 6 * lr**2 * tau**2 * (tau - 1),
    }
    return chain({name: value / (lr**2 * tau**2 * (tau - 1)) for name, value in values.items()})


def round_steps(tau: int, parts: int) -> Steps:
    """What the descent of the potential loses: 5.2 drops the square of the step, 5.3 rounds."""
    kept = 0.5 - 5 / 6 * (LIMIT**2 / parts) * (tau - 1) / tau
    return {"5.2": ours.fedsub_round(tau, parts).dual / kept, "5.3": kept / 0.4}


def unlike() -> Smooth:
    """Two quadratic clients in the plane, L = 1, that a search of 1600 instances found to leave the largest errors."""
    q = torch.stack([rotation(-1.434), rotation(0.574)])
    h = torch.tensor([[0.94, 1.0], [-0.987, 0.937]], dtype=torch.float64)
    a = torch.tensor([[2.882, 0.106], [-2.882, -0.106]], dtype=torch.float64)
    return Smooth(h, torch.zeros(2, 2, dtype=torch.float64), a=a, q=q)


MANY = 8  # local steps on it


def stays() -> float:
    """Its exact stationary error over what Theorem 2 lets stay: r = 1 of m = 2."""
    theta, step = 2.0, HALF / 2
    G2, zeta2 = at_rest(unlike(), coordinate_frames(2, 1, scale="isotropic"), step / MANY, MANY)
    return G2 / (50 / 3 * theta**0.5 * (theta - 1) * step * step**2 * (MANY - 1) / MANY * zeta2)


def kinked(t: float, tau: int) -> Smooth:
    """Clients +-x + G x + phi(x) in the first of two coordinates, phi' = -|x| near 0, L = 1, where FedSub rests near 0.

    What FedSub forgets turns clients to either side, and each way the slope falls: errors have one sign and do not
    average. With mean distance t (tau - 1)/(2 tau) they hold the slope G.
    """
    h = torch.tensor([[1.0, 0.0]] * 2, dtype=torch.float64)
    G = (tau - 1) / (2 * tau) * t
    a = torch.tensor([[1.0 + G, 0.0], [G - 1.0, 0.0]], dtype=torch.float64)
    knots, slopes = (torch.tensor(v, dtype=torch.float64) for v in ((0.0, 1.0), (1.0, -1.0, 1.0)))
    return Smooth(h, 0 * h, shape="spline", knots=knots, slopes=slopes, a=a)


@functools.cache
@torch.no_grad()
def on_kinked(t: float, rounds: int = 600) -> dict[str, float]:
    """Means over a long run of FedSub's own rounds there; the first half forgets the start."""
    problem, theta = kinked(t, MANY), 2.0
    frames, g = coordinate_frames(2, 1, scale="isotropic"), Key(5).generator()
    x, u = torch.zeros(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    square = lambda v: float((v**2).sum(-1).mean())
    sums = dict.fromkeys(("G", "B", "D", "H", "moved", "zeta2"), 0.0)
    algorithms = [FedSub(t / MANY, MANY, fixed(frame, "isotropic")) for frame in frames]
    drawn = [one.projection.draw(problem.layout, Key(5), torch.float64) for one in algorithms]
    for k in range(2 * rounds):
        at = int(torch.randint(2, (1,), generator=g))
        algorithm, P = algorithms[at], drawn[at]
        start = problem.gradients(x)
        path, _, new, dual = fedsub_round.step(algorithm, problem, x, t * P.project(u), P)
        if k >= rounds:
            z = P.lift(torch.stack([torch.zeros_like(path[0]), *path[:-1]], 1))
            grads = problem.grads(x + z, problem.full(problem.clients)).mean((0, 1))
            G = start.mean(0)
            sums["G"] += square(G) / theta
            sums["B"] += square(P.lift(P.project(grads - G))) / theta**2
            sums["D"] += square(z)
            sums["H"] += square(start - G + theta * u) / theta
            sums["moved"] += square(new - x)
            sums["zeta2"] += square(start - G)
        x, u = new, P.lift(dual) / t
    return {name: value / rounds for name, value in sums.items()}


def left_on_kinked(t: float, constant: float) -> float:
    """What stays there over constant (theta - 1) p zeta^2."""
    s = on_kinked(t)
    return 2 * s["G"] / (constant * t**2 * (MANY - 1) / MANY * s["zeta2"])


def stays_steps() -> Steps:
    """What each step of Theorem 1's proof loses there."""
    theta, t, s = 2.0, HALF, on_kinked(HALF)
    p = t**2 * (MANY - 1) / MANY
    dual = 2 * (1 - 1 / theta) * s["zeta2"] + 4 * theta * s["D"] + 4 / theta * s["moved"]
    values = {
        "": s["G"],
        "3.2": s["B"],
        "3.4": s["D"],
        "2": 5 / 6 * p * (s["G"] + s["H"]),
        "4": 5 / 6 * p * (s["G"] + dual),
        "5": 25 / 6 * p * (1 - 1 / theta) * s["zeta2"],
    }
    return chain(values)[1]


def theorem(above: float, K: int, step: float, theta: float, p: float, H0: float, zeta2: float, L: float) -> float:
    """Theorem 1's right side."""
    return 2.5 * theta * above * L / (step * K) + 25 / 12 * theta * p * H0 / K + 25 / 6 * (theta - 1) * p * zeta2


@torch.no_grad()
def typical(T: int) -> tuple[dict[str, float], str]:
    """FedSub in the form of sums on SSF's problem with full gradients; ratios of sums over rounds."""
    problem = MatrixRegression.ssf(0.5, Key(17), batch=None)
    tau, r, m, key = 3, 50, 100, Key(4)
    rho, L = r / m, known(problem.constants.L)
    t = HALF / L
    algorithm = FedSub(t / tau, tau, Spherical(r, "isotropic"), form="sums")
    full, clients = problem.full(problem.clients), problem.clients
    grads = lambda x: problem.grads(x.expand(problem.n, -1), full)
    loss = lambda x: float(problem.losses(x.expand(problem.n, -1), full).mean())
    square = lambda v: float((v**2).sum(-1).mean())
    spread = lambda v: v - v.mean(0)
    state = algorithm.init(problem, problem.start(), key)
    server, own, u = state.server, state.own, torch.zeros(problem.n, problem.d, dtype=problem.dtype)
    out = dict.fromkeys(("G2", "D", "gain", "moved", "zeta2", "H", "H1"), 0.0)
    start, p, worst = gap(problem, server.x), L**2 * t**2 * (tau - 1) / tau, 0.0
    H0 = rho * square(spread(grads(server.x)))
    for k in range(T):
        g, before, x, at = grads(server.x), loss(server.x), server.x, key.fold("round", k)
        down = algorithm.broadcast(server, at)
        P = down.P.value
        path, (up, new) = drain(algorithm.client(problem, clients, own, down, at))
        server, reply = algorithm.server(server, down, up, clients, at)
        own = algorithm.close(new, clients, down, reply)
        out["H"] += rho * square(spread(g) + u / rho)
        u = P.lift(spread(up.B)) / t
        out["H1"] += rho * square(spread(grads(server.x)) + u / rho)
        out["G2"] += square(g.mean(0))
        out["D"] += sum(square(P.lift(B)) for B in path[:-1]) / tau
        out["gain"] += loss(server.x) - before
        out["moved"] += square(server.x - x)
        out["zeta2"] += square(spread(g))
        worst = max(worst, square(spread(g)))
    s, w = out, 5 / 6 * t * p
    right = 2 * (1 - rho) * s["zeta2"] + 4 / rho * L**2 * s["D"] + 4 * rho * L**2 * s["moved"]
    descent = t / 2 * L**2 * s["D"] - (1 - L * t) / (2 * t) * s["moved"] - s["gain"]
    change = s["gain"] + w * (s["H1"] - s["H"]) - 2 * w * (1 - rho) * s["zeta2"]
    return {
        "drift": L**2 * s["D"] / (p * (rho * s["G2"] + s["H"])),
        "descent": descent / (t * rho * s["G2"]),
        "dual": s["H1"] / right,
        "round": -change / (t * rho * s["G2"]),
        "theorem": s["G2"] / T / theorem(start, T, L * t, 1 / rho, p, H0, worst, L),
    }, f"{T} rounds of FedSub (r = 50 of 100) on SSF's problem, het 0.5, full gradients, tau = 3, largest step."


TWO = "two clients, r = m/2 (two complementary subspaces)"


def entries() -> list[Entry]:
    rows = [
        Entry(
            f"drift (2), tau = {tau}", "p (|G|_R^2 + H)", 5 / 6, f"{TWO}, tau = {tau}", "SDP",
            partial(ours.fedsub_drift, tau), printed=5 * tau / (tau - 1), claim="fedsub.lemma1",
            typical="drift" if tau == 3 else "", reached=lambda amount, tau=tau: found.fedsub("drift", tau, **amount),
            steps=lambda tau=tau: drift_chain(tau, 2)[1],
        )
        for tau in (2, 3)
    ]  # fmt: skip
    rows += [
        Entry(
            "drift (2), any tau", "p (|G|_R^2 + H)", 5 / 6, f"f = -x^2/2, P = I, tau = {FAR}", "exact",
            lambda: drift_chain(FAR)[0][0], printed=5.0, claim="fedsub.lemma1",
            why="the program's value for tau = 2 and 3 is that of this loss",
        ),
        *(Entry(
            f"descent (3), tau = {tau}", "t |G|_R^2", 0.5, f"{TWO}, tau = {tau}", "SDP",
            partial(ours.fedsub_descent, tau), claim="fedsub.eq38", typical="descent" if tau == 3 else "",
            descent=True, reached=lambda amount, tau=tau: found.fedsub("descent", tau, **amount),
        ) for tau in (1, 2, 3)),
        Entry(
            "dual (4), tau = 3", "left/right", 1.0, f"{TWO}, tau = 3", "SDP", partial(ours.fedsub_dual, 3),
            claim="fedsub.lemma2", typical="dual", reached=lambda amount: found.fedsub("dual", 3, **amount),
        ),
        *(Entry(
            f"one round (5), tau = {tau}", "t |G|_R^2", 0.4, f"{TWO}, tau = {tau}", "SDP",
            partial(ours.fedsub_round, tau), claim="fedsub.lemma3 / eq46", typical="round" if tau == 3 else "",
            descent=True, reached=lambda amount, tau=tau: found.fedsub("round", tau, **amount),
            steps=lambda tau=tau: round_steps(tau, 2), why="the printed 1/8 belongs to another potential",
        ) for tau in (1, 2, 3)),
        Entry(
            "Theorem 1, K = 2", "left/right", 1.0, f"{TWO}, tau = 3", "SDP", partial(ours.fedsub_theorem, 3),
            claim="fedsub.thm1", kind="theorem",
            why="f above f* at the points of the run: a bound from above for two clients",
        ),
        Entry(
            "Theorem 1, K to infinity", "left/right", 1.0, "f = x^2/2, P = I, tau to infinity", "lower bound",
            lambda: 2 / 5 / bowl(LIMIT, LIMIT), claim="fedsub.thm1", typical="theorem", kind="theorem",
            reached=lambda amount: found.on_bowl(
                FedSub(LIMIT / 10, 10, Identity()), 40, lambda v: theorem(v, 40, LIMIT, 1.0, 0.0, 0.0, 0.0, 1.0)
            ),
            why="reached: at tau = 10",
        ),
        Entry(
            "Theorem 1, what stays", "left/right", 1.0, "two kinked clients, r = 1 of m = 2, tau to infinity, t to 0",
            "lower bound", lambda: 6 / 100, claim="fedsub.thm1", kind="theorem", steps=stays_steps,
            reached=lambda amount: left_on_kinked(HALF, 25 / 6),
            why=f"steps: by a run of FedSub's rounds at tau = {MANY} and the largest step",
        ),
        Entry(
            "Theorem 2, what stays", "left/right", 1.0, f"two quadratic clients, r = 1 of m = 2, tau = {MANY}",
            "lower bound", stays, kind="theorem",
            why="which of 8.1 to 8.6 loses most was not told apart",
        ),
    ]  # fmt: skip
    return rows


EXTRAS = [
    item("fedsub/tight", "How tight the page's theorems and lemmas are: FedSub", entries(), typical),
]
