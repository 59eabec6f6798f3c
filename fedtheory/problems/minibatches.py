"""Clients whose data are lists of samples: what each local step of a client sees."""

from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem


@dataclass(frozen=True)
class Batch:
    """What one local step sees: `index` (S, b) into the data; of row i the first `size[i]` count (0: an idle step).

    Fields:
        draws: (S, b, 3): how each image is augmented; None: it is not.
        keys: of each client's dropout; None: nothing is dropped.
    """

    index: torch.Tensor
    size: tuple[int, ...]
    draws: torch.Tensor | None = None
    keys: tuple[Key, ...] | None = None

    def client(self, i: int) -> "Batch":
        """Client i's row, without padding."""
        row, draws, keys = (slice(i, i + 1), slice(self.size[i])), self.draws, self.keys
        own = None if draws is None else draws[row]
        return Batch(self.index[row], self.size[i : i + 1], own, None if keys is None else keys[i : i + 1])

    @property
    def full(self) -> bool:
        """Whether every row counts whole."""
        return min(self.size) == self.index.shape[1]


class Minibatches(Problem):
    """A problem whose local step sees a minibatch: each epoch is a fresh permutation of the client's samples.

    Attributes:
        parts: for each client the indices of its samples, (n_i,) int64.
        batch: samples of a step.
        epochs: None: permutation after permutation, in batches that are always full (smaller only where the client has
            fewer samples). E: E passes, the last batch of each as small as it must be; clients with fewer batches than
            others then make fewer steps.
    """

    parts: tuple[torch.Tensor, ...]
    batch: int
    epochs: int | None

    @property
    def steps(self) -> int:
        """K of a round of `epochs` passes: that of the client with the most batches.

        Raises ValueError where `epochs` is None.
        """
        if self.epochs is None:
            checks.reject("epochs", None, "a number of passes", "construct the problem with epochs=1")
        return max(self.steps_of(self.clients))

    @property
    def uneven(self) -> bool:
        return self.epochs is not None and len(set(self.steps_of(self.clients))) > 1

    def steps_of(self, clients: torch.Tensor) -> list[int]:
        return [(self.epochs or 1) * -(-len(self.parts[i]) // self.batch) for i in clients.tolist()]

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[Batch]:
        """Client i's permutations depend on the key and on i alone."""
        return self._batches(self._drawn(clients, steps, key))

    def _drawn(self, clients: torch.Tensor, steps: int, key: Key) -> list[list[torch.Tensor]]:
        """The batches of each client."""
        if self.epochs is not None and steps != self.steps and {steps} != set(self.steps_of(clients)):
            fix = "pass local_steps=problem.steps, or construct the problem with epochs=None"
            checks.reject("local_steps", steps, f"{self.steps} for {self.epochs} epochs", fix)
        return [self._rows(int(i), steps, key.fold(int(i)).generator()) for i in clients]

    def _batches(self, rows: list[list[torch.Tensor]]) -> list[Batch]:
        return [Batch(self._stacked(step), tuple(map(len, step))) for step in map(list, zip(*rows))]

    def _stacked(self, rows: list[torch.Tensor]) -> torch.Tensor:
        """Rows of the clients, with zeros behind the shorter ones."""
        whole = len({len(row) for row in rows}) == 1
        return (torch.stack(rows) if whole else torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)).to(self.device)

    def _rows(self, i: int, steps: int, g: torch.Generator) -> list[torch.Tensor]:
        """Client i's batches."""
        part, shuffled = self.parts[i], lambda: self.parts[i][torch.randperm(len(self.parts[i]), generator=g)]
        if self.epochs is None:
            b = min(self.batch, len(part))
            passes = -(-steps * b // len(part))
            return list(torch.cat([shuffled() for _ in range(passes)])[: steps * b].split(b))
        rows = [row for _ in range(self.epochs) for row in shuffled().split(self.batch)]
        return rows + [part[:0]] * (steps - len(rows))

    def full(self, clients: torch.Tensor) -> Any:
        parts = [self.parts[int(i)] for i in clients]
        return Batch(self._stacked(parts), tuple(len(part) for part in parts))
