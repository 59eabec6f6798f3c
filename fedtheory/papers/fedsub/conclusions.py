"""What the paper concludes, and which numbers and claims decide it."""

from fedtheory.papers.conclusions import Conclusion

CONCLUSIONS = [
    Conclusion(
        "In subspaces dual variables mitigate client drift: the error that remains is smaller with them",
        "Sec. 5.1, Fig. 1(b); Remark 1",
        ("fedsub/fig1b: our-CD below FedAvg-CD",),
        ("fedsub.dual-helps", "fedsub.eq4 / eq17"),
        "Without them the error is 2.6 times as large [1.9, 3.4], by the paper some 100 times. It holds for moderate "
        "steps, where there is drift to correct: with long steps, small subspaces, or clients whose drift averages "
        "out, the corrections' own variance costs more than they save.",
    ),
    Conclusion(
        "In the full space dual variables remove all drift: FedSub then converges exactly, and beats FedAvg",
        "Sec. 5.1, Figs. 1(a) and 1(b); Sec. 4, observation ii)",
        (
            "fedsub/fig1a: our-P=I (exact convergence)",
            "fedsub/fig1b: our-P=I below our-CD",
            "fedsub/fig1b: our-CD below FedAvg-CD",
            "fedsub/fig1b: FedAvg-CD below FedAvg",
        ),
        ("fedsub.thm1-obs-ii",),
        "That FedAvg lies above is read off fedsub/fig1b: of the four methods each is surely below the next, and "
        "FedAvg is the last. What the theorem says of it needs steps of at most 1/(6 L_f tau), which the printed rule "
        "does not give.",
    ),
    Conclusion(
        "Projecting to a subspace costs accuracy: an error remains that more rounds do not remove",
        "Sec. 4, observation i); Sec. 5.1, Fig. 1(a)",
        ("fedsub/fig1a: our-* (an error remains)", "fedsub/fig1b: our-P=I below our-CD"),
        ("fedsub.thm1-obs-i",),
        "The variance of the projection alone leaves none: it takes several local steps and clients that differ, on "
        "quadratics in their Hessians.",
    ),
    Conclusion(
        "Picking coordinates at random is the best of the three projections",
        "Sec. 5.1, Fig. 1(a)",
        ("fedsub/fig1a: our-CD below our-SS", "fedsub/fig1a: our-CD below our-RD"),
        ("fedsub.fig1a-cd-best",),
        "How the data lie to the axes decides it, and the paper does not say what its data are. Algorithm 1 as printed "
        "diverges with the two others: they run here in the paper's own rewriting (19).",
    ),
    Conclusion(
        "The larger the subspace, the smaller the error",
        "Sec. 5.1, Fig. 1(c)",
        ("fedsub/fig1c: r=* below r=*",),
        ("fedsub.fig1c-mono",),
        "The paper does not print which dimensions it compares. After 3,000 rounds r = 5 still falls: there the number "
        "compares how far it has come, not what remains.",
    ),
    Conclusion(
        "Even without dual variables, training in subspaces is a little more accurate than FedAvg, possibly as "
        "clients drift apart less",
        "Sec. 5.1 on Fig. 1(b)",
        ("fedsub/fig1b: FedAvg-CD below FedAvg",),
        ("fedsub.fedavgcd-better",),
        "Not for that reason: the projected steps are shorter, and FedAvg with steps as short is better still.",
    ),
    Conclusion(
        "A ResNet on CIFAR-100 reaches a higher accuracy with FedSub than with FedAvg, projected or not",
        "Sec. 5.2, Fig. 2",
        ("fedsub/fig2: final: FedAvg < our-CD", "fedsub/fig2: final: FedAvg < our-P=I"),
        (),
        "Run: a ResNet-8 on 4,000 images of CIFAR-10 at 12 x 12 pixels, five clients, 28 rounds, at the printed "
        "rate. At a third of it both are surely behind as well, at a tenth five seeds leave both final differences to "
        "FedAvg open (deep/rates).",
    ),
    Conclusion(
        "On CIFAR-100 FedSub stays competitive under projection: it reaches nearly 58% with and without it",
        "Sec. 5.2 on Fig. 2",
        ("fedsub/fig2: our-CD (nearly)", "fedsub/fig2: our-P=I (nearly)"),
        (),
        "Levels of a ResNet-8 on CIFAR-10 are not judged.",
    ),
    Conclusion(
        "On that ResNet FedSub trains only 43% of the parameters",
        "Sec. 5.2, experimental setting",
        ("fedsub/fig2: trainable parameters of our-CD",),
        ("fedsub.fig2-43pct",),
        "The count is that of kernels of 7 x 7, as in the public code. The network that the paper cites has 3 x 3.",
    ),
    Conclusion(
        "A client uploads as many numbers as the subspace has, not as the model has",
        "Sec. 3, Table 1 (communication)",
        ("fedsub/table1: *: uplink scalars",),
        ("fedsub.table1-comm",),
    ),
    Conclusion(
        "A client computes and stores less as well",
        "Sec. 3, Table 1 (computation, memory); Sec. 7.3",
        (),
        ("fedsub.cg-reduction", "fedsub.table1-comp", "fedsub.table1-mem"),
        "The formulas of Table 1 hold; they say less than FedAvg's only where the gradient is formed in the subspace. "
        "Formed first and projected then, as in any usual network, a client needs more of both.",
    ),
    Conclusion(
        "The correction of drift is that of SCAFFOLD and FedLin, without their extra communication",
        "Sec. 3, Remark 1",
        (),
        ("fedsub.remark1-scaffold", "fedsub.remark1-fedlin", "fedsub.remark1-extra-comm", "fedsub.eq19"),
        "What is false is only that uploading gradients in place of models would cost more.",
    ),
    Conclusion(
        "On nonconvex losses and heterogeneous data the mean squared gradient falls like 1/K over K rounds, down to a "
        "floor that the variance of the projection sets",
        "Sec. 4, Theorem 1",
        (),
        ("fedsub.thm1", "fedsub.lemma3 / eq46", "fedsub.eq47"),
        "With the step sizes that the proof itself uses the bound holds; the printed rule for the step does not imply "
        "them.",
    ),
]
