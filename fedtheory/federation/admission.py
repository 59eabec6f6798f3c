"""What a server lets in: uploads that arrive one by one, each checked before any of them changes anything.

`run` plays honest clients and does not need this; a deployment, a fault study or a test does:

    uploads = [Upload(i, t, play(i)) for i in clients]        # from anywhere
    up = admit(uploads, t, first_good_upload, problem.n)      # or Refused, with client, round and cause
    server, reply = algorithm.server(state.server, down, up, ids(uploads), key)
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch

from fedtheory.core import checks, engine

_LARGEST = {kind: torch.finfo(kind).max ** 0.25 for kind in (torch.float64, torch.float32, torch.bfloat16)}
_TIMES = 1e6  # an upload's entries over the model's largest, where that is more than _LARGEST


class Refused(ValueError):
    """An upload that the server does not take. Attributes: client, round, cause."""

    def __init__(self, client: int, round: int, cause: str) -> None:
        super().__init__(client, round, cause)
        self.client, self.round, self.cause = client, round, cause

    def __str__(self) -> str:
        what = f"upload of client {checks.show(self.client)} in round {self.round}"
        return f"{what} refused: {self.cause}. Fix: leave this client out"


@dataclass(frozen=True)
class Upload:
    """One client's message.

    Fields:
        client: its id.
        round: the round it answers.
        up: the algorithm's Up, every leaf leading with 1.
    """

    client: int
    round: int
    up: Any


@checks.arguments
def admit(uploads: Sequence[Upload], round: int, like: Any, n: int, d: int | None = None, size: float = 0.0) -> Any:
    """The uploads of a round, stacked by rising client, whatever order they came in: an Up whose leaves lead with S.

    Args:
        uploads: at least one, from different clients.
        round: the one that is being played; an upload of another is stale.
        like: an Up of the same algorithm whose leaves have the shape (after the first axis) and dtype to expect.
        n: N; clients are 0, ..., N - 1.
        d: parameters of the model; None: positions that an upload names are not checked to lie below it.
        size: the largest entry of the server's model, in absolute value.

    Raises Refused for the first upload that is stale, doubled, of no client, not finite, too large, or of another type,
    shape or dtype. Nothing has changed then: leave that client out and call again. Too large are entries
    beyond 1.2e77 in float64 and 4.3e9 in float32, since the product of four, as in a model of factors, could overflow,
    and beyond a million times `size`: so honest clients are heard in the round after a large upload.
    """
    checks.whole("round", round, 0)
    checks.whole("n", n, 1)
    if not uploads:
        checks.reject("uploads", uploads, "at least one upload", "wait for a client")
    if not is_dataclass(like) or isinstance(like, type):
        checks.reject("like", like, "an Up of the algorithm", "pass the Up of a client that is trusted", TypeError)
    seen: set[int] = set()
    for one in uploads:
        cause = _fault(one, round, like, n, d, size) or ("it came twice" if one.client in seen else "")
        if cause:
            raise Refused(one.client, round, cause)
        seen.add(one.client)
    return engine.map_leaves(lambda *leaves: torch.cat(leaves), *(one.up for one in _rising(uploads)))


@checks.arguments
def ids(uploads: Sequence[Upload]) -> torch.Tensor:
    """The clients of the uploads as `admit` stacks them, (S,) int64, rising."""
    return torch.tensor([one.client for one in _rising(uploads)])


def _rising(uploads: Sequence[Upload]) -> list[Upload]:
    return sorted(uploads, key=lambda one: one.client)


def _fault(one: Upload, round: int, like: Any, n: int, d: int | None, size: float) -> str:
    """What is wrong with an upload; empty where nothing is."""
    client = checks.plain(one.client)
    if not isinstance(client, int) or isinstance(client, bool) or not 0 <= client < n:
        return f"the clients are 0 to {n - 1}"
    if not isinstance(checks.plain(one.round), int) or isinstance(one.round, bool) or one.round != round:
        return f"it answers round {checks.show(one.round)}"
    if type(one.up) is not type(like):
        return f"it is a {type(one.up).__name__}, expected {type(like).__name__}"
    for f in fields(like):
        leaf, wanted = getattr(one.up, f.name), getattr(like, f.name)
        if not isinstance(leaf, torch.Tensor):
            return f"{f.name} is a {type(leaf).__name__}, expected a tensor"
        shape = (1, *wanted.shape[1:])
        if leaf.shape != shape:
            return f"{f.name} has shape {tuple(leaf.shape)}, expected {tuple(shape)}"
        if leaf.dtype != wanted.dtype:
            return f"{f.name} has dtype {leaf.dtype}, expected {wanted.dtype}"
        finite = torch.isfinite(leaf)
        if not bool(finite.all()):
            at = int((~finite).flatten().nonzero()[0])
            return f"{f.name} holds {float(leaf.flatten()[at])} at entry {at}"
        if leaf.dtype in _LARGEST and leaf.numel():
            most, largest = max(_LARGEST[leaf.dtype], _TIMES * size), float(leaf.abs().max())
            if largest > most:
                return f"{f.name} holds {largest:.2g}, more than {most:.2g}"
    misplaced = getattr(one.up, "misplaced", None)
    return "" if misplaced is None or d is None else misplaced(d)
