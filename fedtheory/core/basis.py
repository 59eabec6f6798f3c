"""A basis P of a subspace, as a round sees it; `maps.subspace` draws them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from fedtheory.core.layout import Layout


@dataclass(frozen=True, eq=False)
class Basis(ABC):
    """A basis P of a subspace, one block per layer.

    Fields:
        layout: the layers of the full space, (m_l, d_l).
        low: the layers of the subspace, (r_l, d_l).
    """

    layout: Layout
    low: Layout

    @abstractmethod
    def project(self, g: torch.Tensor) -> torch.Tensor:
        """(..., sum m_l d_l) -> (..., sum r_l d_l): P_l^T on each layer."""

    @abstractmethod
    def lift(self, b: torch.Tensor) -> torch.Tensor:
        """(..., sum r_l d_l) -> (..., sum m_l d_l): P_l on each layer."""

    @abstractmethod
    def matrices(self) -> list[torch.Tensor]:
        """P_l as (m_l, r_l) matrices."""
