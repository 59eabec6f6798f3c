"""What crosses a socket beside what is counted: seven methods over Flower on one machine."""

import tempfile
from dataclasses import is_dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.flss import FLSS
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.federation import local, wire
from fedtheory.maps.decomposition import Kronecker
from fedtheory.maps.subspace import Coordinate
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result, itself
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.running.records import Table, behind
from fedtheory.running.simulate import run

CLIENTS, SAMPLED, ROUNDS = 3, 2, 4
METHODS: dict[str, Algorithm] = {
    "FedAvg": FedAvg(0.01, 5),
    "SCAFFOLD": Scaffold(0.01, 5),
    "FedSub": FedSub(0.01, 5, Coordinate(10)),
    "SSF": SSF.haar(0.01, 5, 10),
    "FedMUD+BKD+AAD": FedMUD(0.01, 5, Kronecker(1 / 8, form="aad", layers="all")),
    "FLSS": FLSS(0.01, 5, rank=2, warm_up=2),
    "DeComFL": DeComFL(1e-4, 5, perturbations=10),
}
WAYS = ("up", "down")
APP = """import os

from fedtheory import {names}
from fedtheory.federation import flower

problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), n={n})
algorithm = {algorithm!r}
server = flower.server_app(algorithm, problem, {rounds}, sampled={sampled}, save=os.environ["FEDTHEORY_SAVE"])
client = flower.client_app(algorithm, problem)
"""


def app(algorithm: Algorithm) -> str:
    """The module of an app that plays a method on SSF's problem."""
    parts = (algorithm, *vars(algorithm).values())
    names = {"Key", "MatrixRegression", *(type(part).__name__ for part in parts if is_dataclass(part))}
    given = {"n": CLIENTS, "rounds": ROUNDS, "sampled": SAMPLED, "algorithm": algorithm}
    return APP.format(names=", ".join(sorted(names)), **given)


def measure(scale: str, seeds: int) -> Result:
    """One federation of three supernodes, one client each; the methods one after the other.

    Raises ValueError where Flower is not installed, or a run does not end.
    """
    table: Table = []
    said: dict[str, str] = {}
    problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), n=CLIENTS)
    with (
        tempfile.TemporaryDirectory(prefix="fedtheory-") as folder,
        local.federation([[i] for i in range(CLIENTS)], Path(folder)) as here,
    ):
        for name, algorithm in METHODS.items():
            record = here.play(app(algorithm), 600.0 * ROUNDS)
            history = run(algorithm, problem, ROUNDS, sampled=SAMPLED, blocks=CLIENTS)
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
        "parcels in Flower's messages; wire: all bytes on the socket between supernode and superlink, both ways, of "
        "requests that carried messages in this direction, HTTP headers included; over: wire less payload, a message.",
        "idle: bytes of polls that brought nothing and of heartbeats meanwhile, which grow with seconds and not with "
        "messages.",
        "same bits: whether the last model has the bits of `run`.",
    ]
    settings = {"clients": CLIENTS, "sampled": SAMPLED, "rounds": ROUNDS, "nodes": CLIENTS, "methods": said}
    settings |= {"flwr": local.version(), "transport": "HTTP, no TLS, Unix sockets"}
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
    style.caption(figure, table)
    style.legend_above(figure, 3)
    return figure


EXTRAS = [Item("frontier/wire", "What crosses a socket beside what is counted", itself(measure), draw, ("medium",))]
