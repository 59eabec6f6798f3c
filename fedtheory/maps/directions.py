"""Zeroth order: directions that both sides regenerate from a key, slopes along them, and steps."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Problem

BLOCK = 2**16  # entries of z that an update holds at a time


class Field(ABC):
    """z: one entry for each parameter, in blocks. Fields: layout."""

    layout: Layout

    @abstractmethod
    def blocks(self, j: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """Layer j in pieces: where it lies in the flat vector, and z there."""

    def losses(self, problem: Problem, y: torch.Tensor, mu: float, xi: Any) -> torch.Tensor:
        """Entry i: f_i(y_i + mu z). y (S, d) -> (S,)."""
        moved = y.clone(memory_format=torch.contiguous_format)
        for where, z in self:
            moved[:, where].add_(z, alpha=mu)
        return problem.losses(moved, xi)

    def __iter__(self) -> Iterator[tuple[slice, torch.Tensor]]:
        for j in range(len(self.layout.layers)):
            yield from self.blocks(j)


@dataclass(frozen=True)
class Direction(Field):
    """z: a function of a key, made where it is needed, block by block; held whole on a card, where it fits in a block.

    Every layer has its own stream, drawn on the CPU in the model's precision, so that all clients agree bit for bit.
    """

    key: Key
    layout: Layout
    kind: str
    dtype: torch.dtype
    device: torch.device

    def blocks(self, j: int) -> Iterator[tuple[slice, torch.Tensor]]:
        if self._whole is None:
            yield from self._made(j)
        else:
            yield self.layout.slices[j], self._whole[self.layout.slices[j]]

    def __iter__(self) -> Iterator[tuple[slice, torch.Tensor]]:
        if self._whole is None:
            yield from super().__iter__()
        else:
            yield slice(0, self.layout.size), self._whole

    @cached_property
    def _whole(self) -> torch.Tensor | None:
        """On a card z of a model that fits in a block: one copy to it, and no second draw for its other uses.

        On the CPU a list of P held directions would be the largest part of a client's memory.
        """
        if self.layout.size > BLOCK or self.device.type == "cpu":
            return None
        layers = range(len(self.layout.layers))
        return torch.cat([z for j in layers for _, z in self._made(j, torch.device("cpu"))]).to(self.device)

    def _made(self, j: int, device: torch.device | None = None) -> Iterator[tuple[slice, torch.Tensor]]:
        for where, z in self._drawn(j):
            z = z.to(device or self.device)
            yield where, z if self.kind == "gaussian" else z.mul_(self._scale)

    def _drawn(self, j: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """N(0, I), on the CPU."""
        g, start = self.key.fold(j).generator(), self.layout.slices[j].start
        stop = self.layout.slices[j].stop
        for at in range(start, stop, BLOCK):
            end = min(at + BLOCK, stop)
            yield slice(at, end), torch.empty(end - at, dtype=self.dtype).normal_(generator=g)

    @cached_property
    def _scale(self) -> float:
        """sqrt(d) / ||z||: on the sphere of radius sqrt(d), as Sec. 4.1 before Theorem 2."""
        drawn = (z for j in range(len(self.layout.layers)) for _, z in self._drawn(j))
        return math.sqrt(self.layout.size / math.fsum(float(z.double().square().sum()) for z in drawn))

    def losses(self, problem: Problem, y: torch.Tensor, mu: float, xi: Any) -> torch.Tensor:
        if self._whole is None:
            return problem.losses_at(y, lambda j, layer: self.add(j, layer, mu), xi)
        shared = y.stride(0) == 0  # on a card one addition, and one launch of the losses (`problems.graphs`)
        return problem.losses((y[:1] if shared else y).add(self._whole, alpha=mu).expand_as(y), xi)

    def add(self, j: int, layer: torch.Tensor, factor: float) -> torch.Tensor:
        """layer + factor z_j, a new tensor, (., size of layer j)."""
        if self._whole is not None:
            return layer.add(self._whole[self.layout.slices[j]], alpha=factor)
        layer, start = layer.clone(), self.layout.slices[j].start
        for where, z in self.blocks(j):
            layer[:, where.start - start : where.stop - start].add_(z, alpha=factor)
        return layer


@dataclass(frozen=True)
class Each(Field):
    """A direction of its own for each of S clients; y + mu z is held."""

    rows: tuple[Direction, ...]

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return self.rows[0].layout

    def blocks(self, j: int) -> Iterator[tuple[slice, torch.Tensor]]:
        for parts in zip(*(one.blocks(j) for one in self.rows)):
            yield parts[0][0], torch.stack([z for _, z in parts])


@dataclass(frozen=True)
class Scaled(Field):
    """A direction whose entries are multiplied by `scale`, (d,)."""

    of: Direction
    scale: torch.Tensor

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return self.of.layout

    def blocks(self, j: int) -> Iterator[tuple[slice, torch.Tensor]]:
        for where, z in self.of.blocks(j):
            yield where, z * self.scale[where]


@torch.no_grad()
def slopes(
    problem: Problem, y: torch.Tensor, z: Sequence[Field], smoothing: float, xi: Any, *, central: bool
) -> torch.Tensor:
    """Return the slopes of the clients' losses at y (S, d) along each z_p, (S, P).

    They are (f_i(y_i + mu z_p) - f_i(y_i)) / mu; central: (f_i(y_i + mu z_p) - f_i(y_i - mu z_p)) / (2 mu).
    """
    at = lambda one, mu: one.losses(problem, y, mu, xi)
    if central:
        return torch.stack([(at(one, smoothing) - at(one, -smoothing)) / (2 * smoothing) for one in z], 1)
    base = problem.losses(y, xi)
    return torch.stack([(at(one, smoothing) - base) / smoothing for one in z], 1)


def bearable(P: int, d: int) -> float:
    """Return the part of a gradient's step size that P Gaussian directions in d dimensions bear: 1 / (1 + (d + 1) / P).

    Their estimate g of a gradient G has E ||g||^2 = (1 + (d + 1) / P) ||G||^2 where mu is small.
    """
    return P / (P + d + 1)


def walk(y: torch.Tensor, z: Sequence[Field], factors: torch.Tensor) -> None:
    """Add sum_p factors_{i,p} z_p to y_i in place: y (S, d), factors (S, P)."""
    for p, one in enumerate(z):
        for where, part in one:
            y[:, where].addcmul_(factors[:, p, None], part)
