"""What a card is told: CUDA graphs, since asking for the dozens of launches of a network's gradient takes longer than
what they do, with clients side by side in them; and in how many bits it convolves."""

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

_SHARE = 1 / 8  # of the card's memory, for all that a problem captures
_STREAMS = 16  # of clients side by side
_AFTER = 2  # calls before a shape is captured: a run's odd last batch is not
_MOST = 8  # shapes that are captured: each keeps its intermediate values on the card
_WARM = 3  # PyTorch's advice
_CUDNN: Any = torch.backends.cudnn  # "conv" is there from PyTorch 2.9 on
Function = Callable[..., torch.Tensor]


def convolved_in() -> object:
    """In what cuDNN convolves float32, as this version of PyTorch says it: "tf32" or True is ten bits."""
    conv = getattr(_CUDNN, "conv", None)
    return _CUDNN.allow_tf32 if conv is None else conv.fp32_precision


def without_tf32() -> None:
    """Compute convolutions of float32 in float32, for the process.

    The older switch alone leaves `torch.backends.fp32_precision = "tf32"` in force; the newer one alone makes PyTorch
    refuse to read the older.
    """
    _CUDNN.allow_tf32 = False
    if convolved_in() == "tf32":
        _CUDNN.conv.fp32_precision = "ieee"


@cache
def _streams(device: int) -> list[torch.cuda.Stream]:
    """The same for all graphs: what a library keeps for a stream is kept once."""
    return [torch.cuda.Stream(device) for _ in range(_STREAMS)]


def side_by_side(works: Sequence[Callable[[], torch.Tensor]]) -> list[torch.Tensor]:
    """Call functions on CUDA streams of their own, so that small kernels share the card. Returns what each returns.

    To be captured: asked for one by one, the launches take longer than all that they do.
    """
    now, streams = torch.cuda.current_stream(), _streams(torch.cuda.current_device())[: len(works)]
    for stream in streams:
        stream.wait_stream(now)
    found = []
    try:
        for i, work in enumerate(works):
            with torch.cuda.stream(streams[i % _STREAMS]):
                found.append(work())
    finally:  # a capture ends when all are back, whatever happened
        for stream in streams:
            now.wait_stream(stream)
    return found


@contextmanager
def _own_workspaces() -> Iterator[None]:
    """What is captured within holds cuBLAS's workspaces of its own: those of another graph may go with it."""
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)
    clear()
    try:
        yield
    finally:
        clear()


class Graphs:
    """Replays functions of tensors on a card: what a shape asked for is captured once, and is one launch from then on.

    The functions must read nothing else that is replaced between calls, and must not ask the card for a number. Work
    that is watched (`running.meter`), that of other threads than the first (the inputs are one buffer for all calls),
    and that under autocast or in inference mode is neither captured nor replayed.
    """

    def __init__(self) -> None:
        self._seen: Counter[object] = Counter()
        self._kept: dict[object, tuple[list[torch.Tensor], torch.cuda.CUDAGraph, torch.Tensor]] = {}
        self._refused: set[object] = set()
        self._held = 0  # bytes on the card

    def __reduce__(self) -> tuple[type["Graphs"], tuple[()]]:
        return Graphs, ()  # a copy, or another process, captures anew

    def __call__(self, name: str, of: Function, *given: torch.Tensor, beside: Function | None = None) -> torch.Tensor:
        """of(*given); its name and the shapes say what is captured.

        beside: what is captured in its place: the same numbers, asked for in another order.
        """
        if not self._plain():
            return of(*given)
        shape = name, *((one.shape, one.dtype, one.device) for one in given), convolved_in()
        with torch.no_grad():
            if shape not in self._kept and self._wanted(shape):
                self._capture(shape, beside or of, given)
            if shape not in self._kept:
                return of(*given)
            inputs, graph, out = self._kept[shape]
            for own, one in zip(inputs, given, strict=True):
                own.copy_(one)
            graph.replay()
            return out.clone()

    @staticmethod
    def _plain() -> bool:
        first = threading.current_thread() is threading.main_thread()
        special = is_in_torch_dispatch_mode() or torch.is_inference_mode_enabled() or torch.is_autocast_enabled()
        return first and not special

    def _wanted(self, shape: object) -> bool:
        self._seen[shape] += 1
        return shape not in self._refused and self._seen[shape] > _AFTER and len(self._kept) < _MOST

    def _capture(self, shape: object, of: Function, given: tuple[torch.Tensor, ...]) -> None:
        try:
            self._kept[shape] = self._captured(of, given)
        except RuntimeError as error:  # too much memory for the graph, or another thread used the card: it is computed
            behind = error.__context__
            if behind is not None and not isinstance(behind, Exception):
                raise behind from None  # Ctrl-C, in the place of which the capture's end complains
            self._refused.add(shape)

    def _captured(
        self, of: Function, given: tuple[torch.Tensor, ...]
    ) -> tuple[list[torch.Tensor], torch.cuda.CUDAGraph, torch.Tensor]:
        inputs = [one.clone(memory_format=torch.contiguous_format) for one in given]
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(_WARM):
                of(*inputs)
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        gc.collect()
        torch.cuda.empty_cache()  # so that what grows is the graph's
        before = torch.cuda.memory_reserved()
        with _own_workspaces(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            out = of(*inputs)
        self._hold(torch.cuda.memory_reserved() - before + sum(one.nbytes for one in inputs))
        return inputs, graph, out

    def _hold(self, size: int) -> None:
        """Raises RuntimeError for a graph of so many bytes that memory would be short beside all of them."""
        most = _SHARE * torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        if self._held + size > most:
            raise RuntimeError(f"a graph of {size} bytes beside {self._held}: expected {most:.0f} at most")
        self._held += size
