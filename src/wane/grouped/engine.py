"""Runs a plan over Arrow batches, in this process: rows in, one answer a group out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wane.decay import Pinned
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
        self._oldest = 2**200
        self._schema = _plain_schema(schema)
        time = None if plan.time is None else self._schema.field(plan.time).type
        for state in plan.states:
            if before == "clamp" and time is not None and (state.landmark or 0) % PER_TICK[timecolumn.unit_of(time)]:
                raise BadInput(
                    f"the landmark of {state} lies between two ticks of {plan.time!r}, which is {time}, so that no row "
                    "can be moved there; choose a landmark at a whole tick, or before='drop'"
                )
        self._dropped: Counter[str] = Counter()
        self._counted: set[tuple[str, int]] = set()
        fields = [self._schema.field(name) for name in plan.keys]
        self._groups = Groups([*([pa.field(EPOCH, pa.int64())] if plan.every else []), *fields])
        self._pools = [
            make_pool(state, plan.every, frozenset(a.question for a in plan.answers if a.state == i), time)
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
        self._counted.clear()
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
            clock = Clock(times, plan.every)
            self.newest = clock.span[1] if self.newest is None else max(self.newest, clock.span[1])
            self._oldest = min(self._oldest, clock.span[0])
        keys = [batch.column(name) for name in plan.keys]
        if clock is not None and plan.every is not None:
            keys.insert(0, pa.array(clock.epochs))
        ids = self._place(keys, batch.num_rows)
        values: dict[Expr, tuple[Floats, NDArray[np.bool_] | None]] = {}
        for state, pool in zip(plan.states, self._pools, strict=True):
            if state.column is not None and state.column not in values:
                values[state.column] = _values(state.column, batch)
                good = values[state.column][1]
                if good is not None:
                    self._count(f"value of {state.column}", ~good)
            self._feed(pool, state, ids, clock, None if state.column is None else values[state.column])

    def finish(self, now: int | None = None) -> pa.Table:
        """The answers for all groups, ordered by epoch and keys.

        Args:
            now: The time of the question, where there are no epochs; None is the newest time of the input.
        """
        plan = self.plan
        if not plan.keys and plan.every is None and not self._groups.size:
            self._place([], 1)  # all rows are one group, and so are none
        if now is not None and self.newest is not None and now < self.newest:
            raise QueryInPast(
                f"now={show(now)} is before the newest row, {show(self.newest)}, whose weight would pass 1; "
                "ask at or after it"
            )
        for state in plan.states:
            self._check_now(state, now)
        now = self.newest if now is None else now
        groups = np.arange(self._groups.size)
        keys = self._groups.keys(groups)
        epochs = np.zeros(len(groups), np.int64)
        columns: dict[str, pa.Array] = {}
        if plan.every is not None:
            assert plan.time is not None
            epochs = keys.pop(0).to_numpy()
            kind = self._schema.field(plan.time).type
            unit = timecolumn.unit_of(kind)
            per = PER_TICK[unit]
            starts = epochs * (plan.every.length // per) + plan.every.offset // per
            try:
                columns[EPOCH] = timecolumn.write(starts, unit, timecolumn.label_type(kind))
            except pa.ArrowInvalid as why:
                raise BadInput(
                    f"an epoch starts before or after what {plan.time!r} of type {kind} can hold ({why}); cast it to a "
                    "wider type"
                ) from None
        columns.update(zip(plan.keys, keys, strict=True))
        for answer in plan.answers:
            when = asked(plan.states[answer.state], plan.every, epochs, now)
            columns[answer.name] = self._pools[answer.state].answer(answer, groups, when)
        table = pa.table(columns)
        keyed = list(columns)[: len(columns) - len(plan.answers)]
        return table.take(_order([columns[name] for name in keyed])) if keyed else table

    def _check_now(self, state: State, now: int | None) -> None:
        """Refuse questions that no weight answers."""
        if isinstance(state.decay, Pinned):
            if now is not None and now != state.decay.now:
                raise QueryInPast(f"{state} is asked at now={show(now)}, and was fixed for {show(state.decay.now)}")
            return
        if state.landmark is None or not state.decay.needs_landmark or self.newest is None:
            return
        if now is not None and now < state.landmark:
            raise QueryInPast(f"now={show(now)} is before the landmark of {state}")
        every = self.plan.every
        if (
            every is not None
            and self.before == "clamp"
            and self._oldest < state.landmark // every.length * every.length
        ):
            raise QueryInPast(
                f"{state} is asked at the end of epochs before its landmark, where before='clamp' has put rows after "
                "the question; use before='drop'"
            )

    def _place(self, keys: list[pa.Array], rows: int) -> Ids:
        """The groups of rows, with room for them in every pool."""
        ids = self._groups.ids(keys, rows)
        for pool in self._pools:
            pool.grow(self._groups.size)
        return ids

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
        if clock is not None and state.landmark is not None and clock.span[0] < state.landmark:
            clock, keep = self._before_landmark(clock, state, keep)
        if keep is not None:
            ids = ids[keep]
            numbers = None if numbers is None else numbers[keep]
            clock = None if clock is None else clock.take(keep)
        if len(ids):
            pool.update(ids, clock, numbers)

    def _count(self, reason: str, gone: NDArray[np.bool_], detail: int = 0) -> None:
        """Count rows that are left out, once a batch for each reason, however many answers miss them."""
        if (reason, detail) not in self._counted:
            self._counted.add((reason, detail))
            self._dropped[reason] += int(gone.sum())

    def _before_landmark(
        self, clock: Clock, state: State, keep: NDArray[np.bool_] | None
    ) -> tuple[Clock, NDArray[np.bool_] | None]:
        assert state.landmark is not None
        values, base, _ = clock.times.since(state.landmark, *clock.span)
        late = values < base
        if self.before == "error":
            raise BeforeLandmark(
                f"{int(late.sum())} rows are before the landmark {show(state.landmark)} of {state}; choose an earlier "
                "landmark, or before='drop' or 'clamp'"
            )
        if self.before == "clamp":
            return clock.at(Ticks(np.maximum(values, base), clock.times.unit)), keep
        self._count("before_landmark", late, state.landmark)
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
        seconds = array.cast(pa.int64()).cast(pa.float64(), safe=False)
        return pc.divide(seconds, 10**9 / PER_TICK[kind.unit])
    return array
