"""A researcher in a hurry: each mistake has one line, and the call passes once it is changed as the line says.

A case is a call as it is written. The line's fix is read and followed on the call's own text: an argument is spelt
otherwise, replaced, swapped or left out, or the data are.
"""

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from each import each
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import fedtheory
from fedtheory import Key, Quadratic, Supervised
from fedtheory.problems import partitions

X = torch.randn(60, 8, generator=torch.Generator().manual_seed(0))
Y = X[:, :1] * 2
CLASSES = (X[:, 0] > 0).long()
SIZES = (9, 21, 30)


class Pair(nn.Linear):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), x


class Named(nn.Linear):
    def forward(self, x: torch.Tensor) -> Any:
        return SimpleNamespace(logits=super().forward(x))


class Around(nn.Module):
    """A module around another one, which returns a part of what that one does."""

    def __init__(self, of: nn.Module, part: str) -> None:
        super().__init__()
        self.of, self.part = of, part

    def forward(self, x: torch.Tensor) -> Any:
        return eval(self.part, {"self": self, "x": x})


def net(outputs: int = 1) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, outputs))


def data(y: torch.Tensor = Y, x: torch.Tensor = X) -> list[Any]:
    return list(zip(x.split(SIZES), y.split(SIZES)))


def images() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 3))


PICTURES, KINDS = (255 * X.abs()).byte().repeat(1, 5)[:, :36].view(60, 1, 6, 6), torch.arange(60) % 3
CASES = [
    # data
    "Supervised(net(), mse, DataLoader(TensorDataset(X, Y)))",
    "Supervised(net(), mse, [DataLoader(TensorDataset(X, Y))])",
    "Supervised(net(), mse, (X, Y))",
    "Supervised(net(), mse, dict(enumerate(data())))",
    "Supervised(net(), mse, data(Y[:, 0]))",
    "Supervised(net(2), cross, data(CLASSES.float()))",
    "Supervised(net(2), cross, data(CLASSES + 1))",
    "Supervised(net(2), cross, data(CLASSES[:, None]))",
    "Supervised(net(2), cross, data(nn.functional.one_hot(CLASSES)))",
    "Supervised(images(), cross, data(KINDS, PICTURES))",
    "Supervised(images(), cross, data(KINDS, PICTURES[:, 0].float()))",
    "Supervised(images(), cross, data(KINDS, PICTURES.permute(0, 2, 3, 1).float()))",
    "Supervised(net(), mse, data(Y, X.where(X < 1, torch.nan)))",
    "Supervised.from_frame(net(), mse, frame, 'target')",
    "Supervised.from_frame(net(), mse, frame, 'target', clients='shop')",
    "Supervised.from_frame(net(2), cross, labelled, 'target', by='shop')",
    "partitions.dirichlet(CLASSES.float(), 3, 0.5, Key(0))",
    "partitions.dirichlet(CLASSES, 3, 0.5)",
    "partitions.dirichlet(CLASSES, num_clients=3, alpha=0.5, key=Key(0))",
    # networks
    "Supervised(Pair(8, 1), mse, data())",
    "Supervised(Named(8, 1), mse, data())",
    "Supervised(net().half(), mse, data())",
    "Supervised(net(), nn.MSELoss, data())",
    "Supervised(net(), nn.MSELoss(reduction='sum'), data())",
    "Supervised(mse, net(), data())",
    "Supervised(net(), mse, data(), batch_size=4)",
    "Supervised(net(), mse, data(), device='gpu')",
    "Supervised(net(), mse, data(), norm='fedbn')",
    # methods
    "FedAvg(learning_rate=0.1)",
    "FedAvg(0.1, None)",
    "FedAvg(0.1, 2, 1.0, False, 3)",
    "FedAvg('auto', 5)",
    "ServerOptimizer(FedAvg(0.1, 2))",
    "ServerOptimizer(FedAvg(0.1, 2), torch.optim.Adam)",
    "PrivateUploads(FedAvg(0.1, 2), noise=1.0)",
    "MaskedUploads(STC(0.1, 2, 0.5))",
    "ClientMomentum(FedAvg(0.1, 2), momentum=0.5)",
    # runs
    "run(problem, FedAvg(0.1, 2), 3)",
    "run(FedAvg(0.1, 2), problem)",
    "run(FedAvg(0.1, 2), problem, num_rounds=3)",
    "run(FedAvg(0.1, 2), problem, 1e2)",
    "run(FedAvg(0.1, 2), problem, 3, sampled=0.5)",
    "run(FedAvg(0.1, 2), problem, 3, sampled=2, sampler=Cyclic(2))",
    "run(FedAvg(0.1, 2), problem, 3, sampler=Cyclic)",
    "run(FedAvg(0.1, 2), problem, 3, metrics='loss')",
    "run(FedAvg(0.1, 2), problem, 3, stop=EarlyStopping)",
    "run(FedAvg(0.1, 2), mlp, 3, x0=net())",
    "run(FedAvg, problem, 3)",
    "run(FedAvg(0.1, 3), uneven, 2)",
    "run(MaskedUploads(FedAvg(0.1, 2)), problem, 2, sampled=2)",
    "run(FedAvg(0.1, 2), kept, 2)",
    # several, and what comes out
    "compare_methods(['FedAvg'], problem, 2, (0.1,))",
    "compare_methods('FedAvg', problem, 2)",
    "compare_methods(['FedAvg'], problem, 2, rates=0.1)",
    "compare_methods(['FedAvg'], problem, 2, lr=[0.1])",
    "run_seeds(FedAvg(0.1, 2), problem, 2, seed=1)",
    "history.plot('errors')",
    "history.save(folder)",
]


def space(folder: str) -> dict[str, Any]:
    """What a researcher has at hand."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.numpy()).assign(shop=[f"shop {i % 3}" for i in range(60)])
    problem, mse = Quadratic.random(4, 6, Key(0)), nn.MSELoss()
    normed = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    return {
        **{name: getattr(fedtheory, name) for name in fedtheory.__all__},
        **{"X": X, "Y": Y, "CLASSES": CLASSES, "KINDS": KINDS, "PICTURES": PICTURES},
        **{"torch": torch, "nn": nn, "partitions": partitions},
        **{one.__name__: one for one in (net, data, images, Pair, Named, Around, DataLoader, TensorDataset)},
        "mse": mse,
        "cross": nn.CrossEntropyLoss(),
        "frame": frame.assign(target=Y.numpy()),
        "labelled": frame.assign(target=CLASSES.numpy()),
        "problem": problem,
        "history": fedtheory.run(fedtheory.FedAvg(0.1, 2), problem, 2),
        "mlp": Supervised(net(), mse, data()),
        "uneven": Supervised(net(), mse, data(), epochs=1),
        "kept": Supervised(normed, mse, data(), norm="local"),
        "folder": folder,
        "S": 2,
    }


# How a line is followed


class Call:
    """A call as text, whose arguments can be changed."""

    def __init__(self, code: str, names: dict[str, Any]) -> None:
        self.call, self.names = ast.parse(code, mode="eval").body, dict(names)
        assert isinstance(self.call, ast.Call)
        self.order = list(inspect.signature(self.value(self.call.func)).parameters)

    def value(self, node: ast.expr) -> Any:
        return eval(ast.unparse(node), self.names)

    def run(self) -> Any:
        return self.value(self.call)

    @property
    def given(self) -> dict[str, ast.expr]:
        """Arguments by name."""
        named = {one.arg: one.value for one in self.call.keywords if one.arg}
        return dict(zip(self.order, self.call.args)) | named

    def set(self, name: str, value: Any) -> None:
        self.names[f"fixed_{name}"] = value
        node = ast.Name(f"fixed_{name}", ast.Load())
        inner = [one for one in ast.walk(self.call) if isinstance(one, ast.Call) and one is not self.call]
        there = [one for call in (self.call, *inner) for one in call.keywords if one.arg == name]
        if there:
            there[0].value = node
        elif name in self.order[: len(self.call.args)]:
            self.call.args[self.order.index(name)] = node
        elif name in self.order or not inner:
            self.call.keywords.append(ast.keyword(name, node))
        else:  # of the method
            names = list(inspect.signature(self.value(inner[0].func)).parameters)
            inner[0].args = inner[0].args[: names.index(name)]
            inner[0].keywords.append(ast.keyword(name, node))

    def drop(self, *names: str) -> None:
        self.call.keywords = [one for one in self.call.keywords if one.arg not in names]


def codes(fix: str) -> Iterator[str]:
    """What may be code in it: from behind a word that announces some to where it ends."""
    for start in re.finditer(r"\b(?:pass|call|write|takes|make|as|example) |: ", fix):
        piece = fix[start.end() :]
        for end in [*(found.start() for found in re.finditer(r", | or |; |: ", piece)), len(piece)]:
            yield piece[:end].rstrip(".")


def follow(call: Call, said: str) -> None:
    """Change the call as the line says."""
    head, _, fix = said.partition("Fix: ")
    argument = re.split(r"[=\[ :.]", head, maxsplit=1)[0]
    if found := re.search(r"spell it (\w+)", fix):
        (keyword,) = [one for one in call.call.keywords if one.arg == argument]
        keyword.arg = found[1]
    elif found := re.search(r"swap (\w+) and (\w+)", fix):
        one, other = (call.value(call.given[name]) for name in found.groups())
        call.set(found[1], other)
        call.set(found[2], one)
    elif found := re.search(r"name the others, as (\w+)=", fix):
        *call.call.args, last = call.call.args
        call.set(found[1], call.value(last))
    elif found := re.search(r"expected (\d+) arguments.*leave the last ones out", said):
        call.call.args = call.call.args[: int(found[1])]
    elif found := re.search(r"leave out ([^:]*)|leave it out", fix):
        call.drop(argument, *re.findall(r"\w+", found[1] or ""))
    elif found := re.search(r"forward returns (self\S+)", fix):
        call.set("module", Around(call.value(call.given["module"]), found[1]))
    elif found := re.search(r"choose for example (\w+)", fix):
        call.set(argument, call.names[found[1]](0.1, 2))
    elif found := re.search(r"expected one of '(\w+)'", head):
        call.set(argument, found[1])
    elif found := re.search(r"a plain (integer|float)", fix):
        call.set(argument, 5 if found[1] == "integer" else 0.1)
    else:
        replace(call, argument, fix)


def replace(call: Call, argument: str, fix: str) -> None:
    """Put the code of a fix in its place."""
    values = {name: call.value(node) for name, node in call.given.items()}
    own = call.names | values | {"method": values.get("algorithm"), "loader": values.get("clients")}
    pairs = values.get("clients")
    if isinstance(pairs, tuple):
        own |= dict(zip("xy", pairs))
    for code in codes(fix):
        keyword = re.fullmatch(r"(\w+)=([^=].*)", code)
        name, code = keyword.groups() if keyword else (argument, code)
        with suppress(Exception):  # most of a line is words
            if re.search(r"\b[xy]\b", code) and isinstance(pairs, list):
                ends = [(code, "y") if re.search(r"\bx\b", code) else ("x", code)]
                call.set("clients", [tuple(eval(end, own | {"x": x, "y": y}) for end in ends[0]) for x, y in pairs])
                return
            value = eval(code, own)
            if re.search(r"clients\[0\]", code):
                value = [value, *values["clients"][1:]]
            if name not in call.given and isinstance(value, fedtheory.Algorithm):
                name = "algorithm"
            if argument in values and name != argument:
                call.drop(argument)
            call.set(name, value)
            return
    raise AssertionError(f"no code in {fix!r}")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    return space(str(tmp_path_factory.mktemp("hurried")))


@each(code=CASES)
def test_a_mistake_has_one_line_whose_fix_works(code, names):
    call = Call(code, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError, OSError)) as caught:
            call.run()
        said = str(caught.value)
        assert "\n" not in said
        assert len(said) < 500
        follow(call, said)
        call.run()


def test_there_are_as_many_as_a_first_week_has():
    assert len(set(CASES)) >= 40
