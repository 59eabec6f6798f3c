"""SSF (arXiv:2604.25467v1), Section 5: settings of its matrix regression and the errors that Tables 2 to 4 print."""

import math

D = 100  # rows of X: P_t acts on each of its columns
SAMPLED, STEPS, REFRESH = 10, 5, 5  # Table 1
RATE = {0.1: 1e-2, 0.5: 1e-2, 2.0: 1e-3}  # (136)
METHODS = ("Full-SCAFFOLD", "Full-FedAvg", "SSF", "FedSub")
NAN = math.nan


# Names of the cells in which our runs are judged.


def rate_cell(het: float) -> str:
    """The cell of ssf/table1 that holds the rate chosen at this heterogeneity."""
    return f"het={het} learning rate"


def final_cell(het: float, r: int, method: str) -> str:
    """The cell of a final error of Tables 2 to 4."""
    return f"het={het} r={r} {method}"


def order_cell(het: float, r: int, low: str, high: str) -> str:
    """The cell of the ratio of two final errors, the smaller one first."""
    return f"het={het} r={r} {low} < {high}"


MORE = "text: SSF r=1 / Full-SCAFFOLD (more than)"  # of ssf/table3: ratios in the text of Sec. 5.2.2
NEARLY = "text: SSF r=1 / SSF r=5 (nearly)"


# Printed final relative errors at T = 25,000: (het, r) -> method -> value. Tables 2-4; NaN: "NaN (diverged)".
TABLE2 = {
    (0.1, 20): (6.9726e-03, 9.1265e-03, 7.5535e-03, 1.1295e-02),
    (0.5, 20): (6.4701e-03, 1.1197e-02, 8.2431e-03, 1.0556e-02),
    (2.0, 20): (2.0831e-03, 3.8143e-03, 3.4495e-03, 6.0512e-03),
}
TABLE3 = {
    (2.0, 1): (2.12e-03, 3.65e-03, 2.82e-01, 2.81e-01),
    (2.0, 5): (2.03e-03, 3.71e-03, 7.81e-03, 6.76e-03),
    (2.0, 10): (2.06e-03, 3.89e-03, 3.74e-03, 4.32e-03),
    (2.0, 20): (2.08e-03, 3.81e-03, 3.45e-03, 6.05e-03),
    (2.0, 50): (2.08e-03, 3.87e-03, 3.03e-03, NAN),
}
TABLE4 = {
    (0.1, 50): (7.27e-03, 8.25e-03, 7.69e-03, NAN),
    (0.5, 50): (7.00e-03, 1.04e-02, 8.70e-03, NAN),
    (2.0, 50): (2.08e-03, 3.87e-03, 3.03e-03, NAN),
}
TABLES = TABLE2 | TABLE3 | TABLE4
