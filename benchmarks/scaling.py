"""How the cost of a round grows: with N clients, d parameters, rank r, K local steps and P directions.

    python benchmarks/scaling.py                      a table
    python benchmarks/scaling.py --json FILE          the same, written as JSON

On SSF's matrix regression in float32, ten clients a round. A quantity takes four values, three decades; others stay.
Times are CPU seconds of one thread. The points of a line take turns block by block, and the exponent of a decade is the
median of the blocks' own log10(cost / cost a decade below): a change of clock or load between blocks falls out of it.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from timing import environment, quartiles

from fedtheory import SSF, DeComFL, FedAvg, FedSub, Key, MatrixRegression, Spherical, run
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.files import write_atomic
from fedtheory.core.problem import Problem

SAMPLED, STEPS, BATCH, RANK, LR = 10, 5, 20, 20, 1e-4
SECONDS = 0.15  # of a block, about


def regression(n: int = 20, rows: int = 50, d: int = 100, m: int = 10) -> Problem:
    batch = min(BATCH, rows)
    return MatrixRegression.ssf(0.5, Key(0), n=n, rows=rows, d=d, m=m, batch=batch, dtype=torch.float32)


def avg(steps: int = STEPS) -> Algorithm:
    return FedAvg(LR, steps)


def ssf(steps: int = STEPS, r: int = RANK) -> Algorithm:
    return SSF.haar(LR, steps, r)


def sub(r: int) -> Algorithm:
    return FedSub(LR, STEPS, Spherical(r, "orthonormal"))


def decomfl(P: int) -> Algorithm:
    return DeComFL(LR, perturbations=P)


Point = tuple[Algorithm, Problem]
# axis: values, methods, how a point is made, what stays
AXES: dict[str, tuple[list[int], dict[str, Callable[[int, Problem], Algorithm]], Callable[[int], Problem], str]] = {
    "N": (
        [100, 1_000, 10_000, 100_000],
        {"FedAvg": lambda v, p: avg(), "SSF": lambda v, p: ssf()},
        lambda v: regression(n=v, rows=2),
        "two rows of data a client, d = 1,000",
    ),
    "d": (
        [100, 1_000, 10_000, 100_000],
        {"FedAvg": lambda v, p: avg(), "SSF": lambda v, p: ssf(), "DeComFL": lambda v, p: decomfl(10)},
        lambda v: regression(m=v // 100),
        "100 rows, d/100 columns, r = 20",
    ),
    "r": (
        [1, 10, 100, 1_000],
        {"SSF": lambda v, p: ssf(r=v), "FedSub": lambda v, p: sub(v)},
        lambda v: regression(d=1_000, m=1),
        "d = 1,000 in one column",
    ),
    "K": (
        [1, 10, 100, 1_000],
        {"FedAvg": lambda v, p: avg(v), "SSF": lambda v, p: ssf(v)},
        lambda v: regression(),
        "d = 1,000",
    ),
    "P": ([1, 10, 100, 1_000], {"DeComFL": lambda v, p: decomfl(v)}, lambda v: regression(), "d = 1,000, K = 1"),
}


def spent(algorithm: Algorithm, problem: Problem, rounds: int) -> float:
    """CPU seconds of a round. What a run needs once is the difference to a run of no rounds."""
    marks = []
    note = lambda done: marks.append(time.process_time())
    history = run(algorithm, problem, rounds, sampled=SAMPLED, every=rounds, metrics=(), progress=note)
    if history.diverged is not None:
        raise ArithmeticError(f"{algorithm} left the finite numbers: {history.diverged}")
    return (marks[-1] - marks[0]) / rounds


def measure(axis: str, blocks: int) -> dict[str, dict]:
    """Medians, quartiles and exponents of each method along one axis."""
    values, methods, problem_at, _ = AXES[axis]
    problems = {v: problem_at(v) for v in values}
    points = {(name, v): make(v, problems[v]) for name, make in methods.items() for v in values}
    rounds = {}
    for (name, v), algorithm in points.items():
        spent(algorithm, problems[v], 1)
        rounds[name, v] = max(1, min(200, round(SECONDS / spent(algorithm, problems[v], 2))))
    seconds: dict[tuple[str, int], list[float]] = {point: [] for point in points}
    for _ in range(blocks):
        for (name, v), algorithm in points.items():
            seconds[name, v].append(spent(algorithm, problems[v], rounds[name, v]))
    found = {}
    for name in methods:
        decades = [
            [math.log10(b / a) for a, b in zip(seconds[name, low], seconds[name, high])]
            for low, high in pairwise(values)
        ]
        found[name] = {
            "values": values,
            "seconds": [statistics.median(seconds[name, v]) for v in values],
            "quartiles": [quartiles(seconds[name, v]) for v in values],
            "exponents": [statistics.median(decade) for decade in decades],
            "exponent_quartiles": [quartiles(decade) for decade in decades],
        }
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=15, help="blocks a point")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    options = parser.parse_args()
    if options.blocks < 1:
        parser.error("--blocks must be at least 1")
    torch.set_num_threads(1)
    found: dict[str, dict] = {}
    for axis, (_, _, _, stays) in AXES.items():
        found[axis] = {"stays": stays, "methods": measure(axis, options.blocks)}
        for name, line in found[axis]["methods"].items():
            times = ", ".join(f"{v:,}: {s * 1e3:.3g} ms" for v, s in zip(line["values"], line["seconds"]))
            print(f"{axis} {name}: {times}; exponents {', '.join(f'{e:.2f}' for e in line['exponents'])}", flush=True)
    if options.json:
        record = {"axes": found, "blocks": options.blocks, "environment": environment("cpu")}
        write_atomic(options.json, (json.dumps(record, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
