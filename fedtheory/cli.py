"""The command line: list, run, reproduce, compare, report, claims. Each takes --json."""

import argparse
import json
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NoReturn

import torch
from tqdm import tqdm

from fedtheory import compare
from fedtheory.core import checks, records, registry, simulate
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.files import is_plain, require_target, write_target
from fedtheory.core.key import Key
from fedtheory.figures import EXTRAS, ITEMS, Runner, store
from fedtheory.figures.frontier import items as frontier
from fedtheory.maps.subspace import PROJECTIONS
from fedtheory.notebook import table
from fedtheory.problems import data
from fedtheory.problems.pooled import Pooled
from fedtheory.problems.text import TASKS
from fedtheory.theory import ledger

DEFAULT_SEEDS = {"quick": 3, "medium": 3, "paper": 5}
MOST_SEEDS = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0, or 2 after an error message on stderr for input that was refused."""
    options = parser().parse_args(arguments)
    try:
        if getattr(options, "data", None) is not None:
            os.environ["FEDTHEORY_DATA"] = os.path.abspath(options.data)  # worker processes read it too
        options.command(options)
    except (ValueError, TypeError, OSError, MemoryError, ModuleNotFoundError) as error:
        print(f"fedtheory: {error}", file=sys.stderr)
        return 2
    except BrokenProcessPool:
        fix = "the same call again goes on from the finished runs; --workers 1 takes half the memory of two"
        print(f"fedtheory: workers: one was killed, as for want of memory. Fix: {fix}", file=sys.stderr)
        return 2
    except RuntimeError as error:  # an allocator's, of the CPU or of CUDA
        if not any(words in str(error) for words in ("can't allocate memory", "out of memory")):
            raise
        fix = "fewer clients at a time, a smaller batch or model, or dtype bfloat16"
        print(f"fedtheory: memory: {str(error).splitlines()[0]}. Fix: {fix}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept and the next call goes on from them", file=sys.stderr)
        return 130
    return 0


class Parser(argparse.ArgumentParser):
    """What cannot be parsed is said in one line, with a fix."""

    def error(self, message: str) -> NoReturn:
        message = message.replace(COMMANDS, "command")
        for pattern, said in COMPLAINTS:
            found = re.fullmatch(pattern, message, re.DOTALL)
            if found:
                message = said(*found.groups())
                break
        fix = "" if "Fix: " in message else f" Fix: see {self.prog} --help"
        self.exit(2, " ".join(f"fedtheory: {message}{fix}".splitlines()) + "\n")


COMMANDS = "list|run|reproduce|compare|report|claims"
COMPLAINTS: tuple[tuple[str, Callable[..., str]], ...] = (  # argparse's words, and ours
    (r"argument (\S+): (=.*)", lambda name, rest: name + rest),
    (
        r"argument (\S+): invalid choice: (.*) \(choose from (.*)\)",
        lambda name, value, known: f"{name}={checks.show_text(value)}: expected one of {known}.",
    ),
    (r"argument (\S+): expected one argument", lambda name: f"{name}: expected a value behind it."),
    (r"argument (\S+): expected at least one argument", lambda name: f"{name}: expected a value behind it."),
    (r"the following arguments are required: (.*)", lambda names: f"{names}: expected, and not there."),
    (
        r"unrecognized arguments: (.*)",
        lambda words: f"{checks.show_text(words)}: expected options of this command only. Fix: leave it out",
    ),
)


def number_of(kind: Callable[[str], Any], low: float, high: float) -> Callable[[str], Any]:
    """The type of an option: int or float. Its range is what no command can exceed; commands say what they need."""
    expected = f"{'an integer' if kind is int else 'a number'} from {low:g} to {high:g}"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
            if not (low <= value <= high or (kind is float and not math.isfinite(value))):
                raise ValueError
            return value
        except ValueError:
            said = f"={checks.show(text)}: expected {expected}. Fix: choose a value within these bounds"
            raise argparse.ArgumentTypeError(said) from None

    return parse


def parser() -> argparse.ArgumentParser:
    """The options of every command; a command has those only that it heeds."""
    top = Parser(prog="python -m fedtheory", description=__doc__)
    commands = top.add_subparsers(required=True, metavar=COMMANDS)
    count, real = number_of(int, -checks.MOST, checks.MOST), number_of(float, -1e308, 1e308)
    common: dict[str, dict[str, Any]] = {
        "out": {"default": "figures", "help": "folder of figures and tables (default: figures)"},
        "device": {"default": "cpu", "help": "cpu or cuda"},
        "seeds": {"type": number_of(int, -MOST_SEEDS, MOST_SEEDS), "help": "number of seeds (default: 3; paper: 5)"},
        "scale": {"choices": records.SCALES, "help": "quick, medium (needs --data), or paper"},
        "data": {"help": "folder of data sets as published (default: FEDTHEORY_DATA)"},
    }

    def add(name: str, command: Callable[[argparse.Namespace], None], text: str, *heeded: str) -> Parser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        sub.add_argument("--json", action="store_true", help="print JSON and nothing else on stdout")
        for option in heeded:
            sub.add_argument(f"--{option}", **common[option])
        return sub

    add("list", show_list, "names of algorithms, problems, figures and tables, claims")
    run = add("run", show_run, "one algorithm on one problem", "device", "seeds", "data")
    run.add_argument("algorithm", choices=registry.method_names())
    run.add_argument("problem", choices=registry.problem_names())
    run.add_argument("--rounds", type=count, default=200)
    run.add_argument("--sampled", type=count, default=None, help="clients per round (default: all)")
    for name, option in METHOD_OPTIONS.items():
        given: dict[str, Any] = {"type": count if name in COUNTS else real} | option
        run.add_argument(f"--{name.replace('_', '-')}", **given)
    run.add_argument("--model", default=None, help="text: folder or hub name of a language model (default: a tiny one)")
    run.add_argument(
        "--task", choices=list(TASKS), default=None, help="text: a task in the folder --data (default: sst2)"
    )
    run.add_argument("--lora", type=count, default=None, help="text: train adapters of this rank only")
    run.add_argument("--checkpoint", default=None, help="folder to save to and go on from")
    every = tuple(common)
    reproduce = add("reproduce", reproduce_items, "figures and tables of the papers", *every)
    reproduce.add_argument(
        "items",
        nargs="*",
        metavar="ITEM",
        help="such as ssf/table3, fedsub, or extras: our own pictures (default: the papers' items)",
    )
    reproduce.add_argument("--workers", type=count, default=None, help="processes (default: one per core)")
    reproduce.add_argument(
        "--missing", action="store_true", help="run only the methods that a finished table lacks, and add them to it"
    )
    compared = add(
        "compare", compare_methods, "all methods on the same problems: quality, costs, where each breaks", *every
    )
    compared.add_argument("--methods", nargs="+", metavar="METHOD", help="only these (default: all)")
    compared.add_argument("--tasks", nargs="+", metavar="TASK", help="tasks and sweeps (default: all without files)")
    compared.add_argument("--workers", type=count, default=None, help="processes (default: one per core)")
    claims = add("claims", show_claims, "check the papers' claims and print the ledger")
    claims.add_argument("ids", nargs="*", metavar="ID", help="such as ssf.lemma2 or ssf (default: all)")
    claims.add_argument("--paper", default=None, help="only this paper's")
    claims.add_argument("--effort", choices=("quick", "full"), default="quick")
    claims.add_argument(
        "--seed",
        type=number_of(int, 0, 2**63 - 1),
        default=0,
        help="of the attacks' random starts (default: the ledger's own)",
    )
    claims.add_argument("--save", default=None, help="also put the records into this JSON file, beside others there")
    claims.add_argument(
        "--page", default=None, help="also write the ledger (with --save: the file's) as a Markdown page"
    )
    text = "every number that the papers print beside ours, from the finished items"
    report = add("report", show_report, text, "out", "scale")
    report.add_argument("--page", default=None, help="also write the report as a Markdown page")
    return top


# Of `run`: a method reads some of them, and those that it does not read are refused.
METHOD_OPTIONS: dict[str, dict[str, Any]] = {
    "lr": {"default": 0.01},
    "local_steps": {"default": 5},
    "rank": {"default": 10},
    "ratio": {"default": 1 / 32, "help": "compression ratio of factors"},
    "perturbations": {"default": 10, "help": "directions, P"},
    "projection": {"default": "cd", "type": str, "choices": list(PROJECTIONS), "help": "FedSub's"},
    "form": {"default": "printed", "type": str, "choices": ("printed", "sums"), "help": "FedSub's"},
}
COUNTS = ("local_steps", "rank", "perturbations")


class Heeded:
    """Options that say which of them were read."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._read = options, set()

    def __getattr__(self, name: str) -> Any:
        self._read.add(name)
        return getattr(self._options, name)


def method(options: argparse.Namespace) -> Algorithm:
    """The algorithm that the options ask for.

    Raises ValueError for an option that it does not heed.
    """
    heeded: Any = Heeded(options)
    entry = registry.method(options.algorithm)
    made = (entry.command or entry.make)(heeded)
    for name, option in METHOD_OPTIONS.items():
        given = getattr(options, name)
        if name not in heeded._read and given != option["default"]:
            expected = f"nothing of it with {options.algorithm}, which does not heed it"
            checks.reject(name, given, expected, f"leave out --{name.replace('_', '-')}")
    return made


def emit(value: Any) -> None:
    """JSON on stdout; a number that is not finite as a string."""
    print(json.dumps(records.plain(value), indent=1, allow_nan=False))


def show_list(options: argparse.Namespace) -> None:
    """list"""
    names = {
        "algorithms": registry.method_names(),
        "problems": registry.problem_names(),
        "items": list(ITEMS),
        "extras": list(EXTRAS),
        "claims": list(ledger.claims()),
    }
    if options.json:
        emit(names)
        return
    for kind, entries in names.items():
        print(f"{kind}:")
        for entry in entries:
            title = (ITEMS.get(entry) or EXTRAS.get(entry)) if kind in ("items", "extras") else None
            print(f"  {entry:<24}{title.title if title else ''}".rstrip())


def show_run(options: argparse.Namespace) -> None:
    """run"""
    device = checks.device("device", options.device)
    seeds = checks.whole("seeds", 1 if options.seeds is None else options.seeds, 1)
    rounds = checks.whole("rounds", options.rounds, 0, checks.MOST_ROUNDS)
    algorithm, offer = method(options), registry.problem(options.problem)
    torch.set_num_threads(1)
    for name in ("model", "task", "lora", "data"):
        if options.problem != "text" and getattr(options, name) is not None:
            expected = f"nothing of it with the problem {options.problem}"
            checks.reject(name, getattr(options, name), expected, f"leave out --{name}")
    if options.checkpoint is not None:
        checks.path("checkpoint", options.checkpoint)
    runs = []
    for seed in range(seeds):
        key = Key(seed).fold("data")
        problem, metrics = offer.make(key, str(device), options), offer.metrics
        if registry.method(options.algorithm).pooled:
            problem = Pooled(problem)
        folder = None if options.checkpoint is None else Path(options.checkpoint) / f"seed-{seed}"
        with tqdm(total=rounds, unit="round", disable=options.json or not sys.stderr.isatty()) as bar:
            history = simulate.run(
                algorithm,
                problem,
                rounds,
                sampled=options.sampled,
                seed=seed,
                every=max(1, rounds // 20),
                metrics=metrics,
                checkpoint=folder,
                checkpoint_every=checks.MOST,  # by time: a round may take microseconds or minutes
                progress=lambda done, bar=bar: bar.update(done - bar.n),
            )
        runs.append(
            {"seed": seed, "algorithm": repr(algorithm), "columns": history.columns, "diverged": history.diverged}
        )
        if not options.json:
            print(f"{algorithm!r}, seed {seed}")
            print("".join(f"{name:>12}" for name in ("round", *metrics, "up bytes", "down bytes")))
            for row in zip(*(history[name] for name in ("round", *metrics, "up_bytes", "down_bytes"))):
                print("".join(f" {x:>11.4e}" if isinstance(x, float) else f" {x:>11}" for x in row))
            if history.diverged:
                print(f"diverged in round {history.diverged.round}: {history.diverged.quantity} is not finite")
    if options.json:
        emit([{**run, "diverged": run["diverged"] and vars(run["diverged"])} for run in runs])


def chosen_items(names: Sequence[str], scale: str) -> list[store.Item]:
    """Items by name, all those of a paper, or all "extras"; the papers' own where none is named.

    Only what can be measured at a scale.
    """
    known = {name: item for name, item in {**ITEMS, **EXTRAS}.items() if scale in item.scales}
    if not names:
        return [item for name, item in known.items() if name in ITEMS]
    chosen: dict[str, store.Item] = {}
    for name in names:
        found = {key: item for key, item in known.items() if key == name or key.startswith(f"{name}/")}
        if name == "extras":
            found = {key: item for key, item in known.items() if key in EXTRAS}
        if not found:
            checks.reject("item", name, f"at scale {scale} one of {', '.join(known)}", "see python -m fedtheory list")
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


def measured(
    item: store.Item, runner: Runner, scale: str, seeds: int, title: str, options: argparse.Namespace, *kept: Any
) -> store.Result:
    """The result of an item, with a progress bar over its runs."""
    with tqdm(desc=title, unit="run", disable=options.json, leave=False) as bar:

        def tick(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        runner.tick = tick
        result = item.measure(runner, scale, seeds, *kept)
        result.runs = runner.provenance()
        result.notes += runner.said(result.runs)
        return result


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
    items = chosen_items(options.items, scale)
    out = writable(options.out, items)
    runner = Runner(out, device, options.workers)
    rows = []
    before = {item.name: finished(item, out, scale, seeds) for item in items} if options.missing else {}
    for number, item in enumerate(items, 1):
        started, title = time.time(), f"[{number}/{len(items)}] {item.name}"
        grown = before.get(item.name)
        kept = [] if grown is None else [grown["table"]]
        result = measured(item, runner, scale, seeds, title, options, *kept)
        stem = store.save(out, item, result, scale, seeds, time.time() - started, device, grown)
        record = records.load(stem.parent.parent, item.name)
        rows += report_rows(item.name, record)
        if not options.json:
            verdict = record["verdict"] if record["cells"] else "(explains)"
            print(
                f"[{number}/{len(items)}] {item.name:<16} {verdict:<11} {time.time() - started:6.1f} s  {stem}.png",
                flush=True,
            )
    if options.json:
        emit(rows)
    else:
        print()
        print_table(rows)


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
    names = options.tasks or plain
    for name in names:
        if name in compare.MEDIUM and name not in known:
            needs = frontier.divided(compare.MEDIUM[name], methods)[1][0]
            checks.reject("tasks", name, f"at scale {scale} one of {', '.join(known)}", f"pass one of these ({needs})")
        checks.choice("tasks", name, known)
    items = [frontier.item(name, methods) for name in names]
    out = writable(options.out, items)
    folder = out if len(methods) == len(compare.METHODS) else out / "some"  # never in the place of a whole comparison
    tasks = [compare.MEDIUM[name] for name in names if name in compare.MEDIUM and compare.MEDIUM[name].files]
    for task in tasks:  # what is missing is said before hours of other tasks
        for split in ("train", "test"):
            data.origin(task.options["data"], split=split, partial=bool(task.options.get("partial")))
    runner = Runner(out, device, options.workers)
    shown = []
    for number, item in enumerate(items, 1):
        started, title = time.time(), f"[{number}/{len(items)}] {item.name}"
        result = measured(item, runner, scale, seeds, title, options)
        stem = store.save(folder, item, result, scale, seeds, time.time() - started, device)
        shown.append(records.load(stem.parent.parent, item.name))
        if not options.json:
            print(f"{title}: {item.title}; {time.time() - started:.1f} s, {stem}.png")
            table(*frontier.lines(shown[-1]["table"]), digits=3)
            print("\n".join([*result.notes, ""]), flush=True)
    if options.json:
        emit(shown)


def show_claims(options: argparse.Namespace) -> None:
    """claims"""
    torch.set_num_threads(1)
    chosen = ledger.choose(options.ids, options.paper)
    for name in ("save", "page"):
        if getattr(options, name) is not None:
            require_target(name, getattr(options, name))
    saved = [] if options.save is None or not is_plain(options.save) else ledger.load(options.save)
    with tqdm(total=len(chosen), unit="claim", disable=options.json, leave=False) as bar:
        found = ledger.check(chosen, options.effort, lambda name: bar.update(), seed=options.seed)
    kept = [{**record, "effort": options.effort, "seed": options.seed} for record in found]
    try:
        if options.save is not None:
            kept = ledger.merge(saved, kept)
            ledger.save(options.save, records.plain(kept))
        if options.page is not None:
            write_target(options.page, ledger.page(kept).encode())
    finally:  # what was computed is shown also where the disk became full meanwhile
        show_records(found, options.json)


def show_records(found: Sequence[dict[str, Any]], as_json: bool) -> None:
    """The claims' verdicts, one line each."""
    if as_json:
        emit(found)
        return
    print("id | where | statement | assumed | verdict | evidence | worst ratio | control refuted by")
    for record in found:
        margin = "" if record["margin"] is None else f"{record['margin']:.4g}"
        control = record["control"] if record["control_refuted"] else f"NOT REFUTED: {record['control']}"
        place, outcome = ("id", "where", "statement"), ("verdict", "evidence")
        cells = [*(record[name] for name in place), ledger.assumed(record), *(record[name] for name in outcome)]
        print(" | ".join([*cells, margin, control]))
    counts = Counter(record["verdict"] for record in found)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def report_rows(item: str, record: dict[str, Any]) -> list[dict[str, Any]]:
    """One object per number that the paper prints."""
    rows = []
    for cell in record["cells"]:
        numbers = {name: records.number(cell[name]) for name in ("paper", "ours", "low", "high")}
        rows.append(
            {
                "item": item,
                "cell": cell["cell"],
                **numbers,
                "seeds": cell["seeds"],
                "scale": record["scale"],
                "verdict": cell["verdict"],
                "reason": cell["reason"],
            }
        )
    return rows


def show_report(options: argparse.Namespace) -> None:
    """report"""
    if options.page is not None:
        require_target("page", options.page)
    out = Path(options.out)
    rows = []
    for name in ITEMS:
        for folder in (out, *(out / scale for scale in reversed(records.SCALES))):
            if not records.made(folder, name):
                continue
            record = records.load(folder, name)
            if options.scale in (None, record["scale"]):
                rows += report_rows(name, record)
                break
    if options.page is not None:
        write_target(options.page, report_page(rows, out).encode())
    if options.json:
        emit(rows)
        return
    print_table(rows)
    items = list_items(rows)
    print("\n" + "\n".join(f"{item['item']:<15} | {item['verdict']:<12} | {item['reason']}" for item in items))
    print(f"{len(items)} items: {count_verdicts(items)}")


def list_items(rows: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Every item of the papers: the worst verdict of its numbers that were run, and how many were or why none was."""
    listed = []
    for name, item in ITEMS.items():
        own = [row for row in rows if row["item"] == name]
        ran = sum(row["verdict"] != records.VERDICTS[-1] for row in own)
        command = f"python -m fedtheory reproduce {name} --scale {item.scales[-1]}"
        reason = own[0]["reason"] if own else f"not made: {command}"
        if ran:
            reason = f"{ran} of {len(own)} numbers, at the {own[0]['scale']} scale: {item.title}"
        verdict = records.overall([row["verdict"] for row in own]) if own else records.VERDICTS[-1]
        listed.append({"item": name, "verdict": verdict, "reason": reason})
    return listed


def count_verdicts(rows: Sequence[dict[str, Any]]) -> str:
    """Such as "40 reproduced, 3 trend only, 2 differs"."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in records.VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count or verdict != "not run here")


def show_number(value: float) -> str:
    """Three digits; NaN for a run that diverged or was not made."""
    return "NaN" if math.isnan(value) else f"{value:.3g}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"


def show_ours(row: dict[str, Any]) -> str:
    """Mean, 95% interval and n."""
    text = show_number(row["ours"])
    if row["seeds"] > 1 and not math.isnan(row["ours"]):
        text += f" [{show_number(row['low'])}, {show_number(row['high'])}] n={row['seeds']}"
    return text


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """item | paper | ours (mean and interval over seeds) | verdict | reason"""
    width = max((len(f"{row['item']} {row['cell']}") for row in rows), default=10)
    print(f"{'item':<{width}} | {'paper':>8} | {'ours (95% interval over seeds)':<34} | {'verdict':<10} | reason")
    for row in rows:
        name, paper = f"{row['item']} {row['cell']}", show_number(row["paper"])
        print(f"{name:<{width}} | {paper:>8} | {show_ours(row):<34} | {row['verdict']:<10} | {row['reason']}")
    print(count_verdicts(rows))


def report_page(rows: Sequence[dict[str, Any]], out: Path) -> str:
    """docs/report.md: every printed number beside ours, with the picture of its item, and our own pictures in `out`."""
    lines = [
        "# The papers' numbers and ours",
        "",
        "Generated by `python -m fedtheory report --page docs/report.md` from the committed results; not edited by",
        "hand. *reproduced*: within a factor of 1.5 of the printed number, or the printed statement holds. *trend",
        "only*: the printed order holds, the level does not. *differs*: neither. *not run here*: the reason names",
        "what is missing and the command. Intervals: mean and 95% Student interval over seeds.",
        "",
        f"{count_verdicts(rows)}.",
        "",
        "## The items",
        "",
        "An item has the worst verdict of its numbers that were run.",
        "",
        "| item | verdict | numbers run, or what is missing |",
        "|---|---|---|",
    ]
    items = list_items(rows)
    lines += [f"| {item['item']} | {item['verdict']} | {item['reason']} |" for item in items]
    lines += ["", f"{len(items)} items: {count_verdicts(items)}."]
    for name in dict.fromkeys(row["item"] for row in rows):
        own = [row for row in rows if row["item"] == name]
        lines += ["", f"## {name}: {ITEMS[name].title}", "", f"![{name}](../figures/{name}.png)", ""]
        lines += [
            f"Scale: {own[0]['scale']}.",
            "",
            "| cell | paper | ours | verdict | reason |",
            "|---|---|---|---|---|",
        ]
        for row in own:
            paper = show_number(row["paper"])
            lines.append(f"| {row['cell']} | {paper} | {show_ours(row)} | {row['verdict']} | {row['reason']} |")
    for name, item in EXTRAS.items():
        if (out / name).with_suffix(".png").exists():
            lines += ["", f"## {name}: {item.title}", "", f"![{name}](../figures/{name}.png)"]
    return "\n".join(lines) + "\n"
