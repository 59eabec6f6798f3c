"""What a run recorded: `History`, as a table, a picture or a file; intervals over several seeds.

A saved history is sealed JSON (see `core.files`): columns, divergence, the final model. Nothing is pickled.
"""

import base64
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import State
from fedtheory.core.files import Broken, misfit, number, plain, seal, unseal, write_target
from fedtheory.core.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMAT = "fedtheory history 1"
_SHAPE = {"columns": dict, "diverged": (list, type(None)), "seconds": list, "x": str, "dtype": str}
T = TypeVar("T")
_LINES = 6  # of a table that is cut
Metric = Callable[[Any, torch.Tensor], Any]  # of a problem and a model: a number, a vector, a dict of numbers
METRICS: dict[str, Metric] = {
    "error": lambda problem, x: problem.error(x),
    "loss": lambda problem, x: problem.loss(x),
    "accuracy": lambda problem, x: problem.accuracy(x),
}
COUNTED = ("up_scalars", "up_bytes", "down_scalars", "down_bytes", "saved_bytes")


@dataclass(frozen=True)
class Divergence:
    """Where a run left the finite numbers.

    Fields:
        round: the round (from 0) in which it happened; of a metric, the rounds done at the record.
        client: the first client whose upload was not finite; None where every upload was.
        quantity: which value, such as "Up.dy", "Server.x", or a metric.
    """

    round: int
    client: int | None
    quantity: str


@dataclass
class History:
    """What a run recorded.

    Fields:
        columns: one list per quantity, all of one length. There are "round" (rounds done, 0 = start), the metrics asked
            for ("error", "loss", a function's name), and the traffic so far, summed over the clients. It has
            "up_scalars", "up_bytes", "down_scalars", "down_bytes", and "saved_bytes", what shared seeds spared in both
            directions.
        state: after the last finite round.
        diverged: None, or where the run left the finite numbers; it stops there. A problem's metric that is not finite
            stops no run: where it is so in the last record, this names it, and the first record from which on it is.
        seconds: since the start of this call, at each record; NaN for records of an earlier call that it goes on from.
        interrupted: None, or the rounds that were done when Ctrl-C ended the run.
        stopped: None, or the rule of `run(stop=...)` that ended the run.

    Iterating gives a dict for each record, so `pandas.DataFrame(history)` is `history.frame()`.

    >>> from fedtheory import FedAvg, Key, Quadratic, run
    >>> run(FedAvg(lr=0.5, local_steps=5), Quadratic.random(n=10, d=5, key=Key(0)), rounds=20, every=10)
    History of rounds 0 to 20, 3 records
    round   error  up_bytes  down_bytes
        0       1         0           0
       10  0.1837      4000        4000
       20  0.1835      8000        8000
    """

    columns: dict[str, list[float]]
    state: State = field(compare=False)
    diverged: Divergence | None = None
    seconds: list[Any] = field(default_factory=list, compare=False)
    interrupted: int | None = field(default=None, compare=False)
    stopped: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        checks.tidy(self)

    @property
    def x(self) -> torch.Tensor:
        """The final global model, (d,)."""
        return self.state.server.x

    def __iter__(self) -> Iterator[dict[str, float]]:
        for row in zip(*self.columns.values()):
            yield dict(zip(self.columns, row))

    def frame(self) -> Any:
        """The records as a pandas frame."""
        return as_frame(self.columns)

    def plot(self, metric: str | None = None, against: str = "round", ax: Any = None, **line: Any) -> Any:
        """Draw a metric against "round", "bytes" or "seconds". Returns the axes, to draw further runs into.

        Args:
            metric: a column; default the first metric of the run.
            ax: axes of matplotlib; default new ones.
            line: options of matplotlib's `plot`, such as label="SSF".
        """
        name = choose_column(metric, self.columns)
        places, label = axis_values(self.columns, self.seconds, against)
        ax = prepare_axes(ax, name, label)
        ax.plot(places, self.columns[name], **line)
        if "label" in line:
            ax.legend(frameon=False)
        return ax

    def save(self, path: str | Path) -> None:
        """Write columns, divergence, seconds and the final model to a file: JSON with its SHA-256, no pickle."""
        write(path, {"format": _FORMAT, **self.content()})

    def content(self) -> dict[str, Any]:
        """What a file holds of it."""
        x = self.x.detach().cpu().contiguous()
        return {
            "columns": self.columns,
            "diverged": self.diverged and list(vars(self.diverged).values()),
            "seconds": self.seconds,
            "dtype": str(x.dtype).removeprefix("torch."),
            "x": base64.b64encode(x.view(torch.uint8).numpy().tobytes()).decode(),
        }

    @staticmethod
    def load(path: str | Path) -> "History":
        """A history that was saved. Its state is the final model alone: a run does not go on from it.

        Raises ValueError for a damaged file.
        """
        return read(path, _FORMAT, "History.save", History.of_content)

    @staticmethod
    def of_content(content: dict[str, Any]) -> "History":
        """The history of which a file holds this. Raises ValueError where it holds none."""
        if (wrong := misfit(content, _SHAPE)) is not None:
            raise Broken(wrong)
        dtype = getattr(torch, content["dtype"])
        x = torch.frombuffer(bytearray(base64.b64decode(content["x"])), dtype=dtype)
        for column in (*content["columns"].values(), content["seconds"]):
            column[:] = [number(value) if isinstance(value, str) else value for value in column]
        diverged = content["diverged"] and Divergence(*content["diverged"])
        return History(content["columns"], State(_Model(x), None), diverged, content["seconds"])

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("columns", ()):
            expected = f"an attribute: {name} is a column"
            checks.reject(f"history.{name}", None, expected, f"write history[{name!r}]", AttributeError)
        raise AttributeError(f"'History' object has no attribute {name!r}")

    def __getitem__(self, name: str) -> list[float]:
        return self.columns[checks.choice("name", name, self.columns)]

    def __repr__(self) -> str:
        rounds = self.columns.get("round") or [0]
        said = f"History of rounds {rounds[0]} to {rounds[-1]}, {len(rounds)} records"
        said += f", diverged in round {self.diverged.round} ({self.diverged.quantity})" if self.diverged else ""
        return f"{said}\n{as_lines(self.columns)}"


@dataclass(frozen=True)
class _Model:
    """The server's state of a history that was saved."""

    x: torch.Tensor


def model_of(x: torch.Tensor | History, d: int) -> torch.Tensor:
    """A model x (d,), or a History's. Raises ValueError or TypeError where it is none."""
    return checks.tensor("x", x.x if isinstance(x, History) else x, (d,))


def write(path: str | Path, content: dict[str, Any]) -> None:
    if (path := checks.path("path", path)).is_dir():
        checks.reject("path", str(path), "a file to write", f"pass {str(path / 'history.json')!r}", OSError)
    if not path.parent.is_dir():
        fix = f"make it: pathlib.Path({str(path.parent)!r}).mkdir(parents=True)"
        checks.reject("path", str(path), "a file in a folder that is there", fix, OSError)
    write_target(path, seal(plain(content), None))


def read(path: str | Path, form: str, by: str, made: Callable[[dict[str, Any]], T]) -> T:
    """What a sealed file of the format `form` holds, which `by` wrote. Raises ValueError for a damaged file."""
    if not (path := checks.path("path", path)).is_file():
        checks.reject("path", str(path), f"a file that {by} wrote", "save it first, or pass the whole path", OSError)
    try:
        content = unseal(path.read_bytes())
        if content.get("format") != form:
            raise Broken("it is something else")
        return made(content)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        checks.reject("path", str(path), f"a file that {by} wrote ({error})", "save it again")


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and 95% Student interval over seeds; NaN where any value is; the value itself for one seed."""
    if not isinstance(values, (list, tuple, np.ndarray)) or not np.ndim(values) or not len(values):
        checks.reject("values", values, "numbers, one per seed", "pass a list of them", TypeError)
    array = np.asarray([checks.outcome(f"values[{i}]", value) for i, value in enumerate(values)], dtype=float)
    mean = float(array.mean())
    if len(array) < 2 or not math.isfinite(mean):
        return mean, mean, mean
    from scipy.special import stdtrit  # a fifth of a second, which workers need not spend

    half = float(stdtrit(len(array) - 1, 0.975) * array.std(ddof=1) / math.sqrt(len(array)))
    return mean, mean - half, mean + half


def measured(columns: Mapping[str, Sequence[float]]) -> list[str]:
    """Return names of the metrics among a history's columns."""
    return [name for name in columns if name not in ("round", *COUNTED)]


def choose_column(metric: str | None, columns: Mapping[str, Sequence[float]]) -> str:
    """Return a column by name; None: the first metric, or the last column of a run without any."""
    return checks.choice("metric", metric or [*measured(columns), *list(columns)[-1:]][0], columns)


def as_lines(columns: Mapping[str, Sequence[float]]) -> str:
    """Rounds, metrics and bytes as lines, the first and the last of many."""
    names = ["round", *measured(columns), *(name for name in ("up_bytes", "down_bytes") if name in columns)]
    rows = list(zip(*(columns[name] for name in names)))
    cut = rows if len(rows) <= _LINES else [*rows[: _LINES // 2], None, *rows[-(_LINES // 2) :]]
    words = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] if row else ["..."] * len(names)
        for row in cut
    ]
    wide = [max(map(len, column)) for column in zip(names, *words)]
    return "\n".join("  ".join(word.rjust(width) for word, width in zip(row, wide)) for row in (names, *words))


def as_frame(columns: Mapping[str, Sequence[float]]) -> Any:
    """Return columns as a pandas frame."""
    try:
        import pandas
    except ImportError:
        fix = "pip install 'fedtheory[frame]', or use history.columns, a dict of lists"
        checks.reject("frame", "pandas", "pandas, which is not installed", fix, ModuleNotFoundError)
    return pandas.DataFrame(dict(columns))


def axis_values(
    columns: Mapping[str, Sequence[float]], seconds: Sequence[float], against: str
) -> tuple[Sequence[float], str]:
    """Return values and label of the axis that a curve is drawn against."""
    checks.choice("against", against, ("round", "bytes", "seconds"))
    if against == "bytes":
        both = zip(columns["up_bytes"], columns["down_bytes"])
        return [(up + down) / 1e6 for up, down in both], "MB sent, both ways"
    return (seconds, "seconds") if against == "seconds" else (columns["round"], "round")


def prepare_axes(ax: "Axes | None", metric: str, label: str) -> "Axes":
    """Return axes for curves in the package's look: one column wide, a logarithmic scale for errors and losses."""
    from matplotlib import pyplot

    if ax is None:
        ax = pyplot.figure(figsize=(3.5, 2.6), layout="constrained").add_subplot()
        ax.spines[["top", "right"]].set_visible(False)
    if metric in ("error", "loss"):
        ax.set_yscale("log")
    ax.set_xlabel(label)
    ax.set_ylabel(metric)
    return ax


def choose_metrics(metrics: Sequence[str | Metric]) -> dict[str, Metric]:
    """Return what is recorded, by column name. Raises ValueError for a name that is unknown, taken, or none."""
    found: dict[str, Metric] = {}
    for metric in metrics:
        if not callable(metric):
            name = checks.choice("metrics", metric, METRICS)
        else:
            name = getattr(metric, "__name__", None)
            if isinstance(metric, type) or not checks.takes(metric, 2):
                fix = f"write def {name if isinstance(name, str) and name.isidentifier() else 'metric'}(problem, x)"
                checks.reject("metrics", metric, "a function of (problem, x)", fix, TypeError)
            if not isinstance(name, str) or not name.isidentifier():
                fix = "write it with def, or give it a __name__"
                checks.reject("metrics", metric, "a function with a name, which its column has", fix)
            if name in (*METRICS, *COUNTED, "round"):
                checks.reject("metrics", metric, f"a function with another name than {name!r}, a column", "rename it")
        if name in found:
            fix = "leave one out" if metrics.count(metric) > 1 else "rename one"
            names = tuple(getattr(one, "__name__", one) for one in metrics)
            checks.reject("metrics", names, "each name once, which is a column's", fix)
        found[name] = _guarded(metric) if callable(metric) else METRICS[name]
    return found


def _guarded(metric: Metric) -> Metric:
    """A user's: given a copy, which it may change and differentiate through; a float, on which a group can agree.

    Of a vector or a dict: its numbers by their columns' names, such as "name[0]" or "name.worst".
    """
    name = getattr(metric, "__name__", "")

    def number(value: Any) -> float:
        one = (
            isinstance(value, (torch.Tensor, np.ndarray))
            and math.prod(value.shape) == 1
            and not getattr(value, "is_meta", False)
        )
        return float(checks.outcome(name, value.item() if one else value))

    def measure(problem: Problem, x: torch.Tensor) -> float | dict[str, float]:
        found = metric(problem, x.detach().clone())
        if isinstance(found, Mapping):
            return {f"{name}.{part}": number(value) for part, value in found.items()}
        if isinstance(found, (list, tuple)) or (getattr(found, "ndim", 0) == 1 and len(found) > 1):
            return {f"{name}[{i}]": number(value) for i, value in enumerate(found)}
        return number(found)

    return measure


def lost_metric(columns: Mapping[str, Sequence[float]], metrics: Iterable[str]) -> Divergence | None:
    """Find the first metric of the problem that is not finite from some record to the last; a function's may be so."""
    for name in (name for name in metrics if name in METRICS):
        finite = list(map(math.isfinite, columns[name]))
        if not finite[-1]:
            since = len(finite) - finite[::-1].index(True) if any(finite) else 0
            return Divergence(int(columns["round"][since]), None, name)
    return None
