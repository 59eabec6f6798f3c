"""Exercises of notebook 00, the tour."""

from typing import Any

import torch

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.course import first_of, reveals
from fedtheory.course.exercises import Exercise
from fedtheory.course.exercises.symbolic import formula
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run


def ssf_upload(answer: float) -> str:
    """Bytes that a client of SSF sends in a round, for a model of 200 x 30 and r = 10; measured."""
    small = MatrixRegression.ssf(0.5, Key(0).fold("exercise"), n=2, rows=5, d=200, m=30, batch=None)
    algorithm = SSF.haar(1e-3, 1, 10)
    state = algorithm.init(small, small.start(), Key(0))
    _, _, traffic = play_round(algorithm, small, state, small.clients, Key(0))
    sent = traffic.up.bytes / small.n
    slips = {
        "That is one matrix of float64, or two of float32.": sent / 2,
        "You counted numbers, not bytes.": sent / 8,
        "You counted bits.": sent * 8,
        "That is the whole model, as FedAvg sends it.": 8 * 200 * 30,
    }
    return reveals(answer, sent, slips)


def most_steps(answer: Any) -> str:
    """The largest number of local steps at rate 0.003 with which FedAvg ends within 1% of the solution."""
    H = torch.tensor([[[1.0, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    b = torch.tensor([[-1.0, -1.0], [1.0, 2.0]], dtype=torch.float64)
    two, eye = Quadratic(H, b), torch.eye(2, dtype=torch.float64)

    def within(K: int) -> bool:
        moved = eye - torch.linalg.matrix_power(eye - 0.003 * H, K)
        return two.error(torch.linalg.solve(moved.sum(0), torch.einsum("nij,nj->i", moved, b))) <= 0.01

    return first_of(
        [
            (isinstance(answer, int), "A number of local steps is whole."),
            (lambda: answer >= 1, "A client takes at least one step."),
            (lambda: within(answer), "With so many local steps FedAvg ends farther than 1% away: too many."),
            (lambda: not within(answer + 1), "One local step more still ends within 1%: too few."),
        ]
    )


def _rest(problem: Quadratic) -> torch.Tensor:
    """Where FedAvg(0.2, 20) rests, from the formula of section 1."""
    eye = torch.eye(2, dtype=problem.dtype)
    moved = eye - torch.linalg.matrix_power(eye - 0.2 * problem.H, 20)
    return torch.linalg.pinv(moved.sum(0)) @ torch.einsum("nij,nj->i", moved, problem.b)


def at_rest(answer: Any) -> str:
    """A quadratic problem of two clients, far apart, at whose solution FedAvg ends."""
    return first_of(
        [
            (isinstance(answer, Quadratic), "A Quadratic is asked for."),
            (lambda: answer.b.shape == (2, 2), "Two clients in two dimensions are asked for."),
            (lambda: float((answer.b[0] - answer.b[1]).norm()) >= 1, "The minimisers b are less than 1 apart."),
            (
                lambda: answer.error(_rest(answer)) < 1e-8 and run(FedAvg(0.2, 20), answer, 50)["error"][-1] < 1,
                "FedAvg ends elsewhere: the clients walk towards b at different speeds, or the step is too long.",
            ),
        ]
    )


def drift(answer: Any) -> str:
    """How far FedAvg's resting point lies from the solution, to first order in eta; one dimension, two clients."""

    def far(h1: Any, h2: Any, b1: Any, b2: Any, K: Any, eta: Any) -> Any:
        return eta * (K - 1) / 2 * h1 * h2 * (h1 - h2) * (b2 - b1) / (h1 + h2) ** 2

    slips = {
        "With one local step FedAvg is gradient descent and ends at the solution; yours does not.": (
            lambda h1, h2, b1, b2, K, eta: far(h1, h2, b1, b2, K + 1, eta)
        ),
        "Twice too far: how many pairs of steps are there among K?": (
            lambda h1, h2, b1, b2, K, eta: 2 * far(h1, h2, b1, b2, K, eta)
        ),
        "The sign: the client with the larger curvature is finished earlier, so the other one pulls.": (
            lambda h1, h2, b1, b2, K, eta: -far(h1, h2, b1, b2, K, eta)
        ),
        "That is how far one round moves a server that stands at the solution; it rests where such moves cancel.": (
            lambda h1, h2, b1, b2, K, eta: far(h1, h2, b1, b2, K, eta) * eta * K * (h1 + h2) / 2
        ),
        "That is the distance of the plain average of b_1 and b_2, where FedAvg ends for large K.": (
            lambda h1, h2, b1, b2, K, eta: (b1 + b2) / 2 - (h1 * b1 + h2 * b2) / (h1 + h2)
        ),
    }
    points = [(1, 0.5, 2, 5, 4, 0.1), (0.3, 2, 1, 4, 1, 0.2), (3, 1, 6, 1, 7, 0.01), (1, 1, 1, 3, 5, 0.1)]
    return formula(answer, far, points, slips)


EXERCISES = {
    1: Exercise(
        "compute",
        1,
        "which two things does a client of SSF send, of what shape, in numbers of how many bytes?",
        ssf_upload,
        right=("2 * (10 * 30) * 64 // 8", "4800.0"),
        wrong={"10 * 30 * 8": "one matrix", "2 * 10 * 30": "not bytes", "200 * 30 * 8": "whole model"},
    ),
    2: Exercise(
        "compute",
        1,
        "resting_point, from section 1, gives the end for any K: try some.",
        most_steps,
        right=("sum(two.error(resting_point(0.003, K)) <= 0.01 for K in range(1, 80))",),
        wrong={"1": "too few", "90": "too many", "14.5": "is whole", "None": "is whole", "0": "at least one"},
    ),
    3: Exercise(
        "break",
        2,
        "look at the equation for the resting point: what if all M_i are the same?",
        at_rest,
        right=(
            "Quadratic(torch.eye(2).expand(2, 2, 2), torch.tensor([[0.0, 0.0], [0.0, 1.5]]))",
            "Quadratic(0.005 * torch.eye(2).double().expand(2, 2, 2), torch.tensor([[0.0, 0.0], [0.0, 1.5]]).double())",
        ),
        wrong={
            "Quadratic(H, b)": "different speeds",
            "Quadratic(H, torch.zeros(2, 2))": "less than 1 apart",
            "Quadratic(H[:1].expand(2, 2, 2), b / 100)": "less than 1 apart",
            "2 * H": "A Quadratic is asked for",
        },
    ),
    4: Exercise(
        "derive",
        3,
        "expand 1 - (1 - eta h)^K to second order in eta: the b_i are averaged with other weights than in x*.",
        drift,
        right=(
            "lambda h1, h2, b1, b2, K, eta: h1 * h2 * (h2 - h1) * (b1 - b2) * eta * (K - 1) / (2 * (h1 + h2) ** 2)",
            "lambda h1, h2, b1, b2, K, eta: eta * (1 - K) / 2 * (h1**2 * (b1 - (h1 * b1 + h2 * b2) / (h1 + h2))"
            " + h2**2 * (b2 - (h1 * b1 + h2 * b2) / (h1 + h2))) / (h1 + h2)",
        ),
        wrong={
            "lambda h1, h2, b1, b2, K, eta: eta * K / 2 * h1 * h2 * (h1 - h2) * (b2 - b1) / (h1 + h2) ** 2": (
                "With one local step"
            ),
            "lambda h1, h2, b1, b2, K, eta: eta * (K - 1) * h1 * h2 * (h1 - h2) * (b2 - b1) / (h1 + h2) ** 2": (
                "Twice too far"
            ),
            "lambda h1, h2, b1, b2, K, eta: eta * (K - 1) / 2 * h1 * h2 * (h1 - h2) * (b1 - b2) / (h1 + h2) ** 2": (
                "The sign"
            ),
            "lambda h1, h2, b1, b2, K, eta: eta**2 * K * (K - 1) / 4 * h1 * h2 * (h1 - h2) * (b2 - b1) / (h1 + h2)": (
                "how far one round moves"
            ),
            "lambda h1, h2, b1, b2, K, eta: (b1 + b2) / 2 - (h1 * b1 + h2 * b2) / (h1 + h2)": "for large K",
            "lambda h1, h2, b1, b2, K, eta: 0": "too small",
        },
        tells=(r"\(K - 1\)",),
    ),
    5: Exercise(
        "explain",
        3,
        rubric={
            "Both numbers are right: a run takes rounds times latency and computation, plus bytes over bandwidth. "
            "Report A describes a fast link, report B a slow one.": 1,
            "The gain comes from the step size, not from the subspace: with the same step the two need the same bytes. "
            "So each method must be tuned before it is compared.": 1,
            "Neither report says what comes down, what a client computes and keeps, or where else it holds: one "
            "problem, full gradients, all clients present, one target error.": 1,
        },
        weak={
            "SSF is better, since it sends less.": "Counts a round's bytes and not a run's.",
            "SCAFFOLD is better, since it needs fewer rounds.": "Takes rounds for time, whatever the link.",
            "It depends.": "Names no quantity on which it depends.",
        },
    ),
}
