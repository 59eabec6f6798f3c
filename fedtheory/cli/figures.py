"""reproduce, compare"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fedtheory import compare
from fedtheory.cli import index
from fedtheory.cli.output import print_json
from fedtheory.cli.report import print_table, report_rows
from fedtheory.core import checks, registry
from fedtheory.course import table
from fedtheory.papers import EXTRAS, ITEMS, Runner, quick, store
from fedtheory.papers.frontier import items as frontier
from fedtheory.papers.together import together
from fedtheory.problems import data
from fedtheory.running import records, watchdog
from fedtheory.running.shards import Spread, local
from fedtheory.running.verdicts import tally

DEFAULT_SEEDS = {"quick": 3, "medium": 3, "large": 5, "paper": 5}


def chosen_items(names: Sequence[str], scale: str) -> list[store.Item]:
    """Items by name, all those of a paper, or all "extras"; the papers' own where none is named.

    Only what can be measured at a scale, or at the quick one drawn from the committed run.
    """
    drawn = quick.drawn() if scale == "quick" else ()
    known = {name: item for name, item in {**ITEMS, **EXTRAS}.items() if scale in item.scales or name in drawn}
    if not names:
        return [item for name, item in known.items() if name in ITEMS]
    chosen: dict[str, store.Item] = {}
    for name in names:
        found = {key: item for key, item in known.items() if key == name or key.startswith(f"{name}/")}
        if name == "extras":
            found = {key: item for key, item in known.items() if key in EXTRAS}
        if not found:
            checks.reject("item", name, f"at scale {scale} one of {', '.join(known)}", registry.spelling(name, known))
        chosen |= found
    return list(chosen.values())


def finished(item: store.Item, out: Path, scale: str, seeds: int) -> dict[str, Any]:
    """The record of an item that can be added to: of the same scale and seeds."""
    if not item.grows:
        checks.reject("items", item.name, "a table that can be added to", "leave out --missing")
    record = records.load(records.place(out, item.name, scale).parent.parent, item.name)
    if (record["scale"], len(record["seeds"])) != (scale, seeds):
        there = f"--scale {record['scale']} --seeds {len(record['seeds'])}"
        checks.reject("seeds", seeds, f"what {item.name} was made with: {there}", "pass these, or leave out --missing")
    return record


@contextmanager
def progress(runner: Runner, title: str, options: argparse.Namespace) -> Iterator[None]:
    """A bar over the runs that are asked for."""
    with tqdm(desc=title, unit="run", disable=options.json or not runner.leads or None, leave=False) as bar:

        def tick(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        runner.tick = tick
        yield


@contextmanager
def whole_progress(runner: Runner, command: str, items: int, options: argparse.Namespace) -> Iterator[tqdm]:
    """A bar over the items, with the number of finished runs."""
    with tqdm(desc=command, total=items, unit="item", disable=options.json or None, leave=False) as bar:
        runner.tick = lambda done, total: bar.set_postfix_str(f"{done} of {total} runs")
        yield bar


def running(out: Path, device: str, workers: int | None) -> Runner:
    """With worker processes of its own, or with the processes that torchrun started: they share the runs."""
    if not watchdog.launched():
        return Runner(out, device, workers)
    if workers is not None:
        expected = "nothing of it under torchrun, whose processes share the runs"
        checks.reject("workers", workers, expected, "leave out --workers, or torchrun")
    local(device)
    return Runner(out, device, spread=Spread())


def writable(out: str, items: Sequence[store.Item]) -> Path:
    """The folder of figures, in which every item's files can be written: said before any work."""
    folder = checks.folder("out", out)
    for place in dict.fromkeys((folder / item.name).parent for item in items):
        if place.exists():
            checks.folder("out", place)
    return folder


def reproduce_items(options: argparse.Namespace) -> None:
    """reproduce"""
    scale = options.scale or "quick"
    device = str(checks.device("device", options.device))
    seeds = checks.whole("seeds", DEFAULT_SEEDS[scale] if options.seeds is None else options.seeds, 1)
    if options.workers is not None:
        checks.whole("workers", options.workers, 1)
    chosen = chosen_items(options.items, scale)
    drawn = [item for item in chosen if scale == "quick" and item.name in quick.drawn()]
    items = [sized(item, scale) for item in chosen if item not in drawn]
    if scale == "quick":  # the first picture soon, then what no two workers can share, so that none waits at the end
        items = items[:1] + sorted(items[1:], key=lambda item: not item.early)
    out = writable(options.out, items)
    runner = running(out, device, options.workers)
    before = {item.name: finished(item, out, scale, seeds) for item in items} if options.missing else {}
    rows: dict[str, list[dict[str, Any]]] = {}

    def finish(item: store.Item, result: store.Result, seconds: float) -> None:
        if scale == "quick":
            item, result = quick.captioned(item), quick.unjudged(result)
        stem = store.save(out, item, result, scale, seeds, seconds, device, before.get(item.name))
        record = records.load(stem.parent.parent, item.name)
        rows[item.name] = report_rows(item.name, record)
        if bar is not None:
            bar.update()
        if options.json:
            return
        if scale != "quick" or bar is None or bar.disable:
            found = tally([cell["verdict"] for cell in record["cells"]]) or "explains"
            print(f"[{len(rows)}/{len(items)}] {item.name:<16} {seconds:6.1f} s  {stem}.png  {found}", flush=True)
        elif len(rows) == 1:
            bar.write(f"The first picture: {stem}.png")

    kept, bar = {name: record["table"] for name, record in before.items()}, None
    if runner.spread is None:
        with whole_progress(runner, "reproduce", len(items), options) as bar:
            together(runner, items, scale, seeds, finish, kept)
    else:
        for item in items:
            started, grown = time.time(), [kept[item.name]] if item.name in kept else []
            with progress(runner, item.name, options):
                result = runner.measure(item, scale, seeds, *grown)
            if runner.leads:
                finish(item, result, time.time() - started)
    runner.close()
    if not runner.leads:
        return
    lacking = [item.name for item in drawn if not quick.draw_committed(out, item)]
    if lacking:
        fix = "run the command in a clone of the repository, or set FEDTHEORY_ROOT to one"
        left = f"{', '.join(lacking)}: left out, for the quick scale draws the committed run, which is not here"
        print(f"{left}. Fix: {fix}", file=sys.stderr)
    page = index.write(out) if scale == "quick" else None
    shown = [row for item in items for row in rows[item.name]]
    if options.json:
        print_json(shown)
    elif page is not None:
        print(f"All pictures, quick and committed side by side, and what we found: {page}")
    else:
        print()
        print_table(shown)


def sized(item: store.Item, scale: str) -> store.Item:
    """The item with the size that it has at this scale in its title."""
    return replace(item, title=compare.QUICK_TITLES.get(item.name, item.title)) if scale == "quick" else item


def quick_words(seeds: int, left_out: Sequence[str]) -> str:
    """What the quick scale runs less of than the medium one."""
    longest, files = max(task.rounds for task in compare.QUICK.values()), set(compare.MEDIUM) - set(compare.QUICK)
    return (
        f"The quick scale shows which methods lead early. It plays at most {longest} rounds with {seeds} seeds, tries "
        "every other learning rate, draws half as many perturbations in zeroth order and has a smaller regression.\n"
        f"It leaves out {', '.join(left_out)}; --tasks NAME adds one. --scale medium has them all, and with --data and "
        f"--tasks also {' and '.join(sorted(files))}."
    )


def compare_methods(options: argparse.Namespace) -> None:
    """compare"""
    scale = checks.choice("scale", options.scale or "quick", compare.TASKS)
    device = str(checks.device("device", options.device))
    seeds = checks.whole("seeds", compare.SEEDS[scale] if options.seeds is None else options.seeds, 1)
    if options.workers is not None:
        checks.whole("workers", options.workers, 1)
    methods = compare.methods(options.methods)
    known = frontier.names(scale, methods)
    plain = [name for name in known if name not in compare.MEDIUM or not compare.MEDIUM[name].files]
    left_out = [*frontier.SWEEPS, "tuning"] if scale == "quick" and not options.tasks else []
    names = options.tasks or [name for name in plain if name not in left_out]
    for name in names:
        if names.count(name) > 1:
            checks.reject("tasks", name, "each task once", "name it once")
        if name in compare.MEDIUM and name not in compare.TASKS[scale]:
            fix = f"pass --scale medium, and --data FOLDER with {name} in it"
            checks.reject("tasks", name, f"at scale {scale} one of {', '.join(known)}", fix)
        if name in compare.MEDIUM and name not in known:
            needs = frontier.divided(compare.MEDIUM[name], methods)[1][0]
            checks.reject("tasks", name, f"at scale {scale} one of {', '.join(known)}", f"pass one of these ({needs})")
        checks.choice("tasks", name, known)
    items = [sized(frontier.some(name, methods), scale) for name in names]
    out = writable(options.out, items)
    folder = out if len(methods) == len(compare.METHODS) else out / "some"  # never in the place of a whole comparison
    tasks = [compare.MEDIUM[name] for name in names if name in compare.MEDIUM and compare.MEDIUM[name].files]
    for task in tasks:  # what is missing is said before hours of other tasks
        for split in ("train", "test"):
            data.origin(task.options["data"], split=split, partial=bool(task.options.get("partial")))
    runner = running(out, device, options.workers)
    shown = []

    def finish(item: store.Item, result: store.Result, seconds: float) -> None:
        stem = store.save(folder, item, result, scale, seeds, seconds, device)
        shown.append(records.load(stem.parent.parent, item.name))
        if bar is not None:
            bar.update()
        if options.json:
            return
        with tqdm.external_write_mode():
            print(f"[{len(shown)}/{len(items)}] {item.name}: {item.title}; {seconds:.1f} s, {stem}.png")
            table(*frontier.lines(shown[-1]["table"]), digits=3)
            print("\n".join([*result.notes, ""]), flush=True)

    bar = None
    if runner.spread is None:
        with whole_progress(runner, "compare", len(items), options) as bar:
            together(runner, items, scale, seeds, finish)
    else:
        for number, item in enumerate(items, 1):
            started, title = time.time(), f"[{number}/{len(items)}] {item.name}"
            with progress(runner, title, options):
                result = runner.measure(item, scale, seeds)
            if runner.leads:
                finish(item, result, time.time() - started)
    runner.close()
    if not runner.leads:
        return
    if options.json:
        print_json(shown)
    elif left_out:
        print(quick_words(seeds, left_out))
