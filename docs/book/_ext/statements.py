"""The claims' statements in LaTeX and in plain words: docs/book/statements/<paper>.md, one section a claim.

## <id>
<statement, LaTeX between dollars>

> <one sentence in plain words>

```python
<a cell that a reader can run and change, where there is a better one than checking again>
```
"""

import re
from dataclasses import dataclass
from functools import cache

from stage import BOOK

FOLDER = BOOK / "statements"


@dataclass(frozen=True)
class Statement:
    """Fields: Markdown with LaTeX; a sentence in plain words, or ""; a cell, or ""."""

    latex: str
    words: str
    cell: str


@cache
def load() -> dict[str, Statement]:
    """By the claims' ids."""
    found: dict[str, Statement] = {}
    for path in sorted(FOLDER.glob("*.md")):
        for id, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", path.read_text(), re.DOTALL | re.MULTILINE):
            cell = re.search(r"```python\n(.*?)\n```", body, re.DOTALL)
            words = " ".join(line[2:] for line in body.splitlines() if line.startswith("> "))
            text = re.sub(r"```python\n.*?\n```", "", body, flags=re.DOTALL)
            latex = "\n".join(line for line in text.splitlines() if not line.startswith(">")).strip()
            assert id not in found, id
            found[id] = Statement(latex, words, cell[1] if cell else "")
    return found


def notation(paper: str) -> str:
    """What the letters of a paper's statements mean, and its assumptions: what stands above the first claim."""
    text = (FOLDER / f"{paper}.md").read_text()
    return text.split("\n", 1)[1].split("\n## ", 1)[0].strip()
