"""The ledger of FLSS (its appendix; the main body is not known), in the appendix's order.

The checks lie in flss_updates (C.1 to C.7), flss_proof (C.7 to C.9) and flss_rates (corollaries, tables), the attacked
round in flss_round.
"""

from dataclasses import replace

from fedtheory.theory.claim import Check, Claim, Printed, worst_of
from fedtheory.theory.flss.proof import (
    APART,
    BEYOND,
    FAR,
    KEPT,
    POINT,
    PURE,
    THIN,
    TILTED,
    check_C,
    check_drift,
    drift,
    eq14_e,
    eq16,
    eq17,
    eq17_sides,
    eq18,
    eq19,
    eq19_equality,
    eq19_sides,
    eq20,
    eq21,
    eq22,
    eq22_equality,
    eq23,
    eq24,
    eq25,
    eq26,
    eq26_equality,
    eq27,
    eq28,
    eq29_pieces,
    eq30_chain,
    eq30_sum,
    kept_sample,
    lemma_c21,
    lemma_c22,
    needs_chain,
    noisy_optimum,
    ranges,
    ratchet,
    sharp,
    sharp_chain,
    sharp_pieces,
    theorem,
    torn,
    two_slips_chain,
    unconditional,
)
from fedtheory.theory.flss.rates import (
    FEW,
    NOISY,
    PLAIN,
    QUIET,
    check_35,
    check_36,
    check_b1,
    check_eta1,
    check_gains,
    check_most,
    check_table2,
    check_table3_cost,
    check_table4_cost,
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
    BOUNDED,
    CONVEX,
    FRESH,
    GIVEN,
    ORTHONORMAL,
    ROUND,
    SMOOTH,
    SPAN,
    STEP,
    UNBIASED,
    UNIFORM,
    Edge,
    Terms,
    broken,
    each_needed,
    edges,
    equal,
    flss,
    survives,
    with_units,
)
from fedtheory.theory.flss.updates import (
    c23,
    check_7,
    check_8_to_10,
    check_c1,
    check_prop341,
    check_prop341_falling,
    check_prop341_noisy,
    check_rank,
    eq1,
    eq2_sides,
    eq11_sides,
    eq12_sides,
    eq13_sides,
    eq14_sides,
    eq15,
    over_sets,
)
from fedtheory.theory.forms import chain, with_sharper

S = survives
PRINTED = "of the printed accuracies, single numbers without a spread; the runs are not repeated here"
PAIRS = [("FedAvg+FLSS", "FedAvg"), ("Sign+EF+FLSS", "Signsgd+EF")]
NOISE = "one client at the minimum of F = w^2/2, stochastic gradient w +- 1"
SIGMA = "sigma^2 >= E||grad F_k(w, xi) - grad F_k(w)||^2"
POSITIVE = Printed("mu > 0, for kappa = L/mu", "Corollary C.4.2")
CORNER = [Edge(N=1, d=1, R=1, kappa=1.0)]
STRAIGHT = Edge(N=1, tau=3, d=1, R=1, kappa=1.0, share=1e-3, noise=False)  # three tiny steps, one gradient


def without(terms: Terms, rest: Check) -> Check:
    """`as_printed` of a claim with both caveats; rest: the check without fresh samples."""
    return each_needed(**{"3.4.4 given w_t": unconditional(terms), "fresh samples": rest})


TABLES = [
    flss(
        "b1-claim",
        "App. B.1, Table 1",
        "Projecting the model updates, Proj(g_t^k), improves communication efficiency and performance at little "
        "additional computation (ResNet-18, Cifar10, FedAvg+FLSS).",
        "cost",
        reading=f"{PRINTED}; performance: above FedAvg's 56.17 of Table 3, where Table 1's 57.34 stands too (Table 1 "
        "has no FedAvg), and above the other columns of Table 1; little computation: 2 D R products per client and "
        "round",
        check=check_b1(),
        control=check_b1("both"),
        broken="updates and gradients projected, which uploads as little: 56.10",
    ),
    flss(
        "b2-claim",
        "App. B.2, Table 2",
        "From the results of Table 2 the algorithms with FLSS outperform FedAvg and Signsgd+EF.",
        "rate",
        reading=f"{PRINTED}; each against the method that it is added to",
        check=check_table2(PAIRS),
        control=check_table2([("FedAvg+FLSS", "FedDyn")]),
        broken="FedAvg+FLSS against FedDyn",
        error="wrong statement",
        repair="FedAvg+FLSS outperforms FedAvg and Signsgd+EF in all nine columns, Sign+EF+FLSS outperforms Signsgd+EF "
        "in all but TINY at beta = 0.1",
        repaired=check_table2([*PAIRS, ("FedAvg+FLSS", "Signsgd+EF")], ["Sign+EF+FLSS, TINY beta=0.1"]),
        implies="the one column in which it fails is the most heterogeneous split of the hardest data set, the case "
        "that the table is to show",
    ),
    flss(
        "b5-most-baselines",
        "App. B.5, Table 3",
        "Across the numbers of local epochs FLSS performs better than most baselines, and improves more with fewer.",
        "rate",
        reading=PRINTED,
        caveat="FLSS is FedAvg+FLSS; Sign+EF+FLSS does neither",
        check=check_most("FedAvg+FLSS", True),
        as_printed=check_most("Sign+EF+FLSS", True),
        control=check_most("FedAvg+FLSS", True, PLAIN),
        broken="against the five baselines without compression: of these it is above 2 at ResNet-18 with 10 epochs",
    ),
    flss(
        "b5-numbers",
        "App. B.5, Table 3",
        "With 1 local epoch FedAvg+FLSS improves on FedAvg by 2.43% (CNN) and 3.41% (ResNet-18).",
        "identity",
        caveat="percentage points; in percent of FedAvg's accuracy it improves by 4.06% and 7.03%",
        check=check_gains(False),
        as_printed=check_gains(True),
        control=check_gains(False, (2.44, 3.41)),
        broken="2.44, the next number of two digits",
    ),
    flss(
        "table3-cost",
        "App. B.5, Table 3",
        "Com.cost over 400 rounds, CNN / ResNet-18: FedAvg 0.17G / 2.23G; FedAvg+FLSS 35.14M / 0.45G; Fetchsgd "
        "43.92M / "
        "0.56G; Signsgd+EF, STC 5.49M / 69.88M; Sign+EF+FLSS 1.11M / 14.0M.",
        "cost",
        caveat="the costs of 200 of the 400 rounds, those after a warm-up of 200, in 32-bit words one client uploads; "
        "FLSS uploads one update in five whole, signs are taken before the projection, and R is some 50 (43 to 53); "
        "D = 878,538 and 11,181,642 (neither network is specified)",
        check=check_table3_cost(200),
        as_printed=check_table3_cost(0),
        control=check_table3_cost(199),
        broken="the last 201 rounds in place of the last 200",
        implies="over all 400 rounds FLSS saves 40% of FedAvg's upload (240 D of 400 D), not the 80% of 40 D of 200 D; "
        "Table 4 counts the same run (67.19) as 0.21 G, six times as much",
    ),
    flss(
        "table4-cost",
        "App. B.6, Table 4",
        "Total cost of 400 rounds: FedAvg+FLSS 0.21G (Cifar10), 0.22G (Cifar100) for every beta; LBGM 0.20G to 0.27G.",
        "cost",
        caveat="as 240 D and a little: a warm-up of 200 rounds and one whole upload in five, CNNs of 878,538 and "
        "924,708 parameters; the download is not counted. LBGM's costs depend on runs nobody published and are not "
        "checked",
        check=check_table4_cost(),
        as_printed=check_table4_cost(200),
        control=check_table4_cost(0, 4),
        broken="one whole upload in four rounds",
        implies="by the count of Table 3, which gives the same run as 40 D, it would be 0.035 G",
    ),
]

LEMMAS = [
    flss(
        "c1-def",
        "App. C.1; C.8",
        "ghat_t^k = Proj_P(Proj_{P^perp}(w_{t+1}^k - w_t)); in C.8: Proj_P(Proj_P(g_t^k)).",
        "definition",
        caveat="the inner subscript is P, as in C.8 (the extraction of C.1 is unclear: P^perp or P^T)",
        check=check_c1("P"),
        as_printed=check_c1("P^perp"),
        control=check_c1("P", 1.01),
        broken="columns of P that are 1% too long: projecting twice is not projecting once",
        implies="with P^perp every ghat is 0 and no projected round moves the model",
    ),
    flss(
        "eq1",
        "App. C.1 (1)",
        "||w_{t+1} - w^*||^2 = ||w_{t+1} - v_{t+1}||^2 + ||v_{t+1} - w^*||^2 + 2 <w_{t+1} - v_{t+1}, v_{t+1} - w^*>.",
        "identity",
        check=equal(eq1(), "eq1"),
        control=equal(eq1(1.0), "eq1"),
        broken="the cross term once",
    ),
    flss(
        "lemma-c21",
        "App. C.2, Lemma C.2.1",
        "E||w_{t+1} - v_{t+1}||^2 <= 2 eta^2 tau^2 G^2/M + 2 rho_R eta^2 tau^2 G^2/M.",
        "inequality",
        assumes=(BOUNDED, UNIFORM),
        check=with_sharper(
            with_units(
                S(lemma_c21(), "c21", "rho_R = 0, the smallest right side there is", [APART, *BEYOND], ANY_STEP),
                lambda q: [q.spread, *lemma_c21()(q)[1:]],
                True,
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
        "App. C.2, Lemma C.2.2; C.8 (29)",
        "E||v_{t+1} - w^*||^2 <= (1 - mu eta tau (1 - eta)) E||w_t - w^*||^2 + (2 + mu) eta^2 G^2 tau (tau+1)(2 "
        "tau+1)/6 + "
        "(2 L eta^2 tau^2 + 4 L eta^2 tau) Gamma.",
        "inequality",
        assumes=ALL,
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
            False,
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
        "App. C.2, Lemma C.2.3",
        "E_{M_t}[w_{t+1}] = v_{t+1}, hence E_{M_t} <w_{t+1} - v_{t+1}, v_{t+1} - w^*> = 0.",
        "expectation",
        assumes=(UNIFORM,),
        check=equal(c23(False), "c23", "all sets M_t"),
        control=equal(c23(True), "c23"),
        broken="one of the sets drawn twice as often",
    ),
    flss(
        "eq2",
        "App. C.2 (2)",
        "E_{M_t}[(1/M) sum_{k in M_t} ghat_k] = (C(N-1,M-1)/(M C(N,M))) sum_k ghat_k = (1/N) sum_k ghat_k.",
        "expectation",
        assumes=(UNIFORM,),
        check=over_sets(eq2_sides(), "(2)"),
        control=over_sets(eq2_sides(1), "C(N-1, M)"),
        broken="C(N-1, M) in place of C(N-1, M-1)",
    ),
]

THEOREM = [
    flss(
        "thm-c31",
        "App. C.3, Theorem C.3.1 (3)-(4); C.9 (30)-(31)",
        "0 < eta <= min{1/(mu B), 1/(L (tau+1))}: E||w_{t+1} - w^*||^2 <= (1 - mu eta B) E||w_t - w^*||^2 + eta^2 C, "
        "B = tau - tau/(L (tau+1)), C = (2 + mu) G^2 (2 tau^3 + 3 tau^2 + tau)/6 + (2 L tau^2 + 4 L tau) Gamma + "
        "2 (1 + rho_R) tau^2 G^2/M.",
        "inequality",
        assumes=(*ALL, STEP, UNIFORM),
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
        implies="Where L (tau + 1) <= 1 no step size is admitted: B adds a number and 1/L, so that the theorem is "
        "empty in "
        "units with a small L. tau^3 G^2 can be 3 tau^2 G^2, and Gamma and rho_R can go, see flss.sharper.round",
    ),
    flss(
        "cor-c41",
        "App. C.4, Corollary C.4.1 (5); C.10.1 (32)-(33)",
        "mu >= 0, constant eta <= 1/(L (tau+1)): E||w_T - w^*||^2 <= (1 - mu eta B)^T E||w_0 - w^*||^2 + "
        "sum_{t=1}^T eta^2 "
        "(1 - mu eta B)^{T-t} C, and L/2 times this bounds E F(w_T) - F^*.",
        "rate",
        assumes=(*ALL, STEP, UNIFORM),
        caveat=f"{GIVEN}; {FRESH}",
        check=worst_of(
            corollary([eq32(), eq33()], False),
            corollary([eq32(), eq33()], False, mu_zero=True),
            chain(recursion_chain(), "(3) carries (32) on"),
            chain(needs_chain(), "mu eta B <= 1 without the condition eta <= 1/(mu B)"),
        ),
        as_printed=each_needed(
            **{"3.4.4 given w_t": corollary_blind(eq33(), 1), "fresh samples": corollary_kept(eq33())}
        ),
        control=corollary([eq32(0.245)], False, runs=NOISY),
        broken="0.245 of C",
    ),
    flss(
        "cor-c42",
        "App. C.4, Corollary C.4.2 (6)",
        "kappa = L/mu, gamma = 2 L^2 (tau+1)^2/(mu tau (L (tau+1) - 1)) - 1, eta_t = 2/(mu B (gamma + t)): E F(w_T) "
        "- F^* "
        "<= (kappa/(gamma + T - 1)) (2 C/(mu B^2) + (mu (gamma+1)/2) E||w_1 - w^*||^2).",
        "rate",
        assumes=(*ALL, POSITIVE, UNIFORM),
        caveat=f"L (tau + 1) > 1 (otherwise gamma < 0, and the steps grow, then turn negative, see cor-c42-eta1); "
        f"{GIVEN}; "
        f"{FRESH}",
        check=worst_of(corollary([eq6()], True), chain(eq34_chain(), "(34)")),
        as_printed=each_needed(
            **{
                "L (tau + 1) > 1": corollary_thin(eq6()),
                "3.4.4 given w_t": corollary_blind(eq6(), 400),
                "fresh samples": corollary_kept(eq6(), 300),
            }
        ),
        control=corollary([eq6(0.089)], True, runs=QUIET),
        broken="0.089 of the right side",
        implies="every problem can be measured in units with L (tau + 1) <= 1, where the printed steps make no "
        "sense; (36) "
        "gives the slightly better gamma + T",
    ),
]

SUBSPACE = [
    flss(
        "eq7",
        "App. C.5 (7)",
        "E[Proj(g_t)] = E[P P^T g_t] = P P^T E[g_t] = Proj(E[g_t]); with E[g_t] in span P it is E[g_t].",
        "expectation",
        assumes=(SPAN, UNIFORM),
        caveat="P is fixed before g_t is drawn: E is given the past. P is made of past updates, on which g_t depends",
        check=check_7("given"),
        as_printed=check_7("random"),
        control=check_7("tilted"),
        broken="E[g_t] not in span P",
    ),
    flss(
        "eq8",
        "App. C.6 (8)",
        "E_{g_t in G} ||g_t - Proj(g_t)||^2 = (1/J) sum_j ||G_j - P P^T G_j||^2.",
        "identity",
        assumes=(ORTHONORMAL,),
        reading="E over g_t in G gives every sampled update the same weight",
        check=check_8_to_10("(8)"),
        control=check_8_to_10("(8)", later=True),
        broken="the five updates after those in G",
        implies="an error in the sample: Prop. 3.4.1 says nothing about the updates of the projected rounds",
    ),
    flss(
        "eq9",
        "App. C.6 (9)",
        "(1/J) sum_j ||G_j - P P^T G_j||^2 = (1/J) tr(G^T (I - P P^T) G) = (1/J) tr((I - P P^T) G G^T).",
        "identity",
        assumes=(ORTHONORMAL,),
        check=check_8_to_10("(9)"),
        control=check_8_to_10("(9)", stretch=1.01),
        broken="1.01 P",
    ),
    flss(
        "eq10-equality",
        "App. C.6 (10), first part",
        "E||g_t - Proj(g_t)||^2 = (1/J) sum_{r>R} sigma_r^2.",
        "identity",
        assumes=(ORTHONORMAL,),
        check=check_8_to_10("(10)"),
        control=check_8_to_10("(10)", kept=2),
        broken="a trajectory that keeps R vectors as the columns come (0.7% more)",
    ),
    flss(
        "eq10-ineq / prop341",
        "App. C.6 (10), second part; Prop. 3.4.1",
        "(1/J) sum_{r>R} sigma_r^2 <= rho_R eta_t^2 tau^2 G^2, since E||g_t||^2 <= eta_t^2 tau^2 G^2 and ||G||_2^2 "
        "<= J "
        "eta_t^2 tau^2 G^2.",
        "inequality",
        assumes=(BOUNDED, ORTHONORMAL),
        caveat="eta_t is the step size of all sampled rounds (or eta_t^2 the mean of their squares); 3.4.3 holds for "
        "every draw, not only on average",
        reading="||G||_2 is the Frobenius norm: with the spectral norm the last clause is true as well, but (10) does "
        "not follow from it",
        check=check_prop341(),
        as_printed=each_needed(
            **{"constant steps": check_prop341_falling, "3.4.3 for every draw": check_prop341_noisy}
        ),
        control=check_prop341(0.99),
        broken="0.99 of the right side",
        implies="under the decreasing steps of Corollary C.4.2 the columns of G come from rounds with longer steps "
        "than eta_t; Lemma C.2.1 does not need the proposition",
    ),
]

SETS = [
    flss(
        "eq11",
        "App. C.7 (11)",
        "E||w_{t+1} - v_{t+1}||^2 = E||(1/M) sum_m (ghat_{i_m} - ghat)||^2 = (1/M^2) E[sum_m ||.||^2 + sum_{m != "
        "m'} <., .>].",
        "identity",
        assumes=(UNIFORM,),
        check=over_sets(eq11_sides(), "(11)"),
        control=over_sets(eq11_sides(0), "without the cross terms"),
        broken="the cross terms left out",
    ),
    flss(
        "eq12",
        "App. C.7 (12)",
        "E_{M_t} sum_m ||ghat_{i_m} - ghat||^2 = (C(N-1,M-1)/C(N,M)) sum_k ||.||^2 = (M/N) sum_k ||ghat_k - ghat||^2.",
        "identity",
        assumes=(UNIFORM,),
        check=over_sets(eq12_sides(), "(12)"),
        control=over_sets(eq12_sides(1), "C(N-1, M)"),
        broken="C(N-1, M) in place of C(N-1, M-1)",
    ),
    flss(
        "eq13",
        "App. C.7 (13)",
        "E_{M_t} sum_{m != m'} <., .> = (C(N-2,M-2)/C(N,M)) sum_{k=1}^K sum_{k' != k} <ghat_k - ghat, ghat_k' - "
        "ghat> = "
        "-(C(N-2,M-2)/C(N,M)) sum_k ||ghat_k - ghat||^2 <= 0.",
        "identity",
        caveat="K, which is nowhere defined, is N",
        assumes=(UNIFORM,),
        check=over_sets(eq13_sides(), "(13)"),
        as_printed=over_sets(eq13_sides("M"), "K = M"),
        control=over_sets(eq13_sides(), "with replacement", replacement=True),
        broken="clients drawn with replacement",
    ),
    flss(
        "eq14-centering",
        "App. C.7 (14), first part",
        "E||w_{t+1} - v_{t+1}||^2 = (1/(NM)) sum_k E||ghat_k - ghat||^2 + the terms of (13)/M^2 <= (1/(NM)) sum_k "
        "E||ghat_k - ghat||^2 = (1/(NM)) (sum_k E||ghat_k||^2 - E||ghat||^2) <= (1/(NM)) sum_k E||ghat_k||^2.",
        "identity",
        assumes=(UNIFORM,),
        check=over_sets(eq14_sides("1"), "with E||ghat||^2"),
        control=over_sets(eq14_sides("M"), "with M E||ghat||^2"),
        broken="M E||ghat||^2",
        error="wrong constant",
        repair="N E||ghat||^2 in place of E||ghat||^2",
        repaired=over_sets(eq14_sides("N"), "with N E||ghat||^2"),
        implies="nothing: the term is dropped in the next step, and as an inequality the line is true. (If the sum is "
        "read to cover both terms, against the way it is printed, the equality is true too.)",
    ),
    flss(
        "eq14-e-term",
        "App. C.7 (14), last part",
        "(1/(NM)) sum_k E||ghat_k||^2 <= (1/(NM)) sum_k E||g_k + e_k||^2 <= 2 eta^2 tau^2 G^2/M + 2 rho_R eta^2 "
        "tau^2 G^2/M.",
        "inequality",
        assumes=(BOUNDED,),
        caveat="e_t^k, which is nowhere defined, is ghat_t^k - g_t^k",
        check=S(eq14_e(1.0), "eq14", "rho_R = 0, the first step is an equality", BEYOND, ANY_STEP),
        as_printed=broken(torn, eq14_e(-1.0), "e = g - ghat, as (10) writes the error, rho_R = 0"),
        control=S(eq14_e(1.0, 0.99), "eq14.control", corners=[PURE]),
        broken="0.99 eta^2 tau^2 G^2/M in place of 2 eta^2 tau^2 G^2/M, rho_R = 0",
        implies="the second step does not follow from E||e_t^k||^2 <= rho_R eta^2 tau^2 G^2, which is false for local "
        "updates, but from ||ghat|| <= ||g||",
    ),
]

C22 = [
    flss(
        "eq15",
        "App. C.8 (15)",
        "E||v_{t+1} - w^*||^2 = A_1 + A_2 + 2 A_3.",
        "identity",
        check=equal(eq15(), "eq15"),
        control=equal(eq15(1.0), "eq15"),
        broken="A_3 once",
    ),
    flss(
        "eq16",
        "App. C.8 (16)",
        "Since ||grad F_k(w_{t,i}^k, xi)||^2 <= 2 L (F_k(w_{t,i}^k) - F_k^*): A_2 <= (1/N) sum E||ghat_k||^2 <= "
        "(1/N) sum "
        "E||g_k||^2 <= (eta^2 tau/N) sum E||grad F_k(., xi)||^2 <= (2 L eta^2 tau/N) sum E[F_k(w_{t,i}^k) - F_k^*].",
        "inequality",
        assumes=ALL,
        check=broken(noisy_optimum, eq16(False), NOISE),
        control=S(eq16(True, 0.99), "eq16.control", corners=[POINT]),
        broken="the repaired last step times 0.99",
        error="wrong step",
        repair=f"eta^2 tau^2 sigma^2 added on the right, {SIGMA} ({FRESH}): smoothness bounds the exact gradient only. "
        "As printed it holds where every sample's loss is L-smooth and nowhere below F_k^*",
        repaired=S(eq16(True), "eq16", "with eta^2 tau^2 sigma^2", BEYOND, ANY_STEP),
        implies="as printed a client at the minimum would not move, however noisy its gradients. The lemma survives, "
        "for (28) adds (2 + mu - mu eta) eta^2 tau^2 G^2 too much",
    ),
    flss(
        "eq17",
        "App. C.8 (17)",
        "2 E<w_t - w^*, (1/N) sum_k ghat_k> = (2 eta/N) sum_k E<w^* - w_t, sum_i grad F_k(w_{t,i}^k, xi)>.",
        "expectation",
        assumes=ALL,
        caveat=GIVEN,
        check=equal(eq17, "eq17"),
        as_printed=unconditional(eq17_sides),
        control=equal(eq17, "eq17", corners=TILTED),
        broken="w_t - w^* not in span P",
        implies="epsilon_t, by which w_t - w^* leaves span P, drops out only because E[g_t | w_t] lies in it",
    ),
    flss(
        "eq18",
        "App. C.8 (18)",
        "C_1 <= (eta/N) sum E[||w_{t,i}^k - w_t||^2/eta + eta ||grad F_k(w_{t,i}^k, xi)||^2] <= (1/N) sum "
        "E||w_{t,i}^k - "
        "w_t||^2 + (2 L eta^2/N) sum E[F_k(w_{t,i}^k) - F_k^*] (C_1 is defined with 1/K, K undefined: N).",
        "inequality",
        assumes=ALL,
        check=broken(noisy_optimum, eq18(True), NOISE),
        control=S(eq18(False, 0.99), "eq18.control", corners=[POINT]),
        broken="the repaired last step times 0.99",
        error="wrong step",
        repair=f"grad F_k(w_{{t,i}}^k) in place of grad F_k(w_{{t,i}}^k, xi) in the middle ({FRESH}); then the ends "
        f"hold",
        repaired=S(eq18(False), "eq18", "exact gradients in the middle", BEYOND, ANY_STEP),
        implies="nothing for (20), which uses the ends",
    ),
    flss(
        "eq19",
        "App. C.8 (19)",
        "C_2 = (2 eta/N) sum E<w^* - w_{t,i}^k, grad F_k(w_{t,i}^k)> <= (2 eta/N) sum E[F_k(w^*) - F_k(w_{t,i}^k) - "
        "(mu/2) "
        "||w_{t,i}^k - w^*||^2] (C_2 is defined with 1/K, K undefined: N).",
        "inequality",
        assumes=(CONVEX, UNBIASED),
        caveat=f"{FRESH}: unbiasedness is printed at w_t and used at w_{{t,i}}^k, which depends on the earlier samples",
        check=worst_of(
            S(eq19(), "eq19", "for every client and step", BEYOND, ANY_STEP),
            equal(eq19_equality, "eq19", "the equality"),
        ),
        as_printed=broken(kept_sample, eq19_sides, "one sample +-1 kept for two steps, F = w^2/2, w_t = 0"),
        control=S(eq19(1.01), "eq19.control", corners=CORNER),
        broken="1.01 mu",
    ),
    flss(
        "eq20",
        "App. C.8 (20)",
        "2 E<w_t - w^*, (1/N) sum ghat_k> <= (1/N) sum E||w_{t,i}^k - w_t||^2 + (2 L eta^2/N) sum E[F_k(w_{t,i}^k) "
        "- F_k^*] "
        "+ (2 eta/N) sum E(F_k(w^*) - F_k(w_{t,i}^k)) - (mu eta/N) sum E||w_{t,i}^k - w^*||^2.",
        "inequality",
        assumes=ALL,
        caveat=f"{GIVEN}; {FRESH}",
        check=S(eq20(), "eq20", corners=BEYOND, needs=ANY_STEP),
        as_printed=without(eq20(), broken(ratchet, eq20(), KEPT)),
        control=S(eq20(0.99), "eq20.control", corners=[Edge(N=1, d=1, R=1, kappa=1.0, share=3.0, still=True)]),
        broken="the first two terms on the right times 0.99",
    ),
    flss(
        "eq21",
        "App. C.8 (21)",
        "E||v_{t+1} - w^*||^2 <= E||w_t - w^*||^2 - D_1 + (1/N) sum E||w_{t,i}^k - w_t||^2 + D_2.",
        "inequality",
        assumes=ALL,
        check=broken(noisy_optimum, eq21(0.0), NOISE),
        control=broken(noisy_optimum, eq21(0.99), "with 0.99 eta^2 tau^2 sigma^2"),
        broken="0.99 of the repair's new term",
        error="wrong step",
        repair=f"eta^2 tau^2 sigma^2 added on the right, {SIGMA}; 3.4.4 given w_t; {FRESH}",
        repaired=S(eq21(1.0), "eq21", "with eta^2 tau^2 sigma^2", BEYOND, ANY_STEP),
        implies="inherited from (16): SGD at the optimum would not move",
    ),
    flss(
        "eq22",
        "App. C.8 (22)",
        "-||w_{t,i}^k - w^*||^2 = ... <= -(1 - eta) ||w_t - w^*||^2 + (1/eta - 1) ||w_{t,i}^k - w_t||^2.",
        "inequality",
        check=with_units(
            worst_of(
                S(eq22(), "eq22", "any step size", [*edges(), *edges(share=3.0)], ANY_STEP),
                equal(eq22_equality, "eq22"),
            ),
            lambda q: [q.D, q.at.lr * q.D],
            False,
        ),
        control=S(eq22(0.99), "eq22.control", corners=[Edge(R=1, noise=False, kappa=0.0), Edge(d=1, R=1)]),
        broken="the Cauchy-Schwarz terms times 0.99",
    ),
    flss(
        "eq23",
        "App. C.8 (23)",
        "gamma_t = 2 eta (1 - L eta tau - L eta): D_2 = -(gamma_t/N) sum E[F_k(w_{t,i}^k) - F^*] + (2 L eta^2 "
        "(tau+1)/N) sum "
        "E[F^* - F_k^*]; 0 <= gamma_t <= 2 eta for eta <= 1/(L (tau+1)).",
        "identity",
        assumes=(STEP,),
        check=worst_of(equal(eq23(), "eq23"), chain(needs_chain(), "0 <= gamma_t <= 2 eta")),
        control=equal(eq23(0.99), "eq23"),
        broken="0.99 of the second term",
    ),
    flss(
        "eq24",
        "App. C.8 (24)",
        "(1/N) sum E[F_k(w_{t,i}^k) - F_k(w_t)] >= (1/N) sum E<grad F_k(w_t), w_{t,i}^k - w_t> >= -(1/(2N)) sum "
        "E[eta ||grad "
        "F_k(w_t)||^2 + ||w_{t,i}^k - w_t||^2/eta] >= -(1/N) sum E[eta L (F_k(w_t) - F_k^*) + ||w_{t,i}^k - "
        "w_t||^2/(2 eta)].",
        "inequality",
        assumes=(SMOOTH, CONVEX),
        check=S(eq24(), "eq24", "its three steps", BEYOND, ANY_STEP),
        control=S(eq24(0.99), "eq24.control", corners=[POINT]),
        broken="0.99 L in the last step",
    ),
    flss(
        "eq25",
        "App. C.8 (25)",
        "-(gamma_t/N) sum E[F_k(w_{t,i}^k) - F^*] <= (gamma_t/N) sum E[eta L (F_k(w_t) - F_k^*) + ||w_{t,i}^k - "
        "w_t||^2/(2 eta) "
        "- (F(w_t) - F^*)].",
        "inequality",
        assumes=(SMOOTH, CONVEX, STEP),
        check=S(eq25(), "eq25", "3/4 is reached where gradients are constant", [STRAIGHT, *edges(), *edges(share=0.3)]),
        control=S(eq25(0.74), "eq25.control", corners=[STRAIGHT]),
        broken="the first two terms times 0.74",
    ),
    flss(
        "eq26",
        "App. C.8 (26)",
        "-(gamma_t/N) sum E[F_k(w_{t,i}^k) - F^*] + 2 L eta^2 tau (tau+1) Gamma <= ... = ... <= (2 L eta^2 tau^2 + "
        "4 L eta^2 "
        "tau) Gamma + (1/N) sum E||w_{t,i}^k - w_t||^2.",
        "inequality",
        assumes=(SMOOTH, CONVEX, STEP),
        check=worst_of(S(eq26(), "eq26", "both inequalities"), equal(eq26_equality, "eq26", "the equality")),
        control=S(eq26(3.9), "eq26.control", corners=[Edge(tau=1, still=True, share=1e-3)]),
        broken="3.9 L eta^2 tau in place of 4 L eta^2 tau",
    ),
    flss(
        "eq27",
        "App. C.8 (27)",
        "E||v_{t+1} - w^*||^2 <= (1 - mu eta tau (1 - eta)) E||w_t - w^*||^2 + (2 L eta^2 tau^2 + 4 L eta^2 tau) "
        "Gamma + ((2 + "
        "mu (1 - eta))/N) sum E||w_{t,i}^k - w_t||^2.",
        "inequality",
        assumes=(*ALL, STEP),
        check=broken(noisy_optimum, eq27(0.0), NOISE),
        control=broken(noisy_optimum, eq27(0.99), "with 0.99 eta^2 tau^2 sigma^2"),
        broken="0.99 of the repair's new term",
        error="wrong step",
        repair=f"eta^2 tau^2 sigma^2 added on the right, {SIGMA}; 3.4.4 given w_t; {FRESH}",
        repaired=S(eq27(1.0), "eq27", "with eta^2 tau^2 sigma^2"),
        implies="with one local step and equal clients the error would contract to zero whatever the noise",
    ),
    flss(
        "drift-formula",
        "App. C.8, before (28)",
        "w_{t,i}^k - w_t = sum_{j=1}^i eta_t grad F_k(w_{t,j}^k, xi_{t,j}^k).",
        "identity",
        reading="w_{t,1}^k = w_t, for (16) sums the gradients at w_{t,1}^k, ..., w_{t,tau}^k; with any other numbering "
        "the sign is wrong all the same",
        check=check_drift(1, 1),
        control=check_drift(-1, 1),
        broken="the sign alone corrected",
        error="index",
        repair="w_{t,i}^k - w_t = -sum_{j=1}^{i-1} eta_t grad F_k(w_{t,j}^k, xi_{t,j}^k)",
        repaired=equal(drift(-1, 0), "drift"),
        implies="(28) has sum i^2 where sum (i-1)^2 will do; the surplus pays for the noise that (16) forgets",
    ),
    flss(
        "eq28",
        "App. C.8 (28)",
        "((2 + mu (1 - eta)) eta^2/N) sum_k sum_i E||sum_{j=1}^i grad F_k(w_{t,j}^k, xi)||^2 <= (2 + mu - mu eta) "
        "eta^2 G^2 "
        "tau (tau+1)(2 tau+1)/6.",
        "inequality",
        assumes=(BOUNDED, STEP),
        check=S(eq28(), "eq28"),
        control=S(eq28(0.99), "eq28.control", corners=[PURE]),
        broken="0.99 of the right side",
    ),
]

RATES = [
    flss(
        "thm-c31-stepsizes",
        "App. C.3, C.9",
        "Theorem C.3.1 takes 0 < eta <= min{1/(mu B), 1/(L (tau+1))}, its proof 0 < eta <= min{1/(mu B), 1/(L "
        "(2 tau+1))}: what C.8 and C.9 use of the step size follows.",
        "inequality",
        assumes=(SMOOTH, CONVEX),
        reading="of both ranges; that they are one is not printed",
        check=worst_of(
            chain(needs_chain(), "all that C.8 and C.9 need, for the range of C.3.1"),
            chain(needs_chain(2), "for the range of C.9"),
            ranges,
        ),
        control=chain(needs_chain(1, "99/100"), "eta <= 1/(L (tau + 0.99))"),
        broken="1/(L (tau + 0.99))",
        implies="C.9 proves the theorem for fewer steps than it states, although its argument covers them all; "
        "1/(mu B) is never the smaller of the two where B > 0",
    ),
    flss(
        "thm-c31-B",
        "App. C.9 (30)",
        "Lemmas C.2.1 to C.2.3 give (30), whose last step replaces 1 - mu eta tau (1 - eta) by 1 - mu eta B and "
        "collects C.",
        "inequality",
        assumes=(STEP,),
        check=worst_of(
            equal(eq30_sum, "eq30", "E||w_{t+1} - w^*||^2 is the sum of what the lemmas bound"),
            chain(eq30_chain(), "the last step of (30)"),
            check_C(),
        ),
        control=chain(eq30_chain("99/100"), "B = tau - 0.99 tau/(L (tau + 1))"),
        broken="B = tau - 0.99 tau/(L (tau + 1))",
    ),
    flss(
        "cor-c42-eta1",
        "App. C.10.2",
        "eta_t = beta/(t + gamma), beta > 1/(mu B), gamma > 0, eta_1 <= min{1/(mu B), 1/(L (tau+1))} = 1/(L "
        "(tau+1)): the "
        "choice beta = 2/(mu B), gamma = 2 L^2 (tau+1)^2/(mu tau (L (tau+1) - 1)) - 1.",
        "identity",
        assumes=(SMOOTH, CONVEX, POSITIVE),
        caveat="L (tau + 1) > 1",
        check=check_eta1(False),
        as_printed=check_eta1(True),
        control=check_eta1(False, "199/100"),
        broken="1.99 L^2 (tau + 1)^2 in gamma",
    ),
    flss(
        "eq34",
        "App. C.10.2 (34)",
        "Delta_t <= v/(gamma + t) with v = max{beta^2 C/(beta mu B - 1), (gamma+1) Delta_1}, by induction.",
        "inequality",
        assumes=(
            Printed("eta_t = beta/(t + gamma) <= 1/(mu B), beta > 1/(mu B), gamma > 0", "App. C.10.2"),
            Printed("Delta_{t+1} <= (1 - mu eta_t B) Delta_t + eta_t^2 C", "Theorem C.3.1 (3)"),
        ),
        check=chain(eq34_chain(), "Delta_t <= v/s gives Delta_{t+1} <= v/(s + 1)"),
        control=chain(eq34_chain("99/100"), "0.99 of the first part of v"),
        broken="0.99 of the first part of v",
    ),
    flss(
        "eq35",
        "App. C.10.2 (35)",
        "v <= beta^2 C/(beta mu B - 1) + (gamma+1) Delta_1 = 4 C/(mu^2 B^2) + (gamma+1) Delta_1.",
        "inequality",
        assumes=(Printed("beta = 2/(mu B)", "App. C.10.2"),),
        check=check_35(),
        control=check_35(1),
        broken="3 in place of 4",
    ),
    flss(
        "eq36",
        "App. C.10.2 (36)",
        "E F(w_T) - F^* <= (L/2) v/(gamma + t) <= (kappa/(gamma + t)) (2 C/(mu B^2) + (mu (gamma+1)/2) Delta_1).",
        "rate",
        caveat="t on the right is T",
        check=worst_of(check_36("T"), corollary([eq6(less=0)], True, runs=FEW)),
        as_printed=check_36("t"),
        control=check_36("T", "101/200"),
        broken="1.01 L/2",
    ),
    flss(
        "sharper.round",
        "this package",
        "For every eta, with 3.4.4 given w_t and fresh samples: E||w_{t+1} - w^*||^2 <= (1 - mu eta tau/2) E||w_t - "
        "w^*||^2 + "
        "eta^2 G^2 (3 tau^2 - 2 tau + mu eta (tau-1) tau (2 tau-1)/6 + tau^2 (N-M)/(M (N-1))).",
        "inequality",
        assumes=(CONVEX, UNBIASED, BOUNDED, UNIFORM),
        check=with_units(
            worst_of(
                S(sharp(True), "sharp", "steps up to 30/(L (tau + 1))", FAR, ANY_STEP),
                chain(sharp_chain, "with eta for 1/2 its noise term is below that of Lemma C.2.2"),
            ),
            sharp_pieces,
            True,
        ),
        control=S(sharp(True, 0.99), "sharp.control", corners=[replace(PURE, share=3.0)]),
        broken="the noise term times 0.99",
        implies="no Gamma, no rho_R, no L, no bound on eta, tau^2 in place of tau^3, and units that agree",
    ),
]

CLAIMS: list[Claim] = [*TABLES, *LEMMAS, *THEOREM, *SUBSPACE, *SETS, *C22, *RATES]
