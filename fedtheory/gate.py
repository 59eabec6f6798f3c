"""What a server lets in: uploads that arrive one by one, each checked before any of them changes anything.

`run` plays honest clients and does not need this; a deployment, a fault study or a test does:

    uploads = [Upload(i, t, play(i)) for i in clients]        # from anywhere
    up = admit(uploads, t, like=first_good_upload)            # or Refused, with client, round and cause
    server, reply = algorithm.server(state.server, down, up, ids(uploads), key)
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch

from fedtheory import checks, engine


class Refused(ValueError):
    """An upload that the server does not take. Attributes: client, round, cause."""

    def __init__(self, client: int, round: int, cause: str) -> None:
        super().__init__(client, round, cause)
        self.client, self.round, self.cause = client, round, cause

    def __str__(self) -> str:
        return f"upload of client {self.client} in round {self.round} refused: {self.cause}. Fix: leave this client out"


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


def admit(uploads: Sequence[Upload], round: int, like: Any) -> Any:
    """The uploads of a round, stacked in their order: an Up whose leaves lead with S.

    Args:
        uploads: at least one, from different clients.
        round: the one that is being played; an upload of another is stale.
        like: an Up of the same algorithm whose leaves have the shape (after the first axis) and dtype to expect.

    Raises Refused for the first upload that is stale, doubled, not finite, or of another type, shape or dtype. Nothing
    has changed then: leave that client out and call again.
    """
    if not uploads:
        checks.reject("uploads", uploads, "at least one upload", "wait for a client")
    seen: set[int] = set()
    for one in uploads:
        cause = "it came twice" if one.client in seen else _fault(one, round, like)
        if cause:
            raise Refused(one.client, round, cause)
        seen.add(one.client)
    return engine.map_leaves(lambda *leaves: torch.cat(leaves), *(one.up for one in uploads))


def ids(uploads: Sequence[Upload]) -> torch.Tensor:
    """The clients of the uploads, (S,) int64."""
    return torch.tensor([one.client for one in uploads])


def _fault(one: Upload, round: int, like: Any) -> str:
    """What is wrong with an upload; empty where nothing is."""
    if one.round != round:
        return f"it answers round {one.round}"
    if type(one.up) is not type(like) or not is_dataclass(like):
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
    return ""
