"""The gradient of perceptrons, written out: stacked clients need half the time of autograd."""

from typing import Any

import torch

from fedtheory.problems.models.networks import Flatten, Linear, Network, ReLU

# The product of inductor's compiled networks. Not public: where a build of torch lacks it, torch's own is used.
LINEAR: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
_ONEDNN_FROM = 2**14  # entries of a weight matrix: the loop over clients costs microseconds each


def is_perceptron(network: Network) -> bool:
    """Return whether a network is linear maps with biases, ReLU between them, and nothing else."""
    first, *ops = network.ops
    kinds = [type(op) for op in ops]
    biased = all(op.bias for op in ops if isinstance(op, Linear))
    return isinstance(first, Flatten) and biased and kinds == ([Linear, ReLU] * len(kinds))[: len(kinds) | 1]


def gradient(
    network: Network, y: torch.Tensor, images: torch.Tensor, labels: torch.Tensor, share: torch.Tensor
) -> torch.Tensor:
    """Row i: the gradient at y_i of sum_j share_ij * cross-entropy of client i's image j.

    Shapes: y (S, d); images (S, b, n), flat; labels (S, b); share (S, b) or what expands to it. Returns (S, d).
    """
    grad = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    maps = [op for op in network.ops if isinstance(op, Linear)]
    views = [vector.split(network.sizes, dim=-1) for vector in (y, grad)]
    (weights, biases), (to_weights, to_biases) = (
        ([part.view(len(y), op.n_out, op.n_in) for part, op in zip(parts[::2], maps)], parts[1::2]) for parts in views
    )
    inputs = [images]
    for weight, bias in zip(weights, biases):
        if len(inputs) > 1:
            inputs[-1].relu_()
        inputs.append(_affine(inputs[-1], weight, bias))
    delta = inputs.pop()
    delta.sub_(delta.amax(-1, keepdim=True)).exp_()  # a softmax over few classes takes torch three times as long
    share = share.expand(labels.shape)
    delta.mul_((share / delta.sum(-1))[..., None]).scatter_add_(2, labels[..., None], -share[..., None])
    for j in reversed(range(len(maps))):
        _products(delta.mT, inputs[j], to_weights[j])
        torch.sum(delta, 1, out=to_biases[j])
        if j:
            delta = torch.bmm(delta, weights[j]).mul_(inputs[j].sign_())  # the sign of ReLU is its derivative
    return grad


def _affine(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x_i W_i^T + b_i: (S, b, n_in), (S, n_out, n_in), (S, n_out) -> (S, b, n_out)."""
    if _onednn(weight):
        return torch.stack([LINEAR(*rows, "none", [], "") for rows in zip(x, weight, bias)])
    return torch.baddbmm(bias[:, None], x, weight.mT)


def _products(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """a_i b_i into out: (S, m, k), (S, k, n) -> (S, m, n)."""
    if _onednn(out):
        for left, right, to in zip(a.contiguous(), b.mT, out):
            to.copy_(LINEAR(left, right, None, "none", [], ""))
    else:
        torch.bmm(a, b, out=out)


def _onednn(product: torch.Tensor) -> bool:
    """Whether oneDNN is worth a loop over clients: on an AMD processor it needs two thirds of MKL's time."""
    rows, columns = product.shape[1:]
    return LINEAR is not None and product.dtype == torch.float32 and product.is_cpu and rows * columns >= _ONEDNN_FROM
