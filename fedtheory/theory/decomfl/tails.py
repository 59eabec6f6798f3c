"""DeComFL, C.5: Theorem 5, Gaussian directions whose step may leave Assumption 4's ball.

It takes the sphere's moments for Gaussian z, and its tail counts one z for each client.
"""

import math
from fractions import Fraction

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.low_rank import SMOOTH_EACH, STEP, check_runs, runs
from fedtheory.theory.decomfl.round import A1, A2, A3, A4, DOUBLE, Enumerated, admissible, decomfl, rank_factor, tiny
from fedtheory.theory.decomfl.theorem2 import coefficients
from fedtheory.theory.rounding import digits

REPAIR5 = (
    "with 1 + (kappa + 1)/P, which is Gaussian, in step size and bound, and H(x_r) above the Hessian everywhere: "
    "(1/R) sum_r "
    "E||grad f||^2 <= 2D/(R eta) + (2L eta/m)(1 + (kappa + 1)/P)(sigma_G^2 + sigma^2) + (1/2) mu^2 L^2 (d+3)^3 + "
    "(1/2) mu^2 "
    "L^3 d(d+2)(d+4) eta" + SMOOTH_EACH
)
GAUSSIAN = tiny(noise=1.0, M=192, m=192, lr=0.25)  # all 192 clients take part; their noises are independent


def check_theorem5(effort: str) -> Outcome:
    """Both noise terms fall like 1/m and the tail like exp(-Omega(m)), so many clients leave it nothing."""
    at, R = GAUSSIAN, 50
    slack = {name: digits(value) for name, value in admissible(at, ("theorem2",)).items()}
    squares, _ = runs(at, R)
    left = float(squares[1:].mean())
    largest = 2 * float((squares[1:] + at.sigma2).sum())  # E max_r G(x_r)^2 <= sum_r 2 (E||grad f||^2 + sigma^2)
    tail = at.lr**2 * at.L * largest * math.exp(-at.m / 16)
    right = 2 * at.lr * at.L * rank_factor(1, 1, 1) * at.sigma2 / at.m + tail
    said = (
        f"m = {at.m} clients f_i = x^2/2, xi_i = +-1, d = P = L = 1, eta = 1/4, x_0 = x*, mu -> 0, the tail "
        f"exp(-mdP/16): {left:.4g} against {right:.4g}; with another constant in Omega, more clients"
    )
    data = {
        "f_i": "x^2/2",
        "xi_i": "+-1",
        "m": at.m,
        "d": 1,
        "P": 1,
        "L": 1,
        "eta": at.lr,
        "x_0": 0,
        "R": R,
        "left": digits(left),
        "right": digits(right),
        "tail": digits(tail),
        "slacks": slack,
    }
    return Outcome(left <= right, "exact", left / right, said, data)


def chi2_above(n: int, x: float) -> float:
    """P[chi^2_n > x]."""
    return float(torch.special.gammaincc(torch.tensor(n / 2, dtype=DOUBLE), torch.tensor(x / 2, dtype=DOUBLE)))


def check_73(outside: bool, descent: float = 0.5) -> Check:
    """Curvature that changes from h to L at ||x - x_r|| = 2 eta G, d = P = m = 1, mu -> 0, by quadrature in z."""

    def check(effort: str) -> Outcome:
        z, worst = torch.linspace(-12, 12, 48001, dtype=DOUBLE), (-math.inf, 0.0, 0.0)
        p = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        for h in (-1.0, -0.3, 0.0, 0.2, 1.0):
            for eta in (0.05, 0.25, 1.0):
                far = (eta * z**2 - 2 * eta).clamp(min=0)
                step = -eta * z**2
                f = step + h / 2 * step**2 + (1 - h) / 2 * far**2  # G = f'(x_r) = 1, L = 1
                inside = (z**2 <= 2).double()
                right = (
                    -descent * eta + eta**2 / 2 * (p * z**4 * (h * inside + (1 if outside else h) * (1 - inside))).sum()
                )
                worst = max(worst, (float((p * f).sum() - right) / eta**2, h, eta))
        gap, h, eta = worst
        said = f"15 losses, curvature h >= -L in the region and L outside: left less right at most {gap:.3g} eta^2"
        holds = gap <= 1e-6
        data = None if holds else {"h": h, "eta": eta, "left - right over eta^2": digits(gap)}
        return Outcome(holds, "exact", None, said, data)

    return check


def check_74(extra: float) -> Check:
    """f = x^2/2 at its minimum, G = 0, z = mu = 1: the step eta/2 against eta ||z||^2 (G + extra mu L ||z||)."""

    def check(effort: str) -> Outcome:
        at = tiny(mu=1.0, sphere=True)  # z = +-1
        left = float((Enumerated(at).ends[0] - at.x).abs().max())
        right = at.lr * extra * at.mu
        said = f"f = x^2/2, x_r = 0, G(x_r) = 0, mu = 1, |z| = 1, step of the client {left:.3g} against {right:.3g}"
        data = {"f": "x^2/2", "x_r": 0, "mu": 1, "|z|": 1, "eta": at.lr, "left": left, "right": right}
        return Outcome(left <= right + 1e-12, "exact", None, said, None if left <= right + 1e-12 else data)

    return check


def check_75(mu: float, level: float = 2.0) -> Check:
    """d = P = m = 1, f = x^2/2: A^c is eta z^2 |x + mu z/2| > 2 eta |x|."""

    def check(effort: str) -> Outcome:
        z = torch.linspace(-10, 10, 200001, dtype=DOUBLE)
        p = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        x = 0.0 if mu else 1.0
        left = float((p * (z**2 * (x + mu * z / 2).abs() > 2 * abs(x))).sum())
        right = chi2_above(1, level)
        said = f"f = x^2/2, x_r = {x:g}, mu = {mu:g}: P[A^c] = {left:.4f} against P[||z||^2 >= {level:g}] = {right:.4f}"
        holds = left <= right + 1e-4
        data = {"f": "x^2/2", "x_r": x, "mu": mu, "G(x_r)": x, "left": digits(left), "right": digits(right)}
        return Outcome(holds, "exact", left / right, said, None if holds else data)

    return check


def check_76(m: int, P: int, n: int) -> Check:
    """P[(1/(mP)) sum_i sum_p ||z_p||^2 >= 2d], one z_p for all clients, d = 1, against P[chi_n > 2n]."""

    def check(effort: str) -> Outcome:
        d = 1
        left, right = chi2_above(d * P, 2 * d * P), chi2_above(n, 2 * n)
        said = f"m = {m}, d = 1, P = {P}: {left:.4f} against P[chi_{n} > {2 * n}] = {right:.4f}"
        holds = abs(left - right) < 1e-12
        data = {"m": m, "d": d, "P": P, "P[mean >= 2d]": digits(left), "P[chi_mdP > 2mdP]": digits(right)}
        return Outcome(holds, "exact", left / right, said, None if holds else data)

    return check


def check_tail(rate: float) -> Check:
    def check(effort: str) -> Outcome:
        ratios = {n: chi2_above(n, 2 * n) / math.exp(-rate * n) for n in (*range(1, 60), 100, 300, 1000)}
        n, worst = max(ratios.items(), key=lambda item: item[1])
        exponent = (1 - math.log(2)) / 2
        said = (
            f"62 values of n up to 1,000, worst n = {n}; Chernoff's exponent is (1 - log 2)/2 = {exponent:.4f} "
            f"for every n"
        )
        return Outcome(worst <= 1, "exact", worst, said, None if worst <= 1 else {"n": n, "ratio": digits(worst)})

    return check


def check_77(m: int, repaired: bool, scale: float = 1.0) -> Check:
    """f_i = a x, H = L/2, d = P = 1: (1/4) E[||z||^4; ||z||^2 > 2d] against exp(-m d P), both over eta^2 L G^2."""

    def check(effort: str) -> Outcome:
        d, P, H = 1, 1, 0.5
        z = torch.linspace(-12, 12, 240001, dtype=DOUBLE)
        p = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        left = (1 - H) / 2 * float((p * z**4 * (z**2 > 2)).sum())
        bound = (1 - H) / 2 * d * (d + 2 / P) * chi2_above(d * P + 4, 2 * d * P)
        right = scale * bound if repaired else math.exp(-m * d * P)
        said = f"m = {m} equal clients f_i = a x, H = L/2, d = P = 1: {left:.4f} against {right:.4g} eta^2 L G^2"
        holds = left <= right * (1 + 1e-3)
        data = {
            "f_i": "a x",
            "m": m,
            "d": d,
            "P": P,
            "H": "L/2",
            "kappa": 1,
            "left": digits(left),
            "right": digits(right),
        }
        return Outcome(holds, "exact", left / right, said, None if holds else data)

    return check


CLAIMS: list[Claim] = [
    decomfl(
        "theorem5",
        "inequality",
        assumes=(A1, A2, A3, A4, Printed(STEP, "Theorem 5")),
        check=check_theorem5,
        control=check_runs("Gaussian", "theorem5.control", 0.57, sphere=False),
        broken="0.57 of the repaired bound",
        error="wrong constant",
        repair=REPAIR5,
        repaired=worst_of(check_runs("Gaussian", "theorem5", sphere=False), coefficients(Fraction(1))),
        implies="the sphere's fourth moment is used for Gaussian z, up to three times larger (d = 1); the term in G "
        "cannot help: it falls exponentially in the number of clients, the noise only like 1/m; and it has the unit of "
        "a loss and not of a squared gradient",
    ),
    decomfl(
        "eq73",
        "inequality",
        assumes=(A3, A4),
        reading="the indicator of A inside the expectation, as in the second line; the first line has it outside",
        check=worst_of(check_73(True), check_73(True, 1.0)),
        control=check_73(False, 1.0),
        broken="the sharper form, with eta ||grad f||^2, and H in place of L outside the region",
    ),
    decomfl(
        "eq74",
        "inequality",
        assumes=(A3,),
        check=check_74(0.0),
        control=check_74(0.49),
        broken="0.49 mu L ||z|| beside G",
        error="missing assumption",
        repair="(eta/(mP)) sum ||z_p||^2 (G(x_r) + mu L ||z_p||/2): the gradient is taken at x', not at x_r; as "
        "printed for mu -> 0",
        repaired=check_74(0.5),
        implies="near a point without gradient the step is the smoothing's, and Assumption 4's region shrinks to "
        "that point",
    ),
    decomfl(
        "eq75",
        "inequality",
        assumes=(A3,),
        check=check_75(1.0),
        control=check_75(0.0, 2.1),
        broken="2.1 d in place of 2d",
        error="missing assumption",
        repair="for mu -> 0 (or with G(x_r) + mu L ||z||/2 in the definition of A)",
        repaired=check_75(0.0),
        implies="for fixed mu the event A^c does not become rare near a solution: there it has probability 1",
    ),
    decomfl(
        "eq76",
        "identity",
        check=check_76(2, 1, 2),
        control=check_76(2, 2, 1),
        broken="directions that count once, as clients do: d degrees of freedom for P = 2",
        error="wrong independence",
        repair="P[chi_{dP} > 2dP]: all clients use the same z_p",
        repaired=worst_of(check_76(2, 1, 1), check_76(50, 3, 3)),
        implies="the tail does not shrink with the number of clients",
    ),
    decomfl(
        "chi2tail",
        "inequality",
        check=check_tail(1 / 16),
        control=check_tail(0.16),
        broken="exp(-0.16 n), just beyond Chernoff's exponent",
    ),
    decomfl(
        "eq77",
        "inequality",
        assumes=(A3, A4),
        check=check_77(8, False),
        control=check_77(8, True, 0.99),
        broken="0.99 of the repaired right side",
        error="wrong independence",
        repair="<= (eta^2/2) ||LI - H|| G^2 d(d + 2/P) P[chi_{dP+4} > 2dP] for mu -> 0: it falls with dP, not with m",
        repaired=check_77(8, True),
        implies="no constant in Omega helps: with equal clients the left side does not depend on m",
    ),
]
