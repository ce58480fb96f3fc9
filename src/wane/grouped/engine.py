"""Runs a plan over Arrow batches, in this process: rows in, one answer a group out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wane.decay.base import Floats
from wane.errors import BadInput, BeforeLandmark, QueryInPast
from wane.expr import Column, Expr
from wane.grouped import timecolumn
from wane.grouped.clock import Clock, asked
from wane.grouped.keys import Groups
from wane.grouped.pool import Ids, Pool, make_pool
from wane.grouped.query import Plan, State
from wane.summaries.base import column_of
from wane.times import PER_TICK, Ticks, show

EPOCH = "epoch"


class Engine:
    """The groups of one query.

    Args:
        plan: The query.
        schema: The columns it will meet.
        before: What happens to a row before a state's landmark: ``"error"``, ``"drop"`` or ``"clamp"``.
    """

    def __init__(self, plan: Plan, schema: pa.Schema, before: str = "error") -> None:
        self.plan = plan
        self.before = before
        self.rows = 0
        self.newest: int | None = None
        self._schema = _plain_schema(schema)
        self._dropped: Counter[str] = Counter()
        fields = [self._schema.field(name) for name in plan.keys]
        self._groups = Groups([*([pa.field(EPOCH, pa.int64())] if plan.every else []), *fields])
        self._pools = [
            make_pool(state, plan.every, frozenset(a.question for a in plan.answers if a.state == i))
            for i, state in enumerate(plan.states)
        ]

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many rows were not counted, by reason; one row may be missing from several answers."""
        return dict(self._dropped)

    def update(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows."""
        plan = self.plan
        self.rows += batch.num_rows
        batch = batch.select(list(plan.columns))
        batch = self._kept(batch.cast(_plain_schema(batch.schema)))
        if not batch.num_rows:
            return
        clock = None
        if plan.time is not None:
            column = batch.column(plan.time)
            times = timecolumn.read(column)
            if times.valid is not None:
                self._dropped["time"] += int((~times.valid).sum())
                batch = batch.filter(pa.array(times.valid))
                times = times.take(times.valid)
                if not batch.num_rows:
                    return
            clock = Clock(times, plan.every, column.type)
            self.newest = clock.span[1] if self.newest is None else max(self.newest, clock.span[1])
        keys = [batch.column(name) for name in plan.keys]
        if clock is not None and plan.every is not None:
            keys.insert(0, pa.array(clock.epochs))
        ids = self._groups.ids(keys, batch.num_rows)
        for pool in self._pools:
            pool.grow(self._groups.size)
        values: dict[Expr, tuple[Floats, NDArray[np.bool_] | None]] = {}
        for state, pool in zip(plan.states, self._pools, strict=True):
            if state.column is not None and state.column not in values:
                values[state.column] = _values(state.column, batch)
            self._feed(pool, state, ids, clock, None if state.column is None else values[state.column])

    def finish(self, now: int | None = None) -> pa.Table:
        """The answers for all groups, ordered by epoch and keys.

        Args:
            now: The time of the question, where there are no epochs; None is the newest time of the input.
        """
        plan = self.plan
        if plan.every is None:
            if now is not None and self.newest is not None and now < self.newest:
                raise QueryInPast(
                    f"now={show(now)} is before the newest row, {show(self.newest)}, whose weight would pass 1; "
                    "ask at or after it"
                )
            now = self.newest if now is None else now
        groups = np.arange(self._groups.size)
        keys = self._groups.keys(groups)
        epochs = np.zeros(len(groups), np.int64)
        columns: dict[str, pa.Array] = {}
        if plan.every is not None:
            assert plan.time is not None
            epochs = keys.pop(0).to_numpy()
            kind = self._schema.field(plan.time).type
            unit = kind.unit if pa.types.is_timestamp(kind) else "ns" if pa.types.is_floating(kind) else "s"
            starts = (epochs * plan.every.length + plan.every.offset) // PER_TICK[unit]
            columns[EPOCH] = timecolumn.write(starts, unit, kind)
        columns.update(zip(plan.keys, keys, strict=True))
        for answer in plan.answers:
            when = asked(plan.states[answer.state], plan.every, epochs, now)
            columns[answer.name] = self._pools[answer.state].answer(answer, groups, when)
        table = pa.table(columns)
        keyed = list(columns)[: len(columns) - len(plan.answers)]
        return table.take(_order([columns[name] for name in keyed])) if keyed else table

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.plan.where is None:
            return batch
        keep = _evaluate(self.plan.where, batch)
        return batch.filter(pa.array((keep != 0) & ~np.isnan(keep)))

    def _feed(
        self,
        pool: Pool,
        state: State,
        ids: Ids,
        clock: Clock | None,
        values: tuple[Floats, NDArray[np.bool_] | None] | None,
    ) -> None:
        """Give a pool the rows it can use, and count the others."""
        numbers, keep = values or (None, None)
        if keep is not None:
            self._dropped[f"value of {state.column}"] += int((~keep).sum())
        if clock is not None and state.landmark is not None and clock.span[0] < state.landmark:
            clock, keep = self._before_landmark(clock, state, keep)
        if keep is not None:
            ids = ids[keep]
            numbers = None if numbers is None else numbers[keep]
            clock = None if clock is None else clock.take(keep)
        if len(ids):
            pool.update(ids, clock, numbers)

    def _before_landmark(
        self, clock: Clock, state: State, keep: NDArray[np.bool_] | None
    ) -> tuple[Clock, NDArray[np.bool_] | None]:
        assert state.landmark is not None
        values, base, per = clock.times.since(state.landmark, *clock.span)
        late = values < base
        if self.before == "error":
            raise BeforeLandmark(
                f"{int(late.sum())} rows are before the landmark {show(state.landmark)} of {state}; choose an earlier "
                "landmark, or before='drop' or 'clamp'"
            )
        if self.before == "clamp":
            unit = next(unit for unit, ns in PER_TICK.items() if ns == per)
            return clock.at(Ticks(np.maximum(values, base), unit)), keep
        late = late if keep is None else late & keep
        self._dropped["before_landmark"] += int(late.sum())
        return clock, ~late if keep is None else keep & ~late


def _values(expr: Expr, batch: pa.RecordBatch) -> tuple[Floats, NDArray[np.bool_] | None]:
    """The numbers of a column or expression, and where they can be used (None: everywhere)."""
    if isinstance(expr, Column):
        return column_of(_plain(batch.column(expr.name)), f"column {expr.name!r}")
    return column_of(_evaluate(expr, batch))


def _evaluate(expr: Expr, batch: pa.RecordBatch) -> Floats:
    columns = {}
    for name in expr.columns:
        numbers, good = column_of(_plain(batch.column(name)), f"column {name!r}")
        columns[name] = numbers if good is None else np.where(good, numbers, np.nan)
    if not columns:
        raise BadInput(f"the expression {str(expr)!r} uses no column; write one that does")
    return expr.evaluate(columns)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Views of text and bytes become plain ones, which every function of Arrow takes."""
    kinds = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in schema])


def _order(keys: list[pa.Array]) -> pa.Array:
    """The order of rows by some columns, nulls last."""
    sortable = {}
    for i, key in enumerate(keys):
        if pa.types.is_duration(key.type):
            key = key.cast(pa.int64())
        if not pa.types.is_null(key.type):
            sortable[str(i)] = key
    if not sortable:
        return pa.array(range(len(keys[0])), pa.int64())
    return pc.sort_indices(pa.table(sortable), sort_keys=[(name, "ascending") for name in sortable])


def _plain(array: pa.Array) -> pa.Array:
    """Times in an expression are seconds since 1970, as they are everywhere."""
    kind = array.type
    if pa.types.is_date(kind):
        array, kind = array.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_timestamp(kind):
        seconds = array.cast(pa.int64()).cast(pa.float64())
        return pc.divide(seconds, 10**9 / PER_TICK[kind.unit])
    return array
