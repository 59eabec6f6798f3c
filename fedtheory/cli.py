"""The command line: list, run, reproduce, compare, report, claims. Each takes --json."""

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from fedtheory import checks, compare, data, simulate
from fedtheory.algorithm import Algorithm
from fedtheory.algorithms import (
    BAFFLE,
    DGC,
    EF21P,
    FLSS,
    LBGM,
    MOON,
    SSF,
    STC,
    DeComFL,
    FedAvg,
    FedBAT,
    FedCom,
    FedDC,
    FedDyn,
    FedGen,
    FedHM,
    FedMUD,
    FedNTD,
    FedProx,
    FedSub,
    FedZO,
    FetchSGD,
    FlexLoRA,
    MeZO,
    ProjectedFedAvg,
    Scaffold,
    SignSGD,
    TopK,
)
from fedtheory.decomposition import Hadamard, Kronecker, LowRank
from fedtheory.figures import EXTRAS, ITEMS, Runner, frontier, store
from fedtheory.key import Key
from fedtheory.notebook import table
from fedtheory.problem import Problem
from fedtheory.problems import (
    PROBLEMS,
    ImageClassification,
    LogisticRegression,
    MatrixRegression,
    Pooled,
    Quadratic,
    TextClassification,
    sentiment,
)
from fedtheory.problems.text import TASKS
from fedtheory.subspace import Coordinate, Gaussian, Identity, Projection, Spherical
from fedtheory.theory import ledger

PROJECTIONS: dict[str, Callable[[int], Projection]] = {
    "cd": Coordinate,
    "ss": Spherical,
    "rd": Gaussian,
    "identity": lambda r: Identity(),
}
ALGORITHMS: dict[str, Callable[[argparse.Namespace], Algorithm]] = {
    "FedAvg": lambda a: FedAvg(a.lr, a.local_steps),
    "SCAFFOLD": lambda a: Scaffold(a.lr, a.local_steps),
    "FedSub": lambda a: FedSub(a.lr, a.local_steps, PROJECTIONS[a.projection](a.rank), form=a.form),
    "SSF": lambda a: SSF.haar(a.lr, a.local_steps, a.rank),
    "FedMUD": lambda a: FedMUD(a.lr, a.local_steps, LowRank(a.ratio, 1.0, layers="matrices")),
    "FedMUD+BKD+AAD": lambda a: FedMUD(a.lr, a.local_steps, Kronecker(a.ratio, 1.0, "aad", layers="matrices")),
    "FLSS": lambda a: FLSS(a.lr, a.local_steps, a.rank, warm_up=max(a.rank, a.rounds // 2)),
    "SignSGD": lambda a: SignSGD(a.lr, a.local_steps),
    "DeComFL": lambda a: DeComFL(a.lr, a.local_steps, a.perturbations),
    "FedProx": lambda a: FedProx(a.lr, a.local_steps, mu=0.01),
    "FedDyn": lambda a: FedDyn(a.lr, a.local_steps, alpha=0.5),
    "FedDC": lambda a: FedDC(a.lr, a.local_steps, alpha=0.5),
    "Top-k": lambda a: TopK(a.lr, a.local_steps, a.ratio),
    "STC": lambda a: STC(a.lr, a.local_steps, a.ratio),
    "DGC": lambda a: DGC(a.lr, a.local_steps, a.ratio),
    "FedCom": lambda a: FedCom(a.lr, a.local_steps),
    "FetchSGD": lambda a: FetchSGD(a.lr, a.local_steps, a.ratio, momentum=0.0, clear="zero"),
    "LBGM": lambda a: LBGM(a.lr, a.local_steps),
    "EF21-P": lambda a: EF21P(a.lr, a.local_steps, a.ratio),
    "FedBAT": lambda a: FedBAT(a.lr, a.local_steps),
    "MOON": lambda a: MOON(a.lr, a.local_steps, mu=0.01, temperature=1.0),
    "FedNTD": lambda a: FedNTD(a.lr, a.local_steps, beta=0.001, temperature=1.0),
    "FedGen": lambda a: FedGen(a.lr, a.local_steps),
    "FedZO": lambda a: FedZO(a.lr, a.local_steps, a.perturbations),
    "MeZO": lambda a: MeZO(a.lr, a.local_steps, a.perturbations),
    "BAFFLE": lambda a: BAFFLE(a.lr, a.perturbations),
    "FedLMT": lambda a: FedMUD.of_model(a.lr, a.local_steps, LowRank(a.ratio, 0.3, layers="matrices")),
    "FedPara": lambda a: FedMUD.of_model(a.lr, a.local_steps, Hadamard(a.ratio, 0.7, layers="matrices")),
    "FedHM": lambda a: FedHM(a.lr, a.local_steps, LowRank(a.ratio, layers="matrices")),
    "FedLoRU": lambda a: FedMUD(a.lr, a.local_steps, LowRank(a.ratio, 1.0, layers="matrices"), reset_every=10),
    "FlexLoRA": lambda a: FlexLoRA(a.lr, a.local_steps, (LowRank(a.ratio, 1.0, layers="matrices"),)),
    "ProjectedFedAvg": lambda a: ProjectedFedAvg(a.lr, a.local_steps, a.rank),
}
MAKERS: dict[str, Callable[[Key, str], Problem]] = {
    "quadratic": lambda key, device: Quadratic.random(10, 20, key, device=device),
    "matrix_regression": lambda key, device: MatrixRegression.ssf(0.5, key, device=device),
    "logistic_regression": lambda key, device: LogisticRegression.fedsub(key, device=device),
    "images": lambda key, device: ImageClassification.load("digits", "mlp", key, batch=32, device=device),
}
DEFAULT_SEEDS = {"quick": 3, "medium": 3, "paper": 5}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0, or 2 after an error message on stderr for input that was refused."""
    options = parser().parse_args(arguments)
    try:
        if options.data is not None:
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


def parser() -> argparse.ArgumentParser:
    """The options of every command."""
    top = argparse.ArgumentParser(prog="python -m fedtheory", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="list|run|reproduce|compare|report|claims")

    def add(name: str, command: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        sub.add_argument("--json", action="store_true", help="print JSON and nothing else on stdout")
        sub.add_argument("--out", default="figures", help="folder of figures and tables (default: figures)")
        sub.add_argument("--device", default="cpu", help="cpu or cuda")
        sub.add_argument("--seeds", type=int, default=None, help="number of seeds (default: 3; paper: 5)")
        sub.add_argument("--scale", choices=store.SCALES, default=None, help="quick, medium (needs --data), or paper")
        sub.add_argument("--data", default=None, help="folder of image sets as published (default: FEDTHEORY_DATA)")
        return sub

    add("list", show_list, "names of algorithms, problems, figures and tables, claims")
    run = add("run", show_run, "one algorithm on one problem")
    run.add_argument("algorithm", choices=list(ALGORITHMS))
    run.add_argument("problem", choices=list(PROBLEMS))
    run.add_argument("--rounds", type=int, default=200)
    run.add_argument("--sampled", type=int, default=None, help="clients per round (default: all)")
    run.add_argument("--lr", type=float, default=0.01)
    run.add_argument("--local-steps", type=int, default=5)
    run.add_argument("--rank", type=int, default=10)
    run.add_argument("--ratio", type=float, default=1 / 32, help="compression ratio of factors")
    run.add_argument("--perturbations", type=int, default=10, help="directions, P")
    run.add_argument("--model", default=None, help="text: folder or hub name of a language model (default: a tiny one)")
    run.add_argument(
        "--task", choices=list(TASKS), default=None, help="text: a task in the folder --data (default: sst2)"
    )
    run.add_argument("--lora", type=int, default=None, help="text: train adapters of this rank only")
    run.add_argument("--projection", choices=list(PROJECTIONS), default="cd", help="FedSub's")
    run.add_argument("--form", choices=("printed", "sums"), default="printed", help="FedSub's")
    run.add_argument("--checkpoint", default=None, help="folder to save to and go on from")
    reproduce = add("reproduce", reproduce_items, "figures and tables of the papers")
    reproduce.add_argument(
        "items",
        nargs="*",
        metavar="ITEM",
        help="such as ssf/table3, fedsub, or extras: our own pictures (default: the papers' items)",
    )
    reproduce.add_argument("--workers", type=int, default=None, help="processes (default: one per core)")
    reproduce.add_argument(
        "--missing", action="store_true", help="run only the methods that a finished table lacks, and add them to it"
    )
    compared = add("compare", compare_methods, "all methods on the same problems: quality, costs, where each breaks")
    compared.add_argument("--methods", nargs="+", metavar="METHOD", help="only these (default: all)")
    compared.add_argument("--tasks", nargs="+", metavar="TASK", help="tasks and sweeps (default: all without files)")
    compared.add_argument("--workers", type=int, default=None, help="processes (default: one per core)")
    claims = add("claims", show_claims, "check the papers' claims and print the ledger")
    claims.add_argument("ids", nargs="*", metavar="ID", help="such as ssf.lemma2 or ssf (default: all)")
    claims.add_argument("--paper", default=None, help="only this paper's")
    claims.add_argument("--effort", choices=("quick", "full"), default="quick")
    claims.add_argument("--seed", type=int, default=0, help="of the attacks' random starts (default: the ledger's own)")
    claims.add_argument("--save", default=None, help="also put the records into this JSON file, beside others there")
    claims.add_argument(
        "--page", default=None, help="also write the ledger (with --save: the file's) as a Markdown page"
    )
    report = add("report", show_report, "every number that the papers print beside ours, from the finished items")
    report.add_argument("--page", default=None, help="also write the report as a Markdown page")
    return top


def emit(value: Any) -> None:
    """JSON on stdout; a number that is not finite as a string."""
    print(json.dumps(store.plain(value), indent=1, allow_nan=False))


def show_list(options: argparse.Namespace) -> None:
    """list"""
    names = {
        "algorithms": list(ALGORITHMS),
        "problems": list(PROBLEMS),
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


def text(options: argparse.Namespace, key: Key) -> TextClassification:
    """A task for a pretrained language model, or for the small one that is made on the spot."""
    if options.model is None:
        for name in ("task", "lora"):
            if getattr(options, name) is not None:
                checks.reject(name, getattr(options, name), "a pretrained model", "name its folder with --model")
        return sentiment.problem(key, device=options.device)
    folder = os.environ.get("FEDTHEORY_DATA", ".")
    task = options.task or "sst2"
    return TextClassification.load(options.model, task, folder, key, lora=options.lora, device=options.device)


def show_run(options: argparse.Namespace) -> None:
    """run"""
    device = checks.device("device", options.device)
    seeds = checks.whole("seeds", 1 if options.seeds is None else options.seeds, 1)
    torch.set_num_threads(1)
    for name in ("model", "task", "lora"):
        if options.problem != "text" and getattr(options, name) is not None:
            expected = f"nothing of it with the problem {options.problem}"
            checks.reject(name, getattr(options, name), expected, f"leave out --{name}")
    runs = []
    for seed in range(seeds):
        key = Key(seed).fold("data")
        problem = text(options, key) if options.problem == "text" else MAKERS[options.problem](key, str(device))
        metrics = ("loss", "accuracy") if options.problem in ("images", "text") else ("error",)
        algorithm = ALGORITHMS[options.algorithm](options)
        if isinstance(algorithm, MeZO):
            problem = Pooled(problem)
        folder = None if options.checkpoint is None else Path(options.checkpoint) / f"seed-{seed}"
        rounds = checks.whole("rounds", options.rounds, 0)
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
    record = store.load(store.place(out, item.name, scale).parent.parent, item.name)
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
        return item.measure(runner, scale, seeds, *kept)


def reproduce_items(options: argparse.Namespace) -> None:
    """reproduce"""
    scale = options.scale or "quick"
    device = str(checks.device("device", options.device))
    seeds = checks.whole("seeds", DEFAULT_SEEDS[scale] if options.seeds is None else options.seeds, 1)
    if options.workers is not None:
        checks.whole("workers", options.workers, 1)
    items = chosen_items(options.items, scale)
    out = checks.folder("out", options.out)
    runner = Runner(out, device, options.workers)
    rows = []
    for number, item in enumerate(items, 1):
        started, title = time.time(), f"[{number}/{len(items)}] {item.name}"
        grown = finished(item, out, scale, seeds) if options.missing else None
        kept = [] if grown is None else [grown["table"]]
        result = measured(item, runner, scale, seeds, title, options, *kept)
        stem = store.save(out, item, result, scale, seeds, time.time() - started, device, grown)
        record = store.load(stem.parent.parent, item.name)
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
        task = compare.MEDIUM.get(checks.choice("tasks", name, known))
        if task is not None and task.files:  # what is missing is said before hours of other tasks
            partial = bool(task.options.get("partial"))
            for split in ("train", "test"):
                data.load(task.options["data"], split=split, partial=partial)
    items = [frontier.item(name, methods) for name in names]
    out = checks.folder("out", options.out)
    folder = out if len(methods) == len(compare.METHODS) else out / "some"  # never in the place of a whole comparison
    runner = Runner(out, device, options.workers)
    records = []
    for number, item in enumerate(items, 1):
        started, title = time.time(), f"[{number}/{len(items)}] {item.name}"
        result = measured(item, runner, scale, seeds, title, options)
        stem = store.save(folder, item, result, scale, seeds, time.time() - started, device)
        records.append(store.load(stem.parent.parent, item.name))
        if not options.json:
            print(f"{title}: {item.title}; {time.time() - started:.1f} s, {stem}.png")
            table(*frontier.lines(records[-1]["table"]), digits=3)
            print("\n".join([*result.notes, ""]), flush=True)
    if options.json:
        emit(records)


def show_claims(options: argparse.Namespace) -> None:
    """claims"""
    torch.set_num_threads(1)
    chosen = ledger.choose(options.ids, options.paper)
    saved = [] if options.save is None else ledger.load(options.save)
    with tqdm(total=len(chosen), unit="claim", disable=options.json, leave=False) as bar:
        records = ledger.check(chosen, options.effort, lambda name: bar.update(), seed=options.seed)
    kept = [{**record, "effort": options.effort, "seed": options.seed} for record in records]
    if options.save is not None:
        kept = ledger.merge(saved, kept)
        store.write_atomic(
            Path(options.save), (json.dumps(store.plain(kept), indent=1, allow_nan=False) + "\n").encode()
        )
    if options.page is not None:
        store.write_atomic(Path(options.page), ledger.page(kept).encode())
    if options.json:
        emit(records)
        return
    print("id | where | statement | verdict | evidence | worst ratio | control refuted by")
    for record in records:
        margin = "" if record["margin"] is None else f"{record['margin']:.4g}"
        control = record["control"] if record["control_refuted"] else f"NOT REFUTED: {record['control']}"
        fields = ("id", "where", "statement", "verdict", "evidence")
        print(" | ".join([*(str(record[name]) for name in fields), margin, control]))
    counts = Counter(record["verdict"] for record in records)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def report_rows(item: str, record: dict[str, Any]) -> list[dict[str, Any]]:
    """One object per number that the paper prints."""
    rows = []
    for cell in record["cells"]:
        numbers = {name: store.number(cell[name]) for name in ("paper", "ours", "low", "high")}
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
    out = Path(options.out)
    rows = []
    for name in ITEMS:
        for folder in (out, *(out / scale for scale in reversed(store.SCALES))):
            if not (folder / name).with_suffix(".json").exists():
                continue
            record = store.load(folder, name)
            if options.scale in (None, record["scale"]):
                rows += report_rows(name, record)
                break
    if options.page is not None:
        store.write_atomic(Path(options.page), report_page(rows, out).encode())
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
        ran = sum(row["verdict"] != store.VERDICTS[-1] for row in own)
        command = f"python -m fedtheory reproduce {name} --scale {item.scales[-1]}"
        reason = own[0]["reason"] if own else f"not made: {command}"
        if ran:
            reason = f"{ran} of {len(own)} numbers, at the {own[0]['scale']} scale: {item.title}"
        verdict = store.overall([row["verdict"] for row in own]) if own else store.VERDICTS[-1]
        listed.append({"item": name, "verdict": verdict, "reason": reason})
    return listed


def count_verdicts(rows: Sequence[dict[str, Any]]) -> str:
    """Such as "40 reproduced, 3 trend only, 2 differs"."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in store.VERDICTS}
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
