"""What FedMUD's paper prints: Tables 1 to 5, accuracies in percent.

Columns: data and partition; N1: Dirichlet, N2: few labels per client.
"""

SETS = ("FMNIST", "SVHN", "CIFAR-10", "CIFAR-100")
TABLE1 = {
    "FedAvg": (90.3, 88.6, 89.7, 88.3, 81.0, 77.8, 49.8, 44.8),
    "FedHM": (87.2, 84.5, 73.8, 71.1, 66.5, 63.3, 28.5, 23.3),
    "FedLMT": (87.3, 84.4, 71.0, 70.1, 64.7, 62.1, 28.4, 23.4),
    "FedPara": (87.1, 84.4, 82.4, 79.3, 70.6, 66.6, 29.3, 25.3),
    "EF21-P": (84.1, 82.0, 82.5, 76.7, 47.2, 46.8, 15.2, 13.8),
    "FedBAT": (88.4, 86.7, 85.2, 83.8, 75.0, 72.3, 37.4, 34.2),
    "FedMUD": (87.9, 85.8, 81.3, 78.5, 68.9, 65.8, 29.4, 28.9),
    "FedMUD+BKD": (88.2, 86.7, 84.8, 83.5, 70.2, 67.5, 35.7, 30.7),
    "FedMUD+AAD": (88.5, 87.0, 84.7, 82.5, 73.3, 72.3, 37.4, 35.1),
    "FedMUD+BKD+AAD": (89.0, 87.6, 86.6, 84.9, 75.9, 73.9, 41.2, 36.1),
}
TABLE2 = {
    "FedMUD+F": (88.5, 81.0, 71.1, 35.3),
    "FedMUD+AAD": (88.5, 84.7, 73.3, 37.4),
    "FedMUD+BKD+F": (88.6, 84.9, 74.4, 38.0),
    "FedMUD+BKD+AAD": (89.0, 86.6, 75.9, 41.2),
}
TABLE3 = {
    "FedAvg": (91.9, 92.3, 87.4, 59.1),
    "FedHM": (89.1, 79.9, 76.4, 35.9),
    "FedLMT": (89.1, 79.6, 75.9, 34.6),
    "FedPara": (89.2, 86.1, 76.7, 37.8),
    "EF21-P": (87.9, 87.9, 64.4, 28.1),
    "FedBAT": (90.5, 89.3, 82.8, 47.3),
    "FedMUD": (90.0, 87.3, 79.2, 43.5),
    "FedMUD+AAD": (90.9, 89.1, 83.0, 50.5),
    "FedMUD+BKD": (90.5, 88.5, 79.0, 45.7),
    "FedMUD+BKD+AAD": (91.0, 89.5, 83.2, 51.4),
}
TABLE4 = {
    "FedMUD+F": (87.1, 90.9, 80.2, 87.4, 67.5, 82.2, 33.0, 48.4),
    "FedMUD+AAD": (87.0, 90.9, 82.5, 89.1, 72.3, 83.0, 35.1, 50.5),
    "FedMUD+BKD+F": (87.4, 90.9, 83.3, 88.5, 71.2, 81.9, 33.3, 48.7),
    "FedMUD+BKD+AAD": (87.6, 91.0, 84.9, 89.5, 73.9, 83.2, 36.1, 51.4),
}
TABLE5 = {
    "FedAvg": (84.1, 40.0),
    "FedLMT 16x": (76.4, 31.3),
    "FedMUD+BKD+AAD 16x": (83.2, 36.9),
    "FedLMT 32x": (73.9, 13.8),
    "FedMUD+BKD+AAD 32x": (79.6, 33.4),
}


def named(*partitions: str) -> tuple[str, ...]:
    """Columns such as "CIFAR-10 N1", data set by data set."""
    return tuple(f"{name} {partition}" for name in SETS for partition in partitions)
