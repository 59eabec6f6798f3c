"""The paper's conclusions, with the numbers and claims that decide each."""

from fedtheory.papers.conclusions import Conclusion

TAKE_HOME = (
    "Dual variables help in a subspace: without them the remaining error is 2.55 [1.93, 3.39] times as large; the "
    "paper shows 100 times.",
    "In the full space FedSub converges exactly; in a subspace an error remains that more rounds do not remove.",
    "A client uploads one number per dimension of the subspace, as printed.",
    "As printed, Algorithm 1 diverges for two of its three projections.",
    "On a small ResNet FedSub ends 6.93 points [4.56, 9.3] below FedAvg; the paper prints it above FedAvg.",
)

CONCLUSIONS = [
    Conclusion(
        "Dual variables reduce client drift in subspaces and leave a smaller error",
        "Sec. 5.1, Fig. 1(b); Remark 1",
        ("fedsub/fig1b: our-CD below FedAvg-CD",),
        ("fedsub.dual-helps", "fedsub.eq4 / eq17"),
        "Use dual variables with moderate steps, where there is drift to correct. "
        "With long steps, small subspaces or clients whose drift averages out, their variance costs more than they "
        "save.",
        number=("fedsub/fig1b: our-CD below FedAvg-CD", "without dual variables: {} times the error"),
    ),
    Conclusion(
        "In the full space dual variables remove all drift; FedSub converges exactly, beating FedAvg",
        "Sec. 5.1, Figs. 1(a) and 1(b); Sec. 4, observation ii)",
        (
            "fedsub/fig1a: our-P=I (exact convergence)",
            "fedsub/fig1b: our-P=I below our-CD",
            "fedsub/fig1b: our-CD below FedAvg-CD",
            "fedsub/fig1b: FedAvg-CD below FedAvg",
        ),
        ("fedsub.thm1-obs-ii",),
        "Take steps of at most 1/(6 L_f tau) in the full space (L_f: smoothness, tau: local steps). "
        "Theorem 1's printed rule allows steps that never converge.",
    ),
    Conclusion(
        "Projecting to a subspace leaves an error that more rounds do not remove",
        "Sec. 4, observation i); Sec. 5.1, Fig. 1(a)",
        ("fedsub/fig1a: our-* (an error remains)", "fedsub/fig1b: our-P=I below our-CD"),
        ("fedsub.thm1-obs-i",),
        "Expect no such error with one local step, with equal clients or, on quadratics, with equal Hessians. "
        "The projection's variance alone leaves none there, though the bound of conclusion 13 has a term for it.",
    ),
    Conclusion(
        "Random coordinates are the best of the three projections",
        "Sec. 5.1, Fig. 1(a)",
        ("fedsub/fig1a: our-CD below our-SS", "fedsub/fig1a: our-CD below our-RD"),
        ("fedsub.fig1a-cd-best",),
        "Compare the projections on your own data: which is best depends on how the data align with the axes. "
        "The paper does not describe its data. "
        "We run the two other projections in the paper's rewriting (19), as they diverge as printed.",
        number=("fedsub/fig1a: our-CD below our-SS", "uniform directions: {} times the error"),
    ),
    Conclusion(
        "A larger subspace leaves a smaller error",
        "Sec. 5.1, Fig. 1(c)",
        ("fedsub/fig1c: r=* below r=*",),
        ("fedsub.fig1c-mono",),
        "The dimensions are ours; the paper prints none. "
        "At r = 5 the error still falls after 3,000 rounds, so we compare progress there, not the final error.",
        number=("fedsub/fig1c: r=15 below r=10", "r = 10: {} times the error of r = 15"),
    ),
    Conclusion(
        "Even without dual variables subspaces slightly beat FedAvg, possibly because clients drift apart less",
        "Sec. 5.1 on Fig. 1(b)",
        ("fedsub/fig1b: FedAvg-CD below FedAvg",),
        ("fedsub.fedavgcd-better",),
        "This gain is no reason to project: it comes from shorter steps. "
        "FedAvg with equally short steps is better still.",
        number=("fedsub/fig1b: FedAvg-CD below FedAvg", "FedAvg: {} times the error"),
    ),
    Conclusion(
        "A ResNet is more accurate on CIFAR-100 with FedSub than FedAvg, projected or not",
        "Sec. 5.2, Fig. 2",
        ("fedsub/fig2: final: FedAvg < our-CD", "fedsub/fig2: final: FedAvg < our-P=I"),
        (),
        "Tune the rate before you choose. "
        "At the printed rate and at a third of it FedSub is surely behind, projected or not. "
        "At a tenth five seeds leave both final differences open (deep/rates). "
        "We ran a ResNet-8 on 4,000 images of CIFAR-10 at 12 x 12 pixels, with five clients and 28 rounds. "
        "The public code reads FedSub otherwise: P^T P = I, and r/m on the convolutions. "
        "With that reading projected FedSub ends 4.0 points [0.4, 7.6] below FedAvg (n=10: fedsub/fig2).",
        number=("fedsub/fig2: final: FedAvg < our-CD", "{} points, projected FedSub minus FedAvg"),
    ),
    Conclusion(
        "FedSub stays competitive under projection: nearly 58% on CIFAR-100 with and without it",
        "Sec. 5.2 on Fig. 2",
        ("fedsub/fig2: our-CD (nearly)", "fedsub/fig2: our-P=I (nearly)"),
        (),
        "Our ResNet-8 on CIFAR-10 cannot test an accuracy on CIFAR-100.",
        number=("fedsub/fig2: our-CD (nearly)", "{}% on CIFAR-10, projected"),
    ),
    Conclusion(
        "FedSub trains only 43% of that ResNet's parameters",
        "Sec. 5.2, experimental setting",
        ("fedsub/fig2: trainable parameters of our-CD",),
        ("fedsub.fig2-43pct",),
        "With kernels of 3 x 3, as in the network that the paper cites, no reading gives 43%. "
        "The count holds for 7 x 7, as in the public code.",
        number=("fedsub/fig2: trainable parameters of our-CD", "{100}% of the parameters"),
    ),
    Conclusion(
        "A client uploads one number per dimension of the subspace, not of the model",
        "Sec. 3, Table 1 (communication)",
        ("fedsub/table1: *: uplink scalars",),
        ("fedsub.table1-comm",),
        number=("fedsub/table1: FedSub: uplink scalars", "{} of 1,000 numbers"),
    ),
    Conclusion(
        "A client also computes and stores less",
        "Sec. 3, Table 1 (computation, memory); Sec. 7.3",
        (),
        ("fedsub.cg-reduction", "fedsub.table1-comp", "fedsub.table1-mem"),
        "In a usual network a client computes and stores more: it forms the full gradient, then projects. "
        "It saves only where it forms the gradient in the subspace. "
        "Table 1's formulas lie within a factor of 1.4 of our counts.",
    ),
    Conclusion(
        "FedSub corrects drift like SCAFFOLD and FedLin, without their extra communication",
        "Sec. 3, Remark 1",
        (),
        ("fedsub.remark1-scaffold", "fedsub.remark1-fedlin", "fedsub.remark1-extra-comm", "fedsub.eq19"),
        "The conclusion stands but for a side remark: uploading gradients instead of models would not cost more.",
    ),
    Conclusion(
        "On nonconvex losses the gradient falls like 1/K to the projection's floor",
        "Sec. 4, Theorem 1",
        (),
        ("fedsub.thm1", "fedsub.lemma3 / eq46", "fedsub.eq47"),
        "Take the proof's step sizes, for which the bound holds; the printed rule does not imply them. "
        "The rate is for the mean squared gradient over K rounds, on heterogeneous data. "
        "The projection's variance sets the floor.",
    ),
]
