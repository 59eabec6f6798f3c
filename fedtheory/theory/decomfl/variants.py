"""DeComFL, App. A: more perturbations, momentum, a queue, no snapshot, private seeds, projections."""

import itertools
import math
from dataclasses import replace

import torch

from fedtheory.algorithms.decomfl import Model
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.layout import Layout
from fedtheory.core.loop import play_round
from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.box import check_history, check_revert
from fedtheory.theory.decomfl.round import DOUBLE, ROOT, Enumerated, decomfl, directions, equal, tiny
from fedtheory.theory.decomfl.session import DIM, HEAVY, MANY, PLAIN, N, along, end, problem, session
from fedtheory.theory.rounding import digits


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


# As a projected gradient


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


CLAIMS: list[Claim] = [
    decomfl(
        "iid_z",
        "definition",
        check=check_streams(True),
        control=check_streams(False),
        broken="streams s(p + 17) + p, as in the public code",
    ),
    decomfl(
        "eq7",
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
        "algorithm",
        check=check_history(HEAVY),
        control=check_history(HEAVY, momentum=False),
        broken="the optimizer state not maintained during reconstruction",
    ),
    decomfl(
        "A2.queue",
        "cost",
        check=worst_of(check_queue(True), check_history(MANY)),
        as_printed=check_queue(False),
        met="Algorithm 1, whose server holds t_i",
        caveat="one or the other: a server that does not hold t_i of the absent clients cannot know which records are "
        "outdated",
        control=check_queue(True, 1),
        broken="one record dropped too early",
    ),
    decomfl(
        "eq10",
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
        "A3.seedshift",
        "algorithm",
        check=check_secret(37),
        as_printed=check_secret(37, guesses=64),
        met="a reading of 'impossible': by a search too long",
        caveat="a shift from a space too large to search: a server that can evaluate any loss tries them all and "
        "keeps the best",
        control=check_secret(None),
        broken="no shift",
    ),
    decomfl(
        "A3.privacy",
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
        "algorithm",
        check=check_history(MANY, literal=True),
        control=check_revert(MANY, False),
        broken="no revert",
        error="index",
        repair="as alg1-2; and line 2 of Algorithm 3 and the head of Algorithm 4 have g_{r,p}^k and s_{r',p}^k",
        repaired=worst_of(check_revert(MANY, True), check_history(MANY), check_sum(True)),
        implies="as decomfl.alg1-2",
    ),
    decomfl(
        "eq11-12",
        "identity",
        check=check_projection(20_000, 0.1),
        as_printed=check_projection(1, 0.1),
        met="a reading of 'about'; Sec. 5 has d = 28,938 or more",
        caveat="d large: the relative error is | ||z||^2/d - 1 |, rms sqrt(2/d); none on the sphere",
        control=check_projection(199, 0.1),
        broken="d = 199 (200 is enough)",
    ),
    decomfl(
        "alg5",
        "algorithm",
        check=check_alg5(True),
        control=check_alg5(False, 1.001),
        broken="1.001 times the scalars",
        error="index",
        repair="grad f_i(x_{i,r}^k)",
        repaired=check_alg5(False),
        implies="x^K does not exist before step K",
    ),
]
