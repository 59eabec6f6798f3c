"""A client's data as tensors: pairs, Datasets, tables; and what to change where they do not fit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fedtheory.core import checks

_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # PyTorch has hardly an operation for them


def require_clients(clients: Any) -> None:
    fix = ""
    if isinstance(clients, Mapping):
        fix = "pass list(clients.values())"
    elif isinstance(clients, torch.utils.data.DataLoader):
        fix = "pass [loader.dataset], one a client"
    elif isinstance(clients, (tuple, list)) and clients and all(hasattr(one, "shape") for one in clients):
        fix = "pass [(x, y)], one pair a client"
    elif isinstance(clients, torch.Tensor) or not isinstance(clients, Sequence) or not len(clients):
        fix = "pass a list of (inputs, targets), one a client"
    if fix:
        found = "an empty list" if isinstance(clients, (tuple, list)) and not clients else type(clients).__name__
        checks.reject("clients", found, "a list with the data of each client", fix)


def pair(name: str, data: Any, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets (n, ...) with one entry a sample."""
    if isinstance(data, torch.utils.data.Dataset):
        try:
            rows = [tuple(map(_tensor, data[j])) for j in range(len(data))]  # type: ignore[arg-type]
            data = tuple(torch.stack(column) for column in zip(*rows))
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            expected = f"a Dataset of (input, target), all alike ({type(error).__name__}: {error})"
            checks.reject(name, type(data).__name__, expected, "turn both into tensors of one shape, padded")
    if isinstance(data, torch.utils.data.DataLoader):
        checks.reject(name, "DataLoader", "a pair (inputs, targets), or a Dataset", f"pass {name}.dataset", TypeError)
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        checks.reject(name, type(data).__name__, "a pair (inputs, targets), or a Dataset", "pass (x, y)", TypeError)
    x, y = (_array(f"{name} {what}", part) for what, part in zip(("inputs", "targets"), data))
    if x.dim() == 0 or y.dim() == 0 or len(x) != len(y) or not len(x):
        found = f"{tuple(x.shape)} inputs, {tuple(y.shape)} targets"
        some = x.dim() and y.dim() and len(x) and len(y)
        fix = "pass one target for each input" if some else "leave clients without data out"
        checks.reject(name, found, "as many targets as inputs, at least one", fix)
    x, y = (part.to(dtype) if part.is_floating_point() else part for part in (x, y))
    for what, part in (("inputs", x), ("targets", y)):
        _require_numbers(f"{name} {what}", part)
        if part.is_floating_point() and not bool(part.isfinite().all()):
            checks.reject(f"{name} {what}", "nan or inf", "finite numbers", "fill gaps first: x.nan_to_num()")
    return x.detach(), y.detach()


def _require_numbers(name: str, part: torch.Tensor) -> None:
    """PyTorch computes with them. Raises ValueError."""
    for wrong, found, fix in (
        (part.layout != torch.strided, part.layout, "pass it as .to_dense()"),
        (part.is_complex(), part.dtype, "pass torch.view_as_real(x)"),
        (part.dtype in _UNSIGNED, part.dtype, "pass it as .to(torch.int64), or .astype('int64') of an array"),
    ):
        if wrong:
            checks.reject(name, found, "a dense tensor of real numbers, not of wide unsigned ones", fix)


def test(given: Any, n: int, dtype: torch.dtype) -> tuple[tuple[torch.Tensor, torch.Tensor], list[int]]:
    """Test data as one pair, and how many samples of it are each client's; one number where they are everybody's."""
    several = isinstance(given, (list, tuple)) and not any(hasattr(one, "shape") for one in given)
    if not several:
        one = pair("test", given, dtype)
        return one, [len(one[0])]
    if len(given) != n:
        checks.reject(
            "test", f"{len(given)} parts", f"(inputs, targets), or one for each of {n} clients", "pass (x, y)"
        )
    pairs = [pair(f"test[{i}]", one, dtype) for i, one in enumerate(given)]
    x, y = (torch.cat(parts) for parts in zip(*pairs))
    return (x, y), [len(one[0]) for one in pairs]


def _array(name: str, part: Any) -> torch.Tensor:
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError) as error:
        texts = "pandas.factorize(names)[0]" if name.endswith("targets") else "one-hot columns for texts"
        fix = f"pass tensors or arrays of numbers: frame.to_numpy(), or {texts}"
        checks.reject(name, type(part).__name__, f"an array of numbers ({error})", fix, TypeError)


def _tensor(value: Any) -> torch.Tensor:
    return torch.as_tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def frame(name: str, given: Any) -> Any:
    if hasattr(given, "columns"):
        return given
    if not isinstance(given, (str, Path)):
        checks.reject(name, type(given).__name__, "a pandas frame or a path", "pass pandas.DataFrame(...)", TypeError)
    import pandas

    if not (path := checks.path(name, given)).is_file():
        checks.reject(name, str(given), f"a file (here is {Path.cwd()})", "pass the whole path of the CSV", OSError)
    return pandas.read_csv(path)


def hint_of_clients(frame: Any) -> str:
    """What may be passed as `by`."""
    texts = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    rows = f"partitions.iid(torch.arange({len(frame)}), 10, Key(0)), from fedtheory.problems"
    return f"pass by={texts[0]!r}" if texts else f"pass by={rows}"


def numbers(frame: Any, names: list[Any]) -> torch.Tensor:
    """Columns of a frame, (n, columns), float64."""
    texts, gaps = [], []
    columns = []
    for name in names:
        checks.choice("column", name, list(frame.columns))
        if list(frame.columns).count(name) > 1:
            fix = "rename one, or frame = frame.loc[:, ~frame.columns.duplicated()]"
            checks.reject("column", name, "one column of this name", fix)
        if frame[name].dtype.kind in "mM":
            fix = f"frame[{name!r}] = (frame[{name!r}] - frame[{name!r}].min()) / pandas.Timedelta(days=1), in days"
            checks.reject("column", name, "numbers, not dates", fix)
        try:
            columns.append(torch.tensor(frame[name].to_numpy(dtype="float64")))
        except (TypeError, ValueError):
            texts.append(name)
        else:
            gaps += [] if bool(columns[-1].isfinite().all()) else [name]
    if texts:
        column = f"frame[{texts[0]!r}]"
        fix = f"frame = pandas.get_dummies(frame, columns={texts}), or {column} = pandas.factorize({column})[0]"
        checks.reject("columns", texts, "columns of numbers", fix)
    if gaps:
        fix = f"frame[{gaps}] = frame[{gaps}].fillna(0), or drop these rows"
        checks.reject("columns", gaps, "columns without gaps", fix)
    return torch.stack(columns, dim=1)


def as_classes(y: torch.Tensor, names: list[Any]) -> torch.Tensor:
    """A target (n, 1) as classes (n,)."""
    if len(names) != 1:
        checks.reject("target", names, "one column of classes", f"pass target={names[0]!r}")
    if bool((y % 1 != 0).any()) or bool((y < 0).any()):
        fix = f"frame[{names[0]!r}] = frame[{names[0]!r}].astype('category').cat.codes, or leave classes out"
        checks.reject("target", names[0], "whole numbers from 0, as classes=True", fix)
    return y[:, 0].long()


def hint_of_inputs(x: torch.Tensor, error: Exception) -> str:
    if x.dtype == torch.uint8:
        return "pass them as floats: x.float() / 255"
    if not x.is_floating_point() and not isinstance(error, IndexError):  # of an embedding: a token beyond its table
        return "pass numbers as floats: x.float()"
    if x.dim() == 4 and x.shape[-1] in (1, 3) and x.shape[1] not in (1, 3):
        return "put channels before height and width: x.permute(0, 3, 1, 2)"
    if x.dim() == 3 and x.is_floating_point():
        return "images need a channel: x.unsqueeze(1); sequences: see the module's first layer"
    said = str(error).splitlines()[0]
    return f"let the first layer take {tuple(x.shape[1:])} a sample (it says {type(error).__name__}: {said})"


def hint_of_targets(outputs: tuple[int, ...], y: torch.Tensor, error: Exception, crossed: bool) -> str:
    """What to change. `crossed`: the loss is cross-entropy."""
    classes = outputs[1] if len(outputs) > 1 else 1
    if classes > 1 and len(outputs) == y.dim() + 1 and (y.dtype != torch.int64 and not bool((y % 1).any())):
        return "pass classes as y.long(); from_frame takes classes=True"
    if classes > 1 and y.dim() == 2 and y.shape[1] == 1:
        return "pass classes as y.squeeze(1).long(); from_frame takes classes=True"
    one_hot = y.dtype == torch.int64 and y.dim() == 2 and y.shape[1] == classes
    if one_hot and bool((y.sum(1) == 1).all()):
        return "pass classes, not one-hot rows: y.argmax(1)"
    whole, least = y.dtype == torch.int64, int(y.min())
    if classes == 1 and len(outputs) == y.dim() + 1 and whole and crossed:
        return f"give the module {int(y.max()) + 1} outputs, or take nn.BCEWithLogitsLoss() and y.float().unsqueeze(-1)"
    if classes == 1 and len(outputs) == y.dim() + 1:
        return "give targets the outputs' shape and type: y.float().unsqueeze(-1)"
    if whole and len(outputs) == y.dim() + 1 and least < 0:
        return "count classes from 0: y = y.unique(return_inverse=True)[1]"
    if whole and len(outputs) == y.dim() + 1 and int(y.max()) >= classes:
        return (
            "count classes from 0: y - 1"
            if (least, int(y.max())) == (1, classes)
            else f"give the module {int(y.max()) + 1} outputs"
        )
    if not y.is_floating_point():
        return "pass y.float()"
    return f"look at what it says: {type(error).__name__}: {str(error).splitlines()[0]}"
