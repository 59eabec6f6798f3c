"""Draw pictures again from their finished tables, after a change of their look; nothing is computed.

python -m fedtheory.papers.redraw [--out figures] [ITEM ...]
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fedtheory.papers import EXTRAS, ITEMS, quick, store
from fedtheory.running import records


def redraw(out: Path, name: str) -> bool:
    """Draw `<out>/<name>.png` again from `<out>/<name>.csv`; whether it changed.

    Raises FileNotFoundError where the item is not finished, ValueError where its record is damaged.
    """
    item, scale = {**ITEMS, **EXTRAS}[name], records.load(out, name, pictured=False)["scale"]
    if scale == "quick" and scale in item.scales:
        item = quick.captioned(item)
    return store.repaint(out, name, item.draw)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the named items, or all that are finished, and say which changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="*", metavar="ITEM", help="default: all finished")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder of the figures (default: figures)")
    options = parser.parse_args(arguments)
    for name in options.items:
        if name not in ITEMS and name not in EXTRAS:
            parser.error(f"no item is called {name!r}; python -m fedtheory list names them")
    finished = [name for name in (*ITEMS, *EXTRAS) if (options.out / name).with_suffix(".json").exists()]
    for name in options.items or finished:
        try:
            changed = redraw(options.out, name)
        except (OSError, ValueError) as error:
            sys.exit(f"redraw: {error}")
        if changed:
            print(f"{name}: drawn again")


if __name__ == "__main__":
    main()
