"""Stored states: what :func:`wane.local.group` has seen, as a table that is kept, merged, rolled up and asked later.

A table of states has one row a group: epoch and keys, how many rows went in and the newest time, and for each state its
columns. It carries its own plan, so that nothing else is needed to read it, and goes to Parquet or anything else that
keeps the metadata of an Arrow schema.

>>> import pyarrow as pa
>>> from wane import fn, local
>>> rows = pa.table({"t": [10, 20, 70], "user": ["a", "b", "a"]})
>>> minutes = local.group(rows, "user", every=("t", "1m")).states(fn.count(decay="exp(half_life=1m)"))
>>> [round(row["count"], 3) for row in merge(minutes).over("2m").answer().to_pylist()]
[0.842, 0.315]
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from wane.errors import BadParameter, CorruptState, MergeRefused
from wane.grouped import HighLevel, LowLevel
from wane.grouped.clock import measured_in_epoch
from wane.grouped.query import Every, Plan
from wane.grouped.states import EPOCH
from wane.grouped.text import from_json, to_json
from wane.times import duration, instant, show_duration

_KEY = b"wane"


class Stored:
    """Merged states, waiting to be asked; made by :func:`merge`.

    Attributes:
        plan: The query they belong to.
        report: How many rows were read, and how many of them were dropped, by reason.
    """

    def __init__(
        self, plan: Plan, schema: pa.Schema, partials: list[pa.RecordBatch], report: Mapping[str, Any]
    ) -> None:
        self.plan = plan
        self.report = report
        self._schema = schema
        self._partials = partials

    def over(self, length: Any, offset: Any = 0) -> Stored:
        """The same over longer epochs: minutes become hours.

        That is honest where a row's weight does not depend on its epoch: under no and exponential decay, under one with
        a landmark of the query's own, and under one whose time is fixed. Otherwise it is refused.

        Args:
            length: The length of the new epochs, a whole number of the old ones.
            offset: Where one of them starts.
        """
        old = self.plan.every
        if old is None:
            raise BadParameter("these states have no epochs that could become longer; merge them as they are")
        if old.slide is not None:
            raise BadParameter(f"epochs {old} overlap, and cannot be joined; keep epochs that do not")
        every = Every(duration(length, "length"), duration(offset, "offset"))
        if every.length <= 0 or every.length % old.length or (every.offset - old.offset) % old.length:
            raise BadParameter(f"epochs of {show_duration(old.length)} do not fill epochs {every}; choose a multiple")
        for state in self.plan.states:
            if measured_in_epoch(state, old):
                raise MergeRefused(
                    f"{state} weighs rows by their place in an epoch {old}, so that epochs cannot be joined; use no or "
                    "exponential decay, or name a landmark"
                )
        plan = Plan(self.plan.keys, self.plan.time, every, self.plan.where, self.plan.states, self.plan.answers)
        moved = [_moved(batch, old, every) for batch in self._partials]
        return Stored(plan, self._schema, moved, self.report)

    def answer(self, now: Any = "latest") -> pa.Table:
        """The answers of all groups, as :meth:`wane.local.Grouped.agg` gives them."""
        at = None if isinstance(now, str) and now == "latest" else instant(now, "now")
        if at is not None and self.plan.every is not None:
            raise BadParameter(f"by epochs, now is the end of each; leave now={now!r} away")
        return self._merged().answers(at).replace_schema_metadata({_KEY: json.dumps(self.report)})

    def states(self) -> pa.Table:
        """The merged states, one row a group, as a table again."""
        return table(self.plan, self._schema, [self._merged().merged()], self.report)

    def _merged(self) -> HighLevel:
        high = HighLevel(self.plan, self._schema)
        for batch in self._partials:
            high.update(batch)
        return high


def merge(*tables: pa.Table) -> Stored:
    """Merge tables of states of one query; the order of tables and rows does not matter."""
    if not tables:
        raise BadParameter("there is nothing to merge; give one or more tables of states")
    first, schema = read_plan(tables[0])
    batches: list[pa.RecordBatch] = []
    rows, dropped = 0, Counter[str]()
    for other in tables:
        plan, their_schema = read_plan(other)
        their_rows, their_dropped = _read_report(other)
        rows += their_rows
        dropped.update(their_dropped)
        if plan != first:
            raise MergeRefused(f"the states belong to different queries:\n{first}\nand\n{plan}")
        if their_schema != schema:
            raise MergeRefused(f"the states were made of different columns: {schema} and {their_schema}")
        wanted = LowLevel(plan, schema).partial_schema
        if other.schema.names != wanted.names:
            raise CorruptState(f"the table has columns {other.schema.names}, and its plan says {wanted.names}")
        try:
            batches += other.replace_schema_metadata().cast(wanted).to_batches()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as why:
            raise CorruptState(f"the columns of the table are not what its plan says: {why}") from why
    return Stored(first, schema, batches, {"rows": rows, "dropped": dict(dropped)})


def table(
    plan: Plan, schema: pa.Schema, partials: list[pa.RecordBatch], report: Mapping[str, Any] | None = None
) -> pa.Table:
    """Partials as a table that carries its plan."""
    columns = pa.schema([schema.field(name).remove_metadata() for name in plan.columns])
    carried = {
        "plan": to_json(plan),
        "schema": base64.b64encode(columns.serialize().to_pybytes()).decode(),
        **(report or {}),
    }
    made = pa.Table.from_batches(partials, LowLevel(plan, schema).partial_schema)
    return made.replace_schema_metadata({_KEY: json.dumps(carried)})


def read_plan(states: pa.Table) -> tuple[Plan, pa.Schema]:
    """The plan of a table of states, and the columns of the rows they were made of."""
    carried = (states.schema.metadata or {}).get(_KEY)
    try:
        read = json.loads(carried or "")
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(read["schema"])))
        plan = from_json(read["plan"])
    except (ValueError, KeyError, TypeError, pa.ArrowException) as why:
        if isinstance(why, CorruptState):
            raise
        raise CorruptState(
            "the table is not one of states: it carries no plan; keep the schema's metadata, or make it with states()"
        ) from why
    return plan, schema


def _read_report(states: pa.Table) -> tuple[int, dict[str, int]]:
    """How many rows the states of a table were made of, and how many were dropped, by reason."""
    carried = json.loads(states.schema.metadata[_KEY])
    rows, dropped = carried.get("rows", 0), carried.get("dropped", {})
    if not isinstance(dropped, dict) or not all(
        type(count) is int and count >= 0 for count in (rows, *dropped.values())
    ):
        raise CorruptState(f"the table says that {rows!r:.60} rows were read and {dropped!r:.60} dropped: no counts")
    return rows, dropped


def _moved(partials: pa.RecordBatch, old: Every, every: Every) -> pa.RecordBatch:
    """Partials with the longer epoch that holds theirs."""
    steps, shift = every.length // old.length, (old.offset - every.offset) // old.length
    epochs = (partials.column(EPOCH).to_numpy() + shift) // steps
    at = partials.schema.get_field_index(EPOCH)
    return partials.set_column(at, partials.schema.field(at), pa.array(epochs.astype(np.int64)))
