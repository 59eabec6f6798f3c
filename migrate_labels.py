"""Give committed tables the columns of what was run, and records the kinds of their cells, titles and notes.

Nothing is run: labels come from the specs that `measure` asks for (of a made-up runner), and by hand where there are
none. No number is touched: the columns that stay are copied as text. Pictures are drawn again, records sealed.
"""

import csv
import io
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, "tests")
from test_labels import ALL, FIGURES, ITSELF, measured

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.core.files import seal, sha256, unseal, write_atomic
from fedtheory.core.records import RAN, behind
from fedtheory.figures.decomfl import costs, curves, spectrum
from fedtheory.figures.flss import items as flss
from fedtheory.figures.fedsub import items as fedsub
from fedtheory.figures.ssf import items as ssf
from fedtheory.figures.store import Spec

DROPPED = ("runs", "here")
FREE = ("frontier/ranks", "frontier/tuning")  # the order of their rows hangs on the numbers
RENAMED = {
    "flss/table1": ("ResNet-18", "ResNet-18 (run: flss-cnn)"),
    "flss/table2": ("FMNIST", "FMNIST (run: cifar10)"),
    "mud/fig6": ("CIFAR-10 ", "digits "),
    "mud/fig7": ("CIFAR-10 ", "digits "),
}


def spectrum_label(row):
    options, length, *_ = spectrum.SCALES["medium"]
    pairs = tuple({"clients": 1, "batch": 64, **options}.items())
    return Spec(FedAvg(0.1, 50), "images", pairs, length // 50, 0).ran()


def flss_label(data, network, rounds):
    at = flss.SETTINGS["medium"]
    one = flss.spec(at, FedAvg(0.05, 1), 0.5, 0, data=data, network=network)
    return one.ran() | {"ran rounds": rounds}


BY_HAND = {
    "decomfl/fig5a": spectrum_label,
    "decomfl/fig5b": lambda row: behind("the authors' logs"),
    "decomfl/speedup": lambda row: behind("exact expectation") if row["kind"] == "exact" else behind("quadratics", "none", int(row["R"])),
    "decomfl/table2": lambda row: costs.counting(10, rounds_of(row)).ran() if "DeComFL" in row["quantity"] else costs.COMPUTED,
    "decomfl/table4": lambda row: costs.COMPUTED if "history" in row["setting"] else behind("a random image", row["setting"].split(", ")[-1], 1),
    "decomfl/table5": lambda row: costs.COMPUTED,
    "decomfl/table6": lambda row: costs.counting(int(row["quantity"].split(",")[0][4:]), rounds_of(row)).ran(),
    "deep/budget": lambda row: behind("random images, one step", row["network"]),
    "fedsub/table1": lambda row: behind("matrix regression, 4 clients", "one layer", 1),
    "fedsub/why_nan": lambda row: fedsub.spec(FedAvg(1, 1), 0, 250).ran(),
    "fedsub/worst_case": lambda row: behind("worst case over losses"),
    "ssf/worst_case": lambda row: behind("worst case over losses"),
    "ssf/why_nan": lambda row: ssf.spec(FedAvg(1, 1), 0.5, 0, 2500).ran(),
    "flss/fig1bcd": lambda row: flss_label(None, row["network"], 25),
    "flss/fig2": lambda row: flss_label("mnist", None, int(row["panel"].split("T = ")[1])),
    "flss/rank_bound": lambda row: behind("quadratics", "none", 200) if row["panel"].startswith("warm-up") else behind("exact expectation"),
    "mud/repaired_rate": lambda row: behind("a quadratic, 2 x 2", "none", int(float(row["T"]))) if row["panel"] == "runs" else behind("exact expectation"),
}  # fmt: skip


def rounds_of(row):
    """Of a task of Tables 2 and 6, from Table 5."""
    *model, task = row["setting"].split()
    return costs.TABLE5[model[0] if model else "OPT-125M, LoRA"][costs.TASKS.index(task)][1]


def kind_of(name, cell):
    text = cell["cell"]
    if name in ("decomfl/table1", "fedsub/table1"):
        return "count"
    if name == "decomfl/table5":
        return "arithmetic"
    if name == "decomfl/table4":
        return "arithmetic" if "server (negligible)" in text else "count"
    if name in ("decomfl/table2", "decomfl/table6"):
        return "arithmetic" if text.endswith("FedZO, TB") else "count" if text.endswith(", MB") else "run"
    return "run"


NOTES = {
    "decomfl/fig2a": [curves.figure_2("medium")],
    "decomfl/fig2b": [curves.figure_2("medium")],
    "decomfl/fig3a": [curves.TOPKEEPS, curves.NINE_TENTHS],
    "decomfl/fig3b": [curves.TOPKEEPS],
    "decomfl/fig6": [curves.TOPKEEPS],
}


def migrate(name):
    path = FIGURES / f"{name}.json"
    if RAN[0] in path.with_suffix(".csv").read_text().splitlines()[0]:
        return "as it was"
    record = unseal(path.read_bytes())
    text = path.with_suffix(".csv").read_text()
    assert sha256(text.encode()) == record["files"]["csv"]
    rows = list(csv.DictReader(io.StringIO(text)))
    if RAN[0] in rows[0]:
        return "as it was"
    renamed = RENAMED.get(name)
    said = []
    for row in rows:
        for part in DROPPED:
            row.pop(part, None)
        if renamed and row["panel"].startswith(renamed[0]):
            row["panel"] = row["panel"].replace(*renamed)
    if renamed:
        said.append(f"{renamed[0]!r} is now {renamed[1]!r}")
    fresh = None
    if name in BY_HAND:
        labels = [BY_HAND[name](row) for row in rows]
    else:
        fresh, _ = measured(name, record["scale"], len(record["seeds"]))
        if name.startswith("frontier/"):  # the order of rows hangs on the numbers, or on the order of methods
            of = {(row["task"], str(row.get("value", "")) if name not in FREE else ""): row for row in fresh.table}
            labels = [of[row["task"], row.get("value", "") if name not in FREE else ""] for row in rows]
        elif name == "mud/tuning":  # methods were added later
            of = {(row["method"], str(row["value"])): row for row in fresh.table}
            labels = [of[row["method"], row["value"]] for row in rows]
        else:
            labels = fresh.table
            assert len(labels) == len(rows), (name, len(labels), len(rows))
            for row, new in zip(rows, labels):
                for part, value in new.items():
                    if part not in RAN and isinstance(value, str):
                        assert row[part] == value, (name, part, row[part], value)
            assert list(new) == [*rows[0], *RAN] or set(new) == {*rows[0], *RAN}, name
    for row, label in zip(rows, labels):
        row |= {part: str(label[part]) for part in RAN}
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    kinds = {} if fresh is None else {cell.cell: cell.kind for cell in fresh.cells}
    for cell in record["cells"]:
        if renamed:
            for part in ("cell", "reason"):
                cell[part] = cell[part].replace(*renamed)
        if kinds and cell["verdict"] != "not run here":
            assert cell["cell"] in kinds, (name, cell["cell"])
        cell["kind"] = kinds.get(cell["cell"], "run") if name not in ("decomfl/table1",) and kinds else kind_of(name, cell)
    new_notes = list(NOTES.get(name, []))
    if fresh is not None and name.startswith("flss/"):
        new_notes += [note for note in fresh.notes if note.startswith("A reduced setting")]
    if name in ("flss/fig1bcd", "flss/fig2"):
        new_notes += [n for n in flss.notes_of(flss.SETTINGS["medium"], "medium") if n.startswith("A reduced")]
    if name == "flss/longer":
        new_notes = [n.replace("50 rounds, R = 5", "200 rounds, R = 20") for n in new_notes]
    if name == "flss/table4":
        assert all(float(r["up_mb"]) >= float(r["down_mb"]) for r in rows if r["method"] == "LBGM")
        new_notes += [flss.LBGM_SENT_ALL]
    record["notes"] += [note for note in new_notes if note not in record["notes"]]
    if record["title"] != ALL[name].title:
        said.append(f"title {record['title']!r} is now {ALL[name].title!r}")
        record["title"] = ALL[name].title
    table = stream.getvalue().encode()
    record["files"]["csv"] = sha256(table)
    write_atomic(path.with_suffix(".csv"), table)
    record.pop("sha256", None)
    write_atomic(path, seal(record))
    labels = sorted({" / ".join(row[part] for part in RAN) for row in rows})
    kinds = {kind: sum(cell["kind"] == kind for cell in record["cells"]) for kind in ("count", "arithmetic")}
    said += [f"{n} cells are {kind}" for kind, n in kinds.items() if n]
    said += [f"{len(new_notes)} notes added"] * bool(new_notes)
    return "; ".join([f"{len(rows)} rows: {', '.join(labels)}", *said])


for name in ALL:
    if (FIGURES / f"{name}.json").exists():
        started = time.time()
        print(f"{name}: {migrate(name)} ({time.time() - started:.1f} s)", flush=True)
