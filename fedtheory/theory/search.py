"""How a statement is attacked: adversarial search, rescaling of units, and implications over whole admissible sets."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key

ROUNDING = 1e-9  # an inequality counts as broken where left/right exceeds 1 by more than this


def ratio(left: Any, right: Any, floor: float = 1e-12) -> float:
    """left/right; 0 where both vanish (up to `floor`), inf where only the right does."""
    left, right = float(left), float(right)
    if abs(right) > floor:
        return left / right if right > 0 else (0.0 if left <= right else math.inf)
    return 0.0 if left <= floor else math.inf


def worst(*lines: tuple[torch.Tensor, torch.Tensor], floor: float = 1e-12) -> tuple[torch.Tensor, torch.Tensor]:
    """The entry with the largest left/right of many inequalities with right sides that are not negative."""
    left = torch.cat([a.flatten() for a, _ in lines])
    right = torch.cat([b.flatten() for _, b in lines])
    at = (left / right.clamp(min=floor)).detach().argmax(0, keepdim=True)
    return left.gather(0, at)[0], right.gather(0, at)[0]


@dataclass
class Found:
    """The worst point of a search.

    Fields:
        ratio: the largest left/right found.
        point: the free numbers where it was found.
        edge: the discrete setting where it was found.
        tried: how many points were evaluated.
    """

    ratio: float
    point: torch.Tensor
    edge: Any
    tried: int = 0

    @property
    def holds(self) -> bool:
        """Whether no point broke the inequality."""
        return self.ratio <= 1 + ROUNDING


_seed = ContextVar("seed", default=0)


@contextmanager
def reseeded(seed: int) -> Iterator[None]:
    """Within it every `maximise` starts from other random points; 0 are the ledger's own."""
    token = _seed.set(checks.whole("seed", seed, 0))
    try:
        yield
    finally:
        _seed.reset(token)


class Adam:
    """PyTorch's Adam with its defaults, the same bits: its own imports a compiler first, which takes 1.5 seconds.

    Args:
        z: what is stepped, in its place, along its `grad`.
        rate: > 0.
    """

    def __init__(self, z: torch.Tensor, rate: float) -> None:
        self.z, self.rate, self.count = z, rate, 0
        self.mean, self.square = torch.zeros_like(z), torch.zeros_like(z)

    @torch.no_grad()
    def step(self) -> None:
        """z <- z - rate m / (sqrt(v) + 1e-8), both moments divided by what they lack at the start."""
        g = self.z.grad
        assert g is not None
        self.count += 1
        self.mean.lerp_(g, 1 - 0.9)
        self.square.mul_(0.999).addcmul_(g, g, value=1 - 0.999)
        spread = (self.square.sqrt() / (1 - 0.999**self.count) ** 0.5).add_(1e-8)
        self.z.addcdiv_(self.mean, spread, value=-self.rate / (1 - 0.9**self.count))


Sides = Callable[[torch.Tensor, Any], tuple[torch.Tensor, ...]]


def maximise(
    sides: Sides,
    size: int | Callable[[Any], int],
    key: Key,
    *,
    edges: Iterable[Any] = (None,),
    restarts: int = 4,
    steps: int = 25,
    rate: float = 0.1,
    spread: float = 1.0,
    starts: Sequence[torch.Tensor] = (),
    enough: float = math.inf,
) -> Found:
    """Maximise left/right over free numbers z in R^size and over discrete edges.

    From random starts, gradient ascent on log(left/right) through the code that computes both sides (Adam), then
    random steps of shrinking length around the best point (they need no gradient and cross kinks).

    Args:
        sides: (z, edge) -> (left, right), differentiable in z; every z must map to an admissible instance. Where left
            may be negative, a third value to add to both for the ascent's logarithms: left > right is unchanged.
        size: how many free numbers, or a function of the edge.
        edges: settings tried in turn, such as step sizes at their bounds, K = 1, r = d.
        restarts, steps: per edge.
        rate: of Adam.
        spread: standard deviation of the starts.
        starts: further starts, tried first, at every edge they fit.
        enough: stop as soon as this ratio is reached.
    """

    def climb(edge: Any, g: torch.Generator) -> Found:
        count, tried = size(edge) if callable(size) else size, 0
        random = [spread * torch.randn(count, generator=g, dtype=torch.float64) for _ in range(restarts)]
        top = Found(-math.inf, torch.zeros(count, dtype=torch.float64), edge)
        for start in [s for s in starts if len(s) == count] + random:
            z = start.clone().requires_grad_()
            optimiser = Adam(z, rate)
            for step in range(1, steps + 1):
                left, right, *shift = sides(z, edge)
                tried += 1
                value = ratio(left.detach(), right.detach())
                up, low = (left + shift[0], right + shift[0]) if shift else (left, right)
                if value > top.ratio:
                    top = Found(value, z.detach().clone(), edge)
                climbs = math.isfinite(value) and float(up.detach()) > 0 and float(low.detach()) > 0
                if step == steps or not (climbs and up.requires_grad):
                    break
                z.grad = None
                (low.log() - up.log()).backward()
                if z.grad is None or not bool(torch.isfinite(z.grad).all()):
                    break
                optimiser.step()
        width = 0.3
        with torch.no_grad():
            for _ in range(restarts * steps // 2 if count else 0):
                z = top.point + width * torch.randn(count, generator=g, dtype=torch.float64)
                left, right = sides(z, edge)[:2]
                tried += 1
                value = ratio(left, right)
                if value > top.ratio:
                    top = Found(value, z.clone(), edge)
                else:
                    width = max(0.93 * width, 1e-3)
        return replace(top, tried=tried)

    return _worst_edge(climb, edges, key, enough)


def maximise_together(
    sides: Sides,
    size: Callable[[Any], int],
    key: Key,
    *,
    edges: Iterable[Any],
    restarts: int,
    steps: int,
    rate: float = 0.1,
    starts: Sequence[torch.Tensor] = (),
    batch: int = 32,
    enough: float = math.inf,
) -> Found:
    """As `maximise`, with all the restarts of an edge in one call, and the random steps in batches.

    On tensors of a few numbers nearly all the time is overhead, which a batch pays once. The starts are those of
    `maximise`; the random steps are `batch` at a time, of lengths between 0.3 and 0.001, and there are more of them.

    Args:
        sides: as for `maximise`, of one point; `torch.func.vmap` must be able to batch it.
        starts: further starts, before the random ones, at every edge they fit.
    """
    widths = torch.logspace(math.log10(0.3), -3, batch, dtype=torch.float64)[:, None]

    def climb(edge: Any, g: torch.Generator) -> Found:
        count = size(edge)
        many = torch.func.vmap(lambda z: sides(z, edge))
        top = Found(-math.inf, torch.zeros(count, dtype=torch.float64), edge)

        def keep(Z: torch.Tensor, sides: Sequence[torch.Tensor]) -> list[float]:
            values = [ratio(a, b) for a, b in zip(sides[0].tolist(), sides[1].tolist())]
            at = max(range(len(values)), key=lambda i: -math.inf if math.isnan(values[i]) else values[i])
            if values[at] > top.ratio:
                top.ratio, top.point = values[at], Z[at].detach().clone()
            return values

        random = [torch.randn(count, generator=g, dtype=torch.float64) for _ in range(restarts)]
        Z = torch.stack([start for start in starts if len(start) == count] + random).requires_grad_()
        optimiser, alive = Adam(Z, rate), torch.ones(len(Z), dtype=torch.bool)
        for step in range(1, steps + 1):
            left, right, *shift = many(Z)
            top.tried += int(alive.sum())
            values = keep(Z, (left.detach(), right.detach()))
            up, low = (left + shift[0], right + shift[0]) if shift else (left, right)
            alive = alive & torch.tensor([math.isfinite(v) for v in values]) & (up.detach() > 0) & (low.detach() > 0)
            if step == steps or not (alive.any() and up.requires_grad):
                break
            Z.grad = None
            torch.where(alive, low.log() - up.log(), 0.0).sum().backward()
            if Z.grad is None:
                break
            alive = alive & Z.grad.isfinite().all(-1)
            Z.grad.masked_fill_(~alive[:, None], 0.0)
            optimiser.step()
        with torch.no_grad():
            for _ in range(math.ceil(2 * restarts * steps / batch) if count else 0):
                Z = top.point + widths * torch.randn(batch, count, generator=g, dtype=torch.float64)
                keep(Z, many(Z))
                top.tried += batch
        return top

    return _worst_edge(climb, edges, key, enough)


def attack(sides: Sides, edges: Iterable[Any], key: Key, effort: str, **options: Any) -> Found:
    """`maximise_together` over edges that know their `size`, as long as the effort allows; `options` are its own."""
    amount: dict[str, Any] = {"restarts": 2, "steps": 6} if effort == "quick" else {"restarts": 8, "steps": 30}
    return maximise_together(sides, lambda edge: edge.size, key, edges=edges, **(amount | options))


def _worst_edge(climb: Callable[[Any, torch.Generator], Found], edges: Iterable[Any], key: Key, enough: float) -> Found:
    """The largest of the searches at each edge, with their points counted together."""
    key = key.fold("seed", _seed.get()) if _seed.get() else key
    best, tried = Found(-math.inf, torch.zeros(0), None), 0
    for number, edge in enumerate(edges):
        top = climb(edge, key.fold(number).generator())
        tried += top.tried
        if top.ratio > best.ratio:
            best = top
        if best.ratio >= enough:
            break
    return replace(best, tried=tried)


def units(
    terms: Callable[[float, float], Sequence[float]], *, loss: float = 3.0, variable: float = 0.5, rtol: float = 1e-9
) -> tuple[bool, list[float]]:
    """Whether all terms of a statement scale alike when losses are multiplied by a and variables by b.

    Args:
        terms: (a, b) -> every term of both sides on the rescaled instance (left side first).
        loss, variable: a and b.

    Returns:
        Whether all factors agree, and the factors by which the (non-zero) terms changed.
    """
    before, after = terms(1.0, 1.0), terms(loss, variable)
    factors = [float(new) / float(old) for old, new in zip(before, after, strict=True) if abs(float(old)) > 1e-14]
    return all(math.isclose(f, factors[0], rel_tol=rtol) for f in factors), factors


# Implications over whole admissible sets


@dataclass
class Implied:
    """Whether premises imply a conclusion. `model`: where not, exact rationals at which it breaks."""

    holds: bool
    model: dict[str, str] | None
    detail: str


def implies(premises: Sequence[Any], conclusion: Any, *, timeout_ms: int = 5000) -> Implied:
    """Decide with z3 over the reals whether the premises imply the conclusion; keep the model where they do not.

    Raises TimeoutError where z3 does not decide: an undecided implication is no result.
    """
    import z3

    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(*premises, z3.Not(conclusion))
    answer = solver.check()
    if answer == z3.unsat:
        return Implied(True, None, "no point of the admissible set breaks it (z3)")
    if answer == z3.unknown:
        raise TimeoutError(f"z3 did not decide {conclusion} within {timeout_ms} ms: {solver.reason_unknown()}")
    model = solver.model()
    values = {str(name): _rational(model[name]) for name in sorted(model.decls(), key=str) if name.arity() == 0}
    return Implied(False, values, "z3 found " + ", ".join(f"{name} = {value}" for name, value in values.items()))


def _rational(value: Any) -> str:
    """A z3 number as "p/q", an algebraic one as a rational near it (checked by whoever stores it)."""
    import z3

    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return (
        str(Fraction(value.numerator_as_long(), value.denominator_as_long()))
        if z3.is_rational_value(value)
        else str(value)
    )


def z3_module() -> Any:
    """z3, whose overloaded operators no type checker follows."""
    import z3

    return z3


def reals(names: str) -> list[Any]:
    """Real variables of z3."""
    import z3

    return z3.Reals(names)


def number(text: str) -> Any:
    """The rational "p/q" as z3 sees it."""
    import z3

    return z3.RealVal(text)


def same(left: Any, right: Any) -> bool:
    """Whether two sympy expressions are identical."""
    return vanishes(left - right)


def vanishes(expression: Any) -> bool:
    """Whether an expression of sympy is 0: a rational function by its numerator, anything else by `simplify`."""
    import sympy

    expression = sympy.sympify(expression)
    if _is_rational_function(expression):
        numerator = sympy.expand(sympy.fraction(sympy.together(expression))[0])
        if numerator == 0 or numerator.is_polynomial():
            return bool(numerator == 0)
    return bool(sympy.simplify(sympy.expand(expression)) == 0)


def _is_rational_function(one: Any) -> bool:
    """Whether only rational numbers and symbols occur, in sums, products and whole powers."""
    if one.is_Add or one.is_Mul:
        return all(map(_is_rational_function, one.args))
    return one.is_Symbol or one.is_Rational or (one.is_Pow and one.exp.is_Integer and _is_rational_function(one.base))
