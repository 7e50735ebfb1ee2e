"""`python -m ordercast` is `ordercast`."""

import sys

from ordercast.cli import main

if __name__ == "__main__":
    sys.exit(main())
