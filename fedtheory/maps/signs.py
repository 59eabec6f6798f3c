"""One bit per entry: the scaled sign of a vector, as it crosses."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

_WORD = 32  # bits of one word on the wire


@dataclass(frozen=True)
class Signs:
    """sign(p) times the mean of |p|, group by group (Karimireddy et al. 2019, arXiv:1901.09847, Alg. 1).

    A bit knows no zero: an entry of 0 counts as positive.

    Fields:
        words: the signs, 32 to a word, (S, ceil(d/32)) int32; entry 0 is the lowest bit of word 0.
        scale: ||p||_1 / d of each group, or what else was given, (S, groups).
    """

    words: torch.Tensor
    scale: torch.Tensor

    @staticmethod
    def of(p: torch.Tensor, sizes: Sequence[int], scale: torch.Tensor | None = None) -> "Signs":
        """The signs of p (S, d), with a scale for each group of entries; `sizes` sum to d."""
        bits = functional.pad(p >= 0, (0, -p.shape[-1] % _WORD)).unflatten(-1, (-1, 8))
        words = (bits * _powers(p)).sum(-1, dtype=torch.uint8).view(torch.int32)
        return Signs(words, means(p, sizes) if scale is None else scale)

    def expand(self, sizes: Sequence[int]) -> torch.Tensor:
        """What the receiver makes of it: (S, d)."""
        bits = (self.words.view(torch.uint8)[..., None] & _powers(self.words)).ne(0).flatten(-2)
        scales = self.scale.repeat_interleave(torch.tensor(sizes, device=self.scale.device), -1)
        return torch.where(bits[..., : scales.shape[-1]], scales, -scales)


def means(p: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return the mean of |p| of each group of entries, (S, d) -> (S, groups)."""
    return torch.stack([part.abs().mean(-1) for part in p.split(list(sizes), -1)], -1)


def _powers(like: torch.Tensor) -> torch.Tensor:
    return 2 ** torch.arange(8, dtype=torch.uint8, device=like.device)
