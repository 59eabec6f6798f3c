"""What SSF's statements assume, as printed and as their proofs need it, and the form of a claim.

Four things that the proofs use are not written in Assumptions 1-3 or in Algorithm 1. They are named where they matter:
    fresh        given the past of the round, the noise of every local step has mean zero (a martingale difference).
                 Assumption 2 as printed asks for independence across clients only: one sample kept for all K steps
                 satisfies it. Lemma 2, and proofs of Lemmas 3 and 4, say that they ask for more: there it is printed.
    mean         c^0 = (1/N) sum_i c_i^0. Algorithm 1 takes {c_i^0} and c^0 as free inputs.
    all          all N clients take part in each round: (6) divides by N and Lemma 3 cancels the controls.
    independent  P_t is independent of x^t and c_i^t, not only equal in law to Assumption 3 in each round.
Given all of them, Lemmas 1 to 4 hold, though two steps of Lemma 3's proof, (42) and (55)-(56), are false.
"""

from fedtheory.theory.claim import Printed, entries

MEAN = "c^0 = (1/N) sum_i c_i^0"
ALL = "all N clients take part in every round"
INDEPENDENT = "P_t is independent of x^t and of the controls"
CENTRED = "E[xi_bar | P_t] = 0, which the proof takes for granted at T_1 (there P_t is F_t-measurable)"
UNBIASED = "noise of mean zero given P_t and the past of the round"
TAKEN_MEAN = "Algorithm 1 runs all N clients, and the proof of Lemma 3 takes sum_i c_i^t = N c^t, before (26)"
TAKEN_NOISE = "the proof of Lemma 3 has P_t in F_t and noise of mean zero given F_{t,i,k}, after (31)"
A1 = Printed("each F_i is L-smooth", "Assumption 1")
A2 = Printed(
    "g_i is unbiased, its variance is at most sigma^2, the noises of different clients are independent", "Assumption 2"
)
A3 = Printed("in each round all clients use the same P_t, P_t P_t^T = I_r, E[P_t^T P_t] = (r/d) I_d", "Assumption 3")
A12, A123 = (A1, A2), (A1, A2, A3)
STEPS2 = Printed("given P_t and the past a client's local noises are independent, with mean zero", "Lemma 2")
STEPS3 = Printed("given the past all local noises are independent, with mean zero", "Lemma 3, (49)")
STEPS4 = Printed("all local noises are independent, across steps and clients", "Lemma 4, Step 3")
EVERYONE = Printed("every client i takes part", "Algorithm 1")
X_FIXED = Printed("x^t is fixed before P_t and the stochastic gradients are sampled", "Lemma 3, before eq. (31)")
C_FIXED = Printed("c_i^t and grad F_i(x^t) are fixed before P_t is sampled", "Lemma 4, Step 2")

claim = entries("ssf")
