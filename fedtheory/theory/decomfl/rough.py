"""DeComFL: clients that are not smooth while their mean f is, which Assumption 3 admits.

The algorithm uses f_i(.; xi) at two points, and Assumption 3 is about f alone. Local steps then drift by amounts that
no term of Theorem 1 sees, and scalars grow with d where Theorem 2 has an effective rank.
"""

import math
from dataclasses import replace
from typing import Any

import torch

from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.decomfl.round import DOUBLE, ROOT, SMALL_MU, Enumerated, Played, rank_factor, tiny
from fedtheory.theory.instances import Sample, Smooth, drain
from fedtheory.theory.rounding import digits

# Theorem 1

ROUGH = Smooth(  # f = x is 0-smooth, f_1, f_2 = x +- 2 (1 - cos x) are not; ||grad f_i - grad f|| <= 2 everywhere
    torch.tensor([[2.0], [-2.0]], dtype=DOUBLE),
    torch.zeros(2, 1, dtype=DOUBLE),
    shape="cosine",
    a=torch.ones(2, 1, dtype=DOUBLE),
)


def rough(x: float, m: int) -> tuple[Enumerated, torch.Tensor]:
    """A round on ROUGH, K = 2, and grad f_i^mu(x_i^k) in it, (K, M, C)."""
    r = Enumerated(tiny(a=1.0, x=x, M=2, m=m, K=2, lr=0.3, L=0.0, mu=1e-4), losses=ROUGH, nodes=40)
    own = 1 + math.exp(-(r.at.mu**2) / 2) * ROUGH.h.view(1, 2, 1) * torch.sin(r.points[..., 0])
    return r, own


def rough_data(x: float, m: int, left: float) -> dict[str, Any]:
    return {
        "f": "x (L = 0)", "f_i": "x +- 2 (1 - cos x)", "K": 2, "m": m, "eta": 0.3, "x_r": x, "left": digits(left),
        "right": 0,
    }  # fmt: skip


def check_rough(effort: str) -> Outcome:
    """The bound on A_1 with the L of f, which is 0."""
    r, own = rough(1.0, 2)
    left = r.at.K * r.at.lr / 2 * float(r.mean((own.mean((0, 1)) - 1) ** 2))
    said = f"f = x, f_i = x +- 2 (1 - cos x): A_1 exceeds the bound with f's L = 0 by {left:.3g} (client code)"
    return Outcome(left <= 0, "exact", None, said, rough_data(1.0, 2, left))


def rough_sampled(effort: str) -> Outcome:
    """A_4 against (36)-(37) with the L of f: 0, as the clients' gradients agree at x_r = 0."""
    r, own = rough(0.0, 1)
    total = own.sum(0)  # over k, (M, C)
    left = float(r.mean(((total - total.mean(0)) ** 2).mean(0)))
    said = f"f = x, f_i = x +- 2 (1 - cos x), x_r = 0, m = 1: A_4 = {left:.3g} against 0 (client code)"
    return Outcome(left <= 1e-6, "exact", None, said, rough_data(0.0, 1, left))


def rough_moments(which: str) -> Check:
    """(26) and (38) need no more than f's L where Assumption 2 holds everywhere: grad f_i is sigma_G from grad f."""

    def check(effort: str) -> Outcome:
        r, own = rough(1.0, 1)
        K, sigma_G2 = r.at.K, 4.0
        total = own.sum(0)
        left, right = {
            "(26)": (max(float(r.mean(v**2)) for v in own.flatten(0, 1)), 6 * sigma_G2 + 6),
            "(38)": (float(r.mean(((total - total.mean(0)) ** 2).mean(0))), 9 * K**2 * sigma_G2),
        }[which]
        said = f"f = x with clients that are not 0-smooth, L = 0: {left:.3g} against {right:g}"
        return Outcome(left <= right, "exact", left / right, said, None if left <= right else {"left": left})

    return check


class Kink(Smooth):
    """One client with f(x; xi) = xi h(x), xi = +-1, h'(x) = min(|x|, s): f = 0, every f(.; xi) 1-smooth, variance h'^2.

    Losses are those of xi = 1; those of xi = -1 are the mirror image, with the same squares.
    """

    def __init__(self, s: float) -> None:
        super().__init__(torch.zeros(1, 1, dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE))
        self.s = s

    def losses(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        inner = y[..., 0].abs().clamp(max=self.s)
        return y[..., 0].sign() * (inner**2 / 2 + self.s * (y[..., 0].abs() - inner))


def gaussian() -> tuple[torch.Tensor, torch.Tensor]:
    """z (n, 1) on a grid, and the weights (n,) of N(0, 1)."""
    z = torch.linspace(-12, 12, 4801, dtype=DOUBLE)[:, None]
    weights = torch.exp(-(z.flatten() ** 2) / 2)
    return z, weights / weights.sum()


def estimates(problem: Smooth, z: torch.Tensor, lr: float) -> torch.Tensor:
    """G_i z by the client's code for every client and row of z (n, 1): K = P = mu = 1, x_r = 0; (M, n)."""
    algorithm = Played(lr, 1, 1, 1.0, rows=z[:, None])
    down = algorithm.broadcast(algorithm.init(problem, torch.zeros(1, dtype=DOUBLE), ROOT).server, ROOT)
    down = replace(down, seeds=torch.zeros(1, 1, dtype=torch.int64))
    rows = [torch.full((len(z),), i) for i in range(problem.n)]
    sent = [drain(algorithm.client(problem, own, None, down, ROOT))[1][0].g for own in rows]
    return torch.stack([g.flatten() for g in sent]) * z.T


def check_shared_bias(everywhere: bool) -> Check:
    """Repaired (23), second step of the display, and (34), on `Kink` at x_r = 0: K = M = m = d = mu = L = 1, many P.

    All P scalars share their minibatch, and with it what smoothing adds to its gradient: that is not divided by P.
    `everywhere`: sigma bounds the noise at every point; else at x_r alone, where there is none.
    """

    def check(effort: str) -> Outcome:
        z, weights = gaussian()
        worst, at = 0.0, {}
        for s in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0):
            (each,) = estimates(Kink(s), z, 1.0)
            mean, square = float(weights @ each), float(weights @ each**2)
            for P in (1, 2, 5, 10, 30, 100, 268, 1000, 10_000, 1_000_000):
                left = mean**2 * (P - 1) / P + square / P
                right = (1 + 10 / P) * (s**2 if everywhere else 0.0) + 343 / (2 * P)
                if left / right > worst:
                    worst, at = left / right, {"s": s, "P": P, "left": digits(left), "right": digits(right)}
        told = f"f(x; xi) = xi h(x), h' = min(|x|, {at['s']:g}), x_r = 0, P = {at['P']:,}, by the client"
        said = f"{told}: left {at['left']}, right {at['right']}"
        return Outcome(worst <= 1, "exact", worst, said, None if worst <= 1 else {"f": told, **at})

    return check


class Bend(Smooth):
    """f_i(x) = s_i x|x|/2 + a x, d = 1: 1-smooth; what smoothing with mu adds to f_i'(0) is s_i mu E|z|."""

    def __init__(self, signs: tuple[float, ...], a: float = 0.0) -> None:
        zeros = torch.zeros(len(signs), 1, dtype=DOUBLE)
        super().__init__(zeros, zeros, a=zeros + a)
        self.signs = torch.tensor(signs, dtype=DOUBLE)

    def losses(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        signs = self.signs[xi.clients].view(-1, *[1] * (y.dim() - 2))
        return signs * y[..., 0] * y[..., 0].abs() / 2 + super().losses(y, xi)


def check_bias(which: str, share: float = 1.0) -> Check:
    """The smoothing's term alone: x|x|/2, and with -x|x|/2 beside it, at x_r = 0, where nothing else is left.

    K = P = m = d = mu = L = eta = 1. Quadratics, whose smoothed gradient is the gradient, do not need that term.
    """

    def check(effort: str) -> Outcome:
        (z, weights), alone = gaussian(), which in ("(26)", "(33)")
        smoothed = estimates(Bend((1.0,) if alone else (1.0, -1.0)), z, 1.0) @ weights
        left = float(smoothed.square().mean() - (0.0 if alone else smoothed.mean() ** 2))
        left *= 0.5 if which == "(33)" else 1.0
        right = share * 64 * {"(26)": 0.5, "(33)": 0.25, "(36)": 1.5, "(38)": 1.5}[which]
        told = "f = x|x|/2" if alone else "f_1 = x|x|/2 = -f_2, m = 1"
        said = f"{which}, {told}, x_r = 0, K = P = mu = 1, by the client: {left:.4g} against {right:g}"
        data = {"f": told, "x_r": 0, "K": 1, "P": 1, "mu": 1, "left": digits(left), "right": digits(right)}
        return Outcome(left <= right, "exact", left / max(right, 1e-300), said, None if left <= right else data)

    return check


def check_signed_bias(share: float = 1.0) -> Check:
    """Step 10.6 on x|x|/2 - x/4 at x_r = 0, z = +-1, mu = L = P = d = 1, eta = 1/4 at its bound: eta is the bias."""

    def check(effort: str) -> Outcome:
        eta, problem, z = 0.25, Bend((1.0,), -0.25), torch.tensor([[1.0], [-1.0]], dtype=DOUBLE)
        after = -eta * estimates(problem, z, eta)
        gain = float((after * after.abs() / 2 - after / 4).mean())
        left, right = gain + eta / 2 * 0.25**2, share * eta + eta**2 / 4
        said = f"f = x|x|/2 - x/4, x_r = 0, z = +-1, eta = 1/4, by the client: {left:.4g} against {right:.4g}"
        data = {"f": "x|x|/2 - x/4", "x_r": 0, "eta": eta, "left": digits(left), "right": digits(right)}
        return Outcome(left <= right, "exact", left / right, said, None if left <= right else data)

    return check


# Theorem 2


def rough_51(effort: str) -> Outcome:
    """eps_r of clients that are not smooth, f = x being 0-smooth, m = 1: the client's step less z z^T grad f_i(x_r)."""
    r = Enumerated(tiny(a=1.0, x=1.0, M=2, mu=0.7, L=0.0, sphere=True), losses=ROUGH)
    exact = r.z[:, 0, 0] * (r.z[:, 0, 0] * ROUGH.gradients(r.at.x)[:, None]).sum(-1, keepdim=True)
    left = float(((r.G[:, :, 0] - exact) ** 2).sum(-1).max())
    said = f"f = x, f_i = x +- 2 (1 - cos x), x_r = 1, mu = 0.7: ||eps_r||^2 = {left:.3g} against 0"
    data = {"f": "x (L = 0)", "f_i": "x +- 2 (1 - cos x)", "x_r": 1, "mu": 0.7, "left": digits(left), "right": 0}
    return Outcome(left <= 0, "exact", None, said, data)


class Cones(Smooth):
    """Two clients f +- (sqrt(||x||^2 + delta^2) - delta), f = sum_j h_j x_j^2/2: sigma_G = 1, gradients 0 at x = 0."""

    delta = 2.0**-40

    def losses(self, y: torch.Tensor, xi: Sample) -> torch.Tensor:
        cone = ((y**2).sum(-1) + self.delta**2).sqrt() - self.delta
        return super().losses(y, xi) + (1 - 2 * xi.clients).view(-1, *[1] * (y.dim() - 2)) * cone


def check_cones(which: str, d: int = 160) -> Check:
    """Clients that are not L-smooth, f = x_1^2/2 that is; m = 1 of 2, P = 1, x_0 = 0 = x*, kappa = 1.

    Their scalars are +-||z||, whatever z is, where smooth clients with that sigma_G would send <z, g>: d times larger
    in E||G||^2. Directions +-sqrt(d) e_j have the sphere's E z z^T, and x_1 depends on no more but for mu^2.
    """

    def check(effort: str) -> Outcome:
        C, mu = rank_factor(d, 1, 1.0), SMALL_MU
        z = math.sqrt(d) * torch.cat([torch.eye(d, dtype=DOUBLE), -torch.eye(d, dtype=DOUBLE)]).repeat(2, 1)
        h = torch.zeros(2, d, dtype=DOUBLE)
        h[:, 0] = 1
        problem = Cones(h, torch.zeros_like(h))
        algorithm = Played(1 / (4 * C), 1, 1, mu, rows=z[:, None])
        down = algorithm.broadcast(algorithm.init(problem, torch.zeros(d, dtype=DOUBLE), ROOT).server, ROOT)
        down = replace(down, seeds=torch.zeros(1, 1, dtype=torch.int64))
        up, _ = drain(algorithm.client(problem, torch.arange(2).repeat_interleave(2 * d), None, down, ROOT))[1]
        x1 = -algorithm.lr * up.g[:, 0] * z
        square, eta = float((x1[:, 0] ** 2).mean()), algorithm.lr
        smoothing = eta * mu**2 / 8 * (d + 3) ** 3 + eta**2 * mu**2 * d**3
        left, right = {  # R = 2 for the theorem; T_3 = 0 in (66), as all gradients vanish at x_0
            "theorem": (square / 2, 2 * eta * C + mu**2 / 2 * (d + 3) ** 3 + 4 * mu**2 * d**3 * eta),
            "(66)": (square / 2, smoothing),
            "(69)": (square / 2, smoothing + eta**2 * C),
        }[which]
        said = f"f = x_1^2/2, f_i = f +- ||x|| with a round tip, d = {d}, {which}: {left:.4g} against {right:.4g}"
        data = {
            "f": "x_1^2/2", "f_i - f": "+-(sqrt(||x||^2 + 2^-80) - 2^-40)", "sigma_G": 1, "d": d, "P": 1,
            "m": 1, "M": 2, "x_0": 0, "kappa": 1, "mu": mu, "eta": eta, "left": digits(left), "right": digits(right),
        }  # fmt: skip
        return Outcome(left <= right, "exact", left / right, said, None if left <= right else data)

    return check
