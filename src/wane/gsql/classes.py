"""Aggregates of a user's own: Python classes at the low and the high level, as the paper's C functions are.

A class has five methods, of which `flushme` is asked only at the low level. Each is given the scratchpad, which is a
`memoryview` of exactly the declared number of bytes, zeros at first:

    initialize(pad)          begin
    iterate(pad, *values)    take a row's values; at the high level, what a low-level aggregate gave out
    output(pad)              the answer; at the low level, the state as bytes
    destroy(pad)             end
    flushme(pad)             whether the scratchpad is full and wants to be handed on

At the low level one object serves all groups, so that a group has its scratchpad and nothing else: the limit is real.
At the high level each group has an object of its own, which may keep more. An aggregate that is not split into two runs
at the high level, and rows go there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wane.errors import BadInput

METHODS = ("initialize", "iterate", "output", "destroy")
"""What a class must have; `flushme` as well, where it is the low level's."""

BUDGET = 64 << 20
"""Bytes of scratchpads that a low level keeps before it hands all of them on."""

ARROW = {
    "float": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "vstring": pa.binary(),
    "v_str": pa.binary(),
}
"""What declared types are in an answer; all others are integers."""

_BATCH = 10_000


@dataclass(frozen=True)
class Part:
    """A class at one of the levels, with the bytes of its scratchpads."""

    make: type
    scratchpad: int


@dataclass(frozen=True)
class Call:
    """An aggregate of some columns, computed once however often it is asked for."""

    low: Part | None
    high: Part
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Output:
    """A column of the answer: what a call gives, or a function of that and of constants."""

    call: int
    function: Callable[..., Any] | None
    constants: tuple[float, ...]
    gives: str


@dataclass(frozen=True)
class Scratch:
    """The declared classes of one query.

    Attributes:
        keys: The columns to group by.
        calls: The aggregates.
        outputs: The columns of the answer, by name.
    """

    keys: tuple[str, ...]
    calls: tuple[Call, ...]
    outputs: tuple[tuple[str, Output], ...]

    def partials(self, rows: pa.Schema) -> pa.Schema:
        """The columns between the levels: the keys, which call a row is for, and what it is given."""
        fields = [rows.field(key) for key in self.keys]
        fields += [pa.field("wane_call", pa.int32()), pa.field("wane_state", pa.binary())]
        for number, call in enumerate(self.calls):
            if call.low is None:
                fields += [
                    rows.field(column).with_name(f"wane_{number}_{place}") for place, column in enumerate(call.columns)
                ]
        return pa.schema(fields)

    def answers(self, rows: pa.Schema) -> pa.Schema:
        """The columns of the answers."""
        made = [pa.field(name, ARROW.get(output.gives, pa.int64())) for name, output in self.outputs]
        return pa.schema([rows.field(key) for key in self.keys] + made)

    def low(self, rows: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Rows to partials, where the rows are."""
        return lambda batches: _LowLevel(self, rows).run(batches)

    def high(self, rows: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Partials to answers; all partials of a group come here."""
        return lambda batches: _HighLevel(self, rows).run(batches)


class _LowLevel:
    """One object for each class, and one scratchpad for each group."""

    def __init__(self, scratch: Scratch, rows: pa.Schema) -> None:
        self.scratch = scratch
        self.rows = rows
        self.schema = scratch.partials(rows)
        self.objects: list[Any] = [None if call.low is None else call.low.make() for call in scratch.calls]
        self.pads: dict[tuple[Any, ...], memoryview] = {}
        self.held = 0
        self.out: list[dict[str, Any]] = []

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = {name: batch.column(name).to_pylist() for name in self.rows.names}
            for row in range(batch.num_rows):
                self._take({name: values[row] for name, values in columns.items()})
            if self.held > BUDGET:
                self._flush_all()
            if len(self.out) >= _BATCH:
                yield self._batch()
        self._flush_all()
        if self.out:
            yield self._batch()

    def _take(self, row: dict[str, Any]) -> None:
        keys = tuple(row[key] for key in self.scratch.keys)
        for number, call in enumerate(self.scratch.calls):
            values = [row[column] for column in call.columns]
            if any(value is None for value in values):
                continue
            if call.low is None:
                given = {f"wane_{number}_{place}": value for place, value in enumerate(values)}
                self._give(keys, number, None, given)
                continue
            low, place = self.objects[number], (number, *keys)
            if place not in self.pads:
                self.pads[place] = _begin(low, call.low.scratchpad)
                self.held += call.low.scratchpad
            pad = self.pads[place]
            low.iterate(pad, *values)
            if low.flushme(pad):
                self._flush(place)

    def _flush(self, place: tuple[Any, ...]) -> None:
        number, *keys = place
        low, pad = self.objects[number], self.pads.pop(place)
        self.held -= len(pad)
        state = low.output(pad)
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise BadInput(
                f"{type(low).__name__}.output gave a {type(state).__name__} at the low level; give the state as bytes"
            )
        self._give(tuple(keys), number, bytes(state), {})
        low.destroy(pad)

    def _flush_all(self) -> None:
        for place in list(self.pads):
            self._flush(place)

    def _give(self, keys: tuple[Any, ...], number: int, state: bytes | None, values: dict[str, Any]) -> None:
        named = dict(zip(self.scratch.keys, keys, strict=True))
        self.out.append({**named, "wane_call": number, "wane_state": state, **values})

    def _batch(self) -> pa.RecordBatch:
        made = pa.RecordBatch.from_pylist(self.out, self.schema)
        self.out = []
        return made


class _HighLevel:
    """One object and one scratchpad for each group and call."""

    def __init__(self, scratch: Scratch, rows: pa.Schema) -> None:
        self.scratch = scratch
        self.schema = scratch.answers(rows)
        self.groups: dict[tuple[Any, ...], dict[int, tuple[Any, memoryview]]] = {}

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                self._take(row)
        rows = []
        for keys, calls in self.groups.items():
            given = {number: held.output(pad) for number, (held, pad) in calls.items()}
            named = dict(zip(self.scratch.keys, keys, strict=True))
            rows.append({**named, **{name: _asked(output, given) for name, output in self.scratch.outputs}})
            for held, pad in calls.values():
                held.destroy(pad)
        if rows:
            yield pa.RecordBatch.from_pylist(rows, self.schema)

    def _take(self, row: dict[str, Any]) -> None:
        number = row["wane_call"]
        call = self.scratch.calls[number]
        calls = self.groups.setdefault(tuple(row[key] for key in self.scratch.keys), {})
        if number not in calls:
            held = call.high.make()
            calls[number] = held, _begin(held, call.high.scratchpad)
        held, pad = calls[number]
        if call.low is not None:
            held.iterate(pad, row["wane_state"])
        else:
            held.iterate(pad, *(row[f"wane_{number}_{place}"] for place in range(len(call.columns))))


def _begin(held: Any, size: int) -> memoryview:
    pad = memoryview(bytearray(size))
    held.initialize(pad)
    return pad


def _asked(output: Output, given: dict[int, Any]) -> Any:
    """A column of a group; null where no row of it had a value."""
    if output.call not in given:
        return None
    found = given[output.call]
    return found if output.function is None else output.function(found, *output.constants)
