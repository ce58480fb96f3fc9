"""The two levels of a query over Arrow batches: rows to partials where the data is, partials to answers above.

Neither knows who runs it. In one process the low level may answer by itself (:meth:`LowLevel.answers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from wane import registry
from wane.decay import Pinned
from wane.errors import BadParameter, QueryInPast
from wane.grouped.contents import content_hashes
from wane.grouped.hops import by_panes, spread
from wane.grouped.measured import Measured
from wane.grouped.query import Plan
from wane.grouped.rows import Reader, plain_schema
from wane.grouped.states import States
from wane.hashing import hash_one
from wane.times import show

BUDGET = 256 << 20
"""Bytes of states that the low level keeps before it hands them on, unless told otherwise."""

_PIECE = 1 << 17
"""Rows that are taken at once: what is computed for them stays near the processor."""

_LEAST = 512
"""Fewer rows than this are not worth a look; above it, they get their share of a small budget."""

_BYTES_A_ROW = 1 << 11
"""One row is taken at once for so many bytes of budget: what a row takes on its way is a tenth of it."""

_OF_STATES = 0.75
"""The share of the budget that states may take; the rest is for rows on their way in and partials on their way out."""

_PARTS = 32
"""The states are handed out in parts of which so many fill the budget."""

_PAYS = 1.25
"""Fewer rows for each partial than this do not pay for reducing them (docs/decisions/0040)."""

_TRIAL = 16
"""Where reducing did not pay, so many times the rows of that trial go up as they are before the next one."""

FLUSHES = ("lazy", "eager")


class LowLevel:
    """Rows in, partials out; memory stays within a budget, whatever the number of groups.

    Args:
        plan: The query.
        schema: The columns of its source.
        before: What happens to a row before a state's landmark: ``"error"``, ``"drop"`` or ``"clamp"``.
        budget: How many bytes it may take; None for no bound.
        cache: A cache of groups of fixed size, as the name of its strategy (:mod:`wane.grouped.cache`); without one all
            groups are kept until the budget is used up, and then all are handed out; and where that shows that reducing
            does not pay, rows go up as they are for a while.
        slots: How many groups the cache holds.
        flush: Whether the groups of an epoch that is over are handed out little by little, ``"lazy"``, or at once,
            ``"eager"``.
        shed: The share of the groups that is kept, by a hash of their keys; rows of the others are dropped and counted.
        partials: Whether partials will be asked for; else it can only answer by itself.
        part: What tells these rows from those of other low levels of one query, such as the number of their partition:
            samples whose rows have no ids draw by it, and by what the first rows are.
    """

    def __init__(
        self,
        plan: Plan,
        schema: pa.Schema,
        before: str = "error",
        budget: int | None = BUDGET,
        *,
        cache: str | None = None,
        slots: int = 1 << 14,
        flush: str = "lazy",
        shed: float | None = None,
        partials: bool = True,
        part: str = "",
    ) -> None:
        if flush not in FLUSHES:
            raise BadParameter(f"flush must be one of {', '.join(FLUSHES)}, got {flush!r}")
        self.plan = plan
        self.budget = budget
        self.schema = plain_schema(schema)
        self.measured = Measured()
        self._panes = by_panes(plan)
        self._hops = 1 if self._panes is plan or plan.every is None else plan.every.hops
        self._reader = Reader(self._panes, self.schema, before, shed)
        self._cache = None if cache is None else (cache, slots)
        self._flush = flush
        self._partials = partials or cache is not None or self._hops > 1
        self._limit = None if budget is None else int(_OF_STATES * budget)
        self._piece = _PIECE if budget is None else min(max(budget // _BYTES_A_ROW, _LEAST), _PIECE)
        self._began = 0  # the row at which the states were empty
        self._passing = 0  # the row up to which rows go up as they are
        self._part = part
        self._draws = any(registry.lookup(s.summary).numbered and s.ids is None for s in plan.states)
        self._stream: tuple[int, ...] = ()
        self._states = self._empty()
        self._epoch: int | None = None

    @property
    def rows(self) -> int:
        """The number of rows read."""
        return self._reader.rows

    @property
    def kept(self) -> States:
        """The states that were not handed out."""
        return self._states

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many rows were not counted, by reason; one row may be missing from several answers."""
        return self._reader.dropped

    @property
    def partial_schema(self) -> pa.Schema:
        """The columns of the partials."""
        return pa.schema(self._states.fields())

    def update(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch of rows; gives partials where groups lost their place, or the states have outgrown the budget."""
        for start in range(0, batch.num_rows, self._piece):
            piece = batch.slice(start, self._piece)
            if self._draws and not len(self._states.live):
                self._begin(piece)
            with self.measured.timed(rows=piece.num_rows):
                self._reader.feed(piece, self._states)
                gone = self._states.ejected(None if self._flush == "eager" else piece.num_rows)
                size = self._states.nbytes
                self.measured.peak = max(self.measured.peak, size)
            if gone is not None:
                self.measured.ejections += gone.num_rows
                yield self._handed(gone)
            if self._limit is not None and size > self._limit:
                self._judge()
                yield from self.flush()
            elif self._epoch_is_over() or 0 < self._passing <= self.measured.rows:
                yield from self.flush()

    def _begin(self, piece: pa.RecordBatch) -> None:
        """Give samples random numbers of their own, whose seed is a hash of the part and of its first rows."""
        if not self._stream:
            columns = piece.select(list(self.plan.columns))
            rows = content_hashes(columns.cast(plain_schema(columns.schema)))
            self._stream = (hash_one((self._part, len(rows), int(rows.sum(dtype=np.uint64)))), 0)
        self._stream = (self._stream[0], self._stream[1] + 1)
        self._states = self._empty()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Hand out what is kept, as partials, part by part, and begin anew."""
        states, groups = self._states, self._states.live
        parts = 1
        if self.budget is not None:
            parts = max(1, min(len(groups), int(_PARTS * states.nbytes / max(self.budget, 1))))
        for part in range(parts if len(groups) else 0):
            with self.measured.timed():
                found = states.partials(np.ascontiguousarray(groups[part::parts]))
            yield self._handed(found)
        if len(groups) or self._passing:
            self.measured.flushes += len(groups) > 0
            self._passing = self._passing if self.measured.rows < self._passing else 0
            self._began = self.measured.rows
            self._states = self._empty()

    def answers(self, now: int | None = None, bounds: bool = False) -> pa.Table:
        """The answers over all rows, where nothing was handed out; the arguments are those of :func:`answer`."""
        if self._hops == 1:
            return answer(self._states, now, bounds)
        high = HighLevel(self.plan, self.schema)
        for partials in self.flush():
            high.update(partials)
        return high.answers(now, bounds)

    def _epoch_is_over(self) -> bool:
        """Whether under eager flush, without a cache, all groups have to go."""
        if self._flush == "lazy" or self._cache is not None:
            return False
        before, now = self._epoch, self._states.epoch
        self._epoch = now if before is None or now is None else max(before, now)
        return before is not None and now is not None and now > before

    def _empty(self) -> States:
        cache = self._cache or (("none", 1) if self._passing else None)
        stream = hash_one(self._stream) if self._stream else 0
        return States(self._panes, self.schema, self._limit, cache, self._partials, stream)

    def _judge(self) -> None:
        """Before all is handed out for want of memory: decide whether reducing has paid."""
        rows = self.measured.rows - self._began
        if self._cache is None and not self._passing and rows < _PAYS * self._states.size:
            self._passing = self.measured.rows + _TRIAL * rows
            self.measured.passes += 1

    def _handed(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Partials as they are handed out, which is counted."""
        made = partials if self._hops == 1 else spread(partials, self._hops)
        self.measured.partials += made.num_rows
        return made


class HighLevel:
    """Partials in, one answer a group out; the same partials give the same answers in whatever order they come.

    Args:
        plan: The query.
        schema: The columns of its source.
        ordered: Whether the partials always come in the same order; they are then merged as they come, and not kept.
    """

    def __init__(self, plan: Plan, schema: pa.Schema, ordered: bool = False) -> None:
        self._states = States(plan, plain_schema(schema))
        self._partials: list[pa.RecordBatch] = []
        self._ordered = ordered
        self.measured = Measured()

    def update(self, partials: pa.RecordBatch) -> None:
        """Take partials."""
        if partials.num_rows and self._ordered:
            with self.measured.timed(rows=partials.num_rows):
                self._states.absorb(partials, ordered=True)
        elif partials.num_rows:
            self._partials.append(partials)

    def answers(self, now: int | None = None, bounds: bool = False) -> pa.Table:
        """The answers over all partials; the arguments are those of :func:`answer`."""
        self._merge()
        with self.measured.timed():
            return answer(self._states, now, bounds)

    def merged(self) -> pa.RecordBatch:
        """One partial for each group, made of all."""
        self._merge()
        return self._states.partials()

    def _merge(self) -> None:
        rows = sum(partials.num_rows for partials in self._partials)
        if rows:
            with self.measured.timed(rows):
                self._states.absorb(pa.Table.from_batches(self._partials).combine_chunks().to_batches()[0])
            self._partials = []


def answer(states: States, now: int | None = None, bounds: bool = False) -> pa.Table:
    """The answers for all groups, ordered by epoch and keys.

    Args:
        states: The groups.
        now: The time of the question, where there are no epochs; None is the newest time of the input.
        bounds: Whether each answer comes with a column that says how far from the truth it may be.
    """
    states.whole()
    newest = states.newest
    if now is not None and newest is not None and now < newest:
        raise QueryInPast(
            f"now={show(now)} is before the newest row, {show(newest)}, whose weight would pass 1; ask at or after it"
        )
    for state in states.plan.states:
        if isinstance(state.decay, Pinned):
            if now is not None and now != state.decay.now:
                raise QueryInPast(f"{state} is asked at now={show(now)}, and was fixed for {show(state.decay.now)}")
        elif now is not None and newest is not None and state.decay.needs_landmark and now < (state.landmark or now):
            raise QueryInPast(f"now={show(now)} is before the landmark of {state}")
    return states.answers(newest if now is None else now, bounds)
