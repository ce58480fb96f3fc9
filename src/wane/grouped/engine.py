"""The two levels of a query over Arrow batches: rows to partials where the data is, partials to answers above.

Neither knows who runs it. In one process the low level may answer by itself (:meth:`LowLevel.answers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from wane import registry
from wane.decay import Pinned
from wane.errors import QueryInPast
from wane.grouped.contents import content_hashes
from wane.grouped.query import Plan
from wane.grouped.rows import Reader, plain_schema
from wane.grouped.states import States
from wane.hashing import hash_one
from wane.times import show

BUDGET = 256 << 20
"""Bytes of states that the low level keeps before it hands them on, unless told otherwise."""

_PIECE = 1 << 17
"""Rows between two looks at the budget."""


class LowLevel:
    """Rows in, partials out; memory stays within a budget, whatever the number of groups.

    Args:
        plan: The query.
        schema: The columns of its source.
        before: What happens to a row before a state's landmark: ``"error"``, ``"drop"`` or ``"clamp"``.
        budget: About how many bytes of states are kept; None for no bound.
        part: What tells these rows from those of other low levels of one query, such as the number of their partition:
            samples whose rows have no ids draw by it, and by what the first rows are.
    """

    def __init__(
        self, plan: Plan, schema: pa.Schema, before: str = "error", budget: int | None = BUDGET, part: str = ""
    ) -> None:
        self.plan = plan
        self.budget = budget
        self.schema = plain_schema(schema)
        self._reader = Reader(plan, self.schema, before)
        self._states = States(plan, self.schema)
        self._part = part
        self._draws = any(registry.lookup(s.summary).numbered and s.ids is None for s in plan.states)
        self._stream: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows read."""
        return self._reader.rows

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many rows were not counted, by reason; one row may be missing from several answers."""
        return self._reader.dropped

    @property
    def partial_schema(self) -> pa.Schema:
        """The columns of the partials."""
        return pa.schema(self._states.fields())

    def update(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch of rows; gives partials where the states have outgrown the budget."""
        for start in range(0, batch.num_rows, _PIECE if self.budget is not None else max(batch.num_rows, 1)):
            piece = batch.slice(start, _PIECE) if self.budget is not None else batch
            if self._draws and piece.num_rows and not self._states.size:
                self._begin(piece)
            self._reader.feed(piece, self._states)
            if self.budget is not None and self._states.nbytes > self.budget:
                yield from self.flush()

    def _begin(self, piece: pa.RecordBatch) -> None:
        """Give samples random numbers of their own, whose seed is a hash of the part and of its first rows."""
        if not self._stream:
            columns = piece.select(list(self.plan.columns))
            rows = content_hashes(columns.cast(plain_schema(columns.schema)))
            self._stream = (hash_one((self._part, len(rows), int(rows.sum(dtype=np.uint64)))), 0)
        self._stream = (self._stream[0], self._stream[1] + 1)
        self._states = States(self.plan, self.schema, hash_one(self._stream))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Hand out what is kept, as partials, and begin anew."""
        if self._states.size:
            yield self._states.partials()
            self._states = States(self.plan, self.schema)

    def answers(self, now: int | None = None) -> pa.Table:
        """The answers over all rows, where nothing was handed out; the arguments are those of :func:`answer`."""
        return answer(self._states, now)


class HighLevel:
    """Partials in, one answer a group out; the same partials give the same answers in whatever order they come.

    Args:
        plan: The query.
        schema: The columns of its source.
    """

    def __init__(self, plan: Plan, schema: pa.Schema) -> None:
        self._states = States(plan, plain_schema(schema))
        self._partials: list[pa.RecordBatch] = []

    def update(self, partials: pa.RecordBatch) -> None:
        """Take partials."""
        if partials.num_rows:
            self._partials.append(partials)

    def answers(self, now: int | None = None) -> pa.Table:
        """The answers over all partials; the arguments are those of :func:`answer`."""
        self._merge()
        return answer(self._states, now)

    def merged(self) -> pa.RecordBatch:
        """One partial for each group, made of all."""
        self._merge()
        return self._states.partials()

    def _merge(self) -> None:
        if self._partials:
            self._states.absorb(pa.Table.from_batches(self._partials).combine_chunks().to_batches()[0])
            self._partials = []


def answer(states: States, now: int | None = None) -> pa.Table:
    """The answers for all groups, ordered by epoch and keys.

    Args:
        states: The groups.
        now: The time of the question, where there are no epochs; None is the newest time of the input.
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
    return states.answers(newest if now is None else now)
