"""FedMUD, Section 4 and Appendix D: instances that refute what is printed, or come near to equality."""

import math
from dataclasses import replace
from typing import Any

import torch

from fedtheory.theory.instances import Smooth
from fedtheory.theory.mud.round import DOUBLE, SIGNS, Atoms, Instance, layout, rare


def column(*values: float) -> torch.Tensor:
    """Make a column of one entry a client, (N, 1)."""
    return torch.tensor(values, dtype=DOUBLE)[:, None]


def scalars(start: tuple[float, ...], lr: float, E: int, rounds: int = 1, atoms: Atoms = SIGNS, **problem: Any):
    """One decomposed layer of one entry, or, with one number to start from, one that is not decomposed."""
    kappa = problem.pop("kappa", (0.0, 0.0))
    layers = ((1, 1, int(len(start) == 2)),)
    given: dict[str, Any] = {"b": torch.zeros_like(problem["h"])} | problem
    return Instance(
        Smooth(given.pop("h"), given.pop("b"), layout=layout(layers), **given), layers,
        torch.tensor(start, dtype=DOUBLE), torch.zeros(1, dtype=DOUBLE), lr, E, rounds, atoms, kappa,
    )  # fmt: skip


def stuck(lr: float = 2.0**-20, tilt: float = 0.0, U: float = 0.25) -> Instance:
    """f(w) = (w_22 - 1)^2/2, U = (U, tilt), V = 0: where tilt = 0 the gradient E_22 is invisible and nothing moves."""
    h = torch.tensor([[0.0, 0, 0, 1]], dtype=DOUBLE)
    start = torch.tensor([U, tilt, 0, 0], dtype=DOUBLE)
    layers = ((2, 2, 1),)
    problem = Smooth(h, h, layout=layout(layers))
    return Instance(problem, layers, start, torch.zeros(4, dtype=DOUBLE), lr, 1, kappa=(1.0, 1.0))


def tilted() -> Instance:
    """`stuck` with U = (1, 1/8): the gradient is seen by an eighth."""
    return stuck(2.0**-10, 1 / 8, 1.0)


def burst() -> Instance:
    """Two clients with linear losses: eta g = 128 with probability 2^-50, else 0; U = V = 1 at the start."""
    p = 2.0**-50
    return scalars(
        (1, 1), 0.5, 2, atoms=rare(p), h=column(0, 0), a=column(256 * p, 256 * p), noise=column(256, 256)
    )  # fmt: skip


def once() -> Instance:
    """One client, one step, linear loss: eta g = 2 with probability 2^-10, else 0; U = V = 1."""
    p = 2.0**-10
    return scalars((1, 1), 0.5, 1, atoms=rare(p), kappa=(100, 100), h=column(0), a=column(4 * p), noise=column(4))


def flutter(S: int = 512, eta: float = 2.0**-20) -> Instance:
    """One client after a reset, U = 1, V = 0, G = 1, kappa_u^2 = 100: V jumps to -8/eta with probability eta^4/64 in
    each of S iterations; from then on g = sign(w), and U goes from 1 to -7 and back in every iteration. The jump also
    takes a layer that is not decomposed from 0 to -1, where the noise stops.
    """
    u, p = 8 / eta**2, eta**4 / 64
    row = lambda *values: torch.tensor([values], dtype=DOUBLE)
    layers = ((1, 1, 0), (1, 1, 1))
    problem = Smooth(
        row(p / eta, 1), row(-1, 0), shape="huber", a=row(0, p * u), noise=row(1 / eta, u), gate=row(1, 0),
        soft=True, layout=layout(layers),
    )  # fmt: skip
    draws = 1 - torch.eye(S + 1, dtype=torch.long)[:S, None]  # no jump, or one at one of the iterations
    start = torch.tensor([0, 1, 0], dtype=DOUBLE)
    return Instance(problem, layers, start, torch.zeros(2, dtype=DOUBLE), eta, S, 1, rare(p), (100, 0), draws)


def carried() -> Instance:
    """Two clients, two rounds after a reset: V of client 1 jumps to -2 with probability 2^-40; f_2 = 0."""
    p = 2.0**-40
    return scalars(
        (1, 0), 0.5, 2, 2, atoms=rare(p), kappa=(100, 0), h=column(2 * p, 0), b=column(-2, 0), noise=column(4, 0),
        gate=column(0.5, 0),
    )  # fmt: skip


def drifting() -> Instance:
    """64 clients with linear losses, the first one against the others, 64 steps so small that U = V = 1 stays: what
    the clients drift apart is all that the triangle inequality allows.
    """
    return scalars((1, 1), 2.0**-20, 64, h=column(*[0] * 64), a=column(1, *[-1] * 63))


def drifting_whole() -> Instance:
    """`drifting` for a layer that is not decomposed."""
    return scalars((0,), 2.0**-20, 64, h=column(*[0] * 64), a=column(1, *[-1] * 63))


def together() -> Instance:
    """One client with f = -w, U = V = 1, 64 small steps: all gradients add up."""
    return scalars((1, 1), 2.0**-20, 64, h=column(0), a=column(-1))


def one_step() -> Instance:
    """`together`, one step."""
    return scalars((1, 1), 2.0**-20, 1, h=column(0), a=column(-1))


def steady() -> Instance:
    """f = -w, U = eta S G kappa_v at the start, V = 1: U doubles in S = 8 steps."""
    return scalars((2.0**-17, 1), 2.0**-20, 8, kappa=(1, 0), h=column(0), a=column(-1))


def apart() -> Instance:
    """f_1 = w, f_2 = -w, U = V = 1, 64 small steps."""
    return scalars((1, 1), 2.0**-20, 64, h=column(0, 0), a=column(1, -1))


def bowl_and_dome() -> Instance:
    """f_1 = w + w^2/2, f_2 = -w - w^2/2, not decomposed: the clients drift apart, their gradients change alike."""
    return scalars((0,), 2.0**-20, 64, h=column(1, -1), b=column(-1, -1))


def noise() -> Instance:
    """Two clients with nothing but noise, a layer that is not decomposed."""
    return scalars((0,), 0.5, 1, h=column(0, 0), noise=column(1, 1))


def bowl() -> Instance:
    """f = (w - 1)^2/16, not decomposed, one step with eta = 1 = 1/(8 L_s)."""
    return scalars((0,), 1.0, 1, h=column(1 / 8), b=column(1))


def to_the_centre() -> Instance:
    """f = w^2/2, not decomposed, one step with eta = 1/L_s, to the minimum."""
    return scalars((1,), 1.0, 1, h=column(1))


def same_noise() -> Instance:
    """`noise`, the same sign for both clients."""
    both = torch.tensor([[[0, 1], [0, 1]]])
    return replace(noise(), draws=both, odds=torch.full((2,), 0.5, dtype=DOUBLE))


def grown() -> Instance:
    """f = -w, U = 10, V = 0, eta = 1, six steps: U is 320."""
    return scalars((10, 0), 1.0, 6, h=column(0), a=column(-1))


def jumped() -> Instance:
    """f = w/64, the gradient 64 with probability 2^-12, else 0: E g^2 = 1; U = 1, V = 0, eta = 1, one step."""
    p = 2.0**-12
    return scalars((1, 0), 1.0, 1, atoms=rare(p), h=column(0), a=column(64 * p), noise=column(64))


def resting() -> Instance:
    """FedLMT (W = 0, no reset) on f = |w - I|^2/2 with U = V = (1, 0): grad f = -E_22 is invisible."""
    eye = torch.eye(2, dtype=DOUBLE).reshape(1, 4)
    problem = Smooth(torch.ones(1, 4, dtype=DOUBLE), eye, layout=layout(((2, 2, 1),)))
    start = torch.tensor([1, 0, 1, 0], dtype=DOUBLE)
    return Instance(problem, ((2, 2, 1),), start, 0 * eye[0], 2.0**-20, 1)


def rare_drift() -> Instance:
    """Two clients: in the decomposed layer eta g = 256 with probability 2^-60, else 0; the gradient of the other layer
    sees it through a curvature 2^-60 along (1, 1).
    """
    p, L = 2.0**-60, 2.0**-60
    row = lambda *values: torch.tensor([values] * 2, dtype=DOUBLE)
    layers = ((1, 1, 0), (1, 1, 1))
    turn = torch.tensor([[1, 1], [1, -1]], dtype=DOUBLE) / math.sqrt(2)
    problem = Smooth(
        row(L, 0), row(0, 1), a=row(0, 512 * p), noise=row(0, 512), q=turn, layout=layout(layers)
    )  # fmt: skip
    start = torch.tensor([0, 1, 1], dtype=DOUBLE)
    return Instance(problem, layers, start, torch.zeros(2, dtype=DOUBLE), 0.5, 2, 1, rare(p))


def uneven() -> Instance:
    """f_1 = w, f_2 = w/8, U = 1, V = 0."""
    return scalars((1, 0), 0.5, 2, kappa=(100, 100), h=column(0, 0), a=column(1, 1 / 8))


def bent() -> Instance:
    """f_1 = w + w^2, f_2 = -w^2/2, U = 1, V = 0: a step of 1/2 takes the clients to -1/2 and 0, where g_i V_i = 0."""
    return scalars((1, 0), 0.5, 2, h=column(2, -1), a=column(1, 0))
