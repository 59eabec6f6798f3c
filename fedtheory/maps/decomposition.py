"""Decompositions of a model update: how a short vector of factors u becomes an update of the model, layer by layer.

A matrix of the paper (m x n) is a layer as `Layout.columns` shows it: (out, in) of a linear layer, (c_out k, c_in k) of
a convolution, row-major as stored. A `Decomposition` says how; a layout and a key make `Factors` of it:

    form "product"  U V^T, or U (x) V block by block: U random, V = 0 at the start, so that the update starts at zero
    form "aad"      U V~^T + U~ V^T (8): U~ and V~ random and fixed, U = V = 0: linear in what is trained
    form "freeze"   U~ V^T ("+F"): U~ random and fixed, V = 0
    form "lora"     B A, low rank: A, on the side of a layer's inputs, random, B = 0

A layer that is no matrix (bias, normalisation) and, by default, the first and the last matrix stay whole: there u is
the update itself.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import accumulate, count

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import later
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, Seed

_Draw = Callable[[int], torch.Tensor]  # so many entries from U(-a, a)
_FORMS = ("product", "aad", "freeze", "lora")


# Two factors -> the entries of a matrix


class Bilinear(ABC):
    """(U, V) -> U V of any kind, and its adjoints in U and in V. Flat in, flat out; leading axes broadcast."""

    sizes: tuple[int, int]  # entries of U and of V

    @abstractmethod
    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """(..., |U|), (..., |V|) -> (..., m n)."""

    @abstractmethod
    def left(self, g: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """Gradient in U of <g, product(U, V)>: (..., m n), (..., |V|) -> (..., |U|)."""

    @abstractmethod
    def right(self, g: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        """Gradient in V of the same: (..., m n), (..., |U|) -> (..., |V|)."""

    def adjoints(self, g: torch.Tensor, U: torch.Tensor, V: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The gradients in U and in V."""
        return self.left(g, V), self.right(g, U)

    def truncated(self, W: torch.Tensor, share: float) -> torch.Tensor:
        """U and V of the product nearest to W, (m n,); where it is an outer product."""
        raise NotImplementedError


class Outer(Bilinear):
    """U V^T with U (m x r) and V (n x r)."""

    def __init__(self, m: int, n: int, r: int) -> None:
        self.m, self.n, self.r, self.sizes = m, n, r, (m * r, n * r)

    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return (self._U(U) @ self._V(V).mT).flatten(-2)

    def left(self, g: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return (self._W(g) @ self._V(V)).flatten(-2)

    def right(self, g: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return (self._W(g).mT @ self._U(U)).flatten(-2)

    def truncated(self, W: torch.Tensor, share: float) -> torch.Tensor:
        """From the SVD, cut after r terms: U S^share and V S^(1 - share).

        Always by the CPU: with those of a card, FedHM's round of eight layers took more than a second.
        """
        U, S, Vh = torch.linalg.svd(self._W(W).cpu(), full_matrices=False)
        U, S, V = U[:, : self.r], S[: self.r], Vh[: self.r].mT
        return torch.cat([(U * S**share).flatten(), (V * S ** (1 - share)).flatten()]).to(W.device)

    def _U(self, U: torch.Tensor) -> torch.Tensor:
        return U.unflatten(-1, (self.m, self.r))

    def _V(self, V: torch.Tensor) -> torch.Tensor:
        return V.unflatten(-1, (self.n, self.r))

    def _W(self, W: torch.Tensor) -> torch.Tensor:
        return W.unflatten(-1, (self.m, self.n))


class Adapter(Outer):
    """B A of LoRA with A^T (n x r), B (m x r): U V^T whose V comes first."""

    def __init__(self, m: int, n: int, r: int) -> None:
        super().__init__(m, n, r)
        self.sizes = (n * r, m * r)

    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return super().product(V, U)

    def left(self, g: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return super().right(g, V)

    def right(self, g: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return super().left(g, U)

    def truncated(self, W: torch.Tensor, share: float) -> torch.Tensor:
        """From the SVD: B = U S^share, A^T = V S^(1 - share), A first."""
        B, A = super().truncated(W, share).split(self.sizes[::-1])
        return torch.cat([A, B])


class KroneckerBlocks(Bilinear):
    """p x q blocks U_pq (x) V_pq of factors (z x z) are one large matrix; its first m n entries, row by row, count.

    Row i z + k of block row p, column j z + l of block column q holds U_pq[i, j] V_pq[k, l].
    """

    def __init__(self, mn: int, p: int, q: int, z: int) -> None:
        self.mn, self.z, self.grid, self.sizes = mn, z, (p, q), (p * q * z**2, p * q * z**2)

    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        large = torch.einsum("...pqij,...pqkl->...pikqjl", self._blocks(U), self._blocks(V))
        return large.flatten(-6)[..., : self.mn]

    def left(self, g: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...pikqjl,...pqkl->...pqij", self._large(g), self._blocks(V)).flatten(-4)

    def right(self, g: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...pikqjl,...pqij->...pqkl", self._large(g), self._blocks(U)).flatten(-4)

    def _blocks(self, U: torch.Tensor) -> torch.Tensor:
        return U.unflatten(-1, (*self.grid, self.z, self.z))

    def _large(self, g: torch.Tensor) -> torch.Tensor:
        p, q = self.grid
        g = torch.nn.functional.pad(g, (0, p * q * self.z**4 - self.mn))
        return g.unflatten(-1, (p, self.z, self.z, q, self.z, self.z))


# One layer


class Tucker:
    """A kernel of entries sum_{rs} X_or Y_is T_rskl: X (c_out x R), Y (c_in x R), T (R x R x k x k)."""

    def __init__(self, c_out: int, c_in: int, k: int, R: int) -> None:
        self.shapes = (c_out, R), (c_in, R), (R, R, k, k)
        self.sizes = tuple(map(math.prod, self.shapes))

    def product(self, *factors: torch.Tensor) -> torch.Tensor:
        """(..., |X|), (..., |Y|), (..., |T|) -> (..., c_out c_in k k)."""
        return torch.einsum("...or,...is,...rskl->...oikl", *self._shaped(factors)).flatten(-4)

    def adjoints(self, g: torch.Tensor, *factors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The gradients in X, Y and T of <g, product(X, Y, T)>."""
        X, Y, T = self._shaped(factors)
        g = g.unflatten(-1, (X.shape[-2], Y.shape[-2], *T.shape[-2:]))
        left = torch.einsum("...oikl,...is->...oskl", g, Y)
        return (
            torch.einsum("...oskl,...rskl->...or", left, T).flatten(-2),
            torch.einsum("...oikl,...or,...rskl->...is", g, X, T).flatten(-2),
            torch.einsum("...oskl,...or->...rskl", left, X).flatten(-4),
        )

    def _shaped(self, factors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [factor.unflatten(-1, shape) for factor, shape in zip(factors, self.shapes)]


def _zeros(size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.float64)


class Part(ABC):
    """One layer: from what is trained, `size` entries of u, and what is fixed, `fixed` entries, to its update."""

    size: int
    fixed: int = 0

    @abstractmethod
    def start(self, uniform: _Draw) -> torch.Tensor:
        """u before the first step, (size,)."""

    @abstractmethod
    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        """(..., size) -> (..., m n)."""

    @abstractmethod
    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        """Gradient in u of <g, update(u)>: (..., size)."""

    def nearest(self, W: torch.Tensor, share: float) -> torch.Tensor:
        """The u whose update is nearest to W, (m n,) -> (size,): of `LowRank` in its forms "product" and "lora"."""
        raise NotImplementedError


class Whole(Part):
    """No decomposition: u is the update."""

    def __init__(self, size: int) -> None:
        self.size = size

    def start(self, uniform: _Draw) -> torch.Tensor:
        return _zeros(self.size)

    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return u

    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return g

    def nearest(self, W: torch.Tensor, share: float) -> torch.Tensor:
        return W


class Product(Part):
    """U V; `random`: V starts like U, and the update not at zero."""

    def __init__(self, of: Bilinear, random: bool) -> None:
        self.of, self.random, self.size = of, random, sum(of.sizes)

    def start(self, uniform: _Draw) -> torch.Tensor:
        U, V = self.of.sizes
        return torch.cat([uniform(U), (uniform if self.random else _zeros)(V)])

    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return self.of.product(*u.split(self.of.sizes, -1))

    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        U, V = u.split(self.of.sizes, -1)
        return torch.cat([self.of.left(g, V), self.of.right(g, U)], -1)

    def nearest(self, W: torch.Tensor, share: float) -> torch.Tensor:
        return self.of.truncated(W, share)


class Decoupled(Part):
    """U V~ + U~ V (8), aggregation-aware."""

    def __init__(self, of: Bilinear, random: bool) -> None:
        self.of, self.random, self.size, self.fixed = of, random, sum(of.sizes), sum(of.sizes)

    def start(self, uniform: _Draw) -> torch.Tensor:
        return (uniform if self.random else _zeros)(self.size)

    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        (U, V), (U_, V_) = u.split(self.of.sizes, -1), fixed.split(self.of.sizes, -1)
        return self.of.product(U, V_) + self.of.product(U_, V)

    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        U_, V_ = fixed.split(self.of.sizes, -1)
        return torch.cat([self.of.left(g, V_), self.of.right(g, U_)], -1)


class Frozen(Part):
    """U~ V."""

    def __init__(self, of: Bilinear, random: bool) -> None:
        self.of, self.random, (self.fixed, self.size) = of, random, of.sizes

    def start(self, uniform: _Draw) -> torch.Tensor:
        return (uniform if self.random else _zeros)(self.size)

    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return self.of.product(fixed, u)

    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return self.of.right(g, fixed)


class Elementwise(Part):
    """W1 o W2, entry by entry, each a product of factors; the last factor is 0 at the start unless `random`."""

    def __init__(self, of: Outer | Tucker, random: bool) -> None:
        self.of, self.random, self.size = of, random, 2 * sum(of.sizes)

    def start(self, uniform: _Draw) -> torch.Tensor:
        last = self.of.sizes[-1]
        return torch.cat([uniform(self.size - last), (uniform if self.random else _zeros)(last)])

    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        first, second = self._halves(u)
        return self.of.product(*first) * self.of.product(*second)

    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        first, second = self._halves(u)
        g1, g2 = g * self.of.product(*second), g * self.of.product(*first)
        return torch.cat([*self.of.adjoints(g1, *first), *self.of.adjoints(g2, *second)], -1)

    def _halves(self, u: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        factors, count = u.split(self.of.sizes * 2, -1), len(self.of.sizes)
        return factors[:count], factors[count:]


class Permuted(Part):
    """A convolution whose matrix has rows (c_out, k) and columns (c_in, k), k being the axes of the kernel."""

    def __init__(self, part: Part, c_out: int, c_in: int, k: int) -> None:
        self.part, self.size, self.fixed = part, part.size, part.fixed
        self.weight, self.matrix = (c_out, c_in, k, k), (c_out, k, c_in, k)

    def start(self, uniform: _Draw) -> torch.Tensor:
        return self.part.start(uniform)

    def update(self, u: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return self.part.update(u, fixed).unflatten(-1, self.matrix).transpose(-3, -2).flatten(-4)

    def pullback(self, u: torch.Tensor, g: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return self.part.pullback(u, self._matrix(g), fixed)

    def nearest(self, W: torch.Tensor, share: float) -> torch.Tensor:
        return self.part.nearest(self._matrix(W), share)

    def _matrix(self, W: torch.Tensor) -> torch.Tensor:
        return W.unflatten(-1, self.weight).transpose(-3, -2).flatten(-4)


# All layers


@dataclass(frozen=True, eq=False)
class Factors:
    """A decomposition on a layout, with its random values drawn.

    Fields:
        layout: of the model.
        parts: one per layer.
        start: u before the first step, (q,).
        fixed: the random values that are not trained.
    """

    layout: Layout
    parts: tuple[Part, ...]
    start: torch.Tensor
    fixed: torch.Tensor

    @property
    def size(self) -> int:
        """q: what a client trains and sends."""
        return len(self.start)

    def update(self, u: torch.Tensor) -> torch.Tensor:
        """(..., q) -> (..., d)."""
        return torch.cat([part.update(u[..., own], fixed) for part, own, fixed, _ in self._layers], -1)

    def pullback(self, u: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """Gradient in u of <g, update(u)>, by the chain rule: (..., q), (..., d) -> (..., q)."""
        layers = self._layers
        return torch.cat([part.pullback(u[..., own], g[..., all], fixed) for part, own, fixed, all in layers], -1)

    def whole(self, x: torch.Tensor) -> torch.Tensor:
        """`start` with the layers that are not decomposed as they are in the model x (d,)."""
        pieces = [x[all] if isinstance(part, Whole) else self.start[own] for part, own, _, all in self._layers]
        return torch.cat(pieces)

    def nearest(self, x: torch.Tensor, share: float = 0.5) -> torch.Tensor:
        """The factors whose update is nearest to x, layer by layer, by truncated SVD: (d,) -> (q,).

        U, or LoRA's B, gets the singular values to the power `share`, the other factor the rest. A layer that is zero
        gets `start`, whose product is zero too, and not both of whose gradients are. For `LowRank` in its forms
        "product" and "lora".
        """
        pieces = [
            part.nearest(x[all], share) if bool(x[all].any()) else self.start[own] for part, own, _, all in self._layers
        ]
        return torch.cat(pieces)

    @cached_property
    def _layers(self) -> list[tuple[Part, slice, torch.Tensor, slice]]:
        """Part, where it lies in u, its fixed values, where it lies in x."""
        ends = list(accumulate((part.size for part in self.parts), initial=0))
        fixed = self.fixed.split([part.fixed for part in self.parts])
        return list(zip(self.parts, map(slice, ends, ends[1:]), fixed, self.layout.slices))


@dataclass(frozen=True)
class Decomposition(ABC):
    """How updates are decomposed. Abstract; see `LowRank`, `Kronecker`, `Hadamard`, `Full`.

    Fields:
        ratio: factors trained per entry of a decomposed layer; rank or number of blocks follow from it. It holds
            for each decomposed layer, up to rounding; `for_network` makes it hold for all parameters.
        a: random factors are drawn from U(-a, a), all with the same a. PEFT's a for LoRA's A is 1/sqrt(n) with n
            inputs.
        form: "product", "aad", "freeze" (the left factor), or, for `LowRank` only, "lora".
        random: True draws all trained factors, so that the update does not start at zero (FedLMT, FedPara).
        layers: which are decomposed: "inner" matrices without the first and the last one, all "matrices", or "all"
            layers, vectors too.
        kernel: of the convolutions, for the axis order. None: the weight, stored (c_out, c_in, k, k), is read
            row by row as (c_out k, c_in k), as in the public code. k: rows are (c_out, k), columns (c_in, k), so that
            axes keep their meaning; for those convolutions that k divides.

    Raises ValueError for a ratio outside (0, 1], a negative a, or an unknown name.
    """

    ratio: float
    a: float = 0.1
    form: str = "product"
    random: bool = False
    layers: str = "inner"
    kernel: int | None = None

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True, fix="pass for example ratio=1/32")
        checks.number("a", self.a, 0.0, open_low=True)
        checks.choice("form", self.form, _FORMS)
        checks.instance("random", self.random, bool, "pass True or False")
        checks.choice("layers", self.layers, ("inner", "matrices", "all"))
        if self.kernel is not None:
            checks.whole("kernel", self.kernel, 1)

    @abstractmethod
    def part(self, m: int, n: int) -> Part:
        """The map of one (m x n) matrix."""

    def convolution(self, c_out: int, c_in: int, k: int) -> Part:
        """The map of a kernel (c_out, c_in, k, k) whose k is given."""
        return Permuted(self.part(c_out * k, c_in * k), c_out, c_in, k)

    def compressed(self, layout: Layout) -> list[int]:
        """Positions in the layout of the layers that are decomposed.

        Raises ValueError where there is none.
        """
        if self.layers == "all":
            return list(range(len(layout.layers)))
        matrices = [i for i, layer in enumerate(layout.layers) if layer.rows > 1 and layer.cols > 1]
        chosen = matrices[1:-1] if self.layers == "inner" else matrices
        if not chosen:
            found = f"{self.layers!r} of {len(matrices)} matrices"
            fix = f"pass {type(self).__name__}({self.ratio:g}, layers='all') or a deeper network"
            checks.reject("layers", found, "at least one layer to decompose", fix)
        return chosen

    def parts(self, layout: Layout) -> tuple[Part, ...]:
        """One map per layer of the model."""
        return _parts(self, layout)

    @checks.arguments
    def draw(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> Factors:
        """Random values of all layers from one key. Drawn on the CPU in float64, then cast, as bases are."""
        checks.dtype("dtype", dtype)
        device = checks.device("device", device)
        generator = key.generator()
        uniform: _Draw = lambda size: self.a * (2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1)
        parts = self.parts(layout)
        start, fixed = (torch.cat(values) for values in zip(*((p.start(uniform), uniform(p.fixed)) for p in parts)))
        return Factors(layout, parts, start.to(device, dtype), fixed.to(device, dtype))

    def seed(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> "Seed[Factors]":
        """The factors as a message: only the key crosses, in place of the start and the fixed values."""
        count = sum(part.size + part.fixed for part in self.parts(layout))
        make = partial(self.draw, layout, dtype=dtype, device=device)
        return Seed(key, make, Cost(count, count * dtype.itemsize))

    @checks.arguments
    def for_network(self, layout: Layout, step: float = 0.001) -> "Decomposition":
        """With the ratio lowered in steps until trained over all entries is at most ratio + step (5, as in the code).

        Raises ValueError where the layers that stay whole are more than that already.
        """
        checks.number("step", step, 1e-6, 1.0)
        return _for_network(self, layout, step)


@cache
def _for_network(whole: Decomposition, layout: Layout, step: float) -> Decomposition:
    for k in range(math.ceil(whole.ratio / step - 1e-9)):
        lowered = replace(whole, ratio=whole.ratio - k * step)
        if sum(part.size for part in lowered.parts(layout)) <= (whole.ratio + step) * layout.size:
            return lowered
    least = sum(part.size for part in replace(whole, ratio=1e-9).parts(layout)) / layout.size
    checks.reject("ratio", whole.ratio, f"at least {least:.4g}, which is reached", "let it count decomposed layers")


@cache
def _parts(decomposition: Decomposition, layout: Layout) -> tuple[Part, ...]:
    chosen, k, parts = decomposition.compressed(layout), decomposition.kernel, []
    for i, layer in enumerate(layout.layers):
        m, n = layer.cols, layer.rows
        if i not in chosen:
            parts.append(Whole(m * n))
        elif k and layer.kind == "conv" and m % k == 0 and n % k == 0:
            parts.append(decomposition.convolution(m // k, n // k, k))
        else:
            parts.append(decomposition.part(m, n))
    return tuple(parts)


@dataclass(frozen=True)
class LowRank(Decomposition):
    """U V^T with U (m x r), V (n x r), or LoRA's B A; r = ceil(ratio m n / (m + n)), frozen: ceil(ratio m)."""

    def part(self, m: int, n: int) -> Part:
        trained = n if self.form == "freeze" else m + n
        of = Adapter if self.form == "lora" else Outer
        return _form(self, of(m, n, max(1, math.ceil(self.ratio * m * n / trained - 1e-9))))

    def adapters(self) -> None:
        """Raise ValueError where this is no LoRA: B A with A random and B = 0."""
        if self != replace(self, form="lora", random=False):
            fix = f"pass LowRank({self.ratio:g}, form='lora')"
            checks.reject("decomposition", self, "adapters B A of which B starts at zero", fix)


@dataclass(frozen=True)
class Kronecker(Decomposition):
    """Block-wise Kronecker decomposition (BKD): blocks U (x) V with U, V (z x z), z as small as covers m n entries.

    Fields:
        blocks: "stacked" (public code): B = ceil(ratio^2 m n / 4) blocks, any number, read block after block.
            "square" (Sec. 3.2): k^2 of them, k = ceil(ratio sqrt(m n) / 2), in a k x k square that is read row by row.
            Frozen: twice the ratio.
    """

    blocks: str = "stacked"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("form", self.form, _FORMS[:3])
        checks.choice("blocks", self.blocks, ("stacked", "square"))

    def part(self, m: int, n: int) -> Part:
        share = self.ratio * (2 if self.form == "freeze" else 1)
        wanted = max(share**2 * m * n / 4, 1e-300)  # 2 B z^2 = ratio m n; at least one block, also where it underflows
        p, q = (math.ceil(wanted), 1) if self.blocks == "stacked" else (math.ceil(math.sqrt(wanted)),) * 2
        z = next(z for z in count(1) if p * q * z**4 >= m * n)  # ceil((m n / B)^(1/4)), without rounding
        return _form(self, KroneckerBlocks(m * n, p, q, z))


@dataclass(frozen=True)
class Hadamard(Decomposition):
    """FedPara's W1 o W2 (Hyeon-Woo et al. 2022, arXiv:2108.06098). It is not linear in either half: one form only.

    Proposition 1: W1 = X1 Y1^T and W2 = X2 Y2^T have rank r = ceil(ratio m n / (2 (m + n))), their product up to r^2.

    Fields:
        tensor: True takes Proposition 3 for convolutions, which needs `kernel`. W1 and W2 are Tucker products of X
            (c_out x R), Y (c_in x R) and T (R x R x k x k). R is the smallest that trains ratio c_out c_in k^2.

    Raises ValueError also for tensor=True without a kernel.
    """

    tensor: bool = later(False, shown=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("form", self.form, ("product",))
        checks.instance("tensor", self.tensor, bool, "pass True or False")
        if self.tensor and self.kernel is None:
            checks.reject("tensor", True, "False where no kernel is given", "pass kernel=3, the convolutions' size")

    def part(self, m: int, n: int) -> Part:
        return Elementwise(Outer(m, n, max(1, math.ceil(self.ratio * m * n / (2 * (m + n)) - 1e-9))), self.random)

    def convolution(self, c_out: int, c_in: int, k: int) -> Part:
        if not self.tensor:
            return super().convolution(c_out, c_in, k)
        wanted = self.ratio * c_out * c_in * k * k
        R = next(R for R in count(1) if 2 * R * (c_out + c_in + R * k * k) >= wanted)
        return Elementwise(Tucker(c_out, c_in, k, R), self.random)


@dataclass(frozen=True)
class Full(Decomposition):
    """No decomposition: every layer stays whole, and FedMUD with s = 1 is FedAvg."""

    ratio: float = 1.0

    def compressed(self, layout: Layout) -> list[int]:
        return []

    def part(self, m: int, n: int) -> Part:
        return Whole(m * n)


def _form(how: Decomposition, of: Bilinear) -> Part:
    return {"product": Product, "lora": Product, "aad": Decoupled, "freeze": Frozen}[how.form](of, how.random)
