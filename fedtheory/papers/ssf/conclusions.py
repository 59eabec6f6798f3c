"""What the paper concludes, and which numbers and claims decide it."""

from fedtheory.papers.conclusions import Conclusion

CONCLUSIONS = [
    Conclusion(
        "With subspaces of a fifth of the dimensions SSF is more accurate than FedSub at every heterogeneity",
        "Sec. 5.2.1, Table 2, Fig. 1",
        ("ssf/table2: het=* r=20 SSF < FedSub",),
        (),
        "FedSub's level hangs on a choice that neither paper prints: in these runs the dual of an absent client "
        "stays as it is when the subspace changes. If it turns with the subspace, FedSub lies ahead of SSF at het = "
        "0.5 (one seed, 5,000 rounds: ssf/readings).",
    ),
    Conclusion(
        "In small subspaces (1, 5 and 10% of the dimensions) FedSub is comparable to SSF",
        "Sec. 5.2.2, Table 3",
        ("ssf/table3: text: FedSub r=* / SSF r=* (comparable)",),
        (),
        "Comparable is read as: within a factor of 1.5. At 10% FedSub's error is 1.6 times SSF's (printed: 1.16), at "
        "5%, where the table has FedSub ahead, 1.4 times. If absent clients go on stepping their duals and every round "
        "has a new basis, which Table 1 does not say, it is 1.1 times at 10%, and ahead at 5% (ssf/stale).",
    ),
    Conclusion(
        "SCAFFOLD in the full space stays the best; SSF is second and lies close to it",
        "Sec. 5.2.1; Tables 2 and 4",
        (
            *(f"ssf/table2: het={het} r=20 SSF" for het in ("0.1", "0.5", "2.0")),
            *(f"ssf/table4: het={het} r=50 SSF" for het in ("0.1", "0.5", "2.0")),
            "ssf/table2: het=* r=20 Full-SCAFFOLD < SSF",
            "ssf/table4: het=* r=50 Full-SCAFFOLD < SSF",
            "ssf/table4: het=* r=50 SSF < Full-FedAvg",
            "ssf/table2: het=0.1 r=20 SSF < Full-FedAvg",
            "ssf/table2: het=* r=20 SSF < FedSub",
            "ssf/table2: het=2.0 r=20 SSF < Full-FedAvg",
        ),
        (),
        "Sure at het = 2.0, where SSF's error is 1.7 (r = 20) and 1.4 to 1.5 times (r = 50) SCAFFOLD's, in print and "
        "here. Open are SCAFFOLD ahead of SSF at het = 0.1 and 0.5, and SSF ahead of FedAvg at 0.1. The table also has "
        "FedSub ahead of FedAvg at het = 0.5, r = 20, which is contradicted: FedSub's error is a quarter above "
        "(level with it where absent clients go on stepping their duals and every round has a new basis: ssf/stale).",
    ),
    Conclusion(
        "The larger the subspace, the smaller SSF's error: from a tenth of the dimensions on it is near the full "
        "space's",
        "Secs. 5.2.2 and 5.4, Table 3, Fig. 2",
        (
            *(f"ssf/table3: het=2.0 r={r} SSF" for r in (1, 5, 10, 20, 50)),
            "ssf/table3: text: SSF r=1 / SSF r=5 (nearly)",
        ),
        ("ssf.r_tradeoff",),
        "Judged are five levels, and that r = 5 has a 36th of the error of r = 1. Near is the paper's word: at r = 10 "
        "and 20 SSF's error is 1.8 and 1.7 times SCAFFOLD's, in print and here, and about FedAvg's. Sec. 5.4 says it "
        "of all toy experiments; at the two lower heterogeneities the printed errors rise from r = 20 to r = 50.",
    ),
    Conclusion(
        "A single direction in a hundred is too few: the error stays a hundred times SCAFFOLD's",
        "Sec. 5.2.2, Table 3, r = 1",
        ("ssf/table3: text: SSF r=1 / Full-SCAFFOLD (more than)",),
    ),
    Conclusion(
        "In large subspaces (half of the dimensions) FedSub becomes unstable and ends in NaN at every heterogeneity",
        "Secs. 5.2.2, 5.2.3, Table 4, Fig. 3",
        (*(f"ssf/table4: het={het} r=50 FedSub" for het in ("0.1", "0.5", "2.0")),),
        ("ssf.fedsub_diverges", "fedsub.float.mean-dual"),
        "In our reading FedSub stays finite. If the dual of an absent client is updated in every round, too, with the "
        "last local model that it sent (its endpoint), FedSub ends in NaN at half of the dimensions and not below: "
        "with a basis every five rounds, into which endpoints are turned, at 0.4 to 5 times the printed levels (one "
        "seed: ssf/readings), with a new basis every round in the printed orders (five seeds: ssf/stale). A search "
        "over readings found this; that it fits does not show that it was run. With FedSub's own scale the error "
        "grows without bound at r = 5, 20 and 50 (one seed: ssf/why_nan), by rounding errors, not by the lost "
        "information that the paper names.",
    ),
    Conclusion(
        "Deep networks on CIFAR-100 come in the order SCAFFOLD, SSF, FedAvg, FedSub",
        "Sec. 5.3 (137), Table 5, Fig. 4",
        ("ssf/fig4: final: *",),
        (),
        "Run: a ResNet-8 on 4,000 images of CIFAR-10 at 12 x 12 pixels, five clients, 28 rounds, at FedSub's rate, "
        "as SSF prints none; at a third of it all three are surely behind FedAvg, at a tenth five seeds leave every "
        "final difference to it open (deep/rates). "
        "The paper says itself that SCAFFOLD's compute is not equal to the others'.",
    ),
    Conclusion(
        "On CIFAR-100 SSF loses about 7.5 points to SCAFFOLD",
        "Sec. 5.3 on Table 5",
        ("ssf/table5: text: Full-SCAFFOLD minus SSF",),
        (),
        "What is judged at our scale is the sign of the difference, not its size.",
    ),
    Conclusion(
        "SSF converges like 1/T plus 1/sqrt(NKT): twice the clients or local steps need half the rounds",
        "Abstract; Sec. 4, Theorem 1, Corollary 1",
        (),
        ("ssf.abstract.rate", "ssf.theorem1", "ssf.cor1"),
        "With all clients in every round, fresh noise in each local step and other constants: yes. With a sample of "
        "the clients, as in the toy experiments: no, heterogeneity leaves an error that does not go away, as the "
        "mean of the participants' fresh controls has all of FedAvg's sampling noise (claim ssf.partial_control). A "
        "mean of all stored controls has none, for the same bytes.",
    ),
    Conclusion(
        "Data heterogeneity does not appear in the rate",
        "Sec. 4.8, after the proof of Corollary 1",
        (),
        ("ssf.no_heterogeneity_term",),
        "Heterogeneity enters the term in 1/T, unless every client starts with a full gradient. Where only some "
        "clients take part, and the server averages their controls alone, its effect never goes away (claim "
        "ssf.partial_control).",
    ),
    Conclusion(
        "Compared with SCAFFOLD the rate loses no more than the ratio of the space's dimension to the subspace's",
        "Sec. 4.8, comparison with SCAFFOLD",
        (),
        ("ssf.cor1.vs_scaffold",),
        "Without gradient noise it is the square of that ratio with the corollary's step; with shorter local steps the "
        "ratio itself (claim ssf.sharper.short).",
    ),
    Conclusion(
        "Communication per round falls by the factor by which the subspace is smaller than the space",
        "Secs. 1, 3.6, 3.7 (communication)",
        (),
        ("ssf.cost.comm", "ssf.shared_projector"),
        "A client that missed rounds lacks what happened outside the subspace, and has to be sent it.",
    ),
    Conclusion(
        "A client's computation and memory fall as well, without any full-dimensional state",
        "Secs. 1, 3.6, 3.7 (computation, memory)",
        (),
        ("ssf.cost.compute", "ssf.cost.memory"),
        "As printed a client forms the full model and the full gradient and projects then: on the ledger's example a "
        "round costs its clients 1.2 to 4.2 times SCAFFOLD's multiplications. Where the gradient is evaluated on "
        "projected data, it costs 0.4 to 0.7 times in subspaces of a tenth and less, and more from a quarter on. The "
        "controls are full-dimensional; Sec. 3.7 says itself that they are kept, in slower memory.",
    ),
    Conclusion(
        "Keeping the part of the controls outside the subspace preserves what FedSub loses when the subspace changes",
        "Secs. 3.3, 3.5, 3.7",
        (),
        ("ssf.info_loss", "ssf.eq6-7"),
    ),
    Conclusion(
        "The analysis needs weaker assumptions than FedSub's",
        "Sec. 4.8, comparison with FedSub",
        (),
        ("ssf.vs_fedsub_theory", "ssf.A2"),
        "FedSub asks for no similarity of consecutive subspaces; SSF's own proof uses more about the noise than its "
        "Assumption 2 says.",
    ),
]
