"""A PyTorch module of the user's as a network of this package, with its own weights as the start.

A plain sequence of layers that the package has (`_TRANSLATED`) becomes the package's operations, with all that they
bring: written-out gradients of perceptrons, oneDNN's layout, batch normalisation without running averages. Any other
module stays what it is and is called with the weights of each client, by `torch.func.functional_call`; it must give an
image the same output whatever else is in the batch, and whenever it is asked.
"""

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, vmap

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer
from fedtheory.problems.models.networks import (
    VIEWS,
    Conv,
    Flatten,
    Linear,
    Mean,
    Network,
    Norm,
    Op,
    Params,
    Pool,
    ReLU,
)

_TRIED = 3  # images of a trial pass
_ALIKE = 1e-3  # of the outputs' length: far above float32's rounding, far below what another batch does


@dataclass(frozen=True, eq=False)
class Module(Op):
    """A module with given weights.

    Fields:
        module: parameters that require no gradient, and buffers, stay as they are.
        together: whether several clients' weights may be stacked (`torch.func.vmap`); else it is called for each.
    """

    module: nn.Module
    together: bool = True

    @cached_property
    def _trained(self) -> dict[str, nn.Parameter]:
        return {name: own for name, own in self.module.named_parameters() if own.requires_grad}

    def layers(self, view: str) -> list[Layer]:
        return [_layer(own, view) for own in self._trained.values()]

    def init(self, g: torch.Generator) -> list[torch.Tensor]:
        return [_flat(own) for own in self._trained.values()]

    def forward(self, params: Params, h: torch.Tensor, norms: object) -> torch.Tensor:
        weights = {name: next(params).reshape(-1, *own.shape) for name, own in self._trained.items()}
        module = self._mine()
        of = lambda own, images: functional_call(module, own, (images,))
        if self.together and len(h) > 1:
            return vmap(of)(weights, h)
        return torch.stack([of({name: each[g] for name, each in weights.items()}, h[g]) for g in range(len(h))])

    def _mine(self) -> nn.Module:
        """This thread's: while it is called, the weights hang on the module itself."""
        if threading.current_thread() is threading.main_thread():
            return self.module
        held = [*self.module.parameters(), *self.module.buffers()]
        return copy.deepcopy(self.module, {id(one): one for one in held})


@dataclass(frozen=True, eq=False)
class Wrapped(Network):
    """A network that starts at given weights.

    Fields:
        start: (d,), float64.
    """

    start: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def init(self, key: Key, std: float | None = None) -> torch.Tensor:
        """The module's own weights; with a deviation the weight matrices are drawn."""
        if std is None:
            return self.start.clone()
        drawn = super().init(key, std).split(self.sizes)
        return torch.cat([drawn[j] if j in self.weights else own for j, own in enumerate(self.start.split(self.sizes))])


def _flat(own: torch.Tensor) -> torch.Tensor:
    return own.detach().cpu().double().flatten()


def _layer(own: torch.Tensor, view: str) -> Layer:
    """A parameter by its shape: (out, in) is a linear map's, (out, in, ...) a convolution's, all else a vector."""
    if own.dim() < 2:
        return Layer("bias", own.numel(), 1)
    if own.dim() == 2:
        return Layer("linear", own.shape[1], own.shape[0])
    rows = VIEWS[view](own.shape[1], own.shape[-1]) if own.dim() == 4 else own[0].numel()
    return Layer("conv", rows, own.numel() // rows)


def _conv(one: nn.Conv2d) -> Op | None:
    square = all(len(set(pair)) == 1 for pair in (one.kernel_size, one.stride, one.padding) if isinstance(pair, tuple))
    plain = one.groups == 1 and one.dilation == (1, 1) and one.padding_mode == "zeros"
    if not (square and plain) or isinstance(one.padding, str):
        return None
    pad, stride = one.padding[0], one.stride[0]
    return Conv(one.in_channels, one.out_channels, one.kernel_size[0], pad, stride, one.bias is not None)


def _pool(one: nn.MaxPool2d) -> Op | None:
    wanted = {"kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1}
    same = all(getattr(one, name) in (value, (value, value)) for name, value in wanted.items())
    return Pool() if same and not one.ceil_mode and not one.return_indices else None


_TRANSLATED: dict[type, Callable[[Any], Op | None]] = {
    nn.Conv2d: _conv,
    nn.Linear: lambda one: Linear(one.in_features, one.out_features, one.bias is not None),
    nn.BatchNorm2d: lambda one: Norm(one.num_features, one.eps) if one.affine and one.training else None,
    nn.ReLU: lambda one: ReLU(),
    nn.MaxPool2d: _pool,
    nn.AdaptiveAvgPool2d: lambda one: Mean() if one.output_size in (1, (1, 1)) else None,
    nn.Flatten: lambda one: Flatten() if (one.start_dim, one.end_dim) == (1, -1) else None,
}


def _plain(module: nn.Module) -> list[Op] | None:
    """The package's operations for a sequence of layers that it has; None for any other module."""
    if type(module) is not nn.Sequential:
        op = _TRANSLATED.get(type(module), lambda one: None)(module)
        hooked = module._forward_hooks or module._forward_pre_hooks
        return None if op is None or hooked or not all(own.requires_grad for own in module.parameters()) else [op]
    found: list[Op] = []
    for part in module:
        ops = _plain(part)
        if ops is None:
            return None
        found += ops
    return found


def of_module(
    module: nn.Module,
    shape: tuple[int, int, int],
    dtype: torch.dtype,
    device: torch.device,
    view: str = "rows",
    whole: tuple[str, ...] = (),
) -> Network:
    """A copy of a module as a classifier of images of this shape, (channels, height, width).

    Raises ValueError for one without weights to train, one that does not map images (b, *shape) to (b, classes), and
    one whose output is random, hangs on the other images of the batch, or changes what it holds.
    """
    said = type(module).__name__
    if not any(own.requires_grad for own in module.parameters()):
        checks.reject("network", said, "a module with parameters that require a gradient", "set requires_grad=True")
    module = copy.deepcopy(module).to(device, dtype)
    images = torch.randn(_TRIED, *shape, generator=Key(0).fold("images").generator(), dtype=dtype).to(device)
    classes = _classes(module, images, said)
    start = torch.cat([_flat(own) for own in module.parameters() if own.requires_grad])
    built = lambda ops: Wrapped(said, shape, classes, tuple(ops), view, whole, start)
    ops = _plain(module)
    if ops and isinstance(ops[-1], Linear) and _same(built(ops), module, images):
        return built(ops)
    _require_steady(module, images, said)
    body, head = module, []
    if isinstance(module, nn.Sequential) and len(module) > 1 and not _tied(module):
        last = _plain(module[-1])
        if last and isinstance(last[0], Linear) and any(own.requires_grad for own in module[:-1].parameters()):
            body, head = module[:-1], last
    return built([Module(body, _stacks(body, images)), *head])


def _tied(module: nn.Module) -> bool:
    """Whether two of its names are one parameter."""
    return len(list(module.named_parameters(remove_duplicate=False))) > len(list(module.parameters()))


@torch.no_grad()
def _same(network: Network, module: nn.Module, images: torch.Tensor) -> bool:
    """Whether the package's operations give what the module gives."""
    try:
        ours = network.logits(network.init(Key(0)).to(images)[None], images[None])[0]
    except (RuntimeError, IndexError, StopIteration):
        return False
    return bool((ours - module(images)).norm() <= _ALIKE * ours.norm())


@torch.no_grad()
def _classes(module: nn.Module, images: torch.Tensor, said: str) -> int:
    """The number of classes, from a trial pass."""
    try:
        with torch.random.fork_rng():
            out = module(images)
    except Exception as error:
        takes = f"a module that takes images (b, {', '.join(map(str, images.shape[1:]))}) of {images.dtype}"
        fix = f"look at what it says: {type(error).__name__}: {error}"
        checks.reject("network", said, takes, fix)
    found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
    if not isinstance(out, torch.Tensor) or out.dim() != 2 or len(out) != len(images) or out.shape[1] < 2:
        expected = f"logits ({len(images)}, classes) of {len(images)} images"
        checks.reject(f"the output of {said}", found, expected, "end it with a linear map to the classes, flattened")
    return out.shape[1]


@torch.no_grad()
def _require_steady(module: nn.Module, images: torch.Tensor, said: str) -> None:
    """An image's output hangs on it and on the weights alone. Raises ValueError."""
    held = {name: own.clone() for name, own in module.named_buffers()}
    with torch.random.fork_rng():
        first, again = module(images), module(images)
        if not torch.equal(first, again):
            fix = "take dropout out, or call module.eval() first; a run's draws come from its keys alone"
            checks.reject("network", said, "a module that gives the same output twice", fix)
        if any(not torch.equal(own, held[name]) for name, own in module.named_buffers()):
            fix = "call module.eval() first, which normalises by the averages it has, or normalise by groups"
            checks.reject("network", said, "a module whose buffers stay as they are", fix)
        try:
            alone = torch.cat([module(images[i : i + 1]) for i in range(len(images))])
        except Exception:
            alone = torch.full_like(first, torch.inf)
    if not bool((alone - first).norm() <= _ALIKE * first.norm()):
        fix = (
            "normalise by groups or layers (nn.GroupNorm), or write it as nn.Sequential of layers that networks.py has"
        )
        checks.reject("network", said, "a module that sees each image of a batch by itself", fix)


@torch.no_grad()
def _stacks(module: nn.Module, images: torch.Tensor) -> bool:
    """Whether `torch.func.vmap` takes it."""
    weights = [torch.stack([own, own]).to(images) for own in Module(module).init(torch.Generator())]
    try:
        Module(module).forward(iter(weights), torch.stack([images, images]), None)
    except Exception:  # whatever a module does there: it is called for each then
        return False
    return True
