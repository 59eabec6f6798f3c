"""DeComFL (arXiv:2405.15861v4): every claim, in the paper's order.

Sec. 3 and C.1 are in `box`, Sec. 4.1 in `speedup`, `theorem1` and `theorem2`, Sec. 4.2 and 5 in `costs`, App. A in
`variants`, C.2 in `smooth`, C.3 in `lemmas` and `descent`, C.4 in `moments` and `low_rank`, C.5 in `tails`, and what is
proved in their place in `local`; what they stand on is in `round` (moments), `session` (runs) and `rough` (clients that
are not smooth).
"""

from fedtheory.theory.decomfl import (
    box,
    costs,
    descent,
    lemmas,
    local,
    low_rank,
    moments,
    smooth,
    speedup,
    tails,
    theorem1,
    theorem2,
    variants,
)

ORDER = """abstract.cost; eq2; eq3; eq4a; eq4b; eq4.avg; eq5; history_contents; alg1-2; assump1-3; theorem1 /
theorem3; theorem1.left; remark1-2; corollary1; assump4; thm2.perturbation; theorem2 / theorem4; eq6,62,71; remark3;
table1; s42.kappa; params; table2.bytes; iid_z; eq7; eq8; eq9; A2.queue; eq10; eq10.use; eq10.sgd_only; table4;
A3.pull; A3.seedshift; A3.privacy; alg3-4; eq11-12; alg5; A5.smoothing; A5.taylor; table6.bytes; C1; lemma1; lemma2a;
eq15; eq16; eq17; eq18; eq19-20; eq21; eq22; lemma3; eq24; lemma3.display; lemma4; eq26; lemma5; lemma5.relation;
lemma5.sum; eq27; eq28; lemma5.stepsize; eq30-33; eq34; eq35; eq36-37ab; eq37c; eq38; eq39; eq40; eq41; eq42; eq43-45;
eq46-50; eq51; eq52; lemma6; eq54,60; eq57; eq58; eq59; eq61; eq63-64; eq65; eq66; eq67-68; eq69-70; eq72; theorem5;
eq73; eq74; eq75; eq76; chi2tail; eq77; sharper.one; sharper.drift; sharper.round; sharper.theorem; sharper.numbers"""

_FOUND = {
    claim.id: claim
    for module in (
        box,
        speedup,
        theorem1,
        theorem2,
        costs,
        variants,
        smooth,
        lemmas,
        descent,
        moments,
        low_rank,
        tails,
        local,
    )
    for claim in module.CLAIMS
}
CLAIMS = [_FOUND[f"decomfl.{' '.join(name.split())}"] for name in ORDER.split(";")]
