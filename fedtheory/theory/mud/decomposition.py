"""FedMUD, Section 3.2 and Appendix B: parameters and ranks of low-rank and block-wise Kronecker layers."""

import math
from collections.abc import Callable
from typing import Any

import torch

from fedtheory.core.layout import Layout
from fedtheory.maps.decomposition import KroneckerBlocks, Outer
from fedtheory.problems.models.networks import Conv, network
from fedtheory.theory.claim import Check, Claim, Outcome, each_needed
from fedtheory.theory.mud.round import DOUBLE, identical, mud, normal, outcome
from fedtheory.theory.rounding import digits

# Parameters


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


# Ranks


def rank(matrix: torch.Tensor) -> int:
    return int(torch.linalg.matrix_rank(matrix))


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


def kron_rank(less: int = 0, slack: int = 0) -> Check:
    """rank(U (x) V) = rank U rank V - less and at most min(m, n) - slack, for all ranks of 3 x 4 factors."""

    def check(effort: str) -> Outcome:
        off, worst, count = 0, 0.0, 0
        for ru in range(1, 4):
            for rv in range(1, 4):
                U = normal(3, ru, name=f"a{ru}{rv}") @ normal(ru, 4, name=f"b{ru}{rv}")
                V = normal(3, rv, name=f"c{ru}{rv}") @ normal(rv, 4, name=f"d{ru}{rv}")
                W = torch.kron(U, V)
                off = max(off, abs(rank(W) - (ru * rv - less)))
                worst, count = max(worst, rank(W) / (min(W.shape) - slack)), count + 1
        said = f"{count} pairs of ranks up to 3 of 3 x 4 factors: off by {off} from the product of the ranks"
        said += f"{f' less {less}' if less else ''}; over min(m, n){f' - {slack}' if slack else ''} at most {worst:g}"
        return outcome(off == 0 and worst <= 1, "exact", worst, said)

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


def truncated(fit: str, slack: int = 0) -> Check:
    """Generic rank of BKD with z = ceil((mn/k^2)^(1/4)), its first mn entries as (m, n): all m, n <= 12, k <= 3.

    fit: "" all shapes; "square" those with m = n; "exact" those with m = n = k z^2, of which nothing is cut or
    reshaped. slack: what the bound on the rank is below min(m, n).
    """

    def check(effort: str) -> Outcome:
        bad, count, top = [], 0, 12 if effort == "quick" else 30
        for m in range(1, top + 1):
            for n in range(1, top + 1):
                for k in (1, 2, 3):
                    z = next(z for z in range(1, top) if k * k * z**4 >= m * n)
                    if (fit and m != n) or (fit == "exact" and n != k * z * z):
                        continue
                    of, count = KroneckerBlocks(m * n, k, k, z), count + 1
                    U, V = (normal(2, size, name=name) for size, name in zip(of.sizes, "uv"))
                    found = max(rank(W.view(m, n)) for W in of.product(U, V))
                    bad += [(m, n, k, z, found)] if found != min(m, n) - slack else []
        wrong = f"not min(m, n) - {slack}" if slack else "below full rank"
        said = f"{count} shapes with random factors: {wrong} at " + (str(bad[:6]) if bad else "none")
        m, n, k, z, found = bad[0] if bad else (0,) * 5
        data: dict[str, Any] = {"m, n": [m, n], "k": k, "z": z, "rank": found, "others": str(bad[:6])}
        if (m, n, k, z, found) == (2, 2, 1, 2, 1):
            said += "; (2, 2), k = 1, z = 2: the first four entries are u_00 v_00, u_00 v_01, u_01 v_00, u_01 v_01"
            data["W"] = "[u_00; u_01] [v_00, v_01]"
        return outcome(not bad, "exact", min((f / min(m, n) for m, n, _, _, f in bad), default=1.0), said, data)

    return check


# Shapes


def conv(view: str) -> Check:
    """The convolutions of both networks in the package's view: (c_out k, c_in k), the weight read row by row."""

    def check(effort: str) -> Outcome:
        bad, count = [], 0
        for name in ("fedmud-cnn4", "fedmud-cnn8"):
            net = network(name, (3, 32, 32), 10, view)
            kernels = [op for op in net.ops if isinstance(op, Conv)]
            layers = [layer for layer in net.layout.layers if layer.kind == "conv"]
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
        return identical([(left, right.T if shifted else right)], "one block of 3 x 3 factors and torch.kron")

    return check


def claims() -> list[Claim]:
    """Section 3.2."""
    two = lambda m, n, k: 2 * k / math.sqrt(m * n)
    return [
        mud(
            "ratio.lowrank", "cost",
            check=formula("low rank", lambda m, n, r: 2 * (m + n) * r / (m * n), True),
            control=formula("low rank", lambda m, n, r: 1.01 * (m + n) * r / (m * n), True),
            broken="1% above the repair",
            error="wrong constant", repair="(m + n) r/(mn), as Fig. 1(b) counts.",
            repaired=formula("low rank", lambda m, n, r: (m + n) * r / (m * n), True),
            implies="The ratios of low rank and BKD are compared in one paragraph; the 2 is right for pairs of equal "
            "factors only. At the same printed ratio low rank would get half of BKD's parameters.",
        ),
        mud(
            "rank.lowrank", "inequality",
            check=low_rank(0), control=low_rank(1), broken="r - 1",
        ),
        mud(
            "ratio.kron", "cost",
            check=formula("blocks", two, True, 1),
            control=formula("blocks", lambda m, n, k: 1.98 / math.sqrt(m * n), True, 1),
            broken="1.98/sqrt(mn)",
        ),
        mud(
            "rank.kron", "identity",
            check=kron_rank(), control=each_needed(kron_rank(less=1), kron_rank(slack=1)),
            broken="the product of the ranks less one, and min{m, n} - 1 as the bound",
        ),
        mud(
            "ratio.bkd", "cost",
            check=formula("blocks", two, True), 
            control=formula("blocks", lambda m, n, k: 1.98 * k / math.sqrt(m * n), True), broken="1.98 k/sqrt(mn)",
        ),
        mud(
            "k1", "identity",
            check=k1(False), control=k1(True), broken="transposed",
        ),
        mud(
            "appB.bkd_fullrank", "inequality", check=bkd_rank("chosen"), control=bkd_rank("short"),
            broken="a diagonal block of one rank less",
            as_printed=bkd_rank("equal"),
            met="a reading of 'can': for some blocks",
            caveat="blocks chosen together (full rank on the diagonal, zero elsewhere will do). The argument does not "
            "give it: an upper bound on the rank of a concatenation shows nothing attained, and blocks of full rank "
            "can be equal",
        ),
        mud(
            "conv", "definition",
            check=conv("rows"), control=conv("filter"), broken="(c_out, c_in k^2), the usual reshape",
        ),
        mud(
            "bkd.truncated_rank", "inequality", check=truncated("exact"), as_printed=truncated(""),
            control=each_needed(truncated("exact", 1), truncated("square")),
            broken="min{m, n} - 1 as the rank; and m = n alone, so that something is cut",
            met="the sentence about the rank is about m = k a^2 and n = k b^2",
            caveat="m = n = k z^2, so that nothing is cut or reshaped: the sentence about the rank stands before those "
            "about cutting",
            implies="Cutting and reshaping can cost rank for every U, V: a 2 x 2 layer with k = 1 is an outer "
            "product. Among shapes up to 12 x 12 (30 x 30 at full effort) only (2, 2) and (6, 3) with k = 1 lose rank: "
            "a curiosity.",
        ),
    ]  # fmt: skip
