"""What crosses between server and clients, and what it costs.

Cost is counted on the values that crossed: `cost(message)` walks the fields of a dataclass and adds up the tensors it
finds. Six types declare less than their value holds, because the receiver rebuilds the value from what was charged:
`Seed`, `Renewed`, `Replay`, `Rows`, `Ragged` and `Tailored`. A test rebuilds each. `Everyone` charges for clients that
are not in the round.
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
    """Size of a message. `scalars` are floating-point numbers or seeds; `bytes` what they occupy on the wire.

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

    @property
    def cost(self) -> Cost:
        return Cost(1, SEED_BYTES, self.dense.scalars - 1, self.dense.bytes - SEED_BYTES)


@dataclass(frozen=True)
class Known(Generic[T]):
    """A value that both sides know before any message, such as P = I: nothing crosses."""

    value: T


@dataclass(frozen=True)
class Renewed(Generic[T]):
    """A seeded value that is drawn anew every so many rounds: a receiver is sent the seeds that it lacks.

    Fields:
        latest: the seed of this round's value.
        round: this round.
        period: rounds between two draws.
        ahead: 1 if the participants of a round leave it with the next round's value, else 0.
        every: True for a receiver that needs each value it missed (not one that holds no copy: it starts here).
    """

    latest: Seed[T]
    round: int
    period: int = 1
    ahead: int = 0
    every: bool = False

    @property
    def value(self) -> T:
        return self.latest.value

    def cost(self, lags: Sequence[int | None]) -> Cost:
        """Charge for clients that took part so many rounds ago (None: never), summed over them."""
        seeds = 0
        for lag in lags:
            lacked = 1 if lag is None else self.round // self.period - (self.round - lag + self.ahead) // self.period
            seeds += lacked if self.every else min(lacked, 1)
        return self.latest.cost * seeds


@dataclass(frozen=True)
class Replay(Generic[T]):
    """A value that a client rebuilds from its last copy and one small step per change of the value that it missed.

    A client that holds the value of an earlier round is sent the steps since then, or the value itself where that is
    smaller or where it holds none. `lag` counts rounds: 1 if it took part in the last one.

    Fields:
        value: the value itself.
        step: the message that turns the previous value into this one; None before the first round.
        known: how many of the latest steps reached every participant of the last round already.
        round, period: this round and the rounds between two changes, where the value does not change in every round.
        held: the part of the first missed step that crossed when its receiver last took part.
    """

    value: T
    step: Any
    known: int = 0
    round: int = 0
    period: int = 1
    held: Any = None

    def cost(self, lags: Sequence[int | None]) -> Cost:
        """Charge for clients that took part so many rounds ago (None: holds no copy), summed over them."""
        dense = cost(self.value)
        if self.step is None:
            return dense * len(lags)
        step, held = cost(self.step), cost(self.held)
        dear = steps = firsts = 0  # receivers of the value itself; steps sent to the others, the first ones among them
        changes = self.round // self.period - self.known
        for lag in lags:
            missed = None if lag is None else max(changes - (self.round - lag) // self.period, 0)
            if missed is None or step.bytes * missed - held.bytes >= dense.bytes:
                dear += 1
            else:
                steps, firsts = steps + missed, firsts + (missed > 0)
        return Cost(*[a * dear + b * steps - c * firsts for a, b, c in zip(dense, step, held)])


@dataclass(frozen=True)
class Everyone(Generic[T]):
    """A message that all clients receive in every round, those too that do not take part: nobody falls behind.

    Fields:
        value: the message.
        n: number of clients.
        first: whether nobody holds anything yet.
    """

    value: T
    n: int
    first: bool

    def cost(self, lags: Sequence[int | None]) -> Cost:
        """Charge for all clients, whoever takes part."""
        return cost(self.value, [None if self.first else 1] * self.n)


@dataclass(frozen=True)
class Rows:
    """An upload of which the rows of one tensor cross only where they are marked; the others are zero.

    The fields of a subclass cross whole.

    Fields:
        sent: (S, 1) bool, one byte each.
        rows: (S, d).
    """

    sent: torch.Tensor
    rows: torch.Tensor

    def cost(self, lags: Sequence[int | None]) -> Cost:
        whole = tuple(getattr(self, name) for name in field_names(type(self)) if name != "rows")
        return cost((self.rows[self.sent[:, 0]], *whole), lags)


@dataclass(frozen=True)
class Ragged:
    """An upload whose entries cross only where they are marked, with marks that both sides know; the others are zero.

    Fields:
        rows: (S, q).
        kept: the marks, (S, q) bool.
    """

    rows: torch.Tensor
    kept: torch.Tensor

    @property
    def cost(self) -> Cost:
        count = int(self.kept.sum())
        return Cost(count, count * self.rows.element_size())


@dataclass(frozen=True)
class Tailored(Generic[T]):
    """A value of which every client is sent a part of its own; a test makes the part of what was charged.

    Fields:
        value: what the parts are parts of.
        prices: of client i's part, (N,).
    """

    value: T
    prices: tuple[Cost, ...]

    def cost(self, clients: Sequence[int]) -> Cost:
        """Charge for these clients, summed over them."""
        return sum((self.prices[i] for i in clients), Cost())


ONE: tuple[int | None, ...] = (None,)


def cost(message: Any, lags: Sequence[int | None] = ONE, clients: Sequence[int] = ()) -> Cost:
    """Size of a message, summed over its receivers.

    Every tensor counts its entries, a number is one scalar of 8 bytes, `None` is nothing.

    Args:
        message: tensors, numbers, `Seed`, `Known`, `Renewed`, `Replay`, `Everyone`, `Rows`, `Ragged`, `Tailored`, or
            tuples and dataclasses of them.
        lags: one entry per receiver: the rounds since it last took part and had its copies (None: it holds none).
        clients: the receivers' ids, for `Tailored`.

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
        elif part is None or isinstance(part, Known):
            pass
        elif isinstance(part, (Seed, Renewed, Replay, Everyone, Rows, Ragged, Tailored)):
            if isinstance(part, Tailored):
                if len(clients) != receivers:
                    checks.reject("clients", list(clients), f"the ids of {receivers} receivers", "pass their ids")
                one = part.cost(clients)
            else:
                one = part.cost * receivers if isinstance(part, (Seed, Ragged)) else part.cost(lags)
            scalars += one.scalars
            size += one.bytes
            saved_scalars += one.saved_scalars
            saved_bytes += one.saved_bytes
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
                "tensors, numbers, the types of fedtheory/core/message.py, or tuples and dataclasses of them",
                "give the type a size in fedtheory/core/message.py",
                TypeError,
            )
    return Cost(scalars, size, saved_scalars, saved_bytes)


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Of a dataclass."""
    return tuple(f.name for f in fields(kind))
