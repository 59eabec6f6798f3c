"""FedSub: one round of Algorithm 1 on extreme instances, and how a display of App. 7.4 is attacked on it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch

from fedtheory.algorithms.fedsub import Down, FedSub, Own, Server
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.message import Known
from fedtheory.theory import bench
from fedtheory.theory.bench import Bench, require, spline
from fedtheory.theory.claim import Printed, entries
from fedtheory.theory.instances import Smooth, coordinate_frames, drain, exact, fixed, is_smooth, orthogonal, parse
from fedtheory.theory.rounding import digits

fedsub = entries("fedsub")
ROOT = Key(715)
A1 = Printed("(P_l^k)^T P_l^k = (m_l/r_l) I, E[P_l^k (P_l^k)^T] = I, all P_l^k independent", "Assumption 1")
SAME_P = Printed("(P^k)^T P^k = (m/r) I", "Assumption 1")
MEAN_P = Printed("E[P^k (P^k)^T] = I, P^k independent of the past", "Assumption 1")
A2 = Printed("every f_i is L_f-smooth", "Assumption 2")
A3 = Printed("(1/n) sum_i ||grad f_i(x)||^2 <= B_g^2 for all x", "Assumption 3")
ALL = Printed("all clients in every round, one constant eta", "Algorithm 1")
START = Printed("Lambda_i^0 = 0", "Algorithm 1, line 1")
S31 = Printed("4 eta^2 theta_r^2 theta_m^3 (t+1) L_f^2 <= 1/(8 tau)", "eq. (31)")
S39 = Printed("theta_r (eta/2) L_f^2 theta_m^2 (1/n) 5 eta^2 theta_r^2 tau^3 n <= eta tau/(4 theta_m)", "eq. (39)")
S44 = Printed("the three lines of (44)", "eq. (44)")
EVERY_T = "(31) for t = 0, ..., tau - 1: the t of the local steps"
REPAIR = (
    "for eta <= 1/(6 theta_r theta_m^2 L_f tau): (1/K) sum_k E||grad f(x^k)||^2 <= "
    "8 theta_m Omega'^0/(K tau eta) + (640/3) eta^2 tau (tau-1) L_f^2 theta_r^3 theta_m^3 (theta_m - 1) zeta^2 "
    "with Omega' = f - f* + w (1/n) sum_i ||Y_i - Ybar||^2, w = (20/3) eta (tau-1) L_f^2 theta_r theta_m^2 and "
    "zeta^2 >= (1/n) sum_i ||grad f_i - grad f||^2 in place of B_g^2"
)


# The displays, each formed once: on numbers of a round, on fractions, and on symbols


class Sizes(NamedTuple):
    """What the constants of App. 7.4 are made of: numbers, fractions, or symbols of sympy or z3."""

    eta: Any
    tau: Any
    theta_r: Any
    theta_m: Any
    L: Any
    n: Any


def symbols() -> Sizes:
    """The sizes as positive symbols of sympy."""
    import sympy

    return Sizes(*sympy.symbols("eta tau theta_r theta_m L_f n", positive=True))


def step_sizes(s: Sizes) -> dict[str, tuple[Any, Any]]:
    """Left and right of the step-size conditions (31) at t + 1 = tau, (39) and (44), as printed."""
    eta, tau, a, b, L, n = s
    last = 2 * b / (eta * tau) * (2 * eta**2 * a**2 * tau**2 * L**2 / n) * (eta**2 * a**2 * b)
    bias = a**4 * 2 * eta**2 * tau**2 * 2 * L**2 * b**3 / (n * tau) / n * 5 * eta**2 * tau**3 * n
    return {
        "(31)": (4 * eta**2 * a**2 * b**3 * tau * L**2, 1 / (8 * tau)),
        "(39)": (a * eta / 2 * L**2 * b**2 / n * (5 * eta**2 * a**2 * tau**3 * n), eta * tau / (4 * b)),
        "(44) line 1": (0, 1 - eta * tau * L * a**2 * b**2 - last),
        "(44) line 2": (eta * tau / (8 * b), eta * tau / (4 * b) - bias),
        "(44) line 3": (a * 2 * n * 5 * eta * tau / 2 * L**2 * b**2, 1),
    }


def rule47(s: Sizes) -> Any:
    """What (47) and Theorem 1 have inside O(.)."""
    return 1 / (s.theta_r * s.theta_m**2 * s.L**2 * s.n * s.tau)


# In what follows Y is sum_i ||Y_i - Ybar||^2, A is ||(P^k)^T grad f||^2 and G is ||(P^k)^T (1/tau) sum_t ...||^2.


def right21(s: Sizes, Y: Any, A: Any) -> Any:
    """Lemma 1."""
    return 5 * s.tau * Y + 5 * s.eta**2 * s.theta_r**2 * s.tau**3 * s.n * A


def right_lemma2(s: Sizes, moved: Any, Bg2: Any, Y: Any, A: Any) -> Any:
    """Lemma 2; moved is ||x^{k+1} - x^k||^2."""
    front = s.eta**2 * s.theta_r**2 * s.tau**2
    drift = 2 * front * 2 * s.theta_m**3 * s.L**2 / (s.n * s.tau) * right21(s, Y, A)
    return 2 * front * s.L**2 * moved + 4 * front * (s.theta_m - 1) * Bg2 + drift


def right38(s: Sizes, Y: Any, A: Any, line: int) -> Any:
    """The second or third line of (38), without f(x^k)."""
    eta, tau, a, b, L, n = s
    if line == 2:
        return -eta * tau / (2 * b) * A + a * eta / 2 * L**2 * b**2 / n * right21(s, Y, A)
    return -eta * tau / (4 * b) * A + a * (5 * eta * tau) / 2 * L**2 * b**2 / n * Y


def left38(s: Sizes, G: Any) -> Any:
    """What (38) adds to f(x^{k+1})."""
    return s.eta * s.tau / (2 * s.theta_m) * (1 - s.eta * s.tau * s.L * s.theta_r**2 * s.theta_m**2) * G


def right41(s: Sizes, moved: Any, Bg2: Any, Y: Any, A: Any, G: Any) -> Any:
    """(41), without f(x^k) - f*."""
    return right38(s, Y, A, 3) + right_lemma2(s, moved, Bg2, Y, A) / s.n - left38(s, G)


def right42(s: Sizes, G: Any) -> Any:
    """(42): ||(P^k)^T sum_t ...||^2 is tau^2 G."""
    return s.eta**2 * s.theta_r**2 * s.theta_m * s.tau**2 * G


def floor46(s: Sizes, Bg2: Any) -> Any:
    """The last term of (43) and (46)."""
    return 4 * s.eta**2 * s.theta_r**2 * s.tau**2 * s.theta_m * (s.theta_m - 1) * Bg2 / s.n


# An instance and one round on it


@dataclass(frozen=True)
class Instance:
    """A state of FedSub and what its next round is drawn from.

    Fields:
        problem: the clients' losses, L-smooth.
        x: x^k, (d,).
        u: the bracket of (17), before (P^k)^T: c_i^k = (P^k)^T u_i and Lambda_i^k = eta tau c_i^k; (n, d), sum zero.
        frames: the values of P^k, each with the same probability: one matrix (m_l, r_l) per layer.
        lr, tau: eta, tau.
        L: L_f.
    """

    problem: Smooth
    x: torch.Tensor
    u: torch.Tensor
    frames: Sequence[tuple[torch.Tensor, ...]]
    lr: float
    tau: int
    L: float = 1.0

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def ratios(self) -> list[float]:
        """r_l/m_l."""
        return [frame.shape[1] / frame.shape[0] for frame in self.frames[0]]

    @property
    def theta_r(self) -> float:
        return max(self.ratios)

    @property
    def theta_m(self) -> float:
        return 1 / min(self.ratios)

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.lr, self.tau, self.theta_r, self.theta_m, self.L, self.n)

    def spread(self, cols: Sequence[int]) -> torch.Tensor:
        """r_l/m_l once for each of `cols[l]` entries."""
        return torch.cat([torch.full((c,), q, dtype=torch.float64) for c, q in zip(cols, self.ratios)])


@dataclass(frozen=True)
class Round:
    """All that the displays speak of, for M values of P^k.

    Fields:
        B: B_i^{k,t}, t = 0, ..., tau, (M, n, tau + 1, r).
        grad: grad f_i(x^k + P^k B_i^{k,t}), t < tau, (M, n, tau, d).
        start: grad f_i(x^k), (n, d); low: (P^k)^T of it, (M, n, r).
        Y: Y_i^k, (M, n, r); c: c_i^k.
        x: x^{k+1}, (M, d).
        v: Y_i^{k+1} = eta tau (P^{k+1})^T v_i, (M, n, d).
    """

    at: Instance
    bases: list[Any]
    B: torch.Tensor
    grad: torch.Tensor
    start: torch.Tensor
    low: torch.Tensor
    c: torch.Tensor
    Y: torch.Tensor
    x: torch.Tensor
    v: torch.Tensor

    def project(self, values: torch.Tensor) -> torch.Tensor:
        """(P^k)^T on (M, ..., d)."""
        return torch.stack([P.project(v) for P, v in zip(self.bases, values)])

    def lift(self, values: torch.Tensor) -> torch.Tensor:
        """P^k on (M, ..., r)."""
        return torch.stack([P.lift(v) for P, v in zip(self.bases, values)])

    @property
    def low_ratio(self) -> torch.Tensor:
        return self.at.spread([layer.rows * layer.cols for layer in self.bases[0].low.layers])

    @property
    def full_ratio(self) -> torch.Tensor:
        return self.at.spread([layer.rows * layer.cols for layer in self.bases[0].layout.layers])

    @property
    def g(self) -> torch.Tensor:
        """g_i(B_i^{k,t}), (M, n, tau, r)."""
        return self.low_ratio * self.project(self.grad)

    @property
    def a2(self) -> torch.Tensor:
        """||(P^k)^T grad f(x^k)||^2, (M,)."""
        return (self.low.mean(1) ** 2).sum(-1)

    @property
    def G(self) -> torch.Tensor:
        """(1/tau) sum_t of the clients' mean gradient, (M, d)."""
        return self.grad.mean((1, 2))

    @property
    def b2(self) -> torch.Tensor:
        """||(P^k)^T G||^2, (M,)."""
        return (self.project(self.G) ** 2).sum(-1)

    @property
    def spread_Y(self) -> torch.Tensor:
        """sum_i ||Y_i^k - Ybar^k||^2, (M,)."""
        return ((self.Y - self.Y.mean(1, keepdim=True)) ** 2).sum((1, 2))

    @property
    def next_spread(self) -> torch.Tensor:
        """sum_i E||Y_i^{k+1} - Ybar^{k+1}||^2 over P^{k+1}, whose E[P P^T] = I, (M,)."""
        return (self.at.lr * self.at.tau) ** 2 * ((self.v - self.v.mean(1, keepdim=True)) ** 2).sum((1, 2))

    @property
    def drift(self) -> torch.Tensor:
        """sum_i sum_{t < tau} ||B_i^{k,t}||^2, (M,)."""
        return (self.B[:, :, :-1] ** 2).sum((1, 2, 3))

    @property
    def lifted(self) -> torch.Tensor:
        """||P^k B_i^{k,t}||^2, t < tau, (M, n, tau)."""
        return (self.lift(self.B[:, :, :-1]) ** 2).sum(-1)

    @property
    def moved(self) -> torch.Tensor:
        """||x^{k+1} - x^k||^2, (M,)."""
        return ((self.x - self.at.x) ** 2).sum(-1)

    @property
    def gain(self) -> torch.Tensor:
        """f(x^{k+1}) - f(x^k), (M,)."""
        values = self.at.problem.values
        return values(self.x).mean(0) - values(self.at.x).mean(0)

    @property
    def Bg2(self) -> torch.Tensor:
        return (self.start**2).sum(-1).mean()

    @property
    def zeta2(self) -> torch.Tensor:
        return ((self.start - self.start.mean(0)) ** 2).sum(-1).mean()

    @property
    def scale(self) -> torch.Tensor:
        """Something positive of the size of the terms of a descent inequality (for the ascent's logarithms)."""
        t = self.at.lr * self.at.tau
        return (t * (self.a2 + self.b2 + (self.start.mean(0) ** 2).sum()) + self.at.L * self.moved).mean().detach()


def step(algorithm: FedSub, problem: Any, x: torch.Tensor, dual: torch.Tensor, P: Any):
    """One round of FedSub's own lines with the basis P kept: iterates, upload, x^{k+1}, the dual before line 12's turn.

    The last is Lambda_i + B_i - mean B, still in the coordinates of P^k.
    """
    clients, basis = problem.clients, Known(P)
    down = Down(basis, x)
    iterates, (up, own) = drain(algorithm.client(problem, clients, Own(dual, torch.zeros_like(dual)), down, ROOT))
    server, reply = algorithm.server(Server(x, basis, 0), down, up, clients, ROOT)
    return iterates, up, server.x, algorithm.close(own, clients, down, reply).dual


def play(at: Instance) -> Round:
    """One round through FedSub's own lines for every value of P^k."""
    problem, t = at.problem, at.lr * at.tau
    start, full = problem.gradients(at.x), problem.full(problem.clients)
    bases, out = [], []
    for frames in at.frames:
        algorithm = FedSub(at.lr, at.tau, fixed(frames, "isotropic"))
        P = algorithm.projection.draw(problem.layout, ROOT, torch.float64)
        r_m = 1 / algorithm.projection.norm2(problem.layout, torch.float64)
        c = P.project(at.u)
        iterates, _, x, dual = step(algorithm, problem, at.x, t * c, P)
        B = torch.stack([torch.zeros_like(c), *iterates], dim=1)
        grad = problem.grads(at.x + P.lift(B[:, :-1]), full)
        low = P.project(start)
        Y = t * (r_m * low + c)
        ratio_ = at.spread([layer.rows * layer.cols for layer in problem.layout.layers])
        v = ratio_ * problem.gradients(x) + P.lift(dual) / t
        bases.append(P)
        out.append((B, grad, low, c, Y, x, v))
    B, grad, low, c, Y, x, v = (torch.stack(parts) for parts in zip(*out))
    return Round(at, bases, B, grad, start, low, c, Y, x, v)


def conditions(at: Instance) -> dict[str, float]:
    """Right minus left of the step-size conditions (31) with t = 0, ..., tau - 1, (39) and (44)."""
    return {name: right - left for name, (left, right) in step_sizes(at.sizes).items()}


def slacks(at: Instance) -> dict[str, float]:
    """Every assumption with its slack; negative (beyond rounding) means broken."""
    gram = outer = 0.0
    for layer, q in enumerate(at.ratios):
        frames = torch.stack([frame[layer] for frame in at.frames])
        m, r = frames.shape[1:]
        eye = torch.eye(m, dtype=torch.float64)
        gram = max(gram, float((frames.mT @ frames - torch.eye(r, dtype=torch.float64) / q).abs().max()))
        outer = max(outer, float(((frames @ frames.mT).mean(0) - eye).abs().max()))
    return {
        "A1: P^T P = (m/r) I": -gram,
        "A1: E[P P^T] = I": -outer,
        "A2: L_f-smooth": at.L - float(at.problem.h.abs().max()),
        "A2: L_f-smooth, sampled pairs": at.L * (1 - is_smooth(at.problem, at.L, ROOT.fold("pairs"))),
        "(15): sum of the controls": -float(at.u.mean(0).abs().max()),
        **{name: slack * (at.L if name == "(31)" else 1.0) for name, slack in conditions(at).items()},
    }


BASIC = ("A1: P^T P = (m/r) I", "A1: E[P P^T] = I", "A2: L_f-smooth", "A2: L_f-smooth, sampled pairs",
         "(15): sum of the controls")  # fmt: skip
LEMMA3 = ("(31)", "(39)", "(44) line 1", "(44) line 2", "(44) line 3")


def admissible(at: Instance, extra: Sequence[str] = ()) -> dict[str, float]:
    """The slacks; raises AssertionError where an assumption named in BASIC or `extra` is broken."""
    found = slacks(at)
    require(found, (*BASIC, *extra))
    return {name: round(value, 12) for name, value in found.items()}


ARRAYS = ("h", "b", "a", "knots", "slopes", "q")


def dump(at: Instance) -> dict[str, Any]:
    """An instance as data: exact rationals."""
    arrays = {name: exact(v) for name in ARRAYS if (v := getattr(at.problem, name)) is not None}
    frames = [[exact(frame) for frame in value] for value in at.frames]
    layers = [[layer.rows, layer.cols] for layer in at.problem.layout.layers]
    numbers = {name: exact(getattr(at, name)) for name in ("x", "u", "lr", "L")}
    return {"shape": at.problem.shape, "layers": layers, **arrays, **numbers, "tau": at.tau, "frames": frames}


def load(data: dict[str, Any]) -> Instance:
    """The inverse of `dump`."""
    layout = Layout(tuple(Layer(f"W{i}", m, d) for i, (m, d) in enumerate(data["layers"])))
    options = {name: parse(data[name]) for name in ARRAYS[2:] if name in data}
    problem = Smooth(parse(data["h"]), parse(data["b"]), shape=data["shape"], layout=layout, **options)
    frames = [tuple(parse(frame) for frame in value) for value in data["frames"]]
    return Instance(
        problem, parse(data["x"]), parse(data["u"]), frames, parse(data["lr"]), data["tau"], parse(data["L"])
    )


# Search


@dataclass(frozen=True)
class Edge(bench.Edge):
    """The discrete side of an instance.

    Fields:
        layers: (m_l, r_l, d_l).
        share: eta as a share of (31)'s largest, with t + 1 = tau.
        ends: None: L_f = 1. A number in [0, 1]: L_f from the smallest (0) to the largest (1) that (44) admits.
        free: the controls need not sum to zero.
        stretch: of the frames (1 satisfies Assumption 1).
        one: a single frame, so that E[P P^T] is not I.
        settled: no drift of first order: Y_i^k = Ybar^k.
        still: grad f(x^k) = 0.
    """

    layers: tuple[tuple[int, int, int], ...] = ((2, 1, 1),)
    n: int = 2
    tau: int = 2
    shape: str = "quadratic"
    share: float = 1.0
    ends: float | None = None
    free: bool = False
    stretch: float = 1.0
    one: bool = False
    settled: bool = False
    still: bool = False

    def __str__(self) -> str:
        layers = " and ".join(f"{m} x {cols} with rank {r}" for m, r, cols in self.layers)
        told = [layers, f"n = {self.n}", f"tau = {self.tau}"]
        for f in fields(self)[3:]:
            value = getattr(self, f.name)
            if value != f.default:
                told.append(f.name if value is True else f"{f.name} {digits(value)}" if f.name != "shape" else value)
        return ", ".join(told)

    @property
    def d(self) -> int:
        return sum(m * cols for m, _, cols in self.layers)

    @property
    def theta(self) -> tuple[float, float]:
        """theta_r, theta_m."""
        return max(r / m for m, r, _ in self.layers), max(m / r for m, r, _ in self.layers)

    def parts(self) -> dict[str, int]:
        full = self.n * self.d
        return {
            "h": full,
            "a": full,
            "u": full,
            "b": 0 if self.shape == "quadratic" else full,
            "q": self.n * self.d * (self.d - 1) // 2,
            "frame": sum(m * (m - 1) // 2 for m, _, _ in self.layers),
            "spline": 7 if self.shape == "spline" else 0,
        }


def rates(edge: Edge) -> tuple[float, float]:
    """eta and L_f: at `share` of (31), and, where `ends` is given, L_f such that (31), (39) and (44) hold."""
    a, b = edge.theta
    tau, n = edge.tau, edge.n
    s = edge.share / (math.sqrt(32) * a * b**1.5)  # eta tau L_f
    if edge.ends is None:
        return s / tau, 1.0
    while True:
        room = 1 - s * a**2 * b**2
        low = max(160 * a**4 * b**4 * s**3 / n, 4 * s**3 * a**4 * b**2 / (n * tau**2 * room) if room > 0 else math.inf)
        high = 1 / (5 * n * a * s * b**2)
        if low <= high and 10 * s**2 * a**3 * b**3 <= 1:
            L = low ** (1 - edge.ends) * high**edge.ends
            return s / (tau * L) * (1 - 1e-9), L
        s *= 0.9


def layer_frames(edge: Edge, turns: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    """All coordinate frames of every layer, turned, in every combination."""
    values: list[tuple[torch.Tensor, ...]] = [()]
    for m, r, _ in edge.layers:
        count = m * (m - 1) // 2
        turn = orthogonal(turns[:count], m) if count else None
        turns = turns[count:]
        frames = edge.stretch * coordinate_frames(m, r, scale="isotropic", rotation=turn)
        values = [(*value, frame) for value in values for frame in frames]
    return values[:1] if edge.one else values


def build(z: torch.Tensor, edge: Edge) -> Instance:
    """The instance (x = 0) that the free numbers z describe; admissible unless the edge breaks something."""
    parts = edge.split(z)
    n, d = edge.n, edge.d
    lr, L = rates(edge)
    layout = Layout(tuple(Layer(f"W{i}", m, cols) for i, (m, _, cols) in enumerate(edge.layers)))
    q = torch.stack([orthogonal(turn, d) for turn in parts["q"].view(n, -1)]) if d > 1 else None
    knots = slopes = None
    if edge.shape == "spline":
        knots, bends = spline(parts["spline"])
        slopes = torch.sin(bends)
    h, a, u = (parts[name].view(n, d) for name in ("h", "a", "u"))
    b = parts["b"].view(n, d) if edge.shape != "quadratic" else torch.zeros(n, d, dtype=torch.float64)
    problem = Smooth(L * torch.sin(1.5 * h), b, shape=edge.shape, a=a, q=q, knots=knots, slopes=slopes, layout=layout)
    x = torch.zeros(d, dtype=torch.float64)
    if edge.still:
        problem = problem.replace(a=a - problem.gradients(x).mean(0))
    at = Instance(problem, x, u, layer_frames(edge, parts["frame"]), lr, edge.tau, L)
    if edge.settled:
        grads = problem.gradients(x) * at.spread([m * cols for m, _, cols in edge.layers])
        u = -grads
    return replace(at, u=u if edge.free else u - u.mean(0))


HARD: dict[str, Any] = {"restarts": 4, "steps": 20}  # a search that reaches the tight value from any start
Terms = bench.Terms[Round]


def edges(**changes: Any) -> list[Edge]:
    """The standard corners: tau = 1, r = m, n = 1, layers of different shape and rank, small and largest steps, and a
    subspace of an eighth of the dimensions."""
    base = [
        Edge(tau=1),
        Edge(tau=2, n=1),
        Edge(tau=3, n=2, layers=((1, 1, 1),)),
        Edge(tau=2, n=2, layers=((2, 2, 1),), shape="spline"),
        Edge(tau=2, n=2, layers=((2, 1, 1), (1, 1, 1))),
        Edge(tau=4, n=1, layers=((3, 1, 1),), shape="cosine", share=0.5),
        Edge(tau=3, n=2, shape="huber", share=0.2),
        Edge(tau=2, n=3, layers=((2, 1, 1),), still=True),
        Edge(tau=3, n=2, settled=True, share=0.5),
        Edge(tau=3, n=2, layers=((8, 1, 1),)),
    ]
    return [replace(edge, **changes) for edge in base]


def rescaled(at: Instance, loss: float, variable: float) -> Instance:
    """The same instance with losses multiplied by a = `loss` and variables by b = `variable`."""
    a, b = loss, variable
    problem, slope = at.problem.rescaled(a, b), a / b**2
    return replace(at, problem=problem, x=at.x * b, u=at.u * (a / b), lr=at.lr / slope, L=at.L * slope)


HELD = "{n} instances by ascent through FedSub.client and FedSub.server, worst at {edge}"
BENCH: Bench[Edge, Instance, Round] = Bench(
    ROOT, edges, build, play, dump,
    slacks=lambda at, needs: slacks(at), admissible=admissible, rescaled=rescaled, needs=(),
    holds_text=HELD, breaks_text=f"broken after {HELD}", effort={"quick": (2, 6), "full": (8, 30)},
    test_units=True, unit_edges=edges(),
)  # fmt: skip
attack, survives, sharpened, broken = BENCH.attack, BENCH.survives, BENCH.sharpened, BENCH.stored
OMEGA = "in the units that (44) fixes: Omega adds ||Y||^2 to f"


def square(v: torch.Tensor) -> torch.Tensor:
    """Return ||v||^2 over the last axis."""
    return (v**2).sum(-1)
