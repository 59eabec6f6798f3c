"""How the clients of a round are evaluated: stacked, or in chunks of any size. `chunk=1` is the loop over clients.

The code that runs is the same for every chunk size: an algorithm's `client` sees S clients, whatever S is. Chunks may
run in several threads: what a chunk computes hangs on its clients and the key, so the bits are the same.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import torch

from fedtheory.core.algorithm import Algorithm
from fedtheory.core.contract import Watched
from fedtheory.core.key import Key
from fedtheory.core.message import field_names
from fedtheory.core.problem import Problem

T = TypeVar("T")


def map_leaves(apply: Callable[..., torch.Tensor], first: T, *others: T) -> T:
    """Apply a function to each field of a dataclass of tensors (or None) and of its companions."""
    if first is None:
        return first
    parts, names = (first, *others), field_names(type(first))
    return type(first)(**{name: apply(*[getattr(part, name) for part in parts]) for name in names})


def drain(steps: Generator[Any, None, T]) -> T:
    """Run a generator to its end and return what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def run_clients(
    algorithm: Algorithm | Watched,
    problem: Problem,
    clients: torch.Tensor,
    own: Any,
    down: Any,
    key: Key,
    chunk: int | None = None,
    threads: int = 1,
    edges: Sequence[int] = (),
) -> tuple[Any, Any]:
    """Run the clients (S,): Up and Own, each leading with S; `own` leads with S too.

    Args:
        chunk: how many clients are stacked at a time; None: as many as algorithm and problem like best.
        threads: how many chunks run at a time; worth it for convolutions, with one thread inside each operation.
        edges: ids between which no two clients are stacked, see `fedtheory.running.shards`; the clients then rise.
    """
    if not algorithm.gradient_only and problem.uneven:
        return _run_by_steps(algorithm, problem, clients, own, down, key, chunk, threads, edges)
    return _run_stacked(algorithm, problem, clients, own, down, key, chunk, threads, edges)


def _run_by_steps(
    algorithm: Algorithm | Watched, problem: Problem, clients: torch.Tensor, own: Any, *given: Any
) -> tuple[Any, Any]:
    """Clients that have samples for equally many local steps are stacked, and make so many."""
    steps = torch.tensor(problem.steps_of(clients))
    groups = [(int(K), (steps == K).nonzero()[:, 0]) for K in steps.unique()]
    own_of = lambda some: map_leaves(lambda leaf: leaf.index_select(0, some.to(leaf.device)), own)
    parts = [_run_stacked(algorithm.at_steps(K), problem, clients[i], own_of(i), *given) for K, i in groups]
    back = torch.cat([some for _, some in groups]).argsort()
    join: Callable[..., torch.Tensor] = lambda *leaves: torch.cat(leaves).index_select(0, back.to(leaves[0].device))
    return map_leaves(join, *(up for up, _ in parts)), map_leaves(join, *(o for _, o in parts))


def _run_stacked(
    algorithm: Algorithm | Watched,
    problem: Problem,
    clients: torch.Tensor,
    own: Any,
    down: Any,
    key: Key,
    chunk: int | None,
    threads: int,
    edges: Sequence[int],
) -> tuple[Any, Any]:
    chunk = chunk or algorithm.chunk(problem) or len(clients)
    cuts = chunk_slices(clients, chunk, edges)
    if len(cuts) == 1:
        return drain(algorithm.client(problem, clients, own, down, key))

    def play(some: slice) -> tuple[Any, Any]:
        mine = map_leaves(lambda leaf: leaf[some].clone(), own)  # products sum in another order at another alignment
        return drain(algorithm.client(problem, clients[some], mine, down, key))

    if threads == 1:
        parts = [play(some) for some in cuts]
    else:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(play, cuts))
    cat: Callable[..., torch.Tensor] = lambda *leaves: torch.cat(leaves)
    return map_leaves(cat, *(up for up, _ in parts)), map_leaves(cat, *(o for _, o in parts))


def chunk_slices(clients: torch.Tensor, chunk: int, edges: Sequence[int] = ()) -> list[slice]:
    """Return the slices of clients (S,) that are stacked: at most `chunk` each, none from both sides of an edge."""
    ids = clients.tolist() if edges else []
    at = sorted({0, len(clients), *(bisect_left(ids, edge) for edge in edges)})
    return [slice(a, min(a + chunk, end)) for start, end in pairwise(at) for a in range(start, end, chunk)]
