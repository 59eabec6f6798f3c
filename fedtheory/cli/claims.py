"""claims"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from fedtheory.cli.output import print_json
from fedtheory.core.files import is_plain, one_at_a_time, require_target, write_target
from fedtheory.running import records
from fedtheory.theory import ledger
from fedtheory.theory.letters import letters


def show(options: argparse.Namespace) -> None:
    """claims"""
    torch.set_num_threads(1)
    if options.save is not None:
        require_target("save", options.save)
    if options.page is not None:
        require_target("page", options.page, options.save)
    ledger.require_solvers()
    chosen = ledger.choose(options.ids, options.paper)
    saved = lambda: [] if not is_plain(options.save) else ledger.load(options.save)
    if options.save is not None:
        saved()  # it can be read
    with tqdm(total=len(chosen), unit="claim", disable=options.json or None, leave=False) as bar:
        found = ledger.check(chosen, options.effort, lambda name: bar.update(), seed=options.seed)
    kept = [{**record, "effort": options.effort, "seed": options.seed} for record in found]
    try:
        if options.save is not None:
            with one_at_a_time(Path(options.save).absolute().parent):  # others may have saved meanwhile
                before = saved()
                kept = ledger.merge(before, kept)
                unknown = sorted({record["id"] for record in before} - {record["id"] for record in kept})
                if unknown:
                    text = f"{options.save}: left out, for this version does not have the claims: {', '.join(unknown)}"
                    print(text, file=sys.stderr)
                ledger.save(options.save, records.plain(kept))
        if options.page is not None:
            write_target(options.page, ledger.page(kept).encode())
    finally:  # what was computed is shown also where the disk became full meanwhile
        show_records(found, options.json)


def show_records(found: Sequence[dict[str, Any]], as_json: bool) -> None:
    """The claims' verdicts, one line each."""
    if as_json:
        print_json(found)
        return
    print("id | where | statement | assumed | verdict | evidence | worst ratio | control refuted by")
    for record in found:
        margin = "" if record["margin"] is None else f"{record['margin']:.4g}"
        control = record["control"] if record["control_refuted"] else f"NOT REFUTED: {record['control']}"
        if record["verdict"] == "unchecked":
            control = record["detail"]
        said = [record["where"], record["statement"], letters(ledger.assumed(record))]
        print(" | ".join([record["id"], *said, record["verdict"], record["evidence"], margin, letters(control)]))
    counts = Counter(record["verdict"] for record in found)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
