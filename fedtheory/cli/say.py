"""What commands print: JSON, tables of numbers."""

import json
from typing import Any

from fedtheory.core import records


def emit(value: Any) -> None:
    """JSON on stdout; a number that is not finite as a string."""
    print(json.dumps(records.plain(value), indent=1, allow_nan=False))
