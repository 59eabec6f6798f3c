"""Items made together: their runs stand in one line, so that no worker waits for another between two items.

`measure` is a function of finished runs. Here the runner that it is given does not wait: where runs are missing it is
left, they stand in line, and it is called again when they are there. Meanwhile the workers go on with runs of the items
behind it, and this process draws what is finished.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedtheory.core import registry
from fedtheory.papers import store
from fedtheory.papers.store import Item, Result, Runner, Spec
from fedtheory.running.records import Table

_AHEAD = 4  # jobs for each worker that are with it or wait there: it does not wait while this process draws a picture

Finish = Callable[[Item, Result, float], object]  # what is done with a result, and the seconds that it took
_What = Spec | str  # a run, or by its name an item that computes by itself
_Job = tuple[_What, Path | None]  # and the folder of a long run's checkpoints


class _Waiting(Exception):
    """Leaves a `measure` until runs that it asked for are there. Its argument: their heads."""


@dataclass(frozen=True)
class _Asking:
    """The runner of an item: what is on disk, or `_Waiting`."""

    runner: Runner

    @property
    def device(self) -> str:
        return self.runner.device

    @property
    def tick(self) -> Callable[[int, int], object]:
        return self.runner.tick

    def __call__(self, specs: Iterable[Spec]) -> dict[Spec, dict[str, Any]]:
        results, missing = self.runner.begin(specs)
        if missing:
            raise _Waiting(missing)
        return results


@dataclass(frozen=True)
class _Alone:
    """The runner of an item that asks for no runs."""

    device: str


def _do(job: _Job, device: str, scale: str, seeds: int) -> tuple[Any, float]:
    """In a worker: the result of a run or of an item, and its seconds."""
    (what, checkpoints), started = job, time.perf_counter()
    if isinstance(what, Spec):
        result = store.execute(what, device, {} if checkpoints is None else {what: checkpoints})
    else:
        result = registry.item(what).measure(_Alone(device), scale, seeds)
    return result, time.perf_counter() - started


class _Line(Iterator[_Job]):
    """What is to be done, by the order of the items, the longest run first. Where it is empty, the next item is asked.

    Fields:
        asked, done: how many there were in the line so far, and how many are finished.
        error: what the item raised that ended the line; those before it go on.
    """

    def __init__(
        self, runner: Runner, items: Sequence[Item], scale: str, seeds: int, kept: Mapping[str, Table], finish: Finish
    ) -> None:
        self.runner, self.items, self.scale, self.seeds = runner, list(items), scale, seeds
        self.kept, self.finish = kept, finish
        self.asked = self.done = self._looked = 0
        self.error: Exception | None = None
        self._line: list[tuple[int, int, int, _What]] = []  # a heap: place of the item, rounds downwards, a number
        self._heads: dict[Spec, dict[str, Any]] = {}  # of the runs in line or with a worker
        self._folders: dict[Spec, Path] = {}  # of the checkpoints of long ones
        self._lacks: dict[int, set[_What]] = {}  # place of an item -> what it waits for
        self._seconds = [0.0] * len(items)

    def __next__(self) -> _Job:
        while not self._line and self._looked < len(self.items):
            place = self._looked
            self._looked += 1
            try:
                self._look(place)
            except Exception as error:  # raised when the items before it are done, as if they were made one by one
                self.items, self.error = self.items[:place], error
        if not self._line:
            raise StopIteration
        *_, what = heapq.heappop(self._line)
        return what, self._folders.get(what) if isinstance(what, Spec) else None

    def _look(self, place: int) -> None:
        """Measure an item; or have what it lacks stand in line."""
        item, started = self.items[place], time.perf_counter()
        if item.alone:
            self._lacks[place] = {item.name}
            return self._stand(place, item.name, 0)
        self.runner.provenance()  # of items before
        try:
            kept = [self.kept[item.name]] if item.name in self.kept else []
            result = item.measure(_Asking(self.runner), self.scale, self.seeds, *kept)
        except _Waiting as waiting:
            (heads,) = waiting.args
            self._lacks[place] = set(heads)
            self._folders |= self.runner.unfinished(heads)
            for spec in heads:
                if spec not in self._heads:
                    self._heads[spec] = heads[spec]
                    self._stand(place, spec, spec.rounds)
        else:
            self._close(place, result, time.perf_counter() - started)
        return None

    def _stand(self, place: int, what: _What, rounds: int) -> None:
        self.asked += 1
        heapq.heappush(self._line, (place, -rounds, self.asked, what))

    def _close(self, place: int, result: Result, seconds: float) -> None:
        result.runs = self.runner.provenance()
        result.notes += self.runner.said(result.runs)
        self.finish(self.items[place], result, self._seconds[place] + seconds)

    def take(self, what: _What, result: Any, seconds: float) -> None:
        """What a worker finished; then the items that waited for nothing else."""
        self.done += 1
        if isinstance(what, Spec):
            self.runner.keep(self._heads.pop(what), result, self._folders.get(what))
        waiting = sorted(place for place, lacks in self._lacks.items() if what in lacks)
        self._seconds[waiting[0]] += seconds
        for place in waiting:
            self._lacks[place].discard(what)
            if self._lacks[place]:
                continue
            del self._lacks[place]
            if isinstance(what, Spec):
                self._look(place)
            else:
                self.runner.provenance()
                self._close(place, result, 0.0)


def together(
    runner: Runner,
    items: Sequence[Item],
    scale: str,
    seeds: int,
    finish: Finish,
    kept: Mapping[str, Table] | None = None,
) -> None:
    """Measure the items; `finish` is called with each as soon as its runs are there, in this process.

    Args:
        kept: rows of finished tables that are added to, by item.
    """
    line = _Line(runner, items, scale, seeds, kept or {}, finish)
    with runner.pool() as pool:
        for (what, _), found in store.as_finished(
            pool, _do, line, runner.device, scale, seeds, most=_AHEAD * runner.workers
        ):
            line.take(what, *found)
            runner.tick(line.done, line.asked)
    if line.error is not None:
        raise line.error
