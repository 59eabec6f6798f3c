"""DeComFL, Sec. 3 and C.1: from FedZO to Algorithms 1 and 2, executed as printed and as meant."""

from dataclasses import replace

import torch

from fedtheory.algorithms.decomfl import DeComFL, Model
from fedtheory.algorithms.fedzo import FedZO
from fedtheory.core.loop import play_round
from fedtheory.maps.directions import Direction
from fedtheory.running.simulate import run
from fedtheory.theory.claim import Check, Claim, Outcome, Printed, worst_of
from fedtheory.theory.decomfl.round import DOUBLE, ROOT, Enumerated, decomfl, equal, tiny
from fedtheory.theory.decomfl.session import DIM, PLAIN, N, along, drain_all, end, problem, session
from fedtheory.theory.instances import Smooth
from fedtheory.theory.rounding import digits


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


def check_pull(own_set: bool, scale: float = 1.0) -> Check:
    """(5) from round r' = 0 to r = 3: scalars of round j, averaged over C_j or, as printed, over C_r. scale: of eta."""

    def check(effort: str) -> Outcome:
        lag = 3
        records = session(PLAIN, lag + 1, 2)
        x = records[0].x
        for q in records[:lag]:
            g = q.mean if own_set else q.g[records[lag].clients].mean(0)
            x = x - scale * PLAIN.lr * along(g, q.z)
        said = f"{lag} missed rounds rebuilt with {scale:g} eta, averages over {'C_j' if own_set else 'C_r'}"
        sets = [q.clients for q in records]
        return equal(x, records[lag].x, said, {"C_j": sets[:lag], "C_r": sets[lag], "N": N, "m": 2})

    return check


def check_history(algorithm: DeComFL, rate: float | None = None, momentum: bool = True, literal: bool = False) -> Check:
    """All clients rebuild from what line 7 sends; `rate`: another eta. `literal`: no missed round but the first begins
    where the one before it ended, since nothing makes x_{i,r'}^{K+1} the next x_{i,r'+1}^1.
    """

    def check(effort: str) -> Outcome:
        of, records = problem(), session(algorithm, 8, 2)
        reader = algorithm if rate is None else replace(algorithm, lr=rate)
        start = torch.zeros(DIM, dtype=DOUBLE) if algorithm.momentum else None
        local = [Model(records[0].x.clone(), None if start is None else start.clone()) for _ in range(N)]
        t, gap, longest = [0] * N, 0.0, 0
        for r, q in enumerate(records):
            for i in q.clients:
                at = local[i]
                for missed in records[t[i] : r]:
                    local[i] = at.map(torch.clone) if literal else local[i]
                    reader.rebuild(of.layout, local[i], missed.step)
                    if not momentum:
                        local[i] = Model(local[i].x, torch.zeros(DIM, dtype=DOUBLE))
                longest = max(longest, r - t[i])
                gap = max(gap, float((local[i].x - q.x).abs().max()))
                t[i] = r
        said = f"eight rounds, m = 2 of {N}, lags up to {longest}: largest gap to x_r {gap:.2g}"
        return Outcome(gap == 0, "exact", None, said, None if gap == 0 else {"gap": digits(gap)})

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


CLAIMS: list[Claim] = [
    decomfl(
        "eq2",
        "definition",
        check=check_fedzo_round(True),
        control=check_fedzo_round(False),
        broken="one z for all clients, as in DeComFL",
    ),
    decomfl(
        "eq3",
        "inequality",
        check=check_eq3(0.5),
        control=check_eq3(0.499),
        broken="an error of at most 0.499 mu L ||z||^2 (1/2 is attained)",
    ),
    decomfl(
        "eq4a",
        "definition",
        check=check_local(0),
        control=check_local(1),
        broken="the z of another step",
    ),
    decomfl(
        "eq4b",
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
        "identity",
        check=check_average(False),
        control=check_average(True),
        broken="directions of each client's own",
    ),
    decomfl(
        "eq5",
        "identity",
        assumes=(Printed("x_{i,r'}^K = x_{r'}", "Sec. 3.3"),),
        check=check_pull(False),
        control=check_pull(True, 1.001),
        broken="the right sets, and eta 0.1% longer",
        error="index",
        repair="the average of round j is over C_j, the clients sampled in it",
        repaired=check_pull(True),
        implies="clients of C_r have sent nothing in round j; the record cannot be formed as printed",
    ),
    decomfl(
        "history_contents",
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
        "algorithm",
        check=check_history(PLAIN, literal=True),
        control=check_revert(PLAIN, False),
        broken="no revert",
        error="index",
        repair="the local model is x_{i,t_i}^1 (the comment in Algorithm 2 has x_{i,t_i}^0, lines 4 and 6 begin with "
        "k = 1), and a missed round begins where the one before it ended, x_{i,r'+1}^1 = x_{i,r'}^{K+1}",
        repaired=worst_of(check_revert(PLAIN, True), check_history(PLAIN)),
        implies="read literally a client rebuilds the last of the rounds that it missed, and loses the others",
    ),
    decomfl(
        "C1",
        "identity",
        check=worst_of(check_server(1, 3), check_average(False)),
        control=check_average(True),
        broken="directions of each client's own",
    ),
]
