"""Every figure and table of the papers that is reproduced here: `measure` makes a table, `draw` a figure from it."""

from fedtheory.figures import decomfl, fedsub, flss, ssf, worst_case
from fedtheory.figures.store import Cell, Item, Result, Runner, load

ITEMS: dict[str, Item] = {item.name: item for item in [*fedsub.ITEMS, *ssf.ITEMS, *flss.ITEMS, *decomfl.ITEMS]}
EXTRAS: dict[str, Item] = {item.name: item for item in [*fedsub.EXTRAS, *ssf.EXTRAS, *worst_case.EXTRAS]}

__all__ = ["EXTRAS", "ITEMS", "Cell", "Item", "Result", "Runner", "load"]
