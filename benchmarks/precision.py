"""What precision="bf16" does to a result: paired differences of accuracy over seeds.

    python benchmarks/precision.py                                  digits, five minutes
    python benchmarks/precision.py --data FOLDER                    and Fashion-MNIST, first rounds only
    python benchmarks/precision.py --data FOLDER --rounds 100       and Fashion-MNIST at the papers' length, hours
    python benchmarks/precision.py --json

FedAvg and FedMUD+BKD+AAD as FedMUD's committed tables run them (`figures.fedmud.settings`: clients, partition, rates,
a), in both precisions, from the same start, with the same clients, batches and factors. On digits with the perceptron
of the quick scale, with DeComFL's MNIST network and with FedMUD's four convolutions (fedmud-cnn4), at the perceptron's
rates (at which FedMUD does not train the second: it is left out there); on Fashion-MNIST with the latter two, at the
paper's. Accuracy is the mean of the last two records, as in the tables. A difference is bf16's accuracy less float32's
on the same seed, in points; its interval is Student's, 95%. Seconds are CPU seconds of a run, one thread.
"""

import argparse
import os
import statistics
import sys

import torch
from timing import environment, quartiles, report, timed

from fedtheory import run
from fedtheory.papers.mud.settings import HERE, algorithm, spec
from fedtheory.papers.store import Spec, interval

METHODS = ("FedAvg", "FedMUD+BKD+AAD")
PRECISIONS = ("full", "bf16")
SHORT = 4  # rounds on Fashion-MNIST where none are asked for


def settings(rounds: int | None, files: bool) -> dict[str, dict[str, object]]:
    """Name -> column and scale of FedMUD's tables, and what is changed in them."""
    digits: dict[str, object] = {"column": HERE, "scale": "quick"}
    found = {f"digits/{net}": digits | {"network": net} for net in ("mlp", "decomfl-mnist", "fedmud-cnn4")}
    if files:
        fashion: dict[str, object] = {"column": "FMNIST N1", "scale": "paper", "rounds": rounds or SHORT}
        found |= {f"fashion_mnist/{net}": fashion | {"network": net} for net in ("decomfl-mnist", "fedmud-cnn4")}
    return found


def methods(name: str) -> tuple[str, ...]:
    """Those that train in a setting."""
    return METHODS[:1] if name == "digits/decomfl-mnist" else METHODS


def specs(setting: dict[str, object], name: str, seed: int) -> dict[str, Spec]:
    """A run of a method in each precision."""
    given = dict(setting)
    column, scale = str(given.pop("column")), str(given.pop("scale"))
    rounds = given.get("rounds")
    every = None if rounds is None else max(1, int(str(rounds)) // 5)
    how = algorithm(name, column, scale, given.get("network"))
    return {kind: spec(how, column, scale, seed, every=every, precision=kind, **given) for kind in PRECISIONS}


def played(one: Spec, device: str) -> tuple[float, float]:
    """CPU seconds of a run, and its accuracy in %."""
    problem, found = one.build(device), []
    options = {"sampled": one.sampled, "seed": one.seed, "every": one.every, "metrics": one.metrics}
    seconds = timed(lambda: found.append(run(one.algorithm, problem, one.rounds, **options)), device)
    return seconds, 100 * statistics.fmean(found[0]["accuracy"][-2:])


def measure(setting: dict[str, object], name: str, seeds: int, device: str) -> dict[str, object]:
    """Accuracies by precision, their paired differences in points, and seconds; both precisions of a seed in turn."""
    reached: dict[str, list[float]] = {kind: [] for kind in PRECISIONS}
    seconds: dict[str, list[float]] = {kind: [] for kind in PRECISIONS}
    for seed in range(seeds):
        wanted = specs(setting, name, seed)
        for kind, one in wanted.items():
            spent, accuracy = played(one, device)
            seconds[kind].append(spent)
            reached[kind].append(accuracy)
    full, bf16 = (reached[kind] for kind in PRECISIONS)
    mean, low, high = interval([b - a for a, b in zip(full, bf16)])
    paired = [a / b for a, b in zip(*(seconds[kind] for kind in PRECISIONS))]
    return {
        "rounds": wanted["full"].rounds,
        "seeds": seeds,
        "accuracy": {kind: statistics.fmean(values) for kind, values in reached.items()},
        "accuracies": reached,
        "difference": mean,
        "interval": [low, high],
        "seconds": {kind: statistics.median(values) for kind, values in seconds.items()},
        "ratio": statistics.median(paired),
        "ratio_quartiles": quartiles(paired),
    }


def show(table: dict[str, dict]) -> None:
    print("\naccuracy in % (mean over seeds), bf16 less float32 in points [95%], seconds full/bf16 [quartiles]\n")
    for name, row in table.items():
        (low, high), (first, third) = row["interval"], row["ratio_quartiles"]
        print(
            f"{name:42} float32 {row['accuracy']['full']:.2f}   bf16 {row['accuracy']['bf16']:.2f}   "
            f"difference {row['difference']:+.2f} [{low:+.2f}, {high:+.2f}]   "
            f"{row['ratio']:.2f}x [{first:.2f}, {third:.2f}]   ({row['rounds']} rounds, n = {row['seeds']})"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", help="folder of data sets as published: also Fashion-MNIST")
    parser.add_argument("--rounds", type=int, help=f"on Fashion-MNIST (default: {SHORT}; the paper's: 100)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds must be at least 2: an interval is over seeds")
    if options.rounds is not None and (options.rounds < 1 or options.data is None):
        parser.error("--rounds must be at least 1, and is of Fashion-MNIST: name its folder with --data")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: no CUDA device was found")
    if options.data is not None:
        os.environ["FEDTHEORY_DATA"] = os.path.abspath(options.data)
    torch.set_num_threads(1)
    where, table = environment(options.device), {}
    for name, setting in settings(options.rounds, options.data is not None).items():
        for method in methods(name):
            table[f"{name}, {method}"] = measure(setting, method, options.seeds, options.device)
    report(table, where, options.json, show)
    return 0


if __name__ == "__main__":
    sys.exit(main())
