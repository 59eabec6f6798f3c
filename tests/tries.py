"""Bad input, generated: every parameter of the public interface gets values of every wrong kind, and the outcome is
judged. A try is good where the call works, or ends at once in one line with the argument, what was expected and a fix.

    python tests/tries.py                 thousands of tries, a few minutes; counts, and every try that is not good
    python tests/tries.py --only run      those whose name holds a word
    python tests/tries.py --share 20      every twentieth
    python tests/tries.py --share 20 --seed 1     others

test_tries.py runs a share of them. Each runs in a child process with limits on time and memory, so that a hang or a
crash is an outcome like the others.
"""

import argparse
import contextlib
import functools
import inspect
import io
import json
import math
import os
import resource
import select
import signal
import tempfile
import time
import types
import typing
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.datasets  # noqa: F401  # imported by the first try otherwise, which would be slow for that
import torch

import fedtheory
from fedtheory import (
    Coordinate,
    FedAvg,
    Gaussian,
    History,
    Identity,
    ImageClassification,
    Key,
    Layer,
    Layout,
    LogisticRegression,
    MatrixRegression,
    Pooled,
    Quadratic,
    Spherical,
    cli,
    course,
    play_round,
    run,
)
from fedtheory.algorithms.readings import points
from fedtheory.core import schedule as schedules
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.federation import admission
from fedtheory.maps.decomposition import Full, Hadamard, Kronecker, LowRank
from fedtheory.papers import budget, store
from fedtheory.problems import data, partitions
from fedtheory.problems.models import networks
from fedtheory.running.checkpoint import Checkpoint
from fedtheory.theory import rules
from fedtheory.theory.estimate import Estimate, estimate

KNOWN = Estimate(L=1.0, effective=2.0, gap=1.0, start2=1.0, zeta2=1.0, sigma2=0.0, sample_L=0.0, mu=0.1)
SECONDS, MEMORY = 3, 3 << 30  # processor time and bytes that a try may take
NAN, INF, DOUBLE = math.nan, math.inf, torch.float64


# Values of every kind, by the name under which a try shows them; made anew for every try.

VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "''": lambda: "",
    "'x'": lambda: "x",
    "'1'": lambda: "1",
    "two lines": lambda: "a\nb",
    "long text": lambda: "x" * 10**5,
    "b'x'": lambda: b"x",
    "()": tuple,
    "[]": list,
    "{}": dict,
    "[1]": lambda: [1],
    "(1, 'a', None)": lambda: (1, "a", None),
    "{1: 2}": lambda: {1: 2},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "generator": lambda: (i for i in range(3)),
    "object": object,
    "type": lambda: Layout,
    "function": lambda: lambda *given: 0,
    "module": lambda: math,
    "nan": lambda: NAN,
    "inf": lambda: INF,
    "-inf": lambda: -INF,
    "-1": lambda: -1,
    "0": lambda: 0,
    "-0.5": lambda: -0.5,
    "0.5": lambda: 0.5,
    "2.0": lambda: 2.0,
    "1e-200": lambda: 1e-200,
    "5e-324": lambda: 5e-324,
    "1e308": lambda: 1e308,
    "1j": lambda: 1j,
    "10**9": lambda: 10**9,
    "10**12": lambda: 10**12,
    "2**63": lambda: 2**63,
    "10**30": lambda: 10**30,
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "-10**5000": lambda: -(10**5000),
    "Decimal": lambda: Decimal("0.1"),
    "Fraction": lambda: Fraction(1, 3),
    "np.int64(2)": lambda: np.int64(2),
    "np.int64(-1)": lambda: np.int64(-1),
    "np.float32(0.1)": lambda: np.float32(0.1),
    "np.float64(nan)": lambda: np.float64(NAN),
    "np.bool_": lambda: np.bool_(True),
    "np.str_": lambda: np.str_("x"),
    "np.array(2)": lambda: np.array(2),
    "np.array([1, 2])": lambda: np.array([1, 2]),
    "np.ones((2, 2))": lambda: np.ones((2, 2)),
    "np.array([])": lambda: np.array([]),
    "torch.tensor(2)": lambda: torch.tensor(2),
    "torch.tensor(0.1)": lambda: torch.tensor(0.1),
    "torch.ones(3)": lambda: torch.ones(3, dtype=DOUBLE),
    "torch.ones(2, 2)": lambda: torch.ones(2, 2),
    "torch.nan": lambda: torch.full((3,), NAN, dtype=DOUBLE),
    "torch.tensor([])": lambda: torch.tensor([]),
    "torch.ones(2).bool()": lambda: torch.ones(2).bool(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.ones(3, device="meta"),
}


def taken(kind: Any, value: Any) -> bool:
    """Whether a value of this annotation may be taken; where it may not, taking it in silence is a fault."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return any(taken(one, value) for one in typing.get_args(kind))
    if kind is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if kind is float:
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        return real and abs(value) < INF and (isinstance(value, (float, np.floating)) or abs(int(value)) < 10**308)
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    if kind is str:
        return isinstance(value, str)
    if kind is type(None):
        return value is None
    if kind is torch.Tensor:
        return isinstance(value, torch.Tensor) and not value.is_meta and not value.is_sparse
    return True


class Target(NamedTuple):
    """Something to call, with arguments that work; `names` are those to spoil."""

    name: str
    call: Callable[..., Any]
    good: Callable[[], dict[str, Any]]
    names: tuple[str, ...]
    kinds: dict[str, Any]
    known: dict[str, tuple[str, ...]] = {}  # noqa: RUF012  other names under which a message may speak of an argument


class Try(NamedTuple):
    name: str
    argument: str
    work: Callable[[], Any]
    silent: bool  # whether it is a fault to take it
    words: tuple[str, ...]  # one of them must be in the message


def target(title: str, call: Callable[..., Any], also: Callable[[Any], Any] | None = None, /, **good: Any) -> Target:
    """All parameters of a callable but *args and **options; `good` are values, or functions that make them."""
    of = call.__init__ if inspect.isclass(call) else call
    hints = typing.get_type_hints(of)
    names = [
        p.name
        for p in inspect.signature(call).parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name != "self"
    ]
    whole = call if also is None else lambda **given: also(call(**given))
    make = lambda: {key: value() if inspect.isfunction(value) else value for key, value in good.items()}
    free = {p.name for p in inspect.signature(call).parameters.values() if p.default is None}  # None has it chosen
    kinds = {key: typing.Optional[hints.get(key)] if key in free else hints.get(key) for key in names}  # noqa: UP045
    return Target(title, whole, make, tuple(names), kinds)


def tries(one: Target) -> Iterator[Try]:
    for name in one.names:
        words = (name, *one.known.get(name, ()))
        for shown, make in VALUES.items():

            def work(name: str = name, make: Callable[[], Any] = make) -> Any:
                return one.call(**one.good() | {name: make()})

            silent = not taken(one.kinds.get(name), make())
            yield Try(f"{one.name}({name}={shown})", name, work, silent, words)


# What is tried.


def quadratic() -> Quadratic:
    return Quadratic.random(4, 6, Key(1), layout=Layout.single(3, 2))


@functools.cache
def images() -> ImageClassification:
    g = Key(3).generator()
    x, y = torch.randn(24, 1, 6, 6, generator=g), torch.arange(24) % 3
    parts = list(torch.arange(24).chunk(4))
    return ImageClassification(x, y, parts, networks.network("mlp", (1, 6, 6), 3), Key(0), batch=4)


MANY = {"n": 4} if "n" in inspect.signature(admission.admit).parameters else {}
ALGORITHMS = {  # the public ones by name, and their readings
    (kind.__name__ if kind in [paper.reading for paper in points.PAPERS.values()] else kind.name): kind
    for kind in (getattr(fedtheory, name) for name in fedtheory.__all__)
    if isinstance(kind, type) and issubclass(kind, Algorithm) and kind is not Algorithm
    if "method" not in kind.__dataclass_fields__  # parts of a method have tests of their own
}
LOW, LORA = LowRank(0.5, layers="all"), LowRank(0.5, form="lora", layers="all")
GIVEN: dict[str, dict[str, Any]] = {
    "FedSub": {"projection": Coordinate(2)},
    "SSF": {"projection": Spherical(2, "orthonormal")},
    "FedMUD": {"decomposition": LOW},
    "FedHM": {"decomposition": LOW},
    "FedKSeed": {"pool": 4},
    "FedKRSO": {"projection": Gaussian(2), "pool": 2},
    "FedSLoP": {"projection": Spherical(2, "orthonormal")},
    "RoLoRA": {"decomposition": LORA},
    "FedEx-LoRA": {"decomposition": LORA},
    "FlexLoRA": {"decompositions": (LORA,)},
    "FSLoRA": {"decomposition": LORA},
    "FLSS": {"rank": 1, "warm_up": 2},
    "FedFTG": {"rank": 1},
    "FedSubReading": {"projection": Coordinate(2)},
    "FLSSReading": {"rank": 1, "warm_up": 2},
    "SSFReading": {"projection": Spherical(2, "orthonormal")},
    "DeComFLReading": {"perturbations": 2},
    "FedGen": {"server_steps": 2},
    "ProjectedFedAvg": {"rank": 1},
    "BAFFLE": {"perturbations": 2},
    "DeComFL": {"perturbations": 2},
    "FedZO": {"perturbations": 2},
    "HiSo": {"perturbations": 2},
}
FILLED = {"lr": 0.01, "local_steps": 2, "ratio": 0.5, "alpha": 0.5, "mu": 0.1}


def algorithm_target(name: str) -> Target:
    kind = ALGORITHMS[name]
    problem = (
        images
        if name in ("MOON", "FedNTD", "FedGen")
        else (lambda: Pooled(quadratic()))
        if name == "MeZO"
        else quadratic
    )
    good = {key: v for key, v in FILLED.items() if key in kind.__dataclass_fields__} | GIVEN.get(name, {})
    metrics = ("loss",)
    return target(kind.__name__, kind, lambda made: run(made, problem(), 2, metrics=metrics), **good)


def played() -> dict[str, Any]:
    algorithm, problem = FedAvg(0.1, 2), quadratic()
    return {
        "algorithm": algorithm,
        "problem": problem,
        "state": algorithm.init(problem, problem.start(), Key(0)),
        "clients": torch.tensor([0, 2]),
        "key": Key(0),
    }


def api_targets() -> Iterator[Target]:
    key, layout = Key(0), Layout((Layer("a", 4, 2), Layer("b", 3, 1)))
    eye, vector = lambda: torch.eye(3, dtype=DOUBLE).repeat(2, 1, 1), lambda: torch.ones(2, 3, dtype=DOUBLE)
    three = lambda *sizes: lambda: torch.ones(*sizes, dtype=DOUBLE)
    made = target("run", run, algorithm=FedAvg(0.1, 2), problem=quadratic, rounds=2)
    yield made._replace(known={"progress": ("layers",)})  # what a function of the caller's says
    play = target("play_round", play_round)
    yield play._replace(good=played)
    yield target("Quadratic", Quadratic, H=eye, b=vector)
    yield target("Quadratic.random", Quadratic.random, n=2, d=3, key=key)
    yield target("MatrixRegression", MatrixRegression, A=three(2, 4, 3), B=three(2, 4, 2))
    yield target("MatrixRegression.ssf", MatrixRegression.ssf, het=0.1, key=key, n=2, rows=3, d=4, m=1, batch=2)
    yield target("LogisticRegression", LogisticRegression, A=three(2, 4, 3), b=three(2, 4), lam=0.1)
    yield target("LogisticRegression.fedsub", LogisticRegression.fedsub, key=key, n=2, samples=40, m=3, lam=0.1)
    yield target("Pooled", Pooled, whole=quadratic)
    yield target(
        "ImageClassification",
        ImageClassification,
        images=lambda: images().images,
        labels=lambda: images().labels,
        parts=lambda: list(images().parts),
        network=images().network,
        key=key,
        batch=4,
    )
    yield target("ImageClassification.load", ImageClassification.load, data="digits", network="mlp", key=key, subset=50)
    for name in ("loss", "grad", "error"):
        yield target(f"Quadratic.{name}", lambda x, of=name: getattr(quadratic(), of)(x), x=three(6))._replace(
            names=("x",), kinds={"x": torch.Tensor}
        )
    yield target("Images.accuracy", lambda x: images().accuracy(x), x=lambda: images().start())._replace(
        kinds={"x": torch.Tensor}
    )
    yield target("Problem.draw", quadratic().draw, clients=lambda: torch.tensor([0, 1]), steps=2, key=key)
    yield target("Problem.full", quadratic().full, clients=lambda: torch.tensor([0, 1]))._replace(kinds={})
    for basis in (Coordinate, Spherical, Gaussian, Identity):
        yield target(basis.__name__, basis, lambda made: made.draw(layout, key, DOUBLE), rank=2)
    yield target("Projection.draw", Spherical(2).draw, layout=layout, key=key, dtype=DOUBLE)
    yield target("Projection.ranks", Spherical(2).ranks, layout=layout)
    yield target("Projection.low", Spherical(2).low, layout=layout)
    for how in (LowRank, Kronecker, Hadamard, Full):
        made = {} if how is Full else {"ratio": 0.5}
        yield target(how.__name__, how, lambda one: one.draw(layout, key, DOUBLE), **made, layers="all")
    yield target("Decomposition.draw", LOW.draw, layout=layout, key=key, dtype=DOUBLE)
    yield target("Decomposition.for_network", LowRank(1.0, layers="all").for_network, layout=layout)
    yield target("Key", Key, seed=0)
    yield target("Key.fold", lambda name: Key(0).fold(name), name="a")
    yield target("Layout", Layout, layers=layout.layers)
    yield target("Layout.single", Layout.single, rows=2, cols=1)
    yield target("Layer", lambda rows, cols: Layout((Layer("a", rows, cols),)), rows=2, cols=1)._replace(
        kinds={"rows": int, "cols": int}
    )
    yield target("Layout.matrices", layout.matrices, x=three(11))
    yield target("Layout.columns", layout.columns, x=three(11))
    yield target("Layout.flatten", layout.flatten, matrices=lambda: [three(4, 2)(), three(3, 1)()])
    stepped = lambda made: run(FedAvg(0.1, 1), quadratic(), 3, schedule=made)
    yield target("Steps", schedules.Steps, stepped, every=2, by=0.5)
    yield target("Cosine", schedules.Cosine, stepped, rounds=5, warm_up=1)
    labels = lambda: torch.arange(60) % 3
    yield target("iid", partitions.iid, y=labels, clients=3, key=key)
    yield target("dirichlet", partitions.dirichlet, y=labels, clients=3, alpha=0.5, key=key, min_size=1)
    yield target("labels_per_client", partitions.labels_per_client, y=labels, clients=3, labels=2, key=key)
    yield target("data.load", data.load, name="digits")
    made = target("network", networks.network, name="mlp", shape=(1, 6, 6), classes=3)
    yield made._replace(known={"name": ("network",)})
    ups = lambda: [admission.Upload(1, 0, gate_up())]
    yield target("admit", admission.admit, uploads=ups, round=0, like=lambda: gate_up(), **MANY)
    arrives = lambda client, round, up: admission.admit([admission.Upload(client, round, up)], 0, gate_up(), **MANY)
    yield target("Upload", arrives, client=1, round=0, up=lambda: gate_up())._replace(
        kinds={"client": int, "round": int, "up": object},
        known={"client": ("upload of",), "round": ("upload of",), "up": ("upload of",)},
    )
    yield target("Checkpoint", Checkpoint, folder="kept", identity="a run")
    yield target(
        "History[]", lambda name: History({"round": [0]}, State(played()["state"].server, None))[name], name="round"
    )._replace(kinds={"name": str})
    yield target("largest_step", rules.largest_step, method="SSF", L=2.0, local_steps=5, share=0.2)
    yield target("best_directions", rules.best_directions, kappa=10.0)
    yield target("linear_plan", rules.linear_plan, L=1.0, mu=0.1, share=0.2, n=10, sampled=2)
    yield target("reset_interval", rules.reset_interval, singular_values=[3.0, 0.1], rank=1, rows=4, rounds=10)
    yield target("subspace_price", rules.subspace_price, d=10, r=2, effective=3.0)
    yield target("controls_pay_after", rules.controls_pay_after, known=lambda: KNOWN, q=0.1, share=0.5, n=3)
    start = lambda: torch.ones(4, dtype=torch.float64)
    small = Quadratic.random(3, 4, Key(0))
    yield target("estimate", estimate, problem=lambda: small, points=start, least=0.0, reach=0.1, effort=2, key=0)
    yield target("interval", store.interval, values=[1.0, 2.0])
    yield target("Runner", store.Runner, out=lambda: Path("out"))
    sizes = {"classes": 3, "batch": 2, "clients": 2, "steps": 1, "shape": (1, 6, 6)}
    made = target("Budget", budget.Budget, lambda made: made.memory, name="mlp", **sizes)
    yield made._replace(known={"name": ("network",)})
    made = target("of_images", budget.of_images, options={"data": "digits", "network": "mlp"}, sampled=2)
    yield made._replace(known={"sampled": ("clients",)})
    yield target("start", course.start, seed=0)
    yield target("brief", course.brief, value=0.5, digits=3)._replace(kinds={"digits": int})  # NaN has a text
    yield target("table", course.table, header=("a", "b"), rows=[(1, 2.0)], digits=3)
    yield target("committed", course.committed, item="ssf/table1")._replace(names=())
    yield target("provenance", course.provenance)._replace(
        good=lambda: {"record": {k: "x" for k in ("item", "title", "scale", "device")} | {"seeds": [0], "settings": {}}}
    )
    watched = lambda: {k: v for k, v in played().items() if k != "clients"}
    yield target("watch", course.watch)._replace(good=watched)
    yield target("describe", course.describe, figure=figure)


@functools.cache
def gate_up() -> Any:
    from fedtheory.algorithms.fedavg import Up

    return Up(torch.ones(1, 6, dtype=DOUBLE))


def figure() -> Any:
    from matplotlib.figure import Figure

    made = Figure()
    made.add_subplot().plot([1, 2], label="a")
    return made


# The command line.

TEXTS = {
    text[:12]: text
    for text in (
        "", " ", "x", "nan", "inf", "-inf", "-1", "0", "-0.5", "1.5", "1e400", "1e-200", "0x10", "\uff12", "True",
        "None", "9" * 9, "9" * 30, "9" * 5000, "a\nb", "-", "\u0661", "1e5", "\x07",
    )
}  # fmt: skip
RUNS = {
    ("FedAvg", "quadratic"): ("--rounds", "--sampled", "--lr", "--local-steps", "--seeds", "--device"),
    ("FedSub", "quadratic"): ("--rank", "--projection", "--form"),
    ("SSF", "quadratic"): ("--rank",),
    ("FLSS", "quadratic"): ("--rank",),
    ("Top-k", "quadratic"): ("--ratio",),
    ("FetchSGD", "quadratic"): ("--ratio",),
    ("FedMUD+BKD+AAD", "matrix_regression"): ("--ratio",),
    ("FedHM", "matrix_regression"): ("--ratio",),
    ("DeComFL", "quadratic"): ("--perturbations",),
    ("FedZO", "quadratic"): ("--perturbations",),
}
IGNORED = {
    ("run", "FedAvg", "quadratic", "--rounds", "2"): (
        ("--rank", "3"),
        ("--ratio", "0.5"),
        ("--perturbations", "3"),
        ("--projection", "ss"),
        ("--form", "sums"),
        ("--model", "x"),
        ("--task", "cb"),
        ("--lora", "2"),
        ("--data", "."),
        ("--scale", "paper"),
        ("--out", "there"),
    ),
    ("run", "SSF", "quadratic", "--rounds", "2"): (("--form", "sums"), ("--ratio", "0.5"), ("--projection", "rd")),
    ("run", "BAFFLE", "quadratic", "--rounds", "2"): (("--local-steps", "7"), ("--rank", "7")),
    ("run", "Top-k", "quadratic", "--rounds", "2"): (("--rank", "2"), ("--perturbations", "7")),
    ("run", "DeComFL", "quadratic", "--rounds", "2"): (("--ratio", "0.5"), ("--rank", "2")),
    ("run", "FedMUD", "matrix_regression", "--rounds", "2"): (("--rank", "2"), ("--projection", "ss")),
    ("list",): (("--seeds", "3"), ("--scale", "paper"), ("--device", "cpu"), ("--out", "there"), ("--data", ".")),
    ("claims", "fedsub.a1-cd"): (
        ("--seeds", "3"),
        ("--scale", "paper"),
        ("--device", "cpu"),
        ("--out", "there"),
        ("--data", "."),
    ),
    ("report",): (("--seeds", "3"), ("--device", "cpu"), ("--data", ".")),
}
OTHERS = {
    ("reproduce", "decomfl/table4"): ("--seeds", "--workers", "--scale", "--device"),
    ("compare", "--tasks", "nothing"): ("--seeds", "--workers", "--scale", "--device", "--methods", "--tasks"),
    ("claims", "fedsub.a1-cd"): ("--seed", "--paper", "--effort"),
    ("report",): ("--scale",),
}


def command(*words: str) -> Any:
    """Its exit status; raises `Said` with what it wrote on stderr where that is not 0."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main(words)
        except SystemExit as stop:
            status = stop.code
    if status != 0:
        raise Said(err.getvalue())


class Said(ValueError):
    """What a command wrote before it ended with another status than 0."""


NUMBERS = ("--rounds", "--sampled", "--lr", "--local-steps", "--seeds", "--rank", "--ratio", "--perturbations")


def wrong(option: str, text: str) -> bool:
    """Whether an option may not take a text in silence."""
    try:
        value = float(text)
    except ValueError:
        return True
    if option in ("--lr", "--ratio"):
        return not (math.isfinite(value) and value > 0)
    if option in (*NUMBERS, "--workers", "--seed"):
        return not (
            math.isfinite(value)
            and value == int(value)
            and (value > 0 or (value == 0 and option in ("--rounds", "--seed")))
        )
    return True


def command_tries() -> Iterator[Try]:
    pairs = [(("run", *words, "--rounds", "2"), options) for words, options in RUNS.items()] + list(OTHERS.items())
    for words, options in pairs:
        for option in options:
            names = (option, option.removeprefix("--"), option.removeprefix("--").replace("-", "_"))
            names += ("tasks",) if words[0] == "compare" else ()  # it is wrong, too
            for shown, text in TEXTS.items():
                work = functools.partial(command, *words, option, text)
                yield Try(f"{' '.join(words)} {option} {shown!r}", option, work, wrong(option, text), names)
            yield Try(f"{' '.join(words)} {option}", option, functools.partial(command, *words, option), True, names)
    for shown, text in TEXTS.items():
        for at, words in {
            "algorithm": ("run", text, "quadratic"),
            "problem": ("run", "FedAvg", text),
            "item": ("reproduce", text),
            "id": ("claims", text),
            "command": (text,),
        }.items():
            if text not in ("", " ") or at not in ("item", "id"):
                known = (at, at.rstrip("s"), text)
                yield Try(f"{at} {shown!r}", at, functools.partial(command, *words), True, known)
    for words, options in IGNORED.items():
        for option in options:
            names = (option[0], option[0].removeprefix("--"), option[0].removeprefix("--").replace("-", "_"))
            yield Try(
                f"{' '.join(words)} {' '.join(option)}",
                option[0],
                functools.partial(command, *words, *option),
                True,
                names,
            )
    for words in ((), ("run",), ("run", "FedAvg"), ("run", "FedAvg", "quadratic", "x"), ("list", "x"), ("list", "--x")):
        yield Try(f"words {words}", "words", functools.partial(command, *words), True, ("",))


def groups() -> dict[str, list[Try]]:
    return {
        "algorithms": [one for name in ALGORITHMS for one in tries(algorithm_target(name))],
        "interface": [one for each in api_targets() for one in tries(each)],
        "command line": list(command_tries()),
    }


# The judge.


def judged(one: Try) -> tuple[str, str]:
    """("works" or "clear", message), or the fault: "vague", "silent"."""
    message, verdict = "", "works"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                one.work()
            if one.silent:
                verdict = "silent"
        except (ValueError, TypeError, OSError, MemoryError) as error:
            message = str(error)
            lines = message.strip("\n").split("\n")
            parts = ("expected" in message and "Fix: " in message) or (
                isinstance(error, admission.Refused) and "Fix: " in message
            )
            verdict = "clear" if len(lines) == 1 and parts and any(w in message for w in one.words) else "vague"
        except Exception as error:
            message, verdict = f"{type(error).__name__}: {error}", "vague"
    return verdict, message


def sweep(chosen: Sequence[Try], tell: Callable[[int, str, str], None]) -> None:
    """Judge tries in a child that may die, and go on behind the one that killed it."""
    at = 0
    while at < len(chosen):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
            with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as null:
                os.chdir(folder)
                os.dup2(null.fileno(), 1)
                os.dup2(null.fileno(), 2)
                for i in range(at, len(chosen)):
                    until = int(time.process_time()) + 1 + SECONDS
                    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
                    verdict, message = judged(chosen[i])
                    os.write(writer, (json.dumps([i, verdict, message[:300]]) + "\n").encode())
            os._exit(0)
        os.close(writer)
        rest, ended = b"", False
        while not ended:
            if not select.select([reader], [], [], 60)[0]:
                os.kill(child, signal.SIGKILL)
            piece = os.read(reader, 1 << 16)
            ended = not piece
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                at, verdict, message = json.loads(line)
                tell(at, verdict, message)
                at += 1
        os.close(reader)
        os.waitpid(child, 0)
        if at < len(chosen):
            tell(at, "slow", f"ended from outside: more than {SECONDS} s or too much memory")
            at += 1


def share_of(chosen: Sequence[Try], share: int, seed: int = 0) -> list[Try]:
    """About every `share`-th, by a hash of its name: a try that is added moves no other. Each seed has its own."""
    return [one for one in chosen if zlib.crc32(one.name.encode(), seed) % share == 0]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="")
    options.add_argument("--share", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--json", default=None)
    given = options.parse_args()
    print(fedtheory.__file__)
    found = {}
    for group, all_tries in groups().items():
        chosen = [one for one in share_of(all_tries, given.share, given.seed) if given.only in one.name]
        counts: Counter[str] = Counter()

        def tell(at: int, verdict: str, message: str, chosen: list[Try] = chosen, counts: Counter = counts) -> None:
            counts[verdict] += 1
            found[chosen[at].name] = [verdict, message]
            if verdict not in ("works", "clear"):
                print(f"{verdict:7} {chosen[at].name}: {message[:200]!r}", flush=True)

        sweep(chosen, tell)
        print(f"== {group}: {len(chosen)} tries, {dict(counts)}", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=0))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
