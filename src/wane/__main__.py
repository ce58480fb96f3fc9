"""``python -m wane``: the command line."""

import sys

from wane.cli import main

if __name__ == "__main__":
    sys.exit(main())
