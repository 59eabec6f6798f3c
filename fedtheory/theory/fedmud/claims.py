"""FedMUD, Sections 1 to 3 and 5: what to decompose, how, how to aggregate, what it costs; and the printed tables.

Section 4 and Appendix D: mud_theory. Experiments are not repeated here: a statement about a printed table is decided
by that table where it contradicts it, and left unchecked where it agrees.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch

from fedtheory.algorithms.ef21p import EF21P
from fedtheory.algorithms.fedhm import FedHM
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.simulate import play_round, run
from fedtheory.figures.fedmud import items as printed
from fedtheory.maps.decomposition import (
    Bilinear,
    Decoupled,
    Frozen,
    Full,
    Kronecker,
    KroneckerBlocks,
    LowRank,
    Outer,
    Part,
    Product,
)
from fedtheory.problems.models.networks import Conv, network
from fedtheory.problems.partitions import dirichlet, labels_per_client
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.fedmud.checks import NET, both, fedlmt, linear_problem, outcome, rounds
from fedtheory.theory.fedmud.round import DOUBLE, KEY, mud, waits
from fedtheory.theory.instances import Smooth, drain
from fedtheory.theory.shown import digits, level

COLUMNS = [f"{data} {partition}" for data in printed.SETS for partition in ("N1", "N2")]  # of Table 1
RUNS = (
    "Needs 100 to 200 rounds of 100 clients on four data sets with tuned rates, five seeds each; no such runs are "
    "committed. "
)


def normal(*shape: int, name: str) -> torch.Tensor:
    return torch.randn(*shape, generator=KEY.fold(name).generator(), dtype=DOUBLE)


def rank(matrix: torch.Tensor) -> int:
    return int(torch.linalg.matrix_rank(matrix))


def close(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], said: str, tol: float = 1e-12) -> Outcome:
    """The outcome of an identity."""
    gap, shown = level(max(float((a - b).abs().max()) for a, b in pairs), tol)
    return outcome(gap < tol, "exact", gap, f"{said}: largest gap {shown} over {len(pairs)} pairs of sides")


# Costs


def counted(kind: str, m: int, n: int, size: int) -> int:
    """Parameters trained, counted: "low rank" of rank `size`, or "blocks" with k = `size`, m = k a^2, n = k b^2."""
    if kind == "low rank":
        return sum(Outer(m, n, size).sizes)
    a, b = math.isqrt(m // size), math.isqrt(n // size)
    if a == b:
        return sum(KroneckerBlocks(m * n, size, size, a).sizes)
    factors = [(torch.empty(a, b), torch.empty(a, b)) for _ in range(size**2)]  # the package's blocks are square
    if any(torch.kron(U, V).shape != (m // size, n // size) for U, V in factors):
        raise AssertionError((m, n, size))
    return sum(U.numel() + V.numel() for U, V in factors)


SHAPES = {
    "low rank": [(4, 4, 1), (12, 3, 2), (192, 96, 2), (7, 5, 5)],
    "blocks": [(4, 4, 1), (8, 18, 2), (12, 48, 3), (4, 9, 1), (16, 16, 4)],
}


def formula(kind: str, claimed: Callable[[int, int, int], float], ratio: bool, only: int | None = None) -> Check:
    """A printed number (or ratio) of parameters against the counted one."""

    def check(effort: str) -> Outcome:
        worst, at, both_ = 0.0, (0, 0, 0), (0.0, 0.0)
        for m, n, size in SHAPES[kind]:
            if only is None or size == only:
                count, claim = counted(kind, m, n, size) / (m * n if ratio else 1), claimed(m, n, size)
                off = max(claim / count, count / claim)
                worst, at, both_ = max((worst, at, both_), (off, (m, n, size), (count, claim)))
        count, claim = map(digits, both_)
        said = (
            f"{len(SHAPES[kind])} shapes counted; off by a factor of at most {worst:.4g}, at {at}: {claim:g} claimed, "
        )
        said += f"{count:g} counted"
        data = {"m, n, r or k": list(at), "counted": count, "claimed": claim}
        return outcome(worst < 1 + 1e-9, "exact", worst, said, data)

    return check


def fewer(limited: bool, factor: float = 1.0) -> Check:
    """2 k sqrt(mn) <= (m + n) r; limited: for k <= r."""

    def check(effort: str) -> Outcome:
        worst, at = 0.0, (0, 0, 0, 0)
        for m, n, k in [(k * a * a, k * b * b, k) for k in range(1, 7) for a in range(1, 7) for b in range(1, 7)]:
            count = factor * counted("blocks", m, n, k)
            for r in range(k if limited else 1, min(m, n) + 1):
                worst, at = max((worst, at), (count / ((m + n) * r), (m, n, k, r)))
        said = f"216 shapes, ranks up to min(m, n): BKD's parameters over those of low rank at most {worst:.4g} at {at}"
        return outcome(worst <= 1 + 1e-12, "exact", worst, said, {"m, n, k, r": list(at), "ratio": digits(worst)})

    return check


def freeze_size(tolerance: float) -> Check:
    """U, V of AAD against V_F at the same ratio, both networks: totals, and layer by layer; and AAD as the sum of a
    module that freezes U~ and one that freezes V~.
    """

    def check(effort: str) -> Outcome:
        off, layers, largest, count, gap = 0.0, 0.0, 0.0, 0, 0.0
        for name in ("fedmud-cnn4", "fedmud-cnn8"):
            layout, total, frozen = network(name, (3, 32, 32), 10).layout, 0, 0
            for index in LowRank(1 / 32).compressed(layout):
                m, n = layout.layers[index].cols, layout.layers[index].rows
                both: Any = LowRank(1 / 32, form="aad").part(m, n)
                U, V = both.of.sizes
                F = LowRank(1 / 32, form="freeze").part(m, n).size
                layers, largest = max(layers, abs((U + V) / F - 1)), max(largest, U / F, V / F)
                total, frozen, count = total + U + V, frozen + F, count + 1
            off = max(off, abs(total / frozen - 1))
        for of in PRODUCTS:
            (u, v), fixed, (U, V) = updates(of)[:2], fixed_factors(of), of.sizes
            other = Decoupled(of, False).update(torch.cat([u, 0 * v]), fixed)  # V~ frozen, U trained
            modules = other + Frozen(of, False).update(v, fixed[:U])
            gap = max(gap, float((Decoupled(of, False).update(torch.cat([u, v]), fixed) - modules).abs().max()))
        said = f"{count} layers of both networks at ratio 1/32: |U| + |V| over |V_F| off by at most {off:.2%} in a "
        said += f"network, {layers:.2g} in a layer (ranks are rounded up); the larger factor holds at most "
        said += f"{largest:.3g} of V_F; AAD is the sum of two frozen modules to {level(gap, 1e-12)[1]}"
        return outcome(off <= tolerance and largest < 1 and gap < 1e-12, "exact", off, said)

    return check


def ef21p(top: bool) -> Check:
    """Share of the global model's coordinates that a round of EF21-P changes, 10 clients; top: with Top-K, K = d/32."""

    def check(effort: str) -> Outcome:
        d, n, share = 640, 10, 0.0
        problem = Smooth(torch.ones(n, d, dtype=DOUBLE), normal(n, d, name="ef21p"))
        algorithm = EF21P(0.1, 2, 1 / 32, None if top else 1.0)
        state = algorithm.init(problem, torch.zeros(d, dtype=DOUBLE), KEY)
        for t in range(5):
            before = state.server.w
            state, *_ = play_round(algorithm, problem, state, problem.clients, KEY.fold("round", t))
            share = max(share, float((state.server.w != before).double().mean()))
        said = f"ratio 1/32, {n} clients, 5 rounds: at most {share:.3g} of the coordinates of the clients' model change"
        return outcome(0 < share < 0.035, "exact", share, said)

    return check


def download(bound: float, away: bool = False) -> Check:
    """Bytes sent down in 7 rounds to 3 clients, 2 of which take part in a round, catching up on return against all at
    once; bound: at most so many of them. away: whether a client that was away has another model, as printed.
    """

    def check(effort: str) -> Outcome:
        problem = linear_problem()
        algorithm = FedMUD(0.05, 2, LowRank(0.5, 1.0, layers="all"), 1, absent="at once")
        two = [
            run(how, problem, 7, sampled=2, metrics=("loss",))
            for how in (algorithm, replace(algorithm, absent="later"))
        ]
        same_model = torch.equal(two[0].x, two[1].x)
        at_once, on_return = (history["down_bytes"][-1] for history in two)
        said = f"same models: {same_model}; 2 of {problem.n} clients per round, 7 rounds, bytes down: {at_once} if all "
        said += f"download at once, {on_return} if those who were away catch up when they come back"
        data = {"bytes, at once": at_once, "bytes, on return": on_return, "models": f"the same: {same_model}"}
        holds = not same_model if away else same_model and on_return < bound * at_once
        return outcome(holds, "run", on_return / at_once, said, data)

    return check


# Ranks


def low_rank(slack: int) -> Check:
    def check(effort: str) -> Outcome:
        worst = 0.0
        for number, (m, n, r) in enumerate([(5, 4, 2), (3, 7, 3), (6, 6, 1), (4, 4, 4), (2, 9, 2)]):
            U, V = normal(m, r, name=f"U{number}"), normal(n, r, name=f"V{number}")
            U[:, -1] = U[:, 0] if number % 2 else U[:, -1]
            W = Outer(m, n, r).product(U.flatten(), V.flatten()).view(m, n)
            worst = max(worst, rank(W) / (min(rank(U), rank(V), r) - slack + 1e-300))
        said = f"5 shapes, some deficient: rank(U V^T) over the bound at most {worst:g}"
        return outcome(worst <= 1, "exact", worst, said)

    return check


def kron_rank(total: bool) -> Check:
    """rank(U (x) V) = rank U rank V for all ranks; total: claimed to be the sum instead."""

    def check(effort: str) -> Outcome:
        good, count = True, 0
        for ru in range(1, 4):
            for rv in range(1, 4):
                U = normal(3, ru, name=f"a{ru}{rv}") @ normal(ru, 4, name=f"b{ru}{rv}")
                V = normal(3, rv, name=f"c{ru}{rv}") @ normal(rv, 4, name=f"d{ru}{rv}")
                W = torch.kron(U, V)
                good = good and rank(W) == (ru + rv if total else ru * rv) and rank(W) <= min(W.shape)
                count += 1
        return outcome(good, "exact", 1.0, f"{count} pairs of ranks up to 3 of 3 x 4 factors: all agree: {good}")

    return check


def bkd_rank(blocks: str) -> Check:
    """Rank of the recovered matrix: blocks of full rank on the diagonal, zero elsewhere ("chosen"; "short": one of the
    diagonal blocks lacks a rank), or all blocks of full rank and equal ("equal").
    """

    def check(effort: str) -> Outcome:
        lines = []
        for k, a, b in [(1, 2, 2), (2, 2, 2), (2, 2, 3), (3, 1, 2), (2, 3, 2), (3, 2, 2)]:
            U = torch.eye(a, b, dtype=DOUBLE).repeat(k, k, 1, 1)
            if blocks != "equal":
                U = U * torch.eye(k, dtype=DOUBLE)[..., None, None]
            V = torch.eye(a, b, dtype=DOUBLE).repeat(k, k, 1, 1)
            if blocks == "short":
                U[0, 0, 0] = 0
            if a == b:
                W = KroneckerBlocks(k * k * a**4, k, k, a).product(U.flatten(), V.flatten()).view(k * a * a, -1)
            else:  # the package's blocks are square
                rows = [torch.cat([torch.kron(U[p, q], V[p, q]) for q in range(k)], 1) for p in range(k)]
                W = torch.cat(rows)
            lines.append((rank(W), min(k * a * a, k * b * b), (k, a, b)))
        bad = [line for line in lines if line[0] < line[1]]
        said = f"{len(lines)} shapes, {blocks} blocks: rank over min(m, n): "
        said += ", ".join(f"{got}/{full}" for got, full, _ in lines)
        data = {"k, a, b": list(bad[0][2]), "rank": bad[0][0], "min(m, n)": bad[0][1]} if bad else None
        return outcome(not bad, "exact", min(got / full for got, full, _ in lines), said, data)

    return check


def truncated(exact_fit: bool, z_one_up: bool = False) -> Check:
    """Generic rank of BKD with z = ceil((mn/k^2)^(1/4)), its first mn entries as (m, n): all m, n <= 12, k <= 3.

    exact_fit: only where k^2 z^4 = mn and (m, n) is the square itself, so that nothing is cut or reshaped.
    """

    def check(effort: str) -> Outcome:
        bad, count, top = [], 0, 12 if effort == "quick" else 30
        for m in range(1, top + 1):
            for n in range(1, top + 1):
                for k in (1, 2, 3):
                    z = next(z for z in range(1, top) if k * k * z**4 >= m * n) + z_one_up
                    if exact_fit and not m == n == k * z * z:
                        continue
                    of, count = KroneckerBlocks(m * n, k, k, z), count + 1
                    U, V = (normal(2, size, name=name) for size, name in zip(of.sizes, "uv"))
                    found = max(rank(W.view(m, n)) for W in of.product(U, V))
                    bad += [(m, n, k, z, found)] if found < min(m, n) else []
        said = f"{count} shapes with random factors: below full rank at " + (str(bad[:6]) if bad else "none")
        if any((m, n, k) == (2, 2, 1) for m, n, k, *_ in bad):
            said += "; (2, 2), k = 1, z = 2: the first four entries are u_00 v_00, u_00 v_01, u_01 v_00, u_01 v_01"
        data = {"m, n": [2, 2], "k": 1, "z": 2, "W": "[u_00; u_01] [v_00, v_01]", "rank": 1, "others": str(bad[:6])}
        return outcome(not bad, "exact", min((f / min(m, n) for m, n, _, _, f in bad), default=1.0), said, data)

    return check


# Identities of aggregation


def average(weights: Sequence[float], *stacks: torch.Tensor) -> list[torch.Tensor]:
    p = torch.tensor(weights, dtype=DOUBLE)
    return [torch.tensordot(p, stack, dims=1) for stack in stacks]


EVEN, UNEVEN = (1 / 3, 1 / 3, 1 / 3), (0.5, 0.3, 0.2)


def updates(of: Bilinear) -> tuple[torch.Tensor, ...]:
    """U_0, V_0 and three clients' changes."""
    u, v = of.sizes
    return normal(u, name="U0"), normal(v, name="V0"), normal(3, u, name="dU"), normal(3, v, name="dV")


def fixed_factors(of: Bilinear) -> torch.Tensor:
    """U~, V~, as `Decoupled` takes them."""
    return torch.cat([normal(of.sizes[0], name="U~"), normal(of.sizes[1], name="V~")])


LOW, BLOCKS = (Outer(4, 3, 2), Outer(2, 5, 1)), (KroneckerBlocks(30, 2, 2, 2), KroneckerBlocks(16, 1, 1, 2))
PRODUCTS: tuple[Bilinear, ...] = (*LOW, *BLOCKS)


def expansion(direct: bool, weights: Sequence[Sequence[float]] = (EVEN, UNEVEN), last: bool = True) -> Check:
    """(6), or (7) for direct aggregation, with the operator's product for U V^T; last: with the second-order term."""

    def check(effort: str) -> Outcome:
        pairs = []
        for of in PRODUCTS:
            U0, V0, dU, dV = updates(of)
            for p in weights:
                Am, Vm = average(p, dU, dV)
                if direct:
                    left, second = of.product(U0 + Am, V0 + Vm), of.product(Am, Vm)
                else:
                    left, second = average(p, of.product(U0 + dU, V0 + dV), of.product(dU, dV))
                right = of.product(U0, V0) + of.product(U0, Vm) + of.product(Am, V0) + (second if last else 0 * second)
                pairs.append((left, right))
        return close(pairs, "low rank and blocks, even and uneven weights")

    return check


def bias(second: bool) -> Check:
    """W* - W = A(dU dV^T) - A(dU) A(dV)^T, and the two clients of Fig. 1(c): a quarter of (U_1 - U_2)(V_1 - V_2)^T.

    second: with the second of the two terms.
    """

    def check(effort: str) -> Outcome:
        pairs = []
        for of in PRODUCTS:
            U0, V0, dU, dV = updates(of)
            for p in (EVEN, UNEVEN, (0.5, 0.5, 0.0)):
                Am, Vm = average(p, dU, dV)
                star, product = average(p, of.product(U0 + dU, V0 + dV), of.product(dU, dV))
                gap = star - of.product(U0 + Am, V0 + Vm)
                pairs.append((gap, product - of.product(Am, Vm) if second else product))
                if p[2] == 0:
                    pairs.append((gap, of.product(dU[0] - dU[1], dV[0] - dV[1]) / 4))
        return close(pairs, "low rank and blocks")

    return check


PARTS: dict[str, type[Part]] = {"product": Product, "aad": Decoupled, "freeze": Frozen}


class Entrywise(Bilinear):
    """U o V, entry by entry."""

    def __init__(self, size: int) -> None:
        self.sizes = (size, size)

    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return U * V

    def left(self, g: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return g * V

    def right(self, g: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return g * U


class Circular(Bilinear):
    """The circular convolution of two vectors."""

    def __init__(self, size: int) -> None:
        self.sizes = (size, size)

    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(U) * torch.fft.rfft(V), self.sizes[0])

    def left(self, g: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(g) * torch.fft.rfft(V).conj(), self.sizes[0])

    def right(self, g: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return self.left(g, U)


def aad(form: str, products: Sequence[Bilinear] = PRODUCTS) -> Check:
    """Aggregating and recovering commute for the package's map of this form: the average of the clients' updates is the
    update of their average.
    """

    def check(effort: str) -> Outcome:
        pairs = []
        for of in products:
            part: Any = PARTS[form](of, False)  # pyright: ignore[reportCallIssue]
            fixed, (U0, V0, dU, dV) = fixed_factors(of)[: part.fixed], updates(of)
            u = V0 + dV if form == "freeze" else torch.cat([U0 + dU, V0 + dV], -1)
            for p in (EVEN, UNEVEN):
                (star,) = average(p, part.update(u, fixed))
                pairs.append((part.update(*average(p, u), fixed), star))
        return close(pairs, f"{form}, {len(products)} products, even and uneven weights")

    return check


def three_factors(free: int) -> Check:
    """U C V^T of three factors, two products nested: the sum of all terms in which `free` of them are trained and the
    others fixed.
    """

    def check(effort: str) -> Outcome:
        inner, outer, pairs = Outer(4, 2, 2), Outer(4, 3, 2), []
        sizes = (inner.sizes[0], inner.sizes[1], outer.sizes[1])
        trained = [normal(3, size, name=f"t{number}") for number, size in enumerate(sizes)]
        fixed = [normal(size, name=f"f{number}") for number, size in enumerate(sizes)]

        def recover(factors: Sequence[torch.Tensor]) -> torch.Tensor:
            terms = []
            for chosen in combinations(range(3), free):
                U, C, V = (own if k in chosen else fix for k, (own, fix) in enumerate(zip(factors, fixed)))
                terms.append(outer.product(inner.product(U, C), V))
            return torch.stack(terms).sum(0)

        for p in (EVEN, UNEVEN):
            (star,) = average(p, recover(trained))
            pairs.append((recover(average(p, *trained)), star))
        return close(pairs, f"U C V^T with {free} of three factors free at a time")

    return check


def aad_in_fedmud(form: str) -> Check:
    """The server's model against the average of the clients' models, three rounds of FedMUD, with s = 2."""

    def check(effort: str) -> Outcome:
        pairs = []
        for kind in (LowRank(0.5, 0.5, form, layers="all"), Kronecker(0.9, 0.5, form, layers="all")):
            for before, up, after in rounds(kind, 2, 3):
                pairs.append((before.frozen.base + before.frozen.D.value.update(up.u).mean(0), after.x))
        return close(pairs, f"{form}: FedMUD.server's model and the clients' average")

    return check


def starts_at_zero(random: bool) -> Check:
    def check(effort: str) -> Outcome:
        pairs = []
        for how in (LowRank(0.5, 0.5, "aad", random), LowRank(0.5, 0.5, "product", random)):
            D = replace(how, layers="all").draw(Layout((Layer("0", 3, 4),)), KEY.fold("zero"), DOUBLE)
            pairs.append((D.update(D.start), torch.zeros(12, dtype=DOUBLE)))
        return close(pairs, "update before the first step")

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
        algorithm = FedMUD(0.3, 2, how)
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
        return close(pairs, "f, two rounds of FedAvg, three of FedMUD, the first local step; three clients")

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
        return close(pairs, "s = 1, 2, four rounds")

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


def conv(view: str) -> Check:
    """The convolutions of both networks in the package's view: (c_out k, c_in k), the weight read row by row."""

    def check(effort: str) -> Outcome:
        bad, count = [], 0
        for name in ("fedmud-cnn4", "fedmud-cnn8"):
            net = network(name, (3, 32, 32), 10, view)
            kernels = [op for op in net.ops if isinstance(op, Conv)]
            layers = [layer for layer in net.layout.layers if layer.name.endswith("conv")]
            for op, layer in zip(kernels, layers, strict=True):
                W = torch.arange(float(op.c_out * op.c_in * op.k**2)).view(op.c_out, op.c_in, op.k, op.k)
                read = Layout((layer,)).columns(W.flatten())[0]
                count += 1
                wanted = (op.c_out * op.k, op.c_in * op.k)
                if read.shape != wanted or not torch.equal(read, W.reshape(wanted)):
                    bad.append((tuple(W.shape), tuple(read.shape)))
        said = f"{count} convolutions of both networks, view {view!r}: otherwise shaped: {bad or 'none'}"
        return outcome(not bad, "exact", None, said, {"weight, matrix": str(bad)})

    return check


def k1(shifted: bool) -> Check:
    def check(effort: str) -> Outcome:
        U, V = normal(9, name="k1u"), normal(9, name="k1v")
        left = KroneckerBlocks(81, 1, 1, 3).product(U, V).view(9, 9)
        right = torch.kron(U.view(3, 3), V.view(3, 3))
        return close([(left, right.T if shifted else right)], "one block of 3 x 3 factors and torch.kron")

    return check


# Data and printed tables


def heterogeneity(share: float) -> Check:
    """Mean total variation between a client's labels and all labels: Dirichlet(0.3) below `share` of 3 of 10 labels,
    Dirichlet(0.1) of 10 of 100, for three seeds each.
    """

    def check(effort: str) -> Outcome:
        found = []
        for classes, alpha, held in ((10, 0.3, 3), (100, 0.1, 10)):
            y = torch.arange(classes).repeat_interleave(10000 // classes)
            for seed in (1, 2, 3):
                parts = dirichlet(y, 100, alpha, Key(seed), 1), labels_per_client(y, 100, held, Key(seed))
                found.append([distance(y, part, classes) for part in parts])
        said = "total variation to all labels, Non-IID-1 against Non-IID-2, three seeds; 10 classes: "
        said += ", ".join(f"{a:.3f}, {b:.3f}" for a, b in found[:3]) + "; 100 classes: "
        said += ", ".join(f"{a:.3f}, {b:.3f}" for a, b in found[3:]) + " (100 clients, 10,000 balanced labels)"
        return outcome(all(a < share * b for a, b in found), "run", max(a / b for a, b in found), said)

    return check


def distance(y: torch.Tensor, parts: Sequence[torch.Tensor], classes: int) -> float:
    shares = [torch.bincount(y[part], minlength=classes) / len(part) for part in parts]
    return float(torch.stack([(share - 1 / classes).abs().sum() / 2 for share in shares]).mean())


def table1(better: str, worse: Sequence[str], cells: Sequence[int] = range(8), margin: float = 0.0) -> Check:
    """Whether Table 1 as printed has `better` above all of `worse` in these cells."""

    def check(effort: str) -> Outcome:
        against = [
            (COLUMNS[c], name, printed.TABLE1[better][c], printed.TABLE1[name][c])
            for c in cells
            for name in worse
            if printed.TABLE1[better][c] <= printed.TABLE1[name][c] + margin
        ]
        said = f"Table 1 as printed, {len(cells)} columns: {better} is not above "
        said += "; ".join(f"{name} on {cell} ({a} against {b})" for cell, name, a, b in against) or "none"
        data = {f"{cell}, {name}": f"{better} {a}, {name} {b}" for cell, name, a, b in against}
        return outcome(not against, "exact", None, said, data)

    return check


def similar(cells: Sequence[int]) -> Check:
    """Whether FedHM and FedLMT differ by less than FedPara is above the better of them, in these columns of Table 1."""

    def check(effort: str) -> Outcome:
        rows = [[printed.TABLE1[name][c] for name in ("FedHM", "FedLMT", "FedPara")] for c in cells]
        ratios = [abs(a - b) / max(top - max(a, b), 1e-9) for a, b, top in rows]
        said = f"Table 1 as printed: FedHM and FedLMT differ by at most {max(ratios):.2g} of what FedPara is above both"
        return outcome(max(ratios) < 1, "exact", max(ratios), said)

    return check


def freezing() -> list[tuple[str, float, float]]:
    """(cell, +F, +AAD) of Tables 2 and 4 as printed."""
    cells = []
    for number, table, columns in (
        (2, printed.TABLE2, printed.named("N1")),
        (4, printed.TABLE4, printed.named("N2", "IID")),
    ):
        for name in ("FedMUD", "FedMUD+BKD"):
            cells += zip(
                (f"Table {number}, {name}, {column}" for column in columns), table[f"{name}+F"], table[f"{name}+AAD"]
            )
    return cells


def table2(above: int | None = None) -> Check:
    """Whether AAD is above freezing in all pairs of Tables 2 and 4; above: in so many of them at least, and nowhere
    below by more than 0.1.
    """

    def check(effort: str) -> Outcome:
        cells = freezing()
        bad = {cell: f"+F {f}, +AAD {a}" for cell, f, a in cells if a <= f}
        said = f"{len(cells)} pairs of Tables 2 and 4 as printed, AAD above in {len(cells) - len(bad)}; not above: "
        said += "; ".join(f"{cell} ({pair})" for cell, pair in bad.items())
        holds = not bad if above is None else len(cells) - len(bad) >= above and all(a > f - 0.15 for _, f, a in cells)
        return outcome(holds, "exact", None, said, bad)

    return check


def contributions(tables: Sequence[int], least: float = 0.0) -> Check:
    """ "Up to 12%": the largest gain of FedMUD+BKD+AAD over the best of FedHM, FedLMT and FedPara in a column, rounded;
    and each technique adds more than `least` in every column: MUD to FedLMT, BKD and AAD alone and on each other.
    """
    steps = [("FedLMT", "FedMUD"), ("FedMUD", "FedMUD+BKD"), ("FedMUD", "FedMUD+AAD")]
    steps += [("FedMUD+AAD", "FedMUD+BKD+AAD"), ("FedMUD+BKD", "FedMUD+BKD+AAD")]

    def check(effort: str) -> Outcome:
        gains, lost, top = [], {}, 0.0
        for number in tables:
            table = {1: printed.TABLE1, 3: printed.TABLE3}[number]
            columns = {1: COLUMNS, 3: printed.named("IID")}[number]
            for c, column in enumerate(columns):
                best = max(table[name][c] for name in ("FedHM", "FedLMT", "FedPara"))
                top = max(top, table["FedMUD+BKD+AAD"][c] - best)
                for before, after in steps:
                    gains.append(table[after][c] - table[before][c])
                    if gains[-1] <= least + 1e-9:
                        lost[f"Table {number}, {column}"] = f"{before} {table[before][c]}, {after} {table[after][c]}"
        said = (
            f"Table{'s' * (len(tables) > 1)} {' and '.join(map(str, tables))} as printed: up to {top:.1f} points above "
        )
        said += f"the best decomposition baseline of a column; a technique adds {min(gains):.1f} to {max(gains):.1f}; "
        said += f"not more than {least:g}: {lost or 'nowhere'}"
        data = {"largest gain": digits(top)} | lost
        return outcome(round(top) == 12 and not lost, "exact", top / 12, said, data)

    return check


def claims_of_methods() -> list[Claim]:
    """Sections 1 to 3."""
    two = lambda m, n, k: 2 * k / math.sqrt(m * n)
    return [
        mud(
            "what", "Sec. 1; 3.1",
            "With W^{t+1} = W^t + dW^t and W^t known: decomposing W^{t+1} can introduce errors in W^t and dW^t, "
            "decomposing only dW^t introduces none in W^t.",
            "identity", check=what(False), control=what(True),
            broken="no error in W^t where all of W^{t+1} is decomposed",
        ),
        mud(
            "fig1b.count", "Fig. 1(b), caption",
            "Low rank: rank(W) <= r << min{m, n} with (m + n) r parameters. BKD: rank(W) <= min{m, n} with k sqrt(mn) "
            "parameters.",
            "cost", check=formula("blocks", lambda m, n, k: k * math.sqrt(m * n), False),
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
            "bkd.fewer", "Sec. 1", "BKD has a higher rank bound with fewer parameters; k is adjusted like r.", "cost",
            check=fewer(True), control=fewer(True, 1.01), broken="1% more parameters", as_printed=fewer(False),
            caveat="k <= r (then 2 k sqrt(mn) <= (m + n) r, equal for m = n, k = r)",
        ),
        mud(
            "fig1c", "Fig. 1(c), caption; Sec. 1",
            "(U_1 V_1^T + U_2 V_2^T)/2 is not (U_1 V_1^T + U_1 V_2^T + U_2 V_1^T + U_2 V_2^T)/4 = Ubar Vbar^T.",
            "identity",
            check=both(bias(True), not_equal(False)), control=not_equal(True), broken="U_1 = U_2",
        ),
        mud(
            "eq1-4", "Sec. 2 (1)-(2); 3.1 (3)-(4)",
            "f = (1/N) sum f_i; w^{t+1} = w^t + (1/N) sum dw_i; W_i = W^t + U_i V_i^T, W^t frozen, U random from one "
            "seed, V = 0; Ubar, Vbar are averages.", "definition",
            check=fedmud_rounds(False), control=fedmud_rounds(True), broken="V random at the start",
        ),
        mud(
            "sec2.download", "Sec. 2",
            "A client that does not take part must still download the update; this does not affect the training "
            "efficiency.",
            "cost", check=download(1.0), control=download(0.7), broken="at most 70% of the bytes on return",
            as_printed=download(1.0, away=True),
            caveat="'must' and 'in that round' are one way: a client that comes back can be sent what it missed, or "
            "the model where that is smaller, and trains the same. As bytes the downloads of absent clients are most "
            "of the traffic",
        ),
        mud(
            "eq5", "Sec. 3.1 (5)", "W^R = W^0 + sum_{tau=1}^n Ubar^{tau s} Vbar^{tau s}; more updates for smaller s.",
            "identity",
            check=eq5("product"), control=eq5("mean"), broken="the average of the clients' U_i V_i^T",
            as_printed=eq5("literal"),
            caveat="read (Vbar)^T, as in (3)",
        ),
        mud(
            "sec3.1.fedlmt", "Sec. 3.1", "W^0 = 0, s >= R, U and V random: FedMUD is FedLMT.", "algorithm",
            check=fedlmt(), control=fedlmt("V"), broken="V = 0 at the start",
        ),
        mud(
            "ratio.lowrank", "Sec. 3.2", "Low rank: the compression ratio is 2 (m + n) r/(mn).", "cost",
            check=formula("low rank", lambda m, n, r: 2 * (m + n) * r / (m * n), True),
            control=formula("low rank", lambda m, n, r: 1.01 * (m + n) * r / (m * n), True),
            broken="1% above the repair",
            error="wrong constant", repair="(m + n) r/(mn), as Fig. 1(b) counts.",
            repaired=formula("low rank", lambda m, n, r: (m + n) * r / (m * n), True),
            implies="The ratios of low rank and BKD are compared in one paragraph; the 2 is right for pairs of equal "
            "factors only. At the same printed ratio low rank would get half of BKD's parameters.",
        ),
        mud(
            "rank.lowrank", "Sec. 3.2", "rank(dW) <= min{rank(U), rank(V)} <= r.", "inequality",
            check=low_rank(0), control=low_rank(1), broken="r - 1",
        ),
        mud(
            "ratio.kron", "Sec. 3.2", "dW = U (x) V, sqrt m x sqrt n factors: the ratio is 2/sqrt(mn).", "cost",
            check=formula("blocks", two, True, 1),
            control=formula("blocks", lambda m, n, k: 1.98 / math.sqrt(m * n), True, 1),
            broken="1.98/sqrt(mn)",
        ),
        mud(
            "rank.kron", "Sec. 3.2; App. B", "rank(U (x) V) = rank(U) rank(V) <= min{m, n}.", "identity",
            check=kron_rank(False), control=kron_rank(True), broken="the sum of the ranks",
        ),
        mud(
            "ratio.bkd", "Sec. 3.2", "m = k a^2, n = k b^2, k^2 pairs: 2 k^2 a b/(mn) = 2k/sqrt(mn).", "cost",
            check=formula("blocks", two, True), 
            control=formula("blocks", lambda m, n, k: 1.98 * k / math.sqrt(m * n), True), broken="1.98 k/sqrt(mn)",
        ),
        mud(
            "k1", "Sec. 3.2", "k = 1: BKD is the Kronecker decomposition.", "identity",
            check=k1(False), control=k1(True), broken="transposed",
        ),
        mud(
            "appB.bkd_fullrank", "Sec. 3.2; App. B",
            "BKD can attain full rank: it is a concatenation of blocks each of which can; rank([A|B]) <= rank(A) + "
            "rank(B).",
            "inequality", check=bkd_rank("chosen"), control=bkd_rank("short"),
            broken="a diagonal block of one rank less",
            as_printed=bkd_rank("equal"),
            caveat="blocks chosen together (full rank on the diagonal, zero elsewhere will do). The argument does not "
            "give it: an upper bound on the rank of a concatenation shows nothing attained, and blocks of full rank "
            "can be equal",
        ),
        mud(
            "conv", "Sec. 3.2", "(c_out, c_in, k, k) is reshaped to (c_out k, c_in k).", "definition",
            check=conv("rows"), control=conv("filter"), broken="(c_out, c_in k^2), the usual reshape",
        ),
        mud(
            "bkd.truncated_rank", "Sec. 3.2",
            "a = b = z = ceil((mn/k^2)^{1/4}); where k^2 z^4 > mn the first mn entries are reshaped to (m, n); the "
            "rank bound is full rank.",
            "inequality", check=truncated(True), as_printed=truncated(False), control=truncated(False, True),
            broken="z + 1 in place of z",
            caveat="m = n = k z^2, so that nothing is cut or reshaped: the sentence about the rank stands before those "
            "about cutting",
            implies="Cutting and reshaping can cost rank for every U, V: a 2 x 2 layer with k = 1 is an outer "
            "product. Among shapes up to 12 x 12 (30 x 30 at full effort) only (2, 2) and (6, 3) with k = 1 lose rank: "
            "a curiosity.",
        ),
        mud(
            "eq6", "Sec. 3.3 (6)",
            "W* = A[U_i V_i^T] = U_0 V_0^T + U_0 A(dV)^T + A(dU) V_0^T + A(dU dV^T), A a (weighted) average.",
            "identity",
            check=expansion(False), control=expansion(False, ((0.5, 0.5, 0.5),)), broken="weights that sum to 3/2",
        ),
        mud(
            "eq7", "Sec. 3.3 (7)", "W = Ubar Vbar^T = U_0 V_0^T + U_0 A(dV)^T + A(dU) V_0^T + A(dU) A(dV)^T.",
            "identity",
            check=expansion(True), control=expansion(True, last=False), broken="without the last term",
        ),
        mud(
            "bias", "Sec. 3.3", "W and W* differ only in the last term, of second order in dU and dV.", "identity",
            check=bias(True), control=bias(False), broken="A(dU dV^T) alone, without - A(dU) A(dV)^T",
            implies="The error that AAD removes is the covariance A(dU dV^T) - A(dU) A(dV)^T; for two clients (dU_1 - "
            "dU_2)(dV_1 - dV_2)^T/4.",
        ),
        mud(
            "eq8-9", "Sec. 3.3 (8)-(9); Sec. 1",
            "AAD: W = U V~^T + U~ V^T; recovering and aggregating commute; U = V = 0 at the start. (Sec. 1: Ubar V~ + "
            "U~ Vbar.)",
            "identity", check=both(aad("aad"), aad_in_fedmud("aad"), starts_at_zero(False)),
            control=aad("product"), broken="U V^T",
        ),
        mud(
            "aad.any_product", "Sec. 1; 3.3", "AAD applies to any product of trainable parameters, Kronecker included.",
            "identity", check=both(
                aad("aad", (*PRODUCTS, Entrywise(6), Circular(6))), aad_in_fedmud("aad"), three_factors(1)),
            control=three_factors(2), broken="a product of three with two factors free at a time",
            reading="a product is linear in each factor, and of more than two factors one is free in each term",
        ),
    ]  # fmt: skip


def not_equal(same_U: bool) -> Check:
    """Fig. 1(c): whether the two averages differ."""

    def check(effort: str) -> Outcome:
        of = PRODUCTS[0]
        U, V = normal(2, of.sizes[0], name="1cU"), normal(2, of.sizes[1], name="1cV")
        U = U[:1].expand(2, -1) if same_U else U
        gap = float((of.product(U, V).mean(0) - of.product(U.mean(0), V.mean(0))).norm())
        return outcome(gap > 1e-9, "exact", None, f"two clients: the averages differ by {gap:.3g}")

    return check


def experiments() -> list[Claim]:
    """Section 5, Appendix A."""
    baselines = ("FedHM", "FedLMT", "FedPara")
    return [
        mud(
            "text.12pct", "Sec. 1, contributions",
            "Up to 12% better accuracy than relevant baselines; each of the three techniques contributes positively.",
            "empirical",
            check=contributions((1,)), control=contributions((1,), 0.35), broken="by more than 0.35 points each",
            as_printed=contributions((1, 3)),
            caveat="in Table 1 as printed, in points, against the best of FedHM, FedLMT and FedPara (11.9, over "
            "FedPara on CIFAR-100). In Table 3 as printed the largest gain is another one, and BKD lowers the "
            "accuracy in one cell (CIFAR-10 IID: FedMUD 79.2, +BKD 79.0, within its deviations). Printed numbers; not "
            "run here",
        ),
        mud(
            "text.noniid2", "Sec. 5.1", "Non-IID-2 is generally more heterogeneous than Non-IID-1.", "empirical",
            check=heterogeneity(1.0), control=heterogeneity(0.86), broken="Non-IID-1 below 86% of Non-IID-2",
        ),
        mud(
            "text.fedhm_fedlmt", "Sec. 5.2, Table 1",
            "FedHM and FedLMT perform similarly; FedPara is more accurate than both, by a higher rank.", "empirical",
            check=both(table1("FedPara", ("FedHM", "FedLMT"), range(2, 8)), similar(range(2, 8))),
            control=table1("FedPara", ("FedHM", "FedLMT"), range(2, 8), 0.85), broken="by more than 0.85 points",
            reading="similar: they differ by less than FedPara is above the better of them",
            as_printed=table1("FedPara", ("FedHM", "FedLMT")),
            caveat="SVHN and CIFAR in the printed Table 1; on FMNIST FedPara is not above them, and FedHM is 2.8 "
            "points above FedLMT on SVHN. Printed numbers; why is not shown",
        ),
        mud(
            "text.consistent_superiority", "Sec. 5.2, Table 1",
            "Compared with FedHM, FedLMT and FedPara, FedMUD consistently has superior accuracy.", "empirical",
            check=table1("FedMUD", baselines),
            control=table1("FedMUD+BKD+AAD", baselines, margin=1.75), broken="the repair, by more than 1.75 points",
            error="wrong statement", repair="FedMUD is above FedHM and FedLMT in all eight columns, above FedPara in "
            "four; FedMUD+BKD+AAD is above all three in all eight.",
            repaired=both(table1("FedMUD", ("FedHM", "FedLMT")), table1("FedMUD+BKD+AAD", baselines)),
            implies="By the paper's own Table 1 plain FedMUD loses to FedPara on SVHN and CIFAR-10 under both "
            "partitions, by 0.8 to 1.7 points; the advantage there is BKD's and AAD's.",
        ),
        mud(
            "text.ef21p", "Sec. 5.2", "EF21-P updates only 3% of the parameters per round.", "cost",
            check=ef21p(True), control=ef21p(False), broken="Rand-K of ten clients without Top-K",
        ),
        waits(
            "text.fedbat", "Sec. 5.2, Table 1",
            "Among the baselines FedBAT performs best; the proposed method exceeds it by a substantial margin.",
            RUNS + "FedBAT is not in the published code. The printed Table 1 agrees: 0.6 to 3.8 points in all columns.",
        ),
        mud(
            "freeze", "Sec. 5.3", "Freezing one sub-matrix (+F) avoids the aggregation error as AAD does.", "identity",
            check=both(aad("freeze"), aad_in_fedmud("freeze")), control=aad("product"), broken="nothing frozen",
        ),
        mud(
            "text.freeze_size", "Sec. 5.3",
            "At the same cost U_AAD and V_AAD are much smaller than V_F, their sum about equal; AAD is the sum of two "
            "freezing modules.", "cost", check=freeze_size(0.01), control=freeze_size(0.0025), broken="equal to 0.25%",
            implies="Ranks are rounded up, which is most of the difference; the larger factor holds about two thirds "
            "of V_F.",
        ),
        mud(
            "text.aad_beats_freeze", "Sec. 5.3, Table 2; App. A, Table 4",
            "Table 2 demonstrates that AAD consistently outperforms freezing U.", "empirical",
            check=table2(), control=table2(22), broken="the repair, in 22 of 24", error="wrong statement",
            repair="In Tables 2 and 4 as printed AAD is above freezing in 21 of 24 pairs, equal in two (FMNIST) and "
            "below by 0.1 in one (FMNIST Non-IID-2, 87.1 against 87.0). In Table 2 alone: above in seven of eight.",
            repaired=table2(21),
            implies="On FMNIST decoupling without BKD gains nothing over freezing; on SVHN and CIFAR it does in every "
            "cell.",
        ),
        waits(
            "fig3", "Sec. 5.4, Fig. 3",
            "Accuracy generally decreases with s; sometimes slightly better at s = 2 or 4; s = 1 should be used.",
            RUNS + "The figure prints no numbers. That a larger s may converge faster: mud.remark2.",
        ),
        mud(
            "text.s_R_equals_fedlmt", "Sec. 5.4", "With s = R FedMUD is FedLMT, with comparable performance.",
            "algorithm",
            check=fedlmt(), control=fedlmt("W"), broken="V random, but W^0 kept", as_printed=fedlmt("V"),
            caveat="W^0 = 0 and V random too, as Sec. 3.1 says; s = R alone keeps W^0 and starts at V = 0. "
            "Performance not run",
        ),
        waits(
            "fig3.single", "Sec. 5.4, Fig. 3", "AAD and BKD each improve the performance, AAD more.",
            RUNS + "The figure prints no numbers. In the printed Table 1 both gain in all columns, AAD more in six of "
            "eight (not on SVHN).",
        ),
        waits(
            "fig4", "Sec. 5.5, Fig. 4",
            "Unsuitable a of U(-a, a) can lower the accuracy; BKD is less sensitive and needs larger a.",
            RUNS + "The figure prints no numbers.",
        ),
        waits(
            "fig5", "Sec. 5.6, Fig. 5",
            "Accuracy improves as compression weakens; at 8-fold FedMUD+BKD+AAD is comparable to FedAvg.",
            RUNS + "The figure prints no numbers.",
        ),
        waits(
            "table5", "App. A, Table 5",
            "ResNet18: superior performance at 32x compression, accuracy closest to FedAvg.",
            "ResNet18 on CIFAR-10 and TinyImageNet with tuned rates; compressed layers, stem and rounds are not "
            "printed. The printed table agrees.",
        ),
    ]  # fmt: skip


CLAIMS: list[Claim] = [*claims_of_methods(), *experiments()]
