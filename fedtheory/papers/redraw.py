"""Draw pictures again from their finished tables, after a change of their look; nothing is computed.

python -m fedtheory.papers.redraw [--out figures] [ITEM ...]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from fedtheory.papers import EXTRAS, ITEMS, store


def redraw(out: Path, name: str) -> bool:
    """Draw `<out>/<name>.png` again from `<out>/<name>.csv`; whether it changed.

    Raises FileNotFoundError where the item is not finished, ValueError where its record is damaged.
    """
    return store.repaint(out, name, {**ITEMS, **EXTRAS}[name].draw)


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
        if redraw(options.out, name):
            print(f"{name}: drawn again")


if __name__ == "__main__":
    main()
