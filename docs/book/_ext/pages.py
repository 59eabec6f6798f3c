"""All pages that Sphinx reads but MathJax's file: those written by hand, those made, the notebooks."""

import json

import api_pages
import claim_pages
import course_pages
import item_pages
import method_pages
import moving_pages
import notebook_pages
import proof_pages
import text_pages
from code_pages import Code
from stage import BOOK, Stage
from used import Uses


def write(stage: Stage) -> None:
    code, uses = Code(), Uses()
    for path in sorted(BOOK.rglob("*")):
        name = path.relative_to(BOOK).as_posix()
        if path.suffix in (".md", ".ipynb", ".css", ".js") and not name.startswith(course_pages.MADE):
            stage.copy(path, name)
    for name in ("conf.py", "_ext/code_pages.py"):
        stage.copy(BOOK / name, name)
    where = claim_pages.write(stage, code, uses)
    verdicts = {record["id"]: record["verdict"] for record in claim_pages.records()}
    method_pages.write(stage, code, uses, where, verdicts)
    made = item_pages.write(stage, uses)
    api_pages.write(stage, code)
    text_pages.symbols(stage)
    text_pages.open_points(stage, where, made)
    text_pages.conclusions(stage, where, made)
    text_pages.bibliography(stage)
    text_pages.guides(stage)
    frames = moving_pages.write(stage)
    moving_pages.put(stage, "start/tour.md", frames)
    notebook_pages.write(stage, where, frames)
    proof_pages.write(stage, code, where)
    course_pages.write(stage)
    stage.write("_ext/code.json", json.dumps(sorted(code.files)))
