"""Tables for a person at a terminal, and for the next program in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence


def is_terminal() -> bool:
    """Whether a person is watching."""
    return sys.stdout.isatty()


def show_table(
    head: Sequence[str], rows: Collection[Sequence[str]], title: str = "", right: Collection[str] = ()
) -> None:
    """Print a table: framed and wrapped at a terminal, else in plain aligned columns, a line for each row.

    Args:
        head: The names of the columns.
        rows: The cells.
        title: What the table shows.
        right: Columns of numbers, which are aligned to the right.
    """
    if not is_terminal():
        if title:
            print(title)
        for line in plain(head, rows, right):
            print(line)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for name in head:
        table.add_column(name, justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def plain(head: Sequence[str], rows: Collection[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """The lines of a table in aligned columns.

    >>> plain(["name", "n"], [["a", "10"], ["long", "9"]], right=["n"])
    ['name   n', 'a     10', 'long   9']
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        parts = zip(cells, widths, head, strict=True)
        placed = (cell.rjust(width) if name in right else cell.ljust(width) for cell, width, name in parts)
        return "  ".join(placed).rstrip()

    return [line(head), *map(line, rows)]
