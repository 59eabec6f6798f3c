"""What a user waits for: commands, `reproduce` from an existing environment, the accuracy of 100,000 clients.

    python benchmarks/waits.py           a table
    python benchmarks/waits.py --json    the same as JSON

Commands and accuracies are CPU seconds (five times each: median and quartiles), `reproduce` is wall seconds, once, on
all cores. The network has batch normalisation, which makes a record pass the samples of every client.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
from timing import environment, quartiles
from torch import nn

from fedtheory import Supervised

CLIENTS, TIMES = 100_000, 5
COMMANDS = ("--help", "list", "claims ssf.A3")


def command(words: str) -> float:
    """CPU seconds of the command's process."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "fedtheory", *words.split()], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def accuracies() -> list[float]:
    """CPU seconds of a record each; the first has made what the later ones find."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(2 * CLIENTS, 20, generator=g), torch.randint(2, (2 * CLIENTS,), generator=g)
    module = nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    clients = list(zip(x.split(2), y.split(2)))
    problem = Supervised(module, nn.CrossEntropyLoss(), clients, batch=2, test=(x[:2000], y[:2000]))
    start, seconds = problem.start(), []
    for _ in range(TIMES):
        began = time.process_time()
        problem.accuracy(start)
        seconds.append(time.process_time() - began)
    return seconds


def reproduce() -> float:
    """Wall seconds of the quick scale."""
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "fedtheory", "reproduce", "--out", out], check=True, stdout=subprocess.DEVNULL
        )
        return time.perf_counter() - began


def measure() -> dict[str, Any]:
    seconds = {words: [command(words) for _ in range(TIMES)] for words in COMMANDS}
    seconds[f"accuracy of {CLIENTS:,} clients"] = accuracies()
    table = {name: {"seconds": statistics.median(all), "quartiles": quartiles(all)} for name, all in seconds.items()}
    return table | {"reproduce": {"seconds": reproduce(), "cores": os.cpu_count()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = measure()
    if options.json:
        json.dump(table | {"environment": environment("cpu")}, sys.stdout, indent=2)
        print()
        return
    for name, row in table.items():
        print(f"{name:30} {row['seconds']:.2f} s")


if __name__ == "__main__":
    main()
