"""FedSub: Assumption 1 and the projections; Table 1 and Sec. 7.3 against counted scalars and products; Remark 1."""

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch

from fedtheory.algorithm import Algorithm
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.key import Key
from fedtheory.layout import Layout
from fedtheory.message import cost
from fedtheory.problem import Problem
from fedtheory.problems import MatrixRegression, Quadratic
from fedtheory.simulate import play_round
from fedtheory.subspace import Coordinate, Gaussian, Identity, Projection, Spherical
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.fedsub_identities import traces_from
from fedtheory.theory.fedsub_round import ROOT, digits, level, listed
from fedtheory.theory.instances import haar_second_moment

# Assumption 1 and the projections


def check_a1_cd(effort: str) -> Outcome:
    """All C(m, r) subsets in rationals, and that the package draws them uniformly."""
    for m, r in ((2, 1), (3, 2), (5, 2), (6, 3), (4, 4)):
        sets = list(itertools.combinations(range(m), r))
        for j in range(m):
            if sum(j in rows for rows in sets) * Fraction(m, r) / len(sets) != 1:
                return Outcome(False, "exact", None, f"m={m}, r={r}", {"m": m, "r": r})
    draws = 300 if effort == "quick" else 6000
    counts: dict[tuple[int, ...], int] = {}
    for i in range(draws):
        (frame,) = Coordinate(2).draw(Layout.single(4), ROOT.fold("cd", i), torch.float64).matrices()
        if float((frame.T @ frame - 2 * torch.eye(2)).abs().max()) > 1e-12:
            return Outcome(False, "exact", None, "P^T P", {"draw": i})
        rows = tuple(sorted(frame.abs().argmax(0).tolist()))
        counts[rows] = counts.get(rows, 0) + 1
    spread = max(abs(count - draws / 6) for count in counts.values()) / math.sqrt(draws * 5 / 36)
    said = (
        f"E[P P^T] = I and P^T P = (m/r) I over all subsets of five shapes; {draws} draws, largest "
        f"deviation {spread:.1f} sigma"
    )
    return Outcome(len(counts) == 6 and spread < 4.5, "exact", 0.0, said)


def check_a1_plain(scale: str) -> Check:
    """The control: orthonormal frames have E[P P^T] = (r/m) I."""

    def check(effort: str) -> Outcome:
        (frame,) = Coordinate(2, scale).draw(Layout.single(4), ROOT, torch.float64).matrices()
        gap = float((frame.T @ frame - 2 * torch.eye(2)).abs().max())
        said = f"P^T P - (m/r) I has entries of {gap:.3g}"
        return Outcome(gap < 1e-12, "exact", gap, said, {"scale": scale, "gap": gap})

    return check


def moments(projection: Projection, m: int, count: int) -> tuple[float, float, float]:
    """The worst error of the mean of P P^T in standard errors; mean square and worst of P^T P/(m/r) - I."""
    frames = torch.stack(
        [projection.draw(Layout.single(m), ROOT.fold("moments", i), torch.float64).matrices()[0] for i in range(count)]
    )
    outer = frames @ frames.mT
    error = outer.std(0) / math.sqrt(count)
    z = ((outer.mean(0) - torch.eye(m)).abs() / error.clamp(min=1e-12)).max()
    r = frames.shape[2]
    gram = frames.mT @ frames * (r / m) - torch.eye(r)
    return float(z), float((gram**2).sum((1, 2)).mean() / r), float(gram.abs().max())


def check_a1_ss(effort: str) -> Outcome:
    m, r = 6, 2
    z, _, gap = moments(Spherical(r), m, 300 if effort == "quick" else 5000)
    closed = haar_second_moment(torch.eye(m, dtype=torch.float64), r) - r / m * torch.eye(
        m, dtype=torch.float64
    )  # E[Pi I Pi] = E[Pi]
    holds = z < 4.5 and gap < 1e-12 and float(closed.abs().max()) < 1e-12
    margin, small = level(gap, 1e-12)
    said = (
        f"relative gap of P^T P = (m/r) I in every draw {small}; E[P P^T] = I by rotation invariance and by the "
        f"closed form, sampled within {z:.1f} sigma"
    )
    return Outcome(holds, "exact", margin, said)


def check_a1_rd(m: int, r: int, within: float) -> Check:
    """RD: E[P P^T] = I; P^T P = (m/r) I up to a relative mean square error (r + 1)/m, which must be `within`^2."""

    def check(effort: str) -> Outcome:
        z, mean, _ = moments(Gaussian(r), m, 300 if effort == "quick" else 3000)
        expected = (r + 1) / m  # E||(r/m) P^T P - I||_F^2 / r
        rms = math.sqrt(expected)
        said = (
            f"m={m}, r={r}: E[P P^T] = I within {z:.1f} sigma; relative rms error of P^T P = (m/r) I: "
            f"sqrt((r+1)/m) = "
            f"{rms:.2f} (sampled {math.sqrt(mean):.2f}); spectrum (1 -+ sqrt(r/m))^2 m/r"
        )
        holds = z < 6 and abs(mean / expected - 1) < 0.25 and rms <= within
        data = None if holds else {"m": m, "r": r, "relative rms error": digits(rms), "allowed": within}
        return Outcome(holds, "exact", rms, said, data)

    return check


# Costs


@functools.cache
def counted() -> dict[str, Any]:
    """Uplink scalars, multiplications and memory of one client in one round, counted (figures/fedsub, Table 1)."""
    from fedtheory.figures import meter
    from fedtheory.figures.fedsub import COST_SIZES, client_costs

    m, d, r, rows, tau = COST_SIZES.values()
    problem = MatrixRegression.ssf(0.5, Key(0), n=3, rows=rows, d=m, m=d, batch=None)
    low = MatrixRegression.ssf(0.5, Key(0), n=3, rows=rows, d=r, m=d, batch=None)
    one = torch.tensor([0])

    def gradient(of: MatrixRegression) -> tuple[int, int]:
        y, full = of.start()[None], of.full(one)
        return meter.multiplications(lambda: of.grads(y, full)), meter.peak_bytes(lambda: of.grads(y, full)) // 8

    algorithms: dict[str, Algorithm] = {
        "FedSub": FedSub(1e-2, tau, Spherical(r)),
        "P=I": FedSub(1e-2, tau, Identity()),
        "FedAvg": FedAvg(1e-2, tau),
    }
    full, small = gradient(problem), gradient(low)
    return {
        "sizes": (m, d, r, tau),
        "C": full[0], "M": full[1], "C small": small[0],
        **{name: client_costs(algorithm, problem) for name, algorithm in algorithms.items()},
    }  # fmt: skip


def check_comm(fedsub_size: str) -> Check:
    def check(effort: str) -> Outcome:
        c = counted()
        m, d, r, _ = c["sizes"]
        expected = {"FedSub": (r if fedsub_size == "rd" else m) * d, "P=I": m * d, "FedAvg": m * d}
        found = {name: c[name][0] for name in expected}
        holds = found == expected
        said = f"scalars in the upload, m={m}, d={d}, r={r}: {listed(found)}"
        return Outcome(holds, "exact", 1.0, said, None if holds else {"counted": found, "formula": expected})

    return check


def check_comp(projected: bool) -> Check:
    """Multiplications against the formula, C_g(rd) as Sec. 7.3 defines it (projected), the cost of P^T grad f_i, or as
    the cost of a gradient of r x d entries of a problem of that size."""

    def check(effort: str) -> Outcome:
        c = counted()
        m, d, r, tau = c["sizes"]
        mrd = m * r * d
        C = c["C"] + mrd if projected else c["C small"]
        pairs = {
            "FedSub": (c["FedSub"][1], tau * (mrd + C) + 2 * mrd),
            "P=I": (c["P=I"][1], tau * c["C"]),
            "FedAvg": (c["FedAvg"][1], tau * c["C"]),
        }
        worst = max(a / b for a, b in pairs.values())
        holds = all(a == b for a, b in pairs.values())
        counts = listed({name: f"{a} of {b}" for name, (a, b) in pairs.items()})
        said = f"multiplications counted of those in the formula, C_g(rd) = {C}: {counts}"
        data = None if holds else {name: {"counted": a, "formula": b} for name, (a, b) in pairs.items()}
        return Outcome(holds, "exact", worst, said, data)

    return check


def check_mem(drop_x: bool, factor: float = 1.5) -> Check:
    """Peak memory within a factor of the formula, M_g as measured for the full gradient."""

    def check(effort: str) -> Outcome:
        c = counted()
        m, d, r, _ = c["sizes"]
        M = 0 if drop_x else c["M"]
        pairs = {
            "FedSub": (c["FedSub"][2], 3 * r * d + M + 2 * r * m + m * d),
            "P=I": (c["P=I"][2], 3 * m * d + M),
            "FedAvg": (c["FedAvg"][2], m * d + M),
        }
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
    from fedtheory.figures import meter

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


def check_cg(case: str) -> Check:
    """Whether the whole round is cheaper than FedAvg's."""

    def check(effort: str) -> Outcome:
        m, d, r, b, tau = (256, 256, 8, 512, 5) if case == "wide" else (64, 64, 32, 32, 5)
        C = linear_layer(m, d, r, b)
        rounds = {name: tau * value + (2 * m * r * d if name != "full" else 0) for name, value in C.items()}
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
        return Outcome(sent == 12, "exact", sent / 12, said, None if sent == 12 else data)

    return check


def _drain(algorithm: FedSub, problem: Problem, own: Any, down: Any):
    from fedtheory.theory.instances import drain

    return drain(algorithm.client(problem, problem.clients, own, down, ROOT))


def check_line12(projection: Callable[[int], Projection]) -> Check:
    def check(effort: str) -> Outcome:
        from fedtheory.figures import meter

        m, d, r = 12, 3, 4
        layout = Layout.single(m, d)
        problem = Quadratic.random(1, layout.size, ROOT.fold("line12"), layout=layout)
        algorithm = FedSub(0.1, 2, projection(r))
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


def check_scaffold(option: str) -> Check:
    def check(effort: str) -> Outcome:
        worst, rounds = 0.0, 5
        for tau in (1, 3):
            problem = Quadratic.random(4, 5, ROOT.fold("scaffold"))
            ours = traces_from(FedSub(0.1, tau, Identity()), problem, problem.start(), rounds)
            theirs = Scaffold(0.1, tau, option=option)
            state = theirs.init(problem, problem.start(), ROOT)
            for t in range(rounds):
                correction = state.server.c - state.own.c
                worst = max(worst, float((ours[t][1] / (0.1 * tau) - correction).abs().max()))
                state, _, _ = play_round(theirs, problem, state, problem.clients, ROOT.fold("round", t))
                worst = max(worst, float((ours[t + 1][0] - state.server.x).abs().max()))
        margin, small = level(worst, 1e-10)
        said = f"FedSub with P = I against option {option}, all clients, eta_g = 1: gap of corrections and x^k {small}"
        return Outcome(
            worst < 1e-10, "exact", margin, said, None if worst < 1e-10 else {"option": option, "gap": digits(worst)}
        )

    return check


def check_fedlin(same_point: bool) -> Check:
    """FedLin's correction is grad f(x^k) - grad f_i(x^k); (4)'s is made of the round before."""

    def check(effort: str) -> Outcome:
        problem = Quadratic.random(3, 4, ROOT.fold("fedlin"))
        algorithm, eta, tau = FedSub(0.1, 2, Identity()), 0.1, 2
        state = algorithm.init(problem, problem.start(), ROOT)
        for t in range(300 if same_point else 4):
            state, _, _ = play_round(algorithm, problem, state, problem.clients, ROOT.fold("round", t))
        g = problem.grads(state.server.x.expand(3, -1), problem.full(problem.clients))
        lin, ours = g.mean(0) - g, state.own.dual / (eta * tau)
        gap = float((lin - ours).abs().max() / lin.abs().max())
        zero = float((lin.mean(0)).abs().max() + ours.mean(0).abs().max())
        when = "at the common fixed point (300 rounds)" if same_point else "after four rounds"
        margin, small = level(gap, 1e-6)
        said = f"{when}: relative gap {small}; both are a mean gradient minus the client's own and sum to zero"
        holds = gap < 1e-6 and zero < 1e-10
        return Outcome(holds, "exact", margin, said, None if holds else {"k": 4, "relative gap": digits(gap)})

    return check
