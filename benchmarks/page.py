"""Write the tables of docs/speed.md and docs/speed-details.md, and draw their picture, from benchmarks/results.

python benchmarks/page.py
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fedtheory.papers import style

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs"
METHODS = {"ssf-toy/fedavg": "FedAvg", "ssf-toy/scaffold": "SCAFFOLD", "ssf-toy/ssf": "SSF"}
NETWORKS = {
    "mlp/fedavg": "perceptron, FedAvg",
    "cnn/fedavg": "CNN, FedAvg",
    "cnn/decomfl": "CNN, DeComFL",
    "resnet110/fedavg": "ResNet-110, a step",
    "smollm2/fedavg": "SmolLM2-135M, a step of SGD",
    "smollm2/decomfl": "SmolLM2-135M, a step of DeComFL",
}
OWN = {
    "vit": "attention, dropout",
    "mixer": "Mixer, dropout",
    "gru": "GRU",
    "cnn": "small CNN",
    "mlp": "perceptron 64-32-10",
}
MEMORY = {  # what `memory.py` calls
    "clients": "SCAFFOLD, 100,000 clients, a regression",
    "images": "SCAFFOLD, 100,000 clients, a perceptron",
    "smollm2": "FedAvg, SmolLM2-135M",
}
SINCE = {  # what `since.py` calls
    "toy/fedavg": "SSF's problem, a round of FedAvg",
    "toy/scaffold": "SSF's problem, a round of SCAFFOLD",
    "toy/ssf": "SSF's problem, a round of SSF",
    "mlp/fedavg": "perceptron, a round of FedAvg",
    "cnn/fedavg": "CNN, a round of FedAvg",
    "cnn/decomfl": "CNN, a round of DeComFL",
    "evaluation": "FedMUD's four layers, 2,000 test images",
    "process": "a process that plays one round",
    "reproduce": "`reproduce --scale quick`, CPU",
    "reproduce, wall": "the same, by the clock",
}
PARTS = {  # of a round, from the pieces of `rounds.py --profile`
    "gradients": ("gradients",),
    "projector": ("projector: QR", "projector: the rest", "project and lift"),
    "draws": ("seeding generators", "random numbers", "sampling clients", "gathering batches"),
    "other client lines": ("client, other lines", "own rows in and out"),
    "server, messages, loop": ("server, other lines", "accounting", "loop and the rest"),
}


def record(name: str, device: str = "cpu") -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}-{device}.json").read_text())


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def brackets(value: float, quartiles: list[float], form: str) -> str:
    return f"{value:{form}} [{quartiles[0]:{form}}, {quartiles[1]:{form}}]"


def rounds_table() -> str:
    """Microseconds of a round, ours and the peers', and the share of the limit."""
    rows = []
    for name, row in record("rounds").items():
        if name in METHODS:
            us = {k: brackets(row[k] * 1e6, [q * 1e6 for q in row["quartiles"][k]], ".0f") for k in row["quartiles"]}
            ratios = [brackets(row[r], row[f"{r}_quartiles"], ".1f") for r in ("ratio", "ratio_lean")]
            share = f"{row['limit'] * 1e6:.0f} ({row['fraction_of_limit']:.0%})"
            rows.append([METHODS[name], us["ours"], share, us["peer"], us["lean"], *ratios])
    return table(["method", "ours", "limit", "with loaders", "without", "times", "times"], rows)


def summary_table() -> str:
    """Our time of a round, its share of the limit, and how many times as long the loops take."""
    rows = []
    for of, labels in (("rounds", METHODS), ("networks", dict(list(NETWORKS.items())[:3]))):
        for name, label in labels.items():
            row = record(of)[name]
            bare, loaders = (
                ("ratio", "") if name.endswith("decomfl") else ("ratio_lean", "ratio")
            )  # its peer has no loader
            times = [f"{row[ratio]:.1f} times" if ratio in row else "" for ratio in (bare, loaders)]
            what = f"{label}, SSF's problem" if of == "rounds" else label
            rows.append([what, f"{row['ours'] * 1e3:.3g} ms", f"{row['fraction_of_limit']:.0%}", *times])
    return table(["one round", "ours", "share of the limit", "bare loop", "loop with data loaders"], rows)


def parts() -> dict[str, dict[str, float]]:
    """Seconds of a round by PARTS, of each method."""
    found = record("profile")
    return {
        METHODS[name]: {part: sum(found[name][piece] for piece in pieces) for part, pieces in PARTS.items()}
        for name in METHODS
    }


def parts_table() -> str:
    """Where a round's microseconds go."""
    rows = []
    for method, split in parts().items():
        whole = sum(split.values())
        rows.append([method, *(f"{s * 1e6:.0f} ({s / whole:.0%})" for s in split.values()), f"{whole * 1e6:.0f}"])
    return table(["method", *PARTS, "sum"], rows)


def dispatch_table() -> str:
    """Microseconds of a round's PyTorch calls and of the Python around them."""
    rows = []
    for method, label in zip(("fedavg", "scaffold", "ssf"), METHODS.values()):
        row = record("dispatch")[method]
        cells = [
            brackets(1e6 * row[part]["median"], [1e6 * q for q in row[part]["quartiles"]], ".0f")
            for part in ("round", "dispatch", "arithmetic", "ours")
        ]
        rows.append([label, str(row["calls"]), *cells])
    return table(["method", "PyTorch calls", "a round", "their dispatch", "their arithmetic", "our Python"], rows)


def networks_table() -> str:
    """Milliseconds of a round, or of a step, ours in both precisions; share of the limit; the peers."""
    rows = []
    for name, label in NETWORKS.items():
        row = record("networks")[name]
        ms = {
            style: brackets(
                row[style] * 1e3, [q * 1e3 for q in row["quartiles"][style]], ",.0f" if row[style] > 0.1 else ".1f"
            )
            for style in ("ours", "bf16")
            if style in row
        }
        bare, loaders = ("ratio", "") if name.endswith("decomfl") else ("ratio_lean", "ratio")  # its peer has no loader
        ratios = [
            brackets(row[ratio], row[f"{ratio}_quartiles"], ".2f") if ratio in row else ""
            for ratio in ("ratio_bf16", bare, loaders)
        ]
        peak = f"{row['peak_bytes'] / 2**20:,.0f}" if "peak_bytes" in row else ""
        rows.append([label, ms["ours"], f"{row['fraction_of_limit']:.0%}", ms.get("bf16", ""), *ratios, peak])
    head = [
        "round or step",
        "ours, ms",
        "of the limit",
        "bf16, ms",
        "times faster",
        "bare loop",
        "with loaders",
        "peak MiB",
    ]
    return table(head, rows)


def own_table() -> str:
    """Ratios of a round on networks of one's own to a bare loop's."""
    rows = []
    found = record("own") if (RESULTS / "own-cpu.json").exists() else {}
    for name, label in OWN.items() if found else ():
        row = found[name]
        cells = [
            brackets(row[f"ratio_{way}"], row[f"ratio_{way}_quartiles"], ".2f") for way in ("ours", "stacked", "alone")
        ]
        rows.append([label, f"{row['loop'] * 1e3:.1f}", *cells, f"{row['bar']:.1f}"])
    return table(["network", "loop, ms", "ours / loop", "stacked / loop", "one by one / loop", "at most"], rows)


def memory_table() -> str:
    """MiB of a run's peak, and of the least that its method needs."""
    found = record("memory")
    rows = [
        [label, *(f"{found[name][part] / 2**20:,.0f}" for part in ("peak", "least")), f"{found[name]['ratio']:.2f}"]
        for name, label in MEMORY.items()
    ]
    return table(["a run", "its peak, MiB", "the least, MiB", "times"], rows)


def card_table() -> str:
    """Milliseconds of a round, or of a step, on a card; how many times as long the peers take, and ours otherwise."""
    rows = []
    for of in ("rounds", "networks", "step"):
        found = record(of, "cuda")
        card = found.pop("environment")["gpu"].split()[1]
        for name, row in found.items():
            label = NETWORKS.get(name) or f"SSF's problem, {METHODS[name]}"
            ours = brackets(row["ours"] * 1e3, [q * 1e3 for q in row["quartiles"]["ours"]], ".2f")
            bare, loaders = ("ratio", "") if name.endswith("decomfl") else ("ratio_lean", "ratio")
            ratios = [
                brackets(row[ratio], row[f"{ratio}_quartiles"], form) if ratio in row else ""
                for ratio, form in ((bare, ".1f"), (loaders, ".1f"), ("ratio_launched", ".2f"), ("ratio_bf16", ".2f"))
            ]
            rows.append([label, card, ours, f"{row['fraction_of_limit']:.2%}", *ratios, str(row["blocks"])])
    head = ["round or step", "card", "ours, ms", "of the limit", "bare loop", "with loaders", "launched one by one"]
    return table([*head, "float32 / bf16", "blocks"], rows)


def growth_table() -> str:
    """Exponents by decade."""
    rows = []
    for axis, found in record("scaling")["axes"].items():
        for method, line in found["methods"].items():
            exponents = zip(line["exponents"], line["exponent_quartiles"])
            times = f"{line['seconds'][0] * 1e3:.2g} to {line['seconds'][-1] * 1e3:.3g} ms"
            span = f"{axis} = {line['values'][0]:,} to {line['values'][-1]:,}"
            rows.append([span, method, times, *(brackets(e, q, ".2f") for e, q in exponents), found["stays"]])
    return table(["grows", "method", "a round", "1st decade", "2nd decade", "3rd decade", "stays"], rows)


def since_table() -> str:
    """What a commit took, and what the same takes now."""
    rows = []
    for name, row in record("since").items():
        if name == "environment":
            continue
        scale, unit = next(pair for pair in ((1e6, "us"), (1e3, "ms"), (1.0, "s")) if row["now"] * pair[0] < 1e3)
        form = f".{max(0, 2 - math.floor(math.log10(row['now'] * scale)))}f"
        shown = [_spread(row, part, scale, form) for part in ("before", "now")]
        rows.append([SINCE[name], *(f"{text} {unit}" for text in shown), _spread(row, "ratio", 1.0, ".2f")])
    return table(["the same call", "before", "now", "before / now"], rows)


def _spread(row: dict[str, Any], part: str, scale: float, form: str) -> str:
    """The median with its quartiles, in three digits; of one block there are none."""
    if row["blocks"] == 1:
        return f"{scale * row[part]:{form}}"
    return brackets(scale * row[part], [scale * q for q in row[f"{part}_quartiles"]], form)


@style.styled
def draw() -> Figure:
    """Above: where a round's time goes, the limit, and how many times longer the peers take. Below: growth."""
    axes_of = record("scaling")["axes"]
    figure = Figure(figsize=(7.2, 5.2))
    grid = figure.add_gridspec(2, len(axes_of), height_ratios=[1.15, 1])
    top = figure.add_subplot(grid[0, :])
    measured = record("rounds")
    for place, (name, method) in enumerate(METHODS.items()):
        left = 0.0
        for color, (part, seconds) in zip(style.SEQUENCE, parts()[method].items()):
            top.barh(-place, seconds * 1e6, left=left, height=0.6, color=color, label=part if place == 0 else None)
            left += seconds * 1e6
        row = measured[name]
        top.plot([row["limit"] * 1e6] * 2, [-place - 0.36, -place + 0.36], color="black", linewidth=2)
        said = f"loop with loaders: {row['ratio']:.0f} times as long, without: {row['ratio_lean']:.0f} times"
        top.annotate(said, (left, -place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=6.5)
    top.plot([], [], color="black", linewidth=2, label="arithmetic limit")
    top.set_yticks([-place for place in range(len(METHODS))], list(METHODS.values()))
    top.set(xlabel="CPU time of a round (us)", title="Where a round of SSF's problem goes", ylim=(-2.6, 1.4))
    top.set_xlim(0, 1.75 * max(sum(split.values()) for split in parts().values()) * 1e6)
    top.legend(ncols=3, loc="upper center")
    shared = None
    for column, (axis, found) in enumerate(axes_of.items()):
        axes = figure.add_subplot(grid[1, column], sharey=shared)
        shared = shared or axes
        for method, line in found["methods"].items():
            look = style.look(method)
            ms = [seconds * 1e3 for seconds in line["seconds"]]
            label = f"{method}: {line['exponents'][-1]:.2f}"
            axes.plot(line["values"], ms, marker=look.marker, markersize=3, label=label, **look.line)
        axes.set(xscale="log", yscale="log", xlabel=axis)
        if column == len(axes_of) // 2:
            axes.set_title("How it grows; behind the names the exponent of the last decade")
        axes.set_xticks(line["values"])
        axes.legend(loc="upper left", fontsize=5.5)
        if column:
            axes.tick_params(labelleft=False)
        else:
            axes.set_ylabel("CPU time of a round (ms)")
    return figure


PAGES = {
    "speed.md": (summary_table,),
    "speed-details.md": (
        rounds_table,
        parts_table,
        dispatch_table,
        networks_table,
        own_table,
        memory_table,
        card_table,
        growth_table,
        since_table,
    ),
}


def filled(name: str, page: str) -> str:
    """A page with its tables made anew; each is found by its head.

    Raises ValueError where a table is missing.
    """
    for make in PAGES[name]:
        made = make()
        head = re.escape(made.splitlines()[0])
        page, found = re.subn(rf"^{head}\n(\|.*\n)+", lambda _, made=made: made + "\n", page, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"docs/{name} has {found} tables that begin with {head}")
    return page


def main() -> None:
    for name in PAGES:
        path = DOCS / name
        path.write_text(filled(name, path.read_text()))
    draw().savefig(RESULTS / "speed.png")


if __name__ == "__main__":
    main()
