"""A commit of this repository against the working tree: the same calls on both, in turns, each in a process of its own.

    python benchmarks/since.py COMMIT                 a table
    python benchmarks/since.py COMMIT --json          the same as JSON
    python benchmarks/since.py COMMIT --only toy      what begins so: toy, mlp, cnn, evaluation, process
    python benchmarks/since.py COMMIT --reproduce 3   and so many pairs of `reproduce --scale quick`, in an empty folder
    python benchmarks/since.py COMMIT --device cuda   on a card, with FedMUD's and FLSS's networks and ResNet-110 more
    python benchmarks/since.py FOLDER                 with the tree in a folder in the place of a commit's

What is called exists in both: `fedtheory.run` as a user calls it, on the workloads of `rounds.py` and `networks.py` (in
float32), without what these time beside it. "evaluation" is the accuracy of a network with batch normalisation
(FedMUD's four convolutions, 20 clients) on 2,000 images; "process" is one that imports the package and plays one round.

Times are CPU seconds of one thread, of all its processes for "process" and "reproduce", which has two workers and its
wall time, too. On a card they are wall seconds from an idle card to an idle card; "cnn8", "cnn4" and "flss" are rounds
of FedAvg there with FedMUD's and FLSS's networks (ten clients, ten steps of 64), "resnet110" is a step on 32 images.
The commit is checked out into a folder that is deleted afterwards; both trees use the interpreter and the packages of
the caller. Of times and of the blocks' own ratios (before / now) the median counts.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TIMES = {"toy/fedavg": 600, "toy/scaffold": 400, "toy/ssf": 300, "mlp/fedavg": 8, "cnn/fedavg": 1, "cnn/decomfl": 2}
CARD = {
    f"{name}/fedavg{end}": count
    for name, count in {"cnn8": 1, "cnn4": 2, "flss": 2, "resnet110": 3}.items()
    for end in ("", " bf16")
} | {"cnn/fedavg bf16": 2, "cnn/decomfl bf16": 4, "toy/fedavg": 60, "toy/scaffold": 60, "toy/ssf": 30}
ONCE = "import fedtheory as f; f.run(f.FedAvg(0.01, 5), f.MatrixRegression.ssf(0.5, f.Key(0)), 1, sampled=10)"


def calls(device: str) -> dict[str, tuple[Callable[[], object], int]]:
    """By name: a call of the package on the path, and how many rounds it plays. Made when they are first asked for."""
    import torch

    from fedtheory import FedAvg, Key, MatrixRegression, Scaffold, run
    from fedtheory.algorithms.readings.decomfl import DeComFLReading
    from fedtheory.algorithms.readings.ssf import SSFReading
    from fedtheory.problems.images import ImageClassification
    from fedtheory.problems.models.networks import network

    toy = MatrixRegression.ssf(0.5, Key(0), batch=20, dtype=torch.float32, device=device)
    how: dict[str, tuple[Any, Any]] = {
        "toy/fedavg": (FedAvg(1e-2, 5), toy),
        "toy/scaffold": (Scaffold(1e-2, 5), toy),
        "toy/ssf": (SSFReading.haar(1e-2, 5, 20, factored=True), toy),
    }
    g, shape = torch.Generator().manual_seed(0), (1, 28, 28)
    x, labels = torch.randn(64000, *shape, generator=g), torch.randint(10, (64000,), generator=g)

    def images(name: str, batch: int, clients: int = 100, count: int = 64000, **options: Any) -> Any:
        parts = torch.arange(count).split(count // clients)
        return ImageClassification(
            x[:count], labels[:count], parts, network(name, shape, 10), Key(0), batch=batch, device=device, **options
        )

    how["mlp/fedavg"] = FedAvg(0.05, 10), images("mlp", 64)
    how["cnn/fedavg"] = FedAvg(0.05, 10), images("decomfl-mnist", 64)
    how["cnn/decomfl"] = DeComFLReading(0.05, 1, 10, 1e-3, scalar="central"), images("decomfl-mnist", 32)
    times = TIMES if device == "cpu" else {**TIMES, **CARD}
    if device != "cpu":
        how["cnn/fedavg bf16"] = how["cnn/fedavg"][0], images("decomfl-mnist", 64, precision="bf16")
        how["cnn/decomfl bf16"] = how["cnn/decomfl"][0], images("decomfl-mnist", 32, precision="bf16")
        shapes = {"cnn8": ("fedmud-cnn8", 10, 64, 10), "cnn4": ("fedmud-cnn4", 10, 64, 10)}
        shapes |= {"flss": ("flss-cnn", 10, 64, 10), "resnet110": ("resnet110-7", 100, 32, 1)}
        for name, (built, classes, batch, steps) in shapes.items():
            pictures = torch.randn(6400, 3, 32, 32, generator=g)
            of = torch.randint(classes, (6400,), generator=g)
            net = network(built, (3, 32, 32), classes, view="filter" if steps == 1 else "rows")
            for end, precision in (("", "full"), (" bf16", "bf16")):
                options = {"batch": batch, "precision": precision, "device": device}
                clients = torch.arange(6400).split(6400 if steps == 1 else 640)
                problem = ImageClassification(pictures, of, clients, net, Key(0), **options)
                how[f"{name}/fedavg{end}"] = FedAvg(0.01, steps), problem

    def rounds(name: str) -> Callable[[], object]:
        algorithm, problem = how[name]
        options = {"sampled": min(10, problem.n), "every": times[name], "metrics": ()}
        return lambda: run(algorithm, problem, times[name], **options)

    found: dict[str, tuple[Callable[[], object], int]] = {name: (rounds(name), count) for name, count in times.items()}
    tested = (x[-2000:], labels[-2000:])
    normed = images("fedmud-cnn4", 64, clients=20, count=12800, test=tested)
    start = normed.start()
    found["evaluation"] = (lambda: normed.accuracy(start)), 1
    return found


def serve(device: str) -> None:
    """A process of one tree: a name a line comes in, seconds a round go out; what is asked first warms up."""
    import fedtheory

    if not Path(fedtheory.__file__).is_relative_to(Path.cwd()):
        raise RuntimeError(f"{fedtheory.__file__} was imported, which is not of the tree in {Path.cwd()}")
    found, warm, clock = calls(device), set(), time.process_time
    if device != "cpu":
        import torch

        clock = lambda: torch.cuda.synchronize() or time.perf_counter()
    for line in sys.stdin:
        play, rounds = found[line.strip()]
        if line not in warm:
            play()
            warm.add(line)
        start = clock()
        play()
        print((clock() - start) / rounds, flush=True)


class Tree:
    """A tree of the repository, and a process that serves its calls."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.folder = folder.resolve()
        self.environment = {**os.environ, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        command, pipe = [sys.executable, str(Path(__file__).resolve()), "--serve", "--device", device], subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, bufsize=1, cwd=self.folder, env=self.environment
        )

    def seconds(self, name: str) -> float:
        """Seconds of a round of a call. Raises RuntimeError where the tree's process ended."""
        with suppress(BrokenPipeError):
            print(name, file=self.process.stdin)
        said = self.process.stdout.readline() if self.process.stdout else ""
        if not said:
            self.close()
            raise RuntimeError(f"{name}: the process of {self.folder} ended; its traceback is above")
        return float(said)

    def spent(self, *arguments: str) -> tuple[float, float]:
        """CPU seconds of an interpreter with its children, and wall seconds."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=self.environment, text=True, capture_output=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: exit {done.returncode} in {self.folder}: {done.stderr[-2000:]}")
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall

    def reproduce(self) -> tuple[float, float]:
        """The same of all items at quick scale, by two workers."""
        with tempfile.TemporaryDirectory() as out:
            return self.spent("-m", "fedtheory", "reproduce", "--scale", "quick", "--out", out, "--workers", "2")

    def close(self) -> None:
        self.process.communicate()


def row(before: list[float], now: list[float]) -> dict[str, Any]:
    """Medians and quartiles of both, and of the blocks' own ratios."""
    values = {"before": before, "now": now, "ratio": [a / b for a, b in zip(before, now)]}
    found: dict[str, Any] = {name: statistics.median(some) for name, some in values.items()}
    cut = lambda some: statistics.quantiles(some, n=4)[::2] if len(some) > 1 else some * 2
    return found | {f"{name}_quartiles": cut(some) for name, some in values.items()} | {"blocks": len(before)}


def offered(device: str) -> tuple[str, ...]:
    """The calls of a device: those of a process and of `reproduce` say nothing of a card."""
    return (*TIMES, "evaluation", "process") if device == "cpu" else (*{**TIMES, **CARD}, "evaluation")


def measure(commit: str | Path, only: str, blocks: int, reproduced: int, device: str = "cpu") -> dict[str, Any]:
    """Every call on both trees in turns, one a commit's or in a folder; a block that warms up does not count."""
    with tempfile.TemporaryDirectory() as folder:
        there = commit if isinstance(commit, Path) else Path(folder) / "tree"
        if isinstance(commit, str):
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(there)], check=True)
            subprocess.run(["git", "checkout", "--quiet", commit], cwd=there, check=True)
        trees = Tree(there, device), Tree(ROOT, device)
        found: dict[str, Any] = {}
        for name in [name for name in offered(device) if name.startswith(only) and name != "process"]:
            pairs = [[tree.seconds(name) for tree in trees] for _ in range(blocks)]
            found[name] = row(*map(list, zip(*pairs)))
        for tree in trees:
            tree.close()
        if "process" in offered(device) and "process".startswith(only):
            pairs = [[tree.spent("-c", ONCE)[0] for tree in trees] for _ in range(blocks + 1)][1:]
            found["process"] = row(*map(list, zip(*pairs)))
        both = [[tree.reproduce() for tree in trees] for _ in range(reproduced)]
        for at, label in enumerate(("reproduce", "reproduce, wall")):
            if both:
                found[label] = row(*([pair[which][at] for pair in both] for which in (0, 1)))
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="what the working tree is compared with: a commit, or a folder")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="calls whose names begin so")
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--reproduce", type=int, default=0, help="pairs of `reproduce --scale quick`")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve:
        return serve(given.device)
    if not given.commit:
        parser.error("name the commit to compare with, for example HEAD~1")
    if given.blocks < 1 or given.reproduce < 0:
        parser.error("--blocks must be at least 1 and --reproduce at least 0")
    names = offered(given.device)
    if not given.reproduce and not any(name.startswith(given.only) for name in names):
        parser.error(f"--only {given.only}: no call begins so; they are {', '.join(names)}")
    if given.reproduce and given.device != "cpu":
        parser.error("--reproduce: on the CPU alone; leave --device out")
    if given.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            parser.error("--device cuda: no CUDA device was found")
    before: str | Path = Path(given.commit).resolve()
    if not (before / "fedtheory").is_dir():
        asked = ["git", "rev-parse", "--verify", f"{given.commit}^{{commit}}"]
        full = subprocess.run(asked, cwd=ROOT, text=True, capture_output=True)
        if full.returncode:
            parser.error(
                f"{given.commit}: no commit of {ROOT}, nor a folder that holds one; git says: {full.stderr.strip()}"
            )
        before = full.stdout.strip()
    found = measure(before, given.only, given.blocks, given.reproduce, given.device)
    if given.json:
        from timing import environment

        print(
            json.dumps({**found, "environment": {**environment(given.device), "before": Path(before).name}}, indent=1)
        )
        return
    for name, one in found.items():
        shown = [f"{one[part]:9.4g} [{', '.join(f'{q:.4g}' for q in one[f'{part}_quartiles'])}]" for part in
                 ("before", "now", "ratio")]  # fmt: skip
        print(f"{name:18}" + "".join(f"{text:>34}" for text in shown))


if __name__ == "__main__":
    main()
