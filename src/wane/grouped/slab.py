"""Entries of many groups in one piece of memory: for each group a stretch of it, as long as the group needs.

An entry is a word (an item, :mod:`wane.grouped.words`) with a weight and an error. Rows are appended to their group's
stretch as they come, which is one write; when a stretch is full it is *settled*: entries of one word become one, and if
too many are left, the heaviest stay, as :class:`wane.summaries.space_saving.SpaceSaving` does it. A stretch that is
still half full then doubles, up to a few times what must be kept. So a tiny group takes tens of bytes, a large one pays
for settling once in thousands of rows, and no row costs a call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.grouped.arena import CAPACITY, END, FIRST, FREE, SIZE, START, cursor, give, reserved, take
from wane.grouped.arrays import grown
from wane.grouped.moments_pool import plus, power_of_two
from wane.grouped.words import Words

TOTAL, LOST, MISSED = range(3)
"""What is known of a group in floats: the sum of weights, what its rounding lost, and the most that a word without an
entry can weigh."""

_HOT = 8192
"""Entries whose place is remembered."""

_LAST_STAMP = 2**31 - 1

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


@inline
def mixed(word: int) -> Any:
    """A word with its bits mixed, one to one: an order of words that has nothing to do with their values."""
    h = (np.uint64(word) ^ _GOLDEN) * _SCRAMBLE
    h ^= h >> _HALF
    return h * _GOLDEN


@inline
def _mark(words: Words, values: Floats, start: int, size: int, room: int, marks: Any) -> None:
    """Mark the `room` heaviest of some entries, equal ones by their mixed words."""
    weights = np.empty(size)
    for i in range(size):
        weights[i] = values[2 * (start + i)]
    least = np.partition(weights, size - room)[size - room]
    above = 0
    ties = 0
    for i in range(size):
        if weights[i] > least:
            above += 1
        elif weights[i] == least:
            ties += 1
    limit = np.uint64(0xFFFFFFFFFFFFFFFF)
    if ties > room - above:
        tied = np.empty(ties, np.uint64)
        at = 0
        for i in range(size):
            if weights[i] == least:
                tied[at] = mixed(words[start + i])
                at += 1
        limit = np.partition(tied, room - above - 1)[room - above - 1]
    for i in range(size):
        marks[i] = weights[i] > least or (weights[i] == least and mixed(words[start + i]) <= limit)


@inline
def _prune(meta: Ints, sums: Floats, words: Words, values: Floats, group: int, room: int, marks: Any) -> None:
    """Keep the heaviest entries of a settled group, and note what those that go may have weighed."""
    start = meta[group * 5]
    size = meta[group * 5 + 1]
    if size <= room:
        return
    _mark(words, values, start, size, room, marks)
    left = 0
    missed = sums[group * 3 + 2]
    for i in range(size):
        if marks[i]:
            words[start + left] = words[start + i]
            values[2 * (start + left)] = values[2 * (start + i)]
            values[2 * (start + left) + 1] = values[2 * (start + i) + 1]
            left += 1
        elif values[2 * (start + i)] > missed:
            missed = values[2 * (start + i)]
    sums[group * 3 + 2] = missed
    meta[group * 5 + 1] = left
    meta[group * 5 + 2] = left


@inline
def _place(table: Ints, words: Words, start: int, stamp: int, word: int) -> int:
    """Where a word is in the table, or the free place for it; entries of other stamps count as free.

    A place holds ``stamp << 32 | number``: forgetting the whole table is taking another stamp.
    """
    mask = table.shape[0] - 1
    at: int = np.int64(mixed(word) >> _HALF) & mask
    while (table[at] >> 32) == stamp and words[start + (table[at] & 0xFFFFFFFF)] != word:
        at = (at + 1) & mask
    return at


@inline
def _stamp(table: Ints, cursor: Ints) -> int:
    """A new stamp, under which the table is empty."""
    if cursor[1] >= _LAST_STAMP:
        table[:] = 0
        cursor[1] = 0
    cursor[1] += 1
    stamp: int = cursor[1]
    return stamp


@inline
def _settle(
    meta: Ints, sums: Floats, words: Words, values: Floats, group: int, room: int, table: Ints, cursor: Ints, marks: Any
) -> None:
    """Make the entries of one word one, and keep the heaviest."""
    start = meta[group * 5]
    size = meta[group * 5 + 1]
    settled = meta[group * 5 + 2]
    if settled == size:
        return
    stamp = _stamp(table, cursor)
    missed = sums[group * 3 + 2]
    left = 0
    for i in range(size):
        word = words[start + i]
        weight = values[2 * (start + i)]
        error = values[2 * (start + i) + 1]
        at = _place(table, words, start, stamp, word)
        if (table[at] >> 32) == stamp:
            values[2 * (start + (table[at] & 0xFFFFFFFF))] += weight
            continue
        if i >= settled:  # a word that had no entry may have weighed this much before
            weight += missed
            error = missed
        table[at] = (stamp << 32) | left
        words[start + left] = word
        values[2 * (start + left)] = weight
        values[2 * (start + left) + 1] = error
        left += 1
    meta[group * 5 + 1] = left
    meta[group * 5 + 2] = left
    _prune(meta, sums, words, values, group, room, marks)


@inline
def _widen(meta: Ints, words: Words, values: Floats, group: int, capacity: int, cursor: Ints) -> bool:
    """Give a group more room; false where there is none left."""
    end = take(cursor, words, capacity)
    if end < 0:
        return False
    start = meta[group * 5]
    for i in range(meta[group * 5 + 1]):
        words[end + i] = words[start + i]
        values[2 * (end + i)] = values[2 * (start + i)]
        values[2 * (end + i) + 1] = values[2 * (start + i) + 1]
    give(cursor, words, start, meta[group * 5 + 3])
    meta[group * 5] = end
    meta[group * 5 + 3] = capacity
    return True


@inline
def _rescale(meta: Ints, sums: Floats, values: Floats, group: int, exponent: int) -> float:
    """Bring a group to the larger of two powers of two; gives the factor for weights at `exponent`."""
    if exponent > meta[group * 5 + 4] or sums[group * 3] == 0.0:
        factor = power_of_two(min(meta[group * 5 + 4] - exponent, 0))
        for j in range(3):
            sums[group * 3 + j] *= factor
        start = meta[group * 5]
        for i in range(2 * start, 2 * (start + meta[group * 5 + 1])):
            values[i] *= factor
        meta[group * 5 + 4] = exponent
        return 1.0
    scale: float = power_of_two(exponent - meta[group * 5 + 4])
    return scale


@kernel("int64(w_i8, w_f8, w_i8, w_f8, w_i8, w_i8, w_u1, w_i8, int64, int64, r_i8, r_f8, r_i8, r_i8)")
def _append(
    meta: Ints,
    sums: Floats,
    words: Words,
    values: Floats,
    cursor: Ints,
    table: Ints,
    marks: Any,
    hot: Ints,
    room: int,
    first: int,
    ids: Ints,
    weights: Floats,
    powers: Ints,
    row_words: Words,
) -> int:
    """Append rows to their groups; gives the row at which the memory is used up, or their number.

    Where a word was put last is remembered in `hot`: most rows of a skewed stream are added there, and not appended.
    What it says is checked, so that it may be out of date.
    """
    hot_mask = hot.shape[0] - 1
    for row in range(first, ids.shape[0]):
        weight = weights[row]
        if weight == 0.0:
            continue
        group = ids[row]
        at = group * 5
        word = row_words[row]
        if powers[row] != meta[at + 4] or sums[group * 3] == 0.0:
            weight *= _rescale(meta, sums, values, group, powers[row])
        seen = np.int64(mixed(word ^ (group << 40)) >> _HALF) & hot_mask
        place = hot[seen]
        if place >= meta[at] and place < meta[at] + meta[at + 1] and words[place] == word:
            values[2 * place] += weight
            plus(sums, group * 3, weight)
            continue
        if meta[at + 1] == meta[at + 3]:
            _settle(meta, sums, words, values, group, room, table, cursor, marks)
            capacity = meta[at + 3]
            if 2 * meta[at + 1] >= capacity and capacity < 4 * room:
                wanted = max(FIRST, 2 * capacity)
                if not _widen(meta, words, values, group, wanted, cursor):
                    return row
        place = meta[at] + meta[at + 1]
        hot[seen] = place
        words[place] = word
        values[2 * place] = weight
        values[2 * place + 1] = 0.0
        meta[at + 1] += 1
        plus(sums, group * 3, weight)
    rows: int = ids.shape[0]
    return rows


@kernel(
    "int64(w_i8, w_f8, w_i8, w_f8, w_i8, w_i8, w_u1, int64, int64, r_i8, r_i8, r_f8, r_i8, r_i8, r_f8, w_u1)",
)
def _merge(
    meta: Ints,
    sums: Floats,
    words: Words,
    values: Floats,
    cursor: Ints,
    table: Ints,
    marks: Any,
    room: int,
    first: int,
    ids: Ints,
    powers: Ints,
    their_sums: Floats,
    offsets: Ints,
    their_words: Words,
    their_values: Floats,
    met: Any,
) -> int:
    """Merge settled entries into groups; gives the partial at which the memory is used up, or their number."""
    for row in range(first, ids.shape[0]):
        if their_sums[row * 3] == 0.0:
            continue
        group = ids[row]
        at = group * 5
        coming = offsets[row + 1] - offsets[row]
        _settle(meta, sums, words, values, group, room, table, cursor, marks)
        if meta[at + 1] + coming > meta[at + 3]:
            capacity = max(FIRST, meta[at + 3])
            while capacity < meta[at + 1] + coming:
                capacity *= 2
            if not _widen(meta, words, values, group, capacity, cursor):
                return row
        scale = 1.0
        if powers[row] != meta[at + 4] or sums[group * 3] == 0.0:
            scale = _rescale(meta, sums, values, group, powers[row])
        missed = sums[group * 3 + 2]
        more = their_sums[row * 3 + 2] * scale
        start = meta[at]
        size = meta[at + 1]
        stamp = _stamp(table, cursor)
        for i in range(size):
            table[_place(table, words, start, stamp, words[start + i])] = (stamp << 32) | i
            met[i] = False
        left = size
        for i in range(offsets[row], offsets[row + 1]):
            word = their_words[i]
            place = _place(table, words, start, stamp, word)
            weight = their_values[2 * i] * scale
            error = their_values[2 * i + 1] * scale
            if (table[place] >> 32) == stamp:
                j = table[place] & 0xFFFFFFFF
                if j < size:
                    met[j] = True
                values[2 * (start + j)] += weight
                values[2 * (start + j) + 1] += error
                continue
            table[place] = (stamp << 32) | left
            words[start + left] = word
            values[2 * (start + left)] = weight + missed
            values[2 * (start + left) + 1] = error + missed
            left += 1
        for i in range(size):
            if not met[i]:
                values[2 * (start + i)] += more
                values[2 * (start + i) + 1] += more
        meta[at + 1] = left
        meta[at + 2] = left
        sums[group * 3 + 2] = missed + more
        _prune(meta, sums, words, values, group, room, marks)
        plus(sums, group * 3, their_sums[row * 3] * scale)
        sums[group * 3 + 1] += their_sums[row * 3 + 1] * scale
    rows: int = ids.shape[0]
    return rows


@kernel("void(w_i8, w_f8, w_i8, w_f8, w_i8, w_i8, w_u1, int64, r_i8)")
def _settle_all(
    meta: Ints,
    sums: Floats,
    words: Words,
    values: Floats,
    cursor: Ints,
    table: Ints,
    marks: Any,
    room: int,
    groups: Ints,
) -> None:
    """Settle some groups, so that each has at most `room` entries."""
    for i in range(groups.shape[0]):
        _settle(meta, sums, words, values, groups[i], room, table, cursor, marks)


@kernel("void(w_i8, w_f8, w_i8, w_i8, r_i8)")
def _clear(meta: Ints, sums: Floats, words: Words, cursor: Ints, groups: Ints) -> None:
    """Forget some groups."""
    for i in range(groups.shape[0]):
        at = groups[i] * 5
        give(cursor, words, meta[at], meta[at + 3])
        meta[at : at + 5] = 0
        sums[groups[i] * 3 : groups[i] * 3 + 3] = 0.0


@kernel("void(r_i8, r_i8, r_f8, r_i8, r_i8, w_i8, w_f8)")
def _gather(
    meta: Ints, words: Words, values: Floats, groups: Ints, offsets: Ints, out_words: Words, out_values: Floats
) -> None:
    """Copy the entries of some groups, one group after the other."""
    for i in range(groups.shape[0]):
        start = meta[groups[i] * 5]
        for j in range(offsets[i + 1] - offsets[i]):
            out_words[offsets[i] + j] = words[start + j]
            out_values[2 * (offsets[i] + j)] = values[2 * (start + j)]
            out_values[2 * (offsets[i] + j) + 1] = values[2 * (start + j) + 1]


@kernel("void(r_i8, r_i8, r_f8, int64, w_u1)")
def _mark_heaviest(offsets: Ints, words: Words, values: Floats, room: int, marks: Any) -> None:
    """Mark the `room` heaviest entries of each group."""
    for i in range(offsets.shape[0] - 1):
        size = offsets[i + 1] - offsets[i]
        if size <= room:
            marks[offsets[i] : offsets[i + 1]] = 1
        elif room > 0:
            _mark(words, values, offsets[i], size, room, marks[offsets[i] : offsets[i + 1]])


class Entries:
    """The entries of some groups, one group after the other.

    Attributes:
        offsets: Where each group's begin, and where the last one's end.
        words: Their words.
        weights: Their weights.
        errors: By how much those may be too high.
    """

    def __init__(self, offsets: Ints, words: Words, values: Floats) -> None:
        self.offsets = offsets
        self.words = words
        self.values = values
        self.weights, self.errors = values[::2], values[1::2]

    @property
    def owners(self) -> Ints:
        """The place of each entry's group among the groups."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def heaviest(self, count: int) -> NDArray[np.bool_]:
        """Which entries are among the `count` heaviest of their group."""
        marks = np.zeros(len(self.words), np.uint8)
        _mark_heaviest(self.offsets, self.words, self.values, count, marks)
        return marks.view(np.bool_)

    def chosen(self, marks: NDArray[np.bool_]) -> Entries:
        """Some of the entries, each group's heaviest first."""
        rows = np.flatnonzero(marks)
        owners = self.owners[rows]
        order = rows[np.lexsort((_mix(self.words[rows]), -self.weights[rows], owners))]
        sizes = np.bincount(owners, minlength=len(self.offsets) - 1)
        values = np.column_stack([self.weights[order], self.errors[order]]).reshape(-1)
        return Entries(np.concatenate([[0], np.cumsum(sizes)]), self.words[order], values)


class Slab:
    """The entries of all groups.

    Args:
        room: The most entries that a settled group has.
        budget: Bytes that it may take, which are reserved, so that it does not move as it grows; None for no bound.
    """

    def __init__(self, room: int, budget: int | None = None) -> None:
        self._room = room
        size = 1024 if budget is None else budget // 24 + 1024
        self.meta = np.zeros(0, np.int64)
        self.sums = np.zeros(0)
        self._words = reserved(size, np.int64)
        self._values = reserved(2 * size, np.float64)
        self._cursor = cursor()
        self._table = np.zeros(2 << (8 * room).bit_length(), np.int64)  # half full at most
        self._marks = np.zeros(8 * room, np.uint8)
        self._met = np.zeros(8 * room, np.uint8)
        self._hot = np.full(_HOT, -1, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that the groups take."""
        return self.meta.nbytes + self.sums.nbytes + 24 * int(self._cursor[END])

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        self.meta, self.sums = grown(self.meta, groups * 5), grown(self.sums, groups * 3)

    def append(self, ids: Ints, weights: Floats, powers: Ints, words: Words) -> None:
        """Add rows, with weights ``weights * 2**powers``."""
        done = 0
        while done < len(ids):
            done = _append(
                self.meta, self.sums, self._words, self._values, self._cursor, self._table, self._marks, self._hot,
                self._room, done, ids, weights, powers, words,
            )  # fmt: skip
            if done < len(ids):
                self._make_room()

    def merge(self, ids: Ints, powers: Ints, sums: Floats, entries: Entries) -> None:
        """Merge settled states of groups: their sums, three a row, and their entries."""
        done = 0
        while done < len(ids):
            done = _merge(
                self.meta, self.sums, self._words, self._values, self._cursor, self._table, self._marks, self._room,
                done, ids, powers, sums, entries.offsets, entries.words, entries.values, self._met,
            )  # fmt: skip
            if done < len(ids):
                self._make_room()

    def entries(self, groups: Ints) -> Entries:
        """The entries of some groups, settled."""
        _settle_all(
            self.meta, self.sums, self._words, self._values, self._cursor, self._table, self._marks, self._room, groups
        )
        sizes = self.meta.reshape(-1, 5)[groups, SIZE]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        words, values = np.empty(offsets[-1], np.int64), np.empty(2 * offsets[-1])
        _gather(self.meta, self._words, self._values, groups, offsets, words, values)
        return Entries(offsets, words, values)

    def clear(self, groups: Ints) -> None:
        """Forget some groups."""
        _clear(self.meta, self.sums, self._words, self._cursor, groups)

    def _make_room(self) -> None:
        """Move the stretches together, into memory that is at least half free then."""
        meta = self.meta.reshape(-1, 5)
        groups = np.arange(len(meta))
        live = int(meta[:, CAPACITY].sum())
        size = max(2 * live, len(self._words)) + 8 * self._room
        offsets = np.concatenate([[0], np.cumsum(meta[:, CAPACITY])])
        words, values = reserved(size, np.int64), reserved(2 * size, np.float64)
        _gather(self.meta, self._words, self._values, groups, offsets, words, values)
        meta[:, START] = offsets[:-1]
        self._words, self._values = words, values
        self._cursor[END] = live
        self._cursor[FREE:] = 0


def _mix(words: Words) -> NDArray[np.uint64]:
    """:func:`mixed` of a column."""
    h = (words.view(np.uint64) ^ _GOLDEN) * _SCRAMBLE
    h ^= h >> _HALF
    found: NDArray[np.uint64] = h * _GOLDEN
    return found
