"""FedSub: Theorem 1 and its observations on exact floors; the figures; the growth of rounding errors."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import torch
from scipy.special import digamma, polygamma

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.loop import play_round
from fedtheory.maps.subspace import Coordinate, Gaussian, Identity, Projection, Spherical
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.models.networks import cifar_resnet
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running import records
from fedtheory.running.simulate import run
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedsub.identities import traces_from
from fedtheory.theory.fedsub.lemma2 import lemma2
from fedtheory.theory.fedsub.printed import LR, RANK, RANKS, TAU, M, methods
from fedtheory.theory.fedsub.round import ROOT, Edge, floor46, right_lemma2, step, survives, symbols
from fedtheory.theory.instances import Smooth, coordinate_frames, exact, fixed, plane_frames, rotation
from fedtheory.theory.rounding import digits, level, listed
from fedtheory.theory.search import same

# Sec. 4: floors, exactly, from the second moment of the stationary law


def affine_rounds(
    problem: Smooth, frames: Iterable[torch.Tensor | Sequence[torch.Tensor]], lr: float, tau: int, dual: bool
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """One round as z -> A z + b for every frame, z = (x, u_1, ..., u_{n-1}), by FedSub's own lines; quadratics only.

    frames: each a basis (m, r), or one for every layer.
    """
    n, d = problem.n, problem.d
    size = d * n if dual else d

    def after(z: torch.Tensor, P: Any, algorithm: FedSub) -> torch.Tensor:
        u = torch.zeros(n, d, dtype=torch.float64)
        if dual:
            u[:-1] = z[d:].view(n - 1, d)
            u[-1] = -u[:-1].sum(0)
        _, _, x, turned = step(algorithm, problem, z[:d], lr * tau * P.project(u), P)
        return torch.cat([x, (P.lift(turned) / (lr * tau))[:-1].flatten()]) if dual else x

    out = []
    for frame in frames:
        algorithm = FedSub(lr, tau, fixed(frame, "isotropic"), dual=dual)
        P = algorithm.projection.draw(problem.layout, ROOT, torch.float64)
        b = after(torch.zeros(size, dtype=torch.float64), P, algorithm)
        A = torch.stack([after(e, P, algorithm) - b for e in torch.eye(size, dtype=torch.float64)], dim=1)
        out.append((A, b))
    return out


def floor(problem: Smooth, frames: torch.Tensor, lr: float, tau: int, dual: bool = True) -> float:
    """lim_k E||grad f(x^k)||^2; inf if it grows."""
    return at_rest(problem, frames, lr, tau, dual)[0]


def at_rest(problem: Smooth, frames: torch.Tensor, lr: float, tau: int, dual: bool = True) -> tuple[float, float]:
    """lim_k of E||grad f(x^k)||^2 and of the clients' spread (1/n) sum_i E||grad f_i(x^k) - grad f(x^k)||^2.

    From the linear equations of the stationary second moment; inf if it grows.
    """
    maps = affine_rounds(problem, frames, lr, tau, dual)
    size, d = len(maps[0][1]), problem.d
    A = torch.stack([a for a, _ in maps])
    b = torch.stack([v for _, v in maps])
    second = torch.stack([torch.kron(a, a) for a in A]).mean(0)
    if float(torch.linalg.eigvals(second).abs().max()) >= 1 - 1e-12:
        return math.inf, math.inf
    mean = torch.linalg.solve(torch.eye(size).double() - A.mean(0), b.mean(0))
    cross = torch.einsum("kij,j,kl->il", A, mean, b) / len(maps)
    rest = cross + cross.T + torch.einsum("ki,kj->ij", b, b) / len(maps)
    S = torch.linalg.solve(torch.eye(size**2).double() - second, rest.flatten()).view(size, size)
    one = torch.eye(d, dtype=torch.float64)
    at0 = problem.gradients(torch.zeros(d, dtype=torch.float64))
    H = torch.stack([problem.gradients(e) - at0 for e in one], dim=-1)
    square = lambda H, a: float((H @ S[:d, :d] @ H.T).trace() + 2 * a @ H @ mean[:d] + a @ a)
    apart = [square(h - H.mean(0), a - at0.mean(0)) for h, a in zip(H, at0)]
    return square(H.mean(0), at0.mean(0)), sum(apart) / len(apart)


def pair(gap: float = 1.0, turn: float = 0.6, pull: float | None = None) -> Smooth:
    """Two clients in the plane with different curvatures and opposed pulls, minimised at 0; gap=0: the same twice.

    `pull`: of the pulls alone; None: as the gap.
    """
    q = torch.stack([torch.eye(2).double(), rotation(turn * gap)])
    h = torch.tensor([[1.0, 0.5], [1.0, 0.5]], dtype=torch.float64)
    h[1] = h[0] + gap * torch.tensor([-0.4, 0.3])
    a = (gap if pull is None else pull) * torch.tensor([[1.0, -0.5], [-1.0, 0.5]], dtype=torch.float64)
    zero = torch.zeros(2, 2, dtype=torch.float64)
    return Smooth(h, zero, a=a, q=q)


def check_parts(changes: str) -> Check:
    """Whether an error remains (exact floor) for different clients, tau = 2 and theta_m = 2, or with one change."""

    def check(effort: str) -> Outcome:
        frames = coordinate_frames(2, 1, scale="isotropic")
        value = {
            "none": lambda: floor(pair(), frames, 0.1, 2),
            "homogeneous": lambda: floor(pair(0.0), frames, 0.1, 2),
            "one Hessian": lambda: floor(pair(0.0, pull=1.0), frames, 0.1, 2),
            "P = I": lambda: floor(pair(), torch.eye(2).double()[None], 0.1, 2),
        }[changes]()
        holds = value > 1e-9
        small = level(value, 1e-15)[1]
        said = f"lim E||grad f||^2 {small} with two clients in the plane, eta = 0.1, tau = 2 (exact second moment)"
        data = None if holds else {"change": changes, "floor": small, "tau": 2, "eta": "1/10"}
        return Outcome(holds, "exact", None, said, data)

    return check


def check_no_floor_repaired(effort: str) -> Outcome:
    """The floor is there only with clients that differ in more than a linear term, tau >= 2 and P != I (quadratics)."""
    frames = coordinate_frames(2, 1, scale="isotropic")
    values = {
        "heterogeneous, tau = 2": floor(pair(), frames, 0.1, 2),
        "homogeneous": floor(pair(0.0), frames, 0.1, 2),
        "one Hessian": floor(pair(0.0, pull=1.0), frames, 0.1, 2),
        "tau = 1": floor(pair(), frames, 0.1, 1),
        "half the step": floor(pair(), frames, 0.05, 2),
    }
    ratio = values["heterogeneous, tau = 2"] / values["half the step"]
    holds = all(values[name] < 1e-20 for name in ("homogeneous", "one Hessian", "tau = 1")) and ratio > 3
    shown = listed({name: level(value, 1e-15)[1] for name, value in values.items()})
    return Outcome(holds, "exact", None, f"floors: {shown}; halving eta divides by {ratio:.2f}")


# Theorem 1


def check_theorem(c: float, product: float = 4.0) -> Check:
    """For the constant c in the step-size condition: L_f = c/product, eta = c/L_f^2, so that eta L_f = product.

    From x^0 = product/2 >= 1 a step of gradient descent on L_f huber(x) leads to -x^0, and back; below 1 it converges.
    """

    def check(effort: str) -> Outcome:
        L = c / product
        eta, rounds = c / L**2, 20 if effort == "quick" else 200
        row = lambda v: torch.tensor([[v]], dtype=torch.float64)
        problem = Smooth(row(L), row(0.0), shape="huber")
        start = torch.tensor([product / 2], dtype=torch.float64)
        trace = traces_from(FedSub(eta, 1, Identity()), problem, start, 2 * rounds)
        squares = [float(problem.gradients(x).mean(0) @ problem.gradients(x).mean(0)) for x, _ in trace[:-1]]
        mean, later = sum(squares[:rounds]) / rounds, sum(squares) / (2 * rounds)
        data = {
            "n": 1, "tau": 1, "P": "I (theta_r = theta_m = 1)", "f": "L_f huber(x)", "x^0": exact(product / 2),
            "c": exact(c), "L_f": exact(L), "eta": exact(eta), "B_g": exact(L),
            "x^k": ", ".join(f"{float(x):g}" for x, _ in trace[:3]) + ", ...", "mean ||grad f||^2": exact(later),
            "bound": "C/(K eta), which tends to 0", "slack of eta <= c/(theta_r theta_m^2 L_f^2 n tau)": "0",
        }  # fmt: skip
        holds = later < 0.75 * mean
        said = (
            f"c = {exact(c)}, L_f = c/{product:g}, eta = c/L_f^2: x^k = {data['x^k']}, mean ||grad f||^2 = {mean:.4g} "
            f"after {rounds} rounds and {later:.4g} after {2 * rounds} (L_f^2 = {L**2:.4g}), while the bound C/(K eta) "
            f"halves"
        )
        return Outcome(holds, "exact", None, said, None if holds else data)

    return check


def printed_bound(weight: Callable[[Any], Any]) -> tuple[Any, dict[str, Any]]:
    """(46) summed over k and divided: 8 theta_m/(eta tau) times Omega^0/K and the last term of (46); its symbols.

    weight: n -> what multiplies sum_i ||Y_i - Ybar||^2 in Omega; the last term is n times it times Lemma 2's.
    """
    import sympy

    s = symbols()
    Omega, K, B2 = sympy.symbols("Omega0 K B_g2", positive=True)
    last = s.theta_m * s.n * weight(s.n) * right_lemma2(s, 0, B2, 0, 0)  # (43) puts a factor theta_m there
    bound = sympy.expand(8 * s.theta_m / (s.eta * s.tau) * (Omega / K + last))
    return bound, {**s._asdict(), "Omega": Omega, "K": K, "B2": B2, "last": last}


def check_telescope(weight: str) -> Check:
    """(46) summed over k: the two terms of the bound; weight of Y in Omega: 1/n^2 as printed, or 1/n."""

    def check(effort: str) -> Outcome:
        bound, x = printed_bound(lambda n: 1 / n**2 if weight == "1/n^2" else 1 / n)
        eta, tau, a, b, n = (x[name] for name in ("eta", "tau", "theta_r", "theta_m", "n"))
        first, second = b / (x["K"] * tau * eta), eta * tau * a**2 * b**2 * (b - 1) / n * x["B2"]
        holds = same(bound, 8 * x["Omega"] * first + 32 * second) and same(x["last"], floor46(symbols(), x["B2"]))
        said = "(46) summed: 8 theta_m Omega^0/(K tau eta) + 32 eta tau theta_r^2 theta_m^2 (theta_m - 1) B_g^2/n"
        return Outcome(holds, "symbolic", None, said, None if holds else {"bound": str(bound)})

    return check


def check_units(whole: bool) -> Check:
    """Whether the terms of Theorem 1's bound, or of the repaired one's, scale as ||grad f||^2 does.

    Losses times alpha and variables times beta: eta times beta^2/alpha, L_f times alpha/beta^2, B_g and zeta times
    alpha/beta, Omega times alpha.
    """

    def check(effort: str) -> Outcome:
        import sympy

        eta, L, B, omega, x, y = sympy.symbols("eta L_f B_g Omega alpha beta", positive=True)
        scaled = {eta: eta * y**2 / x, L: L * x / y**2, B: B * x / y, omega: omega * x}
        terms = {"1/(K tau eta)": omega / eta, "step size": eta * L, "second term": eta**2 * L**2 * B**2}
        if not whole:
            terms |= {"step size": eta * L**2, "second term": eta * B**2}
        target = {"1/(K tau eta)": (x / y) ** 2, "step size": sympy.Integer(1), "second term": (x / y) ** 2}
        found = {name: sympy.simplify(t.subs(scaled, simultaneous=True) / t) for name, t in terms.items()}
        bad = {name: str(value) for name, value in found.items() if not same(value, target[name])}
        said = f"losses times alpha and variables times beta multiply: {listed(found)}"
        return Outcome(not bad, "symbolic", None, said, bad or None)

    return check


def check_duplicates(effort: str) -> Outcome:
    """Does the floor fall as 1/n? Every client twice: n is doubled, nothing else changes."""
    problem = pair()
    frames = coordinate_frames(2, 1, scale="isotropic")
    assert problem.q is not None
    assert problem.a is not None
    twice = Smooth(
        *(v.repeat(2, 1) for v in (problem.h, problem.b)), a=problem.a.repeat(2, 1), q=problem.q.repeat(2, 1, 1)
    )
    first, second = floor(problem, frames, 0.1, 2), floor(twice, frames, 0.1, 2)
    holds = second <= 0.75 * first
    said = (
        f"clients duplicated, n = 2 and 4, same eta: the floors are {first:.6g} and {second:.6g} "
        f"(exact), the iterates the same"
    )
    data = {"n": [2, 4], "floor": [digits(first), digits(second)], "eta": "1/10", "tau": 2, "m": 2, "r": 1}
    return Outcome(holds, "exact", second / first, said, None if holds else data)


def check_obs_ii(constant: float = 8.0) -> Check:
    """P = I and eta = 1/(6 L_f tau): (1/K) sum ||grad f||^2 <= constant Omega'^0/(K tau eta) on runs."""

    def check(effort: str) -> Outcome:
        worst, rounds, n = 0.0, 60, 2
        for L, tau in ((1.0, 1), (1.0, 3), (1 / 64, 1), (1 / 64, 3)):
            h, b = torch.tensor([[1.0, 0.8], [0.6, 1.0]]).double(), torch.tensor([[1.0, 0.0], [-2.0, 3.0]]).double()
            a = torch.tensor([[0.2, 0.0], [-0.1, 0.05]]).double()
            problem = Smooth(L * h, b, shape="huber", a=L * a)
            eta = 1 / (6 * L * tau)
            trace = traces_from(FedSub(eta, tau, Identity()), problem, torch.tensor([3.0, -3.0]).double(), rounds)
            squares = [float((problem.gradients(x).mean(0) ** 2).sum()) for x, _ in trace[:-1]]
            start = problem.gradients(trace[0][0])
            spread = float(((eta * tau * (start - start.mean(0))) ** 2).sum()) / n
            low = min(float(problem.values(x).mean()) for x, _ in trace)
            omega = float(problem.values(trace[0][0]).mean()) - low + 20 / 3 * eta * (tau - 1) * L**2 * spread
            worst = max(worst, sum(squares) / rounds / (constant * omega / (rounds * tau * eta)))
        said = f"{rounds} rounds of Huber losses, L_f = 1 and 1/64, tau = 1 and 3: largest left/right {worst:.3g}"
        return Outcome(worst <= 1, "run", worst, said, None if worst <= 1 else {"constant": constant, "ratio": worst})

    return check


def check_obs_iii(identity: bool) -> Check:
    """The printed bound at tau = 1, with theta = 1 (identity) or m/r = 2: whether 8 Omega^0/(K eta) is all of it."""

    def check(effort: str) -> Outcome:
        import sympy

        bound, x = printed_bound(lambda n: 1 / n**2)
        ratio = (sympy.Integer(1), sympy.Integer(1)) if identity else (sympy.Rational(1, 2), sympy.Integer(2))
        at = bound.subs({x["tau"]: 1, x["theta_r"]: ratio[0], x["theta_m"]: ratio[1]})
        rest = sympy.expand(at - 8 * ratio[1] * x["Omega"] / (x["K"] * x["eta"]))
        holds = bool(same(rest, sympy.Integer(0)))
        said = f"the bound at tau = 1, theta_r = {ratio[0]}, theta_m = {ratio[1]}: {at}"
        return Outcome(holds, "symbolic", None, said, None if holds else {"tau": 1, "m/r": 2, "rest": str(rest)})

    return check


def tau_one(scale: float = 1.0) -> Callable[[Any], tuple[torch.Tensor, ...]]:
    """tau = 1, any P: E f(x^{k+1}) <= f - (eta/theta_m)(1 - eta L_f/2) ||grad f||^2, so that no floor remains."""

    def terms(q: Any) -> tuple[torch.Tensor, ...]:
        step = q.at.lr / q.at.theta_m * q.a2.mean()
        return q.gain.mean() + step, scale * q.at.lr * q.at.L / 2 * step, q.scale

    return terms


TAU_ONE = [
    Edge(layers=layers, tau=1, share=0.5 * math.sqrt(32))
    for layers in (((2, 1, 1),), ((3, 2, 1),), ((2, 1, 1), (1, 1, 1)))
]


def check_theta(limit: Fraction = Fraction(2), least: bool = True) -> Check:
    """theta_r theta_m <= limit for ranks r_l = ceil(rho m_l): random networks of four layers, and layers of m and m + 1
    rows with rho = 1/m, for which it is 2m/(m + 1).

    `least`: with rho min m_l >= 1; else a layer of one row beside one of 100 is tried as well, with rho = 1/100.
    """

    def check(effort: str) -> Outcome:
        g = ROOT.fold("theta").generator()
        networks = [([m, m + 1], Fraction(1, m)) for m in range(1, 200)]
        for _ in range(200 if effort == "quick" else 5000):
            rows = torch.randint(1, 200, (4,), generator=g).tolist()
            networks.append((rows, Fraction(int(torch.randint(1, min(rows) + 1, (), generator=g)), min(rows))))
        if not least:
            networks.append(([1, 100], Fraction(1, 100)))
        most, where = Fraction(0), {}
        for rows, rho in networks:
            layout = Layout(tuple(Layer(f"W{i}", m, 1) for i, m in enumerate(rows)))
            ranks = Coordinate(tuple(math.ceil(rho * m) for m in rows)).ranks(layout)
            ratios = [Fraction(r, m) for r, m in zip(ranks, rows)]
            if max(ratios) / min(ratios) > most:
                most, where = max(ratios) / min(ratios), {"m": rows, "r": ranks}
        place = f"m = {where['m']}, r = {where['r']}"
        said = f"{len(networks)} networks, the largest theta_r theta_m is {float(most):.4g} at {place}"
        holds = most <= limit
        data = None if holds else {**where, "product": str(most)}
        return Outcome(holds, "search", float(most / limit), said, data)

    return check


def check_a3(identity: bool) -> Check:
    """Lemma 2 without its B_g term, P = I; with P != I it must fail."""

    layers = (((2, 2, 1),), ((1, 1, 1),), ((2, 2, 1), (1, 1, 1))) if identity else (((3, 2, 1),),)
    corners = [Edge(layers=layer, tau=tau, n=2) for layer in layers for tau in (1, 3)]
    return survives(lemma2(variance=0.0), f"a3 {identity}", "Lemma 2 with the B_g^2 term left out", corners)


# Sec. 5: what is measured


ZERO_DUALS = "r=18, zero duals"
CURVES = methods() | {f"r={r}": methods(r)["our-CD"] for r in RANKS} | {ZERO_DUALS: methods(18)["FedAvg-CD"]}


@functools.cache
def small_logistic(geometry: str, seed: int) -> LogisticRegression:
    """FedSub's logistic regression with 3,000 samples and lambda = 0.01 (it settles within the live run)."""
    return LogisticRegression.fedsub(Key(seed).fold("data"), geometry=geometry, samples=3000, lam=0.01)


@functools.cache
def live(algorithm: Algorithm, geometry: str = "hyperplane", seed: int = 0, rounds: int = 500) -> float:
    """Plateau of the error, the mean of the last tenth, of a short run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    history = run(algorithm, small_logistic(geometry, seed), rounds, every=rounds // 50)
    torch.set_num_threads(threads)
    return math.inf if history.diverged else sum(history["error"][-5:]) / 5


def plateaus(item: str, algorithms: dict[str, Algorithm]) -> tuple[dict[str, float], str]:
    """Plateau per method: from the committed result at the paper's scale, or from short live runs.

    Raises ValueError for a damaged record: no live run takes its place.
    """
    folder = records.results()
    record = records.load(folder, item, pictured=False) if records.made(folder, item) else None
    if record is not None and record["scale"] == "paper":
        means = {}
        for name in algorithms:
            rows = [float(row["mean"]) for row in record["table"] if row["method"] == name]
            tail = rows[-max(1, len(rows) // 10) :]
            means[name] = sum(tail) / len(tail)
        return means, f"figures/{item}, paper scale"
    found = {name: live(algorithm) for name, algorithm in algorithms.items()}
    return found, "500 live rounds, 3,000 samples, lambda 0.01"


def falling(*names: str) -> Callable[[dict[str, float]], float]:
    """The largest ratio of a plateau to the next one's: below 1 where each method is better than the next."""
    return lambda v: max(v[a] / v[b] if math.isfinite(v[a]) else math.inf for a, b in pairwise(names))


def figure(item: str, names: Sequence[str], ratio: Callable[[dict[str, float]], float]) -> Check:
    """Whether a ratio of plateaus is below 1."""

    def check(effort: str) -> Outcome:
        found, source = plateaus(item, {name: CURVES[name] for name in names})
        worst = digits(ratio(found))
        said = f"{source}: plateaus {listed(found)}; ratio {worst:.3g}, to be below 1"
        answer = worst < 1
        return Outcome(answer, "run", worst, said, None if answer else {"source": source, **found})

    return check


DATA = (("hyperplane", 0), ("center", 0), ("hyperplane", 1), ("center", 1))  # geometry, seed


def on_other_data(names: Sequence[str], ratio: Callable[[dict[str, float]], float]) -> Check:
    """The same on every one of four other data sets, in short live runs."""

    def check(effort: str) -> Outcome:
        found = {f"{g}, seed {s}": {name: live(CURVES[name], g, s) for name in names} for g, s in DATA}
        ratios = {name: digits(ratio(values)) for name, values in found.items()}
        bad = [name for name in found if not ratios[name] < 1]
        shown = "; ".join(
            f"{name} ({listed({method: level(value, 1e-8)[1] for method, value in values.items()})})"
            for name, values in found.items()
        )
        worst = max(ratios.values())
        said = (
            f"true on {len(DATA) - len(bad)} of {len(DATA)} data sets (500 live rounds, 3,000 samples, lambda 0.01), "
            f"largest ratio {worst:.3g}, to be below 1: {shown}"
        )
        data = {name: {k: digits(v) for k, v in found[name].items()} for name in bad}
        return Outcome(not data, "run", worst, said, data or None)

    return check


def check_cd_ss(effort: str) -> Outcome:
    """Exact floors of CD against SS at two turns of the same two clients.

    Turning the data moves CD and leaves SS. SS is integrated over 24 lines in the plane, exactly: a round's second
    moment is a polynomial in P P^T.
    """
    other = floor(pair(), math.sqrt(2) * plane_frames(24), 0.1, 2)
    turns = {
        turn: floor(pair(), coordinate_frames(2, 1, scale="isotropic", rotation=rotation(turn)), 0.1, 2)
        for turn in (0.0, 0.6)
    }
    data = {f"CD, turned by {turn:g}": digits(value) for turn, value in turns.items()} | {"SS": digits(other)}
    holds = all(value < other for value in turns.values())
    said = f"two clients in the plane, r = 1, eta = 0.1, tau = 2, exact lim E||grad f||^2: {listed(data)}"
    return Outcome(holds, "exact", None, said, None if holds else data)


def slanted() -> Smooth:
    """Two clients in three dimensions, the second with its axes turned by an eighth in the first plane."""
    h = torch.tensor([[0.5, 0.125, 0.875], [1.0, 0.125, 0.5]], dtype=torch.float64)
    a = torch.tensor([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]], dtype=torch.float64)
    q = torch.eye(3, dtype=torch.float64).repeat(2, 1, 1)
    q[1, :2, :2] = rotation(math.pi / 4)
    return Smooth(h, torch.zeros(2, 3).double(), a=a, q=q)


def check_ranks(effort: str) -> Outcome:
    """Whether the exact floor of CD falls with r for every pair of clients."""
    problem = slanted()
    floors = {f"r = {r}": digits(floor(problem, coordinate_frames(3, r, scale="isotropic"), 0.2, 2)) for r in (1, 2)}
    holds = floors["r = 1"] > floors["r = 2"]
    said = f"two clients in three dimensions, eta = 0.2, tau = 2, exact lim E||grad f||^2: {listed(floors)}"
    data = {"h": exact(problem.h), "a": exact(problem.a), "turn of f_2": "pi/4 in the first plane", **floors}
    return Outcome(holds, "exact", None, said, None if holds else data)


def check_43(kernel: int) -> Check:
    """The trainable share with r = 3, for every matrix that a convolution may be seen as."""

    def check(effort: str) -> Outcome:
        net = dataclasses.replace(cifar_resnet(110, kernel)(classes=100), view="filter")
        views = {
            "out": lambda i, o: o, "in": lambda i, o: i, "kernel": lambda i, o: kernel,
            "out k": lambda i, o: o * kernel, "in k": lambda i, o: i * kernel, "in k k": lambda i, o: i * kernel**2,
        }  # fmt: skip
        found = {}
        for name, rows in views.items():
            layers = []
            for layer in net.layout.layers:
                size = layer.rows * layer.cols
                conv = layer.kind == "conv"
                m = rows(layer.rows // kernel**2, layer.cols) if conv else 1  # what is no convolution stays whole
                layers.append(Layer(layer.name, m, size // m))
            layout = Layout(tuple(layers))
            found[f"m = {name}"] = Coordinate(3).low(layout).size / layout.size
        good = [name for name, value in found.items() if abs(value - 0.43) < 0.01]
        shown = ", ".join(f"{name}: {100 * value:.1f}%" for name, value in found.items())
        said = f"ResNet-110, {kernel} x {kernel} kernels, {net.layout.size} parameters; share that stays trainable: "
        data = None if good else {"kernel": kernel, **found}
        return Outcome(bool(good), "exact", None, said + shown, data)

    return check


def check_dual(good: bool, lr: float = 0.5) -> Check:
    """Exact floors with and without dual variables: P = I, moderate m/r, and `hurt` at a moderate step (good), or
    `hurt` at the step size lr.
    """

    def check(effort: str) -> Outcome:
        eye = torch.eye(2).double()[None]
        half, quarter = (coordinate_frames(m, 1, scale="isotropic") for m in (2, 4))
        cases = {"CD, m/r = 4": (hurt(), quarter, lr, 2)}
        if good:
            cases |= {"P = I": (pair(), eye, 0.2, 4), "CD, m/r = 2": (pair(), half, 0.1, 3)}
        ratios = {}
        for name, (problem, frames, eta, tau) in cases.items():
            ratios[name] = floor(problem, frames, eta, tau) / floor(problem, frames, eta, tau, dual=False)
        holds = all(value < 1 for value in ratios.values())
        over = {f"{name}, duals over none": digits(value) for name, value in ratios.items()}
        shown = listed({name: level(value, 1e-12)[1] for name, value in ratios.items()})
        said = f"lim E||grad f||^2 with duals over without (exact): {shown}"
        sizes = {"h": exact(hurt().h), "a": exact(hurt().a), "eta": exact(lr), "tau": 2, "m": 4, "r": 1}
        return Outcome(holds, "exact", max(ratios.values()), said, None if holds else sizes | over)

    return check


def hurt() -> Smooth:
    """Two clients that differ in the first of four coordinates."""
    h = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0]], dtype=torch.float64)
    a = torch.tensor([[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    return Smooth(h, torch.zeros(2, 4).double(), a=a)


def centred() -> Smooth:
    """Three clients in the plane whose drift averages out: sum_i a_i = sum_i H_i a_i = 0."""
    h = torch.tensor([[0.5, 1.0], [0.75, 1.0], [1.0, 1.0]], dtype=torch.float64)
    a = torch.tensor([[1.0, 0.0], [-2.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    return Smooth(h, torch.zeros(3, 2).double(), a=a)


def check_centred(effort: str) -> Outcome:
    """Whether duals help with short steps where there is no drift to correct: CD, m/r = 2, tau = 2."""
    frames = coordinate_frames(2, 1, scale="isotropic")
    found = {}
    for lr in (0.1, 0.01):
        with_duals, without = (floor(centred(), frames, lr, 2, dual) for dual in (True, False))
        found[lr] = (with_duals, without)
    holds = all(a < b for a, b in found.values())
    each = {
        f"eta = {lr:g}": f"{level(a, 1e-15)[1]} with duals, {level(b, 1e-25)[1]} without"
        for lr, (a, b) in found.items()
    }
    data = {"h": exact(centred().h), "a": exact(centred().a), "tau": 2, "m": 2, "r": 1, **each}
    said = f"three clients whose drift averages out, lim E||grad f||^2 (exact): {listed(each)}"
    return Outcome(holds, "exact", None, said, None if holds else data)


def check_same_step(effort: str) -> Outcome:
    """Whether FedAvg-CD beats FedAvg at eta r/m, the step that FedAvg-CD takes on average: E[(r/m) P P^T] = r/m."""
    names = ("FedAvg-CD", "FedAvg", "FedAvg, eta r/m")
    found: dict[str, float] = dict(
        zip(names, map(live, (methods()["FedAvg-CD"], methods()["FedAvg"], FedAvg(LR * RANK / M, TAU))))
    )
    holds = found["FedAvg-CD"] < found["FedAvg, eta r/m"]
    said = f"500 live rounds: {listed(found)}"
    return Outcome(
        holds,
        "run",
        found["FedAvg-CD"] / found["FedAvg, eta r/m"],
        said,
        None if holds else {k: digits(v) for k, v in found.items()},
    )


# Floating point: (15) holds in exact arithmetic only


def growth_exponent(kind: type[Projection], m: int, r: int) -> float:
    """Lyapunov exponent of v -> (P^{k+1})^T P^k v per round, for isotropic P: closed forms.

    Spherical: the squared length is multiplied by (m/r)^2 Beta(r/2, (m-r)/2). Gaussian: P P^T e = a first column of
    length chi^2_r/r and m - 1 rows independent of it. Coordinate: every coordinate survives a round with probability
    r/m, so every error dies out. Identity: nothing grows.
    """
    if kind is Identity or (r == m and kind is not Gaussian):
        return 0.0
    if kind is Coordinate:
        return -math.inf
    if kind is Spherical:
        return math.log(m / r) + float(digamma(r / 2) - digamma(m / 2)) / 2
    return math.log(2 / r) + float(digamma(r / 2) + digamma((m + r - 1) / 2)) / 2


def growth_spread(kind: type[Projection], m: int, r: int) -> float:
    """Standard deviation of ln ||P P^T e|| about `growth_exponent`, of the spherical and the Gaussian projection.

    ln Beta(a, b) varies by psi'(a) - psi'(a + b), ln chi^2_n by psi'(n/2), psi' the trigamma function. Gaussian:
    ||P P^T e||^2 = A (A + B)/r^2 with A = chi^2_r and B = chi^2_{m-1}; A = (A + B) Beta(r/2, (m-1)/2), independent.
    """
    trigamma = lambda x: float(polygamma(1, x))
    if kind is Spherical:
        return math.sqrt((trigamma(r / 2) - trigamma(m / 2)) / 4)
    return math.sqrt((trigamma(r / 2) + 3 * trigamma((m + r - 1) / 2)) / 4)


def dual_means(
    projection: Projection, dtype: torch.dtype, form: str, rounds: int, *, m: int = 20, n: int = 4
) -> list[float]:
    """||(1/n) sum_i Lambda_i^k|| over the rounds, until it is not finite. What a plot of the growth draws."""
    problem = Quadratic.random(n, m, ROOT.fold("float"), dtype=dtype)
    algorithm = FedSub(0.1, 2, projection, form=form)
    state = algorithm.init(problem, problem.start(), ROOT)
    values = []
    with torch.inference_mode():
        for t in range(rounds):
            state, _, _ = play_round(algorithm, problem, state, problem.clients, ROOT.fold("round", t))
            value = float(torch.linalg.vector_norm(state.own.dual.double().mean(0)))
            if not math.isfinite(value):
                break
            values.append(value)
    return values


def slope(values: Sequence[float]) -> float:
    """Growth per round of ln ||mean dual||, over the second half of the rounds."""
    start = len(values) // 2
    return (
        math.log(values[-1] / values[start]) / (len(values) - 1 - start)
        if values[start] > 0 and values[-1] > 0
        else 0.0
    )


def check_float(projection: Projection, rounds: int = 120) -> Check:
    """Whether the mean dual of Algorithm 1 as printed stays at rounding level in float64."""

    def check(effort: str) -> Outcome:
        holds = max(dual_means(projection, torch.float64, "printed", rounds)) < 1e-10
        name = type(projection).__name__
        said = (
            f"{name}, m = 20, r = 10, float64, {rounds} rounds: ||mean Lambda|| {'below' if holds else 'passes'} 1e-10"
        )
        data = {"projection": name, "m": 20, "r": 10, "n": 4, "tau": 2, "eta": "1/10", "rounds": rounds}
        return Outcome(holds, "run", None, said, None if holds else data | {"mean dual": "above 1e-10"})

    return check


def check_float_repaired(effort: str) -> Outcome:
    """Both forms, four projections, two precisions: measured growth against the exponent; uplink of both forms."""
    rounds = 200 if effort == "quick" else 2000
    said, holds = [], True
    for projection in (Spherical(10), Gaussian(10), Coordinate(10), Identity()):
        expected = growth_exponent(type(projection), 20, 10)
        for dtype in (torch.float32, torch.float64):
            printed, sums = (dual_means(projection, dtype, form, rounds) for form in ("printed", "sums"))
            bound = 1e4 * torch.finfo(dtype).eps
            holds = holds and len(sums) == rounds and max(sums) < bound
            text = f"{type(projection).__name__} {str(dtype)[6:]}: sums below {bound:.0e}"
            if expected > 0:
                error = growth_spread(type(projection), 20, 10) / math.sqrt(max(1, len(printed) // 2))
                holds = holds and abs(slope(printed) - expected) < 4 * error
                text += f", printed grows as e^({expected:.3f} k), four standard errors or less from measured"
            else:
                holds = holds and max(printed) < bound
                text += ", printed too"
            said.append(text)
    problem = Quadratic.random(4, 20, ROOT.fold("float"))
    sizes = []
    for form in ("printed", "sums"):
        algorithm = FedSub(0.1, 2, Spherical(10), form=form)
        state = algorithm.init(problem, problem.start(), ROOT)
        sizes.append(play_round(algorithm, problem, state, problem.clients, ROOT)[2])
    holds = holds and sizes[0] == sizes[1]
    return Outcome(holds, "run", None, "; ".join(said) + f"; same messages: {sizes[0] == sizes[1]}")


def check_growth(effort: str) -> Outcome:
    """The exponent against a Monte Carlo product of (P^{k+1})^T P^k."""
    worst, said = 0.0, []
    for kind, projection in ((Spherical, Spherical(4)), (Gaussian, Gaussian(4))):
        count = 200 if effort == "quick" else 4000
        layout = Layout.single(9)
        v, logs = torch.ones(9, dtype=torch.float64), []
        for k in range(count):
            P = projection.draw(layout, ROOT.fold("growth", k), torch.float64)
            v = P.lift(P.project(v / torch.linalg.vector_norm(v)))
            logs.append(math.log(float(torch.linalg.vector_norm(v))))
        mean = sum(logs) / count
        error = math.sqrt(sum((x - mean) ** 2 for x in logs)) / count
        expected = growth_exponent(kind, 9, 4)
        worst = max(worst, abs(mean - expected) / error)
        said.append(f"{kind.__name__} m=9, r=4: {expected:.4f}, sampled {mean:.4f} +- {error:.4f}")
    return Outcome(worst < 4.5, "monte-carlo", worst, "; ".join(said))
