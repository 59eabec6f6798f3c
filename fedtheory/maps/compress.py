"""What a compressed vector looks like on the wire: a few entries, ternary, few bits per entry, a count sketch.

Each type is made of vectors (S, d) by `of`; `expand` is what the receiver makes of it. One bit per entry: signs.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedtheory.core.key import Key
from fedtheory.core.layout import Layout

LEVELS = {8: torch.int8, 16: torch.int16}  # bits of a quantized entry


def count_kept(ratio: float, size: int) -> int:
    """Return how many of `size` entries a ratio keeps: the nearest whole number, at least one."""
    return max(1, round(ratio * size))


def groups(layout: Layout, scale: str) -> list[int]:
    """Return entries that are compressed together: those of the whole "model", or of each "layer"."""
    return [layer.rows * layer.cols for layer in layout.layers] if scale == "layer" else [layout.size]


def largest(score: torch.Tensor, ratio: float, sizes: Sequence[int]) -> torch.Tensor:
    """Return positions of the largest scores of each group, rising: (S, d) -> (S, k). The first of equal ones count."""
    found, start = [], 0
    for part in score.nan_to_num(nan=torch.inf).split(list(sizes), -1):
        k = count_kept(ratio, part.shape[-1])
        threshold = part.kthvalue(part.shape[-1] - k + 1, -1, keepdim=True).values
        above, equal = part > threshold, part == threshold
        chosen = above | (equal & (equal.cumsum(-1) <= k - above.sum(-1, keepdim=True)))
        found.append(chosen.nonzero()[:, -1].view(-1, k) + start)
        start += part.shape[-1]
    return torch.cat(found, -1)


def uniforms(generators: Sequence[torch.Generator], like: torch.Tensor) -> torch.Tensor:
    """Return a row of uniform numbers in [0, 1) of each generator, drawn on the CPU in float64: (S, d).

    Few bits would round some of them up to 1, at which no event is sure any more.
    """
    rows = [torch.rand(like.shape[-1], generator=g, dtype=torch.float64) for g in generators]
    return torch.stack(rows).to(like).clamp_(max=1 - torch.finfo(like.dtype).eps / 2)


@dataclass(frozen=True)
class Sparse:
    """Some of the entries, and where they are: in float32 a position costs as much as its entry.

    Fields:
        values: (S, k).
        index: their positions, (S, k) int32.
    """

    values: torch.Tensor
    index: torch.Tensor

    @staticmethod
    def of(p: torch.Tensor, index: torch.Tensor) -> "Sparse":
        """The entries of p (S, d) at index (S, k); `largest` finds the index of Top-k."""
        return Sparse(p.gather(-1, index), index.int())

    def expand(self, d: int) -> torch.Tensor:
        """(S, d): the others are zero."""
        return self.values.new_zeros(len(self.values), d).scatter_(-1, self.index.long(), self.values)

    def misplaced(self, d: int) -> str:
        """What is wrong with a stranger's positions; empty where nothing is."""
        return _beyond("index", self.index, 0, d - 1)


@dataclass(frozen=True)
class Ternary:
    """sign(p) times the mean of |p| at some of the entries (STC: Sattler et al. 2019, arXiv:1903.02891, Algorithm 1).

    Position and sign are one integer: i for a positive entry, -1 - i for a negative one, d for one that is 0.

    Fields:
        scale: mu, (S, 1).
        code: (S, k) int32.
    """

    scale: torch.Tensor
    code: torch.Tensor

    @staticmethod
    def of(p: torch.Tensor, index: torch.Tensor) -> "Ternary":
        """The signs of p (S, d) at index (S, k)."""
        values = p.gather(-1, index)
        code = (-1 - index).where(values < 0, index).where(values != 0, p.shape[-1])
        return Ternary(values.abs().mean(-1, keepdim=True), code.int())

    def expand(self, d: int) -> torch.Tensor:
        """(S, d): the others are zero."""
        index = self.code.long()
        signed = self.scale.where(index >= 0, -self.scale)
        return self.scale.new_zeros(len(index), d + 1).scatter_(-1, index.where(index >= 0, -1 - index), signed)[:, :d]

    def misplaced(self, d: int) -> str:
        """What is wrong with a stranger's positions; empty where nothing is."""
        return _beyond("code", self.code, -d, d)


def _beyond(name: str, found: torch.Tensor, low: int, high: int) -> str:
    least, most = int(found.min()), int(found.max())
    return "" if low <= least and most <= high else f"{name} holds {least} to {most}, expected {low} to {high}"


@dataclass(frozen=True)
class Sampled:
    """k entries at random positions (Rand-K), which the receiver draws again from a seed.

    Fields:
        values: (S, k).
        seed: (S, 1) int64.
    """

    values: torch.Tensor
    seed: torch.Tensor

    @staticmethod
    def of(p: torch.Tensor, k: int, keys: Sequence[Key]) -> "Sampled":
        """k of the entries of p (S, d), row i at the positions of keys[i]."""
        seed = torch.tensor([[key.hash()] for key in keys])
        return Sampled(p.gather(-1, _positions(seed, k, p.shape[-1]).to(p.device)), seed.to(p.device))

    def expand(self, d: int) -> torch.Tensor:
        """(S, d): the others are zero."""
        index = _positions(self.seed, self.values.shape[-1], d).to(self.values.device)
        return self.values.new_zeros(len(self.values), d).scatter_(-1, index, self.values)


def _positions(seeds: torch.Tensor, k: int, d: int) -> torch.Tensor:
    """k distinct positions of d for each seed, uniformly at random, (S, k)."""
    rows = [torch.randperm(d, generator=torch.Generator().manual_seed(seed))[:k] for seed in seeds.flatten().tolist()]
    return torch.stack(rows)


@dataclass(frozen=True)
class Quantized:
    """Every entry as one of 2^bits - 1 levels from -scale to scale, evenly spaced.

    Fields:
        scale: the largest |p| of each group, (S, groups).
        levels: (S, d), int8 or int16.
    """

    scale: torch.Tensor
    levels: torch.Tensor

    @staticmethod
    def of(p: torch.Tensor, sizes: Sequence[int], bits: int, u: torch.Tensor | float = 0.5) -> "Quantized":
        """The levels of p (S, d), with a scale for each group of entries; `sizes` sum to d.

        An entry between two levels, at the share f of the way, becomes the upper one where u < f: unbiased for
        uniform u (S, d), the nearest level for u = 1/2.
        """
        scale = torch.stack([part.abs().amax(-1) for part in p.split(list(sizes), -1)], -1)
        exact, top = p / _spacing(scale, sizes, bits), 2 ** (bits - 1) - 1
        lower = exact.nan_to_num().floor()  # 0/0 where a group is zero
        return Quantized(scale, (lower + (u < exact - lower)).clamp(-top, top).to(LEVELS[bits]))

    def expand(self, sizes: Sequence[int]) -> torch.Tensor:
        """(S, d)."""
        return self.levels * _spacing(self.scale, sizes, 8 * self.levels.element_size())


def _spacing(scale: torch.Tensor, sizes: Sequence[int], bits: int) -> torch.Tensor:
    """Distance between two levels, entry by entry, (S, d)."""
    return (scale / (2 ** (bits - 1) - 1)).repeat_interleave(torch.tensor(sizes, device=scale.device), -1)


@dataclass(frozen=True)
class Hashes:
    """The hash functions of a count sketch: a bucket and a sign of every entry, row by row of the table.

    The buckets of a row are as full as one another, give or take one entry: two entries meet with a probability of at
    most 1/cols, which is all that the sketch needs of its hash, and with cols >= d never.

    Fields:
        bucket: (rows, d) int64.
        sign: (rows, d), +1 or -1.
        cols: buckets of a row.
    """

    bucket: torch.Tensor
    sign: torch.Tensor
    cols: int

    @staticmethod
    def draw(rows: int, cols: int, key: Key, like: torch.Tensor) -> "Hashes":
        """For vectors like `like` (d,)."""
        g, d = key.generator(), len(like)
        bucket = torch.stack([torch.randperm(d, generator=g) % cols for _ in range(rows)])
        sign = 2 * torch.randint(2, (rows, d), generator=g) - 1
        return Hashes(bucket.to(like.device), sign.to(like), cols)


@dataclass(frozen=True)
class Sketch:
    """A count sketch: in every row, each entry is added to its bucket with its sign. Linear in the vector.

    Fields:
        table: (S, rows, cols).
    """

    table: torch.Tensor

    @staticmethod
    def of(p: torch.Tensor, hashes: Hashes) -> "Sketch":
        """The sketch of p (S, d)."""
        rows = [
            p.new_zeros(len(p), hashes.cols).index_add_(-1, bucket, p * sign)
            for bucket, sign in zip(hashes.bucket, hashes.sign)
        ]
        return Sketch(torch.stack(rows, 1))

    def expand(self, hashes: Hashes) -> torch.Tensor:
        """The estimate of every entry, (S, d): the median over the rows of its bucket times its sign."""
        rows = [
            self.table[:, j].index_select(-1, bucket) * sign
            for j, (bucket, sign) in enumerate(zip(hashes.bucket, hashes.sign))
        ]
        return torch.stack(rows).median(0).values
