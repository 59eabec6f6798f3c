"""SSF's matrix regression: Figures 1-3, Tables 1-4 (arXiv:2604.25467v1, Sec. 5), and the pictures that explain them."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.ssf import SSF
from fedtheory.core import loop
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.maps.subspace import Spherical
from fedtheory.papers import judge, style
from fedtheory.papers.store import Item, Result, Spec, Wants, interval, itself
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.running import verdicts
from fedtheory.running.records import Cell, Row, Table
from fedtheory.theory.ssf.printed import (
    METHODS,
    MORE,
    NAN,
    NEARLY,
    RATE,
    REFRESH,
    SAMPLED,
    STEPS,
    TABLE2,
    TABLE3,
    TABLE4,
    D,
    final_cell,
    order_cell,
    rate_cell,
)

ROUNDS = {"quick": 1200, "paper": 25_000}
RAN = {"quick": "smoke", "paper": "paper's"}
QUICK: dict[str, Any] = {"d": 20, "m": 5}  # so small that the plateaus are near; r/d as printed
QUICK_RUN = {0.1: (2e-2, 600), 0.5: (2e-2, 600), 2.0: (8e-3, 1000)}  # het -> rate, rounds

READING = [
    "Minibatches: 20 of 50 rows drawn independently (with replacement), fresh in each local step (open point 7).",
    "c^{t+1}: the printed (6) with the S participants in place of N, for SSF and Full-SCAFFOLD (open points 1, 2).",
    "Data: A_i = mu_i + standard normal rows, one standard normal X_true for all clients (open point 9).",
    "FedSub: P P^T = I_r as SSF's own projector, new every 5 rounds; means over the participants; a participant's dual "
    "is rotated by (P^{k+1})^T P^k, an absent client's keeps its coordinates (open points 13-16). ssf/readings shows "
    "the other readings.",
    "x^0, c^0, c_i^0 and duals are zero (3); float64 (20); last iterate (11); data and run redrawn per seed (10).",
]


def method(name: str, lr: float, r: int) -> Algorithm:
    """The paper's four methods as this package reads them."""
    if name == "Full-SCAFFOLD":
        return Scaffold(lr, STEPS, server_control="participants")
    if name == "Full-FedAvg":
        return FedAvg(lr, STEPS)
    if name == "SSF":
        return SSF.haar(lr, STEPS, r)
    return FedSubReading(lr, STEPS, Spherical(r, "orthonormal"), refresh=REFRESH, absent="keep")


def spec(algorithm: Algorithm, het: float, seed: int, rounds: int, points: int = 100, **options: Any) -> Spec:
    """One run on the problem of Table 1."""
    return Spec(
        algorithm,
        "ssf",
        tuple(sorted({"het": het, **options}.items())),
        rounds,
        seed,
        SAMPLED,
        every=max(1, rounds // points),
    )


def small_curves(seeds: int, settings: Sequence[tuple[float, int]]) -> Wants[Result]:
    """The four methods on a fifth of the paper's d, in the settings whose r has a fifth, at rates tuned for it."""
    small = [(het, r * QUICK["d"] // D) for het, r in settings if r * QUICK["d"] >= D]
    wanted = {
        (het, r, name, seed): spec(method(name, QUICK_RUN[het][0], r), het, seed, QUICK_RUN[het][1], **QUICK)
        for het, r in small
        for name in METHODS
        for seed in range(seeds)
    }
    results = yield wanted.values()
    table = [row for het, r in small for name in METHODS for row in rows_of(wanted, results, het, r, name, seeds)]
    said = {"rate and rounds": {str(het): run for het, run in QUICK_RUN.items()}, **QUICK}
    return Result(table, [], said, list(READING))


Wanted = dict[tuple[float, int, str, int], Spec]  # het, r, method, seed


def rows_of(wanted: Wanted, results: dict[Spec, dict[str, Any]], het: float, r: int, name: str, seeds: int) -> Table:
    """A method's curve in one setting: mean and interval over seeds, by round."""
    runs = [results[wanted[het, r, name, seed]] for seed in range(seeds)]
    table: Table = []
    for at in range(min(len(one["columns"]["round"]) for one in runs)):
        numbers = dict(zip(("mean", "low", "high"), interval([one["columns"]["error"][at] for one in runs])))
        here = {"het": het, "r": r, "method": name, "round": runs[0]["columns"]["round"][at]}
        table.append({**here, **numbers, "seeds": seeds, **wanted[het, r, name, 0].ran()})
    return table


def measure_cells(
    scale: str, seeds: int, printed: dict[tuple[float, int], tuple], orders: bool = True
) -> Wants[Result]:
    """Run the four methods in the given (het, r) settings and put the final errors beside the printed ones; `orders`:
    and the printed order of methods that follow each other; of SSF and FedSub, too, at r = 20, as in Sec. 5.2.1.
    """
    if scale == "quick":
        result = yield from small_curves(seeds, list(printed))
        return result
    rounds = ROUNDS[scale]
    wanted: Wanted = {
        (het, r, name, seed): spec(method(name, RATE[het], r), het, seed, rounds)
        for het, r in printed
        for name in METHODS
        for seed in range(seeds)
    }
    results = yield wanted.values()
    table: Table = []
    cells: list[Cell] = []
    for (het, r), values in printed.items():
        ours: dict[str, list[float]] = {}
        for name in METHODS:
            runs = [results[wanted[het, r, name, seed]] for seed in range(seeds)]
            ours[name] = [final(one) for one in runs]
            table += rows_of(wanted, results, het, r, name, seeds)
        row: dict[str, float] = dict(zip(METHODS, values))
        cells += [error(final_cell(het, r, name), name, row[name], ours[name], scale) for name in METHODS]
        finite = sorted((name for name in METHODS if not math.isnan(row[name])), key=lambda name: row[name])
        own = [tuple(name for name in finite if name in ("SSF", "FedSub"))] if r == 20 else []
        for a, b in dict.fromkeys([*pairwise(finite), *own] if orders else []):
            cells.append(order(order_cell(het, r, a, b), a, b, row, ours, scale))
    settings = {
        "rounds": rounds,
        "sampled": SAMPLED,
        "local_steps": STEPS,
        "learning rates": {str(k): v for k, v in RATE.items()},
        "methods": {
            f"{name}, het={het}, r={r}": repr(method(name, RATE[het], r)) for het, r in printed for name in METHODS
        },
    }
    return Result(table, cells, settings, list(READING))


def final(result: dict[str, Any]) -> float:
    """The last iterate's relative error; NaN for a run that diverged."""
    return NAN if result["diverged"] else result["columns"]["error"][-1]


def error(cell: str, name: str, paper: float, ours: list[float], scale: str) -> Cell:
    """A printed final error beside ours."""
    if math.isnan(paper):
        said = (
            "with P P^T = I_r the rotation (P')^T P contracts the dual; with FedSub's own scale the error grows "
            "without bound at r = 5, 20 and 50 (ssf/why_nan, ssf/readings); where absent clients go on stepping their "
            "duals with their last endpoints, it diverges at r = 50 and not at r <= 20: with a basis every five rounds "
            "(Table 1) where the endpoints turn with it, at other levels (ssf/readings), with one every round at the "
            "printed orders (ssf/stale)"
        )
        return judge.diverges(cell, ours, RAN[scale], "printed", said)
    said = f"ours/paper = {interval(ours)[0] / paper:.2f}"
    if name == "FedSub":
        said += "; the level depends on readings of FedSub that the paper leaves open: see ssf/readings"
    return judge.level(cell, paper, ours, verdicts.times(paper), RAN[scale], "printed", None, said)


def order(cell: str, low: str, high: str, row: dict[str, float], ours: dict[str, list[float]], scale: str) -> Cell:
    """Two methods whose printed errors follow each other: the ratio of the errors, paired by seed."""
    ratios = [b / a for a, b in zip(ours[low], ours[high])]
    printed, said = row[high] / row[low], "ratio of the errors"
    region = verdicts.ordered(printed)
    said += "; printed as alike" if region is verdicts.ALIKE else ""
    return judge.side(cell, printed, ratios, region, RAN[scale], "printed", said, ratio=True, own=ours[low])


def printed_for(row: Row) -> tuple[float, ...] | None:
    """What Tables 2 to 4 print for a row's setting; None on another problem than the paper's."""
    own = row["ran data"] == f"matrix regression, het = {row['het']}"
    return {**TABLE3, **TABLE4, **TABLE2}[row["het"], row["r"]] if own else None


@style.styled
def draw_curves(table: Table) -> Figure:
    """Relative error over rounds, with the printed final values as diamonds at the right edge."""
    figure, (axes,) = style.new_figure()
    het, r = table[0]["het"], table[0]["r"]
    own = printed_for(table[0])
    printed, d = own or [NAN] * len(METHODS), D if own else QUICK["d"]
    last = max(row["round"] for row in table)
    for name, paper in zip(METHODS, printed):
        rows = [row for row in table if row["method"] == name]
        style.band(axes, *columns(rows), name, rows[0]["seeds"])
        if not math.isnan(paper):
            style.paper_mark(axes, last, paper, name)
    missing = [name for name, paper in zip(METHODS, own or ()) if math.isnan(paper)]
    if own:
        axes.plot([], [], "kD", markersize=4.5, markerfacecolor="none", label="paper, T = 25,000")
    for name in missing:
        axes.plot([], [], " ", label=f"the paper prints NaN for {name}")
    axes.set(yscale="log", xlabel="communication rounds", ylabel=r"$\|X_t-X^*\|_F\,/\,\|X^*\|_F$")
    axes.set_title(f"het = {het}, r = {r} (r/d = {r / d:g})")
    style.caption(figure, table, style.CUT)
    style.legend_above(figure, 2)
    return figure


def columns(rows: list[Row]) -> tuple[list, list, list, list]:
    """round, mean, low, high; the band stays above zero on a log axis."""
    low = [max(row["low"], row["mean"] / 10) for row in rows]
    return [row["round"] for row in rows], [row["mean"] for row in rows], low, [row["high"] for row in rows]


@style.styled
def draw_finals(table: Table) -> Figure:
    """Final errors by setting: ours with intervals, the paper's as diamonds."""
    settings = list(dict.fromkeys((row["het"], row["r"]) for row in table))
    figure, (axes,) = style.new_figure()
    own = printed_for(table[0])
    for place, name in enumerate(METHODS):
        shift = 0.16 * (place - 1.5)
        color, mark = style.look(name).color, style.look(name).marker
        for at, setting in enumerate(settings):
            rows = [row for row in table if row["method"] == name and (row["het"], row["r"]) == setting]
            last = max(rows, key=lambda row: row["round"])
            error = [[max(last["mean"] - last["low"], 0)], [last["high"] - last["mean"]]]
            label = f"{name} (n={last['seeds']})" if at == 0 else None
            axes.errorbar(
                [at + shift], [last["mean"]], error, fmt=mark, markersize=3.5, color=color, capsize=2, label=label
            )
            paper = (printed_for(last) or [NAN] * len(METHODS))[place]
            if not math.isnan(paper):
                style.paper_mark(axes, at + shift, paper, name)
    if own:
        axes.plot([], [], "kD", markersize=4.5, markerfacecolor="none", label="paper (no mark: it prints NaN)")
    names = [f"het={het}\nr={r}" for het, r in settings]
    axes.set_xticks(range(len(settings)), names)
    axes.set(yscale="log", ylabel="final relative error")
    if own:
        axes.set_title(f"T = {max(row['round'] for row in table):,} rounds here, 25,000 in the paper")
    style.caption(figure, table)
    style.legend_above(figure, 2)
    return figure


def measure_rates(scale: str, seeds: int) -> Wants[Result]:
    """The paper's search: Full-SCAFFOLD, 500 rounds, four rates, lowest final error wins; divergence detected."""
    grid = (1e-4, 1e-3, 1e-2, 1e-1)
    wanted = {
        (het, lr, seed): spec(Scaffold(lr, STEPS, server_control="participants"), het, seed, 500)
        for het in RATE
        for lr in grid
        for seed in range(seeds)
    }
    results = yield wanted.values()
    table: Table = []
    cells = []
    for het, paper in RATE.items():
        chosen = []
        for seed in range(seeds):
            errors = {lr: final(results[wanted[het, lr, seed]]) for lr in grid}
            chosen.append(min((lr for lr in grid if errors[lr] == errors[lr]), key=lambda lr: errors[lr]))
        for lr in grid:
            finals = [final(results[wanted[het, lr, seed]]) for seed in range(seeds)]
            mean, low, high = interval(finals)
            row = {"het": het, "lr": lr, "mean": mean, "low": low, "high": high, "seeds": seeds}
            table.append({**row, **wanted[het, lr, 0].ran()})
        said = f"chosen in {sum(lr == paper for lr in chosen)} of {seeds} seeds"
        region = verdicts.times(paper, 1.01)
        cells.append(judge.level(rate_cell(het), paper, chosen, region, RAN[scale], "printed", None, said))
    return Result(table, cells, {"grid": grid, "rounds": 500}, list(READING))


@style.styled
def draw_rates(table: Table) -> Figure:
    """Final error of the search over the grid of rates."""
    figure, (axes,) = style.new_figure()
    for place, het in enumerate(RATE):
        rows = [row for row in table if row["het"] == het and row["mean"] == row["mean"]]
        color = style.SEQUENCE[place]
        mean = [row["mean"] for row in rows]
        reach = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
        label = f"het = {het} (n={rows[0]['seeds']})"
        axes.errorbar([row["lr"] for row in rows], mean, reach, fmt="o-", markersize=4, color=color, label=label)
        lost = [row["lr"] for row in table if row["het"] == het and row["mean"] != row["mean"]]
        height = [0.96 - 0.07 * place] * len(lost)
        axes.plot(lost, height, "x", color=color, transform=axes.get_xaxis_transform())
        axes.axvline(RATE[het] * (1 + 0.06 * (place - 1)), color=color, linestyle=":", linewidth=1)
    axes.plot([], [], "k:", label="chosen in the paper")
    axes.plot([], [], "kx", label="a run diverged")
    axes.set(xscale="log", yscale="log", xlabel=r"local rate $\eta_\ell$", ylabel="relative error after 500 rounds")
    style.caption(figure, table, "method: Full-SCAFFOLD", "no point: a run diverged")
    style.legend_above(figure, 2)
    return figure


def measure_text(scale: str, seeds: int) -> Wants[Result]:
    """Table 3 and the ratios that its text states."""
    result = yield from measure_cells(scale, seeds, TABLE3)
    if scale == "quick":
        return result
    wanted: dict[tuple[str, int, int], Spec] = {
        (name, r, seed): spec(method(name, RATE[2.0], r), 2.0, seed, ROUNDS[scale])
        for name, r in (("Full-SCAFFOLD", 1), *((name, r) for name in ("FedSub", "SSF") for r in (1, 5, 10)))
        for seed in range(seeds)
    }
    results = yield wanted.values()
    result.cells += text_cells(lambda name, r: [final(results[wanted[name, r, seed]]) for seed in range(seeds)], scale)
    return result


def text_cells(finals: Callable[[str, int], list[float]], scale: str) -> list[Cell]:
    """The ratios of final errors at het = 2 that the text of Sec. 5.2.2 states; `finals`: of (method, r), by seed."""
    stated = [
        (MORE, 100.0, verdicts.above(100.0), ("SSF", 1), ("Full-SCAFFOLD", 1)),
        (NEARLY, 36.0, verdicts.times(36.0), ("SSF", 1), ("SSF", 5)),
    ]
    for r in (1, 5, 10):
        printed = dict(zip(METHODS, TABLE3[2.0, r]))
        text, paper = f"text: FedSub r={r} / SSF r={r} (comparable)", printed["FedSub"] / printed["SSF"]
        stated.append((text, paper, verdicts.ALIKE, ("FedSub", r), ("SSF", r)))
    cells = []
    for text, paper, region, above, below in stated:
        ratios = [a / b for a, b in zip(finals(*above), finals(*below))]
        said = f"ours/paper = {interval(ratios)[0] / paper:.2f}"
        said = "comparable: within a factor of 1.5" if region is verdicts.ALIKE else said
        cells.append(judge.side(text, paper, ratios, region, RAN[scale], "printed", said, ratio=True))
    return cells


# Why FedSub's own scale diverges, and how to switch it off.

WHY_RANKS = (5, 20, 50)


def measure_why(scale: str, seeds: int, device: str) -> Result:
    """FedSub with P^T P = (d/r) I, with and without the form that keeps sum_i Lambda_i = 0: error and ||mean Lambda||.

    Exact arithmetic keeps the mean dual at zero: participants' duals sum to what they summed to before (15). Rounding
    leaves about 1e-16, and every change of basis multiplies a vector by (P^{k+1})^T P^k, which stretches it by
    sqrt(d/r) on average. That is the line drawn beside the measured one. One seed: the growth is not an estimate.
    """
    rounds, every = (1000, 10) if scale == "quick" else (2500, 10)
    problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), device=device)
    table: Table = []
    for r in WHY_RANKS:
        for form in ("printed", "sums"):
            algorithm = FedSubReading(RATE[0.5], STEPS, Spherical(r), refresh=REFRESH, form=form)
            of = spec(algorithm, 0.5, 0, rounds).ran()
            table += [row | of for row in trace(algorithm, problem, rounds, every, {"r": r, "form": form})]
    notes = [
        "P^T P = (d/r) I (FedSub, Assumption 1), het = 0.5, float64, S = 10 of 20, P new every 5 rounds, one seed.",
        "Predicted: 1e-16 * (d/r)^(t / (2 * 5)), no fitted constant.",
        "form='sums' sends U_i = -eta sum_t g_i instead of B_i (the paper's (13)-(19)): same bytes, no growth. With "
        "all clients it is the same algorithm; with 10 of 20 sampled, as here, another one, whose dual stays bounded.",
    ]
    return Result(table, [], {"rounds": rounds, "ranks": WHY_RANKS}, notes, seeds=(0,))


def trace(algorithm: FedSub, problem: MatrixRegression, rounds: int, every: int, labels: Row) -> Table:
    """Error and norm of the mean dual along a run, until it leaves the finite numbers."""
    root = Key(0)
    state = algorithm.init(problem, problem.start(), root)
    rows: Table = []
    for t in range(rounds + 1):
        if t % every == 0:
            error = problem.error(state.server.x)
            mean = float(torch.linalg.vector_norm(state.own.dual.mean(0)))
            if not (math.isfinite(error) and math.isfinite(mean)):
                break
            typical = float(torch.linalg.vector_norm(state.own.dual, dim=1).mean())
            rows.append({**labels, "round": t, "error": error, "mean_dual": mean, "dual": typical})
        key = root.fold("round", t)
        clients = loop.sample_clients(problem.n, SAMPLED, key.fold("clients"))
        state, _, _ = loop.play_round(algorithm, problem, state, clients, key)
    return rows


@style.styled
def draw_why(table: Table) -> Figure:
    """Left: the mean dual, measured and predicted. Right: the error, with the instability on and off."""
    figure, (left, right) = style.new_figure(2)
    for place, r in enumerate(WHY_RANKS):
        color = style.SEQUENCE[place]
        for form, line, said in (("printed", "-", "as printed"), ("sums", ":", "sums sent")):
            rows = [row for row in table if row["r"] == r and row["form"] == form]
            rounds = [row["round"] for row in rows]
            label = f"r = {r}, {said}"
            right.plot(rounds, [row["error"] for row in rows], line, color=color, label=label)
            if form == "printed":
                left.plot(rounds, [max(row["mean_dual"], 1e-19) for row in rows], line, color=color, label=label)
                predicted = [min(1e-16 * (D / r) ** (t / (2 * REFRESH)), 1e80) for t in rounds]
                left.plot(rounds, predicted, color=color, linewidth=3.5, alpha=0.2)
    left.plot([], [], "k", linewidth=3.5, alpha=0.2, label=r"predicted, $10^{-16}(d/r)^{t/10}$")
    left.set(
        yscale="log", ylim=(1e-19, 1e30), xlabel="communication rounds", ylabel=r"$\|\frac{1}{N}\sum_i\Lambda_i\|$"
    )
    left.set_title("rounding error of the mean dual")
    right.set(yscale="log", ylim=(1e-3, 1e10), xlabel="communication rounds", ylabel="relative error")
    right.set_title("the same runs: finite with sums sent (n=1)")
    style.legend_above(figure, 4)
    return figure


# What the readings that the paper leaves open change.


def readings() -> dict[str, tuple[Callable[[float, int], Algorithm], dict[str, Any]]]:
    """Name -> (algorithm of (rate, r), problem options)."""

    def fedsub(scale: str = "orthonormal", **options: Any) -> Callable[[float, int], Algorithm]:
        return lambda lr, r: FedSubReading(lr, STEPS, Spherical(r, scale), **{"refresh": REFRESH, **options})

    over_all = lambda lr, r: SSFReading.haar(lr, STEPS, r, server_control="all")
    without = {"replacement": False}
    return {
        "Full-FedAvg": (lambda lr, r: FedAvg(lr, STEPS), {}),
        "Full-FedAvg, batch without replacement": (lambda lr, r: FedAvg(lr, STEPS), without),
        "Full-SCAFFOLD, c over participants": (lambda lr, r: Scaffold(lr, STEPS, server_control="participants"), {}),
        "Full-SCAFFOLD, c over all": (lambda lr, r: Scaffold(lr, STEPS), {}),
        "Full-SCAFFOLD, c over all, batch without repl.": (lambda lr, r: Scaffold(lr, STEPS), without),
        "SSF, c over participants": (lambda lr, r: SSF.haar(lr, STEPS, r), {}),
        "SSF, c over all": (over_all, {}),
        "SSF, c over all, batch without repl.": (over_all, without),
        "FedSub, P P^T = I, stored endpoints": (fedsub(dual_mean="stored"), {}),
        "FedSub, P P^T = I": (fedsub(), {}),
        "FedSub, P P^T = I, new P each round": (fedsub(refresh=1), {}),
        "FedSub, P P^T = I, dual not rotated": (fedsub(rotate=False), {}),
        "FedSub, P P^T = I, absent keep": (fedsub(absent="keep"), {}),
        "FedSub, P P^T = I, absent step": (fedsub(absent="step"), {}),
        STEPPED: (fedsub(absent="step turned"), {}),
        "FedSub, P P^T = I, form sums": (fedsub(form="sums"), {}),
        "FedSub, P^T P = (d/r) I": (fedsub("isotropic"), {}),
        "FedSub, P^T P = (d/r) I, new P each round": (fedsub("isotropic", refresh=1), {}),
        "FedSub, P^T P = (d/r) I, dual not rotated": (fedsub("isotropic", rotate=False), {}),
        "FedSub, P^T P = (d/r) I, no r/m": (fedsub("isotropic", gradient_factor=False), {}),
        "FedSub, P^T P = (d/r) I, form sums": (fedsub("isotropic", form="sums"), {}),
    }


READING_SETTINGS = ((0.5, 20), (0.5, 50))
STEPPED = "FedSub, P P^T = I, absent step turned"  # the reading that is run in all printed settings, for all rounds


def measure_readings(scale: str, seeds: int, rows: Sequence[Row] = ()) -> Wants[Result]:
    """Every reading at het = 0.5 and r = 20, 50, where 5,000 rounds reach the plateau; one seed, last ten records.

    STEPPED in every setting of Tables 2 to 4, at the length of the tables: what it shows is where FedSub diverges.

    Args:
        rows: of a finished table: what they hold is not run again.
    """
    rounds = 600 if scale == "quick" else 5000
    printed = {**TABLE3, **TABLE4, **TABLE2}
    held = {(row["reading"], row["het"], row["r"]): row for row in rows}
    wanted: dict[tuple[str, float, int], Spec | None] = {}
    for name, (make, options) in readings().items():
        for het, r in printed if name == STEPPED else READING_SETTINGS:
            length = ROUNDS[scale] if name == STEPPED else rounds
            one = spec(make(RATE[het], r), het, 0, length, **options)
            wanted[name, het, r] = None if (name, het, r) in held else one
    results = yield (one for one in wanted.values() if one is not None)
    table: Table = []
    for (name, het, r), one in wanted.items():
        if one is None:
            table.append(held[name, het, r])
            continue
        result = results[one]
        tail = result["columns"]["error"][-10:]
        paper = printed[het, r][METHODS.index(name.partition(",")[0])]
        ours = NAN if result["diverged"] else sum(tail) / len(tail)
        at = result["diverged"][0] if result["diverged"] else -1
        table.append(
            {"reading": name, "het": het, "r": r, "paper": paper, "ours": ours, "diverged_at": at, **one.ran()}
        )
    notes = [*READING, "Mean of the last ten records of one run per reading and setting; -1: it did not diverge."]
    settings = {"rounds": rounds, f"rounds of {STEPPED}": ROUNDS[scale]}
    return Result(table, [], settings, notes, seeds=(0,))


@style.styled
def draw_readings(table: Table) -> Figure:
    """Left, a line per reading: ours (dots) and the printed value (diamonds). Right: STEPPED, all settings."""
    figure, (left, right) = style.new_figure(2, columns=3, height=3.6)
    compared = [row for row in table if (row["het"], row["r"]) in READING_SETTINGS]
    names = list(dict.fromkeys(row["reading"] for row in compared))
    high = 0.2
    beyond: dict[str, list[str]] = {name: [] for name in names}
    for place, r in enumerate((20, 50)):
        color = style.SEQUENCE[place]
        for row in (row for row in compared if row["r"] == r):
            y = len(names) - names.index(row["reading"]) + 0.18 * (0.5 - place)
            if row["ours"] == row["ours"] and row["ours"] < high:
                left.plot([row["ours"]], [y], "o", markersize=4, color=color)
            else:
                beyond[row["reading"]].append(f"r={r}: {beyond_text(row, high)}")
            if row["paper"] == row["paper"]:
                left.plot([row["paper"]], [y], "D", markersize=5, markerfacecolor="none", color=color)
        left.plot([], [], "o", color=color, label=f"ours, r = {r} (n=1)")
    for name, texts in beyond.items():
        y = len(names) - names.index(name)
        left.text(high * 0.98, y, ", ".join(texts), fontsize=5.5, va="center", ha="right")
    left.plot([], [], "kD", markerfacecolor="none", label="paper (it prints NaN for FedSub, r = 50)")
    left.plot([], [], " ", label="*: as in Tables 2 to 4")
    left.set_yticks(range(len(names), 0, -1), [_in_words(name) for name in names])
    left.set(xscale="log", xlim=(4e-3, high), xlabel="plateau of the relative error, het = 0.5")
    left.tick_params(axis="y", labelsize=6)
    stepped = sorted((row for row in table if row["reading"] == STEPPED), key=lambda row: (row["het"], row["r"]))
    for at, row in enumerate(stepped):
        if row["ours"] == row["ours"]:
            right.plot([at], [row["ours"]], "ko", markersize=4)
        else:
            place, text = right.get_xaxis_transform(), beyond_text(row, math.inf)
            right.text(at, 0.97, text, transform=place, fontsize=5.5, rotation=90, va="top", ha="center")
        if row["paper"] == row["paper"]:
            right.plot([at], [row["paper"]], "kD", markersize=5, markerfacecolor="none")
    right.set_xticks(range(len(stepped)), [f"{row['het']:g}\n{row['r']}" for row in stepped])
    right.set(
        yscale="log",
        xlim=(-0.5, len(stepped) - 0.5),
        ylim=(2e-3, 1),
        xlabel="het (above) and r (below)",
        ylabel="relative error at the end",
    )
    right.set_title(
        f"FedSub, absent clients step on and turn; {max(row['ran rounds'] for row in stepped):,} rounds (n=1)"
    )
    style.legend_above(figure, 4)
    return figure


_IN_WORDS = {
    "c over participants": "c: mean over participants",
    "c over all": "c: mean over all clients",
    "repl.": "replacement",
    "absent keep": "absent clients' duals stay",
    "absent step turned": "absent clients step on, turned",
    "absent step": "absent clients step on",
    "stored endpoints": "mean over all last endpoints",
    "form sums": "sums sent",
    "no r/m": "without r/m",
}


def _in_words(name: str) -> str:
    """A reading for who has not seen its options; a star where the tables have it."""
    own = [f"{part}, c over participants" for part in ("Full-SCAFFOLD", "SSF")]
    own += ["Full-FedAvg", "FedSub, P P^T = I, absent keep"]
    said = name
    for one, words in _IN_WORDS.items():
        said = said.replace(one, words)
    return f"{said} *" if name in own else said


def beyond_text(row: Row, high: float) -> str:
    """What is written where there is no dot."""
    return f"> {high:g}" if row["ours"] == row["ours"] else f"NaN in round {row['diverged_at']}"


def _curves(name: str, title: str, setting: tuple[float, int], printed: dict) -> Item:
    def measure(scale: str, seeds: int) -> Wants[Result]:
        return measure_cells(scale, seeds, {setting: printed[setting]}, False)

    return Item(name, title, measure, draw_curves)


def _finals(name: str, title: str, printed: dict) -> Item:
    def measure(scale: str, seeds: int) -> Wants[Result]:
        return measure_cells(scale, seeds, printed)

    return Item(name, title, measure, draw_finals)


ITEMS = [
    _curves("ssf/fig1a", "Convergence at low heterogeneity, r = 20", (0.1, 20), TABLE2),
    _curves("ssf/fig1b", "Convergence at medium heterogeneity, r = 20", (0.5, 20), TABLE2),
    _curves("ssf/fig1c", "Convergence at high heterogeneity, r = 20", (2.0, 20), TABLE2),
    _curves("ssf/fig2a", "Convergence at high heterogeneity, r = 10", (2.0, 10), TABLE3),
    _curves("ssf/fig2b", "Convergence at high heterogeneity, r = 20", (2.0, 20), TABLE3),
    _curves("ssf/fig2c", "Convergence at high heterogeneity, r = 50", (2.0, 50), TABLE3),
    _curves("ssf/fig3", "FedSub's stability at r = 50, medium heterogeneity", (0.5, 50), TABLE4),
    Item("ssf/table1", "Settings and the learning-rate search", measure_rates, draw_rates),
    _finals("ssf/table2", "Final relative error at r = 20", TABLE2),
    Item("ssf/table3", "Final relative error at high heterogeneity", measure_text, draw_finals),
    _finals("ssf/table4", "Final relative error at r = 50", TABLE4),
]
EXTRAS = [
    Item(
        "ssf/why_nan",
        "Why FedSub's scale diverges, and how to switch it off",
        itself(measure_why, on_device=True),
        draw_why,
    ),
    Item("ssf/readings", "What each reading of the open points changes", measure_readings, draw_readings, grows=True),
]
