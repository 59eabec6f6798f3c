"""Exact second moments of whole runs of SSF on quadratics, and the numbers that a rate speaks of.

In chains L = 1: every step-size condition is the same in all units (checked with the corollary), so a chain needs only
h = L eta~, s = K^3 L^2 eta_l^2 and rho.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.algorithms.ssf import SSF, Down, Own, Server, Step, Up
from fedtheory.core.key import Key
from fedtheory.core.message import Replay
from fedtheory.theory import instances
from fedtheory.theory.ssf.formulas import FORMULAS

DOUBLE = torch.float64
KEY = Key(29).fold("ssf.rate")


class Given(instances.Smooth):
    """A problem whose noise factors are given: `factors` (K, N, B, 1), one column per replica."""

    def __init__(self, base: instances.Smooth, factors: torch.Tensor) -> None:
        for name, value in vars(base).items():
            setattr(self, name, value)
        self.factors = factors

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[instances.Sample]:
        return [instances.Sample(clients, self.factors[k, clients]) for k in range(steps)]


def play(
    algorithm: SSF, problem: instances.Smooth, x: torch.Tensor, c: torch.Tensor, ci: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """One round of all clients for B replicas at once: x, c (B, d), ci (N, B, d) -> the same, and the iterates.

    The lines that train run here: `client` and `server` carry the replica axis along.
    """
    layout, clients = problem.layout, problem.clients
    P = algorithm.projection.seed(layout, Key(0), problem.dtype)
    down = Down(P, Replay(x, None), P.value.project(c))
    iterates, (up, own) = instances.drain(algorithm.client(problem, clients, Own(ci), down, Key(0)))
    server = Server(x, c, P, Step(P, P.value.project(x)), 0)
    server, _ = algorithm.server(server, down, Up(up.y_proj, up.c_proj), clients, Key(0))
    start = P.value.project(x).expand_as(iterates[0])
    return server.x, server.c, own.c, [start, *iterates]


class Moments:
    """SSF on a quadratic problem with additive noise: exact E of squares along a run of any length.

    A round maps the state z = (x, c, c_1..c_N) and the round's noise affinely, for each of finitely many equally likely
    projectors. The map is read off the algorithm's own code, from one call with a replica per unit vector.

    Args:
        problem: quadratic shape; its noise is the same vector at every step, times independent signs.
        frames: (C, d, r), equally likely.
        lr, steps, eta: eta_l, K and the effective step eta~ = eta_g eta_l K.
        noise: (C, N, d), noise vectors that depend on the projector; default the problem's own.
        shift: (C, N, d), a mean of the noise that depends on the projector (it breaks unbiasedness given P_t).
        learns: False: c and all c_i stay as they are, which is not SSF (for controls).
    """

    def __init__(
        self,
        problem: instances.Smooth,
        frames: torch.Tensor,
        lr: float,
        steps: int,
        eta: float,
        *,
        noise: torch.Tensor | None = None,
        shift: torch.Tensor | None = None,
        learns: bool = True,
    ) -> None:
        self.problem, self.steps, self.lr, self.eta, self.learns = problem, steps, lr, eta, learns
        n, d = problem.h.shape
        self.frames, self.by_frame, self.shift = frames, noise, shift
        self.n, self.d, size = n, d, (2 + n) * d
        self.size, self.rho = size, frames.shape[2] / d
        eye = torch.eye(d, dtype=DOUBLE)
        offset = problem.gradients(torch.zeros(d, dtype=DOUBLE))  # (N, d)
        hessian = (problem.gradients(eye) - offset[:, None]).mT  # (N, d, d)
        self.gradient = torch.zeros(d, size + 1, dtype=DOUBLE)
        self.gradient[:, :d], self.gradient[:, -1] = hessian.mean(0), offset.mean(0)
        self.controls = torch.zeros(n, d, size + 1, dtype=DOUBLE)
        self.controls[:, :, :d], self.controls[:, :, -1] = -hessian, -offset
        for i in range(n):
            self.controls[i, :, (2 + i) * d : (3 + i) * d] += eye
        mean_h, mean_o = hessian.mean(0), offset.mean(0)
        self.x_star = -torch.linalg.pinv(mean_h, hermitian=True) @ mean_o
        self.bounded = bool((mean_h @ self.x_star + mean_o).norm() < 1e-9 * (1 + mean_o.norm()))
        self.loss = torch.zeros(size + 1, size + 1, dtype=DOUBLE)  # F - F* = 1/2 (x - x*)^T H (x - x*)
        self.loss[:d, :d] = mean_h / 2
        self.loss[:d, -1] = self.loss[-1, :d] = -mean_h @ self.x_star / 2
        self.loss[-1, -1] = self.x_star @ mean_h @ self.x_star / 2

    @functools.cached_property
    def _round(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """A round's map of (z, 1) and the second moment of its noise; the same of y - x at every local step."""
        n, d, size, steps = self.n, self.d, self.size, self.steps
        replicas = 1 + size + steps * n
        z = torch.zeros(replicas, size, dtype=DOUBLE)
        z[1 : 1 + size] = torch.eye(size, dtype=DOUBLE)
        factors = torch.zeros(steps, n, replicas, 1, dtype=DOUBLE)
        factors[:, :, 1 + size :, 0] = torch.eye(steps * n, dtype=DOUBLE).view(steps, n, -1)
        maps, noises, drifts, drift_noises = [], [], [], []
        for at, frame in enumerate(self.frames):
            own = self.problem
            if self.by_frame is not None:
                own = own.replace(noise=self.by_frame[at])
            if self.shift is not None:
                a = torch.zeros(n, d, dtype=DOUBLE) if own.a is None else own.a
                own = own.replace(a=a + self.shift[at])
            if own.noise is None:
                own = own.replace(noise=torch.zeros(n, d, dtype=DOUBLE))
            algorithm = SSF(self.lr, steps, instances.fixed(frame), server_lr=self.eta / (self.lr * steps))
            x, c, ci = z[:, :d], z[:, d : 2 * d], z[:, 2 * d :].view(replicas, n, d).movedim(1, 0)
            x1, c1, ci1, path = play(algorithm, Given(own, factors), x, c, ci)
            if not self.learns:
                c1, ci1 = c, ci
            out = torch.cat([x1, c1, ci1.movedim(0, 1).reshape(replicas, -1)], dim=1)
            gaps = torch.stack([y - path[0] for y in path[:-1]]).movedim(2, 0).reshape(replicas, -1)
            for values, maps_of, noises_of in ((out, maps, noises), (gaps, drifts, drift_noises)):
                linear, base = values[1 : 1 + size] - values[0], values[0]
                maps_of.append(torch.cat([linear, base[None]]).T)
                noises_of.append((values[1 + size :] - base).T)
        one = torch.zeros(len(self.frames), 1, size + 1, dtype=DOUBLE)
        one[..., -1] = 1
        spread = torch.stack(noises)
        noise = torch.zeros(size + 1, size + 1, dtype=DOUBLE)
        noise[:-1, :-1] = (spread @ spread.mT).mean(0)
        whole = torch.cat([torch.stack(maps), one], dim=1)
        return whole, noise, torch.stack(drifts), torch.stack(drift_noises)

    @property
    def map(self) -> torch.Tensor:
        return self._round[0]

    @property
    def noise(self) -> torch.Tensor:
        return self._round[1]

    def start(self, x: torch.Tensor, ci: torch.Tensor | None = None, c: torch.Tensor | None = None) -> torch.Tensor:
        """The second moment of (z, 1) at x, with c_i = grad F_i(x) and c their mean where none are given."""
        ci = self.problem.gradients(x) if ci is None else ci
        c = ci.mean(0) if c is None else c
        z = torch.cat([x, c, ci.flatten(), torch.ones(1, dtype=DOUBLE)])
        return z[:, None] * z

    def step(self, S: torch.Tensor) -> torch.Tensor:
        """The second moment after a round."""
        return (self.map @ S @ self.map.mT).mean(0) + self.noise

    def squared(self, form: torch.Tensor, S: torch.Tensor) -> float:
        """E ||form z||^2."""
        return float(torch.einsum("...ij,jk,...ik->", form, S, form))

    def gradient2(self, S: torch.Tensor) -> float:
        """E ||grad F(x)||^2."""
        return self.squared(self.gradient, S)

    def gap(self, S: torch.Tensor) -> float:
        """E F(x) - F*."""
        return float((self.loss * S).sum())

    def control(self, S: torch.Tensor) -> float:
        """C = (1/N) sum_i E ||c_i - grad F_i(x)||^2."""
        return self.squared(self.controls, S) / self.n

    def drift(self, S: torch.Tensor) -> float:
        """E_drift of the coming round."""
        _, _, moved, spread = self._round
        noise = float((spread**2).sum()) / len(moved)
        return (self.squared(moved, S) / len(moved) + noise) / (self.n * self.steps)

    @functools.cached_property
    def operator(self) -> torch.Tensor:
        """What `step` does to the flattened second moment: (size + 1)^2 squared."""
        power = torch.stack([torch.kron(one, one) for one in self.map]).mean(0)
        power[:, -1] += self.noise.flatten()  # the last entry of S is the 1 of (z, 1)
        return power

    def average(self, S: torch.Tensor, doublings: int) -> float:
        """(1/T) sum_t E ||grad F(x^t)||^2, t = 0 .. T - 1, T = 2^doublings: U^n and I + ... + U^(n-1) by doubling."""
        power = self.operator
        total = torch.eye(len(power), dtype=DOUBLE)
        for _ in range(doublings):
            total, power = total + power @ total, power @ power
        return self.gradient2((total @ S.flatten()).view_as(S)) / 2**doublings

    def run(self, S: torch.Tensor, rounds: int) -> list[float]:
        """E ||grad F(x^t)||^2, t = 0 .. rounds - 1; of long runs by blocks of rounds, see `_run_by_blocks`."""
        if rounds > LONG:
            return self._run_by_blocks(S, rounds)
        values = []
        for _ in range(rounds):
            values.append(self.gradient2(S))
            S = self.step(S)
        return values

    def _run_by_blocks(self, S: torch.Tensor, rounds: int, block: int = 32) -> list[float]:
        """The same as products w U^j with (U^block)^i S, w the form E ||grad F||^2, on the upper triangles of S."""
        size = self.size + 1
        rows, cols = torch.triu_indices(size, size)
        upper, lower = rows * size + cols, cols * size + rows
        U = self.operator[upper]
        U = torch.where(rows == cols, U[:, upper], U[:, upper] + U[:, lower])
        w = (self.gradient.mT @ self.gradient).flatten()
        early = [torch.where(rows == cols, w[upper], w[upper] + w[lower])]
        for _ in range(block - 1):
            early.append(early[-1] @ U)
        jump, late = torch.linalg.matrix_power(U, block), [S.flatten()[upper]]
        for _ in range((rounds - 1) // block):
            late.append(jump @ late[-1])
        return (torch.stack(late) @ torch.stack(early).mT).flatten()[:rounds].tolist()


LONG = 400  # rounds; from here on a run by blocks is the faster one by far


@dataclass(frozen=True)
class Terms:
    """The numbers that a rate speaks of."""

    N: int
    K: int
    L: float
    sigma2: float
    rho: float
    lr: float
    eta: float
    gap: float  # Delta_F
    control: float  # C_0

    def conditions(self) -> dict[str, float]:
        """Left over right of every condition of Theorem 1: admissible where none exceeds 1."""
        L, K, lr, eta, rho = self.L, self.K, self.lr, self.eta, self.rho
        return {
            "(1) eta_l": 2 * K * L * lr,
            "(1) eta~": 4 * L * eta,
            "(2)": 576 * K**3 * L**2 * lr**2 / rho,
            "(3)": 3456 * L**4 * eta**2 * K**3 * lr**2 / rho**3,
            "(4)": 4 * L**2 * eta**2 / rho**2,
        }

    def theorem(self, T: int) -> tuple[float, ...]:
        """The terms of (102): optimality gap, controls, first and second noise term."""
        r = self.rho
        front = 8 / (r * self.eta * T)
        return (
            front * self.gap,
            front * self.control,
            4 * self.L * self.sigma2 * self.eta / (r * self.N * self.K),
            8000 * self.L**2 * self.K * self.lr**2 * self.sigma2 / r,
        )

    def repaired(self, T: int) -> tuple[float, ...]:
        """The terms of the repaired bound; see REPAIR."""
        r, q = self.rho, (self.L * self.K * self.lr) ** 2
        return (
            5 / 2 * self.gap / (r * self.eta * T),
            5 * q * self.control / (r * T),
            5 / 2 * self.L * self.sigma2 * self.eta / (r * self.N * self.K),
            21 * self.L**2 * self.K * self.lr**2 * self.sigma2 / r,
        )

    def sharper(self, T: int) -> tuple[float, ...]:
        """The terms of the theorem of docs/theory/ssf.md."""
        return FORMULAS["theorem"].terms(self.named(T))

    def shorter(self, T: int) -> tuple[float, ...]:
        """The same for K L eta_l <= sqrt(rho)/10, where eta~ is bounded by 1/(4L) alone."""
        return FORMULAS["short"].terms(self.named(T))

    def named(self, T: int) -> dict[str, float]:
        """The values of the page's names."""
        return vars(self) | {"T": T, "sigma": self.sigma2**0.5, "C0": self.control}

    def corollary(self, T: int, per_L: bool = False) -> tuple[float, ...]:
        """The terms of (123), with C_0 as printed or as C_0/L."""
        gap = self.gap + (self.control / self.L if per_L else self.control)
        slow = self.sigma2**0.5 * (self.L * gap / (self.N * self.K * T)) ** 0.5 / self.rho
        first, second = (11, 15 / 4 * 2**0.5) if per_L else (112, 8 * 2**0.5)
        return first * self.L * gap / (self.rho**2 * T), second * slow


Rate = Callable[[Terms, int], tuple[float, ...]]


def rescaled(terms: Terms, a: float, b: float) -> Terms:
    """Losses times a, variables times b: what each number becomes."""
    g = a / b
    return Terms(
        terms.N, terms.K, terms.L * a / b**2, terms.sigma2 * g**2, terms.rho, terms.lr * b**2 / a,
        terms.eta * b**2 / a, terms.gap * a, terms.control * g**2,
    )  # fmt: skip


SAMPLE = Terms(3, 4, 1.5, 0.7, 0.5, 0.01, 0.1, 2.0, 0.9)


def stepsizes(setting: str, K: int, rho: float, L: float) -> tuple[float, float]:
    """eta_l and eta~ at the edge of the conditions.

    "printed" is (1)-(4), "corollary" is (120)-(122) at sigma = 0, "longer" is the theorem's of docs/theory/ssf.md, and
    "short local" that of its 6.5.
    """
    h = min(1 / 4, {"longer": math.sqrt(rho / 8), "short local": 1 / 4}.get(setting, rho / 2))
    s = {
        "printed": min(rho / 576, rho**3 / (3456 * h * h)),
        "corollary": rho / 864,
        "repaired": K / 100,
        "printed, slow": min(rho / 576, rho**3 / (3456 * (h / 8) ** 2)),
        "repaired, slow": K / 100,
        "large eta_g": rho / 576e6,
        "longer": K / 100,
        "short local": rho * K / 100,
    }[setting]
    return math.sqrt(s / K**3) / L * (1 - 1e-9), (h / 8 if "slow" in setting else h) / L


def corollary_steps(t: Terms, T: int, per_L: bool, divide: bool = False) -> tuple[float, float]:
    """eta_l and eta~ of (120)-(122), with C_0 as printed or as C_0/L. `divide`: literally, also by sigma = 0."""
    gap = t.gap + t.control / (t.L if per_L else 1)
    third = math.sqrt(gap / (100 * t.L * t.K * t.sigma2 * T * t.rho)) if t.sigma2 or divide else math.inf
    lr = min(1 / (2 * t.K * t.L), math.sqrt(t.rho / (864 * t.L**2 * t.K**3)), third)
    eta1 = math.sqrt(2 * t.N * t.K * gap / (t.L * t.sigma2 * T)) if t.sigma2 or divide else math.inf
    return lr, 1 / (max(4 * t.L, 2 * t.L / t.rho) + 1 / eta1)


def random_problem(z: torch.Tensor, N: int, d: int, noisy: bool) -> tuple[instances.Smooth, torch.Tensor, torch.Tensor]:
    """A quadratic problem with L = 1, a start and controls' errors from free numbers: indefinite clients, convex F."""
    h, b, noise, x, e = z[: 4 * N * d + d].split([N * d, N * d, N * d, d, N * d])
    h = h.view(N, d)
    h = h * torch.where(h.mean(0) < 0, -1.0, 1.0)
    h = h + (0.05 * h.abs().max() - h.mean(0)).clamp(min=0)
    problem = instances.Smooth(h / h.abs().max(), b.view(N, d), noise=noise.view(N, d) if noisy else None)
    return problem, x, e.view(N, d)


def posed(z: torch.Tensor, edge: Any, errors: float = 1.0, mean: bool = True) -> tuple[Moments, torch.Tensor, Terms]:
    """SSF at free numbers: its moments, its start, and the terms of the rates there.

    Args:
        edge: N, K, d, r, the setting of `stepsizes`, and whether gradients are noisy.
        errors: factor on the controls' errors.
        mean: whether c starts as the mean of the c_i.
    """
    N, K, d, r, setting, noisy = edge
    problem, x, e = random_problem(z, N, d, noisy)
    lr, eta = stepsizes(setting, K, r / d, 1.0)
    moments = Moments(problem, instances.coordinate_frames(d, r), lr, K, eta)
    ci = problem.gradients(x) + errors * e
    S = moments.start(x, ci, None if mean else ci.mean(0) + z[:d])
    sigma2 = problem.constants.sigma2 or 0.0
    return moments, S, Terms(N, K, 1.0, sigma2, r / d, lr, eta, moments.gap(S), moments.control(S))
