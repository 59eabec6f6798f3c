"""Layers that act differently in training, as functions of what they are given: dropout, attention, normalisation."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from fedtheory.core.key import Key

Loss = Callable[[Any, Any], torch.Tensor]  # outputs (b, ...), targets (b, ...) -> their mean loss, a scalar
NORMS = ("moments", "shared", "local")
_DROPOUTS = {nn.Dropout: 0, nn.Dropout1d: 1, nn.Dropout2d: 2, nn.Dropout3d: 3}  # -> trailing axes dropped together
STATISTICS = ("running_mean", "running_var")
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Given:
    """What the layers of one copy of a module are handed, and what they note down."""

    def __init__(self) -> None:
        self.masks: Iterator[torch.Tensor] | None = None
        self.shapes: list[tuple[torch.Size, float]] | None = None  # of masks, where they are noted
        self.moments: Sequence[torch.Tensor] = ()  # of evaluation, by the layer's place
        self.seen: list[tuple[int, torch.Tensor]] | None = None  # places and moments, where they are noted
        self.groups = 1  # of a batch: so many clients' samples, each with moments of its own
        self.pulls: list[torch.Tensor] = []  # of running statistics towards a batch's

    def dropped(self, h: torch.Tensor, p: float, whole: int = 0) -> torch.Tensor:
        """Dropout by the next mask, where masks are given; so many trailing axes are dropped together."""
        if self.shapes is not None:
            self.shapes.append((torch.Size([*h.shape[: h.dim() - whole], *[1] * whole]), p))
        return h if self.masks is None else h * next(self.masks)


class _Dropout(nn.Module):
    """Dropout by masks that come from outside."""

    def __init__(self, given: Given, p: float, whole: int) -> None:
        super().__init__()
        self.given, self.p, self.whole = given, p, whole

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.given.dropped(h, self.p, self.whole) if self.training and self.p else h


class _Attention(nn.MultiheadAttention):
    """PyTorch's attention in operations that can be stacked; its weights are dropped by masks from outside."""

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        parts = (query, key, value) if self.batch_first else [part.transpose(0, 1) for part in (query, key, value)]
        if query is key is value:
            mapped = functional.linear(parts[0], self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
            mapped = map(functional.linear, parts, self.in_proj_weight.chunk(3), biases)
        q, k, v = (h.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for h in mapped)
        scores = q @ k.mT / self.head_dim**0.5  # (b, heads, n, m)
        if attn_mask is not None:
            scores = _masked(scores, attn_mask if attn_mask.dim() == 2 else attn_mask.view_as(scores))
        if key_padding_mask is not None:
            scores = _masked(scores, key_padding_mask[:, None, None])
        weights = scores.softmax(-1)
        if self.dropout:
            weights = vars(self)["given"].dropped(weights, self.dropout)
        out = self.out_proj((weights @ v).transpose(1, 2).flatten(2))
        seen = None if not need_weights else weights.mean(1) if average_attn_weights else weights
        return out if self.batch_first else out.transpose(0, 1), seen


class _GRU(nn.GRU):
    """PyTorch's GRU in operations that can be stacked."""

    def forward(self, input: Any, hx: torch.Tensor | None = None) -> tuple[Any, torch.Tensor]:
        if not isinstance(input, torch.Tensor) or input.dim() != 3:
            return super().forward(input, hx)
        steps, n, last = input.unbind(1 if self.batch_first else 0), self.hidden_size, []
        for layer in range(self.num_layers):

            def own(name: str, layer: int = layer) -> Any:
                return getattr(self, f"{name}_l{layer}", None)

            h = steps[0].new_zeros(len(steps[0]), n) if hx is None else hx[layer]
            seen = functional.linear(torch.stack(steps), own("weight_ih"), own("bias_ih"))
            steps = []
            for x in seen.unbind():
                past = functional.linear(h, own("weight_hh"), own("bias_hh"))
                r, z = (x[..., : 2 * n] + past[..., : 2 * n]).sigmoid().chunk(2, -1)
                new = torch.addcmul(x[..., 2 * n :], r, past[..., 2 * n :]).tanh()
                h = torch.lerp(new, h, z)
                steps.append(h)
            last.append(h)
        return torch.stack(steps, 1 if self.batch_first else 0), torch.stack(last)


def _masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else scores + mask


class Norm(nn.Module):
    """Batch normalisation: by the batch's moments where it trains, else by running statistics or moments given.

    Running statistics are parameters. A term of the loss, half their squared distance from the batch's moments, moves
    them: a gradient step of size lr is a moving average with momentum lr.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor
    place: int  # among the module's layers of batch normalisation, in the order of their names

    def __init__(self, like: Any, given: Given, running: bool) -> None:
        super().__init__()
        self.given, self.eps, self.running, self.channels = given, like.eps, running, like.num_features
        self.weight, self.bias = like.weight, like.bias
        for name, own in like.named_buffers():  # an export has them
            self.register_buffer(name, own)
        for name, start in zip(STATISTICS, (0.0, 1.0)) if running else ():
            own = getattr(like, name)
            blank = torch.empty(like.num_features) if like.weight is None else like.weight
            own = torch.full_like(blank, start) if own is None else own
            vars(self)["_buffers"].pop(name, None)
            setattr(self, name, nn.Parameter(own.detach().clone()))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        given = self.given
        if not self.training:
            if self.running:
                mean, var = self.running_mean, self.running_var.clamp(min=0)
            else:
                mean, var = given.moments[self.place]
            return functional.batch_norm(h, mean, var, self.weight, self.bias, False, eps=self.eps)
        if given.seen is not None:
            own = h.unflatten(0, (given.groups, -1))
            axes = [axis for axis in range(own.dim()) if axis not in (0, 2)]
            var, mean = torch.var_mean(own, axes, correction=0, keepdim=True)
            given.seen.append((self.place, torch.stack([mean, var]).flatten(2)))
            shape = (1, 1, -1, *[1] * (h.dim() - 2))
            out = (own - mean) * (var + self.eps).rsqrt()
            out = out if self.weight is None else torch.addcmul(self.bias.view(shape), out, self.weight.view(shape))
            return out.flatten(0, 1)
        many = h.numel() > h.shape[1]  # values a channel
        if self.running and many:
            with torch.no_grad():
                axes = [axis for axis in range(h.dim()) if axis != 1]
                var, mean = torch.var_mean(h, axes)
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
        self.given = Given()
        weights = list(module.parameters())
        self.module, self.loss = replaced(module, self.given, norm != "moments"), loss
        for place, (_, part) in enumerate(self.norms):
            part.place = place
            if part.running and part.weight is None and weights:  # then nothing tells what its statistics are of
                part.to(weights[0])

    def forward(
        self,
        inputs: Any,
        targets: Any = (),
        masks: Sequence[torch.Tensor] = (),
        moments: Sequence[torch.Tensor] = (),
    ) -> torch.Tensor:
        given = self.given
        given.masks, given.moments = iter(masks) if len(masks) else None, moments
        try:
            outputs = self.module(inputs)
            return sum(given.pulls, self.loss(outputs, targets)) if isinstance(targets, torch.Tensor) else outputs
        finally:
            given.masks, given.moments, given.pulls = None, (), []

    @property
    def dropped(self) -> bool:
        """Whether a layer drops anything in training."""
        drops = lambda part: (isinstance(part, _Attention) and part.dropout) or (isinstance(part, _Dropout) and part.p)
        return any(drops(part) and part.training for part in self.modules())

    @property
    def norms(self) -> list[tuple[str, Norm]]:
        """The layers of batch normalisation that train, by name."""
        return [(name, part) for name, part in self.module.named_modules() if isinstance(part, Norm)]

    def shapes_of_masks(self, inputs: torch.Tensor) -> list[tuple[torch.Size, float]]:
        """What is drawn for a batch of inputs (b, ...), layer by layer: shape and probability."""
        own = self.apart()
        own.given.shapes = found = []
        with torch.no_grad():
            own(inputs)
        return found

    def apart(self) -> "Scored":
        """A copy with the same tensors, for one thread."""
        return copy.deepcopy(self, {id(one): one for one in (*self.parameters(), *self.buffers())})

    def noted(self, inputs: torch.Tensor, groups: int = 1) -> list[tuple[int, torch.Tensor]]:
        """Each layer of batch normalisation as it runs: its place, means and variances (2, groups, channels).

        Args:
            inputs: of a batch (b, ...), whose groups of equal size have moments of their own.
        """
        self.given.seen, self.given.groups = (seen := []), groups
        try:
            self(inputs)
        finally:
            self.given.seen = None
        return seen


class Noting(nn.Module):
    """Inputs of m clients (m, b, ...) -> mean and variance of each layer of batch normalisation, (m, 2 channels).

    Args:
        together: whether one pass takes all clients: only where a layer's rows are in the order of the samples.
    """

    def __init__(self, scored: Scored, together: bool) -> None:
        super().__init__()
        self.scored, self.together = scored, together

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        passes = [(inputs.flatten(0, 1), len(inputs))] if self.together else [(one, 1) for one in inputs]
        found = [sorted(dict(self.scored.noted(*one)).items()) for one in passes]
        return torch.cat([torch.cat([pair.transpose(0, 1).flatten(1) for _, pair in seen], 1) for seen in found])


def mask(shape: torch.Size, p: float, g: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    """Draw 0 with probability p, else 1 / (1 - p)."""
    kept = torch.rand(shape, generator=g, dtype=torch.float64) >= p
    return kept.to(dtype).div_(1 - p) if p < 1 else kept.to(dtype)


def luck(count: int, key: Key) -> torch.Tensor:
    """Draw a number for each sample, whose order decides who is looked at."""
    return torch.rand(count, generator=key.fold("moments").generator(), dtype=torch.float64)


def looked_at(
    parts: Sequence[torch.Tensor], most: int, luck: torch.Tensor | None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Clients (m,) that look at equally many samples, and these (m, size): up to `most`, the least `luck` (n,) first.

    None: the first samples of each.
    """
    samples, sizes = torch.cat(list(parts)).cpu(), torch.tensor([len(part) for part in parts])
    if luck is not None:
        order = luck[samples].argsort()
        samples = samples[order[torch.arange(len(parts)).repeat_interleave(sizes)[order].argsort(stable=True)]]
    starts, taken, found = sizes.cumsum(0) - sizes, sizes.clamp(max=most), []
    for size in dict.fromkeys(taken.tolist()):
        clients = (taken == size).nonzero()[:, 0]
        found.append((clients, samples[starts[clients, None] + torch.arange(size)]))
    return found


def blocks(found: list[tuple[torch.Tensor, torch.Tensor]], count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The same, about `count` samples at a time."""
    for clients, index in found:
        step = max(1, count // index.shape[1])
        yield from zip(clients.split(step), index.split(step))


def mixture(p: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Mean and variance (2, channels) of a mixture of clients, whose own are (N, 2, channels), by weights p (N,)."""
    mean = torch.tensordot(p, found[:, 0], 1)
    return torch.stack([mean, torch.tensordot(p, found[:, 1] + (found[:, 0] - mean) ** 2, 1)])


def replaced(module: nn.Module, given: Given, running: bool = False) -> nn.Module:
    """Put layers that are handed what is random, or that can be stacked, in the place of PyTorch's."""
    if (own := _own(module, given, running)) is not None:
        return own
    made: dict[nn.Module | None, nn.Module | None] = {}  # a part with two names stays one
    for parent in list(module.modules()):
        for name, part in list(parent._modules.items()):
            if part not in made:
                made[part] = _own(part, given, running)
            if (own := made[part]) is not None:
                parent._modules[name] = own
    return module


def _own(part: nn.Module | None, given: Given, running: bool) -> nn.Module | None:
    if isinstance(part, nn.modules.dropout._DropoutNd) and type(part) in _DROPOUTS:
        return _Dropout(given, part.p, _DROPOUTS[type(part)]).train(part.training)
    if type(part) is nn.MultiheadAttention and part.training and _is_plain(part):
        part.__class__, vars(part)["given"] = _Attention, given
        return part
    if type(part) is nn.GRU and not part.bidirectional and not (part.training and part.dropout):
        part.__class__ = _GRU
        return part
    if isinstance(part, _NORMS) and type(part) in _NORMS and (part.training or part.running_mean is None):
        return Norm(part, given, running)
    return None


def _is_plain(part: nn.MultiheadAttention) -> bool:
    return part._qkv_same_embed_dim and part.bias_k is None and not part.add_zero_attn
