"""A round of FedAvg on networks of one's own, through `Supervised`, against a bare loop over clients, in one run.

    python benchmarks/own.py           a table
    python benchmarks/own.py --json    the same as JSON
    python benchmarks/own.py --only vit

20 clients have 128 samples each (random numbers); ten take part in a round and take five steps on batches of 32. The
attention network and the Mixer cut images of 28 x 28 into 16 patches, have width 64, two blocks and dropout 0.1. The
GRU reads 28 rows into 64 units. The CNN has 8 and 16 channels and kernels of 5 x 5. The perceptron is 64-32-10 on
images of 8 x 8. "loop" copies the module for each client and takes batches by indexing, autograd and an optimizer.
"stacked" and "alone" are ours with `together=True` and `together=False`; "ours" is what the package chooses.

Variants take turns (`timing.turns`); a ratio is ours over the loop's time in the same block.
"""

import argparse
import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch
from timing import Work, environment, quartiles, report, turns
from torch import nn
from torch.nn import functional

from fedtheory import FedAvg, Supervised, run

CLIENTS, SAMPLED, SAMPLES, STEPS, BATCH, LR = 20, 10, 128, 5, 32, 0.05
BARS = {"vit": 1.0, "mixer": 1.0, "gru": 0.9, "cnn": 0.8, "mlp": 0.2}  # of the loop's time, at most


class Cut(nn.Module):
    """Images (b, 1, 28, 28) -> patches (b, 16, 49)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 4, 7, 4, 7).transpose(2, 3).reshape(-1, 16, 49)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, p: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout=p, batch_first=True)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.attention(h, h, h, need_weights=False)[0]


class Turned(nn.Module):
    """A network over patches in the place of channels."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.body(h.transpose(1, 2)).transpose(1, 2)


class Added(nn.Module):
    """h + body(norm(h))."""

    def __init__(self, width: int, body: nn.Module) -> None:
        super().__init__()
        self.norm, self.body = nn.LayerNorm(width), body

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h + self.body(self.norm(h))


class Averaged(nn.Module):
    """The mean over patches."""

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h.mean(1)


class Recurrent(nn.Module):
    """A GRU over an image's rows, and a linear map of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.head = nn.GRU(28, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rows(x[:, 0])[0][:, -1])


def _hidden(width: int, p: float = 0.1) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(p), nn.Linear(2 * width, width))


def _patches(mix: Callable[[], nn.Module], width: int = 64) -> nn.Module:
    blocks = [Added(width, part) for _ in range(2) for part in (mix(), _hidden(width))]
    ends = (Averaged(), nn.Linear(width, 10))
    return nn.Sequential(Cut(), nn.Linear(49, width), nn.Dropout(0.1), *blocks, nn.LayerNorm(width), *ends)


def module(name: str) -> nn.Module:
    torch.manual_seed(0)
    if name == "vit":
        return _patches(lambda: Attention(64, 4, 0.1))
    if name == "mixer":
        return _patches(lambda: Turned(_hidden(16)))
    if name == "gru":
        return Recurrent()
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    conv = lambda n_in, n_out: (nn.Conv2d(n_in, n_out, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*conv(1, 8), *conv(8, 16), nn.Flatten(), nn.Linear(784, 10))


def data(name: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    side, g = 8 if name == "mlp" else 28, torch.Generator().manual_seed(0)
    x, y = torch.randn(CLIENTS * SAMPLES, 1, side, side, generator=g), torch.randint(10, (CLIENTS * SAMPLES,))
    return list(zip(x.split(SAMPLES), y.split(SAMPLES)))


class Loop:
    """FedAvg as it is usually written, without loaders."""

    def __init__(self, name: str) -> None:
        self.model, self.data = module(name), data(name)

    def round(self) -> None:
        uploads = []
        for i in torch.randperm(CLIENTS)[:SAMPLED].tolist():
            model, (x, y) = copy.deepcopy(self.model), self.data[i]
            optimizer = torch.optim.SGD(model.parameters(), lr=LR)
            order = torch.cat([torch.randperm(SAMPLES) for _ in range(-(-STEPS * BATCH // SAMPLES))])
            for rows in order[: STEPS * BATCH].split(BATCH):
                optimizer.zero_grad()
                functional.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
            uploads.append(model.state_dict())
        mean = {name: torch.stack([state[name] for state in uploads]).mean(0) for name in uploads[0]}
        self.model.load_state_dict(mean)


def measure(name: str, blocks: int, rounds: int) -> dict[str, object]:
    """Seconds of a round and ratios to the loop: medians over the blocks, and quartiles."""
    variants: dict[str, Work] = {}
    chosen = Supervised(module(name), nn.CrossEntropyLoss(), data(name), batch=BATCH)
    for way, together in {"ours": None, "stacked": True, "alone": False}.items():
        problem = Supervised(module(name), nn.CrossEntropyLoss(), data(name), batch=BATCH, together=together)
        play = lambda problem=problem: run(
            FedAvg(LR, STEPS), problem, rounds, sampled=SAMPLED, every=rounds, metrics=()
        )
        variants[way] = play, rounds
    loop = Loop(name)
    variants["loop"] = lambda: [loop.round() for _ in range(rounds)], rounds
    seconds = turns(variants, "cpu", blocks)
    row: dict[str, object] = {way: statistics.median(times) for way, times in seconds.items()}
    row["quartiles"] = {way: quartiles(times) for way, times in seconds.items()}
    for way in ("ours", "stacked", "alone"):
        paired = [a / b for a, b in zip(seconds[way], seconds["loop"])]
        row |= {f"ratio_{way}": statistics.median(paired), f"ratio_{way}_quartiles": quartiles(paired)}
    return row | {"bar": BARS[name], "together": chosen.together, "chunk": chosen.chunk, "blocks": blocks}


def show(table: dict[str, dict[str, Any]]) -> None:
    for name, row in table.items():
        ratios = ", ".join(f"{way} {row[f'ratio_{way}']:.2f}" for way in ("ours", "stacked", "alone"))
        print(f"{name:6} loop {row['loop'] * 1e3:.1f} ms, of it {ratios}; at most {row['bar']}; chunk {row['chunk']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=9, help="blocks per variant")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of a block; ten times as many of the perceptron")
    parser.add_argument("--only", choices=BARS, help="one network")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    if options.rounds < 1 or options.blocks < 1:
        parser.error("--rounds and --blocks must be at least 1")
    torch.set_num_threads(1)
    names = [options.only] if options.only else list(BARS)
    table = {name: measure(name, options.blocks, options.rounds * (10 if name == "mlp" else 1)) for name in names}
    report(table, environment("cpu"), options.json, show)


if __name__ == "__main__":
    main()
