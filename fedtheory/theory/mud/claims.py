"""FedMUD: every claim, in the paper's order; the ledger has the experiments before Section 4.

What the proof uses and what is wrong with it, in short:
    - (31) takes delta_min(V) ||G||_F <= ||V^T G^T||_F for a wide V^T, which has a kernel. Lemma 1 fails for every
      rank below max(m, n), and with it (61), (63), Lemma 6, (66) and (68). Theorem 1 fails for every rank below m: a
      gradient outside the span of U and V is invisible to FedMUD. It holds in the mean over U at a
      reset, see `sharper.reset`, but with less than psi^2: `theorem1.fresh`.
    - (44), (45), (51), (52), (62) put the product of expectations for the expectation of a product: G and Gamma bound
      second moments, fourth moments are needed. With a sure bound on the gradient Gamma holds surely and all is well.
    - (61) bounds layer by layer what smoothness of h bounds for all layers: 2 rho L_s^2 eta^3 E^2 G^2 is missing.
"""

from fedtheory.theory.claim import Claim
from fedtheory.theory.mud import (
    aggregation,
    assumptions,
    decomposition,
    descent,
    drift,
    experiments,
    factors,
    formulation,
    local,
    method,
    reset,
    step,
    theorem,
)

CLAIMS: list[Claim] = [
    claim
    for section in (
        method,  # Sections 1 to 3.1
        decomposition,  # 3.2
        aggregation,  # 3.3
        experiments,  # 5, App. A
        assumptions,  # 4
        reset,
        formulation,  # App. D.1
        factors,  # D.3, Lemmas 1 to 3
        drift,  # Lemma 4
        step,  # Lemma 5
        descent,  # Lemma 6
        theorem,  # D.4
        local,
    )
    for claim in section.claims()
]
