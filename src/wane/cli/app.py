"""The commands put together; imported only when one runs, since typer takes its time."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from wane import __version__

COMMANDS = ("demo", "list")
"""Each is a module of :mod:`wane.cli.commands`."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    app.command(_name)(import_module(f"wane.cli.commands.{_name}").command)
