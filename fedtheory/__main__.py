"""python -m fedtheory"""

import sys

from fedtheory.core import ending

if __name__ == "__main__":
    ending.watch()  # before anything else is imported, which takes seconds
    from fedtheory.cli import main

    sys.exit(main())
