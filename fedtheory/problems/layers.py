"""Layers that act differently in training, as functions of what comes from outside: dropout and batch normalisation."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from fedtheory.core.key import Key

Loss = Callable[[Any, Any], torch.Tensor]  # outputs (b, ...), targets (b, ...) -> their mean loss, a scalar
NORMS = ("moments", "shared", "local")
_DROPOUTS = {nn.Dropout: None, nn.Dropout1d: 1, nn.Dropout2d: 2, nn.Dropout3d: 3}  # -> trailing axes dropped together
STATISTICS = ("running_mean", "running_var")


class _Given:
    """What the layers of one copy of a module are handed, and what they note down."""

    def __init__(self) -> None:
        self.masks: Iterator[torch.Tensor] | None = None
        self.shapes: list[tuple[torch.Size, float]] | None = None  # of masks, where they are noted
        self.moments: Iterator[torch.Tensor] | None = None  # of evaluation
        self.seen: list[torch.Tensor] | None = None  # moments, where they are noted
        self.pulls: list[torch.Tensor] = []  # of running statistics towards a batch's


class _Dropout(nn.Module):
    """Dropout by masks that come from outside."""

    def __init__(self, given: _Given, p: float, axes: int | None) -> None:
        super().__init__()
        self.given, self.p, self.axes = given, p, axes

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        if not (self.training and self.p):
            return h
        given, whole = self.given, self.axes or 0
        if given.shapes is not None:
            given.shapes.append((torch.Size([*h.shape[: h.dim() - whole], *[1] * whole]), self.p))
        return h if given.masks is None else h * next(given.masks)


class _Norm(nn.Module):
    """Batch normalisation: by the batch's moments where it trains, else by running statistics or moments given.

    Running statistics are parameters. A term of the loss, half their squared distance from the batch's moments, moves
    them: a gradient step of size lr is a moving average with momentum lr.
    """

    def __init__(self, like: Any, given: _Given, running: bool) -> None:
        super().__init__()
        self.given, self.eps, self.running, self.channels = given, like.eps, running, like.num_features
        self.weight, self.bias = like.weight, like.bias
        for name, own in like.named_buffers():  # an export has them
            self.register_buffer(name, own)
        for name, start in zip(STATISTICS, (0.0, 1.0)) if running else ():
            own = getattr(like, name)
            own = torch.full_like(like.weight, start) if own is None else own  # PyTorch has none of neither
            vars(self)["_buffers"].pop(name, None)
            setattr(self, name, nn.Parameter(own.detach().clone()))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        given = self.given
        if not self.training:
            if self.running:
                mean, var = self.running_mean, self.running_var.clamp(min=0)
            else:
                mean, var = next(given.moments)  # type: ignore[arg-type]  # given wherever there are such layers
            return functional.batch_norm(h, mean, var, self.weight, self.bias, False, eps=self.eps)
        many = h.numel() > h.shape[1]  # values a channel
        if given.seen is not None or (self.running and many):
            with torch.no_grad():
                axes = [axis for axis in range(h.dim()) if axis != 1]
                var, mean = torch.var_mean(h, axes, correction=int(self.running))
            if given.seen is not None:
                given.seen.append(torch.stack([mean, var]))
            else:
                away = ((self.running_mean - mean) ** 2).sum() + ((self.running_var - var) ** 2).sum()
                given.pulls.append(away / 2)
        if many:
            return functional.batch_norm(h, None, None, self.weight, self.bias, True, eps=self.eps)
        shape = (1, -1, *[1] * (h.dim() - 2))
        return h * 0 if self.bias is None else h * 0 + self.bias.view(shape)  # each value is its channel's mean


class Scored(nn.Module):
    """A module and its loss as one: inputs, targets, masks, moments -> the batch's loss; without targets the outputs.

    Args:
        norm: see `Supervised`; of batch normalisation in training mode.
    """

    def __init__(self, module: nn.Module, loss: Loss, norm: str) -> None:
        super().__init__()
        self.given = _Given()
        self.module, self.loss = _replaced(module, self.given, norm != "moments"), loss

    def forward(
        self,
        inputs: Any,
        targets: Any = (),
        masks: Sequence[torch.Tensor] = (),
        moments: Sequence[torch.Tensor] = (),
    ) -> torch.Tensor:
        given = self.given
        given.masks, given.moments = iter(masks) if len(masks) else None, iter(moments)
        try:
            outputs = self.module(inputs)
            return sum(given.pulls, self.loss(outputs, targets)) if isinstance(targets, torch.Tensor) else outputs
        finally:
            given.masks, given.moments, given.pulls = None, None, []

    @property
    def dropped(self) -> bool:
        """Whether a layer drops anything in training."""
        return any(isinstance(part, _Dropout) and part.training and part.p for part in self.modules())

    @property
    def norms(self) -> list[tuple[str, nn.Module]]:
        """The layers of batch normalisation that train, by name."""
        return [(name, part) for name, part in self.module.named_modules() if isinstance(part, _Norm)]

    def shapes_of_masks(self, inputs: torch.Tensor) -> list[tuple[torch.Size, float]]:
        """What is drawn for a batch of inputs (b, ...), layer by layer: shape and probability."""
        self.given.shapes = found = []
        with torch.no_grad():
            self(inputs)
        self.given.shapes = None
        return found


class Noting(nn.Module):
    """Inputs -> mean and variance (2, channels) of each layer of batch normalisation, as one vector."""

    def __init__(self, scored: Scored) -> None:
        super().__init__()
        self.scored = scored

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        given = self.scored.given
        given.seen = seen = []
        self.scored(inputs)
        given.seen = None
        return torch.cat([pair.flatten() for pair in seen])


def mask(shape: torch.Size, p: float, g: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    """Draw 0 with probability p, else 1 / (1 - p)."""
    kept = torch.rand(shape, generator=g, dtype=torch.float64) >= p
    return kept.to(dtype) / (1 - p) if p < 1 else kept.to(dtype)


def looked_at(parts: Sequence[torch.Tensor], most: int, key: Key) -> list[torch.Tensor]:
    """Draw up to `most` samples of each client, by one random number a sample."""
    luck = torch.rand(sum(map(len, parts)), generator=key.fold("moments").generator(), dtype=torch.float64)
    return [part[luck[part].argsort()[:most]] for part in parts]


def mixture(p: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Mean and variance (2, channels) of a mixture of clients, whose own are (N, 2, channels), by weights p (N,)."""
    mean = torch.tensordot(p, found[:, 0], 1)
    return torch.stack([mean, torch.tensordot(p, found[:, 1] + (found[:, 0] - mean) ** 2, 1)])


def _replaced(module: nn.Module, given: _Given, running: bool) -> nn.Module:
    if (own := _own(module, given, running)) is not None:
        return own
    for parent in list(module.modules()):
        for name, part in list(parent._modules.items()):
            if (own := _own(part, given, running)) is not None:
                parent._modules[name] = own
    return module


def _own(part: nn.Module | None, given: _Given, running: bool) -> nn.Module | None:
    if isinstance(part, nn.modules.dropout._DropoutNd) and type(part) in _DROPOUTS:
        return _Dropout(given, part.p, _DROPOUTS[type(part)]).train(part.training)
    if isinstance(part, nn.modules.batchnorm._BatchNorm) and (part.training or part.running_mean is None):
        return _Norm(part, given, running)
    return None
