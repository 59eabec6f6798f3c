"""python -m fedtheory"""

import sys

from fedtheory.running import watchdog

if __name__ == "__main__":
    try:
        watchdog.watch()  # before anything else is imported, which takes seconds
        from fedtheory.cli import main

        sys.exit(main())
    except KeyboardInterrupt:  # while it is imported
        print("interrupted; nothing was kept", file=sys.stderr)
        sys.exit(130)
