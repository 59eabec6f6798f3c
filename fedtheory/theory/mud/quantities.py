"""FedMUD: what the displays are made of: the layers of a window, Lambda of (38), C of (66)."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from fedtheory.theory.mud.round import A1, A2, A3, SURE, Instance, Pair, Terms, Window, admissible, broken, survives

BOTH = (A1, A2, A3)
SECOND = "G and Gamma bound second moments only"
RESET = (
    "t is no reset, or U^t, V^t, W^t are those before it: with (16) at t mod S = 0 the left side holds redrawn factors"
)
RESET_TAKEN = "w^t, the same before a reset and after it, is all that (66) uses of them"
RARE = "A gradient that is rarely large has E||g||^4 far above G^4"
SURELY = f"With {SURE}: then Gamma bounds U and V surely, and the display holds as printed."


class Low:
    """A decomposed layer: U, V (S+1, N, C, ., .), gradients g, d, and a = g V, b = U^T g (S, N, C, ., .)."""

    def __init__(self, q: Window, number: int) -> None:
        layer = q.low[number]
        self.U, self.V = q.factors(q.u)[number]
        self.Ub, self.Vb = q.factors(q.ubar)[number]
        self.g, self.d = q.matrices(q.g)[layer], q.matrices(q.d)[layer]
        self.a, self.b = self.g @ self.V[:-1], self.U[:-1].mT @ self.g
        self.number, self.layer = number, layer


def lows(q: Window) -> list[Low]:
    """Return the decomposed layers of a window."""
    return [Low(q, k) for k in range(len(q.low))]


def local(q: Window) -> list[tuple[int, int]]:
    """(t, t_e) with t > t_e."""
    return [(t, q.last(t)) for t in range(1, q.at.S + 1) if t > q.last(t)]


def drifting_parts(q: Window) -> Iterator[tuple[Low, int, int]]:
    """(layer, t, t_e) for every decomposed layer and t > t_e."""
    for low in lows(q):
        for t, te in local(q):
            yield low, t, te


def moving_parts(q: Window) -> Iterator[tuple[Low, int]]:
    """(layer, t) for every decomposed layer and t."""
    for low in lows(q):
        for t in range(1, q.at.S + 1):
            yield low, t


def after_reset(q: Window) -> torch.Tensor:
    """ubar with the last one redrawn: U as at t_s, V = 0."""
    pieces = []
    for piece, (m, _, r) in zip(q.pieces(q.at.start), q.at.layers):
        pieces.append(torch.cat([piece[: m * r], torch.zeros_like(piece[m * r :])]) if r else piece)
    return torch.cat([q.ubar[:-1], torch.cat(pieces).expand_as(q.ubar[-1:])])


def path_from_average(q: Window, path: torch.Tensor, steps: torch.Tensor, t: int, te: int, mean: bool) -> list[Pair]:
    """Pair iterates at t, of clients and on average, with the average at t_e minus the steps: (36), (40) and (42).

    mean: the average by averaged gradients, as printed; otherwise by those of the first client.
    """
    start, moved = path[te].mean(0), q.at.lr * steps[te:t].sum(0)
    return [(path[t], start - moved), (path[t].mean(0), start - (moved.mean(0) if mean else moved[0]))]


def delta2(U: torch.Tensor) -> torch.Tensor:
    """delta_min^2."""
    return torch.linalg.svdvals(U)[..., -1] ** 2


def constants(q: Window, sure: bool) -> tuple[Any, ...]:
    """eta, E, G^2, Gamma_u^2, Gamma_v^2."""
    return q.at.lr, q.at.E, q.G2_sure if sure else q.G2, *q.gamma(sure)


def Lambda(q: Window, sure: bool, factor: float = 12.0) -> torch.Tensor:
    """Lambda of (38)."""
    eta, E, G2, gu, gv = constants(q, sure)
    return drifted(len(q.low), len(q.full), E, eta, G2, gu, gv, factor)


def drifted(low: int, rho: int, E: int, eta: Any, G2: Any, gu: Any, gv: Any, twelve: Any = 12) -> Any:
    """Lambda of (38), from its constants."""
    return eta**2 * E**2 * G2 * (4 * rho + twelve * low * (gu**2 + gv**2 + eta**2 * E**2 * G2 * gu * gv))


def stepped(low: int, eta: Any, G2: Any, gu: Any, gv: Any, three: Any = 3) -> Any:
    """Of Lemma 5 what decomposed layers add."""
    return three * low * eta**2 * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv)


def exchanged(low: int, rho: int, E: int, eta: Any, Lh: Any, G2: Any, gu: Any, gv: Any) -> Any:
    """Of (61), repaired: half the squared distance of the factors' gradients at the clients and at the average."""
    return 2 * Lh**2 * eta**2 * E**2 * G2 * (low * (gu + gv) + rho)


def crossed(low: int, G2: Any, gu: Any, gv: Any) -> Any:
    """Of (62): E||[av a][av b]||^2, summed over the layers."""
    return low * G2**2 * gu * gv


def rest6(low: int, rho: int, E: int, eta: Any, Ls: Any, Lh: Any, G2: Any, gu: Any, gv: Any) -> Any:
    """Of Lemma 6, repaired, the right side without gradients."""
    drift = eta / 2 * Ls**2 * drifted(low, rho, E, eta, G2, gu, gv)
    return drift + eta * exchanged(low, rho, E, eta, Lh, G2, gu, gv) + eta**2 / 2 * crossed(low, G2, gu, gv)


def residual(
    L: int, rho: int, E: int, N: int, eta: Any, Ls: Any, G2: Any, sigma2: Any, gu: Any, gv: Any, twelve: Any = 12
) -> Any:
    """C of (66)."""
    low = L - rho
    lam = drifted(low, rho, E, eta, G2, gu, gv, twelve)
    return (
        eta / 2 * Ls**2 * lam + 2 * low * Ls**2 * eta**3 * E**2 * G2 * (gu + gv) + low * eta**2 * G2**2 * gu * gv / 2
        + Ls * eta**2 * sigma2 / (2 * N) + 3 * Ls / 2 * low * eta**2 * G2 * (gu**2 + gv**2 + eta**2 * G2 * gu * gv)
    )  # fmt: skip


def surely(
    terms: Callable[..., Terms],
    name: str,
    rarely: Callable[[], Instance],
    why: str,
    near: Callable[[], Instance],
    share: float,
) -> dict[str, Any]:
    """Options of a claim that multiplies expectations: refuted at `rarely`; with sure bounds it holds, and `share` of
    its right side is too little (near: an instance near equality).
    """
    return {
        "check": broken(rarely, terms(False), why, admissible),
        "control": survives(terms(True, share), name, near=[near]),
        "assumes": BOTH,
        "error": "wrong independence",
        "repair": SURELY,
        "repaired": survives(terms(True), name, near=[near]),
    }
