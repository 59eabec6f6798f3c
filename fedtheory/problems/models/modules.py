"""A PyTorch module of the user's as a network of this package, with its own weights as the start.

A plain sequence of layers that the package has (`_TRANSLATED`) becomes the package's operations, with all that they
bring: written-out gradients of perceptrons, oneDNN's layout, batch normalisation without running averages. Any other
module stays what it is and is called with the weights of each client. Before anything runs, logits and gradient at
other weights than its own, on images of the user's, are compared with those of plain PyTorch; what has them not, or
hangs on more than weights and image (chance, the rest of the batch, what it remembers), is refused.
"""

import copy
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer
from fedtheory.problems import layers
from fedtheory.problems.models.networks import VIEWS, Conv, Flatten, Linear, Mean, Network, Norm, Op, Params, Pool, ReLU

KEPT = 192 * 2**10  # bytes: below, stacked clients were no slower in benchmarks/own.py
_TRIED = 3  # images of a trial pass
_MOVED = 0.05  # deviation of the trial's weights from the module's own, some of which may be zero
_ALIKE = {torch.float32: 1e-3, torch.float64: 1e-8}  # of a vector's length: far above rounding, far below what differs
_LOST = 1e-6  # of the whole gradient's length: what rounding may do to a small part of it


_Held = tuple[nn.Module, dict[str, Any], list[tuple[Any, Any]]]


class _Copy(NamedTuple):
    """A module; where its trained parameters hang, which one under which name of which part; and what its parts hold.

    Every call leaves the parts as they are here, so that no call sees another's.
    """

    module: nn.Module
    slots: list[tuple[nn.Module, str, int]]
    held: list[_Held]


@dataclass(frozen=True, eq=False)
class Module(Op):
    """A module that is called with given weights.

    Fields:
        module: parameters that require no gradient, and buffers, stay as they are.
        together: whether several clients' weights are stacked (`torch.func.vmap`); else it is called for each.
    """

    module: nn.Module
    together: bool = True
    native = False

    @cached_property
    def _trained(self) -> list[nn.Parameter]:
        return [own for own in self.module.parameters() if own.requires_grad]

    @cached_property
    def _spare(self) -> list[_Copy]:
        """Copies that share all tensors: while one is called, the weights hang on it, so each thread has its own."""
        return []

    def layers(self, view: str) -> list[Layer]:
        convolved = {id(part.weight) for part in self.module.modules() if isinstance(part, _ConvNd)}
        return [_layer(own, id(own) in convolved, view) for own in self._trained]

    def forward(self, params: Params, h: torch.Tensor, norms: object) -> torch.Tensor:
        return self.called([next(params) for _ in self._trained], h)

    def called(self, weights: Sequence[torch.Tensor], *given: Any) -> torch.Tensor:
        """The module's outputs, (S, ...), for weights that lead with S, one flat tensor a parameter.

        What is given to it, tensors or lists of them, leads with S as well.
        """
        try:
            at = self._spare.pop()
        except IndexError:  # each thread takes one
            at = self._copied()
        try:
            if len(weights[0]) == 1:
                alone = [own.reshape(like.shape) for own, like in zip(weights, self._trained, strict=True)]
                return self._called(at, alone, *_row(given, 0))[None]
            rows = [own.reshape(-1, *like.shape) for own, like in zip(weights, self._trained, strict=True)]
            if self.together:
                return torch.func.vmap(lambda weights, *given: self._called(at, weights, *given))(rows, *given)
            alone = [self._called(at, [own[g] for own in rows], *_row(given, g)) for g in range(len(rows[0]))]
            return torch.stack(alone)
        finally:
            self._spare.append(at)

    def _copied(self) -> _Copy:
        held = [*self.module.parameters(), *self.module.buffers()]
        module = copy.deepcopy(self.module, {id(one): one for one in held})
        place = {id(own): at for at, own in enumerate(self._trained)}
        slots = [
            (part, name, place[id(own)])
            for part in module.modules()
            for name, own in part._parameters.items()
            if id(own) in place
        ]
        return _Copy(module, slots, list(map(_holds, module.modules())))

    def _called(self, at: _Copy, weights: Sequence[torch.Tensor], *given: Any) -> torch.Tensor:
        """Its outputs; whatever it hangs on itself meanwhile is gone afterwards."""
        for part, name, which in at.slots:
            part._parameters[name] = weights[which]  # pyright: ignore[reportArgumentType]
        try:
            return at.module(*given)
        finally:
            for part, held, inside in at.held:
                vars(part).clear()
                vars(part).update(held)
                for one, entries in inside:
                    one.clear()
                    (one.extend if isinstance(one, list) else one.update)(entries)


def _row(given: Any, g: int) -> Any:
    """Row g of tensors, or of lists of them."""
    return [one[g] if isinstance(one, torch.Tensor) else _row(one, g) for one in given]


def _holds(part: nn.Module) -> _Held:
    """A part, its attributes, and what is in those that are dicts, lists and sets."""
    held = dict(vars(part))
    return part, held, [(one, copy.copy(one)) for one in held.values() if type(one) in (dict, list, set)]


@dataclass(frozen=True, eq=False)
class Wrapped(Network):
    """A network that starts at given weights, whatever the key.

    Fields:
        start: (d,), float64.
    """

    start: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def init(self, key: Key, std: float | None = None) -> torch.Tensor:
        return self.start.clone()


def _joined(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.cat([one.detach().flatten() for one in tensors])


def _layer(own: torch.Tensor, convolved: bool, view: str) -> Layer:
    """A parameter as a matrix, one column an output (its first dimension); of a convolution as `view` says."""
    if own.dim() < 2:
        return Layer("bias", own.numel(), 1)
    whole = view == "filter" or own.dim() != 4 or not convolved
    rows = own[0].numel() if whole else VIEWS[view](own.shape[1], own.shape[-1])
    return Layer("conv" if convolved else "linear", rows, own.numel() // rows)


# Translation.


def _conv(one: nn.Conv2d) -> Op | None:
    pairs = (one.kernel_size, one.stride, one.padding)
    square = all(isinstance(pair, tuple) and len(set(pair)) == 1 for pair in pairs)
    if not square or one.groups != 1 or one.dilation != (1, 1) or one.padding_mode != "zeros":
        return None
    k, stride, pad = (int(pair[0]) for pair in pairs)
    return Conv(one.in_channels, one.out_channels, k, pad, stride, one.bias is not None)


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


def plain(module: nn.Module) -> list[Op] | None:
    """The package's operations for a sequence of layers that it has; None for any other module."""
    if type(module) is not nn.Sequential:
        op = _TRANSLATED.get(type(module), lambda one: None)(module)
        return None if op is None or not all(own.requires_grad for own in module.parameters()) else [op]
    found: list[Op] = []
    for part in module:
        ops = plain(part)
        if ops is None:
            return None
        found += ops
    return found


def _split(module: nn.Module) -> list[Op] | None:
    """A plain sequence that ends with a linear map: its body, called, and the map."""
    if type(module) is not nn.Sequential or len(module) < 2:
        return None
    *body, last = module
    head = plain(last)
    return [Module(nn.Sequential(*body)), *head] if head and isinstance(head[-1], Linear) else None


@torch.enable_grad()
def of_module(
    module: nn.Module, images: torch.Tensor, device: torch.device, view: str = "rows", whole: tuple[str, ...] = ()
) -> Network:
    """Return a copy of a module as a classifier of images like these, (n, channels, height, width), in their dtype.

    Raises ValueError for one without weights to train, one that does not map images (b, ...) to (b, classes), and one
    whose logits or gradient are not those of its weights and of each image alone.
    """
    said = type(module).__name__
    require_readable(module, said)
    module = copied(module, "network", device, images.dtype)
    start = _joined(own for own in module.parameters() if own.requires_grad).cpu().double()
    spread = torch.linspace(0, len(images) - 1, min(_TRIED, len(images))).long()
    some = images[spread].detach().to(device)
    some = torch.cat([some, some[:1].flip(-1)])
    weights = moved(start).to(some)
    trial = _tried(module, weights, some, said)
    shape = (some.shape[1], some.shape[2], some.shape[3])
    built = lambda ops: Wrapped(said, shape, trial.logits.shape[1], tuple(ops), view, whole, start)
    ops = plain(module)
    if ops and isinstance(ops[-1], Linear) and trial.is_of(built(ops)):
        return built(ops)
    _require_steady(module, weights, some, said)
    module = layers.replaced(module, layers.Given())
    for ops in (_split(module), [Module(module)]):
        if ops and trial.is_of(built(ops)):
            alone = [replace(op, together=False) if isinstance(op, Module) else op for op in ops]
            return built(ops if stackable(module) and trial.stacks(built(ops)) else alone)
    fix = "compute it anew, without activation checkpointing and with weights read in forward alone"
    return checks.reject("network", said, "a module whose gradient is autograd's when it is called with weights", fix)


def by_size(network: Network, images: torch.Tensor, batch: int) -> Network:
    """Call modules client by client where a client's step on a CPU keeps large tensors: see `kept`."""
    if not any(isinstance(op, Module) and op.together for op in network.ops) or images.device.type != "cpu":
        return network
    some = images[:_TRIED]
    leaf = network.init(Key(0)).to(some)[None].requires_grad_()
    with torch.enable_grad():
        if kept(lambda: network.logits(leaf, some[None]).sum(), leaf) * batch < KEPT * len(some):
            return network
    ops = [replace(op, together=False) if isinstance(op, Module) else op for op in network.ops]
    return replace(network, ops=tuple(ops))


def kept(step: Callable[[], object], model: torch.Tensor) -> int:
    """Bytes of a tensor that autograd keeps of a step, on average; those of the model do not count."""
    found: dict[int, Any] = {}

    def keep(one: torch.Tensor) -> torch.Tensor:
        found[one.untyped_storage().data_ptr()] = one.untyped_storage()  # held, so that no other takes its place
        return one

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
        step()
    sizes = [of.nbytes() for at, of in found.items() if at != model.data_ptr()]
    return sum(sizes) // max(len(sizes), 1)


def stackable(module: nn.Module) -> bool:
    """`torch.func.vmap` keeps one padding row for all clients of a stack; a trial sees it only where it is hit."""
    return not any(getattr(part, "padding_idx", None) is not None for part in module.modules())


# Trials.


def copied(module: nn.Module, name: str, *where: torch.device | torch.dtype) -> nn.Module:
    """A copy on a device, in a dtype. Raises ValueError for a module that has none."""
    try:
        return copy.deepcopy(module).to(*where)  # pyright: ignore[reportCallIssue, reportArgumentType]
    except Exception as error:
        fix = "pass a fresh one, that was not called yet; torch.nn.utils.prune has remove"
        expected = f"a module that can be copied ({type(error).__name__}: {error})"
        return checks.reject(name, type(module).__name__, expected, fix)


def require_readable(module: nn.Module, said: str, name: str = "network") -> None:
    """It is made of parts that can be called with other weights. Raises ValueError."""
    owns, parts = [*module.parameters(), *module.buffers()], list(module.modules())
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooked = any(getattr(part, name) for part in parts for name in hooks) or any(own._backward_hooks for own in owns)
    inside = [one for part in parts for value in vars(part).values() for one in _within(value)]
    known = set(map(id, [*owns, *parts]))
    wrappers = (torch.jit.ScriptModule, nn.DataParallel, nn.parallel.DistributedDataParallel)
    for wrong, expected, fix in (
        (isinstance(module, wrappers), "a module as it was written", "pass the one inside: module.module"),
        (any(map(is_lazy, owns)), "a module that knows its shapes", "call module(images[:1]) first"),
        (any(own.is_complex() for own in owns), "a module of real weights", "use torch.view_as_real in forward"),
        (
            not any(True for _ in module.parameters()),
            "a module with parameters",
            "put a layer such as nn.Linear behind it",
        ),
        (
            not any(own.requires_grad for own in module.parameters()),
            "a module with parameters that require a gradient",
            "call module.requires_grad_()",
        ),
        (
            any(isinstance(one, (nn.Module, nn.Parameter)) and id(one) not in known for one in inside),
            "a module that names its parts",
            "keep them in nn.ModuleList, nn.ModuleDict or nn.ParameterList",
        ),
        (
            any(isinstance(part, nn.modules.instancenorm._InstanceNorm) and part.track_running_stats for part in parts),
            "instance normalisation without running statistics",
            "pass track_running_stats=False",
        ),
        (hooked, "a module without hooks", "write them into forward; weight_norm is in nn.utils.parametrizations"),
        (
            any("forward" in vars(part) for part in parts),
            "a module whose forward is its class's",
            "write the other forward into a class",
        ),
    ):
        if wrong:
            checks.reject(name, said, expected, fix)


def _within(value: Any) -> list[Any]:
    """What is in a dict, list or tuple, and in those in it."""
    inside, rest, seen = [], [value], set()
    while rest:
        one = rest.pop()
        if isinstance(one, (dict, list, tuple)) and id(one) not in seen:
            seen.add(id(one))
            inside += (parts := list(one.values() if isinstance(one, dict) else one))
            rest += parts
    return inside


class _Trial(NamedTuple):
    """What plain PyTorch finds: logits (b, classes) at some weights (d,), and the gradient of their cross-entropy."""

    weights: torch.Tensor
    images: torch.Tensor
    logits: torch.Tensor
    slope: torch.Tensor

    def is_of(self, network: Wrapped) -> bool:
        """Whether the network has both, having been called at its start before: it must not remember that."""
        try:
            network.logits(network.start.to(self.weights)[None], self.images[None])
            logits, slopes = _found(network, self.weights[None], self.images[None])
        except Exception:  # whatever a module does when it is called with weights
            return False
        return alike(logits[0], self.logits) and self._alike_in_parts(network, slopes[0], self.slope)

    def stacks(self, network: Wrapped) -> bool:
        """Whether two stacked clients have each their own logits and gradient, and nothing is warned of."""
        rows = torch.stack([self.weights, network.start.to(self.weights)])
        images = torch.stack([self.images, self.images.flip(0)])
        each = [_found(network, rows[j : j + 1], images[j : j + 1]) for j in range(2)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                logits, slopes = _found(network, rows, images)
                with torch.no_grad():
                    again = network.logits(rows, images)
        except Exception:
            return False
        same = alike(logits, torch.cat([own for own, _ in each])) and alike(again, logits)
        return same and all(self._alike_in_parts(network, slopes[j], each[j][1][0]) for j in range(2))

    @staticmethod
    def _alike_in_parts(network: Network, found: torch.Tensor, wanted: torch.Tensor) -> bool:
        """Of each layer, however small its gradient is beside the others'."""
        least = _LOST * float(wanted.norm())
        parts = zip(found.split(network.sizes), wanted.split(network.sizes))
        return all(alike(one, other, least) for one, other in parts)


def _found(network: Network, rows: torch.Tensor, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (G, b, classes) and the gradient (G, d) of each client's cross-entropy."""
    leaf = rows.clone().requires_grad_()
    with torch.enable_grad():
        logits = network.logits(leaf, images)
        (slopes,) = torch.autograd.grad(torch.stack(list(map(_loss, logits))).sum(), leaf)
    return logits.detach(), slopes


def _loss(logits: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device) % logits.shape[1])


def moved(start: torch.Tensor) -> torch.Tensor:
    """Weights of a trial, near the module's own."""
    g = Key(0).fold("weights").generator()
    return start + _MOVED * torch.randn(len(start), generator=g, dtype=torch.float64).to(start)


def alike(found: torch.Tensor, wanted: torch.Tensor, least: float = 0.0) -> bool:
    return bool((found - wanted).norm() <= _ALIKE[wanted.dtype] * wanted.norm() + least)


def carrying(module: nn.Module, weights: torch.Tensor) -> nn.Module:
    """A copy with these weights (d,), as plain PyTorch has them: not `Module`'s way, which is compared with it."""
    module = copy.deepcopy(module)
    with torch.no_grad():
        nn.utils.vector_to_parameters(weights.clone(), [own for own in module.parameters() if own.requires_grad])
    return module


def state_dict(module: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, on the CPU, with the vector x (d,) as the trained ones."""
    return {name: own.cpu().clone() for name, own in carrying(module, x).state_dict().items()}


@contextmanager
def chance(device: torch.device) -> Iterator[Callable[[], bool]]:
    """Whether something was drawn since; the caller's generators are left as they were."""
    card = [device] if device.type == "cuda" else []
    states = lambda: [torch.random.get_rng_state(), *map(torch.cuda.get_rng_state, card)]
    python, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002  # whichever it draws from
    with torch.random.fork_rng(card):
        before = states()

        def drawn() -> bool:
            ours = all(map(torch.equal, before, states())) and python == random.getstate()
            return not ours or any(map(np.any, map(np.not_equal, numbers, np.random.get_state())))  # noqa: NPY002

        try:
            yield drawn
        finally:
            random.setstate(python)
            np.random.set_state(numbers)  # noqa: NPY002


def _tried(module: nn.Module, weights: torch.Tensor, images: torch.Tensor, said: str) -> _Trial:
    """Logits and gradient of a copy with these weights. Raises ValueError."""
    module, given = carrying(module, weights), images.clone()
    trained = [own for own in module.parameters() if own.requires_grad]
    takes = f"a module that takes images (b, {', '.join(map(str, images.shape[1:]))}) of {images.dtype}"
    try:
        with chance(images.device) as drawn, torch.enable_grad():
            logits = module(given)
            random_ = drawn()
    except Exception as error:
        fix = f"look at what it says: {type(error).__name__}: {error}"
        checks.reject("network", said, takes, fix)
    found = (tuple(logits.shape), logits.dtype) if isinstance(logits, torch.Tensor) else type(logits).__name__
    flat = isinstance(logits, torch.Tensor) and logits.dim() == 2 and logits.is_floating_point()
    if isinstance(logits, torch.Tensor) and logits.layout != torch.strided:
        fix = "end its forward with .to_dense()"
        checks.reject(f"the output of {said}", logits.layout, "logits that are a dense tensor", fix)
    if not flat or len(logits) != len(images) or logits.shape[1] < 2:
        expected = f"logits ({len(images)}, classes) of {len(images)} images"
        checks.reject(f"the output of {said}", found, expected, "end it with a linear map to the classes, flattened")
    if random_:
        fix = "pass it to Supervised, which draws nn.Dropout's masks by its keys, or call module.eval() first"
        checks.reject("network", said, "a module without chance", fix)
    if not torch.equal(given, images):
        checks.reject(
            "network", said, "a module that leaves the images alone", "take inplace=True out of its beginning"
        )
    if not torch.equal(_joined(trained), weights):
        fix = "bound or normalise the weights where they are used, not in their place"
        checks.reject("network", said, "a module whose forward leaves its weights alone", fix)
    if not bool(logits.isfinite().all()):
        fix = "look at its logits on images[:3], at weights a twentieth off its own"
        checks.reject(f"the output of {said}", logits.tolist(), "finite logits", fix)
    try:
        slopes = torch.autograd.grad(_loss(logits), trained, allow_unused=True)
        slope = _joined(torch.zeros_like(own) if slope is None else slope for own, slope in zip(trained, slopes))
    except Exception as error:
        fix = "take torch.no_grad out of forward, and sparse=True"
        checks.reject("network", said, f"a module with a gradient ({type(error).__name__}: {error})", fix)
    return _Trial(weights, images, logits.detach().to(images.dtype), slope)


def buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    """Copies of its dense buffers, by name."""
    return {name: own.clone() for name, own in module.named_buffers() if own.layout == torch.strided}


def changed(module: nn.Module, held: dict[str, torch.Tensor]) -> list[str]:
    """Names of the dense buffers that are other than `held`."""
    kept = lambda name, own: name in held and torch.allclose(own, held[name], 0, 0, True)
    return [name for name, own in buffers(module).items() if not kept(name, own)]


@torch.no_grad()
def _require_steady(module: nn.Module, weights: torch.Tensor, images: torch.Tensor, said: str) -> None:
    """An image's logits hang on it and on the weights alone. Raises ValueError."""
    module = carrying(module, weights)
    held = buffers(module)
    first = module(images).to(images.dtype)
    if names := changed(module, held):
        fix = "call module.eval() first, which normalises by the averages it has, or normalise by groups"
        checks.reject("network", said, f"a module whose buffers stay as they are ({names[0]} does not)", fix)
    if not alike(module(images).to(images.dtype), first):
        checks.reject("network", said, "a module that gives the same output twice", "let it remember nothing")
    try:
        alone = torch.cat([module(images[i : i + 1]) for i in range(len(images))]).to(images.dtype)
    except Exception:  # such as that of batch normalisation, of one value
        alone = torch.full_like(first, torch.inf)
    if not alike(alone, first):
        fix = "normalise by groups or layers (nn.GroupNorm) or in eval() mode; recurrent layers: batch_first=True"
        checks.reject("network", said, "a module that sees each image of a batch by itself", fix)
