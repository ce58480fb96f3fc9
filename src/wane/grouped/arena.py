"""Stretches of one piece of memory, one for each group, given out and taken back by native code.

A stretch has room for a power of two of entries. What a group that grows leaves behind goes to the next group that
needs as much: the stretches of one size that are free are a list, which runs through their own first words. So the
memory in use is that of the groups and little more, and nothing is ever moved to make room.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline
from wane.decay.base import Ints
from wane.grouped.arrays import Number

START, SIZE, SETTLED, CAPACITY, EXPONENT = range(5)
"""What is known of a group in ints: where its entries start, how many there are, how many of them are settled, how many
there is room for, and the power of two of its weights."""

END, STAMP, FREE = 0, 1, 2
"""In the ints of an arena: where memory begins that was never used, the newest stamp of a table, and then the lists of
free stretches by the logarithm of their size."""

FIRST = 4
"""Entries that a new group has room for."""


def cursor() -> Ints:
    """The ints of an empty arena."""
    return np.zeros(FREE + 64, np.int64)


def reserved(size: int, kind: type[Number]) -> NDArray[Number]:
    """An array of zeros of which only those pages take memory that something was written to.

    NumPy's own zeros come from the C library, which after a while hands out memory that was in use before, and then
    writes all the zeros.
    """
    pages = mmap.mmap(-1, max(size, 1) * np.dtype(kind).itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, kind)


@inline
def _size_class(capacity: int) -> int:
    """The logarithm of a size."""
    found = 0
    while (1 << found) < capacity:
        found += 1
    return found


@inline
def take(ints: Ints, links: Any, capacity: int) -> int:
    """The start of a stretch with room for so many entries; -1 where there is none left."""
    kind = FREE + _size_class(capacity)
    head = ints[kind]
    if head > 0:
        ints[kind] = np.int64(links[head - 1])
        start: int = head - 1
        return start
    end: int = ints[END]
    if end + capacity > links.shape[0]:
        return -1
    ints[END] = end + capacity
    return end


@inline
def give(ints: Ints, links: Any, start: int, capacity: int) -> None:
    """Take a stretch back."""
    if capacity > 0:
        kind = FREE + _size_class(capacity)
        links[start] = ints[kind]
        ints[kind] = start + 1
