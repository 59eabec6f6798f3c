"""The rules on a network: what they compute from `estimate`, beside the best of a grid."""

import copy
import math
from collections.abc import Callable, Iterable

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.loop import play_round
from fedtheory.core.problem import Problem
from fedtheory.maps.subspace import Gaussian, Identity, Spherical, fifth
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, Wants, each, side_by_side
from fedtheory.papers.use.common import SCALES, filled, middle, of, squares
from fedtheory.papers.use.controls import averages, pays_after
from fedtheory.problems.images import ImageClassification
from fedtheory.running.records import Row, Table, behind
from fedtheory.running.simulate import may_diverge, run
from fedtheory.theory import rules
from fedtheory.theory.estimate import Estimate, estimate

N, K, SHARE = 5, 5, 0.2
BATCH = 8  # images of a local step, for sigma and the noise
IMAGES = 150
EFFORT = {"quick": 1, "medium": 6}
PILOT = 20  # rounds of FedAvg between the two points of the estimate
LEVEL, PLANNED = 0.5, 0.8  # of the starting loss
STEPS = {"quick": (1, 128), "medium": (1, 32, 512)}  # times the rule's
ROUNDS = {"quick": 1, "medium": 6}
RANKS = {"quick": (100, 0), "medium": (10, 100, 0)}  # of d = 4,810; 0: the whole space
COUNTS = {"quick": (8,), "medium": (1, 3, 9)}
CASES = {"quick": ((1.0, 10.0),), "medium": ((0.2, 10.0),)}  # share, K L eta
MEMORY = {"quick": 1, "medium": 10}  # rounds with memory; twice as many without
DRAWS = {"quick": 1, "medium": 2}
SKIPPED = 4  # rounds between two looks at the loss
MOST = 800  # rounds after which a run ends

Sizes = tuple[Estimate, ...]  # of the seeds
METHODS: dict[str, Callable[[float, tuple[int, ...]], Algorithm]] = {
    "FedAvg": lambda lr, ranks: FedAvg(lr, K),
    "SSF": lambda lr, ranks: SSF.haar(lr, K, ranks),
}


def problem(seed: int, batch: int = 10**6) -> ImageClassification:
    """A perceptron 64-64-10 on 150 digits, five clients with unequal label shares; full gradients by default."""
    options = {"partition": "dirichlet", "subset": IMAGES, "batch": batch, "dtype": torch.float64}
    return ImageClassification.load("digits", "mlp", Key(seed).fold("data"), clients=N, **options)


def flat(made: Problem) -> Problem:
    """The same losses, as one column: a basis then mixes all parameters."""
    made = copy.copy(made)
    made.layout = Layout.single(made.d)
    return made


def known(seed: int, scale: str) -> Estimate:
    """The sizes at the start and after a pilot run, whose step is 1/(K L) by the start's L."""
    made = problem(seed, BATCH)
    L = estimate(made, effort=EFFORT[scale]).L
    pilot = run(FedAvg(1 / (K * L), K), made, PILOT, seed=seed, every=PILOT)
    return estimate(made, torch.stack([made.start(), pilot.x]), effort=EFFORT[scale])


def last(algorithm: Algorithm, made: Problem, rounds: int, seed: int) -> float:
    """The loss at the end; infinite for a run that diverged."""
    with may_diverge():
        history = run(algorithm, made, rounds, seed=seed, every=rounds, metrics=("loss",))
    return math.inf if history.diverged else history["loss"][-1]


def reached(algorithm: Algorithm, made: Problem, seed: int, level: float = LEVEL, most: int = MOST) -> float:
    """Rounds until the loss is the level times what it was; infinite where it is not in time."""
    key, start = Key(seed), made.loss(made.start())
    state = algorithm.init(made, made.start(), key)
    for t in range(most):
        loss = made.loss(state.server.x) if t % SKIPPED == 0 else start
        if loss <= level * start:
            return float(max(t, 1))
        if not loss <= 10 * start:
            break
        state, _, _ = play_round(algorithm, made, state, made.clients, key.fold("round", t))
    return math.inf


def _most(rounds: Iterable[float]) -> int:
    return max((round(value) for value in rounds if math.isfinite(value)), default=MOST)


def of_sizes(sizes: Sizes) -> Row:
    """The estimates, geometric means over the seeds."""
    row: Row = {"panel": "sizes", "x": 0, "seeds": len(sizes)}
    row |= {name: middle([getattr(one, name) for one in sizes])[0] for name in Estimate._fields}
    return row | behind("digits", "mlp", PILOT)


def of_steps(method: str, scale: str, sizes: Sizes) -> list[Row]:
    """The loss after a fixed number of rounds, over the step in multiples of the rule's."""
    losses, share = [], 1.0 if method == "FedAvg" else SHARE
    for seed, size in enumerate(sizes):
        made, lr = problem(seed), rules.largest_step(method, size.L, K, share)
        ranks, start = fifth(made.layout), made.loss(made.start())
        losses.append([last(METHODS[method](x * lr, ranks), made, ROUNDS[scale], seed) / start for x in STEPS[scale]])
    best = [STEPS[scale][min(range(len(tried)), key=tried.__getitem__)] for tried in losses]
    shared: Row = {"panel": "step", "method": method, "seeds": len(sizes)}
    shared |= dict(zip(("best", "best low", "best high"), middle(best))) | behind("digits", "mlp", ROUNDS[scale])
    shared["lost"] = middle([tried[0] / min(tried) for tried in losses])[0]
    columns = zip(STEPS[scale], zip(*losses))
    return [shared | {"x": x} | dict(zip(("mean", "low", "high"), middle(at))) for x, at in columns]


def of_rank(r: int, sizes: Sizes) -> Row:
    """Rounds to the level with full gradients and one local step, at 1/(L price)."""
    found, prices = [], []
    for seed, size in enumerate(sizes):
        made = flat(problem(seed))
        prices.append(rules.subspace_price(made.d, r, size.effective, "gaussian") if r else 1.0)
        law, share = (Gaussian(r, "orthonormal"), r / made.d) if r else (Identity(), 1.0)
        found.append(reached(FedSub(1 / (share * size.L * prices[-1]), 1, law, dual=False), made, seed))
    row: Row = {"panel": "rank", "x": r, "seeds": len(sizes), "price": middle(prices)[0]}
    row |= dict(zip(("mean", "low", "high"), middle(found)))
    return row | {f"seed {seed}": rounds for seed, rounds in enumerate(found)} | behind("digits", "mlp", _most(found))


def of_directions(P: int, sizes: Sizes) -> Row:
    """Evaluations of the loss to the level, at the step 1/(L c)."""
    found = []
    for seed, size in enumerate(sizes):
        lr = 1 / (size.L * rules.directions_price(size.effective, P))
        found.append(reached(DeComFL(lr, 1, P, smoothing=1e-4), problem(seed), seed) * (P + 1))
    row: Row = {"panel": "directions", "x": P, "seeds": len(sizes)}
    row |= dict(zip(("mean", "low", "high"), middle(found)))
    row["rule"] = middle([rules.best_directions(size.effective) for size in sizes])[0]
    row |= {f"seed {seed}": value for seed, value in enumerate(found)}
    return row | behind("digits", "mlp", _most(value / (P + 1) for value in found))


def of_controls(share: float, q: float, scale: str, sizes: Sizes) -> Row:
    """Rounds after which memory pays for its bytes, by rule and in the runs, and the averages at the end."""
    T, rule, found, ends = MEMORY[scale], [], [], []
    for seed, size in enumerate(sizes):
        made = problem(seed)
        rule.append(rules.controls_pay_after(size._replace(sigma2=0.0), q, share, N, K))
        ranks = fifth(made.layout) if share < 1 else tuple(layer.rows for layer in made.layout.layers)
        memory = averages(squares(SSF.haar(q / (K * size.L), K, ranks), made, T, seed))
        plain = averages(squares(FedSub(q / (K * size.L), K, Spherical(ranks), dual=False), made, 2 * T, seed))
        found.append(pays_after(memory, plain))
        ends.append(memory[-1] / plain[-1])
    row: Row = {"panel": "controls", "share": share, "x": q, "seeds": len(found)}
    row |= {"found": sorted(found)[len(found) // 2], "rule": sorted(rule)[len(rule) // 2]}
    return row | dict(zip(("mean", "low", "high"), middle(ends))) | behind("digits", "mlp", 2 * T)


def of_plan(sizes: Sizes) -> Row:
    """Rounds of `linear_plan` over those that SCAFFOLD with its steps needs; mu is Polyak and Lojasiewicz's."""
    off, needed = [], []
    for seed, size in enumerate(sizes):
        made = problem(seed)
        plan = rules.linear_plan(size.L, size.mu, 1.0, N, N, 1, left=PLANNED)
        needed.append(reached(Scaffold(plan.lr, 1, plan.server_lr), made, seed, PLANNED, plan.rounds))
        off.append(plan.rounds / needed[-1])
    row: Row = {"panel": "plan", "x": 0, "seeds": len(sizes), "needed": middle(needed)[0]}
    return row | dict(zip(("mean", "low", "high"), middle(off))) | behind("digits", "mlp", _most(needed))


def of_noise(x: int, scale: str, sizes: Sizes) -> Row:
    """theta/rho along local paths of minibatches in random subspaces, at a multiple of the rule's step."""
    ratios = []
    for seed, size in enumerate(sizes):
        made, key = flat(problem(seed, BATCH)), Key(seed).fold("noise")
        r, kept, whole = made.d // 50, 0.0, 0.0
        lr = x * rules.largest_step("SSF", size.L, K, r / made.d, sample_L=size.sample_L)
        for draw in range(DRAWS[scale]):
            P = Spherical(r, "orthonormal").draw(made.layout, key.fold("basis", draw), made.dtype)
            y = made.start().expand(N, -1)
            for xi in made.draw(made.clients, K, key.fold("batch", draw)):
                grads = made.grads(y, xi)
                noise = grads - made.grads(y, made.full(made.clients))
                kept += float(P.project(noise).square().sum())
                whole += float(noise.square().sum())
                y = y - lr * P.lift(P.project(grads))
        ratios.append(kept / whole * made.d / r)
    row: Row = {"panel": "noise", "x": x, "rule": 2.0, "seeds": len(ratios)}
    return row | dict(zip(("mean", "low", "high"), middle(ratios))) | behind("digits", "mlp", DRAWS[scale])


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Every rule on the network, from the same estimates."""
    sizes = tuple((yield from each(known, [(seed, scale) for seed in range(seeds)])))
    parts = yield from side_by_side(
        {
            "step": each(of_steps, [(method, scale, sizes) for method in METHODS]),
            "rank": each(of_rank, [(r, sizes) for r in RANKS[scale]]),
            "directions": each(of_directions, [(P, sizes) for P in COUNTS[scale]]),
            "controls": each(of_controls, [(*case, scale, sizes) for case in CASES[scale]]),
            "plan": each(of_plan, [(sizes,)]),
            "noise": each(of_noise, [(x, scale, sizes) for x in STEPS[scale][::2]]),
        }
    )
    rows: list[Row] = [of_sizes(sizes)]
    for row in (one for part in parts.values() for one in part):
        rows += row if isinstance(row, list) else [row]
    table = filled(rows)
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    settings = {"N, K, share": [N, K, SHARE], "images": IMAGES, "levels": [LEVEL, PLANNED], "minibatch": BATCH}
    return Result(table, [], settings, notes, data=problem(0).origin)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, on the network."""
    (sizes,) = of(table, panel="sizes")
    said = {name: sizes[name] for name in Estimate._fields}
    ends = ("", ", low", ", high")
    for row in of(table, panel="step", x=1):
        name = f"{row['method']}: best step over rule"
        said |= {name + end: row["best" + end.replace(",", "")] for end in ends}
        said[f"{row['method']}: loss at rule over best"] = row["lost"]
    (whole,) = of(table, panel="rank", x=0)
    for row in of(table, panel="rank"):
        name, seeds = f"r = {row['x']:g}: price", range(int(row["seeds"]))
        ratios = middle([row[f"seed {seed}"] / whole[f"seed {seed}"] for seed in seeds])
        said |= {name + end: value for end, value in zip(ends, ratios)} | {f"{name} by rule": row["price"]}
    rows = of(table, panel="directions")
    best = min(rows, key=lambda row: row["mean"])
    near = min(rows, key=lambda row: abs(math.log(row["x"] / row["rule"])))
    ratios = middle([near[f"seed {seed}"] / best[f"seed {seed}"] for seed in range(int(best["seeds"]))])
    said |= {"P by rule": best["rule"], "P by experiment": best["x"], "P tried next to the rule's": near["x"]}
    said |= {f"evaluations over the best{end}": value for end, value in zip(ends, ratios)}
    for row in of(table, panel="controls"):
        name = f"share {row['share']:g}, q {row['x']:g}"
        said |= {f"{name}: rule": row["rule"], f"{name}: found": row["found"]}
        said |= {f"{name}: end ratio{end}": row[end.strip(", ") or "mean"] for end in ends}
    (plan,) = of(table, panel="plan")
    said |= {f"planned over needed{end}": plan[end.strip(", ") or "mean"] for end in ends}
    said |= {"rounds needed": plan["needed"]}
    return said | {f"theta over rho, step {row['x']:g}": row["mean"] for row in of(table, panel="noise")}


@style.styled
def draw(table: Table) -> Figure:
    """Losses over the step; rounds over the rank, with the rule's; evaluations over the directions."""
    figure, (steps, ranks, directions) = style.new_figure(3, height=2.9)
    methods = list(dict.fromkeys(row["method"] for row in of(table, panel="step")))
    for method, how in zip(methods, style.looks(dict.fromkeys(methods)).values()):
        rows = [row for row in of(table, panel="step", method=method) if math.isfinite(row["mean"])]
        x, mean, low, high = ([row[name] for row in rows] for name in ("x", "mean", "low", "high"))
        style.band(steps, x, mean, low, high, method, rows[0]["seeds"], how)
    steps.axhline(1, color="0.6", linestyle=":", linewidth=1)
    steps.set(xscale="log", yscale="log", xlabel="step over the rule's", ylabel="loss over its start", title="steps")
    steps.set_ylim(top=2)
    steps.legend(loc="lower left", fontsize=5)
    (whole,) = of(table, panel="rank", x=0)
    rows, how = [row for row in of(table, panel="rank") if row["x"]], style.look("FedSub")
    mean = [row["mean"] for row in rows]
    error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
    look = {"color": how.color, "linestyle": how.dash, "marker": how.marker, "markersize": 3.5}
    ranks.errorbar([row["x"] for row in rows], mean, error, label=f"no memory (n={whole['seeds']})", **look)
    ranks.plot([r["x"] for r in rows], [whole["mean"] * r["price"] for r in rows], "k:", label="by the price")
    ranks.axhline(whole["mean"], color="0.6", linewidth=1, label="all directions")
    ranks.set(xscale="log", yscale="log", xlabel="$r$ of 4,810", ylabel="rounds to half of the loss", title="ranks")
    ranks.legend(loc="upper right", fontsize=5)
    rows = of(table, panel="directions")
    how = style.look("DeComFL")
    error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
    look = {"color": how.color, "linestyle": how.dash, "marker": how.marker, "markersize": 3.5}
    directions.errorbar(
        [row["x"] for row in rows],
        [row["mean"] for row in rows],
        error,
        label=f"DeComFL (n={rows[0]['seeds']})",
        **look,
    )
    directions.axvline(rows[0]["rule"], color="0.6", linewidth=1, label="the rule's $P$")
    scale = "log" if any(math.isfinite(row["mean"]) for row in rows) else "linear"  # no run need arrive
    directions.set(xscale="log", yscale=scale, xlabel="directions $P$", title="directions")
    directions.set_ylabel("evaluations to half of the loss")
    directions.legend(fontsize=5)
    style.caption(figure, [row for row in table if row["panel"] != "sizes"], "digits: five clients, 150 images")
    return figure


EXTRAS = [Item("use/network", "The rules on a network, from estimates", measure, draw, SCALES)]
