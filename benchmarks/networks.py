"""Time of one round on networks: this package and the usual style of federated code, in one run.

    python benchmarks/networks.py           a table
    python benchmarks/networks.py --json    the same as JSON
    python benchmarks/networks.py --check   only the check that both styles do the same mathematics (always made first)
    python benchmarks/networks.py --only cnn/decomfl
    python benchmarks/networks.py --model FOLDER         also a step of the language model in it ("random": its shape)
    python benchmarks/networks.py --device cuda --json   on a card

100 clients with 640 images each of MNIST's size (random numbers), 10 of them a round, float32.

mlp/fedavg, cnn/fedavg: FedAvg, 10 local steps on batches of 64; a perceptron 784-64-10, and DeComFL's MNIST network
(28,938 parameters). "peer": one module, optimizer and backward pass per client and step, and a `DataLoader` over a
`Subset` of ready tensors that is built anew for every client and round. "usual": the same over a data set that makes
each image when it is asked for, as torchvision's MNIST with ToTensor and Normalize does. "lean": the bare loop, with
batches by indexing a tensor.

cnn/decomfl: DeComFL with P = 10, K = 1, central differences, batches of 32. "peer": a model per client, which is
perturbed, evaluated, perturbed the other way, evaluated and restored for every perturbation, then brought up to date
from the history of seeds and scalars when the client is sampled again.

"ratio_threads": wall time of cnn/fedavg with one client thread over that with two, each with one thread in every
operation; on the CPU, where two cores are free. Both give the same bits (checked).

"ours" is `fedtheory.run` as a user calls it; "bf16" is ours with precision="bf16", and "ratio_bf16" ours over it. On
CUDA "launched" is ours with every operation launched by itself, where `problems.graphs` makes one launch of them. Times
are CPU seconds of one thread on the CPU, synchronised wall time on CUDA; variants take turns block by block, after one
that warms up (`timing.turns`); of times and of the blocks' own ratios the median counts. "limit" is the floating-point
operations of the networks' products, counted by torch.utils.flop_counter, divided by the measured rate of products in
the same precision, of MKL or oneDNN, whichever is faster.

resnet110/fedavg, smollm2/fedavg, smollm2/decomfl: one step of larger models, see `steps`.
"""

import argparse
import copy
import os
import random
import statistics
import sys
import time
from collections.abc import Iterable

import numpy as np
import torch
from PIL import Image
from steps import GET, RANDOM, counted, resnet, texts
from timing import Work, best_rate, environment, quartiles, report, turns
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from fedtheory import DeComFL, FedAvg, Key, play_round, run
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.loop import sample_clients
from fedtheory.papers import budget
from fedtheory.problems.images import Batch, ImageClassification
from fedtheory.problems.models.networks import network
from fedtheory.running.meter import multiplications

CLIENTS, SAMPLED, IMAGES, STEPS, LR = 100, 10, 640, 10, 0.05
P, MU = 10, 1e-3
PER_RUN = 4  # a block of ours has so many times more rounds than a peer's, whose models are made before the clock runs


def workload(
    name: str, device: str, dtype: torch.dtype = torch.float32, images: int = IMAGES, precision: str = "full"
) -> ImageClassification:
    g, shape = torch.Generator().manual_seed(0), (1, 28, 28)
    x = torch.randn(CLIENTS * images, *shape, generator=g).to(dtype)
    labels = torch.randint(10, (len(x),), generator=g)
    net = network("mlp" if name.startswith("mlp") else "decomfl-mnist", shape, 10)
    batch = 32 if name.endswith("decomfl") else 64
    parts = torch.arange(len(x)).split(images)
    return ImageClassification(x, labels, parts, net, Key(0), batch=batch, precision=precision, device=device)


def ours(name: str) -> Algorithm:
    return DeComFLReading(LR, 1, P, MU, scalar="central") if name.endswith("decomfl") else FedAvg(LR, STEPS)


# The peers' style.


def module(name: str) -> nn.Module:
    if name.startswith("mlp"):
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    pool = lambda: nn.MaxPool2d(2)
    body = [nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), pool(), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), pool()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(1568, 10))


class Data:
    """The clients' images; `batches` gives those of a round, a fresh permutation of the client's images."""

    def __init__(self, problem: ImageClassification) -> None:
        self.images, self.labels = problem.images, problem.labels
        self.parts, self.batch = [part.to(problem.device) for part in problem.parts], problem.batch

    def batches(self, i: int, steps: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        part = self.parts[i]
        order = part[torch.randperm(len(part), device=part.device)]
        for rows in order[: steps * self.batch].split(self.batch):
            yield self.images[rows], self.labels[rows]


class Loaders(Data):
    """The same draws by a `DataLoader` that is built for the round: the usual way."""

    def batches(self, i: int, steps: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        mine = Subset(TensorDataset(self.images, self.labels), self.parts[i].tolist())
        for _, batch in zip(range(steps), DataLoader(mine, self.batch, shuffle=True)):
            yield batch


class Images(Dataset):
    """Bytes that become a normalised image one by one, with the operations of torchvision's MNIST and transforms."""

    def __init__(self, problem: ImageClassification) -> None:
        self.data = (50 * problem.images[:, 0].cpu() + 128).clamp(0, 255).byte()
        self.targets = problem.labels.cpu()

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        image = Image.fromarray(self.data[i].numpy())  # so that a transform sees what all data sets give
        pixels = torch.from_numpy(np.array(image, copy=True)).view(*image.size, 1)
        scaled = pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255)
        mean, std = (torch.as_tensor((value,)).view(-1, 1, 1) for value in (0.1307, 0.3081))
        return scaled.clone().sub_(mean).div_(std), int(self.targets[i])


class Usual(Loaders):
    """A `DataLoader` built for the round over images that are made one by one."""

    def __init__(self, problem: ImageClassification) -> None:
        super().__init__(problem)
        self.set, self.device = Images(problem), problem.device

    def batches(self, i: int, steps: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        mine = Subset(self.set, self.parts[i].tolist())
        for _, (images, labels) in zip(range(steps), DataLoader(mine, self.batch, shuffle=True)):
            yield images.to(self.device), labels.to(self.device)


class Recorded(Data):
    """Hands out the batches that ours drew."""

    def __init__(self, problem: ImageClassification) -> None:
        super().__init__(problem)
        self.drawn: dict[int, list[Batch]] = {}

    def batches(self, i: int, steps: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        for xi in self.drawn[i]:
            yield self.images[xi.index[0]], self.labels[xi.index[0]]


class Peer:
    """FedAvg: `round` plays one round, on the given clients if any are given."""

    def __init__(self, name: str, problem: ImageClassification, data: Data) -> None:
        self.data = data
        self.model = module(name).to(problem.device, problem.dtype)
        nn.utils.vector_to_parameters(problem.start(), self.model.parameters())

    def sample(self) -> list[int]:
        return random.sample(range(CLIENTS), SAMPLED)

    def round(self, clients: list[int] | None = None) -> None:
        uploads = []
        for i in clients or self.sample():
            model = copy.deepcopy(self.model)
            optimizer = torch.optim.SGD(model.parameters(), lr=LR)
            for images, labels in self.data.batches(i, STEPS):
                optimizer.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
            uploads.append(model.state_dict())
        mean = {name: torch.stack([state[name] for state in uploads]).mean(0) for name in uploads[0]}
        self.model.load_state_dict(mean)


class PeerDeComFL(Peer):
    """Algorithms 3 and 4 with a model per client; the server keeps one too (line 12)."""

    def __init__(self, name: str, problem: ImageClassification, data: Data) -> None:
        super().__init__(name, problem, data)
        self.models = [copy.deepcopy(self.model) for _ in range(CLIENTS)]
        self.seen = [0] * CLIENTS
        self.history: list[tuple[list[int], list[float]]] = []

    def direction(self, seed: int, model: nn.Module) -> list[torch.Tensor]:
        g = torch.Generator().manual_seed(seed)
        return [torch.randn(p.shape, generator=g, dtype=p.dtype).to(p.device) for p in model.parameters()]

    def move(self, model: nn.Module, z: list[torch.Tensor], factor: float) -> None:
        for p, part in zip(model.parameters(), z):
            p.add_(part, alpha=factor)

    def rebuild(self, model: nn.Module, seeds: list[int], scalars: list[float]) -> None:
        for seed, g in zip(seeds, scalars):
            self.move(model, self.direction(seed, model), -LR / P * g)

    @torch.no_grad()
    def round(self, clients: list[int] | None = None, seeds: list[int] | None = None) -> None:
        seeds = seeds or [random.randrange(2**31) for _ in range(P)]
        uploads = []
        for i in clients or self.sample():
            model = self.models[i]
            for step in self.history[self.seen[i] :]:
                self.rebuild(model, *step)
            self.seen[i] = len(self.history)
            ((images, labels),) = self.data.batches(i, 1)
            scalars = []
            for seed in seeds:
                z = self.direction(seed, model)
                self.move(model, z, MU)
                plus = functional.cross_entropy(model(images), labels)
                self.move(model, z, -2 * MU)
                minus = functional.cross_entropy(model(images), labels)
                self.move(model, z, MU)
                scalars.append(float((plus - minus) / (2 * MU)))
            uploads.append(scalars)
        self.history.append((seeds, [statistics.fmean(column) for column in zip(*uploads)]))
        self.rebuild(self.model, *self.history[-1])


PEERS = {"mlp/fedavg": Peer, "cnn/fedavg": Peer, "cnn/decomfl": PeerDeComFL}
LARGE = ("resnet110/fedavg", "smollm2/fedavg", "smollm2/decomfl")
STYLES = {
    "mlp/fedavg": {"peer": Loaders, "usual": Usual, "lean": Data},
    "cnn/fedavg": {"peer": Loaders, "usual": Usual, "lean": Data},
    "cnn/decomfl": {"peer": Data},
}


# Both styles do the same mathematics.


def check(name: str, device: str, rounds: int = 2) -> float:
    """Play the same rounds on the same draws in both styles, in float64; raises where they part.

    Returns the largest relative gap of the models. Perturbing and restoring in place leaves rounding errors of 1e-16 in
    the peer's weights, which the difference over 2 mu magnifies: hence 1e-9 for DeComFL.
    """
    problem, algorithm = workload(name, device, torch.float64, 70), ours(name)
    data = Recorded(problem)
    peer = PEERS[name](name, problem, data)
    state, worst, bound = algorithm.init(problem, problem.start(), Key(0)), 0.0, 1e-12
    for t in range(rounds):
        key = Key(0).fold("round", t)
        clients = sample_clients(problem.n, SAMPLED, key.fold("clients"))
        steps, shared = STEPS, {}
        if isinstance(algorithm, DeComFL):
            steps, bound = 1, 1e-9
            (seeds,) = algorithm.broadcast(state.server, key).seeds
            shared = {"seeds": seeds.tolist()}
            parts = lambda seed, model: [
                z.view(p.shape) for z, p in zip(whole(algorithm, problem, seed), model.parameters())
            ]
            peer.direction = parts
        xi = problem.draw(clients, steps, key.fold("xi"))
        for j, i in enumerate(clients.tolist()):
            data.drawn[i] = [sample.client(j) for sample in xi]
        peer.round(clients.tolist(), **shared)
        state = play_round(algorithm, problem, state, clients, key)[0]
        theirs = parameters_to_vector(peer.model.parameters()).detach()
        worst = max(worst, float((state.server.x - theirs).norm() / (theirs - problem.start()).norm()))
        if not worst <= bound:
            raise AssertionError(f"{name}, round {t}: the models part by {worst:.1e} > {bound:.0e}")
    return worst


def whole(algorithm: DeComFL, problem: ImageClassification, seed: int) -> Iterable[torch.Tensor]:
    """z, layer by layer."""
    zero = problem.start().zero_()
    (z,) = algorithm.directions(problem.layout, torch.tensor([seed]), zero)
    return (z.add(j, zero[None, where], 1.0)[0] for j, where in enumerate(problem.layout.slices))


# Timing.


def flops(name: str, problem: ImageClassification) -> float:
    """Floating-point operations of a round's products: gradients, or losses at two points for each perturbation."""
    x, images = problem.start()[None], problem.images[None, : problem.batch]
    if name.endswith("decomfl"):
        return SAMPLED * 2 * P * 2.0 * multiplications(lambda: problem.network.logits(x, images))
    return SAMPLED * STEPS * 2.0 * multiplications(budget.gradient(problem.network, problem.batch))


def measure(name: str, device: str, rounds: int, blocks: int) -> dict[str, object]:
    """Medians over the blocks, all variants taking turns."""
    problem, algorithm, rates = workload(name, device), ours(name), []
    of = {"ours": problem}
    if problem.network.convolutional:
        of["bf16"] = workload(name, device, precision="bf16")
    if device == "cuda":
        of["launched"] = workload(name, device)
        of["launched"]._launched = lambda y, xi: False
    variants: dict[str, Work] = {"rate": (lambda: rates.append(best_rate(device)), 1)}
    for style, on in of.items():
        play = lambda on=on: run(algorithm, on, PER_RUN * rounds, sampled=SAMPLED, every=PER_RUN * rounds, metrics=())
        variants[style] = play, PER_RUN * rounds
    for style, data in STYLES[name].items():
        peer = PEERS[name](name, problem, data(problem))
        variants[style] = lambda peer=peer: [peer.round() for _ in range(rounds)], rounds
    seconds = turns(variants, device, blocks)
    del seconds["rate"]
    row: dict[str, object] = {style: statistics.median(times) for style, times in seconds.items()}
    row["quartiles"] = {style: quartiles(times) for style, times in seconds.items()}
    for style in list(seconds)[1:]:
        label = "ratio" if style == "peer" else f"ratio_{style}"
        first, second = ("bf16", "ours") if style == "bf16" else ("ours", style)
        row |= ratio(label, seconds[first], seconds[second])
    count = flops(name, problem)
    limit = count / max(rates)
    row |= {"limit": limit, "fraction_of_limit": limit / row["ours"], "flops": count, "flops_per_second": max(rates)}
    if name == "cnn/fedavg" and device == "cpu" and len(os.sched_getaffinity(0)) > 1:
        row |= threads(algorithm, problem, rounds, blocks)
    return row | {"rounds": rounds, "blocks": blocks}


def ratio(label: str, under: list[float], over: list[float]) -> dict[str, object]:
    """Median and quartiles of the blocks' own ratios over/under."""
    paired = [b / a for a, b in zip(under, over)]
    return {label: statistics.median(paired), f"{label}_quartiles": quartiles(paired)}


def measure_step(name: str, device: str, blocks: int, model: str | None) -> dict[str, object]:
    """A step of a larger model: seconds, share of the limit, peak memory."""
    if name.startswith("resnet110"):
        found = resnet(device)
        steps = {"ours": found["full"], "bf16": found["bf16"]}
    else:
        steps = {"ours": texts(device, str(model))[name.partition("/")[2]]}
    rates: dict[str, list[float]] = {style: [] for style in steps}
    counts = {style: counted(step, device) for style, step in steps.items()}  # a captured step's memory is there before
    for step in steps.values() if device == "cuda" else ():
        step.play()  # and `turns` plays once more: what is timed is captured
    variants: dict[str, Work] = {style: (step.play, 1) for style, step in steps.items()}
    for style, step in steps.items():
        rate = lambda style=style, step=step: rates[style].append(best_rate(device, step.dtype))
        variants[f"{style} rate"] = rate, 1
    seconds = turns(variants, device, blocks)
    times = {style: seconds[style] for style in steps}
    row: dict[str, object] = {style: statistics.median(of) for style, of in times.items()}
    row["quartiles"] = {style: quartiles(of) for style, of in times.items()}
    row |= counts["ours"]
    for style in steps:
        end = "" if style == "ours" else f"_{style}"
        row[f"flops_per_second{end}"] = max(rates[style])
        row[f"fraction_of_limit{end}"] = row["flops"] / max(rates[style]) / statistics.median(times[style])
    if "bf16" in steps:
        row |= ratio("ratio_bf16", times["bf16"], times["ours"])
        row["peak_bytes_bf16"] = counts["bf16"]["peak_bytes"]
    if name.startswith("smollm2"):
        row["weights"] = "random" if model == RANDOM else "SmolLM2-135M's"
    return row | {"blocks": blocks}


def threads(algorithm: Algorithm, problem: ImageClassification, rounds: int, blocks: int) -> dict[str, object]:
    """Wall time with one client thread and with two, taking turns."""
    play = lambda count: run(algorithm, problem, rounds, sampled=SAMPLED, every=rounds, metrics=(), threads=count)
    if not torch.equal(play(1).state.server.x, play(2).state.server.x):
        raise AssertionError("two client threads give other bits than one")
    seconds = {1: [], 2: []}
    for _ in range(blocks):
        for count, times in seconds.items():
            start = time.perf_counter()  # of threads wall time counts
            play(count)
            times.append((time.perf_counter() - start) / rounds)
    wall = {f"wall_{count}": statistics.median(times) for count, times in seconds.items()}
    return wall | ratio("ratio_threads", seconds[2], seconds[1])


def show(table: dict[str, dict]) -> None:
    print("\nmilliseconds per round or step (median of blocks) and ratios [quartiles over the blocks]\n")
    for name, row in table.items():
        cells = [f"{style} {row[style] * 1e3:.1f}" for style in row["quartiles"]]
        for label in ("ratio", "ratio_usual", "ratio_lean", "ratio_bf16", "ratio_launched", "ratio_threads"):
            if label in row:
                low, high = row[f"{label}_quartiles"]
                cells.append(f"{label} {row[label]:.2f}x [{low:.2f}, {high:.2f}]")
        cells.append(f"limit/ours {row['fraction_of_limit']:.2f}")
        if "peak_bytes" in row:
            cells.append(f"peak {row['peak_bytes'] / 2**20:.0f} MiB")
        if "weights" in row:
            cells.append(f"{row['weights']} weights")
        print(f"{name:18}" + "   ".join(cells))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="rounds of a block")
    parser.add_argument("--blocks", type=int, default=7, help="blocks per variant")
    parser.add_argument("--only", choices=(*PEERS, *LARGE), help="one workload")
    parser.add_argument("--model", help=f"folder of SmolLM2-135M; {RANDOM}: its shape with random weights")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--check", action="store_true", help="only check that both styles agree")
    options = parser.parse_args()
    if options.rounds < 1 or options.blocks < 1:
        parser.error("--rounds and --blocks must be at least 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: no CUDA device was found")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    names = [options.only] if options.only else [*PEERS, *LARGE]
    if options.model is None and any(name.startswith("smollm2") for name in names):
        print(f"smollm2: left out without --model. Get it: {GET}", file=sys.stderr)
        names = [name for name in names if not name.startswith("smollm2")]
    gaps = {name: check(name, options.device) for name in names if name in PEERS}
    if options.check:
        table, present = gaps, lambda table: print("\n".join(f"{n:14}largest gap {g:.1e}" for n, g in table.items()))
    else:
        table = {
            name: measure(name, options.device, options.rounds, options.blocks)
            if name in PEERS
            else measure_step(name, options.device, options.blocks, options.model)
            for name in names
        }
        present = show
    report(table, environment(options.device), options.json, present)
    return 0


if __name__ == "__main__":
    sys.exit(main())
