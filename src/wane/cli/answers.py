"""Answers of queries, for a person and for programs."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pyarrow as pa

from wane.cli.output import is_terminal, show_table
from wane.errors import BadParameter

FORMS = ("table", "csv", "json", "parquet")

_AT_A_TERMINAL = 50
"""Rows shown to a person, unless asked for more."""


def write(table: pa.Table, form: str, to: str | None, rows: int | None, title: str = "") -> None:
    """Write an answer in a form, to a file or to standard output.

    Args:
        table: The answer.
        form: One of :data:`FORMS`.
        to: A file's name, or None.
        rows: How many rows to show in a table at most; None is all, or 50 at a terminal.
        title: What the table shows.
    """
    if form not in FORMS:
        raise BadParameter(f"--out is one of {', '.join(FORMS)}, got {form!r}")
    if form == "parquet":
        if to is None:
            raise BadParameter("a Parquet file needs a name; add --to answer.parquet")
        import pyarrow.parquet as pq

        pq.write_table(table, to)
    elif to is not None:
        with open(to, "w", encoding="utf-8", newline="") as file:
            _text(table, form, file, rows, title)
    else:
        _text(table, form, sys.stdout, rows, title)


def _text(table: pa.Table, form: str, file: Any, rows: int | None, title: str) -> None:
    if form == "json":
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                file.write(json.dumps(row, default=_plain) + os.linesep)
    elif form == "csv":
        import csv

        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.schema.names)
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                writer.writerow([_cell_of_csv(value) for value in row.values()])
    else:
        _table(table, file, rows, title)


def _table(table: pa.Table, file: Any, rows: int | None, title: str) -> None:
    shown = rows if rows is not None else (_AT_A_TERMINAL if is_terminal() and file is sys.stdout else table.num_rows)
    names = table.schema.names
    right = {field.name for field in table.schema if _is_number(field.type) and not _is_address(field)}
    cells = [
        [_cell(value, field) for value, field in zip(row.values(), table.schema, strict=True)]
        for row in table.slice(0, shown).to_pylist()
    ]
    if file is sys.stdout:
        show_table(names, cells, title, right)
    else:
        from wane.cli.output import plain

        for line in plain(names, cells, right):
            file.write(line + "\n")
    if shown < table.num_rows:
        print(f"... and {table.num_rows - shown:,} more rows; --rows shows more, --out csv all")


def _cell(value: Any, field: pa.Field) -> str:
    """A value as a person reads it."""
    if value is None:
        return ""
    if _is_address(field) and isinstance(value, int) and 0 <= value < 2**32:
        return str(IPv4Address(value))
    if isinstance(value, bytes):
        return str(IPv6Address(value)) if len(value) == 16 else value.hex()
    if isinstance(value, float):
        return f"{value:,.10g}"
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, list):
        address = _is_address(field)
        return ", ".join(_element(element, address) for element in value)
    return str(value)


def _element(value: Any, address: bool) -> str:
    if isinstance(value, dict) and {"item", "weight"} <= value.keys():
        item = value["item"]
        shown = str(IPv4Address(item)) if address and isinstance(item, int) and 0 <= item < 2**32 else str(item)
        error = f" ±{value['error']:.3g}" if value.get("error") else ""
        return f"{shown}: {value['weight']:.6g}{error}"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _cell_of_csv(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=_plain)
    return _plain(value) if isinstance(value, (bytes, dt.date, dt.timedelta)) else value


def _plain(value: Any) -> Any:
    """What JSON has no words for."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _is_address(field: pa.Field) -> bool:
    """Whether a column holds addresses of IPv4, going by its name."""
    return bool(field.name.endswith("IP"))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
