"""Build the primer's notebooks from their percent sources, as notebooks/build.py does.

python docs/book/primer.py           all of them
python docs/book/primer.py svd haar  those two
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "foundations"
sys.path.insert(0, str(FOLDER.parents[2] / "notebooks"))

from build import build

if __name__ == "__main__":
    for source in sorted(FOLDER.glob("*.py")):
        if not sys.argv[1:] or source.stem in sys.argv[1:]:
            print(build(source).name, flush=True)
