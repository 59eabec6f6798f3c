"""How much of a round of SSF's problem is PyTorch's own: its calls, played again without this package's Python.

    python benchmarks/dispatch.py           a table
    python benchmarks/dispatch.py --json    the same as JSON

"round" is a round as in `rounds.py`. "calls" are the PyTorch calls of its last round, made again in a plain loop with
the same tensors: what remains is dispatch and arithmetic. The same two for a problem of the same shape of code with one
client, row, feature and target, where arithmetic is nil: its "calls" are dispatch alone. So

    dispatch = calls of the tiny round, arithmetic = calls - dispatch, ours = round - calls.

CPU seconds of one thread; the variants take turns, block by block.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from rounds import SAMPLED, ours, workload
from timing import Work, environment, quartiles, turns
from torch.overrides import TorchFunctionMode

from fedtheory import Key, MatrixRegression, Spherical, run
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.problem import Problem

AGAIN = 50  # rounds of a block


class Recorded(TorchFunctionMode):
    """The PyTorch calls made inside, with their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Callable, tuple, dict[str, Any]]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def tiny() -> Problem:
    return MatrixRegression.ssf(0.5, Key(0), n=2, rows=1, d=1, m=1, batch=1, dtype=torch.float32)


def variants(algorithm: Algorithm, problem: Problem, sampled: int) -> tuple[Work, Work, int]:
    """A block of rounds, the calls of one of them as often, and their number."""
    play = lambda rounds=AGAIN: run(algorithm, problem, rounds, sampled=sampled, every=rounds, metrics=())
    made = []
    for rounds in (8, 9):
        with Recorded() as record:
            play(rounds)
        made.append(record.calls)
    count = len(made[1]) - len(made[0])
    middle = len(made[1]) // 2  # far from both ends of the run, where rounds follow each other
    calls = made[1][middle : middle + count]

    @torch.inference_mode()  # as in a run
    def again() -> None:
        for _ in range(AGAIN):
            for func, args, options in calls:
                func(*args, **options)

    return (play, AGAIN), (again, AGAIN), count


def measure(blocks: int) -> dict[str, dict[str, Any]]:
    work, counts = {}, {}
    for name, algorithm in ours().items():
        small = replace(algorithm, projection=Spherical(1, "orthonormal")) if name == "ssf" else algorithm
        for size, problem, sampled, method in (("", workload("cpu"), SAMPLED, algorithm), ("tiny ", tiny(), 1, small)):
            work[name, f"{size}round"], work[name, f"{size}calls"], count = variants(method, problem, sampled)
            counts.setdefault(name, []).append(count)
    seconds = turns(work, "cpu", blocks)
    table = {}
    for name, (count, few) in counts.items():
        if count != few:
            raise AssertionError(f"{name}: {count} calls a round, {few} in the tiny one: not the same code")
        at = {kind: seconds[name, kind] for of, kind in work if of == name}
        parts = {
            "round": at["round"],
            "dispatch": at["tiny calls"],
            "arithmetic": [a - b for a, b in zip(at["calls"], at["tiny calls"])],
            "ours": [a - b for a, b in zip(at["round"], at["calls"])],
            "ours, tiny": [a - b for a, b in zip(at["tiny round"], at["tiny calls"])],
        }
        table[name] = {
            part: {"median": statistics.median(of), "quartiles": quartiles(of)} for part, of in parts.items()
        }
        table[name]["calls"] = count
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=25)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = measure(options.blocks)
    if options.json:
        json.dump(table | {"environment": environment("cpu")}, sys.stdout, indent=2)
        print()
        return
    for name, row in table.items():
        print(
            f"{name:9}{row.pop('calls'):4} calls; us: "
            + ", ".join(f"{p} {v['median'] * 1e6:.0f}" for p, v in row.items())
        )


if __name__ == "__main__":
    main()
