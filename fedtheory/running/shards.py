"""Clients divided over processes: who keeps whom, and how uploads come together. The engine is torch.distributed.

The N clients are cut into blocks of ids, and a process takes whole blocks that lie side by side. Only clients of one
block are stacked, so the bits of a run hang on the number of blocks and not on the number of processes: one process
with the same `blocks` makes the same. Every process draws the same participants, computes its own, gathers all
uploads in the order of their ids and makes the same server step.
"""

import atexit
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from fedtheory.core import checks
from fedtheory.core.engine import map_leaves
from fedtheory.core.message import Cost, cost
from fedtheory.running import watchdog

T = TypeVar("T")
_stores: Any = dist  # TCPStore and PrefixStore are documented, and not marked as exported; some builds lack them

BLOCKS = 12  # of a sharded run that names none: 1, 2, 3, 4, 6 and 12 processes take the same number of clients
_PATIENCE = timedelta(hours=1)  # for which a process waits for the slowest one in a round
_SECONDS_TO_REPORT = 3.0  # for which a process that lost another waits for the others' word
_SECONDS_FOR_LATE_ONES = 5.0  # more, while several are missing


class Lost(OSError):
    """Another process of the run is gone."""


def edges(n: int, blocks: int) -> list[int]:
    """Block b holds the clients from edge b up to edge b + 1, blocks + 1 edges: sizes differ by one at most."""
    return [b * n // blocks for b in range(blocks + 1)]


@dataclass(frozen=True)
class Group:
    """Processes that share the clients of a run.

    Fields:
        processes: a process group of torch.distributed, gloo for the CPU or nccl for CUDA; None: all processes.
        division: how many blocks each process takes, in the order of ranks; None: as even as it goes.
        reduce: methods whose server line reads only the participants' average (`Algorithm.averaged`) sum it over the
            processes in place of gathering the uploads: S rows are not sent to all, one is. The average is then rounded
            as a sum of P partial averages, so the result differs in the last digits, and with the number of processes.

    Raises ValueError where torch.distributed has not been started.
    """

    processes: Any = None
    division: tuple[int, ...] | None = None
    reduce: bool = False

    def __post_init__(self) -> None:
        if not dist.is_available() or not dist.is_initialized():
            fix = "start with torchrun, and call join_group() first"
            checks.reject("group", None, "processes that torch.distributed has brought together", fix)
        checks.instance("reduce", self.reduce, bool, "pass True or False")

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        return dist.get_rank(self.processes)

    @property
    def size(self) -> int:
        """P, the number of processes."""
        return dist.get_world_size(self.processes)


class Shards:
    """The clients that this process keeps, and its exchange with the others.

    Args:
        group: the processes.
        n: N, the clients of all.
        blocks: into which they are cut.
        device: the problem's.
        weights: by which the server averages, (N,); None: all count alike.

    Raises ValueError for a division that does not fit.
    """

    def __init__(
        self, group: Group, n: int, blocks: int, device: torch.device, weights: torch.Tensor | None = None
    ) -> None:
        self.group, self.rank, self.size = group, group.rank, group.size
        self.blocks, self.device, self.weights, self.reduces = blocks, device, weights, group.reduce
        at = edges(n, blocks)
        taken = group.division
        if taken is None:
            taken = tuple(b - a for a, b in pairwise(edges(blocks, self.size)))
            if min(taken) < 1:
                fix = f"pass blocks={self.size} or more, or start fewer processes"
                checks.reject("blocks", blocks, f"a block for each of the {self.size} processes", fix)
        good = len(taken) == self.size and sum(taken) == blocks and all(type(b) is int and b >= 1 for b in taken)
        if not good:
            expected = f"{self.size} whole numbers from 1, one for each process, that sum to the {blocks} blocks"
            checks.reject("division", taken, expected, "leave it out for an even one")
        self.bounds = [at[b] for b in accumulate(taken, initial=0)]  # process k keeps the ids from k to k + 1 here
        self.start, self.stop = self.bounds[self.rank], self.bounds[self.rank + 1]
        self.wire = device if dist.get_backend(group.processes) == "nccl" else torch.device("cpu")

    @property
    def kept(self) -> int:
        """How many clients are kept here."""
        return self.stop - self.start

    def mine(self, clients: torch.Tensor) -> torch.Tensor:
        """Those of the rising ids (S,) that are kept here."""
        return clients[(clients >= self.start) & (clients < self.stop)]

    def players(self, clients: torch.Tensor) -> torch.Tensor:
        """Those that are computed here: of the rising ids (S,) the own ones; the first one kept where there are none.

        Every process has to know the shape of an upload; what that client makes is thrown away.
        """
        mine = self.mine(clients)
        return mine if len(mine) else torch.tensor([self.start])

    def meet(self, up: T, sent: Cost, clients: torch.Tensor) -> tuple[T, Cost]:
        """What the server's line reads of all participants, (S, ...) in the order of their ids, and what it cost.

        Args:
            up: of this process's own participants, or of one that takes no part: see `players`.
            sent: what `up` cost.
            clients: the participants of all, rising (S,).
        """
        if self.reduces:
            own = sent if len(self.mine(clients)) else Cost()
            total = torch.tensor(own, device=self.wire)
            _or_end(lambda: dist.all_reduce(total, group=self.group.processes))
            return self._average(up, clients), Cost(*total.tolist())
        up = self._gather(up, clients)
        return up, cost(up)

    def _gather(self, up: T, clients: torch.Tensor) -> T:
        counts = self._counts(clients)
        mine, most = counts[self.rank], max(counts)

        def gathered(leaf: torch.Tensor) -> torch.Tensor:
            row = leaf.shape[1:]
            sent = leaf.new_zeros((most, *row))
            sent[:mine] = leaf[:mine]
            sent = sent.view(most, -1).view(torch.uint8).to(self.wire)
            found = [torch.empty_like(sent) for _ in counts]
            _or_end(lambda: dist.all_gather(found, sent, group=self.group.processes))
            return (
                torch.cat([part[:count] for part, count in zip(found, counts)])
                .view(leaf.dtype)
                .view(sum(counts), *row)
                .to(self.device)
            )

        return map_leaves(gathered, up)

    def _average(self, up: T, clients: torch.Tensor) -> T:
        """The participants' average instead of each one's upload: one row, repeated (S, ...)."""
        mine = self.mine(clients)
        weights = torch.ones(int(self.bounds[-1]), dtype=torch.float64) if self.weights is None else self.weights
        of = weights[mine] / weights[clients].sum()

        def averaged(leaf: torch.Tensor) -> torch.Tensor:
            if not leaf.dtype.is_floating_point:
                expected = f"False where uploads are no real numbers ({type(up).__name__} has {leaf.dtype})"
                checks.reject("group.reduce", True, expected, "leave it out: uploads are gathered then")
            partial = torch.tensordot(of.to(leaf), leaf[: len(mine)], 1).contiguous().to(self.wire)
            _or_end(lambda: dist.all_reduce(partial, group=self.group.processes))
            return partial.to(self.device).expand(len(clients), *partial.shape)

        return map_leaves(averaged, up)

    def agree(self, x: torch.Tensor, values: Sequence[float], count: int) -> list[float]:
        """The first process's `count` values, at every process, if all have the same model.

        Raises OSError at a process whose model has other bits.
        """
        raw = x.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
        digest = float(int.from_bytes(hashlib.blake2b(raw, digest_size=6).digest(), "little"))  # 48 bits: exact
        *told, of_first = self.broadcast([*(values if self.rank == 0 else [0.0] * count), digest])
        if of_first != digest:
            expected = "the same bits of the model in every process"
            fix = "give all processes the same kind of processor, the same PyTorch and the same number of threads"
            checks.reject("group", f"rank {self.rank}", expected, fix, OSError)
        return told

    def broadcast(self, numbers: Sequence[float]) -> list[float]:
        """What the first process says, at every process."""
        said = torch.tensor(numbers, dtype=torch.float64, device=self.wire)
        _or_end(lambda: dist.broadcast(said, group_src=0, group=self.group.processes))
        return said.tolist()

    def most(self, number: int) -> int:
        """The largest of the processes' numbers."""
        found = torch.tensor(number, device=self.wire)
        _or_end(lambda: dist.all_reduce(found, dist.ReduceOp.MAX, group=self.group.processes))
        return int(found)

    def all(self, text: str) -> list[str]:
        """Every process's text (ASCII), in the order of ranks."""
        sent = torch.frombuffer(bytearray(text.encode("ascii").ljust(256)), dtype=torch.uint8).to(self.wire)
        found = [torch.empty_like(sent) for _ in range(self.size)]
        _or_end(lambda: dist.all_gather(found, sent, group=self.group.processes))
        return [bytes(part.tolist()).decode().rstrip() for part in found]

    def _counts(self, clients: torch.Tensor) -> list[int]:
        at = torch.searchsorted(clients, torch.tensor(self.bounds)).tolist()
        return [b - a for a, b in pairwise(at)]


def _or_end(call: Callable[[], T]) -> T:
    """What the call returns; where a process is gone that it needs, this one ends, too: see `running.watchdog`."""
    try:
        return call()
    except RuntimeError as error:  # of the store, of gloo and of nccl alike: their connections are gone
        if watchdog.active:
            watchdog.leave()
        cause = str(error).splitlines()[0][:200]
        raise Lost(f"group: a process of the run is gone ({cause}). Fix: {watchdog.AGAIN}") from error


# The launcher's side: one process of those that torchrun started

_reports: Any = None


def _connect() -> Any:
    """A store that all processes see that torchrun started together.

    Raises ValueError where torchrun did not start this one.
    """
    global _reports
    if not watchdog.launched():
        fix = "start with torchrun --nproc-per-node P -m fedtheory ..."
        checks.reject("group", None, "a process that torchrun started", fix)
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            expected = "what torchrun sets beside TORCHELASTIC_RUN_ID"
            checks.reject(name, None, expected, "start with torchrun, or unset TORCHELASTIC_RUN_ID")
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    serves = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size
    name = f"fedtheory/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    connect = lambda master: _stores.PrefixStore(
        name, _or_end(lambda: _stores.TCPStore(*at, is_master=master, timeout=_PATIENCE, wait_for_workers=False))
    )
    joined, _reports = connect(serves), connect(False)  # two: one may wait while the other reports
    _reports.set(f"at/{rank}", f"{socket.gethostname()}, process {os.getpid()}")
    watchdog.mark = lambda reports=_reports: reports.set(f"left/{rank}", "1")
    watchdog.who = _gone
    return joined


def join_group(device: str = "cpu") -> torch.device:
    """Bring the processes that torchrun started together; on CUDA each takes the card of its place on the host.

    Args:
        device: "cpu" (gloo) or "cuda" (nccl).

    Returns this process's device. Raises ValueError where torchrun did not start it.
    """
    store, where = _connect(), local(device)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend = "nccl" if where.type == "cuda" else "gloo"
    group = _stores.PrefixStore("group", store)
    options: dict[str, Any] = {"store": group, "rank": rank, "world_size": size, "timeout": _PATIENCE}
    _or_end(lambda: dist.init_process_group(backend, **options))
    if backend == "gloo":
        atexit.register(_part)
    return where


def _part() -> None:
    """Before Python ends: a thread of gloo's that still holds a tensor then would abort the process, its work done."""
    if dist.is_initialized():
        dist.destroy_process_group()


def local(device: str) -> torch.device:
    """The device of this process: on CUDA the card of its place on the host."""
    where = torch.device(device)
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(where)
    return where


class Spread:
    """Jobs divided over the processes that torchrun started: each takes the next one that nobody has taken."""

    def __init__(self) -> None:
        self._store = _connect()
        self.rank = int(os.environ["RANK"])

    def taken(self, jobs: Mapping[str, T]) -> Iterator[T]:
        """Those of the jobs, by their names, that this process does: each is taken once."""
        for name, job in jobs.items():
            if self._store.add(f"job/{name}", 1) == 1:
                yield job


def _gone() -> str:
    """Who is gone, to be said by the first of those that are left; "" at the others.

    On busy cores one that lives may report late: while more than one is missing, it is waited for.
    """
    assert _reports is not None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    _reports.set(f"left/{rank}", "1")
    time.sleep(_SECONDS_TO_REPORT)
    until = time.monotonic() + _SECONDS_FOR_LATE_ONES
    while (
        len(left := [k for k in range(size) if _reports.check([f"left/{k}"])]) < size - 1 and time.monotonic() < until
    ):
        time.sleep(0.1)
    if left[0] != rank or _reports.add("said", 1) > 1:
        return ""
    at = [_reports.get(f"at/{k}").decode() if _reports.check([f"at/{k}"]) else "not there yet" for k in range(size)]
    gone = ", ".join(f"rank {k} ({at[k]})" for k in range(size) if k not in left) or "a connection"
    return f"group: {gone}: gone, so the other {len(left)} of {size} processes end. Fix: {watchdog.AGAIN}"
