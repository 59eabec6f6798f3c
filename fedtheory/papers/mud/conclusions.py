"""What the paper concludes, and which numbers and claims decide it."""

from fedtheory.papers.conclusions import Conclusion

CONCLUSIONS = [
    Conclusion(
        "BKD+AAD (Kronecker blocks, averaged without error) is the most accurate compression method at equal bytes",
        "Sec. 5.2, Tables 1 and 3",
        tuple(
            f"mud/table*: * {rival} < FedMUD+BKD+AAD" for rival in ("FedHM", "FedLMT", "FedPara", "EF21-P", "FedBAT")
        ),
        (),
        "Run on Fashion-MNIST with the paper's network and length, and on a smaller CIFAR-10; with the paper's eight "
        "layers and length on two fifths of its images, one seed, it is ahead of FedBAT by 8 points under Dirichlet "
        "labels and 5 with three labels a client, 0.7 ahead of EF21-P and 1.6 behind (mud/cifar10). What is open is "
        "FedBAT in Table 1, under label skew, and EF21-P in Table 3, without it: there the lead is 0.3 points, printed "
        "3.1. EF21-P is 2.7 to 3.9 points above its printed levels, and sends 1.5 times BKD+AAD's bytes in both "
        "directions together. FedPara is three to four points below with the public code's ratio, that of the whole "
        "network, by which it has lower ranks than a plain product; with that of each decomposed layer, and half as "
        "many bytes again, it gains 2.4 points [1.7, 3.2] and 2.2 [0.1, 4.3], and its levels are open (mud/ratio). "
        "For most of FedMUD's variants, and on CIFAR-10 for FedLMT, the best of the settings that were tried lie at "
        "an end of them (mud/tuning, mud/tuning_fmnist): a wider grid could move them. Uploads of the whole network "
        "are 3.0 to 3.2% of FedAvg's, FedPara's 2.6 to 2.7%; the printed ratio can also be read of its compressed "
        "layers.",
    ),
    Conclusion(
        "Even the most accurate variant, BKD+AAD, stays behind FedAvg when it sends a 32nd of the model",
        "Sec. 5.6 on Table 1",
        ("mud/table1: * FedMUD+BKD+AAD < FedAvg",),
    ),
    Conclusion(
        "Decomposing the update of the model, not the model itself, loses less: FedMUD is more accurate than FedLMT, "
        "FedHM and FedPara",
        "Secs. 3.1 and 5.2, Tables 1 and 3",
        tuple(f"mud/table*: * {rival} < FedMUD" for rival in ("FedHM", "FedLMT", "FedPara")),
        ("mud.what",),
        "Proved is only that the model that clients start from is left untouched. What is open is FedLMT in every "
        "column, and FedHM wherever labels are skewed; without skew FedHM is behind, as printed. The tables themselves "
        "print FedPara ahead of FedMUD in half of Table 1's columns, on CIFAR-10 too; in our runs it is far behind, on "
        "CIFAR-10 and on Fashion-MNIST, by a ratio that leaves it the lowest ranks; by that of each layer it is still "
        "six points behind with the paper's network on CIFAR-10 (mud/ratio, mud/cifar10, one seed).",
        ("mud/table1: CIFAR-10 N1 FedPara < FedMUD",),
    ),
    Conclusion(
        "Each of BKD and AAD improves FedMUD, and both together most",
        "Sec. 1, contributions; Sec. 5.2, Tables 1 and 3",
        (
            "mud/table*: * FedMUD < FedMUD+BKD",
            "mud/table*: * FedMUD < FedMUD+AAD",
            "mud/table*: * FedMUD+BKD < FedMUD+BKD+AAD",
            "mud/table*: * FedMUD+AAD < FedMUD+BKD+AAD",
        ),
        (),
        "In one cell of Table 3 the paper prints a loss by BKD.",
    ),
    Conclusion(
        "AAD brings more than BKD",
        "Sec. 5.4 on Fig. 3; Tables 1 and 3",
        ("mud/table*: * FedMUD+BKD < FedMUD+AAD",),
        ("mud.fig3.single",),
        "In both columns of SVHN Table 1 prints BKD ahead.",
    ),
    Conclusion(
        "AAD is better than freezing one of the two factors",
        "Sec. 5.3, Tables 2 and 4",
        ("mud/table*: * FedMUD+F < FedMUD+AAD", "mud/table*: * FedMUD+BKD+F < FedMUD+BKD+AAD"),
        (),
        "Printed as consistent; on Fashion-MNIST the tables themselves print leads of 0.4 points at most, twice none, "
        "and once the other way round.",
    ),
    Conclusion(
        "FedMUD and its variants converge faster than FedHM, FedLMT and FedPara",
        "Sec. 5.2, Figs. 2 and 6",
        ("mud/fig*: *FedMUD* converges faster than *",),
        ("mud.remark3",),
        "The theorem compares two bounds, and orders no two algorithms.",
    ),
    Conclusion(
        "The decomposed update should start anew in every round; with one start for all rounds accuracy falls to "
        "FedLMT's",
        "Sec. 5.4, Figs. 3 and 7",
        ("mud/fig*: *worse at s = R than at s = 1: *", "mud/fig*: *FedMUD at s = R minus FedLMT"),
        ("mud.text.s_R_equals_fedlmt",),
        "It is FedLMT only if the model starts at zero and both factors at random. A reset in every round and none at "
        "all were run; the paper sees one in two or four rounds ahead now and then.",
    ),
    Conclusion(
        "BKD is less sensitive to the size of the initial values, and needs larger ones",
        "Sec. 5.5, Figs. 4 and 7",
        (
            "mud/fig*: *its best a is larger than without BKD: *",
            "mud/fig*: *it is less sensitive to a than without BKD: *",
        ),
        (),
        "Less sensitive is read as: more of the five values from 1/4 to 64 come within ten points of the best. Towards "
        "large values BKD loses less than low rank, towards small ones more, as if it only moved the best value.",
    ),
    Conclusion(
        "Accuracy grows as the compression weakens",
        "Sec. 5.6, Figs. 5 and 7",
        ("mud/fig*: *gains from weaker compression: *",),
    ),
    Conclusion(
        "At an eighth of the bytes BKD+AAD is as accurate as FedAvg",
        "Sec. 5.6 on Fig. 5",
        ("mud/fig*: *FedMUD+BKD+AAD at 1/8 minus FedAvg",),
        (),
        "Comparable is read as: within two points.",
    ),
    Conclusion(
        "On a ResNet-18, too, BKD+AAD is ahead of FedLMT and nearest to FedAvg",
        "App. A, Table 5",
        ("mud/table5: *",),
    ),
    Conclusion(
        "BKD reaches a full rank with as many parameters as a product of low rank",
        "Secs. 1 and 3.2, Fig. 1(b); App. B",
        (),
        ("mud.bkd.fewer", "mud.rank.lowrank", "mud.appB.bkd_fullrank", "mud.ratio.bkd", "mud.fig1b.count"),
        "What is false is a count in the figure's caption, off by a factor of two. Full rank is reached by blocks "
        "chosen together, which the paper's argument does not give; the parameters are as few while k is at most r.",
    ),
    Conclusion(
        "AAD removes the error that averaging the two factors of a product makes",
        "Sec. 3.3, Fig. 1(c)",
        (),
        ("mud.fig1c", "mud.eq6", "mud.eq7", "mud.eq8-9", "mud.aad.any_product"),
    ),
    Conclusion(
        "FedMUD converges at FedAvg's rate 1/sqrt(T), slower the more rarely it starts anew, hence faster than FedLMT",
        "Sec. 4, Theorem 1, Remarks 1 to 3",
        (),
        ("mud.theorem1", "mud.remark1", "mud.remark2", "mud.stationary"),
        "Under further assumptions a repaired bound holds; it says nothing of which method is faster.",
    ),
]
