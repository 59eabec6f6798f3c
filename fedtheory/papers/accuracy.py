"""Which accuracy of a run a table shows: the mean of its last records, or its best one, as public codes report it."""

import math
from typing import Any

import numpy as np

OPTIMISTIC = (
    "The best record is selected on the test set, so it is optimistic: the more so, the fewer the test images and the "
    "more the records, and where they swing."
)


def percents(result: dict[str, Any]) -> list[float]:
    """Test accuracies of a run's records, the start's first, in percent; NaN alone for a run that diverged."""
    return [math.nan] if result["diverged"] else [100 * value for value in result["columns"]["accuracy"]]


def last(result: dict[str, Any], n: int = 3) -> float:
    """The mean of the last n records, in percent; NaN for a run that diverged."""
    return float(np.mean(percents(result)[-n:]))


def best(result: dict[str, Any]) -> float:
    """The best record after the start, in percent; NaN for a run that diverged. See OPTIMISTIC.

    FedMUD's and FedBAT's public codes report it, of one record a round.
    """
    return max(percents(result)[1:], default=math.nan)


def best_at(result: dict[str, Any]) -> float:
    """Which record after the start is the first of the best ones, from 1 on; NaN for a run that diverged."""
    values = percents(result)
    return values.index(best(result), 1) if len(values) > 1 else math.nan
