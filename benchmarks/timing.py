"""How the benchmarks time: what runs on a CUDA card cannot be timed wrongly by accident.

A benchmark names pieces of work and a device and is given seconds: `turns` warms every piece up, plays them in turns
and waits for the card on both sides of each. On the CPU seconds are CPU seconds of this process (one thread, all its
threads together otherwise), which a busy machine does not stretch by waiting; on CUDA they are wall time between two
moments at which the card is idle. Work that leaves the card untouched is refused there.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch

from fedtheory.papers.store import source_hash
from fedtheory.problems.graphs import convolved_in
from fedtheory.problems.models.perceptron import LINEAR

Name = TypeVar("Name", bound=Hashable)
Work = tuple[Callable[[], object], int]  # what is timed, and how many rounds or steps it plays


def clock_of(device: str) -> Callable[[], float]:
    """CPU seconds; on CUDA wall time, read once all that was asked of the card is done."""
    if device == "cpu":
        return time.process_time

    def synchronised() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return synchronised


def timed(work: Callable[[], object], device: str) -> float:
    """Seconds that `work` takes, by the clock of its device."""
    clock = clock_of(device)
    start = clock()
    work()
    return clock() - start


def turns(variants: Mapping[Name, Work], device: str, blocks: int) -> dict[Name, list[float]]:
    """Seconds per round of every variant in every block.

    All take turns, so that a change of clock or load meets each of them. A first block warms up and does not count.

    Raises RuntimeError for a variant that does nothing on the card where the device is CUDA.
    """
    for name, (play, _) in variants.items():
        _warm(name, play, device)
    seconds: dict[Name, list[float]] = {name: [] for name in variants}
    for _ in range(blocks):
        for name, (play, rounds) in variants.items():
            seconds[name].append(timed(play, device) / rounds)
    return seconds


def _warm(name: Hashable, play: Callable[[], object], device: str) -> None:
    if device == "cpu":
        play()
        return
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    play()
    torch.cuda.synchronize()
    if torch.cuda.max_memory_allocated() <= before:
        raise RuntimeError(f"{name}: it made no tensor on the card, so its time would be the CPU's")


def quartiles(values: list[float]) -> list[float]:
    cuts = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return [cuts[0], cuts[2]]


def matmul_rate(device: str, dtype: torch.dtype = torch.float32) -> float:
    """Floating-point operations per second of a matrix product, best of several."""
    size = 512 if device == "cpu" else 4096
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    out = a @ b
    return 2 * size**3 / min(timed(lambda: torch.mm(a, b, out=out), device) for _ in range(10))


def best_rate(device: str, dtype: torch.dtype = torch.float32) -> float:
    """The same, of the faster library on the CPU: MKL, behind torch.mm, or oneDNN, which convolutions use."""
    rate = matmul_rate(device, dtype)
    if device != "cpu" or LINEAR is None:
        return rate
    a, b = (torch.randn(512, 512, dtype=dtype) for _ in range(2))
    product = lambda: LINEAR(a, b, None, "none", [], "")
    product()
    return max(rate, 2 * 512**3 / min(timed(product, device) for _ in range(10)))


def environment(device: str) -> dict[str, object]:
    """What a record needs to be read: sources, versions, processor; on CUDA the card and the product's precision."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        cpu = names[0] if names else cpu
    found: dict[str, object] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sources": source_hash(),
        "threads": torch.get_num_threads(),
        "cpu": cpu,
        "device": device,
        "time": "CPU seconds" if device == "cpu" else "wall seconds, synchronised, after a block that warms up",
    }
    if device == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
        found["cuda"] = torch.version.cuda
        found["cudnn"] = torch.backends.cudnn.version()
        found["tf32"] = {"products": torch.backends.cuda.matmul.allow_tf32, "cudnn": convolved_in()}
    return found


def report(found: Mapping[str, Any], where: Mapping[str, object], as_json: bool, show: Callable[[Any], None]) -> None:
    """Print what was measured and where: as one JSON object, or one line and a table."""
    if as_json:
        print(json.dumps({**found, "environment": where}, indent=2))
        return
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    show(found)
