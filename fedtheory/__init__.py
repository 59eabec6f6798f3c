"""Federated subspace optimization: every algorithm beside its theorem, and both of them run."""

from fedtheory.algorithms import ALGORITHMS, FLSS, SSF, DeComFL, FedAvg, FedMUD, FedSub, Scaffold, SignSGD
from fedtheory.key import Key
from fedtheory.layout import Layer, Layout
from fedtheory.problems import PROBLEMS, ImageClassification, LogisticRegression, MatrixRegression, Quadratic
from fedtheory.simulate import History, play_round, run
from fedtheory.subspace import Coordinate, Gaussian, Identity, Spherical

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "FLSS",
    "PROBLEMS",
    "SSF",
    "Coordinate",
    "DeComFL",
    "FedAvg",
    "FedMUD",
    "FedSub",
    "Gaussian",
    "History",
    "Identity",
    "ImageClassification",
    "Key",
    "Layer",
    "Layout",
    "LogisticRegression",
    "MatrixRegression",
    "Quadratic",
    "Scaffold",
    "SignSGD",
    "Spherical",
    "play_round",
    "run",
]
