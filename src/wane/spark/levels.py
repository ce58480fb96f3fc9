"""The two levels of a plan as functions that `mapInArrow` takes: they run in Spark's Python workers.

A worker gets the plan and the schema of the rows with the function, and sees Arrow batches and nothing else. What it
gives depends on the rows alone: not on the task, its attempt, or what ran in the worker before. (A sample of rows
without ids depends on the number of the partition too: docs/decisions/0025-random-numbers-belong-to-rows.md.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from wane.grouped import HighLevel, LowLevel, timecolumn
from wane.grouped.states import NEWEST
from wane.plan import Plan
from wane.times import PER_TICK, Nanoseconds, ticks

NOW = "wane_now"
EVENT_TIME = "wane_time"
PARTIALS = "wane_partials"

Batches = Iterator[pa.RecordBatch]


def partial_schema(plan: Plan, schema: pa.Schema) -> pa.Schema:
    """The columns of the partials of a plan over rows of some schema."""
    return LowLevel(plan, schema).partial_schema


def answer_schema(plan: Plan, schema: pa.Schema) -> pa.Schema:
    """The columns of the answers of a plan over rows of some schema."""
    found = LowLevel(plan, schema).answers().schema.remove_metadata()
    return pa.schema([field.with_type(_micros(field.type)) for field in found])


def _micros(kind: pa.DataType) -> pa.DataType:
    """Spark's times are microseconds, also inside of structs."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_micros(field.type)) for field in kind])
    return kind


def mapped(df: DataFrame, function: Callable[[Batches], Batches], schema: pa.Schema) -> DataFrame:
    """`mapInArrow` for columns of any names, in which PySpark would take a dot for the field of a struct."""
    names = df.columns
    # A projection where none is needed would let Spark take away partitions that are empty, and with them their answer.
    if not any(sign in name for name in names for sign in ".`"):
        return df.mapInArrow(function, from_arrow_schema(schema))

    def call(batches: Batches) -> Batches:
        return function(batch.rename_columns(names) for batch in batches)

    return df.toDF(*(f"c{i}" for i in range(len(names)))).mapInArrow(call, from_arrow_schema(schema))


def low(
    plan: Plan, schema: pa.Schema, before: str, budget: int, reader: Callable[[Batches], Batches] | None = None
) -> Callable[[Batches], Batches]:
    """Rows to partials; a reader turns what comes in into rows."""

    def reduce(batches: Batches) -> Batches:
        engine = LowLevel(plan, schema, before, budget, part=_part())
        for batch in reader(batches) if reader else batches:
            yield from engine.update(batch.cast(schema))
        yield from engine.flush()

    return reduce


def _part() -> str:
    """The partition and micro-batch of a task: the same for each attempt at it, and no other task's of the query."""
    task = TaskContext.get()
    return "" if task is None else f"{task.partitionId()} {task.getLocalProperty('streaming.sql.batchId')}"


def stamped(plan: Plan, schema: pa.Schema, before: str, budget: int, unit: str) -> Callable[[Batches], Batches]:
    """Rows to partials that carry the time of their newest row, for Spark's watermark."""
    inner = low(plan, schema, before, budget)
    per = PER_TICK[unit]

    def reduce(batches: Batches) -> Batches:
        for partials in inner(batches):
            ticks = partials.column(NEWEST).to_numpy()
            micros = ticks * per // 1000 if per < 1000 else ticks * (per // 1000)
            yield partials.append_column(EVENT_TIME, pa.array(micros).cast(pa.timestamp("us", "UTC")))

    return reduce


def high(plan: Plan, schema: pa.Schema, at: int | None) -> Callable[[Batches], Batches]:
    """Partials to answers, of all groups of a partition, asked at an instant; the newest time may come as a column."""

    def complete(batches: Batches) -> Batches:
        # Times come back in the zone of the session.
        engine, kinds = HighLevel(plan, schema), partial_schema(plan, schema)
        now = None if at is None else Nanoseconds(at)
        for batch in batches:
            if NOW in batch.schema.names:
                now = _now(batch, plan, schema) if now is None else now
                batch = batch.drop_columns([NOW])
            engine.update(batch.cast(kinds))
        yield from _answers(engine, now, schema, plan)

    return complete


def unpacked(plan: Plan, schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Closed epochs, each with a list of its partials, to answers."""

    def complete(batches: Batches) -> Batches:
        engine, kinds = HighLevel(plan, schema), partial_schema(plan, schema)
        for batch in batches:
            partials = batch.column(PARTIALS).flatten()
            found = pa.RecordBatch.from_arrays(partials.flatten(), schema=pa.schema(list(partials.type)))
            engine.update(found.cast(kinds))
        yield from _answers(engine, None, schema, plan)

    return complete


def _answers(engine: HighLevel, now: Nanoseconds | None, schema: pa.Schema, plan: Plan) -> Batches:
    table = engine.answers(now)
    if table.num_rows:
        yield from table.cast(answer_schema(plan, schema), safe=False).to_batches()  # nanoseconds, to Spark's micros


def _now(batch: pa.RecordBatch, plan: Plan, schema: pa.Schema) -> Nanoseconds | None:
    """The newest time of the input: in the time column's own type, or as ticks."""
    column = batch.column(NOW).slice(0, 1)
    if not len(column) or not column[0].is_valid:
        return None
    if pa.types.is_int64(column.type):
        assert plan.time is not None
        return Nanoseconds(column[0].as_py() * PER_TICK[timecolumn.unit_of(schema.field(plan.time).type)])
    found = ticks(column)
    return Nanoseconds(found.span()[1]) if len(found) else None
