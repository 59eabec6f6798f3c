"""FedSub: Algorithm 1 against its rewritings (3)-(4), (13)-(19), and its derivation (5)-(12)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms.fedsub import FedSub
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.loop import play_round
from fedtheory.core.problem import Problem
from fedtheory.maps.subspace import Basis, Coordinate, Identity, Projection, Spherical
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedsub.round import ALL, ROOT, START, step
from fedtheory.theory.instances import Smooth, coordinate_frames, exact, fixed, orthogonal
from fedtheory.theory.rounding import digits, level
from fedtheory.theory.search import same

TWO_LAYERS = Layout((Layer("first", 4, 2), Layer("second", 3, 1)))  # with r = 2 the ratios m/r are 2 and 3/2


# Identities, on Algorithm 1's own lines


@dataclass(frozen=True)
class Trace:
    """A round as Algorithm 1 made it.

    Fields:
        P, P_next: P^k, P^{k+1}.
        x, x_next: x^k, x^{k+1}; dual, dual_next: Lambda_i^k, Lambda_i^{k+1}.
        B: B_i^{k,t}, t = 0, ..., tau, each (n, r); g: g_i(B_i^{k,t}), t < tau; mean: line 10.
        low: (r/m) (P^k)^T grad f_i(x^k).
        before: the round before, None at k = 0.
    """

    algorithm: FedSub
    problem: Problem
    P: Any
    P_next: Any
    x: torch.Tensor
    x_next: torch.Tensor
    dual: torch.Tensor
    dual_next: torch.Tensor
    B: list[torch.Tensor]
    g: list[torch.Tensor]
    mean: torch.Tensor
    low: torch.Tensor
    before: "Trace | None"

    @property
    def G(self) -> torch.Tensor:
        """sum_t g_i, (n, r)."""
        return torch.stack(self.g).sum(0)

    def turn(self, v: torch.Tensor) -> torch.Tensor:
        """(P^{k+1})^T P^k."""
        return self.P_next.project(self.P.lift(v))

    @property
    def c(self) -> torch.Tensor:
        """c_i^k of (17)."""
        if self.before is None:
            return torch.zeros_like(self.dual)
        past = self.before.G
        return self.before.turn(past.mean(0) - past) / self.algorithm.local_steps


def traces(algorithm: FedSub, problem: Problem, rounds: int, shift: float = 0.0) -> list[Trace]:
    """Rounds of the algorithm; `shift` is added to every Lambda_i^0."""
    state = algorithm.init(problem, problem.start() + 0.5, ROOT)
    server, own = state.server, replace(state.own, dual=state.own.dual + shift)
    clients, out = problem.clients, []
    r_m = 1 / algorithm.projection.norm2(problem.layout, problem.dtype)
    full = problem.full(clients)
    for k in range(rounds):
        key = ROOT.fold("identity", k)
        down = algorithm.broadcast(server, key)
        P, B = down.P.value, [torch.zeros_like(own.dual)]
        local = algorithm.client(problem, clients, own, down, key)
        while True:
            try:
                B.append(next(local))
            except StopIteration as stop:
                up, mine = stop.value
                break
        new, reply = algorithm.server(server, down, up, clients, key)
        assert reply is not None  # the dual is what the identities are about
        after = algorithm.close(mine, clients, down, reply)
        gradient = lambda b, P=P, x=server.x: r_m * P.project(problem.grads(x + P.lift(b), full))
        g = [gradient(b) for b in B[:-1]]
        P_next = P if reply.P_next is None else reply.P_next.value
        before = out[-1] if out else None
        out.append(
            Trace(algorithm, problem, P, P_next, server.x, new.x, own.dual, after.dual, B, g, reply.mean, g[0], before)
        )
        server, own = new, after
    return out


def dyadic() -> Quadratic:
    """Two clients in four dimensions whose run with CD, r = 1, tau = 2, eta = 1/4 float64 carries out exactly."""
    H = torch.diag_embed(torch.tensor([[1.0, 0.5, 0.25, 2.0], [0.5, 1.0, 1.0, 0.25]], dtype=torch.float64))
    return Quadratic(H, torch.tensor([[1.0, -2.0, 3.0, 0.5], [0.0, 1.0, -1.0, 2.0]], dtype=torch.float64))


def laboratory() -> list[tuple[FedSub, Problem]]:
    """Algorithms and problems that the identities are tried on; the first is exact in float64."""
    one = Quadratic.random(3, 6, ROOT.fold("one"), layout=Layout.single(3, 2))
    two = Quadratic.random(4, TWO_LAYERS.size, ROOT.fold("two"), layout=TWO_LAYERS)
    logistic = LogisticRegression.fedsub(ROOT.fold("logistic"), n=3, samples=60, m=6, lam=0.1)
    return [
        (FedSub(0.25, 2, Coordinate(1)), dyadic()),
        (FedSub(0.05, 3, Spherical(2)), one),
        (FedSub(0.1, 1, Coordinate(2)), two),
        (FedSub(0.1, 4, Spherical(2)), two),
        (FedSub(0.2, 3, Coordinate(4)), logistic),
        (FedSub(0.2, 2, Identity()), logistic),
    ]


Pairs = Callable[[Trace], Sequence[tuple[torch.Tensor, torch.Tensor]]]


def identical(
    pairs: Pairs, *, shift: float = 0.0, cases: Callable[[], list[tuple[FedSub, Problem]]] = laboratory
) -> Check:
    """The check of an identity: largest relative gap over rounds, projections and problems; 0 where exact."""

    def check(effort: str) -> Outcome:
        worst, where, count, first = 0.0, (0, 0), 0, 0.0
        for number, (algorithm, problem) in enumerate(cases()):
            for k, trace in enumerate(traces(algorithm, problem, 3 if effort == "quick" else 10, shift)):
                for left, right in pairs(trace):
                    count += 1
                    gap = float((left - right).abs().max() / right.abs().max().clamp(min=1.0))
                    if number == 0:
                        first = max(first, gap)
                    if gap > worst:
                        worst, where = gap, (number, k)
        holds = worst < 1e-11
        margin, small = level(worst, 1e-11)
        said = f"largest relative gap {small} over {count} pairs of sides, {first:g} on the instance that float64 "
        data = None if holds else {"gap": worst, "case": where[0], "round": where[1], "shift of Lambda^0": shift}
        return Outcome(holds, "exact", margin, said + "carries out exactly", data)

    return check


def from_zero(terms: Callable[[Trace], list[tuple[torch.Tensor, torch.Tensor]]]) -> dict[str, Any]:
    """The entry of an identity that rests on Lambda_i^0 = 0: what is assumed, check, and control."""
    return {
        "assumes": (ALL, START),
        "check": identical(terms),
        "control": identical(terms, shift=1.0),
        "broken": "Lambda_i^0 = 1 for every client",
    }


def eq3(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    eta = q.algorithm.lr
    whole = q.G + q.dual / eta
    first = q.turn(q.dual - eta * whole + eta * whole.mean(0))
    return [(q.dual_next, first), (q.dual_next, q.turn(eta * (q.G.mean(0) - q.G)))]


def eq4(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    eta, tau = q.algorithm.lr, q.algorithm.local_steps
    moves = [(b1, b0 - eta * (g + q.c)) for b0, b1, g in zip(q.B, q.B[1:], q.g)]
    return [*moves, (q.c, q.dual / (eta * tau))]


def eq13(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    eta, tau = q.algorithm.lr, q.algorithm.local_steps
    moves = [(b1, b0 - eta * (g + q.dual / (eta * tau))) for b0, b1, g in zip(q.B, q.B[1:], q.g)]
    return [*moves, (q.B[-1], -eta * (q.G + q.dual / eta))]


def eq13_wrong(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    eta, tau = q.algorithm.lr, q.algorithm.local_steps
    return [(q.B[-1], -eta * (q.G + q.dual / (eta * tau)))]


def eq15(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(q.dual_next.mean(0), torch.zeros_like(q.mean))]


def eq18(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(q.x_next, q.x + q.P.lift(q.B[-1].mean(0))), (q.x_next, q.x - q.algorithm.lr * q.P.lift(q.G.mean(0)))]


def eq19(q: Trace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [*eq4(q)[:-1], eq18(q)[1]]


def check_forms(absent: bool = False) -> Check:
    """(19) as an algorithm: form="sums" against form="printed", whole runs; absent: always one client away."""

    def check(effort: str) -> Outcome:
        worst = 0.0
        for algorithm, problem in laboratory():
            ends = []
            for form in ("printed", "sums"):
                one = replace(algorithm, form=form)
                state = one.init(problem, problem.start(), ROOT)
                for t in range(6):
                    clients = problem.clients[problem.clients != t % problem.n] if absent else problem.clients
                    state, _, _ = play_round(one, problem, state, clients, ROOT.fold("round", t))
                ends.append(state.server.x)
            worst = max(worst, float((ends[0] - ends[1]).abs().max() / ends[0].abs().max()))
        margin, small = level(worst, 1e-10)
        said = f"form='sums' against 'printed', six rounds{', one client away' * absent}: relative gap {small}"
        return Outcome(worst < 1e-10, "exact", margin, said, None if worst < 1e-10 else {"gap": digits(worst)})

    return check


# App. 7.1: from (5) to (12)


def consensus(v: torch.Tensor) -> torch.Tensor:
    """The operator of (5), on (n, .)."""
    return v - v.mean(0)


@dataclass(frozen=True)
class PrimalDual:
    """Recursion (8) from consensus and y^0 = 0: x^k, y^k after every round, each (n, d)."""

    x: list[torch.Tensor]
    y: list[torch.Tensor]


def recursion8(
    problem: Problem, x0: torch.Tensor, lr: float, tau: int, rounds: int, mean: bool = False, y0: float = 0.0
) -> PrimalDual:
    """(8); mean=True takes grad f(z_i) as printed, False grad f_i(z_i). `y0`: every entry of y^0."""
    n, full = problem.n, problem.full(problem.clients)
    x, y = x0.expand(n, -1), torch.full((n, len(x0)), y0, dtype=x0.dtype)
    out = PrimalDual([x], [y])
    for _ in range(rounds):
        z = x
        for _ in range(tau):
            grad = torch.stack([problem.grad(v) for v in z]) if mean else problem.grads(z, full)
            z = z - lr * grad - consensus(y) / tau
        y = y + consensus(z)
        x = z - consensus(z)
        out.x.append(x)
        out.y.append(y)
    return out


def opposed() -> Smooth:
    """f_1 = -f_2 = x in one dimension: f = 0."""
    row = torch.tensor([[0.0], [0.0]], dtype=torch.float64)
    return Smooth(row, row, a=torch.tensor([[1.0], [-1.0]], dtype=torch.float64))


def check_5_7(tilted: bool = False) -> Check:
    """L is a symmetric projector whose kernel is consensus; L y^k = y^k, L x^k = 0 along (8)."""

    def check(effort: str) -> Outcome:
        import sympy

        for n in (1, 2, 3, 5):
            L = sympy.eye(n) - sympy.ones(n, n) / n
            kernel = L.nullspace()
            if not (L * L == L and L.T == L and len(kernel) == 1 and same(kernel[0][0], kernel[0][-1])):
                return Outcome(False, "symbolic", None, f"n={n}", {"n": n})
        problem = Quadratic.random(3, 4, ROOT.fold("eq5"))
        path = recursion8(problem, problem.start() + 1, 0.1, 3, 5, y0=float(tilted))
        gap = max(float((consensus(v) - v).abs().max()) for v in path.y)
        gap = max(gap, *(float(consensus(v).abs().max()) for v in path.x))
        margin, small = level(gap, 1e-12)
        said = (
            f"L^2 = L = L^T with kernel the consensus, n = 1, 2, 3, 5: max over y is +inf off it; gap {small} along (8)"
        )
        data = None if gap < 1e-12 else {"y^0": "1 for every client", "gap of L y = y": gap}
        return Outcome(gap < 1e-12, "symbolic", margin, said, data)

    return check


def check_8(mean: bool) -> Check:
    """Whether (8) is what (9) and Algorithm 1 continue: FedSub with P = I against the recursion."""

    def check(effort: str) -> Outcome:
        gap, data = 0.0, None
        for problem in (opposed(), Quadratic.random(3, 4, ROOT.fold("eq8"))):
            for tau in (1, 2):
                path = recursion8(problem, problem.start(), 0.25, tau, 3, mean)
                trace = traces_from(FedSub(0.25, tau, Identity()), problem, problem.start(), 3)
                for k in range(1, 4):
                    for left, right in ((path.x[k][0], trace[k][0]), (path.y[k], trace[k][1])):
                        gap = max(gap, float((left - right).abs().max()))
                if data is None and gap >= 1e-11:  # the first problem, where float64 is exact
                    data = {"f_1": "x", "f_2": "-x", "x^0": "0", "eta": "1/4", "tau": tau}
                    data |= {"y^1 of (8)": exact(path.y[1]), "Lambda^1 of Algorithm 1": exact(trace[1][1])}
        margin, small = level(gap, 1e-11)
        said = f"y^k and x^k of (8) against Lambda^k and x^k of Algorithm 1 with P = I: largest gap {small}"
        return Outcome(gap < 1e-11, "exact", margin, said, data)

    return check


def traces_from(
    algorithm: FedSub, problem: Problem, x: torch.Tensor, rounds: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(x^k, Lambda^k) for k = 0, ..., rounds."""
    state = algorithm.init(problem, x, ROOT)
    out = [(state.server.x, state.own.dual.clone())]
    for t in range(rounds):
        state, _, _ = play_round(algorithm, problem, state, problem.clients, ROOT.fold("round", t))
        out.append((state.server.x, state.own.dual.clone()))
    return out


def check_papc(extrapolate: bool) -> Check:
    """(8) with tau = 1 against linearised primal-dual schemes for (7) from the same start.

    PAPC (extrapolate=False): z = x - eta grad - L y, y+ = y + L z, x+ = x - eta grad - L y+. PDHG (True, Condat-Vu):
    x+ = x - eta grad - L y, y+ = y + L(2 x+ - x).
    """

    def check(effort: str) -> Outcome:
        problem = Quadratic.random(3, 4, ROOT.fold("papc"))
        full = problem.full(problem.clients)
        path = recursion8(problem, problem.start(), 0.25, 1, 4)
        x, y, gap = path.x[0], path.y[0], 0.0
        for k in range(4):
            pushed = x - 0.25 * problem.grads(x, full)
            z = pushed - consensus(y)
            if extrapolate:
                y, x = y + consensus(2 * z - x), z
            else:
                y = y + consensus(z)
                x = pushed - consensus(y)
            gap = max(gap, float((x - path.x[k + 1]).abs().max()))
        name = "PDHG with extrapolation" if extrapolate else "the predictor-corrector form (PAPC)"
        data = None if gap < 1e-12 else {"gap": gap}
        margin, small = level(gap, 1e-12)
        return Outcome(gap < 1e-12, "exact", margin, f"(8) at tau = 1 against {name}: gap {small}", data)

    return check


def check_9(m: int, r: int) -> Check:
    """Whether z_i - x of (8) is P B for P of shape (m, r): distance of (8)'s local steps from the range of P."""

    def check(effort: str) -> Outcome:
        one = torch.eye(m, dtype=torch.float64)
        problem = Smooth(torch.zeros(m, m).double(), torch.zeros(m, m).double(), a=one)  # f_i = x_i
        P = coordinate_frames(m, r, scale="isotropic")[0]
        steps = -0.25 * problem.gradients(problem.start())  # z_i^{0,1} - x^0
        inside = steps @ P @ torch.linalg.pinv(P)
        gap = float((steps - inside).abs().max())
        data = {"f_i": "x_i", "m": m, "r": r, "z_m - x": exact(steps[-1]), "nearest P B": exact(inside[-1])}
        margin, small = level(gap, 1e-12)
        said = f"m = {m}, r = {r}: distance of the local step of (8) from the range of P {small}"
        return Outcome(gap < 1e-12, "exact", margin, said, data if gap >= 1e-12 else None)

    return check


def check_9_square(effort: str) -> Outcome:
    """r = m: (8) and FedSub with a square orthogonal P^k give the same x^k and P-coordinates of y."""
    problem = Quadratic.random(3, 4, ROOT.fold("eq9"))
    path = recursion8(problem, problem.start(), 0.1, 3, 4)
    trace = traces_from(FedSub(0.1, 3, Spherical(4)), problem, problem.start(), 4)
    gap = max(float((a[0] - b[0]).abs().max()) for a, b in zip(path.x, trace))
    margin, small = level(gap, 1e-12)
    return Outcome(gap < 1e-12, "exact", margin, f"r = m: x^k of (8) and of Algorithm 1 with Haar P^k, gap {small}")


def check_10(projection: Callable[[int], Projection]) -> Check:
    """(10) on iterates that satisfy (9), where all gradients and y lie in the range of P; Algorithm 1's client too."""

    def check(effort: str) -> Outcome:
        gap, eta, tau = 0.0, 0.1, 3
        for number, layout in enumerate((Layout.single(5, 2), TWO_LAYERS)):
            algorithm = FedSub(eta, tau, projection(2))
            P = algorithm.projection.draw(layout, ROOT.fold("eq10", number), torch.float64)
            m_r = algorithm.projection.norm2(layout, torch.float64)
            draw = lambda name, shape=(3, P.low.size): torch.randn(
                shape, generator=ROOT.fold(f"eq10 {name}").generator(), dtype=torch.float64
            )
            problem = Smooth(torch.zeros(3, layout.size).double(), torch.zeros(3, layout.size).double(),
                             a=P.lift(draw("pull")), layout=layout)  # fmt: skip
            y, x = P.lift(draw("y") - draw("y").mean(0)), problem.start() + 0.3
            full, b = problem.full(problem.clients), torch.zeros(3, P.low.size, dtype=torch.float64)
            made, _, x1, _ = step(algorithm, problem, x, P.project(y) / m_r, P)
            for ours in made:  # (9), solved for B; its right side lies in the range of P
                move = problem.grads(x + P.lift(b), full) + y / (eta * tau)
                ahead = solve(P, P.lift(b) - eta * move)
                gap = max(gap, float((P.lift(ahead) - (P.lift(b) - eta * move)).abs().max()))
                gap = max(gap, float((m_r * ahead - (m_r * b - eta * P.project(move))).abs().max()))
                gap, b = max(gap, float((ahead - ours).abs().max())), ahead
            after = y + P.lift(consensus(b))
            gap = max(gap, float((P.project(after) - (P.project(y) + m_r * consensus(b))).abs().max()))
            gap = max(gap, float((x1 - x - P.lift(b.mean(0))).abs().max()))
        data = None if gap < 1e-12 else {"gap": digits(gap)}
        margin, small = level(gap, 1e-12)
        said = f"(9) multiplied by P^T, and Algorithm 1's client on the same instance, one layer and two: gap {small}"
        return Outcome(gap < 1e-12, "exact", margin, said, data)

    return check


def solve(P: Basis, v: torch.Tensor) -> torch.Tensor:
    """The B with P B nearest to v, layer by layer."""
    blocks = P.layout.matrices(v)
    return P.low.flatten([torch.linalg.pinv(frame) @ block for frame, block in zip(P.matrices(), blocks)])


def means_11(problem: Problem, frames: torch.Tensor, lr: float, tau: int, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """E P P^T y^{k+1}, E y^{k+1} and E P (B - mean B) over the values of P^k, B by Algorithm 1's client; from y^k."""
    parts = []
    for frame in frames:
        algorithm = FedSub(lr, tau, fixed(frame, "isotropic"))
        P = algorithm.projection.draw(problem.layout, ROOT, torch.float64)
        dual = P.project(y) / algorithm.projection.norm2(problem.layout, torch.float64)
        _, up, _, _ = step(algorithm, problem, problem.start(), dual, P)
        new = P.lift(consensus(up.B))
        parts.append((P.lift(P.project(y + new)), y + new, new))
    return tuple(torch.stack(values).mean(0) for values in zip(*parts))


def check_11(effort: str) -> Outcome:
    """E over P^k of (P^k (P^k)^T) y_i^{k+1} against E y_i^{k+1}, y^{k+1} made with P^k as in (9)."""
    m, zero = 2, torch.zeros(2, 2, dtype=torch.float64)
    pull = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    problem = Smooth(zero, zero, a=pull)
    with_, without, _ = means_11(problem, coordinate_frames(m, 1, scale="isotropic"), 0.5, 1, zero)
    gap = float((with_ - without).abs().max())
    turned, kept = (exact((v[0] * 2**20).round() / 2**20) for v in (with_, without))  # sqrt(m/r) is not rational
    data = {
        "f_1": "x_1", "f_2": "-x_1", "m": m, "r": 1, "eta": "1/2", "y^k": "0",
        "E P P^T y_1^{k+1}": turned, "E y_1^{k+1}": kept,
    }  # fmt: skip
    said = (
        f"CD, m = {m}, r = 1, all frames, first coordinate: E P P^T y_1^{{k+1}} = {turned[0]}, E y_1^{{k+1}} = "
        f"{kept[0]}"
    )
    return Outcome(gap < 1e-9, "exact", level(gap, 1e-9)[0], said, data if gap >= 1e-9 else None)


def check_11_repaired(share: float = 1.0) -> Check:
    """E P P^T y^{k+1} - E y^{k+1} = share (m/r - 1) E P (B - mean B) , any y^k made before P^k."""

    def check(effort: str) -> Outcome:
        gap = 0.0
        for m, r, tau in ((2, 1, 1), (3, 1, 2), (3, 2, 3), (4, 4, 2)):
            problem = Quadratic.random(3, m, ROOT.fold("eq11"))
            y = torch.randn(3, m, generator=ROOT.fold("eq11 y").generator(), dtype=torch.float64)
            turns = torch.randn(m * (m - 1) // 2, generator=ROOT.fold("eq11 P").generator(), dtype=torch.float64)
            frames = coordinate_frames(m, r, scale="isotropic", rotation=orthogonal(turns, m))
            with_, without, new = means_11(problem, frames, 0.1, tau, consensus(y))
            right = share * (m / r - 1) * new
            gap = max(gap, float((with_ - without - right).abs().max() / new.abs().max()))
        margin, small = level(gap, 1e-10)
        said = f"turned coordinate frames, all of them, m/r = 2, 3, 3/2 and 1: relative gap {small}"
        return Outcome(gap < 1e-10, "exact", margin, said, None if gap < 1e-10 else {"gap": digits(gap)})

    return check


def check_12(drop: bool) -> Check:
    """(10) with Lambda = (r/m) P^T y, with or without the drop in (11), against lines 6, 12 and 14 of the code."""

    def check(effort: str) -> Outcome:
        gap = 0.0
        for number, layout in enumerate((Layout.single(5, 2), TWO_LAYERS)):
            problem = Quadratic.random(3, layout.size, ROOT.fold("eq12", number), layout=layout)
            algorithm = FedSub(0.1, 3, Spherical(2))
            draw = lambda i, layout=layout, a=algorithm: a.projection.draw(layout, ROOT.fold("P", i), torch.float64)
            P, P1 = draw(0), draw(1)
            r_m = 1 / algorithm.projection.norm2(layout, torch.float64)
            y = torch.randn(3, layout.size, generator=ROOT.fold("y").generator(), dtype=torch.float64)
            y = y - y.mean(0)
            dual, x, eta, tau = r_m * P.project(y), problem.start() + 0.3, 0.1, 3
            iterates, up, x1, turned = step(algorithm, problem, x, dual, P)
            b, full = torch.zeros_like(dual), problem.full(problem.clients)
            for made in iterates:  # (10), divided by m/r
                b = b - eta * r_m * P.project(problem.grads(x + P.lift(b), full) + y / (eta * tau))
                gap = max(gap, float((b - made).abs().max()))
            if drop:  # the right side of (11)
                after = r_m * P1.project(P.lift(P.project(y) + consensus(b) / r_m))
            else:  # (9) itself
                after = r_m * P1.project(y + P.lift(consensus(b)))
            gap = max(gap, float((after - P1.project(P.lift(turned))).abs().max()))
            gap = max(gap, float((x1 - x - P.lift(up.B.mean(0))).abs().max()))
        data = None if gap < 1e-11 else {"largest gap": gap}
        margin, small = level(gap, 1e-11)
        said = f"lines 6, 12, 14 of the code against (12), one layer and two: gap {small}"
        return Outcome(gap < 1e-11, "exact", margin, said, data)

    return check
