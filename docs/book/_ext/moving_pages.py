"""Pictures that move, without a kernel: all frames are computed by the package when the book is built.

A frame is named after its content, so that the same picture is the same file. They are made again where something of
the package, of its libraries or of the committed comparison has changed.
"""

import contextlib
import hashlib
import html as markup
import importlib.metadata
import json
import re

import nbformat
from stage import BOOK, ROOT, Stage
from used import NOTEBOOKS

from fedtheory.course import DPI, describe
from fedtheory.course.moving import PICTURES
from fedtheory.course.moving.frame import Moving, word
from fedtheory.papers import style
from fedtheory.theory.letters import letters

FOLDER = "_static/moving/"
MADE = "_ext/moving.json"  # of the last build: what it was made from, and the files and words of all frames
COLOURS = 64  # lines and areas of a few colours: a fourth of the bytes
Frames = dict[str, list[tuple[str, str]]]  # picture -> a file and its words for each setting


def made_from() -> str:
    """A digest of all that the frames depend on."""
    digest = hashlib.sha256(str(COLOURS).encode())
    for name in ("matplotlib", "numpy", "pillow", "scipy", "torch"):
        digest.update(f"{name} {importlib.metadata.version(name)}".encode())
    for path in sorted([*(ROOT / "fedtheory").rglob("*.py"), *(ROOT / "figures" / "frontier").glob("*.json")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write(stage: Stage) -> Frames:
    """Stage all frames and the page that shows every picture."""
    now, old = made_from(), stage.folder / MADE
    held = json.loads(old.read_text()) if old.exists() else {"from": ""}
    paths = [stage.folder / FOLDER / file for own in held.get("frames", {}).values() for file, _ in own]
    if held["from"] == now and all(path.exists() for path in paths):
        frames = held["frames"]
        for path in paths:
            stage.copy(path, FOLDER + path.name)
    else:
        with contextlib.chdir(ROOT):  # committed results are looked for from here
            frames = {
                name: [_frame(stage, one, setting) for setting in one.settings()] for name, one in PICTURES.items()
            }
    stage.write(MADE, json.dumps({"from": now, "frames": frames}))
    stage.write("look-up/moving.md", "\n".join(page(frames)) + "\n")
    return frames


def _frame(stage: Stage, picture: Moving, setting: dict) -> tuple[str, str]:
    """Draw a frame; its file and what it shows in words."""
    figure = picture.frame(**setting)
    words, data = describe(figure, values=picture.values), style.few_colours(figure, DPI, COLOURS)
    file = f"{picture.name}-{hashlib.sha256(data).hexdigest()[:12]}.png"
    stage.write(FOLDER + file, data)
    return file, f"{picture.words(setting)}. {'; '.join(line.strip() for line in words.splitlines())}"


def html(picture: Moving, frames: Frames, root: str) -> str:
    """The first frame, and for book.js all others. `root`: from the page to the book's root, such as "../"."""
    own, first = frames[picture.name], list(picture.settings()).index(picture.first)
    sliders = [
        {
            "label": picture.label(name),
            "values": [word(value) for value in values],
            "start": list(values).index(picture.first[name]),
        }
        for name, values in picture.sliders.items()
    ]
    data = json.dumps({"folder": root + FOLDER, "sliders": sliders, "frames": own}).replace("</", "<\\/")
    file, words = own[first]
    caption = markup.escape(letters(picture.look))
    return (
        f'<figure class="moving" data-moving="{picture.name}">'
        f'<img src="{root + FOLDER + file}" alt="{markup.escape(words)}">'
        f"<figcaption><strong>{markup.escape(picture.title)}.</strong> {caption}</figcaption>"
        f'<script type="application/json">{data}</script></figure>'
    )


def put(stage: Stage, page: str, frames: Frames) -> None:
    """Put pictures into a page written by hand, each where a comment names it: `<!-- moving drift -->`."""
    root = "../" * page.count("/")
    text = re.sub(
        r"<!-- moving (\w+) -->", lambda found: html(PICTURES[found[1]], frames, root), (BOOK / page).read_text()
    )
    stage.write(page, text)


def shown(source: str) -> Moving | None:
    """The picture that a cell shows."""
    found = re.search(r'^moving\("(\w+)"\)$', source, re.MULTILINE)
    return PICTURES.get(found[1]) if found else None


def page(frames: Frames) -> list[str]:
    """All pictures, each with the notebooks that show it."""
    lines = [
        "# Pictures that move",
        "",
        "Move a slider with the mouse or with the arrow keys. Every frame was computed",
    ]
    lines += ["by the package; in JupyterLab `moving(name, live=True)` computes it while you move the slider.", ""]
    cells = {path: nbformat.read(path, as_version=4).cells for path in NOTEBOOKS}
    for name, picture in PICTURES.items():
        where = [path for path, own in cells.items() if any(shown(cell.source) is picture for cell in own)]
        links = ", ".join(f"[notebook {path.stem[:2]}](../notebooks/{path.name})" for path in where)
        lines += [f"## {picture.title}", "", html(picture, frames, "../"), ""]
        lines += [f'In a notebook: `moving("{name}")`{"; shown in " + links if links else ""}.', ""]
    return lines
