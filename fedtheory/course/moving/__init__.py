"""Pictures that move: sliders in JupyterLab, and in the book without a kernel.

`moving("drift")` shows the first frame, which is what a notebook is checked with; `moving("drift", live=True)` gives
sliders that compute each frame when they are moved. The book computes all frames when it is built, from the same
functions, and swaps them.
"""

import importlib
from types import ModuleType
from typing import Any

from fedtheory.core import checks
from fedtheory.course import fold, show
from fedtheory.course.moving import costs, factors, local, subspaces, trajectories
from fedtheory.course.moving.frame import Moving, word

PICTURES: dict[str, Moving] = {
    picture.name: picture for file in (local, subspaces, factors, trajectories, costs) for picture in file.PICTURES
}


@checks.arguments
def moving(name: str, *, live: bool = False) -> None:
    """Show a picture that moves: what to look for, and its first frame.

    Args:
        name: one of PICTURES.
        live: with sliders, in JupyterLab; it needs ipywidgets.

    Raises ValueError for an unknown name, ImportError where ipywidgets is missing.
    """
    picture = PICTURES[checks.choice("name", name, PICTURES)]
    if live:
        return _live(picture, _widgets())
    fold(f"{picture.title}. {picture.look}")
    fold(f"Here: {picture.words(picture.first)}.")
    show(picture.frame(), values=picture.values)


def _widgets() -> ModuleType:
    try:
        return importlib.import_module("ipywidgets")
    except ImportError:
        fix = "pip install -c constraints.txt -e '.[notebooks]', or moving(name) for the first frame"
        checks.reject("live", True, "the package ipywidgets, which is not installed", fix, ImportError)


def _live(picture: Moving, widgets: Any) -> None:
    """One slider per parameter above the frame, which is computed anew when one of them is moved."""
    from IPython.display import display

    sliders = {
        name: widgets.SelectionSlider(
            options=[(word(value), value) for value in values],
            value=picture.first[name],
            description=picture.label(name),
            continuous_update=False,
            style={"description_width": "initial"},
            layout={"width": "32em"},
        )
        for name, values in picture.sliders.items()
    }
    frame = lambda **setting: show(picture.frame(**setting), values=picture.values)
    said = widgets.HTML(f"<b>{picture.title}.</b> {picture.look}")
    display(widgets.VBox([said, *sliders.values(), widgets.interactive_output(frame, sliders)]))
