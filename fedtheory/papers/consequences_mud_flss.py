"""What the repaired theorems of FedMUD and FLSS say in practice: about step sizes and resets, and about the rank R."""

import math
from dataclasses import replace

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.maps.decomposition import LowRank
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each, interval, itself
from fedtheory.running.records import Row, Table, behind
from fedtheory.theory.flss.proof import squares
from fedtheory.theory.flss.round import Instance, Round, play, square
from fedtheory.theory.instances import Smooth
from fedtheory.theory.mud import round as mud_round
from fedtheory.theory.mud.counterexamples import stuck
from fedtheory.theory.mud.quantities import residual
from fedtheory.theory.mud.stuck import slacks_A4, stuck_terms
from fedtheory.theory.mud.theorem import sharper_parts

DOUBLE = torch.float64
SEEDS = {"quick": 2, "paper": 16}  # of FedMUD's runs; eight times as many warm-ups of FLSS


# FLSS: only the rank R varies


def clients(share: float) -> Instance:
    """Eight quadratics on R^8, curvatures 1 to 1/4, that differ in all directions but the first and cancel on average.

    Their differences are a Hadamard matrix, halved in square from direction to direction: the global updates of all
    sets M_t have the coordinate axes as singular vectors, in this order, and E[g_t | w_t] stays on the axes on which
    w_t - w^* lies, so that Assumption 3.4.4 holds for every R. share: eta L (tau + 1).
    """
    signs = torch.ones(1, 1, dtype=DOUBLE)
    for _ in range(3):
        signs = torch.cat([torch.cat([signs, signs], 1), torch.cat([signs, -signs], 1)])
    d, tau, L, mu = len(signs), 4, 1.0, 0.25
    size = 2.0 ** (-torch.arange(d, dtype=DOUBLE) / 2)
    size[0] = 0.0
    h = torch.linspace(L, mu, d, dtype=DOUBLE).expand(d, -1)
    eye = torch.eye(d, dtype=DOUBLE)
    return Instance(Smooth(h, 0 * h, a=signs * size), eye[0], eye, share / (L * (tau + 1)), tau, 2, L, mu)


def tails(values: torch.Tensor) -> list[float]:
    """rho_R of the singular values, R = 0, 1, ..."""
    return [float(values[R:].square().sum() / values.square().sum()) for R in range(len(values) + 1)]


def updates(at: Instance) -> tuple[torch.Tensor, torch.Tensor]:
    """What FLSS adds to w without projection is A w + c_b for the b-th set M_t: A (d, d), c (B, d)."""
    eye = torch.eye(len(at.x), dtype=DOUBLE)
    plain = replace(at, frame=eye, x=0 * at.x)
    c = play(plain).w[:, 0]
    A = torch.stack([(play(replace(plain, x=e)).w[:, 0] - c).mean(0) - e for e in eye], 1)
    return A, c


def after(A: torch.Tensor, c: torch.Tensor, P: torch.Tensor, x: torch.Tensor, T: int) -> tuple[float, float]:
    """E||w_T - w^*||^2 after T projected rounds from x, over all sequences of sets; and its part outside span P."""
    Pi = P @ P.T
    step, noise = torch.eye(len(x), dtype=DOUBLE) + Pi @ A, Pi @ (c.T @ c / len(c)) @ Pi
    spread = torch.zeros_like(Pi)
    for _ in range(T):
        x, spread = step @ x, step @ spread @ step.T + noise
    return float(square(x) + spread.trace()), float(square(x - Pi @ x))


def reach(at: Instance, A: torch.Tensor, c: torch.Tensor) -> float:
    """G^2 wherever a run from at.x can get, coordinate by coordinate."""
    h, a = at.problem.h[0], at.problem.a
    assert a is not None
    far = torch.maximum(at.x.abs() + c.abs().amax(0) / -A.diag(), a.abs().amax(0) / h)
    return float(square(h * far + a.abs().amax(0)))


def corollary(q: Round, G2: float, rho: float, T: int) -> tuple[float, float]:
    """Bounds on E||w_T - w^*||^2: (32), and the repaired round summed."""
    at = q.at
    C = (2 + at.mu) * G2 * squares(at.tau) + float((2 * at.tau**2 + 4 * at.tau) * at.L * q.Gamma)
    C += 2 * (1 + rho) * at.tau**2 * G2 / at.M
    bracket = 3 * at.tau**2 - 2 * at.tau + at.mu * at.lr * squares(at.tau - 1)
    bracket += at.tau**2 * (at.N - at.M) / (at.M * (at.N - 1))

    def summed(fall: float, noise: float) -> float:
        return (1 - fall) ** T * float(q.D) + at.lr**2 * noise * (1 - (1 - fall) ** T) / fall

    return summed(at.mu * at.lr * at.B, C), summed(at.mu * at.lr * at.tau / 2, G2 * bracket)


def warmed(at: Instance, seed: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """w_T0 and P for R = 1, 2, ... after eight rounds of FLSS's warm-up."""
    d, key = len(at.x), Key(seed)
    algorithm = FLSSReading(at.lr, at.tau, 1, warm_up=d, refresh=0, kept=d)
    state = algorithm.init(at.problem, at.x, key)
    g = key.fold("sets").generator()
    for t in range(d):
        chosen = torch.randperm(at.N, generator=g)[: at.M].sort().values
        state, _, _ = play_round(algorithm, at.problem, state, chosen, key.fold("round", t))
    return state.server.x, [state.server.G.basis(R).matrices()[0] for R in range(1, d + 1)]


EXACT = ("sampling", "in the span")  # panels without runs


def measure_rank(scale: str, seeds: int) -> Result:
    T, n = 20 if scale == "quick" else 200, 8 * SEEDS[scale]
    at = clients(0.2)
    q, eye, ranks = play(at), at.frame, range(1, len(at.x) + 1)
    rho = tails(torch.linalg.svdvals((q.w[:, 0] - at.x).T))
    A, c = updates(at)
    unit, G2 = at.lr**2 * at.tau**2 * q.G2 / at.M, reach(at, A, c)
    table: Table = []

    def add(panel: str, R: int, **values: float) -> None:
        blank = dict.fromkeys(("measured", "low", "high", "n", "paper", "repaired"), math.nan)
        of = behind("exact expectation") if panel in EXACT else behind("quadratics", "none", T)
        table.append({"panel": panel, "R": R, **(blank | values), **of})

    for R in ranks:
        spread = float(play(replace(at, frame=eye[:, :R])).spread / unit)
        add("sampling", R, measured=spread, paper=2 * (1 + rho[R]), repaired=(at.N - at.M) / (at.N - 1))
        paper, repaired = corollary(q, G2, rho[R], T)
        add("in the span", R, measured=after(A, c, eye[:, :R], at.x, T)[0], paper=paper, repaired=repaired)
    start = replace(at, x=3 * 2.0 ** -torch.arange(len(at.x), dtype=DOUBLE))
    warm = [warmed(start, seed) for seed in range(n)]
    for R in ranks:
        found = torch.tensor([after(A, c, frames[R - 1], x, T) for x, frames in warm], dtype=DOUBLE)
        total, outside = found.T
        for name, values in (("all", total), ("outside", outside), ("inside", total - outside)):
            mean, low, high = interval(values.tolist())
            add(f"warm-up, {name}", R, measured=mean, low=max(low, 0.0), high=high, n=n)
    panels = dict.fromkeys(row["panel"] for row in table)
    lines = {panel: [row["measured"] for row in table if row["panel"] == panel] for panel in panels}
    spreads, errors = lines["sampling"], lines["in the span"]
    outside, inside = lines["warm-up, outside"], lines["warm-up, inside"]
    bounds = [(row["paper"], row["repaired"]) for row in table if row["panel"] == "in the span"]
    notes = [
        f"Lemma C.2.1, R = 1 to 8: measured {spreads[0]:.3g} to {spreads[-1]:.3g}; printed {2 * (1 + rho[1]):.3g} to "
        f"2; repaired {(at.N - at.M) / (at.N - 1):.3g} for every R.",
        f"Corollary C.4.1 after {T} rounds where 3.4.4 holds: measured {errors[0]:.3g} to {errors[-1]:.3g}; printed "
        f"{bounds[0][0]:.4g} to {bounds[-1][0]:.4g}; repaired {bounds[0][1]:.4g} for every R.",
        f"P of a warm-up, {T} projected rounds: outside span P {outside[0]:.3g} (R = 1) to {outside[-2]:.3g} (R = 7), "
        f"inside {inside[0]:.3g} to {inside[-2]:.3g}. What a small R costs is what 3.4.4 assumes away, not rho_R.",
        "Expectations over all sets M_t are exact; P of the warm-up by FLSS's own rounds.",
    ]
    settings = {"N, M, D, tau": [at.N, at.M, len(at.x), at.tau], "eta L (tau + 1)": 0.2, "rounds": T, "warm-ups": n}
    return Result(table, [], settings, notes, seeds=range(n))


@style.styled
def draw_rank(table: Table) -> Figure:
    """Three panels over R: the sampling error of a round, the error where 3.4.4 holds, and where P comes from a run."""
    figure, (sampling, span, warm) = style.new_figure(3, height=2.5)
    of = lambda panel: [row for row in table if row["panel"] == panel]
    for axes, panel in ((sampling, "sampling"), (span, "in the span")):
        rows = of(panel)
        R = [row["R"] for row in rows]
        axes.plot(R, [row["paper"] for row in rows], "k-", linewidth=2, label="printed")
        axes.plot(R, [row["repaired"] for row in rows], "--", color=style.SEQUENCE[0], label="repaired")
        kept = [(row["R"], row["measured"]) for row in rows if panel == "sampling" or row["measured"] > 1e-12]
        axes.plot(*zip(*kept), "o-", color=style.SEQUENCE[3], markersize=3.5, label="measured (exact)")
        axes.legend(loc="center right" if panel == "sampling" else (0.3, 0.55))
    named = {"all": "all", "outside": "outside span P", "inside": "inside span P"}
    for (name, label), how in zip(named.items(), style.looks(named).values()):
        rows = of(f"warm-up, {name}")
        mean, low, high = ([row[key] for row in rows] for key in ("measured", "low", "high"))
        style.band(warm, [row["R"] for row in rows], mean, low, high, label, int(rows[0]["n"]), how)
    warm.legend(loc=(0.3, 0.62))
    sampling.set(ylim=(-0.05, 2.8), title="one round, Lemma C.2.1")
    sampling.set_ylabel(r"$E\|w_{t+1}-v_{t+1}\|^2$ in $\eta^2\tau^2G^2/M$")
    span.set(yscale="log", title="Corollary C.4.1, updates in span P")
    warm.set(ylim=(0, 0.12), title="P of a warm-up")
    for axes in (span, warm):
        axes.set_ylabel(r"$E\|w_T-w^*\|^2$")
    for axes in figure.axes:
        axes.set(xlabel="R", xticks=range(1, 9))
    return figure


# FedMUD: step sizes, and resets


def window(lr: float, T: int) -> mud_round.Window:
    """Two clients, f_i = |W - W_i|^2/2 on 2 x 2 matrices, U = 1 (full rank), V = 0, four local steps, T iterations."""
    layers = ((2, 2, 2),)
    mean, apart = torch.tensor([[1.0, 0.5, -0.5, 1.0], [1.0, -1.0, 1.0, 1.0]], dtype=DOUBLE)
    centres = 0.1 * torch.stack([mean + 0.1 * apart, mean - 0.1 * apart])
    problem = Smooth(torch.ones_like(centres), centres, layout=mud_round.layout(layers))
    start = torch.cat([torch.eye(2, dtype=DOUBLE).flatten(), torch.zeros(4, dtype=DOUBLE)])
    at = mud_round.Instance(problem, layers, start, torch.zeros(4, dtype=DOUBLE), lr, 4, T // 4)
    return mud_round.Window(at)


@torch.no_grad()
def full_rank(lr: float, T: int, c: float = 1.5) -> Row:
    """Average squared gradient over T iterations, and what the two repaired theorems say, per ||grad f(w^0)||^2."""
    q = window(lr, T)
    first = (q.fbar(0) ** 2).sum(-1).max()
    squares_, *rest = sharper_parts(q)
    L, (gu, gv) = torch.maximum(q.Ls, q.Lh), q.gamma(True)
    allowed = float(torch.minimum((q.psi2 / 2) ** (1 / (c - 1)), 1 / L).clamp(max=1))
    C = residual(1, 0, q.at.E, q.at.N, lr, L, q.G2_sure, 0.0, gu, gv)
    printed = 2 / (lr**c * T) * (q.f(0) - q.f(T)) + 2 * C / lr**c
    return {
        "panel": "full rank",
        "eta": lr,
        "T": T,
        "measured": float(squares_ / first),
        "repaired": float(sum(rest, 0 * first) / first),
        "terms of (71)": float(printed / first) if lr <= allowed else math.nan,
        "allowed": allowed,
    }


@torch.no_grad()
def stuck_row(power: int) -> Row:
    """f = (w_22 - 1)^2/2, rank 1, eta = 1/sqrt T = 2^-power: no reset and U = (1/4, 0), or U(-1/2, 1/2) redrawn."""
    lr, T, a, c = 2.0**-power, 4.0**power, 0.5, 1.5
    q = mud_round.Window(stuck(lr))
    if not torch.equal(q.u[0], q.u[-1]):
        raise AssertionError("the iterates move")
    C = stuck_terms(q)[3]
    s2, keep = a**2 / 3, 1 - 2 * lr * a**2 / 3 + lr**2 * a**4 / 5  # E(1 - eta U_2^2)^2
    slack = min(value for name, value in slacks_A4(q).items())
    return {
        "panel": "rank 1",
        "eta": lr,
        "T": T,
        "no reset": float((q.fbar(0) ** 2).sum()),
        "printed": float(2 / (lr**c * T) * q.f(0) + 2 * C / lr**c) if slack >= -1e-12 else math.nan,
        "redrawn": (1 - keep**T) / (T * (1 - keep)),
        "repaired": 1 / (lr * s2 * T),
    }


def played(power: int, seed: int) -> float:
    """The average squared gradient of FedMUD itself with a reset in every iteration, on the problem of `missed`."""
    problem, T, key = stuck().problem, 4**power, Key(seed)
    algorithm = FedMUD(2.0**-power, 1, LowRank(0.5, 0.5, layers="all"), 1)
    state, total = algorithm.init(problem, torch.zeros(4, dtype=DOUBLE), key), 0.0
    for t in range(T):
        total += float(square(problem.gradients(state.server.x)[0]))
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
    return total / T


POWERS = {"quick": (2, 3), "paper": (2, 3, 4, 5)}


def measure_rate(scale: str, seeds: int) -> Wants[Result]:
    T, n = (256, SEEDS["quick"]) if scale == "quick" else (4096, SEEDS["paper"])
    steps = [2.0**-k for k in range(1, 13 if scale == "paper" else 9)]
    rows = yield from each(full_rank, [(lr, T) for lr in steps])
    rows += [stuck_row(power) for power in range(2, 21)]
    for power in POWERS[scale]:
        mean, low, high = interval([played(power, seed) for seed in range(n)])
        rows.append({"panel": "runs", "eta": 2.0**-power, "T": 4.0**power, "measured": mean, "low": low, "high": high})
    names = list(dict.fromkeys(name for row in rows for name in row))
    table: Table = [{name: row.get(name, math.nan) for name in names} for row in rows]
    for row in table:
        of_runs = row["panel"] == "runs"
        row |= behind("a quadratic, 2 x 2", "none", int(row["T"])) if of_runs else behind("exact expectation")
    best = min((row for row in rows if row["panel"] == "full rank"), key=lambda row: row["repaired"])
    least = min(row["terms of (71)"] for row in rows if row.get("terms of (71)", math.nan) > 0)
    last = next(row for row in rows if row["panel"] == "rank 1" and row["T"] == 2.0**40)
    notes = [
        f"Full rank, T = {T}: the repaired bound is least, {best['repaired']:.3g} of ||grad f(w^0)||^2, at eta = "
        f"{best['eta']:.3g}, where {best['measured']:.3g} is measured.",
        f"Rank 1, eta = 1/sqrt T, T = 2^40: without reset {last['no reset']:g} for every T, printed bound "
        f"{last['printed']:.3g}; redrawn in every iteration {last['redrawn']:.3g}, its bound {last['repaired']:.3g}.",
        f"With the terms of (71) and c = 3/2 the least bound is {least:.3g} of ||grad f(w^0)||^2.",
    ]
    settings = {"T": T, "c": 1.5, "steps": steps, "runs of FedMUD": n}
    return Result(table, [], settings, notes, seeds=range(n))


@style.styled
def draw_rate(table: Table) -> Figure:
    """Left: full rank, over the step size. Right: rank 1, over T with Remark 1's step size."""
    figure, (full, missing) = style.new_figure(2, height=2.7)
    of = lambda panel: [row for row in table if row["panel"] == panel]
    rows, blue, orange, green, red = of("full rank"), *style.SEQUENCE[:4]
    eta = [row["eta"] for row in rows]
    full.plot(eta, [row["measured"] for row in rows], "o-", color=red, markersize=3.5, label="measured")
    full.plot(eta, [row["repaired"] for row in rows], "--", color=blue, label="repaired, any step")
    full.plot(eta, [row["terms of (71)"] for row in rows], "-.", color=green, label="repaired, terms of (71), c = 3/2")
    full.axhline(1, color="black", linewidth=0.8, label="gradient at the start")
    most = max(row["eta"] for row in rows if row["eta"] <= row["allowed"])
    full.axvline(most, color=green, linestyle=":", linewidth=1, label="largest step of (71)")
    full.set(xscale="log", yscale="log", xlabel=r"$\eta$ ($L_s=1$)", ylim=(None, 1e7))
    full.set_title(f"full rank, T = {int(rows[0]['T'])}")
    full.set_ylabel("mean squared gradient,\nrelative to the start")
    full.legend(loc="upper left")
    rows, runs = of("rank 1"), of("runs")
    T = [row["T"] for row in rows]
    missing.plot(T, [row["no reset"] for row in rows], "-", color=red, label="no reset: measured")
    missing.plot(T, [row["printed"] for row in rows], "k-", linewidth=2, label="no reset: printed bound, c = 3/2")
    missing.plot(T, [row["redrawn"] for row in rows], ":", color=orange, label="U redrawn: exact mean")
    missing.plot(T, [row["repaired"] for row in rows], "--", color=blue, label="U redrawn: repaired bound")
    low, mid, high = ([row[name] for row in runs] for name in ("low", "measured", "high"))
    error = [[m - v for m, v in zip(mid, low)], [v - m for m, v in zip(mid, high)]]
    missing.errorbar([r["T"] for r in runs], mid, error, fmt="s", color=orange, markersize=3, label="U redrawn: FedMUD")
    missing.set(xscale="log", yscale="log", xlabel=r"$T$, with $\eta=1/\sqrt{T}$", ylim=(None, 3e4))
    missing.set_title("rank 1, a gradient that U misses")
    missing.legend(loc="upper right")
    for axes in figure.axes:
        axes.xaxis.set_minor_formatter("")
    return figure


EXTRAS = [
    Item("flss/rank_bound", "What the bounds say about the rank R, and what R does", itself(measure_rank), draw_rank),
    Item("mud/repaired_rate", "Theorem 1 repaired, against measured gradients", measure_rate, draw_rate),
]
