"""What the paper concludes, and which numbers and claims decide it."""

from fedtheory.core.conclusions import Conclusion

CONCLUSIONS = [
    Conclusion(
        "BKD+AAD beats all other compression methods at equal bytes",
        "Sec. 5.2, Tables 1 and 3",
        (
            "mud/table1: CIFAR-10 N1 Fed* < FedMUD+BKD+AAD",
            "mud/table1: CIFAR-10 N1 EF21-P < FedMUD+BKD+AAD",
        ),
    ),
]
