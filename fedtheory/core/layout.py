"""One flat vector per model: where its layers lie in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import torch

from fedtheory.core import checks


class Layer(NamedTuple):
    """A weight matrix W_l of m_l rows and d_l columns (FedSub, Sec. 1 "Notation")."""

    name: str
    rows: int  # m_l: the dimension that a basis compresses, from the left
    cols: int  # d_l

    @property
    def kind(self) -> str:
        """The name's last part: "conv", "linear", "bias", "scale" or "shift" in a network."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Layout:
    """The layers of a model, in the order in which their columns are stacked: x = (vec W_1, ..., vec W_L).

    vec stacks columns, so that a left factor acts on contiguous memory: vec(P W) = (I (x) P) vec(W).

    Raises ValueError for no layers, an empty layer or a name used twice.

    >>> layout = Layout((Layer("W", 3, 2), Layer("b", 2, 1)))
    >>> layout.size
    8
    >>> layout.matrices(torch.arange(8))[0].tolist()
    [[0, 3], [1, 4], [2, 5]]
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.layers, tuple) or not all(isinstance(layer, Layer) for layer in self.layers):
            checks.reject("layers", self.layers, "a tuple of Layer", "pass (Layer('W', rows, cols),)", TypeError)
        if not self.layers:
            checks.reject("layers", self.layers, "at least one layer", "pass Layer('W', rows, cols)")
        object.__setattr__(self, "layers", tuple(Layer(*map(checks.plain, layer)) for layer in self.layers))
        for layer in self.layers:
            if not isinstance(layer.name, str):
                checks.reject(
                    "layers", layer.name, "layers whose names are texts", "pass Layer('W', rows, cols)", TypeError
                )
            checks.whole(f"layers[{layer.name!r}].rows", layer.rows, 1)
            checks.whole(f"layers[{layer.name!r}].cols", layer.cols, 1)
        names = [layer.name for layer in self.layers]
        if len(set(names)) < len(names):
            checks.reject("layers", names, "distinct names", "rename one of the layers")

    @staticmethod
    @checks.arguments
    def single(rows: int, cols: int = 1) -> "Layout":
        """A model that is one matrix (or one column)."""
        return Layout((Layer("W", rows, cols),))

    @cached_property
    def size(self) -> int:
        """d: the length of the flat vector."""
        return sum(layer.rows * layer.cols for layer in self.layers)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each layer lies in the flat vector."""
        ends = [0]
        for layer in self.layers:
            ends.append(ends[-1] + layer.rows * layer.cols)
        return tuple(slice(a, b) for a, b in pairwise(ends))

    def columns(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Views (..., cols, rows) of the layers, one column of W_l after the other: W_l transposed."""
        if not isinstance(x, torch.Tensor) or not x.shape or x.shape[-1] != self.size:
            checks.tensor("x", x, kinds=None, finite=False)
            checks.reject("x.shape", tuple(x.shape), f"(..., {self.size})", "pass a vector of this layout")
        return [x[..., where].unflatten(-1, (layer.cols, layer.rows)) for layer, where in zip(self.layers, self.slices)]

    def matrices(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Views (..., rows, cols): the weight matrices W_l as the papers write them."""
        return [columns.mT for columns in self.columns(x)]

    @checks.arguments
    def flatten(self, matrices: Sequence[torch.Tensor]) -> torch.Tensor:
        """The flat vector (..., d) of weight matrices (..., rows, cols); the inverse of `matrices`."""
        if len(matrices) != len(self.layers):
            checks.reject("len(matrices)", len(matrices), f"{len(self.layers)} layers", "pass one matrix per layer")
        for layer, matrix in zip(self.layers, matrices):
            if tuple(matrix.shape[-2:]) != (layer.rows, layer.cols):
                checks.reject(
                    f"matrices[{layer.name!r}].shape",
                    tuple(matrix.shape),
                    f"(..., {layer.rows}, {layer.cols})",
                    "transpose or reshape it",
                )
        return torch.cat([matrix.mT.flatten(-2) for matrix in matrices], dim=-1)
