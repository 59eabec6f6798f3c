"""An instance of SSF, one round on it through the algorithm's own lines, and the small instances that break claims."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms.ssf import SSF, Down, Own, Server
from fedtheory.core.key import Key
from fedtheory.theory.bench import require
from fedtheory.theory.instances import (
    Joint,
    Smooth,
    coordinate_frames,
    exact,
    fixed,
    is_smooth,
    joint,
    parse,
    pick_leaves,
    run_locals,
)

ROOT = Key(2604)


@dataclass(frozen=True)
class Instance:
    """A state of SSF and what its next round is drawn from.

    Fields:
        problem: losses and noise; L is 1 unless `L` says otherwise.
        x: (d,); ci: (N, d); c: (d,), any controls.
        frames: the values of P_t^T, each with the same probability, (M, d, r).
        lr, K, server_lr: eta_l, K, eta_g.
        L: the smoothness constant that the statement is checked with.
        reuse: every client keeps one noise sample for all its K steps.
    """

    problem: Smooth
    x: torch.Tensor
    ci: torch.Tensor
    c: torch.Tensor
    frames: torch.Tensor
    lr: float
    K: int
    server_lr: float = 1.0
    L: float = 1.0
    reuse: bool = False

    @property
    def N(self) -> int:
        return self.problem.n

    @property
    def rho(self) -> float:
        return self.frames.shape[2] / self.frames.shape[1]

    @property
    def eta(self) -> float:
        """The effective step size, eta_g eta_l K."""
        return self.server_lr * self.lr * self.K

    @property
    def sigma2(self) -> torch.Tensor:
        """The smallest sigma^2 that Assumption 2 allows: max_i sup_x of the noise variance."""
        noise = self.problem.noise
        return torch.zeros((), dtype=torch.float64) if noise is None else (noise**2).sum(-1).max()

    def algorithm(self, frame: torch.Tensor) -> SSF:
        return SSF(self.lr, self.K, fixed(frame), server_lr=self.server_lr)


@dataclass(frozen=True)
class Round:
    """All that the statements speak of, over M projectors, R noise scenarios per client, C joint scenarios.

    Fields:
        P: projectors, (M, d, d).
        odds: probability of a client's scenarios, (R,); joint: of all clients' together.
        delta: y_proj^{t,k} - x_proj^t, (M, N, R, K + 1, r).
        grad: grad F_i(y_i^{t,k}), (M, N, R, K, d); xi: the noises, the same shape.
        served: the server's next states, one per projector.
        ci: c_i^{t+1}, (M, N, R, d).
        start: grad F_i(x^t), (N, d).
    """

    at: Instance
    P: torch.Tensor
    odds: torch.Tensor
    joint: Joint
    delta: torch.Tensor
    grad: torch.Tensor
    xi: torch.Tensor
    served: Callable[[], list[Server]]
    ci: torch.Tensor
    start: torch.Tensor

    @functools.cached_property
    def servers(self) -> list[Server]:
        return self.served()

    @functools.cached_property
    def x(self) -> torch.Tensor:
        """x^{t+1}, (M, C, d)."""
        return torch.stack([server.x for server in self.servers])

    @functools.cached_property
    def c(self) -> torch.Tensor:
        """c^{t+1}, (M, C, d)."""
        return torch.stack([server.c for server in self.servers])

    def each(self, values: torch.Tensor) -> torch.Tensor:
        """Expectation of a client's quantity: (M, N, R, ...) -> (N, ...)."""
        return torch.tensordot(self.odds, values.mean(0).movedim(1, 0), dims=1)

    def every(self, values: torch.Tensor) -> torch.Tensor:
        """Expectation of a joint quantity: (M, C, ...) -> (...)."""
        return torch.tensordot(self.joint.probability, values.mean(0), dims=1)

    def pick(self, values: torch.Tensor) -> torch.Tensor:
        """A client's quantity in all joint scenarios: (M, N, R, ...) -> (M, N, C, ...)."""
        return torch.stack([self.joint.pick(part) for part in values])

    def down(self, values: torch.Tensor) -> torch.Tensor:
        """The projector on (M, ..., d)."""
        return torch.einsum("mjk,m...k->m...j", self.P, values)

    @functools.cached_property
    def G(self) -> torch.Tensor:
        """grad F(x^t)."""
        return self.start.mean(0)

    @functools.cached_property
    def G2(self) -> torch.Tensor:
        return (self.G**2).sum()

    @functools.cached_property
    def drifts(self) -> torch.Tensor:
        """E_{i,t}, (N,)."""
        return self.each((self.delta[..., :-1, :] ** 2).sum((-1, -2)))

    @functools.cached_property
    def drift(self) -> torch.Tensor:
        """E_drift^t."""
        return self.drifts.mean() / self.at.K

    @functools.cached_property
    def corrected(self) -> torch.Tensor:
        """G_{i,t} = ||grad F_i(x^t) - c_i^t + c^t||^2, (N,)."""
        return ((self.start - self.at.ci + self.at.c) ** 2).sum(-1)

    @functools.cached_property
    def g_bar(self) -> torch.Tensor:
        """(M, C, d)."""
        return self.pick(self.grad.mean(-2)).mean(1)

    @functools.cached_property
    def xi_bar(self) -> torch.Tensor:
        """(M, C, d)."""
        return self.pick(self.xi.mean(-2)).mean(1)

    @functools.cached_property
    def C0(self) -> torch.Tensor:
        return ((self.at.ci - self.start) ** 2).sum(-1).mean()

    @functools.cached_property
    def C1(self) -> torch.Tensor:
        """C_{t+1}: c_i^{t+1} against grad F_i(x^{t+1}) in every joint scenario."""
        target = self.at.problem.gradients(self.x)  # (N, M, C, d)
        gap = self.pick(self.ci).movedim(1, 0) - target
        return self.every((gap**2).sum(-1).mean(0))

    @functools.cached_property
    def A(self) -> torch.Tensor:
        """(I - P_t)(c_i^t - v_i*), (M, N, d)."""
        gap = (self.at.ci - self.start).expand(len(self.P), -1, -1)
        return gap - self.down(gap)

    @functools.cached_property
    def B(self) -> torch.Tensor:
        """P_t (g_bar_i - v_i*), (M, N, R, d)."""
        return self.down((self.grad + self.xi).mean(-2) - self.start[:, None])

    def F(self, x: torch.Tensor) -> torch.Tensor:
        return self.at.problem.values(x).mean(0)

    @functools.cached_property
    def gain(self) -> torch.Tensor:
        """E F(x^{t+1}) - F(x^t)."""
        return self.every(self.F(self.x)) - self.F(self.at.x)

    @functools.cached_property
    def T1(self) -> torch.Tensor:
        return -self.at.eta * self.every((self.down(self.g_bar + self.xi_bar) * self.G).sum(-1))

    @functools.cached_property
    def T2(self) -> torch.Tensor:
        return self.at.L * self.at.eta**2 / 2 * self.every((self.down(self.g_bar + self.xi_bar) ** 2).sum(-1))

    @functools.cached_property
    def moved(self) -> torch.Tensor:
        """E ||x^{t+1} - x^t||^2."""
        return self.every(((self.x - self.at.x) ** 2).sum(-1))


def play(at: Instance) -> Round:
    """One round through SSF's own lines, for every projector, noise scenario and combination of clients."""
    problem = at.problem
    if problem.noise is not None and problem.scenarios is None:
        problem = problem.enumerated(at.K, reuse=at.reuse)
    deltas, grads, noises, cis, projectors, turns = [], [], [], [], [], []
    both, odds = None, torch.ones(1, dtype=torch.float64)
    for frame in at.frames:
        algorithm = at.algorithm(frame)
        state = algorithm.init(problem, at.x, ROOT)
        server: Server = replace(state.server, c=at.c)
        down: Down = algorithm.broadcast(server, ROOT)
        local = run_locals(algorithm, problem, Own(at.ci), down)
        P, odds = down.P.value, local.probability
        if both is None:
            both = joint(odds, problem.n)
        start = P.project(at.x)
        path = torch.stack([start.expand_as(local.iterates[0]), *local.iterates], dim=-2)
        y = P.lift(path[..., :-1, :]) + (at.x - P.lift(start))  # (N, R, K, d)
        samples = problem.draw(problem.clients, at.K, ROOT)
        grads.append(problem.grads(y.flatten(1, 2), problem.full(problem.clients)).view_as(y))
        noises.append(torch.stack([problem.at(y[:, :, k], samples[k]) for k in range(at.K)], dim=-2))
        turns.append((algorithm, server, down, local.up))
        deltas.append(path - start)
        cis.append(local.own.c)
        projectors.append(frame @ frame.T)
    assert both is not None
    pick = both.pick

    def served() -> list[Server]:
        return [
            algorithm.server(server, down, pick_leaves(up, pick), problem.clients, ROOT)[0]
            for algorithm, server, down, up in turns
        ]

    return Round(
        at, torch.stack(projectors), odds, both, torch.stack(deltas), torch.stack(grads), torch.stack(noises),
        served, torch.stack(cis), problem.gradients(at.x),
    )  # fmt: skip


def projected_directions(q: Round) -> torch.Tensor:
    """P d_i^{t,j} as vectors of R^d, (M, N, R, K, d)."""
    return q.down(q.grad + (q.at.c - q.at.ci)[:, None, None])


def partial(q: Round, values: torch.Tensor) -> torch.Tensor:
    """E ||sum_{j=0}^{k} values_j||^2 for k = 0, ..., K - 1: (N, K)."""
    return q.each((torch.cumsum(values, -2) ** 2).sum(-1))


def steps(q: Round) -> torch.Tensor:
    """m = k + 1 for k = 0, ..., K - 1."""
    return torch.arange(1, q.at.K + 1, dtype=torch.float64)


def moments(q: Round) -> torch.Tensor:
    """e_k = E ||Delta_i^{t,k}||^2, (N, K + 1)."""
    return q.each((q.delta**2).sum(-1))


def client_parts(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """xi_bar_i and delta_bar_i, (M, N, R, d)."""
    return q.xi.mean(-2), (q.grad - q.start[:, None, None]).mean(-2)


# Which assumptions an instance satisfies, and an instance as data


def slacks(at: Instance) -> dict[str, float]:
    """Every assumption with its slack; negative (beyond rounding) means broken.

    "mean" is -||c - mean c_i||; "fresh" is minus the largest conditional mean of a step's noise given the earlier ones.
    """
    problem, r = at.problem, at.frames.shape[2]
    eye = torch.eye(at.frames.shape[1], dtype=torch.float64)
    gram = at.frames.mT @ at.frames - torch.eye(r, dtype=torch.float64)
    mean = (at.frames @ at.frames.mT).mean(0) - at.rho * eye
    result = {
        "A1: L-smooth": at.L - float(problem.h.abs().max()) * _steepest(problem),
        "A1: L-smooth, sampled pairs": at.L * (1 - is_smooth(problem, at.L, ROOT.fold("pairs"))),
        "A3: P P^T = I": -float(gram.abs().max()),
        "A3: E[P^T P] = rho I": -float(mean.abs().max()),
        "eta_l <= 1/(2KL)": 1 / (2 * at.K * at.L) - at.lr,
        "eta <= 1/(4L)": 1 / (4 * at.L) - at.eta,
        "mean": -float(torch.linalg.vector_norm(at.c - at.ci.mean(0))),
    }
    if problem.noise is not None:
        noisy = problem if problem.scenarios is not None else problem.enumerated(at.K, reuse=at.reuse)
        assert noisy.scenarios is not None
        assert noisy.probability is not None
        result["A2: mean zero at every step"] = -float((noisy.probability @ noisy.scenarios).abs().max())
        result["A2: variance"] = float(at.sigma2 - (at.sigma2 * (noisy.probability @ noisy.scenarios**2)).max())
        result["fresh"] = -_memory(noisy.scenarios, noisy.probability)
    return result


def _steepest(problem: Smooth) -> float:
    return 1.0 if problem.slopes is None else float(problem.slopes.abs().max())


def _memory(scenarios: torch.Tensor, probability: torch.Tensor) -> float:
    """Largest |E[factor at step k | factors before]|."""
    worst = 0.0
    for k in range(scenarios.shape[1]):
        for past in scenarios[:, :k]:
            rows = (scenarios[:, :k] == past).all(-1)
            worst = max(worst, abs(float(probability[rows] @ scenarios[rows, k] / probability[rows].sum())))
    return worst


NEEDED = ("A1: L-smooth", "A1: L-smooth, sampled pairs", "A3: P P^T = I", "A3: E[P^T P] = rho I",
          "A2: mean zero at every step", "A2: variance")  # fmt: skip


def admissible(at: Instance, extra: Sequence[str] = ()) -> dict[str, float]:
    """The slacks; raises AssertionError where Assumptions 1-3 (and `extra`) are not met."""
    found = slacks(at)
    require(found, (name for name in (*NEEDED, *extra) if name in found))
    return found


ARRAYS = ("h", "b", "a", "knots", "slopes", "noise", "gate", "q")


def dump(at: Instance) -> dict[str, Any]:
    """An instance as data: exact rationals."""
    problem = {name: exact(v) for name in ARRAYS if (v := getattr(at.problem, name)) is not None}
    numbers = {name: exact(getattr(at, name)) for name in ("x", "ci", "c", "frames", "lr", "server_lr", "L")}
    return {"shape": at.problem.shape, **problem, **numbers, "K": at.K, "reuse": at.reuse}


def load(data: dict[str, Any]) -> Instance:
    """The inverse of `dump`."""
    problem = Smooth(
        parse(data["h"]), parse(data["b"]), shape=data["shape"], **{n: parse(data[n]) for n in ARRAYS[2:] if n in data}
    )
    numbers = {name: parse(data[name]) for name in ("x", "ci", "c", "frames", "lr", "server_lr", "L")}
    return Instance(problem, **numbers, K=data["K"], reuse=data["reuse"])


# Units


def rescaled(at: Instance, loss: float, variable: float) -> Instance:
    """The same instance with losses multiplied by a = `loss` and variables by b = `variable`."""
    a, b = loss, variable
    return replace(
        at, problem=at.problem.rescaled(a, b), x=at.x * b, ci=at.ci * (a / b), c=at.c * (a / b), lr=at.lr * b**2 / a,
        L=at.L * a / b**2,
    )  # fmt: skip


# Small instances on which something breaks


def tiny(
    h: float = 0.0, *, K: int = 1, lr: float = 0.25, server_lr: float = 1.0, x: float = 0.0, ci: float = 0.0,
    c: float = 0.0, u: float = 0.0, a: float = 0.0, gate: float = 0.0, L: float = 1.0, reuse: bool = False,
) -> Instance:  # fmt: skip
    """One client in one dimension: F(x) = h x^2 / 2 + a x, noise +- u (times x where gated)."""
    row = lambda value: torch.tensor([[value]], dtype=torch.float64)
    problem = Smooth(
        row(h), row(0.0), a=row(a) if a else None, noise=row(u) if u else None, gate=row(gate) if gate else None
    )
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    point = lambda value: torch.tensor([value], dtype=torch.float64)
    return Instance(problem, point(x), row(ci), point(c), one, lr, K, server_lr, L, reuse)


def offset(K: int = 1) -> Instance:
    """N = 1, at the minimiser, c_1 = grad F_1 = 0, no noise, but c = 1: Algorithm 1 allows any controls."""
    return tiny(1.0, K=K, lr=1 / (2 * K), server_lr=0.5, c=1.0)


def kept(K: int, h: float = 0.0, **options: Any) -> Instance:
    """N = 1, one noise sample +-1 kept for all K steps."""
    return tiny(h, K=K, u=1.0, reuse=True, **options)


def stale() -> Instance:
    """One sample kept for K = 2 steps, noise s x of state-dependent size: the second noise has a mean."""
    return tiny(1.0, K=2, lr=0.25, x=0.5, u=1.0, gate=1.0, ci=0.5, c=0.5, reuse=True)


def slow() -> Instance:
    """As `stale`, with F = x/16: the mean of the second noise outweighs the gradient."""
    return tiny(0.0, K=2, lr=0.25, x=0.5, u=1.0, gate=1.0, a=1 / 16, L=1 / 16, reuse=True)


def biased() -> Instance:
    """Noise with a mean."""
    at = tiny(1.0, K=2, x=1.0, u=1.0)
    one = torch.ones(1, 2, dtype=torch.float64)
    return replace(at, problem=at.problem.replace(scenarios=one, probability=torch.ones(1, dtype=torch.float64)))


def carried() -> Instance:
    """d = 2, r = 1, F = 0, no noise, c_1 = c = e_1: nothing moves, and the control's error is carried over."""
    zero = torch.zeros(1, 2, dtype=torch.float64)
    c = torch.eye(2, dtype=torch.float64)[0]
    return Instance(Smooth(zero, zero), zero[0], c[None], c, coordinate_frames(2, 1), 0.25, 1)


def quiet() -> Instance:
    """N = K = 1, F = 0, exact controls, noise +-1, a small server step: the new control is the noise."""
    return tiny(u=1.0, server_lr=1e-3)


def leap() -> Instance:
    """F = x^2/2, eta_l = 1/L, K = 100, no noise: after one step nothing moves. (37)-(39), (76)-(79) bound no step."""
    return tiny(1.0, K=100, lr=1.0, server_lr=1 / 400, x=1.0)


def steep(share: float = 1.0) -> Instance:
    """N = 1, K = 8, F = -x^2/2 at its stationary point, fresh noise +-1, eta_l = share/(2KL), eta = 1/(4L)."""
    return tiny(-1.0, K=8, lr=share / 16, server_lr=0.5 / share, u=1.0)


NOISE_ALONE, ONE_STEP = "N = 1, K = 8, F = -x^2/2, noise alone", "K = 100, F = x^2/2, eta_l = 1/L"


def crossed() -> Instance:
    """N = 1, K = 2, F = -x^2/2 at its stationary point, fresh noise +-1, eta_l = 1/(2KL), eta = 1/(4L)."""
    return tiny(-1.0, K=2, lr=0.25, server_lr=0.5, u=1.0)
