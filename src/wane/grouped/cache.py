"""A cache of groups of fixed size, as the low level of "Holistic UDAFs at Streaming Speeds" has it (section 6).

A group lives in a slot. When a new group wants a slot that is taken, the one that lives there is *ejected*: what is
known of it goes up as a partial, and if it comes back it begins anew. So memory is bounded, however many groups there
are, and groups that are busy stay. Which slots a group may have, and who has to go, is a :class:`Strategy`; those here
are the paper's. Groups are told apart by epoch and keys together, so that a late row ejects nothing but what it
collides with.

An id is a place in the pools. It is given out when a group enters the cache, and comes back when its partial has been
handed out, so that a whole batch can be looked up before any state is touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wane._jit import Kernel, inline, kernel
from wane.errors import BadParameter
from wane.grouped.words import WordColumn, Words

IDS, GONE, CLOCK, NEWEST, OLDEST, USED = range(6)
"""What a cache counts: ids that are free, ids that were ejected, where the sweep for old epochs is, and for LRU the
newest and the oldest entry and how many there are (0 for none, else its number and 1)."""

_DRAINED = 0.75
"""The part of an epoch in which the groups of the one before go."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)

_FIND = "void(w_i8, w_i8, w_i8, w_i8, w_i8, r_i8, int64, int64, w_i8)"
_SWEEP = "int64(w_i8, w_i8, w_i8, w_i8, int64, int64, int64, int64)"


@inline
def _hash(words: Words, start: int, width: int) -> Any:
    """A hash of the words of one group."""
    h = _GOLDEN
    for i in range(start, start + width):
        h = (h ^ np.uint64(words[i])) * _SCRAMBLE
        h ^= h >> _HALF
    return h * _GOLDEN


@inline
def _slot(h: Any, slots: int) -> Any:
    """The slot of a hash."""
    return np.int64(((h >> _HALF) * np.uint64(slots)) >> _HALF)


@inline
def _same(known: Words, one: int, words: Words, start: int, width: int) -> bool:
    """Whether an id stands for the group of some words."""
    i = 0
    while i < width and known[one * width + i] == words[start + i]:
        i += 1
    return i == width


@inline
def _enter(known: Words, free: Words, counts: Words, words: Words, start: int, width: int) -> Any:
    """A new id for the group of some words."""
    counts[0] -= 1
    one = free[counts[0]]
    for i in range(width):
        known[one * width + i] = words[start + i]
    return one


@inline
def _eject(gone: Words, counts: Words, one: int) -> None:
    """Note an id that has lost its slot."""
    gone[counts[1]] = one
    counts[1] += 1


@kernel(_FIND)
def _direct(
    table: Words, known: Words, free: Words, gone: Words, counts: Words, words: Words, width: int, slots: int,
    ids: Words,
) -> None:  # fmt: skip
    """One slot a group."""
    for row in range(ids.shape[0]):
        start = row * width
        at = _slot(_hash(words, start, width), slots)
        one = table[at] - 1
        if one < 0 or not _same(known, one, words, start, width):
            if one >= 0:
                _eject(gone, counts, one)
            one = _enter(known, free, counts, words, start, width)
            table[at] = one + 1
        ids[row] = one


@kernel(_FIND)
def _second_chance(
    table: Words, known: Words, free: Words, gone: Words, counts: Words, words: Words, width: int, slots: int,
    ids: Words,
) -> None:  # fmt: skip
    """Two slots a group; where both are taken, the group in the first is ejected."""
    for row in range(ids.shape[0]):
        start = row * width
        h = _hash(words, start, width)
        at = _slot(h, slots)
        one = table[at] - 1
        if one >= 0 and _same(known, one, words, start, width):
            ids[row] = one
            continue
        second = _slot((h ^ _GOLDEN) * _SCRAMBLE, slots)
        other = table[second] - 1
        if other >= 0 and _same(known, other, words, start, width):
            ids[row] = other
            continue
        if one >= 0 and other >= 0:
            _eject(gone, counts, one)
        elif one >= 0:
            at = second
        one = _enter(known, free, counts, words, start, width)
        table[at] = one + 1
        ids[row] = one


@inline
def _unlink(table: Words, counts: Words, slots: int, entry: int) -> None:
    """Take an entry out of the order of use."""
    at = slots + 5 * entry
    newer, older = table[at + 1], table[at + 2]
    if newer > 0:
        table[slots + 5 * (newer - 1) + 2] = older
    else:
        counts[3] = older
    if older > 0:
        table[slots + 5 * (older - 1) + 1] = newer
    else:
        counts[4] = newer


@inline
def _push(table: Words, counts: Words, slots: int, entry: int) -> None:
    """Make an entry the newest in the order of use."""
    at = slots + 5 * entry
    table[at + 1] = 0
    table[at + 2] = counts[3]
    if counts[3] > 0:
        table[slots + 5 * (counts[3] - 1) + 1] = entry + 1
    else:
        counts[4] = entry + 1
    counts[3] = entry + 1


@inline
def _unchain(table: Words, slots: int, entry: int) -> None:
    """Take an entry out of its chain."""
    place = table[slots + 5 * entry + 4]
    while table[place] != entry + 1:
        place = slots + 5 * (table[place] - 1)
    table[place] = table[slots + 5 * entry]


@kernel(_FIND)
def _lru(
    table: Words, known: Words, free: Words, gone: Words, counts: Words, words: Words, width: int, slots: int,
    ids: Words,
) -> None:  # fmt: skip
    """Any slot; where all are taken, the group that was not met for longest is ejected.

    The table begins with the first entry of each chain. An entry has five words: the next of its chain, the newer and
    the older in the order of use, the group's id, and its chain.
    """
    for row in range(ids.shape[0]):
        start = row * width
        chain = _slot(_hash(words, start, width), slots)
        entry = table[chain] - 1
        while entry >= 0 and not _same(known, table[slots + 5 * entry + 3], words, start, width):
            entry = table[slots + 5 * entry] - 1
        if entry >= 0:
            if counts[3] != entry + 1:
                _unlink(table, counts, slots, entry)
                _push(table, counts, slots, entry)
            ids[row] = table[slots + 5 * entry + 3]
            continue
        if counts[5] < slots:
            entry = counts[5]
            counts[5] += 1
        else:
            entry = counts[4] - 1
            if table[slots + 5 * entry + 3] >= 0:
                _eject(gone, counts, table[slots + 5 * entry + 3])
                _unchain(table, slots, entry)
            _unlink(table, counts, slots, entry)
        one = _enter(known, free, counts, words, start, width)
        at = slots + 5 * entry
        table[at] = table[chain]
        table[at + 3] = one
        table[at + 4] = chain
        table[chain] = entry + 1
        _push(table, counts, slots, entry)
        ids[row] = one


@kernel(_FIND)
def _pass(
    table: Words, known: Words, free: Words, gone: Words, counts: Words, words: Words, width: int, slots: int,  # noqa: ARG001
    ids: Words,
) -> None:  # fmt: skip
    """No slot at all: every row is a group by itself."""
    for row in range(ids.shape[0]):
        one = _enter(known, free, counts, words, row * width, width)
        _eject(gone, counts, one)
        ids[row] = one


@kernel(_SWEEP)
def _sweep_slots(
    table: Words, known: Words, gone: Words, counts: Words, width: int, slots: int, epoch: int, most: int
) -> int:
    """Eject groups of epochs before one, at most so many; gives how many slots it is done with."""
    found = 0
    for looked in range(slots):
        if found == most:
            return looked
        at = counts[2]
        counts[2] = (at + 1) % slots
        one = table[at] - 1
        if one >= 0 and known[one * width] < epoch:
            _eject(gone, counts, one)
            table[at] = 0
            found += 1
    return slots


@kernel(_SWEEP)
def _sweep_lru(
    table: Words, known: Words, gone: Words, counts: Words, width: int, slots: int, epoch: int, most: int
) -> int:
    """Eject groups of epochs before one, at most so many, those first that were not met for longest."""
    found = 0
    entry = counts[4] - 1
    while entry >= 0 and found < most:
        newer = table[slots + 5 * entry + 1] - 1
        one = table[slots + 5 * entry + 3]
        if one >= 0 and known[one * width] < epoch:
            _eject(gone, counts, one)
            _unchain(table, slots, entry)
            table[slots + 5 * entry + 3] = -1
            # It is free, and first to be used again.
            _unlink(table, counts, slots, entry)
            table[slots + 5 * entry + 1] = counts[4]
            table[slots + 5 * entry + 2] = 0
            if counts[4] > 0:
                table[slots + 5 * (counts[4] - 1) + 2] = entry + 1
            else:
                counts[3] = entry + 1
            counts[4] = entry + 1
            found += 1
        entry = newer
    return slots if entry < 0 else 0


@dataclass(frozen=True)
class Strategy:
    """Which slots a group may have, and who has to go.

    Attributes:
        find: A kernel that gives each row of a batch the id of its group.
        sweep: A kernel that ejects groups of old epochs.
        memory: How many words its table takes for so many slots.
        title: What it does, in half a line.
    """

    find: Kernel
    sweep: Kernel
    memory: Callable[[int], int]
    title: str


STRATEGIES: dict[str, Strategy] = {
    "direct": Strategy(_direct, _sweep_slots, lambda slots: slots, "one slot a group"),
    "second chance": Strategy(_second_chance, _sweep_slots, lambda slots: slots, "two slots a group"),
    "none": Strategy(_pass, _sweep_slots, lambda slots: slots, "nothing is reduced, rows go up as they are"),
    "lru": Strategy(_lru, _sweep_lru, lambda slots: 6 * slots, "any slot, the group of longest ago goes"),
}
"""By name; another one is added by putting it here."""


class CachedGroups:
    """Ids for the groups of rows, like :class:`wane.grouped.keys.Groups`, of which so many fit.

    Args:
        fields: The key columns, in order.
        strategy: The name of one of the :data:`STRATEGIES`.
        slots: How many groups fit.
        epochs: Whether the first column is the epoch.
    """

    def __init__(self, fields: Sequence[pa.Field], strategy: str, slots: int, epochs: bool) -> None:
        if strategy not in STRATEGIES:
            raise BadParameter(f"there is no cache {strategy!r}; the strategies are {', '.join(STRATEGIES)}")
        if not 1 <= slots < 2**31 or slots != int(slots):
            raise BadParameter(f"a cache has a whole number of slots from 1, got {slots!r}; write slots=10_000")
        self._columns = [WordColumn(field) for field in fields]
        self._strategy = STRATEGIES[strategy]
        self._slots = int(slots)
        self._width = len(fields) + 1
        self._table = np.zeros(self._strategy.memory(self._slots), np.int64)
        self._known = np.zeros(0, np.int64)
        self._free = np.zeros(0, np.int64)
        self._gone = np.zeros(0, np.int64)
        self._counts = np.zeros(6, np.int64)
        self._epochs = epochs
        self._swept = self._newest = -(2**63)
        self._left = 0  # slots that may hold groups of old epochs
        self._rows = 0  # rows of the newest epoch
        self._pace = 0.0  # groups of old epochs that go for each row
        self.size = 0

    def ids(self, arrays: Sequence[pa.Array], rows: int) -> Words:
        """The id of the group of every row of a batch, all in the order of the rows."""
        if not rows:
            return np.zeros(0, np.int64)
        words = np.zeros((rows, self._width), np.int64)
        for i, (column, array) in enumerate(zip(self._columns, arrays, strict=True)):
            found, missing = column.words(array)
            words[:, i] = found if missing is None else np.where(missing, 0, found)
            if missing is not None:
                words[:, -1] |= missing.astype(np.int64) << i
        if self._epochs:
            self._newest = max(self._newest, int(words[:, 0].max()))
        self._room(rows)
        ids = np.empty(rows, np.int64)
        self._strategy.find(
            self._table, self._known, self._free, self._gone, self._counts, words.reshape(-1), self._width,
            self._slots, ids,
        )  # fmt: skip
        return ids

    def sweep(self, rows: int | None) -> None:
        """Eject groups of epochs that are over.

        Args:
            rows: How many rows came since the last time: so many groups go that all are gone when three quarters of the
                rows have come that the last epoch had. None ejects all.
        """
        if self._newest > self._swept:
            self._swept = self._newest
            self._left = self._slots
            there = self.size - int(self._counts[IDS]) - int(self._counts[GONE])
            self._pace = there / max(_DRAINED * self._rows, 1.0)
            self._rows = 0
        self._rows += rows or 0
        if not self._left:
            return
        self._room(0)
        most = self._slots if rows is None else math.ceil(rows * self._pace)
        looked = self._strategy.sweep(
            self._table, self._known, self._gone, self._counts, self._width, self._slots, self._swept,
            most,
        )  # fmt: skip
        self._left = 0 if looked == self._slots else max(self._left - int(looked), 0)

    @property
    def gone(self) -> Words:
        """The ids that were ejected."""
        return self._gone[: self._counts[GONE]].copy()

    def forget(self) -> None:
        """Give the ids that were ejected to new groups."""
        gone, free = self.gone, int(self._counts[IDS])
        self._free[free : free + len(gone)] = gone
        self._counts[IDS] += len(gone)
        self._counts[GONE] = 0

    @property
    def live(self) -> Words:
        """The ids of the groups in the cache."""
        there = np.ones(self.size, np.bool_)
        there[self._free[: self._counts[IDS]]] = False
        there[self.gone] = False
        return np.flatnonzero(there)

    @property
    def nbytes(self) -> int:
        """About the memory that the groups take."""
        arrays = (self._table, self._known, self._free, self._gone)
        return sum(array.nbytes for array in arrays) + sum(column.nbytes for column in self._columns)

    def keys(self, order: Words) -> list[pa.Array]:
        """The keys of some groups, each column in its own type."""
        known = self._known.reshape(-1, self._width)[order]
        gone = known[:, -1]
        return [
            column.values(np.ascontiguousarray(known[:, i]), (gone >> i) & 1 != 0)
            for i, column in enumerate(self._columns)
        ]

    def _room(self, rows: int) -> None:
        """Make ids enough for every row to be a new group, and room to eject as many and all that are there."""
        free = int(self._counts[IDS])
        if free < rows:
            more = self.size + rows - free
            # The lowest ids are given out first.
            fresh = np.arange(more - 1, self.size - 1, -1)
            self._free = np.concatenate([fresh, self._free[:free], np.zeros(more - len(fresh) - free, np.int64)])
            self._counts[IDS] = free + len(fresh)
            known = np.zeros(more * self._width, np.int64)
            known[: len(self._known)] = self._known
            self._known, self.size = known, more
        if len(self._gone) < self.size:
            gone = np.zeros(self.size, np.int64)
            gone[: len(self._gone)] = self._gone
            self._gone = gone
