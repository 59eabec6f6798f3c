"""Change one constant of a proof at a time: no changed file may compile. Needs Coq and the built files.

python proofs/mutants.py
"""

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
# (module, lemma, what its statement says, what a mutant says)
MUTANTS = [
    ("Ssf", "step_2_7", "4/3 *", "5/4 *"),
    ("Ssf", "step_2_8", "exp (1/25) <= 1041/1000", "exp (1/25) <= 1040/1000"),
    ("Ssf", "step_4_3", "<= 3 / rho", "<= 5/2 / rho"),
    ("Ssf", "step_5_5", "<= 33/4", "<= 8"),
    ("Ssf", "step_6_1", "40 * sqrt 2", "39 * sqrt 2"),
    ("Ssf", "step_6_4", "33/4 <", "17/2 <"),
    ("Ssf", "step_6_6", "142/100", "141/100"),
    ("Family", "step_3_5", "4/3 *", "5/4 *"),
    ("Family", "step_6_3", "<= - (9/20)", "<= - (1/2)"),
    ("Family", "step_6_4", "2/3 *", "3/5 *"),
    ("Family", "section_7_1", "40/9 * p", "38/9 * p"),
    ("Family", "section_7_5", "13/3 *", "12/3 *"),
    ("Family", "section_7_3", "9/25 *", "2/5 *"),
    ("Family", "step_9_2", "1041/1000 *", "1040/1000 *"),
    ("Fedsub", "step_2_6", "exp (2/9) <= 5/4", "exp (2/9) <= 6/5"),
    ("Fedsub", "step_4_2", "4 * x ^ 2", "3 * x ^ 2"),
    ("Fedsub", "step_6_4", "25/31", "24/31"),
    ("Fedsub", "theorem", "5 * thm", "4 * thm"),
    ("Fedsub", "step_6_2", "561/100", "560/100"),
    ("Fedsub", "step_8_4", "9/25 * Ga", "8/25 * Ga"),
    ("Fedsub", "theorem_2", "50/3 *", "49/3 *"),
    ("Flss", "step_3_7", "<= - (3/4)", "<= - (4/5)"),
    ("Flss", "theorem", "16 * s_", "15 * s_"),
    ("Flss", "step_4_2", "<= 1/20", "<= 1/21"),
    ("Mud", "step_8_3", "exp (1/4) <= 1285/1000", "exp (1/4) <= 1284/1000"),
    ("Mud", "step_8_6", "625/100 *", "620/100 *"),
    ("Mud", "several", "5 * (Favg", "4 * (Favg"),
    ("Decomfl", "step_1_4", "INR dim + 4", "INR dim + 3"),
    ("Decomfl", "step_9_3", "<= 3", "<= 14/5"),
    ("Decomfl", "step_3_5", "5/2 *", "2 *"),
    ("Decomfl", "k_steps", "6 * (1 - / INR K)", "5 * (1 - / INR K)"),
    ("Sampling", "sampling_variance", "INR N - 1", "INR N"),
    ("Mud", "step_7_4", "701/1000 * theta ^ 3", "700/1000 * theta ^ 3"),
    ("Mud", "step_10_4", "<= fro m n (msub T X) (msub T X) /\\", "<= 9/10 * fro m n (msub T X) (msub T X) /\\"),
    ("Decomfl", "step_11_4", "INR dim + 1", "INR dim + 2"),
    ("Limits", "step_1_4", "2 * L * quad L (at_ s) * (1", "3 * L * quad L (at_ s) * (1"),
    ("Limits", "step_2_2", "2 * L * omega", "L * omega"),
    ("Limits", "step_2_4", "tr / L + 1", "tr / L + 1/2"),
    ("Limits", "step_3_1", "69/100", "68/100"),
    ("Limits", "step_4_3", "INR T + 1/2)", "INR T + 1/3)"),
    ("Limits", "step_5_3", "<= 25/3", "<= 8"),
    ("Limits", "step_5_4", "7/6 * INR M", "1 * INR M"),
    ("Limits", "step_6_1", "9/25", "10/25"),
    ("Mud", "step_1_6", "141/10", "142/10"),
    ("Mud", "step_9_1", "32/10 * (f w0", "31/10 * (f w0"),
    ("Mud", "step_9_3", "(INR tau - 1) * Xstay", "(INR tau - 2) * Xstay"),
    ("Decomfl", "step_6_4", "mu ^ 2 * L ^ 2 / 4", "mu ^ 2 * L ^ 2 / 5"),
    ("Decomfl", "step_10_5", "+ 8 * nrm2 (M w)", "+ 7 * nrm2 (M w)"),
    ("Decomfl", "step_10_4", "1/2 * eta ^ 2 * L ^ 3", "2/5 * eta ^ 2 * L ^ 3"),
    ("Decomfl", "step_10_6", "<= 2 * L * c", "<= 1 * L * c"),
    ("Decomfl", "theorem_2", "2 * (f x0", "1 * (f x0"),
    ("Decomfl", "step_12_1", "- 1/8 *", "- 1/7 *"),
    ("Decomfl", "step_12_2", "4 / (9 * PI) * (1 - 2", "5 / (9 * PI) * (1 - 2"),
    ("Limits", "step_6_4", "/ 144 ->", "/ 100 ->"),
    ("Linear", "step_1_2", "10 / (9 * ell)", "9 / (9 * ell)"),
    ("Linear", "step_1_3", "<= 9/40", "<= 8/40"),
    ("Linear", "step_2_2", "99/400", "100/400"),
    ("Linear", "step_2_4", "17/25", "18/25"),
    ("Linear", "step_3_6", "84 * p", "83 * p"),
]


def change(text: str, lemma: str, old: str, new: str) -> str:
    """Return the source with one constant of one statement changed."""
    start = re.search(rf"(Lemma|Theorem) {lemma}\b", text).start()
    before, statement, proof = text[:start], *text[start:].split("Proof.", 1)
    if old not in statement:
        raise ValueError(f"{lemma} does not say {old}")
    return before + statement.replace(old, new, 1) + "Proof." + proof


def survives(mutant: tuple[str, str, str, str]) -> str | None:
    """Say which mutant compiles, if it does."""
    module, lemma, old, new = mutant
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{module}.v"
        path.write_text(change((HERE / f"{module}.v").read_text(), lemma, old, new))
        done = subprocess.run(["coqc", "-w", "none", "-Q", HERE, "Fedtheory", path], capture_output=True, cwd=folder)
    return None if done.returncode else f"{module}.{lemma} compiles with {new}"


if __name__ == "__main__":
    with ThreadPoolExecutor(2) as pool:
        left = [line for line in pool.map(survives, MUTANTS) if line]
    print("\n".join([*left, f"{len(MUTANTS) - len(left)} of {len(MUTANTS)} mutants do not compile"]))
    sys.exit(bool(left))
