"""Items made together: their runs stand in one line, so that no worker waits for another between two items.

Each item's `measure` is a generator that yields the runs it wants. They stand in line, and it goes on when they are
there. Meanwhile the workers go on with runs of the items behind it, and this process draws what is finished.
"""

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedtheory.papers import store
from fedtheory.papers.store import Item, Result, Runner, Spec, Wants, Work
from fedtheory.running.records import Table

_AHEAD = 4  # jobs for each worker that are with it or wait there: it does not wait while this process draws a picture

Finish = Callable[[Item, Result, float], object]  # what is done with a result, and the seconds that it took
_What = Spec | Work
_Job = tuple[_What, Path | None]  # and the folder of a long run's checkpoints


def _do(job: _Job, device: str) -> tuple[Any, float]:
    """In a worker: the result of a run or of another computation, and its seconds."""
    (what, checkpoints), started = job, time.perf_counter()
    unfinished = {what: checkpoints} if isinstance(what, Spec) and checkpoints is not None else {}
    return store.carry_out(what, device, unfinished), time.perf_counter() - started


@dataclass
class _Begun:
    """An item whose `measure` has begun.

    Fields:
        steps: its generator.
        wanted: what it asked for last; None before it begins.
        found: the results of that.
        lacks: those of them that are not there yet.
        asked: all runs that it asked for.
        seconds: that it took so far.
    """

    steps: Wants[Result]
    wanted: list[_What] | None = None
    found: dict[_What, Any] = field(default_factory=dict)
    lacks: set[_What] = field(default_factory=set)
    asked: list[Spec] = field(default_factory=list)
    seconds: float = 0.0


class _Line(Iterator[_Job]):
    """What is to be done, by the order of the items, the longest run first. Where it is empty, the next item begins.

    Fields:
        asked, done: how many there were in the line so far, and how many are finished.
        error: what the item raised that ended the line; those before it go on.
    """

    def __init__(
        self, runner: Runner, items: Sequence[Item], scale: str, seeds: int, rows: Mapping[str, Table], finish: Finish
    ) -> None:
        self.runner, self.items, self.scale, self.seeds = runner, list(items), scale, seeds
        self.rows, self.finish = rows, finish
        self.asked = self.done = 0
        self.error: Exception | None = None
        self._line: list[tuple[int, int, int, _What]] = []  # a heap: place of the item, rounds downwards, a number
        self._heads: dict[_What, Any] = {}  # of what is in line or with a worker
        self._folders: dict[Spec, Path] = {}  # of the checkpoints of long ones
        self._begun: list[_Begun] = []  # by the place of the item

    def __next__(self) -> _Job:
        while not self._line and len(self._begun) < len(self.items):
            place = len(self._begun)
            item = self.items[place]
            rows = [self.rows[item.name]] if item.name in self.rows else []
            self._begun.append(_Begun(item.measure(self.scale, self.seeds, *rows)))
            try:
                self._go_on(place)
            except Exception as error:  # raised when the items before it are done, as if they were made one by one
                self.items, self.error = self.items[:place], error
        if not self._line:
            raise StopIteration
        *_, what = heapq.heappop(self._line)
        return what, self._folders.get(what) if isinstance(what, Spec) else None

    def _go_on(self, place: int) -> None:
        """Give an item what it asked for, until it lacks something, which then stands in line, or is finished."""
        item, started = self._begun[place], time.perf_counter()
        try:
            while not item.lacks:
                answer = None if item.wanted is None else {one: item.found[one] for one in item.wanted}
                item.wanted = list(item.steps.send(answer))  # type: ignore[arg-type]
                runs, works = store.split(item.wanted)
                item.asked += runs
                results, heads = self.runner.begin(runs)
                self._folders |= self.runner.unfinished(heads)
                lacks = {**heads, **dict.fromkeys(works)}
                for what in lacks:
                    if what not in self._heads:
                        self._stand(place, what)
                self._heads |= lacks
                item.found, item.lacks = {**results}, set(lacks)
            item.seconds += time.perf_counter() - started
        except StopIteration as end:
            item.seconds += time.perf_counter() - started
            self.finish(self.items[place], self.runner.signed(end.value, item.asked), item.seconds)

    def _stand(self, place: int, what: _What) -> None:
        self.asked += 1
        heapq.heappush(self._line, (place, -what.rounds if isinstance(what, Spec) else 0, self.asked, what))

    def take(self, what: _What, result: Any, seconds: float) -> None:
        """What a worker finished; then the items that waited for nothing else."""
        self.done += 1
        head = self._heads.pop(what)
        if isinstance(what, Spec):
            result = self.runner.keep(head, result, self._folders.get(what))
        waiting = [place for place, item in enumerate(self._begun) if what in item.lacks]
        self._begun[waiting[0]].seconds += seconds
        for place in waiting:
            item = self._begun[place]
            item.lacks.discard(what)
            item.found[what] = result
            if not item.lacks:
                self._go_on(place)


def together(
    runner: Runner,
    items: Sequence[Item],
    scale: str,
    seeds: int,
    finish: Finish,
    rows: Mapping[str, Table] | None = None,
) -> None:
    """Measure the items; `finish` is called with each as soon as its runs are there, in this process.

    Args:
        rows: of finished tables that are added to, by item.
    """
    line = _Line(runner, items, scale, seeds, rows or {}, finish)
    with runner.pool() as pool:
        for (what, _), found in store.as_finished(pool, _do, line, runner.device, most=_AHEAD * runner.workers):
            line.take(what, *found)
            runner.tick(line.done, line.asked)
    if line.error is not None:
        raise line.error
