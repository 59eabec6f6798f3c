"""python -m fedtheory"""

import sys

from fedtheory.running import watchdog

if __name__ == "__main__":
    watchdog.watch()  # before anything else is imported, which takes seconds
    from fedtheory.cli import main

    sys.exit(main())
