"""FLSS, App. C.1 to C.4: the projection, the lemmas, Theorem C.3.1 and its corollaries, as stated."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from fedtheory.theory.claim import Check, Claim, Outcome, each_needed, worst_of
from fedtheory.theory.flss.proof import (
    APART,
    BEYOND,
    KEPT,
    PURE,
    THIN,
    S,
    blind,
    eq29_pieces,
    lemma_c21,
    lemma_c22,
    needs_chain,
    ratchet,
    row,
    theorem,
    two_slips_chain,
    without,
)
from fedtheory.theory.flss.rates import (
    NOISY,
    POSITIVE,
    QUIET,
    RUNS,
    SLOW,
    corollary,
    corollary_blind,
    corollary_kept,
    corollary_thin,
    eq6,
    eq32,
    eq33,
    eq34_chain,
    recursion_chain,
)
from fedtheory.theory.flss.round import (
    ALL,
    ANY_STEP,
    BENCH,
    BOUNDED,
    FRESH,
    GIVEN,
    GIVEN_TAKEN,
    ROUND,
    STEP,
    UNIFORM,
    UNLIKE,
    Edge,
    Pairs,
    Round,
    broken,
    details,
    dump,
    edges,
    equal,
    flss,
    play,
    square,
    with_units,
)
from fedtheory.theory.flss.updates import Sets, Sides, check_rank, comb, over_sets
from fedtheory.theory.forms import chain, with_sharper
from fedtheory.theory.instances import exact, joint, subsets
from fedtheory.theory.rounding import digits, level


def printed_next(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """w_{t+1} (B, C, d) and v_{t+1} (C, d) as C.1 has them, from the ghat_t^k."""
    ghat = joint(q.odds, q.at.N).pick(q.ghat)
    w = torch.stack([q.at.x + ghat[chosen].sum(0) / q.at.M for chosen in subsets(q.at.N, q.at.M)])
    return w, q.at.x + ghat.sum(0) / q.at.N


def check_c1(inner: str, stretch: float = 1.0) -> Check:
    """The server's change against Proj_P(Proj_inner(g)) of the local updates, then w_{t+1} and v_{t+1}.

    First P = (0, 1)^T, w_t = (0, 1). stretch: of P, whose columns then have that length.
    """

    def check(effort: str) -> Outcome:
        rounds = [play(replace(blind(), x=row(0.0, 1.0)[0])), *BENCH.rounds("c1", trials=2)]
        if stretch != 1:
            rounds = [play(replace(q.at, frame=stretch * q.at.frame)) for q in rounds]
        gap = 0.0
        for q in rounds:
            P = q.at.frame @ q.at.frame.T
            twice = q.g @ P @ (P if inner == "P" else torch.eye(len(P), dtype=P.dtype) - P)
            size = q.g.abs().max()
            value = float((q.ghat - twice).abs().max() / size)
            for ours, printed in zip((q.w, q.v), printed_next(q)):
                value = max(value, float((ours - printed).abs().max() / size))
            if value > 1e-12:
                data = {"instance": dump(q.at), "g": exact(q.g), "the server adds": exact(q.ghat), "C.1": exact(twice)}
                nothing = ", nothing moves" if float(twice.abs().max()) == 0 else ""
                said = f"Proj_P(Proj_{inner}(g)) = {listed_numbers(twice)}{nothing}; relative gap {value:.3g}"
                return Outcome(False, "exact", digits(value), said, data)
            gap = max(gap, value)
        margin, small = level(gap, 1e-12)
        said = f"the server's w_(t+1) and v_(t+1) against C.1, {len(rounds)} rounds: largest relative gap {small}"
        return Outcome(True, "exact", margin, said)

    return check


def listed_numbers(values: torch.Tensor) -> str:
    """The first row, to three digits."""
    return f"({', '.join(f'{v + 0.0:.3g}' for v in values.flatten(0, -2)[0].tolist())})"


def eq1(shift: float = 0.0) -> Pairs:
    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        cross = (2 - shift) * ((q.w - q.v) * q.v).sum(-1)
        return [(square(q.w), square(q.w - q.v) + square(q.v) + cross)]

    return pairs


def c23(uneven: bool) -> Pairs:
    """uneven: the first set M_t drawn twice as often."""

    def pairs(q: Round) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        weight = torch.ones(len(q.w), dtype=torch.float64)
        weight[0] += float(uneven)
        mean = torch.tensordot(weight / weight.sum(), q.w, dims=1)
        return [(mean, q.v), (((mean - q.v) * q.v).sum(-1), torch.zeros(len(q.v), dtype=torch.float64))]

    return pairs


def eq2_sides(wrong: int = 0) -> Sides:
    """wrong = 1: C(N - 1, M) for C(N - 1, M - 1)."""

    def sides(at: Sets) -> Sequence[torch.Tensor]:
        N, M = at.size
        left = (at.q.w[:, 0] - at.q.at.x).mean(0)
        return left, comb(N - 1, M - 1 + wrong) / (M * comb(N, M)) * at.ghat.sum(0), at.ghat.sum(0) / N

    return sides


CLAIMS: list[Claim] = [
    flss(
        "c1-def",
        "definition",
        met="C.8",
        caveat="the inner subscript is P, as in C.8 (the extraction of C.1 is unclear: P^perp or P^T)",
        check=check_c1("P"),
        as_printed=check_c1("P^perp"),
        control=check_c1("P", 1.01),
        broken="columns of P that are 1% too long: projecting twice is not projecting once",
        implies="with P^perp every ghat is 0 and no projected round moves the model",
    ),
    flss(
        "eq1",
        "identity",
        check=equal(eq1(), "eq1"),
        control=equal(eq1(1.0), "eq1"),
        broken="the cross term once",
    ),
    flss(
        "lemma-c21",
        "inequality",
        assumes=(BOUNDED, UNIFORM),
        check=with_sharper(
            with_units(
                S(lemma_c21(), "c21", "rho_R = 0, the smallest right side there is", [APART, *BEYOND], ANY_STEP),
                lambda q: [q.spread, *lemma_c21()(q)[1:]],
            ),
            worst_of(
                S(
                    lemma_c21(1.0, True),
                    "c21.sharp",
                    "eta^2 tau^2 G^2 (N - M)/(M (N - 1)) alone",
                    [APART, *edges()],
                    ANY_STEP,
                ),
                check_rank,
            ),
        ),
        control=S(lemma_c21(0.99, True), "c21.control", corners=[APART]),
        broken="0.99 of the sharper constant",
        implies="rho_R is not needed, for a projection shortens: the bound falls with R where the quantity rises. "
        "Its proof "
        "takes E||e_t^k||^2 <= rho_R eta^2 tau^2 G^2 from Prop. 3.4.1, which is about global updates in G; a local "
        "update "
        "across P has e_t^k = -g_t^k at rho_R = 0",
    ),
    flss(
        "lemma-c22 / eq29",
        "inequality",
        assumes=ALL,
        met=GIVEN_TAKEN,
        caveat=f"{GIVEN}; {FRESH}",
        check=with_units(
            worst_of(
                S(
                    lemma_c22(),
                    "c22",
                    "no bound on the steps is printed, nor needed",
                    [*BEYOND, Edge(L=0.02, kappa=0.5)],
                    ANY_STEP,
                ),
                chain(two_slips_chain, "what (28) adds covers what (16) leaves out"),
            ),
            eq29_pieces,
            UNLIKE,
        ),
        as_printed=without(lemma_c22(), broken(ratchet, lemma_c22(), KEPT)),
        control=S(lemma_c22(0.49), "c22.control", corners=[PURE]),
        broken="0.49 of the noise term",
        implies="The printed proof is broken, see eq16 and drift-formula; the statement survives. Gamma can go, and "
        "so can "
        "any bound on eta, see flss.sharper.round. 1 - eta is a pure number minus a step size: in units in which "
        "eta >= 1 "
        "the lemma contracts nothing",
    ),
    flss(
        "lemma-c23",
        "expectation",
        assumes=(UNIFORM,),
        check=equal(c23(False), "c23", "all sets M_t"),
        control=equal(c23(True), "c23"),
        broken="one of the sets drawn twice as often",
    ),
    flss(
        "eq2",
        "expectation",
        assumes=(UNIFORM,),
        check=over_sets(eq2_sides(), "(2)"),
        control=over_sets(eq2_sides(1), "C(N-1, M)"),
        broken="C(N-1, M) in place of C(N-1, M-1)",
    ),
    flss(
        "thm-c31",
        "inequality",
        assumes=(*ALL, STEP, UNIFORM),
        met=GIVEN_TAKEN,
        caveat=f"{GIVEN}; {FRESH}",
        check=S(
            theorem(),
            "thm",
            "rho_R = 0, the smallest right side there is",
            [*edges(), THIN],
            (*ROUND, "eta_t <= 1/(mu B)"),
        ),
        as_printed=without(theorem(rho=1.0), broken(ratchet, theorem(rho=1.0), f"{KEPT}, rho_R = 1")),
        control=S(theorem(0.245), "thm.control", corners=[PURE]),
        broken="0.245 of C",
        implies="Where L (tau + 1) < 1 no step size is admitted, and at 1 none contracts: B adds a number and 1/L, "
        "so that the theorem is empty in units with a small L. tau^3 G^2 can be 3 tau^2 G^2, and Gamma and rho_R can "
        "go, see flss.sharper.round",
    ),
    flss(
        "cor-c41",
        "rate",
        assumes=(*ALL, STEP, UNIFORM),
        met=GIVEN_TAKEN,
        caveat=f"{GIVEN}; {FRESH}",
        check=worst_of(
            corollary([eq32(), eq33()], False, runs=[*RUNS, *SLOW]),
            corollary([eq32(), eq33()], False, mu_zero=True),
            chain(recursion_chain(), "(3) carries (32) on"),
            chain(needs_chain(), "mu eta B <= 1 without the condition eta <= 1/(mu B)"),
        ),
        as_printed=each_needed(
            data=details,
            without={"3.4.4 given w_t": corollary_blind(eq33(), 1), "fresh samples": corollary_kept(eq33())},
        ),
        control=corollary([eq32(0.245)], False, runs=NOISY),
        broken="0.245 of C",
    ),
    flss(
        "cor-c42",
        "rate",
        assumes=(*ALL, POSITIVE, UNIFORM),
        met=f"0 < eta <= 1/(mu B) in Theorem C.3.1 has B > 0; {GIVEN_TAKEN}",
        caveat=f"L (tau + 1) > 1 (otherwise gamma < 0, and the steps grow, then turn negative, see cor-c42-eta1); "
        f"{GIVEN}; "
        f"{FRESH}",
        check=worst_of(corollary([eq6()], True), chain(eq34_chain(), "(34)")),
        as_printed=each_needed(
            data=details,
            without={
                "L (tau + 1) > 1": corollary_thin(eq6()),
                "3.4.4 given w_t": corollary_blind(eq6(), 400),
                "fresh samples": corollary_kept(eq6(), 300),
            },
        ),
        control=corollary([eq6(0.089)], True, runs=QUIET),
        broken="0.089 of the right side",
        implies="every problem can be measured in units with L (tau + 1) <= 1, where the printed steps make no "
        "sense; (36) "
        "gives the slightly better gamma + T",
    ),
]
