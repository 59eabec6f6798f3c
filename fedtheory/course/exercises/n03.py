"""Exercises of notebook 03, SSF."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import State
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.loop import play_round
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise, plain
from fedtheory.course.exercises.symbolic import same
from fedtheory.maps.subspace import Spherical
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run

N, D, R = 4, 20, 5  # clients, dimension and subspace of the checks' own problems
KEY = Key(0).fold("exercises", 3)


def _rounds_to(share: float, kept: float) -> int:
    """Round by round: how many until that share is left, if each round keeps so much."""
    left, t = 1.0, 0
    while left > share:
        left, t = left * kept, t + 1
    return t


def rounds_of_memory(answer: float) -> str:
    """Rounds until the squared error of a control has fallen to 1e-4, d = 64, r = 2."""
    slips = {
        "You took 1 - r/d for the factor of the error; it is that of its square.": _rounds_to(1e-2, 1 - 2 / 64),
        "One round earlier: it has not fallen so far.": _rounds_to(1e-4, 1 - 2 / 64) - 1,
        "You took a round for the removal of r/d of the start, not of what is left.": 64 // 2,
        "You approximated ln(1 - r/d) by -r/d.": math.ceil(math.log(1e4) * 64 / 2),
    }
    return reveals(answer, _rounds_to(1e-4, 1 - 2 / 64), slips)


def damped(answer: Callable[..., Any]) -> str:
    """Factor and limit of the squared error of a damped, noisy refresh, in sympy's symbols."""
    import sympy

    a, r, d, sigma, K = symbols = sympy.symbols("a r d sigma K", positive=True)
    found = plain(answer(*symbols))
    if not isinstance(found, tuple) or len(found) != 2:
        return "Two expressions are asked for: the factor, and the limit."
    factor, limit = found
    right, rho = 1 - (2 * a - a**2) * r / d, r / d
    return first_of(
        [
            (lambda: not same(factor, 1 - rho), "The factor is that of a full refresh: a does not stand in it."),
            (lambda: not same(factor, 1 - a * rho), "The norm is squared: a stands in the factor squared, too."),
            (
                lambda: not same(factor, (1 - a) ** 2),
                "So it would be inside the subspace; what lies outside stays as it is.",
            ),
            (lambda: not same(factor, (1 - a * rho) ** 2), "That is the square of the mean, not the mean square."),
            (lambda: same(factor, right), "The factor is wrong: at a = 1 it must be that of section 2.2."),
            (lambda: not same(limit, a * sigma**2 / (2 - a)), "A refresh averages the noise of K gradients."),
            (
                lambda: not same(limit, a**2 * rho * sigma**2 / K),
                "That is what one round adds; the limit is where what is added balances what is removed.",
            ),
            (lambda: not same(limit, rho * sigma**2 / K), "That is what one full refresh adds."),
            (
                lambda: not same(limit, sigma**2 / K),
                "The limit is that of a full refresh: with a small a the memory averages over rounds.",
            ),
            (lambda: same(limit, a * sigma**2 / ((2 - a) * K)), "The factor is right, the limit is not."),
        ]
    )


FACTS = {
    "rows": "P P^T = I fails.",
    "idempotent": "projecting twice is not projecting once.",
    "orthogonal": "the two parts of x are not orthogonal.",
    "range": "x and the c_i change inside the range of P^T only, since all that is added is lifted.",
    "mean": "the mean of the c_i is c, whatever linear map stands in (6) and (7).",
    "seen": "after the round P c_i is not the averaged P g_i.",
    "falls": "the squared error of c_i does not fall on average.",
}


@functools.cache
def _red() -> frozenset[str]:
    """Which of the facts fail for SSF with isotropic bases, measured on the code that trains."""
    problem = Quadratic.random(N, D, KEY.fold("scale"))
    ssf = SSF(1e-9, 3, Spherical(R, "orthonormal"))  # a step so small that x does not move
    object.__setattr__(ssf, "projection", Spherical(R))  # as an argument SSF refuses this scale
    x = torch.randn(D, generator=KEY.fold("x").generator(), dtype=torch.float64)
    held = problem.grads(x.expand(N, -1), problem.full(problem.clients))
    errors: list[float] = []
    worst = dict.fromkeys(FACTS, 0.0)

    def at(fact: str, difference: torch.Tensor) -> None:
        worst[fact] = max(worst[fact], float(difference.abs().max()))

    for seed in range(60):
        root = KEY.fold("basis", seed)
        state = ssf.init(problem, x, root)
        P, (frame,) = state.server.P.value, state.server.P.value.matrices()
        c = torch.randn(N, D, generator=root.fold("c").generator(), dtype=torch.float64)
        server = type(state.server)(**{**vars(state.server), "c": c.mean(0)})
        state = State(server, type(state.own)(c.clone()))
        state, _, _ = play_round(ssf, problem, state, problem.clients, root.fold("round", 0))
        lifted = P.lift(P.project(x))
        Q = torch.linalg.qr(frame)[0]
        changes = torch.cat([(state.server.x - x)[None], state.own.c - c])
        at("rows", frame.T @ frame - torch.eye(R, dtype=torch.float64))
        at("idempotent", P.lift(P.project(lifted)) - lifted)
        at("orthogonal", lifted @ (x - lifted))
        at("range", changes - changes @ Q @ Q.T)
        at("mean", state.own.c.mean(0) - state.server.c)
        at("seen", P.project(state.own.c - held))
        errors.append(float((state.own.c - held).square().sum() / (c - held).square().sum()))
    worst["falls"] = max(0.0, sum(errors) / len(errors) - 1)
    return frozenset(fact for fact, value in worst.items() if value > 1e-6)


def scaled(answer: Any) -> str:
    """The facts that go red."""
    if not isinstance(answer, (set, tuple)) or not set(answer) <= set(FACTS):
        return f"A set of names is asked for, of {', '.join(FACTS)}."
    said, red = set(answer), _red()
    missed = [f'"{fact}" goes red: {FACTS[fact]}' for fact in FACTS if fact in red - said]
    extra = [f'"{fact}" stays green: {FACTS[fact]}' for fact in FACTS if fact in said - red]
    return (missed + extra + [""])[0]


def least_subspace(answer: Any) -> str:
    """Smallest r at which FedSub's correction, own scale, d = 74, is nearer than none."""
    off = lambda r: math.sqrt(74 / r - 1)
    return first_of(
        [
            (isinstance(answer, int), "A dimension is a whole number."),
            (lambda: 0 < answer <= 74, "The subspace has between 1 and d dimensions."),
            (lambda: off(answer) != 1, "At this r it is exactly as far off as none at all."),
            (lambda: off(answer) < 1, "Too small: the correction is farther off than none."),
            (lambda: off(answer - 1) >= 1, "Too large: one dimension less would do."),
        ]
    )


def refresh(answer: Callable[..., torch.Tensor]) -> str:
    """(7), as a function of c, P, g."""
    old, g = torch.randn(2, 3, D, generator=KEY.fold("refresh").generator(), dtype=torch.float64)
    basis = Spherical(R, "orthonormal").draw(Layout.single(D), KEY.fold("basis"), torch.float64)
    new = lambda: answer(old, basis, g)
    return first_of(
        [
            (lambda: new().shape == old.shape, "A control has d numbers: lift what you projected."),
            (
                lambda: torch.allclose(basis.project(new()), basis.project(g)),
                "Seen through the basis the new control is not g.",
            ),
            (
                lambda: torch.allclose(new() - old, basis.lift(basis.project(g - old))),
                "Outside the subspace the control has changed, and must not.",
            ),
        ]
    )


def restricted(answer: Callable[..., Any]) -> str:
    """SSF with one basis against SCAFFOLD on the problem that the learner restricts: noise, sampling, a start off 0."""
    problem = Quadratic.random(N, D, KEY.fold("restricted"), sigma=0.5)
    x = torch.randn(D, generator=KEY.fold("start").generator(), dtype=torch.float64)
    ssf = run(SSFReading.haar(0.2, 3, R, refresh=1_000_000), problem, 12, sampled=3, x0=x)
    (frame,) = ssf.state.server.P.value.matrices()
    P, noise = frame.T, problem.noise
    assert noise is not None
    H, b = answer(problem.H, problem.b, P, x)
    if tuple(H.shape) != (N, R, R) or tuple(b.shape) != (N, R):
        return f"Shapes: H' must be (N, r, r) and b' (N, r), not {tuple(H.shape)} and {tuple(b.shape)}."
    if not torch.allclose(H, P @ problem.H @ P.T):
        return "The curvature along the subspace is not P H P^T."
    own = run(Scaffold(0.2, 3, server_control="participants"), _small(H, b, noise @ P.T), 12, sampled=3, x0=P @ x)
    if torch.allclose(own.x @ P + x - P.T @ (P @ x), ssf.x, atol=1e-9):
        return ""
    if torch.allclose(b, problem.b @ P.T):
        return "P b is the shadow of the minimiser, not the minimiser on the slice: H carries x_res into the subspace."
    return "The minima of the restricted losses are elsewhere: is the point P^T b + x_res, with x_res of x?"


def _small(H: torch.Tensor, b: torch.Tensor, noise: torch.Tensor) -> Quadratic:
    return Quadratic((H + H.mT) / 2, b, noise=noise)


@functools.cache
def _floor(method: str, r: int, spread: float) -> float:
    """Mean distance of the last rounds to the solution, of a method whose gradients are noisy."""
    base = Quadratic.random(N, D, KEY.fold("floor"), spread=2.0, sigma=1.0 if method == "twice" else 0.5)
    H, b = (mean + spread * (all_ - mean) for mean, all_ in ((base.H.mean(0), base.H), (base.b.mean(0), base.b)))
    problem = Quadratic((H + H.mT) / 2, b, noise=base.noise)
    orthonormal = Spherical(r, "orthonormal")
    algorithm = {
        "ssf": lambda: SSF(0.2, 5, orthonormal),
        "twice": lambda: SSF(0.2, 5, orthonormal),
        "own": lambda: FedSub(0.2, 5, Spherical(r), form="sums"),
        "short": lambda: FedSub(0.2, 5, orthonormal, form="sums"),
        "none": lambda: FedSub(0.2, 5, orthonormal, dual=False),
    }[method]()
    x_star = problem.constants.x_star
    assert x_star is not None
    return sum(run(algorithm, problem, 250)["error"][-120:]) / 120 * float(x_star.norm())


BOXES = {  # whether its floor at a quarter of the dimensions is made by the change of subspace, and who it is
    "ssf": (False, "SSF, whose memory is full: its floor is noise."),
    "short": (True, "FedSub with orthonormal bases: its dual forgets at every change of the subspace."),
    "own": (True, "FedSub in its own scale: its dual forgets at every change of the subspace."),
    "twice": (False, "SSF with twice the noise: a higher floor is not lost information."),
    "none": (False, "FedSub without a dual: it remembers nothing, so nothing is lost; that floor is client drift."),
}


def separation(answer: Callable[..., Any]) -> str:
    """A rule that tells, by floors alone, whether a method's floor is lost information."""
    for method, (lost, who) in BOXES.items():

        def floor(r: int, spread: float, method: str = method) -> float:
            if not isinstance(r, int) or not 1 <= r <= D or not 0 <= spread <= 1:
                raise ValueError(f"r is a whole number from 1 to {D}, spread between 0 and 1")
            return _floor(method, r, float(spread))

        if bool(answer(floor)) != lost:
            return f"You {'clear' if lost else 'accuse'} {who}"
    return ""


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "section 2.2: which share does a round leave?",
        rounds_of_memory,
        right=("1 + int(math.log(1e-4) / math.log(1 - 2 / 64))", "291.0"),
        wrong={"290": "One round earlier", "32": "of the start", "295": "approximated", "146": "of its square"},
    ),
    2: Exercise(
        "derive",
        3,
        "write the new error as a map of the old one plus noise, square it, and use that the projector is idempotent "
        "and r/d on average",
        damped,
        right=(
            "lambda a, r, d, sigma, K: ((1 - r / d) + (1 - a)**2 * r / d, a * sigma**2 / (K * (2 - a)))",
            "lambda a, r, d, sigma, K: [1 + (a**2 - 2 * a) * r / d, sigma**2 / K / (2 / a - 1)]",
        ),
        wrong={
            "lambda a, r, d, sigma, K: (1 - r / d, sigma**2 / K)": "a does not stand in it",
            "lambda a, r, d, sigma, K: (1 - a * r / d, sigma**2 / K)": "squared, too",
            "lambda a, r, d, sigma, K: ((1 - a * r / d)**2, sigma**2 / K)": "square of the mean",
            "lambda a, r, d, sigma, K: ((1 - a)**2, sigma**2 / K)": "what lies outside stays",
            "lambda a, r, d, sigma, K: (1 - (2 * a - a**2) * r / d, sigma**2 / K)": "averages over rounds",
            "lambda a, r, d, sigma, K: (1 - (2 * a - a**2) * r / d, a**2 * r / d * sigma**2 / K)": "balances",
            "lambda a, r, d, sigma, K: (1 - (2 * a - a**2) * r / d, a * sigma**2 / (2 - a))": "K gradients",
            "lambda a, r, d, sigma, K: 1 - (2 * a - a**2) * r / d": "Two expressions",
        },
        tells=(r"2\s*-\s*a\b", r"2\s*\*?\s*a\s*-\s*a"),
    ),
    3: Exercise(
        "break",
        2,
        "P^T P is now d/r times the projector: put that into each of the seven, and take ranges and means apart from "
        "lengths",
        scaled,
        right=(
            "['falls', 'seen', 'orthogonal', 'idempotent', 'rows']",
            "{'rows', 'idempotent', 'orthogonal', 'range', 'mean', 'seen', 'falls'} - {'mean', 'range'}",
        ),
        wrong={
            "{'rows'}": "projecting twice",
            "{'rows', 'idempotent', 'orthogonal', 'seen'}": "does not fall",
            "{'rows', 'idempotent', 'orthogonal', 'seen', 'falls', 'range'}": "all that is added is lifted",
            "{'rows', 'idempotent', 'orthogonal', 'seen', 'falls', 'mean'}": "whatever linear map",
            "{'rows', 'idempotent', 'orthogonal', 'falls'}": "averaged P g_i",
            "{2, 3, 4}": "A set of names",
        },
        open=True,
    ),
    4: Exercise(
        "compute",
        1,
        "section 2.3: how far off is it, relative to the one needed?",
        least_subspace,
        right=("int(74 / 2) + 1",),
        wrong={"37": "exactly as far", "10": "Too small", "60": "Too large", "37.5": "whole number"},
    ),
    5: Exercise(
        "implement",
        1,
        "what of c stays, and what takes the place of the rest?",
        refresh,
        right=("lambda c, P, g: c - P.lift(P.project(c - g))",),
        wrong={
            "lambda c, P, g: P.lift(P.project(g))": "Outside the subspace",
            "lambda c, P, g: c + P.lift(P.project(g))": "is not g",
            "lambda c, P, g: P.project(g)": "lift what you projected",
            "lambda c, P, g: g": "Outside the subspace",
        },
    ),
    6: Exercise(
        "implement",
        3,
        "write F_i at the point P^T b + x_res, differentiate in b, and read off the matrix and where it is zero",
        restricted,
        right=(
            "lambda H, b, P, x: (P @ H @ P.T, torch.linalg.solve(P @ H @ P.T, ((H @ (b - x)[..., None])[..., 0]) @ P.T)"
            " + P @ x)",
        ),
        wrong={
            "lambda H, b, P, x: (P @ H @ P.T, b @ P.T)": "the shadow of the minimiser",
            "lambda H, b, P, x: (P @ H @ P.T, (b - x + P.T @ (P @ x)) @ P.T)": "the shadow of the minimiser",
            "lambda H, b, P, x: (P @ H @ P.T, (b - x) @ P.T)": "minima of the restricted losses",
            "lambda H, b, P, x: (H, b)": "Shapes",
            "lambda H, b, P, x: (torch.linalg.inv(P @ torch.linalg.inv(H) @ P.T), b @ P.T)": "curvature along",
        },
        tells=(r"P @ H @ P",),
    ),
    7: Exercise(
        "design",
        3,
        "what does a method lose at a change of the subspace when r = d? And which other sources of a floor does that "
        "comparison leave as they are?",
        separation,
        right=(
            "lambda floor: floor(5, 1.0) / floor(20, 1.0) > 1.1",
            "lambda floor: floor(5, 1) ** 2 - floor(20, 1) ** 2 > 0.3 * floor(20, 1) ** 2",
        ),
        wrong={
            "lambda floor: floor(5, 1.0) > 1e-3": "accuse SSF, whose memory is full",
            "lambda floor: False": "clear FedSub with orthonormal",
            "lambda floor: floor(5, 1.0) > 1.15 * floor(5, 0.0)": "accuse FedSub without a dual",
            "lambda floor: floor(5, 0.0) > 1.15 * floor(20, 0.0)": "clear FedSub with orthonormal",
        },
        tells=(r"floor\(20",),
    ),
    8: Exercise(
        "explain",
        3,
        rubric={
            "A new subspace looks at directions that the last one did not see; a correction is needed there, too.": 1,
            "With backfill the part outside is kept, so that errors only shrink, by 1 - r/d a round. Without it each "
            "round throws away what earlier rounds have learnt, and the squared error stays near 1 - r/d of what is "
            "needed.": 1,
            "The price: a full vector of d numbers on every client and on the server, though only r of them travel.": 1,
        },
        weak={
            "It keeps more information.": "Says neither which information, nor when it is needed again.",
            "Without it the controls would not be unbiased.": (
                "Bias is not the point: a full refresh is biased as well, and its error vanishes."
            ),
            "It makes the algorithm equal to SCAFFOLD.": "True at r = d only, where there is nothing to backfill.",
            "It costs nothing, since only r numbers travel.": "Forgets memory: d numbers per client stay at home.",
        },
    ),
}
