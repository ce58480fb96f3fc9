"""``wane bench``: the benchmarks of a checkout."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import wane
from wane.errors import MissingExtra

EXAMPLE = "wane bench pcap --quick"


def command(
    cases: Annotated[list[str] | None, typer.Argument(help="The cases to run.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--list", help="List the cases.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Only show that everything runs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each figure.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the data.")] = 1,
) -> None:
    """Measure wane side by side with its peers; ends with status 1 when a target is missed."""
    if find_spec("bench") is None:
        top = Path(wane.__file__).parents[2]
        if not (top / "bench" / "runner.py").exists():
            raise MissingExtra("the benchmarks are in the checkout and not in the package; run ./dev bench there")
        sys.path.insert(0, str(top))
    from importlib import import_module

    run = import_module("bench.__main__").main
    options = [*(["--list"] if every else []), *(["--quick"] if quick else []), *(["--json"] if as_json else [])]
    raise typer.Exit(run([*(cases or []), *options, "--seed", str(seed)]))
