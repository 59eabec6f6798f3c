"""DeComFL: what it costs. Table 1 (communication), Table 4 (memory), the cost columns of Tables 2 and 6, Table 5."""

import math
from dataclasses import replace
from functools import cache
from math import nan
from typing import Any

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL, Model
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedcom import FedCom
from fedtheory.algorithms.fedzo import FedZO
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.engine import drain
from fedtheory.core.key import Key
from fedtheory.core.loop import sample_clients
from fedtheory.core.problem import Problem
from fedtheory.maps.directions import Direction
from fedtheory.papers import judge, style
from fedtheory.papers.decomfl.curves import ALL
from fedtheory.papers.decomfl.text import READING, SIZES, Wanted, accuracies, convergence, methods
from fedtheory.papers.store import Item, Result, Spec, Wants, itself
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.models.networks import network
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running import meter, verdicts
from fedtheory.running.records import Cell, Row, Table, behind
from fedtheory.running.simulate import run

TASKS = ("SST-2", "CB", "WSC", "WIC", "RTE", "BoolQ")
# Table 2. Accuracy of FedAvg, MeZO, FedZO (P = 10), DeComFL (P = 10); TB of FedAvg and FedZO, MB of DeComFL.
TABLE2 = {
    "OPT-125M": (
        ((87.32, 83.99, 84.11, 85.08), (0.24, 0.75, 0.36)),
        ((82.14, 72.49, 74.41, 75.00), (0.12, 0.38, 0.12)),
        ((63.25, 55.18, 59.47, 59.59), (0.12, 0.75, 0.36)),
        ((60.83, 53.25, 53.37, 53.38), (0.12, 0.75, 0.36)),
        ((63.96, 52.91, 54.16, 57.05), (0.48, 0.50, 0.24)),
        ((62.34, 61.46, 61.25, 61.60), (0.24, 0.50, 0.24)),
    ),
    "OPT-1.3B": (
        ((90.38, 90.23, 90.33, 90.78), (1.27, 5.20, 0.24)),
        ((83.93, 74.01, 74.49, 75.71), (1.27, 7.80, 0.36)),
        ((65.65, 58.21, 61.11, 64.16), (1.27, 7.80, 0.36)),
        ((65.82, 55.95, 56.08, 56.14), (1.27, 5.20, 0.24)),
        ((66.13, 57.57, 59.21, 60.89), (2.54, 3.90, 1.80)),
        ((63.83, 61.98, 62.14, 62.50), (5.08, 3.90, 1.80)),
    ),
}
# Table 6, OPT-125M with LoRA. Accuracy of MeZO, FedZO (P = 5), DeComFL (P = 5, P = 10); MB of DeComFL (P = 5, P = 10).
TABLE6 = (
    ((85.07, 85.34, 85.42, 85.44), (0.18, 0.36)),
    ((69.64, 70.55, 71.07, 71.43), (0.06, 0.12)),
    ((52.66, 54.61, 54.53, 57.03), (0.06, 0.12)),
    ((53.49, 53.12, 53.08, 53.71), (0.12, 0.24)),
    ((50.15, 50.92, 51.40, 51.40), (0.03, 0.06)),
    ((60.68, 60.53, 60.12, 60.78), (0.03, 0.06)),
)
# Table 5: learning rate and rounds.
TABLE5 = {
    "OPT-125M": ((5e-6, 3000), (2e-6, 1000), (5e-6, 3000), (2e-7, 3000), (2e-6, 2000), (2e-6, 2000)),
    "OPT-1.3B": ((2e-6, 2000), (5e-6, 3000), (5e-6, 3000), (2e-7, 2000), (2e-6, 1500), (2e-6, 1500)),
    "OPT-125M, LoRA": ((1e-4, 3000), (1e-4, 1000), (1e-4, 1000), (1e-4, 2000), (5e-5, 500), (1e-4, 500)),
}
ROUNDS = 3000  # the longest of them
# Fig. 5 right, read from the authors' logs (not printed in the paper): accuracy after 500, 1000, 1500, 2000 rounds.
FIG5 = {
    "OPT-125M": (0.8281, 0.8449, 0.8393, 0.8371),
    "OPT-350M": (0.8270, 0.8627, 0.8705, 0.8817),
    "OPT-1.3B": (0.8192, 0.8750, 0.9018, 0.9118),
    "OPT-2.7B": (0.8504, 0.8984, 0.9208, 0.9196),
}


COMPUTED = behind("computed from printed numbers")


def counted_cell(cell: str, paper: float, ours: float, why: str, kind: str = "count") -> Cell:
    """A counted or computed number, within a factor of 1.5."""
    return judge.counted(cell, paper, ours, verdicts.times(paper), f"ours/paper = {ours / paper:.3g}; {why}", kind)


def row(setting: str, quantity: str, paper: float, ours: float, of: Row = COMPUTED) -> Row:
    return {"setting": setting, "quantity": quantity, "paper": paper, "ours": ours, **of}


def measure_1(scale: str, seeds: int) -> Wants[Result]:
    """Scalars per round, counted over the second half of a run: by then most clients have taken part."""
    M, m, K, P, rounds = 100, 10, 2, 5, 200
    options = {"data": "digits", "network": "mlp", "clients": M, "batch": 8}
    d = network("mlp", (1, 8, 8), 10).layout.size
    chosen: dict[str, tuple[Algorithm, float, int]] = {
        "FedAvg": (FedAvg(0.1, 1), m * d, m * d),
        "FedZO": (FedZO(1e-4, K, P), m * d, m * d),
        "FedCom": (FedCom(0.1, K, bits=8), m * d / 4, m * d),
        "DeComFL": (DeComFL(1e-4, K, P), m * K * P, 2 * M * K * P),
        "DeComFL, low rank (K = 1)": (DeComFL(1e-4, 1, P), m * P, 2 * M * P),
    }
    specs = {
        name: Spec(a, "images", tuple(sorted(options.items())), rounds, 0, m, rounds // 2, "float32", ())
        for name, (a, _, _) in chosen.items()
    }
    results = yield specs.values()
    table: Table = []
    cells = []
    for name, (method, *printed) in chosen.items():
        columns = results[specs[name]]["columns"]
        for way, paper in zip(("up", "down"), printed):
            words = name == "FedCom" and way == "up"
            counted = columns[f"{way}_bytes" if words else f"{way}_scalars"]
            ours = (counted[-1] - counted[-2]) / (rounds - rounds // 2) / (4 if words else 1)
            why = "words of 32 bits a round, beta = 1/4" if words else "scalars a round, all clients"
            if way == "down" and isinstance(method, DeComFL):
                why += "; the formula leaves out the seeds of the round itself, m/(2M) of the rest"
            table.append(row(name, f"{way}link", paper, ours, specs[name].ran()))
            cells.append(counted_cell(f"{name}: {way}link per round", paper, ours, why))
    settings = {"M": M, "m": m, "K": K, "P": P, "d": d, "rounds": rounds}
    notes = ["One scalar is a number or a seed. Round complexities and totals are theory, not measured here."]
    return Result(table, cells, settings, notes)


def counting(P: int, rounds: int) -> Spec:
    """The run that `per_client` counts on, up to a round."""
    algorithm = DeComFLReading(1e-6, 1, P, secret=0)
    return Spec(algorithm, "quadratic", (("d", 2), ("n", 8)), rounds, 0, 2, 500, "float32", ())


class Idle(DeComFLReading):
    """Sends what DeComFL sends, and computes nothing."""

    def measure(self, problem: Problem, y: torch.Tensor, z: list[Direction], xi: Any) -> torch.Tensor:
        return y.new_zeros(len(y), len(z))

    def move(self, model: Model, z: list[Direction], g: torch.Tensor, lr: float) -> None:
        pass


@cache
def per_client(P: int) -> dict[int, float]:
    """Rounds -> MB between the server and a client, mean of 8 clients of which 2 take part: counted from a run.

    No message depends on the model, so a tiny one serves, which stays as it is; a secret keeps the server from sending
    the model itself, which would be cheaper here.
    """
    problem = Quadratic.random(8, 2, Key(0), dtype=torch.float32)
    history = run(Idle(**vars(counting(P, ROUNDS).algorithm)), problem, ROUNDS, sampled=2, every=500, metrics=())
    both = zip(history["round"], history["up_bytes"], history["down_bytes"])
    return {int(r): (up + down) / 8 / 1e6 for r, up, down in both}


COUNTED = (
    "counted in full: every round costs a client a scalar (4 bytes) and a seed (8) per perturbation, a round with it "
    "4 + 8 more. The printed number is 3 x 4 bytes a round and perturbation"
)


def measure_2(scale: str, seeds: int) -> Wants[Result]:
    """Costs; and accuracies where models and tasks are at hand."""
    counted = per_client(10)
    table: Table = []
    cells = []
    wanted = []
    for model, lines in TABLE2.items():
        for task, (printed, (_, fedzo, decomfl)), (lr, rounds) in zip(TASKS, lines, TABLE5[model]):
            where = f"{model} {task}"
            both = 2 * 4 * SIZES[model] * rounds * 2 / 8 / 1e12
            table.append(row(where, "DeComFL, MB", decomfl, counted[rounds], counting(10, rounds).ran()))
            table.append(row(where, "FedZO, TB", fedzo, both))
            cells.append(counted_cell(f"{where}: DeComFL, MB", decomfl, counted[rounds], COUNTED))
            why = "computed, not run: 2 d numbers of 4 bytes in each of a client's rounds (R/4)"
            cells.append(counted_cell(f"{where}: FedZO, TB", fedzo, both, why, "arithmetic"))
            for method, accuracy in zip(("FedAvg", "MeZO", "FedZO P=10", "DeComFL P=10"), printed):
                name = f"{where}: {method.split()[0]}, accuracy in %"
                wanted.append(Wanted(name, accuracy, model, task, methods(lr)[method], rounds))
    cells += yield from accuracies("decomfl/table2", wanted, scale, seeds)
    notes = ["1 MB is 10^6 bytes; rounds from Table 5. FedAvg's rounds are not printed, so its bytes are not checked."]
    return Result(table, cells, {"clients": 8, "sampled": 2, "P": 10, "K": 1}, [*notes, READING])


def measure_6(scale: str, seeds: int) -> Wants[Result]:
    """As Table 2, with low-rank adapters: the cost is the same, whatever is tuned."""
    table: Table = []
    cells = []
    tuned = TABLE5["OPT-125M, LoRA"]
    for place, P in enumerate((5, 10)):
        counted = per_client(P)
        for task, (_, megabytes), (_, rounds) in zip(TASKS, TABLE6, tuned):
            table.append(row(task, f"P = {P}, MB", megabytes[place], counted[rounds], counting(P, rounds).ran()))
            cells.append(counted_cell(f"{task}, P = {P}: DeComFL, MB", megabytes[place], counted[rounds], COUNTED))
    wanted = [
        Wanted(f"{task}: {method}, accuracy in %", accuracy, "OPT-125M", task, methods(lr)[method], rounds, lora=8)
        for task, (printed, _), (lr, rounds) in zip(TASKS, TABLE6, tuned)
        for method, accuracy in zip(("MeZO", "FedZO P=5", "DeComFL P=5", "DeComFL P=10"), printed)
    ]
    cells += yield from accuracies("decomfl/table6", wanted, scale, seeds)
    return Result(table, cells, {"clients": 8, "sampled": 2, "K": 1}, ["Rounds from Table 5.", READING])


def measure_5(scale: str, seeds: int) -> Result:
    """Settings: the rounds that Tables 2 and 6 imply by their bytes."""
    table: Table = []
    cells = []
    for model, lines in TABLE5.items():
        for at, (task, (lr, rounds)) in enumerate(zip(TASKS, lines)):
            megabytes = TABLE6[at][1][1] if "LoRA" in model else TABLE2[model][at][1][2]
            implied = megabytes * 1e6 / (3 * 4 * 10)
            table.append(row(f"{model} {task}", "rounds", rounds, implied))
            item = "table6" if "LoRA" in model else "table2"
            why = f"computed from the printed {megabytes} MB; learning rate {lr:g}: used in decomfl/{item}"
            cells.append(counted_cell(f"{model} {task}: rounds", rounds, implied, why, "arithmetic"))
    return Result(table, cells, {"P": 10, "bytes of a round and perturbation": 12}, ["No run: a check of print."])


def one_client(name: str, shape: tuple[int, int, int]) -> ImageClassification:
    """A problem with batches of one image, so that activations are small."""
    net = network(name, shape, 10)
    images = torch.rand(2, *shape)
    return ImageClassification(images, torch.arange(2), [torch.arange(2)], net, Key(0), batch=1)


def client_memory(problem: ImageClassification) -> tuple[float, float, float]:
    """In units of d the peak of live tensors of a client's round and of one forward pass, and its largest layer.

    One missed round is rebuilt, P = 2 scalars are measured.
    """
    x, one, d = problem.start(), torch.tensor([0]), problem.d
    algorithm = DeComFLReading(1e-4, 1, 2, scalar="central")
    down = algorithm.broadcast(algorithm.init(problem, x, Key(0)).server, Key(1))
    step = algorithm.step(down, torch.full((1, 2), 0.1))
    (xi,) = problem.draw(one, 1, Key(1))

    def client() -> None:
        algorithm.rebuild(problem.layout, Model(x, None), step)
        drain(algorithm.client(problem, one, None, down, Key(1)))

    with torch.no_grad():
        whole, plain = (meter.peak_bytes(w) / 4 / d for w in (client, lambda: problem.losses(x[None], xi)))
    return whole, plain, max(problem.network.sizes) / d


def fedzo_memory(problem: ImageClassification) -> dict[str, float]:
    """In units of d: what a client of FedZO makes of the model that it received, with it; what the server adds up."""
    algorithm, one = FedZO(1e-4, 1, 2), torch.tensor([0])
    server = algorithm.init(problem, problem.start(), Key(0)).server
    down = algorithm.broadcast(server, Key(1))
    with torch.no_grad():
        up, _ = drain(algorithm.client(problem, one, None, down, Key(1)))
        roles = {
            "client": lambda: drain(algorithm.client(problem, one, None, replace(down, x=down.x.clone()), Key(1))),
            "server": lambda: algorithm.server(replace(server, x=server.x.clone()), down, up, one, Key(1)),
        }
        return {role: meter.peak_bytes(work) / 4 / problem.d for role, work in roles.items()}


def longest_queue(clients: int, sampled: int, rounds: int) -> int:
    """The most rounds at once whose records some client still needs: the server drops what all of them have (A.2)."""
    last, longest = [0] * clients, 0
    for t in range(rounds):
        longest = max(longest, t - min(last))
        for i in sample_clients(clients, sampled, Key(0).fold("round", t, "clients")).tolist():
            last[i] = t
    return longest


def measure_4(scale: str, seeds: int) -> Result:
    """The client: peak of live tensors, its model among them. The server: the history that it keeps."""
    table: Table = []
    cells = []
    for name, shape in (("decomfl-fashion", (1, 28, 28)), ("resnet18", (3, 32, 32))):
        problem = one_client(name, shape)
        d, (whole, plain, largest) = problem.d, client_memory(problem)
        of = behind("a random image", name, 1)
        table.append(row(f"client, {name}", "memory / d", 1.0, whole, of))
        table.append(row(f"forward pass alone, {name}", "memory / d", nan, plain, of))
        why = f"d = {d:,}: the model, a perturbed copy of its largest layer ({largest:.2f} d), activations of batch 1"
        cells.append(counted_cell(f"DeComFL client, {name}: memory / d", 1.0, whole, why))
    servers = {  # numbers of a round, clients, those of a round, rounds, size of the model
        "MNIST CNN, K = 4, P = 20, 10 of 100 clients, 2,000 rounds": (2 * 4 * 20, 100, 10, 2000, 28_938),
        "OPT-125M, K = 1, P = 10, 2 of 8 clients, 3,000 rounds": (2 * 10, 8, 2, 3000, SIZES["OPT-125M"]),
    }
    for name, (numbers, clients, sampled, rounds, size) in servers.items():
        kept = longest_queue(clients, sampled, rounds)
        share, whole = numbers * kept / size, numbers * rounds / size
        table.append(row(f"server's queue, {name}", "memory / d", 0.0, share))
        table.append(row(f"server's whole history, {name}", "memory / d", nan, whole))
        why = f"computed: at most {kept} rounds are kept, 2 K P numbers each, and no model; all rounds: {whole:.3g}"
        cell = f"DeComFL server (near zero), {name}"
        cells.append(judge.counted(cell, 0.0, share, verdicts.below(0.01), why, "arithmetic"))
    measured = fedzo_memory(one_client("decomfl-fashion", (1, 28, 28)))
    whys = {
        "server": "the model, the mean change, their sum; what came up is not counted",
        "client": "the received model, the local one, its next value, a perturbed copy of the largest layer",
    }
    of = behind("a random image", "decomfl-fashion", 1)
    for who, paper in (("server", 2.0), ("client", 3.0)):
        table.append(row(f"FedZO {who}, decomfl-fashion", "memory / d", paper, measured[who], of))
    at_least = verdicts.above(math.nextafter(2.0, 0.0))
    cells.append(
        judge.counted("FedZO server: memory / d (at least)", 2.0, measured["server"], at_least, whys["server"])
    )
    cells.append(counted_cell("FedZO client: memory / d", 3.0, measured["client"], whys["client"]))
    notes = ["Live tensors, in units of d numbers of 4 bytes. Gradients would need activations and d numbers more."]
    return Result(table, cells, {"batch": 1, "P": 2, "K": 1}, notes)


def measure_5b(scale: str, seeds: int) -> Wants[Result]:
    """What the authors' logs say, and our runs where models and data are at hand."""
    rounds = (500, 1000, 1500, 2000)
    table: Table = [
        {"model": m, "round": r, "accuracy": a, **behind("the authors' logs")}
        for m, values in FIG5.items()
        for r, a in zip(rounds, values)
    ]
    ours, cells = yield from convergence(scale, seeds)
    notes = [READING] if ours else ["Nothing here was run by this package."]
    return Result([*table, *ours], cells, {"source": "the authors' logs"}, notes)


UNITS = {  # of tables with these quantities alone
    "downlink uplink": "numbers and seeds in a round, all clients",
    "rounds": "rounds (ours: those that the printed bytes pay for)",
    "memory / d": "memory, in copies of the model",
}


BYTES = {"MB": 1e6, "TB": 1e12}


@style.styled
def draw(table: Table) -> Figure:
    """Printed and counted, line by line."""
    sizes = [BYTES.get(line["quantity"].rpartition(", ")[2], 0.0) for line in table]
    if all(sizes):
        table = [
            line
            | {part: size * line[part] for part in ("ours", "paper")}
            | {"quantity": line["quantity"][: -len(", MB")]}
            for size, line in zip(sizes, table)
        ]
    settings = [f"{line['setting']}: {line['quantity']}" for line in table]
    figure, (axes,) = style.new_figure(columns=2, height=0.8 + 0.18 * len(table))
    spots = range(len(table), 0, -1)
    axes.plot([line["ours"] for line in table], spots, "o", markersize=4, color=style.SEQUENCE[0], label="ours")
    axes.plot([line["paper"] for line in table], spots, "kD", markersize=5, markerfacecolor="none", label="paper")
    axes.set_yticks(spots, settings, fontsize=6)
    for spot, line in zip(spots, table):
        if line["paper"] == 0:
            beside = {"xytext": (6, 0), "textcoords": "offset points", "fontsize": 6, "va": "center"}
            axes.annotate("paper: 0", (line["ours"], spot), **beside)
    unit = UNITS.get(" ".join(sorted({line["quantity"] for line in table})), "value, in the unit of the line")
    if all(sizes):
        unit = "bytes"
        computed = [line["quantity"] for line in table if line["ran data"].startswith("computed")]
        style.caption(figure, table, *(f"{name}: computed from printed numbers" for name in dict.fromkeys(computed)))
    axes.set(xscale="log", xlabel=unit, ylim=(0.3, len(table) + 0.7))
    style.legend_above(figure, 2)
    return figure


@style.styled
def draw_5b(table: Table) -> Figure:
    figure, (axes,) = style.new_figure()
    models = list(dict.fromkeys(line["model"] for line in table))
    for model, how in style.looks(models).items():
        lines = [line for line in table if line["model"] == model]
        axes.plot([r["round"] for r in lines], [r["accuracy"] for r in lines], **how.line, label=model)
    axes.axvline(1250, color="k", linestyle=":", linewidth=1, label="paper: convergence")
    axes.set(
        xlabel="communication rounds",
        ylabel="test accuracy",
        title="authors' logs" + ("" if len(models) > len(FIG5) else "; not run here"),
    )
    style.legend_above(figure, 3)
    return figure


ITEMS = [
    Item("decomfl/fig5b", "Language models of four sizes", measure_5b, draw_5b, ALL[1:]),
    Item("decomfl/table1", "Communication per round, counted", measure_1, draw, ALL),
    Item("decomfl/table2", "Fine-tuning: costs and accuracies", measure_2, draw, ALL),
    Item("decomfl/table4", "Memory, measured", itself(measure_4), draw, ALL),
    Item("decomfl/table5", "Rounds, against the printed bytes", itself(measure_5), draw, ALL),
    Item("decomfl/table6", "Fine-tuning with adapters: costs and accuracies", measure_6, draw, ALL),
]
