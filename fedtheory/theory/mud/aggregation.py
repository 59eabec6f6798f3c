"""FedMUD, Section 3.3: what averaging the factors changes, and aggregation-aware decomposition."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch

from fedtheory.core.layout import Layer, Layout
from fedtheory.maps.decomposition import (
    Bilinear,
    Decoupled,
    Frozen,
    Kronecker,
    KroneckerBlocks,
    LowRank,
    Outer,
    Part,
    Product,
)
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.mud.round import DOUBLE, KEY, both, identical, mud, normal, rounds


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
        return identical(pairs, "low rank and blocks, even and uneven weights")

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
        return identical(pairs, "low rank and blocks")

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
        return identical(pairs, f"{form}, {len(products)} products, even and uneven weights")

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
        return identical(pairs, f"U C V^T with {free} of three factors free at a time")

    return check


def aad_in_fedmud(form: str) -> Check:
    """The server's model against the average of the clients' models, three rounds of FedMUD, with s = 2."""

    def check(effort: str) -> Outcome:
        pairs = []
        for kind in (LowRank(0.5, 0.5, form, layers="all"), Kronecker(0.9, 0.5, form, layers="all")):
            for before, up, after in rounds(kind, 2, 3):
                pairs.append((before.frozen.base + before.frozen.D.value.update(up.u).mean(0), after.x))
        return identical(pairs, f"{form}: FedMUD.server's model and the clients' average")

    return check


def starts_at_zero(random: bool) -> Check:
    def check(effort: str) -> Outcome:
        pairs = []
        for how in (LowRank(0.5, 0.5, "aad", random), LowRank(0.5, 0.5, "product", random)):
            D = replace(how, layers="all").draw(Layout((Layer("0", 3, 4),)), KEY.fold("zero"), DOUBLE)
            pairs.append((D.update(D.start), torch.zeros(12, dtype=DOUBLE)))
        return identical(pairs, "update before the first step")

    return check


def claims() -> list[Claim]:
    """Section 3.3."""
    return [
        mud(
            "eq6", "identity",
            check=expansion(False), control=expansion(False, ((0.5, 0.5, 0.5),)), broken="weights that sum to 3/2",
        ),
        mud(
            "eq7", "identity",
            check=expansion(True), control=expansion(True, last=False), broken="without the last term",
        ),
        mud(
            "bias", "identity",
            check=bias(True), control=bias(False), broken="A(dU dV^T) alone, without - A(dU) A(dV)^T",
            implies="The error that AAD removes is the covariance A(dU dV^T) - A(dU) A(dV)^T; for two clients (dU_1 - "
            "dU_2)(dV_1 - dV_2)^T/4.",
        ),
        mud(
            "eq8-9", "identity", check=both(aad("aad"), aad_in_fedmud("aad"), starts_at_zero(False)),
            control=aad("product"), broken="U V^T",
        ),
        mud(
            "aad.any_product", "identity", check=both(
                aad("aad", (*PRODUCTS, Entrywise(6), Circular(6))), aad_in_fedmud("aad"), three_factors(1)),
            control=three_factors(2), broken="a product of three with two factors free at a time",
            reading="a product is linear in each factor, and of more than two factors one is free in each term",
        ),
    ]  # fmt: skip
