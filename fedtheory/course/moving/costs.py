"""What is paid: directions for a dimension, and bytes for accuracy."""

from functools import cache

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.course import committed
from fedtheory.course.moving.frame import KEY, Moving
from fedtheory.papers import style
from fedtheory.papers.frontier import items as frontier
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Table
from fedtheory.running.simulate import run

# Directions

COUNTS, SIZES = (1, 2, 5, 10, 20, 50), (10, 40, 100, 200)
SPECTRA = ("all eigenvalues are 1", "five are 1, the others share 1")
SCALARS, DRAWN = 300, 500


def one_client(d: int, spectrum: str) -> tuple[Quadratic, torch.Tensor]:
    """A quadratic with its minimum at 0, and a point (d,) that is off it in five directions."""
    values, x = torch.ones(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    x[:5] = 1.0
    if spectrum == SPECTRA[1]:
        values[5:] = 1 / (d - 5)
    return Quadratic(torch.diag(values)[None], torch.zeros(1, d, dtype=torch.float64)), x


@cache
def aligned(d: int) -> dict[int, float]:
    """For each number P of directions (mean <g, grad f>)^2 / (mean ||g||^2 ||grad f||^2) over DRAWN / P steps g."""
    problem, x = one_client(d, SPECTRA[0])
    zo, xi = DeComFL(1.0, 1, DRAWN, 1e-5), problem.full(problem.clients)
    gradient = problem.grads(x[None], xi)[0]
    z = zo.directions(problem.layout, zo.draw(DRAWN, KEY.fold("directions", d))[0], x)
    scalars = zo.measure(problem, x[None], z, xi)[0]  # (DRAWN,)
    parts = scalars[:, None] * torch.stack([torch.cat([part for _, part in one]) for one in z])
    found = {}
    for P in COUNTS:
        steps = parts.view(-1, P, d).mean(1)
        along, square = (steps @ gradient).mean() ** 2, steps.square().sum(1).mean() * gradient.square().sum()
        found[P] = float(along / square)
    return found


def compute_directions(P: int, d: int, spectrum: str) -> Table:
    """How much of a step along P directions is gradient, and the loss by scalars that a client sends."""
    problem, x = one_client(d, spectrum)
    trace = float(problem.H[0].trace())
    zo = DeComFL(2 / 3 * P / (trace + P + 1), 1, P, 1e-5)  # a third of the longest step that decreases, notebook 07
    history = run(zo, problem, SCALARS // P, x0=x, metrics=("loss",), every=max(1, 10 // P))
    rows: Table = [
        {"what": "share", "P": p, "measured": share, "formula": p / (p + d + 1), "here": int(p == P)}
        for p, share in aligned(d).items()
    ]
    return rows + [
        {"what": "loss", "sent": sent, "loss": loss / history["loss"][0]}
        for sent, loss in zip(history["up_scalars"], history["loss"])
    ]


@style.styled
def draw_directions(table: Table) -> Figure:
    """Left: how much of a step is gradient. Right: loss against scalars sent."""
    figure, (left, right) = style.new_figure(2, height=3.0)
    shares, losses = ([row for row in table if row["what"] == what] for what in ("share", "loss"))
    (here,) = (row for row in shares if row["here"])
    P, blue, red = [row["P"] for row in shares], style.SEQUENCE[0], style.SEQUENCE[3]
    left.plot(P, [row["formula"] for row in shares], color="k", linewidth=4, alpha=0.2, label="P / (P + d + 1)")
    left.plot(P, [row["measured"] for row in shares], ".-", color=blue, label=f"measured on {DRAWN} directions")
    left.plot(here["P"], here["measured"], "o", color=blue, markersize=7, markerfacecolor="w")
    right.plot([row["sent"] for row in losses], [row["loss"] for row in losses], color=red, label="loss")
    right.axhline(0.1, color="k", linewidth=0.8, linestyle=":")
    left.set(xscale="log", xlim=(0.9, 56), ylim=(-0.02, 1.02), xlabel="directions P", ylabel="share along the gradient")
    left.set_xticks(COUNTS, map(str, COUNTS))
    left.minorticks_off()
    right.set(yscale="log", xlim=(0, SCALARS), ylim=(0.01, 1.2), xlabel="scalars that a client has sent")
    right.set_ylabel("loss / loss at the start")
    style.legend_above(figure, 3)
    return figure


DIRECTIONS = Moving(
    "directions",
    "Directions P against dimension d",
    "Of a step along P random directions a share P/(P + d + 1) lies along the gradient, yet for the same scalars many "
    "directions are no better than few. Where all eigenvalues are 1, a larger d takes longer to a tenth of the loss; "
    "where five of them are most of the trace, it does not.",
    {"P": COUNTS, "d": SIZES, "spectrum": SPECTRA},
    compute_directions,
    draw_directions,
    start={"P": 5, "d": 40},
    says={"P": "directions P", "d": "dimension d", "spectrum": "spectrum"},
)

# Bytes

TASKS = ("digits", "mnist", "cifar10")
WAYS = {"up": "bytes up", "down": "bytes down"}
BUDGETS = (0.001, 0.01, 0.04, 0.1, 0.3, 1.1, 4.0)


def compute_bytes(budget: float, way: str, task: str) -> Table:
    """The committed comparison of all methods: accuracy and cost, in FedAvg's bytes, and who is within the budget."""
    rows = committed(f"frontier/{task}")["table"]
    (fedavg,) = (row[way] for row in rows if row["method"] == "FedAvg")
    finite = [row for row in rows if row["quality"] == row["quality"]]  # a run that diverged has none
    scaled = [row | {way: row[way] / fedavg} for row in finite]
    best = frontier.front([row for row in scaled if row[way] <= budget], way)
    steps = {row["method"]: at for at, row in enumerate(best)}
    return [
        {name: row[name] for name in ("method", "quality", "low", "high", "seeds")}
        | {"cost": row[way], "budget": budget, "way": WAYS[way], "front": steps.get(row["method"], -1)}
        for row in scaled
    ]


@style.styled
def draw_bytes(table: Table) -> Figure:
    """Accuracy against cost: within the budget in colour, the best for each cost joined and named, the rest pale."""
    figure, (axes,) = style.new_figure(height=3.6, columns=1.7)
    looks = style.looks(row["method"] for row in table)
    budget = table[0]["budget"]
    for row in table:
        color = looks[row["method"]].color if row["cost"] <= budget else "0.85"
        axes.vlines(row["cost"], row["low"], row["high"], color=color, linewidth=0.8)
        axes.plot(row["cost"], row["quality"], "o", color=color, markersize=3.5)
    front = sorted((row for row in table if row["front"] >= 0), key=lambda row: row["front"])
    ends = [*front, front[-1] | {"cost": budget}] if front else []
    x, y = [row["cost"] for row in ends], [row["quality"] for row in ends]
    axes.step(x, y, where="post", color="k", linewidth=0.8, label="the best within the budget")
    axes.axvline(budget, color="k", linewidth=0.8, linestyle=":")
    best = f"{front[-1]['method']}: {front[-1]['quality']:.1f}%" if front else "no method"
    axes.set_title(f"{table[0]['way']}, the best within this budget: {best} (n={table[0]['seeds']})")
    axes.set(xscale="log", xlim=(5e-5, 9), ylim=(0, 102), xlabel="bytes / FedAvg's bytes", ylabel="accuracy in %")
    axes.set_xticks((1e-4, 1e-3, 1e-2, 0.1, 1), ("1/10000", "1/1000", "1/100", "1/10", "1"))
    axes.minorticks_off()
    style.lay_out(figure)
    style.name_points(axes, [(row["method"], row["cost"], row["quality"]) for row in front], looks)
    return figure


BYTES = Moving(
    "bytes",
    "Bytes against accuracy",
    "Move the budget from FedAvg's bytes down and see which method is the best that is left, and what it costs in "
    "accuracy. The order changes with the task, and a method that is cheap up need not be cheap down.",
    {"budget": BUDGETS, "way": tuple(WAYS), "task": TASKS},
    compute_bytes,
    draw_bytes,
    start={"budget": 0.04},
    says={"budget": "budget, in FedAvg's bytes", "way": "way", "task": "task"},
)

PICTURES = [DIRECTIONS, BYTES]
