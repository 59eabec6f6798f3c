"""What a run on a deep network needs: products and memory are counted on shapes alone, time on a GPU is estimated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from fedtheory.core import checks
from fedtheory.core.checks import free_bytes
from fedtheory.problems.data import SETS
from fedtheory.problems.models.networks import Network, network
from fedtheory.running.meter import PeakMemory, multiplications, uncompiled

SIDES = {"digits": 8, "mnist": 28, "fashion_mnist": 28, "cifar10": 32, "cifar100": 32, "svhn": 32, "tiny_imagenet": 64}

# Assumed of a GPU, not measured.
SUSTAINED = 10e12  # floating-point operations per second
LAUNCH = 10e-6  # seconds that the smallest operation takes
VECTORS = 6  # held per client beside a step: iterate, gradient, correction, upload, private state and its copy


class Step(NamedTuple):
    """One local step of stacked clients: forward and backward.

    Fields:
        products: multiplications.
        memory: bytes of the tensors that it makes, at their peak.
        operations: on tensors, each at least one kernel on a GPU.
    """

    products: int
    memory: int
    operations: int


class _Counted(PeakMemory):
    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


uncompiled(_Counted)


def gradient(built: Network, batch: int, device: str = "meta", clients: int = 1) -> Callable[[], torch.Tensor]:
    """The gradient of one local step, on random images (on "meta": shapes only, nothing is computed)."""
    images = torch.randn(clients, batch, *built.shape, device=device)
    labels = torch.zeros(clients * batch, dtype=torch.int64, device=device)
    x = torch.randn(clients, built.layout.size, device=device) / 10

    def work() -> torch.Tensor:
        leaf = x.detach().requires_grad_()
        loss = functional.cross_entropy(built.logits(leaf, images).flatten(0, 1), labels)
        return torch.autograd.grad(loss, leaf)[0]

    return work


@cache  # a table names the same step in every cell that was not run
def _step(name: str, shape: tuple[int, int, int], classes: int, batch: int, clients: int) -> Step:
    """Products client by client, since PyTorch's counter overrates grouped convolutions' gradients."""
    built = network(name, shape, classes)
    with _Counted() as counted:
        gradient(built, batch, clients=clients)()
    alone = multiplications(gradient(built, batch))
    return Step(clients * alone, counted.peak, counted.operations)


@dataclass(frozen=True)
class Budget:
    """A run: `steps` local steps, each of `clients` clients on `batch` images, float32.

    Fields:
        name, classes, shape: of the network.
        batch, clients, steps: see above.
    """

    name: str
    classes: int
    batch: int
    clients: int
    steps: int
    shape: tuple[int, int, int] = (3, 32, 32)

    def __post_init__(self) -> None:
        checks.tidy(self)
        for name in ("batch", "clients"):
            checks.count(name, getattr(self, name))
        checks.whole("steps", self.steps, 0)

    @cached_property
    def network(self) -> Network:
        return network(self.name, self.shape, self.classes)

    @property
    def step(self) -> Step:
        return _step(self.name, self.shape, self.classes, self.batch, self.clients)

    @property
    def memory(self) -> int:
        """Bytes of a step, and of the vectors that a method holds beside it."""
        return self.step.memory + 4 * VECTORS * self.clients * self.network.layout.size

    @property
    def flop(self) -> float:
        """Of the run."""
        return 2.0 * self.steps * self.step.products

    @property
    def hours(self) -> float:
        """Of the run on a GPU, estimated."""
        return max(self.flop / SUSTAINED, self.steps * self.step.operations * LAUNCH) / 3600

    def __str__(self) -> str:
        return (
            f"about {self.memory / 1e9:.2g} GB (counted) and {self.hours:.2g} h a run (estimated: {self.flop:.1e} FLOP "
            f"at {SUSTAINED:.0e} per second, {self.step.operations} operations a step of at least "
            f"{1e6 * LAUNCH:.0f} microseconds)"
        )

    def require_room(self, device: str) -> None:
        """Raises OSError where it does not fit; on a CPU clients are played one by one."""
        free = free_bytes(torch.device(device))
        needed = self.memory if device == "cuda" else self.memory - (1 - 1 / self.clients) * self.step.memory
        if free is not None and free < needed:
            have, expected = f"{device} with {free / 1e9:.2g} GB free", f"room for a run, {needed / 1e9:.2g} GB"
            checks.reject("device", have, expected, "free some, or take --scale medium", OSError)


@checks.arguments
def of_images(options: Mapping[str, Any], sampled: int | None) -> Budget:
    """Of one local step of a run on images, from the options of `ImageClassification.load`."""
    for needed in ("data", "network"):
        if needed not in options:
            checks.reject("options", dict(options), f"options with {needed!r}", "name the data set and the network")
    name, side = options["data"], options.get("side", SIDES[options["data"]])
    channels, classes = (len(SETS[name].mean), len(SETS[name].classes)) if name in SETS else (1, 10)
    clients = sampled or options.get("clients", 10)
    return Budget(options["network"], classes, options.get("batch", 64), clients, 1, (channels, side, side))


def command(item: str) -> str:
    """What makes an item at its paper's scale."""
    return f"python -m fedtheory reproduce {item} --scale paper --device cuda --data FOLDER"
