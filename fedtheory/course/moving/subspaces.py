"""Random subspaces: what they have seen of the space and of its curvature, and what new bases do to rounding errors."""

import math
from collections.abc import Callable
from functools import cache

import torch
from matplotlib.figure import Figure

from fedtheory.core.layout import Layout
from fedtheory.course.moving.frame import KEY, Moving
from fedtheory.maps.subspace import Coordinate, Gaussian, Projection, Spherical
from fedtheory.papers import style
from fedtheory.running.records import Table
from fedtheory.theory.fedsub.rates import dual_means, growth_exponent

# Coverage

M, REPEATS = 40, 15
RANKS, TIMES = (1, 2, 4, 8, 16, 32), (1, 2, 3, 5, 8, 12, 20, 40)


@cache
def covered(r: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of M dimensions, in rounds 0 to T, the last of TIMES: (T + 1,) each but the first.

    When a coordinate is first visited in each repeat, (REPEATS, M), T + 1 for never; what is left of a vector, mean
    over repeats, where each round removes what its spherical subspace sees; dimensions outside of the span of all.
    """
    T, layout = TIMES[-1], Layout.single(M)
    since = torch.full((REPEATS, M), T + 1)
    left, outside = torch.zeros(REPEATS, T + 1, dtype=torch.float64), torch.zeros(T + 1, dtype=torch.float64)
    for repeat in range(REPEATS):
        rest = torch.randn(M, generator=KEY.fold("v", repeat).generator(), dtype=torch.float64)
        whole, frames = float(rest.square().sum()), []
        left[repeat, 0] = 1.0
        for t in range(1, T + 1):
            key = KEY.fold("cover", r, repeat, t)
            index = Coordinate(r, "orthonormal").draw(layout, key, torch.float64).index
            since[repeat, index] = since[repeat, index].clamp(max=t)
            P = Spherical(r, "orthonormal").draw(layout, key, torch.float64)
            rest = rest - P.lift(P.project(rest))
            left[repeat, t] = float(rest.square().sum()) / whole
            if repeat == 0 and (not frames or int(outside[t - 1]) > 0):
                frames.append(P.frames[0])
                outside[t] = M - int(torch.linalg.matrix_rank(torch.cat(frames, 1)))
    outside[0] = M
    return since, left.mean(0), outside


def compute_coverage(r: int, t: int) -> Table:
    """Shares that are unseen after each of t rounds, and when each coordinate was first visited."""
    since, left, outside = covered(r)
    rows: Table = [
        {
            "what": "share",
            "round": at,
            "unvisited": float((since > at).double().mean()),
            "left": float(left[at]),
            "outside": float(outside[at]) / M,
            "formula": (1 - r / M) ** at,
        }
        for at in range(t + 1)
    ]
    return rows + [{"what": "coordinate", "number": j, "since": int(at), "t": t} for j, at in enumerate(since[0])]


@style.styled
def draw_coverage(table: Table) -> Figure:
    """Left: which coordinates were visited when. Right: the unseen shares."""
    figure, (left, right) = style.new_figure(2, height=3.2)
    shares = [row for row in table if row["what"] == "share"]
    seen = torch.zeros(M, TIMES[-1])
    for row in table:
        if row["what"] == "coordinate":
            seen[row["number"], row["since"] - 1 : row["t"]] = 1
    left.imshow(
        seen.numpy(),
        aspect="auto",
        origin="lower",
        cmap="Greens",
        vmin=0,
        vmax=1.3,
        extent=(0.5, TIMES[-1] + 0.5, 0, M),
    )
    count = int(seen[:, shares[-1]["round"] - 1].sum())
    left.set(title=f"{count} of {M} coordinates visited (green)", xlabel="rounds", ylabel="coordinate")
    left.grid(visible=False)
    rounds = [row["round"] for row in shares]
    curve = lambda name: [row[name] for row in shares]
    right.plot(rounds, curve("formula"), color="k", linewidth=4, alpha=0.2, label=r"$(1 - r/m)^t$")
    right.plot(rounds, curve("unvisited"), color=style.SEQUENCE[3], label="coordinates not visited")
    right.plot(rounds, curve("left"), "--", color=style.SEQUENCE[2], label="spherical: what is left of a vector")
    right.plot(rounds, curve("outside"), "-.", color=style.SEQUENCE[0], label="spherical: dimensions outside the span")
    for name, color in (("unvisited", style.SEQUENCE[3]), ("left", style.SEQUENCE[2]), ("outside", style.SEQUENCE[0])):
        right.plot(rounds[-1], shares[-1][name], "o", color=color, markersize=4)
    right.set(title="unseen share", xlabel="rounds", ylabel="share", ylim=(-0.03, 1.03), xlim=(-0.8, TIMES[-1] + 0.8))
    style.legend_above(figure, 2)
    return figure


COVERAGE = Moving(
    "coverage",
    "How much of the space random subspaces have seen",
    "After m/r rounds spherical subspaces span everything, yet a share of about (1 - r/m)^t of any vector is still "
    "unseen, and as many coordinates unvisited: subspaces overlap, and coordinates come twice.",
    {"r": RANKS, "t": TIMES},
    compute_coverage,
    draw_coverage,
    start={"r": 4, "t": 12},
    says={"r": "m = 40, rank r", "t": "rounds t"},
)

# Curvature

D, DRAWS = 100, 15
WIDTHS = (100, 50, 20, 10, 5, 2)
SPECTRA: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "one large": lambda i: torch.full_like(i, 0.01).masked_fill(i == 1, 1.0),
    "1/i": lambda i: 1 / i,
    "all alike": torch.ones_like,
}


def compute_curvature(r: int, spectrum: str) -> Table:
    """Eigenvalues of a Hessian H, and of P^T H P for orthonormal P of several ranks, largest of DRAWS draws."""
    values = SPECTRA[spectrum](torch.arange(1, D + 1, dtype=torch.float64))
    H, layout = torch.diag(values), Layout.single(D)
    rows: Table = [{"what": "whole", "at": i, "value": value} for i, value in enumerate(values.tolist(), 1)]
    for rank in WIDTHS:
        frames = [
            Spherical(rank, "orthonormal").draw(layout, KEY.fold("H", rank, t), torch.float64) for t in range(DRAWS)
        ]
        seen = torch.stack([torch.linalg.eigvalsh(P.frames[0].T @ H @ P.frames[0]).flip(0) for P in frames])
        longer = float(values.max() / seen.max())
        rows.append({"what": "step", "ratio": D / rank, "longer": longer, "here": int(rank == r)})
        if rank == r:
            rows += [{"what": "seen", "at": i, "value": value} for i, value in enumerate(seen.mean(0).tolist(), 1)]
    return rows


@style.styled
def draw_curvature(table: Table) -> Figure:
    """Left: curvatures of the space and of the subspace. Right: how much longer a step may be, against m/r."""
    figure, (left, right) = style.new_figure(2, height=3.0)
    whole, seen, steps = ([row for row in table if row["what"] == what] for what in ("whole", "seen", "step"))
    (here,) = (row for row in steps if row["here"])
    blue, red = style.SEQUENCE[0], style.SEQUENCE[3]
    left.plot(
        [row["at"] for row in whole], [row["value"] for row in whole], color="0.6", linewidth=2, label="whole space"
    )
    left.plot(
        [row["at"] for row in seen],
        [row["value"] for row in seen],
        ".-",
        color=blue,
        label=f"subspace, mean of {DRAWS}",
    )
    ratios = [row["ratio"] for row in steps]
    right.plot(
        ratios, [row["longer"] for row in steps], ".-", color=red, label="longest stable step / that of the whole space"
    )
    right.plot(here["ratio"], here["longer"], "o", color=red, markersize=7, markerfacecolor="w")
    right.plot(ratios, ratios, ":", color="k", linewidth=0.8, label="m/r: as many rounds as with the whole space")
    left.set(
        xscale="log",
        yscale="log",
        xlim=(0.9, 115),
        ylim=(5e-3, 1.6),
        xlabel="index, from the largest",
        ylabel="curvature",
    )
    right.set(xscale="log", yscale="log", xlim=(0.9, 56), ylim=(0.8, 80), xlabel="m/r", ylabel="times longer")
    for axes, ticks in ((left, (1, 10, 100)), (right, (1, 2, 5, 10, 20, 50))):
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
    right.set_yticks((1, 2, 5, 10, 20, 50), ("1", "2", "5", "10", "20", "50"))
    style.legend_above(figure, 2)
    return figure


CURVATURE = Moving(
    "curvature",
    "What a subspace does not see, and the longer step that this allows",
    "A message m/r times shorter needs m/r times as many rounds at the same step. The gain is a longer step, since a "
    "random subspace hardly ever holds the steepest direction: much where few curvatures are large, nothing where all "
    "are alike.",
    {"r": WIDTHS, "spectrum": tuple(SPECTRA)},
    compute_curvature,
    draw_curvature,
    start={"r": 20, "spectrum": "1/i"},
    says={"r": "m = 100, rank r", "spectrum": "curvatures"},
)

# Rounding errors

SIDE, LENGTH = 20, 100
BASES: dict[str, type[Projection]] = {"spherical": Spherical, "Gaussian": Gaussian, "coordinate": Coordinate}
BLOW_RANKS = (20, 16, 10, 8, 5, 4, 2)


def compute_rounding(r: int, basis: str) -> Table:
    """The mean dual of FedSub round by round, which is zero in exact arithmetic, in three settings."""
    projection = BASES[basis](r)
    rows: Table = []
    runs = (("printed, float64", torch.float64, "printed"), ("printed, float32", torch.float32, "printed"))
    for name, dtype, form in (*runs, ("form sums, float64", torch.float64, "sums")):
        means = dual_means(projection, dtype, form, LENGTH, m=SIDE)
        means += [math.nan] * (LENGTH - len(means))  # it has left the finite numbers
        rows += [{"what": "run", "name": name, "round": k, "mean dual": value} for k, value in enumerate(means, 1)]
    for name, kind in BASES.items():
        for rank in BLOW_RANKS:
            row = {"what": "growth", "name": name, "ratio": SIDE / rank, "growth": growth_exponent(kind, SIDE, rank)}
            rows.append(row | {"here": int((name, rank) == (basis, r))})
    return rows


@style.styled
def draw_rounding(table: Table) -> Figure:
    """Left: the mean dual and its typical growth. Right: the growth per round against m/r."""
    figure, (left, right) = style.new_figure(2, height=3.2)
    runs = [row for row in table if row["what"] == "run"]
    for place, name in enumerate(dict.fromkeys(row["name"] for row in runs)):
        own = [row for row in runs if row["name"] == name]
        shown = [max(row["mean dual"], 1e-20) for row in own]
        rounds = [row["round"] for row in own]
        left.plot(rounds, shown, style.STYLES[place], color=style.SEQUENCE[place], label=name)
    growth = [row for row in table if row["what"] == "growth"]
    (here,) = (row for row in growth if row["here"])
    for place, name in enumerate(dict.fromkeys(row["name"] for row in growth)):
        own = [row for row in growth if row["name"] == name and math.isfinite(row["growth"])]
        if own:
            x, y = [row["ratio"] for row in own], [row["growth"] for row in own]
            right.plot(x, y, "os^"[place], linestyle="-", markersize=3, color=f"{0.25 * place}", label=f"{name} bases")
    rounds = range(1, LENGTH + 1)
    typical = [10.0 ** max(-17 + here["growth"] * k / math.log(10), -20) for k in rounds]
    left.plot(rounds, typical, color="k", linewidth=4, alpha=0.15, label="typical growth from 1e-17 (formula)")
    shown = max(here["growth"], -0.25)  # minus infinity lies at the lower edge
    right.plot(here["ratio"], shown, "o", color=style.SEQUENCE[3], markersize=8, markerfacecolor="none")
    left.set(yscale="log", ylim=(1e-20, 1e25), xlim=(0, LENGTH), xlabel="rounds", ylabel="length of the mean dual")
    right.set(
        xscale="log", xlim=(0.9, 11.5), ylim=(-0.3, 1.1), xlabel="m/r", ylabel="growth of the logarithm per round"
    )
    right.set_xticks((1, 2, 5, 10), ("1", "2", "5", "10"))
    right.minorticks_off()
    style.legend_above(figure, 3)
    return figure


ROUNDING = Moving(
    "rounding",
    "FedSub's rounding errors, multiplied at every change of basis",
    "The mean of the dual variables is zero in exact arithmetic. As printed, its rounding error grows by a fixed "
    "factor per round, larger for larger m/r; digits only say where it starts. Coordinate bases drop it, and the form "
    "with sums makes it anew.",
    {"r": BLOW_RANKS, "basis": tuple(BASES)},
    compute_rounding,
    draw_rounding,
    start={"r": 10},
    says={"r": "m = 20, rank r", "basis": "bases"},
    values=False,
)

PICTURES = [COVERAGE, CURVATURE, ROUNDING]
