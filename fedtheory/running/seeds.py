"""A method from several seeds: mean, 95% interval, and differences between methods that share the seeds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.history import History, as_frame, axis_values, choose_column, interval, prepare_axes
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.running.simulate import run

_MOST = 10_000
_Interval = tuple[float, float, float]  # mean, low, high


@dataclass(frozen=True)
class Runs:
    """Runs of one method, one a seed. Numbers over seeds are (mean, low, high), with 95% Student intervals.

    Fields:
        seeds: of the runs.
        histories: one a seed.

    >>> from fedtheory import FedAvg, Key, Quadratic, Scaffold, run_seeds
    >>> problem = lambda key: Quadratic.random(n=10, d=5, key=key)
    >>> one, other = (run_seeds(kind(0.5, 5), problem, 20, seeds=3) for kind in (FedAvg, Scaffold))
    >>> one
    3 runs, seeds 0, 1, 2: error 0.2066 [0.1798, 0.2334]
    >>> mean, low, high = one.difference(other)
    """

    seeds: tuple[int, ...]
    histories: tuple[History, ...]

    def _metric(self, metric: str | None) -> str:
        return choose_column(metric, self.histories[0].columns)

    def last(self, metric: str | None = None) -> list[float]:
        """A metric's last record in each run, NaN for one that diverged; by default the first metric."""
        name = self._metric(metric)
        return [math.nan if history.diverged else history[name][-1] for history in self.histories]

    def interval(self, metric: str | None = None) -> _Interval:
        """Mean and interval of a metric's last record; one seed has no interval, and its ends are NaN."""
        return _spread(self.last(metric))

    def difference(self, other: "Runs", metric: str | None = None) -> _Interval:
        """Mean and interval of self minus other, seed by seed: what both runs of a seed share cancels.

        Raises ValueError where the seeds differ.
        """
        if self.seeds != other.seeds:
            checks.reject("other.seeds", other.seeds, f"the same seeds, {self.seeds}", "run both from the same seeds")
        name = self._metric(metric)
        return _spread([a - b for a, b in zip(self.last(name), other.last(name))])

    def frame(self) -> Any:
        """All records as a pandas frame, with a column "seed"."""
        columns = {"seed": [seed for seed, one in zip(self.seeds, self.histories) for _ in one["round"]]}
        names = self.histories[0].columns
        return as_frame(columns | {name: [v for one in self.histories for v in one[name]] for name in names})

    def plot(self, metric: str | None = None, against: str = "round", ax: Any = None, **line: Any) -> Any:
        """Draw a metric's mean with its interval; arguments as in `History.plot`. Runs that ended early cut it."""
        name, first = self._metric(metric), self.histories[0]
        rows = list(zip(*(history[name] for history in self.histories)))
        mean, low, high = zip(*map(interval, rows))
        places, label = axis_values(first.columns, first.seconds, against)
        ax = prepare_axes(ax, name, label)
        (drawn,) = ax.plot(places[: len(rows)], mean, **line)
        ax.fill_between(places[: len(rows)], low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)
        if "label" in line:
            ax.legend(frameon=False)
        return ax

    def __repr__(self) -> str:
        mean, low, high = self.interval()
        seeds = ", ".join(map(str, self.seeds))
        return f"{len(self.seeds)} runs, seeds {seeds}: {self._metric(None)} {shown(mean, low, high)}"


def _spread(values: list[float]) -> _Interval:
    return interval(values) if len(values) > 1 else (values[0], math.nan, math.nan)


def shown(mean: float, low: float, high: float) -> str:
    """A mean with its interval, in words."""
    if math.isnan(mean):
        return "diverged"
    return f"{mean:.4g} [{low:.4g}, {high:.4g}]" if low == low else f"{mean:.4g}"


def choose_seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    """The seeds of a number of them, or those that are given. Raises ValueError for none, and for one twice."""
    chosen = range(checks.whole("seeds", seeds, 1, _MOST)) if isinstance(seeds, int) else seeds
    if not chosen or len(set(chosen)) < len(chosen):
        checks.reject("seeds", chosen, "seeds, each once", "pass a number or for example [0, 1, 2]")
    return chosen


@checks.arguments
def run_seeds(
    algorithm: Algorithm,
    problem: Problem | Callable[[Key], Problem],
    rounds: int,
    seeds: int | Sequence[int] = 5,
    **options: Any,
) -> Runs:
    """Run an algorithm once for each seed.

    Args:
        algorithm: as in `run`.
        problem: one for all seeds; or a function of a key that makes each seed's, from `Key(seed).fold("data")`, as the
            command line does.
        rounds: of each run.
        seeds: how many: 0, 1, ...; or the seeds themselves.
        options: of `run`. A function `log` gets each row with its "seed"; each seed's checkpoints lie in a folder of
            their own, `seed-0` and so on.

    Returns `Runs`, whose docstring has an example. After Ctrl-C in a notebook the runs that are finished come back.
    """
    checks.spelled(options, run_seeds, run)
    if "seed" in options:
        checks.reject("seed", options["seed"], "seeds, how many or which", f"pass seeds=[{options['seed']}]")
    chosen = choose_seeds(seeds)
    histories, log, folder = [], options.get("log"), options.get("checkpoint")
    for seed in chosen:
        made = problem if isinstance(problem, Problem) else problem(Key(seed).fold("data"))
        if log is not None:
            options["log"] = lambda row, seed=seed, log=log: log({"seed": seed, **row})
        if folder is not None:
            options["checkpoint"] = checks.path("checkpoint", folder) / f"seed-{seed}"
        history = run(algorithm, made, rounds, seed=seed, **options)
        if history.interrupted is not None:
            if not histories:
                raise KeyboardInterrupt
            break
        histories.append(history)
    return Runs(tuple(chosen)[: len(histories)], tuple(histories))
