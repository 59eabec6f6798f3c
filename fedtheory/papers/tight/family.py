"""One theorem for the family: docs/theory/family.md. rho = 1/2 where nothing else is said, K L eta_l = 1/10."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.key import Key
from fedtheory.maps.subspace import Coordinate, Spherical
from fedtheory.papers.tight.fedsub import MANY, left_on_kinked, on_kinked
from fedtheory.papers.tight.mud import drift_noise, squares, squares_and_spreads
from fedtheory.papers.tight.ssf import FAR, bowl, chain, drift_chain, drift_of_many, opposed, slope_left
from fedtheory.papers.tight.table import Entry, Mean, Steps, gap, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run
from fedtheory.theory.instances import Smooth, coordinate_frames, fixed
from fedtheory.theory.limits.chain import Chain
from fedtheory.theory.ssf import family
from fedtheory.theory.ssf.round import Instance, play
from fedtheory.theory.worst_case import found, ours
from fedtheory.theory.worst_case.ours import LOCAL
from fedtheory.theory.worst_case.program import play_fedavg
from fedtheory.theory.worst_case.reached import Sides
from fedtheory.theory.worst_case.reached import reached as search

STEP = 0.25  # h, the longest with all clients at rho = 1/2
FEW = 1 / 16  # with S = 1 of N = 2 at rho = 1: phi/8
PROOF = ("3.2", "3.2, sum", "3.5, growth", "3.5, sum of k^2", "3.5, rounding")
METHODS = {"FedAvg-CD": None, "SSF": 1.0, "FedSub": None}  # global_share: h = 1/4, or h = K L eta_l where there is none
ROUND = {
    "FedAvg-CD": lambda K: ours.bare_round(K, LOCAL, LOCAL, 7 / 8 * (1 - 1 / K), 2),
    "SSF": ours.family_round,
    "FedSub": ours.family_forgetting,
}


def line(c: float, G: float, apart: float = 0.0, noise: float = 0.0) -> Instance:
    """A local step of two clients x^2/2 +- apart x at x = G on the line, h = 1/16, with c_i = grad F_i - c."""
    one = torch.ones(2, 1, dtype=torch.float64)
    pull = torch.tensor([[apart], [-apart]], dtype=torch.float64)
    problem = Smooth(one, 0 * one, a=pull, noise=noise * one if noise else None)
    x = G * one[0]
    ci = problem.gradients(x) - c
    return Instance(problem, x, ci, ci.mean(0), coordinate_frames(1, 1), FEW, 1)


def alone(method: str, sampled: int = 1) -> family.Member:
    return family.Member(N=2, K=1, method=method, sampled=sampled)


@torch.no_grad()
def added(apart: float = 0.0, noise: float = 0.0) -> float:
    """What a round with one of two clients adds to a minimum, over h eta (rho nu V + theta sigma^2/(SK))."""
    q = family.play(replace(line(0.0, 0.0, apart, noise), ci=torch.zeros(2, 1).double()), alone("FedAvg-CD"))
    return float(q.gain / (q.h * q.at.eta * (q.nu * q.V + q.noise / q.S)))


def moved_memory() -> tuple[float, float]:
    """5.2 for one of two clients and K = 1: u_i = u of both, and gradients change by v. Left side (v^2 + (u + v)^2)/2,
    right side 3 u^2/4 + 6 v^2. Returns their largest ratio, and v/u there.
    """
    best = lambda v: (v**2 + (1 + v) ** 2) / 2 / (3 / 4 + 6 * v**2)
    v = max((k / 10000 for k in range(10000)), key=best)
    return best(v), v


@torch.no_grad()
def played_memory() -> float:
    """It by SCAFFOLD's own lines: the model moves by -h G, and so do all gradients."""
    q = family.play(line(1.0, -moved_memory()[1] / FEW), alone("SCAFFOLD"))
    left, right = family.refreshed(q)
    return float(left / right)


def searched_memory(K: int, amount: dict[str, int]) -> float:
    return search(family.refreshed, _played, [member("SSF", K)], "family memory", False, **amount)


def member(method: str, K: int, sampled: int = 0) -> family.Member:
    share = 1 / 2**2.5 if sampled else METHODS[method]
    return family.Member(N=2, K=K, d=2, method=method, global_share=share, sampled=sampled, noisy=False)


def _played(z: torch.Tensor, of: family.Member) -> family.Round:
    return family.play(family.made(z, of), of)


def potential(q: family.Round) -> Sides:
    """E Phi^+ - Phi less what is forgotten, and rho eta |G|^2."""
    own, rho, eta = q.memory, q.at.rho, q.at.eta
    share = family.weight(own, q.p, q.h, rho, q.nu)
    return q.gain + eta * share * (q.C1 - q.C0 - own.chi * q.zeta2), rho * eta * q.G2


def searched_round(method: str, K: int, amount: dict[str, int], sampled: int = 0) -> float:
    """The decrease of the potential by a method's own lines, for the worst states that a search finds."""
    edges = [member(method, K, sampled)]
    return -search(potential, _played, edges, f"family {method}", False, **amount)


def steps_of_round(exact: float) -> Steps:
    """3 to 6 take half of the descent for the drift; 6.3 rounds."""
    return {"4.1": exact / 0.5, "6.3": 0.5 / 0.45}


# Whole runs


def rest(K: int = 8) -> float:
    """Where FedAvg rests on two clients of opposed curvatures, over 35/18 p zeta^2."""
    problem, x = opposed(LOCAL / K, K), torch.zeros(1, dtype=torch.float64)
    _, after = play_fedavg(FedAvg(LOCAL / K, K), problem, x)
    return slope_left(problem, after) / (35 / 18 * (1 - 1 / K) * LOCAL**2)


def pulled(n: int) -> Smooth:
    """n clients x^2/2 +- x, half of each: the mean has its minimum at 0, where zeta^2 = 1."""
    one = torch.ones(n, 1, dtype=torch.float64)
    return Smooth(one, 0 * one, a=torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(n // 2)[:, None])


def of_runs(algorithm: Any, T: int, right: float, runs: int, n: int = 2) -> Mean:
    """The mean squared gradient of T rounds with one of n clients from the minimum of `pulled`, over `right`."""
    zero = torch.zeros(1, dtype=torch.float64)
    seen = [squares_and_spreads(algorithm, pulled(n), zero, T, Key(s), 1)[0] for s in range(runs)]
    return Mean.of([sum(values) / T for values in seen], 1 / right)


def one_step(amount: dict[str, int]) -> Mean:
    """7.8 at L eta omega = 1: |x|^2/2 in random lines of the plane, by FedSub's lines without a memory."""
    one, T = torch.ones(1, 2, dtype=torch.float64), 40
    algorithm = FedSub(1.0, 1, Spherical(1, "orthonormal"), dual=False)
    runs = [squares(algorithm, Smooth(one, 0 * one), one[0], T, Key(s)) for s in range(5 * amount["steps"])]
    return Mean.of(runs, T / (2 * 2))


@torch.no_grad()
def sample_noise(far: float = 300.0) -> float:
    """9.1 by SSF's own second step: E<xi, P xi> over (sqrt(rho) sigma + l sqrt(E|y - x|^2))^2.

    A linear loss of slope `far` along the first axis, noise +-(sigma + l (y - x)) along it, over both axes as P.
    """
    one = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    sigma, ell, top, zero = 1.0, 2.0, 100.0, 0 * one
    problem = Smooth(zero, -sigma / ell * one, a=-far * one, noise=top * one, gate=ell / top * one)
    q = play(Instance(problem, zero[0], zero, zero[0], coordinate_frames(2, 1), 1 / far, 2))
    xi, moved = q.xi[..., 1, :], (q.delta[..., 1, :] ** 2).sum(-1)
    share, e = (float(q.each(one)) for one in ((xi * q.down(xi)).sum(-1), moved))
    return share / ((0.5**0.5) * sigma + ell * e**0.5) ** 2


@torch.no_grad()
def left_over(T: int = 4) -> float:
    """limits.1: the average squared gradient of full steps over the limit, |x|^2/2, all sequences of two axes."""
    one = torch.ones(1, 2, dtype=torch.float64)
    points, total = [one[0]], 0.0
    for _ in range(T):
        total += float(torch.stack(points).square().sum(-1).mean())
        points = [
            run(FedSub(1.0, 1, fixed(frame), dual=False), Smooth(one, 0 * one), 1, x0=x, metrics=()).x
            for x in points for frame in coordinate_frames(2, 1)
        ]  # fmt: skip
    return total / (2 / 0.5 * (1 - 0.5**T))


@torch.no_grad()
def curvature_seen() -> float:
    """limits.2: one step on a line that lies between both axes: price 1, where d/r is 2."""
    half = torch.full((2, 2), 0.5, dtype=torch.float64)
    problem, x = Quadratic(half[None], torch.zeros(1, 2, dtype=torch.float64)), torch.ones(2, dtype=torch.float64)
    ends = [
        run(FedSub(2.0, 1, fixed(frame), dual=False), problem, 1, x0=x, metrics=()).x
        for frame in coordinate_frames(2, 1)
    ]
    here, then = (sum(float(problem.grad(y).square().sum()) for y in of) / len(of) for of in ([x], ends))
    return (here + then) / (2 * float(problem.loss(x)))


def front_rounds(runs: int, M: int = 24, T: int = 80) -> Mean:
    """limits.5 at rho = 1/6, delta = 1/2, where M is 24: the least squared gradient of SSF over the bound."""
    right = 18 / 175 * (1 - 6 / (0.5**2 * T)) * (25 / 3) * (7 / 6)  # L = 25/3, Delta = 7/6 M
    problem, found = Chain(M), []
    for seed in range(runs):
        history = run(SSF(0.1, 1, Coordinate(M // 6, "orthonormal")), problem, T, seed=seed, metrics=[slope], every=1)
        found.append(min(history["slope"]) ** 2)
    return Mean.of(found, 1 / right)


def slope(problem: Any, x: torch.Tensor) -> float:
    return float(problem.grads(x.expand(problem.n, -1), problem.clients).mean(0).norm())


@torch.no_grad()
def on_ramp(runs: int, T: int = 60) -> Mean:
    """limits.4 at rho = 1/2, h = 1/4: the least squared gradient on a ramp over the bound, delta = 1/2."""
    h, rho, delta = STEP, 0.5, 0.5
    e = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    problem, room = Smooth(e, 0 * e, shape="huber"), h * (1 + delta) * rho * T
    right = 1 - (1 - rho) / (delta**2 * rho * T)  # Delta is room + 1/2
    method = FedSub(h, 1, Coordinate(1, "orthonormal"), dual=False)
    ends = [run(method, problem, T - 1, seed=s, x0=(1 + room) * e[0], metrics=()).x for s in range(runs)]
    return Mean.of([float(problem.gradients(x)[0, 0]) ** 2 for x in ends], 1 / right)


def start_steps() -> Steps:
    """Of SCAFFOLD on `pulled`, one of N to infinity: the sum of |grad F|^2 is h nu C_0/(2 phi)."""
    return {"4.1": 4.0, "5.2": 2.0, "7.3": 0.5 / 0.36, "6.3": 0.5 / 0.45}


def forgotten_steps() -> Steps:
    """What each step loses on FedSub's kinked clients: as in `fedsub.stays_steps`, with the steps of this page."""
    rho, s = 0.5, on_kinked(LOCAL)
    p, own = LOCAL**2 * (MANY - 1) / MANY, family.memory("FedSub", 0.5, 1)
    values = {
        "": s["G"],
        "4.1": s["B"],
        "4.1, the mean": s["D"],
        "3": 1.388 * rho * p * (s["H"] + s["G"]) / rho,
        "5.3, 5.4": 1.388 * rho * p * (own.chi * s["zeta2"] + own.alpha * s["D"] + own.gamma * s["moved"]),
        "6": 50 / 9 * rho * p * s["zeta2"],
    }
    return chain(values)[1]


def typical(T: int) -> tuple[dict[str, float], str]:
    """FedAvg with all clients and SCAFFOLD with three of ten on a small problem of SSF's kind, full gradients."""
    problem = MatrixRegression.ssf(0.5, Key(17), n=10, rows=50, d=12, m=8, batch=None)
    K, S, L, x = 3, 3, known(problem.constants.L), problem.start()
    phi, nu, above, p = S / 10, 7 / (S * 9), gap(problem, x), LOCAL**2 * (1 - 1 / K)
    G2, zeta2 = squares_and_spreads(FedAvg(LOCAL / (K * L), K), problem, x, T, Key(3))
    plain = 20 / 9 * L * above / (LOCAL * T) + 35 / 18 * p * max(zeta2)
    own = problem.grads(x.expand(problem.n, -1), problem.full(problem.clients))
    C0, h = float((own**2).sum(-1).mean()), phi / 8
    few, _ = squares_and_spreads(Scaffold(LOCAL / (K * L), K, h / LOCAL), problem, x, T, Key(3), S)
    kept = 20 / 9 * L * above / (h * T) + (5.5 * p + 6.2 * h * nu) * C0 / (phi * T)
    return {"FedAvg": sum(G2) / T / plain, "SCAFFOLD": sum(few) / T / kept}, (
        f"{T} rounds of FedAvg with all clients and of SCAFFOLD with 3 of 10 on ten clients' regression, K = 3."
    )


TWO = "two clients, rho = 1/2 (two complementary projectors)"


def entries() -> list[Entry]:
    rows = [
        *(Entry(
            f"drift (3), K = {K}", "rho p (V + |G|^2)", 1.388, f"{TWO}, K = {K}", "SDP", partial(ours.family_drift, K),
            claim="ssf.family", steps=lambda K=K: drift_chain(K, LOCAL, 1.388, 1, PROOF)[1],
            reached=lambda amount, K=K: K / (K - 1) * found.ssf("drift", K, **amount),
        ) for K in (2, 3)),
        drift_of_many(
            "drift (3), any K", "rho p (V + |G|^2)", "F = -x^2/2", "ssf.family", LOCAL, 1.388, 1, PROOF
        ),
        Entry(
            "drift (3), noise", "p theta sigma^2/K", 1.041, f"F = -x^2/2, K = {FAR}", "lower bound",
            lambda: drift_noise(FAR, LOCAL), claim="ssf.family",
        ),
        Entry(
            "descent (4), K = 1", "rho eta |G|^2", 0.5, "F = x^2/2, h = 1/4", "exact", lambda: 1 - STEP / 2,
            claim="ssf.family", descent=True, why="more steps are in SSF's table: the statement is the same",
        ),
        *(Entry(
            f"descent (4), {name}, K = 1", unit, 1.0, "F = x^2/2, one of two clients", "exact", lambda: 0.5,
            claim="ssf.family", reached=run,
            why="twice what smoothness asks for: the other half meets the drift, of which there is none here",
        ) for name, unit, run in (
            ("sampling", "h eta rho nu V", lambda amount: added(apart=1.0)),
            ("noise", "h eta theta sigma^2/(SK)", lambda amount: added(noise=1.0)),
        )),
        *(Entry(
            f"memory in the subspace (5.2), K = {K}", "left/right", 1.0, f"{TWO}, K = {K}", "SDP",
            partial(ours.family_memory, K), claim="ssf.family",
            reached=lambda amount, K=K: searched_memory(K, amount),
        ) for K in (1, 2)),
        Entry(
            "memory (5.2), one of two clients", "left/right", 1.0, "F = x^2/2, rho = 1, K = 1", "lower bound",
            lambda: moved_memory()[0], claim="ssf.family", reached=lambda amount: played_memory(),
        ),
        *(Entry(
            f"one round (6), {method}, K = {K}", "rho eta |G|^2", 0.45, f"{TWO}, K = {K}", "SDP",
            partial(ROUND[method], K), claim="ssf.family", descent=True,
            reached=lambda amount, method=method, K=K: searched_round(method, K, amount),
            steps=lambda method=method, K=K: steps_of_round(ROUND[method](K).dual),
        ) for method in METHODS for K in (2, 3)),
        Entry(
            "one round (6), SSF with one of two clients, K = 2", "rho eta |G|^2", 0.45,
            "rho = 1/2, h = phi sqrt(rho)/8", "not computed", claim="ssf.family", descent=True,
            reached=lambda amount: searched_round("SSF", 2, amount, sampled=1),
            why="sampling in a program would need a branch a set of clients",
        ),
        Entry(
            "theorem, T to infinity", "left/right", 1.0, "F = x^2/2, K to infinity, sigma = 0, h = 1/4", "lower bound",
            lambda: 9 / 20 / bowl(LOCAL, STEP), claim="ssf.family", typical="FedAvg", kind="theorem",
            reached=lambda amount: found.on_bowl(
                SSF.haar(LOCAL / 10, 10, 1, server_lr=STEP / LOCAL), 40, lambda above: 20 / 9 * above / (STEP * 40)
            ),
            why="reached: at K = 10",
        ),
        Entry(
            "theorem, FedAvg: what local steps leave", "left/right", 1.0,
            "curvatures 1 and -1, K to infinity, eta to 0", "lower bound", lambda: 9 / 70,
            claim="ssf.family", kind="theorem", reached=lambda amount: rest(),
            why="where FedAvg rests on them: a run that starts there stays",
        ),
        Entry(
            "theorem, FedAvg: what sampling leaves", "left/right", 1.0, "x^2/2 +- x, one of two, K = 1, h = 1/10",
            "lower bound", lambda: 9 / 20 / (2 - LOCAL), claim="ssf.family", kind="theorem",
            reached=lambda amount: of_runs(FedAvg(LOCAL, 1), 200, 20 / 9 * LOCAL, amount["steps"]),
        ),
        Entry(
            "theorem, noise", "left/right", 1.0, "F = x^2/2, K = 1, h = 1/4", "lower bound",
            lambda: 9 / 20 / (2 - STEP), claim="ssf.family", kind="theorem",
        ),
        Entry(
            "theorem, FedSub: what stays", "left/right", 1.0, "two kinked clients, K to infinity, eta to 0",
            "lower bound", lambda: 9 / 200, claim="ssf.family", kind="theorem",
            reached=lambda amount: left_on_kinked(LOCAL, 50 / 9), steps=forgotten_steps,
        ),
        Entry(
            "theorem, SCAFFOLD with few clients: start", "left/right", 1.0,
            "x^2/2 +- x, one of N to infinity, K = 1, h = phi/8", "lower bound", lambda: 1 / 2 / 6.2,
            claim="ssf.family", kind="theorem", steps=start_steps,
            reached=lambda amount: of_runs(Scaffold(1 / 64, 1), 60, 6.2 / 8 / 60, 6 * amount["steps"], 8),
        ),
        Entry(
            "one local step (7.8), T to infinity", "left/right", 1.0, "F = |x|^2/2, L eta omega = 1", "exact",
            lambda: 1.0, claim="ssf.family", kind="theorem", reached=one_step, why="attained",
        ),
        Entry(
            "noise of a minibatch (9.1)", "left/right", 1.0, "noise +-(sigma e + l (y - x)), the best s", "exact",
            lambda: 1.0, claim="ssf.family_noise", reached=lambda amount: sample_noise(), why="attained",
        ),
        Entry(
            "average of any method (limits 1)", "left/right", 1.0, "F = |x|^2/2, full steps", "exact", lambda: 1.0,
            claim="ssf.limits_average", descent=True, kind="theorem", reached=lambda amount: left_over(),
            why="attained",
        ),
        Entry(
            "curvature seen, one step (limits 2)", "left/right", 1.0, "F = L <u, x>^2/2", "exact", lambda: 1.0,
            claim="ssf.limits_curvature", kind="theorem", reached=lambda amount: curvature_seen(), why="attained",
        ),
        Entry(
            "best iterate, fixed steps (limits 4)", "left/right", 1.0, "one local step (7.8), T to infinity",
            "lower bound", lambda: 2.0, claim="ssf.limits_steps", descent=True, kind="theorem",
            reached=lambda amount: on_ramp(amount["steps"]), why="7.8 needs no more than twice the limit",
        ),
        Entry(
            "best iterate, masks (limits 5)", "left/right", 1.0, "one local step (7.8), rho to 0, T to infinity",
            "lower bound", lambda: 2 / (18 / 175), claim="ssf.limits_masks", descent=True, kind="theorem",
            reached=lambda amount: front_rounds(amount["steps"] // 4),
            why="2 for 7.8 over 18/175 for the chain; what lies between is open",
        ),
    ]  # fmt: skip
    return rows


EXTRAS = [
    item("family/tight", "How tight the family's theorem and lemmas are", entries(), typical),
]
