"""run"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from fedtheory.cli import METHOD_OPTIONS
from fedtheory.cli.output import print_json
from fedtheory.core import checks, registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.problems.pooled import Pooled
from fedtheory.running import shards, simulate, watchdog


class Heeded:
    """Options that say which of them were read."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._read = options, set()

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self._options):
            registry.no_option(name, list(METHOD_OPTIONS))
        self._read.add(name)
        return getattr(self._options, name)


def method(options: argparse.Namespace) -> Algorithm:
    """The algorithm that the options ask for.

    Raises ValueError for an option that it does not heed.
    """
    heeded: Any = Heeded(options)
    entry = registry.method(options.algorithm)
    made = (entry.command or entry.make)(heeded)
    for name, option in METHOD_OPTIONS.items():
        given = getattr(options, name)
        if name not in heeded._read and given != option["default"]:
            expected = f"nothing of it with {options.algorithm}, which does not heed it"
            checks.reject(name, given, expected, f"leave out --{name.replace('_', '-')}")
    return made


def refuse_text_options(options: argparse.Namespace) -> None:
    """Raise ValueError for an option of the problem text with another one."""
    for name in ("model", "task", "lora", "data"):
        if options.problem != "text" and getattr(options, name) is not None:
            expected = f"nothing of it with the problem {options.problem}"
            checks.reject(name, getattr(options, name), expected, f"leave out --{name}")


def print_rows(columns: Mapping[str, Sequence[float]], metrics: Sequence[str], more: Sequence[str] = ()) -> None:
    """Rounds, metrics and bytes of a run, and further columns, a line for each record."""
    names = ("round", *metrics, "up_bytes", "down_bytes", *more)
    print("".join(f"{name.replace('_', ' '):>12}" for name in names))
    for row in zip(*(columns[name] for name in names)):
        print("".join(f" {x:>11.4e}" if isinstance(x, float) else f" {x:>11}" for x in row))


def show(options: argparse.Namespace) -> None:
    """run"""
    device = checks.device("device", options.device)
    seeds = range(checks.whole("seeds", 1 if options.seeds is None else options.seeds, 1))
    if options.seed is not None:
        if options.seeds is not None:
            checks.reject("seed", options.seed, "either --seed or --seeds (a number of seeds)", "leave out one")
        seeds = (options.seed,)
    rounds = checks.whole("rounds", options.rounds, 0, checks.MOST_ROUNDS)
    every = 1 << max(0, (rounds // 20).bit_length() - 1)  # a power of two: a longer run has it in its grid
    every = every if options.every is None else checks.whole("every", options.every, 1)
    algorithm, offer = method(options), registry.problem(options.problem)
    torch.set_num_threads(1)
    group = None
    if watchdog.launched():
        device = shards.join_group(str(device))
        group = shards.Group(reduce=options.reduce)
    elif options.reduce:
        fix = "start with torchrun --nproc-per-node P -m fedtheory run ..."
        checks.reject("reduce", True, "several processes, whose uploads it sums", fix)
    speaks = group is None or group.rank == 0
    refuse_text_options(options)
    if options.checkpoint is not None:
        checks.path("checkpoint", options.checkpoint)
    runs = []
    for seed in seeds:
        key = Key(seed).fold("data")
        problem, metrics = offer.make(key, str(device), options), offer.metrics
        if registry.method(options.algorithm).pooled:
            problem = Pooled(problem)
        folder = None if options.checkpoint is None else Path(options.checkpoint) / f"seed-{seed}"
        quiet = options.json or not speaks or not sys.stderr.isatty()
        with tqdm(total=rounds, unit="round", disable=quiet) as bar, simulate.may_diverge():
            history = simulate.run(
                algorithm,
                problem,
                rounds,
                sampled=options.sampled,
                seed=seed,
                every=every,
                metrics=metrics,
                blocks=options.blocks,
                group=group,
                memory_map=options.memory_map,
                checkpoint=folder,
                checkpoint_every=checks.MOST,  # by time: a round may take microseconds or minutes
                progress=lambda done, bar=bar: bar.update(done - bar.n),
            )
        if not speaks:
            continue
        runs.append(
            {"seed": seed, "algorithm": repr(algorithm), "columns": history.columns, "diverged": history.diverged}
        )
        if not options.json:
            print(f"{algorithm!r}, seed {seed}")
            print_rows(history.columns, metrics)
            if history.diverged:
                print(f"diverged in round {history.diverged.round}: {history.diverged.quantity} is not finite")
    if options.json and speaks:
        print_json([{**run, "diverged": run["diverged"] and vars(run["diverged"])} for run in runs])
