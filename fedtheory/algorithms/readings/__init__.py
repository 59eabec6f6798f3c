"""What the papers leave open: for a method, the alternatives to single steps of its box, and a list of the points."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OpenPoint:
    """A question about an algorithm that its paper does not answer, or answers in two ways.

    Points about data, settings and metrics are answered where they arise, in the notes of a figure's record.

    Fields:
        number: as docstrings and notes of figures cite it ("open point 6"); a section where none has a number.
        question: what is open.
        options: what chooses, among the fields (or methods) of the paper's reading; with all defaults it is the box.
        shown: what shows the choices: ids of items of `figures/`, of claims of the ledger, notebooks, tests.
    """

    number: str
    question: str
    options: tuple[str, ...]
    shown: tuple[str, ...]
