"""Local steps: how far clients drift apart, and where FedAvg comes to rest because of it."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.loop import play_round
from fedtheory.course import watch
from fedtheory.course.moving.frame import KEY, Moving
from fedtheory.papers import style
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Table

STEPS = (1, 2, 3, 5, 10, 20, 50)
DOUBLE = torch.float64
_CLIENTS = style.SEQUENCE[4:6]  # FedAvg and SCAFFOLD have the first two


def two_clients(flat: float) -> Quadratic:
    """Notebook 00's: client 1 has curvature 1 along the first axis, `flat` along the second; client 2 has it turned."""
    H = torch.diag_embed(torch.tensor([[1.0, flat], [flat, 1.0]], dtype=DOUBLE))
    return Quadratic(H, torch.tensor([[-1.0, -1.0], [1.0, 2.0]], dtype=DOUBLE))


def solution(problem: Quadratic) -> torch.Tensor:
    assert problem.constants.x_star is not None  # the mean of the curvatures is positive
    return problem.constants.x_star


def plane(axes: Axes, table: Table) -> None:
    """Both clients' minimisers and the solution."""
    for row in table:
        if row["what"] == "minimiser":
            color = _CLIENTS[row["client"]]
            axes.plot(
                row["x"], row["y"], "s", color=color, markersize=5, label=f"minimiser of client {row['client'] + 1}"
            )
        elif row["what"] == "solution":
            axes.plot(row["x"], row["y"], "*", color="k", markersize=9, zorder=5, label="solution x*")
    axes.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 2.4))
    axes.grid(visible=False)


def points(problem: Quadratic) -> Table:
    """What `plane` draws."""
    at = [("minimiser", i, b) for i, b in enumerate(problem.b)] + [("solution", 0, solution(problem))]
    return [{"what": what, "client": i, "x": float(x[0]), "y": float(x[1])} for what, i, x in at]


# Drift


def compute_drift(K: int, lr: float) -> Table:
    """One round of FedAvg that begins at the solution: every local step of both clients, and of their mean."""
    problem, algorithm = two_clients(0.1), FedAvg(lr, K)
    x = solution(problem)
    steps = watch(algorithm, problem, algorithm.init(problem, x.clone(), KEY), KEY.fold("round", 0))  # (K, 2, 2)
    rows = points(problem)
    for k, y in enumerate((x.expand(2, -1), *steps)):
        spread, moved = float((y - x).square().sum(-1).mean().sqrt()), float((y.mean(0) - x).norm())
        for what, i, at in (("walk", 0, y[0]), ("walk", 1, y[1]), ("mean", 0, y.mean(0))):
            place = {"x": float(at[0]), "y": float(at[1])}
            rows.append({"what": what, "client": i, "k": k, **place, "spread": spread, "moved": moved})
    return rows


@style.styled
def draw_drift(table: Table) -> Figure:
    """Left: the walks in the plane. Right: how far the clients, and how far their mean, are from the solution."""
    figure, (left, right) = style.new_figure(2, height=3.4)
    plane(left, table)
    for client in (0, 1):
        walk = [row for row in table if row["what"] == "walk" and row["client"] == client]
        color = _CLIENTS[client]
        left.plot(
            [row["x"] for row in walk], [row["y"] for row in walk], ".-", color=color, markersize=4, linewidth=0.8
        )
    mean = [row for row in table if row["what"] == "mean"]
    left.plot([row["x"] for row in mean], [row["y"] for row in mean], "-", color="0.4", linewidth=0.8)
    left.plot(
        mean[-1]["x"], mean[-1]["y"], "o", color="k", markersize=6, markerfacecolor="w", label="server after the round"
    )
    k = [row["k"] for row in mean]
    right.plot(k, [row["spread"] for row in mean], "--", color=style.SEQUENCE[2], label="clients' distance from x*")
    right.plot(k, [row["moved"] for row in mean], "-", color="k", label="distance of their mean from x*")
    right.plot(k[-1], mean[-1]["moved"], "o", color="k", markersize=6, markerfacecolor="w")
    right.set(xlabel="local steps", ylabel="distance from x*", xlim=(-1, STEPS[-1] + 1), ylim=(-0.05, 2.5))
    style.legend_above(figure, 3)
    return figure


DRIFT = Moving(
    "drift",
    "Client drift in one round of FedAvg",
    "The round begins at the solution. With K = 1 the two steps cancel and nothing moves; with more steps each client "
    "finishes its steep direction first, and the mean leaves the solution although both started there.",
    {"K": STEPS, "lr": (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)},
    compute_drift,
    draw_drift,
    start={"K": 20, "lr": 0.2},
    says={"K": "local steps K", "lr": "step size η"},
)


# Where it ends


def rest(algorithm: Algorithm, problem: Quadratic) -> torch.Tensor:
    """Where the server stays, (d,). On quadratics a round is x -> A x + c: d + 1 rounds say what A and c are."""

    def after(x: torch.Tensor) -> torch.Tensor:
        state = algorithm.init(problem, x, KEY)
        return play_round(algorithm, problem, state, problem.clients, KEY.fold("round", 0))[0].server.x

    c, one = after(problem.start()), torch.eye(problem.d, dtype=DOUBLE)
    A = torch.stack([after(e) - c for e in one], dim=1)
    return torch.linalg.solve(one - A, c)


REST_STEPS = (1, 2, 5, 10, 20, 50)
ROUNDS = 15


def compute_rest(K: int, lr: float, flat: float) -> Table:
    """The server round by round from the origin, and its resting points for all numbers of local steps."""
    problem, algorithm = two_clients(flat), FedAvg(lr, K)
    mean = problem.b.mean(0)
    rows = [*points(problem), {"what": "mean of minimisers", "x": float(mean[0]), "y": float(mean[1])}]
    for steps in REST_STEPS:
        x = rest(FedAvg(lr, steps), problem)
        error = {"error": problem.error(x), "here": int(steps == K)}
        rows.append({"what": "rest", "K": steps, "x": float(x[0]), "y": float(x[1]), **error})
    state = algorithm.init(problem, problem.start(), KEY)
    for t in range(ROUNDS + 1):
        x = state.server.x
        rows.append({"what": "server", "t": t, "x": float(x[0]), "y": float(x[1]), "error": problem.error(x)})
        state, _, _ = play_round(algorithm, problem, state, problem.clients, KEY.fold("round", t))
    return rows


@style.styled
def draw_rest(table: Table) -> Figure:
    """Left: the server's way and the line of resting points. Right: the error that is left, against K."""
    figure, (left, right) = style.new_figure(2, height=3.4)
    plane(left, table)
    of = lambda what: [row for row in table if row["what"] == what]
    server, rests = of("server"), of("rest")
    (here,) = (row for row in rests if row["here"])
    (mean,) = of("mean of minimisers")
    left.plot(mean["x"], mean["y"], "x", color="0.3", markersize=6, label="mean of the minimisers")
    left.plot([row["x"] for row in server], [row["y"] for row in server], ".-", color="0.6", label="server, by rounds")
    line = {"color": style.SEQUENCE[3], "linewidth": 1.2}
    left.plot([row["x"] for row in rests], [row["y"] for row in rests], "-", **line, label="resting points, all K")
    right.plot([row["K"] for row in rests], [row["error"] for row in rests], ".-", **line)
    for axes, x, y in ((left, here["x"], here["y"]), (right, here["K"], here["error"])):
        axes.plot(x, y, "o", color=style.SEQUENCE[3], markersize=7, markerfacecolor="w", label="rest at this K")
    right.set(
        xscale="log", xlabel="local steps K", ylabel="error of the resting point", xlim=(0.8, 63), ylim=(-0.03, 0.9)
    )
    right.set_xticks(REST_STEPS, map(str, REST_STEPS), minor=False)
    right.minorticks_off()
    style.legend_above(figure, 3)
    return figure


REST = Moving(
    "rest",
    "Where FedAvg comes to rest",
    "From the solution at K = 1 the resting point moves towards the plain mean of the clients' minimisers, sooner with "
    "a longer step. Make the curvatures equal (1), and it stays at the solution whatever K is.",
    {"K": REST_STEPS, "lr": (0.05, 0.2, 0.8), "flat": (0.1, 0.3, 1.0)},
    compute_rest,
    draw_rest,
    start={"K": 5, "lr": 0.2},
    says={"K": "local steps K", "lr": "step size η", "flat": "curvature of the flat direction"},
)

PICTURES = [DRIFT, REST]
