"""The pages that commands write, from templates beside this file."""

from typing import Any


def render(name: str, **values: Any) -> str:
    """Fill in a template; what stands in HTML is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # slow to import

    pages = Environment(
        loader=PackageLoader("fedtheory.cli", "."),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.jinja"]),
        keep_trailing_newline=True,
    )
    return pages.get_template(name).render(**values)
