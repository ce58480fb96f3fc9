"""The two levels of a plan as functions that `mapInArrow` takes: they run in Spark's Python workers.

A worker gets the plan and the schema of the rows with the function, and sees Arrow batches and nothing else. What it
gives depends on the rows alone: not on the task, its attempt, or what ran in the worker before. (A sample of rows
without ids depends on the number of the partition too: docs/decisions/0025-random-numbers-belong-to-rows.md.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext

from wane.grouped import HighLevel, LowLevel
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
    return LowLevel(plan, schema).answers().schema.remove_metadata()


def low(plan: Plan, schema: pa.Schema, before: str, budget: int) -> Callable[[Batches], Batches]:
    """Rows to partials."""

    def reduce(batches: Batches) -> Batches:
        engine = LowLevel(plan, schema, before, budget, _part())
        for batch in batches:
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


def high(plan: Plan, schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Partials to answers, of all groups of a partition; now may come as a column."""

    def complete(batches: Batches) -> Batches:
        engine = HighLevel(plan, schema)
        now: Nanoseconds | None = None
        for batch in batches:
            if NOW in batch.schema.names:
                now = _now(batch) if now is None else now
                batch = batch.drop_columns([NOW])
            engine.update(batch)
        yield from _answers(engine, now, schema, plan)

    return complete


def unpacked(plan: Plan, schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Closed epochs, each with a list of its partials, to answers."""

    def complete(batches: Batches) -> Batches:
        engine = HighLevel(plan, schema)
        for batch in batches:
            partials = batch.column(PARTIALS).flatten()
            engine.update(pa.RecordBatch.from_arrays(partials.flatten(), schema=pa.schema(list(partials.type))))
        yield from _answers(engine, None, schema, plan)

    return complete


def _answers(engine: HighLevel, now: Nanoseconds | None, schema: pa.Schema, plan: Plan) -> Batches:
    table = engine.answers(now)
    if table.num_rows:
        yield from table.cast(answer_schema(plan, schema)).to_batches()


def _now(batch: pa.RecordBatch) -> Nanoseconds | None:
    column = batch.column(NOW)
    found = ticks(column.slice(0, 1)) if len(column) and column[0].is_valid else None
    return None if found is None or not len(found) else Nanoseconds(found.span()[1])
