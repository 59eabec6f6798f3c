"""Build the book: python docs/book/build.py (make book). It goes to build/book and needs the extra [book], no network.

Pages written by hand lie beside this file. Those of the part "Look up" are made from the package and its records, and
the notebooks are taken as they are committed. All are staged in build/book-source, where Sphinx reads them; a warning
of Sphinx is an error.
"""

import argparse
import html
import importlib.metadata
import json
import os
import re
import sys
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", TQDM_DISABLE="1")
BOOK = Path(__file__).resolve().parent
ROOT = BOOK.parent.parent
sys.path[:0] = [str(BOOK / "_ext"), str(ROOT)]

import moving_pages
import pages
from sphinx.cmd.build import main as sphinx
from stage import Stage

SOURCE, TREES, OUT = (ROOT / "build" / name for name in ("book-source", "book-trees", "book"))
MATHJAX = ("sphinx-mathjax-offline", "tex-svg.js")  # distribution, file


def mathjax() -> Path:
    """The file of MathJax that the distribution holds."""
    for file in importlib.metadata.files(MATHJAX[0]) or ():
        if file.name == MATHJAX[1]:
            return Path(str(file.locate()))
    raise SystemExit(f"{MATHJAX[0]} has no {MATHJAX[1]}: pip install -c constraints.txt -e '.[book]'")


def stage_all() -> None:
    """Everything that Sphinx reads."""
    stage = Stage(SOURCE)
    stage.copy(mathjax(), "_static/mathjax/tex-svg.js")
    pages.write(stage)
    stage.finish()


def remove_old() -> list[Path]:
    """Pages and frames of an earlier build that no source is left for; Sphinx keeps them."""
    files = json.loads((SOURCE / "_ext" / "code.json").read_text())
    kept = {"search", "genindex", *(f"code/{file.removesuffix('.py')}" for file in files)}
    old = []
    for page in sorted(OUT.rglob("*.html")):
        name = page.relative_to(OUT).as_posix().removesuffix(".html")
        if name not in kept and not any((SOURCE / f"{name}{end}").exists() for end in (".md", ".ipynb")):
            page.unlink()
            old.append(page)
    for picture in sorted((OUT / moving_pages.FOLDER).glob("*.png")):
        if not (SOURCE / moving_pages.FOLDER / picture.name).exists():
            picture.unlink()
            old.append(picture)
    return old


def texts() -> str:
    """The words of all pages but those of code, by name: the search shows a line of them."""
    found = {}
    for page in sorted(OUT.rglob("*.html")):
        name = page.relative_to(OUT).as_posix().removesuffix(".html")
        article = re.search(r"<article.*?>(.*)</article>", page.read_text(), re.DOTALL)
        if article and not name.startswith("code/"):
            text = re.sub(r"<(script|style)\b.*?</\1>|<a class=\"headerlink\".*?</a>", " ", article[1], flags=re.DOTALL)
            text = re.sub(
                r"\\\(.*?\\\)|\\\[.*?\\\]", "…", html.unescape(re.sub(r"<[^>]+>", " ", text)), flags=re.DOTALL
            )
            found[name] = " ".join(text.split())
    return f"window.bookTexts = {json.dumps(found, ensure_ascii=False)};\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="read every page again")
    options = parser.parse_args()
    started = time.time()
    print("1 of 3: making pages from the package and its records, some three minutes the first time", flush=True)
    stage_all()
    staged = time.time()
    count = sum(1 for end in ("md", "ipynb") for _ in SOURCE.rglob(f"*.{end}"))
    print(f"2 of 3: Sphinx reads {count} pages and writes those that changed, at most three minutes", flush=True)
    words = [
        "-q",
        "-W",
        "--keep-going",
        "-n",
        "-b",
        "html",
        "-d",
        str(TREES),
        "-D",
        f"repository={ROOT}",
        *(["-E", "-a"] if options.fresh else []),
    ]
    failed = sphinx([*words, str(SOURCE), str(OUT)])
    if failed and not options.fresh:  # a label that moved from one page to another is a warning of the first reading
        print("reading every page again")
        failed = sphinx([*words, "-E", str(SOURCE), str(OUT)])
    if not failed:
        print("3 of 3: texts for the search", flush=True)
        remove_old()
        (OUT / "_static" / "texts.js").write_text(texts())
        for path in OUT.rglob("*.map"):  # for those who change the theme's scripts
            path.unlink()
        pages, size = sum(1 for _ in OUT.rglob("*.html")), sum(p.stat().st_size for p in OUT.rglob("*") if p.is_file())
        took = f"pages made in {staged - started:.0f} s, read and written in {time.time() - staged:.0f} s"
        print(f"{pages} pages, {size / 1e6:.1f} MB, {took}. Open {OUT.relative_to(ROOT)}/index.html")
    return failed


if __name__ == "__main__":
    sys.exit(main())
