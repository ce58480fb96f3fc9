"""The states of all groups of a query: rows or partials go in, partials or answers come out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wane import registry
from wane._jit import kernel
from wane.decay.base import Ints
from wane.errors import BadInput
from wane.expr import Column, Expr
from wane.grouped import timecolumn
from wane.grouped.arrays import grown
from wane.grouped.clock import Clock, asked
from wane.grouped.contents import content_hashes
from wane.grouped.keys import Groups
from wane.grouped.pool import Ids, Pool, make_pool
from wane.grouped.query import Plan
from wane.grouped.words import WordColumn
from wane.times import PER_TICK

EPOCH = "epoch"
ROWS, NEWEST = "rows", "newest"
_NEVER = -(2**63)


@kernel("void(w_i8, w_i8, r_i8, r_i8, r_i8)")
def _note(rows: Ints, newest: Ints, ids: Ids, counts: Ints, times: Ints) -> None:
    """Count rows, and keep the newest time of each group."""
    for i in range(ids.shape[0]):
        group = ids[i]
        rows[group] += counts[i]
        newest[group] = max(newest[group], times[i])


class States:
    """The groups of one query, and a pool for each of its states.

    Args:
        plan: The query.
        schema: The columns of its source.
        stream: Tells these states from those of other rows.
    """

    def __init__(self, plan: Plan, schema: pa.Schema, stream: int = 0) -> None:
        self.plan = plan
        self.schema = schema
        self.time = None if plan.time is None else schema.field(plan.time).type
        keys = [pa.field(EPOCH, pa.int64())] if plan.every else []
        self._groups = Groups([*keys, *(schema.field(name) for name in plan.keys)])
        self._rows = np.zeros(0, np.int64)
        self._newest = np.zeros(0, np.int64)
        self.words = {
            state.column: WordColumn(pa.field(str(state.column), _kind(state.column, schema)))
            for state in plan.states
            if state.column is not None and registry.lookup(state.summary).items == "any"
        }
        self.pools: list[Pool] = []
        for i, state in enumerate(plan.states):
            questions = frozenset(a.question for a in plan.answers if a.state == i)
            words = None if state.column is None else self.words.get(state.column)
            self.pools.append(make_pool(state, plan.every, questions, self.time, words))
            self.pools[-1].stream = stream

    @property
    def size(self) -> int:
        """The number of groups."""
        return self._groups.size

    @property
    def nbytes(self) -> int:
        """About the memory that everything takes."""
        pools = sum(pool.nbytes for pool in self.pools)
        return pools + self._groups.nbytes + sum(words.nbytes for words in self.words.values()) + 16 * self.size

    def place(self, keys: list[pa.Array], rows: int, clock: Clock | None) -> Ids:
        """The groups of some rows, with room for them in every pool; the rows are counted."""
        ids = self._groups.ids(keys, rows)
        self._grow()
        self._note(ids, np.ones(rows, np.int64), np.full(rows, _NEVER) if clock is None else clock.times.values)
        return ids

    def fields(self) -> list[pa.Field]:
        """The columns of a partial: epoch and keys, how many rows it is made of and the newest time, and the states."""
        keys = [pa.field(EPOCH, pa.int64())] if self.plan.every else []
        keys += [self.schema.field(name).with_nullable(True) for name in self.plan.keys]
        found = [*keys, pa.field(ROWS, pa.int64()), pa.field(NEWEST, pa.int64())]
        for i, pool in enumerate(self.pools):
            found += [field.with_name(f"s{i}_{field.name}") for field in pool.fields()]
        return found

    def partials(self) -> pa.RecordBatch:
        """One row a group."""
        groups = np.arange(self.size)
        newest = self._newest[: self.size]
        columns = [*self._groups.keys(groups), pa.array(self._rows[: self.size])]
        columns.append(pa.array(newest, mask=newest == _NEVER))
        for pool in self.pools:
            columns += pool.partials(groups)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(self.fields()))

    def absorb(self, partials: pa.RecordBatch) -> None:
        """Merge partials; the ones of a group are sorted first, so that the order they come in does not matter."""
        names = [field.name for field in self.fields()]
        keyed = names.index(ROWS)
        ids = self._groups.ids([partials.column(name) for name in names[:keyed]], partials.num_rows)
        self._grow()
        order = np.lexsort((content_hashes(partials.select(names[keyed:])), ids))
        partials, ids = partials.take(pa.array(order)), ids[order]
        newest = partials.column(NEWEST).fill_null(_NEVER).to_numpy(zero_copy_only=False)
        self._note(ids, partials.column(ROWS).to_numpy(zero_copy_only=False), newest)
        for i, pool in enumerate(self.pools):
            pool.absorb(ids, [partials.column(f"s{i}_{field.name}") for field in pool.fields()])

    def answers(self, now: int | None) -> pa.Table:
        """The answers for all groups, ordered by epoch and keys; without epochs they are asked at `now`."""
        plan = self.plan
        groups = np.arange(self.size)
        keys = self._groups.keys(groups)
        epochs = np.zeros(len(groups), np.int64)
        columns: dict[str, pa.Array] = {}
        if plan.every is not None:
            epochs = keys.pop(0).to_numpy()
            columns[EPOCH] = self._labels(epochs)
        columns.update(zip(plan.keys, keys, strict=True))
        for answer in plan.answers:
            when = asked(plan.states[answer.state], plan.every, epochs, now)
            columns[answer.name] = self.pools[answer.state].answer(answer, groups, when)
        table = pa.table(columns)
        keyed = list(columns)[: len(columns) - len(plan.answers)]
        return table.take(_order([columns[name] for name in keyed])) if keyed else table

    def whole(self) -> None:
        """Make the one group of a query that has no others, if no row has made it."""
        if not self.plan.keys and self.plan.every is None and not self.size:
            self._groups.ids([], 1)
            self._grow()

    @property
    def newest(self) -> int | None:
        """The newest time of all groups, in nanoseconds."""
        most = int(self._newest[: self.size].max(initial=_NEVER))
        assert self.time is not None or most == _NEVER
        return None if most == _NEVER else most * PER_TICK[timecolumn.unit_of(self.time)]

    def _grow(self) -> None:
        size = self.size
        self._rows = grown(self._rows, size)
        before = len(self._newest)
        self._newest = grown(self._newest, size)
        self._newest[before:] = _NEVER
        for pool in self.pools:
            pool.grow(size)

    def _note(self, ids: Ids, counts: Ints, times: Ints) -> None:
        _note(self._rows, self._newest, ids, counts.astype(np.int64), times.astype(np.int64))

    def _labels(self, epochs: Ints) -> pa.Array:
        """The start of each epoch, in the time column's own type."""
        every = self.plan.every
        assert every is not None
        unit = timecolumn.unit_of(self.time)
        per = PER_TICK[unit]
        starts = epochs * (every.length // per) + every.offset // per
        try:
            return timecolumn.write(starts, unit, timecolumn.label_type(self.time))
        except pa.ArrowInvalid as why:
            raise BadInput(
                f"an epoch starts before or after what {self.plan.time!r} of type {self.time} can hold ({why}); cast "
                "it to a wider type"
            ) from None


def _kind(expr: Expr, schema: pa.Schema) -> pa.DataType:
    """The type of a column or expression."""
    return schema.field(expr.name).type if isinstance(expr, Column) else pa.float64()


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
