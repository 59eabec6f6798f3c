"""The paper's conclusions, with the numbers and claims that decide each."""

from fedtheory.papers.conclusions import Conclusion

TAKE_HOME = (
    "A round sends a few numbers, however large the model is; a client that missed rounds downloads more.",
    "With the authors' settings FedAvg sends 3.16 [2.4, 4.17] times as many numbers to reach DeComFL's final accuracy.",
    "On MNIST and Fashion-MNIST DeComFL ends 7 to 32 points below FedAvg.",
    "Early on, four times the local steps gain 27.6 points [21.6, 33.6] more than four times the perturbations; the "
    "paper expects the contrary later.",
    "With a low effective rank a repaired bound is free of the dimension; the printed theorems are false as stated.",
)

CONCLUSIONS = [
    Conclusion(
        "A round sends few numbers, however large the model",
        "Secs. 3 and 4.2, Table 1",
        ("decomfl/table1: DeComFL*: uplink per round", "decomfl/table1: DeComFL*: downlink per round"),
        ("decomfl.history_contents", "decomfl.alg1-2", "decomfl.table1"),
        "The table leaves out the seeds of the round itself, which add five percent to the download.",
        number=("decomfl/table1: DeComFL: downlink per round", "{} numbers down in a round"),
    ),
    Conclusion(
        "Fine-tuning 1.3 billion parameters costs a client 1 MB, others 10 GB a round",
        "Abstract; Sec. 1",
        (),
        ("decomfl.abstract.cost",),
        "The paper says about 1 MB, for all rounds together. "
        "We checked the arithmetic on the printed rounds, and fine-tuned no such model. "
        "Recompute before you quote: two of Table 2's costs of that model are ten times what the printed rounds give.",
    ),
    Conclusion(
        "DeComFL reaches the same accuracy with far fewer numbers than FedAvg, quantisation or Top-k",
        "Sec. 5, Figs. 2 and 3 right; App. B.3.2, Fig. 6",
        ("decomfl/fig*: scalars, * (above)*",),
        (),
        "Do not expect FedAvg's accuracy: \"the same accuracy\" is where DeComFL's run ends, 7 to 32 points lower. "
        "Only two numbers test the claim: FedAvg's with the settings of the authors' files on MNIST. "
        "Elsewhere one round of the other method sends more than DeComFL's whole run, so that method could not win. "
        "On Fashion-MNIST P is a fifth of the printed one, which makes DeComFL's rounds cheaper and their gains "
        "smaller.",
        number=("decomfl/fig2a: scalars, FedAvg / K = 1 (above), authors' files", "FedAvg: {} times as many numbers"),
    ),
    Conclusion(
        "Top-k loses accuracy as it sends fewer entries",
        "App. B.3.2 on Fig. 6",
        ("decomfl/fig6: accuracy, TopK, *",),
        (),
        "Our Top-k is not the authors': see conclusion 6.",
        number=("decomfl/fig6: accuracy, TopK, 10% minus TopK, 5%, end (above)", "{100} points lost from 10% to 5%"),
    ),
    Conclusion(
        "DeComFL needs more rounds than FedAvg and quantisation, but not by the dimension's factor",
        "Sec. 5, Fig. 3 left",
        (
            "decomfl/fig3a: loss, DeComFL minus FedAvg, end (above)",
            "decomfl/fig3a: loss, DeComFL minus FedCom, end (above)",
            "decomfl/fig3a: rounds to the same loss, DeComFL / FedAvg (below)",
        ),
        (),
        "To DeComFL's own last loss it needs at most 27.5 times FedAvg's rounds [15.8, 47.7]. "
        "A run of 240 rounds cannot show a factor of 1.2 million, the dimension, so that part counts as not tested.",
        number=("decomfl/fig3a: loss, DeComFL minus FedAvg, end (above)", "{} more loss than FedAvg"),
    ),
    Conclusion(
        "Of the first-order methods only Top-k is slower than DeComFL",
        "Sec. 5 on Top-k in Fig. 3 left",
        ("decomfl/fig3a: loss, TopK minus DeComFL, end (above)",),
        (),
        "The order depends on the Top-k: ours keeps the largest magnitudes, the authors' public function the largest "
        "signed values. "
        "With theirs all three runs diverge before round 90 at our rate of 0.1. "
        "At their files' rate, 0.001, it learns (one run, not recorded).",
        number=("decomfl/fig3a: loss, TopK minus DeComFL, end (above)", "{} in the loss, Top-k minus DeComFL"),
    ),
    Conclusion(
        "Rounds hardly grow with a language model's size",
        "App. B.3.1, Fig. 5 right",
        ("decomfl/fig5b: *: round of convergence (around)",),
    ),
    Conclusion(
        "Most Hessian eigenvalues of trained networks are near 0",
        "App. B.3.1, Fig. 5 left",
        ("decomfl/fig5a: *",),
        (),
        "Too few images would force it: on our 5,120 the Gauss-Newton part has a rank of at most 46,080 of 75,290. "
        "That alone puts 39% near zero, and we find 99%. "
        "We ran a ResNet-8 on 16 x 16 pixels.",
        number=(
            "decomfl/fig5a: share of eigenvalues below 1% of the largest in size (above)",
            "{100}% of the eigenvalues near 0",
        ),
    ),
    Conclusion(
        "More perturbations a step give a higher final accuracy",
        "Sec. 5, Fig. 2 right",
        ("decomfl/fig2b: accuracy, P = * minus P = *, end (above)*",),
        (),
        "Longer runs may decide it. "
        "We compare after 240 rounds with the text's momentum and split (K, P and the batch are ours). "
        "With the authors' settings we compare after 100 rounds; their files have 1,000 and more. "
        "With their momentum, 0.9, take their batches of 256: batches of 64 lose the accuracy that was gained "
        "(decomfl/batch).",
        number=("decomfl/fig2b: accuracy, P = 40 minus P = 10, end (above)", "{100} points, P = 40 minus P = 10"),
    ),
    Conclusion(
        "More local steps converge faster",
        "Sec. 5, Fig. 2 left",
        ("decomfl/fig2a: accuracy, K = * minus K = * in round * (above)*",),
        number=(
            "decomfl/fig2a: accuracy, K = 4 minus K = 1 in round 100 (above), authors' files",
            "{100} points, K = 4 minus K = 1",
        ),
    ),
    Conclusion(
        "Perturbations matter more than local steps",
        "Sec. 5 on Fig. 2",
        ("decomfl/fig2a: accuracy gained in round *, by 4 P minus by 4 K (above)*",),
        (),
        "For a short run take more local steps. "
        "The paper says that more perturbations *eventually* give a higher accuracy and slow down the beginning. "
        "We compare early, after as many rounds as the run with K = 4 makes (60 and 100): longer runs may turn the "
        "order. "
        "In the authors' result files perturbations do not matter more than local steps.",
        number=(
            "decomfl/fig2a: accuracy gained in round 60, by 4 P minus by 4 K (above)",
            "{100} points, 4 times P minus 4 times K",
        ),
    ),
    Conclusion(
        "Loss differences beat projected gradients and bear more rates",
        "App. A.5, Fig. 4",
        ("decomfl/fig4: accuracy, differences minus projection, *", "decomfl/fig4: spread over rates, *"),
        ("decomfl.A5.smoothing", "decomfl.A5.taylor"),
        "To bear a larger rate, take larger batches, not loss differences. "
        "In 2,000 rounds with batches of 8 all scalars lose the gained accuracy at the same two of three rates. "
        "With batches of 64 projected gradients carry one of the two rates to the end. "
        "The paper prints neither rates nor batches. "
        "It argues with an extra term, which vanishes in the mean step.",
        number=(
            "decomfl/fig4: accuracy, differences minus projection, rate 0.0005 (above)",
            "{100} points at the rate that both survive",
        ),
    ),
    Conclusion(
        "Fine-tuned language models match FedZO and match or beat MeZO",
        "Sec. 5, Table 2, accuracies",
        tuple(f"decomfl/table2: *: {method}, accuracy in %" for method in ("DeComFL", "FedZO", "MeZO")),
        (),
        "On SST-2 three seeds do not order them with a smaller model, SmolLM2-135M (all weights: decomfl/smollm2). "
        "DeComFL has 72.5% [63.3, 81.7] and FedZO 73.0% [69.3, 76.6] after 240 rounds, from 52%. "
        "On CB, one seed, they have 55 and 64% of 56 texts after 80 rounds (decomfl/smollm2_cb). "
        "Both start from 55%, and FedZO is there again after 65.",
    ),
    Conclusion(
        "Adapters alone reach accuracies comparable with the whole model's",
        "App. B.2, Table 6, accuracies",
        tuple(f"decomfl/table6: *: {method}, accuracy in %" for method in ("DeComFL P=*", "FedZO P=5", "MeZO")),
        (),
        "With adapters DeComFL starts slowly and loses accuracy again (SmolLM2-135M, SST-2, three seeds). "
        "From 52% it has 52% after 40 rounds, 75% after 200 and 60.7% [29.6, 91.9] in the end. "
        "With all weights it has 68, 73 and 72.5% [63.3, 81.7]. "
        "FedZO with adapters ends at 50.5% [47.9, 53.0]. "
        "The costs printed for FedZO with adapters are a whole model's.",
        more="FedAvg ends at 72% with all weights, with adapters at 83 and 82%, and in one seed at chance "
        "(decomfl/smollm2). "
        "With CB, 56 texts, one seed shows no sure move.",
    ),
    Conclusion(
        "Clients need little more memory than the model, the server almost none",
        "App. A.2, Table 4",
        ("decomfl/table4: DeComFL *",),
        ("decomfl.table4", "decomfl.eq10.use"),
        "Plan for the model and its largest layer at a client: 1.1 times the model for OPT-1.3B, twice for the small "
        "network here. "
        "The table's d leaves that layer out; the text adds it and calls it typically negligible. "
        "For the server we read that as below 1% of the model. "
        "The server keeps the rounds that some client still needs: up to half of a small model, almost nothing beside "
        "a large one. "
        "As printed, a slip in an index makes a client play one round twice; ours does not.",
        number=(
            "decomfl/table4: DeComFL client, decomfl-fashion: memory / d",
            "client: {} times a small network's size",
        ),
    ),
    Conclusion(
        "The rate sqrt(d/(mPKR)) speeds up linearly in clients, steps and perturbations",
        "Sec. 4.1, Theorem 1, Corollary 1, Remark 2",
        (),
        ("decomfl.theorem1 / theorem3", "decomfl.corollary1", "decomfl.remark1-2"),
        "More clients do not average out the directions, which they share. "
        "Local steps and perturbations help only while there are fewer of them than dimensions.",
    ),
    Conclusion(
        "With a low effective rank the rate does not depend on the dimension",
        "Sec. 4.1, Theorem 2; App. C.5, Theorem 5",
        (),
        ("decomfl.theorem2 / theorem4", "decomfl.eq6,62,71", "decomfl.theorem5"),
        "For one local step and directions on the sphere it holds if the loss of every sample is smooth, not only "
        "their mean. "
        "For Gaussian directions a repaired bound holds, and for more local steps if the rank is low at every client. "
        "This is proved for kappa (the effective rank) of 0 or more; below 0 we only searched, on few runs.",
    ),
]
