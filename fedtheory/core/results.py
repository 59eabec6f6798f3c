"""What a run recorded as a table, a picture or a file; numbers over several seeds.

A saved history is sealed JSON (see `core.files`): columns, divergence, the final model. Nothing is pickled.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedtheory.core import checks
from fedtheory.core.files import Broken, misfit, number, plain, seal, unseal, write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMAT = "fedtheory history 1"
_SHAPE = {"columns": dict, "diverged": (list, type(None)), "seconds": list, "x": str, "dtype": str}
_COUNTED = ("scalars", "bytes")  # how the names of the columns end that count what crossed
_LINES = 6  # of a table that is cut


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95% Student interval over seeds; NaN where any value is; the value itself for one seed."""
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
    """Names of the metrics among a history's columns."""
    return [name for name in columns if name != "round" and not name.endswith(_COUNTED)]


def chosen(metric: str | None, columns: Mapping[str, Sequence[float]]) -> str:
    """A column by name; None: the first metric, or the last column of a run without any."""
    return checks.choice("metric", metric or [*measured(columns), *list(columns)[-1:]][0], columns)


def table(columns: Mapping[str, Sequence[float]]) -> str:
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


def frame(columns: Mapping[str, Sequence[float]]) -> Any:
    """Columns as a pandas frame."""
    try:
        import pandas
    except ImportError:
        fix = "pip install 'fedtheory[frame]', or use history.columns, a dict of lists"
        checks.reject("frame", "pandas", "pandas, which is not installed", fix, ModuleNotFoundError)
    return pandas.DataFrame(dict(columns))


def save(
    path: str | Path,
    columns: Mapping[str, Sequence[float]],
    diverged: Sequence[Any] | None,
    seconds: Sequence[float],
    x: torch.Tensor,
) -> None:
    """Write a history to a file, whole or not at all."""
    raw = x.detach().cpu().contiguous()
    content = {
        "format": _FORMAT,
        "columns": dict(columns),
        "diverged": diverged,
        "seconds": list(seconds),
        "dtype": str(raw.dtype).removeprefix("torch."),
        "x": base64.b64encode(raw.view(torch.uint8).numpy().tobytes()).decode(),
    }
    write_atomic(Path(path), seal(plain(content), None))


def load(path: str | Path) -> dict[str, Any]:
    """The content of a saved history, x as a tensor. Raises ValueError where the file is damaged or another."""
    try:
        content = unseal(Path(path).read_bytes())
        wrong = misfit(content, _SHAPE)
        if content.get("format") != _FORMAT or wrong is not None:
            raise Broken(wrong or "it is no saved history")
        dtype = getattr(torch, content["dtype"])
        content["x"] = torch.frombuffer(bytearray(base64.b64decode(content["x"])), dtype=dtype)
    except (ValueError, AttributeError, RuntimeError) as error:
        checks.reject("path", str(path), f"a file that History.save wrote ({error})", "save the history again")
    for column in (*content["columns"].values(), content["seconds"]):
        column[:] = [number(value) if isinstance(value, str) else value for value in column]
    return content


def across(
    columns: Mapping[str, Sequence[float]], seconds: Sequence[float], against: str
) -> tuple[Sequence[float], str]:
    """What a curve is drawn against, with the axis's label."""
    checks.choice("against", against, ("round", "bytes", "seconds"))
    if against == "bytes":
        both = zip(columns["up_bytes"], columns["down_bytes"])
        return [(up + down) / 1e6 for up, down in both], "MB sent, both ways"
    return (seconds, "seconds") if against == "seconds" else (columns["round"], "round")


def axes(ax: "Axes | None", metric: str, label: str) -> "Axes":
    """Axes for curves in the package's look: one column wide, a logarithmic scale for errors and losses."""
    from matplotlib import pyplot

    if ax is None:
        ax = pyplot.figure(figsize=(3.5, 2.6), layout="constrained").add_subplot()
        ax.spines[["top", "right"]].set_visible(False)
    if metric in ("error", "loss"):
        ax.set_yscale("log")
    ax.set_xlabel(label)
    ax.set_ylabel(metric)
    return ax
