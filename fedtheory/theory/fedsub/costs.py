"""FedSub: Assumption 1 and the projections; Table 1 and Sec. 7.3 against counted scalars and products; Remark 1."""

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.core import engine
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.loop import play_round
from fedtheory.core.message import Seed, cost
from fedtheory.core.problem import Problem
from fedtheory.maps.subspace import Coordinate, Gaussian, Identity, Projection, Spherical
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedsub.identities import traces_from
from fedtheory.theory.fedsub.round import ROOT
from fedtheory.theory.rounding import digits, level, listed

# Assumption 1 and the projections


def check_a1_cd(distinct: bool = True) -> Check:
    """All choices of r of m coordinates in rationals, with the weight that the code gives a coordinate, and that the
    code draws subsets uniformly; distinct=False: choices with replacement.
    """

    def check(effort: str) -> Outcome:
        for m, r in ((2, 1), (3, 2), (5, 2), (6, 3), (4, 4)):
            square = Fraction(float(Coordinate(r).norm2(Layout.single(m), torch.float64))).limit_denominator(1000)
            choices = list(itertools.combinations(range(m), r) if distinct else itertools.product(range(m), repeat=r))
            for j in range(m):
                if sum(choice.count(j) for choice in choices) * square / len(choices) != 1:
                    return Outcome(False, "exact", None, f"E[P P^T], m={m}, r={r}", {"m": m, "r": r})
            twice = [choice for choice in choices if len(set(choice)) < r]
            if square != Fraction(m, r) or twice:
                said = f"m={m}, r={r}: E[P P^T] = I, but the columns of P are not orthogonal for the choice {twice[:1]}"
                return Outcome(False, "exact", None, said, {"m": m, "r": r, "choices": len(twice)})
        draws = 300 if effort == "quick" else 6000
        counts: dict[tuple[int, ...], int] = {}
        for frame in drawn(Coordinate(2), 4, draws):
            if float((frame.T @ frame - 2 * torch.eye(2)).abs().max()) > 1e-12:
                return Outcome(False, "exact", None, "P^T P", {"m": 4, "r": 2})
            rows = tuple(sorted(frame.abs().argmax(0).tolist()))
            counts[rows] = counts.get(rows, 0) + 1
        spread = max(abs(count - draws / 6) for count in counts.values()) / math.sqrt(draws * 5 / 36)
        said = (
            f"E[P P^T] = I and P^T P = (m/r) I over all subsets of five shapes; {draws} draws, largest deviation "
            f"{spread:.1f} sigma"
        )
        return Outcome(len(counts) == 6 and spread < 4.5, "exact", None, said)

    return check


def drawn(projection: Projection, m: int, count: int) -> torch.Tensor:
    """Frames as the code draws them, (count, m, r)."""
    layout = Layout.single(m)
    return torch.stack(
        [projection.draw(layout, ROOT.fold("moments", i), torch.float64).matrices()[0] for i in range(count)]
    )


def deviation(values: torch.Tensor, expected: torch.Tensor | float) -> float:
    """The largest distance of the mean over axis 0 from what is expected, in standard errors."""
    error = values.std(0) / math.sqrt(len(values))
    return float(((values.mean(0) - expected).abs() / error.clamp(min=1e-12)).max())


def gram(frames: torch.Tensor) -> torch.Tensor:
    """(r/m) P^T P - I."""
    m, r = frames.shape[1:]
    return frames.mT @ frames * (r / m) - torch.eye(r, dtype=frames.dtype)


def check_a1_ss(orthogonal: bool = True) -> Check:
    """SS as the code draws it; orthogonal=False: r independent columns of length sqrt(m/r)."""

    def check(effort: str) -> Outcome:
        m, r, count = 6, 2, 300 if effort == "quick" else 5000
        frames = drawn(Spherical(r), m, count)
        if not orthogonal:
            frames = torch.cat(drawn(Spherical(1), m, r * count).chunk(r), dim=2) / math.sqrt(r)
        z = deviation(frames @ frames.mT, torch.eye(m, dtype=torch.float64))
        gap = float(gram(frames).abs().max())
        margin, small = level(gap, 1e-12)
        said = f"m={m}, r={r}, {count} draws: (r/m) P^T P - I at most {small}; E[P P^T] = I within {z:.1f} sigma"
        data = None if gap < 1e-12 else {"m": m, "r": r, "gap": digits(gap)}
        return Outcome(z < 4.5 and gap < 1e-12, "monte-carlo", margin, said, data)

    return check


def check_a1_rd(m: int, r: int, within: float = 0.5) -> Check:
    """Whether P^T P = (m/r) I approximately for RD: a relative rms error of at most `within`."""

    def check(effort: str) -> Outcome:
        frames = drawn(Gaussian(r), m, 300 if effort == "quick" else 3000)
        rms = math.sqrt(float((gram(frames) ** 2).sum((1, 2)).mean() / r))
        law = math.sqrt((r + 1) / m)
        said = f"m={m}, r={r}: relative rms error of P^T P = (m/r) I: sampled {rms:.2f}, sqrt((r+1)/m) = {law:.2f}"
        data = {"m": m, "r": r, "relative rms error": digits(rms), "sqrt((r+1)/m)": digits(law), "allowed": within}
        return Outcome(rms <= within, "monte-carlo", rms / within, said, None if rms <= within else data)

    return check


def check_rd_law(plus: int = 1) -> Check:
    """RD: E[P P^T] = I, mean square of (r/m) P^T P - I per column (r + plus)/m, E||(I - P P^T) v||^2 = ((m + 1)/r)
    ||v||^2, each within 5 standard errors.
    """

    def check(effort: str) -> Outcome:
        said, holds = [], True
        for m, r in ((20, 10), (20, 1), (6, 6)):
            frames = drawn(Gaussian(r), m, 1000 if effort == "quick" else 10000)
            v = torch.ones(m, dtype=torch.float64) / math.sqrt(m)
            image = (frames @ (frames.mT @ v)[..., None])[..., 0]
            found = {
                "E[P P^T] v": deviation(image, v),
                "P^T P": deviation((gram(frames) ** 2).sum((1, 2)) / r, (r + plus) / m),
                "variance": deviation(((v - image) ** 2).sum(-1), (m + 1) / r),
            }
            holds = holds and max(found.values()) < 5
            shown = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
            said.append(f"m={m}, r={r}: standard errors off {shown}")
        return Outcome(holds, "monte-carlo", None, "; ".join(said), None if holds else {"plus": plus})

    return check


# Costs

LAYER = {"m": 100, "d": 10, "r": 20, "rows": 50, "tau": 5}  # one m x d, on which Table 1 is counted


def client_costs(algorithm: Algorithm, problem: MatrixRegression) -> tuple[int, int, int]:
    """Uplink scalars, multiplications and peak memory in scalars of one client in one round (the second)."""
    from fedtheory.running import meter

    root = Key(0)
    state = algorithm.init(problem, problem.start(), root)
    clients = problem.clients
    state, _, _ = play_round(algorithm, problem, state, clients, root.fold("round", 0))
    key, one = root.fold("round", 1), clients[:1]
    down = algorithm.broadcast(state.server, key)
    own = engine.map_leaves(lambda leaf: leaf[one], state.own)
    _, reply = algorithm.server(
        state.server, down, engine.run_clients(algorithm, problem, clients, state.own, down, key)[0], clients, key
    )

    def client() -> tuple[Any, Any]:
        up, mine = engine.run_clients(algorithm, problem, one, own, down, key)
        return up, algorithm.close(mine, torch.tensor([0]), down, reply)

    up, _ = client()  # bases are drawn before counting: their cost is a random draw, not a product
    scalars = cost(up).scalars
    products = meter.multiplications(client)
    held = meter.peak_bytes(client) // 8
    basis = getattr(state.server, "P", None)
    if isinstance(basis, Seed):  # P^k and P^{k+1}
        held += 2 * sum(frame.numel() for frame in basis.value.matrices())
    held += problem.d + (own.dual.numel() if own is not None else 0)
    return scalars, products, held


@functools.cache
def counted() -> dict[str, Any]:
    """Uplink scalars, multiplications and memory of one client in one round, counted (as in Table 1)."""
    from fedtheory.running import meter

    m, d, r, rows, tau = LAYER.values()
    problem = MatrixRegression.ssf(0.5, Key(0), n=3, rows=rows, d=m, m=d, batch=None)
    low = MatrixRegression.ssf(0.5, Key(0), n=3, rows=rows, d=r, m=d, batch=None)
    one = torch.tensor([0])

    def gradient(of: MatrixRegression) -> tuple[int, int]:
        y, full = of.start()[None], of.full(one)
        return meter.multiplications(lambda: of.grads(y, full)), meter.peak_bytes(lambda: of.grads(y, full)) // 8

    ours = FedSub(1e-2, tau, Spherical(r))
    algorithms: dict[str, Algorithm] = {
        "FedSub": ours,
        "P=I": FedSub(1e-2, tau, Identity()),
        "FedAvg": FedAvg(1e-2, tau),
    }
    P = ours.projection.draw(problem.layout, ROOT, problem.dtype)
    at, samples = problem.start()[None], problem.full(one)
    subspace = lambda: P.project(problem.grads(at, samples))  # of line 6, at a given point
    full, small = gradient(problem), gradient(low)
    return {
        "sizes": (m, d, r, tau),
        "C": full[0], "M": full[1], "C small": small[0],
        "C low": meter.multiplications(subspace), "M low": meter.peak_bytes(subspace) // 8,
        **{name: client_costs(algorithm, problem) for name, algorithm in algorithms.items()},
    }  # fmt: skip


def check_comm(more: int = 0) -> Check:
    """Scalars in the uploads against Table 1; `more` rows in FedSub's."""

    def check(effort: str) -> Outcome:
        c = counted()
        m, d, r, _ = c["sizes"]
        expected = {"FedSub": (r + more) * d, "P=I": m * d, "FedAvg": m * d}
        found = {name: c[name][0] for name in expected}
        holds = found == expected
        worst = max(found[name] / expected[name] for name in expected)
        said = f"scalars in the upload, m={m}, d={d}, r={r}: {listed(found)}"
        return Outcome(holds, "exact", worst, said, None if holds else {"counted": found, "formula": expected})

    return check


def check_comp(projected: bool, line12: int = 2) -> Check:
    """Multiplications of a client's round against the formula with `line12` products mrd in line 12.

    C_g(rd) is counted by itself: as Sec. 7.3 defines it, of P^T grad f_i at a given point (projected), or of the
    gradient that is evaluated there, without the product with P^T.
    """

    def check(effort: str) -> Outcome:
        c = counted()
        m, d, r, tau = c["sizes"]
        mrd = m * r * d
        C = c["C low"] if projected else c["C"]
        pairs = {
            "FedSub": (c["FedSub"][1], tau * (mrd + C) + line12 * mrd),
            "P=I": (c["P=I"][1], tau * c["C"]),
            "FedAvg": (c["FedAvg"][1], tau * c["C"]),
        }
        worst = max(a / b for a, b in pairs.values())
        holds = all(a == b for a, b in pairs.values())
        counts = listed({name: f"{a} of {b}" for name, (a, b) in pairs.items()})
        said = (
            f"multiplications counted of those in the formula, C_g(rd) = {C}, C_g(md) = {c['C']} (a problem of r rows: "
            f"{c['C small']}): {counts}"
        )
        data = None if holds else {name: {"counted": a, "formula": b} for name, (a, b) in pairs.items()}
        return Outcome(holds, "exact", worst, said, data)

    return check


def check_mem(factor: float, identity: str = "P=I") -> Check:
    """Peak memory within a factor of the formula (the constant of its O), M_g measured by itself.

    identity: whose formula P = I is set against.
    """

    def check(effort: str) -> Outcome:
        c = counted()
        m, d, r, _ = c["sizes"]
        pairs = {
            "FedSub": (c["FedSub"][2], 3 * r * d + c["M low"] + 2 * r * m + m * d),
            "P=I": (c["P=I"][2], 3 * m * d + c["M"]),
            "FedAvg": (c["FedAvg"][2], m * d + c["M"]),
        }
        pairs["P=I"] = pairs["P=I"][0], pairs[identity][1]
        ratios = {name: a / b for name, (a, b) in pairs.items()}
        holds = all(1 / factor <= value <= factor for value in ratios.values())
        said = f"peak of live scalars against the formula, O-constant at most {factor}: " + ", ".join(
            f"{name} {a}/{b} = {a / b:.2f}" for name, (a, b) in pairs.items()
        )
        return Outcome(
            holds, "run", max(ratios.values()), said, None if holds else {k: list(v) for k, v in pairs.items()}
        )

    return check


def linear_layer(m: int, d: int, r: int, b: int) -> dict[str, int]:
    """Multiplications of one training step of a linear layer inside a network, counted on PyTorch's own backward.

    a (b, m) -> a W, W = x + P B: forward, gradient for the input and gradient for W (full) or for B (subspace).
    """
    from fedtheory.running import meter

    make = lambda *shape: torch.randn(*shape, generator=ROOT.generator()).requires_grad_()
    a, x, P, B, back = make(b, m), make(m, d), make(m, r), make(r, d), torch.ones(b, d)
    P.requires_grad_(False)

    def full() -> None:
        torch.autograd.grad(a @ x, (a, x), back)

    def low() -> None:
        fixed_x = x.detach()
        torch.autograd.grad(a @ (fixed_x + P @ B), (a, B), back)

    def factored() -> None:
        fixed_x = x.detach()
        torch.autograd.grad(a @ fixed_x + (a @ P) @ B, (a, B), back)

    return {
        "full": meter.multiplications(full),
        "formed": meter.multiplications(low),
        "factored": meter.multiplications(factored),
    }


def check_cg(m: int, r: int, b: int, tau: int = 5) -> Check:
    """Whether the whole round is cheaper than FedAvg's, for a layer with d = m and b samples a step."""

    def check(effort: str) -> Outcome:
        C = linear_layer(m, m, r, b)
        rounds = {name: tau * value + (2 * m * r * m if name != "full" else 0) for name, value in C.items()}
        best = min(rounds["formed"], rounds["factored"])
        shrink = min(C["formed"], C["factored"]) / C["full"]
        said = (
            f"linear layer m=d={m}, r={r}, {b} samples, tau={tau}: multiplications of a round: {listed(rounds)}; the "
            f"gradient costs {shrink:.2f} of the full one (2/3 at least: forward and input gradient go through the "
            f"full weight), r/m = {r / m:.2f}"
        )
        return Outcome(best < rounds["full"], "exact", best / rounds["full"], said, {"m": m, "r": r, "b": b, **rounds})

    return check


def check_extra(projection: Projection) -> Check:
    """Whether a direct implementation of (4) needs more uplink than the dual form: form="sums" is one."""

    def check(effort: str) -> Outcome:
        problem = Quadratic.random(4, 6, ROOT.fold("extra"))
        sizes, ends = {}, {}
        for name, algorithm in {
            "dual (lines 6-14)": FedSub(0.1, 3, projection),
            "direct (4) by eta sum g_i": FedSub(0.1, 3, projection, form="sums"),
            "SCAFFOLD as published": Scaffold(0.1, 3),
        }.items():
            state = algorithm.init(problem, problem.start(), ROOT)
            traffic = []
            for t in range(4):
                state, _, crossed = play_round(algorithm, problem, state, problem.clients, ROOT.fold("round", t))
                traffic.append(crossed.up.scalars // 4)
            sizes[name], ends[name] = traffic[-1], state.server.x
        names = list(sizes)
        gap = float((ends[names[0]] - ends[names[1]]).abs().max())
        holds = sizes[names[1]] > sizes[names[0]]
        said = f"uplink scalars per client and round: {listed(sizes)}; x^4 of the first two: gap {level(gap, 1e-12)[1]}"
        if gap > 1e-12:
            raise AssertionError("the two forms differ")
        data = None if holds else {"d": 6, "r": sizes[names[0]], "n": 4, "tau": 3, "eta": "1/10", **sizes}
        return Outcome(holds, "exact", sizes[names[1]] / sizes[names[0]], said, data)

    return check


def check_scaffold_cost(effort: str) -> Outcome:
    """SCAFFOLD as published uploads two vectors; with all clients its second one follows from the first."""
    problem = Quadratic.random(4, 6, ROOT.fold("extra"))
    algorithm = Scaffold(0.1, 3)
    state = algorithm.init(problem, problem.start(), ROOT)
    gap = 0.0
    for t in range(3):
        old_c, key = state.server.c.clone(), ROOT.fold("round", t)
        state, up, crossed = play_round(algorithm, problem, state, problem.clients, key)
        rebuilt = -up.dy / (3 * 0.1) - old_c  # c_i^+ - c_i from dy and c alone
        gap = max(gap, float((rebuilt - up.c).abs().max()))
        if crossed.up.scalars != 4 * 12:
            raise AssertionError("expected 2 d scalars per client")
    margin, small = level(gap, 1e-10)
    said = f"c_i^+ - c_i = -dy/(K eta) - c: the server rebuilds SCAFFOLD's second vector from the first, gap {small}"
    return Outcome(gap < 1e-10, "exact", margin, said)


def check_line10(full: bool, r: int = 2) -> Check:
    """What line 10 and line 15 send."""

    def check(effort: str) -> Outcome:
        problem = MatrixRegression.ssf(0.5, Key(0), n=3, rows=8, d=6, m=2, batch=None)
        algorithm = FedSub(0.1, 2, Spherical(r))
        state = algorithm.init(problem, problem.start(), ROOT)
        down = algorithm.broadcast(state.server, ROOT)
        _, (up, _) = _drain(algorithm, problem, state.own, down)
        new, reply = algorithm.server(state.server, down, up, problem.clients, ROOT)
        assert reply is not None
        line10, line15 = cost(reply.mean).scalars, cost(down.x).scalars
        whole = problem.layout.size
        rebuilt = float((down.x + down.P.value.lift(reply.mean) - new.x).abs().max())
        data = {
            "m": 6,
            "d": 2,
            "r": r,
            "line 10": line10,
            "line 15": line15,
            "gap of x^{k+1} made from line 10": level(rebuilt, 1e-12)[1],
        }
        said = (
            f"m=6, d=2, r={r}: line 10 sends r d = {line10} scalars, line 15 m d = {line15}; clients rebuild x^{{k+1}} "
            f"from line 10, gap {level(rebuilt, 1e-12)[1]}"
        )
        sent = line10 if full else line15
        holds = sent == whole and rebuilt < 1e-12
        return Outcome(holds, "exact", sent / whole, said, None if holds else data)

    return check


def _drain(algorithm: FedSub, problem: Problem, own: Any, down: Any):
    from fedtheory.theory.instances import drain

    return drain(algorithm.client(problem, problem.clients, own, down, ROOT))


def check_traffic(r: int, *, both: bool = True, sampled: int | None = None) -> Check:
    """Whether a participant's round costs less than FedAvg's, by the messages of 60 rounds: both ways, or up alone.

    m = 20 and d = 1, as in Sec. 5.1, with ten clients. A round's downlink is m numbers (line 15), r (line 10),
    the seed of P^{k+1}, and a seed for every basis that the client missed: more than FedAvg's m for every r.
    """

    def check(effort: str) -> Outcome:
        problem, rounds = Quadratic.random(10, 20, ROOT.fold("traffic")), 60
        visits = rounds * (sampled or problem.n)
        sent: dict[str, tuple[float, float]] = {}
        for name, algorithm in {"FedSub": FedSub(0.01, 2, Coordinate(r)), "FedAvg": FedAvg(0.01, 2)}.items():
            history = run(algorithm, problem, rounds, sampled=sampled, every=rounds)
            sent[name] = history["up_scalars"][-1] / visits, history["down_scalars"][-1] / visits
        (up, down), (up_full, down_full) = sent["FedSub"], sent["FedAvg"]
        if not down > down_full + r:
            raise AssertionError("FedSub's downlink is FedAvg's, line 10 and seeds")
        ours, theirs = (up + down, up_full + down_full) if both else (up, up_full)
        said = (
            f"m = 20, r = {r}, a round of one of {sampled or 10} of 10 clients: FedSub takes {up:.4g} numbers up and "
            f"{down:.4g} down, seeds and reply included, of FedAvg {up_full:.4g} and {down_full:.4g}"
        )
        counted = {name: [digits(value) for value in values] for name, values in sent.items()}
        data = None if ours < theirs else {"m": 20, "d": 1, "r": r, "sampled": sampled or 10, "up, down": counted}
        return Outcome(ours < theirs, "exact", ours / theirs, said, data)

    return check


def check_line12(product_first: bool = False) -> Check:
    """Multiplications of line 12 for a basis without structure; product_first: (P^{k+1})^T P^k is formed first."""

    def check(effort: str) -> Outcome:
        from fedtheory.running import meter

        m, d, r = 12, 3, 4
        layout = Layout.single(m, d)
        problem = Quadratic.random(1, layout.size, ROOT.fold("line12"), layout=layout)
        algorithm = FedSubReading(0.1, 2, Spherical(r), product_first=product_first)
        state = algorithm.init(problem, problem.start(), ROOT)
        down = algorithm.broadcast(state.server, ROOT)
        _, (up, own) = _drain(algorithm, problem, state.own, down)
        _, reply = algorithm.server(state.server, down, up, problem.clients, ROOT)
        assert reply is not None
        assert reply.P_next is not None
        P, P1 = down.P.value, reply.P_next.value
        v = P.lift(own.dual)
        parts = (
            meter.multiplications(lambda: P.lift(own.dual)),
            meter.multiplications(lambda: P1.project(v)),
            meter.multiplications(lambda: algorithm.close(own, problem.clients, down, reply)),
        )
        holds = parts == (m * r * d, m * r * d, 2 * m * r * d)
        said = f"m={m}, r={r}, d={d}: P(.) {parts[0]}, (P+)^T {parts[1]}, line 12 {parts[2]}; m r d = {m * r * d}"
        return Outcome(holds, "exact", parts[2] / (2 * m * r * d), said, None if holds else {"counted": list(parts)})

    return check


# Remark 1


def check_scaffold(option: str, server_lr: float = 1.0) -> Check:
    def check(effort: str) -> Outcome:
        worst, rounds = 0.0, 5
        for tau in (1, 3):
            problem = Quadratic.random(4, 5, ROOT.fold("scaffold"))
            ours = traces_from(FedSub(0.1, tau, Identity()), problem, problem.start(), rounds)
            theirs = Scaffold(0.1, tau, server_lr, option=option)
            state = theirs.init(problem, problem.start(), ROOT)
            for t in range(rounds):
                correction = state.server.c - state.own.c
                worst = max(worst, float((ours[t][1] / (0.1 * tau) - correction).abs().max()))
                state, _, _ = play_round(theirs, problem, state, problem.clients, ROOT.fold("round", t))
                worst = max(worst, float((ours[t + 1][0] - state.server.x).abs().max()))
        margin, small = level(worst, 1e-10)
        said = (
            f"FedSub with P = I against option {option}, all clients, eta_g = {server_lr:g}: gap of corrections and "
            f"x^k {small}"
        )
        data = {"option": option, "eta_g": server_lr, "gap": digits(worst)}
        return Outcome(worst < 1e-10, "exact", margin, said, None if worst < 1e-10 else data)

    return check


def check_fedlin(late: int, tau: int) -> Check:
    """The correction of (4) in round k against FedLin's, grad f - grad f_i at x^{k - late}."""

    def check(effort: str) -> Outcome:
        problem, eta, rounds, worst = Quadratic.random(3, 4, ROOT.fold("fedlin")), 0.1, 6, 0.0
        path = traces_from(FedSub(eta, tau, Identity()), problem, problem.start() + 0.5, rounds)
        for k in range(1, rounds + 1):
            g = problem.grads(path[k - late][0].expand(problem.n, -1), problem.full(problem.clients))
            lin, ours = g.mean(0) - g, path[k][1] / (eta * tau)
            worst = max(worst, float((lin - ours).abs().max() / lin.abs().max()))
        margin, small = level(worst, 1e-10)
        when = "the same round" if late == 0 else "the round before"
        said = f"P = I, tau = {tau}, {rounds} rounds: relative gap to FedLin's correction of {when} {small}"
        data = {"tau": tau, "eta": "1/10", "relative gap": digits(worst)}
        return Outcome(worst < 1e-10, "exact", margin, said, None if worst < 1e-10 else data)

    return check
