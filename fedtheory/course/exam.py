"""Forty questions for an examination, with numbers drawn from a seed and answers that the package computes.

A question is a function of `random.Random`: it draws the numbers and returns the text, the answer and the way to it.
No page of the book shows them; `python -m fedtheory course --exam DIR --seed 7` writes a sheet and its solutions.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy import stats

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.flss import FLSS
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.signsgd import SignSGD
from fedtheory.algorithms.ssf import SSF
from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.maps.decomposition import LowRank
from fedtheory.maps.subspace import Coordinate
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run

Draw = random.Random
Asked = tuple[str, float, str]  # text, answer, way


@dataclass(frozen=True)
class Question:
    """One question of a sheet: the notebook that teaches it, its text, its answer as a number, and the way to it."""

    notebook: str
    text: str
    answer: float
    way: str


BANK: list[tuple[str, Callable[[Draw], Asked]]] = []


def asks(notebook: str) -> Callable[[Callable[[Draw], Asked]], Callable[[Draw], Asked]]:
    """Put a question into the bank, under the notebook that teaches it."""

    def put(of: Callable[[Draw], Asked]) -> Callable[[Draw], Asked]:
        BANK.append((notebook, of))
        return of

    return put


@checks.arguments
def draw(seed: int, questions: int = 10) -> list[Question]:
    """Draw questions with their numbers: no question twice, in the order of the notebooks.

    Args:
        seed: of the numbers and of the choice; another class takes another seed.
        questions: how many, at most the whole bank.
    """
    checks.whole("seed", seed, 0)
    checks.whole("questions", questions, 1, len(BANK))
    chosen = sorted(random.Random(f"choice {seed}").sample(range(len(BANK)), questions))
    return [Question(BANK[at][0], *BANK[at][1](random.Random(f"numbers {seed} {at}"))) for at in chosen]


def sheet(asked: Sequence[Question], seed: int, solved: bool) -> str:
    """The questions as Markdown, with answers and ways if `solved`."""
    title = f"# {'Solutions' if solved else 'Examination'}, seed {seed}\n"
    head = "" if solved else "\nName:\n\nGive four digits where a number is not whole.\n"
    parts = []
    for at, one in enumerate(asked, 1):
        behind = f"\n\n**{brief(one.answer)}** (notebook {one.notebook}). {one.way}" if solved else ""
        parts.append(f"\n**{at}.** {one.text}{behind}\n")
    return title + head + "".join(parts)


def brief(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


# Rounds, drift and control variates


def _first_round(method: Any, d: int) -> dict[str, list[float]]:
    """The counted bytes of one client in the first round, on a problem of d float32 numbers."""
    return run(method, Quadratic.random(1, d, Key(0), dtype=torch.float32), 1, metrics=()).columns


@asks("00")
def fedavg_bytes(draw: Draw) -> Asked:
    d, T, S = draw.randint(20, 90), 10 * draw.randint(3, 40), draw.randint(3, 20)
    up = _first_round(FedAvg(0.1, 2), d)["up_bytes"][-1]
    text = (
        f"FedAvg trains {d} float32 numbers for {T} rounds, each with {S} participating clients and 5 local "
        "steps. How many bytes do all clients upload in total?"
    )
    return text, T * S * up, "Bytes do not depend on the local steps."


@asks("00")
def scaffold_bytes(draw: Draw) -> Asked:
    d, T = draw.randint(20, 90), 10 * draw.randint(3, 40)
    up = _first_round(Scaffold(0.1, 2), d)["up_bytes"][-1]
    text = f"SCAFFOLD trains {d} float32 numbers. How many bytes does a client upload in {T} rounds?"
    return text, T * up, "It sends the change of its model and the change of its control."


def _two(draw: Draw) -> tuple[Quadratic, str, list[float]]:
    """Two clients in one dimension with other curvatures and minimisers."""
    h = [draw.choice((0.5, 1.0, 2.0)), draw.choice((3.0, 4.0, 5.0))]
    b = [float(draw.randint(-3, -1)), float(draw.randint(1, 4))]
    H = torch.tensor(h, dtype=torch.float64)[:, None, None]
    words = (
        f"Two clients of equal weight have $f_1 = {h[0]:g}(x - {b[0]:g})^2/2$ and $f_2 = {h[1]:g}(x - {b[1]:g})^2/2$."
    )
    return Quadratic(H, torch.tensor(b, dtype=torch.float64)[:, None]), words.replace("- -", "+ "), [*h, *b]


@asks("00")
def solution_of_two(draw: Draw) -> Asked:
    problem, words, _ = _two(draw)
    x_star = problem.constants.x_star
    assert x_star is not None
    way = "The gradients cancel at the mean of the minimisers, weighted by curvature."
    return f"{words} Where is the minimum of their mean?", float(x_star), way


@asks("00")
def resting_point(draw: Draw) -> Asked:
    problem, words, _ = _two(draw)
    K, lr = draw.randint(2, 6), draw.choice((0.05, 0.1))
    rest = run(FedAvg(lr, K), problem, 2000, every=2000, metrics=()).x
    way = "The changes cancel: $\\sum_i (1 - (1 - \\eta h_i)^K)(x - b_i) = 0$."
    return f"{words} Where does FedAvg rest with $K = {K}$ local steps of rate {lr}?", float(rest), way


@asks("00")
def many_steps(draw: Draw) -> Asked:
    _, words, (_, _, b1, b2) = _two(draw)
    way = "Every client ends at its own minimum, and the server averages these."
    return f"{words} Where does FedAvg rest when the number of local steps grows without bound?", (b1 + b2) / 2, way


@asks("00")
def contraction(draw: Draw) -> Asked:
    h, K, lr = draw.choice((0.5, 1.5, 2.5)), draw.randint(3, 9), draw.choice((0.1, 0.2))
    text = f"A client has $f = {h}x^2/2$ and takes $K = {K}$ steps of rate {lr}. Which share of $x$ is left?"
    return text, (1 - lr * h) ** K, "Each step leaves $1 - \\eta h$."


# Random subspaces


@asks("01")
def price(draw: Draw) -> Asked:
    m, r = 10 * draw.randint(3, 9), draw.randint(2, 12)
    text = (
        f"An isotropic spherical basis has $r = {r}$ columns in $m = {m}$ dimensions. How large is $E\\|Wv "
        "- v\\|^2$ for $\\|v\\| = 1$?"
    )
    return text, m / r - 1, "$E\\|Wv\\|^2 = m/r$ and $E\\langle Wv, v\\rangle = 1$."


@asks("01")
def kept_share(draw: Draw) -> Asked:
    d, r = 10 * draw.randint(3, 9), draw.randint(2, 12)
    text = (
        f"$P$ projects onto {r} of {d} coordinates, drawn uniformly. How large is $E\\|Pg\\|^2$ for $\\|g\\|^2 = {d}$?"
    )
    return text, r, "$E P = (r/d) I$, and $\\|Pg\\|^2 = g^T P g$."


@asks("01")
def unseen(draw: Draw) -> Asked:
    d, r, t = 10 * draw.randint(3, 9), draw.randint(2, 9), draw.randint(5, 20)
    text = (
        f"Each round draws {r} of {d} coordinates anew. Which share of them has nobody seen after {t} "
        "rounds, on average?"
    )
    return text, (1 - r / d) ** t, "A round misses a coordinate with probability $1 - r/d$."


@asks("01")
def rounds_to_see(draw: Draw) -> Asked:
    d, r = 10 * draw.randint(3, 9), draw.randint(2, 9)
    text = f"Each round draws {r} of {d} coordinates anew. After how many rounds have 95% been seen, on average?"
    return text, math.ceil(math.log(0.05) / math.log(1 - r / d)), "$(1 - r/d)^t \\le 0.05$, and $t$ is whole."


@asks("01")
def shrunk(draw: Draw) -> Asked:
    m, r = 10 * draw.randint(3, 9), draw.randint(2, 12)
    text = (
        f"$E W = I$ and $E W^2 = ((m + r + 1)/r) I$, with $m = {m}$, $r = {r}$. Which $a$ makes $E\\|aWv - "
        "v\\|^2$ least?"
    )
    return text, r / (m + r + 1), "Minimise $1 - 2a + a^2 (m + r + 1)/r$."


# FedSub


@asks("02")
def growth(draw: Draw) -> Asked:
    r = draw.randint(2, 6)
    m, start = r * draw.randint(3, 9), draw.choice((14, 15, 16))
    text = (
        f"FedSub's average dual is $10^{{-{start}}}$ by rounding. Its mean square grows by $m/r$ at each "
        f"change of basis, $m = {m}$, $r = {r}$. After how many changes does its root mean square reach 1?"
    )
    return text, math.ceil(2 * start / math.log10(m / r)), f"$(m/r)^{{k/2}} \\ge 10^{{{start}}}$."


@asks("02")
def low_dimension(draw: Draw) -> Asked:
    p, q, r = draw.randint(20, 60), draw.randint(5, 15), draw.randint(2, 9)
    size = Coordinate(r).low(Layout((Layer("w", p, q),))).size
    text = (
        f"FedSub compresses the rows of a layer of {p} x {q} to {r}. How many numbers does a client upload "
        "for the layer?"
    )
    return text, size, "The low matrix has $r$ rows and all columns."


@asks("02")
def to_infinity(draw: Draw) -> Asked:
    ratio = draw.choice((2, 4, 5, 10))
    rounds = math.ceil(2 * math.log10(torch.finfo(torch.float64).max) / math.log10(ratio))
    text = (
        f"A dual of size 1 grows in its root mean square by $\\sqrt{{{ratio}}}$ a round. float64 ends at "
        "$1.8 \\cdot 10^{308}$. After how many rounds does it overflow?"
    )
    return text, rounds, "The first round whose value is above the largest number."


# SSF


@asks("03")
def memory(draw: Draw) -> Asked:
    d, r, digits = 8 * draw.randint(4, 12), draw.randint(2, 6), draw.choice((2, 3, 4))
    text = (
        f"SSF refreshes its control in {r} of {d} dimensions a round, and gradients stay as they are. After "
        f"how many rounds is the expected squared error below $10^{{-{digits}}}$ of the start?"
    )
    return text, math.ceil(digits * math.log(10) / -math.log(1 - r / d)), "A round leaves the share $1 - r/d$."


@asks("03")
def ssf_upload(draw: Draw) -> Asked:
    d, r, T = 10 * draw.randint(4, 9), draw.randint(3, 12), 10 * draw.randint(2, 20)
    up = _first_round(SSF.haar(0.1, 2, r), d)["up_bytes"][-1]
    text = (
        f"SSF trains {d} float32 numbers in subspaces of {r} dimensions. How many bytes does a client "
        f"upload in {T} rounds?"
    )
    return text, T * up, "Coordinates of its model and of its control; the basis is a seed that comes down."


@asks("03")
def damped(draw: Draw) -> Asked:
    d, r, a = 10 * draw.randint(4, 9), draw.randint(2, 12), draw.choice((0.25, 0.5, 0.75))
    text = (
        f"A refresh takes only the share $a = {a}$ of the way, in {r} of {d} dimensions. By which factor "
        "does the expected squared error fall in a round?"
    )
    return text, 1 - (2 * a - a**2) * r / d, "Inside it is $(1 - a)^2$, outside 1."


@asks("03")
def nearer_than_none(draw: Draw) -> Asked:
    d = 2 * draw.randint(20, 60)
    text = (
        f"FedSub's correction is off by $\\sqrt{{d/r - 1}}$ of its length, $d = {d}$. What is the least $r$ "
        "at which it is nearer than no correction?"
    )
    return text, d // 2 + 1, "$d/r - 1 < 1$."


# How theorems are tested and proved


@asks("04")
def sampled(draw: Draw) -> Asked:
    N = draw.randint(6, 12)
    S, values = draw.randint(2, N - 2), [draw.randint(-9, 9) for _ in range(N)]
    spread = sum(v**2 for v in values) / N - (sum(values) / N) ** 2
    text = (
        f"The clients hold {', '.join(map(str, values))}. Which variance has the mean of {S} of them, drawn "
        "without replacement?"
    )
    return text, (N - S) / (S * (N - 1)) * spread, "$\\frac{N - S}{S(N - 1)}$ of the clients' variance."


@asks("04")
def recursion(draw: Draw) -> Asked:
    a, b, K = draw.choice((0.1, 0.2, 0.25)), draw.randint(2, 5), draw.randint(4, 10)
    text = f"$e_0 = 0$ and $e_{{k+1}} \\le {1 + a} e_k + {b}$. Which bound on $e_{{{K}}}$ follows?"
    return text, b * ((1 + a) ** K - 1) / a, "A geometric sum."


@asks("12")
def pull_alone(draw: Draw) -> Asked:
    K, lr, rho = draw.randint(3, 9), draw.choice((0.01, 0.02, 0.1)), draw.choice((0.1, 0.25, 0.5))
    text = (
        "Gradients are constant and exact, $\\|g\\|^2 = 6$. How large is the mean of $E\\|y^k - x\\|^2$ "
        f"over the points where the $K = {K}$ local steps of rate {lr} take their gradients, "
        f"in a subspace with $\\rho = {rho}$?"
    )
    return text, rho * lr**2 * (K - 1) * (2 * K - 1), "$\\rho \\eta^2 \\|g\\|^2 (K - 1)(2K - 1)/6$."


@asks("12")
def total_numbers(draw: Draw) -> Asked:
    rho = draw.choice((0.05, 0.1, 0.2, 0.25))
    text = (
        "A bound is proportional to $1/(\\rho\\tilde\\eta T)$ with $\\tilde\\eta L = \\min(1/4, \\rho/2)$. A round "
        f"sends the share $\\rho = {rho}$. How many numbers are sent for the same bound, "
        "in parts of those at $\\rho = 1$?"
    )
    return text, max(1, 1 / (2 * rho)), "Rounds times share."


# FedMUD


@asks("05")
def factors(draw: Draw) -> Asked:
    m, n, share = 32 * draw.randint(4, 12), 32 * draw.randint(2, 8), draw.choice((8, 16, 32))
    text = f"FedMUD sends about 1/{share} of a layer of {m} x {n}: its rank is rounded up. How many numbers are that?"
    return (
        text,
        LowRank(1 / share).part(m, n).size,
        "$r = \\lceil mn/(c(m + n)) \\rceil$, and the factors have $r(m + n)$.",
    )


@asks("05")
def full_rank(draw: Draw) -> Asked:
    m, n, r = 32 * draw.randint(4, 12), 32 * draw.randint(2, 8), draw.randint(3, 9)
    text = (
        f"Each round adds a matrix of rank {r} to a layer of {m} x {n}. After how many rounds can the sum "
        "have full rank?"
    )
    return text, -(-min(m, n) // r), "Ranks add up at most; the full rank is the smaller side."


@asks("05")
def gap(draw: Draw) -> Asked:
    p, u, v = draw.choice((0.2, 0.25, 0.4)), [draw.randint(-5, 5) for _ in "12"], [draw.randint(1, 9) for _ in "12"]
    u[1] += 6
    v[1] += 9
    text = (
        f"Client 1 has weight {p} and the factors {u[0]} and {v[0]}, client 2 has {u[1]} and {v[1]}. By how "
        "much does the mean of the products exceed the product of the means?"
    )
    return text, p * (1 - p) * (u[0] - u[1]) * (v[0] - v[1]), "$p(1 - p)(u_1 - u_2)(v_1 - v_2)$."


@asks("05")
def kronecker(draw: Draw) -> Asked:
    a, b = draw.randint(2, 5), draw.randint(2, 5)
    text = f"$A$ has rank {a}, $B$ has rank {b}. Which rank has $A \\otimes B + A \\otimes (2B)$?"
    return text, a * b, "The sum is $A \\otimes 3B$, and ranks multiply."


# FLSS


@asks("06")
def energy(draw: Draw) -> Asked:
    q, share = draw.choice((0.5, 0.6, 0.7, 0.8)), draw.choice((0.9, 0.95, 0.99))
    text = (
        f"Singular values fall as $\\sigma_i = {q}^i$, without end. How many directions hold {share:.0%} of "
        "the sum of squares?"
    )
    return text, math.ceil(math.log(1 - share) / (2 * math.log(q))), "$q^{2R}$ is left."


@asks("06")
def warm_up(draw: Draw) -> Asked:
    d, R, T0, T = draw.randint(30, 60), draw.randint(3, 8), draw.randint(10, 20), draw.randint(40, 80)
    problem = Quadratic.random(1, d, Key(0), dtype=torch.float32)
    up = run(FLSS(0.1, 1, R, T0, refresh=0), problem, T, metrics=()).columns["up_bytes"][-1]
    text = (
        f"FLSS trains {d} float32 numbers: {T0} rounds whole, then up to round {T} in {R} directions. How "
        "many bytes does a client upload?"
    )
    return text, up, "$4 (T_0 d + (T - T_0) R)$."


@asks("06")
def lost(draw: Draw) -> Asked:
    a, b = draw.randint(2, 9), draw.randint(1, 9)
    text = f"A gradient has the length {a} inside of the subspace and {b} outside. Which share of its square is lost?"
    return text, b**2 / (a**2 + b**2), "Squares of perpendicular parts add up."


# DeComFL


@asks("07")
def scalars(draw: Draw) -> Asked:
    K, P, T = draw.randint(1, 5), draw.randint(2, 20), 100 * draw.randint(2, 20)
    problem = Quadratic.random(1, 7, Key(0), dtype=torch.float32)
    up = run(DeComFL(1e-3, K, P), problem, 1, metrics=()).columns["up_bytes"][-1]
    text = (
        f"DeComFL trains a model of any size with {K} local steps and {P} perturbations. How many bytes of "
        f"float32 scalars does a client upload in {T} rounds?"
    )
    return text, T * up, "One scalar for each step and direction, at any size."


@asks("07")
def two_point(draw: Draw) -> Asked:
    d, P = 10 * draw.randint(3, 90), draw.randint(5, 50)
    text = (
        f"$g = \\frac{{1}}{{P}} \\sum_j (z_j^T \\nabla f) z_j$ with {P} Gaussian directions in {d} "
        "dimensions. How large is $E\\|g - \\nabla f\\|^2 / \\|\\nabla f\\|^2$?"
    )
    return text, (d + 1) / P, "$E\\|z z^T u - u\\|^2 = (d + 1)\\|u\\|^2$."


@asks("07")
def best_step(draw: Draw) -> Asked:
    d = draw.randint(20, 900)
    text = (
        f"$f = \\|x\\|^2/2$ in {d} dimensions is trained with one Gaussian direction a step. Which rate "
        "lowers $E f$ most?"
    )
    return text, 1 / (d + 2), "$E f$ is multiplied by $1 - 2\\eta + \\eta^2 (d + 2)$."


# Comparing


@asks("08")
def seeds(draw: Draw) -> Asked:
    spread, half = draw.choice((0.8, 1.0, 1.5, 2.0)), draw.choice((0.5, 0.6, 0.75))
    width = lambda n: float(stats.t.ppf(0.975, n - 1)) * spread / math.sqrt(n)
    text = (
        f"Accuracies of seeds have a standard deviation of {spread} points. How many seeds does a 95% "
        f"interval of {half} points to either side need?"
    )
    return text, next(n for n in range(2, 200) if width(n) <= half), "Student's factor."


@asks("08")
def signs(draw: Draw) -> Asked:
    d = draw.randint(100, 900)
    up = _first_round(SignSGD(0.1), d)["up_bytes"][-1]
    text = f"SignSGD sends {d} signs in words of 32 bits, and a float32 scale. How many bytes are that?"
    return text, up, "Whole words, and 4 bytes more."


@asks("08")
def front(draw: Draw) -> Asked:
    rows = [(draw.randint(1, 20), draw.randint(60, 95)) for _ in range(6)]
    on = [a for a in rows if not any(b[0] <= a[0] and b[1] >= a[1] and b != a for b in rows)]
    words = ", ".join(f"({cost} MB, {quality}%)" for cost, quality in rows)
    text = (
        f"Methods have these uploads and accuracies: {words}. How many are on the front, if two equal ones count twice?"
    )
    return text, len(on), "Off it is who costs no less and is no better than another."


# Scale, depth, processes, own data


@asks("09")
def billions(draw: Draw) -> Asked:
    numbers, T = draw.choice((125, 350, 1300)), 100 * draw.randint(2, 20)
    text = (
        f"FedAvg trains {numbers} million float32 numbers for {T} rounds. How many gigabytes ($10^9$ bytes) "
        "does a client that always takes part send and receive?"
    )
    return text, 2 * 4 * numbers * T / 1e3, "The model goes down and up."


@asks("09")
def lost_in_bfloat16(draw: Draw) -> Asked:
    change = 2.0 ** -draw.randint(9, 13)
    moves = lambda w: float(torch.tensor(w, dtype=torch.bfloat16) + change) != w
    text = (
        "What is the least power of two at which a weight in bfloat16 does not notice a change of "
        f"$2^{{{math.log2(change):.0f}}}$? (Halves are rounded to even.)"
    )
    return (
        text,
        next(2.0**e for e in range(-12, 8) if not moves(2.0**e)),
        "Half of the spacing, $2^{-8}$ of the weight.",
    )


@asks("10")
def convolution(draw: Draw) -> Asked:
    kernel, r = draw.choice((3, 5)), draw.choice((1, 2))
    inputs, outputs = 16 * draw.randint(1, 4), 16 * draw.randint(2, 8)
    size = Coordinate(r).low(Layout((Layer("conv", kernel, kernel * inputs * outputs),))).size
    text = (
        f"A convolution has {inputs} inputs, {outputs} outputs and kernels of {kernel} x {kernel}; FedSub "
        f"compresses their rows from {kernel} to {r}. How many numbers train?"
    )
    return text, size, "The other side stays whole."


@asks("13")
def with_headers(draw: Draw) -> Asked:
    h, T, payload = 100 * draw.randint(1, 9), 100 * draw.randint(2, 9), 8 * draw.randint(10, 90)
    text = (
        f"A round has a message down and one up, together {payload} bytes of numbers; each message costs "
        f"{h} bytes more. How many bytes cross in {T} rounds with one client?"
    )
    return text, T * (payload + 2 * h), "Count both messages."


@asks("14")
def unequal(draw: Draw) -> Asked:
    sizes, batch, epochs = [draw.randint(10, 99) for _ in "123"], draw.choice((8, 16)), draw.randint(1, 3)
    text = (
        f"Clients have {sizes[0]}, {sizes[1]} and {sizes[2]} samples and take {epochs} epochs in batches of "
        f"{batch}. How many local steps do they take together?"
    )
    return text, epochs * sum(-(-n // batch) for n in sizes), "Batches of an epoch, rounded up."
