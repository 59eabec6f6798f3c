"""When control variates pay: SSF against the same subspace method without memory, at the same bytes."""

import math
from itertools import accumulate

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.key import Key
from fedtheory.maps.subspace import Spherical
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each
from fedtheory.papers.use.common import SCALES, filled, middle, of, squares
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Row, Table, behind
from fedtheory.theory import rules
from fedtheory.theory.estimate import Estimate

N, D, K = 10, 20, 5
MEMORIES = ("without", "with")
ROUNDS = {"quick": 60, "medium": 250}  # of SSF; twice as many without memory, for the same bytes
CASES = {  # curvatures, share, K L eta, noise sigma
    "quick": (("different", 1.0, 1.0, 0.0), ("alike", 1.0, 1.0, 0.0)),
    "medium": (
        *(("different", share, q, 0.0) for share in (0.25, 1.0) for q in (0.3, 1.0)),
        ("alike", 1.0, 1.0, 0.0),
        *(("different", 1.0, 1.0, sigma) for sigma in (0.3, 1.0, 3.0)),
    ),
}


def problem(curvatures: str, sigma: float, seed: int) -> Quadratic:
    """Ten clients in 20 dimensions, curvatures 0.1 to 1: each client's own, or the same matrix for all."""
    made = Quadratic.random(N, D, Key(seed).fold("data"), sigma=sigma)
    return (
        made if curvatures == "different" else Quadratic(made.H[:1].expand(N, -1, -1).clone(), made.b, noise=made.noise)
    )


def sizes(made: Quadratic, sigma: float) -> Estimate:
    """What the rule asks of a problem, at the start: zeta^2 is taken there, and in x*, the larger one."""

    def apart(x: torch.Tensor) -> tuple[float, float]:
        grads = made.grads(x.expand(N, -1), made.full(made.clients))
        return float(grads.square().sum(1).mean()), float((grads - grads.mean(0)).square().sum(1).mean())

    constants, x = made.constants, made.start()
    assert constants.L is not None
    assert constants.x_star is not None
    assert constants.f_star is not None
    start2, zeta2 = apart(x)
    zeta2 = max(zeta2, apart(constants.x_star)[1])
    gap = made.loss(x) - constants.f_star
    unread = {"effective": float(D), "sample_L": 0.0, "mu": 0.0}
    return Estimate(L=constants.L, gap=gap, start2=start2, zeta2=zeta2, sigma2=sigma**2, **unread)


def averages(values: list[float]) -> list[float]:
    """Of the first 1, 2, ... values."""
    return [total / (t + 1) for t, total in enumerate(accumulate(values))]


def pays_after(memory: list[float], plain: list[float]) -> float:
    """Rounds after which the average with memory stays below that without, of twice the rounds; infinite: not here."""
    late = [t for t, value in enumerate(memory) if value >= plain[2 * t + 1]]
    last = late[-1] + 1 if late else 0
    return float(last + 1) if last < len(memory) else math.inf


def rows_of(case: tuple[str, float, float, float], scale: str, seeds: int) -> list[Row]:
    """One row per case, with what the rule and the runs say; and the first seed's curves."""
    curvatures, share, q, sigma = case
    T, r, found, rule, curves, ends = ROUNDS[scale], round(share * D), [], [], [], []
    for seed in range(seeds):
        made = problem(curvatures, sigma, seed)
        known = sizes(made, sigma)
        lr = q / (K * known.L)
        rule.append(rules.controls_pay_after(known, q, share, N, K))
        memory = averages(squares(SSF.haar(lr, K, r), made, T, seed))
        plain = averages(squares(FedSub(lr, K, Spherical(r), dual=False), made, 2 * T, seed))
        found.append(pays_after(memory, plain))
        ends.append(memory[-1] / plain[-1])
        curves.append((memory, plain))
    row: Row = {"panel": "case", "curvatures": curvatures, "share": share, "q": q, "sigma": sigma, "seeds": seeds}
    row |= {
        "found": sorted(found)[seeds // 2],
        "first": min(found),
        "last": max(found),
        "rule": sorted(rule)[seeds // 2],
    }
    row |= dict(zip(("end ratio", "low", "high"), middle(ends))) | behind("quadratics", "none", 2 * T)
    rows = [row]
    for memory, values in zip(MEMORIES, ([plain for _, plain in curves], [own for own, _ in curves])):
        step = 2 if memory == "without" else 1
        marks = sorted({round(T ** (i / 30)) for i in range(31)})
        for t in marks:
            mean, low, high = middle([curve[step * t - 1] for curve in values])
            point: Row = {"panel": "curve", "memory": memory, "t": t, "mean": mean, "low": low, "high": high}
            rows.append(row | point)
    return rows


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Every case: average squared gradients at the same bytes."""
    found = yield from each(rows_of, [(case, scale, seeds) for case in CASES[scale]])
    table = filled([row for rows in found for row in rows])
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    settings = {"N, d, K": [N, D, K], "rounds with memory": ROUNDS[scale], "without": 2 * ROUNDS[scale]}
    return Result(table, [], settings, notes)


def named(row: Row) -> str:
    return f"{row['curvatures']}, share {row['share']:g}, q {row['q']:g}, sigma {row['sigma']:g}"


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, section 4."""
    said: dict[str, float] = {}
    for row in of(table, panel="case"):
        said |= {f"{named(row)}: rule": row["rule"], f"{named(row)}: found": row["found"]}
        said |= {f"{named(row)}: end ratio": row["end ratio"]}
        said |= {f"{named(row)}: end ratio, low": row["low"], f"{named(row)}: end ratio, high": row["high"]}
    return said


@style.styled
def draw(table: Table) -> Figure:
    """Left: averages at the same bytes for the first cases at share 1. Right: rounds after which memory pays."""
    figure, (curves, crossing) = style.new_figure(2, height=2.9)
    shown = [row for row in of(table, panel="case") if row["share"] == 1 and row["q"] == 1 and row["sigma"] == 0]
    pairs = {f"{row['curvatures']} curvatures, {memory} memory": (row, memory) for row in shown for memory in MEMORIES}
    for (label, (row, memory)), how in zip(pairs.items(), style.looks(pairs).values()):
        rows = of(table, panel="curve", memory=memory, **{k: row[k] for k in ("curvatures", "share", "q", "sigma")})
        t, mean, low, high = ([point[key] for point in rows] for key in ("t", "mean", "low", "high"))
        style.band(curves, t, mean, low, high, label, row["seeds"], how)
    curves.set(xscale="log", yscale="log", xlabel="bytes, in rounds of SSF", title="share 1, $KL\\eta=1$, no noise")
    curves.set_ylabel(r"average of $\|\nabla F(x^t)\|^2$ so far")
    curves.set_ylim(top=30 * max(row["high"] for row in of(table, panel="curve")))
    curves.legend(loc="upper right")
    top = 10 ** math.ceil(math.log10(max(r["ran rounds"] for r in table) * 10))
    finite = lambda value: value if math.isfinite(value) else top
    groups = {
        "no noise, own curvatures": ("different", True),
        "noise": ("different", False),
        "same curvature": ("alike", True),
    }
    for (label, (curvatures, clean)), how in zip(groups.items(), style.looks(groups).values()):
        rows = [r for r in of(table, panel="case", curvatures=curvatures) if (r["sigma"] == 0) == clean]
        x, y = [finite(r["rule"]) for r in rows], [finite(r["found"]) for r in rows]
        crossing.plot(x, y, how.marker, color=how.color, markersize=4, markerfacecolor="none", label=label)
    crossing.plot([1, top], [1, top], "k-", linewidth=0.7, label="equal")
    crossing.axhline(
        max(r["ran rounds"] for r in table) / 2, color="0.6", linestyle=":", linewidth=1, label="end of the runs"
    )
    crossing.set(xscale="log", yscale="log", xlabel="rounds by the rule (right edge: never)")
    crossing.set(ylabel="rounds in the runs (top: not in them)", title="when memory pays at the same bytes")
    crossing.legend(loc="lower right")
    style.caption(figure, table, "right: a point is a problem; its edges are named at the axes")
    return figure


EXTRAS = [Item("use/controls", "When control variates pay for their bytes", measure, draw, SCALES)]
