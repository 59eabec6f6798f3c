"""What crosses a socket beside what is counted: seven methods over Flower on the loopback interface."""

import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from fedtheory.core import registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.core.records import Table, behind
from fedtheory.core.simulate import run
from fedtheory.federation import local, wire
from fedtheory.figures import style
from fedtheory.figures.store import Item, Result, Runner
from fedtheory.problems.matrix_regression import MatrixRegression

CLIENTS, SAMPLED, ROUNDS = 3, 2, 5
OPTIONS = {
    "lr": 0.01,
    "local_steps": 5,
    "rank": 2,
    "ratio": 1 / 8,
    "perturbations": 10,
    "projection": "cd",
    "form": "printed",
    "rounds": 4,
}
METHODS = {  # -> what differs from OPTIONS
    "FedAvg": {},
    "SCAFFOLD": {},
    "FedSub": {"rank": 10},
    "SSF": {"rank": 10},
    "FedMUD+BKD+AAD": {},
    "FLSS": {},
    "DeComFL": {"lr": 1e-4},
}
WAYS = ("up", "down")


def parts(words: dict[str, Any]) -> tuple[Algorithm, Problem, dict[str, Any]]:
    """A method of METHODS on SSF's problem with three clients, in each process anew."""
    options = Namespace(**OPTIONS | METHODS[words["method"]])
    entry = registry.method(words["method"])
    problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), n=CLIENTS)
    return (entry.command or entry.make)(options), problem, {"rounds": ROUNDS, "sampled": SAMPLED, "seed": 0}


def measure(runner: Runner, scale: str, seeds: int) -> Result:
    """One federation of three supernodes, one client each; the methods one after the other.

    Raises ValueError where Flower is not installed, or where a trajectory or a payload is not that of `run`.
    """
    torch.set_num_threads(1)
    table: Table = []
    said: dict[str, str] = {}
    build = f"{parts.__module__}.{parts.__name__}"
    with (
        tempfile.TemporaryDirectory(prefix="fedtheory-") as folder,
        local.federation([[i] for i in range(CLIENTS)], Path(folder)) as here,
    ):
        for name in METHODS:
            algorithm, problem, _ = parts({"method": name})
            record = here.play(local.app({"method": name}, build), 120.0 * ROUNDS)
            history = run(algorithm, problem, ROUNDS, sampled=SAMPLED, chunk=1)
            rows, said[name] = wire.by_round(record, here.counters), repr(algorithm)
            same = torch.equal(local.models(here.folder)[-1], history.x)
            asked, messages = sum(row["clients"] for row in rows), sum(row["messages"] for row in rows) / 2
            for way in WAYS:
                count, payload, wired = (
                    sum(row[f"{way}_{what}"] for row in rows) for what in ("count", "payload", "wire")
                )
                table.append(
                    {"method": name, "way": way, "count": count / asked, "payload": payload / asked}
                    | {"wire": wired / asked, "messages": messages / asked, "over": (wired - payload) / messages}
                    | {"idle": sum(row["idle"] for row in rows) / asked, "same bits": int(same)}
                    | {"counted by run": history[f"{way}_bytes"][-1] / asked}
                    | behind("matrix regression", "linear", ROUNDS)
                )
    notes = [
        "Bytes are means over the rounds and the clients that were asked. count: as `run` counts; payload: of the "
        "parcels in Flower's messages; wire: all bytes on the socket between supernode and superlink, both ways, of the "
        "requests that carried messages in this direction, HTTP headers included; over: wire less payload, a message.",
        "idle: bytes of polls that brought nothing and of heartbeats meanwhile, which grow with seconds and not with "
        "messages.",
        "same bits: whether the last model has the bits of `run`.",
    ]
    settings = {"clients": CLIENTS, "sampled": SAMPLED, "rounds": ROUNDS, "nodes": CLIENTS, "methods": said}
    settings |= {"flwr": local.version(), "transport": "HTTP, no TLS, loopback"}
    return Result(table, [], settings, notes, seeds=[0])


@style.styled
def draw(table: Table) -> Figure:
    """For each method the count, the payload on it, and what was on the socket; up and down."""
    figure, panels = style.new_figure(2, height=2.9, columns=2)
    names = list(dict.fromkeys(row["method"] for row in table))
    for axes, way in zip(panels, WAYS):
        rows = [row for row in table if row["way"] == way]
        spots = [names.index(row["method"]) for row in rows]
        axes.hlines(spots, [max(row["payload"], 1) for row in rows], [row["wire"] for row in rows], color="0.75")
        axes.plot([row["count"] for row in rows], spots, "k|", markersize=11, label="count")
        look = {"markersize": 4, "linestyle": ""}
        axes.plot(
            [row["payload"] for row in rows], spots, "o", color=style.SEQUENCE[0], label="payload in messages", **look
        )
        axes.plot([row["wire"] for row in rows], spots, "s", color=style.SEQUENCE[3], label="on the socket", **look)
        axes.set_yticks(range(len(names)), names if way == WAYS[0] else [])
        axes.invert_yaxis()
        axes.set(xscale="log", xlabel=f"bytes {way}, for each round and client")
    style.legend_above(figure, 3)
    return figure


EXTRAS = [Item("frontier/wire", "What crosses a socket beside what is counted", measure, draw, ("medium",))]
