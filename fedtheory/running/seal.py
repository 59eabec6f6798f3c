"""python -m fedtheory.running.seal FILE...: give JSON files their SHA-256, after a person looked at them.

A figure's record gets the digests of the table and the picture beside it, too; a list becomes {"claims": ...}, as the
ledger is kept. No number is changed.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedtheory.core.files import seal, sha256, write_atomic


def main(paths: Sequence[str]) -> None:
    """Seal files that are no longer, or not yet, sealed; say of each what was done."""
    if not paths:
        sys.exit("seal: expected files. Fix: python -m fedtheory.running.seal FILE...")
    for name in paths:
        path = Path(name)
        try:
            content = path.read_bytes()
            found = json.loads(content)
        except (OSError, ValueError, RecursionError) as error:
            sys.exit(f"seal: {name}: expected a JSON file that can be read ({error}). Fix: restore it, or leave it out")
        if not isinstance(found, (list, dict)) or found == {}:
            sys.exit(
                f"seal: {name}: expected a JSON object or list that holds something. Fix: name a record or a ledger"
            )
        value: dict[str, Any] = {"claims": found} if isinstance(found, list) else found
        value.pop("sha256", None)
        beside = {end: path.with_suffix(f".{end}") for end in ("csv", "png")}
        if all(part.exists() for part in beside.values()):
            value["files"] = {end: sha256(part.read_bytes()) for end, part in beside.items()}
        try:
            new = seal(value)
        except ValueError as error:
            sys.exit(f"seal: {name}: expected finite numbers ({error}). Fix: write them as text, as records do")
        if new != content:
            write_atomic(path, new)
        print(f"{name}: {'sealed' if new != content else 'as it was'}")


if __name__ == "__main__":
    main(sys.argv[1:])
