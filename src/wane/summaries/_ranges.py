"""The structures Q_j of Cormode, Korn and Tirthapura (PODS 2008): items counted in ranges of a binary tree over time.

In Q_j no range but a single tick counts more than ``2**j`` items, its limit, and a range has a child only when it is
full. So a range is full or has no ranges under it, and about half of all ranges are full. An item goes to the smallest
range that holds its tick, or, where that is full, to a new child of it. The ranges that hold a tick are one path from
the root, of which the first few are there: the smallest is found by binary search on the path.

Q_0 has no limit to keep: it counts ticks one by one. When a structure has too many ranges, the oldest are discarded,
up to a tick from which on it still knows everything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wane._jit import inline, kernel
from wane.decay.base import Ints
from wane.errors import CorruptState

_MIX = np.uint64(0x9E3779B97F4A7C15)
_U32 = np.uint64(32)

EARLIEST = -(2**62)
"""Before every tick."""


class Pieces(NamedTuple):
    """Where what was given has gone: parts of it, in the order in which it was given.

    Attributes:
        sources: Which of those given.
        targets: The range that a part went to.
        counts: How many items.
    """

    sources: Ints
    targets: Ints
    counts: Ints


@inline
def _key(tick: Any, level: Any) -> Any:
    """The range of ``2**level`` ticks that holds a tick: twice its middle, so that keys are in the order of time."""
    return (2 * (tick >> level) + 1) << level


@inline
def _slot(keys: Any, key: Any) -> Any:
    """Where a range is in a table, or would be: 0 is no key."""
    size = keys.shape[0]
    at: Any = np.int64((((np.uint64(key) * _MIX) >> _U32) * np.uint64(size)) >> _U32)
    while keys[at] != 0 and keys[at] != key:
        at += 1
        if at == size:
            at = 0
    return at


@kernel("void(w_i8, w_i8, r_i8, r_i8)")
def _place(table: Ints, counts: Ints, keys: Ints, given: Ints) -> None:
    """Put ranges that differ into an empty table."""
    for i in range(keys.shape[0]):
        at = _slot(table, keys[i])
        table[at] = keys[i]
        counts[at] = given[i]


@kernel("UniTuple(int64, 3)(w_i8, w_i8, int64, int64, int64, int64, r_i8, r_i8, r_i8, int64, w_i8, w_i8, w_i8)")
def _insert(
    keys: Ints,
    counts: Ints,
    used: int,
    room: int,
    top: int,
    limit: int,
    ticks: Ints,
    stops: Ints,
    loads: Ints,
    start: int,
    sources: Ints,
    targets: Ints,
    parts: Ints,
) -> tuple[int, int, int]:
    """Add counts to the ranges of their ticks, none below a level of its own, while there is room.

    Gives the next one to add, the number of ranges, and the number of pieces, which are noted where there is a place
    for them.
    """
    made, last, last_key, last_level = 0, -1, 0, 0
    for i in range(start, ticks.shape[0]):
        if used + top + 1 > room:
            return i, used, made
        tick, stop, left = ticks[i], stops[i], loads[i]
        level = stop
        if limit > 0:
            if not (last >= 0 and last_level >= stop and counts[last] < limit and _key(tick, last_level) == last_key):
                last_level = top
                low = stop  # at levels from `last_level` up, the ranges of the path are there
                while low < last_level:
                    middle = (low + last_level) >> 1
                    if keys[_slot(keys, _key(tick, middle))] != 0:
                        last_level = middle
                    else:
                        low = middle + 1
            level = last_level
        while True:
            last_key = _key(tick, level)
            last = _slot(keys, last_key)
            if keys[last] == 0:
                keys[last] = last_key
                used += 1
            part = left if level == stop else max(0, min(left, limit - counts[last]))
            counts[last] += part
            left -= part
            if sources.shape[0] > 0 and part > 0:
                sources[made], targets[made], parts[made] = i, last_key, part
                made += 1
            if left == 0:
                break
            level -= 1
        last_level = level
    return ticks.shape[0], used, made


class Ranges:
    """One Q_j.

    Attributes:
        limit: What a range may count that is no single tick; 0 in Q_0, which has only ticks.
        since: The first tick from which on everything is known.
    """

    def __init__(self, limit: int, top: int, room: int) -> None:
        self.limit = limit
        self.top = top
        self.room = room
        self.since = EARLIEST
        self.used = 0
        self._keys = np.zeros(64, np.int64)
        self._counts = np.zeros(64, np.int64)

    def add(self, ticks: Ints, stops: Ints, loads: Ints, start: int, note: bool) -> tuple[int, Pieces | None]:
        """Add counts from `start` on while there is room; gives the next one, and the pieces if they are to be noted.

        Args:
            ticks: The ticks, or the first ones of ranges.
            stops: The levels of the ranges that they came from, 0 for ticks.
            loads: How many items each.
            start: Where to begin.
            note: Whether pieces are wanted.
        """
        self._make_room(self.used + (len(ticks) - start + 1) * (self.top + 1))
        size = 0
        if note:
            size = (len(ticks) - start) * (1 if not self.limit or (loads == 1).all() else self.top + 1)
        sources, targets, parts = (np.empty(size, np.int64) for _ in range(3))
        room = min(self.room, 3 * len(self._keys) // 4)
        end, self.used, made = _insert(
            self._keys, self._counts, self.used, room, self.top, self.limit, ticks, stops, loads, start, sources,
            targets, parts,
        )  # fmt: skip
        return end, Pieces(sources[:made], targets[:made], parts[:made]) if note else None

    @property
    def full(self) -> bool:
        """Whether there is no room for another path."""
        return self.used + self.top + 1 > self.room

    def listed(self) -> tuple[Ints, Ints]:
        """The ranges in the order of time, and what they count."""
        there = np.flatnonzero(self._keys)
        order = there[np.argsort(self._keys[there])]
        return self._keys[order], self._counts[order]

    def prune(self, least: int, expired: int) -> None:
        """Discard the oldest ranges: those up to a tick that is expired, and as many as are not needed."""
        keys, counts = self.listed()
        _, highs = ends(keys)
        since = expired + 1
        if len(keys) > least:
            since = max(since, int(np.partition(highs, len(keys) - least - 1)[len(keys) - least - 1]) + 1)
        self.since = max(self.since, since)
        stay = highs >= self.since
        self.replace(keys[stay], counts[stay])

    def replace(self, keys: Ints, counts: Ints) -> None:
        """Hold these ranges."""
        self._keys = np.zeros(0, np.int64)
        self.used = 0
        self._make_room(len(keys) + 2 * self.top + 4)
        _place(self._keys, self._counts, keys, counts)
        self.used = len(keys)

    def _make_room(self, wanted: int) -> None:
        """Have a table that is three quarters full at most with so many ranges."""
        size = 4 * min(wanted, self.room) // 3 + 8
        if size > len(self._keys):
            keys, counts = self.listed() if len(self._keys) else (self._keys, self._keys)
            size = min(max(size, 2 * len(self._keys)), 4 * self.room // 3 + 8)
            self._keys, self._counts = np.zeros(size, np.int64), np.zeros(size, np.int64)
            _place(self._keys, self._counts, keys, counts)

    def check(self, factor: int) -> None:
        """Refuse ranges that nothing leads to; each may count `factor` times the limit."""
        keys, counts = self.listed()
        levels = heights(keys)
        fits = (levels == 0) | (counts <= factor * self.limit)
        if self.limit:  # above a range there is always one, which is full
            parents = ((2 * (keys >> (levels + 2)) + 1) << (levels + 1))[levels < self.top]
            at = np.minimum(np.searchsorted(keys, parents), len(keys) - 1)
            fits[levels < self.top] &= (keys[at] == parents) & (counts[at] >= self.limit)
        else:
            fits &= levels == 0
        if not fits.all():
            raise CorruptState("the ranges in the state are no tree, or count what they may not")


def heights(keys: Ints) -> Ints:
    """The level of each range."""
    return np.frexp((keys & -keys).astype(np.float64))[1].astype(np.int64) - 1


def ends(keys: Ints) -> tuple[Ints, Ints]:
    """The first and the last tick of each range."""
    half = keys & -keys
    lows = (keys - half) >> 1
    return lows, lows + (half - 1)


__all__ = ["EARLIEST", "Pieces", "Ranges", "ends", "heights"]
