"""The command line, ``wane``.

Exit status: 0 when all went well; 1 when something could not be done, with one sentence on standard error, or
without a word when the reader of the output has gone; 2 for a command that cannot be read; 130 when interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from wane.errors import MissingExtra, WaneError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; the arguments are those of the process unless given."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except WaneError as why:
        print(f"wane: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Python writes out what is left when it ends, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _run(arguments: Sequence[str] | None) -> int:
    try:
        from wane.cli.app import app
    except ImportError as why:
        if why.name not in ("typer", "rich"):
            raise
        raise MissingExtra(f"the command line needs {why.name}, which is not there; install wane[cli]") from None
    try:
        app(None if arguments is None else list(arguments), prog_name="wane")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
