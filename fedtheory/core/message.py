"""What crosses between server and clients, and what it costs.

Cost is counted on the values that crossed: `cost(message)` walks the fields of a dataclass and adds up the tensors it
finds. A part whose class has a method `cost(lags, clients)` says its own price, summed over the receivers: it declares
less than its value holds, because the receiver rebuilds the value from what was charged, and a test does so for each.
There are three ideas. What a receiver makes itself: `Seed` from one integer, `Known` from nothing. What it has missed:
`Replay`, the steps since its last copy. What only some are sent, or only in part: that belongs to single methods, and
such parts stand in their files.

What is charged is what is sent (`federation.codec`). Beside its `cost` such a part says what crosses of it to one
receiver: `crosses`, and `arrived` makes the part of that; or, where the receiver has a copy, `missed`, how many of the
last changes it is sent, with `copy`, what is sent where it has none, `change`, this round's, and `received`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key

T = TypeVar("T", covariant=True)


class Cost(NamedTuple):
    """Size of a message: how many entries, of any type, and what they occupy on the wire.

    `scalars` counts numbers, positions, levels, marks and words of packed signs, one each, and a seed as one.

    `saved_scalars` and `saved_bytes` state separately what a shared seed spared: the dense value minus the seed.
    """

    scalars: int = 0
    bytes: int = 0
    saved_scalars: int = 0
    saved_bytes: int = 0

    def __add__(self, other: "Cost") -> "Cost":  # type: ignore[override]
        return Cost(self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3])

    def __mul__(self, times: int) -> "Cost":  # type: ignore[override]
        return Cost(self[0] * times, self[1] * times, self[2] * times, self[3] * times)


SEED_BYTES = 8  # one 64-bit integer


@dataclass(frozen=True)
class Down:
    """The message of a server that sends its model and nothing else."""

    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Seed(Generic[T]):
    """A value that both sides make from the same key: one 64-bit integer crosses, whatever the value's size.

    Fields:
        key: the key both sides know after the message.
        make: a pure function of the key.
        dense: scalars and bytes of the value if it were sent instead.
    """

    key: Key
    make: Callable[[Key], T]
    dense: Cost

    @cached_property
    def value(self) -> T:
        """What the receiver makes of the key."""
        return self.make(self.key)

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge for all receivers: an integer each."""
        n, dense = len(lags), self.dense
        return Cost(n, SEED_BYTES * n, (dense[0] - 1) * n, (dense[1] - SEED_BYTES) * n)


@dataclass(frozen=True)
class Known(Generic[T]):
    """A value that both sides know before any message, such as P = I: nothing crosses."""

    value: T

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Nothing."""
        return Cost()


@dataclass(frozen=True)
class Replay(Generic[T]):
    """A value that a client rebuilds from its last copy and one small step per change of the value that it missed.

    A client that holds the value of an earlier round is sent the steps since then, or the value itself where that is
    smaller or where it holds none. `lag` counts rounds: 1 if it took part in the last one.

    Fields:
        value: the value itself.
        step: the message that turns the previous value into this one; None before the first round.
        round, period: this round and the rounds between two changes, where the value does not change in every round.
        held: the part of the first missed step that crossed when its receiver last took part.
    """

    value: T
    step: Any
    round: int = 0
    period: int = 1
    held: Any = None

    def cost(self, lags: Sequence[int | None], clients: Sequence[int]) -> Cost:
        """Charge for clients that took part so many rounds ago (None: holds no copy), summed over them."""
        dense = cost(self.value)
        if self.step is None:
            return dense * len(lags)
        step, held = cost(self.step), cost(self.held)
        dear = steps = firsts = 0  # receivers of the value itself; steps sent to the others, the first ones among them
        for lag in lags:
            missed = self._missed(lag, dense, step, held)
            if missed is None:
                dear += 1
            else:
                steps, firsts = steps + missed, firsts + (missed > 0)
        return Cost(*[a * dear + b * steps - c * firsts for a, b, c in zip(dense, step, held)])

    def _missed(self, lag: int | None, dense: Cost, step: Cost, held: Cost) -> int | None:
        missed = None if lag is None else self.round // self.period - (self.round - lag) // self.period
        return None if missed is None or step.bytes * missed - held.bytes >= dense.bytes else missed

    def missed(self, lag: int | None) -> int | None:
        """How many of the last steps a client is sent; None: the value itself."""
        if self.step is None:
            return None
        return self._missed(lag, cost(self.value), cost(self.step), cost(self.held))

    @property
    def change(self) -> Any:
        """The step that made this round's value, if this round has a new one."""
        return self.step if self.round % self.period == 0 else None

    @property
    def copy(self) -> T:
        """What a client holds afterwards."""
        return self.value

    @classmethod
    def received(cls, copy: Any) -> "Replay[Any]":
        """The part at a client that holds the value."""
        return cls(copy, None)


ONE: tuple[int | None, ...] = (None,)


def cost(message: Any, lags: Sequence[int | None] = ONE, clients: Sequence[int] = ()) -> Cost:
    """Count the size of a message, summed over its receivers.

    Every tensor counts its entries, a number is one scalar of 8 bytes, `None` is nothing.

    Args:
        message: tensors, numbers, parts that say their own price, or tuples and dataclasses of them.
        lags: one entry per receiver: the rounds since it last took part and had its copies (None: it holds none).
        clients: the receivers' ids, for parts whose price hangs on them.

    Raises TypeError for a value whose size is not defined, so that nothing crosses uncounted.
    """
    receivers = len(lags)
    scalars = size = saved_scalars = saved_bytes = 0
    waiting = [message]
    while waiting:
        part = waiting.pop()
        if isinstance(part, torch.Tensor):
            count = part.numel()
            scalars += count * receivers
            size += count * part.element_size() * receivers
        elif part is None:
            pass
        elif (price := getattr(type(part), "cost", None)) is not None:
            one = price(part, lags, clients)
            scalars += one[0]
            size += one[1]
            saved_scalars += one[2]
            saved_bytes += one[3]
        elif isinstance(part, tuple):
            waiting.extend(part)
        elif is_dataclass(part):
            waiting.extend([getattr(part, name) for name in field_names(type(part))])
        elif isinstance(part, (int, float)):
            scalars += receivers
            size += 8 * receivers
        else:
            checks.reject(
                "message",
                type(part).__name__,
                "tensors, numbers, parts with a method `cost`, or tuples and dataclasses of them",
                "give its class a method cost(lags, clients)",
                TypeError,
            )
    return Cost(scalars, size, saved_scalars, saved_bytes)


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Return a dataclass's field names."""
    return tuple(f.name for f in fields(kind))
