"""The algorithms, one file per method or family."""

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.algorithms.fedmud import FedMUD
from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.flss import FLSS
from fedtheory.algorithms.scaffold import Scaffold
from fedtheory.algorithms.signsgd import SignSGD
from fedtheory.algorithms.ssf import SSF

ALGORITHMS = {
    "FedAvg": FedAvg,
    "SCAFFOLD": Scaffold,
    "FedSub": FedSub,
    "SSF": SSF,
    "FedMUD": FedMUD,
    "DeComFL": DeComFL,
    "FLSS": FLSS,
    "SignSGD": SignSGD,
}

__all__ = ["ALGORITHMS", "FLSS", "SSF", "DeComFL", "FedAvg", "FedMUD", "FedSub", "Scaffold", "SignSGD"]
