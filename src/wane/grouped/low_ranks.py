"""Parts for quantiles by Greenwald-Khanna: lite, heavy and medium low levels, and the high level that merges them.

All work on keys of values (:mod:`wane.summaries._ordered`), which count 1 each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.errors import BadParameter
from wane.grouped.strategies import OUT, Flushed, HighPart, LowPart
from wane.hashing import Hashes, hash_column
from wane.summaries._tuples import Tuples, thinned
from wane.summaries.base import fraction
from wane.summaries.greenwald_khanna import GreenwaldKhanna

_HEIGHT = 8
"""Lists of a skip list, each of about half as many nodes as the one below."""

_U1, _U7, _U13, _U17 = (np.uint64(n) for n in (1, 7, 13, 17))


@kernel("void(r_i8, r_u8, w_i8, w_u8, w_i8, w_i8, w_u8, w_i8)")
def _lite(
    slots: Ints, items: Hashes, used: Ints, keys: Hashes, out_slots: Ints, out_ends: Ints, out: Hashes, at: Ints
) -> None:
    """Append rows from `at[0]` on; stop where `at[1]` flushes with `at[2]` keys leave no room for another."""
    room = keys.shape[0] // used.shape[0]
    for row in range(at[0], slots.shape[0]):
        pad = slots[row]
        if used[pad] == room:
            if at[2] + room > out.shape[0]:
                at[0] = row
                return
            for place in range(room):
                out[at[2] + place] = keys[pad * room + place]
            at[2] += room
            out_slots[at[1]], out_ends[at[1]] = pad, at[2]
            at[1] += 1
            used[pad] = 0
        keys[pad * room + used[pad]] = items[row]
        used[pad] += 1
    at[0] = slots.shape[0]


class Lite(LowPart):
    """Values as they come, for the high level to work on: the least work at the low level.

    Args:
        slots: The number of slots.
        room: Values in a scratchpad.
    """

    def __init__(self, slots: int, room: int = 512) -> None:
        self._room = room
        self._used = np.zeros(slots, np.int64)
        self._keys = np.zeros(slots * room, np.uint64)

    @property
    def slot_bytes(self) -> int:
        """8 bytes a value."""
        return 8 * self._room

    def add(self, slots: Ints, items: Hashes, weights: Floats | None = None, exponent: int = 0) -> Iterator[Flushed]:
        """Add values."""
        _unweighted(weights, exponent)
        room = max(OUT, self._room)
        at = np.zeros(3, np.int64)
        while at[0] < len(slots):
            at[1:] = 0
            out_slots, ends, keys = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint64)
            _lite(slots, items, self._used, self._keys, out_slots, ends, keys, at)
            if at[1]:
                yield _flushed(out_slots[: at[1]], ends[: at[1]], (keys[: at[2]],))

    def flush(self, slots: Ints) -> Flushed:
        """Hand on what some slots hold."""
        keys = self._keys.reshape(-1, self._room)[slots]
        there = np.arange(self._room) < self._used[slots][:, None]
        ends = np.cumsum(self._used[slots])
        self._used[slots] = 0
        return _flushed(slots, ends, (keys[there],))


@inline
def _swept(first: Any, size: Any, keys: Any, gains: Any, slacks: Any, limit: Any) -> Any:
    """Compress the tuples of a scratchpad in place, but for the first; gives how many are left."""
    made = first + 1
    for i in range(first + 1, first + size):
        if made > first + 1 and gains[made - 1] + gains[i] + slacks[i] <= limit:
            made -= 1
            gains[i] += gains[made]
        keys[made], gains[made], slacks[made] = keys[i], gains[i], slacks[i]
        made += 1
    return min(made - first, size)


@kernel("void(r_i8, r_u8, float64, w_i8, w_i8, w_u8, w_i8, w_i8, w_i8, w_i8, w_u8, w_i8, w_i8, w_i8)")
def _heavy(
    slots: Ints,
    items: Hashes,
    epsilon: float,
    used: Ints,
    counts: Ints,
    keys: Hashes,
    gains: Ints,
    slacks: Ints,
    out_slots: Ints,
    out_ends: Ints,
    out_keys: Hashes,
    out_gains: Ints,
    out_slacks: Ints,
    at: Ints,
) -> None:
    """Insert rows in order and compress all after each; :func:`_lite` says what `at` means."""
    room = keys.shape[0] // used.shape[0]
    for row in range(at[0], slots.shape[0]):
        pad, item = slots[row], items[row]
        first = pad * room
        if used[pad] == room:
            if at[2] + room > out_keys.shape[0]:
                at[0] = row
                return
            for i in range(first, first + room):
                out_keys[at[2]], out_gains[at[2]], out_slacks[at[2]] = keys[i], gains[i], slacks[i]
                at[2] += 1
            out_slots[at[1]], out_ends[at[1]] = pad, at[2]
            at[1] += 1
            used[pad], counts[pad] = 0, 0
        size = used[pad]
        place = first + size
        while place > first and keys[place - 1] >= item:
            keys[place], gains[place], slacks[place] = keys[place - 1], gains[place - 1], slacks[place - 1]
            place -= 1
        inside = place > first and place < first + size
        slack = gains[place + 1] + slacks[place + 1] - 1 if inside else 0
        keys[place], gains[place], slacks[place] = item, 1, slack
        counts[pad] += 1
        used[pad] = _swept(first, size + 1, keys, gains, slacks, np.int64(2.0 * epsilon * counts[pad]))
    at[0] = slots.shape[0]


class Heavy(LowPart):
    """A summary of its own at the low level: sorted tuples, compressed after each insertion.

    Args:
        slots: The number of slots.
        epsilon: The error of the summary.
        room: Tuples in a scratchpad.
    """

    def __init__(self, slots: int, epsilon: float = 0.01, room: int = 128) -> None:
        self._epsilon, self._room = fraction(epsilon, "epsilon", 1e-6), room
        self._used, self._counts = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        self._keys = np.zeros(slots * room, np.uint64)
        self._gains, self._slacks = np.zeros(slots * room, np.int64), np.zeros(slots * room, np.int64)

    @property
    def slot_bytes(self) -> int:
        """24 bytes a tuple."""
        return 24 * self._room

    def add(self, slots: Ints, items: Hashes, weights: Floats | None = None, exponent: int = 0) -> Iterator[Flushed]:
        """Add values."""
        _unweighted(weights, exponent)
        room = max(OUT, self._room)
        at = np.zeros(3, np.int64)
        while at[0] < len(slots):
            at[1:] = 0
            out_slots, ends = np.empty(room, np.int64), np.empty(room, np.int64)
            out = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64)
            self._insert(slots, items, out_slots, ends, out, at)
            if at[1]:
                yield _flushed(out_slots[: at[1]], ends[: at[1]], tuple(column[: at[2]] for column in out))

    def flush(self, slots: Ints) -> Flushed:
        """Hand on what some slots hold."""
        found = [self._tuples(slot) for slot in slots.tolist()]
        self._used[slots], self._counts[slots] = 0, 0
        ends = np.cumsum([len(keys) for keys, _, _ in found]).astype(np.int64)
        empty = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
        return _flushed(slots, ends, tuple(np.concatenate(columns) for columns in zip(empty, *found, strict=True)))

    def _insert(self, slots: Ints, items: Hashes, out_slots: Ints, ends: Ints, out: Any, at: Ints) -> None:
        _heavy(
            slots, items, self._epsilon, self._used, self._counts, self._keys, self._gains, self._slacks, out_slots,
            ends, *out, at,
        )  # fmt: skip

    def _tuples(self, slot: int) -> tuple[NDArray[Any], ...]:
        """The tuples of a slot, in order."""
        rows = slice(slot * self._room, slot * self._room + int(self._used[slot]))
        return self._keys[rows].copy(), self._gains[rows].copy(), self._slacks[rows].copy()


@inline
def _seek(item: Any, head: Any, keys: Any, nexts: Any, path: Any) -> Any:
    """The first node of a key or more, or -1; `path` gets the last node before it in each list."""
    node = head
    for level in range(_HEIGHT - 1, -1, -1):
        after = nexts[node * _HEIGHT + level]
        while after >= 0 and keys[after] < item:
            node = after
            after = nexts[node * _HEIGHT + level]
        path[level] = node
    return nexts[node * _HEIGHT]


@inline
def _link(node: Any, path: Any, nexts: Any, word: Any) -> None:
    """Put a node after those of a path, in as many lists as random bits say."""
    for level in range(_HEIGHT):
        if level > 0 and (word >> np.uint64(level)) & _U1:
            break
        nexts[node * _HEIGHT + level] = nexts[path[level] * _HEIGHT + level]
        nexts[path[level] * _HEIGHT + level] = node


@inline
def _unlink(node: Any, path: Any, nexts: Any) -> None:
    """Take a node out of all lists that it is in."""
    for level in range(_HEIGHT):
        if nexts[path[level] * _HEIGHT + level] == node:
            nexts[path[level] * _HEIGHT + level] = nexts[node * _HEIGHT + level]


@inline
def _drawn(words: Any, pad: Any) -> Any:
    """The next random word of a scratchpad (xorshift)."""
    word = words[pad]
    word ^= word << _U13
    word ^= word >> _U7
    word ^= word << _U17
    words[pad] = word
    return word


@inline
def _listed(
    head: Any, keys: Any, gains: Any, slacks: Any, nexts: Any, out: Any, gained: Any, slacked: Any, at: Any
) -> None:
    """Write the tuples of a scratchpad in order."""
    node = nexts[head * _HEIGHT]
    end = at[2]
    while node >= 0:
        out[end], gained[end], slacked[end] = keys[node], gains[node], slacks[node]
        end += 1
        node = nexts[node * _HEIGHT]
    at[2] = end


@inline
def _cleared(head: Any, room: Any, gains: Any, nexts: Any, spare: Any) -> None:
    """Forget the tuples of a scratchpad."""
    for place in range(room):
        gains[head - room + place] = 0
        spare[head - room + place] = place
    for level in range(_HEIGHT):
        nexts[head * _HEIGHT + level] = -1


@inline
def _probe(item: Any, head: Any, limit: Any, keys: Any, gains: Any, slacks: Any, nexts: Any, path: Any) -> Any:
    """Let the first tuple of a key be stood for by the next one, if it may; gives its node, or -1."""
    node = _seek(item, head, keys, nexts, path)
    after = nexts[node * _HEIGHT]
    if path[0] == head or after < 0 or gains[node] + gains[after] + slacks[after] > limit:
        return -1
    _unlink(node, path, nexts)
    gains[after] += gains[node]
    gains[node] = 0
    return node


@kernel(
    "void(r_i8, r_u8, float64, w_i8, w_i8, w_u8, w_i8, w_i8, w_i8, w_i8, w_u8, w_i8, "
    "w_i8, w_i8, w_u8, w_i8, w_i8, w_i8)"
)
def _medium(
    slots: Ints,
    items: Hashes,
    epsilon: float,
    used: Ints,
    counts: Ints,
    keys: Hashes,
    gains: Ints,
    slacks: Ints,
    nexts: Ints,
    spare: Ints,
    words: Hashes,
    path: Ints,
    out_slots: Ints,
    out_ends: Ints,
    out_keys: Hashes,
    out_gains: Ints,
    out_slacks: Ints,
    at: Ints,
) -> None:
    """Insert rows into skip lists, and compress after each where it came, and at a random place."""
    room = keys.shape[0] // used.shape[0] - 1
    for row in range(at[0], slots.shape[0]):
        pad, item = slots[row], items[row]
        first = pad * (room + 1)
        head = first + room
        if used[pad] == room:
            if at[2] + room > out_keys.shape[0]:
                at[0] = row
                return
            _listed(head, keys, gains, slacks, nexts, out_keys, out_gains, out_slacks, at)
            out_slots[at[1]], out_ends[at[1]] = pad, at[2]
            at[1] += 1
            _cleared(head, room, gains, nexts, spare)
            used[pad], counts[pad] = 0, 0
        counts[pad] += 1
        limit = np.int64(2.0 * epsilon * counts[pad])
        word = _drawn(words, pad)
        after = _seek(item, head, keys, nexts, path)
        if after >= 0 and path[0] != head and 1 + gains[after] + slacks[after] <= limit:
            gains[after] += 1
        else:
            node = first + spare[first + used[pad]]
            used[pad] += 1
            inside = after >= 0 and path[0] != head
            keys[node], gains[node] = item, 1
            slacks[node] = gains[after] + slacks[after] - 1 if inside else 0
            _link(node, path, nexts, word)
        chosen = first + np.int64(((word >> np.uint64(32)) * np.uint64(room)) >> np.uint64(32))
        if gains[chosen] > 0:
            gone = _probe(keys[chosen], head, limit, keys, gains, slacks, nexts, path)
            if gone >= 0:
                used[pad] -= 1
                spare[first + used[pad]] = gone - first
    at[0] = slots.shape[0]


@kernel("void(r_i8, int64, w_u8, w_i8, w_i8, w_i8, w_i8, w_u8, w_i8, w_i8, w_i8, w_i8)")
def _flush_lists(
    slots: Ints,
    room: int,
    keys: Hashes,
    gains: Ints,
    slacks: Ints,
    nexts: Ints,
    spare: Ints,
    out_keys: Hashes,
    out_gains: Ints,
    out_slacks: Ints,
    out_ends: Ints,
    at: Ints,
) -> None:
    for i in range(slots.shape[0]):
        head = slots[i] * (room + 1) + room
        _listed(head, keys, gains, slacks, nexts, out_keys, out_gains, out_slacks, at)
        _cleared(head, room, gains, nexts, spare)
        out_ends[i] = at[2]


class Medium(Heavy):
    """Tuples in a skip list, compressed only where a value came and at one random place: between lite and heavy.

    Args:
        slots: The number of slots.
        epsilon: The error of the summary.
        room: Tuples in a scratchpad.
        seed: Chooses the random places.
    """

    def __init__(self, slots: int, epsilon: float = 0.01, room: int = 128, seed: int = 0) -> None:
        super().__init__(slots, epsilon, room)
        size = slots * (room + 1)  # one more in each: where its lists begin
        self._keys = np.zeros(size, np.uint64)
        self._gains, self._slacks = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._nexts = np.full(size * _HEIGHT, -1, np.int64)
        self._spare = np.tile(np.arange(room + 1), slots)  # nodes, from the number in use on those that are free
        self._words = hash_column(np.arange(slots), seed) | _U1
        self._path = np.zeros(_HEIGHT, np.int64)

    @property
    def slot_bytes(self) -> int:
        """24 bytes a tuple, and its places in lists."""
        return (24 + 8 * (_HEIGHT + 1)) * (self._room + 1)

    def flush(self, slots: Ints) -> Flushed:
        """Hand on what some slots hold."""
        size = int(self._used[slots].sum())
        out = np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.int64)
        ends, at = np.empty(len(slots), np.int64), np.zeros(3, np.int64)
        _flush_lists(slots, self._room, self._keys, self._gains, self._slacks, self._nexts, self._spare, *out, ends, at)
        self._used[slots], self._counts[slots] = 0, 0
        return _flushed(slots, ends, out)

    def _insert(self, slots: Ints, items: Hashes, out_slots: Ints, ends: Ints, out: Any, at: Ints) -> None:
        _medium(
            slots, items, self._epsilon, self._used, self._counts, self._keys, self._gains, self._slacks, self._nexts,
            self._spare, self._words, self._path, out_slots, ends, *out, at,
        )  # fmt: skip


class Ranks(HighPart):
    """A Greenwald-Khanna summary for each group, into which values or tuples of the low level are merged.

    Args:
        epsilon: The error of each, and that of the low level.
        bits: The length of the values, or None for doubles.
    """

    def __init__(self, epsilon: float = 0.01, bits: int | None = None) -> None:
        self._epsilon, self._bits = epsilon, bits
        self._groups: dict[int, GreenwaldKhanna] = {}

    @property
    def nbytes(self) -> int:
        """24 bytes a tuple."""
        return sum(24 * one.tuples for one in self._groups.values())

    def take(self, groups: Ints, flushed: Flushed) -> None:
        """Merge what was flushed, from scratchpads of these groups: sorted values, or tuples as they are."""
        for group, (_, columns) in zip(groups.tolist(), flushed.parts(), strict=True):
            if len(columns[0]):
                keys = columns[0]
                tuples = Tuples(*columns) if len(columns) > 1 else thinned(np.sort(keys), 1)
                self._groups.setdefault(group, self._empty()).take(tuples)

    def summary(self, group: int) -> GreenwaldKhanna:
        """The summary of a group."""
        return self._groups[group] if group in self._groups else self._empty()

    def _empty(self) -> GreenwaldKhanna:
        return GreenwaldKhanna(self._epsilon, bits=self._bits)


def _flushed(slots: Ints, ends: Ints, columns: tuple[NDArray[Any], ...]) -> Flushed:
    return Flushed(slots, np.zeros(len(slots), np.int64), np.append(0, ends), columns)


def _unweighted(weights: Floats | None, exponent: int) -> None:
    if weights is not None or exponent:
        raise BadParameter("quantiles by Greenwald-Khanna count each value once, and weights were given; give None")
