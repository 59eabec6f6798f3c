"""How many directions P are worth it for DeComFL: by c = 1 + (kappa + 1)/P, and by experiment."""

import math

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.core.problem import Problem
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each
from fedtheory.papers.use.common import SCALES, filled, middle, of, panelled
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.records import Row, Table, behind
from fedtheory.theory import rules

D = 50
COUNTS = {"quick": (1, 7, 50), "medium": (1, 2, 4, 7, 14, 30, 100)}
STEPS = {"quick": (0.25, 1.0), "medium": (0.25, 0.5, 1.0)}  # L eta c; the rule's first
LEVEL = {"quick": 0.3, "medium": 0.2}  # of the starting gap
MOST = 1000  # rounds after which a run ends, times c


def spectrum(name: str) -> torch.Tensor:
    """Eigenvalues with L = 1: all alike, or falling as j^-1.5."""
    falling = torch.arange(1, D + 1, dtype=torch.float64) ** -1.5
    return torch.ones(D, dtype=torch.float64) if name == "flat" else falling


def problem(name: str, seed: int) -> tuple[Problem, torch.Tensor, float]:
    """The problem, where it starts, and kappa = tr H/L of a matrix that bounds its Hessian."""
    key = Key(seed).fold("data")
    if name == "logistic regression":
        made = LogisticRegression.fedsub(key)
        H = (made.Z @ made.Z.mT).sum(0) / (4 * made.Z[:, 0].numel())
        H = H + made.lam * torch.eye(made.d, dtype=H.dtype)
        L = made.constants.L
        assert L is not None
        return made, made.start(), float(H.trace()) / L
    values = spectrum(name)
    x = torch.randn(D, generator=key.generator(), dtype=torch.float64)
    return Quadratic(torch.diag(values)[None], torch.zeros(1, D, dtype=torch.float64)), x, float(values.sum())


def reached(name: str, P: int, step: float, scale: str, seed: int) -> float:
    """Rounds until the gap F - F* is the level times what it was; infinite where it is not in time."""
    made, x, kappa = problem(name, seed)
    price, L, f = rules.directions_price(kappa, P), made.constants.L, made.constants.f_star
    assert L is not None
    assert f is not None
    algorithm, key = DeComFL(step / (L * price), 1, P, smoothing=1e-5), Key(seed)
    state, most = algorithm.init(made, x, key), math.ceil(MOST * price)
    level = LEVEL[scale] * (made.loss(x) - f)
    for t in range(most):
        if made.loss(state.server.x) - f <= level:
            return float(t)
        state, _, _ = play_round(algorithm, made, state, made.clients, key.fold("round", t))
    return math.inf


def row_of(name: str, P: int, scale: str, seeds: int) -> Row:
    """Rounds and evaluations of the loss at the best step of the grid for a seed of its own."""
    kappa = problem(name, 0)[2]
    tried = {step: reached(name, P, step, scale, seeds) for step in STEPS[scale]}
    step = min(tried, key=lambda step: tried[step])
    found = [reached(name, P, step, scale, seed) for seed in range(seeds)]
    row: Row = {"panel": name, "P": P, "step": step, "kappa": kappa, "c": rules.directions_price(kappa, P)}
    row |= dict(zip(("rounds", "low", "high"), middle(found))) | {"seeds": seeds}
    row |= {"evaluations": row["rounds"] * (P + 1), "rounds at the rule's step": tried[STEPS[scale][0]]}
    return row | {f"seed {i}": value for i, value in enumerate(found)} | behind(name, "none", round(max(found)))


PANELS = {"quick": ("flat", "falling"), "medium": ("flat", "falling", "logistic regression")}


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Every P on every problem."""
    points = [(name, P) for name in PANELS[scale] for P in COUNTS[scale]]
    table = filled((yield from each(row_of, [(*point, scale, seeds) for point in points])))
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    settings = {"d": D, "level": LEVEL[scale], "L eta c": STEPS[scale], "tuned on": f"seed {seeds}", "K": 1}
    return Result(table, [], settings, notes)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, section 3."""
    said: dict[str, float] = {}
    for name in dict.fromkeys(row["panel"] for row in table):
        rows = of(table, panel=name)
        kappa, best = rows[0]["kappa"], min(rows, key=lambda row: row["evaluations"])
        rule = rules.best_directions(kappa)
        near = min(rows, key=lambda row: abs(math.log(row["P"] / rule)))
        seeds = int(best["seeds"])
        loss = middle(
            [near[f"seed {i}"] * (near["P"] + 1) / (best[f"seed {i}"] * (best["P"] + 1)) for i in range(seeds)]
        )
        one = middle([rows[0][f"seed {i}"] * 2 / (best[f"seed {i}"] * (best["P"] + 1)) for i in range(seeds)])
        said |= {
            f"{name}, kappa": kappa,
            f"{name}, P by rule": rule,
            f"{name}, P by experiment": best["P"],
            f"{name}, evaluations at the rule's P over the best": loss[0],
            f"{name}, evaluations at the rule's P over the best, low": loss[1],
            f"{name}, evaluations at the rule's P over the best, high": loss[2],
            f"{name}, evaluations at P = 1 over the best": one[0],
            f"{name}, evaluations at the largest P over the best": rows[-1]["evaluations"] / best["evaluations"],
            f"{name}, least best step": min(row["step"] for row in rows),
            f"{name}, largest best step": max(row["step"] for row in rows),
        }
    return said


@style.styled
def draw(table: Table) -> Figure:
    """Evaluations over P; dotted: (P + 1) c, scaled to the best; vertical: the rule's P."""
    figure, panels, names = panelled(table)
    for name, axes in zip(names, panels):
        rows = of(table, panel=name)
        each = [row["P"] + 1 for row in rows]
        mean = [row["evaluations"] for row in rows]
        low = [(row["rounds"] - row["low"]) * n for row, n in zip(rows, each)]
        high = [(row["high"] - row["rounds"]) * n for row, n in zip(rows, each)]
        label = f"runs, at the best step of a grid (n={rows[0]['seeds']})"
        axes.errorbar(
            [row["P"] for row in rows], mean, [low, high], fmt="o", color="#0072B2", markersize=4, label=label
        )
        cost = [row["c"] * (row["P"] + 1) for row in rows]
        scale = min(row["evaluations"] for row in rows) / min(cost)
        axes.plot(
            [row["P"] for row in rows],
            [scale * value for value in cost],
            "k:",
            linewidth=1,
            label="$(P+1)\\,c$, scaled",
        )
        axes.axvline(math.sqrt(rows[0]["kappa"] + 1), color="0.6", linewidth=1, label="$\\sqrt{\\kappa+1}$")
        axes.set(xscale="log", yscale="log", xlabel="$P$", title=f"{name}, $\\kappa={rows[0]['kappa']:.3g}$")
        axes.yaxis.set_minor_formatter("")
    panels[0].set_ylabel("evaluations of the loss to the level")
    style.legend_above(figure, 3)
    return figure


EXTRAS = [Item("use/directions", "How many directions are worth it", measure, draw, SCALES)]
