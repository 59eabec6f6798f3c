"""Problems whose constants are known."""

from fedtheory.problems.images import ImageClassification
from fedtheory.problems.logistic_regression import LogisticRegression
from fedtheory.problems.matrix_regression import MatrixRegression
from fedtheory.problems.quadratic import Quadratic

PROBLEMS = {"quadratic": Quadratic, "matrix_regression": MatrixRegression, "logistic_regression": LogisticRegression}

__all__ = ["PROBLEMS", "ImageClassification", "LogisticRegression", "MatrixRegression", "Quadratic"]
