"""FedMUD: a window between two resets on extreme instances, with exact expectations, and how a display is attacked.

A window starts at t_s with U, V shared by all clients and lasts S = n E iterations. Every iterate comes from
`FedMUD.client`: each combination of all clients' noise over the window is one more row of clients. At a multiple of E
the clients hold the average, and no reset follows: a reset leaves the model alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import torch

from fedtheory.algorithms.fedmud import Down, FedMUD, Frozen
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.loop import play_round
from fedtheory.core.message import Known, Replay
from fedtheory.maps.decomposition import Decomposition, Factors, Full, Outer, Product, Whole
from fedtheory.theory import bench, search
from fedtheory.theory.bench import Bench, about, largest_gap
from fedtheory.theory.claim import Check, Claim, Outcome, Printed, entries
from fedtheory.theory.instances import Sample, Smooth, drain, exact
from fedtheory.theory.rounding import digits, level

KEY = Key(64)
DOUBLE = torch.float64
A1 = Printed("every f_i is differentiable and L_s-smooth", "Assumption 1")
A2 = Printed("E grad F_i = grad f_i, variance <= sigma^2, E||grad F_il||^2 <= G^2", "Assumption 2")
A3 = Printed(
    "||U||^2 <= kappa_u^2, ||V||^2 <= kappa_v^2; at t_s ||U||^2 <= epsilon_u^2, ||V||^2 <= epsilon_v^2 (the last one "
    "printed with U for V)",
    "Assumption 3",
)
A4 = Printed("delta_min(Ubar_l)^2 + delta_min(Vbar_l)^2 >= psi_uv^2 > 0", "Assumption 4")
UNBIASED = Printed("E grad F_i = grad f_i, E||grad F_i - grad f_i||^2 <= sigma^2", "Assumption 2")
STEP = Printed("1 < c < 2, 0 < eta <= min{(psi_uv^2/2)^(1/(c-1)), 1/L_s, 1}", "Theorem 1")
SURE = "||grad F_il|| <= G surely, not only in the mean square"
FRESH = "E of (26) is given the past: xi_i^t is drawn anew in every iteration, as its index says"
Atoms = tuple[tuple[float, float], ...]
SIGNS: Atoms = ((1.0, 0.5), (-1.0, 0.5))


def rare(p: float) -> Atoms:
    """Noise that is 1 - p with probability p, else -p: with mean p, a gradient that is 1 or 0."""
    return ((1 - p, p), (-p, 1 - p))


@dataclass(frozen=True)
class Instance:
    """What a window is made of.

    Fields:
        problem: the clients' losses; its noise vectors are multiplied by the atoms.
        layers: (m, n, r) per layer; r = 0: not decomposed. The others have U (m x r), V (n x r).
        start: x at t_s without the frozen part, (q,).
        base: the frozen part, (d,), zero in the layers that are not decomposed.
        lr, E, rounds: eta, local steps, rounds of the window.
        atoms: value and probability of the noise factor, mean zero.
        kappa: bounds (kappa_u^2, kappa_v^2) where they are larger than what the window visits.
        draws: the atom of every draw, (S, N, C), in C scenarios from which all others differ where no noise is or with
            no probability that a double holds; None: all scenarios.
        odds: probability of these scenarios, (C,), where draws are not independent of each other.
    """

    problem: Smooth
    layers: tuple[tuple[int, int, int], ...]
    start: torch.Tensor
    base: torch.Tensor
    lr: float
    E: int
    rounds: int = 1
    atoms: Atoms = SIGNS
    kappa: tuple[float, float] = (0.0, 0.0)
    draws: torch.Tensor | None = None
    odds: torch.Tensor | None = None

    @property
    def N(self) -> int:
        return self.problem.n

    @property
    def S(self) -> int:
        return self.E * self.rounds

    def dump(self) -> dict[str, Any]:
        """As data, numbers as exact rationals."""
        p = self.problem
        named = {
            "h": p.h,
            "b": p.b,
            "a": p.a,
            "noise": p.noise,
            "gate": p.gate,
            "q": p.q,
            "start": self.start,
            "base": self.base,
        }
        sizes = {"layers": [list(layer) for layer in self.layers], "E": self.E, "rounds": self.rounds}
        numbers = {"lr": exact(self.lr), "atoms": exact(list(self.atoms)), "kappa": exact(list(self.kappa))}
        return {"shape": p.shape} | {k: exact(v) for k, v in named.items() if v is not None} | sizes | numbers


def layout(layers: Sequence[tuple[int, int, int]]) -> Layout:
    """A matrix (m x n) of the paper is a layer of n rows and m columns."""
    return Layout(tuple(Layer(f"W{k}", n, m) for k, (m, n, _) in enumerate(layers)))


class Given(Smooth):
    """A problem whose noise factors are given, (K, rows, 1)."""

    def __init__(self, base: Smooth, factors: torch.Tensor) -> None:
        for name, value in vars(base).items():
            setattr(self, name, value)
        self.factors = factors

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[Sample]:
        return [Sample(clients, factor) for factor in self.factors]


class Window:
    """Everything a window visits; axes: iteration t, client, scenario C, numbers.

    Attributes:
        probability: of the scenarios, (C,).
        u, w: x_i^t (trained part) and w_i^t, t = 0..S; ubar, wbar: (17), (18), without the client axis.
        g, d: sample gradient and grad f_i at w_i^t, t = 0..S-1; h: grad H_i at x_i^t; samples: xi^{t+1} of all rows.
    """

    def __init__(self, at: Instance) -> None:
        self.at, p, N = at, at.problem, at.N
        atoms = at.atoms if p.noise is not None else ((0.0, 1.0),)
        values, odds = (torch.tensor(v, dtype=DOUBLE) for v in zip(*atoms))
        index = at.draws
        if index is None:
            index = torch.tensor(list(product(range(len(atoms)), repeat=at.S * N if p.noise is not None else 1)))
            index = index.expand(-1, at.S * N).reshape(-1, at.S, N).permute(1, 2, 0)  # (S, N, C)
        self.probability = odds[index].flatten(0, 1).prod(0) if p.noise is not None else torch.ones(1, dtype=DOUBLE)
        self.probability = self.probability if at.odds is None else at.odds
        C = index.shape[-1]
        factors = values[index].reshape(at.S, N * C, 1)
        rows = torch.arange(N).repeat_interleave(C)
        parts = tuple(Product(Outer(m, n, r), True) if r else Whole(m * n) for m, n, r in at.layers)
        self.D = Factors(layout(at.layers), parts, at.start, torch.zeros(0, dtype=DOUBLE))
        fedmud = FedMUD(at.lr, at.E, Full(), None)
        u, path = at.start.expand(N * C, -1), []
        for k in range(at.rounds):
            frozen: Any = Frozen(Known(at.base), Known(self.D))  # pyright: ignore[reportArgumentType]
            down = Down(Replay(frozen, None), u)
            given = Given(p, factors[k * at.E : (k + 1) * at.E])
            steps, (up, _) = drain(fedmud.client(given, rows, None, down, Key(0)))
            u = up.u.view(N, C, -1).mean(0).repeat(N, 1)
            path += [*steps[:-1], u]
        self.u = torch.stack([at.start.expand(N * C, -1), *path]).view(at.S + 1, N, C, -1)
        self.w = at.base + self.D.update(self.u)
        self.rows, self.samples = rows, [Sample(rows, factor) for factor in factors]
        self.atoms = [(v, q) for v, q in atoms]

    def _of_samples(self, of: Callable[[torch.Tensor, Sample], torch.Tensor], samples: list[Sample]) -> torch.Tensor:
        """What a function of the problem has at every w_i^t but the last, t = 0..S-1."""
        w = self.w[:-1]
        return torch.stack([of(one.flatten(0, 1), xi) for one, xi in zip(w, samples)]).view(w.shape)

    @cached_property
    def ubar(self) -> torch.Tensor:
        return self.u.mean(1)

    @cached_property
    def wbar(self) -> torch.Tensor:
        return self.at.base + self.D.update(self.ubar)

    @cached_property
    def g(self) -> torch.Tensor:
        return self._of_samples(self.at.problem.grads, self.samples)

    @cached_property
    def d(self) -> torch.Tensor:
        return self._of_samples(self.at.problem.grads, [Sample(self.rows, None)] * self.at.S)

    @cached_property
    def h(self) -> torch.Tensor:
        return self.D.pullback(self.u[:-1], self.g)

    @cached_property
    def noise(self) -> torch.Tensor:
        ones = torch.ones(len(self.rows), 1, dtype=DOUBLE)
        return self._of_samples(self.at.problem.at, [Sample(self.rows, ones)] * self.at.S)

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Expectation over the scenarios, which come last."""
        return values @ self.probability

    def matrices(self, v: torch.Tensor) -> list[torch.Tensor]:
        """(..., d) -> one (..., m, n) per layer."""
        return self.D.layout.columns(v)

    def factors(self, u: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(..., q) -> U (..., m, r), V (..., n, r) of the decomposed layers."""
        pieces = u.split([part.size for part in self.D.parts], -1)
        shaped = zip(pieces, self.at.layers)
        return [
            (piece[..., : m * r].unflatten(-1, (m, r)), piece[..., m * r :].unflatten(-1, (n, r)))
            for piece, (m, n, r) in shaped
            if r
        ]

    def pieces(self, u: torch.Tensor) -> list[torch.Tensor]:
        """(..., q) -> the trained numbers of each layer."""
        return list(u.split([part.size for part in self.D.parts], -1))

    @cached_property
    def low(self) -> list[int]:
        """The decomposed layers."""
        return [k for k, layer in enumerate(self.at.layers) if layer[2]]

    @cached_property
    def full(self) -> list[int]:
        """The layers that are not: rho of them."""
        return [k for k, layer in enumerate(self.at.layers) if not layer[2]]

    def fbar(self, t: int) -> torch.Tensor:
        """grad f(wbar^t), (C, d)."""
        return self.fbars(t).mean(0)

    def fbars(self, t: int) -> torch.Tensor:
        """grad f_i(wbar^t), (N, C, d)."""
        wbar = self.wbar[t].repeat(self.at.N, 1)
        rows = torch.arange(self.at.N).repeat_interleave(len(self.wbar[t]))
        return self.at.problem.grads(wbar, Sample(rows, None)).view(self.at.N, *self.wbar[t].shape)

    def f(self, t: int) -> torch.Tensor:
        """E f(wbar^t)."""
        return self.mean(self.at.problem.values(self.wbar[t]).mean(0))

    # Constants of the assumptions: the smallest that this window admits

    @cached_property
    def G2(self) -> torch.Tensor:
        """E ||grad F_il||^2 given the past, at most."""
        var = sum(q * v**2 for v, q in self.atoms)
        both = zip(self.matrices(self.d), self.matrices(self.noise))
        return torch.stack([(sq(d) + var * sq(noise)).max() for d, noise in both]).max()

    @cached_property
    def G2_sure(self) -> torch.Tensor:
        """||grad F_il||^2 at most."""
        return torch.stack([sq(g).max() for v, _ in self.atoms for g in self.matrices(self.d + v * self.noise)]).max()

    @cached_property
    def sigma2(self) -> torch.Tensor:
        return sum(q * v**2 for v, q in self.atoms) * (self.noise**2).sum(-1).max()

    @cached_property
    def kappa(self) -> tuple[torch.Tensor, torch.Tensor]:
        """kappa_u^2, kappa_v^2."""
        pairs = self.factors(self.u)
        bounds = (torch.stack([sq(pair[k]).max() for pair in pairs]).max() for k in (0, 1))
        u, v = (bound.clamp(min=least) for bound, least in zip(bounds, self.at.kappa))
        return u, v

    @cached_property
    def epsilon(self) -> tuple[torch.Tensor, torch.Tensor]:
        """epsilon_u^2, epsilon_v^2."""
        pairs = self.factors(self.at.start)
        return torch.stack([sq(U) for U, _ in pairs]).max(), torch.stack([sq(V) for _, V in pairs]).max()

    def gamma(self, sure: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Gamma_u^2, Gamma_v^2 of (32)."""
        if not self.low:
            return torch.zeros((), dtype=DOUBLE), torch.zeros((), dtype=DOUBLE)
        (ku, kv), (eu, ev), G2 = self.kappa, self.epsilon, self.G2_sure if sure else self.G2
        step = 2 * self.at.lr**2 * self.at.S**2 * G2
        return torch.minimum(2 * eu + step * kv, ku), torch.minimum(2 * ev + step * ku, kv)

    @cached_property
    def Ls(self) -> torch.Tensor:
        return self.at.problem.h.abs().max()

    @cached_property
    def Lh(self) -> torch.Tensor:
        """Of grad h_i between x_i^t and xbar^t: L_s max(1, kappa_u^2 + kappa_v^2) + sup ||grad f_i||."""
        if not self.low:
            return self.Ls
        ku, kv = self.kappa
        gaps = [
            (sq(U - Ub).sqrt() * kv.sqrt() + sq(V - Vb).sqrt() * ku.sqrt()) ** 2
            for (U, V), (Ub, Vb) in zip(self.factors(self.u), self.factors(self.ubar[:, None]))
        ]
        whole = self.matrices(self.w - self.wbar[:, None])
        gaps += [sq(whole[k]) for k in self.full]
        reach = sum(gaps).max().sqrt()  # pyright: ignore[reportAttributeAccessIssue]
        top = torch.stack([(self.fbars(t) ** 2).sum(-1).max() for t in range(self.at.S + 1)]).max().sqrt()
        return self.Ls * (ku + kv).clamp(min=1) + top + self.Ls * reach

    @cached_property
    def psi2(self) -> torch.Tensor:
        """min ||grad h_l(xbar^t)||^2 / ||grad f_l(wbar^t)||^2 over t, layers, scenarios: see Lemma 1. (1 where every
        gradient is 0: nothing is asked there.)
        """
        found = [torch.ones((), dtype=DOUBLE)]
        for t in range(self.at.S):
            f = self.fbar(t)
            hs = self.pieces(self.D.pullback(self.ubar[t], f))
            fs = self.matrices(f)
            for k in self.low:
                seen = sq(fs[k]) > 1e-30
                found += [((hs[k] ** 2).sum(-1)[seen] / sq(fs[k])[seen]).min()] if bool(seen.any()) else []
        return torch.stack(found[1:] or found).min()

    def last(self, t: int) -> int:
        """t_e: the last aggregation."""
        return t - t % self.at.E


def worst(*lines: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The entry with the largest left/right of many inequalities with right sides that are not negative; 0 <= 1 of
    none.
    """
    lines = lines or ((torch.zeros(1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE)),)
    left, right = zip(*((torch.as_tensor(a), torch.as_tensor(b)) for a, b in lines))
    return search.worst(*((a, b.expand_as(a)) for a, b in zip(left, right)), floor=1e-300)


def sq(matrix: torch.Tensor) -> torch.Tensor:
    """||.||_F^2 over the last two axes."""
    return (matrix**2).sum((-2, -1))


# Attack


@dataclass(frozen=True)
class Edge(bench.Edge):
    """Discrete settings of an instance.

    Fields:
        N, E, rounds, layers: as in `Instance`.
        shape, noisy: of the losses.
        mud: V = 0 at t_s, as after a reset; otherwise both factors are arbitrary.
        share: eta L_s.
    """

    N: int = 2
    E: int = 2
    rounds: int = 1
    layers: tuple[tuple[int, int, int], ...] = ((2, 2, 1),)
    shape: str = "quadratic"
    noisy: bool = True
    mud: bool = False
    share: float = 1.0

    @property
    def d(self) -> int:
        return sum(m * n for m, n, _ in self.layers)

    @property
    def q(self) -> int:
        return sum((m + n) * r if r else m * n for m, n, r in self.layers)

    def parts(self) -> dict[str, int]:
        each = self.N * self.d
        return {"h": each, "b": each, "noise": each, "start": self.q, "base": self.d}


def build(z: torch.Tensor, edge: Edge) -> Instance:
    """Every z is an admissible instance; L_s = 1."""
    d, N = edge.d, edge.N
    h, b, noise, start, base = edge.split(z).values()
    h = h / h.abs().max().clamp(min=1e-9)
    problem = Smooth(
        h.view(N, d), b.view(N, d), shape=edge.shape, noise=noise.view(N, d) if edge.noisy else None,
        layout=layout(edge.layers),
    )  # fmt: skip
    keep, mask = [], []
    for m, n, r in edge.layers:
        keep += (
            [1.0] * (m * r + (0 if edge.mud else n * r)) + [0.0] * (n * r if edge.mud else 0) if r else [1.0] * m * n
        )
        mask += [float(r > 0)] * (m * n)
    keep, mask = (torch.tensor(v, dtype=DOUBLE) for v in (keep, mask))
    return Instance(problem, edge.layers, start * keep, base * mask, edge.share, edge.E, edge.rounds)


def edges() -> list[Edge]:
    """N = 1, E = 1, scalars, tall, wide, full rank, several layers, whole layers, after a reset and any state."""
    return [
        Edge(1, 1, 1, ((1, 1, 1),)),
        Edge(2, 2, 1, ((2, 2, 1),)),
        Edge(2, 2, 2, ((1, 1, 1),), mud=True, share=0.5),
        Edge(1, 3, 1, ((2, 1, 1), (1, 1, 1)), mud=True),
        Edge(2, 2, 1, ((1, 1, 0), (2, 1, 1)), shape="cosine"),
        Edge(4, 3, 1, ((2, 3, 2),), noisy=False, share=0.2),
        Edge(3, 2, 2, ((1, 2, 0), (2, 2, 2)), noisy=False, mud=True, share=0.1),
        Edge(6, 4, 1, ((1, 1, 1),), shape="huber", noisy=False),
    ]


WHOLE = [
    Edge(1, 1, 1, ((2, 1, 0),)),
    Edge(2, 2, 1, ((1, 1, 0),)),
    Edge(2, 2, 1, ((1, 1, 0),), share=0.1),
    Edge(4, 4, 1, ((1, 1, 0), (1, 1, 0)), noisy=False, shape="cosine"),
]
SMALL = [
    Edge(1, 1, 1, ((1, 1, 1),), share=0.02),
    Edge(2, 2, 1, ((2, 2, 2),), share=0.01),
    Edge(2, 2, 1, ((1, 1, 0), (1, 1, 1)), share=0.02),
    Edge(2, 2, 2, ((1, 1, 1),), mud=True, share=0.05),
    Edge(4, 3, 1, ((1, 2, 1),), noisy=False, share=0.02),
]
LOW = [edge for edge in edges() if all(r for _, _, r in edge.layers)]
Pair = bench.Pair
Terms = bench.Terms[Window]
Pairs = bench.Pairs[Window]


def holding(at: Instance, slacks: Callable[[Window], dict[str, float]]) -> dict[str, float]:
    """The slacks of a window, which must all be at least 0."""
    found = {name: float(value) for name, value in slacks(Window(at)).items()}
    if bad := {name: value for name, value in found.items() if value < -1e-12}:
        raise AssertionError(f"assumptions are broken: {bad}")
    return found


def scaled(at: Instance, loss: float, variable: float) -> Instance:
    """Losses times a, variables times b: U and V times sqrt(b), eta times b/a (times b^2/a with whole layers alone)."""
    whole = not any(r for _, _, r in at.layers)
    p = at.problem.rescaled(loss, variable)
    root = variable if whole else math.sqrt(variable)
    lr = at.lr * (variable**2 if whole else variable) / loss
    return replace(at, problem=p, start=at.start * root, base=at.base * variable, lr=lr)


HELD = "{n} instances by ascent through FedMUD.client, worst at {edge}"
BENCH: Bench[Edge, Instance, Window] = Bench(
    KEY, edges, build, Window, Instance.dump, HELD, HELD, {"quick": (1, 10), "full": (6, 60)}, admissible=holding,
    rescaled=scaled, together=False, unit_edges=[Edge()],
    units_text=("units agree: False", "units agree: True"), number_format=".4g",
)  # fmt: skip
attack, with_units = BENCH.attack, BENCH.with_units
Makers = Sequence[Callable[[], Instance]]


def survives(
    terms: Terms, name: str, what: str = "", corners: Sequence[Edge] | None = None, near: Makers = ()
) -> Check:
    """The check of an inequality: it holds where neither the search nor the instances `near` equality break it."""

    def check(effort: str) -> Outcome:
        top = (-math.inf, "")
        for make in near:
            outcome = BENCH.stored(make, terms, about(what, make.__name__), lambda q: {})(effort)
            if not outcome.holds:
                return outcome
            top = max(top, (outcome.margin or 0.0, make.__name__))
        outcome = BENCH.survives(terms, name, what, corners, enough=1 + 1e-6)(effort)
        if not (top[1] and outcome.holds):
            return outcome
        margin = max(outcome.margin or 0.0, top[0])
        return replace(outcome, margin=margin, detail=f"{outcome.detail}; at {top[1]} {top[0]:.4g}")

    return check


def broken(make: Callable[[], Instance], terms: Terms, why: str, slacks: Callable[[Window], dict[str, float]]) -> Check:
    """A stored instance on which an inequality is evaluated; every slack must be at least 0."""
    return BENCH.stored(make, terms, why, slacks)


def admissible(window: Window) -> dict[str, float]:
    """Slacks of Assumptions 1 to 3 with the constants of the window, and of eta <= 1/L_s."""
    at = window.at
    values = torch.tensor([v for v, _ in window.atoms]), torch.tensor([p for _, p in window.atoms])
    slacks = {
        "A2: mean zero": -float((values[0] * values[1]).sum().abs()),
        "A2: probabilities": -abs(float(values[1].sum()) - 1),
    }
    if window.low:
        (ku, kv), pairs = window.kappa, window.factors(window.u)
        slacks |= {
            "A3: kappa_u^2": float(ku - torch.stack([sq(U).max() for U, _ in pairs]).max()),
            "A3: kappa_v^2": float(kv - torch.stack([sq(V).max() for _, V in pairs]).max()),
            "A3: kappa_u^2 >= epsilon_u^2": float(ku - window.epsilon[0]),
        }
    return slacks | {
        "0 < eta <= 1": 1 - float(at.lr),
        "eta <= 1/L_s": 1 - float(at.lr * window.Ls),
    }


def gaps(name: str, pairs: Pairs, tol: float = 1e-9) -> Check:
    """The check of an identity: both sides on random windows of every kind."""

    def size(q: Window, left: torch.Tensor, right: torch.Tensor) -> float:
        return max(float(left.abs().max()), float(right.abs().max()), 1e-9)

    def check(effort: str) -> Outcome:
        found = largest_gap(BENCH.rounds(name, trials=1 if effort == "quick" else 10), pairs, size)
        if not found.pairs:
            raise AssertionError(f"{name}: nothing to compare on any window")
        said = f"{found.pairs} pairs of sides on windows through FedMUD.client, all scenarios enumerated"
        if found.size <= tol:
            return Outcome(True, "exact", 0.0, f"{said}: largest relative gap below {tol:g}")
        data = {"relative gap": digits(found.size)}
        return Outcome(False, "exact", found.size, f"{said}: relative gap {found.size:.3g}", data)

    return check


mud = entries("mud")


def waits(id: str, reason: str) -> Claim:
    """An experiment whose runs are not made here."""
    return mud(id, "empirical", unchecked=reason)


# Outcomes of single checks


def normal(*shape: int, name: str) -> torch.Tensor:
    """Draw N(0, 1) entries from the key of this name."""
    return torch.randn(*shape, generator=KEY.fold(name).generator(), dtype=DOUBLE)


def identical(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], said: str, tol: float = 1e-12) -> Outcome:
    """The outcome of an identity."""
    gap, shown = level(max(float((a - b).abs().max()) for a, b in pairs), tol)
    return outcome(gap < tol, "exact", gap, f"{said}: largest gap {shown} over {len(pairs)} pairs of sides")


def outcome(holds: bool, evidence: str, margin: float | None, said: str, data: dict[str, Any] | None = None) -> Outcome:
    """Make an outcome whose counterexample is `data`, or the sentence where there is none."""
    return Outcome(holds, evidence, margin, said, None if holds else (data or {"found": said}))


def both(*checks: Check) -> Check:
    """All of them, with the first one's margin; where some fail, the first of these, and what the others found."""

    def check(effort: str) -> Outcome:
        found = [one(effort) for one in checks]
        some = [one for one in found if not one.holds] or found
        return replace(some[0], detail="; ".join(one.detail for one in some))

    return check


# Rounds of FedMUD, on three clients with two decomposed layers


NET = Layout((Layer("0", 3, 4), Layer("1", 2, 3)))


def linear_problem() -> Smooth:
    g = KEY.fold("net").generator()
    h, b = torch.rand(3, NET.size, generator=g, dtype=DOUBLE), torch.randn(3, NET.size, generator=g, dtype=DOUBLE)
    return Smooth(h, b, layout=NET)


class Unchecked(FedMUD):
    """FedMUD that also takes what it refuses, an update that does not start at zero: the broken version of a claim."""

    def __post_init__(self) -> None: ...


def rounds(how: Decomposition, s: int | None, count: int):
    """States of FedMUD on three clients with two decomposed layers."""
    problem, algorithm = linear_problem(), Unchecked(0.3, 2, how, s)
    state = algorithm.init(problem, torch.ones(NET.size, dtype=DOUBLE), Key(3))
    for t in range(count):
        after, up, _ = play_round(algorithm, problem, state, torch.arange(3), Key(3).fold("round", t))
        yield state.server, up, after.server
        state = after
