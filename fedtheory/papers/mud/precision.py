"""What bfloat16 does to FedMUD's Table 1."""

from fedtheory.papers import precision
from fedtheory.papers.mud.settings import HERE, SCALES, algorithm, notes, spec, words
from fedtheory.papers.store import Item, Result, Spec, Wants
from fedtheory.theory.mud.printed import TABLE1

NAMES = {"quick": ("FedAvg", "FedMUD+BKD+AAD"), "medium": tuple(TABLE1)}


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Every method of the table in both precisions."""

    def one(name: str, seed: int, kind: str) -> Spec:
        return spec(algorithm(name, HERE, scale), HERE, scale, seed, precision=kind)

    table, said = yield from precision.measured(NAMES[scale], seeds, one, 2)
    return Result(table, [], words(scale, seeds, NAMES[scale]), [*said, *notes(scale)])


EXTRAS = [Item("mud/precision", "What bfloat16 does to the accuracies", measure, precision.draw, SCALES[:2])]
