"""FedMUD: the reset itself, in expectation over the redrawn U: what the theorem does not use."""

from typing import Any

import torch

from fedtheory.algorithms.fedmud import Down, FedMUD, Frozen
from fedtheory.core.key import Key
from fedtheory.core.message import Known, Replay
from fedtheory.maps.decomposition import Factors, Full, Outer, Product
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.instances import Smooth, drain
from fedtheory.theory.mud.round import A1, DOUBLE, KEY, SIGNS, UNBIASED, Atoms, Given, layout, mud, outcome
from fedtheory.theory.rounding import level
from fedtheory.theory.search import maximise

LAWS: dict[str, Atoms] = {  # of one entry of U, before it is scaled: values and probabilities, mean 0
    "signs": SIGNS,
    "as U(-a, a)": ((0.6**0.5, 5 / 18), (0.0, 4 / 9), (-(0.6**0.5), 5 / 18)),  # its moments up to the fifth
    "skew": ((2.0, 1 / 3), (-1.0, 2 / 3)),
    "heavy": ((1.0, 1 / 16), (0.0, 7 / 8), (-1.0, 1 / 16)),
}


@torch.no_grad()
def reset_step(z: torch.Tensor, edge: tuple[int, int, int, int, str, bool], share: float) -> tuple[torch.Tensor, ...]:
    """One iteration of FedMUD.client after a reset (E = 1), in exact expectation over U and the noise.

    The entries of U are independent with one of `LAWS`; eta is `share` of r s^2/(L_s c_U). Returns E||grad h||^2,
    E f(wbar^1) - f(w^0), ||grad f||^2, r s^2, c_U, sigma^2/N, eta.
    """
    N, m, n, r, law, noisy = edge
    d = m * n
    h, b, noise, base = z.split([N * d, N * d, N * d, d])
    h = h.view(N, d) / h.abs().max().clamp(min=1e-9)
    problem = Smooth(h, b.view(N, d), noise=noise.view(N, d) * noisy, layout=layout(((m, n, r),)))
    values, odds = (torch.tensor(v, dtype=DOUBLE) for v in zip(*LAWS[law]))
    s2, fourth = float(odds @ values**2), float(odds @ values**4)
    c = r * (fourth + (m + r - 2) * s2**2)
    lr = share * r * s2 / c
    which = torch.cartesian_prod(*[torch.arange(len(values))] * (m * r)).view(-1, m * r)
    signs = 2.0 * torch.cartesian_prod(*[torch.arange(2)] * N).view(-1, N).to(DOUBLE) - 1
    probability = odds[which].prod(-1).repeat_interleave(len(signs)) / len(signs)  # of the draws of U and the noise
    U, factors = values[which].repeat_interleave(len(signs), 0), signs.repeat(len(which), 1)
    start = torch.cat([U, U.new_zeros(len(U), n * r)], -1)
    D = Factors(problem.layout, (Product(Outer(m, n, r), True),), start[0], torch.zeros(0, dtype=DOUBLE))
    frozen: Any = Frozen(Known(base), Known(D))  # pyright: ignore[reportArgumentType]
    rows = torch.arange(N).repeat_interleave(len(start))
    given = Given(problem, factors.T.reshape(1, -1, 1))
    down = Down(Replay(frozen, None), start.repeat(N, 1))
    _, (up, _) = drain(FedMUD(lr, 1, Full(), None).client(given, rows, None, down, Key(0)))
    w = base + D.update(up.u.view(N, len(start), -1).mean(0))
    change = probability @ problem.values(w).mean(0) - problem.values(base).mean()
    gradient = problem.gradients(base).mean(0)
    squares = probability @ (D.pullback(start, gradient.expand(len(start), -1)) ** 2).sum(-1)
    sigma2 = (problem.noise**2).sum(-1).mean() if problem.noise is not None else torch.zeros((), dtype=DOUBLE)
    return (
        squares,
        change,
        (gradient**2).sum(),
        *(torch.as_tensor(v, dtype=DOUBLE) for v in (r * s2, c, sigma2 / N, lr)),
    )


def redrawn(share: float = 1.0) -> Check:
    """The repaired statements at a reset: E||grad h||^2 = r s^2 ||grad f||^2, and the descent of one iteration with eta
    = `share` of what is allowed, for every law of U in `LAWS`.
    """

    def check(effort: str) -> Outcome:
        shapes = [(1, 1, 1, 1), (2, 2, 1, 1), (1, 3, 1, 1), (2, 2, 1, 2), (1, 3, 1, 2)]
        edges = [(*shape, law, noisy) for shape in shapes for law in LAWS for noisy in (True, False)]
        gap = 0.0

        def sides(z: torch.Tensor, edge: tuple[int, int, int, int, str, bool]) -> tuple[torch.Tensor, ...]:
            nonlocal gap
            h2, change, f2, rs2, c, noise, eta = reset_step(z, edge, share)
            gap = max(gap, float((h2 - rs2 * f2).abs() / (rs2 * f2)))
            return change + eta * rs2 * f2, eta * rs2 / 2 * f2 + eta**2 * c / 2 * noise

        size = lambda e: 3 * e[0] * e[1] * e[2] + e[1] * e[2]
        alike = [torch.cat([torch.ones(k), torch.full((k,), 2.0), torch.zeros(size(s) - 2 * k)]).to(DOUBLE)
                 for s in shapes for k in (s[0] * s[1] * s[2],)]  # fmt: skip
        restarts, steps = (1, 6) if effort == "quick" else (2, 30)
        found = maximise(sides, size, KEY.fold("reset"), edges=edges, restarts=restarts, steps=steps,
                         starts=alike, enough=1 + 1e-6)  # fmt: skip
        said = f"E||grad h_l||^2 = r s^2 ||grad f_l||^2: largest gap {level(gap, 1e-9)[1]}; descent: {found.tried} "
        said += f"instances through FedMUD.client, {len(LAWS)} laws of the entries of U, all draws; worst at "
        said += str(found.edge)
        return outcome(found.holds and gap < 1e-9, "search", found.ratio, said)

    return check


REDRAWN = (
    "In the mean over a redrawn U with independent entries of mean 0 and variance s^2 (a^2/3 for U(-a, a)) and V = 0: "
    "E||grad h_l||^2 = r s^2 ||grad f_l||^2, for every r"
)


def claims() -> list[Claim]:
    """Not in the paper."""
    return [
        mud(
            "sharper.reset", "rate",
            check=redrawn(), control=redrawn(1.02), broken="eta 2% larger than allowed", assumes=(A1, UNBIASED),
            implies="FedMUD with s = 1 converges at any rank, without A3, A4 or a bound on gradients; the price is "
            "the factor c_U/(r s^2), about m s^2, in the admissible step size.",
        ),
    ]  # fmt: skip
