"""federate"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch

from fedtheory.cli import METHOD_OPTIONS
from fedtheory.cli.output import print_json
from fedtheory.cli.run import method, print_rows, refuse_text_options
from fedtheory.core import checks, registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.federation import local, wire
from fedtheory.running import simulate

_PASSED = ("algorithm", "problem", "rounds", "sampled", "model", "task", "lora", *METHOD_OPTIONS)
_SEED = 0


def parts(words: dict[str, Any]) -> tuple[Algorithm, Problem, dict[str, Any]]:
    """What the words of the command line stand for, in each process anew: the same on both sides."""
    options = argparse.Namespace(**words)
    problem = registry.problem(options.problem).make(Key(_SEED).fold("data"), "cpu", options)
    return method(options), problem, {"rounds": options.rounds, "sampled": options.sampled, "seed": _SEED}


def show(options: argparse.Namespace) -> None:
    """federate"""
    if registry.method(options.algorithm).pooled:
        checks.reject("algorithm", options.algorithm, "a federated method", "play it with the command run")
    checks.whole("rounds", options.rounds, 1, checks.MOST_ROUNDS)
    refuse_text_options(options)
    torch.set_num_threads(1)
    words = {name: getattr(options, name) for name in _PASSED}
    algorithm, problem, _ = parts(words)
    nodes = checks.whole(
        "nodes", options.nodes, 1, problem.n, f"start at most one node for each of {problem.n} clients"
    )
    if options.sampled is not None:
        checks.whole("sampled", options.sampled, 1, problem.n, f"sample from 1 to the {problem.n} clients there are")
    metrics = registry.problem(options.problem).metrics
    with tempfile.TemporaryDirectory(prefix="fedtheory-") as folder:
        held = [local.clients_of(node, nodes, problem.n) for node in range(nodes)]
        with local.federation(held, Path(folder)) as here:
            seconds = 600.0 * (1 + options.rounds)
            record = here.play(local.app(words, f"{parts.__module__}.{parts.__name__}"), seconds)
            rows = wire.by_round(record, here.counters)
            models = local.models(here.folder)
    history = simulate.run(
        algorithm, problem, options.rounds, sampled=options.sampled, seed=_SEED, metrics=metrics, blocks=problem.n
    )
    columns = record["columns"] | {
        metric: [getattr(problem, metric)(x.to(problem.device)) for x in models] for metric in metrics
    }
    same = {
        "models": torch.equal(models[-1], history.x.cpu()) and all(columns[m] == history[m] for m in metrics),
        "count": all(columns[name] == history[name] for name in record["columns"]),
        "payload": all(row[f"{way}_payload"] == row[f"{way}_count"] for row in rows for way in ("up", "down")),
    }
    dropped = [(one["round"], i, why) for one in record["rounds"] for i, why in one["dropped"].items()]
    if options.json:
        print_json({"algorithm": repr(algorithm), "columns": columns, "wire": rows, "same": same, "dropped": dropped})
        return
    print(f"{algorithm!r}, {nodes} nodes, {problem.n} clients")
    wires = {f"{way}_wire": _sums(rows, f"{way}_wire") for way in ("up", "down")}
    print_rows(columns | wires, metrics, tuple(wires))
    for t, i, why in dropped:
        print(f"round {t}: client {i} dropped: {why}")
    print(f"models: {'the bits of run' if same['models'] else 'not those of run'}")
    print(f"count: {'that of run' if same['count'] else 'not that of run'}")
    print(f"payload: {'equal to the count' if same['payload'] else 'not equal to the count'}")
    over = sum(row["up_wire"] + row["down_wire"] - row["up_payload"] - row["down_payload"] for row in rows)
    messages = sum(row["messages"] for row in rows)
    print(f"overhead: {over / max(messages, 1):.0f} bytes for each of {messages} messages")


def _sums(rows: list[dict[str, int]], name: str) -> list[int]:
    """So far, from the start."""
    total = [0]
    for row in rows:
        total.append(total[-1] + row[name])
    return total
