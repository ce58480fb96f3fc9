"""The commands put together; imported only when one runs, since typer takes its time."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from wane import __version__

COMMANDS = ("run", "explain", "generate", "inspect", "list", "bench", "demo")
"""Each is a module of :mod:`wane.cli.commands`, with an `EXAMPLE` of its use."""

STATUS = (
    "Exit status: 0 when all went well; 1 when something could not be done, or a target of bench is missed; 2 for a "
    "command that cannot be read; 130 when interrupted."
)

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=STATUS,
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Decayed and windowed answers over streams."""
    if version:
        print(f"wane {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


for _name in COMMANDS:
    _module = import_module(f"wane.cli.commands.{_name}")
    app.command(_name, epilog=f"Example: {_module.EXAMPLE}")(_module.command)
