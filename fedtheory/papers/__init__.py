"""Every figure and table of the papers that is reproduced here: `measure` makes a table, `draw` a figure from it.

ITEMS and EXTRAS (our own pictures) map names to items, each of which is imported when it is asked for.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import lazy_loader

from fedtheory.core import registry
from fedtheory.running.records import Cell, load

if TYPE_CHECKING:
    from fedtheory.papers.store import Item, Result, Runner, measured

__getattr__, _, _ = lazy_loader.attach(__name__, submod_attrs={"store": ["Item", "Result", "Runner", "measured"]})

__all__ = ["EXTRAS", "ITEMS", "Cell", "Item", "Result", "Runner", "load", "measured"]


class Named(Mapping[str, "Item"]):
    """Items by name."""

    def __init__(self, ours: bool) -> None:
        self._names = tuple(name for name, item in registry.items().items() if item.ours == ours)

    def __getitem__(self, name: str) -> "Item":
        if name not in self._names:
            raise KeyError(name)
        return registry.item(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


ITEMS, EXTRAS = Named(False), Named(True)
