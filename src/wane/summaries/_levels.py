"""The samples S_0 to S_M of the duplicate-insensitive sketch, as one canonical state.

Each element is a range of integers, one for each unit of its weight. It is in the sample of a level if one of them is
(:mod:`wane.summaries._range_sample`), and there it has a key, the larger the longer it is of use: its time, or under a
decay fixed ahead its expiry. A level keeps the elements of the largest keys, at most `tau` of them, and remembers the
largest key that it had to eject: its top. What has one key is ejected together, so that a level holds all elements of
keys above its top, and no others.

So the state is a function of the set of elements, whatever their order, however often they came, and in whatever parts
they were merged. Of several elements with one id a level keeps that of the largest key, and of those the one with the
smallest value, then weight, then time. No rule that may prefer an element of a smaller key could be kept: that one may
have been ejected long before the other comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.summaries._expiry import FOREVER, NEVER, Expiry, place
from wane.summaries._pairwise import Hash, times_plus
from wane.summaries._range_sample import first_hits, range_samples

ROOM = 65536
"""Entries that are collected before the levels are brought up to date."""

LEVELS = 58
"""Levels from 0 to 57 thin out any domain of ``2**57`` integers to one."""

_ROUNDING, _MOST = 2.0**-44, 2.0**-20
"""What is added to weights, relatively and at most, so that a product that would be whole but for rounding is."""

_SHIFT = 6
"""Bits for a level beside an id, which is under ``2**57``."""


class Elements(NamedTuple):
    """Elements: columns of one length."""

    times: Ints
    ids: Ints
    values: Floats
    weights: Floats

    def take(self, rows: Any) -> Elements:
        """Some of them."""
        return Elements(*(column[rows] for column in self))

    def joined(self, other: Elements) -> Elements:
        """Both, one after the other."""
        return Elements(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class Scale(NamedTuple):
    """How elements become ranges of integers.

    Attributes:
        scale: How many integers stand for a weight of 1.
        width: How many integers each id has for itself.
    """

    scale: float
    width: int

    def loads(self, weights: Floats) -> Floats:
        """Weights in integers, before they are rounded down."""
        with np.errstate(over="ignore"):
            loads = weights * self.scale
            return loads + np.minimum(loads * _ROUNDING, _MOST)


def none() -> Elements:
    """No elements."""
    return Elements(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


def integers(loads: Floats) -> Ints:
    """Whole numbers of integers."""
    return np.floor(loads).astype(np.int64)


@kernel("UniTuple(int64, 2)(int64, r_i8, r_i8, r_i8, int64, int64, r_i8, w_i8, w_i8)")
def _by_time(
    start: int, times: Ints, bases: Ints, sizes: Ints, a: int, b: int, floors: Ints, rows: Ints, levels: Ints
) -> tuple[int, int]:
    """Find the levels of elements, from the row `start` on, at which their times are above the floor.

    Returns:
        The first row that was not looked at, and the number of rows and levels that were written.
    """
    top = np.int64(floors.shape[0] - 1)
    scratch = np.empty(floors.shape[0], np.int64)
    filled = 0
    for row in range(start, times.shape[0]):
        if filled + floors.shape[0] > rows.shape[0]:
            return row, filled
        bottom = np.int64(0)
        while bottom <= top and floors[bottom] >= times[row]:
            bottom += 1
        if bottom > top:
            continue
        u = np.int64(times_plus(np.uint64(a), np.uint64(bases[row]), np.uint64(b)))
        for level in range(bottom, first_hits(u, np.int64(a), sizes[row], bottom, top, scratch)):
            if times[row] > floors[level]:
                rows[filled] = row
                levels[filled] = level
                filled += 1
    return times.shape[0], filled


@inline
def _left(load: float, time: int, floor: int, cells: Floats, shift: int) -> Any:
    """How many integers an element may have left at `floor`, which is not before its time, and no fewer.

    The distance of two times fits 64 bits without a sign.
    """
    if floor == FOREVER:
        return 0.0
    cell = (np.uint64(floor) - np.uint64(time)) >> np.uint64(shift)
    return load * cells[np.int64(min(cell, np.uint64(cells.shape[0] - 1)))]


@kernel("UniTuple(int64, 2)(int64, r_i8, r_i8, r_f8, int64, int64, r_i8, r_f8, int64, r_f8, w_i8, w_i8, w_i8, w_i8)")
def _by_expiry(
    start: int,
    times: Ints,
    bases: Ints,
    loads: Floats,
    a: int,
    b: int,
    floors: Ints,
    cells: Floats,
    shift: int,
    shares: Floats,
    rows: Ints,
    levels: Ints,
    hits: Ints,
    places: Ints,
) -> tuple[int, int]:
    """:func:`_by_time` where the key is the expiry: also written are the first hits, and places in the table of ages.

    No floor is before a time. What a look at the cells leaves above its floor may still turn out to be under it.
    """
    top = np.int64(floors.shape[0] - 1)
    scratch = np.empty(floors.shape[0], np.int64)
    filled = 0
    for row in range(start, times.shape[0]):
        if filled + floors.shape[0] > rows.shape[0]:
            return row, filled
        load, time = loads[row], times[row]
        bottom = np.int64(0)
        while bottom <= top and _left(load, time, floors[bottom], cells, shift) < 1.0:
            bottom += 1
        if bottom > top:
            continue
        u = np.int64(times_plus(np.uint64(a), np.uint64(bases[row]), np.uint64(b)))
        size = np.int64(np.floor(_left(load, time, floors[top], cells, shift)))
        for level in range(bottom, first_hits(u, np.int64(a), size, bottom, top, scratch)):
            hit = scratch[level - bottom]
            if _left(load, time, floors[level], cells, shift) >= hit + 1:
                rows[filled] = row
                levels[filled] = level
                hits[filled] = hit
                places[filled] = place(load, hit, shares)
                filled += 1
    return times.shape[0], filled


class Samples:
    """The samples of all levels, by one hash.

    Args:
        hashed: The hash.
        tau: How many elements a level may keep.
        scale: How elements become ranges.
        expiry: When elements expire, under a decay fixed ahead; None where their times are their keys.

    Attributes:
        tops: By level, the largest key that was ejected; `NEVER` where none was.
        levels: The level of each entry.
        keys: The key of each entry, largest first within a level.
        elements: The element of each entry.
    """

    def __init__(self, hashed: Hash, tau: int, scale: Scale, expiry: Expiry | None) -> None:
        self.hash = hashed
        self.tau = tau
        self.scale = scale
        self.expiry = expiry
        self.tops = np.full(LEVELS, NEVER, np.int64)
        self.levels = np.empty(0, np.int64)
        self.keys = np.empty(0, np.int64)
        self.elements = none()

    def add(self, elements: Elements, clock: int) -> None:
        """Add elements, each of some integers; what expires at `clock`, the newest time there is, or before, goes."""
        if (elements.times[1:] > elements.times[:-1]).any():  # the newest first: then most of the others are too old
            elements = elements.take(np.argsort(-elements.times, kind="stable"))
        for levels, keys, rows in self._gather(elements, clock):
            self._take(levels, keys, elements.take(rows), clock)
        if not len(elements.times):
            self._take(self.levels[:0], self.keys[:0], none(), clock)

    def absorb(self, other: Samples, clock: int) -> None:
        """Merge the samples of `other`, which have the same hash."""
        self.tops = np.maximum(self.tops, other.tops)
        self._take(other.levels, other.keys, other.elements, clock)

    def distinct(self) -> Elements:
        """Every element that is in some level once, in an order of their own."""
        mine = self.elements
        order = np.lexsort((mine.weights, mine.values, mine.ids, mine.times))
        found = mine.take(order)
        new = np.ones(len(order), np.bool_)
        for i, column in enumerate(found):
            new[1:] = (new[1:] if i else False) | (column[1:] != column[:-1])
        return found.take(new)

    def rebuild(self, elements: Elements, clock: int) -> bool:
        """Put back what :meth:`distinct` gave, under the tops it was kept under; False where it does not fit them."""
        tops = self.tops.copy()
        self.add(elements, clock)
        return bool((tops == self.tops).all() and all(map(np.array_equal, self.distinct(), elements)))

    def counts(self, level: Ints, ids: Ints, sizes: Ints) -> Ints:
        """How many of the first integers of some ids are in the samples of some levels."""
        found = np.empty(len(ids), np.int64)
        range_samples(ids * self.scale.width, sizes, level, *self.hash, found)
        return found

    def _gather(self, elements: Elements, clock: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """The entries that elements make: levels, keys, rows."""
        bases, loads = elements.ids * self.scale.width, self.scale.loads(elements.weights)
        rows, levels = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        hits, places = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        start, size = 0, len(bases)
        sizes = integers(loads)
        while start < size:
            floors = np.maximum(self.tops, clock)
            if self.expiry is None:
                start, filled = _by_time(start, elements.times, bases, sizes, *self.hash, floors, rows, levels)
                keys = elements.times[rows[:filled]]
            else:
                table = self.expiry.cells, self.expiry.shift, self.expiry.shares
                given = (start, elements.times, bases, loads, *self.hash, floors, *table)
                start, filled = _by_expiry(*given, rows, levels, hits, places)
                chosen = rows[:filled]
                ages = self.expiry.search(loads[chosen], hits[:filled], places[:filled])
                times = elements.times[chosen]
                keys = np.where(times > FOREVER - ages, FOREVER, times + np.minimum(ages, FOREVER - times.clip(0)))
            yield levels[:filled], keys, rows[:filled]

    def _take(self, levels: Ints, keys: Ints, elements: Elements, clock: int) -> None:
        """Take entries into the levels."""
        levels, keys = np.concatenate([self.levels, levels]), np.concatenate([self.keys, keys])
        elements = self.elements.joined(elements)
        there = np.flatnonzero(keys > np.maximum(self.tops, clock)[levels])
        there = there[_one_each(levels[there], keys[there], elements.take(there))]
        order = there[np.lexsort((elements.ids[there], ~keys[there], levels[there]))]
        levels, keys = levels[order], keys[order]
        begins = np.searchsorted(levels, np.arange(LEVELS + 1))
        over = np.flatnonzero(np.diff(begins) > self.tau)
        self.tops[over] = keys[begins[over] + self.tau]
        self.tops[self.tops <= clock] = NEVER
        kept = keys > self.tops[levels]
        self.levels, self.keys, self.elements = levels[kept], keys[kept], elements.take(order[kept])


def _one_each(levels: Ints, keys: Ints, elements: Elements) -> Ints:
    """The rows of the canonical element of each id at each level."""
    codes = (elements.ids << _SHIFT) | levels
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    if not same.any():
        return order
    shared = np.zeros(len(order), np.bool_)
    shared[1:] = same
    shared[:-1] |= same
    rivals = order[shared]
    few = elements.take(rivals)
    ranked = rivals[np.lexsort((few.times, few.weights, few.values, ~keys[rivals], codes[rivals]))]
    first = np.ones(len(ranked), np.bool_)
    first[1:] = codes[ranked[1:]] != codes[ranked[:-1]]
    return np.concatenate([order[~shared], ranked[first]])
