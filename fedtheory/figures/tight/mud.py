"""FedMUD with fresh factors in every round and one local step: docs/theory/mud.md."""

from dataclasses import dataclass

import torch

from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.core.simulate import play_round
from fedtheory.figures.tight.table import Entry, Mean, gap, item, known
from fedtheory.maps.decomposition import LowRank
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.fedmud.round import layout
from fedtheory.theory.instances import Smooth

A = 0.5  # factors are U(-A, A): s^2 = A^2/3, k = 9/5


@dataclass(frozen=True)
class Law:
    """FedMUD on one m x n layer, at the largest step alpha = 1/(L c), or a share of it.

    Fields:
        m, n, ratio: LowRank(ratio) gives the rank r.
        L: of the loss.
    """

    m: int
    n: int
    ratio: float
    L: float = 1.0
    aad: bool = False

    @property
    def r(self) -> int:
        return LowRank(self.ratio, A, layers="all").part(self.m, self.n).size // (self.m + self.n)

    @property
    def c(self) -> float:
        k = 9 / 5
        if self.aad:
            return (self.m + self.n + 4 * self.r + 2 * k - 4) / (4 * self.r)
        return (self.m + self.r + k - 2) / self.r

    @property
    def alpha(self) -> float:
        return 1 / (self.L * self.c)

    @property
    def algorithm(self) -> FedMUD:
        gamma = self.r * A**2 / 3 * (2 if self.aad else 1)
        form = LowRank(self.ratio, A, "aad" if self.aad else "product", layers="all")
        return FedMUD(self.alpha / gamma, 1, form, 1)


def bowl(law: Law) -> Smooth:
    """f = |W|^2/2 on the layer, one client."""
    one = torch.ones(1, law.m * law.n, dtype=torch.float64)
    return Smooth(one, 0 * one, layout=layout(((law.m, law.n, law.r),)))


@torch.no_grad()
def squares(algorithm: Algorithm, problem: Problem, x: torch.Tensor, T: int, key: Key) -> float:
    """The mean squared gradient of T rounds from x."""
    full = problem.full(problem.clients)
    state, total = algorithm.init(problem, x, key), 0.0
    for t in range(T):
        at = state.server.x
        total += float((problem.grads(at.expand(problem.n, -1), full).mean(0) ** 2).sum())
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
    return total / T


def reached(amount: dict[str, int], aad: bool = False) -> Mean:
    """The theorem's left over right side on the bowl, by FedMUD's own rounds, in the mean over runs."""
    law = Law(4, 3, 0.6, aad=aad)
    T, runs = round(4 * law.c), 10 * amount["steps"]
    problem, x = bowl(law), torch.ones(12, dtype=torch.float64)
    left = [squares(law.algorithm, problem, x, T, Key(s)) for s in range(runs)]
    return Mean.of(left, law.alpha * T / (2 * 6.0))  # f(x) - f* = 6


def price(amount: dict[str, int], aad: bool = False) -> Mean:
    """E|W^+ - W|^2/(alpha |G|)^2 over c: 3.2 and 3.3 by FedMUD's own rounds."""
    law = Law(4, 3, 0.6, aad=aad)
    problem, x = bowl(law), torch.linspace(-1, 1, 12, dtype=torch.float64)
    moved = []
    for s in range(100 * amount["steps"]):
        state = law.algorithm.init(problem, x.clone(), Key(s))
        new, _, _ = play_round(law.algorithm, problem, state, problem.clients, Key(s).fold("round", 0))
        moved.append(float(((new.server.x - x) ** 2).sum()))
    return Mean.of(moved, 1 / (law.alpha**2 * float((x**2).sum())) / law.c)


def typical(T: int) -> tuple[dict[str, float], str]:
    """FedMUD and FedMUD+AAD on a small problem of SSF's kind, full gradients."""
    problem = MatrixRegression.ssf(0.5, Key(17), n=10, rows=50, d=12, m=8, batch=None)
    out = {}
    for name, aad in (("theorem", False), ("aad", True)):
        law = Law(8, 12, 0.5, known(problem.constants.L), aad)
        start = problem.start()
        out[name] = squares(law.algorithm, problem, start, T, Key(3)) * law.alpha * T / (2 * gap(problem, start))
    return out, f"{T} rounds of FedMUD and FedMUD+AAD on ten clients' regression, an 8 x 12 layer, rank {law.r}."


def on_bowl(share: float) -> float:
    """Left over right side on f = L|W|^2/2 as T grows, alpha = `share`/(L c), of the first term and of the noise.

    E|W^+|^2 = (1 - 2 alpha L + (alpha L)^2 c) |W|^2 + alpha^2 c nu^2/N, by 3.2 and 3.3: both ratios are 1/(2 - share).
    """
    return 1 / (2 - share)


BOWL = "f = |W|^2/2, alpha = 1/(L c)"


def entries() -> list[Entry]:
    rows = []
    for aad, name, section in ((False, "FedMUD", "3.2"), (True, "FedMUD+AAD", "3.3")):
        rows += [
            Entry(
                f"{name}, price of a round ({section})", "c", 1.0, "any loss: an identity", "exact", lambda: 1.0,
                reached=lambda amount, aad=aad: price(amount, aad),
            ),
            Entry(
                f"{name}, theorem, T to infinity", "left/right", 1.0, BOWL, "exact", lambda: on_bowl(1.0),
                kind="theorem", claim="mud.theorem1", typical="aad" if aad else "theorem",
                reached=lambda amount, aad=aad: reached(amount, aad),
                why="attained; reached: a mean over runs of 4 c rounds",
            ),
        ]  # fmt: skip
    rows += [
        Entry(
            "theorem, noise", "left/right", 1.0, BOWL, "exact", lambda: on_bowl(1.0), claim="mud.theorem1",
            kind="theorem", why="the stationary mean square is L alpha c nu^2/N: attained",
        ),
        Entry(
            "theorem, small steps", "left/right", 1.0, "f = |W|^2/2, alpha to 0", "lower bound", lambda: on_bowl(0.0),
            claim="mud.theorem1", kind="theorem", why="4.1 gives half of the descent to the largest step",
        ),
        Entry(
            "Lemma 1", "left/right", 1.0, "rank below the longer side", "not computed", claim="mud.lemma1",
            why="false as printed, and not used here",
        ),
    ]  # fmt: skip
    return rows


EXTRAS = [
    item("mud/tight", "How tight the page's theorem is: FedMUD with a reset in every round", entries(), typical),
]
