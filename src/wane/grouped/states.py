"""The states of all groups of a query: rows or partials go in, partials or answers come out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wane import registry
from wane._jit import kernel
from wane.decay.base import Ints
from wane.errors import BadInput, BadParameter
from wane.expr import Column, Expr
from wane.grouped import timecolumn
from wane.grouped.arrays import grown
from wane.grouped.cache import CachedGroups
from wane.grouped.clock import Clock, asked
from wane.grouped.contents import content_hashes
from wane.grouped.hops import EPOCH as EPOCH
from wane.grouped.keys import Groups
from wane.grouped.moments_pool import MomentsPool
from wane.grouped.pool import Ids, Pool, make_pool
from wane.grouped.query import Plan
from wane.grouped.words import WordColumn
from wane.times import PER_TICK

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
        budget: About how many bytes they may take before they are handed out; None for no bound.
        cache: The strategy of a cache of groups, and its slots (:mod:`wane.grouped.cache`); None keeps every group.
        noted: Whether rows and newest times are kept for each group, which partials need.
        stream: Tells these states from those of other rows.
    """

    def __init__(
        self,
        plan: Plan,
        schema: pa.Schema,
        budget: int | None = None,
        cache: tuple[str, int] | None = None,
        noted: bool = True,
        stream: int = 0,
    ) -> None:
        self.plan = plan
        self.schema = schema
        self.time = None if plan.time is None else schema.field(plan.time).type
        keys = [pa.field(EPOCH, pa.int64())] if plan.every else []
        columns = [*keys, *(schema.field(name) for name in plan.keys)]
        self._cache = None if cache is None else CachedGroups(columns, *cache, epochs=bool(keys))
        self._groups: Groups | CachedGroups = self._cache or Groups(columns)
        self._noted = noted
        self._latest = _NEVER
        self._rows = np.zeros(0, np.int64)
        self._newest = np.zeros(0, np.int64)
        self.words = {
            state.column: WordColumn(pa.field(str(state.column), _kind(state.column, schema)))
            for state in plan.states
            if state.column is not None and registry.lookup(state.summary).items != "numbers"
        }
        self.pools: list[Pool] = []
        for i, state in enumerate(plan.states):
            questions = frozenset(a.question for a in plan.answers if a.state == i)
            items = registry.lookup(state.summary).items == "any"
            words = self.words.get(state.column) if items and state.column is not None else None
            self.pools.append(make_pool(state, plan.every, questions, self.time, words, budget))
            self.pools[-1].stream = stream

        self.followers = self._following()

    def _following(self) -> dict[int, int]:
        """The states that count rows, by one each that sums a column with the same weights."""
        found = {}
        for i, (one, pool) in enumerate(zip(self.plan.states, self.pools, strict=True)):
            for j, (other, leader) in enumerate(zip(self.plan.states, self.pools, strict=True)):
                same = (one.decay, one.landmark) == (other.decay, other.landmark) and other.column is not None
                if one.column is None and same and isinstance(pool, MomentsPool) and isinstance(leader, MomentsPool):
                    pool.follow(leader)
                    found[i] = j
                    break
        return found

    def part(self, follower: int) -> None:
        """Let a state count rows by itself from now on."""
        pool = self.pools[follower]
        assert isinstance(pool, MomentsPool)
        pool.part()
        del self.followers[follower]

    @property
    def size(self) -> int:
        """The number of groups; of a cache, that of the places for one."""
        return self._groups.size

    @property
    def epoch(self) -> int | None:
        """The newest epoch."""
        every = self.plan.every
        return None if every is None or self.newest is None else (self.newest - every.offset) // every.step

    @property
    def counts(self) -> Ints:
        """How many rows each group has."""
        return self._rows[: self.size]

    @property
    def live(self) -> Ids:
        """The groups there are."""
        return np.arange(self.size) if self._cache is None else self._cache.live

    @property
    def nbytes(self) -> int:
        """About the memory that everything takes."""
        pools = sum(pool.nbytes for pool in self.pools)
        notes = self._rows.nbytes + self._newest.nbytes
        return pools + self._groups.nbytes + sum(words.nbytes for words in self.words.values()) + notes

    def place(self, keys: list[pa.Array], rows: int, clock: Clock | None) -> Ids:
        """The groups of some rows, with room for them in every pool; the rows are counted."""
        ids = self._groups.ids(keys, rows)
        self._grow()
        if clock is not None and rows:
            self._latest = max(self._latest, clock.span[1] // clock.times.per_tick)
        if self._noted:
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

    def ejected(self, rows: int | None) -> pa.RecordBatch | None:
        """The partials of groups that lost their place in the cache, and of some of old epochs, or all for None."""
        if self._cache is None:
            return None
        self._cache.sweep(rows)
        gone = self._cache.gone
        if not len(gone):
            return None
        found = self.partials(gone)
        self._rows[gone] = 0
        self._newest[gone] = _NEVER
        for pool in self.pools:
            pool.clear(gone)
        self._cache.forget()
        return found

    def partials(self, groups: Ids | None = None) -> pa.RecordBatch:
        """One row a group: of all of them, or of some."""
        assert self._noted
        groups = self.live if groups is None else groups
        newest = self._newest[groups]
        columns = [*self._groups.keys(groups), pa.array(self._rows[groups])]
        columns.append(pa.array(newest, mask=newest == _NEVER))
        for pool in self.pools:
            columns += pool.partials(groups)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(self.fields()))

    def absorb(self, partials: pa.RecordBatch, ordered: bool = False) -> None:
        """Merge partials.

        Args:
            partials: The partials.
            ordered: Whether they come in an order that is always the same; otherwise those of a group are sorted.
        """
        for follower in [*self.followers]:
            self.part(follower)
        names = [field.name for field in self.fields()]
        keyed = names.index(ROWS)
        ids = self._groups.ids([partials.column(name) for name in names[:keyed]], partials.num_rows)
        self._grow()
        if not ordered:
            order = np.lexsort((content_hashes(partials.select(names[keyed:])), ids))
            partials, ids = partials.take(pa.array(order)), ids[order]
        newest = partials.column(NEWEST).fill_null(_NEVER).to_numpy(zero_copy_only=False)
        self._latest = max(self._latest, int(newest.max(initial=_NEVER)))
        self._note(ids, partials.column(ROWS).to_numpy(zero_copy_only=False), newest)
        for i, pool in enumerate(self.pools):
            pool.absorb(ids, [partials.column(f"s{i}_{field.name}") for field in pool.fields()])

    def answers(self, now: int | None, bounds: bool = False) -> pa.Table:
        """The answers for all groups, ordered by epoch and keys.

        Args:
            now: When they are asked, without epochs.
            bounds: Whether each answer comes with a column that says how far from the truth it may be.
        """
        plan = self.plan
        groups = self.live
        keys = self._groups.keys(groups)
        epochs = np.zeros(len(groups), np.int64)
        columns: dict[str, pa.Array] = {}
        if plan.every is not None:
            epochs = keys.pop(0).to_numpy()
            columns[EPOCH] = self._labels(epochs)
        columns.update(zip(plan.keys, keys, strict=True))
        for answer in plan.answers:
            when = asked(plan.states[answer.state], plan.every, epochs, now)
            pool = self.pools[answer.state]
            columns[answer.name] = pool.answer(answer, groups, when)
            if bounds:
                name, exact = bounds_name(answer.name), pool.exact(groups)
                if name in (*plan.keys, *(other.name for other in plan.answers)):
                    raise BadParameter(f"bounds= adds a column {name!r}, and there is one; give it another name")
                pair = [pa.array(np.where(exact, 0.0, pool.error(answer))), pa.array(exact)]
                columns[name] = pa.StructArray.from_arrays(pair, ["error", "exact"])
        table = pa.table(columns)
        keyed = [*([EPOCH] if plan.every else []), *plan.keys]
        return table.take(_order([columns[name] for name in keyed])) if keyed else table

    def whole(self) -> None:
        """Make the one group of a query that has no others, if no row has made it."""
        if not self.plan.keys and self.plan.every is None and not self.size:
            self._groups.ids([], 1)
            self._grow()

    @property
    def newest(self) -> int | None:
        """The newest time of all groups, in nanoseconds."""
        most = self._latest
        assert self.time is not None or most == _NEVER
        return None if most == _NEVER else most * PER_TICK[timecolumn.unit_of(self.time)]

    def _grow(self) -> None:
        size = self.size
        if self._noted:
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
        starts = epochs * (every.step // per) + every.offset // per
        try:
            return timecolumn.write(starts, unit, timecolumn.label_type(self.time))
        except pa.ArrowInvalid as why:
            raise BadInput(
                f"an epoch starts before or after what {self.plan.time!r} of type {self.time} can hold ({why}); cast "
                "it to a wider type"
            ) from None


def bounds_name(name: str) -> str:
    """The column of the bounds of an answer."""
    return f"{name}_bounds"


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
