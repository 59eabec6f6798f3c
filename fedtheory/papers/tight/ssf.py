"""SSF and its neighbours FedAvg and SCAFFOLD: docs/theory/ssf.md. K L eta_l = 1/10, L eta = min(1/4, sqrt(rho/8))."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.papers.tight.table import NAN, Entry, Steps, gap, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.instances import Smooth, drain
from fedtheory.theory.worst_case import found, ours
from fedtheory.theory.worst_case.ours import LOCAL, ssf_step

STEP = ssf_step(1)  # L eta, at rho = 1 and at rho = 1/2
FAR = 2000  # local steps that stand for any number


SECTION_2 = ("2.2", "2.3", "2.6", "2.7", "2.8")


def drift_chain(
    K: int, local: float = LOCAL, ours: float = 1.388, less: int = 0, steps: Sequence[str] = SECTION_2
) -> tuple[list[float], Steps]:
    """Section 2 on F = -x^2/2 with d = 1, without noise: the bound on L^2 D step by step, and their factors.

    Args:
        local: K L eta_l.
        ours: the constant at the end.
        less: what multiplies it is (K - less)/K (K L eta_l)^2.
        steps: names of the five, on the pages that take the same.
    """
    lr = local / K
    y = [(1 + lr) ** k - 1 for k in range(K)]  # |y^k - x|
    alpha = 4 * lr**2 * K
    pull = [4 * (lr * k) ** 2 for k in range(K)]
    sums = [(sum(y[:k]), sum(v**2 for v in y[:k])) for k in range(K)] if K <= 10 else _sums(y)
    values = [
        sum(v**2 for v in y),
        sum(4 * (lr * s) ** 2 for s, _ in sums) + sum(pull),
        sum(4 * lr**2 * k * s2 for k, (_, s2) in enumerate(sums)) + sum(pull),
        (1 + alpha) ** K * sum(pull),
    ]
    unit = K**2 * (K - less) * lr**2
    last = [(1 + alpha) ** K * 4 / 3, ours]
    return chain(dict(zip(("", *steps), [*(value / unit for value in values), *last])))


def drift_of_many(
    name: str,
    unit: str,
    setting: str,
    claim: str,
    local: float = LOCAL,
    ours: float = 1.388,
    less: int = 0,
    steps: Sequence[str] = SECTION_2,
    printed: float = NAN,
) -> Entry:
    """The row of any number of local steps, FAR of them by `drift_chain`, on the pages that take its five steps."""
    chained = partial(drift_chain, FAR, local, ours, less, steps)
    return Entry(
        name, unit, ours, f"{setting}, K = {FAR}", "exact", lambda: chained()[0][0], printed, claim,
        steps=lambda: chained()[1], why="the program's value for K = 2 and 3 is that of this loss",
    )  # fmt: skip


def opposed(lr: float, K: int) -> Smooth:
    """Two clients of curvatures 1 and -0.999 on the line whose K local steps from 0 cancel: FedAvg rests there."""
    h = torch.tensor([[1.0], [-0.999]], dtype=torch.float64)
    way = torch.stack([(1 - lr * h) ** k for k in range(K)]).sum(0)
    return Smooth(h, 0 * h, a=torch.tensor([[1.0], [-1.0]], dtype=torch.float64) * way[0] / way)


def slope_left(problem: Smooth, x: torch.Tensor) -> float:
    """|grad F|^2 over zeta^2 at 0. Raises AssertionError where x, the model after a round from there, is not 0."""
    if (moved := float(x.abs().max())) > 1e-12:
        raise AssertionError(f"a round moves the model by {moved}")
    g = problem.gradients(torch.zeros(problem.d, dtype=torch.float64))
    return float((g.mean(0) ** 2).sum() / ((g - g.mean(0)) ** 2).sum(-1).mean())


def _sums(y: list[float]) -> list[tuple[float, float]]:
    """Sums and sums of squares of all beginnings."""
    v = torch.tensor(y, dtype=torch.float64)
    return list(zip((v.cumsum(0) - v).tolist(), ((v**2).cumsum(0) - v**2).tolist()))


def chain(values: dict[str, float]) -> tuple[list[float], Steps]:
    """Values from the worst case to the bound, and by what factor each step raises them."""
    numbers = list(values.values())
    return numbers, {name: b / a for name, a, b in zip(list(values)[1:], numbers, numbers[1:])}


def round_steps(parts: int, exact: float) -> Steps:
    """What the descent of the potential loses: 3.3 drops squares, 5.3 rounds."""
    h, q, rho = ssf_step(parts), LOCAL**2, 1 / parts
    u = h**2 / rho
    kept = 0.5 - 24 * q * u - 1.388 * q * (5 / 8 + 2 * q * (3 + 12 * u))
    return {"3.3": exact / kept, "5.3": kept / 0.45}


def theorem(above: float, T: int, rho: float = 1.0, C0: float = 0.0, L: float = 1.0) -> float:
    """The theorem's right side without noise."""
    h = min(0.25, (rho / 8) ** 0.5)
    return 20 * L * above / (9 * rho * h * T) + 40 * LOCAL**2 * C0 / (9 * rho * T)


def bowl(local: float, h: float) -> float:
    """F = x^2/2, K to infinity: what a round takes away of x^2, over 2 h; `local`: K L eta_l, h: L eta."""
    moved = -h * math.expm1(-local) / local
    return moved * (2 - moved) / (2 * h)


def noise(rho: float) -> float:
    """F = x^2/2, K = 1, all clients alike, noise in the subspace: what stays over 20 L eta sigma^2/(9 rho N)."""
    return 9 * rho / 20 / (rho * (2 - STEP))


def typical(T: int) -> tuple[dict[str, float], str]:
    """SSF and FedAvg on SSF's problem with full gradients; ratios of sums over rounds."""
    problem = MatrixRegression.ssf(0.5, Key(17), batch=None)
    K, r, d = 3, 50, 100
    rho, L = r / d, known(problem.constants.L)
    lr, eta = LOCAL / (K * L), min(0.25, (rho / 8) ** 0.5) / L
    both = played(SSF.haar(lr, K, r, server_lr=eta / (K * lr)), problem, T)
    eta1 = K * lr
    plain = played(FedAvg(lr, K), problem, T, keeps=False)
    s, a, q = both, plain, LOCAL**2
    M = 2 * L**2 * eta * (K * lr) ** 2
    h2 = (L * eta) ** 2
    right = (1 - rho / 2) * s["C"] + (3 + 12 * h2 / rho) * L**2 * s["D"] + 12 * h2 * s["G2"]
    spread = 1.8 / 2.05 * q * a["zeta2"]
    return (
        {
            "drift": s["D"] / (rho * (K * lr) ** 2 * (s["C"] + s["G2"])),
            "descent": ((1 + L * eta) / 2 * L**2 * eta * s["D"] - s["gain"]) / (rho * eta * s["G2"]),
            "memory": s["C1"] / right,
            "round": -(s["gain"] + M * (s["C1"] - s["C"])) / (rho * eta * s["G2"]),
            "theorem": s["G2"] / T / theorem(s["gap"], T, rho, s["C0"], L),
            "fedavg": (eta1 * spread - a["gain"]) / (eta1 * a["G2"]),
        },
        f"{T} rounds of SSF (r = 50 of 100) and of FedAvg on SSF's problem, het 0.5, full gradients, K = 3.",
    )


@torch.no_grad()
def played(algorithm: Any, problem: Problem, T: int, keeps: bool = True) -> dict[str, float]:
    """Sums over rounds: squared gradient, drift, gain, spread, memories before and after; F(x^0) - F*, C_0."""
    full, clients, key = problem.full(problem.clients), problem.clients, Key(4)
    grads = lambda x: problem.grads(x.expand(problem.n, -1), full)
    loss = lambda x: float(problem.losses(x.expand(problem.n, -1), full).mean())
    off = lambda c, g: float(((c - g) ** 2).sum(-1).mean()) if keeps else 0.0
    state = algorithm.init(problem, problem.start(), key)
    server, own = state.server, state.own
    out = dict.fromkeys(("G2", "D", "gain", "zeta2", "C", "C1"), 0.0)
    first = {"gap": gap(problem, server.x), "C0": off(own.c, grads(server.x)) if keeps else 0.0}
    for t in range(T):
        g, before = grads(server.x), loss(server.x)
        down = algorithm.broadcast(server, key.fold("round", t))
        path, (up, new) = drain(algorithm.client(problem, clients, own, down, key.fold("round", t)))
        start = down.P.value.project(server.x) if keeps else server.x
        moved = [((y - start) ** 2).sum(-1).mean() for y in path[:-1]]
        out["C"] += off(own.c, g) if keeps else 0.0
        server, _ = algorithm.server(server, down, up, clients, key.fold("round", t))
        own = new
        out["G2"] += float((g.mean(0) ** 2).sum())
        out["zeta2"] += float(((g - g.mean(0)) ** 2).sum(-1).mean())
        out["D"] += float(sum(moved)) / len(path)
        out["gain"] += loss(server.x) - before
        out["C1"] += off(own.c, grads(server.x)) if keeps else 0.0
    return out | first


TWO = "two clients, rho = 1/2 (two complementary projectors)"


def entries() -> list[Entry]:
    unit = "rho K^2 eta_l^2 (C + |G|^2)"
    rows = [
        Entry(
            f"drift (2), K = {K}", unit, 1.388, f"{TWO}, K = {K}", "SDP",
            partial(ours.ssf_drift, K), printed=24.0, claim="ssf.lemma2", typical="drift" if K == 3 else "",
            reached=lambda amount, K=K: found.ssf("drift", K, **amount), steps=lambda K=K: drift_chain(K)[1],
        )
        for K in (2, 3)
    ]  # fmt: skip
    rows.append(drift_of_many("drift (2), any K", unit, "F = -x^2/2", "ssf.lemma2", printed=12.0))
    for K in (1, 2, 3):
        rows.append(Entry(
            f"descent (3), K = {K}", "rho eta |G|^2", 0.5, f"{TWO}, K = {K}", "SDP", partial(ours.ssf_descent, K),
            printed=0.25, claim="ssf.lemma3", typical="descent" if K == 3 else "", descent=True,
            reached=lambda amount, K=K: found.ssf("descent", K, **amount),
            why="the printed one has 3/2 in the place of our (1 + L eta)/2 before the drift",
        ))  # fmt: skip
    rows += [
        Entry(
            "memories (4)", "left/right", 1.0, f"{TWO}, K = 3", "SDP", partial(ours.ssf_memory, 3), claim="ssf.lemma4",
            typical="memory", reached=lambda amount: found.ssf("memory", 3, **amount),
        ),
        *(Entry(
            f"one round (5), K = {K}", "rho eta |G|^2", 0.45, f"{TWO}, K = {K}", "SDP", partial(ours.ssf_round, K),
            claim="ssf.theorem1.eq117a", typical="round" if K == 3 else "", descent=True,
            reached=lambda amount, K=K: found.ssf("round", K, **amount),
            steps=lambda K=K: round_steps(2, ours.ssf_round(K).dual),
        ) for K in (1, 2, 3)),
        Entry(
            "Theorem, T = 2", "left/right", 1.0, f"{TWO}, K = 3, sigma = 0", "SDP", partial(ours.ssf_theorem, 3),
            claim="ssf.theorem1", kind="theorem",
            why="F above F* at the points of the run: exact for one client, a bound from above for two",
        ),
        Entry(
            "Theorem, T to infinity", "left/right", 1.0, "F = x^2/2, K to infinity, sigma = 0", "lower bound",
            lambda: 9 / 20 / bowl(LOCAL, STEP), claim="ssf.theorem1", typical="theorem", kind="theorem",
            reached=lambda amount: found.on_bowl(
                SSF.haar(LOCAL / 10, 10, 1, server_lr=STEP / LOCAL), 40, lambda above: theorem(above, 40)
            ),
            why="reached: at K = 10",
        ),
        Entry(
            "Theorem, noise", "left/right", 1.0, "F = x^2/2, K = 1, noise within the subspace", "lower bound",
            lambda: noise(1.0), claim="ssf.theorem1", kind="theorem",
        ),
        Entry(
            "Theorem, noise of local steps", "left/right", 1.0, "K > 1", "not computed", claim="ssf.theorem1",
            kind="theorem", why="noise in several steps needs a branch an outcome: no program of this size",
        ),
        *(Entry(
            f"FedAvg, one round (7.3), K = {K}", "eta |G|^2", 1 / 2.05, f"two clients, rho = 1, K = {K}", "SDP",
            partial(ours.memoryless_round, K), typical="fedavg" if K == 3 else "", descent=True,
            reached=lambda amount, K=K: found.memoryless(K, **amount),
        ) for K in (2, 3)),
        Entry(
            "SCAFFOLD, one round (5), K = 3", "eta |G|^2", 0.45, "two clients, rho = 1, K = 3", "SDP",
            partial(ours.ssf_round, 3, 1), descent=True,
            reached=lambda amount: found.ssf("round", 3, 1, **amount),
        ),
    ]  # fmt: skip
    return rows


EXTRAS = [
    item("ssf/tight", "How tight the page's theorem and lemmas are: SSF, SCAFFOLD, FedAvg", entries(), typical),
]
