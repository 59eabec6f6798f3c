"""What bfloat16 does to FLSS's Table 2: both bases, with and without FLSS, on the column of Fashion-MNIST."""

from dataclasses import replace

from fedtheory.papers import precision
from fedtheory.papers.flss.items import SETTINGS, method, notes_of, on_fashion, settings_of, spec
from fedtheory.papers.store import Item, Result, Spec, Wants

NAMES = ("FedAvg", "FedAvg+FLSS", "Signsgd+EF", "Sign+EF+FLSS")
PAIRS = (("FedAvg+FLSS", "FedAvg"), ("Sign+EF+FLSS", "Signsgd+EF"))


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Labels by Dirichlet(0.5), five local epochs, in both precisions."""
    at = on_fashion(SETTINGS[scale])

    def one(name: str, seed: int, kind: str) -> Spec:
        here = replace(at, options=(*at.options, ("precision", kind)))
        return spec(here, method(name, here), 0.5, seed)

    table, said = yield from precision.measured(NAMES, seeds, one, 3, PAIRS)
    algorithms = {name: method(name, at) for name in NAMES}
    return Result(table, [], settings_of(at, algorithms), [*said, *notes_of(at, scale)])


EXTRAS = [
    Item("flss/precision", "What bfloat16 does to FLSS", measure, precision.draw, ("quick", "medium")),
]
