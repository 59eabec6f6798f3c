"""DeComFL, Sec. 3, A.1 to A.5, C.1: the boxes executed as printed and as meant, the rates, the costs to the byte."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms.decomfl import DeComFL, Model, Step
from fedtheory.algorithms.fedzo import FedZO
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.layout import Layout
from fedtheory.core.message import Cost, cost
from fedtheory.core.simulate import play_round, run
from fedtheory.maps.directions import Direction
from fedtheory.problems.models.networks import NETWORKS
from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.proof import per_round
from fedtheory.theory.decomfl.round import (
    DOUBLE,
    ROOT,
    Enumerated,
    Round,
    decomfl,
    directions,
    each_fails,
    equal,
    tiny,
    trajectory,
)
from fedtheory.theory.fedsub.round import chain, digits
from fedtheory.theory.instances import Smooth, drain
from fedtheory.theory.search import reals, same

N, DIM = 4, 3
REMARK3 = (
    "about equation (16) of another paper (FedMeZO), whose text is not among the papers checked here; the step in "
    "question, "
    "the sign of an inner product before an inequality, cannot be judged from this paper"
)


# Runs with every value at hand


def problem() -> Smooth:
    g = ROOT.fold("problem").generator()
    draw = lambda: torch.randn(N, DIM, generator=g, dtype=DOUBLE)
    return Smooth(0.3 + draw().abs(), draw(), noise=0.2 * draw())


@dataclass(frozen=True)
class Record:
    """A round: x_r, who took part, z (K, P, d), all clients' scalars (N, K, P), their points, x_{r+1}."""

    x: torch.Tensor
    clients: list[int]
    step: Step
    z: torch.Tensor
    g: torch.Tensor
    points: torch.Tensor  # (K, N, d)
    after: torch.Tensor

    @property
    def mean(self) -> torch.Tensor:
        """g_r, (K, P)."""
        return self.g[self.clients].mean(0)


def session(algorithm: DeComFL, rounds: int, sampled: int = N) -> list[Record]:
    """A run on `problem` in which the clients that are not sampled measure as well, for comparison."""
    of, records = problem(), []
    state = algorithm.init(of, torch.ones(DIM, dtype=DOUBLE), ROOT)
    for r in range(rounds):
        key = ROOT.fold("session", r)
        clients = sorted(torch.randperm(N, generator=key.fold("C").generator())[:sampled].tolist())
        down = algorithm.broadcast(state.server, key)
        points, (up, _) = drain_all(algorithm.client(of, of.clients, None, down, key))
        seeds: Any = down.seeds
        rows = [algorithm.directions(of.layout, s, state.server.x) for s in seeds]
        z = torch.stack([torch.stack([torch.cat([part for _, part in one]) for one in row]) for row in rows])
        before = state.server.x.clone()
        state = play_round(algorithm, of, state, torch.tensor(clients), key)[0]
        step = algorithm.step(down, up.g[clients].mean(0))
        records.append(Record(before, clients, step, z, up.g, points, state.server.x.clone()))
    return records


def drain_all(local: Iterator[torch.Tensor]) -> tuple[torch.Tensor, Any]:
    iterates, out = drain(local)  # type: ignore[arg-type]
    return torch.stack([y.clone() for y in iterates]), out


def along(g: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """sum_k (1/P) sum_p g_p^k z_p^k: g (..., K, P), z (K, P, d)."""
    return torch.einsum("...kp,kpd->...d", g, z) / z.shape[1]


def end(algorithm: DeComFL, q: Record, i: int) -> torch.Tensor:
    """x_i^{K+1}, which the algorithm does not make, by its own line for K steps."""
    model = Model(q.x.clone(), None)
    algorithm.rebuild(problem().layout, model, replace(q.step, g=q.g[i]))
    return model.x


PLAIN = DeComFL(0.05, 3, 1, 0.1)
MANY = DeComFL(0.05, 2, 3, 0.1)
HEAVY = DeComFL(0.05, 3, 2, 0.1, momentum=0.5)


def check_eq3(scale: float) -> Check:
    """|g - <grad f, z>| <= scale mu L ||z||^2 at every node of two smooth losses, and to 0 with mu for |x|^{3/2}."""

    def check(effort: str) -> Outcome:
        one, zero = torch.ones(1, 1, dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE)

        def gaps(loss: Smooth, x: float, mu: float, slope: float) -> tuple[torch.Tensor, torch.Tensor]:
            r = Enumerated(tiny(x=x, mu=mu), losses=loss, nodes=12)
            z = r.z[:, 0, 0, 0]
            return (r.g[0, :, 0, 0] - slope * z).abs(), z

        worst = 0.0
        for shape in ("quadratic", "cosine"):
            loss = Smooth(one, zero, shape=shape)
            for mu in (1.0, 0.01):
                gap, z = gaps(loss, 0.4, mu, float(loss.gradients(torch.tensor([0.4], dtype=DOUBLE))[0, 0]))
                worst = max(worst, float((gap / (scale * mu * z**2)).max()))
        rough = Smooth(one, zero)
        vars(rough)["phi"] = lambda u: u.abs() ** 1.5  # differentiable, smooth for no L, at its worst point 0
        falls = float(gaps(rough, 0.0, 1e-6, 0.0)[0].max() / gaps(rough, 0.0, 1.0, 0.0)[0].max())
        said = (
            f"scalars of the client on a quadratic and a cosine: |g - <grad f, z>| at most {worst:.4g} times {scale} "
            f"mu L ||z||^2; on |x|^(3/2) it falls to {falls:.2g} of itself from mu = 1 to 10^-6"
        )
        holds = worst <= 1 + 1e-6 and falls < 0.01
        return Outcome(holds, "exact", worst, said, None if holds else {"ratio": digits(worst)})

    return check


def check_local(shift: int) -> Check:
    """x^{k+1} = x^k - eta g^k z^k along the client's iterates; `shift`: the z of another step."""

    def check(effort: str) -> Outcome:
        left, right = [], []
        for q in session(PLAIN, 3):
            z = q.z.roll(shift, 0)
            left.append(q.points[1:] - q.points[:-1])
            right.append(-PLAIN.lr * torch.einsum("nkp,kpd->knd", q.g, z)[:-1])
        return equal(torch.stack(left), torch.stack(right), "iterates of the client over three rounds")

    return check


def check_server(first: int, last: int, scale: float = 1.0) -> Check:
    """x_{r+1} = x_r - eta sum_{k=first}^{last} g_r^k z_r^k k counted from 1; a term with z^0 counts as none."""

    def check(effort: str) -> Outcome:
        used = slice(max(first, 1) - 1, last)
        records = session(PLAIN, 3)
        left = torch.stack([q.after for q in records])
        right = torch.stack([q.x - scale * PLAIN.lr * along(q.mean[used], q.z[used]) for q in records])
        said = f"K = 3, P = 1, sum over k = {first}..{last}, the algorithm's own rounds"
        return equal(left, right, said, {"K": 3, "k": f"{first}..{last}", "seeds": "s^1..s^3"})

    return check


def check_average(own: bool) -> Check:
    """(1/m) sum_i x_i^{K+1} against x_{r+1}; `own`: every client its own directions."""

    def check(effort: str) -> Outcome:
        left, right = [], []
        for q in session(PLAIN, 3, 2):
            ends = [q.x - PLAIN.lr * along(q.g[i], q.z.roll(i if own else 0, 0)) for i in q.clients]
            left.append(torch.stack(ends).mean(0))
            right.append(q.after)
        return equal(
            torch.stack(left), torch.stack(right), "mean of the models against one step of mean scalars, three rounds"
        )

    return check


def check_pull(own_set: bool, last: int = 3) -> Check:
    """(5) from round r' = 0 to r = 3: scalars of round j < last, averaged over C_j or, as printed, over C_r."""

    def check(effort: str) -> Outcome:
        lag = 3
        records = session(PLAIN, lag + 1, 2)
        x = records[0].x
        for q in records[:last]:
            g = q.mean if own_set else q.g[records[lag].clients].mean(0)
            x = x - PLAIN.lr * along(g, q.z)
        said = f"{lag} missed rounds, {last} of them rebuilt, averages over {'C_j' if own_set else 'C_r'}"
        sets = [q.clients for q in records]
        return equal(x, records[lag].x, said, {"C_j": sets[:lag], "C_r": sets[lag], "N": N, "m": 2})

    return check


def check_history(algorithm: DeComFL, rate: float | None = None, momentum: bool = True) -> Check:
    """All clients rebuild from what line 7 sends; `rate`: another eta."""

    def check(effort: str) -> Outcome:
        of, records = problem(), session(algorithm, 8, 2)
        reader = algorithm if rate is None else replace(algorithm, lr=rate)
        start = torch.zeros(DIM, dtype=DOUBLE) if algorithm.momentum else None
        local = [Model(records[0].x.clone(), None if start is None else start.clone()) for _ in range(N)]
        t, gap, longest = [0] * N, 0.0, 0
        for r, q in enumerate(records):
            for i in q.clients:
                for missed in records[t[i] : r]:
                    reader.rebuild(of.layout, local[i], missed.step)
                    if not momentum:
                        local[i] = Model(local[i].x, torch.zeros(DIM, dtype=DOUBLE))
                longest = max(longest, r - t[i])
                gap = max(gap, float((local[i].x - q.x).abs().max()))
                t[i] = r
        said = f"eight rounds, m = 2 of {N}, lags up to {longest}: largest gap to x_r {gap:.2g}"
        return Outcome(gap == 0, "exact", None, said, None if gap == 0 else {"gap": digits(gap)})

    return check


def check_queue(known: bool, early: int = 0) -> Check:
    """The server drops the records before the oldest t_i (`early`: and so many more).

    It knows t_i of all clients, or only what those of this round have sent.
    """

    def check(effort: str) -> Outcome:
        t, kept, longest = [0] * N, 0, 0
        for r, q in enumerate(session(MANY, 40, 2)):
            lost = [i for i in q.clients if t[i] < kept]
            if lost:
                said = f"round {r}: client {lost[0]} needs records from round {t[lost[0]]} on, the first kept is {kept}"
                data = {"round": r, "client": lost[0], "t_i": t[lost[0]], "first kept": kept}
                return Outcome(False, "run", None, said, data)
            longest = max(longest, r - kept)
            for i in q.clients:
                t[i] = r
            kept = min(t if known else [t[i] for i in q.clients]) + early
        return Outcome(
            True, "run", None, f"40 rounds, m = 2 of {N}: every record needed is there, at most {longest} kept"
        )

    return check


def check_revert(algorithm: DeComFL, revert: bool) -> Check:
    """A client that does (not) revert holds x^{K+1} when the next rebuild starts."""

    def check(effort: str) -> Outcome:
        of, records = problem(), session(algorithm, 5)
        y, gap = Model(records[0].x.clone(), None), 0.0
        for q in records:
            gap = max(gap, float((y.x - q.x).abs().max()))
            if not revert:
                y = Model(end(algorithm, q, 0), None)
            algorithm.rebuild(of.layout, y, q.step)
        said = f"five rounds, K = {algorithm.local_steps}, P = {algorithm.perturbations}: largest gap to x_r {gap:.2g}"
        return Outcome(gap == 0, "exact", None, said, None if gap == 0 else {"gap": digits(gap)})

    return check


def check_sum(average: bool, scale: float = 1.0) -> Check:
    """The step of (7) against that of Algorithm 4."""

    def check(effort: str) -> Outcome:
        q = session(DeComFLReading(**vars(MANY), average=average), 1)[0]
        left, right = q.points[1] - q.points[0], -scale * MANY.lr * torch.einsum("np,pd->nd", q.g[:, 0], q.z[0]) / 3
        kind = "1/P" if average else "no 1/P, as (7)"
        return equal(left, right, f"P = 3, {kind}, against -(eta/P) sum_p g_p z_p", {"P": 3, "ratio": 3})

    return check


def check_momentum(printed: bool, damp: float = 0.5) -> Check:
    """First step from m = 0: (8) as printed, an equation for m^{k+1}, gives g z; with m^k it is (1 - beta) g z."""

    def check(effort: str) -> Outcome:
        q = session(HEAVY, 1)[0]
        left = q.points[1] - q.points[0]
        share = 1.0 if printed else 1 - damp
        right = -HEAVY.lr * share * torch.einsum("np,pd->nd", q.g[:, 0], q.z[0]) / 2
        said = f"beta = 1/2, first step of the client against {'g z' if printed else '(1 - beta) g z'}"
        return equal(left, right, said, {"beta": "1/2", "m^1": 0, "printed": "m^2 = g z", "meant": "m^2 = g z/2"})

    return check


def check_eq10(last: int, first: int = 1) -> Check:
    """x_{r+1} - x_i^{K or K+1} = x_r - x_i^1 - eta sum_{k=first}^K (g_r^k - g_i^k) z_r^k."""

    def check(effort: str) -> Outcome:
        q = session(PLAIN, 1)[0]
        ends = torch.cat([q.points, torch.stack([end(PLAIN, q, i) for i in range(N)])[None]])  # x^1..x^{K+1}
        left, right = q.after - ends[last - 1], -PLAIN.lr * along((q.mean - q.g)[:, first - 1 :], q.z[first - 1 :])
        said = f"K = 3: x_(r+1) - x_i^{last} against the sum over k = {first}..3"
        return equal(left, right, said, {"K": 3, "index": last})

    return check


def check_synchronise(late: int, steps: int = 3) -> Check:
    """Clients compensate after their local steps, without a snapshot, and rebuild by (5) from round t_i + late on.

    `steps`: how many of the K = 3 local steps are compensated.
    """

    def check(effort: str) -> Outcome:
        algorithm = DeComFLReading(**vars(PLAIN))
        of, records = problem(), session(algorithm, 8, 2)
        local = [Model(records[0].x.clone(), None) for _ in range(N)]
        held, gap, data = [0] * N, 0.0, None  # the first round that is missing
        for r, q in enumerate(records):
            for i in q.clients:
                for missed in records[held[i] : r]:
                    algorithm.rebuild(of.layout, local[i], missed.step)
                found = float((local[i].x - q.x).abs().max())
                if found > 1e-9 and data is None:
                    data = {"round": r, "client": i, "j from": held[i], "|x_i^1 - x_r|": digits(found)}
                gap = max(gap, found)
                algorithm.rebuild(of.layout, local[i], replace(q.step, g=q.g[i]))  # x_i^{K+1}
                mean, own = (g.clone() for g in (q.mean, q.g[i]))
                mean[steps:] = own[steps:] = 0
                algorithm.synchronise(of.layout, local[i].x, own, replace(q.step, g=mean))
                held[i] = r + late
        said = (
            f"eight rounds, m = 2 of {N}, K = 3, {steps} local steps compensated, (5) from j = r'{' + 1' * late} on: "
            f"largest gap to x_r {gap:.2g}"
        )
        return Outcome(data is None, "exact", None, said, data)

    return check


def compensation(beta: float, shift: int | None) -> tuple[float, float]:
    """Largest gaps of x_{r+1} - x_i^{K+1} and of m_{r+1} - m_i^{K+1} to what the scalars' differences give.

    -eta sum_k c_k (g_r^k - g_i^k) z_r^k with c_k = 1 - beta^{K-k+1+shift}, or 1 without shift, as (10) has it; and
    sum_k (1 - beta) beta^{K-k} (g_r^k - g_i^k) z_r^k. Both ends from the algorithm's own steps.
    """
    algorithm, of = replace(HEAVY, momentum=beta), problem()
    q, K = session(algorithm, 1)[0], HEAVY.local_steps
    start = lambda: Model(q.x.clone(), torch.zeros(DIM, dtype=DOUBLE) if beta else None)
    server, gaps = start(), []
    algorithm.rebuild(of.layout, server, q.step)
    for g in q.g:
        own = start()
        algorithm.rebuild(of.layout, own, replace(q.step, g=g))
        power = [beta ** (K - k) for k in range(K)]  # K - k + 1 with k from 1
        c = torch.tensor([1.0 if shift is None else 1 - beta**shift * p for p in power], dtype=DOUBLE)
        x = -algorithm.lr * along((q.mean - g) * c[:, None], q.z)
        gaps.append((float((server.x - own.x - x).abs().max()), 0.0))
        if server.m is not None and own.m is not None:
            c = torch.tensor([(1 - beta) * p / beta for p in power], dtype=DOUBLE)
            m = along((q.mean - g) * c[:, None], q.z)
            gaps[-1] = gaps[-1][0], float((server.m - own.m - m).abs().max())
    return max(x for x, _ in gaps), max(m for _, m in gaps)


def check_only_sgd(effort: str) -> Outcome:
    """Is there no such compensation for momentum?"""
    plain, heavy = compensation(0.0, None), compensation(0.5, 0)
    works = max(heavy) < 1e-12
    said = (
        f"K = 3: (10) for SGD misses x_(r+1) by {plain[0]:.2g}; for momentum 1/2 the sum with weights 1 - beta^(K-k+1) "
        f"by {heavy[0]:.2g}, and its state by {heavy[1]:.2g}"
    )
    data = {"optimizer": "momentum, beta = 1/2", "K": 3, "weights": ["7/8", "3/4", "1/2"], "exact": True}
    return Outcome(not works, "exact", None, said, data if works else None)


def check_compensation(shift: int) -> Check:
    def check(effort: str) -> Outcome:
        gaps = {beta: compensation(beta, shift) for beta in (0.1, 0.5, 0.9)}
        worst = max(max(pair) for pair in gaps.values())
        said = (
            f"beta = 0.1, 0.5, 0.9, K = 3, weights 1 - beta^(K-k+{1 + shift}), model and state: largest gap {worst:.2g}"
        )
        return Outcome(worst < 1e-12, "exact", None, said, None if worst < 1e-12 else {"gap": digits(worst)})

    return check


def check_streams(hashed: bool) -> Check:
    """Are the streams of different (s, p) different? By hash, and by s (p + 17) + p."""

    def check(effort: str) -> Outcome:
        drawn: dict[int, tuple[int, int]] = {}
        for s, p in itertools.product(range(1, 60), range(8)):
            seed = ROOT.fold(s, p).hash() if hashed else s * (p + 17) + p
            if seed in drawn:
                said = f"s(p + 17) + p: {drawn[seed]} and {(s, p)} share stream {seed}"
                return Outcome(False, "exact", None, said, {"(s, p)": [list(drawn[seed]), [s, p]], "stream": seed})
            drawn[seed] = s, p
        q = session(replace(MANY, local_steps=40, perturbations=40, lr=1e-6), 1)[0]
        z = q.z.flatten()
        n = len(z)
        scores = [abs(float((z[s:] * z[:-s]).mean())) * math.sqrt(n - s) for s in (1, 3, 40, 120)]
        scores += [abs(float(z.mean())) * math.sqrt(n), abs(float(z.var()) - 1) * math.sqrt(n / 2)]
        holds = max(scores) < 4
        said = (
            f"{len(drawn)} streams by hash are distinct; 1,600 vectors: moments and lagged products within "
            f"{max(scores):.1f} sigma"
        )
        return Outcome(holds, "monte-carlo", None, said, None if holds else {"sigma": digits(max(scores))})

    return check


def check_projection(d: int, within: float) -> Check:
    """(12): relative error of (1/d)<z, g> z is | ||z||^2/d - 1 |, rms sqrt(2/d); and of 300 of the code's draws."""

    def check(effort: str) -> Outcome:
        rms = math.sqrt(2 / d)
        draws = PLAIN.directions(Layout.single(d), torch.arange(300), torch.zeros(d, dtype=DOUBLE))
        errors = [sum(float((part**2).sum()) for _, part in z) / d - 1 for z in draws]
        drawn = math.sqrt(sum(e * e for e in errors) / len(errors))
        said = f"d = {d}: Var(||z||^2/d) = 2/d, relative rms error of (12) {rms:.3g}, of 300 draws {drawn:.3g}"
        holds = rms <= within and abs(drawn / rms - 1) < 0.25
        return Outcome(holds, "exact", rms, said, None if holds else {"d": d, "relative rms error": digits(rms)})

    return check


def check_alg5(printed: bool, scale: float = 1.0) -> Check:
    """f = x^2/2, K = 1 step from x = z = 1, eta = 1/10: the point of the gradient is x^k, or x^K = x^k - eta g z."""

    def check(effort: str) -> Outcome:
        at = tiny(x=1.0, sphere=True, K=2)
        r = Enumerated(at, scalar="central")  # on quadratics the scalar is <grad f, z>, as in "projection"
        x, g = r.points[:, 0, :, 0], r.g[0, :, :, 0].T
        z = r.z[:, :, 0, 0].T
        exact = x[-1] if printed else x
        said = f"K = 2, f = x^2/2: the client's scalars against <grad f(x^{'K' if printed else 'k'}), z^k>"
        data = {"f": "x^2/2", "x^1": 1, "K": 2, "g^1 at x^1": "z", "g^1 at x^2": "needs x^2 = x^1 - eta g^1 z"}
        return equal(g, scale * exact * z, said, data)

    return check


# Privacy and seeds


def check_secret(shift: int | None, guesses: int = 0) -> Check:
    """The server rebuilds from its history without the secret, or tries `guesses` of them with a loss at hand."""

    def check(effort: str) -> Outcome:
        of, algorithm = problem(), DeComFLReading(**vars(replace(MANY, lr=0.1)), secret=shift)
        state, steps = algorithm.init(of, torch.ones(DIM, dtype=DOUBLE), ROOT), []
        start = state.server.x.clone()
        for r in range(15):
            key = ROOT.fold("secret", r)
            down = algorithm.broadcast(state.server, key)
            state, up, _ = play_round(algorithm, of, state, of.clients, key)
            steps.append(algorithm.step(down, up.g.mean(0)))

        def reads(secret: int | None) -> torch.Tensor:
            model = Model(start.clone(), None)
            for step in steps:
                replace(algorithm, secret=secret).rebuild(of.layout, model, step)
            return model.x

        own = float((reads(shift) - state.server.x).abs().max())
        tried = {guess: reads(guess) for guess in range(guesses)} or {None: reads(None)}
        best = min(tried.values(), key=of.loss)
        gap = float((best - state.server.x).norm() / state.server.x.norm())
        way = f"the best loss among {guesses} guesses" if guesses else "without the shift"
        said = f"15 rounds, server's model {way}: relative gap to the clients' model {gap:.2g}"
        said += f"; clients, who know it, {own:.2g}"
        data = {"guesses": guesses, "relative gap": digits(gap), "clients' gap": digits(own)}
        return Outcome(gap > 0.05 and own == 0, "run", None, said, data)

    return check


def same_law(slopes: tuple[float, float]) -> Check:
    """Do clients whose data give the gradients a and b send scalars of the same law? E g^2 = a^2."""

    def check(effort: str) -> Outcome:
        moments = []
        for slope in slopes:
            r = Enumerated(tiny(a=slope))
            moments.append(float(r.mean(r.g[0, :, 0, 0] ** 2)))
        said = f"f = a x with a = {slopes[0]:g} and {slopes[1]:g}: E g^2 = {moments[0]:.3g} and {moments[1]:.3g}"
        holds = math.isclose(moments[0], moments[1], rel_tol=1e-9)
        data = {"a": list(slopes), "E g^2": [digits(v) for v in moments]}
        return Outcome(holds, "exact", moments[1] / moments[0], said, None if holds else data)

    return check


def check_gram(together: bool) -> Check:
    """Moments up to order four of two clients' scalars, before and after a rotation of their gradients, or of one."""

    def check(effort: str) -> Outcome:
        z, p = directions(2, False, 4)
        gradients = torch.tensor([[1.0, 0.5], [-0.3, 2.0]], dtype=DOUBLE)
        turned = gradients @ torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=DOUBLE)
        found = []
        for g in (gradients, turned if together else torch.stack([gradients[0], turned[1]])):
            s = z @ g.T
            found.append([float((p * s[:, 0] ** a * s[:, 1] ** b).sum()) for a in range(5) for b in range(5 - a)])
        said = (
            f"two clients, all mixed moments to order four, {'both gradients' if together else 'one gradient'} turned"
        )
        return equal(found[0], found[1], said)

    return check


# Rates


def over_rate(K: int, P: int, d: int, m: int, repaired: bool) -> float:
    """Noise terms of a bound over sqrt(d)/sqrt(mPKR), step of Corollary 1, L = sigma = sigma_G = 1, R -> inf."""
    scale = 1e-12  # eta^2 against eta
    at = tiny(d=d, K=K, P=P, m=m, lr=scale)
    of_G, of_noise, _ = per_round(at, not repaired)
    return (of_G + of_noise) / scale * m * P / d


def check_corollary(limit: float) -> Check:
    """The bounds of Theorem 1, printed and repaired, over the rate: bounded where K P <= d."""

    def check(effort: str) -> Outcome:
        cases = [
            (K, P, d, m) for K in (1, 2, 5, 20) for P in (1, 4, 50) for d in (1, 10, 1000) for m in (1, 7) if d >= K * P
        ]
        worst = max(over_rate(*case, repaired) for case in cases for repaired in (True, False))
        said = (
            f"{len(cases)} sizes with K P <= d: noise of both bounds over the rate at most {worst:.4g}; 4D and mu "
            f"follow suit"
        )
        holds = worst <= limit * (1 + 1e-9)
        return Outcome(holds, "exact", worst / limit, said, None if holds else {"ratio": digits(worst), "limit": limit})

    return check


def line_average(P: int, R: int, eta: float) -> float:
    """Average of E||grad f||^2, f = x^2/2, xi = +-1, K = 1, from x*: E x^2 <- a E x^2 + b, a and b from one round."""
    a, b = (float(Round(tiny(x=x, noise=1 - x, P=P, lr=eta)).next[1]) for x in (1.0, 0.0))
    level = b / (1 - a)
    return level * (1 - (1 - a**R) / (R * (1 - a)))


def check_growth(effort: str) -> Outcome:
    """Corollary 1 with P far above d = 1: eta = sqrt(P/R), rate 1/sqrt(P R)."""
    ratios = {}
    for P in (1, 100, 10_000):
        R = 10_000 * P
        ratios[P] = line_average(P, R, math.sqrt(P / R)) * math.sqrt(P * R)
    said = "f = x^2/2, xi = +-1, d = m = K = 1, R = 10^4 P: average over the rate " + ", ".join(
        f"{v:.3g} (P = {P})" for P, v in ratios.items()
    )
    holds = ratios[10_000] < 10 * ratios[1]
    data = {"f": "x^2/2", "sigma": 1, "eta": "sqrt(P/R)", "ratios": {str(P): digits(v) for P, v in ratios.items()}}
    return Outcome(holds, "exact", ratios[10_000] / ratios[1], said, None if holds else data)


def check_speedup(K: int, heterogeneity: float, slack: float = 1.1) -> Check:
    """The level after many rounds at K against K = 1, eta ~ 1/sqrt(K): linear speedup is sqrt(K) times less."""

    def check(effort: str) -> Outcome:
        level = {}
        for steps in (1, K):
            at = tiny(
                a=[[heterogeneity], [-heterogeneity]], noise=0.0 if heterogeneity else 1.0, M=2, m=1, d=1,
                K=steps, lr=0.02 / math.sqrt(steps),
            )  # fmt: skip
            level[steps] = trajectory(at, 250)[-1]
        ratio = level[K] / level[1]
        holds = ratio <= slack / math.sqrt(K)
        kind = "heterogeneity" if heterogeneity else "minibatch noise"
        said = (
            f"{kind} alone, m = 1 of 2, eta = 0.02/sqrt(K): E||grad f||^2 at K = {K} over K = 1: {ratio:.3g} "
            f"(linear speedup {1 / math.sqrt(K):.3g})"
        )
        data = {"K": K, "sigma_G": heterogeneity, "ratio": digits(ratio)}
        return Outcome(holds, "exact", ratio * math.sqrt(K), said, None if holds else data)

    return check


def check_more(name: str, n: int, d: int, slack: float = 1.1) -> Check:
    """The same for n clients (m = M = n) or n perturbations, eta ~ sqrt(n): f = ||x||^2/2, minibatch noise, at rest."""

    def check(effort: str) -> Outcome:
        level = {}
        for count in (1, n):
            sizes: dict[str, Any] = {"M": count, "m": count} if name == "m" else {"P": count}
            first = torch.eye(d, dtype=DOUBLE)[0]
            start, rest = (
                Round(
                    tiny(x=(x * first).tolist(), noise=[((1 - x) * first).tolist()], d=d, lr=1e-4 * count**0.5, **sizes)
                )
                for x in (1.0, 0.0)
            )
            level[count] = float(rest.next[1].trace() / (1 - start.next[1].trace()))  # E||x||^2 <- a E||x||^2 + b
        ratio = level[n] / level[1]
        holds = ratio <= slack / math.sqrt(n)
        said = (
            f"f = ||x||^2/2, d = {d}, minibatch noise, eta ~ sqrt({name}): E||grad f||^2 at {name} = {n} over 1: "
            f"{ratio:.3g} (linear speedup {1 / math.sqrt(n):.3g})"
        )
        data = {"d": d, name: n, "ratio": digits(ratio)}
        return Outcome(holds, "exact", ratio * math.sqrt(n), said, None if holds else data)

    return check


# Costs


def messages(P: int) -> tuple[Cost, Cost]:
    """A round of DeComFL with K = 1 in the history that a client reads, and what it sends, in 4-byte numbers."""
    of, algorithm = problem(), DeComFL(1e-3, 1, P)
    state = algorithm.init(of, of.start().float(), ROOT)
    down = algorithm.broadcast(state.server, ROOT)
    up = drain_all(algorithm.client(of, of.clients[:1], None, down, ROOT))[1][0]
    return cost(algorithm.step(down, up.g[0].float())), cost(up.g[0].float())


def check_rule(table: str, upload: bool = True) -> Check:
    """Cells of Table 2 or 6 in MB against 4 bytes x rounds x the numbers of a round, seeds too."""

    def check(effort: str) -> Outcome:
        wrong, numbers = {}, {}
        for name, (printed, rounds, P) in CELLS[table].items():
            down, up = messages(P)
            numbers[P] = down.scalars + upload * up.scalars
            expected = 4 * numbers[P] * rounds / 1e6
            if abs(printed / expected - 1) > 0.01:
                wrong[name] = {"printed": printed, "recomputed": round(expected, 4)}
        counts = ", ".join(f"{count} with P = {P}" for P, count in numbers.items())
        said = (
            f"{len(CELLS[table]) - len(wrong)} of {len(CELLS[table])} DeComFL cells are 4 bytes x rounds x numbers of "
            f"a round ({counts})"
        )
        holds = not wrong
        return Outcome(holds, "exact", None, said + ("" if holds else f"; not {', '.join(wrong)}"), wrong or None)

    return check


SETS = ("SST-2", "CB", "WSC", "WIC", "RTE", "BoolQ")
ROUNDS = {"125M": (3000, 1000, 3000, 3000, 2000, 2000), "1.3B": (2000, 3000, 3000, 2000, 1500, 1500),
          "LoRA": (3000, 1000, 1000, 2000, 500, 500)}  # fmt: skip
PRINTED = {"125M": (0.36, 0.12, 0.36, 0.36, 0.24, 0.24), "1.3B": (0.24, 0.36, 0.36, 0.24, 1.80, 1.80)}
LORA = {5: (0.18, 0.06, 0.06, 0.12, 0.03, 0.03), 10: (0.36, 0.12, 0.12, 0.24, 0.06, 0.06)}
FEDZO = {"125M": (0.75, 0.38, 0.75, 0.75, 0.50, 0.50), "1.3B": (5.20, 7.80, 7.80, 5.20, 3.90, 3.90),
         "LoRA": (0.66, 0.22, 0.22, 0.44, 0.11, 0.11)}  # fmt: skip
SIZES = {"125M": 125e6, "1.3B": 1.3e9, "LoRA": 12 * 2 * 8 * (768 + 768)}
CELLS = {
    "2": {f"{s} {n}": (v, r, 10) for s in PRINTED for n, v, r in zip(SETS, PRINTED[s], ROUNDS[s], strict=True)},
    "6": {f"{n} P={P}": (v, r, P) for P in LORA for n, v, r in zip(SETS, LORA[P], ROUNDS["LoRA"], strict=True)},
}
CELLS["2 repaired"] = {name: (0.18 if v == 1.80 else v, r, P) for name, (v, r, P) in CELLS["2"].items()}


def check_fedzo(models: tuple[str, ...], sizes: dict[str, float], skip: tuple[str, ...] = ()) -> Check:
    """FedZO's cells in TB against (m/M) 2 d 4 bytes x rounds, m/M = 1/4."""

    def check(effort: str) -> Outcome:
        wrong = {}
        for model in models:
            for name, printed, rounds in zip(SETS, FEDZO[model], ROUNDS[model], strict=True):
                expected = 2 * sizes[model] * 4 * rounds / 4 / 1e12
                if f"{model} {name}" not in skip and abs(printed / expected - 1) > 0.01:
                    wrong[f"{model} {name}"] = {"printed": printed, "recomputed": digits(expected)}
        said = f"FedZO's cells of {', '.join(models)} against (m/M) 2 d 4 bytes x rounds, d = "
        said += ", ".join(f"{sizes[model]:,.0f}" for model in models) + (f", without {', '.join(skip)}" if skip else "")
        return Outcome(
            not wrong, "exact", None, said + (f": not {', '.join(wrong)}" if wrong else ": all"), wrong or None
        )

    return check


def check_abstract(P: int) -> Check:
    """Two OPT-1.3B of 4-byte numbers, and DeComFL's messages of the longest run (4-byte numbers, 8-byte seeds)."""

    def check(effort: str) -> Outcome:
        dense, rounds = 2 * 4 * opt(2048, 24)[0] / 1e9, max(ROUNDS["1.3B"])
        down, up = messages(P)
        total = rounds * (down.bytes + up.bytes) / 1e6
        holds = abs(dense / 10 - 1) < 0.1 and total <= 1.5
        said = f"a model up and down {dense:.1f} GB; {rounds:,} rounds with P = {P}, history and upload, {total:.2f} MB"
        return Outcome(holds, "exact", None, said, None if holds else {"P": P, "MB": digits(total)})

    return check


HEADS = {"decomfl-mnist": 10, "decomfl-fashion": 62}  # outputs; 62 in the public code, for ten classes


def check_parameters(**heads: int) -> Check:
    def check(effort: str) -> Outcome:
        outputs = HEADS | {f"decomfl-{name}": classes for name, classes in heads.items()}
        counted = {name: NETWORKS[name]((1, 28, 28), classes).layout.size for name, classes in outputs.items()}
        printed = {"decomfl-mnist": 28_938, "decomfl-fashion": 1_206_590}
        said = "counted: " + ", ".join(f"{counted[name]:,} with {outputs[name]} outputs" for name in printed)
        wrong = {
            name: {"outputs": outputs[name], "counted": counted[name]}
            for name in printed
            if counted[name] != printed[name]
        }
        return Outcome(not wrong, "exact", None, said, wrong or None)

    return check


def check_messages(seeds_too: bool) -> Check:
    """Table 1 against counted scalars: N = 4, m = 2, K P = 6, d too large for a model pull."""

    def check(effort: str) -> Outcome:
        T, M, m, KP = 240, 4, 2, 6
        zero = torch.zeros(M, 2000, dtype=DOUBLE)
        history = run(replace(MANY, lr=1e-6), Smooth(zero + 1, zero), T, sampled=m, metrics=("loss",), every=T)
        up, down = history["up_scalars"][-1] / T, history["down_scalars"][-1] / T
        expected = 2 * M * KP + (m * KP if seeds_too else 0)
        holds = up == m * KP and abs(down / expected - 1) < 0.03
        said = f"{T} rounds counted: up {up:g} = mKP, down {down:.2f} per round against {expected}"
        return Outcome(
            holds,
            "run",
            down / expected,
            said,
            None if holds else {"up": up, "down": digits(down), "printed": expected},
        )

    return check


def check_columns(extra: int) -> Check:
    """Per round times rounds is the total, for every row; M/m >= 1 clients share the downlink of DeComFL."""

    def check(effort: str) -> Outcome:
        import sympy

        m, d, K, P, M, beta, kappa, eps = sympy.symbols("m d K P M beta kappa epsilon", positive=True)
        first, zeroth, low = 1 / (m * K * eps**2), d / (m * P * K * eps**2), kappa / (m * P * eps**2)
        rows = [
            (m * d * first, d / (K * eps**2)),
            (m * d * zeroth, d**2 / (P * K * eps**2)),
            (beta * m * d * first, beta * d / (K * eps**2)),
            (m * K * P * zeroth, d / eps**2),
            (M * K * P * zeroth, M * d / (m * eps**2)),
            (m * P * low, kappa / eps**2),
            (M * P * low, M * kappa / (m ** (1 - extra) * eps**2)),
        ]
        holds = all(same(a, b) for a, b in rows)
        said = "per round times round complexity is the total, seven columns (2 of 2MKP in O)"
        return Outcome(holds, "symbolic", None, said, None if holds else {"row": "low rank, downlink"})

    return check


def less_traffic(percent: int) -> tuple[list[Any], Any]:
    """kappa < (percent/100) m d/(M K): then M kappa/m < d/K."""
    kappa, m, M, d, K = reals("kappa m M d K")
    return [m >= 1, m <= M, d >= 1, K >= 1, kappa >= 1, 100 * kappa * M * K < percent * m * d], M * kappa * K < m * d


def check_fedzo_round(own: bool) -> Check:
    """(2a)-(2c) by the package's FedZO, every client along its `own` z, and how many scalars cross."""

    def check(effort: str) -> Outcome:
        of, algorithm, key = problem(), FedZO(0.05, 3, 1, 0.1, direction="gaussian"), ROOT.fold("FedZO")
        state = algorithm.init(of, torch.ones(DIM, dtype=DOUBLE), ROOT)
        start = state.server.x.expand(N, -1)
        points, _ = drain_all(algorithm.client(of, of.clients, None, algorithm.broadcast(state.server, key), key))
        before, xi = torch.cat([start[None], points[:-1]]), of.draw(of.clients, 3, key.fold("xi"))
        moved, mu = [], algorithm.smoothing
        for k, y in enumerate(before):
            keys = [key.fold("z", i if own else 0, k, 0) for i in range(N)]
            draws = [Direction(one, of.layout, "gaussian", DOUBLE, y.device) for one in keys]
            z = torch.stack([torch.cat([part for _, part in draw]) for draw in draws])
            g = (of.losses(y + mu * z, xi[k]) - of.losses(y, xi[k])) / mu  # (3)
            moved.append(y - algorithm.lr * g[:, None] * z)
        after = play_round(algorithm, of, state, of.clients, key)[0].server.x
        found = equal(
            torch.cat([points, after[None, None].expand(1, N, -1)]),
            torch.stack([*moved, moved[-1].mean(0).expand(N, -1)]),
            f"K = 3, {N} clients, FedZO's iterates and mean, {'own' if own else 'common'} z",
        )
        zero = torch.zeros(N, 50, dtype=DOUBLE)
        history = run(algorithm, Smooth(zero + 1, zero), 4, metrics=("loss",), every=4)
        per = (history["up_scalars"][-1] + history["down_scalars"][-1]) / (4 * N)
        said = f"{found.detail}; scalars per client and round, d = 50: {per:g}"
        holds = found.holds and per == 2 * 50
        return Outcome(holds, "exact", found.margin, said, None if holds else {"counted": per})

    return check


def opt(hidden: int, blocks: int) -> tuple[int, int]:
    """Parameters of an OPT model and of its largest tensor, the embedding of 50,272 tokens: d, phi."""
    embedding = 50_272 * hidden
    block = 12 * hidden**2 + 13 * hidden  # four projections, two layers of width 4 hidden, two norms, with biases
    return embedding + 2050 * hidden + blocks * block + 2 * hidden, embedding


def trained() -> dict[str, tuple[int, int]]:
    """d and phi of every model that the paper trains with DeComFL on its tables and figures 2, 3."""
    sizes = {}
    for name, network in (("MNIST CNN", "decomfl-mnist"), ("Fashion CNN", "decomfl-fashion")):
        layout = NETWORKS[network]((1, 28, 28), HEADS[network]).layout
        sizes[name] = layout.size, max(layer.rows * layer.cols for layer in layout.layers)
    return sizes | {"OPT-125M": opt(768, 12), "OPT-1.3B": opt(2048, 24)}


def check_memory(models: tuple[str, ...], limit: float = 1.1) -> Check:
    """(d + phi)/d, phi the largest tensor, which the client perturbs at a time."""

    def check(effort: str) -> Outcome:
        ratios = {name: (d + phi) / d for name, (d, phi) in trained().items() if name in models}
        worst = max(ratios.values())
        said = "d + phi over d: " + ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
        data = {name: digits(ratio) for name, ratio in ratios.items() if ratio > limit}
        return Outcome(worst <= limit, "exact", worst, f"{said}; at most {limit}", data or None)

    return check


def check_pull_cost(pull: bool) -> Check:
    """The price of a rebuild after `lag` rounds against that of a model."""

    def check(effort: str) -> Outcome:
        algorithm, zero = DeComFLReading(**vars(MANY), secret=None if pull else 3), torch.zeros(1, 100, dtype=DOUBLE)
        state = algorithm.init(Smooth(zero, zero), zero[0], ROOT)
        down = algorithm.broadcast(replace(state.server, r=40), ROOT)
        lags = (1, 2, 10, 40)
        found = [cost(down.model, [lag]).bytes for lag in lags]
        dense, step = 8 * 100, down.model.steps(1).bytes
        expected = [min(dense, lag * step) for lag in lags]
        said = f"lags {lags}: {found} bytes, a model {dense}, a round {step}"
        return Outcome(found == expected, "exact", None, said, None if found == expected else {"bytes": found})

    return check


CLAIMS: list[Claim] = [
    decomfl(
        "abstract.cost",
        "Abstract; Sec. 1",
        "Fine-tuning OPT-1.3B: about 10 GB per client and round traditionally; DeComFL about 1 MB per client in total.",
        "cost",
        check=check_abstract(10),
        control=check_abstract(32),
        broken="P = 32, with which 3,000 rounds are 1.54 MB",
    ),
    decomfl(
        "eq2",
        "Sec. 3.1 (2a)-(2c)",
        "FedZO: local ZO-SGD with own z_{i,r}^k, models averaged; a vector of length 2d crosses between client and "
        "server each "
        "round.",
        "definition",
        check=check_fedzo_round(True),
        control=check_fedzo_round(False),
        broken="one z for all clients, as in DeComFL",
    ),
    decomfl(
        "eq3",
        "Sec. 3.1 (3)",
        "g = (1/mu)(f_i(x + mu z; xi) - f_i(x; xi)) approximates <grad f_i(x; xi), z> for small mu.",
        "inequality",
        check=check_eq3(0.5),
        control=check_eq3(0.499),
        broken="an error of at most 0.499 mu L ||z||^2 (1/2 is attained)",
    ),
    decomfl(
        "eq4a",
        "Sec. 3.2 (4a)",
        "x_{i,r}^{k+1} = x_{i,r}^k - eta g_{i,r}^k z_r^k, k = 1..K.",
        "definition",
        check=check_local(0),
        control=check_local(1),
        broken="the z of another step",
    ),
    decomfl(
        "eq4b",
        "Sec. 3.2 (4b)",
        "x_{r+1} = x_r - eta sum_{k=0}^{K-1} ((1/|C_r|) sum_i g_{i,r}^k) z_r^k.",
        "identity",
        check=check_server(0, 2),
        control=check_server(2, 3),
        broken="k = 2..K",
        error="index",
        repair="k = 1..K, as in (4a) and line 12 of Algorithm 1",
        repaired=check_server(1, 3),
        implies="read literally the last local step is lost: with K = 1 the server never moves",
    ),
    decomfl(
        "eq4.avg",
        "Sec. 3.2",
        "With z_{i,r}^k replaced by z_r^k aggregation of models becomes aggregation of scalars.",
        "identity",
        check=check_average(False),
        control=check_average(True),
        broken="directions of each client's own",
    ),
    decomfl(
        "eq5",
        "Sec. 3.3 (5)",
        "x_{i,r}^1 = x_{i,r'}^K - eta sum_{j=r'}^{r-1} sum_k g_j^k z_j^k, g_j^k = (1/|C_r|) sum_{i in C_r} g_{i,j}^k.",
        "identity",
        assumes=(Printed("x_{i,r'}^K = x_{r'}", "Sec. 3.3"),),
        check=check_pull(False),
        control=check_pull(True, 2),
        broken="the right sets, but rounds r' to r-2",
        error="index",
        repair="the average of round j is over C_j, the clients sampled in it",
        repaired=check_pull(True),
        implies="clients of C_r have sent nothing in round j; the record cannot be formed as printed",
    ),
    decomfl(
        "history_contents",
        "Sec. 3.3; Alg. 1 lines 2, 7",
        "Reconstruction needs only gradient scalars and seeds of rounds t_i..r-1.",
        "algorithm",
        assumes=(
            Printed("one eta and one perturbation a step for all rounds", "Algorithm 1, line 1"),
            Printed("plain ZO-SGD, without state", "App. A.1"),
        ),
        check=check_history(PLAIN),
        control=check_history(PLAIN, rate=0.04),
        broken="a client that does not know that eta was 0.05",
    ),
    decomfl(
        "alg1-2",
        "Alg. 1, 2 (P = 1)",
        "Reverting after the local update and rebuilding makes x_{i,r}^1 identical to x_r.",
        "algorithm",
        check=worst_of(check_revert(PLAIN, True), check_history(PLAIN)),
        control=check_revert(PLAIN, False),
        broken="no revert",
    ),
    decomfl(
        "remark1-2",
        "Remarks 1, 2; Sec. 1",
        "The middle terms of Theorem 1 depend on d and decide; K and P in the denominator of the rate are linear "
        "speedup in "
        "clients, local steps and perturbations.",
        "rate",
        check=worst_of(check_speedup(16, 0.0), check_more("m", 4, 1), check_more("P", 4, 60)),
        as_printed=each_fails(**{"K P < d": check_speedup(16, 1.0), "P < d": check_more("P", 64, 1)}),
        caveat="more clients help against minibatch noise and heterogeneity, not against the directions, which they "
        "share; more local steps against minibatch noise, and against heterogeneity (72 K L eta sigma_G^2/m) only "
        "while K P < d; more perturbations while P < d",
        control=check_speedup(16, 0.0, 0.97),
        broken="0.97 of the linear speedup's level",
        implies="16 local steps at the corollary's step size leave 1.5 times the error of one, not a quarter, "
        "where clients differ (d = P = 1; four times where P is far above d)",
    ),
    decomfl(
        "corollary1",
        "Sec. 4.1, Corollary 1",
        "With mu <= 1/((d+3) sqrt(PKR)) and eta = O(sqrt(mP)/sqrt(dRK)) the rate is O(sqrt d/sqrt(mPKR)) for large R.",
        "rate",
        assumes=(Printed("the bound of Theorem 1", "Theorem 1"),),
        check=check_corollary(72.0 + 24 * 5 + 16 * 5),
        as_printed=check_growth,
        caveat="K P = O(d): the bound's own term 72 K L eta sigma_G^2/m needs it, and the minibatch noise needs P = "
        "O(d)",
        control=check_corollary(271.0),
        broken="a constant of 271 in place of 272, which is reached",
        implies="P above d does not pay: the rate stays at sqrt(P)/sqrt(mdKR)",
    ),
    decomfl(
        "remark3",
        "Sec. 4.1, Remark 3",
        "In the proof of FedMeZO the sign of T_1 in its equation (16) is handled incorrectly.",
        "inequality",
        unchecked=REMARK3,
    ),
    decomfl(
        "table1",
        "Sec. 4.2, Table 1",
        "Per round mKP up and 2MKP down for DeComFL, mP and 2MP in low rank; totals are these times the round "
        "complexities; "
        "FedAvg, FedZO, FedCom alike.",
        "cost",
        check=worst_of(check_messages(True), check_columns(0)),
        as_printed=check_messages(False),
        caveat="2MKP is the history alone, on average over many rounds; the round's own seeds (line 8) are mKP "
        "more, unless line "
        "7 is not to send them again. Round complexities as in Corollary 1, K P = O(d)",
        control=check_columns(1),
        broken="M for M/m in the downlink of the low-rank row",
    ),
    decomfl(
        "s42.kappa",
        "Sec. 4.2",
        "If kappa << md/(MK), DeComFL can converge much faster than first-order methods in communication.",
        "cost",
        assumes=(Printed("the complexities of Table 1", "Table 1"),),
        check=chain(lambda: less_traffic(100), "M kappa/m < d/K"),
        control=chain(lambda: less_traffic(101)),
        broken="kappa below 1.01 md/(MK)",
    ),
    decomfl(
        "params",
        "Sec. 5",
        "The MNIST CNN has 28,938 parameters, the Fashion CNN 1,206,590.",
        "cost",
        check=check_parameters(),
        as_printed=check_parameters(fashion=10),
        caveat="the networks of the public code (the paper prints neither), the Fashion CNN with the 62 outputs that "
        "are its default: with the ten classes of Fashion-MNIST it has 1,199,882",
        control=check_parameters(fashion=61),
        broken="61 outputs",
    ),
    decomfl(
        "table2.bytes",
        "Sec. 5, Table 2",
        "Bytes of the whole fine-tuning: DeComFL (P = 10) OPT-125M 0.36, 0.12, 0.36, 0.36, 0.24, 0.24 MB, OPT-1.3B "
        "0.24, 0.36, "
        "0.36, 0.24, 1.80, 1.80 MB; FedZO OPT-125M 0.75, 0.38, 0.75, 0.75, 0.50, 0.50 TB, OPT-1.3B 5.20, 7.80, "
        "7.80, 5.20, "
        "3.90, 3.90 TB; nearly identical for both sizes.",
        "cost",
        assumes=(Printed("the rounds of Table 5", "Table 5"),),
        reading="numbers of 4 bytes; FedAvg's rounds are not given, so its cells are not checked",
        check=check_rule("2"),
        control=check_rule("2", upload=False),
        broken="P scalars and P seeds down, but not the P scalars up",
        error="misprint",
        repair="0.18 MB for RTE and BoolQ on OPT-1.3B; FedZO's cells fit (m/M) 2 d 4 bytes a round, except CB on "
        "OPT-125M (0.25 "
        "for 0.38). DeComFL's are for a client that takes part in every round (without m/M)",
        repaired=worst_of(check_rule("2 repaired"), check_fedzo(("125M", "1.3B"), SIZES, ("125M CB",))),
        implies="with 1.80 MB the cost of the two models would not be 'nearly identical'; with 0.18 it is",
    ),
    decomfl(
        "iid_z",
        "A.1",
        "z_{r,p}^k is Gaussian, i.i.d. for any r, k, p.",
        "definition",
        check=check_streams(True),
        control=check_streams(False),
        broken="streams s(p + 17) + p, as in the public code",
    ),
    decomfl(
        "eq7",
        "A.1 (7)",
        "x_{i,r}^{k+1} = x_{i,r}^k - eta sum_p g_{i,r,p}^k z_{r,p}^k, a weighted average of the perturbations.",
        "definition",
        check=check_sum(False),
        control=check_sum(True, 1.001),
        broken="a step 1.001 times as long",
        error="misprint",
        repair="(eta/P) sum_p, as in (22) and in Algorithms 3 and 4",
        repaired=check_sum(True),
        implies="without 1/P the step is P times longer than Theorem 1 allows: with P = 256 and eta = 1/8 it "
        "diverges on x^2/2",
    ),
    decomfl(
        "eq8",
        "A.1 (8)",
        "m_{i,r}^{k+1} = beta m_{i,r}^{k+1} + (1 - beta) g_{i,r}^k z_r^k.",
        "definition",
        check=check_momentum(True),
        control=check_momentum(False, 0.499),
        broken="1 - beta = 0.501",
        error="index",
        repair="beta m_{i,r}^k",
        repaired=check_momentum(False),
        implies="read literally m^{k+1} = g z, no momentum at all",
    ),
    decomfl(
        "eq9",
        "A.1 (9)",
        "x^{k+1} = x^k - eta m^{k+1}; model and optimizer state are reverted, and rebuilt together.",
        "algorithm",
        check=check_history(HEAVY),
        control=check_history(HEAVY, momentum=False),
        broken="the optimizer state not maintained during reconstruction",
    ),
    decomfl(
        "A2.queue",
        "A.2",
        "The server needs only the records since each client's most recent round; a queue suffices. Further, clients "
        "may keep t_i and send it, so that the server need not.",
        "cost",
        check=worst_of(check_queue(True), check_history(MANY)),
        as_printed=check_queue(False),
        caveat="one or the other: a server that does not hold t_i of the absent clients cannot know which records are "
        "outdated",
        control=check_queue(True, 1),
        broken="one record dropped too early",
    ),
    decomfl(
        "eq10",
        "A.2 (10)",
        "x_{r+1} - x_{i,r}^K = x_r - x_{i,r}^1 - eta sum_{k=1}^K (g_r^k - g_{i,r}^k) z_r^k.",
        "identity",
        check=check_eq10(3),
        control=check_eq10(4, 2),
        broken="the right index with k = 2..K",
        error="index",
        repair="x_{i,r}^{K+1}: K recursions of (4a) lead there",
        repaired=check_eq10(4),
        implies="taken literally a client ends one local step away from the server's model",
    ),
    decomfl(
        "eq10.use",
        "A.2",
        "Compensating for sum_k (g_r^k - g_{i,r}^k) z_r^k, from scalars and seeds only and without a snapshot, ensures "
        "the prerequisite of (5), that the client's model at the end of the local update is x_{r'}.",
        "algorithm",
        assumes=(Printed("x_r = x_{i,r}^1 after the reconstructing step", "App. A.2"),),
        check=check_synchronise(0),
        control=check_synchronise(1, 2),
        broken="(5) from j = r' + 1, but K - 1 of the K local steps compensated",
        error="index",
        repair="the compensated client holds x_{r'+1}, as (10) says: exact (up to rounding, which stays) with (5) from "
        "j = r' + 1 on, t_i = r' + 1 in Algorithm 1",
        repaired=check_synchronise(1),
        implies="a client that compensates and then rebuilds from round t_i on, as printed, makes round t_i twice",
    ),
    decomfl(
        "eq10.sgd_only",
        "A.2",
        "The technique of (10) is specific to SGD optimization.",
        "algorithm",
        check=check_only_sgd,
        control=check_compensation(1),
        broken="weights 1 - beta^{K-k+2}",
        error="wrong statement",
        repair="(10) as printed is; with weights 1 - beta^{K-k+1} the same sum does it for the momentum of (8) and "
        "(9), which is linear in g z, and with (1 - beta) beta^{K-k} for its state",
        repaired=check_compensation(0),
        implies="a client with momentum needs no snapshot either",
    ),
    decomfl(
        "table4",
        "A.2, Table 4",
        "Memory: FedZO server 2d, client 3d; DeComFL server negligible, client d + phi, about d, phi the largest "
        "tensor.",
        "cost",
        check=check_memory(("OPT-1.3B",)),
        as_printed=check_memory(("MNIST CNN", "Fashion CNN", "OPT-125M", "OPT-1.3B")),
        caveat="phi << d, which of the models that the paper trains is so for OPT-1.3B alone, and (10) in place of a "
        "snapshot. FedZO's row is about the peak of an implementation, and is not measured here",
        control=check_memory(("OPT-1.3B",), 1.075),
        broken="7.5% more than d (phi is 7.8% of it)",
        implies="a client needs 1.3 d for OPT-125M, 1.5 d for the MNIST CNN and 2 d for the Fashion CNN",
    ),
    decomfl(
        "A3.pull",
        "A.3",
        "For a large lag pulling the model costs the same as ever, rebuilding grows with the lag: a trade-off.",
        "cost",
        check=check_pull_cost(True),
        control=check_pull_cost(False),
        broken="a server without model (private shift)",
    ),
    decomfl(
        "A3.seedshift",
        "A.3",
        "A private shift of the seeds leaves the algorithm unchanged and makes it impossible for the server to "
        "reconstruct.",
        "algorithm",
        check=check_secret(37),
        as_printed=check_secret(37, guesses=64),
        caveat="a shift from a space too large to search: a server that can evaluate any loss tries them all and "
        "keeps the best",
        control=check_secret(None),
        broken="no shift",
    ),
    decomfl(
        "A3.privacy",
        "A.3",
        "With the shift no information about a client's data distribution is contained in the transmitted scalars.",
        "algorithm",
        check=same_law((1.0, 2.0)),
        control=check_gram(False),
        broken="a rotation of one client's gradient only",
        error="wrong statement",
        repair="the law of all scalars is the same when all losses are rotated together; for mu -> 0 that of a local "
        "step depends on the clients' gradients through their inner products alone: norms and angles leak, "
        "directions do not",
        repaired=check_gram(True),
        implies="E g^2 = ||grad f_i||^2, and mean products over p are <grad f_i, grad f_j>: the server sees who has "
        "converged and "
        "which clients are alike",
    ),
    decomfl(
        "alg3-4",
        "A.4, Alg. 3, 4 (P > 1)",
        "As alg1-2 with (eta/P) sum_p g_p z_p.",
        "algorithm",
        check=worst_of(check_revert(MANY, True), check_history(MANY), check_sum(True)),
        control=check_revert(MANY, False),
        broken="no revert",
    ),
    decomfl(
        "eq11-12",
        "A.5 (11)-(12)",
        "Proj_z(grad f_i) = (<grad f_i, z>/<z, z>) z, about (1/d)<z, grad f_i> z.",
        "identity",
        check=check_projection(20_000, 0.1),
        as_printed=check_projection(1, 0.1),
        caveat="d large: the relative error is | ||z||^2/d - 1 |, rms sqrt(2/d); none on the sphere",
        control=check_projection(199, 0.1),
        broken="d = 199 (200 is enough)",
    ),
    decomfl(
        "alg5",
        "A.5, Alg. 5",
        "For k = 1..K: compute grad f_i(x_{i,r}^K), g = <grad f_i(x_{i,r}^K), z_r^k>, x^{k+1} = x^k - eta g z_r^k.",
        "algorithm",
        check=check_alg5(True),
        control=check_alg5(False, 1.001),
        broken="1.001 times the scalars",
        error="index",
        repair="grad f_i(x_{i,r}^k)",
        repaired=check_alg5(False),
        implies="x^K does not exist before step K",
    ),
    decomfl(
        "table6.bytes",
        "B.2, Table 6",
        "OPT-125M with LoRA (rank 8, all Q and V): FedZO (P = 5) 0.66, 0.22, 0.22, 0.44, 0.11, 0.11 TB; DeComFL "
        "0.18, 0.06, 0.06, "
        "0.12, 0.03, 0.03 MB (P = 5), twice that (P = 10).",
        "cost",
        assumes=(Printed("the rounds of Table 5", "Table 5"),),
        reading="FedZO sends what it trains: 294,912 LoRA parameters",
        check=worst_of(check_rule("6"), check_fedzo(("LoRA",), SIZES)),
        control=check_fedzo(("LoRA",), {"LoRA": 112e6}),
        broken="112M parameters in place of 110M",
        error="wrong statement",
        repair="DeComFL's cells are 12 bytes x rounds x P; FedZO's are those of 110M parameters, neither LoRA's nor "
        "the model's, and would be 0.0018, 0.0006, 0.0006, 0.0012, 0.0003, 0.0003 TB for what is trained",
        repaired=worst_of(check_rule("6"), check_fedzo(("LoRA",), {"LoRA": 110e6})),
        implies="against a FedZO that sends what it trains DeComFL's advantage under LoRA is overstated about 370 "
        "times; it remains about 10^4",
    ),
    decomfl(
        "C1",
        "C.1",
        "x_{r+1} = x_r - eta sum_k g_r^k z_r^k = (1/m) sum_{i in C_r} (x_{i,r} - eta sum_k g_{i,r}^k z_r^k): "
        "federated averaging.",
        "identity",
        check=worst_of(check_server(1, 3), check_average(False)),
        control=check_average(True),
        broken="directions of each client's own",
    ),
]
