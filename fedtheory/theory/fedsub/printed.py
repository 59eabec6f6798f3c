"""What FedSub's Sec. 5.1 prints: settings, curves, and the levels that its text names. Figures and claims read it."""

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.core.algorithm import Algorithm
from fedtheory.maps.subspace import Coordinate, Gaussian, Identity, Spherical

M, RANK, LR, TAU = 20, 10, 0.2, 5
LEVELS = {"our-CD": 1e-7, "FedAvg-CD": 1e-5}  # "about", of Fig. 1
RANKS = (5, 10, 15, 18)  # of Fig. 1(c), which does not print them


def methods(r: int = RANK, lr: float = LR) -> dict[str, Algorithm]:
    """The paper's curves by name."""
    return {
        "our-P=I": FedSub(lr, TAU, Identity()),
        "our-CD": FedSub(lr, TAU, Coordinate(r)),
        "our-SS": FedSub(lr, TAU, Spherical(r), form="sums"),
        "our-RD": FedSub(lr, TAU, Gaussian(r), form="sums"),
        "FedAvg": FedAvg(lr, TAU),
        "FedAvg-CD": FedSub(lr, TAU, Coordinate(r), dual=False),
    }
