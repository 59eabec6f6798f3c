"""Extreme instances, and exact expectations on them by enumeration.

An instance is data; what happens on it comes from the algorithm's own `client` and `server`. Exact expectations need no
second implementation, because those lines carry further axes along: give a client's private state as (N, R, .) with R
scenarios of gradient noise behind the client axis, and every iterate comes out as (N, R, .), one row per scenario;
uploads (N, C, .) with C joint scenarios of all clients make every server line (C, .).
"""

import functools
import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import torch

from fedtheory.core import checks, engine
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.message import Known
from fedtheory.core.problem import Constants, Problem
from fedtheory.maps.subspace import DenseBasis, Projection
from fedtheory.problems.quadratic import client_weights

T = TypeVar("T")
SHAPES = ("quadratic", "huber", "cosine", "spline")


# Losses


class Sample(NamedTuple):
    """Clients (S,) and what multiplies their noise vectors: (S, R, 1), one column per scenario; None where exact."""

    clients: torch.Tensor
    factor: torch.Tensor | None


class Smooth(Problem):
    """F_i(x) = sum_j h_ij phi((Q_i (x - b_i))_j) + a_i^T x: L-smooth losses with chosen curvature, L = max |h_ij|.

    phi is "quadratic" (u^2/2), "huber" (phi' = u cut off at +-1), "cosine" (1 - cos u, curvature of both signs) or
    "spline" (phi' piecewise linear, any slopes within +-1). The stochastic gradient adds a noise vector u_i times a
    factor of mean zero and variance one, so that its variance is exactly ||u_i||^2 (less where `gate` cuts it).

    Args:
        h: curvatures, (N, d), of any sign.
        b: centres, (N, d).
        shape: one of SHAPES.
        a: linear terms, (N, d); default none.
        q: orthogonal matrices, (N, d, d) or (d, d); default I.
        knots, slopes: of "spline", (M,) increasing and (M + 1,) within +-1: phi' has slope slopes[0] left of knots[0].
        noise: u, (N, d); None for exact gradients.
        gate: (N, d): the noise at y is multiplied by t = <gate_i, y - b_i> cut off at +-1, so that its size depends on
            y.
        soft: sign(t) (3 t^2 - 2 |t|^3) in the place of t, which is flat at 0 and +-1, and beside it what makes the
            noise a gradient, as that of a loss F_i(.; xi) is: across `gate` u_i is that of <u_i, y - b_i> times it. A
            gate in more than one dimension has no loss without.
        scenarios: what multiplies the noise at step k in scenario s, (R, K), with their `probability`, (R,); see
            `enumerated`. None: one random scenario per draw, +-1.
        layout: default one column of d rows.
    """

    def __init__(
        self,
        h: torch.Tensor,
        b: torch.Tensor,
        *,
        shape: str = "quadratic",
        a: torch.Tensor | None = None,
        q: torch.Tensor | None = None,
        knots: torch.Tensor | None = None,
        slopes: torch.Tensor | None = None,
        noise: torch.Tensor | None = None,
        gate: torch.Tensor | None = None,
        soft: bool = False,
        scenarios: torch.Tensor | None = None,
        probability: torch.Tensor | None = None,
        layout: Layout | None = None,
    ) -> None:
        checks.choice("shape", shape, SHAPES)
        self.n, d = h.shape
        self.h, self.b, self.shape, self.a, self.q = h, b, shape, a, q
        self.knots, self.slopes, self.noise, self.gate, self.soft = knots, slopes, noise, gate, soft
        self.scenarios, self.probability = scenarios, probability
        self.dtype, self.device = h.dtype, torch.device("cpu")
        self.layout = layout or Layout.single(d)
        self.weights = client_weights(None, self.n)

    @functools.cached_property
    def constants(self) -> Constants:  # pyright: ignore[reportIncompatibleVariableOverride]
        noise = self.noise
        sigma2 = 0.0 if noise is None else float((noise.detach() ** 2).sum(-1).max())
        return Constants(L=float(self.h.detach().abs().max()), sigma2=sigma2)

    def replace(self, **changes: Any) -> "Smooth":
        """The same problem with some arguments changed."""
        names = ("shape", "a", "q", "knots", "slopes", "noise", "gate", "soft", "scenarios", "probability", "layout")
        options = {name: getattr(self, name) for name in names}
        h, b = changes.pop("h", self.h), changes.pop("b", self.b)
        return Smooth(h, b, **(options | changes))

    def enumerated(self, steps: int, *, reuse: bool = False, atoms: Sequence[tuple[float, float]] | None = None):
        """The problem whose draws hold every scenario of one client's noise over `steps` local steps.

        Args:
            reuse: the same factor at every step of a round: the noise of one sample that a client keeps using. It
                satisfies SSF's Assumption 2 as printed (which asks for independence across clients only).
            atoms: (value, probability) of the factor at one step, mean zero and variance one; default +-1.
        """
        atoms = atoms or ((1.0, 0.5), (-1.0, 0.5))
        draws = [(atom,) * steps for atom in atoms] if reuse else list(itertools.product(atoms, repeat=steps))
        values = torch.tensor([[value for value, _ in draw] for draw in draws], dtype=self.dtype)
        odds = [[p for _, p in draw][: 1 if reuse else steps] for draw in draws]
        return self.replace(scenarios=values, probability=torch.tensor(odds, dtype=self.dtype).prod(-1))

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Sample]:
        if self.noise is None:
            return [self.full(clients)] * steps
        if self.scenarios is None:
            signs = 2 * torch.randint(2, (steps, self.n, 1), generator=key.generator()) - 1
            return [Sample(clients, sign.to(self.dtype)) for sign in signs[:, clients]]
        return [Sample(clients, self.scenarios[:, k, None].expand(len(clients), -1, -1)) for k in range(steps)]

    def full(self, clients: torch.Tensor) -> Sample:
        return Sample(clients, None)

    @functools.cached_property
    def clients(self) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.arange(self.n)

    def _of(self, value: torch.Tensor, clients: torch.Tensor) -> torch.Tensor:
        """What belongs to these clients. All of them need no copy, which costs more than what is done with it."""
        return value if clients is self.clients else value[clients]

    def _rows(self, value: torch.Tensor, clients: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """A client's row, (S, 1, ..., d), with as many axes as `like`."""
        rows = self._of(value, clients)
        return rows if like.dim() == 2 else rows.view(len(clients), *[1] * (like.dim() - 2), -1)

    def _coordinates(self, y: torch.Tensor, clients: torch.Tensor) -> torch.Tensor:
        gap = y - self._rows(self.b, clients, y)
        if self.q is None:
            return gap
        q = self._of(self.q.expand(self.n, -1, -1), clients)
        return torch.einsum("sjk,s...k->s...j", q, gap)

    def phi(self, u: torch.Tensor) -> torch.Tensor:
        """Entry by entry."""
        if self.shape == "quadratic":
            return u**2 / 2
        if self.shape == "huber":
            return torch.where(u.abs() <= 1, u**2 / 2, u.abs() - 0.5)
        if self.shape == "cosine":
            return 1 - torch.cos(u)
        assert self.knots is not None
        assert self.slopes is not None
        bends = (self.slopes[1:] - self.slopes[:-1]) / 2
        return self.slopes[0] * u**2 / 2 + ((u[..., None] - self.knots).clamp(min=0) ** 2 * bends).sum(-1)

    def slope(self, u: torch.Tensor) -> torch.Tensor:
        """phi', entry by entry."""
        if self.shape == "quadratic":
            return u
        if self.shape == "huber":
            return u.clamp(-1, 1)
        if self.shape == "cosine":
            return torch.sin(u)
        assert self.knots is not None
        assert self.slopes is not None
        bends = self.slopes[1:] - self.slopes[:-1]
        return self.slopes[0] * u + ((u[..., None] - self.knots).clamp(min=0) * bends).sum(-1)

    def at(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        """The noise that the gradient at y sees, (S, ..., d)."""
        if xi.factor is None or self.noise is None:
            return torch.zeros_like(y)
        noise = xi.factor * self._rows(self.noise, xi.clients, y)
        if self.gate is not None:
            gap, gate = y - self._rows(self.b, xi.clients, y), self._rows(self.gate, xi.clients, y)
            t = (gap * gate).sum(-1, keepdim=True).clamp(-1, 1)
            if self.soft:
                across = ((noise - self._along(noise, gate) * gate) * gap).sum(-1, keepdim=True)
                noise = noise * t * t.abs() * (3 - 2 * t.abs()) + across * 6 * (t.abs() - t**2) * gate
            else:
                noise = noise * t
        return noise.expand_as(y)

    def _along(self, noise: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        """How often `gate` the part of the noise along it is."""
        square = (gate**2).sum(-1, keepdim=True)
        return (noise * gate).sum(-1, keepdim=True) / square.clamp(min=1e-300)

    def _gated(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        """The loss whose gradient `at` is, with a soft gate, (S, ...)."""
        assert self.gate is not None
        assert self.noise is not None
        assert xi.factor is not None
        noise, gate = (self._rows(value, xi.clients, y) for value in (self.noise, self.gate))
        gap = y - self._rows(self.b, xi.clients, y)
        t = (gap * gate).sum(-1, keepdim=True)
        inner = t.clamp(-1, 1)
        step = inner * inner.abs() * (3 - 2 * inner.abs())
        area = inner.abs() ** 3 - inner**4 / 2 + (t.abs() - inner.abs())
        along = self._along(noise, gate)
        return (xi.factor * (((noise - along * gate) * gap).sum(-1, keepdim=True) * step + along * area)).squeeze(-1)

    def grads(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        exact = self._rows(self.h, xi.clients, y) * self.slope(self._coordinates(y, xi.clients))
        if self.q is not None:
            q = self._of(self.q.expand(self.n, -1, -1), xi.clients)
            exact = torch.einsum("sjk,s...j->s...k", q, exact)
        if self.a is not None:
            exact = exact + self._rows(self.a, xi.clients, y)
        return exact if xi.factor is None else exact + self.at(y, xi)

    def losses(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        values = self._rows(self.h, xi.clients, y) * self.phi(self._coordinates(y, xi.clients))
        if self.a is not None:
            values = values + self._rows(self.a, xi.clients, y) * y
        if xi.factor is None or self.noise is None:
            return values.sum(-1)
        if self.gate is None:
            values = values + self.at(y, xi) * y
        return values.sum(-1) + self._gated(y, xi) if self.soft else values.sum(-1)

    def values(self, x: torch.Tensor) -> torch.Tensor:
        """F_i at points shared by all clients: x (..., d) -> (N, ...)."""
        return self.losses(x.expand(self.n, *x.shape), self.full(self.clients))

    def gradients(self, x: torch.Tensor) -> torch.Tensor:
        """grad F_i at points shared by all clients: x (..., d) -> (N, ..., d)."""
        return self.grads(x.expand(self.n, *x.shape), self.full(self.clients))

    def rescaled(self, loss: float, variable: float) -> "Smooth":
        """The problem of a F(x / b): losses times a = `loss`, variables times b = `variable` (quadratics only)."""
        if self.shape != "quadratic" or self.gate is not None:
            checks.reject("shape", self.shape, "'quadratic' without gate", "only these rescale within their family")
        a, b = loss, variable
        times = lambda value, factor: None if value is None else value * factor
        return self.replace(h=self.h * (a / b**2), b=self.b * b, a=times(self.a, a / b), noise=times(self.noise, a / b))


def is_smooth(problem: Problem, L: float, key: Key, *, pairs: int = 64, radius: float = 3.0) -> float:
    """max ||grad F_i(x) - grad F_i(y)|| / (L ||x - y||) over random pairs: at most 1 for an L-smooth problem."""
    g = key.generator()
    x, y = (radius * torch.randn(pairs, problem.n, problem.d, generator=g, dtype=torch.float64) for _ in range(2))
    full = problem.full(problem.clients)
    norms = [
        torch.linalg.vector_norm(problem.grads(p, full) - problem.grads(q, full), dim=-1)
        / torch.linalg.vector_norm(p - q, dim=-1)
        for p, q in zip(x.to(problem.dtype), y.to(problem.dtype))
    ]
    return float(torch.stack(norms).max()) / L


# Projections


@dataclass(frozen=True)
class Fixed(Projection):
    """Always the same basis: for enumeration over bases one at a time. One matrix (m, r) per layer."""

    frames: tuple[torch.Tensor, ...] = ()

    def draw(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> DenseBasis:
        low = Layout(tuple(Layer(layer.name, f.shape[1], layer.cols) for layer, f in zip(layout.layers, self.frames)))
        return DenseBasis(layout, low, tuple(frame.to(dtype) for frame in self.frames))

    def seed(self, layout: Layout, key: Key, dtype: torch.dtype, device: torch.device | str = "cpu") -> Known[Basis]:
        return Known(self.draw(layout, key, dtype))


def fixed(frame: torch.Tensor | Sequence[torch.Tensor], scale: str = "orthonormal") -> Fixed:
    """The projection that always draws `frame`, (m, r), or one frame per layer."""
    frames = (frame,) if isinstance(frame, torch.Tensor) else tuple(frame)
    return Fixed(tuple(f.shape[1] for f in frames), scale, frames)


def coordinate_frames(
    m: int, r: int, *, scale: str = "orthonormal", rotation: torch.Tensor | None = None, dtype=torch.float64
) -> torch.Tensor:
    """All C(m, r) coordinate frames, (C, m, r), each with the same probability, turned by `rotation` (m, m).

    For every rotation their mean of P P^T is (r/m) I ("orthonormal") or I ("isotropic") and P^T P is 1 or m/r times I:
    a distribution that satisfies both papers' assumptions exactly and has finitely many values.
    """
    eye = torch.eye(m, dtype=dtype)
    frames = torch.stack([eye[:, list(rows)] for rows in itertools.combinations(range(m), r)])
    if scale == "isotropic":
        frames = frames * (m / r) ** 0.5
    return frames if rotation is None else rotation @ frames


def plane_frames(count: int, *, dtype=torch.float64) -> torch.Tensor:
    """Lines in the plane at `count` equal angles, (count, 2, 1): Haar means of polynomials of degree < count in P P^T.

    The projector is a trigonometric polynomial of the double angle, so equal angles integrate exactly.
    """
    angles = torch.arange(count, dtype=dtype) * (torch.pi / count)
    return torch.stack([angles.cos(), angles.sin()], dim=-1)[..., None]


def rotation(angle: torch.Tensor | float) -> torch.Tensor:
    """The rotation of the plane, (2, 2), differentiable in the angle."""
    angle = torch.as_tensor(angle, dtype=torch.float64)
    return torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])


def orthogonal(skew: torch.Tensor, m: int) -> torch.Tensor:
    """A rotation of R^m from m(m-1)/2 free numbers: exp of a skew matrix."""
    matrix = skew.new_zeros(m, m)
    rows, cols = torch.triu_indices(m, m, 1)
    matrix = matrix.index_put((rows, cols), skew)
    return torch.linalg.matrix_exp(matrix - matrix.mT)


def haar_second_moment(A: torch.Tensor, r: int) -> torch.Tensor:
    """E[Pi A Pi] for the projector Pi on a Haar r-dimensional subspace of R^m; A (m, m) symmetric.

    alpha A + beta tr(A) I with alpha = r (m r + m - 2) / (m (m-1) (m+2)), beta = r (m - r) / (m (m-1) (m+2)).
    """
    m = A.shape[-1]
    if m == 1:
        return A.clone()
    scale = m * (m - 1) * (m + 2)
    alpha, beta = r * (m * r + m - 2) / scale, r * (m - r) / scale
    return alpha * A + beta * torch.einsum("...ii->...", A)[..., None, None] * torch.eye(m, dtype=A.dtype)


# Exact expectations over noise and clients


@dataclass
class Locals:
    """One call of an algorithm's `client` over all noise scenarios.

    Fields:
        iterates: what `client` yielded, K tensors (S, R, .).
        up, own: what it returned, leaves (S, R, .).
        probability: of the scenarios, (R,).
    """

    iterates: list[torch.Tensor]
    up: Any
    own: Any
    probability: torch.Tensor

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Expectation over the scenarios, which are axis 1: (S, R, ...) -> (S, ...)."""
        return torch.tensordot(self.probability, values.movedim(1, 0), dims=1)


def drain(local: Generator[torch.Tensor, None, T]) -> tuple[list[torch.Tensor], T]:
    """All that a `client` generator yields, and what it returns."""
    iterates = []
    while True:
        try:
            iterates.append(next(local))
        except StopIteration as stop:
            return iterates, stop.value


def run_locals(algorithm: Algorithm, problem: Smooth, own: Any, down: Any, clients: torch.Tensor | None = None):
    """The local steps of the given clients (default all) in every noise scenario; `own` has leaves (S, .)."""
    clients = problem.clients if clients is None else clients
    probability = torch.ones(1, dtype=problem.dtype)
    if problem.noise is not None:
        if problem.probability is None:
            checks.reject("problem.scenarios", None, "enumerated noise", "call problem.enumerated(steps) first")
        probability = problem.probability
    wide = engine.map_leaves(lambda leaf: leaf[:, None].expand(-1, len(probability), *leaf.shape[1:]), own)
    iterates, (up, new) = drain(algorithm.client(problem, clients, wide, down, Key(0)))
    return Locals(iterates, up, new, probability)


@dataclass(frozen=True)
class Joint:
    """All combinations of the clients' scenarios: which one each client has, (S, C), and the probability, (C,)."""

    index: torch.Tensor
    probability: torch.Tensor

    def pick(self, values: torch.Tensor) -> torch.Tensor:
        """(S, R, ...) -> (S, C, ...)."""
        return values[torch.arange(len(self.index))[:, None], self.index]

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Expectation over axis 0, (C, ...) -> (...)."""
        return torch.tensordot(self.probability, values, dims=1)


def joint(probability: torch.Tensor, clients: int) -> Joint:
    """Independent clients: every combination of their scenarios."""
    index = torch.cartesian_prod(*[torch.arange(len(probability))] * clients).view(-1, clients).T
    return Joint(index, probability[index].prod(0))


def subsets(n: int, size: int) -> list[torch.Tensor]:
    """All sets of `size` clients, each as likely as the others."""
    return [torch.tensor(rows) for rows in itertools.combinations(range(n), size)]


def pick_leaves(tree: T, pick: Callable[[torch.Tensor], torch.Tensor]) -> T:
    """A message with `pick` applied to every tensor."""
    return engine.map_leaves(pick, tree)


# Numbers as data


def exact(value: Any) -> Any:
    """Numbers as exact rationals "p/q" (nested lists for tensors), so that a stored instance loses nothing."""
    if isinstance(value, torch.Tensor):
        value = value.detach().tolist()
    if isinstance(value, (list, tuple)):
        return [exact(entry) for entry in value]
    return str(Fraction(float(value)))


def parse(value: Any) -> Any:
    """The inverse of `exact`: strings to floats, nested lists to tensors (float64)."""
    if isinstance(value, str):
        return float(Fraction(value))
    if isinstance(value, list):
        return torch.tensor(_floats(value), dtype=torch.float64)
    return value


def _floats(value: Any) -> Any:
    return [_floats(entry) for entry in value] if isinstance(value, list) else float(Fraction(value))


def plain(instance: Any) -> dict[str, Any]:
    """A dataclass of tensors and numbers as data."""
    return {
        f.name: exact(v) if isinstance(v := getattr(instance, f.name), (float, torch.Tensor)) else v
        for f in fields(instance)
    }
