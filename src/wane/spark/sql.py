"""Queries in GSQL over DataFrames, batch and streaming.

Rows are made ready and answers are finished by the same functions as in one process, in `mapInArrow`; groups are
:func:`wane.spark.group`'s.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- its name everywhere
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from wane.errors import BadInput, BadParameter, Unsupported
from wane.gsql import Program, Query, Table, compile
from wane.gsql.rows import Step
from wane.sources.base import are_paths, expand
from wane.sources.formats import guess
from wane.sources.pcap import TABLES
from wane.spark.group import group
from wane.spark.pcap import NAME, register


def gsql(
    spark: SparkSession,
    text: str,
    tables: Mapping[str, Any],
    *,
    bindings: Mapping[str, Any] | None = None,
    now: Any = "latest",
    before: str = "error",
    lateness: str | None = None,
) -> DataFrame:
    """Ask one query in GSQL (:mod:`wane.gsql`); gives a DataFrame, which computes nothing until it is used.

    Args:
        spark: The session.
        text: The query, and whatever declarations and views it needs.
        tables: What it may name: DataFrames, batch or streaming, or paths of files.
        bindings: What declared aggregates stand for.
        now: The time of the question where there are no epochs: a time, or ``"latest"``.
        before: What happens to a row before a landmark: ``"error"``, ``"drop"`` or ``"clamp"``.
        lateness: For streams: how late a row may come, such as ``"30s"``.
    """
    frames = {name: _frame(spark, name, source) for name, source in tables.items()}
    schemas = {name: Table(_arrow(df), bounded=not df.isStreaming) for name, df in frames.items()}
    program = compile(text, schemas, bindings)
    if len(program.asked) > 1:
        raise BadParameter(
            f"the text has {len(program.asked)} queries, and one is asked here; ask them one by one, or use views"
        )
    return _run(program, frames, now, before, lateness)


def _run(program: Program, frames: Mapping[str, DataFrame], now: Any, before: str, lateness: str | None) -> DataFrame:
    made = dict(frames)
    closed: set[str] = set()
    for query in program.queries:
        df = made[query.source]
        if query.plan is not None and query.source in closed:
            raise Unsupported(
                f"a query over the groups of a stream, {query.source!r}, would have to wait for all groups of an "
                "epoch; write the first one's answers to a table, and ask that"
            )
        if query.scratch is not None:
            answer = _by_classes(query, df)
        else:
            answer = _chosen(query, df) if query.plan is None else _grouped(query, df, now, before, lateness)
        if query.name is not None:
            made[query.name] = answer
            if df.isStreaming and (query.plan is not None or query.source in closed):
                closed.add(query.name)
    return answer


def _chosen(query: Query, df: DataFrame) -> DataFrame:
    rows = _columns(df, query.after.needs)
    return rows.mapInArrow(_applied(query.after, _arrow(rows), query.schema), from_arrow_schema(query.schema))


def _by_classes(query: Query, df: DataFrame) -> DataFrame:
    """A query whose aggregates are a user's own classes: low level, shuffle by group, high level."""
    before, scratch = query.before, query.scratch
    assert before is not None
    assert scratch is not None
    if df.isStreaming:
        raise Unsupported("classes of your own run over tables that end; write the stream to a table, and ask that")
    rows = _columns(df, before.needs)
    schema = _arrow(rows)
    made = before.schema(schema)
    partials = rows.mapInArrow(_applied(before, schema, made), from_arrow_schema(made)).mapInArrow(
        _cast(scratch.low(made), made), from_arrow_schema(scratch.partials(made))
    )
    spread = (
        partials.repartition(*(F.col(f"`{key}`") for key in scratch.keys)) if scratch.keys else partials.coalesce(1)
    )
    answers = spread.mapInArrow(
        _cast(scratch.high(made), scratch.partials(made)), from_arrow_schema(scratch.answers(made))
    )
    needed = _columns(answers, query.after.needs)
    return needed.mapInArrow(_applied(query.after, _arrow(needed), query.schema), from_arrow_schema(query.schema))


def _cast(level: Callable[[Iterator[pa.RecordBatch]], Any], schema: pa.Schema) -> Callable[[Any], Any]:
    return lambda batches: level(batch.cast(schema) for batch in batches)


def _grouped(query: Query, df: DataFrame, now: Any, before: str, lateness: str | None) -> DataFrame:
    plan = query.plan
    assert plan is not None
    if query.before is not None:
        rows = _columns(df, query.before.needs)
        schema = _arrow(rows)
        made = query.before.schema(schema)
        df = rows.mapInArrow(_applied(query.before, schema, made), from_arrow_schema(made))
    asked = group(
        df, *plan.keys, every=query.every, time=query.time, where=plan.where, before=before, lateness=lateness
    )
    answers = asked.agg(*query.fns, now="latest" if plan.time is None or plan.every is not None else now)
    needed = _columns(answers, query.after.needs)
    return needed.mapInArrow(_applied(query.after, _arrow(needed), query.schema), from_arrow_schema(query.schema))


def _applied(step: Step, rows: pa.Schema, made: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield step(batch.cast(rows) if rows.names else batch).cast(made)

    return apply


def _columns(df: DataFrame, names: tuple[str, ...]) -> DataFrame:
    # A batch without columns would not say how many rows it has.
    return df.select(*(F.col(f"`{name}`") for name in names)) if names else df.select(F.lit(True).alias("wane_row"))


def _arrow(df: DataFrame) -> pa.Schema:
    return to_arrow_schema(df.schema, timezone="UTC")


def _frame(spark: SparkSession, name: str, source: Any) -> DataFrame:
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        format = guess(expand(path, "Parquet, pcap or CSV")[0])
        if format == "pcap":
            register(spark)
            return spark.read.format(NAME).option("table", name if name in TABLES else "IP").load(path)
        if format == "csv":
            return spark.read.csv(path, header=True, inferSchema=True)
        if format == "parquet":
            return spark.read.parquet(path)
    if are_paths(source) or isinstance(source, (str, os.PathLike)) or not hasattr(source, "isStreaming"):
        raise BadInput(f"table {name!r} must be a DataFrame, or the path of Parquet, pcap or CSV files, got {source!r}")
    return source  # type: ignore[no-any-return]
