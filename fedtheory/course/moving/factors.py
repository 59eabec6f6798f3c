"""Decomposed updates: what averaging does to products of factors, and the rank of Kronecker blocks."""

from functools import cache

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.course import watch
from fedtheory.course.moving.frame import KEY, Moving
from fedtheory.maps.decomposition import Decomposition, Kronecker, LowRank
from fedtheory.papers import style
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.running.records import Table

KINDS: dict[str, type[LowRank] | type[Kronecker]] = {"low rank": LowRank, "Kronecker blocks": Kronecker}

# Averages

FORMS = {"U V": "product", "U V, U frozen": "freeze", "AAD": "aad"}
LOCAL = (1, 2, 4, 8, 16, 32)


@cache
def averaged(kind: str, form: str) -> tuple[torch.Tensor, torch.Tensor]:
    """After each local step of the first round: the mean of the clients' updates, and the update of their mean factors.

    Both (steps, rows, columns).
    """
    problem = MatrixRegression.ssf(0.5, KEY.fold("averages"), n=6, rows=60, d=24, m=16, batch=None)
    algorithm = FedMUD(0.02, LOCAL[-1], KINDS[kind](0.25, 1.0, FORMS[form], layers="all"))
    state = algorithm.init(problem, problem.start(), KEY)
    u, D = watch(algorithm, problem, state, KEY.fold("round", 0)), state.server.frozen.D.value  # (steps, clients, q)
    shape = (len(u), *problem.layout.matrices(problem.start())[0].T.shape)
    return D.update(u).mean(1).view(shape), D.update(u.mean(1)).view(shape)


def compute_averages(E: int, form: str, kind: str) -> Table:
    """Both matrices after E steps, and the relative gap after each."""
    mean, joint = averaged(kind, form)
    gaps = (mean - joint).flatten(1).norm(dim=1) / mean.flatten(1).norm(dim=1)
    rows: Table = [{"what": "gap", "k": k, "gap": float(gap)} for k, gap in enumerate(gaps[:E], 1)]
    scale = float(mean[E - 1].abs().max())
    for name, matrix in (("mean of updates", mean), ("update of means", joint), ("difference", mean - joint)):
        for i, line in enumerate((matrix[E - 1] / scale).tolist()):
            rows += [{"what": name, "row": i, "column": j, "value": value} for j, value in enumerate(line)]
    return rows


@style.styled
def draw_averages(table: Table) -> Figure:
    """Three matrices on one scale of colours, and the gap by steps."""
    figure, (*maps, curve) = style.new_figure(4, height=2.5, columns=2.3)
    shown = []
    for axes, name in zip(maps, ("mean of updates", "update of means", "difference")):
        own = [row for row in table if row["what"] == name]
        matrix = torch.zeros(1 + max(row["row"] for row in own), 1 + max(row["column"] for row in own))
        for row in own:
            matrix[row["row"], row["column"]] = row["value"]
        shown.append(axes.imshow(matrix.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="equal"))
        axes.set(title=name, xlabel="column", ylabel="row", xticks=(), yticks=())
        axes.grid(visible=False)
    scale = figure.colorbar(shown[0], ax=maps, shrink=0.6, ticks=(-1, 0, 1))
    scale.set_label("entry / largest of the mean", fontsize=6)
    gaps = [row for row in table if row["what"] == "gap"]
    curve.plot([row["k"] for row in gaps], [row["gap"] for row in gaps], ".-", color=style.SEQUENCE[3], label="gap")
    curve.plot(gaps[-1]["k"], gaps[-1]["gap"], "o", color=style.SEQUENCE[3], markersize=7, markerfacecolor="w")
    curve.set(
        xscale="log", xlim=(0.85, 40), ylim=(-0.03, 0.65), xlabel="local steps E", ylabel="difference / mean of updates"
    )
    curve.set_xticks(LOCAL, map(str, LOCAL))
    curve.minorticks_off()
    return figure


AVERAGES = Moving(
    "averages",
    "Averages of factors are no averages of products",
    "With U V the update of the averaged factors misses the covariance of the factors over clients, and the more the "
    "longer clients walk. Where the update is linear in what is trained, with AAD or with U frozen, nothing is missed.",
    {"E": LOCAL, "form": tuple(FORMS), "kind": tuple(KINDS)},
    compute_averages,
    draw_averages,
    start={"E": 8},
    says={"E": "local steps E", "form": "update", "kind": "factors"},
)

# Rank

SHAPES = {"36 x 36": (36, 36), "36 x 12": (36, 12), "12 x 12": (12, 12), "6 x 3": (6, 3), "2 x 2": (2, 2)}
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)


def update_of(how: Decomposition, m: int, n: int) -> tuple[int, torch.Tensor]:
    """How many numbers a client sends for an m x n matrix, and the update (m, n) that normal ones make."""
    part = how.part(m, n)
    g = KEY.fold("rank", type(how).__name__, m, n).generator()
    u = torch.randn(part.size, generator=g, dtype=torch.float64)
    return part.size, part.update(u, u.new_zeros(part.fixed)).view(m, n)


def compute_kronecker(ratio: float, shape: str) -> Table:
    """Singular values of random updates at this ratio, and the ranks at all ratios."""
    m, n = SHAPES[shape]
    rows: Table = []
    for name, kind in KINDS.items():
        for share in SHARES:
            sent, update = update_of(kind(share, layers="all"), m, n)
            sigma = torch.linalg.svdvals(update) / torch.linalg.matrix_norm(update, 2)
            rank, most = int((sigma > 1e-9).sum()), min(m, n)
            point = {
                "name": name,
                "asked": share,
                "sent": sent / (m * n),
                "rank": rank / most,
                "said": f"rank {rank} of {most}",
            }
            rows.append({"what": "rank", **point, "here": int(share == ratio)})
            if share == ratio:
                values = enumerate(sigma.tolist(), 1)
                rows += [{"what": "value", "name": name, "at": i / most, "sigma": value} for i, value in values]
    return rows


@style.styled
def draw_kronecker(table: Table) -> Figure:
    """Left: singular values. Right: rank against the numbers sent."""
    figure, (left, right) = style.new_figure(2, height=3.0)
    said = []
    for place, name in enumerate(KINDS):
        own = [row for row in table if row["name"] == name]
        values = [row for row in own if row["what"] == "value" and row["sigma"] > 1e-9]
        line = {
            "color": style.SEQUENCE[place],
            "linestyle": style.STYLES[place],
            "marker": "os"[place],
            "markersize": 3,
        }
        left.plot([row["at"] for row in values], [row["sigma"] for row in values], **line, label=name)
        ranks = [row for row in own if row["what"] == "rank"]
        right.plot([row["sent"] for row in ranks], [row["rank"] for row in ranks], **line)
        (here,) = (row for row in ranks if row["here"])
        right.plot(here["sent"], here["rank"], "o", color=style.SEQUENCE[place], markersize=8, markerfacecolor="none")
        said.append(f"{name}: {here['said']}")
    (asked,) = {row["asked"] for row in table if row["what"] == "rank" and row["here"]}
    right.axvline(asked, color="k", linewidth=0.8, linestyle=":", label="asked for (rings: what is sent)")
    left.set(
        yscale="log", xlim=(0, 1.03), ylim=(1e-4, 1.5), xlabel="index / min(m, n)", ylabel="singular value / largest"
    )
    left.set_title("; ".join(said), fontsize=7)
    right.set(xlim=(0, 2.1), ylim=(0, 1.06), xlabel="numbers sent / (m n)", ylabel="rank / min(m, n)")
    style.legend_above(figure, 2)
    return figure


KRONECKER = Moving(
    "kronecker",
    "The rank of Kronecker blocks",
    "Kronecker blocks have full rank for as few numbers as you like, low rank has rank in proportion to them. Two "
    "shapes are exceptions, where a block is cut off: 2 x 2, and 6 x 3 with one block.",
    {"ratio": SHARES, "shape": tuple(SHAPES)},
    compute_kronecker,
    draw_kronecker,
    says={"ratio": "numbers sent per entry, asked for", "shape": "matrix"},
)

PICTURES = [AVERAGES, KRONECKER]
