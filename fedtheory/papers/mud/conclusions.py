"""The paper's conclusions, with the numbers and claims that decide each."""

from fedtheory.papers.conclusions import Conclusion

TAKE_HOME = (
    "On Fashion-MNIST every printed order that we judge, and that our seeds decide, comes back.",
    "With a 32nd of the bytes BKD+AAD ends 0.933 points [0.871, 0.996] below FedAvg on Fashion-MNIST with Dirichlet "
    "labels.",
    "BKD+AAD's lead over EF21-P without label skew is 0.3 points [-0.02, 0.5]; the paper prints 3.1.",
    "On CIFAR-10 every variant loses accuracy without resets; BKD+AAD loses 3.61 points [2.78, 4.44].",
    "The convergence theorem is false as stated; a repaired bound holds, but does not order two methods.",
)

CONCLUSIONS = [
    Conclusion(
        "BKD+AAD (Kronecker blocks, averaged without error) is the most accurate compression at equal bytes",
        "Sec. 5.2, Tables 1 and 3",
        tuple(f"mud/table*: * {rival} < FedMUD+BKD+AAD" for rival in ("FedHM", "FedLMT", "FedPara", "EF21-P", "FedBAT"))
        + tuple(f"mud/cifar10_full: CIFAR-10 N1 {rival} < FedMUD+BKD+AAD" for rival in ("EF21-P", "FedBAT")),
        (),
        "FedBAT and EF21-P remain alternatives. "
        "Our seeds leave FedBAT open under label skew (Table 1) and EF21-P without it (Table 3). "
        "EF21-P is 2.7 to 3.9 points above its printed levels. "
        "Without label skew it is surely ahead of FedHM, FedLMT, FedMUD and FedBAT; the paper has it last. "
        "It sends 1.5 times BKD+AAD's bytes in both directions together. "
        "We ran Fashion-MNIST and two columns of CIFAR-10 (49,923 images) with the paper's network and length.",
        more="The public code takes the ratio of the whole network. "
        "With the ratio of each decomposed layer, and half as many bytes again, FedPara gains 2.4 points [1.7, 3.2] "
        "and 2.2 [0.1, 4.3]. "
        "Its levels are then open (mud/ratio). "
        "We also ran the paper's eight layers and length on two fifths of CIFAR-10, one seed. "
        "There BKD+AAD leads FedBAT by 8 points under Dirichlet labels and by 5 with three labels a client "
        "(mud/cifar10). "
        "Against EF21-P it is 0.7 ahead under Dirichlet labels and 1.6 behind with three labels. "
        "With 49,923 images and the paper's 24 local steps three seeds ran under Dirichlet labels (mud/cifar10_full). "
        "EF21-P is 0.88 points [0.64, 1.12] behind it; FedBAT, 0.1 [-4.0, 4.2] behind, is open. "
        "With three labels they are 0.9 and 1.3 behind, in one seed. "
        "For most of FedMUD's variants, and on CIFAR-10 for FedLMT, the best setting lies at an end of the grid "
        "(mud/tuning, mud/tuning_fmnist). "
        "A wider grid could move them. "
        "Uploads of the whole network are 3.0 to 3.2% of FedAvg's, FedPara's 2.6 to 2.7%. "
        "The printed ratio can also mean the compressed layers alone.",
        number=("mud/table3: FMNIST IID EF21-P < FedMUD+BKD+AAD", "{} points ahead of EF21-P without label skew"),
    ),
    Conclusion(
        "Even the most accurate variant, BKD+AAD, trails FedAvg at a 32nd of the model",
        "Sec. 5.6 on Table 1",
        ("mud/table1: * FedMUD+BKD+AAD < FedAvg", "mud/cifar10_full: CIFAR-10 N1 FedMUD+BKD+AAD < FedAvg"),
        know="It surely trails on Fashion-MNIST and on a smaller CIFAR-10. "
        "With the paper's network on CIFAR-10 three seeds leave that open.",
        number=("mud/cifar10_full: CIFAR-10 N1 FedMUD+BKD+AAD < FedAvg", "{} points behind FedAvg on CIFAR-10"),
    ),
    Conclusion(
        "Decomposing the update, not the model, puts FedMUD ahead of FedLMT, FedHM and FedPara",
        "Secs. 3.1 and 5.2, Tables 1 and 3",
        tuple(f"mud/table*: * {rival} < FedMUD" for rival in ("FedHM", "FedLMT", "FedPara")),
        ("mud.what",),
        "Do not count on plain FedMUD against FedLMT, which five seeds or fewer leave open in every column. "
        "FedHM is open wherever labels are skewed and behind, as printed, where they are not. "
        "FedPara is far behind on both data sets, with a ratio that leaves it the lowest ranks. "
        "With the ratio of each layer it is still six points behind, with the paper's network on CIFAR-10 (mud/ratio, "
        "mud/cifar10, one seed). "
        "Table 1 prints it ahead of FedMUD in half of its columns, on CIFAR-10 too. "
        "The ledger proves only that FedMUD leaves the clients' starting model untouched.",
        ("mud/table1: CIFAR-10 N1 FedPara < FedMUD",),
        number=("mud/table1: FMNIST N1 FedLMT < FedMUD", "{} points ahead of FedLMT on Fashion-MNIST"),
    ),
    Conclusion(
        "BKD and AAD each improve FedMUD, and both together improve it most",
        "Sec. 1, contributions; Sec. 5.2, Tables 1 and 3",
        (
            "mud/table*: * FedMUD < FedMUD+BKD",
            "mud/table*: * FedMUD < FedMUD+AAD",
            "mud/table*: * FedMUD+BKD < FedMUD+BKD+AAD",
            "mud/table*: * FedMUD+AAD < FedMUD+BKD+AAD",
            "mud/cifar10_full: CIFAR-10 N1 FedMUD+AAD < FedMUD+BKD+AAD",
        ),
        (),
        "BKD alone surely gains in every column that ran. "
        "The four open comparisons lie on Fashion-MNIST with skewed labels. "
        "One cell of Table 3 prints a loss from BKD.",
        number=("mud/table1: FMNIST N1 FedMUD+BKD < FedMUD+BKD+AAD", "{} points added by AAD to BKD"),
    ),
    Conclusion(
        "AAD brings more than BKD",
        "Sec. 5.4 on Fig. 3; Tables 1 and 3",
        ("mud/table*: * FedMUD+BKD < FedMUD+AAD",),
        ("mud.fig3.single",),
        "AAD is surely ahead on CIFAR-10 alone. Table 1 itself prints BKD ahead in both columns of SVHN.",
        number=("mud/table1: FMNIST N1 FedMUD+BKD < FedMUD+AAD", "{} points, AAD minus BKD on Fashion-MNIST"),
    ),
    Conclusion(
        "AAD is better than freezing one of the two factors",
        "Sec. 5.3, Tables 2 and 4",
        ("mud/table*: * FedMUD+F < FedMUD+AAD", "mud/table*: * FedMUD+BKD+F < FedMUD+BKD+AAD"),
        (),
        "Freezing costs little on Fashion-MNIST: our four matches are near ties. "
        "There the paper's tables print leads of at most 0.4 points, two ties and a loss. "
        "Its text calls the lead consistent.",
        number=("mud/table2: FMNIST N1 FedMUD+BKD+F < FedMUD+BKD+AAD", "{} points ahead of BKD with a frozen factor"),
    ),
    Conclusion(
        "FedMUD and its variants converge faster than FedHM, FedLMT and FedPara",
        "Sec. 5.2, Figs. 2 and 6",
        ("mud/fig*: *FedMUD* converges faster than *",),
        ("mud.remark3",),
        "Only runs can show the speed: the theorem compares two bounds, and orders no two algorithms.",
        number=(
            "mud/fig2: fashion_mnist N1: FedMUD converges faster than FedLMT",
            "{} points above FedLMT, mean over the rounds",
        ),
    ),
    Conclusion(
        "FedMUD should reset its update in every round; without resets accuracy falls to FedLMT's",
        "Sec. 5.4, Figs. 3 and 7",
        ("mud/fig*: *worse at s = R than at s = 1: *", "mud/fig*: *FedMUD at s = R minus FedLMT"),
        ("mud.text.s_R_equals_fedlmt",),
        "Reset, but tune the interval: we ran a reset in every round and none at all. "
        "In the paper one every two or four rounds is sometimes ahead. "
        "Without resets FedMUD is FedLMT only if the model starts at zero and both factors at random.",
        number=("mud/fig3: FedMUD at s = R minus FedLMT", "{} points, FedMUD without resets minus FedLMT"),
    ),
    Conclusion(
        "BKD is less sensitive to the size of initial values and needs larger ones",
        "Sec. 5.5, Figs. 4 and 7",
        (
            "mud/fig*: *its best a is larger than without BKD: *",
            "mud/fig*: *it is less sensitive to a than without BKD: *",
        ),
        (),
        "Tune the initial size with BKD, too: BKD mainly moves the best value. "
        "Towards large values BKD loses less than low rank, towards small ones more. "
        'We read "less sensitive" as: more of the five values from 1/4 to 64 come within ten points of the best.',
        number=(
            "mud/fig4: its best a is larger than without BKD: FedMUD+BKD+AAD",
            "{} in the best size's logarithm, with AAD",
        ),
    ),
    Conclusion(
        "Accuracy grows as the compression weakens",
        "Sec. 5.6, Figs. 5 and 7",
        ("mud/fig*: *gains from weaker compression: *",),
        number=("mud/fig5: gains from weaker compression: FedMUD+BKD+AAD", "{} points gained by BKD+AAD"),
    ),
    Conclusion(
        "At an eighth of the bytes BKD+AAD is as accurate as FedAvg",
        "Sec. 5.6 on Fig. 5",
        ("mud/fig*: *FedMUD+BKD+AAD at 1/8 minus FedAvg",),
        (),
        'The paper says "comparable", which we read as within two points.',
        number=("mud/fig5: FedMUD+BKD+AAD at 1/8 minus FedAvg", "{} points, BKD+AAD minus FedAvg"),
    ),
    Conclusion(
        "On a ResNet-18, too, BKD+AAD is ahead of FedLMT and nearest to FedAvg",
        "App. A, Table 5",
        ("mud/table5: *",),
    ),
    Conclusion(
        "BKD reaches full rank with as many parameters as a low-rank product",
        "Secs. 1 and 3.2, Fig. 1(b); App. B",
        (),
        ("mud.bkd.fewer", "mud.rank.lowrank", "mud.appB.bkd_fullrank", "mud.ratio.bkd", "mud.fig1b.count"),
        "BKD has as few parameters only while its number of blocks k is at most the rank r. "
        "Blocks chosen together reach full rank; the paper's argument does not show it. "
        "A count in the figure's caption is false, by a factor of two.",
    ),
    Conclusion(
        "AAD removes the error of averaging the two factors of a product",
        "Sec. 3.3, Fig. 1(c)",
        (),
        ("mud.fig1c", "mud.eq6", "mud.eq7", "mud.eq8-9", "mud.aad.any_product"),
    ),
    Conclusion(
        "FedMUD converges at FedAvg's rate 1/sqrt(T), hence faster than FedLMT; rarer resets slow it",
        "Sec. 4, Theorem 1, Remarks 1 to 3",
        (),
        ("mud.theorem1", "mud.remark1", "mud.remark2", "mud.stationary"),
        "The repaired bound needs further assumptions, and does not say which method is faster.",
    ),
]
