"""Counting what a piece of code computes and holds: multiplications, and the peak of live tensor memory."""

import copy
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.engine import drain, map_leaves
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.problems.models.perceptron import LINEAR


def _linear_flops(x: torch.Size, weight: torch.Size, *others: Any, **options: Any) -> int:
    return 2 * math.prod(x) * weight[0]


_COUNTED = {LINEAR: _linear_flops} if LINEAR is not None else {}  # what PyTorch's counter does not know


def multiplications(work: Callable[[], Any]) -> int:
    """Count the multiplications of matrix products in `work` (half the FLOPs that PyTorch's own counter reports)."""
    with FlopCounterMode(display=False, custom_mapping=_COUNTED) as counter:
        work()
    return counter.get_total_flops() // 2


class PeakMemory(TorchDispatchMode):
    """Peak of the bytes held by tensors that were made while the mode is on. Views count once, with their storage.

    A view of a tensor from before counts like a new tensor, but for those in `free`.
    """

    def __init__(self, free: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._seen = {tensor.untyped_storage()._cdata for tensor in free}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor):
                self._hold(tensor.untyped_storage())
        return out

    def _hold(self, storage: torch.UntypedStorage) -> None:
        address, size = storage._cdata, storage.nbytes()
        if address in self._seen:
            return
        self._seen.add(address)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._drop, address, size)

    def _drop(self, address: int, size: int) -> None:
        self._seen.discard(address)
        self.live -= size


def uncompiled(mode: type) -> None:
    """Keep a mode out of PyTorch's compiler, which is imported for that at the first tensor: 1.5 seconds.

    Nothing here is compiled; where PyTorch does it otherwise, this does nothing.
    """
    if (plain := getattr(vars(mode).get("__torch_dispatch__"), "__wrapped__", None)) is not None:
        setattr(plain, "__dynamo_disable", plain)


for _mode in (PeakMemory, getattr(flop_counter, "_FlopCounterMode", FlopCounterMode)):
    uncompiled(_mode)


def peak_bytes(work: Callable[[], Any], free: Iterable[torch.Tensor] = ()) -> int:
    """Return the peak of the tensor memory that `work` allocates, in bytes; views of tensors in `free` cost nothing."""
    with PeakMemory(free) as mode:
        work()
    return mode.peak


class Client(NamedTuple):
    """What one client needs for one round.

    Fields:
        memory: peak bytes of its tensors: what it received (seeded values as it makes them of the seeds), its private
            state, and all that it computes; not its data.
        products: multiplications of matrix products.
    """

    memory: int
    products: int


def client(algorithm: Algorithm, problem: Problem, state: State, key: Key) -> Client:
    """Meter the first client's lines in one round from `state`, which stays as it is."""
    down = algorithm.broadcast(state.server, key)
    own = map_leaves(lambda leaf: leaf[:1], state.own)

    def work() -> None:
        received, mine = copy.deepcopy((down, map_leaves(torch.clone, own)))
        drain(algorithm.client(problem, problem.clients[:1], mine, received, key))

    data = [value for value in vars(problem).values() if isinstance(value, torch.Tensor)]
    with torch.set_grad_enabled(not problem.closed_form):
        return Client(peak_bytes(work, data), multiplications(work))
