"""What the paper concludes, and which numbers and claims decide it."""

from fedtheory.papers.conclusions import Conclusion

CONCLUSIONS = [
    Conclusion(
        "What crosses in a round is a few numbers, however large the model is, up and down",
        "Secs. 3 and 4.2, Table 1",
        ("decomfl/table1: DeComFL*: uplink per round", "decomfl/table1: DeComFL*: downlink per round"),
        ("decomfl.history_contents", "decomfl.alg1-2", "decomfl.table1"),
        "The download grows with the rounds that a client has missed.",
    ),
    Conclusion(
        "Fine-tuning a model of 1.3 billion parameters takes about 1 MB per client in all, where others send 10 GB a "
        "round",
        "Abstract; Sec. 1",
        (),
        ("decomfl.abstract.cost",),
        "It is arithmetic on the printed rounds: no such model was fine-tuned here. Two of Table 2's costs of that "
        "model are ten times what the printed rounds give.",
    ),
    Conclusion(
        "DeComFL reaches the same accuracy with many times fewer numbers than FedAvg, quantisation or Top-k",
        "Sec. 5, Figs. 2 and 3 right; App. B.3.2, Fig. 6",
        ("decomfl/fig*: scalars, * (above)*",),
        (),
        "The same accuracy is the one at which DeComFL's run ends here, 7 to 32 points below FedAvg's (each number "
        "says both): that DeComFL reaches FedAvg's accuracy is not shown. Where one round of the other method sends "
        "more than DeComFL's whole run, the numbers could not come out otherwise, and count as not tested: what tests "
        "it are the settings of the authors' files on MNIST. On Fashion-MNIST P is a fifth of the printed one, which "
        "makes DeComFL's rounds cheaper and their gains smaller.",
    ),
    Conclusion(
        "Top-k loses accuracy where it sends fewer entries",
        "App. B.3.2 on Fig. 6",
        ("decomfl/fig6: accuracy, TopK, *",),
        (),
        "Ours keeps the largest magnitudes, the authors' public function the largest signed values.",
    ),
    Conclusion(
        "DeComFL needs more rounds than FedAvg and quantisation, but not more by a factor of the model's dimension",
        "Sec. 5, Fig. 3 left",
        (
            "decomfl/fig3a: loss, DeComFL minus FedAvg, end (above)",
            "decomfl/fig3a: loss, DeComFL minus FedCom, end (above)",
            "decomfl/fig3a: rounds to the same loss, DeComFL / FedAvg (below)",
        ),
        (),
        "The dimension is 1.2 million, and the run has 240 rounds, which no factor of that size could show: that is "
        "not tested. Measured are 27 times FedAvg's rounds to DeComFL's last loss.",
    ),
    Conclusion(
        "Of the first-order methods Top-k alone is slower than DeComFL",
        "Sec. 5 on Top-k in Fig. 3 left",
        ("decomfl/fig3a: loss, TopK minus DeComFL, end (above)",),
        (),
        "Ours keeps the largest magnitudes. The authors' public function keeps the largest signed values: with it all "
        "three runs, at our rate of 0.1, leave the finite numbers before round 90. At the 0.001 of the authors' files "
        "it learns (one run, not recorded).",
    ),
    Conclusion(
        "The number of rounds hardly grows with the size of a language model",
        "App. B.3.1, Fig. 5 right",
        ("decomfl/fig5b: *: round of convergence (around)",),
    ),
    Conclusion(
        "The Hessian of a trained network has a low effective rank: most eigenvalues are near 0",
        "App. B.3.1, Fig. 5 left",
        ("decomfl/fig5a: *",),
        (),
        "Run: a ResNet-8 on 16 x 16 pixels, the Hessian of the loss on 5,120 images: its Gauss-Newton part reaches up "
        "to 46,080 of 75,290 directions, so that 39% near zero are forced, and 99% are found.",
    ),
    Conclusion(
        "More perturbations (random directions in a step) give a higher accuracy in the end",
        "Sec. 5, Fig. 2 right",
        ("decomfl/fig2b: accuracy, P = * minus P = *, end (above)*",),
        (),
        "Compared after 240 rounds with the momentum and the split that the text has (K, P and the batch are ours), "
        "and after 100 with the authors' settings; their files have 1,000 and more. "
        "With their momentum, 0.9, batches of 64 in the place of their 256 lose what was learnt (decomfl/batch).",
    ),
    Conclusion(
        "More local steps converge faster",
        "Sec. 5, Fig. 2 left",
        ("decomfl/fig2a: accuracy, K = * minus K = * in round * (above)*",),
    ),
    Conclusion(
        "The number of perturbations matters more than that of local steps",
        "Sec. 5 on Fig. 2",
        ("decomfl/fig2a: accuracy gained in round *, by 4 P minus by 4 K (above)*",),
        (),
        "The paper: more perturbations *eventually* lead to a higher accuracy, which is more influential than local "
        "updates, and slow down the beginning. Compared here early, after as many rounds as the run with K = 4 makes "
        "(60 and 100): in longer runs it may turn. In the authors' result files perturbations do not matter more "
        "than local steps.",
    ),
    Conclusion(
        "Differences of losses are better than gradients projected on the same directions, and bear more rates",
        "App. A.5, Fig. 4",
        ("decomfl/fig4: accuracy, differences minus projection, *", "decomfl/fig4: spread over rates, *"),
        ("decomfl.A5.smoothing", "decomfl.A5.taylor"),
        "Both reasons that the paper names are weaker than they sound: the extra term vanishes in the mean step. In "
        "2,000 rounds with batches of 8 all scalars lose what was learnt at the same two of three rates; with 64 "
        "projected gradients carry one of them to the end. Rates and batches of the figure are not printed.",
    ),
    Conclusion(
        "Fine-tuned language models are as accurate as with FedZO, and as with MeZO or better",
        "Sec. 5, Table 2, accuracies",
        tuple(f"decomfl/table2: *: {method}, accuracy in %" for method in ("DeComFL", "FedZO", "MeZO")),
        (),
        "On a smaller model, SmolLM2-135M, all weights: with SST-2 DeComFL has 72.5% [63.3, 81.7] and FedZO 73.0% "
        "[69.3, 76.6] after 240 rounds, from 52%, which three seeds do not order; with CB, one seed, they have 55 "
        "and 64% of 56 texts after 80, from 55%, where FedZO still was after 65 (decomfl/smollm2, "
        "decomfl/smollm2_cb).",
    ),
    Conclusion(
        "Adapters, trained alone, reach accuracies comparable with those of the whole model",
        "App. B.2, Table 6, accuracies",
        tuple(f"decomfl/table6: *: {method}, accuracy in %" for method in ("DeComFL P=*", "FedZO P=5", "MeZO")),
        (),
        "FedZO's printed costs of adapters are those of a whole model. On a smaller model, SmolLM2-135M, both were run "
        "with SST-2, three seeds: from 52% DeComFL has 68% after 40 rounds with all weights and 52% with adapters, 73 "
        "and 75% after 200, and 72.5% [63.3, 81.7] and 60.7% [29.6, 91.9] in the end. FedAvg ends at 72% with all "
        "weights, with adapters at 83 and 82%, and in one seed at chance (decomfl/smollm2). With CB, 56 texts, one "
        "seed shows no sure move.",
    ),
    Conclusion(
        "A client needs little more memory than its model, the server next to none",
        "App. A.2, Table 4",
        ("decomfl/table4: DeComFL *",),
        ("decomfl.table4", "decomfl.eq10.use"),
        "The table's d leaves out the largest layer, which the text adds and calls negligible: with it a client needs "
        "1.1 times its model for OPT-1.3B, and twice for the small network here. The server keeps the rounds that some "
        "client still needs: up to half of a small model, next to nothing beside a large one. A slip in an "
        "index makes a client play one round twice; repaired.",
    ),
    Conclusion(
        "In general the rate is sqrt(d/(mPKR)): it speeds up linearly in clients, local steps and perturbations",
        "Sec. 4.1, Theorem 1, Corollary 1, Remark 2",
        (),
        ("decomfl.theorem1 / theorem3", "decomfl.corollary1", "decomfl.remark1-2"),
        "More clients do not average out the directions, which they share; local steps and perturbations help only "
        "while there are fewer of them than dimensions.",
    ),
    Conclusion(
        "With a low effective rank the rate does not depend on the dimension",
        "Sec. 4.1, Theorem 2; App. C.5, Theorem 5",
        (),
        ("decomfl.theorem2 / theorem4", "decomfl.eq6,62,71", "decomfl.theorem5"),
        "It is shown for one local step and directions on a sphere; for Gaussian directions, and for more local steps "
        "if the rank is low at every client, a repaired bound holds. It takes the loss of every sample to be smooth, "
        "not only their mean, and is proved for kappa of 0 or more (below it is searched, on few runs).",
    ),
]
