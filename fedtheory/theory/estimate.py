"""What the rules of docs/theory/use.md ask of a problem, measured on it by gradients alone."""

from typing import NamedTuple

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem


class Estimate(NamedTuple):
    """Sizes of a problem, as the rules take them: `estimate`.

    Fields:
        L: smoothness of every client's loss.
        effective: effective dimension tr H/L, between 1 and d; H is the Hessian of F.
        gap: Delta_F, the loss at the first point over its least value.
        start2: C_0, mean squared gradient of the clients at the first point, the error of memories that start at zero.
        zeta2: mean squared distance of the clients' gradients from that of F.
        sigma2: variance of one minibatch gradient.
        sample_L: mean-square smoothness of that noise, the ell of section 9 of docs/theory/family.md.
        mu: Polyak-Lojasiewicz constant, least ||grad F||^2/(2 (F - F*)).
    """

    L: float
    effective: float
    gap: float
    start2: float
    zeta2: float
    sigma2: float
    sample_L: float
    mu: float


@checks.arguments
def estimate(
    problem: Problem,
    points: torch.Tensor | None = None,
    *,
    least: float = 0.0,
    reach: float = 0.01,
    effort: int = 10,
    key: Key | int = 0,
) -> Estimate:
    """Measure what the rules ask of a problem: its curvature, gap, differences between clients, and noise.

    Products with Hessians are differences of full gradients. L takes `effort` steps of power iteration for each client,
    and tr H as many random signs. So L and sample_L are at most the true ones, which hold everywhere: pass points of a
    short run, not only its start, and the largest values count. A client makes about seven times `effort` gradients a
    point.

    Args:
        problem: all its clients take part.
        points: models, (d,) or (p, d), the first of them the start; default `problem.start()` alone.
        least: a lower bound of the loss F.
        reach: half the length of a difference, over max(1, ||x||). A ReLU has kinks, which a short one takes for
            curvature: let it be about as long as a step.
        effort: steps of power iteration, random signs, and minibatches.
        key: of random directions and minibatches, or its seed.

    Raises TypeError or ValueError for arguments out of range, and for clients with unequal numbers of local steps.

    >>> from fedtheory import Quadratic
    >>> problem = Quadratic.random(n=5, d=8, key=1)
    >>> found = estimate(problem, effort=50)
    >>> round(found.L, 2), round(problem.constants.L, 2)
    (1.0, 1.0)
    """
    checks.instance("problem", problem, Problem, "pass a problem such as Quadratic.random(n=5, d=8, key=0)")
    x = torch.atleast_2d(problem.start() if points is None else checks.tensor("points", points))
    checks.tensor("points", x, (None, problem.d), problem.dtype)
    if not len(x):
        checks.reject("points", "no model", "at least one", "pass problem.start()")
    checks.number("least", least)
    checks.number(
        "reach", reach, 0.0, 1.0, open_low=True, fix="pass about the length of a step, for example reach=0.01"
    )
    checks.count("effort", effort, 1000)
    if problem.uneven:
        checks.reject("problem", "clients with unequal steps", "the same for all", "construct it with epochs=None")
    places = [_at(problem, point, least, reach, effort, Key.of(key).fold("point", p)) for p, point in enumerate(x)]
    most = Estimate(*map(max, zip(*places)))
    effective = min(max(most.effective / most.L, 1.0), float(problem.d)) if most.L else 1.0
    mu = min(place.mu for place in places)
    return most._replace(effective=effective, gap=places[0].gap, start2=places[0].start2, mu=mu)


def _at(problem: Problem, x: torch.Tensor, least: float, reach: float, effort: int, key: Key) -> Estimate:
    """Measure at one point; `effective` is tr H there."""
    clients, weights = problem.clients, problem.weights.to(x)
    whole, g = problem.full(clients), key.fold("direction").generator()
    far = reach * max(1.0, float(torch.linalg.vector_norm(x)))

    def bent(v: torch.Tensor, xi: object) -> torch.Tensor:
        """Row i: the Hessian of f_i(.; xi_i) at x, times the unit vector v_i."""
        return (problem.grads(x + far * v, xi) - problem.grads(x - far * v, xi)) / (2 * far)

    def unit(v: torch.Tensor) -> torch.Tensor:
        return v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(torch.finfo(v.dtype).tiny)

    def drawn(rows: int) -> torch.Tensor:
        return torch.randn(rows, problem.d, generator=g, dtype=torch.float64).to(x)

    v, Hv = unit(drawn(problem.n)), torch.zeros_like(x).expand(problem.n, -1)
    for _ in range(effort):
        Hv = bent(v, whole)
        v = unit(Hv)
    L = float(torch.linalg.vector_norm(Hv, dim=1).max())
    traces = []
    for _ in range(effort):
        z = drawn(1).sign() / problem.d**0.5
        traces.append(problem.d * float(weights @ (bent(z.expand(problem.n, -1), whole) @ z[0])))
    grads = problem.grads(x.expand(problem.n, -1), whole)
    mean = weights @ grads
    steps = effort if getattr(problem, "epochs", None) is None else problem.steps
    samples = problem.draw(clients, steps, key.fold("sample"))
    along = bent(v, whole)
    noise = [problem.grads(x.expand(problem.n, -1), xi) - grads for xi in samples]
    rough = [bent(v, xi) - along for xi in samples]
    of_clients = lambda found: float(torch.stack([one.square().sum(1) for one in found]).mean(0).max())
    gap, slope2 = problem.loss(x) - least, float(mean.square().sum())
    return Estimate(
        L,
        sum(traces) / effort,
        gap,
        float(weights @ grads.square().sum(1)),
        float(weights @ (grads - mean).square().sum(1)),
        of_clients(noise),
        of_clients(rough) ** 0.5,
        slope2 / (2 * gap) if gap > 0 else 0.0,
    )
