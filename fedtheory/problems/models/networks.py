"""The papers' networks, as functions of one flat vector.

A network is a list of operations. Each knows the layers it owns in the flat vector and takes them, in that order, from
an iterator, so that a caller may hand out views of a vector, or make each layer only when it is needed (zeroth-order
methods perturb that way without a second model).

Weights lead with an axis of weight sets, (G, size of the layer); images lead with (G, b, channels, height, width):
G = S stacked clients, each with its own weights, or G = 1, one model on one batch. Images from `Network.blocked` and
what becomes of them have no axis G: they are one model's, and lie as oneDNN wants them until they are flattened.

A weight matrix is stored as PyTorch stores it: linear (out, in), convolution (out, in, k, k), row-major. Seen through
`Layout`, which stacks columns, the matrix W_l of a linear layer is (in, out) and that of a convolution (in k, out k),
or another of `VIEWS`: the rows are what a basis compresses, the numbers stay where they are.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import torch
from torch.nn import functional
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout

Params = Iterator[torch.Tensor]
Moments = tuple[torch.Tensor, torch.Tensor]  # mean and variance of each channel


class Groups(list[Moments]):
    """Takes the moments (groups, channels) of each normalisation, where a batch is so many groups of images."""

    def __init__(self, groups: int) -> None:
        self.groups = groups


_Norms = Groups | Iterator[Moments] | None  # see `Norm`
VIEWS: dict[str, Callable[[int, int], int]] = {  # (c_in, k) -> rows of a convolution (c_out, c_in, k, k)
    "rows": lambda c_in, k: c_in * k,  # FedMUD: (c_out k, c_in k) transposed
    "width": lambda c_in, k: k,  # the kernel's width: 7 -> 3 in FedSub's public code
    "filter": lambda c_in, k: c_in * k * k,  # one column per output channel
}
KINDS = ("conv", "linear", "bias", "scale", "shift")


def _merged(h: torch.Tensor) -> torch.Tensor:
    """(G, b, channels, ...) -> (b, G channels, ...): what is done to each channel is one call for all groups."""
    return h.transpose(0, 1).flatten(1, 2)


def _parted(h: torch.Tensor, groups: int) -> torch.Tensor:
    """`_merged` undone."""
    return h.unflatten(1, (groups, h.shape[1] // groups)).transpose(0, 1)


class Op(ABC):
    """One operation of a network.

    `native`: it takes images in any layout in memory.
    """

    native: bool = True

    def layers(self, view: str) -> list[Layer]:
        """The layers that it owns, in the order in which `forward` takes them; their names are made unique later."""
        return []

    def init(self, g: torch.Generator) -> list[torch.Tensor]:
        """Initial values of the layers, float64, flat."""
        return []

    @abstractmethod
    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        """(G, b, ...) -> (G, b, ...)."""


def _uniform(g: torch.Generator, fan_in: int, *sizes: int) -> list[torch.Tensor]:
    """U(-1/sqrt(fan_in), 1/sqrt(fan_in)), PyTorch's default for weights and biases."""
    bound = 1 / math.sqrt(fan_in)
    return [bound * (2 * torch.rand(size, generator=g, dtype=torch.float64) - 1) for size in sizes]


@cache
def wide() -> bool:
    """Whether convolutions take bfloat16's numbers through float32's products.

    That is 0.74 of the time on x86 without products of bfloat16, and twice the time with AVX512_BF16's.
    """
    known = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    own = any(getattr(torch.cpu, name, lambda: False)() for name in known)
    return torch.backends.cpu.get_cpu_capability().startswith("AVX") and not own


@dataclass(frozen=True)
class Conv(Op):
    """Convolution with square kernel k."""

    c_in: int
    c_out: int
    k: int
    pad: int = 0
    stride: int = 1
    bias: bool = True

    def layers(self, view: str) -> list[Layer]:
        rows, size = VIEWS[view](self.c_in, self.k), self.c_out * self.c_in * self.k**2
        return [Layer("conv", rows, size // rows)] + [Layer("bias", self.c_out, 1)] * self.bias

    def init(self, g: torch.Generator) -> list[torch.Tensor]:
        fan_in = self.c_in * self.k**2
        return _uniform(g, fan_in, self.c_out * fan_in, *[self.c_out] * self.bias)

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        groups = 1 if h.is_mkldnn else len(h)
        weight = next(params).reshape(groups * self.c_out, self.c_in, self.k, self.k)
        bias = next(params).reshape(-1) if self.bias else None
        if h.is_mkldnn:
            weight, bias = weight.to(h.dtype), None if bias is None else bias.to(h.dtype)
            return torch.mkldnn_convolution(h, weight, bias, (self.pad,) * 2, (self.stride,) * 2, (1, 1), 1)
        h = h.squeeze(0) if groups == 1 else _merged(h)
        if h.is_cpu and torch.is_autocast_enabled("cpu") and wide() and not is_in_torch_dispatch_mode():
            with torch.autocast("cpu", enabled=False):
                h, weight = h.bfloat16().float(), weight.bfloat16().float()
                bias = None if bias is None else bias.bfloat16().float()
                out = functional.conv2d(h, weight, bias, self.stride, self.pad, groups=groups).bfloat16()
        else:
            out = functional.conv2d(h, weight, bias, self.stride, self.pad, groups=groups)
        return out[None] if groups == 1 else _parted(out, groups)


@dataclass(frozen=True)
class Linear(Op):
    """h W + bias."""

    n_in: int
    n_out: int
    bias: bool = True

    def layers(self, view: str) -> list[Layer]:
        return [Layer("linear", self.n_in, self.n_out)] + [Layer("bias", self.n_out, 1)] * self.bias

    def init(self, g: torch.Generator) -> list[torch.Tensor]:
        return _uniform(g, self.n_in, self.n_in * self.n_out, *[self.n_out] * self.bias)

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        weight = next(params).reshape(-1, self.n_out, self.n_in)
        if h.dim() == 2:
            return functional.linear(h, weight[0], next(params)[0] if self.bias else None)
        if not self.bias:
            return torch.bmm(weight, h.mT).mT  # this way round the gradient in W is made in the order W is stored in
        return torch.baddbmm(next(params)[..., None], weight, h.mT).mT


@dataclass(frozen=True)
class Norm(Op):
    """Batch normalisation without running averages ("static": Diao et al. 2021, arXiv:2010.01264v3, Sec. 4).

    In training a batch is normalised by its own moments, so clients carry no normalisation state and none crosses
    during training. For evaluation the moments of the final model are gathered once from the clients
    (`ImageClassification.moments`), which costs 2 scalars per channel and client and is counted there.

    `norms`: None uses the batch's moments; `Groups` uses those of each group of one model's images, and collects them;
    an iterator is used instead of them.
    """

    channels: int
    eps: float = 1e-5

    def layers(self, view: str) -> list[Layer]:
        return [Layer("scale", self.channels, 1), Layer("shift", self.channels, 1)]

    def init(self, g: torch.Generator) -> list[torch.Tensor]:
        one = torch.ones(self.channels, dtype=torch.float64)
        return [one, 0 * one]

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        scale, shift = next(params), next(params)
        if h.is_mkldnn:
            if h.numel() > self.channels:
                return functional.batch_norm(h, None, None, scale[0], shift[0], training=True, eps=self.eps)
            h = h.to_dense()[None]  # one value a channel
        if norms is None and h.shape[1] > 1:  # of one image PyTorch's backward pass takes one layout for another
            scale, shift = scale.reshape(-1), shift.reshape(-1)
            out = functional.batch_norm(_merged(h), None, None, scale, shift, training=True, eps=self.eps)
            return _parted(out, len(h))
        h = h.to(scale.dtype)  # moments are never bfloat16's
        if norms is None:
            var, mean = torch.var_mean(h, dim=(1, 3, 4), correction=0)
        elif isinstance(norms, Groups):
            if norms.groups == 1:  # nothing is differentiated then: a fifth of var_mean's time
                mean, var = (one[None] for one in torch.batch_norm_update_stats(h[0], None, None, 0.0))
            else:
                h = h[0].unflatten(0, (norms.groups, -1))
                mean = h.mean((1, 3, 4), keepdim=True)  # with `var` a quarter of var_mean's time
                var, mean = (h - mean).square_().mean((1, 3, 4)), mean.flatten(1)
            norms.append((mean, var))
        else:
            mean, var = next(norms)
        if norms is not None and len(h) == 1:
            return functional.batch_norm(h[0], mean[0], var[0], scale[0], shift[0], eps=self.eps)[None]
        gain = scale * (var + self.eps).rsqrt()
        out = h * gain[:, None, :, None, None] + (shift - mean * gain)[:, None, :, None, None]
        return out.flatten(0, 1)[None] if isinstance(norms, Groups) else out


@dataclass(frozen=True)
class ReLU(Op):
    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        return h.relu()


@dataclass(frozen=True)
class Pool(Op):
    """Maximum over 2 x 2 cells; an odd last row or column is dropped. It commutes with ReLU: put it first."""

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        if h.is_mkldnn:
            return functional.max_pool2d(h, 2, 2)
        if h.device.type != "cpu":
            return _parted(functional.max_pool2d(_merged(h), 2), len(h))
        if h.requires_grad:
            groups, h = h.shape[:2], h.flatten(0, 1)
            h = h.contiguous(memory_format=torch.channels_last)  # a round of training takes 2/3 of the time
            return functional.max_pool2d(h, 2).unflatten(0, groups)
        height, width = h.shape[-2] // 2 * 2, h.shape[-1] // 2 * 2
        h = torch.maximum(h[..., 0:height:2, :width], h[..., 1:height:2, :width])
        return torch.maximum(h[..., 0::2], h[..., 1::2])


@dataclass(frozen=True)
class Flatten(Op):
    """(G, b, channels, height, width) -> (G, b, n).

    It commutes with ReLU: put it first, so that ReLU's two arguments in the backward pass lie in memory alike.
    """

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        return h.to_dense().flatten(1) if h.is_mkldnn else h.flatten(2)


@dataclass(frozen=True)
class Mean(Op):
    """Mean over the image: (G, b, channels, height, width) -> (G, b, channels)."""

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        return h.mean((-2, -1))


@dataclass(frozen=True)
class Widen(Op):
    """The shortcut without parameters (He et al. 2016, option A): every `stride`-th pixel, new channels zero."""

    channels: int
    stride: int

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        h = h[..., :: self.stride, :: self.stride]
        return functional.pad(h, (0, 0, 0, 0, 0, self.channels - h.shape[2]))


@dataclass(frozen=True)
class Residual(Op):
    """body(h) + shortcut(h)."""

    body: tuple[Op, ...]
    shortcut: tuple[Op, ...] = ()

    def layers(self, view: str) -> list[Layer]:
        return [layer for op in (*self.body, *self.shortcut) for layer in op.layers(view)]

    def init(self, g: torch.Generator) -> list[torch.Tensor]:
        return [value for op in (*self.body, *self.shortcut) for value in op.init(g)]

    def forward(self, params: Params, h: torch.Tensor, norms: _Norms) -> torch.Tensor:
        out = h
        for op in self.body:
            out = op.forward(params, out, norms)
        for op in self.shortcut:
            h = op.forward(params, h, norms)
        return out + h


@dataclass(frozen=True)
class Network:
    """A classifier of images.

    Fields:
        name: as in `NETWORKS`.
        shape: of an image, (channels, height, width).
        classes: number of outputs.
        ops: the operations in order.
        view: of `VIEWS`: what a convolution's matrix is.
        whole: kinds of layers, of `KINDS`, that are one row, so that every basis keeps them whole (P_l = 1).
    """

    name: str
    shape: tuple[int, int, int]
    classes: int
    ops: tuple[Op, ...]
    view: str = "rows"
    whole: tuple[str, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        """The layers of the flat vector, named "<position>.<kind>"."""
        layers = [layer for op in self.ops for layer in op.layers(self.view)]
        layers = [Layer(name, 1, m * n) if name in self.whole else Layer(name, m, n) for name, m, n in layers]
        return Layout(tuple(layer._replace(name=f"{i}.{layer.name}") for i, layer in enumerate(layers)))

    @cached_property
    def sizes(self) -> list[int]:
        """Entries of each layer."""
        return [layer.rows * layer.cols for layer in self.layout.layers]

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Positions in the layout of the weight matrices (convolutions and linear maps), in order."""
        return tuple(i for i, layer in enumerate(self.layout.layers) if layer.kind in ("conv", "linear"))

    @cached_property
    def convolutional(self) -> bool:
        return any(layer.kind == "conv" for layer in self.layout.layers)

    @cached_property
    def native(self) -> bool:
        """Whether it has convolutions, and every operation takes images in any layout in memory."""
        return self.convolutional and all(op.native for op in self.ops)

    @cached_property
    def normalised(self) -> bool:
        """Whether it has batch normalisation: then an image's output hangs on its batch."""
        return any(layer.kind == "scale" for layer in self.layout.layers)

    def init(self, key: Key, std: float | None = None) -> torch.Tensor:
        """Initial weights, float64, (d,): PyTorch's default, or normal with this deviation in all weight matrices."""
        g = key.generator()
        values = [value for op in self.ops for value in op.init(g)]
        if std is not None:
            for i in self.weights:
                values[i] = std * torch.randn(self.sizes[i], generator=g, dtype=torch.float64)
        return torch.cat(values)

    def forward(self, params: Params, images: torch.Tensor, norms: _Norms = None) -> torch.Tensor:
        """Logits. Layers one by one from `params`, each (G, size); images (G, b, *shape) -> (G, b, classes)."""
        out = self.ops[-1].forward(params, self.features(params, images, norms), norms)
        return out if out.dim() == 3 else out[None]

    def features(self, params: Params, images: torch.Tensor, norms: _Norms = None) -> torch.Tensor:
        """What the head, the last operation, is given: (G, b, head.n_in). Takes all layers but the head's."""
        h = self._laid_out(images)
        for op in self.ops[:-1]:
            h = op.forward(params, h, norms)
        return h

    def _laid_out(self, images: torch.Tensor) -> torch.Tensor:
        """The same images with channels last in memory where that is faster: for one network's convolutions on the CPU.

        Evaluation takes 70 to 90% of the time then, a gradient as much if there are poolings; ResNets' would take more.
        """
        plain = images.is_mkldnn or len(images) > 1 or images.device.type != "cpu"
        if plain or not self.native:
            return images
        if torch.is_grad_enabled() and not any(isinstance(op, Pool) for op in self.ops):
            return images
        h = images[0].contiguous(memory_format=torch.channels_last)
        c, height, width = h.shape[1:]
        return h.as_strided(h.shape, (c * height * width, 1, width * c, c))[None]  # said of one channel, too

    def blocked(self, images: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """One model's images (1, b, *shape) for a gradient, in the dtype of its convolutions: as oneDNN lays them out.

        Convolutions, normalisations, ReLU and poolings then stay in oneDNN's own layout, without copies between them: a
        gradient takes 0.7 to 0.9 of the time, in bfloat16 0.5 to 0.8. Unchanged where an operation or the processor
        does not know it, and where every operation is watched, as by `running.meter`: such tensors have no storage to
        look at.
        """
        known = images.is_cpu and images.dtype == torch.float32 and len(images) == 1 and self._chain
        if not known or not torch.backends.mkldnn.is_available() or is_in_torch_dispatch_mode():
            return images
        if dtype == torch.bfloat16 and (wide() or not torch.ops.mkldnn._is_mkldnn_bf16_supported()):
            return images
        return images[0].to_mkldnn(dtype)

    @cached_property
    def _chain(self) -> bool:
        """Whether it is a chain of convolutions, normalisations, poolings, linear maps and ReLU."""
        return self.convolutional and all(isinstance(op, (Conv, Norm, Pool, ReLU, Flatten, Linear)) for op in self.ops)

    @property
    def head(self) -> Linear:
        """The last operation: every network of `NETWORKS` ends with a linear map.

        Raises ValueError for a module of the user's that does not.
        """
        head = self.ops[-1]
        if not isinstance(head, Linear):
            fix = "pass nn.Sequential(body, nn.Linear(...)), whose last part is the head"
            checks.reject("network", self.name, "a network that ends with a linear map, as this method needs", fix)
        return head

    def classify(self, x: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """The head alone: x (G, d), features (G, b, head.n_in) -> logits (G, b, classes)."""
        sizes = self.sizes[-1 - self.head.bias :]
        return self.head.forward(iter(x[..., -sum(sizes) :].split(sizes, dim=-1)), features, None)

    def logits(self, x: torch.Tensor, images: torch.Tensor, norms: _Norms = None) -> torch.Tensor:
        """x (G, d), images (G, b, *shape) -> (G, b, classes)."""
        return self.forward(iter(x.split(self.sizes, dim=-1)), images, norms)


def mlp(shape: tuple[int, int, int], classes: int, hidden: int = 64) -> Network:
    """Build a perceptron with one hidden layer."""
    ops = (Flatten(), Linear(math.prod(shape), hidden), ReLU(), Linear(hidden, classes))
    return Network("mlp", shape, classes, ops)


def _softmax(shape: tuple[int, int, int], classes: int) -> Network:
    """Softmax regression: one linear map."""
    return Network("softmax", shape, classes, (Flatten(), Linear(math.prod(shape), classes)))


def _decomfl_mnist(shape: tuple[int, int, int] = (1, 28, 28), classes: int = 10) -> Network:
    """DeComFL's "simple CNN" (28,938 parameters on 28 x 28, 10 classes); operations as in its public code."""
    c, height, width = shape
    body = (Conv(c, 16, 5, pad=2), Pool(), ReLU(), Conv(16, 32, 5, pad=2), Pool(), Flatten(), ReLU())
    return Network("decomfl-mnist", shape, classes, (*body, Linear(32 * (height // 4) * (width // 4), classes)))


def _decomfl_fashion(shape: tuple[int, int, int] = (1, 28, 28), classes: int = 62) -> Network:
    """DeComFL's "larger CNN" (1,206,590 parameters with the 62 outputs of its public code, 10 of them in use)."""
    c, height, width = shape
    body = (Conv(c, 32, 3), ReLU(), Conv(32, 64, 3), Pool(), Flatten(), ReLU())
    flat = 64 * ((height - 4) // 2) * ((width - 4) // 2)
    return Network("decomfl-fashion", shape, classes, (*body, Linear(flat, 128), ReLU(), Linear(128, classes)))


def flss_cnn(shape: tuple[int, int, int] = (3, 32, 32), classes: int = 10) -> Network:
    """FLSS's CNN, by its usual form in federated code (878,538 parameters on 3 x 32 x 32, 10 classes)."""
    c, height, width = shape
    body = (Conv(c, 32, 5), Pool(), ReLU(), Conv(32, 64, 5), Pool(), Flatten(), ReLU())
    flat = 64 * (((height - 4) // 2 - 4) // 2) * (((width - 4) // 2 - 4) // 2)
    return Network("flss-cnn", shape, classes, (*body, Linear(flat, 512), ReLU(), Linear(512, classes)))


def _block(c_in: int, c_out: int, pool: bool) -> tuple[Op, ...]:
    return (Conv(c_in, c_out, 3, pad=1, bias=False), Norm(c_out), *[Pool()] * pool, ReLU())


def _fedmud_cnn(name: str, widths: tuple[int, ...], pools: tuple[bool, ...]) -> Callable[..., Network]:
    """3 x 3 convolutions with batch normalisation and no bias, then one linear layer (FedMUD, Sec. 5.1).

    A pooling that would leave no pixel (on images smaller than the paper's) is left out.
    """

    def build(shape: tuple[int, int, int], classes: int) -> Network:
        ops: list[Op] = []
        c, height, width = shape
        for c_out, wanted in zip(widths, pools):
            pool = wanted and min(height, width) > 1
            ops += _block(c, c_out, pool)
            c, height, width = c_out, height // (1 + pool), width // (1 + pool)
        return Network(name, shape, classes, (*ops, Flatten(), Linear(c * height * width, classes, bias=False)))

    return build


def _stage(c_in: int, c_out: int, blocks: int, stride: int, project: bool, k: int = 3, narrow: int = 1) -> list[Op]:
    """Residual blocks of two k x k convolutions; narrow > 1: of one, on c_out/narrow channels, between two of 1 x 1."""
    ops: list[Op] = []
    inner, pad = c_out // narrow, k // 2
    for i in range(blocks):
        c, s = (c_in, stride) if i == 0 else (c_out, 1)
        if narrow == 1:
            body = (Conv(c, c_out, k, pad, s, bias=False), Norm(c_out), ReLU(), Conv(c_out, c_out, k, pad, bias=False))
        else:
            body = (Conv(c, inner, 1, bias=False), Norm(inner), ReLU(), Conv(inner, inner, k, pad, s, bias=False))
            body += (Norm(inner), ReLU(), Conv(inner, c_out, 1, bias=False))
        shortcut: tuple[Op, ...] = ()
        if s != 1 or c != c_out:
            shortcut = (Conv(c, c_out, 1, 0, s, bias=False), Norm(c_out)) if project else (Widen(c_out, s),)
        ops += [Residual((*body, Norm(c_out)), shortcut), ReLU()]
    return ops


def resnet18(shape: tuple[int, int, int] = (3, 32, 32), classes: int = 10) -> Network:
    """Return ResNet-18 with the 3 x 3 stem usual for small images (11,173,962 parameters with 10 classes)."""
    ops: list[Op] = [Conv(shape[0], 64, 3, 1, bias=False), Norm(64), ReLU()]
    for c_in, c_out, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        ops += _stage(c_in, c_out, 2, stride, True)
    return Network("resnet18", shape, classes, (*ops, Mean(), Linear(512, classes)))


def resnet50(shape: tuple[int, int, int] = (3, 32, 32), classes: int = 10) -> Network:
    """Return ResNet-50 (bottlenecks, the stride in their 3 x 3 convolution) with the 3 x 3 stem."""
    ops: list[Op] = [Conv(shape[0], 64, 3, 1, bias=False), Norm(64), ReLU()]
    for c_in, c_out, blocks, stride in ((64, 256, 3, 1), (256, 512, 4, 2), (512, 1024, 6, 2), (1024, 2048, 3, 2)):
        ops += _stage(c_in, c_out, blocks, stride, True, narrow=4)
    return Network("resnet50", shape, classes, (*ops, Mean(), Linear(2048, classes)))


def cifar_resnet(depth: int, k: int = 3) -> Callable[..., Network]:
    """He et al. 2016, Sec. 4.2: 6n+2 layers of 16, 32 and 64 channels, shortcuts without parameters.

    They have 3 x 3 kernels; FedSub's public code has k = 7 (name "resnet<depth>-7").
    """
    name = f"resnet{depth}" if k == 3 else f"resnet{depth}-{k}"

    def build(shape: tuple[int, int, int] = (3, 32, 32), classes: int = 10) -> Network:
        ops: list[Op] = [Conv(shape[0], 16, k, k // 2, bias=False), Norm(16), ReLU()]
        for c_in, c_out, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
            ops += _stage(c_in, c_out, (depth - 2) // 6, stride, False, k)
        return Network(name, shape, classes, (*ops, Mean(), Linear(64, classes)))

    return build


NETWORKS: dict[str, Callable[..., Network]] = {
    "mlp": mlp,
    "softmax": _softmax,
    "decomfl-mnist": _decomfl_mnist,
    "decomfl-fashion": _decomfl_fashion,
    "flss-cnn": flss_cnn,
    "fedmud-cnn4": _fedmud_cnn("fedmud-cnn4", (32, 64, 128, 256), (True,) * 4),
    "fedmud-cnn8": _fedmud_cnn("fedmud-cnn8", (32, 32, 64, 64, 128, 128, 256, 256), (False, True) * 4),
    "fedmud-cnn10": _fedmud_cnn("fedmud-cnn10", (32, 32, 64, 64, 128, 128, 256, 256, 512, 512), (False, True) * 5),
    "resnet8": cifar_resnet(8),
    "resnet8-7": cifar_resnet(8, 7),
    "resnet20": cifar_resnet(20),
    "resnet18": resnet18,
    "resnet50": resnet50,
    "resnet110": cifar_resnet(110),
    "resnet110-7": cifar_resnet(110, 7),
}


@checks.arguments
def network(
    name: str, shape: tuple[int, int, int], classes: int, view: str = "rows", whole: tuple[str, ...] = ()
) -> Network:
    """Build one of `NETWORKS` for images of this shape, its layers seen as `Network.view` and `.whole` say.

    Raises ValueError for an unknown name, view or kind, or for images too small for its poolings.
    """
    checks.choice("network", name, NETWORKS)
    for field, size in zip(("channels", "height", "width"), shape):
        checks.whole(f"shape ({field})", size, 1, 4096)
    checks.whole("classes", classes, 2, checks.MOST_PER_ROUND)
    checks.choice("view", view, VIEWS)
    for kind in whole:
        checks.choice("whole", kind, KINDS)
    built = replace(NETWORKS[name](shape, classes), view=view, whole=tuple(whole))
    channels = [layer.rows * layer.cols for layer in built.layout.layers if layer.kind == "scale"]
    moments = ((torch.zeros(1, size), torch.ones(1, size)) for size in channels)
    try:  # shapes only: of no images nothing is computed (the meta device's first use would import for 1.5 seconds)
        built.logits(torch.empty(1, built.layout.size), torch.empty(1, 0, *shape, requires_grad=True), moments)
    except (RuntimeError, ValueError):
        checks.reject("shape", shape, f"images large enough for {name}", "choose a smaller network, such as 'mlp'")
    return built
