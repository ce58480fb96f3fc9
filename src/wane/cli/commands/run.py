"""``wane run``: queries in GSQL over files, in this process or on Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wane.errors import BadInput, BadParameter

if TYPE_CHECKING:
    import pyarrow as pa

EXAMPLE = (
    "wane run -e 'select tb, destIP, count(*) decay exp(half_life=10s) from TCP group by time/60 as tb, destIP' "
    "--from TCP=traffic.pcap --rows 5"
)

File = Annotated[str | None, typer.Argument(help="A file of queries; - is standard input.", show_default=False)]
Query = Annotated[str | None, typer.Option("-e", "--execute", help="The query itself.", show_default=False)]
From = Annotated[
    list[str] | None,
    typer.Option("--from", help="A table and its files, NAME=PATH; may be given again.", show_default=False),
]
Format = Annotated[str | None, typer.Option(help="What the files are, where their names do not say.")]


def command(
    file: File = None,
    execute: Query = None,
    tables: From = None,
    engine: Annotated[str, typer.Option(help="What runs it: local or spark.")] = "local",
    master: Annotated[str | None, typer.Option(help="Spark's master; by default this machine.")] = None,
    out: Annotated[str, typer.Option(help="The answer as: table, csv, json (a line for each row), parquet.")] = "table",
    to: Annotated[str | None, typer.Option(help="The file that the answer goes to.", show_default=False)] = None,
    rows: Annotated[int | None, typer.Option(min=0, help="Show so many rows of a table.", show_default=False)] = None,
    now: Annotated[str, typer.Option(help="The time of the question, where there are no epochs.")] = "latest",
    format: Format = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --out json.")] = False,
) -> None:
    """Run queries, and show their answers."""
    from wane.cli import answers

    text, named = read_query(file, execute), read_tables(tables)
    form = "json" if as_json else out
    if form not in answers.FORMS:
        raise BadParameter(f"--out is one of {', '.join(answers.FORMS)}, got {form!r}")
    if form == "parquet" and to is None:
        raise BadParameter("a Parquet file needs a name; add --to answer.parquet")
    if engine == "local":
        found = _locally(text, named, format, now)
    elif engine == "spark":
        found = [_on_spark(text, named, master, now)]
    else:
        raise BadParameter(f"--engine is local or spark, got {engine!r}")
    if to is not None and len(found) > 1:
        raise BadParameter(f"the text has {len(found)} queries, and --to names one file; run them one by one")
    for number, table in enumerate(found):
        if number and form == "table":
            print()
        answers.write(table, form, to, rows)


def read_query(file: str | None, execute: str | None) -> str:
    """The text of the queries."""
    if (file is None) == (execute is None):
        raise BadParameter("give a file of queries, or one with -e 'select ...'")
    if execute is not None:
        return execute
    try:
        return sys.stdin.read() if file == "-" else Path(str(file)).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise BadInput(f"{file!r} cannot be read: {why}") from None


def read_tables(tables: list[str] | None) -> dict[str, str]:
    """The files of each table."""
    found = {}
    for given in tables or []:
        name, sign, path = given.partition("=")
        if not (name and sign and path):
            raise BadParameter(f"--from is NAME=PATH, got {given!r}; write --from TCP=traffic.pcap")
        if name in found:
            raise BadParameter(f"--from names {name} twice; give one path, or a glob in quotes")
        found[name] = path
    return found


def _locally(text: str, tables: dict[str, str], format: str | None, now: str) -> list[pa.Table]:
    from wane import local
    from wane.cli.progress import Watched, progress
    from wane.sources import open_source

    with progress("reading") as report:
        sources: dict[str, Any] = {
            name: Watched(open_source(path, name, format), report) for name, path in tables.items()
        }
        found = list(local.gsql_all(text, sources, now=now))
    for table in found:
        for reason, count in local.dropped(table).items():
            print(f"wane: {count:,} dropped: {reason}", file=sys.stderr)
    return found


def _on_spark(text: str, tables: dict[str, str], master: str | None, now: str) -> pa.Table:
    import wane.spark as ws

    spark = ws.session(master, spark__ui__enabled="false", spark__log__level="ERROR")
    try:
        return ws.gsql(spark, text, tables, now=now).toArrow()
    finally:
        spark.stop()
