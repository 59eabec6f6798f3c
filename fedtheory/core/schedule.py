"""Learning rates that change from round to round: factors on an algorithm's `lr`, a function of the round alone.

A schedule is known to all before the first round, as K and eta are: nothing crosses for it. What a method keeps in the
rate's units it rescales in `Algorithm.at_rate`; what it keeps in units of a gradient it leaves alone.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from fedtheory.core import checks


class Schedule(ABC):
    """The factor of each round t = 0, 1, ...

    Attributes:
        falls_from: the round from which on the factor never rises; None where that is not known.
    """

    falls_from: int | None = None

    @abstractmethod
    def factor(self, t: int) -> float:
        """Positive."""


@dataclass(frozen=True)
class Steps(Schedule):
    """Times `by` after every `every` rounds."""

    every: int
    by: float = 0.1
    falls_from = 0

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.whole("every", self.every, 1)
        checks.number("by", self.by, 0.0, 1.0, open_low=True)

    def factor(self, t: int) -> float:
        return self.by ** (t // self.every)


@dataclass(frozen=True)
class Cosine(Schedule):
    """Rises linearly to 1 in `warm_up` rounds, then falls as half a cosine that would reach 0 in round `rounds`."""

    rounds: int
    warm_up: int = 0

    def __post_init__(self) -> None:
        checks.tidy(self)
        checks.whole("rounds", self.rounds, 1)
        checks.whole("warm_up", self.warm_up, 0, self.rounds - 1, "let the warm-up be shorter than the run")

    @property
    def falls_from(self) -> int:  # type: ignore[override]
        return self.warm_up

    def factor(self, t: int) -> float:
        if t < self.warm_up:
            return (t + 1) / self.warm_up
        checks.whole("t", t, 0, self.rounds - 1, "give the schedule as many rounds as the run")
        return 0.5 + 0.5 * math.cos(math.pi * (t - self.warm_up) / (self.rounds - self.warm_up))


def first_bad_round(
    rate: Callable[[int], float], rounds: int, falls_from: int | None, least: float, most: float
) -> int | None:
    """Return the first round whose step size is not from `least` to `most`, or which has none; None: all are fine.

    Args:
        rate: of round t; raises ValueError where there is none.
        falls_from: as of `Schedule`; the rounds behind it are not looked at one by one then.
        least, most: what the model's numbers hold: with less, steps vanish and what is divided by them is no number.
    """

    def ended(t: int) -> bool:
        try:
            return not least <= rate(t) <= most
        except ValueError:
            return True

    first = rounds if falls_from is None else min(falls_from, rounds)
    found = next((t for t in range(first) if ended(t)), None)
    if found is None and first < rounds and ended(rounds - 1):
        found = first + bisect_left(range(first, rounds), True, key=ended)
    return found
