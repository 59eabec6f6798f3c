"""Peak memory of a run beside the least that its method needs, each case in a process of its own (Linux).

    python benchmarks/memory.py                   a table
    python benchmarks/memory.py --json            the same as JSON
    python benchmarks/memory.py --only smollm2    needs transformers; 10 GB

clients: SCAFFOLD on 100,000 clients of two rows each, ten a round; a matrix regression of 1,000 parameters in float32.
images: the same on a perceptron 64-32-10, each client with two images of 8 x 8.
smollm2: a round of FedAvg on SmolLM2-135M's shape with random weights, one client, one step on 8 texts of 32 tokens.

"peak" is what the process grows by from before `run` to its highest resident memory. "least" is the state at server and
clients, and what one client's step holds (`running.meter`): model, gradient, activations.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from steps import RANDOM, texts
from timing import environment, report

from fedtheory import ImageClassification, Key, MatrixRegression, Scaffold, run
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.problem import Problem
from fedtheory.problems.models.networks import mlp
from fedtheory.running import meter

CLIENTS, SAMPLED, ROUNDS = 100_000, 10, 5
CASES = ("clients", "images", "smollm2")


def made(case: str) -> tuple[Algorithm, Problem]:
    if case == "clients":
        problem = MatrixRegression.ssf(0.5, Key(0), n=CLIENTS, rows=2, batch=2, dtype=torch.float32)
        return Scaffold(1e-2, 5), problem
    if case == "images":
        x, y = torch.randn(2 * CLIENTS, 1, 8, 8), torch.randint(10, (2 * CLIENTS,))
        parts = torch.arange(2 * CLIENTS).split(2)
        return Scaffold(1e-2, 5), ImageClassification(x, y, parts, mlp((1, 8, 8), 10, 32), Key(0), batch=2)
    step = texts("cpu", RANDOM)["fedavg"]
    return step.algorithm, step.problem


def resident(which: str) -> int:
    """Bytes: VmRSS, now, or VmHWM, the most since it was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(which))


def measure(case: str) -> dict[str, float]:
    torch.set_num_threads(1)
    algorithm, problem = made(case)
    of = min(SAMPLED, problem.n)
    run(algorithm, problem, 0, metrics=())  # what is loaded once
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    before = resident("VmRSS")
    history = run(algorithm, problem, ROUNDS if problem.n > 1 else 1, sampled=of, every=ROUNDS, metrics=())
    peak = resident("VmHWM") - before
    state = sum(leaf.nbytes for part in (history.state.server, history.state.own) for leaf in leaves(part))
    step = meter.client(algorithm, problem, history.state, Key(0)).memory
    return {"peak": peak, "state": state, "step": step, "least": state + step, "ratio": peak / (state + step)}


def leaves(part: object) -> list[torch.Tensor]:
    return [] if part is None else [leaf for leaf in vars(part).values() if isinstance(leaf, torch.Tensor)]


def show(table: dict[str, dict[str, float]]) -> None:
    for case, row in table.items():
        sizes = ", ".join(f"{name} {row[name] / 2**20:,.0f} MiB" for name in ("peak", "state", "step"))
        print(f"{case:8} {sizes}; {row['ratio']:.2f} times the least")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, help="one case")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        json.dump(measure(options.only), sys.stdout)
        return
    table = {}
    for case in [options.only] if options.only else CASES:
        command = [sys.executable, __file__, "--here", "--only", case]
        table[case] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    report(table, environment("cpu"), options.json, show)


if __name__ == "__main__":
    main()
