"""The rules on a network: what they compute from `estimate`, beside the best of a grid."""

import copy
import math
from collections.abc import Callable

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.ssf import SSFReading
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
WHOLE, BATCH = 10**6, 8  # images of a local step: all of a client's, or a few
IMAGES = 150
EFFORT = {"quick": 2, "medium": 10}
PILOT = 20  # rounds of FedAvg between the two points of the estimate
LEVEL = 0.5  # of the starting loss
STEPS = {"quick": (1, 64), "medium": (1, 8, 64, 512)}  # times the rule's
ROUNDS = {"quick": 2, "medium": 10}
RANKS = {"quick": (0,), "medium": (1, 10, 100, 0)}  # of d = 4,810; 0: the whole space
LONGER = {"quick": (4,), "medium": (1, 4)}  # times the step of the rule
COUNTS = {"quick": (8,), "medium": (1, 4, 16)}
CASES = {"quick": ((1.0, 10.0),), "medium": ((0.2, 10.0), (1.0, 10.0))}  # share, K L eta
MEMORY = {"quick": 2, "medium": 25}  # rounds with memory; twice as many without
PLANNED = {"quick": (1.0,), "medium": (1.0,)}  # shares
DRAWS = {"quick": 1, "medium": 5}
SKIPPED = 4  # rounds between two looks at the loss
MOST = 3000  # rounds after which a run ends

Sizes = tuple[Estimate, ...]  # of the seeds, and last of the one that is tuned on
METHODS: dict[str, Callable[[float, tuple[int, ...]], Algorithm]] = {
    "FedAvg": lambda lr, ranks: FedAvg(lr, K),
    "FedAvg-CD": lambda lr, ranks: FedSub(lr, K, Spherical(ranks), dual=False),
    "SSF": lambda lr, ranks: SSF.haar(lr, K, ranks),
    "FedSub": lambda lr, ranks: FedSub(lr, K, Spherical(ranks), form="sums"),
}


def problem(seed: int, batch: int = WHOLE) -> ImageClassification:
    """A perceptron 64-64-10 on 150 digits, five clients with unequal label shares."""
    options = {"partition": "dirichlet", "subset": IMAGES, "batch": batch, "dtype": torch.float64}
    return ImageClassification.load("digits", "mlp", Key(seed).fold("data"), clients=N, **options)


def flat(made: Problem) -> Problem:
    """The same losses, as one column: a basis then mixes all parameters."""
    made = copy.copy(made)
    made.layout = Layout.single(made.d)
    return made


def known(seed: int, scale: str, batch: int) -> Estimate:
    """The sizes at the start and after a pilot run, whose step is 1/(K L) by the start's L."""
    made = problem(seed, batch)
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


def of_sizes(batch: int, sizes: Sizes) -> Row:
    """The estimates, geometric means over the seeds."""
    row: Row = {"panel": "sizes", "x": batch, "seeds": len(sizes) - 1}
    row |= {name: middle([max(getattr(one, name), 1e-30) for one in sizes[:-1]])[0] for name in Estimate._fields}
    return row | behind("digits", "mlp", PILOT)


def of_steps(method: str, batch: int, scale: str, sizes: Sizes) -> list[Row]:
    """The loss after a fixed number of rounds, over the step in multiples of the rule's."""
    losses, share = [], 1.0 if method == "FedAvg" else SHARE
    for seed, size in enumerate(sizes[:-1]):
        made = problem(seed, batch)
        lr = rules.largest_step(method, size.L, K, share, sample_L=size.sample_L if batch < WHOLE else 0.0)
        ranks, start = fifth(made.layout), made.loss(made.start())
        losses.append(
            [last(METHODS[method](x * lr, ranks), made, ROUNDS[scale], seed) / start for x in STEPS[scale]]
        )
    name = method if batch == WHOLE else f"{method}, minibatches"
    best = [STEPS[scale][min(range(len(tried)), key=tried.__getitem__)] for tried in losses]
    edge = [max(x for x, loss in zip(STEPS[scale], tried) if loss < 1) for tried in losses]
    shared: Row = {"panel": "step", "method": name, "seeds": len(losses), **behind("digits", "mlp", ROUNDS[scale])}
    shared |= dict(zip(("best", "best low", "best high"), middle(best))) | {"edge": middle(edge)[0]}
    shared["lost"] = middle([tried[0] / min(tried) for tried in losses])[0]
    columns = zip(STEPS[scale], zip(*losses))
    return [shared | {"x": x} | dict(zip(("mean", "low", "high"), middle(at))) for x, at in columns]


def of_rank(r: int, scale: str, sizes: Sizes) -> list[Row]:
    """Rounds to the level with full gradients and one local step: at 1/(L price), and at the best of longer steps."""
    def tried(seed: int, x: float) -> tuple[float, float]:
        made, size = flat(problem(seed)), sizes[seed]
        price = rules.subspace_price(made.d, r, size.effective, "gaussian") if r else 1.0
        method = FedSub(x / (size.L * price), 1, Gaussian(r) if r else Identity(), dual=False)
        return reached(method, made, seed), price

    seeds = len(sizes) - 1
    times = {x: tried(seeds, x)[0] for x in LONGER[scale]}
    rows: list[Row] = []
    for kind, x in (("rule", 1), ("best", min(times, key=lambda x: times[x]))):
        found = [tried(seed, x) for seed in range(seeds)]
        row: Row = {"panel": "rank", "kind": kind, "x": r, "step": x, "seeds": seeds}
        row |= dict(zip(("mean", "low", "high"), middle([rounds for rounds, _ in found])))
        row |= {"price": middle([price for _, price in found])[0]}
        row |= {f"seed {seed}": rounds for seed, (rounds, _) in enumerate(found)}
        rows.append(row | behind("digits", "mlp", round(max(rounds for rounds, _ in found))))
    return rows


def of_directions(P: int, scale: str, sizes: Sizes) -> Row:
    """Evaluations of the loss to the level, at the best multiple of the step 1/(L c) for a seed of its own."""
    def tried(seed: int, x: float) -> float:
        made, size = problem(seed), sizes[seed]
        price = rules.directions_price(size.effective, P)
        return reached(DeComFL(x / (size.L * price), 1, P, smoothing=1e-4), made, seed)

    seeds = len(sizes) - 1
    times = {x: tried(seeds, x) for x in LONGER[scale]}
    x = min(times, key=lambda x: times[x])
    found = [tried(seed, x) * (P + 1) for seed in range(seeds)]
    row: Row = {"panel": "directions", "x": P, "step": x, "seeds": seeds}
    row |= dict(zip(("mean", "low", "high"), middle(found)))
    row["rule"] = middle([rules.best_directions(size.effective) for size in sizes[:-1]])[0]
    row |= {f"seed {seed}": value for seed, value in enumerate(found)}
    return row | behind("digits", "mlp", round(max(found) / (P + 1)))


def of_controls(share: float, q: float, scale: str, sizes: Sizes) -> Row:
    """Rounds after which memory pays for its bytes, by rule and in the runs, and the averages at the end."""
    T, rule, found, ends = MEMORY[scale], [], [], []
    for seed, size in enumerate(sizes[:-1]):
        made = problem(seed)
        rule.append(rules.controls_pay_after(size, q, share, N, K))
        ranks = fifth(made.layout) if share < 1 else tuple(layer.rows for layer in made.layout.layers)
        memory = averages(squares(SSF.haar(q / (K * size.L), K, ranks), made, T, seed))
        plain = averages(squares(FedSub(q / (K * size.L), K, Spherical(ranks), dual=False), made, 2 * T, seed))
        found.append(pays_after(memory, plain))
        ends.append(memory[-1] / plain[-1])
    row: Row = {"panel": "controls", "share": share, "x": q, "seeds": len(found)}
    row |= {"found": sorted(found)[len(found) // 2], "rule": sorted(rule)[len(rule) // 2]}
    return row | dict(zip(("mean", "low", "high"), middle(ends))) | behind("digits", "mlp", 2 * T)


def of_plan(share: float, sizes: Sizes) -> Row:
    """Rounds of `linear_plan` for half of the loss over those that its steps need; mu is Polyak and Lojasiewicz's."""
    off, needed = [], []
    for seed, size in enumerate(sizes[:-1]):
        made = problem(seed)
        plan = rules.linear_plan(size.L, size.mu, share, N, N, 1, left=LEVEL)
        ranks = fifth(made.layout) if share < 1 else tuple(layer.rows for layer in made.layout.layers)
        method = SSFReading(plan.lr, 1, Spherical(ranks, "orthonormal"), plan.server_lr, server_control="all")
        needed.append(reached(method, made, seed, most=plan.rounds))
        off.append(plan.rounds / needed[-1])
    row: Row = {"panel": "plan", "x": share, "seeds": len(off), "needed": middle(needed)[0]}
    return row | dict(zip(("mean", "low", "high"), middle(off))) | behind("digits", "mlp", round(max(needed)))


def of_noise(x: int, scale: str, sizes: Sizes) -> Row:
    """theta/rho along local paths of minibatches in random subspaces, at a multiple of the rule's step."""
    ratios = []
    for seed, size in enumerate(sizes[:-1]):
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
    estimates = yield from side_by_side(
        {batch: each(known, [(seed, scale, batch) for seed in range(seeds + 1)]) for batch in (WHOLE, BATCH)}
    )
    sizes, noisy = tuple(estimates[WHOLE]), tuple(estimates[BATCH])
    steps = [*((method, WHOLE, scale, sizes) for method in METHODS), ("SSF", BATCH, scale, noisy)]
    parts = yield from side_by_side(
        {
            "step": each(of_steps, steps),
            "rank": each(of_rank, [(r, scale, sizes) for r in RANKS[scale]]),
            "directions": each(of_directions, [(P, scale, sizes) for P in COUNTS[scale]]),
            "controls": each(of_controls, [(*case, scale, sizes) for case in CASES[scale]]),
            "plan": each(of_plan, [(share, sizes) for share in PLANNED[scale]]),
            "noise": each(of_noise, [(x, scale, noisy) for x in STEPS[scale][:3]]),
        }
    )
    rows: list[Row] = [of_sizes(WHOLE, sizes), of_sizes(BATCH, noisy)]
    for row in (one for part in parts.values() for one in part):
        rows += row if isinstance(row, list) else [row]
    table = filled(rows)
    notes = [f"{name}: {value:.3g}" for name, value in says(table).items()]
    settings = {"N, K, share": [N, K, SHARE], "images": IMAGES, "level": LEVEL, "tuned on": f"seed {seeds}"}
    return Result(table, [], settings, notes)


def says(table: Table) -> dict[str, float]:
    """The numbers of docs/theory/use.md, on the network."""
    said: dict[str, float] = {}
    for row, names in zip(of(table, panel="sizes"), (("L", "effective", "zeta2", "mu"), ("sigma2", "sample_L"))):
        said |= {name: row[name] for name in names}
    for row in of(table, panel="step", x=1):
        name = row["method"]
        said |= {f"{name}: best step over rule": row["best"], f"{name}: edge over rule": row["edge"]}
        said |= {f"{name}: best step over rule, low": row["best low"]}
        said |= {f"{name}: best step over rule, high": row["best high"], f"{name}: loss at rule over best": row["lost"]}
    (whole,) = of(table, panel="rank", kind="rule", x=0)
    for row in of(table, panel="rank"):
        name, seeds = f"r = {row['x']:g}" if row["x"] else "all directions", range(int(row["seeds"]))
        if row["kind"] == "best":
            said[f"{name}: best step over rule"] = row["step"]
            continue
        ratios = middle([row[f"seed {seed}"] / whole[f"seed {seed}"] for seed in seeds])
        said |= dict(zip((f"{name}: price", f"{name}: price, low", f"{name}: price, high"), ratios))
        said |= {f"{name}: price by rule": row["price"], f"{name}: rounds": row["mean"]}
    rows = of(table, panel="directions")
    if rows:
        best = min(rows, key=lambda row: row["mean"])
        near = min(rows, key=lambda row: abs(math.log(row["x"] / row["rule"])))
        ratios = middle([near[f"seed {seed}"] / best[f"seed {seed}"] for seed in range(int(best["seeds"]))])
        said |= {"P by rule": best["rule"], "P by experiment": best["x"], "P tried next to the rule's": near["x"]}
        said |= dict(zip(("evaluations over the best", "evaluations over the best, low"), ratios))
        said |= {"evaluations over the best, high": ratios[2], "best step over 1/(L c)": best["step"]}
    for row in of(table, panel="controls"):
        name = f"share {row['share']:g}, q {row['x']:g}"
        said |= {f"{name}: rule": row["rule"], f"{name}: found": row["found"], f"{name}: end ratio": row["mean"]}
        said |= {f"{name}: end ratio, low": row["low"], f"{name}: end ratio, high": row["high"]}
    for row in of(table, panel="plan"):
        said |= {"planned over needed": row["mean"], "planned over needed, low": row["low"]}
        said |= {"planned over needed, high": row["high"], "rounds needed": row["needed"]}
    for row in of(table, panel="noise"):
        said[f"theta over rho at {row['x']:g} times the step"] = row["mean"]
    return said


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
    steps.set_ylim(top=10)
    steps.legend(loc="lower left", fontsize=5)
    (whole,) = of(table, panel="rank", kind="rule", x=0)
    shown = {"rule": "at the rule's step", "best": "at the best step"}
    for (kind, label), how in zip(shown.items(), style.looks(shown).values()):
        rows = [row for row in of(table, panel="rank", kind=kind) if row["x"]]
        mean = [row["mean"] for row in rows]
        error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
        look = {"color": how.color, "linestyle": how.dash, "marker": how.marker, "markersize": 3.5}
        ranks.errorbar([row["x"] for row in rows], mean, error, label=f"{label} (n={whole['seeds']})", **look)
    rows = [row for row in of(table, panel="rank", kind="rule") if row["x"]]
    ranks.plot([r["x"] for r in rows], [whole["mean"] * r["price"] for r in rows], "k:", label="by the price")
    ranks.axhline(whole["mean"], color="0.6", linewidth=1, label="all directions")
    ranks.set(xscale="log", yscale="log", xlabel="$r$ of 4,810", ylabel="rounds to half of the loss", title="ranks")
    ranks.legend(loc="upper right", fontsize=5)
    rows = of(table, panel="directions")
    how = style.look("DeComFL")
    error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
    look = {"color": how.color, "linestyle": how.dash, "marker": how.marker, "markersize": 3.5}
    directions.errorbar([row["x"] for row in rows], [row["mean"] for row in rows], error, label="DeComFL (n=5)", **look)
    directions.axvline(rows[0]["rule"], color="0.6", linewidth=1, label="the rule's $P$")
    directions.set(xscale="log", yscale="log", xlabel="directions $P$", title="directions")
    directions.set_ylabel("evaluations to half of the loss")
    directions.legend(fontsize=5)
    style.caption(figure, table, "digits: five clients, 150 images")
    return figure


EXTRAS = [Item("use/network", "The rules on a network, from estimates", measure, draw, SCALES)]
