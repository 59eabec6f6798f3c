"""Exercises of notebook 07, DeComFL."""

import functools
from typing import Any

import torch

from fedtheory.algorithms.decomfl import DeComFL, Model, Step
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise
from fedtheory.course.exercises.symbolic import formula


def crossing(answer: float) -> str:
    """Scalars and seeds per client and round."""
    n, S, P = 100, 10, 13
    slips = {
        "You left out the seeds of the round itself.": (S * P + 2 * n * P) / n,
        "What a client missed takes seeds and scalars to rebuild: two numbers each.": (2 * S * P + n * P) / n,
        "That is per participant, not per client.": (2 * S * P + 2 * n * P) / S,
        "That is the axis of the plots, K P: one direction, participants only.": P,
        "You left out the round's own scalars and seeds.": 2 * P,
        "You left out what was missed.": 2 * S * P / n,
    }
    return reveals(answer, (2 * S * P + 2 * n * P) / n, slips)


def _mean(value: Any, normals: list[Any]) -> Any:
    """Expectation of a polynomial in independent standard normal variables."""
    import sympy

    terms = sympy.Poly(sympy.expand(value), *normals).terms()
    odd = lambda powers: any(power % 2 for power in powers)
    moment = lambda powers: sympy.prod([sympy.factorial2(power - 1) for power in powers])
    return sum((factor * moment(powers) for powers, factor in terms if not odd(powers)), sympy.Integer(0))


def variance(answer: Any) -> str:
    """Of a forward difference on a quadratic: a function of ||grad||^2, tr H, tr H^2 and mu."""
    import sympy

    a, h, z = (sympy.symbols(f"{name}1:4", real=True) for name in "ahz")
    mu = sympy.Symbol("mu", positive=True)
    slope = sum(p * q for p, q in zip(a, z)) + mu / 2 * sum(p * q**2 for p, q in zip(h, z))
    first, second = (_mean(slope**power, list(z)) for power in (1, 2))
    square, trace, trace2 = sum(p**2 for p in a), sum(h), sum(p**2 for p in h)
    found = sympy.sympify(answer(square, trace, trace2, mu))
    same = lambda other: sympy.expand(found - other) == 0
    return first_of(
        [
            (not same(square), "That is for mu -> 0, or for the central difference: here the curvature adds noise."),
            (not same(second), "That is the second moment: the mean, mu/2 tr H, is not taken off."),
            (
                not same(square + mu**2 / 4 * trace2),
                "z^T H z has the variance 2 tr H^2: the fourth moment of a normal is 3.",
            ),
            (not same(square + (mu / 2) * trace2 * 2), "The curvature's part is mu/2 z^T H z: square the mu, too."),
            (same(second - first**2), "In three dimensions, worked out with moments, it is another polynomial."),
        ]
    )


def largest_step(answer: float) -> str:
    """Above which the expected loss grows on ||x||^2/2."""
    d = 62
    slips = {
        "That is 2/d: a direction is Gaussian, and its fourth moment counts.": 2 / d,
        "Half of it: the loss still falls there, and fastest.": 1 / (d + 2),
        "That is gradient descent's bound.": 2.0,
        "d + 1 belongs to the variance without the mean.": 2 / (d + 1),
    }
    return reveals(answer, 2 / (d + 2), slips)


def _played(P: int, *scalars: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor], float]:
    """Directions (P, d), and where the package's rebuild leads from 0 with each (P,) of scalars; the rate."""
    zo, layout = DeComFL(0.3, 1, P), Layout.single(5)
    seeds, at = torch.arange(P)[None], torch.zeros(5, dtype=torch.float64)
    Z = torch.stack([torch.cat([part for _, part in one]) for one in zo.directions(layout, seeds[0], at)])
    ends = []
    for g in scalars:
        model = Model(at.clone(), None)
        zo.rebuild(layout, model, Step(seeds, g[None]))
        ends.append(model.x)
    return Z, ends, zo.lr


def _scalars(P: int, name: str) -> torch.Tensor:
    return torch.randn(P, generator=Key(7).fold(name).generator(), dtype=torch.float64)


def rebuilt(answer: Any) -> str:
    """Line 8 of Algorithm 4: a function of x, Z, g and eta."""
    g = _scalars(4, "mean")
    Z, (end,), eta = _played(4, g)
    x = torch.ones(5, dtype=torch.float64)
    found, step = answer(x, Z, g, eta), g @ Z
    near = lambda other: torch.allclose(found, other)
    return first_of(
        [
            (lambda: found.shape == x.shape, "The model has d numbers."),
            (lambda: not near(x - eta * step), "That is the sum, as (7) prints it."),
            (lambda: not near(x + eta * step / 4), "Uphill: check the sign."),
            (lambda: not near(x - step / 4), "eta is missing."),
            (lambda: near(x + end), "The package's rebuild ends elsewhere."),
        ]
    )


def kept(answer: Any) -> str:
    """What a client that keeps its walked model is off by, for t_i = r and for t_i = r + 1."""
    mean, own = _scalars(4, "mean"), _scalars(4, "own")
    Z, (server, walked), eta = _played(4, mean, own)
    twice, once = walked + server - server, walked - server
    found = answer(Z, own, mean, eta)
    if not hasattr(found, "__len__") or len(found) != 2:
        return "Two vectors are asked for: for t_i = r, and for t_i = r + 1."
    near = lambda at, other: torch.allclose(torch.as_tensor(found[at]), other, atol=1e-12)
    return first_of(
        [
            (lambda: not (near(0, once) and near(1, twice)), "The two are swapped: with t_i = r round r comes twice."),
            (lambda: not (near(0, -twice) and near(1, -once)), "The signs: its model minus x_{r+1} is asked for."),
            (
                lambda: not near(0, server),
                "That is the mean's step. The replay of round r makes it; what is too much is the client's own.",
            ),
            (
                lambda: not near(1, torch.zeros_like(once)),
                "Not zero: it walked by its own scalars, the server by their mean.",
            ),
            (lambda: near(0, twice), "For t_i = r a replay by the package's code ends elsewhere."),
            (lambda: near(1, once), "For t_i = r + 1 it ends elsewhere: which scalars led the client, and the server?"),
        ]
    )


def _error(S: int, P: int) -> float:
    """E||u - grad f||^2 / ||grad f||^2 for d = 50 and minibatch noise of six times ||grad f||^2, clients alike."""
    of_directions = 51 / P
    return of_directions + (1 + of_directions) * 6 / S


@functools.cache
def _least_scalars() -> int:
    return min(s * p for s in range(7, 200) for p in range(52, 600) if _error(s, p) <= 1)


def cheapest(answer: Any) -> str:
    """S clients and P directions with the fewest scalars up for an error of one."""
    if not isinstance(answer, tuple) or not all(isinstance(one, int) and one > 0 for one in answer):
        return "A pair of whole numbers, (S, P), is asked for."
    S, P = answer
    if _error(S, P) > 1:
        if P <= 51:
            return f"With P = {P} no number of clients is enough: (d+1)/P alone is {51 / P:.3g}."
        if S <= 6:
            return f"With S = {S} no number of directions is enough: the noise alone is {6 / S:.3g}."
        return f"The error is {_error(S, P):.3g}: too much."
    least = _least_scalars()
    times = S * P / least
    return f"It is enough, but {S * P} scalars are {times:.3g} times the fewest." if times > 1 else ""


def best_smoothing(answer: Any) -> str:
    """A function of u, f, t: the mu at which rounding and third derivative of a central difference are least."""
    slips = {
        "That is the forward difference's: the curvature cancels here, and the third derivative is left.": (
            lambda u, f, t: 2 * (u * f / t) ** 0.5
        ),
        "Twice the rounding, or both errors made equal: two losses are off by u f each, the divisor is 2 mu, and a "
        "sum is least where its derivative is zero.": lambda u, f, t: (6 * u * f / t) ** (1 / 3),
        "Half of the rounding: both losses are rounded.": lambda u, f, t: (3 * u * f / (2 * t)) ** (1 / 3),
        "The derivative of mu^2 t/6 is mu t/3.": lambda u, f, t: (u * f / t) ** (1 / 3),
        "Set the derivative to zero and solve for mu: its third power stands there.": lambda u, f, t: 3 * u * f / t,
    }
    return formula(
        answer, lambda u, f, t: (3 * u * f / t) ** (1 / 3), [(1e-6, 5, 2), (1e-3, 1, 1), (0.01, 2, 7)], slips
    )


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "up S K P, the round's seeds S K P, rebuild 2 n K P: all clients together, divided by n",
        crossing,
        right=("13 * (10 + 10 + 200) / 100", "28.6"),
        wrong={"27.3": "seeds of the round", "15.6": "two numbers each", "286": "per participant", "13": "K P"},
    ),
    2: Exercise(
        "derive",
        3,
        "g = <grad, z> + mu/2 z^T H z; odd moments of z vanish; take H diagonal and use E z^4 = 3",
        variance,
        right=("lambda a2, h1, h2, mu: (2 * a2 + mu * mu * h2) / 2",),
        wrong={
            "lambda a2, h1, h2, mu: a2": "curvature adds noise",
            "lambda a2, h1, h2, mu: a2 + mu**2 / 4 * (h1**2 + 2 * h2)": "second moment",
            "lambda a2, h1, h2, mu: a2 + mu**2 / 4 * h2": "fourth moment",
            "lambda a2, h1, h2, mu: a2 + mu * h2": "square the mu",
            "lambda a2, h1, h2, mu: a2 + mu**2 / 2 * h1": "another polynomial",
        },
    ),
    3: Exercise(
        "compute",
        1,
        "section 2.5, with H = I",
        largest_step,
        right=("1 / 32", "0.03125"),
        wrong={"2 / 62": "2/d", "1 / 64": "Half", "2": "gradient descent's", "2 / 63": "d + 1"},
    ),
    4: Exercise(
        "implement",
        2,
        "the scalars say how far to go along each direction; how are P directions put together?",
        rebuilt,
        right=("lambda x, Z, g, eta: x - eta * (Z * g[:, None]).mean(0)",),
        wrong={
            "lambda x, Z, g, eta: x - eta * g @ Z": "the sum",
            "lambda x, Z, g, eta: x + eta * g @ Z / len(g)": "sign",
            "lambda x, Z, g, eta: x - g @ Z / len(g)": "eta is missing",
            "lambda x, Z, g, eta: x - eta * g[0] * Z[0]": "elsewhere",
            "lambda x, Z, g, eta: x[:, None] - eta * Z.T * g / len(g)": "d numbers",
        },
    ),
    5: Exercise(
        "break",
        2,
        "write down x_i^2, then what the replay adds, then x_{r+1}",
        kept,
        right=("lambda Z, own, mean, eta: [eta * (s * Z.T).mean(1) for s in (-own, mean - own)]",),
        wrong={
            "lambda Z, own, mean, eta: (eta / len(own) * (mean - own) @ Z, -eta / len(own) * own @ Z)": "swapped",
            "lambda Z, own, mean, eta: (eta / len(own) * own @ Z, eta / len(own) * (own - mean) @ Z)": "signs",
            "lambda Z, own, mean, eta: (-eta / len(own) * mean @ Z, eta / len(own) * (mean - own) @ Z)": "mean's step",
            "lambda Z, own, mean, eta: (-eta / len(own) * own @ Z, 0 * Z[0])": "Not zero",
            "lambda Z, own, mean, eta: -eta / len(own) * own @ Z": "Two vectors",
        },
    ),
    6: Exercise(
        "design",
        2,
        "write the error with e = (d+1)/P; which e makes S P least? then look at whole numbers near it",
        cheapest,
        right=("[15, 119]",),
        wrong={
            "(100, 51)": "no number of clients",
            "(6, 5000)": "no number of directions",
            "(12, 60)": "too much",
            "(20, 200)": "times the fewest",
            "8": "A pair",
        },
    ),
    7: Exercise(
        "explain",
        3,
        rubric={
            "All clients measure along the same z, so the mean of their scalars is the slope of the mean gradient": 1,
            "The estimate of the gradient then has the error of P random directions, (d+1)/P, whatever S is": 1,
            "What S divides is sampling noise and the difference of the clients; the rest only more directions buy": 1,
        },
        weak={
            "More clients always help, since the average of more numbers has less variance.": (
                "It takes the scalars for independent. They share z, and that part of their variance is common to all."
            ),
            "More clients do not help at all, as all use the same seeds.": (
                "It forgets that clients differ, and that each has a minibatch of its own: that noise falls with S."
            ),
        },
    ),
    8: Exercise(
        "derive",
        2,
        "u f/mu + mu^2 t/6: where is its derivative zero?",
        best_smoothing,
        right=("lambda u, f, t: 3 ** (1 / 3) * u ** (1 / 3) * f ** (1 / 3) / t ** (1 / 3)",),
        wrong={
            "lambda u, f, t: 2 * (u * f / t) ** 0.5": "forward difference's",
            "lambda u, f, t: (6 * u * f / t) ** (1 / 3)": "made equal",
            "lambda u, f, t: (3 * u * f / (2 * t)) ** (1 / 3)": "both losses are rounded",
            "lambda u, f, t: (u * f / t) ** (1 / 3)": "mu t/3",
            "lambda u, f, t: 3 * u * f / t": "third power",
        },
        tells=(r"3 ?\*? ?u ?\*? ?f",),
    ),
}
