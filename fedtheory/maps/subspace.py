"""Linear subspaces: how a full-space vector is projected down and a subspace vector is lifted back, layer by layer.

The two papers write the same object transposed. FedSub's P (m x r, columns) lifts, SSF's P (r x d, rows) projects.
Here the words are the interface: `project` goes down (P^T g in FedSub, P g in SSF), `lift` goes up (P B, P^T b).

Scale is the second difference, and it decides stability (see notebook 01):
    "orthonormal"  P^T P = I_r          and E[P P^T] = (r/m) I    (SSF, Assumption 3, transposed)
    "isotropic"    P^T P = (m/r) I_r    and E[P P^T] = I          (FedSub, Assumption 1)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import torch

from fedtheory.core import checks
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.message import Cost, Known, Seed

SCALES = ("orthonormal", "isotropic")


def _map(g: torch.Tensor, layout: Layout, factors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Multiply every column of layer l by factors[l] from the right: W_l^T F_l = (F_l^T W_l)^T."""
    _require_length(g, layout)
    if len(factors) == 1:
        layer, (factor,) = layout.layers[0], factors
        columns = g.reshape(g.numel() // layer.rows, layer.rows)
        return torch.mm(columns, factor).view(*g.shape[:-1], layer.cols * factor.shape[1])
    parts = [(columns @ factor).flatten(-2) for columns, factor in zip(layout.columns(g), factors)]
    return torch.cat(parts, dim=-1)


def _require_length(g: torch.Tensor, layout: Layout) -> None:
    if g.shape[-1] != layout.size:
        fix = "pass vectors of the layout that the basis was drawn for, d entries last"
        checks.reject("shape", tuple(g.shape), f"{layout.size} entries along the last axis", fix)


@dataclass(frozen=True, eq=False)
class DenseBasis(Basis):
    """A basis given by its matrices: `frames[l]` is P_l, shape (m_l, r_l)."""

    frames: tuple[torch.Tensor, ...]

    @cached_property
    def _transposed(self) -> tuple[torch.Tensor, ...]:
        return tuple(frame.T for frame in self.frames)

    def project(self, g: torch.Tensor) -> torch.Tensor:
        return _map(g, self.layout, self.frames)

    def lift(self, b: torch.Tensor) -> torch.Tensor:
        return _map(b, self.low, self._transposed)

    def matrices(self) -> list[torch.Tensor]:
        return list(self.frames)


@dataclass(frozen=True, eq=False)
class CoordinateBasis(Basis):
    """A basis of scaled coordinate directions: no product, only a gather and a scatter.

    `index` (r,) are positions of the kept coordinates in the flat vector, `weight` (r,) their scale and sign.
    """

    index: torch.Tensor
    weight: torch.Tensor
    rows: tuple[torch.Tensor, ...]  # the kept rows of each layer, (r_l,)
    factors: tuple[torch.Tensor, ...]  # their scale and sign, (r_l,)

    def project(self, g: torch.Tensor) -> torch.Tensor:
        _require_length(g, self.layout)
        return g.index_select(-1, self.index) * self.weight

    def lift(self, b: torch.Tensor) -> torch.Tensor:
        _require_length(b, self.low)
        return b.new_zeros(*b.shape[:-1], self.layout.size).index_copy_(-1, self.index, b * self.weight)

    def matrices(self) -> list[torch.Tensor]:
        frames = []
        for layer, rows, factors in zip(self.layout.layers, self.rows, self.factors):
            frame = factors.new_zeros(layer.rows, len(rows))
            frame[rows, torch.arange(len(rows), device=frame.device)] = factors
            frames.append(frame)
        return frames


@dataclass(frozen=True, eq=False)
class IdentityBasis(Basis):
    """P = I: the full space, `low` = `layout`."""

    dtype: torch.dtype
    device: torch.device | str = "cpu"

    def project(self, g: torch.Tensor) -> torch.Tensor:
        return g

    def lift(self, b: torch.Tensor) -> torch.Tensor:
        return b

    def matrices(self) -> list[torch.Tensor]:
        return [torch.eye(layer.rows, dtype=self.dtype, device=self.device) for layer in self.layout.layers]


def fifth(layout: Layout) -> tuple[int, ...]:
    """Return the rank of each layer that keeps a fifth of its rows: the default of the subspace methods."""
    return tuple(math.ceil(layer.rows / 5) for layer in layout.layers)


@dataclass(frozen=True)
class Projection(ABC):
    """A distribution of bases: what a shared seed is drawn from. Abstract; see `Coordinate`, `Spherical`, `Gaussian`.

    Fields:
        rank: r, the same for all layers (capped at m_l), or one per layer.
        scale: "orthonormal" or "isotropic" (see the module's text).

    Raises ValueError for a rank below 1, a rank above every layer's row count, or an unknown scale.
    """

    rank: int | tuple[int, ...]
    scale: str = "isotropic"

    def __post_init__(self) -> None:
        checks.tidy(self)
        if self.rank == ():
            checks.reject("rank", self.rank, "an integer, or one per layer", "pass for example rank=5")
        for r in self.rank if isinstance(self.rank, tuple) else (self.rank,):
            checks.whole("rank", r, 1)
        checks.choice("scale", self.scale, SCALES)

    @checks.explained
    def ranks(self, layout: Layout) -> list[int]:
        """r_l of each layer.

        Raises ValueError where a rank exceeds its layer's rows m_l (a single rank may, for some of the layers).
        """
        layers = layout.layers
        if isinstance(self.rank, tuple):
            if len(self.rank) != len(layers):
                checks.reject("rank", self.rank, f"{len(layers)} ranks, one per layer", "pass one rank per layer")
            for r, layer in zip(self.rank, layers):
                checks.whole(f"rank of layer {layer.name!r}", r, 1, layer.rows, f"lower it to {layer.rows}")
            return list(self.rank)
        most = max(layer.rows for layer in layers)
        checks.whole("rank", self.rank, 1, most, f"use a rank of at most {most}, the rows of the tallest layer")
        return [min(self.rank, layer.rows) for layer in layers]

    def low(self, layout: Layout) -> Layout:
        """The layout of the subspace."""
        return _low(layout, tuple(self.ranks(layout)))

    @abstractmethod
    def draw(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> Basis:
        """One basis. Drawn on the CPU in float64, then cast: the same subspace for every dtype and device."""

    def dense(self, layout: Layout, dtype: torch.dtype) -> Cost:
        """What a basis would cost if its matrices were sent."""
        count = sum(layer.rows * r for layer, r in zip(layout.layers, self.ranks(layout)))
        return Cost(count, count * dtype.itemsize)

    def seed(
        self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> "Seed[Basis] | Known[Basis]":
        """The basis as a message: only the key crosses."""
        return Seed(key, partial(self.draw, layout, dtype=dtype, device=device), self.dense(layout, dtype))

    def norm2(self, layout: Layout, dtype: torch.dtype, device: torch.device | str = "cpu") -> torch.Tensor | float:
        """The factor s_l^2 in P_l^T P_l = s_l^2 I (for `Gaussian`: its mean), as an entry per subspace coordinate.

        A plain float where all layers share it. m_l/r_l for "isotropic", 1 for "orthonormal".
        """
        if self.scale == "orthonormal":
            return 1.0
        ranks = self.ranks(layout)
        ratios = [layer.rows / r for layer, r in zip(layout.layers, ranks)]
        if len(set(ratios)) == 1:
            return ratios[0]
        counts = torch.tensor([r * layer.cols for layer, r in zip(layout.layers, ranks)])
        return torch.tensor(ratios, dtype=torch.float64).repeat_interleave(counts).to(device, dtype)

    def _scale(self, layer: Layer, r: int) -> float:
        return 1.0 if self.scale == "orthonormal" else math.sqrt(layer.rows / r)


@cache
def _low(layout: Layout, ranks: tuple[int, ...]) -> Layout:
    return Layout(tuple(Layer(layer.name, r, layer.cols) for layer, r in zip(layout.layers, ranks)))


@dataclass(frozen=True)
class Coordinate(Projection):
    """r distinct coordinates, uniformly at random: "CD", coordinate descent (FedSub, Sec. 5; named, not defined).

    `signs` gives every column a random sign, as FedSub's public code does; it changes no subspace.
    """

    signs: bool = False

    @checks.explained
    def draw(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> CoordinateBasis:
        checks.dtype("dtype", dtype)
        device = checks.device("device", device)
        generator = key.generator()
        index, kept, weights = [], [], []
        for layer, r, where in zip(layout.layers, self.ranks(layout), layout.slices):
            rows = torch.randperm(layer.rows, generator=generator)[:r]
            weight = torch.full((r,), self._scale(layer, r), dtype=torch.float64)
            if self.signs:
                weight = weight * (2 * torch.randint(2, (r,), generator=generator) - 1)
            starts = where.start + layer.rows * torch.arange(layer.cols)
            index.append((starts[:, None] + rows).flatten())
            kept.append(rows.to(device))
            weights.append(weight.to(device, dtype))
        flat = torch.cat([w.repeat(layer.cols) for w, layer in zip(weights, layout.layers)])
        return CoordinateBasis(layout, self.low(layout), torch.cat(index).to(device), flat, tuple(kept), tuple(weights))


@dataclass(frozen=True)
class _Dense(Projection):
    """Frames that are made of a Gaussian matrix each."""

    @checks.explained
    def draw(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> DenseBasis:
        checks.dtype("dtype", dtype)
        device = checks.device("device", device)
        generator = key.generator()
        frames = []
        for layer, r in zip(layout.layers, self.ranks(layout)):
            gauss = torch.randn(layer.rows, r, generator=generator, dtype=torch.float64)
            frames.append(self._frame(gauss, self._scale(layer, r)).to(device, dtype))
        return DenseBasis(layout, self.low(layout), tuple(frames))

    @abstractmethod
    def _frame(self, gauss: torch.Tensor, scale: float) -> torch.Tensor:
        """P_l of a matrix (m_l, r_l) of N(0, 1), in columns whose squares sum to about scale^2."""


@dataclass(frozen=True)
class Spherical(_Dense):
    """Haar: uniform among frames with orthogonal columns. "SS", spherical smoothing; SSF's projector.

    QR of a Gaussian matrix; the sign of R's diagonal makes Q uniform (SSF, Sec. 3.6; FedSub's public code).
    """

    def _frame(self, gauss: torch.Tensor, scale: float) -> torch.Tensor:
        q, upper = torch.linalg.qr(gauss)
        return q.mul_(upper.diagonal().sign() * scale)


@dataclass(frozen=True)
class Gaussian(_Dense):
    """Independent normal entries: "RD", random generation (FedSub, Sec. 5; named, not defined).

    Entry variance 1/r ("isotropic": E[P P^T] = I, as in FedSub's regression script) or 1/m ("orthonormal":
    E[P P^T] = (r/m) I, as in its DNN code). P^T P is a multiple of I only in expectation: half of Assumption 1 fails.
    """

    def _frame(self, gauss: torch.Tensor, scale: float) -> torch.Tensor:
        return gauss * (scale / math.sqrt(len(gauss)))


@dataclass(frozen=True)
class Identity(Projection):
    """P = I: the full space. `rank` is ignored (every layer keeps all its rows) and no seed crosses."""

    rank: int | tuple[int, ...] = 1
    scale: str = "orthonormal"

    @checks.explained
    def ranks(self, layout: Layout) -> list[int]:
        return [layer.rows for layer in layout.layers]

    @checks.arguments
    def draw(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> IdentityBasis:
        return IdentityBasis(layout, layout, dtype, device)

    def seed(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> Known[Basis]:
        return Known(IdentityBasis(layout, layout, dtype, device))


PROJECTIONS: dict[str, Callable[[int], Projection]] = {  # as the papers call them, on the command line
    "cd": Coordinate,
    "ss": Spherical,
    "rd": Gaussian,
    "identity": lambda r: Identity(),
}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The truncated SVD of a matrix G = [g_1, ..., g_J] whose columns come one at a time. G itself is never held.

    Per slice of the vectors (all of it, or layer by layer) it keeps the k largest singular values of G and their left
    vectors, O(d k) memory. A column is added by a rank-one update (Brand 2002, "Incremental singular value
    decomposition of uncertain data with missing values"): exact while G has rank <= k; afterwards the smallest of k + 1
    is dropped each time, and what is kept is the SVD of a matrix that lacks those parts.

    Fields:
        frames: U_l of each slice, (d_l, k_l); zero columns where G_l has no k_l directions yet.
        values: sigma of each slice, (k_l,), falling.
        mean, count: of the columns, where G is centred; else None.
    """

    frames: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]
    mean: torch.Tensor | None = None
    count: int | None = None

    @staticmethod
    def empty(sizes: Sequence[int], kept: int, like: torch.Tensor, centred: bool = False) -> "Trajectory":
        """No columns yet. `sizes`: lengths of the slices, `kept`: k (capped by each); dtype and device of `like`."""
        frames = tuple(like.new_zeros(size, min(kept, size)) for size in sizes)
        values = tuple(like.new_zeros(frame.shape[1]) for frame in frames)
        return Trajectory(frames, values, like.new_zeros(sum(sizes)) if centred else None, 0 if centred else None)

    def add(self, g: torch.Tensor, forget: float = 1.0) -> "Trajectory":
        """With one more column, (d,); the singular values so far are multiplied by `forget` first."""
        mean, count = self.mean, self.count
        if mean is not None and count is not None:  # G G^T of the centred columns grows by (J-1)/J (g - mean)(.)^T
            count, g = count + 1, g - mean
            mean, g = mean + g / count, math.sqrt((count - 1) / count) * g
        parts = g.split([len(frame) for frame in self.frames])
        added = [_append(U, forget * s, part) for U, s, part in zip(self.frames, self.values, parts)]
        return Trajectory(tuple(U for U, _ in added), tuple(s for _, s in added), mean, count)

    def basis(self, rank: int) -> DenseBasis:
        """The first `rank` left singular vectors of each slice (all, where it has fewer)."""
        frames = tuple(frame[:, :rank] for frame in self.frames)
        sizes, ranks = zip(*(frame.shape for frame in frames))
        return DenseBasis(_stacked(sizes), _stacked(ranks), frames)


def _append(U: torch.Tensor, s: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """U and s of [U diag(s), g], the smallest singular value dropped."""
    k, tiny = len(s), 100 * torch.finfo(g.dtype).eps
    p = U.T @ g
    q = g - U @ p
    again = U.T @ q  # a second Gram-Schmidt step makes q orthogonal to working precision
    p, q = p + again, q - U @ again
    rho = torch.linalg.vector_norm(q)
    if rho <= tiny * torch.linalg.vector_norm(g):  # g is in the span: what is left is rounding, not a direction
        rho = torch.zeros_like(rho)
    K = torch.zeros(k + 1, k + 1, dtype=torch.float64, device=g.device)
    K[:k, :k], K[:k, k], K[k, k] = s.diag(), p, rho
    if not bool(torch.isfinite(K).all()):  # a diverging run; it is stopped where its model is checked
        return U, s
    left, values, _ = torch.linalg.svd(K)
    left = (left * (values > tiny * values[0])).to(g)
    unit = q / rho if rho > 0 else torch.zeros_like(q)
    return torch.addr(U @ left[:k, :k], unit, left[k, :k]), values[:k].to(g)


@cache
def _stacked(sizes: tuple[int, ...]) -> Layout:
    """One column per slice."""
    return Layout(tuple(Layer(str(i), size, 1) for i, size in enumerate(sizes)))
