"""Rows on their way into the states of a query: filtered, timed, weighed, and counted where they cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wane.decay.base import Floats
from wane.errors import BadInput, BeforeLandmark, QueryInPast
from wane.expr import Column, Expr
from wane.grouped import timecolumn
from wane.grouped.clock import Clock
from wane.grouped.pool import Ids, Named, Pool
from wane.grouped.query import Plan, State
from wane.grouped.states import States
from wane.summaries.base import column_of
from wane.times import PER_TICK, Ticks, show

Good = NDArray[np.bool_] | None


class Reader:
    """Feeds batches of rows to the states of a query.

    Args:
        plan: The query.
        schema: The columns of its source.
        before: What happens to a row before a state's landmark: ``"error"``, ``"drop"`` or ``"clamp"``.
    """

    def __init__(self, plan: Plan, schema: pa.Schema, before: str = "error") -> None:
        self.plan = plan
        self.before = before
        self.rows = 0
        self._dropped: Counter[str] = Counter()
        self._counted: set[tuple[str, int]] = set()
        time = None if plan.time is None else schema.field(plan.time).type
        for state in plan.states:
            if before == "clamp" and time is not None and (state.landmark or 0) % PER_TICK[timecolumn.unit_of(time)]:
                raise BadInput(
                    f"the landmark of {state} lies between two ticks of {plan.time!r}, which is {time}, so that no row "
                    "can be moved there; choose a landmark at a whole tick, or before='drop'"
                )

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many rows were not counted, by reason; one row may be missing from several answers."""
        return dict(self._dropped)

    def feed(self, batch: pa.RecordBatch, states: States) -> None:
        """Add a batch of rows to the states of their groups."""
        plan = self.plan
        self.rows += batch.num_rows
        self._counted.clear()
        batch = batch.select(list(plan.columns))
        plain = plain_schema(batch.schema)
        # A cast of no columns would lose the number of rows.
        batch = self._kept(batch if plain == batch.schema else batch.cast(plain))
        clock = None
        if plan.time is not None and batch.num_rows:
            times = timecolumn.read(batch.column(plan.time))
            if times.valid is not None:
                self._dropped["time"] += int((~times.valid).sum())
                batch = batch.filter(pa.array(times.valid))
                times = times.take(times.valid)
            clock = Clock(times, plan.every)
        if not batch.num_rows:
            return
        if clock is not None:
            self._check_epochs(clock)
        keys = [batch.column(name) for name in plan.keys]
        if clock is not None and plan.every is not None:
            keys.insert(0, pa.array(clock.epochs))
        ids = states.place(keys, batch.num_rows, clock)
        read: dict[tuple[Expr, bool], tuple[Any, Good]] = {}
        for state, pool in zip(plan.states, states.pools, strict=True):
            expr = state.column
            if expr is None:
                self._feed(pool, state, ids, clock, None, None)
                continue
            names, named = (None, None) if state.ids is None else _names(state.ids, batch)
            if named is not None:
                self._count(f"ids of {state.ids}", ~named)
            words = pool.takes_words
            if (expr, words) not in read:
                read[expr, words] = _words(expr, batch, states) if words else _numbers(expr, batch)
                good = read[expr, words][1]
                if good is not None:
                    self._count(f"value of {expr}", ~good, int(words))
            values, good = read[expr, words]
            if named is not None:
                good = named if good is None else good & named
            self._feed(pool, state, ids, clock, values, good, names)

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.plan.where is None or not batch.num_rows:
            return batch
        keep = _evaluate(self.plan.where, batch)
        return batch.filter(pa.array((keep != 0) & ~np.isnan(keep)))

    def _feed(
        self, pool: Pool, state: State, ids: Ids, clock: Clock | None, values: Any, keep: Good, names: Any = None
    ) -> None:
        """Give a pool the rows it can use, and count the others."""
        if clock is not None and state.landmark is not None and clock.span[0] < state.landmark:
            clock, keep = self._before_landmark(clock, state, keep)
        if keep is not None:
            ids = ids[keep]
            values = None if values is None else values[keep]
            clock = None if clock is None else clock.take(keep)
            names = None if names is None else names.filter(pa.array(keep))
        if len(ids):
            pool.update(ids, clock, values if names is None else Named(values, names))

    def _count(self, reason: str, gone: NDArray[np.bool_], detail: int = 0) -> None:
        """Count rows that are left out, once a batch for each reason, however many answers miss them."""
        if (reason, detail) not in self._counted:
            self._counted.add((reason, detail))
            self._dropped[reason] += int(gone.sum())

    def _check_epochs(self, clock: Clock) -> None:
        """Refuse to move rows to a landmark after the end of their epoch, which is when they are asked."""
        every = self.plan.every
        if every is None or self.before != "clamp":
            return
        for state in self.plan.states:
            if state.decay.needs_landmark and state.landmark is not None:
                start = (state.landmark - every.offset) // every.length * every.length + every.offset
                if clock.span[0] < start:
                    raise QueryInPast(
                        f"{state} is asked at the end of epochs before its landmark, where before='clamp' has put rows "
                        "after the question; use before='drop'"
                    )

    def _before_landmark(self, clock: Clock, state: State, keep: Good) -> tuple[Clock, Good]:
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


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Views of text and bytes, in dictionaries too, become plain ones, which every function of Arrow takes."""
    kinds = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    for kind in {field.type for field in schema if pa.types.is_dictionary(field.type)}:
        value = kinds.get(kind.value_type, kind.value_type)
        kinds[kind] = pa.dictionary(kind.index_type, value, kind.ordered)
    return pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in schema])


def _numbers(expr: Expr, batch: pa.RecordBatch) -> tuple[Floats, Good]:
    """The numbers of a column or expression, and where they can be used (None: everywhere)."""
    if isinstance(expr, Column):
        return column_of(_seconds(batch.column(expr.name)), f"column {expr.name!r}")
    return column_of(_evaluate(expr, batch))


def _words(expr: Expr, batch: pa.RecordBatch, states: States) -> tuple[NDArray[np.int64], Good]:
    """The items of a column or expression as words, and where there is one (None: everywhere)."""
    array = batch.column(expr.name) if isinstance(expr, Column) else pa.array(_evaluate(expr, batch))
    words, missing = states.words[expr].words(array)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_floating(kind):
        nothing = np.isnan(words.view(np.float64))
        if nothing.any():
            missing = nothing if missing is None else missing | nothing
    return words, None if missing is None else ~missing


def _names(expr: Expr, batch: pa.RecordBatch) -> tuple[pa.Array, Good]:
    """What tells rows apart, and where it is there (None: everywhere)."""
    array = batch.column(expr.name) if isinstance(expr, Column) else pa.array(_evaluate(expr, batch))
    missing = array.is_null(nan_is_null=True)
    return array, None if not missing.true_count else ~missing.to_numpy(zero_copy_only=False)


def _evaluate(expr: Expr, batch: pa.RecordBatch) -> Floats:
    columns = {}
    for name in expr.columns:
        numbers, good = column_of(_seconds(batch.column(name)), f"column {name!r}")
        columns[name] = numbers if good is None else np.where(good, numbers, np.nan)
    if not columns:
        raise BadInput(f"the expression {str(expr)!r} uses no column; write one that does")
    return expr.evaluate(columns)


def _seconds(array: pa.Array) -> pa.Array:
    """Times in an expression are seconds since 1970, as they are everywhere."""
    kind = array.type
    if pa.types.is_date(kind):
        array, kind = array.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_timestamp(kind):
        seconds = array.cast(pa.int64()).cast(pa.float64(), safe=False)
        return pc.divide(seconds, 10**9 / PER_TICK[kind.unit])
    return array
