"""A problem whose data lie in one place."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem, Shift


class Pooled(Problem):
    """One client that holds the data of all clients of another problem: its loss is F = sum_i p_i F_i.

    A local step sees one sample of every client, so a batch is N times as large.

    Args:
        whole: the problem whose clients are pooled.
    """

    @checks.arguments
    def __init__(self, whole: Problem) -> None:
        if whole.uneven:
            expected = "a problem whose clients make the same number of local steps"
            checks.reject("whole.epochs", getattr(whole, "epochs", None), expected, "construct it with epochs=None")
        self.whole = whole
        self.n, self.layout, self.dtype, self.device = 1, whole.layout, whole.dtype, whole.device
        self.closed_form = whole.closed_form
        self.weights = torch.ones(1, dtype=torch.float64)
        known = None if whole.constants.x_star is None else 0.0
        self.constants = replace(whole.constants, heterogeneity=known, gradient_bound2=None)

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Any]:
        return self.whole.draw(self.whole.clients, steps, key)

    def full(self, clients: torch.Tensor) -> Any:
        return self.whole.full(self.whole.clients)

    def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        grads = self.whole.grads(y.expand(self.whole.n, -1), xi)
        return (self.whole.weights.to(grads) @ grads)[None]

    def losses(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        losses = self.whole.losses(y.expand(self.whole.n, -1), xi)
        return (self.whole.weights.to(losses) @ losses)[None]

    def losses_at(self, y: torch.Tensor, shift: Shift, xi: Any) -> torch.Tensor:
        losses = self.whole.losses_at(y.expand(self.whole.n, -1), shift, xi)
        return (self.whole.weights.to(losses) @ losses)[None]

    @property
    def steps(self) -> int:
        return self.whole.steps

    @property
    def rate(self) -> float:
        return self.whole.rate

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.whole.metrics

    def fingerprint(self) -> str:
        return f"pooled {self.whole.fingerprint()}"

    def start(self) -> torch.Tensor:
        return self.whole.start()

    def loss(self, x: torch.Tensor) -> float:
        return self.whole.loss(x)

    def accuracy(self, x: torch.Tensor) -> float:
        return self.whole.accuracy(x)
