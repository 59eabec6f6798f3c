"""Sphinx's settings. The sources that it reads are staged by build.py: pages written by hand, made ones, notebooks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "fedtheory"
author = "the authors of fedtheory"
copyright = "the authors of fedtheory, MIT license"
html_title = "fedtheory"
language = "en"
highlight_language = "none"  # a block without a language is an output or a command
smartquotes = False  # it would make one dash of the two of a command

extensions = ["myst_nb", "code_pages"]
root_doc = "index"
exclude_patterns = ["_static", "_ext"]

nb_execution_mode = "off"  # committed notebooks keep the outputs that they were checked with
nb_number_source_lines = False
nb_merge_streams = True
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
myst_links_external_new_tab = False
nitpicky = True

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = [("book.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it fetches pages, which a browser refuses for files; book.js reads texts.js
html_context = {"default_mode": "auto"}
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "navigation_with_keys": False,
    "logo": {"text": "fedtheory"},
    "footer_content_items": ["copyright.html"],
}

# One file with all its glyphs, copied from a package by build.py: no network, no fonts to fetch
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {
    "tex": {"macros": {"grad": r"\nabla", "tr": r"\operatorname{tr}"}},
    "svg": {"fontCache": "global", "mtextInheritFont": True},
    "options": {"enableMenu": False},
}
