"""python -m fedtheory"""

import sys

try:
    from fedtheory.cli import main
except ValueError as error:  # such as an entry point of another distribution that does not fit
    print(f"fedtheory: {error}", file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main())
