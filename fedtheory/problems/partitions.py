"""Partitions of labelled samples among clients: the samples of each, sorted; no sample has two owners."""

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fedtheory.core import checks
from fedtheory.core.key import Key

FIX = "pass a partition, such as problems.partitions.iid(labels, 10, Key(0))"


def require_indices(name: str, part: torch.Tensor, count: int) -> None:
    """Check that a client's part is indices of `count` samples, at least one. Raises ValueError."""
    if part.is_meta or part.dtype != torch.int64 or part.dim() != 1:
        as_indices = ".nonzero()[:, 0]" if part.dtype == torch.bool else ".long()"
        fix = f"pass {name}{as_indices}" if part.dim() == 1 and not part.is_floating_point() else FIX
        checks.reject(name, f"{part.dtype} {tuple(part.shape)}", "indices: torch.int64 (n_i,)", fix)
    if len(part) < 1:
        checks.reject(name, "no index", "at least one index", "leave clients without data out")
    found = int(part.min()), int(part.max())
    if found[0] < 0 or found[1] >= count:
        fix = "divide the labels of these samples, and not those of more"
        checks.reject(f"{name} (lowest, highest)", found, f"indices from 0 to {count - 1}", fix)


def client_shares(parts: Sequence[torch.Tensor], count: int) -> torch.Tensor:
    """Return each client's share of `count` samples, (N,) float64. Raises ValueError for other indices."""
    if not parts:
        checks.reject("parts", parts, "at least one client", FIX)
    for i, part in enumerate(parts):
        require_indices(f"parts[{i}]", part, count)
    sizes = torch.tensor([len(part) for part in parts], dtype=torch.float64)
    return sizes / sizes.sum()


def _checked(y: torch.Tensor, clients: int, key: Key) -> tuple[np.ndarray, np.random.Generator]:
    """Labels as an array, and the key's generator."""
    if y.dtype != torch.int64 or y.dim() != 1 or len(y) == 0:
        fix = "pass y.long()" if y.dim() == 1 and len(y) else "pass the labels of some samples, such as images.y"
        fix = "pass y.squeeze(1)" if y.dim() == 2 and y.shape[1] == 1 else fix
        checks.reject("y", f"{y.dtype} {tuple(y.shape)}", "labels: int64 (n,), n > 0", fix)
    checks.whole("clients", clients, 1, len(y), fix="give every client at least one sample")
    return y.numpy(), np.random.default_rng(key.hash())


def _tensors(parts: Sequence[np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(np.sort(part).astype(np.int64)) for part in parts]


@checks.arguments
def iid(y: torch.Tensor, clients: int, key: Key) -> list[torch.Tensor]:
    """Cut all samples y (n, ...), in a random order, into parts of equal size (to within one sample)."""
    _, rng = _checked(torch.zeros(len(y), dtype=torch.int64), clients, key)
    return _tensors(np.array_split(rng.permutation(len(y)), clients))


def by_value(values: Sequence[Any]) -> list[torch.Tensor]:
    """One client for each distinct value, in the order of the values, such as a hospital's name for each sample.

    >>> by_value(["b", "a", "b"])
    [tensor([1]), tensor([0, 2])]
    """
    of: dict[Any, list[int]] = {}
    values = getattr(values, "tolist", lambda: values)()  # a tensor's own values compare by identity
    values = [value.tolist() if isinstance(value, (torch.Tensor, np.ndarray)) else value for value in values]
    if not values or any(isinstance(value, list) or value != value for value in values):
        fix = "leave samples without a value out, and flatten what has more dimensions"
        checks.reject("values", checks.show(values), "one value for each sample, none of them NaN", fix)
    for j, value in enumerate(values):
        of.setdefault(value, []).append(j)
    try:
        order = sorted(of)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in of}))
        checks.reject("values", kinds, "names of one type", "make them text: [str(value) for value in values]")
    return [torch.tensor(of[value]) for value in order]


_HOPELESS = 20  # draws, and clients: where each draw left more short, one that leaves none has a chance of about e^-20
ALPHA = (1e-4, 1e8)  # where NumPy's Dirichlet draws are sound


@checks.arguments
def dirichlet(
    y: torch.Tensor, clients: int, alpha: float, key: Key, min_size: int = 10, *, cap: bool = True, tries: int = 1000
) -> list[torch.Tensor]:
    """Divide each label's samples in proportions from Dirichlet(alpha); sizes are unequal.

    Every sample is used. Cuts are rounded down, so with few samples a label the last client gets the rest. The whole
    partition is redrawn until every client has `min_size` samples. Where draws do not reach that, the last one is
    repaired: one after the other, each sample that a client lacks is a random one of the client that then has most.
    FedMUD's Non-IID-1 is alpha=0.3 (CIFAR-100: 0.1) with the defaults; DeComFL prints alpha=1,
    FLSS beta in {0.1, 0.5, 1}.

    Args:
        cap: a client that has n/N samples gets none of the labels that follow (the benchmark's rule); the proportions
            of the others are then Dirichlet(alpha) again.
        tries: draws before the last one is repaired; fewer where each of the first leaves so many clients short that no
            further one can be expected to leave none.
    """
    y_, rng = _checked(y, clients, key)
    checks.number("alpha", alpha, *ALPHA)
    checks.whole("min_size", min_size, 0, len(y_))
    if min_size * clients > len(y_):
        expected = f"at most {len(y_) // min_size}, so that each can have {min_size} of the {len(y_)} samples"
        checks.reject("clients", clients, expected, "take fewer clients, or a smaller min_size where there is one")
    checks.count("tries", tries)
    of_label = [np.flatnonzero(y_ == label) for label in np.unique(y_)]
    done, fewest = 0, clients  # draws, and clients that the best of them left short
    while True:
        owner = np.empty(len(y_), np.int64)
        sizes = np.zeros(clients, np.int64)
        for samples in of_label:
            takers = np.flatnonzero(sizes < len(y_) / clients) if cap else np.arange(clients)
            shares = rng.dirichlet(np.full(len(takers), alpha))
            cuts = (np.cumsum(shares)[:-1] * len(samples)).astype(np.int64)
            counts = np.diff(cuts, prepend=0, append=len(samples))
            owner[rng.permutation(samples)] = np.repeat(takers, counts)
            sizes[takers] += counts
        done, fewest = done + 1, min(fewest, int((sizes < min_size).sum()))
        if not fewest or done == tries or (done == _HOPELESS and fewest > _HOPELESS):
            break
    order = np.argsort(owner, kind="stable")
    parts = np.split(order, np.cumsum(sizes)[:-1])
    return _tensors(_filled(parts, min_size, rng) if fewest else parts)


def _filled(parts: Sequence[np.ndarray], size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Parts of at least `size` samples: each that one lacks is a random one of the client that then has most."""
    held = [rng.permutation(part).tolist() for part in parts]
    by_size = [(-len(part), i) for i, part in enumerate(held)]
    heapq.heapify(by_size)
    for part in held:
        while len(part) < size:  # another has more than `size` then
            giver = by_size[0][1]
            part.append(held[giver].pop())
            heapq.heapreplace(by_size, (-len(held[giver]), giver))
    return list(map(np.array, held))


@checks.arguments
def labels_per_client(y: torch.Tensor, clients: int, labels: int, key: Key) -> list[torch.Tensor]:
    """Give every client exactly `labels` labels; a label's samples are shared equally among its holders.

    Labels are drawn at random among those with the fewest holders so far, so holders per label differ by one at most.
    Every sample is used if clients * labels reaches the number of labels. FedMUD's Non-IID-2: 3 (CIFAR-100: 10).
    """
    y_, rng = _checked(y, clients, key)
    names = np.unique(y_)
    checks.whole("labels", labels, 1, len(names), fix=f"the data have {len(names)} labels")
    holds = np.zeros((clients, len(names)), bool)
    for client in range(clients):
        holders = holds.sum(0)
        holds[client, np.lexsort((rng.random(len(names)), holders))[:labels]] = True
    parts: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for place, label in enumerate(names):
        samples, holders = np.flatnonzero(y_ == label), np.flatnonzero(holds[:, place])
        if len(samples) < len(holders):
            found = f"{clients} ({len(holders)} of them hold label {label}, which has {len(samples)} samples)"
            checks.reject("clients", found, "at least one sample per holder", "lower clients or labels")
        for client, mine in zip(holders, np.array_split(rng.permutation(samples), max(1, len(holders)))):
            parts[client].append(mine)
    return _tensors([np.concatenate(part) for part in parts])
