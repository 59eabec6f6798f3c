"""SSF (arXiv:2604.25467v1): every claim. Sections 3.1 to 4.6 in their order, then the rate, costs and Section 5."""

from fedtheory.theory.claim import Claim
from fedtheory.theory.ssf import (
    algorithm,
    corollary,
    costs,
    experiments,
    family,
    lemma1,
    lemma2,
    lemma3,
    lemma4,
    limits,
    rate,
    sharper,
    theorem1,
)

CLAIMS: list[Claim] = [
    *algorithm.CLAIMS,
    *lemma1.CLAIMS,
    *lemma2.CLAIMS,
    *lemma3.CLAIMS,
    *lemma4.CLAIMS,
    *sharper.CLAIMS,
    *family.CLAIMS[:-1],
    *limits.CLAIMS,
    family.CLAIMS[-1],
    *rate.ABSTRACT,
    *costs.CLAIMS,
    *theorem1.CLAIMS,
    *corollary.CLAIMS,
    *rate.REMARKS,
    *experiments.CLAIMS,
]
