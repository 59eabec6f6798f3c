"""FLSS (its appendix; the main body is not known): every claim, in the appendix's order."""

from fedtheory.theory.claim import Claim
from fedtheory.theory.flss import fixed, proof, rates, statements, tables, updates

CLAIMS: list[Claim] = [
    *tables.CLAIMS,  # App. B
    *statements.CLAIMS,  # C.1 to C.4
    *updates.CLAIMS,  # C.5 to C.7
    *proof.CLAIMS,  # C.8
    *rates.CLAIMS,  # C.9, C.10
    *fixed.CLAIMS,  # not in the paper
]
