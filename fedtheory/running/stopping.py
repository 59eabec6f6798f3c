"""When a run ends before its rounds: rules that `run` asks after each record."""

from dataclasses import dataclass

from fedtheory.core import checks
from fedtheory.core.history import History, choose_column, measured


@dataclass(frozen=True)
class EarlyStopping:
    """Stop where a metric has had no new best in the last `patience` records.

    Fields:
        metric: a column of the history; None: its first metric.
        patience: records.
        least: a new best beats the last one by more than this.
        larger: whether larger is better; None: for "accuracy" alone.
    """

    metric: str | None = None
    patience: int = 5
    least: float = 0.0
    larger: bool | None = None

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.whole("patience", self.patience, 1)
        checks.number("least", self.least, 0.0)

    def __call__(self, history: History) -> bool:
        if self.metric is None and not measured(history.columns):
            checks.reject("EarlyStopping.metric", None, "a metric in the run", "pass metrics=('loss',) to run")
        name = choose_column(self.metric, history.columns)
        larger = name == "accuracy" if self.larger is None else self.larger
        best, since = float("inf"), 0
        for value in history[name]:
            value = -value if larger else value
            best, since = (value, 0) if value < best - self.least else (best, since + 1)
        return since >= self.patience


@dataclass(frozen=True)
class Budget:
    """Stop at the first record at which so much is spent.

    Fields:
        bytes: sent, both ways, summed over the clients.
        seconds: of this call of `run`; a run that stops by the clock is not the same twice.
    """

    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        checks.tidy(self)
        if self.bytes is None and self.seconds is None:
            checks.reject("Budget", (), "bytes or seconds", "pass for example Budget(bytes=10**9)")
        if self.bytes is not None:
            checks.whole("bytes", self.bytes, 0, 2**63 - 1)
        if self.seconds is not None:
            checks.number("seconds", self.seconds, 0.0)

    def __call__(self, history: History) -> bool:
        sent = history["up_bytes"][-1] + history["down_bytes"][-1]
        spent = self.seconds is not None and history.seconds[-1] >= self.seconds
        return spent or (self.bytes is not None and sent >= self.bytes)
