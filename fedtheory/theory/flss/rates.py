"""FLSS: the corollaries of C.4 and their proofs in C.10, and the tables of App. B recomputed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import torch

from fedtheory.algorithms.flss import FLSS
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.core import meter
from fedtheory.core.message import cost
from fedtheory.core.simulate import play_round
from fedtheory.figures.flss.items import COSTS3, COSTS4, SETTINGS, fits, method, printed_cost, sent
from fedtheory.problems.models.networks import flss_cnn, resnet18
from fedtheory.problems.quadratic import Quadratic
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.flss.proof import KEPT, POINT, PURE, THIN, blind, ratchet, squares
from fedtheory.theory.flss.round import ROOT, Edge, Instance, admissible, build, dump, play, square
from fedtheory.theory.search import ROUNDING, implies, number, ratio, reals
from fedtheory.theory.shown import digits

# Runs over several rounds, every path of noise and client sets


@dataclass(frozen=True)
class Path:
    """A run of FLSS.

    Fields:
        at: problem and constants; x is where it starts.
        deltas: E||w_t - w^*||^2 after 0, 1, ... rounds; gaps: E F(w_t) - F^*.
        G2: G^2 over all that the run visits; Gamma.
    """

    at: Instance
    deltas: list[float]
    gaps: list[float]
    G2: float
    Gamma: float

    @property
    def C(self) -> float:
        """(4) with rho_R = 0, the smallest right side there is."""
        at = self.at
        noise = (2 + at.mu) * self.G2 * squares(at.tau) + 2 * at.tau**2 * self.G2 / at.M
        return noise + (2 * at.L * at.tau**2 + 4 * at.L * at.tau) * self.Gamma


def path(at: Instance, lrs: Sequence[float]) -> Path:
    """One round per step size, all paths enumerated."""
    problem, states, odds = at.problem, at.x[None], torch.ones(1, dtype=torch.float64)
    best = float(problem.values(torch.zeros_like(at.x)).mean())
    G2, Gamma = 0.0, 0.0
    deltas, gaps = [float(square(at.x))], [float(problem.values(at.x).mean()) - best]
    for lr in lrs:
        after, weights = [], []
        for x, p in zip(states, odds):
            q = play(replace(at, x=x, lr=lr))
            G2, Gamma = max(G2, float(q.G2)), float(q.Gamma)
            after.append(q.w.flatten(0, 1))
            weights.append(p * q.all_odds.repeat(len(q.w)) / len(q.w))
        states, odds = torch.cat(after), torch.cat(weights)
        deltas.append(float(square(states) @ odds))
        gaps.append(float(problem.values(states).mean(0) @ odds) - best)
    return Path(at, deltas, gaps, G2, Gamma)


# tau = 1 with noise and sampled clients over three rounds; long runs without either
RUNS = [
    (Edge(tau=1, d=1, R=1), 3),
    (Edge(tau=1, R=1, kappa=0.5), 3),
    (Edge(d=1, R=1), 2),
    (Edge(tau=1, N=1, d=1, R=1, still=True, kappa=1.0), 5),
    (PURE, 5),
    (replace(POINT, L=2.0), 5),
    (Edge(M=2, noise=False), 40),
    (Edge(M=2, noise=False, L=20.0, kappa=0.5), 40),
    (replace(THIN, M=2, noise=False), 40),
    (Edge(tau=3, N=1, M=1, noise=False, shape="spline"), 40),
]


NOISY = [(PURE, 1)]  # where (32) is tight
QUIET = [(replace(POINT, L=2.0), 1)]  # where (6) is tightest
FEW = [*RUNS[:2], (replace(POINT, L=2.0), 5)]

Bounds = Callable[[Path, int], tuple[float, float]]  # a run and T -> (left, right)


def schedule(at: Instance, rounds: int) -> list[float]:
    """eta_1, eta_2, ... of Corollary C.4.2."""
    first = schedule_start(at)
    return [2 / (at.mu * at.B * (first + t)) for t in range(1, rounds + 1)]


def schedule_start(at: Instance) -> float:
    """gamma of Corollary C.4.2."""
    return 2 * at.q**2 / (at.mu * at.tau * (at.q - 1)) - 1


def eq32(noise: float = 1.0) -> Bounds:
    def bounds(run: Path, T: int) -> tuple[float, float]:
        at = run.at
        keep = 1 - at.mu * at.lr * at.B
        total = sum(at.lr**2 * keep ** (T - t) * run.C for t in range(1, T + 1))
        return run.deltas[T], keep**T * run.deltas[0] + noise * total

    return bounds


def eq33(noise: float = 1.0) -> Bounds:
    """(5), (33): also the step from ||.||^2 to F."""

    def bounds(run: Path, T: int) -> tuple[float, float]:
        return run.gaps[T], run.at.L / 2 * eq32(noise)(run, T)[1]

    return bounds


def right_of_6(run: Path, T: int, less: int = 1) -> float:
    """kappa/(gamma + T - less) (...): less = 1 is (6), less = 0 is (36)."""
    at, first = run.at, schedule_start(run.at)
    bracket = 2 * run.C / (at.mu * at.B**2) + at.mu * (first + 1) / 2 * run.deltas[0]
    return at.L / at.mu / (first + T - less) * bracket


def eq6(share: float = 1.0, less: int = 1) -> Bounds:
    """T - 1 rounds lead from w_1 to w_T."""
    return lambda run, T: (run.gaps[T - 1], share * right_of_6(run, T, less))


def corollary(
    bounds: Sequence[Bounds],
    falling: bool,
    mu_zero: bool = False,
    runs: Sequence[tuple[Edge, int]] = RUNS,
) -> Check:
    """The bounds along runs of FLSS; falling: with the step sizes of C.4.2, else with two constant ones."""

    def check(effort: str) -> Outcome:
        worst, where, count = 0.0, None, 0
        for number_, (edge, rounds) in enumerate(runs):
            for share in (1.0,) if falling else (1.0, 0.2):
                for i in range(2 if effort == "quick" else 12):
                    g = ROOT.fold("run", number_, i).generator()
                    z = torch.randn(edge.size, generator=g, dtype=torch.float64)
                    at = build(z, replace(edge, share=share, kappa=0.0 if mu_zero else edge.kappa))
                    run = path(at, schedule(at, rounds) if falling else [at.lr] * rounds)
                    for T in range(1, rounds + 1):
                        count += 1
                        for pair in bounds:
                            value = ratio(*pair(run, T))
                            if value > worst:
                                worst, where = value, (run, T, pair)
        holds = worst <= 1 + ROUNDING
        said = f"{count} points of runs of FLSS, all paths of noise and client sets enumerated, rho_R = 0"
        return outcome(holds, worst, said, where)

    return check


def outcome(holds: bool, margin: float, said: str, where: tuple[Path, int, Bounds] | None) -> Outcome:
    """What a bound along runs came to; where: the worst run, T and bound."""
    if holds or where is None:
        return Outcome(holds, "run", margin, said)
    run, T, pair = where
    left, right = pair(run, T)
    data = {"T": T, "instance": dump(run.at), "left": digits(left), "right": digits(right)}
    margin_ = margin if math.isfinite(margin) else None
    return Outcome(False, "run", margin_, f"{said}: broken at T = {T}: left {left:.4g}, right {right:.4g}", data)


def corollary_thin(bounds: Bounds) -> Check:
    """L (tau + 1) < 1: L = mu = 1/4, tau = 1, one client, no noise; gamma = -5."""

    def check(effort: str) -> Outcome:
        at = build(torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64), replace(POINT, L=0.25))
        run = path(at, schedule(at, 1))
        left, right = bounds(run, 1)
        said = f"F = w^2/8, tau = 1, gamma = {schedule_start(at):g}"
        return outcome(left <= right, ratio(left, right), said, (run, 1, bounds))

    return check


def corollary_kept(bounds: Bounds, rounds: int = 0) -> Check:
    """One sample kept for all steps of a round (`ratchet`), T - 1 = `rounds` of the falling steps; 0: one constant one.

    In every scenario w_{t+1} is affine in w_t, so that two rounds of FLSS, from 0 and from 1, give the exact mean and
    mean square of w_T.
    """

    def check(effort: str) -> Outcome:
        at = ratchet()
        admissible(at)
        if not rounds:
            run = path(at, [at.lr])
            left, right = bounds(run, 1)
            return outcome(left <= right, ratio(left, right), KEPT, (run, 1, bounds))
        at = replace(at, x=2 * at.x)
        mean, square_ = float(at.x[0]), float(square(at.x))
        deltas, G2 = [square_], 0.0
        for lr in schedule(at, rounds):
            zero, one, two = (play(replace(at, x=x * at.x, lr=lr)) for x in (0.0, 0.5, 1.0))
            start, slope = zero.w[0, :, 0], (one.w - zero.w)[0, :, 0]
            if float((two.w[0, :, 0] - start - 2 * slope).abs().max()) > 1e-9:
                raise AssertionError("w_{t+1} is not affine in w_t")
            rise = one.noisy - zero.noisy
            steep, mixed, flat = (zero.E(v) for v in (square(rise), (rise * zero.noisy).sum(-1), square(zero.noisy)))
            G2 = max(G2, float((steep * square_ + 2 * mixed * mean + flat).max()))
            p = zero.all_odds
            moments = float(slope @ p), float(start @ p), float(slope**2 @ p), float(slope * start @ p)
            square_ = moments[2] * square_ + 2 * moments[3] * mean + float(start**2 @ p)
            mean = moments[0] * mean + moments[1]
            deltas.append(square_)
        run = Path(at, deltas, [delta / 2 for delta in deltas], G2, 0.0)
        left, right = bounds(run, rounds + 1)
        said = f"{KEPT}, w_1 = (2, 0), {rounds} rounds"
        return outcome(left <= right, ratio(left, right), said, (run, rounds + 1, bounds))

    return check


def corollary_blind(bounds: Bounds, T: int) -> Check:
    """3.4.4 for the unconditional mean only: w_t = +-(1, 0), P = (0, 1)^T; no round moves the model."""

    def check(effort: str) -> Outcome:
        at = blind()
        for one in (at, replace(at, x=-at.x)):
            if float((play(one).w - one.x).abs().max()) > 0:
                raise AssertionError("the model moved")
        q = play(at)
        run = Path(at, [1.0] * (T + 1), [0.5] * (T + 1), 2 * float(q.G2), 0.0)  # 2 G^2: rho_R = 1 and more
        left, right = bounds(run, T)
        data = {"w_t": "+-(1, 0), each half the time", **dump(at), "T": T, "left": digits(left), "right": digits(right)}
        said = f"E[g_t] = 0 lies in span P, E[g_t | w_t] does not; T = {T}: left {left:.4g}, right {right:.4g}"
        return Outcome(left <= right, "exact", ratio(left, right), said, data if left > right else None)

    return check


# C.10: algebra


def recursion_chain(rest: int = 1) -> Callable[[], tuple[list[Any], Any]]:
    """(3) carries (32) from T to T + 1: S_{T+1} = (1 - p) S_T + 1 with p = mu eta B, c = eta^2 C. rest: the + 1."""

    def make() -> tuple[list[Any], Any]:
        p, c, first, now, after, kept, total = reals("p c first now after kept total")
        premises = [p >= 0, p <= 1, c >= 0, first >= 0, kept >= 0, total >= 0]
        premises += [now <= kept * first + total * c, after <= (1 - p) * now + c]
        return premises, after <= (1 - p) * kept * first + ((1 - p) * total + rest) * c

    return make


def eq34_chain(share: str = "1") -> Callable[[], tuple[list[Any], Any]]:
    """Delta_t <= v/s gives Delta_{t+1} <= v/(s + 1), s = t + gamma, b = beta mu B > 1, c = beta^2 C.

    share: v (b - 1) >= share c, the first part of the maximum.
    """

    def make() -> tuple[list[Any], Any]:
        s, b, c, v, now, after = reals("s b c v now after")
        premises = [s > 0, b > 1, b <= s, c >= 0, v >= 0, now >= 0, now * s <= v]
        premises += [after * s * s <= (s - b) * s * now + c]
        return [*premises, v * (b - 1) >= number(share) * c], after * (s + 1) <= v

    return make


def check_eta1(thin: bool, two: str = "2") -> Check:
    """The choice of C.10.2: gamma > 0, beta > 1/(mu B), eta_1 <= min{1/(mu B), 1/q} = 1/q; q = L (tau + 1).

    thin: for every q > 0 instead of q > 1; two: the factor in gamma + 1.
    """

    def check(effort: str) -> Outcome:
        import z3

        mu, tau, q, gamma, B, eta = reals("mu tau q gamma B eta")
        premises = [mu > 0, tau >= 1, q > 0, mu * (tau + 1) <= q, B * q == tau * (q - 1)]
        premises += [(gamma + 1) * mu * tau * (q - 1) == number(two) * q * q, eta * mu * B * (gamma + 1) == 2]
        premises.append(q != 1 if thin else q > 1)
        wanted = z3.And(gamma > 0, B > 0, eta * q <= 1, eta * mu * B <= 1, mu * B <= q)
        found = implies(premises, wanted, timeout_ms=20000)
        if found.holds:
            said = "gamma > 0, B > 0 and eta_1 <= 1/(L (tau + 1)) <= 1/(mu B), which never binds (z3), mu <= L"
            return Outcome(True, "smt", None, said)
        if not thin:
            return Outcome(False, "smt", None, found.detail, found.model)
        L, tau_ = Fraction(1, 4), 1
        q_ = L * (tau_ + 1)
        gamma_ = 2 * q_**2 / (L * tau_ * (q_ - 1)) - 1
        steps = [str(2 / (L * (tau_ - tau_ / q_) * (gamma_ + t))) for t in (1, 2, 3, 6)]
        data = {"L = mu": str(L), "tau": "1", "B": str(tau_ - tau_ / q_), "gamma": str(gamma_), "eta_1, 2, 3, 6": steps}
        said = f"L = mu = 1/4, tau = 1: gamma = {gamma_}, steps {', '.join(steps)} in rounds 1, 2, 3, 6"
        return Outcome(False, "smt", None, said, data)

    return check


def check_35(wrong: int = 0) -> Check:
    """max <= sum, and beta^2 C/(beta mu B - 1) = 4 C/(mu^2 B^2) at beta = 2/(mu B)."""

    def check(effort: str) -> Outcome:
        import sympy

        mu, B, C = sympy.symbols("mu B C", positive=True)
        beta = 2 / (mu * B)
        gap = sympy.simplify(beta**2 * C / (beta * mu * B - 1) - (4 - wrong) * C / (mu**2 * B**2))
        u, w = reals("u w")
        import z3

        most = implies([u >= 0, w >= 0], z3.If(u > w, u, w) <= u + w)
        said = f"max <= sum (z3); beta^2 C/(beta mu B - 1) - {4 - wrong} C/(mu B)^2 = {gap}"
        return Outcome(gap == 0 and most.holds, "symbolic", None, said, {"gap": str(gap)} if gap != 0 else None)

    return check


def check_36(index: str, front: str = "1/2") -> Check:
    """(L/2) v/(gamma + T) <= (kappa/(gamma + T)) (2 C/(mu B^2) + mu (gamma + 1) Delta_1/2); index "t": any t for T."""

    def check(effort: str) -> Outcome:
        import sympy

        if index == "t":
            at = build(torch.tensor([0.3, 0.0, 1.0, 0.5], dtype=torch.float64), Edge(N=1, tau=1, d=1, R=1, kappa=1.0))
            run = path(at, schedule(at, 2))
            left, right = run.gaps[2], right_of_6(run, 10**6, 0)
            said = f"T = 3 on the left, t = 10^6 on the right: {left:.3g} against {right:.3g}"
            return Outcome(left <= right, "run", left / right, said, {"T": 3, "t": 10**6, "left": left, "right": right})
        L, mu, B, C, gamma, T, first = sympy.symbols("L mu B C gamma T Delta_1", positive=True)
        v = 4 * C / (mu**2 * B**2) + (gamma + 1) * first
        right = L / mu / (gamma + T) * (2 * C / (mu * B**2) + mu * (gamma + 1) / 2 * first)
        gap = sympy.simplify(L * sympy.Rational(front) * v / (gamma + T) - right)
        said = f"{front} L v/(gamma + T) with v of (35), minus the right side: {gap}"
        return Outcome(gap == 0, "symbolic", None, said, None if gap == 0 else {"gap": str(gap)})

    return check


# App. B: tables

METHODS = (
    "FedAvg",
    "FedProx",
    "Moon",
    "FedGen",
    "FedNTD",
    "FedAvg+FLSS",
    "Fetchsgd",
    "Signsgd+EF",
    "STC",
    "Sign+EF+FLSS",
)
TABLE2: dict[str, tuple[float, ...]] = {  # FMNIST, Cifar100*, TINY, each beta = 0.1, 0.5, 1
    "FedAvg": (85.06, 91.02, 91.18, 23.04, 26.42, 27.43, 14.26, 15.61, 18.47),
    "FedDyn": (83.11, 90.68, 90.92, 24.41, 28.65, 29.09, 15.63, math.nan, 19.07),
    "FedAvg+FLSS": (86.25, 91.64, 91.29, 24.31, 29.32, 30.68, 17.01, 17.84, 19.00),
    "Signsgd+EF": (80.79, 90.76, 90.37, 22.57, 25.99, 26.01, 14.02, 14.20, 16.86),
    "Sign+EF+FLSS": (81.32, 91.05, 91.02, 23.01, 27.59, 26.17, 13.20, 15.04, 17.32),
}
COLUMNS2 = [f"{data} beta={beta}" for data in ("FMNIST", "Cifar100*", "TINY") for beta in (0.1, 0.5, 1)]
NAN = math.nan
TABLE3: dict[str, tuple[float, ...]] = {  # CNN with 1, 5, 10 local epochs, ResNet-18 with 1, 5, 10
    "FedAvg": (59.88, 65.29, 65.31, 48.51, 56.17, 58.88),
    "FedProx": (59.77, 65.38, 65.11, 48.44, 56.03, 58.27),
    "Moon": (59.93, 65.33, 65.26, 48.74, 56.28, 59.24),
    "FedGen": (60.03, 65.61, 65.12, 49.23, 56.24, 59.04),
    "FedNTD": (60.42, 65.52, 65.15, 49.64, 56.42, 59.06),
    "FedAvg+FLSS": (62.31, 67.19, 65.53, 51.92, 57.34, 58.93),
    "Fetchsgd": (52.20, 59.83, 58.57, NAN, 54.18, 56.04),
    "Signsgd+EF": (59.21, 64.27, 63.95, 47.22, 54.23, 55.68),
    "STC": (59.55, 59.02, 62.38, 47.91, 55.03, 55.35),
    "Sign+EF+FLSS": (59.01, 64.69, 64.06, 49.02, 54.77, 56.81),
}
TABLE1 = {  # by what is projected and by the factor of the learning rate, sr
    "update": {1: 57.34, 3: 60.02},
    "gradient": {1: 55.98, 3: 57.58, 10: 56.58},
    "both": {1: 56.10, 3: 57.01, 10: 56.28},
}


def check_table2(pairs: Sequence[tuple[str, str]], excepted: Sequence[str] = ()) -> Check:
    """Whether the first method is above the second in every column, and in the columns that are excepted not."""

    def check(effort: str) -> Outcome:
        below, count, wrong = [], 0, []
        for better, worse in pairs:
            for column, a, b in zip(COLUMNS2, TABLE2[better], TABLE2[worse]):
                if math.isnan(a) or math.isnan(b):
                    continue
                count += 1
                told = f"{better}, {column}" in excepted
                if a <= b:
                    below.append(f"{better} {a} <= {worse} {b} at {column}")
                if (a <= b) != told:
                    wrong.append(f"{better} {a}, {worse} {b} at {column}")
        said = f"{count - len(below)} of {count} printed pairs" + (f"; not: {'; '.join(below)}" if below else "")
        return Outcome(not wrong, "exact", None, said, {"wrong": wrong} if wrong else None)

    return check


PLAIN = ("FedAvg", "FedProx", "Moon", "FedGen", "FedNTD")  # they send the whole model


def check_most(method: str, gains: bool, others: Sequence[str] = ()) -> Check:
    """Whether a method is above most of the others (default: all without FLSS) in all six columns of Table 3.

    gains: and its gain over its base falls with the number of local epochs.
    """

    def check(effort: str) -> Outcome:
        against = others or [name for name in METHODS if "FLSS" not in name]
        wins = []
        for column, own in enumerate(TABLE3[method]):
            values = [TABLE3[name][column] for name in against if not math.isnan(TABLE3[name][column])]
            wins.append((sum(own > value for value in values), len(values)))
        base = TABLE3["FedAvg" if method == "FedAvg+FLSS" else "Signsgd+EF"]
        gain = [round(a - b, 2) for a, b in zip(TABLE3[method], base)]
        falls = all(gain[i] > gain[i + 1] for i in (0, 1, 3, 4))
        holds = all(2 * won > of for won, of in wins) and (falls or not gains)
        said = (
            f"{method} is above {', '.join(f'{won} of {of}' for won, of in wins)}; its gains over its base are {gain}"
        )
        return Outcome(holds, "exact", None, said, None if holds else {"above": [list(w) for w in wins], "gains": gain})

    return check


def check_gains(relative: bool, printed: tuple[float, float] = (2.43, 3.41)) -> Check:
    def check(effort: str) -> Outcome:
        a, b = TABLE3["FedAvg+FLSS"], TABLE3["FedAvg"]
        gains = [round((a[i] - b[i]) / (b[i] / 100 if relative else 1), 2) for i in (0, 3)]
        holds = gains == list(printed)
        said = f"differences {'in percent of FedAvg' if relative else 'in points'}: {gains}, against {list(printed)}"
        return Outcome(holds, "exact", None, said, None if holds else {"gains": gains})

    return check


def parameters() -> dict[str, int]:
    """D of the networks that the printed costs point to; ResNet-18's first layer is 7 x 7 there, 3 x 3 here."""
    stem = 3 * 64 * (7**2 - 3**2)
    return {
        "CNN, 10 classes": flss_cnn().layout.size,
        "CNN, 100 classes": flss_cnn(classes=100).layout.size,
        "ResNet-18": resnet18().layout.size + stem,
    }


def words(name: str, size: int, rounds: range, **options: Any) -> float:
    """32-bit words that one client uploads in these rounds, on the messages of the algorithm with the paper's options.

    FLSS: a warm-up of 200 rounds (B.3), then one whole update in five, R = 50; signs first, then the projection.
    """
    algorithm = method(name, SETTINGS["paper"])
    if isinstance(algorithm, FLSS):
        algorithm = FLSSReading(**(vars(algorithm) | {"rank": 50, "order": "sign"} | options))
        kinds = [algorithm.projects(t) for t in rounds]
    else:
        kinds = [False] * len(rounds)
    firsts = {kind: rounds[kinds.index(kind)] for kind in set(kinds)}
    return sum(kinds.count(kind) * sent(algorithm, size, range(t, t + 1)) for kind, t in firsts.items())


def costs(rounds: range, tables: Sequence[tuple[str, str, int]], said: str, **options: Any) -> Outcome:
    """Printed costs, (method, cost, D), against what is sent: equal when rounded or, as some are, cut off."""
    off, told = 0.0, {}
    for name, printed, size in tables:
        count = words(name, size, rounds, **options)
        off = max(off, count / printed_cost(printed), printed_cost(printed) / count)
        if fits(printed, count) == "neither rounded nor cut off":
            told[f"{name}, D = {size}"] = f"printed {printed}, counted {count / 1e6:.4g} M"
    said = (
        f"{said}, 32-bit words up per client: {len(tables) - len(told)} of {len(tables)} costs come out digit by digit"
    )
    return Outcome(not told, "exact", digits(off), said, told or None)


def check_table3_cost(first: int) -> Check:
    """The printed costs as those of rounds `first` to 400."""

    def check(effort: str) -> Outcome:
        sizes = parameters()
        networks = sizes["CNN, 10 classes"], sizes["ResNet-18"]
        tables = [(name, *pair) for name, texts in COSTS3.items() for pair in zip(texts, networks)]
        return costs(range(first, 400), tables, f"rounds {first} to 399")

    return check


def check_table4_cost(first: int = 0, refresh: int = 5) -> Check:
    """FedAvg+FLSS on Cifar10 and Cifar100 as the costs of rounds `first` to 400."""

    def check(effort: str) -> Outcome:
        sizes, printed = parameters(), COSTS4["FedAvg+FLSS"]
        tables = [
            ("FedAvg+FLSS", text, sizes[f"CNN, {10 if column < 3 else 100} classes"])
            for column, text in enumerate(printed)
        ]
        return costs(range(first, 400), tables, f"rounds {first} to 399", refresh=refresh)

    return check


def check_b1(project: str = "update") -> Check:
    """Upload and products counted; accuracy at sr = 1 against FedAvg's in Table 3, at every sr against the others'."""

    def check(effort: str) -> Outcome:
        problem = Quadratic.random(2, 40, ROOT.fold("b1"))
        algorithm = FLSS(1e-3, 1, 2, warm_up=2, refresh=0, project=project)
        state = algorithm.init(problem, problem.start() + 1, ROOT)
        sizes = []
        for t in range(3):
            state, up, _ = play_round(algorithm, problem, state, problem.clients, ROOT.fold(t))
            sizes.append(cost(up).scalars // problem.n)
        g = torch.ones(problem.n, problem.d, dtype=torch.float64)
        P = state.server.G.basis(algorithm.rank)
        products, few = meter.multiplications(lambda: P.lift(P.project(g))) // problem.n, 2 * problem.d * algorithm.rank
        own, base = TABLE1[project], TABLE3["FedAvg"][4]
        above = all(own[sr] > row[sr] for name, row in TABLE1.items() if name != project for sr in own if sr in row)
        holds = sizes[-1] == algorithm.rank and products == few and own[1] > base and above
        said = (
            f"an upload has {sizes[-1]} numbers (D = {problem.d}, R = {algorithm.rank}), projecting and lifting takes "
            f"{products} products (2 D R = {few}); printed at sr = 1: {own[1]} against FedAvg's {base}"
            f"{'' if above else '; not above the other columns of Table 1'}"
        )
        data = {"upload": sizes[-1], "Table 1": list(own.values()), "FedAvg in Table 3": base}
        return Outcome(holds, "exact", None, said, None if holds else data)

    return check
