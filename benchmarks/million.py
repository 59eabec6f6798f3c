"""What a million clients with ten million parameters would need: counted at a million parameters, and scaled on paper.

    python benchmarks/million.py --json results.json     counted, and written there
    python benchmarks/million.py --table results.json    that file as docs/processes.md has it

Every method that runs on a matrix regression plays a few rounds with five clients, and with three, on d = 10^6
parameters (one matrix of 1000 x 1000, float32), with what the command line gives it: factors and sparse vectors of a
32nd of the model, r = 31 of 1000 rows, ten directions. Counted there are what a client keeps, what the server holds and
what a client's messages take in the last round; numbers that grow with d are multiplied by ten. The seconds are paper:
see ASSUMED.
"""

import argparse
import json
import platform
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import torch

from fedtheory import Key, MatrixRegression, run
from fedtheory.cli import METHOD_OPTIONS
from fedtheory.core import registry
from fedtheory.core.files import write_atomic
from fedtheory.core.message import Known, Seed
from fedtheory.papers.store import source_hash

SIDE, N, D, S, K, BATCH = 1000, 10**6, 10**7, 1000, 5, 20
ASSUMED = {  # of each of eight cards
    "arithmetic": 60e12 * 0.15,  # single-precision operations a second, and the share of them that a round gets
    "links": 50e9,  # bytes a second between cards
    "host": 25e9,  # bytes a second between a card and the memory of its host, where private state lies
}
CARDS = 8


def bytes_of(part: object) -> int:
    """Of all tensors in a state."""
    if isinstance(part, torch.Tensor):
        return part.numel() * part.element_size()
    if isinstance(part, (Seed, Known)) or part is None:
        return 0
    if isinstance(part, tuple):
        return sum(map(bytes_of, part))
    return sum(bytes_of(getattr(part, f.name)) for f in fields(part)) if is_dataclass(part) else 0


def counted(name: str) -> dict[str, float]:
    """Bytes of a client's private state, of the server's, and of a client's messages in a round.

    The server's is a part that does not grow with the clients and one that does, told apart by two more of them.
    """
    rounds = 22 if name == "FLSS" else 3  # ten directions want ten rounds of warm-up, and a round after them
    given = {key: option["default"] for key, option in METHOD_OPTIONS.items()}
    given |= {"lr": 1e-8, "rank": 10 if name == "FLSS" else SIDE // 32, "rounds": rounds - 2}
    entry, held = registry.method(name), {}
    algorithm = (entry.command or entry.make)(argparse.Namespace(**given))
    of: dict[str, float] = {"reduced": algorithm.averaged}
    for n in (5, 3):
        problem = MatrixRegression.ssf(0.5, Key(0), n=n, rows=2, d=SIDE, m=SIDE, batch=None, dtype=torch.float32)
        history = run(algorithm, problem, rounds, metrics=("loss",))
        of["own"], held[n] = bytes_of(history.state.own) / n, bytes_of(history.state.server)
        for way in ("up", "down"):
            of[way] = (history[f"{way}_bytes"][-1] - history[f"{way}_bytes"][-2]) / n
    of["each"] = (held[5] - held[3]) / 2
    of["server"] = held[3] - 3 * of["each"]
    return of


def scaled(value: float) -> float:
    """To D parameters, where it grows with them: what is less than a thousandth of the model does not."""
    return value * (D / SIDE**2 if value > 4 * SIDE**2 / 1000 else 1)


def size(value: float) -> str:
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= power:
            return f"{value / power:.3g} {unit}"
    return f"{value:.0f} B"


def seconds(of: dict[str, float]) -> tuple[float, float, float]:
    """Of a round: arithmetic, private state to the cards and back, uploads between the cards."""
    arithmetic = S * K * BATCH * 6 * D / (CARDS * ASSUMED["arithmetic"])
    state = 2 * S * scaled(of["own"]) / (CARDS * ASSUMED["host"])
    rows = 2 if of["reduced"] else S  # a ring sends an average twice; a gathering brings each card all rows
    return arithmetic, state, rows * scaled(of["up"]) / ASSUMED["links"]


def measure() -> dict:
    """What is counted of every method, and with what; one trainer alone is no federation and is left out."""
    torch.set_num_threads(1)
    names = [name for name in registry.method_names() if not registry.method(name).pooled]
    alone = [name for name in names if registry.method(name).needs == "networks"]
    found = {"methods": {name: counted(name) for name in names if name not in alone}, "networks": alone}
    return found | {"torch": torch.__version__, "python": platform.python_version(), "sources": source_hash()}


def table(found: dict) -> str:
    """A line a method: memory and traffic at D parameters, seconds of a round."""
    head = ["method", "a client keeps", "all clients", "server", "up", "down", "arithmetic s", "state s", "uploads s"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, of in found["methods"].items():
        kept = scaled(of["own"])
        cells = [
            size(kept),
            size(kept * N),
            size(scaled(of["server"]) + N * scaled(of["each"])),
            size(scaled(of["up"])),
            size(scaled(of["down"])),
        ]
        lines.append("| " + " | ".join([name, *cells, *(f"{s:.2g}" for s in seconds(of))]) + " |")
    *names, last = found["networks"]
    networks = f"{', '.join(names)} and {last} are left out because they need a network"
    left = f"{networks}, and MeZO because it trains on one machine."
    return "\n".join([*lines, "", left])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="count, and write it to this file")
    parser.add_argument("--table", type=Path, help="print this file as a table")
    given = parser.parse_args()
    found = json.loads(given.table.read_text()) if given.table else measure()
    if given.json:
        write_atomic(given.json, (json.dumps(found, indent=1) + "\n").encode())
    print(table(found))


if __name__ == "__main__":
    sys.exit(main())
