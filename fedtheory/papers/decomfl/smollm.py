"""A pretrained model of 135 million weights, fine-tuned as DeComFL's Tables 2 and 6 have it: what zeroth order does.

SmolLM2 is not the papers' OPT: curves, orders and bytes are ours, and no printed number stands beside them. The model
is looked for in the folder of the data (FEDTHEORY_DATA), as `smollm2`, which `python -m fedtheory model` writes, beside
the task's own. At quick scale a tiny model that is made on the spot goes the same way.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedzo import FedZO
from fedtheory.compare import TUNING_SEED
from fedtheory.core.algorithm import Algorithm
from fedtheory.papers import style
from fedtheory.papers.decomfl.curves import MU
from fedtheory.papers.frontier.items import beyond
from fedtheory.papers.store import Item, Result, Spec, Wants, interval
from fedtheory.running.records import Table

P, RANK, CLIENTS, SAMPLED, BATCH = 5, 8, 8, 2, 8
METHODS: dict[str, Callable[[float], Algorithm]] = {
    "FedAvg": lambda lr: FedAvg(lr, 1),
    "FedZO": lambda lr: FedZO(lr, 1, P, MU, direction="gaussian"),
    "DeComFL": lambda lr: DeComFL(lr, 1, P, MU),
}
WAYS = {"full": None, f"LoRA {RANK}": RANK}  # what is trained -> rank of adapters
Rates = dict[tuple[str, str], float]  # (method, way) -> learning rate


@dataclass(frozen=True)
class Setting:
    """A task at a scale.

    Fields:
        problem, options, dtype: as `Spec` has them.
        rounds: by zeroth order or not.
        trial: rounds for each rate that is tried.
        every: records.
        rates: tried first, rising, by (zeroth order or not, way).
        fixed: rates that are taken whatever the trials say, by the same; none is then tried beyond `rates`.
    """

    problem: str
    options: Mapping[str, Any]
    dtype: str
    rounds: Mapping[bool, int]
    trial: Mapping[bool, int]
    every: Mapping[bool, int]
    rates: Mapping[tuple[bool, str], tuple[float, ...]]
    fixed: Mapping[tuple[bool, str], float] = field(default_factory=dict, repr=False)


BEYOND = 2  # rates that may be added to a grid
FULL, LORA = WAYS
QUICK = Setting(
    "sentiment",
    {"train": 256, "tested": 128},
    "float64",
    {True: 20, False: 20},
    {True: 5, False: 5},
    {True: 5, False: 5},
    {
        (True, FULL): (0.003, 0.01, 0.03),
        (True, LORA): (0.3, 1.0, 3.0),
        (False, FULL): (0.01, 0.03, 0.1),
        (False, LORA): (0.3, 1.0, 3.0),
    },
)


_RATES = {
    (True, FULL): (1e-6, 3e-6, 1e-5),
    (True, LORA): (3e-4, 1e-3, 3e-3),  # from 0.03 on 24 rounds raise the loss of SST-2, by half and more
    (False, FULL): (3e-4, 1e-3, 3e-3),
    (False, LORA): (0.3, 1.0, 3.0),
}
_AROUND: dict[tuple[bool, str], tuple[float, ...]] = {
    (True, FULL): (3e-6, 1e-5, 3e-5, 1e-4, 3e-4),
    (True, LORA): (),
    (False, FULL): (1e-4, 3e-4, 1e-3),
    (False, LORA): (),
}
_SST2 = {(True, FULL): 1e-4, (True, LORA): 1e-2, (False, FULL): 3e-4, (False, LORA): 0.3}  # what its trials chose


def _medium(
    task: str,
    rounds: int,
    trial: int,
    rates: Mapping[tuple[bool, str], tuple[float, ...]],
    fixed: Mapping[tuple[bool, str], float] | None = None,
    **options: Any,
) -> Setting:
    return Setting(
        "text",
        {"task": task, "prompts": "mezo", "clients": CLIENTS, "batch": BATCH, **options},
        "float32",
        {True: rounds, False: rounds // 4},
        {True: trial, False: trial // 4},
        {True: rounds // 6, False: rounds // 24},
        rates,
        fixed or {},
    )


SETTINGS = {
    "sst2": {"quick": QUICK, "medium": _medium("sst2", 240, 24, _RATES, subset=1000)},
    "cb": {"medium": _medium("cb", 80, 12, _AROUND, _SST2)},
}


def spec(of: Setting, method: str, way: str, lr: float, seed: int, trial: bool = False) -> Spec:
    """One run; a trial records the loss of the training texts only."""
    zeroth, options = method != "FedAvg", {**of.options, "lora": WAYS[way]}
    if of.problem == "text":
        folder = Path(os.environ.get("FEDTHEORY_DATA", ".")).absolute()
        options |= {"model": str(folder / "smollm2"), "data": str(folder)}
        options["at_once"] = 8 if WAYS[way] else BATCH * SAMPLED  # of all weights every pass draws directions anew
    rounds = (of.trial if trial else of.rounds)[zeroth]
    return Spec(
        METHODS[method](lr),
        of.problem,
        tuple(sorted(options.items())),
        rounds,
        seed,
        SAMPLED,
        rounds if trial else of.every[zeroth],
        of.dtype,
        ("loss",) if trial else ("loss", "accuracy"),
    )


def tune(of: Setting, ways: Sequence[str]) -> Wants[tuple[Rates, dict[str, dict[str, float]]]]:
    """The best rate of each method and way, and the loss that each rate reached.

    The grid first; where the best of what was tried is at an end, the next value beyond, `BEYOND` times.
    """
    asked: dict[tuple[str, str], tuple[float, ...]]
    asked = {(name, way): of.rates[name != "FedAvg", way] for way in ways for name in METHODS}
    tried: dict[tuple[str, str], dict[float, float]] = {which: {} for which in asked}
    fixed = {(name, way): of.fixed.get((name != "FedAvg", way)) for name, way in asked}
    chosen: Rates = {which: rate for which, rate in fixed.items() if rate is not None}
    for _ in range(1 + BEYOND):
        wanted = {
            (which, rate): spec(of, *which, rate, TUNING_SEED, trial=True)
            for which, rates in asked.items()
            for rate in rates
        }
        results = yield wanted.values()
        for (which, rate), one in wanted.items():
            found = results[one]
            tried[which][rate] = float("inf") if found["diverged"] else found["columns"]["loss"][-1]
        asked = dict.fromkeys(asked, ())
        for which, losses in tried.items():
            if fixed[which] is None:
                chosen[which] = min(losses, key=lambda rate: losses[rate])
                rates = sorted(losses)
                asked[which] = (beyond(rates, chosen[which]),) if chosen[which] in (rates[0], rates[-1]) else ()
        if not any(asked.values()):
            break
    said = {
        f"{name}, {way}": {f"{rate:g}": loss for rate, loss in sorted(losses.items())}
        for (name, way), losses in tried.items()
    }
    return chosen, said


def measure(task: str, ways: Sequence[str], scale: str, seeds: int) -> Wants[Result]:
    """Accuracy of every method and way over rounds and bytes, at the rate chosen on another seed."""
    of = SETTINGS[task][scale]
    chosen, tried = yield from tune(of, ways)
    wanted = {(which, seed): spec(of, *which, rate, seed) for seed in range(seeds) for which, rate in chosen.items()}
    results = {}
    for seed in range(seeds):  # a seed is finished before the next one is begun
        results |= yield [one for (_, of_seed), one in wanted.items() if of_seed == seed]
    table, notes = [], []
    for which, rate in chosen.items():
        runs = [results[wanted[which, seed]]["columns"] for seed in range(seeds)]
        for at, r in enumerate(runs[0]["round"]):
            mean, low, high = interval([100 * one["accuracy"][at] for one in runs])
            sent = sum(one["up_bytes"][at] + one["down_bytes"][at] for one in runs) / seeds / CLIENTS / 1e6
            table.append(
                {"method": which[0], "trained": which[1], "round": r, "mean": mean, "low": low, "high": high}
                | {"loss": sum(one["loss"][at] for one in runs) / seeds, "MB": sent, "rate": rate, "seeds": seeds}
                | wanted[which, 0].ran()
            )
        notes.append(curve_sentence(which, runs, table[-1]["MB"]))
    settings = {"setting": repr(of), "tried": tried, "methods": {f"{n}, {w}": r for (n, w), r in chosen.items()}}
    if of.fixed:
        settings["fixed"] = settings["methods"]
    said = [reading(of, ways), *not_followed(of, tried, table[0]["loss"]), *([TINY] if scale == "quick" else [])]
    return Result(table, [], settings, [*said, *notes])


def reading(of: Setting, ways: Sequence[str]) -> str:
    """What the papers do not say."""
    adapters = f"LoRA of rank {RANK} on queries and values" if LORA in ways else "all weights trained"
    rates = "Rates: those that SST-2's trials chose."
    if not of.fixed:
        rates = (
            f"Rates: three for each method and way, and up to {BEYOND} beyond where the best is at an end; a short run "
            f"each on seed {TUNING_SEED}, chosen by the loss of the training texts."
        )
    return (
        f"{SAMPLED} of {CLIENTS} clients a round, Dirichlet(1), one local step, P = {P}, mu = {MU:g}, forward "
        f"differences, {adapters}. FedZO's directions are Gaussian. {rates} Accuracy on the validation split, which "
        "chooses nothing."
    )


def not_followed(of: Setting, tried: Mapping[str, Mapping[str, float]], before: float) -> list[str]:
    """A sentence about trials where rates are fixed; before: the loss of the model as it is loaded."""
    said = [
        f"{which.partition(',')[0]} " + ", ".join(f"{loss:.3f} at {rate}" for rate, loss in losses.items())
        for which, losses in tried.items()
        if losses
    ]
    if not of.fixed or not said:
        return []
    return [
        f"Trials on seed {TUNING_SEED}, {of.trial[True]} rounds by zeroth order and {of.trial[False]} of FedAvg, are "
        f"not followed. The loss of the training texts, {before:.3f} before, after them: {'; '.join(said)}."
    ]


TINY = "A tiny model with generated reviews stands in for SmolLM2 and the task: it shows that the code runs."


def curve_sentence(which: tuple[str, str], runs: Sequence[Mapping[str, Sequence[float]]], sent: float) -> str:
    """A sentence about the curve of one method and way."""
    first, last = (interval([100 * one["accuracy"][at] for one in runs]) for at in (0, -1))
    gained = interval([100 * (one["accuracy"][-1] - one["accuracy"][0]) for one in runs])
    means = [100 * sum(values) / len(runs) for values in zip(*(one["accuracy"] for one in runs))]
    top = means.index(max(means))
    return (
        f"{which[0]}, {which[1]}: {first[0]:.1f}% before, {means[top]:.1f}% at its highest record (round "
        f"{runs[0]['round'][top]:g}), {last[0]:.1f}% after {runs[0]['round'][-1]:g} rounds "
        f"({gained[0]:+.1f} points [{gained[1]:+.1f}, {gained[2]:+.1f}], n = {len(runs)}), {sent:.3g} MB a client"
    )


@style.styled
def draw(table: Table, *said: str) -> Figure:
    """Accuracy against rounds and against bytes; where both are there, adapters are solid and all weights dashed."""
    figure, (left, right) = style.new_figure(2)
    dashes = dict(zip(dict.fromkeys(row["trained"] for row in table), ("-", "--")))
    for name in dict.fromkeys(row["method"] for row in table):
        for way, dash in dashes.items():
            rows = [row for row in table if (row["method"], row["trained"]) == (name, way)]
            how = style.look(name)._replace(dash=dash)
            mean, low, high = ([row[part] for row in rows] for part in ("mean", "low", "high"))
            n = rows[0]["seeds"]
            style.band(left, [row["round"] for row in rows], mean, low, high, f"{name}, {way}", n, how)
            style.band(right, [row["MB"] for row in rows[1:]], mean[1:], low[1:], high[1:], f"{name}, {way}", n, how)
    left.axhline(table[0]["mean"], color="0.6", linewidth=0.8, zorder=0)
    left.set(xlabel="communication rounds (grey: before fine-tuning)", ylabel="accuracy in %")
    right.set(xlabel="MB a client, both ways, counted", xscale="log")
    beyond = any(row["low"] < 0 or row["high"] > 100 for row in table)
    for axes in (left, right):
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 0), min(high, 100))
    style.caption(figure, table, *said, *["cut at 0 and 100%"] * beyond)
    style.legend_above(figure, 3)
    return figure


def few(table: Table) -> Figure:
    return draw(table, FEW)


BOTH = (LORA, FULL)  # adapters are cheaper, and come first
ADAPTERS, SST2 = (partial(measure, "sst2", ways) for ways in ((LORA,), BOTH))
FEW = "tested on CB's 56 texts: one is 1.8 points, and the standard error of an accuracy is more than six"
CB_ADAPTERS, CB = (partial(measure, "cb", (way,)) for way in BOTH)
EXTRAS = [
    Item("decomfl/smollm2_lora", "SmolLM2-135M on SST-2, adapters alone", ADAPTERS, draw, tuple(SETTINGS["sst2"])),
    Item("decomfl/smollm2", "SmolLM2-135M on SST-2", SST2, draw, tuple(SETTINGS["sst2"])),
    Item("decomfl/smollm2_cb_lora", "SmolLM2-135M on CB, adapters alone", CB_ADAPTERS, few, tuple(SETTINGS["cb"])),
    Item("decomfl/smollm2_cb", "SmolLM2-135M on CB, all weights", CB, few, tuple(SETTINGS["cb"])),
]
