"""Open every page of the built book in a headless Chromium and say what is wrong: python docs/book/check.py.

On every page: no error on the console, nothing asked of the network, every formula set and no TeX left to read, every
picture there, no output wider than its box on a laptop, nothing wider than a phone, every link and anchor of the book
found, every folded box opens, no object shown as Python shows it; every slider of a picture that moves changes it, by
hand and by an arrow key, and says its value. And the search finds what is there.
"""

import argparse
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))

from browser import Browser

BOOK = Path(__file__).resolve().parents[2] / "build" / "book"
LAPTOP, PHONE = (1280, 900), (390, 844)
SOUGHT = {"control variate": "Control variates", "haar": "A random subspace"}  # what is searched, a title that is found

PAGE = r"""(async () => {
  const wrong = [];
  const shown = (node) => node.closest("script, style, pre, code, mjx-container, .highlight, title") === null;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    if (!node.parentElement || !shown(node.parentElement)) continue;
    const text = node.textContent;
    for (const pattern of [/\\\(|\\\[|\$[^$\s][^$]*\$/, /\\(frac|sum|mathbb|mathcal|eta|sigma|Vert|le|top)\b/]) {
      if (pattern.test(text)) wrong.push(`raw TeX: ${text.trim().slice(0, 90)}`);
    }
    for (const pattern of [/\btensor\(/, / object at 0x/, /\barray\(\[/, /\{'\w+':/, /\b[A-Z]\w+\(\w+=[^)]*, \w+=/]) {
      if (pattern.test(text)) wrong.push(`Python's own words: ${text.trim().slice(0, 90)}`);
    }
  }
  for (const one of window.MathJax?.startup?.document?.math ?? []) {
    const bad = one.typesetRoot?.querySelector("[data-mjx-error], [data-mml-node='merror']");
    const why = bad?.getAttribute("data-mjx-error") ?? "not understood";
    if (bad) wrong.push(`formula: ${why}: ${one.math.slice(0, 160)}`);
  }
  for (const node of document.querySelectorAll(".math:not(:has(mjx-container))"))
    wrong.push(`formula not set: ${node.textContent.slice(0, 80)}`);
  for (const image of document.images) {
    if (image.loading === "lazy") image.loading = "eager";
    try { await image.decode(); } catch { wrong.push(`no picture: ${image.getAttribute("src").slice(0, 90)}`); }
  }
  for (const box of document.querySelectorAll("article details:not(.filtered-out)")) {
    const closed = box.open;
    if (!closed) box.querySelector("summary").click();
    const inner = [...box.children].find((part) => part.tagName !== "SUMMARY" && part.textContent.trim());
    if (!box.open || !inner || inner.getBoundingClientRect().height === 0)
      wrong.push(`box does not open: ${box.querySelector("summary").textContent.trim().slice(0, 60)}`);
  }
  for (const pre of document.querySelectorAll("div.cell_output pre")) {
    const over = pre.scrollWidth - pre.clientWidth;
    if (over > 1) wrong.push(`output wider than its box by ${over}: ${pre.textContent.trim().slice(0, 60)}`);
  }
  return wrong;
})()"""
MOVES = r"""(async () => {
  const wrong = [];
  for (const figure of document.querySelectorAll("figure.moving")) {
    const image = figure.querySelector("img"), rows = [...figure.querySelectorAll(".sliders label")];
    const say = (words) => wrong.push(`picture ${figure.dataset.moving}: ${words}`);
    if (!rows.length) say("no slider");
    for (const row of rows) {
      const input = row.querySelector("input"), first = input.value, name = row.querySelector("span").textContent;
      const [files, values] = [new Map(), new Set()];
      for (let at = 0; at <= Number(input.max); at++) {
        input.value = at;
        input.dispatchEvent(new Event("input", { bubbles: true }));
        const value = row.querySelector("output").textContent;
        try { await image.decode(); } catch { say(`no picture at ${name} = ${value}`); }
        if (files.has(image.src)) say(`does not change from ${name} = ${files.get(image.src)} to ${value}`);
        if (!value || values.has(value) || !image.alt.includes(`${name} = ${value}`))
          say(`${name} does not say its value ${value}`);
        files.set(image.src, value);
        values.add(value);
      }
      input.value = first;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }
  return wrong;
})()"""
KEYED = r"""(() => {
  const input = document.querySelectorAll("figure.moving .sliders input")[%d];
  if (input) input.focus();
  return input ? [input.value, input.closest("figure").querySelector("img").src] : null;
})()"""
FOUND = r"""new Promise((done) => {
  let looks = 0;
  const look = () => {
    const over = /finished|did not match/.test(document.querySelector("#search-results")?.textContent ?? "");
    const titles = [...document.querySelectorAll("#search-results li a")].map((link) => link.textContent);
    if (over || ++looks > 100) done(titles); else setTimeout(look, 100);
  };
  look();
})"""
LINKS = r"""[...document.querySelectorAll("a[href]")].map((a) => a.href)"""
IDS = r"""[...document.querySelectorAll("[id], a[name]")].map((node) => node.id || node.name)"""
WIDE = r"""(() => {
  const most = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= most + 1) return [];
  const inside = (node) => { for (let up = node.parentElement; up; up = up.parentElement)
    if (/auto|scroll|hidden/.test(getComputedStyle(up).overflowX)) return true; return false; };
  const beyond = (node) => node.getBoundingClientRect().right > most + 1 && !inside(node);
  const wide = [...document.querySelectorAll("article *")].filter(beyond);
  return [`wider than a phone by ${document.documentElement.scrollWidth - most}: ` +
    (wide.length ? wide[0].outerHTML.slice(0, 120) : "outside the article")];
})()"""


def check(book: Path, pages: Sequence[Path]) -> Iterator[str]:
    """One line for each thing that is wrong."""
    ids: dict[Path, set[str]] = {}
    links: list[tuple[Path, str]] = []
    with Browser(width=LAPTOP[0], height=LAPTOP[1]) as browser:
        for page in pages:
            name = page.relative_to(book)
            browser.open(page.as_uri())
            found = [*browser.ask(PAGE), *browser.ask(MOVES), *_keyed(browser), *browser.errors]
            links += [(page, link) for link in browser.ask(LINKS)]
            ids[page] = set(browser.ask(IDS))
            browser.size(*PHONE)
            found += browser.ask(WIDE)
            browser.size(*LAPTOP)
            yield from (f"{name}: {' '.join(line.split())}" for line in dict.fromkeys(found))
        yield from _links(book, links, ids)
        for words, title in SOUGHT.items():
            browser.open(f"{(book / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
            titles = browser.ask(FOUND)
            if not any(title.lower() in one.lower() for one in titles):
                listed = ", ".join(titles[:5])
                yield f"search.html: {words!r} finds {len(titles)} pages and none with {title!r}: {listed}"
            yield from (f"search.html: {line}" for line in browser.errors)


def _keyed(browser: Browser) -> Iterator[str]:
    """Sliders that an arrow key does not move, or whose picture stays."""
    for number in itertools.count():
        if (before := browser.ask(KEYED % number)) is None:
            return
        left = int(before[0]) > 0
        key = (
            {"key": "ArrowLeft", "windowsVirtualKeyCode": 37}
            if left
            else {"key": "ArrowRight", "windowsVirtualKeyCode": 39}
        )
        for kind in ("rawKeyDown", "keyUp"):
            browser.say("Input.dispatchKeyEvent", type=kind, code=key["key"], **key)
        if any(old == new for old, new in zip(before, browser.ask(KEYED % number))):
            yield f"slider {number + 1} of the page: {key['key']} does not move it"


def _links(book: Path, links: Sequence[tuple[Path, str]], ids: dict[Path, set[str]]) -> Iterator[str]:
    """Links that lead to no file or no anchor of the book; those that lead out of it are none of ours."""
    told = set()
    for page, link in links:
        parts = urlsplit(link)
        if parts.scheme != "file":
            continue
        target = Path(unquote(parts.path))
        what = ""
        if not target.is_relative_to(book):
            what = "leads out of the book"
        elif not target.is_file():
            what = "leads to no file"
        elif parts.fragment and target.suffix == ".html":
            if target not in ids:
                ids[target] = set(re.findall(r'\b(?:id|name)="([^"]+)"', target.read_text()))
            what = "" if unquote(parts.fragment) in ids[target] else "leads to no anchor"
        short = f"{target.relative_to(book) if target.is_relative_to(book) else target}#{parts.fragment}"
        if what and (page, short) not in told:
            told.add((page, short))
            yield f"{page.relative_to(book)}: link {short} {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="parts of pages' names, such as claims/ssf (default: all)")
    parser.add_argument("--book", type=Path, default=BOOK, help="the folder of the built book (default: build/book)")
    options = parser.parse_args()
    book = options.book.resolve()
    if not (book / "index.html").exists():
        print(f"book: {options.book} holds no book. Fix: make book", file=sys.stderr)
        return 1
    pages = [path for path in sorted(book.rglob("*.html")) if "_static" not in path.parts]
    if options.pages:
        pages = [page for page in pages if any(part in page.relative_to(book).as_posix() for part in options.pages)]
    wrong = 0
    for line in check(book, pages):
        print(line, flush=True)
        wrong += 1
    print(f"{len(pages)} pages opened, {wrong} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
