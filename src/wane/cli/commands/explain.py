"""``wane explain``: what queries in GSQL come to."""

from __future__ import annotations

from typing import Annotated

import typer

from wane.cli.commands.run import File, Format, From, Query, read_query, read_tables

EXAMPLE = "wane explain -e 'select tb, median(len) from UDP group by time/60 as tb' --from UDP=traffic.pcap"


def command(
    file: File = None,
    execute: Query = None,
    tables: From = None,
    format: Format = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Show the last query as plain Spark SQL, where it is that.")
    ] = False,
) -> None:
    """Show what queries come to: groups, states and answers; nothing is read but the columns' names."""
    from wane.gsql import compile
    from wane.sources import open_source

    named = read_tables(tables)
    schemas = {name: open_source(path, name, format).schema for name, path in named.items()}
    program = compile(read_query(file, execute), schemas)
    print(program.to_spark_sql() if sql else program)
