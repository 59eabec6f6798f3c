"""What commands print: JSON, tables of numbers."""

import json
import math
from collections.abc import Mapping
from typing import Any

from fedtheory.running import records


def print_json(value: Any) -> None:
    """JSON on stdout; a number that is not finite as a string."""
    print(json.dumps(records.plain(value), indent=1, allow_nan=False))


def show_number(value: float) -> str:
    """Three digits; NaN for a run that diverged, and for what is not a number."""
    return "NaN" if math.isnan(value) else f"{value:.3g}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"


def show_paper(row: Mapping[str, Any]) -> str:
    """The printed number, or a word for what is printed in its place."""
    return row["prints"] or show_number(row["paper"])


def show_ours(row: Mapping[str, Any]) -> str:
    """Mean, 95% interval and n; a dash for what was not run."""
    if not row["seeds"]:
        return "-"
    text = show_number(row["ours"])
    if row["seeds"] > 1 and not math.isnan(row["ours"]):
        text += f" [{show_number(row['low'])}, {show_number(row['high'])}] n={row['seeds']}"
    return text
