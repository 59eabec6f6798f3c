"""Every figure and table of the papers that is reproduced here: `measure` makes a table, `draw` a figure from it."""

from fedtheory.core.records import Cell, load
from fedtheory.figures import consequences_mud_flss, worst_case
from fedtheory.figures.decomfl import costs as decomfl_costs
from fedtheory.figures.decomfl import curves as decomfl
from fedtheory.figures.decomfl import spectrum, speedup
from fedtheory.figures.deep import items as deep
from fedtheory.figures.fedmud import items as mud
from fedtheory.figures.fedsub import items as fedsub
from fedtheory.figures.flss import items as flss
from fedtheory.figures.frontier import items as frontier
from fedtheory.figures.ssf import items as ssf
from fedtheory.figures.store import Item, Result, Runner

ITEMS: dict[str, Item] = {
    item.name: item
    for item in [
        *fedsub.ITEMS,
        *ssf.ITEMS,
        *deep.ITEMS,
        *mud.ITEMS,
        *flss.ITEMS,
        *decomfl.ITEMS,
        *spectrum.ITEMS,
        *decomfl_costs.ITEMS,
    ]
}
EXTRAS: dict[str, Item] = {
    item.name: item
    for item in [
        *fedsub.EXTRAS,
        *ssf.EXTRAS,
        *mud.EXTRAS,
        *flss.EXTRAS,
        *worst_case.EXTRAS,
        *consequences_mud_flss.EXTRAS,
        *speedup.EXTRAS,
        *deep.EXTRAS,
        *frontier.EXTRAS,
    ]
}

__all__ = ["EXTRAS", "ITEMS", "Cell", "Item", "Result", "Runner", "load"]
