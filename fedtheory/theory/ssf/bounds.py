"""Bounds on a run of SSF against exact runs: searched, stored instances, and the check of a repaired bound."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from fedtheory.algorithms.ssf import SSF
from fedtheory.theory import instances, search
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.ssf.attack import units_sentence
from fedtheory.theory.ssf.moments import (
    DOUBLE,
    KEY,
    SAMPLE,
    Given,
    Moments,
    Rate,
    Terms,
    corollary_steps,
    play,
    posed,
    random_problem,
    rescaled,
)


def attack_rate(rate: Rate, average: bool, effort: str, settings: Sequence[str]) -> search.Found:
    """Maximise E||grad F||^2 (minimum over t, or average) over the bound, with exact expectations, at the edges."""
    shapes = [(1, 1, 1, 1), (2, 2, 1, 1), (2, 3, 2, 1), (3, 2, 3, 1), (2, 6, 2, 2), (3, 1, 2, 1)]
    edges = [(*shape, s, noisy) for shape in shapes for s in settings for noisy in (True, False)]
    rounds, tries = (200, (1, 8)) if effort == "quick" else (1000, (2, 30))

    @torch.no_grad()
    def sides(z: torch.Tensor, edge: Any) -> tuple[torch.Tensor, torch.Tensor]:
        moments, S, terms = posed(z, edge, errors=3.0)
        values = torch.tensor(moments.run(S, rounds), dtype=DOUBLE)
        T: Any = torch.arange(1, rounds + 1, dtype=DOUBLE)
        left = values.cumsum(0) / T if average else values.cummin(0)[0]
        right = torch.zeros(rounds, dtype=DOUBLE) + sum(rate(terms, T))
        worst = int((left / right).argmax())
        return left[worst], right[worst]

    return search.maximise(
        sides, lambda e: 4 * e[0] * e[2] + e[2], KEY, edges=edges, restarts=tries[0], steps=2 * tries[1]
    )


def attack_corollary(rate: Rate, average: bool, effort: str) -> search.Found:
    """As `attack_rate`, with the corollary's own step sizes (C_0/L), which depend on T, sigma and the start."""
    shapes = [(1, 1, 1, 1), (2, 2, 1, 1), (2, 3, 2, 1), (3, 2, 3, 1), (2, 6, 2, 2), (3, 1, 2, 1)]
    horizons, tries = ((1, 20, 200), (1, 6)) if effort == "quick" else ((1, 20, 200, 2000), (2, 25))
    edges = [(*shape, T, noisy) for shape in shapes for T in horizons for noisy in (True, False)]

    @torch.no_grad()
    def sides(z: torch.Tensor, edge: Any) -> tuple[torch.Tensor, torch.Tensor]:
        N, K, d, r, T, noisy = edge
        problem, x, e = random_problem(z, N, d, noisy)
        frames, ci = instances.coordinate_frames(d, r), problem.gradients(x) + 3 * e
        any_steps = Moments(problem, frames, 1e-3, K, 1e-3)
        S = any_steps.start(x, ci)
        sigma2 = problem.constants.sigma2 or 0.0
        terms = Terms(N, K, 1.0, sigma2, r / d, 0.0, 0.0, any_steps.gap(S), any_steps.control(S))
        lr, eta = corollary_steps(terms, T, per_L=True)
        terms = replace(terms, lr=lr, eta=eta)
        if max(terms.conditions().values()) > 1 + 1e-9:
            raise AssertionError(f"not admissible: {terms}")
        values = Moments(problem, frames, lr, K, eta).run(S, T)
        left = sum(values) / T if average else min(values)
        return torch.tensor(left, dtype=DOUBLE), torch.tensor(sum(rate(terms, T)), dtype=DOUBLE)

    return search.maximise(
        sides,
        lambda e: 4 * e[0] * e[2] + e[2],
        KEY.fold("corollary"),
        edges=edges,
        restarts=tries[0],
        steps=2 * tries[1],
    )


# Deterministic instances in one dimension: d = r = 1, P = 1, sigma = 0


def run_exactly(data: dict[str, Any]) -> tuple[list[float], Terms, dict[str, float]]:
    """||grad F(x^t)||^2 along the algorithm's own rounds, the terms of the rates, and the slack of every assumption."""
    values = {name: instances.parse(v) for name, v in data.items() if name not in ("K", "T", "note")}
    h, a = values["curvature"][:, None], values["slope"][:, None]
    problem = instances.Smooth(h, torch.zeros_like(h), a=a)
    N, K, T = len(h), data["K"], data["T"]
    lr, eta, L = values["eta_l"], values["eta"], values["L"]
    algorithm = SSF(lr, K, instances.fixed(torch.ones(1, 1, dtype=DOUBLE)), server_lr=eta / (lr * K))
    given = Given(problem, torch.zeros(K, N, 1, 1, dtype=DOUBLE))
    x, ci = values["x0"].view(1, 1), values["c_i"].view(N, 1, 1)
    c = ci.mean(0) if "c" not in values else values["c"].view(1, 1)
    mean_h, mean_a = float(h.mean()), float(a.mean())
    gap = (mean_h * float(x) + mean_a) ** 2 / (2 * mean_h)
    own = problem.gradients(x)  # (N, 1, 1)
    terms = Terms(N, K, L, 0.0, 1.0, lr, eta, gap, float(((ci - own) ** 2).mean()))
    slack = {f"condition {name}": value for name, value in terms.conditions().items()}
    slack["A1: max |F_i''| / L"] = float(h.abs().max()) / L
    slack[MEAN] = float((c - ci.mean(0)).abs().max()) / (float(ci.abs().max()) or 1.0)
    squares = []
    for _ in range(T):
        squares.append((mean_h * float(x) + mean_a) ** 2)
        x, c, ci, _ = play(algorithm, given, x, c, ci)
    return squares, terms, slack


# Two clients, F_1 = a (x^2/2 + Z x), F_2 = -a Z x, F = a x^2/4, all controls zero at the start; a is the unit of loss.
HETEROGENEOUS: dict[str, Any] = {
    "curvature": ["1/10000000000000000", "0"],
    "slope": ["1/1000000000", "-1/1000000000"],
    "x0": ["1"],
    "c_i": ["0", "0"],
    "L": "1/10000000000000000",
    "eta_l": str(Fraction(10**16, 68)),
    "eta": str(Fraction(10**16, 4)),
    "K": 2,
    "T": 66,
    "note": "N = 2, d = r = 1 (P = 1), sigma = 0; F_1 = a(x^2/2 + 10^7 x), F_2 = -10^7 a x, a = 10^-16",
}


COROLLARY: dict[str, Any] = {
    "curvature": [str(Fraction(1, 10**24)), "0"],
    "slope": [str(Fraction(1, 10**13)), str(Fraction(-1, 10**13))],
    "x0": ["1"],
    "c_i": ["0", "0"],
    "L": str(Fraction(1, 10**24)),
    "eta_l": str(Fraction(10**24, 432)),
    "eta": str(Fraction(10**24, 4)),
    "K": 6,
    "T": 130,
    "note": "as for Theorem 1 with a = 10^-24, Z = 10^11; (120)-(122) give these steps as sigma -> 0: 864 K^3 = 432^2",
}


INCONSISTENT: dict[str, Any] = {
    "curvature": ["1"],
    "slope": ["0"],
    "x0": ["1"],
    "c_i": ["1"],
    "c": ["1000000"],
    "L": "1",
    "eta_l": "1/24",
    "eta": "1/4",
    "K": 1,
    "T": 32,
    "note": "N = 1, F = x^2/2, c_1^0 = grad F(x^0), so C_0 = 0, but c^0 = 10^6 is not the mean of the c_i^0",
}


MEAN = "c - mean c_i, relative"


def against(data: dict[str, Any], bound: Callable[[Terms, int], tuple[float, ...]]) -> Outcome:
    """Replay a stored instance against a bound on min_t ||grad F(x^t)||^2."""
    squares, terms, slack = run_exactly(data)
    left, right = min(squares), sum(bound(terms, data["T"]))
    admissible = all(v <= 1 + 1e-9 for name, v in slack.items() if name != MEAN)
    if not admissible:
        raise AssertionError(f"not admissible: {slack}")
    counterexample = {**data, "left": left, "right": right, "slack": slack}
    detail = f"min_t ||grad F||^2 / bound = {left / right:.3g} over T = {data['T']} rounds; {data['note']}"
    return Outcome(left <= right * (1 + 1e-9), "exact", left / right, detail, None if left <= right else counterexample)


def theorem_check(bound: Rate, name: str) -> Check:
    """A bound of T against both stored instances, units included."""

    def check(effort: str) -> Outcome:
        same, factors = search.units(lambda a, b: ((a / b) ** 2, *bound(rescaled(SAMPLE, a, b), 50)))
        data = HETEROGENEOUS if name == "theorem" else COROLLARY
        found = against(data, bound)
        changes = ", ".join(f"{f:.3g}" for f in factors)
        units = units_sentence(True) if same else f"in other units the terms change by {changes}"
        if found.counterexample is not None and name == "theorem":
            other = against(INCONSISTENT, bound)
            found.counterexample["second instance"] = other.counterexample
        return Outcome(found.holds, found.evidence, found.margin, f"{found.detail}; {units}", found.counterexample)

    return check


def scaled(rate: Rate, factors: Sequence[float]) -> Rate:
    """A bound with its terms multiplied."""
    return lambda t, T: tuple(f * v for f, v in zip(factors, rate(t, T), strict=True))


def repaired_rate(
    bound: Rate,
    settings: Sequence[str],
    data: dict[str, Any],
    average: bool,
    chains: Sequence[Callable[[], str | None]],
) -> Check:
    """A repaired bound: its proof chains, units, the stored instance, and the search on exact instances.

    Args:
        settings: of `stepsizes`; none: the corollary's own steps.
    """

    def check(effort: str) -> Outcome:
        failed = [words for chain in chains if (words := chain()) is not None]
        same, _ = search.units(lambda a, b: ((a / b) ** 2, *bound(rescaled(SAMPLE, a, b), 50)))
        stored = against(data, bound)
        edges = settings if effort == "full" else settings[:2]
        found = attack_rate(bound, average, effort, edges) if edges else attack_corollary(bound, average, effort)
        holds = not failed and same and stored.holds and found.holds
        detail = (
            f"{'; '.join(failed) or 'every step of the chain holds (z3, sympy)'}; {units_sentence(same)}; on the "
            f"stored instance ratio {stored.margin:.3g}; search over {found.tried} exact instances: worst ratio "
            f"{found.ratio:.3g}"
        )
        return Outcome(holds, "search", max(found.ratio, stored.margin or 0.0), detail, None)

    return check
