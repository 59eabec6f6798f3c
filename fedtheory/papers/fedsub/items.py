"""FedSub's logistic regression: Figure 1(a)-(c) and Table 1 (paper Sec. 5.1), and what the figure depends on."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.core import loop
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.maps.subspace import Coordinate, Gaussian, Identity, Spherical
from fedtheory.papers import judge, style
from fedtheory.papers.store import Item, Result, Spec, Wants, interval, itself, side_by_side
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.running import meter, verdicts
from fedtheory.running.records import Cell, Table, behind
from fedtheory.theory.fedsub.costs import LAYER, client_costs
from fedtheory.theory.fedsub.printed import LEVELS, LR, RANK, RANKS, TAU, M, methods

NAN = math.nan
RAN = {"quick": "smoke", "paper": "stand-in"}  # the paper does not say what its data are
ROUNDS = {"quick": 400, "paper": 3000}  # K is not printed; in 3000 rounds all plateaus with r >= 10 are reached
QUICK: dict[str, Any] = {"lam": 0.1, "n": 10, "offset": 2.0, "samples": 2000}  # so regular that 400 rounds reach them
RATES = {"quick": 0.1, "paper": LR}

READING = [
    "Data: 30 clusters of 2,000 samples near distinct random hyperplanes {a : w_i^T a = 1}, 0.1 across, standard "
    "normal inside; labels from one logistic model; no regularisation, x^0 = 0 (open point 13).",
    "Constant step size, no clipping, no smoothing of curves (10-12); float64 (20); P new every round (5).",
    "CD: distinct coordinates without signs, times sqrt(m/r); SS: Haar times sqrt(m/r); RD: N(0, 1/r) entries (2-4).",
    "our-SS and our-RD run in form 'sums', the paper's own rewriting (19): as printed they diverge by rounding error "
    "(fedsub/why_nan), which is also what the public code's switch avoids (6).",
    "FedAvg-CD keeps the factor r/m; FedAvg has the same step size and tau (9).",
]


def reading(scale: str) -> list[str]:
    """What the paper leaves open, and how it is read at a scale."""
    small = "Data: 10 clusters of 200 samples near distinct hyperplanes at a distance of 2, lambda = 0.1; rate 0.1."
    return [small, *READING[1:]] if scale == "quick" else list(READING)


def spec(algorithm: Algorithm, seed: int, rounds: int, **options: Any) -> Spec:
    """One run of Fig. 1."""
    return Spec(algorithm, "fedsub", tuple(sorted(options.items())), rounds, seed, every=max(1, rounds // 100))


def at_scale(algorithm: Algorithm, seed: int, scale: str) -> Spec:
    """One run of a scale's problem and length."""
    return spec(algorithm, seed, ROUNDS[scale], **(QUICK if scale == "quick" else {}))


def curves(algorithms: dict[str, Algorithm], seeds: int, scale: str) -> Wants[tuple[Table, dict[str, list[float]]]]:
    """Error over rounds per method, and the plateau: the mean of the last tenth of the records, per seed."""
    wanted = {(n, s): at_scale(a, s, scale) for n, a in algorithms.items() for s in range(seeds)}
    results = yield wanted.values()
    table: Table = []
    plateau: dict[str, list[float]] = {}
    for name in algorithms:
        runs = [results[wanted[name, seed]] for seed in range(seeds)]
        shared = min(len(one["columns"]["round"]) for one in runs)
        for at in range(shared):
            mean, low, high = interval([one["columns"]["error"][at] for one in runs])
            round_ = runs[0]["columns"]["round"][at]
            row = {"method": name, "round": round_, "mean": mean, "low": low, "high": high, "seeds": seeds}
            table.append({**row, **wanted[name, 0].ran()})
        plateau[name] = [math.nan if one["diverged"] else sum(one["columns"]["error"][-10:]) / 10 for one in runs]
    return table, plateau


def settings(rounds: int, algorithms: dict[str, Algorithm]) -> dict[str, Any]:
    return {"rounds": rounds, "methods": {name: repr(algorithm) for name, algorithm in algorithms.items()}}


def falling(result: dict[str, Any]) -> float:
    """How steadily an error falls: the fall of its logarithm in the last third over that in the third before.

    Exact convergence shows as no plateau: about 1. A plateau: about 0. At rounding level: 1.
    """
    errors = result["columns"]["error"]
    early, late, end = errors[len(errors) // 3], errors[2 * len(errors) // 3], errors[-1]
    if end <= 1e-13:
        return 1.0
    before = math.log(early / late)
    return math.log(late / end) / before if before > 0 else 0.0


def steady(cell: str, algorithm: Algorithm, seeds: int, scale: str, region: verdicts.Region) -> Wants[Cell]:
    """Whether an error goes on falling, seed by seed."""
    found = yield from falls(algorithm, seeds, scale)
    said = "fall of the error's logarithm in the last third over that in the third before; a plateau has 0"
    return judge.side(cell, NAN, found, region, RAN[scale], "printed", said)


def falls(algorithm: Algorithm, seeds: int, scale: str) -> Wants[list[float]]:
    """`falling` of every seed."""
    wanted = [at_scale(algorithm, seed, scale) for seed in range(seeds)]
    results = yield wanted
    return [falling(results[one]) for one in wanted]


def lower(
    cell: str, paper: float, below: list[float], above: list[float], scale: str, said: str = "", how: str = "printed"
) -> Cell:
    """One error at the end below another: the ratio, paired by seed."""
    ratios, region = [b / a for a, b in zip(below, above)], verdicts.above(1.0)
    said = "; ".join(["ratio of the mean errors over the last tenth of the rounds", *[said] * bool(said)])
    return judge.side(cell, paper, ratios, region, RAN[scale], how, said, ratio=True, own=below)


DATA_DECIDE = "the level depends on data that the paper does not specify (fedsub/geometry)"


def levels(names: Sequence[str], plateaus: dict[str, list[float]], scale: str) -> list[Cell]:
    """Printed plateaus."""
    cells = []
    for name in names:
        paper = LEVELS[name]
        said = f"ours/paper = {interval(plateaus[name])[0] / paper:.3g}; {DATA_DECIDE}"
        region = verdicts.times(paper)
        cells.append(judge.level(f"{name} (about)", paper, plateaus[name], region, RAN[scale], "printed", None, said))
    return cells


def measure_1a(scale: str, seeds: int) -> Wants[Result]:
    """P = I converges exactly; projections stall; CD is best of the three."""
    of = methods(lr=RATES[scale])
    chosen = {name: of[name] for name in ("our-CD", "our-SS", "our-RD", "our-P=I")}
    table, plateaus = yield from curves(chosen, seeds, scale)
    steadies = {
        "our-P=I": steady("our-P=I (exact convergence)", chosen["our-P=I"], seeds, scale, verdicts.above(0.5)),
        **{
            name: steady(f"{name} (an error remains)", chosen[name], seeds, scale, verdicts.below(0.5))
            for name in ("our-CD", "our-SS", "our-RD")
        },
    }
    falling_on = yield from side_by_side(steadies)
    cells = [
        *falling_on.values(),
        *levels(["our-CD"], plateaus, scale),
        *(lower(f"our-CD below {n}", NAN, plateaus["our-CD"], plateaus[n], scale) for n in ("our-SS", "our-RD")),
    ]
    return Result(table, cells, settings(ROUNDS[scale], chosen), reading(scale))


def measure_1b(scale: str, seeds: int) -> Wants[Result]:
    """Dual variables lower the plateau in the full space and in subspaces."""
    of = methods(lr=RATES[scale])
    chosen = {name: of[name] for name in ("our-CD", "our-P=I", "FedAvg", "FedAvg-CD")}
    table, plateaus = yield from curves(chosen, seeds, scale)
    order = ("our-P=I", "our-CD", "FedAvg-CD", "FedAvg")
    cells = levels(list(LEVELS), plateaus, scale)
    for a, b in pairwise(order):
        paper, said = (100.0, "about 100 in the paper") if (a, b) == ("our-CD", "FedAvg-CD") else (NAN, "")
        cells.append(lower(f"{a} below {b}", paper, plateaus[a], plateaus[b], scale, said))
    return Result(table, cells, settings(ROUNDS[scale], chosen), reading(scale))


def measure_1c(scale: str, seeds: int) -> Wants[Result]:
    """our-CD for several r (the values are not printed): accuracy improves with r."""
    chosen = {f"r={r}": methods(r, RATES[scale])["our-CD"] for r in RANKS}
    table, plateaus = yield from curves(chosen, seeds, scale)
    cells = [
        lower(f"r={b} below r={a}", NAN, plateaus[f"r={b}"], plateaus[f"r={a}"], scale, how="ours")
        for a, b in pairwise(RANKS)
    ]
    notes = [*reading(scale), "r is not printed: 5, 10, 15, 18 of 20."]
    fallen = yield from side_by_side({name: falls(one, seeds, scale) for name, one in chosen.items()})
    going = [name for name, values in fallen.items() if interval(values)[1] > 0.5]
    if going:
        notes.append(f"Still falling at the last round, so not at its plateau: {', '.join(going)}.")
    return Result(table, cells, settings(ROUNDS[scale], chosen), notes)


@style.styled
def draw(table: Table) -> Figure:
    """Error over rounds; on the paper's problem dotted lines are the levels that the text prints."""
    figure, (axes,) = style.new_figure()
    printed = LEVELS if table[0]["ran data"] == "logistic regression" else {}
    for name, how in style.looks(row["method"] for row in table).items():
        rows = [row for row in table if row["method"] == name]
        low = [max(row["low"], row["mean"] / 10) for row in rows]
        style.band(
            axes,
            [r["round"] for r in rows],
            [r["mean"] for r in rows],
            low,
            [r["high"] for r in rows],
            name,
            rows[0]["seeds"],
            how,
        )
        if name in printed:
            axes.axhline(LEVELS[name], color=how.color, linestyle=":", linewidth=1)
            axes.annotate(
                f"paper: {name}",
                (0.99, LEVELS[name]),
                (0, -2),  # below its level: the curves end above it
                axes.get_yaxis_transform(),
                "offset points",
                ha="right",
                va="top",
                fontsize=6,
                color=how.color,
            )
    axes.set(yscale="log", xlabel="communication rounds", ylabel=r"$\|x^k-x^\star\|\,/\,\|x^\star\|$")
    style.caption(figure, table, style.CUT)
    style.legend_above(figure, 2)
    return figure


# Table 1: costs per round and client of one layer, counted.


def measure_costs(scale: str, seeds: int, device: str) -> Result:
    """Uplink from messages, multiplications from PyTorch's counter, memory from live tensors; one layer, m x d.

    C_g and M_g are measured on the same problem (matrix regression, 50 rows per client) and inserted in the formulas.
    """
    m, d, r, rows, tau = LAYER.values()
    problem = MatrixRegression.ssf(0.5, Key(0), n=4, rows=rows, d=m, m=d, batch=None, device=device)
    one = torch.tensor([0])
    full, y = problem.full(one), problem.start()[None]
    gradient = meter.multiplications(lambda: problem.grads(y, full))
    held = meter.peak_bytes(lambda: problem.grads(y, full)) // 8
    width = m * d
    formulas = {
        "FedSub": (r * d, tau * (m * r * d + gradient) + 2 * m * r * d, 3 * r * d + held + 2 * r * m + width),
        "P=I": (width, tau * gradient, 3 * width + held),
        "FedAvg": (width, tau * gradient, width + held),
    }
    algorithms: dict[str, Algorithm] = {
        "FedSub": FedSub(1e-2, tau, Spherical(r)),
        "P=I": FedSub(1e-2, tau, Identity()),
        "FedAvg": FedAvg(1e-2, tau),
    }
    what = {
        "uplink scalars": "counted from the upload",
        "multiplications": "counted in the client's part of a round; the paper's formula with C_g as measured",
        "memory (scalars)": "peak of what the client holds: its round's tensors, x, P, and its dual; M_g as measured",
    }
    table: Table = []
    cells = []
    for name, algorithm in algorithms.items():
        counted = client_costs(algorithm, problem)
        for (quantity, how), paper, ours in zip(what.items(), formulas[name], counted):
            row = {"method": name, "quantity": quantity, "paper": paper, "ours": ours}
            table.append({**row, **behind("matrix regression, 4 clients", "one layer", 1)})
            ratio = ours / paper
            reason = f"{how}; ours/formula = {ratio:.2f}"
            if name == "FedSub" and quantity == "multiplications":
                reason += "; the product P^T grad f, m r d per step, is missing from the formula's terms"
            cells.append(judge.counted(f"{name}: {quantity}", paper, ours, verdicts.times(paper), reason))
    notes = [
        f"One layer, m={m}, d={d}, r={r}, tau={tau}, {rows} rows per client, float64; O-constants are 1.",
        f"Measured: C_g = {gradient} multiplications for the full gradient, M_g = {held} scalars while it is computed. "
        "C_g(rd) = C_g(md) here: the gradient is formed and then projected, not evaluated in factored form.",
        "Downlink, not in the paper's table: see 'down_scalars' in every history.",
    ]
    return Result(table, cells, {**LAYER, "C_g": gradient, "M_g": held}, notes)


@style.styled
def draw_costs(table: Table) -> Figure:
    """Counted costs beside the formulas, each as a fraction of FedAvg's."""
    figure, panels = style.new_figure(2, height=2.4)
    quantities = list(dict.fromkeys(row["quantity"] for row in table))
    names = list(dict.fromkeys(row["method"] for row in table))
    for axes, source, title in zip(
        panels, ("paper", "ours"), ("paper's formulas, cost of a gradient measured", "counted")
    ):
        for place, name in enumerate(names):
            values = []
            for quantity in quantities:
                rows = {row["method"]: row for row in table if row["quantity"] == quantity}
                values.append(rows[name][source] / rows["FedAvg"][source])
            spots = [at + 0.26 * (place - 1) for at in range(len(quantities))]
            bars = axes.bar(spots, values, 0.24, color=style.look(name).color, label=name)
            axes.bar_label(bars, fmt="%.2f", fontsize=5.5)
        axes.set_xticks(range(len(quantities)), [q.replace(" ", "\n", 1) for q in quantities])
        axes.set_title(title)
        axes.set_ylabel("relative to FedAvg")
        axes.grid(axis="x", visible=False)
    style.caption(figure, table)
    style.legend_above(figure, 3)
    return figure


# What Fig. 1's levels depend on.

GEOMETRIES: dict[str, dict[str, Any]] = {
    "offset 1, noise 0.1 (default)": {},
    "offset 0": {"offset": 0.0},
    "offset 3": {"offset": 3.0},
    "noise 0.01": {"noise": 0.01},
    "noise 1 (homogeneous features)": {"noise": 1.0, "offset": 0.0},
    "lambda 0.01": {"lam": 0.01},
    "own labels per cluster, lambda 0.01": {"geometry": "center", "offset": 0.3, "lam": 0.01},
}


def schedules() -> dict[str, dict[str, Algorithm]]:
    """Name -> methods with the step size of the public code's schedule."""
    base = methods()
    steps = {}
    for name in ("our-CD", "FedAvg-CD"):
        algorithm = base[name]
        assert isinstance(algorithm, FedSub)
        steps[name] = FedSubReading(
            LR, TAU, algorithm.projection, dual=algorithm.dual, decay_every=1000, decay_factor=0.1, rescale_dual=True
        )
    return {"constant (paper)": {n: base[n] for n in steps}, "divided by 10 every 1000 rounds": steps}


def measure_geometry(scale: str, seeds: int) -> Wants[Result]:
    """Plateaus of our-CD, FedAvg-CD, FedAvg and P=I when the unspecified parts of the data change; one seed."""
    rounds = 300 if scale == "quick" else ROUNDS[scale]
    chosen = {name: methods()[name] for name in ("our-P=I", "our-CD", "FedAvg-CD", "FedAvg")}
    wanted = {
        (label, name): spec(algorithm, 0, rounds, **options)
        for label, options in GEOMETRIES.items()
        for name, algorithm in chosen.items()
    }
    for label, algorithms in schedules().items():
        for name, algorithm in algorithms.items():
            wanted[f"step {label}", name] = spec(algorithm, 0, rounds)
    results = yield wanted.values()
    table: Table = []
    for (label, name), one in wanted.items():
        result = results[one]
        tail = result["columns"]["error"][-10:]
        value = math.nan if result["diverged"] else sum(tail) / len(tail)
        table.append({"data": label, "method": name, "error": value, **one.ran()})
    notes = [*READING, f"Mean of the last ten of 100 records over {rounds} rounds, one seed per setting."]
    return Result(table, [], {"rounds": rounds, "geometries": GEOMETRIES}, notes, seeds=(0,))


@style.styled
def draw_geometry(table: Table) -> Figure:
    """One line per data setting, one dot per method; vertical lines are the printed levels."""
    labels = list(dict.fromkeys(row["data"] for row in table))
    figure, (axes,) = style.new_figure(columns=2, height=2.8)
    for place, name in enumerate(("our-P=I", "our-CD", "FedAvg-CD", "FedAvg")):
        rows = [row for row in table if row["method"] == name]
        spots = [len(labels) - labels.index(row["data"]) + 0.12 * (1.5 - place) for row in rows]
        values = [max(row["error"], 1e-16) for row in rows]
        how = style.look(name)
        axes.plot(values, spots, how.marker, markersize=4, color=how.color, label=f"{name} (n=1)")
        if name in LEVELS:
            axes.axvline(LEVELS[name], color=how.color, linestyle=":", linewidth=1)
    axes.plot([], [], "k:", label="paper: our-CD 1e-7, FedAvg-CD 1e-5")
    axes.set_yticks(range(len(labels), 0, -1), labels)
    axes.set(xscale="log", xlabel="mean error over the last tenth of the rounds")
    style.caption(figure, table)
    style.legend_above(figure, 3)
    return figure


WHY = {
    "our-SS, printed": lambda: FedSub(LR, TAU, Spherical(RANK)),
    "our-RD, printed": lambda: FedSub(LR, TAU, Gaussian(RANK)),
    "our-CD, printed": lambda: FedSub(LR, TAU, Coordinate(RANK)),
    "our-SS, form sums": lambda: FedSub(LR, TAU, Spherical(RANK), form="sums"),
    "our-SS, not rotated": lambda: FedSubReading(LR, TAU, Spherical(RANK), rotate=False),
}


def measure_why(scale: str, seeds: int, device: str) -> Result:
    """Algorithm 1 as printed, with the projections that satisfy Assumption 1: the mean dual and the error; one seed."""
    problem = LogisticRegression.fedsub(Key(0).fold("data"), device=device)
    root = Key(0)
    table: Table = []
    for name, make in WHY.items():
        algorithm = make()
        state = algorithm.init(problem, problem.start(), root)
        for t in range(251):
            if t % 5 == 0:
                mean = float(torch.linalg.vector_norm(state.own.dual.mean(0)))
                error = problem.error(state.server.x)
                if not (math.isfinite(mean) and math.isfinite(error)):
                    break
                row = {"method": name, "round": t, "error": error, "mean_dual": mean}
                table.append({**row, **spec(algorithm, 0, 250).ran()})
            state, _, _ = loop.play_round(algorithm, problem, state, problem.clients, root.fold("round", t))
    notes = [
        "S = n = 30, float64, one seed. (15) says sum_i Lambda_i = 0; rounding leaves about 1e-17, and line 12 "
        "multiplies it by (P^{k+1})^T P^k. In root mean square that is sqrt(m/r) = 1.41 a round for SS, the grey line, "
        "and sqrt((m+r+1)/r) = 1.76 for RD, whose P^T P is no multiple of I. For CD the factor is m/r on the "
        "coordinates that both rounds keep and 0 on the others, so that errors die out almost surely.",
    ]
    return Result(table, [], {"rounds": 250}, [*READING, *notes], seeds=(0,))


@style.styled
def draw_why(table: Table) -> Figure:
    """Mean dual and error over rounds."""
    figure, (left, right) = style.new_figure(2)
    for name in WHY:
        rows = [row for row in table if row["method"] == name]
        line = style.look(name).line
        rounds = [row["round"] for row in rows]
        left.plot(rounds, [max(row["mean_dual"], 1e-20) for row in rows], **line, label=name)
        right.plot(rounds, [row["error"] for row in rows], **line, label=name)
    rounds = sorted({row["round"] for row in table})
    for name, square, dash in (("SS", M / RANK, "-"), ("RD", (M + RANK + 1) / RANK, "--")):  # in root mean square
        grown = [1e-17 * square ** (t / 2) for t in rounds]
        label = f"${math.sqrt(square):.3g}^k\\,10^{{-17}}$ ({name})"
        left.plot(rounds, grown, "k", linestyle=dash, linewidth=3.0, alpha=0.2, label=label)
    left.set(
        yscale="log", ylim=(1e-20, 1e22), xlabel="communication rounds", ylabel=r"$\|\frac{1}{n}\sum_i\Lambda_i^k\|$"
    )
    style.caption(figure, table, "grey: growth in root mean square; a typical run grows more slowly")
    style.legend_above(figure, 4)
    right.set(yscale="log", ylim=(1e-3, 1e10), xlabel="communication rounds", ylabel="error (n=1)")
    return figure


ITEMS = [
    Item("fedsub/fig1a", "Impact of the projection", measure_1a, draw),
    Item("fedsub/fig1b", "Comparison with baselines", measure_1b, draw),
    Item("fedsub/fig1c", "Impact of the subspace dimension", measure_1c, draw),
    Item("fedsub/table1", "Costs of a round", itself(measure_costs, on_device=True), draw_costs),
]
EXTRAS = [
    Item(
        "fedsub/why_nan",
        "Why the printed dual update diverges for SS and RD",
        itself(measure_why, on_device=True),
        draw_why,
    ),
    Item("fedsub/geometry", "What the levels of Figure 1 depend on", measure_geometry, draw_geometry),
]
