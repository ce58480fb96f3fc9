"""Low-level parts for heavy hitters: buffer, hash, compress, and a sketch at the low level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.errors import BadParameter
from wane.grouped.strategies import OUT, Flushed, LowPart, Powers, aligned, brought
from wane.hashing import Hashes
from wane.summaries._cells import Layout
from wane.summaries._tally import slot_of

_PROBES = 8
"""Places that are searched for an id before a flush is asked for."""


@inline
def _emit(
    pad: int, room: int, used: Any, least: int, ids: Any, sums: Any, out_ids: Any, out_sums: Any, at: Any
) -> None:
    """Hand on a scratchpad and empty it: as it is, or without its empty places where fewer are used than `least`."""
    end = at[2]
    for place in range(pad * room, (pad + 1) * room):
        if used[pad] >= least or sums[place] != 0.0:
            out_ids[end] = ids[place]
            out_sums[end] = sums[place]
            end += 1
        ids[place] = np.uint64(0)
        sums[place] = 0.0
    used[pad] = 0
    at[2] = end


@kernel("void(r_i8, r_u8, r_f8, int64, w_i8, w_u8, w_f8, w_i8, w_i8, w_u8, w_f8, w_i8)")
def _buffer(
    slots: Ints,
    items: Hashes,
    weights: Floats,
    least: int,
    used: Ints,
    ids: Hashes,
    sums: Floats,
    out_slots: Ints,
    out_ends: Ints,
    out_ids: Hashes,
    out_sums: Floats,
    at: Ints,
) -> None:
    """Append rows from `at[0]` on; stop where `at[1]` flushes with `at[2]` entries leave no room for another."""
    room = ids.shape[0] // used.shape[0]
    for row in range(at[0], slots.shape[0]):
        pad = slots[row]
        if weights[row] == 0.0:
            continue
        if used[pad] == room:
            if at[2] + room > out_ids.shape[0]:
                at[0] = row
                return
            _emit(pad, room, used, least, ids, sums, out_ids, out_sums, at)
            out_slots[at[1]], out_ends[at[1]] = pad, at[2]
            at[1] += 1
        place = pad * room + used[pad]
        ids[place], sums[place] = items[row], weights[row]
        used[pad] += 1
    at[0] = slots.shape[0]


@inline
def _place(pad: int, room: int, item: Any, ids: Any, sums: Any) -> Any:
    """Where an id is, or may be put; -1 where neither is found in a few places."""
    first = slot_of(item, room - 1)
    for probe in range(min(_PROBES, room)):
        place = pad * room + ((first + probe) & (room - 1))
        if sums[place] == 0.0 or ids[place] == item:
            return place
    return -1


@kernel("void(r_i8, r_u8, r_f8, int64, w_i8, w_u8, w_f8, w_i8, w_i8, w_u8, w_f8, w_i8)")
def _hash(
    slots: Ints,
    items: Hashes,
    weights: Floats,
    least: int,
    used: Ints,
    ids: Hashes,
    sums: Floats,
    out_slots: Ints,
    out_ends: Ints,
    out_ids: Hashes,
    out_sums: Floats,
    at: Ints,
) -> None:
    """:func:`_buffer`, where rows of one id are added up."""
    room = ids.shape[0] // used.shape[0]
    for row in range(at[0], slots.shape[0]):
        pad, item = slots[row], items[row]
        if weights[row] == 0.0:
            continue
        place = _place(pad, room, item, ids, sums)
        if place < 0:
            if at[2] + room > out_ids.shape[0]:
                at[0] = row
                return
            _emit(pad, room, used, least, ids, sums, out_ids, out_sums, at)
            out_slots[at[1]], out_ends[at[1]] = pad, at[2]
            at[1] += 1
            place = _place(pad, room, item, ids, sums)
        used[pad] += sums[place] == 0.0
        ids[place] = item
        sums[place] += weights[row]
    at[0] = slots.shape[0]


@kernel("void(r_i8, int64, w_i8, w_u8, w_f8, w_i8, w_u8, w_f8, w_i8)")
def _flush(
    slots: Ints,
    least: int,
    used: Ints,
    ids: Hashes,
    sums: Floats,
    out_ends: Ints,
    out_ids: Hashes,
    out_sums: Floats,
    at: Ints,
) -> None:
    room = ids.shape[0] // used.shape[0]
    for i in range(slots.shape[0]):
        if used[slots[i]] > 0:
            _emit(slots[i], room, used, least, ids, sums, out_ids, out_sums, at)
        out_ends[i] = at[2]


class Buffer(LowPart):
    """Pairs of id and weight as they come; 128 of them are the paper's 1 KB of two 32-bit numbers each.

    Args:
        slots: The number of slots.
        room: Pairs in a scratchpad.
    """

    _run = _buffer

    def __init__(self, slots: int, room: int = 128) -> None:
        if room < 1 or room & (room - 1):
            raise BadParameter(f"room must be a power of two, got {room!r}; the paper's is 128")
        self._room = room
        self._used = np.zeros(slots, np.int64)
        self._ids = np.zeros(slots * room, np.uint64)
        self._sums = np.zeros(slots * room)
        self._powers = Powers(slots)

    @property
    def slot_bytes(self) -> int:
        """16 bytes a pair, of doubles and 64-bit ids."""
        return 16 * self._room

    @property
    def _least(self) -> int:
        """Scratchpads with fewer pairs are handed on without their empty places."""
        return self._room

    def add(self, slots: Ints, items: Hashes, weights: Floats | None = None, exponent: int = 0) -> Iterator[Flushed]:
        """Add rows; those of weight 0 leave no trace."""
        loads = self._scaled(slots, np.ones(len(slots)) if weights is None else weights, exponent)
        room = max(OUT, self._room)
        at = np.zeros(3, np.int64)
        while at[0] < len(slots):
            at[1:] = 0
            out_slots, ends = np.empty(room, np.int64), np.empty(room, np.int64)
            ids, sums = np.empty(room, np.uint64), np.empty(room)
            type(self)._run(
                slots, items, loads, self._least, self._used, self._ids, self._sums, out_slots, ends, ids, sums, at
            )
            if at[1]:
                yield self._flushed(out_slots[: at[1]], ends[: at[1]], ids[: at[2]], sums[: at[2]])

    def flush(self, slots: Ints) -> Flushed:
        """Hand on what some slots hold."""
        room = len(slots) * self._room
        ends, ids, sums, at = (
            np.empty(len(slots), np.int64),
            np.empty(room, np.uint64),
            np.empty(room),
            np.zeros(3, np.int64),
        )
        _flush(slots, self._least, self._used, self._ids, self._sums, ends, ids, sums, at)
        return self._flushed(slots, ends, ids[: at[2]], sums[: at[2]])

    def _scaled(self, slots: Ints, weights: Floats, exponent: int) -> Floats:
        """Bring scratchpads and weights to common powers of two; gives the weights."""
        raised, by, gaps = self._powers.meet(slots, exponent)
        if len(raised):
            sums = self._sums.reshape(-1, self._room)
            sums[raised] = np.ldexp(sums[raised], by.astype(np.int32)[:, None])
        return brought(weights, gaps)

    def _flushed(self, slots: Ints, ends: Ints, ids: Hashes, sums: Floats) -> Flushed:
        return Flushed(slots, self._powers.each[slots], np.append(0, ends), (ids, sums))


class Hash(Buffer):
    """Pairs in a small hash table, which adds up rows of one id; it is full when 8 places in a row are taken."""

    _run = _hash

    @property
    def _least(self) -> int:
        return 0


class Compress(Hash):
    """The same, where a table of which less than half is used is handed on without its empty places."""

    @property
    def _least(self) -> int:
        return self._room // 2 + 1


class LowSketch(LowPart):
    """The counters of a hierarchy themselves: the largest scratchpads, which are never full.

    Args:
        slots: The number of slots.
        layout: That of the high level.
        bits: The length of an id, up to 64.
    """

    def __init__(self, slots: int, layout: Layout, bits: int = 32) -> None:
        self._layout = layout
        self._bits = bits
        self._cells = np.zeros(slots * layout.size)
        self._powers = Powers(slots)

    @property
    def slot_bytes(self) -> int:
        """8 bytes a counter."""
        return 8 * self._layout.size

    def add(self, slots: Ints, items: Hashes, weights: Floats | None = None, exponent: int = 0) -> Iterator[Flushed]:
        """Add rows; nothing is ever handed on by that."""
        raised, by, gaps = self._powers.meet(slots, exponent)
        if len(raised):
            cells = self._cells.reshape(-1, self._layout.size)
            cells[raised] = np.ldexp(cells[raised], by.astype(np.int32)[:, None])
        loads = brought(np.ones(len(slots)) if weights is None else weights, gaps)
        self._layout.add_to(slots, aligned(items, self._bits), loads, self._cells)
        yield from ()

    def flush(self, slots: Ints) -> Flushed:
        """Hand on the counters of some slots."""
        size = self._layout.size
        cells = self._cells.reshape(-1, size)
        found = cells[slots]
        cells[slots] = 0.0
        return Flushed(slots, self._powers.each[slots], np.arange(len(slots) + 1) * size, (found.ravel(),))
