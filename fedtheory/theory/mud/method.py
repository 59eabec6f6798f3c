"""FedMUD, Sections 1 to 3.1: what it decomposes, its rounds and resets, what is sent."""

import math
from dataclasses import replace
from typing import Any

import torch

from fedtheory.algorithms.fedhm import FedHM
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.maps.decomposition import Full, LowRank
from fedtheory.running.simulate import run
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.instances import Smooth, drain
from fedtheory.theory.mud.aggregation import PRODUCTS, bias
from fedtheory.theory.mud.decomposition import bkd_rank, fewer, formula, low_rank
from fedtheory.theory.mud.round import (
    DOUBLE,
    KEY,
    NET,
    Unchecked,
    both,
    identical,
    linear_problem,
    mud,
    normal,
    outcome,
    rounds,
)
from fedtheory.theory.rounding import digits, level


def download(sampled: int = 2, away: bool = False) -> Check:
    """Bytes sent down in 7 rounds to 3 clients, some `sampled` of which take part in a round, catching up on return
    against all at once. away: whether a client that was away has another model, as printed.
    """

    def check(effort: str) -> Outcome:
        problem = linear_problem()
        algorithm = FedMUD(0.05, 2, LowRank(0.5, 1.0, layers="all"), 1, absent="at once")
        two = [
            run(how, problem, 7, sampled=sampled, metrics=("loss",))
            for how in (algorithm, replace(algorithm, absent="later"))
        ]
        same_model = torch.equal(two[0].x, two[1].x)
        at_once, on_return = (history["down_bytes"][-1] for history in two)
        said = f"same models: {same_model}; {sampled} of {problem.n} clients per round, 7 rounds, bytes down: "
        said += f"{at_once} if all download at once, {on_return} if those who were away catch up when they come back"
        data = {"bytes, at once": at_once, "bytes, on return": on_return, "models": f"the same: {same_model}"}
        holds = not same_model if away else same_model and on_return < at_once
        return outcome(holds, "run", on_return / at_once, said, data)

    return check


def not_equal(apart: bool) -> Check:
    """Fig. 1(c): whether the two averages differ. apart: the clients' U differ in their first column, V in the second,
    so that (U_1 - U_2)(V_1 - V_2)^T = 0.
    """

    def check(effort: str) -> Outcome:
        of: Any = PRODUCTS[0]
        U, V = normal(2, of.sizes[0], name="1cU"), normal(2, of.sizes[1], name="1cV")
        if apart:
            for X, column in ((U, 1), (V, 0)):
                one, other = X.view(2, -1, of.r)[:, :, column : column + 1]
                other.copy_(one)
        gap = float((of.product(U, V).mean(0) - of.product(U.mean(0), V.mean(0))).norm())
        return outcome(gap > 1e-9, "exact", None, f"two clients: the averages differ by {gap:.3g}")

    return check


def fedmud_rounds(wrong: bool) -> Check:
    """(1) to (4) through FedMUD: f, the average of FedAvg's updates, the clients' first step from one U and V = 0 on
    the frozen W^t, the averages of the factors. wrong: V is random at the start.
    """

    def check(effort: str) -> Outcome:
        problem, how, pairs = linear_problem(), LowRank(0.5, 0.5, layers="all", random=wrong), []
        x = normal(problem.d, name="eq1")
        losses = problem.losses(x.expand(problem.n, -1), problem.full(problem.clients))
        pairs.append((torch.tensor(problem.loss(x), dtype=DOUBLE), losses.mean()))  # 1
        for before, up, after in rounds(Full(), 1, 2):  # FedAvg: 2
            pairs.append((after.x, before.x + up.u.mean(0)))
        for before, up, after in rounds(how, None, 3):
            pairs += [(after.u, up.u.mean(0)), (after.frozen.base, before.frozen.base)]  # 4
            pairs.append((after.x, after.frozen.base + after.frozen.D.value.update(after.u)))
        algorithm = Unchecked(0.3, 2, how)
        server = algorithm.init(problem, x, KEY).server
        first, *_ = drain(algorithm.client(problem, problem.clients, None, algorithm.broadcast(server, KEY), KEY))[0]
        D = server.frozen.D.value
        W, g = D.layout.columns(x), D.layout.columns(problem.gradients(x))
        pairs.append((x + D.update(D.start), torch.cat([matrix.flatten() for matrix in W])))  # 3: starts at zero
        for u, start, gradient, part in zip(
            *(v.split([p.size for p in D.parts], -1) for v in (first, D.start)), g, D.parts
        ):
            U, V = start[: part.of.sizes[0]].view(gradient.shape[1], -1), u[:, part.of.sizes[0] :]
            pairs.append((u[:, : part.of.sizes[0]], U.flatten().expand(3, -1)))  # one U for all
            pairs.append((V, (-0.3 * gradient.mT @ U).flatten(-2)))
        return identical(pairs, "f, two rounds of FedAvg, three of FedMUD, the first local step; three clients")

    return check


def eq5(kind: str) -> Check:
    """W^R = W^0 + sum of the updates of all resets. kind: of what is added: "product" Ubar Vbar^T, "literal" Ubar Vbar
    (where V is square), "mean" the average of the clients' products.
    """

    def check(effort: str) -> Outcome:
        pairs = []
        for s in (1, 2):
            total = None
            for before, up, after in rounds(LowRank(1.0, 0.5, layers="all"), s, 4):
                D, u = before.frozen.D.value, up.u.mean(0)
                total = before.x.clone() if total is None else total
                if (before.t + 1) % s == 0:
                    added = {"product": D.update(u), "mean": D.update(up.u).mean(0), "literal": untransposed(u, D)}
                    total = total + added[kind]
                    pairs.append((total, after.x))
        return identical(pairs, "s = 1, 2, four rounds")

    return check


def untransposed(u: torch.Tensor, D: Any) -> torch.Tensor:
    """U V without the transpose, where V is square; with it elsewhere."""
    out, at = [], 0
    for part in D.parts:
        U, V = u[at : at + part.size].split(part.of.sizes)
        n, r = part.of.n, part.of.r
        V = V.view(n, r).T.contiguous().flatten() if n == r else V
        out.append(part.of.product(U, V))
        at += part.size
    return torch.cat(out)


def what(model: bool) -> Check:
    """One round on losses that are 0, so that dW = 0: what FedMUD (rank 1) makes of W, or, `model`, FedHM, which
    decomposes all of it. And on the package's quadratics: the frozen W of FedMUD.
    """

    def check(effort: str) -> Outcome:
        flat = Smooth(torch.zeros(3, NET.size, dtype=DOUBLE), torch.zeros(3, NET.size, dtype=DOUBLE), layout=NET)
        W, how, lost = normal(NET.size, name="W"), LowRank(0.5, 0.5, layers="all"), {}
        for name, algorithm in (("FedMUD", FedMUD(0.3, 2, how)), ("FedHM", FedHM(0.3, 2, how))):
            state, *_ = play_round(algorithm, flat, algorithm.init(flat, W, KEY), flat.clients, KEY)
            lost[name] = float((state.server.x - W).norm() / W.norm())
        kept = all(torch.equal(before.frozen.base, before.x) for before, *_ in rounds(how, 1, 3))
        said = f"dW = 0: error in W^t (relative) {lost['FedMUD']:g} for FedMUD, {lost['FedHM']:.3g} for FedHM, which "
        said += f"decomposes W^t + dW; FedMUD's frozen part is W^t bit for bit in 3 rounds: {kept}"
        holds = lost["FedHM"] == 0 if model else lost["FedMUD"] == 0 < lost["FedHM"] and kept
        return outcome(holds, "exact", None, said, {"errors": {name: digits(v) for name, v in lost.items()}})

    return check


def fedlmt(broken: str = "") -> Check:
    """FedMUD with W^0 = 0, s >= R and random factors against SGD on the factors, written out. broken: "V": V = 0 at
    the start; "W": W^0 = 1 is kept.
    """

    def check(effort: str) -> Outcome:
        problem, how = linear_problem(), LowRank(0.5, 0.5, layers="all")
        lr, random = 0.1, replace(how, random=True)
        algorithm = {
            "": FedMUD.of_model(lr, 2, how), "V": FedMUD(lr, 2, how, None), "W": Unchecked(lr, 2, random, None)
        }[broken]  # fmt: skip
        start = torch.ones if broken == "W" else torch.zeros
        state = algorithm.init(problem, start(NET.size, dtype=DOUBLE), Key(7))
        drawn = random.draw(NET, Key(7).fold("D"), DOUBLE)
        pairs = []
        for piece, part, layer in zip(drawn.start.split([p.size for p in drawn.parts]), drawn.parts, NET.layers):
            U, V = piece.split(part.of.sizes)  # pyright: ignore[reportAttributeAccessIssue]
            pairs.append((U.view(layer.cols, -1), V.view(layer.rows, -1)))
        clients = [list(pairs) for _ in problem.clients]
        for t in range(4):
            for own in clients:
                own[:] = pairs
            for _ in range(2):
                for i, own in enumerate(clients):
                    w = torch.cat([(U @ V.T).flatten() for U, V in own])
                    g = NET.columns(problem.gradients(w)[i])
                    own[:] = [(U - lr * G @ V, V - lr * G.T @ U) for (U, V), G in zip(own, g)]
            pairs = [tuple(torch.stack(factor).mean(0) for factor in zip(*layer)) for layer in zip(*clients)]
            state, *_ = play_round(algorithm, problem, state, problem.clients, Key(7).fold("round", t))
        model = torch.cat([(U @ V.T).flatten() for U, V in pairs])
        gap, shown = level(float((state.server.x - model).abs().max()), 1e-12)
        data = {"broken": broken or "nothing", "largest gap": digits(gap)}
        return outcome(gap < 1e-12, "exact", gap, f"4 rounds of 3 clients, 2 local steps: largest gap {shown}", data)

    return check


def claims() -> list[Claim]:
    """Sections 1 to 3.1."""
    return [
        mud(
            "what", "identity", check=what(False), control=what(True),
            broken="no error in W^t where all of W^{t+1} is decomposed",
        ),
        mud(
            "fig1b.count", "cost", check=formula("blocks", lambda m, n, k: k * math.sqrt(m * n), False),
            control=formula("blocks", lambda m, n, k: 2.02 * k * math.sqrt(m * n), False), broken="1% above the repair",
            error="wrong constant", repair="2 k sqrt(mn): k^2 pairs of a b numbers each. (m + n) r and both ranks are "
            "right.",
            repaired=both(
                formula("blocks", lambda m, n, k: 2 * k * math.sqrt(m * n), False),
                formula("low rank", lambda m, n, r: (m + n) * r, False), low_rank(0), bkd_rank("chosen"),
            ),
            implies="Half of BKD's communication; at the same budget the caption's k is twice the true one.",
        ),
        mud(
            "bkd.fewer", "cost",
            check=fewer(True), control=fewer(True, 1.01), broken="1% more parameters", as_printed=fewer(False),
            error="missing assumption",
            implies="At one compression ratio, as in Sec. 5, BKD has the higher rank bound and as many parameters",
            caveat="k <= r (then 2 k sqrt(mn) <= (m + n) r, equal for m = n, k = r)",
        ),
        mud(
            "fig1c", "identity",
            check=both(bias(True), not_equal(False)), control=not_equal(True),
            broken="U_1 and U_2 equal but for one column, V_1 and V_2 equal in it",
        ),
        mud(
            "eq1-4", "definition",
            check=fedmud_rounds(False), control=fedmud_rounds(True), broken="V random at the start",
        ),
        mud(
            "sec2.download", "cost", check=download(), control=download(3), broken="all clients in every round",
            as_printed=download(away=True),
            met="a reading of 'must': one way to do it",
            caveat="'must' and 'in that round' are one way: a client that comes back can be sent what it missed, or "
            "the model where that is smaller, and trains the same. As bytes the downloads of absent clients are most "
            "of the traffic",
        ),
        mud(
            "eq5", "identity",
            check=eq5("product"), control=eq5("mean"), broken="the average of the clients' U_i V_i^T",
            as_printed=eq5("literal"),
            error="misprint", implies="None: (3) and the algorithm have the transpose",
            caveat="read (Vbar)^T, as in (3)",
        ),
        mud(
            "sec3.1.fedlmt", "algorithm",
            check=fedlmt(), control=fedlmt("V"), broken="V = 0 at the start",
        ),
    ]  # fmt: skip
