"""Handouts of a lecture as PDF: what stands on its slides, and the notebook's exercises, printed by a browser."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedtheory.core import checks
from fedtheory.core.files import require_folder, write_atomic
from fedtheory.course import course, slides
from fedtheory.course.course import Cell

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")  # of the browser
SECONDS = 120  # for one handout, on a busy machine


def save(folder: str | Path, chosen: Sequence[str] = ()) -> list[str]:
    """Print the handouts of notebooks into a folder: NN_name.pdf. Returns the names of the files.

    Args:
        folder: new, empty, or one that was made here before.
        chosen: beginnings of notebooks' names; none for all of `slides.LECTURES`.

    Raises FileNotFoundError where no browser is installed; else as `slides.save` does.
    """
    out = checks.path("folder", folder)
    course.made_before(out, "handouts")
    require_folder(out)
    paths, program = course.committed_notebooks(chosen or slides.LECTURES), browser()
    mathjax = slides.installed()["tex-svg.js"].read_bytes()
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "reveal.js").mkdir()
        write_atomic(Path(place) / "reveal.js" / "tex-svg.js", mathjax)
        files = {f"{path.stem}.pdf": printed(page(path), Path(place), program) for path in paths}
    course.save(out, "handouts", files)
    return list(files)


def browser() -> str:
    """The program of a browser: BROWSER, or the first of NAMES on the PATH. Raises FileNotFoundError."""
    wanted = os.environ.get("BROWSER")
    found = next(filter(None, map(shutil.which, (wanted,) if wanted else NAMES)), None)
    if found is None:
        fix = "apt-get install chromium, or name its program in BROWSER"
        checks.reject("browser", wanted, f"one of {', '.join(NAMES)} on the PATH", fix, FileNotFoundError)
    return found


def printed(text: str, place: Path, program: str) -> bytes:
    """A page in HTML as PDF; its files lie in the folder."""
    source, target = place / "page.html", place / "page.pdf"
    write_atomic(source, text.encode())
    target.unlink(missing_ok=True)
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"]
    words += [f"--user-data-dir={place / 'profile'}", "--virtual-time-budget=60000", f"--print-to-pdf={target}"]
    done = subprocess.run([program, *words, source.as_uri()], capture_output=True, text=True, timeout=SECONDS)
    if not target.exists():
        checks.reject("browser", program, "a PDF", f"run it by hand ({done.stderr.strip()[-80:]})", OSError)
    return target.read_bytes()


def page(path: Path) -> str:
    """The handout of a notebook in HTML."""
    cells = course.cells_of(path)
    parts = []
    for slide in slides.paged(cells, slides.SKIPPED.get(path.stem[:2], ())):
        heading = "" if slide.goes_on else slides.html(f"{'#' * slide.level} {slide.heading}")
        shown = "".join(slides.shown(block, code=False) for block in slide.blocks)
        parts.append(f"<section>{heading}{shown}</section>")
    parts.append("<h2>Exercises</h2>")
    parts += [f"<section class='exercise'>{slides.html(question)}</section>" for question in questions(cells)]
    return slides.document(path.stem, STYLE, "\n".join(parts))


def questions(cells: Sequence[Cell]) -> Iterator[str]:
    """The exercises of a notebook, without their solutions."""
    for cell in cells:
        found = course.QUESTION.search(cell["source"]) if cell["cell_type"] == "markdown" else None
        if found:
            yield slides.unlinked(cell["source"][found.start() :])


STYLE = """\
<style>
@page { size: A4; margin: 15mm 17mm; }
body { font: 10.5pt/1.4 "Helvetica Neue", Helvetica, Arial, sans-serif; color: #222; }
h1, h2, h3 { color: #16325c; line-height: 1.2; margin: 5mm 0 2mm; break-after: avoid; }
section { break-inside: avoid; margin-bottom: 3mm; }
p, ul, ol { margin: 0 0 1.5mm; }
blockquote { margin: 1mm 0 8mm; padding: 1mm 3mm; border-left: 1mm solid #d98200; background: #fff6e6; }
blockquote p { margin: 0; }
pre { font-size: 8pt; margin: 0 0 2mm; padding: 1mm 2mm; background: #f5f6f8; }
table { font-size: 8.5pt; border-collapse: collapse; margin-bottom: 2mm; }
td, th { padding: 0.5mm 2.5mm; text-align: left; vertical-align: top; border-bottom: 0.2mm solid #dde; }
.picture img { display: block; margin: 1mm auto; max-width: 100%; max-height: 62mm; }
.exercise { padding-bottom: 22mm; border-bottom: 0.2mm dotted #999; }
mjx-container svg[viewBox] { max-width: 100%; }
</style>"""
