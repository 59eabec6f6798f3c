"""DeComFL: docs/theory/decomfl.md. With one local step eta L c = 1/4, c = 1 + (kappa + 1)/P."""

import torch

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.papers.tight import decomfl_local as local
from fedtheory.papers.tight.mud import on_bowl, squares
from fedtheory.papers.tight.table import Entry, Mean, Steps, gap, item, known
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.theory.instances import Smooth

TINY = 1e-6  # smoothing that leaves no trace
SHARE = 0.25  # eta L c


def cost(kappa: float, P: int) -> float:
    """c."""
    return 1 + (kappa + 1) / P


def bowl(h: torch.Tensor) -> Smooth:
    """f = sum h_j x_j^2/2, one client."""
    return Smooth(h[None], torch.zeros(1, len(h), dtype=torch.float64))


def aligned(kappa: float, P: int) -> float:
    """1.2 over 1.3 for H of top eigenvalue L and trace kappa L, w along it."""
    return ((kappa + 2) / P + 1 - 1 / P) / cost(kappa, P)


def second_moment(amount: dict[str, int]) -> Mean:
    """E v^T H v over L c |g|^2 by DeComFL's own rounds, H with one large eigenvalue and g along it."""
    h = torch.tensor([1.0, 0.25, 0.25, 0.0], dtype=torch.float64)
    P, lr, found = 2, 0.5, []
    problem, algorithm = bowl(h), DeComFL(lr, 1, P, TINY)
    x = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    for s in range(100 * amount["steps"]):
        state = algorithm.init(problem, x, Key(s))
        new, _, _ = play_round(algorithm, problem, state, problem.clients, Key(s))
        v = (x - new.server.x) / lr
        found.append(float((h * v**2).sum()))
    return Mean.of(found, 1 / cost(1.5, P))


def reached(amount: dict[str, int]) -> Mean:
    """The theorem's left over right side on |x|^2/2, d = 4, P = 2, in the mean over runs."""
    d, P = 4, 2
    lr = SHARE / cost(d, P)
    T, runs = round(2 / lr), 2 * amount["steps"]
    problem, x = bowl(torch.ones(d, dtype=torch.float64)), torch.ones(d, dtype=torch.float64)
    left = [squares(DeComFL(lr, 1, P, TINY), problem, x, T, Key(s)) for s in range(runs)]
    return Mean.of(left, lr * T / (2 * d / 2))


def typical(T: int) -> tuple[dict[str, float], str]:
    """DeComFL on a small problem of SSF's kind, full gradients."""
    problem = MatrixRegression.ssf(0.5, Key(17), n=10, rows=50, d=12, m=4, batch=None)
    L, P = known(problem.constants.L), 10
    H = (problem.A.mT @ problem.A / problem.rows).mean(0) + problem.lam * torch.eye(12, dtype=torch.float64)
    kappa = 4 * float(H.trace()) / L  # four columns with the same Hessian
    lr = SHARE / (L * cost(kappa, P))
    start = problem.start()
    left = squares(DeComFL(lr, 1, P, TINY), problem, start, T, Key(3))
    said = f"{T} rounds of DeComFL (P = {P}) on ten clients' regression, d = 48, kappa = {kappa:.3g}, mu = {TINY:g}."
    return {"theorem": left * lr * T / (2 * gap(problem, start))}, said


def bias(d: int) -> float:
    """Rest at g = -b: |b|^2 over the theorem's (5/2) mu^2 L^2 d, small steps."""
    return local.bias2(d) / (5 / 2 * d)


def bias_steps(d: int) -> Steps:
    """3.1 doubles |b|^2, 3.5 takes 1/4 for eta L."""
    return {**local.bias_steps(d), "3.1": 2.0, "3.5": 5 / 4}


def both(T: int) -> tuple[dict[str, float], str]:
    """One local step and several."""
    one, several = typical(T), local.typical(T)
    return one[0] | several[0], f"{one[1]} {several[1]}"


def entries() -> list[Entry]:
    rest = on_bowl(SHARE)
    return [
        Entry(
            "second moment (1.3)", "L c |w|^2", 1.0, "w along the largest eigenvalue of H", "exact",
            lambda: aligned(1.5, 2),
            claim="decomfl.eq76", reached=second_moment, why="attained",
        ),
        Entry(
            "theorem, R to infinity", "left/right", 1.0, "f = |x|^2/2, eta L c = 1/4, nu = mu = 0", "exact",
            lambda: rest, claim="decomfl.theorem5", typical="theorem", kind="theorem", reached=reached,
            why="attained: by 1.3 no loss has more",
        ),
        Entry(
            "theorem, noise", "left/right", 1.0, "f = |x|^2/2, eta L c = 1/4, mu = 0", "exact", lambda: rest / 2,
            claim="decomfl.theorem1 / theorem3", kind="theorem", steps=lambda: {"3.2": 2.0, "3.4": 1 / rest},
            why="attained: by 1.3 no loss has more",
        ),
        *(Entry(
            f"theorem, smoothing, d = {d}", "left/right", 1.0, "rest at g = -b, eta to 0", "lower bound",
            lambda d=d: bias(d), kind="theorem", claim="decomfl.lemma2a", steps=lambda d=d: bias_steps(d),
            why="the first of the two terms with mu",
        ) for d in (1, 10)),
        *local.entries(),
    ]  # fmt: skip


EXTRAS = [
    item("decomfl/tight", "How tight the page's theorems and lemmas are: DeComFL", entries(), both),
]
