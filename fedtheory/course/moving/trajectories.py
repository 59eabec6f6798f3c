"""The subspace of past updates: what a rank R holds of them, and what a run inside of it leaves."""

from dataclasses import replace

import torch
from matplotlib.figure import Figure

from fedtheory.course.moving.frame import Moving
from fedtheory.papers import style
from fedtheory.papers.consequences_mud_flss import after, clients, tails, updates, warmed
from fedtheory.running.records import Table
from fedtheory.theory.flss.round import play

RANKS = (1, 2, 3, 4, 5, 6, 7, 8)
ROUNDS = (0, 1, 2, 5, 10, 20, 50, 100, 200)


def compute_trajectory(R: int, share: float) -> Table:
    """rho_R of a round's updates over all sets of clients, and the expected error after rounds behind a warm-up."""
    at = clients(share)
    start = replace(at, x=3 * 2.0 ** -torch.arange(len(at.x), dtype=torch.float64))
    q, (A, c) = play(at), updates(at)
    rho = tails(torch.linalg.svdvals((q.w[:, 0] - at.x).T))
    x, frames = warmed(start, 0)
    rows: Table = [{"what": "tail", "R": rank, "rho": rho[rank], "here": int(rank == R)} for rank in RANKS]
    for T in ROUNDS:
        total, outside = after(A, c, frames[R - 1], x, T)
        rows.append({"what": "error", "T": T, "all": total, "outside": outside, "inside": total - outside})
    return rows


@style.styled
def draw_trajectory(table: Table) -> Figure:
    """Left: rho_R. Right: the error inside and outside of the subspace, round by round."""
    figure, (left, right) = style.new_figure(2, height=3.0)
    held, errors = ([row for row in table if row["what"] == what] for what in ("tail", "error"))
    (here,) = (row for row in held if row["here"])
    red = style.SEQUENCE[3]
    left.plot([row["R"] for row in held], [row["rho"] for row in held], ".-", color=red, label="ρ_R")
    left.plot(here["R"], here["rho"], "o", color=red, markersize=7, markerfacecolor="w")
    left.set(xlabel="rank R, of 8", ylabel="ρ_R, the share that R misses", xlim=(0.7, 8.3), ylim=(-0.03, 1.03))
    T = [row["T"] for row in errors]
    for place, name in enumerate(("all", "inside", "outside")):
        shown = [max(row[name], 1e-6) for row in errors]
        right.plot(T, shown, style.STYLES[place], color=style.SEQUENCE[place], label=f"squared error, {name}")
    right.set(xscale="symlog", yscale="log", xlim=(0, 220), ylim=(3e-4, 20))
    right.set(xlabel="rounds after the warm-up", ylabel="expected squared distance from w*")
    right.set_xticks(ROUNDS, map(str, ROUNDS))
    right.minorticks_off()
    style.legend_above(figure, 2)
    return figure


TRAJECTORY = Moving(
    "trajectory",
    "A subspace of past updates, and its rank R",
    "A few directions hold nearly all of the updates' squares: ρ_R falls at once. But what of the error lies outside "
    "of them stays for ever, however small ρ_R is, and inside a larger R lets in more of the clients' noise.",
    {"R": RANKS, "share": (0.05, 0.1, 0.2)},
    compute_trajectory,
    draw_trajectory,
    start={"R": 3, "share": 0.2},
    says={"R": "rank R", "share": "step size, as ηL(τ + 1)"},
)

PICTURES = [TRAJECTORY]
