"""What was tried on rounds of SSF's and FedSub's problems and on a network, against what is done; paired, in one run.

    python benchmarks/tried.py                 prints
    python benchmarks/tried.py --only texts    the last three
    python benchmarks/tried.py --json FILE     and writes the record

gather: minibatches of all steps gathered at once over 2 MiB at a time, FedAvg with K = 1,000 steps, float32.
out: a batch of ten products written into a buffer that is used again over a new result.
rows: a gradient of FedSub's logistic regression, 30 clients with 2,000 samples of 20 features in float64, samples in
rows over samples in columns.
norm, norm16: a gradient of FedMUD's four convolutions with batch normalisation on 64 images of 28 x 28, in torch's
layout over oneDNN's, in float32 and in bfloat16. full16: that in float32 over that in bfloat16, both in oneDNN's.
wide16: a gradient of FedMUD's eight on 64 images of 32 x 32 in bfloat16, by bfloat16's products over float32's.
padded, padded_step: losses and a gradient of adapters' weights on 16 texts of 4 to 45 tokens (like SST-2's, most are
short) in the shape of SmolLM2-135M, a row of its own for each over several in a row. given_back: eight rounds of FedAvg
on all of its weights with glibc's own rule for freed memory over `running.allocator`; beside it the seconds of each
round, medians over the blocks, and the process's largest resident size in bytes. These three need the extra "llm".

CPU seconds of one thread; the two take turns, and the blocks' own ratios count: above 1, what is done is faster.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from unittest import mock

import torch
from steps import shape
from timing import environment, quartiles

from fedtheory import FedAvg, Key, LogisticRegression, MatrixRegression, TextClassification, run
from fedtheory.core.files import write_atomic
from fedtheory.problems import matrix_regression
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.models import language, networks
from fedtheory.problems.models.networks import Network, network
from fedtheory.problems.text import Texts
from fedtheory.running import allocator

BLOCKS, FEW = 15, 3


def spent(work: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def compared(
    tried: Callable[[], object], done: Callable[[], object], times: int, blocks: int = BLOCKS
) -> dict[str, object]:
    seconds = [(spent(tried, times), spent(done, times)) for _ in range(blocks + 1)][1:]  # the first warms up
    ratios = [a / b for a, b in seconds]
    own = {name: statistics.median(values) for name, values in zip(("tried", "done"), zip(*seconds))}
    return own | {"ratio": statistics.median(ratios), "ratio_quartiles": quartiles(ratios), "blocks": blocks}


def tensors() -> dict[str, dict[str, object]]:
    problem = MatrixRegression.ssf(0.5, Key(0), dtype=torch.float32)
    play = lambda: run(FedAvg(1e-4, 1000), problem, 1, sampled=10, metrics=())

    def at_once() -> None:
        with mock.patch.object(matrix_regression, "_GATHERED", 2**62):
            play()

    Y, At = torch.randn(10, 10, 100), torch.randn(10, 100, 20)
    out = torch.empty(10, 10, 20)
    logistic = LogisticRegression.fedsub(Key(0))
    x, columns = torch.randn(logistic.n, logistic.d, dtype=logistic.dtype), logistic.full(logistic.clients)
    rows = columns.Z.mT.contiguous()

    def by_rows() -> torch.Tensor:
        slope = torch.sigmoid(-(rows @ x[..., None]))
        return (slope.mT @ rows)[:, 0].mul_(-1 / rows.shape[1])

    torch.testing.assert_close(by_rows(), logistic.grads(x, columns))
    full, bf16 = (normalised(precision) for precision in ("full", "bf16"))

    def plain(step: Callable[[], object]) -> Callable[[], None]:
        def in_torchs_layout() -> None:
            with mock.patch.object(Network, "blocked", lambda self, images, dtype: images):
                step()

        return in_torchs_layout

    eight = normalised("bf16", "fedmud-cnn8", (3, 32, 32))

    def by(wide: bool) -> Callable[[], None]:
        def step() -> None:
            with mock.patch.object(networks, "wide", return_value=wide):
                eight()

        return step

    return {
        "gather": compared(at_once, play, 1),
        "out": compared(lambda: torch.bmm(Y, At, out=out), lambda: torch.bmm(Y, At), 2000),
        "rows": compared(by_rows, lambda: logistic.grads(x, columns), 100),
        "norm": compared(plain(full), full, 4),
        "norm16": compared(plain(bf16), bf16, 8),
        "full16": compared(full, bf16, 4),
        "wide16": compared(by(False), by(True), 2),
    }


def normalised(
    precision: str, name: str = "fedmud-cnn4", size: tuple[int, ...] = (1, 28, 28)
) -> Callable[[], torch.Tensor]:
    """A gradient of one client's network with batch normalisation."""
    images, labels = torch.randn(64, *size), torch.arange(64) % 10
    net = network(name, size, 10)
    problem = ImageClassification(images, labels, [torch.arange(64)], net, Key(0), batch=64, precision=precision)
    y, xi = problem.start()[None], problem.full(problem.clients)
    return lambda: problem.grads(y, xi)


def texts() -> dict[str, dict[str, object]]:
    """On the shape of SmolLM2-135M with random weights."""
    g = Key(0).generator()
    sizes = torch.empty(16).exponential_(1 / 8, generator=g).add_(4).clamp_(max=45).long().tolist()
    data = Texts([torch.randint(1000, 49152, (size,), generator=g) for size in sizes], torch.arange(16) % 2)
    parts = [torch.arange(0, 16, 2), torch.arange(1, 16, 2)]
    adapters, whole = (
        TextClassification(language.LanguageModel(module, [10, 20]), data, parts, batch=8)
        for module in (language.adapt(shape(), 8, Key(1)), shape())
    )
    x, xi = adapters.start().expand(2, -1), adapters.full(adapters.clients)

    @torch.no_grad()
    def losses() -> torch.Tensor:
        return adapters.losses(x, xi)

    def gradient() -> torch.Tensor:
        return adapters.grads(x, xi)

    def padded(work: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        def one_a_row() -> torch.Tensor:
            with mock.patch.object(adapters.model, "_packs", False):
                return work()

        return one_a_row

    with allocator.keeping_freed(whole.start().nbytes) as kept:
        if not kept:
            raise MemoryError("given_back compares nothing here: glibc 2.35 and 16 GB of free memory are needed")

    beside = {name: {"rounds": [], "resident": 0} for name in ("tried", "done")}

    def rounds(name: str = "done") -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the largest resident size starts anew
        times: list[float] = []
        run(FedAvg(1e-3, 1), whole, 8, metrics=(), progress=lambda done: times.append(time.process_time()))
        beside[name]["rounds"].append([b - a for a, b in pairwise(times)])
        (most,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        beside[name]["resident"] = max(beside[name]["resident"], 1024 * int(most))

    def given_back() -> None:
        with mock.patch.object(allocator, "_glibc", return_value=None):
            rounds("tried")

    torch.testing.assert_close(padded(losses)(), losses())
    found = {
        "padded": compared(padded(losses), losses, 1),
        "padded_step": compared(padded(gradient), gradient, 1),
        "given_back": compared(given_back, rounds, 1, FEW),
    }
    for name, one in beside.items():
        each = [statistics.median(times) for times in zip(*one["rounds"][1:])]
        found["given_back"] |= {f"{name}, each round": each, f"{name}, resident": one["resident"]}
    return found


GROUPS = {"tensors": tensors, "texts": texts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    parser.add_argument("--only", choices=GROUPS, help="one group of them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name in [options.only] if options.only else GROUPS:
        found |= GROUPS[name]()
    for name, row in found.items():
        print(name, ", ".join(f"{key} {value}" for key, value in row.items()))
    if options.json:
        record = {**found, "environment": environment("cpu")}
        write_atomic(options.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
