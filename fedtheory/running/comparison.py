"""Several methods on a problem of yours (the command's tasks: compare.py): one tuning budget, seeds, one table."""

import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedtheory.core import checks, registry
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.files import Broken, misfit, number
from fedtheory.core.history import METRICS, History, as_frame, read, write
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Problem
from fedtheory.running.seeds import Runs, choose_seeds, run_seeds, shown
from fedtheory.running.simulate import may_diverge, run

_FORMAT = "fedtheory comparison 1"
_SHAPE = {"metric": str, "runs": dict, "tried": dict, "rates": dict}
RATES = (1.0, 0.3, 0.1, 0.03, 0.01)
_TUNING_SEED = 100
_FURTHER = 3  # rates beyond an end of the grid, where the best one lies there
Compared = str | Algorithm | Callable[[float], Algorithm]


@dataclass(frozen=True)
class _Options:
    """What a method of the registry is built from."""

    lr: float
    local_steps: int
    ratio: float
    rounds: int
    layout: Layout
    perturbations: int = 10

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(math.ceil(self.ratio * layer.rows) for layer in self.layout.layers)

    def __getattr__(self, name: str) -> Any:
        registry.no_option(name, ("lr", "local_steps", "ratio", "rounds", "perturbations", "ranks"))


@dataclass(frozen=True)
class Comparison:
    """What `compare_methods` found.

    Fields:
        metric: by which the methods are compared: their last record.
        runs: of each method, by its name.
        tried: method -> rate -> loss (or error) at the end of its tuning run; empty for one that was not tuned.
        rates: method -> the rate that was chosen, or None.
    """

    metric: str
    runs: Mapping[str, Runs]
    tried: Mapping[str, Mapping[float, float]]
    rates: Mapping[str, float | None]

    def rows(self) -> list[dict[str, Any]]:
        """One row a method, best first: mean and 95% interval over seeds, bytes of all clients, seconds a run."""
        rows = []
        for name, runs in self.runs.items():
            mean, low, high = runs.interval(self.metric)
            row = {"method": name, "lr": self.rates[name], self.metric: mean, "low": low, "high": high}
            mean_of = lambda values: sum(values) / len(values)
            counted = {way: round(mean_of([h[way][-1] for h in runs.histories])) for way in ("up_bytes", "down_bytes")}
            rows.append(row | counted | {"seconds": mean_of([h.seconds[-1] for h in runs.histories])})
        better = -1 if self.metric == "accuracy" else 1
        lost = lambda row: row[self.metric] if math.isfinite(row[self.metric]) else better * math.inf
        return sorted(rows, key=lambda row: better * lost(row))

    def frame(self) -> Any:
        """`rows` as a pandas frame."""
        rows = self.rows()
        return as_frame({name: [row[name] for row in rows] for name in rows[0]})

    def plot(self, metric: str | None = None, against: str = "round", ax: Any = None) -> Any:
        """Draw every method's mean with its interval; arguments as in `History.plot`."""
        for name, runs in self.runs.items():
            ax = runs.plot(metric or self.metric, against, ax, label=name)
        return ax

    def save(self, path: str | Path) -> None:
        """Write all of it to a file, with every history: JSON with its SHA-256, no pickle."""
        runs = {
            name: {"seeds": list(of.seeds), "histories": [history.content() for history in of.histories]}
            for name, of in self.runs.items()
        }
        tried = {name: list(map(list, ends.items())) for name, ends in self.tried.items()}
        write(path, {"format": _FORMAT, "metric": self.metric, "runs": runs, "tried": tried, "rates": dict(self.rates)})

    @staticmethod
    def load(path: str | Path) -> "Comparison":
        """A comparison that was saved; of each run's state the final model. Raises ValueError for a damaged file."""
        return read(path, _FORMAT, "Comparison.save", _of_content)

    def __repr__(self) -> str:
        head = ("method", "lr", self.metric, "95% interval", "up MB", "down MB")
        lines: list[tuple[str, ...]] = [head]
        for row in self.rows():
            mean, _, span = shown(row[self.metric], row["low"], row["high"]).partition(" ")
            rate = "" if row["lr"] is None else f"{row['lr']:g}"
            megabytes = (f"{row[way] / 1e6:.3g}" for way in ("up_bytes", "down_bytes"))
            lines.append((row["method"], rate, mean, span, *megabytes))
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def _of_content(content: dict[str, Any]) -> Comparison:
    if (wrong := misfit(content, _SHAPE)) is not None:
        raise Broken(wrong)
    runs = {
        name: Runs(tuple(of["seeds"]), tuple(map(History.of_content, of["histories"])))
        for name, of in content["runs"].items()
    }
    tried = {name: {lr: number(end) for lr, end in ends} for name, ends in content["tried"].items()}
    return Comparison(content["metric"], runs, tried, content["rates"])


@checks.arguments
def compare_methods(
    methods: Sequence[Any],
    problem: Problem | Callable[[Key], Problem],
    rounds: int,
    *,
    rates: Sequence[float] = RATES,
    seeds: int | Sequence[int] = 5,
    metric: str | None = None,
    local_steps: int = 5,
    ratio: float = 1 / 32,
    **options: Any,
) -> Comparison:
    """Run methods on a problem, each at its best rate and from the same seeds.

    Every method tries all `rates`, in a full run each on a seed that is not used again, and further ones where the best
    lies at an end. Tuning minimises the error where x* is known, else the training loss.

    Args:
        methods: names (see `python -m fedtheory list`); functions of a rate, as `lambda lr: FedProx(lr, 5, mu=0.1)`,
            which are tuned; or methods, which run as they are.
        problem: one for all seeds, or a function of a key, as in `run_seeds`.
        rounds: of each run, tuning included.
        rates: step sizes, falling.
        seeds: how many, or which; 100 is the tuning's.
        metric: of the table; None: the accuracy where there are classes, else the problem's first metric. Or the name
            of a function in `metrics`, of which less is better.
        local_steps, ratio: of methods that are named: K, and the share of the numbers that a compressed message keeps.
        options: of `run`, such as `sampled`; not `checkpoint`. `log` gets the records of the seeds' runs, not tuning's.

    What does not fit is refused before any training. After Ctrl-C in a notebook the finished methods come back.

    >>> from fedtheory import FedAvg, Key, Quadratic
    >>> problem = Quadratic.random(n=10, d=5, key=Key(0))
    >>> found = compare_methods(["SCAFFOLD", FedAvg(0.1, 5)], problem, rounds=20, seeds=2)
    >>> [row["method"] for row in found.rows()]
    ['SCAFFOLD', 'FedAvg']
    """
    checks.spelled(options, compare_methods, run)
    if options.get("checkpoint") is not None:
        checks.reject(
            "checkpoint", options["checkpoint"], "none in a comparison", "pass it to run_seeds, method by method"
        )
    if "seed" in options:
        checks.reject("seed", options["seed"], "seeds, how many or which", f"pass seeds=[{options['seed']}]")
    if not methods or not rates:
        name = "rates" if methods else "methods"
        checks.reject(name, [], "at least one", "leave rates out" if methods else "pass for example ['FedAvg', 'SSF']")
    checks.whole("rounds", rounds, 1)
    chosen = choose_seeds(seeds)
    if _TUNING_SEED in chosen:
        checks.reject("seeds", chosen, f"seeds without {_TUNING_SEED}, which tuning uses", "leave it out")
    made = problem if isinstance(problem, Problem) else problem(Key(_TUNING_SEED).fold("data"))
    entries: dict[str, Algorithm | Callable[[float], Algorithm]] = {}
    factor: dict[str, float] = {}
    for method in methods:
        if isinstance(method, str):
            name = checks.alike(method, registry.methods())
            checks.choice("methods", name, registry.methods())
            of = registry.methods()[name]
            entry: Any = lambda lr, of=of: of.make(_Options(lr, local_steps, ratio, rounds, made.layout))
            factor[name] = of.rate
        else:
            entry = method
            name = method.name if isinstance(method, Algorithm) else _method(method, rates[0]).name
        if name in entries:
            checks.reject("methods", name, "each method once", "set another name in the class of one: name = 'mine'")
        entries[name] = entry
    judged = "loss" if made.constants.x_star is None else "error"
    metric = metric or ("accuracy" if "accuracy" in made.metrics else made.metrics[0])
    recorded = {getattr(one, "__name__", one): one for one in options.get("metrics") or made.metrics}
    if metric not in (*recorded, *METRICS):
        checks.reject(
            "metric", metric, f"one of {', '.join(METRICS)}, or the name of one of metrics", "name one of these"
        )
    options["metrics"] = tuple(({metric: metric} | recorded | {metric: recorded.get(metric, metric)}).values())
    _refuse_misfits(entries, made, rates[0], metric, options)
    tried: dict[str, dict[float, float]] = {}
    runs: dict[str, Runs] = {}
    best: dict[str, float | None] = {}
    try:
        for name, entry in entries.items():
            tried[name], best[name] = {}, None
            if not isinstance(entry, Algorithm):
                end = lambda lr, entry=entry: _end(_method(entry, lr), made, rounds, judged, options)
                of_method = factor.get(name, 1.0)
                scaled = [lr if of_method == 1 else float(f"{of_method * lr:.2g}") for lr in rates]
                tried[name] = _tune(end, sorted(scaled, reverse=True))
                lr = min(tried[name], key=lambda lr: tried[name][lr])
                best[name], entry = lr, _method(entry, lr)
            with may_diverge():
                found = run_seeds(entry, problem, rounds, seeds, **options)
            if len(found.seeds) < len(chosen):
                raise KeyboardInterrupt
            runs[name] = found
    except KeyboardInterrupt:
        if not runs or not hasattr(sys, "ps1"):
            raise
        lacking = ", ".join(name for name in entries if name not in runs)
        warnings.warn(f"the comparison was interrupted: it lacks {lacking}", stacklevel=3)
    return Comparison(metric, runs, {name: tried[name] for name in runs}, {name: best[name] for name in runs})


def _refuse_misfits(
    entries: Mapping[str, Any], problem: Problem, lr: float, metric: str, options: Mapping[str, Any]
) -> None:
    """Have every method begin, so that one that does not suit the problem is refused before hours of others."""
    silent = {name: of for name, of in options.items() if name not in ("log", "progress", "stop", "memory_map")}
    for entry in entries.values():
        history = run(entry if isinstance(entry, Algorithm) else _method(entry, lr), problem, 0, **silent)
        if silent["metrics"] and metric not in history.columns:  # a function of several numbers
            expected = (
                f"a function of one number, not of {', '.join(name for name in history.columns if metric in name)}"
            )
            checks.reject("metric", metric, expected, "name another one")
        silent["metrics"] = ()


def _method(entry: Callable[[float], Algorithm], lr: float) -> Algorithm:
    return checks.instance("methods", entry(lr), Algorithm, "pass for example lambda lr: FedAvg(lr, 5)")


def _tune(end: Callable[[float], float], rates: Sequence[float]) -> dict[float, float]:
    """Rate -> where a run ends, for all rates and beyond the end at which the best one lies."""
    tried = {lr: end(lr) for lr in rates}
    for _ in range(_FURTHER):
        best = min(tried, key=lambda lr: tried[lr])
        at_end = {max(tried): 3.0, min(tried): 1 / 3}
        if best not in at_end or not math.isfinite(tried[best]):
            break
        lr = float(f"{best * at_end[best]:.1g}")
        tried[lr] = end(lr)
    return tried


def _end(method: Algorithm, problem: Problem, rounds: int, judged: str, options: Mapping[str, Any]) -> float:
    chosen: dict[str, Any] = {"seed": _TUNING_SEED, "every": rounds, "metrics": (judged,), "log": None}
    if options.get("stop"):  # it is asked at each record, and may read any metric
        chosen |= {"every": options.get("every", 1), "metrics": tuple(dict.fromkeys((judged, *options["metrics"])))}
    with may_diverge():
        history = run(method, problem, rounds, **{k: v for k, v in options.items() if k not in chosen}, **chosen)
    if history.interrupted is not None:
        raise KeyboardInterrupt
    found = history[judged][-1]
    return found if history.diverged is None and math.isfinite(found) else math.inf
