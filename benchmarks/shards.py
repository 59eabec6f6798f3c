"""Clients divided over processes: memory of a process, seconds a round, efficiency.

    torchrun --standalone --nproc-per-node 4 benchmarks/shards.py --json results.json
    python benchmarks/shards.py --table results.json    all runs into that file, as docs/processes.md has them

100,000 clients on SSF's matrix regression with d = 1,000 parameters (100 features, 10 outputs; two rows of data a
client), float64, SSF with r = 20, K = 5: control variates of 800 MB. All of them take part in a round, or 1,000 of
them. Every process makes the data of all clients from the same key and keeps the control variates of its own.

Times are wall time between two barriers, the median of the rounds after the first two; CPU seconds are the sum over
the processes. Memory is the resident set of a process at its peak, and what of it was there before the run started.
One run's result is added to the file, under its name; the bits of the model stand beside it.
"""

import argparse
import hashlib
import json
import os
import platform
import resource
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

import torch

from fedtheory import SSF, Key, MatrixRegression, run
from fedtheory.core.files import write_atomic
from fedtheory.papers.store import source_hash
from fedtheory.running import shards

CLIENTS, ROUNDS = 100_000, 8


def peak() -> float:
    """Resident memory at its peak, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(sampled: int, clients: int, blocks: int, reduce: bool, mapped: str | None) -> dict:
    """One run of a few rounds; what it took at this process."""
    problem = MatrixRegression.ssf(0.5, Key(0), n=clients, rows=2, batch=2, dtype=torch.float64)
    shards.join_group()
    group, at, cpu = shards.Group(reduce=reduce), [], []

    def note(done: int) -> None:
        at.append(time.perf_counter())
        cpu.append(time.process_time())

    before = peak()
    options = {"sampled": sampled, "blocks": blocks, "memory_map": mapped, "every": 1, "progress": note}
    history = run(SSF.haar(1e-2, 5, 20), problem, ROUNDS, group=group, **options)
    bits = hashlib.sha256(history.x.numpy().tobytes()).hexdigest()[:16]
    rounds = [b - a for a, b in pairwise(at[2:])]
    work = [b - a for a, b in pairwise(cpu[2:])]
    own = {"seconds": statistics.median(rounds), "cpu": statistics.median(work), "before": before, "peak": peak()}
    return {"rank": group.rank, "size": group.size, "bits": bits, **own}


def table(found: dict) -> str:
    """A line a run: seconds of a round, how much faster than one process that is, memory."""
    head = ["participants a round", "processes", "s a round", "speed-up", "efficiency", "CPU s a round"]
    head += ["peak MB a process", "bits of the model"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    cores = int(found["machine"].split()[-2])
    for name, of in sorted(found["runs"].items()):
        start, how = name.split(", P = ")
        sampled, gain = int(start.split()[-1]), found["runs"][f"{start}, P = 1"]["seconds"] / of["seconds"]
        processes = how + f" (on {cores} cores)" * (of["size"] > cores)
        against = ["", ""] if how == "1" else [f"{gain:.2f}", f"{gain / of['size']:.0%}" if of["size"] > 1 else ""]
        cells = [f"{sampled:,}", processes, f"{of['seconds']:.3g}", *against, f"{of['cpu']:.3g}"]
        lines.append("| " + " | ".join([*cells, f"{of['peak']:,.0f}", of["bits"][:8]]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--sampled", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=shards.BLOCKS)
    parser.add_argument("--reduce", action="store_true")
    parser.add_argument("--memory-map", default=None)
    parser.add_argument("--json", type=Path, help="add the result to this file")
    parser.add_argument("--table", type=Path, help="print this file's runs")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.table.read_text())))
        return
    torch.set_num_threads(1)
    own = measure(given.sampled, given.clients, given.blocks, given.reduce, given.memory_map)
    all_of = [None] * own["size"]
    torch.distributed.all_gather_object(all_of, own)
    if own["rank"] != 0:
        return
    assert len({one["bits"] for one in all_of}) == 1
    kind = ", reduced" * given.reduce + ", mapped" * (given.memory_map is not None)
    name = f"N = {given.clients}, S = {given.sampled}, P = {own['size']}{kind}"
    result = own | {"peak": max(one["peak"] for one in all_of), "cpu": sum(one["cpu"] for one in all_of)}
    result |= {"before": max(one["before"] for one in all_of), "blocks": given.blocks, "rounds": ROUNDS}
    print(json.dumps({name: result}))
    if given.json:
        found = json.loads(given.json.read_text()) if given.json.exists() else {"runs": {}}
        found |= {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "torch": torch.__version__}
        found |= {"python": platform.python_version(), "sources": source_hash()}
        found["runs"][name] = result
        write_atomic(given.json, (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
