"""What others write: the page of the contract, the folder to copy, and what a slip says.

Every slip below ended in a traceback from the depth of the package, or in a wrong number, before it was looked for.
"""

import ast
import importlib.util
import json
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from forked import command

from fedtheory import Card, Constants, FedAvg, Key, Layout, Method, Offer, Quadratic, State, play_round, run
from fedtheory.cli import METHOD_OPTIONS
from fedtheory.cli.run import Heeded
from fedtheory.compare import MEDIUM, Asked
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.fingerprints import describe_callable, digest
from fedtheory.core.problem import Problem
from fedtheory.federation import catch_up

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "book" / "do_it_yourself.md"
TEMPLATE = ROOT / "docs" / "template"
DOUBLE = torch.float64


# The page


def test_the_lines_of_the_page_run():
    """One after the other; each shows one thing in two lines, but the imports, a network, a metric and a loop."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 10
    assert all(len(block.splitlines()) == 2 for block in blocks[1:-3])
    space: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), space)


def test_the_page_has_the_steps_and_functions_of_the_contract():
    """With what each is given, by the names in the code."""
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    steps = [
        name
        for name, one in vars(Algorithm).items()
        if callable(one) and name not in ("rate", "at_rate", "at_steps", "chunk", "reach", "as_sent")
    ]
    assert [name for name in steps if not name.startswith("_") and name not in rows] == []
    functions = [name for name, one in vars(catch_up).items() if hasattr(one, "registry")]
    assert len(functions) == 6
    assert [name for name in functions if name not in rows] == []
    assert [name for name in Problem.__abstractmethods__ if name not in rows] == []
    assert [name for name in ("n", "layout", "weights", "constants", "closed_form") if name not in rows] == []


# A metric


def distance(problem, x):
    return (x - 1).norm()


def also_distance(step):
    """Another function of that name."""

    def distance(problem, x):
        return float((x - step).norm())

    return distance


def slope(problem, x):
    """By autograd, and it leaves the model broken."""
    leaf = x.requires_grad_()
    problem.losses(leaf.expand(problem.n, -1), problem.full(problem.clients)).sum().backward()
    norm = leaf.grad.norm()
    with torch.no_grad():
        x.fill_(torch.nan)
    return norm


def test_a_function_is_a_metric(tmp_path):
    """It has a column, sees every recorded model, and changes no bit; a checkpoint knows it from another."""
    problem, seen = Quadratic.random(5, 12, Key(1)), []

    def kept(problem, x):
        seen.append(x)
        return len(seen)

    plain = run(FedAvg(0.05, 2), problem, 4, every=2)
    history = run(FedAvg(0.05, 2), problem, 4, every=2, metrics=("error", slope, kept, distance))
    assert list(history.columns)[:5] == ["round", "error", "slope", "kept", "distance"]
    assert torch.equal(history.x, plain.x)
    assert history["error"] == plain["error"]
    assert history["kept"] == [1, 2, 3]
    assert torch.equal(seen[-1], plain.x)
    assert history["distance"][-1] == float((plain.x - 1).norm())
    gradient = 5 * problem.grad(plain.x).norm()
    assert history["slope"][-1] == pytest.approx(float(gradient), rel=1e-12)
    options = {"checkpoint": tmp_path / "a"}
    run(FedAvg(0.05, 2), problem, 2, metrics=(also_distance(1),), **options)
    gone_on = run(FedAvg(0.05, 2), problem, 4, metrics=(also_distance(1),), **options)
    assert gone_on["distance"] == run(FedAvg(0.05, 2), problem, 4, metrics=(also_distance(1),))["distance"]
    for other in (also_distance(2), distance):
        with pytest.raises(ValueError, match="expected checkpoints of this run"):
            run(FedAvg(0.05, 2), problem, 4, metrics=(other,), **options)


def made(way, value):
    """A metric named `own` that has this value, or holds it."""
    held, at = Quadratic.random(5, 12, Key(value)), SimpleNamespace(number=value)

    def helper(x):
        return value

    def own(problem, x):
        at.number += 1
        return {"closure": value, "function": helper(x), "tuple": (value,)[0]}.get(way, 0.0)

    if way == "problem":

        def own(problem, x):
            return held.loss(x)

    if way == "default":

        def own(problem, x, k=value):
            return k

    if way == "itself":

        def own(problem, x, k=value):
            return k if len(x) else own(problem, x)

    if way == "partial":
        own = partial(own, k=value)
        own.__name__ = "own"
    if way == "changed":
        at.number = value

        def own(problem, x, seen=[value]):  # noqa: B006
            at.number += 1
            seen.append(at.number)
            return at.number

    return lru_cache(own) if way == "cached" else own


@pytest.mark.parametrize("way", ["closure", "function", "problem", "default", "itself", "partial", "cached", "changed"])
def test_what_a_checkpoint_knows_of_a_metric(way):
    """What it captured, where that is plain; not what changes from call to call. It is made anew in another process."""
    assert digest(describe_callable(made(way, 1))) == digest(describe_callable(made(way, 1)))
    assert (digest(describe_callable(made(way, 1))) == digest(describe_callable(made(way, 2)))) == (way == "changed")


class Counter:
    """A metric that remembers."""

    __name__ = "counter"

    def __init__(self):
        self.seen = 0

    def __call__(self, problem, x):
        self.seen += 1
        return self.seen

    def method(self, problem, x):
        return 2 * self(problem, x)


def test_a_metric_that_remembers_goes_on(tmp_path):
    for name, metric in {"counter": Counter(), "method": Counter().method}.items():
        options = {"checkpoint": tmp_path / name, "metrics": (metric,)}
        run(FedAvg(0.05, 2), Quadratic.random(5, 12, Key(1)), 2, **options)
        history = run(FedAvg(0.05, 2), Quadratic.random(5, 12, Key(1)), 4, **options)
        assert history[name] == [(1 + (name == "method")) * k for k in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert digest(describe_callable(Counter())) != digest(describe_callable(Counter().method))


def loss(problem, x):
    return 0.0


def up_bytes(problem, x):
    return 0.0


def many(problem, x):
    return torch.outer(x, x)


def worded(problem, x):
    return "low"


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ((lambda problem, x: 0.0,), "expected a function with a name, which its column has"),
        ((partial(distance),), "expected a function with a name"),
        ((loss,), "expected a function with another name than 'loss', a column. Fix: rename it"),
        ((up_bytes,), "with another name than 'up_bytes'"),
        ((distance, distance), "expected each name once, which is a column's. Fix: leave one out"),
        ((distance, also_distance(1)), "expected each name once, which is a column's. Fix: rename one"),
        (
            ("error", "error"),
            r"metrics=\('error', 'error'\): expected each name once, which is a column's. Fix: leave one out",
        ),
        (("eror",), "metrics='eror': expected one of 'error', 'loss', 'accuracy'"),
        ((3,), r"metrics\[0\]=3: expected a text or a function"),
        (distance, "expected a list or tuple. Fix: wrap it"),
        ((many,), "many=.*: expected a number. Fix: pass a plain float for many"),
        ((worded,), "worded='low': expected a number"),
    ],
)
def test_what_is_no_metric_is_refused(metrics, said):
    with pytest.raises((TypeError, ValueError), match=said):
        run(FedAvg(0.05, 2), Quadratic.random(5, 12, Key(1)), 2, metrics=metrics)


# The folder to copy


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, TEMPLATE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tests():
    """The template's own tests, imported as pytest would in its folder."""
    before = dict(sys.modules)
    own = load("own")
    yield own, load("test_own")
    for name in ("own", "test_own"):
        sys.modules.pop(name)
    sys.modules |= before


def test_the_template_passes_its_tests(tests, tmp_path):
    _, written = tests
    names = [name for name in vars(written) if name.startswith("test_")]
    assert len(names) == 5
    for name in names:
        getattr(written, name)(*[tmp_path] * (name == "test_resumes"))


class _Kept(dict):
    """What a broken method remembers outside of the state."""


def broken(own):
    """The method, broken so that one of its tests must notice."""

    class A(own.ServerMomentum):
        kept = _Kept()

        def server(self, server, down, up, clients, key):
            v = self.momentum * self.kept.get("v", server.v) + up.dy.mean(0)
            self.kept["v"] = v
            return own.Server(server.x + v, server.v), None

    class B(own.ServerMomentum):
        def broadcast(self, server, key):
            return server

    class C(own.ServerMomentum):
        def server(self, server, down, up, clients, key):
            v = self.momentum * server.v + (1 - self.momentum) * up.dy.mean(0)
            return own.Server(server.x + v, v), None

    class D(own.ServerMomentum):
        def server(self, server, down, up, clients, key):
            v = self.momentum * server.v + up.dy.sum(0)
            return own.Server(server.x + v, v), None

    return {"resumes": A, "counts": B, "none": C, "degenerates": D}


@pytest.mark.parametrize("red", ["resumes", "counts", "none", "degenerates"])
def test_the_templates_tests_are_seen_to_fail(tests, tmp_path, monkeypatch, red):
    """Each of the three laws notices one slip, and none notices the running mean: exercise 3 of notebook 11."""
    own, written = tests
    kind = broken(own)[red]
    monkeypatch.setattr(written, "ServerMomentum", kind)
    monkeypatch.setattr(written, "METHOD", kind(0.1, 3, 0.6))
    failed = []
    for name in ("degenerates", "resumes", "counts"):
        try:
            getattr(written, f"test_{name}")(*[tmp_path] * (name == "resumes"))
        except AssertionError:
            failed.append(name)
    assert failed == ([] if red == "none" else [red])


def test_notebook_11_writes_what_the_template_holds():
    """Class by class, the same code."""
    sources = (TEMPLATE / "own.py", ROOT / "notebooks" / "11_do_it_yourself.py")
    there, here = (
        {node.name: ast.dump(node) for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}
        for path in sources
    )
    assert set(there) == {"Server", "Down", "Up", "ServerMomentum", "LogCosh"}
    assert [name for name in there if there[name] != here.get(name)] == []


def test_the_template_as_a_distribution(tmp_path):
    """As pip leaves it: listed, run, and the method compared with ours on the problem."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]
    (tmp_path / "own.py").write_text((TEMPLATE / "own.py").read_text())
    info = tmp_path / "fedtheory_own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    groups = project["entry-points"].items()
    text = "".join(f"[{group}]\n" + "".join(f"{n} = {to}\n" for n, to in points.items()) for group, points in groups)
    (info / "entry_points.txt").write_text(text)

    def say(*words):
        done = command(*words, "--json", path=str(tmp_path), workers="fork")  # one that starts anew is test_house.py's
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    (played,) = say("run", "ServerMomentum", "logcosh", "--rounds", "20", "--sampled", "4")
    assert played["columns"]["up_bytes"][-1] == 20 * 4 * 5 * 8
    words = ("--methods", "ServerMomentum", "FedAvg", "--tasks", "logcosh", "--seeds", "2", "--workers", "1")
    (compared,) = say("compare", *words, "--out", str(tmp_path / "out"))
    assert {(row["task"], row["method"]) for row in compared["table"]} == {
        ("logcosh", "ServerMomentum"),
        ("logcosh", "FedAvg"),
    }
    assert all(0 < row["quality"] < 1 for row in compared["table"])


# What a slip says


@dataclass(frozen=True)
class Server:
    x: torch.Tensor
    v: torch.Tensor


@dataclass(frozen=True)
class Down:
    x: torch.Tensor


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor


@dataclass(frozen=True)
class Own:
    c: torch.Tensor


@dataclass(frozen=True)
class Right(Algorithm):
    """A method that keeps the contract; each slip changes one step of it."""

    lr: float
    local_steps: int
    name = "Right"

    def init(self, problem, x, key):
        return State(Server(x, torch.zeros_like(x)), Own(x.new_zeros(problem.n, problem.d)))

    def broadcast(self, server, key):
        return Down(server.x)

    def client(self, problem, clients, own, down, key):
        xi, y = problem.draw(clients, self.local_steps, key.fold("xi")), down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y - self.lr * problem.grads(y, xi[k])
            yield y
        return Up(y - down.x), own

    def server(self, server, down, up, clients, key):
        return Server(server.x + up.dy.mean(0), server.v), None


class Bowls(Problem):
    """A problem that keeps the contract; each slip changes one part of it."""

    def __init__(self):
        self.a = torch.randn(4, 3, generator=Key(0).generator(), dtype=DOUBLE)
        self.n, self.layout, self.dtype, self.device = 4, Layout.single(3), DOUBLE, torch.device("cpu")
        self.weights = torch.full((4,), 0.25, dtype=DOUBLE)
        self.constants = Constants(x_star=self.a.mean(0))

    def draw(self, clients, steps, key):
        return [clients] * steps

    def full(self, clients):
        return clients

    def grads(self, y, xi):
        return y - self.a[xi]

    def losses(self, y, xi):
        return 0.5 * (y - self.a[xi]).square().sum(-1)


def method(**steps) -> Algorithm:
    """`Right` with other steps, under the name Mine."""
    return dataclass(frozen=True)(type("Mine", (Right,), steps))(0.1, 2)


def played(**steps):
    """A run of a method with a slip. The problem is an everyday one."""
    return run(method(**steps), Bowls(), 2)


def late(kept):
    """A method whose server keeps something of another form from the first round on."""

    def begin(self, problem, x, key):
        return State(Server(x, kept), None)  # type: ignore[arg-type]

    def go_on(self, server, down, up, clients, key):
        new = {tuple: lambda: (*server.v, up.dy.mean(0))}.get(type(kept), lambda: up.dy.mean(0))()
        if kept:
            new = (server.v[0], replace(server.v[1], x=None))
        return Server(server.x, new), None

    def client(self, problem, clients, own, down, key):
        yield down.x.expand(len(clients), -1)
        return Up(down.x.expand(len(clients), -1)), None

    return method(init=begin, server=go_on, client=client)


def posed(before=None, **parts):
    """A run on a problem with a slip."""
    problem = type("Mine", (Bowls,), {k: v for k, v in parts.items() if callable(v) or k == "closed_form"})()
    for name, value in (before or {}).items():
        delattr(problem, name) if value is ... else setattr(problem, name, value)
    return run(FedAvg(0.1, 2), problem, 2, metrics=("loss", "error", *["accuracy"] * ("accuracy" in parts)))


def ready() -> State:
    return Right(0.1, 2).init(Bowls(), torch.zeros(3, dtype=DOUBLE), Key(0))


def incomplete(kind, *without):
    """A class that lacks something of `Right` or `Bowls`."""
    base = Algorithm if kind is Right else Problem
    kept = {k: v for k, v in vars(kind).items() if not k.startswith("__") or (k == "__init__" and base is Problem)}
    kept = {k: v for k, v in kept.items() if k not in without}
    made = type("Mine", (base,), kept | {"__annotations__": {"lr": float, "local_steps": int}})
    return dataclass(frozen=True)(made)(0.1, 2) if base is Algorithm else made()


def undecorated():
    class Mine(FedAvg):
        momentum: float = 0.9
        name = "Mine"

    return Mine(0.1, 2, momentum=0.5)


def without_yield(self, problem, clients, own, down, key):
    return Up(down.x.expand(len(clients), -1)), own


def once(make, yields=True):
    """A client of one iterate that returns `make(y, own)`."""

    def client(self, problem, clients, own, down, key):
        y = down.x.expand(len(clients), -1)
        if yields:
            yield y
        return make(y, own)

    return client


def of_the_mean(self, problem, clients, own, down, key):
    y = down.x.expand(len(clients), -1)
    yield y.mean(0)
    return Up(y), own


def by_autograd(self, y, xi):
    y = y.clone().requires_grad_()
    return torch.autograd.grad((0.5 * (y - self.a[xi]).square()).sum(), y)[0]


server = lambda change: {"server": lambda self, server, down, up, clients, key: change(server, up)}
init = lambda make: {"init": lambda self, problem, x, key: make(x)}
CARD = Card("idea", "update", "proved", "fails")

SLIPS = {  # slip -> what is called, what the line begins with, and a word of the fix
    "no name": (lambda: incomplete(Right, "name"), "Mine.name=None: expected a text", 'name = "Mine"'),
    "no lr": (lambda: played_without_lr(), "Mine.lr=None: expected a field", "lr: float"),
    "no decorator": (undecorated, "Mine=<class", "@dataclass(frozen=True)"),
    "no client": (
        lambda: incomplete(Right, "client"),
        "Mine.client=None: expected a method",
        "def client(self, problem",
    ),
    "step with too few arguments": (
        lambda: method(broadcast=lambda self, server: Down(server.x)),
        "Mine.broadcast='(self, server)': expected these arguments: server, key",
        "def broadcast(self, server, key)",
    ),
    "unknown hyperparameter": (lambda: FedAvg(0.1, 2, server_rate=1.0), "server_rate=1.0: expected a field", "spell"),
    "replace of an unknown one": (
        lambda: replace(FedAvg(0.1, 2), lrr=1.0),
        "lrr=1.0: expected a field of FedAvg",
        "spell",
    ),
    "replace of no field of State": (
        lambda: replace(ready(), sever=1),
        "State.sever=1: expected a field",
        "server=...",
    ),
    "replace by another type": (
        lambda: replace(ready(), server=torch.zeros(3)),
        "State.server=tensor([0., 0., 0.]): expected a dataclass with a field x",
        "Server(x)",
    ),
    "replace own by a tensor": (
        lambda: replace(ready(), own=torch.zeros(4, 3)),
        "State.own=Tensor of shape",
        "Own(...)",
    ),
    "replace of no field of Server": (
        lambda: played(**server(lambda server, up: (replace(server, w=1), None))),
        "Mine.server='w': expected a field of Server: x, v",
        "add w to class Server",
    ),
    "replace of a tensor": (
        lambda: played(**server(lambda server, up: (replace(server.x, x=1), None))),
        "Mine.server=tensor([0., 0., 0.], dtype=torch.float64): expected a dataclass in replace",
        "replace(server, x=...)",
    ),
    "assignment to a frozen field": (
        lambda: played(**server(lambda server, up: setattr(server, "x", up.dy.mean(0)))),
        "Mine.server='x = ...': expected messages and states that stay as they are",
        "replace(server, x=...)",
    ),
    "init returns the server": (
        lambda: played(**init(lambda x: Server(x, x))),
        "Mine.init=Server(",
        "return State(Server(x), None)",
    ),
    "init returns nothing": (
        lambda: played(**init(lambda x: None)),
        "Mine.init=None: expected a State",
        "return State",
    ),
    "own without a row for each client": (
        lambda: played(**init(lambda x: State(Server(x, x), Own(x[None])))),
        "Own.c.shape=(1, 3): expected (4, .): N = 4 leads",
        "axis",
    ),
    "a number in own": (
        lambda: played(**init(lambda x: State(Server(x, x), Own(1.0)))),
        "Own.c=1.0: expected a tensor that leads with N = 4",
        "a row for each client",
    ),
    "a text in the server": (
        lambda: played(**init(lambda x: State(Server(x, "slow"), None))),
        "Server.v='slow': expected a tensor, a number, None, a Seed",
        "field of the method",
    ),
    "another dtype": (
        lambda: played(**init(lambda x: State(Server(x.float(), x), None))),
        "Server.x.dtype=torch.float32: expected torch.float64",
        ".to(x)",
    ),
    "broadcast returns nothing": (
        lambda: played(broadcast=lambda self, server, key: None),
        "Mine.broadcast=None: expected down with a field x, which client reads",
        "a dataclass with the field x",
    ),
    "broadcast returns the bare vector": (
        lambda: played(broadcast=lambda self, server, key: server.x),
        "Mine.broadcast=tensor([0., 0., 0.], dtype=torch.float64): expected down with a field x",
        "a dataclass with the field x",
    ),
    "broadcast returns a dict": (
        lambda: played(broadcast=lambda self, server, key: {"x": server.x}),
        "Mine.broadcast={'x'",
        "Down(server.x)",
    ),
    "address returns nothing": (
        lambda: played(address=lambda self, down, clients: None),
        "Mine.address=None: expected the Down of broadcast",
        "end with return down",
    ),
    "client without yield": (lambda: played(client=without_yield), "Mine.client=(Up(", "yield y after each local step"),
    "client yields nothing": (
        lambda: played(client=once(lambda y, own: (Up(y), own), yields=False)),
        "Mine.client='no yield': expected to yield each local iterate",
        "yield y",
    ),
    "client yields a mean": (
        lambda: played(client=of_the_mean),
        "Mine.client's yield.shape=(3,): expected (4, .)",
        "expand",
    ),
    "client returns nothing": (
        lambda: played(client=once(lambda y, own: None)),
        "Mine.client=None: expected to return",
        "Up(",
    ),
    "client returns only up": (
        lambda: played(client=once(lambda y, own: Up(y))),
        "Mine.client=Up(",
        "return Up(y - down.x)",
    ),
    "client averages": (
        lambda: played(client=once(lambda y, own: (Up(y.mean(0)), own))),
        "Up.dy.shape=(3,): expected (4, .): S = 4 leads",
        "S clients",
    ),
    "a number in up": (
        lambda: played(client=once(lambda y, own: (Up(1.0), own))),
        "Up.dy=1.0: expected a tensor",
        "row",
    ),
    "up is a tensor": (lambda: played(client=once(lambda y, own: (y, own))), "Mine.client=Tensor", "define Up"),
    "own is dropped": (
        lambda: played(client=once(lambda y, own: (Up(y), None))),
        "Mine.client=None: expected an Own",
        "Own(",
    ),
    "own is made up": (
        lambda: played(client=once(lambda y, own: (Up(y), Own(y))), **init(lambda x: State(Server(x, x), None))),
        "Mine.client=Own(",
        "State(server, Own(...))",
    ),
    "own has another shape": (
        lambda: played(client=once(lambda y, own: (Up(y), Own(y[:1])))),
        "Own.c.shape=(1, 3): expected shape (4, 3)",
        "pass one of shape (4, 3)",
    ),
    "server forgets to average": (
        lambda: played(**server(lambda server, up: (Server(server.x + up.dy, server.v), None))),
        "Server.x.shape=(4, 3): expected (3,), the model's",
        "up.dy.mean(0)",
    ),
    "server forgets the reply": (
        lambda: played(**server(lambda server, up: Server(server.x, server.v))),
        "Mine.server=Server(",
        "return new, None",
    ),
    "server returns another class": (
        lambda: played(**server(lambda server, up: (Down(server.x), None))),
        "Mine.server=Down(",
        "return Server(...), None",
    ),
    "server turns a tensor into a number": (
        lambda: played(**server(lambda server, up: (Server(server.x, float(server.v[0])), None))),
        "Server.v=0.0: expected a tensor (3,), torch.float64, as before this round",
        "let init make",
    ),
    "server makes a momentum late": (
        lambda: run(late(None), Bowls(), 2),
        "Server.v=tensor([0., 0., 0.], dtype=torch.float64): expected None, as before this round",
        "let init make",
    ),
    "server counts in a tensor": (
        lambda: run(late(0.0), Bowls(), 2),
        "Server.v=tensor([0., 0., 0.], dtype=torch.float64): expected a number, as before",
        "let init make",
    ),
    "server keeps ever more": (
        lambda: run(late(()), Bowls(), 2),
        "Server.v=(tensor([0., 0., 0.], dtype=torch.float64),): expected a tuple of 0, as before this round",
        "let init make",
    ),
    "server's part changes in a part": (
        lambda: run(late((None, Down(torch.zeros(3, dtype=DOUBLE)))), Bowls(), 2),
        "Server.v[1].x=None: expected a tensor (3,), torch.float64",
        "let init make",
    ),
    "server reads what up has not": (
        lambda: played(**server(lambda server, up: (Server(server.x + up.dx, server.v), None))),
        "Mine.client=Up(",
        "the field dx",
    ),
    "close returns nothing": (
        lambda: played(close=lambda self, own, clients, down, reply: None),
        "Mine.close=None: expected an Own",
        "Own(...)",
    ),
    "a problem without full": (
        lambda: incomplete(Bowls, "full"),
        "Mine.full=None: expected a method: The sample",
        "def full(",
    ),
    "a problem without grads": (lambda: incomplete(Bowls, "grads"), "Mine.grads=None: expected a method", "def grads("),
    "full returns nothing": (
        lambda: posed(full=lambda self, clients: None),
        "Mine.full=None: expected the sample",
        "return",
    ),
    "draw forgets the steps": (
        lambda: posed(draw=lambda self, clients, steps, key: [clients]),
        "len(Mine.draw)=1: expected a sample for each of the 2 steps",
        "all steps",
    ),
    "draw returns nothing": (
        lambda: posed(draw=lambda self, clients, steps, key: None),
        "Mine.draw=None: expected a sequence",
        "* steps",
    ),
    "grads averages": (
        lambda: posed(grads=lambda self, y, xi: (y - self.a[xi]).mean(0)),
        "Mine.grads.shape=(3,): expected (4, 3) for y of 4 clients",
        "row i",
    ),
    "grads returns nothing": (lambda: posed(grads=lambda self, y, xi: None), "Mine.grads=None: expected", "(4, 3)"),
    "grads in another dtype": (
        lambda: posed(grads=lambda self, y, xi: (y - self.a[xi]).float()),
        "Mine.grads.dtype=torch.float32: expected torch.float64",
        "dtype",
    ),
    "autograd without saying so": (
        lambda: posed(grads=by_autograd),
        "Mine.closed_form=True: expected False",
        "closed_form",
    ),
    "losses of all clients": (
        lambda: posed(losses=lambda self, y, xi: (y - self.a[xi]).square().sum()),
        "Mine.losses.shape=(): expected (4,)",
        "all axes but the first",
    ),
    "weights below 0": (
        lambda: posed({"weights": torch.tensor([-1, 1, 0.5, 0.5], dtype=DOUBLE)}),
        "Mine.weights.min()=-1.0: expected no negative ones",
        "pass shares of 0 or more",
    ),
    "weights in float32": (
        lambda: posed({"weights": torch.full((4,), 0.25)}),
        "Mine.weights.dtype=torch.float32: expected torch.float64",
        "call Mine.weights.to(torch.float64)",
    ),
    "weights that do not sum to 1": (
        lambda: posed({"weights": torch.ones(4, dtype=DOUBLE)}),
        "Mine.weights.sum()=4.0: expected 1",
        "divide",
    ),
    "a solution of another shape": (
        lambda: posed({"constants": Constants(x_star=torch.zeros(4, 3, dtype=DOUBLE))}),
        "Mine.constants.x_star.shape=(4, 3): expected shape (3)",
        "pass one of shape (3)",
    ),
    "a text as device": (
        lambda: posed({"device": "cpu"}),
        "Mine.device='cpu': expected an instance of device",
        'self.device = torch.device("cpu")',
    ),
    "a text as chunk": (lambda: posed({"chunk": "a"}), "Mine.chunk='a': expected an integer >= 1", "chunk = 8"),
    "no clients at a time": (lambda: posed({"chunk": 0}), "Mine.chunk=0: expected", "chunk = 8"),
    "an accuracy in words": (
        lambda: posed(accuracy=lambda self, x: "good"),
        "Mine.accuracy='good': expected a number",
        "plain float",
    ),
    "a number as layout": (
        lambda: posed({"layout": 3}),
        "Mine.layout=3: expected an instance of Layout",
        "Layout.single(d)",
    ),
    **{
        f"a problem without {name}": (
            lambda name=name: posed({name: ...}),
            f"Mine.{name}=None: expected an attribute",
            f"self.{name}",
        )
        for name in ("n", "layout", "dtype", "device", "weights")
    },
    "a class as make": (lambda: Method("Mine", "full", FedAvg, CARD), "Method('Mine').make=<class", "lambda o:"),
    "no card": (
        lambda: Method("Mine", "full", lambda o: FedAvg(o.lr, 1), "idea"),
        "Method('Mine').card='idea'",
        "Card(",
    ),
    "make with one argument": (
        lambda: Offer("mine", Bowls, lambda key: Bowls()),
        "Offer('mine').make=<function",
        "lambda key,",
    ),
    "one rate": (
        lambda: Offer("mine", Bowls, lambda key, device, options: Bowls(), rates=0.1),  # type: ignore[arg-type]
        "Offer('mine').rates=0.1: expected an instance of tuple",
        "rates=(0.3, 0.1, 0.03)",
    ),
    "one level in words": (
        lambda: Offer("mine", Bowls, lambda key, device, options: Bowls(), level="a"),  # type: ignore[arg-type]
        "Offer('mine').level='a': expected a finite number",
        "plain float",
    ),
    "a number as command": (
        lambda: Method("Mine", "full", lambda o: FedAvg(o.lr, 1), CARD, command=3),  # type: ignore[arg-type]
        "Method('Mine').command=3: expected a function of (options)",
        "lambda o:",
    ),
    "an option that compare has not": (
        lambda: Asked(MEDIUM["quadratics"], 0.1, 0.5).momentum,
        "option='momentum': expected one of lr, local_steps",
        "Mine(o.lr, o.local_steps, 0.9)",
    ),
    "an option that run has not": (
        lambda: Heeded(SimpleNamespace(**METHOD_OPTIONS)).momentum,  # type: ignore[arg-type]
        "option='momentum': expected one of lr, local_steps",
        "Mine(o.lr, o.local_steps, 0.9)",
    ),
}


def played_without_lr():
    kept = {name: one for name, one in vars(Right).items() if not name.startswith("__")}
    return dataclass(frozen=True)(type("Mine", (Algorithm,), kept | {"__annotations__": {"local_steps": int}}))(2)


def said(call) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_one_line(slip):
    """It names what, the value, what was expected and a fix."""
    call, begins, fix = SLIPS[slip]
    text = said(call)
    assert len(text.splitlines()) == 1
    assert text.startswith(begins), text
    assert "expected" in text
    assert fix in text.partition(" Fix: ")[2], text


def test_the_page_says_what_the_slips_say():
    """Every line of the page's last table is the beginning of one above; dots stand for a value."""
    rows = re.findall(
        r"^\| [^|]* \| `(\w[^|`]*)` \|$", PAGE.read_text().partition("## Error messages")[2], re.MULTILINE
    )
    assert len(rows) >= 10
    found = [said(call) for call, *_ in SLIPS.values()]
    for row in rows:
        pattern = re.escape(row).replace(re.escape("..."), ".*").replace("'Mine'", ".*Mine'")
        assert any(re.match(pattern, text) for text in found), row


def test_play_round_says_it_too():
    """Where a round fails: it is played once more and looked at."""
    wrong = method(broadcast=lambda self, server, key: server.x)
    with pytest.raises(TypeError, match=r"Mine\.broadcast=.*: expected down with a field x.*Fix: "):
        play_round(wrong, Bowls(), ready(), torch.arange(4), Key(0))


def test_what_is_right_is_left_alone():
    """A state is a pair and can be replaced, unpacked and compared; errors of other kinds come through as they are."""
    problem, state = Bowls(), ready()
    assert run(Right(0.1, 2), problem, 5)["error"][-1] < 1
    other = replace(state, own=None)
    assert isinstance(other, State)
    assert (other.server is state.server, other.own) == (True, None)
    server, own = state
    assert state == (server, own)
    with pytest.raises(ZeroDivisionError):
        played(**{"server": lambda self, server, down, up, clients, key: 1 / 0})
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        played(**{"server": lambda self, server, down, up, clients, key: torch.nothing})


def test_only_the_first_round_is_looked_at():
    """A run loses no time: what would be refused in round 0 is not noticed in round 1, on method and problem.

    In the first one a client is played once more, alone.
    """
    rounds = []

    def client(self, problem, clients, own, down, key):
        rounds.append(key.path[-1])
        y = down.x.expand(len(clients), -1)
        if rounds[-1] == 0:
            yield y
        return Up(y), own

    run(method(client=client), Bowls(), 3)
    assert rounds == [0, 0, 1, 2]
    calls = []

    def grads(self, y, xi):
        calls.append(len(y))
        found = y - self.a[xi]
        return found if len(calls) <= 4 else found.mean(0)

    assert posed(grads=grads).diverged is None
    assert calls == [4, 4, 1, 1, 4, 4]
    assert Quadratic.random(2, 2, Key(0)).full(torch.arange(2)) is not None


@pytest.mark.parametrize(("words", "tries"), [("DefaultCPUAllocator: can't allocate memory", 1), ("a slip", 2)])
def test_a_round_without_memory_is_not_played_again(words, tries):
    """Anything else is: the second time each step's return is looked at."""
    seen = []

    def broadcast(self, server, key):
        seen.append(words)
        raise RuntimeError(words)

    with pytest.raises(RuntimeError, match=words):
        play_round(method(broadcast=broadcast), Bowls(), ready(), torch.arange(4), Key(0))
    assert len(seen) == tries
