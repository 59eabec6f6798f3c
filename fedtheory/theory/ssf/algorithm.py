"""SSF (arXiv:2604.25467v1), Sections 3.1 to 3.7: the algorithm's identities, its messages, what its options trade."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from fedtheory.algorithms import fedsub
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.algorithms.ssf import SSF, Own
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.loop import play_round
from fedtheory.core.message import Known, cost
from fedtheory.maps.subspace import Coordinate, Gaussian, Projection, Spherical
from fedtheory.running.simulate import run
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.instances import Smooth, drain, fixed
from fedtheory.theory.ssf.attack import about, identical
from fedtheory.theory.ssf.hypotheses import EVERYONE, claim
from fedtheory.theory.ssf.round import ROOT, Round


def draws(projection: Projection, layout: Layout, count: int, name: str) -> list[torch.Tensor]:
    """P^T of `count` keys, (d, r)."""
    keys = (ROOT.fold(name, i) for i in range(count))
    return [projection.draw(layout, key, torch.float64).matrices()[0] for key in keys]


def check_backfill(projections: Sequence[Projection], what: str) -> Check:
    """(1)-(5) on SSF's own server line."""

    def check(effort: str) -> Outcome:
        worst, d = 0.0, 5
        problem = Smooth(torch.ones(2, d, dtype=torch.float64), torch.ones(2, d, dtype=torch.float64))
        x = torch.arange(1, d + 1, dtype=torch.float64)
        for projection in projections:
            for P in draws(projection, Layout.single(d), 20 if effort == "quick" else 200, "eq1"):
                pi = P @ P.T
                algorithm = SSF(0.1, 2, fixed(P))
                state = algorithm.init(problem, x, ROOT)
                new = play_round(algorithm, problem, state, problem.clients, ROOT)[0].server.x
                gaps = [P.T @ P - torch.eye(P.shape[1], dtype=torch.float64), pi @ pi - pi, pi - pi.T]
                gaps += [(new - pi @ new) - (x - pi @ x), P @ (P.T @ x) + (x - pi @ x) - x]
                worst = max(worst, *(float(gap.abs().max()) for gap in gaps))
        said = f"largest gap {worst:.1e} in P P^T = I, idempotence, symmetry and the residual of SSF's x^(t+1)"
        said = about(what, said)
        return Outcome(worst < 1e-12, "exact", worst, said)

    return check


def eq6_7(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
    at = q.at
    g = q.pick((q.grad + q.xi).mean(-2))  # (1/K) sum_k g_i^{t,k}, (M, N, C, d)
    res = lambda v: v - q.down(v)
    c = at.c.expand_as(q.c)
    ci = at.ci[:, None].expand(len(q.P), -1, g.shape[2], -1)
    new = q.pick(q.ci)
    return [
        (q.c, q.down(g.mean(1)) + res(c)),
        (new, res(ci) + q.down(g)),
        (res(q.c), res(c)),
        (res(new), res(ci)),
    ]


def check_sampled_control(effort: str) -> Outcome:
    """(6) where only S = 1 of N = 2 clients take part: the server cannot form the sum over all N."""
    problem = Smooth(torch.ones(2, 1, dtype=torch.float64), torch.tensor([[-1.0], [1.0]], dtype=torch.float64))
    algorithm = SSF(0.25, 1, fixed(torch.ones(1, 1, dtype=torch.float64)))
    state = algorithm.init(problem, problem.start(), ROOT)
    c = play_round(algorithm, problem, state, torch.tensor([0]), ROOT)[0].server.c
    wanted = problem.gradients(problem.start()).mean(0)
    gap = float((c - wanted).abs().max())
    return Outcome(gap < 1e-12, "exact", gap, f"S = 1 of N = 2: c^1 = {float(c):g}, (6) over both is {float(wanted):g}")


def check_memory(change: bool) -> Check:
    """FedSub's dual through its own line 12, and SSF's control through its own round, in two subspaces in turn.

    `change`: the second subspace is another one. FedSub's line is linear in the duals: r clients with the unit vectors
    as duals show the map, and its rank what is left.
    """

    def check(effort: str) -> Outcome:
        d, r = 4, 2
        eye = torch.eye(d, dtype=torch.float64)
        first = eye[:, :r]
        second = eye[:, d - r :] if change else first
        one, two = (fixed((d / r) ** 0.5 * P, "isotropic") for P in (first, second))
        layout = Layout.single(d)
        bases = [Known(p.draw(layout, ROOT, torch.float64)) for p in (one, two)]
        duals, zero = torch.eye(r, dtype=torch.float64), torch.zeros(r, r, dtype=torch.float64)
        after = fedsub.FedSub(0.1, 1, one).close(
            fedsub.Own(duals, zero), torch.arange(r), fedsub.Down(bases[0], eye[0]),
            fedsub.Reply(zero[0], bases[1]),
        )  # fmt: skip
        lost = 1 - int(torch.linalg.matrix_rank(after.dual)) / r

        problem = Smooth(torch.ones(1, d, dtype=torch.float64), torch.ones(1, d, dtype=torch.float64))
        algorithm = SSF(0.1, 1, fixed(second))
        state = algorithm.init(problem, problem.start(), ROOT)
        control = torch.arange(1, d + 1, dtype=torch.float64)[None]
        down = algorithm.broadcast(replace(state.server, c=control[0]), ROOT)
        up, own = drain(algorithm.client(problem, problem.clients, Own(control), down, ROOT))[1]
        residual = lambda c: c - c @ second @ second.T
        kept_bits = bool(torch.equal(residual(own.c), residual(control)))
        scalars = cost(down.c_proj).scalars + cost(up.c_proj).scalars
        holds = lost > 0 and kept_bits and scalars == 2 * r
        said = (
            f"d = {d}, r = {r}, {'two complementary subspaces' if change else 'the same subspace twice'}: FedSub's "
            f"dual loses {lost:.0%} of its directions, SSF {'keeps' if kept_bits else 'loses'} the residual of c_i bit "
            f"for bit, sends {scalars} scalars of controls"
        )
        return Outcome(holds, "exact", lost, said)

    return check


def lines(sign: float = -1.0):
    """Algorithm 1's local step (and with it the server's) on what `client` and `server` did."""

    def pairs(q: Round) -> list[tuple[torch.Tensor, torch.Tensor]]:
        at = q.at
        lift = lambda b: torch.stack([f @ v[..., None] for f, v in zip(at.frames, b)])[..., 0]
        path = lift(q.delta)
        direction = q.down(q.grad + q.xi + (at.c + sign * at.ci)[:, None, None])
        ends = q.pick(path[..., -1, :]).mean(1)  # minus the mean of x_proj - y_proj^K
        eta = at.lr * at.K
        return [
            (path[..., 1:, :], path[..., :-1, :] - at.lr * direction),
            (q.x - at.x, at.server_lr * eta * (ends / eta)),
        ]

    return pairs


def check_shared(projection: Projection, what: str) -> Check:
    """Same key, same bits; one 64-bit integer crosses; P P^T = I; the mean projector of a symmetric law."""

    def check(effort: str) -> Outcome:
        d, r = 3, 2
        layout = Layout.single(d)
        message = projection.seed(layout, ROOT, torch.float64)
        one, two = (projection.draw(layout, ROOT, torch.float64).matrices()[0] for _ in range(2))
        same_bits = bool(torch.equal(one, two))
        eye = torch.eye(d, dtype=torch.float64)
        turns = [eye[list(p)] * torch.tensor(s, dtype=torch.float64) for p, s in _signed_permutations(d)]
        gap = float((one.T @ one - torch.eye(r, dtype=torch.float64)).abs().max())
        for P in draws(projection, layout, 10 if effort == "quick" else 100, "shared"):
            orbit = torch.stack([turn @ P @ P.T @ turn.T for turn in turns]).mean(0)
            gap = max(gap, float((orbit - r / d * eye).abs().max()))
        wide = projection.seed(Layout.single(100 * d), ROOT, torch.float64)
        bytes_sent, basis = cost(message).bytes, cost(wide.value.matrices()[0]).bytes
        alone = cost(wide).bytes == bytes_sent < basis  # no more for a hundredfold basis: a seed, not the basis
        holds = same_bits and alone and gap < 1e-12
        said = (
            f"the same key gives {'the same' if same_bits else 'other'} bits; bytes sent: {bytes_sent} "
            f"(basis at 100 d: {basis}); gap {gap:.1e} "
            f"in P P^T = I and in the mean projector over the {len(turns)} signed permutations, which leave the "
            "Gaussian law alone"
        )
        return Outcome(holds, "exact", gap, about(what, said))

    return check


def _signed_permutations(d: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return list(itertools.product(itertools.permutations(range(d)), itertools.product((1, -1), repeat=d)))


def trade(n: int, d: int, seed: int = 0) -> Smooth:
    """Heterogeneous quadratics for runs: curvatures 0.5 to 1, exact gradients."""
    g = ROOT.fold("trade", seed).generator()
    h = 0.5 + 0.5 * torch.rand(n, d, generator=g, dtype=torch.float64)
    return Smooth(h, torch.randn(n, d, generator=g, dtype=torch.float64))


@dataclass(frozen=True)
class Refreshed:
    """A run of SSF that keeps its projector for `period` rounds.

    Fields:
        covered: rank of all its bases together; bases: how many were made.
        turns: mean change of the logarithm of the one-round decrease of F between rounds of the same window of 4
            rounds, and between all successive rounds.
        loss: F at the end.
    """

    covered: int
    bases: int
    turns: tuple[float, float]
    loss: float


def refreshed(problem: Smooth, r: int, K: int, lr: float, period: int, rounds: int, key: Key) -> Refreshed:
    """One such run. Raises AssertionError where F rises: then no decrease has a logarithm."""
    algorithm = SSFReading.haar(lr, K, r, refresh=period)
    state = algorithm.init(problem, problem.start(), key)
    frames, losses = [], [problem.loss(state.server.x)]
    for t in range(rounds):
        frames.append(state.server.P.value.matrices()[0])
        state = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))[0]
        losses.append(problem.loss(state.server.x))
    drops = [a - b for a, b in itertools.pairwise(losses)]
    if min(drops) <= 0:
        raise AssertionError(f"F rises by {-min(drops):.3g}: smaller steps are wanted")
    turns = [abs(math.log(b / a)) for a, b in itertools.pairwise(drops)]
    inside = [turn for t, turn in enumerate(turns) if (t + 1) % WINDOW]
    return Refreshed(
        int(torch.linalg.matrix_rank(torch.cat(frames, 1))),
        len({tuple(frame.flatten().tolist()) for frame in frames}),
        (sum(inside) / len(inside), sum(turns) / len(turns)),
        losses[-1],
    )


WINDOW = 4  # the rarer of the two refresh periods compared


def check_refresh(d: int = 20, *, inside: bool = True) -> Check:
    """Coverage, number of bases and steadiness of the one-round progress, refresh 1 against 4, over random problems.

    `inside`: steadiness within a fixed subspace, as printed; else over all rounds, those that change it included.
    """

    def check(effort: str) -> Outcome:
        r, rounds, cases = 3, 16, []
        for seed in range(6 if effort == "quick" else 60):
            key = ROOT.fold("refresh", seed)
            problem, K, lr = trade(3, d, seed), *((2, 0.2), (4, 0.1), (2, 0.05))[seed % 3]
            often, rare = (refreshed(problem, r, K, lr, period, rounds, key) for period in (1, WINDOW))
            cases.append((often, rare))
        wider = sum(often.covered > rare.covered for often, rare in cases)
        cheaper = sum(often.bases > rare.bases for often, rare in cases)
        steadier = sum(rare.turns[not inside] < often.turns[not inside] for often, rare in cases)
        lower = sum(often.loss < rare.loss for often, rare in cases)
        often, rare = cases[0]
        said = (
            f"T = {rounds}, d = {d}, r = {r}, refresh 1 against {WINDOW}, of {len(cases)} runs: more directions "
            f"covered in {wider} ({often.covered} against {rare.covered}), more bases made in {cheaper} ({often.bases} "
            f"against {rare.bases}), refresh {WINDOW} steadier {'within a subspace' if inside else 'over all rounds'} "
            f"in {steadier} (mean change of log progress {rare.turns[not inside]:.2f} against "
            f"{often.turns[not inside]:.2f}); but refresh 1 ends lower in {lower}"
        )
        holds = min(wider, cheaper) == len(cases) and 10 * steadier >= 9 * len(cases)  # "may stabilize"
        data = {"d": d, "r": r, "T": rounds, "covered by refresh 1": often.covered,
                f"covered by refresh {WINDOW}": rare.covered}  # fmt: skip
        return Outcome(holds, "run", None, said, None if holds else data)

    return check


def check_trade(equal_cost: bool) -> Check:
    """Scalars per round grow with r, and the error left falls with r: after equally many rounds, or at equal cost."""

    def check(effort: str) -> Outcome:
        d, ranks, T = 8, (1, 2, 4), 40
        problem = trade(3, d)
        solution = (problem.h * problem.b).sum(0) / problem.h.sum(0)
        errors, bills = [], []
        for r in ranks:
            rounds = T * ranks[-1] // r if equal_cost else T
            history = run(SSF.haar(0.25, 2, r), problem, rounds, metrics=("loss",))
            errors.append(float(torch.linalg.vector_norm(history.x - solution)))
            sent = [history[name][-1] - history[name][1] for name in ("up_scalars", "down_scalars")]
            bills.append(sum(sent) / (rounds - 1) / problem.n)
        rising = all(a < b for a, b in itertools.pairwise(bills))
        holds = rising and all(a > b for a, b in itertools.pairwise(errors))
        rows = zip(ranks, bills, errors)
        after = "equal cost" if equal_cost else f"{T} rounds"
        said = f"scalars per client and round, and error after {after}: " + "; ".join(
            f"r = {r}: {bill:g}, {error:.1e}" for r, bill, error in rows
        )
        return Outcome(holds, "run", None, said)

    return check


CLAIMS: list[Claim] = [
    claim(
        "eq1-5", "identity",
        check=check_backfill([Spherical(2, "orthonormal"), Coordinate(3, "orthonormal")], "Haar and coordinate bases"),
        control=check_backfill([Gaussian(2, "orthonormal")], ""),
        broken="Gaussian rows that are not orthonormal",
    ),
    claim(
        "eq6-7", "algorithm", assumes=(EVERYONE,),
        check=identical(eq6_7, "eq6", "(6), (7) and both residuals, S = N", free_c=True),
        control=check_sampled_control,
        broken="only S < N clients take part",
    ),
    claim(
        "info_loss", "algorithm", check=check_memory(True),
        control=check_memory(False),
        broken="the projector does not change: then FedSub loses nothing either",
    ),
    claim(
        "alg1", "algorithm",
        check=identical(lines(), "alg1", "local steps and server step as printed", free_c=True),
        control=identical(lines(1.0), "alg1", free_c=True),
        broken="the sign of the control flipped",
    ),
    claim(
        "shared_projector", "algorithm",
        check=check_shared(Spherical(2, "orthonormal"), "QR of a Gaussian matrix"),
        control=check_shared(Gaussian(2, "orthonormal"), ""),
        broken="the Gaussian matrix not orthonormalised",
    ),
    claim(
        "refresh_tunable", "algorithm",
        reading="coverage: the rank of all bases together; steady: the logarithm of the one-round decrease of F "
        "changes little from round to round; \"may\": in nine runs of ten (a rule made after 59 of 60 were seen)",
        check=check_refresh(),
        control=check_refresh(inside=False),
        broken="steadiness over all rounds, not only within a fixed subspace",
        met="a reading of 'increases': as long as there is something left to cover",
        caveat="The run ends before the rarer bases span R^d (r T / period < d): from then on both cover everything",
        as_printed=check_refresh(12),
        implies="Steadier is not faster: inside a kept subspace progress dries up (ssf.A3), and Lemmas 3 and 4 do not "
        "cover a period above 1.",
    ),
    claim(
        "r_tradeoff", "rate", check=check_trade(False),
        control=check_trade(True),
        broken="the errors compared at equal communication instead of equal rounds",
    ),
]  # fmt: skip
