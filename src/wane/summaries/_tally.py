"""A table of distinct hashes with their weights, filled by one native pass: what summaries of items are fed with.

Rows of one item are added up before a summary looks at them. A stream in which few items have most of the weight
becomes a short list that way, and what a summary does for each of its entries hardly counts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.hashing import Hashes

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)

_PROBE = 2048
"""Rows that are looked at to see whether many have the same key."""

FEW = 4 * _PROBE
"""Fewer rows are not worth a look."""


@inline
def slot_of(key: Any, mask: int) -> Any:
    """Where the search for a key begins: Fibonacci hashing, for keys that are anything but random."""
    return np.int64((key * _GOLDEN) >> _HALF) & mask


@kernel("int64(r_u8, r_f8, int64, w_i4, w_u8, w_f8, w_i8, w_i8)")
def _add(
    keys: Hashes, weights: Floats, first: int, slots: Any, known: Hashes, sums: Floats, rows: Ints, filled: Ints
) -> int:
    """Add rows to the table until it is full; gives the number of rows taken. Rows of weight 0 leave no trace."""
    mask = slots.shape[0] - 1
    room = known.shape[0]
    size = filled[0]
    for row in range(keys.shape[0]):
        weight = weights[row]
        if weight == 0.0:
            continue
        key = keys[row]
        at = slot_of(key, mask)
        while True:
            entry = slots[at]
            if entry == 0:
                if size == room:
                    filled[0] = size
                    return row
                known[size] = key
                sums[size] = weight
                rows[size] = first + row
                size += 1
                slots[at] = size
                break
            if known[entry - 1] == key:
                sums[entry - 1] += weight
                break
            at = (at + 1) & mask
    filled[0] = size
    taken: int = keys.shape[0]
    return taken


@kernel("int64(r_u8, int64, w_i4, w_u8, w_f8, w_i8, w_i8)")
def _count(keys: Hashes, first: int, slots: Any, known: Hashes, sums: Floats, rows: Ints, filled: Ints) -> int:
    """:func:`_add` of rows that weigh 1 each."""
    mask = slots.shape[0] - 1
    room = known.shape[0]
    size = filled[0]
    for row in range(keys.shape[0]):
        key = keys[row]
        at = slot_of(key, mask)
        while True:
            entry = slots[at]
            if entry == 0:
                if size == room:
                    filled[0] = size
                    return row
                known[size] = key
                sums[size] = 1.0
                rows[size] = first + row
                size += 1
                slots[at] = size
                break
            if known[entry - 1] == key:
                sums[entry - 1] += 1.0
                break
            at = (at + 1) & mask
    filled[0] = size
    taken: int = keys.shape[0]
    return taken


@kernel("void(r_u8, r_i4, r_u8, w_i8)")
def _find(keys: Hashes, slots: Any, known: Hashes, places: Ints) -> None:
    """The entry of each key, or -1."""
    mask = slots.shape[0] - 1
    for row in range(keys.shape[0]):
        at = slot_of(keys[row], mask)
        while True:
            entry = slots[at]
            if entry == 0:
                places[row] = -1
                break
            if known[entry - 1] == keys[row]:
                places[row] = entry - 1
                break
            at = (at + 1) & mask


class Tally:
    """Distinct keys, each with the sum of its weights and the row where it was first seen.

    Args:
        room: How many keys it holds.

    Attributes:
        exponent: The sums are ``sums * 2**exponent``.
    """

    def __init__(self, room: int) -> None:
        self._slots = np.zeros(1 << (2 * room).bit_length(), np.int32)  # between a quarter and half full, at most
        self._known = np.empty(room, np.uint64)
        self._sums = np.empty(room)
        self._rows = np.empty(room, np.int64)
        self._filled = np.zeros(1, np.int64)
        self.exponent = 0

    def __len__(self) -> int:
        """The number of keys."""
        return int(self._filled[0])

    @property
    def keys(self) -> Hashes:
        """The keys, in the order of their first rows."""
        return self._known[: len(self)]

    @property
    def sums(self) -> Floats:
        """The sum of weights of each."""
        return self._sums[: len(self)]

    @property
    def rows(self) -> Ints:
        """The row where each was first seen."""
        return self._rows[: len(self)]

    def add(self, keys: Hashes, weights: Floats | None, first: int = 0, exponent: int = 0) -> int:
        """Add rows until the table is full; gives the number of rows taken.

        Args:
            keys: Their keys.
            weights: Their weights, relative to ``2**exponent``; None for 1 each.
            first: The number of the first of them.
            exponent: The power of two of the weights.
        """
        if weights is None:
            return int(_count(keys, first, self._slots, self._known, self._sums, self._rows, self._filled))
        if len(self) and exponent != self.exponent:
            shared = max(exponent, self.exponent)
            np.ldexp(self.sums, max(self.exponent - shared, -3000), out=self.sums)
            if exponent != shared:
                weights = np.ldexp(weights, max(exponent - shared, -3000))
            exponent = shared
        self.exponent = exponent
        return int(_add(keys, weights, first, self._slots, self._known, self._sums, self._rows, self._filled))

    def find(self, keys: Hashes) -> Ints:
        """The place of each key in :attr:`keys`, or -1."""
        places = np.empty(len(keys), np.int64)
        _find(keys, self._slots, self._known, places)
        return places

    def clear(self) -> None:
        """Forget everything."""
        self._slots[:] = 0
        self._filled[0] = 0


def alike(keys: Hashes) -> bool:
    """Whether many keys are the same, as a look at the first of them says."""
    probe = Tally(_PROBE)
    probe.add(keys[:_PROBE], None)
    return len(probe) <= _PROBE / 2


def added_up(keys: Hashes, weights: Floats) -> tuple[Ints, Floats]:
    """The first row of each key with the sum of its weights, as far as a table holds them; then the other rows."""
    table = Tally(len(keys) // 4)
    taken = table.add(keys, weights)
    return np.append(table.rows, np.arange(taken, len(keys))), np.append(table.sums, weights[taken:])


def heaviest(weights: Floats, keys: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Which of some weights are the `count` largest; equal ones by their keys, so that their order does not matter."""
    if len(weights) <= count:
        return np.ones(len(weights), np.bool_)
    least = np.partition(weights, len(weights) - count)[len(weights) - count]
    chosen: NDArray[np.bool_] = weights > least
    tied = np.flatnonzero(weights == least)
    chosen[tied[np.argsort(keys[tied])[: count - int(chosen.sum())]]] = True
    return chosen


def scaled(weights: Floats, by: int) -> Floats:
    """Weights at another power of two: exact, unless they become too small to matter."""
    return weights if by == 0 else np.ldexp(weights, max(by, -3000))


def shift(number: float, by: int) -> float:
    """A number at another power of two."""
    return math.ldexp(number, max(by, -3000))
