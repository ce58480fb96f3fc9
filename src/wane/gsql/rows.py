"""Columns made of columns, batch by batch: what a query does before rows are grouped, and after.

The same functions run in this process and in Spark's workers, so that both give the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wane.expr import Expr
from wane.grouped.timecolumn import unit_of
from wane.summaries.base import column_of
from wane.times import PER_TICK, SECOND

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True)
class Copy:
    """A column as it is."""

    column: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (self.column,)

    def make(self, columns: Columns, rows: int) -> pa.Array:
        """The column, of some rows."""
        return columns[self.column]


@dataclass(frozen=True)
class Number:
    """The doubles of an expression; null where there is no finite one."""

    expr: Expr

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return self.expr.columns

    def make(self, columns: Columns, rows: int) -> pa.Array:
        """The column, of some rows."""
        values = evaluate(self.expr, columns, rows)
        good = np.isfinite(values)
        return pa.array(values) if good.all() else pa.array(values, mask=~good)


@dataclass(frozen=True)
class Whole:
    """The integers of an expression, rounded down; null where there is none."""

    expr: Expr

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return self.expr.columns

    def make(self, columns: Columns, rows: int) -> pa.Array:
        """The column, of some rows."""
        values = np.floor(evaluate(self.expr, columns, rows))
        good = np.abs(values) < 2.0**63
        made = np.where(good, values, 0).astype(np.int64)
        return pa.array(made) if good.all() else pa.array(made, mask=~good)


@dataclass(frozen=True)
class Seconds:
    """The whole seconds of a column of times, rounded down, exactly."""

    column: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (self.column,)

    def make(self, columns: Columns, rows: int) -> pa.Array:
        """The column, of some rows."""
        array = columns[self.column]
        if pa.types.is_date(array.type):
            array = array.cast(pa.timestamp("ms"))
        ticks = array.cast(pa.int64())
        missing = None if not ticks.null_count else ticks.is_null().to_numpy(zero_copy_only=False)
        per = SECOND // PER_TICK[unit_of(array.type)]
        return pa.array(ticks.fill_null(0).to_numpy(zero_copy_only=False) // per, mask=missing)


@dataclass(frozen=True)
class Matches:
    """1 where a column of texts or bytes compares with one as asked, else 0, also where it is null."""

    column: str
    operator: str
    value: str | bytes

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (self.column,)

    def make(self, columns: Columns, rows: int) -> pa.Array:
        """The column, of some rows."""
        array = columns[self.column]
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = array.type
        if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
            kind = pa.large_binary() if isinstance(self.value, bytes) else pa.large_string()
            array = array.cast(kind)
        found = _COMPARE[self.operator](array, pa.scalar(self.value, kind))
        return pc.fill_null(found, False).cast(pa.int8()).cast(pa.float64())


@dataclass(frozen=True)
class Element:
    """One element of a column of lists; null where a list is shorter."""

    column: str
    index: int

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (self.column,)

    def make(self, columns: Columns, rows: int) -> pa.Array:
        """The column, of some rows."""
        lists = columns[self.column]
        long = pc.greater(pc.list_value_length(lists), self.index)
        places = pc.if_else(pc.fill_null(long, False), pa.array(_starts(lists)), None)
        return pc.take(lists.values, pc.add(places, self.index))


Value = Copy | Number | Whole | Seconds | Matches | Element


@dataclass(frozen=True)
class Step:
    """Rows made of rows.

    Attributes:
        made: Columns that are made first, in order; later ones may use earlier ones.
        where: What is not 0 for the rows that are kept, or None.
        columns: The columns of the result.
    """

    made: tuple[tuple[str, Value], ...]
    where: Expr | None
    columns: tuple[tuple[str, Value], ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        found: dict[str, None] = {}
        made: set[str] = set()
        for name, value in self.made:
            found.update((column, None) for column in value.needs if column not in made)
            made.add(name)
        further = [*(() if self.where is None else self.where.columns)]
        further += [column for _, value in self.columns for column in value.needs]
        found.update((column, None) for column in further if column not in made)
        return tuple(found)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the result, for rows of some schema."""
        return self(_empty(schema)).schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The result for some rows."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        rows = batch.num_rows
        for name, value in self.made:
            columns[name] = value.make(columns, rows)
        if self.where is not None:
            keep = evaluate(self.where, columns, rows)
            kept = pa.array((keep != 0) & ~np.isnan(keep))
            rows = pc.sum(kept).as_py() or 0
            wanted = {column for _, value in self.columns for column in value.needs}
            columns = {name: columns[name].filter(kept) for name in columns if name in wanted}
        arrays = [value.make(columns, rows) for _, value in self.columns]
        if not arrays:  # a batch of no columns would not know how many rows it has
            return pa.record_batch([pa.nulls(rows)], [""]).select([])
        return pa.RecordBatch.from_arrays(arrays, [name for name, _ in self.columns])

    def over(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results for some batches."""
        return map(self, batches)


def evaluate(expr: Expr, columns: Columns, rows: int) -> NDArray[np.float64]:
    """The doubles of an expression; NaN stands for null."""
    numbers = {}
    for name in expr.columns:
        array = columns[name]
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int8())
        elif pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
            array = Seconds(name).make(columns, rows)
        values, good = column_of(array, f"column {name!r}")
        numbers[name] = values if good is None else np.where(good, values, np.nan)
    if not numbers:
        return np.full(rows, expr.scalar({}))
    return expr.evaluate(numbers)


def _starts(lists: pa.Array) -> NDArray[np.int64]:
    return np.asarray(lists.offsets.to_numpy()[:-1], np.int64)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


_COMPARE: dict[str, Any] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
