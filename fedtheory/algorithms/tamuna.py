"""TAMUNA: Condat, Agarsky, Malinovsky, Richtarik 2023, arXiv:2302.09832. Read from two authors' code, baselines/tamuna
in adap/flower at 0edb274. There a client moves h_i when it comes back, by the model of then; here at the end of its
round. chi has c, as in that code's README. A mask of s of all N is uniform too, so by our derivation the theory's bound
has N for c, and is smaller.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms import compressedscaffnew
from fedtheory.algorithms.compressedscaffnew import CompressedScaffnew, Holders
from fedtheory.core.key import Key
from fedtheory.core.registry import Card, Method


@dataclass(frozen=True)
class Down(compressedscaffnew.Down):
    cohort: torch.Tensor  # the clients of the round, (c,) int64


@dataclass(frozen=True)
class TAMUNA(CompressedScaffnew):
    """CompressedScaffnew whose masks are drawn for the c clients of a round, so that each entry comes from s of them.

    A client that falls silent after the draw is missing from the means of its entries.

    Fields:
        ratio: an entry comes from s = max(2, round(ratio c)) clients, and a client sends s/c of the entries.

    Others: as `CompressedScaffnew`.
    """

    name = "TAMUNA"

    def broadcast(self, server: Any, key: Key) -> Down:
        down = super().broadcast(server, key)
        return Down(down.x, down.steps, down.holders, torch.arange(server.n, device=server.x.device))

    def address(self, down: Any, clients: torch.Tensor) -> Down:
        return replace(down, cohort=clients.to(down.cohort))

    def _holders(self, down: Any) -> Holders:
        """A random order of all clients is one of the cohort's."""
        cohort, order = down.cohort.cpu(), down.holders.value.place
        c, place = len(cohort), torch.full_like(order, -1)
        place[cohort[order[cohort].argsort()]] = torch.arange(c)
        return Holders(place, c, self._senders(c))


METHODS = [
    Method(
        "TAMUNA",
        "compressed",
        lambda o: TAMUNA(o.lr, o.local_steps, ratio=o.ratio),
        Card(
            "CompressedScaffnew with masks for the clients that take part.",
            "y -= eta (g_i(y) - h_i), until a coin of probability 1/K says stop; x = sum(q_i o y_i) / s; "
            "h_i += chi q_i o (x - y_i) / (K eta), chi = c (s - 1) / (s (c - 1))",
            "c = N is CompressedScaffnew; h_i sum to 0 and reach grad F_i(x*) if two or more take part (laws).",
            "x comes down whole. With clients away CompressedScaffnew needs fewer rounds at equal bytes (law).",
        ),
    ),
]
